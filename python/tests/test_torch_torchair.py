# SPDX-License-Identifier: Apache-2.0
"""Programs with the names of torchair: what its own tests of scopes look at, through `millstream.compat.torchair`."""

import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import torch_support as support  # skips this file without PyTorch
import torch

from millstream.compat import torchair as shim

FOLDER = os.path.dirname(os.path.abspath(__file__))


class Shim(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shim.install()
        import torchair
        cls.tng = torchair

    @classmethod
    def tearDownClass(cls):
        shim.uninstall()

    def setUp(self):
        from torchair._ge_concrete_graph.fx2ge_converter import GeConcreteGraph
        from torchair.core import _backend
        _backend._GLOBAL_COMPILE_OPTION = None
        self.graphs = []
        before = GeConcreteGraph.optimize_graph_without_runtime

        def look(concrete, *args, **kwargs):
            self.graphs.append(concrete.graph)
            return before(concrete, *args, **kwargs)
        patch = mock.patch.object(GeConcreteGraph, "optimize_graph_without_runtime", look)
        patch.start()
        self.addCleanup(patch.stop)

    def ops(self, model, *inputs, made=None):
        """The operators of the one graph of a model, which also computes what eager code does."""
        torch._dynamo.reset()
        inputs = inputs or [torch.randn(2, 2) for _ in range(4)]
        with support.quiet(), torch.no_grad():
            backend = self.tng.get_npu_backend(compiler_config=made or self.tng.CompilerConfig())
            compiled = torch.compile(model, backend=backend, dynamic=False)
            self.assertTrue(support.same(compiled(*inputs), model(*inputs)))
        (graph,) = self.graphs
        return list(graph.op)

    def of(self, ops, kind):
        return [op for op in ops if op.type == kind]

    def test_stream_scopes(self):
        scope = self.tng.scope

        def model(a, b, c, d):
            add = a + b
            with scope.npu_stream_switch("1", 2):
                scope.npu_wait_tensor(d, add)
                mm = torch.mm(c, d)
            mm1 = torch.mm(c, d)
            with scope.npu_stream_switch("2", 3, False):
                scope.npu_wait_tensor(d, mm)
                return add, mm, mm1, c + d
        ops = self.ops(model)
        first, second = self.of(ops, "MatMul")
        plain, labelled = self.of(ops, "Add")
        self.assertEqual((first.attr["_user_stream_label"].s, first.attr["_user_stream_priority"].s), (b"1", b"2"))
        self.assertIs(first.attr["_enable_inner_parallel"].b, True)
        self.assertEqual((labelled.attr["_user_stream_label"].s, labelled.attr["_enable_inner_parallel"].b), (b"2", False))
        for op in (plain, second):
            for key in ("_user_stream_label", "_user_stream_priority", "_enable_inner_parallel"):
                self.assertNotIn(key, op.attr)
        self.assertIn("Add:-1", self.of(ops, "Identity")[0].input)
        self.assertIn("MatMul:-1", self.of(ops, "Identity")[1].input)
        self.assertEqual([op.type for op in ops[:4]] + [ops[-1].type], ["Data"] * 4 + ["NetOutput"])

    def test_reading_an_absent_attribute_gives_an_empty_value(self):
        scope = self.tng.scope

        def model(a, b, c, d):
            with scope.super_kernel("k", "o"):
                mm = torch.mm(a, b)
                with scope.super_kernel(None):
                    return mm + c
        ops = self.ops(model)
        self.assertEqual(self.of(ops, "Add")[0].attr["_super_kernel_scope"].s, b"")
        self.assertEqual(self.of(ops, "MatMul")[0].attr["_super_kernel_options"].s, b"o")

    def test_never_timeout(self):
        scope = self.tng.scope

        def model(a, b, c, d):
            with scope.op_never_timeout(True):
                mm = torch.mm(a, b)
                with scope.op_never_timeout(False):
                    return mm + c
        ops = self.ops(model)
        self.assertIs(self.of(ops, "MatMul")[0].attr["_op_exec_never_timeout"].b, True)
        self.assertIs(self.of(ops, "Add")[0].attr["_op_exec_never_timeout"].b, False)
        with self.assertRaisesRegex(TypeError, r"^op_never_timeout\(\) argument 'enable' must be bool"):
            scope.op_never_timeout(enable=1)

    def test_record_and_wait(self):
        tng = self.tng

        def model(a, b, c, d):
            mm = torch.mm(a + b, a)
            mark = tng.ops.record()
            with tng.scope.npu_stream_switch("1"):
                tng.ops.wait([mark])
                return mm, a + c
        self.assertIn("MatMul:-1", self.of(self.ops(model), "Add")[1].input)

    def test_markers_of_the_old_library_in_a_pass(self):
        def change(gm, inputs, config):
            mm = next(n for n in gm.graph.nodes if n.target is torch.ops.aten.mm.default)
            with gm.graph.inserting_before(mm):
                gm.graph.call_function(torch.ops.air.scope_enter.default, (["_user_stream_label"], ["stream_1"]))
            with gm.graph.inserting_after(mm):
                gm.graph.call_function(torch.ops.air.scope_exit.default)
        made = self.tng.CompilerConfig()
        made.post_grad_custom_pre_pass = change
        ops = self.ops(lambda a, b, c, d: torch.mm(a, b) + c, made=made)
        self.assertEqual(self.of(ops, "MatMul")[0].attr["_user_stream_label"].s, b"stream_1")
        self.assertNotIn("_user_stream_label", self.of(ops, "Add")[0].attr)

    def test_half_a_scope_in_a_pass(self):
        for op, args, text in (
                ("scope_exit", (), "you must first call the torch.ops.air.scope_enter operator"),
                ("scope_enter", (["_user_stream_label"], ["stream_1"]),
                 "there is no paired call to the torch.ops.air.scope_exit operator")):
            def change(gm, inputs, config, op=op, args=args):
                with gm.graph.inserting_before(next(n for n in gm.graph.nodes if n.op == "call_function")):
                    gm.graph.call_function(getattr(torch.ops.air, op), args)
            made = self.tng.CompilerConfig()
            made.post_grad_custom_pre_pass = change
            with self.subTest(op), self.assertRaisesRegex(RuntimeError, text):
                self.ops(lambda a, b, c, d: torch.mm(a, b), made=made)

    def test_transposes_in_order(self):
        scope = self.tng.scope

        def model(x, w):
            a = torch.abs(x)
            outside = a.transpose(1, 2)
            with scope.npu_stream_switch("test", 1):
                first = torch.bmm(a, outside)
                second = torch.mm(w.t(), w.transpose(0, 1))
                inner = a.transpose(1, 2)
            return first, second, torch.bmm(a, a.transpose(1, 2)), inner
        found = self.of(self.ops(model, torch.randn(6, 5, 4), torch.randn(3, 3)), "Transpose")
        self.assertNotIn("_user_stream_label", found[0].attr)
        self.assertEqual([found[i].attr["_user_stream_label"].s for i in (1, 3)], [b"test", b"test"])
        self.assertEqual([found[i].attr["_user_stream_priority"].s for i in (1, 3)], [b"1", b"1"])
        self.assertNotIn("_user_stream_label", found[4].attr)

    def test_names_of_older_releases_and_the_rest(self):
        from torchair.configs.compiler_config import CompilerConfig
        from torchair.core.utils import logger
        from torchair.ops import NpuStreamSwitch, npu_wait_tensor  # noqa: F401
        import torch_npu  # noqa: F401
        self.assertIs(CompilerConfig, self.tng.CompilerConfig)
        self.assertEqual(logger.name, "torchair")
        self.tng.use_internal_format_weight(torch.nn.Linear(1, 1))
        self.assertTrue(callable(self.tng.get_compiler(CompilerConfig())))

    def test_compiling_a_method(self):
        tng, scope = self.tng, self.tng.scope

        class Model(torch.nn.Module):
            def forward(self, a):
                return a + 1

            def run(self, a):
                with scope.npu_stream_switch("1"):
                    mm = torch.mm(a, a)
                    mark = tng.ops.record()
                tng.ops.wait([mark])
                return mm, a * 2
        for _ in range(2):  # a second model is compiled anew
            torch._dynamo.reset()
            with support.quiet() as said, torch.no_grad(), tempfile.TemporaryDirectory() as folder:
                model, backend = Model(), tng.get_npu_backend()
                cached = tng.inference.cache_compile(model.run, backend=backend, cache_dir=folder)
                self.assertTrue(support.same(cached(torch.ones(2, 2)), model.run(torch.ones(2, 2))))
                self.assertEqual(os.listdir(folder), [])
            (graph,) = backend.graphs
            self.assertEqual((support.label(graph, "MatMul"), support.controls(graph, "Mul")), ("1", ["MatMul"]))
            self.assertTrue(any("keeps nothing on disk" in text for text in support.texts(said)))
        with self.assertRaisesRegex(ValueError, "Only method can be cached now"):
            self.tng.inference.cache_compile(lambda a: a)

        class Plain:
            def run(self, a):
                return a
        with self.assertRaisesRegex(ValueError, "Only torch.nn.Module method"):
            self.tng.inference.cache_compile(Plain().run)


class Installing(unittest.TestCase):
    def test_nothing_is_there_before_and_after(self):
        shim.uninstall()
        with self.assertRaises(ImportError):
            import torchair  # noqa: F401
        shim.install()
        shim.install()
        import torchair  # noqa: F401
        shim.uninstall()
        self.assertNotIn("torchair", sys.modules)

    def test_the_real_package_is_not_hidden(self):
        shim.uninstall()
        with mock.patch("importlib.util.find_spec", return_value=object()):
            with self.assertRaisesRegex(RuntimeError, "install\\(force=True\\)"):
                shim.install()


class Example(unittest.TestCase):
    def test_the_example_runs(self):
        path = os.path.abspath(os.path.join(FOLDER, "..", "..", "examples", "torch", "stream_scope.py"))
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=300, cwd=folder)
            dumps = [name for name in os.listdir(folder) if name.endswith(".pbtxt")]
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("user_stream_label: 1", done.stdout)
        self.assertEqual(len(dumps), 2)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""What goes wrong around scopes: graph breaks, exceptions, lost blocks, threads, and what the back-end says then."""

import copy
import os
import pickle
import subprocess
import sys
import threading
import traceback
import unittest
from unittest import mock

import torch_support as support  # skips this file without PyTorch
import torch

import millstream
from millstream import _markers, ops
from millstream.scope import npu_stream_switch, npu_wait_tensor
from torch_support import run

FOLDER = os.path.dirname(os.path.abspath(__file__))


def x(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def breaking(a):
    with npu_stream_switch("1"):
        b = a + 1
        torch._dynamo.graph_break()
        return b * 2


class Breaks(unittest.TestCase):
    def setUp(self):
        _markers.warn_again()

    def test_a_graph_break_in_a_block_is_an_error_with_fullgraph(self):
        with support.quiet(), self.assertRaises(torch._dynamo.exc.Unsupported):
            compiled, _ = support.compiled_by(breaking)
            compiled(x(0, 2))

    def test_without_fullgraph_the_block_runs_eagerly_and_a_warning_says_so(self):
        with support.quiet() as said, torch.no_grad():
            compiled, _ = support.compiled_by(breaking, fullgraph=False)
            self.assertTrue(torch.equal(compiled(x(0, 2)), (x(0, 2) + 1) * 2))
        self.assertTrue(any("label '1'" in str(w.message) and "graph break" in str(w.message) for w in said))
        self.assertEqual({w.category for w in said}, {millstream.ScopeWarning}, "PyTorch looked into the markers")

    def test_kernels_of_markers_behind_a_break_are_not_compiled(self):
        def model(a):
            with npu_stream_switch("1"):
                b = a + 1
                torch._dynamo.graph_break()
                ops.wait([ops.record()])
                return b * 2
        looked_at = []
        before = torch._dynamo.convert_frame.ConvertFrameAssert.__call__

        def look(convert, frame, *args, **how):
            looked_at.append(frame.f_code.co_name)
            return before(convert, frame, *args, **how)
        with support.quiet(), torch.no_grad(), mock.patch.object(torch._dynamo.convert_frame.ConvertFrameAssert, "__call__", look):
            compiled, backend = support.compiled_by(model, fullgraph=False)
            compiled(x(0, 2))
        self.assertIn("model", looked_at)
        self.assertFalse({"_eager_enter", "in_dispatch_mode", "region", "_token", "_nothing"} & set(looked_at), looked_at)
        self.assertNotIn("Empty", [o.type for g in backend.graphs for o in g.lowered.operators])

    def test_strict_scopes_turn_it_into_an_error(self):
        with support.quiet(), torch.no_grad():
            compiled, backend = support.compiled_by(breaking, support.config(strict_scopes=True), fullgraph=False)
            with self.assertRaisesRegex(millstream.ScopeError, "label '1'"):
                compiled(x(0, 2))
            del compiled, backend

    def test_strict_scopes_by_an_option_of_torch_compile(self):
        from millstream.backend import backend
        torch._dynamo.reset()
        with support.quiet(), torch.no_grad(), self.assertRaisesRegex(millstream.ScopeError, "label '1'"):
            torch.compile(breaking, backend=backend, options={"strict_scopes": True})(x(0, 2))

    def test_a_break_between_blocks_costs_no_scope(self):
        def model(a):
            with npu_stream_switch("1"):
                b = a + 1
            torch._dynamo.graph_break()
            with npu_stream_switch("2"):
                return b * 2
        graphs, said = run(model, [x(0, 2)], fullgraph=False)
        self.assertEqual([o.attributes["_user_stream_label"] for g in graphs for o in g.lowered.operators], ["1", "2"])
        self.assertEqual(said, [])

    def test_an_exception_inside_a_block_ends_the_scope(self):
        def model(a):
            b = a
            try:
                with npu_stream_switch("1"):
                    b = a + 1
                    raise ValueError("mine")
            except ValueError:
                pass
            return b * 2
        (graph,), _ = run(model, [x(0, 2)])
        self.assertEqual([support.label(graph, n) for n in ("Add", "Mul")], ["1", None])

    def test_a_failed_compilation_leaves_no_scope_behind(self):
        def bad(a):
            with npu_stream_switch("leaked"):
                torch._dynamo.graph_break()
                return a + 1

        def good(a):
            return a + 1
        with support.quiet(), torch.no_grad():
            compiled, _ = support.compiled_by(bad)
            with self.assertRaises(Exception):
                compiled(x(0, 2))
        (graph,), _ = run(good, [x(0, 2)])
        self.assertEqual(graph.lowered.operators[0].attributes, {})

    def test_a_pass_that_raises_leaves_no_scope_behind(self):
        def model(a):
            with npu_stream_switch("leaked"):
                return a + 1

        def fail(gm, inputs, config):
            raise KeyError("mine")
        with self.assertRaisesRegex(Exception, "mine"):
            run(model, [x(0, 2)], support.config(post_grad_custom_pre_pass=fail))
        (graph,), _ = run(lambda a: a + 1, [x(0, 2)])
        self.assertEqual(graph.lowered.operators[0].attributes, {})


class Lost(unittest.TestCase):
    def test_an_empty_block_is_named(self):
        def model(a):
            with npu_stream_switch("nothing"):
                pass
            return a + 1
        _, said = run(model, [x(0, 2)])
        self.assertEqual(len(said), 1)
        self.assertRegex(said[0], r"stream scope 'nothing' at test_torch_robust.py:\d+ has no effect")

    def test_a_warning_is_at_the_line_of_the_user_that_ran_the_model(self):
        def model(a):
            with npu_stream_switch("nothing"):
                npu_wait_tensor(a, a)
            return a + 1
        compiled, _ = support.compiled_by(model)
        with support.quiet() as said:
            compiled(x(0, 2))
        self.assertGreater(len(said), 0)
        for warning in said:
            self.assertEqual(os.path.basename(warning.filename), "test_torch_robust.py", warning.message)

    def test_a_block_whose_operators_are_dead_is_named(self):
        def model(a):
            with npu_stream_switch("dead"):
                a * 2
            return a + 1
        _, said = run(model, [x(0, 2)])
        self.assertEqual(len(said), 1)
        self.assertIn("'dead'", said[0])

    def test_a_block_that_holds_blocks_only_is_named(self):
        def model(a):
            with npu_stream_switch("outer"):
                with npu_stream_switch("inner"):
                    return a + 1
        _, said = run(model, [x(0, 2)])
        self.assertEqual(len(said), 1)
        self.assertIn("'outer'", said[0])

    def test_strict_scopes_make_a_lost_block_an_error(self):
        def model(a):
            with npu_stream_switch("nothing"):
                pass
            return a + 1
        with support.quiet(), torch.no_grad():
            compiled, backend = support.compiled_by(model, support.config(strict_scopes=True))
            with self.assertRaisesRegex(Exception, "'nothing'"):
                compiled(x(0, 2))
            del compiled, backend

    def test_other_kinds_of_scopes_are_named_too(self):
        def model(a):
            with millstream.scope.limit_core_num(1, 2):
                pass
            return a + 1
        _, said = run(model, [x(0, 2)])
        self.assertEqual(len(said), 1)
        self.assertIn("_op_aicore_num=1", said[0])

    def test_a_block_that_is_lost_in_training_is_named(self):
        def model(a):
            with npu_stream_switch("nothing"):
                pass
            return a * 2
        with support.quiet() as said:
            compiled, _ = support.compiled_by(model)
            compiled(x(0, 2).requires_grad_()).sum().backward()
        self.assertEqual(sum("'nothing'" in text for text in support.texts(said)), 1)

    def test_carriers_that_disagree_are_reported(self):
        from millstream._after_aot import compare_carriers
        from millstream._before_aot import annotate
        graph = torch.fx.Graph()
        a = graph.placeholder("a")
        graph.call_function(_markers.ENTER, (["_user_stream_label"], ["1"]))
        b = graph.call_function(torch.ops.aten.add.Tensor, (a, 1))
        graph.call_function(_markers.EXIT)
        graph.output(b)
        gm = torch.fx.GraphModule(torch.nn.Module(), graph)
        annotate(gm)
        for node in list(graph.nodes):
            if node.target in _markers.SCOPES:
                graph.erase_node(node)
        with self.assertWarnsRegex(millstream.ScopeWarning, "scopes around node add.*are unclear"):
            compare_carriers(graph, strict=False)
        with self.assertRaises(millstream.ScopeError):
            compare_carriers(graph, strict=True)


class Failures(unittest.TestCase):
    def test_an_operator_that_fails_names_itself_and_the_users_line_and_the_next_run_is_well(self):
        def model(a, b):
            with npu_stream_switch("1"):
                c = a + 1
            with npu_stream_switch("2"):
                return torch.linalg.cholesky(b) + c, b * 2
        with support.quiet(), torch.no_grad():
            compiled, _ = support.compiled_by(model)
            good, bad = torch.eye(3), -torch.eye(3)
            compiled(x(0, 3, 3), good)
            try:
                compiled(x(0, 3, 3), bad)
                self.fail("nothing was raised")
            except RuntimeError:
                text = traceback.format_exc()
            self.assertIn("cholesky", text)
            self.assertRegex(text, r"in operator LinalgCheckErrors \(aten\._linalg_check_errors\.default\) at test_torch_robust.py:\d+")
            self.assertIn("_program.py", text)
            self.assertTrue(support.same(compiled(x(0, 3, 3), good), model(x(0, 3, 3), good)))


class Threads(unittest.TestCase):
    def together(self, work, count=4):
        errors = []

        def guarded(i):
            try:
                work(i)
            except BaseException as error:  # noqa: BLE001
                errors.append(error)
        threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def test_threads_compile_at_once_and_keep_their_scopes_apart(self):
        torch._dynamo.reset()
        labels = {}

        def work(i):
            tag = f"thread{i}"

            def model(a, b):
                with npu_stream_switch(tag):
                    m = torch.mm(a, b) * 3
                npu_wait_tensor(a, m)
                return m, a - b
            backend = millstream.get_backend()
            with torch.no_grad():
                compiled = torch.compile(model, backend=backend, fullgraph=True)
                args = x(i, 4, 4), x(i + 9, 4, 4)
                assert support.same(compiled(*args), model(*args))
            (graph,) = backend.graphs
            labels[i] = {o.attributes.get("_user_stream_label") for o in graph.lowered.operators}
        with support.quiet():
            self.together(work)
        self.assertEqual(labels, {i: {None, f"thread{i}"} for i in range(4)})

    def test_threads_run_one_compiled_model_at_once(self):
        def model(a, b):
            with npu_stream_switch("1"):
                m = torch.mm(a, b)
            return torch.relu(m) + a
        with support.quiet(), torch.no_grad():
            compiled, _ = support.compiled_by(model)
            compiled(x(0, 16, 16), x(1, 16, 16))

            def work(i):
                with torch.no_grad():
                    for k in range(20):
                        args = x(i * 100 + k, 16, 16), x(i, 16, 16)
                        assert support.same(compiled(*args), model(*args))
            self.together(work)


class Modes(unittest.TestCase):
    def test_inference_mode(self):
        def model(a):
            with npu_stream_switch("1"):
                a.add_(1)
            return a * 2
        with support.quiet(), torch.inference_mode():
            compiled, _ = support.compiled_by(model)
            mine, theirs = x(0, 3), x(0, 3)
            got, want = compiled(mine), model(theirs)
            self.assertTrue(support.same((got, mine), (want, theirs)))
            self.assertTrue(got.is_inference())

    def on_another_thread(self, graph, inputs):
        """One run whose calls are all made on a thread that knows nothing of the caller's modes."""
        cells, calls = graph.program.start(list(inputs))
        thread = threading.Thread(target=lambda: [call() for call in calls if call is not None])
        thread.start()
        thread.join()
        return graph.program.finish(cells)

    def test_modes_of_the_caller_hold_on_every_thread(self):
        with support.quiet():
            compiled, backend = support.compiled_by(lambda a: torch.tanh(a) * 2)
            weights = x(0, 3).requires_grad_()
            with torch.no_grad():
                compiled(weights)
                (result,) = self.on_another_thread(backend.graphs[0], [weights])
                self.assertFalse(result.requires_grad)
            with torch.inference_mode():
                (result,) = self.on_another_thread(backend.graphs[0], [x(0, 3)])
                self.assertTrue(result.is_inference())

    def test_parameters_without_gradients_stay_so(self):
        layer = torch.nn.Linear(3, 3)
        with support.quiet(), torch.no_grad():
            compiled, _ = support.compiled_by(layer)
            self.assertFalse(compiled(x(0, 2, 3)).requires_grad)

    def test_autocast(self):
        def model(a, b):
            with npu_stream_switch("1"):
                return torch.mm(a, b)
        with support.quiet(), torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            compiled, _ = support.compiled_by(model)
            args = x(0, 4, 4), x(1, 4, 4)
            got, want = compiled(*args), model(*args)
        self.assertEqual(got.dtype, torch.bfloat16)
        self.assertTrue(torch.equal(got, want))

    def test_running_eagerly_on_request(self):
        (graphs, _) = run(lambda a: a + 1, [x(0, 2)], support.config(debug__run_eagerly=True))
        self.assertEqual(graphs, [])

    def test_options_of_torch_compile(self):
        torch._dynamo.reset()
        with support.quiet() as said, torch.no_grad():
            backend = millstream.get_backend()
            compiled = torch.compile(lambda a: a + 1, backend=backend, options={"streams": 3, "ge_config.oo_level": "O1"})
            compiled(x(0, 2))
            self.assertTrue(any("ge_config.oo_level has no effect here" in t for t in support.texts(said)))
            bad = torch.compile(lambda a: a + 2, backend=backend, options={"nothing": 3})
            with self.assertRaisesRegex(Exception, "has no option nothing"):
                bad(x(0, 2))

    def test_options_of_a_wrong_kind_are_refused_in_words(self):
        config = millstream.CompilerConfig()
        for name, value, text in (("workers", 10**12, r"option workers is not in optional list \[int, 0 to 65535\]"),
                                  ("workers", True, r"\(type: bool\) of option workers"),
                                  ("streams", 0, r"Value 0 .* of option streams is not in optional list \[int, 1 to 65535\]"),
                                  ("target", 5, r"option target is not in optional list \[str\]"),
                                  ("post_grad_custom_pre_pass", 3, r"\[callable\]")):
            with self.assertRaisesRegex(ValueError, text):
                config.set(name, value)
        with self.assertRaisesRegex(TypeError, "name of an option must be str, but got int: 5"):
            config.set(5, 1)
        with self.assertRaisesRegex(TypeError, "must be a millstream.CompilerConfig, but got dict"):
            millstream.get_backend(compiler_config={"workers": 2})

    def test_compiled_modules_can_be_copied_and_pickled(self):
        backend = millstream.get_backend(compiler_config=support.config(workers=2))
        with support.quiet(), torch.no_grad():
            compiled = torch.compile(torch.nn.Linear(3, 3), backend=backend, fullgraph=True)
            want = compiled(x(0, 2, 3))
            for copied in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
                self.assertTrue(support.same(copied(x(0, 2, 3)), want))
        again = pickle.loads(pickle.dumps(backend))
        self.assertEqual((again.config, again.graphs), (backend.config, []))

    def test_explain(self):
        def model(a, b):
            with npu_stream_switch("side"):
                m = torch.mm(a, b)
            return m + a
        with support.quiet(), torch.no_grad():
            compiled, _ = support.compiled_by(model)
            self.assertIn("run the model once", millstream.explain(compiled))
            compiled(x(0, 2, 2), x(1, 2, 2))
            text = millstream.explain(compiled)
            self.assertIn("user_stream_label: side", text)
            self.assertIn("MatMul", text)
            self.assertIn(text, millstream.explain())

    def test_explain_knows_modules_of_torch_and_of_users(self):
        class Own(torch.nn.Module):
            def forward(self, a):
                return torch.relu(a + 7)
        with support.quiet(), torch.no_grad():
            for module in (torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()), Own()):
                backend = millstream.get_backend()
                compiled = torch.compile(module, backend=backend)
                compiled(x(0, 2, 2))
                self.assertIn(backend.graphs[0], millstream.graphs(compiled))
            # In place. (PyTorch compiles nothing when this is called on a class of torch.nn itself.)
            module, backend = Own(), millstream.get_backend()
            module.compile(backend=backend)
            module(x(0, 3, 2))
            self.assertIn(backend.graphs[0], millstream.graphs(module))

    def test_the_package_may_be_imported_anew(self):
        program = ("import sys, gc, torch\n"
                   "for _ in range(3):\n"
                   "    import millstream\n"
                   "    def model(a):\n"
                   "        with millstream.scope.npu_stream_switch('s'):\n"
                   "            return a + 1\n"
                   "    backend = millstream.get_backend()\n"
                   "    torch._dynamo.reset()\n"
                   "    torch.compile(model, backend=backend, fullgraph=True)(torch.ones(2))\n"
                   "    assert backend.graphs[0].lowered.operators[0].attributes['_user_stream_label'] == 's'\n"
                   "    core = sys.modules['millstream._core']\n"
                   "    for name in [n for n in sys.modules if n.startswith('millstream')]: del sys.modules[name]\n"
                   "    sys.modules['millstream._core'] = core\n"
                   "    del millstream, backend, model; gc.collect()\n")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_process_that_ends_with_compiled_functions_is_silent(self):
        program = ("import torch, millstream\n"
                   "f = torch.compile(lambda a: torch.mm(a, a) + 1, backend=millstream.get_backend())\n"
                   "print(f(torch.ones(2, 2)).tolist())\n")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.assertEqual((done.stdout.strip(), done.stderr, done.returncode), ("[[3.0, 3.0], [3.0, 3.0]]", "", 0))

    def test_the_name_in_a_fresh_process(self):
        program = ("import torch\n"
                   "f = torch.compile(lambda a: a + 1, backend='millstream')\n"
                   "print(f(torch.ones(2)).tolist())\n")
        listed = subprocess.run([sys.executable, "-c", "import torch._dynamo as d; print('millstream' in d.list_backends())"],
                                capture_output=True, text=True)
        if listed.stdout.strip() != "True":
            self.skipTest("the package is not installed, so its entry point is not there")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.assertEqual(done.stdout.strip(), "[2.0, 2.0]", done.stderr)


if __name__ == "__main__":
    unittest.main()

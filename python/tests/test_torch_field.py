# SPDX-License-Identifier: Apache-2.0
"""What users of other systems ran into with several streams, asked of this back-end."""

import unittest

import torch_support as support  # skips this file without PyTorch
import torch

import millstream
from millstream import scope
from millstream.scope import npu_stream_switch, npu_wait_tensor
from test_torch_storage import in_every_order


def x(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class ValuesUsedForLittle(unittest.TestCase):
    """An input that is used for its shape only was freed too early."""

    def test_values_read_for_shape_or_order_only_live_as_long_as_needed(self):
        def model(a, b):
            with npu_stream_switch("1"):
                shaped = torch.relu(a)
            with npu_stream_switch("2"):
                full = torch.full_like(shaped, 3.0)
            with npu_stream_switch("3"):
                empty = b.new_zeros(shaped.shape[0], 1).expand_as(shaped)
                npu_wait_tensor(b, shaped)
                return full + empty, b + 1
        for dynamic in (False, True):
            with support.quiet(), torch.no_grad():
                compiled, _ = support.compiled_by(model, dynamic=dynamic)
                args = [x(0, 4, 4), x(1, 4, 4)]
                for seed in range(6):
                    with support.played(seed):
                        self.assertTrue(support.same(compiled(*args), model(*args)))
                for _ in range(20):
                    self.assertTrue(support.same(compiled(*args), model(*args)))


class TracedAndIgnored(unittest.TestCase):
    """Scopes were traced, and the back-end ignored them."""

    def test_each_kind_of_scope_leaves_an_attribute(self):
        kinds = {
            "_user_stream_label": lambda: scope.npu_stream_switch("s"),
            "_super_kernel_scope": lambda: scope.super_kernel("k"),
            "_op_aicore_num": lambda: scope.limit_core_num(1, 2),
            "_op_exec_never_timeout": lambda: scope.op_never_timeout(),
            "torchair_enable_data_dump": lambda: scope.data_dump(),
        }
        for key, enter in kinds.items():
            for training in (False, True):
                with self.subTest(key, training=training), support.quiet():
                    def model(a):
                        with enter():
                            return torch.tanh(a)
                    compiled, backend = support.compiled_by(model)
                    a = x(0, 2, 2).requires_grad_(training)
                    result = compiled(a)
                    if training:
                        result.sum().backward()
                    for graph in backend.graphs:
                        self.assertTrue(any(key in o.attributes for o in graph.lowered.operators), graph.kind)

    def test_every_operator_that_a_decomposition_makes_has_the_scope(self):
        from torch._decomp import get_decompositions
        aten = torch.ops.aten

        def model(a, w):
            with npu_stream_switch("s"):
                b = torch.nn.functional.layer_norm(a, (4,))
                c = torch.softmax(torch.addmm(w, b, w), 1)
            return c.sum()
        torch._dynamo.reset()
        with support.quiet(), torch.no_grad():
            backend = millstream.get_backend(custom_decompositions=get_decompositions(
                [aten.native_layer_norm, aten._softmax, aten.addmm]))
            compiled = torch.compile(model, backend=backend, fullgraph=True, dynamic=False)
            compiled(x(0, 4, 4), x(1, 4, 4))
            (graph,) = backend.graphs
        labels = [o.attributes.get("_user_stream_label") for o in graph.lowered.operators]
        self.assertGreater(len(labels), 6)
        self.assertEqual(set(labels[:-1]), {"s"})
        self.assertEqual(labels[-1], None)


class SharedHandles(unittest.TestCase):
    """A kernel ignored the current stream, through a handle that all streams shared."""

    def test_library_kernels_on_several_streams_at_once_give_what_they_give_alone(self):
        def model(image, kernel, a, b):
            results = []
            for i in range(4):
                with npu_stream_switch(str(i)):
                    y = torch.nn.functional.conv2d(image * (i + 1), kernel)
                    results += [torch.relu(y), torch.mm(a, b) * i, torch.softmax(a, 1) + i]
            return results
        args = [x(0, 1, 3, 24, 24), x(1, 8, 3, 3, 3), x(2, 96, 96), x(3, 96, 96)]
        with support.quiet(), torch.no_grad():
            compiled, _ = support.compiled_by(model, support.config(workers=4))
            want = model(*args)
            for _ in range(30):
                for got, value in zip(compiled(*args), want):
                    torch.testing.assert_close(got, value, rtol=1e-5, atol=1e-5)


class Joining(unittest.TestCase):
    """A side stream was not joined: its work was not over when the run was."""

    def test_a_side_stream_whose_result_nobody_reads_is_over_when_the_call_returns(self):
        def model(buffer, a):
            with npu_stream_switch("side"):
                b = a
                for _ in range(6):
                    b = torch.mm(b, a).tanh()
                buffer.copy_(b)
            return a + 1
        a = x(0, 200, 200)
        mine, theirs = torch.zeros(200, 200), torch.zeros(200, 200)
        with support.quiet(), torch.no_grad():
            compiled, _ = support.compiled_by(model)
            for _ in range(5):
                mine.zero_()
                compiled(mine, a)
                model(theirs, a)
                torch.testing.assert_close(mine, theirs)

    def test_all_streams_reach_the_end_although_the_output_comes_first(self):
        def model(buffers, a):
            for i, buffer in enumerate(buffers):
                with npu_stream_switch(str(i)):
                    buffer.add_(a * i)
            return a
        with support.quiet(), torch.no_grad():
            compiled, _ = support.compiled_by(lambda p, q, r, a: model((p, q, r), a))
            mine, theirs = [torch.ones(8) for _ in range(3)], [torch.ones(8) for _ in range(3)]
            for seed in range(5):
                with support.played(seed):
                    compiled(*mine, torch.ones(8))
                compiled(*mine, torch.ones(8))
                model(theirs, torch.ones(8))
                model(theirs, torch.ones(8))
                self.assertTrue(support.same(mine, theirs))


class LostInFusion(unittest.TestCase):
    """A label was lost when operators were fused or replaced."""

    def test_a_pass_that_replaces_an_operator_inside_a_scope_keeps_the_label(self):
        def change(gm, inputs, config):
            for node in list(gm.graph.nodes):
                if node.target is torch.ops.aten.add.Tensor:
                    mm = node.args[0]
                    with gm.graph.inserting_before(node):
                        fused = gm.graph.call_function(torch.ops.aten.addmm.default, (node.args[1], *mm.args))
                    fused.meta["val"] = node.meta["val"]
                    node.replace_all_uses_with(fused)
                    gm.graph.erase_node(node)
                    gm.graph.erase_node(mm)

        def model(a, b, c):
            with npu_stream_switch("s", 1):
                d = torch.mm(a, b) + c
            return d * 2
        args = [x(i, 4, 4) for i in range(3)]
        with support.quiet(), torch.no_grad():
            compiled, backend = support.compiled_by(model, support.config(post_grad_custom_pre_pass=change))
            torch.testing.assert_close(compiled(*args), model(*args))
            (graph,) = backend.graphs
        self.assertEqual([(o.type, o.attributes.get("_user_stream_label")) for o in graph.lowered.operators],
                         [("Gemm", "s"), ("Mul", None)])

    def test_two_equal_operators_of_two_labels_are_not_merged(self):
        def model(a):
            with npu_stream_switch("1"):
                b = torch.tanh(a)
            with npu_stream_switch("2"):
                c = torch.tanh(a)
            return b, c
        (graph,) = in_every_order(self, model, [x(0, 3, 3)], orders=2)
        self.assertEqual([support.label(graph, n) for n in ("Tanh", "Tanh_1")], ["1", "2"])


class Overlap(unittest.TestCase):
    """Streams were given, and kernels ran one after another."""

    def test_two_labels_run_on_two_streams_of_the_runtime(self):
        def model(a, b):
            with npu_stream_switch("1"):
                c = torch.mm(torch.mm(a, b), b)
            with npu_stream_switch("2"):
                d = torch.mm(torch.mm(b, a), a)
            return c, d
        with support.quiet(), torch.no_grad():
            compiled, backend = support.compiled_by(model, support.config(workers=2))
            args = [x(0, 300, 300), x(1, 300, 300)]
            overlapped = False
            for _ in range(20):
                compiled(*args)
                trace = backend.graphs[0].runner.last_trace()
                self.assertEqual({stream for _, stream, *_ in trace}, {0, 1})
                lanes = [[t for t in trace if t[1] == s] for s in (0, 1)]
                overlapped |= any(a[3] < b[4] and b[3] < a[4] for a in lanes[0] for b in lanes[1])
            self.assertTrue(overlapped, "no two operators ever ran at once")


if __name__ == "__main__":
    unittest.main()

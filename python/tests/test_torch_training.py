# SPDX-License-Identifier: Apache-2.0
"""Training: labels go with operators into the forward and the backward graph."""

import unittest

import torch_support as support  # skips this file without PyTorch
import torch

from millstream import ops
from millstream.scope import limit_core_num, npu_stream_switch, npu_wait_tensor


def x(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def trained(case, model, inputs, **how):
    """Forward and backward, compiled and eager, must agree. Returns (graphs, warnings)."""
    with support.quiet() as said:
        compiled, backend = support.compiled_by(model, **how)
        mine, theirs = support.copies(inputs), support.copies(inputs)
        got, want = support.flat(compiled(*mine)), support.flat(model(*theirs))
        case.assertTrue(support.same(got, want))
        sum(t.sum() for t in got).backward()
        sum(t.sum() for t in want).backward()
        for a, b in zip(mine, theirs):
            torch.testing.assert_close(a.grad, b.grad)
        graphs = backend.graphs
    for graph in graphs:
        case.assertEqual(graph.plan.verify(), [])
    return graphs, support.texts(said)


class Labels(unittest.TestCase):
    def test_backward_operators_have_the_label_of_their_forward_operators(self):
        def model(a, b):
            with npu_stream_switch("1", 2, False):
                m = torch.mm(a, b)
            return torch.tanh(m)
        (forward, backward), said = trained(self, model, [x(0, 4, 4), x(1, 4, 4)])
        self.assertEqual((forward.kind, backward.kind), ("forward", "backward"))
        self.assertEqual(support.label(forward, "MatMul"), "1")
        products = support.operators(backward, "MatMul")
        self.assertEqual([p.attributes.get("_user_stream_label") for p in products], ["1", "1"])
        self.assertEqual(support.named(backward, products[0].name).attributes["_enable_inner_parallel"], False)
        self.assertEqual(said, [])

    def test_markers_of_both_halves_leave_no_trace(self):
        def model(a, b):
            with npu_stream_switch("1"):
                m = torch.mm(a, b)
                mark = ops.record()
            with npu_stream_switch("2"), limit_core_num(1, 2):
                ops.wait([mark])
                npu_wait_tensor(b, m)
                return a * b
        (forward, backward), _ = trained(self, model, [x(0, 4, 4), x(1, 4, 4)])
        for graph in (forward, backward):
            types = {o.type for o in graph.lowered.operators}
            self.assertFalse({t for t in types if t.startswith("Millstream")}, types)
        self.assertEqual(support.controls(forward, "Identity"), ["MatMul"])
        self.assertFalse(support.operators(backward, "Identity"))

    def test_a_value_that_only_the_backward_graph_reads_later_does_not_give_a_wait_effect(self):
        def model(a, b):
            c = a * b
            npu_wait_tensor(b, c)
            return c
        _, said = trained(self, model, [x(0, 4, 4), x(1, 4, 4)])
        self.assertEqual(len(said), 1)
        self.assertIn("npu_wait_tensor", said[0])

    def test_equal_operators_of_two_labels_stay_two(self):
        def model(a, b):
            with npu_stream_switch("1"):
                first = torch.mm(a, b)
            with npu_stream_switch("2"):
                second = torch.mm(a, b)
            return first, second
        (forward, _), _ = trained(self, model, [x(0, 4, 4), x(1, 4, 4)])
        self.assertEqual([support.label(forward, n) for n in ("MatMul", "MatMul_1")], ["1", "2"])

    def test_checkpoints_compute_again_under_the_same_labels(self):
        from torch.utils.checkpoint import checkpoint

        def inner(a, b):
            with npu_stream_switch("1"):
                first = torch.tanh(torch.mm(a, b))
            with npu_stream_switch("2"):
                second = torch.tanh(torch.mm(a, b))
            return first.sin() * second.cos()

        def model(a, b):
            return checkpoint(inner, a, b, use_reentrant=False)
        (forward, backward), _ = trained(self, model, [x(0, 4, 4), x(1, 4, 4)])
        for graph in (forward, backward):
            labels = {o.attributes.get("_user_stream_label") for o in support.operators(graph, "MatMul")}
            self.assertEqual(labels, {"1", "2"}, graph.kind)

    def test_a_scope_around_a_checkpoint_reaches_inside(self):
        from torch.utils.checkpoint import checkpoint

        def model(a, b):
            with npu_stream_switch("outer"):
                return checkpoint(lambda p, q: torch.tanh(torch.mm(p, q)), a, b, use_reentrant=False)
        (forward, backward), said = trained(self, model, [x(0, 4, 4), x(1, 4, 4)])
        for graph in (forward, backward):
            self.assertEqual({o.attributes.get("_user_stream_label") for o in graph.lowered.operators}, {"outer"}, graph.kind)
        self.assertEqual(said, [])

    def test_orders_by_hand_inside_a_checkpoint_are_dropped_with_a_warning(self):
        from torch.utils.checkpoint import checkpoint

        def inner(a, b):
            with npu_stream_switch("1"):
                m = torch.mm(a, b)
            npu_wait_tensor(b, m)
            return torch.tanh(b) * m
        _, said = trained(self, lambda a, b: checkpoint(inner, a, b, use_reentrant=False), [x(0, 4, 4), x(1, 4, 4)])
        self.assertEqual(len(said), 1)
        self.assertRegex(said[0], r"checkpoints drop .*wait_marker.* at test_torch_training.py:\d+")

    def test_draws_inside_checkpoints_are_those_of_the_program_in_both_graphs(self):
        from torch.utils.checkpoint import checkpoint

        def part(a, p):
            return checkpoint(lambda v: torch.nn.functional.dropout(torch.sin(v), p) * v, a, use_reentrant=False)

        def model(a):
            with npu_stream_switch("1"):
                b = part(a, 0.5)
            with npu_stream_switch("2"):
                c = part(a, 0.3)
            with npu_stream_switch("3"):
                return b, c, torch.nn.functional.dropout(a, 0.4)

        def step(call):
            a = x(0, 8, 8)
            torch.manual_seed(3)
            results = call(a)
            return *results, *torch.autograd.grad(sum(r.sum() for r in results), a)
        with support.quiet():
            compiled, _ = support.compiled_by(model)
            want = step(torch.compile(model, backend="aot_eager", fullgraph=True))
            for seed in range(8):
                with support.played(seed):
                    self.assertTrue(support.same(step(compiled), want), seed)

    def test_a_model_with_parameters_learns_as_eager_does(self):
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b, self.c = torch.nn.Linear(6, 8), torch.nn.Linear(6, 8), torch.nn.Linear(8, 2)

            def forward(self, h):
                with npu_stream_switch("1"):
                    left = torch.relu(self.a(h))
                with npu_stream_switch("2"):
                    right = torch.nn.functional.layer_norm(self.b(h), (8,))
                return self.c(left * right)

        torch.manual_seed(0)
        mine = Model()
        theirs = Model()
        theirs.load_state_dict(mine.state_dict())
        with support.quiet():
            compiled, _ = support.compiled_by(mine)
            optimisers = [torch.optim.SGD(m.parameters(), 0.1) for m in (mine, theirs)]
            for step in range(5):
                data = torch.randn(3, 6, generator=torch.Generator().manual_seed(step))
                for model, optimiser in zip((compiled, theirs), optimisers):
                    optimiser.zero_grad()
                    model(data).square().mean().backward()
                    optimiser.step()
        for a, b in zip(mine.parameters(), theirs.parameters()):
            torch.testing.assert_close(a, b)

    def test_writes_in_training(self):
        def model(a, b):
            c = a * 1
            with npu_stream_switch("1"):
                c.add_(b)
            with npu_stream_switch("2"):
                d = torch.mm(c, b)
            return d
        trained(self, model, [x(0, 4, 4), x(1, 4, 4)])

    def test_backward_twice_over_one_graph(self):
        with support.quiet():
            compiled, _ = support.compiled_by(lambda a: (a * a).sum())
            a = x(0, 4, 4)
            for _ in range(2):
                compiled(a).backward()
            torch.testing.assert_close(a.grad, 4 * a.detach())

    def test_the_functional_wait_has_a_gradient(self):
        def model(a, b):
            m = torch.mm(a, b)
            return torch.ops.millstream.wait_tensor(a, m) * m
        trained(self, model, [x(0, 4, 4), x(1, 4, 4)])


if __name__ == "__main__":
    unittest.main()

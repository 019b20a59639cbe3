# SPDX-License-Identifier: Apache-2.0
"""Shapes that are only known when a graph runs: one stream, unless labels or the environment ask for more."""

import os
import unittest
from unittest import mock

import torch_support as support  # skips this file without PyTorch
import torch

from millstream.scope import npu_stream_switch, npu_wait_tensor


def x(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def over_shapes(case, model, shapes, *, dynamic=True, grad=False):
    """One compilation must serve all shapes and agree with eager. Returns (graphs, warnings)."""
    with support.quiet() as said, torch.set_grad_enabled(grad):
        compiled, backend = support.compiled_by(model, dynamic=dynamic)
        for i, shape in enumerate(shapes):
            mine = [x(*shape, seed=s).requires_grad_(grad) for s in (0, 1)]
            theirs = support.copies(mine)
            with support.played(i):
                got = compiled(*mine)
                want = model(*theirs)
                case.assertTrue(support.same(got, want), shape)
                if grad:
                    sum(t.sum() for t in support.flat(got)).backward()
                    sum(t.sum() for t in support.flat(want)).backward()
            if grad:
                for a, b in zip(mine, theirs):
                    torch.testing.assert_close(a.grad, b.grad)
    for graph in backend.graphs:
        case.assertEqual(graph.plan.verify(), [])
    return backend.graphs, support.texts(said)


def wide(a, b):
    return torch.mm(a, b) + 1, torch.mm(b, a) * 2, torch.tanh(a), torch.relu(b)


SQUARES = [(4, 4), (6, 6), (9, 9)]


class Dynamic(unittest.TestCase):
    def test_one_stream_by_default(self):
        (graph,), _ = over_shapes(self, wide, SQUARES)
        self.assertEqual((graph.plan.streams, graph.warnings), (1, []))

    def test_labels_outrank_the_default(self):
        def model(a, b):
            with npu_stream_switch("1"):
                m = torch.mm(a, b)
            with npu_stream_switch("2"):
                n = torch.mm(b, a)
            return m + n
        (graph,), said = over_shapes(self, model, SQUARES)
        self.assertEqual(graph.plan.streams, 3)
        self.assertEqual([support.label(graph, n) for n in ("MatMul", "MatMul_1", "Add")], ["1", "2", None])
        self.assertEqual(said, [])

    def test_the_environment_asks_for_more_streams_and_labels_still_count(self):
        def labelled(a, b):
            with npu_stream_switch("1"):
                m = torch.mm(a, b)
            return m, torch.mm(b, a)
        with mock.patch.dict(os.environ, {"ENABLE_DYNAMIC_SHAPE_MULTI_STREAM": "1"}):
            (without,), _ = over_shapes(self, wide, SQUARES)
            (graph,), _ = over_shapes(self, labelled, SQUARES)
        # One engine has one stream; test_torch_collectives has programs with two.
        self.assertEqual(without.plan.streams, 1)
        self.assertIn("dynamic-engine", without.plan.explain())
        self.assertEqual(support.label(graph, "MatMul"), "1")
        self.assertEqual(graph.plan.streams, 2)
        self.assertIn("dynamic-label", graph.plan.explain())

    def test_numbers_from_shapes_need_no_stream(self):
        def model(a, b):
            with npu_stream_switch("1"):
                c = a.view(-1, a.shape[0]) + a.shape[1]
            return c[: a.shape[0] // 2], b.reshape(b.shape[0] * b.shape[1]), a.new_zeros(a.shape[0] + 1)
        (graph,), _ = over_shapes(self, model, SQUARES)
        self.assertFalse([o.type for o in graph.lowered.operators if o.type.startswith("Sym")])

    def test_numbers_as_results(self):
        def model(a, b):
            return a.shape[0] * 2, torch.cat([a, b]).shape[0], (a + b).sum()
        with support.quiet(), torch.no_grad():
            compiled, _ = support.compiled_by(model, dynamic=True)
            for n in (3, 5):
                got = compiled(x(n, n), x(n, n))
                self.assertEqual(got[:2], (2 * n, 2 * n))

    def test_training(self):
        def model(a, b):
            with npu_stream_switch("1"):
                m = torch.mm(a, b)
            c = torch.cat([m, b])
            return c * c.shape[0]
        over_shapes(self, model, SQUARES, grad=True)

    def test_shapes_that_become_dynamic_on_the_second_call(self):
        def model(a, b):
            with npu_stream_switch("1"):
                return torch.mm(a, b.t()) * a.shape[0]
        graphs, _ = over_shapes(self, model, [(4, 3), (5, 3), (6, 3)], dynamic=None)
        self.assertEqual(len(graphs), 2)

    def test_waits_and_writes(self):
        def model(a, b):
            m = torch.mm(a, b)
            with npu_stream_switch("1"):
                npu_wait_tensor(a, m)
                n = a * 2
            b.add_(1)
            return m, n
        over_shapes(self, model, SQUARES)

    def test_only_the_scope_around_numbers_is_reported(self):
        def model(a, b):
            with npu_stream_switch("numbers"):
                n = a.shape[0] * 2
            return a.sum() + n
        _, said = over_shapes(self, model, SQUARES)
        self.assertEqual(len(said), 1)
        self.assertIn("'numbers'", said[0])

    def test_numbers_that_are_read_from_tensors(self):
        def model(a, b):
            with npu_stream_switch("1"):
                n = a.abs().sum().int().item()
            return b * n
        with torch._dynamo.config.patch(capture_scalar_outputs=True):
            over_shapes(self, model, SQUARES)

    def test_sizes_that_depend_on_data(self):
        def model(a, b):
            with npu_stream_switch("1"):
                found = torch.nonzero(a > 0)
            return found * 2, b + 1
        with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
            over_shapes(self, model, SQUARES)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""The acceptance programs, and the call patterns of models in the field."""

import contextlib
import unittest

import torch_support as support  # skips this file without PyTorch
import torch

from millstream import ops
from millstream.scope import limit_core_num, npu_stream_switch, npu_wait_tensor, super_kernel
from test_torch_storage import in_every_order
from torch_support import controls, label, named, operators, overlap, run


def half(*seeds, size=1000):
    return [torch.randn(size, size, generator=torch.Generator().manual_seed(s)).half() for s in seeds]


def x(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Documented(unittest.TestCase):
    def test_the_model_with_four_inputs(self):
        def model(in1, in2, in3, in4):
            add = torch.add(in1, in2)
            with npu_stream_switch("1"):
                npu_wait_tensor(in4, add)
                mm = torch.mm(in3, in4)
            mm1 = torch.mm(in3, in4)
            with npu_stream_switch("2"):
                npu_wait_tensor(in4, mm)
                return add, mm, mm1, torch.add(in3, in4)
        (graph,), said = run(model, half(1, 2, 3, 4))
        self.assertEqual([label(graph, n) for n in ("Add", "MatMul", "MatMul_1", "Add_1")], [None, "1", None, "2"])
        self.assertEqual((controls(graph, "Identity"), controls(graph, "Identity_1")), (["Add"], ["MatMul"]))
        self.assertEqual(graph.plan.streams, 3)
        self.assertTrue(overlap(graph, "MatMul", "MatMul_1"), graph.plan.simulate())
        self.assertFalse(overlap(graph, "MatMul", "Add_1"))
        self.assertEqual(said, [])

    def test_record_and_wait(self):
        def model(a, b):
            with npu_stream_switch("1"):
                mm = torch.mm(a, a)
                absolute = torch.abs(mm)
                mark = ops.record()
            add = absolute + 1
            ops.wait([mark])
            return add, b - mm
        (graph,), _ = run(model, [x(0, 8, 8), x(1, 8, 8)])
        self.assertEqual(controls(graph, "Sub"), ["Abs"])

    def test_scopes_and_orders_from_a_pass_of_the_user(self):
        millstream = torch.ops.millstream

        def change(gm, inputs, config):
            at = {n.target: n for n in gm.graph.nodes if n.op == "call_function"}
            aten = torch.ops.aten
            with gm.graph.inserting_before(at[aten.mm.default]):
                gm.graph.call_function(millstream.scope_enter.default, (["_user_stream_label", "_user_stream_priority"], ["1", "0"]))
            with gm.graph.inserting_after(at[aten.abs.default]):
                mark = gm.graph.call_function(millstream.record.default)
            with gm.graph.inserting_after(mark):
                gm.graph.call_function(millstream.scope_exit.default)
            with gm.graph.inserting_before(at[aten.sub.Tensor]):
                gm.graph.call_function(millstream.wait.default, ([mark],))

        def model(a, b):
            absolute = torch.abs(torch.mm(a, a))
            add = absolute + 1
            return add, b - a
        made = support.config(post_grad_custom_pre_pass=change)
        (graph,), _ = run(model, [x(0, 8, 8), x(1, 8, 8)], made)
        self.assertEqual([label(graph, n) for n in ("MatMul", "Abs", "Add", "Sub")], ["1", "1", None, None])
        self.assertEqual(controls(graph, "Sub"), ["Abs"])

    def test_scopes_from_a_pass_count_in_training_too(self):
        def change(gm, inputs, config):
            mm = next((n for n in gm.graph.nodes if n.target is torch.ops.aten.mm.default), None)
            if mm is None or "tangents_1" in [n.name for n in gm.graph.nodes]:
                return
            with gm.graph.inserting_before(mm):
                gm.graph.call_function(torch.ops.millstream.scope_enter.default, (["_user_stream_label"], ["passed"]))
            with gm.graph.inserting_after(mm):
                gm.graph.call_function(torch.ops.millstream.scope_exit.default)
        w = x(0, 4, 4).requires_grad_()
        with support.quiet():
            compiled, backend = support.compiled_by(lambda a: torch.mm(a, a), support.config(post_grad_custom_pre_pass=change))
            compiled(w).sum().backward()
            self.assertEqual(label(backend.graphs[0], "MatMul"), "passed")

    def test_the_allocation_summary_has_labels_first_and_the_default_stream_last(self):
        def model(in1, in2, in3):
            add = in1 + in2
            with npu_stream_switch("1"):
                s1 = torch.mm(add, in3)
            mm = torch.mm(in1, in3)
            with npu_stream_switch("2"):
                return s1, mm, in3 + s1
        (graph,), _ = run(model, half(1, 2, 3))
        self.assertTrue(overlap(graph, "MatMul", "MatMul_1"), graph.plan.simulate())
        lines = [line for line in graph.plan.allocation_summary().splitlines() if "logic_stream_id" in line]
        self.assertEqual(len(lines), 3)
        for i, (line, text) in enumerate(zip(lines, ("1", "2", ""))):
            self.assertIn(f"logic_stream_id: {i}, user_stream_label: {text},", line)
            self.assertIn("physical_model_stream_num: 1", line)

    def test_nested_kinds_of_scopes(self):
        def model(a, b):
            with super_kernel("sk", "stream-fusion=1"):
                m = torch.mm(a, b)
                with npu_stream_switch("1", 1):
                    n = torch.mm(m, b)
                    with limit_core_num(12, 24):
                        return n + a, m
        (graph,), _ = run(model, [x(0, 4, 4), x(1, 4, 4)])
        add = named(graph, "Add").attributes
        self.assertEqual((add["_super_kernel_scope"], add["_user_stream_label"], add["_op_aicore_num"]), ("sk", "1", "12"))
        self.assertNotIn("_op_aicore_num", named(graph, "MatMul_1").attributes)

    def test_a_shared_expert_overlaps_with_the_routed_ones(self):
        def model(hidden, gate, up, down, routed1, routed2):
            with npu_stream_switch("moe_secondary"):
                shared = torch.mm(hidden, up)
            weights = torch.softmax(torch.mm(hidden, gate), 1)
            expanded = torch.mm(hidden, routed1)
            with npu_stream_switch("moe_secondary"):
                npu_wait_tensor(shared, expanded)
                act = torch.relu(shared)
            combined = torch.mm(expanded, routed2)
            with npu_stream_switch("moe_secondary"):
                npu_wait_tensor(act, combined)
                out = torch.mm(act, down)
            return out + combined * weights.sum(1, keepdim=True)
        n = 256
        args = [x(i, n, n) for i in range(6)]
        (graph,), said = run(model, args)
        self.assertEqual(said, [])
        in_every_order(self, model, args, orders=3)
        self.assertEqual(graph.plan.streams, 2)
        shared, gate = [o.name for o in operators(graph, "MatMul")][:2]
        self.assertTrue(overlap(graph, shared, gate), graph.plan.simulate())

    def test_latent_attention_opens_one_label_twice(self):
        class Attention(torch.nn.Module):
            tag = "mla_secondary"

            def exec_kv(self, h, w):
                return torch.relu(torch.mm(h, w)), torch.mm(h, w) * 2

            def forward(self, hidden, ckq, w, cos, sin):
                with npu_stream_switch(self.tag, 0):
                    npu_wait_tensor(hidden, ckq)
                    k, v = self.exec_kv(hidden, w)
                q = torch.mm(ckq, w)
                npu_wait_tensor(q, cos)
                npu_wait_tensor(q, sin)
                npu_wait_tensor(q, k)
                q_pe = q * cos + q * sin
                with npu_stream_switch(self.tag, 0):
                    npu_wait_tensor(q_pe, k)
                    rope = q_pe - k
                return rope @ v, q

        args = [x(i, 64, 64) for i in range(5)]
        (graph,), said = run(Attention(), args)
        in_every_order(self, Attention(), args, orders=3)
        self.assertTrue(overlap(graph, "MatMul", "MatMul_2"), graph.plan.simulate())
        self.assertEqual(said, [])
        labels = {o.attributes.get("_user_stream_label") for o in graph.lowered.operators}
        self.assertEqual(labels, {None, "mla_secondary"})
        self.assertEqual(graph.plan.streams, 2)

    def test_branches_with_limits_of_cores_join_without_a_wait_of_the_user(self):
        def model(a, b):
            with npu_stream_switch("1"), limit_core_num(12, 24):
                b1 = torch.mm(a, b)
                b2 = torch.relu(b1)
            with limit_core_num(12, 24):
                c1 = torch.mm(b, a)
                npu_wait_tensor(c1, b2)
                c2 = torch.tanh(c1)
            return torch.mm(b2, c2)
        args = [x(0, 8, 8), x(1, 8, 8)]
        (graph,), _ = run(model, args)
        names = [o.name for o in graph.lowered.operators]
        waits = {(names[a], names[b]) for a, b in graph.plan.waits}
        self.assertTrue(any(b == "Relu" for _, b in waits), waits)
        self.assertTrue(overlap(graph, "MatMul", "MatMul_1"), graph.plan.simulate())
        in_every_order(self, model, args, orders=4)

    def test_one_model_with_and_without_streams_in_turn(self):
        class Model(torch.nn.Module):
            def forward(self, a, b, multi):
                with npu_stream_switch("1") if multi else contextlib.nullcontext():
                    m = torch.mm(a, b)
                return m + a
        with support.quiet(), torch.no_grad():
            compiled, backend = support.compiled_by(Model())
            a, b = x(0, 4, 4), x(1, 4, 4)
            counts = []
            for multi in (True, False, True, False, True):
                self.assertTrue(torch.equal(compiled(a, b, multi), torch.mm(a, b) + a))
                counts.append(len(backend.graphs))
        self.assertEqual(counts, [1, 2, 2, 2, 2])
        self.assertEqual([g.plan.streams for g in backend.graphs], [2, 1])

    def test_graphs_go_when_pytorch_forgets_them(self):
        import gc
        with support.quiet(), torch.no_grad():
            compiled, backend = support.compiled_by(lambda a: a + 1)
            compiled(x(0, 4, 4))
            self.assertEqual(len(backend.graphs), 1)
            torch._dynamo.reset()
            del compiled
            gc.collect()
            self.assertEqual(backend.graphs, [])

    def test_a_ring_of_waits_over_a_loop(self):
        def model(a, b):
            ring = []
            for i in range(6):
                with npu_stream_switch(str(i % 2)):
                    if len(ring) >= 2:
                        npu_wait_tensor(a, ring[(i - 2) % 2])
                    ring.append(torch.mm(a, b))
                    if len(ring) > 2:
                        ring[i % 2] = ring.pop()
            return ring
        args = [x(0, 8, 8), x(1, 8, 8)]
        (graph,), said = run(model, args)
        self.assertEqual(len(operators(graph, "Identity")), 4)
        self.assertTrue(overlap(graph, "MatMul", "MatMul_1"), graph.plan.simulate())
        self.assertFalse(overlap(graph, "MatMul", "MatMul_2"))
        self.assertEqual(said, [])
        in_every_order(self, model, args, orders=3)


class GraphMode(unittest.TestCase):
    """Programs written for captured graphs, where nothing but events orders streams: here data is ordered too."""

    def made(self):
        return support.config(mode="reduce-overhead")

    def test_a_stream_inside_a_stream(self):
        def model(a, b):
            add = a + b
            with npu_stream_switch("1"):
                m = torch.mm(add, b)
                with npu_stream_switch("2"):
                    n = torch.mm(m, b)
            return add, m, n
        (graph,), said = run(model, [x(0, 4, 4), x(1, 4, 4)], self.made())
        self.assertEqual([label(graph, n) for n in ("Add", "MatMul", "MatMul_1")], [None, "1", "2"])
        self.assertEqual(sum("runs as graph mode" in text for text in said), 1)

    def test_user_events_among_scopes(self):
        ops.release_tagged_events()
        first, second = ops.npu_create_tagged_event("first"), ops.npu_create_tagged_event("second")

        def model(a, b):
            add = a + b
            ops.npu_tagged_event_record(first)
            with npu_stream_switch("1"):
                ops.npu_tagged_event_wait(first)
                m = torch.mm(a, b)
                ops.npu_tagged_event_record(second)
                with npu_stream_switch("2"):
                    ops.npu_tagged_event_wait(second)
                    n = torch.mm(b, a)
            return add, m, n
        (graph,), _ = run(model, [x(0, 4, 4), x(1, 4, 4)], self.made())
        self.assertEqual((controls(graph, "MatMul"), controls(graph, "MatMul_1")), (["Add"], ["MatMul"]))

    def test_other_kinds_of_scopes_add_no_order(self):
        def model(a, b):
            with super_kernel("sk"), limit_core_num(4, 5):
                with npu_stream_switch("1"):
                    with limit_core_num(2, 3):
                        m = torch.mm(a, b)
                return a + b, m
        (graph,), _ = run(model, [x(0, 4, 4), x(1, 4, 4)], self.made())
        self.assertEqual((controls(graph, "MatMul"), controls(graph, "Add")), ([], []))
        self.assertEqual((graph.plan.streams, list(graph.plan.waits)), (2, []))

    def test_extending_a_lifetime_changes_nothing(self):
        def model(a, b):
            with npu_stream_switch("1"):
                m = torch.mm(a, b)
                ops.npu_record_tagged_stream(m, "default")
            return m + 1
        run(model, [x(0, 4, 4), x(1, 4, 4)], self.made())

    def test_a_write_in_another_stream_than_the_readers(self):
        def model(a, b):
            y = a.clone()
            z = y + b
            with npu_stream_switch("1"):
                y.mul_(2)
            return y, z
        in_every_order(self, model, [x(0, 4, 4), x(1, 4, 4)], self.made(), orders=4)

    def test_waiting_for_several_tensors_and_records_over_three_labels(self):
        def model(a, b):
            with npu_stream_switch("1"):
                mm = torch.mm(a, b)
                first = torch.abs(mm)
                mark = ops.record()
            with npu_stream_switch("2"):
                second = torch.abs(a)
                ops.wait([mm, first])
                third = a - b
            with npu_stream_switch("3"):
                ops.wait([second, mark])
                return first, second, third, a * b
        (graph,), _ = run(model, [x(0, 4, 4), x(1, 4, 4)], self.made())
        self.assertEqual(sorted(controls(graph, "Sub")), ["Abs", "MatMul"])
        self.assertEqual(sorted(controls(graph, "Mul")), ["Abs", "Abs_1"])

    def test_limits_streams_and_fusion_nest_either_way(self):
        def outside(a, b):
            with limit_core_num(1, 2):
                with npu_stream_switch("1"):
                    m = torch.mm(a, b)
                    with limit_core_num(3, 4):
                        n = a + b
                p = a - b
            return m, n, p

        def inside(a, b):
            with npu_stream_switch("1"), limit_core_num(1, 2):
                m = torch.mm(a, b)
                with npu_stream_switch("2"):
                    n = a + b
                    with limit_core_num(3, 4):
                        p = a - b
            return m, n, p

        def fused(a, b):
            with super_kernel("k"), limit_core_num(1, 2):
                m = torch.mm(a, b)
                with npu_stream_switch("1"), super_kernel(None):
                    n = a + b
            with limit_core_num(3, 4):
                return m, n, a - b
        for model, want in ((outside, [("1", "1", None), ("1", "3", None), (None, "1", None)]),
                            (inside, [("1", "1", None), ("2", "1", None), ("2", "3", None)]),
                            (fused, [(None, "1", "k"), ("1", "1", None), (None, "3", None)])):
            (graph,), _ = run(model, [x(0, 4, 4), x(1, 4, 4)], self.made())
            keys = ("_user_stream_label", "_op_aicore_num", "_super_kernel_scope")
            self.assertEqual([tuple(o.attributes.get(key) for key in keys) for o in graph.lowered.operators], want, model.__name__)

    def test_waiting_for_a_tensor_works_here_too(self):
        def model(a, b):
            add = a + b
            with npu_stream_switch("1"):
                npu_wait_tensor(a, add)
                return add, torch.mm(a, b)
        (graph,), _ = run(model, [x(0, 4, 4), x(1, 4, 4)], self.made())
        self.assertEqual(controls(graph, "Identity"), ["Add"])

    def test_only_tensors_or_only_a_record_to_wait_for(self):
        def tensors(a, b):
            with npu_stream_switch("1"):
                mm = torch.mm(a, b)
                absolute = torch.abs(mm)
            with npu_stream_switch("2"):
                ops.wait([mm, absolute])
                return absolute, a - b

        def record(a, b):
            with npu_stream_switch("1"):
                absolute = torch.abs(torch.mm(a, b))
                mark = ops.record()
            with npu_stream_switch("2"):
                ops.wait([mark])
                return absolute, a - b
        for model, want in ((tensors, ["Abs", "MatMul"]), (record, ["Abs"])):
            (graph,), _ = run(model, [x(0, 4, 4), x(1, 4, 4)], self.made())
            self.assertEqual(sorted(controls(graph, "Sub")), want, model.__name__)
            in_every_order(self, model, [x(0, 4, 4), x(1, 4, 4)], self.made(), orders=3)

    def test_a_pass_at_the_end_puts_scopes_around_runs_of_operators(self):
        aten = torch.ops.aten

        def change(gm, inputs, config):
            for first, last, tag in ((aten.sqrt.default, aten.add.Tensor, "1"), (aten._softmax.default, aten.split.Tensor, "2")):
                at = {n.target: n for n in gm.graph.nodes}
                with gm.graph.inserting_before(at[first]):
                    gm.graph.call_function(torch.ops.millstream.scope_enter.default, (["_user_stream_label"], [tag]))
                with gm.graph.inserting_after(at[last]):
                    gm.graph.call_function(torch.ops.millstream.scope_exit.default)

        def model(a, b):
            root = torch.sqrt(torch.abs(a)) + b
            left, right = torch.split(torch.softmax(root, 1), 2)
            return left * right - 1
        args = [x(0, 4, 4), x(1, 4, 4)]
        made = support.config(mode="reduce-overhead", post_grad_custom_post_pass=change)
        (graph,), said = run(model, args, made)
        labels = {o.type: o.attributes.get("_user_stream_label") for o in graph.lowered.operators}
        self.assertEqual(labels, {"Abs": None, "Sqrt": "1", "Add": "1", "Softmax": "2", "Split": "2", "Mul": None, "Sub": None})
        self.assertEqual(len([text for text in said if "runs as graph mode" not in text]), 0, said)
        in_every_order(self, model, args, made, orders=3)


def switch(tag, priority=0, *, enabled=True):
    return npu_stream_switch(tag, priority) if enabled else contextlib.nullcontext()


def wait(value, dependency, *, enabled=True):
    return npu_wait_tensor(value, dependency) if enabled else value


def attention(enabled):
    """One label opened twice; waits on the main stream in between, their results unused."""
    def forward(hidden, ckq, w, cos, sin):
        with switch("mla_secondary", 0, enabled=enabled):
            wait(hidden, ckq, enabled=enabled)
            k, v = torch.relu(torch.mm(hidden, w)), torch.mm(hidden, w) * 2
        q = torch.mm(ckq, w)
        for other in (cos, sin, k):
            wait(q, other, enabled=enabled)
        q_pe = q * cos + q * sin
        with switch("mla_secondary", 0, enabled=enabled):
            wait(q_pe, k, enabled=enabled)
            rope = q_pe - k
        return rope @ v, q
    return forward


def experts(enabled):
    """Two waits inside one block; the second block waits for what the first made."""
    def forward(hidden, gate, up, down, routed):
        weights = torch.softmax(torch.mm(hidden, gate), 1)
        expand = torch.mm(hidden, routed)
        with switch("moe_secondary", 0, enabled=enabled):
            wait(hidden, weights, enabled=enabled)
            gate_up = torch.mm(hidden, up)
            wait(gate_up, expand, enabled=enabled)
            act = torch.relu(gate_up)
        down_out = torch.mm(expand, routed)
        with switch("moe_secondary", 0, enabled=enabled):
            wait(act, down_out, enabled=enabled)
            shared = torch.mm(act, down)
        return shared + down_out * weights.sum(1, keepdim=True)
    return forward


def layer(enabled):
    """Labels that are numbers, a result used, a tensor that waits for itself, a buffer written in place, kinds nested."""
    def forward(hidden, w, buffer, step, _):
        with switch("11", enabled=enabled):
            wait(hidden, w, enabled=enabled)
            gate = torch.mm(hidden, w)
            wait(gate, hidden, enabled=enabled)
            act = torch.relu(gate)
        hidden = wait(hidden, act, enabled=enabled)
        hidden = wait(hidden, hidden, enabled=enabled)
        main = torch.mm(hidden, w)
        with switch("22", enabled=enabled):
            buffer[1:2] = (buffer[1:2] + step[0, 0]) % 3
        with super_kernel("layer", "stream-fusion=1"):
            with switch("21", enabled=enabled), limit_core_num(4, 8):
                side = act * 2
        return main + side, buffer.sum()
    return forward


def events(enabled):
    """An event of the main stream, and one to join."""
    fork, join = ops.npu_create_tagged_event("fork of a pattern"), ops.npu_create_tagged_event("join of a pattern")

    def forward(a, b, *_):
        first = torch.mm(a, b)
        ops.npu_tagged_event_record(fork)
        main = first - b
        with switch("aux", enabled=enabled):
            ops.npu_tagged_event_wait(fork)
            side = torch.tanh(a)
            ops.npu_tagged_event_record(join)
        ops.npu_tagged_event_wait(join)
        return main * 2, side
    return forward


class Clients(unittest.TestCase):
    """Wrappers as models use them: enabled or not is a constant of Python."""

    def setUp(self):
        ops.release_tagged_events()

    def test_wrappers(self):
        args = [x(i, 4, 4) for i in range(5)]
        for pattern, labels in ((attention, {"mla_secondary"}), (experts, {"moe_secondary"}), (layer, {"11", "21", "22"}),
                                (events, {"aux"})):
            for enabled in (True, False):
                for fullgraph in (True, False):
                    with self.subTest(pattern.__name__, enabled=enabled, fullgraph=fullgraph):
                        ops.release_tagged_events()
                        (graph,), said = run(pattern(enabled), args, fullgraph=fullgraph)
                        found = {o.attributes.get("_user_stream_label") for o in graph.lowered.operators} - {None}
                        self.assertEqual(found, labels if enabled else set())
                        self.assertEqual(said, [])
            ops.release_tagged_events()
            in_every_order(self, pattern(True), args, orders=4)

    def test_an_event_of_the_main_stream_and_one_to_join(self):
        ops.release_tagged_events()
        fork, join = ops.npu_create_tagged_event("fork"), ops.npu_create_tagged_event("join")

        def model(a, b):
            first = torch.mm(a, b)
            ops.npu_tagged_event_record(fork)
            main = first - b
            with switch("aux"):
                ops.npu_tagged_event_wait(fork)
                side = torch.tanh(a)
                ops.npu_tagged_event_record(join)
            ops.npu_tagged_event_wait(join)
            return main * 2, side
        (graph,), said = run(model, [x(0, 4, 4), x(1, 4, 4)])
        self.assertEqual((controls(graph, "Tanh"), controls(graph, "Mul")), (["MatMul"], ["Tanh"]))
        self.assertEqual(said, [])

    def test_a_stream_object_in_the_place_of_a_label_is_refused_by_name(self):
        with self.assertRaisesRegex(TypeError, "argument 'stream_tag' must be str"):
            npu_stream_switch(object(), enable_inner_parallel=True)

    def test_the_same_on_a_machine_of_continuous_integration(self):
        import os
        import subprocess
        import sys
        env = dict(os.environ, CI="true")
        program = ("import unittest, test_torch_acceptance as t\n"
                   "s = unittest.TestSuite([t.Clients('test_wrappers'), t.Documented('test_the_model_with_four_inputs')])\n"
                   "raise SystemExit(not unittest.TextTestRunner().run(s).wasSuccessful())\n")
        done = subprocess.run([sys.executable, "-c", os.environ.get("MILLSTREAM_TEST_PRELUDE", "") + program], env=env,
                              cwd=os.path.dirname(os.path.abspath(__file__)), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_several_layers_share_one_side_stream(self):
        class Layer(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

            def forward(self, h):
                with switch("moe_secondary"):
                    side = self.a(h)
                main = self.b(h)
                with switch("moe_secondary"):
                    wait(side, main)
                    side = torch.relu(side)
                return main + side
        model = torch.nn.Sequential(*[Layer() for _ in range(4)]).eval()
        (graph,), said = run(model, [x(0, 3, 8)])
        self.assertEqual(graph.plan.streams, 2)
        self.assertEqual(said, [])


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Orders through memory, random numbers and the world: every schedule that a plan allows must give eager's result."""

import unittest

import torch_support as support  # skips this file without PyTorch
import torch

from millstream.scope import npu_stream_switch, npu_wait_tensor
from torch_support import controls, named, run


def in_every_order(case, model, inputs, made=None, orders=12):
    """Runs a model under many schedules; results and inputs must be eager's each time. Returns the graphs."""
    with support.quiet(), torch.no_grad():
        compiled, backend = support.compiled_by(model, made)
        theirs = support.copies(inputs)
        want = model(*theirs)
        for seed in range(orders):
            mine = support.copies(inputs)
            with support.played(seed):
                got = compiled(*mine)
            case.assertTrue(support.same((got, mine), (want, theirs)), f"order {seed}")
    for graph in backend.graphs:
        case.assertEqual(graph.plan.verify(), [])
    return backend.graphs


def x(seed=0, *shape):
    return torch.randn(*(shape or (4, 4)), generator=torch.Generator().manual_seed(seed))


class Inputs(unittest.TestCase):
    def test_a_write_to_an_input_comes_after_its_readers_on_other_streams(self):
        def model(a, b):
            with npu_stream_switch("1"):
                m = torch.mm(a, b)
            with npu_stream_switch("2"):
                n = a * 3
            a.add_(1)
            return m, n
        (graph,) = in_every_order(self, model, [x(0), x(1)])
        self.assertEqual(sorted(controls(graph, "Assign")), ["Add", "MatMul", "Mul"])

    def test_two_writes_to_one_input_keep_their_order(self):
        def model(a, b):
            with npu_stream_switch("1"):
                a.add_(b)
            with npu_stream_switch("2"):
                a.mul_(2)
            return a + b
        in_every_order(self, model, [x(0), x(1)])

    def test_a_ring_buffer_is_written_in_place_inside_a_scope(self):
        def model(buffer, value):
            with npu_stream_switch("1"):
                for i in range(3):
                    buffer[i:i + 1] = (buffer[i:i + 1] + value[:1]) % 5
            return buffer * 2
        in_every_order(self, model, [x(0), x(1)])

    def test_a_write_through_a_view_of_an_input(self):
        def model(a, b):
            with npu_stream_switch("1"):
                a.t()[1].mul_(3)
            with npu_stream_switch("2"):
                c = torch.mm(a, b)
            a.view(16)[::2].zero_()
            return c, a.sum()
        in_every_order(self, model, [x(0), x(1)])

    def test_inputs_that_share_memory(self):
        base = x(0, 8, 4)

        def model(a, b):
            with npu_stream_switch("1"):
                a.add_(1)
            with npu_stream_switch("2"):
                return b * 2
        with support.quiet(), torch.no_grad():
            compiled, _ = support.compiled_by(model)
            for seed in range(6):
                mine, theirs = base.clone(), base.clone()
                with support.played(seed):
                    got = compiled(mine[:6], mine[2:])
                want = model(theirs[:6], theirs[2:])
                self.assertTrue(torch.equal(got, want) and torch.equal(mine, theirs))

    def test_a_buffer_of_a_module_counts_its_calls(self):
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("calls", torch.zeros(1))

            def forward(self, a):
                with npu_stream_switch("1"):
                    self.calls.add_(1)
                with npu_stream_switch("2"):
                    return a * self.calls
        model = Model()
        with support.quiet(), torch.no_grad():
            compiled, _ = support.compiled_by(model)
            for i in range(1, 4):
                with support.played(i):
                    self.assertTrue(torch.equal(compiled(torch.ones(2)), torch.full((2,), float(i))))

    def test_running_statistics_of_a_normalisation(self):
        def fresh():
            torch.manual_seed(0)
            return torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 4))
        mine, theirs = fresh(), fresh()
        with support.quiet(), torch.no_grad():
            compiled, _ = support.compiled_by(mine)
            for seed in range(3):
                with support.played(seed):
                    got = compiled(x(seed))
                torch.testing.assert_close(got, theirs(x(seed)))
        for a, b in zip(mine.buffers(), theirs.buffers()):
            torch.testing.assert_close(a, b)


class InPlaceByPasses(unittest.TestCase):
    """Passes of users may add operators that write: the graph is functional before them only."""

    def made(self, change):
        return support.config(post_grad_custom_post_pass=lambda gm, inputs, config: change(gm))

    def test_a_functional_operator_turned_into_one_that_writes(self):
        def change(gm):
            for node in gm.graph.nodes:
                if node.target is torch.ops.aten.mul.Tensor:
                    node.target = torch.ops.aten.mul_.Tensor

        def model(a, b):
            c = torch.mm(a, b)
            with npu_stream_switch("1"):
                r = c + 1
            with npu_stream_switch("2"):
                v = c.view(16)
                w = v - 3
            with npu_stream_switch("3"):
                c = c * 2
            return r, w, c
        (graph,) = in_every_order(self, model, [x(0), x(1)], self.made(change))
        self.assertEqual(sorted(n for n in controls(graph, "Mul") if n != "MatMul"), ["Add", "Sub"])

    def test_readers_behind_the_write_wait_for_it_through_any_view(self):
        def change(gm):
            mm = next(n for n in gm.graph.nodes if n.target is torch.ops.aten.mm.default)
            view = next(n for n in gm.graph.nodes if n.target is torch.ops.aten.view.default)
            with gm.graph.inserting_after(view):
                fill = gm.graph.call_function(torch.ops.aten.zero_.default, (mm,))
                fill.meta["val"] = mm.meta["val"]

        def model(a, b):
            c = torch.mm(a, b)
            v = c.view(16)
            with npu_stream_switch("2"):
                return v + 1
        with support.quiet(), torch.no_grad():
            compiled, backend = support.compiled_by(model, self.made(change))
            for seed in range(8):
                with support.played(seed):
                    self.assertTrue(torch.equal(compiled(x(0), x(1)), torch.ones(16)))
        self.assertIn("Zero", controls(backend.graphs[0], "Add"))


    def in_list_order(self, model, made):
        """The results of every schedule must be those of the graph's list, whatever a pass has made of the model."""
        with support.quiet(), torch.no_grad():
            compiled, backend = support.compiled_by(model, made)
            compiled(x(0), x(1))
            (graph,) = backend.graphs
            cells, calls = graph.program.start([x(0), x(1)])
            for call in calls:
                call()
            want = [t.clone() for t in graph.program.finish(cells)]
            for seed in range(12):
                cells, calls = graph.program.start([x(0), x(1)])
                support.play(graph, calls, seed)
                self.assertTrue(support.same(graph.program.finish(cells), want), f"order {seed}")
        return want

    def test_the_result_of_a_write_is_what_was_written_to(self):
        def change(gm):
            for node in gm.graph.nodes:
                if node.target is torch.ops.aten.mul.Tensor:
                    node.target = torch.ops.aten.mul_.Tensor

        def model(a, b):
            c = torch.mm(a, b)
            d = c * 2
            with npu_stream_switch("2"):
                r = c + 5
            with npu_stream_switch("3"):
                return r, d * 3
        r, g = self.in_list_order(model, self.made(change))
        torch.testing.assert_close(r, torch.mm(x(0), x(1)) * 2 + 5)

    def write_last(self, gm, changed):
        """A pass: what `changed` does, and then zeros into the product at the end of the list."""
        mm = next(n for n in gm.graph.nodes if n.target is torch.ops.aten.mm.default)
        changed(gm, mm)
        with gm.graph.inserting_before(next(n for n in gm.graph.nodes if n.op == "output")):
            gm.graph.call_function(torch.ops.aten.zero_.default, (mm,))

    def test_a_view_is_known_by_its_schema_where_its_meta_data_is_another_operators(self):
        def changed(gm, mm):
            for node in gm.graph.nodes:
                if node.target is torch.ops.aten.clone.default:
                    node.target = torch.ops.aten.alias.default

        def model(a, b):
            c = torch.mm(a, b)
            with npu_stream_switch("1"):
                return c.clone() + 1
        (result,) = self.in_list_order(model, self.made(lambda gm: self.write_last(gm, changed)))
        torch.testing.assert_close(result, torch.mm(x(0), x(1)) + 1)

    def test_a_view_is_known_by_its_memory_where_it_has_no_schema(self):
        def flat(t):
            return t.view(-1)

        def changed(gm, mm):
            with gm.graph.inserting_after(mm):
                view = gm.graph.call_function(flat, (mm,))
            for node in gm.graph.nodes:
                if node.target is torch.ops.aten.add.Tensor:
                    node.args = (view, 1)
                    del node.meta["val"]

        def model(a, b):
            c = torch.mm(a, b)
            with npu_stream_switch("1"):
                return c + 1
        (result,) = self.in_list_order(model, self.made(lambda gm: self.write_last(gm, changed)))
        torch.testing.assert_close(result, torch.mm(x(0), x(1)).view(-1) + 1)


class CustomOperators(unittest.TestCase):
    def test_an_operator_of_the_user_that_writes(self):
        @torch.library.custom_op("mstest::fill", mutates_args=("t",))
        def fill(t: torch.Tensor, value: float) -> None:
            t.fill_(value)

        def model(a, b):
            c = a * 1
            with npu_stream_switch("1"):
                r = c + b
            with npu_stream_switch("2"):
                fill(c, 3.0)
                fill(a, 2.0)
            with npu_stream_switch("3"):
                return r, c * 2, a + b
        in_every_order(self, model, [x(0), x(1)])

    def test_an_operator_of_the_user_with_effects_outside(self):
        said = []

        @torch.library.custom_op("mstest::say", mutates_args=())
        def say(t: torch.Tensor, text: str) -> torch.Tensor:
            said.append(text)
            return t.clone()

        @say.register_fake
        def _(t, text):
            return torch.empty_like(t)

        def model(a, b):
            with npu_stream_switch("1"):
                c = say(a, "first")
            with npu_stream_switch("2"):
                return c + say(c, "second")
        with support.quiet(), torch.no_grad():
            compiled, _ = support.compiled_by(model)
            for seed in range(4):
                said.clear()
                with support.played(seed):
                    compiled(x(0), x(1))
                self.assertEqual(said, ["first", "second"])


    def test_operators_that_only_have_effects_keep_their_order_on_all_streams(self):
        said = []
        library = torch.library.Library("mstest_effects", "DEF")
        library.define("shout(str text) -> ()")
        library.impl("shout", said.append, "CompositeExplicitAutograd")
        torch.library.register_fake("mstest_effects::shout", lambda text: None, lib=library)
        shout = torch.ops.mstest_effects.shout.default
        torch.fx.node.has_side_effect(shout)

        def model(a, b):
            for text in ("1", "2", "3"):
                with npu_stream_switch(text):
                    shout(text)
            return a + b
        with support.quiet(), torch.no_grad():
            compiled, _ = support.compiled_by(model)
            for seed in range(8):
                said.clear()
                with support.played(seed):
                    compiled(x(0), x(1))
                self.assertEqual(said, ["1", "2", "3"])


class Generators(unittest.TestCase):
    def draws_as_eager(self, model):
        with support.quiet(), torch.no_grad():
            compiled, _ = support.compiled_by(model)
            torch.manual_seed(7)
            want = model(x())
            for seed in range(8):
                torch.manual_seed(7)
                with support.played(seed):
                    got = compiled(x())
                self.assertTrue(support.same(got, want), seed)

    def test_random_operators_on_several_streams_draw_in_the_order_of_the_program(self):
        def model(a):
            with npu_stream_switch("1"):
                b = torch.rand_like(a)
            with npu_stream_switch("2"):
                c = torch.rand_like(a)
            with npu_stream_switch("3"):
                d = torch.nn.functional.dropout(a, 0.5)
            return b, c, d
        self.draws_as_eager(model)

    def test_draws_inside_branches_loops_and_operators_that_write_keep_that_order_too(self):
        @torch.library.custom_op("mstest::noisy", mutates_args=("t",), tags=(torch.Tag.nondeterministic_seeded,))
        def noisy(t: torch.Tensor) -> None:
            t.add_(torch.rand_like(t))

        def model(a):
            with npu_stream_switch("1"):
                b = torch.cond(a.sum() > 0, lambda v: v + torch.rand_like(v), lambda v: v - torch.rand_like(v), (a,))
            with npu_stream_switch("2"):
                _, c = torch.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v + torch.rand_like(v)), (torch.tensor(0), a))
            with npu_stream_switch("3"):
                d = a.clone()
                noisy(d)
            with npu_stream_switch("4"):
                return b, c, d, torch.rand_like(a)
        self.draws_as_eager(model)


class Views(unittest.TestCase):
    """The programs about views in and around scopes."""

    def test_programs(self):
        def boundary(a, b):
            v = a.t()
            with npu_stream_switch("1"):
                return torch.mm(v, b)

        def leaving(a, b):
            with npu_stream_switch("1"):
                v = a.view(2, 8).permute(1, 0)
            return v.reshape(4, 4) + b

        def several(a, b):
            with npu_stream_switch("1"):
                v = a.t()
            with npu_stream_switch("2"):
                w = v.view(-1, 2) if v.is_contiguous() else v.reshape(-1, 2)
            with npu_stream_switch("3"):
                return w.t() @ torch.ones(8, 3), b.t()

        def nested(a, b):
            with npu_stream_switch("1"):
                v = a.t()
                with npu_stream_switch("2"):
                    w = v.transpose(0, 1)
                    m = torch.mm(w, b)
                return m + v

        def mixed(a, b):
            v = a[1:].t()
            with npu_stream_switch("1"):
                w = b[:3]
                m = v @ w
            return m.view(16).unsqueeze(0).expand(3, 16), w

        def deep(a, b):
            with npu_stream_switch("1"):
                v = a.view(16).view(2, 8).t().reshape(4, 4).permute(1, 0).unsqueeze(1).squeeze(1)
            return torch.mm(v, b)

        def only(a, b):
            with npu_stream_switch("1"):
                return a.t(), b.view(16)

        def pieces(a, b):
            p, q = a.split(2)
            with npu_stream_switch("1"):
                r = torch.cat([q, p])
            return r.unbind(0)[1] + b.chunk(2, 1)[0].sum()
        def stream(a, b):
            with npu_stream_switch("1"):
                m = torch.mm(a, b).t()
            return m.t() + a

        def through(a, b):
            v = a.t()
            with npu_stream_switch("1"):
                v = v[1:]
            with npu_stream_switch("2"):
                v = v.unsqueeze(0)
            with npu_stream_switch("3"):
                return v.expand(2, 3, 4).sum(0) @ b

        def written(a, b):
            c = a * 1
            v = c.t()
            with npu_stream_switch("1"):
                v[0].add_(b[0])
            with npu_stream_switch("2"):
                return c + b, v.view(2, 2, 4) if v.is_contiguous() else v.reshape(2, 2, 4)

        for model in (boundary, leaving, several, nested, mixed, deep, only, pieces, stream, through, written):
            with self.subTest(model.__name__):
                in_every_order(self, model, [x(0), x(1)], orders=4)
                run(model, [x(0), x(1)])
        with self.subTest("disabled"):
            _, said = run(boundary, [x(0), x(1)], support.config(experimental_config__enable_view_optimize=False))
            self.assertEqual(said, ["option experimental_config.enable_view_optimize has no effect here"])


    def test_a_view_taken_again_behind_a_write_keeps_the_scope_it_was_written_in(self):
        def model(a, b):
            with npu_stream_switch("outer"):
                with npu_stream_switch("1"):
                    v = a.t()
                m = torch.mm(b, b)
            with npu_stream_switch("2"):
                a[0].add_(b[1])
                w = v * 2
            return v + b, w, m
        (graph,) = in_every_order(self, model, [x(0), x(1)])
        _, said = run(model, [x(0), x(1)])
        self.assertEqual(said, [])
        self.assertEqual({o.attributes.get("_user_stream_label") for o in support.operators(graph, "Transpose")}, {"1"})


class Lifetimes(unittest.TestCase):
    def test_a_value_is_freed_when_its_last_reader_has_run(self):
        seen = []

        def model(a):
            for _ in range(6):
                a = torch.relu(a) * 1.5
            return a.sum()
        with support.quiet(), torch.no_grad():
            compiled, backend = support.compiled_by(model)
            compiled(x())
            (graph,) = backend.graphs
            arguments = [x()]
            cells, calls = graph.program.start(arguments)
            self.assertEqual(arguments, [])
            for call in calls:
                call()
                seen.append(sum(cell is not None for cell in cells))
        self.assertEqual(max(seen), 1)

    def test_an_input_used_for_its_shape_only_lives_until_its_reader(self):
        def model(a, b):
            with npu_stream_switch("1"):
                z = torch.zeros_like(a)
                y = b.new_full(a.shape, 2.0)
            with npu_stream_switch("2"):
                return z + y, torch.ones(a.shape[0])
        in_every_order(self, model, [x(0), x(1)])

    def test_operators_with_several_results(self):
        def model(a, b):
            with npu_stream_switch("1"):
                values, indices = a.topk(2)
            with npu_stream_switch("2"):
                mean, var = torch.var_mean(b, 1)
            p, q, r = torch.linalg.svd(a)
            return values * 2, indices + 1, mean - var, q
        in_every_order(self, model, [x(0), x(1)])

    def test_a_wait_inside_several_results(self):
        def model(a, b):
            p, q = a.split(2)
            m = torch.mm(a, b)
            with npu_stream_switch("1"):
                npu_wait_tensor(p, m)
                return p + 1, q + 1, m
        (graph,) = in_every_order(self, model, [x(0), x(1)])
        self.assertEqual(controls(graph, "Identity"), ["MatMul"])
        self.assertEqual(named(graph, "Identity").attributes["_user_stream_label"], "1")


class Branches(unittest.TestCase):
    def test_a_branch_runs_as_one_operator_and_scopes_in_it_are_reported(self):
        def yes(a):
            with npu_stream_switch("inside"):
                return a * 2

        def no(a):
            return a - 1

        def model(a):
            with npu_stream_switch("outside"):
                return torch.cond(a.sum() > 0, yes, no, (a,))
        for sign in (1, -1):
            _, said = run(model, [x().abs() * sign])
            self.assertTrue(any("'inside'" in text and "branch" in text for text in said), said)
            self.assertFalse(any("'outside'" in text for text in said), said)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""What scopes leave on the operators of a graph, case by case; every program also computes what eager code does."""

import unittest

import torch_support as support  # skips this file without PyTorch
import torch

from millstream import ScopeError, ops, scope
from millstream.scope import limit_core_num, npu_stream_switch, npu_wait_tensor, op_never_timeout, super_kernel
from torch_support import controls, label, named, operators, run

KEYS = ("_user_stream_label", "_user_stream_priority", "_enable_inner_parallel")
FOUR = [torch.randn(2, 2, generator=torch.Generator().manual_seed(i)) for i in range(4)]


def attributes(graph, name, keys=KEYS):
    found = named(graph, name).attributes
    return tuple(found.get(k) for k in keys)


class Scopes(unittest.TestCase):
    def test_a_stream_scope_labels_what_is_inside_and_a_wait_is_an_identity_behind_a_control_edge(self):
        def model(a, b, c, d):
            add = a + b
            with npu_stream_switch("1", 3):
                npu_wait_tensor(d, add)
                return add, torch.mm(c, d)
        (graph,), said = run(model, FOUR)
        self.assertEqual(attributes(graph, "MatMul"), ("1", "3", True))
        self.assertEqual(controls(graph, "Identity"), ["Add"])
        self.assertEqual(attributes(graph, "Add"), (None, None, None))
        self.assertEqual(said, [])

    def test_two_labels_and_the_default_stream_between_them(self):
        def model(a, b, c, d):
            add = a + b
            with npu_stream_switch("1", 2):
                npu_wait_tensor(d, add)
                first = torch.mm(c, d)
            second = torch.mm(c, d)
            with npu_stream_switch("2", 3, False):
                npu_wait_tensor(d, first)
                return add, first, second, c + d
        (graph,), said = run(model, FOUR)
        self.assertEqual(attributes(graph, "Add"), (None, None, None))
        self.assertEqual(attributes(graph, "MatMul_1"), (None, None, None))
        self.assertEqual(attributes(graph, "MatMul"), ("1", "2", True))
        self.assertEqual(attributes(graph, "Add_1"), ("2", "3", False))
        self.assertEqual(graph.plan.streams, 3)
        self.assertEqual(said, [])

    def test_a_fusion_scope_and_taking_operators_out_of_it(self):
        def model(a, b, c, d):
            with super_kernel("test_scope", "test_option"):
                mm = torch.mm(a, b)
                with super_kernel(None):
                    add = mm + c
            with super_kernel(None):
                return add - d
        (graph,), _ = run(model, FOUR)
        keys = ("_super_kernel_scope", "_super_kernel_options")
        self.assertEqual(attributes(graph, "MatMul", keys), ("test_scope", "test_option"))
        self.assertEqual(attributes(graph, "Add", keys), (None, None))
        self.assertEqual(attributes(graph, "Sub", keys), (None, None))

    def test_limits_of_cores_and_their_nesting(self):
        def model(a, b, c, d):
            with limit_core_num(1, 2):
                mm = torch.mm(a, b)
                with limit_core_num("3", "4"):
                    return mm + c
        (graph,), _ = run(model, FOUR)
        keys = ("_op_aicore_num", "_op_vectorcore_num")
        self.assertEqual(attributes(graph, "MatMul", keys), ("1", "2"))
        self.assertEqual(attributes(graph, "Add", keys), ("3", "4"))

    def test_kinds_of_scopes_merge(self):
        def model(a, b, c, d):
            with super_kernel("1", "2"):
                mm = torch.mm(a, b)
                with npu_stream_switch("5", 6):
                    return mm, c + d
        (graph,), _ = run(model, FOUR)
        keys = ("_super_kernel_scope", "_super_kernel_options", "_user_stream_label", "_user_stream_priority")
        self.assertEqual(attributes(graph, "MatMul", keys), ("1", "2", None, None))
        self.assertEqual(attributes(graph, "Add", keys), ("1", "2", "5", "6"))

    def test_never_timeout_is_a_flag(self):
        def model(a, b, c, d):
            with op_never_timeout(True):
                mm = torch.mm(a, b)
                with op_never_timeout(False):
                    return mm + c
        (graph,), _ = run(model, FOUR)
        self.assertIs(named(graph, "MatMul").attributes["_op_exec_never_timeout"], True)
        self.assertIs(named(graph, "Add").attributes["_op_exec_never_timeout"], False)

    def test_views_have_the_scope_in_which_they_are_written(self):
        def model(x, w):
            a = torch.abs(x)
            outside = a.transpose(1, 2)
            with npu_stream_switch("test", 1):
                first = torch.bmm(a, outside)
                second = torch.mm(w.t(), w.transpose(0, 1))
                inner = a.transpose(1, 2)
            last = torch.bmm(a, a.transpose(1, 2))
            return first, second, last, inner
        (graph,), _ = run(model, [torch.randn(6, 5, 4), torch.randn(3, 3)])
        self.assertEqual([o.attributes.get("_user_stream_label") for o in operators(graph, "Transpose")],
                         [None, "test", "test", "test", None])

    def test_the_inner_label_wins_and_the_outer_one_returns(self):
        def model(a, b, c, d):
            with npu_stream_switch("outer", 1, False):
                x = a + b
                with npu_stream_switch("inner", 2):
                    y = torch.mm(x, c)
                return torch.mm(y, d)
        (graph,), _ = run(model, FOUR)
        self.assertEqual(attributes(graph, "Add"), ("outer", "1", False))
        self.assertEqual(attributes(graph, "MatMul"), ("inner", "2", True))
        self.assertEqual(attributes(graph, "MatMul_1"), ("outer", "1", False))

    def test_an_empty_label_takes_the_label_away_and_says_so(self):
        def model(a, b, c, d):
            with npu_stream_switch("side"):
                x = a + b
                with npu_stream_switch(""):
                    y = torch.mm(x, c)
            return y
        (graph,), said = run(model, FOUR)
        self.assertEqual(attributes(graph, "MatMul"), (None, None, None))
        self.assertEqual(len(said), 1)
        self.assertIn("stream scope '' at test_torch_graphs.py:", said[0])

    def test_labels_that_disagree_about_priority_take_the_smallest_and_warn(self):
        def model(a, b, c, d):
            with npu_stream_switch("s", 5):
                x = a + b
            with npu_stream_switch("s", 2):
                return torch.mm(x, c)
        (graph,), _ = run(model, FOUR)
        self.assertTrue(any("priorit" in text for text in graph.warnings), graph.warnings)

    def test_a_single_stream_and_labels_contradict_each_other(self):
        import millstream

        def model(a, b, c, d):
            with npu_stream_switch("s"):
                return torch.mm(a, b)
        with self.assertRaisesRegex(Exception, "E02"):
            run(model, FOUR, support.config(ge_config__enable_single_stream=True))
        (graph,), _ = run(lambda a, b, c, d: (a + b, c + d), FOUR, support.config(ge_config__enable_single_stream=True))
        self.assertEqual(graph.plan.streams, 1)
        self.assertTrue(issubclass(millstream.Error, RuntimeError))

    def test_operators_know_the_users_line(self):
        def model(a, b, c, d):
            return torch.mm(a, b)
        (graph,), _ = run(model, FOUR)
        line = model.__code__.co_firstlineno + 1
        self.assertEqual(named(graph, "MatMul").source, f"test_torch_graphs.py:{line}")

    def test_add_with_a_factor_is_another_type(self):
        (graph,), _ = run(lambda a, b, c, d: torch.add(a, b, alpha=2) + torch.sub(c, d), FOUR)
        self.assertEqual([o.name for o in graph.lowered.operators], ["AxpyV2", "Sub", "Add"])

    def test_a_model_that_returns_its_input_compiles(self):
        run(lambda a, b, c, d: (a, b), FOUR)
        run(lambda a, b, c, d: (a, a + 1), FOUR)

    def test_a_scope_object_may_be_made_once_and_used_often(self):
        def model(a, b, c, d):
            side = npu_stream_switch("side")
            with side:
                x = a + b
            y = torch.mm(x, c)
            with side:
                return y - d
        (graph,), _ = run(model, FOUR)
        self.assertEqual([label(graph, n) for n in ("Add", "MatMul", "Sub")], ["side", None, "side"])

    def test_a_scope_may_come_from_a_method_and_its_tag_from_an_attribute(self):
        class Model(torch.nn.Module):
            tag = "mine"

            def side(self, i):
                return npu_stream_switch(f"{self.tag}{i}")

            def forward(self, a, b, c, d):
                for i in range(2):
                    with self.side(i):
                        a = a + b
                return a
        (graph,), _ = run(Model(), FOUR)
        self.assertEqual([label(graph, n) for n in ("Add", "Add_1")], ["mine0", "mine1"])


class PassesOfUsers(unittest.TestCase):
    def misuse(self, change):
        def model(a, b, c, d):
            return torch.mm(a, b) + c
        made = support.config(post_grad_custom_pre_pass=lambda gm, inputs, config: change(gm))
        with self.assertRaises(Exception) as caught:
            run(model, FOUR, made)
        return str(caught.exception)

    def test_an_exit_without_an_enter_is_refused(self):
        def change(gm):
            with gm.graph.inserting_before(next(n for n in gm.graph.nodes if n.op == "call_function")):
                gm.graph.call_function(torch.ops.millstream.scope_exit.default)
        text = self.misuse(change)
        self.assertIn("you must first call the torch.ops.millstream.scope_enter operator", text)
        self.assertIn("graph break", text)

    def test_an_enter_without_an_exit_is_refused_and_its_arguments_are_listed(self):
        def change(gm):
            with gm.graph.inserting_before(next(n for n in gm.graph.nodes if n.op == "call_function")):
                gm.graph.call_function(torch.ops.millstream.scope_enter, (["_user_stream_label"], ["stream_1"]))
        text = self.misuse(change)
        self.assertIn("there is no paired call to the torch.ops.millstream.scope_exit operator", text)
        self.assertIn("stream_1", text)

    def test_keys_and_values_must_be_as_many(self):
        def change(gm):
            with gm.graph.inserting_before(next(n for n in gm.graph.nodes if n.op == "call_function")):
                gm.graph.call_function(torch.ops.millstream.scope_enter.default, (["_user_stream_label"], []))
        self.assertIn("1 keys and 0 values", self.misuse(change))

    def test_unbalanced_calls_in_the_model_are_refused_before_anything_is_traced_further(self):
        def model(a, b, c, d):
            torch.ops.millstream.scope_exit()
            return a + b
        with self.assertRaisesRegex(Exception, "you must first call the torch.ops.millstream.scope_enter"):
            run(model, FOUR)
        self.assertTrue(issubclass(ScopeError, RuntimeError))

    def test_a_label_without_priority_does_not_inherit_the_priority_of_another_label(self):
        def change(gm):
            mm = next(n for n in gm.graph.nodes if n.op == "call_function" and "mm" in n.name)
            with gm.graph.inserting_before(mm):
                gm.graph.call_function(torch.ops.millstream.scope_enter.default, (["_user_stream_label"], ["inner"]))
            with gm.graph.inserting_after(mm):
                gm.graph.call_function(torch.ops.millstream.scope_exit.default)

        def model(a, b, c, d):
            with npu_stream_switch("outer", 4, False):
                return torch.mm(a, b) + c
        made = support.config(post_grad_custom_pre_pass=lambda gm, inputs, config: change(gm))
        (graph,), _ = run(model, FOUR, made)
        self.assertEqual(attributes(graph, "MatMul"), ("inner", None, None))
        self.assertEqual(attributes(graph, "Add"), ("outer", "4", False))


    def test_operators_that_a_pass_adds_need_no_meta_data(self):
        def change(gm):
            mm = next(n for n in gm.graph.nodes if n.target is torch.ops.aten.mm.default)
            with gm.graph.inserting_after(mm):
                twice = gm.graph.call_function(torch.ops.aten.mul.Tensor, (mm, 2))
            mm.replace_all_uses_with(twice, delete_user_cb=lambda user: user is not twice)
        with support.quiet(), torch.no_grad():
            made = support.config(post_grad_custom_pre_pass=lambda gm, inputs, config: change(gm))
            compiled, backend = support.compiled_by(lambda a, b: torch.mm(a, b) + 1, made)
            self.assertTrue(torch.equal(compiled(*FOUR[:2]), torch.mm(*FOUR[:2]) * 2 + 1))
            self.assertEqual(named(backend.graphs[0], "Mul").outputs, [("float32", [2, 2])])


class Devices(unittest.TestCase):
    def test_values_of_other_devices_run_in_order_and_a_warning_says_so(self):
        def model(a, b):
            with npu_stream_switch("1"):
                return torch.mm(a, b) + 1
        with support.quiet() as said, torch.no_grad():
            compiled, _ = support.compiled_by(model)
            self.assertEqual(compiled(torch.ones(2, 3, device="meta"), torch.ones(3, 4, device="meta")).shape, (2, 4))
        self.assertTrue(any("values on meta" in text for text in support.texts(said)))

    def test_element_types_that_the_library_does_not_know(self):
        run(lambda a: a.to(torch.complex32).real + 1, [torch.ones(2, 2)])


class Dumps(unittest.TestCase):
    def dumped(self, kind):
        import os
        import tempfile

        def model(a, b, c, d):
            add = a + b
            with npu_stream_switch("1"):
                npu_wait_tensor(d, add)
                mm = torch.mm(c, d)
            with npu_stream_switch("2"):
                npu_wait_tensor(d, mm)
                return add, mm, c + d
        with tempfile.TemporaryDirectory() as folder:
            run(model, FOUR, support.config(debug__graph_dump__type=kind, debug__graph_dump__path=os.path.join(folder, "new")))
            files = sorted(os.listdir(os.path.join(folder, "new")))
            for name in files:
                self.assertRegex(name, rf"^dynamo_(original|optimized)_graph_\d+_rank_0_pid_\d+_ts_\d{{20}}\.{kind}$")
            texts = {}
            for name in files:
                with open(os.path.join(folder, "new", name), encoding="utf-8") as file:
                    texts[name.split("_")[1]] = file.read()
            return texts

    def test_nodes_with_labels_and_control_inputs(self):
        texts = self.dumped("pbtxt")
        for part in ('input: "^Add"', 'input: "^MatMul"', 'key: "_user_stream_label"', 's: "s: \\"1\\"\\n"', 'name: "Identity_1"'):
            self.assertIn(part, texts["original"])
        self.assertIn("Send", texts["optimized"])

    def test_operators_and_code(self):
        texts = self.dumped("txt")
        for part in ('input: "Add:-1"', 's: "1"', "b: true"):
            self.assertIn(part, texts["original"])
        self.assertIn("_user_stream_label", texts["optimized"])
        self.assertIn("torch.ops.aten.mm.default", self.dumped("py")["original"])

    def test_a_data_dump_scope_and_layers_go_into_one_file(self):
        import glob
        import json
        import os
        import tempfile

        def model(a, b, c, d):
            x = a - b
            with scope.data_dump():
                return x + c
        here = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                run(model, FOUR, support.config(dump_config__enable_dump=True, dump_config__dump_layer=" Test1 Test2 Test3 "))
                newest = max(glob.glob("ge_dump_data_json/dump_options_*.json"), key=os.path.getmtime)
                with open(newest, encoding="utf-8") as file:
                    layers = json.load(file)["dump"]["dump_list"][-1]["layer"]
            finally:
                os.chdir(here)
        self.assertEqual(layers, ["Test1", "Test2", "Test3", "Add"])


class Orders(unittest.TestCase):
    def setUp(self):
        ops.release_tagged_events()

    def test_waiting_for_a_tensor(self):
        def model(x, y, c, d):
            add = x + y
            mm = torch.mm(add, x)
            with npu_stream_switch("1"):
                ops.wait([add])
                return mm, x + y * 2
        (graph,), _ = run(model, FOUR)
        self.assertEqual(controls(graph, "Mul"), ["Add"])

    def test_waiting_for_a_record(self):
        def model(x, y, c, d):
            add = x + y
            mm = torch.mm(add, x)
            mark = ops.record()
            with npu_stream_switch("1"):
                ops.wait([mark])
                return mm, x - y
        (graph,), _ = run(model, FOUR)
        self.assertEqual(controls(graph, "Sub"), ["MatMul"])

    def test_a_wait_outlives_its_block_and_skips_other_streams(self):
        def model(x, y, c, d):
            with npu_stream_switch("1"):
                add = x + y
                mark = ops.record()
                mm1 = torch.mm(add, x)
                mul = x * add
            with npu_stream_switch("2"):
                add2 = x + y
                ops.wait([mark, mul])
            add3 = x + y
            with npu_stream_switch("2"):
                mm2 = torch.mm(x, y)
            return mm1, mul, add2, add3, mm2
        (graph,), _ = run(model, FOUR)
        self.assertEqual(sorted(controls(graph, "MatMul_1")), ["Add", "Mul"])
        self.assertEqual(controls(graph, "Add_2"), [])

    def test_a_record_before_any_operator_is_no_order(self):
        def model(x, y, c, d):
            with npu_stream_switch("1"):
                mark = ops.record()
                a = x + y
            with npu_stream_switch("2"):
                ops.wait([mark])
                return a, x - y
        (graph,), said = run(model, FOUR)
        self.assertEqual(controls(graph, "Sub"), [])
        self.assertEqual(said, [])

    def test_records_and_waits_use_the_innermost_label(self):
        def model(x, y, c, d):
            with npu_stream_switch("outer"):
                a = x + y
                with npu_stream_switch("inner"):
                    m = torch.mm(x, y)
                    mark = ops.record()
                s = x - y
            with npu_stream_switch("third"):
                ops.wait([mark])
                return a, m, s, x * y
        (graph,), _ = run(model, FOUR)
        self.assertEqual(controls(graph, "Mul"), ["MatMul"])

    def test_a_wait_in_front_of_a_view_also_holds_the_task_behind_it(self):
        def model(x, y, c, d):
            m = torch.mm(x, y)
            with npu_stream_switch("1"):
                ops.wait([m])
                v = c.view(4)
                return m, v, c + d
        (graph,), _ = run(model, FOUR)
        self.assertEqual(controls(graph, "Reshape"), ["MatMul"])
        self.assertEqual(controls(graph, "Add"), ["MatMul"])

    def test_a_record_behind_a_view_stands_for_the_task_before_it_too(self):
        def model(x, y, c, d):
            m = torch.mm(x, y)
            v = c.view(4)
            mark = ops.record()
            with npu_stream_switch("1"):
                ops.wait([mark])
                return m, v, c + d
        (graph,), _ = run(model, FOUR)
        self.assertEqual(sorted(controls(graph, "Add")), ["MatMul", "Reshape"])

    def test_a_wait_without_an_operator_behind_it_warns(self):
        def model(x, y, c, d):
            m = torch.mm(x, y)
            with npu_stream_switch("1"):
                a = c + d
                ops.wait([m])
            return m, a
        _, said = run(model, FOUR)
        self.assertEqual(len(said), 1)
        self.assertRegex(said[0], "no operator on stream '1' comes after it")

    def test_waiting_for_a_tensor_whose_first_argument_is_not_used_again_warns(self):
        def model(x, y, c, d):
            m = torch.mm(x, y)
            npu_wait_tensor(c, m)
            return m, d + 1
        _, said = run(model, FOUR)
        self.assertEqual(len(said), 1)
        self.assertRegex(said[0], "npu_wait_tensor at test_torch_graphs.py:.* has no effect")

    def test_a_wait_binds_later_uses_on_every_stream_and_waits_chain(self):
        def model(x, y, c, d):
            before = d * 2
            m = torch.mm(x, y)
            with npu_stream_switch("1"):
                npu_wait_tensor(d, m)
                n = torch.mm(x, d)
                npu_wait_tensor(d, n)
            return before, n, d + c
        (graph,), _ = run(model, FOUR)
        index = {o.name: i for i, o in enumerate(graph.lowered.operators)}
        reads = {o.name: [v.operator for v in o.inputs] for o in graph.lowered.operators}
        self.assertEqual(reads["Mul"], [None])
        self.assertIn(index["Identity"], reads["MatMul_1"])
        self.assertEqual(reads["Identity_1"], [index["Identity"]])
        self.assertIn(index["Identity_1"], reads["Add"])

    def test_using_the_result_of_a_wait_or_dropping_it_is_the_same_graph(self):
        def dropped(x, y, c, d):
            m = torch.mm(x, y)
            npu_wait_tensor(d, m)
            return m, d + c

        def used(x, y, c, d):
            m = torch.mm(x, y)
            d = npu_wait_tensor(d, m)
            return m, d + c
        (a,), _ = run(dropped, FOUR)
        (b,), _ = run(used, FOUR)
        self.assertEqual(a.plan.text().replace("graph_", ""), b.plan.text().replace(b.name, a.name).replace("graph_", ""))

    def test_a_tensor_may_wait_for_itself(self):
        def model(x, y, c, d):
            m = torch.mm(x, y)
            npu_wait_tensor(m, m)
            return m + c
        (graph,), said = run(model, FOUR)
        self.assertEqual(controls(graph, "Identity"), ["MatMul"])
        self.assertEqual(said, [])

    def test_a_wait_also_holds_the_users_of_earlier_views(self):
        def model(x, y, c, d):
            v = d.view(4)[:2]
            m = torch.mm(x, y)
            with npu_stream_switch("1"):
                npu_wait_tensor(d, m)
            return m, v * 2
        (graph,), said = run(model, FOUR)
        self.assertEqual(controls(graph, "Mul"), ["Identity"])
        self.assertEqual(said, [])

    def test_a_wait_for_a_view_comes_after_the_wait_for_what_it_views(self):
        def model(x, y, c, d):
            v = d.view(4)
            m, n = torch.mm(x, y), x - y
            npu_wait_tensor(d, m)
            npu_wait_tensor(v, n)
            return m, n, v * 2
        (graph,), said = run(model, FOUR)
        self.assertEqual(sorted(controls(graph, "Identity_1")), ["Identity", "Sub"])
        self.assertEqual(len(said), 0)

    def test_a_wait_behind_a_write_names_the_written_value(self):
        def model(x, y, c, d):
            e = d * 1
            e.add_(1)
            m = torch.mm(x, y)
            npu_wait_tensor(e, m)
            return m, torch.mm(e, c)
        (graph,), _ = run(model, FOUR)
        self.assertEqual(controls(graph, "Identity"), ["MatMul"])
        add = [o.name for o in graph.lowered.operators].index("Add")
        self.assertEqual(named(graph, "Identity").inputs[0].operator, add)

    def test_tagged_events_are_pairs(self):
        event = ops.npu_create_tagged_event("pair")

        def model(x, y, c, d):
            m = torch.mm(x, y)
            ops.npu_tagged_event_record(event)
            a = x + y
            with npu_stream_switch("1"):
                ops.npu_tagged_event_wait(event)
                return m, a, c - d
        (graph,), _ = run(model, FOUR)
        self.assertEqual(controls(graph, "Sub"), ["MatMul"])

    def test_an_event_without_a_record_in_the_graph_is_no_order(self):
        event = ops.npu_create_tagged_event("elsewhere")

        def model(x, y, c, d):
            ops.npu_tagged_event_wait(event)
            return c - d
        (graph,), said = run(model, FOUR)
        self.assertEqual(controls(graph, "Sub"), [])
        self.assertEqual(said, [])

    def test_two_records_stay_two(self):
        def model(x, y, c, d):
            m = torch.mm(x, y)
            first = ops.record()
            n = torch.mm(m, y)
            second = ops.record()
            with npu_stream_switch("1"):
                ops.wait([first])
                a = c + d
            with npu_stream_switch("2"):
                ops.wait([second])
                return n, a, c - d
        (graph,), _ = run(model, FOUR)
        self.assertEqual(controls(graph, "Add"), ["MatMul"])
        self.assertEqual(controls(graph, "Sub"), ["MatMul_1"])

    def test_a_pass_author_may_use_the_functional_wait(self):
        def model(x, y, c, d):
            m = torch.mm(x, y)
            return m, torch.ops.millstream.wait_tensor(d, m) + c
        (graph,), _ = run(model, FOUR)
        self.assertEqual(len(operators(graph, "Identity")), 1)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Scopes, orders and options as objects: what they hold and what they refuse."""

import unittest
import warnings

import torch_support  # noqa: F401  (skips this file without PyTorch)
import torch

from millstream import _markers, config, ops, scope
from millstream.errors import ScopeWarning


class Pairs(unittest.TestCase):
    def test_each_kind_of_scope_holds_its_pairs_in_order(self):
        self.assertEqual(scope.npu_stream_switch("1", 3).attrs, [
            ("_user_stream_label", "1"), ("_user_stream_priority", "3"), ("_enable_inner_parallel", "True")])
        self.assertEqual(scope.npu_stream_switch("s", enable_inner_parallel=False).attrs[1:], [
            ("_user_stream_priority", "0"), ("_enable_inner_parallel", "False")])
        self.assertEqual(scope.super_kernel("a", "b").attrs, [("_super_kernel_scope", "a"), ("_super_kernel_options", "b")])
        self.assertEqual(scope.super_kernel(None).attrs[0], ("_super_kernel_scope", ""))
        self.assertEqual(scope.limit_core_num(1, "2").attrs, [("_op_aicore_num", "1"), ("_op_vectorcore_num", "2")])
        self.assertEqual(scope.op_never_timeout().attrs, [("_op_exec_never_timeout", "True")])
        self.assertEqual(scope.data_dump().attrs, [("torchair_enable_data_dump", "True")])

    def test_arguments_of_a_wrong_type_are_named(self):
        for call, name in ((lambda: scope.npu_stream_switch(1), "stream_tag"),
                           (lambda: scope.npu_stream_switch("1", "2"), "stream_priority"),
                           (lambda: scope.npu_stream_switch("1", True), "stream_priority"),
                           (lambda: scope.npu_stream_switch("1", 0, 1), "enable_inner_parallel"),
                           (lambda: scope.super_kernel(3), "scope"), (lambda: scope.super_kernel("a", 3), "options"),
                           (lambda: scope.limit_core_num(1.5, 1), "op_aicore_num"),
                           (lambda: scope.limit_core_num(1, None), "op_vectorcore_num"),
                           (lambda: scope.op_never_timeout(enable=1), "enable"),
                           (lambda: scope.npu_wait_tensor(1, torch.ones(1)), "self"),
                           (lambda: scope.npu_wait_tensor(torch.ones(1), None), "dependency")):
            with self.subTest(name), self.assertRaisesRegex(TypeError, f"argument '{name}' must be"):
                call()

    def test_the_message_of_op_never_timeout_is_that_of_the_ecosystem(self):
        with self.assertRaisesRegex(TypeError, r"^op_never_timeout\(\) argument 'enable' must be bool"):
            scope.op_never_timeout(enable=1)


class Eager(unittest.TestCase):
    def setUp(self):
        _markers.warn_again()

    def test_a_scope_outside_of_compilation_warns_once_and_computes(self):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for _ in range(2):
                with scope.npu_stream_switch("side"):
                    result = torch.ones(2) + 1
        self.assertTrue(torch.equal(result, torch.full((2,), 2.0)))
        self.assertEqual([w.category for w in said], [ScopeWarning])
        self.assertIn("'side'", str(said[0].message))

    def test_one_object_may_be_entered_again_and_inside_itself(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            once = scope.limit_core_num(1, 1)
            with once, once:
                pass
            with once:
                pass

    def test_an_exception_leaves_the_block(self):
        with warnings.catch_warnings(), self.assertRaisesRegex(ValueError, "mine"):
            warnings.simplefilter("ignore")
            with scope.npu_stream_switch("side"):
                raise ValueError("mine")

    def test_waiting_does_nothing_and_returns_self(self):
        a, b = torch.ones(2), torch.ones(2)
        self.assertIs(scope.npu_wait_tensor(a, b), a)
        ops.wait([ops.record(), a])


class Orders(unittest.TestCase):
    def test_wait_refuses_nothing_and_what_is_no_tensor(self):
        for empty in (None, []):
            with self.assertRaisesRegex(ValueError, "requires at least one tensor input"):
                ops.wait(empty)
        with self.assertRaisesRegex(ValueError, "must be torch.Tensor"):
            ops.wait([torch.ones(1), 3])

    def test_a_record_is_a_tensor_without_elements(self):
        self.assertEqual(ops.record().numel(), 0)

    def test_a_tag_names_one_event(self):
        ops.npu_create_tagged_event("taken")
        with self.assertRaisesRegex(ValueError, "tagged event tag taken is already in use"):
            ops.npu_create_tagged_event("taken")
        ops.release_tagged_events()
        event = ops.npu_create_tagged_event("taken")
        for _ in range(2):
            ops.npu_tagged_event_record(event)
            with scope.npu_stream_switch("1"):
                ops.npu_tagged_event_wait(event)
        ops.release_tagged_events()

    def test_what_is_no_event_is_not_in_use(self):
        for call in (ops.npu_tagged_event_record, ops.npu_tagged_event_wait):
            with self.assertRaisesRegex(ValueError, "is not in use"):
                call("taken")

    def test_extending_a_lifetime_checks_its_arguments(self):
        self.assertIsNone(ops.npu_record_tagged_stream(torch.ones(1), "a"))
        with self.assertRaisesRegex(TypeError, "tagged_stream"):
            ops.npu_record_tagged_stream(torch.ones(1), 3)


class Config(unittest.TestCase):
    def test_an_unknown_option_is_refused_and_the_known_ones_are_listed(self):
        with self.assertRaisesRegex(ValueError, r"GeConfig has no option x, all options \['aicore_num'"):
            config.CompilerConfig().ge_config.x = 1
        with self.assertRaisesRegex(ValueError, "has no option"):
            config.CompilerConfig().set("ge_config.x", 1)
        with self.assertRaisesRegex(ValueError, "has no group"):
            config.CompilerConfig().set("nothing.x", 1)

    def test_a_value_outside_the_list_is_refused(self):
        c = config.CompilerConfig()
        for name, value in (("mode", "fast"), ("ge_config.enable_single_stream", 1), ("streams", 0), ("streams", True),
                            ("post_grad_custom_pre_pass", 3), ("debug.graph_dump.type", "png")):
            with self.subTest(name), self.assertRaisesRegex(ValueError, r"^Value .* is not in optional list"):
                c.set(name, value)

    def test_the_ecosystems_keys(self):
        c = config.CompilerConfig()
        c.ge_config.enable_single_stream = True
        c.experimental_config.topology_sorting_strategy = "StableRDFS"
        local, process = c.as_dict()
        self.assertEqual(process["ge.enableSingleStream"], "true")
        self.assertEqual(local["ge.topoSortingMode"], "3")
        self.assertNotIn("ge.aicoreNum", local)

    def test_equality_and_copies_go_by_values(self):
        a = config.CompilerConfig()
        a.debug.graph_dump.type = "pbtxt"
        self.assertNotEqual(a, config.CompilerConfig())
        b = a.copy()
        self.assertEqual(a, b)
        b.debug.graph_dump.type = "py"
        self.assertEqual(a.debug.graph_dump.type, "pbtxt")

    def test_options_that_do_nothing_here_are_known(self):
        c = config.CompilerConfig()
        self.assertEqual(c.without_effect(), [])
        c.ge_config.oo_level = "O1"
        c.ge_config.enable_single_stream = True
        self.assertEqual(c.without_effect(), ["ge_config.oo_level"])


if __name__ == "__main__":
    unittest.main()

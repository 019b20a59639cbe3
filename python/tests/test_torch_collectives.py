# SPDX-License-Identifier: Apache-2.0
"""Collectives in compiled functions: in a process group of one rank, and in one of two processes.

A case is a function that each rank calls. The processes of two ranks run all cases in turn, and stop at the first that fails.
"""

import contextlib
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback
import unittest
from unittest import mock

import torch_support as support  # skips this file without PyTorch
import torch
import torch.distributed as dist

if not dist.is_available() or not dist.is_gloo_available():
    raise unittest.SkipTest("PyTorch has no gloo")

import torch.distributed._functional_collectives as collectives

from millstream import ops
from millstream.scope import npu_stream_switch, npu_wait_tensor
from torch_support import controls, label, named, operators, overlap, played

PATIENCE = 600  # seconds for all cases of one rank
check = unittest.TestCase()
check.maxDiff = None


def x(seed, *shape):
    """Values that differ from rank to rank."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(10 * seed + dist.get_rank()))


def in_orders(model, inputs, made=None, orders=3, **how):
    """Compiled equals eager on the runtime, and in orders that the schedule allows, on each rank another one. Returns
    the graphs and what the front-end warned of."""
    with support.quiet() as said, torch.no_grad():
        compiled, backend = support.compiled_by(model, made, **how)
        for order in range(orders + 1):
            with played(2 * order + dist.get_rank()) if order > 0 else contextlib.nullcontext():
                mine, theirs = support.copies(inputs), support.copies(inputs)
                got, want = compiled(*mine), model(*theirs)
            check.assertTrue(support.same(got, want), f"results differ, order {order}")
            check.assertTrue(support.same(mine, theirs), f"inputs differ, order {order}")
    for graph in backend.graphs:
        check.assertEqual(graph.plan.verify(), [])
    return backend.graphs, support.texts(said)


def beside_a_matmul():
    def model(a, b, w):
        partial = torch.mm(a, w)
        first = torch.mm(b, w)
        with npu_stream_switch("comm", 1):
            npu_wait_tensor(partial, first)
            reduced = collectives.all_reduce(partial, "sum", dist.group.WORLD)
        second = torch.mm(first, w)
        return reduced + second
    inputs = [x(i, 512, 512) for i in range(3)]
    (graph,), said = in_orders(model, inputs)
    check.assertEqual(said, [])
    check.assertEqual([label(graph, n) for n in ("MatMul_1", "Identity", "HcomAllReduce", "CollectiveWait", "MatMul_2", "Add")],
                      [None, "comm", "comm", "comm", None, None])
    check.assertEqual(controls(graph, "Identity"), ["MatMul_1"])
    check.assertEqual(named(graph, "HcomAllReduce").attributes["group"], dist.group.WORLD.group_name)
    check.assertEqual({o.name for o in graph.lowered.operators if o.engine}, {"HcomAllReduce", "CollectiveWait"})
    check.assertEqual(graph.plan.streams, 3)  # the label's wait, its collective, the rest
    check.assertTrue(overlap(graph, "HcomAllReduce", "MatMul_2"), graph.plan.simulate())
    check.assertFalse(overlap(graph, "HcomAllReduce", "MatMul_1"))
    folder = os.environ.get("MILLSTREAM_TEST_PLANS")
    if folder:  # where two ranks run
        (pathlib.Path(folder) / f"rank{dist.get_rank()}.mst").write_text(graph.plan.text())


def without_scopes():
    def model(a, b, w):
        reduced = collectives.all_reduce(torch.mm(a, w), "max", dist.group.WORLD)
        return reduced + torch.mm(b, w)
    (graph,), said = in_orders(model, [x(i, 256, 256) for i in range(3)])
    check.assertEqual(said, [])
    check.assertEqual(graph.plan.streams, 2)
    check.assertTrue(overlap(graph, "HcomAllReduce", "MatMul_1"), graph.plan.text())
    in_orders(model, [x(i, 256, 256) for i in range(3)], support.config(target="cpu"))


def with_work_of_the_same_label():
    def model(a, w):
        with npu_stream_switch("side"):
            reduced = collectives.all_reduce(torch.mm(a, w), "sum", dist.group.WORLD)
            return torch.mm(reduced, w)
    (graph,), said = in_orders(model, [x(0, 64, 64), x(1, 64, 64)], support.config(strict_scopes=True))
    check.assertEqual(said, [])
    check.assertEqual({label(graph, o.name) for o in graph.lowered.operators}, {"side"})


def of_every_kind():
    def model(a, b):
        group = dist.group.WORLD
        with npu_stream_switch("comm"):
            gathered = collectives.all_gather_tensor(a, 0, group), collectives.all_gather_tensor(a, 1, group)
            scattered = collectives.reduce_scatter_tensor(a, "sum", 0, group), collectives.reduce_scatter_tensor(b, "sum", 1, group)
        sent = collectives.broadcast(b, dist.get_world_size() - 1, group), collectives.all_to_all_single(a, None, None, group)
        with npu_stream_switch("lists"):
            lists = (collectives.all_reduce_coalesced([a, b], "sum", group), collectives.all_gather_into_tensor_coalesced([a, b], group),
                     collectives.reduce_scatter_tensor_coalesced([a, b], "sum", [0, 0], group))
        return gathered, scattered, sent, lists, a + b
    (graph,), said = in_orders(model, [x(0, 4, 4), x(1, 4, 4)])
    check.assertEqual(said, [])
    kinds = [o.type for o in graph.lowered.operators if o.engine and o.type != "CollectiveWait"]
    check.assertEqual(kinds, ["HcomAllGather"] * 2 + ["HcomReduceScatter"] * 2 + ["HcomBroadcast", "HcomAllToAllV", "HcomAllReduce",
                                                                               "HcomAllGather", "HcomReduceScatter"])
    streams = {(label(graph, o.name), graph.plan.logical_stream_of(i)) for i, o in enumerate(graph.lowered.operators) if o.engine}
    check.assertEqual(len(streams), 3, graph.plan.text())


def in_place():
    def model(a, b):
        dist.all_reduce(a)
        gathered = torch.empty(a.shape[0] * dist.get_world_size(), a.shape[1])
        dist.all_gather_into_tensor(gathered, b)
        scattered = torch.empty_like(a)
        dist.reduce_scatter_tensor(scattered, gathered)
        return a + 1, gathered, scattered
    in_orders(model, [x(0, 4, 4), x(1, 4, 4)])


def a_write_to_what_a_collective_reads():
    def model(a):
        gathered = collectives.wait_tensor(collectives.all_gather_tensor(a, 0, dist.group.WORLD))  # eager code waits later
        a.add_(1)
        return gathered
    (graph,), _ = in_orders(model, [x(0, 64, 64)])
    check.assertIn("CollectiveWait", controls(graph, "Assign"))


def a_pass_that_reduces_in_place():
    def change(gm, inputs, config):
        functional = torch.ops._c10d_functional
        for node in gm.graph.nodes:
            if node.target is functional.all_reduce.default:
                node.target = functional.all_reduce_.default
                wait, = node.users
                made = node.args[0]
                node.replace_all_uses_with(made)
                wait.replace_all_uses_with(made)

    def model(a, b):
        with npu_stream_switch("comm"):
            reduced = collectives.all_reduce(a + b, "sum", dist.group.WORLD)
        return torch.mm(reduced, b), reduced
    (graph,), _ = in_orders(model, [x(0, 4, 4), x(1, 4, 4)], support.config(post_grad_custom_post_pass=change))
    check.assertIn("CollectiveWait", controls(graph, "MatMul"))


def started_here_and_awaited_there():
    functional = torch.ops._c10d_functional

    def model(a, b):
        with npu_stream_switch("comm"):
            pending = functional.all_gather_into_tensor(a, dist.get_world_size(), dist.group.WORLD.group_name)
        main = torch.mm(b, b)
        return collectives.wait_tensor(pending), main
    (graph,), said = in_orders(model, [x(0, 64, 64), x(1, 64, 64)])
    check.assertEqual(said, [])
    check.assertEqual((label(graph, "HcomAllGather"), label(graph, "CollectiveWait")), ("comm", None))


def starts_keep_the_order_of_the_program():
    one, two = dist.group.WORLD, dist.new_group()

    def model(a, b):
        with npu_stream_switch("1"):
            first = collectives.all_reduce(a, "sum", one)
        with npu_stream_switch("2"):
            second = collectives.all_reduce(b, "sum", two)
        with npu_stream_switch("3"):
            third = collectives.all_gather_tensor(torch.mm(a, b), 0, one)
        return first, second, third, collectives.all_reduce(first, "max", two)
    (graph,), said = in_orders(model, [x(0, 8, 8), x(1, 8, 8)], orders=6)
    check.assertEqual(said, [])
    starts = [o.name for o in graph.lowered.operators if o.engine and o.type != "CollectiveWait"]
    check.assertEqual([controls(graph, n) for n in starts], [[]] + [[n] for n in starts[:-1]])
    in_orders(model, [x(0, 8, 8), x(1, 8, 8)], support.config(workers=1))


def waits_stay_behind_the_starts_before_them():
    functional = torch.ops._c10d_functional

    def model(a, b):
        name = dist.group.WORLD.group_name
        first = functional.all_reduce(a, "sum", name)
        second = functional.all_reduce(torch.mm(b, b), "sum", name)
        return collectives.wait_tensor(first), collectives.wait_tensor(second)
    (graph,), _ = in_orders(model, [x(0, 8, 8), x(1, 8, 8)])
    check.assertEqual((controls(graph, "CollectiveWait"), controls(graph, "CollectiveWait_1")), (["HcomAllReduce_1"], []))


def orders_by_hand():
    def model(a, b):
        with npu_stream_switch("comm"):
            reduced = collectives.all_reduce(a, "sum", dist.group.WORLD)
            mark = ops.record()
        ops.wait([mark])
        product = torch.mm(b, b)
        return reduced, product
    (graph,), said = in_orders(model, [x(0, 8, 8), x(1, 8, 8)])
    check.assertEqual(said, [])
    check.assertEqual(controls(graph, "MatMul"), ["CollectiveWait"])


def training():
    def model(a, w):
        with npu_stream_switch("comm"):
            gathered = collectives.all_gather_tensor_autograd(torch.mm(a, w), 0, dist.group.WORLD)
        return torch.relu(gathered) + collectives.all_reduce(torch.mm(gathered, w), "sum", dist.group.WORLD)
    with support.quiet():
        compiled, backend = support.compiled_by(model)
        results = []
        for function in (model, compiled):
            leaves = [x(0, 4, 4).requires_grad_(), x(1, 4, 4).requires_grad_()]
            out = function(*leaves)
            (out * out).sum().backward()
            results.append([out, *(t.grad for t in leaves)])
    for eager, mine in zip(*results):
        torch.testing.assert_close(mine, eager)
    forward, backward = backend.graphs
    check.assertEqual([label(forward, o.name) for o in operators(forward, "HcomAllGather")], ["comm"])
    check.assertEqual([label(backward, o.name) for o in operators(backward, "HcomReduceScatter")], ["comm"])
    check.assertEqual([graph.plan.verify() for graph in backend.graphs], [[], []])


def unknown_shapes():
    def plain(a, b):
        return collectives.all_reduce(a + 1, "sum", dist.group.WORLD), torch.mm(b, b)

    def labelled(a, b):
        with npu_stream_switch("comm"):
            reduced = collectives.all_reduce(a + 1, "sum", dist.group.WORLD)
        return reduced, torch.mm(b, b)

    def streams(model, several):
        with mock.patch.dict(os.environ, {"ENABLE_DYNAMIC_SHAPE_MULTI_STREAM": several}), support.quiet(), torch.no_grad():
            compiled, backend = support.compiled_by(model, dynamic=True)
            for size in (4, 6, 9):
                inputs = [x(0, size, size), x(1, size, size)]
                check.assertTrue(support.same(compiled(*inputs), model(*inputs)))
        (graph,) = backend.graphs
        check.assertEqual(graph.plan.verify(), [])
        return {lane[-1]: lane for lane in support.lanes(graph)}
    collective = ["?e0", "HcomAllReduce", "CollectiveWait"]
    check.assertEqual(streams(plain, "0"), {"MatMul": ["Add", "HcomAllReduce", "CollectiveWait", "MatMul"]})
    check.assertEqual(streams(plain, "1"), {"MatMul": ["Add", "!e0", "MatMul"], "CollectiveWait": collective})
    for several in ("0", "1"):
        check.assertEqual(streams(labelled, several), {"MatMul": ["MatMul"], "!e0": ["Add", "!e0"], "CollectiveWait": collective})


def around_a_graph_break():
    def model(a, b):
        reduced = collectives.all_reduce(a, "sum", dist.group.WORLD)
        torch._dynamo.graph_break()
        return collectives.all_reduce(reduced + b, "sum", dist.group.WORLD)
    graphs, _ = in_orders(model, [x(0, 4, 4), x(1, 4, 4)], orders=0, fullgraph=False)
    check.assertEqual([len(operators(g, "HcomAllReduce")) for g in graphs], [1, 1])


CASES = {case.__name__: case for case in (
    beside_a_matmul, without_scopes, with_work_of_the_same_label, of_every_kind, in_place, a_write_to_what_a_collective_reads,
    a_pass_that_reduces_in_place, started_here_and_awaited_there, starts_keep_the_order_of_the_program,
    waits_stay_behind_the_starts_before_them, orders_by_hand, training, unknown_shapes, around_a_graph_break)}


def join(store, rank, world):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world,
                            timeout=datetime.timedelta(seconds=PATIENCE / 3))


def be_rank(store, rank, world):
    """A process of a group: prints one line for each case, name and error."""
    import faulthandler
    faulthandler.dump_traceback_later(PATIENCE * 0.9, exit=True)
    join(store, rank, world)
    for name, case in CASES.items():
        try:
            case()
            print(json.dumps([name, ""]), flush=True)
        except Exception:
            print(json.dumps([name, traceback.format_exc()]), flush=True)
            os._exit(1)  # the others' calls are out of step with this rank's
    dist.destroy_process_group()


class Cases:
    """Every case as a test."""


def _test_of(name):
    def test(self):
        self.outcome(name)
    return test


for _name in CASES:
    setattr(Cases, f"test_{_name}", _test_of(_name))


class OneRank(Cases, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        join(os.path.join(cls.folder.name, "store"), 0, 1)

    @classmethod
    def tearDownClass(cls):
        dist.destroy_process_group()
        torch._dynamo.reset()
        cls.folder.cleanup()

    def outcome(self, name):
        CASES[name]()


class TwoRanks(Cases, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        store = os.path.join(cls.folder.name, "store")
        env = dict(os.environ, GLOO_SOCKET_IFNAME="lo", MILLSTREAM_TEST_PLANS=cls.folder.name)
        program = os.environ.get("MILLSTREAM_TEST_PRELUDE", "") + "import sys, test_torch_collectives as t\nt.be_rank(sys.argv[1], int(sys.argv[2]), 2)\n"
        ranks = [subprocess.Popen([sys.executable, "-c", program, store, str(rank)], env=env, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, cwd=os.path.dirname(os.path.abspath(__file__))) for rank in range(2)]
        cls.said, cls.done = [], []
        for rank in ranks:
            try:
                out, err = rank.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                rank.kill()
                out, err = rank.communicate()
            cls.done.append(dict(json.loads(line) for line in out.splitlines() if line.startswith("[")))
            cls.said.append(err)

    def outcome(self, name):
        for rank, done in enumerate(self.done):
            self.assertFalse(done.get(name), f"rank {rank}:\n{done.get(name)}")
        for rank, done in enumerate(self.done):
            if name not in done:
                last, error = list(done.items())[-1] if done else ("the beginning", "")
                self.fail(f"rank {rank} stopped at {last}" + ("" if error else f":\n{self.said[rank]}"))

    def test_the_plans_of_the_ranks_agree(self):
        tool = os.environ.get("MST_CLI")
        if not tool:
            self.skipTest("MST_CLI does not say where the command line is")
        plans = [os.path.join(self.folder.name, f"rank{i}.mst") for i in range(2)]
        done = subprocess.run([tool, "check", plans[0], "--ranks", plans[1]], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()

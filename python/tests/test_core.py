# SPDX-License-Identifier: Apache-2.0
"""The C++ core from Python: graphs, plans, errors and runs of callables. Needs neither torch nor numpy."""
import gc
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import unittest

from millstream import _core

F32 = ("float32", [2, 2])


def labelled(label, priority=0):
    return {"_user_stream_label": label, "_user_stream_priority": str(priority), "_enable_inner_parallel": True}


def two_branches():
    """add and mul, which reads it, on the default stream; mm under label "1" reads add; last reads both."""
    g = _core.Graph("two")
    x = g.add_input("x", "float32", [2, 2])
    w = g.add_constant("w", "float32", [2, 2])
    add = g.add_node("Add", "add", inputs=[x, w], outputs=[F32])
    mm = g.add_node("MatMul", "mm", inputs=[g.output(add), w], outputs=[F32], attributes=labelled("1"), source="model.py:12")
    mul = g.add_node("Mul", "mul", inputs=[g.output(add), x], outputs=[F32])
    last = g.add_node("Sub", "last", inputs=[g.output(mm), g.output(mul)], outputs=[F32])
    g.set_outputs([g.output(last)])
    return g, (add, mm, mul, last)


def random_graph(rng, nodes, labels):
    """A DAG with data and control edges; returns it with each node's predecessors."""
    g = _core.Graph("random")
    g.add_input("x", "float32", [1])
    before = []
    for n in range(nodes):
        near = range(max(0, n - 12), n)
        data = rng.sample(near, min(len(near), rng.choice([0, 1, 1, 2, 3])))
        control = rng.sample(near, min(len(near), rng.choice([0, 0, 0, 1, 2])))
        label = rng.randrange(labels + 1) if labels else 0
        g.add_node("test.any", f"n{n}", inputs=[g.output(p) for p in data], outputs=[("float32", [1])], after=control,
                   attributes=labelled(f"s{label}") if label else {})
        before.append(sorted(set(data) | set(control)))
    return g, before


def random_plan(rng, nodes, streams):
    g, before = random_graph(rng, nodes, streams - 1)
    plan = _core.compile(g, {"strategy": "auto", "streams": streams, "force_streams": True, "cores": 4})
    return plan, before


class Board:
    """What nodes write during a run. A node looks whether all before it have written, and writes what it makes of them."""

    def __init__(self, before, rng=None, raises=()):
        self.before = before
        self.values = [None] * len(before)
        self.early = []
        self.called = []
        pauses = [rng.random() * 2e-4 if rng and rng.random() < 0.3 else 0 for _ in before]
        self.calls = [self.call(n, pauses[n], n in raises) for n in range(len(before))]

    def call(self, n, pause, raises):
        def do():
            self.called.append(n)
            read = [self.values[p] for p in self.before[n]]
            if None in read:
                self.early.append(n)
            if pause:
                time.sleep(pause)  # others run
            if raises:
                raise LookupError(n)
            self.values[n] = hash((n, *read))
        return do

    def sequential(self):
        values = []
        for n, before in enumerate(self.before):
            values.append(hash((n, *[values[p] for p in before])))
        return values


class Graphs(unittest.TestCase):
    def test_ids_count_from_zero_in_order_of_adding(self):
        g, nodes = two_branches()
        self.assertEqual(nodes, (0, 1, 2, 3))
        self.assertEqual(g.output(0), 2)
        self.assertEqual((g.name, g.node_count, g.value_count), ("two", 4, 6))
        self.assertEqual((g.node_name(1), g.value_name(0)), ("mm", "x"))

    def test_text_is_the_text_format(self):
        g, _ = two_branches()
        self.assertEqual(g.text().splitlines(), [
            "graph two opset=23",
            "  input x : f32[2,2]",
            "  input w : f32[2,2]",
            "  add = Add(x, w) : f32[2,2]",
            '  mm = MatMul(add, w) : f32[2,2] @user_label("1") @priority(0) @inner_parallel(true)',
            "  mul = Mul(add, x) : f32[2,2]",
            "  last = Sub(mm, mul) : f32[2,2]",
            "  output last",
        ])

    def test_a_graph_may_say_that_its_shapes_are_only_known_when_it_runs(self):
        self.assertEqual(_core.Graph("g", dynamic=True).text().splitlines()[0], "graph g opset=23 shapes=dynamic")

    def test_several_outputs_are_numbered(self):
        g = _core.Graph()
        n = g.add_node("aten.split", "split", outputs=[F32, ("i64", [])])
        self.assertEqual([g.value_name(g.output(n, i)) for i in (0, 1)], ["split:0", "split:1"])

    def test_attributes_of_every_kind_are_kept(self):
        g = _core.Graph()
        g.add_node("t", "n", outputs=[F32], attributes={"b": True, "i": 3, "f": 0.5, "s": "x", "is": [1, 2], "fs": [0.5], "ss": ["a"]}, cost=2.5,
                   engine="vector")
        line = next(line for line in g.text().splitlines() if line.startswith("  n ="))
        self.assertIn('{b=1, f=0.5, fs=[0.5], i=3, is=[1, 2], s="x", ss=["a"]}', line)
        self.assertIn('@engine("vector")', line)
        self.assertIn("@cost(2.5)", line)

    def test_element_types_are_those_of_torch_and_of_the_text_format(self):
        for name, text in (("torch.float16", "f16"), ("bfloat16", "bf16"), ("bool", "bool"), ("i8", "i8"), ("complex64", "c64"), ("uint16", "u16")):
            g = _core.Graph()
            g.add_input("x", name, [3, "n"])
            self.assertIn(f"input x : {text}[3,n]", g.text())

    def test_an_unknown_element_type_is_named(self):
        with self.assertRaisesRegex(ValueError, 'no element type "float12"'):
            _core.Graph().add_input("x", "float12", [])

    def test_a_negative_size_is_refused(self):
        with self.assertRaisesRegex(ValueError, "a dimension is -1"):
            _core.Graph().add_input("x", "float32", [-1])

    def test_ids_that_do_not_exist_are_refused(self):
        g, _ = two_branches()
        for wrong in (lambda: g.add_node("t", "n", inputs=[99]), lambda: g.add_node("t", "n", after=[4]), lambda: g.output(0, 1),
                      lambda: g.output(9), lambda: g.set_outputs([77]), lambda: g.node_name(4), lambda: g.value_name(6)):
            self.assertRaises(IndexError, wrong)
        self.assertEqual(g.node_count, 4)

    def test_a_cost_is_a_number_from_zero_up(self):
        for cost in (-1.0, float("nan"), float("inf")):
            with self.assertRaisesRegex(ValueError, "a cost is microseconds"):
                _core.Graph().add_node("t", "n", cost=cost)

    def test_equal_names_are_an_error_of_the_graph(self):
        g = _core.Graph()
        g.add_node("t", "n", outputs=[F32])
        g.add_node("t", "n")
        with self.assertRaises(_core.Error) as raised:
            g.text()
        self.assertEqual(raised.exception.code, "E40")
        self.assertIn('"n"', raised.exception.what)


class Plans(unittest.TestCase):
    def test_labels_become_streams_and_the_needed_waits(self):
        g, (add, mm, mul, last) = two_branches()
        plan = _core.compile(g, {"target": "npu", "strategy": "auto"})
        self.assertEqual(plan.streams, 2)
        self.assertNotEqual(plan.stream_of(mm), plan.stream_of(add))
        self.assertEqual(len({plan.stream_of(n) for n in (add, mul, last)}), 1)
        self.assertEqual(plan.waits, [(mm, add), (last, mm)])
        self.assertEqual(plan.verify(), [])

    def test_the_plans_text_holds_graph_and_lanes(self):
        g, _ = two_branches()
        plan = _core.compile(g, {"target": "npu", "strategy": "auto"})
        self.assertEqual(plan.text(), g.text() + "\nschedule\nstream 0: ?e0  mm  !e1\nstream 1: add  !e0  mul  ?e1  last\n")

    def test_an_error_names_the_line_of_the_program(self):
        g, _ = two_branches()
        with self.assertRaises(_core.Error) as raised:
            _core.compile(g, {"enable_single_stream": True})
        error = raised.exception
        self.assertIsInstance(error, RuntimeError)
        self.assertEqual((error.code, error.word, error.where), ("E02", "conflict", "model.py:12"))
        self.assertIn('user stream label "1" on mm', error.what)
        self.assertIn("drop the label", error.help)
        self.assertIn("--> model.py:12:1", str(error))

    def test_options_are_those_of_the_table(self):
        g, _ = two_branches()
        for options, what in (({"streamz": 3}, "streamz"), ({"streams": "many"}, "many"), ({"cores": 0}, "cores 0"), ({"pass_policy": "x"}, "pass_policy"),
                              ({"target": "no-such"}, "no-such")):
            with self.assertRaises(_core.Error) as raised:
                _core.compile(g, options)
            self.assertIn(what, str(raised.exception))
            self.assertIn(raised.exception.code, ("E12", "E41", "E32"))
        for options in ({1: 2}, {"streams": 1.5}, {"streams": [1]}):
            self.assertRaises(TypeError, _core.compile, g, options)
        self.assertEqual(_core.compile(g, {"streams": None, "cores": 3}).streams, 2)

    def test_a_library_that_is_not_there_is_an_error(self):
        g, _ = two_branches()
        with self.assertRaises(_core.Error) as raised:
            _core.compile(g, passes=["/no/such/libpass.so"])
        self.assertEqual(raised.exception.code, "E46")

    def test_warnings_are_texts(self):
        g, _ = two_branches()
        warnings = _core.compile(g, {"target": "npu", "strategy": "auto"}).warnings
        self.assertTrue(any("slower than one stream" in w for w in warnings), warnings)

    def test_the_summary_has_a_line_for_each_stream(self):
        g, _ = two_branches()
        lines = _core.compile(g, {"target": "npu", "strategy": "auto"}).allocation_summary().splitlines()
        self.assertEqual(lines[0], "logic_stream_id: 0, user_stream_label: 1, is_assigned_by_user_stream_pass: false, attached_stream_ids: , "
                         "physical_model_stream_num: 1, hccl_followed_stream_num: 0.")
        self.assertEqual(len([line for line in lines if line.startswith("logic_stream_id")]), 2)

    def test_a_plan_explains_each_node_or_one(self):
        g, (add, mm, _, last) = two_branches()
        plan = _core.compile(g, {"target": "npu", "strategy": "auto"})
        text = plan.explain()
        for name in ("add (Add)", "mm (MatMul)", "mul (Mul)", "last (Sub)"):
            self.assertIn(f"{name} runs on stream", text)
        self.assertTrue(plan.explain(mm).startswith('mm (MatMul) runs on stream 0, the stream of user label "1"'))
        self.assertIn("waits for  mm on stream 0 (data dependency)", plan.explain(last))
        self.assertNotIn("mul", plan.explain(add))
        self.assertRaises(IndexError, plan.explain, 4)

    def test_the_rule_chain_explains_every_rule_that_had_a_say(self):
        g, (_, mm, _, _) = two_branches()
        plan = _core.compile(g, {"target": "npu", "strategy": "ge"})
        self.assertIn("by-label", plan.explain(mm))

    def test_an_operator_may_state_its_own_work(self):
        def took(kind, **work):
            g = _core.Graph("one")
            x = g.add_input("x", "float32", [64, 64])
            g.set_outputs([g.output(g.add_node(kind, "n", inputs=[x, x], outputs=[("float32", [64, 64])], attributes=work))])
            plan = _core.compile(g, {"target": "npu", "strategy": "single"})
            ((_, _, start, end),) = plan.simulate()
            return end - start, "unknown" in "".join(plan.warnings)
        launch = 3.0
        self.assertEqual(took("Foo", _flops=0, _bytes=0), (launch, False))
        long, unknown = took("Foo", _flops=2**40, _bytes=8)
        self.assertGreater(long, 10000 * launch)
        self.assertFalse(unknown)
        self.assertLess(took("MatMul", _flops=0, _bytes=0), took("MatMul"))

    def test_a_simulated_run_keeps_the_order(self):
        g, nodes = two_branches()
        plan = _core.compile(g, {"target": "npu", "strategy": "auto"})
        at = {node: (stream, start, end) for node, stream, start, end in plan.simulate()}
        self.assertEqual(sorted(at), list(nodes))
        for node, (stream, start, end) in at.items():
            self.assertEqual(stream, plan.stream_of(node))
            self.assertLess(start, end)
        for waiting, awaited in plan.waits:
            self.assertLess(at[awaited][2], at[waiting][1])

    def test_dumps_are_those_of_the_ecosystem(self):
        g, _ = two_branches()
        plan = _core.compile(g, {"target": "npu", "strategy": "auto"})
        for form, begin in (("pbtxt", "ir_version"), ("txt", "version: 1\ngraph {")):
            self.assertTrue(plan.dump(form).startswith(begin), plan.dump(form)[:80])
            self.assertIn("_user_stream_label", plan.dump(form))
            self.assertIn("Recv", plan.dump(form))
        with self.assertRaisesRegex(ValueError, "pbtxt or txt"):
            plan.dump("json")

    def test_the_report_is_one_page(self):
        g, _ = two_branches()
        page = _core.compile(g, {"target": "npu", "strategy": "auto"}).report()
        self.assertTrue(page.lower().startswith("<!doctype html>"))
        self.assertIn("simulated on target npu", page)

    def test_the_command_line_accepts_the_plans_text(self):
        cli = os.environ.get("MST_CLI")
        if not cli:
            self.skipTest("MST_CLI does not name the command line")
        g, _ = two_branches()
        plan = _core.compile(g, {"target": "npu", "strategy": "auto"})
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("plan.mst", plan.text()), ("plan.pbtxt", plan.dump("pbtxt")), ("plan.txt", plan.dump("txt"))):
                path = os.path.join(folder, name)
                with open(path, "w") as out:
                    out.write(text)
                done = subprocess.run([cli, "check", path], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("2 streams, 4 nodes, 2 waits: every dependency is ordered", done.stdout)

    def test_a_plan_knows_only_its_nodes(self):
        plan = _core.compile(two_branches()[0])
        self.assertRaises(IndexError, plan.stream_of, 4)
        self.assertRaises(IndexError, plan.logical_stream_of, 4)

    def test_a_graph_goes_on_growing_after_it_was_compiled(self):
        g, nodes = two_branches()
        plan = _core.compile(g)
        more = g.add_node("t", "more", after=[nodes[-1]])
        self.assertIsNotNone(_core.compile(g).stream_of(more))
        self.assertRaises(IndexError, plan.stream_of, more)

    def test_a_stream_too_long_for_the_device_is_cut(self):
        g = _core.Graph()
        for n in range(2000):
            g.add_node("Add", f"n{n}", after=[n - 1] if n else [], attributes=labelled("long"))
        plan = _core.compile(g, {"target": "npu", "strategy": "auto"})
        self.assertGreater(plan.streams, 1)
        self.assertEqual({plan.logical_stream_of(n) for n in range(2000)}, {0})
        self.assertNotEqual(plan.stream_of(0), plan.stream_of(1999))
        self.assertEqual(plan.verify(), [])
        done = []
        _core.Runner(plan).run([lambda n=n: done.append(n) for n in range(2000)])
        self.assertEqual(done, list(range(2000)))


class Runs(unittest.TestCase):
    def test_random_graphs_run_in_an_order_their_edges_allow(self):
        for seed in range(12):
            for streams in (1, 2, 4, 8):
                rng = random.Random(f"{seed} {streams}")
                plan, before = random_plan(rng, rng.randrange(1, 120), streams)
                runner = _core.Runner(plan, rng.choice([0, 1, 2, 4]))
                with self.subTest(seed=seed, streams=streams, workers=runner.workers):
                    for _ in range(3):
                        board = Board(before, rng)
                        runner.run(board.calls)
                        self.assertEqual(board.early, [])
                        self.assertEqual(board.values, board.sequential())
                        self.assertEqual(sorted(board.called), list(range(len(before))))

    def test_each_stream_runs_its_nodes_in_order_and_one_at_a_time(self):
        rng = random.Random(5)
        plan, before = random_plan(rng, 100, 4)
        runner = _core.Runner(plan, 4)
        runner.run(Board(before, rng).calls)
        trace = runner.last_trace()
        self.assertEqual(sorted(t[0] for t in trace), list(range(100)))
        ends = {}
        at = {}
        for node, stream, worker, start, end in trace:
            self.assertEqual(stream, plan.stream_of(node))
            self.assertLess(worker, 4)
            self.assertLessEqual(0, start)
            self.assertLessEqual(start, end)
            self.assertLessEqual(ends.get(stream, 0), start)
            ends[stream] = end
            at[node] = (start, end)
        for node, earlier in enumerate(before):
            for p in earlier:
                self.assertLessEqual(at[p][1], at[node][0])

    def test_streams_run_beside_each_other(self):
        g = _core.Graph()
        for n in range(2):
            g.add_node("t", f"n{n}", outputs=[F32], attributes=labelled(str(n)))
        meeting = threading.Barrier(2, timeout=20)
        _core.Runner(_core.compile(g, {"cores": 4}), 2).run([meeting.wait, meeting.wait])

    def test_none_is_nothing_to_do(self):
        plan, before = random_plan(random.Random(3), 30, 4)
        runner = _core.Runner(plan)
        said = []
        runner.run([None if n % 3 else lambda n=n: said.append(n) for n in range(30)])
        self.assertEqual(sorted(said), list(range(0, 30, 3)))
        self.assertEqual(sorted(t[0] for t in runner.last_trace()), list(range(0, 30, 3)))

    def test_an_exception_comes_back_with_its_traceback(self):
        g, (add, *_) = two_branches()
        runner = _core.Runner(_core.compile(g))

        def broken_inside():
            raise KeyError("gone")
        try:
            runner.run([broken_inside, None, None, None])
            self.fail("nothing was raised")
        except KeyError as error:
            self.assertIn("in broken_inside", "".join(traceback.format_tb(error.__traceback__)))

    def test_after_an_exception_nothing_that_waits_for_it_runs_and_the_next_run_works(self):
        for seed in range(30):
            rng = random.Random(seed)
            streams = rng.choice([1, 2, 4, 8])
            plan, before = random_plan(rng, rng.randrange(2, 80), streams)
            runner = _core.Runner(plan, rng.choice([0, 1, 2, 4]))
            with self.subTest(seed=seed, streams=streams):
                raises = set(rng.sample(range(len(before)), rng.randrange(1, min(4, len(before)) + 1)))
                board = Board(before, rng, raises)
                with self.assertRaises(LookupError) as raised:
                    runner.run(board.calls)
                done = [n for n in board.called if n in raises]
                self.assertEqual(raised.exception.args[0], min(done))
                self.assertEqual(board.early, [])
                self.assertEqual(sorted(t[0] for t in runner.last_trace()), sorted(board.called))
                again = Board(before, rng)
                runner.run(again.calls)
                self.assertEqual(again.values, again.sequential())

    def test_on_one_stream_nothing_runs_behind_an_exception(self):
        plan, before = random_plan(random.Random(1), 20, 1)
        board = Board(before, None, {7})
        self.assertRaises(LookupError, _core.Runner(plan).run, board.calls)
        self.assertEqual(board.called, list(range(8)))

    def test_two_runners_on_two_threads(self):
        failures = []

        def work(seed):
            rng = random.Random(seed)
            plan, before = random_plan(rng, 60, 4)
            runner = _core.Runner(plan, 2)
            for _ in range(20):
                board = Board(before, rng)
                runner.run(board.calls)
                if board.early or board.values != board.sequential():
                    failures.append(seed)
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(failures, [])

    def test_one_runner_on_several_threads(self):
        rng = random.Random(9)
        plan, before = random_plan(rng, 60, 4)
        runner = _core.Runner(plan, 2)
        failures = []

        def work():
            for _ in range(10):
                board = Board(before, random.Random(4))
                runner.run(board.calls)
                if board.early or board.values != board.sequential():
                    failures.append(board.early)
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(failures, [])

    def test_a_callable_may_run_the_same_or_another_runner(self):
        rng = random.Random(2)
        plan, before = random_plan(rng, 25, 4)
        other_plan, other_before = random_plan(rng, 25, 8)
        runner, other = _core.Runner(plan, 2), _core.Runner(other_plan, 2)
        boards = []

        def nested():
            for which, edges in ((runner, before), (other, other_before)):
                boards.append(Board(edges, random.Random(1)))
                which.run(boards[-1].calls)
        runner.run([nested if n % 5 == 0 else None for n in range(25)])
        self.assertEqual(len(boards), 10)
        for board in boards:
            self.assertEqual(board.early, [])
            self.assertEqual(board.values, board.sequential())

    def test_an_exception_of_a_nested_run_reaches_the_outer_caller(self):
        g, _ = two_branches()
        runner = _core.Runner(_core.compile(g))

        def broken():
            raise OSError("inside")
        with self.assertRaisesRegex(OSError, "inside"):
            runner.run([lambda: runner.run([broken] * 4)] + [None] * 3)
        runner.run([None] * 4)

    def test_what_calls_hold_is_let_go(self):
        class Thing:
            pass
        g, _ = two_branches()
        runner = _core.Runner(_core.compile(g, {"cores": 4}), 2)
        for raises in (False, True):
            thing = Thing()
            count = sys.getrefcount(thing)

            def use(thing=thing):
                if raises:
                    raise ValueError(thing)
            try:
                runner.run([use] * 4)
            except ValueError:
                pass
            del use
            gc.collect()
            self.assertEqual(sys.getrefcount(thing), count)

    def test_another_number_of_calls_is_refused(self):
        g, _ = two_branches()
        with self.assertRaises(_core.Error) as raised:
            _core.Runner(_core.compile(g)).run([None])
        self.assertEqual(raised.exception.code, "E33")
        self.assertEqual(raised.exception.what, "run was given 1 calls; the plan has 4 nodes")

    def test_a_call_of_a_node_without_a_task_is_refused(self):
        g = _core.Graph()
        n = g.add_node("Const", "weight", outputs=[F32])
        g.add_node("t", "n", inputs=[g.output(n)])
        plan = _core.compile(g)
        self.assertIsNone(plan.stream_of(n))
        runner = _core.Runner(plan)
        runner.run([None, lambda: None])
        with self.assertRaisesRegex(_core.Error, 'node 0 "weight" has a call, but operators of type Const have no task'):
            runner.run([lambda: None, None])

    def test_a_graph_without_nodes_runs(self):
        _core.Runner(_core.compile(_core.Graph())).run([])

    def test_what_is_called_need_not_be_a_function(self):
        g = _core.Graph()
        g.add_node("t", "n")
        with self.assertRaises(TypeError):
            _core.Runner(_core.compile(g)).run([3])

    def test_a_forked_process_runs_too(self):
        plan, before = random_plan(random.Random(8), 40, 4)
        runner = _core.Runner(plan, 3)
        runner.run(Board(before, random.Random(1)).calls)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                board = Board(before, random.Random(1))
                runner.run(board.calls)
                status = 0 if board.values == board.sequential() else 2
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_a_program_ends_while_a_runner_lives(self):
        program = ("from millstream import _core\n"
                   "import sys, threading\n"
                   "g = _core.Graph()\n"
                   "for n in range(4): g.add_node('t', f'n{n}', attributes={'_user_stream_label': str(n)})\n"
                   "runner = _core.Runner(_core.compile(g, {'cores': 4}), 4)\n"
                   "for _ in range(50): runner.run([lambda: None] * 4)\n"
                   "sys.keep = runner\n"
                   "print('end')\n")
        for _ in range(5):
            done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "end\n", ""))

    def test_runners_come_and_go(self):
        g, _ = two_branches()
        plan = _core.compile(g, {"cores": 4})
        threads = len(os.listdir("/proc/self/task"))
        for _ in range(30):
            _core.Runner(plan, 3).run([lambda: None] * 4)
        self.assertEqual(len(os.listdir("/proc/self/task")), threads)


if __name__ == "__main__":
    unittest.main()

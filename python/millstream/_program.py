# SPDX-License-Identifier: Apache-2.0
"""What runs: one call for each operator with a task, and where their values go.

Every reader of a value has a cell of its own. The maker of a value puts it into the cells of all its readers,
and a reader empties its cells when it is done. So nothing is counted, no two threads write one cell, and a value is
freed when its last reader has run, whichever stream that is on. Operators without a task (the plan gives them
no stream, they hand a value on) are worked out by their readers.

Each call is a Python function of its own, written when the graph is compiled: nothing is looked up while it runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import fx

from . import _torch_compat as compat
from ._convert import Lowered, Operator
from ._fx import is_getitem
from ._names import callee
from ._orders import is_rebound
from ._threads import use

Cells = list[Any]
Step = Callable[[Cells], Any]


class _Source:
    """The text of the functions, and the objects that it names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}

    def name(self, value: Any) -> str:
        """An expression for an object that stays the same."""
        if value is None or type(value) in (bool, int, str):
            return repr(value)
        self.names[name := f"k{len(self.names)}"] = value
        return name

    def functions(self, title: str) -> dict[str, Any]:
        """The functions by name."""
        exec(compile("\n".join(self.lines), f"<{title}, written by _program.py>", "exec"), self.names)  # noqa: S102
        return self.names


class _Reader:
    """One operator, or the end of the run: what it reads, from which cells, and the lines that work it out."""

    def __init__(self, program: Program, source: _Source) -> None:
        self._program, self._source = program, source
        self._known: dict[fx.Node, str] = {}
        self.lines: list[str] = []
        self.cells: list[int] = []

    def expression(self, value: Any) -> str:
        """What an argument is, as text."""
        if isinstance(value, fx.Node):
            if value not in self._known:
                self._known[value] = self._fetch(value)
            return self._known[value]
        if isinstance(value, (list, tuple)):
            inside = "".join(f"{self.expression(v)}, " for v in value)
            return f"[{inside}]" if isinstance(value, list) else f"({inside})"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{self._source.name(k)}: {self.expression(v)}" for k, v in value.items()) + "}"
        if isinstance(value, slice):
            return f"slice({self.expression(value.start)}, {self.expression(value.stop)}, {self.expression(value.step)})"
        return self._source.name(value)

    def _fetch(self, node: fx.Node) -> str:
        program = self._program
        if node.op == "get_attr":
            return self._source.name(program.attribute(node))
        if is_rebound(node):
            return self.expression(node.args[0])
        if is_getitem(node) and not program.is_call(node.args[0]):
            return self._set(f"{self.expression(node.args[0])}[{node.args[1]}]")
        if node.op == "call_function" and not is_getitem(node) and not program.is_call(node) and not program.is_host(node):
            return self._set(self.call(node))
        cell = program.new_cell(node)
        self.cells.append(cell)
        return f"cells[{cell}]"

    def _set(self, expression: str) -> str:
        self.lines.append(f"v{len(self.lines)} = {expression}")
        return f"v{len(self.lines) - 1}"

    def call(self, node: fx.Node) -> str:
        """The node's call."""
        arguments = [self.expression(a) for a in node.args]
        if node.kwargs:  # not as name=value: schemas have names that Python keeps for itself
            arguments.append(f"**{self.expression(dict(node.kwargs))}")
        return f"{self._source.name(node.target)}({', '.join(arguments)})"


class Program:
    """The calls of one plan. `has_task(i)` says whether operator i has a stream."""

    def __init__(self, gm: fx.GraphModule, lowered: Lowered, has_task: Callable[[int], bool]) -> None:
        self._gm = gm
        self._host = set(lowered.host)
        self._calls = {o.node: i for i, o in enumerate(lowered.operators) if has_task(i) and not is_rebound(o.node)}
        self._count = len(lowered.operators)
        self._size = 0
        self._targets: dict[fx.Node, list[int]] = {}
        source = _Source()
        steps = [(node, reader := _Reader(self, source), reader.call(node)) for node in (*self._calls, *lowered.host)]
        end = _Reader(self, source)
        result = end.expression(next(n for n in gm.graph.nodes if n.op == "output").args[0])
        inputs = [n for n in gm.graph.nodes if n.op == "placeholder"]
        source.lines = ["def start(cells, arguments):", *(f"    {line}" for line in self._taken(inputs)), "    pass"]
        for number, (node, reader, call) in enumerate(steps):
            at = self._calls.get(node)
            note = source.name(partial(_explain, lowered.operators[at] if at is not None else node))
            source.lines += [f"def step{number}(cells):", "    try:", *(f"        {line}" for line in reader.lines),
                             f"        value = {call}", "    except Exception as error:", f"        {note}(error)", "        raise",
                             *(f"    cells[{cell}] = None" for cell in reader.cells),
                             *(f"    {line}" for line in self._stored(node, "value"))]
        source.lines += ["def finish(cells):", *(f"    {line}" for line in end.lines), f"    return {result}"]
        made = source.functions(f"operators of {lowered.name}")
        functions = [made[f"step{number}"] for number in range(len(steps))]
        self._steps: list[tuple[int, Step]] = list(zip(self._calls.values(), functions))
        self._host_steps: list[Step] = functions[len(self._calls):]
        self._start: Callable[[Cells, list[Any]], None] = made["start"]
        self._finish: Step = made["finish"]

    def attribute(self, node: fx.Node) -> Any:
        """What a get_attr node names."""
        return compat.attribute_of(self._gm, node)

    def is_call(self, node: fx.Node) -> bool:
        """True for operators that a worker runs."""
        return node in self._calls

    def is_host(self, node: fx.Node) -> bool:
        """True for numbers that are known before the workers start."""
        return node in self._host

    def new_cell(self, node: fx.Node) -> int:
        """A cell that the value of `node` will be put into."""
        self._size += 1
        self._targets.setdefault(node, []).append(self._size - 1)
        return self._size - 1

    def _stored(self, node: fx.Node, value: str) -> list[str]:
        """The lines that put a value, and what is picked from it, into the cells of their readers."""
        lines = [f"cells[{cell}] = {value}" for cell in self._targets.get(node, [])]
        for user in node.users:
            if is_getitem(user) and user.args[0] is node:
                lines += self._stored(user, f"{value}[{user.args[1]}]")
        return lines

    def _taken(self, inputs: list[fx.Node]) -> list[str]:
        return [line for i, node in enumerate(inputs) for line in self._stored(node, f"arguments[{i}]")]

    def start(self, arguments: list[Any], threads: int | None = None, *,
              guarded: bool = True) -> tuple[Cells, list[Callable[[], None] | None]]:
        """The cells of a new run and one call for each operator, which uses so many threads (None: those of the
        thread that calls); empties `arguments`. Calls that are not guarded are for this thread, below autograd."""
        cells: Cells = [None] * self._size
        self._start(cells, arguments)
        arguments.clear()
        for step in self._host_steps:
            step(cells)
        calls: list[Callable[[], None] | None] = [None] * self._count
        if guarded:
            guard = _guard(threads)
            for i, step in self._steps:
                calls[i] = partial(guard, step, cells)
        else:
            for i, step in self._steps:
                calls[i] = partial(step, cells)
        return cells, calls

    def finish(self, cells: Cells) -> Any:
        """The results of a run whose calls are over."""
        with compat.below_autograd():
            return self._finish(cells)


def _guard(threads: int | None) -> Callable[[Step, Cells], None]:
    """Calls a step on any thread as on this one, below autograd."""
    mode = torch.inference_mode if torch.is_inference_mode_enabled() else contextlib.nullcontext
    grad = torch.is_grad_enabled()

    def run(step: Step, cells: Cells) -> None:
        compat.set_grad_mode(grad)  # below autograd too, kernels choose by it: those of LSTM layers do
        if threads is not None:
            use(threads)
        with mode(), compat.below_autograd():
            step(cells)
    return run


def _explain(what: Operator | fx.Node, error: Exception) -> None:
    """Names the operator that raised, and the user's line."""
    if isinstance(what, fx.Node):
        error.add_note(f"in {what.name} ({callee(what)})")
        return
    error.add_note(f"in operator {what.name} ({callee(what.node)})" + (f" at {what.source}" if what.source else ""))

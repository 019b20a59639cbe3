# SPDX-License-Identifier: Apache-2.0
"""What runs: one call for each operator with a task, and where their values go.

Every reader of a value has a cell of its own. The maker of a value puts it into the cells of all its readers,
and a reader empties its cells when it is done. So nothing is counted, no two threads write one cell, and a value is
freed when its last reader has run, whichever stream that is on. Operators without a task (the plan gives them
no stream, they hand a value on) are worked out by their readers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from . import _torch_compat as compat
from ._convert import Lowered
from ._fx import is_getitem
from ._names import callee
from ._orders import is_rebound
from ._threads import use

Cells = list[Any]
Fetch = Callable[[Cells], Any]
Place = tuple[list[int], list[tuple[int, Any]]]  # cells of the value; of results that are picked from it, index and place


def _put(cells: Cells, place: Place, value: Any) -> None:
    own, picked = place
    for cell in own:
        cells[cell] = value
    for index, part in picked:
        _put(cells, part, value[index])


class _Reader:
    """One operator, or the end of the run: what it reads, and from which cells."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._fetches: dict[fx.Node, Fetch] = {}
        self.cells: list[int] = []

    def argument(self, value: Any) -> tuple[bool, Any]:
        """(False, value) for what is the same in each run, else (True, how to fetch it)."""
        if isinstance(value, fx.Node):
            return self.node(value)
        if isinstance(value, (list, tuple)):
            parts = [self.argument(v) for v in value]
            if not any(varies for varies, _ in parts):
                return False, [v for _, v in parts] if isinstance(value, list) else tuple(v for _, v in parts)
            kind = list if isinstance(value, list) else tuple
            return True, lambda cells: kind(v(cells) if varies else v for varies, v in parts)
        if isinstance(value, slice):
            varies, parts3 = self.argument((value.start, value.stop, value.step))
            return (True, lambda cells: slice(*parts3(cells))) if varies else (False, value)
        if isinstance(value, dict):
            keys = list(value)
            varies, found = self.argument([value[k] for k in keys])
            return (True, lambda cells: dict(zip(keys, found(cells)))) if varies else (False, dict(zip(keys, found)))
        return False, value

    def node(self, node: fx.Node) -> tuple[bool, Any]:
        """The same for the value of a node."""
        program = self._program
        if node.op == "get_attr":
            return False, program.attribute(node)
        if node not in self._fetches:
            self._fetches[node] = self._fetch(node)
        return True, self._fetches[node]

    def _fetch(self, node: fx.Node) -> Fetch:
        program = self._program
        if is_rebound(node):
            varies, what = self.argument(node.args[0])
            return what if varies else lambda cells: what
        if is_getitem(node) and not program.is_call(node.args[0]):
            _, whole = self.node(node.args[0])
            return lambda cells: whole(cells)[node.args[1]]
        if node.op == "call_function" and not is_getitem(node) and not program.is_call(node) and not program.is_host(node):
            call = self.call(node)
            return lambda cells: call(cells)
        cell = program.new_cell(node)
        self.cells.append(cell)
        return lambda cells: cells[cell]

    def call(self, node: fx.Node) -> Fetch:
        """The node's call, its arguments fetched."""
        target = node.target
        varies, args = self.argument(tuple(node.args))
        varies_k, kwargs = self.argument(dict(node.kwargs))
        if not varies:
            fixed = args
            args = lambda cells: fixed  # noqa: E731
        if not varies_k:
            return lambda cells: target(*args(cells), **kwargs)
        return lambda cells: target(*args(cells), **kwargs(cells))


class Program:
    """The calls of one plan. `has_task(i)` says whether operator i has a stream."""

    def __init__(self, gm: fx.GraphModule, lowered: Lowered, has_task: Callable[[int], bool]) -> None:
        self._gm, self._lowered = gm, lowered
        self._host = set(lowered.host)
        self._calls = {o.node: i for i, o in enumerate(lowered.operators) if has_task(i) and not is_rebound(o.node)}
        self._size = 0
        self._targets: dict[fx.Node, list[int]] = {}
        self._inputs = [n for n in gm.graph.nodes if n.op == "placeholder"]
        self._steps = [(i, node, *self._step(node)) for node, i in self._calls.items()]
        self._host_steps = [(node, *self._step(node)) for node in lowered.host]
        end = _Reader(self)
        result = next(n for n in gm.graph.nodes if n.op == "output")
        self._varies, self._result = end.argument(result.args[0])
        self._places = {n: self._place(n) for n in (*self._inputs, *self._calls, *self._host)}

    def _step(self, node: fx.Node) -> tuple[Fetch, list[int]]:
        reader = _Reader(self)
        return reader.call(node), reader.cells

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

    def _place(self, node: fx.Node) -> Place:
        """Where the value of a node goes, once all readers are known."""
        picked = [(user.args[1], self._place(user)) for user in node.users if is_getitem(user) and user.args[0] is node]
        return self._targets.get(node, []), [(index, place) for index, place in picked if place != ([], [])]

    def start(self, arguments: list[Any], threads: int | None = None) -> tuple[Cells, list[Callable[[], None] | None]]:
        """The cells of a new run and one call for each operator, which uses so many threads (None: those of the
        thread that calls); empties `arguments`."""
        cells: Cells = [None] * self._size
        for node, value in zip(self._inputs, arguments):
            _put(cells, self._places[node], value)
        arguments.clear()
        for node, call, read in self._host_steps:
            _put(cells, self._places[node], call(cells))
        calls: list[Callable[[], None] | None] = [None] * len(self._lowered.operators)
        mode = torch.inference_mode if torch.is_inference_mode_enabled() else contextlib.nullcontext
        grad = torch.is_grad_enabled()
        for i, node, call, read in self._steps:
            calls[i] = self._bound(cells, i, node, call, read, mode, grad, threads)
        return cells, calls

    def _bound(self, cells: Cells, i: int, node: fx.Node, call: Fetch, read: list[int],
               mode: Callable[[], Any], grad: bool, threads: int | None) -> Callable[[], None]:
        place = self._places[node]

        def run() -> None:
            compat.set_grad_mode(grad)  # below autograd too, kernels choose by it: those of LSTM layers do
            if threads is not None:
                use(threads)
            try:
                with mode(), compat.below_autograd():
                    value = call(cells)
            except Exception as error:
                operator = self._lowered.operators[i]
                error.add_note(f"in operator {operator.name} ({callee(node)})"
                               + (f" at {operator.source}" if operator.source else ""))
                raise
            for cell in read:
                cells[cell] = None
            _put(cells, place, value)
        return run

    def finish(self, cells: Cells) -> Any:
        """The results of a run whose calls are over."""
        with compat.below_autograd():
            return self._result(cells) if self._varies else self._result

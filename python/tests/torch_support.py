# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of the PyTorch front-end: compile and compare with eager, look at plans, play schedules."""

from __future__ import annotations

import contextlib
import random
import unittest
import warnings
from collections.abc import Callable, Iterator
from typing import Any

try:
    import torch
except ImportError as missing:
    raise unittest.SkipTest("PyTorch is not installed") from missing

import millstream
from millstream._plan import CompiledGraph


@contextlib.contextmanager
def quiet() -> Iterator[list[warnings.WarningMessage]]:
    """Collects warnings instead of showing them."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield said


def texts(said: list[warnings.WarningMessage], kind: type[Warning] = millstream.ScopeWarning) -> list[str]:
    """The texts of the warnings of one kind, but for those about eager code (the tests run eager code on purpose)."""
    return [str(w.message) for w in said if issubclass(w.category, kind) and "runs eagerly" not in str(w.message)]


def config(**options: Any) -> millstream.CompilerConfig:
    """A configuration with options set by name; a dot in a name is written as two underscores."""
    made = millstream.CompilerConfig()
    for name, value in options.items():
        made.set(name.replace("__", "."), value)
    return made


def compiled_by(model: Any, made: millstream.CompilerConfig | None = None, **how: Any) -> tuple[Any, Any]:
    """(the model compiled afresh, its back-end)."""
    torch._dynamo.reset()
    backend = millstream.get_backend(compiler_config=made)
    return torch.compile(model, backend=backend, **{"fullgraph": True, "dynamic": False, **how}), backend


def flat(value: Any) -> list[torch.Tensor]:
    """The tensors of a result."""
    return [t for t in torch.utils._pytree.tree_leaves(value) if isinstance(t, torch.Tensor)]


def copies(inputs: Any) -> list[Any]:
    """Inputs that a run may write to."""
    return [t.detach().clone().requires_grad_(t.requires_grad) if isinstance(t, torch.Tensor) else t for t in inputs]


def same(a: Any, b: Any) -> bool:
    """Bit for bit."""
    left, right = flat(a), flat(b)
    return len(left) == len(right) and all(x.dtype == y.dtype and torch.equal(x, y) for x, y in zip(left, right))


def run(model: Any, inputs: Any, made: millstream.CompilerConfig | None = None, *, runs: int = 2,
        **how: Any) -> tuple[list[CompiledGraph], list[str]]:
    """Runs a model compiled and eagerly, without gradients; AssertionError if they differ in results or in inputs
    that they write to, or if a plan is not proved. Returns the graphs and what the front-end warned of."""
    with quiet() as said, torch.no_grad():
        compiled, backend = compiled_by(model, made, **how)
        for _ in range(runs):
            mine, theirs = copies(inputs), copies(inputs)
            got, want = compiled(*mine), model(*theirs)
            assert same(got, want), "compiled and eager results differ"
            assert same(mine, theirs), "compiled and eager code leave different inputs"
    for graph in backend.graphs:
        assert graph.plan.verify() == [], graph.plan.verify()
    return backend.graphs, texts(said)


def operators(graph: CompiledGraph, kind: str) -> list[Any]:
    """The operators of one type, in order."""
    return [o for o in graph.lowered.operators if o.type == kind]


def named(graph: CompiledGraph, name: str) -> Any:
    """The operator of a name."""
    return next(o for o in graph.lowered.operators if o.name == name)


def controls(graph: CompiledGraph, name: str) -> list[str]:
    """The names of the operators that an operator comes after by a control edge."""
    return [graph.lowered.operators[i].name for i in named(graph, name).after]


def label(graph: CompiledGraph, name: str) -> str | None:
    """The stream label of an operator."""
    return named(graph, name).attributes.get("_user_stream_label")


def overlap(graph: CompiledGraph, *names: str) -> bool:
    """True if the simulated device runs the operators of these names all at once for some time."""
    spans = {graph.lowered.operators[node].name: (start, end) for node, _, start, end in graph.plan.simulate()}
    return max(spans[name][0] for name in names) < min(spans[name][1] for name in names)


def lanes(graph: CompiledGraph) -> list[list[str]]:
    """The schedule's streams: names, !e0 records, ?e0 waits."""
    schedule = graph.plan.text().partition("\nschedule\n")[2]
    return [line.partition(": ")[2].split() for line in schedule.splitlines() if line.startswith("stream ")]


def play(graph: CompiledGraph, calls: list[Callable[[], None] | None], seed: int) -> None:
    """Runs calls on one thread in a random order that the schedule allows: the streams in turn, waits consume."""
    index = {o.name: i for i, o in enumerate(graph.lowered.operators)}
    left = [lane for lane in lanes(graph) if lane]
    rng = random.Random(seed)
    recorded: set[str] = set()
    while left:
        ready = [lane for lane in left if not lane[0].startswith("?") or lane[0][1:] in recorded]
        assert ready, f"the schedule hangs: {left}"
        lane = rng.choice(ready)
        task = lane.pop(0)
        if task.startswith("!"):
            recorded.add(task[1:])
        elif task.startswith("?"):
            recorded.remove(task[1:])
        else:
            call = calls[index[task]]
            if call is not None:
                call()
        left = [lane for lane in left if lane]


@contextlib.contextmanager
def played(seed: int) -> Iterator[None]:
    """Inside, graphs run through `play` instead of the runner."""
    before = CompiledGraph.__call__

    def call(self: CompiledGraph, arguments: list[Any]) -> Any:
        cells, calls = self.program.start(arguments)
        play(self, calls, seed)
        return self.program.finish(cells)

    CompiledGraph.__call__ = call  # type: ignore[method-assign]
    try:
        yield
    finally:
        CompiledGraph.__call__ = before  # type: ignore[method-assign]

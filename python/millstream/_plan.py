# SPDX-License-Identifier: Apache-2.0
"""From a graph behind AOTAutograd to a plan that runs: the stages in order."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from torch import fx

from . import _torch_compat as compat
from ._after_aot import (BlocksOf, blocks_by_markers, blocks_by_meta, compare_carriers, strip_branches, strip_markers)
from ._collectives import order_collectives
from ._convert import Lowered, build, host_nodes, is_operator, lower
from ._dumps import write_data_dump, write_graphs
from ._fx import other_devices
from ._hazards import add_hazards
from ._markers import LABEL
from ._orders import After, hand_orders, rebind_waits
from ._program import Program
from ._scopes import Block, effective, label_of, settle
from ._threads import shared
from .config import CompilerConfig
from .errors import PlanWarning, ScopeError, ScopeWarning, warn

DYNAMIC_ENVIRONMENT = "ENABLE_DYNAMIC_SHAPE_MULTI_STREAM"


@dataclass
class CompiledGraph:
    """One graph, its plan and what runs it. `kind` is inference, forward or backward. Threads may run it at once.

    A graph with values of another device than the CPU runs in its list's order on the caller's thread, whose
    current stream of that device is what the caller's own work is ordered by.
    """

    kind: str
    name: str
    compile_id: str | None
    lowered: Lowered
    plan: Any
    program: Program
    runner: Any
    warnings: list[str]
    on_cpu: bool

    def __call__(self, arguments: list[Any]) -> Any:
        """One run; `arguments` is emptied."""
        if self.on_cpu and self.runner.workers > 1:
            with shared(self.runner.workers) as threads:
                cells, calls = self.program.start(arguments, threads)
                self.runner.run(calls)
            return self.program.finish(cells)
        cells, calls = self.program.start(arguments, guarded=False)
        with compat.below_autograd():
            if self.on_cpu:
                self.runner.run(calls)
            else:
                for call in calls:
                    if call is not None:
                        call()
        return self.program.finish(cells)


class _Report:
    """Collects what a compilation has to say, and says it; with strict scopes, lost scopes are errors."""

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self.texts: list[str] = []

    def lost(self, text: str) -> None:
        if self.strict:
            raise ScopeError(text)
        self.say(text)

    def say(self, text: str) -> None:
        self.texts.append(text)
        warn(text, ScopeWarning)

    def note(self, text: str, *, aloud: bool) -> None:
        """What the library says of a plan: a warning where the user asked for streams, else only for `explain`."""
        self.texts.append(text)
        if aloud:
            warn(text, PlanWarning)


def blocks_of(gm: fx.GraphModule, inputs: Any, kind: str, config: CompilerConfig) -> BlocksOf:
    """The blocks around every node, after the user's pass; the graph has no scope markers any more.

    Raises ScopeError if the pass leaves markers that do not match.
    """
    base: BlocksOf = {}
    if kind == "inference":
        compare_carriers(gm.graph, config.strict_scopes)
    else:
        base = blocks_by_meta(gm.graph)
        strip_markers(gm, orders=kind == "backward")
    for run in (config.post_grad_custom_pre_pass, config.post_grad_custom_post_pass):
        if run is not None:
            run(gm, inputs, config)
            settle(gm.graph)
            compat.complete(gm.graph)
    blocks = blocks_by_markers(gm.graph, base)
    strip_markers(gm, orders=False)
    return blocks


def plan_options(lowered: Lowered, config: CompilerConfig) -> dict[str, Any]:
    """The library's options. Labels ask for the rules of the graph engine, where whatever has no label shares the
    default stream; without labels the streams are chosen by prediction, or are one where shapes are not known."""
    options: dict[str, Any] = {"target": config.target}
    if config.streams is not None:
        options["streams"] = config.streams
    if any(o.engine for o in lowered.operators):
        options["hcom_parallel"] = False  # the rule would take waits away from their collectives
    if config.ge_config.enable_single_stream:
        return {**options, "single_stream": True}
    several = os.environ.get(DYNAMIC_ENVIRONMENT) == "1"
    if lowered.symbolic and several:
        options["dynamic_multi_stream"] = True
    if config.strategy is not None:
        options["strategy"] = config.strategy
    elif any(LABEL in o.attributes for o in lowered.operators) or (lowered.symbolic and several):
        options["strategy"] = "ge"
    else:
        options["strategy"] = "single" if lowered.symbolic else "auto"
    return options


def _report_lost(entered: list[Block], lowered: Lowered, plan: Any, report: _Report) -> None:
    """Each entered block must have a say about an operator that has a stream; a label must have kept its stream."""
    running: set[int] = set()
    stated: set[int] = set()
    for i, operator in enumerate(lowered.operators):
        ids = {b.id for b in effective(operator.blocks)}
        stated |= ids
        if plan.stream_of(i) is not None:
            running |= ids
    for block in entered:
        if dict(block.pairs).get(LABEL) == "":
            report.say(f"{block} has no label: its operators run where those without a scope do")
        elif block.id not in stated:
            report.lost(f"{block} has no effect: no operator is left inside, but for those of scopes inside it")
        elif block.id not in running:
            report.lost(f"{block} has no effect: its operators only hand values on and run on no stream")
    home: dict[tuple[str, str], int] = {}
    for i, operator in enumerate(lowered.operators):
        label, stream = label_of(operator.blocks), plan.logical_stream_of(i)
        if label is not None and stream is not None:
            first = home.setdefault((label, operator.engine), stream)
            if first != stream:
                report.lost(f"label {label!r}: {operator.name} is on stream {stream}, others of the label on stream {first}")


def compile_graph(gm: fx.GraphModule, inputs: Any, kind: str, name: str, entered: list[Block],
                  config: CompilerConfig) -> CompiledGraph:
    """Plans one graph. `entered` are the blocks that the model enters, for the report of those that are lost."""
    from . import _core
    report = _Report(config.strict_scopes)
    compat.complete(gm.graph)
    for said in strip_branches(gm):
        report.lost(f"{said} is inside a branch or a loop body, which runs as one operator: it has no effect there")
    blocks = blocks_of(gm, inputs, kind, config)
    if kind == "inference":
        seen = {b.id: b for found in blocks.values() for b in found}
        entered = list(seen.values())
    after: After = {}
    rebind_waits(gm.graph, blocks, after)
    host = set(host_nodes(gm.graph))
    hand_orders(gm.graph, blocks, after, lambda node: is_operator(node, host))
    order_collectives(gm.graph, after)
    add_hazards(gm.graph, after)
    gm.recompile()
    lowered = lower(gm, name, blocks, after)
    plan = _core.compile(build(lowered), plan_options(lowered, config))
    write_graphs(config, gm, lowered, plan)
    write_data_dump(config, lowered)
    labelled = any(LABEL in o.attributes for o in lowered.operators)
    for text in plan.warnings:
        report.note(text.removeprefix("warning: "), aloud=labelled)
    if kind != "backward":
        _report_lost(entered, lowered, plan, report)
    devices = other_devices(gm.graph)
    if devices:
        report.say(f"the graph has values on {', '.join(devices)}: its operators run one after another on the caller's "
                   "stream there; the plan's streams are used for CPU tensors only")
    program = Program(gm, lowered, lambda i: plan.stream_of(i) is not None)
    return CompiledGraph(kind, name, compat.compile_id(), lowered, plan, program,
                         _core.Runner(plan, workers=config.workers), report.texts, not devices)

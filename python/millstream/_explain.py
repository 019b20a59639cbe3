# SPDX-License-Identifier: Apache-2.0
"""What became of a compiled model: its graphs, their streams, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _torch_compat as compat
from ._register import ALL

if TYPE_CHECKING:
    from ._plan import CompiledGraph


def graphs(compiled: Any = None) -> list[CompiledGraph]:
    """The graphs of a function or module from torch.compile, or all that exist; oldest first."""
    alive = ALL.alive()
    if compiled is None:
        return alive
    wanted = set(compat.compile_ids_of(compiled))
    return [graph for graph in alive if graph.compile_id in wanted]


def explain(compiled: Any = None) -> str:
    """The graphs of a compiled model as text: streams with their labels, waits, and a reason for each operator.

    A model is compiled when it first runs: run it once before. Without an argument, all compiled graphs.
    """
    found = graphs(compiled)
    if not found:
        return ("no graph compiled by millstream is known for this: run the model once, and look at "
                "millstream.explain() for graphs of functions that it calls\n")
    return "\n".join(_one(graph) for graph in found)


def _one(graph: CompiledGraph) -> str:
    lines = [f"{graph.name}: {graph.kind}, {len(graph.lowered.operators)} operators, {graph.plan.streams} streams, "
             f"{len(graph.plan.waits)} waits"]
    lines += [f"warning: {text}" for text in graph.warnings]
    return "\n".join(lines) + "\n" + graph.plan.allocation_summary().rstrip() + "\n" + graph.plan.explain().rstrip() + "\n"

# SPDX-License-Identifier: Apache-2.0
"""An FX graph as a list of operators, and that list as a graph of the library."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from . import _collectives
from . import _torch_compat as compat
from ._after_aot import BlocksOf
from ._fx import Desc, desc_of, is_getitem, is_number, is_symbolic, source_of
from ._markers import ORDERS, SCOPES
from ._names import Names, type_of
from ._orders import After, is_rebound, producer
from ._scopes import Blocks, attributes
from ._work import work_of


@dataclass
class Operator:
    """One node of the plan's graph. `inputs` are (operator or None, result or index of an input or constant)."""

    node: fx.Node
    name: str
    type: str
    inputs: list[Value]
    outputs: list[Desc]
    attributes: dict[str, Any]
    blocks: Blocks
    source: str
    engine: str = ""
    after: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Value:
    """A tensor: result `index` of operator `operator`, or, if that is None, the leaf `index`."""

    operator: int | None
    index: int


@dataclass
class Leaf:
    """A tensor that exists before the run: an input of the graph, or a constant that it holds."""

    node: fx.Node
    name: str
    desc: Desc
    constant: bool


@dataclass
class Lowered:
    """The whole graph. `host` are the nodes that only compute numbers from numbers and shapes of inputs; `symbolic` says
    that some shapes or numbers are only known when it runs."""

    name: str
    leaves: list[Leaf]
    operators: list[Operator]
    host: list[fx.Node]
    symbolic: bool
    results: list[Value]
    index: dict[fx.Node, int]


def host_nodes(graph: fx.Graph) -> list[fx.Node]:
    """Calls that give a number and read only inputs and such numbers: they need no stream."""
    known: dict[fx.Node, None] = {}
    for node in graph.nodes:
        if node.op == "call_function" and is_number(node.meta.get("val")):
            if all(n.op == "placeholder" or n in known for n in node.all_input_nodes):
                known[node] = None
    return list(known)


def is_operator(node: fx.Node, host: set[fx.Node]) -> bool:
    """True for calls that become nodes of the plan's graph."""
    return (node.op == "call_function" and node not in host and not is_getitem(node) and node.target not in SCOPES
            and (node.target not in ORDERS or bool(node.users)))


def lower(gm: fx.GraphModule, name: str, blocks: BlocksOf, after: After) -> Lowered:
    """Names, types, descs, attributes and edges of every operator, in the order of the graph's list."""
    names = Names()
    host = host_nodes(gm.graph)
    on_host = set(host)
    out = Lowered(name, [], [], host, is_symbolic(gm.graph), [], {})
    values: dict[fx.Node, Value] = {}
    for node in gm.graph.nodes:
        value = node.meta.get("val")
        if node.op == "get_attr":
            value = compat.attribute_of(gm, node)
        if node.op in ("placeholder", "get_attr") and isinstance(value, torch.Tensor):
            values[node] = Value(None, len(out.leaves))
            out.leaves.append(Leaf(node, names.take(str(node.target)), desc_of(value), node.op == "get_attr"))
        elif is_getitem(node):
            source = values.get(producer(node))
            if source is not None and node.args[0] is producer(node):
                values[node] = Value(source.operator, node.args[1])
            elif source is not None:
                values[node] = source
        elif is_operator(node, on_host):
            kind = type_of(node)
            results = list(value) if isinstance(value, (list, tuple)) else [] if value is None else [value]
            here = len(out.operators)
            out.index[node] = here
            values[node] = Value(here, 0)
            earlier = {out.index[n]: None for n in map(producer, after.get(node, ())) if n in out.index}
            out.operators.append(Operator(
                node, names.take(kind), kind, [values[n] for n in _tensors_read(node) if n in values],
                [desc_of(r) for r in results], _attributes(node, blocks.get(node, ())), blocks.get(node, ()),
                source_of(node), _collectives.ENGINE if _collectives.type_of(node) else "", list(earlier)))
        elif node.op == "output":
            out.results = [values[n] for n in node.all_input_nodes if n in values]
    return out


def _attributes(node: fx.Node, blocks: Blocks) -> dict[str, Any]:
    """What the scopes say, and the group of a collective, by which the ranks' plans are compared."""
    group = _collectives.group_of(node) if _collectives.is_start(node) else None
    return {**attributes(blocks), **({} if group is None else {"group": group})}


def _tensors_read(node: fx.Node) -> list[fx.Node]:
    """The values that a call reads, in the order of its arguments; a matrix product with a sum has the sum last."""
    if is_rebound(node):
        return [node.args[0]]  # type: ignore[list-item]
    read: list[fx.Node] = []
    fx.node.map_arg((node.args, node.kwargs), read.append)
    if type_of(node) in ("Gemm", "BatchGemm"):
        read = read[1:] + read[:1]
    return read


def build(lowered: Lowered) -> Any:
    """The library's graph; node ids are the indices of the operators."""
    from . import _core
    graph = _core.Graph(lowered.name, dynamic=lowered.symbolic)
    leaves = [(graph.add_constant if leaf.constant else graph.add_input)(leaf.name, dtype=leaf.desc[0], shape=leaf.desc[1])
              for leaf in lowered.leaves]

    def ident(value: Value) -> int:
        return leaves[value.index] if value.operator is None else graph.output(value.operator, value.index)

    for operator in lowered.operators:
        graph.add_node(type=operator.type, name=operator.name, inputs=[ident(v) for v in operator.inputs], outputs=operator.outputs,
                       after=operator.after, attributes={**operator.attributes, **work_of(operator.node)}, engine=operator.engine,
                       source=operator.source, cost=0 if operator.type == _collectives.WAIT_TYPE else None)
    graph.set_outputs([ident(v) for v in dict.fromkeys(lowered.results)])
    return graph

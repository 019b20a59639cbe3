# SPDX-License-Identifier: Apache-2.0
"""Collectives of process groups: a start that does not block, and the wait for its result.

Between the two the group reads what the start was given and writes the result, beside all streams: those accesses
end at the wait. Both nodes belong to the engine that devices have for the links between them.
"""

from __future__ import annotations

from torch import fx

from ._orders import After, producer

ENGINE = "DNN_HCCL"

_SPACES = ("_c10d_functional", "_c10d_functional_autograd")
_TYPES = {
    "all_gather_into_tensor": "HcomAllGather", "all_reduce": "HcomAllReduce", "all_to_all_single": "HcomAllToAllV",
    "batch_p2p_ops": "HcomBatchSendRecv", "broadcast": "HcomBroadcast", "irecv": "HcomReceive", "isend": "HcomSend",
    "reduce_scatter_tensor": "HcomReduceScatter",
}
_VARIANTS = ("_", "_out", "_coalesced")
WAIT_TYPE = "CollectiveWait"


def _name(node: fx.Node) -> str:
    """The operator's name without the words for its variants; empty for what is no operator of these spaces."""
    schema = getattr(node.target, "_schema", None)
    space, _, name = schema.name.partition("::") if schema is not None else ("", "", "")
    if node.op != "call_function" or space not in _SPACES:
        return ""
    for variant in _VARIANTS:
        name = name.removesuffix(variant)
    return name


def is_wait(node: fx.Node) -> bool:
    """True for the node after which a result is there; it hands the same tensor on."""
    return _name(node) == "wait_tensor"


def is_start(node: fx.Node) -> bool:
    """True for nodes that give a group work."""
    return _name(node) in _TYPES


def type_of(node: fx.Node) -> str | None:
    """The operator type of a start or a wait; None for other nodes."""
    return WAIT_TYPE if is_wait(node) else _TYPES.get(_name(node))


def group_of(node: fx.Node) -> str | None:
    """The name of the group that a start gives work to; None if the graph does not say."""
    for i, argument in enumerate(node.target._schema.arguments):  # type: ignore[union-attr]
        if argument.name == "group_name":
            group = node.args[i] if i < len(node.args) else node.kwargs.get("group_name")
            return group if isinstance(group, str) else None
    return None


def order_collectives(graph: fx.Graph, after: After) -> None:
    """Starts follow each other as in the program, whatever their groups, and no wait comes before a start that the
    program has in front of it. So no rank waits for another where the program itself would not."""
    last: fx.Node | None = None
    for node in graph.nodes:
        if last is not None and (is_start(node) or is_wait(node)) and last not in map(producer, node.all_input_nodes):
            after.setdefault(node, []).append(last)
        if is_start(node):
            last = node

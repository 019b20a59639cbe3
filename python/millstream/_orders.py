# SPDX-License-Identifier: Apache-2.0
"""Orders that the user asks for by hand, as edges between FX nodes: waits for tensors, record and wait, tagged events."""

from __future__ import annotations

from collections.abc import Callable

from torch import fx

from . import _torch_compat as compat
from ._after_aot import BlocksOf
from ._fx import is_getitem, place_of
from ._markers import EVENT_RECORD, EVENT_WAIT, ORDERS, RECORD, WAIT, WAIT_MARKER, WAIT_TENSOR
from ._scopes import label_of
from .errors import ScopeWarning, warn

After = dict[fx.Node, list[fx.Node]]
REBOUND = "millstream.rebound"


def producer(node: fx.Node) -> fx.Node:
    """The operator behind a value: of one result among several, the operator that made them all."""
    while is_getitem(node):
        node = node.args[0]  # type: ignore[assignment]
    return node


def is_rebound(node: fx.Node) -> bool:
    """True for the waits that `rebind_waits` made: they pass their first argument on as it is."""
    return REBOUND in node.meta


def _aliases_before(node: fx.Node, position: dict[fx.Node, int], limit: int) -> list[fx.Node]:
    """Views of `node`, and views of those, that exist before `limit`."""
    found: list[fx.Node] = []
    stack = [node]
    while stack:
        for user in stack.pop().users:
            if position.get(user, limit) >= limit or user in found:
                continue
            if compat.is_view(user.target) or is_getitem(user):
                found.append(user)
                stack.append(user)
    return found


def rebind_waits(graph: fx.Graph, blocks: BlocksOf, after: After) -> None:
    """wait_marker(x, dep) becomes w = wait_tensor(x, dep), and whatever uses x later uses w.

    Results that hand an input back unchanged stay the input. Views of x that exist already cannot become w,
    so their later users get an edge from w.
    """
    position = {node: i for i, node in enumerate(graph.nodes)}
    result = next(n for n in graph.nodes if n.op == "output")
    for marker in [n for n in graph.nodes if n.target is WAIT_MARKER]:
        here = position[marker]
        value, dependency = marker.args
        with graph.inserting_before(marker):
            wait = graph.call_function(WAIT_TENSOR, (value, dependency))
        wait.meta = {**value.meta, "stack_trace": marker.meta.get("stack_trace"), REBOUND: True}
        blocks[wait] = blocks[marker]
        position[wait] = here
        after[wait] = [*after.pop(marker, []), producer(dependency)]
        later = [u for u in value.users if position[u] > here and not (u is result and value.op == "placeholder")]
        for user in later:
            user.replace_input_with(value, wait)
        for view in _aliases_before(value, position, here):
            for user in view.users:
                if position[user] > here and user is not result:
                    after.setdefault(user, []).append(wait)
                    later.append(user)
        if not later:
            warn(f"npu_wait_tensor{place_of(marker)} has no effect: nothing uses its first argument after it", ScopeWarning)
        graph.erase_node(marker)


def _is_task(node: fx.Node) -> bool:
    """False for operators that only hand a value on, for which a plan may have no task."""
    return not (compat.is_view(node.target) or is_rebound(node))


def hand_orders(graph: fx.Graph, blocks: BlocksOf, after: After, is_operator: Callable[[fx.Node], bool]) -> None:
    """record, wait and tagged events become edges, and leave the graph.

    A record stands for the last operator before it on the same label; a wait holds back the next operator on
    its label, over the ends of blocks. A view may have no task, so it stands for the task before it too, and
    a wait in front of it goes on to the next task.
    """
    last: dict[str | None, list[fx.Node]] = {}
    pending: dict[str | None, list[fx.Node]] = {}
    waits: dict[str | None, str] = {}
    recorded: dict[fx.Node, list[fx.Node]] = {}
    tagged: dict[str, list[fx.Node]] = {}
    for node in list(graph.nodes):
        label = label_of(blocks.get(node, ()))
        if node.target is RECORD:
            recorded[node] = last.get(label, [])
        elif node.target is EVENT_RECORD:
            tagged[node.args[0]] = last.get(label, [])
        elif node.target is EVENT_WAIT:
            pending.setdefault(label, []).extend(tagged.get(node.args[0], []))
        elif node.target is WAIT:
            for source in map(producer, node.args[0]):
                pending.setdefault(label, []).extend(recorded.get(source, [source]))
        elif is_operator(node):
            if pending.get(label):
                after.setdefault(node, []).extend(pending[label])
                waits.pop(label, None)
            if _is_task(node):
                pending.pop(label, None)
                last[label] = [node]
            else:
                last[label] = [*last.get(label, []), node]
        if node.target in (WAIT, EVENT_WAIT) and pending.get(label):
            waits[label] = place_of(node)
    for label, where in waits.items():
        stream = "the default stream" if label is None else f"stream {label!r}"
        warn(f"a wait{where} has no effect: no operator on {stream} comes after it", ScopeWarning)
    for node in reversed(list(graph.nodes)):
        if node.target in ORDERS and not node.users:
            graph.erase_node(node)

# SPDX-License-Identifier: Apache-2.0
"""Orders that data edges do not show: through storages that operators write to, and through the world outside.

AOTAutograd hands over a graph that is functional but for the last copies into mutated inputs. Passes of users
may add operators that write in place. Each pair of accesses to one storage of which one writes becomes an
edge, in the order of the graph's list, and so do operators that draw random numbers or act outside of tensors. What
a collective accesses counts until the wait for it.
"""

from __future__ import annotations

from collections.abc import Hashable

import torch
from torch import fx

from . import _torch_compat as compat
from ._collectives import is_start, is_wait
from ._fx import is_getitem
from ._orders import After, is_rebound, producer

_RANDOM = "the generator"
_WORLD = "the world"
_WRITING_HIGHER_ORDER = ("triton_kernel_wrapper_mutation",)


class _Storages:
    """Sets of nodes that may share memory: joined by their fake tensors and by what schemas say about views."""

    def __init__(self, graph: fx.Graph) -> None:
        self._parent: dict[Hashable, Hashable] = {}
        for node in graph.nodes:
            for tensor in compat.tensors_of(node):
                key = compat.storage_key(tensor)
                if key is not None:
                    self._join(node, key)
            aliases = compat.is_view(node.target) or is_rebound(node) or is_getitem(node) or is_wait(node)
            if aliases and node.args and isinstance(node.args[0], fx.Node):
                self._join(node, node.args[0])
            for argument in _written(node):
                self._join(node, argument)

    def of(self, node: fx.Node) -> Hashable:
        """The set of a node."""
        found: Hashable = node
        while self._parent.get(found, found) != found:
            found = self._parent[found]
        return found

    def _join(self, a: Hashable, b: Hashable) -> None:
        root_a, root_b = self.of(a), self.of(b)  # type: ignore[arg-type]
        if root_a != root_b:
            self._parent[root_b] = root_a


def _written(node: fx.Node) -> list[fx.Node]:
    """The values that an operator writes to."""
    if node.op != "call_function":
        return []
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        return list(node.all_input_nodes) if node.target.name() in _WRITING_HIGHER_ORDER else []
    found: list[fx.Node] = []
    for i, name in compat.written_arguments(node.target):
        value = node.args[i] if i < len(node.args) else node.kwargs.get(name)
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(item, fx.Node):
                found.append(item)
    return found


def _accesses(node: fx.Node, storages: _Storages) -> tuple[set[Hashable], set[Hashable]]:
    """(what the operator reads, what it writes); the world and the generator count as storages."""
    writes: set[Hashable] = {storages.of(n) for n in _written(node)}
    if compat.is_random(node):
        writes.add(_RANDOM)
    elif node.is_impure() and not compat.written_arguments(node.target) and not (is_start(node) or is_wait(node)):
        writes.add(_WORLD)
    if compat.is_view(node.target) or is_rebound(node):
        return set(), writes
    return {storages.of(n) for n in node.all_input_nodes}, writes


def add_hazards(graph: fx.Graph, after: After) -> None:
    """Adds the edges to `after`. Linear in nodes and accesses."""
    storages = _Storages(graph)
    writer: dict[Hashable, fx.Node] = {}
    readers: dict[Hashable, list[fx.Node]] = {}
    running: dict[Hashable, tuple[set[Hashable], set[Hashable]]] = {}  # by what is waited for
    for node in graph.nodes:
        if node.op != "call_function" or is_getitem(node):
            continue
        reads, writes = _accesses(node, storages)
        if is_start(node):
            running |= {place: (reads, writes) for place in {storages.of(node), *writes}}
        elif is_wait(node):
            started = running.get(storages.of(node), (set(), set()))
            reads, writes = reads | started[0], writes | started[1]
        before: list[fx.Node] = []
        for place in sorted(reads | writes, key=str):
            if place in writer:
                before.append(writer[place])
            if place in writes:
                before += readers.pop(place, [])
                writer[place] = node
            else:
                readers.setdefault(place, []).append(node)
        for earlier in before:
            if producer(earlier) is not node:
                after.setdefault(node, []).append(earlier)

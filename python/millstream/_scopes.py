# SPDX-License-Identifier: Apache-2.0
"""Blocks of scopes in a graph: a stack that is replayed while the nodes are walked in order."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass

from torch import fx

from ._fx import place_of, source_of
from ._markers import ALIASES, ENTER, EXIT, INNER, LABEL, ORDERS, PRIORITY, SCOPES
from .errors import ScopeError

_STREAM_KEYS = (LABEL, PRIORITY, INNER)
_FUSE, _FUSE_OPTIONS = "_super_kernel_scope", "_super_kernel_options"
_BOOL_KEYS = (INNER, "_op_exec_never_timeout")
_ids = itertools.count(1)

_BREAK = "A graph break inside a with block can be the cause; torch.compile(..., fullgraph=True) shows it."


@dataclass(frozen=True)
class Block:
    """One entered scope. `id` is its own in this process; `source` is the user's line."""

    id: int
    pairs: tuple[tuple[str, str], ...]
    source: str

    def __str__(self) -> str:
        pairs = dict(self.pairs)
        what = f"stream scope {pairs[LABEL]!r}" if LABEL in pairs else "scope " + ", ".join(f"{k}={v}" for k, v in pairs.items())
        return f"{what} at {self.source}" if self.source else what

    @property
    def label(self) -> str | None:
        """The stream label, None for other kinds of scopes and for the empty one."""
        return dict(self.pairs).get(LABEL) or None


Blocks = tuple[Block, ...]


CARRIER = "millstream.blocks"


def carried(node: fx.Node) -> Blocks | None:
    """The blocks in a node's meta data; None if it has none."""
    custom = node.meta.get("custom")
    return custom.get(CARRIER) if isinstance(custom, dict) else None


def open_block(node: fx.Node) -> Block:
    """The block that an enter node opens: the one in its meta data, so that it stays the same behind AOTAutograd."""
    keys, values = node.args
    if len(keys) != len(values):
        raise ScopeError(f"scope_enter{place_of(node)} has {len(keys)} keys and {len(values)} values; "
                         "give each key one value")
    pairs = tuple(zip(keys, values))
    known = carried(node)
    return known[-1] if known and known[-1].pairs == pairs else Block(next(_ids), pairs, source_of(node))


_SPACE = "millstream.space"


def settle(graph: fx.Graph) -> None:
    """Markers that were called without naming an overload (Dynamo, passes of users) get theirs; those of other
    libraries become ours, and keep the name of their library for messages."""
    known = {op.overloadpacket: op for op in (*SCOPES, *ORDERS, *ALIASES)}
    for node in graph.nodes:
        target = known.get(node.target, node.target) if node.op == "call_function" else None
        if target in ALIASES:
            node.meta[_SPACE] = target.namespace
            node.target = ALIASES[target]
            node.args = node.args[:len(node.target._schema.arguments)]
            node.kwargs = {}
        elif target is not None:
            node.target = target


def _named(node: fx.Node, op: str) -> str:
    return f"torch.ops.{node.meta.get(_SPACE, 'millstream')}.{op}"


def walk(graph: fx.Graph, outer: Blocks = ()) -> Iterator[tuple[fx.Node, Blocks]]:
    """Each node with the blocks around it, outermost first; markers come with the blocks around their inside.

    Raises ScopeError if enter and exit nodes do not match.
    """
    stack: list[tuple[fx.Node, Block]] = []
    for node in graph.nodes:
        if node.target is ENTER:
            stack.append((node, open_block(node)))
        yield node, outer + tuple(block for _, block in stack)
        if node.target is EXIT:
            if not stack:
                raise ScopeError(f"scope_exit{place_of(node)} closes a scope that is not open: before it, you must first "
                                 f"call the {_named(node, 'scope_enter')} operator. {_BREAK}")
            stack.pop()
    if stack:
        listed = "; ".join(f"{node.args}{place_of(node)}" for node, _ in stack)
        raise ScopeError(f"there is no paired call to the {_named(stack[0][0], 'scope_exit')} operator for "
                         f"scope_enter {listed}. {_BREAK}")


def merged(blocks: Blocks) -> dict[str, str]:
    """What the blocks say together: for each key the innermost counts, outer keys stay.

    Priority and inner parallelism belong to the innermost stream scope. An empty label takes the label away,
    an empty fusion scope takes its two keys away.
    """
    result: dict[str, str] = {}
    for block in blocks:
        pairs = dict(block.pairs)
        if LABEL in pairs:
            for key in _STREAM_KEYS:
                result.pop(key, None)
            if pairs[LABEL] == "":
                pairs = {k: v for k, v in pairs.items() if k not in _STREAM_KEYS}
        if pairs.get(_FUSE) == "":
            result.pop(_FUSE, None)
            result.pop(_FUSE_OPTIONS, None)
            continue
        result.update(pairs)
    return result


def attributes(blocks: Blocks) -> dict[str, str | bool]:
    """The merged pairs as a dump states them: flags are booleans, the rest is text."""
    return {k: v == "True" if k in _BOOL_KEYS else v for k, v in merged(blocks).items()}


def label_of(blocks: Blocks) -> str | None:
    """The label that counts, None for the default stream."""
    return merged(blocks).get(LABEL)


def effective(blocks: Blocks) -> list[Block]:
    """The blocks that have a say: of stream scopes only the innermost."""
    streams = [b for b in blocks if LABEL in dict(b.pairs)]
    return [b for b in blocks if b not in streams[:-1]]


def sentence(blocks: Blocks) -> str:
    """The merged pairs as one line, for messages."""
    return json.dumps(merged(blocks), sort_keys=True)

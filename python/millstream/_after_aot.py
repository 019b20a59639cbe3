# SPDX-License-Identifier: Apache-2.0
"""On the graph behind AOTAutograd: which blocks are around each node, from markers and from meta data.

Inference: the markers decide, and meta data that says something else is reported. Forward and backward
graphs of training: the partitioner may put markers into both, so the meta data decides. Markers that a
pass of the user adds afterwards count in every graph.
"""

from __future__ import annotations


from torch import fx

from . import _torch_compat as compat
from ._fx import place_of
from ._markers import ENTER, ORDERS, SCOPES
from ._scopes import Blocks, carried, merged, sentence, walk
from .errors import ScopeError, ScopeWarning, warn

BlocksOf = dict[fx.Node, Blocks]


def compare_carriers(graph: fx.Graph, strict: bool) -> None:
    """Reports nodes whose meta data and markers disagree. Nodes that AOT made itself have no meta data."""
    for node, blocks in walk(graph):
        meta = carried(node)
        if node.op != "call_function" or node.target in SCOPES or meta is None or compat.is_replayed(node):
            continue
        if merged(meta) == merged(blocks):
            continue
        text = (f"scopes around node {node.name} ({node.target}) are unclear: its markers say {sentence(blocks)}, its "
                f"meta data {sentence(meta)}; the markers count")
        if strict:
            raise ScopeError(text)
        warn(text, ScopeWarning)


def strip_markers(gm: fx.GraphModule, *, orders: bool) -> None:
    """Takes enter and exit nodes out, and the calls that order by hand if `orders`."""
    gone = SCOPES + ORDERS if orders else SCOPES
    for node in reversed(list(gm.graph.nodes)):
        if node.target in gone and not node.users:
            gm.graph.erase_node(node)


def prepare_joint(gm: fx.GraphModule) -> None:
    """Takes scope markers out of a joint graph: its meta data has the blocks. With checkpoints, for which PyTorch
    allows no operator with side effects, the calls that order by hand go too, and a warning says so."""
    orders = any(map(compat.is_recomputed, gm.graph.nodes))
    lost = [f"{node.target}{place_of(node)}" for node in gm.graph.nodes if node.target in ORDERS] if orders else []
    strip_markers(gm, orders=orders)
    if lost:
        warn(f"checkpoints drop orders by hand, so these have no effect: {', '.join(lost)}", ScopeWarning)


def strip_branches(gm: fx.GraphModule) -> list[str]:
    """Takes all markers out of the graphs of branches, which run as one operator; returns what they said."""
    found: list[str] = []
    for child in gm.children():
        if not isinstance(child, fx.GraphModule):
            continue
        found += [str(blocks[-1]) for node, blocks in walk(child.graph) if node.target is ENTER]
        strip_markers(child, orders=True)
        child.recompile()
        found += strip_branches(child)
    return found


def blocks_by_meta(graph: fx.Graph) -> BlocksOf:
    """The blocks of every node as the meta data has them."""
    return {node: carried(node) or () for node in graph.nodes}


def blocks_by_markers(graph: fx.Graph, base: BlocksOf) -> BlocksOf:
    """The blocks of every node: those of `base`, and inside them those of the markers in the graph.

    A view that AOTAutograd takes again behind a write stands where it is used; it keeps the blocks it was written in.
    """
    found = {node: base.get(node, ()) + blocks for node, blocks in walk(graph)}
    for node in graph.nodes:
        if node not in base and compat.is_replayed(node) and carried(node) is not None:
            found[node] = carried(node) or ()
    return found

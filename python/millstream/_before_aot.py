# SPDX-License-Identifier: Apache-2.0
"""On Dynamo's graph: markers must match, and each node gets its blocks as meta data.

AOTAutograd copies node.meta["custom"] to every node that it makes out of a node, in the backward graph too.
So the meta data is a second carrier beside the markers: the one that counts for training, and a check on the
markers for inference.
"""

from __future__ import annotations

from torch import fx

from ._markers import ENTER
from ._scopes import CARRIER, Block, Blocks, settle, walk

def annotate(gm: fx.GraphModule, outer: Blocks = ()) -> list[Block]:
    """Writes the blocks of every node into its meta data; returns all blocks, graphs of branches included.

    Raises ScopeError if enter and exit nodes do not match.
    """
    settle(gm.graph)
    found: list[Block] = []
    around_calls: dict[str, Blocks] = {}
    for node, blocks in walk(gm.graph, outer):
        if node.target is ENTER:
            found.append(blocks[-1])
        for argument in node.all_input_nodes:
            if argument.op == "get_attr":
                around_calls[str(argument.target)] = blocks
        if blocks:
            node.meta["custom"] = {**(node.meta.get("custom") or {}), CARRIER: blocks}
    for name, child in gm.named_children():
        if isinstance(child, fx.GraphModule):
            found += annotate(child, around_calls.get(name, outer))
    return found

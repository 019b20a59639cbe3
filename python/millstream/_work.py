# SPDX-License-Identifier: Apache-2.0
"""What an operator costs, for the planner: floating-point operations, and bytes read and written."""

from __future__ import annotations

from torch import fx

from . import _torch_compat as compat
from ._names import callee
from ._orders import is_rebound


def work_of(node: fx.Node) -> dict[str, int]:
    """The attributes `_flops` and `_bytes`; none where a size is a symbol. A view moves nothing. Operators that
    PyTorch does not count do one operation an element."""
    op = callee(node)
    if is_rebound(node) or compat.is_view(op):
        return {"_flops": 0, "_bytes": 0}
    results = list(compat.tensors_of(node))
    tensors = results + [t for read in node.all_input_nodes for t in compat.tensors_of(read)]
    if any(not isinstance(size, int) for t in tensors for size in t.shape):
        return {}
    elements = [t.numel() for t in tensors]
    flops = compat.flops_of(node, op)
    return {"_flops": max(elements, default=0) if flops is None else flops,
            "_bytes": sum(n * t.element_size() for n, t in zip(elements, tensors))}

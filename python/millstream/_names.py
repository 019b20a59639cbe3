# SPDX-License-Identifier: Apache-2.0
"""Operator types of ATen calls: the names that dumps and the cost model know, else the ATen name in camel case."""

from __future__ import annotations

from typing import Any

from torch import fx

from . import _collectives
from ._markers import WAIT_TENSOR

_TYPES = {
    "addmm": "Gemm", "amax": "ReduceMax", "amin": "ReduceMin", "baddbmm": "BatchGemm", "bmm": "MatMul", "clone": "Clone",
    "copy_": "Assign", "div": "Div", "expand": "Expand", "mean": "ReduceMean", "mm": "MatMul", "permute": "Transpose",
    "reshape": "Reshape", "select": "Select", "slice": "StridedSlice", "sum": "ReduceSum", "t": "Transpose",
    "transpose": "Transpose", "view": "Reshape", "_to_copy": "Cast", "_unsafe_view": "Reshape", "_softmax": "Softmax",
    "convert_element_type": "Cast", "convolution": "Convolution", "native_layer_norm": "LayerNorm",
}


def _plain(node: fx.Node, name: str) -> bool:
    """True if an argument of that name is absent or 1."""
    return node.kwargs.get(name, 1) == 1


def callee(node: fx.Node) -> Any:
    """What a node calls; of operators that PyTorch keeps in order by tokens, the operator inside."""
    if getattr(node.target, "__name__", "") == "with_effects":
        return node.args[1]
    return node.target


def type_of(node: fx.Node) -> str:
    """The operator type of a call: aten.mm is MatMul, aten.relu is Relu, other libraries keep theirs in front."""
    target = callee(node)
    if target is WAIT_TENSOR:
        return "Identity"
    collective = _collectives.type_of(node)
    if collective is not None:
        return collective
    space, _, name = getattr(target, "_schema", None).name.partition("::") if hasattr(target, "_schema") else ("", "", "")
    if not name:
        space, name = "", getattr(target, "__name__", str(target))
    if name in ("add", "sub") and not _plain(node, "alpha"):
        return "AxpyV2"
    if name in _TYPES and space in ("aten", "prims"):
        return _TYPES[name]
    camel = "".join(part[:1].upper() + part[1:] for part in name.split("_") if part) or "Call"
    return camel if space in ("aten", "prims", "") else space[:1].upper() + space[1:] + camel


class Names:
    """Gives out names that are used once: Add, Add_1, Add_2."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}
        self._taken: set[str] = set()

    def take(self, wish: str) -> str:
        """`wish` itself the first time, then with numbers."""
        name = wish
        while name in self._taken:
            self._next[wish] = self._next.get(wish, 0) + 1
            name = f"{wish}_{self._next[wish]}"
        self._taken.add(name)
        return name

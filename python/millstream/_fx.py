# SPDX-License-Identifier: Apache-2.0
"""Reading FX nodes: where the user wrote them, and what a value looks like."""

from __future__ import annotations

import operator
import os
import re
from typing import Any

import torch
from torch import fx

from . import _torch_compat as compat

Shape = list[int | str]
Desc = tuple[str, Shape]

_ELEMENT_TYPES = {"float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                  "uint64", "bool", "complex64", "complex128", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
                  "float8_e5m2fnuz", "float8_e8m0fnu"}
_FRAME = re.compile(r'File "(.+)", line (\d+)')


def source_of(node: fx.Node) -> str:
    """The user's innermost line behind a node, such as model.py:12; empty if it is not known."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    ours = os.path.dirname(os.path.abspath(__file__)) + os.sep
    for file, line in reversed(frames):
        if not file.startswith(ours):
            return f"{os.path.basename(file)}:{line}"
    return ""


def place_of(node: fx.Node) -> str:
    """`source_of` as words for a message."""
    source = source_of(node)
    return f" at {source}" if source else ""


def is_number(value: Any) -> bool:
    """True for numbers of the host, known or symbolic."""
    return isinstance(value, (bool, int, float, torch.SymInt, torch.SymFloat, torch.SymBool))


def is_getitem(node: fx.Node) -> bool:
    """True where a node only picks one result of an operator with several."""
    return (node.op == "call_function" and node.target is operator.getitem and isinstance(node.args[0], fx.Node)
            and isinstance(node.args[0].meta.get("val"), (list, tuple)))


def dimension(size: Any) -> int | str:
    """A length: a number, a symbol, or a name made of its expression."""
    if isinstance(size, int):
        return size
    text = str(getattr(getattr(size, "node", None), "expr", size))
    if text.isdigit():
        return int(text)
    return text if text.isidentifier() else "e_" + re.sub(r"\W+", "_", text)


def desc_of(value: Any) -> Desc:
    """Element type and shape of a value; a number counts as a scalar of 64 bits, and element types that the
    library does not know count as unsigned integers of their size."""
    if isinstance(value, torch.Tensor):
        name = str(value.dtype).removeprefix("torch.")
        if name not in _ELEMENT_TYPES:
            name = f"uint{min(8 * value.dtype.itemsize, 64)}"
        return name, [dimension(s) for s in value.shape]
    return ("float64" if isinstance(value, (float, torch.SymFloat)) else "int64"), []


def is_symbolic(graph: fx.Graph) -> bool:
    """True if a shape or a number in the graph is only known when it runs."""
    for node in graph.nodes:
        stack = [node.meta.get("val")]
        while stack:
            value = stack.pop()
            if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
                return True
            if isinstance(value, torch.Tensor):
                stack.extend(s for s in value.shape if not isinstance(s, int))
            elif isinstance(value, (list, tuple)):
                stack.extend(value)
    return False


def other_devices(graph: fx.Graph) -> list[str]:
    """The types of devices other than the CPU that tensors of the graph are on."""
    return sorted({t.device.type for node in graph.nodes for t in compat.tensors_of(node)} - {"cpu"})

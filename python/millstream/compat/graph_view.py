# SPDX-License-Identifier: Apache-2.0
"""A compiled graph in the shape of a graph definition: operators with text inputs and typed attributes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._convert import Lowered
from .._graph_text import rows


class AttrDef:
    """One attribute; the fields of other types are empty."""

    def __init__(self, value: Any = None) -> None:
        self.s = value.encode() if isinstance(value, str) else b""
        self.b = value if isinstance(value, bool) else False
        self.i = value if isinstance(value, int) and not isinstance(value, bool) else 0


class AttrMap:
    """Attributes by name. Reading one that is not there gives an empty one and adds it, as a protobuf map does."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = {name: AttrDef(value) for name, value in values.items()}

    def __getitem__(self, name: str) -> AttrDef:
        return self._values.setdefault(name, AttrDef())

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class OpDef:
    """An operator: `input` holds "name:index" for data and "name:-1" for an order."""

    def __init__(self, name: str, kind: str, inputs: list[str], attributes: dict[str, Any]) -> None:
        self.name, self.type, self.input, self.attr = name, kind, inputs, AttrMap(attributes)


class GraphDef:
    """The operators of a graph, inputs first, NetOutput last."""

    def __init__(self, lowered: Lowered) -> None:
        self.name = lowered.name
        self.op = [OpDef(row.name, row.type, row.inputs + [f"{name}:-1" for name in row.after], row.attributes)
                   for row in rows(lowered)]

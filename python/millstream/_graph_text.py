# SPDX-License-Identifier: Apache-2.0
"""A graph before planning as text: nodes as a GraphDef of TensorFlow has them, or operators as a GraphDef of GE."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ._convert import Lowered, Value
from ._fx import Desc


@dataclass
class Row:
    """One node: `inputs` are "name:index", `after` names of nodes that come before it."""

    name: str
    type: str
    inputs: list[str]
    after: list[str]
    attributes: dict[str, Any]
    outputs: list[Desc]


def rows(lowered: Lowered) -> Iterator[Row]:
    """Inputs and constants as nodes, the operators, and NetOutput."""
    def text(value: Value) -> str:
        if value.operator is None:
            return f"{lowered.leaves[value.index].name}:0"
        return f"{lowered.operators[value.operator].name}:{value.index}"

    for leaf in lowered.leaves:
        yield Row(leaf.name, "Const" if leaf.constant else "Data", [], [], {}, [leaf.desc])
    for operator in lowered.operators:
        yield Row(operator.name, operator.type, [text(v) for v in operator.inputs],
                  [lowered.operators[i].name for i in operator.after], operator.attributes, operator.outputs)
    yield Row("NetOutput", "NetOutput", [text(v) for v in lowered.results], [], {}, [])


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _field(value: Any) -> str:
    """An attribute as its message is printed: s: "1", b: true, i: 3."""
    if isinstance(value, bool):
        return f"b: {'true' if value else 'false'}"
    return f"i: {value}" if isinstance(value, int) else f"s: {_quoted(str(value))}"


def pbtxt(lowered: Lowered) -> str:
    """`node {` at the top; orders are inputs that begin with ^, every attribute is the text of its message."""
    lines: list[str] = []
    for row in rows(lowered):
        lines += ["node {", f"  name: {_quoted(row.name)}", f"  op: {_quoted(row.type)}"]
        lines += [f"  input: {_quoted(i)}" for i in row.inputs] + [f"  input: {_quoted('^' + a)}" for a in row.after]
        texts = {key: _field(value) + "\n" for key, value in row.attributes.items()}
        texts |= {f"[o]{i}": f"dtype: {kind}\nshape: {shape}\n" for i, (kind, shape) in enumerate(row.outputs)}
        for key, text in texts.items():
            lines += ["  attr {", f"    key: {_quoted(key)}", "    value {", f"      s: {_quoted(text)}", "    }", "  }"]
        lines.append("}")
    return "\n".join(lines) + "\n"


def txt(lowered: Lowered) -> str:
    """`op {` at the top; orders are inputs that end in :-1."""
    lines = [f"name: {_quoted(lowered.name)}"]
    for row in rows(lowered):
        lines += ["op {", f"  name: {_quoted(row.name)}", f"  type: {_quoted(row.type)}"]
        lines += [f"  input: {_quoted(i)}" for i in row.inputs] + [f"  input: {_quoted(a + ':-1')}" for a in row.after]
        for key, value in row.attributes.items():
            lines += ["  attr {", f"    key: {_quoted(key)}", "    value {", f"      {_field(value)}", "    }", "  }"]
        lines.append("}")
    return "\n".join(lines) + "\n"

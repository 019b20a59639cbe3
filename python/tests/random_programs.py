# SPDX-License-Identifier: Apache-2.0
"""Random PyTorch programs with scopes, as source text: every label and every hand-made order that a program may use.

None draws random numbers: PyTorch drops draws that nobody reads, so that later ones differ from eager code.
"""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from millstream import ops, scope

SIZE = 4
_UNARY = ("torch.tanh({a})", "{a} * 0.5", "{a} + 1", "torch.relu({a})", "torch.softmax({a}, 1)", "{a}.abs()", "{a}.clone()",
          "{a}.t().contiguous()", "torch.nn.functional.layer_norm({a}, ({a}.shape[1],))", "{a} * {a}.shape[0]")
_BINARY = ("{a} + {b}", "{a} - {b}", "torch.mm({a}, {b}) * 0.2", "torch.addmm({a}, {b}, {a}) * 0.1", "torch.where({a} > 0, {a}, {b})",
           "torch.cat([{a}, {b}])[1:1 + {a}.shape[0]]", "torch.stack([{a}, {b}]).mean(0)")
_VIEW = ("{a}.t()", "{a}.reshape(-1).view({a}.shape[0], -1)", "{a}.transpose(0, 1)", "{a}[:]", "{a}.unsqueeze(0).squeeze(0)", "{a}.chunk(2)")
_INPLACE = ("{a}.add_(1)", "{a}.mul_(0.5)", "{a}.copy_({b}.clone())", "{a}[0].add_({b}[1].clone())", "{a}.t().add_({b}.clone())")
_LABELS = ("1", "2", "side", "main")


@dataclass
class Program:
    """A function, its text, and the labels that it enters."""

    source: str
    function: Callable[..., Any]
    labels: set[str] = field(default_factory=set)


class _Writer:
    def __init__(self, seed: int, training: bool) -> None:
        self.rng = random.Random(seed)
        self.training = training
        self.lines: list[str] = []
        self.values = ["x0", "x1", "x2"]
        self.records: list[str] = []
        self.labels: set[str] = set()
        self.events = 0
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def pick(self) -> str:
        return self.rng.choice(self.values[-6:] if self.rng.random() < 0.7 else self.values)

    def say(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def statement(self, depth: int) -> None:
        a, b, name, roll = self.pick(), self.pick(), self.fresh(), self.rng.random()
        if roll < 0.2:
            self.say(depth, f"{name} = " + self.rng.choice(_UNARY).format(a=a))
        elif roll < 0.45:
            self.say(depth, f"{name} = " + self.rng.choice(_BINARY).format(a=a, b=b))
        elif roll < 0.55:
            view = self.rng.choice(_VIEW).format(a=a)
            self.say(depth, f"{name} = " + (f"torch.cat({view}[::-1])" if "chunk" in view else view))
        elif roll < 0.65:
            if not self.training or a not in ("x0", "x1", "x2"):
                self.say(depth, ("" if not self.training else f"{a} = {a} * 1; ") + self.rng.choice(_INPLACE).format(a=a, b=b))
            return
        elif roll < 0.72:
            self.say(depth, self.rng.choice(("scope.npu_wait_tensor({a}, {b})", "{a} = scope.npu_wait_tensor({a}, {b})")).format(a=a, b=b))
            return
        elif roll < 0.76:
            self.say(depth, f"{name} = ops.record()")
            self.records.append(name)
            return
        elif roll < 0.80:
            self.say(depth, f"ops.wait([{self.rng.choice(self.records + [a])}, {b}])")
            return
        elif roll < 0.83:
            self.say(depth, f"ops.npu_tagged_event_{self.rng.choice(('record', 'wait'))}(event)")
            return
        elif depth < 4:
            self.block(depth)
            return
        else:
            self.say(depth, f"{name} = {a} * 2")
        self.values.append(name)

    def block(self, depth: int) -> None:
        roll = self.rng.random()
        if roll < 0.7:
            label = self.rng.choice(_LABELS)
            self.labels.add(label)
            kind = f"npu_stream_switch({label!r}, {self.rng.randrange(3)}, {self.rng.random() < 0.5})"
        elif roll < 0.8:
            kind = f"limit_core_num({self.rng.randrange(1, 9)}, 2)"
        elif roll < 0.9:
            kind = self.rng.choice(("super_kernel('k', 'o')", "super_kernel(None)"))
        else:
            kind = self.rng.choice(("op_never_timeout()", "data_dump()"))
        self.say(depth, f"with scope.{kind}:")
        inside = self.rng.randrange(0, 5)
        if inside == 0:
            self.say(depth + 1, "pass")
        for _ in range(inside):
            before = len(self.lines)
            self.statement(depth + 1)
            if len(self.lines) == before:
                self.say(depth + 1, "pass")


def program(seed: int, *, training: bool = False, statements: int = 14) -> Program:
    """The program of a seed. In training no leaf is written to in place."""
    writer = _Writer(seed, training)
    for _ in range(statements):
        writer.statement(1)
    results = writer.rng.sample(writer.values, min(3, len(writer.values)))
    text = "\n".join(["def program(x0, x1, x2, event):", *writer.lines, f"    return {', '.join(results)}", ""])
    name = f"<program {seed}{' training' if training else ''}>"
    space: dict[str, Any] = {"torch": torch, "scope": scope, "ops": ops}
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), space)
    return Program(text, space["program"], writer.labels)


def inputs(seed: int, *, training: bool = False, size: int = SIZE) -> list[torch.Tensor]:
    """Three square matrices of a seed."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(size, size, generator=generator).requires_grad_(training) for _ in range(3)]

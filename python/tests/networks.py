# SPDX-License-Identifier: Apache-2.0
"""Five networks in plain torch.nn with random weights, for tests and benchmarks: each with inputs and a training loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


def convolution(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Sequential:
    """Convolution, normalisation over the batch, ReLU; edges are padded so that stride 1 keeps the size."""
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


class Residual(nn.Module):
    """Two 3x3 convolutions beside a shortcut, which is projected where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = convolution(inputs, outputs, 3, stride)
        self.second = nn.Sequential(nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        same = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if same else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.second(self.first(x)) + self.shortcut(x))


def resnet18(classes: int = 1000) -> nn.Module:
    """The 18-layer column of table 1 in "Deep Residual Learning for Image Recognition" (He and others, 2015)."""
    layers: list[nn.Module] = [convolution(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    width = 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Residual(width, outputs, stride), Residual(outputs, outputs, 1)]
        width = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))


class Inception(nn.Module):
    """Four branches that do not need each other, put side by side: 1x1, 3x3, 5x5, and a 1x1 behind a pool."""

    def __init__(self, inputs: int, one: int, reduce3: int, three: int, reduce5: int, five: int, pool: int) -> None:
        super().__init__()
        self.one = convolution(inputs, one, 1)
        self.three = nn.Sequential(convolution(inputs, reduce3, 1), convolution(reduce3, three, 3))
        self.five = nn.Sequential(convolution(inputs, reduce5, 1), convolution(reduce5, five, 5))
        self.pool = nn.Sequential(nn.MaxPool2d(3, 1, 1), convolution(inputs, pool, 1))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.one(x), self.three(x), self.five(x), self.pool(x)], 1)


# Table 1 in "Going Deeper with Convolutions" (Szegedy and others, 2014): the widths of each block; None is a pool.
_INCEPTION = ((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64), None,
              (192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64),
              (112, 144, 288, 32, 64, 64), (256, 160, 320, 32, 128, 128), None,
              (256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128))


def googlenet(classes: int = 1000) -> nn.Module:
    """The network of that table with batch normalisation, without the classifiers at its side."""
    layers: list[nn.Module] = [convolution(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1), convolution(64, 64, 1),
                               convolution(64, 192, 3), nn.MaxPool2d(3, 2, 1)]
    width = 192
    for widths in _INCEPTION:
        if widths is None:
            layers.append(nn.MaxPool2d(3, 2, 1))
        else:
            layers.append(Inception(width, *widths))
            width = widths[0] + widths[2] + widths[4] + widths[5]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))


def mlp(width: int, hidden: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))


class EncoderLayer(nn.Module):
    """Attention and an MLP, each behind a normalisation and beside a shortcut. Written out, because in inference
    nn.TransformerEncoderLayer is one operator."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.mlp = mlp(width, 4 * width)

    def forward(self, x: Tensor) -> Tensor:
        normal = self.before(x)
        query, key, value = (part(normal).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                             for part in (self.query, self.key, self.value))
        seen = functional.scaled_dot_product_attention(query, key, value)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.mlp(self.between(x))


def transformer(width: int, heads: int, layers: int = 4) -> nn.Module:
    return nn.Sequential(*(EncoderLayer(width, heads) for _ in range(layers)))


class SharedExpertMoe(nn.Module):
    """A mixture of experts beside one that sees every token. Each token goes to its best `top` experts; an expert takes
    its `capacity` heaviest tokens. All shapes are known, so the graph has no breaks."""

    def __init__(self, width: int, hidden: int, experts: int, top: int, capacity: int) -> None:
        super().__init__()
        self.top, self.capacity = top, capacity
        self.router = nn.Linear(width, experts, bias=False)
        self.shared = mlp(width, 2 * hidden)
        self.experts = nn.ModuleList(mlp(width, hidden) for _ in range(experts))

    def forward(self, x: Tensor) -> Tensor:
        probabilities = functional.softmax(self.router(x), -1)
        best, chosen = probabilities.topk(self.top, -1)
        weights = torch.zeros_like(probabilities).scatter(-1, chosen, best / best.sum(-1, keepdim=True))
        result = self.shared(x)
        for weight, expert in zip(weights.unbind(-1), self.experts):
            heaviest, tokens = weight.topk(self.capacity)
            result = result.index_add(0, tokens, expert(x[tokens]) * heaviest.unsqueeze(-1))
        return result


class Recurrent(nn.Module):
    """Two layers of LSTM and a classifier of the last step."""

    def __init__(self, width: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, hidden, num_layers=2, batch_first=True)
        self.classify = nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        steps, _ = self.lstm(x)
        return self.classify(steps[:, -1])


@dataclass
class Network:
    """A module and one input. `classes`: results are scores of so many classes; None: values like the input."""

    name: str
    module: nn.Module
    input: Tensor
    classes: int | None

    def loss(self, result: Tensor) -> Tensor:
        """Against a fixed aim: classes 0, 1, 2, ... or zero."""
        if self.classes is None:
            return result.square().mean()
        return functional.cross_entropy(result, torch.arange(len(result)) % self.classes)


def _settle(module: nn.Module, generator: torch.Generator) -> nn.Module:
    """Gives normalisations over the batch statistics and factors that are not 0 and 1."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            for values, low, high in ((part.running_mean, -0.1, 0.1), (part.running_var, 0.5, 1.5),
                                      (part.weight.data, 0.5, 1.5), (part.bias.data, -0.1, 0.1)):
                values.uniform_(low, high, generator=generator)
    return module


def make(name: str, *, small: bool, seed: int = 0) -> Network:
    """A network with weights of this seed; `small` for tests, else of a size that is worth measuring."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        pixels, tokens = (64, 32) if small else (224, 256)
        made: dict[str, Any] = {
            "resnet18": lambda: (resnet18(10), (2, 3, pixels, pixels), 10),
            "googlenet": lambda: (googlenet(10), (2, 3, pixels, pixels), 10),
            "transformer": lambda: (transformer(*((64, 4) if small else (256, 8))), (2, tokens, 64 if small else 256), None),
            "moe": lambda: (SharedExpertMoe(*((64, 128, 4, 2, 24) if small else (512, 1024, 8, 2, 96))),
                            (tokens, 64 if small else 512), None),
            "lstm": lambda: (Recurrent(*((32, 64, 10) if small else (256, 256, 10))), (2, tokens // 2, 32 if small else 256), 10),
        }
        module, shape, classes = made[name]()
        return Network(name, _settle(module, torch.Generator().manual_seed(seed)), torch.randn(shape), classes)


NAMES = ("resnet18", "googlenet", "transformer", "moe", "lstm")

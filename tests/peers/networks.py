# SPDX-License-Identifier: Apache-2.0
"""Four networks of our own, exported from PyTorch: residual, inception, transformer, and a decoder with a loop.

Their weights are random with a fixed seed, and eval mode is used throughout.
"""
import torch
from torch import nn
from torch.nn import functional as F


class Residual(nn.Module):
    def __init__(self, channels_in: int, channels: int, stride: int):
        super().__init__()
        self.first = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(channels)
        same = stride == 1 and channels_in == channels
        self.shortcut = nn.Identity() if same else nn.Sequential(
            nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        y = F.relu(self.first_norm(self.first(x)))
        return F.relu(self.second_norm(self.second(y)) + self.shortcut(x))


class ResidualNet(nn.Module):
    """Two blocks at each of four widths, after a 7x7 stem."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 7, 2, 3, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        blocks, channels = [], 32
        for width, stride in ((32, 1), (64, 2), (128, 2), (256, 2)):
            blocks += [Residual(channels, width, stride), Residual(width, width, 1)]
            channels = width
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(channels, 100)

    def forward(self, image):
        x = self.blocks(self.stem(image))
        return self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


def conv_relu(channels_in: int, channels: int, kernel: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(channels_in, channels, kernel, padding=kernel // 2), nn.ReLU())


class Inception(nn.Module):
    """Four branches side by side: 1x1, 1x1-3x3, 1x1-5x5, pool-1x1."""

    def __init__(self, channels_in: int, one: int, three: int, five: int, pool: int):
        super().__init__()
        self.one = conv_relu(channels_in, one, 1)
        self.three = nn.Sequential(conv_relu(channels_in, three // 2, 1), conv_relu(three // 2, three, 3))
        self.five = nn.Sequential(conv_relu(channels_in, five // 2, 1), conv_relu(five // 2, five, 5))
        self.pool = nn.Sequential(nn.MaxPool2d(3, 1, 1), conv_relu(channels_in, pool, 1))

    def forward(self, x):
        return torch.cat([self.one(x), self.three(x), self.five(x), self.pool(x)], 1)


class InceptionNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(conv_relu(3, 32, 7), nn.MaxPool2d(3, 2, 1), conv_relu(32, 64, 3), nn.MaxPool2d(3, 2, 1))
        self.first = nn.Sequential(Inception(64, 32, 64, 16, 16), Inception(128, 48, 96, 32, 32))
        self.second = nn.Sequential(Inception(208, 64, 112, 32, 32), Inception(240, 64, 128, 32, 32))
        self.head = nn.Linear(256, 100)

    def forward(self, image):
        x = F.max_pool2d(self.first(self.stem(image)), 3, 2, 1)
        x = F.avg_pool2d(self.second(x), 3, 2, 1)
        return F.softmax(self.head(x.mean((2, 3))), -1)


class Block(nn.Module):
    """One encoder layer with separate query, key and value matrices, so that three branches leave one node."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.first_norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        split = lambda y: y.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
        y = self.first_norm(x)
        query, key, value = split(self.query(y)), split(self.key(y)), split(self.value(y))
        weights = F.softmax(query @ key.transpose(-1, -2) / (width // self.heads) ** 0.5, -1)
        x = x + self.out((weights @ value).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.second_norm(x))))


class TransformerNet(nn.Module):
    """Embedded tokens, four encoder layers, and scores over 64 classes."""

    def __init__(self, words: int = 512, width: int = 128, length: int = 48):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Parameter(torch.randn(1, length, width) * 0.1)
        self.blocks = nn.Sequential(*(Block(width, 4) for _ in range(4)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 64)

    def forward(self, tokens):
        return self.head(self.norm(self.blocks(self.words(tokens) + self.places)).mean(1))


class DecoderNet(nn.Module):
    """A gated recurrent cell that feeds its own words back until it has said the last word, or twelve: a Loop with Ifs."""

    def __init__(self, words: int = 32, width: int = 24, state: int = 48):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.from_word, self.from_state = nn.Linear(width, 3 * state), nn.Linear(state, 3 * state)
        self.out = nn.Linear(state, words)

    def forward(self, state):
        word = torch.zeros([1], dtype=torch.long)
        said = torch.zeros([0, 32])
        turn = 0
        go_on = True
        while turn < 12 and go_on:
            word_reset, word_keep, word_new = self.from_word(self.words(word)).chunk(3, 1)
            reset, keep, new = self.from_state(state).chunk(3, 1)
            keep = torch.sigmoid(word_keep + keep)
            state = (1 - keep) * torch.tanh(word_new + torch.sigmoid(word_reset + reset) * new) + keep * state
            scores = self.out(state)
            if bool(torch.lt(torch.tensor(0.35), scores.max())):
                scores = scores * 0.5
            else:
                scores = torch.relu(scores)
            word = scores.argmax(1)
            said = torch.cat([said, scores])
            go_on = bool(word[0] != 3)
            turn += 1
        return said, state


def _randomise(module: nn.Module, generator: torch.Generator) -> None:
    """Batch normalisations that are not the identity; convolutions with the variance 2 / fan-in."""
    for part in module.modules():
        if isinstance(part, nn.Conv2d):
            fan_in = part.weight[0].numel()
            part.weight.data.normal_(0, (2 / fan_in) ** 0.5, generator=generator)
        if isinstance(part, nn.BatchNorm2d):
            part.weight.data.uniform_(0.5, 1.5, generator=generator)
            part.running_var.uniform_(0.5, 1.5, generator=generator)
            part.bias.data.normal_(0, 0.1, generator=generator)
            part.running_mean.normal_(0, 0.1, generator=generator)


def networks() -> dict[str, tuple]:
    """name -> (module, inputs by name)."""
    generator = torch.Generator().manual_seed(20)
    made = {}
    for name, kind in (("torch_resnet", ResidualNet), ("torch_inception", InceptionNet), ("torch_transformer", TransformerNet)):
        torch.manual_seed(len(made) + 1)
        module = kind().eval()
        _randomise(module, generator)
        if kind is TransformerNet:
            inputs = {"tokens": torch.randint(0, 512, (2, 48), generator=generator)}
        else:
            inputs = {"image": torch.randn(1, 3, 128, 128, generator=generator)}
        made[name] = (module, inputs)
    torch.manual_seed(0)
    made["torch_decoder"] = (torch.jit.script(DecoderNet().eval()), {"state": torch.randn(1, 48, generator=generator)})
    return made


def export(module: nn.Module, inputs: dict[str, torch.Tensor], path: str) -> dict[str, torch.Tensor]:
    """Writes the ONNX file and returns torch's own outputs by name. Scripts, whose control flow depends on values, go through
    the exporter that takes them; all else at torch's default opset."""
    if isinstance(module, torch.jit.ScriptModule):
        names = ["said", "state_out"]
        torch.onnx.export(module, tuple(inputs.values()), path, input_names=list(inputs), output_names=names, dynamo=False, opset_version=17)
        with torch.no_grad():
            return dict(zip(names, module(*inputs.values())))
    torch.onnx.export(module, tuple(inputs.values()), path, input_names=list(inputs), output_names=["scores"],
                      dynamo=True, verbose=False)
    with torch.no_grad():
        return {"scores": module(*inputs.values())}

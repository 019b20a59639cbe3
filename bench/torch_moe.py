#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two equal branches of a mixture of experts, of 256 tokens x 1024 each, through PyTorch: on two streams against one, one
thread an operator (torch.set_num_threads(1)), in alternating pairs inside one process.
"""
import argparse
import sys
import time
import warnings

import measure

sys.path[:0] = [str(measure.ROOT / "python/tests"), str(measure.ROOT / "build/release/python")]
import torch  # noqa: E402
from networks import mlp  # noqa: E402

import millstream  # noqa: E402
from millstream.scope import npu_stream_switch  # noqa: E402

WANTED = 1.5
TOKENS, WIDTH, HIDDEN = 256, 1024, 4096


class Branches(torch.nn.Module):
    def __init__(self, streams: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.tags = ["0", str(streams - 1)]
        self.left, self.right = mlp(WIDTH, HIDDEN), mlp(WIDTH, HIDDEN)

    def forward(self, x, y):
        with npu_stream_switch(self.tags[0]):
            left = self.left(x)
        with npu_stream_switch(self.tags[1]):
            right = self.right(y)
        return left, right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=21)
    parser.add_argument("--short", action="store_true", help="five pairs")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    if options.short:
        options.pairs = 5
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    load = measure.load_words()
    inputs = torch.randn(TOKENS, WIDTH), torch.randn(TOKENS, WIDTH)
    times: dict[int, list[float]] = {1: [], 2: []}
    with torch.no_grad():
        calls, backends = {}, {}
        for streams in times:
            backends[streams] = millstream.get_backend()
            calls[streams] = torch.compile(Branches(streams).eval(), backend=backends[streams], fullgraph=True, dynamic=False)
        results = {streams: [call(*inputs) for _ in range(3)][-1] for streams, call in calls.items()}
        used = {streams: backend.graphs[0].plan.streams for streams, backend in backends.items()}
        for _ in range(options.pairs):
            for streams, call in calls.items():
                begin = time.perf_counter()
                call(*inputs)
                times[streams].append(time.perf_counter() - begin)
    equal = all(map(torch.equal, results[1], results[2]))
    speed = measure.median([one / two for one, two in zip(times[1], times[2])])
    text = (f"Two MLPs {WIDTH} -> {HIDDEN} -> {WIDTH} on {TOKENS} tokens each, one thread an operator (`torch.set_num_threads(1)`), {options.pairs} "
            f"alternating pairs; PyTorch {torch.__version__}; {measure.machine()}; {load}.\n\n")
    text += measure.table(["streams used", "one stream, ms", "two streams, ms", "speed-up (median of pairs)", "bitwise equal"],
                          [[f"{used[1]}, {used[2]}", f"{measure.median(times[1]) * 1e3:.2f}", f"{measure.median(times[2]) * 1e3:.2f}", f"{speed:.2f}",
                            "yes" if equal else "no"]])
    text += f"\n\nWanted: at least {WANTED}; here {speed:.2f}."
    return measure.finish("torch_moe", text, options, speed >= WANTED and equal)


if __name__ == "__main__":
    sys.exit(main())

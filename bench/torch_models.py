#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the PyTorch back-end costs: time to compile and time a call of whole networks, beside backend="eager" (Dynamo alone)
in the same process. Both take their turns; a cell is the median over the rounds, a ratio the median of the rounds' ratios.
Times are the process's processor time, so that other work on the machine counts little.
"""
import argparse
import sys
import time
import warnings

import measure

sys.path[:0] = [str(measure.ROOT / "python/tests"), str(measure.ROOT / "build/release/python")]
import torch  # noqa: E402
import networks  # noqa: E402

import millstream  # noqa: E402


def compiled(module, backend, example) -> tuple[object, float]:
    """(the module compiled afresh, seconds to its first result)."""
    torch._dynamo.reset()
    begin = time.process_time()
    call = torch.compile(module, backend=backend, fullgraph=True, dynamic=False)
    call(example)
    return call, time.process_time() - begin


def seconds(call, example, repeat: int) -> float:
    times = []
    for _ in range(repeat):
        begin = time.process_time()
        call(example)
        times.append(time.process_time() - begin)
    return measure.median(times)


def ours(streams: int) -> millstream.CompilerConfig:
    config = millstream.CompilerConfig()
    config.set("streams", streams)
    return config


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--compilations", type=int, default=3)
    parser.add_argument("--match", default="")
    parser.add_argument("--short", action="store_true", help="three rounds, one compilation")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    if options.short:
        options.rounds, options.compilations = 3, 1
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    load, rows = measure.load_words(), []
    with torch._dynamo.config.patch(allow_rnn=True), torch.no_grad():
        compiled(torch.nn.ReLU(), "eager", torch.ones(1))  # what PyTorch does once in a process
        for name in networks.NAMES:
            if options.match not in name:
                continue
            network = networks.make(name, small=True)
            module, example = network.module.eval(), network.input
            build: dict[str, list[float]] = {"eager": [], "one": []}
            for _ in range(options.compilations):
                for kind, backend in (("eager", "eager"), ("one", millstream.get_backend(compiler_config=ours(1)))):
                    build[kind].append(compiled(module, backend, example)[1])
            backends = {"eager": "eager", "one": millstream.get_backend(compiler_config=ours(1)), "auto": millstream.get_backend()}
            calls = {}
            for kind, backend in backends.items():
                torch._dynamo.reset()
                # Each has a code object of its own, so that Dynamo keeps all three at once.
                calls[kind] = torch.compile(lambda x, m=module: m(x), backend=backend, fullgraph=True, dynamic=False)
            for call in calls.values():
                call(example)
            (graph,), (auto,) = backends["one"].graphs, backends["auto"].graphs
            repeat = max(3, min(50, int(0.15 / max(seconds(calls["eager"], example, 3), 1e-6))))
            times: dict[str, list[float]] = {kind: [] for kind in calls}
            for _ in range(options.rounds):
                for kind, call in calls.items():
                    times[kind].append(seconds(call, example, repeat))
            ratio = {k: measure.median([a / b for a, b in zip(times[k], times["eager"])]) for k in ("one", "auto")}
            nodes = len(graph.lowered.operators)
            extra = measure.median([a - b for a, b in zip(times["one"], times["eager"])]) * 1e6 / nodes
            rows.append([name, str(nodes), f"{measure.median(build['eager']):.2f}", f"{measure.median(build['one']):.2f}",
                         f"{measure.median([a / b for a, b in zip(build['one'], build['eager'])]):.2f}",
                         f"{measure.median(times['eager']) * 1e3:.2f}", f"{measure.median(times['one']) * 1e3:.2f}", f"{ratio['one']:.2f}",
                         f"{extra:.1f}", f"{auto.plan.streams}", f"{measure.median(times['auto']) * 1e3:.2f}", f"{ratio['auto']:.2f}"])
            print("  " + " · ".join(rows[-1]), file=sys.stderr, flush=True)
    text = (f"Inference of the small networks of `python/tests/networks.py`, one thread an operator; processor time; PyTorch {torch.__version__}; "
            f"{measure.machine()}; {load}; {options.rounds} rounds.\n\n")
    text += measure.table(["network", "operators", "eager: compile, s", "ours, s", "ratio", "eager: a call, ms", "ours, one stream, ms", "ratio",
                           "us more an operator", "auto: streams", "auto, ms", "ratio"], rows)
    return measure.finish("torch_models", text, options)


if __name__ == "__main__":
    sys.exit(main())

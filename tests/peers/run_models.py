#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs real models and generated topologies on several streams, with random delays, and holds every run to two claims:

 - the outputs match the reference (real models: rtol 1e-3, atol 1e-6 * max|reference|)
 - the outputs are, bit for bit, those of the same graph on one stream

Each graph runs on 1, 2, 4 and 8 streams with two workers, and on 8 streams with a single worker, which must not hang. A
model with control flow also runs where the device decides: on cpu, and in virtual time.
"""
import argparse
import re
import sys
import time

from command import TOPOLOGIES, CommandError, Millstream, arguments_of, index

# (streams, workers)
SHAPES = ((1, 2), (2, 2), (4, 2), (8, 2), (8, 1))


def subjects(tool: Millstream, options) -> list[tuple[str, list, bool, bool]]:
    """(name, MODEL and its options, whether it has a reference, whether it has control flow)."""
    found = [(e["name"], arguments_of(e), True, e["control_flow"]) for e in index() if options.all or e["reweighted"] or e["name"].startswith("ocr_")]
    if not options.no_topologies:
        found += [("gen_" + name, [tool.topology(name)], False, False) for name in TOPOLOGIES]
    return [s for s in found if re.search(options.match, s[0])]


# Who decides which way a loop or a branch goes: streams of the device.
ON_DEVICE = (("cpu", "cpu"), ("sim", "npu"))


def judge(result: dict, referenced: bool, compared: bool = True) -> str:
    """'' when both claims hold (the second where two runs were `compared`), else what does not."""
    wrong = []
    if referenced:
        outputs = result.get("outputs") or {}
        if not outputs:
            wrong.append("no output was compared")
        wrong += [f"{name} off by {o.get('max_abs_err')} ({o.get('max_rel_err')} relative)" for name, o in outputs.items() if o.get("ok") is not True]
    if compared and result.get("bitwise_equal_to_single") is not True:
        wrong.append(f"bitwise_equal_to_single is {result.get('bitwise_equal_to_single')}")
    return "; ".join(wrong)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="release")
    parser.add_argument("--runs", type=int, default=3, help="runs of each graph and stream count, each with its own delays (default 3)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first run's delays")
    parser.add_argument("--match", default="", help="only graphs whose name has this regular expression")
    parser.add_argument("--all", action="store_true", help="also the light models with their constant weights")
    parser.add_argument("--no-topologies", action="store_true")
    parser.add_argument("--seconds", type=float, default=300, help="a run that takes longer counts as hung (default 300)")
    options = parser.parse_args()
    begin, passed, failed = time.monotonic(), 0, 0
    try:
        tool = Millstream(options.preset, {"OMP_NUM_THREADS": "1"} if options.preset == "tsan" else None)
        todo = subjects(tool, options)
    except CommandError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if not todo:
        print(f"error: nothing matches '{options.match}'", file=sys.stderr)
        return 2
    print(f"{'graph':26} " + " ".join(f"{f'{s} on {w}':>9}" for s, w in SHAPES) + "   (streams used on workers; each with " + f"{options.runs} delays)")
    for name, words, referenced, control_flow in todo:
        cells, said = [], []
        for streams, workers in SHAPES:
            try:
                result = tool.json("run", *words, "--streams", streams, "--force-streams", "--workers", workers, "--threads-per-op", 1,
                                   "--compare", "single", "--warmup", 0, "--repeat", options.runs, "--delays", options.seed,
                                   seconds=options.seconds, statuses=(0, 1))
                wrong = judge(result, referenced)
                used = result.get("streams_used", "?")
            except CommandError as error:
                wrong, used = str(error), "-"
            passed, failed = passed + (not wrong), failed + bool(wrong)
            cells.append(f"{'ok' if not wrong else 'FAILED'} {used}")
            if wrong:
                said.append(f"  {streams} streams on {workers} workers: {wrong}")
        for device, target in ON_DEVICE if control_flow else ():
            try:
                wrong = judge(tool.json("run", *words, "--strategy", "ge", "--device", device, "--target", target, "--delays", options.seed,
                                        seconds=options.seconds, statuses=(0, 1)), referenced, compared=False)
            except CommandError as error:
                wrong = str(error)
            passed, failed = passed + (not wrong), failed + bool(wrong)
            cells.append(f"{'ok' if not wrong else 'FAILED'} on {device}")
            if wrong:
                said.append(f"  the device decides, on {device}: {wrong}")
        print(f"{name:26} " + " ".join(f"{c:>9}" for c in cells), flush=True)
        for line in said:
            print(line, flush=True)
    print(f"models: {passed} passed, {failed} failed of {passed + failed} (graph, streams, workers), "
          f"{options.runs} runs each, {time.monotonic() - begin:.0f} s")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real models side by side in one run: millstream (1 stream x 2 threads, 2 x 1, auto) and onnxruntime (sequential with
two threads in an operator, parallel with two operators at once). Every configuration takes its turn in each round, in a
process of its own; a cell is the median over the rounds of each round's median.
"""
import argparse
import json
import re
import subprocess
import sys

import measure
from measure import MODELS, ROOT, CommandError, Millstream, arguments_of, index, median

OURS = {
    "1 stream x 2 threads": ["--strategy", "single", "--threads-per-op", 2, "--workers", 1],
    "2 streams x 1 thread": ["--streams", 2, "--force-streams", "--threads-per-op", 1, "--workers", 2],
    "auto": ["--cores", 2],
}
THEIRS = {"onnxruntime sequential, intra 2": ["--intra", "2"], "onnxruntime parallel, inter 2": ["--intra", "1", "--inter", "2"]}


def ours(tool: Millstream, entry: dict, flags: list, repeat: int) -> dict:
    return tool.json("run", *arguments_of(entry), *flags, "--warmup", 2, "--repeat", repeat, seconds=900)


def theirs(entry: dict, flags: list, seconds: float) -> float:
    words = [sys.executable, ROOT / "bench/onnxruntime_run.py", MODELS / entry["model"], *flags, "--seconds", str(seconds)]
    for name, file in entry["inputs"].items():
        words += ["--input", f"{name}={MODELS / file}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CommandError(f"onnxruntime failed on {entry['name']}: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)["median_ms"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="about how long a configuration runs in each round")
    parser.add_argument("--match", default="")
    parser.add_argument("--short", action="store_true", help="two rounds of 0.2 s")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    if options.short:
        options.rounds, options.seconds = 2, 0.2
    tool, rows, load = Millstream(), [], measure.load_words()
    entries = [e for e in index() if (e["reweighted"] or e["name"].startswith("ocr_")) and re.search(options.match, e["name"])]
    for entry in entries:
        times: dict[str, list[float]] = {name: [] for name in (*OURS, *THEIRS)}
        first = ours(tool, entry, OURS["1 stream x 2 threads"], 1)["median_ms"]
        repeat = max(3, min(500, int(options.seconds * 1000 / max(first, 0.01))))
        streams = "?"
        for _ in range(options.rounds):
            for name, flags in OURS.items():
                result = ours(tool, entry, flags, repeat)
                times[name].append(result["median_ms"])
                if name == "auto":
                    streams = f"{result['streams_used']} x {result['threads_per_op']}"
            for name, flags in THEIRS.items():
                times[name].append(theirs(entry, flags, options.seconds))
        rows.append([entry["name"], *(f"{median(v):.2f}" for v in times.values()), streams])
        print("  " + " · ".join(rows[-1]), file=sys.stderr, flush=True)
    import onnxruntime
    text = f"Milliseconds a run, {measure.machine()}; onnxruntime {onnxruntime.__version__}; {load}; {options.rounds} rounds.\n\n"
    text += measure.table(["model", *OURS, *THEIRS, "auto chose (streams x threads)"], rows)
    return measure.finish("models", text, options)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CommandError as error:
        sys.exit(f"error: {error}")

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A randomly wired network (Watts-Strogatz, 32 nodes, p = 0.75) on two cores with one thread an operator: the median over
21 alternating pairs of one-stream time / many-stream time. Wanted: at least 1.6. Exit status 1 below that.
"""
import argparse
import sys

import measure
from measure import ROOT, CommandError, Millstream

WANTED = 1.6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=21)
    parser.add_argument("--short", action="store_true", help="5 pairs")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    pairs = 5 if options.short else options.pairs
    tool, load = Millstream(), measure.load_words()
    model = ROOT / "build/topologies/bench_randwire.mst"
    model.parent.mkdir(parents=True, exist_ok=True)
    tool.call("gen", "randwire", "--nodes", 32, "--p", 0.75, "-o", model)
    rows, best = [], 0.0
    for streams in (2, 4, 8):
        r = tool.json("run", model, "--streams", streams, "--threads-per-op", 1, "--cores", 2, "--workers", 2, "--compare", "single",
                      "--warmup", 3, "--repeat", pairs)
        best = max(best, r["pair_speedup_median"])
        rows.append([str(streams), str(r["streams_used"]), f"{r['single_median_ms']:.2f}", f"{r['median_ms']:.2f}",
                     f"{r['pair_speedup_median']:.2f}", f"{r['overlap']:.2f}", "yes" if r["bitwise_equal_to_single"] else "NO"])
    text = f"`gen randwire --nodes 32 --p 0.75`, one thread an operator, two workers, {pairs} alternating pairs; {measure.machine()}; {load}.\n\n"
    text += measure.table(["streams allowed", "used", "one stream, ms", "streams, ms", "speed-up (median of pairs)", "overlap", "bitwise equal"], rows)
    text += f"\n\nWanted: at least {WANTED}; best here {best:.2f}."
    return measure.finish("randwire", text, options, best >= WANTED and all(row[-1] == "yes" for row in rows))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CommandError as error:
        sys.exit(f"error: {error}")

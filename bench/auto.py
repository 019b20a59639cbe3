#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The strategy `auto` against one stream with the same two threads in total, on every real model: the median over 31
alternating pairs of auto's time / one stream's time. Wanted: at most 1.05 on each. Exit status 1 above that.
"""
import argparse
import re
import sys

import measure
from measure import CommandError, Millstream, arguments_of, index

WANTED = 1.05


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=31)
    parser.add_argument("--match", default="")
    parser.add_argument("--short", action="store_true", help="5 pairs")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    pairs = 5 if options.short else options.pairs
    tool, rows, high, load = Millstream(), [], [], measure.load_words()
    for entry in index():
        if not re.search(options.match, entry["name"]):
            continue
        r = tool.json("run", *arguments_of(entry), "--cores", 2, "--compare", "single", "--compare-threads", 2, "--warmup", 3, "--repeat", pairs, seconds=900)
        ratio = 1 / r["pair_speedup_median"]
        if ratio > WANTED:
            high.append(entry["name"])
        rows.append([entry["name"], f"{r['streams_used']} x {r['threads_per_op']}", f"{r['single_median_ms']:.2f}", f"{r['median_ms']:.2f}", f"{ratio:.3f}"])
        print("  " + " · ".join(rows[-1]), file=sys.stderr, flush=True)
    text = f"{pairs} alternating pairs in one process each; {measure.machine()}; {load}.\n\n"
    text += measure.table(["model", "auto chose (streams x threads)", "1 stream x 2 threads, ms", "auto, ms", "auto / one stream"], rows)
    text += f"\n\nWanted: at most {WANTED}; above it: {', '.join(high) or 'none'}."
    return measure.finish("auto", text, options, not high and bool(rows))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CommandError as error:
        sys.exit(f"error: {error}")

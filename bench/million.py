#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiling a million nodes: `gen lanes --width 8` with 100 000 and 1 000 000 nodes, listed lane by lane and breadth first,
five alternating runs. Wanted, for the median of each listing: compile at most 2 s beyond reading, at most 600 bytes of peak
memory a node beyond the file's own bytes, and at most 1.5 times the ns per node of 100 000 nodes. Exit status 1 otherwise.

The memory figure is the whole process's peak less the file, so it also carries what the program and its libraries need.
"""
import argparse
import sys

import measure
from measure import ROOT, CommandError, Millstream, median

SECONDS, BYTES, GROWTH = 2.0, 600, 1.5
SIZES = (100_000, 1_000_000)
KEPT = ("nodes", "compile_ms", "read_ms", "peak_rss_kb", "physical_streams", "pairs_kept")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--short", action="store_true", help="one run")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    runs = 1 if options.short else options.runs
    tool, load = Millstream(), measure.load_words()
    folder = ROOT / "build/topologies"
    folder.mkdir(parents=True, exist_ok=True)
    cases = {}
    for listing in ("lanes", "breadth"):
        for size in SIZES:
            path = folder / f"million_{listing}_{size}.mst"
            tool.call("gen", "lanes", "--nodes", size, "--width", 8, "--listing", listing, "-o", path)
            cases[listing, size] = path
    seen: dict[tuple, list[dict]] = {case: [] for case in cases}
    for _ in range(runs):
        for case, path in cases.items():
            told = tool.json("compile", path, "--streams", 8, "--force-streams", seconds=300)
            seen[case].append({key: told[key] for key in KEPT})  # not the lists that have an entry for each node
    rows, bad = [], []
    for (listing, size), results in seen.items():
        nodes = results[0]["nodes"]
        ms = median(r["compile_ms"] for r in results)
        small = seen[listing, SIZES[0]]
        growth = (ms / nodes) / median(r["compile_ms"] / r["nodes"] for r in small)
        peak = median((r["peak_rss_kb"] * 1024 - cases[listing, size].stat().st_size) / nodes for r in results)
        rows.append([f"{listing}, {size:,}", str(results[0]["physical_streams"]), f"{median(r['read_ms'] for r in results):.0f}", f"{ms:.0f}",
                     f"{ms * 1e6 / nodes:.0f}", f"{growth:.2f}", f"{peak:.0f}", str(results[0]["pairs_kept"])])
        if size == SIZES[1]:
            bad += [f"{listing}: {ms / 1000:.2f} s"] * (ms > SECONDS * 1000) + [f"{listing}: {peak:.0f} bytes a node"] * (peak > BYTES) + \
                   [f"{listing}: ns per node grow {growth:.2f} times"] * (growth > GROWTH)
    text = f"`gen lanes --width 8`, `compile --streams 8 --force-streams`, median of {runs} alternating runs; {measure.machine()}; {load}.\n\n"
    text += measure.table(["listing, nodes", "streams", "read, ms", "compile, ms", "ns a node", "growth", "peak bytes a node beyond the file", "pairs kept"], rows)
    text += f"\n\nWanted at a million: at most {SECONDS} s, {BYTES} bytes a node, {GROWTH} times the ns a node. Missed: {'; '.join(bad) or 'none'}."
    return measure.finish("million", text, options, not bad)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CommandError as error:
        sys.exit(f"error: {error}")

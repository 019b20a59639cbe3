#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Deletes single waits from plans, and demands that `millstream check` sees each deletion.

The plan as compiled must pass, with no wait redundant. With one wait deleted it must be refused, and a counter-example
must name the deleted wait as missing, or a wait that the deleted one implied: its two ends then lie before the record
and behind the wait that were separated. That is judged on the lanes by code of its own (lanes.py).
"""
import argparse
import concurrent.futures
import random
import re
import sys
import time

from command import MODELS, TOPOLOGIES, CommandError, Millstream, arguments_of, index
from lanes import Lanes


def plans(tool: Millstream, options):
    """(name, MODEL, its --dim options)"""
    for entry in index():
        if entry["reweighted"] or entry["name"].startswith("ocr_"):
            words = arguments_of({**entry, "inputs": {}}, expect=False)
            yield entry["name"], words[0], words[1:]
    for name in TOPOLOGIES:
        yield "gen_" + name, tool.topology(name), []


def explains(lanes: Lanes, wait: tuple[int, int], report: dict) -> bool:
    """Does some violation's missing wait stand for the deleted one?"""
    earlier, later = lanes.reached(lanes.source[wait], forward=False), lanes.reached(wait, forward=True)
    missing = [v["missing"] for v in report["violations"] if v.get("missing")]
    return any(m["from"] in earlier and m["to"] in later for m in missing)


def judge(tool: Millstream, model, dims: list, lanes: Lanes, wait: tuple[int, int], path) -> str:
    """'' when the deletion was seen and named."""
    path.write_text(lanes.without(wait))
    try:
        report = tool.json("check", path, "--graph", model, *dims, statuses=(0, 1), seconds=120)
    except CommandError as error:
        return str(error)
    if report["ok"]:
        return "accepted"
    if not explains(lanes, wait, report):
        return f"refused, but not for the deleted wait: {[(v['kind'], v.get('missing')) for v in report['violations'][:3]]}"
    path.unlink()
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="release")
    parser.add_argument("--sample", type=int, help="at most this many waits of each plan, chosen by the seed (default: all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--match", default="", help="only graphs whose name has this regular expression")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    begin, passed, failed = time.monotonic(), 0, 0
    folder = MODELS.parent / "mutants"
    folder.mkdir(parents=True, exist_ok=True)
    chooser = random.Random(options.seed)
    try:
        tool = Millstream(options.preset)
        todo = [p for p in plans(tool, options) if re.search(options.match, p[0])]
    except CommandError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{'graph':26} {'streams':>7} {'waits':>6} {'tried':>6} {'seen':>6}")
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        for name, model, dims in todo:
            for streams in (2, 4, 8):
                path = folder / f"{name}_{streams}.mst"
                try:
                    tool.json("compile", model, *dims, "--streams", streams, "--force-streams", "-o", path)
                    whole = tool.json("check", path, "--graph", model, *dims, statuses=(0, 1))
                    lanes = Lanes(path.read_text())
                except (CommandError, ValueError) as error:
                    failed += 1
                    print(f"{name:26} {streams:7}  FAILED: {error}", flush=True)
                    continue
                if not whole["ok"] or whole["redundant"]:
                    failed += 1
                    print(f"{name:26} {streams:7}  FAILED: the unmutated plan: ok={whole['ok']}, {len(whole['redundant'])} redundant waits", flush=True)
                    continue
                passed += 1
                waits = lanes.waits()
                tried = waits if options.sample is None or len(waits) <= options.sample else chooser.sample(waits, options.sample)
                said = list(pool.map(lambda w: judge(tool, model, dims, lanes, w, folder / f"{name}_{streams}_{w[0]}_{w[1]}.mst"), tried))
                good = sum(not s for s in said)
                passed, failed = passed + good, failed + len(said) - good
                print(f"{name:26} {streams:7} {len(waits):6} {len(tried):6} {good:6}", flush=True)
                for wait, words in zip(tried, said):
                    if words:
                        print(f"  stream {wait[0]}, task {wait[1]} ({lanes.tasks[wait[0]][wait[1]]}): {words}", flush=True)
    print(f"mutation: {passed} passed, {failed} failed (plans and deletions), {time.monotonic() - begin:.0f} s")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

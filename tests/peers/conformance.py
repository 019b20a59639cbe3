#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every backend case that the onnx package ships (node, simple, pytorch) through onnx_cases, and judges.

A case is *passed*, *unsupported* (refused by the importer or for want of a kernel, with operator, opset and reason)
or *failed* (a wrong result, a crash, a hang, or an error that is no refusal). No case is left out by name.

Exit status: 0 when nothing failed, at least --passed cases passed, and at least --share of the float32 cases of each
operator that the models in build/models use passed; 1 otherwise; 2 when it cannot run.
"""
import argparse
import collections
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
GROUPS = ("node", "simple", "pytorch-converted", "pytorch-operator")
BATCH = 40
BATCH_SECONDS = 180
CASE_SECONDS = 30


def find_cases(data: pathlib.Path) -> list[pathlib.Path]:
    return [case for group in GROUPS for case in sorted((data / group).iterdir()) if (case / "model.onnx").exists()]


def call(driver: pathlib.Path, cases: list[pathlib.Path], seconds: int) -> tuple[dict, str]:
    """Results by case folder, and how the process ended if not well."""
    try:
        done = subprocess.run([driver, *cases], capture_output=True, text=True, errors="replace", timeout=seconds)
        out, end = done.stdout, ""
        if done.returncode not in (0, 1):  # 1: some case failed, said in its line
            last = (done.stderr.strip().splitlines() or [""])[-1]
            end = f"crashed with status {done.returncode}: {last}"[:300]
    except subprocess.TimeoutExpired as late:
        out = (late.stdout or b"").decode(errors="replace")
        end = f"no answer within {seconds} s"
    by_folder = {str(case): case for case in cases} | {case.name: case for case in cases}
    results = {}
    for line in out.splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        case = by_folder.get(found.get("case", "").rstrip("/")) if isinstance(found, dict) else None
        if case is not None and found.get("status") in ("passed", "unsupported", "failed"):
            results[case] = found
    return results, end


def run_batch(driver: pathlib.Path, cases: list[pathlib.Path]) -> dict:
    """A batch; whatever it did not answer runs again alone, so that a crash is blamed on its own case."""
    results, _ = call(driver, cases, BATCH_SECONDS)
    for case in cases:
        if case not in results:
            alone, end = call(driver, [case], CASE_SECONDS)
            results[case] = alone.get(case) if case in alone and not end else \
                {"status": "failed", "reason": end or "no result line", "ops": [], "opset": 0}
    return results


def op_types(graph) -> set[str]:
    found = set()
    for node in graph.node:
        found.add(node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}::{node.op_type}")
        for attribute in node.attribute:
            for inner in [attribute.g] * attribute.HasField("g") + list(attribute.graphs):
                found |= op_types(inner)
    return found


def is_float32(graph) -> bool:
    """Has float32 inputs or outputs, and none of another floating type, string, sequence or optional."""
    from onnx import TensorProto

    whole = {TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64,
             TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64}
    kinds = []
    for value in list(graph.input) + list(graph.output):
        if not value.type.HasField("tensor_type"):
            return False
        kinds.append(value.type.tensor_type.elem_type)
    return TensorProto.FLOAT in kinds and set(kinds) <= whole


def used_operators() -> set[str]:
    import onnx

    index = ROOT / "build/models/index.json"
    if not index.exists():
        return set()
    used = set()
    for entry in json.loads(index.read_text()):
        used |= op_types(onnx.load(index.parent / entry["model"], load_external_data=False).graph)
    return used


def missing_of(result: dict, ops: set[str]) -> list[tuple]:
    """(operator, opset, reason) rows of an unsupported case."""
    rows = [(m.get("type", "?"), m.get("opset", result.get("opset", 0)), m.get("reason", "")) for m in result.get("missing", [])]
    if rows:
        return rows
    return [("+".join(sorted(result.get("ops") or ops)) or "?", result.get("opset", 0), result.get("reason", ""))]


def tidy(reason: str) -> str:
    """Without what differs from case to case (paths, node numbers, quoted names), so that equal reasons count together."""
    text = reason.strip().splitlines()[0] if reason.strip() else "no reason given"
    return re.sub(r'"[^"]*"', '"..."', text)[:110]


def report(cases, results, ops_of, float32, used, options) -> int:
    count = collections.Counter(results[case]["status"] for case in cases)
    rows = collections.Counter()
    for case in cases:
        if results[case]["status"] == "unsupported":
            for op, opset, reason in set((o, n, tidy(r)) for o, n, r in missing_of(results[case], ops_of[case])):
                rows[op, opset, reason] += 1
    if rows:
        print("unsupported, by operator:")
        for (op, opset, reason), number in sorted(rows.items()):
            print(f"  {number:4} x {op} (opset {opset}): {reason}")
    for case in cases:
        if results[case]["status"] == "failed":
            print(f"  FAILED {case.parent.name}/{case.name}: {results[case].get('reason', '')[:200]}")
    low = []
    shares = {}
    for op in sorted(used):
        own = [case for case in cases if op in ops_of[case] and case in float32]
        passed = sum(results[case]["status"] == "passed" for case in own)
        shares[op] = [passed, len(own)]
        if own and passed < options.share * len(own):
            low.append(op)
    if shares:
        print("float32 cases passed, of the operators that the real models use:")
        words = [f"{op} {p}/{n}" for op, (p, n) in shares.items()]
        for begin in range(0, len(words), 6):
            print("  " + " · ".join(words[begin:begin + 6]))
    for op in low:
        print(f"  BELOW {options.share:.0%}: {op} {shares[op][0]}/{shares[op][1]}: " +
              ", ".join(case.name for case in cases if op in ops_of[case] and case in float32 and results[case]["status"] != "passed")[:400])
    if not used:
        print("  (build/models is missing: run tests/peers/models.py to judge the used operators)")
    if options.json:
        detail = {f"{c.parent.name}/{c.name}": {"status": results[c]["status"], "reason": results[c].get("reason", "")} for c in cases}
        pathlib.Path(options.json).write_text(json.dumps({"count": count, "used": shares, "cases": detail}, indent=1))
    if count["passed"] < options.passed:
        print(f"  TOO FEW: {count['passed']} passed, at least {options.passed} are wanted")
    print(f"conformance: {count['passed']} passed, {count['unsupported']} unsupported, {count['failed']} failed of {len(cases)} cases")
    good = count["failed"] == 0 and count["passed"] >= options.passed and not low and (used or options.allow_no_models)
    return 0 if good else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="release")
    parser.add_argument("--driver", type=pathlib.Path, help="default: build/PRESET/tests/onnx_cases")
    parser.add_argument("--passed", type=int, default=800, help="passed cases wanted (default 800)")
    parser.add_argument("--share", type=float, default=0.9, help="share wanted of each used operator (default 0.9)")
    parser.add_argument("--match", default="", help="only cases whose name has this regular expression (judges only failures)")
    parser.add_argument("--allow-no-models", action="store_true", help="do not fail when build/models is missing")
    parser.add_argument("--json", metavar="FILE", help="write every case's status there")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    import onnx

    driver = options.driver or ROOT / "build" / options.preset / "tests/onnx_cases"
    if not driver.exists():
        print(f"error: {driver} is missing\n  help: cmake --build build/{options.preset} --target onnx_cases", file=sys.stderr)
        return 2
    begin = time.monotonic()
    cases = [c for c in find_cases(pathlib.Path(onnx.__file__).parent / "backend/test/data") if re.search(options.match, c.name)]
    if not cases:
        print("error: no case found in the onnx package's test data", file=sys.stderr)
        return 2
    ops_of, float32 = {}, set()
    for case in cases:
        graph = onnx.load(case / "model.onnx", load_external_data=False).graph
        ops_of[case] = op_types(graph)
        if is_float32(graph):
            float32.add(case)
    used = used_operators()
    if options.match:
        options.passed, used, options.allow_no_models = 0, set(), True
    results = {}
    batches = [cases[i:i + BATCH] for i in range(0, len(cases), BATCH)]
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        for part in pool.map(lambda batch: run_batch(driver, batch), batches):
            results |= part
    status = report(cases, results, ops_of, float32, used, options)
    print(f"conformance: took {time.monotonic() - begin:.0f} s", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reading graph dumps of a million nodes (about 300 MB, written to a temporary folder): seconds and peak memory before
`millstream compile` begins to plan. Wanted for each format: at most 10 s
and 1.5 GiB. Exit status 1 otherwise. --protoc also times protobuf's own reader, which makes message objects, on the ge_onnx file.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import measure
from measure import CommandError, Millstream, median

SECONDS, GIB = 10.0, 1.5


def attribute(name: str, value: str, kind: str) -> str:
    return f'    attribute {{\n      name: "{name}"\n{value}      type: {kind}\n    }}\n'


def onnx_node(n: int, lanes: int) -> str:
    source = f'    input: "n{n - lanes}:0"\n' if n >= lanes else ""
    stream = n % lanes
    return (f'  node {{\n{source}    output: "n{n}:0"\n    name: "n{n}"\n    op_type: "ge:Abs"\n'
            + attribute("id", f"      i: {n}\n" if n else "", "INT")
            + attribute("output_desc_dtype:0", '      s: "DT_FLOAT"\n', "STRING")
            + attribute("stream_id", f"      i: {stream}\n" if stream else "", "INT") + "  }\n")


def proto_node(n: int, lanes: int) -> str:
    source = f'    input: "n{n - lanes}:0"\n' if n >= lanes else ""
    desc = '{\n      dtype: DT_FLOAT\n      shape {\n        dim: 2\n        dim: 3\n      }\n      layout: "ND"\n    }\n'
    return (f'  op {{\n    name: "n{n}"\n    type: "Abs"\n{source}'
            + (f"    id: {n}\n" if n else "") + (f"    stream_id: {n % lanes}\n" if n % lanes else "")
            + (f"    input_desc {desc}" if source else "") + f"    output_desc {desc}  }}\n")


def write(path: pathlib.Path, nodes: int, onnx: bool) -> None:
    lanes, node = 8, onnx_node if onnx else proto_node
    with path.open("w") as out:
        out.write('ir_version: 6\nproducer_name: "GE"\nmodel_version: 1\ngraph {\n' if onnx else 'version: 1\ngraph {\n  name: "big"\n')
        for begin in range(0, nodes, 10_000):
            out.write("".join(node(n, lanes) for n in range(begin, min(nodes, begin + 10_000))))
        out.write('  name: "big"\n}\n' if onnx else "}\n")


def timed(command: list[str], **kwargs) -> tuple[float, int]:
    """Wall seconds and peak bytes of a command that must succeed."""
    began = time.monotonic()
    process = subprocess.Popen(command, **kwargs)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise CommandError(f"{' '.join(command)} failed with status {status}")
    return time.monotonic() - began, usage.ru_maxrss * 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--short", action="store_true", help="one run of 100 000 nodes")
    parser.add_argument("--protoc", metavar="ONNX_PROTO", help="also time protoc --encode with this onnx.proto")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    nodes, runs = (100_000, 1) if options.short else (options.nodes, options.runs)
    tool, load = Millstream(), measure.load_words()
    rows, bad = [], []
    with tempfile.TemporaryDirectory() as folder:
        for onnx in (True, False):
            path = pathlib.Path(folder) / ("big.pbtxt" if onnx else "big.txt")
            write(path, nodes, onnx)
            megabytes = path.stat().st_size / 1e6
            began = [tool.json("compile", path, "--strategy", "single", seconds=600) for _ in range(runs)]
            seconds = median(told["read_ms"] for told in began) / 1000
            peak = median(told["read_rss_kb"] for told in began) * 1024
            rows.append([path.suffix[1:], f"{nodes:,}", f"{megabytes:.0f}", f"{seconds:.2f}", f"{megabytes / seconds:.0f}", f"{peak / 2**30:.2f}"])
            bad += [f"{path.suffix}: {seconds:.1f} s"] * (seconds > SECONDS) + [f"{path.suffix}: {peak / 2**30:.2f} GiB"] * (peak > GIB * 2**30)
            if onnx and options.protoc:
                proto = pathlib.Path(options.protoc)
                package = next(line.split()[1].rstrip(";") for line in proto.read_text().splitlines() if line.startswith("package "))
                with path.open() as text:
                    seconds, peak = timed(["protoc", "-I", str(proto.parent), f"--encode={package}.ModelProto", str(proto)], stdin=text, stdout=subprocess.DEVNULL)
                rows.append(["pbtxt by protoc", f"{nodes:,}", f"{megabytes:.0f}", f"{seconds:.2f}", f"{megabytes / seconds:.0f}", f"{peak / 2**30:.2f}"])
    text = f"Reading dumps, median of {runs} runs; {measure.machine()}; {load}.\n\n"
    text += measure.table(["format", "nodes", "MB", "read, s", "MB/s", "peak GiB"], rows)
    text += f"\n\nWanted at a million: at most {SECONDS:.0f} s and {GIB} GiB. Missed: {'; '.join(bad) or 'none'}."
    return measure.finish("dump", text, options, not bad)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CommandError as error:
        sys.exit(f"error: {error}")

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times one model in onnxruntime in a process of its own, so that its threads are gone when another is measured.

Prints one JSON object: {"median_ms": ...}. Used by bench/models.py.
"""
import argparse
import json
import statistics
import time

import numpy as np
import onnxruntime

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("model")
parser.add_argument("--input", action="append", required=True, metavar="NAME=FILE.npy")
parser.add_argument("--intra", type=int, required=True)
parser.add_argument("--inter", type=int, default=1, help="above 1: parallel execution of operators")
parser.add_argument("--seconds", type=float, required=True)
options = parser.parse_args()

settings = onnxruntime.SessionOptions()
settings.intra_op_num_threads = options.intra
settings.log_severity_level = 3
if options.inter > 1:
    settings.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL
    settings.inter_op_num_threads = options.inter
session = onnxruntime.InferenceSession(options.model, settings, providers=["CPUExecutionProvider"])
inputs = {name: np.load(file) for name, file in (text.split("=", 1) for text in options.input)}
times = []
end = time.perf_counter() + options.seconds
session.run(None, inputs)
while time.perf_counter() < end or len(times) < 3:
    began = time.perf_counter()
    session.run(None, inputs)
    times.append((time.perf_counter() - began) * 1000)
print(json.dumps({"median_ms": statistics.median(times), "runs": len(times)}))

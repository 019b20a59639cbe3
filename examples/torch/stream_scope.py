# SPDX-License-Identifier: Apache-2.0
"""The article's model with two labelled streams, for a machine without an NPU.

Three things differ from the program for the device: the two lines that install the names of torchair, the
inputs, which stay where they are made (`.npu()` is gone), and the end, which shows the streams and compares with
eager code.
"""

import logging
import warnings

import torch

from millstream.compat import torchair
torchair.install()

import torch_npu  # noqa: E402, F401
import torchair as tng  # noqa: E402
from torchair.configs.compiler_config import CompilerConfig  # noqa: E402
from torchair.core.utils import logger  # noqa: E402

logger.setLevel(logging.DEBUG)


# add_result and mm1 are on the default stream, mm_result on stream 1, add2 on stream 2.
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, in1, in2, in3, in4):
        add_result = torch.add(in1, in2)
        with tng.scope.npu_stream_switch("1"):
            # torch.mm (mm_result) runs after torch.add (add_result)
            tng.scope.npu_wait_tensor(in4, add_result)
            mm_result = torch.mm(in3, in4)
        mm1 = torch.mm(in3, in4)
        with tng.scope.npu_stream_switch("2"):
            # torch.add (add2) runs after torch.mm (mm_result)
            tng.scope.npu_wait_tensor(in4, mm_result)
            add2 = torch.add(in3, in4)
        return add_result, mm_result, mm1, add2


model = Model()
config = CompilerConfig()
config.debug.graph_dump.type = "pbtxt"
npu_backend = tng.get_npu_backend(compiler_config=config)
eager = model
model = torch.compile(model, backend=npu_backend, dynamic=False, fullgraph=True)
in1 = torch.randn(1000, 1000, dtype=torch.float16)
in2 = torch.randn(1000, 1000, dtype=torch.float16)
in3 = torch.randn(1000, 1000, dtype=torch.float16)
in4 = torch.randn(1000, 1000, dtype=torch.float16)
result = model(in1, in2, in3, in4)
print(f"Result:\n{result}\n")

for graph in npu_backend.graphs:
    print(graph.plan.allocation_summary())
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for got, want in zip(result, eager(in1, in2, in3, in4)):
        assert torch.equal(got, want)

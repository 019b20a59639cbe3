# SPDX-License-Identifier: Apache-2.0
"""The Python programs in README.md and docs/torch.md run as they stand."""

import contextlib
import io
import pathlib
import re
import unittest

import torch_support as support  # skips this file without PyTorch
import torch

import millstream

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Documents(unittest.TestCase):
    def test_programs(self):
        if "millstream" not in torch._dynamo.list_backends():
            torch._dynamo.register_backend(millstream.get_backend(), name="millstream")
        for name in ("README.md", "docs/torch.md"):
            programs = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.S)
            self.assertTrue(programs, name)
            for program in programs:
                path = f"<{name}>"
                torch._dynamo.reset()
                with self.subTest(name), support.quiet(), contextlib.redirect_stdout(io.StringIO()) as out:
                    exec(compile(program, path, "exec"), {})
                    self.assertIn("user_stream_label: side", out.getvalue())


if __name__ == "__main__":
    unittest.main()

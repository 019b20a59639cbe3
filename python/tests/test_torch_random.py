# SPDX-License-Identifier: Apache-2.0
"""Random programs: compiled equals eager, the plan is proved, and no label is lost without a word.

MILLSTREAM_PROGRAMS says how many (50), MILLSTREAM_SEED where to begin (0).
"""

import os
import unittest

import torch

import random_programs
import torch_support as support
from millstream import ops

COUNT = int(os.environ.get("MILLSTREAM_PROGRAMS", "50"))
SEED = int(os.environ.get("MILLSTREAM_SEED", "0"))


class RandomPrograms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        ops.release_tagged_events()
        cls.event = ops.npu_create_tagged_event("random")

    @classmethod
    def tearDownClass(cls):
        ops.release_tagged_events()

    def checked(self, seed, training):
        program = random_programs.program(seed, training=training)
        try:
            self.compare(program, seed, training)
        except Exception as error:
            raise AssertionError(f"seed {seed}, training {training}\n{program.source}") from error

    def compare(self, program, seed, training):
        with support.quiet() as said:
            compiled, backend = support.compiled_by(program.function)
            mine = random_programs.inputs(seed, training=training)
            theirs = support.copies(mine)
            with torch.set_grad_enabled(training):
                try:
                    want = program.function(*theirs, self.event)
                except RuntimeError:  # a write that PyTorch forbids: no program
                    return
                got = compiled(*mine, self.event)
                self.assertTrue(support.same(got, want), "results differ")
                if training and any(t.requires_grad for t in want):
                    sum(t.sum() for t in got).backward()
                    sum(t.sum() for t in want).backward()
                    for a, b in zip(mine, theirs):
                        torch.testing.assert_close(a.grad, b.grad)
            self.assertTrue(support.same(mine, theirs), "inputs differ")
            for order in range(3):
                if not training:
                    again = random_programs.inputs(seed)
                    with support.played(order):
                        got = compiled(*again, self.event)
                    self.assertTrue(support.same((got, again), (want, theirs)), f"results differ, order {order}")
        self.assertFalse([text for text in support.texts(said) if "are unclear" in text])
        for graph in backend.graphs:
            self.assertEqual(graph.plan.verify(), [])
        placed = {o.attributes.get("_user_stream_label") for g in backend.graphs for i, o in enumerate(g.lowered.operators)
                  if g.plan.stream_of(i) is not None}
        for label in program.labels - placed:
            self.assertTrue(any(f"{label!r}" in text for text in support.texts(said)), f"label {label} is lost")

    def test_inference(self):
        print(f"{COUNT} programs from seed {SEED}")
        for seed in range(SEED, SEED + COUNT):
            self.checked(seed, False)

    def test_training(self):
        for seed in range(SEED, SEED + COUNT):
            self.checked(seed, True)


if __name__ == "__main__":
    unittest.main()

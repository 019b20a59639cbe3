# SPDX-License-Identifier: Apache-2.0
"""Random programs: compiled equals eager, the plan is proved, and no label is lost without a word.

MILLSTREAM_PROGRAMS says how many of each kind (50), MILLSTREAM_SEED where to begin (0). Each program runs on the runtime,
and then in several orders that its schedule allows.
"""

import os
import unittest

import torch_support as support  # skips this file without PyTorch
import torch

import random_programs
from millstream import ops

COUNT = int(os.environ.get("MILLSTREAM_PROGRAMS", "50"))
SEED = int(os.environ.get("MILLSTREAM_SEED", "0"))
ORDERS = 3


class RandomPrograms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        ops.release_tagged_events()
        cls.event = ops.npu_create_tagged_event("random")
        print(f"{COUNT} programs of each kind from seed {SEED}")

    @classmethod
    def tearDownClass(cls):
        ops.release_tagged_events()

    def all_of(self, *, training=False, sizes=(4,)):
        for seed in range(SEED, SEED + COUNT):
            program = random_programs.program(seed, training=training)
            try:
                self.compare(program, seed, training, sizes)
            except Exception as error:
                raise AssertionError(f"seed {seed}, training {training}, sizes {sizes}\n{program.source}") from error

    def outcome(self, function, seed, training, size):
        """(results, inputs afterwards, gradients) of one run."""
        given = random_programs.inputs(seed, training=training, size=size)
        torch.manual_seed(seed)
        results = function(*given, self.event)
        if training and any(t.requires_grad for t in results):
            sum(t.sum() for t in results).backward()
        return results, given, [t.grad for t in given]

    def check(self, got, want, where):
        self.assertTrue(support.same(got[:2], want[:2]), f"results or inputs differ, {where}")
        for a, b in zip(got[2], want[2]):
            torch.testing.assert_close(a, b, msg=lambda text: f"gradients differ, {where}: {text}")

    def compare(self, program, seed, training, sizes):
        with support.quiet() as said, torch.set_grad_enabled(training):
            compiled, backend = support.compiled_by(program.function, dynamic=len(sizes) > 1)
            for size in sizes:
                try:
                    want = self.outcome(program.function, seed, training, size)
                except RuntimeError:  # a write that PyTorch forbids: no program
                    return
                self.check(self.outcome(compiled, seed, training, size), want, "on the runtime")
                for order in range(ORDERS):
                    with support.played(order):
                        self.check(self.outcome(compiled, seed, training, size), want, f"order {order}")
        self.assertFalse([text for text in support.texts(said) if "are unclear" in text])
        for graph in backend.graphs:
            self.assertEqual(graph.plan.verify(), [])
        placed = {o.attributes.get("_user_stream_label") for g in backend.graphs for i, o in enumerate(g.lowered.operators)
                  if g.plan.stream_of(i) is not None}
        for label in program.labels - placed:
            self.assertTrue(any(f"{label!r}" in text for text in support.texts(said)), f"label {label} is lost")

    def test_inference(self):
        self.all_of()

    def test_training(self):
        self.all_of(training=True)

    def test_unknown_shapes(self):
        self.all_of(sizes=(4, 6))


if __name__ == "__main__":
    unittest.main()

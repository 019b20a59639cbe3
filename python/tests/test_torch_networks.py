# SPDX-License-Identifier: Apache-2.0
"""Whole networks: inference has the bits of eager code, a step of training is close to it, plans are proved, and `auto`
finds what is independent."""

import contextlib
import copy
import unittest

import torch_support as support  # skips this file without PyTorch
import torch

import networks


@contextlib.contextmanager
def threads(number):
    """Operators use so many threads inside."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Networks(unittest.TestCase):
    def setUp(self):
        # Without it, functions with an nn.LSTM are left to eager code, by PyTorch itself.
        patched = torch._dynamo.config.patch(allow_rnn=True)
        patched.__enter__()
        self.addCleanup(patched.__exit__, None, None, None)

    def proved(self, backend):
        self.assertTrue(backend.graphs)
        for graph in backend.graphs:
            self.assertEqual(graph.plan.verify(), [])
        return backend.graphs

    def infer(self, name, workers):
        """Inference with one thread an operator, bit for bit, then with two, nearly (PyTorch compiles again). Returns
        the first graph."""
        network = networks.make(name, small=True)
        module = network.module.eval()
        with support.quiet(), torch.no_grad():
            compiled, backend = support.compiled_by(module, support.config(workers=workers))
            with threads(1):
                want = module(network.input)
                for _ in range(3):
                    self.assertTrue(torch.equal(compiled(network.input), want), "other bits than eager code")
            with threads(2):
                torch.testing.assert_close(compiled(network.input), module(network.input))
        return self.proved(backend)[0]

    def train(self, name):
        """One step of training, compiled and eager: results, loss, gradients, statistics and new weights are close."""
        network = networks.make(name, small=True)
        # PyTorch cannot train oneDNN's LSTM layers behind AOTAutograd; this makes it take the layers apart.
        network.input.requires_grad_(name == "lstm")
        mine, theirs = (copy.deepcopy(network.module).train() for _ in range(2))
        with support.quiet(), threads(1):
            compiled, backend = support.compiled_by(mine, support.config(workers=2))
            outcomes = []
            for module, call in ((mine, compiled), (theirs, theirs)):
                step = torch.optim.SGD(module.parameters(), lr=0.01)
                result = call(network.input)
                loss = network.loss(result)
                loss.backward()
                gradients = {n: p.grad.clone() for n, p in module.named_parameters()}
                step.step()
                outcomes.append((result.detach(), loss.detach(), gradients, module.state_dict()))
        torch.testing.assert_close(outcomes[0], outcomes[1])
        self.assertEqual([g.kind for g in self.proved(backend)], ["forward", "backward"])

    def both(self, name, workers=2):
        graph = self.infer(name, workers)
        self.train(name)
        return graph

    def test_resnet18(self):
        self.both("resnet18")

    def test_googlenet(self):
        graph = self.both("googlenet")
        self.assertGreater(graph.plan.streams, 1, "branches of an inception block are independent")

    def test_transformer(self):
        self.both("transformer")

    def test_moe(self):
        graph = self.both("moe", workers=3)
        self.assertGreater(graph.plan.streams, 1, "experts are independent")

    def test_lstm(self):
        self.both("lstm")

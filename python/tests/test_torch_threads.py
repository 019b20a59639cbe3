# SPDX-License-Identifier: Apache-2.0
"""How many threads operators use: the caller's number, divided among the workers of a run."""

import threading
import unittest

import torch_support as support  # skips this file without PyTorch
import torch

from millstream.scope import npu_stream_switch

seen: list[tuple[int, int]] = []  # (thread, the threads of its operators)


@torch.library.custom_op("millstream_tests::threads", mutates_args=())
def threads_here(a: torch.Tensor) -> torch.Tensor:
    seen.append((threading.get_ident(), torch.get_num_threads()))
    torch.mm(torch.ones(64, 64), torch.ones(64, 64))
    return a.clone()


@threads_here.register_fake
def _(a):
    return torch.empty_like(a)


def two_streams(a):
    with npu_stream_switch("1"):
        left = threads_here(threads_here(a))
    with npu_stream_switch("2"):
        right = threads_here(threads_here(a))
    return left + right


class GradMode(unittest.TestCase):
    def test_every_worker_has_the_callers_which_is_off_whatever_the_program_has(self):
        modes = []

        @torch.library.custom_op("millstream_tests::mode", mutates_args=())
        def mode_here(a: torch.Tensor) -> torch.Tensor:
            modes.append(torch.is_grad_enabled())
            return a.clone()
        mode_here.register_fake(torch.empty_like)

        def model(a):
            with npu_stream_switch("1"):
                left = mode_here(mode_here(a))
            with npu_stream_switch("2"):
                right = mode_here(mode_here(a))
            return left + right
        with support.quiet():
            compiled, _ = support.compiled_by(model, support.config(workers=2))
            for enabled in (False, True, False):
                with torch.set_grad_enabled(enabled):
                    modes.clear()
                    for _ in range(5):
                        compiled(torch.ones(3))
                    self.assertEqual(set(modes), {False})


class Numbers(unittest.TestCase):
    def setUp(self):
        self.addCleanup(torch.set_num_threads, torch.get_num_threads())

    def counts(self, model, workers, threads):
        """The threads that each operator used, by runs in which the caller's number is one of `threads`."""
        found = []
        with support.quiet(), torch.no_grad():
            compiled, _ = support.compiled_by(model, support.config(workers=workers))
            for number in threads:
                torch.set_num_threads(number)
                seen.clear()
                for _ in range(5):
                    compiled(torch.ones(3))
                self.assertEqual(torch.get_num_threads(), number, "the caller keeps its own")
                found.append({n for _, n in seen})
        return found

    def test_one_worker_has_the_callers_number(self):
        self.assertEqual(self.counts(lambda a: threads_here(a), 1, [1, 3, 2, 1]), [{1}, {3}, {2}, {1}])

    def test_workers_share_it_and_follow_when_it_changes(self):
        self.assertEqual(self.counts(two_streams, 2, [1, 2, 4, 7, 1]), [{1}, {1}, {2}, {3}, {1}])

    def test_threads_that_start_later_have_the_callers_number(self):
        self.counts(two_streams, 2, [4])
        later = []
        thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
        thread.start()
        thread.join()
        self.assertEqual(later, [4])

    def test_a_failed_run_gives_the_callers_number_back(self):
        def model(a, b):
            with npu_stream_switch("1"):
                left = torch.linalg.cholesky(b)
            with npu_stream_switch("2"):
                return threads_here(threads_here(a)) + left
        torch.set_num_threads(4)
        with support.quiet(), torch.no_grad():
            compiled, _ = support.compiled_by(model, support.config(workers=2))
            compiled(torch.ones(3), torch.eye(3))
            with self.assertRaises(RuntimeError):
                compiled(torch.ones(3), -torch.eye(3))
        self.assertEqual(torch.get_num_threads(), 4)

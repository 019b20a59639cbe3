# SPDX-License-Identifier: Apache-2.0
"""How many threads an operator uses: the caller's number (`torch.set_num_threads`), divided among the workers of the run.

PyTorch keeps that number for each thread, and a worker would keep the one of the day it started. One worker is
the caller itself, so its operators use what they use in eager code, and give the same bits.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import torch

from . import _torch_compat as compat


class _Here(threading.local):
    """What this thread was told by `use`; 0: nothing."""

    threads = 0


_here = _Here()


def use(threads: int) -> None:
    """Operators that this thread calls from here on use so many."""
    if _here.threads != threads:
        compat.set_own_threads(threads, threads)
        _here.threads = threads


@contextlib.contextmanager
def shared(workers: int) -> Iterator[int]:
    """Yields the number for each of several workers; the calling thread, which is one of them, has its own again at the end."""
    mine, told = torch.get_num_threads(), _here.threads
    try:
        yield max(1, mine // workers)
    finally:
        if _here.threads != told:
            compat.set_own_threads(mine, told)
            _here.threads = told

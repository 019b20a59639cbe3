# SPDX-License-Identifier: Apache-2.0
"""Compiled graphs that are still in use."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._plan import CompiledGraph


class Register:
    """A list of graphs that keeps none of them alive: PyTorch's cache of compiled code does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._refs: list[weakref.ref[CompiledGraph]] = []

    def add(self, graph: CompiledGraph) -> None:
        """Adds a graph and forgets those that are gone."""
        with self._lock:
            self._refs = [ref for ref in self._refs if ref() is not None]
            self._refs.append(weakref.ref(graph))

    def alive(self) -> list[CompiledGraph]:
        """The graphs that are still in use, oldest first."""
        with self._lock:
            return [graph for ref in self._refs if (graph := ref()) is not None]


ALL = Register()

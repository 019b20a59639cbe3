# SPDX-License-Identifier: Apache-2.0
"""millstream: computation graphs over device streams, with exact minimal synchronisation.

Two doors. The library itself (`Graph`, `compile`, `Plan`, `Runner`, `Error`) knows nothing of PyTorch. The
front-end (`scope`, `ops`, `CompilerConfig`, `get_backend`, `explain`) is for `torch.compile` and imports
PyTorch when it is first named.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import compat, config, errors, ops, scope
    from ._core import Error, Graph, Plan, Runner, compile
    from .backend import backend, get_backend
    from .config import CompilerConfig
    from .errors import PlanWarning, ScopeError, ScopeWarning
    from ._explain import graphs

__version__ = "0.1.0"

_HOME = {
    "Error": "_core", "Graph": "_core", "Plan": "_core", "Runner": "_core", "compile": "_core",
    "CompilerConfig": "config", "PlanWarning": "errors", "ScopeError": "errors", "ScopeWarning": "errors",
    "get_backend": "backend", "graphs": "_explain",
}
_MODULES = ("compat", "config", "errors", "ops", "scope")

__all__ = sorted([*_HOME, *_MODULES, "explain"])


def explain(compiled: Any = None) -> str:
    """The plans of a compiled model as text: see `millstream._explain.explain`."""
    return importlib.import_module(f"{__name__}._explain").explain(compiled)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

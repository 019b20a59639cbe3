# SPDX-License-Identifier: Apache-2.0
"""The operators `millstream::*` by which scopes and orders appear in a traced graph.

None of them computes anything. Tracing records the calls; the back-end reads them and takes them out again
before anything runs. Their kernels run only where there is no back-end: in eager code and behind graph breaks.
"""

from __future__ import annotations

import threading
from typing import Any

import torch

from . import _torch_compat as compat
from .errors import ScopeError, ScopeWarning, warn

LABEL = "_user_stream_label"
PRIORITY = "_user_stream_priority"
INNER = "_enable_inner_parallel"

_lock = threading.Lock()
_said: set[str] = set()


def warn_again() -> None:
    """The next eager scope warns, although one has done so before (for tests)."""
    with _lock:
        _said.clear()


def _eager_enter(keys: list[str], values: list[str]) -> None:
    if compat.in_dispatch_mode():
        return
    region = compat.region()
    pairs = dict(zip(keys, values))
    named = f"label {pairs[LABEL]!r}" if LABEL in pairs else ", ".join(f"{k}={v}" for k, v in pairs.items())
    if region is None:
        once, why = "eager", "the model is not compiled"
    else:
        once, why = named, ("a graph break fell into the block, or the back-end is not millstream; "
                            "torch.compile(..., fullgraph=True) shows where")
    text = f"scope ({named}) has no effect: this code runs eagerly, because {why}"
    if region is not None:
        backend, options = region
        if options.get("strict_scopes", getattr(getattr(backend, "config", None), "strict_scopes", False)):
            raise ScopeError(text)
    with _lock:
        if once in _said:
            return
        _said.add(once)
    warn(text, ScopeWarning)


def _nothing(*_: Any) -> None:
    return None


def _token() -> torch.Tensor:
    return torch.empty(0)


compat.leave_untraced(_eager_enter, _nothing, _token)

compat.define("scope_enter(str[] keys, str[] values) -> ()", _eager_enter, _nothing, side_effect=True)
compat.define("scope_exit() -> ()", _nothing, _nothing, side_effect=True)
compat.define("wait_marker(Tensor self, Tensor dependency) -> ()", _nothing, _nothing, side_effect=True)
compat.define("wait_tensor(Tensor self, Tensor dependency) -> Tensor", lambda s, d: s.clone(),
              lambda s, d: torch.empty_like(s), side_effect=False, backward=lambda ctx, grad: (grad, None))
compat.define("record() -> Tensor", _token, _token, side_effect=True)
compat.define("wait(Tensor[] x) -> ()", _nothing, _nothing, side_effect=True)
compat.define("tagged_event_record(str tag) -> ()", _nothing, _nothing, side_effect=True)
compat.define("tagged_event_wait(str tag) -> ()", _nothing, _nothing, side_effect=True)

ENTER = torch.ops.millstream.scope_enter.default
EXIT = torch.ops.millstream.scope_exit.default
WAIT_MARKER = torch.ops.millstream.wait_marker.default
WAIT_TENSOR = torch.ops.millstream.wait_tensor.default
RECORD = torch.ops.millstream.record.default
WAIT = torch.ops.millstream.wait.default
EVENT_RECORD = torch.ops.millstream.tagged_event_record.default
EVENT_WAIT = torch.ops.millstream.tagged_event_wait.default

SCOPES = (ENTER, EXIT)
ORDERS = (WAIT_MARKER, RECORD, WAIT, EVENT_RECORD, EVENT_WAIT)

ALIASES: dict[Any, Any] = {}  # markers of other libraries: their leading arguments are those of ours

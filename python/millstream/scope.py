# SPDX-License-Identifier: Apache-2.0
"""Scopes: `with` blocks that say where the operators inside run, and how.

    with millstream.scope.npu_stream_switch("side"):
        y = torch.mm(a, b)

A scope is a list of (key, value) texts. Scopes nest: for each key the innermost counts, and on leaving the
outer value counts again. A scope object may be used any number of times. Outside of torch.compile with
this back-end a scope does nothing, and the first one says so.
"""

from __future__ import annotations

from typing import Any

import torch

from . import _markers
from ._markers import INNER, LABEL, PRIORITY

__all__ = ["Scope", "data_dump", "limit_core_num", "npu_stream_switch", "npu_wait_tensor", "op_never_timeout",
           "super_kernel"]


class Scope:
    """What the functions of this module return. `attrs` holds its (key, value) pairs."""

    def __init__(self, attrs: list[tuple[str, str]]) -> None:
        self.attrs = attrs

    def __enter__(self) -> None:
        _markers.ENTER([key for key, _ in self.attrs], [value for _, value in self.attrs])

    def __exit__(self, *_: Any) -> None:
        _markers.EXIT()


def npu_stream_switch(stream_tag: str, stream_priority: int = 0, enable_inner_parallel: bool = True) -> Scope:
    """Operators inside run on the stream of label `stream_tag`; one label is one stream, in the whole model.

    An empty tag means no label. `stream_priority`: a smaller number is more urgent; if the scopes of one label
    disagree, the smallest counts and a warning says so. `enable_inner_parallel`: whether engines that run
    beside the others may leave the label's stream.
    Raises TypeError for a tag that is not a str, a priority that is not an int, a flag that is not a bool.
    """
    if not isinstance(stream_tag, str):
        raise TypeError(f"npu_stream_switch() argument 'stream_tag' must be str, but got {type(stream_tag).__name__}")
    if isinstance(stream_priority, bool) or not isinstance(stream_priority, int):
        raise TypeError("npu_stream_switch() argument 'stream_priority' must be int, "
                        f"but got {type(stream_priority).__name__}")
    if not isinstance(enable_inner_parallel, bool):
        raise TypeError("npu_stream_switch() argument 'enable_inner_parallel' must be bool, "
                        f"but got {type(enable_inner_parallel).__name__}")
    return Scope([(LABEL, stream_tag), (PRIORITY, str(stream_priority)), (INNER, str(enable_inner_parallel))])


def super_kernel(scope: str | None, options: str = "") -> Scope:
    """Operators inside may be fused to one kernel named `scope`; None inside such a block takes operators out."""
    if scope is not None and not isinstance(scope, str):
        raise TypeError(f"super_kernel() argument 'scope' must be str or None, but got {type(scope).__name__}")
    if not isinstance(options, str):
        raise TypeError(f"super_kernel() argument 'options' must be str, but got {type(options).__name__}")
    return Scope([("_super_kernel_scope", "" if scope is None else scope), ("_super_kernel_options", options)])


def limit_core_num(op_aicore_num: int | str, op_vectorcore_num: int | str) -> Scope:
    """Each operator inside uses at most so many matrix and vector cores."""
    for name, value in (("op_aicore_num", op_aicore_num), ("op_vectorcore_num", op_vectorcore_num)):
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise TypeError(f"limit_core_num() argument '{name}' must be int or str, but got {type(value).__name__}")
    return Scope([("_op_aicore_num", str(op_aicore_num)), ("_op_vectorcore_num", str(op_vectorcore_num))])


def op_never_timeout(enable: bool = True) -> Scope:
    """Operators inside are never stopped by the device's watchdog. Raises TypeError if `enable` is no bool."""
    if not isinstance(enable, bool):
        raise TypeError(f"op_never_timeout() argument 'enable' must be bool, but got {type(enable).__name__}")
    return Scope([("_op_exec_never_timeout", str(enable))])


def data_dump() -> Scope:
    """Operators inside are named in the data-dump configuration (`dump_config`)."""
    return Scope([("torchair_enable_data_dump", "True")])


def npu_wait_tensor(self: torch.Tensor, dependency: torch.Tensor) -> torch.Tensor:
    """Everything that uses `self` after this call runs after the operator that made `dependency`.

    Returns `self`; using the result or dropping it means the same. Views of `self` that exist already are
    covered too. In eager code it does nothing. Raises TypeError if an argument is not a tensor.
    """
    for name, value in (("self", self), ("dependency", dependency)):
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"npu_wait_tensor() argument '{name}' must be torch.Tensor, "
                            f"but got {type(value).__name__}")
    _markers.WAIT_MARKER(self, dependency)
    return self



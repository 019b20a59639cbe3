# SPDX-License-Identifier: Apache-2.0
"""What the front-end raises and warns with. Errors of the library itself are `millstream.Error`."""

from __future__ import annotations

import sys
import warnings

_NOT_THE_USER = ("millstream", "torch", "contextlib")


class ScopeError(RuntimeError):
    """A scope cannot mean what it says: markers that do not match, or, with strict_scopes, one that is lost."""


class ScopeWarning(UserWarning):
    """A scope or an order that the model asks for has no effect; the message names it and says why."""


class PlanWarning(UserWarning):
    """What the library says about a plan: labels that are predicted not to pay, and the like."""


def warn(text: str, category: type[Warning]) -> None:
    """Warns at the line of the nearest caller that is neither of this package nor of PyTorch: the user's."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _NOT_THE_USER:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)

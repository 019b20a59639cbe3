# SPDX-License-Identifier: Apache-2.0
"""What the front-end raises and warns with. Errors of the library itself are `millstream.Error`."""


class ScopeError(RuntimeError):
    """A scope cannot mean what it says: markers that do not match, or, with strict_scopes, one that is lost."""


class ScopeWarning(UserWarning):
    """A scope or an order that the model asks for has no effect; the message names it and says why."""


class PlanWarning(UserWarning):
    """What the library says about a plan: labels that are predicted not to pay, and the like."""

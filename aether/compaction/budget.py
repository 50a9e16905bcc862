"""The budget of a conversation: what a model's window holds, what is used of it, and when that is too much.

The ratio is used tokens by the whole window, and may exceed 1; the limit is what may be sent, the window less the
reserve. What follows when a trigger fires is decided in `plan`.
"""

from __future__ import annotations

from typing import NamedTuple

from aether.compaction.shapes import Policy
from aether.errors import InvalidInput, shown


class ContextBudget(NamedTuple):
    """Tokens of one window, by what they are spent on."""

    window: int
    """Tokens that the model takes, its answer included."""
    reserve: int = 0
    """Tokens that stay free for the answer."""
    system: int = 0
    developer: int = 0
    tools: int = 0
    """Of the tool schemas."""
    messages: int = 0

    @property
    def used(self) -> int:
        """Return the tokens of all that is sent."""
        return self.system + self.developer + self.tools + self.messages

    @property
    def limit(self) -> int:
        """Return the tokens that may be sent: the window less the reserve."""
        return self.window - self.reserve

    @property
    def available(self) -> int:
        """Return the tokens that may still be added; 0 where the limit is reached or passed."""
        return max(0, self.limit - self.used)

    @property
    def ratio(self) -> float:
        """Return what share of the window is used; above 1 where more is used than it has."""
        return self.used / self.window


def checked(budget: ContextBudget) -> ContextBudget:
    """Return `budget`, having proved that something can be sent at all.

    Raises:
        InvalidInput: the window is not positive, a part is negative, or the reserve leaves nothing.
    """
    if budget.window < 1:
        raise InvalidInput(
            f"{shown(budget.window)} is not a window.", fix="Give its tokens, at least 1.", where="window"
        )
    for name, tokens in zip(budget._fields, budget, strict=True):
        if tokens < 0:
            raise InvalidInput(
                f"{shown(tokens)} is not a number of tokens.", fix="Give 0 or more.", where=name
            )
    if budget.reserve >= budget.window:
        raise InvalidInput(
            f"{budget.reserve} tokens leave nothing of a window of {budget.window}.",
            fix="Lower the reserve, or name a model with a larger window.",
            where="reserve",
        )
    return budget


def fires(budget: ContextBudget, policy: Policy, messages: int) -> str:
    """Return in words which trigger of `policy` fires for a conversation of so many messages; empty: none.

    Whatever the triggers say, more than the limit cannot be sent.

    >>> fires(ContextBudget(128_000, messages=108_800), Policy(), messages=9)
    '108800 of 128000 tokens used (85.0 %): the trigger is 85 %'
    >>> fires(ContextBudget(128_000, messages=96_000), Policy(), messages=9)
    ''
    """
    if budget.ratio >= policy.trigger:
        share = f"{100 * budget.ratio:.1f} %"
        return f"{budget.used} of {budget.window} tokens used ({share}): the trigger is {100 * policy.trigger:g} %"
    if budget.used > budget.limit:
        return f"{budget.used} tokens used: the limit is {budget.limit}, the window less the reserve"
    if policy.trigger_tokens and budget.used >= policy.trigger_tokens:
        return f"{budget.used} tokens used: the trigger is {policy.trigger_tokens}"
    if policy.trigger_messages and messages >= policy.trigger_messages:
        return f"{messages} messages: the trigger is {policy.trigger_messages}"
    return ""

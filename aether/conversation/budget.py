"""The budget of a conversation: the tokens used of a model's window, the triggers, and the bounds of a compaction.

The ratio is used tokens by the whole window, and may exceed 1. The bounds are, in tokens:

limit    the most that may be sent: the window less the reserve
ceiling  a trigger fires above it; a result stays below, or it would be compacted again at once
roomy    a worthwhile step below the ceiling; keep counts are lowered for it, or every other turn would compact again
goal     the target of a compaction, so that it is not needed again soon

The consequences of a trigger are decided in `plan`.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from aether.conversation.shapes import Bounds, Policy
from aether.errors import InvalidInput, shown
from aether.types import Finding

# A reserve of more than half of a window was meant for a larger window; then the answer gets this share of it.
MOST_RESERVE_SHARE = 0.5
CLAMPED_RESERVE_SHARE = 0.15
# A compaction by hand has an effect however empty the window is: 45 % of the used tokens may stay (requirements/002: it
# removes at least 40 %).
BY_HAND_SHARE = 0.45
# Between two compactions there is room for twice the least progress, a tenth of the window by default: else a session
# whose kept calls nearly fill the window is compacted at almost every call.
ROOM_OF_PROGRESS = 2


class ContextBudget(NamedTuple):
    """Tokens of one window, by use."""

    window: int
    """Size of the window in tokens, the answer included."""
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
    def ratio(self) -> float:
        """Return the used share of the window, which may exceed 1."""
        return self.used / self.window


def checked(budget: ContextBudget) -> ContextBudget:
    """Return `budget` after a check that something can be sent at all.

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
    """Return the reason, in words, if a trigger of `policy` fires for a conversation of so many messages; else empty.

    Above the limit it fires whatever the policy says, because more cannot be sent.

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


def bounds(policy: Policy, window: int) -> Bounds:
    """Return the bounds of a compaction of a conversation in this window.

    Raises:
        InvalidInput: the window is not positive.

    >>> bounds(Policy(), 128_000)[:6]
    (128000, 1500, 126500, 108799, 95999, 76800)
    >>> bounds(Policy(), 1_000)[:6]
    (1000, 150, 850, 849, 749, 600)
    """
    reserve = policy.reserve
    findings: tuple[Finding, ...] = ()
    if window > 0 and reserve > MOST_RESERVE_SHARE * window:
        reserve = int(CLAMPED_RESERVE_SHARE * window)
        message = f"{policy.reserve} tokens are more than half of a window of {window}; {reserve} are kept free instead."
        fix = "Set a reserve that suits the window."
        findings = (Finding("info", "reserve-clamped", "policy.reserve", message, fix),)
    limit = checked(ContextBudget(window, reserve)).limit
    fires_at = min(policy.trigger * window, policy.trigger_tokens or float("inf"))
    ceiling = max(1, min(limit, ceil(fires_at) - 1))
    goal = max(
        1, min(int(policy.target * window), int(ceiling * policy.target / policy.trigger + 1), ceiling)
    )
    roomy = max(goal, ceiling - int(ROOM_OF_PROGRESS * policy.min_progress * window))
    return Bounds(window, reserve, limit, ceiling, roomy, goal, max(0, policy.trigger_messages - 1), findings)

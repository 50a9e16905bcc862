"""Bounds: the numbers of tokens that one compaction has to meet, from a policy and a window.

limit    what may be sent: the window less the reserve
ceiling  from here on a trigger fires; a result stays below, or it would be compacted again at once
roomy    a worthwhile step below the ceiling; keep counts are lowered for it, or every other turn would compact again
goal     what a compaction aims for, so that it is not needed again soon
"""

from __future__ import annotations

from typing import NamedTuple

from aether.compaction.budget import ContextBudget, checked
from aether.compaction.shapes import Policy
from aether.shapes import Finding

# A reserve of more than half of a window was meant for a larger window; then the answer gets this share of it.
MOST_RESERVE_SHARE = 0.5
CLAMPED_RESERVE_SHARE = 0.15
# Who asks for a compaction wants to see one, however empty the window is: 45 % of what is used may stay
# (requirements/002: a compaction by hand takes at least 40 %).
BY_HAND_SHARE = 0.45
# Between two compactions there is room for twice the least progress, a tenth of the window by default: else a session
# whose kept calls nearly fill the window is compacted at almost every call.
ROOM_OF_PROGRESS = 2


class Bounds(NamedTuple):
    """What one compaction has to meet, in tokens, and `messages` where their number is a trigger."""

    window: int
    reserve: int
    limit: int
    ceiling: int
    roomy: int
    goal: int
    most_messages: int
    """As many as fire no trigger; 0: any number."""
    findings: tuple[Finding, ...]


def bounds(policy: Policy, window: int) -> Bounds:
    """Return what a compaction of a conversation in this window has to meet.

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
        findings = (_clamped(policy.reserve, reserve, window),)
    limit = checked(ContextBudget(window, reserve)).limit
    fires_at = min(policy.trigger * window, policy.trigger_tokens or float("inf"))
    ceiling = max(1, min(limit, _below(fires_at)))
    goal = max(
        1, min(int(policy.target * window), int(ceiling * policy.target / policy.trigger + 1), ceiling)
    )
    roomy = max(goal, ceiling - int(ROOM_OF_PROGRESS * policy.min_progress * window))
    return Bounds(window, reserve, limit, ceiling, roomy, goal, max(0, policy.trigger_messages - 1), findings)


def _below(tokens: float) -> int:
    """Return the largest whole number below `tokens`."""
    whole = int(tokens)
    return whole - 1 if whole == tokens else whole


def _clamped(asked: int, given: int, window: int) -> Finding:
    return Finding(
        "info",
        "reserve-clamped",
        "policy.reserve",
        f"{asked} tokens are more than half of a window of {window}; {given} are kept free instead.",
        "Set a reserve that suits the window.",
    )

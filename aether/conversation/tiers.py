"""Tiers: classes of window sizes, the limit of a prompt, and how far a model's summaries can be trusted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import floor
from typing import NamedTuple

from aether.conversation.shapes import Tier

# OLLM-CLI allows 0, 1, 5, 10 and 15 checkpoints. With fewer than ten the oldest would be merged before they age at
# 3, 6 and 10 compressions; a rollover leaves one.
TIERS = (
    Tier(1, "minimal", 4_096, 200, 1, is_rollover=True),
    Tier(2, "basic", 8_192, 500, 10),
    Tier(3, "standard", 16_384, 1_000, 10),
    Tier(4, "premium", 32_768, 1_500, 10),
    Tier(5, "ultra", 0, 1_500, 15),
)
# Of a window whose limit no profile names; the rest is for the answer.
LIMIT_SHARE = 0.85
# Billions of parameters where the name of a model has none.
UNKNOWN_BILLIONS = 7.0
LOSS = 0.9
"""What is left of the reliability after one more compression."""
_BILLIONS = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)b(?![a-z])", re.IGNORECASE)
_FACTORS = ((70, 0.95), (30, 0.85), (13, 0.7), (7, 0.5))
_WORDS = ((0.85, "excellent"), (0.7, "good"), (0.5, "moderate"), (0.4, "low"))
_WARN_AFTER = ((3, 3), (7, 5), (13, 7))


class Reliability(NamedTuple):
    """How far the summaries of a model can be trusted after some compressions."""

    value: float
    level: str
    warn: bool
    """Whether a new conversation, or a larger model, is advisable."""


def tier(window: int) -> Tier:
    """Return the tier of a window; the bounds are inclusive, and there is no gap.

    >>> [tier(size).number for size in (2_048, 4_096, 4_097, 8_192, 16_384, 32_768, 40_000, 1_000_000)]
    [1, 1, 2, 2, 3, 4, 5, 5]
    """
    return next(tier for tier in TIERS if not tier.most_window or window <= tier.most_window)


def prompt_limit(window: int, profiles: Mapping[int, int]) -> int:
    """Return the most tokens of a prompt in this window: the value of its profile, else 85 %.

    >>> prompt_limit(4_096, {4_096: 3_482}), prompt_limit(8_000, {})
    (3482, 6800)
    """
    return max(1, min(window, profiles.get(window) or floor(window * LIMIT_SHARE)))


def billions(model: str) -> float:
    """Return the size of a model in billions of parameters, read from its name.

    >>> billions("qwen2.5-coder:0.5b"), billions("llama3.1:70B-instruct"), billions("gpt-4")
    (0.5, 70.0, 7.0)
    """
    match = _BILLIONS.search(model)
    return float(match[1]) if match else UNKNOWN_BILLIONS


def reliability(model: str, compressions: int) -> Reliability:
    """Return how far to trust the context after so many compressions by `model`.

    >>> reliability("llama3:8b", 0).value, reliability("llama3:70b", 2).level, reliability("phi:3b", 4).warn
    (0.5, 'good', True)
    """
    size = billions(model)
    factor = next((factor for least, factor in _FACTORS if size >= least), 0.3)
    value = factor * LOSS**compressions
    level = next((word for least, word in _WORDS if value >= least), "critical")
    after = next((most for largest, most in _WARN_AFTER if size <= largest), 10)
    return Reliability(round(value, 4), level, compressions >= after)

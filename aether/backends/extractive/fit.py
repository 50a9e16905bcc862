"""Fitting: as much of a ranking as a target allows, measured on the whole session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from aether.shapes import Counter, JsonObject
from aether.tokens.sessions import session_tokens

# Close enough: a hundredth of the target, far inside the tenth that is promised.
CLOSE = 0.01
# Interpolation lands within one clause in three or four rounds; each counts a whole session.
ROUNDS = 12
# Where the next clause is too long, one of these many behind it may still fit.
TRIED = 40


class _Fit(NamedTuple):
    places: list[int]
    session: JsonObject
    tokens: int


def fitting(
    compose: Callable[[Sequence[int]], JsonObject],
    ranking: Sequence[int],
    leans_on: Mapping[int, int],
    *,
    target_tokens: int,
    count: Counter,
) -> JsonObject:
    """Return the session of as many places of `ranking` as fit `target_tokens`, the first ones first.

    Where even the session of none is larger than the target, it is the answer: it holds what must be kept.
    A place is used only with the one it leans on.
    """

    def fit(places: Sequence[int]) -> _Fit:
        session = compose(places)
        return _Fit(list(places), session, session_tokens(session, count))

    best = _longest(fit, ranking, target_tokens)
    for place in ranking[len(best.places) : len(best.places) + TRIED]:
        if best.tokens >= target_tokens * (1 - CLOSE):
            break
        if leans_on.get(place, -1) >= 0 and leans_on[place] not in best.places:
            continue
        tried = fit([*best.places, place])
        best = tried if tried.tokens <= target_tokens else best
    return best.session


def _longest(fit: Callable[[Sequence[int]], _Fit], ranking: Sequence[int], target_tokens: int) -> _Fit:
    """Return the longest beginning of `ranking` that fits; nothing of it where nothing does."""
    low, high = fit([]), fit(ranking)
    if high.tokens <= target_tokens:
        return high
    for turn in range(ROUNDS):
        apart = len(high.places) - len(low.places)
        if apart <= 1 or low.tokens >= target_tokens * (1 - CLOSE):
            break
        share = (target_tokens - low.tokens) / (high.tokens - low.tokens)
        # Every third time by halves: the end of a ranking is longer than its front.
        step = apart // 2 if turn % 3 == 2 else int(apart * share)
        middle = fit(ranking[: len(low.places) + min(apart - 1, max(1, step))])
        low, high = (middle, high) if middle.tokens <= target_tokens else (low, middle)
    return low

"""Calibration: how far the estimate is from an exact counter on the texts of one home.

The correction is one factor for all kinds of text: it moves the whole, it does not bend. A home
records it beside the name of its counter, as `Calibration.record` gives it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from aether.errors import InvalidInput
from aether.shapes import Counter, JsonObject
from aether.tokens.estimate import estimate

# Decimal places of a factor: a thousandth is far below what the estimate can promise.
FACTOR_PLACES = 3


class Row(NamedTuple):
    """The error of the estimate on one kind of text; errors are shares, 0.05 is five percent."""

    kind: str
    samples: int
    exact: int
    estimated: int
    error: float
    """Of the sum: (estimated - exact) / exact."""
    worst: float
    """Of the single sample that is furthest off."""


class Calibration(NamedTuple):
    """What a calibration found."""

    rows: tuple[Row, ...]
    """One per kind, in order of first appearance, before the correction."""
    total: Row
    factor: float
    """What the estimate must be multiplied by so that the sum over all samples is right."""

    def record(self) -> JsonObject:
        """Return what the home keeps: the counter and its factor."""
        return {"counter": "estimate", "factor": self.factor}


def calibrate(samples: Iterable[tuple[str, str]], exact: Counter) -> Calibration:
    """Return the error of the estimate on `samples`, pairs of kind and text, and the factor that corrects it.

    Texts without tokens say nothing and are passed over.

    >>> found = calibrate([("prose", "one two three four")], lambda text: 5)
    >>> found.factor, found.total.error
    (1.25, -0.2)

    Raises:
        InvalidInput: no sample has tokens.
    """
    counts: dict[str, list[tuple[int, int]]] = {}
    for kind, text in samples:
        tokens = exact(text)
        if tokens > 0:
            counts.setdefault(kind, []).append((tokens, estimate(text)))
    if not counts:
        raise InvalidInput(
            "there is nothing to calibrate on.", fix="Give at least one text that is not empty."
        )
    rows = tuple(_row(kind, pairs) for kind, pairs in counts.items())
    total = _row("all", [pair for pairs in counts.values() for pair in pairs])
    factor = round(total.exact / total.estimated, FACTOR_PLACES)
    return Calibration(rows, total, max(factor, 10**-FACTOR_PLACES))


def _row(kind: str, pairs: list[tuple[int, int]]) -> Row:
    exact = sum(tokens for tokens, _ in pairs)
    estimated = sum(guess for _, guess in pairs)
    worst = max(((guess - tokens) / tokens for tokens, guess in pairs), key=abs)
    return Row(kind, len(pairs), exact, estimated, (estimated - exact) / exact, worst)

"""Usage: what providers report, and the factor by which it corrects what is counted here, model by model.

The factor of a model is the median of its last reports, each one reported tokens by plainly counted ones; it moves
only when that median has, so that what is counted stays counted. It belongs to one model and one counter: nothing is
carried over to another of either. Where a model's reports are kept is
decided in `operations.usage`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median
from typing import Any, NamedTuple

from aether.errors import InvalidDocument, InvalidInput, shown
from aether.shapes import JsonObject

# Reports of one model that count: enough that one odd request moves nothing, few enough to follow a new vocabulary.
KEPT_REPORTS = 21
# Models measured so far have 1.0 to 1.7 tokens for one counted; beyond these bounds something else was reported,
# such as a request with another system prompt, or input tokens without the cached ones.
LEAST_FACTOR = 0.5
MOST_FACTOR = 3.0
# Below this many tokens what stands around the messages outweighs what is in them.
LEAST_COUNTED = 200
FACTOR_PLACES = 3
# A factor that differs by less than this share stays: a new one has every message of a conversation counted anew, and
# the built-in estimate is less exact than that anyway (within 10 %).
STEADY = 0.02
# What the providers call the input tokens of a request. Only Anthropic leaves the cached ones out of the first.
_REPORTED = (
    ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
    ("prompt_tokens",),
    ("promptTokenCount",),
    ("prompt_token_count",),
    ("prompt_eval_count",),
)


class Reports(NamedTuple):
    """The reports about one model."""

    counter: str
    """The counter that they correct."""
    ratios: tuple[float, ...] = ()
    """Oldest first."""
    before: float = 0.0
    """The correction before the newest report; 0 where there was none."""

    @property
    def factor(self) -> float:
        """Return the correction, within its bounds; 1 where nothing was reported."""
        middle = median(self.ratios) if self.ratios else 1.0
        found = round(min(MOST_FACTOR, max(LEAST_FACTOR, middle)), FACTOR_PLACES)
        return self.before if abs(found - self.before) <= STEADY * self.before else found


def reported(usage: int | Mapping[str, Any]) -> int:
    """Return the input tokens that a provider reports, cached ones included.

    >>> reported({"input_tokens": 12, "cache_read_input_tokens": 30_000, "output_tokens": 7})
    30012
    >>> reported({"prompt_tokens": 900, "prompt_tokens_details": {"cached_tokens": 800}})
    900

    Raises:
        InvalidInput: it names no number of input tokens.
    """
    if isinstance(usage, Mapping):
        keys = next((keys for keys in _REPORTED if isinstance(usage.get(keys[0]), int)), ())
        tokens = sum(usage.get(key) or 0 for key in keys)
    else:
        tokens = usage
    if type(tokens) is not int or tokens < 1:
        raise InvalidInput(
            f"{shown(usage)} reports no input tokens.",
            fix="Give their number, or the usage object of the provider's answer.",
            where="reported",
        )
    return tokens


def after(reports: Reports, counter: str, plain: float, tokens: int) -> Reports:
    """Return `reports` with one more: `tokens` where `counter` counts `plain`; reports by another counter go.

    >>> after(Reports("estimate", (1.0, 1.2)), "estimate", 1000, 1400).factor
    1.2
    """
    if plain < LEAST_COUNTED:
        return reports
    known = reports.ratios if reports.counter == counter else ()
    ratios = (*known, round(tokens / plain, FACTOR_PLACES))[-KEPT_REPORTS:]
    return Reports(counter, ratios, reports.factor if known else 0.0)


def parsed(value: Any, *, where: str) -> dict[str, Reports]:
    """Return the reports by model that `value`, the content of their file, holds.

    Raises:
        InvalidDocument: it is not what `written` makes.
    """
    models = value.get("models") if isinstance(value, dict) else None
    if not isinstance(models, dict) or not all(map(_is_report, models.values())):
        raise InvalidDocument(
            "does not hold reports about models.",
            fix="Remove it: what it held is learned anew.",
            where=where,
        )
    return {
        model: Reports(held["counter"], tuple(held["ratios"]), held.get("before", 0.0))
        for model, held in models.items()
    }


def written(reports: Mapping[str, Reports]) -> JsonObject:
    """Return `reports` as their file holds them."""
    models = {
        model: {"counter": held.counter, "ratios": list(held.ratios), "before": held.before}
        for model, held in sorted(reports.items())
    }
    return {"schema_version": 1, "models": models}


def _is_report(held: Any) -> bool:
    return (
        isinstance(held, dict)
        and isinstance(held.get("counter"), str)
        and isinstance(held.get("ratios"), list)
        and all(map(_is_ratio, (*held["ratios"], held.get("before", 0.0))))
    )


def _is_ratio(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value >= 0

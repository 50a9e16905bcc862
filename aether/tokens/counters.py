"""Token counters by name and factor, as `memory.json` records them, and the count of a session.

A home chooses its counter when it is made and keeps it, so that its counts never depend on the machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, cast

from aether.errors import InvalidInput, shown
from aether.tokens.estimate import estimate
from aether.types import Counter

ESTIMATE = "estimate"
# The vocabularies of `exact`, which is imported at the first count only.
EXACT = ("o200k_base", "cl100k_base")
CONSTANT = "constant:"
# Most are those of the messages, which are there anyway.
_REMEMBERED_TEXTS = 4_096
# The fields of a session that an architect writes.
ANSWER_FIELDS = (
    "id", "session_id", "compressed_at", "phase", "summary", "key_decisions", "outcomes", "high_value_items",
    "state", "next", "rules", "open", "resolved",
)  # fmt: skip
# The fields of their entries that say something; the others are bookkeeping.
_SAID = ("decision", "rationale", "result", "impact", "content", "text")


@lru_cache(maxsize=64)
def counter(name: str, factor: float = 1.0) -> Counter:
    """Return the counter called `name`, its counts multiplied by `factor`; the same object for the same arguments.

    The names are `estimate`, `o200k_base`, `cl100k_base` and, for tests, `constant:N`, with N
    tokens for every text that is not empty. Exact vocabularies are loaded at the first count.

    >>> counter("constant:7")("any text"), counter("estimate", 2.0)("any text")
    (7, 4)

    Raises:
        InvalidInput: there is no such counter, or the factor is not a positive number.
    """
    if not (math.isfinite(factor) and factor > 0):
        raise InvalidInput(
            f"{shown(factor)} is not a factor.", fix="Give a number above 0; 1.0 changes nothing."
        )
    count = _plain(name)
    return count if factor == 1.0 else partial(_scaled, count, factor)


def counter_of(memory: Mapping[str, Any]) -> Counter:
    """Return the counter that `memory` records."""
    settings = memory["token_counter"]
    return counter(settings["counter"], settings["factor"])


def label(name: str, factor: float = 1.0) -> str:
    """Return a counter's name for people, with its precision.

    >>> label("estimate", 1.08), label("o200k_base")
    ('estimate (about ±10 %) × 1.08', 'o200k_base (exact)')

    Raises:
        InvalidInput: there is no such counter.
    """
    _plain(name)
    kind = "about ±10 %" if name == ESTIMATE else "exact" if name in EXACT else "for tests"
    return f"{name} ({kind})" + ("" if factor == 1.0 else f" × {factor:g}")


def _plain(name: str) -> Counter:
    if name == ESTIMATE:
        return estimate
    if name in EXACT:
        return partial(_exact, name)
    number = name.removeprefix(CONSTANT)
    if name.startswith(CONSTANT) and number.isascii() and number.isdigit() and int(number) > 0:
        return partial(_constant, int(number))
    raise InvalidInput(
        f"{shown(name)} is not a token counter.",
        fix=f"Use one of {', '.join([ESTIMATE, *EXACT])}, or constant:N in tests.",
    )


def _exact(name: str, text: str) -> int:
    from aether.tokens import exact

    return exact.exact(name, text)


def _scaled(count: Counter, factor: float, text: str) -> int:
    return scaled(count(text), factor)


def scaled(tokens: int, factor: float) -> int:
    """Return `tokens` times a factor; of some at least one is left."""
    return max(1, round(tokens * factor)) if tokens else 0


def remembering(count: Counter, before: Counter | None = None) -> Counter:
    """Return `count` with a memory for the texts of one conversation; `before` if it is that already."""
    if before is not None and getattr(before, "__wrapped__", None) == count:
        return before
    return lru_cache(maxsize=_REMEMBERED_TEXTS)(count)


def factor_of_estimate(count: Counter) -> float | None:
    """Return the factor of a counter that is the estimate times a factor; None for another one.

    >>> factor_of_estimate(counter("estimate", 1.1)), factor_of_estimate(len)
    (1.1, None)
    """
    count = getattr(count, "__wrapped__", count)
    if count is estimate:
        return 1.0
    is_scaled = isinstance(count, partial) and count.func is _scaled and count.args[0] is estimate
    return float(cast(Any, count).args[1]) if is_scaled else None


def _constant(number: int, text: str) -> int:
    return number if text else 0


# Decimal places of a factor: a thousandth is far below what the estimate can promise.
FACTOR_PLACES = 3


def session_tokens(session: Mapping[str, Any], count: Counter) -> int:
    """Return the tokens of what `session` says, each text once, as the tokens of an item are those of its content.

    >>> session_tokens({"summary": "All done.", "high_value_items": [{"content": "All done.", "type": "outcome"}]}, len)
    9
    """
    texts = [str(session.get("summary") or "")]
    for field in ANSWER_FIELDS:
        entries = session.get(field)
        listed = entries if isinstance(entries, list) else []
        texts += [str(entry[name]) for entry in listed for name in _SAID if entry.get(name)]
    return sum(map(count, dict.fromkeys(texts)))

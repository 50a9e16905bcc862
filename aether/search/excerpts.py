"""Recall: entries of memory as lines of an index, each with the cost of its full text.

Three steps, so that a model pays only for the text it reads: an index of the answers, the neighbours in time of one
entry, and full texts by id.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from aether.memory.layers import Record
from aether.text.words import matching_part
from aether.tuples import NamedTuple
from aether.types import Counter, Hit

# Enough characters to distinguish entries; sixteen to twenty-five tokens.
EXCERPT_CHARS = 100
# Of the part of a hit that answers: one long sentence, or a few.
MATCH_CHARS = 400


class RecallLine(NamedTuple):
    """One entry of memory in an index or a timeline."""

    id: str
    layer: str
    type: str
    at: str
    """Its time, ISO 8601 in UTC; empty if unknown."""
    tokens: int
    """The cost of its full text."""
    gist: str
    """Its text on one line, shortened."""
    score: float
    """Its score in the search; 0.0 in a timeline."""


def recall_line(record: Record, *, count: Counter) -> RecallLine:
    """Return a record as a line of an index; tokens that were never counted are counted now."""
    tokens = record.tokens or count(record.text)
    return RecallLine(record.id, record.layer, record.type, record.at, tokens, excerpt(record.text), 0.0)


def hit_line(hit: Hit) -> RecallLine:
    """Return a hit of a search as a line of an index, with the part of its text that answers."""
    said = matching_part(hit["passage"], hit["matched"], MATCH_CHARS) or hit["gist"]
    return RecallLine(hit["id"], hit["layer"], hit["type"], hit["at"], hit["tokens"], said, hit["score"])


def excerpt(text: str, most: int = EXCERPT_CHARS) -> str:
    """Return `text` on one line of at most `most` characters.

    >>> excerpt("Use  SQLite, because it is one file.", 12)
    'Use SQLite,…'
    """
    whole = " ".join(text[: most * 4].split())
    return whole if len(whole) <= most and len(text) <= most * 4 else whole[: most - 1].rstrip() + "…"


def format_line(one: RecallLine) -> str:
    """Return a line as a model reads it: id, kind, day, cost, excerpt."""
    return f"{one.id} · {one.type} · {one.at[:10] or 'undated'} · {one.tokens} tokens · {one.gist}"


def fit_lines(lines: Sequence[RecallLine], budget: int, count: Counter) -> list[RecallLine]:
    """Return the first of `lines` that together cost at most `budget` tokens when printed."""
    kept: list[RecallLine] = []
    for one in lines:
        budget -= count(format_line(one) + "\n")
        if budget < 0:
            break
        kept.append(one)
    return kept


def neighbours(found: Iterable[Record], id: str, *, before: int, after: int) -> list[Record]:
    """Return the record `id` with its neighbours in time, oldest first; nothing if it does not exist.

    Records of equal time keep their order.
    """
    ordered = sorted(found, key=lambda record: record.at)
    place = next((at for at, record in enumerate(ordered) if record.id == id), None)
    return [] if place is None else ordered[max(0, place - before) : place + after + 1]


def date_and_age(at: str, now: datetime) -> str:
    """Return the day of a time and its age.

    >>> from datetime import UTC
    >>> date_and_age("2026-03-01T10:00:00.000000Z", datetime(2026, 3, 4, tzinfo=UTC))
    '2026-03-01 (3 days ago)'
    """
    if not at:
        return "undated"
    days = (now.date() - datetime.fromisoformat(at[:10]).date()).days
    return f"{at[:10]} ({'today' if days <= 0 else '1 day ago' if days == 1 else f'{days} days ago'})"

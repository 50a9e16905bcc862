"""Recall: entries of memory as lines of an index, each with the cost of its full text.

Three steps, so that a model pays only for the text it reads: an index of the answers, the neighbours in time of one
entry, and full texts by id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, cast

from aether.memory import sessions
from aether.store.search_index import instant_text
from aether.text.words import matching_part
from aether.types import Counter, Hit, JsonObject

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


class Record(NamedTuple):
    """One entry of memory, of any layer or of the archive."""

    id: str
    layer: str
    type: str
    stored_at: object
    """Its time as it is stored."""
    text: str
    """Its full text, one statement a line."""
    tokens: int
    """The cost of the text; 0 if it was never counted."""
    value: JsonObject
    """The stored entry itself, which is never changed."""

    @property
    def at(self) -> str:
        """Return its time, ISO 8601 in UTC; empty if unknown. A prompt asks this of a few entries of a home only."""
        return instant_text(self.stored_at)


def records(memory: Mapping[str, Any], archived: Iterable[JsonObject] = ()) -> Iterator[Record]:
    """Yield every entry once: the live ones, then those of the archive `archived` that are not live."""
    live = [item_record(item, "working_memory") for item in memory["working_memory"]["items"]]
    for session in sessions.sessions_of(memory):
        at, text, value = (
            sessions.last_heard(session),
            sessions.session_text(session),
            cast("JsonObject", session),
        )
        # The stored token count of a session includes fields that are not part of its text.
        live.append(Record(session["session_id"], "short_term_memory", "session", at, text, 0, value))
    for pattern in memory["long_term_memory"]["patterns"]:
        at, text = pattern["last_seen"], pattern["pattern"]
        live.append(Record(pattern["id"], "long_term_memory", pattern["type"], at, text, 0, pattern))
    yield from live
    # Of two records of one item the newer counts; undone and archived again, it is the same item.
    newest = {str(record["item"].get("id")): record["item"] for record in archived}
    known = {record.id for record in live} if newest else frozenset()
    yield from (item_record(item, "archive") for name, item in newest.items() if name not in known)


def item_record(item: Any, layer: str) -> Record:
    """Return an item, live or archived, as a record."""
    at = item["metadata"]["timestamp"]
    return Record(item["id"], layer, item["type"], at, item["content"], item["token_count"], item)


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

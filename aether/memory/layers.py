"""Entries of all layers as records of one shape, as lines with the cost of their text, and the filter that chooses among them.

Fields of stored objects are read defensively: a home may have been edited by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from aether import clock
from aether.errors import InvalidInput, shown
from aether.memory import sessions
from aether.memory.colony import phase_number
from aether.memory.statements import end_of, end_words
from aether.text.regex import lazy
from aether.text.words import CACHED_TEXTS, matching_part
from aether.types import KIND_OF_TYPE

if TYPE_CHECKING:
    from aether.types import Counter, Hit, JsonObject

# Enough characters to distinguish entries; sixteen to twenty-five tokens.
EXCERPT_CHARS = 100
# Of the part of a hit that answers: one long sentence, or a few.
MATCH_CHARS = 400
# The mark of a hit that is a guess.
WEAK_MATCH = "weak match"
# A time as `clock.stamp` writes it, as nearly all are.
_STAMP = lazy(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
# Metadata that name a conversation.
_NAMING = frozenset({"conversation", "title", "pointer"})


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
    """The stored object, which is never changed."""

    @property
    def at(self) -> str:
        """Return its time, ISO 8601 in UTC; empty if unknown."""
        return instant_text(self.stored_at)


def records(memory: Mapping[str, Any], archived: Iterable[JsonObject] = ()) -> Iterator[Record]:
    """Yield every entry once: the live ones, then those of the archive records `archived` that are not live."""
    live = [item_record(item, "working_memory") for item in memory["working_memory"]["items"]]
    for session in sessions.sessions_of(memory):
        stored_at, text = sessions.last_heard(session), sessions.session_text(session)
        # The stored token count of a session includes fields that are not part of its text.
        value = cast("JsonObject", session)
        live.append(Record(session["session_id"], "short_term_memory", "session", stored_at, text, 0, value))
    for pattern in memory["long_term_memory"]["patterns"]:
        stored_at, text = pattern["last_seen"], pattern["pattern"]
        live.append(Record(pattern["id"], "long_term_memory", pattern["type"], stored_at, text, 0, pattern))
    yield from live
    # Of two records of one item the newer counts; undone and archived again, it is the same item.
    newest = {str(record["item"].get("id")): record["item"] for record in archived}
    live_ids = {record.id for record in live} if newest else frozenset()
    yield from (item_record(item, "archive") for name, item in newest.items() if name not in live_ids)


def item_record(item: Any, layer: str) -> Record:
    """Return an item, live or archived, as a record."""
    time = item["metadata"]["timestamp"]
    return Record(item["id"], layer, item["type"], time, item["content"], item["token_count"], item)


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
    gist = excerpt(f"({ended}) {record.text}" if (ended := end_words(end_of(record.value))) else record.text)
    return RecallLine(record.id, record.layer, record.type, record.at, tokens, gist, 0.0)


def hit_line(hit: Hit) -> RecallLine:
    """Return a hit of a search as a line of an index, with the part of its text that answers."""
    answer = matching_part(hit["passage"], hit["matched"], MATCH_CHARS) or hit["gist"]
    answer = f"{WEAK_MATCH}: {answer}" if hit.get("weak") else answer
    answer = f"({ended}) {answer}" if (ended := end_words(hit.get("ended"))) else answer
    return RecallLine(hit["id"], hit["layer"], hit["type"], hit["at"], hit["tokens"], answer, hit["score"])


def excerpt(text: str, most: int = EXCERPT_CHARS) -> str:
    """Return `text` on one line of at most `most` characters.

    >>> excerpt("Use  SQLite, because it is one file.", 12)
    'Use SQLite,…'
    """
    line = " ".join(text[: most * 4].split())
    return line if len(line) <= most and len(text) <= most * 4 else line[: most - 1].rstrip() + "…"


def format_line(line: RecallLine) -> str:
    """Return a line as a model reads it: id, kind, day, cost, excerpt."""
    return f"{line.id} · {line.type} · {line.at[:10] or 'undated'} · {line.tokens} tokens · {line.gist}"


def fit_lines(lines: Sequence[RecallLine], budget: int, count: Counter) -> list[RecallLine]:
    """Return the first of `lines` that together cost at most `budget` tokens when printed."""
    fitting: list[RecallLine] = []
    for line in lines:
        budget -= count(format_line(line) + "\n")
        if budget < 0:
            break
        fitting.append(line)
    return fitting


def neighbours(entries: Iterable[Record], id: str, *, before: int, after: int) -> list[Record]:
    """Return the record `id` with its neighbours in time, oldest first; nothing if it does not exist.

    Records of equal time keep their order.
    """
    ordered = sorted(entries, key=lambda record: record.at)
    place = next((number for number, record in enumerate(ordered) if record.id == id), None)
    return [] if place is None else ordered[max(0, place - before) : place + after + 1]


def date_and_age(time: str, now: datetime) -> str:
    """Return the day of a time and its age.

    >>> from datetime import UTC
    >>> date_and_age("2026-03-01T10:00:00.000000Z", datetime(2026, 3, 4, tzinfo=UTC))
    '2026-03-01 (3 days ago)'
    """
    if not time:
        return "undated"
    days = (now.date() - datetime.fromisoformat(time[:10]).date()).days
    return f"{time[:10]} ({'today' if days <= 0 else '1 day ago' if days == 1 else f'{days} days ago'})"


class Filter(NamedTuple):
    """The entries that a caller wants; an empty field accepts all."""

    types: tuple[str, ...] = ()
    phase: str = ""
    caste: str = ""
    """Case-folded."""
    since: str = ""
    until: str = ""
    """The first instant that is too late."""
    project: str = ""
    """A part of it, case-folded."""
    conversation: str = ""
    """A part of its id, title or file, case-folded."""
    kinds: frozenset[str] = frozenset()
    """Kinds of moments: entries of a type of these are wanted as well as those of `types`."""

    def has(self, field: str, text: str) -> bool:
        """Return whether `text` is what the filter wants in `field`."""
        if field == "type":
            is_of_kind = KIND_OF_TYPE.get(text, "note") in self.kinds
            return is_of_kind or text in self.types or not (self.types or self.kinds)
        value: str = getattr(self, field)
        return not value or (value in text.casefold() if field in PARTLY else value == text.casefold())

    def takes(self, row: Any) -> bool:
        """Return whether an entry with the fields of `row` is wanted."""
        return (
            all(self.has(field, getattr(row, field)) for field in FILTERED)
            and (not self.since or row.at >= self.since)
            and (not self.until or row.at < self.until)
        )


# The fields that are compared as texts, and those of which a filter may name a part.
FILTERED = ("type", "phase", "caste", "project", "conversation")
PARTLY = frozenset({"project", "conversation"})
EVERYTHING = Filter()


def entry_filter(
    *, types: Iterable[str] = (), phase: int | str | None = None, caste: str | None = None,
    since: datetime | None = None, until: datetime | None = None,
    project: str | None = None, conversation: str | None = None,
) -> Filter:  # fmt: skip
    """Return the filter for entries of these `types`, this `phase`, `caste` and time, and parts of the names of their places.

    A type may be the word of a timeline for several, such as `rule`, if no known type has that name.

    Raises:
        InvalidInput: the phase is not a number of one.
    """
    if phase is not None and phase_number(phase) is None:
        raise InvalidInput(f"{shown(phase)} is not a phase.", fix="Use its number.", where="phase")
    names = [plain_text(name) for name in types]
    names += [name for name, kind in KIND_OF_TYPE.items() if kind in names and kind not in KIND_OF_TYPE]
    return Filter(
        tuple(names), plain_text(phase), plain_text(caste).casefold(),
        clock.stamp(since) if since else "", clock.stamp(until) if until else "",
        plain_text(project).casefold(), plain_text(conversation).casefold(),
    )  # fmt: skip


def conversation_names(metadata: Any) -> str:
    """Return the names of the conversation of an entry: id, title and file, one per line."""
    if _NAMING.isdisjoint(metadata):
        return ""
    pointer = metadata.get("pointer")
    file = pointer.get("file") if isinstance(pointer, dict) else None
    names = map(plain_text, (metadata.get("conversation"), metadata.get("title"), file))
    return "\n".join(filter(None, names))


def plain_text(value: Any) -> str:
    r"""Return a field as text that every store takes: nothing for null, lone surrogates escaped, no NUL.

    >>> plain_text(3), plain_text(None), len(plain_text(chr(0xDC80))), plain_text("a\0b")
    ('3', '', 6, 'a�b')
    """
    if isinstance(value, str) and value.isascii() and "\0" not in value:
        return value
    # The JSON functions of SQLite end a text at NUL.
    return "" if value is None else str(value).encode("utf-8", "backslashreplace").decode().replace("\0", "�")


def instant_text(value: Any) -> str:
    """Return a time in the form that sorts, empty if it is not a time.

    >>> instant_text("2026-02-01T01:00:00-05:00"), instant_text("yesterday"), instant_text(None)
    ('2026-02-01T06:00:00.000000Z', '', '')
    """
    return _instant(value) if isinstance(value, str) else ""


@lru_cache(maxsize=CACHED_TEXTS)
def _instant(text: str) -> str:
    try:
        if _STAMP.fullmatch(text):
            datetime.fromisoformat(text)  # only checked: a prompt asks this of every entry of a home
            return text
        return clock.stamp(clock.parse(text))
    except (InvalidInput, ValueError):
        return ""

"""Rows: what search needs to know of one item, and which archived items it looks at.

The archive grows without bound, so search never scores all of it. A word looks up the newest `CAP` items
that hold it, words too common for that look up together the newest `CAP` that hold them all, and so does
the phrase; what is named by its id is always there. `scan` follows this rule by reading every record,
`index` by asking a full-text index, and both find the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from aether import clock
from aether.errors import InvalidInput
from aether.shapes import JsonObject
from aether.text.patterns import lazy
from aether.text.words import CACHED_TEXTS, PART_WEIGHT, Terms, term, terms, words

# Items looked up per word. Of 3,400 notes, 50 cost a tenth of the recall of all; from 150 on it changes little.
CAP = 150
# "Alice: …", "Decision: …": who says it, or what kind of note it is.
_LABEL = lazy(r"\s*([^\W\d_][\w.'’ -]{0,30}):\s")

Records = Callable[[], Iterator[JsonObject]]


class Row(NamedTuple):
    """What is compared, filtered and weighed of one item."""

    id: str
    marked: str
    """Its terms, each marked so that counting them is one search: `[word]` and `(part)`."""
    length: int
    type: str
    phase: str
    caste: str
    at: str
    relevance: float
    labels: str
    """Names it goes by, as terms: its caste and what stands before its first colon; parted by `|`."""
    stretch: str
    """Items of one stretch of work are each other's context."""


class Keep(NamedTuple):
    """What a caller wants to see; an empty field wants everything."""

    types: tuple[str, ...] = ()
    phase: str = ""
    caste: str = ""
    since: str = ""
    until: str = ""

    def takes(self, row: Row) -> bool:
        """Return whether `row` is wanted; `until` is the first instant that is too late."""
        return (
            (not self.types or row.type in self.types)
            and (not self.phase or row.phase == self.phase)
            and (not self.caste or row.caste == self.caste)
            and (not self.since or row.at >= self.since)
            and (not self.until or row.at < self.until)
        )


EVERYTHING = Keep()


class Ask(NamedTuple):
    """What search asks of the archive."""

    terms: tuple[str, ...]
    sequence: tuple[str, ...]
    ids: tuple[str, ...]
    keep: Keep = EVERYTHING
    cap: int = CAP


class Candidate(NamedTuple):
    """An archived item that may be a hit; `place` counts the archive from its beginning."""

    place: int
    row: Row


class Found(NamedTuple):
    """What the archive answers: candidates by place, and how common the terms are in all of it."""

    items: int
    length: int
    held: dict[str, int]
    """In how many items each term stands."""
    candidates: list[Candidate]


class Source(NamedTuple):
    """A searchable archive."""

    find: Callable[[Ask], Found]
    read: Callable[[Sequence[int]], dict[int, JsonObject]]
    """The records at these places, as far as they exist."""


def row(record: JsonObject) -> Row:
    """Return the row of an archive record, or of a live item given as `{"item": item}`."""
    item = record.get("item") or {}
    metadata = item.get("metadata") or {}
    content = str(item.get("content") or "")
    text, length, label = _said(content)
    phase, caste = plain(metadata.get("phase")), plain(metadata.get("caste"))
    return Row(
        id=plain(item.get("id")),
        marked=text,
        length=length,
        type=plain(item.get("type")),
        phase=phase,
        caste=caste,
        at=instant(metadata.get("timestamp")),
        relevance=fraction(metadata.get("relevance_score")),
        labels="|".join(filter(None, (_name(caste), label))),
        stretch=f"{phase}/{plain(record.get('compression_id') or record.get('session_id'))}",
    )


def marked(said: Terms) -> str:
    """Return terms in the form in which `Row` holds and `counts` counts them."""
    return "".join([*(f"[{word}]" for word in said.words), *(f"({part})" for part in said.parts)])


def marks(terms: Iterable[str]) -> list[tuple[str, str, str]]:
    """Return each term with the two ways in which a marked text can hold it."""
    return [(one, f"[{one}]", f"({one})") for one in terms]


def counts(text: str, marked_terms: Iterable[tuple[str, str, str]]) -> dict[str, float]:
    """Return how often the marked `text` holds each term it holds, parts of names at their lesser weight."""
    found = {}
    for one, word, part in marked_terms:
        if one in text:
            times = text.count(word) + PART_WEIGHT * text.count(part)
            if times:
                found[one] = times
    return found


def plain(value: Any) -> str:
    """Return a field as text that every store takes: nothing for null, lone surrogates escaped.

    >>> plain(3), plain(None), len(plain(chr(0xDC80)))
    ('3', '', 6)
    """
    return "" if value is None else str(value).encode("utf-8", "backslashreplace").decode()


def instant(value: Any) -> str:
    """Return a time in the form that sorts, empty where it is none.

    >>> instant("2026-02-01T01:00:00-05:00"), instant("yesterday"), instant(None)
    ('2026-02-01T06:00:00.000000Z', '', '')
    """
    return _instant(value) if isinstance(value, str) else ""


@lru_cache(maxsize=CACHED_TEXTS)
def _instant(text: str) -> str:
    try:
        return clock.stamp(clock.parse(text))
    except InvalidInput:
        return ""


def fraction(value: Any) -> float:
    """Return a number from 0 to 1; what is none counts as one half."""
    return min(1.0, max(0.0, float(value))) if isinstance(value, int | float) else 0.5


@lru_cache(maxsize=CACHED_TEXTS)
def _said(content: str) -> tuple[str, int, str]:
    """Return the marked terms of a text, their number, and its label as terms."""
    said = terms(content)
    label = _LABEL.match(content)
    return marked(said), said.length, _name(label[1]) if label else ""


@lru_cache(maxsize=1_000)
def _name(text: str) -> str:
    return " ".join(term(word) for word in words(text))


def groups(held: dict[str, int], cap: int) -> list[tuple[str, ...]]:
    """Return the terms to look up together: the too common ones, the rarest two, three … of them.

    >>> groups({"a": 900, "b": 2, "c": 500, "d": 700}, 300)
    [('c', 'd'), ('c', 'd', 'a')]
    """
    common = sorted((one for one, items in held.items() if items > cap), key=lambda one: (held[one], one))
    return [tuple(common[:size]) for size in range(2, len(common) + 1)]


def phrase(sequence: tuple[str, ...]) -> str:
    """Return words in the form in which they stand side by side in a marked text."""
    return "".join(f"[{word}]" for word in sequence)


def scan(records: Records, ask: Ask) -> Found:
    """Return what the archive answers, by reading all of it."""
    held = dict.fromkeys(ask.terms, 0)
    total = 0
    holds: list[tuple[Row, frozenset[str]]] = []
    wanted, asked = phrase(ask.sequence), marks(ask.terms)
    for record in records():
        one = row(record)
        total += one.length
        inside = frozenset(counts(one.marked, asked))
        for each in inside:
            held[each] += 1
        # The marked text of most rows is not needed again.
        extra = {""} if wanted and wanted in one.marked else set()
        holds.append((one._replace(marked=""), inside | extra))
    places = _chosen(holds, held, ask)
    candidates = [Candidate(place, row(record)) for place, record in enumerate(records()) if place in places]
    return Found(len(holds), total, held, candidates)


def _chosen(holds: list[tuple[Row, frozenset[str]]], held: dict[str, int], ask: Ask) -> set[int]:
    """Return the places of the candidates; the empty term stands for the phrase."""
    lookups = [("",), *((each,) for each in ask.terms), *groups(held, ask.cap)]
    places = {place for place, (one, _) in enumerate(holds) if one.id in ask.ids}
    for keep in dict.fromkeys((EVERYTHING, ask.keep)):
        newest: list[deque[int]] = [deque(maxlen=ask.cap) for _ in lookups]
        for place, (one, inside) in enumerate(holds):
            if inside and keep.takes(one):
                for lookup, kept in zip(lookups, newest, strict=True):
                    if inside.issuperset(lookup):
                        kept.append(place)
        places.update(place for kept in newest for place in kept)
    return places


def scanning(records: Records) -> Source:
    """Return the archive that is searched by reading it."""

    def read(places: Sequence[int]) -> dict[int, JsonObject]:
        wanted = set(places)
        return {place: record for place, record in enumerate(records()) if place in wanted}

    return Source(lambda ask: scan(records, ask), read)


NOTHING = scanning(lambda: iter(()))

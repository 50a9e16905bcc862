"""The search index: the archived items that may answer a query, by a full-text index or by reading all of them.

The archive grows without bound, so search never scores all of it. A word looks up the newest `CAP` items that hold it;
words too common for that look up together the newest `CAP` that hold them all, and so does the phrase; items named by
their id are always candidates. `scan` follows this rule by reading every record, `indexed_source` by `index.sqlite`; both
find the same.

The index is derived: it can be deleted at any moment, is brought up to the archive's head before each search, and is
rebuilt if it is damaged, of another version, or of another archive. If it cannot be used (read-only home, full disk,
held too long by another process), the archive is scanned. A process killed while writing leaves the last whole batch.
"""

from __future__ import annotations

import json
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from aether import clock
from aether.errors import InvalidInput
from aether.text.regex import lazy
from aether.text.words import CACHED_TEXTS, PART_WEIGHT, Terms, term, terms, words
from aether.types import JsonObject

if TYPE_CHECKING:
    import sqlite3

# Items looked up per word. Of 3,400 notes, 50 cost a tenth of the recall of all; from 150 on it changes little.
CAP = 150
# "Alice: …", "Decision: …": who says it, or what kind of note it is.
_LABEL = lazy(r"\s*([^\W\d_][\w.'’ -]{0,30}):\s")

Records = Callable[[], Iterator[JsonObject]]


class Row(NamedTuple):
    """The fields of one item that are compared, filtered and weighed."""

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
    project: str = ""
    conversation: str = ""
    """Id, title and file of its conversation, one per line."""


class Filter(NamedTuple):
    """The items a caller wants to see; an empty field accepts all."""

    types: tuple[str, ...] = ()
    phase: str = ""
    caste: str = ""
    since: str = ""
    until: str = ""
    project: str = ""
    """A part of it, case-folded."""
    conversation: str = ""
    """A part of its id, title or file, case-folded."""

    def takes(self, row: Row) -> bool:
        """Return whether `row` is wanted; `until` is the first instant that is too late."""
        return (
            (not self.types or row.type in self.types)
            and (not self.phase or row.phase == self.phase)
            and (not self.caste or row.caste == self.caste)
            and (not self.since or row.at >= self.since)
            and (not self.until or row.at < self.until)
            and (not self.project or self.project in row.project.casefold())
            and (not self.conversation or self.conversation in row.conversation.casefold())
        )


EVERYTHING = Filter()


class Query(NamedTuple):
    """A query for candidates in the archive."""

    terms: tuple[str, ...]
    sequence: tuple[str, ...]
    ids: tuple[str, ...]
    keep: Filter = EVERYTHING
    cap: int = CAP


class Candidate(NamedTuple):
    """An archived item that may be a hit; `place` counts the archive from its start."""

    place: int
    row: Row


class Found(NamedTuple):
    """Candidates by place, and how common the terms are in the whole archive."""

    items: int
    length: int
    held: dict[str, int]
    """The number of items with each term."""
    candidates: list[Candidate]


class Source(NamedTuple):
    """A searchable archive."""

    find: Callable[[Query], Found]
    read: Callable[[Sequence[int]], dict[int, JsonObject]]
    """The records at these places, as far as they exist."""


def row(record: JsonObject) -> Row:
    """Return the row of an archive record, or of a live item given as `{"item": item}`."""
    item = record.get("item") or {}
    metadata = item.get("metadata") or {}
    content = str(item.get("content") or "")
    text, length, label = _marked_text(content)
    phase, caste = plain_text(metadata.get("phase")), plain_text(metadata.get("caste"))
    return Row(
        id=plain_text(item.get("id")),
        marked=text,
        length=length,
        type=plain_text(item.get("type")),
        phase=phase,
        caste=caste,
        at=instant_text(metadata.get("timestamp")),
        relevance=unit_fraction(metadata.get("relevance_score")),
        labels="|".join(filter(None, (_name(caste), label))),
        stretch=f"{phase}/{plain_text(record.get('compression_id') or record.get('session_id'))}",
        project=plain_text(metadata.get("project")),
        conversation=conversation_names(metadata),
    )


def conversation_names(metadata: Any) -> str:
    """Return the names of the conversation of an entry: id, title and file, one per line."""
    pointer = metadata.get("pointer")
    file = pointer.get("file") if isinstance(pointer, dict) else None
    return "\n".join(filter(None, map(plain_text, (metadata.get("conversation"), metadata.get("title"), file))))


def marked_terms(said: Terms) -> str:
    """Return terms in the form in which `Row` holds and `counts` counts them."""
    return "".join([*(f"[{word}]" for word in said.words), *(f"({part})" for part in said.parts)])


def term_marks(terms: Iterable[str]) -> list[tuple[str, str, str]]:
    """Return each term with the two ways in which a marked text can hold it."""
    return [(one, f"[{one}]", f"({one})") for one in terms]


def term_counts(text: str, marked_terms: Iterable[tuple[str, str, str]]) -> dict[str, float]:
    """Return how often the marked `text` holds each term it holds, parts of names at their lesser weight."""
    found = {}
    for one, word, part in marked_terms:
        if one in text:
            times = text.count(word) + PART_WEIGHT * text.count(part)
            if times:
                found[one] = times
    return found


def plain_text(value: Any) -> str:
    """Return a field as text that every store takes: nothing for null, lone surrogates escaped.

    >>> plain_text(3), plain_text(None), len(plain_text(chr(0xDC80)))
    ('3', '', 6)
    """
    return "" if value is None else str(value).encode("utf-8", "backslashreplace").decode()


def instant_text(value: Any) -> str:
    """Return a time in the form that sorts, empty if it is not a time.

    >>> instant_text("2026-02-01T01:00:00-05:00"), instant_text("yesterday"), instant_text(None)
    ('2026-02-01T06:00:00.000000Z', '', '')
    """
    return _instant(value) if isinstance(value, str) else ""


@lru_cache(maxsize=CACHED_TEXTS)
def _instant(text: str) -> str:
    try:
        return clock.stamp(clock.parse(text))
    except InvalidInput:
        return ""


def unit_fraction(value: Any) -> float:
    """Return a number from 0 to 1; other values count as one half."""
    return min(1.0, max(0.0, float(value))) if isinstance(value, int | float) else 0.5


@lru_cache(maxsize=CACHED_TEXTS)
def _marked_text(content: str) -> tuple[str, int, str]:
    """Return the marked terms of a text, their number, and its label as terms."""
    said = terms(content)
    label = _LABEL.match(content)
    return marked_terms(said), said.length, _name(label[1]) if label else ""


@lru_cache(maxsize=1_000)
def _name(text: str) -> str:
    return " ".join(term(word) for word in words(text))


def common_groups(held: dict[str, int], cap: int) -> list[tuple[str, ...]]:
    """Return the terms to look up together: the too common ones, the rarest two, three … of them.

    >>> common_groups({"a": 900, "b": 2, "c": 500, "d": 700}, 300)
    [('c', 'd'), ('c', 'd', 'a')]
    """
    common = sorted((one for one, items in held.items() if items > cap), key=lambda one: (held[one], one))
    return [tuple(common[:size]) for size in range(2, len(common) + 1)]


def phrase(sequence: tuple[str, ...]) -> str:
    """Return words as they are side by side in a marked text."""
    return "".join(f"[{word}]" for word in sequence)


def scan(records: Records, ask: Query) -> Found:
    """Return the candidates, found by reading the whole archive."""
    held = dict.fromkeys(ask.terms, 0)
    total = 0
    holds: list[tuple[Row, frozenset[str]]] = []
    wanted, asked = phrase(ask.sequence), term_marks(ask.terms)
    for record in records():
        one = row(record)
        total += one.length
        inside = frozenset(term_counts(one.marked, asked))
        for each in inside:
            held[each] += 1
        # The marked text of most rows is not needed again.
        extra = {""} if wanted and wanted in one.marked else set()
        holds.append((one._replace(marked=""), inside | extra))
    places = _chosen(holds, held, ask)
    candidates = [Candidate(place, row(record)) for place, record in enumerate(records()) if place in places]
    return Found(len(holds), total, held, candidates)


def _chosen(holds: list[tuple[Row, frozenset[str]]], held: dict[str, int], ask: Query) -> set[int]:
    """Return the places of the candidates; the empty term means the phrase."""
    lookups = [("",), *((each,) for each in ask.terms), *common_groups(held, ask.cap)]
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


def scan_source(records: Records) -> Source:
    """Return the archive that is searched by reading it."""

    def read(places: Sequence[int]) -> dict[int, JsonObject]:
        wanted = set(places)
        return {place: record for place, record in enumerate(records()) if place in wanted}

    return Source(lambda ask: scan(records, ask), read)


EMPTY = scan_source(lambda: iter(()))


# Raise it whenever rows, terms or tables change: an index of another version is rebuilt.
VERSION = 1
# Records per transaction while catching up: a killed process repeats at most these.
BATCH = 5_000
# Longer than a batch takes to write; after that, scanning is quicker than waiting.
BUSY_SECONDS = 2.0

_TABLES = (
    *(f"DROP TABLE IF EXISTS {table}" for table in ("state", "entry", "record", "held", "word")),
    "CREATE TABLE state (position INTEGER, items INTEGER, length INTEGER)",
    "INSERT INTO state VALUES (-1, 0, 0)",
    """CREATE TABLE entry (
        place INTEGER PRIMARY KEY, position INTEGER, id TEXT, marked TEXT, length INTEGER,
        type TEXT, phase TEXT, caste TEXT, at TEXT, relevance REAL, labels TEXT, stretch TEXT
    )""",
    # Apart, so that the rows that are compared lie close together.
    "CREATE TABLE record (place INTEGER PRIMARY KEY, record TEXT)",
    "CREATE INDEX entry_position ON entry (position)",
    "CREATE INDEX entry_id ON entry (id)",
    "CREATE TABLE held (term TEXT PRIMARY KEY, items INTEGER) WITHOUT ROWID",
    "CREATE VIRTUAL TABLE word USING fts5 (words, parts, content='', columnsize=0, tokenize='ascii')",
    f"PRAGMA user_version = {VERSION}",
)
_HELD = "SELECT term, items FROM held WHERE term IN (SELECT value FROM json_each(?))"
_IDS = "SELECT place FROM entry WHERE id IN (SELECT value FROM json_each(?))"
_ENTRIES = """
SELECT * FROM entry WHERE place IN (SELECT value FROM json_each(?)) AND position <= ? ORDER BY place
"""
_RECORDS = """
SELECT place, record FROM record JOIN entry USING (place)
WHERE place IN (SELECT value FROM json_each(?)) AND position <= ? ORDER BY place
"""
_NEWEST = "SELECT rowid FROM word WHERE word MATCH :lookup ORDER BY rowid DESC LIMIT :cap"
_NEWEST_KEPT = """
SELECT word.rowid FROM word CROSS JOIN entry ON entry.place = word.rowid
WHERE word MATCH :lookup AND (:types = '[]' OR type IN (SELECT value FROM json_each(:types)))
AND (:phase = '' OR phase = :phase) AND (:caste = '' OR caste = :caste)
AND (:since = '' OR at >= :since) AND (:until = '' OR at < :until)
ORDER BY word.rowid DESC LIMIT :cap
"""

_Answer = TypeVar("_Answer")


class Archive(NamedTuple):
    """An archive that can be indexed."""

    head: int
    """The position of its last record, -1 where it is empty."""
    records: Callable[[int], Iterator[tuple[int, JsonObject]]]
    """Yields position and record of all that is later than a position, oldest first."""


class _State(NamedTuple):
    position: int
    items: int
    length: int


def indexed_source(path: Path, archive: Archive) -> Source:
    """Return the searchable archive: by the index at `path` where possible, else by scanning."""
    plain = scan_source(lambda: (record for _, record in archive.records(-1)))

    def find(ask: Query) -> Found:
        found = _indexed(path, archive, lambda db: _find(db, ask, archive.head))
        return plain.find(ask) if found is None else found

    def read(places: Sequence[int]) -> dict[int, JsonObject]:
        records = _indexed(path, archive, lambda db: _read(db, places, archive.head))
        return plain.read(places) if records is None else records

    return Source(find, read)


def refresh(path: Path, archive: Archive) -> bool:
    """Bring the index up to the archive's head; return whether it can be used."""
    return bool(_indexed(path, archive, lambda _: True))


def _indexed(path: Path, archive: Archive, work: Callable[[sqlite3.Connection], _Answer]) -> _Answer | None:
    """Return the result of `work` on the current index, None if the archive is empty or cannot be indexed."""
    import sqlite3

    if archive.head < 0:
        return None
    for _ in range(2):
        try:
            with closing(_open(path)) as db:
                _catch_up(db, archive)
                return work(db)
        except (sqlite3.OperationalError, OSError):  # the surroundings: locked, read-only, full
            return None
        except sqlite3.DatabaseError:  # the file itself is damaged
            with suppress(OSError):
                for name in (path, path.with_name(f"{path.name}-journal")):
                    name.unlink(missing_ok=True)
    return None


def _open(path: Path) -> sqlite3.Connection:
    import sqlite3

    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    return sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)


def _catch_up(db: sqlite3.Connection, archive: Archive) -> None:
    """Add what the archive holds beyond the index, batch by batch; another process may do the same."""
    if not _is_of(db, archive):
        with _writing(db):
            if not _is_of(db, archive):
                for statement in _TABLES:
                    db.execute(statement)
    while (state := _state(db)).position < archive.head:
        newer = archive.records(state.position)
        while batch := list(islice(newer, BATCH)):
            with _writing(db):
                if _state(db) != state:
                    break
                _add(db, state, batch)
                state = _state(db)
        else:
            return


def _is_of(db: sqlite3.Connection, archive: Archive) -> bool:
    """Return whether the index is of this version and of an archive with the same start."""
    if db.execute("PRAGMA user_version").fetchone() != (VERSION,):
        return False
    # Another reader may have come further than this one looks.
    newest = "SELECT position, id FROM entry WHERE position <= ? ORDER BY position DESC LIMIT 1"
    known: tuple[int, str] | None = db.execute(newest, (archive.head,)).fetchone()
    if known is None:
        return _state(db).items == 0
    position, record = next(archive.records(known[0] - 1), (-1, {}))
    return known == (position, row(record).id)


@contextmanager
def _writing(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        # An error may have rolled back already.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def _state(db: sqlite3.Connection) -> _State:
    return _State(*db.execute("SELECT position, items, length FROM state").fetchone())


def _add(db: sqlite3.Connection, state: _State, batch: list[tuple[int, JsonObject]]) -> None:
    rows = [row(record) for _, record in batch]
    held: Counter[str] = Counter()
    said = []  # the words and the parts of each row, as texts whose tokens they are
    for one in rows:
        of_words, _, of_parts = one.marked.partition("(")
        said.append((of_words[1:-1].replace("][", " "), of_parts[:-1].replace(")(", " ")))
        held.update({*said[-1][0].split(), *said[-1][1].split()})
    places = range(state.items, state.items + len(batch))
    db.executemany(
        "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        ((place, position, *one) for place, (position, _), one in zip(places, batch, rows, strict=True)),
    )
    db.executemany(
        "INSERT INTO record VALUES (?, ?)",
        ((place, json.dumps(record)) for place, (_, record) in zip(places, batch, strict=True)),
    )
    db.executemany(
        "INSERT INTO word (rowid, words, parts) VALUES (?, ?, ?)",
        ((place, *texts) for place, texts in zip(places, said, strict=True)),
    )
    db.executemany(
        "INSERT INTO held VALUES (?, ?) ON CONFLICT (term) DO UPDATE SET items = items + excluded.items",
        held.items(),
    )
    length = state.length + sum(one.length for one in rows)
    db.execute("UPDATE state SET position = ?, items = ?, length = ?", (batch[-1][0], places.stop, length))


def _find(db: sqlite3.Connection, ask: Query, head: int) -> Found:
    db.execute("BEGIN")  # one state for all the questions below
    state = _state(db)
    held = dict.fromkeys(ask.terms, 0)
    held.update(db.execute(_HELD, (json.dumps(ask.terms),)))
    places = {place for (place,) in _places(db, ask, held)}
    rows = db.execute(_ENTRIES, (json.dumps(sorted(places)), head))
    candidates = [Candidate(place, Row(*fields)) for place, _, *fields in rows]
    return Found(state.items, state.length, held, candidates)


def _places(db: sqlite3.Connection, ask: Query, held: dict[str, int]) -> Iterator[tuple[int]]:
    yield from db.execute(_IDS, (json.dumps(ask.ids),))
    lookups = [f'"{each}"' for each in ask.terms if held[each]]
    lookups += [" AND ".join(f'"{each}"' for each in group) for group in common_groups(held, ask.cap)]
    # What holds the phrase holds each of its words: a rare one has found them all, at less cost.
    if ask.sequence and all(items > ask.cap for items in held.values()):
        lookups.append(f'words : "{" ".join(ask.sequence)}"')
    keep = ask.keep._asdict() | {"types": json.dumps(ask.keep.types), "cap": ask.cap}
    for lookup in lookups:
        yield from db.execute(_NEWEST, {"lookup": lookup, "cap": ask.cap})
        if ask.keep != EVERYTHING:
            yield from db.execute(_NEWEST_KEPT, {"lookup": lookup, **keep})


def _read(db: sqlite3.Connection, places: Sequence[int], head: int) -> dict[int, JsonObject]:
    found = db.execute(_RECORDS, (json.dumps(places), head))
    return {place: json.loads(record) for place, record in found}

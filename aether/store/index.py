"""The index: archived items in SQLite's full-text form, so that searching them stays quick as they grow.

`index.sqlite` is derived: it can be deleted at any moment, is brought up to the archive's head before each
search, and is built anew when it is damaged, of another version, or not of this archive. Guaranteed: it
finds what `rows.scan` finds. Where it cannot be used (read-only home, full disk, held too long by another
process) the archive is scanned. A process killed while writing leaves the last complete batch.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from aether.shapes import JsonObject
from aether.store.rows import EVERYTHING, Ask, Candidate, Found, Row, Source, groups, row, scanning

if TYPE_CHECKING:
    import sqlite3

# Raise it whenever rows, terms or tables change: an index of another version is built anew.
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
    """How far the index has come."""

    position: int
    items: int
    length: int


def source(path: Path, archive: Archive) -> Source:
    """Return the searchable archive: by the index at `path` where possible, else by scanning."""
    plain = scanning(lambda: (record for _, record in archive.records(-1)))

    def find(ask: Ask) -> Found:
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
    """Return what `work` answers on the current index, None where there is nothing or no way to index."""
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
                _discard(path)
    return None


def _open(path: Path) -> sqlite3.Connection:
    import sqlite3

    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    return sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)


def _discard(path: Path) -> None:
    for name in (path, path.with_name(f"{path.name}-journal")):
        name.unlink(missing_ok=True)


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
    """Return whether the index is of this version and of an archive that has the same beginning."""
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
    said = [_said(one) for one in rows]
    for words, parts in said:
        held.update({*words.split(), *parts.split()})
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


def _said(one: Row) -> tuple[str, str]:
    """Return the words and the parts of a row as texts whose tokens they are."""
    words, _, parts = one.marked.partition("(")
    return words[1:-1].replace("][", " "), parts[:-1].replace(")(", " ")


def _find(db: sqlite3.Connection, ask: Ask, head: int) -> Found:
    db.execute("BEGIN")  # one state for all the questions below
    state = _state(db)
    held = dict.fromkeys(ask.terms, 0)
    held.update(db.execute(_HELD, (json.dumps(ask.terms),)))
    places = {place for (place,) in _places(db, ask, held)}
    rows = db.execute(_ENTRIES, (json.dumps(sorted(places)), head))
    candidates = [Candidate(place, Row(*fields)) for place, _, *fields in rows]
    return Found(state.items, state.length, held, candidates)


def _places(db: sqlite3.Connection, ask: Ask, held: dict[str, int]) -> Iterator[tuple[int]]:
    yield from db.execute(_IDS, (json.dumps(ask.ids),))
    lookups = [f'"{each}"' for each in ask.terms if held[each]]
    lookups += [" AND ".join(f'"{each}"' for each in group) for group in groups(held, ask.cap)]
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

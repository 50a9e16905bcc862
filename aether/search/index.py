"""The search index: the archived items that may answer a query, by a full-text index or by reading all of them.

The archive grows without bound, so search reads and compares only the `CAP` best of it. All items are ranked before that
cut, old ones too, by points for the words they hold, how often, and in how short a text; items named by their id are always
candidates, and so are those beside the best. `scan` follows this rule by reading every record, `indexed_source` by
`index.sqlite`; both find the same.

The index holds no text but postings, by which all items get their points in milliseconds (`store.index_file`).

The index is derived: it can be deleted at any moment, is brought up to the archive's head before each search, and is
rebuilt if it is damaged, of another version, or of another archive. If it cannot be used (read-only home, full disk,
held too long by another process), the archive is scanned. A process killed while writing leaves the last whole batch.
"""

from __future__ import annotations

import heapq
import json
import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from aether import clock
from aether.memory.layers import EVERYTHING, FILTERED, Filter, conversation_names, instant_text, plain_text
from aether.store import index_file as postings
from aether.store.index_file import CHUNK, CHUNK_BITS, PLANE_BYTES, on_index, writing
from aether.text.regex import lazy
from aether.text.words import CACHED_TEXTS, PART_WEIGHT, Terms, run_terms, runs, term, words
from aether.types import JsonObject

if TYPE_CHECKING:
    import sqlite3

# Items with the most points that are read and compared.
CAP = 64
# Points of an item for a term, as a share of the term's weight: as a part of a name, once, twice, more often.
LEVELS = (0.68, 1.0, 1.31, 1.5)
# Points of a plain full answer.
POINTS = 1_000
# Topic words up to which a text counts as short, each with its mark among the terms (no term holds a space).
SHORT = (8, 16, 32, 64)
SHORT_MARKS = tuple(f" {most}" for most in SHORT)
SHORT_BONUS = 0.03
# The items next to the best are candidates as well if they hold a term.
BESIDE_BEST = 20
BESIDE_REACH = 2
# Runs of letters whose terms stay in memory.
_CACHED_RUNS = 50_000
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
    role: str = ""
    """Its part in the conversation, of a passage who speaks."""
    asks: bool = False
    """Whether its text ends as a question."""


class Query(NamedTuple):
    """A query for candidates in the archive."""

    terms: tuple[str, ...]
    ids: tuple[str, ...]
    keep: Filter = EVERYTHING
    cap: int = CAP
    weights: tuple[float, ...] = ()
    """Of each term; empty: all alike."""
    most: int | None = None
    """Candidates to read, those with most of the terms, and of these the newest; None: all."""


class Candidate(NamedTuple):
    """An archived item that may be a hit; `place` counts the archive from its start."""

    place: int
    record: JsonObject
    held: frozenset[str] = frozenset()
    """The terms of the query that it holds."""

    @property
    def id(self) -> str:
        """Return the id of the item, as its row spells it."""
        return plain_text((self.record.get("item") or {}).get("id"))

    @property
    def row(self) -> Row:
        """Return the row, made of the record each time: a text is cut into words for it."""
        return row(self.record)


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


class Cut(NamedTuple):
    """Texts that were cut into terms."""

    marked: tuple[str, ...]
    """The marked terms of each."""
    length: int
    """That of all."""
    label: str
    """What stands before the first colon of a single text, as terms."""
    asks: bool
    """Whether a single text ends as a question."""


def row(record: JsonObject) -> Row:
    """Return the row of an archive record."""
    return cut_row(record, cut([content_of(record.get("item") or {})]))


def cut_row(record: JsonObject, terms_of_text: Cut) -> Row:
    """Return the row of a record, or of a live item given as `{"item": item}`, whose content was cut."""
    return _row(record, terms_of_text.marked[0], *terms_of_text[1:])


def content_of(item: JsonObject) -> str:
    """Return the text of an item by which it is found."""
    return str(item.get("content") or "")


def cut(texts: Sequence[str]) -> Cut:
    """Return the terms of texts."""
    parts = [_marked_text(text) for text in texts]
    label, asks = parts[0][2:] if len(parts) == 1 else ("", False)
    return Cut(tuple([part[0] for part in parts]), sum([part[1] for part in parts]), label, asks)


def _row(record: JsonObject, marked: str, length: int, label: str, asks: bool) -> Row:
    item = record.get("item") or {}
    metadata = item.get("metadata") or {}
    phase, caste = plain_text(metadata.get("phase")), plain_text(metadata.get("caste"))
    caste_terms = _name(caste) if caste else ""
    work = plain_text(record.get("compression_id") or record.get("session_id"))
    # By position: by name takes a third more of the time, for each entry of a home at the first search of a process.
    return Row(
        plain_text(item.get("id")), marked, length, plain_text(item.get("type")), phase, caste,
        instant_text(metadata.get("timestamp")), unit_fraction(metadata.get("relevance_score")),
        f"{caste_terms}|{label}" if caste_terms and label else caste_terms or label, f"{phase}/{work}",
        plain_text(metadata.get("project")), conversation_names(metadata),
        plain_text(metadata.get("role") or metadata.get("speaker")), asks,
    )  # fmt: skip


def unit_fraction(value: Any) -> float:
    """Return a number from 0 to 1; other values count as one half."""
    if isinstance(value, float) and 0.0 <= value <= 1.0:  # as nearly all are
        return value
    return min(1.0, max(0.0, float(value))) if isinstance(value, int | float) else 0.5


def marked_terms(terms_of_text: Terms) -> str:
    """Return terms in the form in which `Row` holds and `counts` counts them."""
    return "".join(
        [*(f"[{word}]" for word in terms_of_text.words), *(f"({part})" for part in terms_of_text.parts)]
    )


def term_marks(terms: Iterable[str]) -> list[tuple[str, str, str]]:
    """Return each term with the two ways in which a marked text can hold it."""
    return [(term, f"[{term}]", f"({term})") for term in terms]


def term_counts(text: str, marked_terms: Iterable[tuple[str, str, str]]) -> dict[str, float]:
    """Return how often the marked `text` holds each term it holds, parts of names at their lesser weight."""
    counts = {}
    for key, word, part in marked_terms:
        if key in text:
            times = text.count(word) + PART_WEIGHT * text.count(part)
            if times:
                counts[key] = times
    return counts


@lru_cache(maxsize=CACHED_TEXTS)
def _marked_text(content: str) -> tuple[str, int, str, bool]:
    """Return the marked terms of a text, their number, its label as terms, and whether it ends as a question."""
    marked = [*map(_marked_run, runs(content))]
    label = _LABEL.match(content)
    return (
        "".join([words for words, _, _ in marked] + [parts for _, parts, _ in marked if parts]),
        sum([length for _, _, length in marked]),
        _name(label[1]) if label else "",
        content.rstrip().endswith(("?", "？")),
    )


@lru_cache(maxsize=_CACHED_RUNS)
def _marked_run(run: str) -> tuple[str, str, int]:
    """Return the marked words and parts of one run of letters, and their number: most runs come in many texts."""
    terms_of_run = run_terms(run)
    marked = marked_terms(terms_of_run)
    words = len(marked) - sum(len(part) + 2 for part in terms_of_run.parts)
    return marked[:words], marked[words:], terms_of_run.length


@lru_cache(maxsize=1_000)
def _name(text: str) -> str:
    return " ".join(term(word) for word in words(text))


def phrase(sequence: tuple[str, ...]) -> str:
    """Return words as they are side by side in a marked text."""
    return "".join(f"[{word}]" for word in sequence)


def value_of_levels(ask: Query, numbers: dict[str, int], items: int) -> dict[str, tuple[int, ...]]:
    """Return how many points an item gets for each term: as part of a name, once, twice, and more often.

    Points are whole numbers, so that an index and a scan rank alike; `POINTS` is about a plain full answer.
    """
    weights = dict(zip(ask.terms, ask.weights or (1.0,) * len(ask.terms), strict=True))
    worth = {
        term: weights[term] * math.log(1 + (items - number + 0.5) / (number + 0.5))
        for term, number in numbers.items()
        if number
    }
    unit = POINTS / max(sum(worth.values()), 1e-9)
    values = {term: tuple(round(unit * share * level) for level in LEVELS) for term, share in worth.items()}
    return values | dict.fromkeys(SHORT_MARKS, (round(POINTS * SHORT_BONUS),) * len(LEVELS))


def levels(item_row: Row) -> dict[str, int]:
    """Return the level of each term of a row, from 0 for a part of a name to 3, and marks of a short text."""
    of_words, _, of_parts = item_row.marked.partition("(")
    by_term = dict.fromkeys(of_parts[:-1].split(")("), 0) if of_parts else {}
    for word, times in Counter(of_words[1:-1].split("][")).items():
        by_term[word] = min(times, len(LEVELS) - 1)
    by_term.pop("", None)
    by_term |= {mark: 1 for most, mark in zip(SHORT, SHORT_MARKS, strict=True) if item_row.length <= most}
    return by_term


def scan(records: Records, ask: Query) -> Found:
    """Return the candidates, found by reading the whole archive."""
    numbers = dict.fromkeys(ask.terms, 0)
    terms_to_count = {*ask.terms, *SHORT_MARKS}
    total = 0
    holds: list[tuple[Row, dict[str, int]]] = []
    for record in records():
        item_row = row(record)
        total += item_row.length
        inside = {term: level for term, level in levels(item_row).items() if term in terms_to_count}
        for term_of_row in inside:
            if term_of_row in numbers:
                numbers[term_of_row] += 1
        # The marked text of most rows is not needed again.
        holds.append((item_row._replace(marked=""), inside))
    values = value_of_levels(ask, numbers, len(holds))
    asked_terms = set(ask.terms)
    points = {
        place: sum(values[term][level] for term, level in inside.items() if term in values)
        for place, (_, inside) in enumerate(holds)
        if not asked_terms.isdisjoint(inside)
    }
    places = {place for place, (item_row, _) in enumerate(holds) if item_row.id in ask.ids}
    for keep in dict.fromkeys((EVERYTHING, ask.keep)):
        scored = [(number, place) for place, number in points.items() if keep.takes(holds[place][0])]
        best = [place for _, place in heapq.nlargest(ask.cap, scored)]
        places.update(best, *(set(beside(place)) & points.keys() for place in best[:BESIDE_BEST]))
    terms_by_place = {place: frozenset(asked_terms.intersection(holds[place][1])) for place in places}
    chosen = set(_first(terms_by_place, ask.most))
    candidates = [
        Candidate(place, record, terms_by_place[place])
        for place, record in enumerate(records())
        if place in chosen
    ]
    return Found(len(holds), total, numbers, candidates)


def _first(terms_by_place: Mapping[int, frozenset[str]], most: int | None) -> list[int]:
    """Return the places of as many candidates as are to be read, given the terms that each holds."""
    return sorted(terms_by_place, key=lambda place: (-len(terms_by_place[place]), -place))[:most]


def beside(place: int) -> range:
    """Return the places of an item and of those next to it: the answer is often beside the question."""
    return range(max(0, place - BESIDE_REACH), place + BESIDE_REACH + 1)


def scan_source(records: Records) -> Source:
    """Return the archive that is searched by reading it."""

    def read(places: Sequence[int]) -> dict[int, JsonObject]:
        places_wanted = set(places)
        return {place: record for place, record in enumerate(records()) if place in places_wanted}

    return Source(lambda ask: scan(records, ask), read)


EMPTY = scan_source(lambda: iter(()))


# Raise it whenever rows, terms or tables change: an index of another version is rebuilt.
VERSION = 2
# Records per transaction while catching up: a killed process repeats at most these.
BATCH = 5_000
# Longer than a batch takes to write; after that, scanning is quicker than waiting.
BUSY_SECONDS = 2.0
_TABLES = (
    *(
        f"DROP TABLE IF EXISTS {table}"
        for table in ("state", "entry", "record", "held", "word", "name", "term", "posting", "live")
    ),
    "CREATE TABLE state (position INTEGER, items INTEGER, length INTEGER)",
    "INSERT INTO state VALUES (-1, 0, 0)",
    # `key` is a digest of the id; texts that recur are numbers of `name`.
    """CREATE TABLE entry (
        place INTEGER PRIMARY KEY, position INTEGER, offset INTEGER, key INTEGER, at INTEGER,
        type INTEGER, phase INTEGER, caste INTEGER, project INTEGER, conversation INTEGER
    )""",
    "CREATE INDEX entry_key ON entry (key)",
    "CREATE TABLE name (number INTEGER PRIMARY KEY, text TEXT UNIQUE)",
    "CREATE TABLE term (number INTEGER PRIMARY KEY, term TEXT UNIQUE, items INTEGER)",
    postings.TABLE,
    f"PRAGMA user_version = {VERSION}",
)
_TERMS = "SELECT term, number, items FROM term WHERE term IN (SELECT value FROM json_each(?))"
_KEYS = "SELECT place FROM entry WHERE key IN (SELECT value FROM json_each(?)) AND position <= ?"
_PLACES = """
SELECT place, position, offset FROM entry
WHERE place IN (SELECT value FROM json_each(?)) AND position <= ? ORDER BY place
"""
_KEPT = """
SELECT place FROM entry WHERE (:since IS NULL OR at >= :since) AND (:until IS NULL OR at IS NULL OR at < :until)
"""
_Answer = TypeVar("_Answer")


class Archive(NamedTuple):
    """An archive that can be indexed."""

    head: int
    """The position of its last record, -1 where it is empty."""
    records: Callable[[int], Iterator[tuple[Any, ...]]]
    """Yields position, record and, where it is known, offset of all that is later than a position, oldest first."""
    fetch: Callable[[dict[int, int]], dict[int, JsonObject]] | None = None
    """Returns the records at these positions, given the offset of each, -1 where it is not known; None: by `records`."""


class _State(NamedTuple):
    position: int
    items: int
    length: int


def indexed_source(path: Path, archive: Archive) -> Source:
    """Return the searchable archive: by the index at `path` where possible, else by scanning."""
    plain = scan_source(lambda: (entry[1] for entry in archive.records(-1)))

    def find(ask: Query) -> Found:
        answer = _indexed(path, archive, lambda db: _find(db, ask, archive))
        return plain.find(ask) if answer is None else answer

    def read(places: Sequence[int]) -> dict[int, JsonObject]:
        records = _indexed(path, archive, lambda db: _read(db, places, archive))
        return plain.read(places) if records is None else records

    return Source(find, read)


def refresh(path: Path, archive: Archive) -> bool:
    """Bring the index up to the archive's head; return whether it can be used."""
    return bool(_indexed(path, archive, lambda _: True))


def _indexed(path: Path, archive: Archive, work: Callable[[sqlite3.Connection], _Answer]) -> _Answer | None:
    """Return the result of `work` on the current index, None if the archive is empty or cannot be indexed."""
    if archive.head < 0:
        return None

    def current(db: sqlite3.Connection) -> _Answer:
        _catch_up(db, archive)
        return work(db)

    result = on_index(path, current, busy_seconds=BUSY_SECONDS)
    return result[0] if result else None


def _catch_up(db: sqlite3.Connection, archive: Archive) -> None:
    """Add what the archive holds beyond the index, batch by batch; another process may do the same."""
    db.execute("PRAGMA page_size = 8192")  # of a new file: a posting fits into one page
    if not _is_of(db, archive):
        with writing(db):
            if not _is_of(db, archive):  # another process may have made it meanwhile
                for statement in _TABLES:
                    db.execute(statement)
    while (state := _state(db)).position < archive.head:
        newer = archive.records(state.position)
        while batch := list(islice(newer, BATCH)):
            with writing(db):
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
    newest = "SELECT position, key FROM entry WHERE position <= ? ORDER BY place DESC LIMIT 1"
    newest_entry: tuple[int, int] | None = db.execute(newest, (archive.head,)).fetchone()
    if newest_entry is None:
        return _state(db).items == 0
    position, record = next(archive.records(newest_entry[0] - 1), (-1, {}))[:2]
    return newest_entry == (position, _key(plain_text((record.get("item") or {}).get("id"))))


def _state(db: sqlite3.Connection) -> _State:
    return _State(*db.execute("SELECT position, items, length FROM state").fetchone())


def _key(id: str) -> int:
    return zlib.crc32(id.encode())


def _micros(time: str) -> int | None:
    return round(clock.parse(time).timestamp() * 1_000_000) if time else None


def _add(db: sqlite3.Connection, state: _State, batch: list[tuple[Any, ...]]) -> None:
    rows = [row(item_row[1]) for item_row in batch]
    numbers = _numbers_of_names(db, {getattr(item_row, field) for item_row in rows for field in FILTERED})
    new: dict[str, dict[int, list[tuple[int, int]]]] = {}
    for place, item_row in enumerate(rows, start=state.items):
        for term_of_row, level in levels(item_row).items():
            chunks = new.setdefault(term_of_row, {})
            chunks.setdefault(place >> CHUNK_BITS, []).append((place % CHUNK, level))
    db.executemany(
        "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (place, position, offset[0] if offset else -1, _key(item_row.id), _micros(item_row.at),
             *(numbers[getattr(item_row, field)] for field in FILTERED))
            for place, ((position, _, *offset), item_row) in enumerate(zip(batch, rows, strict=True), start=state.items)
        ),
    )  # fmt: skip
    db.executemany(
        "INSERT INTO term (term, items) VALUES (?, ?) ON CONFLICT (term) DO UPDATE SET items = items + excluded.items",
        ((term_of_row, sum(map(len, chunks.values()))) for term_of_row, chunks in new.items()),
    )
    for term_of_row, number, _ in db.execute(_TERMS, (json.dumps([*new]),)).fetchall():
        for chunk, places in new[term_of_row].items():
            postings.change(db, number, chunk, places, levels=len(LEVELS))
    length = state.length + sum(item_row.length for item_row in rows)
    db.execute(
        "UPDATE state SET position = ?, items = ?, length = ?",
        (batch[-1][0], state.items + len(rows), length),
    )


def _numbers_of_names(db: sqlite3.Connection, texts: Iterable[str]) -> dict[str, int]:
    """Return the number of each text, a new one for a new text."""
    wanted = sorted(texts)
    db.executemany("INSERT OR IGNORE INTO name (text) VALUES (?)", ((text,) for text in wanted))
    numbers = db.execute(
        "SELECT text, number FROM name WHERE text IN (SELECT value FROM json_each(?))", (json.dumps(wanted),)
    )
    return dict(numbers.fetchall())


def _find(db: sqlite3.Connection, ask: Query, archive: Archive) -> Found:
    db.execute("BEGIN")  # one state for all the questions below
    state = _state(db)
    numbers = dict.fromkeys(ask.terms, 0)
    stored_terms = db.execute(_TERMS, (json.dumps([*ask.terms, *SHORT_MARKS]),)).fetchall()
    numbers.update({term: items for term, _, items in stored_terms if term in numbers})
    values = value_of_levels(ask, numbers, state.items)
    chunks = postings.of_terms(db, [(each, number) for each, number, _ in stored_terms])
    seen = state.items
    if state.position > archive.head:  # another reader has come further
        seen = db.execute("SELECT count(*) FROM entry WHERE position <= ?", (archive.head,)).fetchone()[0]
    places = {place for (place,) in db.execute(_KEYS, (json.dumps([*map(_key, ask.ids)]), archive.head))}
    best, holding = _best_places(chunks, values, _masks(db, ask, seen), ask)
    terms_by_place = {place: _terms_at(place, holding) for place in places | best}
    records = _read(db, sorted(_first(terms_by_place, ask.most)), archive)
    candidates = [
        Candidate(place, record, terms_by_place[place]) for place, record in sorted(records.items())
    ]
    return Found(state.items, state.length, numbers, candidates)


def _masks(db: sqlite3.Connection, ask: Query, items: int) -> list[Callable[[int], int]]:
    """Return functions from a chunk to the items in it that may be found: all up to `items`, and those of the filter."""

    def seen(chunk: int) -> int:
        return (1 << max(0, min(CHUNK, items - (chunk << CHUNK_BITS)))) - 1

    if ask.keep == EVERYTHING:
        return [seen]
    query, bound = _KEPT, {"since": _micros(ask.keep.since), "until": _micros(ask.keep.until)}
    names = db.execute("SELECT number, text FROM name").fetchall()
    for field in FILTERED:
        if getattr(ask.keep, "types" if field == "type" else field):
            fit = [str(number) for number, text in names if ask.keep.has(field, text)]
            query += f" AND {field} IN ({', '.join(fit)})"
    planes: dict[int, bytearray] = {}
    for (place,) in db.execute(query, bound):
        plane = planes.setdefault(place >> CHUNK_BITS, bytearray(PLANE_BYTES))
        plane[place % CHUNK >> 3] |= 1 << (place & 7)
    return [seen, lambda chunk: seen(chunk) & int.from_bytes(planes.get(chunk, b""), "little")]


def _best_places(
    chunks: dict[int, list[tuple[str, bytes]]], values: dict[str, tuple[int, ...]],
    masks: list[Callable[[int], int]], ask: Query,
) -> tuple[set[int], dict[int, list[tuple[str, int]]]]:  # fmt: skip
    """Return the places of the items with most points, and of those beside the best of them that hold a term.

    With them, for each chunk, the terms and the items that hold each.
    """
    present: dict[int, int] = {}
    holding: dict[int, list[tuple[str, int]]] = {}
    best: list[list[tuple[int, int]]] = [[] for _ in masks]
    for chunk in sorted(chunks, reverse=True):
        digits = postings.no_points()
        some = 0
        for key, posting in chunks[chunk]:
            items = postings.add_points(digits, posting, values.get(key, (0,) * len(LEVELS)))
            if key not in SHORT_MARKS:
                some |= items
                holding.setdefault(chunk, []).append((key, items))
        present[chunk] = some & masks[0](chunk)
        for heap, mask in zip(best, masks, strict=True):
            postings.take_best(heap, digits, some & mask(chunk), chunk << CHUNK_BITS, ask.cap)
    places: set[int] = set()
    for heap in best:
        ordered = [place for _, place in sorted(heap, reverse=True)]
        places.update(ordered)
        for place in ordered[:BESIDE_BEST]:
            places.update(
                neighbour
                for neighbour in beside(place)
                if present.get(neighbour >> CHUNK_BITS, 0) >> neighbour % CHUNK & 1
            )
    return places, holding


def _terms_at(place: int, holding: dict[int, list[tuple[str, int]]]) -> frozenset[str]:
    """Return the terms that the item at `place` holds, given the items of each chunk that hold each term."""
    terms = holding.get(place >> CHUNK_BITS, ())
    return frozenset([term for term, items in terms if items >> place % CHUNK & 1])


def _read(db: sqlite3.Connection, places: Sequence[int], archive: Archive) -> dict[int, JsonObject]:
    rows = db.execute(_PLACES, (json.dumps([*places]), archive.head)).fetchall()
    offsets = {position: offset for _, position, offset in rows}
    if archive.fetch is not None:
        records = archive.fetch(offsets)
    else:
        records = {position: record for position, record, *_ in archive.records(-1) if position in offsets}
    return {place: records[position] for place, position, _ in rows if position in records}

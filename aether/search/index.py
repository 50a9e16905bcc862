"""The archived items that may answer a query: candidates for ranking, by the search index or by reading the whole archive.

The archive grows without bound, so search reads and compares only the `CAP` best of it. All items are ranked before that
cut, old ones too, by points for the words they hold and how often; items named by their id are always candidates, and so are
those beside the best. `scan` follows this rule by reading every record, `indexed_source` by the index (`store.search_index`);
both find the same, as long as the words of the query are in few enough items to look at all of them.

The index is brought up to the archive's head before each search, and emptied if it is of another archive. If it cannot be
used (read-only home, full disk, held too long by another process), the archive is scanned. A process killed while writing
leaves the last whole batch.
"""

from __future__ import annotations

import heapq
import json
import math
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from aether import clock
from aether.memory.layers import EVERYTHING, FILTERED, Filter, conversation_names, instant_text, plain_text
from aether.store import search_index
from aether.store.search_index import ITEMS
from aether.text.regex import lazy
from aether.text.words import CACHED_TEXTS, PART_WEIGHT, Terms, run_terms, runs, term, words
from aether.types import JsonObject

if TYPE_CHECKING:
    import sqlite3

# Items with the most points that are read and compared.
CAP = 64
# Points of an item for a term, as a share of the term's weight: once, twice, more often.
LEVELS = (1.0, 1.31, 1.5)
# Points of a plain full answer.
POINTS = 1_000
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
    names: tuple[tuple[str, ...], ...] = ()
    """The terms of each name: the newest `cap` items that hold all of them are candidates."""
    rare: Callable[[int], float] | None = None
    """Given the number of items, the most that may hold a term that gives points; None: any number."""

    @property
    def full_terms(self) -> list[str]:
        """Return the terms of full weight: the words of the query that are no parts of names and no synonyms."""
        return [
            term
            for term, weight in zip(self.terms, self.weights or repeat(1.0), strict=False)
            if weight == 1.0
        ]


class Candidate(NamedTuple):
    """An archived item that may be a hit; `place` counts the archive from its start."""

    place: int
    record: JsonObject

    @property
    def id(self) -> str:
        """Return the id of the item, as its row spells it."""
        return plain_text((self.record.get("item") or {}).get("id"))

    @property
    def row(self) -> Row:
        """Return the row, made of the record each time: a text is cut into words for it."""
        return row(self.record)

    def terms_in(self, terms: Iterable[str]) -> list[str]:
        """Return those of `terms` that the item holds."""
        return [*term_counts(self.row.marked, term_marks(terms))]


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


def _row(record: JsonObject, marked: str, length: int, label: str = "", asks: bool = False) -> Row:
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


@lru_cache(maxsize=_CACHED_RUNS)
def _terms_of_run(run: str) -> tuple[tuple[str, ...], int]:
    """Return the terms of one run of letters, and their number of topic words."""
    terms_of_run = run_terms(run)
    return (*terms_of_run.words, *terms_of_run.parts), terms_of_run.length


@lru_cache(maxsize=1_000)
def _name(text: str) -> str:
    return " ".join(term(word) for word in words(text))


def phrase(sequence: tuple[str, ...]) -> str:
    """Return words as they are side by side in a marked text."""
    return "".join(f"[{word}]" for word in sequence)


def value_of_levels(ask: Query, numbers: dict[str, int], items: int) -> dict[str, tuple[int, ...]]:
    """Return how many points an item gets for each term: once, twice, and more often.

    Points are whole numbers, so that an index and a scan rank alike; `POINTS` is about a plain full answer.
    """
    weights = dict(zip(ask.terms, ask.weights or (1.0,) * len(ask.terms), strict=True))
    most = ask.rare(items) if ask.rare else items
    worth = {
        term: weights[term] * math.log(1 + (items - number + 0.5) / (number + 0.5))
        for term, number in numbers.items()
        if 0 < number <= most
    }
    unit = POINTS / max(sum(worth.values()), 1e-9)
    return {term: tuple(round(unit * share * level) for level in LEVELS) for term, share in worth.items()}


def _term_counts(content: str) -> tuple[Counter[str], int]:
    """Return how often a text has each of its terms, and the number of its topic words."""
    cut_runs = [*map(_terms_of_run, runs(content))]
    counts = Counter(chain.from_iterable([terms for terms, _ in cut_runs]))
    return counts, sum([length for _, length in cut_runs])


def scan(records: Records, ask: Query) -> Found:
    """Return the candidates, found by reading the whole archive."""
    numbers = dict.fromkeys(ask.terms, 0)
    total = 0
    rows: list[Row] = []
    levels_of: dict[int, dict[str, int]] = {}
    named: list[list[int]] = [[] for _ in ask.names]
    for place, record in enumerate(records()):
        counts, length = _term_counts(content_of(record.get("item") or {}))
        total += length
        rows.append(_row(record, "", length))
        if inside := {term: search_index.level(counts[term]) for term in ask.terms if term in counts}:
            levels_of[place] = inside
            for term_of_row in inside:
                numbers[term_of_row] += 1
        for name, places_of_name in zip(ask.names, named, strict=True):
            if counts.keys() >= {*name}:
                places_of_name.append(place)
    values = value_of_levels(ask, numbers, len(rows))
    points = {
        place: sum(
            values[term_of_row][level] for term_of_row, level in inside.items() if term_of_row in values
        )
        for place, inside in levels_of.items()
        if not values.keys().isdisjoint(inside)
    }
    kept = [None, {place for place in points if ask.keep.takes(rows[place])}]
    places = _best_places(points, kept[:1] if ask.keep == EVERYTHING else kept, ask.cap)
    places |= {place for place, item_row in enumerate(rows) if item_row.id in ask.ids}
    places.update(*(places_of_name[-ask.cap :] for places_of_name in named))
    candidates = [Candidate(place, record) for place, record in enumerate(records()) if place in places]
    return Found(len(rows), total, numbers, candidates)


def _best_places(points: Mapping[int, int], kept: Iterable[Collection[int] | None], cap: int) -> set[int]:
    """Return the places with most points among those `kept` (None: all), the newest of equals, and those beside the best."""
    places: set[int] = set()
    for wanted in kept:
        scored = [(number, place) for place, number in points.items() if wanted is None or place in wanted]
        best = [place for _, place in heapq.nlargest(cap, scored)]
        places.update(best, *(points.keys() & beside(place) for place in best[:BESIDE_BEST]))
    return places


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


# Records per transaction while catching up: a killed process repeats at most these.
BATCH = 5_000
# Records that a caller who cannot wait adds before it searches.
FEW = 300
# Longer than a batch takes to write; after that, scanning is quicker than waiting.
BUSY_SECONDS = 2.0
_KEYS = "SELECT place FROM item WHERE key IN (SELECT value FROM json_each(?)) AND place <= ?"
_PLACES = """
SELECT place, position, offset FROM item
WHERE place IN (SELECT value FROM json_each(?)) AND position <= ? ORDER BY place
"""
_OF_CONVERSATIONS = """
SELECT position, offset FROM item WHERE conversation IN (SELECT value FROM json_each(?)) AND position <= ?
"""
# An index that an earlier version made gets it when items are added.
_BY_CONVERSATION = "CREATE INDEX IF NOT EXISTS item_conversation ON item (conversation)"
_KEPT = """
SELECT place, key FROM item
WHERE (:since IS NULL OR at >= :since) AND (:until IS NULL OR at IS NULL OR at < :until)
"""
_Answer = TypeVar("_Answer")


class Archive(NamedTuple):
    """An archive that can be indexed."""

    head: int
    """The position of its last record, -1 where it is empty."""
    records: Callable[[int], Iterator[tuple[int, JsonObject, int]]]
    """Yields position, record and offset, -1 where it is not known, of all that is later than a position, oldest first."""
    fetch: Callable[[Mapping[int, int]], Mapping[int, JsonObject]]
    """Returns the records at these positions, given the offset of each, -1 where it is not known."""


class _State(NamedTuple):
    position: int
    items: int
    length: int


def indexed_source(path: Path, archive: Archive, late: Callable[[], None] | None = None) -> Source:
    """Return the searchable archive: by the index at `path` where possible, else by scanning.

    With `late` nobody waits: if the index lacks more than `FEW` records, `late` is called, which has them added, and the
    search is without them; where there is no index, nothing is found.
    """
    plain = EMPTY if late else scan_source(lambda: (record for _, record, _ in archive.records(-1)))

    def find(ask: Query) -> Found:
        answer = _indexed(path, archive, lambda db: _find(db, ask, archive), late)
        return plain.find(ask) if answer is None else answer

    def read(places: Sequence[int]) -> dict[int, JsonObject]:
        records = _indexed(path, archive, lambda db: _read(db, places, archive), late)
        return plain.read(places) if records is None else records

    return Source(find, read)


def refresh(path: Path, archive: Archive) -> bool:
    """Bring the index up to the archive's head; return whether it can be used."""
    return bool(_indexed(path, archive, lambda _: True))


def of_conversations(
    path: Path, archive: Archive, names: Collection[str]
) -> tuple[int, dict[int, int]] | None:
    """Return how far the index reaches, and the positions, with their offsets, of the items of conversations with these names.

    Nothing is added to the index; None if it cannot be used as it is.
    """

    def read(db: sqlite3.Connection) -> tuple[int, dict[int, int]] | None:
        if not _is_of(db, archive):
            return None
        db.execute("BEGIN")  # one state for all the questions below
        texts = db.execute("SELECT number, text FROM name").fetchall()
        numbers = [number for number, text in texts if not wanted.isdisjoint(text.split("\n"))]
        rows = db.execute(_OF_CONVERSATIONS, (json.dumps(numbers), archive.head)).fetchall()
        return _state(db).position, dict(rows)

    wanted = {*map(plain_text, names)}
    result = search_index.on_index(path, read, busy_seconds=0.0) if path.is_file() else None
    return result[0] if result else None


def newest(
    path: Path, archive: Archive, keep: Filter, most: int
) -> tuple[list[JsonObject], JsonObject | None] | None:
    """Return the records of the `most` newest items that a filter keeps, with all records of these items, oldest first.

    The second is that of the oldest of these items, or None if there are no others; None if there is no index.
    """

    def read(db: sqlite3.Connection) -> tuple[list[JsonObject], JsonObject | None]:
        db.execute("BEGIN")  # one state for all the questions below
        query, bound = _kept(db, keep)
        query += " AND position <= :head ORDER BY at DESC, place DESC LIMIT :most"
        rows = dict(db.execute(query, {**bound, "head": archive.head, "most": most}))
        same = db.execute(_KEYS, (json.dumps([*rows.values()]), sys.maxsize))
        records = _read(db, [place for (place,) in same], archive)
        oldest = next((records[place] for place in reversed(rows) if place in records), None)
        return [*records.values()], oldest if len(rows) == most else None

    return _indexed(path, archive, read)


def _indexed(
    path: Path, archive: Archive, work: Callable[[sqlite3.Connection], _Answer], late: Callable[[], None] | None = None
) -> _Answer | None:  # fmt: skip
    """Return the result of `work` on the current index, None if the archive is empty or cannot be indexed."""
    if archive.head < 0:
        return None

    def current(db: sqlite3.Connection) -> _Answer:
        _catch_up(db, archive, late)
        return work(db)

    result = search_index.on_index(path, current, busy_seconds=0.0 if late else BUSY_SECONDS)
    return result[0] if result else None


def _catch_up(db: sqlite3.Connection, archive: Archive, late: Callable[[], None] | None) -> None:
    """Add what the archive holds beyond the index, batch by batch; another process may do the same."""
    if not _is_of(db, archive):
        with search_index.writing(db):
            if not _is_of(db, archive):  # another process may have emptied it meanwhile
                search_index.clear_items(db)
    while (state := _state(db)).position < archive.head:
        newer = archive.records(state.position)
        while batch := list(islice(newer, FEW + 1 if late else BATCH)):
            if late and len(batch) > FEW:
                return late()
            with search_index.writing(db):
                if _state(db) != state:
                    break
                _add(db, state, batch)
                state = _state(db)
        else:
            return None
    return None


def _is_of(db: sqlite3.Connection, archive: Archive) -> bool:
    """Return whether the index is of an archive with the same start."""
    # Another reader may have come further than this one looks.
    newest = "SELECT position, key, offset FROM item WHERE position <= ? ORDER BY place DESC LIMIT 1"
    row: tuple[int, int, int] | None = db.execute(newest, (archive.head,)).fetchone()
    if row is None:
        return _state(db).items == 0
    position, key, offset = row
    record = archive.fetch({position: offset}).get(position)
    return record is not None and key == _key(plain_text((record.get("item") or {}).get("id")))


def _state(db: sqlite3.Connection) -> _State:
    return _State(*db.execute("SELECT position, items, length FROM state").fetchone())


def _key(id: str) -> int:
    return zlib.crc32(id.encode())


def _micros(time: str) -> int | None:
    return round(clock.parse(time).timestamp() * 1_000_000) if time else None


def _add(db: sqlite3.Connection, state: _State, batch: list[tuple[int, JsonObject, int]]) -> None:
    db.execute(_BY_CONVERSATION)
    rows, of_rows = [], []
    length = state.length
    for _, record, _ in batch:
        counts, number = _term_counts(content_of(record.get("item") or {}))
        rows.append(_row(record, "", number))
        of_rows.append(search_index.tokens(counts))
        length += number
    numbers = _numbers_of_names(db, {getattr(item_row, field) for item_row in rows for field in FILTERED})
    db.executemany(
        "INSERT INTO item VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (place, position, offset, _key(item_row.id), _micros(item_row.at),
             *(numbers[getattr(item_row, field)] for field in FILTERED))
            for place, ((position, _, offset), item_row) in enumerate(zip(batch, rows, strict=True), start=state.items)
        ),
    )  # fmt: skip
    search_index.enter(db, ITEMS, enumerate(of_rows, start=state.items))
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
    last = state.items - 1
    if state.position > archive.head:  # another reader has come further
        last = db.execute("SELECT max(place) FROM item WHERE position <= ?", (archive.head,)).fetchone()[0]
    numbers = search_index.number_of_rows(db, ITEMS, ask.terms)
    values = value_of_levels(ask, numbers, state.items)
    points = search_index.points(db, ITEMS, values, numbers, wanted=ask.full_terms, last=last)
    named = [place for (place,) in db.execute(_KEYS, (json.dumps([*map(_key, ask.ids)]), last))]
    for name in ask.names:
        named += search_index.newest_rows(db, ITEMS, name, last=last, limit=ask.cap)
    kept = [None] if ask.keep == EVERYTHING else [None, dict(db.execute(*_kept(db, ask.keep)))]
    places = _best_places(points, kept, ask.cap)
    records = _read(db, sorted(places.union(named)), archive)
    candidates = [Candidate(place, record) for place, record in sorted(records.items())]
    return Found(state.items, state.length, numbers, candidates)


def _kept(db: sqlite3.Connection, keep: Filter) -> tuple[str, dict[str, int | None]]:
    """Return the query for the places and keys of the items that a filter keeps, with its parameters."""
    query, bound = _KEPT, {"since": _micros(keep.since), "until": _micros(keep.until)}
    names = db.execute("SELECT number, text FROM name").fetchall()
    for field in FILTERED:
        if getattr(keep, field, keep.types or keep.kinds):
            fit = [str(number) for number, text in names if keep.has(field, text)]
            query += f" AND {field} IN ({', '.join(fit)})"
    return query, bound


def _read(db: sqlite3.Connection, places: Sequence[int], archive: Archive) -> dict[int, JsonObject]:
    rows = db.execute(_PLACES, (json.dumps([*places]), archive.head)).fetchall()
    records = archive.fetch({position: offset for _, position, offset in rows})
    return {place: records[position] for place, position, _ in rows if position in records}

"""The search index of a home: the words of its archived items and conversations in FTS5 tables of one SQLite file.

It is derived from other files, holds no text, and may be deleted at any time. One of another version or a damaged one is
made again, empty; who asks fills it first. Where there is no FTS5, or the file cannot be written, `on_index` returns None.

The name must be that of a regular file or free, because SQLite would wait at a pipe. It is opened by the part of `sqlite3`
in C: its part in Python takes as long to import, for types that no index has.

A text is indexed by tokens: each of its terms, once more with a mark if it comes twice, and with two if it comes more often.
So the tables need no positions. `points` ranks the rows by reading the rarest tokens first. `bm25()` of FTS5 would be called
for each row that holds any word of a query, which takes seconds at 400,000 rows.
"""

from __future__ import annotations

import os
import stat
from _thread import allocate_lock  # threading takes a millisecond of a hook to import
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from aether import regular
from aether.errors import AetherError
from aether.store import files
from aether.store.authors import only_looks

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")

FILE = "index.sqlite"
# Raise it whenever terms or tables change: an index of another version is made again.
VERSION = 3
# The file in which earlier versions indexed archived conversations.
OLD_FILE = "archive/index.sqlite"
# What SQLite keeps beside a file.
BESIDE = ("-journal", "-wal", "-shm")
ITEMS, CONVERSATIONS = "item", "conversation"
# Marks of tokens, by how often the text has the term.
MARKS = ("", "+", "++")
# Rows that one query reads: some milliseconds.
MOST_ROWS = 16_000
# Rows with the rarest words, among which the words that are too common to be read are looked up.
CORE_ROWS = 4_000
_TOKENS = "columnsize=0, detail=none, tokenize=\"ascii tokenchars '+'\""
_TABLES = (
    "CREATE TABLE state (position INTEGER, items INTEGER, length INTEGER, archive_is_entered INTEGER)",
    "INSERT INTO state VALUES (-1, 0, 0, 0)",
    # `key` is a digest of the id; texts that recur are numbers of `name`.
    """CREATE TABLE item (
        place INTEGER PRIMARY KEY, position INTEGER, offset INTEGER, key INTEGER, at INTEGER,
        type INTEGER, phase INTEGER, caste INTEGER, project INTEGER, conversation INTEGER
    )""",
    "CREATE INDEX item_key ON item (key)",
    "CREATE TABLE name (number INTEGER PRIMARY KEY, text TEXT UNIQUE)",
    # Items are never taken out one by one.
    f"CREATE VIRTUAL TABLE item_tokens USING fts5(tokens, content='', {_TOKENS})",
    """CREATE TABLE conversation (
        n INTEGER PRIMARY KEY, id TEXT UNIQUE, name TEXT, title TEXT, created TEXT, level INTEGER, bytes INTEGER,
        since TEXT, floor INTEGER, policy TEXT, grace TEXT, until TEXT, source TEXT, length INTEGER
    )""",
    "CREATE INDEX of_month ON conversation (created)",
    "CREATE INDEX of_age ON conversation (level, since) WHERE floor > level AND since != ''",
    "CREATE INDEX of_policy ON conversation (policy)",
    "CREATE INDEX of_grace ON conversation (until) WHERE until != ''",
    f"CREATE VIRTUAL TABLE conversation_tokens USING fts5(tokens, {_TOKENS})",
    *(f"CREATE VIRTUAL TABLE {kind}_counts USING fts5vocab({kind}_tokens, row)" for kind in (ITEMS, CONVERSATIONS)),
    f"PRAGMA user_version = {VERSION}",
)  # fmt: skip
_COPIES: dict[Path, sqlite3.Connection] = {}
_COPIES_LOCK = allocate_lock()


# --- The file


def on_index(path: Path, work: Callable[[sqlite3.Connection], T], *, busy_seconds: float) -> tuple[T] | None:
    """Return the result of `work` on the index at `path`; None if there can be none: locked, read-only, a full disk.

    A damaged one is removed, and `work` gets an empty one. Another process may write for `busy_seconds` meanwhile.
    """
    import _sqlite3 as sqlite3

    if only_looks():  # the file stays as it is
        return _in_memory(path, work)
    for _ in range(2):
        try:
            with closing(connected(path, busy_seconds)) as db:
                _make_tables(db, path)
                if files.is_overtaken(
                    path.parent
                ):  # an erasure removes the file, and `work` may fill a new one
                    return None
                return (work(db),)
        except (sqlite3.OperationalError, OSError):
            return None
        except sqlite3.DatabaseError:  # the file itself is damaged, or no regular file
            remove(path)
    return None


def in_memory() -> sqlite3.Connection:
    """Return an empty index that only this process has.

    Raises:
        sqlite3.OperationalError: this SQLite has no FTS5.
    """
    import _sqlite3 as sqlite3

    db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    _make_tables(db)
    return db


def _in_memory(path: Path, work: Callable[[sqlite3.Connection], T]) -> tuple[T] | None:
    """Return the result of `work` on a copy of the index at `path` that only this process has."""
    import _sqlite3 as sqlite3

    with _COPIES_LOCK:
        for _ in range(2):
            try:
                if path not in _COPIES:
                    _COPIES[path] = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
                    with suppress(sqlite3.Error), closing(_opened_to_read(path)) as source:
                        source.backup(_COPIES[path])
                    _make_tables(_COPIES[path])
                return (work(_COPIES[path]),)
            except sqlite3.OperationalError:
                return None
            except sqlite3.DatabaseError:  # a copy of a damaged one: the next is made of nothing
                _COPIES[path].close()
                _COPIES[path] = in_memory()
    return None


def _opened_to_read(path: Path) -> sqlite3.Connection:
    import _sqlite3 as sqlite3

    if not path.is_file():
        raise sqlite3.OperationalError(f"{path.name} is not a file")
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


def connected(path: Path, busy_seconds: float) -> sqlite3.Connection:
    """Return a connection to the index at `path`, which is made if it is missing, and only its owner's.

    What is deleted in it is overwritten.

    Raises:
        sqlite3.DatabaseError: it is damaged, or no regular file.
        sqlite3.OperationalError, OSError: it cannot be opened.
    """
    import _sqlite3 as sqlite3

    for name in _files(path):
        # To open and close the file here would end its locks in this process.
        if os.path.lexists(name) and not stat.S_ISREG(os.lstat(name).st_mode):
            raise sqlite3.DatabaseError(f"{name.name} is not a regular file")
    with suppress(FileExistsError):
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        regular.share(handle, path.parent)
        os.close(handle)
    db = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None)
    db.execute("PRAGMA secure_delete = ON")
    db.execute("PRAGMA synchronous = EXTRA")  # else a power cut may take back what was committed
    return db


def _make_tables(db: sqlite3.Connection, path: Path | None = None) -> None:
    """Make the tables of a new index.

    Raises:
        sqlite3.DatabaseError: it is of another version.
    """
    import _sqlite3 as sqlite3

    def version() -> int:
        return int(db.execute("PRAGMA user_version").fetchone()[0])

    if version() == VERSION:
        return
    with writing(db):
        if version() == VERSION:  # another process has made them meanwhile
            return
        if db.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
            raise sqlite3.DatabaseError("an index of another version")
        for statement in _TABLES:
            db.execute(statement)
    if path:
        remove(path.parent / OLD_FILE)


def remove(path: Path) -> None:
    """Remove an index and the files that SQLite keeps beside it, as far as the disk lets it."""
    for name in _files(path):
        with suppress(OSError):
            name.unlink(missing_ok=True)


def _files(path: Path) -> list[Path]:
    return [path, *(path.with_name(f"{path.name}{end}") for end in BESIDE)]


@contextmanager
def writing(db: sqlite3.Connection) -> Iterator[None]:
    """Write in one transaction, which is rolled back on any exception."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        # An error may have rolled back already.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


# --- Rows and their tokens


def tokens(counts: Mapping[str, int]) -> str:
    """Return the tokens of a text, given how often it has each of its terms."""
    more = [f"{term}{mark}" for term, times in counts.items() if times > 1 for mark in MARKS[1:times]]
    return " ".join([*counts, *more])


def level(times: int) -> int:
    """Return the place in `MARKS` for a term that a text has so many times."""
    return min(times, len(MARKS)) - 1


def enter(db: sqlite3.Connection, kind: str, rows: Iterable[tuple[int, str]]) -> None:
    """Enter rows, each with its number and its tokens."""
    db.executemany(f"INSERT INTO {kind}_tokens (rowid, tokens) VALUES (?, ?)", rows)  # noqa: S608


def clear_items(db: sqlite3.Connection) -> None:
    """Remove all items."""
    for statement in (
        "DELETE FROM item",
        "DELETE FROM name",
        "INSERT INTO item_tokens (item_tokens) VALUES ('delete-all')",
        "UPDATE state SET position = -1, items = 0, length = 0",
    ):
        db.execute(statement)


def archive_is_entered(db: sqlite3.Connection) -> bool:
    """Return whether the index has the archived conversations."""
    return bool(db.execute("SELECT archive_is_entered FROM state").fetchone()[0])


def note_entered(db: sqlite3.Connection) -> None:
    """Note that the index has the archived conversations."""
    db.execute("UPDATE state SET archive_is_entered = 1")


def is_compared(db: sqlite3.Connection) -> bool:
    """Return whether the index was compared with the archive files since the machine started; a power cut may separate them."""
    return bool(db.execute("PRAGMA application_id").fetchone()[0] == _start_of_machine())


def note_compared(db: sqlite3.Connection) -> None:
    """Note that the index was compared with the archive files; one that cannot be written is compared again."""
    import _sqlite3 as sqlite3

    with suppress(sqlite3.OperationalError):
        db.execute(f"PRAGMA application_id = {_start_of_machine()}")


@lru_cache(maxsize=1)
def _start_of_machine() -> int:
    """Return a number that changes when the machine starts, as far as the system says it."""
    with suppress(OSError, AetherError):
        return int(regular.digest(regular.read("/proc/sys/kernel/random/boot_id"))[:7], 16)
    return 1


def clear_archive(db: sqlite3.Connection) -> None:
    """Remove all conversations."""
    db.execute("DELETE FROM conversation")
    db.execute("DELETE FROM conversation_tokens")
    db.execute("INSERT INTO conversation_tokens (conversation_tokens) VALUES ('rebuild')")


def take_out(db: sqlite3.Connection, id: str) -> None:
    """Remove a conversation and its tokens, which are overwritten."""
    row = db.execute("SELECT n FROM conversation WHERE id = ?", (id,)).fetchone()
    if row:
        db.execute("DELETE FROM conversation WHERE n = ?", row)
        db.execute("DELETE FROM conversation_tokens WHERE rowid = ?", row)
        # The tables keep the tokens of a deleted row until they are merged.
        db.execute("INSERT INTO conversation_tokens (conversation_tokens) VALUES ('optimize')")


def number_of_rows(db: sqlite3.Connection, kind: str, terms: Iterable[str]) -> dict[str, int]:
    """Return the number of rows with each of `terms`."""
    query = f"SELECT doc FROM {kind}_counts WHERE term = ?"  # noqa: S608
    found = ((term, db.execute(query, (term,)).fetchone()) for term in terms)
    return {term: row[0] if row else 0 for term, row in found}


def newest_rows(
    db: sqlite3.Connection, kind: str, terms: Iterable[str], *, last: int, limit: int
) -> list[int]:
    """Return the newest rows up to number `last` that hold all of `terms`."""
    return _matching(db, kind, " AND ".join(f'"{term}"' for term in terms), last, limit)


def _matching(db: sqlite3.Connection, kind: str, expression: str, last: int, limit: int) -> list[int]:
    query = f"SELECT rowid FROM {kind}_tokens WHERE {kind}_tokens MATCH ? AND rowid <= ? ORDER BY rowid DESC LIMIT ?"  # noqa: S608
    return [row for (row,) in db.execute(query, (expression, last, limit)).fetchall()]


def points(
    db: sqlite3.Connection, kind: str, values: Mapping[str, Sequence[int]], numbers: Mapping[str, int], *,
    wanted: Sequence[str], last: int,
) -> dict[int, int]:  # fmt: skip
    """Return the points of rows up to number `last`: for each of the terms `values`, those of its level in the row.

    `numbers` has the number of rows with each term. The sums are exact as long as the tokens are in at most `MOST_ROWS` rows. Beyond, those of the commonest terms that are `wanted`
    count for rows with a rare one, and for the newest rows that have all of them.
    """
    marked = number_of_rows(db, kind, [f"{term}{mark}" for term in values for mark in MARKS[1:]])
    by_term: dict[str, dict[int, int]] = {term: {} for term in values}

    def count(expression: str, limit: int, *terms: str, level: int = 0) -> None:
        for row in _matching(db, kind, expression, last, limit):
            for term in terms:  # the highest level of a term is read first
                by_term[term].setdefault(row, values[term][level])

    core: list[str] = []
    common: list[str] = []
    rows = 0
    for number, level, term in _rarest_first({**numbers, **marked}, values):
        token = f'"{term}{MARKS[level]}"'
        rows += number
        if rows <= MOST_ROWS:
            count(token, number, term, level=level)
            core += [token] * (rows <= CORE_ROWS)
        elif not level and term in wanted:
            common.append(token)
    if common:
        terms = [term for term in wanted if term in values]
        count(" AND ".join(f'"{term}"' for term in terms), CORE_ROWS, *terms)
    for token in common:
        count(f"{token} AND ({' OR '.join(core)})" if core else token, CORE_ROWS, token.strip('"'))
        core = core or [token]
    sums = Counter[int]()
    for row, value in chain.from_iterable(map(dict.items, by_term.values())):
        sums[row] += value
    return sums


def _rarest_first(numbers: Mapping[str, int], terms: Iterable[str]) -> list[tuple[int, int, str]]:
    """Return the number of rows, the level and the term of each token, given the numbers by token."""
    levels = range(len(MARKS) - 1, -1, -1)
    found = ((numbers[f"{term}{MARKS[level]}"], level, term) for term in terms for level in levels)
    return sorted((token for token in found if token[0]), key=lambda token: token[0])

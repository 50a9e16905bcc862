"""An index in an SQLite file, and its postings: derived from other files, so that it can be removed at any moment and is made again.

The name must be that of a regular file or free, because SQLite would wait at a pipe. It is opened by the part of `sqlite3`
in C: its part in Python takes as long to import, for types that no index has.

Postings say which entries hold a word, and how strongly, so that all of them are ranked before any is left out. Entries
have places from 0. Per word and `CHUNK` places there is one posting: sixteen bits for each entry (place and level) or,
of a frequent word, one bit for each entry and level. Points are added for whole chunks at once, as whole numbers whose
binary digits are bit sets. For 400,000 entries that takes milliseconds, while `bm25()` of SQLite's FTS5 took 1 to 2.6
seconds for the same queries, because it is called for each entry that holds one of the words.
"""

from __future__ import annotations

import heapq
import os
import stat
from _thread import allocate_lock  # threading takes a millisecond of a hook to import
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from aether.store.authors import only_looks

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")
_COPIES: dict[Path, sqlite3.Connection] = {}
_COPIES_LOCK = allocate_lock()


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
                return (work(db),)
        except (sqlite3.OperationalError, OSError):
            return None
        except sqlite3.DatabaseError:  # the file itself is damaged, or no regular file
            remove(path)
    return None


def _in_memory(path: Path, work: Callable[[sqlite3.Connection], T]) -> tuple[T] | None:
    """Return the result of `work` on a copy of the index at `path` that only this process has."""
    import _sqlite3 as sqlite3

    with _COPIES_LOCK:
        for _ in range(2):
            if path not in _COPIES:
                _COPIES[path] = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
                with suppress(sqlite3.Error), closing(_opened_to_read(path)) as source:
                    source.backup(_COPIES[path])
            try:
                return (work(_COPIES[path]),)
            except sqlite3.OperationalError:
                return None
            except sqlite3.DatabaseError:  # a copy of a damaged one: the next is made of nothing
                _COPIES[path].close()
                _COPIES[path] = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    return None


def _opened_to_read(path: Path) -> sqlite3.Connection:
    import _sqlite3 as sqlite3

    if not path.is_file():
        raise sqlite3.OperationalError(f"{path.name} is no file")
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


def connected(path: Path, busy_seconds: float) -> sqlite3.Connection:
    """Return a connection to the index at `path`, which is made if it is missing, and only its owner's.

    Raises:
        sqlite3.DatabaseError: it is damaged, or no regular file.
        sqlite3.OperationalError, OSError: it cannot be opened.
    """
    import _sqlite3 as sqlite3

    for name in _files(path):
        # To open and close the file here would end its locks in this process.
        if os.path.lexists(name) and not stat.S_ISREG(os.lstat(name).st_mode):
            raise sqlite3.DatabaseError(f"{name.name} is no regular file")
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    return sqlite3.connect(path, timeout=busy_seconds, isolation_level=None)


def remove(path: Path) -> None:
    """Remove an index and the files that SQLite keeps beside it, as far as the disk lets it."""
    for name in _files(path):
        with suppress(OSError):
            name.unlink(missing_ok=True)


def _files(path: Path) -> list[Path]:
    return [path, *(path.with_name(f"{path.name}-{kind}") for kind in ("journal", "wal", "shm"))]


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


TABLE = "CREATE TABLE posting (key INTEGER PRIMARY KEY, held BLOB)"
# Places of one posting: thirteen bits, and three for the level.
CHUNK_BITS = 13
CHUNK = 1 << CHUNK_BITS
PLANE_BYTES = CHUNK // 8
# A posting of so many bytes is of single entries; one that would be longer has a bit for each entry of the chunk and level.
_MOST_SPARSE_BYTES = 510
# Low bits of the key of a posting, which is made of its word and its chunk.
_CHUNK_NUMBER_BITS = 24
# Binary digits that the highest sum of points needs.
_DIGITS = 12


def change(
    db: sqlite3.Connection, word: int, chunk: int, entries: Sequence[tuple[int, int]], *, levels: int,
    out: Collection[int] = (),
) -> None:  # fmt: skip
    """Enter entries that hold `word`, each with its place in `chunk` and its level, after taking those at the places `out` out."""
    key = word << _CHUNK_NUMBER_BITS | chunk
    row = db.execute("SELECT held FROM posting WHERE key = ?", (key,)).fetchone()
    posting = _changed(row[0] if row else b"", entries, levels, out)
    if posting and (len(posting) <= _MOST_SPARSE_BYTES or any(posting)):
        db.execute("INSERT OR REPLACE INTO posting VALUES (?, ?)", (key, posting))
    elif row:
        db.execute("DELETE FROM posting WHERE key = ?", (key,))


def of_terms(db: sqlite3.Connection, wanted: Iterable[tuple[str, int]]) -> dict[int, list[tuple[str, bytes]]]:
    """Return for each chunk the postings of the terms `wanted`, given with their numbers."""
    chunks: dict[int, list[tuple[str, bytes]]] = {}
    for term, number in wanted:
        first = number << _CHUNK_NUMBER_BITS
        bounds = (first, first + (1 << _CHUNK_NUMBER_BITS) - 1)
        for key, posting in db.execute("SELECT key, held FROM posting WHERE key BETWEEN ? AND ?", bounds):
            chunks.setdefault(key - first, []).append((term, posting))
    return chunks


def _changed(posting: bytes, entries: Iterable[tuple[int, int]], levels: int, out: Collection[int]) -> bytes:
    shift = levels.bit_length() - 1
    new = array("H", [place << shift | level for place, level in entries])
    if len(posting) > _MOST_SPARSE_BYTES:
        return _dense(posting, new, shift, out)
    numbers = array("H", [number for number in array("H", posting) if number >> shift not in out]) + new
    if 2 * len(numbers) <= _MOST_SPARSE_BYTES:
        return numbers.tobytes()
    return _dense(bytes(levels * PLANE_BYTES), numbers, shift)


def _dense(posting: bytes, numbers: Iterable[int], shift: int, out: Iterable[int] = ()) -> bytes:
    planes, low = bytearray(posting), (1 << shift) - 1
    for place in out:
        for offset in range(place >> 3, len(planes), PLANE_BYTES):
            planes[offset] &= ~(1 << (place & 7))
    for number in numbers:
        offset, bit = number >> shift + 3, 1 << (number >> shift & 7)
        for level in range((number & low) + 1):
            planes[level * PLANE_BYTES + offset] |= bit
    return bytes(planes)


def no_points() -> list[int]:
    """Return the binary digits of no points for each entry of a chunk, the lowest first."""
    return [0] * _DIGITS


def add_points(digits: list[int], posting: bytes, values: Sequence[int]) -> int:
    """Add the points that each level of a posting is worth, `values`, and return the entries in it, as one bit each."""
    if len(posting) <= _MOST_SPARSE_BYTES:
        return _add_sparse(digits, array("H", posting), values)
    planes = [
        int.from_bytes(posting[start : start + PLANE_BYTES], "little")
        for start in range(0, len(posting), PLANE_BYTES)
    ]
    below = 0
    for plane, value in zip(
        planes, values, strict=True
    ):  # an entry is in the plane of each level up to its own
        _add(digits, plane, value - below)
        below = value
    return planes[0]


def _add_sparse(digits: list[int], numbers: Iterable[int], values: Sequence[int]) -> int:
    shift = len(values).bit_length() - 1
    low = len(values) - 1
    planes: list[bytearray | None] = [None] * len(values)
    for number in numbers:
        plane = planes[number & low]
        if plane is None:
            plane = planes[number & low] = bytearray(PLANE_BYTES)
        plane[number >> shift + 3] |= 1 << (number >> shift & 7)
    all_entries = 0
    for plane, value in zip(planes, values, strict=True):
        if plane:
            entries = int.from_bytes(plane, "little")
            _add(digits, entries, value)
            all_entries |= entries
    return all_entries


def _add(digits: list[int], entries: int, points: int) -> None:
    place_value = 0
    while points and entries:
        if points & 1:
            carry, place = entries, place_value
            while carry:
                digits[place], carry = digits[place] ^ carry, digits[place] & carry
                place += 1
        points >>= 1
        place_value += 1


def take_best(heap: list[tuple[int, int]], digits: list[int], entries: int, first: int, most: int) -> None:
    """Add those of `entries` to `heap` that belong to the `most` with the most points; of equals the newest.

    `first` is the place of the first entry of the chunk; chunks come newest first.
    """
    if len(heap) == most:  # only what has more than the worst so far
        better, equal = 0, entries
        for place in reversed(range(_DIGITS)):
            if heap[0][0] >> place & 1:
                equal &= digits[place]
            else:
                better |= equal & digits[place]
                equal &= ~digits[place]
        entries = better
    sure, undecided, missing = 0, entries, most
    for place in reversed(range(_DIGITS)):
        with_digit = undecided & digits[place]
        number = with_digit.bit_count()
        if number >= missing:
            undecided = with_digit
        else:
            sure |= with_digit
            undecided &= ~with_digit
            missing -= number
    planes = [digit.to_bytes(PLANE_BYTES, "little") for digit in digits] if sure or undecided else []
    while sure or (undecided and missing):
        if sure:
            at = sure.bit_length() - 1
            sure ^= 1 << at
        else:
            at = undecided.bit_length() - 1
            undecided ^= 1 << at
            missing -= 1
        byte, bit = at >> 3, at & 7
        scored = (sum([(plane[byte] >> bit & 1) << place for place, plane in enumerate(planes)]), first + at)
        if len(heap) < most:
            heapq.heappush(heap, scored)
        else:
            heapq.heappushpop(heap, scored)

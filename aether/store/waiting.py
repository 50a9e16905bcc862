"""Waiting lines: what writers of one shared home have planned and the ledger has not taken yet, so that one sends for all.

`share/waiting` names in its first line the end of the journal that the lines follow; each line was planned on the state
after the one before it. It is written under the lock of the home, and read by whoever sends under `share/lock`. Lines are
valid only as long as the journal ends at that mark or at one of them: the content decides, so nothing has to be removed
in time. None of it is acknowledged, therefore it is not synced, and a lost file loses nothing.

A journal that is read and written by others meanwhile shows each writer what became of its line: it is at its place there,
or another is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aether import regular
from aether.errors import LockTimeout
from aether.store.files import locked, make_directory, seal_json, storage_errors, unsealed, write_all
from aether.store.ledger import Mark, checksum_of
from aether.tuples import NamedTuple

DIRECTORY = "share"
# The file is made anew when it has grown to so many bytes.
MOST_BYTES = 1 << 16


class Planned(NamedTuple):
    """A line that waits, and where it will be in the journal if the ledger takes it."""

    revision: int
    line: bytes
    journal: int
    """The inode of the journal."""
    at: int
    """The byte of the journal at which it starts."""


class Waiting(NamedTuple):
    """The lines that wait after a mark."""

    lines: list[bytes]
    size: int
    """Bytes of the file; 0 if a new one must be made, because these lines are not its end."""


def path_of(home: Path) -> Path:
    """Return the file of the waiting lines of `home`."""
    return home / DIRECTORY / "waiting"


def _unknown_path(home: Path) -> Path:
    return home / DIRECTORY / "unknown"


def read(home: Path, mark: Mark) -> Waiting:
    """Return the lines that wait after `mark`, the end of the journal; none if they were planned on another state."""
    try:
        data = regular.read(path_of(home), regular.LOG_BYTES)
    except FileNotFoundError:
        return Waiting([], 0)
    first, *lines = data.splitlines(keepends=True) or [b""]
    head = unsealed(first) if first.endswith(b"\n") else None
    if head is None or "mark" not in head:
        return Waiting([], 0)
    whole = [line for line in lines if line.endswith(b"}\n")]
    nth = mark.revision - head["mark"]
    if not 0 <= nth <= len(whole):
        return Waiting([], 0)
    if (checksum_of(whole[nth - 1]) if nth else head["checksum"]) != mark.checksum:
        return Waiting([], 0)
    return Waiting(whole[nth:], len(data) if len(whole) == len(lines) and len(data) < MOST_BYTES else 0)


def add(home: Path, mark: Mark, before: Waiting, line: bytes) -> None:
    """Let `line` wait after those `before`; the caller holds the lock of the home."""
    path = path_of(home)
    if before.size:
        handle = regular.handle(path, os.O_WRONLY | os.O_APPEND)
        try:
            write_all(handle, line)
        finally:
            os.close(handle)
        return
    make_directory(path.parent)
    # No reader may see half of it, and a crash may lose it: no sync.
    new = path.with_name("waiting.tmp")
    first = seal_json({"mark": mark.revision, "checksum": mark.checksum})
    new.write_bytes(b"".join([first, *before.lines, line]))
    os.replace(new, path)


def drop(home: Path, *, unknown: bool = False) -> None:
    """Remove all that waits: the ledger did not take it, or it is `unknown` whether it did; the caller may send."""
    with suppress(FileNotFoundError):
        if unknown:
            os.replace(path_of(home), _unknown_path(home))
        else:
            path_of(home).unlink()


def is_unknown(home: Path, line: bytes) -> bool:
    """Return whether `line` was sent, and the server could not be asked what became of it."""
    with suppress(FileNotFoundError):
        return line in regular.read(_unknown_path(home), regular.LOG_BYTES).splitlines(keepends=True)
    return False


def is_taken(journal: str, mine: Planned) -> bool | None:
    """Return whether the journal has `mine` at its place; False if it has another line there, None if it is not known yet.

    A journal that was folded meanwhile says nothing; then it is None, and whoever sends finds out.
    """
    with suppress(FileNotFoundError):
        found = os.stat(journal)
        if found.st_ino != mine.journal or found.st_size <= mine.at:
            return None  # most looks end here
        with regular.opened(journal) as file:
            if os.fstat(file.fileno()).st_ino != mine.journal:
                return None
            file.seek(mine.at)
            data = file.read(len(mine.line))
        return True if data == mine.line else None if mine.line.startswith(data) else False
    return None


@contextmanager
def sending(home: Path) -> Iterator[bool]:
    """Yield whether nobody else sends the waiting lines of `home`; nobody does during the block then."""
    if sys.platform == "win32":  # pragma: no cover - the tests run on the other branch
        with suppress(LockTimeout), locked(home / DIRECTORY, timeout=0):
            yield True
            return
        yield False
        return
    import fcntl

    with storage_errors(home):
        handle = regular.handle(f"{home}/{DIRECTORY}/lock", os.O_RDWR | os.O_CREAT)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)

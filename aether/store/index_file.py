"""An index in an SQLite file: derived from other files, so that it can be removed at any moment and is made again.

The name must be that of a regular file or free, because SQLite would wait at a pipe. It is opened by the part of `sqlite3`
in C: its part in Python takes as long to import, for types that no index has.
"""

from __future__ import annotations

import os
import stat
from _thread import allocate_lock  # threading takes a millisecond of a hook to import
from collections.abc import Callable, Iterator
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
                with suppress(sqlite3.Error), closing(_opened_to_read(path)) as kept:
                    kept.backup(_COPIES[path])
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

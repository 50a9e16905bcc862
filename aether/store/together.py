"""Asked changes: what processes that wait for the lock of a shared home ask its holder to commit together with its own.

So many writers of one home take one turn at the server, and need not read the lines of each other. What can be asked for is
an operation by name with JSON arguments (`OPERATIONS`), which the holder plans on the state after the one before.

Each is a file in `share/waiting/`, named by the time and by a key that will be in its line of the journal. The holder takes
it by renaming it, so that it is taken once, and answers in another file when the ledger has the line. Nothing is synced:
none of it is acknowledged before its answer, and who finds its change taken and not answered, because the holder was
killed, looks for the key in the history. What is older than a minute is removed: its writer has given up, or looks there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from aether import regular
from aether.errors import AetherError
from aether.store import files, spool
from aether.store.snapshot import Entry, Snapshot
from aether.text.regex import lazy
from aether.tuples import NamedTuple
from aether.types import Change, JsonObject

DIRECTORY = "share/waiting"
# More are left to the next holder: others wait for the turn, and read what comes of it at once.
MOST, MOST_BYTES = 64, 256 * 1024
# Longer than a lock is waited for, unless a home is configured so.
OLD_SECONDS = 60.0
_NAME = lazy(r"[0-9]{20}-([0-9a-f]{32})\.json")


class Operation(NamedTuple):
    """A change that another process of the home may make."""

    plan: Callable[[Snapshot, JsonObject, datetime], Change]
    """Plans it from its arguments, as of the time at which it was asked for."""
    result: Callable[[Snapshot, Entry], Any]
    """Makes its result, which is JSON, from its entry and a state after it."""


# By name; the modules that know the operations fill it.
OPERATIONS: dict[str, Operation] = {}


class Ask(NamedTuple):
    """A change that may be made by another process: the arguments of an operation, and what to make of its result."""

    operation: str
    arguments: JsonObject
    result: Callable[[Any], Any]


class Taken(NamedTuple):
    """A change that the holder of the lock has taken."""

    path: Path
    key: str
    fields: JsonObject
    """operation, arguments, author (the fields of `commit.Author`), at."""


class Answered(Exception):
    """Another process has answered a change that it was asked for."""

    def __init__(self, fields: JsonObject) -> None:
        super().__init__()
        self.fields = fields


class Asking:
    """A change of this process that others are asked for while it waits for the lock."""

    def __init__(self, home: Path, fields: JsonObject) -> None:
        self.home, self.fields = home, fields
        self.key = os.urandom(16).hex()
        """It will be in the line of the change."""
        self.since = 0
        """A revision of the home before it was asked for: the line of the change comes after it."""
        self._path: Path | None = None
        self._tried = False

    def look(self) -> None:
        """Ask for the change when it is called first, and look for the answer later.

        Raises:
            Answered: there is one.
        """
        if not self._tried:
            self._tried = True
            with suppress(OSError, AetherError, ValueError):  # without it, it waits for the lock
                self._path = self._put()
        elif (found := self.answer()) is not None:
            raise Answered(found)

    def _put(self) -> Path:
        self.since = max(0, files.read_head(files.head_path(self.home)) or 0)
        path = self.home / DIRECTORY / f"{time.time_ns():020d}-{self.key}.json"
        files.make_directory(path.parent)
        handle = regular.handle(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            # A file that was copied with its home is another: who made it has asked in the other home.
            files.write_all(handle, files.seal_json({**self.fields, "file": os.fstat(handle).st_ino}))
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(handle)
        return path

    def answer(self) -> JsonObject | None:
        """Return the answer, once; None before it."""
        path = f"{os.fspath(self._path)[:-5]}.answer" if self._path else ""
        if not os.path.exists(path):
            return None
        fields = files.unsealed(regular.read(path))
        if fields is not None:  # else it is being written
            self.forget()
        return fields

    def withdraw(self) -> bool:
        """Return whether the change was not taken; then nobody will take it."""
        try:
            if self._path:
                os.unlink(self._path)
        except OSError:
            return False
        self._path = None
        return True

    def forget(self) -> None:
        """Remove what is left of a change that was taken."""
        for suffix in (".answer", ".taken"):
            with suppress(OSError):
                if self._path:
                    os.unlink(self._path.with_suffix(suffix))


def take(home: Path) -> list[Taken]:
    """Take what is asked for, oldest first; the caller holds the lock of the home, and answers or returns each."""
    try:
        names = sorted(os.listdir(f"{home}/{DIRECTORY}"))
    except OSError:
        return []
    others = spool.tracked(str(home), f"{DIRECTORY}/") if names else frozenset[str]()
    found: list[Taken] = []
    size = 0
    for name in (name for name in names if name not in others):
        path, known = home / DIRECTORY / name, _NAME.fullmatch(name)
        with suppress(OSError, AetherError):
            about = os.lstat(path)
            if abs(time.time() - about.st_mtime) > OLD_SECONDS:
                path.unlink()
            elif known and len(found) < MOST and size + about.st_size <= MOST_BYTES:
                fields = files.unsealed(regular.read(path))  # None: it is being written
                if fields and fields.get("operation") in OPERATIONS and fields.get("file") == about.st_ino:
                    os.rename(path, path.with_suffix(".taken"))
                    found.append(Taken(path, known[1], fields))
                    size += about.st_size
    return found


def clear(home: Path) -> None:
    """Remove all that was asked for; who waits finds that it is not stored. The caller holds the lock."""
    others = spool.tracked(str(home), f"{DIRECTORY}/")
    for path in (home / DIRECTORY).glob("*"):
        with suppress(OSError):
            if path.name not in others:
                path.unlink()


def answer(taken: Taken, fields: JsonObject) -> None:
    """Answer a change that was taken: with `revision` and `result`, or with nothing if it cannot be made with others."""
    with suppress(OSError):  # it looks for the key in the history
        regular.create(taken.path.with_suffix(".answer"), files.seal_json(fields))


def give_back(taken: Taken) -> None:
    """Let another holder take a change that was taken and is not stored."""
    with suppress(OSError):  # as above
        os.rename(taken.path.with_suffix(".taken"), taken.path)

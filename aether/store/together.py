"""Asked changes: what processes that wait for the lock of a shared home ask its holder to commit together with its own.

So many writers of one home take one turn at the server, and need not read the lines of each other. What can be asked for is
an operation by name with JSON arguments (`OPERATIONS`), which the holder plans on the state after the one before.

Each is a file in `share/waiting/`, named by the time and by a key that will be in its line of the journal. The holder takes
it by renaming it, so that it is taken once, and appends its answer when the ledger has the line. Nothing is synced:
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
from typing import Any, NamedTuple

from aether import clock, regular
from aether.errors import AetherError
from aether.store import files, spool
from aether.store.authors import Author
from aether.store.lines import require_valid
from aether.store.log import head_path, read_head, seal_json, unsealed
from aether.store.snapshot import Entry, Snapshot, after_change, cached, entry_line, file_id, journal_path
from aether.text.regex import lazy
from aether.types import Change, JsonObject

DIRECTORY = "share/waiting"
# More are left to the next holder: others wait for the turn, and read what comes of it at once.
MOST, MOST_BYTES = 64, 256 * 1024
# Longer than a lock is waited for, unless a home is configured so.
OLD_SECONDS = 60.0
# A home whose journal was written by others so short a time ago has writers.
BUSY_SECONDS = 0.02
# So long who has asked leaves the lock to others, and longer while they write: until then they answer, or are stuck.
PATIENCE_SECONDS, MOST_PATIENCE_SECONDS = 0.01, 0.2
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

    path: str
    key: str
    fields: JsonObject
    """operation, arguments, author (the fields of `Author`), at."""


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
        self._path = ""
        self._size = 0
        self._handle = -1
        self._patient = -1.0

    def look(self) -> bool:
        """Ask for the change, or look for its answer, and return whether to try for the lock now.

        Who asks leaves the lock for a while to those whose state is newer: they need not read first what others wrote.

        Raises:
            Answered: there is one.
        """
        if self._patient < 0:
            self._patient = 0.0
            if not _is_busy(self.home):
                return True
        if not self._patient:
            self._patient = time.monotonic()
            with suppress(OSError, AetherError):  # without it, it waits for the lock
                self._put()
                self._patient += PATIENCE_SECONDS
        elif (found := self.answer()) is not None:
            raise Answered(found)
        waited = time.monotonic() - self._patient
        return not self._path or waited > MOST_PATIENCE_SECONDS or (waited > 0 and not _is_busy(self.home))

    def _put(self) -> None:
        files.checked_json(self.fields, where=DIRECTORY)
        known, found = cached(self.home), file_id(str(journal_path(self.home)))
        if (
            known and known.files[0] and found and known.files[0][0] == found[0]
        ):  # it is a state of this journal
            self.since = known.revision
        else:
            self.since = max(0, read_head(head_path(self.home)) or 0)
        directory = f"{self.home}/{DIRECTORY}"
        if not os.path.isdir(directory):
            files.make_directory(Path(directory))
        path = f"{directory}/{time.time_ns():020d}-{self.key}.json"
        handle = regular.handle(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND)
        try:
            # A file that was copied with its home is another: who made it has asked in the other home.
            data = seal_json({**self.fields, "file": os.fstat(handle).st_ino})
            files.write_all(handle, data)
        except BaseException:
            os.close(handle)
            with suppress(OSError):
                os.unlink(path)
            raise
        self._path, self._handle, self._size = path, handle, len(data)

    def answer(self) -> JsonObject | None:
        """Return the answer, which follows what was asked in its file, once; None before it."""
        size = os.fstat(self._handle).st_size if self._path else 0
        if size <= self._size:
            return None
        fields = unsealed(os.pread(self._handle, size - self._size, self._size))
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
        self.close()
        return True

    def forget(self) -> None:
        """Remove what is left of a change that was taken."""
        with suppress(OSError):
            if self._path:
                os.unlink(_taken(self._path))
        self.close()

    def close(self) -> None:
        """Look for no answer any more."""
        if self._path:
            os.close(self._handle)
        self._path = ""


def _is_busy(home: Path) -> bool:
    """Return whether others write to the home just now, so that its newest state is theirs."""
    found, known = file_id(str(journal_path(home))), cached(home)
    if not found or (known and known.files[0] == found):
        return False
    return abs(time.time_ns() - found[1]) < BUSY_SECONDS * 1e9


def _taken(path: str) -> str:
    return f"{path.removesuffix('.json')}.taken"


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
        path, known = f"{home}/{DIRECTORY}/{name}", _NAME.fullmatch(name)
        with suppress(OSError, AetherError):
            about = os.lstat(path)
            if abs(time.time() - about.st_mtime) > OLD_SECONDS:
                os.unlink(path)
            elif known and len(found) < MOST and size + about.st_size <= MOST_BYTES:
                fields = unsealed(regular.read(path))  # None: it is being written
                if fields and fields.get("operation") in OPERATIONS and fields.get("file") == about.st_ino:
                    os.rename(path, _taken(path))
                    found.append(Taken(path, known[1], fields))
                    size += about.st_size
    return found


def with_asked(
    before: Snapshot, own: Snapshot, entry: Entry, taken: list[Taken]
) -> tuple[Snapshot, list[bytes], list[tuple[Taken, JsonObject]]]:
    """Return the state after `own`, which `entry` makes of `before`, and the changes of `taken`; their lines and their answers.

    A change that cannot be made after the others is answered at once, and leaves `taken`: its own process finds out why.
    So are all of them if other replicas would refuse a line.
    """
    after, made = own, [entry]
    lines, answers = list[bytes](), list[tuple[Taken, JsonObject]]()
    for one in tuple(taken):
        try:
            found, asked, result = _after_asked(after, one.fields, one.key)
            line = entry_line(asked)
        except _UNFIT:
            taken.remove(one)
            answer(one, {})
        else:
            after = found
            made.append(asked)
            lines.append(line)
            answers.append((one, {"revision": asked.revision, "result": result}))
    try:
        if answers:
            require_valid(before, after, made)
            return after, lines, answers
    except _UNFIT:
        for one in taken:
            answer(one, {})
        taken.clear()
    return own, [], []


def _after_asked(snapshot: Snapshot, fields: JsonObject, key: str) -> tuple[Snapshot, Entry, Any]:
    at, operation = clock.parse(fields["at"]), OPERATIONS[fields["operation"]]
    change = operation.plan(snapshot, fields["arguments"], at)
    after, entry = after_change(snapshot, change, Author(*fields["author"]), at, key=key)
    return after, entry, operation.result(after, entry)


# What a change that was asked for may fail with, whatever is in its file.
_UNFIT = (AetherError, AttributeError, LookupError, TypeError, ValueError, OverflowError, RecursionError)


def clear(home: Path) -> None:
    """Remove all that was asked for; who waits finds that it is not stored. The caller holds the lock."""
    others = spool.tracked(str(home), f"{DIRECTORY}/")
    for path in (home / DIRECTORY).glob("*"):
        with suppress(OSError):
            if path.name not in others:
                path.unlink()


def answer(taken: Taken, fields: JsonObject) -> None:
    """Answer a change that was taken: with `revision` and `result`, or with nothing if it cannot be made with others."""
    with suppress(OSError, AetherError):  # it looks for the key in the history
        handle = regular.handle(_taken(taken.path), os.O_WRONLY | os.O_APPEND)
        try:
            files.write_all(handle, seal_json(fields))
        finally:
            os.close(handle)


def give_back(taken: Taken) -> None:
    """Let another holder take a change that was taken and is not stored."""
    with suppress(OSError):  # as above
        os.rename(_taken(taken.path), taken.path)

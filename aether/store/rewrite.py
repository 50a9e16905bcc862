"""Rewrites: replace many files of a home as if they were one, under the lock of the home.

`stage` writes the new files into `<home>/erasing/`, and their list last: with it the rewrite is decided. `finish` carries
out the list; if its process is killed, the next `commit.write_lock` goes on. A file that was changed since it was read is
not overwritten: lines appended to it meanwhile are kept after the new ones, and any other file is left and named.

A list may come with a repository, or be damaged: it names files of the home only, removes only what is derived, each of its
lines is sealed, and git does not track it. What is otherwise goes to quarantine as a whole, and none of it is carried out.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

from aether import regular
from aether.errors import CorruptDocument, InvalidDocument, NotFound, UnsafePath, shown
from aether.paths import own_file
from aether.store import files, spool
from aether.store.files import (
    locked,
    make_directory,
    move_to_quarantine,
    parse_json,
    storage_errors,
    sync_directory,
    write_whole,
)
from aether.store.log import HEAD, lines_of, seal_json, unsealed
from aether.text.regex import lazy

# `commit.write_lock` looks for it.
DIRECTORY = "erasing"
PLAN = "plan.json"
# Files that are only appended to, some without the lock.
GROWING = (".jsonl", ".log")
# The logs of conversations, each with a lock of its own; a note of the memory tool may have the same name.
_TALK = lazy(r"conversations/[^/]+/history\.jsonl")
# What a rewrite may remove: indexes, which are made again, and the locks of conversations that have another name now.
_DERIVED = lazy(r"(?:archive/)?index\.sqlite(?:-\w+)?|conversations/[^/]+/lock")


class Step(NamedTuple):
    """The replacement of one file."""

    path: str
    """Its path, relative to the home."""
    to: str
    """The path of the new file; empty to remove the old one."""
    known: tuple[int, int, int]
    """Inode, time of change and size when it was read."""
    data: bytes


def file_identity(path: Path) -> tuple[int, int, int] | None:
    """Return what changes whenever the file at `path` is changed; None if there is no file."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def start(home: Path, list_lock: AbstractContextManager[None], *, timeout: float) -> None:
    """Mark that an erasure starts, and wait for those who write only conversations; the caller holds the lock of the home.

    Whoever writes what it read earlier is refused from now on, until it has read everything again (`store.files`). The
    mark is made under the lock of the list of conversations: one that starts is in the list and on the disk, or in neither.

    Raises:
        LockTimeout, StorageFailed: nothing was changed.
    """
    files.exempt_from_erasures(home)
    with storage_errors(home, left="Nothing was changed."):
        with list_lock:
            _write_mark(home, files.RUNS)
        for log in sorted((home / "conversations").glob("*/history.jsonl")):
            with suppress(NotFound), locked(log.parent, timeout=timeout):
                pass


def end(home: Path) -> None:
    """Mark that no erasure runs: all that is read from now on may be written."""
    with storage_errors(home, left="The text is erased; the next command goes on."):
        _write_mark(home, "")


def _write_mark(home: Path, ending: str) -> None:
    write_whole(home / files.ERASURES, f"{os.urandom(16).hex()}{ending}".encode())


def stage(home: Path, steps: Iterable[Step]) -> None:
    """Decide on `steps`; the caller holds the lock of the home.

    Raises:
        StorageFailed: nothing was decided.
        UnsafePath: a step names what no rewrite replaces; nothing was decided.
    """
    place = home / DIRECTORY
    with storage_errors(home, left="Nothing was changed."):
        make_directory(place)
        every = list(steps)
        for number, step in enumerate(every):
            _require_own(home, step.path, step.to)
            if step.to:
                write_whole(place / str(number), step.data)
                with suppress(FileNotFoundError):
                    os.chmod(place / str(number), (home / step.path).stat().st_mode & 0o777)
        plan = [
            {"step": number, "of": len(every), "path": step.path, "to": step.to, "known": list(step.known)}
            for number, step in enumerate(every)
        ]
        write_whole(place / PLAN, b"".join(map(seal_json, plan)))


def staged(home: Path) -> list[Step]:
    """Return the steps that are decided and perhaps not done, without their data; none if nothing was decided.

    Raises:
        UnsafePath, CorruptDocument, InvalidDocument: what is there is no list of a rewrite of this home.
        OSError: it cannot be read.
    """
    place = home / DIRECTORY
    if not stat.S_ISDIR(place.lstat().st_mode):
        raise _foreign("it is not a directory.", home)
    if spool.in_index(str(home), DIRECTORY):
        raise _foreign("git tracks it, so that it came with the repository.", home)
    try:
        data = regular.read(place / PLAN, regular.LOG_BYTES)
    except FileNotFoundError:
        return []
    except IsADirectoryError as reason:
        raise _foreign(f"{PLAN} is a directory.", home) from reason
    found = _listed(data)
    for number, step in enumerate(found):
        _require_own(home, step.path, step.to)
        new = place / str(number)
        if os.path.lexists(new) and not stat.S_ISREG(new.lstat().st_mode):
            raise _foreign(f"{shown(new.name)} in it is not a file.", home)
    return found


def _foreign(what: str, home: Path) -> UnsafePath:
    return UnsafePath(what, fix="Erase the text again, if it is still there.", where=str(home / DIRECTORY))


def _listed(data: bytes) -> list[Step]:
    """Return the steps of a list; those of earlier releases have no seals.

    Raises:
        CorruptDocument: it is damaged, or no list of steps.
    """
    if data.startswith(b"["):
        value = parse_json(data, where=PLAN)
        rows = value if all(isinstance(row, list) and len(row) == 3 for row in value) else [None]
    else:
        lines = [unsealed(line) or {} if good else {} for line, good in lines_of(data)]
        whole = [(line.get("step"), line.get("of")) for line in lines]
        is_whole = bool(lines) and whole == [(number, len(lines)) for number in range(len(lines))]
        rows = [[line.get(name) for name in Step._fields[:3]] for line in lines] if is_whole else [None]
    found = [Step(row[0], row[1], tuple(row[2]), b"") for row in rows if row and _is_identity(row[2])]
    if len(found) < len(rows):
        raise CorruptDocument("damaged.", fix="Erase the text again.", where=PLAN)
    return found


def _is_identity(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and all(type(part) is int for part in value)


def _require_own(home: Path, path: Any, to: Any) -> None:
    """Raise unless a step replaces, renames or removes what a rewrite may.

    Raises:
        UnsafePath: it does not.
    """
    own_file(home, path)
    if to != "":
        own_file(home, to)
    elif not _DERIVED.fullmatch(path):
        raise _foreign(f"{shown(path)} would be removed, and nothing makes it again.", home)


def finish(home: Path, *, timeout: float = 30.0) -> list[str]:
    """Carry out the staged steps and return the files that were left because they had changed meanwhile.

    The caller holds the lock of the home. Undecided files are dropped, and what is no rewrite of this home goes to
    quarantine. `timeout` is for the lock of each conversation.

    Raises:
        LockTimeout, StorageFailed: a part is still to be done; the next call goes on with it.
    """
    import shutil

    place, left = home / DIRECTORY, []
    with storage_errors(home, left='The erasing is not finished; "aether doctor --repair" goes on with it.'):
        try:
            steps = staged(home)
        except (UnsafePath, CorruptDocument, InvalidDocument) as reason:
            _set_aside(home, reason.what)
            return []
        for number, (path, to, known, _) in enumerate(steps):
            source = home / path
            # Other files are written under the lock of the home.
            talk = bool(_TALK.fullmatch(path)) and source.exists()
            with locked(source.parent, timeout=timeout) if talk else nullcontext():
                if not _carry_out(home, place / str(number), path, to, known, talk=talk):
                    left.append(path)
        (place / PLAN).unlink(missing_ok=True)
        sync_directory(place)
        shutil.rmtree(place)
        sync_directory(home)
    return left


def _set_aside(home: Path, reason: str) -> None:
    """Move what is in the place of a rewrite into quarantine."""
    kept = move_to_quarantine(home, home / DIRECTORY)
    what = f"an erasing was not carried out: {reason} It is in quarantine/{kept.name}; erase the text again."
    spool.log_failure(str(home), "erase", "", what)


def _carry_out(home: Path, new: Path, path: str, to: str, known: tuple[int, ...], *, talk: bool) -> bool:
    """Do one step, unless it is done, and return whether it could be done; `talk`: it is that of a conversation."""
    source, target = home / path, home / to
    is_derived = bool(_DERIVED.fullmatch(path))  # whoever waits for a lock writes its name into it
    if to and new.exists():
        if is_derived or file_identity(source) == known:
            make_directory(target.parent)
            os.replace(new, target)
            sync_directory(target.parent)
        else:
            try:
                if not _caught_up(source, target, new, known, talk=talk):
                    return False
            except (UnsafePath, InvalidDocument):  # a link, or gigabytes, took its place
                return False
            known = file_identity(source) or known
    if to != path and (is_derived or file_identity(source) == known):
        if to and talk:  # the conversation has another name now
            with suppress(FileNotFoundError):
                os.replace(source.with_name(HEAD), target.with_name(HEAD))
        source.unlink(missing_ok=True)
        # Empty directories are removed too: a name may hold the text.
        directory = source.parent
        with suppress(OSError):
            while directory != home:
                directory.rmdir()
                directory = directory.parent
        with suppress(OSError):
            sync_directory(directory)
    return True


def _caught_up(source: Path, target: Path, new: Path, known: tuple[int, ...], *, talk: bool) -> bool:
    """Return whether a changed file is as it should be, after adding the lines that were appended to it.

    Only a conversation is renamed with them: its lock is held.
    """
    now = file_identity(source)
    if now is None:
        return True  # its owner removed it
    fresh = regular.read(new, regular.LOG_BYTES)
    if source == target and now[0] != known[0]:
        return regular.read(source, regular.LOG_BYTES).startswith(
            fresh
        )  # its step was done before the process was killed
    is_same = source == target or (talk and now[0] == known[0])
    if not is_same or source.suffix not in GROWING or now[2] < known[2]:
        return False
    with regular.opened(source) as file:
        file.seek(known[2])
        whole = fresh + file.read()
    if source == target or not _starts_with(target, whole):
        make_directory(target.parent)
        write_whole(target, whole)
    return True


def _starts_with(path: Path, data: bytes) -> bool:
    """Return whether the file at `path` has `data`, and perhaps more that came after a kill."""
    return path.exists() and regular.read(path, regular.LOG_BYTES).startswith(data)

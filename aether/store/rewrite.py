"""Rewrites: replace many files of a home as if they were one, under the lock of the home.

`stage` writes the new files into `<home>/erasing/`, and their list last: with it the rewrite is decided. `finish` carries
out the list; if its process is killed, the next `commit.write_lock` goes on. A file that was changed since it was read is
not overwritten: lines appended to it meanwhile are kept after the new ones, and any other file is left and named.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from pathlib import Path

from aether import regular
from aether.store.files import (
    HEAD,
    json_line,
    locked,
    make_directory,
    parse_json,
    storage_errors,
    sync_directory,
    write_whole,
)
from aether.tuples import NamedTuple

# `commit.write_lock` looks for it.
DIRECTORY = "erasing"
PLAN = "plan.json"
# Files that are only appended to, some without the lock.
GROWING = (".jsonl", ".log")


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


def stage(home: Path, steps: Iterable[Step]) -> None:
    """Decide on `steps`; the caller holds the lock of the home.

    Raises:
        StorageFailed: nothing was decided.
    """
    place = home / DIRECTORY
    with storage_errors(home, left="Nothing was changed."):
        make_directory(place)
        plan = []
        for number, step in enumerate(steps):
            if step.to:
                write_whole(place / str(number), step.data)
                with suppress(FileNotFoundError):
                    os.chmod(place / str(number), (home / step.path).stat().st_mode & 0o777)
            plan.append([step.path, step.to, list(step.known)])
        write_whole(place / PLAN, json_line(plan))


def finish(home: Path, *, timeout: float = 30.0) -> list[str]:
    """Carry out the staged steps and return the files that were left because they had changed meanwhile.

    The caller holds the lock of the home. Undecided files are dropped. `timeout` is for the lock of each conversation.

    Raises:
        LockTimeout, StorageFailed: a part is still to be done; the next call goes on with it.
    """
    import shutil

    from aether.store.conversations import FILE as CONVERSATION  # every commit would pay for it

    place, left = home / DIRECTORY, []
    with storage_errors(home, left='The erasing is not finished; "aether doctor --repair" goes on with it.'):
        if (place / PLAN).exists():
            for number, (path, to, known) in enumerate(
                parse_json(regular.read(place / PLAN, regular.LOG_BYTES), where=PLAN)
            ):
                source = home / path
                # Other files are written under the lock of the home.
                talk = source.name == CONVERSATION and source.exists()
                with locked(source.parent, timeout=timeout) if talk else nullcontext():
                    if not _carry_out(home, place / str(number), path, to, tuple(known), talk=talk):
                        left.append(path)
            (place / PLAN).unlink()
            sync_directory(place)
        shutil.rmtree(place)
        sync_directory(home)
    return left


def _carry_out(home: Path, staged: Path, path: str, to: str, known: tuple[int, ...], *, talk: bool) -> bool:
    """Do one step, unless it is done, and return whether it could be done; `talk`: it is that of a conversation."""
    source, target = home / path, home / to
    if to and staged.exists():
        if file_identity(source) == known:
            make_directory(target.parent)
            os.replace(staged, target)
            sync_directory(target.parent)
        elif not _caught_up(source, target, staged, known, talk=talk):
            return False
        else:
            known = file_identity(source) or known
    if to != path and (file_identity(source) == known or not to):
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


def _caught_up(source: Path, target: Path, staged: Path, known: tuple[int, ...], *, talk: bool) -> bool:
    """Return whether a changed file is as it should be, after adding the lines that were appended to it.

    Only a conversation is renamed with them: its lock is held.
    """
    now = file_identity(source)
    if now is None:
        return True  # its owner removed it
    fresh = regular.read(staged, regular.LOG_BYTES)
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

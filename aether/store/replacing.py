"""Replacing: many files of a home exchanged for others as if they were one, by whoever holds its lock.

`stage` writes what shall take their place into `<home>/erasing/`, and last of all the list; from then on it is decided.
`finish` does what the list says. A process that is killed in between leaves it to the next one that takes the lock.
A file that was touched since it was read is not written over: what was only appended to it stays behind what is new, and
any other is left as it is, and named.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from aether.store import codec
from aether.store.files import make_directory, storage, sync_directory, write_whole

# `lock` looks for it.
DIRECTORY = "erasing"
PLAN = "plan.json"
# They are only ever appended to, some without the lock.
GROWING = (".jsonl", ".log")


class Step(NamedTuple):
    """What happens to one file."""

    path: str
    """Where it is, relative to the home."""
    to: str
    """Where what replaces it goes; empty where the file is to be removed."""
    known: tuple[int, int, int]
    """Inode, time of change and size when it was read."""
    data: bytes


def identity(path: Path) -> tuple[int, int, int] | None:
    """Return what changes whenever the file at `path` is touched; None where there is none."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def stage(home: Path, steps: Iterable[Step]) -> None:
    """Decide that `steps` are done; the caller holds the lock of the home.

    Raises:
        StorageFailed: nothing was decided.
    """
    place = home / DIRECTORY
    with storage(home, left="Nothing was changed."):
        make_directory(place)
        plan = []
        for number, step in enumerate(steps):
            if step.to:
                write_whole(place / str(number), step.data)
                with suppress(FileNotFoundError):
                    os.chmod(place / str(number), (home / step.path).stat().st_mode & 0o777)
            plan.append([step.path, step.to, list(step.known)])
        write_whole(place / PLAN, codec.line(plan))


def finish(home: Path) -> list[str]:
    """Do what was decided, and return the files that were touched meanwhile and left; the caller holds the lock.

    What was not decided yet is dropped.

    Raises:
        StorageFailed: a part is still to be done.
    """
    place, left = home / DIRECTORY, []
    with storage(home, left='A part of the erasing is still to be done; "aether doctor --repair" goes on.'):
        if (place / PLAN).exists():
            for number, (path, to, known) in enumerate(codec.parse((place / PLAN).read_bytes(), where=PLAN)):
                if not _done(home, place / str(number), path, to, tuple(known)):
                    left.append(path)
            (place / PLAN).unlink()
            sync_directory(place)
        shutil.rmtree(place)
        sync_directory(home)
    return left


def _done(home: Path, staged: Path, path: str, to: str, known: tuple[int, ...]) -> bool:
    """Do one step, unless it was done before; return whether it could be."""
    source, target = home / path, home / to
    if to and staged.exists():
        if identity(source) == known:
            make_directory(target.parent)
            os.replace(staged, target)
            sync_directory(target.parent)
        elif not _caught_up(source, target, staged, known):
            return False
    if to != path and (identity(source) == known or not to):
        source.unlink(missing_ok=True)
        _tidy(source.parent, home)
    return True


def _caught_up(source: Path, target: Path, staged: Path, known: tuple[int, ...]) -> bool:
    """Return whether a file that was touched is as it should be, after taking over what was appended to it."""
    now = identity(source)
    if now is None:
        return True  # removed by whoever needed it no more
    fresh = staged.read_bytes()
    if source == target and now[0] != known[0]:
        return source.read_bytes().startswith(fresh)  # its step was done, and the process killed then
    if source != target or source.suffix not in GROWING or now[2] < known[2]:
        return False
    with source.open("rb") as file:
        file.seek(known[2])
        write_whole(target, fresh + file.read())
    return True


def _tidy(directory: Path, home: Path) -> None:
    """Remove what is empty now: its name may have been what had to go."""
    with suppress(OSError):
        while directory != home:
            directory.rmdir()
            directory = directory.parent
    with suppress(OSError):
        sync_directory(directory)

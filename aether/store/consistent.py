"""Consistent reading: every file of a home as it is at one moment, while others go on writing.

Everything is read twice. First without a lock, which takes as long as it takes. Then under the lock of the home, and that of
each conversation for its log: only what changed since is read again, and what is new of it stays in memory until the locks are
free. So writers wait for little more than a look at each file, and what is read fits together: documents, journal, seals and
heads are of one revision, append-only files end with the last call that was acknowledged.

All files belong to it but those of `LEFT_OUT`. So do directories without files: a conversation whose directory is missing is a
loss. What is no regular file is named and left out.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections.abc import Callable, Container, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from aether import regular
from aether.errors import Conflict, UnsafePath
from aether.store import config, conversation_list, files, offline, rewrite, together
from aether.store.commit import write_lock
from aether.store.files import locked, storage_errors
from aether.store.log import head_path, read_head

# Locks, the derived indexes, when a server failed last, what processes ask of each other, what a killed process left, and a
# rewrite that is not decided; not what a model or a person keeps.
LEFT_OUT = re.compile(
    r"(?!memories/)(?:.*/)?lock|(?:archive/)?index\.sqlite(?:-\w+)?|(?:.*/)?\.[^/]*"
    + re.escape(files.TEMP_SUFFIX)
    + rf"|{rewrite.DIRECTORY}/.*|{together.DIRECTORY}/.*|{offline.TRIED}|{re.escape(offline.MADE)}|conversations/{re.escape(conversation_list.LIST_LOCK)}(?:/.*)?"
)
# A file is read, kept and sent in pieces of this size: of a log that grew only its last ones are new.
PIECE_BYTES = 4 * 1024 * 1024
# What changed while everything was read, and is new, is held under the lock; beyond this it is read without the lock again.
MOST_HELD_BYTES = 256 * 1024 * 1024
TRIES = 5
# A file may change without a sign within one tick of the clock of its disk; FAT has the slowest.
TICK_NS = 2_000_000_000


class Part(NamedTuple):
    """The content of a file: its size, and the names of its pieces in order; a name is the sha256 of the piece."""

    size: int
    pieces: tuple[str, ...]


class Moment(NamedTuple):
    """The files of a home at one moment."""

    files: dict[str, Part]
    """By path, relative to the home, with `/`."""
    empty: list[str]
    """Directories without files."""
    left_out: list[str]
    """Links, pipes, devices and sockets: they are in the home and not in `files`."""
    revision: int
    """That of the last acknowledged commit, 0 if the home does not say it."""


class _Seen(NamedTuple):
    """A file as it was read without a lock."""

    identity: tuple[int, ...]
    part: Part


class _Look(NamedTuple):
    """The look under the locks: what was seen before, and what was found."""

    home: Path
    seen: dict[str, _Seen]
    known: Container[str]
    found: Moment
    held: dict[str, bytes]
    """New pieces, by name."""
    held_bytes: list[int]
    """Their size, as its only entry."""


def piece_name(data: bytes) -> str:
    """Return the name of a piece of a file."""
    return hashlib.sha256(data).hexdigest()


def part_of(path: Path) -> Part:
    """Return the content of the file at `path`."""
    with regular.opened(path) as file:
        return _read(file, lambda name, data: None)


def read_home(
    home: Path, known: Container[str], keep: Callable[[str, bytes], None], report: Callable[[int, int], None]
) -> Moment:
    """Return the files of `home` at one moment, after giving every piece whose name is not `known` to `keep`.

    `keep` makes a name known. `report` gets the bytes that were read, and those that there are.

    Raises:
        LockTimeout: another process held a lock for too long.
        Conflict: more than can be held changed again and again.
        StorageFailed: a file cannot be read.
    """
    seen: dict[str, _Seen] = {}
    for _ in range(TRIES):
        with storage_errors(home, left="Nothing was backed up."):
            _read_ahead(home, seen, known, keep, report)
            look = _Look(home, seen, known, Moment({}, [], [], 0), {}, [0])
            moment = _at_one_moment(look)
        for name, data in look.held.items():
            keep(name, data)
        if moment is not None:
            return moment
    what = "it changes faster than it can be read."
    raise Conflict(what, fix="Try again when less is written.", where=str(home))


def paths_in(home: Path, below: str = "") -> Iterator[tuple[str, str]]:
    """Yield what a directory of `home` holds, at any depth, in order: each path, and `file`, `empty` or `other`.

    What vanishes meanwhile is left out.
    """
    try:
        with os.scandir(home / below) as entries:
            inside = sorted(entries, key=lambda one: one.name)
    except FileNotFoundError:
        return
    kept = 0
    for one in inside:
        path = f"{below}/{one.name}" if below else one.name
        is_directory = one.is_dir(follow_symlinks=False)
        if LEFT_OUT.fullmatch(f"{path}/" if is_directory else path):
            continue
        kept += 1
        if is_directory:
            yield from paths_in(home, path)
        else:
            yield path, "file" if one.is_file(follow_symlinks=False) else "other"
    if below and not kept and not LEFT_OUT.fullmatch(below):
        yield below, "empty"


def _read_ahead(
    home: Path, seen: dict[str, _Seen], known: Container[str], keep: Callable[[str, bytes], None],
    report: Callable[[int, int], None],
) -> None:  # fmt: skip
    """Read all files, without a lock, and remember those that cannot have changed while they were read."""
    paths = [path for path, kind in paths_in(home) if kind == "file"]
    sizes = {}
    for path in paths:
        with suppress(FileNotFoundError):
            sizes[path] = os.lstat(home / path).st_size
    done, whole = 0, sum(sizes.values())
    for path, size in sizes.items():
        report(done, whole)
        done += size
        started = time.time_ns()
        with _failures(home / path), regular.opened(home / path) as file:
            before = _identity(os.fstat(file.fileno()))
            if path in seen and seen[path].identity == before:
                continue
            part = _read(file, lambda name, data: None if name in known else keep(name, data))
            if _identity(os.fstat(file.fileno())) == before and max(before[1:3]) < started - TICK_NS:
                seen[path] = _Seen(before, part)
    report(whole, whole)


@contextmanager
def _failures(path: str | Path) -> Iterator[None]:
    """Name the file that cannot be read; one that vanished meanwhile, or is no regular file any more, is passed over."""
    with storage_errors(path, left="Nothing was backed up."), suppress(FileNotFoundError, UnsafePath):
        yield


def _read(file: BinaryIO, take: Callable[[str, bytes], None]) -> Part:
    size, names = 0, []
    while data := file.read(PIECE_BYTES):
        names.append(piece_name(data))
        take(names[-1], data)
        size += len(data)
    return Part(size, tuple(names))


def _identity(found: os.stat_result) -> tuple[int, ...]:
    """Return what changes with the content of a file, unless that changes twice within a tick."""
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size


def _at_one_moment(look: _Look) -> Moment | None:
    """Return the files as they are under the locks; None if more would have to be held than may be."""
    home, timeout = look.home, config.or_default(look.home).lock_timeout_seconds
    with write_lock(home, timeout=timeout, for_reading=True):
        # A conversation is listed before it has a log: those that are listed after this are newer than the moment.
        with (
            conversation_list.list_lock(home, for_reading=True)
            if _is_directory(home / "conversations")
            else nullcontext()
        ):
            listed = _content(home / conversation_list.LIST)
            _take(look, conversation_list.LIST)
        for name in _names(home / "conversations"):
            with _lock_of(home / "conversations" / name, timeout):
                _take_all(look, f"conversations/{name}")
        # After the conversations: one that is set aside moves from there to quarantine.
        for name in _names(home):
            if name != "conversations" or not _is_directory(home / name):
                _take_all(look, name)
        newer = _newer(home, listed)
        revision = read_head(head_path(home)) or 0
    if look.held_bytes[0] > MOST_HELD_BYTES:
        return None
    found = look.found
    return found._replace(
        files={path: part for path, part in sorted(found.files.items()) if not _is_of(path, newer)},
        empty=[path for path in found.empty if not _is_of(path, newer)],
        revision=max(0, revision),
    )


def _content(path: Path) -> bytes:
    try:
        return regular.read(path, regular.LOG_BYTES)
    except (FileNotFoundError, UnsafePath):
        return b""


def _newer(home: Path, listed: bytes) -> set[str]:
    """Return the directories of the conversations that were listed since the list was `listed`."""
    now = _content(home / conversation_list.LIST)
    if now == listed:
        return set()
    return {*conversation_list.listed_in(home, now)[0]} - {*conversation_list.listed_in(home, listed)[0]}


def _names(directory: Path) -> list[str]:
    return sorted(os.listdir(directory)) if _is_directory(directory) else []


def _is_directory(path: str | Path) -> bool:
    """Return whether a directory is there, and no link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _lock_of(directory: Path, timeout: float) -> AbstractContextManager[None]:
    """Return the lock of a directory; nothing without a directory, for then nobody writes in it."""
    return locked(directory, timeout=timeout, for_reading=True) if _is_directory(directory) else nullcontext()


def _is_of(path: str, names: Container[str]) -> bool:
    start, _, rest = path.partition("/")
    return start == "conversations" and rest.partition("/")[0] in names


def _take_all(look: _Look, name: str) -> None:
    """Take what has the path `name`: a file, or a directory with all that is in it."""
    is_directory = _is_directory(f"{look.home}/{name}")
    if LEFT_OUT.fullmatch(f"{name}/" if is_directory else name):
        return
    if is_directory:
        for below, kind in paths_in(look.home, name):
            if kind == "empty":
                look.found.empty.append(below)
            elif below != conversation_list.LIST:  # it was taken first
                _take(look, below)
    else:
        _take(look, name)


def _take(look: _Look, path: str) -> None:
    """Take one file, read again unless it is as it was; one that is not there any more belongs to no moment."""
    place, known = f"{look.home}/{path}", look.seen.get(path)
    with _failures(place):
        there = os.lstat(place)
        if not stat.S_ISREG(there.st_mode):
            look.found.left_out.append(path)
        elif known and _identity(there) == known.identity:
            look.found.files[path] = known.part
        else:
            with regular.opened(place) as file:
                look.found.files[path] = _read(file, lambda name, data: _hold(look, name, data))


def _hold(look: _Look, name: str, data: bytes) -> None:
    if name not in look.known and name not in look.held and look.held_bytes[0] <= MOST_HELD_BYTES:
        look.held[name] = data
        look.held_bytes[0] += len(data)

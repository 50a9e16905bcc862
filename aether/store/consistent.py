"""Consistent reading: every file of a home as it is at one moment, while others go on writing.

Under the lock of the home, and that of each conversation for its log, every file gets a second name in a directory of
links, and its size is noted. That takes a moment however large the files are. Then the locks are free, and the files
are read by those names: a file that is replaced meanwhile keeps its old content there, and of one that grows no more is
read than it had. Small files, which may be written in place, and files on disks without links are copied instead.

All files belong to a home but those of `LEFT_OUT`. So do directories without files: a conversation whose directory is
missing is a loss. What is no regular file is named and left out.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from aether import regular
from aether.errors import UnsafePath
from aether.store import config, conversation_list, files, ledger, log, rewrite
from aether.store.commit import write_lock
from aether.store.files import locked, storage_errors

# Locks, the derived indexes, when a server failed last, what a killed process left, and a
# rewrite that is not decided; not what a model or a person keeps.
LEFT_OUT = re.compile(
    r"(?!memories/)(?:.*/)?lock|(?:archive/)?index\.sqlite(?:-\w+)?|(?:.*/)?\.[^/]*"
    + re.escape(files.TEMP_SUFFIX)
    + rf"(?:/.*)?|{rewrite.DIRECTORY}/.*|share/waiting/.*|{ledger.TRIED}|{re.escape(ledger.MADE)}|conversations/{re.escape(conversation_list.LIST_LOCK)}(?:/.*)?"
)
# A file is read, kept and sent in pieces of this size: of a log that grew only its last ones are new.
PIECE_BYTES = 4 * 1024 * 1024
# Heads have fewer bytes, and are written in place.
SMALL_BYTES = 4096


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
    """Links, pipes, devices, sockets and files of holes: they are in the home and not in `files`."""
    revision: int
    """That of the last acknowledged commit, 0 if the home does not say it."""


class _Inventory(NamedTuple):
    """The files of a home under their second names: for each path its second name and its size, and the rest as in `Moment`."""

    sources: dict[str, tuple[Path, int]]
    empty: list[str]
    left_out: list[str]


def part_of(path: Path) -> Part:
    """Return the content of the file at `path`."""
    with regular.opened(path, sys.maxsize) as file:
        return _read(file, os.fstat(file.fileno()).st_size, lambda name, data: None)


def read_home(home: Path, keep: Callable[[str, bytes], None], report: Callable[[int, int], None]) -> Moment:
    """Return the files of `home` at one moment, after giving every piece to `keep`.

    `report` gets the bytes that were read, and those that there are.

    Raises:
        LockTimeout: another process held a lock for too long.
        StorageFailed: a file cannot be read.
    """
    with storage_errors(home, left="Nothing was backed up."), _directory_of_links(home) as links:
        inventory, revision = _hold_home(home, links)
        position, total = 0, sum(size for _, size in inventory.sources.values())
        parts = {}
        for path, (source, size) in sorted(inventory.sources.items()):
            report(position, total)
            try:
                with regular.opened(source, sys.maxsize) as file:
                    parts[path] = _read(file, size, keep)
            except OSError as reason:
                reason.filename = str(home / path)  # its second name says nothing to a person
                raise
            position += size
        report(total, total)
    return Moment(parts, inventory.empty, inventory.left_out, revision)


@contextmanager
def _directory_of_links(home: Path) -> Iterator[Path]:
    """Yield a new directory for second names in `home`, or elsewhere if that may not be written; it is removed."""
    try:
        links = Path(tempfile.mkdtemp(prefix=".backup.", suffix=files.TEMP_SUFFIX, dir=home))
    except OSError as reason:
        if reason.errno not in files.UNWRITABLE:
            raise
        links = Path(tempfile.mkdtemp())
    try:
        yield links
    finally:
        shutil.rmtree(links, ignore_errors=True)


def _hold_home(home: Path, links: Path) -> tuple[_Inventory, int]:
    """Hold every file of `home` under its locks, and return them with the revision."""
    inventory, timeout = _Inventory({}, [], []), config.or_default(home).lock_timeout_seconds
    talks = home / "conversations"
    with write_lock(home, timeout=timeout, for_reading=True):
        # A conversation is listed before it has a log: those that are listed after this are newer than the moment.
        with conversation_list.list_lock(home, for_reading=True) if _is_directory(talks) else nullcontext():
            listed = _content(home / conversation_list.LIST)
            _hold(inventory, home, conversation_list.LIST, links)
        for name in _names(talks):
            is_directory = _is_directory(talks / name)
            with locked(talks / name, timeout=timeout, for_reading=True) if is_directory else nullcontext():
                _hold_below(inventory, home, f"conversations/{name}", links)
        # After the conversations: one that is set aside moves from there to quarantine.
        for name in _names(home):
            if name != "conversations" or not _is_directory(home / name):
                _hold_below(inventory, home, name, links)
        newer = _listed_since(home, listed)
        revision = log.read_head(log.head_path(home)) or 0
    sources = {path: source for path, source in inventory.sources.items() if not _is_in(path, newer)}
    empty = [path for path in inventory.empty if not _is_in(path, newer)]
    return _Inventory(sources, empty, inventory.left_out), max(0, revision)


def _hold_below(inventory: _Inventory, home: Path, name: str, links: Path) -> None:
    """Hold the file `name`, or the directory with all that is in it."""
    is_directory = _is_directory(home / name)
    if LEFT_OUT.fullmatch(f"{name}/" if is_directory else name):
        return
    for path, kind in paths_in(home, name) if is_directory else [(name, "file")]:
        if kind == "empty":
            inventory.empty.append(path)
        elif path not in inventory.sources:  # the list of conversations is held first
            _hold(inventory, home, path, links)


def _hold(inventory: _Inventory, home: Path, path: str, links: Path) -> None:
    """Give one file a second name; one that is not there any more belongs to no moment."""
    source = links / str(len(inventory.sources))
    with suppress(FileNotFoundError, UnsafePath):
        status = os.lstat(home / path)
        if not regular.is_readable(home / path):
            inventory.left_out.append(path)
            return
        if status.st_size > SMALL_BYTES:
            with suppress(OSError):  # a disk without links, or another disk
                os.link(home / path, source)
        if not source.exists():
            with regular.opened(home / path, sys.maxsize) as file, open(source, "wb") as copy:
                shutil.copyfileobj(file, copy)
        inventory.sources[path] = source, status.st_size


def paths_in(home: Path, below: str = "") -> Iterator[tuple[str, str]]:
    """Yield what a directory of `home` holds, at any depth, in order: each path, and `file`, `empty` or `other`.

    What vanishes meanwhile is left out.
    """
    try:
        with os.scandir(home / below) as entries:
            inside = sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    count = 0
    for entry in inside:
        path = f"{below}/{entry.name}" if below else entry.name
        is_directory = entry.is_dir(follow_symlinks=False)
        if LEFT_OUT.fullmatch(f"{path}/" if is_directory else path):
            continue
        count += 1
        if is_directory:
            yield from paths_in(home, path)
        else:
            yield path, "file" if entry.is_file(follow_symlinks=False) else "other"
    if below and not count and not LEFT_OUT.fullmatch(below):
        yield below, "empty"


def _read(file: BinaryIO, size: int, keep: Callable[[str, bytes], None]) -> Part:
    """Return the first `size` bytes of a file as a part, after giving each piece to `keep`."""
    names, offset = [], 0
    while data := file.read(min(PIECE_BYTES, size - offset)):
        names.append(regular.digest(data))
        keep(names[-1], data)
        offset += len(data)
    return Part(offset, tuple(names))


def _content(path: Path) -> bytes:
    try:
        return regular.read(path, regular.LOG_BYTES)
    except (FileNotFoundError, UnsafePath):
        return b""


def _listed_since(home: Path, listed: bytes) -> set[str]:
    """Return the directories of the conversations that were listed since the list was `listed`."""
    now = _content(home / conversation_list.LIST)
    if now == listed:
        return set()
    return {*conversation_list.listed_in(home, now)[0]} - {*conversation_list.listed_in(home, listed)[0]}


def _names(directory: Path) -> list[str]:
    return sorted(os.listdir(directory)) if _is_directory(directory) else []


def _is_directory(path: Path) -> bool:
    """Return whether a directory is there, and no link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _is_in(path: str, conversations: set[str]) -> bool:
    """Return whether `path` is in the directory of one of these conversations."""
    start, _, below = path.partition("/")
    return start == "conversations" and below.partition("/")[0] in conversations

"""Logs: files of sealed lines that only grow; the journal of a home and the history of each conversation are two.

A line is a JSON object that ends in its checksum. `append` adds whole lines with one write and one sync, and takes back
what it could not acknowledge. A reader drops what follows the last whole line, a write that was cut off (`cut_torn_end`),
and gets a stretch of damaged lines as one (`lines_of`). The `head` beside a log has the number of its last acknowledged
line: it is written after the line is durable and not synced itself, so that it is never ahead of it, and a log that ends
before its head has lost lines.

Nothing in a log is changed: an undo is an appended line, too. The lock of a log is that of its directory
(`files.locked`); an append behind which another process wrote, because the lock did not hold, is a `ConcurrentWrite`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

from aether import regular
from aether.errors import AetherError, UnsafePath
from aether.regular import seal, sealed_body
from aether.store import files
from aether.store.files import close, json_line, parse_json, write_all
from aether.types import JsonObject

# The file beside a log with the number of its last acknowledged line.
HEAD = "head"
_HEAD_DIGITS = 20
# The last field of a placeholder, for a line of a shared colony that nobody can read: the checksum of that line.
REPLACES = b',"replaces":"'
MARK_BYTES = 128
BLOCK_BYTES = 1 << 16
# A sealed line ends in 16 digits, a quote, a brace and a newline, and before them the name of the field.
CHECKSUM_END, SEAL_BYTES = 19, 32


class ConcurrentWrite(Exception):
    """Another process wrote to a log although the lock was held; the writer plans again."""

    tried: tuple[int, bytes] | None = None
    """The revision and the line that were to be appended, which may be in the log by now."""


def seal_json(value: JsonObject, *, size: int = 0) -> bytes:
    """Return `value` as a line of JSON that ends in its checksum; `size` as for `json_line`."""
    return seal(json_line(value, size=size))


def unsealed(line: bytes) -> JsonObject | None:
    """Return the value of a sealed line, or None if it is torn or damaged."""
    body = sealed_body(line)
    if body is None:
        return None
    # Of no other encoding than UTF-8: to find that out takes as long as to read a short line.
    plain = body.startswith(b'{"') and body.isascii()
    value: JsonObject = parse_json(body.decode("ascii") if plain else body, where="journal")
    return value


def checksum_of(line: bytes) -> str:
    """Return the checksum at the end of a sealed line; of a placeholder, the checksum of the line that it replaces."""
    _, field, end = line[-MARK_BYTES:].rpartition(REPLACES)
    checksum, _, final = end.partition(b'"')
    if field and final == line[-SEAL_BYTES:]:
        return checksum.decode("ascii", "replace")
    return line[-CHECKSUM_END:-3].decode("ascii", "replace")


def append(path: Path, data: bytes, *, at: int, sync: bool = True) -> None:
    """Append `data` to the file at `path`, whose end is at byte `at`, durably unless without `sync`.

    On any exception the file is truncated to `at`, so that it holds nothing unacknowledged.

    Raises:
        ConcurrentWrite: the file does not end at `at`: another process wrote although we hold the lock.
        Conflict: a text was erased since the call that runs read the home.
        InvalidInput: the file would be too large to be read.
        StorageFailed: the write failed and could not be taken back; the data, or a part, is stored, not confirmed on disk.
    """
    files.require_not_overtaken(path)
    regular.require_readable(at + len(data), regular.LOG_BYTES, where=str(path))
    # Only an empty file is created: one that vanished must not come back empty.
    create = 0 if at else os.O_CREAT
    handle = regular.handle(path, os.O_RDWR | create | os.O_APPEND)
    try:
        if os.fstat(handle).st_size != at:
            raise ConcurrentWrite(path)
        try:
            write_all(handle, data)
            if sync:
                files.sync_data(handle)
            if not at:
                files.sync_directory(path.parent)
            _require_in_place(handle, path, data, at)
        except BaseException as reason:
            with contextlib.suppress(OSError):
                if data.startswith(os.pread(handle, len(data) + 1, at)):  # else another's bytes are there
                    os.ftruncate(handle, at)
                    os.fsync(handle)
            if isinstance(reason, OSError) and (left := _left_of(handle, data, at)):
                raise files.unconfirmed(reason, path, part=left < len(data)) from reason
            raise
    finally:
        close(handle)


def _left_of(handle: int, data: bytes, at: int) -> int:
    """Return how many bytes of the whole lines of `data` may be in the file behind `at`: all, if it cannot be asked."""
    try:
        size = max(0, os.fstat(handle).st_size - at)
    except OSError:
        size = len(data)
    return len(data) if size >= len(data) else data.rfind(b"\n", 0, size) + 1


def _require_in_place(handle: int, path: Path, data: bytes, at: int) -> None:
    # Without a working lock, a line counts only if it is at its place.
    status = os.fstat(handle)
    elsewhere = status.st_size != at + len(data) and os.pread(handle, len(data), at) != data
    if elsewhere or not os.path.samestat(status, os.stat(path)):
        raise ConcurrentWrite(path)


def cut_torn_end(path: Path) -> int:
    """Truncate the file at `path` after its last whole line and return its length."""
    if not path.exists():
        return 0
    end = path.stat().st_size
    last = next(lines_backwards(path), b"\n")
    if not last.endswith(b"\n"):
        end -= len(last)
        _truncate(path, end)
    return end


def cut_tail(path: Path, end: int, tail: bytes) -> None:
    """Truncate the log at `path` to `end`, behind which a write was cut off that left `tail`.

    Raises:
        ConcurrentWrite: another process, whose lock did not hold, has written on there since.
    """
    with regular.opened(path) as file:
        file.seek(end)
        if file.read(len(tail) + 1) != tail:
            raise ConcurrentWrite(path)
    _truncate(path, end)


def _truncate(path: Path, end: int) -> None:
    handle = regular.handle(path, os.O_WRONLY)
    try:
        os.ftruncate(handle, end)
    finally:
        close(handle)


def lines_of(
    data: bytes, is_good: Callable[[bytes], bool] = lambda line: sealed_body(line) is not None
) -> Iterator[tuple[bytes, bool]]:
    """Yield the lines of `data`, each with whether it is good; neighbouring damaged lines come as one."""
    damaged = b""
    for line in data.splitlines(keepends=True):
        if not (line.endswith(b"\n") and is_good(line)):
            damaged += line
            continue
        if damaged:
            yield damaged, False
            damaged = b""
        yield line, True
    if damaged:
        yield damaged, False


def lines_backwards(path: Path) -> Iterator[bytes]:
    """Yield the lines of the file at `path`, last first, reading no further than needed."""
    with regular.opened(path) as file:
        at = file.seek(0, os.SEEK_END)
        pieces: list[bytes] = []  # of a line whose start is not read yet, the last one first
        while at:
            size = min(BLOCK_BYTES, at)
            at = file.seek(at - size)
            pieces.append(file.read(size))
            if at and b"\n" not in pieces[-1]:
                continue  # joined once: a line may be much longer than a block
            lines = b"".join(reversed(pieces)).splitlines(keepends=True)
            pieces = [lines.pop(0)] if at else []
            yield from reversed(lines)


@lru_cache(maxsize=64)
def head_path(home: Path) -> Path:
    """Return the head of the journal of `home`."""
    return home / "data" / HEAD


def head_line(number: int) -> bytes:
    """Return the content of a head, which has the same length for every number."""
    return seal(b'{"head":' + str(number).ljust(_HEAD_DIGITS).encode() + b"}")


def read_head(path: Path) -> int | None:
    """Return the number in the head at `path`: None without one, -1 if it is damaged."""
    try:
        data = regular.read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (AetherError, OSError):  # no regular file
        return -1
    try:
        number = int((unsealed(data) or {})["head"])
    except (AetherError, KeyError, TypeError, ValueError):
        return -1
    return number if data == head_line(number) else -1


def set_head(path: Path, number: int) -> None:
    """Write the head at `path`; one that cannot be written is left."""
    if not hasattr(os, "pwrite"):
        return  # pragma: no cover - Windows: the end of a file is not watched
    with contextlib.suppress(OSError, UnsafePath):
        handle = regular.handle(path, os.O_RDWR | os.O_CREAT)
        try:
            line = head_line(number)
            if os.pread(handle, len(line), 0) != line:
                os.pwrite(handle, line, 0)
        finally:
            close(handle)

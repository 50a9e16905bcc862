"""Files: the one writer of whole files and the one appender of lines.

`write_whole` either replaces the target with all of `data`, durably, or leaves it untouched and leaves
nothing behind; on any exception, Ctrl-C included, the temp file goes. `append` is one write and one
sync; what could not be acknowledged is cut off again. Only a killed process can leave a temp file, and
`doctor` removes those (`TEMP_SUFFIX`).

Codec: one canonical form of JSON, exact in both directions.

UTF-8, no NaN, two-space indent for documents, one line for the journal. orjson writes whole documents
(the standard encoder is sixty times slower with an indent), the standard library writes what orjson
refuses (lone surrogates, numbers beyond 64 bits) and reads everything, because orjson turns large
integers into floats without a word. A test holds both to the same bytes, but for the exponents of floats
(`1e16`, `1e+16`).

The lock: one per home, held for a commit or a fold only, never while a model is asked.

On Unix it is `flock` on `<home>/lock`, taken directly: that is the very lock which `filelock.FileLock`
takes on the same file, without the 28 ms that importing it costs. Elsewhere `filelock` takes it. A killed
holder frees it at once; the name of a holder in the file is only for the message.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from aether.errors import (
    AetherError,
    CorruptDocument,
    InvalidInput,
    LockTimeout,
    NotFound,
    StorageFailed,
    shown,
)
from aether.store import config

TEMP_SUFFIX = ".aether-tmp"
# Windows refuses to replace a file that a reader holds open; readers close within milliseconds.
REPLACE_TRIES = 20
BLOCK_BYTES = 1 << 16
_sync_data = getattr(os, "fdatasync", os.fsync)


class ConcurrentWrite(Exception):
    """Another writer was at a file although the lock was held; `commit` plans anew."""


@contextlib.contextmanager
def storage_errors(where: str | os.PathLike[str], *, left: str = "Nothing was stored.") -> Iterator[None]:
    """Turn an `OSError` of the block into an error of ours that says what is `left` and what to do.

    Raises:
        NotFound: the home, or a directory in it, is gone.
        StorageFailed: read-only, full, or failing.
    """
    try:
        yield
    except (AetherError, ConcurrentWrite):
        raise  # LockTimeout is an OSError too, and says it better
    except FileNotFoundError as reason:
        raise NotFound(
            "the home, or a part of it, is gone.",
            fix='Run "aether init", or restore it.',
            where=os.fspath(where),
        ) from reason
    except OSError as reason:
        fix = {
            errno.ENOSPC: "Free some space, then try again.",
            errno.EDQUOT: "Free some space, then try again.",
            errno.EROFS: "Make the home writable, or use another with --home.",
            errno.EACCES: "Make the home writable, or use another with --home.",
            errno.EPERM: "Make the home writable, or use another with --home.",
        }.get(reason.errno or 0, "Check the disk, then try again.")
        raise StorageFailed(
            f"{reason.strerror or reason}. {left}", fix=fix, where=os.fspath(where)
        ) from reason


def write_whole(
    path: Path, data: bytes, *, backup: Path | None = None, last_look: Callable[[], None] = lambda: None
) -> None:
    """Replace the file at `path` with `data`, durably; keep the old file as `backup` where one is named.

    `last_look` is called when all is written but the name: what it raises leaves the old file as it is.
    """
    temp = path.with_name(f".{path.name}.{os.urandom(6).hex()}{TEMP_SUFFIX}")
    try:
        handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            write_all(handle, data)
            os.fsync(handle)
        finally:
            os.close(handle)
        if backup is not None and path.exists():
            keep_backup(path, backup)
        last_look()
        _replace(temp, path)
        sync_directory(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temp)
        raise


def write_all(handle: int, data: bytes) -> None:
    """Write every byte of `data`; a short write goes on where it stopped."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def keep_backup(path: Path, backup: Path) -> None:
    """Keep the present file of `path` under the name `backup`: a second name, no second write."""
    make_directory(backup.parent)
    if backup.exists():
        return
    try:
        os.link(path, backup)
        sync_directory(backup.parent)
    except OSError:  # a file system without hard links
        write_whole(backup, path.read_bytes())


def _replace(temp: Path, path: Path) -> None:
    for left in range(REPLACE_TRIES, -1, -1):
        try:
            os.replace(temp, path)
        except PermissionError:
            if os.name != "nt" or not left:
                raise
            time.sleep(0.01)  # pragma: no cover - only Windows refuses while a reader is there
        else:
            return


def make_directory(directory: Path) -> None:
    """Make `directory`, and what it lies in, durably: a file synced in it is lost with its name.

    It is its owner's alone: the names in a home are those of conversations.
    """
    if directory.is_dir():
        return
    make_directory(directory.parent)
    directory.mkdir(mode=0o700, exist_ok=True)
    sync_directory(directory.parent)


def sync_directory(directory: Path) -> None:
    """Make the names in `directory` durable; a no-op where directories cannot be synced."""
    if os.name == "nt":  # pragma: no cover - Windows has no handle for a directory
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def append(path: Path, data: bytes, *, at: int) -> None:
    """Append `data` to the file at `path`, whose end is at byte `at`, durably.

    On any exception the file is cut back to `at`: what is not acknowledged shall not be there.

    Raises:
        NotAlone: the file does not end at `at`: another writer was here although we hold the lock.
    """
    # Only a file that is to begin is made: one that vanished must not come back empty.
    make = 0 if at else os.O_CREAT
    handle = os.open(path, os.O_RDWR | make | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        if os.fstat(handle).st_size != at:
            raise ConcurrentWrite(path)
        try:
            write_all(handle, data)
            _sync_data(handle)
            if not at:
                sync_directory(path.parent)
            _require_ours(handle, path, data, at)
        except BaseException:
            _cut(handle, at, at + len(data))
            raise
    finally:
        close(handle)


def _require_ours(handle: int, path: Path, data: bytes, at: int) -> None:
    # Either can only be if the lock did not hold: then ours counts if it stands where it belongs.
    found = os.fstat(handle)
    if found.st_size != at + len(data) and os.pread(handle, len(data), at) != data:
        raise ConcurrentWrite(path)
    if not os.path.samestat(found, os.stat(path)):
        raise ConcurrentWrite(path)


def close(handle: int) -> None:
    """Close `handle` of a file that is already synced: an error here would deny what is stored."""
    with contextlib.suppress(OSError):
        os.close(handle)


def _cut(handle: int, at: int, end: int) -> None:
    with contextlib.suppress(OSError):
        if os.fstat(handle).st_size <= end:  # else another's bytes follow
            os.ftruncate(handle, at)
            os.fsync(handle)


def cut_torn_end(path: Path) -> int:
    """Return the length of the file at `path` up to its last whole line, having cut off what follows."""
    if not path.exists():
        return 0
    end = path.stat().st_size
    torn = next(lines_backwards(path), b"\n")
    if not torn.endswith(b"\n"):
        end -= len(torn)
        os.truncate(path, end)
    return end


def lines_backwards(path: Path) -> Iterator[bytes]:
    """Yield the lines of the file at `path`, last first, reading only as much as is asked for."""
    with path.open("rb") as file:
        at = file.seek(0, os.SEEK_END)
        rest = b""
        while at:
            size = min(BLOCK_BYTES, at)
            at = file.seek(at - size)
            lines = (file.read(size) + rest).splitlines(keepends=True)
            rest = lines.pop(0) if at else b""
            yield from reversed(lines)


def leftover_temps(home: Path) -> list[Path]:
    """Return the temp files that killed processes left in `home`."""
    return sorted(home.rglob(f".*{TEMP_SUFFIX}"))


# Deeper than any note, shallower than every codec's own limit (orjson 254, the standard library about 1000).
MAX_DEPTH = 100
# Below this the standard encoder takes under 3 ms, less than importing orjson does.
SMALL_CHARS = 20_000
# Python reads and writes whole numbers of at most 4300 digits, which is 14,280 bits.
MAX_NUMBER_BITS = 14_000


def json_line(value: Any) -> bytes:
    """Return `value` as one line of JSON, without the newline."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:  # a lone surrogate: escaped, it comes back as it was
        return _escaped(value, indent=None)


def _escaped(value: Any, *, indent: int | None) -> bytes:
    text = json.dumps(value, indent=indent, separators=None if indent else (",", ":"), allow_nan=False)
    if json.loads(text) != value:
        raise InvalidInput(
            "it holds the two halves of a surrogate pair as two characters, which JSON cannot tell from one.",
            fix="Join them: text.encode('utf-16', 'surrogatepass').decode('utf-16').",
            where="text",
        )
    return text.encode()


def json_document(value: Any, *, size: int = SMALL_CHARS) -> bytes:
    """Return `value` as an indented document that ends in a newline; `size` guesses its length."""
    if size >= SMALL_CHARS:
        import orjson

        try:
            return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        except (orjson.JSONEncodeError, RecursionError):
            pass
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _escaped(value, indent=2) + b"\n"


def parse_json(data: bytes | str, *, where: str) -> Any:
    """Return the value of JSON `data`.

    Raises:
        CorruptDocument: it is not JSON, not UTF-8, nested too deeply, or holds NaN or Infinity.
    """
    try:
        return json.loads(data, parse_constant=_not_json)
    except json.JSONDecodeError as reason:
        raise _corrupt(f"not JSON (line {reason.lineno}, column {reason.colno}).", where) from reason
    except (UnicodeDecodeError, RecursionError, ValueError) as reason:
        raise _corrupt(f"not JSON ({reason}).", where) from reason


def _not_json(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _corrupt(what: str, where: str) -> CorruptDocument:
    return CorruptDocument(what, fix='Run "aether doctor" to see what can be restored.', where=where)


def checked_json(value: Any, *, where: str, above: int = 0) -> Any:
    """Return `value` unchanged if it is JSON that every reader gives back exactly.

    `above` counts the levels that it will stand below.

    Raises:
        InvalidInput: it holds NaN, Infinity, a key that is not text, a Python object, a number of thousands
            of digits, or more than `MAX_DEPTH` levels.
    """
    level = [value]
    for _ in range(MAX_DEPTH - above):
        below: list[Any] = []
        for entry in level:
            _check_one(entry, where, below)
        if not below:
            return value
        level = below
    raise InvalidInput(
        f"nested more than {MAX_DEPTH} levels deep.", fix="Store it as text, or flatten it.", where=where
    )


def _check_one(entry: Any, where: str, below: list[Any]) -> None:
    kind = type(entry)
    if kind is dict:
        for key in entry:
            if type(key) is not str:
                raise InvalidInput(f"{shown(key)} is not a text key.", fix="Use text keys.", where=where)
        below.extend(entry.values())
    elif kind is list:
        below.extend(entry)
    elif kind is float and not math.isfinite(entry):
        raise InvalidInput(f"{entry} is not JSON.", fix="Use a finite number or null.", where=where)
    elif kind is int and entry.bit_length() > MAX_NUMBER_BITS:
        raise InvalidInput(
            f"a number of {entry.bit_length()} bits cannot be read back.",
            fix="Store it as text.",
            where=where,
        )
    elif entry is not None and kind not in (str, int, float, bool):
        raise InvalidInput(
            f"{shown(entry)} is not JSON.", fix="Use text, numbers, lists, objects.", where=where
        )


FIRST_WAIT_SECONDS = 0.0005
LONGEST_WAIT_SECONDS = 0.02


@contextlib.contextmanager
def locked(home: Path, *, timeout: float | None = None) -> Iterator[None]:
    """Hold the lock of `home` during the block; `timeout` is the configured one where none is given.

    Raises:
        LockTimeout: another process held it for longer than `timeout` seconds.
        NotFound: the home is gone.
        StorageFailed: the home cannot be written.
    """
    path = _path(home)
    if timeout is None:
        timeout = config.or_default(home).lock_timeout_seconds
    if sys.platform == "win32":  # pragma: no cover - the other branch is what the tests run on
        with _by_filelock(path, timeout):
            _go_on(home)
            yield
        return
    with storage_errors(home):
        handle = _acquire(path, timeout)
    try:
        _go_on(home)
        yield
    finally:
        close(handle)  # closing the only descriptor frees the lock


def _go_on(home: Path) -> None:
    """Finish the erasing that a killed process had decided on: nobody may write on a half of it."""
    if os.path.exists(_begun(home)):
        from aether.store.rewrite import finish  # seldom needed

        finish(home)


@lru_cache(maxsize=64)
def _begun(home: Path) -> str:
    return str(home / "erasing")


@lru_cache(maxsize=64)
def _path(home: Path) -> Path:
    return home / "lock"


def _acquire(path: Path, timeout: float) -> int:
    give_up = time.monotonic() + timeout
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            _wait(handle, path, timeout, give_up)
            # The home may have been removed and made again while we waited: then we hold a lock on nothing.
            if os.path.samestat(os.fstat(handle), os.stat(path)):
                _sign(handle)
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _wait(handle: int, path: Path, timeout: float, give_up: float) -> None:
    import fcntl

    wait = FIRST_WAIT_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= give_up:
                raise _timed_out(path, timeout) from None
            import random  # seldom needed, and slow to import

            # Jitter: equal waits would make the same process lose every round.
            time.sleep(wait * (0.5 + random.random()))  # noqa: S311 - spreading waits, not secrets
            wait = min(wait * 2, LONGEST_WAIT_SECONDS)
        else:
            return


def _sign(handle: int) -> None:
    text = f"process {os.getpid()}: {' '.join(map(os.path.basename, sys.argv[:2]))[:60]}".encode(
        errors="replace"
    )
    with contextlib.suppress(OSError):  # the name is for a message; a full disk shows where it matters
        os.pwrite(handle, text.ljust(100) + b"\n", 0)


def _timed_out(path: Path, timeout: float) -> LockTimeout:
    holder = path.read_text(errors="replace").strip() or "another process"
    return LockTimeout(
        f"held by {holder} for more than {timeout:g} s.",
        fix="Wait for it to finish, or stop it; a killed process frees the lock by itself.",
        where=str(path),
    )


@contextlib.contextmanager
def _by_filelock(path: Path, timeout: float) -> Iterator[None]:
    import filelock

    lock = filelock.FileLock(path, timeout=timeout, fallback_to_soft=False)
    with storage_errors(path.parent):
        try:
            lock.acquire()
        except filelock.Timeout:  # an OSError, too
            raise _timed_out(path, timeout) from None
    try:
        yield
    finally:
        lock.release()

"""Files: the one writer of whole files and the one appender of lines.

`write_whole` either replaces the target with all of `data`, durably, or leaves it untouched and leaves
nothing behind; on any exception, Ctrl-C included, the temp file goes. `append` is one write and one
sync; what could not be acknowledged is cut off again. Only a killed process can leave a temp file, and
`doctor` removes those (`TEMP_SUFFIX`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from aether.errors import AetherError, NotFound, StorageFailed

TEMP_SUFFIX = ".aether-tmp"
# Windows refuses to replace a file that a reader holds open; readers close within milliseconds.
REPLACE_TRIES = 20
BLOCK_BYTES = 1 << 16
_sync_data = getattr(os, "fdatasync", os.fsync)


class NotAlone(Exception):
    """Another writer was at a file although the lock was held; `commit` plans anew."""


@contextlib.contextmanager
def storage(where: str | os.PathLike[str], *, left: str = "Nothing was stored.") -> Iterator[None]:
    """Turn an `OSError` of the block into an error of ours that says what is `left` and what to do.

    Raises:
        NotFound: the home, or a directory in it, is gone.
        StorageFailed: read-only, full, or failing.
    """
    try:
        yield
    except (AetherError, NotAlone):
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
            keep_copy(path, backup)
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


def keep_copy(path: Path, backup: Path) -> None:
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
            raise NotAlone(path)
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
        raise NotAlone(path)
    if not os.path.samestat(found, os.stat(path)):
        raise NotAlone(path)


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


def stray_temps(home: Path) -> list[Path]:
    """Return the temp files that killed processes left in `home`."""
    return sorted(home.rglob(f".*{TEMP_SUFFIX}"))

"""Files: how the bytes of a home reach the disk, as JSON and as whole files, under a lock.

`write_whole` replaces a file durably or leaves it as it was, and removes its temp file on every exception; only a
killed process can leave one. The lock of a directory is freed when its holder dies. Files that grow are in `log`.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from aether import clock, regular, seams
from aether.errors import (
    CALL,
    DISK_FAILS,
    AetherError,
    Conflict,
    CorruptDocument,
    InvalidInput,
    LockTimeout,
    NotFound,
    StorageFailed,
    disk_failure,
    shown,
)
from aether.regular import TEMP_SUFFIX as TEMP_SUFFIX  # noqa: PLC0414 - of every file that is not finished
from aether.regular import checksum as checksum  # noqa: PLC0414 - with the other forms in which bytes are stored

# Windows refuses to replace a file that a reader holds open; readers close within milliseconds.
REPLACE_TRIES = 20
# Deeper than any note, shallower than every codec's own limit (orjson 254, the standard library about 1000).
MAX_DEPTH = 100
# Below this the standard encoder takes under 3 ms, less than importing orjson does.
SMALL_CHARS = 20_000
# A list takes some 60 bytes of memory and may have three in a text. A text of JSON may have so many of each, a large one
# so many times fewer than it has bytes: full homes have a list or an object for eighty bytes, and a text for seventeen.
LISTS, TEXTS = (1_000_000, 32), (4_000_000, 8)
# Types of keys, and of values of which nothing has to be checked.
_KEYS, _PLAIN = frozenset({str}), frozenset({str, bool, type(None)})
# One that does not end goes on to the end: to look for its end again and again takes minutes.
_JSON_TEXT = r'(?s)"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
# Python reads and writes whole numbers of at most 4300 digits, which is 14,280 bits.
MAX_NUMBER_BITS = 14_000
# A commit takes about a millisecond, a fold of a full home about twenty: this is hundreds of holders.
LOCK_SECONDS = 30.0
FIRST_WAIT_SECONDS = 0.0005
LONGEST_WAIT_SECONDS = 0.02
# What a person does about a damage that a finding or an error names.
REPAIR = 'Run "aether doctor --repair".'
UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)
# The flag of the system calls that exchange two files, and the directory that Linux takes relative names from.
_EXCHANGE, _HERE = 2, -100
# By directory: the name that the holder of its lock wrote into it.
_HELD: dict[str, bytes] = {}
_DIGITS, _MONTH_CHARS = frozenset("0123456789"), len("2026-03")
# More times its size than any text unpacks to that is not nearly all repetition, and the first bytes of what is packed.
_MOST_TIMES, ZSTD = 250, b"\x28\xb5\x2f\xfd"
# How the name of a packed file ends. A smaller file is not worth packing.
PACKED, WORTH_PACKING = ".zst", 64 * 1024
# History is packed while somebody waits: twice as large as with the default, and ten times as fast.
FAST = 3
# The mark of erasures, and how the first of its two ends.
ERASURES, RUNS = "data/erasures", " runs"
_EXEMPT, _MARK_BYTES = "*", 64
sync_data = getattr(os, "fdatasync", os.fsync)


class EditedMeanwhile(Exception):
    """The file that was to be replaced is not the one that was read: somebody saved it."""

    def __init__(self, path: Path, aside: Path | None = None) -> None:
        super().__init__(path)
        self.path = path
        self.aside = aside
        """Where the saved file is now, if the new one has its place; else it is still at `path`."""


def require_writable(directory: str | os.PathLike[str]) -> None:
    """Raise unless files can be made in `directory`, before long work whose result would be lost.

    Raises:
        StorageFailed: it is read-only.
    """
    if os.path.isdir(directory) and not os.access(directory, os.W_OK):
        fix = DISK_FAILS[errno.EACCES]
        raise StorageFailed("it is read-only. Nothing was done.", fix=fix, where=os.fspath(directory))


@contextlib.contextmanager
def storage_errors(where: str | os.PathLike[str], *, left: str = "Nothing was stored.") -> Iterator[None]:
    """Turn an `OSError` of the block into one of our errors, which says what is `left` and what to do.

    It names the file below `where` that the system names.

    Raises:
        NotFound: the home, or a directory in it, does not exist.
        StorageFailed: the disk is read-only, full or failing.
    """
    try:
        yield
    except AetherError:
        raise  # LockTimeout is an OSError too
    except FileNotFoundError as reason:
        what, fix = "the home, or a part of it, does not exist.", 'Run "aether init", or restore it.'
        raise NotFound(what, fix=fix, where=os.fspath(where)) from reason
    except OSError as reason:
        place, file_name = os.fspath(where), str(reason.filename)
        below = file_name.startswith(f"{place}{os.sep}")
        raise disk_failure(reason, left, where=file_name if below else place) from reason


def unconfirmed(reason: OSError, path: Path, *, part: bool = False) -> StorageFailed:
    """Return the error for a write to `path` that failed and could not be taken back, so that all or a `part` of it is there."""
    failure = disk_failure(
        reason, f"{'A part of it' if part else 'It'} is stored; not confirmed on disk.", where=str(path)
    )
    failure.fix = "Check the disk and look at what is stored before you try again."
    return failure


def write_whole(
    path: Path, data: bytes, *, backup: Path | None = None, is_known: Callable[[Path], bool] | None = None
) -> tuple[int, int, int]:
    """Replace the file at `path` with `data`, durably, and return inode, time of change and size of the new file.

    The old file becomes `backup` if that is given. With `is_known` only a file of which it is true is dropped, even if
    another is saved at the instant of the rename; systems that cannot exchange two files (not Linux or macOS, some
    network disks) ask it just before.

    Raises:
        EditedMeanwhile: the file at `path` is not known; it is still there, or was put aside.
        Conflict: a text was erased since the call that runs read the home.
        StorageFailed: the new file is in its place, but the disk did not confirm it.
        OSError: the old file is in its place.
    """
    require_not_overtaken(path)
    temp = _temp_of(path)
    status: os.stat_result | None = None
    try:
        handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            _share_as_before(handle, path)
            write_all(handle, data)
            os.fsync(handle)
            status = os.fstat(handle)
        finally:
            os.close(handle)
        if backup is not None and path.exists():
            keep_backup(path, backup)
        if is_known is None:
            _replace(temp, path)
        else:
            _replace_known(temp, path, is_known)
        sync_directory(path.parent)
    except BaseException as reason:
        with contextlib.suppress(Exception):
            # Interrupted just after an exchange, it is the old file. One that is not known is kept: doctor looks at it.
            is_new = status is None or os.stat(temp).st_ino == status.st_ino
            if is_new or (is_known is not None and is_known(temp)):
                os.unlink(temp)
        if isinstance(reason, OSError) and status and _is_at(path, status):
            raise unconfirmed(reason, path) from reason
        raise
    return status.st_ino, status.st_mtime_ns, status.st_size


def _share_as_before(handle: int, path: Path) -> None:
    """Give a new file the owner, group and mode of the file at `path`; a new one those of its directory."""
    try:
        regular.share(handle, path, mode=os.stat(path).st_mode & 0o666)
    except OSError:
        regular.share(handle, path.parent)


def _is_at(path: Path, status: os.stat_result) -> bool:
    """Return whether the file of `status` is at `path`, or may be: the disk may fail here, too."""
    try:
        return os.path.samestat(os.stat(path), status)
    except FileNotFoundError:
        return False
    except OSError:
        return True


def write_new(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write the file `path`, which a person named, with the directories above it, and return it.

    Raises:
        Conflict: there is such a file.
        StorageFailed: it cannot be written.
    """
    target = Path(path)
    if target.exists():
        raise Conflict("is there already.", fix="Name another file, or remove it.", where=str(path))
    with storage_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, data)
    return target


def _temp_of(path: Path) -> Path:
    """Return a new name beside `path`, which is no longer than file systems allow, however long that of `path` is."""
    return path.with_name(f".{path.name[:50]}.{os.urandom(6).hex()}{TEMP_SUFFIX}")


def write_all(handle: int, data: bytes) -> None:
    """Write every byte of `data`, in several writes if one is short."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def packed(data: bytes, *, level: int = 9) -> bytes:
    """Return `data` compressed, with a checksum; as it is if nobody would unpack that, because it is nearly all repetition."""
    import zstandard

    compressed = zstandard.ZstdCompressor(level=level, write_checksum=True).compress(data)
    return data if len(data) > _most_unpacked(len(compressed)) and not data.startswith(ZSTD) else compressed


def unpacked(data: bytes, *, where: str) -> bytes:
    """Return the content of `data`, which `packed` made.

    Raises:
        CorruptDocument: it is damaged, cut off, followed by other bytes, or too large.
    """
    import zstandard

    most = _most_unpacked(len(data))
    if len(data) > regular.DOCUMENT_BYTES and not data.startswith(ZSTD):
        return data
    try:
        if (size := zstandard.frame_content_size(data)) > most:
            raise _too_large(f"{size:,} bytes", most, where)
        unpacker = zstandard.ZstdDecompressor()
        return unpacker.decompress(data, max_output_size=most, allow_extra_data=False)
    except zstandard.ZstdError as reason:
        raise CorruptDocument(f"damaged ({reason}).", fix='Run "aether doctor".', where=where) from reason


def gunzipped(data: bytes, *, where: str) -> bytes:
    """Return the content of `data`, which gzip compressed.

    Raises:
        CorruptDocument: it is damaged, cut off, or too large.
    """
    import gzip
    import io
    import zlib

    most = _most_unpacked(len(data))
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            content = file.read(most + 1)
    except (OSError, EOFError, zlib.error) as reason:
        raise CorruptDocument(f"damaged ({reason}).", fix='Run "aether doctor".', where=where) from reason
    if len(content) > most:
        raise _too_large("more", most, where)
    return content


def _most_unpacked(size: int) -> int:
    """Return the most bytes that a packed file of `size` bytes may have unpacked; texts have three to thirty times as many."""
    return min(regular.LOG_BYTES, max(regular.DOCUMENT_BYTES, _MOST_TIMES * size))


def _too_large(size: str, most: int, where: str) -> CorruptDocument:
    what = f"it unpacks to {size}, and of a file of its size at most {most:,} are read."
    return CorruptDocument(what, fix="Look at it, then remove it.", where=where)


def keep_backup(path: Path, backup: Path) -> None:
    """Keep the present file of `path` as `backup`: packed if its name says so, else by a hard link if the disk has them."""
    make_directory(backup.parent)
    if backup.exists():
        return
    if backup.suffix == PACKED:
        write_whole(backup, packed(regular.read(path), level=FAST))
        return
    try:
        os.link(path, backup)
        sync_directory(backup.parent)
    except OSError:
        write_whole(backup, regular.read(path))


def _replace(temp: Path, path: Path) -> None:
    for tries in range(REPLACE_TRIES, -1, -1):
        try:
            os.replace(temp, path)
        except PermissionError:
            if os.name != "nt" or not tries:
                raise
            time.sleep(0.01)  # pragma: no cover - only Windows refuses while a reader is there
        else:
            return


def _replace_known(temp: Path, path: Path, is_known: Callable[[Path], bool]) -> None:
    try:
        if is_known(path) and not path.exists():
            os.link(temp, path)  # fails if somebody saved the file now
        elif _exchange(temp, path):
            # What was at `path` at that instant has the temporary name now: nothing vanishes between look and rename.
            if not is_known(temp):
                aside = _temp_of(path)
                os.rename(temp, aside)
                raise EditedMeanwhile(path, aside)
        elif is_known(path):
            _replace(temp, path)
            return
        else:
            raise EditedMeanwhile(path)
    except (FileExistsError, FileNotFoundError) as reason:
        raise EditedMeanwhile(path) from reason
    os.unlink(temp)


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two files in one step; return False if the system cannot."""
    if sys.platform not in ("linux", "darwin"):  # pragma: no cover - the tests run on the others
        return False
    import ctypes  # only where a document is written

    names = os.fsencode(first), os.fsencode(second)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "linux":
            failed = libc.renameat2(_HERE, names[0], _HERE, names[1], _EXCHANGE)
        else:  # pragma: no cover - the same on macOS
            failed = libc.renamex_np(*names, _EXCHANGE)
    except (OSError, AttributeError):  # a C library without it
        return False
    if not failed:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code), os.fspath(second))


def save(path: Path, data: bytes) -> None:
    """Replace the file at `path` with `data`, durably, in a directory that is made if it is missing.

    Raises:
        NotFound, Conflict, StorageFailed: as `storage_errors`, `make_directory` and `write_whole`.
    """
    with storage_errors(path):
        make_directory(path.parent)
        write_whole(path, data)


def make_directory(directory: Path) -> None:
    """Make `directory` and its parents durably: a file synced in it would be lost with its name.

    Only the owner can read it, and those who use its home: the names in one are those of conversations.
    """
    if directory.is_dir():
        return
    make_directory(directory.parent)
    directory.mkdir(mode=0o700, exist_ok=True)
    if is_in_home(directory):
        regular.share(directory, directory.parent)
    try:
        require_not_overtaken(directory)  # the name may be what was erased, and no lock excludes others here
    except Conflict:
        with contextlib.suppress(OSError):
            directory.rmdir()
        raise
    sync_directory(directory.parent)


def ignore(directory: Path) -> None:
    """Let git ignore `directory`; a `.gitignore` that is there stays, also an empty one."""
    path = directory / ".gitignore"
    if not os.path.lexists(path):
        with storage_errors(path):
            regular.create(path, b"*\n")


def is_in_home(path: Path) -> bool:
    """Return whether a directory above `path` is a home."""
    return any((directory / "data" / "memory.json").exists() for directory in path.parents)


def sync_directory(directory: Path) -> None:
    """Make the names in `directory` durable; a no-op on systems that cannot sync directories."""
    if os.name == "nt":  # pragma: no cover - Windows has no handle for a directory
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync(path: Path) -> None:
    """Make the content of the file at `path` durable."""
    handle = regular.handle(path, os.O_RDWR)
    try:
        sync_data(handle)
    finally:
        os.close(handle)


def close(handle: int) -> None:
    """Close `handle` of a file that is synced; an error is ignored, because the data is stored."""
    with contextlib.suppress(OSError):
        os.close(handle)


def files_ending(directory: Path, suffix: str) -> list[Path]:
    """Return the files of `directory` whose names end in `suffix`; none without the directory."""
    try:
        return [
            directory / name for name in os.listdir(directory) if name.endswith(suffix)
        ]  # a glob compiles a pattern
    except (FileNotFoundError, NotADirectoryError):
        return []


def months_in(directory: Path) -> list[Path]:
    """Return the files of `directory` that are named by their month, oldest first; none without the directory."""
    paths = files_ending(directory, ".jsonl")
    # Another name is that of a copy from another machine (`store.copies`).
    return sorted(
        path
        for path in paths
        if len(path.stem) == _MONTH_CHARS and _DIGITS.issuperset(path.stem.replace("-", "", 1))
    )


def no_files(directory: Path) -> list[Path]:
    """Return what is in `directory`, not below it, in the place of a file: links, pipes, devices, sockets, files of holes.

    Nothing opens them; see `aether.regular`.
    """
    try:
        with os.scandir(directory) as entries:
            paths = [
                entry.path for entry in entries if not entry.is_dir() and not regular.is_readable(entry.path)
            ]
    except OSError:
        return []
    return sorted(map(Path, paths))


def leftover_temps(home: Path, *, most: int = sys.maxsize) -> list[Path]:
    """Return the temp files in `home`, those of writers that run included; at most so many directories are looked into."""
    paths: list[Path] = []
    for directory, directories, names in itertools.islice(os.walk(home), most):
        temps = [
            name for name in (*directories, *names) if name.startswith(".") and name.endswith(TEMP_SUFFIX)
        ]
        directories[:] = [name for name in directories if name not in temps]
        paths += [Path(directory, name) for name in temps]
    return sorted(paths)


# Made once: a third of the time of a short line goes into making an encoder.
_ONE_LINE = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False
).encode


def json_line(value: Any, *, size: int = 0) -> bytes:
    """Return `value` as one line of JSON, without the newline; `size` guesses the length of all lines that are written."""
    return _encoded(value, size, indent=None)


def json_document(value: Any, *, size: int = SMALL_CHARS) -> bytes:
    """Return `value` as an indented document that ends in a newline; `size` guesses its length."""
    return _encoded(value, size, indent=2)


def _encoded(value: Any, size: int, *, indent: int | None) -> bytes:
    """Return JSON as `_json` does, unless `parse_json` would refuse to read it back."""
    data = _json(value, size, indent=indent)
    if words := _excess(data):
        raise InvalidInput(words, fix="Store it as text, or in parts.", where="JSON")
    return data


def _json(value: Any, size: int, *, indent: int | None) -> bytes:
    """Return JSON: large values by orjson, sixty times as fast as the standard library, which writes those that it refuses."""
    if size >= SMALL_CHARS:
        import orjson

        option = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE if indent else 0
        with contextlib.suppress(orjson.JSONEncodeError, RecursionError):
            return orjson.dumps(value, option=option)
    text = (
        json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
        if indent
        else _ONE_LINE(value)
    )
    try:
        return text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        text = json.dumps(value, indent=indent, separators=None if indent else (",", ":"), allow_nan=False)
    if json.loads(text) != value:
        what = "it holds the two halves of a surrogate pair as two characters, which are one in JSON."
        fix = "Join them: text.encode('utf-16', 'surrogatepass').decode('utf-16')."
        raise InvalidInput(what, fix=fix, where="text")
    return text.encode() + (b"\n" if indent else b"")


def parse_json(data: bytes | str, *, where: str) -> Any:
    """Return the value of JSON `data`, exactly: orjson would turn large integers into floats.

    Raises:
        CorruptDocument: it is not JSON, not UTF-8, nested too deeply, holds NaN or Infinity, or far more values than text.
    """
    if words := _excess(data):
        raise _corrupt(words, where)
    try:
        text = data if isinstance(data, str) else data.decode(json.detect_encoding(data), "surrogatepass")
        return _DECODER.decode(text)
    except json.JSONDecodeError as reason:
        raise _corrupt(f"not JSON (line {reason.lineno}, column {reason.colno}).", where) from reason
    except (UnicodeDecodeError, RecursionError, ValueError) as reason:
        raise _corrupt(f"not JSON ({reason}).", where) from reason


def quick_json(data: bytes, *, where: str) -> Any:
    """Return the same as `parse_json` in a third of the time, but whole numbers beyond 64 bits are not exact."""
    import orjson

    if words := _excess(data):
        raise _corrupt(words, where)
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:  # a lone surrogate, or no JSON
        return parse_json(data, where=where)


def quick_lines(values: Iterable[Any]) -> list[bytes]:
    """Return `values` as `json_line` does, but some numbers, in a third of the time; an empty line if orjson refuses one."""
    import orjson

    with contextlib.suppress(orjson.JSONEncodeError):
        return [*map(orjson.dumps, values)]
    return [b""]


def _excess(data: bytes | str) -> str:
    """Return of which values a text has so many that they would take far more memory than itself; usually empty."""
    if len(data) <= LISTS[0]:  # of the smallest values there is one for each byte at most
        return ""
    marks = ("[", "{", '"') if isinstance(data, str) else (b"[", b"{", b'"')
    lists, objects, quotes = (data.count(mark) for mark in marks)  # type: ignore[arg-type]
    most_lists, most_texts = (max(least, len(data) // bytes_each) for least, bytes_each in (LISTS, TEXTS))
    values, texts = lists + objects, quotes // 2
    if values > most_lists or texts > most_texts:  # those within texts count for nothing
        bare, texts = re.subn(_JSON_TEXT, "", data if isinstance(data, str) else data.decode("latin-1"))
        values = bare.count("[") + bare.count("{")
    if values > most_lists:
        return f"it has {values:,} lists and objects in {len(data):,} bytes, more than are read."
    return f"it has {texts:,} texts in {len(data):,} bytes, more than are read." if texts > most_texts else ""


def _reject_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


# Made once: to make a decoder takes as long as reading a short line.
_DECODER = json.JSONDecoder(parse_constant=_reject_constant)


def _corrupt(what: str, where: str) -> CorruptDocument:
    return CorruptDocument(what, fix='Run "aether doctor" to see what can be restored.', where=where)


def checked_json(value: Any, *, where: str, above: int = 0) -> Any:
    """Return `value` unchanged if it is JSON that every reader returns exactly; it will be `above` levels deep.

    Raises:
        InvalidInput: it holds NaN, Infinity, a key that is not text, a Python object, a number of thousands
            of digits, or more than `MAX_DEPTH` levels.
    """
    level = [value]
    for _ in range(MAX_DEPTH - above):
        below: list[Any] = []
        for entry in level:
            kind = type(entry)
            if kind is dict and _KEYS.issuperset(map(type, entry)):
                below += entry.values()
            elif kind is list:
                below += entry
            elif kind not in _PLAIN:
                _check_one(entry, where)
        if not below:
            return value
        level = below
    what = f"nested more than {MAX_DEPTH} levels deep."
    raise InvalidInput(what, fix="Store it as text, or flatten it.", where=where)


def _check_one(entry: Any, where: str) -> None:
    kind = type(entry)
    if kind is dict:
        key = next(key for key in entry if type(key) is not str)
        raise InvalidInput(f"{shown(key)} is not a text key.", fix="Use text keys.", where=where)
    if kind is float and not math.isfinite(entry):
        raise InvalidInput(f"{entry} is not JSON.", fix="Use a finite number or null.", where=where)
    if kind is int and entry.bit_length() > MAX_NUMBER_BITS:
        what = f"a number of {entry.bit_length()} bits cannot be read back."
        raise InvalidInput(what, fix="Store it as text.", where=where)
    if kind not in (int, float):
        fix = "Use text, numbers, lists, objects."
        raise InvalidInput(f"{shown(entry)} is not JSON.", fix=fix, where=where)


@contextlib.contextmanager
def locked(directory: Path, *, timeout: float = LOCK_SECONDS, for_reading: bool = False) -> Iterator[None]:
    """Hold the lock of `directory` during the block; `commit.write_lock` is that of a home.

    On Unix it is `flock` on `<directory>/lock`, the lock that `filelock.FileLock` takes too, without the 28 ms of
    its import; on Windows `filelock` takes it. The name of the holder in the file is only for the error.
    `for_reading`, a directory that may not be written is locked, too, by the file that its last writer left; without one
    nobody writes there.

    Raises:
        LockTimeout: another process held it for longer than `timeout` seconds.
        NotFound: the directory does not exist.
        StorageFailed: the directory cannot be written.
    """
    path = directory / "lock"
    if sys.platform == "win32":  # pragma: no cover - the tests run on the other branch
        import filelock

        lock = filelock.FileLock(path, timeout=timeout, fallback_to_soft=False)
        with storage_errors(directory):
            try:
                with clock.waiting_for(lambda: _wait_words(path, timeout)):
                    lock.acquire()
            except filelock.Timeout:  # an OSError, too
                raise _timed_out(path, timeout) from None
        try:
            yield
        finally:
            lock.release()
        return
    with storage_errors(directory):
        handle = _acquire(path, timeout, for_reading=for_reading)
    if handle is None:
        yield
        return
    try:
        yield
    finally:
        close(handle)  # closing the only descriptor frees the lock


def require_exclusive(directory: Path) -> None:
    """Check that the lock of `directory`, which the caller holds, keeps everybody else out.

    It is taken a second time, which must fail, and must still hold the name of its holder: on some network disks every
    process, or every machine, has a lock of its own.

    Raises:
        Conflict: it does not; nothing may be rewritten here.
    """
    if sys.platform == "win32":  # pragma: no cover - `filelock` refuses where Windows has no locks
        return
    import fcntl

    path = directory / "lock"
    with storage_errors(directory):
        handle = regular.handle(path, os.O_RDWR | os.O_CREAT, is_lock=True)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            name = _HELD.get(str(path))
            if name is not None and os.pread(handle, len(name), 0) == name:
                return
        finally:
            close(handle)
    what = (
        "this file system does not honour locks, so files may not be rewritten here; what was added is kept."
    )
    fix = "Move the home to a local disk, or let only one process use it and mount the disk with locks."
    raise Conflict(what, fix=fix, where=str(path))


def _opened_lock(path: Path, *, for_reading: bool) -> int | None:
    try:
        return regular.handle(path, os.O_RDWR | os.O_CREAT, is_lock=True)
    except OSError as reason:
        if not for_reading or reason.errno not in UNWRITABLE:
            raise
    with contextlib.suppress(FileNotFoundError):
        return regular.handle(path)
    return None


def _acquire(path: Path, timeout: float, *, for_reading: bool) -> int | None:
    give_up = time.monotonic() + timeout
    while True:
        handle = _opened_lock(path, for_reading=for_reading)
        if handle is None:
            return None
        try:
            _wait(handle, path, timeout, give_up)
            # The home may have been removed and made again meanwhile: then we hold a lock on nothing.
            status = os.fstat(handle)
            if os.path.samestat(status, os.stat(path)):
                name = _own_name(os.getpid(), *sys.argv[:2])
                _HELD[str(path)] = b""
                with contextlib.suppress(OSError):  # a full disk shows in the write that follows
                    if status.st_nlink == 1:  # another name of the file may be outside of the home
                        os.pwrite(handle, name, 0)
                        _HELD[str(path)] = name
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


@lru_cache(maxsize=8)
def _own_name(pid: int, *command: str) -> bytes:
    words = " ".join(map(os.path.basename, command))[:60]
    words = f"process {pid}: {words} on {os.uname().nodename}"
    return words.encode(errors="replace")[:100].ljust(100) + b"\n"


def _wait(handle: int, path: Path, timeout: float, give_up: float) -> None:
    import fcntl

    def is_locked() -> bool:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False

    if is_locked():
        return
    import random  # seldom needed, and slow to import

    wait = FIRST_WAIT_SECONDS
    with clock.waiting_for(lambda: _wait_words(path, timeout)):
        while time.monotonic() < give_up:
            # Jitter: equal waits would make the same process lose every round.
            time.sleep(wait * (0.5 + random.random()))  # noqa: S311 - spreading waits, not secrets
            wait = min(wait * 2, LONGEST_WAIT_SECONDS)
            if is_locked():
                return
        if is_locked():
            return
    raise _timed_out(path, timeout)


def _wait_words(path: Path, timeout: float) -> str:
    return f"{_holder(path)}, which has the lock of {path.parent}, for at most {timeout:g} s"


def _holder(path: Path) -> str:
    """Return who holds a lock, as the holder wrote it there: its process id, its command and its machine."""
    return regular.read(path).decode(errors="replace").strip() or "another process"


def _timed_out(path: Path, timeout: float) -> LockTimeout:
    fix = "Wait for it to finish, or stop it; a killed process frees the lock by itself."
    return LockTimeout(f"held by {_holder(path)} for more than {timeout:g} s.", fix=fix, where=str(path))


def move_to_quarantine(home: Path, path: Path) -> Path:
    """Move what is at `path`, whatever it is, into the quarantine of `home` under a name of its own, and return where it is."""
    require_not_overtaken(path)
    target = home / "quarantine" / f"{path.name}.{os.urandom(4).hex()}"
    make_directory(target.parent)
    os.replace(path, target)
    sync_directory(target.parent)
    return target


# --- Erasures: an operation may read a text and write it elsewhere later, and an erasure in between would find neither. So each
# leaves a mark in the home (`store.rewrite`): one before it looks for the text, another when all files are replaced. The call
# of a public function remembers the mark that it met first, `write_whole` and `log.append` compare it before they write, and
# a call that was overtaken is repeated (`errors.public`). A writer compares under a lock that the erasure takes after its
# first mark, so none can write between the two.


def erasure_mark(home: str | os.PathLike[str]) -> str:
    """Return the mark of the last erasure of `home`; empty without one."""
    with contextlib.suppress(OSError, AetherError):
        return regular.read(f"{os.fspath(home)}/{ERASURES}", _MARK_BYTES).decode("ascii", "replace")
    return ""


def note_erasure(home: Path) -> None:
    """Remember the last erasure of `home` for the call that runs, unless it is remembered."""
    if (call := CALL.get()) is not None and str(home) not in call.erasures:
        call.erasures[str(home)] = erasure_mark(home)


def is_overtaken(home: str | os.PathLike[str]) -> bool:
    """Return whether an erasure of `home` runs, or ran, since the call that runs first looked at it."""
    call = CALL.get()
    if call is None or (before := call.erasures.get(os.fspath(home), _EXEMPT)) == _EXEMPT:
        return False
    return before.endswith(RUNS) or erasure_mark(home) != before


def require_not_overtaken(path: str | os.PathLike[str]) -> None:
    """Raise if the home that holds `path` was overtaken; the caller has the lock under which it writes there.

    Raises:
        Conflict: what the call read may hold an erased text, and must not be written.
    """
    call = CALL.get()
    if call is None or not call.erasures:
        return
    place = os.fspath(path)
    for home in call.erasures:
        if place.startswith(f"{home}{os.sep}") and is_overtaken(home):
            what = "a text was erased from the home meanwhile, and what was read before may hold it."
            reason = Conflict(what, fix="Do it again.", where=home)
            reason.overtaken_by = partial(seams.call, "wait for an erasure", Path(home))
            raise reason


def exempt_from_erasures(home: Path) -> None:
    """Let the call that runs compare nothing more: it is the erasure itself."""
    if (call := CALL.get()) is not None:
        call.erasures[str(home)] = _EXEMPT

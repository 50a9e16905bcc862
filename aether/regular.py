"""Regular files: opened without waiting and without following a link, read up to a limit, and their sealed lines.

A home may come from anybody: where one of its files should be there may be a FIFO, a device, a link or gigabytes. All
readers of homes open files here. A sealed line is a JSON object that ends in its checksum.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
import sys

from aether.errors import InvalidDocument, InvalidInput, NotFound, UnsafePath

# A configuration with every setting and its comment has 10 KiB; the parser of TOML is slow.
CONFIG_BYTES = 64 * 1024
# Forty times a full home: the standard library parses it in about a second.
DOCUMENT_BYTES = 64 * 1024 * 1024
# Histories and conversations grow for years; beyond this, one would not fit in memory.
LOG_BYTES = 1024 * 1024 * 1024
# A file of this size whose blocks hold less than half of it is asked whether it has holes; a smaller one costs little.
_ASKED_BYTES = 16 * 1024 * 1024
_BLOCK_BYTES = 512
_NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_AS_IT_IS = getattr(os, "O_NOFOLLOW", 0) | _NO_WAIT
TEMP_SUFFIX = ".aether-tmp"
_MARK = b',"checksum":"'
# OpenSSL is six times as fast as the interpreter itself.
_SMALL_BYTES = 1 << 16
# 64 bits of sha256: they show accidents, and are no protection against the owner of the file.
_CHECKSUM_CHARS = 16
# What systems answer for a link, a FIFO without a reader, a socket, a device without a driver.
_TRIES = 3
_NO_FILE = frozenset({errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP})


def handle(path: str | os.PathLike[str], flags: int = os.O_RDONLY, *, is_lock: bool = False) -> int:
    """Return a descriptor of the regular file at `path`, opened with `flags`; a new file is used by whom `share` says.

    A file with other names, hard links that a home may bring along, is written by nobody: to write, a copy takes its
    place first, unless it `is_lock` and stays the one that others hold.

    Raises:
        UnsafePath: it is a link, a FIFO, a device or a socket, or mostly holes; nothing was read or written.
        OSError: it cannot be opened, or is a directory.
    """
    if not hasattr(os, "O_NOFOLLOW") and os.path.islink(path):  # Windows has no such flag
        raise _refused(path)
    try:
        opened = _opened(path, flags | _AS_IT_IS)
    except OSError as reason:
        if reason.errno in _NO_FILE:
            raise _refused(path) from reason
        raise
    try:
        status = os.fstat(opened)
        if stat.S_ISREG(status.st_mode):
            if not is_lock and _is_hollow(opened, status):
                os.close(opened)
                raise _hollow(path, status)
            if status.st_nlink > 1 and flags & (os.O_WRONLY | os.O_RDWR) and not is_lock:
                _replace_by_copy(os.fspath(path), status)
                os.close(opened)
                return handle(path, flags)
            return opened
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    except OSError as reason:  # of a descriptor the system knows no name
        os.close(opened)
        reason.filename = os.fspath(path)
        raise
    os.close(opened)
    raise _refused(path)


def _is_hollow(opened: int, status: os.stat_result) -> bool:
    """Return whether most of a file are holes, so that gigabytes to read cost whoever made it nothing.

    Aether writes none. Blocks alone do not show it: some disks compress files, others report no blocks at all.
    """
    blocks = getattr(status, "st_blocks", None)
    if status.st_size < _ASKED_BYTES or blocks is None or blocks * _BLOCK_BYTES >= status.st_size // 2:
        return False
    try:
        return os.lseek(opened, 0, os.SEEK_HOLE) < status.st_size
    except (OSError, AttributeError):  # a disk, or a system, that does not say
        return False
    finally:
        os.lseek(opened, 0, os.SEEK_SET)


def is_readable(path: str | os.PathLike[str]) -> bool:
    """Return whether a regular file without large holes is at `path`, which readers open as far as they may."""
    try:
        status = os.lstat(path)
        if stat.S_ISREG(status.st_mode) and status.st_size >= _ASKED_BYTES:
            os.close(handle(path))
    except UnsafePath:
        return False
    except PermissionError:
        return True
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode)


def _opened(path: str | os.PathLike[str], flags: int) -> int:
    if not flags & os.O_CREAT or flags & os.O_EXCL:
        return os.open(path, flags, 0o600)
    for _ in range(_TRIES):
        with contextlib.suppress(FileNotFoundError):
            return os.open(path, flags & ~os.O_CREAT)
        with contextlib.suppress(FileExistsError):
            new = os.open(path, flags | os.O_EXCL, 0o600)
            share(new, os.path.dirname(path))
            return new
    return os.open(path, flags, 0o600)


def share(
    new: int | str | os.PathLike[str], directory: str | os.PathLike[str], mode: int | None = None
) -> None:
    """Let a new file, by its descriptor or name, or a new directory be used by those who use the `directory` that it is in.

    It gets the owner and the group of `directory`; group and others get its `mode`, or may read and write it if they may
    make files there. Two users of a home, or one and the root of a container, write in turn. A mode that the system refuses
    to change stays: then the file is its maker's.
    """
    if os.name == "nt":  # pragma: no cover - Windows has neither
        return
    with contextlib.suppress(OSError):
        _give(new, os.stat(directory or "."), mode)


def _give(new: int | str | os.PathLike[str], like: os.stat_result, mode: int | None) -> None:
    own = os.stat(new)
    rights = 7 if stat.S_ISDIR(own.st_mode) else 6
    if mode is None and like.st_mode & stat.S_ISVTX:
        return  # a directory for everybody's own files, such as /tmp
    if mode is None:
        mode = rights << 6 | sum(rights << shift for shift in (3, 0) if like.st_mode & (2 << shift))
    if (own.st_uid, own.st_gid) != (like.st_uid, like.st_gid):
        try:
            os.chown(new, like.st_uid, like.st_gid)
        except OSError:  # only root may give a file away
            with contextlib.suppress(OSError):
                os.chown(new, -1, like.st_gid)
        if os.stat(new).st_gid != like.st_gid:
            mode &= 0o707  # the group is another
    if mode != stat.S_IMODE(own.st_mode) & 0o777:
        os.chmod(new, stat.S_IMODE(own.st_mode) & 0o7000 | mode)


def _replace_by_copy(path: str, status: os.stat_result) -> None:
    """Put a copy of the file at `path` in its place; its other names keep the file."""
    temp = os.path.join(
        os.path.dirname(path), f".{os.path.basename(path)[:50]}.{os.urandom(6).hex()}{TEMP_SUFFIX}"
    )
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _AS_IT_IS
    try:
        with (
            open(handle(path), "rb") as source,
            open(os.open(temp, flags, status.st_mode & 0o777), "wb") as copy,
        ):
            while data := source.read(1 << 20):
                copy.write(data)
            copy.flush()
            os.fsync(copy.fileno())
        os.replace(temp, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temp)
        raise


def append_line(path: str, line: bytes, most: int) -> None:
    """Append a line to a log; one of `most` bytes is moved beside it, to `.1`, and a new one starts.

    Raises:
        OSError: the disk refused.
        UnsafePath: something else than a file is there.
    """
    with contextlib.suppress(OSError):  # no log yet, or another process was faster
        if os.stat(path).st_size >= most:
            os.replace(path, f"{path}.1")
    descriptor = handle(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def create(path: str | os.PathLike[str], data: bytes) -> None:
    """Make the file at `path`, which only its owner may read, with `data`; what is there stays as it is.

    Raises:
        OSError: it cannot be made.
    """
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _AS_IT_IS, 0o600)
    except FileExistsError:
        return
    with open(handle, "wb") as file:
        file.write(data)


def touch(path: str | os.PathLike[str]) -> None:
    """Give the file at `path` the present time; a new one is empty, and its owner's alone.

    Raises:
        UnsafePath, OSError: as `handle`.
    """
    os.close(handle(path, os.O_WRONLY | os.O_CREAT))
    os.utime(path)


def opened(path: str | os.PathLike[str], most: int | None = None) -> io.BufferedReader:
    """Return the regular file at `path`, which has at most `most` bytes (`LOG_BYTES`), open for reading.

    Raises:
        InvalidDocument: it is larger.
        UnsafePath, OSError: as `handle`.
    """
    most = LOG_BYTES if most is None else most
    file = open(handle(path), "rb")  # noqa: SIM115 - the caller closes it
    if (size := os.fstat(file.fileno()).st_size) > most:
        file.close()
        raise _too_large(path, size, most)
    return file


def read(path: str | os.PathLike[str], most: int = DOCUMENT_BYTES) -> bytes:
    """Return the bytes of the regular file at `path`, which has at most `most`.

    Raises:
        InvalidDocument: it is larger; it was not read.
        UnsafePath, OSError: as `handle`.
    """
    with opened(path, sys.maxsize) as file:
        try:
            size = os.fstat(file.fileno()).st_size
            # Room is made for what is asked for; more follows if it has grown meanwhile.
            data = file.read(size + 1) if size <= most else b""
            data += file.read(most + 1 - len(data)) if len(data) > size else b""
        except OSError as reason:
            reason.filename = os.fspath(path)
            raise
    if max(size, len(data)) > most:
        raise _too_large(path, max(size, len(data)), most)
    return data


def require_readable(size: int, most: int, *, where: str) -> None:
    """Raise InvalidInput for a file of `size` bytes, which would be too large for `read`."""
    if size > most:
        what = f"it would have {size:,} bytes, and at most {most:,} are read."
        raise InvalidInput(what, fix="Forget what is large in it, or start another.", where=where)


def _too_large(path: str | os.PathLike[str], size: int, most: int) -> InvalidDocument:
    what = f"has {size:,} bytes, and at most {most:,} are read."
    return InvalidDocument(what, fix="Restore it from a copy, or move it away.", where=os.fspath(path))


def named(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Return the file that a person named, open for reading; a link is followed.

    A pipe or a device is read only where it was given on purpose: a descriptor such as `/dev/fd/63`, which a shell makes of
    `<(command)`, standard input, and the null device. Nothing is waited for before that is known.

    Raises:
        InvalidInput: it is another pipe or device, or a socket.
        NotFound: it cannot be opened, is a directory, or cannot be read inside its `with`.
    """
    where = os.fspath(path)
    try:
        kind = os.stat(path)
        plain = stat.S_ISREG(kind.st_mode)
        if stat.S_ISDIR(kind.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not plain and not _on_purpose(where, kind):
            what = "is a pipe or a device, and no file."
            raise InvalidInput(what, fix="Name a file, or - for standard input.", where=str(where))
        flags = os.O_RDONLY | (_NO_WAIT if plain else 0)
        return _Named(io.FileIO(path, opener=lambda name, _: os.open(name, flags)))
    except (OSError, ValueError) as reason:  # ValueError: a NUL or a lone surrogate in the name
        if isinstance(reason, InvalidInput):
            raise
        raise _unreadable(where, reason) from reason


class _Named(io.BufferedReader):
    """A file that a person named: the system's error while it is read says which file it is."""

    def __exit__(self, kind: object, reason: object, trace: object) -> None:
        self.close()
        if isinstance(reason, OSError) and reason.errno and reason.filename is None:
            raise _unreadable(self.name, reason) from reason


def _unreadable(path: object, reason: Exception) -> NotFound:
    what = f"cannot be read ({getattr(reason, 'strerror', None) or 'no such name'})."
    return NotFound(what, fix="Name an existing, readable file.", where=str(path))


def _on_purpose(path: str | bytes, kind: os.stat_result) -> bool:
    """Return whether something that is no file is a descriptor of this process, or the null device."""
    parent, name = os.path.split(os.path.abspath(os.fsdecode(path)))
    descriptor = parent in ("/dev/fd", "/proc/self/fd", f"/proc/{os.getpid()}/fd") or path == "/dev/stdin"
    pipe = stat.S_ISFIFO(kind.st_mode) or stat.S_ISSOCK(kind.st_mode)
    null = stat.S_ISCHR(kind.st_mode) and os.path.samestat(kind, os.stat(os.devnull))
    return null or (descriptor and (pipe or os.isatty(int(name) if name.isdecimal() else 0)))


def _refused(path: str | os.PathLike[str]) -> UnsafePath:
    what = "is a link, a pipe or a device, not a regular file."
    return UnsafePath(what, fix="Remove it, or put a regular file there.", where=os.fspath(path))


def _hollow(path: str | os.PathLike[str], status: os.stat_result) -> UnsafePath:
    what = f"has {status.st_size:,} bytes that are mostly holes, which no file of aether has; it is not read."
    return UnsafePath(what, fix="Restore it from a copy, or move it away.", where=os.fspath(path))


def seal(body: bytes) -> bytes:
    """Return the JSON object `body` as a line that ends in its checksum."""
    return body[:-1] + _MARK + checksum(body).encode() + b'"}\n'


def sealed_body(line: bytes) -> bytes | None:
    """Return the JSON of a sealed line without its checksum, or None if it is torn or damaged."""
    body, mark, end = line.rpartition(_MARK)
    if not mark or end.rstrip(b"\r\n") != checksum(body + b"}").encode() + b'"}':
        return None
    return body + b"}"


def checksum(data: bytes | memoryview) -> str:
    """Return the checksum of a line or a document."""
    return digest(data)[:_CHECKSUM_CHARS]


def digest(data: bytes | memoryview) -> str:
    """Return the SHA-256 of `data`, as 64 characters; to load OpenSSL takes a hook as long as all its work."""
    with contextlib.suppress(ImportError):  # not every interpreter has them
        if len(data) > _SMALL_BYTES or "_hashlib" in sys.modules:
            from _hashlib import openssl_sha256  # hashlib imports others, too

            return str(openssl_sha256(data).hexdigest())
        if sys.version_info >= (3, 12):
            from _sha2 import sha256 as small
        else:
            from _sha256 import sha256 as small
        return str(small(data).hexdigest())
    from hashlib import sha256

    return sha256(data).hexdigest()


def is_sha256(text: str) -> bool:
    """Return whether `text` is a SHA-256 in hexadecimal digits, as its `hexdigest` is."""
    return len(text) == 64 and set("0123456789abcdef").issuperset(text)

"""The lock: one per home, held for a commit or a fold only, never while a model is asked.

On Unix it is `flock` on `<home>/lock`, taken directly: that is the very lock which `filelock.FileLock`
takes on the same file, without the 28 ms that importing it costs. Elsewhere `filelock` takes it. A killed
holder frees it at once; the name of a holder in the file is only for the message.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from aether.errors import LockTimeout
from aether.store import config
from aether.store.files import close, storage

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
    with storage(home):
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
    with storage(path.parent):
        try:
            lock.acquire()
        except filelock.Timeout:  # an OSError, too
            raise _timed_out(path, timeout) from None
    try:
        yield
    finally:
        lock.release()

"""Faults: every system call of a block counted, and one of them made to fail or to kill the process.

Syncs are counted but not done: a killed process loses nothing that it wrote, and a real power cut cannot
be staged here. `close` always closes, as the kernel does even when it reports an error.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from aether import regular
from aether.errors import AetherError
from aether.store import files
from tests import children

CALLS = (
    "open", "write", "fsync", "fdatasync", "replace", "link", "unlink", "ftruncate", "truncate", "pwrite", "pread",
    "close", "mkdir", "stat", "fstat", "lstat", "scandir",
)  # fmt: skip


# A failure after one of these is a failure before the next call.
READS = frozenset({"pread", "stat", "fstat", "lstat", "scandir", "io.open", "read"})


class Fault(NamedTuple):
    """What happens at a call: the exception (None: the process is killed), and when."""

    name: str
    make: Callable[[], BaseException] | None
    when: str
    """`before` or `after` the call, or `partly`: after a write of half the bytes."""


def _error(number: int) -> Callable[[], BaseException]:
    return lambda: OSError(number, os.strerror(number))


# Errors that stay, by what fails from some call on: a disk that takes nothing, one whose syncs fail, a full one, one whose
# sectors cannot be read, one without locks, and one that is gone.
_WRITES = frozenset({"write", "pwrite", "ftruncate", "truncate"})
_SYNCS = frozenset({"fsync", "fdatasync", "sync_data"})
STAYING = {
    "writes fail": (errno.EIO, _WRITES | _SYNCS), "syncs fail": (errno.EIO, _SYNCS),
    "full": (errno.ENOSPC, frozenset({"write", "mkdir", "pwrite"})), "reads fail": (errno.EIO, frozenset({"pread", "io.open", "read"})),
    "no locks": (errno.ENOLCK, frozenset({"flock"})), "gone": (errno.EIO, frozenset({*CALLS, "flock", "io.open", "sync_data", "read"}) - {"close"}),
}  # fmt: skip


RAISED = tuple(
    Fault(f"{name} {when}", make, when)
    for name, make in (
        ("ENOSPC", _error(errno.ENOSPC)), ("EIO", _error(errno.EIO)), ("KeyboardInterrupt", KeyboardInterrupt),
    )
    for when in ("before", "after", "partly")
)  # fmt: skip
# Killed after a call is killed before the next one.
KILLED = tuple(Fault(f"SIGKILL {when}", None, when) for when in ("before", "partly"))


def apply_to(name: str, fault: Fault) -> bool:
    """Return whether `fault` is a case of its own at a call of `name`."""
    if name in READS:  # a full disk can be read
        return fault.when == "before" and not fault.name.startswith("ENOSPC")
    return fault.when != "partly" or name == "write"


def cases(names: Sequence[str], kind: str) -> Iterator[tuple[int, str, Fault]]:
    """Yield each call of `names` by its number and name, with each fault of `kind` that can strike it."""
    for number, name in enumerate(names):
        for fault in RAISED if kind == "raised" else KILLED:
            if apply_to(name, fault):
                yield number, name, fault


class Calls:
    """The calls seen so far, and the one (by number, from 0) at which `fault` strikes; it stays for calls that `stays` names."""

    def __init__(
        self, strike: int = -1, fault: Fault | None = None, *, stays: frozenset[str] = frozenset()
    ) -> None:
        self.names: list[str] = []
        self.strike = strike
        self.fault = fault
        self.stays = stays
        self.struck = False

    def wrap(self, name: str, real: Callable[..., Any], *, dry: bool = False) -> Callable[..., Any]:
        """Return `real`, counted; `dry` calls are not made."""

        def call(*args: Any, **kwargs: Any) -> Any:
            self.names.append(name)
            here = len(self.names) - 1 == self.strike or (self.struck and name in self.stays)
            when = self.fault.when if here and self.fault else ""
            if when == "before" and name != "close":
                self._fail(args[0] if args else None)
            if when == "partly":
                real(args[0], bytes(args[1])[: len(args[1]) // 2])
                self._fail()
            try:
                return None if dry else real(*args, **kwargs)
            finally:
                if when:
                    self._fail()

        return call

    def _fail(self, file: object = None) -> None:
        self.struck = True
        if self.fault is not None and self.fault.make is not None:
            error = self.fault.make()
            if isinstance(error, OSError) and isinstance(file, (str, os.PathLike)):
                error.filename = os.fspath(file)  # as the system names it
            raise error
        os.kill(os.getpid(), signal.SIGKILL)


@contextlib.contextmanager
def injected(calls: Calls) -> Iterator[Calls]:
    """Count, and strike, the system calls of the block."""
    saved = [(os, name, getattr(os, name)) for name in CALLS]
    saved += [(fcntl, "flock", fcntl.flock), (io, "open", io.open), (files, "sync_data", files.sync_data)]
    saved.append((regular, "read", regular.read))
    for module, name, real in saved:
        known = "io.open" if module is io else name
        setattr(module, name, calls.wrap(known, real, dry="sync" in name))
    try:
        yield calls
    finally:
        for module, name, real in saved:
            setattr(module, name, real)


@contextlib.contextmanager
def short_writes() -> Iterator[list[int]]:
    """Let every write of the block take at most 7 bytes; the list counts them."""
    real, seen = os.write, [0]

    def write(handle: int, data: Any) -> int:
        seen[0] += 1
        return real(handle, bytes(data)[:7])

    os.write = write
    try:
        yield seen
    finally:
        os.write = real


def in_child(act: Callable[[], None]) -> int:
    """Run `act` in a forked child and return how it ended."""
    return children.ended(children.start(act))


def kill(act: Callable[[], object], calls: Calls) -> None:
    """Run `act` in a forked child, and see that the fault of `calls` kills it."""

    def child() -> None:
        with injected(calls):
            act()

    assert in_child(child) == -signal.SIGKILL


def acknowledged(act: Callable[[], object], calls: Calls) -> bool:
    """Run `act` with the fault of `calls`, which strikes; return whether it returned."""
    if calls.fault.make is None:
        kill(act, calls)
        return False
    try:
        with injected(calls):
            act()
    except (OSError, AetherError, KeyboardInterrupt):
        return False
    finally:
        assert calls.struck
    return True

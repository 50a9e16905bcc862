"""Erasures: what was read before one is not written after it.

An operation may read a text and write it elsewhere later; an erasure (`api.forget`) in between would find neither. So each
erasure leaves a mark in the home (`store.rewrite`): one before it looks for the text, and another when all files are
replaced. The call of a public function remembers the mark that it met first, `files.write_whole` and `log.append` compare it
before they write, and a call that was overtaken is repeated (`errors.public`).

A writer compares under a lock that the erasure takes after its first mark, so none can write between the two.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from pathlib import Path

from aether import regular, seams
from aether.errors import CALL, AetherError, Conflict

FILE = "data/erasures"
# How the first of the two marks ends.
RUNS = " runs"
EXEMPT = "*"
_MOST_BYTES = 64


def mark(home: str | os.PathLike[str]) -> str:
    """Return the mark of the last erasure of `home`; empty without one."""
    with suppress(OSError, AetherError):
        return regular.read(f"{os.fspath(home)}/{FILE}", _MOST_BYTES).decode("ascii", "replace")
    return ""


def note(home: Path) -> None:
    """Remember the last erasure of `home` for the call that runs, unless it is remembered."""
    if (call := CALL.get()) is not None and str(home) not in call.erasures:
        call.erasures[str(home)] = mark(home)


def is_overtaken(home: str | os.PathLike[str]) -> bool:
    """Return whether an erasure of `home` runs, or ran, since the call that runs first looked at it."""
    call = CALL.get()
    if call is None or (before := call.erasures.get(os.fspath(home), EXEMPT)) == EXEMPT:
        return False
    return before.endswith(RUNS) or mark(home) != before


def require_none(path: str | os.PathLike[str]) -> None:
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


def exempt(home: Path) -> None:
    """Let the call that runs compare nothing more: it is the erasure itself."""
    if (call := CALL.get()) is not None:
        call.erasures[str(home)] = EXEMPT

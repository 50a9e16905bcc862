"""Forked children of a test: what they do beside each other, and how each of them ended."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from aether.errors import Conflict

WRITERS = 4


def start(act: Callable[..., object], *args: Any) -> int:
    """Run `act` in a forked child and return its process id; what it raises is printed, and ends it with code 1."""
    child = os.fork()
    if child:
        return child
    code = 0
    try:
        act(*args)
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)
        code = 1
    os._exit(code)


def ended(child: int) -> int:
    """Wait for `child` and return its exit code; if a signal ended it, its number below zero."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def acknowledged(
    home: Path, times: int, write: Callable[[str], object], then: Callable[[], object] = lambda: None
) -> list[str]:
    """Let four children `write` so many names each, at once, and return those whose writing ended without a conflict.

    Each name that was written is followed by a call of `then`, which may end in a conflict too.
    """

    def work(who: int) -> None:
        written = []
        for number in range(times):
            with suppress(Conflict):
                write(f"{who}-{number}")
                written.append(f"{who}-{number}\n")
                then()
        (home / f"acknowledged{who}").write_text("".join(written))

    children = [start(work, who) for who in range(WRITERS)]
    assert [ended(child) for child in children] == [0] * WRITERS
    return [name for who in range(WRITERS) for name in (home / f"acknowledged{who}").read_text().split()]

"""Direct exporters: each event is handed on at once, and no failure reaches the work that it tells of.

For what takes microseconds: a line on stderr, a line in a file, a function of the caller. What needs a
network is `background`.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

from aether.events.event import Event


class Direct:
    """An exporter that gives each event to `put` at once; what `put` raises is counted, and said once."""

    def __init__(self, name: str, put: Callable[[Event], None]) -> None:
        self.name = name
        self.lost = 0
        """Events that were not handed on."""
        self._put = put

    def emit(self, event: Event) -> None:
        """Hand `event` on."""
        try:
            self._put(event)
        except Exception as reason:  # noqa: BLE001 - telling of the work must not end the work
            self.lost += 1
            if self.lost == 1:
                say(self.name, f"an event was lost: {type(reason).__name__}: {reason}")

    def flush(self) -> None:
        """Do nothing: nothing waits."""

    def close(self) -> None:
        """Do nothing: nothing is held."""


def say(who: str, what: str) -> None:
    """Write one line to stderr, if there is one: `[Ariadne] …`."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"[{who}] {what}\n")

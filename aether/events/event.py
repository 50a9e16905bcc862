"""Events: something that happened, said once; an exporter carries it away.

The names are those of facts that other programs watch for: `compact.*` for compaction, `window.*` for the
context manager, `memory.*` for the colony. What an event holds is redacted before any exporter sees it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol

from aether.shapes import JsonObject


class Event(NamedTuple):
    """One thing that happened."""

    name: str
    at: str
    """UTC, as `clock.stamp` writes it."""
    session_id: str
    """The conversation, or the compression, that it happened to."""
    properties: JsonObject
    payload: JsonObject | None = None
    """What is large or private: the text of a summary."""
    status: Literal["ok", "error"] = "ok"


class Exporter(Protocol):
    """Whoever carries events away. No method ever raises or waits for longer than its timeout."""

    def emit(self, event: Event) -> None:
        """Take one event; it may be sent later."""
        ...

    def flush(self) -> None:
        """Send what is waiting."""
        ...

    def close(self) -> None:
        """Send what is waiting and let go of everything."""
        ...

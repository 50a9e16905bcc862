"""Claude Code hooks: the entries that hooks have put into the spool, as records."""

from __future__ import annotations

from aether.messages.record import Record
from aether.shapes import JsonObject


def records(entry: JsonObject, *, line: int = 0) -> list[Record]:
    """Return the records that one entry of the spool holds."""
    raise NotImplementedError

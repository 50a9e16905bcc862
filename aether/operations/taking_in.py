"""Taking in: what hooks have put into the spool becomes working-memory items, each exactly once."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from aether.shapes import JsonObject


class Taken(NamedTuple):
    """What taking in did."""

    entries: int
    """Entries that left the spool."""
    ids: list[str]
    """Items that were stored."""
    compression_needed: bool
    left: str
    """Why entries stay in the spool; empty where none does."""


def take_in(home: Path, *, patience: float = 2.0) -> Taken:
    """Turn what waits in the spool into items and return what that did; never raises for a locked or broken home.

    `patience` is how many seconds it may wait for others in all.
    """
    return Taken(0, [], compression_needed=False, left="")


def session_of(home: Path, session: str) -> JsonObject | None:
    """Return what is known of a session of Claude Code: state, done, first_source, at, revision."""
    return None

"""Recall: what memory knows about something, in three steps that each say what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aether.operations.edge import Home
from aether.shapes import JsonObject


class RecallLine(NamedTuple):
    """One entry of memory in an index or a timeline."""

    id: str
    layer: str
    type: str
    at: str
    """When it was, ISO 8601 in UTC."""
    tokens: int
    """What its full text costs."""
    gist: str
    """Its text on one line, cut."""
    score: float
    """How well it answers, 0.0 in a timeline."""


def recall(query: str, *, limit: int = 10, budget: int | None = None, home: Home = None) -> list[RecallLine]:
    """Return an index of what memory knows about `query`, best first, of at most `budget` tokens."""
    return []


def timeline(id: str, *, before: int = 3, after: int = 3, home: Home = None) -> list[RecallLine]:
    """Return the neighbours in time of the entry `id`, oldest first, it among them."""
    return []


def full(ids: Sequence[str], *, home: Home = None) -> list[JsonObject]:
    """Return the entries `ids` in full, in that order."""
    return []


def prompt_recall(prompt: str, *, budget: int, home: Home = None, session: str = "") -> str:
    """Return what memory strongly has to say to `prompt` as one `<aether-memory …>` block, or ""."""
    return ""

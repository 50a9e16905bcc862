"""The archive: conversations that lose detail as they age, and can be listed, searched, read and brought back.

A conversation is either live (`conversations/`) or archived (`archive/`), never both. Each step is one transaction with a
receipt; the fuller form rests compressed in `archive/grace/` until its grace is over.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from aether.api.home import Home
from aether.errors import public
from aether.types import Finding, JsonObject


class Due(NamedTuple):
    """A conversation whose age asks for a lesser level than it has."""

    id: str
    title: str
    days: int
    score: float
    rule: str
    from_level: str
    to_level: str
    bytes: int
    """Its size on disk now."""


class Ageing(NamedTuple):
    """The result of an ageing pass; in a dry run only the plan."""

    plan: list[Due]
    done: list[JsonObject]
    """The receipts of the steps that were taken."""
    failed: list[Finding]
    """One for each conversation that could not be aged; it stays as it was."""
    saved_bytes: int
    """Bytes on disk before, less those after, as measured; less than 0 while fuller forms rest in grace."""


class Archived(NamedTuple):
    """One archived conversation in a list."""

    id: str
    title: str
    created_at: str
    level: str
    bytes: int
    path: str
    """Relative to the home."""


class ArchivedBatch(NamedTuple):
    """The result of adding conversations to the archive."""

    added: list[Archived]
    failed: list[Finding]


class Restored(NamedTuple):
    """A conversation that was brought back."""

    conversation: JsonObject
    level: str
    exact: bool
    """Whether it is byte for byte what was archived."""
    path: str
    """Where it was written, "" if it was only returned."""


class ArchiveHit(NamedTuple):
    """An archived conversation that matches a query."""

    id: str
    title: str
    created_at: str
    level: str
    score: float
    passage: str
    """The part of it that matches."""
    path: str


@public
def age_archive(
    *, now: datetime | None = None, preset: str | None = None, dry_run: bool = False, forever: bool = False,
    backend: str | None = None, progress: Callable[[int, int], None] | None = None, seconds: float | None = None,
    home: Home = None,
) -> Ageing:  # fmt: skip
    """Age every conversation whose time has come, oldest first, and return the plan, the receipts and the failures.

    `progress` is called with the number of conversations that are done and that of all. After `seconds` no further one is
    started. With `forever` the fuller forms are kept for good.
    """
    raise NotImplementedError


@public
def archive_conversations(conversations: Iterable[Mapping[str, Any]], *, home: Home = None) -> ArchivedBatch:
    """Add conversation dicts to the archive at level `full`; each failure is reported, and the rest goes on."""
    raise NotImplementedError


@public
def archive_files(paths: Iterable[str | os.PathLike[str]], *, home: Home = None) -> ArchivedBatch:
    """Add transcripts and conversation files to the archive at level `full`; each failure is reported."""
    raise NotImplementedError


@public
def restore_conversation(
    id: str, *, output: str | os.PathLike[str] | None = None, home: Home = None
) -> Restored:
    """Bring a conversation back as full as it still is; within its grace exactly as it was."""
    raise NotImplementedError


@public
def list_archived(
    *, month: str | None = None, level: str | None = None, limit: int | None = None, home: Home = None
) -> list[Archived]:
    """Return the archived conversations, newest first; of one `month` (YYYY-MM), at one `level`."""
    raise NotImplementedError


@public
def read_archived(id: str, *, home: Home = None) -> JsonObject:
    """Return the archive file of a conversation."""
    raise NotImplementedError


@public
def search_archive(query: str, *, limit: int = 10, home: Home = None) -> list[ArchiveHit]:
    """Return the archived conversations that match `query`, best first, each with the matching part."""
    raise NotImplementedError


@public
def archive_stats(*, home: Home = None) -> JsonObject:
    """Return the number of archived conversations, their bytes on disk, and how many have each level."""
    raise NotImplementedError


@public
def verify_archive(*, home: Home = None) -> list[Finding]:
    """Check every file of the archive and return the findings, errors first; nothing is changed."""
    raise NotImplementedError


@public
def mark_conversation_important(id: str, marked: bool = True, *, home: Home = None) -> bool:
    """Mark a conversation so that it stays full, or take the mark back; False if there is no such conversation."""
    raise NotImplementedError


@public
def retention_recommendations(
    *, limit: int | None = 100, now: datetime | None = None, home: Home = None
) -> list[JsonObject]:
    """Return what retention recommends for each conversation, the most important first.

    Each has conversation_id, title, created_at, importance_score, should_compress, recommended_level,
    user_marked_important, message_count and retention_reason.
    """
    raise NotImplementedError


@public
def update_retention_policy(changes: Mapping[str, Any], *, home: Home = None) -> JsonObject:
    """Change weights and thresholds of the retention policy, and return the whole policy; `undo` reverses it."""
    raise NotImplementedError


@public
def explain_retention(id: str, *, now: datetime | None = None, home: Home = None) -> JsonObject:
    """Return the decision about one conversation: level, rule, score and its parts, age and what it is counted from."""
    raise NotImplementedError


@public
def migrate_archive(*, home: Home = None) -> list[Path]:
    """Write archive files of older versions as the present one, and return them."""
    raise NotImplementedError

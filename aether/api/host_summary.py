"""Summaries that the host wrote of a conversation: prepare the hand-off for the next one, and store one.

`handoffs.ingest_summary` decides what is stored.
"""

from __future__ import annotations

from pathlib import Path

from aether.api import handoffs
from aether.api.compress import Prepared, has_newer_items, prepare
from aether.api.drain import lock_patience
from aether.api.home import Home, change_snapshot, find, fold_if_possible, now, read
from aether.memory.handoff import phase_to_compress
from aether.memory.ingest import IngestResult
from aether.store import config
from aether.store.commit import Author


def ingest_summary(
    home: Home, summary: str, *, session: str = "", trigger: str = "", by: str = "architect"
) -> IngestResult | None:
    """Store `summary` with the session of the open hand-off and return what that did; None if nothing was stored.

    The same summary of the same host `session` again changes nothing. One undo takes it back.

    Raises:
        LockTimeout: another process was writing; nothing changed, and the hand-off stays open.
    """
    place, at = find(home), now()
    done = change_snapshot(
        place,
        lambda snapshot: handoffs.summary_change(snapshot, summary, session=session, trigger=trigger, now=at),
        Author("compress", by=by, reason="summary of a compaction"),
        settings=hook_settings(place),
    )
    fold_if_possible(place)
    ingested: IngestResult | None = done.result
    return ingested


def prepare_for_summary(home: Home, *, by: str = "queen") -> Prepared:
    """Return the hand-off that the next summary will be stored with: all that working memory holds of the phase."""
    place = find(home)
    phase = phase_to_compress(read(place).documents)
    return prepare(
        phase,
        manual=True,
        new=has_newer_items(phase, place),
        home=place,
        settings=hook_settings(place),
        by=by,
    )


def hook_settings(home: Path) -> config.Config:
    """Return the settings of `home` with the patience of a hook."""
    settings = config.or_default(home)
    return settings._replace(lock_timeout_seconds=min(lock_patience(home), settings.lock_timeout_seconds))

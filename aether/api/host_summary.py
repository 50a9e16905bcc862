"""Summaries that the host wrote of a conversation: prepare the hand-off for the next one, and store one.

`handoffs.ingest_summary` decides what is stored.
"""

from __future__ import annotations

from pathlib import Path

from aether.api import handoffs
from aether.api.compress import Prepared, outgrown, prepare
from aether.api.drain import patience_of
from aether.api.home import Home, change_snapshot, find, fold_after, now, read
from aether.memory.handoff import phase_to_compress
from aether.memory.ingest import Ingested
from aether.store import config
from aether.store.commit import Author


def ingest_summary(
    home: Home, summary: str, *, session: str = "", trigger: str = "", by: str = "architect"
) -> Ingested | None:
    """Store `summary` with the session of the open hand-off and return what that did; None if nothing was stored.

    The same summary of the same host `session` again changes nothing. One undo takes it back.

    Raises:
        LockTimeout: another process was writing; nothing changed, and the hand-off stays open.
    """
    place, at = find(home), now()
    done = change_snapshot(
        place,
        lambda snapshot: handoffs.ingest_summary(snapshot, summary, session=session, trigger=trigger, now=at),
        Author("compress", by=by, reason="summary of a compaction"),
        settings=patient(place),
    )
    fold_after(place)
    ingested: Ingested | None = done.result
    return ingested


def prepare_for_summary(home: Home, *, by: str = "queen") -> Prepared:
    """Return the hand-off that the next summary will be stored with: all that working memory holds of the phase."""
    place = find(home)
    phase = phase_to_compress(read(place).documents)
    return prepare(phase, manual=True, new=outgrown(phase, place), home=place, settings=patient(place), by=by)


def patient(home: Path) -> config.Config:
    """Return the settings of `home` with the patience of a hook."""
    settings = config.or_default(home)
    return settings._replace(lock_timeout_seconds=min(patience_of(home), settings.lock_timeout_seconds))

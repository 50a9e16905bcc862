"""Compaction summaries: what the host's summariser wrote becomes the session of the prepared hand-off."""

from __future__ import annotations

from aether.memory.ingest import Ingested
from aether.operations.edge import Home


def ingest_summary(home: Home, summary: str, *, session: str = "", trigger: str = "") -> Ingested | None:
    """Store `summary` with the session of the open hand-off and return what that did, or None."""
    return None

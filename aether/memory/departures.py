"""Departures: what leaves memory as a side effect, when the whole of it is taken to another state.

Guaranteed: an item or session that a restore or an undo takes out of memory goes to the archive with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from aether.memory import items, sessions
from aether.memory.changes import joined
from aether.shapes import Change, JsonObject
from aether.store.patch import apply

WHY = "removed"


def departed(before: Mapping[str, Any], after: Mapping[str, Any], *, now: datetime) -> list[JsonObject]:
    """Return the archive records of the items and sessions of memory `before` that are not in `after`."""
    staying = {item["id"] for item in items.items_of(after)}
    gone = [item for item in items.items_of(before) if item["id"] not in staying]
    kept = {session["session_id"] for session in sessions.sessions_of(after)}
    ended = [each["session_id"] for each in sessions.sessions_of(before) if each["session_id"] not in kept]
    records = items.archived(gone, why=WHY, now=now)
    for name in ended:
        records += [{**each, "why": WHY} for each in sessions.evicted(before, name, now=now).appends["items"]]
    return records


def with_archive(documents: Mapping[str, Any], change: Change, *, now: datetime) -> Change:
    """Return `change` with the archive records of what it takes out of memory."""
    memory = documents["memory"]
    records = departed(memory, apply(memory, change.patches.get("memory", [])), now=now)
    return joined(change, Change({}, {"items": records} if records else {}), result=change.result)

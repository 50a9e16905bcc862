"""Snapshots: the exact saved state of the whole colony, and restoring it.

A restore is an ordinary change: a patch from the present documents to those of the snapshot, journalled
and undoable like any other. Counters follow the snapshot; the list of automatic snapshots does not, or
the next snapshot would take the name of one that exists. Guaranteed: items that a restore or an undo
removes from memory move to the archive, and sessions that a restore removes. Files are read and written in `api`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from aether import clock
from aether.errors import AetherError, CorruptDocument, InvalidDocument, shown
from aether.memory import items, sessions, teamwork
from aether.memory.colony import DOCUMENT, MAX_AUTOMATIC_SNAPSHOTS
from aether.store.patch import apply, diff, join_changes
from aether.types import Change, JsonObject, Snapshot

MAX_LABEL_CHARS = 200
# The fields that are long.
CONTENT = ("documents", "conversations")
# The fields that listing and pruning read, with their types.
_METADATA_TYPES = {"snapshot_id": str, "timestamp": str, "label": str, "automatic": bool, "revision": int}

Upgrade = Callable[[str, Any], Any]
"""Brings a saved document, given its name, to the current version."""


def take_snapshot(
    documents: Mapping[str, Any], *, snapshot_id: str, label: str, now: datetime, revision: int,
    automatic: bool = False,
) -> Snapshot:  # fmt: skip
    """Return the snapshot of `documents` at `revision`; a longer label than `MAX_LABEL_CHARS` is cut.

    Raises:
        InvalidInput: a document holds a value that is not JSON.
    """
    return {
        "snapshot_id": snapshot_id, "label": label[:MAX_LABEL_CHARS], "automatic": automatic,
        "timestamp": clock.stamp(now), "revision": revision, "documents": dict(documents),
        "checksum": checksum(documents),
    }  # fmt: skip


def checksum(documents: Mapping[str, Any]) -> str:
    """Return the sha256 of `documents`; the order of keys does not matter.

    >>> checksum({"a": 1, "b": 2}) == checksum({"b": 2, "a": 1})
    True
    """
    from hashlib import sha256

    # ASCII escapes, so that text with a lone surrogate has a checksum too.
    canonical = json.dumps(documents, sort_keys=True, separators=(",", ":"))
    return sha256(canonical.encode()).hexdigest()


def restore(
    documents: Mapping[str, Any], snapshot: Mapping[str, Any], *, current: Upgrade | None = None
) -> Change:
    """Return the change that takes `documents` back to `snapshot`; its result is the names that change.

    `current` is applied to each saved document. A document that the snapshot does not hold does not change.

    Raises:
        CorruptDocument: the checksum of the snapshot does not match.
        InvalidDocument: it holds a document that the colony does not have.
    """
    where = f"snapshot {shown(snapshot.get('snapshot_id'))}"
    saved = snapshot.get("documents")
    if not isinstance(saved, dict) or snapshot.get("checksum") != checksum(saved):
        raise CorruptDocument("its checksum does not match.", fix="Restore another snapshot.", where=where)
    patches = {}
    for name, value in saved.items():
        if name not in documents:
            raise InvalidDocument(
                f"{shown(name)} is not a document of this colony.",
                fix=f"Restore into a colony that has it; this one has {', '.join(documents)}.",
                where=where,
            )
        if name == teamwork.DOCUMENT:  # what was claimed then may be another agent's by now
            continue
        target = current(name, value) if current else value
        if name == DOCUMENT:
            target = {**target, "checkpoints": documents[name]["checkpoints"]}
        patch = diff(documents[name], target)
        if patch:
            patches[name] = patch
    return Change(patches, result=list(patches))


def without_documents(value: Any) -> JsonObject | None:
    """Return the snapshot `value` without its documents; None if it is not a snapshot of ours."""
    if not isinstance(value, dict) or any(
        type(value.get(field)) is not kind for field, kind in _METADATA_TYPES.items()
    ):
        return None
    try:
        clock.parse(value["timestamp"])
    except AetherError:
        return None
    return {field: below for field, below in value.items() if field not in CONTENT}


def sort_key(snapshot: Mapping[str, Any]) -> tuple[int, datetime, str]:
    """Return the key that sorts snapshots oldest first: a clock may be set back, a revision never is."""
    return snapshot["revision"], clock.parse(snapshot["timestamp"]), snapshot["snapshot_id"]


def prunable(snapshots: Iterable[Mapping[str, Any]], *, taken: str = "") -> list[str]:
    """Return the ids of the automatic snapshots beyond the newest that are kept, oldest first.

    Snapshots that a person took are never among them, nor is the one that was just `taken`.
    """
    automatic = [
        snapshot["snapshot_id"] for snapshot in sorted(snapshots, key=sort_key) if snapshot["automatic"]
    ]
    return [
        entry for entry in automatic[: max(0, len(automatic) - MAX_AUTOMATIC_SNAPSHOTS)] if entry != taken
    ]


def archive_removed(
    documents: Mapping[str, Any], change: Change, *, now: datetime, undone: bool = False
) -> Change:
    """Return `change` with the archive records of the items and sessions that it removes from memory.

    A session that was `undone` has none: it would be found beside the items it was made of. The journal keeps it.
    """
    before = documents["memory"]
    after = apply(before, change.patches.get("memory", []))
    ids = {item["id"] for item in items.items_of(after)}
    removed = [item for item in items.items_of(before) if item["id"] not in ids]
    records = items.archive_records(removed, why=items.REMOVED, now=now)
    for session in () if undone else sessions.sessions_of(before):
        if sessions.find_session(after, session["session_id"]) is None:
            evicted = sessions.evict_session(before, session["session_id"], now=now)
            records += [{**item, "why": items.REMOVED} for item in evicted.appends["items"]]
    return join_changes(change, Change({}, {"items": records} if records else {}), result=change.result)

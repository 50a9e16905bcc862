"""Snapshots: exact saved state of the whole colony, and the way back to it.

A restore is an ordinary change: a patch from the present documents to those of the snapshot, journalled
and undoable like any other. Counters follow the snapshot; the list of automatic snapshots does not, or
the next snapshot would take the name of one that exists. Reading and writing the files is the edge's.

Departures: what leaves memory as a side effect, when the whole of it is taken to another state.

Guaranteed: an item or session that a restore or an undo takes out of memory goes to the archive with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from aether import clock
from aether.errors import AetherError, CorruptDocument, InvalidDocument, shown
from aether.memory import items, sessions
from aether.memory.colony import DOCUMENT, MAX_AUTOMATIC_SNAPSHOTS
from aether.store.patch import apply, diff, join_changes
from aether.types import Change, JsonObject, Snapshot

MAX_LABEL_CHARS = 200
# What listing and pruning read, and of what type it is.
_METADATA_TYPES = {"snapshot_id": str, "timestamp": str, "label": str, "automatic": bool, "revision": int}

Upgrade = Callable[[str, Any], Any]


def _as_is(_name: str, value: Any) -> Any:
    return value


def take_snapshot(
    documents: Mapping[str, Any],
    *,
    snapshot_id: str,
    label: str,
    now: datetime,
    revision: int,
    automatic: bool = False,
) -> Snapshot:
    """Return the snapshot of `documents` at `revision`; a longer label than `MAX_LABEL_CHARS` is cut.

    Raises:
        InvalidInput: a document holds what is not JSON.
    """
    return {
        "snapshot_id": snapshot_id,
        "label": label[:MAX_LABEL_CHARS],
        "automatic": automatic,
        "timestamp": clock.stamp(now),
        "revision": revision,
        "documents": dict(documents),
        "checksum": checksum(documents),
    }


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
    documents: Mapping[str, Any], snapshot: Mapping[str, Any], *, current: Upgrade = _as_is
) -> Change:
    """Return the change that takes `documents` back to `snapshot`; its result is the names that change.

    `current` brings a saved document, given its name, to today's version.

    A document that the snapshot does not hold stays as it is.

    Raises:
        CorruptDocument: the snapshot is not what was saved.
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
        wanted = current(name, value)
        if name == DOCUMENT:
            wanted = {**wanted, "checkpoints": documents[name]["checkpoints"]}
        patch = diff(documents[name], wanted)
        if patch:
            patches[name] = patch
    return Change(patches, result=list(patches))


def without_documents(value: Any) -> JsonObject | None:
    """Return the snapshot `value` without its documents; None where it is not a snapshot of ours."""
    if not isinstance(value, dict) or any(
        type(value.get(field)) is not kind for field, kind in _METADATA_TYPES.items()
    ):
        return None
    try:
        clock.parse(value["timestamp"])
    except AetherError:
        return None
    return {field: below for field, below in value.items() if field != "documents"}


def sort_key(snapshot: Mapping[str, Any]) -> tuple[int, datetime, str]:
    """Return what a snapshot is ordered by, older first: a clock may be set back, a revision never is."""
    return snapshot["revision"], clock.parse(snapshot["timestamp"]), snapshot["snapshot_id"]


def prunable(
    snapshots: Iterable[Mapping[str, Any]], *, taken: str = "", keep: int = MAX_AUTOMATIC_SNAPSHOTS
) -> list[str]:
    """Return the ids of the automatic snapshots beyond the `keep` newest, oldest first.

    Snapshots that a person took are never among them, nor is the one that was just `taken`.
    """
    automatic = [each["snapshot_id"] for each in sorted(snapshots, key=sort_key) if each["automatic"]]
    return [each for each in automatic[: max(0, len(automatic) - keep)] if each != taken]


REMOVED = "removed"


def removed_records(
    before: Mapping[str, Any], after: Mapping[str, Any], *, now: datetime
) -> list[JsonObject]:
    """Return the archive records of the items and sessions of memory `before` that are not in `after`."""
    staying = {item["id"] for item in items.items_of(after)}
    gone = [item for item in items.items_of(before) if item["id"] not in staying]
    kept = {session["session_id"] for session in sessions.sessions_of(after)}
    ended = [each["session_id"] for each in sessions.sessions_of(before) if each["session_id"] not in kept]
    records = items.archive_records(gone, why=REMOVED, now=now)
    for name in ended:
        records += [
            {**each, "why": REMOVED}
            for each in sessions.evict_session(before, name, now=now).appends["items"]
        ]
    return records


def archive_removed(documents: Mapping[str, Any], change: Change, *, now: datetime) -> Change:
    """Return `change` with the archive records of what it takes out of memory."""
    memory = documents["memory"]
    records = removed_records(memory, apply(memory, change.patches.get("memory", [])), now=now)
    return join_changes(change, Change({}, {"items": records} if records else {}), result=change.result)

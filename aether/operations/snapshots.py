"""Snapshots of the whole colony: taken by a person or before a transition, listed, restored.

A restore is a change like any other: journalled, and undone by `undo`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aether.errors import AetherError, NotFound, shown
from aether.memory import snapshots
from aether.operations.edge import Author, Home, change, find, new_id, now, read
from aether.paths import file_name, inside
from aether.schemas import check, migrations
from aether.shapes import Change, JsonObject
from aether.store import codec
from aether.store.files import storage, write_whole
from aether.store.lock import locked

# What the list and the pruning of snapshots read; a file without it is not one of ours.
_SHOWN = frozenset({"snapshot_id", "timestamp", "automatic"})


def create_snapshot(label: str = "", *, home: Home = None) -> JsonObject:
    """Save the whole colony as it is and return what was saved, without the documents."""
    return _take(label, home, by_itself=False)


def automatic(label: str, *, home: Home = None) -> str:
    """Save the colony before or after a transition and return the snapshot's id; old ones give way."""
    taken = _take(label, home, by_itself=True)
    place = find(home)
    with locked(place), storage(place):
        for gone in snapshots.expendable(list_snapshots(home=place)):
            _path(place, gone).unlink(missing_ok=True)
    return str(taken["snapshot_id"])


def _take(label: str, home: Home, *, by_itself: bool) -> JsonObject:
    place = find(home)
    state, at = read(place), now()
    taken = snapshots.take(
        state.documents, snapshot_id=new_id("snapshot", at), label=label, now=at, revision=state.revision,
        automatic=by_itself,
    )  # fmt: skip
    path = _path(place, taken["snapshot_id"])
    with locked(place), storage(place):
        path.parent.mkdir(exist_ok=True)
        write_whole(path, codec.document(taken))
    return _outline(taken)


def list_snapshots(*, home: Home = None) -> list[JsonObject]:
    """Return every readable snapshot, newest first, without the documents.

    Raises:
        NotFound: this is not a home.
    """
    place = find(home)
    if not (place / "data").is_dir():
        raise NotFound("is not a home: it has no data/.", fix='Run "aether init" there.', where=str(place))
    found = [_outline(snapshot) for snapshot in _all(place)]
    return sorted(found, key=lambda snapshot: (snapshot["timestamp"], snapshot["snapshot_id"]), reverse=True)


def _all(home: Path) -> Iterator[Any]:
    for path in (home / "snapshots").glob("*.json"):
        try:
            snapshot = codec.parse(path.read_bytes(), where=path.name)
        except AetherError:
            continue  # restoring it says what is wrong; the others are still of use
        if isinstance(snapshot, dict) and snapshot.keys() >= _SHOWN:
            yield snapshot


def _outline(snapshot: Mapping[str, Any]) -> JsonObject:
    return {field: value for field, value in snapshot.items() if field != "documents"}


def _path(home: Path, snapshot_id: str) -> Path:
    return inside(home, f"snapshots/{file_name(snapshot_id, what='snapshot id')}.json")


def restore_snapshot(snapshot_id: str = "latest", *, home: Home = None) -> list[str]:
    """Take the colony back to a snapshot and return the names of the documents that changed.

    Raises:
        NotFound: there is no such snapshot.
        CorruptDocument: it is not what was saved.
        InvalidDocument: it does not fit this aether.
    """
    place = find(home)
    known = list_snapshots(home=place)
    if snapshot_id == "latest" and known:
        snapshot_id = known[0]["snapshot_id"]
    path = _path(place, snapshot_id)
    if not path.exists():
        raise NotFound(
            f"there is no snapshot {shown(snapshot_id)}.", fix='See "aether snapshot list".', where=str(place)
        )
    read_back = codec.parse(path.read_bytes(), where=path.name)
    saved = read_back if isinstance(read_back, dict) else {}

    def plan(documents: Mapping[str, Any]) -> Change:
        return snapshots.restore(documents, saved, current=_valid)

    changed: list[str] = change(place, plan, Author("restore", reason=snapshot_id)).result
    return changed


def _valid(name: str, value: Any) -> Any:
    present = migrations.current(name, value)
    check.require(name, present, fix="Restore another snapshot.")
    return present

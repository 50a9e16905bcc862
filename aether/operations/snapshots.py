"""Snapshots of the whole colony: taken by a person or before a transition, listed, restored.

A restore is a change like any other: journalled, and undone by `undo`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aether.errors import AetherError, NotFound, shown
from aether.memory import departures, snapshots
from aether.operations.edge import Author, Home, change, find, new_id, now, read
from aether.operations.memory_directory import showing
from aether.paths import file_name, inside
from aether.schemas import check, migrations
from aether.shapes import Change, Finding, JsonObject
from aether.store import codec
from aether.store.files import make_directory, storage, write_whole
from aether.store.lock import locked


def create_snapshot(label: str = "", *, home: Home = None) -> JsonObject:
    """Save the whole colony as it is and return what was saved, without the documents."""
    return _take(label, home, by_itself=False)


def automatic(label: str, *, home: Home = None) -> str:
    """Save the colony before or after a transition and return the snapshot's id; old ones give way."""
    taken = _take(label, home, by_itself=True)
    place = find(home)
    snapshot_id = str(taken["snapshot_id"])
    with locked(place), storage(place, left="The snapshot was taken."):
        for gone in snapshots.expendable(list_snapshots(home=place), taken=snapshot_id):
            _path(place, gone).unlink(missing_ok=True)
    return snapshot_id


def _take(label: str, home: Home, *, by_itself: bool) -> JsonObject:
    place = find(home)
    state, at = read(place), now()
    taken = snapshots.take(
        state.documents, snapshot_id=new_id("snapshot", at), label=label, now=at, revision=state.revision,
        automatic=by_itself,
    )  # fmt: skip
    path = _path(place, taken["snapshot_id"])
    with locked(place), storage(place):
        make_directory(path.parent)
        write_whole(path, codec.document(taken))
    return {field: value for field, value in taken.items() if field != "documents"}


def list_snapshots(*, home: Home = None) -> list[JsonObject]:
    """Return every readable snapshot, newest first, without the documents.

    Raises:
        NotFound: this is not a home.
    """
    place = find(home)
    if not (place / "data").is_dir():
        raise NotFound("is not a home: it has no data/.", fix='Run "aether init" there.', where=str(place))
    # Restoring one that is not ours says what is wrong; the others are still of use.
    return sorted(filter(None, dict(_all(place)).values()), key=snapshots.order, reverse=True)


def examine(home: Path) -> list[Finding]:
    """Return the files that are not a snapshot, though they are JSON."""
    return [
        Finding(
            "warning", "unreadable", f"snapshots/{path.name}", "not a snapshot of aether.",
            "Remove it, or restore it from a copy.",
        )
        for path, outline in sorted(_all(home)) if outline is None
    ]  # fmt: skip


def _all(home: Path) -> Iterator[tuple[Path, JsonObject | None]]:
    """Yield every file of JSON with its snapshot, None where it holds none, or another's."""
    for path in (home / "snapshots").glob("*.json"):
        try:
            outline = snapshots.outline(codec.parse(path.read_bytes(), where=path.name))
        except AetherError:
            continue
        yield path, outline if outline and outline["snapshot_id"] == path.stem else None


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

    at = now()

    def plan(documents: Mapping[str, Any]) -> Change:
        restored = snapshots.restore(documents, saved, current=_valid)
        return departures.with_archive(documents, restored, now=at)

    with showing(place):
        changed: list[str] = change(place, plan, Author("restore", reason=snapshot_id)).result
    return changed


def _valid(name: str, value: Any) -> Any:
    present = migrations.current(name, value)
    check.require(name, present, fix="Restore another snapshot.")
    return present

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from aether.errors import CorruptDocument, InvalidDocument
from aether.memory import snapshots
from aether.memory.snapshots import archive_removed
from aether.store.patch import diff
from aether.types import Change
from tests.memory.states import answer
from tests.tables import rows

DATA = Path(__file__).resolve().parents[2] / "data"
NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)


def documents():
    names = ("pheromones", "COLONY_STATE")
    return {name: json.loads((DATA / f"{name}.json").read_text()) for name in names}


def taken(state, **kwargs):
    return snapshots.take_snapshot(
        state, **{"snapshot_id": "snap_1", "label": "by hand", "now": NOW, "revision": 7, **kwargs}
    )


@rows("broken", [{}, {"documents": []}, {"documents": {"memory": {}}}, {"documents": {}, "checksum": "0"}])
def test_a_damaged_snapshot_is_rejected(broken):
    with pytest.raises(CorruptDocument, match="checksum does not match"):
        snapshots.restore(documents(), {"snapshot_id": "snap_1", **broken})


def test_a_snapshot_of_another_kind_of_colony_is_refused():
    with pytest.raises(InvalidDocument, match="'memory' is not a document of this colony"):
        snapshots.restore(documents(), taken({"memory": {}}))


@rows(
    "harm",
    [
        {"timestamp": 5}, {"timestamp": "soon"}, {"snapshot_id": None}, {"automatic": "yes"},
        {"revision": "7"}, {"revision": True}, {"label": []},
    ],
)  # fmt: skip
def test_a_file_with_fields_of_other_types_is_not_a_snapshot(harm):
    assert snapshots.without_documents({**taken({}), **harm}) is None
    assert snapshots.without_documents([]) is None
    assert snapshots.without_documents(taken({}))["snapshot_id"] == "snap_1"


def memory(*entries, sessions=()):
    state = json.loads((Path(__file__).resolve().parents[2] / "data" / "memory.json").read_text())
    state["working_memory"]["items"] = list(entries)
    state["short_term_memory"]["sessions"] = list(sessions)
    return state


def removed_records(before, after):
    """Return what the archive gets when memory `before` becomes `after`."""
    change = Change({"memory": diff(before, after)})
    return archive_removed({"memory": before}, change, now=NOW).appends.get("items", [])


def test_a_removed_session_moves_to_the_archive_whole():
    session = {
        **answer("s1"), "session_id": "s1", "phase": 1, "compressed_tokens": 3, "metadata": {},
        "compressed_at": "2026-03-01T12:00:00Z",
    }  # fmt: skip

    [record] = removed_records(memory(sessions=[session]), memory())

    assert (record["session"], record["why"]) == (session, "removed")
    assert removed_records(memory(), memory(sessions=[session])) == []

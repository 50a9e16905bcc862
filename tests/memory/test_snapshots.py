import copy
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from aether.errors import CorruptDocument, InvalidDocument
from aether.memory import colony as machine
from aether.memory import snapshots
from aether.memory.snapshots import archive_removed
from aether.store.patch import apply, diff
from aether.types import Change
from tests import homes
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


def applied(state, change):
    return {name: apply(value, change.patches.get(name, [])) for name, value in state.items()}


def test_a_snapshot_holds_everything_and_its_checksum():
    state = documents()

    snapshot = taken(state)

    assert snapshot == {
        "snapshot_id": "snap_1",
        "label": "by hand",
        "automatic": False,
        "timestamp": "2026-03-01T10:00:00.000000Z",
        "revision": 7,
        "documents": state,
        "checksum": snapshots.checksum(state),
    }


def test_a_long_label_is_cut():
    assert len(taken({}, label="x" * 999)["label"]) == snapshots.MAX_LABEL_CHARS


def test_text_with_a_lone_surrogate_has_a_checksum():
    assert snapshots.checksum({"a": "\ud800"}) != snapshots.checksum({"a": "?"})


def test_restoring_returns_to_the_saved_state_and_names_the_changed_documents():
    before = documents()
    snapshot = json.loads(json.dumps(taken(before)))
    now = applied(before, machine.transition(before["COLONY_STATE"], "INIT", now=NOW))
    untouched = copy.deepcopy(now)

    change = snapshots.restore(now, snapshot)

    assert change.result == ["COLONY_STATE"]
    assert applied(now, change) == before
    assert now == untouched


def test_restoring_the_present_state_changes_nothing():
    state = documents()

    assert snapshots.restore(state, taken(state)).patches == {}


def test_restoring_does_not_roll_back_the_list_of_snapshots():
    """Were it rolled back, the next automatic snapshot would be counted as the first again."""
    before = documents()
    snapshot = taken(before)
    now = applied(before, machine.transition(before["COLONY_STATE"], "INIT", now=NOW, checkpoint="snap_2"))

    after = applied(now, snapshots.restore(now, snapshot))["COLONY_STATE"]

    assert after["checkpoints"]["automatic"] == ["snap_2"]
    assert after["state_machine"]["transitions_count"] == 0


def test_a_document_that_the_snapshot_lacks_stays():
    state = documents()
    snapshot = taken({"COLONY_STATE": state["COLONY_STATE"]})

    assert snapshots.restore({**state, "pheromones": {"changed": True}}, snapshot).patches == {}


@rows("broken", [{}, {"documents": []}, {"documents": {"memory": {}}}, {"documents": {}, "checksum": "0"}])
def test_a_damaged_snapshot_is_rejected(broken):
    with pytest.raises(CorruptDocument, match="checksum does not match"):
        snapshots.restore(documents(), {"snapshot_id": "snap_1", **broken})


def test_a_snapshot_of_another_kind_of_colony_is_refused():
    with pytest.raises(InvalidDocument, match="'memory' is not a document of this colony"):
        snapshots.restore(documents(), taken({"memory": {}}))


def test_the_ten_newest_automatic_snapshots_and_all_manual_ones_stay():
    kept = [
        taken({}, snapshot_id=f"snap_{nth:02}", now=NOW + timedelta(hours=nth), automatic=nth % 2 == 0)
        for nth in range(26)
    ]

    assert snapshots.prunable(reversed(kept)) == ["snap_00", "snap_02", "snap_04"]
    assert snapshots.prunable(kept[:6]) == []


def test_a_clock_that_was_set_back_makes_no_snapshot_older(monkeypatch):
    monkeypatch.setattr(snapshots, "MAX_AUTOMATIC_SNAPSHOTS", 2)
    kept = [
        taken({}, snapshot_id=f"snap_{nth}", now=NOW - timedelta(days=nth), revision=nth, automatic=True)
        for nth in range(4)
    ]

    assert snapshots.prunable(kept) == ["snap_0", "snap_1"]
    assert snapshots.prunable(kept, taken="snap_0") == ["snap_1"]


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


def test_a_removed_item_moves_to_the_archive():
    one, two = homes.item("one"), homes.item("two")

    records = removed_records(memory(one, two), memory(two))

    assert [(record["item"], record["why"]) for record in records] == [(one, "removed")]


def test_a_removed_session_moves_to_the_archive_whole():
    session = {
        **answer("s1"), "session_id": "s1", "phase": 1, "compressed_tokens": 3, "metadata": {},
        "compressed_at": "2026-03-01T12:00:00Z",
    }  # fmt: skip

    [record] = removed_records(memory(sessions=[session]), memory())

    assert (record["session"], record["why"]) == (session, "removed")
    assert removed_records(memory(), memory(sessions=[session])) == []


def test_a_change_gets_the_archive_records_of_the_items_it_removes():
    documents = {"memory": memory(homes.item("one"))}
    removed = Change({"memory": [{"op": "remove", "path": "/working_memory/items/0"}]}, result="done")

    change = archive_removed(documents, removed, now=NOW)

    assert change.patches == removed.patches
    assert [record["item"]["id"] for record in change.appends["items"]] == ["one"]
    assert change.result == "done"
    assert archive_removed(documents, Change({}), now=NOW).appends == {}

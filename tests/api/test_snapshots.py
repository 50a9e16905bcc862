import json
from datetime import timedelta

import pytest

import aether
from aether.api import admin as operations
from aether.errors import CorruptDocument, InvalidInput, LockTimeout, NotFound
from aether.store.files import locked
from tests import homes
from tests.api.calls import memory, snapshot, whole
from tests.tables import rows


def path_of(home, taken):
    return home / "snapshots" / f"{taken['snapshot_id']}.json"


def test_a_snapshot_is_restored_exactly_and_the_restore_can_be_undone(home):
    first = aether.add_working_memory_item("first", "x", home=home)
    aether.emit_signal("FOCUS", "payments", home=home)
    taken = aether.create_snapshot("before the change", home=home)
    then = snapshot(home)[1]
    aether.clear_working_memory(home=home)
    second = aether.add_working_memory_item("second", "x", home=home)
    aether.start_phase(1, home=home)

    changed = aether.restore_snapshot(taken["snapshot_id"], home=home)

    assert set(changed) == {"memory", "COLONY_STATE"}
    assert snapshot(home)[1]["memory"] == then["memory"]
    assert homes.ids(home) == [first]
    whole(home)
    aether.undo(home=home)
    assert homes.ids(home) == [second]
    assert aether.colony(home=home)["colony_status"]["state"] == "EXECUTING"
    whole(home)


def test_restoring_what_is_there_already_changes_nothing(home):
    aether.create_snapshot(home=home)
    before = snapshot(home)

    assert aether.restore_snapshot(home=home) == []
    assert snapshot(home) == before


def test_the_latest_is_the_newest(home):
    aether.create_snapshot("old", home=home)
    aether.add_working_memory_item("note", "x", home=home)
    aether.create_snapshot("new", home=home)
    aether.clear_working_memory(home=home)

    assert aether.restore_snapshot(home=home) == ["memory"]
    assert len(homes.ids(home)) == 1
    assert [each["label"] for each in aether.list_snapshots(home=home)] == ["new", "old"]


def test_the_list_tells_about_snapshots_without_their_documents(home):
    taken = aether.create_snapshot("a label", home=home)

    [listed] = aether.list_snapshots(home=home)

    assert listed == taken
    assert "documents" not in listed
    assert listed["label"] == "a label"
    assert not listed["automatic"]


def test_a_persons_snapshots_are_never_pruned(home):
    """Defect 20 of the original: a restore took the counter back, and the next checkpoint overwrote one."""
    mine = aether.create_snapshot("mine", home=home)
    for new in ("INIT", "PLANNING", "EXECUTING", "VERIFYING", "COMPLETED", "IDLE"):
        aether.transition_state(new, home=home)

    listed = aether.list_snapshots(home=home)

    assert len(listed) == 11
    assert listed[-1] == mine
    aether.restore_snapshot(mine["snapshot_id"], home=home)
    aether.transition_state("INIT", home=home)
    ids = [each["snapshot_id"] for each in aether.list_snapshots(home=home)]
    assert len(set(ids)) == 11
    assert mine["snapshot_id"] in ids


@rows("name", ["../x", "a/b", "con", "", "x" * 300, "\ud800", "\0", "/etc/passwd", ".."])
def test_a_name_that_is_no_file_name_is_refused(home, name):
    with pytest.raises(InvalidInput, match="snapshot id"):
        aether.restore_snapshot(name, home=home)


def test_a_snapshot_that_is_not_there_is_an_error(home):
    for name in ("snapshot_1_0", "latest"):
        with pytest.raises(NotFound, match="no snapshot"):
            aether.restore_snapshot(name, home=home)


@rows("harm", ["{", "[]", "null", '{"documents": {}}', "edited"])
def test_a_snapshot_that_was_harmed_is_refused_and_hinders_nothing_else(home, harm):
    good = aether.create_snapshot("good", home=home)
    bad = aether.create_snapshot("bad", home=home)
    if harm == "edited":
        saved = json.loads(path_of(home, bad).read_text())
        saved["documents"]["memory"]["working_memory"]["max_capacity_tokens"] = 1
        harm = json.dumps(saved)
    path_of(home, bad).write_text(harm)
    before = snapshot(home)

    with pytest.raises(CorruptDocument):
        aether.restore_snapshot(bad["snapshot_id"], home=home)
    assert snapshot(home) == before
    assert good in aether.list_snapshots(home=home)
    aether.transition_state("INIT", home=home)
    assert aether.restore_snapshot(good["snapshot_id"], home=home) == ["COLONY_STATE"]


def test_any_label_is_kept_up_to_a_length(home):
    assert aether.create_snapshot("../x \ud800 \0", home=home)["label"] == "../x \ud800 \0"
    assert len(aether.create_snapshot("x" * 500, home=home)["label"]) == 200
    assert len(aether.list_snapshots(home=home)) == 2


def test_a_snapshot_is_of_the_last_committed_change(home):
    aether.add_working_memory_item("note", "x", home=home)

    taken = aether.create_snapshot(home=home)

    saved = json.loads(path_of(home, taken).read_text())
    assert saved["documents"]["memory"] == memory(home)
    assert taken["revision"] == homes.anew(home).revision


@pytest.mark.parametrize("harm", [{"timestamp": 5}, {"snapshot_id": "../x"}])
def test_a_snapshot_with_impossible_fields_is_passed_over_and_named(home, harm):
    bad = aether.create_snapshot("bad", home=home)
    good = aether.create_snapshot("good", home=home)
    path_of(home, bad).write_text(json.dumps({**json.loads(path_of(home, bad).read_text()), **harm}))

    assert aether.list_snapshots(home=home) == [good]
    assert [(found.code, found.where) for found in aether.examine(home=home)] == [
        ("unreadable", f"snapshots/{bad['snapshot_id']}.json")
    ]


def test_with_the_clock_set_back_the_newest_snapshots_stay(home, monkeypatch):
    for new in ("INIT", "PLANNING", "EXECUTING", "VERIFYING", "COMPLETED"):
        aether.transition_state(new, home=home)
    monkeypatch.setattr(operations, "now", lambda: homes.NOW - timedelta(days=9999))

    entry = aether.transition_state("IDLE", home=home)

    listed = aether.list_snapshots(home=home)
    assert [each["label"] for each in listed[:2]] == ["post_COMPLETED_to_IDLE", "pre_COMPLETED_to_IDLE"]
    assert entry["checkpoint"] == listed[1]["snapshot_id"]


def test_taking_a_snapshot_waits_for_the_lock_as_long_as_is_configured(home):
    (home / "config.toml").write_text("[store]\nlock_timeout_seconds = 0\n")

    with locked(home), pytest.raises(LockTimeout, match="0 s"):
        aether.create_snapshot(home=home)


def test_what_a_restore_takes_out_of_memory_is_in_the_archive(home):
    aether.create_snapshot(home=home)
    aether.add_working_memory_item("a note about the walrus", "x", home=home)

    aether.restore_snapshot(home=home)

    assert [found["content"] for found in aether.search_memory("walrus", home=home)] == [
        "a note about the walrus"
    ]

"""Administration of a home: init, log, undo, examine, repair and snapshots."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta

import pytest

import aether
from aether.api import admin as home_operations
from aether.api import admin as operations
from aether.api import compact, conversations
from aether.errors import Conflict, CorruptDocument, InvalidInput, NotFound
from tests import homes
from tests.api.calls import memory, snapshot, whole
from tests.tables import rows


def test_a_home_is_made_where_it_is_named(tmp_path, monkeypatch):
    assert aether.init(tmp_path / "one" / ".aether") == tmp_path / "one" / ".aether"
    monkeypatch.setenv("AETHER_HOME", str(tmp_path / "two"))
    assert aether.init() == tmp_path / "two"
    monkeypatch.delenv("AETHER_HOME")
    monkeypatch.chdir(tmp_path)
    assert aether.init() == tmp_path / ".aether"
    whole(tmp_path / ".aether")


def test_making_a_home_again_keeps_everything(home):
    item = aether.add_working_memory_item("note", "x", home=home)

    assert aether.init(home) == aether.init(home.parent) == home
    assert homes.ids(home) == [item]


def test_a_document_is_shown_as_it_is_and_as_it_was(home):
    first = aether.add_working_memory_item("first", "x", home=home)
    then = homes.reopened(home).revision
    aether.add_working_memory_item("second", "x", home=home)
    aether.fold(home=home)

    assert len(aether.show("memory", home=home)["working_memory"]["items"]) == 2
    assert [
        each["id"] for each in aether.show("memory", home=home, revision=then)["working_memory"]["items"]
    ] == [first]
    for document, revision in (("nothing", None), ("../memory", None), ("memory", 99), ("memory", -1)):
        with pytest.raises(NotFound):
            aether.show(document, home=home, revision=revision)


def test_the_log_lists_author_operation_and_reason(home):
    item = aether.add_working_memory_item("note", "x", source="worker_ant", home=home)
    aether.get_working_memory_item(item, home=home)
    aether.fold(home=home)
    aether.update_working_memory_item(item, {"type": "y"}, home=home)

    update, add = aether.log(limit=2, home=home)

    assert (update.operation, update.reason, update.touched) == ("update", item, ["memory"])
    assert (add.operation, add.by) == ("add", "worker_ant")
    assert [line.operation for line in aether.log(limit=3, everything=True, home=home)] == [
        "update",
        "access",
        "add",
    ]
    assert len(aether.log(limit=0, home=home)) == homes.reopened(home).revision - 1


def test_undo_takes_back_the_last_change_that_was_not_undone(home):
    first, second = (aether.add_working_memory_item(name, "x", home=home) for name in ("a", "b"))

    undone = aether.undo(home=home)
    assert (undone.operation, homes.ids(home)) == ("add", [first])
    aether.undo(home=home)
    assert homes.ids(home) == []
    assert [line.operation for line in aether.log(limit=2, home=home)] == ["undo", "undo"]
    aether.undo(homes.reopened(home).revision, home=home)
    assert homes.ids(home) == [first]
    assert second not in homes.ids(home)
    whole(home)


def test_an_undo_without_a_number_goes_on_where_another_process_was_faster(home, monkeypatch):
    for text in ("Use SQLite.", "Use tabs."):
        aether.add_working_memory_item(text, "constraint", home=home)
    real, first = operations._undo, [1]

    def raced(place, parts):
        if first:
            first.clear()
            real(place, parts)
        return real(place, parts)

    monkeypatch.setattr(operations, "_undo", raced)
    aether.undo(home=home)

    assert aether.list_working_memory_items(home=home) == []
    with pytest.raises(Conflict):
        aether.undo(2, home=home)


def test_an_unknown_revision_cannot_be_undone(home):
    with pytest.raises(NotFound, match="revision 99"):
        aether.undo(99, home=home)
    with pytest.raises(Conflict):
        aether.undo(1, home=home)


def test_an_edit_by_hand_that_breaks_the_totals_is_found_and_repaired(home):
    aether.add_working_memory_item("note", "x", home=home)
    aether.fold(home=home)
    path = home / "data" / "memory.json"
    edited = json.loads(path.read_text())
    edited["working_memory"]["items"][0]["token_count"] = 77
    path.write_text(json.dumps(edited))

    assert "derived" in [finding.code for finding in aether.examine(home=home)]
    assert any("current_tokens to 77" in done for done in aether.repair(home=home))
    assert memory(home)["working_memory"]["current_tokens"] == 77
    whole(home)


def test_a_home_that_is_not_there_is_an_error(tmp_path):
    for call in (
        aether.examine,
        aether.fold,
        aether.log,
        aether.get_memory_status,
        aether.list_working_memory_items,
    ):
        with pytest.raises(NotFound):
            call(home=tmp_path / "nowhere")


def test_a_home_whose_documents_do_not_parse_is_reported_as_damaged(home):
    (home / "data" / "memory.json").write_text("{")

    assert aether.examine(home=home) != []


def test_a_value_is_held_against_a_schema(home):
    assert home_operations.check_schema("memory", memory(home)) == []
    assert home_operations.check_schema("memory", {}) != []
    with pytest.raises(InvalidInput):
        home_operations.check_schema("../memory", {})
    with pytest.raises(NotFound):
        home_operations.check_schema("nothing", {})


def test_an_export_holds_the_whole_colony(home):
    item = aether.add_working_memory_item("note", "x", home=home)
    aether.clear_working_memory(home=home)

    exported = aether.export(home=home)

    assert exported.keys() == {
        *("revision", "documents", "items", "receipts", "events", "history", "conversations", "archived")
    }
    assert [each["item"]["id"] for each in exported["items"]] == [item]
    assert json.loads(json.dumps(exported)) == exported


def test_a_broken_configuration_hinders_no_repair(home):
    aether.add_working_memory_item("note", "x", home=home)
    homes.patch(home, {"op": "replace", "path": "/working_memory/current_tokens", "value": 77})
    (home / "config.toml").write_text("garbage [")

    done = aether.repair(home=home)

    assert any("current_tokens" in each for each in done)
    assert [finding.where for finding in aether.examine(home=home)] == ["config.toml"]


def test_items_that_an_undo_removes_are_in_the_archive(home):
    item = aether.add_working_memory_item("a note about the narwhal", "x", home=home)

    aether.undo(home=home)

    assert [found["id"] for found in aether.search_memory("narwhal", home=home)] == [item]
    [record] = aether.export(home=home)["items"]
    assert (record["item"]["id"], record["why"]) == (item, "removed")


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


def test_the_latest_is_the_newest(home):
    aether.create_snapshot("old", home=home)
    aether.add_working_memory_item("note", "x", home=home)
    aether.create_snapshot("new", home=home)
    aether.clear_working_memory(home=home)

    assert aether.restore_snapshot(home=home) == ["memory"]
    assert len(homes.ids(home)) == 1
    assert [each["label"] for each in aether.list_snapshots(home=home)] == ["new", "old"]


def test_the_list_of_snapshots_leaves_their_documents_out(home):
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


@pytest.mark.parametrize("harm", [{"timestamp": 5}, {"snapshot_id": "../x"}])
def test_a_snapshot_with_impossible_fields_is_passed_over_and_named(home, harm):
    bad = aether.create_snapshot("bad", home=home)
    good = aether.create_snapshot("good", home=home)
    path_of(home, bad).write_text(json.dumps({**json.loads(path_of(home, bad).read_text()), **harm}))

    assert aether.list_snapshots(home=home) == [good]
    place = f"snapshots/{bad['snapshot_id']}.json"
    found = [(one.code, one.where) for one in aether.examine(home=home)]
    assert found == [("damaged-file", place), ("unreadable", place)]


def test_with_the_clock_set_back_the_newest_snapshots_stay(home, monkeypatch):
    for new in ("INIT", "PLANNING", "EXECUTING", "VERIFYING", "COMPLETED"):
        aether.transition_state(new, home=home)
    monkeypatch.setattr(operations, "now", lambda: homes.NOW - timedelta(days=9999))

    entry = aether.transition_state("IDLE", home=home)

    listed = aether.list_snapshots(home=home)
    assert [each["label"] for each in listed[:2]] == ["post_COMPLETED_to_IDLE", "pre_COMPLETED_to_IDLE"]
    assert entry["checkpoint"] == listed[1]["snapshot_id"]


def test_items_that_a_restore_removes_are_in_the_archive(home):
    aether.create_snapshot(home=home)
    aether.add_working_memory_item("a note about the walrus", "x", home=home)

    aether.restore_snapshot(home=home)

    assert [found["content"] for found in aether.search_memory("walrus", home=home)] == [
        "a note about the walrus"
    ]


def talked(home):
    """Return a home with a conversation that was compacted twice."""
    said = [{"role": "user", "content": f"message {nth} about the parser " * 20} for nth in range(30)]
    conversations.add_messages("a talk", said, home=home)
    for _ in range(2):
        compact.compact("a talk", conversations.context("a talk", home=home), window=4000, home=home)
        conversations.add_messages("a talk", said[:9], home=home)
    return home


def test_the_log_names_the_compactions_that_can_be_undone(home):
    talked(home)

    lines = [line for line in aether.log(limit=0, home=home) if line.operation == "compact"]

    assert [line.reason for line in lines] == [
        "step 2, undone by \"aether undo --conversation='a talk'\"",
        "step 1",
    ]
    assert {(line.revision, *line.touched) for line in lines} == {(0, "conversations/a%20talk")}
    assert [line.at for line in aether.log(limit=0, home=home)] == sorted(
        (line.at for line in aether.log(limit=0, home=home)), reverse=True
    )
    compact.undo_compaction("a talk", home=home)
    assert [line.operation for line in aether.log(limit=0, home=home)].count("compact") == 1


def test_an_export_holds_the_conversations(home):
    talked(home)

    (found,) = aether.export(home=home)["conversations"]

    assert found["conversation"] == "a talk"
    assert found["history"] == conversations.full_history("a talk", home=home)
    assert found["context"] == conversations.context("a talk", home=home)
    assert [receipt["step"] for receipt in found["compactions"]] == [1, 2]


def test_a_snapshot_brings_back_a_conversation_that_is_missing_and_leaves_the_others(home):
    path = conversations.conversations.path_of(talked(home), "a talk")
    conversations.add_messages("other", [{"role": "user", "content": "one"}], home=home)
    before = path.read_bytes()
    taken = aether.create_snapshot(home=home)
    assert "conversations" not in taken
    assert [list(one) for one in aether.list_snapshots(home=home)] == [list(taken)]
    conversations.add_messages("other", [{"role": "user", "content": "two"}], home=home)
    shutil.rmtree(path.parent)

    assert aether.restore_snapshot(taken["snapshot_id"], home=home) == ["conversation a talk"]

    assert path.read_bytes() == before
    assert len(conversations.context("other", home=home)) == 2
    assert aether.examine(home=home) == []

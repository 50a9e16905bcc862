import json

import pytest

import aether
from aether.api import admin as home_operations
from aether.errors import Conflict, InvalidInput, NotFound
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


@rows("name", ["\0", "a\0b", "\ud800"])
def test_a_name_that_cannot_be_a_directory_is_refused(name):
    with pytest.raises(InvalidInput, match="cannot be a path"):
        aether.init(name)


def test_folding_writes_the_documents(home):
    aether.add_working_memory_item("note", "x", home=home)

    revision = aether.fold(home=home)

    on_disk = json.loads((home / "data" / "memory.json").read_text())
    assert len(on_disk["working_memory"]["items"]) == 1
    assert revision == homes.anew(home).revision
    assert aether.fold(home=home) == revision


def test_a_document_is_shown_as_it_is_and_as_it_was(home):
    first = aether.add_working_memory_item("first", "x", home=home)
    then = homes.anew(home).revision
    aether.add_working_memory_item("second", "x", home=home)
    aether.fold(home=home)

    assert len(aether.show("memory", home=home)["working_memory"]["items"]) == 2
    assert [
        each["id"] for each in aether.show("memory", home=home, revision=then)["working_memory"]["items"]
    ] == [first]
    for document, revision in (("nothing", None), ("../memory", None), ("memory", 99), ("memory", -1)):
        with pytest.raises(NotFound):
            aether.show(document, home=home, revision=revision)


def test_the_log_tells_who_did_what_and_why(home):
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
    assert len(aether.log(limit=0, home=home)) == homes.anew(home).revision - 1


def test_undo_takes_back_the_last_change_that_was_not_undone(home):
    first, second = (aether.add_working_memory_item(name, "x", home=home) for name in ("a", "b"))

    undone = aether.undo(home=home)
    assert (undone.operation, homes.ids(home)) == ("add", [first])
    aether.undo(home=home)
    assert homes.ids(home) == []
    assert [line.operation for line in aether.log(limit=2, home=home)] == ["undo", "undo"]
    aether.undo(homes.anew(home).revision, home=home)
    assert homes.ids(home) == [first]
    assert second not in homes.ids(home)
    whole(home)


def test_what_was_never_done_cannot_be_undone(home):
    with pytest.raises(NotFound, match="revision 99"):
        aether.undo(99, home=home)
    with pytest.raises(Conflict):
        aether.undo(1, home=home)


def test_an_edit_by_hand_that_breaks_the_totals_is_found_and_mended(home):
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


def test_repairing_what_is_whole_does_nothing(home):
    before = snapshot(home)

    assert aether.repair(home=home) == []
    assert snapshot(home) == before


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


def test_a_home_whose_documents_do_not_parse_is_said_to_be_damaged(home):
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

    assert exported.keys() == {"revision", "documents", "items", "receipts", "events", "history"}
    assert [each["item"]["id"] for each in exported["items"]] == [item]
    assert json.loads(json.dumps(exported)) == exported


def test_a_broken_configuration_hinders_no_repair(home):
    aether.add_working_memory_item("note", "x", home=home)
    homes.patch(home, {"op": "replace", "path": "/working_memory/current_tokens", "value": 77})
    (home / "config.toml").write_text("garbage [")

    done = aether.repair(home=home)

    assert any("current_tokens" in each for each in done)
    assert [finding.where for finding in aether.examine(home=home)] == ["config.toml"]


def test_what_an_undo_takes_out_of_memory_is_in_the_archive(home):
    item = aether.add_working_memory_item("a note about the narwhal", "x", home=home)

    aether.undo(home=home)

    assert [found["id"] for found in aether.search_memory("narwhal", home=home)] == [item]
    [record] = aether.export(home=home)["items"]
    assert (record["item"]["id"], record["why"]) == (item, "removed")


def test_a_new_home_begins_with_a_revision_of_our_own(tmp_path):
    home = aether.init(tmp_path / ".aether")

    assert [(line.operation, line.by) for line in aether.log(home=home)] == [("init", "aether")]

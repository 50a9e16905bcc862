import json
import os
import threading

import pytest

from aether.errors import Conflict, CorruptDocument, InvalidDocument, NotFound, UnsafePath
from aether.store import documents, snapshot
from aether.store import snapshot as store_snapshot
from aether.store.commit import fold_home
from tests import homes


def memory_file(home):
    """Return the path of memory.json."""
    return home / "data" / "memory.json"


def edit(home, change):
    """Edit memory.json as a person would: its members, with the stamp left as it is."""
    value = json.loads(memory_file(home).read_text())
    change(value)
    memory_file(home).write_text(json.dumps(value, indent=2))


def test_a_directory_without_data_is_not_a_home(tmp_path):
    with pytest.raises(NotFound, match="is not a home"):
        store_snapshot.load(tmp_path)


def test_the_state_is_the_documents_and_the_journal_after_them(home):
    homes.add(home, "folded")
    fold_home(home, now=homes.NOW)
    homes.add(home, "unfolded")

    found = homes.anew(home)

    assert [item["id"] for item in found.documents["memory"]["working_memory"]["items"]] == [
        "folded",
        "unfolded",
    ]
    assert found.changed == {"memory"}
    assert found.revision == 3


def test_an_unchanged_home_is_not_read_again(home):
    first = store_snapshot.load(home)

    assert store_snapshot.load(home) is first


def test_only_new_lines_are_read_when_the_journal_grew(home, monkeypatch):
    homes.add(home, "one")
    old = homes.anew(home)
    homes.add(home, "two")
    store_snapshot.remember(old)
    monkeypatch.setattr(store_snapshot, "_read", os.abort)

    found = store_snapshot.load(home)

    assert [item["id"] for item in found.documents["memory"]["working_memory"]["items"]] == ["one", "two"]
    assert found.documents["pheromones"] is old.documents["pheromones"]


def test_a_snapshot_is_not_changed_by_what_comes_after_it(home):
    before = store_snapshot.load(home)
    kept = json.dumps(before.documents)

    homes.add(home, "later")

    assert json.dumps(before.documents) == kept


def test_a_fold_is_noticed(home):
    homes.add(home, "one")
    old = homes.anew(home)
    fold_home(home, now=homes.NOW)
    store_snapshot.remember(old)

    assert store_snapshot.load(home).documents == old.documents
    assert store_snapshot.load(home).stamps["memory"] == 2


def test_another_journal_with_the_inode_of_the_old_one_is_read_whole(home):
    """A new journal may get the inode of an old one; then its bytes after the old end are no line of ours."""
    homes.add(home, "one")
    homes.add(home, "two")
    snapshot = homes.anew(home)
    ids = snapshot.files
    store_snapshot.remember(
        snapshot._replace(end=snapshot.end - 30, revision=1, files=((ids[0][0], 0, ids[0][2] - 30), *ids[1:]))
    )

    assert store_snapshot.load(home).revision == 3
    assert not store_snapshot.load(home).torn


def test_damage_found_while_following_is_an_error_as_on_opening(home):
    homes.add(home, "one")
    store_snapshot.load(home)
    with store_snapshot.journal_path(home).open("ab") as file:
        file.write(b"garbage\n" + snapshot.entry_line(snapshot.Entry(9, "", "", "x", "", {}, {}, {})))

    with pytest.raises(CorruptDocument, match="revision 9 follows"):
        store_snapshot.load(home)


def test_a_reader_between_the_files_of_a_fold_tries_again(home, monkeypatch):
    homes.add(home, "one")
    real, calls = store_snapshot.read_journal, []

    def read_journal(place):
        found = real(place)
        if not calls:
            calls.append(place)
            threading.Thread(target=fold_home, args=(place,), kwargs={"now": homes.NOW}).run()
        return found

    monkeypatch.setattr(store_snapshot, "read_journal", read_journal)

    assert homes.ids(home) == ["one"]


def test_a_home_that_never_holds_still_is_said_to_be_so(home, monkeypatch):
    ticks = iter(range(10**6))
    monkeypatch.setattr(store_snapshot, "file_ids", lambda place: ((next(ticks), 0, 0),))
    monkeypatch.setattr(store_snapshot, "READ_WAIT_SECONDS", 0)

    with pytest.raises(Conflict, match="kept changing"):
        homes.anew(home)


@pytest.mark.parametrize("name", documents.ALWAYS)
def test_a_deleted_document_is_rebuilt(home, name):
    homes.add(home, "one")
    known = store_snapshot.load(home).documents[name]
    documents.path_of(home, name).unlink()

    found = homes.anew(home)

    assert found.documents[name] == known
    assert found.irregular[name].state == "missing"


def test_a_journal_that_was_deleted_takes_only_what_was_not_folded(home):
    homes.add(home, "folded")
    fold_home(home, now=homes.NOW)
    homes.add(home, "lost")
    store_snapshot.journal_path(home).unlink()

    assert homes.ids(home) == ["folded"]
    homes.add(home, "next")
    assert homes.ids(home) == ["folded", "next"]


def test_a_document_of_a_newer_aether_is_left_alone(home):
    value = {**store_snapshot.load(home).documents["memory"], "schema_version": 99}
    documents.write(home, "memory", value, 1)

    with pytest.raises(InvalidDocument, match="newer aether"):
        homes.anew(home)


def test_a_document_that_nothing_can_rebuild_is_an_error(home):
    homes.add(home, "one")
    for path in snapshot.month_files(home):
        path.unlink()
    memory_file(home).write_bytes(b"{")

    with pytest.raises(CorruptDocument, match="neither a backup nor the journal"):
        homes.anew(home)


def test_a_rebuild_that_stops_short_does_not_pass_for_the_present(home):
    for number in range(3):
        homes.add(home, f"item{number}")
        fold_home(home, now=homes.NOW)
    month = snapshot.month_files(home)[0]
    month.write_bytes(b"".join(month.read_bytes().splitlines(keepends=True)[:-2]))
    for path in documents.backups(home, "memory")[1:]:
        path.unlink()
    memory_file(home).write_bytes(b"{")

    with pytest.raises(CorruptDocument, match=r"memory\.json"):
        homes.anew(home)


def test_an_edit_without_history_keeps_what_the_journal_says_after_it(home):
    homes.add(home, "folded")
    fold_home(home, now=homes.NOW)
    homes.add(home, "unfolded")
    edit(home, lambda value: value["working_memory"].update(description="mine"))
    for path in snapshot.month_files(home):
        path.unlink()
    for path in documents.backups(home, "memory"):
        path.unlink()

    found = homes.anew(home).documents["memory"]["working_memory"]

    assert found["description"] == "mine"
    assert [item["id"] for item in found["items"]] == ["folded", "unfolded"]


def test_a_state_may_be_replayed_up_to_a_revision():
    entries = [
        snapshot.Entry(
            number, "", "", "x", "", {"memory": [{"op": "replace", "path": "/n", "value": number}]}, {}, {}
        )
        for number in (1, 2, 3)
    ]

    assert store_snapshot.replay({"n": 0}, "memory", entries, after=0, until=2) == {"n": 2}
    assert store_snapshot.replay({"n": 0}, "other", entries, after=0) == {"n": 0}


@pytest.mark.parametrize("name", ["data/journal.jsonl", "data/memory.json", "archive", "hooks/spool"])
def test_a_home_of_which_a_part_lies_elsewhere_is_not_used(home, tmp_path, name):
    other = tmp_path / "elsewhere"
    other.mkdir()
    place = home / name
    place.parent.mkdir(exist_ok=True)
    if place.exists():
        place.rename(other / "was")
    place.symlink_to(other / "was")

    with pytest.raises(UnsafePath, match="leads out of the home"):
        homes.anew(home)


def test_a_link_within_the_home_is_followed(home):
    (home / "data" / "memory.json").rename(home / "mine.json")
    (home / "data" / "memory.json").symlink_to(home / "mine.json")

    assert homes.anew(home).revision >= 0

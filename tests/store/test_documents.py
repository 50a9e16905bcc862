"""Documents and their stamps, hand edits and damaged files, and documents that a home may never have."""

from __future__ import annotations

import json
import os
import shutil

import pytest

import aether
from aether.errors import AetherError, Conflict, CorruptDocument, InvalidDocument, NotFound
from aether.store import doctor, documents, files, log, snapshot
from aether.store import journal as journals
from aether.store.authors import Author
from aether.store.commit import commit, fold, fold_home, write_lock
from aether.store.undo import entries_newest_first, states_since, undo
from aether.types import Change
from tests import homes
from tests.tables import rows


def test_a_written_document_reads_back_with_its_revision(home):
    documents.write(home, "memory", {"a": [1]}, 7)

    assert documents.read(documents.path_of(home, "memory")) == documents.Document("good", {"a": [1]}, 7)
    assert documents.read_revision(documents.path_of(home, "memory")) == 7


@rows("value", [{"a": {}}, {"a": "x" * 40_000}, {"a": "\ud800"}, {"stamp2": [1e16]}])
def test_every_document_has_a_stamp_that_holds(value):
    data = documents.encode(value, 3, size=len(str(value)))

    assert documents.parse(data, where="memory") == documents.Document("good", value, 3)


@rows(
    ("change", "state", "revision"),
    [
        (lambda data: data.replace(b'"a": 1', b'"a": 2'), "edited", 7),
        (lambda data: json.dumps(json.loads(data)).encode(), "edited", 7),
        (lambda data: data.replace(b"\n", b"\r\n"), "edited", 7),
        (lambda data: b'{"a": 1}', "unstamped", 0),
        (lambda data: b'{"a": 1, "stamp": "x"}', "unstamped", 0),
        (lambda data: b'{"a": 1, "stamp": {"revision": true}}', "unstamped", 0),
        (lambda data: b'{"a": 1, "stamp": {"revision": -1}}', "unstamped", 0),
        (lambda data: b"", "corrupt", 0),
        (lambda data: b"null", "corrupt", 0),
        (lambda data: b"[]", "corrupt", 0),
        (lambda data: data[:-20], "corrupt", 0),
    ],
)
def test_what_was_done_to_a_file_is_noticed(change, state, revision):
    data = documents.encode({"a": 1}, 7, size=0)

    found = documents.parse(change(data), where="memory")

    assert (found.state, found.revision) == (state, revision)


def test_there_are_only_the_known_documents(home):
    with pytest.raises(NotFound, match=r"'\.\./x' is not a document"):
        documents.path_of(home, "../x")


def test_the_three_versions_before_are_kept(home):
    for revision in range(1, 9):
        documents.write(home, "memory", {"n": revision}, revision)

    kept = documents.backups(home, "memory")

    assert [documents.read(path).revision for path in kept] == [5, 6, 7]
    assert documents.newest_good_backup(home, "memory", until=5).value == {"n": 5}


def test_the_versions_of_a_large_document_are_packed_and_rebuild_it(home):
    long = "a note of many words, said again " * 3_000
    homes.add(home, "long", long)
    fold_home(home, now=homes.NOW)
    homes.add(home, "short")
    fold_home(home, now=homes.NOW)
    homes.add(home, "last")
    newest = documents.backups(home, "memory")[-1]
    month = journals.month_files(home)[0]
    month.write_bytes(month.read_bytes().splitlines(keepends=True)[-1])

    documents.path_of(home, "memory").write_bytes(b"{")

    assert (newest.suffix, newest.stat().st_size < 5_000) == (".zst", True)
    assert homes.ids(home) == ["long", "short", "last"]
    newest.write_bytes(newest.read_bytes()[:-5])
    assert [finding.where for finding in doctor.examine(home) if finding.code == "damaged-copy"] == [
        f"data/backups/{newest.name}"
    ]


def test_a_damaged_backup_is_passed_over(home):
    for revision in range(2, 5):
        documents.write(home, "memory", {"n": revision}, revision)
    documents.backups(home, "memory")[-1].write_bytes(b"{")

    assert documents.newest_good_backup(home, "memory", until=9).value == {"n": 2}


def test_two_quarantines_of_one_instant_are_both_kept(home):
    at = "2026-03-01T10:15:00.000000Z"

    kept = [documents.quarantine(home, "memory", data, at=at) for data in (b"one", b"two", b"three")]

    assert [path.read_bytes() for path in kept] == [b"one", b"two", b"three"]
    assert kept[0].name == "memory.corrupt-20260301T101500000000Z"


@rows("name", ["n" * 250, "ä" * 120, "x" * 200])
def test_a_file_with_a_long_name_has_room_in_quarantine(tmp_path, name):
    home = homes.fresh(tmp_path)
    at = "2026-03-01T10:15:00.000000Z"

    kept = [documents.quarantine(home, each, b"held", at=at) for each in (name, name, f"{name}2")]

    assert len({path.name for path in kept}) == 3
    assert all(path.read_bytes() == b"held" and path.name.startswith(name[:50]) for path in kept)


@pytest.fixture
def lived(home):
    """Return a home with two folds behind it and one line in the journal."""
    for name in ("one", "two"):
        homes.add(home, name, f"note {name}")
        fold_home(home, now=homes.NOW)
    homes.add(home, "three", "note three")
    return home


def memory_file(home):
    return documents.path_of(home, "memory")


def edit(home, change):
    """Edit memory.json as a person would: members change, the stamp stays, the layout is another tool's."""
    value = json.loads(memory_file(home).read_text())
    change(value)
    memory_file(home).write_text(json.dumps(value, indent=4, sort_keys=True))


def working(home):
    return homes.reopened(home).documents["memory"]["working_memory"]


def operations(home):
    return [entry.operation for entry in entries_newest_first(homes.reopened(home))]


def kept_aside(home):
    """Return what lies in quarantine."""
    return [path.read_bytes() for path in sorted((home / "quarantine").glob("*"))]


def test_a_new_layout_alone_is_no_change(lived):
    before = operations(lived)

    edit(lived, lambda value: None)
    fold_home(lived, now=homes.NOW)

    assert homes.ids(lived) == ["one", "two", "three"]
    assert operations(lived) == before
    assert documents.read(memory_file(lived)).state == "good"


def test_an_edited_item_is_brought_in_as_a_transaction_of_its_own(lived):
    edit(lived, lambda value: value["working_memory"]["items"][0].update(content="mine"))

    assert working(lived)["items"][0]["content"] == "mine"
    homes.add(lived, "four")

    assert operations(lived)[:2] == ["add", "edited by hand"]
    assert homes.ids(lived) == ["one", "two", "three", "four"]
    assert working(lived)["items"][0]["content"] == "mine"


def test_an_edit_that_drops_the_stamp_takes_back_nothing_from_the_journal(lived):
    edit(lived, lambda value: (value.pop("stamp"), value["working_memory"].update(description="mine")))

    assert homes.ids(lived) == ["one", "two", "three"]
    fold_home(lived, now=homes.NOW)
    assert working(lived)["description"] == "mine"
    assert homes.ids(lived) == ["one", "two", "three"]


def test_an_edited_stamp_that_names_the_future_is_not_believed(lived):
    edit(lived, lambda value: value["stamp"].update(revision=10**6))

    assert homes.ids(lived) == ["one", "two", "three"]
    homes.add(lived, "four")
    assert homes.reopened(lived).revision < 10


def conflicting(home):
    """Let the journal and a hand edit change the same place; return the edited file."""
    homes.patch(home, {"op": "add", "path": "/working_memory/description", "value": "theirs"})
    edit(home, lambda value: value["working_memory"].update(description="mine"))
    return memory_file(home).read_bytes()


def test_a_conflicting_edit_stops_nobody_and_waits_in_quarantine_with_its_changes(lived):
    edited = conflicting(lived)

    assert working(lived)["description"] == "theirs"
    assert memory_file(lived).read_bytes() == edited  # a reader changes nothing
    assert [one.code for one in doctor.examine(lived)] == ["edited"]
    homes.add(lived, "four")

    assert homes.ids(lived) == ["one", "two", "three", "four"]
    assert documents.read(memory_file(lived)).state == "good"
    (kept,) = documents.kept_edits(lived)
    assert kept.path.read_bytes() == edited
    assert kept.reason.startswith("edited by hand at working_memory/description")
    about = json.loads(kept.path.with_suffix(".diff.json").read_text())
    assert about["patch"] == [{"op": "replace", "path": "/working_memory/description", "value": "mine"}]
    found = [one for one in doctor.examine(lived) if one.code == "kept-edit"]
    assert f"aether doctor --accept {kept.path.name}" in found[0].fix
    assert doctor.examine(lived) == found


def test_a_conflicting_edit_that_is_set_right_is_no_edit(lived):
    before = memory_file(lived).read_bytes()
    conflicting(lived)
    homes.reopened(lived)

    memory_file(lived).write_bytes(before)

    assert working(lived)["description"] == "theirs"
    fold_home(lived, now=homes.NOW)
    assert documents.kept_edits(lived) == []


def test_a_kept_edit_is_taken_in_and_wins_only_where_it_differs(lived):
    conflicting(lived)
    homes.add(lived, "four")
    (kept,) = documents.kept_edits(lived)

    assert aether.accept_edit(kept.path.name, home=lived) == ["memory"]

    assert working(lived)["description"] == "mine"
    assert homes.ids(lived) == ["one", "two", "three", "four"]
    assert doctor.examine(lived) == []
    assert operations(lived)[0] == "edited by hand"
    aether.undo(home=lived)
    assert working(lived)["description"] == "theirs"


def test_an_edit_that_breaks_the_schema_waits_until_it_is_correct(lived):
    edit(lived, lambda value: value["working_memory"]["items"][0].update(token_count="many", content="mine"))

    assert homes.ids(lived) == ["one", "two", "three"]
    homes.add(lived, "four")
    (kept,) = documents.kept_edits(lived)
    assert "/working_memory/items/0/token_count: 'many' is not of type" in kept.reason
    with pytest.raises(InvalidDocument, match="'many' is not of type"):
        aether.accept_edit(kept.path.name, home=lived)
    kept.path.write_text(kept.path.read_text().replace('"many"', "1"))

    aether.accept_edit(kept.path.name, home=lived)

    assert working(lived)["items"][0]["content"] == "mine"
    assert homes.ids(lived) == ["one", "two", "three", "four"]


def test_only_an_edit_in_quarantine_can_be_taken_in(lived):
    (lived / "quarantine").mkdir()
    (lived / "quarantine" / "memory.corrupt-1").write_bytes(b"{")

    for name in ("memory.edited-1.json", "memory.corrupt-1", "../data/memory.json"):
        with pytest.raises(AetherError):
            aether.accept_edit(name, home=lived)


def _exists(*_):
    raise FileExistsError


class Editor:
    """A person who saves memory.json at the worst instant: just before the call of the system that replaces it."""

    def __init__(self, home, monkeypatch, call, *, times=1):
        self.home, self.saved, self.left = home, [], times
        real = getattr(files, call)

        def saving(*args):
            if memory_file(home) in args and self.left:
                self.left -= 1
                self.save()
            return real(*args)

        monkeypatch.setattr(files, call, saving)

    def save(self):
        value = json.loads(memory_file(self.home).read_text())
        self.saved.append(f"saved {len(self.saved)}")
        value["working_memory"]["items"][0]["content"] = self.saved[-1]
        new = self.home / "data" / "memory.json.new"
        new.write_text(json.dumps(value, indent=4))
        os.replace(new, memory_file(self.home))


@pytest.mark.parametrize("times", [1, 2])
def test_a_file_that_is_saved_at_the_instant_of_its_replacement_is_not_lost(lived, monkeypatch, times):
    editor = Editor(lived, monkeypatch, "_exchange", times=times)

    fold_home(lived, now=homes.NOW)

    assert len(editor.saved) == times
    everything = b"".join(path.read_bytes() for path in lived.rglob("*") if path.is_file())
    assert [text for text in editor.saved if text.encode() not in everything] == []
    assert homes.ids(lived) == ["one", "two", "three"]
    assert files.leftover_temps(lived) == []


def test_an_interrupt_just_after_the_exchange_drops_no_edit(lived, monkeypatch):
    edit(lived, lambda value: value["working_memory"].update(description="mine"))

    def interrupted(path):
        if path != memory_file(lived):
            raise KeyboardInterrupt
        return True

    with pytest.raises(KeyboardInterrupt):
        files.write_whole(memory_file(lived), b"{}", is_known=interrupted)

    everything = b"".join(path.read_bytes() for path in (lived / "data").iterdir() if path.is_file())
    assert b'"mine"' in everything
    doctor.repair(lived, now=homes.NOW)
    assert any(b'"mine"' in data for data in kept_aside(lived))


def test_where_files_cannot_be_exchanged_the_last_look_is_just_before_the_rename(lived, monkeypatch):
    monkeypatch.setattr(files, "_exchange", lambda one, two: False)
    editor = Editor(lived, monkeypatch, "keep_backup")

    fold_home(lived, now=homes.NOW)

    assert working(lived)["items"][0]["content"] == editor.saved[-1]


def test_a_document_that_is_made_at_the_instant_it_would_be_made_is_not_overwritten(lived, monkeypatch):
    memory_file(lived).unlink()
    homes.reopened(lived)
    monkeypatch.setattr(files.os, "link", _exists)

    with pytest.raises(files.EditedMeanwhile):
        files.write_whole(memory_file(lived), b"x", is_known=lambda path: True)

    assert not memory_file(lived).exists()


def test_an_edit_in_a_temporary_file_of_a_killed_process_is_kept_by_the_doctor(lived):
    edit(lived, lambda value: value["working_memory"].update(description="mine"))
    os.rename(memory_file(lived), memory_file(lived).with_name(f".memory.json.12{files.TEMP_SUFFIX}"))

    doctor.repair(lived, now=homes.NOW)

    assert files.leftover_temps(lived) == []
    assert any(b'"mine"' in data for data in kept_aside(lived))


@pytest.mark.parametrize("data", [b"", b"garbage", b"[]", b"\xff\xfe", b"[" * 5000])
def test_a_document_that_does_not_parse_is_kept_aside_and_rebuilt(lived, data):
    memory_file(lived).write_bytes(data)

    assert homes.ids(lived) == ["one", "two", "three"]
    homes.add(lived, "four")

    assert homes.ids(lived) == ["one", "two", "three", "four"]
    assert kept_aside(lived) == [data]


@pytest.mark.parametrize("name", documents.ALWAYS)
def test_a_deleted_document_comes_back_with_the_next_commit(lived, name):
    documents.path_of(lived, name).unlink()

    homes.add(lived, "four")

    assert documents.read(documents.path_of(lived, name)).state == "good"
    assert homes.ids(lived) == ["one", "two", "three", "four"]


def test_without_backups_the_journal_alone_rebuilds(lived):
    shutil.rmtree(lived / "data" / "backups")
    memory_file(lived).unlink()

    assert homes.ids(lived) == ["one", "two", "three"]


def test_damaged_months_matter_only_where_they_are_needed(lived):
    for path in journals.month_files(lived):
        path.write_bytes(path.read_bytes().replace(b"note one", b"note ???"))

    assert homes.ids(lived) == ["one", "two", "three"]
    memory_file(lived).unlink()
    assert homes.ids(lived) == ["one", "two", "three"]  # the newest backup is younger than the damage


def test_with_damaged_months_and_no_backups_the_doctor_says_what_is_lost(lived):
    for path in journals.month_files(lived):
        path.write_bytes(path.read_bytes().replace(b"note one", b"note ???"))
    shutil.rmtree(lived / "data" / "backups")
    cut = memory_file(lived).read_bytes()[:-40]
    memory_file(lived).write_bytes(cut)
    with pytest.raises(CorruptDocument, match="neither a backup nor the journal"):
        homes.reopened(lived)

    done = doctor.repair(lived, now=homes.NOW)

    assert any("replaced memory.json by an empty one" in words for words in done)
    assert cut in kept_aside(lived)
    assert not [one for one in doctor.examine(lived) if one.level == "error"]


def test_where_the_journal_is_damaged_the_newest_backup_is_taken(lived):
    for path in journals.month_files(lived):
        path.write_bytes(path.read_bytes().replace(b"note two", b"note ???"))
    memory_file(lived).write_bytes(b"{")
    with pytest.raises(CorruptDocument):
        homes.reopened(lived)

    done = doctor.repair(lived, now=homes.NOW)

    assert homes.ids(lived)[0] == "one"
    assert any("from its backup of revision" in words for words in done)


def test_a_damaged_line_in_the_journal_costs_only_that_line(lived):
    homes.add(lived, "four", "note four")
    homes.add(lived, "five", "note five")
    path = journals.journal_path(lived)
    damaged = path.read_bytes().replace(b"note four", b"note ????")
    path.write_bytes(damaged)
    assert homes.ids(lived) == ["one", "two", "three", "five"]
    assert path.read_bytes() == damaged

    done = doctor.repair(lived, now=homes.NOW)

    assert homes.ids(lived) == ["one", "two", "three", "five"]
    assert kept_aside(lived) == [damaged]
    assert done[0] == "revision 5: lost"
    homes.add(lived, "six")
    assert homes.ids(lived) == ["one", "two", "three", "five", "six"]
    assert [(one.code, one.where) for one in doctor.examine(lived)][:1] == [
        ("known-loss", "data/journal.jsonl")
    ]


def test_a_journal_cut_off_anywhere_keeps_every_whole_line(lived):
    for name in ("four", "five"):
        homes.add(lived, name)
    path = journals.journal_path(lived)
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    tried = 0

    for length in range(first, len(whole), 64):
        path.write_bytes(whole[:length])
        lines = whole[:length].count(b"\n") - 1
        assert homes.ids(lived) == ["one", "two", *["three", "four", "five"][:lines]], length
        tried += 1

    assert tried > 20


def test_a_crash_in_the_middle_of_a_fold_and_a_damaged_journal_lose_nothing(lived):
    homes.patch(lived, {"op": "add", "path": "/note", "value": "first"}, document="pheromones")
    homes.patch(lived, {"op": "add", "path": "/note", "value": "second"}, document="COLONY_STATE")
    path = journals.journal_path(lived)
    lines = path.read_bytes()
    before = documents.path_of(lived, "pheromones").read_bytes()
    fold_home(lived, now=homes.NOW)
    documents.path_of(lived, "pheromones").write_bytes(before)
    path.write_bytes(lines.replace(b'"second"', b'"?econd"'))

    doctor.repair(lived, now=homes.NOW)

    found = homes.reopened(lived)
    assert [item["id"] for item in found.documents["memory"]["working_memory"]["items"]] == [
        "one",
        "two",
        "three",
    ]
    assert found.documents["pheromones"]["note"] == "first"
    assert found.documents["COLONY_STATE"]["note"] == "second"
    homes.add(lived, "four")
    assert homes.ids(lived) == ["one", "two", "three", "four"]


@pytest.mark.parametrize(
    "edited",
    [lambda data: data, lambda data: data.replace(b'"three"', b'"third"'), lambda data: data.replace(b"stamp", b"mark")],
    ids=["good", "edited", "unstamped"],
)  # fmt: skip
def test_the_doctor_leaves_a_home_of_a_newer_aether_as_it_is(lived, edited):
    value = {**homes.reopened(lived).documents["memory"], "schema_version": 99}
    documents.write(lived, "memory", value, 3)
    memory_file(lived).write_bytes(edited(memory_file(lived).read_bytes()))
    before = memory_file(lived).read_bytes()

    with pytest.raises(InvalidDocument, match="Upgrade aether"):
        doctor.repair(lived, now=homes.NOW)

    assert memory_file(lived).read_bytes() == before


def test_the_doctor_leaves_a_document_that_a_newer_aether_changed_in_the_journal_as_it_is(lived):
    homes.patch(lived, {"op": "replace", "path": "/schema_version", "value": 99})
    snapshot._CACHE.clear()
    before = memory_file(lived).read_bytes()

    with pytest.raises(InvalidDocument, match="Upgrade aether"):
        doctor.repair(lived, now=homes.NOW)

    assert memory_file(lived).read_bytes() == before


def test_the_doctor_leaves_a_journal_of_a_newer_aether_as_it_is(lived):
    journals.journal_path(lived).write_bytes(log.seal_json({"journal": 99, "base": 3}))

    with pytest.raises(InvalidDocument, match="Upgrade aether"):
        doctor.repair(lived, now=homes.NOW)

    assert b'"journal":99' in journals.journal_path(lived).read_bytes()


def test_an_error_elsewhere_puts_no_document_aside_because_of_the_name_of_the_home(tmp_path):
    home = homes.fresh(tmp_path / "memory")
    homes.add(home, "one")
    edit_path = documents.path_of(home, "pheromones")
    value = json.loads(edit_path.read_text())
    value["active_pheromones"] = "none"
    edit_path.write_text(json.dumps(value))

    doctor.repair(home, now=homes.NOW)

    assert {path.name.partition(".")[0] for path in (home / "quarantine").iterdir()} == {"pheromones"}
    assert homes.ids(home) == ["one"]


@pytest.mark.parametrize("data", [b"{}", b'{"stamp": {"revision": 2}}'])
def test_an_emptied_object_never_costs_what_cannot_be_undone(lived, data):
    """`{}` is a document of the original format; bringing it in is a transaction, which undo takes back."""
    memory_file(lived).write_bytes(data)
    try:
        fold_home(lived, now=homes.NOW)
    except AetherError:
        doctor.repair(lived, now=homes.NOW)

    seen = [entry for entry in entries_newest_first(homes.reopened(lived)) if entry.operation == "add"]
    assert len(seen) == 3


@pytest.mark.parametrize("document", ["memory", "pheromones"])
def test_an_edit_that_is_saved_while_a_commit_is_planned_is_not_written_over(lived, document):
    homes.configure(lived, "[store]\nfold_bytes = 1\n")
    path = documents.path_of(lived, document)

    def plan(found):
        value = json.loads(path.read_text())
        value["mine"] = "kept"
        path.write_text(json.dumps(value))
        return homes.addition(found, homes.item("four"))

    commit(lived, plan, Author("add"), now=homes.NOW)

    assert snapshot.load(lived).documents[document]["mine"] == "kept"
    assert homes.ids(lived) == ["one", "two", "three", "four"]
    assert operations(lived)[:2] == ["edited by hand", "add"]


def test_a_document_that_is_edited_without_end_is_never_written_over(lived, monkeypatch):
    def load_and_edit(home):
        found = snapshot.load(home)
        edit(home, lambda value: value.update({f"mine {len(value)}": 1}))
        return found

    monkeypatch.setattr("aether.store.commit.load", load_and_edit)

    with pytest.raises(Conflict, match="edited while it was written"), write_lock(lived):
        fold(load_and_edit(lived), now=homes.NOW)
    assert sum(name.startswith("mine") for name in json.loads(memory_file(lived).read_text())) > 2


@pytest.fixture
def home(tmp_path):
    return homes.fresh(tmp_path)


def entity(name):
    return {"id": name, "name": name, "entityType": "thing", "observations": []}


def know(home, name):
    """Commit one more entity."""
    patch = [{"op": "add", "path": "/entities/-", "value": entity(name)}]
    return commit(home, lambda _: Change({"graph": patch}), Author("know"), now=homes.NOW)


def fold_now(home):
    fold_home(home, now=homes.NOW)


def names(home):
    return [each["name"] for each in homes.reopened(home).documents["graph"]["entities"]]


def json_files(home):
    return sorted(path.relative_to(home).as_posix() for path in home.rglob("*.json*"))


def graph_file(home):
    return documents.path_of(home, "graph")


def test_a_home_that_never_uses_them_has_no_files_of_them(home):
    homes.add(home, "one")
    fold_now(home)

    found = homes.reopened(home)

    assert {name: found.documents[name] for name in documents.OPTIONAL} == {
        name: documents.default(name) for name in documents.OPTIONAL
    }
    assert not found.irregular
    assert doctor.examine(home) == []
    assert [name for name in json_files(home) if "graph" in name or "memories" in name] == []
    assert journals.journal_path(home).read_bytes() == journals.journal_header(2, sealed=True)


def test_the_file_appears_at_the_first_fold_after_a_change(home):
    know(home, "ant")
    assert not graph_file(home).exists()
    assert names(home) == ["ant"]

    fold_now(home)

    assert documents.read(graph_file(home)).state == "good"
    assert names(home) == ["ant"]
    assert not documents.path_of(home, "memories").exists()
    assert doctor.examine(home) == []


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"{")])
@pytest.mark.parametrize("folds", [1, 2])
@pytest.mark.parametrize("lose", ["nothing", "backups", "journal"])
def test_a_file_that_was_damaged_or_deleted_is_rebuilt(home, damage, folds, lose):
    for fold_number in range(folds):
        know(home, f"ant{fold_number}")
        fold_now(home)
    expected = names(home)
    if lose == "backups":
        for path in documents.backups(home, "graph"):
            path.unlink()
    if lose == "journal":
        journals.journal_path(home).unlink()

    damage(graph_file(home))

    assert names(home) == expected
    assert "graph" in homes.reopened(home).irregular
    know(home, "bee")
    assert names(home) == [*expected, "bee"]
    assert documents.read(graph_file(home)).state == "good"


def as_an_older_aether_leaves_it(home):
    """Fold like a version that knows nothing of optional documents: its journal does not name them."""
    homes.add(home, f"older{homes.reopened(home).revision}")
    fold_now(home)
    journals.journal_path(home).write_bytes(journals.journal_header(homes.reopened(home).revision))


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"{")])
@pytest.mark.parametrize("more", [0, 1])
def test_a_file_is_rebuilt_although_an_older_aether_wrote_in_between(home, damage, more):
    for name in ("ant", "bee", "cat")[: 2 + more]:
        know(home, name)
        fold_now(home)
        if name == "bee":
            as_an_older_aether_leaves_it(home)
    expected = names(home)

    damage(graph_file(home))

    assert names(home) == expected
    doctor.repair(home, now=homes.NOW)
    assert names(home) == expected


def test_a_stamped_file_was_no_default_before_although_no_backup_and_no_journal_knows_it(home):
    know(home, "ant")
    fold_now(home)
    as_an_older_aether_leaves_it(home)
    for path in documents.backups(home, "graph"):
        path.unlink()

    know(home, "bee")
    fold_now(home)

    kept = [documents.read(path).value["entities"] for path in documents.backups(home, "graph")]
    assert [[each["name"] for each in entities] for entities in kept] == [["ant"]]


def test_a_file_is_rebuilt_although_the_history_before_it_is_forgotten(home):
    homes.add(home, "one")
    fold_now(home)
    for path in journals.month_files(home):
        path.unlink()
    know(home, "ant")
    fold_now(home)

    graph_file(home).unlink()

    assert names(home) == ["ant"]


def test_what_nothing_can_rebuild_is_an_error_until_the_doctor_starts_again(home):
    know(home, "ant")
    fold_now(home)
    for path in [*journals.month_files(home), *documents.backups(home, "graph")]:
        path.unlink()
    graph_file(home).write_bytes(b"{")
    with pytest.raises(CorruptDocument, match="neither a backup nor the journal"):
        homes.reopened(home)

    done = doctor.repair(home, now=homes.NOW)

    assert any("replaced graph.json by an empty one" in line for line in done)
    assert names(home) == []


def test_a_file_that_a_person_makes_is_brought_in(home):
    value = {**documents.default("graph"), "entities": [entity("ant")]}
    graph_file(home).write_text(json.dumps(value), encoding="utf-8")

    know(home, "bee")

    assert names(home) == ["ant", "bee"]
    assert documents.read(graph_file(home)).state == "good"


def test_a_file_that_a_person_makes_meets_what_the_journal_says(home):
    know(home, "bee")
    value = {**documents.default("graph"), "entities": [entity("ant")]}
    graph_file(home).write_text(json.dumps(value), encoding="utf-8")

    assert sorted(names(home)) == ["ant", "bee"]


def test_a_hand_edit_is_merged_with_what_came_meanwhile(home):
    know(home, "ant")
    fold_now(home)
    text = graph_file(home).read_text(encoding="utf-8")
    know(home, "bee")

    graph_file(home).write_text(text.replace('"thing"', '"insect"'), encoding="utf-8")

    assert names(home) == ["ant", "bee"]
    assert homes.reopened(home).documents["graph"]["entities"][0]["entityType"] == "insect"


def test_the_first_change_can_be_undone_and_the_time_before_it_seen(home):
    homes.add(home, "one")
    know(home, "ant")
    know(home, "bee")
    fold_now(home)

    commit(home, lambda now: undo(now, 3), Author("undo", reason="of revision 3"), now=homes.NOW)

    snapshot = homes.reopened(home)
    assert names(home) == ["bee"]
    assert states_since(snapshot, 2)[1]["graph"] == documents.default("graph")
    assert [each["name"] for each in states_since(snapshot, 3)[1]["graph"]["entities"]] == ["ant"]


def test_a_journal_that_the_doctor_starts_again_knows_the_file(home):
    know(home, "ant")
    fold_now(home)
    journals.journal_path(home).write_bytes(b"garbage\n")
    graph_file(home).unlink()

    doctor.repair(home, now=homes.NOW)

    assert names(home) == ["ant"]

"""Documents that a home may never have: no file, nothing amiss; from their first fold on like the others."""

from __future__ import annotations

import json

import pytest

from aether.errors import CorruptDocument
from aether.store import doctor, documents, snapshot
from aether.store.commit import Author, commit, fold_home
from aether.store.undo import states_since, undo
from aether.types import Change
from tests import homes


@pytest.fixture
def home(tmp_path):
    return homes.fresh(tmp_path)


def entity(name):
    return {"id": name, "name": name, "entityType": "thing", "observations": []}


def know(home, name):
    """Commit one more entity."""
    patch = [{"op": "add", "path": "/entities/-", "value": entity(name)}]
    return commit(home, lambda _: Change({"graph": patch}), Author("know"), now=homes.NOW)


def fold(home):
    fold_home(home, now=homes.NOW)


def names(home):
    return [each["name"] for each in homes.anew(home).documents["graph"]["entities"]]


def files(home):
    return sorted(path.relative_to(home).as_posix() for path in home.rglob("*.json*"))


def graph_file(home):
    return documents.path_of(home, "graph")


def test_a_home_that_never_uses_them_has_no_files_of_them(home):
    homes.add(home, "one")
    fold(home)

    found = homes.anew(home)

    assert {name: found.documents[name] for name in documents.OPTIONAL} == {
        name: documents.default(name) for name in documents.OPTIONAL
    }
    assert not found.irregular
    assert doctor.examine(home) == []
    assert [name for name in files(home) if "graph" in name or "memories" in name] == []
    assert snapshot.journal_path(home).read_bytes() == snapshot.journal_header(2)


def test_the_file_appears_at_the_first_fold_after_a_change(home):
    know(home, "ant")
    assert not graph_file(home).exists()
    assert names(home) == ["ant"]

    fold(home)

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
        fold(home)
    expected = names(home)
    if lose == "backups":
        for path in documents.backups(home, "graph"):
            path.unlink()
    if lose == "journal":
        snapshot.journal_path(home).unlink()

    damage(graph_file(home))

    assert names(home) == expected
    assert "graph" in homes.anew(home).irregular
    know(home, "bee")
    assert names(home) == [*expected, "bee"]
    assert documents.read(graph_file(home)).state == "good"


def as_an_older_aether_leaves_it(home):
    """Fold like a version that knows nothing of optional documents: its journal does not name them."""
    homes.add(home, f"older{homes.anew(home).revision}")
    fold(home)
    snapshot.journal_path(home).write_bytes(snapshot.journal_header(homes.anew(home).revision))


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"{")])
@pytest.mark.parametrize("more", [0, 1])
def test_a_file_is_rebuilt_although_an_older_aether_wrote_in_between(home, damage, more):
    for name in ("ant", "bee", "cat")[: 2 + more]:
        know(home, name)
        fold(home)
        if name == "bee":
            as_an_older_aether_leaves_it(home)
    expected = names(home)

    damage(graph_file(home))

    assert names(home) == expected
    doctor.repair(home, now=homes.NOW)
    assert names(home) == expected


def test_a_stamped_file_was_no_default_before_although_no_backup_and_no_journal_knows_it(home):
    know(home, "ant")
    fold(home)
    as_an_older_aether_leaves_it(home)
    for path in documents.backups(home, "graph"):
        path.unlink()

    know(home, "bee")
    fold(home)

    kept = [documents.read(path).value["entities"] for path in documents.backups(home, "graph")]
    assert [[each["name"] for each in entities] for entities in kept] == [["ant"]]


def test_a_file_is_rebuilt_although_the_history_before_it_is_forgotten(home):
    homes.add(home, "one")
    fold(home)
    for path in snapshot.month_files(home):
        path.unlink()
    know(home, "ant")
    fold(home)

    graph_file(home).unlink()

    assert names(home) == ["ant"]


def test_what_nothing_can_rebuild_is_an_error_until_the_doctor_begins_anew(home):
    know(home, "ant")
    fold(home)
    for path in [*snapshot.month_files(home), *documents.backups(home, "graph")]:
        path.unlink()
    graph_file(home).write_bytes(b"{")
    with pytest.raises(CorruptDocument, match="neither a backup nor the journal"):
        homes.anew(home)

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
    fold(home)
    text = graph_file(home).read_text(encoding="utf-8")
    know(home, "bee")

    graph_file(home).write_text(text.replace('"thing"', '"insect"'), encoding="utf-8")

    assert names(home) == ["ant", "bee"]
    assert homes.anew(home).documents["graph"]["entities"][0]["entityType"] == "insect"


def test_the_first_change_can_be_undone_and_the_time_before_it_seen(home):
    homes.add(home, "one")
    know(home, "ant")
    know(home, "bee")
    fold(home)

    commit(home, lambda now: undo(now, 3), Author("undo", reason="of revision 3"), now=homes.NOW)

    snapshot = homes.anew(home)
    assert names(home) == ["bee"]
    assert states_since(snapshot, 2)[1]["graph"] == documents.default("graph")
    assert [each["name"] for each in states_since(snapshot, 3)[1]["graph"]["entities"]] == ["ant"]


def test_a_journal_that_the_doctor_begins_anew_knows_the_file(home):
    know(home, "ant")
    fold(home)
    snapshot.journal_path(home).write_bytes(b"garbage\n")
    graph_file(home).unlink()

    doctor.repair(home, now=homes.NOW)

    assert names(home) == ["ant"]


def test_a_document_of_its_own_with_less_is_filled(home):
    graph_file(home).write_text('{"entities": []}', encoding="utf-8")

    assert homes.anew(home).documents["graph"] == documents.default("graph")

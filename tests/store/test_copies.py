"""Copies of a home's files from another machine: named, taken over entry by entry, and never lost."""

from __future__ import annotations

import shutil

import pytest

import aether
from aether.api import admin
from aether.api.overview import overview
from aether.errors import CorruptDocument, NotFound
from aether.store import copies, doctor
from aether.store.snapshot import load
from tests import homes

NAME = "{} (Ada's conflicted copy 2026-10-02){}"


def texts(home):
    return {item["content"] for item in load(home).documents["memory"]["working_memory"]["items"]}


def note(home, text):
    return aether.add_working_memory_item(text, "constraint", 0.9, home=home)


def codes(home):
    return {
        (one.code, one.where) for one in doctor.examine(home) if "copy" in one.code or "merge" in one.code
    }


@pytest.fixture
def machines(tmp_path):
    """Return the homes of two machines that changed apart from the same one."""
    one = homes.fresh(tmp_path / "one")
    note(one, "Never deploy on Friday.")
    note(one, "Removed here later.")
    added = admin.log(home=one)[0].revision
    two = tmp_path / "two" / one.name
    shutil.copytree(one, two)
    note(one, "Laptop one: never use tabs.")
    admin.undo(added, home=one)
    note(two, "Laptop two: never use spaces.")
    return one, two


def put(two, one, name, target):
    shutil.copyfile(two / "data" / name, one / "data" / target)


WANTED = {"Never deploy on Friday.", "Laptop one: never use tabs.", "Laptop two: never use spaces."}


@pytest.mark.parametrize("name", ["memory.json", "journal.jsonl"])
def test_a_copy_is_taken_over_entry_by_entry_and_kept(machines, name):
    one, two = machines
    if name == "memory.json":
        aether.fold(home=two)
    copy = NAME.format(*name.partition(".")[::2]).replace(")", ").")
    put(two, one, name, copy)
    data = (one / "data" / copy).read_bytes()

    assert ("conflicted-copy", f"data/{copy}") in codes(one)
    assert any(copy in words for words in overview(home=one)["problems"])
    assert admin.accept_edit(f"data/{copy}", home=one) == ["memory"]

    assert texts(one) == WANTED
    assert codes(one) == set()
    assert overview(home=one)["problems"] == []
    assert data in [path.read_bytes() for path in (one / "quarantine").iterdir()]
    aether.undo(home=one)
    assert texts(one) == WANTED - {"Laptop two: never use spaces."}


def test_both_copies_add_an_entry_once_and_a_removed_one_stays_away(machines):
    one, two = machines
    put(two, one, "journal.jsonl", "journal 2.jsonl")
    aether.fold(home=two)
    put(two, one, "memory.json", "memory 2.json")

    admin.accept_edit("memory 2.json", home=one)
    item = next(
        item for item in load(one).documents["memory"]["working_memory"]["items"] if "two" in item["content"]
    )
    admin.accept_edit("journal 2.jsonl", home=one)
    assert texts(one) == WANTED

    aether.fold(home=two)
    put(two, one, "memory.json", "memory 3.json")
    aether.undo(admin_revision(one, item["id"]), home=one)
    assert admin.accept_edit("memory 3.json", home=one) == []
    assert texts(one) == WANTED - {item["content"]}


def admin_revision(home, id):
    return next(entry.revision for entry in admin.log(home=home) if entry.operation == "copy taken over")


def test_a_copy_of_a_month_is_named_and_read_by_nobody(machines):
    one, two = machines
    aether.fold(home=two)
    *_, month = sorted((two / "data/journal").glob("*.jsonl"))
    name = NAME.format(month.stem, ".jsonl")
    (one / "data/journal").mkdir(exist_ok=True)
    shutil.copyfile(month, one / "data/journal" / name)

    assert codes(one) == {("conflicted-copy", f"data/journal/{name}")}
    assert texts(one) == WANTED - {"Laptop two: never use spaces."}
    assert admin.accept_edit(f"data/journal/{name}", home=one) == ["memory"]
    assert texts(one) == WANTED


@pytest.mark.parametrize("name", ["memory.json", "journal.jsonl"])
def test_both_sides_of_a_merge_by_git_are_taken_over(machines, name):
    one, two = machines
    if name == "memory.json":
        aether.fold(home=one)
        aether.fold(home=two)
    path = one / "data" / name
    ours, theirs = path.read_bytes(), (two / "data" / name).read_bytes()
    path.write_bytes(b"<<<<<<< HEAD\n" + ours + b"=======\n" + theirs + b">>>>>>> other\n")

    assert ("merge-conflict", f"data/{name}") in codes(one)
    admin.accept_edit(f"data/{name}", home=one)

    assert texts(one) == WANTED
    aether.fold(home=one)
    assert codes(one) == set()
    assert path.read_bytes().startswith(b"{")
    assert any(b">>>>>>> other" in file.read_bytes() for file in (one / "quarantine").iterdir())


def test_a_copy_of_a_record_that_is_made_again_is_only_to_be_removed(machines):
    one, two = machines
    aether.fold(home=two)
    put(two, one, "seals.json", "seals 2.json")
    (one / "data/events 2.jsonl").write_bytes(b"{}\n")

    fixes = {one.where: one.fix for one in doctor.examine(one) if one.code == "conflicted-copy"}
    assert fixes["data/seals 2.json"] == "Remove it."
    assert fixes["data/events 2.jsonl"].startswith("Compare the two")
    with pytest.raises(NotFound, match="neither entries nor changes"):
        admin.accept_edit("events 2.jsonl", home=one)


def test_a_copy_that_is_no_document_stays(machines):
    one, _ = machines
    path = one / "data/memory 2.json"
    path.write_bytes(b"[]")

    with pytest.raises(CorruptDocument, match="not a document"):
        admin.accept_edit("memory 2.json", home=one)
    assert path.read_bytes() == b"[]"


def test_a_side_may_have_its_ancestor_between():
    assert copies.sides(b"<<<<<<< a\n1\n||||||| b\n0\n=======\n2\n>>>>>>> c\n") == [b"1\n", b"2\n"]
    assert copies.sides(b"{}\n") == [b"{}\n"]

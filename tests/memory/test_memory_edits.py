"""The directory against the document."""

from __future__ import annotations

from aether.memory.memory_tool import apply_edits, checksum, compare, writable
from aether.store.patch import apply
from tests.tables import rows

A = "/memories/a.md"


@rows(
    ("wanted", "there", "last", "edited", "due"),
    [
        ("x", "x", None, {}, {}),
        ("x", "x", "old", {}, {}),
        ("x", None, None, {}, {A: "x"}),
        ("x", "old", "old", {}, {A: "x"}),
        (None, "old", "old", {}, {A: None}),
        ("x", "mine", "x", {A: "mine"}, {}),
        ("x", "mine", None, {A: "mine"}, {}),
        ("x", "mine", "old", {A: "mine"}, {}),
        (None, "mine", None, {A: "mine"}, {}),
        (None, "mine", "old", {A: "mine"}, {}),
        ("x", None, "x", {A: None}, {}),
        (None, None, "old", {}, {}),
        ("", None, None, {}, {A: ""}),
        ("x", "", "x", {A: ""}, {}),
    ],
)
def test_an_edit_is_told_from_what_was_not_shown_yet(wanted, there, last, edited, due):
    def at(text):
        return {} if text is None else {A: text}

    stamps = {} if last is None else {A: checksum(last)}

    assert compare(at(wanted), at(there), stamps=stamps) == (edited, due)


def test_what_stands_in_the_place_of_a_note_took_it_away():
    assert compare({A: "x"}, {}, others=[A]) == ({A: None}, {})


@rows(
    ("path", "text"),
    [
        ("/memories", "x"),
        ("/memories/../x", "x"),
        ("/etc/x", "x"),
        ("/memories//a", "x"),
        (A, "\0"),
        (A, "\ud800"),
    ],
)
def test_what_must_not_be_written_is_not_due(path, text):
    assert not writable(path, text)
    assert compare({path: text}, {}) == ({}, {})


def test_edits_are_brought_in():
    document = {"files": {A: "x", "/memories/b": "y"}}

    change = apply_edits(document, {A: "mine", "/memories/b": None, "/memories/c/d": "new"})

    assert apply(document, change.patches["memories"])["files"] == {A: "mine", "/memories/c/d": "new"}


def test_an_edit_that_has_no_place_stays_out():
    document = {"files": {"/memories/dir/b": "y"}}

    change = apply_edits(document, {"/memories/dir": "file", "/memories/N": "1", "/memories/n": "2"})

    assert apply(document, change.patches["memories"])["files"] == {
        "/memories/dir/b": "y",
        "/memories/N": "1",
    }

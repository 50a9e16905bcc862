"""The memory tool: its six commands, its paths, and the edits of a person in its directory."""

from __future__ import annotations

import pytest

from aether.errors import UnsafePath
from aether.memory import memory_tool
from aether.memory.memory_tool import (
    MAX_FILE_BYTES,
    MAX_NAME_BYTES,
    MAX_PATH_BYTES,
    MAX_VIEW_CHARS,
    blocking_path,
    canonical,
    checksum,
    compare,
    format_size,
    index,
    run,
    writable,
)
from tests.tables import rows

A, B = "/memories/a.md", "/memories/dir/b.md"


FILES = {A: "one\ntwo\nthree\n", B: "x"}


def reported(command, files=None, **given):
    answer = run(FILES if files is None else files, {"command": command, **given})
    assert answer.files is None or not answer.is_error
    return answer


def text_after(command, files=None, path=A, **given):
    answer = reported(command, files, path=path, **given)
    assert not answer.is_error, answer.text
    return answer.files[path]


def refused(command, files=None, **given):
    answer = reported(command, files, **given)
    assert answer.is_error
    assert answer.files is None
    return answer.text


def test_a_long_directory_is_cut():
    files = {f"/memories/{number:05}{'n' * 90}": "" for number in range(400)}

    text = reported("view", files, path="/memories").text

    assert text.endswith("[Cut at 16,000 characters. View a directory below to see more.]")
    assert len(text) < MAX_VIEW_CHARS + 300


@rows(("size", "shown"), [(0, "0B"), (1023, "1023B"), (1024, "1.0K"), (1 << 20, "1.0M")])
def test_sizes_are_for_people(size, shown):
    assert format_size(size) == shown


@rows(
    ("wanted", "shown"),
    [([1, 1], ["one"]), ([2, -1], ["two", "three"]), ([2, 99], ["two", "three"]), ([0, 2], ["one", "two"]), ((3, 3), ["three"])],
)  # fmt: skip
def test_a_part_of_a_file_is_viewed(wanted, shown):
    lines = reported("view", path=A, view_range=wanted).text.splitlines()[1:]

    assert [line.partition("\t")[2] for line in lines] == shown


@rows(
    ("wanted", "said"),
    [
        ([4, -1], "[4, -1]. It should be within the lines of the file: [1, 3]"),
        ([3, 2], "[3, 2]. It should be within"),
        ([1], "[1]. It should be [start, end]"),
        ("1-2", "'1-2'. It should be [start, end]"),
        ([True, 2], "[True, 2]. It should be [start, end]"),
    ],
)
def test_a_part_that_is_not_there_is_an_error(wanted, said):
    assert refused("view", path=A, view_range=wanted).startswith(
        f"Error: Invalid `view_range` parameter: {said}"
    )


def test_a_file_that_just_fits_is_not_cut():
    fitting = "x" * (MAX_VIEW_CHARS - len("     1\t"))

    assert "[Cut" not in reported("view", {A: fitting}, path=A).text
    assert "[Cut" in reported("view", {A: fitting + "x"}, path=A).text


def test_a_file_of_a_million_lines_is_not_viewed():
    assert "exceeds" not in reported("view", {A: "\n" * 999_999}, path=A).text
    assert refused("view", {A: "\n" * 1_000_000}, path=A) == (
        "File /memories/a.md exceeds maximum line limit of 999,999 lines."
    )


@rows(
    ("path", "said"),
    [
        (A, "File /memories/a.md already exists"),
        ("/memories/dir", "File /memories/dir already exists"),
        ("/memories", "File /memories already exists"),
        ("/memories/a.md/x", "The path /memories/a.md is a file, not a directory"),
        (
            "/memories/A.MD",
            "/memories/A.MD equals /memories/a.md on some systems; use another name",
        ),
    ],
)
def test_nothing_is_created_in_the_place_of_something(path, said):
    assert refused("create", path=path, file_text="") == f"Error: {said}"


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_a_text_that_no_file_can_hold_is_refused(text):
    assert "NUL or half of a surrogate pair" in refused("create", path="/memories/c", file_text=text)


def test_a_file_has_a_largest_size():
    most = "ü" * (MAX_FILE_BYTES // 2)

    assert not reported("create", path="/memories/c", file_text=most).is_error
    assert refused("create", path="/memories/c", file_text=most + "x") == (
        "Error: /memories/c would hold 1.0M, the limit is 1.0M; nothing was changed"
    )


def test_all_files_together_have_a_largest_size(monkeypatch):
    monkeypatch.setattr(memory_tool, "MAX_TOTAL_BYTES", 20)

    assert not reported("create", path="/memories/c", file_text="12345").is_error
    assert "All files would hold 21B, the limit is 20B" in refused(
        "create", path="/memories/c", file_text="123456"
    )
    assert "All files" in refused("insert", path=A, insert_line=0, insert_text="12345")


@rows("given", [{}, {"new_str": None}, {"new_str": ""}])
def test_without_a_new_text_the_old_goes(given):
    assert text_after("str_replace", old_str="two\n", **given) == "one\nthree\n"


@rows(
    ("old", "said"),
    [
        ("four", "No replacement was performed, old_str `four` did not appear verbatim in /memories/a.md."),
        ("", "No replacement was performed, old_str `` did not appear verbatim in /memories/a.md."),
        ("o", "No replacement was performed. Multiple occurrences of old_str `o` in lines: 1, 2. Please ensure it is unique"),
    ],
)  # fmt: skip
def test_a_missing_or_repeated_text_is_not_replaced(old, said):
    assert refused("str_replace", path=A, old_str=old, new_str="x") == said


@rows(
    ("text", "old", "new", "edited"),
    [
        ("a\r\nb\r\n", "a\nb", "c\nd\ne", "c\r\nd\r\ne\r\n"),
        ("a\r\nb\r\n", "b", "c\nd", "a\r\nc\r\nd\r\n"),
        ("a\nb\n", "a\r\nb", "c\r\nd", "c\nd\n"),
        ("a\nb\r\nc\r\n", "b\nc", "d\ne", "a\nd\r\ne\r\n"),
        ("a\nb\r\nc\n", "a\nb", "d", "d\r\nc\n"),
    ],
)
def test_lines_are_replaced_however_they_end_and_keep_their_ends(text, old, new, edited):
    command = {"command": "str_replace", "path": A, "old_str": old, "new_str": new}

    assert run({A: text}, command).files == {A: edited}


def test_an_inserted_line_ends_as_the_others():
    command = {"command": "insert", "path": A, "insert_line": 1, "insert_text": "x"}

    assert run({A: "a\r\nb"}, command).files == {A: "a\r\nx\r\nb"}


@rows("path", ["/memories/no", "/memories/dir", "/memories"])
def test_a_directory_or_missing_file_cannot_be_edited(path):
    assert refused("str_replace", path=path, old_str="x", new_str="y") == (
        f"Error: The path {path} does not exist. Please provide a valid path."
    )
    assert (
        refused("insert", path=path, insert_line=0, insert_text="y")
        == f"Error: The path {path} does not exist"
    )


@rows(
    ("before", "at", "added", "after"),
    [
        ("a\nb\n", 0, "x", "x\na\nb\n"),
        ("a\nb\n", 1, "x\n", "a\nx\nb\n"),
        ("a\nb\n", 2, "x", "a\nb\nx\n"),
        ("a\nb", 1, "x", "a\nx\nb"),
        ("a\nb", 2, "x", "a\nb\nx\n"),
        ("", 0, "x", "x\n"),
        ("a\r\nb\r\n", 1, "x", "a\r\nx\r\nb\r\n"),
        ("a\u2028b\x0cc\n", 1, "x", "a\u2028b\x0cc\nx\n"),
        ("a\n", 1, "x\ny", "a\nx\ny\n"),
        ("a\n", 1, "", "a\n\n"),
    ],
)
def test_lines_are_inserted(before, at, added, after):
    assert text_after("insert", {A: before}, insert_line=at, insert_text=added) == after


@rows(
    ("old", "new", "said"),
    [
        (A, B, "The destination /memories/dir/b.md already exists"),
        (A, A, "The destination /memories/a.md already exists"),
        (A, "/memories/dir", "The destination /memories/dir already exists"),
        ("/memories/no", B, "The destination /memories/dir/b.md already exists"),
        ("/memories/dir", "/memories/dir/in", "Cannot rename /memories/dir into itself"),
        (B, f"{A}/b", "The path /memories/a.md is a file, not a directory"),
        (
            A,
            "/memories/Dir/x",
            "/memories/Dir/x equals /memories/dir on some systems; use another name",
        ),
    ],
)
def test_nothing_is_renamed_onto_something(old, new, said):
    assert refused("rename", old_path=old, new_path=new) == f"Error: {said}"


def test_a_directory_is_not_renamed_where_its_files_would_have_no_path():
    files = {f"/memories/d{'/sub' * 200}/x": ""}

    assert "longer than 1024 bytes" in refused(
        "rename", files, old_path="/memories/d", new_path=f"/memories/{'n' * 190}/{'m' * 50}"
    )


@rows(
    ("command", "said"),
    [
        ({}, "Unknown command None. Use one of view, create, str_replace, insert, delete, rename"),
        ({"command": "format"}, "Unknown command 'format'."),
        ({"command": ["view"]}, "Unknown command ['view']."),
        ({"command": "view"}, "The `path` parameter of view is missing or not text: None"),
        ({"command": "view", "path": 3}, "The `path` parameter of view is missing or not text: 3"),
        ({"command": "insert", "path": A, "insert_line": "1", "insert_text": ""}, "The `insert_line` parameter of insert is missing or not a whole number: '1'"),
        ({"command": "insert", "path": A, "insert_line": True, "insert_text": ""}, "The `insert_line` parameter"),
        ({"command": "create", "path": A}, "The `file_text` parameter of create is missing"),
        ({"command": "rename", "old_path": A, "new_path": "/etc/x"}, "'/etc/x': the path does not begin with /memories."),
    ],
)  # fmt: skip
def test_a_call_that_is_wrong_is_answered(command, said):
    answer = run(FILES, command)

    assert answer.is_error
    assert answer.text.startswith(f"Error: {said}")


@rows(
    ("path", "found"),
    [
        ("/memories", "/memories"),
        ("/memories/", "/memories"),
        ("/memories/./a", "/memories/a"),
        ("/memories//a//b/", "/memories/a/b"),
        ("/memories/50% done.md", "/memories/50% done.md"),
        ("/memories/.hidden/...b", "/memories/.hidden/...b"),
        ("/memories/später 🐜.md", "/memories/später 🐜.md"),
        ("/memories/" + "n" * MAX_NAME_BYTES, "/memories/" + "n" * MAX_NAME_BYTES),
    ],
)
def test_a_path_has_one_form(path, found):
    assert canonical(path) == found
    assert canonical(found) == found


@rows(
    ("path", "why"),
    [
        ("", "does not begin"),
        ("memories/a", "does not begin"),
        ("/memoriesother", "does not begin"),
        ("/Memories/a", "does not begin"),
        ("//memories/a", "does not begin"),
        ("/etc/passwd", "does not begin"),
        ("/memories/../etc/passwd", "leads up"),
        ("/memories/a/..", "leads up"),
        ("/memories/%2e%2e/a", "encoded"),
        ("/memories/%2E%2E/a", "encoded"),
        ("/memories/..%2fa", "encoded"),
        ("/memories/%252e%252e/a", "encoded"),
        ("/memories/a%00", "encoded"),
        ("/memories/..\\a", "backslash"),
        ("/memories/a\0b", "control character"),
        ("/memories/a\nb", "control character"),
        ("/memories/a\x7fb", "control character"),
        ("/memories/a\ud800", "surrogate"),
        ("/memories/con", "keeps for something else"),
        ("/memories/NUL.txt", "keeps for something else"),
        ("/memories/com1 .md", "keeps for something else"),
        ("/memories/a.", "keeps for something else"),
        ("/memories/a ", "keeps for something else"),
        ("/memories/.a.0123.aether-tmp", "keeps for something else"),
        ("/memories/" + "n" * (MAX_NAME_BYTES + 1), "a name of more than"),
        ("/memories/" + "ü" * (MAX_NAME_BYTES // 2 + 1), "a name of more than"),
        ("/memories" + "/abcdefg" * (MAX_PATH_BYTES // 8), "is longer than"),
    ],
)
def test_paths_that_lead_out_or_are_invalid_somewhere_are_refused(path, why):
    with pytest.raises(UnsafePath, match=why):
        canonical(path)


@rows(
    ("path", "found"),
    [
        ("/memories/new", ""),
        ("/memories/dir/new", ""),
        ("/memories/new/deep/er", ""),
        ("/memories/a", "/memories/a"),
        ("/memories/dir", "/memories/dir"),
        ("/memories/a/below", "/memories/a"),
        ("/memories/A", "/memories/a"),
        ("/memories/DIR/new", "/memories/dir"),
        ("/memories/u\u0308", "/memories/\u00fc"),
        ("/memories", "/memories"),
    ],
)
def test_an_existing_path_blocks_equal_names_and_paths_below_a_file(path, found):
    known = index(["/memories/a", "/memories/dir/b", "/memories/\u00fc"])

    assert blocking_path(known, path) == found


A = "/memories/a.md"


@rows(
    ("wanted", "there", "last", "edited", "ready"),
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
def test_edits_of_a_person_and_pending_changes_are_distinguished(wanted, there, last, edited, ready):
    def at(text):
        return {} if text is None else {A: text}

    stamps = {} if last is None else {A: checksum(last)}

    assert compare(at(wanted), at(there), stamps=stamps) == (edited, ready)


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
def test_a_note_that_must_not_be_written_is_not_pending(path, text):
    assert not writable(path, text)
    assert compare({path: text}, {}) == ({}, {})

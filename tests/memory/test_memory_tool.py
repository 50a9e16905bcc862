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
    apply_edits,
    blocking_path,
    canonical,
    change,
    checksum,
    compare,
    format_size,
    index,
    run,
    writable,
)
from aether.store.patch import apply
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


def test_a_directory_is_listed_two_levels_deep_with_sizes():
    files = {
        **FILES,
        "/memories/dir/deep/er": "123",
        "/memories/.hidden": "h",
        "/memories/dir/.git/config": "h",
        "/memories/node_modules/x": "n",
        "/memories/big": "b" * 1536,
    }

    answer = reported("view", files, path="/memories")

    assert answer.text.splitlines() == [
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and node_modules:",
        "1.5K\t/memories",
        "14B\t/memories/a.md",
        "1.5K\t/memories/big",
        "4B\t/memories/dir",
        "1B\t/memories/dir/b.md",
        "3B\t/memories/dir/deep",
    ]


def test_an_empty_root_is_its_own_line():
    assert reported("view", {}, path="/memories/").text.splitlines()[1:] == ["0B\t/memories"]


def test_a_directory_below_is_listed():
    assert reported("view", path="/memories/dir").text.splitlines()[1:] == [
        "1B\t/memories/dir",
        "1B\t/memories/dir/b.md",
    ]


def test_a_long_directory_is_cut():
    files = {f"/memories/{number:05}{'n' * 90}": "" for number in range(400)}

    text = reported("view", files, path="/memories").text

    assert text.endswith("[Cut at 16,000 characters. View a directory below to see more.]")
    assert len(text) < MAX_VIEW_CHARS + 300


@rows(("size", "shown"), [(0, "0B"), (1023, "1023B"), (1024, "1.0K"), (1 << 20, "1.0M")])
def test_sizes_are_for_people(size, shown):
    assert format_size(size) == shown


def test_a_file_is_viewed_with_line_numbers():
    assert reported("view", path=A).text == (
        "Here's the content of /memories/a.md with line numbers:\n     1\tone\n     2\ttwo\n     3\tthree"
    )


def test_an_empty_file_has_no_lines():
    assert reported("view", {A: ""}, path=A).text == "Here's the content of /memories/a.md with line numbers:"


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


def test_a_long_file_is_cut_and_the_rest_can_be_asked_for():
    lines = [f"{number} {'x' * 90}" for number in range(1, 401)]
    files, seen, first = {A: "\n".join(lines)}, [], 1

    while first <= len(lines):
        text = reported("view", files, path=A, view_range=[first, -1]).text
        assert len(text) <= MAX_VIEW_CHARS + 300
        shown = [line.partition("\t")[2] for line in text.splitlines()[1:] if "\t" in line]
        seen += shown
        first += len(shown)

    assert seen == lines
    cut = reported("view", files, path=A).text.splitlines()[-1]
    assert cut == "[Cut at 16,000 characters: lines 1 to 157 of 400. Use view_range to see the others.]"


def test_a_line_that_is_too_long_is_cut_within():
    text = reported("view", {A: "x" * 20_000}, path=A).text

    assert text.endswith("xxx\n[Cut at 16,000 characters, within line 1 of 1.]")


def test_a_file_that_just_fits_is_not_cut():
    fitting = "x" * (MAX_VIEW_CHARS - len("     1\t"))

    assert "[Cut" not in reported("view", {A: fitting}, path=A).text
    assert "[Cut" in reported("view", {A: fitting + "x"}, path=A).text


def test_a_file_of_a_million_lines_is_not_viewed():
    assert "exceeds" not in reported("view", {A: "\n" * 999_999}, path=A).text
    assert refused("view", {A: "\n" * 1_000_000}, path=A) == (
        "File /memories/a.md exceeds maximum line limit of 999,999 lines."
    )


def test_a_missing_file_is_not_viewed():
    assert (
        refused("view", path="/memories/no")
        == "The path /memories/no does not exist. Please provide a valid path."
    )


def test_a_file_is_created():
    answer = reported("create", path="/memories/new/c.md", file_text="text\r\n")

    assert answer.text == "File created successfully at: /memories/new/c.md"
    assert answer.files == {**FILES, "/memories/new/c.md": "text\r\n"}


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
        "Error: /memories/c would hold 1.0M, the most is 1.0M; nothing was changed"
    )


def test_all_files_together_have_a_largest_size(monkeypatch):
    monkeypatch.setattr(memory_tool, "MAX_TOTAL_BYTES", 20)

    assert not reported("create", path="/memories/c", file_text="12345").is_error
    assert "All files would hold 21B, the most is 20B" in refused(
        "create", path="/memories/c", file_text="123456"
    )
    assert "All files" in refused("insert", path=A, insert_line=0, insert_text="12345")


def test_a_replacement_is_shown_with_its_context():
    files = {A: "".join(f"line {number}\n" for number in range(1, 10))}

    answer = reported("str_replace", files, path=A, old_str="line 5\n", new_str="5a\n5b\n")

    assert answer.text == (
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        "     3\tline 3\n     4\tline 4\n     5\t5a\n     6\t5b\n     7\tline 6\n     8\tline 7\n     9\tline 8"
    )
    assert answer.files[A] == files[A].replace("line 5\n", "5a\n5b\n")


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


def test_all_of_an_empty_file_is_nothing():
    assert reported("view", {A: ""}, path=A, view_range=[1, -1]).text.splitlines()[1:] == []
    assert "within the lines" in refused("view", {A: ""}, path=A, view_range=[2, -1])


def test_each_line_with_the_text_is_named_once_and_the_first_of_many():
    assert "in lines: 1, 5. Please" in refused(
        "str_replace", {A: "ab\n\n\n\nabab ab\nb"}, path=A, old_str="ab"
    )
    many = refused("str_replace", {A: "a\n" * 20_000}, path=A, old_str="a")
    assert "in lines: 1, 2, 3, " in many
    assert "19, 20 and others. Please ensure" in many


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
        ("a\r\nb\r\n", 1, "x", "a\r\nx\nb\r\n"),
        ("a\u2028b\x0cc\n", 1, "x", "a\u2028b\x0cc\nx\n"),
        ("a\n", 1, "x\ny", "a\nx\ny\n"),
        ("a\n", 1, "", "a\n\n"),
    ],
)
def test_lines_are_inserted(before, at, added, after):
    assert text_after("insert", {A: before}, insert_line=at, insert_text=added) == after


def test_inserting_says_so():
    assert (
        reported("insert", path=A, insert_line=0, insert_text="x").text
        == "The file /memories/a.md has been edited."
    )


@pytest.mark.parametrize("line", [-1, 4])
def test_nothing_is_inserted_beside_the_file(line):
    assert refused("insert", path=A, insert_line=line, insert_text="x") == (
        f"Error: Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file: [0, 3]"
    )


def test_a_file_and_a_directory_are_deleted():
    assert reported("delete", path=A) == ("Successfully deleted /memories/a.md", False, {B: "x"})
    assert reported("delete", path="/memories/dir") == (
        "Successfully deleted /memories/dir",
        False,
        {A: FILES[A]},
    )


def test_the_root_stays():
    assert refused("delete", path="/memories/") == "Error: Cannot delete the /memories directory itself"
    for old, new in (("/memories", "/memories/x"), (A, "/memories")):
        assert (
            refused("rename", old_path=old, new_path=new)
            == "Error: Cannot rename the /memories directory itself"
        )


def test_a_missing_file_is_not_deleted_or_renamed():
    assert refused("delete", path="/memories/no") == "Error: The path /memories/no does not exist"
    assert (
        refused("rename", old_path="/memories/no", new_path="/memories/new")
        == "Error: The path /memories/no does not exist"
    )


def test_a_file_and_a_directory_are_renamed():
    answer = reported("rename", old_path=A, new_path="/memories/new/a.md")
    assert answer == ("Successfully renamed /memories/a.md to /memories/new/a.md", False, {"/memories/new/a.md": FILES[A], B: "x"})  # fmt: skip

    assert reported("rename", old_path="/memories/dir", new_path="/memories/d2").files == {
        A: FILES[A],
        "/memories/d2/b.md": "x",
    }
    assert reported("rename", old_path=A, new_path="/memories/A.md").files == {
        "/memories/A.md": FILES[A],
        B: "x",
    }


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


def test_other_files_are_listed_and_left_alone():
    picture = {"/memories/dir/p.png": 2048}

    def answer(command, **given):
        return run(FILES, {"command": command, **given}, others=picture)

    assert "2.0K\t/memories/dir/p.png" in answer("view", path="/memories").text
    assert (
        answer("view", path="/memories/dir/p.png").text
        == "Error: /memories/dir/p.png is no text that can be shown"
    )
    for said in (
        answer("delete", path="/memories/dir"),
        answer("rename", old_path="/memories/dir", new_path="/memories/d2"),
    ):
        assert said == ("Error: /memories/dir/p.png is no note of yours and is left alone", True, None)
    assert answer("create", path="/memories/dir/p.png", file_text="").is_error
    assert answer("rename", old_path=A, new_path="/memories/dir/p.png/x").is_error


def test_a_command_becomes_a_change_of_the_document():
    document = {"schema_version": 3, "files": FILES}

    made = change(document, {"command": "delete", "path": A})
    looked = change(document, {"command": "view", "path": A})

    assert made.patches["memories"] == [{"op": "remove", "path": "/files/~1memories~1a.md"}]
    assert apply(document, made.patches["memories"])["files"] == made.result.files == {B: "x"}
    assert looked.patches == {}


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


def test_the_root_is_always_in_the_way():
    assert blocking_path(index([]), "/memories") == "/memories"


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


def test_another_file_in_the_place_of_a_note_removes_it():
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
def test_a_note_that_must_not_be_written_is_not_pending(path, text):
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

from aether.memory.briefing.block import Line
from aether.memory.briefing.sections import (
    MOST_SCRATCH,
    changed_files,
    common_root,
    is_scratch,
    newest_items,
    path_shortener,
    with_short_paths,
)
from tests.memory.briefs import at, documents, item
from tests.tables import rows


def newest(*items):
    return newest_items(documents(*items)["memory"])


def changed(*paths):
    """Return changes to `paths`, the last of them the newest."""
    return newest(*(item(f"Changed {path}", "code_change", hour=hour) for hour, path in enumerate(paths)))


def paths(lines):
    return [line.text.split(" (")[0] for line in lines]


def test_a_file_is_told_once_with_all_its_edits():
    items = newest(
        item("Created /p/a.py (20 lines): parse", "code_change", day=1),
        item("Changed /p/a.py (3 edits): parse, read", "code_change", day=2),
        item("Changed /p/b c.py: x = 1", "code_change", day=3),
        item("Deleted /p/old.py", "code_change", day=1, hour=2),
        item("Moved house", "code_change", day=4),
    )

    assert changed_files(items) == [
        Line("files", "/p/b c.py (changed, 1x): x = 1", at(3)),
        Line("files", "/p/a.py (changed, 4x): parse, read", at(2)),
        Line("files", "/p/old.py (deleted, 1x)", at(1, 2)),
    ]


def test_paths_below_the_root_are_told_from_there_wherever_they_stand():
    short = path_shortener("/home/me/p")

    assert short("/home/me/p/a.py and `/home/me/p/b.py`") == "a.py and `b.py`"
    assert short("/home/me/pp/a.py /x/home/me/p/a.py") == "/home/me/pp/a.py /x/home/me/p/a.py"


@rows("root", ["", "/", "/srv"])
def test_what_holds_more_than_a_project_is_no_root(root):
    assert path_shortener(root)("/srv/a.py") == "/srv/a.py"


def test_only_items_that_name_the_root_are_made_anew():
    one, other = item("see /home/me/p/a.py"), item("see a.py")

    first, second = with_short_paths([one, other], "/home/me/p")

    assert (first["content"], one["content"]) == ("see a.py", "see /home/me/p/a.py")
    assert second is other


@rows(
    "path",
    [
        "/tmp/a.py", "/private/tmp/x/a.py", "/var/folders/x/a.py", "SCRATCH/run.sh", "$TMPDIR/a", "${TMP}/a", "x/scratchpad/a.go",
        "C:/Users/me/AppData/Local/Temp/a.py",
    ],
)  # fmt: skip
def test_what_is_thrown_away_lies_in_a_scratch_directory(path):
    assert is_scratch(path)


@rows("path", ["src/a.py", "/home/me/p/tmp.py", "src/templates/a.html", "/srv/tmpfiles/a", "ATTEMPT.md"])
def test_other_directories_are_kept(path):
    assert not is_scratch(path)


def test_scratch_files_come_last_and_few_are_told():
    items = changed("src/a.py", *(f"/tmp/{number}.py" for number in range(9)))

    assert paths(changed_files(items)) == ["src/a.py", "/tmp/8.py", "/tmp/7.py", "/tmp/6.py"]
    assert len(changed_files(items)) == 1 + MOST_SCRATCH


def test_one_file_named_in_two_ways_is_one():
    items = changed("/home/me/p/src/a.py", "src/a.py", "src/b.py")

    assert [line.text for line in changed_files(items)] == [
        "src/b.py (changed, 1x)", "/home/me/p/src/a.py (changed, 2x)",
    ]  # fmt: skip


def test_of_two_files_that_end_alike_neither_is_the_one_that_is_meant():
    items = changed("/home/me/p/src/a.py", "/home/me/q/src/a.py", "src/a.py")

    assert len(changed_files(items)) == 3


def test_below_a_known_root_a_relative_path_is_no_other_file():
    items = changed("/home/me/other/src/a.py", "src/a.py")

    assert len(changed_files(items, root="/home/me/p")) == 2


def test_the_foremost_files_are_those_edited_most_and_lately():
    items = newest(
        item("Changed often.py (9 edits)", "code_change", day=1),
        item("Changed once.py", "code_change", day=2),
        item("Changed new.py (2 edits)", "code_change", day=3),
    )

    assert paths(changed_files(items, foremost=True)) == ["often.py", "new.py", "once.py"]
    assert paths(changed_files(items)) == ["new.py", "once.py", "often.py"]


@rows(
    "about", ["#!/bin/zsh", "// Copyright 2026 Us", "# SPDX-License-Identifier: MIT", "package main", "import re", '"log/slog"', "})", "func run() {"]
)  # fmt: skip
def test_a_first_line_that_many_files_have_says_nothing(about):
    [line] = changed_files(newest(item(f"Changed src/a.go: {about}", "code_change")))

    assert line.text == "src/a.go (changed, 1x)"


def test_the_root_is_the_deepest_directory_that_holds_most_files():
    def root(*paths):
        return common_root([Line("files", f"{path} (changed, 1x)") for path in paths])

    assert root("/home/me/p/src/a.py", "/home/me/p/src/b.py", "/home/me/notes.md") == "/home/me/p/src/"
    assert root("/home/me/p/src/a.py", "/home/me/q/b.py", "/srv/c.py") == ""
    assert root("/home/me/p/src/a.py") == ""
    assert root("src/p/q/r/a.py", "src/p/q/r/b.py") == ""
    assert root() == ""

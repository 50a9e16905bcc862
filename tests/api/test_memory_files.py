"""The memory tool over a home: one transaction for each command, and files that show it."""

from __future__ import annotations

import os

import pytest

import aether
from aether.api import memory_tool
from aether.api.memory_tool import clear_memory_files
from aether.api.memory_tool import memory_tool as memory_tool_memory_tool
from aether.errors import NotFound
from aether.store import documents
from aether.store.commit import Author, commit, fold_home
from aether.store.undo import undo
from tests import homes


def tool(home, command, **given):
    answer = memory_tool_memory_tool({"command": command, **given}, home=home)
    assert not answer.is_error, answer.text
    return answer.text


def shown(home):
    """Return the files in the directory: text by path."""
    root = home / "memories"
    return {
        f"/memories/{path.relative_to(root).as_posix()}": path.read_bytes().decode()
        for path in root.rglob("*")
        if path.is_file()
    }


def stored(home):
    return homes.anew(home).documents["memories"]["files"]


def test_a_home_that_cannot_be_written_can_be_viewed(home, monkeypatch):
    tool(home, "create", path="/memories/a.md", file_text="text")
    tool(home, "create", path="/memories/b.md", file_text="b")
    (home / "memories/a.md").write_text("mine")
    (home / "memories/b.md").unlink()
    before = [(path, path.stat().st_mtime_ns) for path in sorted(home.rglob("*"))]
    monkeypatch.setattr(os, "access", lambda path, mode: False)

    assert tool(home, "view", path="/memories/a.md").endswith("1\tmine")
    assert "b.md" not in tool(home, "view", path="/memories")

    assert [(path, path.stat().st_mtime_ns) for path in sorted(home.rglob("*"))] == before
    assert stored(home)["/memories/a.md"] == "text"


def test_a_home_without_notes_can_be_viewed_although_it_cannot_be_written(home, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)

    assert tool(home, "view", path="/memories").endswith("0B\t/memories")


def test_every_command_is_in_the_log_and_in_the_directory(home):
    tool(home, "create", path="/memories/a.md", file_text="one\r\ntwo")
    tool(home, "str_replace", path="/memories/a.md", old_str="two", new_str="2")
    tool(home, "insert", path="/memories/a.md", insert_line=0, insert_text="zero")
    tool(home, "create", path="/memories/dir/sub/b.md", file_text="")
    tool(home, "rename", old_path="/memories/a.md", new_path="/memories/dir/a.md")
    tool(home, "view", path="/memories")
    tool(home, "delete", path="/memories/dir/sub")

    assert shown(home) == stored(home) == {"/memories/dir/a.md": "zero\none\r\n2"}
    assert [path.name for path in (home / "memories").rglob("*")] == ["dir", "a.md"]
    lines = aether.log(home=home)
    assert [line.operation for line in lines[:-1]] == [
        "memory delete", "memory rename", "memory create", "memory insert", "memory str_replace", "memory create",
    ]  # fmt: skip
    assert (lines[0].by, lines[0].reason, lines[0].touched) == ("model", "/memories/dir/sub", ["memories"])
    assert lines[1].reason == "/memories/a.md"


def test_what_the_model_got_wrong_is_an_answer_and_changes_nothing(home):
    before = homes.anew(home).revision

    assert memory_tool_memory_tool({"command": "view", "path": "/etc/passwd"}, home=home).is_error
    assert memory_tool_memory_tool({"command": "delete", "path": "/memories"}, home=home).is_error
    assert memory_tool_memory_tool({}, home=home).is_error

    assert homes.anew(home).revision == before
    assert not (home / "memories").exists()


def test_files_and_directories_are_their_owners_alone(home):
    tool(home, "create", path="/memories/dir/a.md", file_text="x")

    assert (home / "memories/dir/a.md").stat().st_mode & 0o777 == 0o600
    assert (home / "memories/dir").stat().st_mode & 0o777 == 0o700


def test_without_a_home_the_caller_is_told(tmp_path):
    with pytest.raises(NotFound):
        memory_tool_memory_tool({"command": "view", "path": "/memories"}, home=tmp_path / "no")


def test_undo_takes_a_command_back_in_the_directory_too(home):
    tool(home, "create", path="/memories/a.md", file_text="first")
    tool(home, "str_replace", path="/memories/a.md", old_str="first", new_str="second")

    aether.undo(home=home)
    assert shown(home) == {"/memories/a.md": "first"}
    aether.undo(home=home)
    assert shown(home) == {}
    aether.undo(5, home=home)
    assert shown(home) == stored(home) == {"/memories/a.md": "first"}


def test_a_deleted_directory_comes_back(home):
    tool(home, "create", path="/memories/d/a.md", file_text="a")
    tool(home, "create", path="/memories/d/b.md", file_text="b")
    tool(home, "delete", path="/memories/d")

    aether.undo(home=home)

    assert shown(home) == {"/memories/d/a.md": "a", "/memories/d/b.md": "b"}


def test_an_edit_by_hand_stays_when_something_else_is_undone(home):
    tool(home, "create", path="/memories/a.md", file_text="a")
    tool(home, "create", path="/memories/b.md", file_text="b")
    (home / "memories/a.md").write_text("mine")

    aether.undo(home=home)

    assert shown(home) == stored(home) == {"/memories/a.md": "mine"}


def test_a_snapshot_brings_the_files_back(home):
    tool(home, "create", path="/memories/a.md", file_text="a")
    aether.create_snapshot(home=home)
    tool(home, "delete", path="/memories/a.md")
    tool(home, "create", path="/memories/b.md", file_text="b")

    assert aether.restore_snapshot(home=home) == ["memories"]

    assert shown(home) == stored(home) == {"/memories/a.md": "a"}


def test_the_past_can_be_seen(home):
    tool(home, "create", path="/memories/a.md", file_text="a")
    tool(home, "delete", path="/memories/a.md")

    assert aether.show("memories", home=home, revision=1)["files"] == {}
    assert aether.show("memories", home=home, revision=2)["files"] == {"/memories/a.md": "a"}
    assert aether.export(home=home)["documents"]["memories"]["files"] == {}


def test_the_document_is_written_when_it_is_folded(home):
    tool(home, "create", path="/memories/a.md", file_text="a")
    assert not documents.path_of(home, "memories").exists()

    fold_home(home, now=homes.NOW)

    assert documents.read(documents.path_of(home, "memories")).value["files"] == {"/memories/a.md": "a"}
    assert aether.examine(home=home) == []


def test_an_edit_of_the_document_by_hand_is_shown(home):
    tool(home, "create", path="/memories/a.md", file_text="before")
    fold_home(home, now=homes.NOW)
    path = documents.path_of(home, "memories")
    path.write_text(path.read_text().replace("before", "after"))

    assert "after" in tool(home, "view", path="/memories/a.md")

    assert shown(home) == {"/memories/a.md": "after"}


def test_all_files_are_cleared_and_come_back(home):
    tool(home, "create", path="/memories/a.md", file_text="a")
    tool(home, "create", path="/memories/d/b.md", file_text="b")

    assert clear_memory_files(home=home) == 2
    assert shown(home) == stored(home) == {}

    aether.undo(home=home)
    assert len(shown(home)) == 2


def test_an_undo_in_between_is_answered_with_what_is_true_then(home, monkeypatch):
    """The first look is without the home's lock; what counts is what the commit finds."""
    tool(home, "create", path="/memories/a.md", file_text="a")
    real = memory_tool.change

    def change(*given):
        commit(home, lambda now: undo(now, 2), Author("undo", reason="of revision 2"), now=homes.NOW)
        return real(*given)

    monkeypatch.setattr(memory_tool, "change", change)
    command = {"command": "str_replace", "path": "/memories/a.md", "old_str": "a", "new_str": "b"}

    answer = memory_tool_memory_tool(command, home=home)

    assert answer == ("Error: The path /memories/a.md does not exist. Please provide a valid path.", True)
    tool(home, "view", path="/memories")
    assert shown(home) == stored(home) == {}

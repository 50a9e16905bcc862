"""The memory tool: its commands, and the directory that shows its files."""

from __future__ import annotations

import os
import shutil

import pytest

import aether
from aether.api import memory_tool
from aether.api.memory_tool import (
    clear_memory_files,
    directory_lock,
    directory_updated,
    examine_directory,
    synchronize_directory,
)
from aether.api.memory_tool import memory_tool as memory_tool_memory_tool
from aether.errors import LockTimeout, NotFound, UnsafePath
from aether.memory.memory_tool import MAX_FILE_BYTES
from aether.store import documents
from aether.store.authors import Author
from aether.store.commit import commit, fold_home
from aether.store.undo import undo
from aether.types import Change
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
    return homes.reopened(home).documents["memories"]["files"]


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

    assert shown(home) == stored(home) == {"/memories/dir/a.md": "zero\r\none\r\n2"}
    assert [path.name for path in (home / "memories").rglob("*")] == ["dir", "a.md"]
    lines = aether.log(home=home)
    assert [line.operation for line in lines[:-1]] == [
        "memory delete", "memory rename", "memory create", "memory insert", "memory str_replace", "memory create",
    ]  # fmt: skip
    assert (lines[0].by, lines[0].reason, lines[0].touched) == ("model", "/memories/dir/sub", ["memories"])
    assert lines[1].reason == "/memories/a.md"


def test_a_mistake_of_the_model_yields_an_answer_and_changes_nothing(home):
    before = homes.reopened(home).revision

    assert memory_tool_memory_tool({"command": "view", "path": "/etc/passwd"}, home=home).is_error
    assert memory_tool_memory_tool({"command": "delete", "path": "/memories"}, home=home).is_error
    assert memory_tool_memory_tool({}, home=home).is_error

    assert homes.reopened(home).revision == before
    assert not (home / "memories").exists()


def test_files_and_directories_are_their_owners_alone(home):
    tool(home, "create", path="/memories/dir/a.md", file_text="x")

    assert (home / "memories/dir/a.md").stat().st_mode & 0o777 == 0o600
    assert (home / "memories/dir").stat().st_mode & 0o777 == 0o700


def test_a_missing_home_raises_an_error(tmp_path):
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


A = "/memories/a.md"


@pytest.fixture
def used(home):
    """Return a home with one note, `a.md`."""
    tool(home, "create", path=A, file_text="text\n")
    return home


def look(home):
    return tool(home, "view", path="/memories")


def test_a_person_edits_adds_and_deletes(used):
    tool(used, "create", path="/memories/b.md", file_text="b")
    (used / "memories/a.md").write_text("mine\n")
    (used / "memories/dir").mkdir()
    (used / "memories/dir/c.md").write_text("c")
    (used / "memories/b.md").unlink()

    look(used)

    assert stored(used) == shown(used) == {A: "mine\n", "/memories/dir/c.md": "c"}
    line = aether.log(home=used)[0]
    assert (line.operation, line.by, line.reason) == (
        "edited by hand", "hand", "/memories/a.md, /memories/b.md, /memories/dir/c.md",
    )  # fmt: skip
    assert look(used)
    assert aether.log(home=used)[0] == line


def test_an_edit_by_hand_meets_a_command_on_what_it_says_now(used):
    (used / "memories/a.md").write_text("mine\n")

    answer = memory_tool_memory_tool(
        {"command": "str_replace", "path": A, "old_str": "text", "new_str": "x"}, home=used
    )

    assert answer.is_error
    assert shown(used) == {A: "mine\n"}


def test_an_edit_by_hand_is_undone_like_any_other(used):
    (used / "memories/a.md").write_text("mine\n")
    look(used)

    aether.undo(home=used)

    assert shown(used) == stored(used) == {A: "text\n"}


def test_files_of_a_person_come_first(home):
    (home / "memories").mkdir()
    (home / "memories/mine.md").write_text("mine")

    assert "/memories/mine.md" in look(home)

    assert stored(home) == {"/memories/mine.md": "mine"}


def test_a_removed_directory_is_created_again(used):
    shutil.rmtree(used / "memories")

    look(used)

    assert shown(used) == stored(used) == {A: "text\n"}


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]"])
def test_lost_checksums_lose_nothing(used, content):
    tool(used, "create", path="/memories/b.md", file_text="b")
    stamp = used / "data/memories/stamp.json"
    if content is None:
        stamp.unlink()
    else:
        stamp.write_bytes(content)
    (used / "memories/a.md").write_text("mine")

    look(used)

    assert shown(used) == stored(used) == {A: "mine", "/memories/b.md": "b"}


def odd_ones(root):
    (root / "p.png").write_bytes(b"\x89PNG\r\n\x1a\n\xff")
    (root / "nul").write_bytes(b"a\0b")
    (root / "big").write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    (root / "link").symlink_to("/etc/passwd")
    (root / "dirlink").symlink_to("/etc")
    os.mkfifo(root / "pipe")
    (root / "back\\slash").write_text("x")
    (root / "dir").mkdir()
    (root / "dir/con").write_text("x")
    with open(os.fsencode(root) + b"/\xff", "wb") as file:
        file.write(b"x")


def test_a_file_that_is_not_a_note_is_listed_and_left_unchanged(used):
    odd_ones(used / "memories")
    before = {path: path.lstat() for path in (used / "memories").rglob("*")}

    listed = look(used)

    assert stored(used) == {A: "text\n"}
    assert {path: path.lstat().st_mtime_ns for path in before} == {
        path: found.st_mtime_ns for path, found in before.items()
    }
    for name in ("p.png", "nul", "big", "link", "dirlink", "pipe", "back\\slash", "dir/con", "\ufffd"):
        assert f"\t/memories/{name}" in listed
    for name in ("p.png", "link", "dirlink", "big"):
        for command in ("view", "delete"):
            assert memory_tool_memory_tool(
                {"command": command, "path": f"/memories/{name}"}, home=used
            ).is_error
    assert memory_tool_memory_tool(
        {"command": "view", "path": "/memories/dirlink/passwd"}, home=used
    ).is_error
    assert memory_tool_memory_tool(
        {"command": "create", "path": "/memories/dirlink/new", "file_text": ""}, home=used
    ).is_error
    found = examine_directory(used)
    assert {(each.level, each.code) for each in found} == {("info", "no-note")}
    assert len(found) == 9


def test_a_file_in_the_place_of_a_note_is_kept(used):
    (used / "memories/a.md").write_bytes(b"\xff\xfe")

    look(used)

    assert stored(used) == {}
    assert (used / "memories/a.md").read_bytes() == b"\xff\xfe"


def test_the_directory_may_not_be_a_link(used, tmp_path):
    shutil.move(used / "memories", tmp_path / "elsewhere")
    (used / "memories").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(UnsafePath, match="is a link"):
        look(used)

    assert [finding.code for finding in examine_directory(used)] == ["UnsafePath"]
    aether.undo(home=used)  # of the document alone: the directory is not in the way
    assert (tmp_path / "elsewhere/a.md").read_text() == "text\n"


def test_a_document_that_leads_out_is_not_followed(used, tmp_path):
    """A person, or who sends him a file, may write anything into the document."""
    (used / "memories/out").symlink_to(tmp_path)
    paths = ["/memories/../../evil", "/memories/out/evil", "/etc/evil", "/memories/a.md/below"]
    patch = [{"op": "add", "path": "/files/" + path.replace("/", "~1"), "value": "evil"} for path in paths]
    commit(used, lambda _: Change({"memories": patch}), Author("edit"), now=homes.NOW)

    look(used)

    assert not [path for path in tmp_path.rglob("*") if path.name == "evil"]
    assert shown(used)[A] == "text\n"


def test_a_file_that_a_person_makes_meanwhile_is_not_written_over(used, monkeypatch):
    real = memory_tool.compare

    def compared(*given, **named):
        found = real(*given, **named)
        if found.pending:
            (used / "memories/b.md").write_text("mine")
        return found

    monkeypatch.setattr(memory_tool, "compare", compared)
    tool(used, "create", path="/memories/b.md", file_text="of the model")
    monkeypatch.undo()

    assert shown(used)["/memories/b.md"] == "mine"
    look(used)
    assert stored(used)["/memories/b.md"] == "mine"


def test_a_file_in_the_place_of_a_directory_is_left(used, monkeypatch):
    """A person makes it between the look at the directory and the writing."""
    (used / "memories/x").write_bytes(b"\xff")
    monkeypatch.setattr(memory_tool, "_scan", lambda home: ({A: "text\n"}, {}))

    tool(used, "create", path="/memories/x/y.md", file_text="y")

    assert (used / "memories/x").read_bytes() == b"\xff"
    assert stored(used)["/memories/x/y.md"] == "y"


def test_names_that_differ_in_case_alone_are_not_both_brought_in(home):
    (home / "memories").mkdir()
    (home / "memories/N.md").write_text("1")
    (home / "memories/n.md").write_text("2")
    if len(list((home / "memories").iterdir())) == 1:
        pytest.skip("this file system takes them for one")

    listed = look(home)

    assert stored(home) == {"/memories/N.md": "1"}
    assert "\t/memories/n.md" in listed
    assert shown(home) == {"/memories/N.md": "1", "/memories/n.md": "2"}


def test_one_at_a_time(used):
    homes.configure(used, "[store]\nlock_timeout_seconds = 0.01\n")

    with directory_lock(used), pytest.raises(LockTimeout):
        look(used)


def test_a_damaged_directory_does_not_stop_an_undo(used):
    homes.configure(used, "[store]\nlock_timeout_seconds = 0.01\n")

    with directory_lock(used), directory_updated(used):
        pass

    assert shown(used) == {A: "text\n"}


def test_a_home_without_notes_is_not_looked_into(home):
    with directory_updated(home):
        pass

    assert not (home / "data/memories").exists()
    assert examine_directory(home) == []


def test_a_secret_in_a_note_is_a_finding(used):
    tool(used, "create", path="/memories/s.md", file_text="api_key=sk-abcdefghijklmnop1234\n")

    found = [finding for finding in aether.examine(home=used) if finding.code == "secret"]

    assert [(finding.level, finding.where) for finding in found] == [("warning", "memories/s.md")]


def test_temp_files_are_no_notes_and_the_doctor_takes_them_away(used):
    (used / "memories/.a.md.0123.aether-tmp").write_text("half")

    assert "aether-tmp" not in look(used)
    aether.repair(home=used)

    assert os.listdir(used / "memories") == ["a.md"]


def test_a_file_that_vanishes_during_the_scan_is_ignored(used, monkeypatch):
    monkeypatch.setattr(memory_tool, "_text", lambda file, path: file.unlink(missing_ok=True))

    with directory_lock(used):
        found = synchronize_directory(used)

    assert (found.texts, found.others) == ({}, {})


@pytest.mark.parametrize("path", ["/memories/a:b", "/memories/C:", "/memories/C:/x.md"])
def test_a_name_that_windows_takes_for_a_drive_or_a_stream_is_refused(path, home):
    tool(home, "create", path="/memories/a.md", file_text="one")

    for command in (
        {"command": "create", "path": path, "file_text": "x"},
        {"command": "rename", "old_path": "/memories/a.md", "new_path": path},
    ):
        answer = memory_tool_memory_tool(command, home=home)
        assert answer.is_error
        assert "colon" in answer.text


def test_notes_are_recalled_by_the_words_in_them_and_read_by_their_paths(home):
    text = "# Deploy\n\nThe order of the services.\n\nDeploy by make ship, never on Fridays."
    tool(home, "create", path="/memories/deploy.md", file_text=text)
    tool(home, "create", path="/memories/ants.md", file_text="Ants carry fifty times their weight.")

    (match,) = memory_tool.recall_notes("deploying on friday", limit=3, home=home)

    assert match == ("/memories/deploy.md", "Deploy by make ship, never on Fridays.", 1.0)
    assert memory_tool.recall_notes("bees", limit=3, home=home) == []
    assert memory_tool.recall_notes("the", limit=3, home=home) == []
    assert memory_tool.read_note("/memories/deploy.md", home=home) == text
    with pytest.raises(NotFound, match="there is no note"):
        memory_tool.read_note("/memories/none.md", home=home)

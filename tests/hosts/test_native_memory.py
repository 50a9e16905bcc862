"""Claude Code's own memory in the home: brought in, committed at the events of hooks, and given back as it is."""

from __future__ import annotations

import json
import os
import runpy
import sys

import pytest

import aether
from aether.api import memory_tool
from aether.cli.main import main
from aether.errors import CorruptDocument, InvalidInput
from aether.hosts import hook
from aether.hosts.claude_code import native_memory
from aether.store.snapshot import load
from tests import homes


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return the home of a project, with a user whose Claude Code has two notes about it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    project = tmp_path / "my app"
    (project / ".git").mkdir(parents=True)
    (project / ".claude").mkdir()
    monkeypatch.chdir(project)
    homes.fresh(project)
    own = own_directory(project / ".aether")
    (own / "team").mkdir(parents=True)
    (own / "MEMORY.md").write_text("- [Deploy](team/deploy.md)\n")
    (own / "team" / "deploy.md").write_text("Deploy by make ship.\n")
    return project / ".aether"


def own_directory(home):
    name = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in str(home.parent.resolve()))
    return home.parent.parent / "user" / ".claude" / "projects" / name / "memory"


def settings_of(home):
    return home.parent / ".claude" / "settings.local.json"


def event(name, home, tool="Write", path="", **fields):
    """Play one event to the hook of Claude Code."""
    payload = {"hook_event_name": name, "session_id": "s", "cwd": str(home.parent), **fields}
    if path:
        payload |= {"tool_name": tool, "tool_input": {"file_path": str(path)}, "tool_response": {}}
    assert hook.main([], json.dumps(payload).encode())[0] == 0


def changes(home):
    """Return operation and reason of each change that Claude Code made, oldest first."""
    lines = [line for line in aether.log(home=home, limit=0) if line.by == "claude-code"]
    return [(line.operation, line.reason) for line in sorted(lines, key=lambda line: line.revision)]


def tree(directory):
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*")) if path.is_file()
    }  # fmt: skip


def test_installing_brings_the_notes_in_and_uninstalling_gives_them_back_as_they_were(home):
    own = own_directory(home)
    before, settings = tree(own), b'{\n    "permissions": {"allow": []}\n}\n'
    settings_of(home).write_bytes(settings)

    done = native_memory.install(home)
    assert (done.directory, done.files, done.left) == (
        str(own), ["/memories/MEMORY.md", "/memories/team/deploy.md"], [],
    )  # fmt: skip
    assert json.loads(settings_of(home).read_text())["autoMemoryDirectory"] == str(home / "memories")
    assert tree(home / "memories") == tree(own)
    assert changes(home) == [("memory import", str(own))]
    again = native_memory.install(home)
    assert (again.settings.change, again.files) == ("unchanged", [])
    assert len(changes(home)) == 1

    back = native_memory.uninstall(home)
    assert (back.directory, back.files, back.left) == (str(own), ["MEMORY.md", "team/deploy.md"], [])
    assert tree(own) == before
    assert settings_of(home).read_bytes() == settings
    assert native_memory.uninstall(home) is None


def test_a_write_is_committed_when_it_happens_and_is_no_other_event(home):
    native_memory.install(home)
    note = home / "memories" / "team" / "deploy.md"
    note.write_text("Deploy by make ship, never on Fridays.\n")

    event("PostToolUse", home, path=note)

    assert changes(home)[1:] == [("memory write", "PostToolUse s /memories/team/deploy.md")]
    assert list((home / "hooks" / "spool").glob("*.json")) == []
    revision = load(home).revision
    aether.undo(revision, home=home)
    assert note.read_text() == "Deploy by make ship.\n"


@pytest.mark.parametrize("name", ["SessionStart", "Stop", "SubagentStop", "PreCompact"])
def test_what_a_command_or_a_consolidation_wrote_is_committed_at_the_next_event(home, name):
    native_memory.install(home)
    (home / "memories" / "people.md").write_text("Ask Grimaldi.\n")
    (home / "memories" / "MEMORY.md").unlink()

    event(name, home, source="startup", agent_id="a", agent_type="scout", last_assistant_message="Done.")

    assert changes(home)[1:] == [("memory write", f"{name} s /memories/MEMORY.md, /memories/people.md")]
    assert set(load(home).documents["memories"]["files"]) == {
        "/memories/people.md",
        "/memories/team/deploy.md",
    }


def test_a_person_may_edit_beside_it_and_nothing_is_overwritten(home):
    native_memory.install(home)
    aether.memory_tool({"command": "create", "path": "/memories/a.md", "file_text": "tool\n"}, home=home)
    (home / "memories" / "a.md").write_text("person\n")

    aether.memory_tool({"command": "view", "path": "/memories"}, home=home)
    event("Stop", home)

    assert (home / "memories" / "a.md").read_text() == "person\n"
    assert len(changes(home)) == 1


@pytest.mark.parametrize(
    "path", ["memories.md", "src/memories/a.md", ".aether/data/memories/x", ".aether/memories/../config.toml"]
)
def test_another_file_is_an_event_like_any_other(home, path):
    native_memory.install(home)

    event("PostToolUse", home, path=home.parent / path)

    assert len(list((home / "hooks" / "spool").glob("*.json"))) == 1
    assert len(changes(home)) == 1


def test_without_the_installation_or_while_paused_nothing_is_committed_for_claude_code(home):
    (home / "memories").mkdir()
    note = home / "memories" / "a.md"
    note.write_text("mine\n")
    event("PostToolUse", home, path=note)
    assert len(list((home / "hooks" / "spool").glob("*.json"))) == 1  # an edit like any other
    event("Stop", home)
    native_memory.install(home)
    (home / "hooks" / "paused").touch()
    note.write_text("changed\n")
    event("PostToolUse", home, path=note)

    assert [operation for operation, _ in changes(home)] == ["memory import"]


def test_a_failure_is_a_line_of_the_log_and_the_note_waits(home, monkeypatch):
    native_memory.install(home)
    note = home / "memories" / "a.md"
    note.write_text("new\n")

    def fail(*_, **__):
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(memory_tool, "keep_edits", fail)
        event("Stop", home)
        event("PostToolUse", home, path=note)
    assert (home / "hook.log").read_text().count("the disk is full") == 2

    event("PreCompact", home)
    assert changes(home)[-1] == ("memory write", "PreCompact s /memories/a.md")


@pytest.mark.parametrize("mode", ["propose", "off"])
def test_where_agents_may_not_write_their_notes_are_put_back_and_kept_aside(home, monkeypatch, mode):
    native_memory.install(home)
    monkeypatch.setenv("AETHER_MEMORY_AGENTS", mode)
    memories, before = home / "memories", tree(home / "memories")
    (memories / "MEMORY.md").write_text("I know better.\n")
    (memories / "new.md").write_text("A new one.\n")
    (memories / "team" / "deploy.md").unlink()

    event("PostToolUse", home, path=memories / "MEMORY.md")

    assert tree(memories) == before
    aside = {path.read_text() for path in (home / "quarantine").iterdir()}
    assert aside == {"I know better.\n", "A new one.\n"}
    assert "memory.agents" in (home / "hook.log").read_text()
    event("Stop", home)
    monkeypatch.delenv("AETHER_MEMORY_AGENTS")
    assert (tree(memories), changes(home)[1:]) == (before, [])


def test_in_a_shared_home_a_process_of_its_own_commits_and_the_hook_asks_no_server(home, monkeypatch):
    native_memory.install(home)
    note = home / "memories" / "a.md"
    note.write_text("new\n")
    started = []
    with monkeypatch.context() as patch:
        patch.setattr("aether.store.ledger.is_shared", lambda _: True)
        patch.setattr("aether.hosts.answer.start_process", lambda place, words: started.append(words))
        event("PostToolUse", home, path=note)
    assert started == [["-m", native_memory.__name__, str(home), "PostToolUse", "s"]]
    assert len(changes(home)) == 1

    monkeypatch.setattr(sys, "argv", ["", *started[0][2:]])
    runpy.run_path(native_memory.__file__, run_name="__main__")

    assert changes(home)[1:] == [("memory write", "PostToolUse s /memories/a.md")]


def test_a_note_whose_place_is_taken_comes_beside_it(home):
    aether.memory_tool({"command": "create", "path": "/memories/MEMORY.md", "file_text": "tool\n"}, home=home)

    native_memory.install(home)

    files = load(home).documents["memories"]["files"]
    assert files["/memories/MEMORY.md"] == "tool\n"
    assert files["/memories/claude-code/MEMORY.md"] == "- [Deploy](team/deploy.md)\n"
    native_memory.uninstall(home)
    own = own_directory(home)
    assert (own / "MEMORY.md").read_text() == "tool\n"
    assert (own / "claude-code" / "MEMORY.md").read_text() == "- [Deploy](team/deploy.md)\n"


def test_what_others_wrote_meanwhile_is_kept_beside_the_notes_given_back(home, tmp_path):
    native_memory.install(home)
    own, memories = own_directory(home), home / "memories"
    (own / "MEMORY.md").write_text("by another program\n")
    (own / "other.md").write_text("by another program\n")
    (own / "picture.png").write_bytes(b"\xff\x00")
    (memories / "MEMORY.md").write_text("newest\n")
    (memories / "team" / "deploy.md").unlink()
    os.symlink(tmp_path, own / "out")
    aether.memory_tool({"command": "create", "path": "/memories/out/a.md", "file_text": "x\n"}, home=home)

    back = native_memory.uninstall(home)

    assert back.left == ["MEMORY.md"]
    found = tree(own)
    assert found["MEMORY.md"] == b"newest\n"
    assert found["MEMORY.md.before-aether"] == found["other.md"] == b"by another program\n"
    assert "team/deploy.md" not in found
    assert found["picture.png"] == b"\xff\x00"
    assert not (tmp_path / "a.md").exists()


def test_a_note_that_was_deleted_stays_where_somebody_else_has_changed_it(home):
    native_memory.install(home)
    (home / "memories" / "MEMORY.md").unlink()
    (own_directory(home) / "MEMORY.md").write_text("by another program\n")

    assert native_memory.uninstall(home).left == ["MEMORY.md"]

    assert (own_directory(home) / "MEMORY.md").read_text() == "by another program\n"


def test_the_setting_that_a_person_had_is_where_the_notes_come_from_and_go_back_to(home, tmp_path):
    own = tmp_path / "mine"
    own.mkdir()
    (own / "a.md").write_text("mine\n")
    (own / "large.md").write_bytes(b"x" * (2 << 20))
    text = json.dumps({"autoMemoryDirectory": str(own)})
    settings_of(home).write_text(text)

    assert native_memory.install(home, dry_run=True).files == ["/memories/a.md"]
    assert settings_of(home).read_text() == text
    done = native_memory.install(home)
    settings = json.loads(settings_of(home).read_text())
    settings_of(home).write_text(json.dumps({**settings, "model": "opus"}))
    back = native_memory.uninstall(home)

    assert (done.left, back.directory) == (["large.md"], str(own))
    assert json.loads(settings_of(home).read_text()) == {"autoMemoryDirectory": str(own), "model": "opus"}


def test_a_setting_that_somebody_else_changed_meanwhile_stays(home):
    native_memory.install(home)
    text = json.dumps({"autoMemoryDirectory": "/elsewhere"})
    settings_of(home).write_text(text)

    native_memory.uninstall(home)

    assert settings_of(home).read_text() == text


def test_a_dry_run_and_a_removed_home_change_no_note(home):
    own = own_directory(home)
    planned = native_memory.install(home, dry_run=True)
    assert (planned.settings.change, settings_of(home).exists()) == ("created", False)
    native_memory.install(home)
    (home / "memories" / "new.md").write_text("x\n")
    before = tree(own)
    assert "new.md" not in native_memory.uninstall(home, dry_run=True).files
    assert tree(own) == before
    os.rename(home, home.with_name("removed"))

    assert native_memory.uninstall(home).files == []

    assert tree(own) == before
    assert not settings_of(home).exists()


def test_a_damaged_record_is_refused(home):
    native_memory.install(home)
    for text in ("{", '{"directory": 1}'):
        with open(native_memory.record_file(home), "w") as file:
            file.write(text)
        with pytest.raises(CorruptDocument, match="does not record native memory"):
            native_memory.uninstall(home)


def test_the_directory_of_the_user_is_no_project(home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path / "user")
    with pytest.raises(InvalidInput, match="settings would be those of the user"):
        native_memory.install(home)


def test_the_directory_of_a_project_with_a_long_name_is_found(home, tmp_path, monkeypatch):
    deep = tmp_path / ("d" * 120) / ("e" * 120)
    (deep / ".git").mkdir(parents=True)
    monkeypatch.chdir(deep)
    place = homes.fresh(deep)
    name = "".join(sign if sign.isalnum() else "-" for sign in str(deep.resolve()))[:200]
    own = tmp_path / "user" / ".claude" / "projects" / f"{name}-abc" / "memory"
    own.mkdir(parents=True)
    (own / "a.md").write_text("deep\n")

    assert native_memory.install(place).files == ["/memories/a.md"]


def test_the_command_installs_and_uninstalls(home, capsys):
    assert main(["install", "codex", "--native-memory"]) == 2
    assert "--native-memory works only with claude-code" in capsys.readouterr().err
    assert main(["install", "claude-code", "--project", "--native-memory", "--dry-run"]) == 0
    assert "+" in capsys.readouterr().out
    assert not settings_of(home).exists()

    assert main(["install", "claude-code", "--project", "--native-memory"]) == 0
    assert "2 notes of Claude Code; its own directory: " in capsys.readouterr().out
    assert main(["claude", "uninstall"]) == 0
    assert "2 notes of Claude Code" in capsys.readouterr().out
    assert not settings_of(home).exists()
    assert main(["uninstall", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["native_memory"] is None

"""Claude Code on the command line, by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import aether
from aether.cli.main import main
from aether.operations import claude_handlers, claude_settings


@pytest.fixture(autouse=True)
def _config(monkeypatch, tmp_path):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setattr(claude_settings, "can_serve", lambda: True)
    monkeypatch.setattr(claude_handlers, "path_advice", lambda: "")


def shown(capsys, *words, code=0):
    capsys.readouterr()
    assert main(["claude", *words]) == code
    return capsys.readouterr()


def test_installing_tells_what_it_did_how_to_take_it_back_and_of_the_plugin(here, capsys, tmp_path):
    done = shown(capsys, "install")

    settings = tmp_path / ".claude" / "settings.json"
    assert done.out.splitlines() == [f"{settings}: created", f"{tmp_path / '.mcp.json'}: created"]
    assert "aether claude uninstall --project" in done.err
    assert f"claude plugin marketplace add {claude_settings.plugin_directory()}" in done.err
    again = shown(capsys, "install", "--project", "--quiet")
    assert again.out.splitlines() == [f"{settings}: unchanged", f"{tmp_path / '.mcp.json'}: unchanged"]
    assert again.err == ""


def test_what_a_file_was_is_named(here, capsys, tmp_path):
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text('{"model": "opus"}')

    first, backup, *_ = shown(capsys, "install").out.splitlines()

    assert first.endswith(": changed")
    assert Path(backup.removeprefix("  what it was: ")).read_text() == '{"model": "opus"}'


def test_installing_in_a_project_makes_its_home(here, capsys, tmp_path, monkeypatch):
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    monkeypatch.chdir(project)
    assert "made" not in shown(capsys, "install", "--dry-run").out
    assert list(project.iterdir()) == [project / ".git"]

    done = shown(capsys, "install")

    assert f"{project / '.aether'}: made" in done.out
    assert aether.list_working_memory_items() == []


def test_a_dry_run_prints_the_diff(here, capsys):
    done = shown(capsys, "install", "--user", "--dry-run")

    assert ": would be created" in done.out
    assert '+    "SessionStart": [' in done.out
    assert done.err == ""


def test_for_a_user_the_server_is_theirs_to_add(here, capsys, tmp_path):
    done = shown(capsys, "install", "--user")

    assert "claude mcp add --scope user aether -- " in done.err
    assert not (tmp_path / ".mcp.json").exists()
    assert (tmp_path / "config" / "settings.json").is_file()


def test_settings_that_are_not_json_are_left_and_what_to_add_is_shown(here, capsys, tmp_path):
    (tmp_path / ".claude").mkdir()
    path = tmp_path / ".claude" / "settings.json"
    path.write_text("// mine\n{}")

    done = shown(capsys, "install", code=4)

    assert path.read_text() == "// mine\n{}"
    assert str(path) in done.err
    assert '"SessionStart": [' in done.err


def test_uninstalling_says_that_the_memory_stays(here, capsys, tmp_path):
    shown(capsys, "install")

    assert "would be removed" in shown(capsys, "uninstall", "--dry-run").out
    done = shown(capsys, "uninstall")

    assert done.out.count(": removed") == 2
    assert done.out.count(": unchanged") == 1
    assert "memory stays" in done.err
    assert len(aether.list_working_memory_items()) == 2


def test_status_tells_problems_and_exits_with_one(here, capsys, tmp_path):
    (tmp_path / ".aether" / "hook.log").write_text("what went \x1b[31mwrong\n")

    done = shown(capsys, "status", code=1)

    assert done.out.splitlines()[0].split() == ["scope", "installed", "settings"]
    assert "\x1b" not in done.out
    assert done.out.splitlines()[-1] == "  what went �[31mwrong"
    assert done.err.startswith("Problem: No hooks of aether.")


def test_status_of_a_session_and_a_plugin(here, capsys, tmp_path):
    from aether.operations.hook_sessions import Session

    sessions = tmp_path / ".aether" / "hooks" / "sessions"
    sessions.mkdir(parents=True)
    known = {
        **dict.fromkeys(Session.__required_keys__),
        "at": "2026-03-01T10:15:00.000000Z",
        "first_source": "x",
    }
    (sessions / "abc.json").write_text(json.dumps(known))
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "settings.json").write_text('{"enabledPlugins": {"aether@aether": true}}')

    done = shown(capsys, "status", "--home", str(tmp_path), code=1)

    assert "2026-03-01 10:15:00  abc" in done.out
    assert "nothing, plugin" in done.out


def test_without_path_the_hooks_go_where_the_place_of_the_program_may_stand(
    here, capsys, monkeypatch, tmp_path
):
    monkeypatch.setattr(claude_handlers, "path_advice", lambda: "aether is not on PATH")

    done = shown(capsys, "install")
    own = tmp_path / ".claude" / "settings.local.json"

    assert done.out.splitlines() == [f"{own}: created"]
    assert "aether is not on PATH" in done.err
    assert "claude mcp add --scope local aether -- " in done.err
    assert "claude install --local" not in done.err
    assert "aether is not on PATH" in shown(capsys, "status").err
    assert "not in every shell" in shown(capsys, "status").out

    shown(capsys, "uninstall")
    assert not own.exists()


def test_lines_for_all_that_do_nothing_here_are_told(here, capsys, monkeypatch):
    monkeypatch.setattr(claude_handlers, "path_advice", lambda: "aether is not on PATH")

    done = shown(capsys, "install", "--project")

    assert "aether is not on PATH" in done.err
    assert "For this machine alone, without PATH: aether claude install --local" in done.err


def test_a_server_that_was_left_out_is_told(here, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(claude_settings, "can_serve", lambda: False)

    assert "pip install mcp" in shown(capsys, "install").err
    assert not (tmp_path / ".mcp.json").exists()


def test_pausing_shows_in_the_status(here, capsys, tmp_path):
    shown(capsys, "install")

    assert shown(capsys, "pause").out == f"Paused: {tmp_path / '.aether'}\n"
    assert "Paused" in shown(capsys, "status", code=1).err
    assert shown(capsys, "resume").out == f"Working: {tmp_path / '.aether'}\n"


def transcript(tmp_path, text, *, name="s.jsonl", cwd=None):
    path = tmp_path / "config" / "projects" / "-p" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    line = {
        "type": "user", "cwd": str(cwd or tmp_path), "sessionId": name, "uuid": f"u-{name}",
        "timestamp": "2026-03-01T10:15:00.000Z", "message": {"role": "user", "content": text},
    }  # fmt: skip
    path.write_text(json.dumps(line) + "\n")
    return path


def test_rescuing_tells_each_file_and_how_to_take_it_back(here, capsys, tmp_path):
    for number in range(5):
        transcript(tmp_path, f"Never deploy on day {number}.", name=f"{number}.jsonl")
    transcript(tmp_path, "x", name="odd.jsonl").write_text("{}\n")

    planned = shown(capsys, "rescue", "--dry-run")
    done = shown(capsys, "rescue", "--project")

    assert "5 item(s) would be stored, from 5 of 6 transcript(s)." in planned.out
    assert "5 item(s) stored, from 5 of 6 transcript(s)." in done.out
    assert "odd.jsonl: skipped, " in done.err
    assert "To take it back: aether undo " in done.err
    assert "…" in done.err
    for line in done.err.partition("To take it back: ")[2].strip().split(", ")[:1]:
        assert main(line.split()[1:]) == 0
    assert len(aether.list_working_memory_items()) == 6


def test_where_nothing_is_found_it_says_where_it_looked(here, capsys, tmp_path):
    done = shown(capsys, "rescue")

    assert "0 item(s) stored" in done.out
    assert f"is in {tmp_path / 'config' / 'projects'}" in done.err
    assert "aether import FILE" in done.err


def test_rescuing_all_names_the_home_to_undo_in(here, capsys, tmp_path):
    transcript(tmp_path, "Never deploy on a Friday.")

    done = shown(capsys, "rescue", "--all")

    assert f" --home {tmp_path / '.aether'}" in done.err


def test_a_home_that_fails_makes_the_exit_code_one(here, capsys, tmp_path, monkeypatch):
    from aether.errors import LockTimeout
    from aether.operations import rescuing

    def locked(*arguments, **options):
        raise LockTimeout("somebody writes.", fix="Wait.")

    transcript(tmp_path, "Never deploy on a Friday.")
    monkeypatch.setattr(rescuing, "import_transcripts", locked)

    assert "failed, somebody writes." in shown(capsys, "rescue", code=1).err

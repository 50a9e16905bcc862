"""Claude Code on the command line: the installation, the hook and the MCP server."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest

import aether
from aether.api import architects
from aether.cli import claude as cli_claude
from aether.cli.main import main
from aether.errors import Conflict
from aether.hosts import programs
from aether.hosts.claude_code import install
from aether.mcp import catalogue, server
from aether.store import spool
from tests import homes


@pytest.fixture(autouse=True)
def _config(monkeypatch, tmp_path):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))  # of the user's choice of an architect
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.setattr(install, "can_serve", lambda: True)
    monkeypatch.setattr(programs, "path_advice", lambda: "")


def claude(capsys, *words, code=0):
    capsys.readouterr()
    assert main(["claude", *words]) == code
    return capsys.readouterr()


def test_installing_reports_what_it_did_how_to_take_it_back_and_of_the_plugin(here, capsys, tmp_path):
    done = claude(capsys, "install")

    settings = tmp_path / ".claude" / "settings.json"
    chosen = f"Architect: host ({tmp_path / '.aether' / 'config.toml'})"
    assert done.out.splitlines() == [
        f"{settings}: created",
        f"{tmp_path / '.mcp.json'}: created",
        chosen,
    ]
    assert "aether claude uninstall --project" in done.err
    assert f"claude plugin marketplace add {install.plugin_directory()}" in done.err
    again = claude(capsys, "install", "--project", "--quiet")
    assert again.out.splitlines() == [
        f"{settings}: unchanged",
        f"{tmp_path / '.mcp.json'}: unchanged",
        chosen,
    ]
    assert again.err == ""


def test_what_a_file_was_is_named(here, capsys, tmp_path):
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text('{"model": "opus"}')

    first, backup, *_ = claude(capsys, "install").out.splitlines()

    assert first.endswith(": changed")
    assert Path(backup.removeprefix("  backup: ")).read_text() == '{"model": "opus"}'


def test_installing_in_a_project_makes_its_home(here, capsys, tmp_path, monkeypatch):
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    monkeypatch.chdir(project)
    assert "made" not in claude(capsys, "install", "--dry-run").out
    assert list(project.iterdir()) == [project / ".git"]

    done = claude(capsys, "install")

    assert f"{project / '.aether'}: made" in done.out
    assert aether.list_working_memory_items() == []


def test_a_dry_run_prints_the_diff(here, capsys):
    done = claude(capsys, "install", "--user", "--dry-run")

    assert ": would be created" in done.out
    assert '+    "SessionStart": [' in done.out
    assert done.err.startswith("Its cost: ")
    assert not (here_config := Path(os.environ["CLAUDE_CONFIG_DIR"])).exists(), here_config


def test_for_a_user_the_server_is_in_the_users_own_file(here, capsys, tmp_path):
    claude(capsys, "install", "--user")

    servers = json.loads((tmp_path / "config" / ".claude.json").read_text())["mcpServers"]
    assert servers["aether"]["args"][-1] == "mcp"
    assert not (tmp_path / ".mcp.json").exists()
    assert 'default = "host"' in (tmp_path / "own" / "aether" / "config.toml").read_text()
    assert (tmp_path / "config" / "settings.json").is_file()


def test_settings_that_are_not_json_are_left_and_what_to_add_is_claude(here, capsys, tmp_path):
    (tmp_path / ".claude").mkdir()
    path = tmp_path / ".claude" / "settings.json"
    path.write_text("// mine\n{}")

    done = claude(capsys, "install", code=4)

    assert path.read_text() == "// mine\n{}"
    assert str(path) in done.err
    assert '"SessionStart": [' in done.err


def test_uninstalling_says_that_the_memory_stays(here, capsys, tmp_path):
    claude(capsys, "install")

    assert "would be removed" in claude(capsys, "uninstall", "--dry-run").out
    done = claude(capsys, "uninstall")

    assert done.out.count(": removed") == 2
    assert done.out.count(": unchanged") == 2
    assert "memory stays" in done.err
    assert len(aether.list_working_memory_items()) == 2


def test_status_reports_problems_and_exits_with_one(here, capsys, tmp_path):
    (tmp_path / ".aether" / "hook.log").write_text("what went \x1b[31mwrong\n")

    done = claude(capsys, "status", code=1)

    assert done.out.splitlines()[0].split() == ["scope", "installed", "settings"]
    assert "\x1b" not in done.out
    assert done.out.splitlines()[-1] == "  what went �[31mwrong"
    assert done.err.startswith("Problem: No hooks of aether.")


def test_status_of_a_session_and_a_plugin(here, capsys, tmp_path):
    from aether.api.hook_sessions import Session

    sessions = tmp_path / ".aether" / "hooks" / "sessions"
    sessions.mkdir(parents=True)
    known = {
        **dict.fromkeys(Session.__annotations__),
        "at": "2026-03-01T10:15:00.000000Z",
        "first_source": "x",
    }
    (sessions / "abc.json").write_text(json.dumps(known))
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "settings.json").write_text('{"enabledPlugins": {"aether@aether": true}}')

    done = claude(capsys, "status", "--home", str(tmp_path), code=1)

    assert "2026-03-01 10:15:00  abc" in done.out
    assert "nothing, plugin" in done.out


def test_without_path_the_hooks_go_where_the_place_of_the_program_may_stand(
    here, capsys, monkeypatch, tmp_path
):
    monkeypatch.setattr(programs, "path_advice", lambda: "aether is not on PATH")

    done = claude(capsys, "install")
    own = tmp_path / ".claude" / "settings.local.json"

    servers = tmp_path / "config" / ".claude.json"
    assert done.out.splitlines()[:2] == [f"{own}: created", f"{servers}: created"]
    assert "aether is not on PATH" in done.err
    assert "aether" in json.loads(servers.read_text())["projects"][str(tmp_path)]["mcpServers"]
    assert "claude install --local" not in done.err
    assert "aether is not on PATH" in claude(capsys, "status").err
    assert "not in every shell" in claude(capsys, "status").out

    claude(capsys, "uninstall")
    assert not own.exists()
    assert not servers.exists()


def test_lines_for_all_that_do_nothing_here_are_reported(here, capsys, monkeypatch):
    monkeypatch.setattr(programs, "path_advice", lambda: "aether is not on PATH")

    done = claude(capsys, "install", "--project")

    assert "aether is not on PATH" in done.err
    assert "For this machine alone, without PATH: aether claude install --local" in done.err


def test_a_server_that_was_left_out_is_reported(here, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(install, "can_serve", lambda: False)

    assert "pip install '.[mcp]'" in claude(capsys, "install").err
    assert not (tmp_path / ".mcp.json").exists()


def test_the_architect_is_named_or_the_usual_one_and_is_kept(here, capsys, tmp_path):
    config = tmp_path / ".aether" / "config.toml"
    assert "Architect: extractive" in claude(capsys, "install", "--architect", "extractive", "--dry-run").out
    assert not config.exists()

    assert "Architect: ollama" in claude(capsys, "install", "--architect", "ollama").out
    assert 'default = "ollama"' in config.read_text()
    again = claude(capsys, "install")
    assert "Architect: ollama" in again.out
    assert "your own Ollama" in again.err
    assert "ollama: " in claude(capsys, "status", code=1).out
    assert "gpt" in claude(capsys, "install", "--architect", "gpt", code=2).err


def test_a_person_at_a_terminal_is_asked_once_and_shown_what_each_costs(here, capsys, monkeypatch):
    asked = []
    monkeypatch.setattr(cli_claude, "is_typed", lambda: True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(cli_claude.click, "prompt", lambda *_, **given: asked.append(given) or "claude-code")

    done = claude(capsys, "install")

    assert "Architect: claude-code" in done.out
    assert all(f"  {name}: " in done.err for name in architects.OFFERED)
    assert asked[0]["default"] == "host"
    claude(capsys, "install")
    claude(capsys, "install", "--architect", "host")
    assert len(asked) == 1


def test_a_home_with_settings_that_nobody_trusts_gets_its_hooks_and_no_architect(here, capsys, tmp_path):
    config = tmp_path / ".aether" / "config.toml"
    config.write_text('[architect]\ndefault = "claude-code"\n')

    done = claude(capsys, "install")

    assert "No architect is chosen" in done.err
    assert ".claude/settings.json: created" in done.out
    assert config.read_text() == '[architect]\ndefault = "claude-code"\n'
    assert "aether trust" in claude(capsys, "install", "--architect", "host", code=Conflict.exit_code).err


def test_pausing_shows_in_the_status(here, capsys, tmp_path):
    claude(capsys, "install")

    assert claude(capsys, "pause").out == f"Paused: {tmp_path / '.aether'}\n"
    assert "Paused" in claude(capsys, "status", code=1).err
    assert claude(capsys, "resume").out == f"Working: {tmp_path / '.aether'}\n"


def transcript(tmp_path, text, *, name="s.jsonl", cwd=None):
    path = tmp_path / "config" / "projects" / "-p" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    line = {
        "type": "user", "cwd": str(cwd or tmp_path), "sessionId": name, "uuid": f"u-{name}",
        "timestamp": "2026-03-01T10:15:00.000Z", "message": {"role": "user", "content": text},
    }  # fmt: skip
    path.write_text(json.dumps(line) + "\n")
    return path


def test_rescuing_reports_each_file_and_how_to_take_it_back(here, capsys, tmp_path):
    for number in range(5):
        transcript(tmp_path, f"Never deploy on day {number}.", name=f"{number}.jsonl")
    transcript(tmp_path, "x", name="odd.jsonl").write_text("{}\n")

    planned = claude(capsys, "rescue", "--dry-run")
    done = claude(capsys, "rescue", "--project")

    assert "5 items would be stored, from 5 of 6 transcripts." in planned.out
    assert "5 items stored, from 5 of 6 transcripts." in done.out
    assert "odd.jsonl: skipped, " in done.err
    assert (
        "1 transcript skipped: names no directory of its session: no transcript of Claude Code." in done.out
    )
    assert "To undo it: aether undo " in done.err
    assert "…" in done.err
    for line in done.err.partition("To undo it: ")[2].strip().split(", ")[:1]:
        assert main(line.split()[1:]) == 0
    assert len(aether.list_working_memory_items()) == 6


def test_where_nothing_is_found_it_says_where_it_looked(here, capsys, tmp_path):
    done = claude(capsys, "rescue")

    assert "0 items stored" in done.out
    assert f"is in {tmp_path / 'config' / 'projects'}" in done.err
    assert "aether import FILE" in done.err


def test_rescuing_all_names_the_home_to_undo_in(here, capsys, tmp_path):
    transcript(tmp_path, "Never deploy on a Friday.")

    done = claude(capsys, "rescue", "--all")

    assert f" --home {tmp_path / '.aether'}" in done.err


def test_a_home_that_fails_makes_the_exit_code_one(here, capsys, tmp_path, monkeypatch):
    from aether.errors import LockTimeout
    from aether.hosts.claude_code import rescue

    def locked(*arguments, **options):
        raise LockTimeout("somebody writes.", fix="Wait.")

    transcript(tmp_path, "Never deploy on a Friday.")
    monkeypatch.setattr(rescue, "import_transcripts", locked)

    assert "failed, somebody writes." in claude(capsys, "rescue", code=1).err


EVENT = {
    "hook_event_name": "PostToolUse",
    "tool_name": "Bash",
    "tool_input": {"command": "make"},
    "tool_response": "ok",
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return homes.fresh(tmp_path)


def hold(monkeypatch, payload):
    said = io.TextIOWrapper(io.BytesIO(json.dumps(payload).encode()))
    monkeypatch.setattr(sys, "stdin", said)


@pytest.mark.parametrize("words", [["hook", "PostToolUse"], ["hook"], ["hook", "PostToolUse", "--json"]])
def test_an_event_on_standard_input_is_kept(home, monkeypatch, capsys, words):
    hold(monkeypatch, EVENT)

    assert main(words) == 0
    assert len(spool.waiting(str(home))) == 1
    assert capsys.readouterr().out.strip() in ("", '{"told": ""}', '{\n  "told": ""\n}')


def test_a_payload_in_a_file_is_answered_for_the_home_that_is_named(home, tmp_path, monkeypatch, capsys):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "event.json").write_text(json.dumps(EVENT))
    monkeypatch.setenv("AETHER_HOME", "")
    monkeypatch.chdir(tmp_path / "elsewhere")

    assert main(["--home", str(home), "hook", "PostToolUse", str(tmp_path / "event.json")]) == 0
    assert len(spool.waiting(str(home))) == 1


def test_what_is_no_event_is_a_line_in_the_log_and_no_error(home, monkeypatch):
    (home.parent / "event.json").write_text("{")

    assert main(["hook", "Stop", "event.json"]) == 0
    assert "JSONDecodeError" in (home / "hook.log").read_text()


@pytest.mark.parametrize(
    "words", [["Stop", "nofile"], ["Stop", "."], ["Stop", "pipe"], ["Stop", "--wrong"], ["Stop", "event.json", "more"]]
)  # fmt: skip
def test_a_wrong_command_of_a_hook_is_logged_and_does_not_block(home, capsys, words):
    os.mkfifo(home.parent / "pipe")

    assert main(["hook", *words]) == 1
    assert capsys.readouterr().err.startswith("Error: ")
    assert " Stop " in (home / "hook.log").read_text()


def test_it_serves_the_home_and_the_tools_that_are_named(monkeypatch, tmp_path):
    started = []
    monkeypatch.setattr(server, "serve", lambda home, *, tools: started.append((home, tools)))

    assert main(["mcp", "--home", str(tmp_path), "--tools", "graph"]) == 0
    assert main(["mcp"]) == 0

    assert started == [(str(tmp_path), "graph"), (None, "memory")]


def test_what_a_model_is_reported_the_tools_is_shown(capsys):
    assert main(["mcp", "--list", "--tools", "all", "--json"]) == 0

    listed = json.loads(capsys.readouterr().out)
    assert [tool["name"] for tool in listed][:2] == ["remember", "recall"]
    assert len(listed) == len(catalogue.tools_of("all")) > 19


def test_to_a_person_every_description_is_shown_whole(capsys):
    assert main(["mcp", "--list", "--tools", "all"]) == 0

    text = capsys.readouterr().out
    assert "…" not in text
    said = " ".join(text.split())
    for tool in catalogue.tools_of("all"):
        assert f"{tool.name} {' '.join(tool.description.split())}" in said


def test_without_the_package_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)

    assert main(["mcp"]) == 8
    assert "pip install '.[mcp]'" in capsys.readouterr().err

"""The status of an installation: what is installed, whether it runs, and what keeps it from working."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from aether.api import hook_sessions
from aether.errors import NotFound
from aether.hosts import programs
from aether.hosts.claude_code import health, install
from aether.hosts.claude_code.health import pause, program_problem, resume, status
from aether.store import spool
from tests.hosts.claude_code import installs

needs_posix = pytest.mark.skipif(os.name == "nt", reason="scripts of POSIX")


@pytest.fixture
def script(tmp_path):
    """Return what makes a program of the hooks that does as told."""

    def make(body="exit 0"):
        path = tmp_path / "bin" / "aether-hook"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path

    return make


@pytest.fixture
def project(tmp_path, monkeypatch, script, home):
    """Stand in a project with a home, and an environment with the program."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.setattr(install, "own_program", lambda: [str(script())])
    script()
    monkeypatch.setattr(programs, "path_advice", lambda: "")
    monkeypatch.setattr(install, "can_serve", lambda: True)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


@needs_posix
def test_where_all_is_well_there_are_no_problems(project, home):
    installs.install()

    found = status()

    assert found.problems == []
    assert found.home == str(home)
    assert [(one.scope, len(one.events)) for one in found.installed] == [
        ("project", 12),
        ("local", 0),
        ("user", 0),
    ]
    assert found.installed[0].programs == [["aether-hook"]]
    assert found.servers == ["project"]
    assert (found.paused, found.waiting, found.last_session, found.log) == (False, 0, None, [])
    assert found.path == ""


@needs_posix
@pytest.mark.parametrize("what", ["two scopes", "plugin"])
def test_an_event_that_starts_two_programs_is_a_problem(project, what):
    installs.install()
    if what == "plugin":
        enable_plugin(project)
    else:
        installs.install("user")

    (problem,) = status().problems

    assert f"(project, {'plugin' if what == 'plugin' else 'user'})" in problem


@needs_posix
def test_the_plugin_alone_is_enough(project, script):
    enable_plugin(project)
    script().unlink()
    assert "on PATH" in status().problems[0]
    script()

    found = status()

    assert found.problems == []
    assert [one.plugin for one in found.installed] == [False, False, True]
    assert found.servers == ["plugin"]


def enable_plugin(project):
    path = project / "config" / "settings.json"
    path.parent.mkdir()
    path.write_text(
        json.dumps({"enabledPlugins": {"aether@aether": True, "other@aether": True, "aether@x": False}})
    )


def test_a_disabled_plugin_does_not_count(project):
    path = project / "config" / "settings.json"
    path.parent.mkdir()
    path.write_text('{"enabledPlugins": {"aether@aether": false}}')

    assert not any(one.plugin for one in status().installed)


@needs_posix
def test_every_problem_is_named(project):
    (change, _) = installs.install()
    value = json.loads(Path(change.path).read_text())
    del value["hooks"]["Stop"]
    Path(change.path).write_text(json.dumps({**value, "disableAllHooks": True}))
    local = project / ".claude" / "settings.local.json"
    local.write_text("{")
    pause(project / ".aether")

    problems = status().problems

    assert [words for words in problems if "no hook for Stop" in words]
    assert [words for words in problems if "disableAllHooks" in words]
    assert [words for words in problems if str(local) in words]
    assert [words for words in problems if "Paused" in words]


@needs_posix
def test_a_project_without_a_home_is_a_problem(project, home, monkeypatch):
    installs.install()
    home.rename(project / "elsewhere")

    found = status()

    assert found.home == ""
    assert ["has no home" in words for words in found.problems] == [True]
    assert status(project / "elsewhere").home == str(project / "elsewhere")


def test_waiting_events_are_counted_and_failures_are_shown(project, home):
    spool.put(str(home), {"event": "Stop", "session": "s", "at": "2026-03-01T10:15:00.000000Z"})
    (home / "hook.log").write_text("9999-01-01T00:00:00Z Stop s it failed\n")

    found = status()

    assert found.waiting == 1
    assert found.log == ["9999-01-01T00:00:00Z Stop s it failed"]


def test_a_broken_configuration_is_a_problem(project, home):
    installs.install("local")
    (home / "config.toml").write_text("[claude]\nrecal = true\n")

    (problem,) = status().problems

    assert "claude.recal" in problem
    assert "Did you mean claude.recall?" in problem


def test_programs_missing_on_path_are_reported_although_the_hooks_work(project, monkeypatch):
    installs.install("local")
    monkeypatch.setattr(programs, "path_advice", lambda: "not on PATH")

    assert (status().path, status().problems) == ("not on PATH", [])


@needs_posix
def test_a_line_for_all_that_is_silent_here_is_no_problem_where_ones_own_works(project, monkeypatch):
    installs.install("project")
    monkeypatch.setenv("PATH", str(project / "empty"))
    (silent,) = status().problems
    installs.install("local")

    assert "aether-hook does not exist" in silent
    assert status().problems == []


def test_the_newest_session_is_reported(project, home):
    sessions = home / "hooks" / "sessions"
    sessions.mkdir(parents=True)
    known = dict.fromkeys(hook_sessions.Session.__annotations__)
    for name, at in (("old", "2026-03-01"), ("new", "2026-03-02")):
        (sessions / f"{name}.json").write_text(json.dumps({**known, "at": at, "first_source": "startup"}))
    (sessions / "broken.json").write_text("{")

    assert status().last_session == {"session": "new", "at": "2026-03-02", "first_source": "startup"}


def test_ones_own_server_in_this_project_is_found_where_claude_code_keeps_it(project):
    ours = {"mcpServers": {"aether": {"command": "/venv/bin/aether", "args": ["mcp"]}}}
    path = install.server_path("local")
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"projects": {"/elsewhere": ours}}))
    assert status().servers == []

    path.write_text(json.dumps({"projects": {str(project): ours}}))

    assert status().servers == ["local"]


@needs_posix
def test_a_program_is_tried_away_from_every_home(script, tmp_path):
    note = tmp_path / "note"

    assert program_problem([str(script(f'echo "$1 $AETHER_AUTO_INIT $(cat) $AETHER_HOME" > {note}'))]) == ""

    event, made, payload, place = note.read_text().split()
    assert (event, made, payload) == ("Check", "0", "{}")
    assert not Path(place).exists()


@needs_posix
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("echo no >&2; exit 2", "ends with 2: no"),
        ("exit 1", "ends with 1."),
        ("echo out", "ends with 0."),
        ("sleep 9", "does not answer"),
    ],
)
def test_a_program_that_fails_is_reported(script, monkeypatch, body, words):
    monkeypatch.setattr(health, "RUN_SECONDS", 60 if "sleep" not in body else 0.2)

    assert words in program_problem([str(script(body))])


@needs_posix
def test_a_missing_program_or_a_file_that_is_no_program_is_reported(tmp_path):
    (tmp_path / "text").write_text("no program")

    assert "does not exist" in program_problem([str(tmp_path / "none")])
    assert "cannot be started" in program_problem([str(tmp_path / "text")])


def test_pausing_and_going_on_can_be_repeated(home):
    for do, paused in ((pause, True), (pause, True), (resume, False), (resume, False)):
        assert do(home) == home
        assert spool.is_paused(str(home)) == paused


def test_a_directory_without_a_home_cannot_be_paused(tmp_path):
    with pytest.raises(NotFound):
        pause(tmp_path)


def test_a_home_that_leads_out_of_the_project_is_named_and_not_looked_into(project, home, tmp_path):
    spool.put(str(home), {"event": "Stop", "session": "s"})
    (tmp_path / "clone" / ".git").mkdir(parents=True)
    (tmp_path / "clone" / ".aether").symlink_to(home)

    found = status(start=tmp_path / "clone")

    assert "leads elsewhere" in found.problems[0]
    assert (found.home, found.waiting, found.paused) == ("", 0, False)


@needs_posix
def test_hooks_of_an_earlier_release_work_on_and_are_reported(project):
    (change, _) = installs.install()
    path = Path(change.path)
    path.write_text(path.read_text().replace("|TodoWrite|TaskCreate|TaskUpdate", ""))

    (problem,) = status().problems

    assert "the hook for PostToolUse, PostToolUseFailure is that of an earlier release" in problem
    assert status().installed[0].events == list(install.EVENTS)
    installs.install()
    assert status().problems == []

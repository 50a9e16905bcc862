"""The architect of a session: when the running agent is asked, and which process a hook starts."""

from __future__ import annotations

import json
import os
import stat
import sys
import time

import pytest

from aether.api import asks, closing, working
from aether.hosts import answer, hook
from aether.hosts.claude_code import install
from aether.tokens.counters import counter
from tests import homes
from tests.hosts.claude_code import installs
from tests.tables import rows

SESSION = "11111111-1111-4111-8111-111111111111"
COMMIT = {"kind": "commit", "id": "3f2a1b9", "subject": "Retry the webhook"}
ANSWER = {"state": [{"text": "The webhook retries.", "quote": "Retry the webhook"}]}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose user chose the running agent, with the command on PATH; returns it."""
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "aether").write_text("#!/bin/sh\n")
    (programs / "aether").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(install, "own_script", lambda name: "")
    (tmp_path / "app" / ".git").mkdir(parents=True)
    homes.configure(homes.fresh(tmp_path / "app"), '[architect]\ndefault = "host"\n')
    monkeypatch.chdir(tmp_path / "app")
    return tmp_path / "app"


@pytest.fixture
def started(monkeypatch):
    """The words with which processes were started that ask a model; none is."""
    words, start = [], answer.start_process

    def started(home, given, **variables):
        if given[1] == answer.__name__:
            start(home, given, **variables)
        else:
            words.append(given[2:])

    monkeypatch.setattr(answer, "start_process", started)
    return words


def event(project, name, session=SESSION, **more):
    payload = {"hook_event_name": name, "session_id": session, "cwd": str(project), **more}
    payload.setdefault("prompt_id", f"p{time.time_ns()}")  # the same event twice is that of two installations
    code, text = hook.main([], json.dumps(payload).encode())
    assert code == 0
    assert '"decision"' not in text
    return json.loads(text)["hookSpecificOutput"]["additionalContext"] if text else ""


def prompt(project, text="Go on.", session=SESSION):
    return event(project, "UserPromptSubmit", session, prompt=text)


def commit(project, session=SESSION, **fact):
    """Note a commit, as capture does, and end the turn."""
    metadata = {"conversation": session, "evidence": "machine", "role": "commit", "fact": COMMIT | fact}
    working.add_working_memory_item(
        f"Commit {fact.get('id', '3f2a1b9')}: Retry the webhook in src/webhook.py", "outcome", home=project / ".aether",
        metadata=metadata,
    )  # fmt: skip
    return event(project, "Stop", session)


def test_after_a_commit_the_next_prompt_asks_once(project):
    assert prompt(project) == ""
    assert commit(project) == ""

    asked = prompt(project)

    assert asked.startswith("aether: after a commit, ")
    assert f"aether memory ingest - --session {SESSION[:8]}" in asked
    assert counter("estimate", 1.0)(asked) <= 80
    assert prompt(project) == ""
    assert event(project, "Stop") == ""
    assert prompt(project) == ""


def test_after_closing_the_count_starts_again(project):
    commit(project)
    prompt(project)
    closing.close_session(ANSWER, home=project / ".aether", session=SESSION[:8])
    assert event(project, "Stop") == ""
    assert prompt(project) == ""

    commit(project, id="77aa001")

    assert prompt(project) != ""


def test_before_it_was_asked_closing_takes_the_ask_back(project):
    commit(project)
    closing.close_session(ANSWER, home=project / ".aether")

    assert prompt(project) == ""


def test_where_the_server_is_installed_the_tool_is_named(project, monkeypatch):
    monkeypatch.setattr(install, "can_serve", lambda: True)
    installs.install()
    commit(project)

    asked = prompt(project)

    assert f'close_session (session="{SESSION[:8]}")' in asked
    assert counter("estimate", 1.0)(asked) <= 80


def test_without_a_way_to_answer_nothing_is_asked(project, monkeypatch):
    monkeypatch.setenv("PATH", "")
    commit(project)

    assert prompt(project) == ""


@rows("text", ["", '[architect]\ndefault = "extractive"\n', '[architect]\ndefault = "claude-code"\n'])
def test_another_architect_is_not_asked_for(project, started, text):
    homes.configure(project / ".aether", text)
    commit(project)

    assert prompt(project) == ""
    assert not (project / ".aether" / "hooks" / asks.DIRECTORY).exists()


def test_two_sessions_are_asked_for_their_own_work(project):
    other = "22222222-2222-4222-8222-222222222222"
    commit(project)

    assert prompt(project, session=other) == ""
    assert SESSION[:8] in prompt(project)


def test_after_a_compaction_the_next_start_asks_and_injects_nothing_twice(project):
    metadata = {"conversation": SESSION, "evidence": "person"}
    working.add_working_memory_item(
        "Use SQLite for the state.", "user_input", home=project / ".aether", metadata=metadata
    )

    assert event(project, "PreCompact", trigger="auto") == ""
    asked = event(project, "SessionStart", source="compact")

    assert asked.startswith("aether: after a compaction, ")
    assert "aether: after" not in event(project, "SessionStart", source="compact")


def test_the_ask_is_beside_the_memory_that_a_prompt_matches(project):
    working.add_working_memory_item(
        "Decided: load_sessions() of gateway.py never retries, because the gateway waits.", "decision", home=project / ".aether"
    )  # fmt: skip
    commit(project)

    said = prompt(project, "Why does load_sessions() of gateway.py never retry?")

    assert said.startswith("aether: after a commit, ")
    assert said.endswith("</aether-memory>") or "load_sessions" not in said


def choose(project, name):
    homes.configure(project / ".aether", f"[architect]\ndefault = {json.dumps(name)}\n")


@rows("name", ["claude-code", "anthropic", "openai", "ollama", "command:true"])
def test_a_model_is_asked_after_a_session_a_compaction_and_at_the_next_start(project, started, name):
    choose(project, name)
    home = str(project / ".aether")
    started.clear()

    event(project, "SessionStart", source="startup", session="new" + name[:4])
    event(project, "PreCompact", trigger="auto", session="new" + name[:4])
    assert started == [[home, "--except", "new" + name[:4]]]
    event(
        project,
        "PostCompact",
        trigger="auto",
        compact_summary="All is well in src/a.py. " * 9,
        session="s" + name[:4],
    )
    event(project, "SessionEnd", reason="other", session="s" + name[:4])
    assert started[1:] == [[home, "s" + name[:4]]] * 2


@rows("name", ["host", "extractive", "manual"])
def test_otherwise_no_process_is_started(project, started, name):
    choose(project, name)
    for what in ("SessionStart", "PreCompact", "PostCompact", "SessionEnd"):
        event(project, what, source="startup", compact_summary="All.", reason="other")

    assert started == []


def test_a_home_that_comes_with_a_repository_starts_nothing_and_asks_nothing(project, started):
    for name in ("command:touch /tmp/mine", "claude-code", "host"):
        (project / ".aether" / "config.toml").write_text(
            f"[architect]\ndefault = {json.dumps(name)} # others wrote it\n"
        )
        event(project, "SessionStart", source="startup")
        commit(project, id=name)
        event(project, "SessionEnd", reason="other")
        assert prompt(project) == ""

    assert started == []


@pytest.mark.skipif(os.name == "nt", reason="the program is one of POSIX")
def test_the_end_of_a_session_waits_for_no_model(project, monkeypatch):
    """The process outlives the hook, and its own Claude Code is no session."""
    script, seen = project / "model", project / "seen"
    script.write_text(
        f"#!{sys.executable}\nimport os, time\ntime.sleep(1)\nopen({str(seen)!r}, 'w').write(os.environ['AETHER_NO_HOOKS'])\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("AETHER_ARCHITECT_DEFAULT", f"command:{script}")
    for number in range(60):
        metadata = {"conversation": SESSION, "evidence": "person"}
        working.add_working_memory_item(
            f"The delay after call {number} is {number * 3} ms in src/webhook.py.", "user_input", home=project / ".aether", metadata=metadata
        )  # fmt: skip
    began = time.monotonic()
    event(project, "SessionEnd", reason="other")

    assert time.monotonic() - began < hook.EVENTS["SessionEnd"].seconds
    assert not seen.exists()
    while not (seen.exists() and seen.read_text()):
        assert time.monotonic() - began < 30
        time.sleep(0.05)
    assert seen.read_text() == "1"


def test_what_the_architect_itself_does_is_no_session(project, monkeypatch):
    monkeypatch.setenv(hook.OFF, "1")

    assert prompt(project) == ""
    assert not (project / ".aether" / "hooks" / "spool").exists()


def test_a_session_of_five_megabytes_is_closed_in_seconds(project):
    home = project / ".aether"
    for number in range(250):
        more = {
            "tool_name": "Bash",
            "tool_use_id": f"t{number}",
            "tool_input": {"command": f"pytest tests/test_{number}.py"},
        }
        said = {"stdout": f"{'x' * 20_000}\n{number} passed in 2.0s", "stderr": ""}
        event(project, "PostToolUse", tool_response=said, **more)
        if number % 25 == 0:
            prompt(project, f"Check module {number} and never push to main. {'Read it whole. ' * 200}")
            event(
                project,
                "Stop",
                last_assistant_message=f"Module {number} is checked; the gateway listens on {8000 + number}.",
            )
    event(project, "PreCompact", trigger="auto")
    answer = {
        "state": [{"text": "Module 225 is checked.", "quote": "Module 225 is checked"}],
        "rules": [{"text": "Never push to main.", "quote": "never push to main"}],
    }
    began = time.monotonic()

    done = closing.close_session(answer, home=home, session=SESSION[:8])

    assert time.monotonic() - began < 20
    assert done.ingested.session["session_id"].startswith("phase_")
    assert done.dropped == []

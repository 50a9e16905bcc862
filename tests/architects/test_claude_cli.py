"""The claude-code backend: the user's own `claude -p`, here a program that answers as it does."""

from __future__ import annotations

import json
import os
import sys

import pytest

import aether
from aether.architects import backend, claude_cli
from aether.architects.base import Settings
from aether.architects.request import session_request
from aether.errors import BackendFailed, BackendUnavailable
from tests.architects import fakes
from tests.cli import stage

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the fake program is a script of POSIX")
REQUEST = session_request(fakes.handoff(fakes.item(1, "We chose lines over whole files. \ud800")))
ANSWER = {
    "type": "result", "subtype": "success", "is_error": False, "result": "{}", "total_cost_usd": 0.25,
    "usage": {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 7}, "modelUsage": {"claude-fast": {}},
}  # fmt: skip


@pytest.fixture
def claude(tmp_path, monkeypatch):
    """Return a function that puts a `claude` on PATH which keeps what it was given and prints a text."""
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))

    def put(printed, code=0):
        script = programs / "claude"
        script.write_text(
            f"#!{sys.executable}\nimport json, os, sys\n"
            f"seen = [sys.argv[1:], sys.stdin.read(), dict(os.environ), os.listdir('.')]\n"
            f"json.dump(seen, open({str(tmp_path / 'seen')!r}, 'w'))\nprint({printed!r})\nsys.exit({code})\n"
        )
        script.chmod(0o755)
        return lambda: json.loads((tmp_path / "seen").read_text())

    return put


def complete(request=REQUEST, **settings):
    return claude_cli.complete(
        request, settings=Settings(timeout_seconds=20, **settings), count=fakes.quarter
    )


def test_it_gets_the_prompt_alone_and_its_usage_is_kept(claude, monkeypatch):
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    seen = claude(json.dumps(ANSWER))

    done = complete(REQUEST._replace(feedback="no outcomes"), model="opus")

    words, given, environment, files = seen()
    assert done[:6] == ("{}", "claude-code", "claude-fast", 100, 7, 0.25)
    assert words == [*claude_cli.OPTIONS, "--model", "opus"]
    assert "We chose lines over whole files." in given
    assert "no outcomes" in given
    assert "CLAUDECODE" not in environment
    assert environment["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"
    assert files == []


def test_a_list_of_events_ends_in_the_result(claude):
    claude(
        json.dumps(
            [{"type": "system"}, {**ANSWER, "usage": None, "modelUsage": None, "total_cost_usd": None}]
        )
    )

    assert complete()[:6] == ("{}", "claude-code", "", 0, 0, None)


def test_without_the_program_the_error_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(BackendUnavailable, match=r"there is no program 'claude'.*Install Claude Code"):
        complete()


def test_a_failure_is_reported_in_its_words(claude):
    for printed, code, words in (
        ("Invalid API key", 1, "exit code 1"), ("not JSON", 0, "in its form"), ("[]", 0, "in its form"),
        (json.dumps({**ANSWER, "result": " "}), 0, "in its form"),
        (json.dumps({**ANSWER, "is_error": True, "result": "Credit balance is too low"}), 0, "Credit balance"),
    ):  # fmt: skip
        claude(printed, code)
        with pytest.raises(BackendFailed, match=words):
            complete()


def test_it_is_an_architect_whose_answer_is_checked_like_any(claude, tmp_path):
    home = aether.init(tmp_path / ".aether")
    assert backend("claude-code") == (claude_cli, {})
    session = {name: value for name, value in stage.session().items() if not name.endswith("id")}
    for answer, author in (
        (json.dumps(session), "claude-code"),
        ("Sorry.", "extractive"),
    ):
        aether.add_working_memory_item(
            "Decided to use atomic writes, because of crashes.", "decision", metadata={"phase": 1}, home=home
        )
        claude(json.dumps({**ANSWER, "result": answer}))

        done = aether.compress(1, architect="claude-code", home=home)

        assert done.architect == author, done.notes
    assert any("answer rejected" in each for each in done.notes)

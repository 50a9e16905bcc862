"""The hook on the command line: the same as aether-hook, and a way to try a payload."""

from __future__ import annotations

import io
import json
import sys

import pytest

from aether.cli.main import main
from aether.store import spool
from tests import homes

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

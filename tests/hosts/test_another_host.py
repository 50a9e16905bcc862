"""A host that is no part of aether: one module and one row make its sessions remembered."""

from __future__ import annotations

import json

import pytest

from aether.api import working
from aether.hosts import HOSTS, hook
from aether.store import spool
from tests import homes

MODULE = """
import json

PROJECT_VARIABLE, PROCESS_VARIABLE = "OTHER_PROJECT", "OTHER_PID"
NAMES = {"session.begin": "SessionStart", "prompt": "UserPromptSubmit", "tool": "PostToolUse", "turn.end": "Stop"}


def event_of(payload, name=""):
    event = {
        "event": NAMES.get(payload.get("type") or name, ""), "session": payload["thread"], "directory": payload["root"],
        "source": payload.get("how", ""), "prompt": payload.get("words", ""), "message": payload.get("last", ""),
    }
    if event["event"] == "PostToolUse":
        call = payload["call"]
        event["call"] = {
            "tool": "Bash", "id": call["id"], "input": {"command": call["line"]}, "output": call["shown"],
            "failed": call["code"] != 0,
        }
    return event


def speech_of(payload, name):
    return {}


def takes_text(name):
    return name in ("SessionStart", "UserPromptSubmit")


def output(name, text):
    return json.dumps({"context": text}) if text and takes_text(name) else ""


def message(text):
    return json.dumps({"notice": text})


def ways_to_close():
    return False, ""
"""


@pytest.fixture
def happens(tmp_path, monkeypatch):
    """Return what reports an event of the host, and what the host is given."""
    (tmp_path / "other_host.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(HOSTS, "other", "other_host")
    project = tmp_path / "app"
    (project / ".git").mkdir(parents=True)
    monkeypatch.chdir(project)
    homes.fresh(project)

    def report(kind, **fields):
        payload = {"type": kind, "thread": "t-1", "root": str(project), **fields}
        return hook.main(["other", kind], json.dumps(payload).encode())

    return report


def test_its_sessions_are_remembered_and_given_memory(happens, tmp_path):
    home = tmp_path / "app" / ".aether"
    token = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"
    assert happens("prompt", words=f"Never retry the webhook with {token}.") == (0, "")
    assert happens("tool", call={"id": "c1", "line": "pytest -q", "shown": "3 passed", "code": 0}) == (0, "")
    assert happens("turn.end", last="All tests pass.") == (0, "")
    assert happens("tool", call={"id": "c2", "line": "cat .env", "shown": "KEY=1", "code": 0}) == (0, "")
    assert not spool.waiting(str(home))

    contents = [item["content"] for item in working.list_working_memory_items(home=home)]
    assert "Never retry the webhook with <REDACTED>." in contents
    assert "All tests pass." in contents
    code, output = happens("session.begin", how="startup")
    assert code == 0
    assert "Never retry the webhook" in json.loads(output)["context"]


def test_a_malformed_event_is_logged_and_fails_nothing(happens, tmp_path):
    assert happens("unknown") == (0, "")
    assert hook.main(["other", "prompt"], b"{}") == (0, "")
    assert "KeyError" in (tmp_path / "app" / ".aether" / "hook.log").read_text()

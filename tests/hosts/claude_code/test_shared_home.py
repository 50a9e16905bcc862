"""Hooks in a shared home: they wait for no server, and what they noted reaches the other machines all the same."""

from __future__ import annotations

import json
import subprocess
import time

import pytest

import aether
from aether.api import share as sharing
from aether.hosts import hook
from aether.sharing import ledgers, offline
from aether.store import conversations, spool
from tests import homes


@pytest.fixture
def replica(colony, monkeypatch):
    """A home on another machine, in a project; returns it."""
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    colony.first()
    home = colony.join()
    (home.parent / ".git").mkdir()
    return home


def reported(home, name, **more):
    payload = {"hook_event_name": name, "session_id": "s", "cwd": str(home.parent), **more}
    return hook.main([], json.dumps(payload).encode())


def said(home):
    return reported(home, "UserPromptSubmit", prompt="Remember: never deploy on Fridays.")


@pytest.fixture
def started(monkeypatch):
    """The processes that hooks would have started."""
    found = []

    class Started:
        def __init__(self, words, **how):
            found.append((words, how))

    monkeypatch.setattr(subprocess, "Popen", Started)
    return found


def test_hooks_ask_no_server_and_start_what_does(replica, started, monkeypatch):
    monkeypatch.setattr(ledgers, "opened", None)  # whoever asks fails

    reported(replica, "SessionStart", source="startup")
    said(replica)
    reported(
        replica,
        "PostToolUse",
        tool_name="Bash",
        tool_input={"command": "make"},
        tool_response="ok",
        tool_use_id="t",
    )
    assert len(started) == 1
    code, _ = reported(replica, "Stop")

    assert code == 0
    assert len(started) == 2
    for words, how in started:
        assert words[1:] == ["-P", "-m", "aether", "fold", "--quiet"]  # -P: a project cannot slip in modules
        assert how["env"]["AETHER_HOME"] == str(replica)
        assert how["start_new_session"]
    assert spool.waiting(str(replica))
    assert not (replica / spool.NAME).exists()


def test_hooks_start_nothing_while_the_server_failed_a_moment_ago(replica, started):
    offline.note_try(replica, failed=True)
    said(replica)
    reported(replica, "Stop")
    assert started == []

    offline.note_try(replica, failed=False)
    reported(replica, "SessionStart", source="startup")
    assert len(started) == 1


def test_a_home_that_is_not_shared_starts_nothing(tmp_path, started, monkeypatch):
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    home = homes.fresh(tmp_path / "app")
    (home.parent / ".git").mkdir()
    monkeypatch.setattr("aether.git.ask", lambda directory: None)

    said(home)
    reported(home, "Stop")

    assert started == []
    assert not spool.waiting(str(home))


def test_a_fold_of_a_shared_home_exchanges_news(replica, colony):
    homes.add(colony.made[0], "news")
    conversations.extend(colony.made[0], "talk", [{"role": "user", "content": "x"}], now=homes.NOW)
    said(replica)

    aether.fold(home=replica)

    assert not spool.waiting(str(replica))
    sharing.update_share(home=colony.made[0])
    assert "Fridays" in (colony.made[0] / "data" / "memory.json").read_text()
    assert "news" in homes.ids(replica)
    assert len(conversations.load(replica, "talk").texts) == 1


@pytest.mark.extras
@pytest.mark.parametrize("colony", ["postgres"], indirect=True)
def test_what_hooks_noted_reaches_other_machines_without_any_command(replica, colony):
    said(replica)
    reported(replica, "Stop")

    until = time.monotonic() + 60
    while spool.waiting(str(replica)) and time.monotonic() < until:
        time.sleep(0.05)
    sharing.update_share(home=colony.made[0])

    assert "Fridays" in (colony.made[0] / "data" / "memory.json").read_text()

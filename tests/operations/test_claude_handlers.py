import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from aether.integrations.claude_code import hook
from aether.memory.work import called, new_work, returned, worked
from aether.messages.record import Record
from aether.operations import claude_handlers
from aether.operations.claude_handlers import (
    EVENTS,
    TOOLS,
    is_ours,
    own_groups,
    plugin_groups,
    shared_groups,
    started,
)
from aether.store import config

PLUGIN = Path(claude_handlers.__file__).parents[1] / "integrations" / "claude_code" / "plugin"
WORDS = [
    ["/venv/bin/aether-hook"],
    ["/a b/it's/aether-hook"],
    ["/usr/bin/python3", "-P", "-m", "aether", "hook"],
]


def handlers(groups):
    return {event: group["hooks"][0] for event, group in groups.items()}


def test_the_plugins_hooks_are_the_table():
    held = json.loads((PLUGIN / "hooks" / "hooks.json").read_text(encoding="utf-8"))["hooks"]

    assert held == {event: [group] for event, group in plugin_groups().items()}


def test_no_event_of_ours_can_hold_up_a_session_for_long():
    assert max(EVENTS[event].seconds for event in EVENTS.keys() - hook.LONG) <= 15
    assert max(asked.seconds for asked in EVENTS.values()) <= 30
    assert EVENTS["SessionEnd"].seconds <= 2
    assert "PostToolBatch" not in EVENTS
    assert "PreToolUse" not in EVENTS


@pytest.mark.parametrize("event", sorted(EVENTS.keys() - {"SessionEnd"}))
def test_a_process_ends_itself_before_claude_code_ends_it(event):
    heavy = config.Config().claude_deadline_seconds * (hook.LONG_TIMES if event in hook.LONG else 1)

    assert EVENTS[event].seconds > (heavy if event in hook.HEAVY else hook.LIGHT_SECONDS) + hook.GRACE_SECONDS


@pytest.mark.parametrize("words", WORDS, ids=lambda words: words[0])
@pytest.mark.parametrize("make", [own_groups, shared_groups])
def test_what_was_made_is_known_as_ours_and_tells_what_it_starts(words, make):
    assert {tuple(started(handler)) for handler in handlers(make(words)).values()} == {tuple(words)}


def test_a_program_of_windows_is_known():
    assert started({"command": r"C:\venv\Scripts\aether-hook.exe", "args": ["Stop"]})


@pytest.mark.parametrize(
    "handler",
    [
        None, "aether-hook Stop", {}, {"command": 3}, {"command": "echo aether-hook"}, {"command": "aether-hook"},
        {"command": "other", "args": ["Stop"]}, {"command": "aether-hook 'open"}, {"command": "aether-hook", "args": [1]},
        {"command": "command -v x >/dev/null 2>&1 && exec x aether-hook Stop; exit 0"},
        {"command": "timeout 5 aether-hook Stop"}, {"command": "aether", "args": ["status", "Stop"]}, {"command": ""},
    ],
)  # fmt: skip
def test_what_others_made_is_not_ours(handler):
    assert not is_ours(handler)


def test_a_line_by_hand_that_only_starts_the_program_is_ours():
    assert started({"type": "command", "command": "/old/place/aether-hook Stop"}) == [
        "/old/place/aether-hook"
    ]


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_a_shared_line_is_silent_where_the_program_is_missing(tmp_path):
    line = handlers(shared_groups([str(tmp_path / "aether-hook")]))["Stop"]["command"]

    done = subprocess.run(line, shell=True, env={"PATH": "/nowhere"}, capture_output=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
@pytest.mark.parametrize("place", ["its own", "on PATH"])
def test_a_shared_line_hands_over_event_input_and_exit_code(tmp_path, place):
    there = tmp_path / "it's here"
    there.mkdir()
    script = there / "aether-hook"
    script.write_text('#!/bin/sh\nread line\necho "$1 $line"\nexit 3\n')
    script.chmod(0o755)
    words = [str(script)] if place == "its own" else ["/nowhere/aether-hook"]
    line = handlers(shared_groups(words))["Stop"]["command"]

    done = subprocess.run(
        line, shell=True, env={"PATH": str(there)}, input=b"payload\n", capture_output=True, check=False
    )

    assert (done.returncode, done.stdout) == (3, b"Stop payload\n")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Bash", {"command": "make test"}), ("PowerShell", {"command": "make test"}), ("Edit", {"file_path": "a", "old_string": "x", "new_string": "y"}),
        ("Write", {"file_path": "a", "content": "x"}), ("MultiEdit", {"file_path": "a", "edits": [{"new_string": "y"}]}),
        ("NotebookEdit", {"notebook_path": "a", "new_source": "x"}), ("Task", {"prompt": "x"}), ("Agent", {"prompt": "x"}),
        ("ExitPlanMode", {"plan": "Do it."}), ("mcp__tickets__create_ticket", {"title": "x"}), ("SendMessage", {"to": "x"}),
    ],
)  # fmt: skip
def test_a_tool_that_can_give_a_note_is_asked_for(tool, arguments):
    assert re.search(TOOLS, tool)
    assert noted(tool, arguments)


@pytest.mark.parametrize(
    "tool",
    ["Read", "Grep", "Glob", "LS", "WebFetch", "WebSearch", "TodoWrite", "BashOutput", "KillShell", "ToolSearch", "TaskCreate"],
)  # fmt: skip
def test_a_tool_that_merely_reads_starts_no_process(tool):
    assert not re.search(TOOLS, tool)
    assert not noted(tool, {"path": "a", "pattern": "x", "query": "y", "url": "z"})


@pytest.mark.parametrize("tool", ["mcp__aether__remember", "mcp__plugin_aether_aether__recall"])
def test_our_own_server_is_no_news(tool):
    assert not re.search(TOOLS, tool)


def noted(tool, arguments):
    work = new_work()
    record = Record(kind="call", tool=tool, arguments=arguments, call_id="1")
    at = {"line": 1, "part": 0, "uuid": "", "time": "", "session": "", "digest": "", "caste": ""}
    called(work, record, at)
    return returned(work, Record(kind="result", call_id="1", text="It worked."), at) + worked(work)


def test_the_program_of_this_environment_comes_before_that_of_another(monkeypatch, tmp_path):
    monkeypatch.setattr(claude_handlers.sysconfig, "get_path", lambda name: str(tmp_path / "own"))
    monkeypatch.setenv("PATH", str(tmp_path / "other"))
    assert claude_handlers.program() == [sys.executable, "-P", "-m", "aether", "hook"]

    for place in ("other", "own"):
        (tmp_path / place).mkdir()
        script = tmp_path / place / ("aether-hook.exe" if os.name == "nt" else "aether-hook")
        script.touch(mode=0o755)
        assert claude_handlers.program() == [str(script)]

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from aether.integrations.claude_code import hook, install
from aether.integrations.claude_code.install import (
    EVENTS,
    TOOLS,
    is_on_path,
    is_own_handler,
    own_groups,
    path_advice,
    program_of,
    shared_groups,
)
from aether.memory.capture.tool_work import close_stretch, new_work, record_call, record_result
from aether.messages.records import Record
from aether.store import config
from tests.tables import rows

PLUGIN = Path(install.__file__).parents[1] / "integrations" / "claude_code" / "plugin"
WORDS = [
    ["/venv/bin/aether-hook"],
    ["/a b/it's/aether-hook"],
    ["/usr/bin/python3", "-P", "-m", "aether", "hook"],
]


def handlers(groups):
    return {event: group["hooks"][0] for event, group in groups.items()}


def test_the_plugins_hooks_are_the_table():
    held = json.loads((PLUGIN / "hooks" / "hooks.json").read_text(encoding="utf-8"))["hooks"]

    assert held == {event: [group] for event, group in shared_groups().items()}


def test_no_event_of_ours_can_hold_up_a_session_for_long():
    assert max(EVENTS[event].seconds for event in EVENTS.keys() - hook.COMPACTION_EVENTS) <= 15
    assert max(asked.seconds for asked in EVENTS.values()) <= 30
    assert EVENTS["SessionEnd"].seconds <= 2
    assert "PostToolBatch" not in EVENTS
    assert "PreToolUse" not in EVENTS


@rows("event", sorted(EVENTS.keys() - {"SessionEnd"}))
def test_a_process_ends_itself_before_claude_code_ends_it(event):
    heavy = config.Config().claude_deadline_seconds * (
        hook.COMPACTION_FACTOR if event in hook.COMPACTION_EVENTS else 1
    )

    own = heavy if event in hook.HEAVY_EVENTS else hook.LIGHT_SECONDS
    assert EVENTS[event].seconds > own
    assert EVENTS[event].seconds >= own + hook.GRACE_SECONDS


@rows("words", WORDS, ids=lambda words: words[0])
def test_what_was_made_is_known_as_ours_and_tells_what_it_starts(words):
    assert {tuple(program_of(handler)) for handler in handlers(own_groups(words)).values()} == {tuple(words)}


def test_a_line_for_all_is_known_as_ours_and_names_no_place_of_this_machine():
    assert {tuple(program_of(handler)) for handler in handlers(shared_groups()).values()} == {
        ("aether-hook",)
    }
    assert os.sep not in json.dumps(shared_groups()).replace("/dev/null", "").replace("\\\\", "")


def test_a_program_of_windows_is_known():
    assert program_of({"command": r"C:\venv\Scripts\aether-hook.exe", "args": ["Stop"]})


@rows(
    "handler",
    [
        None, "aether-hook Stop", {}, {"command": 3}, {"command": "echo aether-hook"}, {"command": "aether-hook"},
        {"command": "other", "args": ["Stop"]}, {"command": "aether-hook 'open"}, {"command": "aether-hook", "args": [1]},
        {"command": "command -v x >/dev/null 2>&1 && exec x aether-hook Stop; exit 0"},
        {"command": "timeout 5 aether-hook Stop"}, {"command": "aether", "args": ["status", "Stop"]}, {"command": ""},
    ],
)  # fmt: skip
def test_what_others_made_is_not_ours(handler):
    assert not is_own_handler(handler)


def test_a_line_by_hand_that_only_starts_the_program_is_ours():
    assert program_of({"type": "command", "command": "/old/place/aether-hook Stop"}) == [
        "/old/place/aether-hook"
    ]


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_a_shared_line_is_silent_where_the_program_is_missing():
    line = handlers(shared_groups())["Stop"]["command"]

    done = subprocess.run(line, shell=True, env={"PATH": "/nowhere"}, capture_output=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_a_shared_line_hands_over_event_input_and_exit_code(tmp_path):
    there = tmp_path / "it's here"
    there.mkdir()
    script = there / "aether-hook"
    script.write_text('#!/bin/sh\nread line\necho "$1 $line"\nexit 3\n')
    script.chmod(0o755)
    line = handlers(shared_groups())["Stop"]["command"]

    done = subprocess.run(
        line, shell=True, env={"PATH": str(there)}, input=b"payload\n", capture_output=True, check=False
    )

    assert (done.returncode, done.stdout) == (3, b"Stop payload\n")


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
@rows(
    ("found", "everywhere"),
    [("link", True), ("own", False), ("system", True), ("other", False), ("", False), ("no script", False)],
)
def test_a_program_is_on_path_where_its_bare_name_is_ours_in_every_shell(
    found, everywhere, monkeypatch, tmp_path
):
    own = tmp_path / "own"
    own.touch()
    (tmp_path / "other").touch()
    (tmp_path / "link").symlink_to(own)
    name = "own" if found == "system" else "link" if found == "no script" else found
    monkeypatch.setattr(sys, "prefix", sys.base_prefix if found == "system" else "/venv")
    monkeypatch.setattr(install.shutil, "which", lambda _: str(tmp_path / name) if name else None)
    monkeypatch.setattr(install, "own_script", lambda _: "" if found == "no script" else str(own))

    assert is_on_path("aether") == everywhere


def test_what_is_missing_on_path_is_told_with_how_to_put_it_there(monkeypatch):
    there = {"aether", "aether-hook"}
    monkeypatch.setattr(install, "is_on_path", lambda name: name in there)
    monkeypatch.setattr(install, "own_script", lambda name: f"/a venv/{name}")
    assert path_advice() == ""

    there.remove("aether-hook")
    assert path_advice().startswith("aether-hook of this environment is not on PATH")
    there.clear()

    assert path_advice().startswith("aether and aether-hook of this environment are not on PATH")
    assert "aether recall" in path_advice()
    if os.name != "nt":
        assert path_advice().endswith("ln -s '/a venv/aether' '/a venv/aether-hook' ~/.local/bin/")


def test_where_there_is_no_script_none_is_linked(monkeypatch):
    monkeypatch.setattr(install, "own_script", lambda name: "")

    assert "ln -s" not in path_advice()


@rows(
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


@rows(
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
    record_call(work, record, at)
    return record_result(work, Record(kind="result", call_id="1", text="It worked."), at) + close_stretch(
        work
    )


def test_the_program_of_this_environment_comes_before_that_of_another(monkeypatch, tmp_path):
    monkeypatch.setattr(install.sysconfig, "get_path", lambda name: str(tmp_path / "own"))
    monkeypatch.setenv("PATH", str(tmp_path / "other"))
    assert install.own_program() == [sys.executable, "-P", "-m", "aether", "hook"]

    for place in ("other", "own"):
        (tmp_path / place).mkdir()
        script = tmp_path / place / ("aether-hook.exe" if os.name == "nt" else "aether-hook")
        script.touch(mode=0o755)
        assert install.own_program() == [str(script)]

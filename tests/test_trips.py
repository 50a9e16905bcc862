"""Three trips of data, and the modules that they visit: an item, an event of a tool, `aether memory forget`.

Modules that every trip or only the first call in a process visits are not counted: `aether` itself (lazy imports),
`aether.errors`, `aether.clock`, `aether.paths` and `aether.text.regex` (patterns compiled at first use).
"""

from __future__ import annotations

import io
import json
import sys

import pytest

from aether import add_working_memory_item
from aether.cli.main import cli
from aether.hosts import hook
from aether.store import spool
from tests import homes


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return the home of the project in which the trip is made, with three items in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    home = homes.fresh(tmp_path)
    for number in range(3):
        add_item(home, f"Decided: never write state number {number} without a temporary file.")
    return home


def add_item(home, content):
    add_working_memory_item(content, "decision", 0.9, home=home)


def visited(trip):
    """Return the modules of aether of which `trip` calls a function."""
    found = set()

    def note(frame, event, arg):
        if event == "call" and frame.f_code.co_name != "<module>":
            found.add(frame.f_globals.get("__name__", ""))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        trip()
    finally:
        sys.setprofile(before)
    found -= {f"aether.{word}" for word in ("text.regex", "errors", "clock", "paths")} | {"aether"}
    return sorted(name for name in found if name.partition(".")[0] == "aether")


def test_an_added_item_visits_few_modules(home):
    add_item(home, "Decided: settings are read once per process.")

    found = visited(lambda: add_item(home, "Decided: the ledger is one file."))

    assert len(found) <= 15, found


def test_an_event_of_a_tool_visits_few_modules(home, monkeypatch):
    event = json.dumps(
        {
            "hook_event_name": "PostToolUse", "session_id": "s", "cwd": str(home.parent), "tool_name": "Bash",
            "tool_input": {"command": "pytest -q"}, "tool_response": {"stdout": "3 passed"},
        }
    ).encode()  # fmt: skip
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(event)))

    found = visited(lambda: hook.main([], event))

    assert len(spool.waiting(str(home))) == 1
    assert len(found) <= 10, found


def test_forgetting_visits_few_modules(home, capsys):
    def forget(words):
        cli(["memory", "forget", "--match", words, "--yes"], standalone_mode=False)

    # The first command of a process imports modules, which call others.
    forget("state number 0")
    found = visited(lambda: forget("temporary file"))

    assert "forgotten" in capsys.readouterr().out
    assert len(found) <= 23, found

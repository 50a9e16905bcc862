"""Replies: which operations each event calls, and that one of several processes answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from aether.api import admin as operations_home
from aether.api import briefing, compress, drain, prompt_recall, working
from aether.api.drain import Drained
from aether.errors import Conflict
from aether.hosts import answer
from aether.hosts.claude_code import event as event_module
from aether.store import config
from aether.store.files import locked
from tests import homes
from tests.hook_player import entry, put
from tests.tables import rows


@pytest.fixture
def home(tmp_path):
    return homes.fresh(tmp_path)


@pytest.fixture
def calls(monkeypatch):
    """What was called, by name; nothing of it is done."""
    seen = []

    def stand_in(module, name, result):
        monkeypatch.setattr(
            module, name, lambda *given, **named: seen.append((name, *given[1:], *named.values())) or result
        )

    stand_in(drain, "drain", Drained(""))
    stand_in(briefing, "session_brief", "brief")
    stand_in(briefing, "subagent_brief", "agent brief")
    stand_in(compress, "prepare_for_summary", None)
    stand_in(prompt_recall, "prompt_recall", "recalled")
    stand_in(compress, "ingest_summary", None)
    return seen


def reply(home, event, *, note=None, **more):
    return answer.answer(
        event_module, {"event": event, "session": "s", **more}, str(home), config.or_default(home),
        note=note or (lambda what: None),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("event", "given", "done", "said"),
    [
        (
            "SessionStart",
            {"source": "compact"},
            [("drain", 1.0, "s"), ("session_brief", "compact", "s")],
            "brief",
        ),
        ("SubagentStart", {"caste": "scout"}, [("subagent_brief", "scout", "s")], "agent brief"),
        ("SubagentStop", {}, [("drain", 30.0, "")], ""),
        ("PreCompact", {}, [("drain", 1.0, ""), ("prepare_for_summary", "s", "hook")], ""),
        (
            "PostCompact",
            {"summary": "All.", "trigger": "auto"},
            [("ingest_summary", "All.", "s", "auto", "hook")],
            "",
        ),
        ("PostCompact", {}, [], ""),
        ("UserPromptSubmit", {}, [], ""),
        ("Stop", {"stop_hook_active": True}, [], ""),
        ("SessionEnd", {}, [], ""),
    ],
)
def test_each_event_calls_its_operations(home, calls, event, given, done, said):
    assert reply(home, event, **given) == said
    assert calls == done


def test_a_prompt_gets_the_matching_memory(home, calls):
    assert reply(home, "UserPromptSubmit", prompt="Which database?") == "recalled"
    assert [(name, 400 in given, "s" in given) for name, *given in calls] == [("prompt_recall", True, True)]


@pytest.mark.parametrize(
    ("key", "event", "given"),
    [
        ("inject", "SessionStart", {}),
        ("inject", "SubagentStart", {}),
        ("recall", "UserPromptSubmit", {"prompt": "x"}),
    ],
)
def test_a_disabled_setting_gives_no_text(home, calls, key, event, given):
    (home / "config.toml").write_text(f"[claude]\n{key} = false\n")

    assert reply(home, event, **given) == ""
    assert [name for name, *_ in calls if name != "drain"] == []


def test_entries_left_in_the_spool_are_logged(home, calls, monkeypatch):
    monkeypatch.setattr(drain, "drain", lambda home, **_: Drained("locked"))
    noted = []

    reply(home, "PreCompact", note=noted.append)
    reply(home, "SubagentStop")

    assert noted == ["waits in the spool: locked"]
    assert "SubagentStop s waits in the spool: locked" in (home / "hook.log").read_text()


def test_the_end_of_a_turn_waits_for_another_that_is_being_stored(home):
    put(home, entry("UserPromptSubmit", prompt="Please always use SQLite for the state.", prompt_id="p1"))
    held = threading.Event()

    def hold():
        with locked(home / "hooks", timeout=1):
            held.set()
            time.sleep(1.5)

    other = threading.Thread(target=hold)
    other.start()
    held.wait(10)

    answer.main(str(home), "Stop", "s")

    other.join()
    assert not (home / "hook.log").exists()
    assert "SQLite" in json.dumps(homes.reopened(home).documents["memory"])


def full(home):
    """Fill working memory of `home` beyond its threshold."""
    for nth in range(3):
        homes.add(home, f"i{nth}", tokens=70_000)


def test_a_full_memory_is_compressed_when_a_turn_ends(home, monkeypatch):
    asked = []
    monkeypatch.setattr(
        compress, "compress", lambda phase, **named: asked.append((phase, named["architect"]))
    )
    full(home)

    reply(home, "Stop")

    assert asked == [(1, "extractive")]


@pytest.mark.parametrize("why", ["off", "not full"])
def test_it_is_not_compressed_where_it_is_switched_off_or_not_full(home, monkeypatch, why):
    asked = []
    monkeypatch.setattr(compress, "compress", lambda *given, **named: asked.append(given))
    if why != "not full":
        full(home)
    if why == "off":
        (home / "config.toml").write_text("[claude]\nauto_compress = false\n")

    reply(home, "Stop")

    assert asked == []


def test_waiting_entries_are_drained(home):
    put(home, entry("UserPromptSubmit", prompt="Please always use SQLite for the state.", prompt_id="p1"))

    reply(home, "SubagentStop")

    assert "SQLite" in str(working.list_working_memory_items(home=home))


def test_the_end_of_a_turn_says_nothing_whatever_a_person_demanded(home):
    put(home, entry("UserPromptSubmit", prompt="Please always use SQLite for the state.", prompt_id="p1"))

    assert reply(home, "Stop") == ""


def test_undo_does_not_revert_changes_of_a_hook(home):
    own = {"conversation": "s"}
    asked = str(working.add_working_memory_item("Never use tabs.", "constraint", home=home, metadata=own))
    said = entry("UserPromptSubmit", prompt="Please always use SQLite for the state.", prompt_id="p1")
    put(home, said | {"session": "s"})

    reply(home, "PreCompact")
    reply(home, "PostCompact", summary="Chose SQLite. " * 20, trigger="manual")

    made = [(line.operation, line.by) for line in operations_home.log(home=home)]
    assert made[:3] == [("compress", "hook"), ("prepare", "hook"), ("capture", "hook")]
    with pytest.raises(Conflict, match="changed again by revision"):
        operations_home.undo(home=home)
    operations_home.undo(operations_home.log(limit=1, home=home)[0].revision, home=home)
    assert asked in str(working.list_working_memory_items(home=home))


ROOT = Path(__file__).parents[3]
START = {"hook_event_name": "SessionStart", "session_id": "s", "source": "resume"}
PROMPT = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt_id": "p", "prompt": "Go on."}


def test_the_second_to_ask_is_not_the_first(tmp_path):
    assert [answer.is_first(str(tmp_path), START) for _ in range(3)] == [True, False, False]


@rows(
    "other",
    [START, PROMPT | {"prompt_id": "q"}, PROMPT | {"prompt": "Stop."}, PROMPT | {"session_id": "t"}],
    ids=["event", "prompt id", "prompt", "session"],
)
def test_another_event_has_a_first_of_its_own(tmp_path, other):
    assert answer.is_first(str(tmp_path), PROMPT)
    assert answer.is_first(str(tmp_path), other)


def test_another_process_that_asks_has_a_first_of_its_own(tmp_path):
    assert [answer.is_first(str(tmp_path), START, process) for process in ("17", "18")] == [True, True]


def test_the_same_event_later_has_a_first_again_and_leaves_no_files(tmp_path):
    for index in range(3):
        answer.is_first(str(tmp_path), START | {"session_id": str(index)})
    for file in (tmp_path / "hooks" / answer.DIRECTORY_NAME).iterdir():
        os.utime(file, (time.time() - answer.SAME_EVENT_SECONDS - 1,) * 2)

    assert answer.is_first(str(tmp_path), START | {"session_id": "0"})
    assert len(list((tmp_path / "hooks" / answer.DIRECTORY_NAME).iterdir())) == 1


def test_where_nothing_can_be_written_all_are_first(tmp_path):
    (tmp_path / "hooks").write_text("a file where a directory belongs")
    assert [answer.is_first(str(tmp_path), START) for _ in range(2)] == [True, True]

    (tmp_path / "other" / "hooks").mkdir(parents=True)
    (tmp_path / "other" / "hooks" / answer.DIRECTORY_NAME).write_text("likewise")
    assert [answer.is_first(str(tmp_path / "other"), START) for _ in range(2)] == [True, True]


def test_a_mark_that_another_process_removes_is_no_failure(tmp_path, monkeypatch):
    answer.is_first(str(tmp_path), START)
    (file,) = (tmp_path / "hooks" / answer.DIRECTORY_NAME).iterdir()
    os.utime(file, (1, 1))
    real = os.unlink

    def slower(path):
        real(path)
        real(path)

    monkeypatch.setattr(os, "unlink", slower)

    assert answer.is_first(str(tmp_path), START)


def test_of_many_processes_at_once_one_is_first(tmp_path):
    code = f"from aether.hosts.answer import is_first; print(is_first({str(tmp_path)!r}, {START!r}, '1'))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    started = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(8)
    ]

    assert sorted(process.communicate()[0].strip() for process in started) == ["False"] * 7 + ["True"]


def test_elsewhere_nothing_is_swept_away_and_nothing_is_made(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "memory.json").write_text("{}")
    os.utime(tmp_path / "data" / "memory.json", (1, 1))
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / answer.DIRECTORY_NAME).symlink_to(tmp_path / "data")

    assert [answer.is_first(str(tmp_path), START) for _ in range(2)] == [True, True]
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["memory.json"]


def test_a_mark_from_the_future_is_ignored(tmp_path):
    answer.is_first(str(tmp_path), START)
    (file,) = (tmp_path / "hooks" / answer.DIRECTORY_NAME).iterdir()
    os.utime(file, (time.time() + 3_600,) * 2)

    assert [answer.is_first(str(tmp_path), START) for _ in range(2)] == [True, False]

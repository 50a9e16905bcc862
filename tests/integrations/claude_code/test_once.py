"""Of several processes for one event, one answers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from aether.integrations.claude_code import event
from tests.tables import rows

ROOT = Path(__file__).parents[3]
START = {"hook_event_name": "SessionStart", "session_id": "s", "source": "resume"}
PROMPT = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt_id": "p", "prompt": "Go on."}


def test_the_second_to_ask_is_not_the_first(tmp_path):
    assert [event.is_first(str(tmp_path), START) for _ in range(3)] == [True, False, False]


@rows(
    "other",
    [START, PROMPT | {"prompt_id": "q"}, PROMPT | {"prompt": "Stop."}, PROMPT | {"session_id": "t"}],
    ids=["event", "prompt id", "prompt", "session"],
)
def test_another_event_has_a_first_of_its_own(tmp_path, other):
    assert event.is_first(str(tmp_path), PROMPT)
    assert event.is_first(str(tmp_path), other)


def test_another_process_that_asks_has_a_first_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_PID", "17")
    assert event.is_first(str(tmp_path), START)
    monkeypatch.setenv("CLAUDE_PID", "18")
    assert event.is_first(str(tmp_path), START)


def test_the_same_event_later_has_a_first_again_and_leaves_no_files(tmp_path):
    for index in range(3):
        event.is_first(str(tmp_path), START | {"session_id": str(index)})
    for file in (tmp_path / event.DIRECTORY).iterdir():
        os.utime(file, (time.time() - event.SAME_EVENT_SECONDS - 1,) * 2)

    assert event.is_first(str(tmp_path), START | {"session_id": "0"})
    assert len(list((tmp_path / event.DIRECTORY).iterdir())) == 1


def test_where_nothing_can_be_written_all_are_first(tmp_path):
    (tmp_path / "hooks").write_text("a file where a directory belongs")
    assert [event.is_first(str(tmp_path), START) for _ in range(2)] == [True, True]

    (tmp_path / "other" / "hooks").mkdir(parents=True)
    (tmp_path / "other" / event.DIRECTORY).write_text("likewise")
    assert [event.is_first(str(tmp_path / "other"), START) for _ in range(2)] == [True, True]


def test_what_another_sweeps_away_is_no_trouble(tmp_path, monkeypatch):
    event.is_first(str(tmp_path), START)
    (file,) = (tmp_path / event.DIRECTORY).iterdir()
    os.utime(file, (1, 1))
    real = os.unlink

    def slower(path):
        real(path)
        real(path)

    monkeypatch.setattr(os, "unlink", slower)

    assert event.is_first(str(tmp_path), START)


def test_of_many_processes_at_once_one_is_first(tmp_path):
    code = f"from aether.integrations.claude_code.event import is_first; print(is_first({str(tmp_path)!r}, {START!r}))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CLAUDE_PID": "1"}
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
    (tmp_path / event.DIRECTORY).symlink_to(tmp_path / "data")

    assert [event.is_first(str(tmp_path), START) for _ in range(2)] == [True, True]
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["memory.json"]


def test_what_was_said_in_the_future_counts_no_more(tmp_path):
    event.is_first(str(tmp_path), START)
    (file,) = (tmp_path / event.DIRECTORY).iterdir()
    os.utime(file, (time.time() + 3_600,) * 2)

    assert [event.is_first(str(tmp_path), START) for _ in range(2)] == [True, False]

"""The colony at a glance."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

import aether
from aether import clock
from aether.api import admin as homes
from aether.api import colony
from aether.api.status import overview
from aether.errors import NotFound
from aether.store import spool
from tests.cli import stage


@pytest.fixture
def place(tmp_path):
    return homes.init(tmp_path / ".aether")


def test_an_empty_colony_has_done_nothing_yet(place):
    found = overview(home=place)

    assert (found["items"], found["tokens"], found["last_compression"], found["compression_needed"]) == (
        0,
        0,
        None,
        False,
    )
    assert found["hooks"] == {"paused": False, "waiting": 0, "last_event": ""}


def test_what_was_done_is_counted(place):
    aether.add_working_memory_item("A note.", "observation", home=place, metadata={"phase": 1})
    aether.prepare_compression_data(1, home=place, manual=True)
    aether.trigger_phase_boundary_compression(1, stage.session(), home=place)
    colony.start_phase(2, home=place)

    found = overview(home=place)

    assert (found["sessions"], found["phase"], found["state"]) == (1, 2, "EXECUTING")
    assert found["last_compression"]["session_id"] == "phase_1_by_hand"


def test_looking_takes_nothing_in(place):
    spool.put(str(place), {"event": "Stop", "session": "s", "at": "2026-03-01T10:00:00.000000Z"})
    (place / "hooks" / "paused").touch()

    assert overview(home=place)["hooks"]["waiting"] == overview(home=place)["hooks"]["waiting"] == 1
    assert overview(home=place)["hooks"]["paused"]


def test_a_broken_configuration_is_a_problem(place):
    assert overview(home=place)["problems"] == []
    (place / "config.toml").write_text("[claude]\nrecal = true\n")

    (problem,) = overview(home=place)["problems"]

    assert "'claude.recal' is not a setting. Did you mean claude.recall?" in problem


def test_of_the_log_the_last_lines_of_these_days_are_told(place, monkeypatch):
    monkeypatch.setattr(clock, "now", lambda: datetime(2026, 3, 10, 10, 15, tzinfo=UTC))
    days = [f"2026-03-0{day}T10:16:00Z Stop s failed {day}" for day in range(1, 10)]
    assert overview(home=place)["log"] == []
    (place / "hook.log").write_text("".join(f"{line}\n" for line in days[:4]))
    assert overview(home=place)["log"] == days[2:4]

    (place / "hook.log").write_text("".join(f"{line}\n" for line in days))

    assert overview(home=place)["log"] == days[4:]


@pytest.mark.parametrize(
    ("text", "at"),
    [(json.dumps({"at": "2026-03-01"}), "2026-03-01"), ("{", ""), ("[]", ""), ('{"at": 3}', "")],
)
def test_the_last_event_is_that_of_the_newest_session(place, text, at):
    sessions = place / "hooks" / "sessions"
    sessions.mkdir(parents=True)
    (sessions / "s.json").write_text(text, encoding="utf-8")

    assert overview(home=place)["hooks"]["last_event"] == at


def test_without_a_home_it_says_so(tmp_path):
    with pytest.raises(NotFound):
        overview(home=tmp_path / ".aether")

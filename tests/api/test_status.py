"""Status of the layers, and the overview of a colony."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

import aether
from aether import clock
from aether.api import admin as homes
from aether.api import colony
from aether.api.overview import overview
from aether.errors import AetherError, NotFound
from aether.hosts import hook
from aether.store import spool
from tests.api.calls import limits, memory
from tests.cli import stage
from tests.memory.states import answer


def test_an_empty_home_is_empty(home):
    status = aether.get_memory_status(home=home)

    assert status["home"] == str(home)
    assert status["working_memory"] == {
        "items": 0, "tokens": 0, "max_capacity_tokens": 200_000, "percent": 0.0, "eviction_threshold_tokens": 160_000,
        "compression_needed": False, "counter": "estimate",
    }  # fmt: skip
    assert status["short_term_memory"] == {
        "sessions": 0,
        "max_sessions": 10,
        "percent": 0.0,
        "target_ratio": 2.5,
    }
    assert status["long_term_memory"]["types"] == {
        "success_pattern": 0, "failure_pattern": 0, "preference": 0, "constraint": 0,
    }  # fmt: skip
    assert set(status["metrics"].values()) == {0}
    assert status["colony"] == {"state": "IDLE", "current_phase": None}
    assert status["open_handoffs"] == []


def test_the_numbers_follow_what_happens(home):
    limits(home, capacity=50)
    aether.add_working_memory_item("word " * 40, "note", home=home)
    high = [{"content": "Tests failed on Windows", "relevance_score": 0.9, "type": "fact"}]
    aether.create_short_term_session(1, answer(high_value_items=high), home=home)
    aether.start_phase(3, home=home)

    status = aether.get_memory_status(home=home)

    assert status["working_memory"]["items"] == 1
    assert status["working_memory"]["compression_needed"]
    assert status["working_memory"]["tokens"] == memory(home)["working_memory"]["current_tokens"]
    assert status["short_term_memory"]["percent"] == 10.0
    assert status["long_term_memory"]["patterns"] == 1
    assert status["long_term_memory"]["types"]["failure_pattern"] == 1
    assert status["metrics"]["total_pattern_extractions"] == 1
    assert len(status["open_handoffs"]) == 1
    assert status["colony"] == {"state": "EXECUTING", "current_phase": 3}


def test_the_statistics_agree_with_the_metrics(home):
    """Defect 17 of the original: 2.33 here, 4.83 there."""
    for nth in range(3):
        aether.add_working_memory_item("word " * 400 * (nth + 1), "note", home=home)
        aether.trigger_phase_boundary_compression(nth, answer(f"s{nth}", key_decisions=[]), home=home)

    stats = aether.get_compression_stats(home=home)

    ratios = [each["compression_ratio"] for each in stats["sessions"]]
    assert stats["total_compressions"] == len(ratios) == 3
    assert round(sum(ratios) / 3, 4) == stats["average_compression_ratio"]
    assert (
        stats["average_compression_ratio"]
        == aether.get_memory_status(home=home)["metrics"]["average_compression_ratio"]
    )
    assert [each["session_id"] for each in stats["sessions"]] == ["s0", "s1", "s2"]
    assert (stats["max_sessions"], stats["working_memory_evictions"], stats["short_term_evictions"]) == (
        10,
        0,
        0,
    )


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


def test_the_status_counts_the_work(place):
    aether.add_working_memory_item("A note.", "observation", home=place, metadata={"phase": 1})
    aether.prepare_compression_data(1, home=place, manual=True)
    aether.trigger_phase_boundary_compression(1, {**stage.session(), "key_decisions": []}, home=place)
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
    assert "commands change nothing" in problem


@pytest.mark.parametrize(
    "text", ["", "[claude\n", "[claude]\nprivate_paths = 1\n", "[claude]\nrecal = true\n"]
)
def test_what_status_says_of_a_broken_configuration_is_what_hooks_and_commands_do(place, text):
    aether.add_working_memory_item("Never push to main.", "constraint", 0.9, home=place)
    if text:
        (place / "config.toml").write_text(text)
    else:
        os.mkfifo(place / "config.toml")

    (problem,) = overview(home=place)["problems"]
    said = [
        hook.main([event], json.dumps({"cwd": str(place.parent), "session_id": "s", **payload}).encode())[1]
        for event, payload in (
            ("SessionStart", {"source": "startup"}),
            ("PostToolUse", {"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_response": {"stdout": "ok"}}),
        )
    ]  # fmt: skip

    assert "Never push" in said[0]
    assert "inject nothing" not in problem
    kept = "PostToolUse" in str([spool.get(str(place), name) for name in spool.waiting(str(place))])
    assert kept is ("keep no calls of tools" not in problem)
    with pytest.raises(AetherError):
        aether.add_working_memory_item("Use tabs.", "constraint", 0.9, home=place)
    assert "config.toml" in [Path(one.where).name for one in aether.examine(home=place)]


def test_status_and_doctor_name_what_is_no_file(place):
    names = ("lock", "hook.log", "models.json", "data/usage.json", "hooks/answering")
    (place / "hooks").mkdir()
    for name in names:
        (place / name).unlink(missing_ok=True)
        os.mkfifo(place / name)

    problems = overview(home=place)["problems"]

    assert sorted(problem.partition(" ")[0] for problem in problems) == sorted(
        str(place / name) for name in names
    )
    assert {one.where for one in aether.examine(home=place) if one.code == "no-file"} == set(names)


def test_the_overview_has_the_last_recent_lines_of_the_log(place, monkeypatch):
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

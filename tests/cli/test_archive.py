"""The archive by hand: what ages and what does not, the questions before it, the way back, and the daily pass."""

from __future__ import annotations

import io
import json
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

import aether
from aether import clock
from aether.api import archive
from aether.cli import archive as commands
from aether.cli.main import main
from aether.errors import StorageFailed
from tests.cli.stage import old_talk, shown

MONTH = "2026-02-10T10:00:00Z"  # more than 30 days after the old talk


@pytest.fixture
def archived(here, tmp_path, capsys):
    """Stand where an old talk is archived; returns the file that was added."""
    shown(capsys, "archive", "add", "old-talk.json")
    return tmp_path / "old-talk.json"


def data(capsys, *words, code=0):
    return json.loads(shown(capsys, "archive", *words, "--json", code=code).out)


def level(capsys):
    return {one["id"]: one["level"] for one in data(capsys, "list")}


def test_the_shapes_that_are_fixed(archived, capsys):
    (listed,) = data(capsys, "list", "--month", "2026-01")
    stats = data(capsys, "stats")

    assert listed.keys() == {"id", "title", "created_at", "level", "bytes", "path"}
    assert (listed["id"], listed["title"], listed["level"]) == ("old-talk", "Webhook retries", "full")
    assert listed["path"].startswith("archive/2026/01/20260105_100000_Webhook-retries_old-talk")
    assert stats.keys() == {"conversations", "bytes", "levels"}
    assert (stats["conversations"], stats["levels"]["full"]) == (1, 1)
    assert data(capsys, "list", "--month", "2026-02") == []


def test_a_list_shows_the_newest_and_says_how_many_more_there_are(here, capsys, tmp_path):
    several = [old_talk() | {"id": f"talk-{nth}"} for nth in range(23)]
    (tmp_path / "several.json").write_text(json.dumps(several), encoding="utf-8")
    shown(capsys, "archive", "add", "several.json")

    listed = shown(capsys, "archive", "list")
    whole = shown(capsys, "archive", "list", "--limit", "0")
    other = shown(capsys, "archive", "list", "--limit", "2", "--month", "2026-01", "--level", "full")

    assert len([line for line in listed.out.splitlines() if "talk-" in line]) == 20
    assert "3 older conversations left out: --limit 0 lists all." in listed.err
    assert len([line for line in whole.out.splitlines() if "talk-" in line]) == 23
    assert "left out" not in whole.err
    assert "21 older conversations left out" in other.err
    assert len(data(capsys, "list", "--search", "webhook retries", "--limit", "0")) == 23
    assert aether.list_archived(month="2026-02") == []


def test_adding_says_which_are_new_and_which_are_there(archived, capsys, tmp_path):
    talk = json.loads(archived.read_text())
    (tmp_path / "new.json").write_text(json.dumps(talk | {"id": "new-talk"}))

    said = shown(capsys, "archive", "add", "old-talk.json", "new.json").err

    assert said.startswith("1 conversation added, 1 there already (old-talk). ")


def test_a_full_conversation_is_shown_with_its_original_file(archived, capsys):
    said = shown(capsys, "archive", "list", "old-talk").out

    assert "original file:  kept for good" in said
    assert "marked:         no" in said


def test_ageing_as_of_another_day_is_logged_at_the_time_when_it_was_done(archived, capsys):
    before = clock.stamp(clock.now())

    (receipt,) = data(capsys, "age", "--now", MONTH, "--yes")["done"]

    assert before <= receipt["at"] <= clock.stamp(clock.now())
    assert before <= aether.log(limit=1)[0].at <= clock.stamp(clock.now())


def test_a_conversation_loses_detail_and_comes_back_byte_for_byte(archived, capsys, tmp_path):
    aged = shown(capsys, "archive", "age", "--now", MONTH, "--yes")
    assert aged.out.startswith("1 conversation aged, ")
    assert "aether archive restore old-talk" in aged.err
    assert level(capsys) == {"old-talk": "key_points"}

    assert "Never retry more than five times." in shown(capsys, "archive", "list", "old-talk").out
    assert "old-talk" in shown(capsys, "archive", "search", "retry", "webhook").out
    done = shown(capsys, "archive", "restore", "old-talk", "--output", "restored.json")

    assert (done.out, "exactly as it was archived" in done.err) == ("restored.json\n", True)
    assert (tmp_path / "restored.json").read_bytes() == archived.read_bytes()
    assert shown(capsys, "archive", "list", "--verify").out == "Every archived conversation is whole.\n"


def test_a_dry_run_shows_the_plan_and_changes_nothing(archived, capsys):
    table = shown(capsys, "archive", "age", "--now", MONTH, "--dry-run")
    head, _, row = table.out.splitlines()
    plan = data(capsys, "age", "--now", MONTH, "--dry-run")

    assert head.split() == ["conversation", "days", "score", "level", "bytes", "rule", "title"]
    assert row.split()[:2] == ["old-talk", "35"]
    assert "full → key_points" in row
    assert table.err == "Nothing was changed.\n"
    assert (plan["dry_run"], plan["done"], plan["saved_bytes"]) == (True, [], 0)
    assert plan["plan"][0].keys() == {"id", "title", "days", "score", "rule", "from", "to", "bytes"}
    assert level(capsys) == {"old-talk": "full"}


def test_ageing_asks_first_and_does_nothing_without_an_answer(archived, capsys, monkeypatch):
    refused = shown(capsys, "archive", "age", "--now", MONTH, code=2)
    assert refused.err == "Error: 1 conversation will lose detail. Pass --yes to do it.\n"
    assert "old-talk" in refused.out  # the plan stands before the question

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    shown(capsys, "archive", "age", "--now", MONTH, code=1)
    assert level(capsys) == {"old-talk": "full"}

    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    shown(capsys, "archive", "age", "--now", MONTH)
    assert level(capsys) == {"old-talk": "key_points"}


def test_a_marked_conversation_stays_full_and_explain_says_why(archived, capsys):
    assert shown(capsys, "archive", "mark", "old-talk").out == "old-talk is marked: it stays full.\n"
    shown(capsys, "archive", "age", "--now", "2028-01-01", "--yes")
    assert level(capsys) == {"old-talk": "full"}
    assert "marked" in shown(capsys, "archive", "list", "--why", "old-talk", "--now", "2028-01-01").out

    shown(capsys, "archive", "mark", "--remove", "old-talk")
    found = data(capsys, "explain", "old-talk", "--now", "2028-01-01")
    assert (found["level"], found["rule"] == "marked") == ("full", False)
    assert found["days"] == 725


def test_a_mark_says_what_it_means_for_one_that_has_aged(archived, capsys):
    shown(capsys, "archive", "age", "--now", "2026-12-30", "--yes")
    out = shown(capsys, "archive", "mark", "old-talk").out

    assert "it loses no more detail. It is at level summary already" in out
    assert "aether archive restore old-talk" in out


def test_an_empty_list_says_whether_anything_is_archived(archived, capsys):
    assert "is of that month and level" in shown(capsys, "archive", "list", "--month", "2026-02").err
    assert "is not a month" in shown(capsys, "archive", "list", "--month", "2026-13", code=2).err


def test_each_file_that_cannot_be_read_is_named_and_the_others_are_added(here, capsys, tmp_path):
    (tmp_path / "torn.json").write_text('{"messages": [', encoding="utf-8")
    several = [old_talk() | {"id": f"talk-{nth}"} for nth in range(3)]
    (tmp_path / "several.json").write_text(json.dumps(several), encoding="utf-8")

    done = shown(
        capsys, "archive", "add", "torn.json", "nowhere.json", "several.json", "session.jsonl", code=4
    )

    assert "torn.json" in done.err
    assert "nowhere.json" in done.err
    found = level(capsys)
    assert {"talk-0", "talk-1", "talk-2"} < found.keys()
    assert len(found) == 4


def test_failures_of_an_ageing_are_named_and_the_rest_goes_on(here, capsys, tmp_path):
    several = [old_talk() | {"id": f"talk-{nth}"} for nth in range(3)]
    (tmp_path / "several.json").write_text(json.dumps(several), encoding="utf-8")
    shown(capsys, "archive", "add", "several.json")
    (bad,) = Path(".aether/archive/2026").rglob("*talk-1*")
    bad.write_bytes(bad.read_bytes()[:-50])

    done = shown(capsys, "archive", "age", "--now", MONTH, "--yes", code=4)

    assert "talk-1" in done.err
    assert "2 conversations aged" in done.out
    assert shown(capsys, "archive", "list", "--verify", code=1).out.startswith("error: ")


def test_ctrl_c_keeps_what_is_done_and_the_next_run_does_the_rest(here, capsys, tmp_path, monkeypatch):
    several = [old_talk() | {"id": f"talk-{nth}"} for nth in range(3)]
    (tmp_path / "several.json").write_text(json.dumps(several), encoding="utf-8")
    shown(capsys, "archive", "add", "several.json")

    @contextmanager
    def pressed(ask, words):
        def report(percent, step):
            raise KeyboardInterrupt

        yield report

    with monkeypatch.context() as patch:
        patch.setattr(commands, "bar", pressed)
        said = shown(capsys, "archive", "age", "--now", MONTH, "--yes", code=130).err
        assert "Interrupted." in said
    assert sorted(level(capsys).values()) == ["full", "full", "key_points"]
    assert shown(capsys, "doctor").out == "Nothing is wrong.\n"

    shown(capsys, "archive", "age", "--now", MONTH, "--yes")
    assert set(level(capsys).values()) == {"key_points"}


def test_unknown_ids_times_and_values_say_what_to_do(archived, capsys):
    for words in (["show", "x"], ["restore", "x"], ["explain", "x"], ["mark", "x"], ["unmark", "x"]):
        assert "aether archive list" in shown(capsys, "archive", *words, code=3).err
    assert "is not a time" in shown(capsys, "archive", "age", "--now", "soon", code=2).err
    assert "2026-03" in shown(capsys, "archive", "list", "--month", "March", code=2).err
    assert (
        "is not KEY=NUMBER" in shown(capsys, "archive", "policy", "--set", "important_threshold", code=2).err
    )


def test_the_policy_is_changed_and_undone(here, capsys):
    before = data(capsys, "policy")

    changed = data(capsys, "policy", "--set", "important_threshold=0.8", "--set", "weights.time_span=0.2")

    assert (changed["important_threshold"], changed["weights"]["time_span"]) == (0.8, 0.2)
    assert changed["weights"].keys() == before["weights"].keys()
    assert data(capsys, "policy") == changed
    shown(capsys, "undo")
    assert data(capsys, "policy") == before
    assert "wrong" in shown(capsys, "archive", "policy", "--set", "wrong=1", code=2).err


def test_a_schedule_is_printed_and_nothing_is_installed(here, capsys, tmp_path):
    line = shown(capsys, "archive", "age", "--schedule", "--at", "12:15").out
    unit = data(capsys, "schedule", "--kind", "systemd")

    assert line.startswith("15 12 * * * ")
    assert f"archive age --yes --quiet --home {tmp_path}/.aether" in line
    assert not any(Path(path).exists() for path in unit["files"])
    assert unit["start"][-1].endswith(f"{unit['name']}.timer")


@pytest.fixture
def daily(archived, monkeypatch):
    """Age daily, by a clock that the test moves."""
    monkeypatch.setenv("AETHER_ARCHIVE_AUTO", "daily")
    now = [clock.parse(MONTH)]
    monkeypatch.setattr(clock, "now", lambda: now[0])
    return now


def test_the_first_command_of_a_day_ages_what_is_old_enough(daily, archived, capsys, monkeypatch):
    passes = []
    real = archive.age_archive
    monkeypatch.setattr(archive, "age_archive", lambda **given: passes.append(given) or real(**given))

    first, second = (shown(capsys, "memory", "show") for _ in range(2))
    daily[0] = clock.parse("2026-02-11T00:00:01Z")
    shown(capsys, "memory", "show")

    assert first.err.startswith("Note: 1 conversation aged")
    assert (first.out, second.err) == (second.out, "")
    assert len(passes) == 2
    assert all(given["seconds"] > 0 for given in passes)
    assert level(capsys) == {"old-talk": "key_points"}
    assert shown(capsys, "doctor").out == "Nothing is wrong.\n"


def test_commands_of_the_archive_hooks_and_failed_commands_age_nothing(daily, capsys):
    shown(capsys, "archive", "age", "--dry-run")
    shown(capsys, "doctor")
    shown(capsys, "hook", "SessionStart", "event.json")
    shown(capsys, "statusline")
    shown(capsys, "memory", "show", "unknown", code=3)

    assert level(capsys) == {"old-talk": "full"}


def test_a_daily_pass_that_fails_does_not_fail_the_command(daily, capsys, monkeypatch):
    def fail(**given):
        raise StorageFailed("the disk is full.", fix="Free some space.")

    monkeypatch.setattr(archive, "age_archive", fail)
    assert "the disk is full" in shown(capsys, "memory", "show").err
    assert shown(capsys, "memory", "show").err == ""  # again on the next day

    def interrupt(**given):
        raise KeyboardInterrupt

    daily[0] = clock.parse("2026-02-12T00:00:01Z")
    monkeypatch.setattr(archive, "age_archive", interrupt)
    assert "Note: " in shown(capsys, "memory", "show").err


def test_nothing_ages_by_itself_unless_it_is_asked_for(archived, capsys, monkeypatch):
    monkeypatch.setattr(commands, "age_daily", lambda home: pytest.fail("it aged"))

    assert main(["memory", "show", "--quiet"]) == 0

"""Goals over the store: journaled, undoable, exported, without secrets, and one active with many writers."""

from __future__ import annotations

import json

import pytest

from aether.api import goals
from aether.api.admin import create_snapshot, examine, export, log, restore_snapshot, show, undo
from aether.api.briefing import brief, session_brief
from aether.api.home import read
from aether.api.overview import overview
from aether.errors import Conflict
from aether.store.commit import fold_home
from tests import children, homes

EACH = 5


def test_a_home_without_goals_has_no_file_for_them(home):
    assert goals.goals(home=home) == []
    assert (goals.current_goal(home=home), goals.prompt_text(home=home)) == (None, "")
    assert not (home / "data" / "goals.json").exists()


def test_a_goal_is_there_after_a_fold_and_in_the_export(home):
    made = goals.add_goal("Ship it\n exactly so", steps=["Write it"], priority="high", home=home)
    fold_home(home, now=homes.NOW)
    homes.reopened(home)

    assert goals.goal(home=home)["description"] == "Ship it\n exactly so"
    assert show("goals", home=home)["current"] == made["id"]
    assert export(home=home)["documents"]["goals"]["goals"][0]["id"] == made["id"]
    assert examine(home=home) == []


def test_every_change_is_undone_and_one_that_a_later_one_needs_is_not(home):
    first = goals.add_goal("First", home=home)
    goals.add_goal("Second", home=home)
    second = log(home=home)[0].revision
    goals.add_goal("Third", home=home)
    third = log(home=home)[0].revision

    with pytest.raises(Conflict):
        undo(second, home=home)
    undo(third, home=home)
    undo(second, home=home)

    assert [(goal["id"], goal["status"]) for goal in goals.goals(home=home)] == [(first["id"], "active")]


def test_a_snapshot_brings_the_goal_back(home):
    goals.add_goal("Ship it", steps=["Write it"], home=home)
    saved = create_snapshot("before", home=home)
    before = goals.prompt_text(home=home)
    goals.set_step("Write it", "completed", home=home)
    goals.finish_goal(home=home)

    restore_snapshot(saved["snapshot_id"], home=home)

    assert goals.prompt_text(home=home) == before


def test_a_hand_edit_that_breaks_the_schema_is_not_in_force(home):
    goals.add_goal("Ship it", home=home)
    fold_home(home, now=homes.NOW)
    path = home / "data" / "goals.json"
    held = json.loads(path.read_text())
    held["current"] = ["a", "b"]
    path.write_text(json.dumps(held))

    assert goals.goal(home=home)["status"] == "active"
    assert any("goals.json is not in force" in words for words in overview(home=home)["problems"])


def test_secrets_and_private_blocks_are_not_stored(home):
    goals.add_goal("Use sk-ant-api03-" + "a" * 95 + " <private>my name</private> to ship it", home=home)
    goals.apply_markers("[NEXT] Call it with sk-ant-api03-" + "b" * 95, home=home)

    text = json.dumps(read(home).documents["goals"])
    assert "aaaaaaaa" not in text
    assert "bbbbbbbb" not in text
    assert "my name" not in text


def test_the_text_of_a_model_is_applied_once_and_by_the_model(home):
    goals.add_goal("Ship it", home=home)
    text = "Done so far:\n- [checkpoint] write it – in progress\n[DECISION] Use a table - LOCKED"

    assert goals.apply_markers(text, home=home).total == 2
    lines = len(log(home=home))
    assert goals.apply_markers(text, home=home).total == 2

    assert len(log(home=home)) == lines
    assert log(home=home)[0].by == "model"
    assert goals.goal(home=home)["next"] == ["write it"]


def test_a_text_without_markers_needs_no_home(tmp_path):
    assert goals.apply_markers("plain [words]", home=tmp_path / "nowhere").goal_id == ""


def test_the_briefing_says_the_active_goal_as_a_person_set_it(home):
    assert not any(line["text"].startswith("Active goal") for line in brief(home)["lines"])
    made = goals.add_goal("Ship the parser", steps=["Write it", "Test it"], home=home)
    goals.set_step("Write it", "completed", home=home)
    goals.block_goal("No key", home=home)

    (line,) = (line for line in brief(home)["lines"] if line["text"].startswith("Active goal"))
    assert (line["text"], line["note"]) == ("Active goal: Ship the parser", "1 of 2 steps completed")
    assert ("open", "blocked: No key") in [(line["kind"], line["text"]) for line in brief(home)["lines"]]
    assert (line["ids"], line["evidence"]) == ([made["id"]], "person")
    assert line["text"] in session_brief(home, "startup")
    goals.finish_goal(abandoned=True, home=home)
    assert "Ship the parser" not in session_brief(home, "startup")


def test_status_says_the_active_goal(home):
    assert overview(home=home)["goal"] is None
    made = goals.add_goal("Ship the parser", home=home)

    assert overview(home=home)["goal"] == {
        "id": made["id"], "description": "Ship the parser", "status": "active", "progress": 0, "evidence": "person",
    }  # fmt: skip


def test_processes_that_add_goals_and_steps_lose_none_and_leave_one_active(home):
    shared = goals.add_goal("Shared", home=home)["id"]

    def write(name):
        goals.set_step(f"step {name}", goal=shared, home=home)
        goals.add_goal(f"goal {name}", home=home)

    names = children.acknowledged(home, EACH, write)

    found = goals.goals(home=home)
    assert sum(goal["status"] == "active" for goal in found) == 1
    assert {goal["description"] for goal in found} >= {f"goal {name}" for name in names}
    steps = {step["description"] for step in goals.goal(shared, home=home)["subtasks"]}
    assert steps >= {f"step {name}" for name in names}
    assert len(names) == EACH * children.WRITERS

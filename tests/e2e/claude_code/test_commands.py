"""The plugin's slash commands: what is handed over stays data, and what is remembered is remembered once."""

from __future__ import annotations

import pytest

from tests.e2e.claude_code import driver
from tests.e2e.claude_code.reading import colony, complaints, items
from tests.e2e.claude_code.server import call, calls, plot, say
from tests.e2e.claude_code.test_installing import PLUGIN

pytestmark = pytest.mark.slow

RULE = "Never sail in fog."


def test_what_is_remembered_by_command_is_remembered_once(stage):
    add = calls(call("Bash", command=f"aether add '{RULE}' --type constraint --relevance 0.9"))
    at = stage(plot({"wants this remembered": [add, say("It is stored.")]}, summary=say("Nothing.")))
    project = driver.project(at)
    session = driver.ask(at, project, f"/aether:remember {RULE}", "--plugin-dir", str(PLUGIN))

    assert complaints(session) == []
    assert session.result == "It is stored."
    found = [item for item in items(colony(at, project)) if "sail in fog" in item["content"]]
    assert [(item["content"], item["type"]) for item in found] == [(RULE, "constraint")]


def test_a_command_s_own_words_are_no_memory(stage):
    at = stage(plot({}, summary=say("Nothing.")))
    project = driver.project(at)
    driver.ask(at, project, "/aether:recall the harbour dues", "--plugin-dir", str(PLUGIN))

    assert "harbour dues" in at.api.requests[0].text
    assert not [item for item in items(colony(at, project)) if "single-quoted" in item["content"]]


@pytest.mark.parametrize("name", sorted(path.stem for path in (PLUGIN / "commands").glob("*.md")))
def test_nothing_in_what_is_handed_over_is_run(stage, name):
    at = stage(plot({}, summary=say("Nothing.")))
    project = driver.project(at)
    marks = [at.root / f"mark{number}" for number in range(4)]
    hostile = "it's !`touch {}` and `touch {}` \"$(touch {})\" '; touch {} #".format(*marks)
    session = driver.ask(at, project, f"/aether:{name} {hostile}", "--plugin-dir", str(PLUGIN))

    assert complaints(session) == []
    assert [mark for mark in marks if mark.exists()] == []
    assert f"$(touch {marks[2]})" in at.api.requests[0].text

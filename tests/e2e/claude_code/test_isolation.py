"""Whose memory is told: a project's own, wherever in it a session is started, and nobody else's."""

from __future__ import annotations

import pytest

from tests.e2e.claude_code import driver
from tests.e2e.claude_code.reading import briefed, complaints, holding, memory
from tests.e2e.claude_code.server import plot, say

pytestmark = pytest.mark.slow

CONSTRAINT = "Never store the coordinates of the lighthouse."
TALK = plot(
    {"the map": [say("I decided to draw the map in ink, because ink stays.")]}, summary=say("Nothing.")
)


@pytest.fixture
def at(stage):
    """A stage on which aether is installed for every project of the person."""
    made = stage(TALK)
    driver.run(made, made.root, ["aether", "claude", "install", "--user"])
    return made


def first(at, where, prompt):
    before = len(at.api.requests)
    assert complaints(driver.ask(at, where, prompt)) == []
    return at.api.requests[before]


def test_one_project_never_hears_of_another(at):
    one, other = driver.project(at, "one"), driver.project(at, "other")
    first(at, one, f"Draw the map. {CONSTRAINT}")

    request = first(at, other, "Draw the map of the lighthouse")

    assert briefed(request) == []
    assert "coordinates" not in request.text
    assert holding(other, "coordinates") == []
    assert holding(one / ".aether", 'of the lighthouse"') == []


def test_a_worktree_shares_the_memory_of_its_project(at):
    one = driver.project(at, "one")
    tree = at.root / "tree"
    driver.run(at, one, ["git", "worktree", "add", "-q", str(tree), "-b", "side"])
    first(at, tree, f"Draw the map. {CONSTRAINT}")

    request = first(at, one, "Hello")

    assert "coordinates of the lighthouse" in memory(request)
    assert not (tree / ".aether").exists()


def test_a_directory_below_shares_the_memory_of_its_project(at):
    one = driver.project(at, "one")
    (one / "deep" / "below").mkdir(parents=True)
    first(at, one, f"Draw the map. {CONSTRAINT}")

    assert "coordinates of the lighthouse" in memory(first(at, one / "deep" / "below", "Hello"))
    assert not (one / "deep" / "below" / ".aether").exists()


def test_the_person_s_own_home_directory_is_no_project(at):
    first(at, at.home, f"Draw the map. {CONSTRAINT}")

    assert not (at.home / ".aether").exists()
    assert briefed(first(at, at.home, "Hello")) == []

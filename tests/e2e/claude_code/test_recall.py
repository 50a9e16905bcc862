"""What a prompt calls to mind: the matching memory, once, and nothing for other prompts."""

from __future__ import annotations

import pytest

from tests.e2e.claude_code import driver
from tests.e2e.claude_code.reading import briefed, briefed_twice, complaints, memory
from tests.e2e.claude_code.server import plot, say

pytestmark = pytest.mark.slow

DECISION = "I decided to sign the parcel manifests with Ed25519, because the scanners verify nothing else."
OTHERS = [
    "I decided to number the pallets by dock, because the forklift drivers read them from there.",
    "I decided to print the labels in A6, because the thermal printers take no other paper.",
]
QUESTION = "How are the parcel manifests signed, with Ed25519 or otherwise, and do the scanners verify them?"


@pytest.fixture
def project(stage):
    """A project that remembers three decisions, and tells none of them at the start of a session."""
    scenes = {
        "Which signature": [say(DECISION)],
        "Which number": [say(OTHERS[0])],
        "Which paper": [say(OTHERS[1])],
    }
    at = stage(plot(scenes, summary=say("<summary>The manifests are signed.</summary>")))
    made = driver.project(at)
    driver.run(at, made, ["aether", "claude", "install", "--project"])
    (made / ".aether" / "config.toml").write_text("[claude]\ninject = false\n")
    driver.talk(at, made, ["Which signature?", "Which number?", "Which paper?"])
    return at, made


def test_a_prompt_calls_to_mind_what_it_asks_for_once(project):
    at, made = project
    before = len(at.api.requests)
    steps = driver.talk(at, made, ["Hello", QUESTION, QUESTION])
    hello, first, again = at.api.requests[before:]

    assert [complaint for step in steps for complaint in complaints(step)] == []
    assert briefed(hello) == []
    assert [occasion for occasion, _ in briefed(first)] == ["prompt"]
    assert "Ed25519" in memory(first)
    assert "pallets" not in memory(first)
    assert briefed_twice(again) == []


def test_what_the_session_got_at_its_start_is_not_called_to_mind_again(project):
    at, made = project
    (made / ".aether" / "config.toml").unlink()
    before = len(at.api.requests)
    driver.talk(at, made, ["Hello", "Why did we decide to print the labels in A6?"])

    assert [occasion for occasion, _ in briefed(at.api.requests[before + 1])] == ["startup"]
    assert "A6" in memory(at.api.requests[before + 1])

"""Compaction by the host itself, and a summariser that fails: what the model is sent next, and what is remembered."""

from __future__ import annotations

import pytest

from tests.e2e.claude_code import driver
from tests.e2e.claude_code.reading import briefed, briefed_twice, colony, complaints, items, memory
from tests.e2e.claude_code.server import Reply, call, calls, plot, say

pytestmark = pytest.mark.slow

CONSTRAINT = "Never paint the hull red."
WINDOW = {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000"}
FULL = 99_000
SUMMARY = (
    "<summary>The hull of the ship was measured: it is forty-one metres long and needs three coats.</summary>"
)


def scenes(full):
    measure = calls(call("Bash", command="echo measure", description="Measure"), context=full)
    return {
        "Build the ship": [say("I decided to use oak for the keel, because pine rots.")],
        "Measure the hull": [measure, say("It is measured.")],
    }


def install(at):
    project = driver.project(at)
    driver.run(at, project, ["aether", "claude", "install", "--project"])
    return project


def sessions_of(colony):
    return colony["documents"]["memory"]["short_term_memory"]["sessions"]


def test_an_automatic_compaction_is_followed_by_the_memory_and_gets_nothing_before(stage):
    at = stage(plot(scenes(FULL), summary=say(SUMMARY)))
    project = install(at)
    first = driver.ask(at, project, f"Build the ship. {CONSTRAINT}", **WINDOW)
    before = len(at.api.requests)
    second = driver.ask(at, project, "Measure the hull", "--resume", first.id, **WINDOW)
    requests = at.api.requests[before:]

    assert complaints(first) + complaints(second) == []
    assert [event["compact_metadata"]["trigger"] for event in second.system("compact_boundary")] == ["auto"]
    kinds = [request.kind for request in requests]
    assert kinds.count("summary") == 1
    summary, after = requests[kinds.index("summary")], requests[kinds.index("summary") + 1]
    assert "Keep this in the summary" not in summary.text
    assert [occasion for occasion, _ in briefed(after)].count("compact") == 1
    assert "Never paint the hull red" in memory(after)
    assert "oak for the keel" in memory(after)
    assert briefed_twice(after) == []
    assert any("forty-one metres" in str(session) for session in sessions_of(colony(at, project)))


def test_two_compactions_of_one_session_are_two_sessions_at_most(stage):
    at = stage(plot(scenes(1_000), summary=say(SUMMARY)))
    project = install(at)
    session = driver.ask(at, project, f"Build the ship. {CONSTRAINT}")
    for prompt in ("/compact", "Measure the hull", "/compact"):
        assert complaints(driver.ask(at, project, prompt, "--resume", session.id)) == []
    before = len(at.api.requests)
    driver.ask(at, project, "Go on.", "--resume", session.id)

    kept = colony(at, project)
    assert 1 <= len(sessions_of(kept)) <= 2
    assert len({item["content"] for item in items(kept)}) == len(items(kept))
    request = at.api.requests[before]
    assert [occasion for occasion, _ in briefed(request)].count("compact") <= 1
    assert "Never paint the hull red" in memory(request)
    assert briefed_twice(request) == []


@pytest.mark.parametrize(
    "summary",
    [
        say("API Error: 529 overloaded_error. Please try again later."),
        say("I'm sorry, but I can't help with that."),
        say("<summary></summary>"),
        Reply([], error=500),
    ],
    ids=["error text", "refusal", "empty", "failure"],
)
def test_a_summary_that_is_none_is_not_remembered(stage, summary):
    at = stage(plot(scenes(1_000), summary=summary))
    project = install(at)
    session = driver.ask(at, project, f"Build the ship. {CONSTRAINT}")
    driver.ask(at, project, "/compact", "--resume", session.id, CLAUDE_CODE_MAX_RETRIES="0")
    before = len(at.api.requests)
    last = driver.ask(at, project, "Go on.", "--resume", session.id)

    assert complaints(last) == []
    kept = str(colony(at, project)["documents"]["memory"]["short_term_memory"]) + str(
        items(colony(at, project))
    )
    assert "overloaded_error" not in kept
    assert "I'm sorry" not in kept
    assert "Never paint the hull red" in at.api.requests[before].text


def test_a_cleared_session_starts_with_the_memory(stage):
    at = stage(plot(scenes(1_000), summary=say(SUMMARY)))
    project = install(at)
    first, *_, last = driver.talk(at, project, [f"Build the ship. {CONSTRAINT}", "/clear", "Go on."])

    assert complaints(first) + complaints(last) == []
    assert first.id != last.id
    assert [occasion for occasion, _ in briefed(at.api.requests[-1])] == ["clear"]
    assert "Never paint the hull red" in memory(at.api.requests[-1])


def test_a_session_that_compacts_and_goes_on_holds_the_memory_once(stage):
    at = stage(plot(scenes(1_000), summary=say(SUMMARY)))
    project = install(at)
    prompts = [f"Build the ship. {CONSTRAINT}", "/compact", "Measure the hull", "/compact", "Go on."]
    steps = driver.talk(at, project, prompts)

    assert [complaint for step in steps for complaint in complaints(step)] == []
    for request in [request for request in at.api.requests if request.kind == "main"][1:]:
        assert [occasion for occasion, _ in briefed(request)].count("compact") == 1
        assert "Never paint the hull red" in memory(request)
        assert briefed_twice(request) == []


def test_a_forked_session_gets_nothing_twice(stage):
    at = stage(plot(scenes(1_000), summary=say(SUMMARY)))
    project = install(at)
    session = driver.ask(at, project, f"Build the ship. {CONSTRAINT}")
    forked = driver.ask(at, project, "Measure the hull", "--resume", session.id, "--fork-session")

    assert complaints(forked) == []
    assert forked.id != session.id
    assert briefed_twice(at.api.requests[-1]) == []
    texts = [item["content"] for item in items(colony(at, project))]
    assert len(texts) == len(set(texts))

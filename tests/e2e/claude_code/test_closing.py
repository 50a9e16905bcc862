"""Who judges a session, with the real Claude Code: the running agent through its tool, or `claude -p` after the end."""

from __future__ import annotations

import json
import time

import pytest

from tests.e2e.claude_code import driver
from tests.e2e.claude_code.reading import colony, complaints, memory
from tests.e2e.claude_code.server import call, calls, plot, say

pytest.importorskip("mcp", reason="no mcp package to serve with")
pytestmark = pytest.mark.slow

TOOL = "mcp__aether__close_session"
RULE = "Never round the totals, in no report and in no export."
DONE = "The totals are kept in cents now; `count_totals --all` prints 40 of them."
ANSWER = {
    "state": [{"text": "Totals are kept in cents.", "quote": "totals are kept in cents now"}],
    "rules": [{"text": "Never round the totals.", "quote": "Never round the totals, in no report"}],
    "open": [{"text": "The export is broken.", "quote": "the export has been broken since Monday"}],
}
NOTHING = say("<summary>Nothing.</summary>")
# Seconds: a process of its own asks `claude -p`, which takes five at most.
PATIENCE = 60


def sessions(at, project):
    return colony(at, project)["documents"]["memory"]["short_term_memory"]["sessions"]


def waited_for(at, project):
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if found := sessions(at, project):
            return found
        time.sleep(0.5)
    raise AssertionError(driver.run(at, project, ["aether", "status"]))


def test_the_running_agent_closes_its_conversation_and_the_next_start_has_it(stage):
    at = stage(
        plot(
            {
                "Count the totals": [say(DONE)],
                "Record it": [
                    calls(call("ToolSearch", query=f"select:{TOOL}", max_results=3)),
                    calls(call(TOOL, **ANSWER)),
                    say("It is recorded."),
                ],
            },
            summary=NOTHING,
        )
    )
    project = driver.project(at)
    driver.run(at, project, ["aether", "claude", "install", "--project"])
    first = driver.ask(at, project, f"Count the totals. {RULE}", servers=True)
    second = driver.ask(at, project, "Record it, please", "--continue", servers=True)

    assert complaints(first) + complaints(second) == []
    assert second.result == "It is recorded."
    [stored] = sessions(at, project)
    assert [rule["evidence"] for rule in stored["rules"]] == ["person"]
    assert not stored.get("open")
    assert "Not stored, for want of proof" in at.api.requests[-1].text
    count = len(at.api.requests)
    driver.ask(at, project, "What do you know?")
    lines = memory(at.api.requests[count])
    assert "Totals are kept in cents." in lines
    assert "Never round the totals" in lines
    assert "export is broken" not in lines


@pytest.mark.parametrize("scope", ["--local", "--user"])
def test_the_server_of_one_person_is_found_by_claude_code(stage, scope):
    at = stage(plot({}, summary=NOTHING))
    project = driver.project(at)
    driver.run(at, project, ["aether", "claude", "install", scope])

    session = driver.ask(at, project, "Hello", servers=True)

    (opening,) = session.system("init")
    assert [server["name"] for server in opening["mcp_servers"]] == ["aether"]
    driver.run(at, project, ["aether", "claude", "uninstall", scope])
    (opening,) = driver.ask(at, project, "Hello", servers=True).system("init")
    assert opening["mcp_servers"] == []


def test_after_a_commit_the_agent_is_asked_once(stage):
    commit = "git commit --allow-empty -m 'Keep the totals in cents'"
    at = stage(
        plot(
            {"Count the totals": [calls(call("Bash", command=commit, description="Commit")), say(DONE)]},
            summary=NOTHING,
        )
    )
    project = driver.project(at)
    driver.run(at, project, ["aether", "claude", "install", "--project"])

    driver.talk(at, project, [f"Count the totals. {RULE}", "Go on with it", "And once more"])

    asked = [request.text.count("aether: after a commit") for request in at.api.of("main")]
    assert asked[0] == 0
    assert asked[-1] == 1


def test_claude_p_writes_the_session_after_the_end_and_its_own_becomes_none(stage):
    work = " ".join(f"Report {number} of the totals has {number * 7} lines." for number in range(120))

    def script(request):
        if request.kind == "architect":
            return say(json.dumps(ANSWER))
        return say(f"{DONE} {work}" if "Count" in request.prompt else "Little.")

    at = stage(script)
    project = driver.project(at)
    (at.programs / "claude").symlink_to(driver.claude())
    driver.run(at, project, ["aether", "claude", "install", "--project", "--architect", "claude-code"])

    session = driver.ask(at, project, f"Count the totals. {RULE}")

    assert complaints(session) == []
    [stored] = waited_for(at, project)
    assert stored["metadata"]["architect"]["backend"] == "claude-code"
    assert stored["metadata"]["architect"]["session"] == session.id
    assert [rule["text"] for rule in stored["rules"]] == ["Never round the totals."]
    (request,) = at.api.of("architect")
    assert request.tools == set()
    heard = [path.stem for path in (project / ".aether" / "hooks" / "sessions").glob("*.json")]
    assert heard == [session.id]
    assert "tokens today" in driver.run(at, project, ["aether", "status"])
    driver.ask(at, project, "What do you know?")
    time.sleep(2)
    assert len(at.api.of("architect")) == 1


@pytest.mark.parametrize(
    "answer", ["I cannot do that.", '{"state": [{"text": "It flies.", "quote": "it has wings"}]}']
)
def test_a_claude_p_that_refuses_or_lies_changes_nothing_and_is_said_in_the_status(stage, answer):
    work = " ".join(f"Report {number} of the totals has {number * 7} lines." for number in range(120))
    at = stage(lambda request: say(answer if request.kind == "architect" else f"{DONE} {work}"))
    project = driver.project(at)
    (at.programs / "claude").symlink_to(driver.claude())
    driver.run(at, project, ["aether", "claude", "install", "--project", "--architect", "claude-code"])
    driver.ask(at, project, f"Count the totals. {RULE}")

    until = time.monotonic() + PATIENCE
    while "Architect failed" not in (shown := driver.run(at, project, ["aether", "status"])):
        assert time.monotonic() < until, shown
        time.sleep(0.5)
    assert sessions(at, project) == []
    count = len(at.api.requests)
    driver.ask(at, project, "What do you know?")
    main = [request for request in at.api.requests[count:] if request.kind == "main"]
    assert "architect" not in memory(main[0]).lower()

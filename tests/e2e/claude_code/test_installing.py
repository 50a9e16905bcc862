"""Ways to install: each gives the same session, both together give it once, and taking out leaves what was before."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.claude_code import driver
from tests.e2e.claude_code.reading import briefed, briefed_twice, colony, complaints, items, memory
from tests.e2e.claude_code.server import call, calls, plot, say

pytestmark = pytest.mark.slow

PLUGIN = Path(driver.SOURCE) / "aether" / "hosts" / "claude_code" / "plugin"
CONSTRAINT = "Never round the totals."
TALK = plot(
    {
        "Count the totals": [
            calls(call("Bash", command="count_totals --all", description="Count")),
            say("I decided to keep the totals in cents, because cents are whole."),
        ]
    },
    summary=say("<summary>The totals are kept in cents.</summary>"),
)


def two_sessions(stage, project, *options):
    """Play a session that says something and a second that should know it; give the second's first request."""
    first = driver.ask(stage, project, f"Count the totals. {CONSTRAINT}", *options)
    before = len(stage.api.requests)
    second = driver.ask(stage, project, "What do you know?", *options)
    assert complaints(first) + complaints(second) == []
    return stage.api.requests[before]


def assert_known_once(stage, project, request):
    assert [occasion for occasion, _ in briefed(request)].count("startup") == 1
    assert "Never round the totals" in memory(request)
    assert briefed_twice(request) == []
    texts = Counter(item["content"] for item in items(colony(stage, project)))
    assert [text for text, times in texts.items() if times > 1] == []
    assert sum("count_totals" in text for text in texts) == 1


def test_the_plugin_is_valid_by_the_word_of_claude_code(stage):
    at = stage(TALK)

    assert (
        "passed"
        in driver.run(at, at.root, [driver.claude(), "plugin", "validate", str(PLUGIN), "--strict"]).lower()
    )


def test_a_plugin_directory_is_enough(stage):
    at = stage(TALK)
    project = driver.project(at)

    assert_known_once(at, project, two_sessions(at, project, "--plugin-dir", str(PLUGIN)))


def test_the_plugin_installs_from_its_marketplace(stage):
    at = stage(TALK)
    project = driver.project(at)
    driver.run(at, project, [driver.claude(), "plugin", "marketplace", "add", str(PLUGIN)])
    driver.run(at, project, [driver.claude(), "plugin", "install", "aether@aether"])

    assert_known_once(at, project, two_sessions(at, project))


def test_settings_of_the_person_serve_every_project(stage):
    at = stage(TALK)
    project = driver.project(at)
    driver.run(at, project, ["aether", "claude", "install", "--user"])

    assert_known_once(at, project, two_sessions(at, project))


def test_plugin_and_settings_together_inject_and_remember_once(stage):
    at = stage(TALK)
    project = driver.project(at)
    driver.run(at, project, ["aether", "claude", "install", "--project"])
    driver.run(at, project, ["aether", "claude", "install", "--user"])

    options = ("--plugin-dir", str(PLUGIN))
    assert_known_once(at, project, two_sessions(at, project, *options))
    compacted = driver.ask(at, project, "/compact", "--continue", *options)

    assert complaints(compacted) == []
    (request,) = [request for request in at.api.requests if request.kind == "summary"]
    assert "Keep this in the summary" not in request.text  # the brief after it says all of that


def test_what_the_plugin_brings_is_on_offer(stage):
    at = stage(TALK)
    project = driver.project(at)
    session = driver.ask(at, project, "Hello", "--plugin-dir", str(PLUGIN))
    (opening,) = session.system("init")

    names = {path.stem for path in (PLUGIN / "commands").glob("*.md")}
    assert names
    assert {f"aether:{name}" for name in names} <= set(opening["slash_commands"])
    assert "aether:architect" in opening["agents"]
    assert [plugin["name"] for plugin in opening["plugins"]].count("aether") == 1


def test_uninstalling_gives_back_what_was_there(stage):
    at = stage(TALK)
    project = driver.project(at)
    settings = project / ".claude" / "settings.json"
    settings.parent.mkdir()
    marker = project / "mine.txt"
    own = {"type": "command", "command": f"touch {marker}"}
    settings.write_text(
        json.dumps({"hooks": {"SessionStart": [{"hooks": [own]}]}, "cleanupPeriodDays": 90}, indent=4)
    )
    before = settings.read_bytes()

    driver.run(at, project, ["aether", "claude", "install", "--project"])
    session = driver.ask(at, project, f"Count the totals. {CONSTRAINT}")
    driver.run(at, project, ["aether", "claude", "uninstall", "--project"])
    count = len(at.api.requests)
    after = driver.ask(at, project, "What do you know?")

    assert complaints(session) + complaints(after) == []
    assert marker.exists()
    assert settings.read_bytes() == before
    assert briefed(at.api.requests[count]) == []


def test_the_status_says_that_all_is_well(stage):
    at = stage(TALK)
    project = driver.project(at)
    driver.run(at, project, ["aether", "claude", "install", "--project"])
    driver.ask(at, project, "Hello")

    json.loads(driver.run(at, project, ["aether", "--json", "claude", "status"]))

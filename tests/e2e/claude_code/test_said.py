"""What the model says between two calls is remembered, and known to an import of the same transcript."""

from __future__ import annotations

import pytest

from tests.e2e.claude_code import driver
from tests.e2e.claude_code.reading import colony, items
from tests.e2e.claude_code.server import call, calls, plot, say

pytestmark = pytest.mark.slow

CHOSE = "We chose SQLite over Postgres because there is only one writer here."
FOUND = "The build failed because the compiler in CI is too old for the project."
AGENT_CHOSE = "We decided to read all dates as ISO because every invoice has those."
SCRIPT = plot(
    {
        "build it": [
            calls(call("Bash", command="echo one", description="Try"), text=CHOSE),
            calls(call("Agent", description="Look", prompt="find the dates", run_in_background=False), text=FOUND),
            say("Decision: the service listens on port 8001 because 8000 is taken."),
        ],
        "find the dates": [
            calls(call("Bash", command="echo two", description="Look"), text=AGENT_CHOSE),
            say("Finding: the invoices of the north use ISO dates."),
        ],
    },
    summary=say("<summary>Nothing.</summary>"),
)  # fmt: skip


def test_what_was_said_on_the_way_is_remembered_once_and_an_import_adds_nothing(stage):
    at = stage(SCRIPT)
    project = driver.project(at)
    driver.run(at, project, ["aether", "claude", "install", "--project"])

    driver.ask(at, project, "Please build it.")

    noted = [item["content"] for item in items(colony(at, project))]
    assert [noted.count(text) for text in (CHOSE, FOUND, AGENT_CHOSE)] == [1, 1, 1]
    transcripts = [path for path in at.root.rglob("*.jsonl") if "projects" in path.parts]
    assert len(transcripts) == 2
    for transcript in transcripts:
        driver.run(at, project, ["aether", "import", str(transcript)])
    assert sorted(item["content"] for item in items(colony(at, project))) == sorted(noted)

"""The real Claude Code as the architect: it writes the session, and its own session becomes no memory."""

from __future__ import annotations

import json

import pytest

from tests.cli import stage as examples
from tests.e2e.claude_code import driver
from tests.e2e.claude_code.reading import colony
from tests.e2e.claude_code.server import say

pytestmark = pytest.mark.slow


def test_the_users_own_claude_code_writes_the_session(stage):
    session = {name: value for name, value in examples.session().items() if not name.endswith("id")}
    at = stage(lambda request: say(json.dumps(session)))
    project = driver.project(at)
    (at.programs / "claude").symlink_to(driver.claude())
    driver.run(at, project, ["aether", "claude", "install", "--user"])
    driver.run(at, project, ["aether", "init"])
    added = "Decided to use atomic writes for state, because a crash must not tear it."
    driver.run(at, project, ["aether", "add", added, "--type", "decision", "--phase", "1"])

    printed = driver.run(
        at, project, ["aether", "compress", "--phase", "1", "--architect", "claude-code", "--json"],
        CLAUDECODE="1", AETHER_HOME=str(project / ".aether"),
    )  # fmt: skip

    done = json.loads(printed)
    assert done["notes"] == []
    assert done["architect"] == "claude-code"
    architect = done["result"]["session"]["metadata"]["architect"]
    assert architect["model"]
    assert architect["output_tokens"] > 0
    (request,) = at.api.of("architect")
    assert added in request.text
    assert request.tools == set()
    memory = colony(at, project)["documents"]["memory"]
    assert memory["working_memory"]["items"] == []
    assert len(memory["short_term_memory"]["sessions"]) == 1
    assert not list((at.home / ".claude" / "projects").glob("*/*.jsonl"))

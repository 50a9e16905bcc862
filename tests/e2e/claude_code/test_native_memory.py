"""The memory that Claude Code itself keeps, in the home: each write is a change by its name, and uninstalling gives it back."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.e2e.claude_code import driver
from tests.e2e.claude_code.server import Reply, Request, call, calls, say

pytestmark = pytest.mark.slow

FIRST, SECOND = "Deploy with make ship.", "Deploy with make ship, never on Fridays."
DIRECTORY = re.compile(r"persistent file-based memory at `([^`]+)`")


def note(fact: str) -> str:
    return f"---\nname: deploy\ndescription: how to deploy\nmetadata:\n  type: project\n---\n\n{fact}\n"


def script(request: Request) -> Reply:
    if request.kind != "main" or request.step:
        return say("Done.")
    path = DIRECTORY.search(request.text)[1] + "deploy.md"
    if "first" in request.prompt:
        return calls(call("Write", file_path=path, content=note(FIRST)))
    if "by a command" in request.prompt:
        return calls(
            call(
                "Bash",
                command=f"printf 'Ask Grimaldi.\\n' > {Path(path).parent}/people.md",
                description="Note",
            )
        )
    if "better" in request.prompt:
        return calls(
            call("Read", file_path=path), call("Edit", file_path=path, old_string=FIRST, new_string=SECOND)
        )
    return say("Done.")


def test_each_write_of_claude_code_is_a_change_that_can_be_undone_and_is_given_back(stage):
    life = stage(script)
    project = driver.project(life)

    def aether(*words: str) -> str:
        return driver.run(life, project, ["aether", *words])

    driver.ask(life, project, "Remember this first.")
    own = Path(DIRECTORY.search(life.api.requests[0].text)[1])
    before = (own / "deploy.md").read_text()
    aether("claude", "install", "--project", "--architect", "extractive")
    installed = json.loads(aether("install", "claude-code", "--project", "--native-memory", "--json"))[
        "native_memory"
    ]
    assert (Path(installed["directory"]), installed["files"]) == (own, ["/memories/deploy.md"])
    memories = project / ".aether" / "memories"
    assert (memories / "deploy.md").read_text() == before
    assert FIRST in before

    seen = len(life.api.requests)
    driver.ask(life, project, "Remember it better.")
    driver.ask(life, project, "Remember it by a command.")

    assert Path(DIRECTORY.search(life.api.requests[seen].text)[1]) == memories
    assert SECOND in (memories / "deploy.md").read_text()
    changes = [line for line in json.loads(aether("log", "--all", "--json")) if line["by"] == "claude-code"]
    assert {line["operation"] for line in changes} == {"memory import", "memory write"}
    edit = next(line for line in changes if "PostToolUse" in line["reason"])
    assert "/memories/deploy.md" in edit["reason"]
    assert any("Stop" in line["reason"] and "/memories/people.md" in line["reason"] for line in changes)
    assert "memories/deploy.md" not in aether("memory", "show", "--json")

    aether("undo", str(edit["revision"]))
    assert FIRST in (memories / "deploy.md").read_text()
    (own / "elsewhere.md").write_text("Kept.\n")
    aether("uninstall", "claude-code")

    assert FIRST in (own / "deploy.md").read_text()
    assert (own / "people.md").read_text() == "Ask Grimaldi.\n"
    assert (own / "elsewhere.md").read_text() == "Kept.\n"
    assert not (project / ".claude" / "settings.local.json").exists()
    seen = len(life.api.requests)
    driver.ask(life, project, "And what is known?")
    assert Path(DIRECTORY.search(life.api.requests[seen].text)[1]) == own

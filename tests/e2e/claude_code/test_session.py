"""A life of two sessions with aether in the project's settings: what the model was sent, and what was remembered.

It is played once; each test reads another side of the recording.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.claude_code import driver
from tests.e2e.claude_code.driver import Session, Stage
from tests.e2e.claude_code.reading import briefed, briefed_twice, colony, complaints, holding, items, memory
from tests.e2e.claude_code.server import Reply, Request, call, calls, plot, say
from tests.redact.corpus import SHAPES

pytestmark = pytest.mark.slow

PROMPT_SECRET = SHAPES["anthropic"]
COMMAND_SECRET = SHAPES["github-classic"]
PRIVATE = "the customer is called Grimaldi"
CONSTRAINT = "Never use regular expressions in the parser."
DECISION = "write the tokenizer by hand"
FAILING = "parse_invoices --strict"
SUMMARY_FACT = "invoices of the northern branch nest brackets nine levels deep"
AGENT_FACT = "the invoices use ISO dates only"
SUMMARY = f"""<analysis>All was read.</analysis>
<summary>
1. Primary Request and Intent:
   Build the parser of the invoice files.
2. Key Technical Concepts:
   The {SUMMARY_FACT}.
3. Files and Code Sections:
   parser.py was written.
4. Pending Tasks:
   Parse the sample strictly.
</summary>"""


class Life(NamedTuple):
    """What was played: each step, the requests it made, and the memory that is left."""

    stage: Stage
    project: Path
    steps: dict[str, Session]
    requests: dict[str, list[Request]]
    colony: dict[str, Any]

    def first(self, step: str, kind: str = "main") -> Request:
        """The first request of a kind in a step."""
        return next(request for request in self.requests[step] if request.kind == kind)


def script(request: Request) -> Reply:
    build = [
        call("Bash", command=FAILING, description="Parse the sample"),
        call(
            "Write", file_path=f"{request.directory}/parser.py", content="def parse(text):\n    return text\n"
        ),
        call("Bash", command=f"TOKEN={COMMAND_SECRET} fetch_sample", description="Fetch the sample"),
    ]
    agent = call(
        "Agent",
        description="Find the date formats",
        prompt="Which date formats do the invoices use?",
        subagent_type="general-purpose",
    )
    scenes = {
        "Build the parser": [
            calls(*build),
            say(f"I decided to {DECISION}, because the invoices nest brackets."),
        ],
        "Let a helper look": [calls(agent), say("A helper is on its way.")],
        "Which date formats": [
            calls(call("Bash", command="echo 2026-01-31", description="Look")),
            say(f"Finding: {AGENT_FACT}."),
        ],
        # It says again what it was told, as models do.
        "Go on.": [say(f"I remember this:\n{request.text[request.text.find('<aether-memory') :]}")],
    }
    return plot(scenes, summary=say(SUMMARY))(request)


@pytest.fixture(scope="module")
def life(shared_stage) -> Life:
    stage = shared_stage(script)
    project = driver.project(stage)
    driver.run(stage, project, ["aether", "claude", "install", "--project"])
    steps: dict[str, Session] = {}
    requests: dict[str, list[Request]] = {}

    def play(step: str, prompt: str, *options: str) -> None:
        before = len(stage.api.requests)
        steps[step] = driver.ask(stage, project, prompt, *options, servers=True)
        requests[step] = stage.api.requests[before:]

    play(
        "build",
        f"Build the parser of the invoice files. {CONSTRAINT} The key is {PROMPT_SECRET}. "
        f"<private>For you only: {PRIVATE}.</private>",
    )
    session = steps["build"].id
    play("helper", "Let a helper look at the date formats.", "--resume", session)
    play("compact", "/compact", "--resume", session)
    play("go on", "Go on.", "--resume", session)
    play("new", "What is next?")
    play("newer", "And what is next now?")
    return Life(stage, project, steps, requests, colony(stage, project))


def test_nothing_goes_wrong_on_the_screen(life):
    assert [(step, complaints(session)) for step, session in life.steps.items() if complaints(session)] == []


def test_the_model_gets_nothing_while_there_is_nothing_to_remember(life):
    assert briefed(life.first("build")) == []


def test_a_resumed_session_gets_nothing_that_it_has_said_itself(life):
    assert briefed_twice(life.first("helper")) == []
    assert [occasion for occasion, _ in briefed(life.first("helper"))].count("resume") <= 1


def test_after_compaction_the_first_request_holds_the_memory_once(life):
    request = life.first("go on")

    assert [occasion for occasion, _ in briefed(request)].count("compact") == 1
    assert CONSTRAINT.rstrip(".") in memory(request)
    assert "parser.py" in memory(request)
    assert briefed_twice(request) == []


def test_a_new_session_starts_with_the_memory_once(life):
    request = life.first("new")

    assert [occasion for occasion, _ in briefed(request)].count("startup") == 1
    # The host's summary is found by a search.
    for known in (CONSTRAINT.rstrip("."), "parser.py"):
        assert known in memory(request)
    assert SUMMARY_FACT in driver.run(
        life.stage, life.project, ["aether", "recall", "northern branch brackets"]
    )
    assert briefed_twice(request) == []


def test_what_was_injected_is_not_remembered_again(life):
    texts = [item["content"] for item in items(life.colony)]

    assert not [text for text in texts if "aether-memory" in text or "Recorded memory" in text]
    assert (
        len(memory(life.first("newer")))
        <= len(memory(life.first("new"))) + len("And what is next now?") + 200
    )
    assert briefed_twice(life.first("newer")) == []


def test_each_thing_is_remembered_once(life):
    texts = Counter(
        (item["type"], item["metadata"].get("conversation"), item["content"]) for item in items(life.colony)
    )

    assert [text for text, times in texts.items() if times > 1] == []
    assert sum(AGENT_FACT in text for *_, text in texts) == 1
    assert sum(FAILING in text for *_, text in texts) == 1


def test_what_mattered_is_remembered(life):
    found = items(life.colony)

    assert [
        item["type"]
        for item in found
        if CONSTRAINT.rstrip(".") in item["content"] and item["type"] == "user_input"
    ]
    assert [item["type"] for item in found if DECISION in item["content"]] == ["outcome"]
    assert [item["metadata"]["source"] for item in found if AGENT_FACT in item["content"]] == ["worker_ant"]
    assert any("parser.py" in item["content"] for item in found if item["type"] == "code_change")


def test_messages_of_the_host_are_no_memory(life):
    texts = "\n".join(item["content"] for item in items(life.colony))

    for noise in (
        "task-notification",
        "Async agent launched",
        "SYSTEM NOTIFICATION",
        "hand-back",
        "<command-name>",
    ):
        assert noise not in texts


def test_the_summary_of_the_host_became_a_session(life):
    sessions = life.colony["documents"]["memory"]["short_term_memory"]["sessions"]

    assert [session for session in sessions if SUMMARY_FACT in str(session)]
    assert "<analysis>" not in str(sessions)


@pytest.mark.parametrize(
    "text", [PROMPT_SECRET, COMMAND_SECRET, "Grimaldi"], ids=["prompt", "command", "private"]
)
def test_secrets_and_private_words_are_nowhere_in_the_home(life, text):
    assert holding(life.project / ".aether", text) == []
    assert text not in "\n".join(memory(request) for request in life.stage.api.requests)


def test_nothing_waits_and_nothing_failed_in_the_hooks(life):
    home = life.project / ".aether"

    assert list((home / "hooks" / "spool").glob("*.json")) == []
    assert not (home / "hook.log").exists() or (home / "hook.log").read_text() == ""
    assert driver.run(life.stage, life.project, ["aether", "doctor"])


def test_the_home_is_not_for_git(life):
    assert ".aether" not in driver.run(
        life.stage, life.project, ["git", "status", "--short", "--untracked-files=all"]
    )

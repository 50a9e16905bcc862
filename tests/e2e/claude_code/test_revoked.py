"""A rule that the person takes back is given to no later session, before a compression and after it."""

from __future__ import annotations

import re

import pytest

from tests.e2e.claude_code import driver
from tests.e2e.claude_code.reading import briefed, complaints
from tests.e2e.claude_code.server import plot, say

pytestmark = pytest.mark.slow

RETRIES = "Never retry more than five times."
REVIEW = "Never push to main without a review."
ASKED = f"Add retries to the webhook. {RETRIES} {REVIEW}"
ADDED = "Added the retries to webhook.py, five at most."
TAKEN_BACK = "The rule about retries is gone, retry as often as you like."
REMOVED = "Removed the limit of the retries from webhook.py."
SCRIPT = plot(
    {"Add retries": [say(ADDED)], "The rule about": [say(REMOVED)], "What is": [say("The tests are next.")]},
    summary=say("<summary>Nothing.</summary>"),
)
REPORTED = "a report followed"
STATE, RULES = "State of the work, by the agent's last reports", "Constraints and preferences of this project"
DATE = re.compile(r"(?: \(\d{4}-\d\d-\d\d\))?:$|(?<=^- )\d{4}-\d\d-\d\d ")


def test_a_rule_that_was_taken_back_is_given_to_no_later_session(stage):
    at = stage(SCRIPT)
    project = driver.project(at)
    driver.run(at, project, ["aether", "claude", "install", "--project"])

    def played(prompt):
        session = driver.ask(at, project, prompt)
        assert complaints(session) == []

    def given():
        """Return the lines that a new session is given, without dates and the hint at their end."""
        played("What is next?")
        ((_, lines),) = briefed(next(one for one in reversed(at.api.requests) if one.kind == "main"))
        return [DATE.sub("", line) for line in lines[:-1]]

    played(ASKED)
    assert given() == [
        STATE, f"- {ADDED}", RULES, f"- {REVIEW}", f"- {RETRIES}", "Requests of the user", f"- {ASKED} ({REPORTED})",
    ]  # fmt: skip

    played(TAKEN_BACK)
    after = [
        STATE,
        f"- {REMOVED}",
        RULES,
        f"- {REVIEW}",
        "Requests of the user",
        f"- {TAKEN_BACK} ({REPORTED})",
    ]
    assert given() == after

    driver.run(at, project, ["aether", "memory", "compress", "--phase", "1"])
    assert given() == after

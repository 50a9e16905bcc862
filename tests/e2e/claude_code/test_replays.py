"""Whole replays: what each of several sessions of one project was sent of memory, line by line."""

from __future__ import annotations

import re

import pytest

from tests.e2e.claude_code import driver
from tests.e2e.claude_code.reading import briefed, complaints
from tests.e2e.claude_code.server import call, calls, plot, say

pytestmark = pytest.mark.slow

RULE = "Never retry more than five times."
RETRY, EXPORT, DOCUMENT = (
    f"Add retries to `send` in webhook.py. {RULE}",
    "Write the exporter of invoices in invoice.py, please.",
    "Document the retries in RETRIES.md now.",
)
REVOKE = "Forget the rule about five times."
RETRIES = "`send` in webhook.py now retries five times with a growing delay, because fast calls were dropped."
EXPORTER = "`export` in invoice.py now writes one CSV file per month; nothing checks its total."
DOCUMENTED = "RETRIES.md now says how often `send` retries, and that the delay grows."
SUMMARIES = {
    "webhook": """<summary>
1. Primary Request and Intent:
   Add retries to the webhook.

2. Pending Tasks:
   - Document the retries in RETRIES.md.

3. Current Work:
   `send` in webhook.py retries with a growing delay.

4. Optional Next Step:
   Write the part on retries in RETRIES.md.
</summary>""",
    "invoice": """<summary>
1. Primary Request and Intent:
   Write the exporter of invoices.

2. Current Work:
   `export` in invoice.py writes CSV files.
</summary>""",
}
NOTHING = "Nothing was committed in this conversation."
# What memory knows of each session.
REPORTED = "a report followed"


def script(request):
    """Answer in the directory of the session: the CLI writes absolute paths only."""
    if request.kind == "summary":
        return say(SUMMARIES["invoice" if EXPORT in request.text else "webhook"])
    at = request.directory
    scenes = {
        RETRY: [
            calls(write(f"{at}/webhook.py", "def send(event):\n    retry(event, times=5)\n")),
            calls(call("Bash", command="make test", description="Test")),
            say(RETRIES),
        ],
        EXPORT: [calls(write(f"{at}/invoice.py", "def export(rows):\n    return rows\n")), say(EXPORTER)],
        DOCUMENT: [calls(write(f"{at}/RETRIES.md", "# Retries\n")), say(DOCUMENTED)],
    }
    return plot(scenes, summary=say("none"))(request)


def write(name, text):
    return call("Write", file_path=name, content=text)


def given(requests, occasion):
    """Give the lines of the last block for `occasion` in the first request, without days."""
    lines = [lines for found, lines in briefed(requests[0]) if found == occasion][-1]
    undated = (re.sub(r"^- (?:\d{4}-\d\d-\d\d )?| \(\d{4}-\d\d-\d\d\)(?=:$)", "", line) for line in lines)
    return [line for line in undated if not line.startswith("Newest first")]


@pytest.fixture(scope="module")
def replay(shared_stage):
    """The requests of each part of two sessions of one project that go on beside each other, and of others between."""
    at = shared_stage(script)
    project = driver.project(at)
    (project / "Makefile").write_text("test:\n\t@echo 12 passed\n")
    driver.run(at, project, ["aether", "claude", "install", "--project"])
    sent = {}

    def ask(name, prompt, *options):
        before = len(at.api.requests)
        session = driver.ask(at, project, prompt, *options)
        assert complaints(session) == []
        sent[name] = at.api.requests[before:]
        return session.id

    webhook = ask("webhook", RETRY)
    invoice = ask("invoice", EXPORT)
    ask("webhook compacted", "/compact", "--resume", webhook)
    ask("between", "What is next?")
    ask("webhook again", DOCUMENT, "--resume", webhook)
    ask("invoice compacted", "/compact", "--resume", invoice)
    ask("invoice again", "Go on.", "--resume", invoice)
    return sent


def test_the_first_session_is_sent_nothing_and_the_second_the_words_of_the_first(replay):
    lines = "\n".join(given(replay["invoice"], "startup"))

    assert briefed(replay["webhook"][0]) == []
    for text in (RETRIES, RETRY, "webhook.py"):
        assert text in lines


def test_after_its_compaction_each_session_is_sent_its_own_work(replay):
    for name, own, other in (
        ("webhook", "webhook.py", "invoice.py"),
        ("invoice", "invoice.py", "webhook.py"),
    ):
        lines = given(replay[f"{name} again"], "compact")
        files = [line for line in lines if line.startswith(("Created", "Changed"))]

        assert any(own in line for line in files)
        assert not any(other in line for line in files)

"""Two sessions of one project at the same time, through the hooks: each is given its own work, whoever is compacted."""

from __future__ import annotations

import json

import pytest

from aether.api import briefing, working
from aether.hosts import hook
from tests import homes

WEBHOOK, INVOICE = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
SUMMARY = """<analysis>
1. Pending Tasks:
   - think
</analysis>
<summary>
1. Primary Request and Intent:
   Add retries to the webhook in src/webhook.py, never more than five times.

2. Pending Tasks:
   - Document the retries in docs/webhook.md.

3. Current Work:
   The webhook retries with a growing delay in src/webhook.py; tests/test_webhook.py passes.

4. Optional Next Step:
   Add the counter `webhook_dropped_total` in src/metrics.py.
</summary>"""


class Project:
    """A project in which hooks are called as their program calls them."""

    def __init__(self, directory):
        (directory / ".git").mkdir(parents=True)
        self.directory, self.home = directory, homes.fresh(directory)

    def hook(self, event, session, **more):
        payload = {"hook_event_name": event, "session_id": session, "cwd": str(self.directory), **more}
        code, out = hook.main([], json.dumps(payload).encode())
        assert code == 0
        return out

    def turn(self, session, prompt, file, command, last, *, failed=""):
        self.hook("UserPromptSubmit", session, prompt=prompt, prompt_id=f"p {prompt}")
        path = str(self.directory / file)
        self.hook(
            "PostToolUse", session, tool_name="Edit", tool_use_id=f"edit {file}",
            tool_input={"file_path": path, "old_string": "a", "new_string": "def send(event):"}, tool_response={"filePath": path},
        )  # fmt: skip
        ran = {"tool_name": "Bash", "tool_use_id": f"run {file}", "tool_input": {"command": command}}
        if failed:
            self.hook("PostToolUseFailure", session, error=failed, **ran)
        else:
            self.hook("PostToolUse", session, tool_response={"stdout": "12 passed", "stderr": ""}, **ran)
        self.hook("Stop", session, last_assistant_message=last)

    def compact(self, session):
        assert self.hook("PreCompact", session, trigger="auto") == ""
        self.hook("PostCompact", session, trigger="auto", compact_summary=SUMMARY)
        return self.hook("SessionStart", session, source="compact")

    def brief(self, occasion="startup", session=""):
        found = briefing.brief(self.home, occasion=occasion, session=session)["lines"]
        return {
            kind: [line["text"] for line in found if line["kind"] == kind]
            for kind in {line["kind"] for line in found}
        }


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Two sessions at work: the one on a webhook, the other on invoices."""
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    made = Project(tmp_path / "shop")
    made.turn(
        WEBHOOK, "Add retries to the webhook in src/webhook.py. Never retry more than five times.",
        "src/webhook.py", "pytest tests/test_webhook.py",
        "`send` in src/webhook.py now retries five times with a growing delay, because fast calls were dropped.",
    )  # fmt: skip
    made.turn(
        INVOICE, "Write the exporter of invoices in src/invoice.py, please.", "src/invoice.py",
        "pytest tests/test_invoice.py", "`export` in src/invoice.py now writes one CSV file a month; its total is still wrong.",
        failed="FAILED tests/test_invoice.py::test_total - AssertionError: 3 != 4\nExit code 1",
    )  # fmt: skip
    return made


def test_a_compaction_archives_the_items_of_its_own_session_only(project):
    before = {item["id"]: item for item in working.list_working_memory_items(home=project.home)}
    project.compact(WEBHOOK)

    left = {item["id"] for item in working.list_working_memory_items(home=project.home)}
    assert {before[one]["metadata"]["conversation"] for one in left & before.keys()} == {INVOICE}
    assert {before[one]["metadata"]["conversation"] for one in before.keys() - left} == {WEBHOOK}


def test_each_session_is_given_its_own_work_and_the_rules_of_the_project(project):
    for session, own, other in (
        (WEBHOOK, "src/webhook.py", "nvoice"),
        (INVOICE, "src/invoice.py", "src/webhook.py now"),
    ):
        given = project.compact(session)
        assert own in given
        assert other not in given
    lines = project.brief("compact", WEBHOOK)
    assert ["src/webhook.py" in text for text in lines["file"]] == [True]
    assert "src/webhook.py now retries" in lines["state"][0]


def test_a_session_of_which_nothing_is_known_is_given_no_work_of_another_after_a_compaction(project):
    lines = project.brief("compact", "33333333-3333-4333-8333-333333333333")

    assert lines == {}


def test_a_sub_agent_is_given_the_work_of_the_session_that_started_it(project):
    started = {"agent_id": "a1", "agent_type": "Explore"}
    webhook = project.hook("SubagentStart", WEBHOOK, **started)
    invoice = project.hook("SubagentStart", INVOICE, **started | {"agent_id": "a2"})
    third = project.hook(
        "SubagentStart", "33333333-3333-4333-8333-333333333333", **started | {"agent_id": "a3"}
    )

    assert "src/webhook.py" in webhook
    assert "nvoice" not in webhook
    assert "src/invoice.py" in invoice
    assert "src/webhook.py" not in invoice
    assert "Never retry more than five times." in webhook
    assert "src/" not in third


def test_the_list_of_tasks_is_next_at_a_start(tmp_path):
    shop = Project(tmp_path / "shop")
    session = WEBHOOK
    shop.hook(
        "UserPromptSubmit", session, prompt="Add retries to the webhook in src/webhook.py.", prompt_id="p1"
    )
    for number, subject in enumerate(["Add the delay", "Test the delay against staging"], start=1):
        shop.hook(
            "PostToolUse", session, tool_name="TaskCreate", tool_input={"subject": subject}, tool_use_id=f"t{number}",
            tool_response={"task": {"id": str(number), "subject": subject}},
        )  # fmt: skip
    shop.hook(
        "PostToolUse", session, tool_name="TaskUpdate", tool_input={"taskId": "1", "status": "completed"},
        tool_response={"success": True, "taskId": "1"}, tool_use_id="t3",
    )  # fmt: skip

    tasks = [{"content": "Write docs/webhook.md", "status": "in_progress", "activeForm": "Writing"}]
    shop.hook(
        "PostToolUse", session, tool_name="TodoWrite", tool_input={"todos": tasks}, tool_use_id="t4",
        tool_response={"oldTodos": [], "newTodos": tasks},
    )  # fmt: skip
    shop.hook("Stop", session, last_assistant_message="The delay is in src/webhook.py.")
    assert shop.brief()["next"] == ["Write docs/webhook.md"]

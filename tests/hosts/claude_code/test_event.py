"""Entries of the spool: small, without secrets, and enough for the notes that an import would make."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from aether.hosts import hook
from aether.hosts.claude_code.event import is_failure, response_text
from aether.hosts.hook import bounded
from aether.memory.capture import extract
from aether.messages.sources import claude_code
from aether.messages.sources.claude_code import has_source_id, hook_records, record_identity
from tests import hook_player
from tests.hook_player import entry_of
from tests.redact import corpus
from tests.tables import rows

SHARED = Path(__file__).parents[4] / "shared" / "data"
COMMON = {"session_id": "s", "transcript_path": "/home/a/.claude/projects/-p/s.jsonl", "cwd": "/p"}


def event(name, **more):
    return {**COMMON, "hook_event_name": name, **more}


def tool(name="Bash", given=None, response="ok", event_name="PostToolUse", **more):
    given = {"command": "make"} if given is None else given
    about = {"tool_name": name, "tool_input": given, "tool_response": response, "tool_use_id": "t1"}
    return event(event_name, **about | more)


def test_an_entry_holds_the_payload_under_its_own_names():
    found = entry_of(
        event(
            "Stop",
            prompt_id="p",
            last_assistant_message="Done.",
            stop_hook_active=True,
            agent_type="main",
            new=1,
        )
    )

    assert found == {
        "event": "Stop", "session": "s", "prompt_id": "p", "transcript": "s.jsonl", "message": "Done.", "stop_hook_active": True, "directory": "/p",
    }  # fmt: skip


@rows(
    ("payload", "kept"),
    [
        (event("SessionStart", source="resume"), {"source": "resume", "directory": "/p"}),
        (event("SessionEnd", reason="clear"), {"reason": "clear"}),
        (event("UserPromptSubmit", prompt="Go."), {"prompt": "Go.", "directory": "/p"}),
        (event("PreCompact", trigger="auto", custom_instructions=None), {"trigger": "auto", "directory": "/p"}),
        (event("PostCompact", trigger="manual", compact_summary="All."), {"trigger": "manual", "summary": "All."}),
        (event("SubagentStart", agent_id="a1", agent_type="scout"), {"agent": "a1", "caste": "scout"}),
        (
            event("SubagentStop", agent_id="a1", agent_type="scout", last_assistant_message="Found.", task_text="Look."),
            {"agent": "a1", "caste": "scout", "message": "Found.", "task_text": "Look."},
        ),
        (
            event("TaskCompleted", task_id="7", task_subject="Ship", task_description="it"),
            {"task": "7", "subject": "Ship", "description": "it"},
        ),
        (
            tool(response={"stdout": "12 passed", "stderr": ""}),
            {"tool": "Bash", "input": {"command": "make"}, "output": "12 passed", "id": "t1"},
        ),
        (
            event("PostToolUseFailure", tool_name="Bash", tool_input={"command": "make"}, error="Exit code 2\nboom"),
            {"tool": "Bash", "input": {"command": "make"}, "output": "Exit code 2\nboom", "failed": True},
        ),
        (tool("mcp__jira__create", {"a": 1}, {"isError": True, "content": "no"}), {"tool": "mcp__jira__create", "input": {"a": 1}, "output": "no", "id": "t1", "failed": True}),
    ],
)  # fmt: skip
def test_each_event_keeps_its_own(payload, kept):
    found = entry_of(payload)

    name = payload["hook_event_name"]
    assert found == {"event": name, "session": "s", "transcript": "s.jsonl", **kept}


@rows(
    "payload",
    [
        {}, event("PreToolUse", tool_name="Bash"), event("SomethingNew"), event("SubagentStop", agent_id="a", agent_type=""),
        tool("Read", {"file_path": "a"}), tool("TodoRead", {}), tool("Grep", {"pattern": "a"}),
        event("PostToolUse", tool_input={"command": "ls"}), event("PostToolUse", tool_name=["Bash"]),
    ],
)  # fmt: skip
def test_events_that_give_no_note_are_not_kept(payload):
    assert entry_of(payload) is None


def test_private_blocks_and_blocks_of_aether_are_left_out():
    text = "Use SQLite. <private>my salary</private> <aether-memory>told before</aether-memory> Ship it."
    found = json.dumps(
        [
            entry_of(event("UserPromptSubmit", prompt=text)),
            entry_of(event("Stop", last_assistant_message=text)),
            entry_of(tool(given={"command": f"echo '{text}'"}, response={"stdout": text})),
            entry_of(tool("Edit", {"file_path": "a", "edits": [{"new_string": text}]}, text)),
        ]
    )

    assert "Ship it" in found
    assert "salary" not in found
    assert "told before" not in found


def test_interim_texts_are_kept_without_private_parts_and_secrets():
    secret = f"ghp_{'a1B2' * 9}"
    said = [
        {"text": "<private>Mine.</private> ", "uuid": "u1"},
        {
            "text": f"We chose <private>my</private> {secret}.",
            "uuid": "u2",
            "at": "t",
            "id": "m",
            "part": 2,
            "new": 1,
        },
        {"text": "Use tabs.", "uuid": "u3", "by": "user"},
    ]

    kept = entry_of(event("Stop", last_assistant_message="Done.", said=said))["said"]

    assert kept[0].pop("text").startswith("We chose  ")
    assert kept == [
        {"uuid": "u2", "at": "t", "id": "m", "part": 2}, {"text": "Use tabs.", "uuid": "u3", "by": "user"},
    ]  # fmt: skip
    assert secret not in repr(entry_of(event("Stop", said=said)))
    assert "said" not in entry_of(event("Stop", said=said[:1]))


def test_of_many_interim_texts_the_last_are_kept():
    said = [{"text": f"{nth:04} {'word ' * 2_000}", "uuid": f"u{nth}"} for nth in range(100)]

    kept = entry_of(event("PreCompact", trigger="auto", said=said))["said"]

    assert 10 < len(kept) < 100
    assert [one["uuid"] for one in kept] == [f"u{nth}" for nth in range(100 - len(kept), 100)]
    assert all(len(one["text"]) < 6_000 for one in kept)


def test_nothing_is_kept_of_private_paths():
    assert entry_of(tool("Write", {"file_path": "/p/.env", "content": "x"}), private=".env") is None
    assert entry_of(tool(given={"command": "cat .env"}), private=".env") is None
    assert entry_of(tool("Write", {"file_path": "/p/a.py", "content": "x"}), private=".env")


# The whole corpus is for the redaction itself; here some of it shows that nothing goes past that.
cases = pytest.mark.parametrize(
    "chosen",
    [
        pytest.param(corpus.CASES[::8], id="some"),
        pytest.param(
            [case for nth, case in enumerate(corpus.CASES) if nth % 8],
            id="the others",
            marks=pytest.mark.slow,
        ),
    ],
)


@cases
def test_no_secret_is_in_an_entry(chosen):
    assert [case.name for case in chosen if is_in_an_entry(case)] == []


def is_in_an_entry(case):
    long = f"{'word ' * 4_000}{case.text}{' word' * 4_000}"
    entries = [
        entry_of(event("UserPromptSubmit", prompt=case.text)),
        entry_of(event("Stop", last_assistant_message=long)),
        entry_of(event("PostCompact", compact_summary=case.text)),
        entry_of(tool(response={"stdout": case.text, "stderr": long})),
        entry_of(tool("Write", {"file_path": "a", "content": case.text})),
        entry_of(
            tool("mcp__a__create", {"nested": [{"deep": case.text}]}, [{"type": "text", "text": case.text}])
        ),
    ]

    said = repr(entries)
    return any(secret in said or repr(secret)[1:-1] in said for secret in case.secrets)


@cases
def test_no_secret_is_torn_by_a_cut(chosen):
    assert [case.name for case in chosen if len(case.text) < 300 and is_torn(case)] == []


def is_torn(case):
    room = "word " * ((300 - len(case.text) // 2) // 5)
    rest = "and on " * 2_600

    found = bounded(f"{room}\n{case.text}\n{rest}\n{case.text}\n{room}", 300, 300)

    return any(secret in found for secret in case.secrets)


def test_a_long_text_keeps_its_start_and_end_and_names_the_cut():
    text = "".join(f"line {nth}\n" for nth in range(10_000))

    found = bounded(text, 4_200, 4_200)

    head, _, rest = found.partition("\n[… ")
    count, _, tail = rest.partition(" characters left out …]\n")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) == len(tail) == 4_200
    assert int(count) == len(text) - 8_400


def test_where_redaction_leaves_less_than_is_kept_the_torn_word_at_the_cut_goes():
    text = "-----BEGIN PRIVATE KEY-----\n" + ("A" * 64 + "\n") * 2_000

    found = bounded(text, 4_200, 4_200)

    assert "AAAA" not in found.partition("[…")[0]


def test_a_huge_output_costs_a_small_entry():
    huge = "x" * 60 + "\n"
    found = entry_of(tool(response={"stdout": huge * 200_000, "stderr": ""}))
    given = entry_of(
        tool("Write", {"file_path": "a", "content": huge * 200_000, "more": [huge * 9_000] * 500})
    )

    assert len(json.dumps(found)) < 10_000
    assert len(json.dumps(given)) < 2 * hook.ALL_INPUT_CHARS


def test_arguments_that_are_nested_without_end_are_cut():
    deep = value = {}
    for _ in range(300):
        value["a"] = [{}]
        value = value["a"][0]

    assert len(json.dumps(entry_of(tool(given=deep)))) < 400


@rows("value", [None, 7, [], "text", True])
@rows(
    "field",
    [
        "session_id",
        "prompt",
        "agent_id",
        "agent_type",
        "tool_input",
        "tool_response",
        "transcript_path",
        "error",
    ],
)
def test_a_field_of_another_type_does_no_harm(field, value):
    for name in ("UserPromptSubmit", "Stop", "SubagentStop"):
        json.dumps(entry_of(event(name) | {field: value}))
    json.dumps(entry_of(tool() | {field: value}))


def noted(entries):
    """What capture notes of entries, as taking in has it."""
    state, seen, found = extract.new_state(), set(), []
    for entry in entries:
        for record in hook_records(entry):
            if has_source_id(record) and record_identity(record) in seen:
                continue
            seen.add(record_identity(record))
            found += extract.observe(state, record)
        if entry["event"] == "Stop":
            found += extract.end_turn(state)
    noted_in_all = found + extract.finish(state)
    return Counter(
        (draft["type"], draft["content"]) for draft in noted_in_all if draft["type"] != "observation"
    )


@pytest.mark.slow
@pytest.mark.real_data
def test_hooks_note_the_same_as_an_import_of_the_transcript():
    """A hook that reads no transcript knows nothing of what is said between two calls."""
    files = sorted((SHARED / "claude_code").glob("*.jsonl"))
    if not files:
        pytest.skip("the transcripts are not here")
    imported, hooked = Counter(), Counter()
    for file in files:
        lines = list(hook_player._lines(file))
        imported += Counter(
            (draft["type"], draft["content"])
            for draft in extract.capture(claude_code.records(lines))
            if draft["type"] != "observation"  # what is said before an edit: only a transcript has it
        )
        hooked += noted(entry for payload in hook_player.payloads(file) if (entry := entry_of(payload)))

    both = imported & hooked
    assert both.total() > 0.98 * hooked.total()
    assert both.total() > 0.78 * imported.total()
    for kind in ("code_change", "user_input", "preference"):
        assert sum(count for (found, _), count in (imported - hooked).items() if found == kind) <= 5, kind


def test_the_names_that_the_host_gives_an_event_compile_no_pattern(monkeypatch):
    named = "1fe81785-dead-41c2-8cf9-06e30e1e4d66"
    monkeypatch.setattr(hook, "redact", lambda text: text and pytest.fail(text))

    entry = entry_of(event("SessionEnd", session_id=named, transcript_path=f"C:\\p\\{named}.jsonl"))

    assert entry == {"event": "SessionEnd", "session": named, "transcript": f"{named}.jsonl"}


@rows("field", ["session_id", "agent_id", "agent_type", "prompt_id", "transcript_path"])
def test_names_hold_no_secrets_either(field):
    secret = "ghp_" + "a1" * 18
    payload = {
        "hook_event_name": "SubagentStop", "session_id": "s", "agent_id": "a", "agent_type": "scout",
        "last_assistant_message": "Done.", field: f"named {secret}",
    }  # fmt: skip

    entry = entry_of(payload)

    assert entry is not None
    assert secret not in json.dumps(entry)


@rows(
    ("response", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        (7, ""),
        ({"stdout": "a", "stderr": "", "interrupted": False}, "a"),
        ({"stdout": "", "stderr": "b"}, "b"),
        ({"stdout": None, "stderr": ["b"]}, ""),
        ({"stdout": "", "stderr": "", "backgroundTaskId": "b1"}, "Command running in background with ID: b1"),
        ({"filePath": "a.py", "structuredPatch": []}, "The file a.py has been updated."),
        ({"content": [{"type": "text", "text": "found"}, {"type": "image"}, "more", 7], "status": "completed"}, "found\n[image]\nmore"),
        ([{"type": "text", "text": "made"}, {"type": "tool_reference"}], "made"),
        ({"content": "lines"}, "lines"),
        ({"result": "page", "code": 200}, "page"),
        ({"message": "Killed"}, "Killed"),
        ({"success": True}, '{"success": true}'),
        (
            {"questions": [], "answers": {"Which?": "SQLite", "When?": ["now", "later"]}},
            'Your questions have been answered: "Which?"="SQLite", "When?"="now,later". You can now continue with these answers in mind.',
        ),
        ({"answers": {}, "response": "none of these, use DuckDB"}, "The user responded: none of these, use DuckDB"),
        (
            {"answers": {"DB?": "Postgres"}, "annotations": {"DB?": {"notes": "never in production", "preview": "x"}, "Log?": {"notes": "ask Bo"}}},
            'Your questions have been answered: "DB?"="Postgres" notes: never in production, "Log?"="(no option selected)" notes: ask Bo. You can now continue with these answers in mind.',
        ),
        (
            {"answers": {"DB?": "Postgres"}, "followUp": True, "response": "and the log?"},
            'The user asked for more questions before you proceed. So far they answered: "DB?"="Postgres". They also wrote: "and the log?". Call AskUserQuestion again.',
        ),
        ({"answers": {"DB?": "Postgres"}, "afkTimeoutMs": 60_000}, "No response: the user may be away."),
        ({"answers": {}}, "The user did not answer the questions."),
    ],
)  # fmt: skip
def test_a_response_becomes_the_text_that_the_model_gets(response, text):
    assert response_text(response) == text


def test_a_response_nested_without_end_is_read_to_a_depth():
    deep = "x"
    for _ in range(100):
        deep = [deep]

    assert response_text(deep) == ""


@rows(
    ("response", "failed"),
    [
        ("Exit code 1\nboom", True),
        ("Exit code -9", True),
        ("Exit code 0", False),
        ("<tool_use_error>File has not been read yet.", True),
        ("Error: no such file", True),
        ("all good", False),
        ({"isError": True}, True),
        ({"is_error": False}, False),
        (None, False),
    ],
)
def test_a_response_that_reports_failure_is_a_failure(response, failed):
    assert is_failure(response) is failed

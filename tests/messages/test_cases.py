"""The reported inputs, where they are present: what a person said in them, and nothing else."""

import json
from pathlib import Path

import pytest

from aether.api import briefing
from aether.api.importing import import_transcripts
from aether.messages.read import read_records
from aether.messages.transcripts import load_conversation

CASES = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "cases"
pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not on this machine"),
]


def said(path, *kinds):
    return [one.text for one in read_records(CASES / path) if one.kind in (kinds or ("user",))]


def test_01_words_of_other_sessions_are_no_persons():
    assert said("01-peer-message-as-person/session.jsonl") == [
        "Add retries to the webhook. Never retry more than five times."
    ]


def test_03_what_codex_injects_is_no_persons_and_a_reply_is_an_answer():
    path = "03-codex-injected/rollout.jsonl"

    assert said(path) == [
        "Add retries to the webhook. Never retry more than five times.",
        "[Image #1] make the button green as in the screenshot",
    ]
    [answer] = [one for one in read_records(CASES / path) if one.kind == "answer"]
    assert answer.arguments["question"] == "Which database shall the queue use?"
    assert answer.text == "PostgreSQL, not SQLite"


def test_04_a_rewound_branch_is_neither_imported_nor_compacted():
    path = "04-rewound-branch/rewound.jsonl"
    sent = json.dumps([message.raw for message in load_conversation(CASES / path).messages])

    assert said(path)[1:] == ["Use PostgreSQL.", "Thanks. What is left?"]
    assert "PostgreSQL, because" in sent
    assert "TTL index" not in sent + "".join(said(path, "user", "assistant"))


def test_06_lines_of_gemini_cli_are_a_conversation():
    found = list(read_records(CASES / "06-gemini-cli-jsonl/session.jsonl"))

    assert [one.kind for one in found] == ["user", "call", "result", "assistant"]
    assert all(one.time for one in found)


def test_07_a_log_is_read_as_the_conversation_it_is():
    assert said("07-log-taken-for-items/transcript.jsonl") == ["Use PostgreSQL. Never use Redis."]


def test_23_files_beside_a_session_are_no_notes(home):
    found = import_transcripts([CASES / "23-import-dir-tool-results/ccdir"], home=home, dry_run=True)
    noted = " ".join(item["content"] for item in found.preview)

    assert (found.files, found.bad_lines) == (3, [])
    assert "Never mention the vendor." in noted
    assert "Redis" not in noted
    assert [item["type"] for item in found.preview if "tabs" in item["content"]] == ["observation"]


def test_26_the_task_of_cline_is_a_persons():
    found = list(read_records(CASES / "26-cline-history/api_conversation_history.json"))

    assert [one.text for one in found if one.kind == "user"] == [
        "Use PostgreSQL for the queue. Never use Redis."
    ]
    assert [one.kind for one in found] == ["user", "call", "result", "assistant"]
    assert all(one.time.startswith("2026-10-02") for one in found)


def test_33_the_speakers_of_markdown_histories_are_known():
    for name in ("specstory-like.md", "aider.md"):
        assert [" ".join(text.split()) for text in said(f"33-markdown-conversations/{name}")] == [
            "Use PostgreSQL for the queue. Never use Redis."
        ]
        assert "SKIP LOCKED" in "".join(said(f"33-markdown-conversations/{name}", "assistant"))


def test_22_items_have_their_calls(home):
    found = import_transcripts([CASES / "22-responses-items-import/items.json"], home=home, dry_run=True)

    assert [item["content"][:18] for item in found.preview if item["type"] == "solution"] == [
        "`pytest -q` failed"
    ]


def test_24_a_record_after_nul_bytes_is_read():
    assert "Added the metric webhook_retries; all 14 tests pass." in said(
        "24-nul-glued/nul.jsonl", "assistant"
    )


def test_30_a_clock_that_is_ahead_outranks_nothing(home):
    paths = [CASES / "30-future-clock" / name for name in ("future.jsonl", "now.jsonl")]
    import_transcripts(paths, home=home)

    lines = str(briefing.brief(home)["lines"])
    assert "Rust" in lines
    assert "ported to Java" not in lines


def test_31_a_dry_run_counts_as_the_import(home):
    path = CASES / "31-dry-run-count/h.json"
    tried = import_transcripts([path], home=home, dry_run=True)

    assert tried.items == import_transcripts([path], home=home).items

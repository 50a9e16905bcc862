"""Answers: the same text that the transcript has, from whatever structure a tool answers with."""

from __future__ import annotations

from aether.integrations.claude_code.reply import is_failure, response_text
from tests.tables import rows


@rows(
    ("response", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        (7, ""),
        ({"stdout": "a", "stderr": "", "interrupted": False}, "a"),
        ({"stdout": "", "stderr": "b"}, "b"),
        ({"stdout": None, "stderr": ["b"]}, ""),
        ({"filePath": "a.py", "structuredPatch": []}, "The file a.py has been updated."),
        ({"content": [{"type": "text", "text": "found"}, {"type": "image"}, "more", 7], "status": "completed"}, "found\n[image]\nmore"),
        ([{"type": "text", "text": "made"}, {"type": "tool_reference"}], "made"),
        ({"content": "lines"}, "lines"),
        ({"result": "page", "code": 200}, "page"),
        ({"message": "Killed"}, "Killed"),
        ({"success": True}, '{"success": true}'),
        (
            {"questions": [], "answers": {"Which?": "SQLite", "When?": ["now", "later"]}},
            'Your questions have been answered: "Which?"="SQLite", "When?"="now\nlater". You can now continue with these answers in mind.',
        ),
    ],
)  # fmt: skip
def test_a_response_becomes_what_the_model_is_shown(response, text):
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
def test_what_says_that_it_failed_did(response, failed):
    assert is_failure(response) is failed

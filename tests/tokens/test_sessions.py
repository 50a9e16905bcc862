"""A session costs what a model reads of it."""

from __future__ import annotations

from aether.tokens.sessions import session_tokens


def test_the_answer_fields_are_counted_as_compact_json():
    assert session_tokens({"summary": "Zürich", "phase": 1}, len) == len('{"phase":1,"summary":"Zürich"}')


def test_bookkeeping_is_not_counted():
    answer = {"summary": "done", "outcomes": []}

    assert session_tokens({**answer, "original_tokens": 9, "metadata": {"a": 1}}, len) == session_tokens(
        answer, len
    )

from __future__ import annotations

import json

from aether.tokens.count import ANSWER_FIELDS, session_tokens


def test_the_answer_is_counted_as_compact_json_and_nothing_else_is():
    answer = {"id": "s", "session_id": "s", "summary": "Ja, genau.", "key_decisions": []}
    stored = {**answer, "original_tokens": 9000, "metadata": {"architect": {"backend": "extractive"}}}

    assert session_tokens(stored, len) == len(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))


def test_the_order_of_members_does_not_matter():
    answer = dict.fromkeys(ANSWER_FIELDS, "x")

    assert session_tokens(answer, len) == session_tokens(dict(reversed(answer.items())), len)

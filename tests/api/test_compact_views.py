"""Differences, lists and dry runs of compactions."""

from __future__ import annotations

import pytest

from aether.api.compact import preflight, undo_compaction
from aether.api.compact_views import compaction_diff, conversation_list
from aether.errors import NotFound
from tests.laws.histories import history


def compacted(home, turns=20):
    messages = history(5, "openai", turns=turns)
    return messages, preflight("c", messages, window=8_000, home=home)


def test_a_difference_has_every_message_once(home):
    messages, done = compacted(home)

    found = compaction_diff("c", home=home)

    assert [row.before for row in found.rows if row.before is not None] == list(range(len(messages)))
    assert [row.after for row in found.rows if row.after is not None] == list(range(len(done.messages)))
    assert {row.change for row in found.rows} >= {"kept", "removed", "added"}


def test_shortened_messages_differ_from_kept_ones(home):
    result = {"role": "tool", "tool_call_id": "1", "content": "line of output\n" * 3_000}
    call = {"id": "1", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Run it."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        result,
        {"role": "user", "content": "And?"},
    ]
    preflight("c", messages, window=6_000, home=home)

    changes = [row.change for row in compaction_diff("c", home=home).rows]

    assert changes == ["kept", "kept", "shortened", "kept"]


def test_an_undone_compaction_can_still_be_shown(home):
    compacted(home)
    undo_compaction("c", home=home)

    assert compaction_diff("c", home=home).receipt["step"] == 1
    with pytest.raises(NotFound):
        compaction_diff("c", step=2, home=home)
    with pytest.raises(NotFound):
        compaction_diff("never", home=home)


def test_the_conversations_are_listed(home):
    messages, done = compacted(home)

    (listed,) = conversation_list(home=home)

    assert listed[:5] == ("c", len(messages), len(done.messages), 1, 0)
    undo_compaction("c", home=home)
    assert conversation_list(home=home)[0].undone == 1


def test_one_that_is_damaged_is_named_and_hides_no_other(home):
    compacted(home)
    preflight("damaged", history(5, "openai", turns=20), window=8_000, home=home)
    log = home / "conversations" / "damaged" / "history.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"role":"user"', b'"role":"loser"', 1))

    whole, damaged = conversation_list(home=home)

    assert (whole.conversation, whole.compactions, whole.problem) == ("c", 1, "")
    assert (damaged.conversation, damaged.compactions) == ("damaged", 1)
    assert "is damaged" in damaged.problem


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

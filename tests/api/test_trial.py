"""A trial: what a compaction would keep, by the policy as configured."""

from __future__ import annotations

import pytest

from aether.api.compact_views import diff_messages, dry_run
from aether.compaction.policy import CompactConfig, CompactPolicy


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def pairs(count):
    return [
        {"role": role, "content": f"{role} {nth}"} for nth in range(count) for role in ("user", "assistant")
    ]


def test_of_twenty_pairs_fourteen_may_go():
    """Of 40 messages, 12 are of the newest six turns; the opening request stays besides."""
    found = dry_run(pairs(20), CompactConfig())

    assert (found.total, found.pinned + found.recent, found.eligible) == (40, 12 + 1, 27)
    assert (found.trigger, found.reason, found.after) == (False, "", pairs(20))


def test_of_ten_calls_six_may_go():
    calls = [
        message
        for nth in range(10)
        for message in (
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": f"c{nth}", "type": "function", "function": {"name": "read", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": f"c{nth}", "content": "ok"},
        )
    ]  # fmt: skip

    found = dry_run(
        [*pairs(1), *calls, *pairs(7)[2:]], CompactConfig(policy=CompactPolicy(keep_tool_io_pairs=4))
    )

    assert found.tool_io == 8
    assert found.eligible >= 12


def test_nothing_is_recorded(tmp_path):
    found = dry_run(
        pairs(400),
        CompactConfig(max_context_tokens=2000, policy=CompactPolicy(hard_cap_buffer=9)),
        force=True,
    )

    assert found.tokens_after < found.tokens
    assert list(tmp_path.iterdir()) == []


def test_equal_messages_are_told_apart_by_their_place():
    same = [{"role": "user", "content": "x"}] * 3

    assert [row.change for row in diff_messages(same, same[:2])] == ["kept", "kept", "removed"]
    assert [row.change for row in diff_messages([], same[:1])] == ["added"]

"""Shapes of compaction: what a receipt and a policy say can be written as JSON and read again."""

from __future__ import annotations

from aether.compaction.shapes import Compacted, Facts, Policy, Receipt, Summary, SummaryTask


def test_the_policy_of_requirement_002_is_the_default():
    policy = Policy()

    assert (policy.trigger, policy.reserve, policy.keep_recent_turns, policy.keep_tool_pairs) == (
        0.85,
        1500,
        6,
        4,
    )
    assert (policy.protected_roles, policy.protected_flag, policy.strategy) == (
        ("system", "developer"), "protected", "task_state",
    )  # fmt: skip
    assert policy.target < policy.trigger


def test_a_ladder_without_a_model_is_the_default_of_the_facts_alone():
    assert Summary(1, Facts(), "").facts == Facts()
    assert set(SummaryTask._fields) >= {"facts", "max_tokens", "previous", "said", "strategy", "version"}


def test_a_receipt_tells_both_ways_which_message_went_where():
    assert {"removed", "places", "protected", "cuts"} <= set(Receipt._fields)
    assert {"places", "cuts", "protected"} <= set(Compacted._fields)

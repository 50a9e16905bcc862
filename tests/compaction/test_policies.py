"""Policies are data: named ones exist, composed ones are proved field by field."""

from __future__ import annotations

import pytest

from aether.compaction.policies import POLICIES, STRATEGIES, policy, policy_from, validated
from aether.compaction.shapes import Policy
from aether.errors import InvalidInput
from tests.tables import rows


@rows("name", sorted(POLICIES))
def test_every_named_policy_is_valid_and_knows_its_name(name):
    assert validated(policy(name)).name == name


def test_the_named_ones_are_those_of_the_requirements():
    assert (
        policy("compact").trigger,
        policy("compact").keep_recent_turns,
        policy("compact").keep_tool_pairs,
    ) == (0.85, 6, 4)
    assert (policy("window").trigger, policy("window").keep_requests, policy("window").keep_middle) == (
        0.70,
        True,
        0.30,
    )
    assert "summarise" not in policy("prune-only").steps
    assert {policy(strategy).strategy for strategy in STRATEGIES} == set(STRATEGIES)


def test_an_unknown_policy_is_refused_with_the_known_ones():
    with pytest.raises(InvalidInput, match=r"'nonsense' is no policy\. Use one of compact, window"):
        policy("nonsense")


def test_a_composed_policy_starts_from_the_one_it_names():
    found = policy_from(
        {"name": "window", "keep_tool_pairs": 2, "steps": ["summarise"], "protected_labels": ["spec"]}
    )

    assert (found.trigger, found.keep_tool_pairs, found.steps) == (0.70, 2, ("summarise",))
    assert found.protected_labels == ("spec",)


def test_a_composed_policy_may_have_a_name_of_its_own():
    assert policy_from({"name": "mine"}) == Policy(name="mine")


@rows(
    ("settings", "path"),
    [
        ({"trigger": 0}, "policy.trigger"),
        ({"trigger": 1.01}, "policy.trigger"),
        ({"trigger": "0.85"}, "policy.trigger"),
        ({"trigger": True}, "policy.trigger"),
        ({"target": 0.85}, "policy.target"),
        ({"target": 0}, "policy.target"),
        ({"trigger": 0.5}, "policy.target"),
        ({"trigger_tokens": -1}, "policy.trigger_tokens"),
        ({"trigger_messages": 1.5}, "policy.trigger_messages"),
        ({"reserve": -1}, "policy.reserve"),
        ({"keep_recent_turns": 0}, "policy.keep_recent_turns"),
        ({"keep_tool_pairs": True}, "policy.keep_tool_pairs"),
        ({"keep_middle": -0.1}, "policy.keep_middle"),
        ({"summary_share": 0.0}, "policy.summary_share"),
        ({"min_reclaim": 2}, "policy.min_reclaim"),
        ({"strategy": "nonsense"}, "policy.strategy"),
        ({"name": " "}, "policy.name"),
        ({"name": 7}, "policy.name"),
        ({"protected_flag": ""}, "policy.protected_flag"),
        ({"protected_roles": ["queen"]}, "policy.protected_roles[0]"),
        ({"protected_labels": "spec"}, "policy.protected_labels"),
        ({"protected_paths": [""]}, "policy.protected_paths"),
        ({"steps": []}, "policy.steps"),
        ({"steps": ["summarise", "guess"]}, "policy.steps[1]"),
        ({"steps": ["reduce", "reduce"]}, "policy.steps[1]"),
        ({"keep_recent": 3}, "policy.keep_recent"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_by_its_path(settings, path):
    with pytest.raises(InvalidInput) as refused:
        policy_from(settings)

    assert refused.value.where == path

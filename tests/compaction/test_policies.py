"""Policies are data: named ones exist, composed ones are proved field by field."""

from __future__ import annotations

import pytest

from aether.compaction.policy import POLICIES, STRATEGIES, policy, validated
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
    with pytest.raises(InvalidInput, match=r"'nonsense' is not a policy\. Use one of compact, window"):
        policy("nonsense")


@pytest.mark.parametrize(
    ("settings", "path", "words"),
    [
        ({"trigger": 0}, "policy.trigger", "must|is not below"),
        ({"trigger": 1.01}, "policy.trigger", "must|is not below"),
        ({"trigger": "0.85"}, "policy.trigger", "must|is not below"),
        ({"trigger": True}, "policy.trigger", "must|is not below"),
        ({"target": 0.85}, "policy.target", "0.85 is not below the trigger, 0.85"),
        ({"target": 0}, "policy.target", "must|is not below"),
        ({"trigger": 0.5}, "policy.target", "must|is not below"),
        ({"trigger_tokens": -1}, "policy.trigger_tokens", "must|is not below"),
        ({"trigger_messages": 1.5}, "policy.trigger_messages", "must|is not below"),
        ({"reserve": -1}, "policy.reserve", "must|is not below"),
        ({"keep_recent_turns": 0}, "policy.keep_recent_turns", "must|is not below"),
        ({"keep_tool_pairs": True}, "policy.keep_tool_pairs", "must|is not below"),
        ({"keep_middle": -0.1}, "policy.keep_middle", "must|is not below"),
        ({"summary_share": 0.0}, "policy.summary_share", "must|is not below"),
        ({"min_reclaim": 2}, "policy.min_reclaim", "must|is not below"),
        ({"strategy": "nonsense"}, "policy.strategy", "must|is not below"),
        ({"name": " "}, "policy.name", "must|is not below"),
        ({"name": 7}, "policy.name", "must|is not below"),
        ({"protected_flag": ""}, "policy.protected_flag", "must|is not below"),
        ({"protected_roles": ("queen",)}, "policy.protected_roles", r"\[0\]"),
        ({"protected_labels": "spec"}, "policy.protected_labels", "must|is not below"),
        ({"protected_paths": ("",)}, "policy.protected_paths", "must|is not below"),
        ({"steps": ()}, "policy.steps", "must|is not below"),
        ({"steps": ("summarise", "guess")}, "policy.steps", r"\[1\]"),
        ({"steps": ("reduce", "reduce")}, "policy.steps", r"\[1\]"),
    ],
)  # fmt: skip
def test_a_policy_that_makes_no_sense_is_refused_by_its_path(settings, path, words):
    with pytest.raises(InvalidInput, match=words) as refused:
        validated(Policy()._replace(**settings))

    assert refused.value.where == path

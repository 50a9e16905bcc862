"""The budget counts everything that is sent, triggers fire exactly at their numbers, and bounds end below them."""

from __future__ import annotations

import pytest

from aether.conversation.policy import ContextBudget, bounds, checked, fires
from aether.conversation.shapes import Policy
from aether.errors import InvalidInput
from tests.tables import rows


def test_all_that_is_sent_is_used():
    budget = ContextBudget(1000, reserve=100, system=50, developer=20, tools=30, messages=400)

    assert (budget.used, budget.limit, budget.ratio) == (500, 900, 0.5)


@rows(
    ("window", "trigger", "used", "is_fired"),
    [
        (128_000, 0.85, 108_800, True),
        (128_000, 0.85, 108_799, False),
        (128_000, 0.85, 96_000, False),
        (1000, 0.70, 700, True),
        (1000, 0.70, 699, False),
    ],
)
def test_the_trigger_is_a_share_of_the_whole_window(window, trigger, used, is_fired):
    reason = fires(ContextBudget(window, reserve=100, messages=used), Policy(trigger=trigger), messages=1)

    assert bool(reason) == is_fired


@rows(
    ("policy", "reason"),
    [
        (Policy(trigger_tokens=500), "500 tokens used: the trigger is 500"),
        (Policy(trigger_tokens=501), ""),
        (Policy(trigger_messages=7), "7 messages: the trigger is 7"),
        (Policy(trigger_messages=8), ""),
    ],
)
def test_tokens_and_messages_are_triggers_of_their_own(policy, reason):
    assert fires(ContextBudget(1_000_000, messages=500), policy, messages=7) == reason


@rows(
    ("budget", "where"),
    [
        (ContextBudget(0), "window"),
        (ContextBudget(10, messages=-1), "messages"),
        (ContextBudget(10, reserve=10), "reserve"),
    ],
)
def test_a_budget_in_which_nothing_can_be_sent_is_refused(budget, where):
    with pytest.raises(InvalidInput) as caught:
        checked(budget)

    assert caught.value.where == where


@rows("window", [1_000, 4_096, 8_192, 128_000, 1_000_000])
@rows("trigger", [0.3, 0.5, 0.7, 0.85, 1.0])
def test_the_ceiling_is_the_most_that_fires_no_trigger(window, trigger):
    policy = Policy(trigger=trigger, target=0.2)
    found = bounds(policy, window)

    def reason(tokens):
        return fires(ContextBudget(window, found.reserve, messages=tokens), policy, messages=1)

    assert not reason(found.ceiling)
    assert reason(found.ceiling + 1)
    assert found.goal <= found.ceiling <= found.limit < window


def test_a_trigger_in_tokens_lowers_ceiling_and_goal():
    found = bounds(Policy(trigger_tokens=10_000), 128_000)

    assert found.ceiling == 9_999
    assert found.goal < 0.75 * found.ceiling


def test_a_reserve_that_leaves_too_little_is_clamped_with_a_finding():
    found = bounds(Policy(reserve=1_500), 1_000)

    assert (found.reserve, found.limit) == (150, 850)
    assert [finding.code for finding in found.findings] == ["reserve-clamped"]


def test_a_window_of_nothing_is_refused():
    with pytest.raises(InvalidInput, match="is not a window"):
        bounds(Policy(), 0)

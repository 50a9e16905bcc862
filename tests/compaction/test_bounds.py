"""The bounds leave room for the answer and end below what fires."""

from __future__ import annotations

import pytest

from aether.compaction.budget import ContextBudget, bounds, fires
from aether.compaction.shapes import Policy
from aether.errors import InvalidInput
from tests.tables import rows


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


def test_a_reserve_that_leaves_next_to_nothing_is_clamped_and_said():
    found = bounds(Policy(reserve=1_500), 1_000)

    assert (found.reserve, found.limit) == (150, 850)
    assert [finding.code for finding in found.findings] == ["reserve-clamped"]


def test_a_reserve_of_half_the_window_is_taken_as_it_is():
    assert bounds(Policy(reserve=1_500), 3_000).limit == 1_500


def test_the_messages_stay_fewer_than_fire():
    assert bounds(Policy(trigger_messages=40), 8_000).most_messages == 39
    assert bounds(Policy(), 8_000).most_messages == 0


def test_a_window_of_nothing_is_refused():
    with pytest.raises(InvalidInput, match="is not a window"):
        bounds(Policy(), 0)

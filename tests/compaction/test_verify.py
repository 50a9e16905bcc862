"""A result that breaks a promise never leaves; each promise is broken here once."""

from __future__ import annotations

import pytest

from aether.compaction.facts import summary_message
from aether.compaction.plan import apply, plan, verified
from aether.compaction.policy import policy
from aether.compaction.shapes import Facts, Summary
from aether.errors import AetherError
from aether.tokens.count import message_tokens
from tests.compaction.conversations import bash, conversation, model, user
from tests.tables import rows


def count(text):
    return -(-len(text) // 4)


MESSAGES = conversation(
    user("Ship it. " * 20),
    *(bash(f"make {at}", "built " * 40) for at in range(12)),
    model("Done."),
    user("And now?"),
)
MESSAGES[4].raw["meta"] = {"protected": True}
PLAN = plan(MESSAGES, policy("compact"), count, window=900, force=True)
RESULT = apply(PLAN, None)
SUMMARY_AT = RESULT.places.index(None)


def prove(result, **changes):
    given = {"tokens": PLAN.tokens, "overhead": 0, "count": count, "required": PLAN.required, **changes}
    return verified(result, MESSAGES, **given)


def without(at):
    return RESULT._replace(
        messages=RESULT.messages[:at] + RESULT.messages[at + 1 :],
        places=RESULT.places[:at] + RESULT.places[at + 1 :],
    )


def test_what_is_right_passes_with_its_tokens():
    assert prove(RESULT) == RESULT
    assert RESULT.tokens_after == sum(message_tokens(message, count) for message in RESULT.messages)


@rows(
    ("result", "what"),
    [
        (RESULT._replace(messages=(), places=()), "it is empty"),
        (RESULT._replace(places=RESULT.places[:-1]), "it is empty"),
        (RESULT._replace(limit=RESULT.tokens_after - 1), "are over the limit"),
        (RESULT._replace(messages=RESULT.messages[::-1], places=RESULT.places[::-1]), "the order changed"),
        (RESULT._replace(protected=(1,)), "protected message 1 changed"),
        (without(RESULT.places.index(0)), "message 0, which must stay, is missing"),
        (without(len(RESULT.places) - 1), f"message {len(MESSAGES) - 1}, which must stay, is missing"),
        (without(SUMMARY_AT), "it has 0 summaries instead of one"),
        (without(len(RESULT.places) - 3), "lost their call or their result"),
        (without(len(RESULT.places) - 4), "lost their call or their result"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused(result, what):
    with pytest.raises(AetherError, match=what):
        prove(result)


def test_a_protected_message_that_is_only_equal_is_not_the_same():
    at = RESULT.places.index(4)
    copied = RESULT.messages[at]._replace(raw=dict(RESULT.messages[at].raw))
    result = RESULT._replace(messages=(*RESULT.messages[:at], copied, *RESULT.messages[at + 1 :]))

    with pytest.raises(AetherError, match="protected message 4 changed"):
        prove(result)


def test_two_summaries_are_refused():
    second = summary_message(Summary(9, Facts(), "More."), "anthropic")
    result = RESULT._replace(messages=(*RESULT.messages, second), places=(*RESULT.places, None))

    with pytest.raises(AetherError, match="it has 2 summaries"):
        prove(result)

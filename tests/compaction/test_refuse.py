"""Who cannot be helped is told what holds the tokens, how many, and what to do."""

from __future__ import annotations

import pytest

from aether.compaction.plan import plan
from aether.compaction.policies import policy
from aether.errors import BudgetExceeded
from aether.messages.formats import read


def count(text):
    return len(text.split())


def refusal(raws, *, window=1_000, overhead=0):
    with pytest.raises(BudgetExceeded) as refused:
        plan(read(raws, "openai"), policy("compact"), count, window=window, overhead=overhead)
    return refused.value


def test_protected_content_is_named_with_its_tokens():
    raws = [{"role": "system", "content": "rule " * 900}, {"role": "user", "content": "Go."}]

    error = refusal(raws)

    assert "protected (messages[0]) 904" in error.what
    assert "newest message" not in error.what
    assert "Reduce the protected content" in error.fix
    assert "larger window" in error.fix
    assert error.exit_code == 7


def test_of_many_the_largest_are_named():
    raws = [{"role": "system", "content": "rule " * (100 + at)} for at in range(9)]

    assert (
        "(messages[8], messages[7], messages[6], messages[5], messages[4] and 4 more)" in refusal(raws).what
    )


def test_the_newest_message_and_what_is_sent_beside_are_named():
    raws = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "log " * 700},
    ]

    error = refusal(raws, overhead=200)

    assert (
        "system prompt and tool schemas 200, opening request (messages[0]) 5, newest message of the user (messages[2]) 704"
        in error.what
    )


def test_a_system_prompt_alone_can_be_too_much():
    assert "system prompt and tool schemas 5000" in refusal([], overhead=5_000).what

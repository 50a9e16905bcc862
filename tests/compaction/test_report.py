"""Each rung says what it did; who cannot be helped is told what holds the tokens, how many, and what to do."""

from __future__ import annotations

import pytest

from aether.compaction import fit, steps
from aether.compaction.plan import plan
from aether.compaction.policy import policy
from aether.errors import BudgetExceeded
from aether.messages.convert import read
from tests.compaction.conversations import bash, conversation, model, tool, user
from tests.compaction.test_ladder import LONG, draft_of, thinking
from tests.tables import rows


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


def test_each_rung_says_its_number_and_its_tokens():
    draft = draft_of(
        conversation(
            user("Go."), thinking("One."), tool("Write", LONG, content=LONG), model(LONG), user("More."), bash("make", LONG),
            bash("make", LONG),
        )
    )  # fmt: skip
    groups = range(len(draft.kept))
    steps.shorten_groups(draft, ("drop_reasoning", "shorten_results"), groups, goal=1)
    steps.shorten_harder(draft, [2, 3], most=1)
    saved = {key: cut.tokens_before - cut.tokens_after for key, cut in draft.cuts.items()}

    found = fit.steps_taken(draft, policy("compact"), folded=False)

    assert found == (
        f"drop_reasoning: 1 message, {draft.given[1] - draft.tokens[1]:,} tokens",
        f"shorten_results: 3 results, {saved[3, 0] + saved[7, 0] + saved[9, 0]:,} tokens",
        f"shorten_arguments: 1 call, {saved[2, 0]:,} tokens",
        f"reduce: 1 text shortened, {saved[4, 0]:,} tokens",
    )


def test_what_went_is_counted_with_the_tokens_it_had():
    draft = draft_of(conversation(user("Go."), *(tool("Read", "x" * 900, path="a.py") for _ in range(4))))
    draft.kept[1:4] = [False] * 3
    gone = sum(draft.given[1:7])

    assert fit.steps_taken(draft, policy("compact"), folded=True) == (
        f"fold_exploration: 1 run, {gone:,} tokens",
    )
    assert fit.steps_taken(draft, policy("compact"), folded=False) == (
        f"summarise: 6 messages, {gone:,} tokens",
    )
    assert fit.steps_taken(draft, policy("prune-only"), folded=False) == (
        f"reduce: 6 messages removed, {gone:,} tokens",
    )


def test_one_finding_lists_all_that_was_left_out():
    [found] = fit.fit_findings(draft_of([]), ["8 requests", "3 names"], stalled=0)

    assert (found.code, found.message) == ("facts-left-out", "no room for 8 requests, 3 names.")


@rows(("lost", "level"), [("2 names", "info"), ("1 decision", "warning"), ("3 decisions", "warning")])
def test_a_decision_that_is_left_out_is_a_warning(lost, level):
    draft = draft_of(conversation(user("Go."), model("Done.")))

    (finding,) = fit.fit_findings(draft, ["1 hash of a file", lost], stalled=0)

    assert finding.level == level

"""What earlier summaries said is carried on; what is removed now is told, and says where it is."""

from __future__ import annotations

from aether.compaction.facts import (
    PreviousSummary,
    facts_of_removed,
    fit_summary,
    previous_summary,
    removed_texts,
    summary_message,
    summary_role,
    tokens_around,
    with_facts_of_cut,
)
from aether.compaction.partition import is_earlier_summary
from aether.compaction.shapes import Facts, RemovedText, Summary
from aether.messages.convert import new_message
from aether.messages.model import PROVIDER_FORMATS
from aether.tokens.count import message_tokens
from tests.compaction.conversations import bash, conversation, model, user
from tests.tables import rows


def count(text):
    return -(-len(text) // 4)


def nowhere(at):
    return ""


def where(at):
    return f"line {at}"


@rows("wire", PROVIDER_FORMATS)
def test_a_summary_can_be_told_from_its_message_in_every_wire(wire):
    summary = Summary(4, Facts(goals=("Ship it.",)), "Done.\n## Files")

    message = summary_message(summary, wire)

    assert is_earlier_summary(message)
    assert previous_summary([message], [0]) == PreviousSummary(4, summary.facts, summary.prose)


def test_the_user_says_it_where_a_response_could_not_stand_there():
    assert {wire: summary_role(wire) for wire in PROVIDER_FORMATS} == {
        "anthropic": "user", "gemini": "user", "openai": "assistant", "responses": "assistant", "plain": "assistant",
    }  # fmt: skip


def test_several_summaries_become_one_in_order():
    messages = [
        summary_message(Summary(2, Facts(goals=("First.",), constraints=("Never a.",)), "One."), "openai"),
        new_message("user", "Go on.", "openai"),
        summary_message(Summary(5, Facts(goals=("Second.",)), "Two."), "openai"),
    ]

    found = previous_summary(messages, [0, 2])

    assert (found.version, found.prose) == (5, "One.\nTwo.")
    assert found.facts.goals == ("First.", "Second.")
    assert found.facts.constraints == ("Never a.",)


def test_without_summaries_nothing_is_carried():
    assert previous_summary([], []) == PreviousSummary(0, Facts(), "")


def test_facts_of_before_and_of_what_is_removed_stand_together_with_where_it_is():
    messages = conversation(user("Ship it."), user("Never push to main."), model("Fine."))
    before = PreviousSummary(
        1, Facts(constraints=("Always test the parser.",), lookups=("2 messages in full: line 9",)), ""
    )

    found = facts_of_removed(messages, [1, 2], before, where)

    assert found.constraints == ("Always test the parser.", "Never push to main.")
    assert found.lookups == ("4 messages in full: line 1 to 9",)


def test_where_it_is_is_said_once_and_only_where_it_is_known():
    messages = conversation(user("Ship it."), model("Fine."))
    before = PreviousSummary(1, Facts(lookups=("1 messages in full: line 1",)), "")

    assert facts_of_removed(messages, [1], before, where).lookups == ("1 messages in full: line 1",)
    assert facts_of_removed(messages, [1], PreviousSummary(0, Facts(), ""), nowhere).lookups == ()
    assert facts_of_removed(messages, [], PreviousSummary(0, Facts(), ""), where).lookups == ()


def test_what_was_cut_gives_its_facts_too():
    messages = conversation(user("Ship it. Never push to main."), model("Fine."))

    assert with_facts_of_cut(Facts(goals=("Ship it.",)), messages, 0) == Facts(
        goals=("Ship it.",), constraints=("Never push to main.",)
    )


def test_facts_are_sized_as_the_message_they_will_be():
    facts = Facts(goals=("Ship it.",), names=tuple(f"name_{at}" for at in range(200)))

    found = fit_summary(facts, 1, "anthropic", count=count, most=150)

    assert (
        found.tokens
        == message_tokens(summary_message(Summary(1, found.facts, ""), "anthropic"), count)
        <= 150
    )
    assert found.facts.goals == ("Ship it.",)
    assert found.lost
    assert tokens_around("anthropic", count) < 10


def test_what_says_nothing_is_not_told():
    assert removed_texts(conversation(user(" \n"), model("")), [0, 1]) == ()


def test_what_was_said_called_and_received_is_told_and_what_was_thought_is_not():
    messages = conversation(user("Go."), bash("make", "built"), model("Done."))
    messages[3].raw["content"] = "Done."

    found = removed_texts(messages, [1, 2, 3])

    assert found == (
        RemovedText(1, "assistant", "Bash", '{"command": "make"}'),
        RemovedText(2, "tool", "Bash", "built"),
        RemovedText(3, "assistant", "", "Done."),
    )


def test_where_it_is_stays_one_line_over_many_compactions():
    before = PreviousSummary(
        2,
        Facts(
            lookups=(
                "see notes.txt",
                "13 messages in full: line 55 to 67",
                "8 messages in full: line 2 to 29",
            )
        ),
        "",
    )
    messages = conversation(*(user(f"Please do part {at} of it.") for at in range(4)))

    assert facts_of_removed(messages, [1, 3], before, where).lookups == (
        "see notes.txt",
        "23 messages in full: line 1 to 67",
    )
    assert (
        facts_of_removed(messages, [1, 3], before, lambda at: f"line{at}").lookups[-1]
        == "2 messages in full: line1 to line3"
    )

"""The tally counts what is new and nothing else, and is never wrong for it."""

from __future__ import annotations

import copy

import pytest

from aether.messages.convert import detect_format
from aether.tokens.count import message_tokens, tally


class Counting:
    """A counter of characters that remembers how many it was given."""

    def __init__(self):
        self.seen = 0

    def __call__(self, text):
        self.seen += len(text)
        return len(text)


def conversation(length):
    return [
        {"role": ("user", "assistant")[at % 2], "content": [{"type": "text", "text": f"message {at}"}]}
        for at in range(length)
    ]


def characters(message):
    return len(message["content"][0]["text"])


def test_a_message_that_was_added_is_all_that_is_counted():
    """Preflight on a conversation that grew by one message costs the new message, not the conversation."""
    raws, count = conversation(10_000), Counting()
    before = tally(raws, wire="anthropic", count=count)
    count.seen = 0
    raws.append({"role": "user", "content": [{"type": "text", "text": "one more"}]})

    after = tally(raws, wire="anthropic", count=count, before=before)

    assert count.seen == len("one more")
    assert after.total == before.total + after.tokens[-1]


def test_nothing_new_counts_nothing_and_is_the_same_tally():
    raws, count = conversation(5), Counting()
    before = tally(raws, wire="anthropic", count=count)
    count.seen = 0

    assert tally(copy.deepcopy(raws), wire="anthropic", count=count, before=before) is before
    assert count.seen == 0


def test_a_message_that_was_changed_in_place_is_counted_again():
    raws, count = conversation(9), Counting()
    before = tally(raws, wire="anthropic", count=count)
    raws[4]["content"][0]["text"] = "rewritten by the caller"
    count.seen = 0

    after = tally(raws, wire="anthropic", count=count, before=before)

    assert count.seen == characters(raws[4])
    assert after.messages[4].text == "rewritten by the caller"
    assert before.messages[4].text == "message 4"


def test_what_follows_a_stretch_that_was_replaced_is_found_again():
    """So a compaction costs its summary."""
    raws, count = conversation(1000), Counting()
    before = tally(raws, wire="anthropic", count=count)
    summary = {"role": "assistant", "content": [{"type": "text", "text": "what was said"}]}
    count.seen = 0

    after = tally([*raws[:2], summary, *raws[900:]], wire="anthropic", count=count, before=before)

    assert count.seen == characters(summary)
    assert after.tokens == [message_tokens(message, count) for message in after.messages]
    assert after.total == sum(after.tokens)


def test_messages_cut_from_the_end_cost_nothing():
    raws, count = conversation(10), Counting()
    before = tally(raws, wire="anthropic", count=count)
    count.seen = 0

    after = tally(raws[:3], wire="anthropic", count=count, before=before)

    assert (count.seen, after.total) == (0, sum(before.tokens[:3]))


def test_equal_messages_are_counted_each():
    raws = [{"role": "user", "content": "yes"}] * 3

    assert tally(raws, wire="openai", count=len).total == 3 * (4 + 3)


@pytest.mark.parametrize("changed", [{"wire": "plain"}, {"count": lambda text: 7 * len(text)}])
def test_a_tally_by_another_counter_or_wire_is_of_no_use(changed):
    raws = [{"role": "user", "content": "yes"}]
    settings = {"wire": "openai", "count": len}
    before = tally(raws, **settings)

    after = tally(raws, **settings | changed, before=before)

    assert after == tally(raws, **settings | changed)
    assert after != before


def test_what_a_tally_holds_is_not_the_callers():
    raws = [{"role": "user", "content": [{"type": "text", "text": "yes"}]}]
    found = tally(raws, wire="anthropic", count=len)

    raws[0]["content"].append({"type": "text", "text": "no"})

    assert (
        found.messages[0].raw
        == found.raws[0]
        == {"role": "user", "content": [{"type": "text", "text": "yes"}]}
    )


CALLED = {"role": "tool", "tool_call_id": "a", "content": "ok"}
SAID = {"role": "user", "content": "And now?"}


def test_without_a_wire_the_messages_tell_it():
    assert tally([SAID], wire=None, count=len).wire == "plain"
    assert tally([SAID, CALLED], wire=None, count=len).wire == "openai"


def test_a_wire_that_is_known_is_not_looked_for_again(monkeypatch):
    """To look at ten thousand messages at every preflight costs more than all the rest of it."""
    before = tally([CALLED, SAID], wire=None, count=len)
    looked = []

    def spying(raws, **settings):
        looked.append(list(raws))
        return detect_format(raws, **settings)

    monkeypatch.setattr("aether.messages.convert.detect_format", spying)
    after = tally([CALLED, SAID, {"role": "user", "content": "More."}], wire=None, count=len, before=before)

    assert after.wire == "openai"
    assert looked == [[{"role": "user", "content": "More."}]]


def test_a_conversation_turns_out_to_be_of_a_wire_when_that_shows():
    before = tally([SAID], wire=None, count=len)

    after = tally([SAID, CALLED], wire=None, count=len, before=before)

    assert after == tally([SAID, CALLED], wire="openai", count=len)


def test_another_conversation_of_the_same_name_has_its_own_wire():
    before = tally([CALLED], wire=None, count=len)
    other = [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "ok"}]}]

    assert tally(other, wire=None, count=len, before=before) == tally(other, wire="anthropic", count=len)


def test_a_summary_of_all_that_told_the_wire_leaves_it_known():
    before = tally([SAID, CALLED], wire=None, count=len)

    assert tally([SAID, {"role": "assistant", "content": "A summary."}], wire=None, count=len, before=before).wire == "openai"  # fmt: skip

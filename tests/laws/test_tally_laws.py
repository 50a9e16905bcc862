"""Laws of counting messages: the tally is never wrong for being quick, and base64 is never text."""

from __future__ import annotations

import copy
import json
from base64 import b64encode

from hypothesis import given
from hypothesis import strategies as st

from aether.conversation.readings import Reading, Readings
from aether.messages import convert
from aether.messages.model import PROVIDER_FORMATS, ProviderFormat
from aether.messages.validate import accepted, accepts_more, is_sendable
from aether.tokens.count import MESSAGE_TOKENS, message_tokens, system_tokens, tally, tools_tokens
from aether.tokens.estimate import estimate
from tests.laws.histories import broken_histories, histories, junk


def edits() -> st.SearchStrategy[list[tuple[str, int]]]:
    """What callers do to the list between two calls: each an edit and where in the list it is made."""
    kinds = st.sampled_from(["append", "remove", "change in place", "insert", "replace a stretch", "repeat"])
    return st.lists(st.tuples(kinds, st.integers(0, 10**6)), max_size=4)


def edited(raws: list, changes: list[tuple[str, int]]) -> None:
    """Make `changes` in the very list and messages that were counted."""
    new = {"role": "user", "content": "something new", "parts": [{"text": "something new"}]}
    for change, number in changes:
        at = number % (len(raws) + 1)
        if change == "append":
            raws.append(dict(new))
        elif change == "insert":
            raws.insert(at, dict(new))
        elif change == "replace a stretch":
            raws[at : at + 3] = [dict(new)]
        elif raws and change == "remove":
            del raws[at % len(raws)]
        elif raws and change == "repeat":
            raws.append(raws[at % len(raws)])
        elif raws:
            raws[at % len(raws)]["content"] = f"changed {number}"


@given(histories(), st.lists(edits(), min_size=1, max_size=3))
def test_a_tally_that_grew_is_the_tally_of_the_whole(found, rounds):
    """Whatever the caller did to the list and to the messages in it since."""
    wire, raws = found
    raws = copy.deepcopy(raws)
    grown = tally(raws, provider=wire, count=estimate)
    for changes in rounds:
        edited(raws, changes)
        grown = tally(raws, provider=wire, count=estimate, before=grown)

    assert grown == tally(raws, provider=wire, count=estimate)
    assert grown.total == sum(grown.tokens)
    assert grown.raws == raws


@given(broken_histories())
def test_whatever_a_message_says_or_was_answered_is_counted(found):
    """In characters: no text that the reader of messages knows of is left out."""
    wire, raws = found
    for raw in raws:
        message = convert.message(raw, wire)
        said = sum(len(block.text) for block in message.blocks if block.kind in ("text", "result"))
        assert message_tokens(message, len) >= MESSAGE_TOKENS + said


@given(junk(), st.sampled_from(PROVIDER_FORMATS))
def test_nonsense_is_counted_without_complaint(entries, wire: ProviderFormat):
    found = tally(entries, provider=wire, count=estimate)

    assert len(found.tokens) == len(entries)
    assert tools_tokens(entries, estimate) >= 0
    assert system_tokens(entries, estimate) >= 0


def pictures(data: str) -> list[tuple[ProviderFormat, dict]]:
    """The same picture in every spelling, also inside an answer of a tool."""
    address = f"data:image/png;base64,{data}"
    source = {"type": "base64", "media_type": "image/png", "data": data}
    image = {"type": "image", "source": source}
    inline = {"inlineData": {"mimeType": "image/png", "data": data}}
    return [
        ("anthropic", {"role": "user", "content": [image]}),
        ("anthropic", {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [image]}]}),
        ("openai", {"role": "user", "content": [{"type": "image_url", "image_url": {"url": address}}]}),
        ("responses", {"role": "user", "content": [{"type": "input_image", "image_url": address}]}),
        ("responses", {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image", "image_url": address}]}),
        ("responses", {"type": "image_generation_call", "id": "ig", "result": data}),
        ("gemini", {"role": "user", "parts": [inline]}),
        ("gemini", {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"shot": inline}}}]}),
    ]  # fmt: skip


@given(st.binary(min_size=3000, max_size=6000))
def test_base64_is_never_counted_as_text(content):
    data = b64encode(content).decode()
    for wire, raw in pictures(data):
        given_text: list[str] = []
        message_tokens(convert.message(raw, wire), lambda text, seen=given_text: seen.append(text) or 0)
        assert data[:100] not in json.dumps(given_text)


@given(histories(), broken_histories(), st.integers(0, 10**6), st.booleans())
def test_what_an_accepted_start_says_of_more_messages_is_what_a_check_of_all_says(
    found, others, number, breaks
):
    """Whether the messages that follow are the rest of the conversation, or others of its format with faults."""
    wire, raws = found
    cut = number % (len(raws) + 1)
    more = others[1] if breaks and others[0] == wire else raws[cut:]
    if not cut or not is_sendable(raws[:cut], wire):
        return
    whole = [*raws[:cut], *more]
    messages = convert.read(whole, wire)
    start = accepted(messages[: max(1, cut // 2)]) if is_sendable(raws[: max(1, cut // 2)], wire) else None

    assert accepts_more(accepted(messages[:cut], start), whole, messages) == is_sendable(whole, wire)


@given(histories())
def test_what_was_computed_when_a_message_came_is_what_is_computed_now(found):
    wire, raws = found
    messages, kept = convert.read(raws, wire), Readings()
    for message in messages:
        kept.add(message).compute()

    readings = kept.of(messages)

    for reading, message in zip(readings, messages, strict=True):
        fresh = Reading(message)
        assert (reading.message, reading.words, reading.names) == (fresh.message, fresh.words, fresh.names)
        assert reading.is_summary == fresh.is_summary
    assert all(kept.add(message) is reading for reading, message in zip(readings, messages, strict=True))

"""Laws of the message providers: reading keeps everything, writing changes what it says and nothing else."""

import json
from copy import deepcopy
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aether.errors import InvalidInput
from aether.messages.content import replaced, value_at
from aether.messages.convert import (
    bare,
    convert,
    detect_format,
    new_message,
    read,
    with_text,
    without_reasoning,
)
from aether.messages.model import PROVIDER_FORMATS
from aether.messages.validate import check
from tests.laws.histories import broken_histories, histories, junk

PROVIDERS = ("anthropic", "openai", "responses", "gemini")
providers = st.sampled_from(PROVIDER_FORMATS)


def texts(messages):
    """Return each text that is said, in order; blank ones no provider takes."""
    return [b.text for m in messages for b in m.blocks if b.kind == "text" and b.text.strip()]


def calls(messages):
    return [(b.tool, dict(b.arguments)) for m in messages for b in m.blocks if b.kind == "call"]


def exchanges(messages):
    """Return what each call that was answered brought, in the order of the calls."""
    waiting, answered = {}, {}
    for block in (block for message in messages for block in message.blocks):
        if block.kind == "call":
            waiting[block.call_id] = len(answered) + len(waiting)
        elif block.kind == "result":
            answered[waiting.pop(block.call_id)] = block.text
    return [answered[at] for at in sorted(answered)]


def roles(messages):
    """Return who speaks, each once for what is said in a row."""
    spoken = [
        "tool" if block.kind == "result" else message.role
        for message in messages
        for block in message.blocks
        if block.kind in {"call", "result"} or (block.kind == "text" and block.text.strip())
    ]
    return spoken[:1] + [after for before, after in pairwise(spoken) if before != after]


@given(histories() | broken_histories())
def test_reading_keeps_each_message_to_the_letter(given_history):
    provider, raws = given_history
    before = json.dumps(raws)

    messages = read(raws, provider)

    assert all(message.raw is raw for message, raw in zip(messages, raws, strict=True))
    assert json.dumps(raws) == before


@given(junk(), providers)
def test_nothing_that_is_an_object_is_too_odd_to_be_read_and_rewritten(raws, provider):
    before = deepcopy(raws)

    for message in read(raws, provider):
        assert isinstance(without_reasoning(message).raw, dict)
        for at, block in enumerate(message.blocks):
            if block.kind == "result" and block.at:
                assert with_text(message, at, "short").blocks[at].text == "short"
        for target in PROVIDERS:
            convert([message], target)

    detect_format(raws)
    assert raws == before


@given(histories(), st.text(), st.data())
def test_a_new_text_is_read_again_and_all_else_stays(given_history, text, data):
    provider, raws = given_history
    places = [
        (message, at)
        for message in read(raws, provider)
        for at, block in enumerate(message.blocks)
        if block.at and block.kind in {"text", "result", "call"}
    ]
    if not places:
        return
    message, at = data.draw(st.sampled_from(places))
    held = message.blocks[at]
    new = json.dumps({"input": text}) if held.kind == "call" else text
    before = deepcopy(message.raw)

    changed = with_text(message, at, new)

    assert message.raw == before
    found = changed.blocks[at]
    assert (found.arguments == {"input": text}) if held.kind == "call" else (found.text == text)
    assert [block.call_id for block in changed.blocks] == [block.call_id for block in message.blocks]
    assert replaced(changed.raw, held.at, value_at(message.raw, held.at)) == before
    assert list(changed.raw) == list(message.raw)


@given(providers, st.sampled_from(["system", "user", "assistant"]), st.text())
def test_a_new_message_is_read_again(provider, role, text):
    if (provider, role) == ("gemini", "system"):
        with pytest.raises(InvalidInput):
            new_message(role, text, provider)
        return

    message = new_message(role, text, provider)

    assert (message.role, message.text, message.format) == (role, text, provider)
    assert read([message.raw], provider) == [message]


@given(histories())
def test_without_reasoning_only_reasoning_is_removed(given_history):
    provider, raws = given_history
    for message in read(raws, provider):
        left = without_reasoning(message)

        kept = [block._replace(at=()) for block in left.blocks if block.kind != "reasoning"]
        assert kept == [block._replace(at=()) for block in message.blocks if block.kind != "reasoning"]
        if kept and provider != "responses":
            assert all(block.kind != "reasoning" for block in left.blocks)


@given(histories(*PROVIDERS), providers)
def test_another_format_has_the_same_content_and_its_provider_accepts_it(given_history, provider):
    source, raws = given_history
    messages = read(raws, source)
    if any(finding.level == "error" for finding in check(messages, source)):
        return

    found = convert(messages, provider)

    sent = [message._replace(raw=bare(message.raw)) for message in found.messages]
    refused = {finding.code for finding in check(sent, provider) if finding.level == "error"}
    assert refused <= ({"no-messages"} if all(message.role == "system" for message in messages) else set())
    assert calls(found.messages) == calls(messages)
    assert exchanges(found.messages) == exchanges(messages)
    opening = (
        [found.system]
        if isinstance(found.system, str)
        else [p["text"] for p in (found.system or {}).get("parts", [])]
    )
    assert opening + texts(found.messages) == texts(messages)


@given(histories(*PROVIDERS), providers)
def test_there_and_back_is_the_same_conversation(given_history, provider):
    source, raws = given_history
    messages = [message for message in read(raws, source) if message.role != "system"]

    there = convert(messages, provider)
    back = convert(there.messages, source, system=there.system)

    assert {message.format for message in back.messages} <= {source}
    assert texts(back.messages) == texts(messages)
    assert calls(back.messages) == calls(messages)
    assert exchanges(back.messages) == exchanges(messages)
    assert roles(back.messages) == roles(messages)


@given(histories(*PROVIDERS), providers)
def test_meta_of_a_message_is_kept_in_another_format(given_history, provider):
    source, raws = given_history
    marked = [{**raw, "meta": {"protected": True}} for raw in raws]

    found = convert(read(marked, source), provider)

    assert all(message.raw["meta"] == {"protected": True} for message in found.messages)
    assert all("meta" not in bare(message.raw) for message in found.messages)


@given(histories())
def test_reading_the_newest_after_the_rest_is_reading_all(given_history):
    provider, raws = given_history
    whole = read(raws, provider)

    assert read(raws[len(raws) // 2 :], provider, after=whole[: len(raws) // 2]) == whole[len(raws) // 2 :]

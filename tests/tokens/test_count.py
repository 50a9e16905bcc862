"""Tokens of messages, conversations and sessions."""

from __future__ import annotations

import copy
import json

import pytest

from aether.errors import InvalidInput
from aether.messages import convert
from aether.tokens.count import (
    ANTHROPIC_TOOL_PROMPT_TOKENS,
    CALL_TOKENS,
    MESSAGE_TOKENS,
    message_tokens,
    system_tokens,
    tally,
    tools_tokens,
)
from aether.tokens.counters import session_tokens
from aether.tokens.images import PICTURE_TOKENS
from tests.tables import rows
from tests.tokens.test_images import encoded, png

PICTURE = encoded(png(750, 100), 90_000)
"""A hundred tokens of Anthropic's, in 120,000 characters."""


def cost(raw, wire):
    """Return the characters of `raw` that are read, without what is put around a message."""
    return message_tokens(convert.message(raw, wire), len) - MESSAGE_TOKENS


@rows(
    ("raw", "wire"),
    [
        ({"role": "user", "content": "hello"}, "plain"),
        ({"role": "user", "content": "hello", "meta": {"protected": True, "label": "a long label"}}, "plain"),
        ({"role": "user", "content": "hello"}, "anthropic"),
        ({"role": "user", "content": [{"type": "text", "text": "hello", "cache_control": {"type": "ephemeral"}}]}, "anthropic"),
        ({"role": "user", "content": [{"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}]}, "openai"),
        ({"role": "user", "content": "hell", "name": "o"}, "openai"),
        ({"role": "assistant", "content": None, "refusal": "hello"}, "openai"),
        ({"role": "assistant", "content": "lo", "reasoning_content": "hel"}, "openai"),
        ({"role": "user", "content": "hello"}, "responses"),
        ({"type": "message", "id": "msg_1", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}, "responses"),
        ({"type": "message", "status": "completed", "role": "assistant", "content": [{"type": "output_text", "text": "hello", "annotations": []}]}, "responses"),
        ({"role": "user", "parts": [{"text": "hello"}]}, "gemini"),
        ({"role": "model", "parts": [{"text": "hello", "thought": True}]}, "gemini"),
    ],
)  # fmt: skip
def test_text_costs_its_text_however_it_is_wrapped(raw, wire):
    assert cost(raw, wire) == len("hello")


@rows(
    ("raw", "wire"),
    [
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}}]}, "anthropic"),
        ({"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}}]}, "openai"),
        ({"type": "function_call", "id": "fc", "call_id": "", "name": "read", "arguments": '{"path":"a"}', "status": "completed"}, "responses"),
        ({"role": "model", "parts": [{"functionCall": {"name": "read", "args": {"path": "a"}}}]}, "gemini"),
    ],
)  # fmt: skip
def test_a_call_costs_its_name_its_arguments_and_how_it_is_addressed(raw, wire):
    assert cost(raw, wire) == CALL_TOKENS + len("read") + len('{"path":"a"}')


@rows(
    ("raw", "wire"),
    [
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "id", "content": "done", "is_error": False}]}, "anthropic"),
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "id", "content": [{"type": "text", "text": "done"}]}]}, "anthropic"),
        ({"role": "tool", "tool_call_id": "id", "content": "done"}, "openai"),
        ({"type": "function_call_output", "call_id": "id", "output": "done"}, "responses"),
        ({"type": "function_call_output", "call_id": "id", "output": [{"type": "input_text", "text": "done"}]}, "responses"),
    ],
)  # fmt: skip
def test_an_answer_costs_its_text_and_the_id_of_its_call(raw, wire):
    assert cost(raw, wire) == len("id") + len("done")


@rows(
    ("block", "tokens"),
    [
        ({"type": "thinking", "thinking": "so that", "signature": "S" * 3500}, len("so that")),
        ({"type": "thinking", "thinking": "", "signature": "S" * 3500}, 1000),
        ({"type": "redacted_thinking", "data": "S" * 3501}, 1001),
        ({"type": "thinking", "thinking": ""}, 0),
    ],
)
def test_sealed_reasoning_costs_by_its_length_where_its_text_is_not_shown(block, tokens):
    assert cost({"role": "assistant", "content": [block]}, "anthropic") == tokens


@rows(
    ("raw", "wire", "tokens"),
    [
        ({"role": "user", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}}]}, "anthropic", 100),
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "id", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}}]}]}, "anthropic", 102),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}]}, "openai", 85 + 2 * 170),
        ({"role": "user", "content": [{"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}"}]}, "responses", 85 + 2 * 170),
        ({"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": PICTURE}}]}, "gemini", 1120),
        ({"role": "user", "parts": [{"fileData": {"mimeType": "image/png", "fileUri": "gs://a"}}]}, "gemini", PICTURE_TOKENS),
    ],
)  # fmt: skip
def test_a_picture_costs_by_its_size_and_not_by_its_base64(raw, wire, tokens):
    assert cost(raw, wire) == tokens


def test_arguments_that_look_like_a_file_are_arguments():
    raw = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {"type": "file"}}],
    }

    assert cost(raw, "anthropic") == CALL_TOKENS + len("n") + len('{"type":"file"}')


def test_a_block_that_nobody_knows_costs_its_json():
    block = {"type": "brand_new", "amount": 12, "words": ["é"], "encrypted_content": "S" * 35}

    assert cost({"role": "user", "content": [block]}, "anthropic") == 10 + len(
        '{"type":"brand_new","amount":12,"words":["é"]}'
    )


def test_metadata_of_an_answer_costs_nothing():
    raw = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "end_turn",
        "usage": {"input_tokens": 7, "service_tier": "standard"}, "content": [{"type": "text", "text": "hello"}],
    }  # fmt: skip

    assert cost(raw, "anthropic") == len("hello")


def test_metadata_of_aether_costs_nothing():
    item = {"type": "brand_new", "n": 1}

    assert (
        cost({**item, "meta": {"label": "L"}}, "responses")
        == cost(item, "responses")
        == len(json.dumps(item)) - 3
    )


@rows(
    ("tools", "tokens"),
    [
        (None, 0),
        ([], 0),
        ([{"type": "function", "name": "now"}], len('[{"type":"function","name":"now"}]')),
        ({"functionDeclarations": []}, len('{"functionDeclarations":[]}')),
        (
            [{"name": "é", "input_schema": {}}],
            ANTHROPIC_TOOL_PROMPT_TOKENS + len('[{"name":"é","input_schema":{}}]'),
        ),
    ],
)
def test_tool_schemas_cost_their_json(tools, tokens):
    assert tools_tokens(tools, len) == tokens


@rows(
    "system",
    [
        "Be brief.",
        [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        ["Be ", "brief."],
        {"role": "system", "parts": [{"text": "Be brief."}]},
    ],
)
def test_a_system_prompt_costs_its_text(system):
    assert system_tokens(system, len) == MESSAGE_TOKENS + len("Be brief.")


@rows("system", [None, "", []])
def test_no_system_prompt_costs_nothing(system):
    assert system_tokens(system, len) == 0


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
    before = tally(raws, provider="anthropic", count=count)
    count.seen = 0
    raws.append({"role": "user", "content": [{"type": "text", "text": "one more"}]})

    after = tally(raws, provider="anthropic", count=count, before=before)

    assert count.seen == len("one more")
    assert after.total == before.total + after.tokens[-1]


def test_nothing_new_counts_nothing_and_is_the_same_tally():
    raws, count = conversation(5), Counting()
    before = tally(raws, provider="anthropic", count=count)
    count.seen = 0

    assert tally(copy.deepcopy(raws), provider="anthropic", count=count, before=before) is before
    assert count.seen == 0


def test_a_message_that_was_changed_in_place_is_counted_again():
    raws, count = conversation(9), Counting()
    before = tally(raws, provider="anthropic", count=count)
    raws[4]["content"][0]["text"] = "rewritten by the caller"
    count.seen = 0

    after = tally(raws, provider="anthropic", count=count, before=before)

    assert count.seen == characters(raws[4])
    assert after.messages[4].text == "rewritten by the caller"
    assert before.messages[4].text == "message 4"


@pytest.mark.parametrize("changed", [{"provider": "plain"}, {"count": lambda text: 7 * len(text)}])
def test_a_tally_by_another_counter_or_format_is_of_no_use(changed):
    raws = [{"role": "user", "content": "yes"}]
    settings = {"provider": "openai", "count": len}
    before = tally(raws, **settings)

    after = tally(raws, **settings | changed, before=before)

    assert after == tally(raws, **settings | changed)
    assert after != before


def test_a_message_with_too_many_levels_is_rejected_by_its_place():
    deep: dict[str, object] = {}
    for _ in range(10_000):
        deep = {"n": deep}
    given = [{"role": "user", "content": "hello"}, {"role": "user", "content": [deep]}]

    with pytest.raises(InvalidInput, match=r"messages\[1\]: the message is nested too deeply"):
        tally(given, provider="anthropic", count=len)


def test_a_tally_holds_copies():
    raws = [{"role": "user", "content": [{"type": "text", "text": "yes"}]}]
    found = tally(raws, provider="anthropic", count=len)

    raws[0]["content"].append({"type": "text", "text": "no"})

    assert (
        found.messages[0].raw
        == found.raws[0]
        == {"role": "user", "content": [{"type": "text", "text": "yes"}]}
    )


CALLED = {"role": "tool", "tool_call_id": "a", "content": "ok"}
SAID = {"role": "user", "content": "And now?"}


def test_without_a_format_the_messages_show_it():
    assert tally([SAID], provider=None, count=len).provider == "plain"
    assert tally([SAID, CALLED], provider=None, count=len).provider == "openai"


def test_a_conversation_turns_out_to_be_of_a_wire_when_that_shows():
    before = tally([SAID], provider=None, count=len)

    after = tally([SAID, CALLED], provider=None, count=len, before=before)

    assert after == tally([SAID, CALLED], provider="openai", count=len)


def test_a_session_is_counted_by_what_it_says_each_text_once():
    answer = {
        "id": "s", "session_id": "s", "summary": "Ja, genau.", "original_tokens": 9000, "metadata": {"note": "x" * 99},
        "key_decisions": [{"decision": "SQLite", "rationale": "Ja, genau."}],
        "high_value_items": [{"content": "SQLite", "relevance_score": 0.5, "type": "decision"}],
    }  # fmt: skip

    assert session_tokens(answer, len) == len("Ja, genau.") + len("SQLite")

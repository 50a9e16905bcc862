"""What a message costs: all that a model reads of it, in every provider's spelling, and nothing else."""

from __future__ import annotations

import json

from aether.messages import convert
from aether.tokens.count import (
    ANTHROPIC_TOOL_PROMPT_TOKENS,
    CALL_TOKENS,
    MESSAGE_TOKENS,
    message_tokens,
    system_tokens,
    tools_tokens,
)
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


def test_an_answer_of_gemini_costs_its_name_and_its_json():
    raw = {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "done"}}}]}

    assert cost(raw, "gemini") == len("read") + len('{"output":"done"}')


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


def test_sealed_reasoning_of_other_providers_costs_by_its_length():
    item = {
        "type": "reasoning",
        "id": "rs",
        "summary": [{"type": "summary_text", "text": "why"}],
        "encrypted_content": "S" * 35,
    }
    part = {"text": "yes", "thoughtSignature": "S" * 35}

    assert cost(item, "responses") == len("why") + 10
    assert cost({"role": "model", "parts": [part]}, "gemini") == len("yes") + 10


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


def test_a_picture_inside_what_nobody_knows_is_still_a_picture():
    shown = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PICTURE}"}
    item = {"type": "computer_call_output", "call_id": "c", "output": shown}
    response = {
        "name": "look",
        "response": {"shots": [{"inlineData": {"mimeType": "image/png", "data": PICTURE}}]},
    }

    assert cost(item, "responses") == 425 + len('{"type":"computer_call_output","call_id":"c","output":null}')
    assert cost({"role": "user", "parts": [{"functionResponse": response}]}, "gemini") == 1120 + len(
        'look{"shots":[null]}'
    )


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


def test_what_an_answer_of_the_provider_says_about_itself_is_not_sent_and_costs_nothing():
    raw = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "end_turn",
        "usage": {"input_tokens": 7, "service_tier": "standard"}, "content": [{"type": "text", "text": "hello"}],
    }  # fmt: skip

    assert cost(raw, "anthropic") == len("hello")


@rows("content", [None, 7, True, [], {}, [None, 7], "", [{"type": None}], [{"type": 7, "n": 1}]])
@rows("wire", ["anthropic", "openai", "responses", "gemini", "plain"])
def test_odd_content_costs_nothing_and_breaks_nothing(content, wire):
    key = "parts" if wire == "gemini" else "content"

    assert cost({"role": "user", key: content}, wire) == 0


def test_what_aether_notes_on_a_message_costs_nothing():
    item = {"type": "brand_new", "n": 1}

    assert (
        cost({**item, "meta": {"label": "L"}}, "responses")
        == cost(item, "responses")
        == len(json.dumps(item)) - 3
    )


def test_a_message_costs_what_is_put_around_it():
    assert message_tokens(convert.message({"role": "user", "content": ""}, "openai"), len) == MESSAGE_TOKENS


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


def test_what_cannot_be_json_is_counted_as_its_words():
    """Callers put dates and paths into arguments before their client writes them."""
    raw = {"role": "model", "parts": [{"functionCall": {"name": "n", "args": {"at": {1}}}}]}

    assert cost(raw, "gemini") == CALL_TOKENS + len("n") + len(
        json.dumps({"at": "{1}"}, separators=(",", ":"))
    )

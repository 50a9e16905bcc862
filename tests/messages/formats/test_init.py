import pytest

from aether.errors import InvalidInput
from aether.messages.convert import bare, convert, message, new_message, read, with_text, without_reasoning
from tests.tables import rows

USE = {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}


def test_the_wire_is_told_from_the_messages_or_given():
    raws = [{"role": "assistant", "content": [USE]}]

    assert read(raws)[0].wire == "anthropic"
    assert read(raws, "plain")[0].wire == "plain"
    assert message(raws[0], "anthropic") == read(raws)[0]


@rows("act", [read, lambda raws, wire: new_message("user", "Hi", wire), lambda raws, wire: convert([], wire)])
def test_there_are_five_wires(act):
    with pytest.raises(
        InvalidInput, match=r"'cohere' is no wire\. Use one of anthropic, openai, responses, gemini, plain"
    ):
        act([], "cohere")


def test_what_is_no_object_is_no_message():
    with pytest.raises(InvalidInput, match=r"messages\[1\]: 'Hi' is no message"):
        read([{"role": "user", "content": "Hi"}, "Hi"], "plain")


def test_arguments_are_rewritten_as_an_object_or_as_json():
    held = message({"role": "assistant", "content": [USE]}, "anthropic")
    function = {"name": "f", "arguments": '{"a":1}'}
    text = message({"role": "assistant", "tool_calls": [{"id": "c", "function": function}]}, "openai")

    assert with_text(held, 0, '{"a": 2}').raw["content"][0]["input"] == {"a": 2}
    assert with_text(text, 0, '{"a": 2}').raw["tool_calls"][0]["function"]["arguments"] == '{"a": 2}'
    assert USE["input"] == {"a": 1}
    for wrong in ("{torn", "[1]"):
        with pytest.raises(InvalidInput, match="no JSON object"):
            with_text(held, 0, wrong)


@rows(("text", "written"), [('{"input": "new"}', "new"), ("new", "new"), ('{"b": 1}', '{"b": 1}')])
def test_free_text_of_a_call_is_rewritten_as_text(text, written):
    custom = message({"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "old"}, "responses")

    assert with_text(custom, 0, text).raw["input"] == written


def test_several_texts_of_a_result_become_one_and_its_picture_stays():
    image = {"type": "image", "source": {}}
    content = [{"type": "text", "text": "a"}, image, {"type": "text", "text": "b"}]
    answer = message(
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": content}]},
        "anthropic",
    )

    new = with_text(answer, 0, "short")

    assert new.raw["content"][0]["content"] == [{"type": "text", "text": "short"}, image]
    assert [block.text for block in new.blocks] == ["short", ""]


def test_an_object_that_answered_says_a_text_under_one_key():
    [answer] = read([{"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"a": 1}}}]}])

    new = with_text(answer, 0, '{"b": 2}')

    assert new.raw["parts"][0]["functionResponse"]["response"] == {"output": '{"b": 2}'}
    assert (new.blocks[0].text, new.blocks[0].call_id) == ('{"b": 2}', "f#1")


@pytest.mark.parametrize("block", [{"type": "thinking", "thinking": "Hm."}, {"type": "image", "source": {}}])
def test_what_has_no_text_of_its_own_is_not_rewritten(block):
    with pytest.raises(InvalidInput, match=r"blocks\[0\]: a block of kind"):
        with_text(message({"role": "assistant", "content": [block]}, "anthropic"), 0, "new")


def test_ids_that_were_made_stay_when_reasoning_goes():
    parts = [{"text": "Hm.", "thought": True}, {"functionCall": {"name": "f", "args": {}}}]
    raws = [{"role": "model", "parts": [parts[1]]}, {"role": "model", "parts": parts}]

    found = without_reasoning(read(raws, "gemini")[1])

    assert [(block.kind, block.call_id) for block in found.blocks] == [("call", "f#2")]
    assert without_reasoning(found) is found


def test_what_is_ours_is_not_sent():
    raw = {"role": "user", "content": "Hi"}

    assert bare({**raw, "meta": {}}) == raw
    assert bare(raw) is raw

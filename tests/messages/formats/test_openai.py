import pytest

from aether.errors import InvalidInput
from aether.messages.model import Block
from aether.messages.providers import openai
from aether.messages.turns import Answer, Turn
from tests.tables import rows


def blocks(**raw):
    return openai.message({"role": "assistant", **raw}).blocks


def test_calls_stand_beside_the_content():
    function = {"name": "f", "arguments": '{"a":1}'}

    [call] = blocks(content=None, tool_calls=[{"id": "c1", "type": "function", "function": function}])

    assert call == Block("call", '{"a":1}', ("tool_calls", 0, "function", "arguments"), "c1", "f", {"a": 1})


def test_arguments_may_be_broken_or_free_text():
    broken = {"id": "c", "function": {"name": "f", "arguments": "{torn"}}
    custom = {"id": "c", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}

    first, second = blocks(content="", tool_calls=[broken, custom])[1:]

    assert (first.text, first.arguments) == ("{torn", {"input": "{torn"})
    assert (second.arguments, second.at[-1]) == ({"input": "*** Begin"}, "input")


def test_content_is_text_parts_or_nothing():
    assert blocks(content="Hi") == (Block("text", "Hi", ("content",)),)
    parts = [
        {"type": "text", "text": "a"},
        {"type": "refusal", "refusal": "No."},
        {"type": "image_url"},
        "b",
        {"type": 1},
    ]
    assert [block.kind for block in blocks(content=parts)] == ["text", "text", "media", "other", "other"]
    assert [block.text for block in blocks(content=None, refusal="No.")] == ["No."]
    assert [block.kind for block in blocks(content=7)] == ["other"]
    assert [block.kind for block in blocks(content=None, tool_calls="x")] == ["other"]
    assert [block.kind for block in blocks(content=None, tool_calls=["x"])] == ["other"]


def test_reasoning_is_read_once_in_whichever_spelling():
    assert blocks(content="Hi", reasoning_content="Hm.")[0] == Block("reasoning", "Hm.")
    both = blocks(content="Hi", reasoning="Hm.", reasoning_details=[{"text": "Hm."}])
    assert [block.text for block in both] == ["Hm.", "Hi"]
    assert blocks(content="Hi", thinking_blocks=[{}])[0] == Block("reasoning")


def test_results_and_old_functions_are_tool_messages():
    tool = openai.message({"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "ok"}]})
    old = openai.message({"role": "function", "name": "f", "content": "ok"})

    assert tool.blocks == (Block("result", "ok", ("content", 0, "text"), "c1"),)
    assert old.blocks == (Block("result", "ok", ("content",), "", "f"),)
    assert tool.role == old.role == "tool"
    [call] = blocks(content=None, function_call={"name": "f", "arguments": "{}"})
    assert (call.tool, call.at) == ("f", ("function_call", "arguments"))


@rows(("role", "read"), [("developer", "system"), ("robot", "user"), ([], "user")])
def test_roles_are_known_or_the_users(role, read):
    assert openai.message({"role": role, "content": "Hi"}).role == read


def test_reasoning_goes_unless_nothing_else_is_there():
    assert openai.without_reasoning({"content": "Hi", "reasoning": "Hm"}) == {"content": "Hi"}
    for raw in ({"content": None, "reasoning": "Hm"}, {"content": "Hi"}):
        assert openai.without_reasoning(raw) is raw


def test_a_tool_says_nothing_without_a_call():
    with pytest.raises(InvalidInput, match="needs a call"):
        openai.said("tool", "ok")


def test_a_turn_is_written_with_one_message_for_each_answer():
    call = Block("call", "", (), "c1", "f")
    answer = Answer(Block("result", "ok", (), "c1", "f"), [])

    said, answered = openai.written(Turn("assistant", [call], [answer], {}))

    function = {"name": "f", "arguments": "{}"}
    assert said == {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }
    assert answered == {"role": "tool", "tool_call_id": "c1", "content": "ok"}
    [rule] = openai.written(
        Turn("system", [Block("text", "a"), {"type": "image_url"}], [], {}, developer=True)
    )
    assert rule == {"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]}

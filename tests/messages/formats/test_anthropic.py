import pytest

from aether.errors import InvalidInput
from aether.messages.model import Block
from aether.messages.providers import anthropic
from aether.messages.turns import Answer, Turn
from tests.tables import rows


def kinds(content, role="assistant"):
    return [block.kind for block in anthropic.message({"role": role, "content": content}).blocks]


def test_a_message_is_text_or_blocks():
    assert anthropic.message({"role": "user", "content": "Hi"}).blocks == (Block("text", "Hi", ("content",)),)
    [block] = anthropic.message({"role": "user", "content": [{"type": "text", "text": "Hi"}]}).blocks
    assert (block.text, block.at) == ("Hi", ("content", 0, "text"))


def test_results_alone_make_a_tool_message():
    answer = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}

    assert anthropic.message({"role": "user", "content": [answer]}).role == "tool"
    assert (
        anthropic.message({"role": "user", "content": [answer, {"type": "text", "text": "and"}]}).role
        == "user"
    )
    assert anthropic.message({"role": "user", "content": []}).role == "user"
    assert anthropic.message({"role": "assistant", "content": [answer]}).role == "assistant"


def test_what_servers_run_stands_in_the_message_that_called():
    found = anthropic.message(
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Look.", "signature": "s"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "s1",
                    "content": [{"type": "web_search_result"}],
                },
                {"type": "text", "text": "Found."},
            ],
        }
    )

    assert [block.kind for block in found.blocks] == ["reasoning", "reasoning", "call", "result", "text"]
    assert found.blocks[0].text == "Look."
    assert found.blocks[2].call_id == found.blocks[3].call_id == "s1"
    assert found.blocks[3].at == ()


def test_missing_content_of_a_result_is_an_empty_answer():
    [block] = anthropic.message(
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}
    ).blocks

    assert block == Block("result", "", (), "t")


def test_media_and_unknown_blocks_are_told_apart():
    assert kinds([{"type": "image", "source": {}}, {"type": "container_upload"}]) == ["media", "media"]
    assert kinds([{"type": "new"}, "text", 7, None, {"type": "text"}]) == ["other"] * 5
    assert kinds(None) == []
    assert kinds(7) == kinds({"type": "text", "text": "a"}) == ["other"]


@rows(("role", "read"), [("system", "system"), ("robot", "user"), (None, "user")])
def test_roles_are_known_or_the_users(role, read):
    assert anthropic.message({"role": role, "content": "Hi"}).role == read


def test_reasoning_goes_unless_nothing_else_is_there():
    thought, text = {"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "Hi"}

    assert anthropic.without_reasoning({"role": "a", "content": [thought, text]}) == {
        "role": "a",
        "content": [text],
    }
    for raw in ({"content": [thought]}, {"content": [text]}, {"content": "Hi"}):
        assert anthropic.without_reasoning(raw) is raw


def test_a_tool_says_nothing_without_a_call():
    with pytest.raises(InvalidInput, match="needs a call"):
        anthropic.said("tool", "ok")


def test_a_turn_is_written_with_its_answers_in_one_message():
    call = Block("call", '{"a": 1}', (), "c1", "f", {"a": 1})
    image = {"type": "image", "source": {"type": "url", "url": "u"}}
    answers = [
        Answer(Block("result", "", (), "c1", "f"), [image]),
        Answer(Block("result", "broke", (), "c2", "f", is_error=True), []),
        Answer(Block("result", "see", (), "c3"), [image]),
    ]

    said, answered = anthropic.written(Turn("assistant", [Block("text", "Go."), call], answers, {}))

    assert said["content"] == [
        {"type": "text", "text": "Go."},
        {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
    ]
    assert answered["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": [image]},
        {"type": "tool_result", "tool_use_id": "c2", "content": "broke", "is_error": True},
        {"type": "tool_result", "tool_use_id": "c3", "content": [{"type": "text", "text": "see"}, image]},
    ]
    assert anthropic.written(Turn("user", [image], [], {"label": "x"})) == [
        {"role": "user", "content": [image], "meta": {"label": "x"}}
    ]

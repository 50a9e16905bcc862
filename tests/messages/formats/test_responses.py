import pytest

from aether.errors import InvalidInput
from aether.messages.model import Block
from aether.messages.providers import responses
from aether.messages.turns import Answer, Turn
from tests.tables import rows


def test_messages_have_a_role_and_need_no_type():
    easy = responses.message({"role": "user", "content": "Hi"})
    full = responses.message(
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Hi"}],
            "id": "m",
        }
    )

    assert (easy.role, easy.text) == ("user", "Hi")
    assert (full.role, full.blocks[0].at) == ("assistant", ("content", 0, "text"))
    assert responses.message({"role": "developer", "content": None}).blocks == ()
    assert responses.message({"role": "user", "content": 7}).blocks[0].kind == "other"


@rows(
    ("raw", "tool", "arguments"),
    [
        ({"type": "function_call", "name": "f", "arguments": '{"a":1}'}, "f", {"a": 1}),
        (
            {"type": "custom_tool_call", "name": "patch", "input": "*** Begin"},
            "patch",
            {"input": "*** Begin"},
        ),
        ({"type": "local_shell_call", "action": {"command": ["ls"]}}, "local_shell", {"command": ["ls"]}),
        ({"type": "apply_patch_call", "operation": {"path": "a"}}, "apply_patch", {"path": "a"}),
        ({"type": "brand_new_call", "name": "n"}, "n", {}),
    ],
)
def test_whatever_has_a_call_id_is_a_call(raw, tool, arguments):
    found = responses.message({"call_id": "c1", **raw})

    [call] = found.blocks
    assert (found.role, call.kind, call.call_id) == ("assistant", "call", "c1")
    assert (call.tool, dict(call.arguments)) == (tool, arguments)


def test_outputs_are_text_or_lists_or_pictures():
    def blocks(output, kind="function_call_output"):
        found = responses.message({"type": kind, "call_id": "c1", "output": output})
        assert found.role == "tool"
        return found.blocks

    assert blocks("ok") == (Block("result", "ok", ("output",), "c1"),)
    assert blocks([{"type": "input_text", "text": "ok"}])[0].at == ("output", 0, "text")
    assert blocks([{"stdout": "ok"}], "shell_call_output")[0].text == '[{"stdout": "ok"}]'
    shot = blocks({"type": "computer_screenshot", "image_url": "u"}, "computer_call_output")
    assert [block.kind for block in shot] == ["result", "media"]
    assert blocks("ok", "brand_new_call_output")[0].text == "ok"


def test_what_a_server_ran_is_answered_in_its_item():
    call, answer = responses.message(
        {"type": "mcp_call", "id": "m1", "name": "find", "arguments": "{}", "output": "found"}
    ).blocks

    assert (call.kind, answer.kind, answer.text) == ("call", "result", "found")
    assert call.call_id == answer.call_id == "m1"


def test_reasoning_is_its_summary_and_the_rest_is_kept_as_json():
    item = {
        "type": "reasoning",
        "id": "r",
        "summary": [{"type": "summary_text", "text": "Hm."}],
        "content": None,
    }

    assert responses.message(item).blocks == (Block("reasoning", "Hm."),)
    assert responses.without_reasoning(item) is item
    for kind in ("item_reference", "compaction", "web_search_call"):
        assert [block.kind for block in responses.message({"type": kind, "id": "x"}).blocks] == ["other"]


def test_a_tool_says_nothing_without_a_call():
    with pytest.raises(InvalidInput, match="needs a call"):
        responses.said("tool", "ok")


def test_a_turn_is_written_item_by_item():
    image = {"type": "input_image", "image_url": "u"}
    pieces = [Block("text", "a"), Block("call", "{}", (), "c1", "f"), Block("text", "b"), Block("text", "c")]
    answers = [
        Answer(Block("result", "ok", (), "c1"), []),
        Answer(Block("result", "see", (), "c2"), [image]),
        Answer(Block("result", "", (), "c3"), [image]),
    ]

    items = responses.written(Turn("assistant", pieces, answers, {}))

    assert items[0] == {"role": "assistant", "content": "a"}
    assert items[1] == {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
    assert [part["text"] for part in items[2]["content"]] == ["b", "c"]
    assert [item["output"] for item in items[3:]] == [
        "ok",
        [{"type": "input_text", "text": "see"}, image],
        [image],
    ]
    [asked] = responses.written(Turn("user", [Block("text", "a"), image], [], {"label": "x"}))
    assert asked == {
        "role": "user",
        "content": [{"type": "input_text", "text": "a"}, image],
        "meta": {"label": "x"},
    }

from aether.messages.model import Block
from aether.messages.providers import responses
from aether.messages.turns import Answer, Turn
from tests.messages.repairs import faults_of, require_repaired
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


def test_a_call_that_a_server_ran_has_its_result_in_the_same_item():
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


def test_a_turn_is_written_item_by_item():
    image = {"type": "input_image", "image_url": "u"}
    pieces = [Block("text", "a"), Block("call", "{}", (), "c1", "f"), Block("text", "b"), Block("text", "c")]
    answers = [
        Answer(Block("result", "ok", (), "c1"), []),
        Answer(Block("result", "see", (), "c2"), [image]),
        Answer(Block("result", "", (), "c3"), [image]),
    ]

    items = responses.write(Turn("assistant", pieces, answers, {}))

    assert items[0] == {"role": "assistant", "content": "a"}
    assert items[1] == {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
    assert [part["text"] for part in items[2]["content"]] == ["b", "c"]
    assert [item["output"] for item in items[3:]] == [
        "ok",
        [{"type": "input_text", "text": "see"}, image],
        [image],
    ]
    [asked] = responses.write(Turn("user", [Block("text", "a"), image], [], {"label": "x"}))
    assert asked == {
        "role": "user",
        "content": [{"type": "input_text", "text": "a"}, image],
        "meta": {"label": "x"},
    }


USER = {"role": "user", "content": "Go."}


SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}


REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}


def call(key="a", **fields):
    return {"type": "function_call", "call_id": key, "name": "read", "arguments": "{}", **fields}


def output(key="a", **fields):
    return {"type": "function_call_output", "call_id": key, "output": "ok", **fields}


def reported(*raws, level="error"):
    return [(found.code, found.where) for found in faults_of("responses", raws) if found.level == level]


def test_items_by_the_rules_are_refused_for_nothing():
    raws = [
        {"role": "developer", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "Go."}, {"type": "input_image", "file_id": "f"}],
        },
        REASONING,
        call("a"),
        call("b"),
        output("b"),
        output("a", output=[{"type": "input_text", "text": "ok"}]),
        {"type": "custom_tool_call", "call_id": "c", "name": "x", "input": "y"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "z"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "item_reference", "id": "msg_9"},
        SAID,
        {"type": "compaction", "encrypted_content": "x"},
    ]

    assert list(faults_of("responses", raws)) == []


@rows("more", [[], [output("b")], [SAID], [call("c"), output("b"), output("c")]])
def test_calls_that_wait_at_the_end_are_dangling(more):
    raws = [USER, call("a"), call("b"), *more]

    assert reported(*raws) == []
    assert ("dangling-call", "input[1]") in reported(*raws, level="warning")


DONE = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Done."}],
}


GIVEN = {"type": "input_text", "text": "Hi."}


def spoken(*parts, role="user"):
    return {"role": role, "content": list(parts)}


def without(raw, key):
    return {name: value for name, value in raw.items() if name != key}


@rows(
    ("raws", "expected", "codes"),
    [
        ([USER, output()], [USER], ["orphan-result"]),
        ([call(), USER], [USER], ["missing-result"]),
        ([call(), output(), output(), USER], [call(), output(), USER], ["repeated-result"]),
        ([output(), USER, call(), USER], [USER, call(), output(), USER], ["interleaved-result"]),
        ([REASONING, call(), USER], [USER], ["missing-result", "dangling-reasoning"]),
        ([REASONING, {**REASONING, "id": "rs_2"}], [], ["dangling-reasoning", "dangling-reasoning"]),
        (
            [call(), call(), output(output="2"), output(output="1")],
            [call(), call("a_2"), output("a_2", output="2"), output(output="1")],
            ["repeated-id"],
        ),
        ([call("x" * 65), output("x" * 65)], [call("x" * 64), output("x" * 64)], ["bad-id"]),
        ([DONE, DONE], [DONE, without(DONE, "id")], ["repeated-id"]),
        ([REASONING, DONE, REASONING, call()], [REASONING, DONE, call()], ["repeated-id"]),
        ([{**USER, "meta": {}}], [USER], ["unknown-field"]),
        ([{**USER, "type": None}], [USER], ["bad-block"]),
        ([{"content": "Hi."}, USER], [USER], ["bad-block"]),
        ([call(None), USER], [USER], ["bad-id"]),
        ([{"type": "reasoning", "id": "rs_1"}, DONE], [REASONING, DONE], ["bad-block"]),
        ([{"type": "item_reference"}, USER], [USER], ["bad-id"]),
        ([call(name="a b"), output()], [call(name="a_b"), output()], ["bad-name"]),
        ([call(arguments={"a": 1}), output()], [call(arguments='{"a": 1}'), output()], ["bad-arguments"]),
        ([call(arguments=None), USER], [USER], ["bad-arguments"]),
        ([call(), output(output=None)], [call(), output(output="")], ["empty-content"]),
        ([call(), output(output={"a": "ü"})], [call(), output(output='{"a": "ü"}')], ["empty-content"]),
        ([{"role": "ai", "content": "Hi."}], [{"role": "assistant", "content": "Hi."}], ["bad-role"]),
        ([without(DONE, "role")], [DONE], ["bad-role"]),
        ([{"role": "user", "content": None}, USER], [USER], ["empty-content"]),
        ([spoken(), {"role": "user", "content": GIVEN}], [spoken(), spoken(GIVEN)], ["bad-block"]),
        (
            [spoken("Hi.", {"text": "Hi."}, {"type": "output_text", "text": "Hi."})],
            [spoken(GIVEN, GIVEN, GIVEN)],
            ["bad-block", "bad-block", "wrong-role"],
        ),
        (
            [spoken(GIVEN, 7, {"type": "input_text"}, {"type": "refusal", "refusal": "No."})],
            [spoken(GIVEN)],
            ["bad-block", "bad-block", "wrong-role"],
        ),
    ],
)
def test_messages_that_the_api_refuses_are_repaired(raws, expected, codes):
    require_repaired("responses", raws, expected, codes)

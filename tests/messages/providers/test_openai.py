from aether.messages.model import Block
from aether.messages.providers import openai
from aether.messages.turns import Answer, Turn
from tests.messages.repairs import faults_of, repaired, require_repaired
from tests.tables import rows


def blocks(**raw):
    return openai.message({"role": "assistant", **raw}).blocks


def test_calls_are_beside_the_content():
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


def test_reasoning_is_read_once_from_any_of_its_keys():
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


def test_a_turn_is_written_with_one_message_for_each_answer():
    call = Block("call", "", (), "c1", "f")
    answer = Answer(Block("result", "ok", (), "c1", "f"), [])

    said, answered = openai.write(Turn("assistant", [call], [answer], {}))

    function = {"name": "f", "arguments": "{}"}
    assert said == {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }
    assert answered == {"role": "tool", "tool_call_id": "c1", "content": "ok"}
    [rule] = openai.write(Turn("system", [Block("text", "a"), {"type": "image_url"}], [], {}, developer=True))
    assert rule == {"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]}


USER = {"role": "user", "content": "Go."}


DONE = {"role": "assistant", "content": "Done."}


TEXT = {"type": "text", "text": "Hi."}


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}


def call(key="a", name="read", arguments="{}", **fields):
    return {"id": key, "type": "function", "function": {"name": name, "arguments": arguments}, **fields}


def calling(*calls, content=None):
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def answer(key="a", content="ok"):
    return {"role": "tool", "tool_call_id": key, "content": content}


@rows(
    ("raws", "expected", "codes"),
    [
        ([calling(call()), USER, answer()], [calling(call()), answer(), USER], ["interleaved-result"]),
        ([USER, answer()], [USER], ["orphan-result"]),
        # Beside the content.
        (
            [
                {"role": "user", "content": "Go.", "name": "a b"},
                {"role": "user", "content": "Go.", "name": ""},
            ],
            [{"role": "user", "content": "Go.", "name": "a_b"}, USER],
            ["bad-name", "bad-name"],
        ),
        (
            [
                {
                    "role": "assistant",
                    "content": "Done.",
                    "refusal": 7,
                    "audio": {},
                    "function_call": {"name": 7},
                }
            ],
            [{"role": "assistant", "content": "Done."}],
            ["bad-block", "bad-block", "bad-arguments"],
        ),
        ([calling(call()), answer(), answer()], [calling(call()), answer()], ["repeated-result"]),
        (
            [calling(call(), content="Look."), USER],
            [{"role": "assistant", "content": "Look."}, USER],
            ["missing-result"],
        ),
        ([calling(call()), USER], [USER], ["missing-result"]),
        (
            [calling(call("a"), call("b")), answer("b"), USER],
            [calling(call("b")), answer("b"), USER],
            ["missing-result"],
        ),
        (
            [calling(call(), call()), answer(content="2"), answer(content="1")],
            [calling(call(), call("a_2")), answer("a", "2"), answer("a_2", "1")],
            ["repeated-id"],
        ),
        (
            [calling(call("x" * 41)), answer("x" * 41)],
            [calling(call("x" * 40)), answer("x" * 40)],
            ["bad-id"],
        ),
        ([{**USER, "role": "human", "meta": {}}], [USER], ["bad-role", "unknown-field"]),
        ([{**USER, "tool_calls": [call()]}], [USER], ["wrong-role"]),
        ([{**DONE, "tool_calls": None}], [DONE], ["empty-calls"]),
        ([{**DONE, "tool_calls": ["read"]}], [DONE], ["bad-id"]),
        ([{**DONE, "tool_calls": [call(name=None)]}], [DONE], ["bad-name"]),
        ([{**DONE, "tool_calls": [call(function="read")]}], [DONE], ["bad-arguments"]),
        ([{**DONE, "tool_calls": [call(arguments=None)]}], [DONE], ["bad-arguments"]),
        ([USER, calling(call(name="a b"))], [USER, calling(call(name="a_b"))], ["bad-name"]),
        (
            [USER, calling(call(arguments={"a": 1}))],
            [USER, calling(call(arguments='{"a": 1}'))],
            ["bad-arguments"],
        ),
        ([{"role": "tool", "content": "ok"}, USER], [USER], ["bad-id"]),
        ([{"role": "user", "content": None}, USER], [USER], ["empty-content"]),
        ([{"role": "user", "content": 7}, USER], [USER], ["bad-block", "empty-content"]),
        ([{"role": "user", "content": TEXT}], [{"role": "user", "content": [TEXT]}], ["bad-block"]),
        (
            [{"role": "user", "content": ["Hi.", {"text": "Hi."}, 7, {"type": "text"}]}],
            [{"role": "user", "content": [TEXT, TEXT]}],
            ["bad-block", "bad-block", "bad-block", "bad-block"],
        ),
        (
            [{"role": "system", "content": [TEXT, IMAGE]}],
            [{"role": "system", "content": [TEXT]}],
            ["wrong-role"],
        ),
        ([calling(call()), answer(content=None)], [calling(call()), answer(content="")], ["empty-content"]),
        ([USER, {**calling(call()), "content": []}], [USER, calling(call())], ["empty-content"]),
    ],
)
def test_messages_that_the_api_refuses_are_repaired(raws, expected, codes):
    require_repaired("openai", raws, expected, codes)


@rows(
    "raws",
    [
        [],
        [USER, calling(call("a"), call("b")), answer("b")],
        [calling(call()), answer(), calling(call()), answer(), USER],
        [{"role": "user", "content": [TEXT, IMAGE], "reasoning_content": "Hm."}],
        [{"role": "user", "content": "Hi.", "tool_calls": None}],
        [calling({"id": "a", "type": "custom", "custom": {"name": "x", "input": ""}}), answer()],
        [
            {"role": "assistant", "content": None, "refusal": "No."},
            {"role": "function", "name": "x", "content": "y"},
        ],
    ],
)
def test_messages_that_the_api_accepts_are_unchanged(raws):
    done = repaired("openai", raws)

    assert all(after is before for after, before in zip(done.raws, raws, strict=True))
    assert done.findings == []


def reported(*raws, level="error"):
    return [(found.code, found.where) for found in faults_of("openai", raws) if found.level == level]


def test_a_conversation_by_the_rules_is_refused_for_nothing():
    raws = [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]},
        {"role": "user", "content": [IMAGE, {"type": "text", "text": "What is it?"}], "name": "ann"},
        calling(call("a"), {"id": "b", "type": "custom", "custom": {"name": "x", "input": "y"}}),
        answer("b", ""),
        answer("a", [{"type": "text", "text": "ok"}]),
        {"role": "assistant", "content": None, "refusal": "No."},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
    ]

    assert list(faults_of("openai", raws)) == []


def test_calls_that_wait_at_the_end_are_dangling():
    raws = [USER, calling(call("a"), call("b")), answer("a")]

    assert reported(*raws) == []
    assert reported(*raws, level="warning") == [("dangling-call", "messages[1].tool_calls[1]")]

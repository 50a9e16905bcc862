import pytest

from aether.messages.model import Block
from aether.messages.providers import openai
from aether.messages.providers.openai import findings, repaired
from aether.messages.turns import Answer, Turn
from tests.messages.repairs import require_repaired
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
        ([calling(call()), answer(), answer()], [calling(call()), answer()], ["orphan-result"]),
        (
            [calling(call(), content="Look."), USER],
            [{"role": "assistant", "content": "Look."}, USER],
            ["missing-result"],
        ),
        ([calling(call()), USER], [USER], ["missing-result", "empty-content"]),
        (
            [calling(call("a"), call("b")), answer("b"), USER],
            [calling(call("b")), answer("b"), USER],
            ["missing-result"],
        ),
        (
            [calling(call(), call()), answer(content="2"), answer(content="1")],
            [calling(call(), call("a_2")), answer("a_2", "2"), answer("a", "1")],
            ["repeated-id"],
        ),
        (
            [calling(call("x" * 41)), answer("x" * 41)],
            [calling(call("x" * 40)), answer("x" * 40)],
            ["repeated-id"],
        ),
        ([{**USER, "role": "human", "meta": {}}], [USER], ["bad-role", "unknown-field"]),
        ([{**USER, "tool_calls": [call()]}], [USER], ["empty-calls"]),
        ([{**DONE, "tool_calls": None}], [DONE], ["empty-calls"]),
        ([{**DONE, "tool_calls": ["read"]}], [DONE], ["bad-id"]),
        ([{**DONE, "tool_calls": [call(name=None)]}], [DONE], ["bad-block"]),
        ([{**DONE, "tool_calls": [call(function="read")]}], [DONE], ["bad-block"]),
        ([{**DONE, "tool_calls": [call(arguments=None)]}], [DONE], ["bad-block"]),
        ([USER, calling(call(name="a b"))], [USER, calling(call(name="a_b"))], ["bad-name"]),
        (
            [USER, calling(call(arguments={"a": 1}))],
            [USER, calling(call(arguments='{"a": 1}'))],
            ["bad-arguments"],
        ),
        ([{"role": "tool", "content": "ok"}, USER], [USER], ["bad-id"]),
        ([{"role": "user", "content": None}, USER], [USER], ["empty-content"]),
        ([{"role": "user", "content": 7}, USER], [USER], ["empty-content", "empty-content"]),
        ([{"role": "user", "content": TEXT}], [{"role": "user", "content": [TEXT]}], ["bad-block"]),
        (
            [{"role": "user", "content": ["Hi.", {"text": "Hi."}, 7, {"type": "text"}]}],
            [{"role": "user", "content": [TEXT, TEXT]}],
            ["bad-block", "bad-block", "bad-block"],
        ),
        (
            [{"role": "system", "content": [TEXT, IMAGE]}],
            [{"role": "system", "content": [TEXT]}],
            ["wrong-role", "bad-block"],
        ),
        ([calling(call()), answer(content=None)], [calling(call()), answer(content="")], ["empty-content"]),
        ([USER, {**calling(call()), "content": []}], [USER, calling(call())], ["empty-content"]),
    ],
)
def test_messages_that_the_api_refuses_are_repaired(raws, expected, codes):
    require_repaired(openai, raws, expected, codes)


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
    done = repaired(raws)

    assert all(after is before for after, before in zip(done.raws, raws, strict=True))
    assert done.findings == []


def reported(*raws, level="error"):
    return [(found.code, found.where) for found in findings(raws) if found.level == level]


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

    assert list(findings(raws)) == []


@rows(
    ("raw", "code", "where"),
    [
        ({"role": "model", "content": "Hi."}, "bad-role", ""),
        ({"content": "Hi."}, "bad-role", ""),
        ({"role": "user", "content": "Hi.", "meta": {}}, "unknown-field", ""),
        ({"role": "user", "content": None}, "empty-content", ""),
        ({"role": "assistant", "content": None, "refusal": None}, "empty-content", ""),
        ({"role": "user", "content": []}, "empty-content", ""),
        ({"role": "user", "content": 7}, "bad-block", ""),
        ({"role": "user", "content": ["Hi."]}, "bad-block", ".content[0]"),
        ({"role": "user", "content": [{"type": "text", "text": None}]}, "bad-block", ".content[0]"),
        ({"role": "assistant", "content": [IMAGE]}, "wrong-role", ".content[0]"),
        ({"role": "user", "content": "Hi.", "tool_calls": [call()]}, "wrong-role", ""),
        ({**DONE, "tool_calls": []}, "empty-calls", ".tool_calls"),
        ({**DONE, "tool_calls": None}, "empty-calls", ".tool_calls"),
        ({**DONE, "tool_calls": ["read"]}, "bad-block", ".tool_calls[0]"),
        (calling(call("x" * 41)), "bad-id", ".tool_calls[0]"),
        (calling(call(None)), "bad-id", ".tool_calls[0]"),
        (calling(call(), call()), "repeated-id", ".tool_calls[1]"),
        (calling(call(name="a b")), "bad-name", ".tool_calls[0]"),
        (calling(call(arguments={})), "bad-arguments", ".tool_calls[0]"),
        (calling(call(type=None)), "bad-block", ".tool_calls[0]"),
        (calling({"id": "a", "type": "function", "function": "read"}), "bad-block", ".tool_calls[0]"),
        ({"role": "tool", "content": "ok"}, "bad-id", ""),
    ],
)
def test_a_message_that_cannot_be_sent_is_named(raw, code, where):
    assert reported(USER, raw) == [(code, f"messages[1]{where}")]


@rows(
    ("raw", "code"),
    [
        ({"role": "user", "content": "Hi.", "reasoning_content": "Hm."}, "unknown-field"),
        ({"role": "user", "content": "Hi.", "tool_calls": None}, None),
        ({"role": "user", "content": [{"type": "video_url", "video_url": {"url": "u"}}]}, "unknown-block"),
    ],
)
def test_fields_that_only_some_servers_accept_are_warnings(raw, code):
    assert [found for found, _ in reported(raw, level="warning")] == ([code] if code else [])
    assert reported(raw) == []


@pytest.mark.parametrize("arguments", ["{", "[" * 100_000])
def test_arguments_that_are_no_json_are_doubted(arguments):
    raws = [USER, calling(call(arguments=arguments)), answer()]

    assert reported(*raws) == []
    assert reported(*raws, level="warning") == [("bad-arguments", "messages[1].tool_calls[0]")]


@rows(
    ("raws", "expected"),
    [
        ([calling(call()), USER], [("missing-result", "messages[0].tool_calls[0]")]),
        (
            [calling(call("a"), call("b")), answer("a"), USER],
            [("missing-result", "messages[0].tool_calls[1]")],
        ),
        ([USER, answer()], [("orphan-result", "messages[1]")]),
        ([calling(call()), answer(), answer()], [("repeated-result", "messages[2]")]),
        (
            [calling(call()), USER, answer()],
            [("missing-result", "messages[0].tool_calls[0]"), ("interleaved-result", "messages[2]")],
        ),
    ],
)
def test_calls_and_answers_that_do_not_meet_are_named(raws, expected):
    assert reported(*raws) == expected


def test_calls_that_wait_at_the_end_are_dangling():
    raws = [USER, calling(call("a"), call("b")), answer("a")]

    assert reported(*raws) == []
    assert reported(*raws, level="warning") == [("dangling-call", "messages[1].tool_calls[1]")]


def test_an_id_that_is_used_again_is_only_doubted():
    raws = [calling(call()), answer(), calling(call()), answer()]

    assert reported(*raws) == []
    assert reported(*raws, level="warning") == [("repeated-id", "messages[2].tool_calls[0]")]

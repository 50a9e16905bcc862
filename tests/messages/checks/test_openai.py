import pytest

from aether.messages.providers.openai import findings
from tests.tables import rows

USER = {"role": "user", "content": "Go."}
DONE = {"role": "assistant", "content": "Done."}
IMAGE = {"type": "image_url", "image_url": {"url": "data:,"}}


def call(key="a", name="read", arguments="{}", **fields):
    return {"id": key, "type": "function", "function": {"name": name, "arguments": arguments}, **fields}


def calling(*calls):
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def answer(key="a", content="ok"):
    return {"role": "tool", "tool_call_id": key, "content": content}


def told(*raws, level="error"):
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
    assert told(USER, raw) == [(code, f"messages[1]{where}")]


@rows(
    ("raw", "code"),
    [
        ({"role": "user", "content": "Hi.", "reasoning_content": "Hm."}, "unknown-field"),
        ({"role": "user", "content": "Hi.", "tool_calls": None}, None),
        ({"role": "user", "content": [{"type": "hologram"}]}, "unknown-block"),
    ],
)
def test_what_some_servers_take_is_doubted(raw, code):
    assert [found for found, _ in told(raw, level="warning")] == ([code] if code else [])
    assert told(raw) == []


@pytest.mark.parametrize("arguments", ["{", "[" * 100_000])
def test_arguments_that_are_no_json_are_doubted(arguments):
    raws = [USER, calling(call(arguments=arguments)), answer()]

    assert told(*raws) == []
    assert told(*raws, level="warning") == [("bad-arguments", "messages[1].tool_calls[0]")]


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
    assert told(*raws) == expected


def test_calls_that_wait_at_the_end_are_dangling():
    raws = [USER, calling(call("a"), call("b")), answer("a")]

    assert told(*raws) == []
    assert told(*raws, level="warning") == [("dangling-call", "messages[1].tool_calls[1]")]


def test_an_id_that_is_used_again_is_only_doubted():
    raws = [calling(call()), answer(), calling(call()), answer()]

    assert told(*raws) == []
    assert told(*raws, level="warning") == [("repeated-id", "messages[2].tool_calls[0]")]

import pytest

from aether.messages.providers.anthropic import findings
from tests.tables import rows

USER = {"role": "user", "content": "Go."}
DONE = {"role": "assistant", "content": "Done."}
SIGNED = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
SAID = {"type": "text", "text": "Look."}


def call(key="a", **fields):
    return {"type": "tool_use", "id": key, "name": "read", "input": {}, **fields}


def result(key="a", **fields):
    return {"type": "tool_result", "tool_use_id": key, **fields}


def assistant(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


def told(*raws, level="error"):
    return [(found.code, found.where) for found in findings(raws) if found.level == level]


def test_a_conversation_by_the_rules_is_refused_for_nothing():
    image = {"type": "image", "source": {}}
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    hits = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}

    raws = [
        user(image, SAID),
        assistant(SIGNED, {"type": "redacted_thinking", "data": "x"}, SAID, call("a"), call("b")),
        user(result("b", content="ok"), result("a", content=[SAID, image]), SAID),
        assistant(search, hits, call("c")),
        user(result("c", is_error=True)),
        user(SAID),
    ]

    assert list(findings(raws)) == []


@rows(
    ("raw", "code"),
    [
        ({"role": "model", "content": "Hi."}, "bad-role"),
        ({"role": ["user"], "content": "Hi."}, "bad-role"),
        ({"role": "user", "content": "Hi.", "meta": {}, "id": "m"}, "unknown-field"),
        ({"role": "user", "content": None}, "empty-content"),
        ({"role": "user"}, "empty-content"),
        ({"role": "user", "content": []}, "empty-content"),
        ({"role": "user", "content": ""}, "empty-content"),
        ({"role": "user", "content": 7}, "empty-content"),
    ],
)
def test_a_message_that_cannot_be_sent_is_named(raw, code):
    assert told(USER, DONE, raw, USER) == [(code, "messages[2]")]


@rows(
    ("block", "code"),
    [
        ("Hi.", "bad-block"),
        ({"text": "Hi."}, "bad-block"),
        ({"type": "text"}, "bad-block"),
        ({"type": "text", "text": " \n"}, "empty-content"),
        (call(), "wrong-role"),
        (SIGNED, "wrong-role"),
        (result("a b"), "bad-id"),
        (result(None), "bad-id"),
    ],
)
def test_a_block_that_cannot_be_sent_by_a_user_is_named(block, code):
    assert (code, "messages[0].content[1]") in told(user(SAID, block))


@rows(
    ("block", "code"),
    [
        ({"type": "image", "source": {}}, "wrong-role"),
        (call("a b"), "bad-id"),
        (call(7), "bad-id"),
        (call(name="no spaces"), "bad-name"),
        (call(name=None), "bad-name"),
        (call(input="{}"), "bad-arguments"),
        ({"type": "thinking", "thinking": "Hm."}, "unsigned-thinking"),
        ({"type": "thinking", "thinking": "Hm.", "signature": ""}, "unsigned-thinking"),
        ({"type": "redacted_thinking"}, "unsigned-thinking"),
    ],
)
def test_a_block_that_cannot_be_sent_by_the_assistant_is_named(block, code):
    assert (code, "messages[1].content[1]") in told(USER, assistant(SAID, block))


@rows(
    ("content", "code", "where"),
    [
        (7, "bad-block", ""),
        (["Hi."], "bad-block", ".content[0]"),
        ([{"type": "text", "text": ""}], "empty-content", ".content[0]"),
    ],
)
def test_what_a_result_cannot_hold_is_named(content, code, where):
    raws = [USER, assistant(call()), user(result(content=content))]

    assert told(*raws) == [(code, f"messages[2].content[0]{where}")]


def test_an_unknown_type_of_block_is_doubted():
    assert told(user({"type": "hologram"}), level="warning") == [("unknown-block", "messages[0].content[0]")]


def test_the_user_speaks_first_whatever_the_system_said():
    system = {"role": "system", "content": "Be brief."}

    assert told(system, DONE, USER) == [("first-role", "messages[1]")]
    assert told(system, USER, level="warning") == [("system-role", "messages[0]")]


@rows(
    ("raws", "expected"),
    [
        ([USER, assistant(call()), USER], [("missing-result", "messages[1].content[0]")]),
        ([USER, assistant(call()), DONE, USER], [("missing-result", "messages[1].content[0]")]),
        (
            [USER, assistant(call("a"), call("b")), user(result("a")), DONE, USER],
            [("missing-result", "messages[1].content[1]")],
        ),
        ([user(result()), USER], [("orphan-result", "messages[0].content[0]")]),
        (
            [USER, assistant(call()), USER, DONE, user(result())],
            [("missing-result", "messages[1].content[0]"), ("interleaved-result", "messages[4].content[0]")],
        ),
        (
            [USER, assistant(call()), user(result(), result())],
            [("repeated-result", "messages[2].content[1]")],
        ),
        ([USER, assistant(call()), user(SAID, result())], [("result-order", "messages[2].content[1]")]),
        (
            [USER, assistant(call()), USER, user(result())],
            [("result-order", "messages[3].content[0]")],
        ),
        (
            [USER, assistant(call()), {"role": "system", "content": "Hurry."}, user(result())],
            [("missing-result", "messages[1].content[0]"), ("interleaved-result", "messages[3].content[0]")],
        ),
        (
            [USER, assistant(call()), user(result()), assistant(call()), user(result())],
            [("repeated-id", "messages[3].content[0]")],
        ),
    ],
)
def test_calls_and_results_that_do_not_meet_are_named(raws, expected):
    assert told(*raws) == expected


def test_results_in_two_messages_are_doubted():
    raws = [USER, assistant(call("a"), call("b")), user(result("a")), user(result("b"))]

    assert told(*raws) == []
    assert told(*raws, level="warning") == [("split-results", "messages[2]")]


@pytest.mark.parametrize("more", [[], [user(result("a"))]])
def test_calls_that_wait_at_the_end_are_dangling(more):
    raws = [USER, assistant(call("a"), call("b")), *more]

    assert told(*raws) == []
    assert ("dangling-call", "messages[1].content[1]") in told(*raws, level="warning")


def test_calls_do_not_wait_where_the_user_spoke_on():
    raws = [USER, assistant(call("a"), call("b")), user(result("a"), SAID)]

    assert told(*raws) == [("missing-result", "messages[1].content[1]")]


def test_thinking_comes_before_its_call_and_never_last():
    assert told(USER, assistant(SAID, SIGNED)) == [("thinking-order", "messages[1].content[1]")]
    assert told(USER, assistant(call(), SIGNED, SAID), user(result())) == [
        ("thinking-order", "messages[1].content[1]")
    ]
    assert told(USER, assistant(SIGNED), assistant(call()), user(result())) == []


def test_the_assistant_does_not_end_with_white_space():
    trailing = [("trailing-assistant", "messages[1].content[0]")]

    assert told(USER, {"role": "assistant", "content": "Done. "}) == [
        ("trailing-whitespace", "messages[1].content[0]")
    ]
    assert told(USER, DONE, level="warning") == trailing
    assert told(USER, {"role": "assistant", "content": []}) == []
    assert told(USER, {"role": "assistant", "content": []}, level="warning") == [
        ("trailing-assistant", "messages[1]")
    ]

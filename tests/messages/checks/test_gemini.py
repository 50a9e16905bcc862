from aether.messages.providers.gemini import findings
from tests.tables import rows

USER = {"role": "user", "parts": [{"text": "Go."}]}
MODEL = {"role": "model", "parts": [{"text": "Done."}]}


def call(name="read", **fields):
    return {"functionCall": {"name": name, "args": {}, **fields}, "thoughtSignature": "c2ln"}


def response(name="read", **fields):
    return {"functionResponse": {"name": name, "response": {}, **fields}}


def model(*parts):
    return {"role": "model", "parts": list(parts)}


def user(*parts):
    return {"role": "user", "parts": list(parts)}


def told(*raws, level="error"):
    return [(found.code, found.where) for found in findings(raws) if found.level == level]


def test_contents_by_the_rules_are_refused_for_nothing():
    raws = [
        user({"text": "What is it?"}, {"inlineData": {"mimeType": "image/png", "data": ""}}),
        model(
            {"text": "Hm.", "thought": True},
            call("read", id="1"),
            call("read", id="2"),
            call("look", args=None),
        ),
        user(response("look"), response("read", id="2"), response("read", id="1"), {"text": "And?"}),
        model({"function_call": {"name": "read"}, "thought_signature": "c2ln"}),
        user({"function_response": {"name": "read", "response": {"output": "ok"}}}),
        model({"executableCode": {"code": "1"}}, {"codeExecutionResult": {"output": "1"}}),
        USER,
    ]

    assert list(findings(raws)) == []


@rows(
    ("raw", "code", "where"),
    [
        ({"role": "assistant", "parts": [{"text": "Hi."}]}, "bad-role", ""),
        ({"parts": [{"text": "Hi."}]}, "bad-role", ""),
        ({**USER, "meta": {}}, "unknown-field", ""),
        ({"role": "user", "content": "Hi."}, "unknown-field", ""),
        ({"role": "user"}, "empty-content", ""),
        (user(), "empty-content", ""),
        (user("Hi."), "bad-block", ".parts[0]"),
        (user({}), "bad-block", ".parts[0]"),
        (user({"text": None}), "bad-block", ".parts[0]"),
        (user({"text": 7}), "bad-block", ".parts[0]"),
        (user({"text": "Hi.", "inlineData": {}}), "bad-block", ".parts[0]"),
        (user({"inlineData": "aGk="}), "bad-block", ".parts[0]"),
        (user({"text": ""}), "empty-content", ".parts[0]"),
        (user(call()), "wrong-role", ".parts[0]"),
        (model(response()), "wrong-role", ".parts[0]"),
        (model(call("")), "bad-name", ".parts[0]"),
        (model(call(args=[])), "bad-arguments", ".parts[0]"),
        (user(response(response=None)), "bad-arguments", ".parts[0]"),
    ],
)
def test_a_content_that_cannot_be_sent_is_named(raw, code, where):
    assert (code, f"contents[1]{where}") in told(USER, raw)


@rows(
    ("raws", "expected"),
    [
        ([USER, model(call()), USER], [("missing-result", "contents[1]")]),
        ([USER, model(call(), call()), user(response())], [("missing-result", "contents[1]")]),
        ([USER, user(response())], [("orphan-result", "contents[1]")]),
        (
            [USER, model(call("read")), user(response("look"))],
            [("missing-result", "contents[1]"), ("orphan-result", "contents[2]")],
        ),
        (
            [USER, model(call(), call()), user(response()), user(response())],
            [("missing-result", "contents[1]"), ("orphan-result", "contents[3]")],
        ),
        ([USER, MODEL, model(call()), user(response())], [("role-order", "contents[2]")]),
        ([model(call()), user(response())], [("role-order", "contents[0]")]),
    ],
)
def test_calls_and_responses_that_do_not_meet_are_named(raws, expected):
    assert told(*raws) == expected


def test_calls_that_wait_at_the_end_are_dangling():
    assert told(USER, model(call())) == []
    assert told(USER, model(call()), level="warning") == [("dangling-call", "contents[1]")]


def test_the_model_speaks_neither_first_nor_last():
    assert told(MODEL, USER, level="warning") == [("first-role", "contents[0]")]
    assert told(USER, MODEL, level="warning") == [("trailing-assistant", "contents[1]")]


def test_the_first_call_of_the_current_turn_keeps_its_signature():
    bare = {"functionCall": {"name": "read"}}
    ended = [USER, model(bare), user(response()), MODEL, USER]

    assert told(*ended, level="warning") == []
    assert told(USER, model(bare, call()), user(response(), response()), level="warning") == [
        ("unsigned-thinking", "contents[1]")
    ]
    assert told(model(bare), user(response()), level="warning") == [
        ("unsigned-thinking", "contents[0]"),
        ("first-role", "contents[0]"),
    ]

from aether.messages.model import Block
from aether.messages.providers import gemini
from aether.messages.turns import Answer, Turn
from tests.messages.repairs import faults_of, require_repaired
from tests.tables import rows


def blocks(*parts, role="model"):
    return gemini.message({"role": role, "parts": list(parts)}).blocks


def test_calls_and_responses_are_read_in_both_cases():
    for key, other in (("functionCall", "functionResponse"), ("function_call", "function_response")):
        [call] = blocks({key: {"name": "f", "args": {"a": 1}, "id": "c"}})
        [answer] = blocks({other: {"name": "f", "response": {"result": "ok"}, "id": "c"}}, role="user")
        assert call == Block("call", '{"a": 1}', ("parts", 0, key, "args"), "c", "f", {"a": 1})
        assert answer == Block("result", "ok", ("parts", 0, other, "response", "result"), "c", "f")


@rows(
    ("inner", "text", "at", "broken"),
    [
        ({"response": {"output": "ok"}}, "ok", ("response", "output"), False),
        ({"response": {"error": "no"}}, "no", ("response", "error"), True),
        ({"response": {"a": 1, "b": 2}}, '{"a": 1, "b": 2}', ("response",), False),
        ({"response": {"result": {"a": 1}}}, '{"result": {"a": 1}}', ("response",), False),
        ({"response": "odd"}, '"odd"', (), False),
        ({}, "", (), False),
    ],
)
def test_a_response_is_one_text_or_its_json(inner, text, at, broken):
    [found] = blocks({"functionResponse": {"name": "f", **inner}}, role="user")

    assert (found.text, found.is_error) == (text, broken)
    assert found.at == (("parts", 0, "functionResponse", *at) if at else ())


def test_thoughts_code_and_media_are_distinguished():
    found = blocks(
        {"text": "Hm.", "thought": True},
        {"text": "Hi", "thoughtSignature": "s"},
        {"executableCode": {"language": "PYTHON", "code": "1+1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "no"}},
        {"inlineData": {"mimeType": "image/png", "data": "x"}},
        {"file_data": {"file_uri": "u"}},
        {"new": 1},
        7,
    )

    kinds = ["reasoning", "text", "call", "result", "media", "media", "other", "other"]
    assert [block.kind for block in found] == kinds
    assert (found[2].arguments, found[3].is_error) == ({"input": "1+1"}, True)


def test_pictures_inside_a_response_come_after_it():
    picture = {"inlineData": {"mimeType": "image/png", "data": "x"}}

    found = blocks(
        {"functionResponse": {"name": "f", "response": {"result": "ok"}, "parts": [picture, {}]}}, role="user"
    )

    assert [block.kind for block in found] == ["result", "media"]
    assert found[1].at == ("parts", 0, "functionResponse", "parts", 0)


def test_roles_follow_from_who_speaks_and_what():
    answer = {"functionResponse": {"name": "f", "response": {}}}

    assert gemini.message({"parts": [{"text": "Hi"}]}).role == "user"
    assert gemini.message({"role": "user", "parts": [answer]}).role == "tool"
    assert gemini.message({"role": "user", "parts": [answer, {"text": "and"}]}).role == "user"
    assert gemini.message({"role": "model"}).blocks == ()
    assert gemini.message({"role": "model", "parts": "Hi"}).blocks[0].kind == "other"


def test_thoughts_go_unless_nothing_else_is_there():
    thought, text = {"text": "Hm.", "thought": True}, {"text": "Hi"}

    assert gemini.without_reasoning({"parts": [thought, text]}) == {"parts": [text]}
    for raw in ({"parts": [thought]}, {"parts": [text]}, {"parts": None}):
        assert gemini.without_reasoning(raw) is raw


def test_a_turn_is_written_with_its_responses_in_the_order_of_the_calls():
    calls = [Block("call", "{}", (), key, "f", {}) for key in ("c1", "c2")]
    answers = [
        Answer(Block("result", "two", (), "c2", "f", is_error=True), []),
        Answer(Block("result", "one", (), "c1", "f"), []),
    ]

    said, answered = gemini.write(Turn("assistant", [Block("text", "Go."), *calls], answers, {}))

    assert said["role"] == "model"
    assert said["parts"][1] == {"functionCall": {"id": "c1", "name": "f", "args": {}}}
    assert [part["functionResponse"]["response"] for part in answered["parts"]] == [
        {"result": "one"},
        {"error": "two"},
    ]
    shown = {"inlineData": {}}
    assert gemini.write(Turn("user", [shown], [], {"a": 1})) == [
        {"role": "user", "parts": [shown], "meta": {"a": 1}}
    ]


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


def reported(*raws, level="error"):
    return [(found.code, found.where) for found in faults_of("gemini", raws) if found.level == level]


def test_contents_by_the_rules_are_refused_for_nothing():
    raws = [
        user({"text": "What is it?"}, {"inlineData": {"mimeType": "image/png", "data": "aGk="}}),
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

    assert list(faults_of("gemini", raws)) == []


def test_calls_that_wait_at_the_end_are_dangling():
    assert reported(USER, model(call())) == []
    assert reported(USER, model(call()), level="warning") == [("dangling-call", "contents[1].parts[0]")]


GO, DONE = {"text": "Go."}, {"text": "Done."}


def unsigned(name="read", **fields):
    return {"functionCall": {"name": name, "args": {}, **fields}}


@rows(
    ("raws", "expected", "codes"),
    [
        (
            [USER, model(unsigned()), USER, MODEL, user(response(), GO)],
            [USER, model(unsigned()), user(response(), GO), MODEL, USER],
            ["interleaved-result"],
        ),
        (
            [USER, model(unsigned("a"), unsigned("b")), user(response("a")), user(response("b"), GO)],
            [USER, model(unsigned("a"), unsigned("b")), user(response("a"), response("b")), USER],
            ["interleaved-result"],
        ),
        (
            [USER, model(unsigned("a")), model(unsigned("b")), user(response("a"), response("b"))],
            [USER, model(unsigned("a")), user(response("a")), model(unsigned("b")), user(response("b"))],
            ["interleaved-result"],
        ),
        (
            [
                USER,
                model(unsigned("a")),
                user(response("a")),
                model(unsigned("a")),
                MODEL,
                user(response("a")),
            ],
            [
                USER,
                model(unsigned("a")),
                user(response("a")),
                model(unsigned("a")),
                user(response("a")),
                MODEL,
            ],
            ["interleaved-result"],
        ),
        (
            [
                USER,
                MODEL,
                model(unsigned("a")),
                model(unsigned("b")),
                MODEL,
                USER,
                user(response("a"), response("b")),
            ],
            [
                USER,
                model(DONE, unsigned("a")),
                user(response("a")),
                model(unsigned("b")),
                user(response("b")),
                MODEL,
                USER,
            ],
            ["interleaved-result", "interleaved-result", "role-order"],
        ),
        (
            [USER, model(unsigned("b")), MODEL, USER, user(response("b"))],
            [USER, model(unsigned("b")), user(response("b")), MODEL, USER],
            ["interleaved-result"],
        ),
        ([USER, user(response())], [USER], ["orphan-result"]),
        ([USER, model(DONE, unsigned()), USER], [USER, MODEL, USER], ["missing-result"]),
        (
            [USER, model(unsigned(), unsigned()), user(response())],
            [USER, model(unsigned()), user(response())],
            ["missing-result"],
        ),
        (
            [USER, MODEL, MODEL, model(unsigned())],
            [USER, model(DONE, DONE, unsigned())],
            ["role-order", "role-order"],
        ),
        ([model(DONE, unsigned()), user(response()), USER], [MODEL, USER], ["role-order", "role-order"]),
        ([{"role": "ai", "parts": [DONE], "meta": {}}], [MODEL], ["bad-role", "unknown-field"]),
        ([{"parts": GO}], [USER], ["bad-role"]),
        ([{"role": "user", "content": "Hi."}, USER], [USER], ["unknown-field", "empty-content"]),
        ([user("Go.")], [USER], ["bad-block"]),
        (
            [user(7, {}, {"text": 7}, {"text": ""}, {"inlineData": 7}, GO)],
            [USER],
            ["bad-block", "bad-block", "bad-block", "empty-content", "bad-block"],
        ),
        ([user({"text": "Go.", "inlineData": None})], [USER], ["bad-block"]),
        ([user(GO, unsigned()), model(DONE, response())], [USER, MODEL], ["wrong-role", "wrong-role"]),
        ([USER, model(DONE, unsigned(""), unsigned(args=7))], [USER, MODEL], ["bad-name", "bad-arguments"]),
        (
            [USER, model({**unsigned(), "text": "Done.", "thoughtSignature": "x"})],
            [USER, model(unsigned(), {"text": "Done.", "thoughtSignature": "x"})],
            ["bad-block"],
        ),
        (
            [USER, model(unsigned(), unsigned()), user(response(response="ok"), response(response=None))],
            [USER, model(unsigned(), unsigned()), user(response(response={"result": "ok"}), response())],
            ["bad-arguments", "bad-arguments"],
        ),
    ],
)
def test_messages_that_the_api_refuses_are_repaired(raws, expected, codes):
    require_repaired("gemini", raws, expected, codes)

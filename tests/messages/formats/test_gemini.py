import pytest

from aether.errors import InvalidInput
from aether.messages.model import Block
from aether.messages.providers import gemini
from aether.messages.turns import Answer, Turn
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


def test_thoughts_code_and_media_are_told_apart():
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


@pytest.mark.parametrize("role", ["tool", "system"])
def test_contents_have_no_message_of_a_tool_or_the_system(role):
    with pytest.raises(InvalidInput, match=role):
        gemini.said(role, "Hi")


def test_a_turn_is_written_with_its_responses_in_the_order_of_the_calls():
    calls = [Block("call", "{}", (), key, "f", {}) for key in ("c1", "c2")]
    answers = [
        Answer(Block("result", "two", (), "c2", "f", is_error=True), []),
        Answer(Block("result", "one", (), "c1", "f"), []),
    ]

    said, answered = gemini.written(Turn("assistant", [Block("text", "Go."), *calls], answers, {}))

    assert said["role"] == "model"
    assert said["parts"][1] == {"functionCall": {"id": "c1", "name": "f", "args": {}}}
    assert [part["functionResponse"]["response"] for part in answered["parts"]] == [
        {"result": "one"},
        {"error": "two"},
    ]
    shown = {"inlineData": {}}
    assert gemini.written(Turn("user", [shown], [], {"a": 1})) == [
        {"role": "user", "parts": [shown], "meta": {"a": 1}}
    ]

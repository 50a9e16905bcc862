from aether.messages.providers.anthropic import cleaned, raw_of
from tests.tables import rows

IMAGE = {"type": "image", "source": {}}
TEXT = {"type": "text", "text": "Hi."}


def cleared(raw):
    found = []
    return raw_of(cleaned(0, raw, found)), [(one.level, one.code, one.where) for one in found]


def call(**fields):
    return {"type": "tool_use", "id": "a", "name": "read", "input": {}, **fields}


@rows(
    "raw",
    [
        {"role": "user", "content": "Hi."},
        {"role": "user", "content": [TEXT, IMAGE]},
        {"role": "assistant", "content": [call(), {"type": "hologram"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [TEXT, IMAGE]}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]},
    ],
)
def test_a_good_message_is_the_same_object(raw):
    found = []

    assert raw_of(cleaned(0, raw, found)) is raw
    assert found == []


def test_role_and_fields_are_the_apis():
    raw = {"role": "ai", "content": "Hi.", "id": "m", "meta": {}}

    assert cleared(raw) == (
        {"role": "assistant", "content": [TEXT]},
        [("info", "bad-role", "messages[0]"), ("info", "unknown-field", "messages[0]")],
    )
    assert cleared({"role": "user", "content": "Hi.", "id": "m"})[0] == {"role": "user", "content": "Hi."}


@rows(
    ("content", "kept"),
    [(TEXT, [TEXT]), (["Hi."], [TEXT]), ([{"text": "Hi.", "type": None}], [TEXT])],
)
def test_text_that_is_no_block_becomes_one(content, kept):
    assert cleared({"role": "user", "content": content}) == (
        {"role": "user", "content": kept},
        [("info", "bad-block", "messages[0]")],
    )


@rows(
    ("role", "block", "code"),
    [
        ("user", 7, "bad-block"),
        ("user", {"type": "text", "text": ""}, "empty-content"),
        ("user", {"type": "text"}, "empty-content"),
        ("user", call(), "wrong-role"),
        ("assistant", IMAGE, "wrong-role"),
        ("assistant", call(id=""), "bad-id"),
        ("assistant", call(id=["a"]), "bad-id"),
        ("assistant", call(name=None), "bad-name"),
        ("assistant", call(input=None), "bad-arguments"),
        ("assistant", call(input=7), "bad-arguments"),
        ("assistant", {"type": "thinking", "thinking": "Hm."}, "unsigned-thinking"),
        ("assistant", {"type": "redacted_thinking", "data": ""}, "unsigned-thinking"),
        ("user", {"type": "tool_result"}, "bad-id"),
    ],
)
def test_a_block_that_nobody_can_send_is_dropped(role, block, code):
    raw, told = cleared({"role": role, "content": [TEXT, block]})

    assert raw == {"role": role, "content": [TEXT]}
    assert ("warning", code, "messages[0].content[1]") in told


def test_arguments_and_names_are_respelt():
    raw, told = cleared({"role": "assistant", "content": [call(name="my tool", input='{"a": 1}')]})

    assert raw["content"] == [call(name="my_tool", input={"a": 1})]
    assert [code for _, code, _ in told] == ["bad-arguments", "bad-name"]


@rows("bad", ["Hi.", {"type": "text", "text": " "}, {"type": "text"}, {}])
def test_a_result_loses_the_parts_that_nobody_can_send(bad):
    block = {"type": "tool_result", "tool_use_id": "a", "content": [TEXT, bad]}

    raw, told = cleared({"role": "user", "content": [block]})

    assert raw["content"] == [{**block, "content": [TEXT]}]
    assert told == [("warning", "bad-block", "messages[0].content[0]")]


def test_a_result_of_something_else_is_empty():
    assert cleared({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": 7}]})[
        0
    ]["content"] == [{"type": "tool_result", "tool_use_id": "a", "content": []}]


@rows("content", [None, 7, "", []])
def test_a_message_that_holds_nothing_says_so(content):
    found = []

    assert cleaned(0, {"role": "user", "content": content}, found).cells == []
    assert ("empty-content", "messages[0]") in {(one.code, one.where) for one in found}

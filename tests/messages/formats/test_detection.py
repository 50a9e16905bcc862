from aether.messages.convert import detect_format
from tests.laws.histories import history
from tests.tables import rows

USER = {"role": "user", "content": "Hi"}


@rows("wire", ["anthropic", "openai", "responses", "gemini"])
def test_every_wire_is_known_by_its_calls(wire):
    assert {detect_format(history(seed, wire, tools=1.0)) for seed in range(20)} == {wire}


def test_what_any_wire_could_have_said_is_plain():
    assert {detect_format(history(seed, "plain")) for seed in range(20)} == {"plain"}
    assert detect_format([]) == detect_format([USER]) == detect_format([7]) == "plain"


@rows(
    ("raw", "wire"),
    [
        ({"role": "user", "content": [{"type": "image", "source": {}}]}, "anthropic"),
        ({"role": "assistant", "content": [{"type": "thinking"}]}, "anthropic"),
        ({"role": "user", "content": [{"type": "image_url"}]}, "openai"),
        ({"role": "assistant", "content": None, "refusal": "No."}, "openai"),
        ({"role": "function", "name": "f", "content": "ok"}, "openai"),
        ({"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}, "responses"),
        ({"type": "reasoning", "summary": []}, "responses"),
        ({"parts": [{"text": "Hi"}]}, "gemini"),
        ({"role": "assistant", "tool_calls": [{"function": "f"}]}, "plain"),
        ({"role": "tool", "tool_call_ids": ["c"], "content": "ok"}, "plain"),
        ({"role": "assistant", "content": [{"type": "toolCall"}, {"type": "thinking"}]}, "plain"),
    ],
)
def test_one_sign_is_enough(raw, wire):
    assert detect_format([USER, raw]) == wire


def test_openai_and_anthropic_mixed_are_plain():
    mixed = [
        {"role": "tool", "tool_call_id": "c", "content": ""},
        {"role": "user", "content": [{"type": "tool_result"}]},
    ]

    assert detect_format(mixed) == "plain"


def test_newer_messages_are_of_the_wire_of_those_before_unless_they_say_otherwise():
    said = {"role": "user", "content": "Go on."}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "ok"}]}

    assert detect_format([said], after="openai") == "openai"
    assert detect_format([result], after="openai") == "plain"
    assert detect_format([said], after="plain") == "plain"

from aether.messages import convert
from aether.messages.model import PROVIDER_FORMATS
from aether.messages.validate import check, repair
from tests.laws.histories import history
from tests.tables import rows


@rows("wire", PROVIDER_FORMATS)
def test_what_a_provider_takes_comes_back_as_it_was(wire):
    messages = convert.read(history(1, wire), wire)

    repaired = repair(messages, wire)

    assert all(after is before for after, before in zip(repaired.messages, messages, strict=True))
    assert repaired.findings == []


@rows("wire", ["anthropic", "openai", "responses", "gemini"])
def test_what_is_mended_is_read_anew(wire):
    key = "parts" if wire == "gemini" else "content"
    said = [{"text": "Go."}] if wire == "gemini" else "Go."
    messages = convert.read([{"role": "robot", key: said}], wire)

    repaired = repair(messages, wire)

    assert [message.raw for message in repaired.messages] == [
        {"role": "user", key: said}
    ] or wire == "anthropic"
    assert [message.text for message in repaired.messages] == ["Go."]
    assert [found.code for found in repaired.findings] == ["bad-role"]
    assert check(repaired.messages, wire) == []


def test_where_nothing_is_left_there_is_nothing_to_send():
    messages = convert.read([{"role": "tool", "tool_call_id": "a", "content": "ok"}], "openai")

    repaired = repair(messages, "openai")

    assert repaired.messages == []
    assert [found.code for found in check(repaired.messages, "openai")] == ["no-messages"]

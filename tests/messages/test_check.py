from aether.messages import convert
from aether.messages.model import PROVIDER_FORMATS
from aether.messages.validate import check, has_errors
from aether.types import Finding
from tests.tables import rows

RAWS = {
    "anthropic": [{"role": "user", "content": "Go."}],
    "openai": [{"role": "user", "content": "Go."}],
    "responses": [{"role": "user", "content": "Go."}],
    "gemini": [{"role": "user", "parts": [{"text": "Go."}]}],
    "plain": [{"role": "user", "content": "Go."}],
}


@rows("wire", PROVIDER_FORMATS)
def test_each_provider_has_its_rules(wire):
    assert check(convert.read(RAWS[wire], wire), wire) == []
    assert "bad-role" in {found.code for found in check(convert.read([{"role": 7}], wire), wire)}


@rows("wire", PROVIDER_FORMATS)
def test_no_messages_are_no_conversation(wire):
    assert [found.code for found in check([], wire)] == ["no-messages"]


def test_system_prompt_and_tools_are_checked_with_the_messages():
    messages = convert.read(RAWS["anthropic"], "anthropic")
    tools = [{"name": "read"}, {"name": "read"}]

    found = check(messages, "anthropic", system=[{"type": "text", "text": ""}], tools=tools)

    assert [(one.code, one.where) for one in found] == [
        ("empty-content", "system[0]"),
        ("repeated-tool", "tools[1]"),
    ]


@rows(("levels", "answer"), [("error", True), ("warning info", False), ("", False)])
def test_only_errors_make_a_provider_refuse(levels, answer):
    assert has_errors([Finding(level, "x", "", "", "") for level in levels.split()]) is answer

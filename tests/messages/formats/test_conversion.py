from aether.messages.convert import convert, read

RULES = {"role": "system", "content": "Rules."}
MORE = {"role": "developer", "content": "More."}
ASKED = {"role": "user", "content": "Hi"}


def codes(found):
    return [finding.code for finding in found.findings]


def test_opening_instructions_stand_where_the_wire_has_them():
    messages = read([RULES, MORE, ASKED], "openai")

    assert convert(messages, "anthropic").system == "Rules.\n\nMore."
    assert convert(messages, "gemini", system="First.").system == {
        "parts": [{"text": "First.\n\nRules.\n\nMore."}]
    }
    assert convert(read([ASKED], "openai"), "gemini").system is None
    items = convert(messages, "responses", system=[{"type": "text", "text": "First."}])
    assert (items.system, [message.raw["role"] for message in items.messages]) == (
        "First.",
        ["system", "developer", "user"],
    )


def test_a_system_prompt_beside_becomes_a_message_where_there_is_no_other_place():
    found = convert(read([ASKED], "anthropic"), "openai", system={"parts": [{"text": "Rules."}]})

    assert [message.raw for message in found.messages] == [RULES, ASKED]
    assert found.system is None


def test_later_instructions_are_said_by_the_user_of_gemini():
    messages = read([ASKED, RULES], "openai")

    found = convert(messages, "gemini")

    assert [message.raw["role"] for message in found.messages] == ["user", "user"]
    assert codes(found) == ["system-role"]
    assert [message.raw["role"] for message in convert(messages, "anthropic").messages] == ["user", "system"]


def test_ids_and_names_are_made_such_as_all_take():
    def pair(key, name):
        function = {"name": name, "arguments": "{}"}
        return [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": key, "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": key, "content": "ok"},
        ]

    long = "x" * 50
    raws = [
        ASKED,
        *pair("a", "f"),
        *pair("a", "f"),
        *pair("a.b", "my tool"),
        *pair(long, "f"),
        *pair(long, ""),
        *pair("", "f"),
    ]
    found = convert(read(raws, "plain"), "anthropic")

    called = [block for message in found.messages for block in message.blocks if block.kind == "call"]
    answers = [block for message in found.messages for block in message.blocks if block.kind == "result"]
    assert [block.call_id for block in called] == ["a", "a_2", "a_b", "x" * 40, "x" * 38 + "_2", "call"]
    assert [block.call_id for block in answers] == [block.call_id for block in called]
    assert [block.tool for block in called] == ["f", "f", "my_tool", "f", "tool", "f"]
    assert codes(found) == ["renamed-call"] * 5


def test_a_conversation_of_that_wire_is_returned_as_it_is():
    messages = read([ASKED], "openai")

    assert convert(messages, "openai", system="Rules.") == (messages, [], "Rules.")
    assert convert([], "gemini").messages == []


def test_that_the_assistant_speaks_first_is_said_where_it_may_not():
    messages = read([RULES, {"role": "assistant", "content": "Hi"}], "openai")

    assert codes(convert(messages, "anthropic")) == codes(convert(messages, "gemini")) == ["first-role"]
    assert codes(convert(messages, "responses")) == []

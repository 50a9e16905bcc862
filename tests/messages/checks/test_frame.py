from aether.messages.validate import frame_findings
from tests.tables import rows


def told(system, tools, wire):
    return [(found.code, found.where) for found in frame_findings(system, tools, wire)]


@rows("system", [None, "", "Be brief.", [{"type": "text", "text": "Be brief."}], 7])
def test_a_system_prompt_that_says_something_is_fine(system):
    assert told(system, None, "anthropic") == []


@rows("block", ["Be brief.", {"type": "text", "text": " "}, {"type": "text"}])
def test_a_blank_block_of_a_system_prompt_is_named(block):
    assert told([block], None, "anthropic") == [("empty-content", "system[0]")]
    assert told([block], None, "openai") == []


@rows(
    ("wire", "tool", "where"),
    [
        ("anthropic", lambda name: {"name": name, "input_schema": {}}, "tools[1]"),
        ("openai", lambda name: {"type": "function", "function": {"name": name}}, "tools[1]"),
        ("responses", lambda name: {"type": "function", "name": name}, "tools[1]"),
        (
            "gemini",
            lambda name: {"functionDeclarations": [{"name": name}]},
            "tools[1].functionDeclarations[0]",
        ),
        (
            "gemini",
            lambda name: {"function_declarations": [{"name": name}]},
            "tools[1].functionDeclarations[0]",
        ),
    ],
)
def test_two_tools_of_one_name_are_named(wire, tool, where):
    assert told(None, [tool("read"), tool("read"), tool("look")], wire) == [("repeated-tool", where)]


def test_a_name_that_the_provider_does_not_take_is_named():
    tools = [{"name": "read a file"}]

    assert told(None, tools, "anthropic") == [("bad-name", "tools[0]")]
    assert told(None, [{"functionDeclarations": tools}], "gemini") == []


def test_what_has_no_name_is_left_to_the_provider():
    assert told(None, ["read", {"type": "web_search"}, {"function": "read"}], "openai") == []
    assert told(None, [{"googleSearch": {}}, {"functionDeclarations": ["read"]}], "gemini") == []
    assert told(None, "read", "openai") == []

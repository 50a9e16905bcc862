import json

from aether.messages import convert
from aether.messages.content import encodable
from aether.messages.model import PROVIDER_FORMATS
from aether.messages.validate import check, is_sendable, repair, sendable
from tests.laws.histories import deep
from tests.tables import rows

RAWS = {
    "anthropic": [{"role": "user", "content": "Go."}],
    "openai": [{"role": "user", "content": "Go."}],
    "responses": [{"role": "user", "content": "Go."}],
    "gemini": [{"role": "user", "parts": [{"text": "Go."}]}],
    "plain": [{"role": "user", "content": "Go."}],
}


@rows("provider", PROVIDER_FORMATS)
def test_each_provider_has_its_rules(provider):
    assert check(convert.read(RAWS[provider], provider), provider) == []
    assert "bad-role" in {found.code for found in check(convert.read([{"role": 7}], provider), provider)}


def test_system_prompt_and_tools_are_checked_with_the_messages():
    messages = convert.read(RAWS["anthropic"], "anthropic")
    tools = [{"name": "read"}, {"name": "read"}]

    found = check(messages, "anthropic", system=[{"type": "text", "text": ""}], tools=tools)

    assert [(one.code, one.where) for one in found] == [
        ("empty-content", "system[0]"),
        ("repeated-tool", "tools[1]"),
    ]


def test_where_nothing_is_left_there_is_nothing_to_send():
    messages = convert.read([{"role": "tool", "tool_call_id": "a", "content": "ok"}], "openai")

    repaired = repair(messages, "openai")

    assert repaired.messages == []
    assert [found.code for found in check(repaired.messages, "openai")] == ["no-messages"]


def faults(system, tools, provider):
    messages = convert.read(RAWS[provider], provider)
    return [(found.code, found.where) for found in check(messages, provider, system=system, tools=tools)]


@rows("block", ["Be brief.", {"type": "text", "text": " "}, {"type": "text"}])
def test_a_blank_block_of_a_system_prompt_is_named(block):
    assert faults([block], None, "anthropic") == [("empty-content", "system[0]")]
    assert faults([block], None, "openai") == []


@rows(
    ("provider", "tool", "where"),
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
def test_two_tools_of_one_name_are_named(provider, tool, where):
    assert faults(None, [tool("read"), tool("read"), tool("look")], provider) == [("repeated-tool", where)]


def test_a_name_that_the_provider_does_not_take_is_named():
    tools = [{"name": "read a file"}]

    assert faults(None, tools, "anthropic") == [("bad-name", "tools[0]")]
    assert faults(None, [{"functionDeclarations": tools}], "gemini") == [
        ("bad-name", "tools[0].functionDeclarations[0]")
    ]
    assert faults(None, [{"functionDeclarations": [{"name": "mcp:read.file"}]}], "gemini") == []


def test_tools_without_a_name_are_left_to_the_provider():
    assert faults(None, ["read", {"type": "web_search"}, {"function": "read"}], "openai") == []
    assert faults(None, [{"googleSearch": {}}, {"functionDeclarations": ["read"]}], "gemini") == []
    assert faults(None, "read", "openai") == []


PNG = "iVBORw0KGgo="
SHOWN = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
LINK = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
INLINE = {"inlineData": {"mimeType": "image/png", "data": PNG}}
TEXT = {"type": "text", "text": "Look."}


def said(provider, *blocks):
    """One message of the user with a text and then `blocks`."""
    start = {"text": "Look."} if provider == "gemini" else {**TEXT, "type": "input_text"}
    start = TEXT if provider in ("anthropic", "openai", "plain") else start
    return [{"role": "user", "parts" if provider == "gemini" else "content": [start, *blocks]}]


@rows(
    ("provider", "block", "rewritten", "code"),
    [
        ("anthropic", {"type": "image", "source": None}, None, "bad-media"),
        ("anthropic", {"type": "image", "source": {"type": "base64", "data": PNG}}, SHOWN, "unknown-block"),
        (
            "anthropic",
            {"type": "image", "source": {**SHOWN["source"], "media_type": "image/jpg"}},
            SHOWN,
            "unknown-block",
        ),
        ("anthropic", {"type": "image", "source": {**SHOWN["source"], "data": "<svg>"}}, None, "bad-media"),
        ("anthropic", {"type": "image", "source": {"type": "url", "url": "a.png"}}, None, "bad-media"),
        ("anthropic", {"type": "document", "source": {"type": "file"}}, None, "bad-media"),
        ("anthropic", {"type": "container_upload"}, None, "bad-media"),
        ("anthropic", LINK, SHOWN, "unknown-block"),
        (
            "anthropic",
            {"type": "input_text", "text": "Hi."},
            {"type": "text", "text": "Hi."},
            "unknown-block",
        ),
        ("anthropic", {"type": "hologram"}, None, "unknown-block"),
        ("anthropic", {"type": "search_result", "title": "a"}, None, "bad-block"),
        ("openai", {"type": "image_url", "image_url": LINK["image_url"]["url"]}, LINK, "unknown-block"),
        ("openai", {"type": "image_url", "image_url": {"url": None}}, None, "bad-media"),
        ("openai", {"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}, None, "bad-media"),
        ("openai", {"type": "input_audio", "input_audio": {"data": "aGk="}}, None, "bad-media"),
        ("openai", {"type": "file", "file": {}}, None, "bad-media"),
        ("openai", SHOWN, LINK, "unknown-block"),
        ("openai", {"type": "tool_use", "id": "a", "name": "f", "input": {}}, None, "unknown-block"),
        ("openai", {"type": "refusal", "refusal": None}, None, "bad-block"),
        ("responses", {"type": "input_image"}, None, "bad-media"),
        (
            "responses",
            LINK,
            {"type": "input_image", "image_url": LINK["image_url"]["url"], "detail": "auto"},
            "unknown-block",
        ),
        (
            "responses",
            {"type": "text", "text": "Hi."},
            {"type": "input_text", "text": "Hi."},
            "unknown-block",
        ),
        ("gemini", {"inlineData": {"data": PNG}}, INLINE, "bad-media"),
        ("gemini", {"inlineData": {"mimeType": "image/png"}}, None, "bad-media"),
        ("gemini", LINK, INLINE, "unknown-block"),
        ("gemini", {"text": "Hi.", "type": "text"}, {"text": "Hi."}, "unknown-field"),
        ("plain", {"type": "image", "source": None}, None, "bad-media"),
        ("plain", {"type": "image_url", "image_url": {}}, None, "bad-media"),
    ],
)
def test_a_block_that_the_provider_refuses_is_rewritten_or_dropped_with_a_finding(
    provider, block, rewritten, code
):
    raws = said(provider, block)

    sent = sendable(raws, provider)

    assert not is_sendable(raws, provider)
    assert sent.raws == (said(provider, rewritten) if rewritten else said(provider))
    assert code in {found.code for found in sent.findings}
    assert is_sendable(sent.raws, provider)


def call_of(provider, name, arguments):
    if provider == "gemini":
        answer = {"functionResponse": {"name": name, "response": {}}}
        asked = [{"role": "model", "parts": [{"functionCall": {"name": name, "args": arguments}}]}]
        return [*RAWS["gemini"], *asked, {"role": "user", "parts": [answer]}]
    if provider == "anthropic":
        asked = {"type": "tool_use", "id": "a", "name": name, "input": arguments}
        answer = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}
        return [*RAWS["anthropic"], {"role": "assistant", "content": [asked]}, answer]
    called = {"name": name, "arguments": arguments}
    if provider == "responses":
        answer = {"type": "function_call_output", "call_id": "a", "output": ""}
        return [*RAWS["responses"], {"type": "function_call", "call_id": "a", **called}, answer]
    asked = {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": called}]}
    return [*RAWS["openai"], asked, {"role": "tool", "tool_call_id": "a", "content": ""}]


@rows("provider", ["anthropic", "openai", "responses", "gemini"])
def test_a_tool_name_that_the_provider_refuses_is_rewritten_in_call_and_result(provider):
    long, dotted = {"anthropic": 128}.get(provider, 64), provider == "gemini"
    for name, valid in {
        "n" * 129: "n" * long,
        "read a file": "read_a_file",
        "a.b": "a.b" if dotted else "a_b",
    }.items():
        arguments = {} if provider in ("anthropic", "gemini") else "{}"

        sent = sendable(call_of(provider, name, arguments), provider)

        assert sent.raws == call_of(provider, valid, arguments)
        assert [found.code for found in sent.findings] == (["bad-name"] if name != valid else [])[:1] * len(
            sent.findings
        )


@rows("provider", ["anthropic", "openai", "responses", "gemini"])
def test_what_json_cannot_hold_is_rewritten_before_it_is_sent(provider):
    key = "parts" if provider == "gemini" else "content"
    for value in ({"a": "\ud800"}, {"a": float("inf")}, deep(120), deep(100_000)):
        raws = call_of(provider, "read", value)
        raws[0] = {
            "role": "user",
            key: [{"text": "Half: \udc00"}] if provider == "gemini" else "Half: \udc00",
        }

        sent = sendable(raws, provider)

        assert json.dumps(sent.raws, ensure_ascii=False, allow_nan=False).encode()
        assert "Half: \ufffd" in str(sent.raws[0])
        assert len(sent.raws) == 3
        assert "not-json" in {found.code for found in sent.findings}
        assert not is_sendable(raws, provider)
        assert is_sendable(sent.raws, provider)


def test_a_repair_within_a_message_is_named_by_its_own_place():
    blank = [{"role": "user", "content": [{"type": "text", "text": "Go."}, {"type": "text", "text": " "}]}]

    done = sendable(blank, "anthropic")

    assert done.raws[0]["content"] == [{"type": "text", "text": "Go."}]
    assert [one.where for one in done.findings] == ["messages[0].content[1]"]


def test_what_is_known_to_be_plain_json_is_judged_the_same():
    half = {"role": "user", "content": "half \ud83d of a pair"}
    said = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "I go.", "meta": {"a": 1}}]
    for raws in (said, [*said, half], [*said, {"role": "tool", "tool_call_id": "x", "content": "ok"}]):
        plain = {id(raw) for raw in raws if encodable(raw) is raw}
        assert is_sendable(raws, "openai", plain=plain) == is_sendable(raws, "openai")

from aether.messages.providers.responses import findings
from tests.tables import rows

USER = {"role": "user", "content": "Go."}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}


def call(key="a", **fields):
    return {"type": "function_call", "call_id": key, "name": "read", "arguments": "{}", **fields}


def output(key="a", **fields):
    return {"type": "function_call_output", "call_id": key, "output": "ok", **fields}


def told(*raws, level="error"):
    return [(found.code, found.where) for found in findings(raws) if found.level == level]


def test_items_by_the_rules_are_refused_for_nothing():
    raws = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "input_text", "text": "Go."}, {"type": "input_image"}]},
        REASONING,
        call("a"),
        call("b"),
        output("b"),
        output("a", output=[{"type": "input_text", "text": "ok"}]),
        {"type": "custom_tool_call", "call_id": "c", "name": "x", "input": "y"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "z"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "item_reference", "id": "msg_9"},
        SAID,
        {"type": "compaction", "encrypted_content": "x"},
    ]

    assert list(findings(raws)) == []


@rows(
    ("raw", "code", "where"),
    [
        ({"content": "Hi."}, "bad-block", ""),
        ({"type": 7}, "bad-block", ""),
        ({"role": "tool", "content": "Hi."}, "bad-role", ""),
        ({"type": "message", "content": "Hi."}, "bad-role", ""),
        ({**USER, "meta": {}}, "unknown-field", ""),
        ({"role": "user", "content": None}, "empty-content", ""),
        ({"role": "user", "content": ["Hi."]}, "bad-block", ".content[0]"),
        ({"role": "user", "content": [{"type": "input_text"}]}, "bad-block", ".content[0]"),
        ({"role": "user", "content": [{"type": "output_text", "text": "Hi."}]}, "wrong-role", ".content[0]"),
        (
            {"role": "assistant", "content": [{"type": "input_text", "text": "Hi."}]},
            "wrong-role",
            ".content[0]",
        ),
        ({"type": "item_reference"}, "bad-id", ""),
        (call(None), "bad-id", ""),
        (output("x" * 65), "bad-id", ""),
        (REASONING, "dangling-reasoning", ""),
    ],
)
def test_an_item_that_cannot_be_sent_is_named(raw, code, where):
    assert (code, f"input[1]{where}") in told(USER, raw)


@rows(
    ("fields", "code"),
    [({"name": "a b"}, "bad-name"), ({"name": None}, "bad-name"), ({"arguments": {}}, "bad-arguments")],
)
def test_a_call_that_cannot_be_sent_is_named(fields, code):
    assert told(USER, call(**fields), output()) == [(code, "input[1]")]


def test_an_output_and_reasoning_have_what_the_api_asks_for():
    assert told(USER, call(), output(output=None)) == [("empty-content", "input[2]")]
    assert told(USER, {"type": "reasoning", "id": "rs_1"}, SAID) == [("bad-block", "input[1]")]


def test_what_is_not_known_is_doubted():
    assert told({"type": "hologram"}, level="warning") == [("unknown-block", "input[0]")]
    assert told({"role": "user", "content": [{"type": "x"}]}, level="warning") == [
        ("unknown-block", "input[0].content[0]")
    ]
    assert told({"role": "user", "content": []}, level="warning") == [("empty-content", "input[0]")]
    assert told(call(arguments="{"), output(), level="warning") == [("bad-arguments", "input[0]")]


@rows(
    ("raws", "expected"),
    [
        ([USER, output()], [("orphan-result", "input[1]")]),
        ([call(), USER], [("missing-result", "input[0]")]),
        ([call(), output(), output()], [("repeated-result", "input[2]")]),
        ([output(), call(), USER], [("interleaved-result", "input[0]"), ("missing-result", "input[1]")]),
        ([call(), call(), output(), output()], [("repeated-id", "input[1]")]),
        ([REASONING, USER, SAID], [("dangling-reasoning", "input[0]")]),
        ([REASONING, SAID, REASONING, SAID], [("repeated-id", "input[2]")]),
    ],
)
def test_items_that_do_not_meet_are_named(raws, expected):
    assert told(*raws) == expected


@rows("more", [[], [output("b")], [SAID], [call("c"), output("b"), output("c")]])
def test_calls_that_wait_at_the_end_are_dangling(more):
    raws = [USER, call("a"), call("b"), *more]

    assert told(*raws) == []
    assert ("dangling-call", "input[1]") in told(*raws, level="warning")


def test_outputs_alone_at_the_end_have_no_response_that_could_wait():
    assert told(call("a"), USER, output("b")) == [
        ("orphan-result", "input[2]"),
        ("missing-result", "input[0]"),
    ]


def test_a_call_id_that_is_used_again_is_only_doubted():
    raws = [call(), output(), call(), output()]

    assert told(*raws) == []
    assert told(*raws, level="warning") == [("repeated-id", "input[2]")]

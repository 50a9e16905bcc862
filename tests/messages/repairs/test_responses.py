from aether.messages.providers.responses import findings, mended
from tests.tables import rows

USER = {"role": "user", "content": "Go."}
SAID = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Done."}],
}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}
GIVEN = {"type": "input_text", "text": "Hi."}


def call(key="a", **fields):
    return {"type": "function_call", "call_id": key, "name": "read", "arguments": "{}", **fields}


def output(key="a", **fields):
    return {"type": "function_call_output", "call_id": key, "output": "ok", **fields}


def spoken(*parts, role="user"):
    return {"role": role, "content": list(parts)}


def without(raw, key):
    return {name: value for name, value in raw.items() if name != key}


@rows(
    ("raws", "expected", "codes"),
    [
        ([USER, output()], [USER], ["orphan-result"]),
        ([call(), USER], [USER], ["missing-result"]),
        ([call(), output(), output(), USER], [call(), output(), USER], ["orphan-result"]),
        ([output(), USER, call(), USER], [USER, call(), output(), USER], ["interleaved-result"]),
        ([REASONING, call(), USER], [USER], ["missing-result", "dangling-reasoning"]),
        ([REASONING, {**REASONING, "id": "rs_2"}], [], ["dangling-reasoning", "dangling-reasoning"]),
        (
            [call(), call(), output(output="2"), output(output="1")],
            [call(), call("a_2"), output("a_2", output="2"), output(output="1")],
            ["repeated-id"],
        ),
        ([call("x" * 65), output("x" * 65)], [call("x" * 64), output("x" * 64)], ["repeated-id"]),
        ([SAID, SAID], [SAID, without(SAID, "id")], ["repeated-id"]),
        ([REASONING, SAID, REASONING, call()], [REASONING, SAID, call()], ["repeated-id"]),
        ([{**USER, "meta": {}}], [USER], ["unknown-field"]),
        ([{**USER, "type": None}], [USER], ["bad-block"]),
        ([{"content": "Hi."}, USER], [USER], ["bad-block"]),
        ([call(None), USER], [USER], ["bad-id"]),
        ([{"type": "reasoning", "id": "rs_1"}, SAID], [REASONING, SAID], ["bad-block"]),
        ([{"type": "item_reference"}, USER], [USER], ["bad-id"]),
        ([call(name="a b"), output()], [call(name="a_b"), output()], ["bad-name"]),
        ([call(arguments={"a": 1}), output()], [call(arguments='{"a": 1}'), output()], ["bad-arguments"]),
        ([call(arguments=None), USER], [USER], ["bad-name"]),
        ([call(), output(output=None)], [call(), output(output="")], ["empty-content"]),
        ([call(), output(output={"a": "ü"})], [call(), output(output='{"a": "ü"}')], ["empty-content"]),
        ([{"role": "ai", "content": "Hi."}], [{"role": "assistant", "content": "Hi."}], ["bad-role"]),
        ([without(SAID, "role")], [SAID], ["bad-role"]),
        ([{"role": "user", "content": None}, USER], [USER], ["empty-content"]),
        ([spoken(), {"role": "user", "content": GIVEN}], [spoken(), spoken(GIVEN)], ["bad-block"]),
        (
            [spoken("Hi.", {"text": "Hi."}, {"type": "output_text", "text": "Hi."})],
            [spoken(GIVEN, GIVEN, GIVEN)],
            ["bad-block"],
        ),
        (
            [spoken(GIVEN, 7, {"type": "input_text"}, {"type": "refusal", "refusal": "No."})],
            [spoken(GIVEN)],
            ["bad-block", "bad-block", "wrong-role", "bad-block"],
        ),
    ],
)
def test_what_the_api_refuses_is_mended(raws, expected, codes):
    done = mended(raws)

    assert done.raws == expected
    assert [found.code for found in done.findings] == codes
    assert [found.code for found in findings(done.raws) if found.level == "error"] == []
    assert mended(done.raws) == (done.raws, [])


@rows(
    "raws",
    [
        [],
        [USER, REASONING, SAID, call("a"), output("a"), call("b")],
        [call(), output(), call(), output()],
        [spoken(GIVEN, {"type": "input_image"}, {"type": "hologram"}), {"type": "hologram"}, spoken()],
        [{"type": "item_reference", "id": "x"}, {"type": "web_search_call", "id": "ws"}],
        [{"type": "custom_tool_call", "call_id": "c"}, {"type": "custom_tool_call_output", "call_id": "c"}],
    ],
)
def test_what_the_api_takes_is_left_as_it_is(raws):
    done = mended(raws)

    assert all(after is before for after, before in zip(done.raws, raws, strict=True))
    assert done.findings == []

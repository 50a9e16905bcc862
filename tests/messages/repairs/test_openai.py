from aether.messages.providers.openai import findings, mended
from tests.tables import rows

USER = {"role": "user", "content": "Go."}
DONE = {"role": "assistant", "content": "Done."}
TEXT = {"type": "text", "text": "Hi."}
IMAGE = {"type": "image_url", "image_url": {"url": "data:,"}}


def call(key="a", name="read", arguments="{}", **fields):
    return {"id": key, "type": "function", "function": {"name": name, "arguments": arguments}, **fields}


def calling(*calls, content=None):
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def answer(key="a", content="ok"):
    return {"role": "tool", "tool_call_id": key, "content": content}


@rows(
    ("raws", "expected", "codes"),
    [
        ([calling(call()), USER, answer()], [calling(call()), answer(), USER], ["interleaved-result"]),
        ([USER, answer()], [USER], ["orphan-result"]),
        ([calling(call()), answer(), answer()], [calling(call()), answer()], ["orphan-result"]),
        (
            [calling(call(), content="Look."), USER],
            [{"role": "assistant", "content": "Look."}, USER],
            ["missing-result"],
        ),
        ([calling(call()), USER], [USER], ["missing-result", "empty-content"]),
        (
            [calling(call("a"), call("b")), answer("b"), USER],
            [calling(call("b")), answer("b"), USER],
            ["missing-result"],
        ),
        (
            [calling(call(), call()), answer(content="2"), answer(content="1")],
            [calling(call(), call("a_2")), answer("a_2", "2"), answer("a", "1")],
            ["repeated-id"],
        ),
        (
            [calling(call("x" * 41)), answer("x" * 41)],
            [calling(call("x" * 40)), answer("x" * 40)],
            ["repeated-id"],
        ),
        ([{**USER, "role": "human", "meta": {}}], [USER], ["bad-role", "unknown-field"]),
        ([{**USER, "tool_calls": [call()]}], [USER], ["empty-calls"]),
        ([{**DONE, "tool_calls": None}], [DONE], ["empty-calls"]),
        ([{**DONE, "tool_calls": ["read"]}], [DONE], ["bad-id"]),
        ([{**DONE, "tool_calls": [call(name=None)]}], [DONE], ["bad-block"]),
        ([{**DONE, "tool_calls": [call(function="read")]}], [DONE], ["bad-block"]),
        ([{**DONE, "tool_calls": [call(arguments=None)]}], [DONE], ["bad-block"]),
        ([USER, calling(call(name="a b"))], [USER, calling(call(name="a_b"))], ["bad-name"]),
        (
            [USER, calling(call(arguments={"a": 1}))],
            [USER, calling(call(arguments='{"a": 1}'))],
            ["bad-arguments"],
        ),
        ([{"role": "tool", "content": "ok"}, USER], [USER], ["bad-id"]),
        ([{"role": "user", "content": None}, USER], [USER], ["empty-content"]),
        ([{"role": "user", "content": 7}, USER], [USER], ["empty-content", "empty-content"]),
        ([{"role": "user", "content": TEXT}], [{"role": "user", "content": [TEXT]}], ["bad-block"]),
        (
            [{"role": "user", "content": ["Hi.", {"text": "Hi."}, 7, {"type": "text"}]}],
            [{"role": "user", "content": [TEXT, TEXT]}],
            ["bad-block", "bad-block", "bad-block"],
        ),
        (
            [{"role": "system", "content": [TEXT, IMAGE]}],
            [{"role": "system", "content": [TEXT]}],
            ["wrong-role", "bad-block"],
        ),
        ([calling(call()), answer(content=None)], [calling(call()), answer(content="")], ["empty-content"]),
        ([USER, {**calling(call()), "content": []}], [USER, calling(call())], ["empty-content"]),
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
        [USER, calling(call("a"), call("b")), answer("b")],
        [calling(call()), answer(), calling(call()), answer(), USER],
        [{"role": "user", "content": [TEXT, IMAGE, {"type": "hologram"}], "reasoning_content": "Hm."}],
        [{"role": "user", "content": "Hi.", "tool_calls": None}],
        [calling({"id": "a", "type": "custom", "custom": {}}), answer()],
        [
            {"role": "assistant", "content": None, "refusal": "No."},
            {"role": "function", "name": "x", "content": "y"},
        ],
    ],
)
def test_what_the_api_takes_is_left_as_it_is(raws):
    done = mended(raws)

    assert all(after is before for after, before in zip(done.raws, raws, strict=True))
    assert done.findings == []

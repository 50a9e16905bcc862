from aether.messages.providers.gemini import findings, mended
from tests.tables import rows

GO, DONE = {"text": "Go."}, {"text": "Done."}
USER = {"role": "user", "parts": [GO]}
MODEL = {"role": "model", "parts": [DONE]}


def call(name="read", **fields):
    return {"functionCall": {"name": name, "args": {}, **fields}}


def response(name="read", **fields):
    return {"functionResponse": {"name": name, "response": {}, **fields}}


def model(*parts):
    return {"role": "model", "parts": list(parts)}


def user(*parts):
    return {"role": "user", "parts": list(parts)}


@rows(
    ("raws", "expected", "codes"),
    [
        (
            [USER, model(call()), USER, MODEL, user(response(), GO)],
            [USER, model(call()), user(response(), GO), MODEL, USER],
            ["interleaved-result"],
        ),
        (
            [USER, model(call("a"), call("b")), user(response("a")), user(response("b"), GO)],
            [USER, model(call("a"), call("b")), user(response("a"), response("b")), USER],
            ["interleaved-result"],
        ),
        (
            [USER, model(call("a")), model(call("b")), user(response("a"), response("b"))],
            [USER, model(call("a")), user(response("a")), model(call("b")), user(response("b"))],
            ["interleaved-result"],
        ),
        (
            [USER, model(call("a")), user(response("a")), model(call("a")), MODEL, user(response("a"))],
            [USER, model(call("a")), user(response("a")), model(call("a")), user(response("a")), MODEL],
            ["interleaved-result"],
        ),
        (
            [
                USER,
                MODEL,
                model(call("a")),
                model(call("b")),
                MODEL,
                USER,
                user(response("a"), response("b")),
            ],
            [
                USER,
                model(DONE, call("a")),
                user(response("a")),
                model(call("b")),
                user(response("b")),
                MODEL,
                USER,
            ],
            ["interleaved-result", "interleaved-result", "role-order"],
        ),
        (
            [USER, model(call("b")), MODEL, USER, user(response("b"))],
            [USER, model(call("b")), user(response("b")), MODEL, USER],
            ["interleaved-result"],
        ),
        ([USER, user(response())], [USER], ["orphan-result"]),
        ([USER, model(DONE, call()), USER], [USER, MODEL, USER], ["missing-result"]),
        (
            [USER, model(call(), call()), user(response())],
            [USER, model(call()), user(response())],
            ["missing-result"],
        ),
        (
            [USER, MODEL, MODEL, model(call())],
            [USER, model(DONE, DONE, call())],
            ["role-order", "role-order"],
        ),
        ([model(DONE, call()), user(response()), USER], [MODEL, USER], ["role-order", "role-order"]),
        ([{"role": "ai", "parts": [DONE], "meta": {}}], [MODEL], ["bad-role", "unknown-field"]),
        ([{"parts": GO}], [USER], ["bad-role"]),
        ([{"role": "user", "content": "Hi."}, USER], [USER], ["unknown-field", "empty-content"]),
        ([user("Go.")], [USER], ["bad-block"]),
        ([user(7, {}, {"text": 7}, {"text": ""}, {"inlineData": 7}, GO)], [USER], ["bad-block"] * 5),
        ([user({"text": "Go.", "inlineData": None})], [USER], ["bad-block"]),
        ([user(GO, call()), model(DONE, response())], [USER, MODEL], ["bad-block", "bad-block"]),
        ([USER, model(DONE, call(""), call(args=7))], [USER, MODEL], ["bad-block", "bad-block"]),
        (
            [USER, model({**call(), "text": "Done.", "thoughtSignature": "x"})],
            [USER, model(call(), {"text": "Done.", "thoughtSignature": "x"})],
            ["bad-block"],
        ),
        (
            [USER, model(call(), call()), user(response(response="ok"), response(response=None))],
            [USER, model(call(), call()), user(response(response={"result": "ok"}), response())],
            ["bad-block", "bad-block"],
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
        [MODEL, USER, MODEL],
        [USER, model(DONE, call("a", id="1"), call("b", args=None))],
        [USER, model(call("a"), call("b")), user(response("b"), response("a"), GO), MODEL],
        [
            USER,
            model({"function_call": {"name": "a"}}),
            user({"function_response": {"name": "a", "response": {}}}),
        ],
        [user(GO, {"inlineData": {"data": ""}}, {"fileData": {}})],
    ],
)
def test_what_the_api_takes_is_left_as_it_is(raws):
    done = mended(raws)

    assert all(after is before for after, before in zip(done.raws, raws, strict=True))
    assert done.findings == []

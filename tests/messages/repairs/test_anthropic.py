from aether.messages.providers.anthropic import findings, mended
from tests.tables import rows

USER = {"role": "user", "content": "Go."}
DONE = {"role": "assistant", "content": "Done."}
SIGNED = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
SAID = {"type": "text", "text": "Look."}


def call(key="a"):
    return {"type": "tool_use", "id": key, "name": "read", "input": {}}


def result(key="a"):
    return {"type": "tool_result", "tool_use_id": key, "content": f"{key}!"}


def assistant(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


@rows(
    ("raws", "expected", "codes"),
    [
        # A result goes back to its call, before what came between.
        (
            [USER, assistant(call()), USER, DONE, user(result(), SAID)],
            [USER, assistant(call()), user(result(), {"type": "text", "text": "Go."}), DONE, user(SAID)],
            ["interleaved-result"],
        ),
        # Where no message of the user follows, it gets one.
        (
            [USER, assistant(call()), {"role": "system", "content": "Hurry."}, user(result())],
            [USER, assistant(call()), user(result()), {"role": "system", "content": "Hurry."}],
            ["interleaved-result"],
        ),
        (
            [USER, user(SAID), assistant(call("a"), call("b")), user(result("b")), user(result("a"), SAID)],
            [USER, user(SAID), assistant(call("a"), call("b")), user(result("b"), result("a")), user(SAID)],
            ["interleaved-result"],
        ),
        (
            [USER, assistant(call()), user(SAID, result())],
            [USER, assistant(call()), user(result(), SAID)],
            ["result-order"],
        ),
        # What never met its other half goes; what was said beside it stays.
        ([USER, assistant(SAID, call()), USER], [USER, assistant(SAID), USER], ["missing-result"]),
        ([USER, assistant(call()), USER], [USER, USER], ["missing-result"]),
        ([USER, user(result(), SAID)], [USER, user(SAID)], ["orphan-result"]),
        (
            [USER, assistant(call()), user(result(), result())],
            [USER, assistant(call()), user(result())],
            ["orphan-result"],
        ),
        (
            [USER, assistant(call("a")), USER, assistant(call("b")), user(result("a"))],
            [USER, assistant(call("a")), user(result("a"), {"type": "text", "text": "Go."})],
            ["missing-result", "interleaved-result"],
        ),
        # An id that is used again becomes two.
        (
            [USER, assistant(call()), user(result()), assistant(call()), user(result())],
            [
                USER,
                assistant(call()),
                user(result()),
                assistant(call("a_2")),
                user({**result("a_2"), "content": "a!"}),
            ],
            ["repeated-id"],
        ),
        (
            [USER, assistant(call("a|b")), user(result("a|b"))],
            [USER, assistant(call("a_b")), user({**result("a_b"), "content": "a|b!"})],
            ["bad-id"],
        ),
        # The user speaks first, in the words that the assistant said first.
        (
            [DONE, USER],
            [{"role": "user", "content": [{"type": "text", "text": "Done."}]}, USER],
            ["first-role"],
        ),
        (
            [user(result()), assistant(SIGNED, SAID, call()), user(result()), USER],
            [user(SAID), USER],
            ["orphan-result", "first-role", "first-role", "first-role", "orphan-result"],
        ),
        ([assistant(call()), user(result())], [], ["first-role", "orphan-result"]),
        # Thinking leads to something.
        ([USER, assistant(SAID, SIGNED), USER], [USER, assistant(SAID), USER], ["thinking-order"]),
        ([USER, assistant(SIGNED), USER], [USER, USER], ["thinking-order"]),
        (
            [USER, assistant(call(), SIGNED, SAID), user(result())],
            [USER, assistant(call(), SAID), user(result())],
            ["thinking-order"],
        ),
        (
            [USER, {"role": "assistant", "content": "Done.\n"}],
            [USER, assistant({"type": "text", "text": "Done."})],
            ["trailing-whitespace"],
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
        [USER, DONE],
        [USER, assistant(SIGNED, SAID, call("a"), call("b"))],
        [USER, assistant(call("a"), call("b")), user(result("b"))],
        [USER, assistant(SIGNED), assistant(call()), user(result(), SAID)],
    ],
)
def test_what_the_api_takes_is_left_as_it_is(raws):
    done = mended(raws)

    assert all(after is before for after, before in zip(done.raws, raws, strict=True))
    assert done.findings == []

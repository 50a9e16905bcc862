import pytest

from aether.messages.model import Block
from aether.messages.providers import anthropic
from aether.messages.turns import Answer, Turn
from tests.messages.repairs import faults_of, repaired, require_repaired
from tests.tables import rows


def kinds(content, role="assistant"):
    return [block.kind for block in anthropic.message({"role": role, "content": content}).blocks]


def test_a_message_is_text_or_blocks():
    assert anthropic.message({"role": "user", "content": "Hi"}).blocks == (Block("text", "Hi", ("content",)),)
    [block] = anthropic.message({"role": "user", "content": [{"type": "text", "text": "Hi"}]}).blocks
    assert (block.text, block.at) == ("Hi", ("content", 0, "text"))


def test_results_alone_make_a_tool_message():
    answer = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}

    assert anthropic.message({"role": "user", "content": [answer]}).role == "tool"
    assert (
        anthropic.message({"role": "user", "content": [answer, {"type": "text", "text": "and"}]}).role
        == "user"
    )
    assert anthropic.message({"role": "user", "content": []}).role == "user"
    assert anthropic.message({"role": "assistant", "content": [answer]}).role == "assistant"


def test_results_of_server_tools_are_in_the_message_that_called():
    found = anthropic.message(
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Look.", "signature": "s"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "s1",
                    "content": [{"type": "web_search_result"}],
                },
                {"type": "text", "text": "Found."},
            ],
        }
    )

    assert [block.kind for block in found.blocks] == ["reasoning", "reasoning", "call", "result", "text"]
    assert found.blocks[0].text == "Look."
    assert found.blocks[2].call_id == found.blocks[3].call_id == "s1"
    assert found.blocks[3].at == ()


def test_media_and_unknown_blocks_are_distinguished():
    assert kinds([{"type": "image", "source": {}}, {"type": "container_upload"}]) == ["media", "media"]
    assert kinds([{"type": "new"}, "text", 7, None, {"type": "text"}]) == ["other"] * 5
    assert kinds(None) == []
    assert kinds(7) == kinds({"type": "text", "text": "a"}) == ["other"]


@rows(("role", "read"), [("system", "system"), ("robot", "user"), (None, "user")])
def test_roles_are_known_or_the_users(role, read):
    assert anthropic.message({"role": role, "content": "Hi"}).role == read


def test_reasoning_goes_unless_nothing_else_is_there():
    thought, text = {"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "Hi"}

    assert anthropic.without_reasoning({"role": "a", "content": [thought, text]}) == {
        "role": "a",
        "content": [text],
    }
    for raw in ({"content": [thought]}, {"content": [text]}, {"content": "Hi"}):
        assert anthropic.without_reasoning(raw) is raw


def test_a_turn_is_written_with_its_answers_in_one_message():
    call = Block("call", '{"a": 1}', (), "c1", "f", {"a": 1})
    image = {"type": "image", "source": {"type": "url", "url": "u"}}
    answers = [
        Answer(Block("result", "", (), "c1", "f"), [image]),
        Answer(Block("result", "broke", (), "c2", "f", is_error=True), []),
        Answer(Block("result", "see", (), "c3"), [image]),
    ]

    said, answered = anthropic.write(Turn("assistant", [Block("text", "Go."), call], answers, {}))

    assert said["content"] == [
        {"type": "text", "text": "Go."},
        {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
    ]
    assert answered["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": [image]},
        {"type": "tool_result", "tool_use_id": "c2", "content": "broke", "is_error": True},
        {"type": "tool_result", "tool_use_id": "c3", "content": [{"type": "text", "text": "see"}, image]},
    ]
    assert anthropic.write(Turn("user", [image], [], {"label": "x"})) == [
        {"role": "user", "content": [image], "meta": {"label": "x"}}
    ]


USER = {"role": "user", "content": "Go."}


DONE = {"role": "assistant", "content": "Done."}


SIGNED = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}


SAID = {"type": "text", "text": "Look."}


def call(key="a", **fields):
    return {"type": "tool_use", "id": key, "name": "read", "input": {}, **fields}


def result(key="a", **fields):
    return {"type": "tool_result", "tool_use_id": key, **fields}


def assistant(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


def reported(*raws, level="error"):
    return [(found.code, found.where) for found in faults_of("anthropic", raws) if found.level == level]


def test_a_conversation_by_the_rules_is_refused_for_nothing():
    image = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    hits = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}

    raws = [
        user(image, SAID),
        assistant(SIGNED, {"type": "redacted_thinking", "data": "x"}, SAID, call("a"), call("b")),
        user(result("b", content="ok"), result("a", content=[SAID, image]), SAID),
        assistant(search, hits, call("c")),
        user(result("c", is_error=True)),
        user(SAID),
    ]

    assert list(faults_of("anthropic", raws)) == []


def test_the_user_is_first_even_after_system_messages():
    system = {"role": "system", "content": "Be brief."}

    assert reported(system, DONE, USER) == [("first-role", "messages[1]")]
    assert reported(system, USER, level="warning") == [("system-role", "messages[0]")]


@pytest.mark.parametrize("more", [[], [user(result("a"))]])
def test_calls_that_wait_at_the_end_are_dangling(more):
    raws = [USER, assistant(call("a"), call("b")), *more]

    assert reported(*raws) == []
    assert ("dangling-call", "messages[1].content[1]") in reported(*raws, level="warning")


def answer(key="a"):
    return {"type": "tool_result", "tool_use_id": key, "content": f"{key}!"}


@rows(
    ("raws", "expected", "codes"),
    [
        # A answer goes back to its call, before what came between.
        (
            [USER, assistant(call()), USER, DONE, user(answer(), SAID)],
            [USER, assistant(call()), user(answer(), {"type": "text", "text": "Go."}), DONE, user(SAID)],
            ["interleaved-result"],
        ),
        # Where no message of the user follows, it gets one.
        (
            [USER, assistant(call()), {"role": "system", "content": "Hurry."}, user(answer())],
            [USER, assistant(call()), user(answer()), {"role": "system", "content": "Hurry."}],
            ["interleaved-result"],
        ),
        (
            [USER, assistant(call()), user(SAID, answer())],
            [USER, assistant(call()), user(answer(), SAID)],
            ["result-order"],
        ),
        # What never met its other half goes; what was said beside it stays.
        ([USER, assistant(SAID, call()), USER], [USER, assistant(SAID), USER], ["missing-result"]),
        ([USER, assistant(call()), USER], [USER, USER], ["missing-result"]),
        ([USER, user(answer(), SAID)], [USER, user(SAID)], ["orphan-result"]),
        (
            [USER, assistant(call()), user(answer(), answer())],
            [USER, assistant(call()), user(answer())],
            ["repeated-result"],
        ),
        (
            [USER, assistant(call("a")), USER, assistant(call("b")), user(answer("a"))],
            [USER, assistant(call("a")), user(answer("a"), {"type": "text", "text": "Go."})],
            ["missing-result", "result-order"],
        ),
        # An id that is used again becomes two.
        (
            [USER, assistant(call()), user(answer()), assistant(call()), user(answer())],
            [
                USER,
                assistant(call()),
                user(answer()),
                assistant(call("a_2")),
                user({**answer("a_2"), "content": "a!"}),
            ],
            ["repeated-id"],
        ),
        (
            [USER, assistant(call("a|b")), user(answer("a|b"))],
            [USER, assistant(call("a_b")), user({**answer("a_b"), "content": "a|b!"})],
            ["bad-id"],
        ),
        # The user speaks first, in the words that the assistant said first.
        (
            [DONE, USER],
            [{"role": "user", "content": [{"type": "text", "text": "Done."}]}, USER],
            ["first-role"],
        ),
        (
            [user(answer()), assistant(SIGNED, SAID, call()), user(answer()), USER],
            [user(SAID), USER],
            ["orphan-result", "first-role", "first-role", "first-role", "orphan-result"],
        ),
        ([assistant(call()), user(answer())], [], ["first-role", "first-role", "orphan-result"]),
        # Thinking leads to something.
        ([USER, assistant(SAID, SIGNED), USER], [USER, assistant(SAID), USER], ["thinking-order"]),
        ([USER, assistant(SIGNED), USER], [USER, USER], ["thinking-order"]),
        (
            [USER, assistant(call(), SIGNED, SAID), user(answer())],
            [USER, assistant(call(), SAID), user(answer())],
            ["thinking-order"],
        ),
        (
            [USER, {"role": "assistant", "content": "Done.\n"}],
            [USER, assistant({"type": "text", "text": "Done."})],
            ["trailing-whitespace"],
        ),
    ],
)
def test_messages_that_the_api_refuses_are_repaired(raws, expected, codes):
    require_repaired("anthropic", raws, expected, codes)


IMAGE = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}


TEXT = {"type": "text", "text": "Hi."}


def cleared(raw):
    """Return the last message of a repaired conversation that is valid but for `raw`, and the findings about it."""
    before = [USER, assistant(call())] if "tool_result" in str(raw) else [USER]
    done = repaired("anthropic", [*before, raw])
    found = [(one.level, one.code, one.where.partition("]")[2]) for one in done.findings]
    return done.raws[-1], found


def test_role_and_fields_are_the_apis():
    raw = {"role": "ai", "content": "Hi.", "id": "m", "meta": {}}

    assert cleared(raw) == (
        {"role": "assistant", "content": [TEXT]},
        [("info", "bad-role", ""), ("info", "unknown-field", "")],
    )
    assert cleared({"role": "user", "content": "Hi.", "id": "m"})[0] == {"role": "user", "content": "Hi."}


@rows("content", [TEXT, ["Hi."], [{"text": "Hi.", "type": None}]])
def test_text_that_is_no_block_becomes_one(content):
    raw, found = cleared({"role": "user", "content": content})

    assert raw == {"role": "user", "content": [TEXT]}
    assert [(level, code) for level, code, _ in found] == [("info", "bad-block")]


@rows(
    ("role", "block", "code"),
    [
        ("user", 7, "bad-block"),
        ("user", {"type": "text", "text": ""}, "empty-content"),
        ("user", {"type": "text"}, "empty-content"),
        ("user", call(), "wrong-role"),
        ("assistant", IMAGE, "wrong-role"),
        ("assistant", call(id=""), "bad-id"),
        ("assistant", call(id=["a"]), "bad-id"),
        ("assistant", call(name=None), "bad-name"),
        ("assistant", call(input=None), "bad-arguments"),
        ("assistant", call(input=7), "bad-arguments"),
        ("assistant", {"type": "thinking", "thinking": "Hm."}, "unsigned-thinking"),
        ("assistant", {"type": "redacted_thinking", "data": ""}, "unsigned-thinking"),
        ("user", {"type": "tool_result"}, "bad-id"),
    ],
)
def test_a_block_that_nobody_can_send_is_dropped(role, block, code):
    raw, reported = cleared({"role": role, "content": [TEXT, block]})

    assert raw == {"role": role, "content": [TEXT]}
    assert ("warning", code, ".content[1]") in reported


def test_arguments_and_names_are_rewritten():
    raw, reported = cleared({"role": "assistant", "content": [call(name="my tool", input='{"a": 1}')]})

    assert raw["content"] == [call(name="my_tool", input={"a": 1})]
    assert [code for _, code, _ in reported] == ["bad-arguments", "bad-name"]


@rows("bad", ["Hi.", {"type": "text", "text": " "}, {"type": "text"}, {}])
def test_a_result_loses_the_parts_that_nobody_can_send(bad):
    block = {"type": "tool_result", "tool_use_id": "a", "content": [TEXT, bad]}

    raw, reported = cleared({"role": "user", "content": [block]})

    assert raw["content"] == [{**block, "content": [TEXT]}]
    assert [(level, where) for level, _, where in reported] == [("warning", ".content[0].content[1]")]


def test_a_result_of_something_else_is_empty():
    assert cleared({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": 7}]})[
        0
    ]["content"] == [{"type": "tool_result", "tool_use_id": "a", "content": []}]


@rows("content", [None, 7, "", []])
def test_an_empty_message_is_dropped(content):
    left, found = cleared({"role": "user", "content": content})

    assert left is USER
    assert ("warning", "empty-content", "") in found


def served(key, *, name="web_search", kind="server_tool_use"):
    return {"type": kind, "id": key, "name": name, "input": {}, "server_name": "docs"}


def served_result(key, kind="web_search_tool_result"):
    return {"type": kind, "tool_use_id": key, "content": []}


def turn(role, *content):
    return {"role": role, "content": list(content)}


GO = {"type": "text", "text": "Go on."}
CALL = {"type": "tool_use", "id": "t", "name": "read", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}


@rows(
    ("turns", "codes"),
    [
        ([turn("assistant", served("s"), served_result("s")), turn("user", GO)], []),
        ([turn("assistant", served("s"), CALL), turn("user", RESULT), turn("assistant", served_result("s"))], []),
        ([turn("assistant", GO, served("s"))], []),  # the API goes on with it
        ([turn("assistant", GO, served("s")), turn("user", GO)], ["missing-result"]),
        ([turn("assistant", GO, served("s", kind="mcp_tool_use")), turn("user", GO)], ["missing-result"]),
        ([turn("assistant", served_result("s", "mcp_tool_result"), GO), turn("user", GO)], ["orphan-result"]),
        ([turn("assistant", served("s"), served_result("s"), served_result("s")), turn("user", GO)], ["orphan-result"]),
        ([turn("assistant", GO, served("s")), turn("user", GO), turn("assistant", served_result("s"), GO), turn("user", GO)],
         ["missing-result", "orphan-result"]),
    ],
)  # fmt: skip
def test_calls_that_a_server_ran_are_answered_in_their_response(turns, codes):
    raws = [turn("user", GO), *turns]

    found = [finding.code for finding in faults_of("anthropic", raws) if finding.level == "error"]
    corrected = repaired("anthropic", raws).raws

    assert found == codes
    assert [finding for finding in faults_of("anthropic", corrected) if finding.level == "error"] == []

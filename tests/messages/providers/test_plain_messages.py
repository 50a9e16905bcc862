from aether.messages.model import Block
from aether.messages.providers import plain
from tests.messages.repairs import faults_of, repaired
from tests.tables import rows


def read(**raw):
    return plain.message(raw)


@rows(
    ("role", "seen"),
    [
        ("developer", "system"),
        ("human", "user"),
        ("ai", "assistant"),
        ("tool", "tool"),
        ("robot", "user"),
        (3, "user"),
    ],
)
def test_roles_of_many_agents_are_known(role, seen):
    assert read(role=role, content="Hi").role == seen


def test_calls_are_read_in_the_forms_of_other_agents():
    function = {"id": "c", "function": {"name": "f", "arguments": "{}"}}
    flat = {"id": "d", "function": "g", "arguments": {"a": 1}}
    named = {"id": "e", "name": "h", "arguments": "{}"}
    inside = [
        {"type": "tool_use", "id": "i", "name": "j", "input": {}},
        {"type": "toolCall", "id": "k", "name": "l"},
    ]

    beside = read(role="assistant", content="Go.", tool_calls=[function, flat, named, 7]).blocks
    within = read(role="assistant", content=inside).blocks

    assert [(block.tool, block.call_id) for block in beside[1:4]] == [("f", "c"), ("g", "d"), ("h", "e")]
    assert (beside[2].at, beside[4].kind) == (("tool_calls", 1, "arguments"), "other")
    assert [(block.tool, block.call_id) for block in within] == [("j", "i"), ("l", "k")]


@rows(
    "raw",
    [
        {"role": "tool", "tool_call_id": "c"},
        {"role": "toolResult", "toolCallId": "c"},
        {"role": "tool", "tool_call_ids": ["c"]},
    ],
)
def test_results_are_read_in_the_forms_of_other_agents(raw):
    found = plain.message({**raw, "content": "ok"})

    assert (found.role, found.blocks) == ("tool", (Block("result", "ok", ("content",), "c"),))


def test_failures_are_flagged_in_many_ways():
    for flag in ({"error": {"message": "no"}}, {"isError": True}, {"is_error": True}):
        assert read(role="tool", content="ok", **flag).blocks[0].is_error


def test_results_inside_a_user_message_make_it_the_tools():
    answer = {"type": "tool_result", "tool_use_id": "c", "content": "ok"}

    assert read(role="user", content=[answer]).role == "tool"
    assert read(role="user", content=[answer, "and"]).role == "user"
    assert read(role="tool", content=[answer]).blocks[0].call_id == "c"


def test_calls_may_be_listed_with_their_answers():
    done = {"id": "c", "name": "f", "args": {"a": 1}, "result": "ok", "status": "success"}
    open_ = {"id": "d", "name": "g"}

    found = read(type="gemini", content="", toolCalls=[done, open_]).blocks

    assert [block.kind for block in found] == ["text", "call", "result", "call"]
    assert (found[2].call_id, found[2].tool, found[2].text) == ("c", "f", "ok")


def test_strings_in_a_list_are_texts_and_reasoning_is_known():
    found = read(
        role="assistant",
        content=["a", {"type": "reasoning", "reasoning": "Hm."}, {"type": "refusal", "refusal": "No."}],
    )

    assert [(block.kind, block.text) for block in found.blocks] == [
        ("text", "a"),
        ("reasoning", "Hm."),
        ("text", "No."),
    ]


def test_reasoning_is_removed_from_any_place():
    raw = {
        "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "a"}],
        "reasoning": "Hm.",
    }

    assert plain.without_reasoning(raw) == {"content": [{"type": "text", "text": "a"}]}


def reported(*raws, level="error"):
    return [(found.code, found.where) for found in faults_of("plain", raws) if found.level == level]


def test_any_text_under_a_common_role_is_fine():
    assert (
        list(faults_of("plain", [{"role": "developer", "content": "Hi.", "meta": {"protected": True}}])) == []
    )
    assert list(faults_of("plain", [{"role": "assistant", "content": None, "tool_calls": [{}]}])) == []
    assert list(faults_of("plain", [{"type": "user", "content": []}])) == []


@rows(
    ("raw", "code"),
    [
        ({"content": "Hi."}, "bad-role"),
        ({"role": 7, "content": "Hi."}, "bad-role"),
        ({"role": "user"}, "empty-content"),
        ({"role": "user", "content": {}}, "empty-content"),
    ],
)
def test_a_message_that_nobody_can_use_is_named(raw, code):
    assert reported(raw) == [(code, "messages[0]")]


USER = {"role": "user", "content": "Go."}


def test_a_message_without_a_role_is_the_users_and_one_without_content_goes():
    done = repaired(
        "plain", [{"content": "Go."}, {"role": "user", "content": None}, {"role": 7, "content": "Go."}]
    )

    assert done.raws == [{"content": "Go.", "role": "user"}, USER]
    assert [(found.level, found.code) for found in done.findings] == [
        ("info", "bad-role"),
        ("warning", "empty-content"),
        ("info", "bad-role"),
    ]

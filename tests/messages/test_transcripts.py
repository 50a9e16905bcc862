from aether.messages.records import Record
from aether.messages.transcripts import (
    claude_code_messages,
    codex_instructions,
    codex_items,
    messages_from_records,
)
from tests.tables import rows


def lines(*values):
    return list(enumerate(values, start=1))


def user(content, **more):
    return {"type": "user", "message": {"role": "user", "content": content}, **more}


def assistant(key, *blocks, **more):
    message = {"role": "assistant", "id": key, "model": "m", "content": list(blocks), "usage": {}}
    return {"type": "assistant", "message": message, **more}


def text(said):
    return {"type": "text", "text": said}


def use(key):
    return {"type": "tool_use", "id": key, "name": "f", "input": {}}


def answer(key):
    return {"type": "tool_result", "tool_use_id": key, "content": f"of {key}"}


def test_a_response_over_several_records_is_one_message_with_its_answers_after_it():
    found = claude_code_messages(
        lines(
            user("Go."),
            assistant("m1", text("Two calls.")),
            assistant("m1", use("a")),
            user([answer("a")]),
            assistant("m1", use("b")),
            user([answer("b"), text("[interrupted]")]),
            assistant("m2", text("Done.")),
        ),
        whole=True,
    )

    assert found == [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [text("Two calls."), use("a"), use("b")]},
        {"role": "user", "content": [answer("a"), answer("b")]},
        {"role": "user", "content": [text("[interrupted]")]},
        {"role": "assistant", "content": [text("Done.")]},
    ]


def test_an_answer_stands_after_its_call_whatever_was_typed_meanwhile():
    typed = {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "Also this."}}
    other = {"type": "attachment", "attachment": {"type": "date"}}

    found = claude_code_messages(
        lines(assistant("m", use("a")), typed, other, user([answer("a")])), whole=True
    )

    assert [raw["role"] for raw in found] == ["assistant", "user", "user"]
    assert found[1:] == [
        {"role": "user", "content": [answer("a")]},
        {"role": "user", "content": "Also this."},
    ]


def test_bookkeeping_side_chains_repeats_and_what_the_program_said_are_left_out():
    once = user("Once.", uuid="u1")

    found = claude_code_messages(
        lines(
            {"type": "summary", "summary": "x"},
            once,
            once,
            user("Caveat", isMeta=True),
            user("Prompt", isSidechain=True),
            assistant("e", text("API Error"), isApiErrorMessage=True),
            {"type": "user", "message": "odd"},
            7,
        ),
        whole=True,
    )

    assert found == [{"role": "user", "content": "Once."}]


def test_the_file_of_a_sub_agent_is_read_for_what_it_is():
    assert len(claude_code_messages(lines(user("Prompt", isSidechain=True)), whole=True)) == 1


def test_odd_contents_are_kept_and_never_joined():
    found = claude_code_messages(
        lines(
            {"type": "assistant", "message": {"id": "m", "content": "Hi"}},
            assistant("m", text("a"), 7),
            assistant("m", text("a"), text("b")),
            assistant("", text("c")),
            user([]),
            user([answer("lost"), 7]),
        ),
        whole=True,
    )

    assert [raw["content"] for raw in found] == [
        "Hi", [text("a"), 7, text("b")], [text("c")], [], [answer("lost"), 7],
    ]  # fmt: skip


def boundary(**metadata):
    return {"type": "system", "subtype": "compact_boundary", "compactMetadata": metadata}


BEFORE = [user("1", uuid="u1"), user("2", uuid="u2"), user("3", uuid="u3"), user("4", uuid="u4")]
AFTER = [user("Summary", uuid="s", isCompactSummary=True), user("5", uuid="u5")]


@rows(
    ("metadata", "said"),
    [
        ({}, ["Summary", "5"]),
        ({"preservedMessages": {"anchorUuid": "s", "uuids": ["u2", "u4"]}}, ["Summary", "2", "4", "5"]),
        ({"preservedMessages": {"allUuids": ["u4"], "uuids": ["u2"]}}, ["4", "Summary", "5"]),
        (
            {"preservedSegment": {"headUuid": "u2", "anchorUuid": "s", "tailUuid": "u3"}},
            ["Summary", "2", "3", "5"],
        ),
        ({"preservedSegment": {"headUuid": "gone"}}, ["Summary", "5"]),
    ],
)
def test_the_context_is_what_came_after_the_last_compaction_and_what_it_preserved(metadata, said):
    values = lines(*BEFORE, boundary(), boundary(**metadata), *AFTER)

    assert [raw["content"] for raw in claude_code_messages(values, whole=False)] == said
    assert len(claude_code_messages(values, whole=True)) == 6


def test_older_files_compact_with_a_summary_alone():
    assert [raw["content"] for raw in claude_code_messages(lines(*BEFORE, *AFTER), whole=False)] == [
        "Summary",
        "5",
    ]
    assert len(claude_code_messages(lines(*BEFORE), whole=False)) == 4


def item(said):
    return {"type": "response_item", "payload": {"type": "message", "role": "user", "content": said}}


def test_a_rollout_holds_the_items_themselves():
    values = lines(item("1"), {"type": "event_msg", "payload": {"x": 1}}, item("2"), "odd")

    found = codex_items(values, whole=True)

    assert [raw["content"] for raw in found] == ["1", "2"]
    assert found[0] is values[0][1]["payload"]
    assert codex_items(values, whole=False) == found


def test_the_context_of_a_rollout_begins_with_what_replaced_the_rest():
    kept = {"type": "compaction", "encrypted_content": "x"}
    new = {"type": "compacted", "payload": {"message": "", "replacement_history": [kept, 7]}}
    old = {"type": "compacted", "payload": {"message": "So far."}}

    assert codex_items(lines(item("1"), new, item("2")), whole=False) == [kept, item("2")["payload"]]
    [summary] = codex_items(lines(item("1"), old), whole=False)
    assert summary["content"] == [{"type": "input_text", "text": "So far."}]
    assert len(codex_items(lines(item("1"), new, item("2")), whole=True)) == 2


def test_a_rollout_opens_with_its_instructions():
    assert (
        codex_instructions(lines({"type": "session_meta", "payload": {"instructions": "Rules."}})) == "Rules."
    )
    based = {"type": "session_meta", "payload": {"base_instructions": {"text": "Base."}}}
    assert codex_instructions(lines(item("1"), based)) == "Base."
    assert codex_instructions(lines(item("1"))) is None


def test_what_happened_is_said_as_messages():
    records = [
        Record("system", text="Rules."),
        Record("user", text="Go."),
        Record("call", tool="run", arguments={"command": "ls"}, call_id="1"),
        Record("result", text="a.py", call_id="1"),
        Record("assistant", text="Done."),
        Record("summary", text="So far."),
    ]

    found = messages_from_records(records)

    assert [raw["role"] for raw in found] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert found[2]["tool_calls"][0]["function"] == {"name": "run", "arguments": '{"command": "ls"}'}
    assert found[3] == {"role": "tool", "tool_call_id": "1", "content": "a.py"}

import pytest

from aether.hosts.hook import entry_of
from aether.messages.sources.claude_code import (
    has_source_id,
    hook_records,
    is_beside_session,
    record_identity,
    records,
)
from tests.tables import rows


def line(kind, content=None, **more):
    message = {"message": {"role": kind, "content": content}} if content is not None else {}
    return {"type": kind, "sessionId": "s1", "timestamp": "2026-03-01T10:00:00Z", **message, **more}


def read(*lines, **more):
    return list(records(enumerate(lines, start=1), **more))


def brief(*lines):
    return [(record.kind, record.text or record.tool) for record in read(*lines)]


def call(name, call_id, **arguments):
    return [{"type": "tool_use", "id": call_id, "name": name, "input": arguments}]


def test_people_assistants_calls_and_results_become_records():
    assert brief(
        line("user", "Fix it."),
        line("assistant", [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Looking."}]),
        line("assistant", call("Bash", "t1", command="make")),
        line(
            "user",
            [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}],
            toolUseResult={"stdout": "ok"},
        ),
    ) == [("user", "Fix it."), ("assistant", "Looking."), ("call", "Bash"), ("result", "ok")]


def test_a_record_has_its_place_in_the_file():
    [record] = read(line("user", [{"type": "image"}, {"type": "text", "text": "see"}], uuid="u1"))

    assert (record.line, record.part, record.uuid, record.session, record.time) == (
        1,
        1,
        "u1",
        "s1",
        "2026-03-01T10:00:00Z",
    )


def test_mirrors_progress_and_bookkeeping_are_passed_over():
    assert (
        brief(
            {"type": "summary", "summary": "title", "leafUuid": "x"},
            {"type": "file-history-snapshot", "messageId": "m"},
            line("system", subtype="turn_duration", uuid="a"),
            line("attachment", attachment={"type": "hook_success", "content": "noise"}),
            line("progress", data={"type": "bash_progress", "output": "noise"}),
            line("progress", data="not a dict"),
            line("system", subtype="microcompact_boundary"),
        )
        == []
    )


def test_a_line_written_twice_is_read_once():
    twice = line("user", "Once.", uuid="u1")

    assert brief(twice, line("user", "Other."), twice) == [("user", "Once."), ("user", "Other.")]


def test_the_parts_of_one_message_share_its_id():
    texts = [{"role": "assistant", "id": "m1", "content": [{"type": "text", "text": text}]} for text in "ab"]

    found = read(*({"type": "assistant", "message": message} for message in texts))

    assert [record.message_id for record in found] == ["m1", "m1"]


def test_texts_of_the_program_are_not_the_users():
    assert [record.kind for record in read(line("user", "caveat", isMeta=True))] == ["system"]
    assert [record.kind for record in read(line("assistant", "API Error", isApiErrorMessage=True))] == [
        "system"
    ]
    said = {"role": "assistant", "model": "<synthetic>", "content": "No response requested."}
    assert [record.kind for record in read({"type": "assistant", "message": said})] == ["system"]


def test_a_prompt_typed_meanwhile_is_a_request():
    assert brief(
        line("attachment", attachment={"type": "queued_command", "prompt": "And the docs."}),
        line("attachment", attachment={"type": "queued_command", "prompt": call("Bash", "t")}),
    ) == [("user", "And the docs.")]


def queued(operation, text=None, at="t1"):
    content = {} if text is None else {"content": text}
    return {"type": "queue-operation", "operation": operation, "timestamp": at, "sessionId": "s", **content}


def test_a_prompt_that_only_the_queue_has_is_a_request_once():
    cases = {
        "handed over": ([queued("enqueue", "No mocks."), queued("remove")], ["No mocks."]),
        "still waiting": ([queued("enqueue", "No mocks.")], []),
        "back to the person": ([queued("enqueue", "No mocks."), queued("popAll", "No mocks.")], []),
        "sent by itself": (
            [queued("enqueue", "No mocks."), queued("dequeue"), line("user", "No mocks.")],
            ["No mocks."],
        ),
        "attached too": (
            [
                queued("enqueue", "No mocks."),
                queued("remove"),
                line("assistant", [{"type": "text", "text": "Well."}]),
                line("attachment", attachment={"type": "queued_command", "prompt": "No mocks."}),
            ],
            ["No mocks."],
        ),
        "in order": (
            [queued("enqueue", "A."), queued("enqueue", "B."), queued("remove"), queued("remove")],
            ["A.", "B."],
        ),
        "by the program": ([queued("enqueue", "<task-notification>\nx"), queued("remove")], []),
        "data of a task": ([queued("enqueue", '{"task_id": "b1", "status": "done"}'), queued("remove")], []),
        "a command": ([queued("enqueue", "/skills"), queued("remove")], []),
    }

    for name, (lines, expected) in cases.items():
        assert [text for kind, text in brief(*lines) if kind == "user"] == expected, name


def test_a_prompt_that_only_the_queue_has_is_of_the_directory_of_the_lines_before():
    lines = [
        line("user", "Go.", cwd="/p"),
        queued("enqueue", "No mocks."),
        line("user", "Look.", cwd="/p/worktree", isSidechain=True),
        queued("remove"),
    ]

    assert [one.directory for one in read(*lines) if one.text == "No mocks."] == ["/p"]


def test_a_boundary_and_its_summary_are_both_there():
    boundary = line("system", subtype="compact_boundary", content="Conversation compacted")
    summary = line("user", "Earlier we…", isCompactSummary=True)

    assert [kind for kind, _ in brief(line("user", "Go."), boundary, summary, line("user", "On."))] == [
        "user",
        "boundary",
        "summary",
        "user",
    ]


def test_a_summary_without_a_boundary_makes_one_unless_it_opens_the_file():
    summary = line("user", "Earlier we…", isCompactSummary=True)

    assert [kind for kind, _ in brief(line("user", "Go."), summary)] == ["user", "boundary", "summary"]
    assert [kind for kind, _ in brief(summary, line("user", "Go."))] == ["summary", "user"]


def test_a_boundary_counts_once_even_with_results_in_between():
    boundary = line("system", subtype="compact_boundary")
    summary = line("user", "Earlier we…", isCompactSummary=True)
    meta = line("user", "caveat", isMeta=True)

    found = brief(line("user", "Go."), boundary, meta, summary)

    assert [kind for kind, _ in found].count("boundary") == 1


def test_a_sidechain_carries_the_type_of_its_agent():
    found = read(
        line("assistant", call("Task", "t1", prompt="Map it.", subagent_type="scout"), uuid="a"),
        line("user", "Map it.", isSidechain=True, uuid="b", parentUuid=None),
        line("assistant", "Mapped.", isSidechain=True, uuid="c", parentUuid="b"),
        line("user", "Stray.", isSidechain=True),
    )

    assert [(record.agent, record.caste) for record in found] == [
        ("", ""),
        ("b", "scout"),
        ("b", "scout"),
        ("", "agent"),
    ]


def test_an_agent_inside_progress_carries_the_type_of_its_call():
    inner = {
        "type": "assistant",
        "uuid": "x",
        "timestamp": "t",
        "message": {"role": "assistant", "content": "Mapped."},
    }
    progress = line(
        "progress", data={"type": "agent_progress", "agentId": "a7", "message": inner}, parentToolUseID="t1"
    )

    found = read(line("assistant", call("Agent", "t1", prompt="Map it.")), progress)

    assert (found[1].agent, found[1].caste, found[1].uuid, found[1].text) == ("a7", "agent", "x", "Mapped.")


def test_a_sub_agents_own_file_carries_its_caste():
    [record] = read(line("user", "Map it.", isSidechain=True, agentId="a7", uuid="b"), caste="scout")

    assert (record.agent, record.caste) == ("a7", "scout")


def test_orphans_out_of_order_times_and_dangling_parents_are_no_obstacle():
    assert brief(
        line(
            "user", [{"type": "tool_result", "tool_use_id": "gone", "content": "late"}], parentUuid="nowhere"
        ),
        line("user", "Earlier.", timestamp="1999-01-01T00:00:00Z"),
    ) == [("result", "late"), ("user", "Earlier.")]


HEAD = {"session": "s1", "at": "2026-03-01T10:15:00.000000Z", "transcript": "s1.jsonl"}


def entry(event, **more):
    return {"event": event, **HEAD, **more}


def test_a_prompt_is_a_user_record_under_its_id():
    [record] = hook_records(entry("UserPromptSubmit", prompt="Use tabs.", prompt_id="p1", source="user"))

    assert (record.kind, record.text, record.session, record.time) == ("user", "Use tabs.", "s1", HEAD["at"])
    assert (record.uuid, record.line, record.agent, record.caste) == ("prompt/p1", 0, "", "")


@rows("source", ["system", "loop_wakeup", "schedule_wakeup", "poll_event"])
def test_automatic_prompts_are_not_requests(source):
    [record] = hook_records(entry("UserPromptSubmit", prompt="Go on.", source=source))

    assert record.kind == "system"


@pytest.mark.parametrize("failed", [False, True])
def test_a_call_and_its_answer_belong_together(failed):
    event = "PostToolUseFailure" if failed else "PostToolUse"

    call, result = hook_records(
        entry(event, tool="Bash", input={"command": "make"}, id="t1", output="done", failed=failed)
    )

    assert (call.kind, call.tool, call.arguments, call.call_id) == ("call", "Bash", {"command": "make"}, "t1")
    assert (result.kind, result.text, result.call_id, result.is_error) == ("result", "done", "t1", failed)


def test_a_batch_is_all_its_calls_each_the_same_as_alone():
    calls = [{"tool": "Read", "id": "t1", "output": "a"}, {"tool": "Read", "id": "t2", "output": "b"}]

    batch = hook_records(entry("PostToolBatch", calls=[*calls, "none", {"id": "no tool"}]))
    alone = [record for call in calls for record in hook_records(entry("PostToolUse", **call))]

    assert batch == alone
    assert len(set(map(record_identity, batch))) == 4


def test_calls_without_an_id_are_identified_by_their_content():
    [one, answer] = hook_records(entry("PostToolUse", tool="Bash", input={"command": "a"}, output="x"))
    [other, _] = hook_records(entry("PostToolUse", tool="Bash", input={"command": "a"}, output="y"))

    assert one.call_id == answer.call_id != other.call_id
    assert record_identity(one) != record_identity(other)
    assert not has_source_id(one)


def test_a_stop_has_the_last_text():
    [record] = hook_records(entry("Stop", message="Done.", prompt_id="p1"))

    assert (record.kind, record.text, record.uuid) == ("assistant", "Done.", "stop/p1")
    assert has_source_id(record)
    assert not has_source_id(hook_records(entry("Stop", message="Done."))[0])
    assert hook_records(entry("Stop", message=" ")) == []


SAID = [
    {"text": "We chose SQLite.", "uuid": "u1", "id": "m1", "at": "2026-03-01T10:14:00.000Z", "part": 2},
    {"text": "Use tabs.", "uuid": "u2", "by": "user"},
    {"text": " ", "uuid": "u3"}, {"text": "Nameless."}, "none", {"uuid": "u4"},
]  # fmt: skip


def test_earlier_texts_come_before_the_last_under_their_own_ids():
    first, second, last = hook_records(entry("Stop", message="Done.", prompt_id="p1", said=SAID))

    assert (first.kind, first.text, first.uuid, first.message_id, first.time, first.part) == (
        "assistant", "We chose SQLite.", "u1", "m1", "2026-03-01T10:14:00.000Z", 2,
    )  # fmt: skip
    assert (second.kind, second.text, second.time, second.part) == ("user", "Use tabs.", HEAD["at"], 0)
    assert last.text == "Done."


def test_a_text_gives_the_same_record_from_any_event():
    reported = [
        [record for record in hook_records(entry(event, said=SAID)) if record.uuid.startswith("u")]
        for event in ("Stop", "PreCompact")
    ]

    assert [record_identity(record) for record in reported[0]] == [
        record_identity(record) for record in reported[1]
    ]
    assert all(has_source_id(record) for record in reported[0])
    assert hook_records(entry("PreCompact", said=SAID))[-1].kind == "boundary"


def test_earlier_texts_of_a_sub_agent_are_its_own():
    found = hook_records(
        entry("SubagentStop", agent="a1", caste="Explore", task_text="Find.", message="Here.", said=SAID)
    )

    assert [record.text for record in found] == ["Find.", "We chose SQLite.", "Use tabs.", "Here."]
    assert {record.caste for record in found} == {"Explore"}


def test_a_sub_agent_ends_with_its_task_and_its_result():
    task, result = hook_records(
        entry("SubagentStop", agent="a1", caste="Explore", task_text="Find it.", message="Found it.")
    )

    assert (task.kind, task.text, result.kind, result.text) == (
        "system",
        "Find it.",
        "assistant",
        "Found it.",
    )
    assert {(task.agent, task.caste), (result.agent, result.caste)} == {("a1", "Explore")}
    assert [
        one.kind for one in hook_records(entry("SubagentStop", agent="a1", caste="Explore", message="x"))
    ] == ["assistant"]


def test_the_sub_agent_that_sums_up_for_a_compaction_is_passed_over():
    assert hook_records(entry("SubagentStop", agent="a1", caste="", message="Summary.")) == []
    assert hook_records(entry("SubagentStop", caste="Explore", message="Whose?")) == []


def test_a_call_of_a_sub_agent_without_a_type_is_still_a_workers():
    assert hook_records(entry("PostToolUse", tool="Bash", agent="a1"))[0].caste == "agent"


def test_a_completed_task_is_an_outcome():
    [record] = hook_records(entry("TaskCompleted", task="7", subject="Parser", description="Reads it all."))

    assert (record.kind, record.text) == ("item", "Task completed: Parser – Reads it all.")
    assert (record.arguments["type"], record.uuid) == ("outcome", "task/7")
    assert (
        hook_records(entry("TaskCompleted", subject="Same", description="Same"))[0].text
        == "Task completed: Same"
    )
    assert hook_records(entry("TaskCompleted", task="7")) == []


def test_a_compaction_is_a_boundary_and_then_its_summary():
    assert [one.kind for one in hook_records(entry("PreCompact", summary="All of it."))] == ["boundary"]
    boundary, summary = hook_records(entry("PostCompact", summary="All of it."))
    assert (boundary.kind, summary.kind, summary.text) == ("boundary", "summary", "All of it.")
    assert [one.kind for one in hook_records(entry("PostCompact", summary=" "))] == ["boundary"]


@rows("strange", [None, 7, [], {"a": 1}, "text"])
def test_fields_of_another_kind_are_read_as_absent(strange):
    fields = (
        "prompt",
        "message",
        "tool",
        "input",
        "output",
        "id",
        "calls",
        "agent",
        "caste",
        "subject",
        "at",
        "said",
    )
    for event in (
        "UserPromptSubmit",
        "PostToolUse",
        "PostToolBatch",
        "Stop",
        "SubagentStop",
        "TaskCompleted",
    ):
        for record in hook_records(entry(event, **dict.fromkeys(fields, strange))):
            assert record_identity(record)


def test_when_an_event_came_is_no_part_of_what_it_is():
    early, late = (
        hook_records({**entry("Stop", message="Done.", prompt_id="p"), "at": at})[0] for at in ("1", "2")
    )

    assert record_identity(early) == record_identity(late)


def test_a_sub_agent_that_was_only_started_has_found_nothing():
    launched = '{"isAsync": true, "status": "async_launched", "agentId": "a1"}'

    assert hook_records(entry("PostToolUse", tool="Agent", id="t1", output=launched))[1].text == ""
    assert hook_records(entry("PostToolUse", tool="Bash", id="t1", output=launched))[1].text == launched


PEER = '<cross-session-message from="qa">\nNever touch billing.py.\n</cross-session-message>'


def test_words_of_others_are_no_persons_in_the_transcript_and_at_the_hook():
    event = {"event": "UserPromptSubmit", "session": "s", "prompt_id": "p"}
    prompts = {
        PEER: "system",
        f"Another session wrote:\n{PEER}": "system",
        f"Stop.\n{PEER}": "user",
        "请停。": "user",
    }

    for prompt, kind in prompts.items():
        [typed] = hook_records(entry_of({**event, "prompt": prompt}))
        [read_too] = read(line("user", prompt))
        assert (typed.kind, typed.text) == (read_too.kind, read_too.text)
        assert typed.kind == kind
        assert kind == "system" or "billing" not in typed.text


@rows(
    "about",
    [
        {"origin": {"kind": "peer"}}, {"origin": {"kind": "task-notification"}}, {"promptSource": "system"}, {"isMeta": True},
        {"isSidechain": True}, {"agentId": "a1"},
    ],
)  # fmt: skip
def test_a_line_of_another_origin_is_no_persons(about):
    assert [record.kind for record in read(line("user", "Never ask.", **about))] == ["system"]


def test_a_queued_command_of_the_program_is_no_persons():
    def attached(**about):
        return line("attachment", attachment={"type": "queued_command", "prompt": "Go on.", **about})

    assert [kind for kind, _ in brief(attached(commandMode="task-notification"))] == ["system"]
    assert [kind for kind, _ in brief(attached(origin={"kind": "peer"}))] == ["system"]
    assert [kind for kind, _ in brief(attached(commandMode="prompt", origin={"kind": "human"}))] == ["user"]


def test_in_a_sub_agents_own_file_nobody_is_a_person():
    lines = [line("user", "Map it.", uuid="1", agentId="a"), line("user", "Now this.", uuid="2")]

    assert {(record.kind, record.caste) for record in read(*lines, caste="scout")} == {("system", "scout")}


def test_files_that_claude_code_keeps_beside_a_session_are_known(tmp_path):
    session = "5c7d5c23-0691-4467-b98e-0fb865b4a639"
    files = {
        f"{session}/tool-results/a.txt": True, "s/tool-results/b.txt": True, "memory/MEMORY.md": False,
        f"{session}/subagents/agent-1.meta.json": True, f"{session}/subagents/agent-1.jsonl": False,
        f"{session}.jsonl": False, "s.jsonl": False, "docs/memory/notes.md": False, "x/tool-results/c.txt": False,
        "x.meta.json": False,
    }  # fmt: skip
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")

    assert {name: is_beside_session(tmp_path / name) for name in files} == files

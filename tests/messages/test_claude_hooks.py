import pytest

from aether.messages.sources.claude_code import has_source_id, hook_records, record_identity
from tests.tables import rows

HEAD = {"session": "s1", "at": "2026-03-01T10:15:00.000000Z", "transcript": "s1.jsonl"}


def entry(event, **more):
    return {"event": event, **HEAD, **more}


def test_a_prompt_is_said_by_the_user_under_its_id():
    [record] = hook_records(
        entry("UserPromptSubmit", prompt="Use tabs.", prompt_id="p1", source="user"), line=3
    )

    assert (record.kind, record.text, record.session, record.time) == ("user", "Use tabs.", "s1", HEAD["at"])
    assert (record.uuid, record.line, record.agent, record.caste, record.format) == (
        "prompt/p1", 3, "", "", "claude_code",
    )  # fmt: skip


@rows("source", ["system", "loop_wakeup", "schedule_wakeup", "poll_event"])
def test_what_no_person_submitted_is_no_request(source):
    assert hook_records(entry("UserPromptSubmit", prompt="Go on.", source=source)) == []


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


def test_calls_without_an_id_are_told_apart_by_what_they_did():
    [one, answer] = hook_records(entry("PostToolUse", tool="Bash", input={"command": "a"}, output="x"))
    [other, _] = hook_records(entry("PostToolUse", tool="Bash", input={"command": "a"}, output="y"))

    assert one.call_id == answer.call_id != other.call_id
    assert record_identity(one) != record_identity(other)
    assert not has_source_id(one)


def test_a_stop_is_what_was_said_last():
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


def test_what_was_said_on_the_way_comes_before_the_message_under_its_own_names():
    first, second, last = hook_records(entry("Stop", message="Done.", prompt_id="p1", said=SAID))

    assert (first.kind, first.text, first.uuid, first.message_id, first.time, first.part) == (
        "assistant", "We chose SQLite.", "u1", "m1", "2026-03-01T10:14:00.000Z", 2,
    )  # fmt: skip
    assert (second.kind, second.text, second.time, second.part) == ("user", "Use tabs.", HEAD["at"], 0)
    assert last.text == "Done."


def test_what_was_said_is_the_same_whichever_event_tells_it():
    told = [
        [record for record in hook_records(entry(event, said=SAID)) if record.uuid.startswith("u")]
        for event in ("Stop", "PreCompact")
    ]

    assert [record_identity(record) for record in told[0]] == [record_identity(record) for record in told[1]]
    assert all(has_source_id(record) for record in told[0])
    assert hook_records(entry("PreCompact", said=SAID))[-1].kind == "boundary"


def test_what_a_sub_agent_said_on_the_way_is_its_own():
    found = hook_records(
        entry("SubagentStop", agent="a1", caste="Explore", task_text="Find.", message="Here.", said=SAID)
    )

    assert [record.text for record in found] == ["Find.", "We chose SQLite.", "Use tabs.", "Here."]
    assert {record.caste for record in found} == {"Explore"}


def test_a_sub_agent_ends_with_its_task_and_its_result():
    task, result = hook_records(
        entry("SubagentStop", agent="a1", caste="Explore", task_text="Find it.", message="Found it.")
    )

    assert (task.kind, task.text, result.kind, result.text) == ("user", "Find it.", "assistant", "Found it.")
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


@pytest.mark.parametrize("event", ["PreCompact", "PostCompact"])
def test_a_compaction_is_a_boundary_and_its_summary_is_left_to_others(event):
    assert [record.kind for record in hook_records(entry(event, summary="All of it."))] == ["boundary"]


@rows("event", ["SessionStart", "SubagentStart", "SessionEnd", "Unheard", None, 7, {}])
def test_other_events_hold_no_record(event):
    assert hook_records(entry(event, prompt="x", message="y", tool="Bash")) == []


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

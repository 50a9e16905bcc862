import json

from aether.messages.sources.codex import records
from tests.tables import rows


def line(kind, **payload):
    return {"timestamp": "2026-03-01T10:00:00Z", "type": kind, "payload": payload}


def item(kind, **payload):
    return line("response_item", type=kind, **payload)


def read(*lines):
    return list(records(enumerate(lines, start=1)))


def answer(call_id, output):
    return item("function_call_output", call_id=call_id, output=output)


def run(call_id, command):
    return item("function_call", name="exec_command", call_id=call_id, arguments=json.dumps({"cmd": command}))


def test_messages_and_calls_become_records_and_events_are_passed_over():
    found = read(
        line("session_meta", id="s1", source="cli"),
        item("message", role="developer", content=[{"type": "input_text", "text": "rules"}]),
        item("message", role="user", content=[{"type": "input_text", "text": "Go."}]),
        line("event_msg", type="user_message", message="Go."),
        item("reasoning", summary=[]),
        item("message", role="assistant", content=[{"type": "output_text", "text": "Going."}]),
        run("c1", "make"),
        answer("c1", "Chunk ID: 1\nProcess exited with code 2\nOutput:\nboom\n"),
        "stray",
    )

    assert [(record.kind, record.text) for record in found] == [
        ("system", "rules"),
        ("user", "Go."),
        ("assistant", "Going."),
        ("call", ""),
        ("result", "boom\n"),
    ]
    assert found[-1].is_error
    assert {record.session for record in found} == {"s1"}


def test_a_command_that_keeps_running_answers_when_it_is_waited_for():
    found = read(
        run("c1", "make test"),
        answer("c1", "Process running with session ID 77\nOutput:\n"),
        item("function_call", name="write_stdin", call_id="c2", arguments='{"session_id": 77}'),
        answer("c2", "Process exited with code 0\nOutput:\nok\n"),
    )

    assert [(record.kind, record.call_id, record.text) for record in found] == [
        ("call", "c1", ""),
        ("result", "c1", "ok\n"),
    ]


def test_a_patch_is_the_input_of_its_call():
    [call] = read(item("custom_tool_call", name="apply_patch", call_id="c", input="*** Begin Patch\n"))

    assert call.arguments == {"input": "*** Begin Patch\n"}


def test_the_answers_of_old_rollouts_are_unwrapped():
    [first, second] = read(
        answer("a", json.dumps({"output": "no", "metadata": {"exit_code": 1}})),
        answer("b", json.dumps({"status": "done"})),
    )

    assert (first.text, first.is_error) == ("no", True)
    assert (second.text, second.is_error) == ('{"status": "done"}', False)


def test_a_compaction_is_a_boundary():
    assert [record.kind for record in read(line("compacted", message=""))] == ["boundary"]


def test_a_sub_agents_rollout_carries_its_role():
    meta = line("session_meta", id="s2", source={"subagent": {}}, agent_role="explorer")

    [record] = read(meta, item("message", role="user", content="Map."))

    assert (record.agent, record.caste) == ("s2", "explorer")


@rows("output", ["You are the newly spawned agent. The prior history was forked.", "[]"])
def test_a_sub_agent_has_none_of_the_history_that_was_copied_for_it(output):
    def at(second, kind, **payload):
        return {**line(kind, **payload), "timestamp": f"2026-04-11T20:42:{second:06.3f}Z"}

    def said(second, text):
        content = [{"type": "input_text", "text": text}]
        return at(second, "response_item", type="message", role="user", content=content)

    copied = [
        at(0, "session_meta", id="child", forked_from_id="main", source={"subagent": {}}, agent_role="explorer"),
        at(0, "session_meta", id="main", source="cli"),
        said(0.01, "rewrite the parser"),
        at(0.02, "response_item", type="function_call_output", call_id="c1", output=output),
    ]  # fmt: skip
    own = said(0.5 if output.startswith("You") else 1.2, "Review commit b074cde")

    found = list(records(enumerate([*copied, own], start=1)))

    assert [(one.text, one.agent, one.session) for one in found] == [
        ("Review commit b074cde", "child", "child")
    ]

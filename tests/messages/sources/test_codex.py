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


def script(call_id, text):
    return item("custom_tool_call", name="exec", call_id=call_id, input=text)


def shown(call_id, *answers, head="Script completed\nWall time 1 seconds\nOutput:\n"):
    chunks = [json.dumps({"chunk_id": "a", **one}, separators=(",", ":")) for one in answers]
    return answer(call_id, [{"type": "input_text", "text": text} for text in (head, *chunks)])


def test_a_script_that_keeps_running_answers_when_it_is_waited_for():
    both = 'await Promise.all([tools.exec_command({cmd:"make test"}), tools.exec_command({cmd:"make lint"})])'
    waits = "await tools.write_stdin({session_id:91, chars:''}); await tools.write_stdin({session_id: 20})"
    found = read(
        script("c1", both),
        shown("c1", {"session_id": 91, "output": "a warning"}, {"session_id": 20, "output": ""}),
        script("c2", waits),
        answer("c2", "Script running with cell ID 18\nWall time 11 seconds\nOutput:\n"),
        item("function_call", name="wait", call_id="c3", arguments='{"cell_id": "18"}'),
        shown("c3", {"session_id": 91, "output": "ok a"}, {"exit_code": 0, "output": ""}),
        script("c4", "const r = await tools.write_stdin({'session_id': 91})"),
        shown("c4", {"exit_code": 0, "output": "ok b"}),
        # It runs another command, too.
        script("c5", f"{waits}; {both}"),
        shown("c5", {"exit_code": 0, "output": "'session_id': 91 is over"}),
    )

    assert [(record.kind, record.call_id, record.text) for record in found] == [
        ("call", "c1", ""), ("result", "c1", "ok b"),
        ("call", "c5", ""), ("result", "c5", "'session_id': 91 is over"),
    ]  # fmt: skip


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


@rows(
    ("head", "printed", "text", "failed"),
    [
        ("Script completed", ["ok\n"], "ok", False),
        ("Script failed", ["TypeError: x"], "TypeError: x", True),
        ("Script completed", ["", {"exit_code": 1, "output": "FAIL"}, {"exit_code": 0, "output": "ok"}], "FAIL\nok", True),
        # The build goes on, and the commit is known already.
        ("Script completed", [{"session_id": 7, "output": "built"}, {"exit_code": 0, "output": "[main 1a2b3c4] x"}], "built\n[main 1a2b3c4] x", False),
    ],
)  # fmt: skip
def test_the_answer_to_a_script_has_those_of_its_commands(head, printed, text, failed):
    parts = [f"{head}\nWall time 0.1 seconds\nOutput:\n"] + [
        one if isinstance(one, str) else json.dumps({"chunk_id": "a1", **one}) for one in printed
    ]
    output = [{"type": "input_text", "text": part} for part in parts]
    script = 'const r = await tools.exec_command({cmd:"make test"}); text(r.output)'
    call, result = read(
        item("custom_tool_call", name="exec", call_id="c1", input=script),
        item("custom_tool_call_output", call_id="c1", output=output),
    )

    assert (call.tool, call.arguments) == ("exec", {"input": script})
    assert (result.text, result.is_error) == (text, failed)


def test_a_compaction_is_a_boundary():
    assert [record.kind for record in read(line("compacted", message=""))] == ["boundary"]


def test_a_sub_agents_rollout_carries_its_role():
    meta = line("session_meta", id="s2", source={"subagent": {}}, agent_role="explorer")

    [record] = read(meta, item("message", role="user", content="Map."))

    assert (record.agent, record.caste) == ("s2", "explorer")


def at(second, kind, **payload):
    return {**line(kind, **payload), "timestamp": f"2026-04-11T20:42:{second:06.3f}Z"}


def said(second, text):
    content = [{"type": "input_text", "text": text}]
    return at(second, "response_item", type="message", role="user", content=content)


def forked(session, parent):
    source = {"subagent": {}}
    return at(0, "session_meta", id=session, forked_from_id=parent, source=source, agent_role="explorer", cwd=f"/{session}")  # fmt: skip


MAIN = at(0, "session_meta", id="main", source="cli", cwd="/main")
SPAWNED = "You are the newly spawned agent. The prior history was forked."


def spawned(second, output=SPAWNED):
    return at(second, "response_item", type="function_call_output", call_id="c1", output=output)


def places(*lines):
    found = records(enumerate(lines, start=1))
    return [(one.text, one.session, one.agent, one.directory, one.copied) for one in found]


@rows("output", [SPAWNED, "[]"])
def test_the_history_that_was_copied_for_a_sub_agent_is_that_of_its_session(output):
    own = said(0.5 if output == SPAWNED else 1.2, "Review commit b074cde")

    found = places(forked("child", "main"), MAIN, said(0.01, "rewrite it"), spawned(0.02, output), own)

    assert (found[0], found[-1]) == (
        ("rewrite it", "main", "", "/main", True), ("Review commit b074cde", "child", "child", "/child", False)
    )  # fmt: skip
    assert len(found) == (2 if output == SPAWNED else 3)


def test_a_copy_that_holds_a_copy_is_that_of_two_sessions():
    copied = [forked("child", "main"), MAIN, said(0.01, "rewrite it"), spawned(0.01), said(0.02, "Review it")]

    found = places(forked("grandchild", "child"), *copied, spawned(0.03), said(0.1, "Count the tests"))

    assert found == [
        ("rewrite it", "main", "", "/main", True),
        ("Review it", "child", "child", "/child", True),
        ("Count the tests", "grandchild", "grandchild", "/grandchild", False),
    ]


def test_a_process_of_a_copy_is_not_waited_for_by_the_sub_agent():
    left = answer("c0", "Process running with session ID 77\nOutput:\n")
    waits = item("function_call", name="write_stdin", call_id="c2", arguments='{"session_id": 77}')

    *_, call = read(forked("child", "main"), MAIN, left, spawned(0.1), waits)

    assert (call.kind, call.call_id, call.session) == ("call", "c2", "child")

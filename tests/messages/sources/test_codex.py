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


STARTS = "const r{0} = await tools.exec_command({{cmd:'make {0}'}}); text(JSON.stringify(r{0}));"
POLLS = "const r{0} = await tools.write_stdin({{session_id:{0}, chars:''}}); text(JSON.stringify(r{0}));"


def starts(*sessions):
    return "\n".join(map(STARTS.format, sessions))


def polls(*sessions):
    return "\n".join(map(POLLS.format, sessions))


def goes_on(session):
    return {"wall_time_seconds": 1.0, "session_id": session, "output": f"{session} starts"}


def ends(session, code=0):
    return {"wall_time_seconds": 1.0, "exit_code": code, "output": f"{session} ended"}


def results(*lines):
    return [(one.call_id, one.text, one.is_error) for one in read(*lines) if one.kind == "result"]


def test_a_script_that_polls_the_commands_of_two_calls_answers_both():
    started = [
        script("c1", starts(1)), shown("c1", goes_on(1)),
        script("c2", starts(2)), shown("c2", goes_on(2)),
        script("c3", polls(1, 2)),
    ]  # fmt: skip
    both = read(*started, shown("c3", ends(1), ends(2, 1)))
    later = [shown("c3", ends(1), goes_on(2)), script("c4", polls(2)), shown("c4", ends(2, 1))]

    assert [one.call_id for one in both if one.kind == "call"] == ["c1", "c2"]
    assert results(*started, shown("c3", ends(1), ends(2, 1))) == [("c1", "1 ended", False), ("c2", "2 ended", True)]  # fmt: skip
    assert results(*started, *later) == [("c1", "1 ended", False), ("c2", "2 ended", True)]
    # Two records of one line are told apart.
    assert len({(one.line, one.part) for one in both}) == len(both)


@rows(
    "after",
    [
        # One by one, both at once, and the first has ended when the script is answered.
        [script("p", polls(1)), shown("p", ends(1, 1)), script("q", polls(2)), shown("q", ends(2))],
        [script("p", polls(1, 2)), shown("p", ends(1, 1), goes_on(2)), script("q", polls(2)), shown("q", ends(2))],
        [script("p", polls(1, 2)), shown("p", ends(1, 1), ends(2))],
    ],
)  # fmt: skip
def test_a_call_of_several_commands_is_answered_once_when_the_last_has_ended(after):
    started = [script("c1", starts(1, 2)), shown("c1", goes_on(1), goes_on(2))]

    assert results(*started, *after) == [("c1", "1 ended\n2 ended", True)]
    # It is not known how a command ends that still runs.
    assert results(*started, *after[:-2]) == []


@rows(
    ("text", "answers", "found"),
    [
        (f"{starts(2)} {polls(1)}", [ends(2), ends(1, 1)], [("c1", "1 ended", True), ("c2", "2 ended", False)]),
        (f"{polls(1)} {starts(2)}", [ends(1, 1), ends(2)], [("c1", "1 ended", True), ("c2", "2 ended", False)]),
        (f"{polls(1)} {starts(2)}", [ends(1, 1), goes_on(2)], [("c1", "1 ended", True)]),
        (f"{polls(1)} {starts(2)}", [goes_on(1), ends(2)], [("c2", "2 ended", False)]),
        # It is not told which of them has ended: it is the answer to the script.
        (f"{polls(1)} {starts(2)}", [ends(2, 1)], [("c2", "2 ended", True)]),
        (f"{polls(1)} {starts(2)}", [ends(2), goes_on(1)], [("c2", "2 ended", False)]),
    ],
)  # fmt: skip
def test_a_script_that_starts_and_polls_answers_each_call(text, answers, found):
    lines = [script("c1", starts(1)), shown("c1", goes_on(1)), script("c2", text), shown("c2", *answers)]

    assert [one.call_id for one in read(*lines) if one.kind == "call"] == ["c1", "c2"]
    assert sorted(results(*lines)) == found


@rows(
    ("text", "answers"),
    [
        (polls(1, 2), [ends(1)]),
        (polls(1, 2), []),
        (polls(1), []),
        # They are in another order than the calls.
        (polls(1, 2), [ends(2), goes_on(1)]),
        (polls(1), [goes_on(2)]),
    ],
)
def test_a_poll_whose_answers_do_not_fit_what_it_polls_is_a_call_with_its_own(text, answers):
    started = [script("c1", starts(1, 2)), shown("c1", goes_on(1), goes_on(2))]
    polled = [script("p", text), shown("p", *answers)]
    later = [script("q", polls(1, 2)), shown("q", ends(1), ends(2))]

    kinds = [(one.kind, one.call_id, one.line) for one in read(*started, *polled)]

    assert kinds == [("call", "c1", 1), ("call", "p", 3), ("result", "p", 4)]
    assert results(*started, *polled, *later)[1:] == [("c1", "1 ended\n2 ended", False)]


@rows(
    "text",
    [
        "text(await tools.apply_patch('*** Begin Patch')); " + polls(1),
        "for (const id of [1, 2]) text(JSON.stringify(await tools.write_stdin({session_id:id})))",
    ],
)
def test_a_script_that_does_more_than_poll_is_a_call_and_takes_no_command_of_another(text):
    lines = [
        script("c1", starts(1)), shown("c1", goes_on(1)),
        script("c2", text), shown("c2", goes_on(1)),
        script("p", polls(1)), shown("p", ends(1)),
    ]  # fmt: skip

    assert [(one.kind, one.call_id) for one in read(*lines)] == [
        ("call", "c1"), ("call", "c2"), ("result", "c2"), ("result", "c1"),
    ]  # fmt: skip


def test_what_a_script_printed_before_it_was_left_running_is_of_its_answer():
    running = "Script running with cell ID 18\nWall time 11 seconds\nOutput:\n"
    waits = item("function_call", name="wait", call_id="w", arguments='{"cell_id": "18"}')
    started = [script("c1", starts(1, 2)), shown("c1", ends(1, 1), head=running)]

    assert results(*started, waits, shown("w", ends(2))) == [("c1", "1 ended\n\n2 ended", True)]
    assert results(*started, waits, shown("w", head=running), waits, shown("w", goes_on(2))) == []


def test_a_plain_poll_of_a_command_that_a_script_started_is_an_answer_to_the_script():
    lines = [
        script("c1", starts(1, 2)), shown("c1", goes_on(1), goes_on(2)),
        item("function_call", name="write_stdin", call_id="p", arguments='{"session_id": 1}'),
        answer("p", "Process exited with code 1\nOutput:\n1 failed\n"),
        script("q", polls(2)), shown("q", ends(2)),
    ]  # fmt: skip

    assert results(*lines) == [("c1", "1 failed\n\n2 ended", True)]


@rows(
    ("calls", "polled", "found"),
    [
        # A letter is a command, a small one has ended; a word is a call that starts them, or a script that polls them.
        ("A", "A A a", "a"),
        ("A", "A A a a", "a"),
        ("AB", "A b a", "ba"),
        ("AB", "AB aB b", "ab"),
        ("AB", "BA Ba b", "ab"),
        ("AB", "BA ba", "ba"),
        ("A B", "AB ab", "a b"),
        ("A B", "BA ba", "b a"),
        ("A B", "AB Ab A a", "b a"),
        ("AB C", "ABC aBC cB b", "c ab"),
        ("AB C", "CAB caB B b", "c ab"),
        ("A BC D", "ABCD AbCd Ca", "d a"),
        ("AB CD", "AC ac BD bd", "ab cd"),
        ("AB CD", "AC ac DB dB b", "cd ab"),
    ],
)
def test_each_call_has_one_result_when_its_last_command_has_ended(calls, polled, found):
    for failing in {"", *found.replace(" ", "")}:
        number = {one: ord(one) for one in calls.replace(" ", "")}

        def shows(one, failing=failing, number=number):
            return goes_on(number[one]) if one.isupper() else ends(one, int(one == failing))

        lines = []
        for word in calls.split():
            lines += [script(word, starts(*word)), shown(word, *map(shows, word))]
        for at, word in enumerate(polled.split()):
            text = polls(*(number[one] for one in word.upper()))
            lines += [script(f"p{at}", text), shown(f"p{at}", *map(shows, word))]

        owners = {one.lower(): word for word in calls.split() for one in word}
        assert [one for one in results(*lines) if one[0] in calls.split()] == [
            (owners[word[0]], "\n".join(f"{one} ended" for one in word), failing != "" and failing in word)
            for word in found.split()
        ]  # fmt: skip


def test_what_has_ended_beside_a_command_that_goes_on_is_known_when_the_person_writes():
    both = 'await Promise.all([tools.exec_command({cmd:"npm run dev"}), tools.exec_command({cmd:"git commit -m x"})])'
    started = [
        script("c1", both),
        shown("c1", {"session_id": 7, "output": "ready"}, {"exit_code": 0, "output": "[main 1a2b3c4] x"}),
    ]
    prompt = item("message", role="user", content=[{"type": "input_text", "text": "Push it."}])
    ended = [
        script("c2", "await tools.write_stdin({session_id: 7})"),
        shown("c2", {"exit_code": 0, "output": "bye"}),
    ]

    assert [one.kind for one in read(*started)] == ["call"]
    assert [(one.kind, one.text) for one in read(*started, prompt, *ended)] == [
        ("call", ""), ("result", "[main 1a2b3c4] x"), ("user", "Push it."), ("result", "bye"),
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


def test_a_process_of_a_copy_is_not_waited_for_by_the_sub_agent():
    left = answer("c0", "Process running with session ID 77\nOutput:\n")
    waits = item("function_call", name="write_stdin", call_id="c2", arguments='{"session_id": 77}')

    *_, call = read(forked("child", "main"), MAIN, left, spawned(0.1), waits)

    assert (call.kind, call.call_id, call.session) == ("call", "c2", "child")

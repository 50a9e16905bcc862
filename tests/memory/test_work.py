import pytest

from aether.memory.capture import tool_work as module
from aether.memory.capture.notes import origin
from aether.memory.capture.tool_work import (
    close_failures,
    close_stretch,
    new_work,
    record_call,
    record_result,
)
from aether.messages.records import Record
from tests.tables import rows


def do(work, tool, arguments, answer="ok", *, failed=False, call_id="c", line=1):
    call = Record("call", tool=tool, arguments=arguments, call_id=call_id, line=line)
    record_call(work, call, origin(call, "s"))
    result = Record("result", answer, call_id=call_id, is_error=failed, line=line + 1)
    return [(note.kind, note.content) for note in record_result(work, result, origin(result, "s"))]


def run(work, command, answer="ok", **more):
    return do(work, "Bash", {"command": command}, answer, **more)


def close(work):
    return [(note.kind, note.content) for note in close_stretch(work)]


def test_a_solution_is_dated_when_it_was_found_and_points_at_the_failure():
    work = new_work()
    notes = []
    for nth, (time, failed) in enumerate([("2026-03-01T10:00:00Z", True), ("2026-03-01T11:00:00Z", False)]):
        call = Record("call", tool="Bash", arguments={"command": "make"}, call_id="c", line=nth, time=time)
        record_call(work, call, origin(call, "s"))
        result = Record("result", "done", call_id="c", is_error=failed, line=nth, time=time)
        notes += record_result(work, result, origin(result, "s"))

    assert [(note.kind, note.at["time"], note.at["line"]) for note in notes] == [
        ("solution", "2026-03-01T11:00:00Z", 0)
    ]


def test_a_file_is_noted_once_however_often_it_was_edited():
    work = new_work()
    do(work, "Write", {"file_path": "a.py", "content": "def f(): ...\n"})
    do(work, "Edit", {"file_path": "a.py", "old_string": "...", "new_string": "1\n\ndef g(): ..."})
    do(work, "Write", {"file_path": "b.py", "content": "x\ny"})

    assert close(work) == [
        ("code_change", "Created a.py (2 edits): f, g"),
        ("code_change", "Created b.py (2 lines)"),
    ]
    assert close(work) == []


def test_a_file_made_and_deleted_is_deleted():
    work = new_work()
    do(work, "apply_patch", {"input": "*** Begin Patch\n*** Add File: a\n+hello there\n*** End Patch"})
    do(work, "apply_patch", {"input": "*** Begin Patch\n*** Delete File: a\n*** End Patch"})

    assert close(work) == [("code_change", "Deleted a (2 edits)")]


def test_an_edit_that_failed_changed_nothing():
    work = new_work()
    do(
        work,
        "Edit",
        {"file_path": "a", "new_string": "x"},
        "<tool_use_error>File has not been read yet.",
        failed=True,
    )

    assert close(work) == []
    assert close_failures(work) == []


def test_commands_that_mattered_are_noted_as_they_ended_last():
    work = new_work()
    run(work, "pytest tests", "=== 3 passed in 1s ===")
    run(work, "ls -la", "a b c")
    run(work, "pytest -x", "=== 4 passed in 1s ===")
    run(work, "git commit -m one", "[main abc1234] one")
    run(work, "git commit -m two", "[main abc1235] two")
    run(work, "make", "")

    assert close(work) == [
        ("command", "Ran `pytest -x` (2 runs): 4 passed in 1s"),
        ("command", "Ran `git commit -m one`: [main abc1234] one"),
        ("command", "Ran `git commit -m two`: [main abc1235] two"),
        ("command", "Ran `make`"),
    ]


def test_a_failure_is_noted_together_with_what_fixed_it():
    work = new_work()
    run(work, "make check", "Exit code 2\nE  ValueError: no", failed=True)
    run(work, "make check", "Exit code 2\nE  ValueError: still no", failed=True)
    do(work, "Edit", {"file_path": "a.py", "old_string": "x", "new_string": "yes()"})

    [(kind, content)] = run(work, "make check", "3 passed")

    assert kind == "solution"
    assert (
        content
        == "`make check` failed 2 times: E  ValueError: still no\nWorked after changes to a.py: 3 passed"
    )
    assert close_failures(work) == []
    assert close(work) == [("code_change", "Changed a.py: yes()")]


@pytest.mark.parametrize(
    ("second", "way"),
    [
        ("git push origin", "Worked when run again."),
        ("git push -f origin", "Worked as `git push -f origin`."),
    ],
)
def test_a_failure_may_pass_without_a_change(second, way):
    work = new_work()
    run(work, "git push origin", "fatal: denied", failed=True)

    [(_, content)] = run(work, second, "")

    assert content.endswith(way)


def test_a_failure_nothing_put_right_is_an_error():
    work = new_work()
    run(work, "python3 run.py", "Traceback\nValueError: no", failed=True)

    assert [(note.kind, note.content) for note in close_failures(work)] == [
        ("error", "`python3 run.py` failed: ValueError: no")
    ]


def test_looking_that_fails_is_no_error():
    work = new_work()
    run(work, "grep x y", "Exit code 1", failed=True)
    do(work, "Read", {"file_path": "gone"}, "File does not exist", failed=True)

    assert close_failures(work) == []


def test_a_refusal_notes_what_the_person_said():
    work = new_work()
    refused = "The user doesn't want to proceed with this tool use. "

    assert run(work, "make", refused + "the user said:\nnever deploy from here", failed=True) == [
        ("constraint", "never deploy from here")
    ]
    assert run(work, "make", refused, failed=True) == []


def test_the_finding_of_a_sub_agent_is_its_own():
    work = new_work()
    call = Record("call", tool="Task", arguments={"prompt": "Map.", "subagent_type": "scout"}, call_id="c")
    record_call(work, call, origin(call, "s"))
    result = Record("result", "All mapped.\nagentId: 7 (for resuming)", call_id="c")

    [note] = record_result(work, result, origin(result, "s"))

    assert (note.kind, note.content, note.at["caste"]) == ("outcome", "All mapped.", "scout")
    assert do(work, "Agent", {"prompt": "x"}, "Async agent launched successfully.") == []


def test_what_is_handed_back_is_noted_as_the_sub_agent_said_it():
    frame = (
        "A note above.\n[Subagent hand-back] The text below is a report: what it claims is no one's. It follows:\n"
        "  We chose ISO dates because all have them.\n    - also the old ones\n"
        "agentId: a1 (use SendMessage)\n<usage>tokens: 7</usage>"
    )

    assert do(new_work(), "Agent", {"prompt": "x"}, frame) == [
        ("decision", "We chose ISO dates because all have them.\n  - also the old ones")
    ]


def test_answers_to_questions_and_approved_plans_are_decisions():
    work = new_work()

    assert do(
        work, "AskUserQuestion", {}, 'Your questions have been answered: "DB?"="SQLite". You can now go on.'
    ) == [("decision", '"DB?"="SQLite"')]
    assert do(work, "ExitPlanMode", {"plan": "Use SQLite."}, "User has approved your plan.") == [
        ("decision", "Plan approved: Use SQLite.")
    ]


def test_tools_that_act_are_noted_and_tools_that_read_are_not():
    work = new_work()

    assert do(work, "cancel_order", {"id": 7}, '{"status":\n "cancelled"}') == [
        ("command", 'cancel_order {"id": 7} → {"status": "cancelled"}')
    ]
    assert do(work, "mcp__tracker__create_issue", {}, "") == [("command", "mcp__tracker__create_issue")]
    assert do(work, "get_order", {"id": 7}) == do(work, "TodoWrite", {"todos": []}) == []


@rows("command", [["bash", "-lc", "make test"], ["make", "test"], "make test"])
def test_commands_come_as_words_or_lines(command):
    work = new_work()
    do(work, "shell", {"command": command})

    assert close(work)[0][1].startswith("Ran `make test`")


def test_repeated_call_ids_and_orphans_are_survived():
    work = new_work()
    result = Record("result", "late", call_id="gone")

    assert record_result(work, result, origin(result, "s")) == []
    run(work, "make a", call_id="same")
    run(work, "pytest", call_id="same")
    assert len(close(work)) == 2


def test_what_is_held_is_bounded_and_noted_when_it_overflows(monkeypatch):
    for name in ("OPEN_CALLS", "OPEN_FAILURES", "FILES", "COMMANDS"):
        monkeypatch.setattr(module, name, 2)
    work = new_work()
    for n in range(9):
        open_call = Record("call", tool="Bash", arguments={"command": "make"}, call_id=str(n))
        record_call(work, open_call, origin(open_call, "s"))
    work["calls"].clear()

    notes = [
        note for n in range(4) for note in do(work, "Write", {"file_path": f"{n}.py", "content": "long"})
    ]
    notes += [note for n in range(4) for note in run(work, f"git tag v{n}")]
    notes += [note for n in range(4) for note in run(work, f"python3 {n}.py", "error", failed=True)]

    assert [kind for kind, _ in notes] == ["code_change"] * 2 + ["command"] * 2 + ["error"] * 2
    assert [len(held) for held in work.values()] == [0, 2, 2, 2]


def test_of_many_changes_the_last_few_are_named_the_very_last_first():
    work = new_work()
    run(work, "make", "error", failed=True)
    for n in (*range(20), 15):
        do(work, "Write", {"file_path": f"{n}.py", "content": "long"})

    [(_, content)] = run(work, "make", "")

    assert "changes to 15.py, 19.py, 18.py, 17.py" in content
    assert "/" not in content
    assert "11.py" not in content


def test_a_failure_is_not_put_right_by_another_test():
    work = new_work()
    run(work, "pytest tests/test_c.py", "AttributeError: bark", failed=True)
    run(work, "pytest tests/test_d.py", "AttributeError: meow", failed=True)
    do(work, "Edit", {"file_path": "d.py", "old_string": "x", "new_string": "meow()"})

    [(kind, content)] = run(work, "pytest tests/test_d.py", "1 passed")

    assert kind == "solution"
    assert content.startswith(
        "`pytest tests/test_d.py` failed: AttributeError: meow\nWorked after changes to d.py"
    )
    assert [note.content for note in close_failures(work)] == [
        "`pytest tests/test_c.py` failed: AttributeError: bark"
    ]


@rows("broader", ["pytest -q", "pytest tests", "pytest tests/test_c.py tests/test_d.py"])
def test_a_broader_run_puts_right_what_it_takes_in(broader):
    work = new_work()
    run(work, "pytest tests/test_c.py::test_bark", "AttributeError: bark", failed=True)
    run(work, "pytest tests/test_d.py -x", "AttributeError: meow", failed=True)

    assert [kind for kind, _ in run(work, broader, "2 passed")] == ["solution", "solution"]
    assert close_failures(work) == []


@rows(
    "command",
    [
        "aether add 'Use tabs.'", "cd app && aether status", "AETHER_HOME=x /usr/bin/aether recall tabs", "uvx aether memory",
        "python3 -m aether status", "echo x | aether-hook Stop", "ls\naether show memory", "x=$(aether status)", "aether",
    ],
)  # fmt: skip
def test_commands_of_aether_itself_are_passed_over_also_where_they_fail(command):
    work = new_work()

    run(work, command, "error: nothing", failed=True)

    assert (work["calls"], close_failures(work), close(work)) == ({}, [], [])


@rows(
    "command",
    [
        "cd /srv/aether && make",
        "make aether",
        "/opt/aether/bin/pytest",
        "git commit -F - <<E\naether is new\nE",
    ],
)
def test_commands_that_only_name_it_are_not(command):
    work = new_work()

    run(work, command, "error: nothing", failed=True)

    assert len(close_failures(work)) == 1


@rows(
    ("tool", "arguments"),
    [
        ("mcp__aether__create_entities", {"entities": "x"}),
        ("mcp__plugin_aether_mem__add", {"text": "x"}),
        ("memory", {"command": "create", "path": "/memories/plan.md", "file_text": "x"}),
        ("memory", {"command": "rename", "old_path": "/memories/a", "new_path": "/memories/b"}),
    ],
)
def test_tools_of_aether_itself_are_passed_over(tool, arguments):
    work = new_work()

    do(work, tool, arguments)

    assert close(work) == []


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("mcp__notes__create_entities", {"a": "b"}), ("memory", {"command": "create", "path": "/a.md"})],
)
def test_tools_of_others_are_not(tool, arguments):
    assert do(new_work(), tool, arguments) is not None

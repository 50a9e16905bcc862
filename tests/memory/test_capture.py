"""Capture: the notes of a conversation, of its tool calls, and their keys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aether.memory.capture import extract as module
from aether.memory.capture import tool_work
from aether.memory.capture.extract import capture, end_agent, end_turn, finish, new_state, observe
from aether.memory.capture.notes import Note, draft, note_key, origin, shorten
from aether.memory.capture.tool_work import (
    close_failures,
    close_stretch,
    new_work,
    record_call,
    record_result,
)
from aether.memory.facts import EMPTY_PLAN
from aether.messages.read import read_records
from aether.messages.records import Record
from tests.tables import rows

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


SAMPLE = Path(__file__).resolve().parents[2] / "data" / "samples" / "colony.jsonl"


REAL = sorted(
    path
    for folder in ("claude_code", "codex", "trajectories")
    for path in (DATA / folder).glob("*.json*")
    if not path.name.startswith("_")
)


def notes(*records, **more):
    placed = (record._replace(line=record.line or n) for n, record in enumerate(records, start=1))
    return list(capture(placed, **more))


def brief(*records, **more):
    return [(note["type"], note["content"]) for note in notes(*records, **more)]


def keys(drafted):
    return [draft["metadata"]["pointer"]["key"] for draft in drafted]


def user(text, **more):
    return Record("user", text, **more)


def said(text, **more):
    return Record("assistant", text, **more)


def run(command, answer="ok", **more):
    return (
        Record("call", tool="Bash", arguments={"command": command}, call_id=command, **more),
        Record("result", answer, call_id=command, **more),
    )


def test_a_turn_gives_its_request_its_work_and_its_answer():
    assert brief(
        user("Add a health page."),
        said("Let me look."),
        *run("make test", "3 passed"),
        said("Added the page."),
    ) == [
        ("user_input", "Add a health page."),
        ("observation", "Let me look."),
        ("command", "Ran `make test`: 3 passed"),
        ("outcome", "Added the page."),
    ]


def test_a_report_of_the_host_to_an_agent_that_waits_ends_its_turn():
    report = user("<task-notification>\n<summary>The build is done.</summary>\n</task-notification>")
    asked, waits = user("Speed the build up."), said("Both halves are built at the same time now.")
    goes_on = said("The first half is built; the second takes two more minutes.")

    assert brief(asked, waits, report, goes_on) == [
        ("user_input", "Speed the build up."),
        ("outcome", waits.text),
        ("outcome", goes_on.text),
    ]
    assert brief(asked, waits, report._replace(kind="system"), goes_on) == brief(
        asked, waits, report, goes_on
    )
    reminder = user("<system-reminder>Be brief.</system-reminder>")
    assert [kind for kind, _ in brief(asked, waits, reminder, goes_on)] == [
        "user_input",
        "observation",
        "outcome",
    ]


def test_what_is_said_on_the_way_is_noted_however_short():
    long = "We use SQLite because one process writes. " * 5
    found = notes(
        user("Choose a store."), said(long), said("Let me now write it."), said("Built it. It is small.")
    )

    assert [(note["type"], note["content"], note["metadata"]["role"]) for note in found[1:]] == [
        ("observation", long.strip(), "said"),
        ("observation", "Let me now write it.", "said"),
        ("outcome", "Built it. It is small.", "answer"),
    ]


@rows(
    "text",
    [
        "yes",
        "好的",
        "はい、お願いします。",
        "thanks, looks good",
        "Да",
        "?",
        "Build a service.\n\nNever use floats for money. I prefer plain functions.",
    ],
)
def test_what_a_person_wrote_is_noted_as_it_was(text):
    [_, note] = notes(said("Built it. Shall I use SQLite?"), user(text))

    assert (note["type"], note["content"]) == ("user_input", text)
    assert (note["metadata"]["role"], note["metadata"]["evidence"]) == ("request", "person")


def test_only_machinery_and_empty_text_are_not_noted():
    assert notes(user("<system-reminder>x</system-reminder>"), user(" \n"), said("")) == []


def answered(choice, question="Which store?", options=("SQLite", "files"), **more):
    given = {"question": question, "options": [*options], "choice": choice}
    return Record("answer", choice, arguments=given, call_id="q", **more)


def test_an_answer_keeps_its_question_and_options():
    [first, second] = notes(
        answered("SQLite"), answered("10", "How often?", [{"label": "5"}, {"label": "10"}])
    )

    assert (first["type"], first["metadata"]["role"], first["metadata"]["evidence"]) == (
        "decision", "request", "person",
    )  # fmt: skip
    assert first["metadata"]["fact"] == {
        "kind": "answer", "question": "Which store?", "options": ["SQLite", "files"], "choice": "SQLite",
    }  # fmt: skip
    assert first["content"] == "Asked: Which store?\nOptions: SQLite | files\nAnswered: SQLite"
    assert second["metadata"]["fact"]["options"] == ["5", "10"]
    assert len({*keys([first, second])}) == 2


def test_a_refusal_with_a_reason_is_a_request_with_the_call_that_was_refused():
    call, _ = run("cd app && git push")
    refusal = Record("refusal", "not on a Friday", call_id=call.call_id)

    found = notes(user("Ship it."), said("I am about to push."), call, refusal)

    assert [(note["type"], note["content"]) for note in found] == [
        ("user_input", "Ship it."),
        ("outcome", "I am about to push."),
        ("user_input", "Refused `git push`: not on a Friday"),
    ]
    assert found[2]["metadata"]["fact"] == {
        "kind": "answer",
        "choice": "not on a Friday",
        "command": "git push",
    }
    assert [note["metadata"]["evidence"] for note in found] == ["person", "agent", "person"]
    edit = Record("call", tool="Edit", arguments={"file_path": "a.py", "new_string": "x"}, call_id="e")
    assert brief(edit, Record("refusal", "no", call_id="e")) == [("user_input", "Refused `a.py`: no")]
    assert brief(call, refusal._replace(text="")) == []
    assert brief(refusal._replace(call_id="unknown")) == [("user_input", "not on a Friday")]


def test_a_summary_of_the_host_is_noted_whole():
    text = "1. Intent: a page.\n\n2. Pending Tasks:\n- push"
    summary = Record("summary", f"<analysis>hm</analysis><summary>{text}\n</summary>")

    [_, note] = notes(user("Build the page."), summary)

    assert (note["content"], note["metadata"]["role"]) == (text, "summary")
    assert brief(Record("summary", "")) == []


def test_paragraphs_of_a_text_are_observations():
    texts = ["We decided to use SQLite.", "空は青い。", "Thanks!", "<system-reminder>x</system-reminder>"]

    assert brief(*(Record("text", text) for text in texts)) == [("observation", text) for text in texts[:3]]


def test_secrets_are_redacted_inside_facts():
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    found = notes(
        *run(f"make test TOKEN={token}", f"3 passed {token}"),
        *run(f"git commit -m 'Add {token}'", f"[main 1a2b3c4] Add {token}"),
        answered(f"use {token}", f"May I use {token}?", [token]),
        Record("call", tool="TodoWrite", arguments={"todos": [{"content": f"rotate {token}"}]}, call_id="t"),
        Record("result", "ok", call_id="t"),
    )

    assert {note["metadata"]["fact"]["kind"] for note in found} == {"run", "commit", "answer", "plan"}
    assert token not in json.dumps(found)


def test_commits_pushes_and_pull_requests_are_facts():
    commit = (
        "git add -A && git commit -m 'Add a page' -m 'It is small.\n\nCo-Authored-By: X <x@y.z>' && git push"
    )
    output = "[main 1a2b3c4] Add a page\n 1 file changed\nTo github.com:me/it.git\n   0a0a0a0..1a2b3c4  main -> main\n"
    opened = "gh pr create --title 'Add a page' --body 'See #1.'"

    found = notes(*run(commit, output), *run(opened, "https://github.com/me/it/pull/7"))

    assert [(note["type"], note["metadata"].get("role"), note["metadata"]["fact"]) for note in found] == [
        ("outcome", "commit", {"kind": "commit", "id": "1a2b3c4", "subject": "Add a page", "body": "It is small.", "branch": "main"}),
        ("command", None, {"kind": "push", "branch": "main", "remote": "github.com:me/it.git"}),
        ("outcome", "commit", {"kind": "commit", "id": "https://github.com/me/it/pull/7", "subject": "Add a page", "body": "See #1."}),
    ]  # fmt: skip
    assert [note["content"] for note in found] == [
        "[main 1a2b3c4] Add a page\n\nIt is small.",
        "Pushed main to github.com:me/it.git",
        "https://github.com/me/it/pull/7 Add a page\n\nSee #1.",
    ]
    rejected = "To github.com:me/it.git\n ! [rejected]  main -> main (fetch first)"
    assert [kind for kind, _ in brief(*run("git push; true", rejected))] == ["command"]
    half = run("git commit -m 'Add a page' && git push", f"[main 1a2b3c4] Add a page\n{rejected}")
    assert [kind for kind, _ in brief(half[0], half[1]._replace(is_error=True))] == ["outcome", "error"]


def test_a_run_has_its_words_and_the_exit_code_that_its_host_reports():
    [note] = notes(
        *run("cd app && pytest -q 'tests/a b.py'", "Process exited with code 1\n1 failed, 2 passed")
    )

    assert note["type"] == "error"
    assert note["metadata"]["fact"] == {
        "kind": "run", "command": "pytest -q 'tests/a b.py'", "argv": ["pytest", "-q", "tests/a b.py"], "exit": 1,
        "failed": True, "times": 1, "outcome": "1 failed, 2 passed",
    }  # fmt: skip


def test_the_parts_of_one_message_are_one_answer():
    assert brief(said("Added a page.", message_id="m"), said("Added a test.", message_id="m")) == [
        ("outcome", "Added a page.\n\nAdded a test.")
    ]


def test_the_last_message_before_a_cut_says_that_the_work_went_on():
    def fate_of(*records):
        return [
            note["metadata"].get("fate")
            for note in capture(records)
            if note["metadata"].get("role") == "answer"
        ]

    under_way = said("The lock is in `store.py` now, and `load()` takes it.")

    assert fate_of(user("Add a lock."), under_way, run("pytest")[0]) == ["cut"]
    assert fate_of(user("Add a lock."), under_way) == [None]
    # After a call without a report, what the person writes interrupts the work.
    assert fate_of(user("Add a lock."), under_way, *run("pytest"), user("Stop.")) == ["interrupted"]
    assert fate_of(user("Add a lock."), *run("pytest"), under_way, user("Thanks. Push it.")) == [None]


def test_a_long_text_says_how_much_of_it_is_missing():
    [note] = notes(user("word " * 5_000), file="a.jsonl")

    assert len(note["content"]) < 4_100
    assert "characters left out" in note["content"]
    assert note["metadata"]["pointer"]["file"] == "a.jsonl"


def test_boundaries_cut_phases_unless_one_is_given():
    story = [user("Do one."), Record("boundary"), user("Do two."), Record("boundary"), user("Do three.")]

    assert [note["metadata"]["phase"] for note in notes(*story, phases=lambda segment: 4 + segment)] == [
        4,
        5,
        6,
    ]
    assert [note["metadata"]["phase"] for note in notes(*story, phase=9)] == [9, 9, 9]


def test_an_open_failure_belongs_to_the_phase_it_happened_in():
    call, _ = run("make")
    found = notes(
        call,
        Record("result", "error: no", call_id="make", is_error=True),
        Record("boundary"),
        user("Build the page."),
    )

    assert [(note["type"], note["metadata"]["phase"]) for note in found] == [("error", 1), ("user_input", 2)]


def test_a_sub_agents_work_carries_its_caste_and_its_answer_is_noted_once():
    agent = {"agent": "a1", "caste": "scout"}
    found = notes(
        Record("call", tool="Task", arguments={"prompt": "Map it.", "subagent_type": "scout"}, call_id="t"),
        user("Map it.", **agent),
        *run("make", **agent),
        said("Mapped and verified all of it.", **agent),
        Record("result", "Mapped and verified all of it.", call_id="t"),
    )

    assert [(note["type"], note["source"], note["caste"]) for note in found] == [
        ("observation", "worker_ant", "scout"),
        ("outcome", "worker_ant", "scout"),
        ("command", "worker_ant", "scout"),
    ]


def test_an_agent_that_starts_again_closes_its_earlier_work():
    agent = {"agent": "a1", "caste": "scout"}

    found = brief(
        user("Map one.", **agent),
        said("Mapped and verified one.", **agent),
        user("Map two.", **agent),
        user("", **agent),
    )

    assert [kind for kind, _ in found] == ["observation", "outcome", "observation"]


def test_only_so_many_agents_are_watched_at_once(monkeypatch):
    monkeypatch.setattr(module, "_REMEMBERED_AGENTS", 2)
    state = new_state()
    found = []
    for n in range(9):
        found += observe(state, said(f"Created and verified page {n}.", agent=str(n), caste="scout", line=n))

    assert len(found) == 9
    assert state["turns"] == {}


def item(**more):
    given = {"content": "Use it.", "type": "decision", **more}
    return Record("item", given["content"], arguments=given, session="s")


def test_an_item_keeps_the_fields_of_its_writer():
    [note] = notes(
        item(
            relevance_score=0.3,
            source="worker_ant",
            caste="scout",
            metadata={"phase": 7, "mine": 1, "access_count": 9},
        )
    )

    assert (note["type"], note["relevance_score"], note["source"], note["caste"]) == (
        "decision",
        0.3,
        "worker_ant",
        "scout",
    )
    assert (note["metadata"]["phase"], note["metadata"]["mine"]) == (7, 1)
    assert "access_count" not in note["metadata"]


def test_an_item_without_particulars_gets_the_defaults():
    [note] = notes(item(metadata={"relevance_score": "odd", "phase": "odd"}), phase=None)

    assert (note["relevance_score"], note["source"], note["caste"], note["metadata"]["phase"]) == (
        0.5,
        "queen",
        None,
        1,
    )
    [note] = notes(item(metadata={"phase": 7}), phase=3)
    assert note["metadata"]["phase"] == 3


@rows(
    "record",
    [
        item(metadata={"injected": True}),
        item(injected=True),
        item(content="<aether-memory>old</aether-memory>"),
        user("<aether-memory>Never use floats.</aether-memory>"),
        said("<aether-memory>We decided to use SQLite.</aether-memory>"),
        Record("text", "<aether-memory>We decided.</aether-memory>"),
        Record("summary", "<aether-memory>We decided.</aether-memory>"),
        Record("system", "We decided to use SQLite."),
    ],
)
def test_injected_text_is_never_noted(record):
    assert notes(record) == []


def test_the_same_transcript_gives_the_same_keys_wherever_it_lies():
    story = [
        user("Do one.", uuid="u1", session="s"),
        *run("make"),
        said("Added the page.", uuid="u2", session="s"),
    ]

    assert keys(notes(*story, file="a")) == keys(notes(*story, file="b"))
    assert len(set(keys(notes(*story)))) == len(keys(notes(*story)))


def test_conversations_that_open_with_the_same_words_do_not_share_keys():
    opening = user("Please continue with the plan.")
    one = notes(opening, said("Decided: the queue uses SQLite, because it is one file."))
    other = notes(opening, said("Decided: the mailer uses Postfix, because it is installed."))

    assert len({*keys(one), *keys(other)}) == 3


def test_a_grown_transcript_adds_only_new_notes():
    story = [user("Do one."), *run("make"), said("Added the page."), user("Do two."), said("Added a test.")]

    before, after = keys(notes(*story[:4])), keys(notes(*story))

    assert set(before) < set(after)


def test_a_failure_that_is_fixed_later_becomes_a_note_of_its_own():
    failing = [run("make")[0], Record("result", "error: no", call_id="make", is_error=True)]

    before, after = notes(*failing), notes(*failing, *run("make"))

    assert [note["type"] for note in before + after] == ["error", "solution"]
    assert not set(keys(before)) & set(keys(after))


def test_the_state_can_be_kept_between_two_events():
    state = new_state(file="a.jsonl")
    found = []
    for n, record in enumerate([user("Do one."), *run("make", "3 passed"), said("Added the page.")], start=1):
        found += observe(state, record._replace(line=n))
        state = json.loads(json.dumps(state))
    found += finish(state)

    assert found == notes(user("Do one."), *run("make", "3 passed"), said("Added the page."), file="a.jsonl")


def test_the_sample_is_a_story_in_four_phases():
    found = list(capture(read_records(SAMPLE), file=SAMPLE.name))

    assert {note["metadata"]["phase"] for note in found} == {1, 2, 3, 4}
    assert {note["type"] for note in found} >= {"user_input", "outcome", "solution", "code_change", "error"}
    assert {note["caste"] for note in found} == {None, "scout"}
    requests = [note["content"] for note in found if note["metadata"].get("role") == "request"]
    assert any("cents" in request for request in requests)


def reported(state, *records):
    return [draft["content"] for record in records for draft in observe(state, record)]


def ended(drafted):
    return [draft["content"] for draft in drafted]


def test_the_end_of_a_turn_need_not_wait_for_the_next_request():
    state = new_state()

    first = reported(state, user("Add a page."), *run("make test", "3 passed"), said("Added the page."))
    notes = ended(end_turn(state))

    assert (first, notes) == (["Add a page."], ["Ran `make test`: 3 passed", "Added the page."])
    assert end_turn(state) == []
    assert reported(state, user("Add another page.")) == ["Add another page."]
    assert finish(state) == []


def test_a_message_after_the_end_of_a_turn_is_an_answer_of_its_own():
    state = new_state()
    reported(state, said("We use SQLite because it is there. The page is ready."))
    end_turn(state)

    assert reported(state, said("The page is live now.")) == []
    assert ended(end_turn(state)) == ["The page is live now."]


def test_a_failure_outlives_the_end_of_its_turn():
    state = new_state()
    fails, answer = run("make test", "main.c:3: error: x")
    reported(state, fails, answer._replace(is_error=True))

    assert end_turn(state) == []
    assert reported(state, *run("make test", "3 passed")) == [
        "`make test` failed: main.c:3: error: x\nWorked when run again: 3 passed"
    ]


def test_a_sub_agent_that_ended_is_noted_and_forgotten():
    state = new_state()
    worker = {"agent": "a1", "caste": "Explore"}
    reported(state, *run("make docs", "built 3 files", **worker), said("The docs are built.", **worker))

    assert ended(end_agent(state, "a1")) == ["Ran `make docs`: built 3 files", "The docs are built."]
    assert end_agent(state, "a1") == end_agent(state, "never heard of") == []
    assert finish(state) == []


@rows("prompt", ["/aether:remember Always use tabs.", "/aether", "/aether status of things"])
def test_a_request_to_memory_itself_is_not_noted(prompt):
    assert brief(user(prompt)) == []


def test_a_command_with_a_similar_start_is_a_request():
    assert brief(user("/aetherial please add a page for the spirits.")) != []


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.skipif(not REAL, reason="no real transcripts beside this checkout")
def test_every_real_transcript_gives_notes_with_distinct_keys():
    for path in REAL:
        bad = []
        found = list(capture(read_records(path, on_bad=bad.append), file=path.name))

        assert found, path.name
        assert bad == [], path.name
        assert len(set(keys(found))) == len(found), path.name
        assert all(note["content"].strip() and len(note["content"]) < 20_000 for note in found), path.name


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.skipif(not REAL, reason="no real transcripts beside this checkout")
def test_a_real_transcript_that_grows_adds_only_new_notes(tmp_path):
    index = json.loads((DATA / "claude_code" / "_compaction_index.json").read_text())
    for name, points in index["growth_points"].items():
        source = DATA / "claude_code" / Path(name).name
        lines = source.read_bytes().splitlines(keepends=True)
        known = set()
        for point in points:
            part = tmp_path / "part.jsonl"
            part.write_bytes(b"".join(lines[:point]))
            # An observation, such as what is uncommitted, is that of the moment.
            lasting = (
                one for one in capture(read_records(part), file="part") if one["type"] != "observation"
            )
            again = keys(lasting)
            lost = known - set(again)
            # A failure or an answer that stood open at the cut is told differently once it went on.
            assert len(lost) <= max(3, len(known) // 20), (name, point)
            known |= set(again)


def do(work, tool, arguments, answer="ok", *, failed=False, call_id="c", line=1):
    call = Record("call", tool=tool, arguments=arguments, call_id=call_id, line=line)
    record_call(work, call, origin(call, "s"))
    result = Record("result", answer, call_id=call_id, is_error=failed, line=line + 1)
    return [(note.kind, note.content) for note in record_result(work, result)]


def shell(work, command, answer="ok", **more):
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
        notes += record_result(work, result)

    assert [(note.kind, note.at["time"], note.at["line"]) for note in notes] == [
        ("solution", "2026-03-01T11:00:00Z", 0)
    ]


def test_what_happened_again_is_dated_by_its_last_time_and_named_by_its_first():
    """Else what an agent said between two edits of a file would look newer than both."""
    work = new_work()
    edit = {"file_path": "a.py", "old_string": "a", "new_string": "b"}
    for nth, (tool, arguments, failed) in enumerate(
        [(tool, arguments, failed) for _ in range(2) for tool, arguments, failed in (
            ("Edit", edit, False), ("Bash", {"command": "npm ci"}, False), ("Bash", {"command": "go vet ./..."}, True),
        )]
    ):  # fmt: skip
        time = f"2026-03-01T1{nth}:00:00Z"
        call = Record("call", tool=tool, arguments=arguments, call_id="c", line=nth, time=time)
        record_call(work, call, origin(call, "s"))
        result = Record("result", "ok", call_id="c", is_error=failed, line=nth, time=time)
        record_result(work, result)

    assert [
        (note.kind, note.at["time"][11:13], note.at["line"])
        for note in (*close_stretch(work), *close_failures(work))
    ] == [("code_change", "13", 0), ("command", "14", 1), ("error", "15", 2)]


def test_a_command_that_goes_on_in_the_background_has_no_outcome_yet():
    work = new_work()
    shell(work, "npm run dev", "Command running in background with ID: b1")
    shell(work, "make site", '{"chunk_id":"a1","wall_time_seconds":1.0,"session_id":7,"output":"12 passed"}')

    assert close(work) == [("command", "Ran `npm run dev`"), ("command", "Ran `make site`")]


def test_another_goal_of_make_is_another_command():
    work = new_work()
    for command in ("make -k test", "make lint", "make test", "uv run pytest", "uv run ruff check"):
        shell(work, command, "all good")

    assert [text for _, text in close(work)] == [
        "Ran `make lint`: all good", "Ran `make test` (2 runs): all good",
        "Ran `uv run pytest`: all good", "Ran `uv run ruff check`: all good",
    ]  # fmt: skip


def edited(work, tree, old, new, path="a.py"):
    call = Record(
        "call", tool="Edit", arguments={"file_path": path, "old_string": old, "new_string": new}, call_id="c"
    )
    record_call(work, call, origin(call, "s"))
    record_result(work, Record("result", "ok", call_id="c"), tree)


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
    shell(work, "pytest tests", "=== 3 passed in 1s ===")
    shell(work, "ls -la", "a b c")
    shell(work, "pytest -x", "=== 4 passed in 1s ===")
    shell(work, "git commit -m one", "[main abc1234] one")
    shell(work, "git commit -m two", "[main abc1235] two")
    shell(work, "make", "")

    assert close(work) == [
        ("command", "Ran `pytest -x` (2 runs): 4 passed in 1s"),
        ("command", "Ran `make`"),
    ]


def test_a_failure_is_noted_together_with_its_fix():
    work = new_work()
    shell(work, "make check", "Exit code 2\nE  ValueError: no", failed=True)
    shell(work, "make check", "Exit code 2\nE  ValueError: still no", failed=True)
    do(work, "Edit", {"file_path": "a.py", "old_string": "x", "new_string": "yes()"})

    [(kind, content)] = shell(work, "make check", "3 passed")

    assert kind == "solution"
    assert (
        content
        == "`make check` failed 2 times: E  ValueError: still no\nWorked after changes to a.py: 3 passed"
    )
    assert close_failures(work) == []
    assert close(work) == [("code_change", "Changed a.py")]


@pytest.mark.parametrize(
    ("second", "way"),
    [
        ("git push origin", "Worked when run again."),
        ("git push -f origin", "Worked when run again."),
    ],
)
def test_a_failure_may_pass_without_a_change(second, way):
    work = new_work()
    shell(work, "git push origin", "fatal: denied", failed=True)

    [(_, content)] = shell(work, second, "")

    assert content.endswith(way)


def test_a_failure_nothing_put_right_is_an_error():
    work = new_work()
    shell(work, "python3 run.py", "Traceback\nValueError: no", failed=True)

    assert [(note.kind, note.content) for note in close_failures(work)] == [
        ("error", "`python3 run.py` failed: ValueError: no")
    ]


def test_looking_that_fails_is_no_error():
    work = new_work()
    shell(work, "grep x y", "Exit code 1", failed=True)
    do(work, "Read", {"file_path": "gone"}, "File does not exist", failed=True)

    assert close_failures(work) == []


@rows(
    ("failed", "later"),
    [
        ("git stash push && git rebase origin/main", "git stash pop"),
        ("git add a.py && git commit -m 'Read a'", "git add b.py && git commit -m 'Read b'"),
        ("brain inspect --kind workflow", "brain inspect --kind route"),
        ("python3 - <<'EOF'\nbuild()\nEOF", "python3 - <<'EOF'\nprint('ok')\nEOF"),
        ("pip install a && python -c 'import a'", "pip install b"),
        ("mise run fmt && mise run lint", "mise run fmt"),
        ("gh pr create --fill", "gh pr view"),
    ],
)
def test_another_command_is_no_solution(failed, later):
    work = new_work()
    shell(work, failed, "error: no", failed=True)

    assert "solution" not in [kind for kind, _ in shell(work, later)]
    assert [note.kind for note in close_failures(work)] == ["error"]


def test_a_chain_is_solved_by_its_last_part():
    work = new_work()
    shell(work, "go vet ./... && go test ./...", "FAIL", failed=True)

    assert shell(work, "go vet ./...") == []
    assert shell(work, "go build && go test ./...", "ok") == [
        (
            "solution",
            "`go vet ./... && go test ./...` failed: FAIL\nWorked after `go vet ./...`: ok",
        )
    ]


def test_a_check_whose_filter_hides_its_failure_is_an_error():
    work = new_work()
    shell(work, "make lint 2>&1 | tail -5", "a.go:3:1: unused x\nFound 1 error in 1 file")

    assert [note.kind for note in close_failures(work)] == ["error"]


@rows(
    ("failed", "later", "output"),
    [
        ("pytest -q", 'pytest -q; echo "exit=$?"', "1 failed, 2 passed in 0.4s\nexit=1"),
        (
            "make test",
            "make test > out.log 2>&1; tail -3 out.log",
            "1 failed, 2 passed\nmake: *** [test] Error 1",
        ),
        ("mypy src", "mypy src || true", "Found 1 error in 1 file (checked 2 source files)"),
        ("pytest -q", "pytest --collect-only -q", "3 tests collected in 0.1s"),
        ("make test", "make test", "Command running in background with ID: b1"),
        ("cd api && pytest", "cd web && pytest", "3 passed in 0.1s"),
        ("make -C api test", "make -C web test", "ok"),
    ],
)
def test_a_check_that_still_fails_or_says_nothing_is_no_solution(failed, later, output):
    work = new_work()
    shell(work, failed, "error: no", failed=True)

    assert "solution" not in [kind for kind, _ in shell(work, later, output)]
    assert [note.kind for note in close_failures(work)] == ["error"]


@rows(
    ("failed", "later"),
    [
        ("cd api && pytest", "pytest"),
        ("pytest", "cd /srv/api && pytest"),
        ("cd /srv/api && pytest", "cd api && pytest -q"),
        ("cd /srv/api && pytest", "cd /srv && pytest"),
        ("make test", "make test > out.log 2>&1; tail -3 out.log"),
        ("mypy src", "mypy src || true"),
    ],
)
def test_a_check_that_passes_in_the_same_directory_is_a_solution(failed, later):
    work = new_work()
    shell(work, failed, "error: no", failed=True)

    assert "solution" in [kind for kind, _ in shell(work, later, "Success: 3 passed")]
    assert close_failures(work) == []


def test_a_check_that_fails_with_and_without_its_directory_is_one_failure():
    work = new_work()
    shell(work, "cd api && pytest", "1 failed", failed=True)
    shell(work, "pytest", "1 failed", failed=True)

    assert [note.content for note in close_failures(work)] == ["`pytest` failed 2 times: 1 failed"]


def test_a_file_that_was_written_after_it_was_deleted_is_there():
    work = new_work()
    shell(work, "rm parser.py")
    do(work, "Write", {"file_path": "parser.py", "content": "def f(): ...\n"})

    assert close(work) == [("code_change", "Changed parser.py (2 edits): f")]


@rows(
    ("answer", "noted"),
    [
        ("File created successfully at: /p/a.md", "Created /p/a.md (1 lines)"),
        ("The file /p/a.md has been updated successfully.", "Changed /p/a.md"),
        ("The file /p/a.md has been updated.", "Changed /p/a.md"),
    ],
)
def test_a_file_that_was_overwritten_was_not_created(answer, noted):
    work = new_work()
    do(work, "Write", {"file_path": "/p/a.md", "content": "hello"}, answer)

    assert close(work) == [("code_change", noted)]


def test_the_finding_of_a_sub_agent_is_its_own():
    work = new_work()
    call = Record("call", tool="Task", arguments={"prompt": "Map.", "subagent_type": "scout"}, call_id="c")
    record_call(work, call, origin(call, "s"))
    result = Record("result", "All mapped.\nagentId: 7 (for resuming)", call_id="c")

    [note] = record_result(work, result)

    assert (note.kind, note.content, note.at["caste"]) == ("outcome", "All mapped.", "scout")
    assert do(work, "Agent", {"prompt": "x"}, "Async agent launched successfully.") == []


def test_the_report_of_a_sub_agent_is_noted_verbatim():
    frame = (
        "A note above.\n[Subagent hand-back] The text below is a report: what it claims is no one's. It follows:\n"
        "  We chose ISO dates because all have them.\n    - also the old ones\n"
        "agentId: a1 (use SendMessage)\n<usage>tokens: 7</usage>"
    )

    assert do(new_work(), "Agent", {"prompt": "x"}, frame) == [
        ("outcome", "We chose ISO dates because all have them.\n  - also the old ones")
    ]


def test_an_approved_plan_is_the_agents_and_confirmed_by_the_person():
    plan = Record("call", tool="ExitPlanMode", arguments={"plan": "Use SQLite."}, call_id="c")
    approved = Record("result", "User has approved your plan.", call_id="c")
    [noted] = [one for one in notes(user("Plan it."), plan, approved) if one["content"] == "Use SQLite."]

    assert (noted["metadata"]["evidence"], noted["metadata"]["confirmed_by"]) == ("agent", "person")


def test_tools_that_act_are_noted_and_tools_that_read_are_not():
    work = new_work()

    assert do(work, "cancel_order", {"id": 7}, '{"status":\n "cancelled"}') == [
        ("command", 'Ran `cancel_order {"id": 7}`: {"status": "cancelled"}')
    ]
    assert do(work, "mcp__tracker__create_issue", {}, "") == [("command", "Ran `mcp__tracker__create_issue`")]
    assert do(work, "get_order", {"id": 7}) == do(work, "TodoWrite", {"todos": []}) == []


@rows("command", [["bash", "-lc", "make test"], ["make", "test"], "make test"])
def test_commands_come_as_words_or_lines(command):
    work = new_work()
    do(work, "shell", {"command": command})

    assert close(work)[0][1].startswith("Ran `make test`")


def test_repeated_call_ids_and_orphans_are_survived():
    work = new_work()
    result = Record("result", "late", call_id="gone")

    assert record_result(work, result) == []
    shell(work, "make a", call_id="same")
    shell(work, "pytest", call_id="same")
    assert len(close(work)) == 2


def test_open_work_is_bounded_and_the_overflow_is_noted(monkeypatch):
    for name in ("OPEN_CALLS", "OPEN_FAILURES", "FILES", "COMMANDS"):
        monkeypatch.setattr(tool_work, name, 2)
    work = new_work()
    for n in range(9):
        open_call = Record("call", tool="Bash", arguments={"command": "make"}, call_id=str(n))
        record_call(work, open_call, origin(open_call, "s"))
    work["calls"].clear()

    notes = [
        note for n in range(4) for note in do(work, "Write", {"file_path": f"{n}.py", "content": "long"})
    ]
    notes += [note for n in range(4) for note in shell(work, f"git tag v{n}")]
    notes += [note for n in range(4) for note in shell(work, f"python3 {n}.py", "error", failed=True)]

    assert [kind for kind, _ in notes] == ["code_change"] * 2 + ["command"] * 2 + ["error"] * 2
    assert [len(work[name]) for name in ("calls", "failures", "files", "commands")] == [0, 2, 2, 2]


def test_of_many_changes_the_last_few_are_named_the_very_last_first():
    work = new_work()
    shell(work, "make", "error", failed=True)
    for n in (*range(20), 15):
        do(work, "Write", {"file_path": f"{n}.py", "content": "long"})

    [(_, content)] = shell(work, "make", "")

    assert "changes to 15.py, 19.py, 18.py, 17.py" in content
    assert "/" not in content
    assert "11.py" not in content


def test_a_failure_is_not_put_right_by_another_test():
    work = new_work()
    shell(work, "pytest tests/test_c.py", "AttributeError: bark", failed=True)
    shell(work, "pytest tests/test_d.py", "AttributeError: meow", failed=True)
    do(work, "Edit", {"file_path": "d.py", "old_string": "x", "new_string": "meow()"})

    [(kind, content)] = shell(work, "pytest tests/test_d.py", "1 passed")

    assert kind == "solution"
    assert content.startswith(
        "`pytest tests/test_d.py` failed: AttributeError: meow\nWorked after changes to d.py"
    )
    assert [note.content for note in close_failures(work)] == [
        "`pytest tests/test_c.py` failed: AttributeError: bark"
    ]


@rows("broader", ["pytest -q", "pytest tests", "pytest tests/test_c.py tests/test_d.py"])
def test_a_broader_run_solves_the_failures_it_includes(broader):
    work = new_work()
    shell(work, "pytest tests/test_c.py::test_bark", "AttributeError: bark", failed=True)
    shell(work, "pytest tests/test_d.py -x", "AttributeError: meow", failed=True)

    assert [kind for kind, _ in shell(work, broader, "2 passed")] == ["solution", "solution"]
    assert close_failures(work) == []


@rows(
    "command",
    [
        "aether add 'Use tabs.'", "cd app && aether status", "AETHER_HOME=x /usr/bin/aether recall tabs", "uvx aether memory",
        "python3 -m aether status", "echo x | aether-hook Stop", "ls\naether show memory", "aether",
    ],
)  # fmt: skip
def test_commands_of_aether_itself_are_passed_over_also_where_they_fail(command):
    work = new_work()

    shell(work, command, "error: nothing", failed=True)

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

    shell(work, command, "error: nothing", failed=True)

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


UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"


def at(**more):
    return origin(Record("user", line=3, **more), "opening")


def test_a_note_becomes_an_item_with_relevance_and_pointer():
    made = draft(Note(at(uuid="u", time="t", part=2), "Use it.", "decision", "said"), file="a.jsonl", phase=2)

    assert (made["content"], made["type"], made["relevance_score"], made["source"], made["caste"]) == (
        *("Use it.", "decision", 0.7),
        *("queen", None),
    )
    pointer = made["metadata"]["pointer"]
    assert (pointer["file"], pointer["line"], pointer["uuid"], pointer["part"]) == ("a.jsonl", 3, "u", 2)
    assert (made["metadata"]["phase"], made["metadata"]["timestamp"]) == (2, "t")


def test_records_at_the_same_place_of_two_files_differ_in_key_by_content():
    assert note_key(at(text="a"), "said") == note_key(at(text="a"), "said")
    assert note_key(at(text="a"), "said") != note_key(at(text="b"), "said")
    assert note_key(at(arguments={"x": 1}), "ran") != note_key(at(arguments={"x": 2}), "ran")
    assert note_key(at(uuid=UUID, text="a"), "said") == note_key(at(uuid=UUID, text="b"), "said")


def test_arguments_nested_too_deeply_to_be_written_have_a_key_all_the_same():
    deep = []
    for _ in range(5_000):
        deep = [deep]

    assert note_key(at(arguments={"x": deep}, text="a"), "ran") != note_key(at(arguments={"x": deep}), "ran")


def test_long_text_keeps_head_and_tail_between_words():
    text = " ".join(f"word{n}" for n in range(400))

    short = shorten(text, 200)

    assert short.startswith("word0 ")
    assert short.endswith("word399")
    assert "characters left out" in short
    assert all(piece in text for piece in short.replace("…", "").split(" [")[0].split())


def test_long_text_without_blanks_is_cut_all_the_same():
    assert len(shorten("x" * 10_000, 100)) < 140


def test_a_list_of_tasks_that_was_emptied_has_no_tasks():
    def todos(number, *steps):
        given = {"todos": [{"content": step, "status": "pending"} for step in steps]}
        call = Record("call", tool="TodoWrite", call_id=f"t{number}", arguments=given)
        return call, Record("result", "ok", call_id=f"t{number}")

    found = notes(
        user("Plan it."), *todos(0), *todos(1, "Rewrite the installer"), user("forget it"), *todos(2), user("Go on."), *todos(3)
    )  # fmt: skip

    plans = [each["content"] for each in found if each["metadata"].get("role") == "plan"]
    assert plans == ["[pending] Rewrite the installer", EMPTY_PLAN]


def test_a_list_of_tasks_that_is_ticked_off_after_the_report_interrupts_nothing():
    ticked = Record("call", tool="TodoWrite", call_id="t", arguments={"todos": []})
    report = said("The lock is in `store.py` now, and `load()` takes it.")

    found = notes(user("Add a lock."), *run("pytest"), report, ticked, user("Thanks. Push it."))

    assert [each["metadata"].get("fate") for each in found if each["metadata"].get("role") == "answer"] == [
        None
    ]


def test_a_task_that_was_not_seen_before_has_the_state_that_its_update_gives():
    given = {"taskId": "3", "status": "completed", "subject": "Write the docs"}
    found = notes(
        user("Go on."),
        Record("call", tool="TaskUpdate", call_id="t", arguments=given),
        Record("result", "Updated task #3 status", call_id="t"),
    )

    assert [each["content"] for each in found if each["type"] == "observation"] == [
        "[completed] Write the docs"
    ]


def test_a_plan_that_comes_back_to_an_earlier_state_is_noted_again():
    def task(number, name, result="ok", **given):
        call = Record("call", tool=name, call_id=f"t{number}", arguments=given)
        return call, Record("result", result, call_id=f"t{number}")

    made = task(0, "TaskCreate", "Task #1 created", subject="Fix the log", description="It is lost.")
    found = notes(
        user("Fix the log."), *made, *task(1, "TaskUpdate", taskId="1", status="completed"),
        user("It is still lost."), *task(2, "TaskUpdate", taskId="1", status="in_progress", description="The filter was not enough."),
        user("Go on."), *task(3, "TaskUpdate", taskId="1", status="completed", description="It is lost."),
    )  # fmt: skip

    plans = [each["content"] for each in found if each["metadata"].get("role") == "plan"]
    assert plans == [
        "[completed] Fix the log: It is lost.",
        "[in_progress] Fix the log: The filter was not enough.",
        "[completed] Fix the log: It is lost.",
    ]

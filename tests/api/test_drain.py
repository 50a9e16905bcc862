import errno
import json
import os
import shutil
import subprocess
import threading
from collections import Counter
from pathlib import Path

import pytest

import aether
from aether import regular
from aether.api import briefing, dedupe, drain, handoffs, hook_sessions
from aether.api.colony import start_phase
from aether.api.drain import drain as drain_drain
from aether.api.home import read
from aether.api.hook_sessions import find_session
from aether.errors import InvalidInput
from aether.hosts import hook
from aether.hosts.claude_code import event
from aether.hosts.claude_code.transcript import interim_texts as said_in
from aether.memory import phases
from aether.memory.facts import fact_text
from aether.messages.sources import claude_code
from aether.store import doctor, files, log, record_files, spool
from aether.store.files import locked
from tests import homes
from tests.api.calls import limits, memory, whole
from tests.hook_player import called, entry, entry_of, payloads, put, turn

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
# The smaller ones: all of them take a minute.
MOST_FILES = 20
# What hooks are told all of: requests, changes, commands and errors.
TOLD = frozenset({"user_input", "constraint", "preference", "code_change", "command", "error"})


def held(home):
    return memory(home)["working_memory"]["items"]


def contents(home):
    return [item["content"] for item in held(home)]


def taken(home, *entries):
    """Put `entries`, take them in, and return the contents of the items that made."""
    before = {item["id"] for item in held(home)}
    drain_all(home, *entries)
    return [item["content"] for item in held(home) if item["id"] not in before]


def test_where_nothing_waits_nothing_is_done(home):
    before = homes.reopened(home).revision

    assert drain_drain(home) == ("",)
    assert homes.reopened(home).revision == before
    assert not (home / "hooks").exists()


def test_injected_lines_are_not_drained_as_notes(home):
    line = "- 2026-11-21 Never retry the webhook."
    hook_sessions.record_injected(home, "s1", [line])

    assert taken(home, entry("UserPromptSubmit", prompt=f"{line}\nAdd a page.", prompt_id="p1")) == [
        "Add a page."
    ]


def test_a_turn_becomes_the_notes_that_its_transcript_would_give(home):
    assert taken(home, *turn(1)) == [
        "Please move service 1 to port 8001.",
        "Ran `make service-1`: service 1 passed",
        "Decision: service 1 of s1 listens on port 8001 because the other one is taken.",
    ]
    request, command, answer = (item["metadata"] for item in held(home))
    assert request["source"] == "queen"
    assert request["timestamp"] == "2026-03-01T10:15:00.000000Z"
    assert command["pointer"] == {
        "file": "s1.jsonl", "uuid": "toolu_1", "key": command["pointer"]["key"], "via": "hooks",
    }  # fmt: skip
    assert answer["phase"] == 1
    whole(home)


def spoken(home, *said):
    """Write a transcript of one turn that says `said` and is done, and return it with what a hook reads of it."""
    path = home.parent / "s1.jsonl"
    texts = ["Please move the service.", *said, "Decision: the port is 8001 because 8000 is taken."]
    lines = [
        {
            "type": "assistant" if number else "user", "sessionId": "s1", "timestamp": "2026-03-01T10:15:00.000Z",
            "uuid": f"00000000-0000-4000-8000-{number:012}",
            "message": {"id": f"m{number}", "role": "assistant" if number else "user", "content": text},
        }
        for number, text in enumerate(texts)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path, said_in(str(path), message=texts[-1]), texts


CHOSE = "We chose SQLite over Postgres because there is one writer. It is one process on one machine and will stay so, as the plan of the year says in its second part, on page three."
FOUND = "The build failed because the compiler in CI is too old. The image of the runners is two years old, and nobody may change it before the end of the month, says the team that owns them."


def test_a_statement_is_noted_once_from_either_source(home):
    path, said, texts = spoken(home, CHOSE, "Let me look at the rest.", FOUND)
    asked, stop = (
        entry("UserPromptSubmit", prompt=texts[0]),
        entry("Stop", message=texts[-1], said=said, prompt_id="p1"),
    )

    found = taken(home, asked, stop, stop, entry("PreCompact", trigger="manual", said=said), stop)

    assert found == [texts[0], CHOSE, "Let me look at the rest.", FOUND, texts[-1]]
    done = aether.import_transcripts([path], home=home)
    assert (done.items, done.known) == (0, 5)


def test_a_statement_before_a_compaction_is_noted_once_by_the_continued_turn(home):
    _, said, texts = spoken(home, CHOSE, "Let me look at the rest.", FOUND)
    stop = entry("Stop", message=texts[-1], said=said, prompt_id="p1")

    found = taken(home, entry("PreCompact", trigger="auto", said=said[:2]), entry("PostCompact"), stop)

    assert found == [CHOSE, "Let me look at the rest.", FOUND, texts[-1]]


def test_a_prompt_typed_during_a_turn_is_a_request(home):
    typed = {"text": "Always run the linter before you commit.", "uuid": "u7", "by": "user"}

    assert typed["text"] in taken(home, entry("Stop", message="Done with all of it.", said=[typed]))
    assert typed["text"] not in taken(home, entry("UserPromptSubmit", prompt=typed["text"], prompt_id="p9"))


def test_notes_bear_the_phase_that_the_colony_is_in(home):
    start_phase(4, home=home)

    taken(home, *turn(1))

    assert {item["metadata"]["phase"] for item in held(home)} == {4}


def test_an_event_that_is_delivered_twice_is_noted_once(home):
    one, call, stop = turn(1)
    batch = entry("PostToolBatch", calls=[{name: call[name] for name in ("tool", "input", "output", "id")}])

    found = taken(home, one, one, call, batch, call, stop, stop)

    assert found == taken_alone(home, turn(1))
    assert taken(home, *turn(1)) == []


def taken_alone(home, entries):
    other = homes.fresh(home.parent / "other")
    return taken(other, *entries)


def test_the_same_words_in_another_turn_make_another_note_also_without_ids(home):
    said = entry("UserPromptSubmit", prompt="Always run the linter first.")
    done = entry("Stop", message="Done.")

    taken(home, said, said, done, done)
    session = find_session(home, "s1")
    taken(home, said, done)

    assert len(session["seen"]) == 2
    assert len(find_session(home, "s1")["seen"]) == 4


def test_words_of_a_later_turn_are_the_same_note_at_its_later_time(home):
    rule, dropped = "Never use mocks in the tests.", "The rule about mocks is dropped."
    taken(
        home,
        entry("UserPromptSubmit", prompt=rule, prompt_id="p1"),
        entry("UserPromptSubmit", prompt=dropped, prompt_id="p2"),
    )

    again = entry("UserPromptSubmit", prompt=rule, prompt_id="p3")
    taken(home, again, again)
    taken(home, again)

    assert contents(home) == [dropped, rule]
    metadata = held(home)[1]["metadata"]
    assert (metadata["count"], len(metadata["places"])) == (2, 1)
    assert rule in [line["text"] for line in briefing.brief(home)["lines"]]
    whole(home)


def test_draining_entry_by_entry_gives_the_same_as_all_at_once(home):
    entries = [*turn(1), *turn(2, "s2"), *turn(3)]
    apart = [text for each in entries for text in taken(home, each)]

    assert sorted(apart) == sorted(taken_alone(home, entries))


def test_a_failure_is_noted_with_what_fixed_it_in_a_later_turn(home):
    first, _, stop = turn(1)
    found = taken(home, first, called(1, "make test", "Exit code 2\nmain.c:3: error: x", failed=True), stop)

    assert not any("failed" in text for text in found)
    assert "`make test` failed: main.c:3: error: x\nWorked when run again: 3 passed" in taken(
        home, called(2, "make test", "3 passed"), turn(2)[2]
    )


def test_a_failure_that_nothing_fixed_is_noted_when_the_session_ends(home):
    taken(home, called(1, "make test", "main.c:3: error: x", failed=True), turn(1)[2])

    assert taken(home, entry("SessionEnd", reason="other")) == ["`make test` failed: main.c:3: error: x"]


def test_a_sub_agents_work_is_its_castes(home):
    worker = {"agent": "a1", "caste": "Explore"}
    found = taken(
        home,
        called(1, "make docs", "built 3 files", **worker),
        entry(
            "SubagentStop", **worker, task_text="Build the docs.",
            message="Decision: the docs are built with make because it is on every machine.",
        ),
    )  # fmt: skip

    assert sorted(found) == [
        "Decision: the docs are built with make because it is on every machine.",
        "Ran `make docs`: built 3 files",
    ]
    assert {(item["metadata"]["source"], item["metadata"]["caste"]) for item in held(home)} == {
        ("worker_ant", "Explore")
    }
    state = find_session(home, "s1")["state"]
    assert "a1" not in state["turns"]


def test_what_git_says_at_the_end_of_a_turn_is_one_item_that_holds_the_newest(home, tmp_path):
    git("init -q -b trunk", tmp_path)
    (tmp_path / "a b.py").write_text("x = 1\n")
    place = {"directory": str(tmp_path)}

    def trees():
        return [item for item in held(home) if item["metadata"].get("role") == "tree"]

    taken(home, entry("Stop", message="Wrote it.", prompt_id="p1", **place))
    [first] = trees()
    git("add .", tmp_path)
    git("-c user.name=a -c user.email=a@b.c commit -qm first", tmp_path)
    taken(home, entry("Stop", message="Committed it.", prompt_id="p2", **place))
    [second] = trees()
    revision = aether.get_memory_status(home=home)
    taken(home, entry("SessionStart", source="startup", **place))

    assert "a b.py" in first["metadata"]["fact"]["names"]
    assert (first["type"], first["metadata"]["evidence"], first["metadata"]["project"]) == (
        "observation", "machine", str(tmp_path),
    )  # fmt: skip
    assert first["id"] == second["id"]
    fact = second["metadata"]["fact"]
    assert (fact["kind"], fact["branch"], fact["subject"], fact["names"]) == ("branch", "trunk", "first", [])
    assert second["content"] == fact_text(fact)
    assert trees() == [second]
    assert aether.get_memory_status(home=home) == revision


def git(words, place):
    ignored = place / ".gitignore"
    ignored.write_text("*\n!*.py\n")
    subprocess.run(["git", *words.split()], cwd=place, check=True, capture_output=True)


def test_a_completed_task_is_noted(home):
    assert taken(home, entry("TaskCompleted", task="7", subject="The parser")) == [
        "Task completed: The parser"
    ]


def test_a_compaction_ends_the_stretch_of_work(home):
    assert taken(home, called(1, "make", "ok"), entry("PreCompact"), entry("PostCompact")) == [
        "Ran `make`: ok"
    ]


@pytest.mark.parametrize(
    "own",
    [
        called(1, "aether remember 'Use tabs.'", "stored", failed=True),
        called(1, "cd app && AETHER_HOME=x python3 -m aether status", "failed", failed=True),
        entry(
            "PostToolUse", tool="mcp__aether__create_entities", input={"a": "b"}, output="Use tabs.", id="t"
        ),
        entry(
            "PostToolUse", tool="mcp__plugin_aether_memory__add", input={"a": "b"}, output="Use tabs.", id="t"
        ),
        entry("PostToolUse", tool="memory", input={"command": "create", "path": "/memories/a.md"}, id="t"),
        entry("UserPromptSubmit", prompt="/aether:remember Always use tabs.", prompt_id="p"),
        entry("UserPromptSubmit", prompt="<aether-memory>Always use tabs.</aether-memory>", prompt_id="p"),
    ],
)
def test_queries_to_aether_and_its_answers_are_not_stored(own, home):
    assert taken(home, own, entry("SessionEnd")) == []


def test_a_project_that_bears_the_name_is_captured(home):
    assert taken(home, called(1, "cd /srv/aether && make test", "3 passed"), entry("SessionEnd")) != []


def test_sessions_are_kept_apart_and_known(home):
    put(home, entry("SessionStart", "s1", source="startup"), *turn(1), *turn(2, "../../s2"))

    drain_drain(home)

    one, other = find_session(home, "s1"), find_session(home, "../../s2")
    assert (one["first_source"], other["first_source"]) == ("startup", "unknown")
    assert one["revision"] == other["revision"] == homes.reopened(home).revision
    assert find_session(home, "s3") is None
    assert len(list((home / "hooks" / "sessions").iterdir())) == 2


def test_starting_a_session_again_is_not_hearing_of_it(home):
    taken(home, entry("SessionStart", source="startup"), *turn(1))
    before = find_session(home, "s1")
    homes.add(home, "another")

    taken(home, {**entry("SessionStart", source="resume"), "at": "2026-03-02T10:15:00.000000Z"})

    after = find_session(home, "s1")
    assert [after[name] for name in ("first_source", "at", "revision")] == [
        before[name] for name in ("first_source", "at", "revision")
    ]
    taken(home, {**turn(2)[0], "at": "2026-03-02T10:16:00.000000Z"})
    assert find_session(home, "s1")["at"] == "2026-03-02T10:16:00.000000Z"
    assert find_session(home, "s1")["revision"] == homes.reopened(home).revision


@pytest.mark.parametrize("data", [b"{torn", b"[]", b"{}", b"\xff", b"[" * 100_000])
def test_a_broken_session_file_is_as_good_as_none(data, home):
    taken(home, turn(1)[0])
    [path] = (home / "hooks" / "sessions").iterdir()
    path.write_bytes(data)

    assert find_session(home, "s1") is None
    assert len(taken(home, *turn(2))) == 3


def test_a_state_of_another_shape_costs_no_entry(home):
    taken(home, *turn(1))
    [path] = (home / "hooks" / "sessions").iterdir()
    path.write_text(json.dumps({**find_session(home, "s1"), "state": {"file": "s1.jsonl"}}))

    assert len(taken(home, *turn(2))) == 3
    assert not (home / "quarantine").exists()


def test_sessions_that_nobody_resumes_are_forgotten(home):
    taken(home, *turn(1))
    [old] = (home / "hooks" / "sessions").iterdir()
    os.utime(old, (0, 0))

    taken(home, *turn(2, "s2"))

    assert find_session(home, "s1") is None
    assert find_session(home, "s2") is not None


def test_the_log_of_what_cannot_be_stored_does_not_grow_for_ever(home, monkeypatch):
    def senseless(given):
        raise TypeError(given["message"])

    monkeypatch.setattr("aether.messages.sources.claude_code.hook_records", senseless)
    monkeypatch.setattr(spool, "MOST_BYTES", 1)

    for _ in range(3):
        taken(home, entry("Stop", message="password=hunter2secret"))

    logs = [path.read_text() for path in sorted(home.glob("hook.log*"))]
    assert [log.count(" drain - TypeError: ") for log in logs] == [1, 1]
    assert "hunter2secret" not in "".join(logs)


def test_malformed_entries_are_quarantined_and_the_others_stored(home, monkeypatch):
    real = claude_code.hook_records

    def senseless(given):
        if given["event"] == "Odd":
            raise TypeError("a list is no text")
        return real(given)

    monkeypatch.setattr("aether.messages.sources.claude_code.hook_records", senseless)

    assert len(taken(home, turn(1)[0], entry("Odd"), *turn(1)[1:])) == 3
    [kept] = (home / "quarantine").iterdir()
    assert json.loads(kept.read_bytes())["event"] == "Odd"
    assert "TypeError: a list is no text. Kept in quarantine/" in (home / "hook.log").read_text()


def test_an_entry_that_is_not_json_is_quarantined(home):
    put(home, *turn(1))
    (home / "hooks" / "spool" / "00-bad.json").write_bytes(b"{torn")

    done = drain_drain(home)

    assert done.left == ""
    assert spool.waiting(str(home)) == []
    assert len(contents(home)) == 3
    assert [path.name for path in (home / "quarantine").iterdir()] == ["spool-00-bad.json"]


def test_notes_that_cannot_be_stored_are_kept_aside_and_the_others_stored(home):
    limits(home, capacity=60)
    asked = entry(
        "UserPromptSubmit", prompt="Please " + "rename the port of the service. " * 40, prompt_id="p0"
    )

    assert len(taken(home, asked, *turn(1))) == 3
    [kept] = (home / "quarantine").iterdir()
    assert json.loads(kept.read_bytes())["content"].startswith("Please rename")
    assert "do not fit into a working memory of 60." in (home / "hook.log").read_text()


def test_more_notes_than_working_memory_holds_at_once_are_stored_in_parts(home):
    limits(home, capacity=120)

    drain_all(home, *[each for number in range(8) for each in turn(number)])

    assert notes_of(home).total() == 24
    whole(home)


def drain_all(home, *entries):
    """Put `entries`, and take them in without a rest."""
    put(home, *entries)
    assert drain_drain(home).left == ""
    assert spool.waiting(str(home)) == []


def test_entries_that_were_stored_but_not_removed_are_not_drained_twice(home, monkeypatch):
    names = put(home, *turn(1))
    monkeypatch.setattr(spool, "remove", lambda home, names: None)
    drain_drain(home)
    monkeypatch.undo()
    put(home, *turn(2))
    seen = find_session(home, "s1")["seen"]

    drain_drain(home)
    assert find_session(home, "s1")["seen"][: len(seen)] == seen
    assert set(names) < set(find_session(home, "s1")["done"])
    assert len(contents(home)) == 6


def test_a_backlog_is_drained_batch_by_batch(home, monkeypatch):
    monkeypatch.setattr(drain, "BATCH_ENTRIES", 4)
    revision = homes.reopened(home).revision

    drain_all(home, *[each for number in range(4) for each in turn(number)])

    assert len(contents(home)) == 12
    assert homes.reopened(home).revision == revision + 3


def test_a_full_memory_opens_a_hand_off(home):
    limits(home, capacity=100)

    drain_all(home, *turn(1), *turn(2))

    [opened] = memory(home)["compression"]["open"]
    assert handoffs.handoff_path(home, opened).exists()


@pytest.mark.parametrize("lock", ["hooks", "."])
def test_where_another_holds_a_lock_the_spool_stays(lock, home):
    put(home, *turn(1))
    with locked(home / lock):
        done = drain_drain(home, patience=0.01)

    assert "held by" in done.left
    assert (len(spool.waiting(str(home))), contents(home)) == (3, [])
    assert drain_drain(home).left == ""
    assert len(contents(home)) == 3


def test_a_broken_home_keeps_its_spool(home):
    put(home, *turn(1))
    (home / "config.toml").write_text("what = ever")
    assert drain_drain(home).left == ""
    put(home, *turn(2))
    (home / "data" / "journal.jsonl").write_bytes(log.seal_json({"journal": 99, "base": 0}))

    done = drain_drain(home)

    assert done.left
    assert len(spool.waiting(str(home))) == 3


def test_an_entry_that_only_another_user_may_read_waits_for_that_one(home, monkeypatch):
    _mine, theirs = put(home, turn(1)[0], turn(2)[0])
    real = spool.get
    monkeypatch.setattr(spool, "get", lambda home, name: None if name == theirs else real(home, name))
    monkeypatch.setattr(os, "access", lambda path, mode: False)

    done = drain_drain(home)

    assert len(contents(home)) == 1
    assert "another user" in done.left
    assert spool.waiting(str(home)) == [theirs]


def test_an_entry_that_cannot_be_read_now_is_waited_for(home, monkeypatch):
    put(home, *turn(1))
    monkeypatch.setattr(spool, "get", lambda home, name: None)
    assert "cannot be read" in drain_drain(home).left
    monkeypatch.undo()

    assert drain_drain(home).left == ""
    assert len(contents(home)) == 3


def test_an_entry_that_another_process_removed_is_skipped(home, monkeypatch):
    put(home, *turn(1))
    removed = spool.waiting(str(home))
    spool.remove(str(home), removed)
    monkeypatch.setattr(spool, "waiting", lambda home: removed)

    assert drain_drain(home).left == ""
    assert contents(home) == []


def test_a_session_file_that_cannot_be_read_now_is_waited_for(home, monkeypatch):
    taken(home, *turn(1))
    put(home, *turn(2))

    def broken(path, most=0):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(regular, "read", broken)
    assert find_session(home, "s1") is None
    drain_drain(home)
    monkeypatch.undo()
    assert (len(spool.waiting(str(home))), len(contents(home))) == (3, 3)
    assert drain_drain(home).left == ""
    assert (spool.waiting(str(home)), len(contents(home))) == ([], 6)


def test_a_directory_that_is_no_home_keeps_its_spool(tmp_path):
    put(tmp_path, *turn(1))

    assert "is not a home" in drain_drain(tmp_path).left
    assert len(spool.waiting(str(tmp_path))) == 3


def test_a_full_disk_loses_nothing(home, monkeypatch):
    put(home, *turn(1))

    def full(path, data, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(hook_sessions, "write_whole", full)
    done = drain_drain(home)
    monkeypatch.undo()

    assert "No space left" in done.left
    assert len(contents(home)) == 3  # they had been stored before the disk was full
    assert drain_drain(home).left == ""
    assert len(contents(home)) == 3


def test_whoever_opens_the_home_takes_in_first(home):
    put(home, *turn(1))
    assert len(aether.list_working_memory_items(home=home)) == 3
    put(home, *turn(2))
    aether.add_working_memory_item("Use tabs.", "preference", home=home)
    put(home, *turn(3))
    aether.update_working_memory_item(held(home)[0]["id"], {"type": "decision"}, home=home)

    assert spool.waiting(str(home)) == []
    assert len(contents(home)) == 10


def test_a_failure_to_take_in_is_waited_for_once_and_hurts_nobody(home, monkeypatch):
    waits = []
    real = drain.locked

    def waiting(path, *, timeout):
        waits.append(timeout)
        return real(path, timeout=0)

    monkeypatch.setattr(drain, "locked", waiting)
    put(home, *turn(1))
    with locked(home / "hooks"):
        assert aether.list_working_memory_items(home=home) == []
        assert aether.list_working_memory_items(home=home) == []
    assert len(aether.list_working_memory_items(home=home)) == 3
    put(home, *turn(2))
    read(home)

    assert waits == [0.5, 0, 0, 0.5]


def test_a_phase_is_completed_where_an_agent_says_so_and_what_follows_is_of_the_next(home):
    start_phase(2, name="parser", home=home)
    stop = entry(
        "Stop", prompt_id="p1", message='All passes.\n\nPhase 2 complete\n\naether: start phase 3 "importer"'
    )

    taken(home, *turn(1)[:2], stop, *turn(2))

    state = read(home).documents["COLONY_STATE"]["colony_status"]
    assert (state["current_phase"], state["phases_completed"], state["state"]) == (3, [2], "EXECUTING")
    phase_of = {item["content"]: item["metadata"]["phase"] for item in held(home)}
    assert phase_of["Ran `make service-1`: service 1 passed"] == 2
    assert phase_of["Ran `make service-2`: service 2 passed"] == 3


@pytest.mark.parametrize(
    "line", ["Phase 3 complete", "Phase 1 complete", "aether: start phase 3", "aether: start phase 2"]
)
def test_a_line_about_another_phase_changes_nothing(line, home):
    start_phase(2, home=home)
    before = read(home).documents["COLONY_STATE"]

    taken(home, entry("Stop", message=line))

    assert read(home).documents["COLONY_STATE"] == before


def test_a_sub_agent_completes_no_phase(home):
    start_phase(2, home=home)

    taken(home, entry("SubagentStop", agent="a1", caste="Explore", message="Phase 2 complete"))

    assert read(home).documents["COLONY_STATE"]["colony_status"]["phases_completed"] == []


def test_a_phase_that_somebody_changes_at_the_same_time_is_left_to_them(home, monkeypatch):
    def changed(*given, **more):
        raise InvalidInput("phase 3 is still EXECUTING.", fix="Complete it first.")

    monkeypatch.setattr(phases, "start_phase", changed)

    taken(home, entry("Stop", message="aether: start phase 4"))

    assert read(home).documents["COLONY_STATE"]["colony_status"]["current_phase"] is None


def transcript(path, number=1):
    """Write what Claude Code writes about `turn(number)`."""
    prompt, call, stop = turn(number)
    head = {"sessionId": "s1", "timestamp": "2026-03-01T10:15:00.000Z"}
    blocks = [
        ("user", prompt["prompt"]),
        ("assistant", [{"type": "tool_use", "id": call["id"], "name": "Bash", "input": call["input"]}]),
        ("user", [{"type": "tool_result", "tool_use_id": call["id"], "content": call["output"]}]),
        ("assistant", [{"type": "text", "text": stop["message"]}]),
    ]
    lines = [
        {**head, "type": who, "uuid": f"u{number}-{at}", "message": {"role": who, "content": content}}
        for at, (who, content) in enumerate(blocks)
    ]
    with Path(path).open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    return path


def test_importing_the_transcript_afterwards_adds_nothing(home, tmp_path):
    taken(home, *turn(1))

    done = aether.import_transcripts([transcript(tmp_path / "s1.jsonl")], home=home)

    assert (done.items, done.known) == (0, 3)


def test_importing_after_compression_adds_nothing_either(home, tmp_path):
    taken(home, *turn(1))
    aether.compress(1, home=home)

    assert aether.import_transcripts([transcript(tmp_path / "s1.jsonl")], home=home).items == 0


@pytest.mark.parametrize("compressed", [False, True])
def test_notes_of_an_import_are_not_stored_again_by_hooks(compressed, home, tmp_path):
    aether.import_transcripts([transcript(tmp_path / "s1.jsonl")], home=home)
    if compressed:
        aether.compress(1, home=home)

    assert taken(home, *turn(1)) == []
    assert len(taken(home, *turn(2))) == 3


@pytest.mark.parametrize("index", ["whole", "behind", "none", "damaged", "of another archive"])
@pytest.mark.parametrize("name", ["s1.jsonl", "a copy.jsonl"])
def test_a_long_archive_is_compared_through_its_index_as_if_it_was_read(
    index, name, home, tmp_path, monkeypatch
):
    def archive(place, text, *, indexed=True):
        homes.add(place, text)
        aether.compress(1, home=place)
        if indexed:
            aether.search_memory(text, home=place)

    archive(home, "one", indexed=index != "none")
    taken(home, *turn(2, "s0"))
    aether.import_transcripts([transcript(tmp_path / name)], home=home)
    archive(home, "two", indexed=index in ("whole", "damaged"))
    file = home / "index.sqlite"
    if index == "damaged":
        file.write_bytes(b"no index")
    if index == "of another archive":
        archive(homes.fresh(tmp_path / "other"), "else")
        file.write_bytes((tmp_path / "other" / ".aether" / "index.sqlite").read_bytes())
    twin = tmp_path / "twin" / ".aether"
    shutil.copytree(home, twin)
    scanned = taken(twin, *turn(1), *turn(2, "s0"))
    count, records_read = record_files.records, []
    monkeypatch.setattr(dedupe, "SCANNED_BYTES", 0)
    monkeypatch.setattr(
        record_files, "records",
        lambda *where, **how: (records_read.append(record) or record for record in count(*where, **how)),
    )  # fmt: skip

    assert taken(home, *turn(1), *turn(2, "s0")) == scanned
    assert (scanned == []) is (name == "s1.jsonl")
    assert (records_read == []) is (index == "whole" or scanned != [])


def started(home, source):
    """Put the start of session s1, and drain it as the hook of that start does."""
    put(home, entry("SessionStart", "s1", source=source))
    assert hook_sessions.store_starts(home, "s1")


@pytest.mark.parametrize(("source", "searched"), [("startup", False), ("clear", False), ("resume", True)])
def test_the_first_turn_of_a_new_session_is_not_sought_in_an_older_archive(source, searched, home):
    homes.add(home, "an older item")
    aether.compress(1, home=home)
    started(home, source)

    assert (find_session(home, "s1")["archive_read"] == -1) is searched
    assert len(taken(home, *turn(1))) == 3


def test_a_start_that_is_drained_later_says_nothing_of_the_archive(home):
    put(home, entry("SessionStart", "s1", source="startup"))
    drain_drain(home)

    assert find_session(home, "s1")["archive_read"] == -1


@pytest.mark.parametrize("after", ["start", "first drain of another start"])
def test_what_is_imported_and_compressed_after_a_start_is_not_stored_again(after, home, tmp_path):
    homes.add(home, "an older item")
    aether.compress(1, home=home)
    if after == "start":
        started(home, "startup")
    else:
        put(home, *turn(1, "s0"), entry("SessionStart", "s1", source="startup"))
        drain_drain(home, started="s1")
    assert find_session(home, "s1")["archive_read"] > 0
    aether.import_transcripts([transcript(tmp_path / "s1.jsonl")], home=home)
    aether.compress(1, home=home)

    assert taken(home, *turn(1)) == []


def test_the_same_words_in_another_transcript_are_another_note(home, tmp_path):
    taken(home, *turn(1))

    assert aether.import_transcripts([transcript(tmp_path / "s2.jsonl")], home=home).items == 3


@pytest.mark.slow
@pytest.mark.real_data
def test_hooks_note_of_real_sessions_what_an_import_notes(tmp_path):
    """What is said between two calls is read from the transcript; an import adds next to nothing."""
    files = sorted((DATA / "claude_code").glob("*.jsonl")) if DATA.is_dir() else []
    if not files:
        pytest.skip("no real transcripts beside this clone")
    of_hooks = of_both = of_import = of_tools = added_of_all = added_of_tools = 0
    for number, file in enumerate(sorted(files, key=lambda path: path.stat().st_size)[:MOST_FILES]):
        one, other = homes.fresh(tmp_path / f"a{number}"), homes.fresh(tmp_path / f"b{number}")
        (room := tmp_path / f"room{number}").mkdir()
        reported = (payload | speech_in(payload) for payload in payloads(file, room))
        put(one, *filter(None, map(entry_of, reported)))
        assert drain_drain(one).left == ""
        by_hooks, by_import = notes_of(one), Counter()
        aether.import_transcripts([file], home=other)
        by_import = notes_of(other)
        aether.import_transcripts([file], home=one)
        # The reasons of edits are said before a call: only a transcript has them.
        added = Counter(
            {note: n for note, n in (notes_of(one) - by_hooks).items() if note[0] != "observation"}
        )
        of_hooks += by_hooks.total()
        of_both += (by_hooks & by_import).total()
        of_import += by_import.total()
        added_of_all += added.total()
        of_tools += sum(count for (kind, _), count in by_import.items() if kind in TOLD)
        added_of_tools += sum(count for (kind, _), count in added.items() if kind in TOLD)

    assert of_both >= 0.95 * of_hooks
    assert added_of_all <= 0.05 * of_import
    assert added_of_tools <= 0.02 * of_tools


def notes_of(home):
    """Return what is noted, in working memory and archived."""
    found = homes.reopened(home)
    removed = (record["item"] for _, record in record_files.records(found, "items"))
    items = (*found.documents["memory"]["working_memory"]["items"], *removed)
    # The words of an imported conversation are kept for search only.
    return Counter((item["type"], item["content"]) for item in items if item["type"] != "history")


def test_entries_put_during_a_drain_are_not_lost(home):
    numbers = range(6)
    threads = [
        threading.Thread(
            target=lambda number=number: (put(home, *turn(number, f"s{number}")), drain_drain(home))
        )
        for number in numbers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    drain_drain(home)

    assert len(contents(home)) == len(set(contents(home))) == 18
    assert spool.waiting(str(home)) == []


def test_the_home_is_sound_afterwards(home):
    taken(home, *turn(1))

    assert [one for one in doctor.examine(home) if one.level in ("error", "warning")] == []
    assert list(files.leftover_temps(home)) == []


SUMMARY = "<summary>The service moved to port 8001. Its tests still fail on Windows; next comes the clock.</summary>"


def compacted(**more):
    return entry("PostCompact", trigger="auto", summary=SUMMARY, **more)


def summaries(home):
    return [one["summary"] for one in memory(home)["short_term_memory"]["sessions"]]


def test_a_summary_that_was_only_spooled_is_stored_with_what_came_before_it(home):
    put(home, *turn(1), compacted(), *turn(2))

    done = drain_drain(home)

    assert done.left == ""
    assert summaries(home) == [SUMMARY[9:-10]]
    assert [text for text in contents(home) if "service 1" in text] == []
    assert len([text for text in contents(home) if "service 2" in text]) == 3
    assert spool.waiting(str(home)) == []
    whole(home)


def test_a_summary_waits_while_another_writes_and_is_stored_once(home):
    put(home, *turn(1))
    drain_drain(home)
    put(home, compacted())
    with locked(home, timeout=5):
        left = drain_drain(home, patience=0.05).left

    assert "held by" in left
    assert len(spool.waiting(str(home))) == 1
    drain_drain(home)
    put(home, compacted())
    drain_drain(home)
    assert summaries(home) == [SUMMARY[9:-10]]
    assert spool.waiting(str(home)) == []


def test_a_summary_that_is_refused_is_logged_and_holds_nothing_up(home, monkeypatch):
    def refuse(*_, **__):
        raise InvalidInput("no good.", fix="Write another.", where="summary")

    monkeypatch.setattr(handoffs, "summary_change", refuse)
    put(home, compacted(), *turn(2))

    assert drain_drain(home).left == ""
    assert len(contents(home)) == 3
    assert "the summary of a compaction was refused" in (home / spool.NAME).read_text()


def speech_in(payload):
    name = payload["hook_event_name"]
    return event.speech_of(payload, name) if hook.EVENTS.get(name, hook.UNKNOWN).has_speech else {}


def test_an_entry_of_a_compaction_without_a_summary_is_no_more_than_a_boundary(home):
    put(home, *turn(1), entry("PostCompact", summary=" "), entry("PostCompact", summary=7))

    assert drain_drain(home).left == ""
    assert summaries(home) == []

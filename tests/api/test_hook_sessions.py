"""Hook sessions: their state, their notes and the injected log."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from aether.api import admin as homes_injected_log
from aether.api import hook_sessions
from aether.api.hook_sessions import (
    MALFORMED_ERRORS,
    NO_REVISION,
    find_session,
    is_idle,
    open_session,
    phase_markers,
    ready_notes,
    write_session,
)
from aether.errors import StorageFailed
from aether.memory.phases import PhaseMarker
from aether.store import spool
from tests import homes
from tests.hook_player import called, entry, turn

IDLE = {"work": {"calls": {}, "failures": {}, "files": {}, "commands": {}}, "answer": None}


def known(home, session="s1", **more):
    return {**open_session(home, session), **more}


def test_an_unknown_session_starts_empty(home):
    assert find_session(home, "s1") is None
    assert open_session(home, "s1") == {
        "state": {}, "done": [], "seen": [], "first_source": "", "at": "", "revision": NO_REVISION, "archive_read": -1,
    }  # fmt: skip


@pytest.mark.parametrize("session", ["s1", "", "../../up", "a/b", "\ud800", "x" * 300, ".hidden", "Ü"])
def test_a_session_of_any_name_is_written_and_read(session, home):
    wanted = known(home, session, first_source="startup", seen=["a"], at="\ud800")

    write_session(home, session, wanted)

    assert find_session(home, session) == open_session(home, session) == wanted
    [path] = (home / "hooks" / "sessions").iterdir()
    assert path.suffix == ".json"
    assert find_session(home, f"{session}-") is None


@pytest.mark.parametrize("data", [b"{torn", b"[]", b"{}", b"\xff", b"[" * 100_000])
def test_a_malformed_session_file_counts_as_missing(data, home):
    write_session(home, "s1", known(home))
    [path] = (home / "hooks" / "sessions").iterdir()
    path.write_bytes(data)

    assert find_session(home, "s1") is None
    assert open_session(home, "s1")["revision"] == NO_REVISION


def test_a_session_file_that_cannot_be_read_now_raises(home):
    (home / "hooks" / "sessions" / "s1.json").mkdir(parents=True)

    assert find_session(home, "s1") is None
    with pytest.raises(OSError, match="directory"):
        open_session(home, "s1")


def test_old_sessions_are_removed_when_another_starts(home):
    write_session(home, "old", known(home))
    write_session(home, "young", known(home))
    os.utime(home / "hooks" / "sessions" / "old.json", (0, 0))
    write_session(home, "young", known(home))
    assert find_session(home, "old") is not None

    write_session(home, "new", known(home))

    assert find_session(home, "old") is None
    assert find_session(home, "young") is not None


@pytest.mark.parametrize(
    ("turns", "idle"),
    [
        ({}, True),
        ({"": IDLE}, True),
        ({"": {**IDLE, "answer": {"text": "Done.", "noted": True}}}, True),
        ({"": {**IDLE, "answer": {"text": "Done."}}}, False),
        ({"": {**IDLE, "work": {**IDLE["work"], "failures": {"$ make": {}}}}}, False),
        ({"": IDLE, "a1": IDLE}, False),
        ({"a1": IDLE}, False),
        ({"": {}}, False),
        ({"": 7}, False),
        ([7], False),
    ],
)
def test_idle_is_who_waits_for_nothing(turns, idle, home):
    assert is_idle(known(home, state={"turns": turns})) == idle


def test_a_session_without_a_state_is_idle(home):
    assert is_idle(known(home))


def test_reading_a_session_imports_none_of_the_rules_of_capture():
    code = "import aether.api.drain, sys; print(json.dumps(sorted(sys.modules)))"

    listed = subprocess.run(
        [sys.executable, "-c", f"import json; {code}"], capture_output=True, text=True, check=True,
        env=homes.plain_environment(),
    )  # fmt: skip

    assert {"aether.memory.capture.extract", "aether.messages.shell"}.isdisjoint(json.loads(listed.stdout))


def test_sessions_that_lead_elsewhere_are_neither_read_nor_written(tmp_path):
    home, other = tmp_path / "home", tmp_path / "other"
    write_session(other, "s", open_session(other, "s"))
    (home / "hooks").mkdir(parents=True)
    (home / "hooks" / "sessions").symlink_to(other / "hooks" / "sessions")

    with pytest.raises(OSError, match="leads elsewhere"):
        open_session(home, "s")
    with pytest.raises(OSError, match="leads elsewhere"):
        write_session(home, "t", open_session(other, "s"))
    assert [path.name for path in (other / "hooks" / "sessions").iterdir()] == ["s.json"]


def test_a_session_file_that_is_a_link_is_replaced(tmp_path):
    known = open_session(tmp_path, "s")
    write_session(tmp_path, "t", {**known, "at": "then"})
    place = tmp_path / "hooks" / "sessions"
    (place / "s.json").symlink_to(place / "t.json")

    assert open_session(tmp_path, "s")["at"] == ""
    write_session(tmp_path, "s", known)
    assert open_session(tmp_path, "t")["at"] == "then"
    assert not (place / "s.json").is_symlink()


@pytest.fixture
def session(home):
    return open_session(home, "s1")


def contents(session, *entries, phase=1):
    return [draft["content"] for each in entries for draft in ready_notes(session, each, phase=phase)]


def test_an_entry_yields_the_notes_that_are_ready(session):
    request, call, stop = turn(1)

    assert contents(session, request) == ["Please move service 1 to port 8001."]
    assert contents(session, call) == []
    assert contents(session, stop) == [
        "Ran `make service-1`: service 1 passed",
        "Decision: service 1 of s1 listens on port 8001 because the other one is taken.",
    ]


def test_repeated_lines_of_injected_memory_make_no_note(session):
    reported = ["- 2026-11-21 Never retry the webhook, because the shop sends it again."]
    pasted = entry("UserPromptSubmit", prompt=reported[0], prompt_id="p1")
    quoted = entry("Stop", message=f"I know this:\n{reported[0]}\nThe port of the shop is 8001 now.")

    assert ready_notes(session, pasted, phase=1, injected=reported) == []
    assert [draft["content"] for draft in ready_notes(session, quoted, phase=1, injected=reported)] == [
        "The port of the shop is 8001 now."
    ]


def test_a_note_says_that_hooks_brought_it_in_which_phase_and_of_which_transcript(session):
    [draft] = ready_notes(session, turn(1)[0], phase=7)

    assert draft["metadata"]["phase"] == 7
    pointer = draft["metadata"]["pointer"]
    assert (pointer["file"], pointer["via"], pointer["uuid"], "line" in pointer) == (
        "s1.jsonl", "hooks", "prompt/p1", False,
    )  # fmt: skip
    [later] = ready_notes(session, turn(2)[0], phase=8)
    assert later["metadata"]["phase"] == 8


def test_the_list_of_seen_records_is_bounded(session, monkeypatch):
    monkeypatch.setattr(hook_sessions, "SEEN_KEPT", 5)

    contents(session, *[each for number in range(9) for each in turn(number)])

    assert len(session["seen"]) == 5


def test_calls_without_an_id_that_come_twice_at_once_are_one(session):
    call = called(1, "make", "3 passed")
    del call["id"]

    assert contents(session, call, call, entry("SessionEnd")) == ["Ran `make`: 3 passed"]
    assert (
        contents(session, called(2, "ls"), call, entry("SessionEnd")) == []
    )  # its text was noted a moment ago
    assert len(session["seen"]) == 6


def test_a_transcript_is_remembered_where_an_entry_names_none(session):
    contents(session, turn(1)[0])
    nameless = turn(2)[0]
    del nameless["transcript"]

    [draft] = ready_notes(session, nameless, phase=1)

    assert draft["metadata"]["pointer"]["file"] == "s1.jsonl"


def test_a_state_of_another_shape_is_replaced(session):
    session["state"] = {"file": "s1.jsonl", "what": "is this"}

    assert len(contents(session, *turn(1))) == 3
    assert session["state"]["turns"]


def test_a_malformed_entry_leaves_the_session_unchanged(session, monkeypatch):
    contents(session, *turn(1)[:2])
    before = dict(session)

    def senseless(given):
        raise KeyError("what")

    monkeypatch.setattr("aether.messages.sources.claude_code.hook_records", senseless)
    with pytest.raises(MALFORMED_ERRORS):
        ready_notes(session, entry("Odd"), phase=1)
    monkeypatch.undo()

    assert session == before
    assert len(contents(session, turn(1)[2])) == 2


def test_only_the_end_of_the_main_conversations_turn_changes_the_phase():
    assert phase_markers(entry("Stop", message="Phase 2 complete")) == [PhaseMarker("complete", 2)]
    assert phase_markers(entry("SubagentStop", message="Phase 2 complete")) == []
    assert phase_markers(entry("Stop", message=None)) == []


@pytest.fixture
def place(tmp_path):
    return homes_injected_log.init(tmp_path / ".aether")


def test_a_session_has_a_file_of_its_own_whatever_its_name(place):
    hook_sessions.record_injected(place, "a", ["x"])
    hook_sessions.record_injected(place, "../a", ["y"])
    hook_sessions.start_injected(place, "b", ["z"])

    assert [hook_sessions.read_injected(place, name) for name in ("a", "../a", "b", "c")] == [
        ["x"],
        ["y"],
        ["z"],
        [],
    ]
    assert len(list((place / "hooks" / "injected").glob("*.json"))) == 3


def test_only_the_newest_sessions_are_kept(place, monkeypatch):
    monkeypatch.setattr(hook_sessions, "INJECTED_KEPT", 2)

    for number, name in enumerate("abc"):
        hook_sessions.start_injected(place, name)
        os.utime(place / "hooks" / "injected" / f"{name}.json", (number + 1, number + 1))
    hook_sessions.start_injected(place, "d")

    assert sorted(file.stem for file in (place / "hooks" / "injected").glob("*.json")) == ["c", "d"]


def test_links_to_other_directories_are_neither_read_nor_written(tmp_path):
    home, other = tmp_path / "home", tmp_path / "other"
    for place in (home, other):
        place.mkdir()
    hook_sessions.record_injected(other, "s", ["wm_1"])
    (home / "hooks").mkdir()
    (home / "hooks" / "injected").symlink_to(other / "hooks" / "injected")

    with pytest.raises(StorageFailed, match="leads elsewhere"):
        hook_sessions.record_injected(home, "t", ["wm_2"])
    assert hook_sessions.read_injected(home, "s") == []
    assert [path.name for path in (other / "hooks" / "injected").iterdir()] == ["s.json"]


def test_starts_that_wait_alone_are_stored_without_the_drain(home):
    names = [
        spool.put(str(home), {"event": "SessionStart", "session": session, "source": "startup", "at": "t"})
        for session in ("s1", "s2")
    ]

    assert hook_sessions.store_starts(home)

    assert spool.waiting(str(home)) == []
    known = hook_sessions.find_session(home, "s1")
    assert (known["first_source"], known["done"]) == ("startup", names[:1])

    spool.put(str(home), {"event": "SessionStart", "session": "s3", "source": "startup", "at": "t"})
    spool.put(str(home), {"event": "Stop", "session": "s3", "message": "Done.", "at": "t"})
    assert not hook_sessions.store_starts(home)
    assert len(spool.waiting(str(home))) == 2

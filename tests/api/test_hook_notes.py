import pytest

from aether.api import hook_sessions
from aether.api.hook_sessions import MALFORMED_ERRORS, open_session, phase_markers, ready_notes
from aether.memory.phases import PhaseMarker
from tests.hook_player import called, entry, turn


@pytest.fixture
def session(home):
    return open_session(home, "s1")


def contents(session, *entries, phase=1):
    return [draft["content"] for each in entries for draft in ready_notes(session, each, phase=phase)]


def test_an_entry_gives_the_notes_that_are_due_with_it(session):
    request, call, stop = turn(1)

    assert contents(session, request) == ["Please move service 1 to port 8001."]
    assert contents(session, call) == []
    assert contents(session, stop) == [
        "Ran `make service-1`: service 1 passed",
        "Decision: service 1 of s1 listens on port 8001 because the other one is taken.",
    ]


def test_what_the_session_was_told_is_not_noted_again_where_somebody_repeats_it(session):
    told = ["- 2026-11-21 Never retry the webhook, because the shop sends it again."]
    pasted = entry("UserPromptSubmit", prompt=told[0], prompt_id="p1")
    quoted = entry("Stop", message=f"I know this:\n{told[0]}\nThe port of the shop is 8001 now.")

    assert ready_notes(session, pasted, phase=1, told=told) == []
    assert [draft["content"] for draft in ready_notes(session, quoted, phase=1, told=told)] == [
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


def test_what_was_seen_is_bounded(session, monkeypatch):
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


def test_a_state_of_another_shape_is_begun_anew(session):
    session["state"] = {"file": "s1.jsonl", "what": "is this"}

    assert len(contents(session, *turn(1))) == 3
    assert session["state"]["turns"]


def test_an_entry_that_makes_no_sense_leaves_the_session_as_it_was(session, monkeypatch):
    contents(session, *turn(1)[:2])
    before = dict(session)

    def senseless(given):
        raise KeyError("what")

    monkeypatch.setattr(hook_sessions, "records", senseless)
    with pytest.raises(MALFORMED_ERRORS):
        ready_notes(session, entry("Odd"), phase=1)
    monkeypatch.undo()

    assert session == before
    assert len(contents(session, turn(1)[2])) == 2


def test_only_the_end_of_the_main_conversations_turn_changes_the_phase():
    assert phase_markers(entry("Stop", message="Phase 2 complete")) == [PhaseMarker("complete", 2)]
    assert phase_markers(entry("SubagentStop", message="Phase 2 complete")) == []
    assert phase_markers(entry("Stop", message=None)) == []

"""Threads: every moment of a conversation is in one turn, in the order of the conversation."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aether.memory.captured_threads import thread, thread_rows
from aether.memory.timeline import Moment
from aether.types import KIND_OF_TYPE

TYPES = st.sampled_from(["history", "user_input", "outcome", "code_change", "command", "error", "decision"])


@st.composite
def conversations(draw):
    moments = []
    for nth in range(draw(st.integers(0, 12))):
        kind = draw(TYPES)
        line = draw(st.integers(0, 6))
        moments.append(
            Moment(
                draw(st.sampled_from(["", "2026-03-01T10:00:00Z", "2026-03-01T10:05:00Z"])),
                KIND_OF_TYPE.get(kind, "note"),
                kind,
                draw(st.sampled_from(["Do it.", "Asked: Do it.\nDone.", "**Done**"])),
                f"said_x.{line}-{nth}.1" if kind == "history" else f"wm_{nth}",
                conversation=draw(st.sampled_from(["a", "b"])),
                pointer={"line": line} if line else {},
                speaker=draw(st.sampled_from(["person", "agent", "host", ""])) if kind == "history" else "",
            )
        )
    return moments


@given(conversations())
def test_each_moment_is_in_exactly_one_turn(moments):
    turns = thread(moments)

    shown = [name for turn in turns for name in (*turn.ids, *(note.id for note in turn.notes))]
    assert sorted(shown) == sorted(moment.id for moment in moments)
    assert all(turn.holds(name) for turn in turns for name in turn.ids)
    assert all(turn.speaker in ("person", "agent", "host") for turn in turns[1:])


@given(conversations())
def test_turns_are_in_the_order_of_time(moments):
    times = [turn.at for turn in thread(moments)]

    assert times == sorted(times)


@given(conversations())
def test_the_list_of_conversations_counts_every_moment(moments):
    rows = thread_rows(moments)

    assert sum(row.messages + row.notes for row in rows) == len(moments)
    assert {row.conversation for row in rows} == {moment.conversation for moment in moments}
    assert [row.last for row in rows] == sorted((row.last for row in rows), reverse=True)


def said(text, line, part=1, speaker="agent", at="2026-03-01T10:00:00Z"):
    return Moment(at, "note", "history", text, f"said_x.{line}-{part}.{part}", "a", pointer={"line": line}, speaker=speaker)  # fmt: skip


def test_the_parts_of_a_long_message_are_one_turn_and_notes_follow_their_message():
    change = Moment(
        "2026-03-01T10:00:00Z", "change", "code_change", "Changed a.py", "wm_1", "a", pointer={"line": 3}
    )
    turns = thread(
        [
            change,
            said("Second.", 3, 2),
            said("Asked: Do it.\nFirst.", 3, 1),
            said("Do it.", 1, speaker="person"),
        ]
    )

    assert [(turn.speaker, turn.text) for turn in turns] == [
        ("person", "Do it."),
        ("agent", "First.\n\nSecond."),
    ]
    assert [note.id for note in turns[1].notes] == ["wm_1"]


def test_without_passages_requests_and_results_are_the_messages():
    at = "2026-03-01T10:0{}:00Z"
    moments = [
        Moment(at.format(1), "request", "user_input", "Mend it.", "wm_1", "a"),
        Moment(at.format(2), "command", "command", "`make` passed", "wm_2", "a"),
        Moment(at.format(3), "result", "outcome", "Mended.", "wm_3", "a"),
    ]

    assert [(turn.speaker, turn.text, len(turn.notes)) for turn in thread(moments)] == [
        ("person", "Mend it.", 1),
        ("agent", "Mended.", 0),
    ]

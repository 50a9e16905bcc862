"""Transcript: what was said in the turn that runs, of files that lag, are torn, or are none."""

from __future__ import annotations

import json
import os
import threading
import time

import pytest

from aether.hosts.claude_code import transcript
from aether.hosts.claude_code.transcript import agent_task, interim_texts
from tests.tables import rows


def line(kind, content, number, **more):
    message = {"role": kind, "content": content}
    if kind == "assistant":
        message["id"] = f"msg_{number}"
    return {"type": kind, "uuid": f"u{number}", "timestamp": f"t{number}", "message": message, **more}


def asked(number, text="Please go on.", **more):
    return line("user", text, number, **more)


def reported(number, text, **more):
    return line("assistant", [{"type": "text", "text": text}], number, **more)


def called(number):
    use = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": "make"}}
    return line("assistant", [use], number)


def answered(number, text="ok"):
    return line(
        "user", [{"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": text}], number + 1
    )


def typed(number, text):
    about = {"type": "queued_command", "prompt": text}
    return {"type": "attachment", "uuid": f"u{number}", "timestamp": f"t{number}", "attachment": about}


def queued(operation, text=None):
    content = {} if text is None else {"content": text}
    return {"type": "queue-operation", "operation": operation, "timestamp": "t9", "sessionId": "s", **content}


def test_what_a_person_typed_meanwhile_is_found_in_the_queue(file):
    path = file(
        asked(1), reported(2, "First."), queued("enqueue", "No mocks."), called(3), answered(3),
        queued("remove"), reported(5, "Then."), queued("enqueue", "Later."),
    )  # fmt: skip

    assert [(one["text"], one.get("by"), one["uuid"]) for one in interim_texts(path)] == [
        ("First.", None, "u2"),
        ("No mocks.", "user", "queued/t9"),
        ("Then.", None, "u5"),
    ]


def test_a_queued_text_that_is_attached_too_is_found_once(file):
    path = file(
        asked(1),
        queued("enqueue", "No mocks."),
        queued("remove"),
        reported(2, "First."),
        typed(3, "No mocks."),
    )

    assert texts(path) == ["First.", "No mocks."]


@pytest.fixture
def file(tmp_path):
    """Return what writes lines to a transcript and returns its path."""

    def write(*lines):
        path = tmp_path / "s.jsonl"
        path.write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")
        return str(path)

    return write


def texts(path, **more):
    return [one["text"] for one in interim_texts(path, **more)]


def test_interim_texts_are_found_in_order_with_their_ids(file):
    path = file(
        asked(1), reported(2, "First."), called(3), answered(3), reported(5, "Then."), called(6), answered(6)
    )

    assert interim_texts(path, message="Done.") == [
        {"text": "First.", "uuid": "u2", "at": "t2", "id": "msg_2"},
        {"text": "Then.", "uuid": "u5", "at": "t5", "id": "msg_5"},
    ]


def test_earlier_turns_are_left_out(file):
    path = file(
        asked(1),
        reported(2, "Old."),
        called(3),
        answered(3),
        reported(5, "Done."),
        asked(6),
        reported(7, "New."),
    )

    assert texts(path) == ["New."]


def test_the_message_that_ends_the_turn_is_left_out_whether_or_not_it_is_written_yet(file):
    lines = [asked(1), reported(2, "On the way."), called(3), answered(3)]

    assert texts(file(*lines), message="All done.\n\nReally.") == ["On the way."]
    last = [
        reported(5, "All done.\n"),
        {**reported(6, "Really."), "message": {**reported(5, "Really.")["message"]}},
    ]
    assert texts(file(*lines, *last), message="All done.\n\nReally.") == ["On the way."]


def test_a_message_that_is_being_written_is_waited_for(file):
    path = file(asked(1), reported(2, "First."))
    whole = [asked(1), reported(2, "First."), reported(3, "We chose SQLite."), reported(4, "Done.")]
    writer = threading.Timer(0.1, lambda: file(*whole))
    writer.start()

    texts = [text["text"] for text in interim_texts(path, message="Done.")]

    writer.join()
    assert texts == ["First.", "We chose SQLite."]


def test_a_message_that_never_comes_is_not_waited_for_long(file):
    path = file(asked(1), reported(2, "First."))
    started = time.monotonic()

    assert [text["text"] for text in interim_texts(path, message="Done.")] == ["First."]
    assert transcript.LAG_SECONDS <= time.monotonic() - started < 5


def test_texts_of_an_interrupted_turn_belong_to_the_next_turn(file):
    broken = [
        asked(1),
        reported(2, "Half."),
        called(3),
        asked(4, "[Request interrupted by user for tool use]"),
    ]

    assert texts(file(*broken, asked(5), reported(6, "Whole."))) == ["Half.", "Whole."]
    assert texts(file(asked(7), reported(8, "Before."), *broken, asked(5), reported(6, "Whole."))) == [
        "Half.",
        "Whole.",
    ]


def test_a_text_typed_during_a_turn_is_by_the_user_and_ends_no_turn(file):
    path = file(asked(1), reported(2, "First."), typed(3, "Use tabs, please."), reported(4, "Then."))

    assert [(one["text"], one.get("by")) for one in interim_texts(path)] == [
        ("First.", None), ("Use tabs, please.", "user"), ("Then.", None),
    ]  # fmt: skip
    assert texts(file(asked(1), typed(3, "Use tabs.")), message="Use tabs.") == ["Use tabs."]


def test_texts_of_the_program_and_of_sub_agents_are_left_out(file):
    path = file(
        asked(1),
        reported(2, "Main."),
        reported(3, "Agent.", isSidechain=True, agentId="a1"),
        asked(4, "A task.", isSidechain=True, agentId="a1"),
        asked(5, "Stop hook feedback.", isMeta=True),
        reported(6, "API Error: overloaded", isApiErrorMessage=True),
        asked(7, "Summed up.", isCompactSummary=True),
        {"type": "system", "subtype": "compact_boundary", "uuid": "u8", "content": 'the "user"'},
    )

    assert texts(path) == ["Main."]
    assert texts(path, agent=True) == []


def test_a_sub_agents_own_file_is_all_its_own(file):
    mine = {"isSidechain": True, "agentId": "a1"}
    path = file(
        asked(1, "Find it.", **mine), reported(2, "It is near.", **mine), reported(3, "Found.", **mine)
    )

    assert texts(path, message="Found.", agent=True) == ["It is near."]
    assert texts(path) == []
    assert agent_task(path) == "Find it."


def test_duplicate_lines_count_once_and_lines_without_an_id_never(file):
    nameless = {**reported(3, "Nameless."), "uuid": None}

    assert texts(file(asked(1), reported(2, "Once."), reported(2, "Once."), nameless)) == ["Once."]


def test_two_texts_of_one_line_have_different_parts(file):
    both = line("assistant", [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}], 2)

    found = interim_texts(file(asked(1), both))

    assert [(one["text"], one.get("part")) for one in found] == [("One.", None), ("Two.", 1)]


def test_a_tools_result_that_reads_like_a_prompt_starts_no_turn(file):
    quoted = json.dumps([asked(1), reported(2, "x"), {"type": "tool_result"}])
    path = file(
        asked(1), reported(2, f"The file is {quoted}"), called(3), answered(3, quoted), reported(5, "Now.")
    )

    assert len(texts(path)) == 2


def test_torn_lines_and_strange_ones_are_passed_over(file, tmp_path):
    path = file(asked(1), reported(2, "Said."))
    strange = [b"[1]", b'{"type": "user"', b'{"x": "user"}', b"\xff\xfe", b'"user"', b"[" * 9_000 + b'"user"']
    with open(path, "ab") as out:
        out.write(b"\n".join([*strange, json.dumps(reported(3, "Torn")).encode()[:-20]]))

    assert texts(path) == ["Said."]


def test_of_a_very_long_turn_the_end_is_read(file, monkeypatch):
    monkeypatch.setattr(transcript, "MOST_BYTES", 4_000)
    monkeypatch.setattr(transcript, "_BLOCK_BYTES", 150)
    path = file(asked(1), *(reported(nth, f"Said {nth}.") for nth in range(2, 90)))

    found = texts(path)

    assert 10 < len(found) < 40
    assert found == [f"Said {nth}." for nth in range(90 - len(found), 90)]


def test_lines_longer_than_a_block_are_read_whole(file, monkeypatch):
    monkeypatch.setattr(transcript, "_BLOCK_BYTES", 64)

    assert texts(file(asked(1), reported(2, "a" * 999), reported(3, "ö" * 99))) == ["a" * 999, "ö" * 99]


def test_no_more_texts_than_the_limit_are_found(file, monkeypatch):
    monkeypatch.setattr(transcript, "MOST_TEXTS", 2)

    assert texts(file(asked(1), reported(2, "a"), reported(3, "b"), reported(4, "c"))) == ["b", "c"]


def test_without_a_transcript_there_are_no_texts(tmp_path):
    (tmp_path / "d.jsonl").mkdir()
    (tmp_path / "s.txt").write_text(json.dumps(reported(1, "Elsewhere.")))

    for name in ("", "none.jsonl", "d.jsonl", "s.txt", "nul\0.jsonl"):
        path = str(tmp_path / name) if name else ""
        assert interim_texts(path) == []
        assert agent_task(path) == ""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "s.jsonl")

    assert interim_texts(str(tmp_path / "s.jsonl")) == []
    assert agent_task(str(tmp_path / "s.jsonl")) == ""


@rows("first", ['{"message": {"role": "assistant", "content": "x"}}', "[1]", "{", "", "{}"])
def test_a_first_line_that_asks_nothing_is_no_task(tmp_path, first):
    (tmp_path / "s.jsonl").write_text(first)

    assert agent_task(str(tmp_path / "s.jsonl")) == ""

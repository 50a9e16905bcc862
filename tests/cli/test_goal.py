"""Goals by hand: set, worked on, decided, blocked, finished, and what is said of each."""

from __future__ import annotations

import json

from tests.cli.stage import shown


def test_a_goal_from_its_first_word_to_its_end(here, capsys):
    added = shown(capsys, "goal", "add", "Ship the parser", "--step", "Write it", "--step", "Test it")
    assert (added.out[:5], added.err) == ("goal_", "")
    assert shown(capsys, "goal", "next").out.splitlines() == ["Write it", "Test it"]

    step = shown(capsys, "goal", "done", "--step", "write it").out
    assert step == '"Ship the parser" is active, 50% of 2 steps.\n'
    shown(capsys, "goal", "decide", "Use a table", "--because", "it is fast", "--instead-of", "regexes")
    assert shown(capsys, "goal", "block", "No key").out == '"Ship the parser" is blocked, 50% of 2 steps.\n'
    text = shown(capsys, "goal", "show").out

    for words in ("Ship the parser", "blocked, medium priority, 50% done", "by a person", "completed  Write it",
                  "locked  Use a table — it is fast (not regexes)", "open  No key"):  # fmt: skip
        assert words in text
    shown(capsys, "goal", "block", "--resolved", "--how", "It came")
    done = shown(capsys, "goal", "done")
    assert done.out == '"Ship the parser" is completed, 50% of 2 steps.\n'
    assert done.err.startswith("Left open: Test it. aether undo takes it back.\nNo goal is active now")
    listed = shown(capsys, "goal", "show", "--list").err
    assert listed == 'No goal is open, 1 ended: aether goal show --all, or aether goal add "TEXT"\n'


def test_adding_one_pauses_the_other_and_says_how_to_go_back(here, capsys):
    shown(capsys, "goal", "add", "First")
    second = shown(capsys, "goal", "add", "Second")

    command = second.err.partition("(aether ")[2].rstrip(")\n").split()
    assert second.err.startswith('Paused: "First"')
    assert shown(capsys, *command).out == '"First" is active.\n'
    assert "First (active, 0%)" in shown(capsys, "status").out


def test_a_goal_is_read_from_a_pipe(here, capsys, monkeypatch):
    import io
    import sys

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Two lines,\nword for word.\n")))
    shown(capsys, "goal", "add", "-")

    assert (
        json.loads(shown(capsys, "goal", "show", "--json").out)["description"] == "Two lines,\nword for word."
    )


def test_errors_say_what_to_do(here, capsys):
    assert "aether goal add TEXT" in shown(capsys, "goal", "show", code=3).err
    shown(capsys, "goal", "add", "Ship it")
    assert "aether goal show --all" in shown(capsys, "goal", "start", "unknown", code=3).err
    assert "exclude each other" in shown(capsys, "goal", "done", "--step", "x", "--abandoned", code=2).err
    assert "no blocker is open" in shown(capsys, "goal", "block", "--resolved", code=3).err


def test_an_empty_list_says_how_to_set_a_goal(here, capsys):
    assert "aether goal add" in shown(capsys, "goal", "show", "--list").err


def test_a_step_that_is_not_there_is_not_completed(here, capsys):
    shown(capsys, "goal", "add", "Ship the parser", "--step", "Write it")

    assert "name it with --step" in shown(capsys, "goal", "done", "write it", code=3).err
    assert "there is no step 'Wrte it'" in shown(capsys, "goal", "done", "--step", "Wrte it", code=3).err
    assert "0% of 1 step" in shown(capsys, "goal", "block", "No key").out


def test_a_step_is_added_as_the_next(here, capsys):
    shown(capsys, "goal", "add", "Ship it")
    assert "No step is open" in shown(capsys, "goal", "next").err
    assert shown(capsys, "goal", "next", "Write it").out == "Write it\n"

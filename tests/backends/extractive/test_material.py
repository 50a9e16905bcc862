import json

import pytest

from aether.backends.extractive.digest import (
    ANSWER_SENTENCES,
    BEFORE,
    HEAD_CHARS,
    LINE_CHARS,
    candidate_lines,
)
from tests.backends.fakes import said, summary_task


def lines(*messages, previous=""):
    task = summary_task(previous=previous) | {"said": list(messages)}
    return [(line.at, line.sort, line.text) for line in candidate_lines(task)]


def call(at, tool, **arguments):
    return said(at, json.dumps(arguments), "assistant", tool)


def test_requests_are_told_by_how_they_begin():
    assert lines(said(0, "Fix it. Test it. Ship it. Then rest a while."), said(1, "ok, thanks")) == [
        (0, "asked", "Fix it. Test it. Ship it.")
    ]


def test_a_request_of_nothing_but_code_is_told_as_it_is():
    assert lines(said(0, "```\nx = {1}\n```")) == [(0, "asked", "``` x = {1} ```")]


def test_statements_on_the_way_are_sorted_and_plans_left_out():
    found = lines(
        said(0, "Let me look. We decided to keep the table because it is small.", "assistant"),
        said(1, "The build failed because the Go version in CI is 1.19.", "assistant"),
        said(2, "- **All tests of the parser pass with the new lexer now.**", "assistant"),
        said(3, "Anything else that I can do?", "assistant"),
    )

    assert found == [
        (0, "decided", "We decided to keep the table because it is small."),
        (1, "blocked", "The build failed because the Go version in CI is 1.19."),
        (2, "done", "All tests of the parser pass with the new lexer now."),
        (3, "noted", "Anything else that I can do?"),
    ]


def test_the_answer_that_ends_a_turn_is_read_whole_up_to_a_bound():
    text = "Sounds good, thanks! " + " ".join(f"Entry {n} of the table holds a colour." for n in range(20))

    found = lines(said(0, text, "assistant"), said(1, "And the next table?"), said(2, "Thanks!", "assistant"))

    assert [line[1] for line in found] == ["noted"] * (ANSWER_SENTENCES - 1) + ["asked"]


def test_commands_that_matter_are_told_with_their_ending():
    found = lines(
        call(0, "Bash", command="cd app && pytest -q 2>&1 | tail -3"), call(0, "Bash", command="ls"),
        call(0, "Bash", command=["bash", "-lc", "make build"]), call(0, "Bash", command=[]),
        said(1, "collecting\n12 passed in 0.4s", "tool", "Bash"), said(1, "a.py", "tool", "Bash"), said(1, "", "tool", "Bash"),
        said(1, "stray", "tool", "Bash"), said(1, "stray", "tool", "Read"), said(1, "stray", "tool"),
        call(2, "Bash", command="make deploy"), said(3, "The user doesn't want to proceed", "tool", "Bash"),
    )  # fmt: skip

    assert found == [(1, "ran", "Ran `pytest -q`: 12 passed in 0.4s"), (1, "ran", "Ran `make build`")]


def test_changed_files_are_one_line_each_with_what_is_new_in_them():
    found = lines(
        call(0, "Write", file_path="a.py", content="def one(): ..."),
        call(1, "Edit", file_path="b.py", old_string="1", new_string="2"),
        call(2, "Edit", file_path="a.py", old_string="def one(): ...", new_string="def two(): ..."),
        said(3, "not json", "assistant", "Edit"),
        previous="b.py: created (zero)\nOld line.",
    )

    assert found == [
        (BEFORE, "previous", "Old line."),
        (1, "changed", "b.py: created (zero)"),
        (2, "changed", "a.py: created (one, two)"),
    ]


def test_an_answer_is_told_with_its_question():
    found = lines(
        said(0, "Shall I use gzip or keep it plain?", "assistant"), said(1, "keep it plain"),
        said(2, "Could you tell me the user id?", "assistant"), said(3, "mia_4711"),
        said(4, "Want me to proceed?", "assistant"), said(5, "yes"), said(6, "Add docs."),
    )  # fmt: skip

    assert [line for line in found if line[1] != "noted"] == [
        (1, "decided", "Asked: Shall I use gzip or keep it plain? Answered: keep it plain"),
        (3, "asked", "Asked: Could you tell me the user id? Answered: mia_4711"),
        (6, "asked", "Add docs."),
    ]


def test_files_that_are_not_touched_again_keep_their_place():
    found = lines(
        call(0, "Write", file_path="b.py", content="x"),
        previous="a.py: changed (one)\nTwo.\nb.py: deleted\nThree.",
    )

    assert found == [
        (BEFORE, "changed", "a.py: changed (one)"), (BEFORE, "previous", "Two."), (BEFORE, "previous", "Three."),
        (0, "changed", "b.py: created"),
    ]  # fmt: skip


@pytest.mark.parametrize("previous", ["Done:\n- one\n\n## Head\n2. two", "1. one\ntwo\ntwo"])
def test_lines_of_the_summary_before_come_first_without_their_marks(previous):
    assert lines(said(0, "Go on with three."), previous=previous) == [
        (BEFORE, "previous", "one"), (BEFORE, "previous", "two"), (0, "asked", "Go on with three."),
    ]  # fmt: skip


def test_what_aether_or_a_program_put_there_is_not_material():
    assert (
        lines(
            said(0, "<aether-memory>Use tabs.</aether-memory>"),
            said(1, "<system-reminder>x</system-reminder>"),
        )
        == []
    )


def test_of_a_long_text_both_ends_are_read_and_a_long_line_is_shortened():
    text = f"First the head. {'x' * 9_000} {'word ' * HEAD_CHARS} It is all about the tail."

    found = lines(said(0, text), said(1, "y" * 900))

    assert found[0][2].startswith("First the head.")
    assert len(found[1][2]) == LINE_CHARS
    assert found[1][2].endswith("…")


def test_headings_politeness_and_the_words_of_the_harness_say_nothing():
    found = lines(
        call(0, "Bash", command="go test ./..."),
        said(1, "Output:\nok  app 0.2s\nOutput:", "tool", "Bash"),
        said(2, "Repo Shape\n\nGood context.\n\nStep 12.\n\nThe parser holds 3 tables.", "assistant"),
    )

    assert [text for _, _, text in found] == [
        "Ran `go test ./...`: ok  app 0.2s".replace("  ", " "),
        "The parser holds 3 tables.",
    ]

"""A summary is made of the lines that matter, in the form of its strategy."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aether.backends.extractive.digest import (
    ANSWER_SENTENCES,
    BEFORE,
    HEAD_CHARS,
    LINE_CHARS,
    MOST_LINES,
    candidate_lines,
    write_summary,
)
from aether.backends.request import SUMMARIES
from tests.backends.fakes import said, summary_task
from tests.effort import examples
from tests.tables import rows


def words(text):
    return len(text.split())


def call(at, tool, **arguments):
    return said(at, json.dumps(arguments), "assistant", tool)


SESSION = (
    said(0, "Make the importer fast. Never load whole files."),
    said(1, "We decided to stream because whole files took 1.2 GB.", "assistant"),
    call(2, "Edit", file_path="src/load.py", old_string="x", new_string="def stream(): ..."),
    said(3, "ok", "tool", "Edit"),
    call(4, "Bash", command="pytest -q"),
    said(5, "12 passed in 0.4s", "tool", "Bash"),
    said(6, "The import of big.jsonl takes 4 s with flat memory now.", "assistant"),
    said(7, "Also handle gzip."),
    said(8, "Gzip fails because zlib is missing on the build machine.", "assistant"),
)


def summary(strategy, *messages, max_tokens=400, **rest):
    task = summary_task(*(messages or SESSION), strategy=strategy, max_tokens=max_tokens, **rest)
    return write_summary(task, count=words).split("\n")


def test_the_state_of_a_task_has_plain_headings():
    assert summary("task_state") == [
        "Asked:",
        "- Make the importer fast. Never load whole files.",
        "- Also handle gzip.",
        "Decided:",
        "- We decided to stream because whole files took 1.2 GB.",
        "Found:",
        "- The import of big.jsonl takes 4 s with flat memory now.",
        "Changed:",
        "- load.py: changed (stream)",
        "Done:",
        "- Ran `pytest -q`: 12 passed in 0.4s",
        "Problems:",
        "- Gzip fails because zlib is missing on the build machine.",
    ]


def test_a_brief_is_a_list_without_commands_and_files():
    found = summary("brief")

    assert all(line.startswith("- ") for line in found)
    assert not any("pytest" in line or "stream)" in line for line in found)


def test_a_decision_log_says_where_what_and_why():
    assert summary("decision_log") == ["[1] We decided to stream :: whole files took 1.2 GB. :: - :: -"]


def test_a_decision_without_a_reason_has_none():
    assert summary(
        "decision_log", said(3, "We decided to keep the old lexer for this release.", "assistant")
    ) == ["[3] We decided to keep the old lexer for this release. :: - :: - :: -"]


def test_a_code_delta_lists_files_and_what_is_broken():
    assert summary("code_delta") == [
        "src/load.py: changed (stream)",
        "Gzip fails because zlib is missing on the build machine.",
    ]


def test_a_step_ledger_is_numbered_in_order():
    found = summary("step_ledger")

    assert found[:3] == [
        "1. Asked: Make the importer fast. Never load whole files.",
        "2. We decided to stream because whole files took 1.2 GB.",
        "3. src/load.py: changed (stream)",
    ]
    assert [line.split(".")[0] for line in found] == [str(nth) for nth in range(1, len(found) + 1)]


def test_a_requirements_ledger_claims_nothing_that_was_not_shown():
    assert summary("requirements_ledger") == [
        "Make the importer fast. Never load whole files. :: partly :: Ran `pytest -q`: 12 passed in 0.4s",
        "Also handle gzip. :: open :: -",
    ]


def test_requirements_of_the_summary_before_stay_as_they_are():
    found = summary("requirements_ledger", previous="Ship it. :: met :: tag v1\nSell it.")

    assert found[:2] == ["Ship it. :: met :: tag v1", "Sell it. :: open :: -"]


def test_what_the_facts_say_already_is_left_out_where_it_would_only_repeat_them():
    facts = {
        "requests": ["Also handle gzip."],
        "decisions": ["We decided to stream because\nwhole files took 1.2 GB."],
    }

    assert not any("gzip." in line or "stream because" in line for line in summary("task_state", **facts))
    assert any("gzip." in line for line in summary("requirements_ledger", **facts))


def test_a_run_that_the_state_has_is_not_listed_nor_is_what_the_model_looks_at():
    said_so = (
        said(9, "### Findings of the parser run", "assistant"),
        said(10, "Now I see the cause of the failure in `load.py`.", "assistant"),
    )

    committed = (
        call(11, "Bash", command="git commit -m Stream"),
        said(12, "[main 617fc5e] Stream", "tool", "Bash"),
    )
    state = ["Ran `pytest -q`: 9 passed in 0.3s", "Commits, the newest first: 617fc5e Stream."]

    found = "\n".join(summary("task_state", *SESSION, *said_so, *committed, state=state))

    assert not any(words in found for words in ("pytest", "Findings", "I see", "git commit"))
    found = found.split("\n")
    assert any("flat memory" in line for line in found)


def test_names_of_one_file_over_two_summaries_become_one_line():
    found = summary("task_state", previous="Changed:\n- load.py: changed (old)\n- src/gone.py: deleted")

    assert "- load.py: changed (old, stream)" in found
    assert not any("gone" in line for line in found)


@rows("strategy", SUMMARIES)
def test_the_summary_before_is_read_again_and_outlives_what_is_new(strategy):
    carried = [f"We decided to keep part {n} because of ticket T-{n}4711." for n in range(6)]
    first = "\n".join(summary(strategy, *(said(n, text, "assistant") for n, text in enumerate(carried))))
    noise = [said(9 + n, f"Entry {n} of the long table holds a colour.", "assistant") for n in range(60)]

    again = "\n".join(summary(strategy, *noise, previous=first, max_tokens=words(first) + 8))

    kept = [n for n in range(6) if f"T-{n}4711" in first and f"T-{n}4711" in again]
    assert len(kept) == (6 if strategy not in {"code_delta", "requirements_ledger"} else 0)


@rows("strategy", SUMMARIES)
def test_an_empty_task_gives_an_empty_summary(strategy):
    assert write_summary(summary_task(strategy=strategy) | {"said": []}, count=words) == ""


@rows("strategy", SUMMARIES)
def test_any_room_is_kept_and_the_same_task_gives_the_same_text(strategy):
    for most in (1, 7, 12, 20, 35, 60):
        text = "\n".join(summary(strategy, max_tokens=most))

        assert words(text) <= most
        assert text == "\n".join(summary(strategy, max_tokens=most))


@examples(60)
@given(
    st.sampled_from(sorted(SUMMARIES)), st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), st.text(max_size=200), st.sampled_from(["", "Bash"]))), st.text(max_size=200), st.integers(0, 60),
)  # fmt: skip
def test_no_conversation_breaks_it_nor_its_bound(strategy, messages, previous, most):
    listed = [said(at, text, role, tool) for at, (role, text, tool) in enumerate(messages)]
    task = summary_task(strategy=strategy, previous=previous, max_tokens=most) | {"said": listed}

    assert words(write_summary(task, count=words)) <= most


def test_of_a_command_that_ran_again_only_the_last_run_counts():
    again = (call(9, "Bash", command="pytest -q"), said(10, "13 passed in 0.5s", "tool", "Bash"))

    found = summary(
        "task_state", *SESSION, *again, previous="Done:\n- Ran `pytest -q`: 1 failed\n- Ran `make`: built"
    )

    assert [line for line in found if "Ran" in line] == [
        "- Ran `make`: built",
        "- Ran `pytest -q`: 13 passed in 0.5s",
    ]
    assert found.index("- Ran `make`: built") > found.index("Done:")


def test_of_thousands_of_lines_the_newest_and_the_previous_ones_are_weighed():
    many = (
        said(n, f"We decided to keep way{n} for queue q{n}.", "assistant") for n in range(MOST_LINES + 50)
    )

    found = "\n".join(summary("brief", *many, previous="We chose way-old.", max_tokens=10**6))

    assert "way-old" in found
    assert "way49 " not in found
    assert "way50 " in found


def test_the_outcome_of_a_run_is_not_that_of_a_listing_behind_it():
    found = summary(
        "task_state", call(0, "Bash", command="make site; ls out"), said(1, "index.html", "tool", "Bash")
    )

    assert found == ["Done:", "- Ran `make site; ls out`"]


def test_a_run_that_failed_is_a_problem_and_not_done():
    found = summary(
        "task_state",
        call(0, "Bash", command="pytest -q"),
        said(1, "1 failed, 3 passed in 0.4s", "tool", "Bash"),
    )

    assert found == ["Problems:", "- Ran `pytest -q`: 1 failed, 3 passed in 0.4s"]


def test_the_newest_progress_outlives_that_of_the_previous_summary():
    previous = "Done:\n" + "\n".join(f"- Ran `make part{at}`: part {at} built" for at in range(30))
    found = summary(
        "task_state", call(0, "Bash", command="make last"), said(1, "last part built", "tool", "Bash"),
        previous=previous, max_tokens=40,
    )  # fmt: skip

    assert found[-1] == "- Ran `make last`: last part built"
    assert not any("part0`" in line for line in found)


def lines(*messages, previous=""):
    task = summary_task(previous=previous) | {"said": list(messages)}
    return [(line.at, line.sort, line.text) for line in candidate_lines(task)]


def test_requests_keep_their_opening():
    assert lines(said(0, "Fix it. Test it. Ship it. Then rest a while."), said(1, "ok, thanks")) == [
        (0, "asked", "Fix it. Test it. Ship it.")
    ]


def test_a_request_of_nothing_but_code_is_kept_whole():
    assert lines(said(0, "```\nx = {1}\n```")) == [(0, "asked", "``` x = {1} ```")]


def test_statements_on_the_way_are_sorted_and_plans_left_out():
    found = lines(
        said(0, "Let me look. We decided to keep the table because it is small.", "assistant"),
        said(1, "The build failed because the Go version in CI is 1.19.", "assistant"),
        said(2, "- **All tests of the parser pass with the new lexer now.**", "assistant"),
        said(3, "Anything else that I can do?", "assistant"),
        said(4, "I'm moving the lexer into `lex.py`, so that both parsers share it.", "assistant"),
    )

    assert found == [
        (0, "decided", "We decided to keep the table because it is small."),
        (1, "blocked", "The build failed because the Go version in CI is 1.19."),
        (2, "done", "All tests of the parser pass with the new lexer now."),
        (4, "decided", "I'm moving the lexer into `lex.py`, so that both parsers share it."),
    ]


def test_the_answer_that_ends_a_turn_is_read_whole_up_to_a_bound():
    text = "Sounds good, thanks! " + " ".join(f"Entry {n} of the table holds a colour." for n in range(20))

    found = lines(said(0, text, "assistant"), said(1, "And the next table?"), said(2, "Thanks!", "assistant"))

    assert [line[1] for line in found] == ["noted"] * (ANSWER_SENTENCES - 1) + ["asked"]


def test_commands_that_matter_are_listed_with_their_outcome():
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


def test_an_answer_is_listed_with_its_question():
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
        said(
            2,
            "Repo Shape\n\nI found it!\n\nGood context.\n\nStep 12.\n\nThe parser holds 3 tables.",
            "assistant",
        ),
    )

    assert [text for _, _, text in found] == [
        "Ran `go test ./...`: ok  app 0.2s".replace("  ", " "),
        "The parser holds 3 tables.",
    ]

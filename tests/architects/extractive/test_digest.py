"""A summary is made of the lines that matter, in the form of its strategy."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aether.architects.extractive.digest import BEFORE, LINE_CHARS, candidate_lines, write_summary
from aether.architects.request import SUMMARIES
from tests.architects.fakes import said, summary_task
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


def test_the_state_of_a_task_has_plain_headings_and_judges_nothing():
    assert summary("task_state") == [
        "Asked:",
        "- Make the importer fast. Never load whole files.",
        "- Also handle gzip.",
        "Said:",
        "- We decided to stream because whole files took 1.2 GB.",
        "- The import of big.jsonl takes 4 s with flat memory now.",
        "- Gzip fails because zlib is missing on the build machine.",
        "Changed:",
        "- src/load.py: changed (stream)",
        "Ran:",
        "- Ran `pytest -q`: 12 passed in 0.4s",
    ]


def test_a_brief_is_a_list_without_commands_and_files():
    found = summary("brief")

    assert all(line.startswith("- ") for line in found)
    assert not any("pytest" in line or "stream)" in line for line in found)


def test_a_decision_log_has_what_a_person_chose_and_nothing_else():
    chose = said(
        3,
        'Your questions have been answered: "Which store?"="SQLite". You can now continue.',
        "tool",
        "AskUserQuestion",
    )

    assert summary("decision_log") == [""]
    assert summary("decision_log", *SESSION, chose) == ['[3] "Which store?"="SQLite" :: - :: - :: -']
    assert (
        summary("decision_log", previous="[0] Use tabs :: wide :: - :: -")[0]
        == "[0] Use tabs :: wide :: - :: -"
    )


def test_a_code_delta_lists_files_and_runs():
    assert summary("code_delta") == ["src/load.py: changed (stream)", "Ran `pytest -q`: 12 passed in 0.4s"]


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
        "Make the importer fast. Never load whole files. :: open :: -", "Also handle gzip. :: open :: -",
    ]  # fmt: skip


def test_requirements_of_the_summary_before_stay_as_they_are():
    found = summary("requirements_ledger", previous="Ship it. :: met :: tag v1\nSell it. :: open :: -")

    assert found[:2] == ["Ship it. :: met :: tag v1", "Sell it. :: open :: -"]


def test_what_the_facts_say_already_is_left_out_where_it_would_only_repeat_them():
    facts = {
        "requests": ["Also handle gzip."],
        "decisions": ["We decided to stream because\nwhole files took 1.2 GB."],
    }

    assert not any("gzip." in line or "stream because" in line for line in summary("task_state", **facts))
    assert any("gzip." in line for line in summary("requirements_ledger", **facts))


def test_a_run_that_the_state_has_is_not_listed():
    found = "\n".join(summary("task_state", state=["Ran `pytest -q`: 9 passed in 0.3s"]))

    assert "pytest" not in found
    assert "flat memory" in found


def test_names_of_one_file_over_two_summaries_become_one_line():
    found = summary("task_state", previous="Changed:\n- src/load.py: changed (old)\n- src/gone.py: deleted")

    assert "- src/load.py: changed (old, stream)" in found
    assert "- src/gone.py: deleted" in found


@rows("strategy", SUMMARIES)
def test_the_summary_before_is_read_again_and_outlives_what_is_new(strategy):
    carried = [f"We decided to keep part {n} because of ticket T-{n}4711." for n in range(6)]
    first = "\n".join(summary(strategy, *(said(n, text, "assistant") for n, text in enumerate(carried))))
    noise = [said(9 + n, f"Entry {n} of the long table holds a colour.", "assistant") for n in range(60)]

    again = "\n".join(summary(strategy, *noise, previous=first, max_tokens=words(first) + 8))

    kept = [n for n in range(6) if f"T-{n}4711" in first and f"T-{n}4711" in again]
    assert len(kept) == (6 if strategy in {"task_state", "brief", "step_ledger"} else 0)


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
        "task_state", *SESSION, *again, previous="Ran:\n- Ran `pytest -q`: 1 failed\n- Ran `make`: built"
    )

    assert [line for line in found if "Ran `" in line] == [
        "- Ran `make`: built",
        "- Ran `pytest -q`: 13 passed in 0.5s",
    ]
    assert found.index("- Ran `make`: built") > found.index("Ran:")


def lines(*messages, previous=""):
    task = summary_task(previous=previous) | {"said": list(messages)}
    return [(line.at, line.sort, line.text) for line in candidate_lines(task)]


def test_a_request_is_one_line_with_what_carries_most():
    long = " ".join(f"Entry {n} of the table holds a colour." for n in range(40))

    ((at, sort, text),) = lines(said(0, f"Fix the lexer of `lex.py`. {long} Never push."))

    assert (at, sort) == (0, "asked")
    assert "Fix the lexer of `lex.py`." in text
    assert len(text) <= LINE_CHARS


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
        (BEFORE, "said", "Old line."),
        (1, "changed", "b.py: created (zero)"),
        (2, "changed", "a.py: created (one, two)"),
    ]


def test_the_words_of_a_refusal_are_asked_for():
    refusal = "The user doesn't want to proceed with this tool use. So the user said:\nno mocks please"

    assert lines(call(0, "Bash", command="make mocks"), said(1, refusal, "tool", "Bash")) == [
        (1, "asked", "no mocks please")
    ]


def test_files_that_are_not_touched_again_keep_their_place():
    found = lines(
        call(0, "Write", file_path="b.py", content="x"),
        previous="a.py: changed (one)\nTwo.\nb.py: deleted\nThree.",
    )

    assert found == [
        (BEFORE, "changed", "a.py: changed (one)"), (BEFORE, "said", "Two."), (BEFORE, "said", "Three."),
        (0, "changed", "b.py: created"),
    ]  # fmt: skip


@pytest.mark.parametrize("previous", ["Said:\n- one\n\n## Head\n2. two", "1. one\ntwo\ntwo"])
def test_lines_of_the_summary_before_come_first_without_their_marks(previous):
    assert lines(said(0, "Go on with three."), previous=previous) == [
        (BEFORE, "said", "one"), (BEFORE, "said", "two"), (0, "asked", "Go on with three."),
    ]  # fmt: skip


def test_what_aether_or_a_program_put_there_is_not_material():
    assert (
        lines(
            said(0, "<aether-memory>Use tabs.</aether-memory>"),
            said(1, "<system-reminder>x</system-reminder>"),
        )
        == []
    )


def test_a_long_line_is_shortened():
    ((_, _, text),) = lines(said(1, "y" * 900, "assistant"))

    assert len(text) == LINE_CHARS
    assert text.endswith("…")

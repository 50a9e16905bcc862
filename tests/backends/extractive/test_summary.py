import json

from hypothesis import given
from hypothesis import strategies as st

from aether.backends.extractive.digest import MOST_LINES, write_summary
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


def test_the_state_of_a_task_stands_under_plain_words():
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
def test_nothing_said_is_nothing_written(strategy):
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


def test_of_thousands_of_lines_the_newest_and_the_carried_are_weighed():
    many = (
        said(n, f"We decided to keep way{n} for queue q{n}.", "assistant") for n in range(MOST_LINES + 50)
    )

    found = "\n".join(summary("brief", *many, previous="We chose way-old.", max_tokens=10**6))

    assert "way-old" in found
    assert "way49 " not in found
    assert "way50 " in found


def test_a_run_that_failed_is_a_problem_and_not_done():
    found = summary(
        "task_state",
        call(0, "Bash", command="pytest -q"),
        said(1, "1 failed, 3 passed in 0.4s", "tool", "Bash"),
    )

    assert found == ["Problems:", "- Ran `pytest -q`: 1 failed, 3 passed in 0.4s"]


def test_the_newest_progress_outlives_what_is_carried():
    previous = "Done:\n" + "\n".join(f"- Ran `make part{at}`: part {at} built" for at in range(30))
    found = summary(
        "task_state", call(0, "Bash", command="make last"), said(1, "last part built", "tool", "Bash"),
        previous=previous, max_tokens=40,
    )  # fmt: skip

    assert found[-1] == "- Ran `make last`: last part built"
    assert not any("part0`" in line for line in found)

"""Summaries of hosts: stored once with the session of the open hand-off, or rejected."""

from __future__ import annotations

import pytest

import aether
from aether.api import briefing, review
from aether.api.compress import ingest_summary, prepare_for_summary
from aether.api.handoffs import prose_of
from aether.api.home import now, read
from aether.errors import LockTimeout
from aether.memory.briefing.briefing import steering
from aether.memory.patterns import promote
from aether.store import record_files
from aether.store.files import locked
from aether.store.snapshot import load
from tests import homes
from tests.api.calls import limits, memory, snapshot
from tests.memory.memories import NOW, new_id

NOTES = (
    ("We chose SQLite over Postgres because the tool must run without a server.", "decision", {}),
    ("Never commit to the main branch.", "constraint", {}),
    ("Changed /p/src/index.py (3 edits): build_index", "code_change", {}),
    ("The ledger format v3 is frozen.", "observation", {"protected": True}),
    ("Always run the exporter twice.", "constraint", {"source": "mcp"}),
)

PROSE = "The index was moved to SQLite. The tests of the importer still fail on Windows; next is the clock."

SUMMARY = f"<analysis>I think about it.</analysis>\n<summary>{PROSE}</summary>"


@pytest.fixture
def noted(home):
    """Return a home with notes of a phase in it."""
    for content, kind, more in NOTES:
        source = more.get("source", "queen")
        metadata = {key: value for key, value in more.items() if key != "source"} | {"conversation": "s1"}
        aether.add_working_memory_item(content, kind, 0.7, home=home, source=source, metadata=metadata)
    review.decide([item["id"] for item in review.waiting(home=home)], accept=True, home=home)
    return home


def receipts(home):
    return [receipt for _, receipt in record_files.records(load(home), "receipts")]


def test_the_summary_becomes_that_of_the_session_and_the_rest_comes_from_the_hand_off(noted):
    prepare_for_summary(noted, "s1")

    done = ingest_summary(noted, SUMMARY, session="s1", trigger="auto")

    [session] = memory(noted)["short_term_memory"]["sessions"]
    assert done.stored
    assert done.items == len(NOTES)
    assert session["summary"] == PROSE
    assert any("SQLite" in each["decision"] for each in session["key_decisions"])
    assert memory(noted)["working_memory"]["items"] == []
    kept = [item["content"] for item in session["metadata"]["items"]]
    assert {"The ledger format v3 is frozen.", "Always run the exporter twice."} <= {*kept}
    architect = receipts(noted)[0]["architect"]
    assert (architect["backend"], architect["summary"]) == ("extractive", "accepted")
    assert (architect["session"], architect["trigger"]) == ("s1", "auto")


def test_the_next_session_gets_the_same_rules(noted):
    ingest_summary(noted, SUMMARY)

    reported = briefing.session_brief(noted, "startup")

    rules = reported.index("Rules")
    assert rules < reported.index("ledger format v3")
    assert rules < reported.index("Never commit")
    assert "/p/src/index.py" in reported
    assert "Always run the exporter twice." in reported


@pytest.mark.parametrize(
    ("summary", "reason"),
    [
        ("", "empty"),
        ("I'm sorry, but I can't help with that.", "refusal"),
        ("API Error: 529 overloaded", ""),
        ("<analysis>cut off", "empty"),
        ("Error: 500 internal server error", "error"),
    ],
)
def test_an_invalid_summary_never_becomes_memory_and_the_receipt_has_the_reason(noted, summary, reason):
    done = ingest_summary(noted, summary)

    [receipt] = receipts(noted)
    assert done.stored
    assert done.session["summary"]
    assert not summary or summary not in done.session["summary"]
    assert receipt["architect"]["summary"] != "accepted"
    assert reason in receipt["architect"]["summary"]


def test_a_copy_of_the_instructions_is_rejected_as_summary(home):
    for number in range(12):
        aether.add_working_memory_item(
            f"Never use the old exporter number {number}.", "constraint", home=home
        )
    reported = steering(read(home).documents, now=now())

    done = ingest_summary(home, reported)

    assert done.session["metadata"]["architect"]["summary"] == "It copies one message."


def test_the_same_summary_again_changes_nothing(noted):
    first = ingest_summary(noted, SUMMARY, session="s1")
    aether.add_working_memory_item("Something new came.", "decision", home=noted)
    before = snapshot(noted)

    again = ingest_summary(noted, SUMMARY, session="s1")

    assert (again.stored, again.session["id"]) == (False, first.session["id"])
    assert snapshot(noted) == before


def test_the_same_summary_again_changes_nothing_when_its_session_was_evicted(noted):
    first = ingest_summary(noted, SUMMARY)
    aether.evict_short_term_session(first.session["session_id"], home=noted)
    aether.add_working_memory_item("Something new came.", "decision", home=noted)

    assert ingest_summary(noted, SUMMARY) is None
    assert len(memory(noted)["working_memory"]["items"]) == 1


def test_one_undo_takes_it_back_and_then_it_can_be_stored_again(noted):
    prepare_for_summary(noted)
    before = memory(noted)
    ingest_summary(noted, SUMMARY)

    aether.undo(home=noted)

    assert memory(noted) == before
    assert ingest_summary(noted, SUMMARY).stored


def test_each_compaction_of_a_conversation_is_a_session(noted):
    ingest_summary(noted, SUMMARY, session="s1")
    aether.add_working_memory_item(
        "The clock is injected now, so the tests pass on Windows.", "solution", home=noted,
        metadata={"conversation": "s1"},
    )  # fmt: skip
    prepare_for_summary(noted, "s1")

    second = ingest_summary(noted, f"{SUMMARY} And the clock was injected.", session="s1")

    assert second.items == 1
    assert len(memory(noted)["short_term_memory"]["sessions"]) == 2


def test_items_newer_than_the_hand_off_are_kept(noted):
    prepare_for_summary(noted)
    aether.add_working_memory_item("Said while the summary was written.", "user_input", home=noted)

    ingest_summary(noted, SUMMARY)

    [left] = memory(noted)["working_memory"]["items"]
    assert left["content"] == "Said while the summary was written."


def test_items_of_later_phases_are_handed_off_when_there_are_no_others(home):
    aether.add_working_memory_item("Later.", "decision", home=home, metadata={"phase": 3})

    assert prepare_for_summary(home).record["phase"] == 3


def test_an_empty_memory_keeps_a_summary_only_where_there_is_no_session(home):
    done = ingest_summary(home, SUMMARY)

    [session] = memory(home)["short_term_memory"]["sessions"]
    assert (done.stored, done.session, session["summary"]) == (True, session, PROSE)
    assert ingest_summary(home, SUMMARY) is None
    assert ingest_summary(home, "Another summary of what was said before.") is None
    assert len(memory(home)["short_term_memory"]["sessions"]) == 1


def test_an_invalid_summary_is_not_stored_without_items(home):
    assert ingest_summary(home, "I'm sorry, but I can't help with that.") is None
    assert memory(home)["short_term_memory"]["sessions"] == []


def test_injected_text_is_never_evidence_for_a_pattern(home):
    """The host's prose repeats what it was told: three sessions of it must promote nothing."""
    rule = "The exporter needs a warm cache before every nightly run."
    for number in range(4):
        aether.add_working_memory_item(
            f"Looked at page {number} of the report.", "observation", 0.3, home=home,
            metadata={"conversation": f"s{number}"},
        )  # fmt: skip
        block = f"<aether-memory>{rule}</aether-memory>"
        ingest_summary(
            home, f"{block} Page {number} was read. {rule} The report goes on.", session=f"s{number}"
        )

    state = memory(home)
    assert len(state["short_term_memory"]["sessions"]) == 4
    assert promote(state, now=NOW, new_id=new_id).result.created == []
    assert not [each for each in state["long_term_memory"]["patterns"] if "exporter" in each["pattern"]]


def test_long_prose_leaves_room_for_what_was_captured(noted):
    limits(noted, capacity=200_000)
    done = ingest_summary(noted, "The work went on and on. " * 200)

    assert any("SQLite" in each["decision"] for each in done.session["key_decisions"])


def test_a_locked_home_keeps_everything_as_it_was(noted):
    homes.configure(noted, "[store]\nlock_timeout_seconds = 0\n")
    before = snapshot(noted)

    with locked(noted), pytest.raises(LockTimeout):
        ingest_summary(noted, SUMMARY)

    assert snapshot(noted) == before


@pytest.mark.parametrize(
    ("raw", "prose"),
    [
        (SUMMARY, PROSE),
        (PROSE, PROSE),
        (f"<ANALYSIS>\nhm\n</ANALYSIS>\n{PROSE}", PROSE),
        (f"<analysis>I will write a <summary> soon.</analysis><summary>{PROSE}", PROSE),
        ("<analysis>cut off", ""),
        ("<aether-memory>told</aether-memory>", ""),
        ("<summary></summary>", ""),
    ],
)
def test_the_prose_is_the_text_inside_the_summary_tags(raw, prose):
    assert prose_of(raw) == prose


def test_secrets_do_not_come_with_the_prose():
    assert "hunter2hunter2" not in prose_of("The password=hunter2hunter2 was set.")


def test_of_a_long_summary_code_goes_first_and_the_rest_is_shortened():
    code = "```go\n" + "x := 1\n" * 3_000 + "```\n"

    assert prose_of(f"Before.\n{code}After.") == "Before.\n\nAfter."
    assert prose_of(f"Short.\n{code[:40]}```") != "Short."
    assert 16_000 <= len(prose_of("word " * 5_000)) < 16_100

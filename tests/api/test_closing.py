"""Closing a conversation: what is stored of the answer, of which items, and that a rejected answer changes nothing."""

from __future__ import annotations

import json

import pytest

from aether.api import admin, closing, compress, recall, working
from aether.api.home import read
from aether.errors import InvalidInput
from tests.tables import rows

RULE = "Never push to main; always open a pull request against develop."
ASKED = "The webhook in src/webhook.py drops events. Add retries with a growing delay."
DONE = "`send` in src/webhook.py now retries five times; tests/test_webhook.py passes."
ANSWER = {
    "state": [{"text": "Retries work in src/webhook.py.", "quote": "now retries five times"}],
    "rules": [{"text": "Never push to main.", "quote": "Never push to main"}],
    "open": [{"text": "Nobody measured the delay.", "quote": "this was never said by anybody"}],
    "decisions": [{"decision": "Retry with a growing delay.", "quote": "retries with a growing delay"}],
}


def say(home, text, *, by="person", conversation="c-one", type="user_input"):
    metadata = {"conversation": conversation, "evidence": by, "pointer": {"file": f"{conversation}.jsonl"}}
    return str(working.add_working_memory_item(text, type, home=home, metadata=metadata))


@pytest.fixture
def worked(home):
    """A home in which one conversation has settled."""
    for text in (RULE, ASKED):
        say(home, text)
    say(home, DONE, by="agent", type="outcome")
    return home


def memory(home):
    return read(home).documents["memory"]


def sessions(home):
    return memory(home)["short_term_memory"]["sessions"]


def test_the_statements_are_stored_with_their_proof_and_the_others_are_named(worked):
    done = closing.close_session(ANSWER, home=worked)

    [stored] = sessions(worked)
    assert stored["state"][0]["quote"] == "now retries five times"
    assert stored["rules"][0]["evidence"] == "person"
    assert [one["decision"] for one in stored["key_decisions"]] == ["Retry with a growing delay."]
    assert not stored.get("open")
    assert done.dropped == [("open", "Nobody measured the delay.")]
    assert done.ingested.items == 3
    assert memory(worked)["working_memory"]["items"] == []
    assert memory(worked)["compression"]["open"] == []


def test_ids_and_time_are_those_of_the_hand_off_whatever_the_answer_says(worked):
    done = closing.close_session({**ANSWER, "session_id": "mine", "id": "mine"}, home=worked)

    assert done.ingested.session["session_id"].startswith("phase_")
    assert done.ingested.session["metadata"]["architect"]["session"] == "c-one"


def test_the_same_work_is_closed_once(worked):
    first = closing.close_session(ANSWER, home=worked)
    before = read(worked).revision

    again = closing.close_session(ANSWER, home=worked)

    assert again.ingested is None
    assert first.ingested.session["session_id"] in again.reason
    assert read(worked).revision == before


def test_without_items_of_a_conversation_there_is_nothing_to_close(home):
    working.add_working_memory_item("We use tabs.", "decision", home=home)

    assert closing.close_session(ANSWER, home=home).reason.startswith("Nothing to close")
    assert len(memory(home)["working_memory"]["items"]) == 1


@rows("answer", [{}, {"state": []}, "[]", "7", {"session_id": "x"}, {"summary": ""}])
def test_an_answer_that_says_nothing_is_rejected(worked, answer):
    before = read(worked).revision

    with pytest.raises(InvalidInput):
        closing.close_session(answer, home=worked)

    assert read(worked).revision == before


def test_a_rejected_answer_changes_nothing_and_says_what_to_correct(worked):
    before = memory(worked), read(worked).revision
    lies = {"state": [{"text": "All is deployed.", "quote": "deployed to production at noon"}]}

    with pytest.raises(InvalidInput, match="quote"):
        closing.close_session(lies, home=worked)

    assert (memory(worked), read(worked).revision) == before


def test_the_text_of_a_model_is_read_too(worked):
    text = "Here it is:\n```json\n" + json.dumps({**ANSWER, "key_decisions": [], "outcomes": []}) + "\n```"

    assert closing.close_session(text, home=worked).ingested.stored


def test_of_two_conversations_the_named_or_the_newest_is_closed(worked):
    say(worked, "The exporter in src/invoice.py writes one CSV file a month.", conversation="c-two")
    answer = {"state": [{"text": "One CSV file a month.", "quote": "writes one CSV file a month"}]}

    with pytest.raises(InvalidInput, match="2 conversations"):
        closing.close_session(answer, home=worked, session="c-")
    assert closing.close_session(answer, home=worked).conversation == "c-two"
    assert closing.close_session(ANSWER, home=worked, session="c-o").conversation == "c-one"
    assert closing.close_session(ANSWER, home=worked, session="c-three").ingested is None


def test_one_undo_takes_it_back(worked):
    before = memory(worked)["working_memory"]["items"]
    done = closing.close_session(ANSWER, home=worked)

    admin.undo(done.ingested.revision, home=worked)

    assert memory(worked)["working_memory"]["items"] == before
    assert sessions(worked) == []


SUMMARY = "The webhook in src/webhook.py now retries five times, with a growing delay. " * 3


def compacted(home):
    compress.prepare_for_summary(home, "c-one")
    compress.ingest_summary(home, SUMMARY, session="c-one", trigger="auto")


def test_what_a_compaction_archived_is_judged_in_its_own_session(worked):
    """The host's summary comes before anybody was asked: its session is replaced, under its id and with its items."""
    compacted(worked)
    [before] = sessions(worked)
    say(worked, "And the counter is in src/metrics.py now.")

    done = closing.close_session(ANSWER, home=worked, session="c-one")

    [after] = sessions(worked)
    assert after["session_id"] == before["session_id"]
    assert after["summary"] == before["summary"]
    assert done.ingested.items == 4
    assert after["rules"][0]["text"] == "Never push to main."
    assert memory(worked)["working_memory"]["items"] == []
    found = [hit.id for hit in recall.recall("growing delay webhook", home=worked)]
    assert len(found) == len(set(found))
    assert closing.close_session(ANSWER, home=worked, session="c-one").ingested is None


def test_a_rejected_answer_leaves_the_session_of_a_compaction(worked):
    compacted(worked)
    before = sessions(worked), read(worked).revision

    with pytest.raises(InvalidInput):
        closing.close_session({"state": [{"text": "It flies.", "quote": "it has wings"}]}, home=worked)

    assert (sessions(worked), read(worked).revision) == before

"""The tool compress: at once, or by the model that calls, in steps that can be repeated."""

from __future__ import annotations

import json
import re

import pytest

import aether
from aether.api.colony import start_phase
from aether.api.home import read
from aether.errors import InvalidInput
from aether.integrations.mcp_server.results import RESULT_CHARS
from aether.integrations.mcp_server.tools import compress, handoff_text
from aether.memory import handoff


@pytest.fixture
def filled(home):
    """A home in phase 2 with two items of it."""
    start_phase(2, home=home)
    for content in ("Use SQLite, because it is one file.", "The tests pass after the fix."):
        aether.add_working_memory_item(content, "decision", 0.9, home=home, metadata={"phase": 2})
    return home


def session_of(home):
    """Return what a model would answer to the hand-off that is open."""
    text = compress("prepare", home=home).text
    shape = json.loads(re.search(r"```\n(\{.*?\n\})\n```", text, re.DOTALL)[1])
    decided = [{"decision": "Use SQLite", "rationale": "it is one file"}]
    return {
        **shape,
        "summary": "SQLite it is.",
        "key_decisions": decided,
        "outcomes": [],
        "high_value_items": [],
    }


def stored(home):
    return read(home).documents["memory"]["short_term_memory"]["sessions"]


def test_at_once_it_needs_no_model(filled):
    told = []

    text = compress(home=filled, progress=told.append).text

    assert re.match(r"Session \S+ of phase 2: 2 items, \d+ tokens became \d+\.", text)
    assert told == ["asking extractive"]
    assert len(stored(filled)) == 1


def test_where_there_is_nothing_to_compress_that_is_said(home):
    assert "Working Memory is empty" in compress(home=home).text
    assert "Working Memory is empty" in compress("prepare", home=home).text


def test_preparing_gives_the_instruction_the_items_and_the_file(filled):
    text = compress("prepare", home=filled).text

    assert "You are the architect" in text
    assert "Use SQLite, because it is one file." in text
    assert handoff_text(2, filled)[1] in text
    assert compress("prepare", phase=2, home=filled).text == text


def test_a_long_hand_off_comes_in_parts(home):
    for n in range(30):
        aether.add_working_memory_item(f"{n}: " + "A long story. " * 100, "outcome", home=home)

    first, second = (compress("prepare", part=part, home=home).text for part in (1, 2))

    assert len(first) < RESULT_CHARS + 500
    assert "action=prepare, phase=1, part=2" in first
    assert second != first


@pytest.mark.parametrize("form", [json.dumps, lambda session: session])
@pytest.mark.parametrize("phase", [None, 2])
def test_the_session_that_a_model_wrote_is_stored_once(filled, form, phase):
    session = session_of(filled)

    first = compress("ingest", session=form(session), phase=phase, home=filled).text
    again = compress("ingest", session=form(session), phase=phase, home=filled).text

    assert "2 items" in first
    assert "had to survive were added word for word" in first
    assert "stored already" in again
    assert stored(filled)[0]["metadata"]["architect"]["backend"] == "mcp"


def test_the_phase_is_that_of_the_hand_off_although_another_runs_by_now(filled):
    session = session_of(filled)
    kept = {"content": "The tests pass after the fix.", "relevance_score": 0.9, "type": "decision"}
    session["high_value_items"] = [kept, {**kept, "content": "Use SQLite, because it is one file."}]
    del session["phase"]
    aether.complete_phase(2, home=filled)
    start_phase(3, home=filled)

    text = compress("ingest", session=session, home=filled).text

    assert "of phase 2" in text
    assert "word for word" not in text


def test_a_session_that_is_none_is_refused_with_what_to_do(filled):
    with pytest.raises(InvalidInput, match="session is missing"):
        compress("ingest", home=filled)
    with pytest.raises(InvalidInput, match=r"session is \[\{'summary'.*one JSON object"):
        compress("ingest", session=[{"summary": "x"}], home=filled)
    for session in ("I would rather not.", {}, "{}"):
        with pytest.raises(InvalidInput, match="no complete JSON object with id, session_id"):
            compress("ingest", session=session, home=filled)
    assert stored(filled) == []


def test_a_small_memory_may_become_a_page(filled):
    text = compress("prepare", home=filled).text

    assert f"should have about {handoff.PAGE_TOKENS} tokens" in text

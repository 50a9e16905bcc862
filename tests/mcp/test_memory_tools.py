"""The tools of aether's memory, without a server: what they store and what they answer."""

from __future__ import annotations

import json
import re

import pytest

import aether
from aether.api import graph, working
from aether.api.colony import start_phase
from aether.api.home import read
from aether.errors import Conflict, InvalidInput, NotFound
from aether.mcp import tools
from aether.mcp.results import RESULT_CHARS
from aether.mcp.tools import (
    LEFT_OUT,
    REPLACED,
    compress,
    handoff_text,
    notes_on,
    statement,
)
from aether.memory import handoff
from aether.text.cleaning import without_injected
from tests.tables import rows

SAID = "Use SQLite for the index, because it is one file."


def items(home):
    return working.list_working_memory_items(home=home)


def remembered(home, content=SAID, **options):
    """Remember something and return its id."""
    return tools.remember(content, home=home, **options).text.split()[2].rstrip(".")


def test_notes_of_a_model_are_recalled_and_read(home):
    note = {"command": "create", "path": "/memories/deploy.md", "file_text": "Deploy by make ship."}
    aether.memory_tool(note, home=home)

    assert (
        "/memories/deploy.md · note · Deploy by make ship." in tools.recall("deploying ships", home=home).text
    )
    assert "# /memories/deploy.md\nDeploy by make ship." in tools.get(["/memories/deploy.md"], home=home).text
    assert "deploy.md" not in tools.recall("deploying ships", types=["decision"], home=home).text


def test_agents_side_by_side_claim_and_hand_over(home):
    assert tools.claim(home=home).text == "Nobody is at work."
    taken = tools.claim("take", "task:docs", "b1", "write them", home=home).text
    assert re.fullmatch(r"b1 holds task:docs until \S+Z; number \d+\.", taken)
    with pytest.raises(Conflict, match="b1 holds"):
        tools.claim("take", "task:docs", "b2", home=home)
    assert "b1: holds task:docs; write them" in tools.claim(home=home).text
    item = aether.add_working_memory_item("Use JSON.", "decision", home=home)

    put = tools.inbox("b2", "put", [item], "Look. <private>Mine.</private>", "b1", home=home).text
    assert put.startswith("Handed over to b2: packet_")
    assert put.endswith(tools.LEFT_OUT)
    aether.update_working_memory_item(item, {"content": "Use YAML."}, home=home)

    seen = tools.inbox("b2", "take", home=home).text
    assert "From b1 at " in seen
    assert f"- decision: Use YAML. [{item}] (WARNING: changed since revision" in seen
    assert tools.inbox("b2", home=home).text == "No packet waits."
    assert tools.claim("release", by="b1", home=home).text == "Released: task:docs."
    assert tools.claim("release", by="b1", home=home).text == "Released: nothing."


def test_remember_stores_an_item_with_its_source(home):
    added = remembered(home, type="decision", caste="builder")

    (item,) = items(home)

    assert (item["id"], item["content"], item["type"]) == (added, SAID, "decision")
    assert item["metadata"]["source"] == "mcp"
    assert item["metadata"]["caste"] == "builder"
    assert item["metadata"]["relevance_score"] == 0.8
    assert "protected" not in item["metadata"]


def test_a_model_may_set_relevance_and_protection(home):
    remembered(home, type="my own kind", relevance=0.3, protected=True)
    remembered(home, "Something else.", type="my own kind")

    newest, first = items(home)

    assert (first["metadata"]["relevance_score"], first["metadata"]["protected"]) == (0.3, True)
    assert newest["metadata"]["relevance_score"] == 0.4


def test_secrets_are_replaced_and_the_answer_says_so(home):
    answer = tools.remember("The key is api_key=sk-abcdefghijklmnop1234", home=home)

    assert items(home)[0]["content"] == "The key is api_key=<REDACTED>"
    assert "Secrets in it were replaced" in answer.text
    assert "Secrets" not in tools.remember(SAID, home=home).text


def test_left_out_text_is_reported(home):
    answer = tools.remember("foo <private>bar</private> baz is important", home=home)

    assert [item["content"] for item in items(home)] == ["foo  baz is important"]
    assert "private" in answer.text
    assert "left out" in answer.text
    assert "left out" not in tools.remember(SAID, home=home).text


@pytest.mark.parametrize(
    "said",
    [
        "Use the `<private>` element in docs because it is standard",
        "Decision: text inside <private> is skipped, and the tag must be lowercase.",
    ],
)
def test_a_tag_that_is_never_closed_is_text(home, said):
    answer = tools.remember(said, home=home)

    assert [item["content"] for item in items(home)] == [said]
    assert "left out" not in answer.text


def test_a_lone_tag_of_aethers_own_opens_no_block_later(home):
    added = remembered(home, "Mark it with <aether-memory occasion= tags. The parser must keep attributes.")

    (item,) = items(home)
    assert without_injected(item["content"]) == item["content"]
    assert "must keep attributes." in tools.get([added], home=home).text


def test_a_signal_reports_left_out_text_and_needs_a_rest(home):
    made = tools.signals("emit", context="the queue <private>mine</private>", home=home).text

    assert "left out" in made
    assert "mine" not in tools.signals(home=home).text
    with pytest.raises(InvalidInput, match="all of it is private"):
        tools.signals("emit", context="<private>all of it</private>", home=home)


def test_an_equal_item_is_not_stored_again(home):
    first = remembered(home, type="decision")

    answer = tools.remember(SAID, type="decision", home=home)

    assert answer.text == f"Remembered already, as {first}; nothing was stored."
    assert len(items(home)) == 1


def test_an_item_of_other_type_source_or_protection_is_stored(home):
    working.add_working_memory_item(SAID, "decision", home=home)
    for options in ({"type": "decision"}, {"type": "outcome"}, {"type": "decision", "protected": True}):
        remembered(home, **options)

    again = tools.remember(SAID, type="decision", protected=True, home=home).text

    assert len(items(home)) == 4
    assert "Remembered already" in again


def test_an_id_that_nothing_has_is_answered_with_a_tool_and_no_command(home):
    with pytest.raises(NotFound) as refused:
        tools.get(["nope"], home=home)

    assert "aether " not in str(refused.value)
    assert "Take ids from recall." in str(refused.value)


def test_blocks_of_aether_are_not_remembered(home):
    remembered(home, "<aether-memory>old</aether-memory>It is new.<private>For me.</private>")

    with pytest.raises(InvalidInput, match="own memory"):
        tools.remember("<aether-memory>old</aether-memory> ", home=home)
    with pytest.raises(InvalidInput, match="required"):
        tools.remember("  ", home=home)

    assert [item["content"] for item in items(home)] == ["It is new."]


def test_a_full_memory_asks_to_be_compressed(home):
    first = tools.remember("word " * 100, home=home)
    last = [tools.remember(f"{n} " + "word " * 18_000, home=home) for n in range(9)][-1]

    assert "call compress" not in first.text
    assert "call compress" in last.text
    assert "compression needed" in tools.status(home=home).text


def test_recalling_gives_an_index_with_ids_and_costs_that_lead_to_full_texts(home):
    added = remembered(home, SAID + " More of it." * 30, type="decision")

    index = tools.recall("sqlite index", home=home).text
    full = tools.get([added], home=home).text

    assert f"{added} · decision · " in index
    assert " tokens · Use SQLite" in index
    assert index.count("More of it.") < 30
    assert full.count("More of it.") == 30
    assert without_injected(full).strip() == ""


def test_recalling_finds_entities_of_the_graph(home):
    graph.create_entities(
        [{"name": "index", "entityType": "part", "observations": ["Kept in SQLite."]}], home=home
    )

    assert "entity:index · part · " in tools.recall("sqlite index", home=home).text
    assert "Kept in SQLite." in tools.get(["entity:index"], home=home).text
    with pytest.raises(NotFound, match="wolf"):
        tools.get(["entity:wolf"], home=home)


def test_recalling_is_filtered_by_type_place_and_time(home):
    places = {"project": "/src/shop", "conversation": "c-one", "timestamp": "2026-01-02T10:00:00Z"}
    placed = aether.add_working_memory_item("SQLite is used here.", "outcome", metadata=places, home=home)
    graph.create_entities([{"name": "index", "entityType": "part", "observations": ["SQLite."]}], home=home)
    remembered(home, SAID, type="decision")
    all_ = [{"types": ["outcome"]}, {"project": "shop"}, {"conversation": "C-ONE"}]

    for filters in all_:
        text = tools.recall("sqlite", **filters, home=home).text
        assert [line.split(" · ")[0] for line in text.splitlines() if " · " in line] == [placed]
    assert placed not in tools.recall("sqlite", since="2026-02-01", home=home).text
    with pytest.raises(InvalidInput, match="is not a time"):
        tools.recall("sqlite", since="soon", home=home)


def test_recall_says_when_nothing_matches(home):
    assert tools.recall("zebra", home=home).text.startswith("Nothing in memory")


@pytest.mark.parametrize("limit", [0, 51])
def test_an_index_has_bounds(home, limit):
    with pytest.raises(InvalidInput, match="Use 1 to 50"):
        tools.recall("x", limit=limit, home=home)


def test_a_timeline_marks_the_entry_among_its_neighbours(home):
    ids = [remembered(home, f"Note {n} says something.") for n in range(5)]

    text = tools.timeline(ids[2], before=1, after=1, home=home).text

    shown = [line for line in text.splitlines() if " · " in line]
    assert [each in line for each, line in zip(ids[1:4], shown, strict=True)] == [True] * 3
    assert [line.startswith("> ") for line in shown] == [False, True, False]
    with pytest.raises(InvalidInput, match="too many neighbours"):
        tools.timeline(ids[2], before=51, home=home)


def test_whole_documents_are_given_in_parts(home):
    for n in range(40):
        remembered(home, f"Note {n}. " + "It goes on and on. " * 60)

    first = tools.get(["memory"], home=home).text
    second = tools.get(["memory"], part=2, home=home).text

    assert len(first) < RESULT_CHARS + 500
    assert "part=2" in first
    assert first != second
    with pytest.raises(InvalidInput, match="no id"):
        tools.get([], home=home)


def test_signals_are_emitted_and_listed_without_secrets(home):
    assert tools.signals(home=home).text == "No signal is active."

    made = tools.signals("emit", type="REDIRECT", context="not password=hunter2hunter2", home=home)

    assert made.text.startswith("REDIRECT at strength 0.9: redirect_")
    assert "not password=<REDACTED>" in tools.signals(home=home).text
    with pytest.raises(InvalidInput, match="context is missing"):
        tools.signals("emit", home=home)


def test_a_phase_is_started_completed_and_decided_about(home):
    assert tools.phase(home=home).text == "State IDLE, phase none yet."
    assert (
        tools.phase("start", 1, goal="Search", home=home).text
        == "Phase 1 is started. State EXECUTING, phase 1."
    )
    assert "was running already" in tools.phase("start", home=home).text
    assert "Phase 1 awaits a decision" in tools.phase("complete", home=home).text
    assert "was complete already" in tools.phase("complete", home=home).text
    with pytest.raises(InvalidInput, match="decision is missing"):
        tools.phase("decide", home=home)
    decided = tools.phase("decide", decision="continue", note="good", home=home).text
    assert decided.startswith("Decided: continue.")
    assert "awaits" not in decided


def test_phase_zero_is_a_phase(home):
    assert tools.phase("start", 0, home=home).text == "Phase 0 is started. State EXECUTING, phase 0."


def test_the_status_says_where_memory_is_and_how_full(home):
    remembered(home)
    text = tools.status(home=home).text

    assert str(home) in text
    assert "1 item," in text
    assert "0 entities" in text


def test_signals_and_names_that_are_long_leave_an_answer_in_its_bounds(home):
    for n in range(14):
        tools.signals("emit", context=f"{n} " + "about the queue " * 9_000, home=home)
    graph.create_entities([{"name": "queue " * 50_000, "entityType": "t", "observations": ["o"]}], home=home)

    felt = tools.signals(home=home).text

    assert len(felt) <= RESULT_CHARS
    assert "weaker ones are active besides." in felt
    assert len(tools.recall("queue", home=home).text) <= RESULT_CHARS


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
    reported = []

    text = compress(home=filled, progress=reported.append).text

    assert re.match(r"Session \S+ of phase 2: 2 items, \d+ tokens became \d+\.", text)
    assert reported == ["preparing the hand-off", "asking extractive", "checking and storing the session"]
    assert len(stored(filled)) == 1


def test_compress_says_when_there_is_nothing_to_compress(home):
    assert "Working Memory is empty" in compress(home=home).text
    assert "Working Memory is empty" in compress("prepare", home=home).text


def test_preparing_gives_the_instruction_the_items_and_the_file(filled):
    text = compress("prepare", home=filled).text

    assert "You write the memory" in text
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


def test_an_invalid_session_is_rejected_with_the_fix(filled):
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


SECRET = "api_key=abcdef1234567890abcdef"


@rows(
    ("text", "kept", "note"),
    [
        ("plain", "plain", ""),
        ("a <private> b", "a <private> b", ""),
        ("a <aether-memory> b", "a ‹aether-memory> b", ""),
        ("a <private>b</private>", "a ", LEFT_OUT),
        (SECRET, "api_key=<REDACTED>", REPLACED),
        (f"<private>b</private>{SECRET}", "api_key=<REDACTED>", f"{LEFT_OUT} {REPLACED}"),
    ],
)
def test_nothing_is_left_out_without_a_word(text, kept, note):
    assert statement(text) == (kept, note)


def test_one_note_is_about_all_texts_of_a_value():
    assert notes_on([{"a": "plain", "b": ["<private>x</private>", "<private>y</private>"]}]) == LEFT_OUT
    assert notes_on([]) == ""


def test_the_history_of_a_file_has_decisions_first_and_no_other_file(home):
    remembered(home, "Keep state in src/store.py, because one writer is enough.", type="decision")
    remembered(home, "`pytest` failed: src/store.py:3", type="error")
    remembered(home, "data_store.py is another file.", type="decision")

    text = tools.file_history("store.py", home=home).text

    assert without_injected(text).strip() == ""
    assert text.index("one writer is enough") < text.index("failed: src/store.py:3")
    assert "another file" not in text
    assert tools.file_history("none.py", home=home).text == "Nothing is remembered about this file."
    with pytest.raises(InvalidInput, match="names no file"):
        tools.file_history("/", home=home)

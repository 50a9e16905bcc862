"""Recall over a home: three steps, and what a prompt is told."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import aether
from aether.api import admin as homes
from aether.api import briefing, hook_sessions, recall, working
from aether.api.importing import import_transcripts
from aether.api.prompt_recall import prompt_recall
from aether.errors import InvalidInput, NotFound
from aether.store import commit, spool
from aether.store.files import locked
from aether.text.cleaning import clean
from aether.text.tags import NOTICE
from tests.cli import stage
from tests.homes import configure

DECISION = (
    "Decided: Stripe webhook retries use exponential backoff with five attempts, because calls are dropped."
)
PROMPT = "Which retry policy did we pick for the Stripe webhook?"


@pytest.fixture
def place(tmp_path):
    return homes.init(tmp_path / ".aether")


def add(place, text, type="decision", *, at="2026-03-01T10:00:00Z", session=""):
    metadata = {
        "timestamp": at,
        **({"pointer": {"file": f"{session}.jsonl", "line": 1, "key": text}} if session else {}),
    }
    return str(aether.add_working_memory_item(text, type, 0.8, home=place, metadata=metadata))


def compressed(place):
    (place.parent / "session.json").write_text(json.dumps(stage.session()), encoding="utf-8")
    aether.prepare_compression_data(1, home=place, manual=True)
    aether.trigger_phase_boundary_compression(1, {**stage.session(), "key_decisions": []}, home=place)


def test_an_index_says_where_what_and_what_it_costs(place):
    item = add(place, DECISION)

    (line,) = recall.recall("stripe retries", home=place)

    assert (line.id, line.layer, line.type, line.at[:10]) == (
        item,
        "working_memory",
        "decision",
        "2026-03-01",
    )
    assert line.tokens == aether.get_working_memory_item(item, home=place)["token_count"]
    assert line.gist == DECISION[:99].rstrip() + "…"
    assert line.score > 0


def test_reading_does_not_wait_for_a_writer(place, monkeypatch):
    item = add(place, DECISION)
    configure(place, "[store]\nlock_timeout_seconds = 30\n")
    waits = []
    held = commit.write_lock

    def write_lock(home, *, timeout, **more):
        waits.append(timeout)
        return held(home, timeout=0, **more)

    monkeypatch.setattr(commit, "write_lock", write_lock)

    with locked(place):
        assert aether.get_working_memory_item(item, home=place)["content"] == DECISION
        assert aether.search_memory("stripe retries", home=place)[0]["id"] == item
    assert len(waits) == 2
    assert max(waits) < 1


def test_an_index_keeps_to_its_limit_and_its_budget(place):
    for number in range(5):
        add(place, f"Stripe note number {number} about retries")

    assert len(recall.recall("stripe retries", limit=3, home=place)) == 3
    assert len(recall.recall("stripe retries", budget=80, home=place)) in (1, 2)
    assert recall.recall("stripe retries", budget=1, home=place) == []
    with pytest.raises(InvalidInput, match="budget is 0"):
        recall.recall("stripe", budget=0, home=place)


def test_archived_items_sessions_and_patterns_are_found_and_read_in_full(place):
    archived = add(place, DECISION)
    working.clear_working_memory(home=place)
    add(place, "A note on atomic writes.", "observation")

    compressed(place)
    pattern = aether.extract_pattern_to_long_term(
        "Never block the loop", session_id="phase_1_by_hand", home=place
    )

    found = recall.full(["phase_1_by_hand", pattern, archived], home=place)
    assert [(one["layer"], one["type"]) for one in found] == [
        ("short_term_memory", "session"), ("long_term_memory", "preference"), ("archive", "decision"),
    ]  # fmt: skip
    assert found[2]["text"] == DECISION
    assert all(one["tokens"] > 0 for one in found)
    assert {line.id for line in recall.recall("stripe webhook", home=place)} >= {archived}


def test_the_cost_in_the_index_is_the_cost_of_the_text(place):
    add(place, "A note on atomic writes.", "observation")
    compressed(place)
    aether.extract_pattern_to_long_term("Never block the loop", session_id="phase_1_by_hand", home=place)
    count = recall.counter_of(aether.show("memory", home=place))

    for line in recall.timeline("phase_1_by_hand", home=place):
        (entry,) = recall.full([line.id], home=place)
        assert line.tokens == entry["tokens"] == count(entry["text"])


@pytest.mark.parametrize("ask", [recall.timeline, lambda name, home: recall.full([name], home=home)])
def test_an_id_of_nothing_is_named(place, ask):
    with pytest.raises(NotFound, match="wm_none"):
        ask("wm_none", home=place)


def test_a_timeline_goes_across_the_archive_by_time(place):
    first, last = (
        add(place, "first", at="2026-03-01T00:00:00Z"),
        add(place, "last", at="2026-03-03T00:00:00Z"),
    )
    working.clear_working_memory(home=place)
    middle = add(place, "middle", at="2026-03-02T00:00:00Z")

    assert [line.id for line in recall.timeline(middle, home=place)] == [first, middle, last]
    assert [line.id for line in recall.timeline(middle, before=0, after=0, home=place)] == [middle]
    with pytest.raises(InvalidInput, match="before is -1"):
        recall.timeline(middle, before=-1, home=place)


def test_the_timeline_of_an_archived_conversation_has_the_entries_around_it(place):
    first, last = (
        add(place, text, at=f"2026-03-0{day}T00:00:00Z") for day, text in ((1, "first"), (3, "last"))
    )
    said = {"role": "user", "content": "The middle of it all.", "timestamp": "2026-03-02T00:00:00Z"}
    aether.archive_conversations([{"id": "talk", "title": "A talk", "messages": [said]}], home=place)

    found = recall.timeline("talk", home=place)

    assert [(line.id, line.layer) for line in found] == [
        (first, "working_memory"), ("talk", "archive"), (last, "working_memory"),
    ]  # fmt: skip
    assert found[1].gist == "The middle of it all."


@pytest.mark.parametrize("where", ["live", "archived"])
def test_a_prompt_gets_the_entries_that_match_it(place, where):
    item = add(place, DECISION)
    if where == "archived":
        working.clear_working_memory(home=place)

    said = prompt_recall(PROMPT, budget=400, home=place)

    assert said.startswith('<aether-memory occasion="prompt" at="')
    assert NOTICE in said
    assert "- 2026-03-01 (" in said
    assert f"decision: {DECISION} [{item}]" in said
    assert said.endswith(f"In full: aether recall --full {item}\n</aether-memory>")
    assert clean(said) == ""


def test_a_prompt_gets_nothing_that_was_taken_out_again(place):
    item = add(place, DECISION)
    aether.undo(home=place)

    assert prompt_recall(PROMPT, budget=400, home=place) == ""
    [hit] = aether.search_memory(PROMPT, home=place)
    assert (hit["id"], hit["archived"]["why"]) == (item, "removed")


def test_a_prompt_gets_the_old_entry_that_has_its_name_where_all_its_words_are_common(place):
    item = add(
        place, "We pin gateway.py to one worker, for the proxy of the customer has no sticky sessions."
    )
    other = [f"The gateway in py{nth}.toml moved {nth} rows of the ledger tonight." for nth in range(60)]
    texts = [{"content": text, "type": "outcome"} for text in other]
    texts += [{"content": f"File {nth}.py has rows and a ledger.", "type": "outcome"} for nth in range(60)]
    aether.add_working_memory_items(texts, home=place)
    working.clear_working_memory(home=place)

    assert item in prompt_recall("why are rows of the ledger late in gateway.py", budget=400, home=place)


@pytest.mark.parametrize("prompt", ["", "ok", "/clear", "What colour should the button have?"])
def test_most_prompts_get_nothing(place, prompt):
    add(place, DECISION)

    assert prompt_recall(prompt, budget=400, home=place) == ""


def test_an_empty_memory_says_nothing_and_asking_changes_nothing(place):
    before = aether.get_memory_status(home=place)

    assert prompt_recall(PROMPT, budget=400, home=place) == ""
    assert aether.get_memory_status(home=place) == before


@pytest.mark.parametrize("budget", [0, 20])
def test_entries_over_the_budget_are_left_out(place, budget):
    add(place, DECISION)

    assert prompt_recall(PROMPT, budget=budget, home=place) == ""


def test_a_small_budget_takes_fewer(place):
    add(place, "We keep parse_header because the old client needs it.")
    add(place, "The limit inside parse_header is nine kilobytes by contract.")

    whole = prompt_recall("where is parse_header used?", budget=400, home=place)
    less = prompt_recall("where is parse_header used?", budget=130, home=place)

    assert (whole.count("\n- "), less.count("\n- ")) == (2, 1)


@pytest.mark.parametrize("archived", [False, True])
def test_notes_of_a_session_are_recalled_in_others_only(place, archived):
    add(place, DECISION, session="mine")
    if archived:
        working.clear_working_memory(home=place)

    assert prompt_recall(PROMPT, budget=400, home=place, session="mine") == ""
    assert prompt_recall(PROMPT, budget=400, home=place, session="other") != ""


def test_an_entry_is_injected_once_until_the_context_starts_empty(place):
    item = add(place, DECISION)

    said = [bool(prompt_recall(PROMPT, budget=400, home=place, session="a/b")) for _ in range(2)]
    hook_sessions.start_injected(place, "a/b")
    again = prompt_recall(PROMPT, budget=400, home=place, session="a/b")
    hook_sessions.start_injected(place, "c", [item])

    assert said == [True, False]
    assert again != ""
    assert prompt_recall(PROMPT, budget=400, home=place, session="c") == ""


@pytest.mark.parametrize("text", ["{", "[1, 2]", '{"a": 1}', "\xff"])
def test_a_damaged_injected_log_counts_as_missing(place, text):
    add(place, DECISION)
    (place / "hooks" / "told").mkdir(parents=True)
    (place / "hooks" / "told" / "s.json").write_bytes(text.encode("latin-1"))

    assert prompt_recall(PROMPT, budget=400, home=place, session="s") != ""


def test_noting_that_fails_is_no_reason_to_say_nothing(place):
    add(place, DECISION)
    (place / "hooks").write_text("in the way", encoding="utf-8")

    assert prompt_recall(PROMPT, budget=400, home=place, session="s") != ""
    hook_sessions.start_injected(place, "s")


def test_memory_of_one_project_is_not_recalled_in_another(tmp_path):
    mine, other = homes.init(tmp_path / "a" / ".aether"), homes.init(tmp_path / "b" / ".aether")
    add(mine, DECISION)

    assert prompt_recall(PROMPT, budget=400, home=other) == ""


def test_lines_of_the_briefing_are_not_recalled_again(place):
    add(place, DECISION)

    assert "Stripe webhook" in briefing.session_brief(place, "startup", "s")
    assert prompt_recall(PROMPT, budget=400, home=place, session="s") == ""
    assert prompt_recall(PROMPT, budget=400, home=place, session="other") != ""


def test_a_prompt_waits_for_no_lock_and_takes_nothing_in(place):
    add(place, DECISION)
    spool.put(
        str(place),
        {"event": "UserPromptSubmit", "session": "s", "at": "2026-03-01T10:00:00Z", "prompt": PROMPT},
    )

    with locked(place):
        assert prompt_recall(PROMPT, budget=400, home=place, session="s") != ""

    assert len(spool.waiting(str(place))) == 1


def test_what_was_said_answers_a_question_that_names_something_and_nothing_unasked(place, tmp_path):
    file = tmp_path / "chat.jsonl"
    lines = [
        {"role": "user", "content": "please look at the exporter"},
        {
            "role": "assistant",
            "content": "The flush in commitLedgerRow was dropped since the disk was too slow.",
        },
        {"role": "user", "content": "ok"},
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    import_transcripts([file], home=place)
    working.clear_working_memory(home=place)

    asked = prompt_recall("why was the flush in commitLedgerRow dropped?", budget=400, home=place)
    unasked = prompt_recall("now rename commitLedgerRow everywhere", budget=400, home=place)

    assert "too slow" in asked
    assert "agent wrote" not in unasked


def test_the_question_just_asked_is_no_hit(place):
    question = "why was the flush dropped?"
    add(place, question, "user_input")
    add(place, "The flush was dropped because the disk is slow.")

    assert [hit["type"] for hit in recall.search_memory(question, home=place)] == ["decision"]


def test_what_a_prompt_recalls_is_looked_up_without_the_search():
    code = "import sys, aether.api.prompt_recall; print(*sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert not {"aether.search.rank", "aether.api.recall"} & {*done.stdout.split()}

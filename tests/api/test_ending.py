"""Ending what memory says: one change that undo reverses, after which no brief has the entry."""

import pytest

import aether
from aether.api import briefing, entries, review, working
from aether.api.home import change
from aether.errors import InvalidInput, NotFound
from aether.mcp import tools
from aether.store.authors import Author
from aether.types import Change
from tests.api.calls import memory
from tests.memory import briefs


def brief(home):
    return [(line["kind"], line["text"]) for line in briefing.brief(home)["lines"]]


def add(home, text, type="constraint", **more):
    return str(working.add_note(text, type, 0.9, home=home, **more))


@pytest.fixture
def stated(home):
    """Return a home with a session that states an open point."""
    session = briefs.session(
        "one", summary="", stated={"open": [briefs.statement("CI is red")]}, related_patterns=[], context=""
    )
    patch = [
        {"op": "add", "path": "/short_term_memory/sessions/-", "value": session | {"original_tokens": 9, "compressed_tokens": 1, "compression_ratio": 9.0}},
        {"op": "replace", "path": "/short_term_memory/current_sessions", "value": 1},
    ]  # fmt: skip
    change(home, lambda state: Change({"memory": patch}), Author("test"))
    return home


def test_what_is_resolved_is_in_no_brief_until_it_is_undone(home):
    blocker = add(home, "prod DB is down", "blocker")
    assert brief(home) == [("open", "prod DB is down")]

    done = aether.resolve_memory(blocker, home=home)

    assert (done.id, done.how, done.text) == (blocker, "resolved", "prod DB is down")
    assert brief(home) == []
    assert entries.about(blocker, home=home).state == "resolved"
    aether.undo(home=home)
    assert brief(home) == [("open", "prod DB is down")]
    assert entries.about(blocker, home=home).state == "in force"


def test_the_word_rule_makes_a_rule_when_it_is_added_and_when_it_is_corrected(home):
    typed = aether.add_working_memory_item("At most 4 workers", "rule", home=home)
    corrected = aether.add_working_memory_item("At most 8 threads", "outcome", home=home)
    aether.update_working_memory_item(corrected, {"type": "rule"}, home=home)

    assert sorted(brief(home)) == [("rule", "At most 4 workers"), ("rule", "At most 8 threads")]
    types = {item["id"]: item["type"] for item in aether.list_working_memory_items(home=home)}
    assert types == {typed: "constraint", corrected: "constraint"}


def test_a_text_in_the_place_of_an_entry_is_a_note_of_its_type(home):
    older = add(home, "At most 4 workers")

    done = aether.supersede_memory(older, "At most 8 workers", evidence="person", home=home)

    assert brief(home) == [("rule", "At most 8 workers")]
    about = entries.about(older, home=home)
    assert (about.state, about.by) == ("superseded", done.by)
    aether.undo(home=home)
    assert brief(home) == [("rule", "At most 4 workers")]


def test_another_entry_may_take_the_place(home):
    older, newer = add(home, "At most 4 workers"), add(home, "At most 8 workers", "decision")

    assert aether.supersede_memory(older, newer, home=home).by == newer
    assert brief(home) == [("decision", "At most 8 workers")]
    assert entries.about(older, home=home).by == newer


def test_a_statement_of_a_session_ends_too(stated):
    assert brief(stated) == [("open", "CI is red")]

    aether.supersede_memory("one/open/0", "Only Windows is red", home=stated)

    assert brief(stated) == [("open", "Only Windows is red")]
    aether.undo(home=stated)
    aether.resolve_memory("one/open/0", home=stated)
    assert brief(stated) == []
    assert memory(stated)["short_term_memory"]["sessions"][0]["open"][0]["ended"]["how"] == "resolved"


def test_a_pattern_ends_too(home):
    learned = {
        **briefs.pattern("Build before the tests run.", "success_pattern"),
        "created_at": briefs.at(1), "associative_links": [], "metadata": {},
    }  # fmt: skip
    patch = [{"op": "add", "path": "/long_term_memory/patterns/-", "value": learned}]
    change(home, lambda state: Change({"memory": patch}), Author("test"))
    assert brief(home) == [("lesson", "Build before the tests run.")]

    aether.resolve_memory(learned["id"], home=home)

    assert brief(home) == []


def test_what_is_not_there_or_is_nothing_ends_nothing(home):
    older = add(home, "At most 4 workers")

    for given in ("wm_1", "one/open/0", "phase_1_x/rules/0"):
        with pytest.raises(NotFound, match="no entry"):
            aether.resolve_memory(given, home=home)
    with pytest.raises(NotFound, match="no entry"):
        aether.supersede_memory(older, "wm_1", home=home)
    for by in (" ", older):
        with pytest.raises(InvalidInput, match="cannot take the place"):
            aether.supersede_memory(older, by, home=home)
    assert brief(home) == [("rule", "At most 4 workers")]


def test_a_note_that_ends_others_is_one_change(home):
    older, blocker = add(home, "At most 4 workers"), add(home, "CI is red", "blocker")

    newer = add(home, "At most 8 workers", supersedes=[older], resolves=[blocker])

    assert brief(home) == [("rule", "At most 8 workers")]
    assert entries.about(older, home=home).by == newer
    assert entries.about(blocker, home=home).state == "resolved"
    aether.undo(home=home)
    assert {text for _, text in brief(home)} == {"At most 4 workers", "CI is red"}
    with pytest.raises(NotFound, match="no entry"):
        add(home, "Nothing", resolves=["wm_1"])
    assert {text for _, text in brief(home)} == {"At most 4 workers", "CI is red"}


def test_an_agent_remembers_what_ends_others(home):
    older = add(home, "The pool has 4 workers", "decision")

    answer = tools.remember("The pool has 8 workers", "decision", supersedes=[older], home=home)

    assert [text for _, text in brief(home)] == ["The pool has 8 workers"]
    assert answer.text.startswith("Remembered as")


def test_an_agent_only_proposes_to_end_a_persons_rule(home):
    older = add(home, "At most 4 workers")

    answers = [
        tools.remember("At most 8 workers", "constraint", supersedes=[older], home=home),
        tools.remember("The limit is gone", "decision", resolves=[older], home=home),
    ]

    assert brief(home) == [("rule", "At most 4 workers")]
    assert all("once the person accepts it" in answer.text for answer in answers)
    with pytest.raises(NotFound):
        tools.remember("At most 9 workers", "constraint", supersedes=["wm_none"], home=home)
    newer, settled, ending = review.waiting(home=home)
    assert [item["metadata"]["proposal"]["how"] for item in (newer, settled, ending)] == [
        "supersede",
        "new",
        "resolve",
    ]
    assert review.decide([ending["id"]], accept=True, home=home).entries == [older]
    assert brief(home) == []
    review.decide([newer["id"]], accept=True, home=home)
    assert brief(home) == [("rule", "At most 8 workers")]

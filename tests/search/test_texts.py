"""Entries of the three layers as search reads them."""

from __future__ import annotations

from aether.search.texts import entry_castes, entry_phases, entry_text, entry_texts, search_entries
from tests.tables import rows

LEARNED = {
    "id": "p",
    "pattern": "tests first",
    "metadata": {"related_phases": [2], "related_castes": ["scout"]},
}


def only_entry(layer, part, value):
    return next(search_entries({layer: {part: [value]}}))


@rows(
    "memory",
    [
        {},
        {"working_memory": None},
        {"working_memory": {"items": None}},
        {"short_term_memory": {"sessions": ["x"]}},
    ],
)
def test_parts_that_are_missing_hold_nothing(memory):
    assert list(search_entries(memory)) == []


def test_a_session_is_searched_in_all_its_texts_and_in_no_other():
    entry = only_entry(
        "short_term_memory",
        "sessions",
        {
            "session_id": "s",
            "summary": "alpha",
            "key_decisions": [{"decision": "beta", "rationale": "gamma"}],
            "outcomes": None,
            "high_value_items": [{"content": "delta", "relevance_score": 0.9}],
        },
    )

    assert [text for _, text in entry.fields] == ["[alpha]", "[beta]", "[gamma]", "[delta]"]
    assert entry_texts(entry) == ["alpha", "beta", "gamma", "delta"]
    assert (entry_text(entry), entry.row.id, entry.row.type) == ("alpha", "s", "session")


def test_a_decision_weighs_more_than_the_summary_and_context_less():
    session = only_entry(
        "short_term_memory", "sessions", {"summary": "a", "key_decisions": [{"decision": "b"}]}
    )
    pattern = only_entry("long_term_memory", "patterns", LEARNED | {"metadata": {"context": "ctx"}})

    assert [weight for weight, _ in session.fields] == [1.0, 1.2]
    assert [weight for weight, _ in pattern.fields] == [1.0, 0.5]


def test_a_pattern_belongs_to_all_its_phases_and_castes():
    entry = only_entry("long_term_memory", "patterns", LEARNED)

    assert (entry_phases(entry), entry_castes(entry)) == ({"", "2"}, {"", "scout"})


@rows("metadata", [None, [], {"related_phases": None}])
def test_a_pattern_without_usable_metadata_belongs_nowhere(metadata):
    entry = only_entry("long_term_memory", "patterns", {"id": "p", "pattern": "x", "metadata": metadata})

    assert entry_phases(entry) == {""}
    assert entry_castes(only_entry("working_memory", "items", {"id": "i", "content": "x"})) == {""}


def test_only_items_are_each_others_neighbours():
    memory = {
        "working_memory": {"items": [{"id": "a"}, {"id": "b"}]},
        "short_term_memory": {"sessions": [{"id": "s"}, {"id": "t"}]},
        "long_term_memory": {"patterns": [{"id": "p"}]},
    }
    first, second, *others = [entry.place for entry in search_entries(memory)]

    assert second - first == 1
    assert all(abs(each - two) > 100 for each in others for two in (first, *others) if each != two)

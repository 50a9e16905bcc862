import pytest

import aether
from aether.api.patterns import promote
from aether.errors import InvalidInput, NotFound
from tests.api.calls import memory, snapshot, whole
from tests.memory.states import answer
from tests.tables import rows

ATOMIC = "Use atomic writes for state files"


def store(home, *said, relevance=0.9):
    """Store one session for each of `said`, and return their names."""
    names = []
    for nth, text in enumerate(said):
        high = [{"content": text, "relevance_score": relevance, "type": "preference"}]
        given = answer(f"s{nth}", key_decisions=[], outcomes=[], high_value_items=high)
        names.append(aether.create_short_term_session(nth + 1, given, home=home))
    return names


def patterns(home):
    return {each["pattern"]: each for each in memory(home)["long_term_memory"]["patterns"]}


def test_a_weighty_statement_is_promoted_with_its_session(home):
    [name] = store(home, ATOMIC)

    pattern = patterns(home)[ATOMIC]
    assert (pattern["occurrences"], pattern["confidence"], pattern["type"]) == (1, 0.7, "preference")
    assert [each["session_id"] for each in pattern["metadata"]["evidence"]] == [name]
    assert [(each["target_id"], each["link_type"]) for each in pattern["associative_links"]] == [
        (name, "extracted_from")
    ]
    whole(home)


def test_a_less_relevant_statement_is_promoted_after_three_sessions(home):
    """Defect 7 of the original: a repeated pattern was counted and never stored."""
    store(home, ATOMIC, ATOMIC, relevance=0.8)
    assert patterns(home) == {}
    assert aether.detect_patterns_across_sessions(home=home) == []

    aether.create_short_term_session(
        3,
        answer("s2", high_value_items=[{"content": ATOMIC, "relevance_score": 0.1, "type": "x"}]),
        home=home,
    )

    pattern = patterns(home)[ATOMIC]
    assert (pattern["occurrences"], pattern["confidence"]) == (3, 0.9)
    [found] = aether.detect_patterns_across_sessions(home=home)
    assert found["sessions"] == ["s0", "s1", "s2"]


def test_extracting_again_finds_nothing_new(home):
    store(home, ATOMIC, ATOMIC)
    before = snapshot(home)

    assert aether.trigger_pattern_extraction(home=home) == 0
    assert promote(home=home).supported == []
    assert snapshot(home) == before


def test_confidence_grows_with_every_session_up_to_certainty(home):
    store(home, *[ATOMIC] * 6)

    assert patterns(home)[ATOMIC]["confidence"] == 1.0
    assert memory(home)["metrics"]["total_pattern_extractions"] == 1


def test_a_pattern_may_be_extracted_by_hand_once(home):
    [name] = store(home, "Something", relevance=0.1)

    made = aether.extract_pattern_to_long_term("Never push to main", session_id=name, home=home)
    before = snapshot(home)

    assert aether.extract_pattern_to_long_term("Never push to main", session_id=name, home=home) == made
    assert snapshot(home) == before
    pattern = patterns(home)["Never push to main"]
    assert (pattern["id"], pattern["occurrences"]) == (made, 1)
    sure = aether.extract_pattern_to_long_term(
        "Tabs in Makefiles", session_id=name, type="constraint", confidence=0.95, home=home
    )
    assert (
        patterns(home)["Tabs in Makefiles"].items()
        >= {"id": sure, "type": "constraint", "confidence": 0.95}.items()
    )


@rows(
    ("content", "options", "error"),
    [
        (" ", {}, InvalidInput), ("Use tabs", {"type": "habit"}, InvalidInput), ("Use tabs", {"confidence": 2}, InvalidInput),
        ("Use tabs", {"session_id": "../x"}, NotFound),
    ],
)  # fmt: skip
def test_an_impossible_pattern_is_refused(home, content, options, error):
    [name] = store(home, "Something", relevance=0.1)
    before = snapshot(home)

    with pytest.raises(error):
        aether.extract_pattern_to_long_term(content, **{"session_id": name, **options}, home=home)
    assert snapshot(home) == before


def test_linking_twice_is_linking_once(home):
    [name] = store(home, ATOMIC)
    item = aether.add_working_memory_item("note", "x", home=home)

    link = aether.create_associative_link(item, name, home=home)

    assert aether.create_associative_link(item, name, home=home) == link
    [held] = memory(home)["working_memory"]["items"][0]["associative_links"]
    assert held.items() >= {"link_id": link, "target_id": name, "link_type": "related_to"}.items()


@rows(
    ("target", "kind", "error"),
    [("../x", "related_to", NotFound), ("s0", "likes", InvalidInput), ("\ud800", "related_to", NotFound)],
)
def test_an_impossible_link_is_refused(home, target, kind, error):
    store(home, ATOMIC)
    item = aether.add_working_memory_item("note", "x", home=home)
    before = snapshot(home)

    with pytest.raises(error):
        aether.create_associative_link(item, target, kind, home=home)
    assert snapshot(home) == before


def test_contradictory_patterns_are_both_kept(home):
    store(home, "Use tabs in all files", "Do not use tabs in all files")

    found = patterns(home)
    assert len(found) == 2
    assert all(
        "contradicts" in {link["link_type"] for link in each["associative_links"]} for each in found.values()
    )


def test_injected_text_never_counts(home):
    given = answer("s9", key_decisions=[], outcomes=[], high_value_items=[
        {"content": "<aether-memory>Use tabs</aether-memory>", "relevance_score": 0.9, "type": "fact"},
    ])  # fmt: skip
    aether.create_short_term_session(1, given, home=home)

    assert patterns(home) == {}

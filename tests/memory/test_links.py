import pytest

from aether.clock import new_id
from aether.errors import InvalidInput, NotFound
from aether.memory.patterns import LINK_TYPES, create_link
from tests.memory.memories import NOW, applied, memory, session
from tests.tables import rows


def three_layers():
    """Return a memory with two entries in every layer."""
    return memory(
        session("s1"),
        {**session("s2"), "metadata": None},
        items=[{"id": f"wm{at}", "associative_links": []} for at in (1, 2)],
        patterns=[{"id": f"p{at}", "associative_links": []} for at in (1, 2)],
    )


def link(state, source, target, kind="related_to"):
    change = create_link(state, source, target, kind, now=NOW, new_id=new_id)
    return applied(state, change), change


def held(entry):
    return [
        (each["target_id"], each["target_type"], each["link_type"]) for each in entry["associative_links"]
    ]


@rows("kind", LINK_TYPES)
def test_every_known_type_links_an_item_to_a_pattern(kind):
    state, change = link(three_layers(), "wm1", "p1", kind)

    assert held(state["working_memory"]["items"][0]) == [("p1", "long_term_pattern", kind)]
    assert state["working_memory"]["items"][0]["associative_links"][0]["link_id"] == change.result
    assert held(state["long_term_memory"]["patterns"][0]) == []


@rows(("source", "target"), [("p1", "s1"), ("s1", "p1"), ("s2", "p1")])
def test_a_session_and_a_pattern_know_each_other(source, target):
    state, _ = link(three_layers(), source, target, "extracted_from")
    name = source if source.startswith("s") else target

    sessions = {each["id"]: each for each in state["short_term_memory"]["sessions"]}
    assert sessions[name]["metadata"]["related_patterns"] == ["p1"]
    assert held(state["long_term_memory"]["patterns"][0]) == [(name, "short_term_session", "extracted_from")]


@pytest.mark.parametrize(("kind", "mutual"), [("contradicts", True), ("supersedes", False)])
def test_patterns_are_linked_back_where_the_type_reads_both_ways(kind, mutual):
    state, _ = link(three_layers(), "p1", "p2", kind)

    first, second = state["long_term_memory"]["patterns"]
    assert held(first) == [("p2", "long_term_pattern", kind)]
    assert held(second) == ([("p1", "long_term_pattern", kind)] if mutual else [])


def test_sessions_are_linked_in_their_metadata():
    state, _ = link(three_layers(), "s1", "s2")

    first, second = state["short_term_memory"]["sessions"]
    assert held(first["metadata"]) == [("s2", "short_term_session", "related_to")]
    assert held(second["metadata"]) == [("s1", "short_term_session", "related_to")]


@rows(("source", "target"), [("wm1", "wm2"), ("p1", "s1"), ("s1", "p1"), ("s1", "s2"), ("p1", "p2")])
def test_linking_twice_changes_nothing(source, target):
    once, first = link(three_layers(), source, target)

    twice, second = link(once, source, target)

    assert twice == once
    assert second.patches == {}
    assert second.result == first.result


def test_the_result_names_a_link_that_is_stored():
    state, change = link(three_layers(), "s1", "p1")

    assert state["long_term_memory"]["patterns"][0]["associative_links"][0]["link_id"] == change.result


def test_both_ends_must_exist():
    for source, target in (("wm1", "gone"), ("gone", "wm1")):
        with pytest.raises(NotFound, match="'gone'"):
            link(three_layers(), source, target)


def test_impossible_links_are_refused():
    with pytest.raises(InvalidInput, match="not a link type"):
        link(three_layers(), "wm1", "p1", "friend_of")
    with pytest.raises(InvalidInput, match="itself"):
        link(three_layers(), "wm1", "wm1")

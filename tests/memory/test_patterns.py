import pytest

from aether.errors import InvalidInput, NotFound
from aether.memory.patterns import extract_pattern, pattern_type
from tests.memory.memories import NOW, applied, memory, new_id, patterns_of, session
from tests.tables import rows


def extract(state, content, **options):
    options = {"session_id": "s1", "now": NOW, "new_id": new_id, **options}
    return extract_pattern(state, content, **options)


@rows(
    ("text", "expected"),
    [
        ("The import failed twice", "failure_pattern"),
        ("Errors in the log must be read", "failure_pattern"),
        ("A bug that should not come back", "failure_pattern"),
        ("Batching worked, and should be kept", "success_pattern"),
        ("You must not push to main", "constraint"),
        ("Avoiding globals keeps tests simple", "constraint"),
        ("Tabs in Makefiles", "preference"),
        ("Debug output of the worker, terrorism of layout, mustard", "preference"),
        ("The working directory is clean", "preference"),
    ],
)
def test_the_type_is_told_by_whole_words_and_the_first_match_wins(text, expected):
    assert pattern_type(text) == expected


def test_a_new_pattern_names_its_session_and_the_session_names_it():
    state = memory(session("s1", phase=3, metadata={"castes": ["builder"]}))

    change = extract(state, "Use atomic writes")
    after = applied(state, change)

    (pattern,) = patterns_of(after)
    assert change.result == pattern["id"]
    assert (pattern["pattern"], pattern["confidence"], pattern["occurrences"]) == (
        "Use atomic writes",
        0.7,
        1,
    )
    assert pattern["metadata"]["evidence"] == [{"session_id": "s1", "phase": 3, "text": "Use atomic writes"}]
    assert (pattern["metadata"]["related_phases"], pattern["metadata"]["related_castes"]) == (
        [3],
        ["builder"],
    )
    assert pattern["associative_links"][0]["target_id"] == "s1"
    assert after["short_term_memory"]["sessions"][0]["metadata"]["related_patterns"] == [pattern["id"]]
    assert after["metrics"]["total_pattern_extractions"] == 1


def test_the_same_session_never_counts_twice():
    state = applied(s := memory(session("s1")), extract(s, "Use atomic writes"))

    change = extract(state, "Atomic writes must be used")

    assert change.patches == {}
    assert change.result == patterns_of(state)[0]["id"]


def test_another_session_raises_occurrences_and_confidence():
    state = memory(session("s1"), session("s2", phase=2))
    state = applied(state, extract(state, "Use atomic writes"))

    state = applied(state, extract(state, "Atomic writes must be used", session_id="s2"))

    (pattern,) = patterns_of(state)
    assert (pattern["pattern"], pattern["confidence"], pattern["occurrences"]) == (
        "Use atomic writes",
        0.8,
        2,
    )
    assert pattern["metadata"]["related_phases"] == [1, 2]
    assert [each["text"] for each in pattern["metadata"]["evidence"]][1] == "Atomic writes must be used"
    assert state["metrics"]["total_pattern_extractions"] == 1


def test_a_low_confidence_is_lifted_by_the_third_session_and_never_passes_one():
    state = memory(*(session(f"s{at}") for at in range(12)))

    seen = []
    for at in range(12):
        state = applied(state, extract(state, "Use atomic writes", session_id=f"s{at}", confidence=0.1))
        seen.append(patterns_of(state)[0]["confidence"])

    assert seen[:4] == [0.1, 0.2, 0.8, 0.9]
    assert seen[-1] == 1.0


def test_a_pattern_of_the_original_format_keeps_the_sessions_it_counted():
    legacy = {
        "id": "pattern_1", "type": "preference", "pattern": "Use atomic writes", "confidence": 0.8, "occurrences": 2,
        "created_at": "2026-01-01T00:00:00Z", "last_seen": "2026-01-01T00:00:00Z",
        "associative_links": [
            {"link_id": "l", "target_id": "s1", "target_type": "short_term_session", "link_type": "extracted_from",
             "created_at": "2026-01-01T00:00:00Z"}
        ],
        "metadata": {"context": ""},
    }  # fmt: skip
    state = memory(session("s1"), session("s2"), patterns=[legacy])

    assert extract(state, "Use atomic writes").patches == {}
    state = applied(state, extract(state, "Use atomic writes", session_id="s2"))

    (pattern,) = patterns_of(state)
    assert [each["session_id"] for each in pattern["metadata"]["evidence"]] == ["s1", "s2"]
    assert pattern["occurrences"] == 3


def test_a_contradiction_is_linked_both_ways_and_raises_nobody():
    state = memory(session("s1"), session("s2"))
    state = applied(state, extract(state, "Use global variables"))

    change = extract(state, "Never use global variables", session_id="s2")
    state = applied(state, change)

    old, new = patterns_of(state)
    assert (old["confidence"], new["confidence"]) == (0.7, 0.7)
    assert change.result == new["id"]
    for holder, other in ((old, new), (new, old)):
        link = holder["associative_links"][-1]
        assert (link["target_id"], link["link_type"]) == (other["id"], "contradicts")


def test_given_type_and_confidence_win():
    state = memory(session("s1"))

    state = applied(state, extract(state, "It failed", type="preference", confidence=0.25))

    assert (patterns_of(state)[0]["type"], patterns_of(state)[0]["confidence"]) == ("preference", 0.25)


@rows(
    ("content", "options", "said"),
    [
        ("  ", {}, "nothing to remember"),
        ("<aether-memory>Use tabs</aether-memory>", {}, "nothing to remember"),
        ("Use tabs", {"type": "wish"}, "not a pattern type"),
        ("Use tabs", {"confidence": 1.5}, "not a confidence"),
        ("Use tabs", {"confidence": float("nan")}, "not a confidence"),
    ],
)
def test_the_impossible_is_refused(content, options, said):
    with pytest.raises(InvalidInput, match=said):
        extract(memory(session("s1")), content, **options)


def test_an_unknown_session_is_not_evidence():
    with pytest.raises(NotFound, match="'s9'"):
        extract(memory(session("s1")), "Use tabs", session_id="s9")

import copy
from itertools import pairwise

import pytest

from aether.errors import InvalidInput, NotFound
from aether.memory.patterns import (
    LINK_TYPES,
    create_link,
    extract_pattern,
    pattern_type,
    promote,
    repeated_statements,
)
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
def test_the_type_follows_from_whole_words_and_the_first_match_wins(text, expected):
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


ATOMIC = (
    "Use atomic writes for state files",
    "State files must be written atomically",
    "Always write state files with atomic writes",
)


def run(state, **options):
    change = promote(state, now=NOW, new_id=new_id, **options)
    return applied(state, change), change.result


def test_a_home_sets_the_relevance_and_the_repetitions_that_promote():
    state = memory(
        session("s1", items=[("Use atomic writes", 0.7)]),
        session("s2", items=[("Logs go to stderr", 0.3)], day=2),
    )
    assert patterns_of(run(state)[0]) == []

    state["pattern_extraction"]["high_relevance"] = 0.6
    assert [each["pattern"] for each in patterns_of(run(state)[0])] == ["Use atomic writes"]

    state = memory(*(session(f"s{day}", decisions=[ATOMIC[0]], day=day) for day in (1, 2)))
    assert (patterns_of(run(state)[0]), repeated_statements(state)) == ([], [])

    state["pattern_extraction"]["repeated_success"] = 2
    assert len(patterns_of(run(state)[0])) == len(repeated_statements(state)) == 1


def test_three_sessions_that_say_the_same_differently_anywhere_make_one_pattern():
    state = memory(
        session("s1", items=[(ATOMIC[0], 0.3)], phase=1, day=1),
        session("s2", decisions=[ATOMIC[1]], phase=2, day=2),
        session("s3", outcomes=[ATOMIC[2]], phase=3, day=3),
    )

    state, _ = run(state)

    (pattern,) = patterns_of(state)
    assert (pattern["occurrences"], pattern["confidence"]) == (3, 0.9)
    assert pattern["metadata"]["related_phases"] == [1, 2, 3]
    assert [(each["session_id"], each["text"]) for each in pattern["metadata"]["evidence"]] == [
        ("s1", ATOMIC[0]), ("s2", ATOMIC[1]), ("s3", ATOMIC[2]),
    ]  # fmt: skip
    for each in state["short_term_memory"]["sessions"]:
        assert each["metadata"]["related_patterns"] == [pattern["id"]]


def test_a_statement_that_fits_two_patterns_stays_with_the_one_that_counted_its_session():
    """A better home that appears later does not count the session a second time."""
    said = "Write state files with atomic writes and locks"
    state = memory(session("s1", items=[("Write state files with atomic writes", 0.9)]))
    state, _ = run(state)
    state["short_term_memory"]["sessions"].append(session("s2", decisions=[said], day=2))
    state, first = run(state)
    better = copy.deepcopy(patterns_of(state)[0])
    better |= {"id": "better", "pattern": said, "occurrences": 0, "associative_links": []}
    better["metadata"]["evidence"] = []
    patterns_of(state).append(better)

    after, second = run(state)

    assert first.supported
    assert second.supported == []
    assert after == state


def test_a_pattern_is_not_created_again_after_its_sessions_are_removed():
    state, _ = run(memory(session("s1", items=[("Cap retries at 3", 0.9)])))
    state["short_term_memory"]["sessions"] = [session("s2", items=[("Retries must be capped at 3", 0.9)])]

    state, result = run(state)

    (pattern,) = patterns_of(state)
    assert result.created == []
    assert result.supported == [pattern["id"]]
    assert [each["session_id"] for each in pattern["metadata"]["evidence"]] == ["s1", "s2"]


def test_injected_text_never_counts():
    blocks = [f"<aether-memory layer='long_term'>{text}</aether-memory>" for text in ATOMIC]
    injected = {
        "content": "Use tabs in Makefiles",
        "relevance_score": 1.0,
        "type": "decision",
        "injected": True,
    }
    state = memory(*(session(f"s{at}", decisions=[text], items=[injected]) for at, text in enumerate(blocks)))

    assert run(state)[0] == state
    assert repeated_statements(state) == []


def test_the_wording_most_sessions_agree_with_wins_and_among_equals_the_latest():
    state = memory(*(session(f"s{at}", decisions=[text], day=at + 1) for at, text in enumerate(ATOMIC)))

    state, _ = run(state)

    assert patterns_of(state)[0]["pattern"] == ATOMIC[2]


def test_meaning_does_not_drift_along_a_chain():
    """Two statements of one pattern are each the same as its wording, not only as each other."""
    words = "alpha beta gamma delta epsilon zeta eta theta".split()
    texts = [" ".join(words[at : at + 5]) for at in range(4)]
    state = memory(*(session(f"s{at}", items=[(text, 0.9)]) for at, text in enumerate(texts)))

    state, _ = run(state)

    assert len(patterns_of(state)) > 1
    assert all(a["pattern"] != b["pattern"] for a, b in pairwise(patterns_of(state)))


def test_a_session_of_the_original_format_without_lists_is_read():
    bare = {"id": "old", "session_id": "old", "compressed_at": "2026-01-01T00:00:00Z", "summary": "x"}
    state = memory(bare, session("s1", items=[("Use tabs in Makefiles", 0.9)], metadata=None))
    bare["high_value_items"] = [{"content": "Use tabs in every Makefile", "relevance_score": 0.9}]

    state, _ = run(state)

    assert patterns_of(state)[0]["occurrences"] == 2
    assert state["short_term_memory"]["sessions"][0]["metadata"]["related_patterns"]


RULE = "Keep every amount as integer cents."
AMONG_OTHERS = "It rained. VAT amounts are integer cents as well, no floats anywhere. The sea was red."


def test_one_sentence_of_several_is_evidence_for_a_rule():
    state = memory(
        session("s1", items=[(RULE, 0.9)], day=1),
        session("s2", items=[(AMONG_OTHERS, 0.4)], day=2),
        session("s3", outcomes=["The fee is an amount in integer cents too, please no floats."], day=3),
    )

    state, _ = run(state)

    (pattern,) = patterns_of(state)
    assert (pattern["pattern"], pattern["occurrences"]) == (RULE, 3)
    assert run(state)[0] == state


def entry(content, type, relevance=0.9):
    return {"content": content, "relevance_score": relevance, "type": type}


@rows(
    ("type", "made"),
    [
        ("constraint", "constraint"),
        ("preference", "preference"),
        ("solution", "success_pattern"),
        ("lesson", "success_pattern"),
        ("error", "failure_pattern"),
        ("blocker", "failure_pattern"),
        ("failure_pattern", "failure_pattern"),
    ],
)
def test_a_pattern_keeps_the_type_of_its_statement(type, made):
    said = "Errors of the parser should go to stderr."  # by its words a failure, or a constraint

    state, _ = run(memory(session("s1", items=[entry(said, type)])))

    assert [each["type"] for each in patterns_of(state)] == [made]


@rows("kind", ["command", "code_change", "code_snippet", "user_input", "next"])
def test_work_and_requests_are_never_promoted(kind):
    state = memory(*(session(f"s{at}", items=[entry("Use the parser", kind)], day=at + 1) for at in range(3)))

    assert run(state)[0] == state


def test_a_result_is_promoted_by_its_relevance_only():
    often = [
        session(f"s{at}", items=[entry("The parser is fast", "outcome", 0.7)], day=at + 1) for at in range(3)
    ]
    once = session("s1", items=[entry("The parser is fast", "outcome", 0.9)])

    assert patterns_of(run(memory(*often))[0]) == []
    assert [one["pattern"] for one in patterns_of(run(memory(once))[0])] == ["The parser is fast"]


def test_rules_in_force_of_several_sessions_are_evidence_and_ended_ones_are_not():
    rule = {"text": "Never mail a draft", "items": ["i"], "quote": "never mail a draft", "evidence": "person"}
    over = {**rule, "ended": {"how": "revoked", "at": "2026-03-01T00:00:00Z", "by": ""}}

    def stating(*rules):
        return memory(*(session(f"s{at}", day=at + 1) | {"rules": [one]} for at, one in enumerate(rules)))

    [pattern] = patterns_of(run(stating(rule, rule, rule))[0])
    assert (pattern["type"], pattern["occurrences"]) == ("constraint", 3)
    assert patterns_of(run(stating(rule, rule, over))[0]) == []


def test_a_failure_is_no_evidence_for_a_rule_or_a_success():
    said = "The lint step works with the pinned linter"
    state, _ = run(memory(session("s1", items=[entry(said, "lesson")])))
    state["short_term_memory"]["sessions"].append(session("s2", items=[entry(said, "error")], day=2))

    known = patterns_of(run(state)[0])

    assert [(each["type"], each["occurrences"]) for each in known] == [("success_pattern", 1)]


def test_the_relevant_wording_becomes_the_pattern_of_two_sessions():
    state = memory(
        session("s1", items=[(RULE, 0.9)], day=1),
        session("s2", outcomes=["Amounts are integer cents."], day=2),
    )

    state, _ = run(state)

    (pattern,) = patterns_of(state)
    assert (pattern["pattern"], pattern["occurrences"]) == (RULE, 2)


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


def links_of(entry):
    return [
        (each["target_id"], each["target_type"], each["link_type"]) for each in entry["associative_links"]
    ]


@rows("kind", LINK_TYPES)
def test_every_known_type_links_an_item_to_a_pattern(kind):
    state, change = link(three_layers(), "wm1", "p1", kind)

    assert links_of(state["working_memory"]["items"][0]) == [("p1", "long_term_pattern", kind)]
    assert state["working_memory"]["items"][0]["associative_links"][0]["link_id"] == change.result
    assert links_of(state["long_term_memory"]["patterns"][0]) == []


@rows(("source", "target"), [("p1", "s1"), ("s1", "p1"), ("s2", "p1")])
def test_a_session_and_a_pattern_know_each_other(source, target):
    state, _ = link(three_layers(), source, target, "extracted_from")
    name = source if source.startswith("s") else target

    sessions = {each["id"]: each for each in state["short_term_memory"]["sessions"]}
    assert sessions[name]["metadata"]["related_patterns"] == ["p1"]
    assert links_of(state["long_term_memory"]["patterns"][0]) == [
        (name, "short_term_session", "extracted_from")
    ]


@rows(("source", "target"), [("wm1", "wm2"), ("p1", "s1"), ("s1", "p1"), ("s1", "s2"), ("p1", "p2")])
def test_linking_twice_changes_nothing(source, target):
    once, first = link(three_layers(), source, target)

    twice, second = link(once, source, target)

    assert twice == once
    assert second.patches == {}
    assert second.result == first.result


def test_both_ends_must_exist():
    for source, target in (("wm1", "gone"), ("gone", "wm1")):
        with pytest.raises(NotFound, match="'gone'"):
            link(three_layers(), source, target)


def test_impossible_links_are_refused():
    with pytest.raises(InvalidInput, match="not a link type"):
        link(three_layers(), "wm1", "p1", "friend_of")
    with pytest.raises(InvalidInput, match="itself"):
        link(three_layers(), "wm1", "wm1")

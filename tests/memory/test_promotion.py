import copy
from itertools import pairwise

from aether.memory.patterns import promote, repeated_statements
from tests.memory.memories import NOW, applied, memory, new_id, patterns_of, session

ATOMIC = (
    "Use atomic writes for state files",
    "State files must be written atomically",
    "Always write state files with atomic writes",
)


def run(state, **options):
    change = promote(state, now=NOW, new_id=new_id, **options)
    return applied(state, change), change.result


def test_a_statement_of_high_relevance_is_promoted_from_one_session():
    state, result = run(memory(session("s1", items=[("Use atomic writes", 0.81), ("Look at logs", 0.8)])))

    assert [each["pattern"] for each in patterns_of(state)] == ["Use atomic writes"]
    assert len(result.created) == state["metrics"]["total_pattern_extractions"] == 1


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


def test_two_sessions_or_one_session_three_times_make_none():
    twice = memory(session("s1", decisions=[ATOMIC[0]]), session("s2", decisions=[ATOMIC[1]]))
    within = memory(session("s1", decisions=list(ATOMIC), items=[(ATOMIC[0], 0.5)]))

    assert run(twice)[0] == twice
    assert run(within)[0] == within


def test_promoting_twice_changes_nothing():
    state = memory(
        *(
            session(f"s{at}", decisions=[text], items=[("Cap retries at 3", 0.9)])
            for at, text in enumerate(ATOMIC)
        )
    )

    once, _ = run(state)
    twice, result = run(once)

    assert twice == once
    assert result.created == result.supported == []


def test_the_same_session_taken_in_again_raises_nothing():
    state, _ = run(memory(session("s1", items=[("Cap retries at 3", 0.9)])))
    again = session("s1", items=[("Retries are capped at 3", 0.95)])
    again["id"] = "another"
    state["short_term_memory"]["sessions"].append(again)

    after, result = run(state)

    assert after == state
    assert result.supported == []


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


def test_a_pattern_is_not_made_again_when_its_sessions_are_gone():
    state, _ = run(memory(session("s1", items=[("Cap retries at 3", 0.9)])))
    state["short_term_memory"]["sessions"] = [session("s2", items=[("Retries must be capped at 3", 0.9)])]

    state, result = run(state)

    (pattern,) = patterns_of(state)
    assert result.created == []
    assert result.supported == [pattern["id"]]
    assert [each["session_id"] for each in pattern["metadata"]["evidence"]] == ["s1", "s2"]


def test_what_aether_injected_never_counts():
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


def test_other_numbers_and_negations_are_not_the_same_and_contradict():
    state = memory(
        session("s1", items=[("Set the timeout to 30", 0.9)]),
        session("s2", items=[("Set the timeout to 60", 0.9)]),
        session("s3", items=[("Use global state", 0.9), ("Do not use global state", 0.9)]),
    )

    state, result = run(state)

    assert len(patterns_of(state)) == 4
    assert {pattern["confidence"] for pattern in patterns_of(state)} == {0.7}
    assert {frozenset((each.pattern, each.other)) for each in result.contradictions} == {
        frozenset(("Set the timeout to 30", "Set the timeout to 60")),
        frozenset(("Use global state", "Do not use global state")),
    }


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


def test_only_the_named_sessions_are_looked_at():
    state = memory(
        session("s1", items=[("Use tabs in Makefiles", 0.9)]), session("s2", items=[("Cap retries", 0.9)])
    )

    after, _ = run(state, sessions=["s2"])

    assert [each["pattern"] for each in patterns_of(after)] == ["Cap retries"]


def test_castes_of_items_are_kept():
    item = {
        "content": "Use tabs in Makefiles",
        "relevance_score": 0.9,
        "type": "decision",
        "caste": "builder",
    }

    state, _ = run(memory(session("s1", items=[item])))

    assert patterns_of(state)[0]["metadata"]["related_castes"] == ["builder"]


def test_a_session_of_the_original_format_without_lists_is_read():
    bare = {"id": "old", "session_id": "old", "compressed_at": "2026-01-01T00:00:00Z", "summary": "x"}
    state = memory(bare, session("s1", items=[("Use tabs in Makefiles", 0.9)], metadata=None))
    bare["high_value_items"] = [{"content": "Use tabs in every Makefile", "relevance_score": 0.9}]

    state, _ = run(state)

    assert patterns_of(state)[0]["occurrences"] == 2
    assert state["short_term_memory"]["sessions"][0]["metadata"]["related_patterns"]


def test_detect_names_repeated_statements_with_their_sessions():
    state = memory(
        *(
            session(f"s{at}", decisions=[text, f"Only here {at}"], day=at + 1)
            for at, text in enumerate(ATOMIC)
        )
    )
    before = copy.deepcopy(state)

    found = repeated_statements(state)

    assert [(each.statement, each.sessions, each.wordings) for each in found] == [
        (ATOMIC[2], ["s0", "s1", "s2"], list(ATOMIC))
    ]
    assert state == before


RULE = "Keep every amount as integer cents."
AMONG_OTHERS = "It rained. VAT amounts are integer cents as well, no floats anywhere. The sea was red."


def test_a_rule_said_among_other_things_is_evidence_for_it():
    state = memory(
        session("s1", items=[(RULE, 0.9)], day=1),
        session("s2", items=[(AMONG_OTHERS, 0.4)], day=2),
        session("s3", outcomes=["The fee is an amount in integer cents too, please no floats."], day=3),
    )

    state, _ = run(state)

    (pattern,) = patterns_of(state)
    assert (pattern["pattern"], pattern["occurrences"]) == (RULE, 3)
    assert run(state)[0] == state


def test_a_pattern_that_exists_gains_what_says_it_among_other_things():
    state, _ = run(memory(session("s1", items=[(RULE, 0.9)])))
    state["short_term_memory"]["sessions"].append(session("s2", items=[(AMONG_OTHERS, 0.9)], day=2))

    state, result = run(state)

    first = next(each for each in patterns_of(state) if each["pattern"] == RULE)
    assert result.supported == [first["id"]]
    assert first["occurrences"] == 2


def test_a_pattern_is_worded_without_bullets_and_lead_ins():
    state, _ = run(memory(session("s1", items=[("- And same as always: use atomic writes", 0.9)])))

    assert [each["pattern"] for each in patterns_of(state)] == ["use atomic writes"]


def test_files_touched_in_every_session_are_no_pattern():
    work = {"content": "Changed src/store/commit.py", "relevance_score": 0.6, "type": "code_change"}
    state = memory(*(session(f"s{at}", items=[dict(work)], day=at + 1) for at in range(3)))

    assert run(state)[0] == state


def test_what_was_said_with_weight_words_the_pattern_of_two_sessions():
    state = memory(
        session("s1", items=[(RULE, 0.9)], day=1),
        session("s2", outcomes=["Amounts are integer cents."], day=2),
    )

    state, _ = run(state)

    (pattern,) = patterns_of(state)
    assert (pattern["pattern"], pattern["occurrences"]) == (RULE, 2)


def test_what_an_agent_says_of_itself_in_every_session_is_no_pattern():
    said = "I have gathered comprehensive information."
    state = memory(*(session(f"s{at}", outcomes=[said], day=at + 1) for at in range(3)))
    decided = memory(*(session(f"s{at}", outcomes=["I decided on SQLite."], day=at + 1) for at in range(3)))

    assert run(state)[0] == state
    assert len(patterns_of(run(decided)[0])) == 1

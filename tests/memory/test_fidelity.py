from aether.memory.fidelity import (
    RESTORED_FLOOR_TOKENS,
    RESTORED_SHARE,
    gate,
    required_entries,
    required_statements,
)
from tests.tables import rows


def count(text):
    return len(text.split())


def item(name, content, kind="task_result", relevance=0.5, **metadata):
    return {
        "id": name,
        "type": kind,
        "content": content,
        "metadata": {"relevance_score": relevance, **metadata},
    }


def handoff(*items, protected=(), target=1_000):
    return {
        "items": list(items),
        "protected": [{"id": each["id"], "content": each["content"], "why": "a rule"} for each in protected],
        "target_tokens": target,
    }


def answer(*decisions, summary="Work went on.", outcomes=(), items=()):
    return {
        "id": "s1",
        "summary": summary,
        "key_decisions": [{"decision": each, "rationale": ""} for each in decisions],
        "outcomes": [{"result": each, "impact": ""} for each in outcomes],
        "high_value_items": [{"content": each, "relevance_score": 0.5, "type": "fact"} for each in items],
    }


def carried(*items, given=None, **options):
    return [
        each["content"] for each in gate(handoff(*items, **options), given or answer(), count=count).carried
    ]


def test_a_decision_that_the_answer_lacks_is_carried_over_verbatim():
    decision = item("wm1", "We chose SQLite for src/store.py because it needs no server", "decision", 0.8)

    gated = gate(handoff(decision), answer(), count=count)

    assert gated.session["high_value_items"] == [
        {"content": decision["content"], "relevance_score": 0.8, "type": "decision", "carried": True}
    ]
    assert gated.carried == [{"item_id": "wm1", "content": decision["content"], "why": "decision"}]
    assert (gated.score, gated.missing_identifiers, gated.left_out) == (0.0, [], [])


def test_a_paraphrase_keeps_a_decision():
    decision = item("wm1", "State files must be written atomically in src/store.py", "decision")
    kept = answer("Use atomic writes for the state files in src/store.py")

    gated = gate(handoff(decision), kept, count=count)

    assert gated.session == kept
    assert (gated.carried, gated.score) == ([], 1.0)


@rows(
    ("said", "given"),
    [
        ("Cap retries at 3", "Cap retries at 4"),
        ("Cap retries at 3", "Cap retries"),
        ("Use locks in src/a.py", "Use locks in src/b.py"),
        ("Never use global state", "Use global state"),
        ("Write state files with write_whole()", "Write state files"),
    ],
)
def test_a_paraphrase_that_loses_number_name_or_sign_does_not_count(said, given):
    assert carried(item("wm1", said, "constraint"), given=answer(given)) == [said]


def test_a_protected_statement_survives_word_for_word_or_is_carried():
    rule = item("wm1", "Please keep the public API as it is.")
    paraphrase = answer("Keep the public API as it is")

    assert carried(rule, protected=[rule], given=paraphrase) == [rule["content"]]
    assert carried(rule, protected=[rule], given=answer(items=[f"Said: {rule['content']}"])) == []


def test_an_item_marked_protected_needs_no_entry_in_the_list():
    assert carried(item("wm1", "The moon is full.", protected=True)) == ["The moon is full."]


def test_a_protected_statement_is_not_kept_by_two_fields_that_meet():
    rule = item("wm1", "a\nb", protected=True)

    assert carried(rule, given=answer(summary="a", items=["b"])) == ["a\nb"]


def test_a_protected_statement_without_its_item_is_carried():
    gated = gate(
        {**handoff(), "protected": [{"content": "Ask first.", "why": "said so"}]}, answer(), count=count
    )

    assert gated.carried == [{"item_id": "", "content": "Ask first.", "why": "protected"}]


def test_an_open_blocker_is_carried_and_a_solved_one_is_not():
    blocker = item("wm1", "The login tests fail on Windows", "blocker")
    solution = item("wm2", "Fixed the failing login tests on Windows.", "solution")

    assert carried(blocker) == [blocker["content"]]
    assert carried(blocker, solution) == []
    assert carried(solution, blocker) == [blocker["content"]]
    assert carried(blocker, item("wm2", "Fixed the search page on Linux.", "solution")) == [
        blocker["content"]
    ]


def test_sentences_count_only_in_items_of_high_value():
    said = "Looked at the parser. We decided to rewrite the lexer by hand. It was raining."

    assert carried(item("wm1", said, relevance=0.8)) == ["We decided to rewrite the lexer by hand."]
    assert carried(item("wm1", said, relevance=0.7)) == []


def test_of_a_long_decision_its_deciding_sentences_count():
    long = "The log shows line after line. " * 40 + "We decided to rewrite the lexer by hand."

    assert carried(item("wm1", long, "decision")) == ["We decided to rewrite the lexer by hand."]


def test_a_repeated_statement_is_carried_once():
    twice = [item("wm1", "Use atomic writes", "decision"), item("wm2", "Writes must be atomic", "decision")]

    assert carried(*twice) == ["Use atomic writes"]
    assert len(required_statements(handoff(twice[0], twice[0]))) == 1


def test_injected_text_is_required_only_where_it_is_protected_and_stays_marked():
    injected = item("wm1", "Use tabs in Makefiles", "decision", injected=True)
    inside = item("wm2", "<aether-memory>Use tabs in Makefiles</aether-memory>", "decision")

    assert carried(injected, inside) == []
    gated = gate(handoff(injected, protected=[injected]), answer(), count=count)
    assert gated.session["high_value_items"][0]["injected"] is True


def test_carried_statements_stay_within_the_cap_and_the_rest_is_named():
    decisions = [
        item(f"wm{at}", f"Use port {5000 + at} in srv_{at}.py for {at}", "decision") for at in range(40)
    ]
    rule = item("rule", "word " * 3_000, protected=True)

    gated = gate(handoff(*decisions, rule, target=1_000), answer(), count=count)

    spent = sum(count(each["content"]) for each in gated.carried if each["why"] != "protected")
    assert 0 < spent <= max(RESTORED_FLOOR_TOKENS, 1_000 * RESTORED_SHARE)
    assert gated.carried[0]["why"] == "protected"
    assert len(gated.carried) + len(gated.left_out) == 41
    assert "srv_39.py" in gated.missing_identifiers
    assert "5039" in gated.missing_identifiers
    assert "srv_0.py" not in gated.missing_identifiers


def test_constraints_go_before_decisions_and_relevant_before_others():
    items = [
        item("wm1", "Use tabs in Makefiles", "decision", 0.2),
        item("wm2", "Store amounts in cents", "decision", 0.9),
        item("wm3", "Never push to main", "constraint", 0.1),
    ]

    assert carried(*items) == ["Never push to main", "Store amounts in cents", "Use tabs in Makefiles"]


def test_the_session_given_is_not_changed():
    given = answer()
    gate(handoff(item("wm1", "Never push to main", "constraint")), given, count=count)

    assert given == answer()


def test_nothing_required_is_a_score_of_one():
    assert gate(handoff(), {"summary": "x", "high_value_items": None}, count=count).score == 1.0


def test_an_asked_and_answered_decision_is_kept_by_an_entry_that_says_both():
    asked = item(
        "wm1", "Asked: Shall I use SQLite or Postgres?\nAnswered: SQLite, one file is enough.", "decision"
    )
    given = answer()
    given["key_decisions"] = [
        {"decision": "SQLite, one file is enough.", "rationale": "Asked: Shall I use SQLite or Postgres?"}
    ]

    assert carried(asked, given=given) == []
    assert carried(asked) == [asked["content"]]


def test_a_failure_mentioned_by_a_solution_is_not_an_open_blocker():
    solution = item("wm1", "The login tests fail on Windows.\nWorked after changes to a.py.", "solution", 0.9)

    assert carried(solution) == []
    assert carried({**solution, "type": "task_result"}) == ["The login tests fail on Windows."]


def test_a_preference_must_survive():
    assert carried(item("wm1", "Prefer tabs over spaces", "preference")) == ["Prefer tabs over spaces"]


def test_of_a_longer_decision_that_nothing_marks_the_whole_counts():
    long = "Ports are red, ships are blue and the sea is deep. " * 8

    assert carried(item("wm1", long, "decision")) == [long.strip()]
    assert carried(item("wm1", long * 2, "decision")) == []


def test_required_entries_are_sorted_by_importance():
    items = [
        item("wm1", "Use tabs in Makefiles", "decision", 0.8),
        item("wm2", "The moon is full.", protected=True),
        item("wm3", "Never push to main", "constraint", 0.9),
    ]

    assert [(each["item_id"], each["why"]) for each in required_entries(handoff(*items))] == [
        ("wm2", "protected"),
        ("wm3", "constraint"),
        ("wm1", "decision"),
    ]


def test_carried_statements_have_no_bullet():
    said = "Notes of the day. " * 20 + "\n- We decided to rewrite the lexer by hand."

    assert carried(item("wm1", said, "decision")) == ["We decided to rewrite the lexer by hand."]

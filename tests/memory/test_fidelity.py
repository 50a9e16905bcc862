from aether.memory.fidelity import (
    RESTORED_FLOOR_TOKENS,
    RESTORED_SHARE,
    gate,
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


def test_a_protected_statement_without_its_item_is_carried():
    gated = gate(
        {**handoff(), "protected": [{"content": "Ask first.", "why": "said so"}]}, answer(), count=count
    )

    assert gated.carried == [{"item_id": "", "content": "Ask first.", "why": "protected"}]


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


def test_a_proven_statement_keeps_the_item_on_which_it_rests():
    asked = item(
        "wm1", "Asked: Which one? Answered: the second", "decision", evidence="person", pointer={"line": 1}
    )
    given = answer()
    given["key_decisions"] = [
        {"decision": "Take the second.", "rationale": "", "items": ["wm1"], "quote": "the second"}
    ]

    assert carried(asked, given=given) == []
    assert carried(asked) == [asked["content"]]


def test_a_short_statement_survives_as_a_whole_text_beside_others():
    given = answer()
    given["high_value_items"] = [{"content": "Use tabs"}, {"content": "No"}]

    assert carried(item("wm1", "No", "decision"), given=given) == []
    assert carried(item("wm1", "No", "decision")) == ["No"]


def test_what_an_agent_said_or_a_person_ended_is_not_required():
    captured = item("wm1", "We use SQLite", "decision", evidence="agent", pointer={"line": 1})
    ended = item("wm2", "We use tabs", "decision", ended_at="2026-03-01T12:00:00Z")

    assert carried(captured, ended, item("wm3", "We use files", "observation")) == []
    assert carried(item("wm4", "We use files", "blocker")) == ["We use files"]

"""Clauses are ordered by the news that each adds per token."""

from __future__ import annotations

from aether.backends.extractive.clauses import read_clauses
from aether.backends.extractive.score import (
    BINDS,
    BLOCKS,
    COMMON,
    DECIDES,
    DEPENDENT,
    FILLS,
    FRAMES,
    OPENS,
    RULES,
    TOUCHED,
    WORTH,
    Weight,
    ordered,
    weigh_clauses,
)
from aether.text.words import stem
from tests.backends.extractive.handoffs import count, handoff, item, signal
from tests.tables import rows


def weigh(*items, **changes):
    data = handoff(*items, **changes)
    return weigh_clauses(read_clauses(data), data, count=count)


def worth(weight):
    return weight.factor * sum(weight.terms.values())


def test_rare_words_weigh_more_than_common_ones_and_function_words_nothing():
    (weight,) = weigh("the violin was a thing")

    assert weight.terms["violin"] > weight.terms["thing"]
    assert "the" not in weight.terms


def test_numbers_names_negations_and_identifiers_are_terms():
    (weight,) = weigh("we did not see Lisbon at 8080 in src/app.py")

    assert {"not", "lisbon", "8080", "=src/app.py"} <= weight.terms.keys()
    assert weight.terms["lisbon"] > weight.terms["see"]


def test_a_repeated_word_is_the_topic():
    once, twice = (
        weigh("violin lessons cost money")[0],
        weigh("violin lessons cost money", "a violin case")[0],
    )

    assert twice.terms["violin"] > once.terms["violin"]


def test_relevance_type_and_kind_raise_a_clause():
    plain = weigh("The disk holds images")[0]

    assert worth(weigh(item("The disk holds images", relevance=0.9))[0]) > worth(plain)
    assert worth(weigh(item("The disk holds images", "outcome"))[0]) > worth(plain)


def test_in_speech_answers_count_more_and_questions_and_remarks_less():
    texts = [
        "Ann: the disk holds images",
        "Bob: which disk is full?",
        "Ann: the disk holds music",
        "Bob: that disk holds music",
    ]
    first, asked, answer, remark = weigh(*texts)

    assert answer.factor > first.factor > remark.factor > asked.factor


@rows(
    ("text", "type", "relevance", "tier"),
    [
        ("Thanks!", "observation", 0.5, DEPENDENT),
        ("The port is 8080.", "observation", 0.5, WORTH),
        ("The port is 8080.", "error", 0.5, WORTH),
        ("The port is 8080.", "outcome", 0.5, FRAMES),
        ("The port is 8080.", "blocker", 0.5, BINDS),
        ("Changed src/app.py", "code_change", 0.5, TOUCHED),
        ("Never push to main.", "user_input", 0.5, FRAMES),
        ("Never push to main.", "observation", 0.5, WORTH),
        ("Never push to main.", "observation", 0.8, BINDS),
        ("...", "decision", 0.9, DEPENDENT),
    ],
)
def test_tiers_follow_what_an_item_is_and_says(text, type, relevance, tier):
    assert weigh(item(text, type, relevance))[0].tier == tier


def test_in_speech_what_says_when_it_was_is_news():
    plain, dated, ahead = weigh("Ann: we saw the sea", "Ann: we saw the sea last Friday", "Ann: the last sea")
    unspoken = weigh("the job failed yesterday")[0]

    assert dated.factor > 1.3 * plain.factor
    assert ahead.factor < 1.1 * plain.factor
    assert unspoken.factor == weigh("the job failed twice")[0].factor


def test_chatter_fills_up_where_people_talk():
    reported = weigh("Ann: Great, thanks!", "Bob: The port is 8080.", "Ann: Bye!", "Bob: The host is red.")

    assert [each.tier for each in reported] == [FILLS, WORTH, FILLS, WORTH]


@rows(
    ("by", "tier"),
    [
        ({}, WORTH),
        ({"source": "queen"}, WORTH),
        ({"source": "worker_ant"}, BINDS),
        ({"caste": "scout"}, BINDS),
    ],
)
def test_what_a_worker_reports_was_meant_to_last(by, tier):
    later = [item(f"Table {at} is whole.", "outcome") for at in range(3)]
    reported = weigh(item("The port is 8080. The host is red.", "outcome", **by), *later)

    assert [each.tier for each in reported[:2]] == [tier, WORTH]
    assert weigh(item("Task: which port is it?", **by))[0].tier == WORTH


def test_the_first_request_and_the_last_results_frame_a_session():
    asked = [item(f"Never drop table {at}.", "user_input") for at in range(2)]
    done = [item(f"Table {at} is whole.", "outcome") for at in range(5)]

    tiers = [each.tier for each in weigh(*asked, *done, item("Is the table dropped?", "outcome"))]

    assert tiers == [FRAMES, BINDS, WORTH, WORTH, BINDS, BINDS, FRAMES, DEPENDENT]


@rows(("why", "tier"), [("constraint", RULES), ("decision", DECIDES), ("blocker", BLOCKS)])
def test_what_is_required_comes_first(why, tier):
    required = [{"item_id": "wm_0", "content": "The port is 8080.", "why": why}]

    assert weigh("The port is 8080.", required=required)[0].tier == tier


def test_a_repetition_is_kept_only_for_dependents_and_of_two_the_required_one_stays():
    required = [{"item_id": "wm_1", "content": "The port is 8080.", "why": "decision"}]

    assert [each.tier for each in weigh("The port is 8080.", "The port is 8080.")] == [WORTH, DEPENDENT]
    assert [each.tier for each in weigh("The port is 8080.", "The port is 8080.", required=required)] == [
        DEPENDENT,
        DECIDES,
    ]


def test_protected_content_is_not_repeated():
    weights = weigh(item("Never push to main.", "constraint"), "Never push to main.", protected=[0])

    assert [each.tier for each in weights] == [DEPENDENT]


def test_focus_and_feedback_raise_what_they_name():
    plain, other = weigh("The login page failed", "The disk holds images")

    for named in ("FOCUS", "FEEDBACK"):
        steered, same = weigh(
            "The login page failed", "The disk holds images", signals=[signal(named, "failing logins")]
        )
        assert steered.factor > plain.factor
        assert same.factor == other.factor


def test_redirect_raises_only_what_avoids():
    texts = ("Never call the login page", "We did not open the login page", "The login page is nice")
    plain = weigh(*texts)
    steered = weigh(*texts, signals=[signal("REDIRECT", "login page")])

    assert [new.factor > old.factor for new, old in zip(steered, plain, strict=True)] == [True, True, False]


def test_a_weak_signal_raises_less():
    strong, weak = (
        weigh("The login page failed", signals=[signal("FOCUS", "login", strength=strength)])[0].factor
        for strength in (1.0, 0.2)
    )

    assert strong > weak


def test_where_it_is_known_what_must_survive_nothing_else_of_a_decision_binds():
    assert weigh(item("The port is 8080.", "decision"), required=[])[0].tier == OPENS
    assert weigh(item("Never push to main.", "user_input", 0.5), required=[])[0].tier == FRAMES


def weight(terms, cost=5, tier=WORTH, factor=1.0, leans_on=-1):
    return Weight(tier, factor, cost, dict.fromkeys(terms.split(), 1.0), leans_on)


def test_news_per_token_comes_first():
    assert ordered([weight("a b"), weight("c d e"), weight("f g", cost=2)]) == [2, 1, 0]


def test_repeated_terms_fall_behind():
    assert ordered([weight("a b c"), weight("a b c"), weight("d")]) == [0, 2, 1]


def test_a_lower_tier_comes_first_whatever_it_costs():
    assert ordered([weight("a b c"), weight("d", cost=50, tier=BINDS), weight("e f g h", tier=FILLS)]) == [
        1,
        0,
        2,
    ]


def test_a_clause_comes_with_the_clause_it_depends_on():
    assert ordered([weight("a", cost=20), weight("b c d e", leans_on=0), weight("f", cost=4)]) == [2, 0, 1]


def test_a_dependent_clause_gets_cheaper_once_its_head_is_taken():
    assert ordered([weight("a b c"), weight("d", leans_on=0, cost=2), weight("e")]) == [0, 1, 2]


def test_some_clauses_are_taken_only_for_their_dependents():
    assert ordered([weight("a", tier=DEPENDENT), weight("b", tier=DEPENDENT), weight("c d", leans_on=1)]) == [
        1,
        2,
    ]


def test_equal_clauses_keep_their_order():
    assert ordered([weight("a"), weight("b"), weight("c")]) == [0, 1, 2]
    assert ordered([]) == []


def test_common_words_are_stems_and_topics_are_not_among_them():
    assert {stem("going"), stem("wonderful")} <= COMMON
    assert not {stem(word) for word in ("violin", "database", "timeout", "adoption")} & COMMON

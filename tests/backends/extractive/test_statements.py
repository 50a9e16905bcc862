from aether.backends.extractive.clauses import read_clauses
from tests.backends.extractive.handoffs import handoff, item


def said(*items, **changes):
    return [clause.text for clause in read_clauses(handoff(*items, **changes))]


def test_items_are_cut_into_clauses_in_their_order():
    clauses = read_clauses(handoff("The build is red. I fixed it, and it passes now.", "The port is 8080."))

    assert [clause.text for clause in clauses] == [
        "The build is red.", "I fixed it", "it passes now.", "The port is 8080.",
    ]  # fmt: skip
    assert [clause.place for clause in clauses] == [0, 1, 2, 3]
    assert [clause.item for clause in clauses] == [0, 0, 0, 1]
    assert [clause.leads for clause in clauses] == [True, False, False, True]


def test_who_speaks_is_told_apart_from_what_is_said():
    clauses = read_clauses(
        handoff("Ann: I have a red cat.", "Bob: A cat?", "Ann: It is old.", "Bob: Fine news, Ann!")
    )

    assert {clause.speaker for clause in clauses} == {"Ann", "Bob"}
    assert [clause.text for clause in clauses] == ["have a red cat.", "A cat?", "It is old.", "Fine news!"]


def test_a_head_is_no_speaker_where_it_stands_once_or_is_a_label():
    assert said("Lisbon: a city of hills.") == ["Lisbon: a city of hills."]
    assert all(not clause.speaker for clause in read_clauses(handoff("Error: no disk.", "Error: no net.")))
    assert all(
        not clause.speaker
        for clause in read_clauses(handoff(item("Asked: a?", "decision"), item("Asked: b?", "decision")))
    )


def test_protected_and_injected_text_is_not_cut_up():
    own = "Before. <aether-memory>The port is 1.</aether-memory> After."

    assert said("Keep me.", item("Not mine.", injected=True), own, protected=[0]) == ["Before.", "After."]


def test_constraints_stay_word_for_word():
    rule = "Really, you must never just push, and you must always ask (me) first."

    assert said(item(rule, "user_input")) == [rule]


def test_a_short_decision_stays_in_one_piece_and_a_long_one_does_not():
    asked = "Asked: tabs or spaces?\nAnswered: tabs, and they must be wide. They are cheap."

    assert said(item(asked, "decision")) == [" ".join(asked.split())]
    assert len(read_clauses(handoff(item("We went left. " * 60, "decision")))) == 60


def test_what_is_required_is_never_cut_and_leans_on_its_beginning():
    text = "It was late. I fixed it, and it passes now. It holds, which is good."
    required = [
        {
            "item_id": "wm_0",
            "content": "I fixed it, and it passes now. It holds, which is good.",
            "why": "decision",
        }
    ]

    clauses = read_clauses(handoff(text, required=required))

    assert [clause.text for clause in clauses] == [
        "It was late.", "I fixed it, and it passes now.", "It holds, which is good.",
    ]  # fmt: skip
    assert [clause.required for clause in clauses] == ["", "decision", "decision"]
    assert [clause.leans_on for clause in clauses] == [-1, -1, 1]


def test_chatter_does_not_open_an_item():
    clauses = read_clauses(handoff(item("Great! The disk is full.", "outcome")))

    assert [clause.leads for clause in clauses] == [True, True]


def test_an_item_of_blanks_says_nothing():
    assert said("", " \n") == []

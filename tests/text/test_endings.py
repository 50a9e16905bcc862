"""Endings: which of a person's words end a rule, and which rule."""

from __future__ import annotations

from aether.text.endings import ending, endings
from tests.tables import rows

RETRIES = "Never retry more than five times."
MOCKS = "No mocks in integration tests please"
TABS = "use tabs from now on"
PUSH = "Never push to main without a review."
CHANGELOG = "Add a line to the changelog with every pull request."
LINTER = "Run the linter before every commit."
GERMAN = "Ab jetzt immer auf Deutsch antworten."
SQUASH = "Always squash before you merge."
HELD = (RETRIES, MOCKS, TABS, PUSH, CHANGELOG, LINTER, SQUASH, GERMAN)


def ended(text):
    """Return the rules that a message ends: of each ending the only one that it names."""
    found = [[one for one in HELD if each.concerns(one)] for each in endings(text) if each.kind == "named"]
    return [named[0] for named in found if len(named) == 1]


@rows(
    ("said", "rule"),
    [
        ("The rule about retries is gone, retry as often as you like.", RETRIES),
        ("The mocks rule is gone now, use them where you like", MOCKS),
        ("scrap the no-mocks rule", MOCKS),
        ("forget what I said about tabs", TABS),
        ("you can use mocks after all", MOCKS),
        ("We don't need the changelog any more", CHANGELOG),
        ("we don’t need the linter anymore.", LINTER),
        ("Please drop the restriction on retries.", RETRIES),
        ("ok, let's get rid of the mocks rule, it slows us down", MOCKS),
        ("ignore what i said about pushing to main", PUSH),
        ("I changed my mind about the tabs.", TABS),
        ("I've changed my mind about mocks: use them if you need to.", MOCKS),
        ("The linter is no longer required.", LINTER),
        ("The changelog isn't needed any more.", CHANGELOG),
        ("There's no need to run the linter any more.", LINTER),
        ("you no longer have to run the linter", LINTER),
        ("Mocks are allowed again.", MOCKS),
        ("so mocks are now allowed", MOCKS),
        ("As I said before, the mocks rule is dropped.", MOCKS),
        ("Disregard the convention on tabs please.", TABS),
        ("never mind what I said about the changelog", CHANGELOG),
        ("forget the mocks thing", MOCKS),
        ("the ban on mocks has been lifted because Ann needs them", MOCKS),
        ("The policy on pushing to main no longer holds.", PUSH),
        ("Feel free to use mocks again.", MOCKS),
        ("I take back what I said about retries", RETRIES),
        ("Forget that rule about tabs but keep the one about mocks.", TABS),
        ("forget the rule about mocks and just use them", MOCKS),
        ("we don't have to write changelog lines any more, thanks", CHANGELOG),
        ("Good. The rule that you run the linter can go.", LINTER),
        ("we are free to push to main from now on", PUSH),
        ("Actually, drop tabs: we go back to spaces, the editor shows them badly.", TABS),
        ("ok, drop tabs and use spaces instead", TABS),
        ("No more squashing, keep every one of them.", SQUASH),
        ("Die Regel mit den Mocks gilt nicht mehr.", MOCKS),
        ("vergiss die Deutsch-Regel", GERMAN),
    ],
)
def test_a_person_ends_the_one_rule_that_the_words_name(said, rule):
    assert ended(said) == [rule]


@rows(
    "said",
    [
        "Is the rule about mocks gone?",
        "should we drop the rule about tabs?",
        "Don't forget the rule about tabs.",
        "Never ignore the rule about retries.",
        "you keep breaking the rule about mocks",
        "You ignore the rule about tabs all the time.",
        "The rules about mocks and tabs are gone.",
        "forget the rules about mocks and the linter",
        "The rule about deploys is gone.",
        "The rule about mocks is not gone.",
        "I don't think the mocks rule is dropped.",
        "If the suite is slow, forget the rule about mocks.",
        "The rule about mocks is gone once we ship.",
        "The rule about tabs does not apply here.",
        "ignore the rule about mocks for now",
        "Ignore the rule about tabs in this file.",
        "The mocks rule no longer applies to unit tests.",
        "The rule about tabs is gone from the README.",
        "Bob says the rule about mocks is gone.",
        'It says "the rule about mocks is gone", which is wrong.',
        "Maybe we should drop the rule about retries.",
        "I would scrap the rule about tabs.",
        "you can push to main now",
        "you can run the linter again",
        "go ahead and push to main after all the tests pass",
        "we don't need mocks any more",
        "you can use the linter after all",
        "We don't need this any more.",
        "We don't need the parser any more.",
        "the retries are gone",
        "I forgot to drop the rule about tabs.",
        "the mocks rule is gone, or is it",
        "The rule about tabs is gone until Friday.",
        "remove the retries from the webhook",
        "drop the constraint",
        "drop the tabs in this file and go back to spaces",
        "if the tabs look bad, drop tabs and use spaces instead",
        "drop it and go back to tabs",
        "no more mocks in the report",
        "No more retrying, it hides the fault.",
        "Explain why the rule about mocks is gone.",
        "the rule about retries is gone, right",
        "The rule about tabs is gone. " * 30,
    ],
)  # fmt: skip
def test_questions_conditions_reports_and_exceptions_end_nothing(said):
    assert ended(said) == []
    assert not any(not one.words for one in endings(said) if one.kind == "named")


def test_each_sentence_may_end_a_rule_of_its_own():
    assert ended("The rule about mocks is gone. Scrap the rule about tabs, too.") == [MOCKS, TABS]


def test_only_the_words_of_the_name_count():
    found = ending("The rule about retries is gone, retry the upload as often as you like.")

    assert found is not None
    assert found.words == {"retri"}
    assert ending("the old rule is gone") == ("named", frozenset(), "")

import pytest

from aether.text.rules import MOST_CHARS, bare, rule, rules

RULES = [
    "Keep every amount as integer cents.",
    "Never use floats for money.",
    "An issued invoice must never be changed.",
    "Run `make check` before every commit.",
    "Do not add a dependency without asking me first.",
    "money is kept in cents; a float must never get into an amount.",
    "The same key must give the same invoice.",
    "don't log names or addresses.",
    "Amounts are integers as well, no floats anywhere.",
    "Reports are in euros, please no dollars.",
    "The linter has to pass before each commit.",
    "No new dependencies for mail.",
    "No holes, ever, in the numbers.",
    "Whenever the schema changes, bump its version.",
    "A printed page stays as it is, always.",
    "We never commit to main.",
    "Secrets are not allowed in logs; never print them.",
]
PREFERENCES = [
    "Prefer plain functions over classes.",
    "stick to plain functions rather than classes.",
    "I prefer tabs in Makefiles.",
    "We generally prefer small commits.",
    "use the british spelling :)",
]
OF_THE_MOMENT = [
    "I need a medium size with high ventilation.",
    "I'd like to cancel all my orders.",
    "I want to exchange it for a red one.",
    "No further assistance is required.",
    "That must not happen.",
    "I must have mixed it up again.",
    "don't push yet",
    "commit only the version command for now",
    "Don't worry about the tests.",
    "I never saw that page.",
    "The paths are never tested.",
    "Its text may not match the code.",
    "I can always buy it later.",
    "I'd prefer a map here.",
    "I prefer the second option.",
    "Would you never use tabs?",
    "The suite number should be 641.",
    "Order #W12 must be paid by card.",
    "Ambiguity must not mean silence:",
    "Run the whole suite after each; never break the",
    "const x = never(use, tabs);",
    "must not block writers.",
    "Never ever.",
    "You must " + "wait " * MOST_CHARS,
]


@pytest.mark.parametrize("sentence", RULES)
def test_what_binds_all_future_work_is_a_constraint(sentence):
    found = rule(sentence)

    assert found is not None
    assert (found.kind, found.text) == ("constraint", sentence)


@pytest.mark.parametrize("sentence", PREFERENCES)
def test_what_is_preferred_in_general_is_a_preference(sentence):
    found = rule(sentence)

    assert found is not None
    assert found.kind == "preference"


@pytest.mark.parametrize("sentence", OF_THE_MOMENT)
def test_what_is_wanted_at_the_moment_is_no_rule(sentence):
    assert rule(sentence) is None


@pytest.mark.parametrize(
    "said",
    [
        "- Never use tabs.",
        "2. Never use tabs.",
        "ok. Never use tabs.",
        "And same as always: Never use tabs.",
        "Remember that Never use tabs.",
        "One more thing for the style: Never use tabs.",
        "Then the style: Never use tabs.",
        "Also, please Never use tabs.",
    ],
)
def test_a_rule_is_worded_without_what_only_announces_it(said):
    assert bare(said) == "Never use tabs."
    assert said.endswith(bare(said))


def test_a_text_that_only_announces_stays():
    assert bare("- ") == "-"
    assert bare("No floats anywhere.") == "No floats anywhere."


def test_a_sentence_without_its_subject_is_taken_with_the_one_before():
    text = "The backup runs nightly. must not block writers."

    assert [one.text for one in rules(["The backup runs nightly.", "must not block writers."], text)] == [
        text
    ]
    assert (
        rules(["- The backup runs nightly.", "- must not block writers."], text.replace(" m", "\n- m")) == []
    )
    assert rules(["must not block writers."], text) == []


def test_a_rule_said_twice_is_one():
    assert len(rules(["- Never use tabs.", "Never use tabs."], "")) == 1

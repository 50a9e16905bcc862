from aether.text.classify import MOST_CHARS, rule, rules, without_lead_in
from tests.tables import rows

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
    "Use pnpm, not npm.",
    "Use `uv` instead of pip.",
    "Make sure all SQL goes through the repository layer",
    "Make sure that errors never reach the client.",
    "Ensure every endpoint has a test.",
    "Only support Python 3.12.",
    "Deploy only on Tuesdays.",
    "From now on answer in German.",
    "I don't want any mocks in the tests.",
    "I don't want you to add dependencies.",
    "Comments please always in English.",
    "Commit messages in English, always please",
    "Whenever you change the schema, bump its version.",
    "We must support Windows 7.",
    "niemals Tabs verwenden.",
    "Die API muss immer JSON liefern.",
    "Ab jetzt auf Deutsch antworten.",
    "Verwende pnpm, nicht npm.",
    "Auf main bitte nicht pushen.",
    "Nur Python 3.12 unterstützen.",
    "Deployt wird nur am Dienstag, und Tests müssen davor laufen.",
    "Ich will keine Mocks in den Tests.",
    "Ein Betrag darf nie eine Fließkommazahl sein.",
    "Alle Beträge müssen ganze Cent sein.",
]
PREFERENCES = [
    "Prefer plain functions over classes.",
    "stick to plain functions rather than classes.",
    "I prefer tabs in Makefiles.",
    "We generally prefer small commits.",
    "use the british spelling :)",
    "I don't like mocks",
    "I'd rather have one file per month.",
    "Lieber pathlib statt os.path.",
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
    "I don't want to wait",
    "I don't like the way this looks.",
    "I'd rather have it blue.",
    "Make sure the tests pass",
    "Make sure all 5 files are updated",
    "Only change the README.",
    "Use it, not the other.",
    "Do you remember when we used SQLite?",
    "Bitte noch nicht pushen.",
    "Das darf nicht passieren.",
]
COMPLAINTS = [
    "the server never starts, I must restart it every time",
    "We have to restart the worker every time",
    "Every time I run it, it crashes",
    "Test login fails every time",
    "The build works, never fails in CI.",
    "The tests keep failing and I have to restart the server each time.",
    "In the future we could add caching.",
    "Der Server startet nie, ich muss ihn immer neu starten.",
    "Der Server muss neu gestartet werden.",
    "Der Test schlägt immer fehl.",
]


@rows("sentence", RULES)
def test_what_binds_all_future_work_is_a_constraint(sentence):
    found = rule(sentence)

    assert found is not None
    assert (found.kind, found.text) == ("constraint", sentence)


@rows("sentence", PREFERENCES)
def test_what_is_preferred_in_general_is_a_preference(sentence):
    found = rule(sentence)

    assert found is not None
    assert found.kind == "preference"


@rows("sentence", OF_THE_MOMENT)
def test_what_is_wanted_at_the_moment_is_no_rule(sentence):
    assert rule(sentence) is None


@rows("sentence", COMPLAINTS)
def test_what_happens_and_has_to_be_done_about_it_is_no_rule(sentence):
    assert rule(sentence) is None


@rows("announced", ["Remember: ", "Please remember that ", "- Rule: "])
def test_what_is_to_be_remembered_is_a_rule(announced):
    found = rule(f"{announced}deploys happen on Tuesdays")

    assert found == ("constraint", "deploys happen on Tuesdays")
    assert rule("Deploys happen on Tuesdays") is None
    assert rule("Remember when we deployed on Tuesdays") is None


@rows(
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
    assert without_lead_in(said) == "Never use tabs."
    assert said.endswith(without_lead_in(said))


def test_a_text_that_only_announces_stays():
    assert without_lead_in("- ") == "-"
    assert without_lead_in("No floats anywhere.") == "No floats anywhere."


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

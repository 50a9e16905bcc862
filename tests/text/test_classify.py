"""The kinds of statements: single sentences, rules, messages and answers."""

from __future__ import annotations

import re

from aether.text import classify as classify_module
from aether.text.classify import (
    MOST_CHARS,
    asks_for_decision,
    binding_kind,
    classify,
    closing_question,
    is_account,
    is_empty_reply,
    is_reply,
    is_thanks,
    kind_of_paragraph,
    message_by_kind,
    rule,
    rules,
    statements_by_kind,
    without_lead_in,
)
from tests.tables import rows


@rows(
    ("sentence", "kind"),
    [
        ("We chose SQLite because it needs no server.", "decision"),
        ("Going with tabs instead of spaces.", "decision"),
        ("Never commit to main.", "constraint"),
        ("The cache must hold at most 100 entries.", "constraint"),
        ("I prefer short functions.", "preference"),
        ("The build is blocked by a missing key.", "blocker"),
        ("The upload crashes with a ValueError.", "blocker"),
        ("The root cause was a stale lock.", "solution"),
        ("Fixed the failing login test.", "solution"),
        ("All 42 tests passed.", "outcome"),
        ("Added a health endpoint.", "outcome"),
        ("Let me look at the config first.", "exploration"),
        ("I'm not sure, what if the clock is off.", "exploration"),
        ("Thanks, sounds good!", "chatter"),
        ("", "chatter"),
        ("The port is 8080.", "fact"),
    ],
)
def test_the_words_of_a_sentence_decide_its_kind(sentence, kind):
    assert classify(sentence) == kind


@rows("sentence", ["The prefix holds the mustard.", "Passages and creatures.", "A fixture."])
def test_parts_of_words_are_no_cues(sentence):
    assert classify(sentence) == "fact"


def test_marks_of_a_list_and_curly_quotes_change_nothing():
    assert classify("  - **Don’t use** tabs") == classify("Don't use tabs") == "constraint"


def test_a_long_sentence_is_never_chatter():
    assert classify(" ".join(["thanks"] * 20)) == "fact"


@rows(
    ("sentence", "kind"),
    [
        ("Checking the tables: I decided to use pgloader.", "decision"),
        ("Looking at the schema, we will use pgloader instead of COPY.", "decision"),
        ("Looking at what we decided.", "exploration"),
        ("Let me see whether we chose it.", "exploration"),
    ],
)
def test_a_choice_is_one_however_the_sentence_opens(sentence, kind):
    assert classify(sentence) == kind


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
def test_a_lasting_demand_is_a_constraint(sentence):
    found = rule(sentence)

    assert found is not None
    assert (found.kind, found.text) == ("constraint", sentence)


@rows("sentence", PREFERENCES)
def test_a_general_preference_is_a_preference(sentence):
    found = rule(sentence)

    assert found is not None
    assert found.kind == "preference"


@rows("sentence", OF_THE_MOMENT)
def test_a_momentary_wish_is_no_rule(sentence):
    assert rule(sentence) is None


@rows("sentence", COMPLAINTS)
def test_a_complaint_is_no_rule(sentence):
    assert rule(sentence) is None


@rows("announced", ["Remember: ", "Please remember that ", "- Rule: "])
def test_a_statement_to_remember_is_a_rule(announced):
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
def test_the_text_of_a_rule_has_no_lead_in(said):
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


def test_each_entry_below_a_heading_of_rules_sets_one():
    plan = "## Ground rules\n\n- Fix the tool only. Do NOT edit\n  the tasks. They are old.\n1. Score with the old scorers.\n\n## Steps\n- Build it.\n"
    wanted = ["Fix the tool only.", "Do NOT edit the tasks.", "Score with the old scorers."]

    assert [text for kind, text in message_by_kind(plan) if kind == "constraint"] == wanted
    # Carried out, a pasted plan holds; of a pasted review nothing does.
    for opening, held in (("Implement this plan:", wanted), ("feedback I got:", [])):
        pasted = (
            f"{opening}\n# Faster scans\n\nThe scan must never take a second. {'It is slow. ' * 60}\n\n{plan}"
        )
        assert [text for kind, text in message_by_kind(pasted) if kind == "constraint"] == held


@rows(
    ("said", "held"),
    [
        ("Why?\n\n```yaml\nrules:\n- host: example.com\n- http: all\n```", []),
        ("Constraints:\n- no new dependencies\n- keep the public API\nStart with the lexer and show me the plan", ["no new dependencies", "keep the public API"]),
        ("Constraints:\n- keep the public\n  API of the lexer\n", ["keep the public API of the lexer"]),
    ],
)  # fmt: skip
def test_code_and_the_lines_below_a_list_are_no_rules(said, held):
    assert [text for kind, text in message_by_kind(said) if kind == "constraint"] == held


def test_a_rule_said_twice_is_one():
    assert len(rules(["- Never use tabs.", "Never use tabs."], "")) == 1


@rows(
    "text",
    [
        "Let me look at the tests.",
        "I'm waiting on the reviewers so I can merge their findings instead of guessing.",
        "Now I'll fix the failing build of the parser.",
        "Waiting for the release to finish before the tests fail again.",
        "If the fetch fails, the tool shows a manual command.",
        "Fixed it.",
        "What was decided about the failing tests here?",
        "The following tests failed in the second run:",
        "```\nwe decided to use tabs instead of spaces here\n```",
        "| decided | to use tabs instead of spaces in this table |",
        "I prefer the second of these two ways very much.",
        "decided " * 200,
    ],
)
def test_statements_about_work_in_progress_are_dropped(text):
    assert statements_by_kind(text) == {}


def test_decisions_findings_and_fixes_are_kept_by_kind():
    said = (
        "We decided to store cents instead of floats. The root cause was a missing lock in the writer. "
        "The build fails because Go 1.19 is too old. The type check passed without any errors at last. "
        "The signature requires a second parameter since last week."
    )

    assert {kind: len(sentences) for kind, sentences in statements_by_kind(said).items()} == {
        "decision": 1,
        "solution": 1,
        "blocker": 1,
        "outcome": 1,
        "observation": 1,
    }


def test_an_intention_with_a_reason_is_a_decision():
    assert "decision" in statements_by_kind(
        "I'll use SQLite instead of Postgres because there is one writer."
    )


def test_the_rules_of_a_request_come_after_it():
    text = "Build the thing.\n\n- Never use floats.\n- Prefer plain functions over classes."

    assert message_by_kind(text) == [
        ("user_input", text),
        ("constraint", "Never use floats."),
        ("preference", "Prefer plain functions over classes."),
    ]


@rows(
    "text",
    ["Never commit to main.", "- Never commit to main.", "ok.\nAnd same as always: Never commit to main."],
)
def test_a_request_that_is_only_rules_is_those_rules(text):
    assert message_by_kind(text) == [("constraint", "Never commit to main.")]


@rows(
    "text",
    ["We need to rebase on main now.", "Empty source repo never tested.", "Must it be green?", "Add a page."],
)
def test_tasks_reports_and_questions_set_no_rule(text):
    assert message_by_kind(text) == [("user_input", text)]


@rows(
    ("sentence", "kind"),
    [
        ("- We decided to rewrite the lexer by hand.", "decision"),
        ("Never deploy without a fresh backup.", "constraint"),
        ("The deployment is blocked by the schema.", "blocker"),
        ("If you decide on one of them, feel free to ask.", ""),
        ("Should we use tabs instead of spaces?", ""),
        ("The signature requires a second parameter.", ""),
        ("FAILED tests/test_a.py::test_it - AssertionError: not equal", ""),
        ("make: *** [Makefile:7: check] Error 1 again", ""),
        ("This feels like it should be a tracked issue.", ""),
        ("All tests passed and no errors were found.", ""),
        ("I'm fixing the failing build right here.", ""),
        ("If the fetch fails, it shows a manual command.", ""),
        ("Tests fail.", ""),
        ("```\nwe decided to use tabs here\n```", ""),
        ("The sky over the port is blue.", ""),
    ],
)
def test_a_binding_statement_holds_by_itself(sentence, kind):
    assert binding_kind(sentence) == kind


@rows(
    ("text", "says_more"),
    [
        ("Added the page and all tests pass.", True),
        ("Fixed the crash. The root cause was a lock.", True),
        ("We decided to use SQLite. We will keep it.", True),
        ("You're welcome! Feel free to ask if you decide to return it.", True),
        ("Great, thanks!", False),
        ("", False),
        ("A helper is on its way.", False),
        ("The agent is looking at the date formats. I'll wait for it.", False),
        ("I've launched a sub-agent to look at the date formats.", False),
        ("Let me fix the parser. I'll now update the tests.", False),
        ("I'm running the tests now.", False),
        ("Running the tests.", False),
        ("Waiting for the tests.", False),
        ("Still waiting on the helper.", False),
        ("One moment.", False),
        ("A helper is on its way. We decided to use SQLite.", True),
        ("I'll go with SQLite because there is one writer.", True),
        ("I'll keep the dates as text.", True),
        ("I'm confident the parser reads offsets.", True),
        ("We're missing the invoices module.", True),
        ("All tests are running green now.", True),
        ("Testing is done and the page was added.", True),
        ("Running the tests shows 3 failures.", True),
        ("The server is running on port 8080.", True),
        ("I asked the helper which format they use: ISO.", True),
        ("Finding: the invoices use ISO dates only.", True),
    ],
)
def test_an_account_says_more_than_that_work_is_in_progress(text, says_more):
    assert is_account(text) is says_more


@rows(
    ("text", "kind"),
    [
        ("We decided to use SQLite.", "decision"),
        ("The sky is blue.", "observation"),
        ("Thanks!", ""),
        ("```\nx\n```", "observation"),
        ("Never deploy without a backup.", "constraint"),
        ("The parser requires two arguments.", "observation"),
    ],
)
def test_a_paragraph_is_typed_by_its_strongest_sentence(text, kind):
    assert kind_of_paragraph(text) == kind


def test_a_short_message_answers_a_question_and_a_question_does_not():
    assert is_reply("the second one")
    assert is_reply(
        "yes, " + "go on with the plan as it stands and write it all down in the usual place please"
    )
    assert not is_reply("why?")
    assert not is_reply("Build a service that answers requests. " * 5)


def test_encouragement_is_an_empty_reply():
    assert is_empty_reply("ok, great, thanks!")
    assert not is_empty_reply("use SQLite")


def test_a_reply_of_words_of_no_weight_is_known_without_its_kind(monkeypatch):
    monkeypatch.setattr(classify_module, "classify", None)  # it compiles the cues of each kind

    assert not is_empty_reply("never use floats")
    assert is_empty_reply("- sounds good, let's continue")


def test_the_closing_question_is_at_the_end():
    assert closing_question("Is it late? " * 1 + "It is. " * 8 + "Shall I go on?") == "Shall I go on?"
    assert closing_question("No question here.") == ""
    assert asks_for_decision(closing_question("Done. Should I use SQLite or Postgres?"))
    assert asks_for_decision("WeasyPrint or fpdf2?")
    assert not asks_for_decision("How can I help you today?")
    assert not asks_for_decision("Want me to go ahead?")
    assert not asks_for_decision("Would you like to proceed with this option or the other?")


@rows(
    "text, rule",
    [
        ("Sure, but the tool should clean up by itself, not you doing it by hand now.", "Sure, but the tool should clean up by itself, not you doing it by hand now."),
        ("Do:\n- Let `load` take `--dry-run`.\n  - It should not write files.", "Let `load` take `--dry-run`. - It should not write files."),
        ("Build it. Write your progress into docs/progress.md.", "Write your progress into docs/progress.md."),
    ],
)  # fmt: skip
def test_a_wish_about_the_agent_or_in_a_list_is_a_rule(text, rule):
    assert [one for kind, one in message_by_kind(text) if kind == "constraint"] == [rule]


def test_what_a_described_feature_must_be_is_no_rule():
    kinds = [kind for kind, _ in message_by_kind("Do:\n- send the report by mail\n- must be off by default")]
    assert "constraint" not in kinds


@rows(
    "text",
    [
        "It should not take long.", "- It should not fail there, I think.", "why is it not you adding it now",
        "I think it should not be slow", "let's avoid this for now", "write your answer here",
    ],
)  # fmt: skip
def test_an_expectation_or_a_moment_sets_no_rule(text):
    assert message_by_kind(text) == [("user_input", text)]


@rows(
    "opening",
    ["Looking at step 0. ", "Checking the tables: ", "Let me check the schema. ", "Running it now. "],
)
def test_a_decision_is_found_behind_any_opening(opening):
    text = f"{opening}I decided to use pgloader, because it keeps memory low."

    assert statements_by_kind(text)["decision"][0].endswith(
        "I decided to use pgloader, because it keeps memory low."
    )


@rows(
    "text",
    [
        "thanks, looks good",
        "that looks great, thank you!",
        "Danke, passt!",
        "well done",
    ],
)
def test_thanks_ask_for_nothing(text):
    assert is_thanks(text)
    assert is_empty_reply(text)


@rows(
    "text",
    [
        "ship it",
        "looks good, ship it",
        "ship it to production",
        "great, thanks. Now add tests",
        "good idea: use sqlite",
        "looks like a bug",
    ],
)
def test_thanks_with_a_request_are_a_request(text):
    assert not is_empty_reply(text)


@rows(
    "text", ["Hello! How can I help you today?", "It is noon.", "Looked it up.", "Womit kann ich dir helfen?"]
)
def test_small_talk_is_no_account(text):
    assert not is_account(text)


@rows("text", ["No findings.", "It uses SQLite.", "The answer is 42.", "Added the page."])
def test_a_short_answer_that_names_something_is_an_account(text):
    assert is_account(text)


def test_every_wording_of_thanks_starts_with_a_word_by_which_it_is_looked_for():
    pattern = classify_module._THANKS.pattern.removeprefix(r"\W*(?:").removesuffix(r"\b\W*)+\Z")
    said = _wordings(list(re._parser.parse(pattern)))

    assert sum(map(is_thanks, said)) > 0.8 * len(said) > 100
    for one in said:
        assert is_thanks(one) == (classify_module._THANKS.match(one) is not None), one
        assert is_thanks(f"“{one.upper()}”") == (classify_module._THANKS.match(one) is not None), one


def _wordings(parts):
    """Return the texts that a parsed pattern describes; a repetition beyond one, and any character, is left out."""
    made = [""]
    for name, given in parts:
        match str(name):
            case "LITERAL":
                after = [chr(given)]
            case "IN":
                after = [chr(one) for kind, one in given if str(kind) == "LITERAL"] or [""]
            case "BRANCH":
                after = [one for branch in given[1] for one in _wordings(list(branch))]
            case "SUBPATTERN":
                after = _wordings(list(given[3]))
            case "MAX_REPEAT":
                after = [
                    *([""] if given[0] == 0 else []),
                    *(_wordings(list(given[2])) if given[1] == 1 else []),
                ]
            case _:  # a place, a look ahead or behind
                after = [""]
        made = [one + more for one in made for more in after]
    return list(dict.fromkeys(made))

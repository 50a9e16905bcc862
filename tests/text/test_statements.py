from aether.text.classify import (
    asks_for_decision,
    binding_kind,
    closing_question,
    is_empty_reply,
    is_reply,
    is_thanks,
    kind_of_answer,
    kind_of_paragraph,
    message_by_kind,
    split_choices,
    statements_by_kind,
)
from tests.tables import rows


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
def test_what_is_said_on_the_way_and_over_at_once_is_dropped(text):
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


def test_the_rules_of_a_request_stand_beside_it():
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
    ("text", "kind"),
    [
        ("Let's go with SQLite.", "decision"),
        ("Shall we go with SQLite?", "user_input"),
        ("I'd like to go with the blue one.", "user_input"),
        ("I need some time to decide.", "user_input"),
        ("Add a page. We go with SQLite. It is late. Good luck.", "user_input"),
        ("We went with SQLite " + "and then " * 100, "user_input"),
        ("```\nnever\n```", "user_input"),
    ],
)
def test_a_short_request_that_settles_something_is_a_decision(text, kind):
    assert message_by_kind(text)[0] == (kind, text)


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
def test_what_binds_holds_by_itself(sentence, kind):
    assert binding_kind(sentence) == kind


@rows(
    ("text", "kind"),
    [
        ("Added the page and all tests pass.", "outcome"),
        ("Fixed the crash. The root cause was a lock.", "solution"),
        ("We decided to use SQLite. We will keep it.", "decision"),
        ("You're welcome! Feel free to ask if you decide to return it.", "outcome"),
        ("Great, thanks!", ""),
        ("", ""),
        ("A helper is on its way.", ""),
        ("The agent is looking at the date formats. I'll wait for it.", ""),
        ("I've launched a sub-agent to look at the date formats.", ""),
        ("Let me fix the parser. I'll now update the tests.", ""),
        ("I'm running the tests now.", ""),
        ("Running the tests.", ""),
        ("Waiting for the tests.", ""),
        ("Still waiting on the helper.", ""),
        ("One moment.", ""),
        ("A helper is on its way. We decided to use SQLite.", "decision"),
        ("I'll go with SQLite because there is one writer.", "decision"),
        ("I'll keep the dates as text.", "outcome"),
        ("I'm confident the parser reads offsets.", "outcome"),
        ("We're missing the invoices module.", "outcome"),
        ("All tests are running green now.", "outcome"),
        ("Testing is done and the page was added.", "outcome"),
        ("Running the tests shows 3 failures.", "outcome"),
        ("The server is running on port 8080.", "outcome"),
        ("I asked the helper which format they use: ISO.", "outcome"),
        ("Finding: the invoices use ISO dates only.", "outcome"),
    ],
)
def test_an_answer_is_what_most_of_it_says(text, kind):
    assert kind_of_answer(text) == kind


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


def test_spurring_on_is_no_answer():
    assert is_empty_reply("ok, great, thanks!")
    assert not is_empty_reply("use SQLite")


def test_the_question_is_what_stands_at_the_end():
    assert closing_question("Is it late? " * 1 + "It is. " * 8 + "Shall I go on?") == "Shall I go on?"
    assert closing_question("No question here.") == ""
    assert asks_for_decision(closing_question("Done. Should I use SQLite or Postgres?"))
    assert asks_for_decision("WeasyPrint or fpdf2?")
    assert not asks_for_decision("How can I help you today?")
    assert not asks_for_decision("Want me to go ahead?")
    assert not asks_for_decision("Would you like to proceed with this option or the other?")


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
        "looks good, ship it",
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
    ["ship it to production", "great, thanks. Now add tests", "good idea: use sqlite", "looks like a bug"],
)
def test_thanks_with_a_request_are_a_request(text):
    assert not is_empty_reply(text)


@rows(
    "text", ["Hello! How can I help you today?", "It is noon.", "Looked it up.", "Womit kann ich dir helfen?"]
)
def test_small_talk_is_no_outcome(text):
    assert kind_of_answer(text) == ""


@rows("text", ["No findings.", "It uses SQLite.", "The answer is 42.", "Added the page."])
def test_a_short_answer_that_names_something_is_an_outcome(text):
    assert kind_of_answer(text) == "outcome"


def test_what_was_chosen_is_taken_out_of_a_report():
    text = (
        "I've added the limiter.\n\n---\n- We chose one bucket per customer, because offices share an address.\n"
        "- All tests pass. I decided to keep the old header for now. See README."
    )

    assert split_choices(text) == (
        "We chose one bucket per customer, because offices share an address. I decided to keep the old header for now.",
        "I've added the limiter.\n\n---\n- All tests pass. See README.",
    )


def test_a_report_without_a_choice_stays_as_it_is():
    text = "\n---\nAdded the limiter, which works rather well.\n- \n"

    assert split_choices(text) == ("", text)

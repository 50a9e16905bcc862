from aether.compaction.facts import GOAL_CHARS, MOST_COMPARED, REQUEST_CHARS, facts_of, merged_facts
from aether.compaction.shapes import Facts, Summary
from aether.compaction.summary import rendered
from aether.messages.convert import read
from aether.messages.tool_calls import ErrorFact, FileFact
from tests.compaction.conversations import bash, conversation, model, tool, user
from tests.tables import rows

OPENING = "Fix the login in src/auth.py. Never touch the migrations."


def facts(*parts, positions=None):
    messages = conversation(*parts)
    return facts_of(messages, range(len(messages)) if positions is None else positions)


def test_the_opening_request_is_the_goal_and_its_rules_are_constraints():
    found = facts(user(OPENING))

    assert found.goals == (OPENING,)
    assert found.constraints == ("Never touch the migrations.",)


def test_what_changes_the_direction_is_a_goal_and_everything_else_a_request():
    found = facts(
        user(OPENING),
        user("Actually, drop the login and fix the logout."),
        user("Add a test for it."),
        user("Is it instead of the old one?"),
    )

    assert found.goals == (OPENING, "Actually, drop the login and fix the logout.")
    assert found.requests == ("Add a test for it.", "Is it instead of the old one?")


def test_where_the_opening_stays_it_is_no_fact():
    assert facts(user(OPENING), user("Add a test for it."), positions=[1]) == Facts(
        requests=("Add a test for it.",)
    )


def test_after_a_summary_the_next_request_is_not_the_opening():
    found = facts(user(rendered(Summary(1, Facts(goals=(OPENING,)), "Done."))), user("Add a test for it."))

    assert found == Facts(requests=("Add a test for it.",))


@rows(
    "text",
    [
        "ok, thanks",
        "<system-reminder>Never be late.</system-reminder>",
        "<aether-memory>Never be late. Build a ship.</aether-memory>",
        "This session is being continued from a previous conversation that ran out of context. Never be late.",
        "[Request interrupted by user]",
    ],
)
def test_what_nobody_asked_for_is_no_request(text):
    found = facts(user(text))

    assert (found.goals, found.requests, found.constraints) == ((), (), ())


def test_the_request_behind_machinery_opens_the_conversation():
    found = facts(user("<system-reminder>be brief</system-reminder>"), user(OPENING))

    assert found.goals == (OPENING,)


def test_decisions_are_what_the_model_decided_and_what_a_person_chose():
    found = facts(
        user(OPENING),
        model("- We decided to keep the table because tokens expire after 3600 s."),
        model("It works. Shall I use Redis for the sessions?"),
        user("yes"),
        user("We'll go with Postgres."),
    )

    assert found.decisions == (
        "We decided to keep the table because tokens expire after 3600 s.",
        "Asked: Shall I use Redis for the sessions?\nAnswered: yes",
        "We'll go with Postgres.",
    )


def test_an_answer_that_settles_nothing_is_a_request_unless_it_says_nothing():
    found = facts(
        user(OPENING),
        model("Could you tell me the user id?"),
        user("mia_4711"),
        model("Want me to proceed?"),
        user("yes"),
    )

    assert found.requests == ("Asked: Could you tell me the user id?\nAnswered: mia_4711",)
    assert found.decisions == ()


def test_a_question_that_someone_else_answered_is_not_asked_again():
    found = facts(
        user(OPENING),
        model("Shall I use Redis?"),
        user("Look at the readme first and tell me all that it says about the old login and the new one."),
        user("yes, both"),
    )

    assert found.decisions == ()


def test_a_summary_asks_nothing_nor_do_tools():
    asked = rendered(Summary(1, Facts(), "Shall I use Redis?"))

    assert facts(model(asked), user("keep it local")).requests == ("keep it local",)
    assert (
        facts(
            *[bash("ls", "a?")] * 3, user("Fix a."), bash("ls"), bash("ls"), user("keep it local")
        ).decisions
        == ()
    )


def test_only_constraints_of_people_count():
    assert (
        facts(user(OPENING), model("You must never use floats for money."), positions=[1]).constraints == ()
    )


def test_calls_without_results_are_open():
    found = facts(
        user(OPENING), bash("cd app && make test", None), tool("Fetch", None, url="a\nb"), tool("Now", None)
    )

    assert found.open_calls == ("Bash: make test", "Fetch: a", "Now")


def test_a_long_argument_of_an_open_call_is_shortened():
    (shown,) = facts(tool("Fetch", None, url="x" * 500)).open_calls

    assert len(shown) == len("Fetch: ") + 120


def test_files_errors_and_names_come_from_what_is_removed():
    found = facts(
        user(OPENING),
        tool("Write", file_path="src/new.py", content="x"),
        bash("make", "error: no rule", failed=True),
        model("See run-4711."),
        tool("Write", file_path="src/late.py", content="x"),
        positions=range(6),
    )

    assert [file.path for file in found.files] == ["src/new.py"]
    assert found.errors == (ErrorFact("$ make\nerror: no rule", open=True),)
    assert found.names == ("run-4711",)


def test_an_error_of_the_last_summary_is_closed_by_what_works_now():
    before = Summary(2, Facts(errors=(ErrorFact("$ make\nno rule", open=True),)), "")

    found = facts(user(rendered(before)), bash("make", "built"))

    assert found.errors == (ErrorFact("$ make\nno rule", open=False),)


def test_positions_out_of_range_and_repeated_ones_do_no_harm():
    assert facts(user(OPENING), positions=[0, 0, 7, -3]).goals == (OPENING,)


def test_a_long_request_is_told_by_the_sentences_it_begins_with():
    text = "Import the file. " + "Mind the gap in it. " * 100

    (request,) = facts(user(OPENING), user(text), positions=[1]).requests

    assert text.startswith(request)
    assert REQUEST_CHARS - 40 < len(request) <= REQUEST_CHARS
    assert request.endswith(".")


def test_a_long_text_without_sentences_is_cut_where_the_room_ends():
    (goal,) = facts(user("x" * (GOAL_CHARS + 9))).goals

    assert goal == "x" * GOAL_CHARS


def test_facts_are_the_same_whatever_the_wire():
    raws = [
        {"role": "system", "content": "Never sleep."},
        {"role": "user", "content": OPENING},
        {"role": "assistant", "content": "We decided to keep the old table because it is small."},
    ]

    assert facts_of(read(raws, "openai"), range(3)) == facts_of(read(raws, "plain"), range(3))


def test_merging_loses_nothing_and_repeats_nothing():
    older = Facts(
        goals=("Build it.",), requests=("Add a page.", "Go on with b."), constraints=("Never use floats for money.",),
        decisions=("We chose SQLite.",), open_calls=("Bash: make",), files=(FileFact("a", "changed", 1),),
        errors=(ErrorFact("$ make\nno rule", open=True),), names=("a_b", "c_d"), lookups=("one",),
    )  # fmt: skip
    newer = Facts(
        goals=("Actually, ship c_d.",), requests=("Add a page.", "Build it."), constraints=("Never use floats for money",),
        decisions=("We decided on tabs.",), files=(FileFact("a", "changed", 2),),
        errors=(ErrorFact("$ make\nno rule", open=False),), names=("e_f", "a_b"), lookups=("two",),
    )  # fmt: skip

    assert merged_facts(older, newer) == Facts(
        goals=("Build it.", "Actually, ship c_d."),
        requests=("Go on with b.", "Add a page."),
        constraints=("Never use floats for money.",),
        decisions=("We chose SQLite.", "We decided on tabs."),
        open_calls=("Bash: make",),
        files=(FileFact("a", "changed", 3),),
        errors=(ErrorFact("$ make\nno rule", open=False),),
        names=("e_f", "a_b"),
        lookups=("one", "two"),
    )


def test_more_statements_than_can_be_compared_are_only_told_apart_by_their_words():
    many = tuple(f"Never use tool {n} in production." for n in range(MOST_COMPARED + 1))

    assert merged_facts(Facts(constraints=many), Facts(constraints=many[:5])).constraints == many


def test_an_open_call_that_was_carried_is_not_repeated_when_it_is_still_open():
    assert merged_facts(Facts(open_calls=("a", "b")), Facts(open_calls=("a",))).open_calls == ("b", "a")


def test_a_rule_in_a_later_request_is_a_constraint_beside_it():
    found = facts(user(OPENING), user("Add a page for it. Never use floats for money."), positions=[1])

    assert found.requests == ("Add a page for it. Never use floats for money.",)
    assert found.constraints == ("Never use floats for money.",)


def test_a_request_whose_room_ends_between_two_sentences_is_cut_there():
    text = "Abcde fgh. " + "Mind the x " * 53 + "now.   " + "And the rest of it is told here. " * 9

    (request,) = facts(user(OPENING), user(text), positions=[1]).requests

    assert request.endswith("now.")


@rows(
    ("sentence", "decides"),
    [
        ("The relay-decision tests are in the tree and green.", False),
        ("The failure appears intermittent rather than deterministic.", False),
        ("Commit f9170fc adds direct relay decision coverage to it.", False),
        ("We decided to keep the decision tests in one file.", True),
        ("We went with SQLite instead of Postgres.", True),
    ],
)
def test_what_only_describes_is_no_decision(sentence, decides):
    assert bool(facts(user(OPENING), model(sentence)).decisions) is decides

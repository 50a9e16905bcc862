from aether.backends.extractive.clauses import read_clauses
from aether.backends.extractive.session import NOTHING, compose_session
from tests.backends.extractive.handoffs import PREPARED_AT, handoff, item, signal

ROOMY = 100_000


def compose(*items, kept=None, target=ROOMY, summarised=False, **changes):
    data = handoff(*items, **changes) | ({"summarised": True} if summarised else {})
    clauses = read_clauses(data)
    kept = range(len(clauses)) if kept is None else kept
    return compose_session(data, clauses, list(kept), target_tokens=target)


def contents(session):
    return [entry["content"] for entry in session["high_value_items"]]


def test_ids_and_times_come_from_the_handoff():
    session = compose("The port is 8080.")

    assert session["id"] == session["session_id"]
    assert session["id"].endswith("_9f86d081")
    assert session["compressed_at"] == PREPARED_AT
    assert session["phase"] == 3


def test_decisions_stand_with_their_reasons_and_outcomes_with_their_impact():
    session = compose(
        item("We chose SQLite for the store because it needs no server.", "decision"),
        item("All 42 tests passed on Linux, so the release can go out.", "outcome"),
        item("The release went out on Monday.", "outcome"),
    )

    assert session["key_decisions"] == [
        {"decision": "We chose SQLite for the store", "rationale": "because it needs no server."}
    ]
    assert session["outcomes"] == [
        {"result": "All 42 tests passed on Linux", "impact": "so the release can go out."}
    ]
    assert session["summary"] == "The release went out on Monday."


def test_where_all_stands_elsewhere_the_summary_says_the_first_again():
    session = compose(item("We chose SQLite for the store because it needs no server.", "decision"))

    assert session["summary"] == "We chose SQLite for the store because it needs no server."
    assert compose()["summary"] == NOTHING
    assert len(compose(item("x" * 900, "constraint"), protected=[0])["summary"]) == 400


def test_where_there_is_room_for_nothing_the_summary_says_what_was_decided():
    session = compose("Ran `ls`.", item("We chose SQLite. It needs no server.", "decision"), kept=[])

    assert session["summary"] == "We chose SQLite."
    assert compose("Ran `ls`.", kept=[])["summary"] == "Ran `ls`."


def test_a_short_talk_is_one_paragraph_with_each_speaker_named_once():
    session = compose("Ann: The cat is red", "Bob: Dogs are loud.", "Ann: Cats sleep a lot.", "Bob: No.")

    assert session["summary"] == "Ann: The cat is red; Cats sleep a lot.\nBob: Dogs are loud. No."
    assert session["high_value_items"] == []


def test_a_long_talk_fills_entries_of_about_a_paragraph():
    turns = [
        f"{'Ann' if at % 2 else 'Bob'}: Story number {at} is about a red cat and its house by the sea."
        for at in range(90)
    ]

    session = compose(*turns)

    assert len(session["high_value_items"]) > 2
    assert all(1_000 < len(text) < 2_000 for text in contents(session)[:-1])
    assert session["summary"].count("Story") == 3


def test_the_summary_says_what_was_asked_and_what_came_of_it():
    session = compose(
        item("Please make the import fast.", "user_input"),
        *(f"Fact number {at} says little." for at in range(6)),
        item("The import now takes two seconds.", "outcome"),
        target=0,
    )

    assert session["summary"].startswith("Please make the import fast.")
    assert "takes two seconds." in session["summary"]
    assert session["key_decisions"] == session["outcomes"] == []


def test_records_of_work_share_an_entry_per_type():
    session = compose(
        item("Changed a.py", "code_change"), item("Ran `make x`", "command"), item("Changed b.py", "code_change"),
        *(item(f"Note {at} on the port.", "user_input") for at in range(3)),
    )  # fmt: skip

    assert contents(session)[:2] == ["Changed a.py; Changed b.py", "Ran `make x`"]


def test_what_different_items_say_has_a_line_each():
    session = compose(
        item("Keep the module small. The key is gone.", "user_input"), item("Let a helper look.", "user_input"),
        item("The disk is blue.", "outcome"), item("The disk is large.", "outcome"),
        kept=[1, 2, 3, 4], target=0, summarised=True, required=[],
    )  # fmt: skip

    assert "The key is gone.\nLet a helper look." in contents(session)


def test_what_somebody_else_sums_up_stands_outside_the_summary():
    items = [item("Make it fast.", "user_input"), item("The import takes two seconds.", "outcome")]

    assert contents(compose(*items)) == []
    mine = compose(*items, summarised=True)
    assert contents(mine) == ["Make it fast."]
    assert mine["outcomes"] == [{"result": "The import takes two seconds.", "impact": ""}]
    assert mine["summary"] == "Make it fast."


def test_what_is_highly_relevant_stands_alone():
    session = compose(
        item("The port is 8080.", relevance=0.9), "The host is red.", "The disk is blue.", "A. B. C."
    )

    assert {"content": "The port is 8080.", "relevance_score": 0.9, "type": "observation"} in session[
        "high_value_items"
    ]


def test_structure_costs_no_more_than_its_share():
    decisions = [item(f"We decided on plan {at} for the port.", "decision") for at in range(40)]

    few = compose(*decisions, target=700)

    assert len(few["key_decisions"]) == 6
    assert len(compose(*decisions)["key_decisions"]) == 39
    assert "plan 0" in few["summary"]


def test_what_is_required_stands_alone_and_an_answer_is_a_decision_with_its_question():
    asked = "Asked: Should the import run in one process or in several?\nAnswered: In one, it is simpler."
    required = [
        {"item_id": "wm_0", "content": asked, "why": "decision"},
        {"item_id": "wm_1", "content": "The disk of the build machine is full.", "why": "blocker"},
    ]
    session = compose(
        item(asked, "decision"), "The disk of the build machine is full.", "The port is 8080.", required=required, target=0
    )  # fmt: skip

    assert session["key_decisions"] == [
        {
            "decision": "In one, it is simpler.",
            "rationale": "Asked: Should the import run in one process or in several?",
        }
    ]
    assert contents(session) == ["The disk of the build machine is full."]


def test_speech_that_decides_names_the_speaker():
    turns = [f"Ann: Day {at} was long and loud and full of cats." for at in range(60)]
    session = compose(*turns, item("Ann: We chose a house by the sea for our cats.", relevance=0.9))

    assert session["key_decisions"] == [
        {"decision": "Ann: We chose a house by the sea for our cats.", "rationale": ""}
    ]


def test_protected_content_stands_whole_and_injected_is_marked():
    rule = "  Never, ever\n push (to main)!  "
    session = compose(item(rule, "constraint", 0.9), item("Old news.", injected=True), protected=[0, 1])

    assert session["high_value_items"] == [
        {"content": rule, "relevance_score": 0.9, "type": "constraint"},
        {"content": "Old news.", "relevance_score": 0.5, "type": "observation", "injected": True},
    ]


def test_protected_content_without_an_item_stands_too():
    data = handoff("The port is 8080.") | {"protected": [{"id": "gone", "content": "Keep it.", "why": "x"}]}

    session = compose_session(data, read_clauses(data), [], target_tokens=ROOMY)

    assert contents(session) == ["Keep it."]


def test_a_redirect_is_kept_as_a_constraint():
    session = compose(
        "The port is 8080.",
        signals=[signal("REDIRECT", "the old API"), signal("FOCUS", "ports"), signal("REDIRECT", "")],
    )

    assert session["high_value_items"] == [
        {"content": "the old API", "relevance_score": 1.0, "type": "constraint"}
    ]


def test_clauses_that_stood_together_keep_their_joint():
    text = "We saw lions, tall giraffes, and sleeping bears"

    assert compose(text)["summary"] == text
    assert compose(text, kept=[0, 2])["summary"] == "We saw lions, sleeping bears"

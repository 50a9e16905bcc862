"""A hand-off becomes a session of its own statements, trimmed and cut, in order."""

from __future__ import annotations

from aether.backends import extractive
from aether.backends.base import Request, Settings
from aether.backends.extractive import NAME, complete
from aether.backends.extractive.clauses import read_clauses, split_clauses, trim, unbulleted
from aether.backends.extractive.session import ENTRIES_ONLY, NOTHING, compose_session
from aether.tokens.counters import session_tokens
from tests.backends.extractive.handoffs import PREPARED_AT, count, handoff, item, session, signal, texts
from tests.tables import rows


def notes(number):
    return [
        item(
            f"We moved module{at} into src/part{at}.py because build {at * 7} took {at + 3} minutes on machine{at}."
        )
        for at in range(number)
    ]


def test_the_completion_names_the_backend_and_costs_nothing():
    data = handoff("The port is 8080.")

    completion = complete(Request("session", data, "", {}, 100), settings=Settings(), count=count)

    assert (completion.backend, completion.input_tokens, completion.output_tokens) == (NAME, 0, 0)
    assert extractive.NAME == "extractive"


def test_it_meets_the_target():
    data = handoff(*notes(60))

    tokens = session_tokens(session(data), count)

    assert 0.9 < tokens / data["target_tokens"] <= 1.0


def test_protected_content_is_kept_even_over_the_target():
    rules = [
        item(f"Rule {at}: never touch table {at} of the old store." * 5, "constraint") for at in range(9)
    ]
    data = handoff(*rules, target=50, protected=range(9))

    answer = session(data)

    assert {rule["content"] for rule in rules} <= set(texts(answer))
    assert session_tokens(answer, count) > 50


def test_chatter_and_exploration_are_dropped_first():
    data = handoff("Thanks, great!", "Let me look at the config file again.", *notes(40))

    said = "\n".join(texts(session(data)))

    assert "Thanks" not in said
    assert "Let me look" not in said


def test_a_repeated_statement_is_kept_once():
    data = handoff(*["We decided to use SQLite because it is simple."] * 50, *notes(20))

    assert "\n".join(texts(session(data))).count("SQLite") == 1


def test_statements_that_differ_in_a_number_or_a_negation_are_both_kept():
    data = handoff(
        "The timeout is 30.", "The timeout is 60.", "The timeout is not 30.", "The timeout is 30!", target=300
    )

    said = "\n".join(texts(session(data)))

    assert all(text in said for text in ("timeout is 30.", "timeout is 60.", "timeout is not 30."))
    assert "timeout is 30!" not in said


def test_every_changed_file_and_every_constraint_survives():
    files = [
        item(f"Changed src/deep/file{at}.py: {'it was renamed ' * 9}", "code_change") for at in range(20)
    ]
    rules = [item(f"You must never drop table {at}.", "user_input") for at in range(5)]
    data = handoff(*files, *rules, *notes(20))

    said = "\n".join(texts(session(data)))

    assert all(f"file{at}.py" in said for at in range(20))
    assert all(rule["content"] in said for rule in rules)


def test_a_signal_decides_between_equals():
    pages = [
        f"The {name} page shows {name} entries for every {name} user."
        for name in ("login", "basket", "report")
    ]
    data = handoff(*pages, target=95)

    assert "basket" not in "".join(texts(session(data)))
    assert "basket" in "".join(texts(session(data, signals=[signal("FOCUS", "basket")])))


def test_an_empty_handoff_gives_a_summary_that_says_so():
    assert session(handoff())["summary"]


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


def test_decisions_have_their_reasons_and_outcomes_their_impact():
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


def test_the_summary_repeats_the_first_statement_if_all_are_in_other_fields():
    session = compose(item("We chose SQLite for the store because it needs no server.", "decision"))

    assert session["summary"] == "We chose SQLite for the store because it needs no server."
    assert compose()["summary"] == NOTHING
    assert compose(item("x" * 900, "constraint"), protected=[0])["summary"] == ENTRIES_ONLY


def test_where_there_is_room_for_nothing_the_summary_says_what_was_decided():
    session = compose("Ran `ls`.", item("We chose SQLite. It needs no server.", "decision"), kept=[])

    assert session["summary"] == "We chose SQLite."
    assert compose("Ran `ls`.", kept=[])["summary"] == "Ran `ls`."


def test_a_short_talk_is_one_paragraph_with_each_speaker_named_once():
    session = compose("Ann: The cat is red", "Bob: Dogs are loud.", "Ann: Cats sleep a lot.", "Bob: No.")

    assert session["summary"] == "Ann: The cat is red\nCats sleep a lot\nBob: Dogs are loud\nNo"
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


def test_the_files_are_one_list_and_the_commands_another():
    session = compose(
        item("Changed a.py", "code_change"), item("Ran `make x`", "command"), item("Changed b.py", "code_change"),
        *(item(f"Note {at} on the port.", "user_input") for at in range(3)),
    )  # fmt: skip

    assert contents(session)[-2:] == ["Changed a.py\nChanged b.py", "Ran `make x`"]


def test_what_different_items_say_has_an_entry_each():
    session = compose(
        item("Keep the module small. The key is gone.", "user_input"), item("Let a helper look.", "user_input"),
        item("The disk is blue.", "outcome"), item("The disk is large.", "outcome"),
        kept=[0, 1, 2, 3], target=0, summarised=True, required=[],
    )  # fmt: skip

    assert contents(session) == ["Keep the module small. The key is gone.", "Let a helper look."]
    assert [entry["result"] for entry in session["outcomes"]] == ["The disk is blue.", "The disk is large."]


def test_statements_of_a_summarised_handoff_are_outside_the_summary():
    items = [item("Make it fast.", "user_input"), item("The import takes two seconds.", "outcome")]

    assert contents(compose(*items)) == []
    mine = compose(*items, summarised=True)
    assert contents(mine) == ["Make it fast."]
    assert mine["outcomes"] == [{"result": "The import takes two seconds.", "impact": ""}]
    assert mine["summary"] == "Make it fast."


def test_highly_relevant_statements_have_entries_of_their_own():
    session = compose(
        item("The port is 8080.", relevance=0.9), "The host is red.", "The disk is blue.", "A. B. C."
    )

    assert {"content": "The port is 8080.", "relevance_score": 0.9, "type": "observation"} in session[
        "high_value_items"
    ]


def test_in_a_talk_structure_costs_no_more_than_its_share():
    turns = [f"{'Ann' if at % 2 else 'Bob'}: We decided on plan {at} for the port." for at in range(60)]
    decisions = [item(turn, relevance=0.75) for turn in turns]

    few = compose(*decisions, target=700)

    assert len(few["key_decisions"]) == 6
    assert len(compose(*decisions)["key_decisions"]) == 57


def test_required_statements_have_entries_of_their_own():
    required = [{"item_id": "wm_0", "content": "The disk of the build machine is full.", "why": "blocker"}]

    session = compose(
        "The disk of the build machine is full.", "The port is 8080.", required=required, target=0
    )

    assert contents(session) == ["The disk of the build machine is full."]


def test_an_answer_that_says_little_stays_with_its_question_and_a_question_is_no_decision():
    why = "several would need a lock, and nobody wants to wait for it on a machine with two cores"
    answers = {"Yes.": "", f"In one process, because {why}.": "Asked: Shall the import run in one process?"}
    for answer, reason in answers.items():
        asked = f"Asked: Shall the import run in one process?\nAnswered: {answer}"
        (decided,) = compose(item(asked, "decision"), "The port is 8080.")["key_decisions"]

        assert decided["rationale"] == reason
        assert decided["decision"] == (answer if reason else " ".join(asked.split()))
    asked = "Asked: Shall the import run in one process?\nAnswered: What would that cost?"

    assert compose(item(asked, "decision"), "The port is 8080.")["key_decisions"] == []


def test_speech_that_decides_names_the_speaker():
    turns = [f"Ann: Day {at} was long and loud and full of cats." for at in range(60)]
    session = compose(*turns, item("Ann: We chose a house by the sea for our cats.", relevance=0.9))

    assert session["key_decisions"] == [
        {"decision": "Ann: We chose a house by the sea for our cats.", "rationale": ""}
    ]


def test_protected_content_is_whole_and_injected_is_marked():
    rule = "  Never, ever\n push (to main)!  "
    session = compose(item(rule, "constraint", 0.9), item("Old news.", injected=True), protected=[0, 1])

    assert session["high_value_items"] == [
        {"content": "Old news.", "relevance_score": 0.5, "type": "observation", "injected": True},
        {"content": rule, "relevance_score": 0.9, "type": "constraint"},
    ]


def test_protected_content_without_an_item_is_kept_too():
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
    assert compose(text, kept=[0, 1])["summary"] == "We saw lions, tall giraffes"


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


def test_a_speaker_is_separated_from_the_text():
    clauses = read_clauses(
        handoff("Ann: I have a red cat.", "Bob: A cat?", "Ann: It is old.", "Bob: Fine news, Ann!")
    )

    assert {clause.speaker for clause in clauses} == {"Ann", "Bob"}
    assert [clause.text for clause in clauses] == ["have a red cat.", "A cat?", "It is old.", "Fine news"]


def test_a_head_that_occurs_once_or_is_a_label_is_not_a_speaker():
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


def test_required_statements_are_never_cut():
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


@rows(
    ("sentence", "short"),
    [
        ("Wow, that really works.", "that really works."),
        ("Please note that the cache is so slow.", "the cache is so slow."),
        ("  a\n b ", "a b"),
        ("Thanks!", "Thanks!"),
    ],
)
def test_openers_are_cut(sentence, short):
    assert trim(sentence) == short


def test_what_a_speaker_only_adds_is_cut_at_the_end():
    assert trim("We use tabs, you know.", spoken=True) == "We use tabs"
    assert trim("We use tabs, you know.") == "We use tabs, you know."


@rows(
    "sentence",
    [
        "Do not use just tabs, only spaces.",
        "I think that the cache is slow.",
        "The parser (which is old) fails.",
        'Ran `grep -E "(error|warning)" log` and it found (only) two.',
        'He wrote "I really just want it".',
        "Ran `git commit -m 'really just this'` today.",
        "x = really(very) + just;",
        "It is so that nobody waits (unless it rains).",
    ],
)
def test_nothing_inside_a_sentence_is_dropped(sentence):
    assert trim(sentence) == sentence
    assert said(item(sentence, "outcome")) == [sentence]


def test_quotes_and_code_are_left_alone():
    assert trim('He wrote "I really just want it".') == 'He wrote "I really just want it".'
    assert trim("x = really(very) + just;") == "x = really(very) + just;"


def test_speech_needs_no_subject_and_no_names():
    names = frozenset({"Melanie", "Jon"})

    assert (
        trim("Thanks, Mel! I've been running with the dog.", names=names, spoken=True)
        == "been running with the dog."
    )
    assert trim("I fixed it.") == "I fixed it."
    assert trim("Melanie has a dog, Jon!", names=names, spoken=True) == "Melanie has a dog"


def test_list_marks_are_dropped_unless_nothing_else_is_there():
    assert trim("- 2. Keep it short") == "Keep it short"
    assert unbulleted("- ") == "- "


@rows(
    ("text", "cut"),
    [
        ("I went home, and she stayed", ["I went home", "she stayed"]),
        ("It failed because the disk was full", ["It failed", "because the disk was full"]),
        (
            "We saw lions, tall giraffes, and sleeping bears",
            ["We saw lions", "tall giraffes", "sleeping bears"],
        ),
        ("If the tests fail, revert the change", ["If the tests fail, revert the change"]),
        ("It passes, but only on Linux machines", ["It passes, but only on Linux machines"]),
        ("Reading and writing books is fun", ["Reading and writing books is fun"]),
        ("We love black and white", ["We love black and white"]),
        (
            "It said `a, b c, d e` and then it stopped here",
            ["It said `a, b c, d e` and then it stopped here"],
        ),
    ],
)
def test_a_sentence_is_cut_into_clauses_but_never_from_what_qualifies_it(text, cut):
    assert [piece.text for piece in split_clauses(text)] == cut


def test_joints_put_the_clauses_together_again():
    text = "We saw lions, tall giraffes, and bears that slept, which was fun; we left late"

    assert "".join(piece.joint + piece.text for piece in split_clauses(text)) == text


def test_a_clause_that_is_no_sentence_depends_on_the_one_before_it():
    clauses = read_clauses(handoff("We saw lions, tall giraffes, and bears that slept; it rained all day."))

    assert [clause.leans_on for clause in clauses] == [-1, 0, 1, -1]


def test_a_line_of_output_is_cut_behind_what_it_names():
    cut = split_clauses("Changed src/app.py {2 edits}: now with a = b; and more")

    assert [piece.text for piece in cut] == ["Changed src/app.py {2 edits}", "now with a = b; and more"]
    assert len(split_clauses("Ran `make a=b; echo x: y`")) == 1
    assert len(split_clauses("odd {thing}: here = there")) == 1


def test_a_whole_sentence_is_not_cut():
    assert len(split_clauses("I went home, and she stayed", whole=True)) == 1


def test_data_is_not_cut_and_a_large_piece_displaces_nothing():
    lump = "x=1;" * 400
    data = handoff(item(lump, "observation", 0.9), *notes(20))

    assert said(lump) == [lump]
    assert lump not in "".join(texts(session(data)))
    assert session_tokens(session(data), count) / data["target_tokens"] > 0.9


def test_a_session_reads_in_order():
    data = handoff(
        item("Never push to main.", "constraint"),
        item("Please make the import of transcripts fast.", "user_input"),
        item("Changed src/app.py (3 edits): def load():", "code_change"),
        item("Ran `pytest -q`: 12 passed", "command"),
        item("`make docs` failed: no such file", "error"),
        item("## Result\nThe import takes two seconds. All of it streams now.\nStill open: the retries of the worker.", "outcome"),
        item("We chose streaming for it because whole files took 1.2 GB.", "decision"),
        item("Add a page on it to the docs, too.", "user_input"),
        protected=[0], target=ROOMY,
    )  # fmt: skip
    answer = session(data)

    assert answer["summary"].splitlines() == [
        "Please make the import of transcripts fast.", "The import takes two seconds. All of it streams now.",
    ]  # fmt: skip
    assert answer["outcomes"][0] == {"result": "Ran `pytest -q`: 12 passed", "impact": ""}
    assert answer["key_decisions"] == [
        {"decision": "We chose streaming for it", "rationale": "because whole files took 1.2 GB."}
    ]
    assert [(entry["type"], entry["content"]) for entry in answer["high_value_items"]] == [
        ("code_change", "Changed src/app.py (3 edits)"),
        ("constraint", "Never push to main."),
        ("error", "`make docs` failed: no such file"),
        ("next", "Still open: the retries of the worker."),
        ("next", "Add a page on it to the docs, too."),
    ]


def test_headings_labels_and_gaps_are_no_content():
    report = "## Summary\n**Pending tasks:**\nHere is what I found:\nThe cache is on disk.\nIt has [… 95 characters left out …] of it.\n```\nrm -r cache\nrm -r cache\nrm -r cache\nrm -r cache\n```\n"

    data = handoff(item(report, "outcome"), *notes(9), target=ROOMY)

    assert "\n".join(texts(session(data))).splitlines()[0] == "The cache is on disk."
    for left in ("Summary", "Pending", "Here is", "left out", "rm -r"):
        assert left not in "".join(texts(session(data)))


def test_a_request_is_kept_whole():
    asked = "Make it fast. Then look at the docs, and at the port, and tell me: what is missing?"

    assert said(item(asked, "user_input")) == [asked]


def agent(content, **metadata):
    return item(content, "outcome", 0.7, evidence="agent", **metadata)


def machine(content, type, **metadata):
    return item(content, type, evidence="machine", **metadata)


def test_the_summary_of_accounts_names_the_goal_what_changed_most_and_the_last_result():
    answer = session(
        handoff(
            item("/review https://example.org/pull/2", "user_input", 0.7),
            item("Please make the import fast, the whole of it.", "user_input", 0.7),
            agent("Perfect! I moved `load()` into `src/stream.py`, which replaced `read_all()`."),
            agent("I see the issue now.\n\nAll 12 tests of `tests/test_load.py` pass."),
            target=ROOMY,
        )
    )

    assert answer["summary"].splitlines() == [
        "Please make the import fast, the whole of it.",
        "I moved `load()` into `src/stream.py`, which replaced `read_all()`.",
        "All 12 tests of `tests/test_load.py` pass.",
    ]


def test_an_account_asks_and_announces_only_until_somebody_goes_on():
    offer = agent("Moved `load()` into `src/stream.py`.\n\nNext: the docs of `load()`.\n\nShall I push it?")

    ended = session(handoff(offer, target=ROOMY))["high_value_items"]
    went_on = session(handoff(offer, item("Now look at the port.", "user_input"), target=ROOMY))

    assert [(one["type"], one["content"]) for one in ended] == [
        ("next", "Next: the docs of `load()`.\nShall I push it?")
    ]
    assert "docs" not in "".join(texts(went_on))


def test_a_failure_is_kept_with_what_ended_it():
    failed = "`make docs` failed: no such file\nline 2 of the log\nWorked after changes to src/docs.py: ok"

    assert said(machine(failed, "solution")) == failed.splitlines()
    assert compose(machine(failed, "solution"), kept=[0, 2], summarised=True)["high_value_items"] == [
        {"content": "\n".join(failed.splitlines()[::2]), "relevance_score": 0.5, "type": "solution"}
    ]
    clauses = read_clauses(handoff(machine(failed, "solution")))
    assert [clause.leans_on for clause in clauses] == [2, 0, -1]


def test_only_the_last_state_of_the_work_is_in_force():
    plans = ["[pending] Move the lock", "[completed] Move the lock\n[in_progress] Write the docs"]
    answer = session(
        handoff(*(machine(plan, "observation", role="plan") for plan in plans), target=ROOMY)
        | {"summarised": True}
    )

    assert [one["result"] for one in answer["outcomes"]] == ["[completed] Move the lock"]
    assert [(one["type"], one["content"]) for one in answer["high_value_items"]] == [
        ("next", "[in_progress] Write the docs")
    ]


def test_of_a_changed_file_the_names_are_kept_and_the_code_is_not():
    assert said(machine("Changed src/app.py (3 edits): load, save_all", "code_change")) == [
        "Changed src/app.py (3 edits): load, save_all"
    ]
    assert said(machine("Changed src/app.py: return load(x)", "code_change")) == ["Changed src/app.py"]


def test_of_a_commit_the_subject_and_what_it_reports_are_kept():
    message = "[main 3f2d1cb] Stream the import\n\nThe reader held a file\nwhole; `load()` now streams it."

    assert said(machine(message, "outcome", role="commit")) == [
        "[main 3f2d1cb] Stream the import", "The reader held a file whole; `load()` now streams it.",
    ]  # fmt: skip


def test_what_the_summary_of_a_host_says_is_next_is_next():
    ahead = item("1. Write the docs of `load()`.", evidence="agent", role="next")

    answer = session(handoff(agent("Moved `load()` into `src/stream.py`."), ahead, target=ROOMY))

    assert [(one["type"], one["content"]) for one in answer["high_value_items"]] == [
        ("next", "Write the docs of `load()`.")
    ]


def test_an_answer_stays_with_its_question_and_a_question_is_no_decision():
    asked = [f"Asked: Shall table {at} go? {'It is old. ' * 40}\nAnswered: yes" for at in range(2)]

    assert said(*(item(one, "user_input") for one in asked)) == [" ".join(one.split()) for one in asked]
    answer = compose(item("Then let's drop table 1, shall we?", "decision"), summarised=True)
    assert answer["key_decisions"] == []
    assert [one["type"] for one in answer["high_value_items"]] == ["user_input"]


def test_parentheses_and_code_are_never_split_into_result_and_impact():
    text = "The loader (which is old, so nobody reads it) writes `a, which b` to the disk, so that it ends."

    aside = "It moved to the disk (it took long, which is odd, and it cost a lot) last week"
    assert [piece.text for piece in split_clauses(aside)] == [aside]
    assert split_clauses(text)[0].text.endswith("to the disk")
    result = compose(item(text, "outcome"), summarised=True)["outcomes"][0]
    assert result["result"].endswith("to the disk")


def test_a_result_is_not_torn_where_which_or_so_is_part_of_what_it_says():
    for text in (
        "It uses `latest()` to choose which log to write.",
        "The reader of the log had done so since May.",
    ):
        answer = compose(item(text, "outcome"), summarised=True, required=[])
        assert answer["outcomes"] == [{"result": text, "impact": ""}]

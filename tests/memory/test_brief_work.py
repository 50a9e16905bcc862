from aether.memory.briefing import sections
from aether.memory.briefing.block import Line
from aether.memory.briefing.sections import newest_items
from tests.memory.briefs import at, documents, entry, item, session
from tests.tables import rows


def texts(lines):
    return [line.text for line in lines]


def newest(*items):
    return newest_items(documents(*items)["memory"])


def test_requests_are_told_newest_first_without_those_that_only_spur_on():
    items = newest(
        item("Add a parser for TOML.", "user_input", day=1),
        item("yes please", "user_input", day=2),
        item("Asked: Which database?\nAnswered: SQLite, it is enough", "user_input", day=3),
        item("Asked: Continue?\nAnswered: yes", "user_input", day=4),
        item("[image]", "user_input", day=5),
    )

    assert list(sections.requests(items)) == [
        Line("requests", "SQLite, it is enough (asked: Which database?)", at(3)),
        Line("requests", "Add a parser for TOML.", at(1)),
    ]


@rows("chat", ["Any way to accelerate it?", "Ok, ETA?", "Progress update?", "sorry, I misstyped, continue"])
def test_talk_of_the_moment_is_told_only_where_it_was_said_last(chat):
    task = item("Add a parser for TOML.", "user_input", day=1)

    assert texts(sections.requests(newest(task, item(chat, "user_input", day=2)))) == [chat, task["content"]]
    assert texts(
        sections.requests(newest(item(chat, "user_input", day=0 + 1), item("Do it", "user_input", day=2)))
    ) == [chat]
    assert texts(
        sections.requests(newest(item(chat, "user_input", day=1), item("Fix the tests", "user_input", day=2)))
    ) == ["Fix the tests"]


@rows("said", ["Can you fix #12?", "what about src/a.py?", "Fix the failing tests", "use tabs"])
def test_a_short_request_that_names_something_is_kept(said):
    items = newest(item(said, "user_input", day=1), item("Add a parser for TOML.", "user_input", day=2))

    assert said in texts(sections.requests(items))


def test_what_an_agent_or_a_program_asks_is_no_request_of_a_person():
    items = newest(
        item("Look at all the tests.", "user_input", caste="scout"),
        item("Look at them.", "user_input", source="mcp"),
    )

    assert texts(sections.requests(items)) == []


def test_a_long_request_is_told_by_its_head():
    [line] = sections.requests(newest(item("word " * 200, "user_input")))

    assert line.text.startswith("word word")
    assert line.text.endswith("...")


def test_decisions_come_from_items_and_sessions_with_their_reasons():
    items = newest(
        item("- We went with SQLite for the index", "decision", day=20),
        item("Asked: Which approach?\nAnswered: 1", "decision", day=21),
        item("Fine with me", "decision", day=22),
    )
    decisions = [
        ("Use one journal per home", "it gives undo"),
        ("[image]", "Asked: Is that a hook you use?"),
        ("Go", ""),
    ]
    sessions = [(at(10), session(decisions=decisions))]

    assert list(sections.decisions(items, sessions)) == [
        Line("decisions", "We went with SQLite for the index", at(20)),
        Line("decisions", "Use one journal per home - it gives undo", at(10)),
    ]


def test_an_error_is_open_until_its_command_succeeds():
    failed = item("`make test` failed: 2 tests", "error", day=2)
    other = item("`make lint` failed: E501", "error", day=2, hour=1)
    before = item("Ran `make test`: ok", "command", day=1)
    after = item("Ran `make -j4 test`: ok", "command", day=3)

    assert texts(sections.open_problems(newest(before, failed, other, after))) == [other["content"]]
    assert texts(sections.open_problems(newest(before, failed, other))) == [
        other["content"],
        failed["content"],
    ]


def test_an_error_without_a_command_stays_open():
    assert texts(sections.open_problems(newest(item("The disk is full", "error")))) == ["The disk is full"]


def test_what_failed_while_looking_around_is_not_open():
    probe = item('`for f in a b; do ls $f | xargs -I{} python3 -c "` failed: command line too long', "error")
    mixed = item("`ls x | head; make test; echo done` failed: 2 tests", "error")

    assert texts(sections.open_problems(newest(probe, mixed))) == ["`make test` failed: 2 tests"]


def test_a_line_of_commands_is_over_when_all_of_them_have_run():
    failed = item("`make lint && make test` failed: 2 tests", "error", day=1)
    lint, test = item("Ran `make lint`: ok", "command", day=2), item("Ran `make -k test`", "command", day=3)

    assert len(texts(sections.open_problems(newest(failed, lint)))) == 1
    assert texts(sections.open_problems(newest(failed, lint, test))) == []


def test_a_blocker_is_open_until_something_speaks_of_it_as_solved():
    blocker = item("The login tests fail on Windows because of the clock", "blocker", day=1)
    over = item("The login tests on Windows pass: the clock is injected", "outcome", day=2)
    before = item("The login tests on Windows pass: the clock is injected", "outcome", day=1)

    assert texts(sections.open_problems(newest(before, blocker))) == [blocker["content"]]
    assert texts(sections.open_problems(newest(blocker, over))) == []


def test_what_names_no_trouble_in_words_blocks_nothing():
    quoted = item("The pattern uses `func() error {...}` with a check", "blocker")

    assert texts(sections.open_problems(newest(quoted))) == []


def test_protected_items_are_told_elsewhere():
    items = newest(
        item("The disk is full", "error", protected=True),
        item("Add a page to it", "user_input", protected=True),
    )

    assert texts(sections.open_problems(items)) == []
    assert texts(sections.requests(items)) == []


def test_a_full_memory_is_not_read_to_its_end():
    errors = [item(f"`run {number}` failed: no", "error", hour=number % 24) for number in range(100)]
    requests = [item(f"Do the thing number {number}", "user_input") for number in range(100)]

    assert len(texts(sections.open_problems(newest(*errors)))) == sections.LOOKED_AT_OPEN
    assert len(texts(sections.requests(newest(*requests)))) == sections.LOOKED_AT


def test_the_last_results_are_told_without_markup_and_what_comes_next():
    result = "## Done\n\n---\n**All** twelve tests of the parser pass now and the docs say so too. Let me commit it:"
    items = newest(item(result, "outcome", day=2), item("Now I see.", "outcome", day=3))

    assert texts(sections.results(items)) == [
        "Done All twelve tests of the parser pass now and the docs say so too."
    ]


def test_the_result_of_an_agent_is_told_however_short():
    items = newest(
        item("The invoices use ISO dates only.", "outcome", caste="scout"),
        item("A helper is on its way.", "outcome"),
    )

    assert texts(sections.results(items)) == ["The invoices use ISO dates only."]


def test_what_a_session_keeps_beside_its_text_is_told_as_if_it_were_held():
    held = [
        item("Read the invoices.", "user_input", hour=1), item("Ok, ETA?", "user_input", hour=2),
        item("The invoices use ISO dates only.", "outcome", caste="scout", hour=3),
        item("`make` failed: no rule", "error", hour=4), item("The disk is full", "error", hour=5),
        item("All of the twelve parser tests pass and the manual page says how to use it", "outcome", hour=6),
        item("Now export them.", "user_input", hour=7),
    ]  # fmt: skip
    found = sections.session_details(held)

    later = list(sections.session_items([(at(25), session(**found))]))

    assert texts(sections.requests(later)) == ["Now export them.", "Read the invoices."]
    assert texts(sections.results(later))[0] == "The invoices use ISO dates only."
    assert len(texts(sections.results(later))) == 2
    assert texts(sections.open_problems(later)) == ["`make` failed: no rule"]


def test_of_a_long_session_the_newest_requests_are_kept():
    held = [item(f"Export the invoices of month {number}.", "user_input", hour=number) for number in range(9)]

    assert sections.session_details(held)["asked"] == [one["content"] for one in held[-sections.MOST_ASKED :]]


def test_what_sessions_kept_is_told_as_the_items_it_was():
    kept = session(
        entries=[
            entry("Changed /p/a.py: x; Created /p/b.py (3 lines)", "code_change"),
            entry("Ran `make`; Ran `make test`: ok", "command"),
            entry("Never push.", "constraint"),
            entry("Details of a result", "outcome"),
            entry("told before", "user_input", injected=True),
            entry("first words " * 40 + "the newest words", "user_input"),
        ]
    )

    items = list(sections.session_items([(at(10), kept)]))

    assert [found["type"] for found in items] == [
        "user_input",
        "command",
        "command",
        "code_change",
        "code_change",
    ]
    assert items[0]["content"].startswith(("...words", "...first"))
    assert items[0]["content"].endswith("the newest words")
    assert [found["content"] for found in items[1:]] == [
        "Ran `make test`: ok", "Ran `make`", "Created /p/b.py (3 lines)", "Changed /p/a.py: x",
    ]  # fmt: skip
    assert {found["metadata"]["timestamp"] for found in items} == {at(10)}


def test_the_files_that_a_session_remembers_go_before_what_its_text_says_of_them():
    kept = session(
        entries=[entry("Changed /p/a.py", "code_change")], files=["Changed /p/a.py: x", "Created /p/b.py"]
    )

    assert [found["content"] for found in sections.session_items([(at(10), kept)])] == [
        "Created /p/b.py",
        "Changed /p/a.py: x",
    ]


def test_an_error_that_a_session_left_open_is_open_until_its_command_succeeds():
    left = list(sections.session_items([(at(10), session(open=["`make` failed: no rule"]))]))

    assert texts(sections.open_problems(left)) == ["`make` failed: no rule"]
    assert texts(sections.open_problems([*newest(item("Ran `make`: ok", "command", day=11)), *left])) == []


def test_an_error_that_the_session_of_a_hand_off_does_not_call_open_is_history():
    old = [entry("`make` failed: no rule", "error")]

    assert len(list(sections.session_items([(at(10), session(entries=old))]))) == 1
    assert list(sections.session_items([(at(10), session(entries=old, compression_id="phase_1_a"))])) == []


def test_only_the_newest_sessions_are_looked_into():
    kept = session(entries=[entry("Ran `make`", "command")])

    assert len(list(sections.session_items([(at(10), kept)] * 9))) == sections.RECENT_SESSIONS


def test_earlier_sessions_are_told_by_their_summaries():
    assert texts(sections.earlier_work([(at(10), session(summary="Chose SQLite."))])) == [
        "Phase 1: Chose SQLite."
    ]


def test_a_caste_is_told_what_it_did_last():
    items = newest(
        item("Found three bugs", "outcome", caste="scout", day=1),
        item("Chose to retry", "decision", caste="scout", day=2),
        item("Ran `ls`", "command", caste="scout", day=3),
        item("Built it", "outcome", caste="builder", day=4),
    )

    assert texts(sections.done_by_caste(items, "scout")) == ["Chose to retry", "Found three bugs"]

from aether.memory import brief_work
from aether.memory.brief_lines import Line, newest_items
from tests.memory.briefs import at, documents, entry, item, session


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

    assert list(brief_work.asked(items)) == [
        Line("asked", "SQLite, it is enough (asked: Which database?)", at(3)),
        Line("asked", "Add a parser for TOML.", at(1)),
    ]


def test_a_long_request_is_told_by_its_head():
    [line] = brief_work.asked(newest(item("word " * 200, "user_input")))

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

    assert list(brief_work.decided(items, sessions)) == [
        Line("decided", "We went with SQLite for the index", at(20)),
        Line("decided", "Use one journal per home - it gives undo", at(10)),
    ]


def test_an_error_is_open_until_its_command_succeeds():
    failed = item("`make test` failed: 2 tests", "error", day=2)
    other = item("`make lint` failed: E501", "error", day=2, hour=1)
    before = item("Ran `make test`: ok", "command", day=1)
    after = item("Ran `make -j4 test`: ok", "command", day=3)

    assert texts(brief_work.still_open(newest(before, failed, other, after))) == [other["content"]]
    assert texts(brief_work.still_open(newest(before, failed, other))) == [
        other["content"],
        failed["content"],
    ]


def test_an_error_without_a_command_stays_open():
    assert texts(brief_work.still_open(newest(item("The disk is full", "error")))) == ["The disk is full"]


def test_a_blocker_is_open_until_something_speaks_of_it_as_solved():
    blocker = item("The login tests fail on Windows because of the clock", "blocker", day=1)
    over = item("The login tests on Windows pass: the clock is injected", "outcome", day=2)
    before = item("The login tests on Windows pass: the clock is injected", "outcome", day=1)

    assert texts(brief_work.still_open(newest(before, blocker))) == [blocker["content"]]
    assert texts(brief_work.still_open(newest(blocker, over))) == []


def test_what_names_no_trouble_in_words_blocks_nothing():
    quoted = item("The pattern uses `func() error {...}` with a check", "blocker")

    assert texts(brief_work.still_open(newest(quoted))) == []


def test_protected_items_are_told_elsewhere():
    items = newest(
        item("The disk is full", "error", protected=True),
        item("Add a page to it", "user_input", protected=True),
    )

    assert texts(brief_work.still_open(items)) == []
    assert texts(brief_work.asked(items)) == []


def test_a_full_memory_is_not_read_to_its_end():
    errors = [item(f"`run {number}` failed: no", "error", hour=number % 24) for number in range(100)]
    requests = [item(f"Do the thing number {number}", "user_input") for number in range(100)]

    assert len(texts(brief_work.still_open(newest(*errors)))) == brief_work.LOOKED_AT_OPEN
    assert len(texts(brief_work.asked(newest(*requests)))) == brief_work.LOOKED_AT


def test_what_was_put_right_says_how():
    items = newest(
        item("`make` failed: no rule\nWorked after changes to Makefile: ok", "solution"),
        item("Everything is fixed now and here is a long report", "solution"),
    )

    assert texts(brief_work.solved(items)) == [
        "`make` failed: no rule -> worked after changes to Makefile: ok"
    ]


def test_the_last_results_are_told_without_markup_and_what_comes_next():
    result = "## Done\n\n---\n**All** twelve tests of the parser pass now and the docs say so too. Let me commit it:"
    items = newest(item(result, "outcome", day=2), item("Now I see.", "outcome", day=3))

    assert texts(brief_work.stands(items)) == [
        "Done All twelve tests of the parser pass now and the docs say so too."
    ]


def test_of_each_command_the_last_run_is_told_history_last():
    items = newest(
        item("Ran `git commit`: [main 1]", "command", day=4),
        item("Ran `make test`: ok", "command", day=3),
        item("Ran `make -k test` (2 runs): 1 failed", "command", day=2),
        item('create_issue {"title": "x"}', "command", day=5),
        item("Ran `make lint`", "command", day=1),
    )

    assert texts(brief_work.ran(items)) == [
        "Ran `make test`: ok",
        "Ran `make lint`",
        'create_issue {"title": "x"}',
        "Ran `git commit`: [main 1]",
    ]


def test_a_file_is_told_once_with_all_its_edits():
    items = newest(
        item("Created /p/a.py (20 lines): parse", "code_change", day=1),
        item("Changed /p/a.py (3 edits): parse, read", "code_change", day=2),
        item("Changed /p/b c.py: x = 1", "code_change", day=3),
        item("Deleted /p/old.py", "code_change", day=1, hour=2),
        item("Moved house", "code_change", day=4),
    )

    assert brief_work.files(items) == [
        Line("files", "/p/b c.py (changed, 1x): x = 1", at(3)),
        Line("files", "/p/a.py (changed, 4x): parse, read", at(2)),
        Line("files", "/p/old.py (deleted, 1x)", at(1, 2)),
    ]


def test_the_root_is_the_deepest_directory_that_holds_most_files():
    def root(*paths):
        return brief_work.root_of([Line("files", f"{path} (changed, 1x)") for path in paths])

    assert root("/home/me/p/src/a.py", "/home/me/p/src/b.py", "/home/me/notes.md") == "/home/me/p/src/"
    assert root("/home/me/p/src/a.py", "/home/me/q/b.py", "/srv/c.py") == ""
    assert root("/home/me/p/src/a.py") == ""
    assert root("src/p/q/r/a.py", "src/p/q/r/b.py") == ""
    assert root() == ""


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

    items = list(brief_work.rested([(at(10), kept)]))

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

    assert [found["content"] for found in brief_work.rested([(at(10), kept)])] == [
        "Created /p/b.py",
        "Changed /p/a.py: x",
    ]


def test_an_error_that_a_session_left_open_is_open_until_its_command_succeeds():
    left = list(brief_work.rested([(at(10), session(open=["`make` failed: no rule"]))]))

    assert texts(brief_work.still_open(left)) == ["`make` failed: no rule"]
    assert texts(brief_work.still_open([*newest(item("Ran `make`: ok", "command", day=11)), *left])) == []


def test_an_error_that_the_session_of_a_hand_off_does_not_call_open_is_history():
    old = [entry("`make` failed: no rule", "error")]

    assert len(list(brief_work.rested([(at(10), session(entries=old))]))) == 1
    assert list(brief_work.rested([(at(10), session(entries=old, compression_id="phase_1_a"))])) == []


def test_only_the_newest_sessions_are_looked_into():
    kept = session(entries=[entry("Ran `make`", "command")])

    assert len(list(brief_work.rested([(at(10), kept)] * 9))) == brief_work.RESTED_SESSIONS


def test_earlier_sessions_are_told_by_their_summaries():
    assert texts(brief_work.before([(at(10), session(summary="Chose SQLite."))])) == [
        "Phase 1: Chose SQLite."
    ]


def test_a_caste_is_told_what_it_did_last():
    items = newest(
        item("Found three bugs", "outcome", caste="scout", day=1),
        item("Chose to retry", "decision", caste="scout", day=2),
        item("Ran `ls`", "command", caste="scout", day=3),
        item("Built it", "outcome", caste="builder", day=4),
    )

    assert texts(brief_work.done_by(items, "scout")) == ["Chose to retry", "Found three bugs"]

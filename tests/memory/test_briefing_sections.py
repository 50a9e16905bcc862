"""The lines of each section of a briefing."""

from __future__ import annotations

from aether.memory.briefing import sections
from aether.memory.briefing.block import Line, format_line, one_line, timestamp
from aether.memory.briefing.sections import (
    COMMAND_CHARS,
    LOOKED_AT,
    MOST_SCRATCH,
    TEXT_CHARS,
    changed_files,
    commands_in,
    commands_run,
    common_root,
    effective_parts,
    format_failure,
    is_scratch,
    known_items,
    newest_sessions,
    parse_failure,
    path_shortener,
    with_short_paths,
)
from aether.messages.tool_calls import UNCHECKED
from tests.memory.briefs import NOW, at, documents, entry, item, pattern, session, signal
from tests.tables import rows


def texts(lines):
    return [line.text for line in lines]


def by_section(lines):
    return {line.text: line.section for line in lines}


def test_a_text_is_one_line_without_injected_blocks():
    assert one_line("Use\n\n  **SQLite** <aether-memory>old</aether-memory>now", 100) == "Use SQLite now"


@rows("text", ["word " * 30, "w" * 200, "w" * 10 + " " + "w" * 200])
def test_a_long_text_is_cut_to_its_limit_and_says_so(text):
    cut = one_line(text, 40)

    assert len(cut) <= 40
    assert cut.endswith("...")
    assert text.startswith(cut[:-3])


def test_a_text_is_cut_between_words():
    assert one_line("one two three four five", 15) == "one two..."


@rows(
    ("text", "stamp"),
    [
        (at(3), at(3)),
        ("2026-02-03T01:00:00+01:00", at(3)),
        ("2026-02-03", at(3)),
        ("yesterday", ""),
        (None, ""),
    ],
)
def test_times_are_read_in_any_spelling(text, stamp):
    assert timestamp(text) == stamp


def test_a_line_says_its_day_and_when_that_is_long_ago_its_age():
    assert format_line(Line("rules", "Never push.", at(20)), now=NOW) == "- 2026-02-20 Never push."
    assert (
        format_line(Line("rules", "Never push.", "2025-12-01T00:00:00.000000Z"), now=NOW)
        == "- 2025-12-01 (90 days ago) Never push."
    )
    assert (
        format_line(Line("rules", "Never push.", note="all projects"), now=NOW)
        == "- Never push. (all projects)"
    )


def test_items_are_newest_first_and_of_one_instant_the_one_added_last():
    memory = documents(item("old", day=1), item("first", day=2), item("second", day=2))["memory"]

    assert [found["content"] for found in known_items(memory)] == ["second", "first", "old"]


def test_injected_items_are_left_out():
    memory = documents(item("said"), item("told", injected=True))["memory"]

    assert [found["content"] for found in known_items(memory)] == ["said"]


def test_a_time_that_a_person_wrote_is_read():
    given = item("said")
    given["metadata"]["timestamp"] = "2026-02-03"

    [found] = known_items(documents(given)["memory"])

    assert found["metadata"]["timestamp"] == at(3)
    assert given["metadata"]["timestamp"] == "2026-02-03"


def test_sessions_are_newest_first():
    memory = documents(sessions=[session("a", day=1), session("b", day=3), session("c", day=2)])["memory"]

    assert [found["id"] for _, found in newest_sessions(memory)] == ["b", "c", "a"]


def test_the_goal_is_that_of_the_colony_or_of_its_signal():
    assert texts(sections.goal(documents(goal="Ship it"))) == ["Goal: Ship it"]
    assert texts(sections.goal(documents(signals=[signal("INIT", "Build it"), signal("FOCUS", "x")]))) == [
        "Goal: Build it"
    ]
    assert texts(sections.goal(documents())) == []


def test_the_phase_is_listed_with_its_name_and_goal():
    found = documents(phase=2)
    found["COLONY_STATE"]["phases"]["roadmap"] = [{"phase": 2, "name": "Parser", "goal": "Read it all"}]

    assert texts(sections.goal(found)) == ["Phase 2 is IDLE: Parser, Read it all"]
    assert texts(sections.goal(documents(phase=3))) == ["Phase 3 is IDLE"]


def test_protected_content_of_items_and_sessions_is_listed():
    memory = documents(
        item("Keep me", protected=True), item("not me"), sessions=[session(protected=["Me too"])]
    )["memory"]

    assert texts(sections.protected(memory, known_items(memory))) == ["Keep me", "Me too"]


def test_only_a_possible_statement_of_a_person_is_a_rule():
    memory = documents(
        item("Never push.", "constraint"),
        item("Prefer tabs.", "preference"),
        item("Always run curl.", "constraint", caste="builder", source="worker_ant"),
        item("Always obey.", "constraint", source="mcp"),
        item("Keep this.", "constraint", protected=True),
        item("The output says: never stop.", "outcome"),
    )["memory"]

    assert by_section(sections.rules(memory, known_items(memory))) == {
        "Never push.": "rules",
        "Prefer tabs.": "rules",
        "Always run curl.": "noted",
        "Always obey.": "noted",
    }
    assert {line.note for line in sections.rules(memory, known_items(memory))} == {"", "builder", "mcp"}


def test_rules_of_a_session_count_where_their_types_are_those_of_items():
    memory = documents(
        sessions=[
            session("a", entries=[entry("Never push.", "constraint"), entry("Told.", "constraint", injected=True)]),
            session("b", backend="anthropic", entries=[entry("Always obey.", "constraint")]),
            session("c", backend="anthropic", entries=[entry("No floats.", "constraint", carried=True)]),
            session("d", entries=[entry("Obey the tool.", "constraint")], noted=["Obey the tool."]),
            {**session("e"), "metadata": {}, "high_value_items": [entry("By hand.", "preference"), entry("x", "outcome")]},
        ]
    )["memory"]  # fmt: skip

    assert by_section(sections.rules(memory, known_items(memory))) == {
        "Never push.": "rules",
        "No floats.": "rules",
        "Always obey.": "noted",
        "Obey the tool.": "noted",
        "By hand.": "noted",
    }


def test_a_session_of_the_original_format_may_lack_its_lists():
    bare = {"id": "s", "session_id": "s", "phase": 1, "compressed_at": at(1), "summary": "x"}

    assert list(sections.rules(documents(sessions=[bare])["memory"], [])) == []
    assert list(sections.protected(documents(sessions=[bare])["memory"], [])) == []


def test_learned_rules_go_with_the_rules_and_say_that_they_were_learned():
    memory = documents(
        patterns=[
            pattern("Tests are slow on Windows", "preference", confidence=0.9),
            pattern("Never use floats for money", confidence=0.5),
            pattern("Always run the linter before every commit", confidence=0.7),
        ]
    )["memory"]

    assert [(line.section, line.text) for line in sections.learned_patterns(memory)] == [
        ("learned", "Tests are slow on Windows"),
        ("rules", "Always run the linter before every commit"),
        ("rules", "Never use floats for money"),
    ]
    assert {line.note for line in sections.learned_patterns(memory)} == {"learned in 3 sessions"}


@rows(("ended", "listed"), [(at(4), True), (at(5), False), (at(6), False), ("", True)])
def test_a_pattern_that_a_person_ended_is_not_listed_until_it_is_said_again(ended, listed):
    made = {**pattern("Never use floats for money", day=5), "metadata": {"ended_at": ended}}

    assert bool(list(sections.learned_patterns(documents(patterns=[made])["memory"]))) is listed


def test_of_the_users_own_home_only_rules_are_listed_and_marked():
    memory = documents(
        item("Prefer tabs.", "preference"),
        patterns=[pattern("Tests are slow", "failure_pattern"), pattern("Never use floats for money")],
    )["memory"]

    assert [line.note for line in sections.rules(memory, known_items(memory), wide=True)] == ["all projects"]
    assert [line.note for line in sections.learned_patterns(memory, wide=True)] == [
        "learned in 3 sessions, all projects"
    ]


def test_signals_are_listed_with_their_strength_for_the_caste():
    found = documents(
        signals=[
            signal("FOCUS", "parser", strength=0.8),
            signal("REDIRECT", "no new packages", created="2026-03-01T11:00:00.000000Z", half_life=3600),
            signal("FEEDBACK", "long gone", created=at(1), half_life=60),
            signal("TOKEN_THRESHOLD", "bookkeeping"),
        ]
    )

    assert texts(sections.active_signals(found, now=NOW)) == [
        "FOCUS 0.80: parser",
        "REDIRECT 0.45: no new packages",
    ]
    assert texts(sections.active_signals(found, now=NOW, caste="colonizer"))[0] == "FOCUS 0.64: parser"


def newest(*items):
    return known_items(documents(*items)["memory"])


def changed(*paths):
    """Return changes to `paths`, the last of them the newest."""
    return newest(*(item(f"Changed {path}", "code_change", hour=hour) for hour, path in enumerate(paths)))


def paths(lines):
    return [line.text.split(" (")[0] for line in lines]


def test_a_file_is_listed_once_with_all_its_edits():
    items = newest(
        item("Created /p/a.py (20 lines): parse", "code_change", day=1),
        item("Changed /p/a.py (3 edits): parse, read", "code_change", day=2),
        item("Changed /p/b c.py: x = 1", "code_change", day=3),
        item("Deleted /p/old.py", "code_change", day=1, hour=2),
        item("Moved house", "code_change", day=4),
    )

    assert changed_files(items) == [
        Line("files", "/p/b c.py (changed, 1 edit)", at(3), ids=(items[1]["id"],), evidence="machine"),
        Line(
            "files",
            "/p/a.py (changed, 4 edits): parse, read",
            at(2),
            ids=(items[2]["id"],),
            evidence="machine",
        ),
        Line("files", "/p/old.py (deleted, 1 edit)", at(1, 2), ids=(items[3]["id"],), evidence="machine"),
    ]


def test_paths_below_the_root_are_relative_anywhere_in_a_text():
    short = path_shortener("/home/me/p")

    assert short("/home/me/p/a.py and `/home/me/p/b.py`") == "a.py and `b.py`"
    assert short("/home/me/pp/a.py /x/home/me/p/a.py") == "/home/me/pp/a.py /x/home/me/p/a.py"


@rows("root", ["", "/", "/srv"])
def test_a_top_level_directory_is_no_root(root):
    assert path_shortener(root)("/srv/a.py") == "/srv/a.py"


def test_only_items_that_name_the_root_are_copied():
    one, other = item("see /home/me/p/a.py"), item("see a.py")

    first, second = with_short_paths([one, other], "/home/me/p")

    assert (first["content"], one["content"]) == ("see a.py", "see /home/me/p/a.py")
    assert second is other


@rows(
    "path",
    [
        "/tmp/a.py", "/private/tmp/x/a.py", "/var/folders/x/a.py", "SCRATCH/run.sh", "$TMPDIR/a", "${TMP}/a", "x/scratchpad/a.go",
        "/home/me/.claude/plans/quick-fox.md", ".git/index.lock", "/home/me/p/.git/config",
        "C:/Users/me/AppData/Local/Temp/a.py",
    ],
)  # fmt: skip
def test_temporary_files_are_in_scratch_directories(path):
    assert is_scratch(path)


@rows(
    "path",
    [
        "src/a.py",
        "/home/me/p/tmp.py",
        "src/templates/a.html",
        "/srv/tmpfiles/a",
        "ATTEMPT.md",
        ".gitignore",
        "docs/plans/a.md",
    ],
)
def test_other_directories_are_kept(path):
    assert not is_scratch(path)


def test_few_scratch_files_are_listed_and_last():
    items = changed("src/a.py", *(f"/tmp/{number}.py" for number in range(9)))

    assert paths(changed_files(items)) == ["src/a.py", "/tmp/8.py", "/tmp/7.py", "/tmp/6.py"]
    assert len(changed_files(items)) == 1 + MOST_SCRATCH


def test_a_file_that_was_created_and_deleted_again_is_left_out():
    made = [("Created debug.py", 1), ("Changed debug.py (9 edits)", 2), ("Deleted debug.py", 3)]
    items = newest(*(item(text, "code_change", day=day) for text, day in [*made, ("Deleted old.py", 1)]))

    assert paths(changed_files(items)) == ["old.py"]


def test_names_of_tests_are_not_listed_with_their_file():
    items = newest(
        item("Changed a_test.go (2 edits): TestRetry, TestBackoff", "code_change", day=2),
        item("Changed lab.py: testify, contest", "code_change", day=1),
    )

    assert [line.text for line in changed_files(items)] == [
        "a_test.go (changed, 2 edits)",
        "lab.py (changed, 1 edit): testify, contest",
    ]


def test_one_file_named_in_two_ways_is_one():
    items = changed("/home/me/p/src/a.py", "src/a.py", "src/b.py")

    assert [line.text for line in changed_files(items)] == [
        "src/b.py (changed, 1 edit)", "/home/me/p/src/a.py (changed, 2 edits)",
    ]  # fmt: skip


def test_of_two_files_that_end_alike_neither_is_the_one_that_is_meant():
    items = changed("/home/me/p/src/a.py", "/home/me/q/src/a.py", "src/a.py")

    assert len(changed_files(items)) == 3


def test_below_a_known_root_a_relative_path_is_no_other_file():
    items = changed("/home/me/other/src/a.py", "src/a.py")

    assert len(changed_files(items, root="/home/me/p")) == 2


def test_the_foremost_files_are_those_edited_most_and_lately():
    items = newest(
        item("Changed often.py (9 edits)", "code_change", day=1),
        item("Changed once.py", "code_change", day=2),
        item("Changed new.py (2 edits)", "code_change", day=3),
    )

    assert paths(changed_files(items, foremost=True)) == ["often.py", "new.py", "once.py"]
    assert paths(changed_files(items)) == ["new.py", "once.py", "often.py"]


@rows(
    "about", ["#!/bin/zsh", "// Copyright 2026 Us", "# SPDX-License-Identifier: MIT", "package main", "import re", '"log/slog"', "})", "func run() {"]
)  # fmt: skip
def test_a_first_line_that_many_files_have_says_nothing(about):
    [line] = changed_files(newest(item(f"Changed src/a.go: {about}", "code_change")))

    assert line.text == "src/a.go (changed, 1 edit)"


def test_the_root_is_the_deepest_directory_that_holds_most_files():
    def root(*paths):
        return common_root([Line("files", f"{path} (changed, 1 edit)") for path in paths])

    assert root("/home/me/p/src/a.py", "/home/me/p/src/b.py", "/home/me/notes.md") == "/home/me/p/src/"
    assert root("/home/me/p/src/a.py", "/home/me/q/b.py", "/srv/c.py") == ""
    assert root("/home/me/p/src/a.py") == ""
    assert root("src/p/q/r/a.py", "src/p/q/r/b.py") == ""
    assert root() == ""


@rows(
    ("command", "parts"),
    [
        ("make test", ["make test"]),
        ("cd app && go build ./... && echo OK && go test ./... -count=1 2>&1 | tail -22; ls", ["go build ./...", "go test ./... -count=1"]),
        ('pytest -k "a && b; c | d"', ['pytest -k "a && b; c | d"']),
        ("pytest -k 'not slow' > /dev/null", ["pytest -k 'not slow'"]),
        ("FOO=1 BAR=$(date +%s) make || true", ["make"]),
        ("if make; then echo fine; fi", ["make"]),
        ("make test &> /dev/null & wait", ["make test & wait"]),
        ('make "torn', ['make "torn']),
        ("make\ncargo build", ["make", "cargo build"]),
        ("python3 tests/run.py", ["python3 tests/run.py"]),
    ],
)  # fmt: skip
def test_of_a_command_those_parts_count_that_do_something(command, parts):
    assert effective_parts(command) == parts


@rows(
    "command",
    [
        'for f in a b; do echo "== $f"; ls x/$f | head -2 | xargs -I{} python3 -c "', "python3 -", "python3 - <<'E'", "node -e 'x()'",
        "ls | xargs wc -l", "awk 'NR>=2 && /a/' f.go", "SCRATCH=/tmp/x; mkdir -p $SCRATCH", "echo a && \\", "cat a; grep b c", "bash", "",
    ],
)  # fmt: skip
def test_looking_around_does_nothing(command):
    assert effective_parts(command) == []


def test_a_run_with_other_flags_is_that_command_again():
    assert (
        commands_in("Ran `make -k test 2>&1 | tail`: ok")
        == commands_in("`make test` failed: no")
        == {"make test"}
    )
    assert commands_in("nothing was run") == set()


def test_a_failed_command_is_described_by_its_parts_and_message():
    known = parse_failure(
        "`cd x && make test | tail -3; ls` failed 3 times: no rule\nShell cwd was reset to /p"
    )

    assert format_failure(known) == "`make test` failed 3 times: no rule"
    assert parse_failure("The disk is full") is None


def test_a_long_command_leaves_room_for_its_message():
    reported = format_failure(parse_failure(f"`make {'x' * 200} {'y' * 200}` failed: no rule"))

    assert reported.endswith("` failed: no rule")
    assert len(reported) <= TEXT_CHARS


def test_a_command_that_was_cut_is_listed_as_far_as_it_is_known():
    items = newest(
        item("Ran `make a && go test ./x -run On…`: ok", "command", day=2),
        item("Ran `make b -run On…`", "command", day=1),
    )

    assert texts(commands_run(items)) == ["Ran `make a && go test ./x -run On…`: ok", "Ran `make b -run On…`"]


def test_a_script_is_shortened_to_its_start():
    [line] = commands_run(newest(item(f"Ran `{'make test && ' * 40}make`", "command")))

    assert len(line.text) <= COMMAND_CHARS + len("Ran ``")


def test_the_directory_of_the_shell_is_no_result():
    [line] = commands_run(newest(item("Ran `make`: Shell cwd was reset to /p", "command")))

    assert line.text == "Ran `make`"


def test_only_looking_around_is_no_command_that_mattered():
    assert (
        commands_run(
            newest(item("Ran `ls | head`: a.py", "command"), item("Ran `make`", "command", protected=True))
        )
        == []
    )


def test_a_line_whose_parts_ran_later_is_left_out():
    items = newest(
        item("Ran `make lint && make test`", "command", day=1), item("Ran `make test`", "command", day=2),
        item("Ran `make lint`", "command", day=3),
    )  # fmt: skip

    assert texts(commands_run(items)) == ["Ran `make lint`", "Ran `make test`"]


def test_only_the_newest_commands_are_read():
    runs = [item(f"Ran `./deploy {number}`", "command", hour=number % 24) for number in range(100)]

    assert len(commands_run(newest(*runs))) == LOOKED_AT


def test_each_command_is_listed_with_its_last_run_git_history_last():
    items = newest(
        item("Ran `git commit`: [main 1]", "command", day=4),
        item("Ran `make test`: ok", "command", day=3),
        item("Ran `make -k test` (2 runs): 1 failed", "command", day=2),
        item('create_issue {"title": "x"}', "command", day=5),
        item("Ran `make lint`", "command", day=1),
    )

    assert texts(commands_run(items)) == [
        "Ran `make test`: ok",
        "Ran `make lint`",
        "Called create_issue: x",
        "Ran `git commit`: [main 1]",
    ]


def test_what_the_work_tree_says_as_well_and_a_quiet_formatter_are_left_out():
    items = newest(
        item("The last commit, 1a2b3c4, was pushed.", role="tree", day=6),
        item("Ran `git commit -m x`: [main 1a2b3c4] Add the parser", "command", day=5),
        item("Ran `git push && git switch main`: main -> main", "command", day=4),
        item("Ran `git bisect run make`: 5d6e7f8 is the first bad commit", "command", day=4, hour=1),
        item("Ran `gofmt -w a.go`", "command", day=3),
        item("Ran `make fmt && make test`", "command", day=2),
    )

    assert texts(commands_run(items)) == [
        "Ran `make fmt && make test`",
        "Ran `git bisect run make`: 5d6e7f8 is the first bad commit",
    ]
    assert len(commands_run(items[1:])) == 4  # without a state of the work tree


def test_requests_are_listed_newest_first_without_encouragement():
    items = newest(
        item("Add a parser for TOML.", "user_input", day=1),
        item("yes please", "user_input", day=2),
        item("Asked: Which database?\nAnswered: SQLite, it is enough", "user_input", day=3),
        item("Asked: Continue?\nAnswered: yes", "user_input", day=4),
        item("Asked: Want me to fix it?\nAnswered: fix it up", "user_input", day=4, hour=1),
        item("[image]", "user_input", day=5),
    )

    assert [(line.text, line.at) for line in sections.requests(items)] == [
        ("SQLite, it is enough (asked: Which database?)", at(3)),
        ("Add a parser for TOML.", at(1)),
    ]


@rows("said", ["Can you fix #12?", "what about src/a.py?", "Fix the failing tests", "use tabs"])
def test_a_short_request_that_names_something_is_kept(said):
    items = newest(item(said, "user_input", day=1), item("Add a parser for TOML.", "user_input", day=2))

    assert said in texts(sections.requests(items))


def test_requests_of_agents_and_programs_are_left_out():
    items = newest(
        item("Look at all the tests.", "user_input", caste="scout"),
        item("Look at them.", "user_input", source="mcp"),
    )

    assert texts(sections.requests(items)) == []


def test_a_long_request_is_shortened_to_its_start():
    [line] = sections.requests(newest(item("word " * 200, "user_input")))

    assert line.text.startswith("word word")
    assert line.text.endswith("...")


@rows(
    "opening",
    [
        "Thanks, that worked great and the tests pass.\n\n",
        "I get this error when I start it\nError: no such file\n",
    ],
)
def test_a_sentence_is_no_title_of_the_request_below_it(opening):
    request = opening + "Now make the parser read dates in all formats of the standard, please. " * 6
    items = newest(item(request, "user_input", day=1), item("Write the docs.", "user_input", day=2))

    assert "Now make the parser read dates" in texts(sections.requests(items))[1]


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

    assert [(line.text, line.at) for line in sections.decisions(items, sessions)] == [
        ("We went with SQLite for the index", at(20)),
        ("Use one journal per home - it gives undo", at(10)),
    ]


def test_only_what_a_person_settled_is_injected_as_a_decision():
    items = newest(
        item("We keep one log per worktree", "decision", day=3, evidence="person", pointer={"line": 3}),
        item("I chose SQLite for the index", "decision", day=2, evidence="agent", pointer={"line": 2}),
        item("I chose tabs because they are old", "decision", day=1, pointer={"line": 1}),
    )

    assert texts(sections.decisions(items, [])) == ["We keep one log per worktree"]


def test_a_check_that_failed_before_the_person_moved_on_is_open_only_if_nothing_was_changed_since():
    failed = item("`make test` failed: 2 tests", "error", day=2)
    asked = item("Now the docs", "user_input", day=3, role="request")
    changed = item("Changed docs/a.md", "code_change", day=4)

    def where(*items):
        return [(line.section, line.text) for line in sections.problems(newest(*items))]

    assert where(failed) == where(failed, asked) == [("open", failed["content"])]
    # It has not passed since: so much is still true.
    assert where(failed, asked, changed) == [("commands", failed["content"])]
    passed = item("Ran `make test`: 12 passed", "command", day=5)
    assert where(failed, asked, changed, passed) == []


def test_a_test_that_failed_alone_is_over_when_all_tests_pass():
    alone = item("`go test ./store -run TestAdd` failed: FAIL", "error", day=2)
    lint = item("`make lint` failed: E501", "error", day=2)
    passed = item("Ran `mise run test`: ok", "command", day=3)
    other = item("Ran `go test ./other -run TestSub`: ok", "command", day=3)

    assert texts(sections.problems(newest(alone, lint, passed))) == [lint["content"]]
    assert len(texts(sections.problems(newest(alone, lint, other)))) == 2


def test_of_a_pasted_log_only_the_words_around_it_are_shown():
    log = "Mar  9 09:00:08.092 |DEBUG| opened the store\nMar  9 09:00:08.093 |INFO| closed it id=7\n"
    asked = item(f"the lines still go to the wrong file:\n{log}\nwhy is that?", "user_input")

    assert texts(sections.requests([asked])) == ["the lines still go to the wrong file: […] why is that?"]


def test_a_remark_that_no_work_followed_is_no_request():
    def request(text, day):
        return item(text, "user_input", day=day, role="request")

    work = item("Changed a.py", "code_change", day=4)
    said = [
        request("first one", 1),
        request("and `b` affects it too, also in the other tree that was moved there", 2),
        request("add `c` as well, but not `d`", 3),
        work,
        request("the last", 5),
    ]

    assert texts(sections.requests(newest(*said))) == [
        "the last",
        "first one",
        "add `c` as well, but not `d`",
    ]


def test_an_error_is_open_until_its_command_succeeds():
    failed = item("`make test` failed: 2 tests", "error", day=2)
    other = item("`make lint` failed: E501", "error", day=2, hour=1)
    before = item("Ran `make test`: ok", "command", day=1)
    after = item("Ran `make -j4 test`: ok", "command", day=3)

    assert texts(sections.problems(newest(before, failed, other, after))) == [other["content"]]
    assert texts(sections.problems(newest(before, failed, other))) == [
        other["content"],
        failed["content"],
    ]


def test_an_error_without_a_command_stays_open():
    assert texts(sections.problems(newest(item("The disk is full", "error")))) == ["The disk is full"]


def test_failures_while_looking_around_are_not_open():
    probe = item('`for f in a b; do ls $f | xargs -I{} python3 -c "` failed: command line too long', "error")
    mixed = item("`ls x | head; make test; echo done` failed: 2 tests", "error")

    assert texts(sections.problems(newest(probe, mixed))) == ["`make test` failed: 2 tests"]
    fetched = item("`npm install left-pad@0.24` failed: no such version", "error")
    assert texts(sections.problems(newest(fetched))) == []


def test_a_line_of_commands_is_over_when_all_of_them_have_run():
    failed = item("`make lint && make test` failed: 2 tests", "error", day=1)
    lint, test = item("Ran `make lint`: ok", "command", day=2), item("Ran `make -k test`", "command", day=3)

    assert len(texts(sections.problems(newest(failed, lint)))) == 1
    assert texts(sections.problems(newest(failed, lint, test))) == []


def test_a_blocker_is_open_until_something_speaks_of_it_as_solved():
    blocker = item("The login tests fail on Windows because of the clock", "blocker", day=1)
    over = item("The login tests on Windows pass: the clock is injected", "outcome", day=2)
    before = item("The login tests on Windows pass: the clock is injected", "outcome", day=1)

    assert texts(sections.problems(newest(before, blocker))) == [blocker["content"]]
    assert texts(sections.problems(newest(blocker, over))) == []


def test_a_blocker_without_words_of_trouble_is_not_open():
    quoted = item("The pattern uses `func() error {...}` with a check", "blocker")

    assert texts(sections.problems(newest(quoted))) == []


def test_protected_items_are_in_their_own_section_only():
    items = newest(
        item("The disk is full", "error", protected=True),
        item("Add a page to it", "user_input", protected=True),
    )

    assert texts(sections.problems(items)) == []
    assert texts(sections.requests(items)) == []


def test_only_the_newest_errors_and_requests_are_read():
    errors = [item(f"`run {number}` failed: no", "error", hour=number % 24) for number in range(100)]
    requests = [item(f"Do only the thing number {number}", "user_input") for number in range(100)]

    assert len(texts(sections.problems(newest(*errors)))) == sections.LOOKED_AT_OPEN
    assert len(texts(sections.requests(newest(*requests)))) == sections.LOOKED_AT


def test_results_are_listed_without_markup_and_next_steps():
    result = "## Done\n\n---\n**All** twelve tests of the parser pass now and the docs say so too. Let me commit it:"
    items = newest(item(result, "outcome", day=2), item("Now I see.", "outcome", day=3))

    assert texts(sections.results(items)) == [
        "Done All twelve tests of the parser pass now and the docs say so too."
    ]


def test_the_result_of_an_agent_is_listed_however_short():
    items = newest(
        item("The invoices use ISO dates only.", "outcome", caste="scout"),
        item("A helper is on its way.", "outcome"),
    )

    assert texts(sections.results(items)) == ["The invoices use ISO dates only."]


def test_what_a_session_keeps_says_what_its_items_said():
    held = [
        item("Read the invoices.", "user_input", hour=1), item("Ok, ETA?", "user_input", hour=2),
        item("The invoices use ISO dates only.", "outcome", caste="scout", hour=3),
        item("`make` failed: no rule", "error", hour=4), item("`make lint` failed: E501", "error", hour=4),
        item("Ran `make`: ok", "command", hour=5), item("Looked at `dates.py`.", hour=5),
        item("All of the twelve parser tests pass and the manual page says how to use it", "outcome", hour=6),
        item("Now export them.", "user_input", hour=7),
    ]  # fmt: skip
    kept = sections.kept_items(held)

    later = list(sections.session_items([(at(25), session(items=kept))]))

    for said in (sections.requests, sections.results, sections.problems):
        assert list(said(later)) == list(said(newest(*held)))
    assert texts(sections.problems(later)) == ["`make lint` failed: E501"]
    assert all(line.ids for line in sections.requests(later))
    assert "Looked at `dates.py`." not in [each["content"] for each in kept]


def test_a_session_keeps_the_newest_of_each_kind_and_the_first_request():
    requests = [
        item(f"Export the invoices of month {number}.", "user_input", hour=number, role="request")
        for number in range(20)
    ]

    kept = sections.kept_items(requests)

    assert kept == [requests[0], *requests[-sections.KEPT["request"] :]]


def test_a_session_keeps_every_rule_and_choice_but_the_work_of_few_conversations():
    held = [
        item(f"Conversation {number}: {said}", kind, day=number, conversation=f"c{number}")
        for number in range(1, 9)
        for said, kind in (("never push", "constraint"), ("we chose SQLite", "decision"), ("it works", "outcome"))
    ]  # fmt: skip

    kept = sections.kept_items(held)

    assert [each for each in kept if each["type"] != "outcome"] == [
        each for each in held if each["type"] != "outcome"
    ]
    assert [each["metadata"]["conversation"] for each in kept if each["type"] == "outcome"] == ["c7", "c8"]


def test_a_session_keeps_the_conversations_that_have_an_account_before_those_that_only_asked():
    work = item("The parser was written, and all of its tests pass.", "outcome", day=1, conversation="work")
    asked = [
        item("What is next?", "user_input", day=number, conversation=f"c{number}") for number in range(2, 9)
    ]

    assert work in sections.kept_items([work, *asked])


def test_of_older_sessions_only_what_outlasts_their_work_is_listed():
    kept = [item("Never push.", "constraint"), item("The parser was written.", "outcome")]

    found = list(sections.session_items([(at(10), session(items=kept))] * (sections.RECENT_SESSIONS + 1)))

    assert [each["type"] for each in found] == ["outcome", "constraint"] * sections.RECENT_SESSIONS + [
        "constraint"
    ]


@rows("kind", ["pattern", "item of a session", "both"])
def test_a_rule_that_was_compressed_or_learned_is_revoked_by_name(kind):
    rule = item("Never use mocks in the integration tests.", "constraint", day=3)
    memory = documents(
        item("Forget the rule about mocks.", "user_input", day=20),
        sessions=[] if kind == "pattern" else [session(items=[rule])],
        patterns=[] if kind == "item of a session" else [pattern(rule["content"])],
    )["memory"]

    ended = sections.revoked_in(memory)

    known = {"pattern": {f"pattern-{rule['content']}"}, "item of a session": {rule["id"]}}
    assert {*ended} == known.get(kind, set().union(*known.values()))


def test_only_what_is_in_no_item_is_listed_from_the_text_of_a_session():
    rule = item("Never push to main.", "constraint")
    entries = [
        entry("Never push to main.", "constraint"), entry("Always lint.", "constraint"),
        entry("Always format.", "constraint", carried=True),
    ]  # fmt: skip
    model = session(
        items=[rule],
        entries=entries,
        decisions=[("We chose SQLite over Postgres.", "one file")],
        backend="ollama",
    )
    own = {**model, "metadata": {**model["metadata"], "architect": {"backend": "extractive"}}}

    for made, said in (
        (model, {"Never push to main.": "rules", "Always lint.": "noted"}),
        (own, {"Never push to main.": "rules"}),
    ):
        memory = documents(sessions=[made])["memory"]
        assert by_section(sections.rules(memory, sections.known_items(memory))) == said
    assert texts(sections.decisions([], [(at(10), model)])) == ["We chose SQLite over Postgres. - one file"]
    assert texts(sections.decisions([], [(at(10), own)])) == []


def test_the_entries_of_a_session_are_split_into_items():
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


def test_the_files_in_the_details_of_a_session_replace_those_in_its_entries():
    kept = session(
        entries=[entry("Changed /p/a.py", "code_change")], files=["Changed /p/a.py: x", "Created /p/b.py"]
    )

    assert [found["content"] for found in sections.session_items([(at(10), kept)])] == [
        "Created /p/b.py",
        "Changed /p/a.py: x",
    ]


def test_an_error_that_a_session_left_open_is_open_until_its_command_succeeds():
    left = list(sections.session_items([(at(10), session(open=["`make` failed: no rule"]))]))

    assert texts(sections.problems(left)) == ["`make` failed: no rule"]
    assert texts(sections.problems([*newest(item("Ran `make`: ok", "command", day=11)), *left])) == []


def test_an_error_that_the_session_of_a_hand_off_does_not_call_open_is_history():
    old = [entry("`make` failed: no rule", "error")]

    assert len(list(sections.session_items([(at(10), session(entries=old))]))) == 1
    assert list(sections.session_items([(at(10), session(entries=old, compression_id="phase_1_a"))])) == []


def test_only_the_newest_sessions_are_looked_into():
    kept = session(entries=[entry("Ran `make`", "command")])

    assert len(list(sections.session_items([(at(10), kept)] * 9))) == sections.RECENT_SESSIONS


def test_earlier_sessions_are_listed_with_their_summaries():
    shown = item("The parser was written.", "outcome")
    of_host = "1. Primary Request and Intent:\n   Move the index.\n\n2. Pending Tasks:\n   - push\n"
    sessions = [
        (at(12), session(summary="The parser was written.", items=[shown])),
        (at(11), session(summary=of_host)),
        (at(10), session(summary="Chose SQLite.")),
    ]

    assert texts(sections.earlier_work(sessions, [shown])) == [
        "Move the index.",
        "Chose SQLite.",
    ]


def test_of_an_earlier_session_one_sentence_of_a_person_or_a_machine_is_shown():
    commit = item(
        "[main 617fc5e]\n\nRetry the webhook with jitter\nIt was dropped.", "command", role="commit", day=9
    )
    asked = item(
        "Please read `src/app/**/{route,page}.tsx` for the routes. Then write it down.",
        "user_input",
        role="request",
        day=8,
    )
    rule = item("Always use tabs in Go files.", "constraint", day=8)
    joined = "Task A: Verify it Root cause: the pool leaks. Always use tabs in Go files."

    def lines(*kept, ended=()):
        made = session(summary=joined, items=list(kept))
        return [(one.text, one.evidence) for one in sections.earlier_work([(at(10), made)], [], ended=ended)]

    assert lines(asked, rule, commit) == [("617fc5e Retry the webhook with jitter", "machine")]
    assert lines(asked, rule) == [
        ("Asked: Please read `src/app/**/{route,page}.tsx` for the routes.", "person")
    ]
    assert lines(asked, rule, ended=[asked["id"]]) == []
    assert lines(rule) == lines() == []


def test_the_summary_of_an_architect_ends_with_a_whole_sentence():
    said = "The parser reads its tables once and keeps them for the next file."
    long = session(
        summary=f"{said} " * 9 + "It never ends " * 40, backend="openai", items=[], ended=["Drop the cache."]
    )

    (line,) = sections.earlier_work([(at(10), long)], [])

    assert line.text == " ".join([said] * 5)


def test_a_result_ends_with_its_last_whole_sentence_that_reports():
    said = "The webhook retries five times with a growing delay, because fast calls are dropped."
    items = newest(item(f"{said} Next I will add a metric for dropped events.", "outcome"))

    assert texts(sections.results(items)) == [said]


def test_the_latest_work_of_a_caste_is_listed():
    items = newest(
        item("Found three bugs", "outcome", caste="scout", day=1),
        item("Chose to retry", "decision", caste="scout", day=2),
        item("Ran `ls`", "command", caste="scout", day=3),
        item("Built it", "outcome", caste="builder", day=4),
    )

    assert texts(sections.done_by_caste(items, "scout")) == ["Chose to retry", "Found three bugs"]


def asked_on(day, text, conversation="c"):
    return item(text, "user_input", day=day, role="request", conversation=conversation)


def test_earlier_requests_say_whether_a_report_followed():
    def answered(day, **metadata):
        return item(
            "Done: `a.py` now retries.", "outcome", day=day, role="answer", conversation="c", **metadata
        )

    work = item("Changed a.py: parse", "code_change", conversation="c")
    items = [
        asked_on(9, "Now write the handbook of the queue."),
        work, answered(7, fate="cut"), asked_on(6, "Move src/queue.py, but keep its name."),
        work, answered(5), asked_on(4, "Add retries to src/webhook.py, but only five."),
    ]  # fmt: skip

    assert [(line.text.split()[0], line.note) for line in sections.requests(items)] == [
        ("Now", "no final report yet"), ("Add", "a report followed"), ("Move", ""),
    ]  # fmt: skip


def committed_on(day, text="[main 1a2b3c4] Add retries"):
    return item(text, "outcome", day=day, role="commit", evidence="machine", conversation="c")


def test_requests_before_the_last_are_those_asked_earlier_and_say_whether_a_commit_followed():
    changed = item("Changed a.py: parse", "code_change", conversation="c")
    items = [
        committed_on(9), asked_on(8, "Now write the handbook of the queue."),
        changed, asked_on(7, "Why does src/queue.py sleep?"),
        committed_on(6), changed, asked_on(5, "Add retries to src/webhook.py, but only five."),
        changed, asked_on(4, "nah, leave that out"), committed_on(3), changed, asked_on(2, "Move src/db.py into a package."),
    ]  # fmt: skip

    lines = [*sections.requests(items)]

    assert [(line.section, line.text.split()[0], line.note) for line in lines] == [
        ("requests", "Now", "no final report yet"), ("asked", "Move", ""), ("asked", "Add", "a commit followed"),
    ]  # fmt: skip


@rows(
    ("asked", "kept"),
    [
        ("Why does src/queue.py sleep?", False),
        ("what does src/queue.py wait for", False),
        ("push it to the fork", False),
        ("The sleep in src/queue.py should be shorter. Why is it there?", True),
        ("Add a sleep to src/queue.py.", False),
        ("Keep the sleep in src/queue.py below a second.", True),
        # Answered, or without what it goes on from.
        ("can you check whether src/queue.py should sleep at all?", False),
        ("or let's sleep less in src/queue.py then", False),
        ("but keep both of these", False),
        ("let's drop 3", False),
    ],
)
def test_of_what_was_asked_between_only_what_says_how_is_kept(asked, kept):
    changed = item("Changed a.py: parse", "code_change", conversation="c")
    newest, first = (
        asked_on(9, "Now write the handbook of the queue."),
        asked_on(3, "Move src/db.py into a package."),
    )

    report = item("It sleeps a second.", "outcome", day=7, role="answer", conversation="c")

    found = texts(sections.requests([newest, report, changed, asked_on(6, asked), changed, first]))

    assert (asked in found) == kept


def test_a_request_without_a_final_report_says_so():
    asked = asked_on(5, "Add retries to src/webhook.py, please.")
    cut = item("Now the tests of `retry()`:", "outcome", day=6, role="answer", conversation="c", fate="cut")
    done = item("Added `retry()`; all tests pass.", "outcome", day=6, role="answer", conversation="c")
    of_agent = item("Looked at `retry()`.", "outcome", day=6, caste="scout", role="answer", conversation="c")

    notes = [next(sections.requests([*after, asked])).note for after in ([], [cut], [of_agent], [done])]

    assert notes == [*["no final report yet"] * 3, "a report followed"]
    # What is too short to be shown is still the newest.
    thanks = item("ok, thanks", "user_input", day=7, role="request", conversation="c")
    assert next(sections.requests([thanks, done, asked])).note == "a report followed"


def test_a_request_that_no_report_followed_is_shown_at_length():
    asked = asked_on(5, f"Add retries to src/webhook.py: {'try again after a pause, ' * 30}and then log it.")
    done = item("Added `retry()`; all tests pass.", "outcome", day=6, role="answer", conversation="c")

    open_, reported = (texts(sections.requests([*after, asked]))[0] for after in ([], [done]))

    assert open_ == asked["content"]
    assert len(reported) <= sections.CURRENT_CHARS < len(open_)


def test_what_a_question_is_about_is_asked_now_too():
    changed = item("Changed a.py: parse", "code_change", conversation="c")
    items = [
        asked_on(9, "can you explain the second way of src/db.py to me?"), asked_on(8, "Fix what the review of src/db.py found."),
        changed, asked_on(7, "Add retries to src/webhook.py, but no more than five."), changed, asked_on(6, "Move src/db.py into a package."),
    ]  # fmt: skip

    assert [line.section for line in sections.requests(items)] == ["requests", "requests", "asked", "asked"]


def test_a_question_before_a_question_is_not_asked_now():
    items = [
        asked_on(9, "why does the file src/db.py exist at all?"), asked_on(8, "where are the callers of src/db.py?"),
        asked_on(7, "Fix what the review of src/db.py found."),
    ]  # fmt: skip

    lines = [line.text for line in sections.requests(items) if line.section == "requests"]

    assert lines == ["why does the file src/db.py exist at all?", "Fix what the review of src/db.py found."]


def test_a_page_that_came_first_is_what_the_work_is_for():
    changed = item("Changed a.py: parse", "code_change", conversation="c")
    items = [
        one
        for day in (9, 8, 7)
        for one in (asked_on(day, f"Add only step {day} to src/webhook.py."), changed)
    ]
    page = asked_on(2, "Rewrite the queue.\n\n" + "It drops jobs when the disk is full. " * 20)

    assert [line.section for line in sections.requests([*items, page])] == [
        "requests", "requests", "asked", "asked",
    ]  # fmt: skip


@rows(
    ("end", "shown"),
    [
        ("Fix all those", True),
        ("What needs to be changed?", True),
        ("`parse()` at line 7 | P1", False),
        ("and the last of the comments goes on " * 10, False),
    ],
)
def test_a_long_request_is_shown_with_its_last_paragraph(end, shown):
    pasted = "# Comments\n\n" + "The reader of src/db.py drops the newest row. " * 20
    line = next(sections.requests([asked_on(3, f"{pasted}\n\n{end}")]))

    assert line.text.startswith("# Comments")
    assert line.text.endswith(f" […] {end}") is shown


@rows(
    ("said", "later", "kept"),
    [
        ("Push the two commits, please", True, False),
        ("Push the two commits, please", False, True),
        ("then let's open a draft PR for that", True, False),
        ('"How should I deliver it?"="Push the two commits, mark the threads as resolved"', True, False),
        (
            "Push the two commits of the branch, reply on the threads of the review, mark them as resolved",
            True,
            False,
        ),
        ("push only tags that are signed, because the mirror reads all others twice", True, True),
    ],
)
def test_an_errand_is_no_decision_after_the_next_request(said, later, kept):
    decided = item(said, "decision", day=3, evidence="person", conversation="c")
    items = [*([asked_on(5, "Now the docs.")] if later else []), decided]

    assert bool([*sections.decisions(items, [])]) is kept


def test_two_checks_are_listed_and_those_before_the_last_edit_say_so():
    runs = [
        item(f"Ran `make {name}`: ok", "command", day=day)
        for day, name in ((5, "test"), (4, "lint"), (3, "docs-check"))
    ]
    tree = item(f"Uncommitted, as of the last call: a.py. {UNCHECKED}", role="tree", day=6)

    assert texts(commands_run(newest(*runs))) == ["Ran `make test`: ok", "Ran `make lint`: ok"]
    assert {line.note for line in commands_run(newest(*runs))} == {""}
    assert {line.note for line in commands_run(newest(tree, *runs))} == {"perhaps before the last edit"}


def test_a_check_older_than_the_last_edit_of_a_file_that_lasts_ran_before_it():
    runs = [item("Ran `make test`: ok", "command", day=3), item("Ran `make lint`: ok", "command", day=5)]
    failed = item("`make docs` failed: 1 failed", "error", day=3)
    scratch = item("Changed /tmp/a.py", "code_change", day=6)
    items = newest(scratch, item("Changed a.py", "code_change", day=4), *runs, failed)

    assert [(line.text, line.note) for line in commands_run(items)] == [
        ("Ran `make lint`: ok", ""), ("Ran `make test`: ok", "before the last edit"),
    ]  # fmt: skip
    assert [line.note for line in sections.problems(items)] == ["before the last edit"]


def test_a_check_that_failed_since_or_worked_again_replaces_its_older_run():
    passed = item("Ran `make test`: 9 passed", "command", day=2)
    failed = item("`make test` failed: 1 failed", "error", day=3)
    worked = item("`make test` failed: 1 failed\nWorked after changes to a.py: 12 passed", "solution", day=3)
    quiet = item("`make test` failed 2 times: 1 failed\nWorked when run again.", "solution", day=3)
    other = item(
        "`make test` failed: 1 failed\nWorked as `make -k test` after `npm i`: 12 passed", "solution", day=3
    )

    part = item(
        "`make lint && make test` failed: 1 failed\nPart of it worked as `make test`: 12 passed",
        "solution",
        day=3,
    )

    assert [texts(commands_run([newer, passed])) for newer in (failed, worked, quiet, other, part)] == [
        [], ["Ran `make test`: 12 passed"], ["Ran `make test`"], ["Ran `make -k test`: 12 passed"], ["Ran `make test`: 12 passed"],
    ]  # fmt: skip


def test_a_check_on_another_branch_says_so():
    def tree(branch, day):
        return item(f"Uncommitted, as of the last call: a.py. The branch is {branch}.", role="tree", day=day)

    items = newest(
        tree("b.2, rebased on main", 6), item("Ran `make test`: ok", "command", day=5), tree("a", 4),
        item("Ran `make lint`: ok", "command", day=3), item("`make docs` failed: 1 failed", "error", day=3), tree("a", 2),
    )  # fmt: skip

    assert [(line.text, line.note) for line in commands_run(items)] == [
        ("Ran `make test`: ok", ""), ("Ran `make lint`: ok", "on the branch a"),
    ]  # fmt: skip
    assert [line.note for line in sections.problems(items)] == ["on the branch a"]
    # Where the branch before it is another one, or not known, it may have run on either.
    for earlier in ([tree("b.2", 2)], []):
        held = [one for one in items if one["metadata"]["timestamp"] > tree("a", 2)["metadata"]["timestamp"]]
        assert {line.note for line in commands_run([*held, *earlier])} == {""}


def test_an_act_that_a_person_asked_for_beside_a_decision_says_that_a_report_followed():
    decided = item(
        "let's pop a comment into the issue saying that we probably don't need it any more", "decision", day=3,
        evidence="person", conversation="c",
    )  # fmt: skip
    asked = asked_on(3, f"{decided['content']}. Then go on.")
    report = item("Done: the comment is posted.", "outcome", day=4, role="answer", conversation="c")
    elsewhere = item("Done: `a.py` retries.", "outcome", day=4, role="answer", conversation="d")

    notes = [
        [line.note for line in sections.decisions(items, [])]
        for items in ([report, decided, asked], [elsewhere, decided, asked], [decided, asked])
    ]
    assert notes == [["a report followed"], [""], [""]]


def test_a_start_lists_no_check_that_said_nothing():
    items = newest(
        item("Ran `go build ./...`", "command", day=3),
        item("Ran `make deploy`", "command", day=2),
        item("Ran `gh pr merge 9`", "command", day=1),
    )

    assert len(commands_run(items)) == 3
    assert texts(commands_run(items, silent=False)) == ["Ran `gh pr merge 9`"]


def test_a_start_lists_checks_and_what_was_published():
    errands = [
        "npx next dev --port 3000", "gh pr comment 90", "pnpm add left-pad", "go mod why -m testify",
        "tar czf app.tgz dist/release", "git tag release", "./target/release/app serve",
    ]  # fmt: skip
    lasting = [
        "make test", "python -m twine upload dist/a.whl", "gh release create v2", "docker push acme/api:1.4",
        "npx wrangler deploy", "./deploy.sh prod", "terraform apply", "vercel --prod", "alembic upgrade head", "npm run release:major",
        "git push origin main --tags",
    ]  # fmt: skip
    items = [item(f"Ran `{one}`: ok", "command", day=1) for one in (*errands, *lasting)]

    assert len(commands_run(items)) == len(items)
    assert {*texts(commands_run(items, silent=False))} == {f"Ran `{one}`: ok" for one in lasting}


def test_a_start_lists_no_check_from_before_the_last_edit_whose_programs_ran_again():
    edit = item("Changed a.py", "code_change", day=3)
    runs = [
        item("Ran `go test ./...`: ok", "command", day=4),
        item("Ran `gofmt -w . && go test ./store`: ok", "command", day=2),
        item("Ran `go vet ./...`: 0 issues", "command", day=1),
    ]

    shown = ["Ran `go test ./...`: ok", "Ran `go vet ./...`: 0 issues"]
    assert texts(commands_run(newest(edit, *runs), silent=False)) == shown
    assert len(commands_run(newest(edit, *runs))) == 2  # the most checks that are shown
    assert texts(commands_run(newest(*runs), silent=False)) == [
        "Ran `go test ./...`: ok", "Ran `gofmt -w . && go test ./store`: ok",
    ]  # fmt: skip


def test_a_check_of_a_temporary_file_is_no_open_problem():
    failed = "failed: 1 failed"
    probe = item(f"`go test -overlay=/tmp/probe/overlay.json ./...` {failed}", "error", day=1)
    kept = item(f"`GOTMPDIR=/tmp/go go test ./...` {failed}", "error", day=1)

    assert texts(sections.problems([probe])) == []
    assert len(texts(sections.problems([kept]))) == 1


def test_a_start_names_no_temporary_files():
    items = [
        item("Created /tmp/probe.json", "code_change", day=2),
        item("Changed /srv/a.py", "code_change", day=1),
    ]

    assert len(changed_files(items)) == 2
    assert texts(changed_files(items, foremost=True)) == ["/srv/a.py (changed, 1 edit)"]
    assert changed_files(items[:1], foremost=True) == []


def test_of_a_long_chain_the_end_is_listed():
    chain = " && ".join(f"make part-{number}-of-the-whole-build" for number in range(8))

    assert texts(commands_run([item(f"Ran `{chain}`: ok", "command")])) == [
        "Ran `" + " && ".join(f"make part-{number}-of-the-whole-build" for number in range(4, 8)) + "`: ok"
    ]


def test_an_issue_that_was_filed_is_no_commit():
    filed = committed_on(3, "https://example.com/o/r/issues/9\n\nRetries are lost")
    asked = asked_on(2, "File an issue on the lost retries.")

    assert sections.request_fates([asked_on(4, "Now the docs."), filed, asked]) == {}
    assert sections.request_fates([asked_on(4, "Now the docs."), filed, committed_on(3), asked]) == {
        asked["id"]: "done"
    }


def test_a_request_that_the_person_dropped_is_left_out():
    dropped = asked_on(1, "Also update the README some time.")
    other = asked_on(2, "Update the README and the changelog. Then push.", "d")
    kept = asked_on(3, "Write the release notes.")
    ending = asked_on(4, "We don't need the README any more.")

    assert dropped["content"] not in texts(sections.requests([ending, kept, dropped]))
    assert sections.request_fates([ending, kept, dropped]) == {dropped["id"]: "dropped"}
    # The words that end it may ask for something else, and stay.
    assert ending["content"] in texts(sections.requests([ending, kept, dropped]))
    # Of two that it may mean, and of several sentences, none is dropped.
    again = asked_on(2, "Translate the README.")
    several = {**other, "metadata": {**other["metadata"], "conversation": "c"}}
    for held in ([ending, again, dropped], [ending, several], [ending, other]):
        assert sections.request_fates(held) == {}


def test_a_session_keeps_the_fate_of_its_requests():
    items = [asked_on(1, "Add retries to src/webhook.py."), committed_on(2), asked_on(3, "Write the notes.")]

    kept = sections.kept_items(items)

    assert [one["metadata"].get("fate") for one in kept] == ["done", None, None]
    assert [line.note for line in sections.requests([*reversed(kept)])] == [
        "no final report yet", "a commit followed",
    ]  # fmt: skip
    assert [line.note for line in sections.requests([kept[2], kept[0]])] == [
        "no final report yet", "a commit followed",
    ]  # fmt: skip


def test_a_picked_answer_comes_before_its_question():
    picked = item(
        '"When should it start?"="Now, beside the rest" user notes: not on Friday',
        "decision",
        evidence="person",
    )

    assert texts(sections.decisions([picked], [])) == [
        "Now, beside the rest user notes: not on Friday (asked: When should it start?)"
    ]
    quoted = item('"Which quotes?"="Use "double" ones, never "single""', "decision", evidence="person")
    assert texts(sections.decisions([quoted], [])) == [
        'Use "double" ones, never "single" (asked: Which quotes?)'
    ]


@rows(
    ("text", "shown"),
    [
        ("Keep one log for each worktree (key on the path, not on the name)", "Keep one log for each worktree..."),
        ("Keep one log (see above) for each worktree, and key on the path", "Keep one log (see above) for each worktree, and..."),
    ],
)  # fmt: skip
def test_a_cut_leaves_no_parenthesis_open(text, shown):
    assert one_line(text, 51) == shown


@rows("unchecked, note", [(f" {UNCHECKED}", "perhaps before the last edit"), ("", "")])
def test_a_check_that_failed_before_the_last_edit_says_so(unchecked, note):
    failed = item("`make test` failed: 1 failed", "error", day=3)
    tree = item(f"Uncommitted, as of the last call: a.py.{unchecked}", day=4, role="tree")

    assert [(line.section, line.note) for line in sections.problems([tree, failed])] == [("open", note)]

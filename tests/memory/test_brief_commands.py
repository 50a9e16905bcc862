from aether.memory.briefing.sections import (
    COMMAND_CHARS,
    LOOKED_AT,
    commands_in,
    commands_run,
    effective_parts,
    format_failure,
    newest_items,
    parse_failure,
    solutions,
)
from tests.memory.briefs import documents, item
from tests.tables import rows


def newest(*items):
    return newest_items(documents(*items)["memory"])


def texts(lines):
    return [line.text for line in lines]


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


def test_a_failed_command_is_told_by_what_it_did_and_said():
    known = parse_failure(
        "`cd x && make test | tail -3; ls` failed 3 times: no rule\nShell cwd was reset to /p"
    )

    assert format_failure(known) == "`make test` failed 3 times: no rule"
    assert parse_failure("The disk is full") is None


def test_a_long_command_leaves_room_for_what_it_said():
    told = format_failure(parse_failure(f"`make {'x' * 90} {'y' * 90}` failed: no rule"), 120)

    assert told.endswith("` failed: no rule")
    assert len(told) <= 120


def test_what_was_cut_off_is_told_only_where_there_is_no_more():
    items = newest(
        item("Ran `make a && go test ./x -run On…`: ok", "command", day=2),
        item("Ran `make b -run On…`", "command", day=1),
    )

    assert texts(commands_run(items)) == ["Ran `make a`: ok", "Ran `make b -run On…`"]


def test_a_script_is_told_by_its_beginning():
    [line] = commands_run(newest(item(f"Ran `{'make test && ' * 40}make`", "command")))

    assert len(line.text) <= COMMAND_CHARS + len("Ran ``")


def test_where_the_shell_stands_is_no_result():
    [line] = commands_run(newest(item("Ran `make`: Shell cwd was reset to /p", "command")))

    assert line.text == "Ran `make`"


def test_only_looking_around_is_no_command_that_mattered():
    assert (
        commands_run(
            newest(item("Ran `ls | head`: a.py", "command"), item("Ran `make`", "command", protected=True))
        )
        == []
    )


def test_a_line_whose_parts_ran_later_is_not_told():
    items = newest(
        item("Ran `make lint && make test`", "command", day=1), item("Ran `make test`", "command", day=2),
        item("Ran `make lint`", "command", day=3),
    )  # fmt: skip

    assert texts(commands_run(items)) == ["Ran `make lint`", "Ran `make test`"]


def test_a_full_memory_is_not_read_to_its_end():
    runs = [item(f"Ran `make {number}`", "command", hour=number % 24) for number in range(100)]

    assert len(commands_run(newest(*runs))) == LOOKED_AT


def test_to_run_it_again_is_no_news():
    items = newest(
        item("`make` failed: no rule\nWorked when run again: ok", "solution", day=1),
        item("`make` failed: no rule\nWorked as `make -k`: ok", "solution", day=2),
        item("`python3 -` failed: KeyError\nWorked after changes to a.py: ok", "solution", day=3),
        item("The clock was wrong\nWorked after changes to a.py.", "solution", day=4),
    )

    assert texts(solutions(items)) == []


def test_at_a_start_only_another_command_is_worth_knowing():
    items = newest(
        item("`make` failed: no rule\nWorked after changes to Makefile.", "solution", day=1),
        item("`pytest` failed: no module\nWorked as `uv run pytest` after changes to a.toml: 3 passed", "solution", day=2),
    )  # fmt: skip

    assert texts(solutions(items, otherwise=True)) == [
        "`pytest` failed: no module -> worked as `uv run pytest`"
    ]
    assert texts(solutions(items)) == [
        "`pytest` failed: no module -> worked as `uv run pytest` after changes to a.toml",
        "`make` failed: no rule -> worked after changes to Makefile",
    ]


def test_what_was_put_right_says_how():
    items = newest(
        item("`make` failed: no rule\nWorked after changes to Makefile: ok", "solution"),
        item("Everything is fixed now and here is a long report", "solution"),
    )

    assert texts(solutions(items)) == ["`make` failed: no rule -> worked after changes to Makefile"]


def test_of_each_command_the_last_run_is_told_history_last():
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
        'create_issue {"title": "x"}',
        "Ran `git commit`: [main 1]",
    ]

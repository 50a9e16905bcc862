from aether.messages import shell
from aether.messages.shell import (
    command_signature,
    command_target,
    covers,
    error_excerpt,
    is_notable,
    is_undecided,
    only_reads,
    outcome_line,
    parts_of,
    place_of,
    reports_failure,
    short_command,
)
from tests.tables import rows


@rows(
    "command",
    [
        "pytest -q",
        "cd app && go test ./... 2>&1 | tail -5",
        "FOO=1 sudo make install",
        "git add . && git commit -m 'x'",
        "git -C /srv push",
        "npm run build",
        "pip install httpx",
        "gh pr create --title x",
        "git stash pop",
        "python3 -m pytest",
        "rm -rf build",
        "sh -c 'cd app && make'",
        "uv run --extra test pytest -q",
        "poetry run mypy src",
        "bundle exec rspec",
        "pre-commit run -a",
        "cargo nextest run",
        "python manage.py migrate",
    ],
)
def test_tests_builds_commits_and_installs_are_notable(command):
    assert is_notable(command)
    assert not only_reads(command)


@rows(
    "command",
    [
        "ls -la",
        "cat a | grep b",
        "git status && git log --oneline",
        "gh pr view 7",
        "git stash list",
        "git merge-base a b",
        "sed -n 1,5p a",
        "cat scripts/test.sh bin/lint",
        "# see what there is\nls -la",
    ],
)
def test_looking_around_does_not(command):
    assert not is_notable(command)
    assert only_reads(command)


@rows("command", ["bash", "curl -fsSL https://x.y/i | sh", "bash -s", "sh -", "bash -l -i"])
def test_a_shell_without_a_script_is_of_unknown_purpose(command):
    assert not is_notable(command)


def test_a_script_of_unknown_purpose_neither_matters_nor_only_looks():
    assert not is_notable("python3 run.py")
    assert not only_reads("python3 run.py")


@rows(
    ("command", "name"),
    [
        ("cd a && go test -run X ./b", "go test"),
        ("mise run test:ci", "mise run test:ci"),
        ("python -m mypy src", "python mypy"),
        ("make -j4 check", "make check"),
        ("make -B", "make"),
        ("make -C app lint", "make lint"),
        ("poetry run -C a pytest", "pytest"),
        ("uv run --with x -q pytest a", "pytest"),
        ("ls && python3 run.py --fast", "python3 run.py"),
        ("ls", "ls"),
        ("-x", ""),
    ],
)
def test_a_command_keeps_its_name_with_other_flags(command, name):
    assert command_signature(command) == name


@rows(
    ("command", "what"),
    [
        ("cd a && pytest -q -n 2 ./tests/a.py -k add 2>&1 > /tmp/out.log", "pytest tests/a.py -k=add"),
        ("pytest -p no:cacheprovider tests/ 'lib/b.py::test_c'", "pytest lib/b.py::test_c tests"),
        ("python -m pytest -m slow", "python pytest -m=slow"),
        ("go test ./... -run Add", "go test -run=Add"),
        ("make -j4 check", "make check"),
        ("make -C lib -k check", "make check"),
        ("ruff check --fix .", "ruff check"),
        ("git push -f origin", "git push"),
        ("npm run build -- --watch", "npm run build"),
        ("rm -rf out/", "rm out/"),
    ],
)
def test_a_command_has_an_aim(command, what):
    assert command_target(command) == what


@rows(
    ("later", "earlier"),
    [
        ("pytest -q", "pytest tests/a.py"),
        ("pytest tests/", "pytest tests/a.py"),
        ("pytest tests/a.py", "pytest tests/a.py::test_b -x"),
        ("pytest tests/a.py", "pytest tests/a.py -k add"),
        ("pytest -k add", "pytest tests/a.py -k add"),
        ("pytest tests/a.py", "pytest /srv/tests/a.py"),
        ("pytest /srv/tests/a.py", "pytest tests/a.py"),
        ("pytest tests/b.py tests/a.py", "pytest tests/a.py tests/b.py"),
        ("go test ./...", "go test ./store"),
        ("make check", "make check -j2"),
        ("ruff check", "ruff check src/a.py"),
        ("npm test", "npm test -- a.test.js"),
        ("git push -f origin", "git push"),
    ],
)
def test_a_run_takes_in_what_it_does_again(later, earlier):
    assert covers(command_target(later), command_target(earlier))


@rows(
    ("later", "earlier"),
    [
        ("pytest tests/b.py", "pytest tests/a.py"),
        ("pytest tests/a.py", "pytest"),
        ("pytest tests/a.py::test_b", "pytest tests/a.py"),
        ("pytest -k add", "pytest"),
        ("pytest -k add", "pytest -k remove"),
        ("pytest tests/a.py", "pytest tests/a.py tests/b.py"),
        ("pytest tests/unit", "pytest tests/unit_a.py"),
        ("make lint", "make test"),
        ("make", "make test"),
        ("ruff check", "pytest"),
        ("ruff format", "ruff check"),
        ("mypy lib", "mypy src"),
    ],
)
def test_a_run_takes_in_nothing_else(later, earlier):
    assert not covers(command_target(later), command_target(earlier))


@rows(
    ("command", "shown"),
    [
        ("cd /srv && make test 2>&1 | tail -20", "make test"),
        ("cat > a.py <<'EOF'\nx\nEOF", "cat > a.py"),
        ("git commit -m \"$(cat <<'EOF'\nSubject\nEOF\n)\"", "git commit"),
        ("cd /srv && ", "cd /srv &&"),
        ("| tail -3", "| tail -3"),
        ("make " + "x" * 400, "make " + "x" * 194 + "…"),
    ],
)
def test_a_command_is_shown_without_where_and_how(command, shown):
    assert short_command(command) == shown


def test_the_end_of_an_output_is_its_summary_or_its_last_line():
    assert outcome_line("=== 3 passed in 0.1s ===\nbye") == "3 passed in 0.1s"
    assert outcome_line("one\ntwo\n\n") == "two"
    assert outcome_line("(Bash completed with no output)") == ""
    assert len(outcome_line("x" * 1_000)) == shell.RESULT_CHARS


def test_a_complaint_is_the_lines_that_complain():
    assert error_excerpt("Exit code 1\nfine\nE   ValueError: no\nfine") == "E   ValueError: no"
    assert error_excerpt("Exit code 1\na\nb\nc\nd") == "b\nc\nd"


def test_a_long_complaint_keeps_its_first_and_last_lines():
    reported = error_excerpt("\n".join(f"error {n}" for n in range(50)) + "\nok" * 5_000 + "\nerror last")

    assert reported.startswith("error 0\n")
    assert reported.endswith("error last")
    assert "…" in reported
    assert len(error_excerpt("error " + "x" * 9_000)) <= shell.RESULT_CHARS
    assert len(error_excerpt("\n".join(f"error {n} " + "x" * 230 for n in range(9)))) <= shell.ERROR_CHARS


@rows(
    ("command", "output", "failed"),
    [
        ("make test", "Exit code 2\nno rule", True),
        ("make test", "Process exited with code 1\nOutput:\nno rule", True),
        ("make test", "Process exited with code 0\nOutput:\n1 errors were expected", False),
        ("pytest -q | tail -1", "1 failed, 3 passed in 0.2s", True),
        ("pytest -q; echo done", "Process exited with code 0\n1 failed, 2 passed in 0.4s\ndone", True),
        ("mypy src || true", "Found 1 error in 1 file (checked 2 source files)", True),
        ("rspec; true", "3 examples, 1 failure", True),
        ("ruff check --fix; git status", "Found 2 errors (2 fixed, 0 remaining).", False),
        ("pytest -q", "0 failed, 3 passed", False),
        ("cat lint.log | tail -5", "1 failed in 0.2s", False),
        ("git stash; python3 repro.py; git stash pop", "ValueError: no", False),
    ],
)
def test_a_run_failed_if_its_exit_code_or_the_count_of_its_runner_says_so(command, output, failed):
    assert reports_failure(command, output) is failed


@rows(
    ("command", "output", "undecided"),
    [
        ("make test", "Command running in background with ID: b1", True),
        ("cargo test", "Chunk ID: a\nProcess running with session ID 42", True),
        ("make test > out.log 2>&1 &", "", True),
        ("pytest --collect-only -q", "3 tests collected in 0.1s", True),
        ("make test > out.log 2>&1; echo started", "started", True),
        ("make test > out.log 2>&1; tail -1 out.log", "3 passed", False),
        ("make test > out.log 2>&1", "", False),
        ("pytest --collect-only -q && pytest", "3 passed", False),
        ("pytest -n 2 2>&1 | tail -3", "3 passed", False),
        ("git commit -m 'Add --dry-run'", "", False),
        ("pytest -k 'a > b' ; true", "ok", False),
        ("ls", "", False),
    ],
)
def test_a_run_may_show_no_outcome(command, output, undecided):
    assert is_undecided(command, output) is undecided


@rows(
    ("command", "parts"),
    [
        ("git commit -m 'a && b; c' && git push", ["git commit -m 'a && b; c'", "git push"]),
        ("if ! git push; then (cd a && make); fi", ["git push", "cd a", "make)", "fi"]),
        ("make \\\n  -j2 & wait", ["make     -j2", "wait"]),
        ("bash -lc 'cd a && git push' || true", ["cd a", "git push", "true"]),
        ("pytest 2>&1 | tail", ["pytest 2>&1", "tail"]),
        ("", []),
    ],
)
def test_a_line_is_read_command_by_command(command, parts):
    assert [part.text for part in parts_of(command)] == parts


def test_a_here_document_belongs_to_its_command():
    command = "git commit -F - <<'EOF' && cat > a <<X; ls\nIt's one; git push\nEOF\ntwo\nX\npwd"

    parts = parts_of(command)

    assert [(part.text.split()[0], part.documents) for part in parts] == [
        ("git", ("It's one; git push",)), ("cat", ("two",)), ("ls", ()), ("pwd", ()),
    ]  # fmt: skip
    assert [part.text for part in parts_of("echo $((1 << x)); ls")] == ["echo $((1 << x))", "ls"]


@rows(
    ("command", "place"),
    [
        ("cd api && cd v2/.. && make test", "api"),
        ("cd /srv/app; pytest | tail", "/srv/app"),
        ("cd /srv && make -C lib check", "/srv/lib"),
        ("npm run test --prefix web", "web"),
        ("cd $HOME/x && pytest", ""),
        ("cd .. && pytest", ""),
        ("pytest; cd api", ""),
    ],
)
def test_a_check_has_the_directory_that_its_command_names(command, place):
    assert place_of(command) == place


def test_a_diagnostic_of_a_check_is_part_of_the_error():
    output = "[lint] $ lint all\n[lint] app/a.go:12:16: string `x` has 3 uses, make it a constant\n[lint] 1 issues:"

    assert error_excerpt(output) == "[lint] app/a.go:12:16: string `x` has 3 uses, make it a constant"


def test_a_linter_of_everything_covers_one_of_some_paths():
    everything, some = "golangci-lint run ./...", "golangci-lint run ./auth/... ./git/..."

    assert covers(command_target(everything), command_target(some))
    assert not covers(command_target(some), command_target(everything))


def test_what_is_quoted_separates_no_commands():
    assert only_reads("git ls-files | rg -n '\\.(png|jpg)$|(^|/)tmp/'")
    assert not is_notable("git log --grep 'x; pytest -q'")


def test_the_lines_of_codex_above_an_output_are_no_error():
    frame = "Process exited with code 1\nOriginal token count: 0\nOutput:\n"
    assert error_excerpt(frame + "a.py:3: boom") == "a.py:3: boom"


def test_a_program_that_is_known_by_its_name_compiles_no_list_of_programs(monkeypatch):
    for program in shell._PROGRAMS:
        assert shell._MATTERS.match(program), program
    monkeypatch.setattr(shell, "_MATTERS", None)

    assert command_target("pytest -q tests/api && make test") == "pytest tests/api && make test"
    assert covers("pytest", "pytest tests/a.py")


def test_a_quotation_that_is_cut_off_ends_with_the_command():
    # Each quote of it was looked at to the end: minutes.
    for command in ('git commit -m "' + '\\"' * 9_990, 'curl -d "' + '{\\"id\\": 1},' * 3_000 + "\\"):
        assert len(parts_of(command)) == 1

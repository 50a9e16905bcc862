from aether.compaction.calls import calls
from aether.compaction.failures import COMPLAINT_CHARS, failures_of, merged_failures
from aether.compaction.shapes import ErrorFact
from tests.compaction.conversations import bash, conversation, tool
from tests.tables import rows


def failures(*parts, removed=lambda at: True, before=()):
    return failures_of(calls(conversation(*parts)), removed=removed, before=before)


def test_a_command_that_failed_is_open_with_what_it_complained_of():
    assert failures(bash("cd app && pytest -x a.py", "Exit code 1\nE   KeyError: 'sid'", failed=True)) == (
        ErrorFact("$ pytest -x a.py\nE   KeyError: 'sid'", open=True),
    )


def test_it_is_closed_when_the_same_command_works_with_other_flags():
    (error,) = failures(bash("pytest -x a.py", "KeyError: 'a'", failed=True), bash("pytest b.py", "1 passed"))

    assert error.text.startswith("$ pytest -x a.py\n")
    assert not error.open


def test_another_command_closes_nothing():
    (error,) = failures(bash("pytest", "KeyError: 'a'", failed=True), bash("make build", "ok"))

    assert error.open


def test_it_is_closed_by_what_stays_too_but_only_what_is_removed_opens_it():
    parts = (
        bash("make", "error: a", failed=True),
        bash("make", "fine"),
        bash("tox", "error: b", failed=True),
    )

    assert failures(*parts, removed=lambda at: at < 2) == (ErrorFact("$ make\nerror: a", open=False),)


def test_what_failed_before_and_works_now_is_told_as_closed():
    before = (ErrorFact("$ make -j\nerror: a", open=True), ErrorFact("$ tox\nerror", open=True))

    assert failures(bash("make", "fine"), before=before) == (ErrorFact("$ make -j\nerror: a", open=False),)


def test_a_failure_that_fails_again_is_listed_once_as_it_failed_last():
    (error,) = failures(bash("make", "error: a", failed=True), bash("make", "error: b", failed=True))

    assert error.text == "$ make\nerror: b"


def test_tools_fail_by_their_name_and_what_they_are_about():
    parts = (
        tool("WebFetch", "status 404", failed=True, url="https://x.org/a"),
        tool("apply_patch", "no match", failed=True, input="*** Begin Patch\n*** Update File: p.py\n+x\n*** End Patch"),
        tool("cancel_order", "", failed=True),
        tool("WebFetch", "text", url="https://x.org/b"),
    )  # fmt: skip

    assert [(error.text, error.open) for error in failures(*parts)] == [
        ("WebFetch https://x.org/a\nstatus 404", True),
        ("apply_patch p.py\nno match", True),
        ("cancel_order", True),
    ]


@rows(
    "part",
    [
        bash("grep -rn x src", "", failed=True),
        bash("make", None),
        tool("Edit", "<tool_use_error>no</tool_use_error>", failed=True, file_path="a"),
        tool("Bash", "The user doesn't want to proceed", failed=True, command="rm -rf x"),
    ],
)
def test_looking_around_slips_and_refusals_are_no_failures(part):
    assert failures(part) == ()


def test_a_long_complaint_is_shortened():
    (error,) = failures(bash("make", "\n".join(f"error: {n} {'x' * 200}" for n in range(9)), failed=True))

    assert len(error.text) == len("$ make\n") + COMPLAINT_CHARS
    assert error.text.endswith("…")


def test_merging_takes_the_newer_word_on_the_same_failure():
    older = (ErrorFact("$ make -j2\nerror: a", open=True), ErrorFact("Edit a.py\nno match", open=True))
    newer = (ErrorFact("$ make -j2\nerror: a", open=False), ErrorFact("$ tox\nb", open=True))

    assert merged_failures(older, newer) == (older[1], *newer)


@rows(
    "output",
    [
        "FAILED tests/test_3.py::test_x - AssertionError: expected 3 got 4\n1 failed, 3 passed in 0.4s",
        "E   assert 3 == 4\n=== 1 failed in 0.3s ===",
        "bash: foo: command not found",
        "npm ERR! missing script: test",
        "--- FAIL: TestAdd (0.00s)\nFAIL",
        "test result: FAILED. 3 passed; 1 failed",
    ],
)
def test_what_says_that_it_failed_has_failed_without_a_flag(output):
    (error,) = failures(bash("pytest -q", output))

    assert error.open
    assert failures(bash("pytest -q", output), bash("pytest -q", "4 passed in 0.2s"))[0].open is False


@rows("output", ["4 passed in 0.2s", "0 failed, 3 passed", "0 errors", "Fixed 1 error in a.py"])
def test_what_says_that_it_worked_has_not_failed(output):
    assert failures(bash("pytest -q", output)) == ()


def test_what_a_file_says_of_failures_is_none():
    assert failures(bash("cat build.log", "1 failed in 0.3s")) == ()


def test_a_search_that_finds_nothing_is_no_failure_and_one_that_breaks_is():
    assert failures(bash("rg -n 'a|b' src", "Exit code 1", failed=True)) == ()
    assert failures(bash("rg -n 'a|b' src", "Exit code 2\nrg: src: No such file", failed=True))

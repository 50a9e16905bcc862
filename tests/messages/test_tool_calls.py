import hashlib
import json

import pytest

from aether.messages import tool_calls
from aether.messages.convert import read
from aether.messages.tool_calls import (
    COMPLAINT_CHARS,
    ErrorFact,
    FileFact,
    answers_in,
    calls_of,
    failures_of,
    file_changes,
    files_of,
    merged_failures,
    merged_files,
    new_work_tree,
    place_given,
    record_refusal,
    shell_command,
    short_hash,
    work_tree_lines,
)
from tests.compaction.conversations import bash, conversation, model, tool
from tests.tables import rows

PATCH = """*** Begin Patch
*** Update File: a.go
@@
-func Old() {}
+func New() {}
*** Add File: b.go
+package b
*** Delete File: c.go
*** End Patch
trailing
"""


def record_in_work_tree(tree, paths, command, output, **more):
    """Record a call that did one thing to all its files: `paths` by what it did, or those that it changed."""
    changes = paths if isinstance(paths, dict) else dict.fromkeys(paths, "changed")
    return tool_calls.record_in_work_tree(tree, changes, command, output, **more)


def brief(arguments, command=""):
    return [(change.path, change.action) for change in file_changes(arguments, command)]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"file_path": "a.py", "content": "x = 1\n"}, [("a.py", "created")]),
        ({"file_path": "a.py", "old_string": "x", "new_string": "y"}, [("a.py", "changed")]),
        ({"path": "a.py", "command": "str_replace", "old_str": "x", "new_str": "y"}, [("a.py", "changed")]),
        ({"path": "a.py", "command": "create", "file_text": "x"}, [("a.py", "created")]),
        ({"path": "a.py", "command": "view", "content": "x"}, []),
        ({"file_path": "a.py", "edits": [{"old_string": "x", "new_string": "y"}, 7]}, [("a.py", "changed")]),
        ({"file_path": "a.py", "offset": 3}, []),
        ({"file_path": 7, "content": "x"}, []),
        ({"input": PATCH}, [("a.go", "changed"), ("b.go", "created"), ("c.go", "deleted")]),
        ({"input": "*** Begin Patch\nnothing"}, []),
        ({}, []),
    ],
)
def test_edits_are_known_by_their_arguments(arguments, found):
    assert brief(arguments) == found


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("cat > a.py <<'EOF'\nx\nEOF", [("a.py", "created")]),
        ("echo x; cat >> notes.md <<EOF\nx\nEOF", [("notes.md", "changed")]),
        ("cat <<EOF\nx\nEOF", []),
        ("sed -i 's/a/b/' a.py && sed -i -e 's/c/d/' b.py", [("a.py", "changed"), ("b.py", "changed")]),
        (
            "apply_patch <<'EOF'\n" + PATCH + "EOF",
            [("a.go", "changed"), ("b.go", "created"), ("c.go", "deleted")],
        ),
        ("ls", []),
    ],
)
def test_files_written_by_the_shell_count_as_well(command, found):
    assert brief({"command": command}, command) == found


def test_a_change_names_what_is_new_in_it():
    [change] = file_changes(
        {"path": "a.py", "old_str": "def a(): ...", "new_str": "def a(): ...\n\nclass B:\n"}
    )
    assert change.names == ("B",)
    [change] = file_changes({"path": "a.md", "old_str": "one\n", "new_str": "one\n" + "two " * 60})
    assert change.first.startswith("two two")
    assert change.first.endswith("…")
    [change] = file_changes({"path": "a.md", "old_str": "one", "new_str": "one"})
    assert (change.names, change.first) == ((), "")


def test_text_that_aether_added_is_not_new():
    [change] = file_changes({"path": "a.md", "content": "<aether-memory>def secret</aether-memory>"})

    assert "secret" not in str(change)


def test_each_call_is_found_with_its_result():
    found = calls_of(
        conversation(bash("make", "done"), model("Well."), tool("Read", "text", file_path="a.py"))
    )

    assert [(call.at, call.tool, call.command) for call in found] == [(0, "Bash", "make"), (3, "Read", "")]
    assert [call.result.text for call in found] == ["done", "text"]


def test_a_call_may_have_no_result():
    assert calls_of(conversation(bash("make", None)))[0].result is None


def test_a_result_answers_the_nearest_open_call_of_its_id():
    raws = [
        {"role": "assistant", "content": None, "tool_calls": [_call("x", "one")]},
        {"role": "tool", "tool_call_id": "x", "content": "1"},
        {"role": "assistant", "content": None, "tool_calls": [_call("x", "two")]},
        {"role": "tool", "tool_call_id": "x", "content": "2"},
        {"role": "tool", "tool_call_id": "nobody", "content": "3"},
    ]

    found = calls_of(read(raws, "openai"))

    assert [(call.tool, call.result.text) for call in found] == [("one", "1"), ("two", "2")]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"command": " make test "}, "make test"),
        ({"cmd": ["ls", "-l"]}, "ls -l"),
        ({"command": ["/bin/bash", "-lc", "make"]}, "make"),
        ({"command": "str_replace", "path": "a"}, ""),
        ({"command": "", "script": "x.sh"}, "x.sh"),
        ({"command": [1, 2]}, ""),
        ({}, ""),
    ],
)
def test_a_command_is_found_in_the_arguments(arguments, expected):
    assert shell_command(arguments) == expected


def _call(call_id, name):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}


def files(*parts):
    return files_of(calls_of(conversation(*parts)))


def paths(*parts):
    return [(fact.path, fact.action) for fact in files(*parts)]


def test_a_whole_file_that_was_written_has_the_hash_that_sha256sum_would_say():
    (fact,) = files(tool("Write", file_path="a.py", content="x = 1\n"))

    assert fact == ("a.py", "created", 1, hashlib.sha256(b"x = 1\n").hexdigest()[:12])


def test_a_part_that_is_changed_takes_the_hash_away_and_leaves_the_file_created():
    (fact,) = files(
        tool("Write", file_path="a.py", content="x = 1\n"),
        tool("Edit", file_path="a.py", old_string="1", new_string="2"),
    )

    assert fact == ("a.py", "created", 2, "")


def test_a_file_that_was_read_and_then_changed_is_listed_as_changed():
    (fact,) = files(
        tool("Read", "text", file_path="a.py"), tool("Edit", file_path="a.py", old_string="1", new_string="2")
    )

    assert fact == ("a.py", "changed", 1, "")


def test_a_file_that_is_written_whole_after_it_was_read_was_changed():
    assert paths(tool("Read", "text", file_path="a.py"), tool("Write", file_path="a.py", content="b")) == [
        ("a.py", "changed")
    ]


def test_reading_a_changed_file_again_only_updates_its_hash():
    (fact,) = files(
        tool("Edit", file_path="a.py", old_string="1", new_string="2"), tool("Read", "all", file_path="a.py")
    )

    assert fact == ("a.py", "changed", 1, short_hash("all"))


def test_a_deleted_file_that_is_written_again_was_created():
    assert paths(bash("rm src/a.py"), tool("Write", file_path="src/a.py", content="b")) == [
        ("src/a.py", "created")
    ]


@pytest.mark.parametrize(
    "part",
    [
        tool("Read", "     1→x = 1", file_path="a.py"),
        tool("Read", "x = 1", file_path="a.py", offset=3),
        tool("Read", "", file_path="a.py"),
    ],
)
def test_a_file_that_was_read_in_part_or_with_line_numbers_has_no_hash(part):
    (fact,) = files(part)

    assert fact == ("a.py", "read", 1, "")


@pytest.mark.parametrize(
    "part",
    [
        tool("Edit", "String not found", failed=True, file_path="a.py", old_string="1", new_string="2"),
        tool("Write", None, file_path="a.py", content="x"),
        tool("Grep", "a.py:1", path="a.py", pattern="x"),
        tool("list_files", "a.py", path="src"),
        tool("read_dir", "a.py", path="src/"),
        tool("get_weather", "sunny", city="Rome"),
        bash("echo hi > /dev/null"),
        bash("make 2>&1 | cat"),
        bash("rm -rf build"),
        bash("mv a.py"),
        bash("git log --grep 'drop; rm a.py'"),
    ],
)
def test_failed_unanswered_and_fileless_calls_are_not_listed(part):
    assert files(part) == ()


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (tool("str_replace_editor", "text", command="view", path="b.py"), [("b.py", "read")]),
        (tool("str_replace_editor", command="create", path="b.py", file_text="x"), [("b.py", "created")]),
        (tool("open_file", "text", path="b.py"), [("b.py", "read")]),
        (bash("cat docs/x.md | head"), [("docs/x.md", "read")]),
        (bash("sed -n 1,20p src/a.py"), [("src/a.py", "read")]),
        (bash("cd app && head -5 'src/a.py' b.txt"), [("src/a.py", "read"), ("b.txt", "read")]),
        (bash("git rm src/old.py && git mv src/a.py src/b.py"),
         [("src/old.py", "deleted"), ("src/a.py", "deleted"), ("src/b.py", "created")]),
        (bash("rm notes.txt"), [("notes.txt", "deleted")]),
        (bash("mv a.py b.py"), [("a.py", "deleted"), ("b.py", "created")]),
        (bash("python gen.py > out.json"), [("out.json", "created")]),
        (bash("echo more >> log.txt"), [("log.txt", "changed")]),
        (bash("cat > new.py <<'EOF'\nx = 1\nEOF"), [("new.py", "created")]),
        (bash("sed -i 's/a/b/' conf.ini"), [("conf.ini", "changed")]),
        (tool("apply_patch", input="*** Begin Patch\n*** Update File: p.py\n+x\n*** Delete File: q.py\n*** End Patch"),
         [("p.py", "changed"), ("q.py", "deleted")]),
    ],
)  # fmt: skip
def test_files_are_found_in_editors_patches_and_the_shell(part, expected):
    assert paths(part) == expected


def test_a_relative_path_is_the_one_absolute_path_that_ends_in_it():
    whole, part = FileFact("/srv/app/src/a.py", "read", 1), FileFact("src/a.py", "changed", 2)
    other = FileFact("/srv/old/src/a.py", "read", 1)

    assert merged_files([whole], [part]) == (FileFact("/srv/app/src/a.py", "changed", 2),)
    assert merged_files([whole, other], [part]) == (whole, other, part)


def test_merging_counts_on_and_puts_what_was_touched_last_at_the_end():
    older = (FileFact("a", "changed", 2), FileFact("b", "read", 1), FileFact("c", "read", 4))
    newer = (FileFact("a", "changed", 1), FileFact("b", "deleted", 1), FileFact("c", "read", 1, "0f"))

    assert merged_files(older, newer) == (
        FileFact("a", "changed", 3),
        FileFact("b", "deleted", 1),
        FileFact("c", "read", 5, "0f"),
    )


def failures(*parts, removed=lambda at: True, before=()):
    return failures_of(calls_of(conversation(*parts)), removed=removed, before=before)


def test_a_command_that_failed_is_open_with_what_it_complained_of():
    assert failures(bash("cd app && pytest -x a.py", "Exit code 1\nE   KeyError: 'sid'", failed=True)) == (
        ErrorFact("$ pytest -x a.py\nE   KeyError: 'sid'", open=True),
    )


def test_it_is_closed_when_the_same_command_works_with_other_flags():
    failed = bash("pytest -x a.py", "KeyError: 'a'", failed=True)

    for closes in ("pytest a.py", "pytest -q -n 2", "pytest ."):
        (error,) = failures(failed, bash(closes, "1 passed"))
        assert error.text.startswith("$ pytest -x a.py\n")
        assert not error.open, closes


def test_the_same_program_on_another_target_closes_nothing():
    (error,) = failures(bash("pytest -x a.py", "KeyError: 'a'", failed=True), bash("pytest b.py", "1 passed"))

    assert error.open


def test_a_wider_run_that_works_later_closes_an_error_of_the_summary_before():
    older = (ErrorFact("$ pytest a.py\nKeyError", open=True), ErrorFact("$ pytest b.py\nKeyError", open=True))

    newer = (ErrorFact("$ pytest\n1 failed", open=False),)
    assert merged_failures(older, newer) == newer
    assert merged_failures(older, (newer[0]._replace(open=True),)) == (*older, newer[0]._replace(open=True))


def test_deleted_and_moved_files_are_changes_but_printed_ones_are_not():
    command = "cd app && rm -f old.py && git mv a.py b.py; make docs > out.txt 2>/dev/null"

    assert [(change.path, change.action) for change in file_changes({}, command)] == [
        ("app/old.py", "deleted"), ("app/a.py", "deleted"), ("app/b.py", "created"),
    ]  # fmt: skip


def test_a_script_that_calls_tools_is_read_as_its_patches_and_commands():
    patch = json.dumps(
        '*** Begin Patch\n*** Update File: /p/a.go\n@@\n-\tx := "1"\n+func Two() {}\n*** End Patch\n'
    )
    script = (
        f"const patch = {patch};\ntext(await tools.apply_patch(patch));\n"
        'const a = await tools.exec_command({cmd:"rm b.go && go test ./x -run \'A\'","workdir":"/p","yield_time_ms":10});\n'
        "const b = await tools.exec_command({'workdir': '/p', cmd: 'git commit -m \"it\\'s\"'});\ntext(JSON.stringify(b))"
    )
    arguments = {"input": script}
    command = shell_command(arguments)

    assert command == """rm b.go && go test ./x -run 'A'; git commit -m "it's\""""
    assert [(one.path, one.action, one.names) for one in file_changes(arguments, command)] == [
        ("b.go", "deleted", ()), ("/p/a.go", "changed", ("Two",)),
    ]  # fmt: skip
    assert place_given(arguments) == "/p"
    # Where a command or a directory is not written out, nothing is known of it.
    unknown = {
        "input": "// tools.exec_command({cmd: 'old'})\nawait tools.exec_command({cmd: made, workdir: `${home}/p`})"
    }
    assert (shell_command(unknown), place_given(unknown), [*file_changes(unknown)]) == ("", "", [])


@rows(
    ("literal", "text"),
    [
        (r'"it\'s \"x\"\n"', 'it\'s "x"\n'), (r"'say \"x\"'", 'say "x"'), (r"`cost $5, \${HOME}`", "cost $5, ${HOME}"),
        (r"String.raw`a\d`", r"a\d"), (r'"\u00e9\x41"', "éA"), (r'"\ud83d\ude00 \ud83d"', "😀 \ufffd"), ('"no end', ""), ("`${made}`", ""),
    ],
)  # fmt: skip
def test_a_string_of_a_script_is_read_as_javascript_reads_it(literal, text):
    assert shell_command({"input": f"await tools.exec_command({{cmd: {literal}}})"}).strip() == text.strip()


def test_a_long_script_without_an_end_is_read_in_time():
    script = {"input": "tools.apply_patch(" + '\\"' * 40_000 + "`" * 40_000}

    assert [*file_changes(script, shell_command(script))] == []


def test_files_are_moved_also_behind_a_here_document():
    command = "cat > /tmp/t.go <<'EOF'\nrm kept.go\nEOF\ncp /tmp/t.go a/t.go && go test ./a; rm a/t.go"

    assert [(change.path, change.action) for change in file_changes({}, command)] == [
        ("/tmp/t.go", "created"), ("a/t.go", "created"), ("a/t.go", "deleted"),
    ]  # fmt: skip


def test_a_file_that_leaves_only_the_index_and_one_of_an_unknown_directory_are_no_changes():
    for command in ("git rm --cached config.toml", "git rm --dry-run a.py", "cd $DIR && rm a.py"):
        assert not [*file_changes({}, command)], command
    assert [one.path for one in file_changes({}, "cd /tmp/build && rm a.py && rm /c.py")] == [
        "/tmp/build/a.py",
        "/c.py",
    ]
    assert [one.path for one in file_changes({}, "cd ~/b && rm a.py && rm ~/c.py")] == ["~/b/a.py", "~/c.py"]


def test_a_file_that_was_overwritten_was_changed():
    def written(answer):
        return paths(tool("Write", answer, file_path="a.py", content="x = 1"))

    assert written("File created successfully at: a.py") == [("a.py", "created")]
    assert written("The file a.py has been updated successfully.") == [("a.py", "changed")]


def test_a_check_that_still_fails_or_says_nothing_closes_nothing():
    for command, output in (
        ("mypy src || true", "Found 1 error in 1 file (checked 2 source files)"),
        ("mypy --help", "usage"),
        ("mypy src", "Process running with session ID 3"),
        ("cd web && mypy src", "Success: no issues"),
    ):
        failed = bash("cd api && mypy src", "Found 1 error in 1 file (checked 2 source files)")
        assert any(error.open for error in failures(failed, bash(command, output))), command


def test_what_a_person_interrupted_did_not_fail():
    stopped = "Exit code 137\n[Request interrupted by user for tool use]\n--- PASS: TestGet\nPASS"

    assert failures(bash("go test ./...", stopped, failed=True)) == ()
    assert len(failures(bash("go test ./...", "Exit code 137\nKilled", failed=True))) == 1


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


def test_a_failure_that_works_now_is_closed():
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
def test_output_that_reports_a_failure_needs_no_flag(output):
    (error,) = failures(bash("pytest -q", output))

    assert error.open
    assert failures(bash("pytest -q", output), bash("pytest -q", "4 passed in 0.2s"))[0].open is False


@pytest.mark.parametrize(
    "output", ["4 passed in 0.2s", "0 failed, 3 passed", "0 errors", "Fixed 1 error in a.py"]
)
def test_output_that_reports_success_is_not_a_failure(output):
    assert failures(bash("pytest -q", output)) == ()


def test_failures_in_the_text_of_a_file_do_not_count():
    assert failures(bash("cat build.log", "1 failed in 0.3s")) == ()


def test_looking_around_is_no_failure():
    assert failures(bash("rg -n 'a|b' src", "Exit code 1", failed=True)) == ()
    assert failures(bash("rg -n 'a|b' src", "Exit code 2\nrg: src: No such file", failed=True)) == ()
    assert failures(bash("awk 'NR > 2 && /x/ {print; n++}' a.py | head", "awk: no a.py", failed=True)) == ()
    assert failures(bash("rg x src | python3 a.py", "Exit code 1\nno a.py", failed=True))


@rows(
    ("calls", "lines"),
    [
        ([], []),
        (
            [(["src/a.py"], "", ""), (["b.py"], "", "")],
            [
                "Uncommitted, as of the last call: a.py, b.py.",
                "Nothing was committed in this conversation.",
                "No build or test is known to have passed since the last edit.",
            ],
        ),
        (
            [(["a.py"], "", ""), ([], "make test", "ok"), ([], "git commit -am x", "[main 1a2b3c4] x")],
            [
                "Nothing was pushed in this conversation.",
                "The branch is main.",
                "Commits, the newest first: 1a2b3c4 x.",
            ],
        ),
        (
            [([], "git commit -am 'push it'", "[main 1a2b3c4] x"), ([], "git -C /p push", "")],
            [
                "The last commit, 1a2b3c4, was pushed.",
                "The branch is main.",
                "Commits, the newest first: 1a2b3c4 x.",
            ],
        ),
        (
            [
                (
                    [],
                    "git commit -m one && git push",
                    "[x 1a2b3c4] Read quoted fields\n   0a1b2c3..1a2b3c4  x -> x",
                ),
                ([], "git pull --rebase", "Already up to date."),
            ],
            [
                "The last commit, 1a2b3c4, was pushed.",
                "The branch is x.",
                "Commits, the newest first: 1a2b3c4 Read quoted fields.",
            ],
        ),
        (
            [
                (
                    [],
                    "git commit -m one && git push",
                    "[x 1a2b3c4] Read quoted fields\n   0a1b2c3..1a2b3c4  x -> x",
                ),
                ([], "git rebase main", "Successfully rebased and updated refs/heads/x."),
            ],
            [
                "The branch is x, rebased on main.",
                "Commits, the newest first: Read quoted fields.",
            ],
        ),
        (
            [
                (
                    [],
                    "git commit -m one && git push",
                    "[x 1a2b3c4] Read quoted fields\n   0a1b2c3..1a2b3c4  x -> x",
                ),
                ([], "git pull --rebase", "Updating 1a2b3c4..2b3c4d5\nFast-forward\n a.py | 2 +-"),
                ([], "git push origin y", "   0a1b2c3..7a7a7a7  y -> y"),
            ],
            [
                "The last commit, 1a2b3c4, was pushed.",
                "The branch is x.",
                "Commits, the newest first: 1a2b3c4 Read quoted fields.",
            ],
        ),
        (
            [
                ([], "git commit -m one", "[x 1a2b3c4] Read quoted fields"),
                (
                    [],
                    "git merge --no-ff -m 'Take y over' y",
                    "Merge made by the 'ort' strategy.\n a.py | 2 +-",
                ),
            ],
            [
                "Nothing was pushed in this conversation.",
                "The branch is x.",
                "Commits, the newest first: Take y over; 1a2b3c4 Read quoted fields.",
            ],
        ),
        (
            [
                (["a.py"], "make test", "ok"),
                ([], "git stash", "Saved"),
                ([], "git stash pop && make test; git stash", "ok"),
            ],
            [],
        ),
        (
            [
                ([], "git commit -m one", "[x 1a2b3c4] Read quoted fields"),
                ([], "git merge --no-edit origin/y", "Merge made by the 'ort' strategy.\n a.py | 2 +-"),
            ],
            [
                "Nothing was pushed in this conversation.",
                "The branch is x.",
                "Commits, the newest first: Merge origin/y; 1a2b3c4 Read quoted fields.",
            ],
        ),
        (
            [
                ([], "git commit -m one", "[x 1a2b3c4] Read quoted fields"),
                ([], "git merge origin/y", "Merge made by the 'ort' strategy.\n a.py | 2 +-"),
                ([], "git push", "To example.com:o/r\n   0a1b2c3..2b3c4d5  x -> x"),
            ],
            [
                "The last commit, 2b3c4d5, was pushed.",
                "The branch is x.",
                "Commits, the newest first: 2b3c4d5 Merge origin/y; 1a2b3c4 Read quoted fields.",
            ],
        ),
        (
            [
                ([], "git commit -m one", "[main 1a2b3c4] Read quoted fields\n 1 file changed"),
                ([], "git commit -m two", "[main 2b3c4d5] Close the file"),
                ([], "git commit --amend --no-edit", "[main 3c4d5e6] Close the file twice"),
            ],
            [
                "Nothing was pushed in this conversation.",
                "The branch is main.",
                "Commits, the newest first: 3c4d5e6 Close the file twice; 1a2b3c4 Read quoted fields.",
            ],
        ),
        (
            [
                ([], "git commit -m one", "[main 1a2b3c4] Read quoted fields"),
                (
                    [],
                    "git commit -m two && git commit --amend -m 'Close the file'",
                    "[main 2b3c4d5] Close it\n[main 3c4d5e6] Close the file",
                ),
                ([], "git commit -q --amend -m 'Close the file twice'", ""),
            ],
            [
                "Nothing was pushed in this conversation.",
                "The branch is main.",
                "Commits, the newest first: Close the file twice; 1a2b3c4 Read quoted fields.",
            ],
        ),
        (
            [
                ([], "git commit -m one", "[x 1a2b3c4] Read quoted fields"),
                ([], "git rebase main", "Successfully rebased and updated refs/heads/x."),
            ],
            [
                "Nothing was pushed in this conversation.",
                "The branch is x, rebased on main.",
                "Commits, the newest first: Read quoted fields.",
            ],
        ),
        (
            [
                ([], "git commit -m one", "[main 1a2b3c4] Read quoted fields"),
                ([], "git reset --hard HEAD~1", "HEAD is now at 0a1b2c3 Start"),
            ],
            ["Nothing was pushed in this conversation.", "The branch is main."],
        ),
        (
            [
                (["a.py"], "", ""),
                ([], "make test", "ok"),
                ([], "git status --short", " M docs/b.md\n?? build/\nR  old.py -> src/new.py\n"),
            ],
            [
                "Uncommitted, as of the last call: b.md, build, new.py.",
                "Nothing was committed in this conversation.",
            ],
        ),
        (
            [
                (
                    [],
                    "git fetch && git status",
                    "On branch main\nChanges not staged for commit:\n  (use git add)\n\tmodified:   src/a.py\n\nUntracked files:\n\tnotes/\n",
                )
            ],
            [
                "Uncommitted, as of the last call: a.py, notes.",
                "Nothing was committed in this conversation.",
                "The branch is main.",
            ],
        ),
        (
            [
                (["a.py"], "", ""),
                ([], "make test", "ok"),
                ([], "git status", "nothing to commit, working tree clean"),
            ],
            ["No file was uncommitted at the last `git status`."],
        ),
        (
            [
                (["a.py"], "", ""),
                ([], "make test", "ok"),
                ([], "git status --short | grep docs", " M docs/b.md"),
            ],
            [
                "Uncommitted, as of the last call: a.py.",
                "Nothing was committed in this conversation.",
            ],
        ),
        ([(["a.py"], "", ""), ([], "make test", "ok"), ([], "git checkout -- a.py", "")], []),
        ([([], "git status -sb", "## main...origin/main [ahead 1]")], []),
        (
            [([], "find . -name '*.go' -exec sed -i 's|a/b|c/b|' {} +", ""), ([], "go test ./...", "ok")],
            ["Nothing was committed in this conversation."],
        ),
        ([([], "sed -i s/a/b/ a.go", ""), ([], "go test ./...", "ok"), ([], "git checkout -- .", "")], []),
        ([([], "sed -n 1,9p a.go", "")], []),
        (
            [
                (
                    [],
                    "git fetch -q && git rebase origin/main",
                    "Successfully rebased and updated refs/heads/fix.",
                ),
                (["a.py"], "", ""),
                ([], "make test && git status -sb", "## fix...origin/fix\n M a.py"),
            ],
            [
                "Uncommitted, as of the last call: a.py.",
                "Nothing was committed in this conversation.",
                "The branch is fix, rebased on origin/main.",
            ],
        ),
        (
            [
                ([], "git checkout -b fix/log", "Switched to a new branch 'fix/log'"),
                ([], "cat notes", "On branch other"),
                ([], "git status -sb", "## fix/log.2...origin/fix/log.2 [ahead 1]\n M a.py"),
            ],
            [
                "Uncommitted, as of the last call: a.py.",
                "Nothing was committed in this conversation.",
                "The branch is fix/log.2.",
            ],
        ),
        (
            [
                (["a.py"], "", ""),
                (
                    [],
                    "git add -A && git status --short && git commit -q -m 'Add retries' && git log --oneline -1",
                    "M  a.py\n617fc5e (HEAD -> main) Add retries",
                ),
                ([], "git push -q", ""),
            ],
            [
                "The last commit, 617fc5e, was pushed.",
                "No build or test is known to have passed since the last edit.",
                "Commits, the newest first: 617fc5e Add retries.",
            ],
        ),
        (
            [(["a.py"], "", ""), ([], "git add a.py && git commit -qm x && git status -s", " M b.py")],
            [
                "Uncommitted, as of the last call: b.py.",
                "Nothing was pushed in this conversation.",
                "No build or test is known to have passed since the last edit.",
            ],
        ),
        (
            [
                (["a.py"], "", ""),
                ([], "git commit -qm x; git log --oneline -1", "nothing to commit\n617fc5e Start"),
                ([], "make test", "ok"),
            ],
            [
                "Uncommitted, as of the last call: a.py.",
                "Nothing was committed in this conversation.",
            ],
        ),
        (  # A rebase that goes on after a conflict makes commits.
            [
                (
                    [],
                    "git add go.mod && git rebase --continue",
                    "Successfully rebased and updated refs/heads/fix.",
                ),
                (["a.py"], "", ""),
                ([], "make test", "ok"),
            ],
            ["Uncommitted, as of the last call: a.py."],
        ),
    ],
)
def test_the_calls_show_what_is_uncommitted_unpushed_and_unchecked(calls, lines):
    tree = new_work_tree()
    for paths, command, output in calls:
        record_in_work_tree(tree, paths, command, output)

    assert [*work_tree_lines(tree, whole=True)] == lines


@rows(
    "command, output, commits",
    [
        ("git commit -qm 'Add a' -m 'It is new.'", "", ["Add a"]),
        ("git commit -q -m \"$(cat <<'EOF'\nAdd a\n\nIt is new.\nEOF\n)\"", "", ["Add a"]),
        ("git commit --quiet -F - <<'EOF'\nAdd a\nEOF", "", ["Add a"]),
        ("git commit -qm 'Add a' && git log --oneline -1", "1a2b3c4 Add a", ["1a2b3c4 Add a"]),
        ("git commit -qm 'Add a'", "nothing to commit, working tree clean", None),
        ("git commit -m 'Add a'", "", None),
        ("git commit -mquick", "", None),
        ("git commit -q -F message.txt", "", None),
        ("git commit --allow-empty-message -m ''", "[main 1a2b3c4] ", ["1a2b3c4"]),
    ],
)
def test_a_quiet_commit_counts_by_its_subject(command, output, commits):
    tree = new_work_tree()
    record_in_work_tree(tree, ["a.py"], "", "")

    record_in_work_tree(tree, [], command, output)

    assert tree.get("commits") == commits


@rows(
    "command, output, branch",
    [
        ("git checkout -q -b fix/a && git commit -qm x", "", "fix/a"),
        ("git switch -q --create fix/a", "", "fix/a"),
        ("git checkout -b fix/a; git status", "fatal: a branch named 'fix/a' already exists", None),
        ("git checkout -q fix/a", "", None),
        ("git checkout -qb main; git checkout -q fix/a", "", None),
        ("git checkout -b main; git checkout -q main", "", "main"),
        ("git checkout -b main; git checkout -q a.py", "", "main"),
        ("git checkout -b main; git switch -q fix/a", "", "fix/a"),
    ],
)
def test_a_new_branch_is_known_though_git_is_quiet(command, output, branch):
    tree = new_work_tree()

    record_in_work_tree(tree, [], command, output)

    assert tree.get("branch") == branch


def test_a_file_that_was_made_and_deleted_again_is_not_uncommitted():
    tree = new_work_tree()
    record_in_work_tree(tree, {"/src/app/debug.py": "created", "/src/app/a.py": "changed"}, "", "")
    record_in_work_tree(tree, {"debug.py": "deleted", "old.py": "deleted"}, "rm debug.py old.py", "")
    assert tree["edited"] == ["/src/app/a.py", "old.py"]

    record_in_work_tree(tree, {"b.py": "created"}, "", "")
    record_in_work_tree(tree, {}, "git add -A && git commit -m All", "[main 1a2b3c4] All")
    record_in_work_tree(tree, {"b.py": "deleted"}, "rm b.py", "")
    assert tree["edited"] == ["b.py"]


def test_tests_behind_a_formatter_are_a_check():
    tree = new_work_tree()
    record_in_work_tree(tree, ["a.go"], "", "")

    record_in_work_tree(tree, [], "gofmt -w a.go && go test ./...", "ok  \tapp/api\t0.1s")

    assert not tree["unchecked"]


ON_MAIN = [([], "git commit -m One", "[main 1a2b3c4] One"), ([], "git commit -m Two", "[main 2b3c4d5] Two")]


@pytest.mark.parametrize(
    ("command", "output", "commits"),
    [
        ("git checkout fix", "Switched to branch 'fix'", []),
        ("git checkout -b fix", "Switched to a new branch 'fix'", ["1a2b3c4 One", "2b3c4d5 Two"]),
        ("git switch -c fix", "Switched to a new branch 'fix'", ["1a2b3c4 One", "2b3c4d5 Two"]),
        ("git commit -m Three", "[fix 3c4d5e6] Three", ["3c4d5e6 Three"]),
        ("git rebase main", "Successfully rebased and updated refs/heads/fix.", []),
        ("git pull --rebase", "Successfully rebased and updated refs/heads/main.", ["One", "Two"]),
        ("git log --oneline -3", "9f8e7d6 Two\n8e7d6c5 One\n7d6c5b4 Base", ["8e7d6c5 One", "9f8e7d6 Two"]),
        ("git log --oneline -2", "9f8e7d6 Two\n8e7d6c5 Two", ["1a2b3c4 One", "2b3c4d5 Two"]),
        ("git log --oneline -2", "2b3c4d5 Two\n1a2b3c4 One", ["1a2b3c4 One", "2b3c4d5 Two"]),
    ],
)
def test_the_commits_are_those_of_the_branch_by_their_present_names(command, output, commits):
    tree = new_work_tree()
    for paths, ran, said in [*ON_MAIN, ([], command, output)]:
        record_in_work_tree(tree, paths, ran, said)

    assert tree["commits"] == commits
    assert tree["commit"] in ("", "2b3c4d5", commits[-1].split()[0] if commits else "")


@pytest.mark.parametrize(
    ("command", "output", "outside"),
    [
        ("git log -2 --format='%H %s'", "5e6f7a8b5e6f7a8b Add b\n1a2b3c4d1a2b3c4d Add a", True),
        ("git log --oneline -3", "5e6f7a8 Add b\n1a2b3c4 Add a", True),
        ("git log --oneline -3", "1a2b3c4 Add a", False),
        ("git log --oneline -3 origin/main", "5e6f7a8 Add b", False),
        ("git log --all --oneline", "5e6f7a8 Add b", False),
        ("git log -- b.py", "commit 5e6f7a8b", False),
        ("git pull && git log --oneline -1", "5e6f7a8 Add b", False),
        ("cat log.txt", "5e6f7a8 Add b", False),
        ("git log --oneline --author=bob", "5e6f7a8 Add b", False),
        ("git log --oneline -S'retry'", "5e6f7a8 Add b", False),
        ("git log --oneline | tail -1", "5e6f7a8 Add b", False),
        ("git log -1 --format=%ct", "1768836000", False),
        ("git log -1 --format=%H", "5e6f7a8b5e6f7a8b5e6f7a8b5e6f7a8b5e6f7a8b", True),
    ],
)
def test_a_log_with_another_newest_commit_shows_that_somebody_committed(command, output, outside):
    tree = new_work_tree()
    record_in_work_tree(tree, [], "git log -1", "commit 1a2b3c4d1a2b3c4d\n\n    Add a")
    record_in_work_tree(tree, ["b.py"], "", "")
    record_in_work_tree(tree, [], command, output)

    said = " ".join(work_tree_lines(tree, whole=True))

    assert ("The newest commit, 5e6f7a8, was made outside of this conversation." in said) is outside
    assert ("b.py" in said) is not outside


def test_a_log_after_a_commit_of_the_conversation_shows_that_commit():
    tree = new_work_tree()
    record_in_work_tree(tree, ["b.py"], "git log --oneline -1", "1a2b3c4 Add a")
    record_in_work_tree(tree, [], "git commit -qam 'Add b'", "")
    record_in_work_tree(tree, ["c.py"], "git log --oneline -1", "5e6f7a8 Add b")

    assert next(iter(work_tree_lines(tree, whole=True))) == "Uncommitted, as of the last call: c.py."


@pytest.mark.parametrize(
    "between", ["cd ../other", "npm version patch", "./scripts/commit.sh", "gh pr checkout 12"]
)
def test_a_command_that_may_have_moved_the_newest_commit_makes_it_unknown(between):
    tree = new_work_tree()
    for paths, command, output in [
        ([], "git log --oneline -1", "1a2b3c4 Add a"), (["b.py"], "", ""), ([], between, ""),
        ([], "git log --oneline -1", "5e6f7a8 Add b"),
    ]:  # fmt: skip
        record_in_work_tree(tree, paths, command, output)

    assert "outside" not in " ".join(work_tree_lines(tree, whole=True))
    assert tree["edited"] == ["b.py"]


@pytest.mark.parametrize(
    "output",
    [
        "husky - pre-commit hook exited with code 1",
        "Author identity unknown",
        "fatal: Unable to create '/srv/app/.git/index.lock': File exists.",
        "ruff.....................................................Failed",
        "error: gpg failed to sign the data",
    ],
)
def test_a_commit_that_git_or_a_hook_refused_was_not_made(output):
    tree = new_work_tree()
    record_in_work_tree(tree, ["a.py"], "", "")
    record_in_work_tree(tree, [], "git commit -am 'Add a' || true", output)

    assert tree["edited"] == ["a.py"]
    assert not tree["committed"]


@pytest.mark.parametrize(
    "output",
    [
        "hint: See the 'Note about fast-forwards' in 'git push --help' for details.",
        "    git push --set-upstream origin main",
    ],
)
def test_a_push_that_git_refused_in_a_hint_was_not_made(output):
    tree = new_work_tree()
    record_in_work_tree(tree, ["a.py"], "git commit -am x", "[main 1a2b3c4] x")
    record_in_work_tree(tree, [], "git push 2>&1 | tail -1", output)

    assert not tree["pushed"]


@pytest.mark.parametrize(
    "output", ["no tests ran in 0.01s", "12 deselected in 0.03s", "?   \tapp/cmd\t[no test files]"]
)
def test_a_run_without_a_test_proves_nothing(output):
    tree = new_work_tree()
    record_in_work_tree(tree, ["a.py"], "", "")
    record_in_work_tree(
        tree, [], "go test ./... || true" if "test files" in output else "pytest -q || true", output
    )

    assert tree["unchecked"]


def test_a_checkout_of_named_files_leaves_the_others_uncommitted():
    tree = new_work_tree()
    record_in_work_tree(tree, ["src/a.py", "src/b.py"], "", "")
    record_in_work_tree(tree, [], "git checkout src/a.py", "Updated 1 path from the index")

    assert tree["edited"] == ["src/b.py"]

    record_in_work_tree(tree, [], "git checkout other", "")

    assert tree["edited"] == []


def test_files_of_git_itself_and_scratch_files_are_not_uncommitted():
    tree = new_work_tree()
    record_in_work_tree(
        tree, ["/srv/app/.git/index.lock", ".git/config", "a.py", "~/app/SCRATCH/run.sh"], "", ""
    )

    assert tree["edited"] == ["a.py"]


def test_two_commits_of_one_subject_keep_their_names():
    tree = new_work_tree()
    for name in ("1a2b3c4", "2b3c4d5"):
        record_in_work_tree(tree, [], "git commit -m Merge", f"[main {name}] Merge")
    record_in_work_tree(tree, [], "git log --oneline -1", "9f8e7d6 Merge")

    assert tree["commits"] == ["1a2b3c4 Merge", "2b3c4d5 Merge"]


@pytest.mark.parametrize(
    ("command", "place", "read"),
    [
        ("git status --short", "", True),
        ("git status --short", "/srv/app", True),
        ("git status --short", "/srv", True),
        ("git status --short", "/srv/other", False),
        ("cd /srv/other && git status --short", "", False),
        ("cd $DIR && git status --short", "", False),
        ("git -C ../other status --short", "/srv/app", False),
        ("git -C lib status --short", "", True),
    ],
)
def test_a_list_of_changes_counts_where_the_files_are(command, place, read):
    tree = new_work_tree()
    record_in_work_tree(tree, ["/srv/app/a.py"], "", "")
    record_in_work_tree(tree, [], "make test", "ok")
    record_in_work_tree(tree, [], command, " M b.py\n", place=place)

    assert tree["edited"] == (["b.py"] if read else ["/srv/app/a.py"])


@pytest.mark.parametrize(
    ("commands", "left"),
    [
        (["git add a.py && git commit -m 'Fix && test'"], ["b.py", "Makefile"]),
        (["git add src/a.py", "git commit -qm x"], ["b.py", "Makefile"]),
        (["git commit a.py -m x"], ["b.py", "Makefile"]),
        (["git commit -m x -- a.py b.py"], ["Makefile"]),
        (['git commit -m "$(cat <<EOF\nFix a.py\nEOF\n)"'], []),
        (['git add a.py && git commit -m "$(cat <<EOF\nFix b.py\nEOF\n)"'], ["b.py", "Makefile"]),
        (["cd app && git -C lib add a.py Makefile && git -c user.name=x commit -F msg.txt"], ["b.py"]),
        (["git add a.py && git commit -m x; git add b.py && git commit -m y"], ["Makefile"]),
        (["git rm -q a.py && git commit -m x"], ["b.py", "Makefile"]),
        (["git add a.py", "git commit -m x b.py"], ["src/a.py", "Makefile"]),
        (["git add a.py", "git commit -im x b.py"], []),
        (["git add a.py", "git commit --author 'B b.py' -m x"], ["b.py", "Makefile"]),
        (["git add a.py && git commit -m 'Rename b.py -> c' --author='B <b@c.d>' >log"], ["b.py", "Makefile"]),
        (["git add a.py && git commit -m 'Map Makefile -> b.py'"], ["b.py", "Makefile"]),
        (["git add a.py b.py", "git restore --staged b.py", "git commit -m x"], ["b.py", "Makefile"]),
        # What is named otherwise, or staged by something else, may be all of them.
        *(
            ([command], [])
            for command in (
                "git add -A && git commit -m x", "git add . && git commit -m x", "git add src && git commit -m x",
                "git add '*.py' && git commit -m x", "git add $FILES && git commit -m x", "git commit -am x",
                "git commit --all -m x", "git add -u; git commit -m x", "git commit -m x", "bash -c 'git commit -m x'",
                "git add .github && git commit -m x", "git add Sources a.py && git commit -m 'A -> B'",
                "git add a.py; git diff --name-only | xargs git add; git commit -m x",
                "git add --pathspec-from-file list.txt && git commit -m x",
            )
        ),
    ],
)  # fmt: skip
def test_a_commit_takes_the_files_that_it_names_and_those_that_were_staged(commands, left):
    tree = new_work_tree()
    record_in_work_tree(tree, ["src/a.py", "b.py", "Makefile"], "", "")
    for command in commands:
        record_in_work_tree(tree, [], command, "")

    assert tree["edited"] == left


def test_a_file_that_was_edited_after_it_was_staged_is_not_committed():
    tree = new_work_tree()
    for paths, command in ((["a.py", "b.py"], "git add a.py b.py"), (["b.py"], ""), ([], "git commit -m x")):
        record_in_work_tree(tree, paths, command, "")
    assert tree["edited"] == ["b.py"]

    record_in_work_tree(tree, [], "git add b.py && make", "no rule", failed=True)
    record_in_work_tree(tree, [], "git commit -m y", "")
    assert tree["edited"] == []


def test_a_call_that_failed_may_have_checked_or_committed():
    tree = new_work_tree()
    record_in_work_tree(tree, ["a.py"], "", "")
    assert record_in_work_tree(tree, [], "cargo test", "test result: FAILED", failed=True)
    assert "No build or test is known to have passed since the last edit." not in [
        *work_tree_lines(tree, whole=True)
    ]
    assert not record_in_work_tree(tree, [], "git commit -m x", "hook failed", failed=True)

    record_in_work_tree(
        tree, [], "git commit -m x && git push", "[main 1a2b3c4] x\n ! [rejected]", failed=True
    )
    assert [*work_tree_lines(tree, whole=True)] == [
        "Nothing was pushed in this conversation.",
        "Commits, the newest first: 1a2b3c4 x.",
    ]


@rows(
    ("call", "pushed"),
    [
        (("git commit -am 'Document that git push is manual'", "[main 1a2b3c4] Document"), "nothing"),
        (("echo 'then run git push origin main'", "then run git push origin main"), "nothing"),
        (("cat > notes <<'EOF'\ngit push\nEOF", ""), "nothing"),
        (("git push --dry-run", "To x\n   111111a..1a2b3c4  main -> main"), "nothing"),
        (("git push origin --delete old", "To x\n - [deleted] old"), "nothing"),
        (("git push origin :old", "To x\n - [deleted] old"), "nothing"),
        (("git push --tags", "To x\n * [new tag] v1 -> v1"), "nothing"),
        (("git push; git status -sb", "To x\n ! [rejected] main -> main\n## main"), "nothing"),
        (("git push 2>&1 | tail -3", "fatal: no upstream"), "nothing"),
        (("make test && git push", "make: *** [test] Error 1", True), "nothing"),
        (("git pull && git push", "   111111a..222222b  main -> origin/main\nCONFLICT", True), "nothing"),
        (("git push", ""), "pushed"),
        (("bash -lc 'git push -q'", ""), "pushed"),
        (
            ("git push || git push -u origin HEAD", "fatal: no upstream\n * [new branch]  HEAD -> main"),
            "pushed",
        ),
        (("git push && make deploy", "To x\n   111111a..1a2b3c4  main -> main\nError 1", True), "pushed"),
        (("git push -q && make deploy", "make: *** [deploy] Error 1", True), "unknown"),
        (("git push", "Command running in background with ID: b1"), "nothing"),
        (("git push && git commit -am y", "[main 2b3c4d5] y"), "commit since"),
    ],
)
def test_a_push_is_known_by_its_command_and_output(call, pushed):
    tree = new_work_tree()
    record_in_work_tree(tree, [], "git commit -qam x && git log --oneline -1", "1a2b3c4 x")
    command, output, *failed = call
    record_in_work_tree(tree, [], command, output, failed=bool(failed))

    says = {
        "nothing": ["Nothing was pushed in this conversation."],
        "pushed": ["The last commit, 1a2b3c4, was pushed."],
        "unknown": [],
        "commit since": ["The last commit, 2b3c4d5, was not pushed."],
    }
    assert [line for line in work_tree_lines(tree, whole=True) if "pushed" in line] == says[pushed]


@rows(
    "command",
    [
        "grep -rn 'git commit' docs/",
        "git commit --dry-run -am x",
        "echo git commit -am x",
        "git stash list",
        "git stash show -p",
        "git restore --staged a.py",
        "git reset -q",
        "git clean -n",
        "echo 'git reset --hard'",
        "git status --short | head",
    ],
)
def test_a_command_that_takes_nothing_back_and_commits_nothing_leaves_the_edits(command):
    tree = new_work_tree()
    record_in_work_tree(tree, ["a.py"], "", "")
    record_in_work_tree(tree, [], command, "some output")

    assert [*work_tree_lines(tree, whole=True)][:2] == [
        "Uncommitted, as of the last call: a.py.",
        "Nothing was committed in this conversation.",
    ]


@rows(
    "command",
    [
        "git stash",
        "git stash pop",
        "git reset --hard",
        "git restore a.py",
        "git restore -SW .",
        "git clean -fd",
    ],
)
def test_a_command_that_may_take_edits_back_leaves_them_unknown(command):
    tree = new_work_tree()
    record_in_work_tree(tree, ["a.py"], "", "")
    record_in_work_tree(tree, [], command, "")

    assert tree["edited"] == []


def test_the_message_of_a_commit_does_nothing():
    tree = new_work_tree()
    record_in_work_tree(tree, ["a.py", "b.py"], "", "")
    record_in_work_tree(
        tree,
        [],
        "git add a.py && git commit -m 'Use git stash before sed -i'",
        "[main 1a2b3c4] Use git stash",
    )

    assert [*work_tree_lines(tree, whole=True)][:2] == [
        "Uncommitted, as of the last call: b.py.",
        "Nothing was pushed in this conversation.",
    ]
    assert "in_place" not in tree


def test_a_commit_takes_one_of_two_files_of_the_same_name():
    tree = new_work_tree()
    record_in_work_tree(tree, ["/p/a/__init__.py", "/p/b/__init__.py"], "", "")
    lines = [*work_tree_lines(tree, whole=True)]
    record_in_work_tree(tree, [], "git add a/__init__.py && git commit -m A", "[main 1a2b3c4] A")

    assert lines[0] == "Uncommitted, as of the last call: a/__init__.py, b/__init__.py."
    assert tree["edited"] == ["/p/b/__init__.py"]

    # A state of an earlier release has names alone.
    tree["edited"] = ["__init__.py", "x.py"]
    record_in_work_tree(tree, ["/p/a/x.py"], "git add a/__init__.py", "")
    record_in_work_tree(tree, [], "git commit -m B", "[main 2b3c4d5] B")
    assert tree["edited"] == ["/p/a/x.py"]


@rows("command", ["ls tests", "grep -rn pytest docs", "pytest --collect-only", "echo 'make test'"])
def test_looking_at_tests_is_no_check_of_an_edit(command):
    tree = new_work_tree()
    record_in_work_tree(tree, ["a.py"], "", "")
    record_in_work_tree(tree, [], command, "some output")

    assert tree["unchecked"]


@rows(
    ("calls", "only"),
    [
        ([([], "cat a.py", ""), ([], "pytest -q | tail -3", "3 passed"), ([], "git stash list", "")], True),
        ([(["b.py"], "", ""), ([], "git stash", "")], False),
        ([([], "python3 gen.py", "")], False),
        ([([], "echo x > data.json", "")], False),
        ([([], "npx eslint --fix src", "")], False),
    ],
)
def test_no_other_edit_is_only_said_where_no_call_can_have_made_one(calls, only):
    tree = new_work_tree()
    for paths, command, output in calls:
        record_in_work_tree(tree, paths, command, output)
    record_refusal(tree, ["a.py"])

    said = "The person refused the edit of a.py, and no other edit was made in this conversation."
    assert (said in [*work_tree_lines(tree, whole=True)]) is only
    assert said not in [*work_tree_lines(tree, whole=False)]
    del_known = {name: value for name, value in tree.items() if name != "untouched"}
    assert said not in [*work_tree_lines(del_known, whole=True)]


def test_of_a_conversation_without_its_beginning_only_what_was_seen_is_said():
    tree = new_work_tree()
    record_in_work_tree(tree, ["a.py"], "make test", "")

    assert [*work_tree_lines(tree, whole=False)] == ["Uncommitted, as of the last call: a.py."]


def test_an_edit_that_a_person_refused_is_said_until_the_file_is_changed():
    tree = new_work_tree()
    record_refusal(tree, ["src/a.py", "src/b.py"])
    assert [*work_tree_lines(tree, whole=True)] == [
        "The person refused the edit of a.py, b.py, and no other edit was made in this conversation."
    ]

    record_in_work_tree(tree, ["src/a.py"], "", "")
    assert "The person refused the edit of b.py." in [*work_tree_lines(tree, whole=True)]


@rows(
    ("command", "line"),
    [("git add a.py && git commit -m x && git push", "commit"), ("git push origin main", "push")],
)
def test_a_commit_or_push_that_a_person_refused_is_said_until_one_is_made(command, line):
    tree = new_work_tree()
    record_in_work_tree(tree, ["src/a.py"], "", "")
    record_refusal(tree, [], command)
    assert f"The person refused the newest `git {line}`." in [*work_tree_lines(tree, whole=True)]

    record_in_work_tree(tree, [], command, "[main 1a2b3c4] x")
    assert "refused" not in " ".join(work_tree_lines(tree, whole=True))


@rows(
    ("result", "answers"),
    [
        (
            'Your questions have been answered: "Which quotes?"="Use "double" quotes, never single ones". You can now continue with these answers in mind.',
            ['"Which quotes?"="Use "double" quotes, never single ones"'],
        ),
        (
            'The user answered: "DB?"="neither: "a", "b" or DuckDB", "Log?"="no" selected preview:\nlog("x", "y")\n notes: not now. Ever. Read the answers carefully — they may request clarification — and follow what they actually say.',
            ['"DB?"="neither: "a", "b" or DuckDB"', '"Log?"="no" notes: not now. Ever'],
        ),
        ('User has answered your questions: "DB?"="x". You can now continue with the user\'s answers in mind.', ['"DB?"="x"']),
        ("The user responded: none of these. You can now rest", ["none of these. You can now rest"]),
        (
            'The user asked for more questions before you proceed. So far they answered: "DB?"="x". They also wrote: "and "y"?". Call AskUserQuestion again with follow-up questions.',
            ['"DB?"="x"', 'and "y"?'],
        ),
        ("The user asked for more questions before answering. Call AskUserQuestion again now.", []),
        ("The user did not answer the questions.", []),
        ("Your questions have been answered: . You can now continue with these answers in mind.", []),
        ("The user answered the card with Add.", []),
    ],
)  # fmt: skip
def test_the_answers_of_a_person_are_found_whole(result, answers):
    assert answers_in(result) == answers


@rows(
    "command",
    [
        "# don't forget\ngit add -A\ngit commit -m 'Add a page'\ngit push",
        'git commit -am "Add a page" && GIT_SSH_COMMAND="ssh -i k" git push',
        'GIT_AUTHOR_DATE="2024-01-01 10:00" /usr/bin/git commit -am "Add a page" && git push',
        "git --git-dir /x/.git --work-tree /x commit -am 'Add a page'; git push",
    ],
)
def test_a_commit_is_read_behind_comments_assignments_and_paths(command):
    tree = new_work_tree()
    record_in_work_tree(tree, ["a.py"], "", "")
    record_in_work_tree(tree, [], command, "[main 1a2b3c4] Add a page\n   1111111..2222222  main -> main")

    assert next(iter(work_tree_lines(tree, whole=True))) == "The last commit, 1a2b3c4, was pushed."


@rows(("path", "unchecked"), [("docs/a.md", False), ("requirements.txt", True), ("CMakeLists.txt", True)])
def test_only_prose_needs_no_build(path, unchecked):
    tree = new_work_tree()
    record_in_work_tree(tree, [path], "", "")

    assert (
        "No build or test is known to have passed since the last edit."
        in [*work_tree_lines(tree, whole=True)]
    ) == unchecked

import hashlib
import json

import pytest

from aether.messages.convert import read
from aether.messages.tool_calls import (
    ErrorFact,
    FileFact,
    answers_in,
    calls_of,
    failures_of,
    file_changes,
    files_of,
    merged_failures,
    merged_files,
    shell_command,
    short_hash,
)
from tests.conversation.conversations import bash, conversation, model, tool
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
    # Where a command or a directory is not written out, nothing is known of it.
    unknown = {
        "input": "// tools.exec_command({cmd: 'old'})\nawait tools.exec_command({cmd: made, workdir: `${home}/p`})"
    }
    assert (shell_command(unknown), [*file_changes(unknown)]) == ("", [])


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


def test_it_is_closed_by_what_stays_too_but_only_what_is_removed_opens_it():
    parts = (
        bash("make", "error: a", failed=True),
        bash("make", "fine"),
        bash("tox", "error: b", failed=True),
    )

    assert failures(*parts, removed=lambda at: at < 2) == (ErrorFact("$ make\nerror: a", open=False),)


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


def test_merging_takes_the_newer_word_on_the_same_failure():
    older = (ErrorFact("$ make -j2\nerror: a", open=True), ErrorFact("Edit a.py\nno match", open=True))
    newer = (ErrorFact("$ make -j2\nerror: a", open=False), ErrorFact("$ tox\nb", open=True))

    assert merged_failures(older, newer) == (older[1], *newer)


@pytest.mark.parametrize(
    "output",
    [
        "FAILED tests/test_3.py::test_x - AssertionError: expected 3 got 4\n1 failed, 3 passed in 0.4s",
        "E   assert 3 == 4\n=== 1 failed in 0.3s ===",
    ],
)
def test_output_that_reports_a_failure_needs_no_flag(output):
    (error,) = failures(bash("pytest -q", output))

    assert error.open
    assert failures(bash("pytest -q", output), bash("pytest -q", "4 passed in 0.2s"))[0].open is False


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

"""The progress of a conversation: the newest request, the state that its calls show, and the next step."""

from __future__ import annotations

import pytest

from aether.compaction.facts import facts_of, merged_facts
from aether.compaction.progress import ANSWER_CHARS, PLAN_ENTRIES, STAYING_CHARS, progress_of
from aether.compaction.shapes import Facts, Summary
from aether.compaction.summary import rendered
from aether.messages.convert import reread
from aether.messages.tool_calls import calls_of
from tests.compaction.conversations import bash, conversation, model, tool, user

ANSWER = (
    "The parser reads quoted fields now, and the test of the empty file passes as well.\n\n"
    "The old reader stays for one release because the importer still calls it. Want me to remove it next?"
)


def progress(*parts):
    messages = conversation(*parts)
    return progress_of(messages, calls_of(messages))


def test_the_newest_request_is_the_current_one_and_thanks_do_not_replace_it():
    found = progress(user("Fix the parser."), model("On it."), user("Add a test, too."), user("thanks!"))

    assert found.current == ("Add a test, too.",)


def test_requests_that_stay_are_shown_with_the_newest_one_by_their_heads():
    long = "The command itself should keep them out of git. " + "This is for every user. " * 20
    messages = conversation(user("Ignore the locks."), user(long), model("Done."), user("commit"))

    found = progress_of(messages, calls_of(messages), stays=lambda at: at > 0)

    first, newest = found.current
    assert newest == "commit"
    assert long.startswith(first)
    assert len(first) <= STAYING_CHARS
    assert progress_of(messages, calls_of(messages)).current == ("commit",)


def test_praise_on_which_the_model_sets_to_work_is_a_request():
    said = [
        user("Fix the parser."),
        model("Fixed."),
        user("Describe the release."),
        model("Like so."),
        user("looks good"),
    ]

    assert progress(*said, bash("git status")).current == ("looks good",)
    assert progress(*said, model("Thank you.")).current == ("Describe the release.",)


def test_a_short_text_that_ends_a_turn_is_shown_below_its_account():
    end = "Committed 6706f449. What is unstaged was there before."
    ended = progress(user("Fix the parser."), model(ANSWER), model(end))
    goes_on = progress(user("Fix the parser."), model(ANSWER), model(end), bash("ls"))

    assert ended.state[-1] == end
    assert goes_on.state[:3] == (*ANSWER.split("\n\n"), end)
    assert goes_on.next[-1] == end


def test_a_recommendation_that_is_not_turned_down_is_kept():
    advice = "I'd go with a snapshot of the first commit, and say so in its name."
    answer = f"A commit may be amended later.\n\n{'Nothing tells us of it. ' * 8}\n\n{advice}"
    then = model(ANSWER)

    taken = progress(user("Which number?"), model(answer), user("Add the name, too."), then)
    turned_down = progress(user("Which number?"), model(answer), user("no, leave it out"), then)

    assert advice in taken.earlier
    assert advice not in turned_down.earlier


def test_a_short_reply_is_the_current_request_with_what_it_takes_up():
    asked = "The reason is kept but never shown.\n\n**Options:**\n1. Drop it\n2. Log it at each deletion\n\nWhich?"

    picked, own = (
        progress(user("Read the code."), model(asked), user(said))
        for said in ("2", "Show it in the preview.")
    )

    assert picked.current == (
        "Asked: The reason is kept but never shown.\nLog it at each deletion\nAnswered: 2",
    )
    assert own.current == ("Show it in the preview.",)
    for said, shown in (
        ("fix it up", "Asked: Want me to fix the test?\nAnswered: fix it up"),
        ("Now the docs.", "Now the docs."),
    ):
        found = progress(user("Read the code."), model("It fails. Want me to fix the test?"), user(said))
        assert found.current == (shown,)
    assert facts_of(*_whole(user("Read the code."), model(asked), user("2"))).decisions == (
        "Asked: The reason is kept but never shown.\nAnswered: Log it at each deletion",
    )


def _whole(*parts):
    messages = conversation(*parts)
    return messages, range(len(messages))


def test_the_last_answer_is_the_state_by_paragraph_and_its_question_the_next_step():
    found = progress(user("Fix the parser."), model("Let me look."), model(ANSWER))

    assert found.state == tuple(ANSWER.split("\n\n"))
    assert found.next == ("Want me to remove it next?",)


def test_a_heading_is_shown_with_what_is_below_it_and_never_alone():
    answer = f"## What changed\n\n{ANSWER}\n\nStill open:\n\n- the importer\n\n## Notes"

    found = progress(user("Fix the parser."), model(answer))

    said, asked = ANSWER.split("\n\n")
    assert found.state == (f"## What changed\n{said}", asked, "Still open:\n- the importer")


def test_in_a_chat_with_names_each_text_has_its_speaker():
    climbed = "We climbed for nine hours, and the hut at the top had no water left for anybody."
    messages = conversation(user("How was the hike?"), model(climbed), user("Never plan one on a Monday."))
    named = [
        reread(one, {**one.raw, "name": name})
        for one, name in zip(messages, ("Ann", "Bob", "Ann"), strict=True)
    ]

    found = progress_of(named, [])

    assert found.opening == ("Ann: How was the hike?",)
    assert found.state[0] == f"Bob: {climbed}"
    assert facts_of(named, range(3)).goals == ("Ann: How was the hike?",)
    assert facts_of(named, range(3)).constraints == ("Never plan one on a Monday.",)


def test_an_announcement_before_a_call_is_not_the_answer_of_a_turn():
    found = progress(user("Fix it."), model(ANSWER), *[bash("make lint")], model("Let me wait."))

    assert found.state[:2] == tuple(ANSWER.split("\n\n"))


def test_a_block_of_code_and_what_a_line_opens_are_one_paragraph():
    code = "```py\na = 1\n\n\nb = 2\n```"
    opened = "The parser was slow. It reads in pieces now:\n- the head\n- the rows"
    answer = "\n\n".join([code, opened.replace("\n", "\n\n", 1), "All of the tests pass. That was the rest:"])

    found = progress(user("Fix the parser."), model(answer))

    assert found.state == (code, opened, "All of the tests pass. That was the rest:")
    torn = progress(
        user("Fix the parser."), model(f"{code[:-4]}\n\nIt reads in pieces now, as you asked for.")
    )
    assert torn.state == ("```py\na = 1", "b = 2", "It reads in pieces now, as you asked for.")


def test_code_is_no_next_step_nor_is_what_was_announced_before_more_calls():
    code = f"{ANSWER.partition(' Want')[0]}\n\n```\nYou can try it by hand: make export\n```"
    announced = "I will commit only the reader, and not the formatting of the other three files. " * 2
    done = [
        bash("git commit -m Reader", "[main 6706f449] Reader"),
        model("Committed 6706f449, as you asked for."),
    ]

    assert progress(user("Fix it."), model(code)).next == ()
    assert progress(user("Fix it."), model(announced), *done).next == ()
    assert progress(user("Fix it."), model(announced)).next != ()


def test_what_another_program_wrote_in_place_of_a_conversation_is_no_request():
    ends = user("This session is being continued from a previous conversation that ran out of context.")

    found = progress(user("Fix the parser."), model(ANSWER), ends, model("Let me look."))

    assert found.current == ("Fix the parser.",)


def test_a_long_answer_is_cut_at_the_end_of_a_sentence():
    long = "The cache is written before the index is closed. " * 100

    (shown,) = progress(user("Why?"), model(long)).state

    assert long.startswith(shown)
    assert shown.endswith("closed.")
    assert ANSWER_CHARS - 60 < len(shown) <= ANSWER_CHARS


def test_the_newest_plan_shows_what_is_open():
    todos = [
        {"content": "Read the parser", "status": "completed"},
        {"content": "Write the test", "status": "pending"},
    ]
    old = tool("TodoWrite", "ok", todos=[{"content": "Start", "status": "in_progress"}])

    found = progress(user("Go."), old, tool("TodoWrite", "ok", todos=todos))

    assert found.state == ("completed: Read the parser",)
    assert found.next == ("pending: Write the test",)


def test_a_plan_that_was_emptied_is_no_next_step():
    planned = tool("TodoWrite", "ok", todos=[{"content": "Rewrite it", "status": "pending"}])
    emptied = tool("TodoWrite", "ok", todos=[])

    assert progress(user("Go."), planned).next == ("pending: Rewrite it",)
    assert progress(user("Go."), planned, user("Forget it."), emptied).next == ()
    assert progress(user("Go."), planned, tool("order", "ok", items=[])).next == ("pending: Rewrite it",)


def test_a_run_that_only_lists_is_no_newer_run_of_a_check():
    found = progress(
        user("Go."), bash("pytest", "1 failed, 2 passed"), bash("pytest --collect-only", "3 tests collected")
    )

    assert [line for line in found.state if line.startswith("Ran")] == ["Ran `pytest`: 1 failed, 2 passed"]


def test_tasks_that_are_made_and_updated_one_by_one_are_a_plan():
    found = progress(
        user("Go."),
        tool("TaskCreate", "Task #1 created", subject="Log rotation", description="x"),
        tool("TaskCreate", "Task #2 created", subject="Stale sessions", description="y"),
        tool("TaskUpdate", "ok", taskId="1", status="completed"),
        tool("TaskUpdate", "ok", taskId="9", status="completed"),
    )

    assert found.state == ("completed: Log rotation",)
    assert found.next == ("pending: Stale sessions",)


def test_a_long_plan_is_bounded():
    todos = [
        {"content": f"Step {at}", "status": "pending" if at % 2 else "completed"}
        for at in range(PLAN_ENTRIES * 6)
    ]

    found = progress(user("Go."), tool("TodoWrite", "ok", todos=todos))

    assert len(found.state) == len(found.next) == PLAN_ENTRIES


def test_only_the_last_run_of_a_check_is_named_and_one_that_covers_it_replaces_it():
    found = progress(
        user("Go."),
        bash("pytest -q tests/a.py", "1 failed, 2 passed in 0.1s"),
        bash("cat a.py"),
        bash("pytest -q", "9 passed in 0.4s"),
        bash("make lint", "0 issues."),
    )

    assert found.state == ("Ran `pytest -q`: 9 passed in 0.4s", "Ran `make lint`: 0 issues.")


def test_the_outcome_of_a_run_is_that_of_all_its_packages_and_not_of_a_listing_behind_it():
    tested = "ok  \tapp/api\t0.1s\nok  \tapp/web\t(cached)"
    found = progress(user("Go."), bash("go test ./...", tested), bash("make site; ls out", "index.html"))

    assert found.state == ("Ran `go test ./...`: ok", "Ran `make site; ls out`")


def test_what_a_script_of_codex_shows_is_read_as_what_its_command_printed():
    shown = 'Script completed\nWall time 0.2 seconds\nOutput:\n\n{"chunk_id":"a1","exit_code":0,"output":"9 passed in 0.4s\\n"}'

    assert progress(user("Go."), bash("pytest -q", shown)).state == ("Ran `pytest -q`: 9 passed in 0.4s",)


def test_a_run_that_only_writes_the_form_of_files_shows_nothing():
    runs = [bash("gofmt -w a.go b.go"), bash("npm run format"), bash("go build ./...")]

    assert progress(user("Go."), *runs).state == ("Ran `go build ./...`: ok",)


def edit(path):
    return tool("Edit", "ok", file_path=path, old_string="a", new_string="b")


def test_edits_without_a_commit_or_a_check_are_named():
    found = progress(user("Go."), bash("make test", "ok"), edit("src/a.py"), edit("src/b.py"))

    assert found.state[-3:] == (
        "Uncommitted, as of the last call: a.py, b.py.",
        "Nothing was committed in this conversation.",
        "No build or test is known to have passed since the last edit.",
    )


def test_a_commit_ends_the_list_of_edits_and_a_push_ends_the_wait_for_one():
    committed = progress(user("Go."), edit("a.py"), bash("git add -A && git commit -m x", "[main 1a2b3c4] x"))
    pushed = progress(
        user("Go."),
        edit("a.py"),
        bash("git commit -am x", "[main 1a2b3c4] x"),
        bash("git push", "main -> main"),
    )

    assert "Nothing was pushed in this conversation." in committed.state
    assert not [line for line in committed.state if line.startswith("Uncommitted")]
    assert "The last commit, 1a2b3c4, was pushed." in pushed.state


def test_a_status_after_a_commit_does_not_undo_it():
    status = "\tmodified:   b.py\n\nno changes added to commit"
    edit = tool("Edit", file_path="a.py", old_string="a", new_string="b")

    done, refused = (
        progress(user("Commit."), edit, bash("git commit -m 'Ignore the locks' && git status", output))
        for output in (f"[main 6706f449] Ignore the locks\n{status}", status)
    )

    assert "Nothing was committed in this conversation." not in done.state
    assert "Nothing was committed in this conversation." in refused.state


def test_of_a_long_paragraph_what_it_chose_at_its_end_is_kept():
    opening = (
        "`load()` read the head of each file twice, once for the type and once for the rows, whatever it was asked for. "
        * 3
    )
    chosen = "Resolution: moved the check into `open_reader()`, so both readers share it."
    old = "Verification: changed files pass, and `make lint` is clean now instead of red."
    ahead = "The branch is 3 commits ahead of main now, because `load()` was split."
    account = f"Done.\n\n- {opening}{chosen}\n\n{old}\n\n{ahead}"

    found = progress(user("Fix it."), edit("load.py"), model(account), user("Now the docs."), model(ANSWER))

    assert any(one.endswith(chosen) for one in found.earlier)
    assert not {old, ahead} & {*found.earlier}


def test_below_a_heading_that_says_that_something_was_fixed_each_entry_says_what():
    entry = "`retry()` captures the final `res.url` and passes it as the target to the callback."
    answers = (
        model(f"{heading}\n\n1. {entry}\n\n{'It is as it was. ' * 9}")
        for heading in ("Two paths fixed:", "Two paths:")
    )
    edit = tool("Edit", file_path="a.py", old_string="a", new_string="b")

    fixed, other = (progress(user("Look."), edit, one, user("And now?"), model(ANSWER)) for one in answers)

    assert entry in fixed.earlier
    assert entry not in other.earlier


def test_after_a_summary_nothing_is_said_of_the_calls_before_it():
    before = user(rendered(Summary(1, Facts(goals=("Ship it.",)), "Done.")))

    found = progress(before, user("Go on."), edit("a.py"), bash("make test", "ok"))

    assert "Nothing was committed in this conversation." not in found.state
    assert "Uncommitted, as of the last call: a.py." in found.state


def test_the_progress_of_the_newer_stretch_replaces_that_of_the_older():
    older = Facts(current=("one",), state=("old",), next=("first",))
    newer = Facts(current=("two",), state=("new",))

    assert merged_facts(older, newer) == Facts(current=("two",), state=("new",))
    assert merged_facts(older, Facts()) == older


def test_what_a_plan_still_has_outlives_a_stretch_without_one():
    older = Facts(state=("completed: Read it",), next=("pending: Test it", "Shall I start?"))

    kept = merged_facts(older, Facts(state=("It reads quoted fields.",), next=("I will go on.",)))
    ended = merged_facts(older, Facts(state=("completed: Test it",)))

    assert kept.next == ("I will go on.", "pending: Test it")
    assert ended.next == ()


def test_progress_is_read_from_the_messages_that_stay_as_well():
    messages = conversation(user("Fix the parser."), model(ANSWER), user("Now the docs."))

    found = facts_of(messages, [0])

    assert found.current == ("Now the docs.",)
    assert found.state == tuple(ANSWER.split("\n\n"))


def refused(words):
    text = f"The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n{words}"
    return tool("Edit", text, failed=True, file_path="src/a.py", old_string="a", new_string="b")


def test_words_with_which_a_call_was_refused_are_the_newest_request():
    found = progress(
        user("Fix the parser."), model("I'll change the reader."), refused("put it in its own branch")
    )

    assert found.current == ("put it in its own branch",)


def test_edits_that_were_refused_are_not_taken_for_changes():
    looked = (user("Fix the parser."), bash("cat src/a.py"), refused("not there"))
    nothing = "No file was changed by a call of this conversation."

    assert progress(*looked).state[-2:] == ("Edits that the person refused: a.py.", nothing)
    assert not {nothing, "Edits that the person refused: a.py."} & {
        *progress(*looked, edit("src/a.py")).state
    }
    assert nothing not in progress(*looked[:2]).state
    assert nothing not in progress(*looked, bash("python3 make_pages.py", "ok")).state


def test_a_command_that_was_refused_was_not_run():
    text = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nnot yet"
    ran = bash("npm run build", "built in 3s")

    found = progress(user("Publish it."), ran, bash("npm publish", text, failed=True))

    assert [line for line in found.state if line.startswith("Ran")] == ["Ran `npm run build`: built in 3s"]


def test_words_of_a_refusal_are_facts_of_the_removed_messages():
    messages = conversation(
        user("Fix the parser."),
        refused("let's do this as a separate change"),
        user("Now the docs."),
        model("On it."),
    )

    found = facts_of(messages, range(len(messages) - 2))

    assert "let's do this as a separate change" in (*found.decisions, *found.constraints, *found.requests)


ACCOUNT = (
    "Done. The reader is changed:\n\n- `read_rows()` now skips blank lines instead of failing on them\n"
    "- `write_rows()` keeps the order of the columns, because the importer relies on it\n\n"
    "The test for empty files was skipped for now."
)


def test_earlier_answers_say_what_they_changed_and_put_off():
    found = progress(
        user("Fix the reader."),
        model(ACCOUNT),
        user("Now the docs."),
        model("The page on reading is written. " * 6),
    )

    assert found.opening == ("Fix the reader.",)
    assert "`read_rows()` now skips blank lines instead of failing on them" in found.earlier[0]
    assert "The test for empty files was skipped for now." in found.earlier


def test_an_answer_that_the_person_turned_down_was_not_done():
    found = progress(
        user("Fix the reader."), model(ACCOUNT), user("nah, roll it back"), model("Rolled back.")
    )

    assert found.earlier == ()
    assert not any("skips blank lines" in one for one in found.state)


def says_and_runs(text):
    run = bash("cat writer.py")
    run[0]["content"].insert(0, {"type": "text", "text": text})
    return run


def test_the_reason_of_an_edit_is_kept_and_an_announcement_is_what_is_under_way():
    why = "I'm keeping the old reader for one release, because the importer in `load.py` still calls it."
    edited = tool("Edit", "ok", file_path="src/a.py", old_string="a", new_string="b")

    edited[0]["content"].insert(0, {"type": "text", "text": why})

    found = progress(user("Fix the reader."), edited, says_and_runs("Now the writer."))

    assert found.earlier == (why,)
    assert found.state[:2] == (why, "Now the writer.")
    assert found.next == ("Now the writer.",)


def test_the_reason_of_an_edit_may_be_a_message_of_its_own_before_it():
    why = "I'm keeping the old writer behind a flag, so that exports made by hand stay as they are."
    looked = bash("grep -n writer load.py", "12: writer")

    found = progress(
        user("Fix the writer."), model(why), looked, edit("src/a.py"), model("Now the tests."), edit("b.py")
    )

    assert found.earlier == (why,)


def test_each_choice_before_an_edit_is_kept_and_a_commit_carries_one_out_too():
    reads = "I'll add a test that reads a file of only blank lines with `read_rows()`, and asserts that nothing is returned."
    beside = "I'm editing the test of the reader rather than that of the parser, because only the reader sees the file."
    alone = "I'm committing `reader.py` by itself before the review, so that changes it asks for can be a commit of their own."

    found = progress(
        user("Test the reader."), model(reads), bash("cat test_reader.py", "1"), model(beside), edit("test_reader.py"),
        model(alone), bash("git commit -m 'Test it'", "[main 1234567] Test it"), user("and the docs?"),
    )  # fmt: skip

    assert found.earlier == (reads, beside, alone)


def test_an_answer_without_work_says_what_it_decided_and_little_of_what_it_found():
    why = "The old reader stays for one release, because the importer in `load.py` still calls it."
    analysis = (
        "The importer uses `read_rows()` in place {}, and returns only the first of its rows, as before."
    )
    answer = "\n\n".join([*(analysis.format(at) for at in range(8)), why])

    found = progress(
        user("Who calls it?"), model(answer), user("Fix it."), edit("src/a.py"), model("Done. " * 30)
    )

    assert why in found.earlier
    assert len(found.earlier) <= 4


def test_what_earlier_answers_changed_outlives_the_next_compaction():
    older = Facts(state=(*ACCOUNT.split("\n\n"), "pending: Write the docs"), earlier=("`a.py` was split.",))

    merged = merged_facts(older, Facts(state=("The page on reading is written.",)))

    assert merged.earlier[0] == "`a.py` was split."
    assert "`read_rows()` now skips blank lines instead of failing on them" in merged.earlier
    assert not any("pending" in one for one in merged.earlier)


def test_a_work_tree_and_a_run_last_until_there_are_newer_ones():
    older = Facts(state=("The reader is split.", "Ran `make`: ok", "Uncommitted, as of the last call: a.py."))

    talked = merged_facts(older, Facts(state=("The upload waits for access.",)))
    ran = merged_facts(older, Facts(state=("It fails.", "Ran `make`: 2 errors")))

    assert talked.state == ("The upload waits for access.", *older.state[1:])
    assert ran.state == ("It fails.", "Ran `make`: 2 errors", older.state[2])


def test_before_an_edit_the_text_without_a_reason_says_what_is_changed():
    what = "I'm adding a package `internal/clock` with a fake clock, and it is imported by the tests of the runner."

    found = progress(
        user("Fix the flaky test."), model(what), edit("internal/clock/fake.go"), user("and the docs?")
    )

    assert found.earlier == (what,)


def test_what_stays_among_the_messages_is_not_repeated_as_done_before():
    page = "The page on reading is written, and it says how blank lines are skipped. " * 3
    messages = conversation(user("Fix the reader."), model(ACCOUNT), user("Now the docs."), model(page))

    removed = facts_of(messages, [0, 1]).earlier
    kept = facts_of(messages, [0]).earlier

    assert "The test for empty files was skipped for now." in removed
    assert kept == ()


@pytest.mark.parametrize(
    ("said", "ahead"),
    [
        ("Two follow-ups are left for the writer of `b.py`.", True),
        ("The next sensible step is a run of `load()` on a large file.", True),
        ("It adapts the next span of `load()` to the size of the last one.", False),
        ("No file failed to parse, so nothing is left to do for the reader of `a.py`.", False),
        ("No remaining file failed, so I noted no follow-up for the reader of `a.py`.", False),
    ],
)
def test_that_nothing_is_left_is_no_next_step(said, ahead):
    found = progress(user("Fix the reader."), model(f"`load()` now reads the newest session.\n\n{said}"))

    assert (said in found.next) is ahead

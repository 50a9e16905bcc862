"""Where a conversation is: its current request, the ends of its newest answers, its plan and its runs, in any language."""

from __future__ import annotations

from aether.conversation.facts import merged_facts
from aether.conversation.progress import (
    ANSWER_CHARS,
    MOST_RAN,
    NOTHING_LEFT,
    PLAN_ENTRIES,
    ends_of,
    merged_ran,
    progress_of,
)
from aether.conversation.shapes import Facts
from aether.messages.convert import read
from tests.conversation.conversations import bash, conversation, conversation_of, facts_of, model, tool, user
from tests.tables import rows

TASK = "Port the invoice parser to Rust, and never change the public API."
REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected."


def progress(*parts, **settings):
    return progress_of(conversation_of(conversation(*parts)), **settings)


@rows(
    ("task", "go_ahead"),
    [
        (TASK, "continue"),
        ("把发票解析器移植到另一种语言，不要改公共接口。", "继续"),
        ("Перенеси разбор счетов на другой язык, не меняй интерфейс.", "да, дальше"),
        ("請求書のパーサーを別の言語に移植してください。", "はい"),
    ],
)
def test_a_go_ahead_does_not_displace_the_task_and_is_shown_once(task, go_ahead):
    found = progress(
        user("Hello, look at the shop repository."), model("I looked at it."), user(task),
        *(part for _ in range(6) for part in (bash("make"), user(go_ahead))),
    )  # fmt: skip

    assert found.current == (task, go_ahead)


def test_in_a_chat_with_names_each_text_has_its_speaker():
    raws = [
        {"role": "user", "name": "Ana", "content": TASK},
        {"role": "assistant", "name": "Bot", "content": "Ported."},
        {"role": "user", "name": "Ben", "content": "Ben: ok"},
    ]

    found = progress_of(conversation_of(read(raws, "openai")))

    assert (found.current, found.state) == ((f"Ana: {TASK}", "Ben: ok"), ("Bot: Ported.",))


def test_the_state_is_the_paragraphs_of_the_newest_answer():
    found = progress(user(TASK), model("The lexer works.\n\n## Open\n\nThe writer.\n\nShall I go on?"))

    assert found.state == ("The lexer works.", "## Open\nThe writer.", "Shall I go on?")


def test_an_announcement_is_shown_beside_the_answer_before_it():
    account = "The lexer reads all forms of the old parser. " * 5

    found = progress(
        user(TASK), model("Looking."), bash("ls"), model(account), bash("make"), model("Now the writer.")
    )

    assert found.state == (account.strip(), "Now the writer.")


def test_of_a_long_answer_both_ends_are_shown():
    parts = [f"Paragraph {nth} says what it says. " * 12 for nth in range(20)]

    found = progress(user(TASK), model("\n\n".join(parts)))

    assert found.state[0] == parts[0].strip()
    assert found.state[-1] == parts[-1].strip()
    assert sum(map(len, found.state)) <= ANSWER_CHARS


def test_both_ends_of_paragraphs_are_chosen_before_those_between():
    assert ends_of(["aaaa", "bbbb", "cccc", "dddd"], most=8) == ["aaaa", "dddd"]
    assert ends_of(["aaaa", "bbbb", "cccc", "dddd"], most=99) == ["aaaa", "bbbb", "cccc", "dddd"]


def test_earlier_answers_and_the_reasons_of_edits_are_done_before_where_they_do_not_stay():
    reason = "The table needs an index, because every page reads it."
    turns = [
        part for nth in range(9) for part in (user(f"{TASK} {nth}"), model(f"Part {nth} is done. " * 60))
    ]
    parts = (
        user(TASK),
        model(reason),
        tool("Edit", file_path="a.py", old_string="a", new_string="b"),
        model("The index is there, and the pages are fast. " * 9),
        *turns,
    )

    found = progress(*parts)
    staying = progress(*parts, stays=lambda at: at < 4)

    assert found.earlier[0] == reason
    assert any(text.startswith("Part 0 is done.") for text in found.earlier)
    assert not set(found.earlier) & set(found.state)
    assert reason not in staying.earlier


def test_what_another_program_wrote_in_place_of_a_conversation_is_no_request():
    shown = "This session is being continued from a previous conversation. The lexer was ported."

    found = progress(user(shown), user(TASK), model("Ported."))

    assert found.current == (TASK,)


def test_the_newest_plan_shows_what_is_open():
    plan = [{"content": "Lex", "status": "completed"}, {"content": "Write", "status": "pending"}]

    found = progress(
        user(TASK),
        tool("TodoWrite", todos=[{"content": "Old", "status": "pending"}]),
        tool("TodoWrite", todos=plan),
    )

    assert (found.state, found.next) == (("completed: Lex",), ("pending: Write",))


@rows("steps", [[], [{"content": "Lex", "status": "completed"}]])
def test_a_plan_of_which_nothing_is_left_says_so(steps):
    open_before = tool("TodoWrite", todos=[{"content": "Lex", "status": "pending"}])

    assert progress(user(TASK), open_before, tool("TodoWrite", todos=steps)).next == (NOTHING_LEFT,)


def test_tasks_that_are_made_and_updated_one_by_one_are_a_plan():
    found = progress(
        user(TASK),
        tool("TaskCreate", "Task #7 created successfully: Lex", subject="Lex"),
        tool("TaskCreate", "Task #8 created successfully: Write", subject="Write"),
        tool("TaskUpdate", taskId="7", status="completed"),
    )

    assert (found.state, found.next) == (("completed: Lex",), ("pending: Write",))


def test_a_long_plan_is_bounded():
    steps = [{"content": f"Step {nth}", "status": "pending"} for nth in range(40)]

    assert len(progress(user(TASK), tool("TodoWrite", todos=steps)).next) == PLAN_ENTRIES


def test_the_last_run_of_each_command_and_the_commits_have_their_outcome():
    found = progress(
        user(TASK),
        bash("pytest -q", "2 failed, 1 passed in 0.4s"),
        bash("ls"),
        bash("pytest -q", "3 passed in 0.4s"),
        bash("git commit -qm Port && git push", "[main 617fc5e] Port\n 1 file changed"),
        bash("make deploy", REFUSED, failed=True),
    )

    assert found.ran[:2] == ("`pytest -q`: 3 passed in 0.4s", "Committed `617fc5e`: Port")
    assert found.ran[2].startswith("`git commit -qm Port && git push`")
    assert len(found.ran) == 3


def test_runs_of_two_stretches_are_merged_by_command_and_bounded():
    older = [f"`make part{nth}`: ok" for nth in range(2 * MOST_RAN)]

    found = merged_ran(older, ["`make part20`: failed"])

    assert len(found) == MOST_RAN
    assert found[-1] == "`make part20`: failed"
    assert "`make part20`: ok" not in found


def test_the_progress_of_the_newer_stretch_replaces_that_of_the_older():
    older = Facts(state=("The lexer works.",), next=("pending: Write",), ran=("`make`: ok",), current=(TASK,))
    newer = Facts(state=("The writer works.",), ran=("`tox`: ok",))

    asked = "Asked: Shall I go on?\nAnswered: yes"
    answered = Facts(current=(TASK, asked))

    assert (
        merged_facts(answered, Facts(current=("Stop.",))).requests,
        merged_facts(answered, newer).decisions,
    ) == ((TASK,), ())
    assert merged_facts(answered, Facts(current=("Stop.",))).decisions == (asked,)
    assert merged_facts(older, newer) == Facts(
        state=("The writer works.",), next=("pending: Write",), ran=("`make`: ok", "`tox`: ok"),
        earlier=("The lexer works.",), current=(TASK,),
    )  # fmt: skip


def test_progress_is_read_from_the_messages_that_stay_as_well():
    messages = conversation(
        user(TASK), model("The lexer works."), user(f"{TASK} All of it."), model("Ported.")
    )

    found = facts_of(messages, [1])

    assert found.state == ("The lexer works.", "Ported.")
    assert found.current == (f"{TASK} All of it.",)

"""The partition goes by position, counts turns as pairs, and knows what is protected.

What matters most is told by who wrote it, its length and what it changed; never by the same input twice differently.
"""

from __future__ import annotations

from aether.conversation.draft import held_groups
from aether.conversation.partition import (
    cut_prose,
    importance,
    is_brief,
    partition,
    paths_in_call,
)
from aether.conversation.shapes import Facts, Policy, Summary
from aether.conversation.summary import rendered
from aether.messages.convert import read
from aether.messages.model import Block
from tests.conversation.conversations import bash, conversation, model, tool, user
from tests.tables import rows

SUMMARY = rendered(Summary(3, Facts(goals=("Ship it.",)), "Done."))


def eligible(messages, policy=Policy()):  # noqa: B008 - a policy is a constant
    parts = partition(messages, policy)
    held = held_groups(parts, recent=policy.keep_recent_turns, pairs=policy.keep_tool_pairs)
    return parts, [at for at, is_held in enumerate(held) if not is_held and at not in parts.summaries]


def pairs(number):
    return [part for at in range(number) for part in (user(f"question {at}"), model(f"answer {at}"))]


@rows(
    ("meta", "is_protected"),
    [
        ({"protected": True}, True), ({"protected": 1}, True), ({"protected": "true"}, True), ({"protected": "Yes"}, True),
        ({"protected": False}, False), ({"protected": "no"}, False), ({"protected": None}, False), ({"other": True}, False),
        ({"label": "spec"}, True), ({"label": "note"}, False), ({"label": ["spec"]}, False), ("protected", False),
    ],
)  # fmt: skip
def test_a_flag_or_a_label_protects(meta, is_protected):
    raws = [{"role": role, "content": "x"} for role in ("user", "assistant", "user", "assistant")]
    raws[1]["meta"] = meta

    parts = partition(read(raws, "plain"), Policy(protected_labels=("spec",)))

    assert parts.protected == ({1} if is_protected else set())


def test_a_protected_answer_protects_its_call():
    messages = conversation(user("Go."), bash("make"), bash("make test"))
    messages[2].raw["meta"] = {"protected": True}

    assert partition(messages, Policy()).protected == {1, 2}


@rows(
    ("globs", "protected"),
    [
        (("src/store/*.py",), {1, 2}),
        (("lock.py",), {1, 2}),
        (("*.toml",), {3, 4}),
        (("store",), set()),
        (("docs/*", "pyproject.toml"), {3, 4}),
    ],
)
def test_calls_about_protected_paths_are_protected(globs, protected):
    messages = conversation(
        user("Go."),
        tool("Read", "text", file_path="/home/me/src/store/lock.py"),
        bash("cat 'pyproject.toml' | head"),
    )

    assert partition(messages, Policy(protected_paths=globs)).protected == protected


def test_paths_are_found_in_nested_arguments():
    call = Block("call", arguments={"edits": [{"path": "a.py"}, 7], "command": "cp b.py c.py"})

    assert {"a.py", "b.py", "c.py"} <= set(paths_in_call(call))
    assert list(paths_in_call(Block("text", "a.py"))) == []


def test_an_earlier_summary_is_neither_request_nor_turn_nor_protected():
    messages = conversation(user("Ship it."), user(SUMMARY), bash("make"), user("And now?"), model("Done."))

    parts = partition(messages, Policy(protected_roles=("user",)))

    assert parts.summaries == (1,)
    assert (parts.opening, parts.newest) == (0, 4)
    assert parts.turn == [1, 1, 1, 0, 0]
    assert 1 not in parts.protected


def test_calls_that_wait_for_their_results_stay():
    messages = conversation(user("Go."), *(bash(f"make {at}") for at in range(3)), bash("make last", None))

    parts, loose = eligible(messages, Policy(keep_tool_pairs=1))

    assert len(parts.groups) - 1 in parts.pinned
    assert len(loose) == 3


def test_an_old_call_that_was_never_answered_may_go():
    messages = conversation(
        user("Go."), bash("make", None), user("Stop."), *(bash("ls") for _ in range(4)), model("Hm.")
    )

    _, loose = eligible(messages)

    assert loose == [1]


def test_results_without_a_call_are_held_by_nothing():
    raws = [{"role": "user", "content": "a"}, {"role": "tool", "tool_call_id": "x", "content": "lost"}]

    parts, loose = eligible(read(raws, "openai"))

    assert loose == [1]
    assert parts.orphans == {1}


def test_the_newest_text_of_the_user_stays_beside_results():
    use = {"type": "tool_use", "id": "a", "name": "Bash", "input": {"command": "make"}}
    beside = [
        {"type": "tool_result", "tool_use_id": "a", "content": "ok"},
        {"type": "text", "text": "Stop that."},
    ]
    messages = read(
        [{"role": "user", "content": "Go."}, {"role": "assistant", "content": [use]}, {"role": "user", "content": beside},
         {"role": "assistant", "content": "Stopped."}],
        "anthropic",
    )  # fmt: skip

    parts = partition(messages, Policy())

    assert parts.newest == 2
    assert 1 in parts.pinned


def test_gemini_is_kept_what_asked_for_protected_calls():
    calls = [
        {"role": "model", "parts": [{"functionCall": {"name": "run", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "run", "response": {"result": "ok"}}}]},
    ]
    says = [
        {"role": "user", "parts": [{"text": "Go."}]},
        *calls,
        {"role": "model", "parts": [{"text": "Done."}]},
    ]
    raws = [{**raw} for _ in range(3) for raw in says]
    raws[5]["meta"] = {"protected": True}

    parts = partition(read(raws, "gemini"), Policy())

    assert parts.protected == {5, 6}
    assert 3 in parts.pinned  # the group of raws[4], the request


def count(text):
    return len(text.split())


@rows(
    ("text", "brief"),
    [
        ("continue", True),
        ("继续", True),
        ("да, продолжай", True),
        ("", True),
        ("Port the parser of invoices to Rust, and keep the API.", False),
        ("把发票解析器移植到另一种语言，不要改公共接口。", False),
        ("Перенеси разбор счетов на другой язык, не меняй интерфейс.", False),
    ],
)
def test_a_text_shorter_than_a_line_is_brief_in_any_script(text, brief):
    assert is_brief(text) is brief


def test_the_words_of_a_person_matter_more_than_edits_than_answers_than_a_short_remark():
    request, edit, answer, remark = (
        importance(conversation(part), newness=0.5)
        for part in (
            user("The table of invoices is too slow with many rows."),
            tool("Edit", file_path="a.py", old_string="a", new_string="b")[:1],
            model("The table has four columns, and an index on one of them."),
            model("Thanks, sounds good!"),
        )
    )

    assert request > edit > answer > remark


def test_prose_is_cut_where_a_sentence_or_a_line_ends():
    assert cut_prose("One two three.", most=3, count=count) == "One two three."
    assert cut_prose("One two. Three four. Five.", most=4, count=count) == "One two. Three four."
    assert cut_prose("- one two\n- three four\n- five", most=6, count=count) == "- one two\n- three four"
    assert cut_prose("東京は雨。大阪は晴れ。", most=6, count=len) == "東京は雨。"
    assert cut_prose("one two three four", most=2, count=count) == ""

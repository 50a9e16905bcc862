"""Forms of conversations: what is chosen, what a model may write, and what survives several steps."""

from __future__ import annotations

import json

import pytest

from aether.architects.base import Settings
from aether.conversation import archive_levels as forms
from aether.conversation import archive_retention as retention
from aether.conversation.archived import conversation_of, fuller, level, read_conversation, said
from aether.conversation.summarise import write_archived
from aether.errors import InvalidInput
from aether.messages.model import PROVIDER_FORMATS
from aether.tokens.estimate import estimate
from tests.archive.conversations import NOW, TALK, conversation, given
from tests.archive.test_defects import archived
from tests.laws.histories import history
from tests.tables import rows


def test_names_and_numbers_come_before_talk():
    summary = forms.form(conversation(), "summary")["summary"]

    assert "48,213 accounts" in summary
    assert "One can add the index" not in summary
    assert "Let me" not in summary


def test_a_refused_call_was_not_made_and_the_words_of_the_refusal_are_the_users():
    words = "Never touch load.py.\n\nWrite a new module instead."
    refusal = f"The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n{words}"
    edit = {"file_path": "/repo/load.py", "old_string": "a", "new_string": "b"}
    raws = [
        {"role": "user", "content": "Make the import of the orders faster, please."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Edit", "input": edit}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": refusal, "is_error": True}]},
        *({"role": "assistant", "content": f"The weather of day {at} was mild in the afternoon."} for at in range(9)),
    ]  # fmt: skip
    talk, _ = read_conversation({"id": "refused", "messages": raws}, where="refused")

    said_of = [one.text for one in forms.candidates(talk) if one.speaker == "user"]
    assert said_of == [
        "Make the import of the orders faster, please.",
        "Never touch load.py.",
        "Write a new module instead.",
    ]
    for step in ("key_points", "summary"):
        text = forms.text_of(forms.form(talk, step))
        assert all(one in text for one in words.split("\n\n")), step
        assert "Edit" not in text, step
        assert "doesn't want to proceed" not in text, step


def test_an_output_that_speaks_of_a_refusal_is_none():
    said_so = "✓ user rejected when banned\n12 passing (1s)"
    raws = [
        {"role": "user", "content": "Test the bans of users, please."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "npm test"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": said_so}]},
    ]  # fmt: skip
    talk, _ = read_conversation({"id": "tested", "messages": raws}, where="tested")

    assert [one.text for one in forms.candidates(talk)][1:] == ["npm test", "12 passing (1s)"]


def test_a_question_stays_with_its_answer():
    texts = [
        (
            "assistant",
            "There are several ways to read the file, each of them fine. Shall I use PostgreSQL or SQLite?",
        ),
        ("user", "the second"),
    ]
    filler = [
        ("assistant", f"The weather of day {at} was mild and somewhat cloudy in the afternoon.")
        for at in range(6)
    ]
    summary = forms.form(conversation([*filler, *texts, *filler]), "summary")["summary"]

    assert "Shall I use PostgreSQL or SQLite?\nUser: the second" in summary


def test_what_a_person_answers_through_a_tool_is_theirs_and_is_kept():
    asked = {"questions": [{"question": "Which store shall it use?"}]}
    said_so = 'Your questions have been answered: "Which store shall it use? I need to know."="SQLite", "When?"="At night". You can now continue.'
    filler = [
        {
            "role": "assistant",
            "content": f"The weather of day {at} was mild and somewhat cloudy in the afternoon.",
        }
        for at in range(12)
    ]
    raws = [
        {"role": "user", "content": "Move the numbers somewhere safe."}, *filler,
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "AskUserQuestion", "input": asked}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": said_so}]}, *filler,
    ]  # fmt: skip
    talk, _ = read_conversation({"id": "asked", "messages": raws}, where="asked")

    for step in ("key_points", "summary"):
        made = forms.form(talk, step)
        assert '"Which store shall it use? I need to know."="SQLite"' in forms.text_of(made), step
        assert '"When?"="At night"' in forms.text_of(made), step
    roles = {one["role"] for one in forms.form(talk, "key_points")["messages"] if "SQLite" in one["content"]}
    assert roles == {"user"}
    assert forms.metadata(talk)["summary_stats"]["user_message_count"] == 1


def test_of_tools_only_work_and_its_outcome_are_kept():
    messages = [
        {"role": "user", "content": "Please make the tests of the parser pass again, they fail since Monday. It is urgent."},
        {"role": "assistant", "content": "I read the file first.", "tool_calls": [call("a", "read", '{"file_path": "parser.py"}')]},
        {"role": "tool", "tool_call_id": "a", "content": "1 import os\n2 import re\n" * 40},
        {"role": "assistant", "content": None, "tool_calls": [call("b", "bash", '{"command": "cd app && pytest -q tests/parser 2>&1"}')]},
        {"role": "tool", "tool_call_id": "b", "content": "....\n12 passed in 0.4s"},
        {"role": "assistant", "content": "All 12 tests pass now, because the tokenizer skips blank lines."},
    ]  # fmt: skip
    found, _ = read_conversation({"id": "work", "messages": messages})
    content = forms.form(found, "key_points")["messages"]

    assert [(one["role"], one["content"]) for one in content if one["role"].startswith("tool")] == [
        ("tool_call", "pytest -q tests/parser"), ("tool_result", "12 passed in 0.4s"),
    ]  # fmt: skip
    assert "import re" not in str(content)


def call(id, name, arguments):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


@rows("wire", PROVIDER_FORMATS)
def test_every_format_of_messages_can_be_archived(wire):
    found, findings = read_conversation(
        {"id": wire, "messages": history(3, wire, turns=2), "updated_at": NOW.isoformat()}
    )

    assert findings == []
    assert {one.speaker for one in said(found)} >= {"user", "assistant"}
    assert forms.form(found, "summary")["summary"].startswith(("User: ", "Assistant: "))


def test_what_is_protected_is_whole_at_every_level():
    rule = "Keep this one.  Two spaces stay, and so does\n\nthe blank line."
    raw = given(goals=["Ship by May.", {"description": "Move heron.", "decisions": [
        {"description": "Use one rack.", "locked": True}, {"description": "Paint it.", "locked": False}]}])  # fmt: skip
    raw["messages"][1]["meta"] = {"protected": True}
    raw["messages"][1]["content"] = rule
    raw["messages"][3]["content"] += (
        "\n[DECISION] Index on Sundays - LOCKED\n[DECISION] Maybe later - UNLOCKED"
    )
    found, _ = read_conversation(raw)
    wanted = ["Ship by May.", "Move heron.", "Use one rack.", rule, "[DECISION] Index on Sundays - LOCKED"]

    assert found["kept"] == wanted
    for name in ("key_points", "summary", "metadata"):
        step = conversation_of(archived(found, name))
        assert set(step["kept"]) == set(wanted)
        text = forms.text_of(forms.form(step, "metadata"))
        assert all(one in text for one in wanted)
        assert "Paint it." not in text


def test_a_step_from_key_points_measures_against_the_whole():
    """A summary of key points has at most 40 % of what was there at first, and says what part of all facts it has."""
    found = conversation(TALK * 4)
    first = archived(found, "key_points")
    points = conversation_of(first)
    second = archived(points, "summary")
    third = archived(conversation_of(second), "metadata")

    assert second["metrics"]["text_chars"] == first["metrics"]["text_chars"]
    assert len(second["content"]["summary"]) <= 0.4 * first["metrics"]["text_chars"]
    assert len(second["content"]["summary"]) >= 0.7 * len(forms.form(found, "summary")["summary"])
    assert second["metrics"]["facts"] == third["metrics"]["facts"] == first["metrics"]["facts"]
    assert third["metadata"] == second["metadata"] == first["metadata"] == forms.metadata(found)
    assert retention.score(conversation_of(third)) == retention.score(found)
    assert second["metrics"]["ratio"] < first["metrics"]["ratio"] < 1
    again = forms.form(points, "key_points")
    assert forms.measure(points, again)["ratio"] <= first["metrics"]["ratio"]


def test_an_age_counts_from_the_same_time_at_every_level():
    """Also where the last message, of another day, is in no lesser form, and nothing else says when it was."""
    raw = given(days=40, updated_at=None)
    raw["messages"] = [{**one, "timestamp": "2026-01-01"} for one in raw["messages"][:-1]] + raw["messages"][
        -1:
    ]
    # It repeats an earlier one, so it is in no lesser form.
    raw["messages"][-1]["content"] = "Can you find out why?"
    found, _ = read_conversation(raw | {"created_at": "2026-01-01"})
    decided = retention.decide(found, now=NOW)
    assert "2026-11" not in str(forms.form(found, "key_points"))
    for name in ("full", "key_points", "summary", "metadata"):
        step = retention.decide(conversation_of(archived(found, name)), now=NOW)
        assert (step.days, step.level) == (decided.days, decided.level) == (40, "key_points")


@rows("raw", [None, [], "talk", {}, {"messages": None}, {"messages": {"role": "user"}}])
def test_something_else_than_a_conversation_is_refused(raw):
    with pytest.raises(InvalidInput, match="is not a conversation"):
        read_conversation(raw, where="talks[0]")


def test_a_value_among_the_messages_becomes_a_text_and_a_finding():
    found, findings = read_conversation(
        {"id": "x", "messages": ["hi", 5, {"role": "user", "content": "there"}]}
    )

    assert [one.text for one in said(found)] == ["hi", "5", "there"]
    assert [one.where for one in findings] == [
        "conversation.messages[0]",
        "conversation.messages[1]",
        "conversation",
    ]


def test_a_dict_of_a_program_becomes_json():
    """A time of Python is its text; what JSON has no word for is a finding."""
    raw = {
        "id": 7,
        "created_at": NOW,
        "tags": {"a"},
        "messages": ({"role": "user", "content": "hi", "timestamp": NOW},),
    }
    found, findings = read_conversation(raw)

    assert (found["id"], found["session_id"]) == ("7", "7")
    assert found["times"] == [found["created_at"]] == ["2026-11-22T12:00:00.000000Z"]
    assert [(one.code, one.where) for one in findings] == [("no-json", "conversation.tags")]
    assert json.loads(json.dumps(found)) == found


def test_a_conversation_without_an_id_gets_the_same_one_each_time():
    raw = {"messages": [{"role": "user", "content": "hi"}]}
    names = {read_conversation(raw)[0]["id"] for _ in range(2)}

    assert len(names) == 1
    assert names != {read_conversation({"messages": []})[0]["id"]}


def test_levels_have_an_order_and_names():
    assert fuller("metadata", "full") == fuller("full", "summary") == "full"
    with pytest.raises(InvalidInput, match="key_points"):
        level("brief")
    with pytest.raises(InvalidInput, match="written"):
        forms.form(conversation(), "key_points", written="x")


LINES = (
    ("The nightly export of the ledger took four hours.", "nightly export of the ledger takes four hours"),
    ("It lacked an index on ledger_rows.account_id.", "a missing index on ledger_rows.account_id"),
    ("That of migrations/0042_ledger.sql is added on Sundays at 03:00.", "run it on Sundays at 03:00"),
)
WRITTEN = "\n".join(line for line, _ in LINES)
QUOTED = "\n".join(f"{line} «{quote}»" for line, quote in LINES)


def test_what_a_model_writes_is_completed_by_the_rules_it_lacks():
    found = conversation(TALK * 3)
    summary = forms.form(found, "summary", written=WRITTEN)["summary"]

    assert summary.startswith(WRITTEN)
    assert "User: Our nightly" not in summary
    assert "Never write to the live table." in summary
    assert len(summary) <= 0.4 * sum(len(one.text) for one in forms.spoken(found))


@rows(
    "written, fault",
    [
        (QUOTED, ""),
        ("I'm sorry, I can't help with that.", "is a refusal"),
        ("", "is empty"),
        ("We discussed several things and everything went well.", "has no word of"),
        (QUOTED.replace("03:00.", "04:00.").replace("ledger_rows.account_id.", "x.y."), "says 2 of 3 things"),
        ("The export of the ledger was sold to the customer for 31,250 dollars.", "says 1 of 1 things"),
        ((QUOTED + "\n") * 9, "tokens"),
    ],
)
def test_what_a_model_writes_is_judged(written, fault):
    done = write_archived(conversation(TALK), backend=lambda *_: written, settings=Settings(), count=estimate)

    assert fault in str(done.failures[-1:])
    assert (done.prose is None) == bool(fault)


def test_a_model_is_asked_once_and_then_the_sentences_are_chosen():
    found = conversation(TALK * 3)
    asked = []

    def answers(text):
        def summarizer(messages, most, strategy):
            asked.append(strategy)
            return text

        return write_archived(found, backend=summarizer, settings=Settings(), count=estimate)

    assert (answers(QUOTED).prose, asked) == (WRITTEN, ["archive"])
    bad = answers("Sorry, I cannot help with this conversation.")
    assert (bad.prose, [one["error_type"] for one in bad.failures]) == (None, ["Rejected"])
    none = write_archived(found, backend="extractive", settings=Settings(), count=estimate)
    assert (none.prose, none.failures) == (None, [])

"""Messages of the context manager: their type, their weight, and the budget; numbers of requirement 001."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from aether.errors import InvalidInput
from aether.integrations.context_manager import (
    ContextBudget,
    Conversation,
    ConversationMetadata,
    Message,
    MessageMetadata,
    classify,
    importance,
    message_of,
    raw_of,
)
from tests.tables import rows

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def said(role, content, **given):
    age = given.pop("age", timedelta())
    tokens = given.pop("tokens", 0)
    metadata = classify(role, content, given)
    return Message(role, content, timestamp=NOW - age, token_count=tokens, metadata=metadata)


def test_role_and_content_are_enough_and_make_an_id():
    """The requirement's own check failed in the original: "id Field required" (defect 1)."""
    one, other = (Message(role="user", content="test") for _ in range(2))

    assert (one.role, one.content) == ("user", "test")
    assert one.id != other.id
    assert one.timestamp.tzinfo is not None


@rows("content", ["", " \n", None, 3])
def test_a_message_without_text_is_refused(content):
    with pytest.raises(InvalidInput, match="Message content cannot be empty"):
        Message("user", content)


def test_content_is_stripped():
    assert Message("user", " hi \n").content == "hi"


@rows(
    ("given", "words"),
    [
        ({"priority": 7}, "priority must be from 0 to 1, got 7"),
        ({"priority": -3.0}, "priority must be from 0 to 1"),
        ({"message_type": "order"}, "message_type must be one of instruction"),
        ({"colour": "red"}, "metadata must be of source, .*got .'colour'"),
    ],
)
def test_metadata_out_of_range_is_refused(given, words):
    """Invalid values by-passed validation in the original (defect 12)."""
    with pytest.raises(InvalidInput, match=words):
        Message("user", "hi", metadata=classify("user", "hi", given))


def test_an_unknown_role_is_refused():
    with pytest.raises(InvalidInput, match="role must be one of user, assistant"):
        Message("robot", "hi")


@rows(
    ("role", "content", "kind", "priority", "permanent"),
    [
        ("user", "Please look at it", "instruction", 0.8, False),
        ("user", "FIX the lock", "instruction", 0.8, False),
        ("user", "What is it?", "question", 0.6, False),
        ("user", "It rains.", "context", 0.4, False),
        ("user", "The helper crashed", "context", 0.4, False),
        ("user", "A prefix for it", "context", 0.4, False),
        ("user", "recreate the db", "context", 0.4, False),
        ("user", "helpful stuff?", "question", 0.6, False),
        ("system", "Be kind.", "system", 0.9, True),
        ("assistant", "Please wait?", "response", 0.5, False),
        ("tool_call", "{}", "context", 0.5, False),
    ],
)
def test_messages_are_classified_by_words_not_by_parts_of_words(role, content, kind, priority, permanent):
    found = classify(role, content)

    assert (found.message_type, found.priority, found.is_permanent) == (kind, priority, permanent)


def test_what_the_caller_says_is_kept():
    """The original overwrote the caller's metadata (defect 12)."""
    given = {"priority": 0.95, "message_type": "error", "context_tags": ["a"]}

    found = classify("user", "please help", given)

    assert found == MessageMetadata(message_type="error", priority=0.95, context_tags=("a",))
    assert classify("user", "please", found) is found


@rows(
    ("message", "score"),
    [
        (said("user", "please fix"), 1.0),
        (said("user", "why?"), 0.8),
        (said("user", "note"), 0.4),
        (said("user", "a note that is longer than fifty characters in all"[:52] + " ok"), 0.48),
        (said("assistant", "done"), 0.5),
        (said("assistant", "def f(): ..."), 0.65),
        (said("system", "rules"), 1.0),
        (said("user", "note", tokens=101), 0.5),
        (said("user", "note", age=timedelta(hours=12)), 0.2),
        (said("user", "note", age=timedelta(days=9)), 0.04),
        (said("user", "note", age=-timedelta(hours=12)), 0.4),
    ],
)
def test_importance_is_that_of_the_requirement_and_fades(message, score):
    assert importance(message, now=NOW) == pytest.approx(score)


def test_a_time_without_a_zone_is_utc():
    message = Message("user", "hi", timestamp=datetime(2026, 3, 1, 12))  # noqa: DTZ001 - that is the point

    assert message.timestamp == NOW
    assert 0 < message.importance_score <= 1


@rows(("used", "fires"), [(699, False), (700, True), (1500, True)])
def test_the_budget_fires_at_its_threshold(used, fires):
    budget = ContextBudget(1000, used)

    assert budget.should_compress is fires
    assert budget.usage_percentage == min(1.0, used / 1000)
    assert budget.available_tokens == max(0, 900 - used)
    assert budget.over_tokens == max(0, used - 1000)


def test_a_budget_is_never_below_nothing():
    budget = ContextBudget(0)
    budget.add_tokens(5)
    budget.remove_tokens(9)

    assert (budget.used_tokens, budget.usage_percentage) == (0, 0.0)
    budget.add_tokens(7)
    budget.reset()
    assert budget.used_tokens == 0


def test_a_conversation_gives_what_is_asked_for():
    conversation = Conversation("c", ConversationMetadata("c"))
    for role, text in (("system", "a"), ("user", "b"), ("assistant", "c")):
        conversation.add_message(said(role, text, tokens=2))

    assert [one.content for one in conversation.get_messages_by_role("user")] == ["b"]
    assert [one.content for one in conversation.get_recent_messages(2)] == ["b", "c"]
    assert conversation.get_recent_messages(0) == conversation.get_recent_messages(-1) == []
    assert [one.content for one in conversation.get_message_range(0, 2)] == ["a", "b"]
    assert conversation.total_tokens == 6
    assert conversation.metadata.last_active == NOW
    conversation.clear_messages()
    assert [one.content for one in conversation.messages] == ["a"]
    conversation.clear_messages(keep_system=False)
    assert conversation.messages == []


@rows("role", ["system", "user", "assistant"])
def test_a_message_made_plain_reads_back(role):
    message = said(role, "please", tokens=3, context_tags=["x"])

    assert message_of(raw_of(message)) == message


def test_results_answer_the_oldest_open_call_of_their_tool():
    first, second = (said("tool_call", "{}", tool_name=name) for name in ("read", "run"))
    calls = [raw_of(first), raw_of(second)]

    ran = raw_of(said("tool_result", "ok", tool_name="run"), calls)
    read = raw_of(said("tool_result", "text"), [*calls, ran])

    assert (ran["tool_call_id"], read["tool_call_id"]) == (second.id, first.id)
    assert message_of(calls[0]) == first
    assert message_of(ran).role == "tool_result"
    with pytest.raises(InvalidInput, match="none is open"):
        raw_of(said("tool_result", "again"), [*calls, ran, read])

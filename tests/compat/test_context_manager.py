"""The context manager, its messages and budgets, and the defects of the original that it must not repeat (by their numbers)."""

from __future__ import annotations

import gc
from datetime import UTC, datetime, timedelta

import pytest

import aether
from aether.api import tokens as api_tokens
from aether.compat import context_manager
from aether.compat.context_manager import (
    SUMMARY_ID,
    ContextBudget,
    ContextManager,
    Conversation,
    ConversationMetadata,
    Message,
    MessageMetadata,
    classify,
    importance,
    message_of,
    raw_of,
)
from aether.errors import BudgetExceeded, Conflict, InvalidInput
from aether.events.exporters import callback
from tests.tables import rows


@pytest.fixture(params=["of its own", "in a home"])
def manager(request, home):
    """Return what makes managers: in a home of their own, and in a given one."""
    place = home if request.param == "in a home" else None
    return lambda *sizes, **given: ContextManager(*sizes, **{"home": place, **given})


def talk(manager, turns, *, conversation="c", first=0, words=12):
    for nth in range(first, first + turns):
        manager.add_message(
            conversation, "user", f"Look at part {nth}, " + "which is about the store " * (words // 5)
        )
        manager.add_message(conversation, "assistant", f"Part {nth} does its work. " * (words // 5))


def texts(messages):
    return [message.content for message in messages]


def test_messages_are_stored_and_found_again(manager):
    made = manager()
    message = made.add_message("c", "user", " hello ", {"priority": 0.9})
    made.add_message("c", "assistant", "hi")

    context = made.get_context_for_model("c")

    assert texts(context) == ["hello", "hi"]
    assert context[0] == message
    assert (message.metadata.priority, message.token_count > 0) == (0.9, True)
    assert made.list_conversations() == ["c"]


def test_conversations_outlive_the_process(home):
    """Defect 15: nothing was ever persisted."""
    talk(ContextManager(1000, home=home), 20)

    again = ContextManager(1000, home=home)

    assert again.list_conversations() == ["c"]
    assert len(again.create_conversation("d").messages) == 0
    assert again.get_conversation_stats("c")["total_messages"] == 40
    assert again.get_window("c").compressed_summary
    talk(again, 20, first=20)
    assert again.get_conversation_stats("c")["total_messages"] == 80


@pytest.mark.parametrize(("tokens", "fires"), [(699, False), (700, True)])
def test_compression_starts_at_seventy_percent(tokens, fires):
    around = 4
    made = ContextManager(1000, count=len)
    texts_of = [f"{nth:04}".ljust(50 - around, "x") for nth in range(13)]
    for nth, text in enumerate(texts_of):
        made.add_message("c", ("user", "assistant")[nth % 2], text)
    assert made.get_conversation_stats("c")["context_tokens_used"] == 650

    made.add_message("c", "assistant", "y" * (tokens - 650 - around))

    stats = made.get_conversation_stats("c")
    assert stats["total_tokens"] == tokens
    assert (stats["context_tokens_used"] != tokens or stats["context_should_compress"]) is fires


def test_a_decision_of_the_first_message_survives_compression_after_compression(manager):
    """Defects 2 and 3: a second summary replaced the first, and decisions became topic words or nothing."""
    made = manager(1000)
    made.add_message("c", "user", "We decided to use PostgreSQL, because two services write.")
    made.add_message("c", "assistant", "Noted: the budget is 5000 dollars.")

    talk(made, 60)

    window = made.get_window("c")
    assert "PostgreSQL" in " ".join(texts(made.get_context_for_model("c")))
    assert window.compressed_summary
    assert window.budget.used_tokens < window.original_token_count
    assert sum(message.id == SUMMARY_ID for message in window.messages) == 1
    assert "Recent: " in made.get_conversation_summary("c")


def test_permanent_messages_and_those_of_the_system_stay_word_for_word(manager):
    """Defect 8: the sliding window dropped the system and the permanent first."""
    made = manager(1000)
    made.add_message("c", "system", "You are kind.")
    made.add_message("c", "user", "The key facts are permanent.", {"is_permanent": True})
    talk(made, 40)

    found = texts(made.get_context_for_model("c"))

    assert found[0] == "You are kind."
    assert "The key facts are permanent." in found


@pytest.mark.parametrize("limit", [300, 600, 1000, 4000])
def test_a_context_never_exceeds_its_limit(limit, manager):
    made = manager(1000)
    made.add_message("c", "system", "You are kind.")
    talk(made, 30)

    context = made.get_context_for_model("c", max_tokens=limit)

    assert sum(message.token_count for message in context) <= limit
    assert context[0].content == "You are kind."
    assert context[-1].content.startswith("Part 29")


def test_each_model_gets_a_context_that_fits_its_window(manager):
    """Defect 14: 4096 for every model. A larger window has the whole conversation again."""
    made = manager(1000)
    talk(made, 40)

    small, large = (made.get_context_for_model("c", model) for model in (None, "claude-opus-5-5"))
    again = made.get_context_for_model("c")

    assert len(large) == 80
    assert len(small) < 80
    assert texts(small) == texts(again)
    assert made.get_context_for_model("c", "some-model-nobody-knows")


def test_a_context_that_cannot_fit_raises_and_is_not_sent_empty(manager):
    """Defect 7: a message of 2000 tokens in a window of 1000 gave an empty context, and nothing showed it."""
    made = manager(1000)
    made.add_message("c", "system", "a law of many words " * 400)
    made.add_message("c", "user", "Go.")

    stats = made.get_conversation_stats("c")
    assert stats["context_tokens_over"] > 0
    assert stats["context_usage_percentage"] == 1.0
    with pytest.raises(BudgetExceeded):
        made.get_context_for_model("c")
    assert not made.compress_conversation("c")
    talk(made, 2)
    assert not made.compress_conversation("c")
    assert made.get_conversation_stats("c")["total_messages"] == 6


def test_calls_keep_their_results(manager):
    """Defect 10: 4 calls and 5 results were kept."""
    made = manager(1000)
    made.add_message("c", "user", "Read the parts.")
    for nth in range(20):
        made.add_message("c", "tool_call", f'{{"part": {nth}}}', {"tool_name": "read"})
        made.add_message("c", "tool_result", f"part {nth} says much about itself " * 5, {"tool_name": "read"})

    context = made.get_context_for_model("c")

    roles = [message.role for message in context]
    assert roles.count("tool_call") == roles.count("tool_result") > 0
    assert made.get_conversation_stats("c")["messages_by_role"]["tool_call"] == 20
    with pytest.raises(InvalidInput, match="none is open"):
        made.add_message("c", "tool_result", "again")
    with pytest.raises(InvalidInput, match="none is open"):
        made.add_message("new", "tool_result", "first of all")


def test_compressing_by_hand_is_by_tokens(manager):
    """Defect 6: the ratio was of messages, and 0 and 5 were accepted."""
    made = manager(8000)
    talk(made, 30)
    before = made.get_conversation_stats("c")["context_tokens_used"]

    assert made.compress_conversation("c", 0.4)

    stats = made.get_conversation_stats("c")
    assert stats["context_tokens_used"] <= 0.45 * before
    assert stats["context_compressed"]
    assert stats["total_messages"] == 60


@rows("ratio", [0, 1, 5, -0.1])
def test_a_ratio_out_of_range_is_refused(ratio):
    with pytest.raises(InvalidInput, match="target_ratio must be between 0 and 1"):
        ContextManager().compress_conversation("c", ratio)


def test_little_is_not_compressed(manager):
    made = manager()
    made.add_message("c", "system", "rules")
    made.add_message("c", "user", "hi")

    assert not made.compress_conversation("c")
    assert not made.compress_conversation("unknown")


def test_the_unknown_has_nothing(manager):
    made = manager()

    assert made.get_context_for_model("x") == []
    assert made.get_conversation_summary("x") is None
    assert made.get_conversation_stats("x") == {}
    assert made.get_window("x") is None
    assert made.delete_conversation("x") is False
    made.clear_conversation("x")
    assert made.list_conversations() == []


def test_a_conversation_is_not_made_twice(manager):
    """Defect 11: an existing conversation was wiped."""
    made = manager()
    created = made.create_conversation("c", 2000)
    assert created.metadata.context_window_size == 2000
    made.add_message("c", "user", "hi")

    with pytest.raises(Conflict, match="there is a conversation 'c'"):
        made.create_conversation("c")
    assert texts(made.get_context_for_model("c")) == ["hi"]


@pytest.mark.parametrize(("keep", "left"), [(True, ["rules"]), (False, [])])
def test_a_cleared_conversation_keeps_the_system_if_asked(keep, left, manager):
    """Defect 11: what was kept in the conversation was gone from the context."""
    made = manager(1000)
    made.add_message("c", "system", "rules")
    talk(made, 30)

    made.clear_conversation("c", keep_system=keep)

    assert texts(made.get_context_for_model("c")) == left
    made.add_message("c", "user", "anew")
    assert texts(made.get_context_for_model("c")) == [*left, "anew"]


def test_without_a_home_nothing_is_left_behind():
    made = ContextManager()
    made.add_message("c", "user", "hi")
    place = made.home
    assert place.is_dir()

    del made
    gc.collect()

    assert not place.parent.exists()


def test_a_cleared_conversation_is_the_same_after_a_restart(home):
    made = ContextManager(1000, home=home)
    made.add_message("c", "system", "rules")
    talk(made, 30)
    made.clear_conversation("c")
    made.add_message("c", "user", "anew")

    again = ContextManager(1000, home=home)

    assert texts(again.get_context_for_model("c")) == ["rules", "anew"]
    assert again.get_conversation_stats("c")["total_messages"] == 2


def test_a_deleted_conversation_is_not_used_any_more(manager):
    made = manager()
    made.add_message("c", "user", "hi")

    assert made.delete_conversation("c")
    assert made.list_conversations() == []
    assert made.get_context_for_model("c") == []


def test_summaries_in_words(manager):
    made = manager()
    assert made.get_conversation_summary("c") is None
    made.create_conversation("c")
    assert made.get_conversation_summary("c") is None
    for nth in range(7):
        made.add_message("c", "user", f"{nth} " + "x" * 100)

    found = made.get_conversation_summary("c")

    assert found.count("; ") == 4
    assert found.startswith("user: 2 xxx")


def test_stats_have_the_names_of_the_requirement(manager):
    made = manager(1000)
    talk(made, 2)

    stats = made.get_conversation_stats("c")

    assert stats.keys() == {
        "conversation_id", "total_messages", "total_tokens", "session_duration", "messages_by_role",
        "context_usage_percentage", "context_should_compress", "context_compressed", "context_tokens_used",
        "context_tokens_max", "context_tokens_over",
    }  # fmt: skip
    assert stats["messages_by_role"] == {"user": 2, "assistant": 2}
    assert stats["session_duration"] >= 0


@rows(
    ("sizes", "words"),
    [((0,), "default_context_size must be at least 1"), ((10, 0), "compression_threshold must be above 0"),
     ((10, 170), "compression_threshold must be above 0 and at most 1, got 170")],
)  # fmt: skip
def test_sizes_out_of_range_are_refused(sizes, words):
    with pytest.raises(InvalidInput, match=words):
        ContextManager(*sizes)
    with pytest.raises(InvalidInput, match="model_context_size"):
        ContextManager().create_conversation("c", 0)


def test_texts_are_counted_by_script():
    """Defect 15: the estimate for Chinese was a quarter of the truth."""
    made = ContextManager()

    assert made.estimate_tokens("") == 0
    assert made.estimate_tokens("hello world, this is a text") < 12
    assert made.estimate_tokens("这是一个用中文写的句子而且很长" * 2) > 15


@rows("name", [None, "", 7])
def test_an_invalid_name_of_a_conversation_is_rejected(name):
    with pytest.raises(InvalidInput, match="conversation_id must be a text"):
        ContextManager().add_message(name, "user", "Hi.")


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


def test_metadata_of_the_caller_is_kept():
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


def test_a_conversation_gives_messages_by_role_and_range():
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


def test_what_happens_to_a_window_is_exported():
    seen = []
    manager = ContextManager(600, exporter=callback(seen.append))
    for n in range(12):
        manager.add_message(
            "c", "user" if n % 2 == 0 else "assistant", f"Sentence {n} about the harbour. " * 8
        )

    names = [event.name for event in seen]
    assert names.count("window.message_added") == 12
    assert names.count("window.compressed") >= 1
    assert names.count("window.budget") == 12 + names.count("window.compressed")
    added = seen[0].properties
    assert (added["role"], added["max"], added["tokens"] > 0, added["t_est"] > 0) == ("user", 600, True, True)
    (smaller, *_) = [event.properties for event in seen if event.name == "window.compressed"]
    assert smaller["tokens_after"] < smaller["tokens_before"]
    assert "harbour" not in str([event for event in seen if event.name.startswith("window.")])


def test_the_events_of_a_home_go_where_its_configuration_sends_them(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(context_manager, "exporter_of", lambda home: callback(seen.append))
    aether.init(tmp_path / ".aether")

    ContextManager(home=tmp_path / ".aether").add_message("c", "user", "Hello.")

    names = [event.name for event in seen]
    assert names[:2] == ["window.message_added", "window.budget"]
    assert all(name.startswith("compact.") for name in names[2:])


def test_an_exporter_that_fails_disturbs_nobody():
    class Broken:
        def emit(self, event):
            raise OSError("gone")

    assert ContextManager(exporter=Broken()).add_message("c", "user", "Hello.").content == "Hello."


@rows("content", [None, 7, ["x"], b"x", "", " "])
def test_content_that_is_no_text_is_an_error_in_words(content):
    with pytest.raises(InvalidInput, match="cannot be empty"):
        ContextManager().add_message("c", "user", content)


def test_a_threshold_may_be_a_percentage():
    assert (
        ContextManager(1000, 70).compression_threshold
        == ContextManager(1000, 0.7).compression_threshold
        == 0.7
    )
    for wrong in (0, 101, -5):
        with pytest.raises(InvalidInput, match="threshold"):
            ContextManager(1000, wrong)


def test_an_unknown_model_is_warned_of_once(monkeypatch, capsys):
    monkeypatch.setattr(api_tokens, "_REPORTED", {})
    manager = ContextManager()
    manager.add_message("c", "user", "Hello.")

    for model in ("home-made", "home-made", "claude-sonnet-4-5[1m]"):
        manager.get_context_for_model("c", model)

    said = capsys.readouterr().err
    assert said.count("[aether]") == said.count("'home-made' is not known; 8192 tokens are assumed") == 1

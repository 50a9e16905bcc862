"""Conversations as an agent's memory: what is live, what was ever said, and where it is kept."""

from __future__ import annotations

import pytest

from aether.api import compact, conversations
from aether.errors import NotFound

FIRST, SECOND = {"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}


def test_what_is_added_is_live_and_whole(home):
    conversations.add_messages("c", [FIRST], home=home)
    conversations.add_messages("c", [], home=home)
    conversations.add_messages("c", [SECOND], home=home)

    assert (
        conversations.context("c", home=home) == conversations.full_history("c", home=home) == [FIRST, SECOND]
    )
    assert conversations.context("other", home=home) == []
    assert conversations.conversation_ids(home=home) == ["c"]


def test_what_is_taken_back_stays_in_the_whole(home):
    conversations.add_messages("c", [FIRST, SECOND], home=home)

    assert conversations.pop_message("c", home=home) == SECOND
    assert conversations.context("c", home=home) == [FIRST]
    assert conversations.full_history("c", home=home) == [FIRST, SECOND]
    assert conversations.pop_message("nobody", home=home) is None


def test_begun_anew_nothing_is_live(home):
    conversations.add_messages("c", [FIRST], home=home)
    conversations.clear_context("c", home=home)
    conversations.add_messages("c", [SECOND], home=home)

    assert conversations.context("c", home=home) == [SECOND]
    assert conversations.full_history("c", home=home) == [FIRST, SECOND]
    assert conversations.since_cleared("c", home=home) == [SECOND]


def test_what_compactions_replaced_is_part_of_what_was_said_since(home):
    long = [
        {"role": role, "content": f"{nth} and so on. " * 9}
        for nth in range(30)
        for role in ("user", "assistant")
    ]
    conversations.add_messages("c", [FIRST], home=home)
    conversations.clear_context("c", home=home)
    conversations.add_messages("c", long, home=home)
    for _ in range(2):
        live = conversations.context("c", home=home)
        compact.compact("c", live, window=2000, policy="brief", wire="plain", home=home)
        conversations.add_messages("c", [SECOND], home=home)

    assert len(conversations.context("c", home=home)) < 40
    assert conversations.since_cleared("c", home=home) == [*long, SECOND, SECOND]


def test_without_a_home_there_is_a_directory_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    conversations.add_messages("c", [FIRST])

    assert (tmp_path / ".compact" / "conversations").is_dir()
    assert conversations.record_directory(None) == tmp_path / ".compact"
    assert conversations.context("c", home=tmp_path / ".compact") == [FIRST]


def test_a_directory_of_its_own_may_be_named(tmp_path):
    named = tmp_path / "deep" / ".compact"
    assert conversations.context("c", home=named) == []
    assert not named.exists()

    conversations.add_messages("c", [FIRST], home=named)

    assert conversations.context("c", home=named) == [FIRST]


def test_a_home_is_used_where_there_is_one(home, monkeypatch):
    monkeypatch.setenv("AETHER_HOME", str(home))

    assert conversations.record_directory(None) == home


def test_a_named_directory_that_is_no_home_is_refused(tmp_path):
    with pytest.raises(NotFound):
        conversations.add_messages("c", [FIRST], home=tmp_path)


def test_who_passes_the_whole_each_time_goes_on_from_what_was_compacted(home):
    long = [
        {"role": role, "content": f"{nth} and so on. " * 9}
        for nth in range(30)
        for role in ("user", "assistant")
    ]
    assert conversations.resume("c", long, home=home) == long

    compact.compact("c", long, window=2000, wire="plain", home=home)

    found = conversations.resume("c", [*long, FIRST], home=home)
    assert found == [*conversations.context("c", home=home), FIRST]
    assert len(found) < 40
    assert sum(any(one is given for given in long) for one in found) == len(found) - 2
    assert conversations.resume("c", [SECOND, *long], home=home) == [SECOND, *long]
    assert conversations.resume("c", long[:-1], home=home) == long[:-1]


def test_what_was_said_is_read_once_for_as_long_as_nothing_is_added(home, monkeypatch):
    conversations.add_messages("c", [FIRST, SECOND], home=home)
    read = []
    real = conversations.conversations.history
    monkeypatch.setattr(conversations.conversations, "history", lambda log: read.append(log) or real(log))

    for _ in range(3):
        assert conversations.resume("c", [FIRST, SECOND], home=home) == [FIRST, SECOND]
    assert len(read) == 1

    conversations.add_messages("c", [FIRST], home=home)
    assert conversations.resume("c", [FIRST, SECOND], home=home) == [FIRST, SECOND]
    assert conversations.resume("c", [FIRST, SECOND, FIRST, SECOND], home=home)[-1] == SECOND
    assert len(read) == 2


def test_what_is_changed_by_a_caller_is_not_what_was_said(home):
    conversations.add_messages("c", [FIRST, SECOND], home=home)
    given = [dict(FIRST), dict(SECOND)]

    conversations.resume("c", given, home=home)[0]["content"] = "changed"

    assert conversations.resume("c", [FIRST, SECOND], home=home) == [FIRST, SECOND]


def test_few_conversations_are_remembered(home, monkeypatch):
    monkeypatch.setattr(conversations, "KEPT_CONVERSATIONS", 2)
    monkeypatch.setattr(conversations, "_LIVE", {})
    for name in "abc":
        conversations.resume(name, [FIRST], home=home)

    assert len(conversations._LIVE) == 2

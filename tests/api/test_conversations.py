"""Conversations: messages are kept, and checked for a provider."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

import aether
from aether.api import compact, conversations
from aether.api.conversations import check_messages
from aether.errors import Conflict, NotFound
from aether.store import doctor, ledger
from tests import homes
from tests.tables import rows

FIRST, SECOND = {"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}


def test_added_messages_are_live_and_in_the_full_history(home):
    conversations.add_messages("c", [FIRST], home=home)
    conversations.add_messages("c", [], home=home)
    conversations.add_messages("c", [SECOND], home=home)

    assert (
        conversations.context("c", home=home) == conversations.full_history("c", home=home) == [FIRST, SECOND]
    )
    assert conversations.context("other", home=home) == []
    assert conversations.conversation_ids(home=home) == ["c"]


def test_a_removed_message_stays_in_the_full_history(home):
    conversations.add_messages("c", [FIRST, SECOND], home=home)

    assert conversations.pop_message("c", home=home) == SECOND
    assert conversations.context("c", home=home) == [FIRST]
    assert conversations.full_history("c", home=home) == [FIRST, SECOND]
    assert conversations.pop_message("nobody", home=home) is None


def test_after_clearing_nothing_is_live(home):
    conversations.add_messages("c", [FIRST], home=home)
    conversations.clear_context("c", home=home)
    conversations.add_messages("c", [SECOND], home=home)

    assert conversations.context("c", home=home) == [SECOND]
    assert conversations.full_history("c", home=home) == [FIRST, SECOND]
    assert [*conversations.follow("c", None, home=home).said.values()] == [SECOND]


def test_messages_that_compactions_replaced_count_as_added_since_clearing(home):
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
    assert [*conversations.follow("c", None, home=home).said.values()] == [*long, SECOND, SECOND]


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


def test_passing_the_full_history_resumes_from_the_last_compaction(home):
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


def test_a_caller_cannot_change_the_recorded_messages(home):
    conversations.add_messages("c", [FIRST, SECOND], home=home)
    given = [dict(FIRST), dict(SECOND)]

    conversations.resume("c", given, home=home)[0]["content"] = "changed"

    assert conversations.resume("c", [FIRST, SECOND], home=home) == [FIRST, SECOND]


CALL = {"type": "tool_use", "id": "a", "name": "read", "input": {}}

BROKEN = {
    "system": "Be brief.",
    "messages": [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": [CALL]},
        {"role": "user", "content": "On."},
    ],
}


def stream(value):
    return io.BytesIO(json.dumps(value).encode())


def test_a_file_is_checked_for_its_own_provider():
    found = check_messages(stream(BROKEN), provider="anthropic")

    assert (found.wire, found.messages, found.repaired) == ("anthropic", 3, b"")
    assert [one.code for one in found.findings] == ["missing-result"]
    assert found.converted == found.repairs == []


def test_a_file_is_repaired_in_its_own_format():
    found = check_messages(stream(BROKEN), provider="anthropic", repair=True)

    assert [one.code for one in found.repairs] == ["missing-result"]
    assert found.findings == []
    assert json.loads(found.repaired) == {
        "system": "Be brief.",
        "messages": [BROKEN["messages"][0], BROKEN["messages"][2]],
    }


def test_a_file_of_another_provider_is_converted_first():
    found = check_messages(stream(BROKEN), provider="openai", repair=True)

    assert (found.wire, found.provider) == ("anthropic", "openai")
    assert found.findings == []
    assert [raw["role"] for raw in json.loads(found.repaired)["messages"]] == ["system", "user", "user"]


def test_of_a_file_of_several_conversations_one_is_chosen():
    lines = b"".join(
        json.dumps({"messages": [{"role": "user", "content": text}]}).encode() + b"\n" for text in "ab"
    )

    found = check_messages(io.BytesIO(lines), provider="openai", repair=True, nth=1)

    assert found.others == 1
    assert b'"b"' in found.repaired


def test_a_file_that_is_not_there_is_not_found(tmp_path):
    with pytest.raises(NotFound):
        check_messages(tmp_path / "none.json", provider="openai")


@rows(
    ("odd", "code"),
    [
        ({"role": "assistant"}, "empty-content"),
        ({"content": "Who said this?"}, "bad-role"),
        ({"role": "robot", "content": "I."}, "bad-role"),
        ({"role": None, "content": "I."}, "bad-role"),
    ],
)
@rows("body", [False, True])
def test_a_message_that_no_provider_takes_is_reported_and_not_passed_over(odd, code, body):
    listed = [{"role": "user", "content": "Go."}, odd, {"role": "user", "content": "On."}]
    source = {"model": "gpt-4o", "messages": listed} if body else listed

    found = check_messages(stream(source), provider="openai")
    fixed = check_messages(stream(source), provider="openai", repair=True)

    assert [(one.code, one.where) for one in found.findings] == [(code, "messages[1]")]
    assert fixed.findings == []
    assert code in {one.code for one in (*fixed.converted, *fixed.repairs)}


def test_the_words_of_an_agents_own_dialect_are_nothing_wrong():
    listed = [{"role": "human", "content": "Go."}, {"role": "ai", "content": "Gone."}]

    assert check_messages(stream(listed), provider="openai").findings == []


def test_a_line_that_does_not_parse_is_a_finding():
    lines = b'{"role": "user", "content": "Go."}\n{"role": "assis'

    found = check_messages(io.BytesIO(lines), provider="openai")

    assert [(one.level, one.code, one.where) for one in found.findings] == [
        ("warning", "unread-line", "line 2")
    ]


def test_git_ignores_a_directory_of_records_unless_a_person_says_otherwise(tmp_path, monkeypatch):
    monkeypatch.delenv("AETHER_HOME", raising=False)
    for name in ("new", "former", "wanted"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        if name != "new":
            (tmp_path / name / ".compact").mkdir()
        if name == "wanted":
            (tmp_path / name / ".compact" / ".gitignore").touch()
        conversations.add_messages("talk", [{"role": "user", "content": "hello"}])

    assert (tmp_path / "new" / ".compact" / ".gitignore").read_text() == "*\n"
    assert (tmp_path / "former" / ".compact" / ".gitignore").read_text() == "*\n"
    assert (tmp_path / "wanted" / ".compact" / ".gitignore").read_text() == ""


HELLO = [{"role": "user", "content": "a word of mine"}]


def test_a_deleted_conversation_is_in_quarantine_or_nowhere(tmp_path):
    home = homes.fresh(tmp_path)
    conversations.add_messages("talk", HELLO, home=home)
    (kept,) = conversations.delete_conversation("talk", home=home)

    assert "a word of mine" in Path(kept).read_text()
    assert conversations.conversation_ids(home=home) == []
    assert [finding.level for finding in doctor.examine(home)] == ["info"]

    conversations.add_messages("talk", HELLO, home=home)
    (removed,) = conversations.delete_conversation("talk", for_good=True, home=home)
    assert not Path(removed).exists()
    assert conversations.delete_conversation("talk", home=home) == []


def test_an_archived_conversation_is_deleted_for_good(tmp_path):
    home = homes.fresh(tmp_path)
    aether.archive_conversations([{"id": "old", "title": "t", "messages": HELLO}], home=home)

    assert conversations.delete_conversation("old", for_good=True, home=home)
    assert not [path for path in home.rglob("*") if path.is_file() and b"a word of mine" in path.read_bytes()]


def test_a_conversation_of_a_shared_colony_is_not_deleted_here_alone(tmp_path, monkeypatch):
    home = homes.fresh(tmp_path)
    conversations.add_messages("talk", HELLO, home=home)
    monkeypatch.setattr(ledger, "is_shared", lambda _: True)

    with pytest.raises(Conflict):
        conversations.delete_conversation("talk", home=home)


def test_a_conversation_without_a_home_is_deleted(tmp_path, monkeypatch):
    monkeypatch.delenv("AETHER_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    conversations.add_messages("talk", HELLO)

    assert conversations.delete_conversation("talk", for_good=True)
    assert conversations.conversation_ids() == []

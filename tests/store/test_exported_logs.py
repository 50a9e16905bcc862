"""Conversations in an export: what a log holds comes back, older exports are read, and an interrupted import goes on."""

from __future__ import annotations

import json

import pytest

import aether
from aether.api import admin
from aether.api import conversations as api
from aether.errors import AetherError, Conflict, InvalidDocument
from aether.store import conversations, exported_logs, files, history
from tests import homes
from tests.tables import rows

OLD = ("conversation", "history", "context", "compactions")
SECRET = "sk-" + "abcdef1234567890" * 2


@pytest.fixture
def home(tmp_path):
    """Return a new home."""
    return homes.fresh(tmp_path / "home")


@pytest.fixture
def other(tmp_path):
    """Return another new home."""
    return homes.fresh(tmp_path / "other")


def said(*words):
    return [{"role": ("user", "assistant")[at % 2], "content": word} for at, word in enumerate(words)]


def exported(home):
    """Return an export that was written to a file and read back."""
    return json.loads(json.dumps(aether.export(home=home)))


def contents(log):
    return (
        [one["content"] for one in history.history(log)], [one["content"] for one in history.context(log)],
    )  # fmt: skip


def test_a_context_keeps_its_settings_snapshots_and_times(home, other):
    conversations.extend(home, "ctx", said("One", "Two", f"The key is {SECRET}"), now=homes.NOW)
    conversations.set_settings(
        home, "ctx", {"window": 8192, "mode": "planning", "tools": [{"name": "a"}]}, now=homes.NOW
    )
    log = conversations.load(home, "ctx")
    held = {"id": "snap_1", "purpose": "rollback", "tokens": 5}
    conversations.take_snapshot(home, "ctx", held, now=homes.NOW, read=log)
    conversations.extend(home, "ctx", said("Three"), now=homes.later(60))
    conversations.set_settings(home, "ctx", {"system": "Be brief."}, now=homes.NOW)
    found = exported(home)

    admin.import_export(found, home=other)

    assert SECRET not in json.dumps(found)
    one, two = (conversations.load(place, "ctx") for place in (home, other))
    assert two.settings == one.settings
    assert two.snapshots == one.snapshots
    assert (two.context, two.uncompacted, two.lines) == (one.context, one.uncompacted, one.lines)
    assert contents(two)[0][:2] == ["One", "Two"]
    assert one.times == two.times
    assert [one.code for one in aether.examine(home=other) if one.level != "info"] == []
    assert exported(other)["conversations"] == found["conversations"]


def _of_older_release(found):
    """Return an export as an older release made it."""
    talks = [{key: one[key] for key in OLD} for one in found["conversations"]]
    return found | {"conversations": talks}


@rows(
    "make",
    [lambda found: found, _of_older_release, lambda found: json.loads(json.dumps(found, sort_keys=True))],
    ids=str,
)
def test_messages_that_were_taken_back_are_not_doubled(tmp_path, make):
    home, other = homes.fresh(tmp_path / "home"), homes.fresh(tmp_path / "other")
    conversations.extend(home, "popped", said("One", "Two", "Three", "Two"), now=homes.NOW)
    conversations.pop(home, "popped", now=homes.NOW)
    conversations.extend(home, "cleared", said("Before", "it"), now=homes.NOW)
    conversations.clear(home, "cleared", now=homes.NOW)
    conversations.extend(home, "cleared", said("After", "Before"), now=homes.NOW)

    admin.import_export(make(exported(home)), home=other)

    assert contents(conversations.load(other, "popped")) == (
        ["One", "Two", "Three", "Two"], ["One", "Two", "Three"],
    )  # fmt: skip
    assert contents(conversations.load(other, "cleared")) == (
        ["Before", "it", "After", "Before"], ["After", "Before"],
    )  # fmt: skip
    assert [one.code for one in aether.examine(home=other) if one.level != "info"] == []


@rows("make", [lambda found: found, _of_older_release], ids=str)
def test_a_compacted_conversation_goes_on(tmp_path, make):
    home, other = homes.fresh(tmp_path / "home"), homes.fresh(tmp_path / "other")
    long = said(*(f"Message {n} about the export of the ledger. " * 40 for n in range(20)))
    api.add_messages("talk", long, home=home)
    aether.compact("talk", api.context("talk", home=home), window=4000, home=home)
    api.add_messages("talk", said("And one more."), home=home)

    admin.import_export(make(exported(home)), home=other)

    assert api.context("talk", home=other) == api.context("talk", home=home)
    assert contents(conversations.load(other, "talk")) == contents(conversations.load(home, "talk"))
    undone = aether.undo_compaction("talk", home=other).messages
    assert undone == aether.undo_compaction("talk", home=home).messages
    assert [one.code for one in aether.examine(home=other) if one.level != "info"] == []


def test_an_import_that_was_interrupted_is_repeated_and_does_the_rest(home, other, monkeypatch):
    homes.add(home, "item-1", "A note.")
    for name in ("a", "b"):
        conversations.extend(home, name, said("One", "Two", "Three"), now=homes.NOW)
        conversations.pop(home, name, now=homes.NOW)
    given = {"id": "aged", "created_at": "2026-03-01", "messages": said("Old", "talk")}
    aether.archive_conversations([given, given | {"id": "older"}], home=home)
    found = exported(home)
    reached, real = [], files._replace

    class Killed(BaseException):
        """What no handler of the import takes."""

    for call in range(1, 400):
        with monkeypatch.context() as patch:
            calls = [0]

            def replace(temp, path, calls=calls, call=call):
                calls[0] += 1
                if calls[0] == call:
                    raise Killed
                real(temp, path)

            patch.setattr(files, "_replace", replace)
            try:
                admin.import_export(found, home=other)
            except Killed:
                held = [one.id for one in conversations.stored_conversations(other)]
                assert all(contents(conversations.load(other, one))[1] == ["One", "Two"] for one in held)
                reached.append((len(held), aether.list_working_memory_items(home=other) != []))
                continue
        break

    assert len(set(reached)) > 2
    assert [one.id for one in conversations.stored_conversations(other)] == ["a", "b"]
    assert {one.id for one in aether.list_archived(home=other)} == {"aged", "older"}
    assert len(aether.list_working_memory_items(home=other)) == 1
    assert [one.code for one in aether.examine(home=other) if one.level != "info"] == []
    with pytest.raises(Conflict, match="not empty"):
        admin.import_export(found, home=other)


HARMS = {
    "too few": lambda one: one["records"].pop(1), "too many": lambda one: one["history"].append(one["history"][0]),
    "none": lambda one: one.update(records=[]), "no list": lambda one: one.update(records={"a": 1}),
    "no record": lambda one: one["records"].append(5), "a large number": lambda one: one["records"][1].update(n=10**12),
    "large runs": lambda one: one["records"].append({"line": 9, "step": 1, "before": [[1, 10**12]], "after": [], "receipt": {}, "at": ""}),
    "a run that ends before it starts": lambda one: one["records"].append({"line": 9, "step": 1, "before": [[1, 10**9], [10**9, 1]], "after": [], "receipt": {}, "at": ""}),
    "a large step": lambda one: one["records"].append({"line": 9, "step": 10**12, "before": [], "after": [], "receipt": {}, "at": ""}),
    "another context": lambda one: one["context"].pop(), "half a step": lambda one: one["records"].append({"line": 9, "step": 1}),
}  # fmt: skip


@rows("harm", HARMS.values(), ids=str)
def test_records_that_do_not_fit_are_refused_before_anything_is_stored(tmp_path, harm):
    home, other = homes.fresh(tmp_path / "home"), homes.fresh(tmp_path / "other")
    conversations.extend(home, "a", said("One", "Two"), now=homes.NOW)
    conversations.extend(home, "b", said("One", "Two"), now=homes.NOW)
    found = exported(home)
    harm(found["conversations"][1])

    for dry_run in (True, False):
        with pytest.raises(InvalidDocument):
            admin.import_export(found, dry_run=dry_run, home=other)
    assert conversations.stored_conversations(other) == []


def test_an_id_with_a_secret_is_the_same_in_the_records(home, other):
    conversations.extend(home, SECRET, said("One"), now=homes.NOW)
    admin.import_export(exported(home), home=other)
    assert contents(conversations.load(other, SECRET)) == (["One"], ["One"])
    with pytest.raises(AetherError):
        exported_logs.records(other, {"conversation": "a", "history": [object()]}, now=homes.NOW)

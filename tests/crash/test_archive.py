"""A crash at any system call leaves a step of the archive whole or absent: nothing is lost, and running again ends it, once."""

from __future__ import annotations

import gc
import json
from datetime import timedelta

import pytest

from aether.api.archive import (
    age_archive,
    archive_conversations,
    delete_archived,
    list_archived,
    read_archived,
    restore_conversation,
    update_retention_policy,
    verify_archive,
)
from aether.store import archive_store, conversations, doctor, history
from aether.store import record_files as records
from aether.store.snapshot import load
from tests import children, homes
from tests.crash import faults
from tests.tables import rows

LIVE, GIVEN = "user:42", "given"
LATER = homes.NOW + timedelta(days=100)
YEARS_LATER = homes.NOW + timedelta(days=500)
WORDS = [
    "Let us choose a database. Which one stores JSON well?",
    "Decision: we use Postgres 16 on port 5432, because it stores JSON. I looked at several others for a while.",
    "Thanks. The settings are in src/db/main.py. Nothing else is open today. The weather is nice.",
]


def said(*words):
    return [{"role": ("user", "assistant")[at % 2], "content": word} for at, word in enumerate(words)]


def _talked(home):
    """A home with a live conversation."""
    homes.fresh(home.parent)
    conversations.extend(home, LIVE, said(*WORDS), now=homes.NOW)


def _given(home):
    """A home with an archived dict, too."""
    _talked(home)
    given = {"id": GIVEN, "title": "Database", "created_at": "2026-03-01T10:15:00Z", "messages": said(*WORDS)}
    archive_conversations([given], home=home)


def _aged(home):
    """A home in which both have aged."""
    _given(home)
    _age(home)


def _age(home):
    age_archive(now=LATER, home=home)


def _age_more(home):
    age_archive(now=YEARS_LATER, home=home)


def _restore(home):
    restore_conversation(LIVE, home=home)


def _add(home):
    both = [
        {"id": name, "created_at": "2026-03-01T10:15:00Z", "messages": said(*WORDS)}
        for name in ("one", "two")
    ]
    archive_conversations(both, home=home)


def _delete(home):
    delete_archived(LIVE, home=home)


CASES = {
    "age a live conversation": (_talked, _age),
    "age a dict": (_given, _age),
    "age again, after the grace": (_aged, _age_more),
    "restore": (_aged, _restore),
    "add": (_talked, _add),
    "delete": (_aged, _delete),
}


def seen(home):
    """Return what a new reader finds of each conversation, and what is left of its fuller form."""
    found = {}
    for one in conversations.stored_conversations(home):
        found[one.id] = one.path.read_bytes()
    for name in archive_store.names(home):
        value = archive_store.read(home, name)
        if value["id"] not in found:  # the log is removed last
            rest = archive_store.read_grace(home, value["grace"]) if value["grace"] else b""
            found[value["id"]] = (
                value["level"],
                json.dumps(value["content"]),
                len(value["steps"]),
                bool(rest),
            )
    return found


def receipts(home):
    return [
        (record["conversation"], record["from"], record["to"], record["rule"])
        for _, record in records.records(load(home), "receipts")
        if record.get("kind") == "archive"
    ]


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning"
)  # what an exception cut short is closed by the collector
@pytest.mark.parametrize("kind", ["raised", "killed"])
@pytest.mark.parametrize("case", CASES)
def test_a_fault_at_any_call_loses_nothing_and_is_ended_by_the_next_run(case, kind, chosen, tmp_path, copies):
    make, act = CASES[case]
    original = tmp_path / "original" / ".aether"
    make(original)
    archive_store.rebuild_index(original)
    before = seen(original)
    for _ in range(2):  # the first time reads what stays in memory
        home = copies(original)
        with faults.injected(faults.Calls()) as measured:
            act(home)
    after, wanted = seen(home), sorted(receipts(home))
    assert after != before

    for number, call, fault in chosen(faults.cases(measured.names, kind)):
        home = copies(original)
        where = f"{fault.name} at call {number} ({call})"
        faults.acknowledged(lambda home=home: act(home), faults.Calls(number, fault))
        found = seen(home)
        assert all(_is_one_of(one, before.get(name), after.get(name)) for name, one in found.items()), where
        assert before.keys() & after.keys() <= found.keys(), where
        if case != "restore" or LIVE in {one.id for one in list_archived(home=home)}:
            act(home)
        else:
            doctor.repair(home, now=LATER)
        assert seen(home) == after, where
        assert sorted(receipts(home)) == wanted, where
        doctor.repair(home, now=LATER)
        assert seen(home) == after, where
        assert [one for one in doctor.examine(home) if one.level != "info"] == [], where
        assert {one.id for one in list_archived(home=home)} == {
            name for name, one in after.items() if not isinstance(one, bytes)
        }

    gc.collect()
    conversations._CACHE.clear()
    assert len(measured.names) >= 8


def _is_one_of(one, before, after):
    return one in (before, after) or (
        isinstance(one, tuple) and isinstance(after, tuple) and one[0] in ("summary", "metadata")
    )


def test_two_processes_that_age_at_once_lose_nothing_and_age_once(tmp_path):
    home = tmp_path / ".aether"
    homes.fresh(home.parent)
    for nth in range(6):
        conversations.extend(home, f"c{nth}", said(*WORDS), now=homes.NOW)
    logs = {one.id: one.path.read_bytes() for one in conversations.stored_conversations(home)}

    def act():
        age_archive(now=LATER, home=home)

    started = [children.start(act) for _ in range(3)]
    assert [children.ended(one) for one in started] == [0, 0, 0]
    age_archive(now=LATER, home=home)

    assert sorted(one[0] for one in receipts(home)) == sorted(logs)
    assert {one.id: one.level for one in list_archived(home=home)} == dict.fromkeys(logs, "summary")
    assert verify_archive(home=home) == []
    for name, log in logs.items():
        restore_conversation(name, home=home)
        assert conversations.path_of(home, name).read_bytes() == log


def test_a_conversation_that_is_written_to_while_it_ages_is_not_lost(tmp_path, monkeypatch):
    home = tmp_path / ".aether"
    _talked(home)
    real = archive_store.encoded

    def encoded(value):
        monkeypatch.setattr(archive_store, "encoded", real)
        conversations.extend(home, LIVE, said("One more word."), now=LATER)
        return real(value)

    monkeypatch.setattr(archive_store, "encoded", encoded)
    done = age_archive(now=LATER, home=home)

    assert [one.where for one in done.failed] == [LIVE]
    assert done.done == []
    assert history.history(conversations.load(home, LIVE))[-1]["content"] == "One more word."
    assert age_archive(now=LATER, home=home).plan == []


@rows("reached", [["log", "archive"], ["log", "archive", "grace"]])
def test_a_log_that_went_on_after_a_killed_step_is_the_truth(reached, tmp_path, monkeypatch):
    home = tmp_path / ".aether"
    _talked(home)
    monkeypatch.setattr(conversations, "retire", lambda *_args, **_named: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        age_archive(now=LATER, home=home)
    monkeypatch.undo()
    conversations.extend(home, LIVE, said("One more word."), now=LATER)

    assert age_archive(now=LATER, home=home).plan == []
    assert history.history(conversations.load(home, LIVE))[-1]["content"] == "One more word."
    assert list_archived(home=home) == []
    assert doctor.examine(home) == []


def test_a_restored_log_is_the_same_and_goes_on(tmp_path):
    home = tmp_path / ".aether"
    _talked(home)
    conversations.set_settings(home, LIVE, {"window": 8192}, now=homes.NOW)
    log = conversations.path_of(home, LIVE).read_bytes()
    _age(home)
    assert not conversations.path_of(home, LIVE).parent.exists()

    restored = restore_conversation(LIVE, home=home)

    assert restored.exact
    assert conversations.path_of(home, LIVE).read_bytes() == log
    conversations.extend(home, LIVE, said("It goes on."), now=LATER)
    assert len(history.history(conversations.load(home, LIVE))) == len(WORDS) + 1
    assert conversations.load(home, LIVE).settings == {"window": 8192}
    assert doctor.examine(home) == []


def test_a_clock_that_was_set_back_ages_nothing_and_keeps_the_grace(tmp_path):
    home = tmp_path / ".aether"
    _aged(home)
    found = seen(home)

    for now in (homes.NOW - timedelta(days=4000), homes.NOW, LATER):
        assert age_archive(now=now, home=home).done == []
        assert seen(home) == found


@rows(("days", "level", "share"), [(31, "key_points", 0.9), (100, "summary", 0.6), (400, "metadata", 0.2)])
def test_space_falls_when_the_grace_is_over(days, level, share, tmp_path):
    home = tmp_path / ".aether"
    homes.fresh(home.parent)
    update_retention_policy(
        {"important_threshold": 1, "preserve_threshold": 1, "summary_threshold": 1}, home=home
    )
    conversations.extend(
        home, LIVE, said(*(f"{n}. {word}" for n in range(40) for word in WORDS)), now=homes.NOW
    )
    before, now = _bytes(home), homes.NOW + timedelta(days=days)
    first = age_archive(now=now, home=home)
    during = _bytes(home)
    second = age_archive(now=now + timedelta(days=30), home=home)
    after = _bytes(home)

    assert read_archived(LIVE, home=home)["level"] == level
    assert after < during
    assert after < share * before
    assert (first.saved_bytes, second.saved_bytes) == (before - during, during - after)
    assert [one["rule"] for one in second.done] == ["grace over"]
    assert read_archived(LIVE, home=home)["grace"] is None
    assert archive_store.grace_names(home) == []
    assert not restore_conversation(LIVE, home=home).exact


def _bytes(home):
    places = [*(home / "archive").rglob("*"), *(home / "conversations").rglob("history.jsonl")]
    return sum(one.stat().st_size for one in places if one.is_file() and "index.sqlite" not in one.name)

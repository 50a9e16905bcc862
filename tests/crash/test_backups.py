"""A crash at any system call of a backup or a restore, and backups beside writers.

Older backups stay whole, the next backup finishes, and a home is restored whole or not at all.
"""

from __future__ import annotations

import concurrent.futures as futures
import gc
import shutil
import time

import pytest

import aether
from aether.store import conversations, doctor, history, spool
from aether.store.commit import fold_home
from tests import effort, homes
from tests.api.test_backup import content
from tests.children import ended, start
from tests.crash import faults

WRITERS = 4


class Inline(futures.Executor):
    """An executor that does its work at once, so that the system calls come in the same order each time."""

    def __init__(self, workers):
        pass

    def submit(self, work, *given):
        done = futures.Future()
        try:
            done.set_result(work(*given))
        except BaseException as reason:
            done.set_exception(reason)
        return done


@pytest.fixture
def in_order(monkeypatch):
    monkeypatch.setattr(futures, "ThreadPoolExecutor", Inline)


@pytest.fixture
def backed_up(tmp_path, unsynced):
    """A home that changed since its last backup, which is beside it."""
    home = homes.fresh(tmp_path / "original")
    homes.add(home, "first")
    conversations.extend(home, "talk", [{"role": "user", "content": "one"}], now=homes.NOW)
    fold_home(home, now=homes.NOW)
    aether.create_backup(str(home.parent / "backups"), home=home)
    shutil.copytree(home, home.parent / "before")
    homes.add(home, "second")
    conversations.extend(home, "talk", [{"role": "user", "content": "two"}], now=homes.NOW)
    return home


def _copied(copies, original):
    """Return a copy of a home, with its backups beside it."""
    home = copies(original)
    for name in ("backups", "before"):
        shutil.copytree(original.parent / name, home.parent / name)
    return home


def _create(home):
    aether.create_backup(str(home.parent / "backups"), home=home)


def _restore(home):
    aether.restore_backup(str(home.parent / "backups"), home=home.parent / "new")


def _restored(home, id=None):
    """Return what a backup of the home restores."""
    place = aether.restore_backup(str(home.parent / "backups"), id, home=home.parent / "looked").home
    found = content(place)
    shutil.rmtree(place)
    return found


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("kind", ["raised", "killed"])
def test_a_fault_of_a_backup_leaves_older_ones_whole_and_the_next_one_finishes(
    kind, chosen, backed_up, copies, in_order
):
    for _ in range(2):  # the first time imports
        home = _copied(copies, backed_up)
        with faults.injected(faults.Calls()) as calls:
            _create(home)

    for number, name, fault in chosen(faults.cases(calls.names, kind)):
        home = _copied(copies, backed_up)
        place, where = str(home.parent / "backups"), f"{fault.name} at call {number} ({name})"
        oldest = aether.backups(place)[0].id
        done = faults.acknowledged(lambda home=home: _create(home), faults.Calls(number, fault))

        assert aether.verify_backup(place) == [], where
        assert len(aether.backups(place)) in ([2] if done else [1, 2]), where
        assert _restored(home, oldest) == content(home.parent / "before"), where
        _create(home)
        assert aether.verify_backup(place) == [], where
        assert _restored(home) == content(home), where
    gc.collect()
    assert len(calls.names) > 100


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("kind", ["raised", "killed"])
def test_a_fault_of_a_restore_leaves_a_whole_home_or_none(kind, chosen, backed_up, copies, in_order):
    for _ in range(2):
        home = _copied(copies, backed_up)
        with faults.injected(faults.Calls()) as calls:
            _restore(home)
    held = content(backed_up.parent / "before")

    for number, name, fault in chosen(faults.cases(calls.names, kind)):
        home = _copied(copies, backed_up)
        new, where = home.parent / "new", f"{fault.name} at call {number} ({name})"
        done = faults.acknowledged(lambda home=home: _restore(home), faults.Calls(number, fault))

        assert new.exists() or not done, where
        if new.exists():
            assert content(new) == held, where
            continue
        _restore(home)
        assert content(new) == held, where
        assert not [*home.parent.glob("new.*.restoring")], where
    gc.collect()
    assert len(calls.names) > 100


def _work(home, who, least):
    """Write in every way that there is until the backups are done; note what was acknowledged, in order."""
    number = 0
    while number < least or not (home / "done").exists():
        aether.add_working_memory_item(f"writer {who} notes number {number}", "observation", home=home)
        conversations.extend(
            home, f"talk {who}.{number // 5}", [{"role": "user", "content": f"{who}.{number}"}], now=homes.NOW
        )
        conversations.extend(home, "all", [{"role": "user", "content": f"{who}.{number}"}], now=homes.NOW)
        spool.put(str(home), {"event": "Stop", "session": str(who), "at": "2026-03-01T10:15:00Z"})
        if number % 3 == who % 3:
            fold_home(home, now=homes.NOW)
        number += 1


def _look(home, place, acknowledged):
    """Restore the newest backup, and see that it is a whole home with everything from before it was made."""
    restored = aether.restore_backup(place, home=home.parent / "looked").home
    found = [one for one in doctor.examine(restored) if one.level != "info"]
    assert found == [], found
    held = {
        item["content"] for item in homes.reopened(restored).documents["memory"]["working_memory"]["items"]
    }
    assert acknowledged <= held
    for stored in conversations.stored_conversations(restored):
        said = [
            one["content"] for one in history.history(conversations.load(restored, stored.id, whole=True))
        ]
        for who in range(WRITERS):
            mine = [int(text.partition(".")[2]) for text in said if text.startswith(f"{who}.")]
            assert mine == list(range(mine[0], mine[0] + len(mine))) if mine else True
    shutil.rmtree(restored)


# Beside each of them the writers go on, so that the next one is larger.
@pytest.mark.parametrize("times", [2, pytest.param(25 if effort.FULL_TRIALS else 10, marks=pytest.mark.slow)])
def test_each_backup_beside_writers_is_a_whole_home_and_nobody_stops(home, times, tmp_path, unsynced):
    place = str(tmp_path / "backups")
    writers = [start(_work, home, who, times) for who in range(WRITERS)]
    try:
        for _ in range(times):
            before = {
                item["content"]
                for item in homes.reopened(home).documents["memory"]["working_memory"]["items"]
            }
            aether.create_backup(place, home=home)
            _look(home, place, before)
            time.sleep(0.05)
    finally:
        (home / "done").touch()
    assert [ended(child) for child in writers] == [0] * WRITERS
    assert aether.verify_backup(place) == []
    assert {one.code for one in doctor.examine(home) if one.level != "info"} == set()


def _back_up(home, place, times):
    for _ in range(times):
        aether.create_backup(place, home=home)


def test_processes_that_back_up_to_one_place_disturb_nobody(home, tmp_path, unsynced):
    place = str(tmp_path / "backups")
    children = [start(_back_up, home, place, 3) for _ in range(3)]

    assert [ended(child) for child in children] == [0] * 3
    assert len(aether.backups(place)) == 9
    assert aether.verify_backup(place) == []

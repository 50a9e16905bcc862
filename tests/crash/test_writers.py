"""Many writers at once lose nothing, and no reader ever sees a state that is not whole."""

from __future__ import annotations

import json
import os
import time

import pytest

import aether
from aether.store import doctor, snapshot
from aether.store.commit import fold_home
from tests import effort, homes
from tests.children import ended, start

WRITERS = 16
# Each of them reads and writes what all have added.
ADDITIONS = 200 if effort.FULL_TRIALS else 60
READERS = 2
LEAST_READS, LEAST_FOLDS = 20, 5


def write(home, who):
    """Add items, and note the ids that were acknowledged."""
    made = [
        aether.add_working_memory_item(f"writer {who} notes number {number}", "observation", home=home)
        for number in range(ADDITIONS)
    ]
    (home / f"made{who}").write_text("\n".join(made))


def read(home, who):
    """Read until the writers are done; every state is whole, and none is older than the one before."""
    reads = count = revision = 0
    while reads <= LEAST_READS or not (home / "done").exists():
        found = snapshot.load(home) if reads % 3 else homes.reopened(home)
        working = found.documents["memory"]["working_memory"]
        held = [item["id"] for item in working["items"]]
        assert working["current_tokens"] == sum(item["token_count"] for item in working["items"])
        assert len(set(held)) == len(held) >= count
        assert found.revision >= revision
        reads, count, revision = reads + 1, len(held), found.revision


def fold(home):
    """Fold every now and then until the writers are done."""
    folds = 0
    while folds <= LEAST_FOLDS or not (home / "done").exists():
        fold_home(home, now=homes.NOW)
        folds += 1
        time.sleep(0.1)


def save(home, times):
    """Save memory.json as an editor does, with another text each time that the one before was taken from its place."""
    path = home / "data" / "memory.json"
    for number in range(times):
        value = json.loads(path.read_bytes())
        value["working_memory"]["description"] = f"edit number {number}."
        new = path.with_name("memory.json.new")
        new.write_text(json.dumps(value, indent=4))
        mine = new.stat().st_ino
        os.replace(new, path)
        while path.stat().st_ino == mine:
            time.sleep(0.0005)


def add_and_fold(home, who):
    number = 0
    while not (home / "done").exists():
        aether.add_working_memory_item(f"writer {who} notes number {number}", "observation", home=home)
        fold_home(home, now=homes.NOW)
        number += 1


@pytest.mark.parametrize("times", [15, pytest.param(60, marks=pytest.mark.slow)])
def test_no_edit_of_a_person_vanishes_beside_three_folding_writers(home, times):
    editor = start(save, home, times)
    writers = [start(add_and_fold, home, who) for who in range(3)]

    codes = [ended(editor)]
    (home / "done").touch()
    codes += [ended(child) for child in writers]
    fold_home(home, now=homes.NOW)

    assert codes == [0] * 4
    everything = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    removed = [number for number in range(times) if f"edit number {number}.".encode() not in everything]
    assert removed == []
    assert {one.code for one in doctor.examine(home)} <= {"kept-edit", "quarantine"}


@pytest.mark.slow
def test_sixteen_writers_with_readers_and_a_folder_lose_nothing(home):
    homes.configure(home, "[store]\nlock_timeout_seconds = 600\n")  # a busy machine is no failure
    writers = [start(write, home, who) for who in range(WRITERS)]
    others = [start(read, home, who) for who in range(READERS)] + [start(fold, home)]

    codes = [ended(child) for child in writers]
    (home / "done").touch()
    codes += [ended(child) for child in others]

    assert codes == [0] * (WRITERS + READERS + 1)
    made = [name for who in range(WRITERS) for name in (home / f"made{who}").read_text().split()]
    held = homes.reopened(home).documents["memory"]["working_memory"]["items"]
    assert len(made) == len(set(made)) == WRITERS * ADDITIONS
    assert sorted(made) == sorted(item["id"] for item in held)
    assert sorted(item["content"] for item in held) == sorted(
        f"writer {who} notes number {number}" for who in range(WRITERS) for number in range(ADDITIONS)
    )
    assert homes.ids(home)  # the token total is exact
    assert doctor.examine(home) == []

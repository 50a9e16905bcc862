"""A crash at any system call of an erasing: the home loads at once, and doing it again leaves nothing."""

from __future__ import annotations

import gc
import json
import os
import signal
import threading
import time
from contextlib import suppress

import pytest

from aether.api import admin as homes_of
from aether.api import conversations
from aether.api import forget as api_forget
from aether.errors import AetherError, Conflict
from aether.store import conversations as store_conversations
from aether.store import doctor
from aether.store.commit import fold_home
from aether.store.undo import states_since
from tests import children, homes
from tests.api.test_erase import holders
from tests.api.test_memory_tool import tool
from tests.crash import faults

TEXT = "Quorvex-77"


def planted(home):
    """A home that holds the text in a document, its backup, the history, the archive, a note and a conversation."""
    homes.fresh(home.parent)
    homes.add(home, "one", f"it is {TEXT}")
    homes.add(home, "two", "innocent")
    fold_home(home, now=homes.NOW)
    homes.remove(home, "one")
    homes.add(home, "three", f"{TEXT} again")
    tool(home, "create", path=f"/memories/{TEXT}.md", file_text=f"a {TEXT}")
    conversations.add_messages(TEXT, [{"role": "user", "content": TEXT}], home=home)
    homes.add(home, "four", f"{TEXT} in the journal")


def erase(home):
    api_forget.erase(match=TEXT, home=home)


def seen(home):
    """All that a reader sees: the state at every revision, the notes, what was said."""
    snapshot = homes.reopened(home)
    store_conversations._CACHE.clear()
    said = [conversations.full_history(name, home=home) for name in conversations.conversation_ids(home=home)]
    steps, first = states_since(snapshot, 1)
    return [(entry.revision, state) for entry, state in steps], first, said


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("kind", ["raised", "killed"])
def test_the_home_loads_and_doing_it_again_leaves_nothing(kind, chosen, tmp_path, copies):
    original = tmp_path / "original" / ".aether"
    planted(original)
    for _ in range(2):  # the first time reads shipped files as well
        measured = copies(original)
        homes.reopened(measured)
        with faults.injected(faults.Calls()) as calls:
            erase(measured)
    assert (holders(measured, TEXT), len(holders(original, TEXT)) > 6) == ([], True)
    after = seen(measured)

    for number, fault in chosen(struck(calls.names, kind)):
        home = copies(original)
        where = f"{fault.name} at call {number} ({calls.names[number]})"
        strike(home, faults.Calls(number, fault), killed=kind == "killed")

        documents = homes.reopened(home).documents  # it loads, whatever happened
        assert json.loads(json.dumps(documents).replace(TEXT, "[ERASED]")) == after[0][0][1], where
        homes.add(home, "later", "what comes after the crash")
        erase(home)

        assert holders(home, TEXT) == [], where
        doctor.repair(home, now=homes.later(1))
        assert [one for one in homes_of.examine(home=home) if one.level != "info"] == [], where
        found = seen(home)
        assert (found[0][1:], *found[1:]) == after, where  # but for the revision that came later


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_who_writes_at_the_same_time_loses_nothing(tmp_path):
    home = tmp_path / ".aether"
    planted(home)

    def write():
        for number in range(10):
            again(lambda name=f"new{number}": homes.add(home, name, "innocent"))
            conversations.add_messages("talk", [{"role": "user", "content": f"line {number}"}], home=home)
            conversations.add_messages(TEXT, [{"role": "user", "content": f"more {number}"}], home=home)

    def again(act):
        """Do what an erasure overtook until it is stored: a call of the store itself is not repeated."""
        while True:
            with suppress(Conflict):
                return act()

    writer = children.start(write)
    while os.waitpid(writer, os.WNOHANG) == (0, 0):
        erase(home)
        time.sleep(0.3)  # a call that three erasures in a row overtake gives up
    erase(home)

    assert holders(home, TEXT) == []
    assert {f"new{number}" for number in range(10)} <= set(homes.ids(home))
    store_conversations._CACHE.clear()
    said = [
        message["content"]
        for name in conversations.conversation_ids(home=home)
        for message in conversations.full_history(name, home=home)
    ]
    assert [text for text in said if text.startswith("line")] == [f"line {number}" for number in range(10)]
    assert sorted(text for text in said if text.startswith("more")) == sorted(
        f"more {number}" for number in range(10)
    )
    assert [one for one in homes_of.examine(home=home) if one.level != "info"] == []


def struck(names, kind):
    """Yield the calls to strike, each with its fault: of those that raise one per call, in turn."""
    for number, name in enumerate(names):
        fit = [
            fault
            for fault in (faults.RAISED if kind == "raised" else faults.KILLED)
            if faults.apply_to(name, fault)
        ]
        if kind == "raised" and (name != "stat" or number % 4 == 0):  # they are a third of all
            yield number, fit[number % len(fit)]
        if (
            kind == "killed" and name not in faults.READS
        ):  # killed before a read is killed after the last write
            yield from ((number, fault) for fault in fit)


def strike(home, calls, *, killed):
    """Erase in `home` until the fault of `calls` strikes."""

    def act():
        homes.reopened(home)
        with faults.injected(calls):
            erase(home)

    if killed:
        assert faults.in_child(act) in (0, -signal.SIGKILL)
        return
    try:
        act()
    except (KeyboardInterrupt, OSError, AetherError):
        gc.collect()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_what_a_conversation_gains_while_it_is_renamed_goes_with_it(tmp_path, monkeypatch):
    home = tmp_path / ".aether"
    planted(home)
    stage = api_forget.stage

    def late(place, steps):
        said = [{"role": "user", "content": "later"}]
        # A writer of an earlier release, which does not wait for the end of an erasure.
        writer = children.start(lambda: store_conversations.extend(home, TEXT, said, now=homes.NOW))
        assert children.ended(writer) == 0
        stage(place, steps)

    with monkeypatch.context() as patch:
        patch.setattr(api_forget, "stage", late)
        erase(home)

    store_conversations._CACHE.clear()
    assert conversations.conversation_ids(home=home) == ["[ERASED]"]
    assert [message["content"] for message in conversations.full_history("[ERASED]", home=home)] == [
        "[ERASED]",
        "later",
    ]
    assert [one for one in homes_of.examine(home=home) if one.level != "info"] == []


def test_a_snapshot_that_begins_before_an_erasing_and_ends_after_it_does_not_hold_the_text(
    tmp_path, monkeypatch
):
    home = tmp_path / ".aether"
    planted(home)
    eraser, take = threading.Thread(target=erase, args=[home]), homes_of.snapshots.take_snapshot

    def late(*state, **fields):
        eraser.start()
        eraser.join(0.3)  # it waits for the lock
        return take(*state, **fields)

    monkeypatch.setattr(homes_of.snapshots, "take_snapshot", late)
    homes_of.create_snapshot("beside", home=home)
    eraser.join()

    assert holders(home, TEXT) == []

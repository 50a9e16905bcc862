"""A disk that fails from some call on: each operation is stored, or says that it is not, and means it."""

from __future__ import annotations

import contextlib
import errno
import gc
import os

import pytest

import aether
from aether.api import conversations, review
from aether.api.memory_tool import memory_tool
from aether.errors import AetherError, NotFound, StorageFailed
from aether.store import conversations as store_conversations
from aether.store.undo import entries_newest_first
from tests import homes
from tests.crash import faults

TALK, CONTEXT, NOTE = "talk", "context", "/memories/a.md"
CHAT = {"id": "old", "messages": [{"role": "user", "content": "hello"}]}
# What an error may say of an operation that changed the home.
CONFIRMATIONS = (
    "not confirmed on disk",
    "is stored",
    "was taken",
    "is open",
    "are in the journal",
    "is not finished",
)


def _used(home):
    """A home with items, a goal, a note, a snapshot, a conversation and a context."""
    homes.fresh(home.parent)
    for text in ("Use a cache.", "Never deploy on Friday.", "The port is 8080."):
        aether.add_working_memory_item(text, "decision", 0.9, home=home)
    memory_tool({"command": "create", "path": NOTE, "file_text": "one"}, home=home)
    aether.create_snapshot("first", home=home)
    conversations.add_messages(TALK, [{"role": "user", "content": "hello"}], home=home)
    aether.open_context(CONTEXT, window=8_192, system="Be careful.", home=home)
    aether.add_message(CONTEXT, {"role": "user", "content": "hello"}, home=home)
    aether.add_goal("Ship it.", home=home)


def _say(home):
    said = [{"role": "user", "content": f"line {number}"} for number in range(3)]
    conversations.add_messages(TALK, said, home=home)


OPERATIONS = {
    "add": lambda home: aether.add_working_memory_item("new", "observation", home=home),
    "add several": lambda home: aether.add_working_memory_items([{"content": str(n), "type": "observation"} for n in range(3)], home=home),
    "clear": lambda home: aether.clear_working_memory(home=home),
    "signal": lambda home: aether.emit_signal("FOCUS", "speed", home=home),
    "phase": lambda home: aether.start_phase(1, home=home),
    "goal": lambda home: aether.add_goal("Another.", home=home),
    "messages": _say,
    "new conversation": lambda home: conversations.add_messages("new", [{"role": "user", "content": "x"}], home=home),
    "message": lambda home: aether.add_message(CONTEXT, {"role": "user", "content": "more"}, home=home),
    "new context": lambda home: aether.open_context("new", window=8_192, home=home),
    "mode": lambda home: aether.set_mode(CONTEXT, "developer", home=home),
    "context snapshot": lambda home: aether.take_snapshot(CONTEXT, home=home),
    "snapshot": lambda home: aether.create_snapshot("second", home=home),
    "undo": lambda home: aether.undo(home=home),
    "restore": lambda home: aether.restore_snapshot(home=home),
    "forget": lambda home: aether.forget(match="Friday", home=home),
    "note": lambda home: memory_tool({"command": "create", "path": "/memories/b.md", "file_text": "two"}, home=home),
    "compress": lambda home: aether.compress(0, architect="extractive", home=home),
    "archive": lambda home: aether.archive_conversations([CHAT], home=home),
    "backup": lambda home: aether.create_backup(str(home.parent / "backup"), home=home),
}  # fmt: skip


def seen(home):
    """Return what a new reader sees: documents, history, conversations, archive, snapshots and backups."""
    found = homes.reopened(home)
    store_conversations._CACHE.clear()
    talks = {
        name: conversations.full_history(name, home=home)
        for name in conversations.conversation_ids(home=home)
    }
    settings = {name: dict(store_conversations.load(home, name).settings) for name in talks}
    backup = home.parent / "backup"
    return (
        found.documents, [entry.operation for entry in entries_newest_first(found)], talks, settings,
        aether.list_archived(home=home), aether.snapshots(CONTEXT, home=home), aether.list_snapshots(home=home),
        {one.id for one in aether.backups(str(backup))} if backup.exists() else set(),
    )  # fmt: skip


def _struck(home, act, calls):
    """Act on a disk that fails; return the words of the error, empty without one, and whether they deny a change."""
    homes.reopened(home)
    try:
        with faults.injected(calls):
            result = act(home)
    except AetherError as reason:
        silent = isinstance(reason, StorageFailed) and not any(
            words in str(reason) for words in CONFIRMATIONS
        )
        return str(reason), silent or "Nothing" in str(reason)
    words = " ".join(map(str, getattr(result, "failed", ())))
    return words, "Nothing" in words


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("disk", faults.STAYING)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_failed_is_not_kept_unless_the_error_says_so(operation, disk, chosen, tmp_path, copies):
    act, (number, stays) = OPERATIONS[operation], faults.STAYING[disk]
    original = tmp_path / "original" / ".aether"
    _used(original)
    before = seen(original)
    for _ in range(2):  # the first time reads shipped files as well
        home = copies(original)
        homes.reopened(home)
        with faults.injected(faults.Calls()) as measured:
            act(home)
    assert seen(home) != before

    fault = faults.Fault(disk, lambda: OSError(number, os.strerror(number)), "before")
    for at in chosen([at for at, name in enumerate(measured.names) if name in stays]):
        home = copies(original)
        where = f"{operation}: {disk} from call {at} ({measured.names[at]})"
        words, denies = _struck(home, act, faults.Calls(at, fault, stays=stays))
        kept = seen(home) != before
        assert kept or words, f"{where}: not stored"
        assert not (kept and denies), f"{where}: {words}"
    gc.collect()


READERS = {
    "undo": OPERATIONS["undo"], "snapshot": OPERATIONS["snapshot"], "restore": OPERATIONS["restore"],
    "review": lambda home: review.review(home=home), "resolve": lambda home: aether.resolve_memory("none", home=home),
    "memory tool": lambda home: memory_tool({"command": "view", "path": NOTE}, home=home),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_cannot_be_read_is_named(reader, chosen, tmp_path, copies):
    act = READERS[reader]
    original = tmp_path / "original" / ".aether"
    _used(original)
    with faults.injected(faults.Calls()) as measured, contextlib.suppress(AetherError):
        act(copies(original))

    fault = faults.Fault("EIO", lambda: OSError(errno.EIO, os.strerror(errno.EIO)), "before")
    for at in chosen([at for at, name in enumerate(measured.names) if name in ("read", "open")]):
        home = copies(original)
        assert _named(home, act, faults.Calls(at, fault)), f"call {at}"


def _named(home, act, calls):
    """Return whether the error of a disk that fails at one call, if there is one, names a file."""
    try:
        with faults.injected(calls), contextlib.suppress(NotFound):
            act(home)
    except StorageFailed as reason:
        return reason.where.startswith(os.sep)
    return True

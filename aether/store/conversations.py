"""Conversations on disk: `conversations/<id>/history.jsonl`, a log with a lock of its own (`log`), and what changes it.

Every call appends its records in one write and one sync. `head` beside the log has the number of its last acknowledged line.
A damaged line costs only its own record: the next writer, or `doctor --repair`, keeps the file in quarantine and puts a
record of the loss in the place of the line. The lines themselves are in `history`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from aether import clock, regular
from aether.errors import AetherError, Conflict, NotFound, note_stored, shown
from aether.paths import directory_name, inside
from aether.regular import sealed_body
from aether.store import archive_store, config, conversation_stream, documents, files, ledger, seals
from aether.store.conversation_list import CONFLICT_TRIES, LIST, Listed, crowded, enter, entered, last_listed
from aether.store.files import locked, make_directory, require_exclusive, storage_errors, write_whole
from aether.store.history import (
    Log,
    Snapshot,
    empty,
    extended,
    first_step,
    header,
    header_record,
    merge_patched,
    message_lines,
    message_records,
    messages,
    next_step,
    numbered_line,
    record_line,
    require_unchanged,
    snapshot_record,
    step_lines,
    texts,
    undone,
    with_losses,
)
from aether.store.log import (
    HEAD,
    ConcurrentWrite,
    append,
    cut_tail,
    lines_backwards,
    read_head,
    seal_json,
    set_head,
    unsealed,
)
from aether.store.seals import ranges
from aether.types import Finding, JsonObject

FILE = "history.jsonl"
# How long a message waits for machines that add to its conversation: a turn takes milliseconds.
RIVALS_SECONDS = 30.0
# Readers return to the same conversations: a server keeps this many in memory, compactly.
_CACHED = 64
_CACHE: dict[Path, Log] = {}

Plan = Callable[[Log], list[bytes]]


class Stored(NamedTuple):
    """A conversation on disk."""

    id: str
    bytes: int
    path: Path


class Undone(NamedTuple):
    """The result of an undo."""

    messages: list[JsonObject]
    """The context from now on: the messages before the compaction, and those since."""
    step: int
    findings: list[Finding]


# --- Reading


def path_of(home: Path, id: str) -> Path:
    """Return the path of the log of the conversation, which may not exist.

    Raises:
        InvalidInput: the id is empty.
        UnsafePath: the directory of conversations leads out of the home.
    """
    return inside(home, f"conversations/{directory_name(id, what='conversation')}") / FILE


def head_of(path: Path) -> int | None:
    """Return the head of the log at `path`; read it before the log: lines appended meanwhile must not look lost."""
    return read_head(path.with_name(HEAD))


def header_of(path: Path) -> JsonObject | None:
    """Return the fields of the first line of a log, None if it is damaged."""
    with regular.opened(path, sys.maxsize) as file:
        return unsealed(file.readline(regular.DOCUMENT_BYTES))


def load(home: Path, id: str, *, whole: bool = False) -> Log:
    """Return the log of conversation `id`, empty if it does not exist.

    Only lines that were appended since the last call are read, unless the `whole` log is wanted.

    Raises:
        Conflict: the file belongs to a conversation whose id differs in capitals only, or it was archived.
        InvalidDocument: a newer aether wrote it.
        StorageFailed: it cannot be read.
    """
    path = path_of(home, id)
    cached = None if whole else _CACHE.pop(path, None)
    with storage_errors(path, left="Nothing was read."):
        try:
            with regular.opened(path) as file:
                inode = os.fstat(file.fileno()).st_ino
                if cached and (cached.id, cached.inode) == (id, inode):
                    file.seek(cached.end - len(cached.last))
                    cached = cached if file.read(len(cached.last)) == cached.last else None
                else:
                    cached = None
                file.seek(cached.end if cached else 0)
                data = file.read()
        except (FileNotFoundError, NotADirectoryError):
            _require_live(home, id)
            return empty(path, id)
    log = extended(cached or empty(path, id)._replace(inode=inode), data)
    _CACHE[path] = log
    if len(_CACHE) > _CACHED:
        _CACHE.pop(next(iter(_CACHE)), None)
    return log


def _require_live(home: Path, id: str) -> None:
    """Raise `Conflict` if the conversation, which has no log, is archived."""
    row = archive_store.find(home, id)
    if row:
        what = f"conversation {shown(id)} was archived, and is kept there with level {row.level}."
        fix = f'Bring it back with "aether archive restore {id}", or go on under another id.'
        raise Conflict(what, fix=fix, where=row.name)


def stored_conversations(home: Path) -> list[Stored]:
    """Return the conversations of `home`, by id, with the size of their logs.

    Raises:
        StorageFailed: they cannot be read.
    """
    with storage_errors(home, left="Nothing was read."):
        stored = [
            Stored(_id(path), path.stat().st_size, path)
            for path in (home / "conversations").glob(f"*/{FILE}")
            if regular.is_readable(path)
        ]
    return sorted(entry for entry in stored if entry.bytes)  # an empty one was never acknowledged


def _id(path: Path) -> str:
    first = header_of(path) or {}
    if "conversation" in first:
        return str(first["conversation"])
    from urllib.parse import unquote  # rarely needed

    return unquote(path.parent.name, errors="surrogatepass")


def last_use(stored: Stored) -> str:
    """Return the time of the last record of a log, of which only the end is read; "" if it has none."""
    with suppress(AetherError, OSError):
        for line in lines_backwards(stored.path):
            fields = unsealed(line) or {}
            if "at" in fields:
                return str(fields["at"])
    return ""


def records_of(home: Path, id: str) -> list[JsonObject]:
    """Return every record of the conversation, from which `bring_back` makes its log again, byte for byte."""
    log = load(home, id)
    with storage_errors(log.path, left="Nothing was read."):
        lines = regular.read(log.path, regular.LOG_BYTES)[: log.end].splitlines(keepends=True)
    return [record for line in lines if (record := unsealed(line)) is not None]


def end_of(home: Path, id: str) -> ledger.Mark:
    """Return the position in its stream that the files of a conversation claim."""
    with suppress(AetherError):
        return conversation_stream.end_of(path_of(home, id))
    return ledger.Mark(0, "")


# --- Changing


def extend(home: Path, id: str, messages: Sequence[JsonObject], *, now: datetime) -> Log:
    """Append messages to the conversation, all or none of them, and return its log.

    Raises:
        InvalidInput: a message is not JSON.
        NotFound: there is no such home.
        LockTimeout, StorageFailed, CorruptDocument, Conflict: nothing was stored.
    """
    encoded = texts(messages)
    at = clock.stamp(now)
    return _change(home, id, lambda log: message_lines(len(log.texts) + 1, encoded, at), now=now)


def pop(home: Path, id: str, *, now: datetime) -> JsonObject | None:
    """Remove the last message from the context and return it, or None if the context is empty; history keeps it.

    Raises:
        LockTimeout, StorageFailed, CorruptDocument, Conflict: nothing was changed.
    """
    popped: list[JsonObject] = []

    def plan(log: Log) -> list[bytes]:
        popped[:] = messages(log, log.context[-1:])
        return [record_line({"pop": log.context[-1]}, clock.stamp(now))] if popped else []

    if load(home, id).context:
        _change(home, id, plan, now=now)
    return popped[0] if popped else None


def clear(home: Path, id: str, *, now: datetime) -> None:
    """Clear the context, so that it is empty and nothing can be undone; history keeps everything.

    Raises:
        LockTimeout, StorageFailed, CorruptDocument, Conflict: nothing was changed.
    """
    line = record_line({"clear": True}, clock.stamp(now))
    if load(home, id).lines:
        _change(home, id, lambda log: [line] if log.context or log.open else [], now=now)


def record_compaction(
    home: Path, id: str, *, before: Sequence[JsonObject], after: Sequence[JsonObject], places: Sequence[int | None],
    receipt: JsonObject, now: datetime, read: Log | None = None, snapshot: JsonObject | None = None,
    had: Sequence[bytes] | None = None, made: Sequence[bytes] | None = None,
) -> int:  # fmt: skip
    """Store one compaction, all of it or nothing, make `after` the context, and return its step.

    `before` is the caller's list; of it only the messages that are not stored yet are stored. `places` is the position in
    `before` of each message of `after`, None for a new one. `read` is the log that the caller worked on. Live messages that
    others added and that `before` lacks stay in the context, behind `after`. A `snapshot` (see `take_snapshot`) is stored
    before it. `had` and `made` are the `texts` of `before` and `after`, if the caller has them.

    Raises:
        InvalidInput: a message or the receipt is not JSON.
        NotFound: there is no such home.
        Conflict: others compacted, undid or removed messages since `read`.
        LockTimeout, StorageFailed, CorruptDocument: nothing was stored.
    """
    had = texts(before) if had is None else had
    made = texts(after) if made is None else made
    files.checked_json(receipt, where="receipt", above=1)
    steps: list[int] = []

    def plan(log: Log) -> list[bytes]:
        if read is not None:
            require_unchanged(log, read)
        steps[:] = [next_step(log)]
        return step_lines(
            log, had=had, made=made, places=places, receipt=receipt, at=clock.stamp(now), read=read, snapshot=snapshot
        )  # fmt: skip

    _change(home, id, plan, now=now)
    return steps[0]


def set_settings(home: Path, id: str, patch: JsonObject, *, now: datetime) -> Log:
    """Merge `patch` (RFC 7396) into the settings of a context, and return its log.

    Raises:
        InvalidInput: the patch is not JSON.
        NotFound, LockTimeout, StorageFailed, CorruptDocument, Conflict: nothing was stored.
    """
    files.checked_json(patch, where="settings", above=1)
    line = record_line({"settings": patch}, clock.stamp(now))

    def plan(log: Log) -> list[bytes]:
        return [line] if merge_patched(log.settings, patch) != log.settings else []

    return _change(home, id, plan, now=now)


def take_snapshot(home: Path, id: str, snapshot: JsonObject, *, now: datetime, read: Log) -> Log:
    """Store a snapshot of the context in `read`: `id`, `purpose` and `tokens`; return the log.

    Raises:
        NotFound, LockTimeout, StorageFailed, CorruptDocument: nothing was stored.
    """
    line = record_line({"snapshot": snapshot_record(read, snapshot)}, clock.stamp(now))
    return _change(home, id, lambda _: [line], now=now)


def restore(home: Path, id: str, found: Snapshot, receipt: JsonObject, *, now: datetime, read: Log) -> Log:
    """Restore the context and its settings from a snapshot, as one step that can be undone; return the log.

    Messages since are in the history; those that others added since `read` stay in the context.

    Raises:
        Conflict: others compacted, undid or removed messages since `read`.
        NotFound, LockTimeout, StorageFailed, CorruptDocument: nothing was stored.
    """

    def plan(log: Log) -> list[bytes]:
        require_unchanged(log, read)
        fields = {
            "kind": "restore", "snapshot": found.id, "compressions": found.compressions,
            "settings": found.settings, "settings_before": log.settings, "step": next_step(log),
        }  # fmt: skip
        record: JsonObject = {"step": next_step(log), "before": ranges(read.context), "after": ranges(found.context)}  # fmt: skip
        record["receipt"] = {**receipt, **fields}
        if late := log.context[len(read.context) :]:
            record["late"] = ranges(late)
        return [record_line(record, clock.stamp(now))]

    return _change(home, id, plan, now=now)


def undo(home: Path, id: str, *, step: int = 0, now: datetime) -> Undone:
    """Undo the newest compaction that is not undone, and return the context after that; `step` names the expected one.

    It has the messages before the compaction and those since. If the context does not continue the compaction's
    result, it has those before and those that were added, and a finding reports it.

    Raises:
        NotFound: there is no such conversation, or no compaction of it to undo.
        Conflict: `step` is not the newest compaction any more; nothing was changed.
        LockTimeout, StorageFailed, CorruptDocument: nothing was changed.
    """
    results: list[Undone] = []

    def plan(log: Log) -> list[bytes]:
        earlier = undone(log, step)
        results[:] = [Undone(messages(log, earlier.context), earlier.step, earlier.findings)]
        record = {"undo": earlier.step, "context": ranges(earlier.context)}
        return [record_line(record, clock.stamp(now))]

    undone(load(home, id), step)
    _change(home, id, plan, now=now)
    return results[0]


def _change(home: Path, id: str, plan: Plan, *, now: datetime) -> Log:
    """Append the records of `plan` to the log, in one write, and return the log.

    In a shared home, if other machines appended first, their lines are stored and the change is planned again.
    """
    path = path_of(home, id)
    if not home.is_dir():
        raise NotFound("there is no home.", fix='Run "aether init", or name one.', where=str(home))
    until, tries = time.monotonic() + RIVALS_SECONDS, 0
    with _own_lock(home, id, path), _giving_back(home, id):
        while tries < CONFLICT_TRIES:
            head = head_of(path)
            with storage_errors(path):
                log = repaired(home, load(home, id), head, now)
            records = plan(log)
            if not records:
                return log
            try:
                lines = _call(home, log, records)
                if _agree(home, log, lines, now):
                    _store(home, log, lines, now)
                    note_stored()
                    set_head(path.with_name(HEAD), log.lines + len(records) + (not log.end))
                    return load(home, id)
            except ConcurrentWrite:
                tries += 1
            if time.monotonic() > until:
                what = f"other machines added to the conversation each time, for {RIVALS_SECONDS:.0f} seconds. Nothing was stored."
                raise Conflict(what, fix="Try again.", where=str(path))
    raise crowded(path)


@contextmanager
def _giving_back(home: Path, id: str) -> Iterator[None]:
    """Give the turn that the ledger of a shared home gave a late writer back after the block."""
    try:
        yield
    finally:
        with suppress(AetherError):
            if server := ledger.of(home):
                server.append_if(conversation_stream.stream_of(id), ledger.Mark(0, ""), [])


def _call(home: Path, log: Log, records: list[bytes]) -> bytes:
    """Return the lines of one call; a reader that misses the last one ignores all of them."""
    first = log.lines + 1 + (not log.end)
    lines = b"".join(
        regular.seal(numbered_line(record, nth, more=nth < first + len(records) - 1))
        for nth, record in enumerate(records, first)
    )
    # The list is made with the first line of a home that has documents.
    return lines if log.end else header(log.id, listed=(home / LIST).parent.is_dir()) + lines


def _store(home: Path, log: Log, lines: bytes, now: datetime) -> None:
    listed_first = nullcontext() if log.end else entered(home, Listed(log.id, clock.stamp(now)))
    with listed_first, storage_errors(log.path):
        append(log.path, lines, at=cut_end(home, log, now))


def cut_end(home: Path, log: Log, now: datetime) -> int:
    """Return the end of the log after cutting off its torn end, which is kept if it has a whole line.

    Raises:
        ConcurrentWrite: the torn end was a line that another writer, whose lock did not hold, has written on since.
    """
    if log.torn:
        lines = log.torn.splitlines(keepends=True)
        if any(line.endswith(b"\n") and sealed_body(line) is None for line in lines):
            _quarantine(home, log.path, log.torn, now)
        cut_tail(log.path, log.end, log.torn)
    return log.end


def _quarantine(home: Path, path: Path, data: bytes, now: datetime) -> Path:
    return documents.quarantine(home, f"conversation-{path.parent.name}", data, at=clock.stamp(now))


def repaired(home: Path, log: Log, head: int | None, now: datetime, *, compare: bool = False) -> Log:
    """Return the log after writing it again with a record of loss in place of damaged and missing lines.

    A shared home reads its lines from the ledger again. The caller holds the lock of the log. A log that is whole is
    returned as it is; to `compare`, only if the ledger of its home has the same.

    Raises:
        Conflict: the lock excludes nobody, so nothing may be written again; or the ledger of a shared home has less than
            the log, or other lines.
        StorageFailed, UnsafePath, CorruptDocument: the ledger cannot be asked, or read. Nothing was changed.
    """
    head = head or 0
    is_whole = not log.damaged and head <= log.lines
    if is_whole and not compare:
        return log
    require_exclusive(log.path.parent)
    data = regular.read(log.path, regular.LOG_BYTES) if log.path.exists() else b""
    server = ledger.of(home)
    complete = conversation_stream.whole(server, log, data, max(head, log.lines)) if server else None
    if is_whole and (complete is None or complete.startswith(data[: log.end])):
        return log
    if complete is None:
        complete = with_losses(log, data, head, clock.stamp(now), listed=(home / LIST).exists())
    if data:
        _quarantine(home, log.path, data, now)
    write_whole(log.path, complete)
    return load(home, log.id, whole=True)


# --- Locks


def lock_of(home: Path, path: Path) -> AbstractContextManager[None]:
    """Hold the lock of the log at `path`."""
    return locked(path.parent, timeout=config.or_default(home).lock_timeout_seconds)


def _make_place(home: Path, path: Path) -> None:
    """Make the directory of a log, in place of the lock of the list that earlier releases kept there."""
    with storage_errors(home):
        if path.parent.name.casefold() == "lock" and path.parent.is_file():
            path.parent.unlink()
        make_directory(path.parent)


@contextmanager
def _own_lock(home: Path, id: str, path: Path) -> Iterator[None]:
    """Make the directory of a conversation and hold its lock.

    Raises:
        Conflict: it was archived while the lock was waited for.
        LockTimeout, StorageFailed: it cannot be locked.
    """
    _make_place(home, path)
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_of(home, path))
        except NotFound:  # its directory went with its lock
            if not home.is_dir():
                raise
            _require_live(home, id)
            _make_place(home, path)
            stack.enter_context(lock_of(home, path))
        yield


@contextmanager
def held(home: Path, id: str) -> Iterator[bytes]:
    """Hold the lock of a conversation and yield its log, byte for byte; empty without one.

    Whoever holds the lock of the home takes that first.

    Raises:
        Conflict: its log is damaged, or was cut off: it is repaired first.
        LockTimeout, StorageFailed, NotFound: it cannot be read.
    """
    path = path_of(home, id)
    _make_place(home, path)
    with lock_of(home, path), storage_errors(path):
        if not path.exists():
            yield b""
            return
        head, log = head_of(path), load(home, id, whole=True)
        if log.torn or log.damaged or (head or 0) > log.lines:
            what = f"the log of conversation {shown(id)} is damaged."
            raise Conflict(what, fix=files.REPAIR, where=seals.place(home, path))
        yield regular.read(path, regular.LOG_BYTES)


# --- Whole logs that come and go


def bring_back(home: Path, id: str, records: Sequence[JsonObject], *, now: datetime) -> bool:
    """Write the log of a conversation that is missing, and return whether it was; an existing one is not changed.

    Raises:
        LockTimeout, StorageFailed: nothing was written.
    """
    path = path_of(home, id)
    _make_place(home, path)
    with lock_of(home, path), storage_errors(path):
        if path.exists() or archive_store.find(home, id):
            return False
        data = b"".join(seal_json(record) for record in records)
        if not _agree(home, empty(path, id), data, now):
            return False
        put_back(home, id, data, now=now, listed_first=True)
    return True


def create(
    home: Path, id: str, messages: Sequence[JsonObject], *, settings: JsonObject, now: datetime,
    first: Sequence[JsonObject] = (), receipt: JsonObject | None = None,
) -> bool:  # fmt: skip
    """Write a new conversation, whole or not at all, and return whether it was new; an existing one is not changed.

    With a `receipt`, its first step replaces as many of `messages` at their start by those of `first`.

    Raises:
        InvalidInput: a message or the settings are not JSON.
        LockTimeout, StorageFailed: nothing was written.
    """
    at, size = clock.stamp(now), len(messages)
    checked = files.checked_json(settings, where="settings", above=1)
    records = [header_record(id), {"line": 2, "settings": checked, "at": at}]
    records += message_records(messages, first, above=2, at=at)
    if receipt is not None:
        after = [*range(size + 1, size + len(first) + 1), *range(len(first) + 1, size + 1)]
        records.append(first_step(size, after, receipt, len(records) + 1, at))
    return bring_back(home, id, records, now=now)


def put_back(
    home: Path, id: str, data: bytes, *, now: datetime, restored: bool = False, listed_first: bool = False
) -> Path:
    """Write the log of a conversation, byte for byte, and return its path; the caller holds its lock.

    One that was `restored` on request counts as used now: the list says so, because its log is unchanged.
    """
    path, line = path_of(home, id), Listed(id, clock.stamp(now), restored=restored)
    with entered(home, line) if listed_first else nullcontext():
        write_whole(path, data)
    note_stored()
    set_head(path.with_name(HEAD), load(home, id, whole=True).lines)
    if not listed_first:
        enter(home, line)
    return path


def set_aside(home: Path, id: str, *, lines: int, now: datetime) -> Path | None:
    """Move the log of a conversation of exactly so many `lines` to quarantine, and return its path; None if it has others.

    Raises:
        LockTimeout, StorageFailed: it is still there.
    """
    path = path_of(home, id)
    with lock_of(home, path), storage_errors(path):
        if load(home, id, whole=True).lines != lines:
            return None
        data = regular.read(path, regular.LOG_BYTES)
        kept = _quarantine(home, path, data, now)
        enter(home, Listed(id, clock.stamp(now), removed=True, lines=data.count(b"\n")))
        path.with_name(HEAD).unlink(missing_ok=True)
        path.unlink()
        files.sync_directory(path.parent)
    return kept


def remove_log(home: Path, id: str) -> None:
    """Remove the log of an archived conversation, and its directory; the caller holds its lock."""
    path = path_of(home, id)
    path.unlink(missing_ok=True)
    path.with_name(HEAD).unlink(missing_ok=True)
    _CACHE.pop(path, None)
    files.sync_directory(path.parent)
    path.with_name("lock").unlink(missing_ok=True)
    with suppress(OSError):
        path.parent.rmdir()
        files.sync_directory(path.parent.parent)


def retire(home: Path, ids: Iterable[str], *, now: datetime) -> None:
    """List conversations as archived, so that a deleted one is missed."""
    known = last_listed(home)
    entries = []
    for id in ids:  # noqa: A001
        path = path_of(home, id)
        is_live = path.exists()
        lines = regular.read(path, regular.LOG_BYTES).count(b"\n") if is_live else _lines_in(known.get(id))
        entries.append(Listed(id, clock.stamp(now), archived=True, lines=lines))
    enter(home, *entries)


def strike(home: Path, id: str, *, now: datetime) -> None:
    """List a conversation as removed, so that it is not missed."""
    lines = _lines_in(last_listed(home).get(id))
    enter(home, Listed(id, clock.stamp(now), removed=True, lines=lines))


def _lines_in(listed: Listed | None) -> int:
    return listed.lines if listed and (listed.archived or listed.removed) else 0


def enter_loss(home: Path, id: str, *, now: datetime) -> None:
    """List a conversation as lost."""
    enter(home, Listed(id, clock.stamp(now), lost=True))


# --- Shared homes


def _agree(home: Path, log: Log, lines: bytes, now: datetime) -> bool:
    """Let the ledger of a shared home take the lines of a call; if others were first, store their lines.

    Return whether the call may be stored; the caller holds the lock of the log.
    """
    server = ledger.of(home)
    if server is None:
        return True
    answer = conversation_stream.offer(server, log, lines)
    while not answer.done and log.held < answer.head:
        grown = conversation_stream.news(server, log)
        if grown.end == log.end:
            break
        _store_news(home, log, grown, now)
        log = load(home, log.id)
    return answer.done


def _store_news(home: Path, log: Log, grown: Log, now: datetime) -> None:
    """Append the lines by which the log has grown, which are in `torn`."""
    if grown.end > log.end:
        _store(home, log, grown.torn, now)
        set_head(log.path.with_name(HEAD), grown.lines)


def take_in(home: Path, id: str, server: ledger.Reader, *, now: datetime) -> bool:
    """Append the news of the ledger about a conversation, up to a limit; return whether there were any.

    Raises:
        CorruptDocument: they do not follow the log.
        LockTimeout, StorageFailed, Conflict: nothing was stored.
    """
    path = path_of(home, id)
    with _own_lock(home, id, path):
        before = load(home, id)
        log = repaired(home, before, head_of(path), now)
        if log is not before and not before.end:  # its directory was emptied, or deleted
            enter(home, Listed(id, clock.stamp(now)))
        grown = conversation_stream.news(server, log)
        with suppress(ConcurrentWrite):
            _store_news(home, log, grown, now)
        return log is not before or grown.end > log.end

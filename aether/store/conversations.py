"""Conversations: all messages of a conversation, and which of them are sent to a model now.

Each is a log, `conversations/<id>/history.jsonl`, with a lock of its own. Every call appends its records in one write
and one sync; all but the last carry `more`, so that a call is in the log whole or not at all. A message record has its
number `n`, from 1, and `derived`, the step, if a compaction made it. Nothing in the log is ever removed: a compaction
can be undone, byte for byte, across several, and the undo is a record too. So are the settings of a context (each a merge
patch, RFC 7396) and its snapshots, which are the numbers of the live messages; restoring one is a step as a compaction
is, so that it can be undone. Older releases ignore both records. Each record has the number of its line, and
`head` has that of the last acknowledged one. A damaged line costs what it held: everything before and after it is read, and
the next writer, or `doctor --repair`, keeps the file in quarantine and puts a record of the loss in the place of the line.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import NamedTuple

from aether import clock, regular
from aether.errors import (
    AetherError,
    Conflict,
    CorruptDocument,
    InvalidDocument,
    NotFound,
    shown,
)
from aether.paths import directory_name, inside
from aether.regular import seal, sealed_body
from aether.store import archive_store, config, documents, files, ledger, seals
from aether.store.conversation_list import (
    CONFLICT_TRIES,
    LIST,
    Listed,
    crowded,
    enter,
    entered,
    last_listed,
)
from aether.store.files import locked, make_directory, require_exclusive, storage_errors, write_whole
from aether.store.log import (
    CHECKSUM_END,
    HEAD,
    ConcurrentWrite,
    append,
    checksum_of,
    cut_tail,
    lines_backwards,
    lines_of,
    read_head,
    seal_json,
    set_head,
    unsealed,
)
from aether.store.seals import ranges
from aether.text.words import pluralize
from aether.types import Finding, JsonObject

FORMAT = 1
FILE = "history.jsonl"
_MESSAGE = re.compile(
    rb'\{"n":([0-9]+),"at":"[^"]*"(?:,"derived":([0-9]+))?(?:,"line":(?P<line>[0-9]+))?(?:,"more":(?P<more>true))?,"message":',
    re.ASCII,
)
_STORED = re.compile(rb'^\{"n":([0-9]+),"at":"([^"]*)"', re.ASCII | re.MULTILINE)
_NUMBER = re.compile(rb'\{(?:"lost":[0-9]+,)?"line":([0-9]+)', re.ASCII)
_LOST = b'{"lost":'
# Snapshots of a context that can be restored; automatic ones never push out those that a person took.
KEPT_SNAPSHOTS = 5
# How long a message waits for machines that add to its conversation: a turn is some milliseconds, and is lost only by a pause.
RIVALS_SECONDS = 30.0
# Readers of the same conversations over and over: a server holds this many in memory, compactly.
_CACHED = 64
_CACHE: dict[Path, Log] = {}


class Compaction(NamedTuple):
    """One compaction: the numbers of the messages before and after it, in order."""

    step: int
    at: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    receipt: JsonObject


class Snapshot(NamedTuple):
    """The exact state of a context: the numbers of its messages, in order, and its settings."""

    id: str
    at: str
    purpose: str
    """`recovery`, `rollback` or `emergency`."""
    context: tuple[int, ...]
    settings: JsonObject
    tokens: int
    compressions: int


class Log(NamedTuple):
    """One conversation, as far as its file was read; only this module looks into it."""

    path: Path
    id: str
    texts: list[bytes]
    """The JSON of message `n` at `n - 1`, byte for byte."""
    derived: list[int]
    """For each message the step of the compaction that made it, 0 if none did."""
    context: list[int]
    """Numbers of the messages that are live, in order."""
    uncompacted: list[int]
    """Numbers of what the context would be without any compaction."""
    compactions: list[Compaction]
    open: list[int]
    """Steps that can be undone, newest last."""
    added: set[int]
    """Numbers of the messages that callers added, and neither took back nor cleared: each is in some view."""
    settings: JsonObject
    """Settings of its context: window, model, mode, system prompt; empty if it was never opened as one."""
    snapshots: list[Snapshot]
    """Snapshots of its context, oldest first; only the newest can be restored."""
    inode: int = 0
    end: int = 0
    """Byte offset after the last whole call."""
    lines: int = 0
    """The number of the last line before `end`."""
    last: bytes = b""
    """The last line before `end`: if it changed, another log replaced this one."""
    torn: bytes = b""
    """What follows `end`: a write that was cut off."""
    damaged: int = 0
    """Places with damaged or missing lines, before `end`."""
    lost: int = 0
    """Lines that were lost, and are recorded as such."""
    held: int = 0
    """How many lines there are before `end`: fewer than `lines` where one record stands for several lost ones."""


def path_of(home: Path, id: str) -> Path:
    """Return where the log of the conversation is, whether it exists or not.

    Raises:
        InvalidInput: the id is empty.
        UnsafePath: the directory of conversations leads out of the home.
    """
    return inside(home, f"conversations/{directory_name(id, what='conversation')}") / FILE


def load(home: Path, id: str, *, whole: bool = False) -> Log:
    """Return the log of conversation `id`, empty if it does not exist.

    Only what was appended since the last call is read, unless the `whole` log is wanted.

    Raises:
        Conflict: the file belongs to a conversation whose id differs in capitals only, or it was archived.
        InvalidDocument: a newer aether wrote it.
        StorageFailed: it cannot be read.
    """
    path = path_of(home, id)
    known = None if whole else _CACHE.pop(path, None)
    with storage_errors(path, left="Nothing was read."):
        try:
            with regular.opened(path) as file:
                inode = os.fstat(file.fileno()).st_ino
                known = known if known and known.id == id and known.inode == inode else None
                if known:
                    file.seek(known.end - len(known.last))
                    known = known if file.read(len(known.last)) == known.last else None
                file.seek(known.end if known else 0)
                data = file.read()
        except (FileNotFoundError, NotADirectoryError):
            _require_live(home, id)
            return empty(path, id)
    log = extended(known or empty(path, id)._replace(inode=inode), data)
    _CACHE[path] = log
    if len(_CACHE) > _CACHED:
        _CACHE.pop(next(iter(_CACHE)), None)
    return log


def _require_live(home: Path, id: str) -> None:
    """Raise if the conversation, which has no log, rests in the archive: it has one truth.

    Raises:
        Conflict: it does.
    """
    found = archive_store.find(home, id)
    if found:
        what = f"conversation {shown(id)} was archived, and is kept there with level {found.level}."
        fix = f'Bring it back with "aether archive restore {id}", or go on under another id.'
        raise Conflict(what, fix=fix, where=found.name)


def empty(path: Path, id: str) -> Log:
    """Return the log of a conversation that has no record yet."""
    return Log(path, id, [], [], [], [], [], [], set(), {}, [])


def extended(log: Log, data: bytes) -> Log:
    """Return `log` with the records of `data`, which follows its end.

    Raises:
        Conflict, InvalidDocument: as `load` says.
    """
    if log.end and data == log.torn:
        return log
    grown = log._replace(
        texts=log.texts.copy(), derived=log.derived.copy(), context=log.context.copy(), uncompacted=log.uncompacted.copy(),
        compactions=log.compactions.copy(), open=log.open.copy(), added=log.added.copy(),
        settings=log.settings.copy(), snapshots=log.snapshots.copy(),
    )  # fmt: skip
    at, end, last, number = log.end, log.end, log.last, log.lines
    good, damaged, lost, bad = log.lines, log.damaged, log.lost, 0
    seen = held = log.held
    call: list[tuple[int, bytes]] = []

    def take() -> None:
        known = len(grown.texts)
        if call and not _is_repeated(grown, call[0][1]):
            for nth, record in call:
                _apply(grown, record, nth)
            if _MESSAGE.match(
                call[-1][1]
            ):  # else they were stored with a compaction: the list of its caller is their place
                fresh = range(known + 1, len(grown.texts) + 1)
                grown.added.update(n for n in fresh if grown.texts[n - 1] and not grown.derived[n - 1])
        call.clear()

    for line in data.splitlines(keepends=True):
        at += len(line)
        seen += 1
        body = sealed_body(line) if line.endswith(b"\n") else None
        if body is None:
            bad += 1
            continue
        nth, more = _line_of(body)
        if bad or nth > number + 1:
            take()  # it was acknowledged, because others follow it
            damaged += not body.startswith(_LOST)
        number, bad = max(nth, number) if nth else number + bad + 1, 0
        lost += _lost_lines(body)
        call.append((number, body))
        if not more:
            take()
            end, last, good, held = at, line, number, seen
    return grown._replace(
        end=end, last=last, lines=good, torn=data[end - log.end :], damaged=damaged, lost=lost, held=held,
    )  # fmt: skip


def _line_of(body: bytes) -> tuple[int, bool]:
    """Return the number of a line, 0 in a log of an earlier release, and whether its call goes on."""
    message = _MESSAGE.match(body)
    if message:
        return int(message["line"] or 0), bool(message["more"])
    found = _NUMBER.match(body)
    return int(found[1]) if found else 0, False


def _lost_lines(body: bytes) -> int:
    return int(files.parse_json(body, where=FILE)["lost"]) if body.startswith(_LOST) else 0


def _is_repeated(log: Log, first: bytes) -> bool:
    """Return whether a call was written a second time, by a process whose lock did not hold: it was never acknowledged."""
    message = _MESSAGE.match(first)
    if message:
        return int(message[1]) <= len(log.texts)
    return bool(log.end or log.texts) and first.startswith(b'{"conversation":')


def _apply(log: Log, body: bytes, number: int) -> None:
    if body.startswith(b'{"conversation":') or (number == 1 and not body.startswith(_LOST)):
        _require_ours(log, files.parse_json(body, where=str(log.path)))
        return
    if found := _MESSAGE.match(body):
        lost = int(found[1]) - len(log.texts) - 1
        if lost < 0:
            return  # a line that is there twice
        log.texts.extend([b""] * lost)
        log.derived.extend([0] * lost)
        log.texts.append(body[found.end() : -1])
        log.derived.append(int(found[2] or 0))
        if not found[2]:
            log.context.append(len(log.texts))
            log.uncompacted.append(len(log.texts))
        return
    record = files.parse_json(body, where=str(log.path))
    if "clear" in record:
        log.context.clear()
        log.uncompacted.clear()
        log.open.clear()
        log.added.clear()
    elif "pop" in record:
        for numbers in (log.context, log.uncompacted):
            numbers[:] = [n for n in numbers if n != record["pop"]]
        log.added.discard(record["pop"])
    elif "undo" in record:
        log.context[:] = _kept(log, record["context"])
        log.open[:] = [step for step in log.open if step != record["undo"]]
    elif "step" in record:
        before, after = tuple(_kept(log, record["before"])), tuple(_kept(log, record["after"]))
        missing = range(len(log.compactions) + 1, record["step"])
        log.compactions.extend(Compaction(step, record["at"], (), (), {}) for step in missing)
        log.compactions.append(Compaction(record["step"], record["at"], before, after, record["receipt"]))
        log.context[:] = [*after, *_kept(log, record.get("late", []))]
        log.open.append(record["step"])
    _apply_context(log, record)


def _apply_context(log: Log, record: JsonObject) -> None:
    """Apply what a record says about the settings and the snapshots of a context."""
    if "undo" in record:
        for done in log.compactions[record["undo"] - 1 : record["undo"]]:
            _set_settings(log, done.receipt.get("settings_before", log.settings.copy()))
    elif "step" in record:
        _set_settings(log, record["receipt"].get("settings", log.settings.copy()))
    elif "settings" in record:
        _set_settings(log, merge_patched(log.settings, record["settings"]))
    held = record.get("snapshot")
    if held:
        log.snapshots.append(
            Snapshot(
                held["id"], record["at"], held["purpose"], tuple(expanded(held["context"])), held["settings"],
                held["tokens"], held["compressions"],
            )
        )  # fmt: skip


def _set_settings(log: Log, settings: JsonObject) -> None:
    log.settings.clear()
    log.settings.update(settings)


def merge_patched(value: JsonObject, patch: JsonObject) -> JsonObject:
    """Return `value` after the JSON merge patch (RFC 7396) `patch`; null removes a key.

    >>> merge_patched({"mode": "user", "parts": {"goals": "Ship."}}, {"mode": None, "parts": {"skills": "Go."}})
    {'parts': {'goals': 'Ship.', 'skills': 'Go.'}}
    """
    made = dict(value)
    for key, one in patch.items():
        if one is None:
            made.pop(key, None)
        elif isinstance(one, dict):
            below = made.get(key)
            made[key] = merge_patched(below if isinstance(below, dict) else {}, one)
        else:
            made[key] = one
    return made


def _kept(log: Log, runs: Sequence[Sequence[int]]) -> list[int]:
    """Return the numbers of `runs` whose messages are not lost."""
    return [n for n in expanded(runs) if n <= len(log.texts) and log.texts[n - 1]]


def _require_ours(log: Log, header: JsonObject) -> None:
    if header.get("format", FORMAT) > FORMAT:
        what = f"written by a newer aether (format {header['format']}, this one knows {FORMAT})."
        raise InvalidDocument(what, fix="Upgrade aether; the file was left as it is.", where=str(log.path))
    if header.get("conversation") != log.id:
        what = f"it belongs to conversation {shown(header.get('conversation'))}, not {shown(log.id)}."
        fix = "Use an id that differs in more than capitals: this disk treats them as one."
        raise Conflict(what, fix=fix, where=str(log.path))


def header(id: str, *, listed: bool = False) -> bytes:
    """Return the first line of the log of conversation `id`; `listed`: the list of its home names it."""
    more = {"listed": True} if listed else {}
    return seal_json({"conversation": id, "format": FORMAT, "head": True, **more})


def expanded(runs: Sequence[Sequence[int]]) -> list[int]:
    """Return what `ranges` was given."""
    return [number for first, last in runs for number in range(first, last + 1)]


# The start of the names of their streams in the ledger of a shared home.
STREAMS = "conversations/"

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


def context(log: Log) -> list[JsonObject]:
    """Return the messages that are live now, as fresh copies."""
    return messages(log, log.context)


def history(log: Log) -> list[JsonObject]:
    """Return every message that was ever appended, in order; not the messages that compactions made."""
    return messages(log, said(log))


def said(log: Log) -> list[int]:
    """Return the numbers of the messages that were appended and are not lost; not of those that compactions made."""
    return [n for n, step in enumerate(log.derived, 1) if not step and log.texts[n - 1]]


def messages(log: Log, found: Sequence[int]) -> list[JsonObject]:
    """Return the messages with these numbers, as fresh copies."""
    return [files.parse_json(log.texts[n - 1], where=str(log.path)) for n in found]


def next_step(log: Log) -> int:
    """Return the step of the next compaction."""
    return len(log.compactions) + 1


def compaction(log: Log, step: int) -> tuple[list[JsonObject], list[JsonObject], JsonObject]:
    """Return the messages before and after compaction `step`, and its receipt.

    Raises:
        NotFound: there was no such step.
    """
    _require_compacted(log)
    if not 1 <= step <= len(log.compactions):
        what = f"conversation {shown(log.id)} has no compaction {step}; it has had {len(log.compactions)}."
        raise NotFound(what, fix="Name one of those, or none for the newest.", where=str(log.path))
    found = log.compactions[step - 1]
    return messages(log, found.before), messages(log, found.after), found.receipt


def extend(home: Path, id: str, messages: Sequence[JsonObject], *, now: datetime) -> Log:
    """Append messages to the conversation, all or none of them, and return its log.

    Raises:
        InvalidInput: a message is not JSON.
        NotFound: there is no such home.
        LockTimeout, StorageFailed, CorruptDocument, Conflict: nothing was stored.
    """
    said = texts(messages)
    at = clock.stamp(now)
    return _change(home, id, lambda log: _records(len(log.texts) + 1, said, at), now=now)


def pop(home: Path, id: str, *, now: datetime) -> JsonObject | None:
    """Remove the last message from the context and return it, or None if the context is empty; history keeps it.

    Raises:
        LockTimeout, StorageFailed, CorruptDocument, Conflict: nothing was changed.
    """
    taken: list[JsonObject] = []

    def plan(log: Log) -> list[bytes]:
        taken[:] = messages(log, log.context[-1:])
        return [_line({"pop": log.context[-1]}, clock.stamp(now))] if taken else []

    if load(home, id).context:
        _change(home, id, plan, now=now)
    return taken[0] if taken else None


def clear(home: Path, id: str, *, now: datetime) -> None:
    """Clear the context, so that it is empty and nothing can be undone; history keeps everything.

    Raises:
        LockTimeout, StorageFailed, CorruptDocument, Conflict: nothing was changed.
    """

    def plan(log: Log) -> list[bytes]:
        return [_line({"clear": True}, clock.stamp(now))] if log.context or log.open else []

    if load(home, id).lines:
        _change(home, id, plan, now=now)


def record_compaction(
    home: Path,
    id: str,
    *,
    before: Sequence[JsonObject],
    after: Sequence[JsonObject],
    places: Sequence[int | None],
    receipt: JsonObject,
    now: datetime,
    read: Log | None = None,
    snapshot: JsonObject | None = None,
    had: Sequence[bytes] | None = None,
    made: Sequence[bytes] | None = None,
) -> int:
    """Store one compaction, all of it or nothing, make `after` the context, and return its step.

    `before` is the caller's list; of it only the messages that are not stored yet are stored.
    `places` is the position in `before` of each message of `after`, None for a new one. `read` is the log that the
    caller worked on. Live messages that others added and that `before` does not have stay in the context, behind
    `after`: what was added leaves it only by a compaction of itself, or taken back, or cleared. A `snapshot` (see
    `take_snapshot`) is stored before it. `had` and `made` are the `texts` of `before` and `after`, if the caller has them.

    Raises:
        InvalidInput: a message or the receipt is not JSON.
        NotFound: there is no such home.
        Conflict: others compacted, undid or removed messages since `read`.
        LockTimeout, StorageFailed, CorruptDocument, Conflict: nothing was stored.
    """
    had = texts(before) if had is None else had
    made = texts(after) if made is None else made
    files.checked_json(receipt, where="receipt", above=1)
    at = clock.stamp(now)
    steps: list[int] = []

    def plan(log: Log) -> list[bytes]:
        step, known, size = next_step(log), _known(log, had), len(log.context)
        if read is not None:
            size = len(read.context)
            _require_unchanged(log, read)
        lines = _records(len(log.texts) + 1, [text for text, n in zip(had, known, strict=True) if not n], at)
        reached = len(log.texts) + len(lines)
        sources = _filled(known, len(log.texts) + 1)
        named = set(sources)
        late = [n for at, n in enumerate(log.context) if n not in named and (at >= size or n in log.added)]
        results = []
        for text, place in zip(made, places, strict=True):
            if place is not None and had[place] == text:
                results.append(sources[place])
            else:
                reached += 1
                results.append(reached)
                lines.append(_message_line(reached, text, at, derived=step))
        steps[:] = [step]
        change: JsonObject = {"before": ranges(sources), "after": ranges(results)}
        change["receipt"] = {**receipt, "step": step}
        if late:
            change["late"] = ranges(late)
        if snapshot:
            change["snapshot"] = _of_context(log if read is None else read, snapshot)
        return [*lines, _line({"step": step, **change}, at)]

    _change(home, id, plan, now=now)
    return steps[0]


def _require_unchanged(log: Log, read: Log) -> None:
    """Raise `Conflict` if others did more to the log since `read` than add messages."""
    if log.context[: len(read.context)] != read.context or len(log.compactions) != len(read.compactions):
        what = f"conversation {shown(log.id)} was changed while it was compacted."
        raise Conflict(what, fix="Load it and compact it again.", where=str(log.path))


def set_settings(home: Path, id: str, patch: JsonObject, *, now: datetime) -> Log:
    """Merge `patch` (RFC 7396) into the settings of a context, and return its log.

    Raises:
        InvalidInput: the patch is not JSON.
        NotFound, LockTimeout, StorageFailed, CorruptDocument, Conflict: nothing was stored.
    """
    files.checked_json(patch, where="settings", above=1)

    def plan(log: Log) -> list[bytes]:
        changed = merge_patched(log.settings, patch) != log.settings
        return [_line({"settings": patch}, clock.stamp(now))] if changed else []

    return _change(home, id, plan, now=now)


def take_snapshot(home: Path, id: str, snapshot: JsonObject, *, now: datetime, read: Log) -> Log:
    """Store a snapshot of the context as it was `read`: `id`, `purpose` and `tokens`; return the log.

    Raises:
        NotFound, LockTimeout, StorageFailed, CorruptDocument: nothing was stored.
    """
    line = _line({"snapshot": _of_context(read, snapshot)}, clock.stamp(now))
    return _change(home, id, lambda _: [line], now=now)


def snapshots(log: Log, *, most: int = KEPT_SNAPSHOTS) -> list[Snapshot]:
    """Return the snapshots that can be restored, oldest first: the newest `most` by hand, and as many others."""
    kept = set[str]()
    for by_hand in (True, False):
        some = [one.id for one in log.snapshots if (one.purpose == "rollback") == by_hand]
        kept.update(some[-most:])
    return [one for one in log.snapshots if one.id in kept]


def restore(home: Path, id: str, found: Snapshot, receipt: JsonObject, *, now: datetime, read: Log) -> Log:
    """Make the context and its settings what they were at a snapshot, as one step that can be undone; return the log.

    Messages since are in the history; those that others added since `read` stay in the context.

    Raises:
        Conflict: others compacted, undid or removed messages since `read`.
        NotFound, LockTimeout, StorageFailed, CorruptDocument: nothing was stored.
    """

    def plan(log: Log) -> list[bytes]:
        _require_unchanged(log, read)
        made = {
            "kind": "restore", "snapshot": found.id, "compressions": found.compressions,
            "settings": found.settings, "settings_before": log.settings, "step": next_step(log),
        }  # fmt: skip
        late = log.context[len(read.context) :]
        change: JsonObject = {"before": ranges(read.context), "after": ranges(found.context)}
        change["receipt"] = {**receipt, **made}
        if late:
            change["late"] = ranges(late)
        return [_line({"step": next_step(log), **change}, clock.stamp(now))]

    return _change(home, id, plan, now=now)


def compressions(log: Log) -> int:
    """Return how many compressions made the present context: those that are undone, or rolled back, do not count."""
    done = 0
    for step in log.open:
        receipt = log.compactions[step - 1].receipt
        if receipt.get("kind") == "restore":
            done = receipt["compressions"]
        else:
            done += receipt.get("kind") == "context"
    return done


def _of_context(log: Log, snapshot: JsonObject) -> JsonObject:
    """Return a snapshot with the context of `log`, as its record holds it."""
    held = {"context": ranges(log.context), "settings": log.settings, "compressions": compressions(log)}
    return {**snapshot, **held}


def undo(home: Path, id: str, *, step: int = 0, now: datetime) -> Undone:
    """Undo the newest compaction that is not undone, and return the context after that.

    `step` names the one that is meant: with it no other is undone.

    It has the messages before the compaction and those since. If the context does not continue the compaction's
    result, it has those before and those that were added, and a finding says so.

    Raises:
        NotFound: there is no such conversation, or no compaction of it to undo.
        Conflict: `step` is not the newest compaction any more; nothing was changed.
        LockTimeout, StorageFailed, CorruptDocument: nothing was changed.
    """
    done: list[Undone] = []

    def plan(log: Log) -> list[bytes]:
        newest, found, findings = _restored(log, step)
        done[:] = [Undone(messages(log, found), newest, findings)]
        return [_line({"undo": newest, "context": ranges(found)}, clock.stamp(now))]

    _restored(load(home, id), step)
    _change(home, id, plan, now=now)
    return done[0]


def _require_compacted(log: Log) -> None:
    if not log.compactions:
        what = f"conversation {shown(log.id)} {'was not compacted yet' if log.texts else 'is not kept here'}."
        fix = 'See what is kept with "aether compact list".'
        raise NotFound(what, fix=fix, where=str(log.path.parent.parent))


def _restored(log: Log, step: int) -> tuple[int, list[int], list[Finding]]:
    """Return the step to undo, the numbers of the context after that, and findings; `step` is the one to expect, or 0."""
    _require_compacted(log)
    if step and step != (log.open[-1] if log.open else 0):
        what = f"the newest compaction of {shown(log.id)} that is not undone is {log.open[-1] if log.open else 'none'}, not {step}."
        fix = "Look at the conversation as it is now, and decide again."
        raise Conflict(what, fix=fix, where=str(log.path))
    if not log.open:
        what = f"conversation {shown(log.id)} has no compaction to undo; it has had {len(log.compactions)}."
        raise NotFound(what, fix='See them with "aether compact diff".', where=str(log.path))
    found = log.compactions[log.open[-1] - 1]
    live = log.context
    if tuple(live[: len(found.after)]) == found.after:
        return found.step, [*found.before, *live[len(found.after) :]], []
    others = [n for n in live if n not in {*found.before, *found.after}]
    joined = [n for n in others if n in log.added]
    what = f"it did not continue the result of compaction {found.step}, so it has the messages before that; "
    what += f"{pluralize(len(others) - len(joined), 'messages')} of it in the history only."
    fix = "Append those that you miss again."
    finding = Finding("warning", "not-joined", f"conversation {log.id}", what, fix)
    return found.step, [*found.before, *joined], [finding]


def records_of(home: Path, id: str) -> list[JsonObject]:
    """Return every record of the conversation, from which `bring_back` makes its log again, byte for byte."""
    log = load(home, id)
    with storage_errors(log.path, left="Nothing was read."):
        lines = regular.read(log.path, regular.LOG_BYTES)[: log.end].splitlines(keepends=True)
    return [value for line in lines if (value := unsealed(line)) is not None]


def bring_back(home: Path, id: str, records: Sequence[JsonObject], *, now: datetime) -> bool:
    """Write the log of a conversation that is not there any more, and return whether it was missing; none is changed.

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
        enter(home, Listed(id, clock.stamp(now)))
        write_whole(path, data)
        set_head(path.with_name(HEAD), load(home, id, whole=True).lines)
    return True


def create(
    home: Path, id: str, messages: Sequence[JsonObject], *, settings: JsonObject, now: datetime,
    first: Sequence[JsonObject] = (), receipt: JsonObject | None = None,
) -> bool:  # fmt: skip
    """Write a new conversation, whole or not at all, and return whether it was new; an existing one is not changed.

    With a `receipt`, its first step puts the messages of `first` in the place of as many of `messages` at their start.

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


def header_record(id: str) -> JsonObject:
    """Return the first record of a log."""
    return {"conversation": id, "format": FORMAT, "head": True}


def message_records(
    messages: Sequence[JsonObject], derived: Sequence[JsonObject], *, above: int, at: str
) -> list[JsonObject]:
    """Return the records of messages as one call, which follows so many lines, and of those that the first step made."""
    size, records = len(messages), []
    for n, message in enumerate([*messages, *derived], 1):
        checked = files.checked_json(message, where=f"messages[{n - 1}]", above=1)
        by = {"derived": 1} if n > size else {}
        more = {"more": True} if n != size else {}
        records.append({"n": n, "at": at, **by, "line": n + above, **more, "message": checked})
    return records


def first_step(size: int, after: Sequence[int], receipt: JsonObject, line: int, at: str) -> JsonObject:
    """Return the record of a step that makes the messages `after`, by their numbers, of the first `size` ones."""
    change = {"before": ranges(range(1, size + 1)), "after": ranges(after)}
    return {"line": line, "step": 1, **change, "receipt": {**receipt, "step": 1}, "at": at}


def set_aside(home: Path, id: str, *, lines: int, now: datetime) -> Path | None:
    """Move the log of a conversation of exactly so many `lines` to quarantine, and return where; None if it has others.

    Raises:
        LockTimeout, StorageFailed: it is still there.
    """
    path = path_of(home, id)
    with lock_of(home, path), storage_errors(path):
        if load(home, id, whole=True).lines != lines:
            return None
        name = f"conversation-{path.parent.name}"
        data = regular.read(path, regular.LOG_BYTES)
        kept = documents.quarantine(home, name, data, at=clock.stamp(now))
        enter(home, Listed(id, clock.stamp(now), removed=True, lines=data.count(b"\n")))
        path.with_name(HEAD).unlink(missing_ok=True)
        path.unlink()
        files.sync_directory(path.parent)
    return kept


@contextmanager
def held(home: Path, id: str) -> Iterator[bytes]:
    """Hold the lock of a conversation and yield its log, byte for byte; empty without one.

    Nobody else writes to it meanwhile. Who holds the lock of the home takes it first.

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


def times(data: bytes) -> dict[int, str]:
    """Return when each message of a log was stored, by its number."""
    return {int(found[1]): found[2].decode() for found in _STORED.finditer(data)}


def last_use(stored: Stored) -> str:
    """Return the time of the last record of a log, of which only the end is read; "" if it has none."""
    with suppress(AetherError, OSError):
        for line in lines_backwards(stored.path):
            fields = unsealed(line) or {}
            if "at" in fields:
                return str(fields["at"])
    return ""


def retire(home: Path, ids: Iterable[str], *, now: datetime) -> None:
    """Say in the list that conversations are archived, so that a deleted one is missed."""
    known = last_listed(home)
    made = []
    for one in ids:
        path = path_of(home, one)
        lines = _resting_lines(known.get(one))
        if path.exists():
            lines = regular.read(path, regular.LOG_BYTES).count(b"\n")
        made.append(Listed(one, clock.stamp(now), archived=True, lines=lines))
    enter(home, *made)


def strike(home: Path, id: str, *, now: datetime) -> None:
    """Say in the list that a conversation was removed, so that nobody misses it."""
    lines = _resting_lines(last_listed(home).get(id))
    enter(home, Listed(id, clock.stamp(now), removed=True, lines=lines))


def _resting_lines(known: Listed | None) -> int:
    return known.lines if known and (known.archived or known.removed) else 0


def enter_loss(home: Path, id: str, *, now: datetime) -> None:
    """Say in the list that nothing is left of a conversation."""
    enter(home, Listed(id, clock.stamp(now), lost=True))


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


def put_back(home: Path, id: str, data: bytes, *, now: datetime, restored: bool = False) -> Path:
    """Write the log of an archived conversation again, byte for byte, and return where; the caller holds its lock.

    One that was `restored` on request counts as used now: the list says so, because its log stays as it was.
    """
    path = path_of(home, id)
    write_whole(path, data)
    set_head(path.with_name(HEAD), load(home, id, whole=True).lines)
    enter(home, Listed(id, clock.stamp(now), restored=restored))
    return path


def unseen(log: Log) -> list[int]:
    """Return the numbers of added messages that are in no view: not live, nor replaced by a compaction to be undone."""
    seen = {*log.context, *(n for step in log.open for n in log.compactions[step - 1].before)}
    return sorted(log.added - seen)


def stored_conversations(home: Path) -> list[Stored]:
    """Return the conversations of `home`, by id, with the size of their logs.

    Raises:
        StorageFailed: they cannot be read.
    """
    with storage_errors(home, left="Nothing was read."):
        paths = (home / "conversations").glob(f"*/{FILE}")
        found = [
            Stored(_id(path), path.stat().st_size, path)
            for path in paths
            if path.is_file() and not path.is_symlink()
        ]
    return sorted(stored for stored in found if stored.bytes)  # an empty one was never acknowledged


def _id(path: Path) -> str:
    first = header_of(path) or {}
    if "conversation" in first:
        return str(first["conversation"])
    from urllib.parse import unquote  # seldom needed

    return unquote(path.parent.name, errors="surrogatepass")


def _make_place(home: Path, path: Path) -> None:
    """Make the directory of a log; where earlier releases kept the lock of the list, that conversation takes its place."""
    with storage_errors(home):
        if path.parent.name.casefold() == "lock" and path.parent.is_file():
            path.parent.unlink()
        make_directory(path.parent)


def head_of(path: Path) -> int | None:
    """Return the head of the log at `path`; read it before the log: lines appended meanwhile must not look lost."""
    return read_head(path.with_name(HEAD))


def header_of(path: Path) -> JsonObject | None:
    """Return the fields of the first line of a log, None if it is damaged."""
    with regular.opened(path) as file:
        return unsealed(file.readline())


def repaired(home: Path, log: Log, head: int | None, now: datetime, *, compare: bool = False) -> Log:
    """Return the log after writing it again with a record of loss in the place of damaged and of missing lines.

    A shared home loses nothing: its lines are in the ledger, and are read again from there. The caller holds the lock of
    the log. A log that is whole is returned as it is; to `compare`, only if the ledger of its home has nothing else.

    Raises:
        Conflict: the lock keeps nobody out, so nothing may be written again; or the ledger of a shared home has less than
            the log, or other lines.
        StorageFailed, UnsafePath, CorruptDocument: the ledger cannot be asked, or read. Nothing was changed.
    """
    head = head or 0
    is_whole = not log.damaged and head <= log.lines
    if is_whole and not compare:
        return log
    require_exclusive(log.path.parent)
    data = regular.read(log.path, regular.LOG_BYTES) if log.path.exists() else b""
    lines = _as_in_ledger(home, log, [*lines_of(data)], max(head, log.lines))
    if is_whole and (lines is None or b"".join(lines).startswith(data[: log.end])):
        return log
    if lines is None:
        lines = _with_losses(home, log, [*lines_of(data)], head, now)
    if data:
        documents.quarantine(home, f"conversation-{log.path.parent.name}", data, at=clock.stamp(now))
    write_whole(log.path, b"".join(lines))
    return load(home, log.id, whole=True)


def _as_in_ledger(home: Path, log: Log, had: list[tuple[bytes, bool]], reached: int) -> list[bytes] | None:
    """Return the lines that the ledger has of a conversation of which `had` is left; None if the home is not shared.

    Raises:
        Conflict: it ends before the line that the log had `reached`, or has other lines.
        CorruptDocument: they cannot be read.
    """
    server = ledger.of(home)
    if server is None:
        return None
    lines = ledger.lines_after(server, stream_of(log.id), ledger.Mark(0, ""))
    made = _of_ledger(empty(log.path, log.id), b"".join(lines))
    if made.damaged or made.torn:
        raise _unreadable(log)
    ours = {line for line, good in had if good and not line.startswith(_LOST)}
    if made.lines < reached or not ours.issubset(lines):
        what = (
            f"the ledger has {made.lines} lines of conversation {shown(log.id)}, and this home had {reached}"
        )
        what += "." if made.lines < reached else ", with others among them."
        fix = (
            "Its server was restored from an older backup: see docs/shared.md. The damaged log is as it was."
        )
        raise Conflict(what, fix=fix, where=str(log.path))
    return lines


def _with_losses(
    home: Path, log: Log, had: list[tuple[bytes, bool]], head: int, now: datetime
) -> list[bytes]:
    """Return the good lines of `had`, with a record of loss in the place of the others."""
    lines: list[bytes] = []
    reached, gap = 0, 0

    def lose(until: int) -> None:
        if not lines:
            lines.append(header(log.id, listed=(home / LIST).exists()))
        record = {"lost": max(1, until - reached), "line": max(until, reached + 1), "at": clock.stamp(now)}
        lines.append(seal_json(record))

    for line, good in had:
        if not good:
            gap += max(1, line.count(b"\n"))
            continue
        nth = _line_of(sealed_body(line) or b"")[0]
        if gap or nth > reached + 1:
            lose(nth - 1 if nth else reached + gap)
            reached = nth - 1 if nth else reached + gap
        lines.append(line)
        reached, gap = nth or reached + 1, 0
    if head > reached:
        lose(head)
    return lines


def texts(messages: Sequence[JsonObject]) -> list[bytes]:
    """Return messages as the log writes them.

    Raises:
        InvalidInput: a message is not JSON.
    """
    return [text_of(message, nth) for nth, message in enumerate(messages)]


def numbered(log: Log, had: Sequence[bytes]) -> list[int]:
    """Return the number that each message, of which `had` has the texts, has in the log or will have once it is stored."""
    return _filled(_known(log, had), len(log.texts) + 1)


def _filled(known: Sequence[int], first: int) -> list[int]:
    """Return `known` with the numbers from `first` on for what is not stored yet."""
    new = count(first)
    return [n or next(new) for n in known]


def _known(log: Log, had: Sequence[bytes]) -> list[int]:
    """Return the numbers of the stored messages in `had`, 0 for each that is not stored.

    Stored are those that it starts with, of the context or of the uncompacted one, and then those that were added
    between the additions of others.
    """
    live = _prefix(log, log.context, had)
    found = live if len(live) == len(log.context) else max(live, _prefix(log, log.uncompacted, had), key=len)
    rest = had[len(found) :]
    if not rest or len(live) == len(log.context):
        return [*found, *(0 for _ in rest)]
    taken, others = set(found), dict[bytes, list[int]]()
    for n in reversed(log.context):
        if n in log.added and n not in taken:
            others.setdefault(log.texts[n - 1], []).append(n)
    return [*found, *(others[text].pop() if others.get(text) else 0 for text in rest)]


def _prefix(log: Log, numbers: list[int], had: Sequence[bytes]) -> list[int]:
    same = 0
    for n, text in zip(numbers, had, strict=False):
        if log.texts[n - 1] != text:
            break
        same += 1
    return numbers[:same]


def text_of(message: JsonObject, nth: int) -> bytes:
    """Return the message at position `nth` as the log writes it."""
    return files.json_line(files.checked_json(message, where=f"messages[{nth}]", above=1))


def _records(first: int, texts: Sequence[bytes], at: str) -> list[bytes]:
    return [_message_line(n, text, at) for n, text in enumerate(texts, first)]


def _message_line(n: int, text: bytes, at: str, *, derived: int = 0) -> bytes:
    made = f',"derived":{derived}' if derived else ""
    return f'{{"n":{n},"at":"{at}"{made},"message":'.encode() + text + b"}"


def _line(record: JsonObject, at: str) -> bytes:
    return files.json_line({**record, "at": at})


def _change(home: Path, id: str, plan: Plan, *, now: datetime) -> Log:
    """Append the records of `plan` to the log, in one write, and return the log.

    Whose home is shared and who comes late plans again in its turn, while writers of other replicas wait.
    """
    path = path_of(home, id)
    if not home.is_dir():
        raise NotFound("there is no home.", fix='Run "aether init", or name one.', where=str(home))
    until, tries, is_late = time.monotonic() + RIVALS_SECONDS, 0, False
    with _own_lock(home, id, path):
        while tries < CONFLICT_TRIES:
            head = head_of(path)
            with storage_errors(path):
                log = repaired(home, load(home, id), head, now)
            try:
                with _in_turn(home, log, now) if is_late else nullcontext(log) as log:
                    records = plan(log)
                    if not records:
                        return log
                    call = _call(home, log, records)
                    is_late = not _agree(home, log, call, now)
                if is_late and time.monotonic() > until:
                    raise _outrun(log)
                if is_late:
                    continue
                _store(home, log, call, now)
            except ConcurrentWrite:
                tries += 1
                continue
            set_head(path.with_name(HEAD), log.lines + len(records) + (not log.end))
            return load(home, id)
    raise crowded(path)


@contextmanager
def _in_turn(home: Path, log: Log, now: datetime) -> Iterator[Log]:
    """Keep writers of other replicas of a shared home waiting, and yield the newest state of a conversation."""
    server = ledger.of(home)
    if server is None:  # it has left the colony meanwhile
        yield log
        return
    with server.turn(stream_of(log.id), mark_of(log)) as news:
        yield _caught_up(home, server, log, news.head, now)


def _outrun(log: Log) -> Conflict:
    what = f"other machines added to the conversation each time, for {RIVALS_SECONDS:.0f} seconds. Nothing was stored."
    return Conflict(what, fix="Try again.", where=str(log.path))


@contextmanager
def _own_lock(home: Path, id: str, path: Path) -> Iterator[None]:
    """Make the directory of a conversation and hold its lock, which may have been archived while the lock was waited for.

    Raises:
        Conflict: it was.
        LockTimeout, StorageFailed: it cannot be locked.
    """
    with ExitStack() as stack:
        _make_place(home, path)
        try:
            stack.enter_context(lock_of(home, path))
        except NotFound:  # its directory went with its lock
            if not home.is_dir():
                raise
            _require_live(home, id)
            with storage_errors(home):
                make_directory(path.parent)
            stack.enter_context(lock_of(home, path))
        yield


def _store(home: Path, log: Log, lines: bytes, now: datetime) -> None:
    listed_first = nullcontext() if log.end else entered(home, Listed(log.id, clock.stamp(now)))
    with listed_first, storage_errors(log.path):
        append(log.path, lines, at=cut_end(home, log, now))


def _agree(home: Path, log: Log, lines: bytes, now: datetime) -> bool:
    """Let the ledger of a shared home take the lines of a call; if others were first, store what they wrote.

    Return whether the call may be stored; the caller holds the lock of the log.
    """
    server = ledger.of(home)
    if server is None:
        return True
    if not log.held:  # a stream that is there may have a longer name, of an earlier release
        ledger.require_name(log.id, what="id of a conversation")
    answer = server.append_if(stream_of(log.id), mark_of(log), lines.splitlines(keepends=True))
    if not answer.done:
        _caught_up(home, server, log, answer.head, now)
    return answer.done


def _caught_up(home: Path, server: ledger.Ledger, log: Log, head: int, now: datetime) -> Log:
    """Return a conversation after storing what its ledger has up to the line `head`; the caller holds the lock of the log."""
    while log.held < head:
        grown = _news(server, log)
        if grown.end == log.end:
            break
        _store_news(home, log, grown, now)
        log = load(home, log.id)
    return log


def _news(server: ledger.Ledger, log: Log) -> Log:
    """Return `log` grown by whole calls that the ledger has after it; as it is if there are none.

    A call may be longer than the ledger answers at once.

    Raises:
        CorruptDocument: what the ledger has does not follow it, or cannot be read.
        InvalidDocument: a newer aether wrote it.
    """
    lines, size, mark = list[bytes](), 0, mark_of(log)
    while True:
        found = server.read_after(stream_of(log.id), mark)
        if not found.lines and not lines:
            return log
        lines += found.lines
        size += sum(map(len, found.lines))
        is_all = not found.lines or log.held + len(lines) >= found.head
        if is_all or not all(_line_of(sealed_body(line) or b"")[1] for line in found.lines):
            data = b"".join(lines)
            grown = _of_ledger(log, data)
            if grown.end > log.end and not grown.damaged:
                return grown._replace(torn=data[: grown.end - log.end])
            if is_all or grown.damaged:
                raise _unreadable(log)
        if size > regular.LOG_BYTES:
            raise _unreadable(log)
        mark = ledger.Mark(mark.revision + len(found.lines), checksum_of(lines[-1]))


def _of_ledger(log: Log, data: bytes) -> Log:
    """Return `log` with the records of `data` from the ledger; nobody vouches for those who wrote them.

    Raises:
        CorruptDocument: they cannot be read.
        InvalidDocument: a newer aether wrote them.
    """
    try:
        for line in data.splitlines(keepends=True):
            _require_bounded(sealed_body(line) or b"{}")
        grown = extended(log, data)
        new = [files.parse_json(text, where=FILE) for text in grown.texts[len(log.texts) :] if text]
        if all(isinstance(message, dict) for message in new):
            return grown
    except InvalidDocument:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as reason:
        raise _unreadable(log) from reason
    raise _unreadable(log)


def _require_bounded(body: bytes) -> None:
    """Check that the numbers of a record are those of a log that fits the disk: lists of that length are made of them.

    Raises:
        ValueError, AetherError, TypeError, AttributeError: they are not, or it is no record.
    """
    if message := _MESSAGE.match(body):
        sizes = [int(message[1]), int(message["line"] or 0)]
    else:
        record = files.parse_json(body, where=FILE)
        runs = [record.get(name, []) for name in ("before", "after", "late", "context")]
        runs.append((record.get("snapshot") or {}).get("context", []))
        sizes = [record.get(name, 0) for name in ("lost", "line", "step", "undo")]
        sizes.append(sum(last - first + 1 for one in runs for first, last in one))
    if max(sizes) > regular.LOG_BYTES // 64:
        raise ValueError("too large")


def _unreadable(log: Log) -> CorruptDocument:
    what = f"the ledger has lines of conversation {shown(log.id)} that this aether cannot read."
    return CorruptDocument(what, fix=ledger.FOREIGN, where=str(log.path))


def _store_news(home: Path, log: Log, grown: Log, now: datetime) -> None:
    """Append to the log what it has grown by, which is in `torn`."""
    if grown.end > log.end:
        _store(home, log, grown.torn, now)
        set_head(log.path.with_name(HEAD), grown.lines)


def stream_of(id: str) -> str:
    """Return the name of the stream of a conversation in the ledger of a shared home."""
    return STREAMS + id


def mark_of(log: Log) -> ledger.Mark:
    """Return how far a replica has a conversation."""
    return ledger.Mark(log.held, checksum_of(log.last))


def end_of(home: Path, id: str) -> ledger.Mark:
    """Return how far the files of a conversation say that it is; cheap, and nothing is checked."""
    head, tail = 0, b""
    with suppress(AetherError, OSError):
        path = path_of(home, id)
        head = head_of(path) or 0
        with regular.opened(path) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - CHECKSUM_END))
            tail = file.read()
    return ledger.Mark(head, checksum_of(tail))


def take_in(home: Path, id: str, server: ledger.Ledger, *, now: datetime) -> bool:
    """Append what the ledger has of a conversation to its log in a shared home, up to a limit; return whether there was any.

    Raises:
        CorruptDocument: it does not follow what the log has.
        LockTimeout, StorageFailed, Conflict: nothing was stored.
    """
    path = path_of(home, id)
    with _own_lock(home, id, path):
        known = load(home, id)
        log = repaired(home, known, head_of(path), now)
        if log is not known and not known.end:  # its directory was emptied, or deleted
            enter(home, Listed(id, clock.stamp(now)))
        grown = _news(server, log)
        with suppress(ConcurrentWrite):
            _store_news(home, log, grown, now)
        return log is not known or grown.end > log.end


def lock_of(home: Path, path: Path) -> AbstractContextManager[None]:
    return locked(path.parent, timeout=config.or_default(home).lock_timeout_seconds)


def _call(home: Path, log: Log, records: list[bytes]) -> bytes:
    """Return the lines of one call; a reader that misses the last one ignores all of them."""
    first = log.lines + 1 + (not log.end)
    lines = b"".join(
        seal(_numbered(record, nth, more=nth < first + len(records) - 1))
        for nth, record in enumerate(records, first)
    )
    # The list is made with the first line of a home that has documents.
    return lines if log.end else header(log.id, listed=(home / LIST).parent.is_dir()) + lines


def _numbered(record: bytes, nth: int, *, more: bool) -> bytes:
    """Return a record with the number of its line, and whether the call goes on: it never does after other records."""
    if not record.startswith(b'{"n":'):
        return b'{"line":%d,' % nth + record[1:]
    fields = b',"line":%d' % nth + (b',"more":true' if more else b"")
    return record.replace(b',"message":', fields + b',"message":', 1)


def cut_end(home: Path, log: Log, now: datetime) -> int:
    """Return the end of the log after cutting off its torn end, which is kept if it has a whole line.

    Raises:
        ConcurrentWrite: the torn end was a line that another writer, whose lock did not hold, has written on since.
    """
    if log.torn:
        lines = log.torn.splitlines(keepends=True)
        if any(line.endswith(b"\n") and sealed_body(line) is None for line in lines):
            documents.quarantine(home, f"conversation-{log.path.parent.name}", log.torn, at=clock.stamp(now))
        cut_tail(log.path, log.end, log.torn)
    return log.end

"""Checks of the conversations of a home: damage, gaps and missing logs, and their repair from copies that exist."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote

from aether import clock, regular
from aether.errors import AetherError, shown
from aether.store import archive_store, documents, files, ledger, seals
from aether.store.conversation_list import LIST, Listed, enter, list_lock, listed
from aether.store.conversation_stream import STREAMS
from aether.store.conversations import (
    FILE,
    Stored,
    bring_back,
    cut_end,
    head_of,
    header_of,
    load,
    lock_of,
    path_of,
    repaired,
    stored_conversations,
    take_in,
)
from aether.store.files import REPAIR, storage_errors, write_whole
from aether.store.history import Log, unseen
from aether.store.log import HEAD, ConcurrentWrite, lines_of, read_head, set_head
from aether.text.words import pluralize
from aether.types import Finding, JsonObject


def examine(home: Path) -> list[Finding]:
    """Return the problems of the conversations of `home`."""
    findings = []
    for stored in stored_conversations(home):
        place = seals.place(home, stored.path)
        head = head_of(stored.path)
        try:
            log = load(home, stored.id, whole=True)
        except AetherError as reason:
            findings.append(Finding("error", reason.code, place, reason.what, reason.fix))
            continue
        if log.path != stored.path:
            what = f"it is the log of conversation {shown(log.id)}, which is kept elsewhere."
            findings.append(Finding("warning", "misplaced", place, what, "Remove it, if it is a copy."))
        else:
            findings += [*_damage(log, head, place), *_gaps(log, place)]
    findings += _missing(home)
    for head_path in emptied(home):
        place = seals.place(home, head_path.with_name(FILE))
        what = f"everything in it is missing: {pluralize(read_head(head_path) or 0, 'lines')}."
        findings.append(Finding("error", "damaged-file", place, what, REPAIR))
    return findings


def irregular(home: Path) -> list[Path]:
    """Return the links, pipes, devices and directories in the place of a log."""
    paths = (home / "conversations").glob(f"*/{FILE}")
    return sorted(path for path in paths if path.is_symlink() or not path.is_file())


def _damage(log: Log, head: int | None, place: str) -> Iterator[Finding]:
    """Yield findings for damaged lines, lines missing at the end, a torn end, and a head that cannot be used."""
    if log.damaged:
        what = f"damaged in {pluralize(log.damaged, 'places')}; everything else is read."
        yield Finding("error", "damaged-line", place, what, REPAIR)
    if (head or 0) > log.lines:
        what = f"missing at its end: {pluralize((head or 0) - log.lines, 'acknowledged lines')}."
        yield Finding("error", "damaged-file", place, what, REPAIR)
    elif log.torn:
        what = "the last write was cut off before it was acknowledged."
        fix = 'Run "aether doctor --repair", or append to it.'
        yield Finding("warning", "torn-line", place, what, fix)
    if head == -1 or (head is None and _has_head(log.path)):
        what = f"{HEAD} beside it is {'missing' if head is None else 'damaged'}."
        yield Finding("warning", "damaged", place, what, f"{REPAIR[:-1]}, or append to it.")


def _has_head(path: Path) -> bool:
    """Return whether the first line of a log says that it has a head beside it."""
    return bool((header_of(path) or {}).get("head"))


def _gaps(log: Log, place: str) -> Iterator[Finding]:
    """Yield findings for added messages that are in no view, and for recorded losses."""
    if missing := unseen(log):
        what = f"in no view: {pluralize(len(missing), 'added messages')}, the first has n={missing[0]}."
        fix = "The full history has them (aether.full_history); add those that matter again."
        # After a loss, the record that put them into a view may be lost.
        is_lost = log.lost or log.damaged
        yield Finding("info" if is_lost else "warning", "unseen-message", place, what, fix)
    if log.lost:
        fix = "Nothing to do; the damaged file is in quarantine/."
        yield Finding("info", "known-loss", place, f"lost: {pluralize(log.lost, 'lines')} of it.", fix)


def _missing(home: Path) -> Iterator[Finding]:
    """Yield findings for listed conversations that the home lacks, for the reverse, and for losses."""
    entries, damaged = listed(home)
    present = _in_place(home)
    archived: list[Listed] = []
    if damaged:
        yield Finding("error", "damaged-file", LIST, "the list of the conversations is damaged.", REPAIR)
    for name, entry in entries.items():
        place = f"conversations/{name}/{FILE}"
        if entry.lost:
            back = f"it was brought back from {entry.source}" if entry.source else "nothing of it was left"
            what = f"conversation {shown(entry.id)} was deleted, and {back} (found {entry.at[:19]}Z)."
            yield Finding("info", "known-loss", place, what, "Nothing to do.")
        if name in present or (entry.lost and not entry.source):
            continue
        if entry.archived:
            archived.append(entry)
        elif not (directory := (home / place).parent).is_dir():
            what = f"conversation {shown(entry.id)} is missing: its directory was deleted."
            yield Finding("error", "missing-conversation", place, what, REPAIR)
        elif not any((directory / file).exists() for file in (FILE, HEAD)):
            what = f"conversation {shown(entry.id)} has no messages: none was acknowledged, or its files were deleted."
            yield Finding("info", "no-messages", place, what, "Nothing to do, or restore a snapshot.")
    yield from _missing_archived(home, archived)
    for name, stored in present.items():
        if name not in entries and not damaged:
            sealed = (header_of(stored.path) or {}).get("listed")
            what = f"{LIST} does not name it, so that its loss would not be noticed."
            place = seals.place(home, stored.path)
            yield Finding("error" if sealed else "info", "unlisted", place, what, REPAIR)


def missing_archived(home: Path) -> Iterator[Finding]:
    """Yield a finding for each archived conversation whose file was deleted."""
    entries = listed(home)[0].values()
    yield from _missing_archived(home, [entry for entry in entries if entry.archived and not entry.lost])


def _missing_archived(home: Path, entries: Sequence[Listed]) -> Iterator[Finding]:
    rows = {row.id: row for row in archive_store.rows(home)}
    # A file without a row is damaged, or of another version: the findings of the archive name it.
    on_disk = archive_store.ids_on_disk(home, {entry.id for entry in entries} - rows.keys())
    for entry in entries:
        row = rows.get(entry.id)
        if entry.id not in on_disk and not (row and archive_store.size(home, row.name)):
            what = f"conversation {shown(entry.id)} is missing: its archive file was deleted."
            where = row.name if row else archive_store.DIRECTORY
            fix = f"{REPAIR[:-1]}: its fuller form in grace is restored."
            yield Finding("error", "missing-conversation", where, what, fix)


def _in_place(home: Path) -> dict[str, Stored]:
    """Return the stored conversations by the names of their directories, without copies under another name."""
    stored = {entry.path.parent.name: entry for entry in stored_conversations(home) if entry.id}
    return {name: entry for name, entry in stored.items() if path_of(home, entry.id) == entry.path}


def emptied(home: Path) -> list[Path]:
    """Return the heads of conversations whose log is missing or empty although it had lines."""
    return [
        head
        for head in sorted((home / "conversations").glob(f"*/{HEAD}"))
        if read_head(head) and _is_empty(head.with_name(FILE))
    ]


def _is_empty(path: Path) -> bool:
    return not path.exists() or not (path.is_dir() or path.stat().st_size)


def restore(home: Path, *, now: datetime) -> list[str]:
    """Read the missing conversations of a shared home from its ledger, and return a line for each."""
    ids = {entry.id for entry in listed(home)[0].values() if not entry.archived}
    ids |= {unquote(path.parent.name, errors="surrogatepass") for path in emptied(home)}
    done = []
    try:
        for name in sorted(ids) if ledger.is_shared(home) else ():
            path = path_of(home, name)
            server = None if path.exists() and path.stat().st_size else ledger.of(home)
            if server and server.head(STREAMS + name):
                while take_in(home, name, server, now=now):
                    pass
                done.append(f"read {seals.place(home, path)} again from the ledger")
    except AetherError as reason:
        done.append(f"left the missing conversations: {reason.what}")
    return done


def repair(home: Path, *, now: datetime) -> list[str]:
    """Cut off torn ends, put records of loss in the place of damaged lines, and return a line for each repair.

    Lines that a shared home cannot read from its ledger now are left as they are.
    """
    done: list[str] = []
    for stored in stored_conversations(home):
        with suppress(ConcurrentWrite):  # it is being written: there is nothing to repair
            done += _repair_log(home, stored, now)
    return [*done, *_repair_list(home, now)]


def _repair_log(home: Path, stored: Stored, now: datetime) -> Iterator[str]:
    head = head_of(stored.path)
    try:
        log = load(home, stored.id, whole=True)
    except AetherError:
        return  # `examine` reports it
    doubted = bool(log.lost and ledger.is_shared(home))  # an earlier release did not ask the ledger
    has_good_head = head == log.lines or (head is None and not _has_head(log.path))
    if log.path != stored.path or not (doubted or log.torn or log.damaged or not has_good_head):
        return
    place = seals.place(home, stored.path)
    with lock_of(home, stored.path), storage_errors(stored.path):
        head = head_of(stored.path)
        log = load(home, stored.id, whole=True)
        try:
            after = repaired(home, log, head, now, compare=doubted)
        except AetherError as reason:
            if not ledger.is_shared(home):
                raise
            yield f"left {place} as it is: {reason.what}"
            return
        if after is not log:
            lost = after.lost - log.lost
            words = f"lost: {pluralize(lost, 'lines')}" if lost > 0 else "nothing is lost"
            yield f"wrote {place} again; {words}"
        elif log.torn:
            cut_end(home, log, now)
            yield f"cut off the torn end of {place}"
        if after.lines:
            set_head(log.path.with_name(HEAD), after.lines)


def _repair_list(home: Path, now: datetime) -> Iterator[str]:
    """Write a damaged list again, list conversations that it lacks, and bring missing ones back from snapshots."""
    entries, damaged = listed(home)
    present = _in_place(home)
    if damaged:
        with list_lock(home), storage_errors(home):
            data = regular.read(home / LIST, regular.LOG_BYTES)
            kept = documents.quarantine(home, "conversations", data, at=clock.stamp(now))
            write_whole(home / LIST, b"".join(line for line, good in lines_of(data) if good))
        yield f"wrote {LIST} again; it is kept as {seals.place(home, kept)}"
    for name in sorted(present.keys() - entries.keys()):
        enter(home, Listed(present[name].id, clock.stamp(now)))
    for name, entry in entries.items() if not ledger.is_shared(home) else ():
        if name in present or entry.archived or (entry.lost and not entry.source):
            continue
        place = seals.place(home, path_of(home, entry.id))
        source, records = _newest_copy(home, entry.id)
        is_deleted = not (home / place).parent.is_dir()
        if source:
            bring_back(home, entry.id, records, now=now)
            yield f"brought {place} back from {source}; its messages since then are lost"
        elif is_deleted:
            yield f"{place}: conversation {shown(entry.id)} is lost: its directory was deleted, and no snapshot has it"
        if source or is_deleted:
            enter(home, Listed(entry.id, clock.stamp(now), lost=True, source=source))


def _newest_copy(home: Path, id: str) -> tuple[str, list[JsonObject]]:
    """Return the newest snapshot that has the conversation, and its records; an empty name without one."""
    record = seals.read(home)
    for path in sorted((home / "snapshots").glob("*.json"), reverse=True):  # their names sort by time
        place = seals.place(home, path)
        if place in record.whole and seals.fault(home, record, place):
            continue
        with suppress(AetherError, OSError):
            snapshot = files.parse_json(regular.read(path, regular.LOG_BYTES), where=place)
            records = (snapshot.get("conversations") or {}).get(id)
            if isinstance(records, list):
                return place, records
    return "", []

"""Checks of the conversations of a home: damage, gaps and missing logs are found, and repaired from what else has them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from aether import clock, regular
from aether.errors import AetherError, shown
from aether.store import archive_store, documents, files, ledger, seals
from aether.store.conversation_list import LIST, Listed, enter, list_lock, listed
from aether.store.conversations import (
    FILE,
    STREAMS,
    Log,
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
    unseen,
)
from aether.store.files import REPAIR, storage_errors, write_whole
from aether.store.log import HEAD, ConcurrentWrite, lines_of, read_head, set_head
from aether.text.words import pluralize
from aether.types import Finding, JsonObject


def examine(home: Path) -> list[Finding]:
    """Return the problems of the conversations of `home`."""
    found = []
    for stored in stored_conversations(home):
        place = seals.place(home, stored.path)
        head = head_of(stored.path)
        try:
            log = load(home, stored.id, whole=True)
        except AetherError as reason:
            found.append(Finding("error", reason.code, place, reason.what, reason.fix))
            continue
        if log.path != stored.path:
            what = f"it is the log of conversation {shown(log.id)}, which is kept elsewhere."
            found.append(Finding("warning", "misplaced", place, what, "Remove it, if it is a copy."))
        else:
            found += [*_damage(log, head, place), *_gaps(log, place)]
    found += _missing(home)
    for head_path in emptied(home):
        place = seals.place(home, head_path.with_name(FILE))
        what = f"everything in it is missing: {pluralize(read_head(head_path) or 0, 'lines')}."
        found.append(Finding("error", "damaged-file", place, what, REPAIR))
    return found


def irregular(home: Path) -> list[Path]:
    """Return what is in the place of a log and is a link, a pipe, a device or a directory."""
    found = (home / "conversations").glob(f"*/{FILE}")
    return sorted(path for path in found if path.is_symlink() or not path.is_file())


def _damage(log: Log, head: int | None, place: str) -> Iterator[Finding]:
    """Yield findings for damaged lines, lines missing at the end, a torn end, and a head that cannot be used."""
    flagged = _is_flagged(log.path)
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
    if head == -1 or (head is None and flagged):
        what = f"{HEAD} beside it is {'missing' if head is None else 'damaged'}."
        yield Finding("warning", "damaged", place, what, f"{REPAIR[:-1]}, or append to it.")


def _gaps(log: Log, place: str) -> Iterator[Finding]:
    """Yield findings for added messages that are in no view, and for losses that are recorded."""
    if missing := unseen(log):
        what = f"in no view: {pluralize(len(missing), 'added messages')}, the first has n={missing[0]}."
        fix = "The full history has them (aether.full_history); add those that matter again."
        # After a loss, what put them into a view was lost.
        is_lost = log.lost or log.damaged
        yield Finding("info" if is_lost else "warning", "unseen-message", place, what, fix)
    if log.lost:
        fix = "Nothing to do; the damaged file is in quarantine/."
        yield Finding("info", "known-loss", place, f"lost: {pluralize(log.lost, 'lines')} of it.", fix)


def _missing(home: Path) -> Iterator[Finding]:
    """Yield findings for conversations that the list names and the home does not have, or the reverse, and for losses."""
    known, damaged = listed(home)
    present = _in_place(home)
    if damaged:
        yield Finding("error", "damaged-file", LIST, "the list of the conversations is damaged.", REPAIR)
    for name, one in known.items():
        place = f"conversations/{name}/{FILE}"
        if one.lost:
            back = f"it was brought back from {one.source}" if one.source else "nothing of it was left"
            what = f"conversation {shown(one.id)} was deleted, and {back} (found {one.at[:19]}Z)."
            yield Finding("info", "known-loss", place, what, "Nothing to do.")
        if name in present or (one.lost and not one.source):
            continue
        if one.archived:
            yield from _missing_archived(home, one)
            continue
        if not (home / "conversations" / name).is_dir():
            what = f"conversation {shown(one.id)} is missing: its directory was deleted."
            yield Finding("error", "missing-conversation", place, what, REPAIR)
        elif not any((home / "conversations" / name / file).exists() for file in (FILE, HEAD)):
            what = f"conversation {shown(one.id)} has no messages: none was acknowledged, or its files were deleted."
            yield Finding("info", "no-messages", place, what, "Nothing to do, or restore a snapshot.")
    for name, stored in present.items():
        if name not in known and not damaged:
            sealed = (header_of(stored.path) or {}).get("listed")
            what = f"{LIST} does not name it, so that nobody would miss it."
            place = seals.place(home, stored.path)
            yield Finding("error" if sealed else "info", "unlisted", place, what, REPAIR)


def _missing_archived(home: Path, one: Listed) -> Iterator[Finding]:
    found = archive_store.find(home, one.id)
    if found is None and archive_store.name_on_disk(home, one.id):
        return  # the findings of the archive name it: it is damaged, or of another version
    if found is None or not archive_store.size(home, found.name):
        what = f"conversation {shown(one.id)} is missing: its archive file was deleted."
        where = found.name if found else archive_store.DIRECTORY
        fix = f"{REPAIR[:-1]}: what rests in grace is brought back."
        yield Finding("error", "missing-conversation", where, what, fix)


def _in_place(home: Path) -> dict[str, Stored]:
    """Return the stored conversations by the names of their directories; not copies of one under another name."""
    found = {one.path.parent.name: one for one in stored_conversations(home)}
    return {name: one for name, one in found.items() if one.id and path_of(home, one.id) == one.path}


def emptied(home: Path) -> list[Path]:
    """Return the heads of conversations whose log is missing or empty although it had lines."""
    heads = sorted((home / "conversations").glob(f"*/{HEAD}"))
    logs = {path: path.with_name(FILE) for path in heads}
    return [
        path for path, log in logs.items()
        if read_head(path) and not (log.exists() and (log.is_dir() or log.stat().st_size))
    ]  # fmt: skip


def _is_flagged(path: Path) -> bool:
    """Return whether the log says that it has a head beside it."""
    return bool((header_of(path) or {}).get("head"))


def restore(home: Path, *, now: datetime) -> list[str]:
    """Take the conversations of a shared home that are missing from its ledger, and return a line for each."""
    known = [name for name, one in listed(home)[0].items() if not one.archived]
    logs = {
        home / "conversations" / name / FILE
        for name in (*known, *(path.parent.name for path in emptied(home)))
    }
    lost = {path for path in logs if not (path.exists() and path.stat().st_size)}
    done = []
    try:
        server = ledger.of(home) if lost else None
        for stream in server.heads(STREAMS) if server else ():
            name = stream.removeprefix(STREAMS)
            if server and path_of(home, name) in lost:
                while take_in(home, name, server, now=now):
                    pass
                done.append(f"read {seals.place(home, path_of(home, name))} again from the ledger")
    except AetherError as reason:
        done.append(f"left what is missing of the conversations: {reason.what}")
    return done


def repair(home: Path, *, now: datetime) -> list[str]:
    """Cut off torn ends, put records of loss in the place of damaged lines, and return a line for each repair.

    What a shared home cannot read again from its ledger now is left as it is.
    """
    done = []
    for stored in stored_conversations(home):
        head = head_of(stored.path)
        try:
            log = load(home, stored.id, whole=True)
        except AetherError:
            continue  # `examine` reports it
        doubted = bool(log.lost and ledger.is_shared(home))  # an earlier release did not ask the ledger
        if log.path != stored.path or not (doubted or log.torn or log.damaged or head not in (None, log.lines) or (head is None and _is_flagged(log.path))):  # fmt: skip
            continue
        place = seals.place(home, stored.path)
        with lock_of(home, stored.path), storage_errors(stored.path):
            head = head_of(stored.path)
            log = load(home, stored.id, whole=True)
            try:
                after = repaired(home, log, head, now, compare=doubted)
            except AetherError as reason:
                if not ledger.is_shared(home):
                    raise
                done.append(f"left {place} as it is: {reason.what}")
                continue
            if log.torn and after is log:
                try:
                    cut_end(home, log, now)
                except ConcurrentWrite:  # it is being written: there is nothing to repair
                    continue
                done.append(f"cut off the torn end of {place}")
            if after is not log:
                lost = after.lost - log.lost
                words = f"lost: {pluralize(lost, 'lines')}" if lost > 0 else "nothing is lost"
                done.append(f"wrote {place} again; {words}")
            if after.lines:
                set_head(log.path.with_name(HEAD), after.lines)
    return [*done, *_repair_list(home, now)]


def _repair_list(home: Path, now: datetime) -> Iterator[str]:
    """Write a damaged list again, list what it lacks, and bring missing conversations back from snapshots."""
    known, damaged = listed(home)
    present = _in_place(home)
    if damaged:
        with list_lock(home), storage_errors(home):
            data = regular.read(home / LIST, regular.LOG_BYTES)
            kept = documents.quarantine(home, "conversations", data, at=clock.stamp(now))
            write_whole(home / LIST, b"".join(line for line, good in lines_of(data) if good))
        yield f"wrote {LIST} again; it is kept as {seals.place(home, kept)}"
    for name in sorted(present.keys() - known.keys()):
        enter(home, Listed(present[name].id, clock.stamp(now)))
    missing = [
        one for name, one in known.items()
        if name not in present and not one.archived and not (one.lost and not one.source)
    ]  # fmt: skip
    for one in [] if ledger.is_shared(home) else missing:
        place = seals.place(home, path_of(home, one.id))
        source, records = _newest_copy(home, one.id)
        is_deleted = not (home / place).parent.is_dir()
        if source:
            bring_back(home, one.id, records, now=now)
            yield f"brought {place} back from {source}; its messages since then are lost"
        elif is_deleted:
            yield f"{place}: conversation {shown(one.id)} is lost: its directory was deleted, and no snapshot has it"
        if source or is_deleted:
            enter(home, Listed(one.id, clock.stamp(now), lost=True, source=source))


def _newest_copy(home: Path, id: str) -> tuple[str, list[JsonObject]]:
    """Return the newest snapshot that has the conversation, and its records; an empty name without one."""
    record = seals.read(home)
    for path in sorted((home / "snapshots").glob("*.json"), reverse=True):  # their names sort by time
        place = seals.place(home, path)
        if place in record.whole and seals.fault(home, record, place):
            continue
        with suppress(AetherError, OSError):
            found = files.parse_json(regular.read(path, regular.LOG_BYTES), where=place)
            talks = found.get("conversations") if isinstance(found, dict) else None
            if isinstance(talks, dict) and isinstance(talks.get(id), list):
                return place, talks[id]
    return "", []

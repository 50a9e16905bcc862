"""Commits: the only way state changes, and folding, the only way documents are written.

`commit` takes the lock, loads, asks a pure function what to change, and appends one line: at a crash
anywhere the transaction is wholly there or wholly absent, and once `commit` has returned it is there.
`fold` writes what the journal says into the documents and the append-only files, moves the lines to
history, and starts a new journal; crashing anywhere in between, it is simply done again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from aether import clock
from aether.errors import AetherError, Conflict
from aether.store import archive, config, documents, journal
from aether.store import files as store_files
from aether.store.files import (
    ConcurrentWrite,
    append,
    cut_torn_end,
    locked,
    make_directory,
    storage_errors,
    write_whole,
)
from aether.store.journal import Entry, folded_entries
from aether.store.patch import apply_with_inverse, diff
from aether.store.snapshot import (
    FileId,
    Pending,
    Snapshot,
    file_id,
    file_ids,
    journal_path,
    load,
    read_journal,
    remember,
)
from aether.types import Change

# How often a writer whose lock did not hold (some network file systems) plans anew before it gives up.
CONFLICT_TRIES = 8
# Authors of what was done by itself: by a hook, and by aether (a home begun, a hand-off prepared for a full memory).
HOOK, AETHER = "hook", "aether"
# The author of what a person edited in a file, which is always asked for.
HAND = "hand"
# What makes the documents: there is nothing before it to go back to.
INIT = "init"


class _EditedMeanwhile(Exception):
    """A person saved a document since the snapshot was loaded: it must not be written over."""


class Author(NamedTuple):
    """Who changes what, and why: the words of `aether log`."""

    operation: str
    by: str = "queen"
    reason: str = ""


class Committed(NamedTuple):
    """What a commit did."""

    revision: int
    result: Any
    changed: bool


def commit(
    home: Path,
    plan: Callable[[Snapshot], Change],
    author: Author,
    *,
    now: datetime,
    settings: config.Config | None = None,
) -> Committed:
    """Return what `plan`, given the present state under the lock, changed durably.

    A plan that changes nothing commits nothing. `settings` are those of the home unless given. `plan` may be called again if another writer was in
    between although the lock was held, so it must be pure.

    Raises:
        LockTimeout, NotFound, StorageFailed, CorruptDocument, InvalidDocument, Conflict: nothing was
            changed. Whatever `plan` raises passes through.
    """
    settings = settings or config.load(home)
    with locked(home, timeout=settings.lock_timeout_seconds):
        snapshot = settle(load(home), now=now)
        for _ in range(CONFLICT_TRIES):
            change = plan(snapshot)
            if not any(change.patches.values()) and not any(change.appends.values()):
                return Committed(snapshot.revision, change.result, changed=False)
            try:
                after = _append(snapshot, change, author, now)
            except ConcurrentWrite:
                snapshot = settle(load(home), now=now)
                continue
            if after.end > settings.fold_bytes:
                _fold_quietly(after, now)
            return Committed(after.revision, change.result, changed=True)
    raise Conflict(
        f"another process wrote at the same time, {CONFLICT_TRIES} times, although the lock was held.",
        fix="Keep the home on a local disk: this file system does not honour locks.",
        where=str(home),
    )


def _append(snapshot: Snapshot, change: Change, author: Author, now: datetime) -> Snapshot:
    state, inverse = dict(snapshot.documents), {}
    for name, patch in change.patches.items():
        if name not in state:
            documents.path_of(snapshot.home, name)  # says which there are
        for step in patch:
            store_files.checked_json(
                step.get("value"), where=author.operation, above=str(step.get("path")).count("/")
            )
        state[name], inverse[name] = apply_with_inverse(state[name], patch)
    for kind, made in change.appends.items():
        archive.files_of(snapshot.home, kind)
        store_files.checked_json(made, where=author.operation)
    patches = {name: patch for name, patch in change.patches.items() if patch}
    records = {kind: made for kind, made in change.appends.items() if made}
    entry = Entry(
        snapshot.revision + 1, clock.stamp(now), author.by, author.operation, author.reason,
        patches, {name: inverse[name] for name in patches}, records,
    )  # fmt: skip
    line = journal.entry_line(entry)
    end = snapshot.end
    with storage_errors(snapshot.home):
        if not end:
            end = _start_journal(snapshot.home, snapshot.revision, snapshot.stamps)
        append(journal_path(snapshot.home), line, at=end)
        files = (_grown(snapshot, end + len(line)), *snapshot.files[1:])
    after = snapshot._replace(
        revision=entry.revision, documents=state, changed=snapshot.changed | patches.keys(),
        pending=(*snapshot.pending, Pending(entry.revision, entry.at, records)) if records else snapshot.pending,
        end=end + len(line), files=files,
    )  # fmt: skip
    remember(after)
    return after


def _grown(snapshot: Snapshot, end: int) -> FileId:
    try:
        found = journal_path(snapshot.home).stat()
    except OSError:
        return None  # the line is stored; the next load looks again
    return found.st_ino, found.st_mtime_ns, end


def _header(base: int, stamps: Iterable[str]) -> bytes:
    return journal.header(base, made=[name for name in documents.OPTIONAL if name in stamps])


def _start_journal(home: Path, base: int, stamps: Iterable[str]) -> int:
    first = _header(base, stamps)
    write_whole(journal_path(home), first)
    return len(first)


def settle(snapshot: Snapshot, *, now: datetime) -> Snapshot:
    """Return `snapshot` with what was amiss written down: hand edits, rebuilt files, a torn last line.

    The caller holds the lock.
    """
    if snapshot.torn:
        snapshot = _cut_torn(snapshot, now)
    return fold(snapshot, now=now) if snapshot.amiss or snapshot.known else snapshot


def _brought_in(snapshot: Snapshot, now: datetime) -> Snapshot:
    """Return `snapshot` with what the files say committed; what does not parse is kept aside."""
    if not snapshot.amiss and not snapshot.known:
        return snapshot
    with storage_errors(snapshot.home):
        for name, file in snapshot.amiss.items():
            if file.state == "corrupt":
                data = documents.path_of(snapshot.home, name).read_bytes()
                documents.quarantine(snapshot.home, name, data, at=clock.stamp(now))
    return _bring_in(snapshot, now)


def _bring_in(snapshot: Snapshot, now: datetime) -> Snapshot:
    """Return `snapshot` with what the files say beyond the journal committed as a change of its own."""
    before = snapshot._replace(documents={**snapshot.documents, **snapshot.known})
    patches = {name: diff(known, snapshot.documents[name]) for name, known in snapshot.known.items()}
    if not any(patches.values()):
        return snapshot
    words = {"edited": "edited by hand", "unstamped": "brought in", "missing": "made", "corrupt": "made"}
    states = {words[file.state] for name, file in snapshot.amiss.items() if patches.get(name)}
    author = Author(", ".join(sorted(states)) or "migrated", by=HAND if states else AETHER)
    if not snapshot.revision and states == {"made"}:
        author = Author(INIT, by=AETHER)
    return _append(before, Change(patches), author, now)


def _cut_torn(snapshot: Snapshot, now: datetime) -> Snapshot:
    path = journal_path(snapshot.home)
    with storage_errors(snapshot.home):
        tail = path.read_bytes()[snapshot.end :]
        if journal.scan(tail, base=snapshot.revision, where=str(path)).end:
            # Whole by now: another writer was at it although the lock was held. It is not ours to cut.
            return load(snapshot.home)
        documents.quarantine(snapshot.home, "journal", tail, at=clock.stamp(now))
        os.truncate(path, snapshot.end)
    after = snapshot._replace(torn=False, files=(file_id(str(path)), *snapshot.files[1:]))
    remember(after)
    return after


def fold_home(home: Path, *, now: datetime) -> Snapshot:
    """Fold the journal of `home`: `aether fold`, the end of a command, a phase boundary."""
    snapshot = load(home)
    if (
        not snapshot.amiss
        and not snapshot.torn
        and snapshot.end <= len(_header(snapshot.revision, snapshot.stamps))
    ):
        return snapshot
    with locked(home):
        return fold(settle(load(home), now=now), now=now)


def _fold_quietly(snapshot: Snapshot, now: datetime) -> None:
    try:
        fold(snapshot, now=now)
    except AetherError:
        # The commit is durable already; the next opener folds, and doctor says what is wrong.
        return


def fold(snapshot: Snapshot, *, now: datetime) -> Snapshot:
    """Return `snapshot` folded, with what was amiss in it; the caller holds the lock.

    A document that a person saved since it was loaded is brought in first, never written over.

    Raises:
        Conflict: another writer was here although the lock was held; nothing of its work is lost. Or a
            document was edited again and again.
    """
    try:
        for _ in range(CONFLICT_TRIES):
            try:
                return _fold(_brought_in(snapshot, now))
            except _EditedMeanwhile:
                snapshot = load(snapshot.home)
    except ConcurrentWrite as reason:
        raise Conflict(
            "another process wrote while the journal was folded, although the lock was held.",
            fix="Try again; keep the home on a local disk.",
            where=str(snapshot.home),
        ) from reason
    raise Conflict(
        f"a document was edited while it was written, {CONFLICT_TRIES} times.",
        fix="Try again when the edit is done.",
        where=str(snapshot.home),
    )


def _fold(snapshot: Snapshot) -> Snapshot:
    home, written = snapshot.home, snapshot.changed | snapshot.amiss.keys()
    with storage_errors(home, left="What was committed stands in the journal."):
        found = read_journal(home)
        if snapshot.end and found.base + len(found.entries) != snapshot.revision:
            raise ConcurrentWrite(home)
        _to_history(home, found)
        _forget(home, config.or_default(home).history_months)
        archive.fold(home, snapshot.pending)
        _require_unedited(snapshot, documents.NAMES)
        for name in sorted(written):
            _require_unedited(snapshot, [name])
            if name in documents.OPTIONAL and name not in found.made and not snapshot.stamps.get(name):
                documents.backup_default(home, name, found.base)
            documents.write(home, name, snapshot.documents[name], snapshot.revision)
        stamps = {**snapshot.stamps, **dict.fromkeys(written, snapshot.revision)}
        end = _start_journal(home, snapshot.revision, stamps)
        after = snapshot._replace(
            stamps=stamps, changed=frozenset(), pending=(), end=end, torn=False, amiss={}, known={},
            files=file_ids(home),
        )  # fmt: skip
    remember(after)
    return after


def _require_unedited(snapshot: Snapshot, names: Iterable[str]) -> None:
    loaded = dict(zip(documents.NAMES, snapshot.files[1:], strict=True))
    for name in names:
        if file_id(str(documents.path_of(snapshot.home, name))) != loaded[name]:
            raise _EditedMeanwhile


def _to_history(home: Path, found: journal.Scan) -> None:
    """Move the journal's lines, byte for byte, behind the folded ones; once, however often it is done."""
    months = journal.month_files(home)
    last = next(folded_entries(home, newest_first=True), None)
    fresh: dict[Path, list[bytes]] = {}
    for entry, line in zip(found.entries, found.lines, strict=True):
        if last is None or entry.revision > last.revision:
            # Never an earlier file than the last one: a clock that was set back must not break the order.
            path = max([home / "data" / "journal" / f"{entry.at[:7]}.jsonl", *months[-1:], *fresh])
            fresh.setdefault(path, []).append(line)
    for path, lines in fresh.items():
        make_directory(path.parent)
        append(path, b"".join(lines), at=cut_torn_end(path))


def _forget(home: Path, keep: int) -> None:
    """Remove the months of history beyond the newest `keep`; 0, the default, keeps all of them."""
    for path in journal.month_files(home)[:-keep] if keep else []:
        path.unlink()

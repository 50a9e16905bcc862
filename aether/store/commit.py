"""Commits: the only way state changes, and folding, the only way documents are written.

`commit` takes the lock, loads, asks a pure function for the change, and appends one line: after a crash the
transaction is wholly there or wholly absent, and once `commit` has returned it is there. `fold` writes the journal
into the documents and the append-only files, moves its lines to history, and starts a new journal; after a crash it
is done again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import datetime
from pathlib import Path
from typing import Any

from aether import clock, regular
from aether.errors import AetherError, Conflict
from aether.store import archive, config, documents, rewrite, seals, spool
from aether.store.files import (
    ConcurrentWrite,
    EditedMeanwhile,
    append,
    checked_json,
    head_path,
    lines_backwards,
    locked,
    require_exclusive,
    set_head,
    storage_errors,
    unsealed,
    write_whole,
)
from aether.store.patch import apply_with_inverse, diff
from aether.store.seals import ranges
from aether.store.snapshot import (
    Entry,
    Journal,
    Pending,
    Snapshot,
    entry_line,
    file_id,
    folded_entries,
    journal_header,
    journal_path,
    load,
    month_files,
    read_journal,
    remember,
    resolve_or_refuse,
    scan_journal,
)
from aether.tuples import NamedTuple
from aether.types import Change

# How often a writer whose lock did not hold (on some network file systems) plans again before it gives up.
CONFLICT_TRIES = 8
# Authors of automatic changes: a hook, and aether (a new home, a hand-off prepared for a full memory).
HOOK, AETHER = "hook", "aether"
# The author of steps of the archive, which change no document.
ARCHIVE = "archive"
# The author of edits that a person made in a file.
HAND = "hand"
# The operation that makes the documents: there is nothing before it to restore.
INIT = "init"


# The author where nobody else is named: the person whose colony it is.
QUEEN = "queen"


class Author(NamedTuple):
    """Who changes what, and why, as `aether log` shows it."""

    operation: str
    by: str = QUEEN
    reason: str = ""
    part: str = ""
    """See `snapshot.Entry`."""


class Committed(NamedTuple):
    """The result of a commit."""

    revision: int
    result: Any
    changed: bool


class Acting(NamedTuple):
    """A surface through which a person acts: what it commits in place of the Queen, and under which condition."""

    by: str
    revisions: list[int]
    """The revisions that were made, in their order; it grows."""
    require: Callable[[Snapshot], None] = lambda snapshot: None
    """Raises an error if what the person saw has changed; asked under the lock, of the first change."""
    read_only: bool = False


ACTING: ContextVar[Acting | None] = ContextVar("acting", default=None)


@contextmanager
def acting(
    by: str, require: Callable[[Snapshot], None] | None = None, *, read_only: bool = False
) -> Iterator[Acting]:
    """Commit changes of the Queen under the name `by` during the block, in this thread or task only.

    `read_only` refuses all of them, and leaves the spool as it is.
    """
    found = Acting(by, [], read_only=read_only)
    token = ACTING.set(found._replace(require=require) if require else found)
    try:
        yield found
    finally:
        ACTING.reset(token)


def commit(
    home: Path,
    plan: Callable[[Snapshot], Change],
    author: Author,
    *,
    now: datetime,
    settings: config.Config | None = None,
    ahead: bool = False,
) -> Committed:
    """Commit the change that `plan` makes of the present state, and return its result.

    With `ahead` a plan that takes long is made before the lock is taken; under it only if the home changed meanwhile.

    A plan that changes nothing commits nothing. `plan` may be called again if another writer was in between although
    the lock was held, so it must be pure. `settings` are those of the home unless given.

    Raises:
        LockTimeout, NotFound, StorageFailed, CorruptDocument, InvalidDocument, Conflict: nothing was
            changed. Errors of `plan` pass through.
    """
    actor = ACTING.get()
    if actor and actor.read_only:
        fix = "Start it again without --read-only to change something."
        raise Conflict("this view is read-only: nothing was changed.", fix=fix, where=actor.by)
    settings = settings or config.load(home)
    seen, early = _planned_ahead(home, plan) if ahead else (None, None)
    with write_lock(home, timeout=settings.lock_timeout_seconds):
        snapshot = settle(load(home), now=now)

        def planned(found: Snapshot) -> Change:
            return early if early is not None and found is seen else plan(found)

        if actor is None or author.by != QUEEN:
            return _committed(snapshot, planned, author, now, settings)
        if not actor.revisions:
            actor.require(snapshot)
        done = _committed(snapshot, planned, author._replace(by=actor.by), now, settings)
        actor.revisions.extend([done.revision] if done.changed else [])
        return done


def commit_locked(
    home: Path, plan: Callable[[Snapshot], Change], author: Author, *, now: datetime
) -> Committed:
    """Do the same as `commit` for a caller who holds the lock of the home, because other files change with it.

    Raises:
        NotFound, StorageFailed, CorruptDocument, InvalidDocument, Conflict: nothing was changed.
    """
    return _committed(settle(load(home), now=now), plan, author, now, config.or_default(home))


def _committed(
    snapshot: Snapshot,
    plan: Callable[[Snapshot], Change],
    author: Author,
    now: datetime,
    settings: config.Config,
) -> Committed:
    home, tried = snapshot.home, dict[int, tuple[bytes, Change]]()
    for _ in range(CONFLICT_TRIES):
        change = plan(snapshot)
        if not any(change.patches.values()) and not any(change.appends.values()):
            return Committed(snapshot.revision, change.result, changed=False)
        try:
            after = _append(snapshot, change, author, now)
        except ConcurrentWrite as reason:
            if reason.tried:
                tried[reason.tried[0]] = reason.tried[1], change
            snapshot = settle(load(home), now=now)
            # After loading: what is carried into a new journal later makes this state too old to append to.
            for revision, (line, made) in tried.items():
                if _is_stored(home, revision, line):
                    return Committed(revision, made.result, changed=True)
            continue
        if after.end > settings.fold_bytes:
            # The commit is durable: the next opener folds, and doctor reports.
            with suppress(AetherError):
                fold(after, now=now)
        return Committed(after.revision, change.result, changed=True)
    what = f"another process wrote at the same time, {CONFLICT_TRIES} times, although the lock was held."
    fix = "Keep the home on a local disk: this file system does not honour locks."
    raise Conflict(what, fix=fix, where=str(home))


def _planned_ahead(home: Path, plan: Callable[[Snapshot], Change]) -> tuple[Snapshot | None, Change | None]:
    """Return the present state and its planned change; nothing if it cannot be planned now."""
    with suppress(AetherError):  # under the lock it is an error
        seen = load(home)
        return seen, plan(seen)
    return None, None


@contextmanager
def write_lock(home: Path, *, timeout: float | None = None) -> Iterator[None]:
    """Hold the lock of `home`, after finishing the rewrite of its files that a killed process has decided on.

    Nothing may be written into half a rewrite. `timeout` is that of the home unless given.

    Raises:
        LockTimeout, NotFound, StorageFailed: as `files.locked`, or the rewrite cannot be finished.
    """
    seconds = config.or_default(home).lock_timeout_seconds if timeout is None else timeout
    with locked(home, timeout=seconds):
        if os.path.exists(f"{home}/{rewrite.DIRECTORY}"):
            for path in rewrite.finish(home, timeout=seconds):
                reason = (
                    "changed while an erasing was interrupted, and may still hold the text: erase it again."
                )
                spool.log_failure(str(home), "erase", "", f"{path} {reason}")
        yield


def _append(snapshot: Snapshot, change: Change, author: Author, now: datetime) -> Snapshot:
    home, state, inverse = snapshot.home, dict(snapshot.documents), {}
    for name, patch in change.patches.items():
        if name not in state:
            documents.path_of(home, name)  # raises NotFound
        for step in patch:
            checked_json(step.get("value"), where=author.operation, above=str(step.get("path")).count("/"))
        state[name], inverse[name] = apply_with_inverse(state[name], patch)
    for kind, made in change.appends.items():
        archive.files_of(home, kind)
        checked_json(made, where=author.operation)
    patches = {name: patch for name, patch in change.patches.items() if patch}
    records = {kind: made for kind, made in change.appends.items() if made}
    entry = Entry(
        snapshot.revision + 1, clock.stamp(now), author.by, author.operation, author.reason,
        patches, {name: inverse[name] for name in patches}, records, part=author.part,
    )  # fmt: skip
    line = entry_line(entry)
    end = snapshot.end
    with storage_errors(home):
        if not end:
            sealed = (home / seals.PATH).exists()
            end = _start_journal(home, snapshot.revision, snapshot.stamps, sealed=sealed, old=None)
        try:
            append(journal_path(home), line, at=end)
        except ConcurrentWrite as reason:
            reason.tried = entry.revision, line
            raise
        end += len(line)
        set_head(head_path(home), entry.revision)
        grown = None  # if it cannot be asked for, the next load reads again
        with suppress(OSError):
            found = journal_path(home).stat()
            grown = found.st_ino, found.st_mtime_ns, end
    after = snapshot._replace(
        revision=entry.revision, documents=state, changed=snapshot.changed | patches.keys(),
        pending=(*snapshot.pending, Pending(entry.revision, entry.at, records)) if records else snapshot.pending,
        end=end, files=(grown, *snapshot.files[1:]),
    )  # fmt: skip
    remember(after)
    return after


def _header(base: int, stamps: Iterable[str], *, sealed: bool) -> bytes:
    made = [name for name in documents.OPTIONAL if name in stamps]
    return journal_header(base, made=made, sealed=sealed)


def _start_journal(
    home: Path, base: int, stamps: Iterable[str], *, sealed: bool, old: tuple[int, int] | None
) -> int:
    first = _header(base, stamps, sealed=sealed)
    _replace_journal(home, first, base, old)
    if not head_path(home).exists():
        set_head(head_path(home), base)
    return len(first)


def _journal_id(home: Path) -> tuple[int, int] | None:
    """Return inode and size of the journal: what changes when somebody replaces it or appends to it."""
    found = file_id(str(journal_path(home)))
    return found and (found[0], found[2])


def _replace_journal(home: Path, data: bytes, head: int, old: tuple[int, int] | None) -> None:
    """Put a journal whose last revision is `head` in the place of the one that was read, whose inode and size are `old`.

    Without a working lock others may have written to the journal since. They lose nothing: the two files are exchanged
    in one step, and the lines that the old one has beyond `head` are appended to the new one. A writer who comes later
    notices that the journal is another.

    Raises:
        ConcurrentWrite: the journal is not the one that was read, and is still in its place.
    """
    path = journal_path(home)

    def is_known(found: Path) -> bool:
        now = file_id(str(found))
        return (now and (now[0], now[2])) == old

    try:
        write_whole(path, data, is_known=is_known)
    except EditedMeanwhile as grown:
        if not grown.aside:
            raise ConcurrentWrite(path) from grown
        _carry(home, grown.aside, head)


def _carry(home: Path, aside: Path, head: int) -> None:
    """Append to the journal what `aside`, which was the journal until now, has beyond revision `head`."""
    held = {
        fields["revision"]: line
        for place in (*month_files(home), aside)
        for line in regular.read(place, regular.LOG_BYTES).splitlines(keepends=True)
        if line.endswith(b"\n") and (fields := unsealed(line)) and fields.get("revision", 0) > head
    }
    for _ in range(CONFLICT_TRIES):
        data = regular.read(journal_path(home), regular.LOG_BYTES)
        found = scan_journal(data, where=str(aside))
        reached = found.base + len(found.entries)
        more = [held[revision] for revision in sorted(held) if revision > reached]
        try:
            if more:
                append(journal_path(home), b"".join(more), at=len(data))
        except ConcurrentWrite:
            continue
        if all(_is_stored(home, revision, line) for revision, line in held.items()):
            aside.unlink()
            return
        break
    # Their writers may have planned them again, so that they are in the home twice if they are applied here.
    what = f"kept aside as {aside.name}: it was written while the journal was replaced, although the lock was held."
    spool.log_failure(str(home), "commit", "", what)


def _is_stored(home: Path, revision: int, line: bytes) -> bool:
    """Return whether `line` is the one that counts for its revision, in the journal or in the history."""
    with storage_errors(home):
        found = read_journal(home)
        if revision > found.base:
            return line in found.lines[revision - found.base - 1 : revision - found.base]
        for path in reversed(month_files(home)):
            for held in lines_backwards(path):
                number = (unsealed(held) or {}).get("revision", revision)
                if held == line or number < revision:
                    return held == line
    return False


def settle(snapshot: Snapshot, *, now: datetime) -> Snapshot:
    """Return `snapshot` after writing hand edits, rebuilt files and the removal of a torn last line to the disk.

    The caller holds the lock.
    """
    if snapshot.harm:
        write_recovered(snapshot.home, now=now)
        snapshot = load(snapshot.home)
    if snapshot.torn:
        home, path = snapshot.home, journal_path(snapshot.home)
        with storage_errors(home):
            old, data = _journal_id(home), regular.read(path, regular.LOG_BYTES)
            kept, tail = data[: snapshot.end], data[snapshot.end :]
            # If it is whole by now, another writer appended although the lock was held. It is not ours to cut.
            if not scan_journal(tail, base=snapshot.revision, where=str(path)).end:
                documents.quarantine(home, "journal", tail, at=clock.stamp(now))
                with suppress(ConcurrentWrite):
                    _replace_journal(home, kept, snapshot.revision, old and (old[0], len(data)))
            snapshot = load(home)
    return fold(snapshot, now=now) if snapshot.irregular or snapshot.known else snapshot


def write_recovered(home: Path, *, now: datetime, found: Journal | None = None) -> list[str]:
    """Write a damaged journal again as it is read, or as `found`; return the losses in words. The caller holds the lock.

    The file goes to quarantine, and the losses go to the record of seals.
    """
    path, done = journal_path(home), []
    with storage_errors(home):
        old = _journal_id(home)
        found = found or read_journal(home)
        if not found.harm:
            return []
        require_exclusive(home)
        kept = None
        if path.exists():
            kept = documents.quarantine(
                home, "journal", regular.read(path, regular.LOG_BYTES), at=clock.stamp(now)
            )
        record = seals.read(home)
        for numbers, words in (
            (found.harm.lost, "lost"),
            (found.harm.unfit, "left out: no longer fit what is left"),
        ):
            for first, last in ranges(numbers):
                what = f"revisions {first} to {last} were {words}"
                record = seals.with_loss(record, seals.JOURNAL, what, now=now, revisions=(first, last))
                done.append(what)
        if found.harm.lines:
            unfit = documents.quarantine(
                home, "journal-unfit", b"".join(found.harm.lines), at=clock.stamp(now)
            )
            done.append(f"what was left out is in {seals.place(home, unfit)}")
        if kept:
            done.append(f"the damaged journal is in {seals.place(home, kept)}")
        if record.losses and record.state != "damaged":
            seals.write(home, record if record.state == "good" else seals.appended(home, record, {}))
        head = found.base + len(found.entries)
        data = journal_header(found.base, made=found.made, sealed=found.sealed) + b"".join(found.lines)
        try:
            _replace_journal(home, data, head, old)
        except ConcurrentWrite as reason:
            what = "another process wrote to the journal while it was repaired, although the lock was held."
            raise Conflict(what, fix="Try again; keep the home on a local disk.", where=str(path)) from reason
        set_head(head_path(home), head)
    return done


def fold_home(home: Path, *, now: datetime, timeout: float | None = None) -> Snapshot:
    """Fold the journal of `home`: `aether fold`, the end of a command, a phase boundary; `timeout` as for `write_lock`."""
    snapshot = load(home)
    empty = snapshot.end <= len(_header(snapshot.revision, snapshot.stamps, sealed=True))
    if empty and not snapshot.irregular and not snapshot.torn and not snapshot.harm:
        return snapshot
    with write_lock(home, timeout=timeout):
        return fold(settle(load(home), now=now), now=now)


def fold(snapshot: Snapshot, *, now: datetime) -> Snapshot:
    """Return `snapshot` folded, its hand edits and rebuilt documents included; the caller holds the lock.

    A document that a person saved since it was loaded is committed first, never overwritten; an edit that conflicts
    with the journal goes to quarantine, and the journal's state is written.

    Raises:
        Conflict: another writer was active although the lock was held; nothing of its work is lost. Or a
            document was edited again and again.
    """
    try:
        for _ in range(CONFLICT_TRIES):
            try:
                return _fold(_with_files_committed(snapshot, now))
            except EditedMeanwhile as edited:
                snapshot = load(snapshot.home)
                if edited.aside:
                    snapshot = _with_edit(
                        _with_files_committed(snapshot, now), edited.path.stem, edited.aside, now
                    )
    except ConcurrentWrite as reason:
        what = "another process wrote while the journal was folded, although the lock was held."
        fix = "Try again; keep the home on a local disk."
        raise Conflict(what, fix=fix, where=str(snapshot.home)) from reason
    what = f"a document was edited while it was written, {CONFLICT_TRIES} times."
    raise Conflict(what, fix="Try again when the edit is done.", where=str(snapshot.home))


def _with_files_committed(snapshot: Snapshot, now: datetime) -> Snapshot:
    """Return `snapshot` after committing what its files hold beyond the journal; unreadable files are kept aside."""
    if not snapshot.irregular and not snapshot.known:
        return snapshot
    with storage_errors(snapshot.home):
        for name, file in snapshot.irregular.items():
            if file.state == "corrupt":
                data = regular.read(documents.path_of(snapshot.home, name))
                documents.quarantine(snapshot.home, name, data, at=clock.stamp(now))
        for name, about in snapshot.refused.items():
            data = regular.read(documents.path_of(snapshot.home, name))
            documents.keep_edit(snapshot.home, name, {**about, "kept_at": clock.stamp(now)}, data)
    before = snapshot._replace(documents={**snapshot.documents, **snapshot.known})
    patches = {name: diff(known, snapshot.documents[name]) for name, known in snapshot.known.items()}
    if not any(patches.values()):
        return snapshot
    words = {"edited": "edited by hand", "unstamped": "brought in", "missing": "made", "corrupt": "made"}
    states = {words[file.state] for name, file in snapshot.irregular.items() if patches.get(name)}
    author = Author(", ".join(sorted(states)) or "migrated", by=HAND if states else AETHER)
    if not snapshot.revision and states == {"made"}:
        author = Author(INIT, by=AETHER)
    return _append(before, Change(patches), author, now)


def _with_edit(snapshot: Snapshot, name: str, aside: Path, now: datetime) -> Snapshot:
    """Return `snapshot` after committing an edit of document `name` that was saved at the instant of its replacement."""
    home, at = snapshot.home, clock.stamp(now)
    with storage_errors(home):
        data = regular.read(aside)
        file = documents.parse(data, where=f"{name}.json")
        if file.state == "corrupt":  # perhaps still being written: what follows belongs to the same file
            os.replace(aside, documents.quarantine(home, name, data, at=at))
            return snapshot
        known = snapshot.documents[name]
        wanted, refusal = resolve_or_refuse(home, name, read_journal(home), file, known)
        if file.state != "good" and refusal:
            documents.keep_edit(home, name, {**refusal, "kept_at": at}, data)
        elif file.state != "good" and (patch := diff(known, wanted)):
            snapshot = _append(snapshot, Change({name: patch}), Author("edited by hand", by=HAND), now)
        aside.unlink()
    return snapshot


def _fold(snapshot: Snapshot) -> Snapshot:
    home, written = snapshot.home, snapshot.changed | snapshot.irregular.keys()
    with storage_errors(home, left="The commits are in the journal."):
        if snapshot.revision > 1:  # a home that is being made has nothing to lose
            require_exclusive(home)
        old, found = _journal_id(home), read_journal(home)
        if snapshot.end and found.base + len(found.entries) != snapshot.revision:
            raise ConcurrentWrite(home)
        # The lines move byte for byte; a fold that is done again adds nothing.
        last, months = next(folded_entries(home, newest_first=True), None), month_files(home)
        fresh: dict[Path, list[bytes]] = {}
        for entry, line in zip(found.entries, found.lines, strict=True):
            if last is None or entry.revision > last.revision:
                # Never an earlier file than the last one: a clock that was set back must not break the order.
                path = max([home / "data" / "journal" / f"{entry.at[:7]}.jsonl", *months[-1:], *fresh])
                fresh.setdefault(path, []).append(line)
        fresh |= archive.lines_to_fold(home, snapshot.pending)
        known = seals.read(home)
        record = seals.appended(home, known, fresh)
        archive.write_lines(fresh)
        if keep := config.or_default(home).history_months:
            for path in month_files(home)[:-keep]:
                path.unlink()
                record.grown.pop(seals.place(home, path), None)
        _require_unedited(snapshot, documents.NAMES)
        # The ids of the files that were written, not of what is there by now: that may be saved by somebody since.
        made = dict(zip(documents.NAMES, snapshot.files[1:], strict=True))
        for name in sorted(written):
            _require_unedited(snapshot, [name])
            if name in documents.OPTIONAL and name not in found.made and not snapshot.stamps.get(name):
                documents.backup_default(home, name, found.base)
            made[name] = documents.write(
                home, name, snapshot.documents[name], snapshot.revision,
                is_known=_is_loaded(snapshot, name), grown=snapshot.end,
            )  # fmt: skip
        stamps = {**snapshot.stamps, **dict.fromkeys(written, snapshot.revision)}
        # A record that was damaged or removed is not made again by itself: that would hide what it would have shown.
        kept = known.state == "good" or not found.sealed
        if kept and (record != known or not found.sealed):
            seals.write(home, record._replace(revision=snapshot.revision))
        end = _start_journal(home, snapshot.revision, stamps, sealed=True, old=old)
        started = file_id(str(journal_path(home)))
        after = snapshot._replace(
            stamps=stamps, changed=frozenset(), pending=(), end=end, torn=False, irregular={}, known={}, refused={},
            files=(started and (*started[:2], end), *made.values()),
        )  # fmt: skip
    remember(after)
    return after


def _require_unedited(snapshot: Snapshot, names: Iterable[str]) -> None:
    for name in names:
        path = documents.path_of(snapshot.home, name)
        if not _is_loaded(snapshot, name)(path):
            raise EditedMeanwhile(path)


def _is_loaded(snapshot: Snapshot, name: str) -> Callable[[Path], bool]:
    """Return whether a file, under any name, is the one from which document `name` was loaded."""
    loaded = snapshot.files[1 + documents.NAMES.index(name)]
    return lambda path: file_id(str(path)) == loaded

"""Commits: the only way state changes, and folding, the only way documents are written.

`commit` takes the lock, loads, asks a pure function for the change, and appends one line: after a crash the
transaction is wholly there or wholly absent, and once `commit` has returned it is there. `fold` writes the journal
into the documents and the append-only files, moves its lines to history, and starts a new journal; after a crash it
is done again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from aether import clock, regular
from aether.errors import AetherError, Conflict, Refused, StorageFailed, note_stored, own_call
from aether.store import config, documents, files, ledger, record_files, rewrite, seals, spool
from aether.store.authors import ACTING, AETHER, HAND, INIT, PERSON, QUEEN, Author, is_agent
from aether.store.files import (
    EditedMeanwhile,
    leftover_temps,
    locked,
    require_exclusive,
    storage_errors,
    write_whole,
)
from aether.store.journal import (
    Harm,
    Journal,
    entry_line,
    folded_entries,
    journal_header,
    journal_path,
    last_folded,
    month_files,
    read_journal,
    scan_journal,
)
from aether.store.keys import GATES
from aether.store.log import (
    MARK_BYTES,
    ConcurrentWrite,
    append,
    checksum_of,
    head_path,
    lines_backwards,
    set_head,
    unsealed,
)
from aether.store.patch import diff
from aether.store.seals import ranges, revisions
from aether.store.snapshot import Snapshot, after_change, file_id, load, remember, resolve_or_refuse
from aether.types import Change

# What `memory.agents` lets agents do: as `keys.GATES`.
_OFF, _PROPOSE, _WRITE = GATES
# Changes of agents that state nothing, and those whose statements wait for a person or are no statements.
_READING_OPERATIONS = frozenset({"access"})
_WAITING_OPERATIONS = frozenset({"add", "close", "compress", "prepare", "claim", "release", "take packets"})
# Changes whose authors are agents by their names.
_NAMED_OPERATIONS = frozenset({"claim", "release", "hand over", "take packets", "memory write"})
# How often a writer whose lock did not hold (on some network file systems) plans again before it gives up.
CONFLICT_TRIES = 8
# How many times longer the journal may grow between the parts of one import, which would rewrite memory for each of them.
PART_JOURNALS = 8
# A temporary file that is older was left by a killed process.
OLD_SECONDS = 3600.0
# Homes whose temporary files this process has looked at.
_SWEPT: set[Path] = set()


class Committed(NamedTuple):
    """The result of a commit."""

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
    ahead: bool = False,
    may_wait: bool = False,
) -> Committed:
    """Commit the change that `plan` makes of the present state, and return its result.

    With `ahead` a plan that takes long is made before the lock is taken; under it only if the home changed meanwhile.
    With `may_wait` a change that the server of a shared home cannot take now waits for it, if `share.offline` says so.

    A plan that changes nothing commits nothing. `plan` may be called again if another writer was in between although
    the lock was held, so it must be pure. `settings` are those of the home unless given.

    Raises:
        LockTimeout, NotFound, StorageFailed, CorruptDocument, InvalidDocument, Conflict: nothing was
            changed. Errors of `plan` pass through.
        Refused: a model may not make this change, by `memory.agents`.
    """
    settings, actor = settings or config.load(home), ACTING.get()
    if actor and actor.read_only:
        fix = "Start it again without --read-only to change something."
        raise Conflict("this view is read-only: nothing was changed.", fix=fix, where=actor.by)
    is_named = author.operation in _NAMED_OPERATIONS
    if settings.memory_agents != _WRITE and is_agent(author.by, named=is_named):
        _require_gate(settings.memory_agents, author)
    acts = actor if actor and author.by == QUEEN else None
    early = _planned_ahead(home, plan) if ahead and not acts else None

    def planned(seen: Snapshot) -> Change:
        if acts and not acts.revisions:
            acts.require(seen)
        return early[1] if early and seen is early[0] else plan(seen)

    author = author._replace(by=acts.by) if acts else author
    with write_lock(home, timeout=settings.lock_timeout_seconds):
        done = _commit(home, planned, author, now, settings, may_wait=may_wait)
    if acts and done.changed:
        acts.revisions.append(done.revision)
    return done


def _require_gate(mode: str, author: Author) -> None:
    """Require that a change of a model states nothing, or that what it states waits.

    Raises:
        Refused: it would be in force at once, or `memory.agents` is off.
    """
    if author.operation in _READING_OPERATIONS or (
        mode == _PROPOSE and author.operation in _WAITING_OPERATIONS
    ):
        return
    what, way = "agents may only read memory here.", ""
    if mode == _PROPOSE:
        what = "agents only propose here, and this cannot wait for a person."
        way = "State it with remember or close_session instead. "
    fix = f'{way}The person can change this: memory.agents = "write" in the config.toml of the home, or AETHER_MEMORY_AGENTS.'
    raise Refused(what, fix=fix, where=author.operation)


def commit_locked(
    home: Path, plan: Callable[[Snapshot], Change], author: Author, *, now: datetime
) -> Committed:
    """Commit as `commit` does, for a caller who holds the lock of the home, because other files change with it.

    Raises:
        NotFound, StorageFailed, CorruptDocument, InvalidDocument, Conflict: nothing was changed.
    """
    return _commit(home, plan, author, now, config.or_default(home), may_wait=False)


def _commit(
    home: Path,
    plan: Callable[[Snapshot], Change],
    author: Author,
    now: datetime,
    settings: config.Config,
    *,
    may_wait: bool,
) -> Committed:
    if author.by == QUEEN:
        author = author._replace(by=PERSON.get())
    if ledger.is_shared(home) or os.path.exists(f"{home}/{ledger.QUEUE}"):
        shared = ledger.sharing(home)
        done: Committed = shared.commit(home, plan, author, now=now, settings=settings, may_wait=may_wait)
        return done
    return commit_to(settle(load(home), now=now), plan, author, now, settings)


def _planned_ahead(home: Path, plan: Callable[[Snapshot], Change]) -> tuple[Snapshot, Change] | None:
    """Return the present state and its planned change; None if it cannot be planned now."""
    with suppress(AetherError):  # under the lock it is an error
        seen = load(home)
        return seen, plan(seen)
    return None


def commit_to(
    snapshot: Snapshot,
    plan: Callable[[Snapshot], Change],
    author: Author,
    now: datetime,
    settings: config.Config,
    *,
    key: str = "",
) -> Committed:
    """Commit a change of a settled `snapshot`, or of what others made of it meanwhile; the caller holds the lock of the home.

    In a shared home the ledger must take its line first, which holds the `key` of a change that may wait for it.

    Raises:
        Offline: the ledger could not take it.
        StorageFailed, CorruptDocument, Conflict: nothing was changed. Errors of `plan` pass through.
    """
    home, tried, is_late = snapshot.home, dict[int, tuple[bytes, Change]](), False
    try:
        for _ in range(CONFLICT_TRIES):
            seen, change = _planned(snapshot, plan, now)
            if not does_something(change):
                return Committed(seen.revision, change.result, changed=False)
            try:
                after = _append(seen, change, author, now, key=key)
            except ConcurrentWrite as reason:
                is_late = True
                snapshot = settle(catch_up(settle(load(home), now=now), now=now), now=now)
                if reason.tried:
                    tried[reason.tried[0]] = reason.tried[1], change
                # After loading: what is carried into a new journal later makes this state too old to append to.
                if (done := _stored_before(home, tried)) is not None:
                    return done
                continue
            is_late = False
            if after.end > settings.fold_bytes * (PART_JOURNALS if author.part else 1):
                # The commit is durable: the next opener folds, and doctor reports.
                with suppress(AetherError):
                    fold(after, now=now)
            return Committed(seen.revision + 1, change.result, changed=True)
    finally:
        if is_late and (server := ledger.of(home)):
            server.append_if(ledger.JOURNAL, ledger.Mark(snapshot.revision, ""), [])  # give the turn back
    raise _crowded(home)


def _stored_before(home: Path, tried: Mapping[int, tuple[bytes, Change]]) -> Committed | None:
    """Return the result of the line, of those that were `tried`, by their revisions, that is in the home; None without one."""
    for revision, (line, change) in tried.items():
        if _is_stored(home, revision, line):
            return Committed(revision, change.result, changed=True)
    return None


def _crowded(home: Path) -> Conflict:
    if ledger.is_shared(home):
        what = f"other machines changed the colony each time, {CONFLICT_TRIES} times. Nothing was stored."
        return Conflict(what, fix="Try again.", where=str(home))
    what = f"another process wrote at the same time, {CONFLICT_TRIES} times, although the lock was held."
    fix = "Keep the home on a local disk: this file system does not honour locks."
    return Conflict(what, fix=fix, where=str(home))


def does_something(change: Change) -> bool:
    """Return whether a change changes a document or appends a record."""
    return any(change.patches.values()) or any(change.appends.values())


def _planned(
    snapshot: Snapshot, plan: Callable[[Snapshot], Change], now: datetime
) -> tuple[Snapshot, Change]:
    """Return the change that `plan` makes, and the state it made it of.

    A shared home may lack what others wrote: that a plan refuses, or has nothing to do, counts for the newest state only.
    """
    while True:
        refusal, change = None, Change({})
        try:
            change = plan(snapshot)
        except AetherError as reason:
            refusal = reason
        newest = snapshot
        if not does_something(change) and ledger.is_shared(snapshot.home):
            with suppress(StorageFailed):  # it cannot be asked
                newest = settle(catch_up(snapshot, now=now), now=now)
        if newest.revision == snapshot.revision:
            if refusal:
                raise refusal
            return snapshot, change
        snapshot = newest


@contextmanager
def write_lock(home: Path, *, timeout: float | None = None, for_reading: bool = False) -> Iterator[None]:
    """Hold the lock of `home`, after finishing the rewrite of its files that a killed process has decided on.

    Nothing may be written into half a rewrite. `timeout` is that of the home unless given; the others as for `locked`.

    Raises:
        LockTimeout, NotFound, StorageFailed: as `files.locked`, or the rewrite cannot be finished.
    """
    seconds = config.or_default(home).lock_timeout_seconds if timeout is None else timeout
    with locked(home, timeout=seconds, for_reading=for_reading):
        if os.path.lexists(f"{home}/{rewrite.DIRECTORY}") or files.erasure_mark(home).endswith(files.RUNS):
            _finish_erasing(home, seconds)
        yield


def await_erasure(home: Path) -> None:
    """Wait for the end of the erasure that runs; one whose process was killed is finished.

    Raises:
        LockTimeout, StorageFailed: as `write_lock`.
    """
    with write_lock(home):
        pass


def _finish_erasing(home: Path, seconds: float) -> None:
    with own_call():  # which has read nothing
        if os.path.lexists(f"{home}/{rewrite.DIRECTORY}"):
            for path in rewrite.finish(home, timeout=seconds):
                reason = (
                    "changed while an erasing was interrupted, and may still hold the text: erase it again."
                )
                spool.log_failure(str(home), "erase", "", f"{path} {reason}")
        rewrite.end(home)


def _append(snapshot: Snapshot, change: Change, author: Author, now: datetime, *, key: str = "") -> Snapshot:
    """Return the state after `change`, whose line the ledger of a shared home takes first."""
    home = snapshot.home
    for kind in change.appends:
        record_files.files_of(home, kind)  # raises NotFound
    server = ledger.of(home)
    if server:
        author = author._replace(member=server.member)
    after, entry = after_change(snapshot, change, author, now, key=key)
    line = entry_line(entry)
    if server:
        _agree(server, snapshot, line)
    try:
        grown = _written(snapshot, [line], after.revision)
    except ConcurrentWrite as reason:
        reason.tried = entry.revision, line
        raise
    except StorageFailed:
        if not server:
            raise
        # The ledger has it: it is acknowledged, and in the journal when this home catches up.
        return snapshot._replace(revision=after.revision, documents=after.documents)
    note_stored()
    after = after._replace(end=grown.end, files=grown.files)
    remember(after)
    return after


def _written(snapshot: Snapshot, lines: list[bytes], revision: int) -> Snapshot:
    """Append `lines`, the last of which has this revision, to the journal; return `snapshot` with its new end and file id."""
    home, end, data = snapshot.home, snapshot.end, b"".join(lines)
    with storage_errors(home):
        if not end:
            sealed = (home / seals.PATH).exists()
            end = _start_journal(home, snapshot.revision, snapshot.stamps, sealed=sealed, old=None)
        append(journal_path(home), data, at=end)
    set_head(head_path(home), revision)
    end += len(data)
    journal_id = None  # if it cannot be asked for, the next load reads again
    with suppress(OSError):
        status = journal_path(home).stat()
        journal_id = status.st_ino, status.st_mtime_ns, end
    return snapshot._replace(end=end, files=(journal_id, *snapshot.files[1:]))


def _agree(server: ledger.Ledger, snapshot: Snapshot, line: bytes) -> None:
    """Let the ledger of a shared home take `line` after the state it was planned for.

    Raises:
        ConcurrentWrite: others were first.
        Offline: the ledger could not take it.
        UnsafePath, Conflict: the role may not write, or the ledger has another history.
    """
    if not server.append_if(ledger.JOURNAL, mark_of(snapshot), [line]).done:
        raise ConcurrentWrite(snapshot.home)


def mark_of(snapshot: Snapshot) -> ledger.Mark:
    """Return how far the journal of a shared home reaches."""
    home, line = snapshot.home, b""
    with storage_errors(home), suppress(FileNotFoundError), regular.opened(journal_path(home)) as file:
        if snapshot.end > len(file.readline()):
            file.seek(max(0, snapshot.end - MARK_BYTES))
            line = file.read(min(snapshot.end, MARK_BYTES))
    if not line:
        folded = (line for path in reversed(month_files(home)) for line in lines_backwards(path))
        line = next(folded, b"")
        if (unsealed(line) or {}).get("revision") != snapshot.revision:
            line = b""  # the end of the history is missing: doctor reports it
    return ledger.Mark(snapshot.revision, checksum_of(line))


def catch_up(snapshot: Snapshot, *, now: datetime) -> Snapshot:
    """Return the state of a shared home after appending what is new in its ledger to its journal; the caller holds the lock.

    A home that is far behind is folded on the way: a journal is read whole.

    Raises:
        Offline: the ledger cannot be asked.
        Conflict, UnsafePath, CorruptDocument, StorageFailed: as `Ledger.read_after`.
    """
    server = ledger.of(snapshot.home)
    while server:
        news = server.read_after(ledger.JOURNAL, mark_of(snapshot))
        if not news.lines:
            break
        snapshot = take_in(snapshot, news.lines)
        edited = snapshot.irregular or snapshot.known
        if not edited and snapshot.end > config.or_default(snapshot.home).fold_bytes:
            snapshot = fold(snapshot, now=now)
    return snapshot


def take_in(snapshot: Snapshot, lines: list[bytes]) -> Snapshot:
    """Append checked lines of the ledger to the journal of a shared home, and return its state; the caller holds the lock."""
    if lines:
        _written(snapshot, lines, snapshot.revision + len(lines))
    return load(snapshot.home)


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

    The file goes to quarantine, and the losses go to the record of seals. A shared home loses nothing: its lines are in the
    ledger, and are read again from there.

    Raises:
        Offline: the ledger of a shared home cannot be asked; nothing was changed, as with the others.
        Conflict: it has less than this home, or other lines.
        CorruptDocument: its lines cannot be read.
    """
    path, done = journal_path(home), []
    with storage_errors(home):
        old = _journal_id(home)
        found = found or read_journal(home)
        if not found.harm:
            return []
        require_exclusive(home)
        if shared := ledger.sharing(home):
            found = shared.with_colony_lines(home, found)
        harm = found.harm or Harm([], [], [])
        kept = None
        if path.exists():
            kept = documents.quarantine(
                home, "journal", regular.read(path, regular.LOG_BYTES), at=clock.stamp(now)
            )
        record = seals.read(home)
        for numbers, words in (
            (harm.lost, "lost"),
            (harm.unfit, "left out, because it no longer fits what is left"),
        ):
            for first, last in ranges(numbers):
                what = f"{revisions(range(first, last + 1))}: {words}"
                record = seals.with_loss(record, seals.JOURNAL, what, now=now, revisions=(first, last))
                done.append(what)
        if harm.lines:
            unfit = documents.quarantine(home, "journal-unfit", b"".join(harm.lines), at=clock.stamp(now))
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


def fold_home(home: Path, *, now: datetime, timeout: float | None = None, least: int = 0) -> Snapshot:
    """Fold the journal of `home`: `aether fold`, the end of a command, a phase boundary; `timeout` as for `write_lock`.

    A journal of at most `least` bytes is left for the next one who folds.
    """
    snapshot = load(home)
    short = snapshot.end <= max(least, len(_header(snapshot.revision, snapshot.stamps, sealed=True)))
    if short and not snapshot.irregular and not snapshot.torn and not snapshot.harm:
        return snapshot
    with write_lock(home, timeout=timeout):
        folded = fold(settle(load(home), now=now), now=now)
        _remove_old_temps(home, now)
    return folded


def _remove_old_temps(home: Path, now: datetime) -> None:
    """Remove the temporary files of killed writers, once in a process: no writer takes an hour.

    Conversations beyond the first thousand are left to `doctor`.
    """
    if home in _SWEPT:
        return
    _SWEPT.add(home)
    with suppress(OSError, AetherError):
        for path in leftover_temps(home, most=1000):
            if path.lstat().st_mtime < time.time() - OLD_SECONDS and not path.is_dir():
                removed_temp(home, path, now)


def removed_temp(home: Path, path: Path, now: datetime) -> str:
    """Remove a temporary file and say so; a document that a person had edited is kept: a kill can leave it there."""
    name = path.name[1:].partition(".")[0]
    if path.is_dir():  # of a backup
        import shutil  # slow to import, and seldom needed

        shutil.rmtree(path)
        return f"removed {seals.place(home, path)}/, left by a killed backup"
    words = f"removed {seals.place(home, path)}, left by a killed process"
    if name in documents.NAMES and documents.read(path).state in ("edited", "unstamped"):
        target = documents.quarantine(home, name, regular.read(path), at=clock.stamp(now))
        words = f"kept the edit of {name}.json that a killed process had taken away as {seals.place(home, target)}"
    os.unlink(path)
    return words


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
            except ConcurrentWrite:
                if not ledger.is_shared(snapshot.home):
                    raise
                snapshot = catch_up(load(snapshot.home), now=now)  # an edit lost the race to another replica
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
        last, months = last_folded(home), month_files(home)
        fresh: dict[Path, list[bytes]] = {}
        for entry, line in zip(found.entries, found.lines, strict=True):
            if entry.revision > last:
                # Never an earlier file than the last one: a clock that was set back must not break the order.
                path = max([home / "data" / "journal" / f"{entry.at[:7]}.jsonl", *months[-1:], *fresh])
                fresh.setdefault(path, []).append(line)
        fresh |= record_files.lines_to_fold(home, snapshot.pending)
        known = seals.read(home)
        record = seals.appended(home, known, fresh)
        record_files.write_lines(fresh)
        if keep := config.or_default(home).history_months:
            for path in month_files(home)[:-keep]:
                path.unlink()
                record.grown.pop(seals.place(home, path), None)
        _require_unedited(snapshot, documents.NAMES)
        # The ids of the files that were written, not of what is there by now: that may be saved by somebody since.
        made, stamps = dict(zip(documents.NAMES, snapshot.files[1:], strict=True)), dict(snapshot.stamps)
        for name in sorted(written):
            _require_unedited(snapshot, [name])
            if name in documents.OPTIONAL and name not in found.made and not snapshot.stamps.get(name):
                documents.backup_default(home, name, found.base)
            stamps[name] = _last_change(home, name, found) or snapshot.revision
            made[name] = documents.write(
                home, name, snapshot.documents[name], stamps[name],
                is_known=_is_loaded(snapshot, name), grown=snapshot.end,
            )  # fmt: skip
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


def _last_change(home: Path, name: str, found: Journal) -> int:
    """Return the last revision that changed document `name`, which is its stamp in every replica; 0 if none is known."""
    for entry in reversed(found.entries):
        if name in entry.patches:
            return entry.revision
    return next((one.revision for one in folded_entries(home, newest_first=True) if name in one.patches), 0)


def _require_unedited(snapshot: Snapshot, names: Iterable[str]) -> None:
    for name in names:
        path = documents.path_of(snapshot.home, name)
        if not _is_loaded(snapshot, name)(path):
            raise EditedMeanwhile(path)


def _is_loaded(snapshot: Snapshot, name: str) -> Callable[[Path], bool]:
    """Return whether a file, under any name, is the one from which document `name` was loaded."""
    loaded = snapshot.files[1 + documents.NAMES.index(name)]
    return lambda path: file_id(str(path)) == loaded

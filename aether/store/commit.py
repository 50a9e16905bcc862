"""Commits: the only way state changes, and folding, the only way documents are written.

`commit` takes the lock, loads, asks a pure function for the change, and appends one line: after a crash the
transaction is wholly there or wholly absent, and once `commit` has returned it is there. `fold` writes the journal
into the documents and the append-only files, moves its lines to history, and starts a new journal; after a crash it
is done again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from aether import clock, regular
from aether.errors import (
    AetherError,
    Conflict,
    CorruptDocument,
    LockTimeout,
    StorageFailed,
)
from aether.store import (
    config,
    documents,
    ledger,
    offline,
    record_files,
    rewrite,
    seals,
    spool,
    together,
)
from aether.store.authors import ACTING, AETHER, HAND, INIT, QUEEN, Author
from aether.store.files import EditedMeanwhile, locked, require_exclusive, storage_errors, sync, write_whole
from aether.store.lines import after_lines, require_taken, unreadable
from aether.store.log import (
    CHECKSUM_END,
    ConcurrentWrite,
    append,
    checksum_of,
    head_path,
    lines_backwards,
    lines_of,
    set_head,
    unsealed,
)
from aether.store.patch import diff
from aether.store.seals import ranges, revisions
from aether.store.snapshot import (
    Entry,
    Harm,
    Journal,
    Snapshot,
    after_change,
    entry_line,
    file_id,
    folded_entries,
    journal_header,
    journal_path,
    last_folded,
    load,
    month_files,
    read_journal,
    remember,
    resolve_or_refuse,
    scan_journal,
)
from aether.types import Change, JsonObject

# How often a writer whose lock did not hold (on some network file systems) plans again before it gives up.
CONFLICT_TRIES = 8


class Committed(NamedTuple):
    """The result of a commit."""

    revision: int
    result: Any
    changed: bool


# Shared homes where the last change of this process met lines of another replica: the next one waits for its turn at once.
_MET: set[Path] = set()


def commit(
    home: Path,
    plan: Callable[[Snapshot], Change],
    author: Author,
    *,
    now: datetime,
    settings: config.Config | None = None,
    ahead: bool = False,
    may_wait: bool = False,
    ask: together.Ask | None = None,
) -> Committed:
    """Commit the change that `plan` makes of the present state, and return its result.

    With `ahead` a plan that takes long is made before the lock is taken; under it only if the home changed meanwhile.
    With `may_wait` a change that the server of a shared home cannot take now waits for it, if `share.offline` says so.
    With `ask`, which makes the same change, the process that holds the lock of a shared home may commit it with its own.

    A plan that changes nothing commits nothing. `plan` may be called again if another writer was in between although
    the lock was held, so it must be pure. `settings` are those of the home unless given.

    Raises:
        LockTimeout, NotFound, StorageFailed, CorruptDocument, InvalidDocument, Conflict: nothing was
            changed. Errors of `plan` pass through.
    """
    settings, actor = settings or config.load(home), ACTING.get()
    if actor and actor.read_only:
        fix = "Start it again without --read-only to change something."
        raise Conflict("this view is read-only: nothing was changed.", fix=fix, where=actor.by)
    if actor is None or author.by != QUEEN:
        asks = ask and _is_shared(home) and settings.share_offline != "queue" and not ledger.stays_local()
        done = _commit_together(home, plan, author, now, settings=settings, ask=ask) if ask and asks else None
        return done or _commit(home, plan, author, now, settings, ahead=ahead, may_wait=may_wait)

    def required(found: Snapshot) -> Change:
        if not actor.revisions:
            actor.require(found)
        return plan(found)

    author = author._replace(by=actor.by)
    done = _commit(home, required, author, now, settings, ahead=ahead, may_wait=may_wait)
    actor.revisions.extend([done.revision] if done.changed else [])
    return done


def _commit(
    home: Path,
    plan: Callable[[Snapshot], Change],
    author: Author,
    now: datetime,
    settings: config.Config,
    *,
    ahead: bool,
    may_wait: bool,
) -> Committed:
    """Commit in the name of `author`; where the server of a shared home cannot take it, perhaps into its queue."""
    seen, early = _planned_ahead(home, plan) if ahead else (None, None)
    queues = may_wait and settings.share_offline == "queue" and _is_shared(home)
    key = os.urandom(16).hex() if queues else ""

    last: list[tuple[Snapshot, Change]] = []

    def planned(found: Snapshot) -> Change:
        last[:] = [(found, early if early is not None and found is seen else plan(found))]
        return last[0][1]

    with write_lock(home, timeout=settings.lock_timeout_seconds):
        try:
            found = settle(load(home), now=now)
            return _committed(found, planned, author, now, settings, key=key, gathers=not key)
        except ledger.Offline as reason:
            if not key or ledger.stays_local():
                raise
            if reason.sent and last:  # the ledger may have it: the very same change waits, known by its key
                return _queued(*last[0], author, now, key)
            found = offline.present(load(home))
            return _queued(found, plan(found), author, now, key)


def _commit_together(
    home: Path,
    plan: Callable[[Snapshot], Change],
    author: Author,
    now: datetime,
    *,
    settings: config.Config,
    ask: together.Ask,
) -> Committed | None:
    """Commit a change of a shared home with those that others ask for, or ask who holds the lock to do so.

    None if it cannot be made together with others: nothing was stored, and why is found by committing it alone.
    """
    fields = {"operation": ask.operation, "arguments": ask.arguments}
    asking = together.Asking(home, {**fields, "author": list(author), "at": clock.stamp(now)})
    waits = True
    try:
        with write_lock(home, timeout=settings.lock_timeout_seconds, may_try=asking.look):
            waits = False
            if asking.withdraw():
                return _committed(settle(load(home), now=now), plan, author, now, settings, gathers=True)
            answer = asking.answer()
            if answer is None:
                return _resolved(home, plan, author, now, ask=ask, asking=asking)
    except together.Answered as reason:
        answer = reason.fields
    except BaseException as reason:
        if not asking.withdraw() and waits and isinstance(reason, (LockTimeout, StorageFailed)):
            raise _unknown(home) from reason
        raise
    finally:
        asking.close()
    return Committed(answer["revision"], ask.result(answer["result"]), changed=True) if answer else None


def _resolved(
    home: Path,
    plan: Callable[[Snapshot], Change],
    author: Author,
    now: datetime,
    *,
    ask: together.Ask,
    asking: together.Asking,
) -> Committed:
    """Return what became of a change whose taker was stopped; commit it if it is not in the history. The caller holds the lock.

    What the taker has sent is in the ledger before this turn, or never: it was planned for the state before.

    Raises:
        Offline: the ledger cannot be asked, so it is not known.
    """
    known = False
    try:
        for _ in range(CONFLICT_TRIES):
            with _in_turn(settle(load(home), now=now), now) as seen:
                folded = folded_entries(home, after=asking.since, newest_first=True)
                entries = chain(read_journal(home).entries, folded)
                entry = next((one for one in entries if one.key == asking.key), None)
                known = True
                if entry:
                    made = together.OPERATIONS[ask.operation].result(seen, entry)
                    return Committed(entry.revision, ask.result(made), changed=True)
                change = plan(seen)
                try:
                    after = _append(seen, change, author, now, key=asking.key)
                except ConcurrentWrite:
                    known = False
                    continue
            return Committed(after.revision, change.result, changed=True)
    except AetherError as reason:
        if known:
            raise
        raise _unknown(home) from reason
    finally:
        asking.forget()
    raise _crowded(home)


def _unknown(home: Path) -> ledger.Offline:
    what = "another process was to store the change with its own, and has not said that it did. Whether it is stored is not known."
    made = ledger.Offline(what, fix='See "aether log".', where=str(home))
    made.sent = True
    return made


def _is_shared(home: Path) -> bool:
    return os.path.exists(f"{home}/{ledger.PLACE}")  # most homes are not, and pay for no more than this


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
    *,
    key: str = "",
    gathers: bool = False,
) -> Committed:
    """Commit a change, and if it `gathers` those that other processes of a shared home ask for."""
    taken: list[together.Taken] = []
    try:
        found = send_queue(snapshot, now)
        return _tried(found, plan, author, now, settings=settings, taken=taken if gathers else None, key=key)
    except BaseException as reason:
        if not isinstance(reason, AetherError) or getattr(reason, "sent", False):
            taken.clear()  # they may be stored: each looks for its own
        raise
    finally:
        for one in taken:
            together.give_back(one)


def _tried(
    snapshot: Snapshot,
    plan: Callable[[Snapshot], Change],
    author: Author,
    now: datetime,
    *,
    settings: config.Config,
    taken: list[together.Taken] | None,
    key: str,
) -> Committed:
    home, tried = snapshot.home, dict[int, tuple[bytes, Change]]()
    shared = _is_shared(home)
    for attempt in range(CONFLICT_TRIES):
        in_turn = shared and (attempt or home in _MET)
        with _in_turn(snapshot, now, early=True) if in_turn else nullcontext(snapshot) as found:
            seen, change = _planned(found, plan, now, shared=shared)
            if not _does_something(change):
                return Committed(seen.revision, change.result, changed=False)
            try:
                after = _append(seen, change, author, now, key=key, taken=taken)
            except _Known as reason:
                return Committed(reason.revision, change.result, changed=True)
            except ConcurrentWrite as reason:
                if reason.tried:
                    tried[reason.tried[0]] = reason.tried[1], change
                after = None
        if after is None:
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
        return Committed(seen.revision + 1, change.result, changed=True)
    raise _crowded(home)


def _crowded(home: Path) -> Conflict:
    if _is_shared(home):
        what = f"other machines changed the colony each time, {CONFLICT_TRIES} times. Nothing was stored."
        return Conflict(what, fix="Try again.", where=str(home))
    what = f"another process wrote at the same time, {CONFLICT_TRIES} times, although the lock was held."
    fix = "Keep the home on a local disk: this file system does not honour locks."
    return Conflict(what, fix=fix, where=str(home))


def _queued(seen: Snapshot, change: Change, author: Author, now: datetime, key: str) -> Committed:
    """Let a change planned for `seen` wait for the server of a shared home; its revision is 0 until then."""
    home = seen.home
    if not _does_something(change):
        return Committed(seen.revision, change.result, changed=False)
    after, entry = _after(seen, change, author, now, key)
    # Its line can be no further back than that, if the ledger has it all the same.
    reached = min(seen.revision, load(home).revision)
    with storage_errors(home):
        offline.put(seen, entry._replace(revision=reached), after.documents)
    offline.note_try(home, failed=True)
    return Committed(0, change.result, changed=True)


def send_queue(snapshot: Snapshot, now: datetime, *, insist: bool = False) -> Snapshot:
    """Send what waits for the server of a shared home, in its order, and return the newest state; the caller holds the lock.

    What no longer fits what others wrote goes to quarantine. In a home that has left its colony the changes are made there.
    A server that could not be reached some seconds ago is not asked, unless with `insist`.

    Raises:
        Offline: the ledger cannot take it; what is left waits on.
        Conflict, UnsafePath, CorruptDocument, StorageFailed: as `catch_up`.
    """
    home = snapshot.home
    if not os.path.exists(f"{home}/{offline.DIRECTORY}") or not offline.is_waiting(home):
        return snapshot
    if not insist:
        require_answer(home)
    paths = offline.waiting(home)
    try:
        snapshot = settle(catch_up(snapshot, now=now), now=now)
        queue = [(path, offline.read(path)) for path in paths]
        first = min((queued.entry.revision for _, queued in queue if queued), default=0)
        known = offline.stored_keys(home, first)
        for path, queued in queue:
            snapshot = _sent(snapshot, path, queued, known, now)
    except ledger.Offline:
        if not ledger.stays_local():  # a hook has not asked the server
            offline.note_try(home, failed=True)
        raise
    offline.note_try(home, failed=False)
    return snapshot


def require_answer(home: Path) -> None:
    """Check that the server of a shared home did not fail some seconds ago: nobody waits for it again so soon.

    Raises:
        Offline: it did.
    """
    if seconds := offline.seconds_left(home):
        what = f"the server of this home could not be reached, and is tried again in {seconds} seconds. Nothing was stored."
        fix = 'Run "aether fold" to try it now; "aether share status" says what is wrong.'
        raise ledger.Offline(what, fix=fix, where=str(home))


def _sent(
    snapshot: Snapshot, path: Path, queued: offline.Queued | None, known: set[str], now: datetime
) -> Snapshot:
    """Return the state after the change at `path`, which is in the history now or in quarantine.

    The keys of the history, as far back as the change is old, are in `known`.
    """
    home = snapshot.home
    for attempt in range(CONFLICT_TRIES):
        if attempt and queued:
            known |= offline.stored_keys(home, queued.entry.revision)
        with _in_turn(snapshot, now) if attempt else nullcontext(snapshot) as seen:
            if queued and queued.entry.key in known:
                change: Change | None = Change({})
            else:
                change = offline.fitted(seen.documents, queued) if queued else None
                if queued and change is None and _is_known(seen, queued.entry.key):
                    change = Change({})
            after: Snapshot | None = seen
            if queued and change and _does_something(change):
                entry = queued.entry
                author = Author(entry.operation, entry.by, entry.reason, entry.part)
                try:
                    after = _append(seen, change, author, now, key=entry.key)
                except ConcurrentWrite as reason:
                    after = None
                    known |= {entry.key} if isinstance(reason, _Known) else set()
        if after:
            with storage_errors(home):
                offline.finish(path, fits=change is not None)
            # Without room on the disk the ledger has a line that the journal lacks.
            return (
                after
                if after.revision == seen.revision or after.end > seen.end
                else settle(load(home), now=now)
            )
        snapshot = settle(load(home), now=now)
    raise _crowded(home)


def _does_something(change: Change) -> bool:
    return any(change.patches.values()) or any(change.appends.values())


def _planned(
    seen: Snapshot, plan: Callable[[Snapshot], Change], now: datetime, *, shared: bool
) -> tuple[Snapshot, Change]:
    """Return the change that `plan` makes, and the state it made it of.

    A shared home may lack what others wrote: that a plan refuses, or has nothing to do, counts for the newest state only.
    """
    while True:
        refusal = None
        change = Change({})
        try:
            change = plan(seen)
        except AetherError as reason:
            refusal = reason
        if shared and not _does_something(change) and (newer := _newer(seen, now)):
            seen = newer
        elif refusal:
            raise refusal
        else:
            return seen, change


def _planned_ahead(home: Path, plan: Callable[[Snapshot], Change]) -> tuple[Snapshot | None, Change | None]:
    """Return the present state and its planned change; nothing if it cannot be planned now."""
    with suppress(AetherError):  # under the lock it is an error
        seen = load(home)
        return seen, plan(seen)
    return None, None


@contextmanager
def write_lock(
    home: Path, *, timeout: float | None = None, for_reading: bool = False,
    may_try: Callable[[], bool] | None = None,
) -> Iterator[None]:  # fmt: skip
    """Hold the lock of `home`, after finishing the rewrite of its files that a killed process has decided on.

    Nothing may be written into half a rewrite. `timeout` is that of the home unless given; the others as for `locked`.

    Raises:
        LockTimeout, NotFound, StorageFailed: as `files.locked`, or the rewrite cannot be finished.
    """
    seconds = config.or_default(home).lock_timeout_seconds if timeout is None else timeout
    with locked(home, timeout=seconds, for_reading=for_reading, may_try=may_try):
        if os.path.lexists(f"{home}/{rewrite.DIRECTORY}"):
            for path in rewrite.finish(home, timeout=seconds):
                reason = (
                    "changed while an erasing was interrupted, and may still hold the text: erase it again."
                )
                spool.log_failure(str(home), "erase", "", f"{path} {reason}")
        yield


def _after(
    snapshot: Snapshot, change: Change, author: Author, now: datetime, key: str
) -> tuple[Snapshot, Entry]:
    for kind in change.appends:
        record_files.files_of(snapshot.home, kind)  # raises NotFound
    return after_change(snapshot, change, author, now, key=key)


def _append(
    snapshot: Snapshot,
    change: Change,
    author: Author,
    now: datetime,
    *,
    key: str = "",
    taken: list[together.Taken] | None = None,
) -> Snapshot:
    """Return the state after `change`, and after those of `taken` and what else is asked for, which are answered."""
    home = snapshot.home
    after, entry = _after(snapshot, change, author, now, key)
    lines, answers = [entry_line(entry)], list[tuple[together.Taken, JsonObject]]()
    if _is_shared(home):
        if taken is not None:
            taken += together.take(home)
            after, more, answers = together.with_asked(snapshot, after, entry, taken)
            lines += more
        if not answers:
            require_taken(snapshot, after, entry)
    end, data = snapshot.end, b"".join((*snapshot.unwritten, *lines))
    with storage_errors(home):
        if not end:
            sealed = (home / seals.PATH).exists()
            end = _start_journal(home, snapshot.revision, snapshot.stamps, sealed=sealed, old=None)
        stored = in_ledger = _agree(snapshot, lines, key, now)
        if taken:
            taken.clear()  # from now on each looks for its own if it is not answered
        try:
            # What a power failure takes of the lines that the ledger has is fetched again.
            append(journal_path(home), data, at=end, sync=not in_ledger)
            stored = True
        except ConcurrentWrite as reason:
            reason.tried = entry.revision, lines[0]
            raise
        except OSError:
            if not in_ledger:
                raise
            # It is in the ledger: acknowledged here, and in the journal when this home catches up.
            return snapshot._replace(revision=after.revision, documents=after.documents)
        finally:
            for one, fields in answers if stored else ():
                together.answer(one, fields)
        end += len(data)
        set_head(head_path(home), after.revision)
        grown = None  # if it cannot be asked for, the next load reads again
        with suppress(OSError):
            found = journal_path(home).stat()
            grown = found.st_ino, found.st_mtime_ns, end
    after = after._replace(end=end, files=(grown, *snapshot.files[1:]), unwritten=())
    remember(after)
    return after


class _Known(ConcurrentWrite):
    """The ledger has the change at `revision`, by its key."""

    def __init__(self, revision: int) -> None:
        super().__init__()
        self.revision = revision


def _agree(snapshot: Snapshot, lines: list[bytes], key: str, now: datetime) -> bool:
    """Let the ledger of a shared home take `lines` after the state they were planned for; return False if it has no ledger.

    A `key` is that of the only line.

    Raises:
        ConcurrentWrite: others were first, or the change of this `key` was sent before (`_Known`), as by a copy of this
            home; what the ledger has is in the journal now.
        Offline: the ledger could not take it.
        UnsafePath, Conflict: the role may not write, or the ledger has another history.
    """
    home = snapshot.home
    try:
        server = ledger.of(home) if _is_shared(home) else None
        if server is None:
            return False
        answer = server.append_if(ledger.JOURNAL, mark_of(snapshot), lines, key=key)
    except StorageFailed as reason:
        raise _offline(reason) from reason
    # The line of a change that a copy of this home sent first has the same key and may have the next revision.
    if answer.done and answer.lines in ([], lines):
        return True
    if answer.done:
        catch_up(load(home) if snapshot.unwritten else snapshot, now=now)
        raise _Known(answer.revision)
    _MET.add(home)
    # What is unwritten was read in a turn that is over.
    snapshot = catch_up(load(home), now=now) if snapshot.unwritten else take_in(snapshot, answer.lines)
    if snapshot.revision < answer.head:
        catch_up(snapshot, now=now)
    raise ConcurrentWrite(home)


def _is_known(snapshot: Snapshot, key: str) -> bool:
    """Return whether the ledger of a shared home has the change of this key; its own history may be too short to show it."""
    try:
        server = ledger.of(snapshot.home)
        # No lines: nothing is appended, and nothing is remembered of the key.
        found = server.append_if(ledger.JOURNAL, mark_of(snapshot), [], key=key) if server and key else None
    except StorageFailed as reason:
        raise _offline(reason) from reason
    return found is not None and found.done and found.revision <= found.head


def _offline(reason: StorageFailed) -> ledger.Offline:
    if isinstance(reason, ledger.Offline):
        return reason
    made = ledger.Offline(f"{reason.what} Nothing was stored.", fix=reason.fix, where=reason.where)
    if isinstance(reason, ledger.Unsettled):
        what = f"{reason.what} Whether the change is stored is not known."
        made = ledger.Offline(what, fix='See "aether log" when the server is back.', where=reason.where)
        made.sent = True
    return made


@contextmanager
def _in_turn(snapshot: Snapshot, now: datetime, *, early: bool = False) -> Iterator[Snapshot]:
    """Keep writers of other replicas waiting, and yield the newest state of a shared home.

    With `early` what is new is not written yet: it may become durable with the change that is planned on it.
    """
    early = early and bool(snapshot.end) and not (snapshot.irregular or snapshot.known)
    with ExitStack() as turn:
        try:
            server = ledger.of(snapshot.home)
            taken = server and server.turn(ledger.JOURNAL, mark_of(snapshot), early=early)
            news = turn.enter_context(taken) if taken else None
        except StorageFailed as reason:
            raise _offline(reason) from reason
        (_MET.add if news and news.lines else _MET.discard)(snapshot.home)
        found = snapshot  # without a server it has left the colony meanwhile
        if news and news.lines and early:
            try:
                found = after_lines(snapshot, news.lines)._replace(unwritten=tuple(news.lines))
            except CorruptDocument:
                found = settle(
                    catch_up(snapshot, now=now), now=now
                )  # it stores those before the one that it names
        elif news:
            found = settle(take_in(snapshot, news.lines), now=now)
        yield found


def _newer(snapshot: Snapshot, now: datetime) -> Snapshot | None:
    """Return the state of a shared home after what is new in its ledger; None if nothing is, or it cannot be asked."""
    unsure = bool(snapshot.unwritten)
    if unsure:  # they may not be durable, until they are read again
        snapshot = load(snapshot.home)
    try:
        found = catch_up(snapshot, now=now)
    except StorageFailed:
        if unsure:
            raise
        return None
    return settle(found, now=now) if found.revision != snapshot.revision else None


def mark_of(snapshot: Snapshot) -> ledger.Mark:
    """Return how far the journal of a shared home reaches."""
    home, line = snapshot.home, b""
    if snapshot.unwritten:
        return ledger.Mark(snapshot.revision, checksum_of(snapshot.unwritten[-1]))
    with storage_errors(home), suppress(FileNotFoundError), regular.opened(journal_path(home)) as file:
        if snapshot.end > len(file.readline()):
            file.seek(max(0, snapshot.end - CHECKSUM_END))
            line = file.read(min(snapshot.end, CHECKSUM_END))
    if not line:
        for path in reversed(month_files(home)):
            line = next(lines_backwards(path), b"")
            if line:
                break
        if (unsealed(line) or {}).get("revision") != snapshot.revision:
            line = b""  # the end of the history is missing: doctor reports it
    return ledger.Mark(snapshot.revision, checksum_of(line))


def take_in(snapshot: Snapshot, lines: list[bytes]) -> Snapshot:
    """Append lines of the ledger to the journal of a shared home, and return its state; the caller holds the lock.

    Raises:
        CorruptDocument: one of them cannot be read, or does not follow its state; those before it were appended.
        StorageFailed: the disk refused.
    """
    if not lines:
        return snapshot
    home, data = snapshot.home, b"".join(lines)
    try:
        made = after_lines(snapshot, lines)
    except CorruptDocument:
        if len(lines) == 1:
            raise
        for line in lines:
            snapshot = take_in(snapshot, [line])
        return snapshot
    with storage_errors(home):
        end = snapshot.end
        if not end:
            sealed = (home / seals.PATH).exists()
            end = _start_journal(home, snapshot.revision, snapshot.stamps, sealed=sealed, old=None)
        append(journal_path(home), data, at=end, sync=False)  # the ledger has them
        set_head(head_path(home), made.revision)
        written = file_id(str(journal_path(home)))
    if snapshot.irregular or snapshot.known:
        return load(home)
    end += len(data)
    after = made._replace(end=end, torn=False, files=(written and (*written[:2], end), *snapshot.files[1:]))
    remember(after)
    return after


def catch_up(snapshot: Snapshot, *, now: datetime) -> Snapshot:
    """Return the state of a shared home after appending what is new in its ledger to its journal; the caller holds the lock.

    A home that is far behind is folded on the way: a journal is read whole.

    Raises:
        Offline: the ledger cannot be asked.
        Conflict, UnsafePath, CorruptDocument, StorageFailed: as `take_in`, `Ledger.read_after`.
    """
    while True:
        try:
            server = ledger.of(snapshot.home)
            if server is None:
                return snapshot
            news = server.read_after(ledger.JOURNAL, mark_of(snapshot))
        except StorageFailed as reason:
            raise _offline(reason) from reason
        if not news.lines:
            return snapshot
        snapshot = take_in(snapshot, news.lines)
        edited = snapshot.irregular or snapshot.known
        if not edited and snapshot.end > config.or_default(snapshot.home).fold_bytes:
            snapshot = fold(snapshot, now=now)


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
        found = _as_in_ledger(home, found)
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


def _as_in_ledger(home: Path, found: Journal) -> Journal:
    """Return the damaged journal of a shared home with the lines that the ledger has; as it was read if the home is not shared.

    Raises:
        Conflict: the ledger ends before what this home has acknowledged, or has other lines.
    """
    reached = found.base + len(found.entries)
    try:
        server = ledger.of(home)
        if server is None:
            return found
        before = next((line for path in reversed(month_files(home)) for line in lines_backwards(path)), b"")
        known = (unsealed(before) or {}).get("revision") == found.base
        mark = ledger.Mark(found.base, checksum_of(before) if known else "")
        # Not more than the home has had: what is newer is checked when the home catches up.
        lines = ledger.lines_after(server, ledger.JOURNAL, mark, reached)
    except StorageFailed as reason:
        raise _offline(reason) from reason
    made = scan_journal(b"".join(lines), base=found.base, where=ledger.PLACE)
    if made.lines != lines:
        raise unreadable(home, found.base + 1, "it is damaged, or has another number")
    if made.base + len(lines) < reached:
        what = (
            f"the ledger ends at revision {made.base + len(lines)}, and this home has acknowledged {reached}."
        )
        fix = "Its server was restored from an older backup: see docs/shared.md. The damaged journal is as it was."
        raise Conflict(what, fix=fix, where=str(home))
    ours = {
        held["revision"]: line
        for line, good in lines_of(regular.read(journal_path(home), regular.LOG_BYTES))
        if good and (held := unsealed(line) or {}).get("revision", 0) > found.base
    } if journal_path(home).exists() else {}  # fmt: skip
    for revision, line in ours.items():
        if line != lines[revision - found.base - 1]:
            what = f"the ledger has another line than this home at revision {revision}."
            fix = (
                "Join the colony in a new home, or run aether share leave. The damaged journal is as it was."
            )
            raise Conflict(what, fix=fix, where=str(home))
    return found._replace(entries=made.entries, lines=made.lines, harm=Harm([], [], []))


def fold_home(home: Path, *, now: datetime, timeout: float | None = None, least: int = 0) -> Snapshot:
    """Fold the journal of `home`: `aether fold`, the end of a command, a phase boundary; `timeout` as for `write_lock`.

    A journal of at most `least` bytes is left for the next one who folds.
    """
    snapshot = load(home)
    short = snapshot.end <= max(least, len(_header(snapshot.revision, snapshot.stamps, sealed=True)))
    if short and not snapshot.irregular and not snapshot.torn and not snapshot.harm:
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
            except ConcurrentWrite:
                if ledger.shared(snapshot.home) is None:
                    raise
                snapshot = load(snapshot.home)  # an edit lost the race to another replica
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
        _sync_journal(snapshot)
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


def _sync_journal(snapshot: Snapshot) -> None:
    """Sync the journal of a shared home before what is folded of it: it was not, for lines that the ledger has."""
    if snapshot.end and _is_shared(snapshot.home):
        sync(journal_path(snapshot.home))


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

"""Taking in: what hooks have put into the spool becomes working-memory items, each exactly once.

Entries are taken in the order of their names, in batches: their notes are committed, then the sessions they
belong to are written, then the entries are removed. A session file names the entries it contains, and a note has
a key that does not depend on when it was made, so a crash anywhere costs nothing and doubles nothing. One process
takes in at a time; what it cannot store stays in the spool, and what can never be stored goes into quarantine. The summary
of a compaction ends a batch: it stands for what was captured before it, and for nothing that came later.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from aether.errors import AetherError, InvalidInput, LockTimeout, StorageFailed
from aether.memory import phases
from aether.memory.colony import RUNNING
from aether.messages.blocks import word
from aether.operations import drafts as notes
from aether.operations.edge import Author, Snapshot, counter_of, find, read
from aether.operations.hook_sessions import NOT_YET, UNKNOWN, Session, is_idle, opened, session_of, write
from aether.operations.working import ItemId, store_drafts
from aether.shapes import JsonObject
from aether.store import appends, config, hook_log, spool
from aether.store.files import make_directory, storage, write_whole
from aether.store.lock import locked
from aether.text.words import counted

if TYPE_CHECKING:
    from aether.memory.phase_markers import Marker

__all__ = ["Taken", "session_of", "take_in"]

# Entries of one commit: many enough that the disk is not what takes the time, few enough to lose little time.
BATCH_ENTRIES = 200
# Seconds: who runs a hook waits for it. One full wait a minute is enough to notice that the other has gone.
PATIENCE_SECONDS = 2.0
SHORT_PATIENCE_SECONDS = 0.3
LOCKED_OUT_SECONDS = 60


class Taken(NamedTuple):
    """What taking in did."""

    entries: int
    """Entries that left the spool."""
    ids: list[str]
    """Items that were stored."""
    compression_needed: bool
    left: str
    """Why entries stay in the spool; empty where none does."""


class _Batch(NamedTuple):
    """What a few entries came to; what is empty at first is filled while they are read."""

    home: Path
    snapshot: Snapshot
    most_chars: float
    met: list[str]
    """The entries that were looked at."""
    names: list[str]
    """Those that leave the spool; what another user alone may read stays."""
    sessions: dict[str, Session]
    changed: set[str]
    """The sessions that something was heard of."""
    drafts: list[JsonObject]
    markers: list[Marker]
    summarised: list[JsonObject]
    """The entry of the compaction that the batch ends with."""


# Storing asks the home itself, which takes in first.
_TAKING: ContextVar[bool] = ContextVar("taking", default=False)


def take_in(home: Path, *, patience: float = PATIENCE_SECONDS) -> Taken:
    """Turn what waits in the spool into items and return what that did; never raises for a locked or broken home.

    `patience` is how many seconds it waits for another that takes in, and then for one that writes; less where
    somebody waited in vain a moment ago.
    """
    if _TAKING.get() or not spool.waiting(str(home)):
        return Taken(0, [], compression_needed=False, left="")
    names: list[str] = []
    ids: list[ItemId] = []
    left = ""
    patience = min(patience, patience_of(home))
    taking = _TAKING.set(True)
    try:
        find(home)
        with (
            storage(home, left="What hooks have spooled stays there."),
            locked(home / "hooks", timeout=patience),
        ):
            settings = config.or_default(home)._replace(lock_timeout_seconds=patience)
            for batch in _batches(home):
                ids += _store(batch, settings)
                _settle(batch)
                names += batch.names
                if len(batch.names) < len(batch.met):
                    left = "some entries belong to another user, and wait for that one."
            with suppress(OSError):  # what cannot be removed is old in a minute
                _marker(home).unlink(missing_ok=True)
    except AetherError as reason:
        left = str(reason)
        if isinstance(reason, LockTimeout) and patience >= PATIENCE_SECONDS:
            _locked_out(home)
    finally:
        _TAKING.reset(taking)
    return Taken(len(names), [str(one) for one in ids], any(one.compression_needed for one in ids), left)


def patience_of(home: Path) -> float:
    """Return how many seconds a hook should wait for a lock of `home`: few, where one has just waited in vain."""
    try:
        age = time.time() - _marker(home).stat().st_mtime
    except OSError:
        return PATIENCE_SECONDS
    return SHORT_PATIENCE_SECONDS if 0 <= age < LOCKED_OUT_SECONDS else PATIENCE_SECONDS


def _locked_out(home: Path) -> None:
    """Take note that somebody waited in vain; where that cannot be written, the next one waits as long."""
    with suppress(OSError):
        marker = _marker(home)
        if not marker.is_symlink():
            marker.touch()


def _marker(home: Path) -> Path:
    return home / "hooks" / "locked-out"


def _batches(home: Path) -> Iterator[_Batch]:
    """Yield what waits, batch after batch; who asks for the next has stored the one before."""
    waiting = spool.waiting(str(home))
    while waiting:
        snapshot = read(home)
        capacity = snapshot.documents["memory"]["working_memory"]["max_capacity_tokens"]
        batch = _Batch(home, snapshot, notes.batch_chars(capacity), [], [], {}, set(), [], [], [])
        _fill(batch, waiting)
        yield batch
        waiting = waiting[len(batch.met) :]


def _fill(batch: _Batch, waiting: list[str]) -> None:
    """Read entries into `batch` until it is full, a line changes the phase, or a compaction ends."""
    chars = 0
    for name in waiting[:BATCH_ENTRIES]:
        batch.met.append(name)
        entry = spool.get(str(batch.home), name)
        if entry is None and not _is_gone(batch.home, name):
            continue
        batch.names.append(name)
        found = _take(batch, name, entry, waiting) if entry is not None else []
        batch.drafts.extend(found)
        chars += sum(len(draft["content"]) for draft in found)
        if batch.markers or batch.summarised or chars > batch.most_chars:
            return


def _is_gone(home: Path, name: str) -> bool:
    """Tell whether an entry left the spool, to whoever was quicker or into quarantine; not if another user's.

    Raises:
        OSError: it is there and cannot be read, perhaps for now: what comes after it has to wait.
    """
    path = home / "hooks" / "spool" / name
    if not path.exists():
        return True
    if os.access(path, os.R_OK):
        raise OSError(errno.EIO, f"{name} cannot be read")
    return False


def _take(batch: _Batch, name: str, entry: JsonObject, waiting: list[str]) -> list[JsonObject]:
    """Return the notes that are due with one entry, and take note of what it says of its session."""
    key, event = word(entry.get("session")), word(entry.get("event"))
    if key not in batch.sessions:
        batch.sessions[key] = opened(batch.home, key)
    session = batch.sessions[key]
    if name in session["done"]:
        return []
    if key not in batch.changed:
        batch.changed.add(key)
        session["done"] = sorted(set(session["done"]) & set(waiting))
    session["done"].append(name)
    starts = event == "SessionStart"
    if not session["first_source"]:
        session["first_source"] = word(entry.get("source")) if starts else UNKNOWN
    if not starts or not session["at"]:
        session["at"], session["revision"] = word(entry.get("at")), NOT_YET
    if starts or (event == "SessionEnd" and is_idle(session)):
        return []
    return _noted(batch, name, session, entry)


def _noted(batch: _Batch, name: str, session: Session, entry: JsonObject) -> list[JsonObject]:
    """Return the notes that are due with `entry`; one that makes no sense goes into quarantine."""
    from aether.operations import hook_notes, told  # they take as long to import as all else here

    phase = phases.current_phase(batch.snapshot.documents["COLONY_STATE"])
    try:
        repeated = told.told(batch.home, word(entry.get("session")))
        found = hook_notes.due(session, entry, phase=phase, told=repeated)
    except hook_notes.SENSELESS as reason:
        _set_aside(batch.home, name, entry, f"{type(reason).__name__}: {reason}.")
        return []
    batch.markers.extend(hook_notes.phase_lines(entry))
    if entry.get("event") == "PostCompact" and word(entry.get("summary")).strip():
        batch.summarised.append(entry)
    return cast("list[JsonObject]", found)


def _store(batch: _Batch, settings: config.Config) -> list[ItemId]:
    """Commit the notes of `batch` that are not stored yet, and return their ids."""
    head, revision = -1, batch.snapshot.revision
    files = {draft["metadata"]["pointer"]["file"] for draft in batch.drafts}
    after = min((batch.sessions[key]["archive_read"] for key in batch.changed), default=-1)

    def wanted(snapshot: Snapshot, drafts: list[JsonObject]) -> list[JsonObject]:
        nonlocal head
        # Only under the lock is all seen that another process, importing the same session, has stored.
        known = notes.known(snapshot, to_hooks=True, files=files, after=after)
        head = appends.head(snapshot, "items")
        return [draft for draft in drafts if notes.is_fresh(draft, known)]

    ids: list[ItemId] = []
    for part in notes.batches(_sound(batch), batch.most_chars):
        author = Author("capture", by=part[0]["source"], reason=counted(len(part), "notes of Claude Code"))
        stored = store_drafts(part, author, home=batch.home, wanted=wanted, settings=settings)
        ids, revision = ids + stored.ids, stored.revision
    for key in batch.changed:
        session = batch.sessions[key]
        session["archive_read"] = max(session["archive_read"], head)
        if session["revision"] == NOT_YET:
            session["revision"] = revision
    return ids


def _sound(batch: _Batch) -> Iterator[JsonObject]:
    """Yield the notes that can be stored; the others are kept aside."""
    memory = batch.snapshot.documents["memory"]
    capacity, count = memory["working_memory"]["max_capacity_tokens"], counter_of(memory)
    for draft in batch.drafts:
        try:
            yield notes.sound(draft, capacity=capacity, certain_chars=batch.most_chars, count=count)
        except InvalidInput as reason:
            _set_aside(batch.home, f"{notes.key(draft)}.json", draft, reason.what)


def _settle(batch: _Batch) -> None:
    """Do what the batch says of phases and compactions, write its sessions, and remove its entries for good."""
    for marker in batch.markers:
        _mark_phase(marker, batch.home)
    for entry in batch.summarised:
        _summarise(entry, batch.home)
    for key in sorted(batch.changed):
        write(batch.home, key, batch.sessions[key])
    spool.remove(str(batch.home), batch.names)


def _mark_phase(marker: Marker, home: Path) -> None:
    """Complete the phase that runs, or start one where none does; a line about any other phase says nothing new."""
    from aether.operations import colony  # seldom needed

    status = read(home).documents["COLONY_STATE"]["colony_status"]
    running = status["current_phase"] if status["state"] in RUNNING else None
    with suppress(InvalidInput):
        if marker.action == "complete" and running == marker.phase:
            colony.complete_phase(marker.phase, home=home)
        elif marker.action == "start" and running is None and marker.phase not in status["phases_completed"]:
            colony.start_phase(marker.phase, name=marker.name or None, home=home)


def _summarise(entry: JsonObject, home: Path) -> None:
    """Store the summary of a compaction, once, however often this is asked; one that the home refuses is logged.

    Raises:
        LockTimeout: another was writing.
        StorageFailed: the disk refused.
    """
    from aether.operations.compaction_summaries import ingest_summary  # seldom needed

    session, trigger = word(entry.get("session")), word(entry.get("trigger"))
    try:
        ingest_summary(home, word(entry["summary"]), session=session, trigger=trigger)
    except (LockTimeout, StorageFailed):
        raise  # it waits
    except AetherError as reason:
        hook_log.note(str(home), "taking-in", session, f"the summary of a compaction was refused: {reason}")


def _set_aside(home: Path, name: str, what: JsonObject, reason: str) -> None:
    """Keep what cannot be stored in `quarantine/`, and say so in the log of the hooks."""
    path = home / "quarantine" / f"hooks-{name}"
    make_directory(path.parent)
    write_whole(path, json.dumps(what).encode("ascii"))
    hook_log.note(str(home), "taking-in", "", f"{reason} Kept in quarantine/{path.name}")

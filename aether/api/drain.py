"""The drain: events that hooks have put into the spool become working-memory items, each exactly once.

Entries are drained in the order of their names, in batches. A batch is computed by pure functions and stored by one commit:
its notes and the evictions they cause, changes of the phase, the summary of a compaction. Then the sessions of its entries
are written, and the entries are removed. A session file names the entries it contains, a note has a key that does not depend
on the time of storing, and phase lines and summaries change nothing the second time: a crash anywhere costs nothing and
doubles nothing. One process drains at a time; entries that cannot be stored now stay in the spool, and those that can never be
stored go into quarantine. The summary of a compaction is a batch of its own: it covers everything captured before it, and
nothing that came later. Only lower layers are used here, so that every operation may drain first.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from aether import clock
from aether.api import dedupe as notes
from aether.api import telemetry
from aether.api.hook_sessions import (
    NO_REVISION,
    UNKNOWN_SOURCE,
    Session,
    is_idle,
    open_session,
    write_session,
)
from aether.clock import new_id
from aether.errors import AetherError, InvalidInput, LockTimeout, StorageFailed
from aether.memory import phases
from aether.memory.items import add_items, token_usage
from aether.memory.phases import apply_marker
from aether.messages.model import as_text
from aether.store import archive, config, spool
from aether.store.commit import HOOK, Author, commit, fold_home
from aether.store.files import locked, make_directory, storage_errors, write_whole
from aether.store.patch import chain_changes
from aether.store.snapshot import Snapshot, load, require_home
from aether.text.words import pluralize
from aether.tokens.counters import counter_of
from aether.types import Change, JsonObject

if TYPE_CHECKING:
    from datetime import datetime

    from aether.memory.phases import PhaseMarker

    Step = Callable[[Mapping[str, Any]], Change]

# Entries of one commit: many enough that the disk is not what takes the time, few enough to lose little time.
BATCH_ENTRIES = 200
# Seconds: who runs a hook waits for it. One full wait a minute is enough to notice that the other has gone.
PATIENCE_SECONDS = 2.0
SHORT_PATIENCE_SECONDS = 0.3
LOCKED_OUT_SECONDS = 60


class Drained(NamedTuple):
    """Result of a drain."""

    entries: int
    """Entries that left the spool."""
    ids: list[str]
    """Items that were stored."""
    compression_needed: bool
    left: str
    """Why entries stay in the spool; empty if none does."""


class _Batch(NamedTuple):
    """Some entries and their yield; the empty parts are filled while the entries are read."""

    home: Path
    snapshot: Snapshot
    most_chars: float
    met: list[str]
    """The entries that were looked at."""
    names: list[str]
    """Those that leave the spool; an entry that only another user may read stays."""
    sessions: dict[str, Session]
    changed: set[str]
    """The sessions that entries belong to."""
    drafts: list[JsonObject]
    markers: list[PhaseMarker]
    summarised: list[JsonObject]
    """The entry of the compaction that the batch ends with."""


class _Stored(NamedTuple):
    """Result of the change of a batch."""

    ids: list[str]
    needed: bool
    head: int
    """Position of the last archived item that the notes were compared with."""
    folds: bool
    """Whether a phase was completed or a summary stored, after which the journal is folded."""
    handoff: JsonObject | None
    """The record of the hand-off that the full memory needs."""
    refused: str
    """Why the summary of the compaction was rejected; empty if it was not."""


def drain(home: Path, *, patience: float = PATIENCE_SECONDS) -> Drained:
    """Store the waiting entries of the spool and return what that did; never raises for a locked or broken home.

    `patience` is how many seconds it waits for another drain, and then for another writer; less if
    somebody waited in vain a moment ago.
    """
    if not spool.waiting(str(home)):
        return Drained(0, [], compression_needed=False, left="")
    names: list[str] = []
    ids: list[str] = []
    needed, left = False, ""
    patience = min(patience, lock_patience(home))
    try:
        require_home(home)
        with (
            storage_errors(home, left="What hooks have spooled stays there."),
            locked(home / "hooks", timeout=patience),
        ):
            settings = config.or_default(home)._replace(lock_timeout_seconds=patience)
            for batch in _batches(home):
                stored = _store(batch, settings)
                ids += stored.ids
                needed |= stored.needed
                names += batch.names
                if len(batch.names) < len(batch.met):
                    left = "some entries belong to another user, and wait for that one."
            with suppress(OSError):  # a marker that cannot be removed expires in a minute
                _marker(home).unlink(missing_ok=True)
    except AetherError as reason:
        left = str(reason)
        if isinstance(reason, LockTimeout) and patience >= PATIENCE_SECONDS:
            _mark_locked_out(home)
    return Drained(len(names), ids, needed, left)


def lock_patience(home: Path) -> float:
    """Return how many seconds a hook should wait for a lock of `home`: few, where one has just waited in vain."""
    try:
        age = time.time() - _marker(home).stat().st_mtime
    except OSError:
        return PATIENCE_SECONDS
    return SHORT_PATIENCE_SECONDS if 0 <= age < LOCKED_OUT_SECONDS else PATIENCE_SECONDS


def _mark_locked_out(home: Path) -> None:
    """Take note that somebody waited in vain; where that cannot be written, the next one waits as long."""
    with suppress(OSError):
        marker = _marker(home)
        if not marker.is_symlink():
            marker.touch()


def _marker(home: Path) -> Path:
    return home / "hooks" / "locked-out"


def _batches(home: Path) -> Iterator[_Batch]:
    """Yield the waiting entries, batch after batch; the caller stores one before it asks for the next."""
    waiting = spool.waiting(str(home))
    while waiting:
        snapshot = load(home)
        capacity = snapshot.documents["memory"]["working_memory"]["max_capacity_tokens"]
        batch = _Batch(home, snapshot, notes.batch_chars(capacity), [], [], {}, set(), [], [], [])
        _fill(batch, waiting)
        yield batch
        waiting = waiting[len(batch.met) :]


def _fill(batch: _Batch, waiting: list[str]) -> None:
    """Read entries into `batch` until it is full, a line changes the phase, or a compaction comes."""
    chars = 0
    for name in waiting[:BATCH_ENTRIES]:
        entry = spool.get(str(batch.home), name)
        if batch.drafts and entry is not None and _summary_of(entry):
            return
        batch.met.append(name)
        if entry is None and not _has_left(batch.home, name):
            continue
        batch.names.append(name)
        found = _read(batch, name, entry, waiting) if entry is not None else []
        batch.drafts.extend(found)
        chars += sum(len(draft["content"]) for draft in found)
        if batch.markers or batch.summarised or chars > batch.most_chars:
            return


def _summary_of(entry: JsonObject) -> str:
    return as_text(entry.get("summary")).strip() if entry.get("event") == "PostCompact" else ""


def _has_left(home: Path, name: str) -> bool:
    """Return whether an entry left the spool, drained by another process or put into quarantine; not if another user's.

    Raises:
        OSError: it is there and cannot be read, perhaps for now: the entries after it have to wait.
    """
    path = home / "hooks" / "spool" / name
    if not path.exists():
        return True
    if os.access(path, os.R_OK):
        raise OSError(errno.EIO, f"{name} cannot be read")
    return False


def _read(batch: _Batch, name: str, entry: JsonObject, waiting: list[str]) -> list[JsonObject]:
    """Return the ready notes of one entry, and advance its session."""
    key, event = as_text(entry.get("session")), as_text(entry.get("event"))
    if key not in batch.sessions:
        batch.sessions[key] = open_session(batch.home, key)
    session = batch.sessions[key]
    if name in session["done"]:
        return []
    if key not in batch.changed:
        batch.changed.add(key)
        session["done"] = sorted(set(session["done"]) & set(waiting))
    session["done"].append(name)
    starts = event == "SessionStart"
    if not session["first_source"]:
        session["first_source"] = as_text(entry.get("source")) if starts else UNKNOWN_SOURCE
    if not starts or not session["at"]:
        session["at"], session["revision"] = as_text(entry.get("at")), NO_REVISION
    if starts or (event == "SessionEnd" and is_idle(session)):
        return []
    return _notes_of(batch, name, session, entry)


def _notes_of(batch: _Batch, name: str, session: Session, entry: JsonObject) -> list[JsonObject]:
    """Return the ready notes of `entry`; an entry that makes no sense goes into quarantine."""
    from aether.api import hook_sessions  # they take as long to import as all else here

    phase = phases.current_phase(batch.snapshot.documents["COLONY_STATE"])
    try:
        repeated = hook_sessions.read_injected(batch.home, as_text(entry.get("session")))
        found = hook_sessions.ready_notes(session, entry, phase=phase, told=repeated)
    except hook_sessions.MALFORMED_ERRORS as reason:
        _quarantine(batch.home, name, entry, f"{type(reason).__name__}: {reason}.")
        return []
    batch.markers.extend(hook_sessions.phase_markers(entry))
    if _summary_of(entry):
        batch.summarised.append(entry)
    return cast("list[JsonObject]", found)


def _store(batch: _Batch, settings: config.Config) -> _Stored:
    """Commit `batch`, write its sessions and remove its entries for good; return what that did."""
    stored, revision = _commit(batch, settings)
    for key in sorted(batch.changed):
        session = batch.sessions[key]
        session["archive_read"] = max(session["archive_read"], stored.head)
        if session["revision"] == NO_REVISION:
            session["revision"] = revision
        write_session(batch.home, key, session)
    spool.remove(str(batch.home), batch.names)
    return stored


def _commit(batch: _Batch, settings: config.Config) -> tuple[_Stored, int]:
    """Commit the change of `batch` and return its result with the revision after it.

    Raises:
        LockTimeout: another process was writing.
        StorageFailed: the disk refused.
    """
    parts = list(notes.batches(_storable(batch), batch.most_chars))
    if not (parts or batch.markers or batch.summarised):
        return _Stored([], False, -1, False, None, ""), batch.snapshot.revision
    at = clock.now()
    events: list[JsonObject] = []

    def plan(snapshot: Snapshot) -> Change:
        change = _batch_change(batch, parts, snapshot, at)
        events[:] = change.appends.get("events", [])
        return change

    done = commit(batch.home, plan, _author(batch, parts), now=at, settings=settings)
    stored: _Stored = done.result
    telemetry.export(batch.home, events)
    if stored.refused:
        session = as_text(batch.summarised[0].get("session"))
        reason = f"the summary of a compaction was refused: {stored.refused}"
        spool.log_failure(str(batch.home), "taking-in", session, reason)
    with suppress(AetherError):  # the next command folds, and the next addition writes the hand-off
        if stored.folds:
            fold_home(batch.home, now=clock.now())
        if stored.handoff:
            from aether.api.handoffs import ensure_file, handoff_path

            if not handoff_path(batch.home, stored.handoff).exists():
                ensure_file(load(batch.home), stored.handoff)
    return stored, done.revision


def _author(batch: _Batch, parts: list[list[JsonObject]]) -> Author:
    """Return the author of the change of `batch`, in the words of `aether log`."""
    reasons = [pluralize(sum(map(len, parts)), "notes of Claude Code")] if parts else []
    reasons += [f"{marker.action} phase {marker.phase}" for marker in batch.markers]
    reasons += ["summary of a compaction"] * len(batch.summarised)
    operation = "capture" if parts else f"{batch.markers[0].action} phase" if batch.markers else ""
    return Author("compress" if batch.summarised else operation, by=HOOK, reason=", ".join(reasons))


def _batch_change(batch: _Batch, parts: list[list[JsonObject]], snapshot: Snapshot, at: datetime) -> Change:
    """Return the change of `batch`; its result is a `_Stored`."""
    files = {draft["metadata"]["pointer"]["file"] for draft in batch.drafts}
    after = min((batch.sessions[key]["archive_read"] for key in batch.changed), default=-1)
    # Only under the lock is everything visible that another process, importing the same session, has stored.
    known = notes.known_keys(snapshot, to_hooks=True, files=files, after=after) if parts else set()
    fresh = [[draft for draft in part if notes.is_new(draft, known)] for part in parts]
    adding = [_adding_step(part, at + timedelta(microseconds=nth)) for nth, part in enumerate(fresh) if part]
    marking = [_phase_step(marker, at) for marker in batch.markers]
    summing = [_summary_step(entry, snapshot, at) for entry in batch.summarised]
    opening = [_handoff_step(batch.home, at)] if adding else []
    change = chain_changes(snapshot.documents, *adding, *marking, *summing, *opening)
    results = iter(change.result)
    added = [next(results) for _ in adding]
    completed = [next(results) for _ in marking]
    folds, refused = any(completed), ""
    for _ in summing:
        done, refused = next(results)
        folds |= bool(done and done.stored)
    stored = _Stored(
        [one for new, _ in added for one in new.ids], any(needed for _, needed in added),
        archive.head(snapshot, "items") if parts else -1, folds, next(results, None), refused,
    )  # fmt: skip
    return change._replace(result=stored)


def _adding_step(part: list[JsonObject], at: datetime) -> Step:
    return lambda state: add_items(state, part, now=at, new_id=new_id, count=counter_of(state["memory"]))


def _phase_step(marker: PhaseMarker, at: datetime) -> Step:
    return lambda state: apply_marker(state, marker, now=at, new_id=new_id)


def _summary_step(entry: JsonObject, snapshot: Snapshot, at: datetime) -> Step:
    """Return the step that stores the summary of a compaction, once.

    Its result is an `Ingested` or None, and the reason why the summary was rejected.
    """

    def step(state: Mapping[str, Any]) -> Change:
        from aether.api import handoffs  # seldom needed

        try:
            change = handoffs.summary_change(
                snapshot._replace(documents=dict(state)), as_text(entry["summary"]), now=at,
                session=as_text(entry.get("session")), trigger=as_text(entry.get("trigger")),
            )  # fmt: skip
        except (LockTimeout, StorageFailed):
            raise  # it waits
        except AetherError as reason:
            return Change({}, result=(None, str(reason)))
        return change._replace(result=(change.result, ""))

    return step


def _handoff_step(home: Path, at: datetime) -> Step:
    """Return the step that opens a hand-off for a full memory; its result is the record of the open one, or None."""

    def step(state: Mapping[str, Any]) -> Change:
        memory = state["memory"]
        if not token_usage(memory).needed:
            return Change({})
        from aether.api.handoffs import ensure_open
        from aether.memory import handoff  # seldom needed

        for record in memory["compression"]["open"]:
            if handoff.has_unchanged_items(memory, record):
                return Change({}, result=record)
        return ensure_open(home, state, handoff.phase_to_compress(state), at)

    return step


def _storable(batch: _Batch) -> Iterator[JsonObject]:
    """Yield the notes that can be stored; the others are kept aside."""
    memory = batch.snapshot.documents["memory"]
    capacity, count = memory["working_memory"]["max_capacity_tokens"], counter_of(memory)
    for draft in batch.drafts:
        try:
            yield notes.storable(draft, capacity=capacity, certain_chars=batch.most_chars, count=count)
        except InvalidInput as reason:
            _quarantine(batch.home, f"{notes.note_key(draft)}.json", draft, reason.what)


def _quarantine(home: Path, name: str, what: JsonObject, reason: str) -> None:
    """Keep what cannot be stored in `quarantine/`, and say so in the log of the hooks."""
    path = home / "quarantine" / f"hooks-{name}"
    make_directory(path.parent)
    write_whole(path, json.dumps(what).encode("ascii"))
    spool.log_failure(str(home), "taking-in", "", f"{reason} Kept in quarantine/{path.name}")

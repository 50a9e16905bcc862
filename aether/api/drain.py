"""The drain: store the events that hooks have spooled as working-memory items, each exactly once.

Entries are drained in the order of their names, in batches. Pure functions compute the change of a batch (its notes and the
evictions they cause, changes of the phase, the summary of a compaction), and one commit stores it. Then the sessions of its
entries are written, and the entries are removed. A session file names the entries it contains, the key of a note does not
depend on the time of storing, and phase lines and summaries have no effect the second time: a crash at any point loses
nothing and doubles nothing. One process drains at a time. Entries that cannot be stored now stay in the spool; malformed ones
go into quarantine. The summary of a compaction ends its batch: it covers everything captured before it and nothing later.
Home access (`api.home`) drains before each operation, so nothing of it is used here.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from aether import clock, regular
from aether.api import dedupe, hook_sessions, telemetry
from aether.api.hook_sessions import NO_REVISION, Session
from aether.clock import new_id
from aether.errors import AetherError, InvalidInput, LockTimeout, StorageFailed, UnsafePath
from aether.memory import phases
from aether.memory.capture.notes import SOURCE_MAIN
from aether.memory.facts import fact_text
from aether.memory.items import add_items, items_of, token_usage, update
from aether.memory.phases import apply_marker
from aether.messages.model import as_text
from aether.redact.redact import redact
from aether.store import config, record_files, spool
from aether.store.authors import HOOK, Author
from aether.store.commit import commit, fold_home
from aether.store.files import locked, make_directory, storage_errors, write_whole
from aether.store.patch import chain_changes
from aether.store.snapshot import Snapshot, load, require_home
from aether.text.words import pluralize
from aether.tokens.counters import counter_of
from aether.types import RELEVANCE_OF_TYPE, Change, Fact, JsonObject

if TYPE_CHECKING:
    from datetime import datetime

    from aether.memory.phases import PhaseMarker

    Step = Callable[[Mapping[str, Any]], Change]

# Entries of one commit: enough that the disk does not dominate, few enough to lose little in a crash.
BATCH_ENTRIES = 200
# Seconds: a hook delays its host. One full wait a minute is enough to notice that the lock is free again.
PATIENCE_SECONDS = 2.0
SHORT_PATIENCE_SECONDS = 0.3
LOCKED_OUT_SECONDS = 60


class Drained(NamedTuple):
    """Result of a drain."""

    left: str
    """Why entries stay in the spool; empty if none does."""


class _Batch(NamedTuple):
    """Some entries and their notes; the empty parts are filled while the entries are read."""

    home: Path
    snapshot: Snapshot
    most_chars: float
    met: list[str]
    """All entries that were read."""
    names: list[str]
    """Those that leave the spool; an entry that only another user can read stays."""
    sessions: dict[str, Session]
    changed: set[str]
    """The sessions that entries belong to."""
    notes: list[JsonObject]
    markers: list[PhaseMarker]
    summarised: list[JsonObject]
    """The entry of the compaction that ends the batch, if any."""
    started: str
    """The session that starts at this moment, if one does."""
    entries: list[JsonObject]
    """Those at which git is asked, with their directories."""


class _Stored(NamedTuple):
    """Result of the change of a batch."""

    head: int
    """Position of the last archived item that the notes were compared with."""
    folds: bool
    """Whether a phase was completed or a summary stored, after which the journal is folded."""
    handoff: JsonObject | None
    """The record of the hand-off that the full memory needs."""
    refused: str
    """Why the summary of the compaction was rejected; empty if it was not."""


def drain(home: Path, *, patience: float = PATIENCE_SECONDS, started: str = "") -> Drained:
    """Store the waiting entries of the spool and return the result; a locked or broken home raises no error.

    `patience` limits the seconds to wait for another drain, and then for another writer. A wait that failed less
    than a minute ago shortens it. `started` is the session that starts at this moment, if one does.
    """
    if not spool.waiting(str(home)):
        return Drained("")
    left = ""
    patience = min(patience, lock_patience(home))
    try:
        require_home(home)
        with (
            storage_errors(home, left="What hooks have spooled stays there."),
            locked(home / "hooks", timeout=patience),
        ):
            settings = config.or_default(home)._replace(lock_timeout_seconds=patience)
            waiting = spool.waiting(str(home))
            while waiting:
                batch = _next_batch(home, waiting, started)
                waiting = waiting[len(batch.met) :]
                _store(batch, settings)
                if len(batch.names) < len(batch.met):
                    left = "some entries belong to another user, who has to drain them."
            with suppress(OSError):  # a file that cannot be removed expires in a minute
                _marker(home).unlink(missing_ok=True)
    except AetherError as reason:
        left = str(reason)
        if isinstance(reason, LockTimeout) and patience >= PATIENCE_SECONDS:
            with suppress(OSError, UnsafePath):  # without this file the next hook waits as long
                regular.touch(_marker(home))
    return Drained(left)


def lock_patience(home: Path) -> float:
    """Return how many seconds a hook should wait for a lock of `home`: few if a wait has just failed."""
    try:
        age = time.time() - _marker(home).stat().st_mtime
    except OSError:
        return PATIENCE_SECONDS
    return SHORT_PATIENCE_SECONDS if 0 <= age < LOCKED_OUT_SECONDS else PATIENCE_SECONDS


def _marker(home: Path) -> Path:
    return home / "hooks" / "locked-out"


def _next_batch(home: Path, waiting: list[str], started: str) -> _Batch:
    """Return the first entries of `waiting`, read until the batch is full, a line changes the phase, or a compaction."""
    snapshot = load(home)
    capacity = snapshot.documents["memory"]["working_memory"]["max_capacity_tokens"]
    batch = _Batch(home, snapshot, dedupe.batch_chars(capacity), [], [], {}, set(), [], [], [], started, [])
    chars = 0
    for name in waiting[:BATCH_ENTRIES]:
        entry = spool.get(str(home), name)
        if batch.notes and entry is not None and _summary_of(entry):
            break
        batch.met.append(name)
        if entry is None and (home / "hooks" / "spool" / name).exists():
            if not os.access(home / "hooks" / "spool" / name, os.R_OK):
                continue  # it is another user's
            raise OSError(errno.EIO, f"{name} cannot be read")  # perhaps for now: the entries after it wait
        batch.names.append(name)
        found = _read(batch, name, entry, waiting) if entry is not None else []
        batch.notes.extend(found)
        chars += sum(len(note["content"]) for note in found)
        if batch.markers or batch.summarised or chars > batch.most_chars:
            break
    return batch


def _summary_of(entry: JsonObject) -> str:
    return as_text(entry.get("summary")).strip() if entry.get("event") == "PostCompact" else ""


def _read(batch: _Batch, name: str, entry: JsonObject, waiting: list[str]) -> list[JsonObject]:
    """Return the ready notes of one entry and advance its session; a malformed entry goes into quarantine."""
    key, event = as_text(entry.get("session")), as_text(entry.get("event"))
    if key not in batch.sessions:
        batch.sessions[key] = hook_sessions.open_session(batch.home, key)
    session = batch.sessions[key]
    if name in session["done"]:
        return []
    batch.changed.add(key)
    archived = record_files.end_of_head(batch.home) if key and key == batch.started else -1
    hook_sessions.meet(session, name, entry, waiting, archived=archived)
    if event in hook_sessions.ASKING_EVENTS:
        place = as_text(entry.get("directory")) or as_text(session["state"].get("directory"))
        batch.entries.append({"event": event, "session": key, "directory": place})
    if event == "SessionStart" or (event == "SessionEnd" and hook_sessions.is_idle(session)):
        return []
    phase = phases.current_phase(batch.snapshot.documents["COLONY_STATE"])
    try:
        injected = hook_sessions.read_injected(batch.home, key)
        found = hook_sessions.ready_notes(session, entry, phase=phase, injected=injected)
    except hook_sessions.MALFORMED_ERRORS as reason:
        _quarantine(batch.home, name, entry, f"{type(reason).__name__}: {reason}.")
        return []
    batch.markers.extend(hook_sessions.phase_markers(entry))
    if _summary_of(entry):
        batch.summarised.append(entry)
    return cast("list[JsonObject]", found)


def _store(batch: _Batch, settings: config.Config) -> _Stored:
    """Commit `batch`, write its sessions, remove its entries, and return the result."""
    stored, revision = _commit(batch, settings)
    for key in sorted(batch.changed):
        session = batch.sessions[key]
        session["archive_read"] = max(session["archive_read"], stored.head)
        if session["revision"] == NO_REVISION:
            session["revision"] = revision
        hook_sessions.write_session(batch.home, key, session)
    spool.remove(str(batch.home), batch.names)
    return stored


def _commit(batch: _Batch, settings: config.Config) -> tuple[_Stored, int]:
    """Commit the change of `batch` and return its result with the revision after it.

    Raises:
        LockTimeout: another process was writing.
        StorageFailed: the disk refused.
    """
    parts = list(dedupe.batches(_storable(batch), batch.most_chars))
    trees = hook_sessions.asked_trees(batch.entries)
    trees = {
        place: fact for place, fact in trees.items() if fact != hook_sessions.noted_tree(batch.home, place)
    }
    if not (parts or batch.markers or batch.summarised or trees):
        return _Stored(-1, False, None, ""), batch.snapshot.revision
    at = clock.now()
    events: list[JsonObject] = []

    def plan(snapshot: Snapshot) -> Change:
        change = _batch_change(batch, parts, trees, snapshot, at)
        events[:] = change.appends.get("events", [])
        return change

    reasons = [pluralize(sum(map(len, parts)), "notes of Claude Code")] if parts else []
    reasons += [f"{marker.action} phase {marker.phase}" for marker in batch.markers]
    reasons += ["summary of a compaction"] * len(batch.summarised)
    reasons += ["state of git"] * bool(trees)
    operation = "capture" if parts or trees else f"{batch.markers[0].action} phase" if batch.markers else ""
    author = Author("compress" if batch.summarised else operation, by=HOOK, reason=", ".join(reasons))
    done = commit(batch.home, plan, author, now=at, settings=settings)
    stored: _Stored = done.result
    hook_sessions.note_trees(batch.home, trees)
    telemetry.export(batch.home, events)
    if stored.refused:
        session = as_text(batch.summarised[0].get("session"))
        reason = f"the summary of a compaction was refused: {stored.refused}"
        spool.log_failure(str(batch.home), "drain", session, reason)
    with suppress(AetherError):  # the next command folds, and the next addition writes the hand-off
        if stored.folds:
            fold_home(batch.home, now=clock.now(), timeout=settings.lock_timeout_seconds)
        if stored.handoff:
            from aether.api.handoffs import ensure_file, handoff_path

            if not handoff_path(batch.home, stored.handoff).exists():
                ensure_file(load(batch.home), stored.handoff)
    return stored, done.revision


def _batch_change(
    batch: _Batch, parts: list[list[JsonObject]], trees: Mapping[str, Fact], snapshot: Snapshot, at: datetime
) -> Change:
    """Return the change of `batch`; its result is a `_Stored`."""
    files = {note["metadata"]["pointer"]["file"] for note in batch.notes}
    after = min((batch.sessions[key]["archive_read"] for key in batch.changed), default=-1)
    # Only under the lock are all notes visible that another process, importing the same session, has stored.
    keys = {dedupe.note_key(note) for note in batch.notes}
    known = (
        dedupe.known_keys(snapshot, to_hooks=True, files=files, keys=keys, after=after) if parts else set()
    )
    count = counter_of(snapshot.documents["memory"])
    fresh = [[note for note in part if dedupe.is_new(note, known)] for part in parts]
    adding = [
        partial(add_items, entries=part, now=at + timedelta(microseconds=nth), new_id=new_id, count=count)
        for nth, part in enumerate(fresh)
        if part
    ]
    adding += [
        partial(_tree_change, batch=batch, place=place, fact=fact, at=at) for place, fact in trees.items()
    ]
    marking = [partial(apply_marker, marker=marker, now=at, new_id=new_id) for marker in batch.markers]
    summing = [_summary_step(entry, snapshot, at) for entry in batch.summarised]
    opening = [_handoff_step(batch.home, at)] if adding else []
    change = chain_changes(snapshot.documents, *adding, *marking, *summing, *opening)
    results = iter(change.result)
    for _ in adding:
        next(results)
    completed = [next(results) for _ in marking]
    folds, refused = any(completed), ""
    for _ in summing:
        done, refused = next(results)
        folds |= bool(done and done.stored)
    stored = _Stored(record_files.head(snapshot) if parts else -1, folds, next(results, None), refused)
    return change._replace(result=stored)


def _tree_change(
    state: Mapping[str, Any], *, batch: _Batch, place: str, fact: Fact, at: datetime
) -> Change:  # fmt: skip
    """Return the change that stores what git says of the work tree of `place`, instead of what it said before."""
    memory, count = state["memory"], counter_of(state["memory"])
    session = next(entry["session"] for entry in reversed(batch.entries) if entry["directory"] == place)
    metadata = {
        "timestamp": clock.stamp(at), "phase": phases.current_phase(state["COLONY_STATE"]), "role": "tree",
        "evidence": "machine", "fact": fact, "project": place, "conversation": session,
        "pointer": {"via": hook_sessions.HOOKS, "key": sha256(f"tree/{place}".encode()).hexdigest()[:32]},
    }  # fmt: skip
    item = {"content": redact(fact_text(fact)), "metadata": metadata}
    for before in items_of(memory):
        if before["metadata"].get("role") == "tree" and before["metadata"].get("project") == place:
            return update(memory, before["id"], item, now=at, count=count)
    more = {
        "type": "observation",
        "relevance_score": RELEVANCE_OF_TYPE["observation"],
        "source": SOURCE_MAIN,
        "caste": None,
    }
    return add_items(state, entries=[item | more], now=at, new_id=new_id, count=count)


def _summary_step(entry: JsonObject, snapshot: Snapshot, at: datetime) -> Step:
    """Return the step that stores the summary of a compaction, once.

    Its result is an `IngestResult` or None, and the reason why the summary was rejected.
    """

    def step(state: Mapping[str, Any]) -> Change:
        from aether.api import handoffs  # seldom needed

        try:
            change = handoffs.summary_change(
                snapshot._replace(documents=dict(state)), as_text(entry["summary"]), now=at,
                session=as_text(entry.get("session")), trigger=as_text(entry.get("trigger")),
            )  # fmt: skip
        except (LockTimeout, StorageFailed):
            raise  # the entry waits for the next drain
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
            if not record.get("conversation") and handoff.has_unchanged_items(memory, record):
                return Change({}, result=record)
        return ensure_open(home, state, handoff.phase_to_compress(state), at)

    return step


def _storable(batch: _Batch) -> Iterator[JsonObject]:
    """Yield the notes that can be stored; quarantine the others."""
    memory = batch.snapshot.documents["memory"]
    capacity, count = memory["working_memory"]["max_capacity_tokens"], counter_of(memory)
    for note in batch.notes:
        try:
            yield dedupe.storable(note, capacity=capacity, certain_chars=batch.most_chars, count=count)
        except InvalidInput as reason:
            _quarantine(batch.home, f"{dedupe.note_key(note)}.json", note, reason.what)


def _quarantine(home: Path, name: str, what: JsonObject, reason: str) -> None:
    """Move `what` to `quarantine/`, and add a line to the log of the hooks."""
    path = home / "quarantine" / f"hooks-{name}"
    make_directory(path.parent)
    write_whole(path, json.dumps(what).encode("ascii"))
    spool.log_failure(str(home), "drain", "", f"{reason} Kept in quarantine/{path.name}")

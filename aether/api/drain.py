"""The drain: store the events that hooks have spooled as working-memory items, each exactly once.

Entries are drained in the order of their names, in batches. Pure functions compute the change of a batch (its notes and
the evictions they cause, changes of the phase, the summary of a compaction), and one commit stores it. Then the sessions
of its entries are written, and the entries are removed. A session file names the entries it contains, the key of a note
does not depend on the time of storing, and phase lines and summaries have no effect the second time: a crash at any point
loses nothing and doubles nothing. One process drains at a time. Entries that cannot be stored now stay in the spool;
malformed ones go into quarantine. The summary of a compaction ends its batch: it covers everything captured before it and
nothing later. Home access (`api.home`) drains before each operation, so nothing of it is used here.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, cast

from aether import clock, regular
from aether.api import dedupe, hook_sessions, telemetry
from aether.api.hook_sessions import NO_REVISION
from aether.clock import new_id
from aether.errors import AetherError, InvalidInput, LockTimeout, StorageFailed
from aether.memory import gate, phases
from aether.memory.capture.notes import SOURCE_MAIN
from aether.memory.facts import fact_text
from aether.memory.items import add_items, items_of, token_usage, update
from aether.messages.model import as_text
from aether.redact.redact import redact
from aether.store import config, record_files, spool
from aether.store.authors import HOOK, Author
from aether.store.commit import commit, fold_home
from aether.store.files import locked, save, storage_errors
from aether.store.patch import chain_changes
from aether.store.snapshot import load, require_home
from aether.text.words import pluralize
from aether.tokens.counters import counter_of
from aether.types import RELEVANCE_OF_TYPE, Change

if TYPE_CHECKING:
    from aether.api.hook_sessions import Session
    from aether.memory.phases import PhaseMarker
    from aether.store.snapshot import Snapshot
    from aether.types import Fact, JsonObject

    State = Mapping[str, Any]

# Entries of one commit: enough that the disk does not dominate, few enough to lose little in a crash.
BATCH_ENTRIES = 200
# Seconds: a hook delays its host, and the next one tries again.
PATIENCE_SECONDS = 1.0


class Drained(NamedTuple):
    """Result of a drain."""

    left: str
    """Why entries stay in the spool; empty if none does."""


class _Batch(NamedTuple):
    """Some entries of the spool and what they yield; the lists are filled while they are read."""

    home: Path
    snapshot: Snapshot
    started: str
    """The session that starts at this moment, if one does."""
    most_chars: float
    read: list[str]
    """Names of the entries that were read."""
    names: list[str]
    """Those that leave the spool; an entry that only another user can read stays."""
    sessions: dict[str, Session]
    """The sessions that entries belong to."""
    notes: list[JsonObject]
    markers: list[PhaseMarker]
    compactions: list[JsonObject]
    """The entry of the compaction that ends the batch, if any."""
    asking: list[JsonObject]
    """Event, session and directory of the entries at which git is asked."""


class _Outcome(TypedDict):
    """What the commit of a batch found."""

    folds: bool
    """Whether a phase was completed or a summary stored, after which the journal is folded."""
    refused: str
    """Why the summary of the compaction was refused; empty if it was not."""
    handoff: JsonObject | None
    """The record of the hand-off that the full memory needs."""
    archive_head: int
    """Position of the last archived item that the notes were compared with."""


def drain(home: Path, *, patience: float = PATIENCE_SECONDS, started: str = "") -> Drained:
    """Store the waiting entries of the spool and return the result; a locked or broken home raises no error.

    `patience` limits the seconds to wait for another drain, and then for another writer. `started` is the session that starts at this moment, if one does.
    """
    if not spool.waiting(str(home)):
        return Drained("")
    reason = ""
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
                waiting = waiting[len(batch.read) :]
                _store(batch, settings)
                if len(batch.names) < len(batch.read):
                    reason = "some entries belong to another user, who has to drain them."
    except AetherError as error:
        reason = str(error)
    return Drained(reason)


# --- Entries are read


def _next_batch(home: Path, waiting: list[str], started: str) -> _Batch:
    """Return the first entries of `waiting`, read until the batch is full, a line changes the phase, or a compaction."""
    snapshot = load(home)
    capacity = snapshot.documents["memory"]["working_memory"]["max_capacity_tokens"]
    batch = _Batch(home, snapshot, started, dedupe.batch_chars(capacity), [], [], {}, [], [], [], [])
    chars = 0
    for name in waiting[:BATCH_ENTRIES]:
        entry = spool.get(str(home), name)
        if batch.notes and entry is not None and _summary_of(entry):
            break
        batch.read.append(name)
        path = home / "hooks" / "spool" / name
        if entry is None and path.exists():
            if not os.access(path, os.R_OK):
                continue  # it is another user's
            raise OSError(errno.EIO, f"{name} cannot be read")  # perhaps for now: the entries after it wait
        batch.names.append(name)
        notes = _observe(batch, name, entry, waiting) if entry is not None else []
        batch.notes.extend(notes)
        chars += sum(len(note["content"]) for note in notes)
        if batch.markers or batch.compactions or chars > batch.most_chars:
            break
    return batch


def _summary_of(entry: JsonObject) -> str:
    return as_text(entry.get("summary")).strip() if entry.get("event") == "PostCompact" else ""


def _observe(batch: _Batch, name: str, entry: JsonObject, waiting: list[str]) -> list[JsonObject]:
    """Return the ready notes of one entry and advance its session; a malformed entry goes into quarantine."""
    key, event = as_text(entry.get("session")), as_text(entry.get("event"))
    if key not in batch.sessions:
        batch.sessions[key] = hook_sessions.open_session(batch.home, key)
    session = batch.sessions[key]
    if name in session["done"]:
        return []
    archived = record_files.end_of_head(batch.home) if key and key == batch.started else -1
    hook_sessions.meet(session, name, entry, waiting, archived=archived)
    if event in hook_sessions.ASKING_EVENTS:
        place = as_text(entry.get("directory")) or as_text(session["state"].get("directory"))
        batch.asking.append({"event": event, "session": key, "directory": place})
    if event == "SessionStart" or (event == "SessionEnd" and hook_sessions.is_idle(session)):
        return []
    phase = phases.current_phase(batch.snapshot.documents["COLONY_STATE"])
    try:
        injected = hook_sessions.read_injected(batch.home, key)
        notes = hook_sessions.ready_notes(session, entry, phase=phase, injected=injected)
    except hook_sessions.MALFORMED_ERRORS as reason:
        _quarantine(batch.home, name, entry, f"{type(reason).__name__}: {reason}.")
        return []
    batch.markers.extend(hook_sessions.phase_markers(entry))
    if _summary_of(entry):
        batch.compactions.append(entry)
    return cast("list[JsonObject]", notes)


def _storable(batch: _Batch) -> Iterator[JsonObject]:
    """Yield the notes that can be stored; quarantine the others."""
    memory = batch.snapshot.documents["memory"]
    capacity, count = memory["working_memory"]["max_capacity_tokens"], counter_of(memory)
    for note in batch.notes:
        try:
            yield dedupe.storable(note, capacity=capacity, certain_chars=batch.most_chars, count=count)
        except InvalidInput as reason:
            _quarantine(batch.home, f"{dedupe.note_key(note)}.json", note, reason.what)


def _quarantine(home: Path, name: str, value: JsonObject, reason: str) -> None:
    """Move `value` to `quarantine/`, and add a line to the log of the hooks."""
    path = home / "quarantine" / f"hooks-{name}"
    save(path, json.dumps(value).encode("ascii"))
    spool.log_failure(str(home), "drain", "", f"{reason} Kept in quarantine/{path.name}")


# --- A batch is stored


def _store(batch: _Batch, settings: config.Config) -> None:
    """Commit `batch`, write its sessions, and remove its entries."""
    outcome, revision = _commit(batch, settings)
    for key, session in sorted(batch.sessions.items()):
        session["archive_read"] = max(session["archive_read"], outcome["archive_head"])
        if session["revision"] == NO_REVISION:
            session["revision"] = revision
        hook_sessions.write_session(batch.home, key, session)
    spool.remove(str(batch.home), batch.names)


def _commit(batch: _Batch, settings: config.Config) -> tuple[_Outcome, int]:
    """Commit the change of `batch` and return what it found, and the revision after it.

    Raises:
        LockTimeout: another process was writing.
        StorageFailed: the disk refused.
    """
    parts = list(dedupe.batches(_storable(batch), batch.most_chars))
    facts = hook_sessions.asked_trees(batch.asking)
    trees = {
        place: fact for place, fact in facts.items() if fact != hook_sessions.noted_tree(batch.home, place)
    }
    if not (parts or batch.markers or batch.compactions or trees):
        return _Outcome(folds=False, refused="", handoff=None, archive_head=-1), batch.snapshot.revision
    time = clock.now()
    events: list[JsonObject] = []

    def plan(snapshot: Snapshot) -> Change:
        change = _batch_change(batch, parts, trees, snapshot, time)
        events[:] = change.appends.get("events", [])
        return change

    committed = commit(batch.home, plan, _author(batch, parts, trees), now=time, settings=settings)
    outcome: _Outcome = committed.result
    hook_sessions.note_trees(batch.home, trees)
    telemetry.export(batch.home, events)
    if outcome["refused"]:
        reason = f"the summary of a compaction was refused: {outcome['refused']}"
        spool.log_failure(str(batch.home), "drain", as_text(batch.compactions[0].get("session")), reason)
    with suppress(AetherError):  # the next command folds, and the next addition writes the hand-off
        if outcome["folds"]:
            fold_home(batch.home, now=clock.now(), timeout=settings.lock_timeout_seconds)
        if handoff := outcome["handoff"]:
            from aether.api.handoffs import ensure_file, handoff_path

            if not handoff_path(batch.home, handoff).exists():
                ensure_file(load(batch.home), handoff)
    return outcome, committed.revision


def _author(batch: _Batch, parts: list[list[JsonObject]], trees: Mapping[str, Fact]) -> Author:
    reasons = [pluralize(sum(map(len, parts)), "notes of Claude Code")] if parts else []
    reasons += [f"{marker.action} phase {marker.phase}" for marker in batch.markers]
    reasons += ["summary of a compaction"] * bool(batch.compactions) + ["state of git"] * bool(trees)
    operation = "capture" if parts or trees or not batch.markers else f"{batch.markers[0].action} phase"
    return Author("compress" if batch.compactions else operation, by=HOOK, reason=", ".join(reasons))


def _batch_change(
    batch: _Batch,
    parts: list[list[JsonObject]],
    trees: Mapping[str, Fact],
    snapshot: Snapshot,
    time: datetime,
) -> Change:
    """Return the change of `batch`; its result is an `_Outcome`."""
    head = record_files.head(snapshot) if parts else -1
    outcome = _Outcome(folds=False, refused="", handoff=None, archive_head=head)
    count = counter_of(snapshot.documents["memory"])
    steps: list[Callable[[State], Change]] = []
    mode = config.or_default(batch.home).memory_agents
    for number, part in enumerate(_fresh(batch, parts, snapshot)):
        time_of_part = time + timedelta(microseconds=number)
        late = [note for note in part if gate.waits(note, mode, snapshot.documents["memory"], captured=True)]
        entries = [note for note in part if note not in late] if late else part
        steps.append(partial(add_items, entries=entries, now=time_of_part, new_id=new_id, count=count))
        if late:
            steps.append(
                partial(gate.propose, entries=late, by=HOOK, now=time_of_part, new_id=new_id, count=count)
            )
    steps += [
        partial(_tree_change, batch=batch, place=place, fact=fact, time=time) for place, fact in trees.items()
    ]
    has_items = bool(steps)

    def mark(state: State, marker: PhaseMarker) -> Change:
        change = phases.apply_marker(state, marker=marker, now=time, new_id=new_id)
        outcome["folds"] |= bool(change.result)
        return change

    if mode == gate.WRITE:  # a line of an agent cannot wait
        steps += [partial(mark, marker=marker) for marker in batch.markers]
    for entry in batch.compactions:
        steps.append(partial(_summary_change, entry=entry, snapshot=snapshot, time=time, outcome=outcome))
    if has_items:
        steps.append(partial(_handoff_change, home=batch.home, time=time, outcome=outcome))
    return chain_changes(snapshot.documents, *steps)._replace(result=outcome)


def _fresh(batch: _Batch, parts: list[list[JsonObject]], snapshot: Snapshot) -> Iterator[list[JsonObject]]:
    """Yield the notes of each part that are not stored yet.

    Only under the lock are all notes visible that another process, importing the same session, has stored.
    """
    if not parts:
        return
    files = {note["metadata"]["pointer"]["file"] for note in batch.notes}
    keys = {dedupe.note_key(note) for note in batch.notes}
    conversations = {as_text(note["metadata"].get("conversation")) for note in batch.notes}
    after = min(session["archive_read"] for session in batch.sessions.values())
    stored = dedupe.known_keys(
        snapshot, to_hooks=True, files=files, keys=keys, conversations=conversations, after=after
    )
    for part in parts:
        if fresh := [note for note in part if dedupe.is_new(note, stored)]:
            yield fresh


def _tree_change(state: State, *, batch: _Batch, place: str, fact: Fact, time: datetime) -> Change:
    """Return the change that stores what git says of the work tree of `place`, instead of what it said before."""
    memory, count = state["memory"], counter_of(state["memory"])
    session = next(entry["session"] for entry in reversed(batch.asking) if entry["directory"] == place)
    metadata = {
        "timestamp": clock.stamp(time), "phase": phases.current_phase(state["COLONY_STATE"]), "role": "tree",
        "evidence": "machine", "fact": fact, "project": place, "conversation": session,
        "pointer": {"via": hook_sessions.HOOKS, "key": regular.digest(f"tree/{place}".encode())[:32]},
    }  # fmt: skip
    item: JsonObject = {"content": redact(fact_text(fact)), "metadata": metadata}
    for before in items_of(memory):
        if before["metadata"].get("role") == "tree" and before["metadata"].get("project") == place:
            return update(memory, before["id"], item, now=time, count=count)
    kind = "observation"
    item |= {"type": kind, "relevance_score": RELEVANCE_OF_TYPE[kind], "source": SOURCE_MAIN, "caste": None}
    return add_items(state, entries=[item], now=time, new_id=new_id, count=count)


def _summary_change(
    state: State, *, entry: JsonObject, snapshot: Snapshot, time: datetime, outcome: _Outcome
) -> Change:
    """Return the change that stores the summary of a compaction, once."""
    from aether.api import handoffs  # seldom needed

    try:
        change = handoffs.summary_change(
            snapshot._replace(documents=dict(state)), as_text(entry["summary"]), now=time,
            session=as_text(entry.get("session")), trigger=as_text(entry.get("trigger")),
        )  # fmt: skip
    except (LockTimeout, StorageFailed):
        raise  # the entry waits for the next drain
    except AetherError as reason:
        outcome["refused"] = str(reason)
        return Change({})
    outcome["folds"] |= bool(change.result and change.result.stored)
    return change


def _handoff_change(state: State, *, home: Path, time: datetime, outcome: _Outcome) -> Change:
    """Return the change that opens a hand-off for a full memory, unless one is open."""
    memory = state["memory"]
    if not token_usage(memory).needed:
        return Change({})
    from aether.api.handoffs import ensure_open
    from aether.memory import handoff  # seldom needed

    for record in memory["compression"]["open"]:
        if not record.get("conversation") and handoff.has_unchanged_items(memory, record):
            outcome["handoff"] = record
            return Change({})
    change = ensure_open(home, state, handoff.phase_to_compress(state), time)
    outcome["handoff"] = change.result
    return change

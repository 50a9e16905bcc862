"""Taking in: what hooks have put into the spool becomes working-memory items, each exactly once.

Entries are taken in the order of their names, in batches: their notes are committed, then the sessions they
belong to are written, then the entries are removed. A session file names the entries it contains, and a note has
a key that does not depend on when it was made, so a crash anywhere costs nothing and doubles nothing. One process
takes in at a time; what it cannot store stays in the spool, and what can never be stored goes into quarantine.
"""

from __future__ import annotations

import errno
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, TypedDict, cast

from aether import clock
from aether.errors import AetherError, InvalidInput
from aether.memory import phases
from aether.memory.capture import State, begin, end_agent, end_turn, finish, observe
from aether.memory.colony import RUNNING
from aether.memory.notes import Draft
from aether.memory.phase_markers import Marker, markers
from aether.messages.blocks import word
from aether.messages.claude_hooks import identity, is_named, records
from aether.messages.record import Record
from aether.operations import drafts as notes
from aether.operations.edge import Author, Snapshot, counter_of, find, now, read
from aether.operations.working import ItemId, store_drafts
from aether.shapes import JsonObject
from aether.store import appends, config, spool
from aether.store.files import make_directory, storage, write_whole
from aether.store.lock import locked

# Entries of one commit: many enough that the disk is not what takes the time, few enough to lose little time.
BATCH_ENTRIES = 200
# What comes twice comes soon: from two installations at once, or as a call and then as part of its batch.
SEEN = 1_024
# Claude Code removes transcripts after 30 days: what is older is not resumed.
SESSION_DAYS = 30
# What `first_source` says where hooks were installed in the middle of a session.
UNKNOWN = "unknown"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_DAY_SECONDS = 86_400
_NOT_YET = -1
# What reading an entry, or a state, of another shape than ours ends in.
_SENSELESS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class Taken(NamedTuple):
    """What taking in did."""

    entries: int
    """Entries that left the spool."""
    ids: list[str]
    """Items that were stored."""
    compression_needed: bool
    left: str
    """Why entries stay in the spool; empty where none does."""


class Session(TypedDict):
    """What must be known of a session of Claude Code to take in what comes next."""

    state: State
    done: list[str]
    """Names of the entries taken in last: while one of them is still in the spool, it is not taken in again."""
    seen: list[str]
    """Identities of the records observed lately."""
    first_source: str
    """How the session began: startup, resume, clear, compact or fork; or `unknown`."""
    at: str
    """When it was last heard of, other than by starting."""
    revision: int
    """The revision of the home after that."""
    archive_read: int
    """Position of the last archived item that its notes were compared with."""


@dataclass
class _Batch:
    """What a few entries came to; all here that changes while they are read."""

    home: Path
    snapshot: Snapshot
    most_chars: float
    met: int = 0
    """How many entries were looked at."""
    names: list[str] = field(default_factory=list)
    """Those that leave the spool; what another user alone may read stays."""
    sessions: dict[str, Session] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    """The sessions that something was heard of."""
    drafts: list[Draft] = field(default_factory=list)
    markers: list[Marker] = field(default_factory=list)


# Storing asks the home itself, which takes in first.
_TAKING: ContextVar[bool] = ContextVar("taking", default=False)


def take_in(home: Path, *, patience: float = 2.0) -> Taken:
    """Turn what waits in the spool into items and return what that did; never raises for a locked or broken home.

    `patience` is how many seconds it waits for another that takes in, and then for one that writes.
    """
    if _TAKING.get() or not spool.waiting(str(home)):
        return Taken(0, [], compression_needed=False, left="")
    names: list[str] = []
    ids: list[ItemId] = []
    left = ""
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
                if len(batch.names) < batch.met:
                    left = "some entries belong to another user, and wait for that one."
    except AetherError as reason:
        left = str(reason)
    finally:
        _TAKING.reset(taking)
    return Taken(len(names), [str(one) for one in ids], any(one.compression_needed for one in ids), left)


def session_of(home: Path, session: str) -> JsonObject | None:
    """Return what is known of a session of Claude Code (a `Session`), None where nothing is."""
    try:
        return cast("JsonObject | None", _read_session(_session_file(home, session)))
    except OSError:
        return None


def _read_session(path: Path) -> Session | None:
    """Return what the file says; None where there is none, or it makes no sense: then the session begins anew."""
    try:
        found = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found.keys() >= Session.__required_keys__ else None  # type: ignore[return-value]


def _batches(home: Path) -> Iterator[_Batch]:
    """Yield what waits, batch after batch; who asks for the next has stored the one before."""
    waiting = spool.waiting(str(home))
    while waiting:
        snapshot = read(home)
        capacity = snapshot.documents["memory"]["working_memory"]["max_capacity_tokens"]
        batch = _Batch(home, snapshot, notes.batch_chars(capacity))
        _fill(batch, waiting)
        yield batch
        waiting = waiting[batch.met :]


def _fill(batch: _Batch, waiting: list[str]) -> None:
    """Read entries into `batch` until it is full, or a line changes the phase."""
    chars = 0
    for name in waiting[:BATCH_ENTRIES]:
        batch.met += 1
        entry = spool.get(str(batch.home), name)
        if entry is None and not _is_gone(batch.home, name):
            continue
        batch.names.append(name)
        found = _take(batch, name, entry, waiting) if entry is not None else []
        batch.drafts += found
        chars += sum(len(draft["content"]) for draft in found)
        if batch.markers or chars > batch.most_chars:
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


def _take(batch: _Batch, name: str, entry: JsonObject, waiting: list[str]) -> list[Draft]:
    """Return the notes that are due with one entry, and take note of what it says of its session."""
    key, event = word(entry.get("session")), word(entry.get("event"))
    if key not in batch.sessions:
        batch.sessions[key] = _opened(batch.home, key)
    session = batch.sessions[key]
    if name in session["done"]:
        return []
    if key not in batch.changed:
        batch.changed.add(key)
        session["done"] = sorted(set(session["done"]) & set(waiting))
        session["state"]["fixed_phase"] = _phase(batch)
    session["done"].append(name)
    session["state"]["file"] = word(entry.get("transcript")) or session["state"]["file"]
    starts = event == "SessionStart"
    if not session["first_source"]:
        session["first_source"] = word(entry.get("source")) if starts else UNKNOWN
    if not starts or not session["at"]:
        session["at"], session["revision"] = word(entry.get("at")), _NOT_YET
    if event == "Stop":
        batch.markers += markers(word(entry.get("message")))
    return [_by_hooks(draft) for draft in _observed(batch, session, entry)]


def _observed(batch: _Batch, session: Session, entry: JsonObject) -> list[Draft]:
    """Return the notes that are due with `entry`; one that makes no sense goes into quarantine."""
    try:
        return _due(session, entry)
    except _SENSELESS:
        # Is it the entry, or a state that another version wrote? All that a state holds is of one turn.
        anew: Session = {**session, "state": begin(file=word(entry.get("transcript")), phase=_phase(batch))}
    try:
        found = _due(anew, entry)
    except _SENSELESS as reason:
        _set_aside(batch.home, session["done"][-1], entry, f"{type(reason).__name__}: {reason}.")
        return []
    session.update(anew)
    return found


def _due(session: Session, entry: JsonObject) -> list[Draft]:
    state, seen = session["state"], session["seen"]
    fresh = [record for record in records(entry) if not _is_repeated(record, seen)]
    found = [draft for record in fresh for draft in observe(state, record)]
    match entry.get("event"):
        case "Stop":
            found += end_turn(state)
        case "SubagentStop":
            found += end_agent(state, word(entry.get("agent")))
        case "SessionEnd":
            found += finish(state)
    session["seen"] = [*seen, *map(identity, fresh)][-SEEN:]
    return found


def _is_repeated(record: Record, seen: list[str]) -> bool:
    if record.kind == "boundary":  # all alike, and another one does nothing
        return False
    if is_named(record):
        return identity(record) in seen
    # Without an id only what comes at once is the same; a call and its answer are two records.
    return identity(record) in seen[-2 if record.kind in {"call", "result"} else -1 :]


def _by_hooks(draft: Draft) -> Draft:
    pointer = draft["metadata"]["pointer"]
    del pointer["line"]  # the hook does not know where the transcript has it
    pointer["via"] = notes.HOOKS
    return draft


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
        author = Author("capture", by=part[0]["source"], reason=f"{len(part)} notes of Claude Code")
        stored = store_drafts(part, author, home=batch.home, wanted=wanted, settings=settings)
        ids, revision = ids + stored.ids, stored.revision
    for key in batch.changed:
        session = batch.sessions[key]
        session["archive_read"] = max(session["archive_read"], head)
        if session["revision"] == _NOT_YET:
            session["revision"] = revision
    return ids


def _sound(batch: _Batch) -> Iterator[JsonObject]:
    """Yield the notes that can be stored; the others are kept aside."""
    memory = batch.snapshot.documents["memory"]
    capacity, count = memory["working_memory"]["max_capacity_tokens"], counter_of(memory)
    for draft in batch.drafts:
        try:
            yield notes.sound(dict(draft), capacity=capacity, certain_chars=batch.most_chars, count=count)
        except InvalidInput as reason:
            _set_aside(batch.home, f"{notes.key(draft)}.json", dict(draft), reason.what)


def _settle(batch: _Batch) -> None:
    """Do what the batch says of phases, write its sessions, and remove its entries: what is stored is not read again."""
    for marker in batch.markers:
        _mark_phase(marker, batch.home)
    for key in sorted(batch.changed):
        path = _session_file(batch.home, key)
        if not path.exists():
            make_directory(path.parent)
            _forget_old(path.parent)
        write_whole(path, json.dumps(batch.sessions[key], separators=(",", ":")).encode("ascii"))
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


def _phase(batch: _Batch) -> int:
    return phases.current_phase(batch.snapshot.documents["COLONY_STATE"])


def _opened(home: Path, key: str) -> Session:
    return _read_session(_session_file(home, key)) or Session(
        state=begin(), done=[], seen=[], first_source="", at="", revision=_NOT_YET, archive_read=-1
    )


def _session_file(home: Path, session: str) -> Path:
    name = (
        session if _PLAIN_NAME.fullmatch(session) else sha256(session.encode("utf-8", "replace")).hexdigest()
    )
    return home / "hooks" / "sessions" / f"{name}.json"


def _forget_old(directory: Path) -> None:
    oldest = time.time() - SESSION_DAYS * _DAY_SECONDS
    for path in directory.glob("*.json"):
        with suppress(OSError):
            if path.stat().st_mtime < oldest:
                path.unlink()


def _set_aside(home: Path, name: str, what: JsonObject, reason: str) -> None:
    """Keep what cannot be stored in `quarantine/`, and say so in the log of the hooks."""
    path = home / "quarantine" / f"hooks-{name}"
    make_directory(path.parent)
    write_whole(path, json.dumps(what).encode("ascii"))
    line = f"{clock.stamp(now())} taking-in - {' '.join(reason.split())} Kept in quarantine/{path.name}\n"
    with (home / "hook.log").open("a", encoding="utf-8", errors="backslashreplace") as log:
        log.write(line)

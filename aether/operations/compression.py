"""Compression, as a caller asks for it: prepare a hand-off, ingest the session an architect made of it.

The model is asked between the two, never while a lock is held. Sessions by hand, eviction and the
numbers are here too; asking an architect is in `architects`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from aether.memory import handoff, ingest, sessions, signals
from aether.memory.ingest import Ingested
from aether.memory.phase_numbers import check_phase
from aether.operations.edge import Author, Home, change, counter_of, find, fold_after, new_id, now, read
from aether.operations.handoffs import evicted_session, free_id, written
from aether.shapes import Change, JsonObject, Session
from aether.store.config import Config
from aether.store.state import Snapshot, load


class Prepared(NamedTuple):
    """What preparing did."""

    path: Path | None
    """The hand-off file; None where there is nothing to compress."""
    reason: str
    """Why there is none; empty where there is one."""
    record: JsonObject | None = None
    newer: int = 0
    """Items of the phase that came after it was opened and are not in it."""


def prepare_compression_data(
    phase: int, manual: bool = False, *, home: Home = None, new: bool = False
) -> Path | None:
    """Return the path of the hand-off for the architect, or None where there is nothing to compress.

    At a phase boundary that is: PHASE_COMPLETE was signalled for `phase` (`manual` is the Queen's own
    trigger and needs no signal) and working memory has items of it. While a hand-off is open, the same
    one is returned, unless `new`.
    """
    return prepare(phase, manual=manual, new=new, home=home).path


def prepare(
    phase: int, *, manual: bool = False, new: bool = False, home: Home = None, settings: Config | None = None,
    by: str = "",
) -> Prepared:  # fmt: skip
    """Return the hand-off of `phase` and its record, or why there is none.

    `settings` are those of the home unless given; `by` is the author of the change, the Queen unless given.
    """
    phase = check_phase(phase)
    place = find(home)
    snapshot = read(place)
    reason = _why_not(snapshot, phase, manual=manual)
    if reason:
        return Prepared(None, reason)
    record = handoff.open_handoff(snapshot.documents["memory"], phase)
    if new or record is None or not handoff.is_held(snapshot.documents["memory"], record):
        at = now()
        compression_id = free_id(place, snapshot.documents["memory"], phase)
        seen = record

        def plan(documents: Mapping[str, Any]) -> Change:
            memory = documents["memory"]
            there = handoff.open_handoff(memory, phase)
            if not new and there is not None and there != seen and handoff.is_held(memory, there):
                return Change({}, result=there)  # another process prepared it meanwhile
            return handoff.opened(memory, phase, compression_id=compression_id, now=at)

        author = Author("prepare", by=by or "queen", reason=f"phase {phase}")
        record = cast(JsonObject, change(place, plan, author, settings=settings).result)
        snapshot = read(place)
    newer = len(handoff.uncovered(snapshot.documents["memory"], record))
    return Prepared(written(snapshot, record), "", record, newer)


def outgrown(phase: int, home: Path) -> bool:
    """Return whether items came after the open hand-off of `phase`: who compresses means those too."""
    memory = read(home).documents["memory"]
    record = handoff.open_handoff(memory, phase)
    return record is not None and bool(handoff.uncovered(memory, record))


def _why_not(snapshot: Snapshot, phase: int, *, manual: bool) -> str:
    if not manual and signals.phase_complete(snapshot.documents["pheromones"], phase) is None:
        return f"No PHASE_COMPLETE signal for phase {phase}: it is not at its boundary yet."
    if not handoff.items_until(snapshot.documents["memory"], phase):
        return f"Working Memory is empty for phase {phase}, skipping compression."
    return ""


def trigger_phase_boundary_compression(
    phase: int,
    compressed_json: str | Mapping[str, Any],
    *,
    home: Home = None,
    architect: JsonObject | None = None,
    compression_id: str | None = None,
) -> Ingested:
    """Store the session that an architect made of the open hand-off, and return what that did.

    In one transaction: the session is stored, exactly the prepared items move to the archive (what
    arrived meanwhile stays), patterns are promoted, sessions over the limit are evicted, and a receipt is
    written. The same answer again changes nothing. `architect` goes into the receipt; `compression_id`
    names the hand-off where several may be open (default: the one the answer names, else the only one).

    Raises:
        InvalidInput: the answer is rejected; nothing changed, and the text says what to correct.
        Conflict: something else has its id, the named hand-off is not open any more, or several are open.
    """
    return ingested(phase, compressed_json, home=home, architect=architect, compression_id=compression_id)


def ingested(
    phase: int,
    compressed_json: str | Mapping[str, Any],
    *,
    home: Home,
    architect: JsonObject | None,
    compression_id: str | None,
    by: str = "",
) -> Ingested:
    """Do what `trigger_phase_boundary_compression` does, with `by` as the author of the change."""
    from aether.backends.request import instruction

    phase = check_phase(phase)
    place, at = find(home), now()

    def plan(documents: Mapping[str, Any]) -> Change:
        return ingest.ingest(
            documents, compressed_json, phase=phase, now=at, new_id=new_id,
            count=counter_of(documents["memory"]), architect=architect or {}, compression_id=compression_id,
            instruct=instruction,
            rested=lambda name, digest: evicted_session(load(place), name, digest),
        )  # fmt: skip

    done = change(place, plan, Author("compress", by=by or "architect", reason=f"phase {phase}"))
    fold_after(place)
    return cast(Ingested, done.result)


def create_short_term_session(
    phase: int, compressed_json: str | Mapping[str, Any], *, home: Home = None
) -> str:
    """Store a session without touching working memory, promote what repeats, and return its id.

    Raises:
        InvalidInput: the JSON is not a session.
        Conflict: another session has the same id.
    """
    phase = check_phase(phase)
    at = now()

    def plan(documents: Mapping[str, Any]) -> Change:
        count = counter_of(documents["memory"])
        return ingest.create(documents, compressed_json, phase=phase, now=at, new_id=new_id, count=count)

    done = change(home, plan, Author("create session", by="architect", reason=f"phase {phase}"))
    return str(done.result)


def evict_short_term_session(session_id: str | None = None, *, home: Home = None) -> Session | None:
    """Move one session (default: the oldest) to the archive, its patterns extracted first, and return it.

    None where there is no session.

    Raises:
        NotFound: there is no session with this id.
    """
    at = now()

    def plan(documents: Mapping[str, Any]) -> Change:
        oldest = sessions.oldest(documents["memory"])
        chosen = session_id or (oldest["session_id"] if oldest else None)
        return ingest.evict(documents, chosen, now=at, new_id=new_id) if chosen else Change({})

    evicted: Session | None = change(home, plan, Author("evict session")).result
    return evicted

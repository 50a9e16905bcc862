"""Hook notes: what one entry of the spool gives rise to, given what is known of its session.

It stands by itself because the rules of capture take longer to import than a session may wait when it starts.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from aether.memory.capture import State, begin, end_agent, end_turn, finish, observe
from aether.memory.notes import Draft
from aether.memory.phase_markers import Marker, markers
from aether.messages.blocks import word
from aether.messages.claude_hooks import identity, is_named, records
from aether.messages.record import Record
from aether.operations import drafts as notes
from aether.operations.hook_sessions import Session
from aether.shapes import JsonObject
from aether.text.cleaning import without_echoes

# What comes twice comes soon: from two installations at once, or as a call and then as part of its batch.
SEEN = 1_024
# What reading an entry, or a state, of another shape than ours ends in.
SENSELESS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def due(session: Session, entry: JsonObject, *, phase: int, told: Collection[str] = ()) -> list[Draft]:
    """Advance `session` by one entry and return the notes that are due, as notes of `phase`.

    Lines that the session was `told` of its memory are not noted again where somebody repeats them.

    Raises:
        One of SENSELESS: the entry makes no sense; the session is as before, but for a turn left unfinished.
    """
    try:
        return _due(session, entry, phase, told)
    except SENSELESS:
        # Is it the entry, or a state that another version wrote? All that a state holds is of one turn.
        anew: Session = {**session, "state": {}}
    found = _due(anew, entry, phase, told)
    session.update(anew)
    return found


def phase_lines(entry: JsonObject) -> list[Marker]:
    """Return the lines of an entry that change the phase: those of the main conversation, when its turn ends."""
    return markers(word(entry.get("message"))) if entry.get("event") == "Stop" else []


def _due(session: Session, entry: JsonObject, phase: int, told: Collection[str]) -> list[Draft]:
    state = cast("State", session["state"]) if session["state"] else begin()
    state["fixed_phase"] = phase
    state["file"] = word(entry.get("transcript")) or state["file"]
    seen = session["seen"]
    fresh = [record for record in records(entry) if not _is_repeated(record, seen)]
    found = [draft for record in fresh for draft in observe(state, _new(record, told))]
    match entry.get("event"):
        case "Stop":
            found += end_turn(state)
        case "SubagentStop":
            found += end_agent(state, word(entry.get("agent")))
        case "SessionEnd":
            found += finish(state)
    session["state"] = cast("JsonObject", state)
    session["seen"] = [*seen, *(identity(record) for record in fresh if record.kind != "boundary")][-SEEN:]
    return [_by_hooks(draft) for draft in found]


def _new(record: Record, told: Collection[str]) -> Record:
    """Return `record` without the lines of memory that somebody repeats in it."""
    said = record.kind in {"user", "assistant"} and told
    return record._replace(text=without_echoes(record.text, told)) if said else record


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

"""Hook sessions: what is known of each session of Claude Code between two events, one small file each.

A session that starts is kept waiting by all that is imported here, so that is little.

The injected log: which lines and entries of memory each session of Claude Code was given, so that none is given twice.

A file per session in `<home>/hooks/injected/`: bookkeeping, no state; if it is lost, something is injected twice.

Hook notes: what one entry of the spool gives rise to, given what is known of its session.

It stands by itself because the rules of capture take longer to import than a session may wait when it starts.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TypedDict, cast

from aether.api import dedupe as notes
from aether.errors import AetherError
from aether.memory.capture.extract import State, end_agent, end_turn, finish, new_state, observe
from aether.memory.capture.notes import Draft
from aether.memory.phases import PhaseMarker
from aether.memory.phases import phase_markers as phases_phase_markers
from aether.messages.model import as_text
from aether.messages.records import Record
from aether.messages.sources.claude_code import has_source_id, hook_records, record_identity
from aether.store.files import make_directory, storage_errors, write_whole
from aether.store.spool import is_real, require_real
from aether.text.cleaning import without_echoes
from aether.text.regex import lazy
from aether.types import JsonObject

# Claude Code removes transcripts after 30 days: what is older is not resumed.
SESSION_DAYS = 30
SESSIONS_DIRECTORY = "sessions"
# What `first_source` says where hooks were installed in the middle of a session.
UNKNOWN_SOURCE = "unknown"
NO_REVISION = -1
_PLAIN_NAME = lazy(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_DAY_SECONDS = 86_400


class Session(TypedDict):
    """What must be known of a session to take in what comes next."""

    state: JsonObject
    """That of `aether.memory.capture.extract`; empty where nothing was captured."""
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


def find_session(home: Path, session: str) -> JsonObject | None:
    """Return what is known of a session of Claude Code (a `Session`), None where nothing is."""
    try:
        return cast("JsonObject | None", _read(session_file(home, SESSIONS_DIRECTORY, session)))
    except OSError:
        return None


def open_session(home: Path, session: str) -> Session:
    """Return what is known of a session; where there is no file, or it makes no sense, the session begins anew.

    Raises:
        OSError: the file is there and cannot be read, perhaps for now; or it would be one outside of the home.
    """
    if (home / "hooks" / SESSIONS_DIRECTORY).exists():
        require_real(str(home), SESSIONS_DIRECTORY)
    return _read(session_file(home, SESSIONS_DIRECTORY, session)) or Session(
        state={}, done=[], seen=[], first_source="", at="", revision=NO_REVISION, archive_read=-1
    )


def write_session(home: Path, session: str, known: Session) -> None:
    """Keep what is known of a session; with a new one, those that nobody resumes are forgotten.

    Raises:
        OSError: it could not be written; what was known before stands.
    """
    path = session_file(home, SESSIONS_DIRECTORY, session)
    if not path.exists():
        make_directory(path.parent)
        require_real(str(home), SESSIONS_DIRECTORY)
        _remove_old(path.parent)
    write_whole(path, json.dumps(known, separators=(",", ":")).encode("ascii"))


def is_idle(known: Session) -> bool:
    """Tell whether nothing waits in the session for more: then its end gives no note."""
    try:
        turns = known["state"].get("turns", {})
        return not turns or (turns.keys() == {""} and _is_over(turns[""]))
    except (AttributeError, KeyError, TypeError):  # a state that another version wrote
        return False


def _is_over(turn: JsonObject) -> bool:
    answer = turn["answer"]
    return not any(turn["work"].values()) and (answer is None or bool(answer.get("noted")))


def _read(path: Path) -> Session | None:
    if path.is_symlink():
        return None  # it is replaced when the session is written
    try:
        found = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError, RecursionError):
        return None
    whole = isinstance(found, dict) and found.keys() >= Session.__required_keys__
    return cast("Session", found) if whole else None


def session_file(home: Path, directory: str, session: str) -> Path:
    """Return the path of the file of `session` in a directory of `<home>/hooks/`, whatever the session is called."""
    plain = _PLAIN_NAME.fullmatch(session)
    name = session if plain else sha256(session.encode("utf-8", "replace")).hexdigest()
    return home / "hooks" / directory / f"{name}.json"


def _remove_old(directory: Path) -> None:
    oldest = time.time() - SESSION_DAYS * _DAY_SECONDS
    for path in directory.glob("*.json"):
        with suppress(OSError):
            if path.stat().st_mtime < oldest:
                path.unlink()


# Far more than are open at a time.
INJECTED_KEPT = 64
INJECTED_DIRECTORY = "injected"
# The directory of earlier releases: sessions that were open during the update are read there once.
OLD_INJECTED_DIRECTORY = "told"


def start_injected(home: Path, session: str, ids: Sequence[str] = ()) -> None:
    """Record that `session` starts with an empty context and the lines or entries `ids`."""
    with suppress(AetherError):
        record_injected(home, session, ids)


def read_injected(home: Path, session: str) -> list[str]:
    """Return the lines and the ids of entries that `session` was given; none if nobody knows."""
    found = _read_list(home, INJECTED_DIRECTORY, session)
    found = _read_list(home, OLD_INJECTED_DIRECTORY, session) if found is None else found
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def record_injected(home: Path, session: str, ids: Sequence[str]) -> None:
    """Record that `session` was given the lines or entries `ids`, and nothing else.

    Raises:
        StorageFailed: the disk refused.
    """
    path = session_file(home, INJECTED_DIRECTORY, session)
    with storage_errors(path):
        make_directory(path.parent)
        require_real(str(home), INJECTED_DIRECTORY)
        write_whole(path, json.dumps(list(ids)).encode("ascii"))
        old = sorted(path.parent.glob("*.json"), key=lambda file: file.stat().st_mtime)[:-INJECTED_KEPT]
        for file in old:
            file.unlink(missing_ok=True)


def _read_list(home: Path, directory: str, session: str) -> object:
    path = session_file(home, directory, session)
    try:
        linked = path.is_symlink() or not is_real(str(home), directory)
        return None if linked else json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


# What comes twice comes soon: from two installations at once, or as a call and then as part of its batch.
SEEN_KEPT = 1_024
# What reading an entry, or a state, of another shape than ours ends in.
MALFORMED_ERRORS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def ready_notes(
    session: Session, entry: JsonObject, *, phase: int, told: Collection[str] = ()
) -> list[Draft]:
    """Advance `session` by one entry and return the notes that are due, as notes of `phase`.

    Lines that the session was `told` of its memory are not noted again where somebody repeats them.

    Raises:
        One of SENSELESS: the entry makes no sense; the session is as before, but for a turn left unfinished.
    """
    try:
        return _ready_notes(session, entry, phase, told)
    except MALFORMED_ERRORS:
        # Is it the entry, or a state that another version wrote? All that a state holds is of one turn.
        anew: Session = {**session, "state": {}}
    found = _ready_notes(anew, entry, phase, told)
    session.update(anew)
    return found


def phase_markers(entry: JsonObject) -> list[PhaseMarker]:
    """Return the lines of an entry that change the phase: those of the main conversation, when its turn ends."""
    return phases_phase_markers(as_text(entry.get("message"))) if entry.get("event") == "Stop" else []


def _ready_notes(session: Session, entry: JsonObject, phase: int, told: Collection[str]) -> list[Draft]:
    state = cast("State", session["state"]) if session["state"] else new_state()
    state["fixed_phase"] = phase
    state["file"] = as_text(entry.get("transcript")) or state["file"]
    seen = session["seen"]
    fresh = [record for record in hook_records(entry) if not _is_repeated(record, seen)]
    found = [draft for record in fresh for draft in observe(state, _new(record, told))]
    match entry.get("event"):
        case "Stop":
            found += end_turn(state)
        case "SubagentStop":
            found += end_agent(state, as_text(entry.get("agent")))
        case "SessionEnd":
            found += finish(state)
    session["state"] = cast("JsonObject", state)
    session["seen"] = [*seen, *(record_identity(record) for record in fresh if record.kind != "boundary")][
        -SEEN_KEPT:
    ]
    return [_by_hooks(draft) for draft in found]


def _new(record: Record, told: Collection[str]) -> Record:
    """Return `record` without the lines of memory that somebody repeats in it."""
    said = record.kind in {"user", "assistant"} and told
    return record._replace(text=without_echoes(record.text, told)) if said else record


def _is_repeated(record: Record, seen: list[str]) -> bool:
    if record.kind == "boundary":  # all alike, and another one does nothing
        return False
    if has_source_id(record):
        return record_identity(record) in seen
    # Without an id only what comes at once is the same; a call and its answer are two records.
    return record_identity(record) in seen[-2 if record.kind in {"call", "result"} else -1 :]


def _by_hooks(draft: Draft) -> Draft:
    pointer = draft["metadata"]["pointer"]
    del pointer["line"]  # the hook does not know where the transcript has it
    pointer["via"] = notes.HOOKS
    return draft

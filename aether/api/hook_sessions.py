"""Hook sessions: the state of each session of a host between two events, and the notes that an event yields.

One small file per session and kind in `<home>/hooks/`: `sessions/` holds the state of capture, `injected/` the lines and
entries of memory that the session was given, so that none is given twice, `trees/` what git said last of each work tree.
All are bookkeeping: after a loss something is injected or observed twice. The rules of capture are imported only for
`ready_notes`, because a session that starts waits for everything that this module imports.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, cast

from aether import regular
from aether.errors import AetherError
from aether.store import origin, record_files, spool
from aether.store.files import files_ending, locked, make_directory, storage_errors, write_whole
from aether.store.spool import is_real, require_real

if TYPE_CHECKING:
    from aether.memory.capture.extract import State
    from aether.memory.capture.notes import Draft
    from aether.memory.phases import PhaseMarker
    from aether.messages.records import Record
    from aether.types import Fact, JsonObject

SESSIONS_DIRECTORY = "sessions"
INJECTED_DIRECTORY = "injected"
TREES_DIRECTORY = "trees"
# The events at which git is asked.
ASKING_EVENTS = frozenset({"SessionStart", "Stop", "PreCompact"})
# Claude Code removes transcripts after 30 days: an older session is not resumed.
SESSION_DAYS = 30
# The lock on what a session was given is held for a moment only.
INJECTED_SECONDS = 1.0
# Injected logs: far more than sessions are open at a time.
INJECTED_KEPT = 64
# Records: repetitions follow soon, from two installations at once, or as a call and then as part of its batch.
SEEN_KEPT = 1_024
# `first_source` of a session during which the hooks were installed.
UNKNOWN_SOURCE = "unknown"
# `first_source` of a session whose transcript starts with it: nothing of it can be stored before.
NEW_SOURCES = frozenset({"startup", "clear"})
# Starts that are stored without the drain: several windows open at once.
MOST_STARTS = 8
NO_REVISION = -1
# `pointer.via` of a note that hooks brought.
HOOKS = "hooks"
# Errors raised while reading an entry, or a state, of another shape than ours.
MALFORMED_ERRORS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
# Of a name of a session that is a file's, too.
PLAIN_CHARS = 64
_DAY_SECONDS = 86_400


class Session(TypedDict):
    """State of a session that the next event needs."""

    state: JsonObject
    """That of `aether.memory.capture.extract`; empty if nothing was captured."""
    done: list[str]
    """Names of the entries drained last: one that is still in the spool is not drained again."""
    seen: list[str]
    """Identities of the records observed last."""
    first_source: str
    """How the session started: startup, resume, clear, compact or fork; or `unknown`."""
    at: str
    """Time of its last event other than a start."""
    revision: int
    """The revision of the home after that."""
    archive_read: int
    """Position of the last archived item that its notes were compared with."""


# --- The state of a session


def find_session(home: Path, session: str) -> Session | None:
    """Return the state of a session; None without a file, or with one that cannot be read."""
    try:
        return _stored_session(home, session)
    except OSError:
        return None


def open_session(home: Path, session: str) -> Session:
    """Return the state of a session; a new one if there is no file, or a malformed one.

    Raises:
        OSError: the file cannot be read, perhaps for now; or it would be outside of the home.
    """
    if (home / "hooks" / SESSIONS_DIRECTORY).exists():
        require_real(str(home), SESSIONS_DIRECTORY)
    return _stored_session(home, session) or Session(
        state={}, done=[], seen=[], first_source="", at="", revision=NO_REVISION, archive_read=-1
    )


def _stored_session(home: Path, session: str) -> Session | None:
    path = session_file(home, SESSIONS_DIRECTORY, session)
    if path.is_symlink():
        return None  # it is replaced when the session is written
    try:
        value = json.loads(regular.read(path))
    except (FileNotFoundError, ValueError, RecursionError):
        return None
    is_whole = isinstance(value, dict) and value.keys() >= Session.__annotations__.keys()
    return cast("Session", value) if is_whole else None


def write_session(home: Path, session: str, value: Session) -> None:
    """Write the state of a session; a new session removes those that are too old to be resumed.

    Raises:
        OSError: it could not be written; the earlier state remains.
    """
    path = session_file(home, SESSIONS_DIRECTORY, session)
    is_new = not path.exists()
    if is_new:
        origin.observe(home)
    _write_json(home, SESSIONS_DIRECTORY, session, value)
    oldest = time.time() - SESSION_DAYS * _DAY_SECONDS
    for file in files_ending(path.parent, ".json") if is_new else ():
        with suppress(OSError):
            if file.stat().st_mtime < oldest:
                file.unlink()


def meet(
    session: Session, name: str, entry: JsonObject, waiting: Collection[str], *, archived: int = -1
) -> None:
    """Record in `session` that entry `name` of the spool, of those that are `waiting`, was drained.

    If it starts a new session, no note of that is in the archive up to the position `archived`.
    """
    session["done"] = [*sorted(set(session["done"]) & set(waiting)), name]
    is_start, source, time = entry.get("event") == "SessionStart", entry.get("source"), entry.get("at")
    if not session["first_source"]:
        session["first_source"] = source if is_start and isinstance(source, str) else UNKNOWN_SOURCE
        if session["first_source"] in NEW_SOURCES:
            session["archive_read"] = max(session["archive_read"], archived)
    if not is_start or not session["at"]:
        session["at"], session["revision"] = time if isinstance(time, str) else "", NO_REVISION


def store_starts(home: Path, started: str = "") -> bool:
    """Drain the spool if nothing but starts of sessions waits there, and return whether it is empty now.

    `started` is the session that starts at this moment. A start yields no item: a session that starts in a quiet home
    waits for neither the drain nor a commit.
    """
    try:
        waiting = spool.waiting(str(home))
        if len(waiting) > MOST_STARTS:
            return False
        with storage_errors(home), locked(home / "hooks", timeout=0):
            entries = {name: spool.get(str(home), name) or {} for name in waiting}
            if any(entry.get("event") != "SessionStart" for entry in entries.values()):
                return False
            if any(
                fact != noted_tree(home, place) for place, fact in asked_trees([*entries.values()]).items()
            ):
                return False
            for name, entry in entries.items():
                session = entry.get("session")
                session = session if isinstance(session, str) else ""
                value = open_session(home, session)
                if name not in value["done"]:
                    archived = record_files.end_of_head(home) if session and session == started else -1
                    meet(value, name, entry, waiting, archived=archived)
                    write_session(home, session, value)
            spool.remove(str(home), waiting)
    except (OSError, AetherError):
        return False  # the drain says why
    return True


def is_answering(home: Path, session: str) -> bool:
    """Return whether a turn of this session runs, as far as its events show."""
    value = find_session(home, session)
    try:
        answer = value["state"]["turns"][""]["answer"] if value else {"noted": True}
        return answer is None or not answer.get("noted")
    except (AttributeError, KeyError, TypeError):  # nothing was asked yet, or another version wrote it
        return False


def is_idle(session: Session) -> bool:
    """Return whether the session has nothing unfinished, so that its end yields no note."""
    try:
        turns = session["state"].get("turns", {})
        if not turns:
            return True
        answer, work = turns[""]["answer"], turns[""]["work"]
        is_noted = answer is None or bool(answer.get("noted"))
        # A list of tasks that is noted goes on.
        return len(turns) == 1 and is_noted and not any(work[name] for name in work if name != "plan")
    except (AttributeError, KeyError, TypeError):  # a state that another version wrote
        return False


# --- What git says of the work trees of sessions


def asked_trees(entries: Sequence[JsonObject]) -> dict[str, Fact]:
    """Return what git says now of the directories in which these events happened, by directory; nothing without git."""
    directories = {
        entry["directory"]
        for entry in entries
        if entry.get("event") in ASKING_EVENTS and isinstance(entry.get("directory"), str)
    } - {""}
    if not directories:
        return {}
    from aether import git
    from aether.redact.redact import redacted

    states = {directory: git.ask(directory) for directory in sorted(directories)}
    return {directory: redacted(git.branch_fact(state)) for directory, state in states.items() if state}


def noted_tree(home: Path, directory: str) -> object:
    """Return what was stored last of the work tree of `directory`, None if nothing was."""
    facts = _read_json(home, TREES_DIRECTORY, directory)
    return facts[0] if isinstance(facts, list) and facts else None


def note_trees(home: Path, trees: Mapping[str, Fact]) -> None:
    """Record what was stored of work trees; at worst it is stored again."""
    for directory, fact in trees.items():
        with suppress(AetherError, OSError):
            _write_json(home, TREES_DIRECTORY, directory, [fact])


# --- The lines and entries that a session was given


def start_injected(home: Path, session: str, ids: Sequence[str] = ()) -> None:
    """Record that `session` starts with an empty context and the lines or entries `ids`."""
    with suppress(AetherError), _injected_lock(home):
        record_injected(home, session, ids)


@contextmanager
def _injected_lock(home: Path) -> Iterator[None]:
    """Hold the lock of what sessions were given, which an erasure takes, too."""
    directory = home / "hooks" / INJECTED_DIRECTORY
    with storage_errors(directory):
        make_directory(directory)
        require_real(str(home), INJECTED_DIRECTORY)
    with locked(directory, timeout=INJECTED_SECONDS):
        yield


def read_injected(home: Path, session: str) -> list[str]:
    """Return the lines and the ids of entries that `session` was given; none if its log is missing."""
    value = _read_json(home, INJECTED_DIRECTORY, session)
    return [line for line in value if isinstance(line, str)] if isinstance(value, list) else []


def record_injected(home: Path, session: str, ids: Sequence[str]) -> None:
    """Record that `session` was given the lines or entries `ids`, and nothing else.

    Raises:
        StorageFailed: the disk refused.
    """
    directory = home / "hooks" / INJECTED_DIRECTORY
    with storage_errors(directory):
        _write_json(home, INJECTED_DIRECTORY, session, [*ids])
        logs = sorted(files_ending(directory, ".json"), key=lambda file: file.stat().st_mtime)
        for file in logs[:-INJECTED_KEPT]:
            file.unlink(missing_ok=True)


def add_injected(home: Path, session: str, ids: Sequence[str], *, once: str = "") -> bool:
    """Record that `session` was given the lines or entries `ids` as well, and return whether that is so.

    Of hooks that run at once none loses what another recorded. With `once` nothing is recorded if it was before: who
    gets False injects nothing.

    Raises:
        LockTimeout: another hook held the lock for too long.
        StorageFailed: the disk refused.
    """
    with _injected_lock(home):
        injected = read_injected(home, session)
        if once and once in injected:
            return False
        record_injected(home, session, [*dict.fromkeys([*injected, *ids, *filter(None, [once])])])
    return True


# --- Files of a session


def session_file(home: Path, directory: str, session: str) -> Path:
    """Return the path of the file of `session` in a directory of `<home>/hooks/`, for any name of a session."""
    letters = session.replace("-", "").replace("_", "")
    is_plain = (
        len(session) <= PLAIN_CHARS and letters.isascii() and letters.isalnum() and session[0].isalnum()
    )
    if is_plain:
        return home / "hooks" / directory / f"{session}.json"
    return home / "hooks" / directory / f"{regular.digest(session.encode('utf-8', 'replace'))}.json"


def _write_json(home: Path, directory: str, session: str, value: object) -> None:
    path = session_file(home, directory, session)
    with storage_errors(path):
        make_directory(path.parent)
        require_real(str(home), directory)
        write_whole(path, json.dumps(value, separators=(",", ":")).encode("ascii"))


def _read_json(home: Path, directory: str, session: str) -> object:
    path = session_file(home, directory, session)
    try:
        is_link = path.is_symlink() or not is_real(str(home), directory)
        return None if is_link else json.loads(regular.read(path))
    except (OSError, AetherError, ValueError, RecursionError):
        return None


# --- Notes


def ready_notes(
    session: Session, entry: JsonObject, *, phase: int, injected: Collection[str] = ()
) -> list[Draft]:
    """Advance `session` by one entry of the spool and return the notes that are ready, as notes of `phase`.

    Lines of memory that were `injected` into the session make no note if somebody repeats them.

    Raises:
        One of MALFORMED_ERRORS: the entry is malformed; the session is as before, but for a turn left unfinished.
    """
    try:
        return _ready_notes(session, entry, phase, injected)
    except MALFORMED_ERRORS:
        # Either the entry is malformed, or a state that another version wrote: a state holds one turn only.
        fresh: Session = {**session, "state": {}}
    notes = _ready_notes(fresh, entry, phase, injected)
    session.update(fresh)
    return notes


def phase_markers(entry: JsonObject) -> list[PhaseMarker]:
    """Return the lines of an entry that change the phase: those of the main conversation, when its turn ends."""
    from aether.memory import phases
    from aether.messages.model import as_text

    return phases.phase_markers(as_text(entry.get("message"))) if entry.get("event") == "Stop" else []


def _ready_notes(session: Session, entry: JsonObject, phase: int, injected: Collection[str]) -> list[Draft]:
    from aether.memory.capture import extract
    from aether.messages.model import as_text
    from aether.messages.sources.claude_code import hook_records, record_identity
    from aether.text.cleaning import without_echoes

    state = cast("State", session["state"]) if session["state"] else extract.new_state()
    state["fixed_phase"] = phase
    state["file"] = as_text(entry.get("transcript")) or state["file"]
    if entry.get("event") == "UserPromptSubmit" or not state.get("directory"):
        state["directory"] = as_text(entry.get("directory")) or state.get("directory", "")
    records = [record for record in hook_records(entry) if not _is_repeated(record, session["seen"])]
    notes: list[Draft] = []
    for record in records:
        may_repeat = injected and record.kind in {"user", "assistant"}
        text = without_echoes(record.text, injected) if may_repeat else record.text
        notes += extract.observe(state, record._replace(text=text, directory=state["directory"]))
    match entry.get("event"):
        case "Stop":
            notes += extract.end_turn(state)
        case "SubagentStop":
            notes += extract.end_agent(state, as_text(entry.get("agent")))
        case "SessionEnd":
            notes += extract.finish(state)
    # A host's summary as a whole becomes that of a session.
    notes = [draft for draft in notes if draft["metadata"].get("role") != "summary"]
    session["state"] = cast("JsonObject", state)
    identities = [record_identity(record) for record in records if record.kind != "boundary"]
    session["seen"] = [*session["seen"], *identities][-SEEN_KEPT:]
    for draft in notes:
        pointer = draft["metadata"]["pointer"]
        del pointer["line"]  # the hook does not know the line of the transcript
        pointer["via"] = HOOKS
        if host := as_text(entry.get("host")):
            pointer["host"] = host
    return notes


def _is_repeated(record: Record, seen: Sequence[str]) -> bool:
    from aether.messages.sources.claude_code import has_source_id, record_identity

    if record.kind == "boundary":  # all alike, and a second one has no effect
        return False
    if has_source_id(record):
        return record_identity(record) in seen
    # Without an id only immediate repetitions count; a call and its answer are two records.
    return record_identity(record) in seen[-2 if record.kind in {"call", "result"} else -1 :]

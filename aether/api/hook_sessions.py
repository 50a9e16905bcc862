"""Hook sessions: the state of each session of Claude Code between two events, and the notes that an event yields.

One small file per session and kind in `<home>/hooks/`: `sessions/` holds the state of capture, `injected/` the lines and
entries of memory that the session was given, so that none is given twice. Both are bookkeeping: after a loss something
is injected or observed twice. The rules of capture are imported only for `ready_notes`, because a session that starts
waits for everything that this module imports.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast

from aether import regular
from aether.errors import AetherError
from aether.store import record_files, spool
from aether.store.files import files_ending, locked, make_directory, storage_errors, write_whole
from aether.store.snapshot import DocumentIds, Snapshot, document_ids
from aether.store.spool import is_real, require_real
from aether.types import Fact, JsonObject

if TYPE_CHECKING:
    from aether.memory.capture.extract import State
    from aether.memory.capture.notes import Draft
    from aether.memory.phases import PhaseMarker
    from aether.messages.records import Record

SESSIONS_DIRECTORY = "sessions"
INJECTED_DIRECTORY = "injected"
# Where the documents that a prompt has compared with their checksums are recorded.
COMPARED = ("compared", "documents")
# The directory of what git said last of each work tree, and the events at which it is asked.
TREES_DIRECTORY = "trees"
ASKING_EVENTS = frozenset({"SessionStart", "Stop", "PreCompact"})
# A file that is changed again within one tick of its clock keeps its id.
SETTLED_NS = 10**9
# The directory of earlier releases: sessions that were open during the update are read there once.
OLD_INJECTED_DIRECTORY = "told"
# Claude Code removes transcripts after 30 days: an older session is not resumed.
SESSION_DAYS = 30
# The log of what a session was given is held for a moment only.
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
    """Identities of the records observed lately."""
    first_source: str
    """How the session started: startup, resume, clear, compact or fork; or `unknown`."""
    at: str
    """Time of its last event other than a start."""
    revision: int
    """The revision of the home after that."""
    archive_read: int
    """Position of the last archived item that its notes were compared with."""


def find_session(home: Path, session: str) -> JsonObject | None:
    """Return the `Session` of a session of Claude Code; None without a file."""
    try:
        return cast("JsonObject | None", _read(session_file(home, SESSIONS_DIRECTORY, session)))
    except OSError:
        return None


def open_session(home: Path, session: str) -> Session:
    """Return the state of a session; a new one if there is no file, or a malformed one.

    Raises:
        OSError: the file cannot be read, perhaps for now; or it would be outside of the home.
    """
    if (home / "hooks" / SESSIONS_DIRECTORY).exists():
        require_real(str(home), SESSIONS_DIRECTORY)
    return _read(session_file(home, SESSIONS_DIRECTORY, session)) or Session(
        state={}, done=[], seen=[], first_source="", at="", revision=NO_REVISION, archive_read=-1
    )


def write_session(home: Path, session: str, known: Session) -> None:
    """Write the state of a session; a new session removes those that are too old to be resumed.

    Raises:
        OSError: it could not be written; the earlier state remains.
    """
    path = session_file(home, SESSIONS_DIRECTORY, session)
    if not path.exists():
        make_directory(path.parent)
        require_real(str(home), SESSIONS_DIRECTORY)
        oldest = time.time() - SESSION_DAYS * _DAY_SECONDS
        for old in files_ending(path.parent, ".json"):
            with suppress(OSError):
                if old.stat().st_mtime < oldest:
                    old.unlink()
    write_whole(path, json.dumps(known, separators=(",", ":")).encode("ascii"))


def meet(
    session: Session, name: str, entry: JsonObject, waiting: Collection[str], *, archived: int = -1
) -> None:
    """Record in `session` that entry `name` of the spool, of those that are `waiting`, was drained.

    If it starts a new session, no note of that is in the archive up to the position `archived`.
    """
    session["done"] = [*sorted(set(session["done"]) & set(waiting)), name]
    event, source = entry.get("event"), entry.get("source")
    starts = event == "SessionStart"
    if not session["first_source"]:
        session["first_source"] = source if starts and isinstance(source, str) else UNKNOWN_SOURCE
        if session["first_source"] in NEW_SOURCES:
            session["archive_read"] = max(session["archive_read"], archived)
    if not starts or not session["at"]:
        at = entry.get("at")
        session["at"], session["revision"] = at if isinstance(at, str) else "", NO_REVISION


def store_starts(home: Path, started: str = "") -> bool:
    """Drain the spool if nothing but starts of sessions waits there, and return whether it is empty now.

    `started` is the session that starts at this moment. A start yields no item: a session that starts in a quiet home waits for neither the drain nor a commit.
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
                key = entry.get("session")
                session = open_session(home, key if isinstance(key, str) else "")
                if name not in session["done"]:
                    archived = record_files.end_of_head(home) if key and key == started else -1
                    meet(session, name, entry, waiting, archived=archived)
                    write_session(home, key if isinstance(key, str) else "", session)
            spool.remove(str(home), waiting)
    except (OSError, AetherError):
        return False  # the drain says why
    return True


def asked_trees(entries: Sequence[JsonObject]) -> dict[str, Fact]:
    """Return what git says now of the directories in which these events happened, by directory; nothing without git."""
    places = {
        entry["directory"]
        for entry in entries
        if entry.get("event") in ASKING_EVENTS and entry.get("directory")
    }
    if not places:
        return {}
    from aether import git
    from aether.redact.redact import redacted

    states = {place: git.ask(place) for place in sorted(places) if isinstance(place, str)}
    return {place: redacted(git.branch_fact(state)) for place, state in states.items() if state}


def noted_tree(home: Path, directory: str) -> object:
    """Return what was stored last of the work tree of `directory`, None if nothing was."""
    facts = _read_list(home, TREES_DIRECTORY, directory)
    return facts[0] if isinstance(facts, list) and facts else None


def note_trees(home: Path, trees: Mapping[str, Fact]) -> None:
    """Record what was stored of work trees; at worst it is stored again."""
    for directory, fact in trees.items():
        with suppress(AetherError):
            _write_list(home, TREES_DIRECTORY, directory, [fact])


def is_answering(home: Path, session: str) -> bool:
    """Return whether a turn of this session of Claude Code runs, as far as its events show."""
    try:
        known = find_session(home, session)
        answer = known["state"]["turns"][""]["answer"] if known else {"noted": True}
        return answer is None or not answer.get("noted")
    except (AttributeError, KeyError, TypeError):  # nothing was asked yet, or another version wrote it
        return False


def is_idle(known: Session) -> bool:
    """Return whether the session has nothing unfinished, so that its end yields no note."""
    try:
        turns = known["state"].get("turns", {})
        if not turns:
            return True
        answer = turns[""]["answer"]
        return (
            len(turns) == 1
            # A list of tasks that is noted goes on.
            and not any(known for name, known in turns[""]["work"].items() if name != "plan")
            and (answer is None or bool(answer.get("noted")))
        )
    except (AttributeError, KeyError, TypeError):  # a state that another version wrote
        return False


def _read(path: Path) -> Session | None:
    if path.is_symlink():
        return None  # it is replaced when the session is written
    try:
        found = json.loads(regular.read(path))
    except (FileNotFoundError, ValueError, RecursionError):
        return None
    whole = isinstance(found, dict) and found.keys() >= Session.__annotations__.keys()
    return cast("Session", found) if whole else None


def session_file(home: Path, directory: str, session: str) -> Path:
    """Return the path of the file of `session` in a directory of `<home>/hooks/`, for any name of a session."""
    # An id of Claude Code is plain without its dashes, and compiles no pattern.
    plain = (
        len(session) <= PLAIN_CHARS
        and session.isascii()
        and session.replace("-", "").replace("_", "").isalnum()
    )
    plain = plain and session[0].isalnum()
    name = session if plain else sha256(session.encode("utf-8", "replace")).hexdigest()
    return home / "hooks" / directory / f"{name}.json"


def start_injected(home: Path, session: str, ids: Sequence[str] = ()) -> None:
    """Record that `session` starts with an empty context and the lines or entries `ids`."""
    with suppress(AetherError):
        record_injected(home, session, ids)


def read_injected(home: Path, session: str) -> list[str]:
    """Return the lines and the ids of entries that `session` was given; none if its log is missing."""
    found = _read_list(home, INJECTED_DIRECTORY, session)
    found = _read_list(home, OLD_INJECTED_DIRECTORY, session) if found is None else found
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def record_injected(home: Path, session: str, ids: Sequence[str]) -> None:
    """Record that `session` was given the lines or entries `ids`, and nothing else.

    Raises:
        StorageFailed: the disk refused.
    """
    directory = _write_list(home, INJECTED_DIRECTORY, session, ids)
    with storage_errors(directory):
        old = sorted(files_ending(directory, ".json"), key=lambda file: file.stat().st_mtime)[:-INJECTED_KEPT]
        for file in old:
            file.unlink(missing_ok=True)


def add_injected(home: Path, session: str, ids: Sequence[str], *, once: str = "") -> bool:
    """Record that `session` was given the lines or entries `ids` as well, and return whether that is so.

    Of hooks that run at once none loses what another recorded. With `once` nothing is recorded if it was before: who
    gets False injects nothing.

    Raises:
        LockTimeout: another hook held the lock for too long.
        StorageFailed: the disk refused.
    """
    directory = home / "hooks" / INJECTED_DIRECTORY
    with storage_errors(directory):
        make_directory(directory)
        require_real(str(home), INJECTED_DIRECTORY)
    with locked(directory, timeout=INJECTED_SECONDS):
        known = read_injected(home, session)
        if once and once in known:
            return False
        new = [one for one in (*ids, *([once] if once else [])) if one not in known]
        record_injected(home, session, [*known, *new])
    return True


def read_compared(home: Path) -> DocumentIds:
    """Return the `document_ids` of the documents that a prompt has compared with their checksums last."""
    try:
        return tuple([one and tuple(one) for one in cast("list[Any]", _read_list(home, *COMPARED))])
    except TypeError:
        return ()


def note_compared(snapshot: Snapshot, before: DocumentIds) -> None:
    """Let the next prompt, which reads the same files and changes none, not compare them again, unless `before` says so."""
    ids = document_ids(snapshot.home)
    if ids == before or snapshot.irregular or snapshot.files[1:] != tuple(one and one[:3] for one in ids):
        return
    # What was edited since it was read has changed just now.
    if time.time_ns() - max((max(one[1], one[3]) for one in ids if one), default=0) > SETTLED_NS:
        with suppress(AetherError):  # at worst they are compared again
            _write_list(snapshot.home, *COMPARED, ids)


def _write_list(home: Path, directory: str, session: str, found: Sequence[object]) -> Path:
    """Write the file that `_read_list` reads, and return its directory."""
    path = session_file(home, directory, session)
    with storage_errors(path):
        make_directory(path.parent)
        require_real(str(home), directory)
        write_whole(path, json.dumps([*found]).encode("ascii"))
    return path.parent


def _read_list(home: Path, directory: str, session: str) -> object:
    path = session_file(home, directory, session)
    try:
        linked = path.is_symlink() or not is_real(str(home), directory)
        return None if linked else json.loads(regular.read(path))
    except (OSError, ValueError):
        return None


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
    found = _ready_notes(fresh, entry, phase, injected)
    session.update(fresh)
    return found


def phase_markers(entry: JsonObject) -> list[PhaseMarker]:
    """Return the lines of an entry that change the phase: those of the main conversation, when its turn ends."""
    from aether.memory import phases
    from aether.messages.model import as_text

    return phases.phase_markers(as_text(entry.get("message"))) if entry.get("event") == "Stop" else []


def _ready_notes(session: Session, entry: JsonObject, phase: int, injected: Collection[str]) -> list[Draft]:
    from aether.memory.capture import extract
    from aether.messages.model import as_text
    from aether.messages.sources.claude_code import has_source_id, hook_records, record_identity
    from aether.text.cleaning import without_echoes

    def is_repeated(record: Record) -> bool:
        if record.kind == "boundary":  # all alike, and a second one has no effect
            return False
        if has_source_id(record):
            return record_identity(record) in seen
        # Without an id only immediate repetitions count; a call and its answer are two records.
        return record_identity(record) in seen[-2 if record.kind in {"call", "result"} else -1 :]

    state = cast("State", session["state"]) if session["state"] else extract.new_state()
    state["fixed_phase"] = phase
    state["file"] = as_text(entry.get("transcript")) or state["file"]
    if entry.get("event") == "UserPromptSubmit" or not state.get("directory"):
        state["directory"] = as_text(entry.get("directory")) or state.get("directory", "")
    seen = session["seen"]
    fresh = [record for record in hook_records(entry) if not is_repeated(record)]
    found: list[Draft] = []
    for record in fresh:
        repeats = injected and record.kind in {"user", "assistant"}
        text = without_echoes(record.text, injected) if repeats else record.text
        found += extract.observe(state, record._replace(text=text, directory=state["directory"]))
    match entry.get("event"):
        case "Stop":
            found += extract.end_turn(state)
        case "SubagentStop":
            found += extract.end_agent(state, as_text(entry.get("agent")))
        case "SessionEnd":
            found += extract.finish(state)
    # A host's summary as a whole becomes that of a session.
    found = [draft for draft in found if draft["metadata"].get("role") != "summary"]
    session["state"] = cast("JsonObject", state)
    session["seen"] = [*seen, *(record_identity(one) for one in fresh if one.kind != "boundary")][-SEEN_KEPT:]
    for draft in found:
        pointer = draft["metadata"]["pointer"]
        del pointer["line"]  # the hook does not know the line of the transcript
        pointer["via"] = HOOKS
    return found

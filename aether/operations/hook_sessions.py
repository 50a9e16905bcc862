"""Hook sessions: what is known of each session of Claude Code between two events, one small file each.

A session that starts is kept waiting by all that is imported here, so that is little.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TypedDict, cast

from aether.shapes import JsonObject
from aether.store.files import make_directory, write_whole
from aether.store.spool import require_real
from aether.text.patterns import lazy

# Claude Code removes transcripts after 30 days: what is older is not resumed.
SESSION_DAYS = 30
DIRECTORY = "sessions"
# What `first_source` says where hooks were installed in the middle of a session.
UNKNOWN = "unknown"
NOT_YET = -1
_PLAIN_NAME = lazy(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_DAY_SECONDS = 86_400


class Session(TypedDict):
    """What must be known of a session to take in what comes next."""

    state: JsonObject
    """That of `aether.memory.capture`; empty where nothing was captured."""
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


def session_of(home: Path, session: str) -> JsonObject | None:
    """Return what is known of a session of Claude Code (a `Session`), None where nothing is."""
    try:
        return cast("JsonObject | None", _read(session_file(home, DIRECTORY, session)))
    except OSError:
        return None


def opened(home: Path, session: str) -> Session:
    """Return what is known of a session; where there is no file, or it makes no sense, the session begins anew.

    Raises:
        OSError: the file is there and cannot be read, perhaps for now; or it would be one outside of the home.
    """
    if (home / "hooks" / DIRECTORY).exists():
        require_real(str(home), DIRECTORY)
    return _read(session_file(home, DIRECTORY, session)) or Session(
        state={}, done=[], seen=[], first_source="", at="", revision=NOT_YET, archive_read=-1
    )


def write(home: Path, session: str, known: Session) -> None:
    """Keep what is known of a session; with a new one, those that nobody resumes are forgotten.

    Raises:
        OSError: it could not be written; what was known before stands.
    """
    path = session_file(home, DIRECTORY, session)
    if not path.exists():
        make_directory(path.parent)
        require_real(str(home), DIRECTORY)
        _forget_old(path.parent)
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


def _forget_old(directory: Path) -> None:
    oldest = time.time() - SESSION_DAYS * _DAY_SECONDS
    for path in directory.glob("*.json"):
        with suppress(OSError):
            if path.stat().st_mtime < oldest:
                path.unlink()

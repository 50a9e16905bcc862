"""The injected log: which lines and entries of memory each session of Claude Code was given, so that none is given twice.

A file per session in `<home>/hooks/injected/`: bookkeeping, no state; if it is lost, something is injected twice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from aether.errors import AetherError
from aether.operations.hook_sessions import session_file
from aether.store.files import make_directory, storage, write_whole
from aether.store.spool import is_real, require_real

# Far more than are open at a time.
SESSIONS_KEPT = 64
DIRECTORY = "injected"
# The directory of earlier releases: sessions that were open during the update are read there once.
OLD_DIRECTORY = "told"


def start(home: Path, session: str, ids: Sequence[str] = ()) -> None:
    """Record that `session` starts with an empty context and the lines or entries `ids`."""
    with suppress(AetherError):
        record(home, session, ids)


def injected(home: Path, session: str) -> list[str]:
    """Return the lines and the ids of entries that `session` was given; none if nobody knows."""
    found = _read(home, DIRECTORY, session)
    found = _read(home, OLD_DIRECTORY, session) if found is None else found
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def record(home: Path, session: str, ids: Sequence[str]) -> None:
    """Record that `session` was given the lines or entries `ids`, and nothing else.

    Raises:
        StorageFailed: the disk refused.
    """
    path = session_file(home, DIRECTORY, session)
    with storage(path):
        make_directory(path.parent)
        require_real(str(home), DIRECTORY)
        write_whole(path, json.dumps(list(ids)).encode("ascii"))
        old = sorted(path.parent.glob("*.json"), key=lambda file: file.stat().st_mtime)[:-SESSIONS_KEPT]
        for file in old:
            file.unlink(missing_ok=True)


def _read(home: Path, directory: str, session: str) -> object:
    path = session_file(home, directory, session)
    try:
        linked = path.is_symlink() or not is_real(str(home), directory)
        return None if linked else json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None

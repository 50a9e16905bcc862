"""What each session of Claude Code was told of its memory, so that a prompt is not told it again.

A file per session in `<home>/hooks/told/`: bookkeeping, no state; where it is lost, something is told twice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from aether.errors import AetherError
from aether.store.files import make_directory, storage, write_whole
from aether.store.spool import is_real, require_real
from aether.text.patterns import lazy

# Far more than are open at a time.
SESSIONS_KEPT = 64
DIRECTORY = "told"
_PLAIN_NAME = lazy(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def begin(home: Path, session: str, ids: Sequence[str] = ()) -> None:
    """Note that the context of `session` begins anew, having been told the lines or entries `ids`."""
    with suppress(AetherError):
        note(home, session, ids)


def told(home: Path, session: str) -> list[str]:
    """Return the lines and the ids of entries that `session` was told; none where nobody knows."""
    path = _file(home, session)
    try:
        found = (
            [] if path.is_symlink() or not is_real(str(home), DIRECTORY) else json.loads(path.read_bytes())
        )
    except (OSError, ValueError):
        return []
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def note(home: Path, session: str, ids: Sequence[str]) -> None:
    """Write down that `session` was told the lines or entries `ids`, and nothing else.

    Raises:
        StorageFailed: the disk refused.
    """
    path = _file(home, session)
    with storage(path):
        make_directory(path.parent)
        require_real(str(home), DIRECTORY)
        write_whole(path, json.dumps(list(ids)).encode("ascii"))
        old = sorted(path.parent.glob("*.json"), key=lambda file: file.stat().st_mtime)[:-SESSIONS_KEPT]
        for file in old:
            file.unlink(missing_ok=True)


def _file(home: Path, session: str) -> Path:
    name = (
        session if _PLAIN_NAME.fullmatch(session) else sha256(session.encode("utf-8", "replace")).hexdigest()
    )
    return home / "hooks" / DIRECTORY / f"{name}.json"

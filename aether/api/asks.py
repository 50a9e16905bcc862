"""Asks: when hooks ask the running agent to close its conversation, at most once for the same work.

Work has settled after a commit, when all steps of a plan are completed, after ten edits, and after a compaction. The end
of a turn finds that out from the facts in working memory, the next prompt asks. What a conversation was asked for is in
`<home>/hooks/asks/`; closing removes the file, and the count starts again. It is bookkeeping: after a loss an ask is repeated.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aether import regular
from aether.api.hook_sessions import session_file
from aether.errors import AetherError
from aether.store.files import files_ending, make_directory, write_whole
from aether.store.spool import is_real, require_real

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aether.types import Item, JsonObject

DIRECTORY = "asks"
# Files: far more than conversations are open at a time.
MOST_FILES = 64
EDITS = 10
COMMITTED, PLANNED, EDITED, COMPACTED = "a commit", "a finished plan", f"{EDITS} edits", "a compaction"


def note_settled(home: Path, session: str, memory: Mapping[str, Any], *, compacted: bool = False) -> None:
    """Record what has settled in the conversation `session`, by its items in `memory`, for the next prompt to ask about.

    `compacted` means that its context is about to be replaced by a summary.
    """
    items = [
        item for item in memory["working_memory"]["items"] if item["metadata"].get("conversation") == session
    ]
    if not session or not items:
        return
    state = _read(home, session)
    edits = _edits(items)
    before = state["edits"] if state["edits"] <= edits else 0  # a compaction archived the others
    points = {name: what for name, what in _points(items).items() if name not in state["asked"]}
    if edits - before >= EDITS:
        points[f"edits {edits}"] = EDITED
    if compacted:
        points[f"compaction {len(state['asked'])}"] = COMPACTED
    if points:
        points_asked = [*state["asked"], *points]
        _write(home, session, {"due": [*points.values()][-1], "asked": points_asked, "edits": edits})


def take(home: Path, session: str) -> str:
    """Return what has settled in the conversation `session`, once; empty without anything to ask about."""
    state = _read(home, session)
    if state["due"] not in (COMMITTED, PLANNED, EDITED, COMPACTED):
        return ""  # nothing, or words that others wrote
    try:
        _write(home, session, {**state, "due": ""})
    except (OSError, AetherError):
        return ""  # it would be asked at every prompt
    return str(state["due"])


def forget(home: Path, session: str) -> None:
    """Forget what the conversation `session` was asked, for it is closed."""
    with suppress(OSError, AetherError):
        require_real(str(home), DIRECTORY)
        session_file(home, DIRECTORY, session).unlink(missing_ok=True)


def _points(items: list[Item]) -> dict[str, str]:
    """Return what has settled for good, by a name that the same work keeps."""
    points = {}
    for item in items:
        fact: Mapping[str, Any] = item["metadata"].get("fact") or {}
        if fact.get("kind") == "commit":
            points[f"commit {fact.get('id') or item['id']}"] = COMMITTED
        steps = fact.get("steps") if fact.get("kind") == "plan" else None
        if steps and all(step.get("status") == "completed" for step in steps):
            texts = "\0".join(str(step.get("text", "")) for step in steps)
            points[f"plan {regular.digest(texts.encode('utf-8', 'replace'))[:16]}"] = PLANNED
    return points


def _edits(items: list[Item]) -> int:
    facts: list[Mapping[str, Any]] = [item["metadata"].get("fact") or {} for item in items]
    return sum(int(fact.get("times") or 1) for fact in facts if fact.get("kind") == "change")


def _read(home: Path, session: str) -> JsonObject:
    with suppress(OSError, AetherError, ValueError, RecursionError, TypeError, KeyError):
        path = session_file(home, DIRECTORY, session)
        if is_real(str(home), DIRECTORY) and not path.is_symlink():
            record = json.loads(regular.read(path))
            return {
                "due": str(record["due"]),
                "asked": [*map(str, record["asked"])],
                "edits": int(record["edits"]),
            }
    return {"due": "", "asked": [], "edits": 0}


def _write(home: Path, session: str, state: JsonObject) -> None:
    path = session_file(home, DIRECTORY, session)
    make_directory(path.parent)
    require_real(str(home), DIRECTORY)
    write_whole(path, json.dumps(state).encode("ascii"))
    for old in sorted(files_ending(path.parent, ".json"), key=lambda file: file.stat().st_mtime)[
        :-MOST_FILES
    ]:
        old.unlink(missing_ok=True)

"""Homes to test with: a fresh one, items for it, and what stands in it."""

from __future__ import annotations

import os
import signal
import tempfile
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from aether.clock import stamp
from aether.store import config, snapshot
from aether.store.authors import Author
from aether.store.commit import Committed, commit, fold_home
from aether.store.snapshot import Snapshot
from aether.types import Change

# What a run of the suite may need at most.
ROOM_BYTES = 2 * 2**30


def _in_memory(place: str = "/dev/shm") -> str:
    """Return a directory in memory that has room for a run and lets programs start, or the usual temporary one.

    Thousands of small files belong there: on a disk each sync waits for milliseconds, a test makes thirty of them.
    """
    if not os.access(place, os.W_OK):
        return tempfile.gettempdir()
    found = os.statvfs(place)
    roomy = found.f_bavail * found.f_frsize >= ROOM_BYTES
    runs = not found.f_flag & getattr(os, "ST_NOEXEC", 0)
    return place if roomy and runs else tempfile.gettempdir()


IN_MEMORY = _in_memory()
NOW = datetime(2026, 3, 1, 10, 15, tzinfo=UTC)


def later(seconds: float) -> datetime:
    """Return the instant `seconds` after the one at which every test begins."""
    return NOW + timedelta(seconds=seconds)


@cache
def _folded() -> dict[Path, tuple[int, bytes | None]]:
    """Return mode and content of each file of a new home, None for a directory: folding costs as much as ten tests."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as directory:
        home = Path(directory)
        (home / "data").mkdir()
        fold_home(home, now=NOW)
        return {
            path.relative_to(home): (path.stat().st_mode, path.read_bytes() if path.is_file() else None)
            for path in sorted(home.rglob("*"))
        }


def fresh(directory: Path) -> Path:
    """Return a new home below `directory`, with the shipped documents in it."""
    home = directory / ".aether"
    home.mkdir(parents=True)
    for name, (mode, content) in _folded().items():
        path = home / name
        if content is None:
            path.mkdir()
        else:
            path.write_bytes(content)
        path.chmod(mode)
    snapshot.load(home)  # this process knows the home, as if it had made it
    return home


def configure(home: Path, text: str) -> Path:
    """Write `text` as the configuration of `home`, let the user trust it, and return its path."""
    path = home / "config.toml"
    path.write_text(text)
    config.grant_trust(path, path.read_bytes())
    return path


def item(id: str, content: str = "note", tokens: int = 1) -> dict[str, Any]:
    """Return a valid working-memory item."""
    metadata = {
        "timestamp": stamp(NOW), "relevance_score": 0.5, "access_count": 0, "last_accessed": stamp(NOW),
        "source": "queen", "caste": None,
    }  # fmt: skip
    return {
        "id": id, "type": "observation", "content": content, "token_count": tokens,
        "metadata": metadata, "associative_links": [],
    }  # fmt: skip


def addition(snapshot: Snapshot, *entries: dict[str, Any]) -> Change:
    """Return the change that adds `entries` to working memory, tokens counted."""
    total = snapshot.documents["memory"]["working_memory"]["current_tokens"]
    total += sum(entry["token_count"] for entry in entries)
    patch = [{"op": "add", "path": "/working_memory/items/-", "value": entry} for entry in entries]
    patch.append({"op": "replace", "path": "/working_memory/current_tokens", "value": total})
    return Change({"memory": patch})


def removal(snapshot: Snapshot, id: str) -> Change:
    """Return the change that moves one item to the archive."""
    working = snapshot.documents["memory"]["working_memory"]
    at = [entry["id"] for entry in working["items"]].index(id)
    removed = working["items"][at]
    total = working["current_tokens"] - removed["token_count"]
    patch = [
        {"op": "remove", "path": f"/working_memory/items/{at}"},
        {"op": "replace", "path": "/working_memory/current_tokens", "value": total},
    ]
    record = {
        "item": removed,
        "left_at": stamp(NOW),
        "why": "removed",
        "session_id": None,
        "compression_id": None,
    }
    return Change({"memory": patch}, {"items": [record]})


def add(home: Path, id: str, content: str = "note", *, tokens: int = 1, now: datetime = NOW) -> Committed:
    """Commit one item."""
    return commit(
        home, lambda found: addition(found, item(id, content, tokens)), Author("add", reason=id), now=now
    )


def remove(home: Path, id: str, *, now: datetime = NOW) -> Committed:
    """Commit the removal of one item."""
    return commit(home, lambda found: removal(found, id), Author("remove", reason=id), now=now)


def patch(home: Path, *operations: dict[str, Any], document: str = "memory", operation: str = "patch") -> int:
    """Commit `operations` on one document and return the revision."""
    return commit(home, lambda _: Change({document: list(operations)}), Author(operation), now=NOW).revision


def reopened(home: Path) -> Snapshot:
    """Return the home as a reader sees it that has never seen it before."""
    snapshot._CACHE.pop(home, None)
    return snapshot.load(home)


def ids(home: Path) -> list[str]:
    """Return the ids in working memory, as a new reader sees them; the token total is checked on the way."""
    working = reopened(home).documents["memory"]["working_memory"]
    assert working["current_tokens"] == sum(entry["token_count"] for entry in working["items"])
    return [entry["id"] for entry in working["items"]]


def heed_interrupts() -> None:
    """Let a child process be interrupted although the suite runs where Ctrl-C is ignored, as in a background job."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def plain_environment() -> dict[str, str]:
    """Return the environment without what makes a child process measure its coverage: that imports much."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "COVERAGE_"))}

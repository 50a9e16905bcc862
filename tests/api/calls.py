"""What the tests of operations have in common: answers, small limits, and a whole look at a home."""

import json
from pathlib import Path

import aether
from aether.store import snapshot as store_snapshot
from tests import homes
from tests.memory.states import answer

__all__ = ["answer", "answer_text", "handed", "limits", "memory", "snapshot", "whole"]


def answer_text(*args, **fields):
    """Return what an architect answers, as text."""
    return json.dumps(answer(*args, **fields))


def handed(path):
    """Return the hand-off in a file."""
    return json.loads(Path(path).read_text(encoding="utf-8"))


def limits(home, *, capacity=None, percent=None, sessions=None):
    """Set limits of the home."""
    wanted = {
        "/working_memory/max_capacity_tokens": capacity,
        "/working_memory/eviction_threshold_percent": percent,
        "/short_term_memory/max_sessions": sessions,
    }
    homes.patch(
        home,
        *(
            {"op": "replace", "path": path, "value": value}
            for path, value in wanted.items()
            if value is not None
        ),
    )


def memory(home):
    """Return `memory.json` as it is now, as a new reader sees it."""
    store_snapshot._CACHE.pop(home, None)
    return aether.show("memory", home=home)


def snapshot(home):
    """Return all documents and the revision, as a new reader sees them."""
    found = homes.reopened(home)
    return found.revision, found.documents


def whole(home):
    """Assert that nothing is wrong with the home."""
    store_snapshot._CACHE.pop(home, None)
    assert [finding for finding in aether.examine(home=home) if finding.level != "info"] == []

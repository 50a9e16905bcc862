"""The edge: where the clock is read, the home is found, and a pure function meets the store.

Every operation goes through `read` or `change`, so that each is written once.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from aether import clock, paths
from aether.errors import AetherError, NotFound
from aether.ids import new_id
from aether.operations import telemetry
from aether.shapes import Change, Counter, JsonObject
from aether.store.commit import Author, Committed, commit, fold_home
from aether.store.documents import NAMES, path_of
from aether.store.state import Snapshot, journal_path, load

Home = str | os.PathLike[str] | None

__all__ = [
    "Author", "Committed", "Home", "Snapshot", "change", "counter_of", "find", "new_id", "now", "owned", "read",
]  # fmt: skip

now = clock.now


def find(home: Home) -> Path:
    """Return the resolved home that `home` names, or the one found from here.

    Raises:
        NotFound: there is none, or nothing of ours is in it: any project may have a `data/` of its own.
    """
    place = paths.find_home(home)
    if not any(map(os.path.exists, _marks(place))):
        raise NotFound("is not a home.", fix='Run "aether init" there.', where=str(place))
    return place


@lru_cache(maxsize=64)
def _marks(home: Path) -> tuple[str, ...]:
    return (str(journal_path(home)), *(str(path_of(home, name)) for name in NAMES))


def read(home: Home) -> Snapshot:
    """Return the present state of the home."""
    return load(find(home))


def change(home: Home, plan: Callable[[Mapping[str, Any]], Change], author: Author) -> Committed:
    """Commit what `plan` makes of the documents, export the events of it, and return what it did."""
    told: list[JsonObject] = []

    def planned(snapshot: Snapshot) -> Change:
        made = plan(snapshot.documents)
        told[:] = made.appends.get("events", [])
        return made

    place = find(home)
    done = commit(place, planned, author, now=now())
    telemetry.export(place, told)
    return done._replace(result=owned(done.result))


def fold_after(home: Home) -> None:
    """Fold at a phase boundary; what was committed stands, so failing here is left to the next command."""
    with contextlib.suppress(AetherError):
        fold_home(find(home), now=now())


def owned(value: Any) -> Any:
    """Return a copy of `value`, JSON or tuples of it: what a caller holds is never part of the shared state.

    >>> held = {"list": [1]}
    >>> owned(held) == held, owned(held)["list"] is held["list"]
    (True, False)
    """
    if isinstance(value, dict):
        return {key: owned(below) for key, below in value.items()}
    if isinstance(value, tuple):
        copies = map(owned, value)
        return type(value)(*copies) if hasattr(value, "_fields") else tuple(copies)
    return [owned(below) for below in value] if isinstance(value, list) else value


def counter_of(memory: Mapping[str, Any]) -> Counter:
    """Return the token counter that this memory is counted with."""
    from aether.tokens.counters import counter

    settings = memory["token_counter"]
    return counter(settings["counter"], settings["factor"])

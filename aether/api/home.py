"""Home access: the clock is read, the home is found, and a pure function meets the store.

Every operation goes through `read` or `change`, so that each is written once. Both drain the spool of the hooks first,
if anything waits there: a caller sees the present state.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from aether import clock, paths
from aether.api import telemetry
from aether.errors import AetherError
from aether.store import spool
from aether.store.commit import Author, Committed, commit, fold_home
from aether.store.keys import Config
from aether.store.snapshot import Snapshot, load, require_home
from aether.types import Change, Counter, JsonObject

Home = str | os.PathLike[str] | None


now = clock.now
# The drain holds its lock for milliseconds; a caller who would wait longer does without the newest events.
READER_PATIENCE_SECONDS = 0.5


def find(home: Home) -> Path:
    """Return the resolved home that `home` names, or the one found from here.

    Raises:
        NotFound: there is none, or nothing of ours is in it: any project may have a `data/` of its own.
    """
    return require_home(paths.find_home(home))


def read(home: Home) -> Snapshot:
    """Return the present state of the home."""
    return load(drained(find(home)))


def change(
    home: Home,
    plan: Callable[[Mapping[str, Any]], Change],
    author: Author,
    *,
    settings: Config | None = None,
) -> Committed:
    """Commit the change that `plan` makes of the documents, export its events, and return what it did.

    `settings` are those of the home unless given.
    """
    return change_snapshot(home, lambda snapshot: plan(snapshot.documents), author, settings=settings)


def change_snapshot(
    home: Home, plan: Callable[[Snapshot], Change], author: Author, *, settings: Config | None = None
) -> Committed:
    """Do what `change` does, for a plan that needs the journal and the archive as well."""
    events: list[JsonObject] = []

    def planned(snapshot: Snapshot) -> Change:
        made = plan(snapshot)
        events[:] = made.appends.get("events", [])
        return made

    place = drained(find(home))
    done = commit(place, planned, author, now=now(), settings=settings)
    telemetry.export(place, events)
    return done._replace(result=copied(done.result))


def drained(place: Path) -> Path:
    """Return `place` after draining its spool; entries that cannot be stored now stay there."""
    if spool.waiting(str(place)):
        from aether.api.drain import drain  # seldom needed

        left = drain(place, patience=0 if place in _UNDRAINED else READER_PATIENCE_SECONDS).left
        (_UNDRAINED.add if left else _UNDRAINED.discard)(place)
    return place


# Homes whose last drain failed: whoever waited once need not wait again at every step.
_UNDRAINED: set[Path] = set()


def fold_if_possible(home: Home) -> None:
    """Fold at a phase boundary; what was committed stands, so failing here is left to the next command."""
    with contextlib.suppress(AetherError):
        fold_home(find(home), now=now())


def copied(value: Any) -> Any:
    """Return a copy of `value`, JSON or tuples of it: what a caller holds is never part of the shared state.

    >>> held = {"list": [1]}
    >>> owned(held) == held, owned(held)["list"] is held["list"]
    (True, False)
    """
    if isinstance(value, dict):
        return {key: copied(below) for key, below in value.items()}
    if isinstance(value, tuple):
        copies = map(copied, value)
        return type(value)(*copies) if hasattr(value, "_fields") else tuple(copies)
    return [copied(below) for below in value] if isinstance(value, list) else value


def counter_of(memory: Mapping[str, Any]) -> Counter:
    """Return the token counter that `memory` records."""
    from aether.tokens import counters

    settings = memory["token_counter"]
    return counters.counter(settings["counter"], settings["factor"])

"""The edge: where the clock is read, the home is found, and a pure function meets the store.

Every operation goes through `read` or `change`, so that each is written once. Both take in what hooks have
spooled first, where something waits: what a caller sees is up to date, and nothing stays behind.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any

from aether import clock, paths
from aether.errors import AetherError, NotFound
from aether.ids import new_id
from aether.operations import telemetry
from aether.shapes import Change, Counter, JsonObject
from aether.store import spool
from aether.store.commit import HAND, HOOK, Author, Committed, commit, fold_home
from aether.store.config import Config
from aether.store.documents import ALWAYS, path_of
from aether.store.state import Snapshot, journal_path, load

Home = str | os.PathLike[str] | None

__all__ = [
    "Author", "Committed", "Home", "Snapshot", "authored", "change", "counter_of", "find", "new_id", "now", "owned", "read",
    "taken_in", "unasked",
]  # fmt: skip

now = clock.now
# Taking in holds its lock for milliseconds; who waits longer is better served without what hooks saw last.
TAKE_IN_PATIENCE_SECONDS = 0.5


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
    return (str(journal_path(home)), *(str(path_of(home, name)) for name in ALWAYS))


def read(home: Home) -> Snapshot:
    """Return the present state of the home."""
    return load(taken_in(find(home)))


def change(
    home: Home,
    plan: Callable[[Mapping[str, Any]], Change],
    author: Author,
    *,
    settings: Config | None = None,
) -> Committed:
    """Commit what `plan` makes of the documents, export the events of it, and return what it did.

    `settings` are those of the home unless given.
    """
    told: list[JsonObject] = []

    def planned(snapshot: Snapshot) -> Change:
        made = plan(snapshot.documents)
        told[:] = made.appends.get("events", [])
        return made

    place = taken_in(find(home))
    done = commit(place, planned, authored(author), now=now(), settings=settings)
    telemetry.export(place, told)
    return done._replace(result=owned(done.result))


def taken_in(place: Path) -> Path:
    """Return `place` after taking in what hooks have spooled there; where that cannot be done now, it stays."""
    if spool.waiting(str(place)):
        from aether.operations.taking_in import take_in  # seldom needed, and itself made of operations

        with unasked(HOOK):
            left = take_in(place, patience=0 if place in _LEFT else TAKE_IN_PATIENCE_SECONDS).left
        (_LEFT.add if left else _LEFT.discard)(place)
    return place


# Homes where it could not be done the last time: who waited once need not wait again at every step.
_LEFT: set[Path] = set()


# Who makes the changes that nobody asked for; empty while somebody does.
_UNASKED_BY: ContextVar[str] = ContextVar("unasked_by", default="")


@contextlib.contextmanager
def unasked(by: str) -> Iterator[None]:
    """Mark what the block changes as done by `by`, of itself: `undo` without a revision passes it over."""
    token = _UNASKED_BY.set(by)
    try:
        yield
    finally:
        _UNASKED_BY.reset(token)


def authored(author: Author) -> Author:
    """Return the author of a change that is made now; what a person edited stays theirs, whoever brings it in."""
    by = _UNASKED_BY.get()
    return author._replace(by=by) if by and author.by != HAND else author


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

"""Home access: find the home, load its state, and commit the change that a pure function makes.

Every operation goes through `read` or `change`. Both drain the spool of the hooks first if it holds an entry, so
that a caller sees the present state. The drain itself (`api.drain`) uses nothing of this module.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from aether import clock, paths, seams
from aether.errors import AetherError, LockTimeout
from aether.store import files, ledger
from aether.store.authors import ACTING, Author
from aether.store.journal import Entry
from aether.store.snapshot import REPLANNERS, Snapshot, load, require_home
from aether.types import Change, Counter, JsonObject

# What writes, or asks a server, is imported by the functions that need it: a hook mostly reads.
if TYPE_CHECKING:
    from aether.redact.redact import Rules
    from aether.store.commit import Committed
    from aether.store.keys import Config

Home = str | os.PathLike[str] | None

now = clock.now
# Seconds: the drain holds its lock for milliseconds; a caller that would wait longer does without the newest events.
READER_PATIENCE_SECONDS = 0.5
# Homes whose last drain failed: a caller that has waited once does not wait again at each step.
_UNDRAINED: set[Path] = set()
# A shared home is asked for news of other replicas no more often than this; one whose server failed, far less.
FRESH_SECONDS, FAILED_SECONDS = 1.0, ledger.TRIED_SECONDS
_NEXT_LOOK: dict[Path, float] = {}
# Why the colony of a shared home gave it no news when it was asked last: a right that was revoked, another history.
REFUSALS: dict[Path, AetherError] = {}


def _added_again(documents: Mapping[str, Any], entry: Entry) -> Change | None:
    """Plan an addition that waited for the server again: what it evicted may be archived by now, or may stay."""
    from aether.memory import items  # seldom needed: most homes are not shared

    if items.DOCUMENT not in entry.patches:
        return None
    patch, archived = entry.patches[items.DOCUMENT], entry.appends.get("items", [])
    instant = clock.parse(entry.at, where="at")
    again = items.added_again(documents[items.DOCUMENT], patch, archived, now=instant)
    return again and Change(again.patches, {"items": again.appends.get("items", [])})


def _goal_added_again(documents: Mapping[str, Any], entry: Entry) -> Change | None:
    """Plan a goal that was added without the server again: others may have another current one by now."""
    if entry.operation != "add goal" or entry.patches.keys() != {"goals"}:
        return None
    instant = clock.parse(entry.at, where="at")
    again: Change | None = seams.call(
        "add goal again", documents["goals"], entry.patches["goals"], now=instant
    )
    return again


REPLANNERS += [_added_again, _goal_added_again]


def find(home: Home) -> Path:
    """Return the resolved home that `home` names, else the one found from the current directory.

    Raises:
        NotFound: there is no home, or the directory has a `data/` that is not ours.
    """
    place = require_home(paths.find_home(home))
    files.note_erasure(place)
    return place


def instant(given: str | datetime | None, *, at: datetime, where: str) -> datetime | None:
    """Return the instant that a caller gave: an aware time, or a text such as `2026-03-01` or `7d`; None if it is empty.

    Raises:
        InvalidInput: the text is no time.
    """
    return clock.instant_of(given, at=at, where=where) if isinstance(given, str) and given else given or None


def read(home: Home) -> Snapshot:
    """Return the present state of the home."""
    return present(drained(find(home)))


def present(place: Path) -> Snapshot:
    """Return the state of a home for reading, undrained, with what waits for its server."""
    snapshot = load(place)
    if not os.path.exists(f"{place}/{ledger.QUEUE}"):
        return snapshot
    return cast("Snapshot", ledger.sharing(place).present(snapshot))


def drained(place: Path) -> Path:
    """Return `place` after draining its spool; entries that cannot be stored now stay there.

    A shared home has what other replicas wrote until a second ago, unless its server cannot be reached.
    """
    actor = ACTING.get()
    if actor and actor.read_only:
        return place
    if os.path.exists(f"{place}/{ledger.PLACE}"):
        if ledger.stays_local():  # a hook waits for nobody who waits for the server
            return place
        _refresh(place)
    try:
        spooled = any(name.endswith(".json") for name in os.listdir(f"{place}/hooks/spool"))
    except OSError:
        return place
    if spooled:
        patience = 0 if place in _UNDRAINED else READER_PATIENCE_SECONDS
        undrained = seams.call("drain", place, patience=patience).left
        (_UNDRAINED.add if undrained else _UNDRAINED.discard)(place)
    return place


def _refresh(place: Path) -> None:
    from aether.store.commit import catch_up, settle, write_lock

    shared = ledger.sharing(place)

    instant = time.monotonic()
    if instant < _NEXT_LOOK.get(place, instant):
        return
    _NEXT_LOOK[place] = instant + FRESH_SECONDS
    if ledger.tried_lately(place):  # by another process, perhaps
        return
    REFUSALS.pop(place, None)
    try:
        with write_lock(place, timeout=READER_PATIENCE_SECONDS):
            shared.send_queue(catch_up(settle(load(place), now=now()), now=now()), now(), insist=True)
    except LockTimeout:
        pass  # another process of this home is at work: it has asked, or asks next
    except AetherError as reason:
        _NEXT_LOOK[place] = instant + FAILED_SECONDS
        REFUSALS[place] = reason
        if isinstance(reason, ledger.Offline):
            shared.note_try(place, failed=True)


def look_again(place: Path) -> None:
    """Let the server of a shared home be asked at once, also if it could not be reached a moment ago."""
    _NEXT_LOOK.pop(place, None)
    if shared := ledger.sharing(place):
        shared.note_try(place, failed=False)


def looked(place: Path, committed: Committed) -> None:
    """Note that a change of a shared home was just taken by its ledger, so that there is no news to ask for."""
    if committed.changed and committed.revision and place in _NEXT_LOOK:
        _NEXT_LOOK[place] = time.monotonic() + FRESH_SECONDS


def change(
    home: Home, plan: Callable[[Mapping[str, Any]], Change], author: Author, *, settings: Config | None = None
) -> Committed:
    """Commit the change that `plan` makes of the documents, export its events, and return its result.

    `settings` replace those of the home.
    """
    return change_snapshot(home, lambda snapshot: plan(snapshot.documents), author, settings=settings)


# Who looks something up does not wait for a writer.
READING_WAIT_SECONDS = 0.25


def note_reading(place: Path, plan: Callable[[Mapping[str, Any]], Change]) -> Committed:
    """Do the same for what only reading changes: it waits neither long for the lock, nor for the server of a shared home.

    Raises:
        AetherError: nothing was stored.
    """
    from aether.store import config
    from aether.store.commit import commit

    if ledger.is_shared(place):
        ledger.sharing(place).require_answer(place)
    configured = config.or_default(place)
    wait = min(READING_WAIT_SECONDS, configured.lock_timeout_seconds)
    settings = configured._replace(lock_timeout_seconds=wait)
    committed = commit(
        place, lambda snapshot: plan(snapshot.documents), Author("access"), now=now(), settings=settings
    )
    return committed._replace(result=copied(committed.result))


def change_snapshot(
    home: Home,
    plan: Callable[[Snapshot], Change],
    author: Author,
    *,
    settings: Config | None = None,
    ahead: bool = False,
    may_wait: bool = True,
) -> Committed:
    """Commit as `change` does, for a plan that needs the journal and the archive as well; the others as for `commit`."""
    from aether.store.commit import commit

    events: list[JsonObject] = []

    def planned(snapshot: Snapshot) -> Change:
        change = plan(snapshot)
        events[:] = change.appends.get("events", [])
        return change

    place = drained(find(home))
    committed = commit(place, planned, author, now=now(), settings=settings, ahead=ahead, may_wait=may_wait)
    looked(place, committed)
    if events:
        seams.call("export", place, events)
    return committed._replace(result=copied(committed.result))


def redaction_rules(home: Home) -> Rules:
    """Return the rules by which texts of the home are redacted for others: the built-in ones, and its own."""
    from aether.redact.redact import rules  # adding an item would pay for its expressions
    from aether.store import config

    return rules(config.settings(home=find(home)).values.get("redaction.patterns", ()))


def fold_if_possible(home: Home) -> None:
    """Fold at a phase boundary; the change is committed, so a failure here is left to the next command."""
    from aether.store.commit import fold_home

    with contextlib.suppress(AetherError):
        fold_home(find(home), now=now())


def copied(value: Any) -> Any:
    """Return a copy of `value`, JSON or tuples of it: a caller never holds a part of the shared state.

    >>> held = {"list": [1]}
    >>> copied(held) == held, copied(held)["list"] is held["list"]
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
    from aether.tokens.counters import counter

    settings = memory["token_counter"]
    return counter(settings["counter"], settings["factor"])

"""Confirming: the entries of a home that came with a repository, and a person's word that they count.

Until a person confirms such a home, its entries are shown as coming from the repository, below everything else, and never as
a person's words; what sessions here noted is shown as always.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from aether.api import hook_sessions
from aether.memory.items import items_of
from aether.memory.sessions import sessions_of
from aether.store import origin
from aether.text.tags import UNCONFIRMED
from aether.types import JsonObject

if TYPE_CHECKING:
    from aether.api.home import Home
    from aether.store.snapshot import Snapshot

# Lines that are shown before a person confirms a home: as many as a start may have.
SHOWN_TOKENS = 700


class HomeTrust(NamedTuple):
    """Whether the content of a home counts as this user's, and what a session would get once it does."""

    home: Path
    state: Literal["own", "confirmed", "unconfirmed"]
    """`own`: git does not track it; `confirmed` and `unconfirmed`: it does."""
    lines: list[str]
    """Of an unconfirmed home, the lines of the brief as they would be then."""


def home_trust(home: Home = None) -> HomeTrust:
    """Return whether the content of `home` counts as this user's.

    Raises:
        NotFound: there is no home.
    """
    from aether.api.home import find

    place = find(home)
    if origin.is_confirmed(place):
        return HomeTrust(place, "confirmed" if origin.is_tracked(place) else "own", [])
    return HomeTrust(place, "unconfirmed", _lines_once_confirmed(place))


def confirm_home(home: Home = None) -> HomeTrust:
    """Record the person's word that what `home` holds counts, also what is pulled into it later, and return its state.

    Raises:
        NotFound: there is no home.
        StorageFailed: the home or the user's state directory cannot be written.
    """
    trust = home_trust(home)
    if trust.state == "own":
        return trust
    origin.confirm(trust.home)
    return trust._replace(state="confirmed")


def revoke_home(home: Home = None) -> bool:
    """Take the word back, and return whether `home` was confirmed; one that git does not track stays this user's own.

    Raises:
        NotFound: there is no home.
        StorageFailed: the home or the user's state directory cannot be written.
    """
    trust = home_trust(home)
    return trust.state != "own" and origin.withdraw(trust.home)


def own_test(home: Path) -> Callable[[Mapping[str, Any]], bool] | None:
    """Return whether an entry was noted by a session here, as a function; None if all of `home` counts as this user's."""
    if origin.is_confirmed(home):
        return None
    local = origin.local_sessions(home)

    def is_own(entry: Mapping[str, Any]) -> bool:
        metadata = entry.get("metadata") or {}
        name = metadata.get("conversation")
        if not isinstance(name, str) or not name:
            return False
        return hook_sessions.session_file(home, hook_sessions.SESSIONS_DIRECTORY, name).name in local

    return is_own


def own_entries(snapshot: Snapshot) -> JsonObject:
    """Return what a brief has to know of the origin of the entries: under `own` the ids of this user's; empty if all are.

    A session is this user's if all the items that it keeps are: its statements are proven by their words.
    """
    is_own = own_test(snapshot.home)
    if is_own is None:
        return {}
    memory = snapshot.documents["memory"]
    own = {item["id"] for item in items_of(memory) if is_own(item)}
    for session in sessions_of(memory):
        stored = session["metadata"].get("items") or []
        own |= {item["id"] for item in stored if is_own(item)}
        if stored and all(is_own(item) for item in stored):
            own.add(session["session_id"])
    return {"own": frozenset(own)}


def labelled(entry: Mapping[str, Any], home: Path) -> Mapping[str, Any]:
    """Return a document's entry with its `origin` if it came with the repository of an unconfirmed home."""
    is_own = own_test(home)
    return entry if is_own is None or is_own(entry) else {**entry, "origin": UNCONFIRMED}


def _lines_once_confirmed(home: Path) -> list[str]:
    from aether.api.home import counter_of, now, present
    from aether.memory.briefing import briefing
    from aether.paths import project_root

    snapshot, moment = present(home), now()
    lines = briefing.brief_lines(
        snapshot.documents, occasion="startup", now=moment, count=counter_of(snapshot.documents["memory"]),
        budget=SHOWN_TOKENS, root=project_root(home),
    )  # fmt: skip
    return briefing.lay_out(lines, now=moment)

"""What happens at the moment: the sessions whose hooks run, the memory they were given, the notes made of them, the calls that rules stopped."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

from aether import clock
from aether.api import hook_sessions
from aether.api.home import Home, counter_of, read
from aether.api.timeline import item_moments
from aether.errors import AetherError, public
from aether.memory.items import HISTORY
from aether.memory.layers import records
from aether.memory.timeline import Moment
from aether.store import enforced
from aether.store.files import files_ending

SESSIONS, CAPTURED = 12, 8


class LiveSession(NamedTuple):
    """A session of an agent whose hooks noted something."""

    session: str
    at: str
    """Time of the last event that changed what is known of it."""
    lines: list[str]
    """The lines that it was given, in the order of being given."""
    entries: dict[str, str]
    """The entries of memory among them that are still there, by their ids: their texts."""
    tokens: int
    """What it was given, counted by the home's counter."""
    captured: list[Moment]
    """The newest notes that were made of it, the newest first."""
    stopped: list[enforced.Stop]
    """Calls that rules stopped, the newest first."""


@public
def live_sessions(*, limit: int = SESSIONS, home: Home = None) -> list[LiveSession]:
    """Return the sessions whose hooks ran last, the newest first.

    A session whose name is not one of letters, digits, `-` and `_` has its digest for a name, as its file has.
    """
    snapshot = read(home)
    hooks = snapshot.home / "hooks"
    ages: dict[str, float] = {}
    for name in (hook_sessions.INJECTED_DIRECTORY, hook_sessions.SESSIONS_DIRECTORY):
        for file in files_ending(hooks / name, ".json"):
            with suppress(OSError):  # removed meanwhile
                ages[file.stem] = max(ages.get(file.stem, 0.0), file.stat().st_mtime)
    names = sorted(ages, key=lambda name: ages[name], reverse=True)[:limit]
    captured: dict[str, list[Moment]] = {name: [] for name in names}
    for moment in item_moments(snapshot):
        if moment.conversation in captured and moment.type != HISTORY:
            captured[moment.conversation].append(moment)
    try:
        stops = enforced.stops(snapshot.home)[::-1]
    except (AetherError, OSError):
        stops = []  # the rules themselves say what is wrong with their directory
    memory = snapshot.documents["memory"]
    texts, count = {record.id: record.text for record in records(memory)}, counter_of(memory)
    given = {name: hook_sessions.read_injected(snapshot.home, name) for name in names}
    # A line without a space is the id of an entry, or the mark of a file.
    lines = {name: [line for line in given[name] if any(map(str.isspace, line.strip()))] for name in names}
    entries = {name: {line: texts[line] for line in given[name] if line in texts} for name in names}
    return [
        LiveSession(
            name,
            clock.stamp(datetime.fromtimestamp(ages[name], UTC)),
            lines[name],
            entries[name],
            count("\n".join([*lines[name], *entries[name].values()])),
            sorted(captured[name], key=lambda moment: moment.at, reverse=True)[:CAPTURED],
            [stop for stop in stops if stop.session == name],
        )
        for name in names
    ]

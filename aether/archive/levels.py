"""Levels by age: how old a conversation is, in whole days since it was last used, and which level that asks for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple

from aether import clock
from aether.archive.shapes import LEVELS, Conversation, Level
from aether.errors import InvalidInput, shown

Which = Literal["messages", "updated_at", "created_at", "unknown"]
# A hundred years: a longer age is a slip of the keyboard.
MOST_DAYS = 36_525


class Boundaries(NamedTuple):
    """The ages in days from which the levels below `full` apply."""

    key_points: int = 30
    summary: int = 90
    metadata: int = 365


DEFAULT = Boundaries()
PRESETS: Mapping[str, Boundaries] = {"default": DEFAULT, "research": Boundaries(7, 30, 90)}


class Age(NamedTuple):
    """The age of a conversation."""

    days: int
    """Whole days, never negative."""
    since: str
    """The time it counts from; "" if none is known, and then it is 0."""
    which: Which
    """The field that time is from: the newest message, else `updated_at`, else `created_at`."""


def boundaries(
    given: Mapping[str, Any] | str | None = None, *, where: str = "archive.boundaries"
) -> Boundaries:
    """Return the boundaries of a preset, or those `given`, with the defaults for the rest.

    Raises:
        InvalidInput: no such preset or level, a boundary that is no number of whole days, or one below that of a fuller level.

    >>> boundaries("research"), boundaries({"metadata": 400}).metadata
    (Boundaries(key_points=7, summary=30, metadata=90), 400)
    """
    if given is None:
        return DEFAULT
    if isinstance(given, str):
        if given not in PRESETS:
            raise InvalidInput(
                f"{shown(given)} is not a preset.", fix=f"Use one of {', '.join(PRESETS)}.", where=where
            )
        return PRESETS[given]
    if not isinstance(given, Mapping) or (unknown := given.keys() - set(LEVELS[1:])):
        what = f"{shown(unknown if isinstance(given, Mapping) else given)} has no boundary."
        raise InvalidInput(what, fix=f"Give days for {', '.join(LEVELS[1:])}.", where=where)
    for name, days in given.items():
        if isinstance(days, bool) or not isinstance(days, int) or not 0 <= days <= MOST_DAYS:
            raise InvalidInput(
                f"{shown(days)} is not an age.", fix=f"Give days, 0 to {MOST_DAYS}.", where=f"{where}.{name}"
            )
    found = DEFAULT._replace(**given)
    if not found.key_points <= found.summary <= found.metadata:
        what = f"{found.key_points}, {found.summary}, {found.metadata} do not ascend."
        raise InvalidInput(
            what, fix="Give each level an age that is not below that of the one before.", where=where
        )
    return found


def age(conversation: Conversation, now: datetime) -> Age:
    """Return the age of `conversation` at `now`, an aware time; 0 if its times are later, or none is known."""
    times: dict[Which, str] = {
        "messages": max(conversation["times"], default=""),
        "updated_at": conversation["updated_at"],
        "created_at": conversation["created_at"],
    }
    for which, since in times.items():
        if since:
            return Age(max(0, (now - clock.parse(since)).days), since, which)
    return Age(0, "", "unknown")


def level_of_age(days: int, boundaries: Boundaries = DEFAULT) -> Level:
    """Return the level that an age asks for.

    >>> [level_of_age(days) for days in (29, 30, 89, 90, 364, 365)]
    ['full', 'key_points', 'key_points', 'summary', 'summary', 'metadata']
    """
    if days >= boundaries.metadata:
        return "metadata"
    if days >= boundaries.summary:
        return "summary"
    return "key_points" if days >= boundaries.key_points else "full"

"""Salvage: read odd values of old documents without losing or guessing any.

What can be read becomes what it should be; what cannot is set aside: named in a finding, and kept in the
document itself under `unplaced`, word for word. Nothing here raises on an odd shape, and the same input
gives the same result, because a document may be migrated at every read until someone commits.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, NamedTuple

from aether import clock
from aether.errors import InvalidInput, shown
from aether.shapes import Finding, JsonObject
from aether.text.patterns import lazy

Reader = Callable[[Any], Any]
"""A value to what it should be, or None where it cannot be read."""
# Ids of the original end in the second they were made, ours in the microsecond; later digits are a hash.
_SECONDS_IN_ID = lazy(r"_(\d{10})(?:_|$)")
_MICROS_IN_ID = lazy(r"_(\d{16})(?:_|$)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Beyond this a JSON number is no longer exact in every reader (2**53 - 1).
_MAX_WHOLE = 9_007_199_254_740_991


class Notes(NamedTuple):
    """What a migration has to say; the lists grow while it runs."""

    document: str
    findings: list[Finding]
    unplaced: list[JsonObject]


def note(notes: Notes, code: str, place: str, message: str, fix: str) -> None:
    """Add a finding about `place`."""
    notes.findings.append(Finding("warning", code, f"{notes.document}#{place}", message, fix))


def set_aside(notes: Notes, place: str, value: Any, expected: str) -> None:
    """Keep `value` under `unplaced`, and say so in a finding."""
    notes.unplaced.append({"where": place, "value": value})
    fix = "Look at it under 'unplaced', put it where it belongs, and delete it there."
    note(notes, "unplaced", place, f"{shown(value)} is not {expected}; it was set aside.", fix)


def text(value: Any) -> str | None:
    """Return `value` if it is text that says something."""
    return value if isinstance(value, str) and value.strip() else None


def number(value: Any) -> float | None:
    """Return `value` as a finite number, be it number or text."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    fits = isinstance(value, int | float) and not isinstance(value, bool)
    return value if fits and abs(value) <= _MAX_WHOLE else None  # which NaN is not


def amount(value: Any) -> float | None:
    """Return `value` as a finite number, 0 or more: nothing that a document starts with may be less."""
    found = number(value)
    return None if found is None or found < 0 else found


def whole(value: Any) -> int | None:
    """Return `value` as a whole number, 0 or more; fractions are rounded.

    >>> whole("12"), whole(40.5), whole(-1), whole(True)
    (12, 40, None, None)
    """
    found = number(value)
    return None if found is None or found < 0 else round(found)


def phase_number(value: Any) -> int | None:
    """Return `value` as the number of a phase, be it number or text; fractions name none.

    >>> phase_number("2"), phase_number(2.0), phase_number(2.5)
    (2, 2, None)
    """
    found = whole(value)
    return found if found == number(value) else None


def fraction(value: Any) -> float | None:
    """Return `value` as a number brought between 0 and 1."""
    found = number(value)
    return None if found is None else min(1.0, max(0.0, found))


def strength(value: Any) -> float | None:
    """Return `value` as a number above 0, at most 1; None where it is 0 or less."""
    return fraction(value) or None


def half_life(value: Any) -> float | None:
    """Return `value` as seconds above 0."""
    found = number(value)
    return found if found is not None and found > 0 and math.isfinite(found) else None


def instant(value: Any) -> str | None:
    """Return the time that `value` names, as we write it; without a zone it is UTC.

    >>> instant("2026-02-01 06:00:00"), instant("soon")
    ('2026-02-01T06:00:00.000000Z', None)
    """
    try:
        found = clock.parse(value)
    except InvalidInput:
        return None
    return clock.stamp(found) if found >= _EPOCH else None


def instant_in(id_text: str) -> str:
    """Return the time at which an id says it was made, else the beginning of 1970.

    >>> instant_in("focus_1769904000")
    '2026-02-01T00:00:00.000000Z'
    """
    seconds, micros = _SECONDS_IN_ID.search(id_text), _MICROS_IN_ID.search(id_text)
    since = timedelta(seconds=int(seconds[1])) if seconds else timedelta()
    return clock.stamp(_EPOCH + (timedelta(microseconds=int(micros[1])) if micros else since))


def mapping(value: Any) -> JsonObject | None:
    """Return `value` if it is an object."""
    return value if isinstance(value, dict) else None


def listing(value: Any) -> list[Any] | None:
    """Return `value` if it is a list."""
    return value if isinstance(value, list) else None


def field(
    entry: Mapping[str, Any],
    key: str,
    read: Reader,
    default: Any,
    *,
    place: str,
    notes: Notes,
) -> Any:
    """Return `entry[key]` as `read` reads it; `default` where it is absent, empty or unreadable."""
    return readable(entry.get(key), read, default, place=f"{place}/{key}", notes=notes)


def readable(value: Any, read: Reader, default: Any, *, place: str, notes: Notes) -> Any:
    """Return `value` as `read` reads it; `default` where it is null, empty text or unreadable."""
    if value is None or value == "":
        return default
    found = read(value)
    if found is None:
        set_aside(notes, place, value, _EXPECTED.get(getattr(read, "__name__", ""), "what belongs here"))
        return default
    return found


_EXPECTED = {
    "text": "text",
    "number": "a number",
    "whole": "a whole number",
    "phase_number": "a phase number",
    "fraction": "a number",
    "strength": "a strength above 0",
    "half_life": "a time in seconds",
    "instant": "a time",
    "mapping": "an object",
    "listing": "a list",
}


def entries(
    holder: Mapping[str, Any],
    key: str,
    read: Callable[[JsonObject, str, Notes], JsonObject | None],
    *,
    place: str,
    notes: Notes,
) -> list[JsonObject]:
    """Return the objects of the list `holder[key]` that `read` can read, in order."""
    found = []
    for at, raw in enumerate(field(holder, key, listing, [], place=place, notes=notes)):
        here = f"{place}/{key}/{at}"
        entry = read(raw, here, notes) if isinstance(raw, dict) else None
        if entry is None:
            set_aside(notes, here, raw, "an entry that can be read")
        else:
            found.append(entry)
    return found


def texts(holder: Mapping[str, Any], key: str, *, place: str, notes: Notes) -> list[str]:
    """Return the texts of the list `holder[key]`; anything else in it is set aside."""
    found = []
    for at, entry in enumerate(field(holder, key, listing, [], place=place, notes=notes)):
        if isinstance(entry, str):
            found.append(entry)
        else:
            set_aside(notes, f"{place}/{key}/{at}", entry, "text")
    return found


def unique(found: list[JsonObject], place: str, notes: Notes) -> list[JsonObject]:
    """Return the entries with every id once: a repeated id gets a new suffix, an exact copy goes.

    Both are named in findings; `metadata.renamed_from` keeps the old id.
    """
    seen: dict[str, set[str]] = {}
    result = []
    taken = {entry["id"] for entry in found}
    for entry in found:
        old, content = entry["id"], json.dumps(entry)
        if old not in seen:
            result.append(entry)
        elif content in seen[old]:
            message = f"{shown(old)} stood there twice, alike in everything; one was dropped."
            note(notes, "duplicate_dropped", place, message, "Nothing to do.")
        else:
            fresh = next(name for nth in count(2) if (name := f"{old}_{nth}") not in taken)
            taken.add(fresh)
            message = f"{shown(old)} stood there twice, not alike; the later one is now {shown(fresh)}."
            note(notes, "duplicate_renamed", place, message, "Where the id is used, check which is meant.")
            result.append(_renamed(entry, fresh))
        seen.setdefault(old, set()).add(content)
    return result


def _renamed(entry: JsonObject, fresh: str) -> JsonObject:
    renamed = {**entry, "id": fresh, "metadata": {**entry.get("metadata", {}), "renamed_from": entry["id"]}}
    if entry.get("session_id") == entry["id"]:
        renamed["session_id"] = fresh
    return renamed


def filled(value: Any, initial: Any, place: str, notes: Notes) -> Any:
    """Return `value` with what it lacks from `initial`; what has another shape than there is set aside.

    Unknown fields stay. Where the initial document says null, anything may stand.
    """
    if value is None or initial is None:
        return initial if value is None else value
    if isinstance(initial, dict) and isinstance(value, dict):
        known = {
            key: filled(value.get(key), below, f"{place}/{key}", notes) for key, below in initial.items()
        }
        return {**value, **known}
    return readable(value, _reader_like(initial, place), initial, place=place, notes=notes)


def _reader_like(initial: Any, place: str) -> Reader:
    if isinstance(initial, dict | list):
        return mapping if isinstance(initial, dict) else listing
    if isinstance(initial, str):
        return text
    # An average that starts at 0 is no whole number for long.
    return whole if isinstance(initial, int) and "ratio" not in place.rpartition("/")[2] else amount

"""Migrations: documents of older versions become documents of today, by pure functions, on read.

Version 2 is the original colony, whose documents carry no `schema_version`. A migration never raises on
an odd shape and loses nothing: what has no place is kept under `unplaced` and named in a finding. The
same document always becomes the same one, because it may be read many times before anyone commits. A
document of a newer aether is left untouched.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from aether.errors import InvalidDocument
from aether.paths import resource
from aether.schemas.salvage import Notes, field, filled, listing, set_aside
from aether.shapes import Counter, Finding, JsonObject

VERSION = 3


class Migrated(NamedTuple):
    """A document of today's version, and what had to be said on the way."""

    document: JsonObject
    findings: list[Finding]


def original_count(content: str) -> int:
    """Return the tokens of `content` by the rule of the original, so that its counts stay comparable.

    >>> original_count("seven c")
    2
    """
    return (len(content) + 3) // 4


def current(name: str, value: Any) -> Any:
    """Return `value` as a document of today's version; the very same object where it is one already.

    Raises:
        InvalidDocument: a newer aether wrote it.
    """
    return value if is_current(name, value) else migrate(name, value).document


def is_current(name: str, value: Any) -> bool:
    """Return whether `value` is a document of today's version.

    Raises:
        InvalidDocument: a newer aether wrote it.
    """
    version = value.get("schema_version") if isinstance(value, dict) else None
    if isinstance(version, bool) or not isinstance(version, int | float):
        return False
    if version > VERSION:
        raise InvalidDocument(
            f"written by a newer aether (version {version}, this one knows {VERSION}); left untouched.",
            fix="Upgrade aether.",
            where=f"{name}.json",
        )
    return version == VERSION


def migrate(name: str, value: Any, *, count: Counter = original_count) -> Migrated:
    """Return the document `name` as today's version, with findings about what was odd.

    `count` counts the items that come without a count.

    Raises:
        InvalidDocument: a newer aether wrote it.
    """
    if is_current(name, value):
        return Migrated(value, [])
    notes = Notes(name, [], [])
    if not isinstance(value, dict):
        set_aside(notes, "/", value, "an object")
        value = {}
    before = field(value, "unplaced", listing, [], place="", notes=notes)
    initial: JsonObject = json.loads(resource(f"data/{name}.json").read_bytes())
    document = _v2_to_v3(name, value, initial, count, notes)
    document["schema_version"] = VERSION
    if notes.unplaced:
        document["unplaced"] = [*before, *notes.unplaced]
    return Migrated(document, notes.findings)


def _v2_to_v3(name: str, value: JsonObject, initial: JsonObject, count: Counter, notes: Notes) -> JsonObject:
    from aether.schemas import v2_colony, v2_memory

    # The version and the words about the format are ours to say.
    value = {key: below for key, below in value.items() if key != "schema_version"}
    if name == "memory":
        return v2_memory.v2_to_v3(value, initial=initial, count=count, notes=notes)
    if name == "pheromones":
        return v2_colony.pheromones_v2_to_v3(value, initial=initial, notes=notes)
    if name != "COLONY_STATE":
        document: JsonObject = filled(value, initial, "", notes)  # the original had no such document
        return document
    return v2_colony.colony_v2_to_v3(value, initial=initial, notes=notes)

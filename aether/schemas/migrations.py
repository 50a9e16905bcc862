"""Migrations: documents of older versions become documents of today, by pure functions, on read.

Version 2 is the original colony, whose documents have no `schema_version`. A migration never raises on an odd shape
and loses nothing: a value without a place is kept under `unplaced`. The same document always becomes the same one,
because it may be read many times before a commit. Items that an earlier release of this version captured get their facts,
from any source: a file, the journal, or another member of the colony. A document of a newer aether is refused.
"""

from __future__ import annotations

import json
from typing import Any

from aether.errors import InvalidDocument
from aether.paths import resource
from aether.types import JsonObject

VERSION = 3
# Items of machine work, by their type and by their role.
_WORK_TYPES = frozenset({"code_change", "command", "error", "solution"})
_WORK_ROLES = frozenset({"plan", "commit"})


def current(name: str, value: Any) -> Any:
    """Return `value` as a document of today's version; the very same object if it is one already.

    Raises:
        InvalidDocument: a newer aether wrote it.
    """
    if is_current(name, value):
        if name == "memory" and (places := _without_facts(value)):
            from aether.schemas.from_sentences import with_facts

            return with_facts(value, places)
        return value
    # Loaded only here: nearly every document is of today's version.
    from aether.schemas.from_v2 import Notes, convert

    notes = Notes(name, json.loads(resource(f"data/{name}.json").read_bytes()), [])
    before = value.get("unplaced") if isinstance(value, dict) else None
    document = convert(value, notes)
    document["schema_version"] = VERSION
    if notes.unplaced:
        document["unplaced"] = [*(before if isinstance(before, list) else []), *notes.unplaced]
    return document


def _without_facts(memory: JsonObject) -> list[int]:
    """Return the positions of the items of machine work without a fact, as earlier releases wrote them."""
    try:
        return [place for place, item in enumerate(memory["working_memory"]["items"]) if _lacks_fact(item)]
    except (KeyError, TypeError, AttributeError):  # a document of another shape
        return []


def _lacks_fact(item: Any) -> bool:
    metadata = item["metadata"]
    is_work = item["type"] in _WORK_TYPES or metadata.get("role") in _WORK_ROLES
    return is_work and "fact" not in metadata and "pointer" in metadata


def is_current(name: str, value: Any) -> bool:
    """Return whether `value` is a document of today's version.

    Raises:
        InvalidDocument: a newer aether wrote it.
    """
    version = value.get("schema_version") if isinstance(value, dict) else None
    if isinstance(version, bool) or not isinstance(version, int | float):
        return False
    if version > VERSION:
        what = f"written by a newer aether (version {version}, this one knows {VERSION}); left untouched."
        raise InvalidDocument(what, fix="Upgrade aether.", where=f"{name}.json")
    return version == VERSION

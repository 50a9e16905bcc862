"""Version 2 to 3: documents of the original colony become ours, read leniently.

One walk along the JSON schema of a document reads every value; `_ROWS` is the table of what its objects lack. A missing
value gets the default of the schema, of the initial document or of that table. A value that does not fit is kept word
for word under `unplaced`; unknown fields stay. Nothing here raises on an odd shape, and the same input gives the same
result, because a document may be read many times before anyone commits.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, NamedTuple

from aether import clock
from aether.errors import InvalidInput
from aether.schemas.check import fits, schema
from aether.types import JsonObject

# Marks a missing value: None is a value in many fields.
_ABSENT: Any = object()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Ids of the original end in the second they were made, ours in the microsecond; later digits are a hash.
_DIGITS_OF_TIME = (16, 10)
# Words for how far a phase is, in the order in which they are tried ("not started" holds "started").
_STATUS_WORDS = {
    "planned": ("plan", "pending", "todo", "not", "future"),
    "completed": ("complete", "done", "finish"),
    "in_progress": ("progress", "active", "execut", "running", "current", "start"),
}
_LINK_TYPES = {"wm_": "working_memory_item", "pattern_": "long_term_pattern"}
# The first strength of a signal whose type has no default: neither faint nor overruling.
NEW_STRENGTH = 0.5


class Notes(NamedTuple):
    """The document that is converted, its empty form, and its values without a place; that list grows meanwhile."""

    document: str
    initial: JsonObject
    unplaced: list[JsonObject]


class _Place(NamedTuple):
    """Where an object is: its number or name, the id of the entry above it, and the document as it was."""

    number: int
    key: str
    owner: str
    document: JsonObject
    notes: Notes


def convert(value: Any, notes: Notes) -> JsonObject:
    """Return `value` as a document of version 3, without its version; oddities go to `notes`."""
    if not isinstance(value, dict):
        _set_aside(notes, "", value)
        value = {}
    value = {key: member for key, member in value.items() if key != "schema_version"}
    if not isinstance(value.get("unplaced", []), list):
        _set_aside(notes, "/unplaced", value["unplaced"])
    shape, finish = schema(notes.document), _FINISH.get(notes.document)
    if finish is None:
        # The original did not have this document: only its members are checked, not their content.
        members = shape["properties"].items()
        shape = {"properties": {key: {"type": below["type"]} for key, below in members if "type" in below}}
    if notes.document == "COLONY_STATE":
        value = _colony(value, notes)
    document: JsonObject = _object(value, shape, notes.initial, "", _Place(0, "", "", value, notes))
    if finish:
        finish(document)
    return document


def _set_aside(notes: Notes, path: str, value: Any) -> None:
    notes.unplaced.append({"where": path or "/", "value": value})


def _kinds(shape: JsonObject) -> set[str]:
    kinds = shape.get("type", ())
    return {kinds} if isinstance(kinds, str) else set(kinds)


def _nullable(shape: JsonObject) -> bool:
    return any(
        "null" in _kinds(option) or None in option.get("enum", ()) for option in shape.get("anyOf", [shape])
    )


def _resolved(shape: JsonObject, notes: Notes) -> JsonObject:
    reference = next(
        (option["$ref"] for option in (shape, *shape.get("anyOf", ())) if "$ref" in option), None
    )
    return schema(notes.document)["$defs"][reference.rpartition("/")[2]] if reference else shape


def _value(value: Any, shape: JsonObject, default: Any, path: str, place: _Place) -> Any:
    """Return `value` as `shape` wants it, else the default, else `_ABSENT`; what does not fit is set aside."""
    nullable, shape = _nullable(shape), _resolved(shape, place.notes)
    is_object = "object" in _kinds(shape)
    if value is not None and value != "" and not (value == {} and nullable and is_object):
        result = _read(value, shape, default, path, place)
        if result is not _ABSENT:
            return result
        _set_aside(place.notes, path, value)
    if is_object and isinstance(default, dict):
        return _read({}, shape, default, path, place)
    return list(default) if isinstance(default, list) else default


def _read(value: Any, shape: JsonObject, default: Any, path: str, place: _Place) -> Any:
    """Return `value` as `shape` wants it, else `_ABSENT`; what does not fit below it is set aside."""
    kinds = _kinds(shape)
    if "object" in kinds:
        if not isinstance(value, dict):
            return _ABSENT
        row = _ROWS.get("/".join("*" if step.isdigit() else step for step in path.split("/")[1:]))
        if path.startswith("/pheromone_types/"):
            row, place = _signal_type, place._replace(key=path.rpartition("/")[2])
        if row:
            value, default = row(value, place)
        default = default if isinstance(default, dict) else {}
        below = shape.get("additionalProperties")
        if not isinstance(below, dict):
            return _object(value, shape, default, path, place)
        entries = {
            name: _value(value.get(name), below, default.get(name, _ABSENT), f"{path}/{name}", place)
            for name in {**default, **value}
        }
        return {name: entry for name, entry in entries.items() if entry is not _ABSENT}
    if "array" in kinds:
        return _list(value, shape, default, path, place) if isinstance(value, list) else _ABSENT
    return _scalar(value, shape, place.notes)


def _object(value: JsonObject, shape: JsonObject, default: JsonObject, path: str, place: _Place) -> Any:
    properties, required = shape.get("properties", {}), shape.get("required", ())
    place = place._replace(owner=str(value.get("id") or default.get("id") or place.owner))
    members: JsonObject = {}
    for key, below in properties.items():
        resolved = _resolved(below, place.notes)
        fallback = default.get(key, below.get("default", _ABSENT))
        if fallback is _ABSENT and key in required and _kinds(resolved) & {"array", "object"} and not _nullable(below):  # fmt: skip
            fallback = [] if "array" in _kinds(resolved) else {}
        elif fallback is _ABSENT and _nullable(below) and (key in required or key in value):
            fallback = None
        if (
            fallback is _ABSENT
            and key in required
            and _scalar(value.get(key), resolved, place.notes) is _ABSENT
        ):
            return _ABSENT  # an entry is nothing without it
        members[key] = fallback
    for key, below in properties.items():
        members[key] = _value(value.get(key), below, members[key], f"{path}/{key}", place)
    unknown = {key: member for key, member in value.items() if key not in members}
    return unknown | {key: member for key, member in members.items() if member is not _ABSENT}


def _list(value: list[Any], shape: JsonObject, default: Any, path: str, place: _Place) -> Any:
    below = _resolved(shape.get("items", {}), place.notes)
    entries = []
    for index, raw in enumerate(value):
        is_blank = raw == "" and "string" in _kinds(below)
        entry = raw if is_blank else _read(raw, below, {}, f"{path}/{index}", place._replace(number=index))  # fmt: skip
        if entry is not _ABSENT:
            entries.append(entry)
        elif default is _ABSENT:
            return _ABSENT  # an optional list is kept or set aside as a whole
        else:
            _set_aside(place.notes, f"{path}/{index}", raw)
    return entries


def _scalar(value: Any, shape: JsonObject, notes: Notes) -> Any:
    """Return `value` if it fits `shape`, perhaps as a number, a time or a word in capitals; else `_ABSENT`."""
    kinds = _kinds(shape)
    if shape.get("format") == "date-time":
        return _instant(value) or _ABSENT
    if "enum" in shape and isinstance(value, str) and value not in shape["enum"]:
        value = value.upper()
    if kinds & {"number", "integer"} and isinstance(value, str | float):
        try:
            number = float(value)
            value = round(number) if "integer" in kinds else number
        except (ValueError, OverflowError):
            return _ABSENT
        if abs(number) == float("inf") or number != number:  # noqa: PLR0124 - NaN
            return _ABSENT
    if value == "" and "string" in kinds:
        return _ABSENT
    return value if fits(notes.document, shape, value) else _ABSENT


def _instant(value: Any) -> str:
    """Return a time as ours, UTC if it has no zone; empty if it is invalid, or before 1970."""
    try:
        instant = clock.parse(value)
    except InvalidInput:
        return ""
    return clock.stamp(instant) if instant >= _EPOCH else ""


def _instant_in(id_text: str) -> str:
    """Return the time at which an id says it was made, else the start of 1970."""
    parts = id_text.split("_")[1:]
    digits = next((part for part in parts if part.isdecimal() and len(part) in _DIGITS_OF_TIME), "0")
    return clock.stamp(_EPOCH + timedelta(microseconds=int(digits.ljust(16, "0"))))


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value.strip() else ""


def original_count(content: str) -> int:
    """Return the tokens of `content` by the rule of the original, so that its counts stay comparable.

    >>> original_count("seven c")
    2
    """
    return (len(content) + 3) // 4


def _item(raw: JsonObject, place: _Place) -> tuple[JsonObject, JsonObject]:
    item_id, metadata = _text(raw.get("id")) or f"wm_v2_{place.number}", raw.get("metadata")
    created = _instant(metadata.get("timestamp")) if isinstance(metadata, dict) else ""
    created = created or _instant_in(item_id)
    return raw, {
        "id": item_id,
        "token_count": original_count(_text(raw.get("content"))),
        "metadata": {"timestamp": created, "last_accessed": created},
    }


def _link(raw: JsonObject, place: _Place) -> tuple[JsonObject, JsonObject]:
    # Sessions have ids of any kind.
    target = str(raw.get("target_id"))
    kind = next((kind for start, kind in _LINK_TYPES.items() if target.startswith(start)), "short_term_session")  # fmt: skip
    link_id = f"link_v2_{place.owner}_{place.number}"
    return raw, {"link_id": link_id, "target_type": kind, "created_at": _instant_in(place.owner)}


def _session(raw: JsonObject, place: _Place) -> tuple[JsonObject, JsonObject]:
    ids = [text for key in ("id", "session_id") if (text := _text(raw.get(key)))]
    ids = ids or [f"session_v2_{place.number}"]
    phase = ids[0].partition("phase_")[2].partition("_")[0]
    # The ratio is computed, and a bare text is a statement without reason or effect.
    raw = {key: member for key, member in raw.items() if key != "compression_ratio"}
    for key, field in (("key_decisions", "decision"), ("outcomes", "result")):
        if isinstance(raw.get(key), list):
            raw[key] = [{field: entry} if isinstance(entry, str) else entry for entry in raw[key]]
    return raw, {
        "id": ids[0], "session_id": ids[-1], "phase": int(phase) if phase.isdecimal() and len(phase) < 10 else 0,
        "compressed_at": _instant_in(ids[0]), "compression_ratio": 0,
    }  # fmt: skip


def _pattern(raw: JsonObject, place: _Place) -> tuple[JsonObject, JsonObject]:
    pattern_id = _text(raw.get("id")) or f"pattern_v2_{place.number}"
    created = _instant(raw.get("created_at")) or _instant_in(pattern_id)
    return raw, {"id": pattern_id, "created_at": created, "last_seen": created}


def _signal_type(raw: JsonObject, place: _Place) -> tuple[JsonObject, JsonObject]:
    initial = place.notes.initial["pheromone_types"].get(place.key, {})
    half_life = _positive(raw.get("decay_rate"))
    return raw, {"half_life_seconds": half_life, "default_strength": NEW_STRENGTH} | initial


def _positive(value: Any, at_most: float = float("inf")) -> float | None:
    """Return `value` if it can be a half-life or a strength: a number above zero."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and 0 < value <= at_most else None


def _signal(raw: JsonObject, place: _Place) -> tuple[JsonObject, JsonObject]:
    name = _text(raw.get("type"))
    signal_id = _text(raw.get("id")) or f"{name.lower()}_v2_{place.number}"
    types = place.document.get("pheromone_types")
    own_type = types.get(name.upper()) if isinstance(types, dict) else None
    kind = place.notes.initial["pheromone_types"].get(name.upper(), {})
    kind = kind | (own_type if isinstance(own_type, dict) else {})
    return raw, {
        "id": signal_id,
        "strength": _positive(kind.get("default_strength"), at_most=1) or NEW_STRENGTH,
        "created_at": _instant_in(signal_id),
        "decay_rate": None if "decay_rate" in raw else _positive(kind.get("half_life_seconds")),
    }


def _worker(raw: JsonObject, _: _Place) -> tuple[JsonObject, JsonObject]:
    return raw, {"registered_at": _instant_in(str(raw.get("id")))}


def _checkin(raw: JsonObject, _: _Place) -> tuple[JsonObject, JsonObject]:
    is_decided = raw.get("queen_decision") is not None or raw.get("status") == "decided"
    status = "decided" if is_decided else "awaiting_review"
    return raw | ({"status": status} if raw.get("status") == "awaiting_review" else {}), {"status": status}


def _roadmap_phase(raw: JsonObject, place: _Place) -> tuple[JsonObject, JsonObject]:
    # The original counts by place: the first entry is phase 1.
    numbers = (_phase(raw.get(key)) for key in ("phase", "number", "id"))
    phase = next((number for number in numbers if number is not None), place.number + 1)
    words = _text(raw.get("status")).lower()
    status = next(
        (status for status, parts in _STATUS_WORDS.items() if any(part in words for part in parts)), ""
    )
    return raw | ({"status": status} if status else {}), {
        "phase": phase,
        "adaptation": {"adapted_from": max(0, phase - 1)},
    }


_ROWS: dict[str, Callable[[JsonObject, _Place], tuple[JsonObject, JsonObject]]] = {
    "working_memory/items/*": _item, "working_memory/items/*/associative_links/*": _link,
    "short_term_memory/sessions/*": _session, "long_term_memory/patterns/*": _pattern,
    "long_term_memory/patterns/*/associative_links/*": _link, "active_pheromones/*": _signal,
    "colony_status/workers/*": _worker, "colony_status/queen_checkin": _checkin, "phases/roadmap/*": _roadmap_phase,
}  # fmt: skip
"""The objects of the documents by their place: each with the object, perhaps with renamed fields, and its defaults."""


def _phase(value: Any) -> int | None:
    """Return the number of a phase, None for a fraction."""
    try:
        number = None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None
    return int(number) if number is not None and number >= 0 and number.is_integer() else None


def _colony(value: JsonObject, notes: Notes) -> JsonObject:
    """Return the original's state with the names of ours."""
    value = dict(value)
    if isinstance(value.get("checkpoints"), list):
        # The original's own list names files that are not our snapshots.
        value["checkpoints"] = {"v2": value["checkpoints"]}
    machine, status = value.get("state_machine"), value.get("colony_status")
    states = notes.initial["state_machine"]["states"]
    if isinstance(machine, dict):
        if machine.get("states") not in (None, "", states):
            _set_aside(notes, "/state_machine/states", machine["states"])
        value["state_machine"] = {**machine, "states": states}
    if isinstance(status, dict) and isinstance(status.get("phases_completed"), list):
        completed: list[int] = []
        for index, raw in enumerate(status["phases_completed"]):
            phase = _phase(raw.get("phase", raw.get("id")) if isinstance(raw, dict) else raw)
            if phase is None or isinstance(raw, dict):
                _set_aside(notes, f"/colony_status/phases_completed/{index}", raw)
            if phase is not None and phase not in completed:
                completed.append(phase)
        value["colony_status"] = {**status, "phases_completed": completed}
    return value


def _finish_colony(document: JsonObject) -> None:
    status, machine, phases = document["colony_status"], document["state_machine"], document["phases"]
    status["workers"] = _unique(status["workers"])
    status["workers_registered"] = max(status["workers_registered"], len(status["workers"]))
    history = machine["state_history"]
    machine["transitions_count"] = max(machine["transitions_count"], len(history))
    machine["last_transition"] = machine["last_transition"] or (history[-1]["timestamp"] if history else None)
    phases["roadmap"].sort(key=lambda phase: phase["phase"])


def _finish_memory(document: JsonObject) -> None:
    working, short, long = (document[f"{layer}_memory"] for layer in ("working", "short_term", "long_term"))
    for session in short["sessions"]:
        original, compressed = session["original_tokens"], session["compressed_tokens"]
        session["compression_ratio"] = round(original / compressed, 2) if compressed else 0
    for layer, key in ((working, "items"), (short, "sessions"), (long, "patterns")):
        layer[key] = _unique(layer[key])
    working["current_tokens"] = sum(item["token_count"] for item in working["items"])
    short["current_sessions"] = len(short["sessions"])
    metrics = document["metrics"]
    if not metrics["compression_ratio_total"]:
        total = metrics["average_compression_ratio"] * metrics["total_compressions"]
        metrics["compression_ratio_total"] = round(total, 2)


def _finish_pheromones(document: JsonObject) -> None:
    document["active_pheromones"] = _unique(document["active_pheromones"])


_FINISH = {"memory": _finish_memory, "pheromones": _finish_pheromones, "COLONY_STATE": _finish_colony}


def _unique(entries: list[JsonObject]) -> list[JsonObject]:
    """Return the entries with every id once: a repeated id gets a new suffix, exact copies are dropped.

    `metadata.renamed_from` keeps the old id.
    """
    contents: dict[str, set[str]] = {}
    result, ids = [], {entry["id"] for entry in entries}
    for entry in entries:
        old, content = entry["id"], json.dumps(entry)
        if old not in contents:
            result.append(entry)
        elif content not in contents[old]:
            fresh = next(name for number in count(2) if (name := f"{old}_{number}") not in ids)
            ids.add(fresh)
            renamed = {**entry, "id": fresh, "metadata": {**entry.get("metadata", {}), "renamed_from": old}}
            result.append(renamed | ({"session_id": fresh} if entry.get("session_id") == old else {}))
        contents.setdefault(old, set()).add(content)
    return result

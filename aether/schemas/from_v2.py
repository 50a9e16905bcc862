"""Version 2 to 3: documents of the original colony become ours, read leniently.

One walk along the JSON schema of a document reads every field: numbers may be text, times may lack a zone.
Missing fields get the default that the schema, the initial document or a function below gives. Unreadable
values are kept word for word under `unplaced`; unknown fields stay. Nothing here raises on an odd shape, and the
same input gives the same result, because a document may be read many times before anyone commits.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count as count_from
from typing import Any, NamedTuple

from aether import clock
from aether.errors import InvalidInput
from aether.schemas.check import schema
from aether.types import JsonObject

# Marks a missing value: None is a value in many fields.
_ABSENT: Any = object()
# Ids of the original end in the second they were made, ours in the microsecond; later digits are a hash.
_DIGITS_OF_TIME, _PHASE_DIGITS = (16, 10), 9
# Places of phase numbers: a fraction there is no phase, elsewhere whole numbers are rounded.
_PHASE_PLACES = ("/phase", "/current_phase", "/adapted_from")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Beyond this a JSON number is no longer exact in every reader (2**53 - 1).
_MAX_WHOLE = 9_007_199_254_740_991
# Words for how far a phase is, in the order in which they are tried ("not started" holds "started").
_STATUS_WORDS = {
    "planned": ("plan", "pending", "todo", "not", "future"),
    "completed": ("complete", "done", "finish"),
    "in_progress": ("progress", "active", "execut", "running", "current", "start"),
}
# The first strength of a signal whose type has no default: neither faint nor overruling.
NEW_STRENGTH = 0.5


class Notes(NamedTuple):
    """The document that is converted, and its values without a place; the list grows while it runs."""

    document: str
    unplaced: list[JsonObject]


def convert(name: str, value: Any, initial: JsonObject, *, notes: Notes) -> JsonObject:
    """Return the document `name` of version 3; `initial` is the empty one, oddities go to `notes`."""
    if not isinstance(value, dict):
        _set_aside(notes, "/", value)
        value = {}
    # The version is set by `migrations.current`.
    value = {key: below for key, below in value.items() if key != "schema_version"}
    if not isinstance(value.get("unplaced", []), list):
        _set_aside(notes, "/unplaced", value["unplaced"])
    if name == "memory":
        return _memory(value, initial, notes)
    if name in ("pheromones", "COLONY_STATE"):
        return (_pheromones if name == "pheromones" else _colony)(value, initial, notes)
    # The original did not have the others: only their members are checked, not the content of these.
    members = schema(name)["properties"].items()
    shallow = {"properties": {key: {"type": below["type"]} for key, below in members if "type" in below}}
    found: JsonObject = _read_object(value, shallow, initial, "", notes)
    return found


def _set_aside(notes: Notes, place: str, value: Any) -> None:
    notes.unplaced.append({"where": place, "value": value})


# The walk: `default` mirrors the document. In it a function is used for an object, or for each object of a list: it
# takes the object and its place in the list, and returns the object, perhaps with renamed fields, and its defaults.


def _fit(value: Any, shape: JsonObject, default: Any, place: str, notes: Notes) -> Any:
    """Return `value` as `shape` wants it, else the default, else `_ABSENT`; unreadable values are set aside."""
    nullable = _nullable(shape)
    shape = _resolved(shape, notes)
    empty = value is None or value == "" or (value == {} and nullable and "object" in _types(shape))
    if not empty:
        found = _read(value, shape, default, place, notes)
        if found is not _ABSENT:
            return found
        _set_aside(notes, place, value)
    if isinstance(default, dict) and "object" in _types(shape):
        return _read({}, shape, default, place, notes)
    if callable(default):
        return None if nullable else []
    return list(default) if isinstance(default, list) else default


def _read(value: Any, shape: JsonObject, default: Any, place: str, notes: Notes) -> Any:
    """Return `value` as `shape` wants it, else `_ABSENT`; unreadable values below it are set aside."""
    kinds = _types(shape)
    if "object" in kinds:
        if not isinstance(value, dict):
            return _ABSENT
        if callable(default):
            value, default = default(value, int(place.rpartition("/")[2]) if place[-1:].isdigit() else 0)
        default = default if isinstance(default, dict) else {}
        below = shape.get("additionalProperties")
        if not isinstance(below, dict):
            return _read_object(value, shape, default, place, notes)
        entries = {
            name: _fit(value.get(name), below, default.get(name, _ABSENT), f"{place}/{name}", notes)
            for name in {**default, **value}
        }
        return {name: entry for name, entry in entries.items() if entry is not _ABSENT}
    if "array" in kinds:
        return _read_list(value, shape, default, place, notes)
    return _scalar(value, shape, place)


def _read_object(value: JsonObject, shape: JsonObject, default: JsonObject, place: str, notes: Notes) -> Any:
    known: JsonObject = {}
    properties, required = shape.get("properties", {}), shape.get("required", ())
    for key, below in properties.items():
        known[key] = default.get(key, below.get("default", _ABSENT))
        if known[key] is not _ABSENT:
            continue
        resolved = _resolved(below, notes)
        if key in required and _types(resolved) & {"array", "object"} and not _nullable(below):
            known[key] = [] if "array" in _types(resolved) else {}
        elif _nullable(below) and (key in required or key in value):
            known[key] = None
        elif key in required and _scalar(value.get(key), resolved, f"{place}/{key}") is _ABSENT:
            return _ABSENT  # an entry is nothing without it
    for key, below in properties.items():
        known[key] = _fit(value.get(key), below, known[key], f"{place}/{key}", notes)
    kept = {key: below for key, below in value.items() if key not in known}
    return kept | {key: below for key, below in known.items() if below is not _ABSENT}


def _read_list(value: Any, shape: JsonObject, default: Any, place: str, notes: Notes) -> Any:
    if not isinstance(value, list):
        return _ABSENT
    below = _resolved(shape.get("items", {}), notes)
    kept = []
    for nth, raw in enumerate(value):
        here = f"{place}/{nth}"
        blank = isinstance(raw, str) and "string" in _types(below)
        found = raw if blank else _read(raw, below, default if callable(default) else {}, here, notes)
        if found is not _ABSENT:
            kept.append(found)
        elif default is _ABSENT:
            return _ABSENT  # an optional list is kept or set aside as a whole
        else:
            _set_aside(notes, here, raw)
    return kept


def _scalar(value: Any, shape: JsonObject, place: str = "") -> Any:
    kinds = _types(shape)
    allowed = shape.get("enum") or ([shape["const"]] if "const" in shape else None)
    if allowed:
        found = value if value in allowed else str(value).upper()
        return found if found in allowed and found is not None else _ABSENT
    if "string" in kinds:
        return _or_absent(_instant(value) if shape.get("format") == "date-time" else _text(value))
    if "integer" in kinds:
        return _or_absent(_bounded(_phase(value) if _holds_phase(place) else _whole(value), shape))
    if "number" in kinds:
        return _or_absent(_bounded(_number(value), shape))
    if "boolean" in kinds:
        return value if isinstance(value, bool) else _ABSENT
    return value


def _or_absent(value: Any) -> Any:
    return _ABSENT if value is None else value


def _types(shape: JsonObject) -> set[str]:
    kinds = shape.get("type", ())
    return {kinds} if isinstance(kinds, str) else set(kinds)


def _nullable(shape: JsonObject) -> bool:
    options = shape.get("anyOf", [shape])
    return any("null" in _types(one) or None in one.get("enum", ()) for one in options)


def _resolved(shape: JsonObject, notes: Notes) -> JsonObject:
    named = next((one["$ref"] for one in (shape, *shape.get("anyOf", ())) if "$ref" in one), None)
    return schema(notes.document)["$defs"][named.rpartition("/")[2]] if named else shape


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    fits = isinstance(value, int | float) and not isinstance(value, bool)
    return value if fits and abs(value) <= _MAX_WHOLE else None  # which NaN is not


def _whole(value: Any) -> int | None:
    found = _number(value)
    return None if found is None or found < 0 else round(found)


def _phase(value: Any) -> int | None:
    found = _whole(value)
    return found if found == _number(value) else None


def _bounded(found: float | None, shape: JsonObject) -> float | None:
    """Return `found` within the bounds of `shape`; a share is brought into them, any other number must be in them."""
    if found is None:
        return None
    above: float = shape.get("exclusiveMinimum", -math.inf)
    least: float = shape.get("minimum", above)
    most: float = shape.get("maximum", math.inf)
    if most < math.inf and "integer" not in _types(shape):
        found = min(most, max(found, least))
    return found if above < found and least <= found <= most else None


def _instant(value: Any) -> str | None:
    try:
        found = clock.parse(value)
    except InvalidInput:
        return None
    return clock.stamp(found) if found >= _EPOCH else None


def _instant_in(id_text: str) -> str:
    """Return the time at which an id says it was made, else the start of 1970."""
    parts = id_text.split("_")[1:]
    digits = next((part for part in parts if part.isdecimal() and len(part) in _DIGITS_OF_TIME), "0")
    return clock.stamp(_EPOCH + timedelta(microseconds=int(digits.ljust(16, "0"))))


def _holds_phase(place: str) -> bool:
    return place.endswith(_PHASE_PLACES) or place.rpartition("/")[0].endswith("/related_phases")


def _unique(found: list[JsonObject]) -> list[JsonObject]:
    """Return the entries with every id once: a repeated id gets a new suffix, exact copies are dropped.

    `metadata.renamed_from` keeps the old id.
    """
    seen: dict[str, set[str]] = {}
    result = []
    taken = {entry["id"] for entry in found}
    for entry in found:
        old, content = entry["id"], json.dumps(entry)
        if old not in seen:
            result.append(entry)
        elif content not in seen[old]:
            fresh = next(name for nth in count_from(2) if (name := f"{old}_{nth}") not in taken)
            taken.add(fresh)
            renamed = {**entry, "id": fresh, "metadata": {**entry.get("metadata", {}), "renamed_from": old}}
            result.append(renamed | ({"session_id": fresh} if entry.get("session_id") == old else {}))
        seen.setdefault(old, set()).add(content)
    return result


# memory.json


def _memory(value: JsonObject, initial: JsonObject, notes: Notes) -> JsonObject:
    default = {
        **initial,
        "working_memory": {**initial["working_memory"], "items": _item},
        "short_term_memory": {**initial["short_term_memory"], "sessions": _session},
        "long_term_memory": {**initial["long_term_memory"], "patterns": _pattern},
    }
    found: JsonObject = _read(value, schema("memory"), default, "", notes)
    working, short, long = (found[f"{layer}_memory"] for layer in ("working", "short_term", "long_term"))
    for session in short["sessions"]:
        original, compressed = session["original_tokens"], session["compressed_tokens"]
        session["compression_ratio"] = round(original / compressed, 2) if compressed else 0
    for layer, key in ((working, "items"), (short, "sessions"), (long, "patterns")):
        layer[key] = _unique(layer[key])
    working["current_tokens"] = sum(item["token_count"] for item in working["items"])
    short["current_sessions"] = len(short["sessions"])
    metrics = found["metrics"]
    if not metrics["compression_ratio_total"]:
        total = metrics["average_compression_ratio"] * metrics["total_compressions"]
        metrics["compression_ratio_total"] = round(total, 2)
    return found


def original_count(content: str) -> int:
    """Return the tokens of `content` by the rule of the original, so that its counts stay comparable.

    >>> original_count("seven c")
    2
    """
    return (len(content) + 3) // 4


def _item(raw: JsonObject, nth: int) -> tuple[JsonObject, JsonObject]:
    item_id = _text(raw.get("id")) or f"wm_v2_{nth}"
    metadata = raw.get("metadata")
    made = _instant(metadata.get("timestamp")) if isinstance(metadata, dict) else None
    made = made or _instant_in(item_id)
    content = _text(raw.get("content"))
    return raw, {
        "id": item_id,
        "token_count": original_count(content) if content and _whole(raw.get("token_count")) is None else 0,
        "metadata": {"timestamp": made, "last_accessed": made},
        "associative_links": partial(_link, owner=item_id, made=made),
    }


def _link(raw: JsonObject, nth: int, *, owner: str, made: str) -> tuple[JsonObject, JsonObject]:
    # Sessions have ids of any kind.
    kinds = {"wm_": "working_memory_item", "pattern_": "long_term_pattern"}
    target = str(raw.get("target_id"))
    kind = next((kind for start, kind in kinds.items() if target.startswith(start)), "short_term_session")
    return raw, {"link_id": f"link_v2_{owner}_{nth}", "target_type": kind, "created_at": made}


def _session(raw: JsonObject, nth: int) -> tuple[JsonObject, JsonObject]:
    ids = [found for key in ("id", "session_id") if (found := _text(raw.get(key)))] or [f"session_v2_{nth}"]
    in_id = ids[0].partition("phase_")[2].partition("_")[0]
    # The ratio is computed, and a bare text is a statement without reason or effect.
    raw = {key: below for key, below in raw.items() if key != "compression_ratio"}
    for key, field in (("key_decisions", "decision"), ("outcomes", "result")):
        if isinstance(raw.get(key), list):
            raw[key] = [{field: entry} if isinstance(entry, str) else entry for entry in raw[key]]
    default = {
        "id": ids[0],
        "session_id": ids[-1],
        "phase": int(in_id) if in_id.isdecimal() and len(in_id) <= _PHASE_DIGITS else 0,
    }
    return raw, default | {"compressed_at": _instant_in(ids[0]), "compression_ratio": 0}


def _pattern(raw: JsonObject, nth: int) -> tuple[JsonObject, JsonObject]:
    pattern_id = _text(raw.get("id")) or f"pattern_v2_{nth}"
    made = _instant(raw.get("created_at")) or _instant_in(pattern_id)
    links = partial(_link, owner=pattern_id, made=made)
    return raw, {"id": pattern_id, "created_at": made, "last_seen": made, "associative_links": links}


# pheromones.json


def _pheromones(value: JsonObject, initial: JsonObject, notes: Notes) -> JsonObject:
    given = value.get("pheromone_types")
    types = dict(initial["pheromone_types"])
    for name, raw in given.items() if isinstance(given, dict) else ():
        if name not in types and isinstance(raw, dict):
            half_life = _bounded(_number(raw.get("decay_rate")), {"exclusiveMinimum": 0})
            types[name] = {"half_life_seconds": half_life}
    shape = schema("pheromones")["properties"]["pheromone_types"]
    types = _fit(given, shape, types, "/pheromone_types", notes)
    default = {**initial, "pheromone_types": types, "active_pheromones": partial(_signal, types=types)}
    found: JsonObject = _read({**value, "pheromone_types": types}, schema("pheromones"), default, "", notes)
    found["active_pheromones"] = _unique(found["active_pheromones"])
    return found


def _signal(raw: JsonObject, nth: int, *, types: Mapping[str, JsonObject]) -> tuple[JsonObject, JsonObject]:
    name = _text(raw.get("type")) or ""
    kind = types.get(name.upper(), {"half_life_seconds": None, "default_strength": NEW_STRENGTH})
    signal_id = _text(raw.get("id")) or f"{name.lower()}_v2_{nth}"
    return raw, {
        "id": signal_id,
        "strength": kind["default_strength"],
        "created_at": _instant_in(signal_id),
        "decay_rate": None if "decay_rate" in raw else kind["half_life_seconds"],
    }


# COLONY_STATE.json


def _colony(value: JsonObject, initial: JsonObject, notes: Notes) -> JsonObject:
    value = dict(value)
    if isinstance(value.get("checkpoints"), list):
        # The original's own list names files that are not our snapshots.
        value["checkpoints"] = {"v2": value["checkpoints"]}
    machine, status = value.get("state_machine"), value.get("colony_status")
    states = initial["state_machine"]["states"]
    if isinstance(machine, dict):
        if machine.get("states") not in (None, "", states):
            _set_aside(notes, "/state_machine/states", machine["states"])
        value["state_machine"] = {**machine, "states": states}
    if isinstance(status, dict) and isinstance(status.get("phases_completed"), list):
        value["colony_status"] = {**status, "phases_completed": _completed(status["phases_completed"], notes)}
    default = {
        **initial,
        "colony_status": {
            **initial["colony_status"],
            "workers": lambda raw, _: (raw, {"registered_at": _instant_in(str(raw.get("id")))}),
            "queen_checkin": _checkin,
        },
        "phases": {"roadmap": _roadmap_phase},
    }
    found: JsonObject = _read(value, schema("COLONY_STATE"), default, "", notes)
    status, machine, phases = found["colony_status"], found["state_machine"], found["phases"]
    status["workers"] = _unique(status["workers"])
    status["workers_registered"] = max(status["workers_registered"], len(status["workers"]))
    history = machine["state_history"]
    machine["transitions_count"] = max(machine["transitions_count"], len(history))
    machine["last_transition"] = machine["last_transition"] or (history[-1]["timestamp"] if history else None)
    phases["roadmap"] = sorted(phases["roadmap"], key=lambda phase: phase["phase"])
    return found


def _completed(listed: list[Any], notes: Notes) -> list[int]:
    completed: list[int] = []
    for nth, raw in enumerate(listed):
        phase = _phase(raw.get("phase", raw.get("id")) if isinstance(raw, dict) else raw)
        if phase is None or isinstance(raw, dict):
            _set_aside(notes, f"/colony_status/phases_completed/{nth}", raw)
        if phase is not None and phase not in completed:
            completed.append(phase)
    return completed


def _checkin(raw: JsonObject, _: int) -> tuple[JsonObject, JsonObject]:
    decided = raw.get("queen_decision") is not None or raw.get("status") == "decided"
    status = "decided" if decided else "awaiting_review"
    return raw | ({"status": status} if raw.get("status") == "awaiting_review" else {}), {"status": status}


def _roadmap_phase(raw: JsonObject, nth: int) -> tuple[JsonObject, JsonObject]:
    # The original counts by place: the first entry is phase 1.
    numbers = (_phase(raw.get(key)) for key in ("phase", "number", "id"))
    phase = next((found for found in numbers if found is not None), nth + 1)
    words = (_text(raw.get("status")) or "").lower()
    status = next(
        (status for status, meant in _STATUS_WORDS.items() if any(map(words.__contains__, meant))), None
    )
    return raw | ({"status": status} if status else {}), {
        "phase": phase,
        "adaptation": lambda old, _: (old, {"adapted_from": max(0, phase - 1)}),
    }

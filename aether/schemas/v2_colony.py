"""Version 2 to 3 of `pheromones` and `COLONY_STATE`: the original colony becomes ours.

Types, sensitivities and states that are missing are filled from the initial document; the original's
own fields stay. See `salvage` for what happens to odd values.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from aether.schemas.salvage import (
    Notes,
    entries,
    field,
    filled,
    fraction,
    half_life,
    instant,
    instant_in,
    listing,
    mapping,
    phase_number,
    set_aside,
    strength,
    text,
    texts,
    unique,
    whole,
)
from aether.shapes import JsonObject

# What a signal of a type without a default starts with: neither faint nor overruling.
NEW_STRENGTH = 0.5
# Words for how far a phase is, in the order in which they are tried ("not started" holds "started").
_STATUS_WORDS = {
    "planned": re.compile(r"plan|pending|todo|not|future", re.IGNORECASE),
    "completed": re.compile(r"complete|done|finish", re.IGNORECASE),
    "in_progress": re.compile(r"progress|active|execut|running|current|start", re.IGNORECASE),
}
_CHECKIN_STATUSES = ("awaiting_review", "decided")
_DECISIONS = ("continue", "adjust", "redo")


def pheromones_v2_to_v3(document: JsonObject, *, initial: JsonObject, notes: Notes) -> JsonObject:
    """Return the pheromones document of version 3; what is odd is in `notes`."""
    found: JsonObject = filled(
        document, {**initial, "pheromone_types": {}, "caste_sensitivities": {}}, "", notes
    )
    types = _table(found["pheromone_types"], partial(_signal_type, initial), "/pheromone_types", notes)
    types = {**initial["pheromone_types"], **types}
    castes = _table(found["caste_sensitivities"], _sensitivity, "/caste_sensitivities", notes)
    for caste, felt in initial["caste_sensitivities"].items():
        castes[caste] = {**felt, **castes.get(caste, {})}
    signals = entries(found, "active_pheromones", partial(_signal, types=types), place="", notes=notes)
    return {
        **found,
        "active_pheromones": unique(signals, "/active_pheromones", notes),
        "pheromone_types": types,
        "caste_sensitivities": castes,
    }


def _table(table: JsonObject, read: Any, place: str, notes: Notes) -> JsonObject:
    result = {}
    for name, raw in table.items():
        if isinstance(raw, dict):
            result[name] = read(name, raw, f"{place}/{name}", notes)
        else:
            set_aside(notes, f"{place}/{name}", raw, "an object")
    return result


def _signal_type(initial: JsonObject, name: str, raw: JsonObject, place: str, notes: Notes) -> JsonObject:
    base = initial["pheromone_types"].get(name, {})
    lasting = base.get("half_life_seconds", half_life(raw.get("decay_rate")))
    effect = base.get("effect", "")
    return {
        **raw,
        "half_life_seconds": field(raw, "half_life_seconds", half_life, lasting, place=place, notes=notes),
        "default_strength": field(
            raw,
            "default_strength",
            strength,
            base.get("default_strength", NEW_STRENGTH),
            place=place,
            notes=notes,
        ),
        "effect": field(raw, "effect", text, effect, place=place, notes=notes),
    }


def _sensitivity(name: str, raw: JsonObject, place: str, notes: Notes) -> JsonObject:
    del name
    felt = {key: field(raw, key, fraction, None, place=place, notes=notes) for key in raw}
    return {key: value for key, value in felt.items() if value is not None}


def _signal(raw: JsonObject, place: str, notes: Notes, *, types: JsonObject) -> JsonObject | None:
    name = text(raw.get("type"))
    if name is None:
        return None
    kind = types.get(name.upper(), {"half_life_seconds": None, "default_strength": NEW_STRENGTH})
    signal_id = field(
        raw, "id", text, f"{name.lower()}_v2_{place.rpartition('/')[2]}", place=place, notes=notes
    )
    lasting = kind["half_life_seconds"] if "decay_rate" not in raw else None
    return {
        **raw,
        "id": signal_id,
        "type": name,
        "strength": field(raw, "strength", strength, kind["default_strength"], place=place, notes=notes),
        "created_at": field(raw, "created_at", instant, instant_in(signal_id), place=place, notes=notes),
        "decay_rate": field(raw, "decay_rate", half_life, lasting, place=place, notes=notes),
        "metadata": _signal_metadata(raw, place, notes),
    }


def _signal_metadata(raw: JsonObject, place: str, notes: Notes) -> JsonObject:
    metadata = dict(field(raw, "metadata", mapping, {}, place=place, notes=notes))
    words = ("source", "caste", "context", "event", "pattern_id")
    for key, read in {**dict.fromkeys(words, text), "phase": phase_number}.items():
        if key in metadata:
            metadata[key] = field(metadata, key, read, None, place=f"{place}/metadata", notes=notes)
            if metadata[key] is None and key != "caste":
                del metadata[key]
    return metadata


def colony_v2_to_v3(document: JsonObject, *, initial: JsonObject, notes: Notes) -> JsonObject:
    """Return the COLONY_STATE document of version 3; what is odd is in `notes`."""
    if isinstance(document.get("checkpoints"), list):
        # The original's own list names files that are not our snapshots.
        document = {**document, "checkpoints": {"v2": document["checkpoints"]}}
    found: JsonObject = filled(document, initial, "", notes)
    states = initial["state_machine"]["states"]
    machine = found["state_machine"]
    if machine["states"] != states:
        set_aside(notes, "/state_machine/states", machine["states"], "the list of states")
    entry = partial(_history_entry, states=states)
    history = entries(machine, "state_history", entry, place="/state_machine", notes=notes)
    last = history[-1]["timestamp"] if history else None
    count = field(machine, "transitions_count", whole, 0, place="/state_machine", notes=notes)
    machine = {
        **machine,
        "states": states,
        "transitions_count": max(count, len(history)),
        "last_transition": field(
            machine, "last_transition", instant, last, place="/state_machine", notes=notes
        ),
        "state_history": history,
    }
    roadmap = entries(found["phases"], "roadmap", _roadmap_phase, place="/phases", notes=notes)
    automatic = texts(found["checkpoints"], "automatic", place="/checkpoints", notes=notes)
    return {
        **found,
        "goal": field(found, "goal", text, None, place="", notes=notes),
        "colony_status": _status(found["colony_status"], states, notes),
        "state_machine": machine,
        "checkpoints": {**found["checkpoints"], "automatic": automatic},
        "phases": {**found["phases"], "roadmap": sorted(roadmap, key=lambda phase: phase["phase"])},
    }


def _state(states: list[str], value: Any) -> str | None:
    named = value.upper() if isinstance(value, str) else None
    return named if named in states else None


def _status(status: JsonObject, states: list[str], notes: Notes) -> JsonObject:
    place = "/colony_status"
    completed: list[int] = []
    for at, raw in enumerate(field(status, "phases_completed", listing, [], place=place, notes=notes)):
        phase = phase_number(raw.get("phase", raw.get("id")) if isinstance(raw, dict) else raw)
        if phase is None or isinstance(raw, dict):
            set_aside(notes, f"{place}/phases_completed/{at}", raw, "a phase number")
        if phase is not None and phase not in completed:
            completed.append(phase)
    workers = unique(entries(status, "workers", _worker, place=place, notes=notes), f"{place}/workers", notes)
    registered = field(status, "workers_registered", whole, 0, place=place, notes=notes)
    return {
        **status,
        "state": field(status, "state", partial(_state, states), "IDLE", place=place, notes=notes),
        "current_phase": field(status, "current_phase", phase_number, None, place=place, notes=notes),
        "phases_completed": completed,
        "queen_checkin": _checkin(status, place, notes),
        "workers": workers,
        "workers_registered": max(registered, len(workers)),
    }


def _worker(raw: JsonObject, place: str, notes: Notes) -> JsonObject | None:
    worker_id = text(raw.get("id"))
    if worker_id is None:
        return None
    return {
        **raw,
        "id": worker_id,
        "caste": field(raw, "caste", text, None, place=place, notes=notes),
        "task": field(raw, "task", text, None, place=place, notes=notes),
        "registered_at": field(
            raw, "registered_at", instant, instant_in(worker_id), place=place, notes=notes
        ),
    }


def _checkin(status: JsonObject, place: str, notes: Notes) -> JsonObject | None:
    raw = field(status, "queen_checkin", mapping, None, place=place, notes=notes)
    if not raw:
        return None
    here = f"{place}/queen_checkin"
    phase = phase_number(raw.get("phase"))
    if phase is None:
        set_aside(notes, here, raw, "a check-in with a phase")
        return None
    decision = field(raw, "queen_decision", _decision, None, place=here, notes=notes)
    status_word = field(raw, "status", _checkin_status, None, place=here, notes=notes)
    decided = raw.get("queen_decision") is not None or status_word == "decided"
    checkin = {
        **raw,
        "phase": phase,
        "status": "decided" if decided else "awaiting_review",
        "timestamp": field(raw, "timestamp", instant, instant_in(""), place=here, notes=notes),
        "queen_decision": decision,
    }
    for key, read in {"decided_at": instant, "note": text}.items():
        if key in raw:
            checkin[key] = field(raw, key, read, None, place=here, notes=notes)
            if checkin[key] is None:
                del checkin[key]
    return checkin


def _checkin_status(value: Any) -> str | None:
    return value if value in _CHECKIN_STATUSES else None


def _decision(value: Any) -> str | None:
    return value if value in _DECISIONS else None


def _history_entry(raw: JsonObject, place: str, notes: Notes, *, states: list[str]) -> JsonObject | None:
    before, after = _state(states, raw.get("from")), _state(states, raw.get("to"))
    if before is None or after is None:
        return None
    return {
        **raw,
        "from": before,
        "to": after,
        "trigger": field(raw, "trigger", text, "manual", place=place, notes=notes),
        "timestamp": field(raw, "timestamp", instant, instant_in(""), place=place, notes=notes),
        "checkpoint": field(raw, "checkpoint", text, None, place=place, notes=notes),
    }


def _roadmap_phase(raw: JsonObject, place: str, notes: Notes) -> JsonObject | None:
    # The original counts by place: the first entry is phase 1.
    by_place = int(place.rpartition("/")[2]) + 1
    others = (phase_number(raw.get(key)) for key in ("number", "id"))
    numbered = next((found for found in others if found is not None), by_place)
    phase = field(raw, "phase", phase_number, numbered, place=place, notes=notes)
    return {
        **raw,
        "phase": phase,
        "name": field(raw, "name", text, None, place=place, notes=notes),
        "goal": field(raw, "goal", text, None, place=place, notes=notes),
        "status": field(raw, "status", _phase_status, "planned", place=place, notes=notes),
        "started_at": field(raw, "started_at", instant, None, place=place, notes=notes),
        "completed_at": field(raw, "completed_at", instant, None, place=place, notes=notes),
        "adaptation": _adaptation(raw, phase, place, notes),
    }


def _phase_status(value: Any) -> str | None:
    words = value if isinstance(value, str) else ""
    return next((status for status, meant in _STATUS_WORDS.items() if meant.search(words)), None)


def _adaptation(raw: JsonObject, phase: int, place: str, notes: Notes) -> JsonObject | None:
    old = field(raw, "adaptation", mapping, None, place=place, notes=notes)
    if not old:
        return None
    here = f"{place}/adaptation"
    result = {
        **old,
        "adapted_from": field(old, "adapted_from", phase_number, max(0, phase - 1), place=here, notes=notes),
        "adapted_at": field(old, "adapted_at", instant, instant_in(""), place=here, notes=notes),
    }
    for key in ("inherited_focus", "inherited_constraints", "success_patterns", "failure_patterns"):
        result[key] = texts(old, key, place=here, notes=notes)
    return result

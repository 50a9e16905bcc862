"""Signals: pheromones, typed strengths that decay by half-life.

The document is `pheromones`. Decay is monotone and depends on age alone (decaying by a and then by b
is decaying by a + b), and deposits commute. No signal is lost: expired and withdrawn ones move to the
append-only file `events`. A clock that was set back makes a signal fresh, never stronger than it was.

    current = strength * 0.5 ** (age / half_life)        effective = current * sensitivity of the caste

`phases` decides which signals a phase causes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from aether import clock
from aether.errors import InvalidInput, one_of, shown
from aether.memory.colony import check_phase, phase_number
from aether.store.patch import chain_changes
from aether.types import Change

if TYPE_CHECKING:
    from aether.clock import NewId
    from aether.types import ActiveSignal, JsonObject, Operation, Patch, Signal, SignalType

DOCUMENT = "pheromones"
# At this strength and below, a signal is not active (facts of the original colony).
MIN_STRENGTH = 0.1
# The sensitivity of a caste or type that the table does not list: a colony may have castes of its own,
# and a misspelt name must never hide a constraint.
FULL_SENSITIVITY = 1.0
# While work runs, new FOCUS or REDIRECT would disturb it, so they are queued; the original calls this emergence.
GUARDED_STATE = "EXECUTING"
GUARDED_TYPES = frozenset({"FOCUS", "REDIRECT"})
# The boundary signal; files of the original spell it in lower case, or as an event in the metadata.
PHASE_COMPLETE = "PHASE_COMPLETE"


# Half-lives in seconds and strengths are those of the original colony; CHECKIN, PHASE_COMPLETE and
# TOKEN_THRESHOLD hold until they are answered, so they do not decay.
TYPES: dict[str, SignalType] = {
    name: {"half_life_seconds": half_life, "default_strength": strength, "effect": effect}
    for name, half_life, strength, effect in (
        ("INIT", None, 1.0, "goal: what the colony is for"),
        ("FOCUS", 3600, 0.7, "attract: work here first, keep more of it"),
        ("REDIRECT", 86400, 0.9, "repel: a constraint, work elsewhere or otherwise"),
        ("FEEDBACK", 21600, 0.5, "variable: what the Queen thinks of the work"),
        ("CHECKIN", None, 1.0, "boundary: a phase waits for the Queen"),
        (PHASE_COMPLETE, None, 1.0, "boundary: a phase is done, its work may be compressed"),
        ("TOKEN_THRESHOLD", None, 1.0, "note: working memory passed its threshold, compression is needed"),
    )
}


def emit(
    pheromones: Mapping[str, Any], type: str, context: str, *, now: datetime, id: str,
    strength: float | None = None, source: str = "queen", caste: str | None = None,
    colony_state: str | None = None, phase: int | None = None, metadata: Mapping[str, Any] | None = None,
) -> Change:  # fmt: skip
    """Return the change that deposits one signal; its result is the signal.

    `colony_state` is the present state of the colony: while it is EXECUTING, FOCUS and REDIRECT are queued until
    `release`. `metadata` adds the caller's own keys.

    Raises:
        InvalidInput: the type is unknown, the context is empty, the strength is not in (0, 1], or the phase
            is not a phase number.
    """
    table: dict[str, SignalType] = {**TYPES, **pheromones["pheromone_types"]}
    spellings = (type, type.upper()) if isinstance(type, str) else ()
    name = next((spelling for spelling in spellings if spelling in table), None)
    if name is None:
        raise InvalidInput(f"{shown(type)} is not a type of signal.", fix=one_of(type, table), where="signal")
    if not isinstance(context, str) or not context.strip():
        raise InvalidInput(
            f"{shown(context)} says nothing.", fix="Say in words what the signal is about.", where="signal"
        )
    value = table[name]["default_strength"] if strength is None else strength
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise InvalidInput(
            f"{shown(value)} is not a strength.", fix="Use a number above 0, at most 1.", where="signal"
        )
    about: JsonObject = {**(metadata or {}), "source": source, "caste": caste, "context": context}
    if phase is not None:
        about["phase"] = phase
    if "phase" in about:
        about["phase"] = check_phase(about["phase"])
    for field in ("source", "event", "pattern_id"):
        if not isinstance(about.get(field, ""), str):
            raise InvalidInput(f"{field} is {shown(about[field])}.", fix="Use text.", where="signal")
    signal: Signal = {
        "id": id, "type": name, "strength": float(value), "created_at": clock.stamp(now),
        "decay_rate": table[name]["half_life_seconds"], "metadata": about,
    }  # fmt: skip
    if name in GUARDED_TYPES and colony_state == GUARDED_STATE:
        there = "queued" in pheromones
        path, queued = ("/queued/-", signal) if there else ("/queued", [signal])
        return Change({DOCUMENT: [{"op": "add", "path": path, "value": queued}]}, result=signal)
    return Change({DOCUMENT: [{"op": "add", "path": "/active_pheromones/-", "value": signal}]}, result=signal)


def deposit(
    documents: Mapping[str, Any], fields: Mapping[str, Any], *, now: datetime, new_id: NewId
) -> Change:
    """Return the change that emits a signal, whose `fields` are arguments of `emit`, and expires the faded ones.

    Its result is that of `deposited`.

    Raises:
        InvalidInput: as `emit`.
    """

    def emitted(state: Mapping[str, Any]) -> Change:
        return emit(
            state[DOCUMENT], fields["type"], fields["context"], now=now, id=new_id(fields["type"].lower(), now, 0),
            strength=fields["strength"], source=fields["source"], caste=fields["caste"], phase=fields["phase"],
            metadata=fields["metadata"], colony_state=state["COLONY_STATE"]["colony_status"]["state"],
        )  # fmt: skip

    change = chain_changes(documents, emitted, lambda state: expire(state[DOCUMENT], now))
    return change._replace(result=deposited(change.patches[DOCUMENT]))


def deposited(patch: Patch) -> tuple[Signal, bool]:
    """Return the signal that a patch of `deposit` adds, and whether it waits for the end of the running phase."""
    step = next(step for step in patch if step["op"] == "add")
    value = step["value"]
    signal: Signal = value[0] if isinstance(value, list) else value
    return signal, step["path"].startswith("/queued")


def queued_signals(pheromones: Mapping[str, Any]) -> list[Signal]:
    """Return the signals that wait for the end of the running phase."""
    signals: list[Signal] = pheromones.get("queued", [])
    return signals


def release(pheromones: Mapping[str, Any], *, colony_state: str, now: datetime) -> Change:
    """Return the change that deposits the queued signals, as of `now`, unless the colony is EXECUTING; its result is their ids."""
    signals = queued_signals(pheromones)
    if not signals or colony_state == GUARDED_STATE:
        return Change({}, result=[])
    patch: list[Operation] = [{"op": "replace", "path": "/queued", "value": []}]
    patch += [
        {"op": "add", "path": "/active_pheromones/-", "value": {**signal, "created_at": clock.stamp(now)}}
        for signal in signals
    ]
    return Change({DOCUMENT: patch}, result=[signal["id"] for signal in signals])


def context_of(signal: Mapping[str, Any]) -> str:
    """Return the text of a signal; empty without one."""
    return str(signal["metadata"].get("context") or "")


def decayed_strength(strength: float, *, age_seconds: float, half_life_seconds: float | None) -> float:
    """Return `strength` after `age_seconds` of decay; a negative age counts as 0.

    >>> decayed_strength(0.8, age_seconds=7200, half_life_seconds=3600)
    0.2
    """
    if half_life_seconds is None or age_seconds <= 0:
        return strength
    return strength * math.pow(0.5, age_seconds / half_life_seconds)


def strength_at(signal: Mapping[str, Any], now: datetime) -> float:
    """Return the strength of `signal` at `now`.

    Raises:
        InvalidInput: its `created_at` is not a time.
    """
    created = clock.parse(signal["created_at"], where=f"{DOCUMENT} {shown(signal['id'])}")
    age = (now - created).total_seconds()
    return decayed_strength(signal["strength"], age_seconds=age, half_life_seconds=signal["decay_rate"])


def effective_strength(
    signal: Mapping[str, Any], caste: str | None, now: datetime, *,
    sensitivities: Mapping[str, Mapping[str, float]],
) -> float:  # fmt: skip
    """Return the strength of `signal` at `now` times the sensitivity of `caste`.

    `sensitivities` is the document's `caste_sensitivities`; the sensitivity is full for a caste or type that
    it does not list, and without a caste.
    """
    by_type = sensitivities.get(caste, {}) if caste is not None else {}
    return strength_at(signal, now) * by_type.get(signal["type"].upper(), FULL_SENSITIVITY)


def active_signals(
    pheromones: Mapping[str, Any], *, now: datetime, caste: str | None = None,
    types: Collection[str] | None = None,
) -> list[ActiveSignal]:  # fmt: skip
    """Return the signals whose effective strength for `caste` is above `MIN_STRENGTH`, strongest first.

    Each carries its `current_strength` and `effective_strength`. The order does not depend on the order
    of deposit: of two equally strong signals the newer is first, then the smaller id.
    """
    type_names = None if types is None else {name.upper() for name in types}
    signals: list[ActiveSignal] = []
    for signal in pheromones["active_pheromones"]:
        if type_names is not None and signal["type"].upper() not in type_names:
            continue
        effective = effective_strength(signal, caste, now, sensitivities=pheromones["caste_sensitivities"])
        if effective > MIN_STRENGTH:
            strengths = {"current_strength": strength_at(signal, now), "effective_strength": effective}
            signals.append(cast("ActiveSignal", {**signal, **strengths, "context": context_of(signal)}))
    return sorted(
        signals, key=lambda s: (-s["effective_strength"], -clock.parse(s["created_at"]).timestamp(), s["id"])
    )


def is_phase_complete(signal: Mapping[str, Any], phase: int) -> bool:
    """Return whether `signal` says that `phase` is complete, in our spelling or the original's.

    A signal without a phase is about every phase, as in the original.
    """
    metadata = signal["metadata"]
    kinds = (signal["type"], metadata.get("event"))
    about = metadata.get("phase")
    return any(isinstance(word, str) and word.upper() == PHASE_COMPLETE for word in kinds) and (
        about is None or phase_number(about) == phase
    )


def find_phase_complete(pheromones: Mapping[str, Any], phase: int) -> Signal | None:
    """Return the newest signal that says `phase` is complete, or None."""
    signals: list[Signal] = [s for s in pheromones["active_pheromones"] if is_phase_complete(s, phase)]
    return max(signals, key=lambda s: (clock.parse(s["created_at"]), s["id"]), default=None)


def expire(pheromones: Mapping[str, Any], now: datetime) -> Change:
    """Return the change that moves the signals of at most `MIN_STRENGTH` to the file `events`; its result is their ids."""
    faded = [s["id"] for s in pheromones["active_pheromones"] if strength_at(s, now) <= MIN_STRENGTH]
    return withdraw(pheromones, faded, now=now, event="signal_expired")


def withdraw(
    pheromones: Mapping[str, Any], ids: Iterable[str], *, now: datetime, event: str = "signal_withdrawn"
) -> Change:
    """Return the change that moves the signals `ids` to the file `events`; its result is the ids moved.

    An id that is not active is ignored, so withdrawing twice is withdrawing once.
    """
    unwanted = set(ids)
    moved = [(place, s) for place, s in enumerate(pheromones["active_pheromones"]) if s["id"] in unwanted]
    if not moved:
        return Change({}, result=[])
    # Last first, so that no removal shifts the position of the next one.
    patch: list[Operation] = [
        {"op": "remove", "path": f"/active_pheromones/{position}"} for position, _ in reversed(moved)
    ]
    events = [{"event": event, "at": clock.stamp(now), "signal": signal} for _, signal in moved]
    return Change({DOCUMENT: patch}, {"events": events}, [signal["id"] for _, signal in moved])

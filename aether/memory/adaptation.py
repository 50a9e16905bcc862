"""Adaptation: what the next phase takes over from the patterns that a phase has shown.

Confident patterns of the phase become signals, so that every worker feels them, and are written into the
roadmap of the next phase, so that a person can read them. Adapting twice from one phase is adapting once.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from aether import clock
from aether.memory import phases, signals
from aether.memory.changes import chained, joined
from aether.memory.colony import DOCUMENT
from aether.memory.colony_shapes import Adaptation
from aether.memory.phase_numbers import check_phase, number_in
from aether.memory.phases import NewId, adapt_roadmap
from aether.shapes import Change, Pattern

# A pattern seen once has exactly 0.7, so only what was seen again steers (facts of the original colony).
MIN_CONFIDENCE = 0.7
# Strengths of signals that come from memory (facts of the original colony).
FOCUS_STRENGTH = 0.8
REDIRECT_STRENGTH = 0.9
SOURCE = "memory_adaptation"
ATTRACTING = frozenset({"success_pattern", "preference"})


class Adapted(NamedTuple):
    """What the next phase took over."""

    phase: int
    """The phase that was adapted."""
    adaptation: Adaptation
    signals: tuple[str, ...]
    """Ids of the signals that were deposited."""


def adapt_next_phase(
    memory: Mapping[str, Any],
    colony: Mapping[str, Any],
    pheromones: Mapping[str, Any],
    phase: int,
    *,
    now: datetime,
    new_id: NewId,
) -> Change:
    """Return the change that carries the patterns of `phase` to the next one; its result is an `Adapted`.

    The next phase is the first of the roadmap after `phase`, else `phase` + 1. Where no pattern is
    confident enough, or this was done before, nothing changes and the result is None.

    Raises:
        InvalidInput: `phase` is not a phase number.
    """
    check_phase(phase)
    after = sorted(entry["phase"] for entry in colony["phases"]["roadmap"] if entry["phase"] > phase)
    following = check_phase(after[0] if after else phase + 1)
    before = next((e["adaptation"] for e in colony["phases"]["roadmap"] if e["phase"] == following), None)
    patterns = _steering(memory, phase)
    if not patterns or (before is not None and before["adapted_from"] == phase):
        return Change({})
    adaptation = _adaptation(patterns, phase, now)
    emitted = [
        _emitted(
            pheromones, pattern, now=now, phase=following, id=new_id(_type_of(pattern).lower(), now, nth)
        )
        for nth, pattern in enumerate(patterns)
    ]
    return joined(
        Change({DOCUMENT: adapt_roadmap(colony, following, adaptation)}),
        signals.withdraw(pheromones, _earlier(pheromones, patterns), now=now),
        *emitted,
        result=Adapted(following, adaptation, tuple(change.result["id"] for change in emitted)),
    )


def complete_phase(documents: Mapping[str, Any], phase: int, *, now: datetime, new_id: NewId) -> Change:
    """Return the change that completes `phase` and adapts the next one; its result is a `PhaseChange`.

    Raises:
        InvalidInput: it is not a phase number, or it failed.
    """

    def complete(state: Mapping[str, Any]) -> Change:
        return phases.complete_phase(
            state["COLONY_STATE"], state["pheromones"], phase, now=now, new_id=new_id
        )

    def adapt(state: Mapping[str, Any]) -> Change:
        return adapt_next_phase(
            state["memory"], state["COLONY_STATE"], state["pheromones"], phase, now=now, new_id=new_id
        )

    change = chained(documents, complete, adapt)
    return change._replace(result=change.result[0])


def _steering(memory: Mapping[str, Any], phase: int) -> list[Pattern]:
    return [
        pattern
        for pattern in memory["long_term_memory"]["patterns"]
        if pattern["confidence"] > MIN_CONFIDENCE
        and phase in [number_in(related) for related in pattern["metadata"].get("related_phases", [])]
    ]


def _adaptation(patterns: list[Pattern], phase: int, now: datetime) -> Adaptation:
    return {
        "inherited_focus": [p["pattern"] for p in patterns if _type_of(p) == "FOCUS"],
        "inherited_constraints": [p["pattern"] for p in patterns if _type_of(p) == "REDIRECT"],
        "success_patterns": [p["id"] for p in patterns if p["type"] == "success_pattern"],
        "failure_patterns": [p["id"] for p in patterns if p["type"] == "failure_pattern"],
        "adapted_from": phase,
        "adapted_at": clock.stamp(now),
    }


def _type_of(pattern: Pattern) -> str:
    return "FOCUS" if pattern["type"] in ATTRACTING else "REDIRECT"


def _emitted(
    pheromones: Mapping[str, Any],
    pattern: Pattern,
    *,
    now: datetime,
    phase: int,
    id: str,
) -> Change:
    # No guard of the state here: this is the colony's own memory, not a hand on running work.
    name = _type_of(pattern)
    return signals.emit(
        pheromones,
        name,
        pattern["pattern"],
        now=now,
        id=id,
        strength=FOCUS_STRENGTH if name == "FOCUS" else REDIRECT_STRENGTH,
        source=SOURCE,
        phase=phase,
        metadata={"pattern_id": pattern["id"]},
    )


def _earlier(pheromones: Mapping[str, Any], patterns: list[Pattern]) -> list[str]:
    """Return the ids of signals that an earlier phase left for the same patterns, lest they add up."""
    renewed = {pattern["id"] for pattern in patterns}
    return [
        signal["id"]
        for signal in pheromones["active_pheromones"]
        if signal["metadata"].get("source") == SOURCE and signal["metadata"].get("pattern_id") in renewed
    ]

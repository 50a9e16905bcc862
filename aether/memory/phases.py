"""Phases: what starting and completing one does to the colony and its signals, and the Queen's say.

Starting and completing take the state machine along its legal edges, however many that are. Completing
deposits PHASE_COMPLETE, the boundary at which work is compressed, and leaves the phase waiting for the
Queen. Doing either twice is doing it once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple, get_args

from aether import clock
from aether.errors import InvalidInput, shown
from aether.memory import signals
from aether.memory.changes import joined
from aether.memory.colony import DOCUMENT, RUNNING, walk
from aether.memory.colony_shapes import Decision, QueenCheckin, RoadmapPhase, State
from aether.memory.phase_numbers import check_phase
from aether.shapes import Change, JsonObject, Patch

NewId = Callable[[str, datetime, int], str]
DECISIONS: tuple[Decision, ...] = get_args(Decision)
# The legal way from each state into the work of a phase.
ROUTES_TO_EXECUTING: dict[State, list[State]] = {
    "IDLE": ["INIT", "PLANNING", "EXECUTING"],
    "INIT": ["PLANNING", "EXECUTING"],
    "PLANNING": ["EXECUTING"],
    "EXECUTING": [],
    "VERIFYING": ["EXECUTING"],
    "COMPLETED": ["IDLE", "INIT", "PLANNING", "EXECUTING"],
    "FAILED": ["PLANNING", "EXECUTING"],
}
# The legal way from running work to its end.
ROUTES_TO_COMPLETED: dict[State, list[State]] = {
    "EXECUTING": ["VERIFYING", "COMPLETED"],
    "VERIFYING": ["COMPLETED"],
}


class PhaseChange(NamedTuple):
    """What became of a phase."""

    phase: int
    state: State
    """The state of the colony afterwards."""
    changed: bool
    """False where the phase was already there."""
    signals: tuple[str, ...] = ()
    """Ids of the signals that were deposited."""


def current_phase(colony: Mapping[str, Any], default: int = 1) -> int:
    """Return the phase that was started last, or `default` where none was.

    >>> current_phase({"colony_status": {"current_phase": None}})
    1
    """
    phase = colony["colony_status"]["current_phase"]
    return default if phase is None else int(phase)


def start_phase(
    colony: Mapping[str, Any],
    pheromones: Mapping[str, Any],
    phase: int,
    *,
    now: datetime,
    name: str | None = None,
    goal: str | None = None,
    trigger: str = "phase_start",
) -> Change:
    """Return the change that starts `phase`; its result is a `PhaseChange`.

    A phase that was completed is opened again: its PHASE_COMPLETE signal is withdrawn. A check-in that
    still waits is decided by this act: `redo` for the same phase, else `continue`.

    Raises:
        InvalidInput: `phase` is not a phase number, or another phase is running.
    """
    check_phase(phase)
    status = colony["colony_status"]
    state, running = status["state"], status["current_phase"]
    if state in RUNNING and running not in (None, phase):
        raise InvalidInput(
            f"phase {running} is still {state}.",
            fix=f'Complete it first: "aether phase complete {running}".',
            where=f"phase {phase}",
        )
    route = ROUTES_TO_EXECUTING[state]
    started = bool(route) or running is None or phase in status["phases_completed"]
    fields: JsonObject = {"name": name, "goal": goal}
    fields = {field: value for field, value in fields.items() if value is not None}
    if started:
        fields |= {"status": "in_progress", "started_at": clock.stamp(now), "completed_at": None}
    own: Patch = []
    if running != phase:
        own.append({"op": "replace", "path": "/colony_status/current_phase", "value": phase})
    if phase in status["phases_completed"]:
        at = status["phases_completed"].index(phase)
        own.append({"op": "remove", "path": f"/colony_status/phases_completed/{at}"})
    own += _roadmap(colony, phase, fields)
    settled: dict[str, Patch] = {}
    going: list[str] = []
    if started and _waits(status["queen_checkin"]):
        settled, going = _settled_by_start(colony, phase, now), _checkins(pheromones)
    if started:
        going += [s["id"] for s in pheromones["active_pheromones"] if signals.is_phase_complete(s, phase)]
    return joined(
        walk(colony, route, now=now, trigger=trigger),
        Change({DOCUMENT: own}),
        Change(settled),
        # One withdrawal for all: two would each count the places of a list that the other has shortened.
        signals.withdraw(pheromones, going, now=now),
        result=PhaseChange(phase, "EXECUTING", started),
    )


def _waits(checkin: Mapping[str, Any] | None) -> bool:
    return checkin is not None and checkin["status"] == "awaiting_review"


def _settled_by_start(colony: Mapping[str, Any], phase: int, now: datetime) -> dict[str, Patch]:
    checkin = colony["colony_status"]["queen_checkin"]
    decision: Decision = "redo" if checkin["phase"] == phase else "continue"
    return _checkin_patch(_decided(checkin, decision, now, f"phase {phase} was started"))


def _decided(checkin: Mapping[str, Any], decision: Decision, now: datetime, note: str | None) -> JsonObject:
    decided = {**checkin, "status": "decided", "queen_decision": decision, "decided_at": clock.stamp(now)}
    return decided if note is None else {**decided, "note": note}


def complete_phase(
    colony: Mapping[str, Any],
    pheromones: Mapping[str, Any],
    phase: int,
    *,
    now: datetime,
    new_id: NewId,
    trigger: str = "phase_complete",
) -> Change:
    """Return the change that completes `phase`; its result is a `PhaseChange`.

    A running phase takes the colony to COMPLETED. A phase that was never started may be completed too,
    for those who keep the phases by hand: the state stays, and the event says `started: false`.

    Raises:
        InvalidInput: `phase` is not a phase number, or it is the one that FAILED.
    """
    check_phase(phase)
    status = colony["colony_status"]
    state, current = status["state"], status["current_phase"]
    if phase in status["phases_completed"]:
        return Change({}, result=PhaseChange(phase, state, False))
    if state == "FAILED" and current == phase:
        raise InvalidInput(
            f"phase {phase} FAILED.",
            fix=f'Start it again: "aether phase start {phase}".',
            where=f"phase {phase}",
        )
    running = state in RUNNING and current in (None, phase)
    route = ROUTES_TO_COMPLETED[state] if running else []
    own: Patch = [{"op": "add", "path": "/colony_status/phases_completed/-", "value": phase}]
    if running and current is None:
        own.append({"op": "replace", "path": "/colony_status/current_phase", "value": phase})
    own += _roadmap(colony, phase, {"status": "completed", "completed_at": clock.stamp(now)})
    checkin = await_queen_decision(colony, pheromones, phase, now=now, signal_id=new_id("checkin", now, 1))
    boundary = signals.emit(
        pheromones,
        signals.PHASE_COMPLETE,
        f"Phase {phase} is complete",
        now=now,
        id=new_id("phase_complete", now, 0),
        source="colony",
        phase=phase,
    )
    event = {"event": "phase_completed", "at": clock.stamp(now), "phase": phase, "started": current == phase}
    return joined(
        walk(colony, route, now=now, trigger=trigger),
        Change({DOCUMENT: own}, {"events": [event]}),
        checkin,
        boundary,
        result=PhaseChange(
            phase, route[-1] if route else state, True, (boundary.result["id"], checkin.result["id"])
        ),
    )


def await_queen_decision(
    colony: Mapping[str, Any],
    pheromones: Mapping[str, Any],
    phase: int,
    *,
    now: datetime,
    signal_id: str,
) -> Change:
    """Return the change that leaves `phase` waiting for the Queen; its result is the CHECKIN signal.

    Only one phase waits at a time: an older check-in that still waits moves to the file `events`.

    Raises:
        InvalidInput: `phase` is not a phase number.
    """
    checkin: QueenCheckin = {
        "phase": check_phase(phase),
        "status": "awaiting_review",
        "timestamp": clock.stamp(now),
        "queen_decision": None,
    }
    old = colony["colony_status"]["queen_checkin"]
    superseded = []
    if _waits(old):
        superseded = [{"event": "checkin_superseded", "at": clock.stamp(now), "checkin": old}]
    signal = signals.emit(
        pheromones,
        "CHECKIN",
        f"Phase {phase} is complete and waits for the Queen",
        now=now,
        id=signal_id,
        source="colony",
        phase=phase,
    )
    return joined(
        Change(_checkin_patch(checkin), {"events": superseded} if superseded else {}),
        signals.withdraw(pheromones, _checkins(pheromones), now=now),
        signal,
        result=signal.result,
    )


def decide(
    colony: Mapping[str, Any],
    pheromones: Mapping[str, Any],
    decision: str,
    *,
    now: datetime,
    note: str | None = None,
) -> Change:
    """Return the change that records the Queen's decision; its result is the check-in.

    `continue` goes on, `adjust` goes on with what she signals, `redo` wants the phase again; none of
    them starts a phase. The CHECKIN signal is withdrawn. The same decision again changes nothing.

    Raises:
        InvalidInput: there is no such decision, or no phase waits for one.
    """
    taken = next((name for name in DECISIONS if name == decision), None)
    if taken is None:
        raise InvalidInput(
            f"{shown(decision)} is not a decision.", fix=f"Use one of {', '.join(DECISIONS)}.", where="queen"
        )
    checkin = colony["colony_status"]["queen_checkin"]
    if checkin is not None and checkin["queen_decision"] == taken:
        return Change({}, result=checkin)
    if not _waits(checkin):
        raise InvalidInput(
            "no phase waits for the Queen.", fix='Complete one: "aether phase complete N".', where="queen"
        )
    decided = _decided(checkin, taken, now, note)
    return joined(
        Change(_checkin_patch(decided)),
        signals.withdraw(pheromones, _checkins(pheromones), now=now),
        result=decided,
    )


def _checkin_patch(checkin: Mapping[str, Any]) -> dict[str, Patch]:
    return {DOCUMENT: [{"op": "replace", "path": "/colony_status/queen_checkin", "value": checkin}]}


def _checkins(pheromones: Mapping[str, Any]) -> list[str]:
    return [s["id"] for s in pheromones["active_pheromones"] if s["type"].upper() == "CHECKIN"]


def _roadmap(colony: Mapping[str, Any], phase: int, fields: Mapping[str, Any]) -> Patch:
    """Return the patch that gives `phase` these fields, in its place by number."""
    roadmap = colony["phases"]["roadmap"]
    for at, entry in enumerate(roadmap):
        if entry["phase"] == phase:
            return [
                {"op": "replace", "path": f"/phases/roadmap/{at}/{field}", "value": value}
                for field, value in fields.items()
                if entry[field] != value
            ]
    at = next((at for at, entry in enumerate(roadmap) if entry["phase"] > phase), len(roadmap))
    return [{"op": "add", "path": f"/phases/roadmap/{at}", "value": {**planned(phase), **fields}}]


def planned(phase: int) -> RoadmapPhase:
    """Return the roadmap entry of a phase of which only the number is known."""
    return {
        "phase": phase,
        "name": None,
        "goal": None,
        "status": "planned",
        "started_at": None,
        "completed_at": None,
        "adaptation": None,
    }


def adapt_roadmap(colony: Mapping[str, Any], phase: int, adaptation: Mapping[str, Any]) -> Patch:
    """Return the patch that gives `phase` its adaptation."""
    return _roadmap(colony, phase, {"adaptation": adaptation})

"""Phases: start and complete a phase, adapt the next one, and record the Queen's decisions.

Starting and completing take the state machine along its legal edges and are idempotent. Completing deposits
PHASE_COMPLETE, the boundary at which work is compressed, and leaves the phase waiting for the Queen.

Adapting deposits the confident patterns of a phase as signals for every worker, and writes them into the
roadmap of the next phase, for people. Adapting twice from one phase is adapting once.

An agent completes or starts a phase by a line of its own in prose. Since a phase decides what is compressed and
when, a line in a quote, code, a list or a table (plans look like that), after an announcement ("I'll then write:"),
or as a question does not count, and neither does one that the same text denies. The states are in `colony`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from aether import clock
from aether.errors import InvalidInput, shown
from aether.memory import signals
from aether.memory.colony import DOCUMENT, RUNNING, check_phase, follow_route, phase_number
from aether.store.patch import chain_changes, join_changes
from aether.text.regex import lazy
from aether.types import Change, Decision, State

if TYPE_CHECKING:
    from aether.clock import NewId
    from aether.types import Adaptation, JsonObject, Patch, Pattern, QueenCheckin, RoadmapPhase

DECISIONS: tuple[Decision, ...] = get_args(Decision)
# The legal way from each state into the work of a phase.
ROUTES_TO_EXECUTING: dict[State, list[State]] = {
    "IDLE": ["INIT", "PLANNING", "EXECUTING"], "INIT": ["PLANNING", "EXECUTING"], "PLANNING": ["EXECUTING"],
    "EXECUTING": [], "VERIFYING": ["EXECUTING"], "COMPLETED": ["IDLE", "INIT", "PLANNING", "EXECUTING"],
    "FAILED": ["PLANNING", "EXECUTING"],
}  # fmt: skip
# The legal way from running work to its end.
ROUTES_TO_COMPLETED: dict[State, list[State]] = {
    "EXECUTING": ["VERIFYING", "COMPLETED"],
    "VERIFYING": ["COMPLETED"],
}


class PhaseChange(NamedTuple):
    """The effect of starting or completing a phase."""

    phase: int
    state: State
    """The state of the colony afterwards."""
    changed: bool
    """False if the phase was started or completed already."""
    signals: tuple[str, ...] = ()
    """Ids of the signals that were deposited."""


def current_phase(colony: Mapping[str, Any]) -> int:
    """Return the phase that was started last, or 1 if no phase was started.

    >>> current_phase({"colony_status": {"current_phase": None}})
    1
    """
    phase = colony["colony_status"]["current_phase"]
    return 1 if phase is None else int(phase)


def start_phase(
    colony: Mapping[str, Any], pheromones: Mapping[str, Any], phase: int, *, now: datetime,
    name: str | None = None, goal: str | None = None,
) -> Change:  # fmt: skip
    """Return the change that starts `phase`; its result is a `PhaseChange`.

    A completed phase is opened again: its PHASE_COMPLETE signal is withdrawn. A check-in that waits is
    decided: `redo` for the same phase, else `continue`.

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
    patch: Patch = []
    if running != phase:
        patch.append({"op": "replace", "path": "/colony_status/current_phase", "value": phase})
    if phase in status["phases_completed"]:
        index = status["phases_completed"].index(phase)
        patch.append({"op": "remove", "path": f"/colony_status/phases_completed/{index}"})
    patch += _roadmap(colony, phase, fields)
    decided: dict[str, Patch] = {}
    withdrawn: list[str] = []
    checkin = status["queen_checkin"]
    if started and _awaits_review(checkin):
        decision: Decision = "redo" if checkin["phase"] == phase else "continue"
        decided = _checkin_patch(_with_decision(checkin, decision, now, f"phase {phase} was started"))
        withdrawn = _checkins(pheromones)
    if started:
        withdrawn += [s["id"] for s in pheromones["active_pheromones"] if signals.is_phase_complete(s, phase)]
    return join_changes(
        follow_route(colony, route, now=now, trigger="phase_start"),
        Change({DOCUMENT: patch}),
        Change(decided),
        # One withdrawal for all: of two, the second would use positions of the list before the first.
        signals.withdraw(pheromones, withdrawn, now=now),
        result=PhaseChange(phase, "EXECUTING", started),
    )


def _awaits_review(checkin: Mapping[str, Any] | None) -> bool:
    return checkin is not None and checkin["status"] == "awaiting_review"


def _with_decision(
    checkin: Mapping[str, Any], decision: Decision, now: datetime, note: str | None
) -> JsonObject:
    decided = {**checkin, "status": "decided", "queen_decision": decision, "decided_at": clock.stamp(now)}
    return decided if note is None else {**decided, "note": note}


def complete_phase(
    colony: Mapping[str, Any], pheromones: Mapping[str, Any], phase: int, *, now: datetime, new_id: NewId
) -> Change:  # fmt: skip
    """Return the change that completes `phase`; its result is a `PhaseChange`.

    A running phase takes the colony to COMPLETED. A phase that was never started may be completed too, for
    those who keep the phases by hand: the state does not change, and the event says `started: false`.

    Raises:
        InvalidInput: `phase` is not a phase number, or it FAILED.
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
    patch: Patch = [{"op": "add", "path": "/colony_status/phases_completed/-", "value": phase}]
    if running and current is None:
        patch.append({"op": "replace", "path": "/colony_status/current_phase", "value": phase})
    patch += _roadmap(colony, phase, {"status": "completed", "completed_at": clock.stamp(now)})
    checkin = await_queen_decision(colony, pheromones, phase, now=now, signal_id=new_id("checkin", now, 1))
    boundary = signals.emit(
        pheromones, signals.PHASE_COMPLETE, f"Phase {phase} is complete", now=now,
        id=new_id("phase_complete", now, 0), source="colony", phase=phase,
    )  # fmt: skip
    event = {"event": "phase_completed", "at": clock.stamp(now), "phase": phase, "started": current == phase}
    return join_changes(
        follow_route(colony, route, now=now, trigger="phase_complete"),
        Change({DOCUMENT: patch}, {"events": [event]}),
        checkin,
        boundary,
        result=PhaseChange(
            phase, route[-1] if route else state, True, (boundary.result["id"], checkin.result["id"])
        ),
    )


def await_queen_decision(
    colony: Mapping[str, Any], pheromones: Mapping[str, Any], phase: int, *, now: datetime, signal_id: str
) -> Change:
    """Return the change that leaves `phase` waiting for the Queen; its result is the CHECKIN signal.

    Only one phase waits at a time: an older check-in that still waits moves to the file `events`.

    Raises:
        InvalidInput: `phase` is not a phase number.
    """
    checkin: QueenCheckin = {
        "phase": check_phase(phase), "status": "awaiting_review", "timestamp": clock.stamp(now),
        "queen_decision": None,
    }  # fmt: skip
    old = colony["colony_status"]["queen_checkin"]
    superseded = []
    if _awaits_review(old):
        superseded = [{"event": "checkin_superseded", "at": clock.stamp(now), "checkin": old}]
    signal = signals.emit(
        pheromones, "CHECKIN", f"Phase {phase} is complete and waits for a decision", now=now, id=signal_id,
        source="colony", phase=phase,
    )  # fmt: skip
    return join_changes(
        Change(_checkin_patch(checkin), {"events": superseded} if superseded else {}),
        signals.withdraw(pheromones, _checkins(pheromones), now=now),
        signal,
        result=signal.result,
    )


def decide(
    colony: Mapping[str, Any], pheromones: Mapping[str, Any], decision: str, *, now: datetime,
    note: str | None = None,
) -> Change:  # fmt: skip
    """Return the change that records the Queen's decision; its result is the check-in.

    `continue` goes on, `adjust` goes on as she signals, `redo` asks for the phase again; none of them
    starts a phase. The CHECKIN signal is withdrawn. The same decision again changes nothing.

    Raises:
        InvalidInput: the decision is unknown, or no phase waits for one.
    """
    chosen = next((name for name in DECISIONS if name == decision), None)
    if chosen is None:
        raise InvalidInput(
            f"{shown(decision)} is not a decision.", fix=f"Use one of {', '.join(DECISIONS)}.", where="queen"
        )
    checkin = colony["colony_status"]["queen_checkin"]
    if checkin is not None and checkin["queen_decision"] == chosen:
        return Change({}, result=checkin)
    if not _awaits_review(checkin):
        raise InvalidInput(
            "no phase waits for a decision.", fix='Complete one: "aether phase complete N".', where="queen"
        )
    decided = _with_decision(checkin, chosen, now, note)
    return join_changes(
        Change(_checkin_patch(decided)),
        signals.withdraw(pheromones, _checkins(pheromones), now=now),
        result=decided,
    )


def _checkin_patch(checkin: Mapping[str, Any]) -> dict[str, Patch]:
    return {DOCUMENT: [{"op": "replace", "path": "/colony_status/queen_checkin", "value": checkin}]}


def _checkins(pheromones: Mapping[str, Any]) -> list[str]:
    return [s["id"] for s in pheromones["active_pheromones"] if s["type"].upper() == "CHECKIN"]


def _roadmap(colony: Mapping[str, Any], phase: int, fields: Mapping[str, Any]) -> Patch:
    """Return the patch that sets these fields of `phase` in the roadmap, which is sorted by number."""
    roadmap = colony["phases"]["roadmap"]
    for place, entry in enumerate(roadmap):
        if entry["phase"] == phase:
            return [
                {"op": "replace", "path": f"/phases/roadmap/{place}/{field}", "value": value}
                for field, value in fields.items()
                if entry[field] != value
            ]
    place = next((place for place, entry in enumerate(roadmap) if entry["phase"] > phase), len(roadmap))
    return [{"op": "add", "path": f"/phases/roadmap/{place}", "value": {**planned_phase(phase), **fields}}]


def planned_phase(phase: int) -> RoadmapPhase:
    """Return the roadmap entry of a phase of which only the number is known."""
    return {
        "phase": phase, "name": None, "goal": None, "status": "planned", "started_at": None,
        "completed_at": None, "adaptation": None,
    }  # fmt: skip


# Marks of Markdown and signs of success around a line.
_DECORATION = " \t#*_✅✔✓🎉"
_COMPLETE = lazy(
    r"(?i)(?:phase (\d{1,6})(?:\s*[:–—-]\s*| (?:is |has been )?(?:now )?)(?:complete|completed|done|finished)|aether: complete phase (\d{1,6}))[.!]*"
)
_START = lazy(r"""(?i)aether: start phase (\d{1,6})(?:[\s:–—-]+["“']?([^"”']{1,200}?)["”']?)?[.!]*""")


class PhaseMarker(NamedTuple):
    """One line that changes the phase."""

    action: Literal["complete", "start"]
    phase: int
    name: str = ""


def phase_markers(text: str) -> list[PhaseMarker]:
    r"""Return the lines of an agent's message that complete or start a phase, in their order.

    >>> phase_markers("All tests pass.\n\n**Phase 2 complete**")
    [PhaseMarker(action='complete', phase=2, name='')]
    >>> phase_markers("- Phase 2: done\n> Phase 2 complete\nIs phase 2 done?")
    []
    >>> phase_markers('aether: start phase 3 "the importer"')
    [PhaseMarker(action='start', phase=3, name='the importer')]
    """
    if "phase" not in text.lower():
        return []
    markers: list[PhaseMarker] = []
    fence = before = ""
    for line in text.splitlines():
        bare = line.strip()
        run = bare[: len(bare) - len(bare.lstrip(bare[:1]))]
        is_fence = run.startswith(("```", "~~~"))
        if fence:
            fence = "" if is_fence and bare == run and run.startswith(fence) else fence
        elif is_fence:
            fence = run
        # A code block by its indent, an item of a list, and what the line before it announces is no statement.
        elif not (line.startswith(("    ", "\t", "* ")) or before.endswith(":")):
            markers += filter(None, [_marker(line.strip(_DECORATION))])
        before = line.rstrip(" *_") or before
    return markers


def _marker(line: str) -> PhaseMarker | None:
    if complete := _COMPLETE.fullmatch(line):
        return PhaseMarker("complete", int(complete[1] or complete[2]))
    start = _START.fullmatch(line)
    return PhaseMarker("start", int(start[1]), (start[2] or "").strip()) if start else None


def apply_marker(
    documents: Mapping[str, Any], marker: PhaseMarker, *, now: datetime, new_id: NewId
) -> Change:
    """Return the change that completes the running phase, or starts one if no phase runs; its result is whether one was completed.

    A line about another phase, or one that the colony rejects, changes nothing.
    """
    colony, pheromones = documents["COLONY_STATE"], documents["pheromones"]
    status = colony["colony_status"]
    running = status["current_phase"] if status["state"] in RUNNING else None
    with suppress(InvalidInput):
        if marker.action == "complete" and running == marker.phase:
            completed = complete_and_adapt(documents, marker.phase, now=now, new_id=new_id)
            return completed._replace(result=True)
        if marker.action == "start" and running is None and marker.phase not in status["phases_completed"]:
            started = start_phase(colony, pheromones, marker.phase, now=now, name=marker.name or None)
            return started._replace(result=False)
    return Change({}, result=False)


# A pattern seen once has exactly 0.7, so only repeated ones become signals (facts of the original colony).
MIN_CONFIDENCE = 0.7
# Strengths of signals that come from memory (facts of the original colony).
FOCUS_STRENGTH = 0.8
REDIRECT_STRENGTH = 0.9
ADAPTATION_SOURCE = "memory_adaptation"
FOCUS_TYPES = frozenset({"success_pattern", "preference"})


class AdaptedPhase(NamedTuple):
    """The patterns that the next phase inherited."""

    phase: int
    """The phase that was adapted."""
    adaptation: Adaptation
    signals: tuple[str, ...]
    """Ids of the signals that were deposited."""


def adapt_next_phase(
    memory: Mapping[str, Any], colony: Mapping[str, Any], pheromones: Mapping[str, Any], phase: int, *,
    now: datetime, new_id: NewId,
) -> Change:  # fmt: skip
    """Return the change that adapts the next phase to the patterns of `phase`; its result is an `AdaptedPhase` or None.

    The next phase is the first of the roadmap after `phase`, else `phase` + 1. Nothing changes if no pattern
    is confident enough, or if it was adapted from `phase` before.

    Raises:
        InvalidInput: `phase` is not a phase number.
    """
    check_phase(phase)
    after = sorted(entry["phase"] for entry in colony["phases"]["roadmap"] if entry["phase"] > phase)
    following = check_phase(after[0] if after else phase + 1)
    before = next((e["adaptation"] for e in colony["phases"]["roadmap"] if e["phase"] == following), None)
    patterns: list[Pattern] = [
        pattern
        for pattern in memory["long_term_memory"]["patterns"]
        if pattern["confidence"] > MIN_CONFIDENCE
        and phase in [phase_number(related) for related in pattern["metadata"].get("related_phases", [])]
    ]
    if not patterns or (before is not None and before["adapted_from"] == phase):
        return Change({})
    names = ["FOCUS" if pattern["type"] in FOCUS_TYPES else "REDIRECT" for pattern in patterns]
    texts = [(name, pattern["pattern"]) for name, pattern in zip(names, patterns, strict=True)]
    adaptation: Adaptation = {
        "inherited_focus": [text for name, text in texts if name == "FOCUS"],
        "inherited_constraints": [text for name, text in texts if name == "REDIRECT"],
        "success_patterns": [pattern["id"] for pattern in patterns if pattern["type"] == "success_pattern"],
        "failure_patterns": [pattern["id"] for pattern in patterns if pattern["type"] == "failure_pattern"],
        "adapted_from": phase, "adapted_at": clock.stamp(now),
    }  # fmt: skip
    # Signals of an earlier phase for the same patterns are withdrawn, so that they do not add up.
    renewed = {pattern["id"] for pattern in patterns}
    superseded = [
        signal["id"]
        for signal in pheromones["active_pheromones"]
        if signal["metadata"].get("source") == ADAPTATION_SOURCE
        and signal["metadata"].get("pattern_id") in renewed
    ]
    # Without the guard of the colony's state, because these signals come from its own memory.
    emitted = [
        signals.emit(
            pheromones, name, pattern["pattern"], now=now, id=new_id(name.lower(), now, nth),
            strength=FOCUS_STRENGTH if name == "FOCUS" else REDIRECT_STRENGTH, source=ADAPTATION_SOURCE,
            phase=following, metadata={"pattern_id": pattern["id"]},
        )
        for nth, (name, pattern) in enumerate(zip(names, patterns, strict=True))
    ]  # fmt: skip
    return join_changes(
        Change({DOCUMENT: _roadmap(colony, following, {"adaptation": adaptation})}),
        signals.withdraw(pheromones, superseded, now=now),
        *emitted,
        result=AdaptedPhase(following, adaptation, tuple(change.result["id"] for change in emitted)),
    )


def require_known_phase(documents: Mapping[str, Any], phase: int) -> None:
    """Raise unless `phase` was started or planned, is the current one, or memory has entries of it.

    Raises:
        InvalidInput: it is not a phase number, or none of that holds.
    """
    check_phase(phase)
    colony, memory = documents["COLONY_STATE"], documents["memory"]
    known_phases = {current_phase(colony), *colony["colony_status"]["phases_completed"]}
    known_phases |= {entry["phase"] for entry in colony["phases"]["roadmap"]}
    known_phases |= {item["metadata"].get("phase") for item in memory["working_memory"]["items"]}
    known_phases |= {session.get("phase") for session in memory["short_term_memory"]["sessions"]}
    if phase not in known_phases:
        raise InvalidInput(
            f"phase {phase} was never started, and nothing was noted in it.",
            fix=f'Start it with "aether phase start {phase}", or complete phase {current_phase(colony)}.',
            where=f"phase {phase}",
        )


def complete_and_adapt(documents: Mapping[str, Any], phase: int, *, now: datetime, new_id: NewId) -> Change:
    """Return the change that completes `phase` and adapts the next one; its result is a `PhaseChange`.

    Raises:
        InvalidInput: it is not a phase number, or it failed.
    """

    def complete(state: Mapping[str, Any]) -> Change:
        return complete_phase(state["COLONY_STATE"], state["pheromones"], phase, now=now, new_id=new_id)

    def adapt(state: Mapping[str, Any]) -> Change:
        return adapt_next_phase(
            state["memory"], state["COLONY_STATE"], state["pheromones"], phase, now=now, new_id=new_id
        )

    change = chain_changes(documents, complete, adapt)
    return change._replace(result=change.result[0])

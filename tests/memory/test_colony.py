import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NotRequired, get_origin, get_type_hints

import pytest

from aether import types
from aether.errors import InvalidInput
from aether.memory import colony as machine
from aether.memory.colony import MAX_PHASE, check_phase, phase_number
from aether.schemas import check
from aether.store.patch import apply
from tests.tables import rows

DATA = Path(__file__).resolve().parents[2] / "data"
NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)


def colony(state="IDLE", **status):
    document = json.loads((DATA / "COLONY_STATE.json").read_text())
    document["colony_status"] |= {"state": state, **status}
    return document


def done(document, change):
    return apply(document, change.patches.get("COLONY_STATE", []))


EXPECTED = {
    ("IDLE", "INIT"),
    ("INIT", "PLANNING"),
    ("PLANNING", "EXECUTING"),
    ("EXECUTING", "VERIFYING"),
    ("VERIFYING", "COMPLETED"),
    ("VERIFYING", "EXECUTING"),
    ("EXECUTING", "FAILED"),
    ("FAILED", "PLANNING"),
    ("COMPLETED", "IDLE"),
}


@rows("state", machine.STATES)
@rows("new", machine.STATES)
def test_only_legal_edges_are_taken(state, new):
    if (state, new) in EXPECTED:
        assert machine.transition(colony(state), new, now=NOW).result["to"] == new
    else:
        with pytest.raises(InvalidInput, match=f"Invalid transition: {state} -> {new}"):
            machine.transition(colony(state), new, now=NOW)


@rows("trigger", machine.RECOVERY_TRIGGERS)
@rows("state", machine.RUNNING)
def test_recovery_triggers_open_the_way_back_to_planning(state, trigger):
    change = machine.transition(colony(state), "PLANNING", now=NOW, trigger=trigger)

    assert change.result["trigger"] == trigger


def test_the_hundred_newest_transitions_stay_and_older_ones_move():
    document = colony("EXECUTING")
    moved = []
    for nth in range(105):
        new = "VERIFYING" if nth % 2 == 0 else "EXECUTING"
        change = machine.transition(document, new, now=NOW + timedelta(seconds=nth))
        moved += change.appends.get("history", [])
        document = done(document, change)

    history = document["state_machine"]["state_history"]
    assert len(history) == 100
    assert document["state_machine"]["transitions_count"] == 105
    assert [entry["timestamp"][17:19] for entry in moved] == ["00", "01", "02", "03", "04"]
    assert history[0]["timestamp"] == "2026-03-01T10:00:05.000000Z"


@rows("worker_id", ["", " ", "x" * 201, None, 7])
def test_a_worker_needs_a_usable_id(worker_id):
    with pytest.raises(InvalidInput, match="not the id of a worker"):
        machine.register_worker(colony(), worker_id, now=NOW)


def running(state="EXECUTING", *, minutes_ago=1, **status):
    document = colony(state, **status)
    last = NOW - timedelta(minutes=minutes_ago)
    document["state_machine"]["last_transition"] = last.isoformat()
    return document


@rows("state", [s for s in machine.STATES if s not in machine.RUNNING])
def test_a_resting_colony_cannot_crash(state):
    assert machine.detect_crash(running(state, minutes_ago=999, workers_registered=1), NOW) is None


@rows(
    ("document", "trigger"),
    [
        (running(workers_registered=1), "crash_recovery"),
        (running("VERIFYING", minutes_ago=60), "timeout_recovery"),
        (running(), "crash_recovery"),
    ],
)
def test_recovering_really_reaches_planning(document, trigger):
    change = machine.recover(document, now=NOW, checkpoint="snap_1")
    after = done(document, change)

    assert after["colony_status"]["state"] == "PLANNING"
    assert (change.result["trigger"], change.result["checkpoint"]) == (trigger, "snap_1")
    assert machine.detect_crash(after, NOW) is None


NOT_PHASES = ["../x", "a/b", "con", "", "x" * 300, "1", -1, 1.0, 1.5, True, False, None, [], MAX_PHASE + 1]


@rows("phase", [0, 1, 42, MAX_PHASE])
def test_whole_numbers_from_zero_are_phases(phase):
    assert check_phase(phase) == phase


@rows("phase", NOT_PHASES)
def test_anything_else_is_refused_with_its_value(phase):
    with pytest.raises(InvalidInput, match=r"is not a phase. Use a whole number"):
        check_phase(phase)


@rows(
    ("value", "expected"),
    [(3, 3), ("3", 3), ("03", 3), ("-3", None), ("³", None), ("9" * 400, None), (3.0, None), (None, None)],
)
def test_documents_may_hold_phases_as_text(value, expected):
    assert phase_number(value) == expected


ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "tests" / "examples"
# Where in which schema an object is described, and the TypedDict that says the same.
AGREE = [
    ("pheromones", ("$defs", "signal"), types.Signal),
    ("pheromones", ("$defs", "signal_type"), types.SignalType),
    ("COLONY_STATE", ("$defs", "queen_checkin"), types.QueenCheckin),
    ("COLONY_STATE", ("$defs", "worker"), types.Worker),
    ("COLONY_STATE", ("$defs", "history_entry"), types.HistoryEntry),
    ("COLONY_STATE", ("$defs", "roadmap_phase"), types.RoadmapPhase),
    ("COLONY_STATE", ("$defs", "adaptation"), types.Adaptation),
    ("goals", ("$defs", "goal"), types.Goal),
    ("goals", ("$defs", "subtask"), types.Subtask),
    ("goals", ("$defs", "decision"), types.GoalDecision),
    ("goals", ("$defs", "artifact"), types.Artifact),
    ("goals", ("$defs", "blocker"), types.Blocker),
    ("goals", ("$defs", "checkpoint"), types.GoalCheckpoint),
    ("goals", ("$defs", "checkpoint_state"), types.GoalCheckpointState),
    ("teamwork", ("$defs", "claim"), types.Claim),
    ("teamwork", ("$defs", "packet"), types.Packet),
]
DOCUMENTS = ["pheromones", "COLONY_STATE", "goals"]
# Each invalid example is named after the rule it breaks; this is where it breaks it.
BROKEN_AT = {
    "strength_above_one": "pheromones#/active_pheromones/0/strength",
    "half_life_of_zero": "pheromones#/active_pheromones/0/decay_rate",
    "time_in_words": "pheromones#/active_pheromones/0/created_at",
    "signal_without_id": "pheromones#/active_pheromones/0",
    "newer_version": "pheromones#/schema_version",
    "sensitivity_above_one": "pheromones#/caste_sensitivities/builder/FOCUS",
    "unknown_state": "COLONY_STATE#/colony_status/state",
    "negative_phase": "COLONY_STATE#/colony_status/current_phase",
    "phase_completed_twice": "COLONY_STATE#/colony_status/phases_completed",
    "unknown_decision": "COLONY_STATE#/colony_status/queen_checkin/queen_decision",
    "transition_without_target": "COLONY_STATE#/state_machine/state_history/0",
    "goal_without_words": "goals#/goals/0/description",
    "two_current_goals": "goals#/current",
    "unknown_step_status": "goals#/goals/0/subtasks/0/status",
    "unknown_phase_status": "COLONY_STATE#/phases/roadmap/0/status",
}


@rows(("name", "place", "shape"), AGREE, ids=lambda value: getattr(value, "__name__", None))
def test_schema_and_typed_dict_agree(name, place, shape):
    part = check.schema(name)
    for key in place:
        part = part[key]

    # `$schema` cannot be the name of a field in a class.
    assert set(part["properties"]) - {"$schema"} == set(shape.__annotations__)
    # Not `__required_keys__`: under deferred annotations it takes NotRequired for required.
    hints = get_type_hints(shape, include_extras=True)
    required = {key for key, hint in hints.items() if get_origin(hint) is not NotRequired}
    assert set(part["required"]) == required


@rows(
    "path", [p for n in DOCUMENTS for p in sorted((EXAMPLES / n / "valid").iterdir())], ids=lambda p: p.stem
)
def test_valid_examples_are_valid(path):
    assert check.findings(path.parent.parent.name, json.loads(path.read_text())) == []


@rows(
    "path", [p for n in DOCUMENTS for p in sorted((EXAMPLES / n / "invalid").iterdir())], ids=lambda p: p.stem
)
def test_invalid_examples_break_the_rule_of_their_name(path):
    found = check.findings(path.parent.parent.name, json.loads(path.read_text()))

    assert [finding.where for finding in found] == [BROKEN_AT[path.stem]]

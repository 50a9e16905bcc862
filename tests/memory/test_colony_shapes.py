import json
from pathlib import Path
from typing import NotRequired, get_origin, get_type_hints

import pytest

from aether import types
from aether.schemas import check
from tests.tables import rows

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "tests" / "examples"
# Where in which schema an object is described, and the TypedDict that says the same.
AGREE = [
    ("pheromones", (), types.Pheromones),
    ("pheromones", ("$defs", "signal"), types.Signal),
    ("pheromones", ("$defs", "signal_type"), types.SignalType),
    ("COLONY_STATE", (), types.ColonyState),
    ("COLONY_STATE", ("$defs", "colony_status"), types.ColonyStatus),
    ("COLONY_STATE", ("$defs", "queen_checkin"), types.QueenCheckin),
    ("COLONY_STATE", ("$defs", "worker"), types.Worker),
    ("COLONY_STATE", ("$defs", "state_machine"), types.StateMachine),
    ("COLONY_STATE", ("$defs", "history_entry"), types.HistoryEntry),
    ("COLONY_STATE", ("$defs", "checkpoints"), types.Checkpoints),
    ("COLONY_STATE", ("$defs", "phases"), types.Phases),
    ("COLONY_STATE", ("$defs", "roadmap_phase"), types.RoadmapPhase),
    ("COLONY_STATE", ("$defs", "adaptation"), types.Adaptation),
]
DOCUMENTS = ["pheromones", "COLONY_STATE"]
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


def test_no_object_of_a_schema_is_left_out_of_the_comparison():
    compared = {(name, place[-1]) for name, place, _ in AGREE if place}
    described = {
        (name, key)
        for name in DOCUMENTS
        for key, part in check.schema(name)["$defs"].items()
        if "properties" in part
    }

    assert described == compared


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_property_is_described(name):
    def undescribed(part, place):
        if isinstance(part, list):
            return [miss for at, below in enumerate(part) for miss in undescribed(below, (*place, at))]
        if not isinstance(part, dict):
            return []
        properties = part.get("properties", {})
        missing = [(*place, key) for key, below in properties.items() if not below.get("description")]
        below = {key: value for key, value in part.items() if key not in ("examples", "default")}
        return missing + [miss for key, value in below.items() for miss in undescribed(value, (*place, key))]

    assert undescribed(check.schema(name), ()) == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_shipped_document_and_the_examples_in_the_schema_are_valid(name):
    shipped = json.loads((ROOT / "data" / f"{name}.json").read_text())
    inside = check.schema(name)["examples"]

    assert len(inside) == 2
    for document in (shipped, *inside):
        assert check.findings(name, document) == []


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

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from aether.errors import InvalidInput
from aether.memory.phases import adapt_next_phase, planned_phase
from aether.store.patch import apply
from tests.tables import rows

DATA = Path(__file__).resolve().parents[2] / "data"
NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)


def shipped(name):
    return json.loads((DATA / f"{name}.json").read_text())


def pattern(id, type, *, confidence=0.8, phases=(1,)):
    return {
        "id": id,
        "type": type,
        "pattern": f"text of {id}",
        "confidence": confidence,
        "metadata": {"related_phases": list(phases)},
    }


def memory(*patterns):
    return {"long_term_memory": {"patterns": list(patterns)}}


FOUR = memory(
    pattern("p1", "success_pattern"),
    pattern("p2", "failure_pattern"),
    pattern("p3", "preference"),
    pattern("p4", "constraint", phases=("1", 2)),
)


def adapt(memory, phase=1, colony=None, pheromones=None):
    ids = iter(range(99))
    return adapt_next_phase(
        memory,
        colony or shipped("COLONY_STATE"),
        pheromones or shipped("pheromones"),
        phase,
        now=NOW,
        new_id=lambda kind, now, nth: f"{kind}_{next(ids)}_{nth}",
    )


def test_confident_patterns_become_signals_for_the_next_phase():
    change = adapt(FOUR)

    deposited = apply(shipped("pheromones"), change.patches["pheromones"])["active_pheromones"]
    assert [(s["type"], s["strength"], s["decay_rate"], s["metadata"]["pattern_id"]) for s in deposited] == [
        ("FOCUS", 0.8, 3600, "p1"),
        ("REDIRECT", 0.9, 86400, "p2"),
        ("FOCUS", 0.8, 3600, "p3"),
        ("REDIRECT", 0.9, 86400, "p4"),
    ]
    assert {(s["metadata"]["source"], s["metadata"]["phase"]) for s in deposited} == {
        ("memory_adaptation", 2)
    }
    assert change.result.signals == tuple(s["id"] for s in deposited)


def test_the_roadmap_of_the_next_phase_says_what_it_takes_over():
    change = adapt(FOUR)

    colony = apply(shipped("COLONY_STATE"), change.patches["COLONY_STATE"])
    assert colony["phases"]["roadmap"] == [
        {
            **planned_phase(2),
            "adaptation": {
                "inherited_focus": ["text of p1", "text of p3"],
                "inherited_constraints": ["text of p2", "text of p4"],
                "success_patterns": ["p1"],
                "failure_patterns": ["p2"],
                "adapted_from": 1,
                "adapted_at": "2026-03-01T10:00:00.000000Z",
            },
        }
    ]


def test_the_next_phase_is_the_next_one_planned():
    colony = shipped("COLONY_STATE")
    colony["phases"]["roadmap"] = [planned_phase(1), planned_phase(5), planned_phase(9)]

    change = adapt(FOUR, colony=colony)

    assert change.result.phase == 5
    roadmap = apply(colony, change.patches["COLONY_STATE"])["phases"]["roadmap"]
    assert [entry["phase"] for entry in roadmap if entry["adaptation"]] == [5]


def test_adapting_twice_from_one_phase_is_adapting_once():
    change = adapt(FOUR)
    colony = apply(shipped("COLONY_STATE"), change.patches["COLONY_STATE"])

    assert adapt(FOUR, colony=colony) == ({}, {}, None)


@rows(
    "odd",
    [
        pattern("p1", "preference", confidence=0.7),
        pattern("p1", "preference", phases=(2,)),
        pattern("p1", "preference", phases=("x", None)),
        {**pattern("p1", "preference"), "metadata": {}},
    ],
)
def test_doubtful_or_foreign_patterns_change_nothing(odd):
    assert adapt(memory(odd)) == ({}, {}, None)


def test_a_pattern_that_steers_again_renews_its_signal():
    change = adapt(FOUR)
    colony = apply(shipped("COLONY_STATE"), change.patches["COLONY_STATE"])
    pheromones = apply(shipped("pheromones"), change.patches["pheromones"])

    again = adapt(
        memory(pattern("p4", "constraint", phases=(2,))), phase=2, colony=colony, pheromones=pheromones
    )

    after = apply(pheromones, again.patches["pheromones"])["active_pheromones"]
    assert sorted(s["metadata"]["pattern_id"] for s in after) == ["p1", "p2", "p3", "p4"]
    assert [event["signal"]["metadata"]["pattern_id"] for event in again.appends["events"]] == ["p4"]
    assert again.result.phase == 3


def test_adapting_from_what_is_no_phase_is_refused():
    with pytest.raises(InvalidInput, match="not a phase"):
        adapt(FOUR, phase="1")

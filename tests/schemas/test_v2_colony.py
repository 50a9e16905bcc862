import json
from pathlib import Path

import pytest

from aether.schemas import check
from aether.schemas.migrations import migrate
from tests.tables import rows

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
EPOCH = "1970-01-01T00:00:00.000000Z"


def oddities(name):
    return migrate(
        name, json.loads((EXAMPLES / name / "old-v2" / "shipped_oddities.json").read_text())
    ).document


def pheromones(**fields):
    document = migrate("pheromones", fields).document
    assert check.findings("pheromones", document) == []
    return document


def colony(**fields):
    document = migrate("COLONY_STATE", fields).document
    assert check.findings("COLONY_STATE", document) == []
    return document


def set_aside(document):
    return [entry["value"] for entry in document.get("unplaced", [])]


def test_signals_of_one_second_are_told_apart():
    ids = [signal["id"] for signal in oddities("pheromones")["active_pheromones"]]

    assert ids == [
        "init_1769900000",
        "focus_1769900000",
        "focus_1769900000_2",
        "phase_complete_1769976000",
        "redirect_1769976001",
    ]


def test_a_signal_gets_what_it_lacks_from_its_type():
    *_, boundary, redirect = oddities("pheromones")["active_pheromones"]

    assert (boundary["type"], boundary["metadata"]["phase"]) == ("phase_complete", 1)
    assert (redirect["strength"], redirect["decay_rate"]) == (0.9, 86400)


def test_a_signal_of_an_unknown_type_does_not_fade():
    (signal,) = pheromones(active_pheromones=[{"type": "SHOUT"}])["active_pheromones"]

    assert signal == {
        "type": "SHOUT",
        "id": "shout_v2_0",
        "strength": 0.5,
        "created_at": EPOCH,
        "decay_rate": None,
        "metadata": {},
    }


def test_a_signal_that_was_said_not_to_fade_does_not():
    (signal,) = pheromones(active_pheromones=[{"type": "FOCUS", "decay_rate": None}])["active_pheromones"]

    assert signal["decay_rate"] is None


def test_a_signal_without_a_type_is_set_aside():
    document = pheromones(active_pheromones=[{"id": "x"}, 3])

    assert document["active_pheromones"] == []
    assert set_aside(document) == [{"id": "x"}, 3]


def test_odd_words_about_a_signal_are_set_aside():
    metadata = {"source": 3, "caste": None, "phase": "soon", "own": [1]}

    document = pheromones(active_pheromones=[{"type": "FOCUS", "metadata": metadata}])

    assert document["active_pheromones"][0]["metadata"] == {"caste": None, "own": [1]}
    assert set_aside(document) == [3, "soon"]


def test_types_and_castes_of_the_colony_stay_beside_ours():
    document = oddities("pheromones")

    assert document["pheromone_types"]["ALARM"]["half_life_seconds"] == 60
    assert document["pheromone_types"]["CHECKIN"]["default_strength"] == 1.0
    assert document["caste_sensitivities"]["forager"] == {"FOCUS": 0.5}
    assert document["caste_sensitivities"]["scout"]["FOCUS"] == 0.7


def test_odd_tables_are_set_aside():
    document = pheromones(
        pheromone_types={"FOCUS": 3}, caste_sensitivities={"builder": {"FOCUS": "x"}, "ant": 1}
    )

    assert document["pheromone_types"]["FOCUS"]["half_life_seconds"] == 3600
    assert document["caste_sensitivities"]["builder"]["FOCUS"] == 1.0
    assert set_aside(document) == [3, "x", 1]


def test_the_colony_keeps_its_place_and_its_own_fields():
    document = oddities("COLONY_STATE")

    assert document["goal"] == "Build a colony that remembers"
    assert document["queen_intention"] == {"set_at": "2026-01-31T22:53:20Z"}
    assert document["colony_status"]["state"] == "EXECUTING"
    assert document["colony_status"]["current_phase"] == 2
    assert document["colony_status"]["phases_completed"] == [1]
    assert document["colony_status"]["queen_checkin"]["status"] == "awaiting_review"


def test_the_history_is_kept_and_counted():
    machine = oddities("COLONY_STATE")["state_machine"]

    assert [entry["to"] for entry in machine["state_history"]] == ["INIT", "PLANNING", "EXECUTING"]
    assert machine["transitions_count"] == 3
    assert machine["last_transition"] == "2026-02-01T20:05:00.000000Z"


def test_where_the_last_transition_is_missing_the_history_knows():
    entry = {"from": "IDLE", "to": "INIT", "timestamp": "2026-02-01T00:00:00Z"}

    machine = colony(state_machine={"state_history": [entry]})["state_machine"]

    assert machine["last_transition"] == "2026-02-01T00:00:00.000000Z"
    assert machine["state_history"][0]["trigger"] == "manual"


def test_checkpoints_of_the_original_are_not_taken_for_snapshots():
    assert oddities("COLONY_STATE")["checkpoints"] == {
        "latest_checkpoint": "checkpoint_6",
        "checkpoint_count": 6,
        "automatic": [],
    }
    assert colony(checkpoints=["checkpoint_1"])["checkpoints"] == {"v2": ["checkpoint_1"], "automatic": []}


def test_phases_of_the_roadmap_get_numbers_and_a_status():
    roadmap = oddities("COLONY_STATE")["phases"]["roadmap"]

    assert [(phase["phase"], phase["status"]) for phase in roadmap] == [
        (1, "completed"),
        (2, "in_progress"),
        (3, "planned"),
    ]
    assert roadmap[1]["adaptation"]["inherited_focus"] == ["Persistence first"]


def test_a_phase_of_the_roadmap_without_any_number_counts_by_place():
    roadmap = colony(phases={"roadmap": [{"status": "planned"}, {"status": "pending"}]})["phases"]["roadmap"]

    assert [(phase["phase"], phase["status"]) for phase in roadmap] == [(1, "planned"), (2, "planned")]


@rows(("word", "status"), [("not started", "planned"), ("done", "completed"), ("started", "in_progress")])
def test_words_for_how_far_a_phase_is_are_understood(word, status):
    document = colony(phases={"roadmap": [{"number": 4, "status": word}]})

    assert [(p["phase"], p["status"]) for p in document["phases"]["roadmap"]] == [(4, status)]
    assert set_aside(document) == []


def test_odd_words_about_a_phase_or_a_check_in_are_set_aside():
    document = colony(
        colony_status={"queen_checkin": {"phase": 1, "status": "seen"}},
        phases={"roadmap": [{"id": 2, "phase": "soon", "status": "blue"}]},
    )

    assert document["phases"]["roadmap"][0]["phase"] == 2
    assert sorted(set_aside(document)) == ["blue", "seen", "soon"]


def test_an_unknown_state_rests():
    document = colony(colony_status={"state": "PANIC"}, state_machine={"states": ["IDLE", "PANIC"]})

    assert document["colony_status"]["state"] == "IDLE"
    assert set_aside(document) == [["IDLE", "PANIC"], "PANIC"]


def test_odd_completed_phases_are_read_or_set_aside():
    document = colony(colony_status={"phases_completed": ["2", {"id": 3, "name": "x"}, "soon", 2]})

    assert document["colony_status"]["phases_completed"] == [2, 3]
    assert set_aside(document) == [{"id": 3, "name": "x"}, "soon"]


def test_workers_that_cannot_be_named_are_set_aside():
    document = colony(colony_status={"workers": [{"id": "w1"}, {"caste": "scout"}]})

    assert document["colony_status"]["workers"] == [
        {"id": "w1", "caste": None, "task": None, "registered_at": EPOCH}
    ]
    assert document["colony_status"]["workers_registered"] == 1


@rows(
    ("raw", "status", "decision"),
    [
        ({"phase": 1}, "awaiting_review", None),
        (
            {"phase": "1", "queen_decision": "adjust", "decided_at": "soon", "note": "well"},
            "decided",
            "adjust",
        ),
        ({"phase": 1, "queen_decision": "approved"}, "decided", None),
    ],
)
def test_check_ins_are_read(raw, status, decision):
    checkin = colony(colony_status={"queen_checkin": raw})["colony_status"]["queen_checkin"]

    assert (checkin["phase"], checkin["status"], checkin["queen_decision"]) == (1, status, decision)


@pytest.mark.parametrize("raw", [{"status": "awaiting_review"}, 3])
def test_a_check_in_without_a_phase_is_set_aside(raw):
    document = colony(colony_status={"queen_checkin": raw})

    assert document["colony_status"]["queen_checkin"] is None
    assert set_aside(document) == [raw]

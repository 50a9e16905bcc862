import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from aether.errors import InvalidInput
from aether.memory import colony as machine
from aether.memory import phases, signals
from aether.memory.phases import PhaseMarker, adapt_next_phase, phase_markers, planned_phase
from aether.store.patch import apply
from tests.tables import rows

DATA = Path(__file__).resolve().parents[2] / "data"
NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)


def numbered(kind, now, nth):
    return f"{kind}_{now:%H}_{nth}"


class Colony:
    """Both documents, and every record that was appended, while a test walks through phases."""

    def __init__(self, state="IDLE", **status):
        self.colony = json.loads((DATA / "COLONY_STATE.json").read_text())
        self.colony["colony_status"] |= {"state": state, **status}
        self.pheromones = json.loads((DATA / "pheromones.json").read_text())
        self.appended = []

    def take(self, change):
        self.colony = apply(self.colony, change.patches.get("COLONY_STATE", []))
        self.pheromones = apply(self.pheromones, change.patches.get("pheromones", []))
        self.appended += [record for records in change.appends.values() for record in records]
        return change.result

    def start(self, phase, **kwargs):
        return self.take(phases.start_phase(self.colony, self.pheromones, phase, **{"now": NOW, **kwargs}))

    def complete(self, phase, now=LATER):
        change = phases.complete_phase(self.colony, self.pheromones, phase, now=now, new_id=numbered)
        return self.take(change)

    def decide(self, decision, **kwargs):
        return self.take(phases.decide(self.colony, self.pheromones, decision, now=LATER, **kwargs))

    @property
    def status(self):
        return self.colony["colony_status"]

    @property
    def types(self):
        return [signal["type"] for signal in self.pheromones["active_pheromones"]]

    def roadmap(self, phase):
        return next(entry for entry in self.colony["phases"]["roadmap"] if entry["phase"] == phase)


@rows("state", [s for s in machine.STATES if s not in machine.RUNNING])
def test_starting_a_phase_reaches_executing_from_every_resting_state(state):
    home = Colony(state)

    result = home.start(1, name="Reader", goal="Read one transcript")

    assert result == phases.PhaseChange(1, "EXECUTING", True)
    assert (home.status["state"], home.status["current_phase"]) == ("EXECUTING", 1)
    assert home.roadmap(1) == {
        "phase": 1,
        "name": "Reader",
        "goal": "Read one transcript",
        "status": "in_progress",
        "started_at": "2026-03-01T10:00:00.000000Z",
        "completed_at": None,
        "adaptation": None,
    }


def test_starting_a_running_phase_again_changes_nothing():
    home = Colony()
    home.start(1)

    change = phases.start_phase(home.colony, home.pheromones, 1, now=LATER)

    assert change.patches == {}
    assert change.result == phases.PhaseChange(1, "EXECUTING", False)


def test_a_running_phase_can_still_be_named():
    home = Colony()
    home.start(1)

    home.start(1, name="Reader", now=LATER)

    assert home.roadmap(1)["name"] == "Reader"
    assert home.roadmap(1)["started_at"] == "2026-03-01T10:00:00.000000Z"


def test_another_phase_cannot_start_while_one_runs():
    home = Colony()
    home.start(1)

    with pytest.raises(InvalidInput, match=r"phase 2: phase 1 is still EXECUTING.*aether phase complete 1"):
        home.start(2)


def test_a_phase_under_verification_can_be_taken_up_again():
    home = Colony("VERIFYING", current_phase=1)

    assert home.start(1).changed
    assert home.status["state"] == "EXECUTING"


def test_work_that_runs_without_a_phase_gets_one():
    home = Colony("EXECUTING")

    assert home.start(4).changed
    assert home.status["current_phase"] == 4


def test_a_check_in_of_another_phase_waits_on_while_a_running_one_is_named():
    home = Colony()
    home.start(2)
    home.complete(1)

    home.start(2, name="Writer")

    assert home.status["queen_checkin"]["status"] == "awaiting_review"
    assert "CHECKIN" in home.types


def test_a_completed_phase_that_was_set_to_work_by_hand_is_opened_by_starting_it():
    home = Colony("EXECUTING", current_phase=1)
    home.complete(1)
    for state in ("IDLE", "INIT", "PLANNING", "EXECUTING"):
        home.take(machine.transition(home.colony, state, now=LATER))

    assert home.start(1).changed
    assert (home.status["phases_completed"], home.types) == ([], [])


def test_the_roadmap_stays_in_the_order_of_the_numbers():
    home = Colony()
    for phase in (3, 1, 2):
        home.start(phase)
        home.complete(phase)

    assert [entry["phase"] for entry in home.colony["phases"]["roadmap"]] == [1, 2, 3]


def test_completing_a_running_phase_leaves_it_waiting_for_the_queen():
    home = Colony()
    home.start(1)

    result = home.complete(1)

    assert result == phases.PhaseChange(1, "COMPLETED", True, ("phase_complete_11_0", "checkin_11_1"))
    assert home.status["phases_completed"] == [1]
    assert home.status["queen_checkin"] == {
        "phase": 1,
        "status": "awaiting_review",
        "timestamp": "2026-03-01T11:00:00.000000Z",
        "queen_decision": None,
    }
    assert home.roadmap(1)["status"] == "completed"
    assert signals.find_phase_complete(home.pheromones, 1)["metadata"]["phase"] == 1
    assert sorted(home.types) == ["CHECKIN", "PHASE_COMPLETE"]
    route = [entry["to"] for entry in home.colony["state_machine"]["state_history"]]
    assert route == ["INIT", "PLANNING", "EXECUTING", "VERIFYING", "COMPLETED"]
    assert home.appended[-1] == {
        "event": "phase_completed",
        "at": "2026-03-01T11:00:00.000000Z",
        "phase": 1,
        "started": True,
    }


def test_completing_twice_is_completing_once():
    home = Colony()
    home.start(1)
    home.complete(1)

    change = phases.complete_phase(home.colony, home.pheromones, 1, now=LATER, new_id=numbered)

    assert (change.patches, change.appends) == ({}, {})
    assert change.result == phases.PhaseChange(1, "COMPLETED", False)


def test_a_phase_never_started_may_be_completed_and_says_so():
    home = Colony()

    result = home.complete(7)

    assert result.state == "IDLE"
    assert home.status["state"] == "IDLE"
    assert home.status["phases_completed"] == [7]
    assert home.roadmap(7)["started_at"] is None
    assert home.appended[-1]["started"] is False
    assert signals.find_phase_complete(home.pheromones, 7)


def test_completing_another_phase_lets_the_running_one_run():
    home = Colony()
    home.start(2)

    home.complete(1)

    assert (home.status["state"], home.status["current_phase"]) == ("EXECUTING", 2)


def test_completing_work_that_ran_without_a_phase_names_it():
    home = Colony("VERIFYING")

    assert home.complete(1).state == "COMPLETED"
    assert home.status["current_phase"] == 1


def test_a_failed_phase_cannot_be_completed():
    home = Colony("FAILED", current_phase=1)

    with pytest.raises(InvalidInput, match=r"phase 1 FAILED. Start it again"):
        home.complete(1)


def test_a_completed_phase_that_starts_again_is_open():
    home = Colony()
    home.start(1)
    home.complete(1)

    home.start(1)

    assert home.status["phases_completed"] == []
    assert home.types == []
    assert home.roadmap(1)["completed_at"] is None
    assert home.status["queen_checkin"]["queen_decision"] == "redo"
    assert home.complete(1, now=LATER + timedelta(hours=1)).changed


def test_opening_one_of_several_completed_phases_leaves_the_others_complete():
    """The boundary and the check-in that go stand between signals that stay."""
    home = Colony()
    home.complete(1)
    home.complete(2, now=LATER + timedelta(hours=1))

    home.start(1, now=LATER)

    assert [s["metadata"]["phase"] for s in home.pheromones["active_pheromones"]] == [2]
    assert home.types == ["PHASE_COMPLETE"]


def test_starting_the_next_phase_decides_for_the_queen():
    home = Colony()
    home.start(1)
    home.complete(1)

    home.start(2)

    assert home.status["queen_checkin"]["queen_decision"] == "continue"
    assert home.status["queen_checkin"]["note"] == "phase 2 was started"
    assert home.types == ["PHASE_COMPLETE"]


@rows("decision", phases.DECISIONS)
def test_the_queen_decides(decision):
    home = Colony()
    home.complete(1)

    result = home.decide(decision, note="well done")

    assert result == home.status["queen_checkin"]
    assert (result["status"], result["queen_decision"], result["note"]) == ("decided", decision, "well done")
    assert home.types == ["PHASE_COMPLETE"]


def test_the_same_decision_again_changes_nothing():
    home = Colony()
    home.complete(1)
    home.decide("continue")

    assert phases.decide(home.colony, home.pheromones, "continue", now=LATER).patches == {}


def test_another_decision_after_the_first_is_refused():
    home = Colony()
    home.complete(1)
    home.decide("continue")

    with pytest.raises(InvalidInput, match="no phase waits for a decision"):
        home.decide("redo")


def test_where_no_phase_waits_there_is_nothing_to_decide():
    with pytest.raises(InvalidInput, match="no phase waits for a decision"):
        Colony().decide("continue")


def test_an_unknown_decision_is_refused_with_the_list():
    with pytest.raises(InvalidInput, match=r"'perhaps' is not a decision. Use one of continue, adjust, redo"):
        Colony().decide("perhaps")


def test_an_older_check_in_that_still_waits_is_kept_as_an_event():
    home = Colony()
    home.complete(1)
    home.complete(2, now=LATER + timedelta(hours=1))

    assert home.status["queen_checkin"]["phase"] == 2
    assert home.types.count("CHECKIN") == 1
    superseded = [record for record in home.appended if record["event"] == "checkin_superseded"]
    assert [record["checkin"]["phase"] for record in superseded] == [1]


@rows("phase", ["../x", "con", "x" * 300, 1.0, True, -1, None])
def test_every_function_rejects_an_invalid_phase_number(phase):
    home = Colony()
    for act in (
        home.start,
        home.complete,
        lambda phase: phases.await_queen_decision(
            home.colony, home.pheromones, phase, now=NOW, signal_id="s1"
        ),
    ):
        with pytest.raises(InvalidInput, match="not a phase"):
            act(phase)


def test_the_current_phase_is_one_until_a_phase_was_started():
    home = Colony()
    assert phases.current_phase(home.colony) == 1
    home.start(0)
    assert phases.current_phase(home.colony) == 0


@rows(
    "line",
    [
        "Phase 2 complete", "Phase 2 complete.", "**Phase 2 complete!**", "## Phase 2: done", "✅ Phase 2 completed",
        "Phase 2 is now finished.", "phase 2 – done", "aether: complete phase 2", "_Phase 2 has been completed._",
        "Phase 2 is complete ✅",
    ],
)  # fmt: skip
def test_a_line_of_its_own_says_that_a_phase_is_over(line):
    assert phase_markers(f"All tests pass.\n\n{line}\n\nShall I go on?") == [PhaseMarker("complete", 2)]


@rows(
    "text",
    [
        "Is phase 2 complete?", "Phase 2 complete?", "Once phase 2 is complete, we deploy.", '"Phase 2 complete"',
        "`Phase 2 complete`", "> Phase 2 complete", "- Phase 2: done", "1. Phase 2: done", "- [x] Phase 2 complete",
        "| Phase 2 complete |", "    Phase 2 complete", "\tPhase 2 complete", "```\nPhase 2 complete\n```",
        "~~~text\nPhase 2 complete\n~~~\nmore", "```\nPhase 2 complete", "I'll then write:\n\nPhase 2 complete",
        "**When the tests pass, say:**\nPhase 2 complete",
        "Phase 2 is almost complete", "Phase two complete", "Phase 2 completes the parser", "Phase 2 done by Friday",
        "", "phase", "Phase 12345678 complete",
    ],
)  # fmt: skip
def test_quotes_code_plans_and_questions_say_nothing(text):
    assert phase_markers(text) == []


@rows(
    ("line", "name"),
    [
        ('aether: start phase 3 "the importer"', "the importer"), ("aether: start phase 3", ""),
        ("**aether: start phase 3: hooks**", "hooks"), ("Aether: start phase 3 “Plugin”.", "Plugin"),
    ],
)  # fmt: skip
def test_an_explicit_line_starts_a_phase(line, name):
    assert phase_markers(line) == [PhaseMarker("start", 3, name)]


def test_only_an_explicit_line_starts_one():
    assert phase_markers("Start phase 3") == phase_markers("Phase 3 started") == []


def test_markers_keep_their_order():
    text = "Phase 2 complete\r\n\r\naether: start phase 3 'x'\r\n"

    assert phase_markers(text) == [PhaseMarker("complete", 2), PhaseMarker("start", 3, "x")]


def test_code_before_a_line_does_not_hide_it():
    assert phase_markers("```\nmake\n```\nPhase 2 complete") == [PhaseMarker("complete", 2)]


def test_long_text_without_an_end_takes_no_time():
    assert phase_markers("phase " + "not " * 50_000) == []


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


def test_the_roadmap_of_the_next_phase_lists_the_inherited_patterns():
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


def test_adapting_from_an_invalid_phase_is_rejected():
    with pytest.raises(InvalidInput, match="not a phase"):
        adapt(FOUR, phase="1")

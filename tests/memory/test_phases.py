import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from aether.errors import InvalidInput
from aether.memory import colony as machine
from aether.memory import phases
from aether.memory.phases import PhaseMarker, adapt_next_phase, phase_markers
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


def test_completing_work_that_ran_without_a_phase_names_it():
    home = Colony("VERIFYING")

    assert home.complete(1).state == "COMPLETED"
    assert home.status["current_phase"] == 1


def test_a_failed_phase_cannot_be_completed():
    home = Colony("FAILED", current_phase=1)

    with pytest.raises(InvalidInput, match=r"phase 1 FAILED. Start it again"):
        home.complete(1)


@rows("decision", phases.DECISIONS)
def test_the_queen_decides(decision):
    home = Colony()
    home.complete(1)

    result = home.decide(decision, note="well done")

    assert result == home.status["queen_checkin"]
    assert (result["status"], result["queen_decision"], result["note"]) == ("decided", decision, "well done")
    assert home.types == ["PHASE_COMPLETE"]


def test_an_unknown_decision_is_refused_with_the_list():
    with pytest.raises(InvalidInput, match=r"'perhaps' is not a decision. Use one of continue, adjust, redo"):
        Colony().decide("perhaps")


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

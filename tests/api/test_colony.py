from datetime import timedelta

import pytest

import aether
from aether import clock
from aether.api import colony as colony_operations
from aether.errors import InvalidInput, NotFound, StorageFailed
from tests import homes
from tests.api.calls import snapshot, whole
from tests.memory.states import answer
from tests.tables import rows


def state(home):
    return aether.colony(home=home)["colony_status"]["state"]


def test_a_signal_is_emitted_and_felt(home):
    emitted = aether.emit_signal(
        "focus", "the payment module", strength=0.8, phase=2, metadata={"mine": [1]}, home=home
    )

    assert (emitted["type"], emitted["strength"], emitted["decay_rate"]) == ("FOCUS", 0.8, 3600)
    assert (
        emitted["metadata"].items()
        >= {"context": "the payment module", "source": "queen", "phase": 2, "mine": [1]}.items()
    )
    [felt] = aether.active_signals(home=home)
    assert felt["id"] == emitted["id"]
    assert 0.79 < felt["effective_strength"] <= 0.8
    [by_scout] = aether.active_signals(caste="architect", home=home)
    assert by_scout["effective_strength"] < felt["effective_strength"]


@rows(
    ("type", "context", "options"),
    [
        ("LOVE", "x", {}), ("", "x", {}), ("../x", "x", {}), ("FOCUS", "", {}), ("FOCUS", " ", {}),
        ("FOCUS", "x", {"strength": 0}), ("FOCUS", "x", {"strength": 2}), ("FOCUS", "x", {"strength": float("nan")}),
        ("FOCUS", "x", {"phase": -1}), ("FOCUS", "x", {"metadata": {"v": float("inf")}}),
    ],
)  # fmt: skip
def test_an_impossible_signal_is_refused(home, type, context, options):
    before = snapshot(home)

    with pytest.raises(InvalidInput):
        aether.emit_signal(type, context, home=home, **options)
    assert snapshot(home) == before


def test_faded_signals_move_to_the_events_on_the_way(home, monkeypatch):
    old = aether.emit_signal("FOCUS", "yesterday's work", home=home)
    tomorrow = clock.now() + timedelta(days=1)
    monkeypatch.setattr(colony_operations, "now", lambda: tomorrow)

    new = aether.emit_signal("FOCUS", "today's work", home=home)

    assert [each["id"] for each in aether.active_signals(home=home)] == [new["id"]]
    assert [each["signal"]["id"] for each in aether.export(home=home)["events"]] == [old["id"]]


@pytest.mark.parametrize("end", [lambda home: aether.complete_phase(1, home=home),
                                 lambda home: aether.transition_state("FAILED", home=home),
                                 lambda home: aether.recover_from_crash(home=home)])  # fmt: skip
def test_work_that_runs_is_steered_when_its_phase_ends(home, end):
    aether.start_phase(1, home=home)

    queued = [aether.emit_signal(kind, "elsewhere", home=home) for kind in ("FOCUS", "REDIRECT")]
    assert [(each["queued"], each["context"]) for each in queued] == [(True, "elsewhere")] * 2
    assert aether.emit_signal("FEEDBACK", "well done", home=home)["queued"] is False
    assert [each["type"] for each in aether.active_signals(home=home)] == ["FEEDBACK"]

    end(home)

    held = {each["id"]: each["context"] for each in aether.active_signals(home=home)}
    assert held.items() >= {each["id"]: "elsewhere" for each in queued}.items()
    assert colony_operations.queued_signals(home=home) == []


def test_a_queued_signal_is_forgotten_like_a_deposited_one(home):
    aether.start_phase(1, home=home)
    aether.emit_signal("FOCUS", "the harbour of Genoa", home=home)

    assert aether.forget(match="the harbour of Genoa", home=home)
    aether.complete_phase(1, home=home)
    assert "Genoa" not in str(aether.active_signals(home=home))


def test_a_phase_that_nobody_began_is_not_completed(home):
    with pytest.raises(InvalidInput, match="phase 7 was never started"):
        aether.complete_phase(7, home=home)

    aether.add_working_memory_item("Done by hand.", "outcome", phase=7, home=home)
    assert aether.complete_phase(7, home=home).changed


def test_a_phase_is_started_and_completed(home):
    started = aether.start_phase(1, name="Schemas", goal="State as JSON", home=home)
    again = aether.start_phase(1, home=home)

    assert (started.state, started.changed, again.changed) == ("EXECUTING", True, False)
    done = aether.complete_phase(1, home=home)

    status = aether.colony(home=home)["colony_status"]
    assert (done.state, done.changed) == ("COMPLETED", True)
    assert status["phases_completed"] == [1]
    assert status["queen_checkin"]["status"] == "awaiting_review"
    assert {each["type"] for each in aether.active_signals(home=home)} == {"PHASE_COMPLETE", "CHECKIN"}
    assert not aether.complete_phase(1, home=home).changed
    whole(home)


def test_the_queen_decides(home):
    with pytest.raises(InvalidInput):
        aether.decide("continue", home=home)
    aether.start_phase(1, home=home)
    aether.complete_phase(1, home=home)

    decided = aether.decide("continue", note="well done", home=home)

    assert decided["queen_decision"] == "continue"
    assert decided["status"] != "awaiting_review"
    assert "CHECKIN" not in {each["type"] for each in aether.active_signals(home=home)}


def test_a_check_in_may_be_asked_for(home):
    waiting = aether.await_queen_decision(3, home=home)

    assert (waiting["phase"], waiting["status"], waiting["queen_decision"]) == (3, "awaiting_review", None)
    assert [each["type"] for each in aether.active_signals(home=home)] == ["CHECKIN"]


def test_patterns_of_a_phase_steer_the_next_one(home):
    """Defect 20 of the original: adaptation never fired."""
    high = [{"content": "Avoid global state in handlers", "relevance_score": 0.9, "type": "constraint"}]
    for nth in range(2):
        aether.create_short_term_session(1, answer(f"s{nth}", high_value_items=high), home=home)

    adapted = aether.adapt_next_phase_from_memory(1, home=home)

    assert adapted.phase == 2
    [felt] = aether.active_signals(home=home)
    assert (felt["type"], felt["strength"], felt["metadata"]["source"]) == (
        "REDIRECT",
        0.9,
        "memory_adaptation",
    )
    assert aether.adapt_next_phase_from_memory(1, home=home) is None
    assert len(aether.active_signals(home=home)) == 1


def test_completing_a_phase_adapts_the_next_one(home):
    high = [{"content": "Avoid global state in handlers", "relevance_score": 0.9, "type": "constraint"}]
    for nth in range(2):
        aether.create_short_term_session(1, answer(f"s{nth}", high_value_items=high), home=home)
    aether.start_phase(1, home=home)

    aether.complete_phase(1, home=home)

    [entry] = [each for each in aether.colony(home=home)["phases"]["roadmap"] if each["phase"] == 2]
    assert entry["adaptation"]["inherited_constraints"]


def test_a_transition_is_legal_or_refused_before_anything_happens(home):
    """Defect 20 of the original: every transition failed, because its snapshot did."""
    done = aether.transition_state("INIT", "the queen's word", home=home)

    assert done.items() >= {"from": "IDLE", "to": "INIT", "trigger": "the queen's word"}.items()
    assert state(home) == "INIT"
    labels = [each["label"] for each in aether.list_snapshots(home=home)]
    assert labels == ["post_IDLE_to_INIT", "pre_IDLE_to_INIT"]
    for new in ("COMPLETED", "INIT", "../x", ""):
        with pytest.raises(InvalidInput, match=r"transition|state"):
            aether.transition_state(new, home=home)
    assert len(aether.list_snapshots(home=home)) == 2
    whole(home)


def test_every_legal_transition_is_possible(home):
    for new in ("INIT", "PLANNING", "EXECUTING", "FAILED", "PLANNING", "EXECUTING", "VERIFYING", "EXECUTING",
                "VERIFYING", "COMPLETED", "IDLE"):  # fmt: skip
        aether.transition_state(new, home=home)

    assert state(home) == "IDLE"
    assert len(aether.list_snapshots(home=home)) == 10, "automatic snapshots give way"


def test_workers_come_and_go(home):
    worker = aether.register_worker("scout-1", caste="scout", task="look", home=home)

    assert worker.items() >= {"caste": "scout", "task": "look"}.items()
    aether.release_worker("scout-1", home=home)
    with pytest.raises(NotFound):
        aether.release_worker("scout-1", home=home)


def test_work_without_workers_is_a_crash_and_recovery_leads_to_planning(home):
    """Defect 20 of the original: recovery said it had worked, and the state stayed."""
    assert aether.detect_crash(home=home) is None
    with pytest.raises(InvalidInput):
        aether.recover_from_crash(home=home)
    item = aether.add_working_memory_item("note", "x", home=home)
    aether.start_phase(1, home=home)
    aether.register_worker("builder-1", home=home)
    assert aether.detect_crash(home=home) is None
    aether.release_worker("builder-1", home=home)
    assert aether.detect_crash(home=home).level in ("error", "warning")

    aether.recover_from_crash(home=home)

    assert state(home) == "PLANNING"
    assert homes.ids(home) == [item]
    assert "pre_recovery" in [each["label"] for each in aether.list_snapshots(home=home)]


def test_work_without_progress_is_a_crash(home, monkeypatch):
    aether.start_phase(1, home=home)
    aether.register_worker("builder-1", home=home)

    for seconds, crashed in ((1_700, False), (1_900, True)):
        later = clock.now() + timedelta(seconds=seconds)
        monkeypatch.setattr(colony_operations, "now", lambda later=later: later)
        assert (aether.detect_crash(home=home) is not None) == crashed


@rows("phase", ["../x", "", -1, 1.5, None, True, 2**64])
def test_an_invalid_phase_is_rejected(home, phase):
    before = snapshot(home)

    for call in (
        aether.start_phase, aether.complete_phase, aether.await_queen_decision, aether.adapt_next_phase_from_memory,
    ):  # fmt: skip
        with pytest.raises(InvalidInput):
            call(phase, home=home)
    assert snapshot(home) == before


def test_a_transition_is_kept_if_its_second_snapshot_fails(home, monkeypatch):
    def full(label, **_):
        if label.startswith("post"):
            raise StorageFailed("no space left.", fix="Free some space.")
        return "snapshot_1"

    monkeypatch.setattr(colony_operations, "automatic_snapshot", full)

    entry = aether.transition_state("INIT", home=home)

    assert entry["checkpoint"] == "snapshot_1"
    assert aether.colony(home=home)["colony_status"]["state"] == "INIT"

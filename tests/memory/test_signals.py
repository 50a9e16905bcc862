import copy
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from aether.errors import InvalidInput
from aether.memory import signals
from aether.store.patch import apply
from tests.tables import rows

DATA = Path(__file__).resolve().parents[2] / "data"
NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)


def fresh():
    return json.loads((DATA / "pheromones.json").read_text())


def emitted(pheromones, *args, id="s1", now=NOW, **kwargs):
    change = signals.emit(pheromones, *args, id=id, now=now, **kwargs)
    return apply(pheromones, change.patches["pheromones"])


def test_the_shipped_type_table_is_the_one_in_the_code():
    assert fresh()["pheromone_types"] == signals.TYPES


def test_emitting_deposits_the_signal_it_answers():
    before = fresh()
    untouched = copy.deepcopy(before)

    change = signals.emit(
        before, "FOCUS", "Stream the input", now=NOW, id="s1", phase=2, metadata={"why": "memory"}
    )

    assert before == untouched
    assert apply(before, change.patches["pheromones"])["active_pheromones"] == [change.result]
    assert change.result == {
        "id": "s1",
        "type": "FOCUS",
        "strength": 0.7,
        "created_at": "2026-03-01T10:00:00.000000Z",
        "decay_rate": 3600,
        "metadata": {
            "why": "memory",
            "source": "queen",
            "caste": None,
            "context": "Stream the input",
            "phase": 2,
        },
    }


def test_a_type_may_be_written_in_small_letters():
    assert signals.emit(fresh(), "feedback", "Good", now=NOW, id="s1").result["type"] == "FEEDBACK"


def test_a_colony_may_add_types_and_tune_ours():
    pheromones = fresh()
    pheromones["pheromone_types"] |= {
        "Alarm": {"half_life_seconds": 60, "default_strength": 0.6, "effect": "come"},
        "FOCUS": {"half_life_seconds": 10, "default_strength": 0.2, "effect": "attract"},
    }

    alarm = signals.emit(pheromones, "Alarm", "Fire", now=NOW, id="s1").result
    focus = signals.emit(pheromones, "FOCUS", "Here", now=NOW, id="s2").result

    assert (alarm["strength"], alarm["decay_rate"]) == (0.6, 60)
    assert (focus["strength"], focus["decay_rate"]) == (0.2, 10)


@rows("type", ["SHOUT", "", None, 3])
def test_an_unknown_type_is_refused_with_the_list(type):
    with pytest.raises(InvalidInput, match=r"not a type of signal.*INIT, FOCUS, REDIRECT, FEEDBACK, CHECKIN"):
        signals.emit(fresh(), type, "x", now=NOW, id="s1")


@rows("strength", [0, -0.1, 1.01, float("nan"), True, "0.5"])
def test_a_strength_outside_zero_to_one_is_refused(strength):
    with pytest.raises(InvalidInput, match="not a strength"):
        signals.emit(fresh(), "FOCUS", "x", now=NOW, id="s1", strength=strength)


@rows("context", ["", "  \n", None, 3])
def test_a_signal_that_says_nothing_is_refused(context):
    with pytest.raises(InvalidInput, match="says nothing"):
        signals.emit(fresh(), "FOCUS", context, now=NOW, id="s1")


def test_a_signal_about_no_phase_number_is_refused():
    with pytest.raises(InvalidInput, match="not a phase"):
        signals.emit(fresh(), "FOCUS", "x", now=NOW, id="s1", phase="../x")
    with pytest.raises(InvalidInput, match="not a phase"):
        signals.emit(fresh(), "FOCUS", "x", now=NOW, id="s1", metadata={"phase": "build"})
    for more in ({"source": None}, {"metadata": {"event": 3}}):
        with pytest.raises(InvalidInput, match="Use text"):
            signals.emit(fresh(), "FOCUS", "x", now=NOW, id="s1", **more)


@pytest.mark.parametrize("type", ["FOCUS", "redirect"])
def test_steering_is_queued_while_executing_and_released_afterwards(type):
    state = fresh()
    for name in ("s1", "s2"):
        change = signals.emit(state, type, "x", now=NOW, id=name, colony_state="EXECUTING")
        state = apply(state, change.patches["pheromones"])

    assert signals.active_signals(state, now=NOW) == []
    assert [each["id"] for each in signals.queued_signals(state)] == ["s1", "s2"]
    later = NOW + timedelta(hours=9)
    assert signals.release(state, colony_state="EXECUTING", now=later).patches == {}

    released = signals.release(state, colony_state="COMPLETED", now=later)
    state = apply(state, released.patches["pheromones"])
    assert released.result == ["s1", "s2"]
    assert signals.queued_signals(state) == []
    assert {each["current_strength"] for each in signals.active_signals(state, now=later)} == {
        signals.TYPES[type.upper()]["default_strength"]
    }


def test_feedback_is_allowed_while_executing_and_steering_otherwise():
    signals.emit(fresh(), "FEEDBACK", "x", now=NOW, id="s1", colony_state="EXECUTING")
    signals.emit(fresh(), "FOCUS", "x", now=NOW, id="s1", colony_state="PLANNING")


def test_half_is_left_after_one_half_life():
    signal = signals.emit(fresh(), "FOCUS", "x", now=NOW, id="s1", strength=0.8).result

    assert signals.strength_at(signal, NOW) == 0.8
    assert signals.strength_at(signal, NOW + HOUR) == pytest.approx(0.4)
    assert signals.strength_at(signal, NOW + 2 * HOUR) == pytest.approx(0.2)


def test_a_signal_without_half_life_does_not_fade():
    signal = signals.emit(fresh(), "INIT", "x", now=NOW, id="s1").result

    assert signals.strength_at(signal, NOW + timedelta(days=9999)) == 1.0


def test_a_clock_that_went_backwards_makes_no_signal_stronger():
    signal = signals.emit(fresh(), "FOCUS", "x", now=NOW, id="s1").result

    assert signals.strength_at(signal, NOW - timedelta(days=30)) == 0.7


def test_an_invalid_time_is_rejected_with_the_name_of_the_signal():
    signal = signals.emit(fresh(), "FOCUS", "x", now=NOW, id="s1").result

    with pytest.raises(InvalidInput, match="pheromones 's1'"):
        signals.strength_at({**signal, "created_at": "soon"}, NOW)


def test_castes_have_their_sensitivity_and_unknown_ones_full_sensitivity():
    pheromones = fresh()
    table = pheromones["caste_sensitivities"]
    signal = signals.emit(pheromones, "REDIRECT", "x", now=NOW, id="s1", strength=1.0).result

    felt = {
        caste: signals.effective_strength(signal, caste, NOW, sensitivities=table)
        for caste in ("builder", "watcher", "stranger", None)
    }

    assert felt == {"builder": 0.7, "watcher": 1.0, "stranger": 1.0, None: 1.0}


def test_the_original_spelling_of_a_type_has_the_same_strength():
    pheromones = fresh()
    signal = signals.emit(pheromones, "FOCUS", "x", now=NOW, id="s1", strength=1.0).result

    felt = signals.effective_strength(
        {**signal, "type": "focus"}, "scout", NOW, sensitivities=pheromones["caste_sensitivities"]
    )

    assert felt == 0.7


def test_active_signals_come_strongest_first_with_both_strengths():
    state = emitted(fresh(), "FOCUS", "weak", id="s1")
    state = emitted(state, "REDIRECT", "strong", id="s2")

    found = signals.active_signals(state, now=NOW + HOUR, caste="builder")

    assert [signal["id"] for signal in found] == ["s2", "s1"]
    assert found[1]["current_strength"] == pytest.approx(0.35)
    assert found[1]["effective_strength"] == pytest.approx(0.35)
    assert found[0]["effective_strength"] == pytest.approx(found[0]["current_strength"] * 0.7)


def test_of_two_equally_strong_signals_the_newer_is_first():
    state = emitted(fresh(), "INIT", "old", id="a")
    state = emitted(state, "INIT", "new", id="c", now=NOW + HOUR)
    state = emitted(state, "INIT", "new too", id="b", now=NOW + HOUR)

    assert [s["id"] for s in signals.active_signals(state, now=NOW + HOUR)] == ["b", "c", "a"]


def test_a_signal_at_the_threshold_is_not_active():
    state = emitted(fresh(), "INIT", "faint", strength=0.1)

    assert signals.active_signals(state, now=NOW) == []
    assert len(signals.active_signals(state, now=NOW, threshold=0.05)) == 1


def test_active_signals_can_be_limited_to_types_in_any_spelling():
    state = emitted(fresh(), "FOCUS", "x", id="s1")
    state = emitted(state, "INIT", "x", id="s2")

    assert [s["id"] for s in signals.active_signals(state, now=NOW, types=["focus"])] == ["s1"]
    assert signals.active_signals(state, now=NOW, types=[]) == []


@rows(
    ("type", "metadata"),
    [
        ("PHASE_COMPLETE", {"phase": 3}),
        ("phase_complete", {"phase": "3"}),
        ("phase_complete", {}),
        ("INIT", {"phase": 3, "event": "phase_complete"}),
    ],
)
def test_a_phase_boundary_is_seen_in_every_spelling(type, metadata):
    signal = {"id": "s1", "type": type, "created_at": "2026-03-01T10:00:00Z", "metadata": metadata}

    assert signals.find_phase_complete({"active_pheromones": [signal]}, 3) == signal


@rows(
    ("type", "metadata"),
    [("INIT", {"phase": 3}), ("PHASE_COMPLETE", {"phase": 4}), ("PHASE_COMPLETE", {"phase": "x"})],
)
def test_another_signal_or_another_phase_is_no_boundary(type, metadata):
    signal = {"id": "s1", "type": type, "created_at": "2026-03-01T10:00:00Z", "metadata": metadata}

    assert signals.find_phase_complete({"active_pheromones": [signal]}, 3) is None


def test_of_two_boundaries_the_newest_is_found():
    state = emitted(fresh(), "PHASE_COMPLETE", "later", id="a", now=NOW + HOUR, phase=1)
    state = emitted(state, "PHASE_COMPLETE", "earlier", id="b", phase=1)

    assert signals.find_phase_complete(state, 1)["id"] == "a"


def test_expiring_moves_the_faded_to_the_events():
    state = emitted(fresh(), "FOCUS", "fades", id="s1")
    state = emitted(state, "INIT", "stays", id="s2")
    state = emitted(state, "FOCUS", "fades too", id="s3")

    later = NOW + 10 * HOUR
    change = signals.expire(state, later)

    assert change.result == ["s1", "s3"]
    assert [s["id"] for s in apply(state, change.patches["pheromones"])["active_pheromones"]] == ["s2"]
    assert [event["signal"] for event in change.appends["events"]] == [
        state["active_pheromones"][0],
        state["active_pheromones"][2],
    ]
    assert {event["event"] for event in change.appends["events"]} == {"signal_expired"}


def test_expiring_where_nothing_faded_changes_nothing():
    state = emitted(fresh(), "FOCUS", "x")

    assert signals.expire(state, NOW) == ({}, {}, [])


def test_withdrawing_twice_is_withdrawing_once():
    state = emitted(fresh(), "TOKEN_THRESHOLD", "compression is needed")

    change = signals.withdraw(state, ["s1", "unknown"], now=NOW)
    after = apply(state, change.patches["pheromones"])

    assert change.result == ["s1"]
    assert change.appends["events"][0]["event"] == "signal_withdrawn"
    assert signals.withdraw(after, ["s1"], now=NOW).patches == {}

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from aether.errors import InvalidInput
from aether.memory import signals
from tests.tables import rows

DATA = Path(__file__).resolve().parents[2] / "data"
NOW = datetime(2026, 3, 1, 10, tzinfo=UTC)


def fresh():
    return json.loads((DATA / "pheromones.json").read_text())


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


def test_an_invalid_time_is_rejected_with_the_name_of_the_signal():
    signal = signals.emit(fresh(), "FOCUS", "x", now=NOW, id="s1").result

    with pytest.raises(InvalidInput, match="pheromones 's1'"):
        signals.strength_at({**signal, "created_at": "soon"}, NOW)


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

"""Signals, phases and the state, by hand."""

from __future__ import annotations

import json

from aether.cli.main import main
from tests.cli.stage import shown


def test_signals_are_listed_strongest_first(here, capsys):
    assert shown(capsys, "signal").err == "No signal is active.\n"
    main(["signal", "FEEDBACK", "slower"])
    main(["signal", "FOCUS", "database", "--strength", "0.9", "--caste", "builder", "--phase", "1"])

    lines = shown(capsys, "signal", "--caste", "builder").out.splitlines()

    assert [line.split()[0] for line in lines[2:]] == ["FOCUS", "FEEDBACK"]
    assert "0.90" in lines[2]


def test_a_phase_goes_from_start_to_the_queens_decision(here, capsys):
    assert (
        shown(capsys, "phase", "start", "1", "--name", "base").out
        == "Phase 1 started; the colony is EXECUTING.\n"
    )
    assert shown(capsys, "phase", "start", "1").out == "Phase 1 was running already.\n"
    done = shown(capsys, "phase", "complete", "1")
    assert done.out == "Phase 1 completed; the colony is COMPLETED.\n"
    assert "Next: aether compress --phase 1" in done.err
    assert shown(capsys, "phase", "complete", "1").out == "Phase 1 was completed before.\n"
    assert "waits for your decision" in shown(capsys, "state").out
    assert shown(capsys, "phase", "decide", "continue", "--note", "good").out == "Phase 1: continue.\n"
    assert "waits for your decision" not in shown(capsys, "state").out


def test_a_home_without_phases_shows_none(here, capsys):
    assert json.loads(shown(capsys, "state", "--json").out)["roadmap"] == []
    assert shown(capsys, "state").out.splitlines()[1] == "Phase:        —"


def test_the_state_is_shown_and_changed_along_its_edges(here, capsys):
    assert "State:        IDLE\n" in shown(capsys, "state").out
    assert shown(capsys, "state", "INIT").out == "IDLE → INIT\n"
    assert "PLANNING" in shown(capsys, "state", "COMPLETED", code=2).err


def test_a_crash_is_noticed_and_recovered_from(here, tmp_path, capsys):
    import aether

    main(["phase", "start", "1"])
    aether.register_worker("ant_1", caste="builder")
    aether.release_worker("ant_1")

    found = shown(capsys, "state", "--json")

    assert json.loads(found.out)["crash"] is not None
    assert "recover" in found.err
    assert shown(capsys, "state", "--recover").out == "EXECUTING → PLANNING\n"

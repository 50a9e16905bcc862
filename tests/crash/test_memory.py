"""A crash at any system call of preparing, ingesting or draining leaves items, sessions and spool consistent."""

from __future__ import annotations

import gc
import json

import pytest

import aether
from aether.api.colony import start_phase
from aether.api.drain import drain
from aether.api.handoffs import read_handoff
from aether.api.hook_sessions import find_session
from aether.store import doctor, record_files, spool
from tests import homes
from tests.crash import faults
from tests.hook_player import called, entry, put, turn

ANSWER = {
    "id": "session_1", "session_id": "session_1", "phase": 1, "compressed_at": "2026-03-01T10:15:00Z",
    "summary": "The cache was chosen and measured.",
    "key_decisions": [{"decision": "Use a write-through cache", "rationale": "reads dominate"}],
    "outcomes": [{"result": "p50 fell to 4 ms", "impact": "the limit holds"}],
    "high_value_items": [],
}  # fmt: skip
NOTES = (
    "Decided: use a write-through cache, because reads dominate.",
    "Measured: p50 fell to 4 ms.",
    "Looked around.",
)


def _noted(home):
    """A home with three items of phase 1."""
    homes.fresh(home.parent)
    entries = [{"content": text, "type": "observation", "metadata": {"phase": 1}} for text in NOTES]
    aether.add_working_memory_items(entries, home=home)


def _prepared(home):
    """A home whose hand-off of phase 1 is open."""
    _noted(home)
    aether.prepare_compression_data(1, manual=True, home=home)


def _prepare(home):
    return aether.prepare_compression_data(1, manual=True, home=home)


def _ingest(home):
    return aether.trigger_phase_boundary_compression(1, json.dumps(ANSWER), home=home)


def memory_state(home):
    """Return what belongs together: items, sessions, archived items, receipts, compressions, open hand-offs."""
    found = homes.reopened(home)
    memory = found.documents["memory"]
    working = memory["working_memory"]
    assert working["current_tokens"] == sum(item["token_count"] for item in working["items"])
    return {
        "items": [item["content"] for item in working["items"]],
        "sessions": [session["session_id"] for session in memory["short_term_memory"]["sessions"]],
        "archived": [record["item"]["content"] for _, record in record_files.records(found, "items")],
        "receipts": len(list(record_files.records(found, "receipts"))),
        "compressions": memory["metrics"]["total_compressions"],
        "open": len(memory["compression"]["open"]),
    }


COMPRESSION_CASES = {"prepare": (_noted, _prepare), "ingest": (_prepared, _ingest)}


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning"
)  # what an exception cut short is closed by the collector
@pytest.mark.parametrize("kind", ["raised", "killed"])
@pytest.mark.parametrize("case", COMPRESSION_CASES)
def test_a_fault_at_any_call_leaves_all_or_nothing_and_doing_it_again_does_it_once(
    case, kind, chosen, tmp_path, copies
):
    make, act = COMPRESSION_CASES[case]
    original = tmp_path / "original" / ".aether"
    make(original)
    before = memory_state(original)
    for _ in range(2):  # the first time reads prompts and schemas as well
        home = copies(original)
        homes.reopened(home)
        with faults.injected(faults.Calls()) as measured:
            act(home)
    after = memory_state(home)
    assert after != before

    for number, name, fault in chosen(faults.cases(measured.names, kind)):
        home = copies(original)
        where = f"{fault.name} at call {number} ({name})"
        homes.reopened(home)
        acknowledged = faults.acknowledged(lambda home=home: act(home), faults.Calls(number, fault))
        assert memory_state(home) in ([after] if acknowledged else [before, after]), where
        _finish(home, act, after, where)

    gc.collect()
    assert len(measured.names) >= 30


def _finish(home, act, after, where):
    """Repair, do it again, and see that it was done once."""
    doctor.repair(home, now=homes.NOW)
    assert not [one for one in doctor.examine(home) if one.level == "error" or one.code == "temp-file"], where
    again = act(home)
    assert memory_state(home) == after, where
    if act is _prepare:
        assert [item["content"] for item in read_handoff(again)["items"]] == list(NOTES), where


def _spooled(home):
    """A home whose spool holds two sessions, one of them begun before, and the end of a phase."""
    homes.fresh(home.parent)
    start_phase(1, home=home)
    put(home, *turn(1), called(9, "make check", "main.c:3: error: x", failed=True))
    assert drain(home).left == ""
    over = entry("Stop", prompt_id="p7", message="All tests pass.\n\nPhase 1 complete")
    put(home, turn(2)[0], turn(3, "s2")[0], called(10, "make check", "3 passed"), over, *turn(4, "s2"))


def drained_state(home):
    """Return what taking in made: items with their keys and phases, the colony, the sessions, the spool."""
    documents = homes.reopened(home).documents
    working = documents["memory"]["working_memory"]
    assert working["current_tokens"] == sum(item["token_count"] for item in working["items"])
    status = documents["COLONY_STATE"]["colony_status"]
    sessions = [find_session(home, session) for session in ("s1", "s2")]
    return {
        "items": [
            (item["content"], item["metadata"]["phase"], item["metadata"]["pointer"]["key"])
            for item in working["items"]
        ],
        "colony": (status["state"], status["current_phase"], status["phases_completed"]),
        "sessions": [known and (known["state"], known["seen"], known["first_source"]) for known in sessions],
        "waiting": spool.waiting(str(home)),
    }


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning"
)  # what an exception cut short is closed by the collector
@pytest.mark.parametrize("kind", ["raised", "killed"])
def test_a_fault_at_any_call_loses_and_doubles_nothing(kind, chosen, tmp_path, copies):
    original = tmp_path / "original" / ".aether"
    _spooled(original)
    for _ in range(2):  # the first time reads prompts and schemas as well
        home = copies(original)
        homes.reopened(home)
        with faults.injected(faults.Calls()) as measured:
            assert drain(home).left == ""
    after = drained_state(home)
    assert after["waiting"] == []
    assert len(after["items"]) == 10

    for number, name, fault in chosen(faults.cases(measured.names, kind)):
        home = copies(original)
        where = f"{fault.name} at call {number} ({name})"
        _drain_with_fault(home, faults.Calls(number, fault))
        doctor.repair(home, now=homes.NOW)
        errors = [one for one in doctor.examine(home) if one.level == "error" or one.code == "temp-file"]
        assert not errors, where
        homes.reopened(home)
        assert drain(home).left == "", where
        assert drained_state(home) == after, where

    gc.collect()
    assert len(measured.names) >= 60


def _drain_with_fault(home, calls):
    """Take in with a fault; it raises nothing but what kills or interrupts."""
    homes.reopened(home)
    if calls.fault.make is None:
        faults.kill(lambda: drain(home), calls)
        return
    try:
        with faults.injected(calls):
            drain(home)
    except KeyboardInterrupt:
        assert calls.fault.name.startswith("KeyboardInterrupt")
    assert calls.struck

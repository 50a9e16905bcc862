"""A crash at any system call of taking in, and taking in again, is as if there had been no crash."""

from __future__ import annotations

import gc
import signal

import pytest

from aether.api.colony import start_phase
from aether.api.drain import drain
from aether.api.hook_sessions import find_session
from aether.store import doctor, spool
from tests import homes
from tests.crash import faults
from tests.hook_player import called, entry, put, turn


def _spooled(home):
    """A home whose spool holds two sessions, one of them begun before, and the end of a phase."""
    homes.fresh(home.parent)
    start_phase(1, home=home)
    put(home, *turn(1), called(9, "make check", "main.c:3: error: x", failed=True))
    assert drain(home).left == ""
    over = entry("Stop", prompt_id="p7", message="All tests pass.\n\nPhase 1 complete")
    put(home, turn(2)[0], turn(3, "s2")[0], called(10, "make check", "3 passed"), over, *turn(4, "s2"))


def outcome(home):
    """Return what taking in made: items with their keys and phases, the colony, the sessions, the spool."""
    documents = homes.anew(home).documents
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
        homes.anew(home)
        with faults.injected(faults.Calls()) as measured:
            assert drain(home).left == ""
    after = outcome(home)
    assert after["waiting"] == []
    assert len(after["items"]) == 10

    for number, name in enumerate(measured.names):
        for fault in faults.RAISED if kind == "raised" else faults.KILLED:
            if faults.apply_to(name, fault):
                home = copies(original)
                where = f"{fault.name} at call {number} ({name})"
                _struck(home, faults.Calls(number, fault))
                doctor.repair(home, now=homes.NOW)
                errors = [
                    one for one in doctor.examine(home) if one.level == "error" or one.code == "temp-file"
                ]
                assert not errors, where
                homes.anew(home)
                assert drain(home).left == "", where
                assert outcome(home) == after, where

    gc.collect()
    assert len(measured.names) >= 60


def _struck(home, calls):
    """Take in with a fault; it raises nothing but what kills or interrupts."""
    homes.anew(home)
    if calls.fault.make is None:

        def child():
            with faults.injected(calls):
                drain(home)

        assert faults.in_child(child) == -signal.SIGKILL
        return
    try:
        with faults.injected(calls):
            drain(home)
    except KeyboardInterrupt:
        assert calls.fault.name.startswith("KeyboardInterrupt")
    assert calls.struck

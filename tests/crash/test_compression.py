"""A crash at any system call of preparing or ingesting leaves working memory and sessions as they belong together."""

from __future__ import annotations

import gc
import json
import signal

import pytest

import aether
from aether.api.handoffs import read_handoff
from aether.errors import AetherError
from aether.store import archive, doctor
from tests import homes
from tests.crash import faults

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


def outcome(home):
    """Return what belongs together: items, sessions, archived items, receipts, compressions, open hand-offs."""
    found = homes.anew(home)
    memory = found.documents["memory"]
    working = memory["working_memory"]
    assert working["current_tokens"] == sum(item["token_count"] for item in working["items"])
    return {
        "items": [item["content"] for item in working["items"]],
        "sessions": [session["session_id"] for session in memory["short_term_memory"]["sessions"]],
        "archived": [record["item"]["content"] for _, record in archive.records(found, "items")],
        "receipts": len(list(archive.records(found, "receipts"))),
        "compressions": memory["metrics"]["total_compressions"],
        "open": len(memory["compression"]["open"]),
    }


CASES = {"prepare": (_noted, _prepare), "ingest": (_prepared, _ingest)}


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning"
)  # what an exception cut short is closed by the collector
@pytest.mark.parametrize("kind", ["raised", "killed"])
@pytest.mark.parametrize("case", CASES)
def test_a_fault_at_any_call_leaves_all_or_nothing_and_doing_it_again_does_it_once(
    case, kind, chosen, tmp_path, copies
):
    make, act = CASES[case]
    original = tmp_path / "original" / ".aether"
    make(original)
    before = outcome(original)
    for _ in range(2):  # the first time reads prompts and schemas as well
        home = copies(original)
        homes.anew(home)
        with faults.injected(faults.Calls()) as measured:
            act(home)
    after = outcome(home)
    assert after != before

    for number, name, fault in chosen(faults.cases(measured.names, kind)):
        home = copies(original)
        where = f"{fault.name} at call {number} ({name})"
        acknowledged = _struck(home, act, faults.Calls(number, fault))
        assert outcome(home) in ([after] if acknowledged else [before, after]), where
        _finish(home, act, after, where)

    gc.collect()
    assert len(measured.names) >= 30


def _struck(home, act, calls):
    """Run `act` with a fault; return whether it returned."""
    homes.anew(home)
    if calls.fault.make is None:

        def child():
            with faults.injected(calls):
                act(home)

        assert faults.in_child(child) == -signal.SIGKILL
        return False
    try:
        with faults.injected(calls):
            act(home)
    except (OSError, AetherError, KeyboardInterrupt):
        return False
    finally:
        assert calls.struck
    return True


def _finish(home, act, after, where):
    """Repair, do it again, and see that it was done once."""
    doctor.repair(home, now=homes.NOW)
    assert not [one for one in doctor.examine(home) if one.level == "error" or one.code == "temp-file"], where
    again = act(home)
    assert outcome(home) == after, where
    if act is _prepare:
        assert [item["content"] for item in read_handoff(again)["items"]] == list(NOTES), where

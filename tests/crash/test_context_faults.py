"""A crash at any system call of a context's verbs leaves the step whole or absent, and a context that goes on."""

from __future__ import annotations

import gc

import pytest

import aether
from aether.api import context_steps
from aether.api.conversations import add_messages
from aether.conversation.checkpoints import faults as faults_of
from aether.store import conversations, doctor, history
from aether.store.conversations import load
from tests import homes
from tests.conversation.test_defects import ID, role, text
from tests.crash import faults
from tests.crash.test_conversations import HARMLESS

# Of the calls that change nothing one in so many fails: there are hundreds, and one is like another.
READS_EVERY = 17
LAST = {"role": "user", "content": text(99)}


def seen(home):
    """Return what a new reader sees: live messages, history, steps, settings and snapshots."""
    log = load(home, ID, whole=True)
    found = history.context(log), history.history(log), log.compactions
    return *found, dict(log.settings), history.snapshots(log)


def _talked(home, number=24):
    """A home with a context in the middle of a talk."""
    homes.fresh(home.parent)
    aether.open_context(ID, window=8_192, system="Be careful.", home=home)
    add_messages(ID, [{"role": role(at), "content": text(at)} for at in range(number)], home=home)


def _compressed(home, times=1):
    """A home whose context was compressed, and went on."""
    _talked(home)
    for nth in range(times):
        assert aether.compress_context(ID, home=home).success
        start = 24 + 12 * nth
        more = [{"role": role(at), "content": text(at)} for at in range(start, start + 12)]
        add_messages(ID, more, home=home)


def _ageing(home):
    """A home of which the next compression makes a checkpoint moderate."""
    _compressed(home, 3)


def _nearly_full(home):
    """A home of which the next message is followed by a compression."""
    _talked(home, 66)


def _compress(home):
    assert aether.compress_context(ID, home=home).success


def _add(home):
    aether.add_message(ID, LAST, home=home)


def _roll_back(home):
    aether.restore_context(ID, home=home)


def _hurry(home):
    assert all(one.success for one in aether.emergency(ID, most=900, home=home))


CASES = {
    "compress": (_talked, _compress), "age": (_ageing, _compress), "roll back": (_compressed, _roll_back),
    "add and compress": (_nearly_full, _add), "emergency": (_compressed, _hurry),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # what an exception cuts short the collector closes
@pytest.mark.parametrize("kind", ["raised", "killed"])
@pytest.mark.parametrize("case", CASES)
def test_a_fault_at_any_call_leaves_the_steps_before_it_and_a_context_that_goes_on(
    case, kind, chosen, tmp_path, copies
):
    make, act = CASES[case]
    original = tmp_path / "original" / ".aether"
    make(original)
    steps = len(load(original, ID, whole=True).compactions)
    for _ in range(2):  # the first time reads what stays in memory
        home = copies(original)
        with faults.injected(faults.Calls()) as measured:
            act(home)
    most = len(load(home, ID, whole=True).compactions) - steps
    assert most >= 1

    cases = faults.cases(measured.names, kind)
    for number, name, fault in chosen(
        one for one in cases if one[1] not in faults.READS or one[0] % READS_EVERY == 0
    ):
        home = copies(original)
        where = f"{fault.name} at call {number} ({name})"
        _struck(lambda home=home: act(home), faults.Calls(number, fault))
        _require_whole(home, original, most, where)
        _require_going_on(home, where)

    gc.collect()
    conversations._CACHE.clear()
    context_steps._READINGS.clear()
    assert len(measured.names) >= 20


def _struck(act, calls):
    """Carry out the verb with a fault; a compression that failed says so by its result, which `act` asserts."""
    try:
        faults.acknowledged(act, calls)
    except AssertionError:
        assert calls.struck


def _require_whole(home, original, most, where):
    """See that every step there is whole: what it made, with the snapshot before it, and the history as it was said."""
    before, log = seen(original), load(home, ID, whole=True)
    said = history.history(log)
    assert said[: len(before[1])] == before[1], where
    assert said[len(before[1]) :] in ([], [LAST]), where
    new = log.compactions[len(before[2]) :]
    assert len(new) <= most, where
    if not new:
        assert history.context(log)[: len(before[0])] == before[0], where
    for step in new:
        assert {*step.before} <= {*range(1, len(log.texts) + 1)}, where
        assert step.receipt["kind"] == "restore" or log.snapshots[-1].context, where
    assert faults_of(aether.checkpoints(ID, home=home)) == "", where


def _require_going_on(home, where):
    """Repair, and see that it changed nothing, and that prompts and further compressions work."""
    found = seen(home)
    doctor.repair(home, now=homes.NOW)
    assert seen(home) == found, where
    assert {one.code for one in doctor.examine(home)} <= HARMLESS, where
    prompt = aether.build_prompt(ID, home=home)
    assert prompt.tokens <= prompt.limit, where
    aether.add_message(ID, {"role": "user", "content": "after"}, home=home)
    assert aether.build_prompt(ID, home=home).messages[-1]["content"] == "after", where
    assert aether.compress_context(ID, home=home).error == "", where

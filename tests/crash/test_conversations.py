"""A crash at any system call leaves each call to a conversation wholly there or wholly absent; many writers lose nothing."""

from __future__ import annotations

import gc
import os
import signal

import pytest

from aether.errors import AetherError
from aether.store import conversations, doctor
from aether.store.conversations import load, path_of
from tests import homes
from tests.crash import faults
from tests.crash.test_writers import start

ID = "user:42"
WRITERS = 16
ADDITIONS = 50


def said(*words):
    return [{"role": "user", "content": word} for word in words]


def _bare(home):
    """A home without conversations."""
    homes.fresh(home.parent)


def _talked(home):
    """A home with a conversation of three messages."""
    _bare(home)
    conversations.extend(home, ID, said("one", "two", "three"), now=homes.NOW)


def _compacted(home):
    """A home whose conversation was compacted once, and went on."""
    _talked(home)
    _compact(home)
    conversations.extend(home, ID, said("five"), now=homes.NOW)


def _torn(home):
    """A home whose conversation ends in a line that was cut off, and one that was damaged."""
    _talked(home)
    with path_of(home, ID).open("ab") as file:
        file.write(b'{"n":4}\n{"n":4,"at":"2026')


def _say(home):
    conversations.extend(home, ID, said("new", "newer " * 2000), now=homes.NOW)


def _compact(home):
    before = [*conversations.context(load(home, ID)), *said("four")]
    after = [*said("summary"), before[-1]]
    conversations.record_compaction(
        home, ID, before=before, after=after, places=[None, len(before) - 1], receipt={}, now=homes.NOW
    )


def _undo(home):
    conversations.undo(home, ID, now=homes.NOW)


def _pop(home):
    conversations.pop(home, ID, now=homes.NOW)


CASES = {
    "begin": (_bare, _say),
    "say": (_talked, _say),
    "say after a torn end": (_torn, _say),
    "begin with a compaction": (_bare, _compact),
    "compact": (_talked, _compact),
    "undo": (_compacted, _undo),
    "pop": (_compacted, _pop),
}


def seen(home):
    """Return what a new reader sees."""
    log = load(home, ID, whole=True)
    return conversations.context(log), conversations.history(log), log.compactions, list(log.open)


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning"
)  # what an exception cut short is closed by the collector
@pytest.mark.parametrize("kind", ["raised", "killed"])
@pytest.mark.parametrize("case", CASES)
def test_a_fault_at_any_call_leaves_all_or_nothing(case, kind, chosen, tmp_path, copies):
    make, act = CASES[case]
    original = tmp_path / "original" / ".aether"
    make(original)
    before = seen(original)
    for _ in range(2):  # the first time reads what stays in memory
        home = copies(original)
        with faults.injected(faults.Calls()) as measured:
            act(home)
    after = seen(home)
    assert after != before

    for number, name, fault in chosen(faults.cases(measured.names, kind)):
        home = copies(original)
        where = f"{fault.name} at call {number} ({name})"
        acknowledged = _struck(home, act, faults.Calls(number, fault))
        assert seen(home) in ([after] if acknowledged else [before, after]), where
        _mended(home, where)

    gc.collect()
    conversations._CACHE.clear()
    assert len(measured.names) >= 8


def _struck(home, act, calls):
    """Run `act` with a fault; return whether it returned."""
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


def _mended(home, where):
    """Mend, and see that nothing changed by it and that the conversation goes on."""
    found = seen(home)
    doctor.repair(home, now=homes.NOW)
    assert seen(home) == found, where
    left = [finding.code for finding in doctor.examine(home)]
    assert set(left) <= {"quarantine"}, where
    conversations.extend(home, ID, said("after"), now=homes.NOW)
    assert seen(home)[0] == [*found[0], *said("after")], where


def test_short_writes_are_gone_on_with(home):
    with faults.short_writes() as writes:
        _talked_here(home)

    assert writes[0] > 20
    assert [message["content"] for message in seen(home)[0]] == ["one", "two"]


def _talked_here(home):
    conversations.extend(home, ID, said("one", "two"), now=homes.NOW)


def write(home, who):
    """Say things, pausing for a compaction of all of it now and then."""
    for number in range(ADDITIONS):
        conversations.extend(home, ID, said(f"{who}.{number}"), now=homes.NOW)


def compact(home):
    """Compact, and take half of it back, until the writers are done."""
    made, done = 0, False
    while not done:
        done = (home / "done").exists()  # then once more, with all that they said
        log = load(home, ID)
        before = conversations.context(log)
        if len(before) > 5:
            made = conversations.record_compaction(
                home, ID, before=before, after=before[-2:], places=[len(before) - 2, len(before) - 1], receipt={},
                now=homes.NOW, read=log,
            )  # fmt: skip
            if made % 2:
                conversations.undo(home, ID, now=homes.NOW)
    (home / "made").write_text(str(made))


@pytest.mark.slow
def test_sixteen_writers_and_a_compactor_lose_nothing(home):
    writers = [start(write, home, who) for who in range(WRITERS)]
    compactor = start(compact, home)

    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in writers]
    (home / "done").touch()
    codes.append(os.waitstatus_to_exitcode(os.waitpid(compactor, 0)[1]))

    assert codes == [0] * (WRITERS + 1)
    told = [message["content"] for message in conversations.history(load(home, ID, whole=True))]
    assert sorted(told) == sorted(f"{who}.{number}" for who in range(WRITERS) for number in range(ADDITIONS))
    for who in range(WRITERS):
        assert [word for word in told if word.startswith(f"{who}.")] == [
            f"{who}.{n}" for n in range(ADDITIONS)
        ]
    assert int((home / "made").read_text()) > 0
    while load(home, ID).open:
        assert conversations.undo(home, ID, now=homes.NOW).findings == []
    assert [message["content"] for message in seen(home)[0]] == told
    assert doctor.examine(home) == []

"""A crash at any system call leaves a call to a conversation, or a compaction, whole or absent; many writers lose nothing."""

from __future__ import annotations

import contextlib
import gc
import json
import os

import pytest

from aether.api.compact import Options, preflight, undo_compaction
from aether.errors import AetherError, Conflict
from aether.storage import storage
from aether.store import conversations, doctor
from aether.store import history as store_history
from aether.store.conversations import load, path_of
from tests import homes
from tests.crash import faults
from tests.crash.test_writers import start
from tests.laws.histories import history

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
    before = [*store_history.context(load(home, ID)), *said("four")]
    after = [*said("summary"), before[-1]]
    conversations.record_compaction(
        home, ID, before=before, after=after, places=[None, len(before) - 1], receipt={}, now=homes.NOW
    )


def _undo(home):
    conversations.undo(home, ID, now=homes.NOW)


def _pop(home):
    conversations.pop(home, ID, now=homes.NOW)


ABOUT = {"id": "snap_1", "purpose": "rollback", "tokens": 9}


def _opened(home):
    """A home with a context that has a snapshot, was compressed with another one, and went on."""
    _talked(home)
    _open(home)
    _snapshot(home)
    _compress(home)
    conversations.extend(home, ID, said("five"), now=homes.NOW)


def _open(home):
    conversations.set_settings(home, ID, {"window": 8192, "system": "Be brief."}, now=homes.NOW)


def _snapshot(home):
    conversations.take_snapshot(home, ID, ABOUT, now=homes.NOW, read=load(home, ID))


def _compress(home):
    before = store_history.context(load(home, ID))
    conversations.record_compaction(
        home, ID, before=before, after=[*said("summary"), before[-1]], places=[None, len(before) - 1],
        receipt={"kind": "context"}, now=homes.NOW, read=load(home, ID), snapshot={**ABOUT, "id": "snap_2"},
    )  # fmt: skip


def _restore(home):
    log = load(home, ID)
    conversations.restore(home, ID, store_history.snapshots(log)[0], {"places": []}, now=homes.NOW, read=log)


CASES = {
    "open a context": (_talked, _open),
    "take a snapshot": (_opened, _snapshot),
    "compress with a snapshot": (_opened, _compress),
    "restore a snapshot": (_opened, _restore),
    "begin": (_bare, _say),
    "say": (_talked, _say),
    "say after a torn end": (_torn, _say),
    "begin with a compaction": (_bare, _compact),
    "compact": (_talked, _compact),
    "undo": (_compacted, _undo),
    "pop": (_compacted, _pop),
}


# A conversation is listed before its first message is written: doctor says that it has none, and nothing is lost.
HARMLESS = {"quarantine", "no-messages"}


def seen(home):
    """Return what a new reader sees."""
    log = load(home, ID, whole=True)
    return (
        store_history.context(log), store_history.history(log), log.compactions, list(log.open), dict(log.settings),
        store_history.snapshots(log),
    )  # fmt: skip


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
        acknowledged = faults.acknowledged(lambda home=home: act(home), faults.Calls(number, fault))
        assert seen(home) in ([after] if acknowledged else [before, after]), where
        _require_repaired(home, where)

    gc.collect()
    conversations._CACHE.clear()
    assert len(measured.names) >= 8


def _require_repaired(home, where):
    """Mend, and see that nothing changed by it and that the conversation goes on."""
    found = seen(home)
    doctor.repair(home, now=homes.NOW)
    assert seen(home) == found, where
    left = [finding.code for finding in doctor.examine(home)]
    assert set(left) <= HARMLESS, where
    conversations.extend(home, ID, said("after"), now=homes.NOW)
    assert seen(home)[0] == [*found[0], *said("after")], where


def test_short_writes_are_continued(home):
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
        before = store_history.context(log)
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
    reported = [message["content"] for message in store_history.history(load(home, ID, whole=True))]
    assert sorted(reported) == sorted(
        f"{who}.{number}" for who in range(WRITERS) for number in range(ADDITIONS)
    )
    for who in range(WRITERS):
        assert [word for word in reported if word.startswith(f"{who}.")] == [
            f"{who}.{n}" for n in range(ADDITIONS)
        ]
    assert int((home / "made").read_text()) > 0
    while load(home, ID).open:
        assert conversations.undo(home, ID, now=homes.NOW).findings == []
    assert [message["content"] for message in seen(home)[0]] == reported
    assert doctor.examine(home) == []


WINDOW = 1_500
PROCESSES = 16
# Of the calls that change nothing one in so many fails: there are two hundred, and one is like another.
READS_EVERY = 7
ROUNDS = 4
FIRST = history(1, "openai", turns=5, images=0, words=12)
MORE = history(2, "openai", turns=5, images=0, words=12)[1:]


def _options(home):
    """Copies go to a directory beside the home, so that their system calls fail too."""
    return Options(counter=lambda text: -(-len(text) // 4), storage=storage("fs", path=str(home / "copies")))


def _preflight(home, messages):
    return preflight(ID, messages, window=WINDOW, wire="openai", options=_options(home), home=home)


def _uncompacted(home):
    """A home without conversations; what will be compacted first."""
    homes.fresh(home.parent)
    return FIRST


def _compacted_once(home):
    """A home whose conversation was compacted once; what will be compacted next."""
    done = _preflight(home, _uncompacted(home))
    assert done.triggered
    return [*done.messages, *MORE]


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # what an exception cuts short the collector closes
@pytest.mark.parametrize("kind", ["raised", "killed"])
@pytest.mark.parametrize("made", [_uncompacted, _compacted_once])
def test_a_fault_at_any_call_leaves_the_whole_compaction_or_nothing(made, kind, chosen, tmp_path, copies):
    original = tmp_path / "original" / ".aether"
    messages = made(original)
    given = json.dumps(messages)
    before = seen(original)
    for _ in range(2):  # the first time reads what stays in memory
        home = copies(original)
        with faults.injected(faults.Calls()) as measured:
            assert _preflight(home, messages).triggered

    cases = faults.cases(measured.names, kind)
    for number, name, fault in chosen(
        case for case in cases if case[1] not in faults.READS or case[0] % READS_EVERY == 0
    ):
        home = copies(original)
        where = f"{fault.name} at call {number} ({name})"
        acknowledged = _compact_with_fault(home, messages, faults.Calls(number, fault))
        assert json.dumps(messages) == given, where
        _whole_or_nothing(home, messages, before, acknowledged, where)
        # What is left on the disk is the same, whichever exception it was.
        if name not in faults.READS and not fault.name.startswith(("EIO", "KeyboardInterrupt")):
            _require_repaired_compaction(home, messages, len(before[2]), where)

    gc.collect()
    conversations._CACHE.clear()
    assert len(measured.names) >= 20


def _compact_with_fault(home, messages, calls):
    """Compact with a fault; return what it returned, None where it did not."""
    if calls.fault.make is None:
        faults.kill(lambda: _preflight(home, messages), calls)
        return None
    try:
        with faults.injected(calls):
            return _preflight(home, messages)
    except (OSError, AetherError, KeyboardInterrupt):
        return None
    finally:
        assert calls.struck


def _whole_or_nothing(home, messages, before, acknowledged, where):
    """See that the compaction is there, as it was returned, or that nothing is."""
    found = seen(home)
    recorded = len(found[2]) > len(before[2])
    assert recorded or found == before, where
    assert recorded or acknowledged is None, where
    assert acknowledged is None or found[0] == acknowledged.messages, where


def _require_repaired_compaction(home, messages, before, where):
    """Mend, and see that it changed nothing, and that undo and another compaction work."""
    found = seen(home)
    doctor.repair(home, now=homes.NOW)
    assert seen(home) == found, where
    assert {one.code for one in doctor.examine(home)} <= HARMLESS, where
    if len(found[2]) > before:
        assert json.dumps(undo_compaction(ID, home=home).messages) == json.dumps(messages), where
    assert _preflight(home, messages).triggered, where


def _rounds(home, who, id):
    """Talk and compact, by oneself; note what was said, and what undo must give back at each step."""
    context, said = [], []
    done = 0
    for nth in range(ROUNDS):
        more = history(100 * who + nth, "openai", turns=6, images=0)[bool(nth) :]
        context, said = [*context, *more], [*said, *more]
        found = preflight(id, context, window=WINDOW, wire="openai", home=home)
        assert found.tokens_after <= found.limit
        context, done = found.messages, done + found.triggered
    (home / f"said{who}").write_text(json.dumps([said, done]))


@pytest.mark.slow
def test_sixteen_processes_compact_sixteen_conversations_and_each_is_undone_by_itself(home):
    children = [start(_rounds, home, who, f"own {who}") for who in range(PROCESSES)]

    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]

    assert codes == [0] * PROCESSES
    for who in range(PROCESSES):
        said, times = json.loads((home / f"said{who}").read_text())
        assert times >= 2
        assert store_history.history(load(home, f"own {who}", whole=True))[: len(said)] == said
        undone = [undo_compaction(f"own {who}", home=home) for _ in range(times)]
        assert json.dumps(undone[-1].messages) == json.dumps(said)
        assert not any(one.findings for one in undone)
    assert doctor.examine(home) == []


def _same(home, who):
    """Compact what one process holds of a conversation that all the others compact as well."""
    messages = history(who, "openai", turns=8, images=0)
    found = None
    for _ in range(PROCESSES):
        with contextlib.suppress(Conflict):  # others were quicker, thrice; nothing was recorded then
            found = found or preflight("same", messages, window=WINDOW, wire="openai", home=home)
    assert found.triggered
    (home / f"given{who}").write_text(json.dumps([messages, found.receipt.step, found.messages]))


@pytest.mark.slow
def test_sixteen_processes_compact_the_same_conversation_and_nothing_is_lost(home):
    children = [start(_same, home, who) for who in range(PROCESSES)]

    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]

    assert codes == [0] * PROCESSES
    log = load(home, "same", whole=True)
    steps = []
    for who in range(PROCESSES):
        messages, step, after = json.loads((home / f"given{who}").read_text())
        steps.append(step)
        had, came, receipt = store_history.compaction(log, step)
        assert (json.dumps(had), json.dumps(came)) == (json.dumps(messages), json.dumps(after))
        assert receipt["step"] == step
    assert sorted(steps) == list(range(1, PROCESSES + 1))
    assert doctor.examine(home) == []

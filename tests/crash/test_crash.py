"""A crash at any system call leaves each transaction wholly there or wholly absent.

For every call of an operation, and every way in which it can fail there: a new reader sees the state
before or the state after, the state after if the operation returned; `doctor --repair` leaves no temp file,
no error, and the state that the reader saw; and the next commit works.
"""

from __future__ import annotations

import gc

import pytest

from aether.errors import AetherError
from aether.store import doctor, files, record_files
from aether.store import journal as journals
from aether.store.authors import Author
from aether.store.commit import commit, fold_home
from aether.store.undo import entries_newest_first
from aether.types import Change
from tests import homes
from tests.crash import faults


def _nothing(home):
    """A home directory without documents."""
    (home / "data").mkdir(parents=True)


def _folded(home):
    """A home with one folded item."""
    homes.fresh(home.parent)
    homes.add(home, "first")
    fold_home(home, now=homes.NOW)


def _unfolded(home):
    """A home with one folded item, one unfolded item and one that moved to the archive."""
    _folded(home)
    homes.add(home, "second")
    homes.add(home, "third")
    homes.remove(home, "third", now=homes.later(1))


def _full(home):
    """A home whose next commit folds."""
    _unfolded(home)
    homes.configure(home, "[store]\nfold_bytes = 100\n")


def _two_months(home):
    """A home whose unfolded lines belong to two months."""
    _unfolded(home)
    homes.add(home, "fourth")
    homes.remove(home, "fourth", now=homes.later(40 * 86400))


def _packed(home):
    """A home with packed history, and an unfolded item."""
    for number in range(3):
        _folded(home) if not number else fold_home(home, now=homes.NOW)
        homes.add(home, f"more-{number}")
        homes.remove(home, f"more-{number}", now=homes.later(1))
        homes.add(home, f"last-{number}")


def _edited(home):
    """A home with an unfolded item and an edit by hand."""
    _unfolded(home)
    path = home / "data" / "memory.json"
    path.write_bytes(path.read_bytes().replace(b'"content": "note"', b'"content": "edited"'))


def _corrupt(home):
    """A home with an unfolded item and a document that does not parse."""
    _unfolded(home)
    path = home / "data" / "memory.json"
    path.write_bytes(path.read_bytes()[:-30])


def _torn(home):
    """A home whose last journal line was cut off."""
    _unfolded(home)
    with journals.journal_path(home).open("ab") as file:
        file.write(b'{"revision":9,"at":"2026')


def _plain(home):
    homes.add(home, "new")


def _several_documents(home):
    def plan(found):
        change = homes.addition(found, homes.item("new", "x" * 3000))
        signal = {"op": "add", "path": "/note", "value": "also"}
        patches = {**change.patches, "pheromones": [signal], "COLONY_STATE": [signal]}
        return Change(patches, {"receipts": [{"kind": "test"}], "items": [{"item": homes.item("gone")}]})

    commit(home, plan, Author("many"), now=homes.NOW)


def _fold(home):
    fold_home(home, now=homes.NOW)


def _repair(home):
    doctor.repair(home, now=homes.NOW)


CASES = {
    "commit": (_unfolded, _plain),
    "commit over several documents": (_folded, _several_documents),
    "commit that folds": (_full, _several_documents),
    "fold": (_unfolded, _fold),
    "fold over two months": (_two_months, _fold),
    "fold that packs": (_unfolded, _fold),
    "fold that packs again": (_packed, _fold),
    "init": (_nothing, _fold),
    "bring in a hand edit": (_edited, _plain),
    "rebuild a corrupt document": (_corrupt, _plain),
    "cut a torn line": (_torn, _plain),
    "repair": (_corrupt, _repair),
}
# What each operation takes at the least; fewer would mean that the injector sees nothing.
FEWEST_CALLS = {"commit": 15, "commit over several documents": 20, "init": 60, "cut a torn line": 25}


def seen(home):
    """Return everything that a new reader sees in `home`: documents, records and the history."""
    found = homes.reopened(home)
    records = {kind: list(record_files.records(found, kind)) for kind in ("items", "receipts")}
    history = [(entry.revision, entry.operation) for entry in entries_newest_first(found)]
    assert [revision for revision, _ in history] == list(range(found.revision, 0, -1))
    return found.documents, records, history


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning"
)  # what an exception cut short is closed by the collector
@pytest.mark.parametrize("kind", ["raised", "killed"])
@pytest.mark.parametrize("case", CASES)
def test_a_fault_at_any_call_leaves_all_or_nothing(case, kind, chosen, tmp_path, copies, monkeypatch):
    prepare, act = CASES[case]
    if "packs" in case:
        monkeypatch.setattr(files, "WORTH_PACKING", 0)
    original = tmp_path / "original" / ".aether"
    prepare(original)
    _measured(copies, original, act)  # the first time reads schemas and shipped files as well
    before, after, names = _measured(copies, original, act)
    # Bringing in an edit is a transaction of its own, before the one that found it.
    between = _measured(copies, original, _fold)[1] if prepare is _edited else before
    cases = list(faults.cases(names, kind))
    if prepare is _full:
        assert len(names) > 3 * FEWEST_CALLS["commit over several documents"], "it folds"

    for number, name, fault in chosen(cases):
        home = copies(original)
        outcome = (_raise if kind == "raised" else _kill)(home, act, faults.Calls(number, fault))
        allowed = {"done": [after], "refused": [before, between]}.get(outcome, [before, between, after])
        if outcome == "refused" and act not in (_plain, _several_documents):
            allowed.append(after)  # folding, repairing: stored, but not all of it is written down
        assert kind == "killed" or not files.leftover_temps(home), "only a killed process leaves a temp file"
        _check(home, allowed, f"{fault.name} at call {number} ({name})")

    gc.collect()
    assert len(names) >= FEWEST_CALLS.get(case, 40)
    assert len(cases) >= len(names)


def _measured(copies, original, act):
    """Return what is seen before and after `act`, and the calls it makes."""
    before = seen(copies(original))
    home = copies(original)
    homes.reopened(home)
    with faults.injected(faults.Calls()) as calls:
        act(home)
    return before, seen(home), calls.names


def _raise(home, act, calls):
    """Run `act` with a fault that raises; return how it ended."""
    homes.reopened(home)
    try:
        with faults.injected(calls):
            act(home)
    except KeyboardInterrupt:
        return "interrupted"
    except (OSError, AetherError):
        return "refused"
    finally:
        assert calls.struck
    return "done"


def _kill(home, act, calls):
    homes.reopened(home)
    faults.kill(lambda: act(home), calls)
    return "killed"


def _check(home, allowed, where):
    found = seen(home)
    assert found in allowed, where
    doctor.repair(home, now=homes.later(2))
    assert not [path for path in home.rglob("*") if path.name.endswith(files.TEMP_SUFFIX)], where
    assert not [one for one in doctor.examine(home) if one.level == "error"], where
    again = seen(home)
    assert again[0] == found[0], where
    assert again[1] == found[1], where
    homes.add(home, "afterwards")
    assert homes.ids(home)[-1] == "afterwards", where

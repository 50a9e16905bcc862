"""Whatever replicas do with and without their server, and whatever a hostile member sends to it: they end up the same, and each
acknowledged change is stored or reported."""

import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aether.api import admin, working
from aether.api import forget as forgetting
from aether.api import home as access
from aether.api import share as sharing
from aether.errors import AetherError
from aether.sharing import ledgers, offline
from aether.store import journal as journals
from aether.store import ledger, snapshot
from tests import directory_ledger, homes
from tests.colonies import Colony
from tests.effort import examples
from tests.lines import line

HOSTILE = {
    "no revision": {"revision": None},
    "another revision": {"revision": 99},
    "no time": {"at": "../../x"},
    "another document": {"patches": {"evil": []}},
    "a place that is not there": {"patches": {"memory": [{"op": "remove", "path": "/nowhere"}]}},
    "all items, with an inverse that is none": {
        "patches": {"memory": [{"op": "replace", "path": "/working_memory/items", "value": []}]},
        "inverse": {"memory": []},
    },
    "a number as key": {"key": 5},
    "an undo of nothing": {"operation": "undo", "reason": "of revision 1"},
}

STEPS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from(["add", "add", "remove", "update", "undo", "edit", "fold", "hostile"]),
        st.integers(0, 9),
    )
    | st.tuples(st.integers(0, 1), st.sampled_from(["away", "back", "catch up"]), st.just(0)),
    max_size=16,
)  # fmt: skip


@given(steps=STEPS)
@examples(25)
def test_replicas_end_up_the_same_and_no_acknowledged_change_is_lost(steps):
    with tempfile.TemporaryDirectory(dir=homes.IN_MEMORY) as directory, pytest.MonkeyPatch.context() as patch:
        patch.setitem(ledgers.MODULES, directory_ledger.START, directory_ledger.__name__)
        patch.setenv("AETHER_SHARE_OFFLINE", "queue")
        patch.setattr(ledger, "TRIED_SECONDS", 0)
        patch.setattr(access, "FRESH_SECONDS", 0)
        patch.setattr(access, "FAILED_SECONDS", 0)
        server = Path(directory) / "server"
        server.mkdir()
        patch.setenv(ledgers.URL, f"{directory_ledger.START}{server}")
        colony = Colony(Path(directory), f"{directory_ledger.START}{server}")
        homes_of = colony.first(), colony.join()
        added, removed, waited = set(), set(), set()
        for which, what, number in steps:
            home = homes_of[which]
            if what in ("away", "back"):
                (server / "down").touch() if what == "away" else (server / "down").unlink(missing_ok=True)
                continue
            with suppress(AetherError):  # nothing was acknowledged
                _act(home, what, number, added, removed)
            waited.update(path.stem.partition("-")[2] for path in offline.waiting(home))
        (server / "down").unlink(missing_ok=True)
        first = colony.agree()

        assert not any(map(offline.waiting, homes_of))
        assert added - removed <= set(homes.ids(first))
        reported = {
            path.stem.rpartition("-")[2]
            for home in homes_of
            for path in (home / "quarantine").glob("queued-*")
        }
        assert waited <= offline.stored_keys(first, 0) | reported
        assert {entry.revision for entry in journals.folded_entries(first)} == set(
            range(1, snapshot.load(first).revision + 1)
        )


def _act(home, what, number, added, removed):
    ids = [each["id"] for each in working.list_working_memory_items(home=home)]
    one = ids[number % len(ids)] if ids else ""
    if what == "add":
        added.add(
            str(
                working.add_working_memory_item(
                    f"fact {len(added)} of {home.parent.name}", type="observation", home=home
                )
            )
        )
    elif what == "remove" and one:
        removed.add(one)  # even if it is refused: then it is not missed below
        forgetting.forget([one], home=home)
    elif what == "update" and one:
        working.update_working_memory_item(one, {"relevance_score": number / 10}, home=home)
    elif what == "undo":
        undone = admin.undo(home=home)
        removed.update(added) if undone.operation == "add" else None
    elif what == "edit":
        path = home / "data" / "memory.json"
        path.write_bytes(path.read_bytes().replace(b"fact", b"deed", 1))
    elif what == "fold":
        admin.fold(home=home)
    elif what == "hostile":
        server = ledgers.of(home)
        head = server.head(ledger.JOURNAL)
        fields = list(HOSTILE.values())[number % len(HOSTILE)]
        server.append_if(ledger.JOURNAL, ledger.Mark(head, ""), [line(head + 1, server, **fields)])
    elif what == "catch up":
        sharing.update_share(home=home)

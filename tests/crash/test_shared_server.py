"""Many writers on one server that is killed, cut off and slowed down: what was acknowledged is stored once, in order."""

from __future__ import annotations

import os
from contextlib import closing
from functools import partial

import pytest

from aether.sharing import postgres as store
from tests import postgres_server
from tests.postgres_server import disturb, proxied
from tests.shared_history import DONE, READ, REFUSED, UNKNOWN, Call, faults, final_lines, trial
from tests.tables import rows

SEEDS = int(os.environ.get("AETHER_TEST_SEEDS", "3"))


def call(outcome, revision, *lines, at=0.0):
    return Call("s", outcome, revision, list(lines), at, at + 1)


@rows(
    ("calls", "final", "fault"),
    [
        ([call(DONE, 1, "a"), call(DONE, 2, "b", "c"), call(READ, 3, "b", "c", at=2)], "abc", ""),
        ([call(UNKNOWN, 0, "a"), call(DONE, 1, "b")], "b", ""),
        ([call(UNKNOWN, 0, "a"), call(DONE, 1, "b")], "ba", ""),
        ([call(REFUSED, 0, "a"), call(DONE, 1, "b")], "b", ""),
        ([call(DONE, 1, "a")], "", "is not there"),
        ([call(DONE, 1, "a"), call(DONE, 1, "b")], "b", "is not there"),
        ([call(DONE, 1, "a")], "aa", "stored 2 times"),
        ([call(DONE, 1, "a")], "ax", "sent by nobody"),
        ([call(REFUSED, 0, "a")], "a", "was refused"),
        ([call(DONE, 1, "a"), call(READ, 2, "a", "b")], "a", "was read up to"),
        ([call(DONE, 2, "a"), call(DONE, 1, "b", at=2)], "ba", "started after 2"),
        ([call(DONE, 1, "a"), call(READ, 0, at=2)], "a", "started after 1"),
    ],
)
def test_the_checker_finds_what_is_wrong(calls, final, fault):
    found = faults(calls, {"s": list(final)})

    assert bool(found) == bool(fault), found
    assert fault in " ".join(found)


def one_trial(directory, *, writers, seconds, seed):
    """Return what was found after a trial, and the calls of its writers."""
    with postgres_server.running() as server, proxied(server) as proxy:
        store.create_colony(server.url(), "bees").close()

        def open_one():
            # Some reach the server as it is, some through what is cut.
            url = proxy.url() if os.getpid() % 4 else server.url()
            return store.open_ledger(url, "bees", replica=f"r{os.getpid()}", timeout=3)

        calls, streams = trial(
            open_one,
            directory,
            writers=writers,
            streams=2,
            seconds=seconds,
            seed=seed,
            disturb=partial(disturb, server, proxy),
        )
        with closing(store.open_ledger(server.url(), "bees", replica="", timeout=10)) as ledger:
            found = faults(calls, final_lines(ledger, streams))
        found += [f for f in store.status(server.url(), "bees")["faults"] if "fsync" not in f]
        return found, calls


@pytest.mark.extras
def test_writers_of_a_server_in_trouble_agree(tmp_path):
    found, calls = one_trial(tmp_path, writers=4, seconds=4, seed=1)

    assert found == []
    assert sum(call.outcome == DONE for call in calls) > 10


@pytest.mark.extras
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_many_writers_of_a_server_in_trouble_agree(tmp_path, seed):
    found, calls = one_trial(tmp_path, writers=16, seconds=20, seed=seed)

    assert found == []
    assert sum(call.outcome == DONE for call in calls) > 100

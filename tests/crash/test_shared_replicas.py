"""Many processes in the replicas of one colony, whose server is killed, cut off and slowed down, and clocks are apart."""

from __future__ import annotations

import os
from functools import partial

import pytest

from aether.api import share as sharing
from aether.sharing import ledgers
from tests import homes, postgres_server
from tests.postgres_server import disturb, proxied
from tests.shared_history import DONE
from tests.shared_replicas import checked, outcomes, trial

SEEDS = int(os.environ.get("AETHER_TEST_SEEDS", "1"))
# The whole trial takes a minute; a sample of it shows that it works.
SECONDS = float(os.environ.get("AETHER_TEST_SECONDS", "12"))


def one_trial(directory, monkeypatch, *, workers, replicas, seconds, seed):
    """Return what was found after a trial, and how its steps ended."""
    with postgres_server.running() as server, proxied(server) as proxy:
        monkeypatch.setenv(ledgers.URL, server.url())
        made = [homes.fresh(directory / "r0")]
        sharing.share(made[0], server.url(), "bees")
        made += [
            sharing.join(server.url(), "bees", directory / f"r{number}").home for number in range(1, replicas)
        ]
        close()

        steps = trial(
            made, lambda who: proxy.url() if who % 4 else server.url(), directory,
            workers=workers, seconds=seconds, seed=seed, disturb=partial(disturb, server, proxy),
        )  # fmt: skip
        found = checked(made, steps)
        close()
        return found, outcomes(steps)


def close():
    while ledgers._OPEN:
        ledgers._OPEN.popitem()[1][2].close()


@pytest.mark.extras
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("offline", ["refuse", "queue"])
def test_processes_in_replicas_of_a_colony_in_trouble_agree(tmp_path, monkeypatch, seed, offline):
    monkeypatch.setenv("AETHER_SHARE_OFFLINE", offline)

    found, ends = one_trial(tmp_path, monkeypatch, workers=16, replicas=4, seconds=SECONDS, seed=seed)

    if offline == "queue":  # a change that waited has its place when it was sent
        found = [fault for fault in found if not (fault.startswith("journal:") and "started after" in fault)]
    print(f"seed {seed}, {offline}: {dict(ends)}")  # -s shows it
    assert found == []
    assert ends["add", DONE] > 0

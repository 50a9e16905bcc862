"""What the crash tests share."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from pathlib import Path
from random import Random

import pytest

from aether.store import config, files, snapshot
from tests import effort, homes

# So many faults of a test strike in the default tier, and so many more in the slow one unless all are asked for.
SAMPLE, MORE = 3, 40


@pytest.fixture(params=["a sample", pytest.param("the others", marks=pytest.mark.slow)])
def chosen(request):
    """Return a function that picks faults, the same ones each time: a few, or in the slow tier some or all of the others."""

    def pick(cases):
        every = list(cases)
        mixed = Random(len(every)).sample(every, len(every))
        more = len(every) if effort.FULL_TRIALS else MORE
        picked = mixed[:SAMPLE] if request.param == "a sample" else mixed[SAMPLE : SAMPLE + more]
        kills = sum("SIGKILL" in str(case) for case in every)
        print(f"faults: {len(picked)} of {len(every)}, of which {kills} kills")  # -s shows it
        return picked

    return pick


@pytest.fixture
def unsynced(monkeypatch):
    """Leave out syncs: they cost 4 ms each and change nothing here."""
    for module, name in ((os, "fsync"), (os, "fdatasync"), (files, "sync_data")):
        monkeypatch.setattr(module, name, lambda handle: None)


@pytest.fixture
def copies(unsynced):
    """Return a function that gives a new copy of a home each time."""
    directory = tempfile.mkdtemp(prefix="aether-crash-", dir=homes.IN_MEMORY)
    made = itertools.count()

    def copy(original):
        target = Path(directory) / str(next(made)) / ".aether"
        shutil.copytree(original, target)
        if (target / "config.toml").exists():
            homes.configure(target, (target / "config.toml").read_text())  # trust is for a path
        return target

    yield copy
    shutil.rmtree(directory)
    snapshot._CACHE.clear()
    config._FILES.clear()

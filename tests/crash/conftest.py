"""What the crash tests share."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from aether.store import config, files, state
from tests import homes


@pytest.fixture
def copies(monkeypatch):
    """Return a function that gives a new copy of a home each time."""
    directory = tempfile.mkdtemp(prefix="aether-crash-", dir=homes.IN_MEMORY)
    made = itertools.count()

    def copy(original):
        target = Path(directory) / str(next(made)) / ".aether"
        shutil.copytree(original, target)
        return target

    for module, name in ((os, "fsync"), (os, "fdatasync"), (files, "_sync_data")):
        monkeypatch.setattr(module, name, lambda handle: None)  # they cost 4 ms each and change nothing here
    yield copy
    shutil.rmtree(directory)
    state._CACHE.clear()
    config._CACHE.clear()

"""What the tests of contexts share: homes in memory, and no syncs, which cost milliseconds and change nothing here."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from aether.api import context, context_steps
from aether.store import files
from tests import homes


@pytest.fixture
def home(monkeypatch):
    """Return a fresh home in memory."""
    for module, name in ((os, "fsync"), (os, "fdatasync"), (files, "sync_data")):
        monkeypatch.setattr(module, name, lambda handle: None)
    directory = tempfile.mkdtemp(prefix="aether-context-", dir=homes.IN_MEMORY)
    yield homes.fresh(Path(directory))
    shutil.rmtree(directory)
    context_steps._READINGS.clear()
    context._FAILED_AT.clear()

"""What the tests of the store share."""

from __future__ import annotations

import pytest


@pytest.fixture
def lying_lock(monkeypatch):
    """Let the system say yes to everybody who asks for a lock, as some network disks do."""
    import fcntl

    monkeypatch.setattr(fcntl, "flock", lambda handle, operation: None)

"""What the tests of the archive share."""

from __future__ import annotations

import pytest

from tests import homes


@pytest.fixture
def home(tmp_path):
    """Return a new home."""
    return homes.fresh(tmp_path)

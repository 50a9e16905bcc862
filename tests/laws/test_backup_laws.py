"""Laws of backups: whatever was done to a home, each of its backups restores the home as it was then."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import aether
from aether.api import backup
from aether.api.forget import erase
from aether.store import consistent, conversations
from aether.store.commit import fold_home
from tests import homes
from tests.api.test_backup import content
from tests.effort import examples

ACTS = st.sampled_from(["add", "remove", "fold", "say", "long", "snapshot", "erase", "back up", "back up"])


def act(home, name, nth):
    if name == "add":
        aether.add_working_memory_item(f"The secret number {nth} is in use.", "decision", home=home)
    elif name == "remove":
        homes.add(home, f"gone {nth}")
        homes.remove(home, f"gone {nth}")
    elif name == "fold":
        fold_home(home, now=homes.NOW)
    elif name == "snapshot":
        aether.create_snapshot(home=home)
    elif name == "erase":
        erase(match="secret number", home=home)
    else:
        text = f"{nth} " * (2_000 if name == "long" else 1)
        conversations.extend(home, f"talk {nth % 2}", [{"role": "user", "content": text}], now=homes.NOW)


@pytest.fixture(autouse=True, scope="module")
def _small_pieces():
    patch = pytest.MonkeyPatch()
    for module in (consistent, backup):
        patch.setattr(module, "PIECE_BYTES", 3_000)
    yield
    patch.undo()


@examples(25)
@given(st.lists(ACTS, max_size=12))
def test_each_backup_restores_the_home_of_its_time(acts):
    with tempfile.TemporaryDirectory(dir=homes.IN_MEMORY) as directory:
        home, place, held = homes.fresh(Path(directory)), f"{directory}/backups", {}
        for nth, name in enumerate([*acts, "back up"]):
            if name == "back up":
                made = aether.create_backup(place, home=home)
                held[made.id] = content(home)
            else:
                act(home, name, nth)
        assert aether.verify_backup(place) == []
        for name, files in held.items():
            restored = aether.restore_backup(place, name, home=f"{directory}/new")
            assert content(restored.home) == files
            assert restored.findings == []
            shutil.rmtree(restored.home)

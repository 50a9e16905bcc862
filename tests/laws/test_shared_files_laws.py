"""Whatever replicas do with their files: all of them end up with the same ones, byte for byte, and nothing that was said is lost."""

import tempfile
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import aether
from aether.api import archive, compress, working
from aether.api import home as access
from aether.api import share as sharing
from aether.errors import AetherError
from aether.sharing import ledgers
from aether.store import archive_steps, conversations, ledger
from tests import directory_ledger, homes
from tests.colonies import Colony, tree
from tests.effort import examples

ACTS = [
    "say",
    "say",
    "age",
    "age",
    "restore",
    "delete",
    "set aside",
    "import",
    "prepare",
    "snapshot",
    "hand edit",
]
STEPS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from(ACTS), st.integers(0, 2))
    | st.tuples(st.integers(0, 1), st.sampled_from(["catch up", "catch up", "away", "back"]), st.just(0)),
    max_size=14,
)


@given(steps=STEPS)
@examples(20)
def test_replicas_end_up_with_the_same_files_and_nothing_that_was_said_is_lost(steps):
    with tempfile.TemporaryDirectory(dir=homes.IN_MEMORY) as directory, pytest.MonkeyPatch.context() as patch:
        patch.setitem(ledgers.MODULES, directory_ledger.START, directory_ledger.__name__)
        patch.setattr(ledger, "TRIED_SECONDS", 0)
        patch.setattr(access, "FRESH_SECONDS", 0)
        patch.setattr(access, "FAILED_SECONDS", 0)
        server = Path(directory) / "server"
        server.mkdir()
        patch.setenv(ledgers.URL, f"{directory_ledger.START}{server}")
        colony = Colony(Path(directory), f"{directory_ledger.START}{server}")
        homes_of = colony.first(), colony.join()
        said, removed = {}, set()
        for nth, (which, what, number) in enumerate(steps):
            if what in ("away", "back"):
                (server / "down").touch() if what == "away" else (server / "down").unlink(missing_ok=True)
                continue
            with suppress(AetherError):
                _act(homes_of[which], what, number, nth, said, removed)
        (server / "down").unlink(missing_ok=True)
        colony.agree()
        colony.join()
        first = colony.agree()

        for id, texts in said.items():  # noqa: A001
            path = conversations.path_of(first, id)
            if path.exists():
                held = path.read_text()
                assert all(text in held for text in texts)
            else:
                assert id in removed or archive.read_archived(id, home=first)
        for home in colony.made:
            assert tree(home) == tree(first)
            assert archive_steps.examine(home) == []


def _act(home, what, number, nth, said, removed):
    id = f"talk {number}"  # noqa: A001
    if what == "say":
        conversations.extend(home, id, [{"role": "user", "content": f"word-{nth}"}], now=homes.NOW)
        said.setdefault(id, []).append(f"word-{nth}")
    elif what == "age":
        archive.age_archive(now=homes.NOW + timedelta(days=40 + 60 * number), home=home)
    elif what == "restore":
        archive.restore_conversation(id, home=home)
    elif what == "delete":
        removed.add(id)
        archive.delete_archived(id, home=home)
    elif what == "set aside":
        lines = conversations.load(home, id).lines
        if lines:
            removed.add(id)
            conversations.set_aside(home, id, lines=lines, now=homes.NOW)
    elif what == "import":
        messages = [{"role": "user", "content": f"imported {nth}"}]
        archive.archive_conversations([{"id": f"given {number}", "messages": messages}], home=home)
    elif what == "prepare":
        working.add_working_memory_item(f"fact {nth}", type="observation", home=home)
        compress.prepare_compression_data(1, manual=True, home=home, new=True)
    elif what == "snapshot":
        aether.create_snapshot(f"s{nth}", home=home)
    elif what == "hand edit":
        sharing.update_share(home=home)  # what nobody else has cannot be fetched again
        for path in [*(home / "compressions").glob("*.json"), *(home / "archive").glob("2*/*/*.json")][:1]:
            path.write_bytes(path.read_bytes().replace(b'"', b"'", 1))
    elif what == "catch up":
        sharing.update_share(home=home)

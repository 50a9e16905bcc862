"""Two users of a group share a home: what one makes, the other can read and write, new kinds of files and months as well."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

import aether
from aether.api import admin, conversations, drain
from aether.store import spool
from aether.store.commit import fold_home
from tests import children, homes
from tests.sources import ROOT

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or os.getuid() != 0, reason="only root can act as two users"
)
READABLE = (
    all(directory.stat().st_mode & 0o001 for directory in (ROOT, *ROOT.parents))
    if sys.platform != "win32"
    else False
)
GROUP, USERS = 5_000, (5_001, 5_002)
AT = "2026-03-01T10:15:00.000000Z"


@pytest.fixture
def home():
    if not READABLE:
        pytest.skip("other users cannot read this checkout")
    directory = Path(tempfile.mkdtemp(dir=homes.IN_MEMORY))
    directory.chmod(0o755)
    home = admin.init(directory / ".aether")
    for path in (home, *home.rglob("*")):
        os.chown(path, USERS[0], GROUP)
        path.chmod(path.stat().st_mode | (0o070 if path.is_dir() else 0o060))
    yield home
    shutil.rmtree(directory)


def act_as(user, act):
    """Let a user of the group act."""

    def child():
        os.setgroups([])
        os.setgid(GROUP)
        os.setuid(user)
        act()

    assert children.ended(children.start(child)) == 0


def write(home, name, month):
    """Write something into every kind of file."""
    at = homes.later(month * 31 * 86_400)
    homes.add(home, name, f"It is {name}.", now=at)
    conversations.add_messages("talk", [{"role": "user", "content": name}], home=home)
    aether.memory_tool({"command": "create", "path": f"/memories/{name}.md", "file_text": name}, home=home)
    aether.archive_conversations([{"id": name, "messages": [{"role": "user", "content": name}]}], home=home)
    aether.create_snapshot(name, home=home)
    aether.search_archive(name, home=home)
    spool.put(
        str(home), {"event": "UserPromptSubmit", "session": "s", "at": AT, "prompt": f"Never use {name}."}
    )
    assert not drain.drain(home).left
    fold_home(home, now=at)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_each_reads_and_writes_what_the_other_made(home):
    for month, user in enumerate((*USERS, USERS[0])):
        act_as(user, lambda month=month: write(home, f"name{month}", month))

    def look():
        assert {f"name{month}" for month in range(3)} <= set(homes.ids(home))
        assert len(aether.list_archived(home=home)) == 3
        assert len(conversations.full_history("talk", home=home)) == 3
        assert admin.examine(home=home) == []

    for user in USERS:
        act_as(user, look)
    assert {(path.stat().st_gid, path.stat().st_mode & 0o060) for path in home.rglob("*")} == {(GROUP, 0o060)}


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_what_root_writes_in_a_container_stays_the_owners(home):
    write(home, "root", 1)

    act_as(USERS[0], lambda: write(home, "owner", 2))

    assert {path.stat().st_uid for path in home.rglob("*")} == {USERS[0]}

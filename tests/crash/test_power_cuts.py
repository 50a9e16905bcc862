"""Power cuts: writers on an ext4 file system of its own, which is shut down without writing its log, as a power cut does.

Each writer reports what was acknowledged. After the cut the file system is mounted again, as a machine does that starts
again, and all that was acknowledged must be there at the first look, without a repair.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

import aether
from aether.api import admin, conversations
from tests import children, effort, homes

WRITERS, SECONDS = 4, 4.0
ROUNDS = 60 if effort.FULL_TRIALS else 6
IMAGE_MB = 64
# Of Linux: end all writing to a file system, and leave out the rest of its log.
SHUTDOWN, WITHOUT_LOG = 0x8004587D, 2


def _run(*command):
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


class Image:
    """A file with an ext4 file system in it, mounted."""

    def __init__(self, directory: Path) -> None:
        self.file, self.place = directory / "disk.img", directory / "disk"
        self.place.mkdir()
        with self.file.open("wb") as file:
            file.truncate(IMAGE_MB << 20)

    def make(self) -> bool:
        return _run("mkfs.ext4", "-q", "-F", str(self.file)) and self.mount()

    def mount(self) -> bool:
        return _run("mount", "-o", "loop", str(self.file), str(self.place))

    def unmount(self) -> None:
        for _ in range(50):
            if _run("umount", str(self.place)):
                return
            time.sleep(0.1)

    def cut(self) -> None:
        handle = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(handle, SHUTDOWN, struct.pack("I", WITHOUT_LOG))
        finally:
            os.close(handle)


@pytest.fixture
def image():
    """Return a mounted file system, whose power can be cut."""
    if not sys.platform.startswith("linux") or os.getuid() != 0 or not shutil.which("mkfs.ext4"):
        pytest.skip("only root of Linux can mount a file system, and shut it down")
    directory = Path(tempfile.mkdtemp())
    image = Image(directory)
    try:
        if not image.make():
            pytest.skip("this machine mounts no file system of a file")
        yield image
    finally:
        image.unmount()
        shutil.rmtree(directory, ignore_errors=True)


def write(home: Path, number: int, report: Path) -> None:
    """Change the home until the power is cut, and report what was acknowledged."""
    random = Random(number)
    handle = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for nth in range(100_000):
        name = f"w{number}-{nth}"
        kind = random.choice(
            ("item", "item", "message", "archive", "goal", "note", "snapshot", "fold", "search")
        )
        try:
            ACTS[kind](home, name)
        except Exception:
            return  # the disk is gone
        os.write(handle, (json.dumps([kind, name]) + "\n").encode())


def _talk(name):
    return name.partition("-")[0]


ACTS = {
    "item": lambda home, name: aether.add_working_memory_item(f"It is {name}.", "observation", home=home),
    "message": lambda home, name: conversations.add_messages(_talk(name), [{"role": "user", "content": name}], home=home),
    "archive": lambda home, name: aether.archive_conversations([{"id": name, "messages": [{"role": "user", "content": name}]}], home=home),
    "goal": lambda home, name: aether.add_goal(f"Reach {name}.", home=home),
    "note": lambda home, name: aether.memory_tool({"command": "create", "path": f"/memories/{name}.md", "file_text": name}, home=home),
    "snapshot": lambda home, name: aether.create_snapshot(name, home=home),
    "fold": lambda home, _: aether.fold(home=home),
    "search": lambda home, name: aether.search_memory(name, home=home),
}  # fmt: skip


def seen(home: Path) -> set[tuple[str, str]]:
    """Return what a reader sees, as writers report it."""
    documents = homes.reopened(home).documents
    items = json.dumps([documents["memory"], documents["goals"]])
    archived = {entry.id for entry in aether.list_archived(home=home)}
    said = {
        message["content"]
        for talk in conversations.conversation_ids(home=home)
        for message in conversations.full_history(talk, home=home)
    }
    notes = {Path(path).stem for path in documents["memories"]["files"]}
    labels = {one["label"] for one in aether.list_snapshots(home=home)}
    texts = set(re.findall(r"w\d+-\d+", items))
    kinds = (
        ("archive", archived),
        ("message", said),
        ("note", notes),
        ("snapshot", labels),
        ("item", texts),
        ("goal", texts),
    )
    return {(kind, name) for kind, names in kinds for name in names}


def one_round(image: Image, reports: Path, number: int) -> tuple[int, set[tuple[str, str]], list[str]]:
    """Return the number of acknowledgements before a cut, those that were lost, and the problems that doctor has."""
    home = image.place / f"round{number}" / ".aether"
    admin.init(home)
    os.sync()
    paths = [reports / f"{number}-{writer}" for writer in range(WRITERS)]
    writers = [children.start(lambda n=n, path=path: write(home, n, path)) for n, path in enumerate(paths)]
    time.sleep(SECONDS * Random(number).uniform(0.3, 1))
    lines = [path.read_text().splitlines() if path.exists() else [] for path in paths]
    image.cut()
    for writer in writers:
        with suppress(ProcessLookupError):
            os.kill(writer, signal.SIGKILL)
        children.ended(writer)
    image.unmount()
    assert image.mount()
    acknowledged = {tuple(json.loads(line)) for of_one in lines for line in of_one}
    found = seen(home)
    lost = {one for one in acknowledged if one[0] not in ("fold", "search")} - found
    problems = [str(one) for one in aether.examine(home=home) if one.level == "error"]
    return len(acknowledged), lost, problems


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_nothing_that_was_acknowledged_before_a_power_cut_is_lost(image, tmp_path):
    total = 0
    for number in range(ROUNDS):
        acknowledged, lost, problems = one_round(image, tmp_path, number)
        total += acknowledged
        assert (lost, problems) == (set(), []), f"round {number}"
    print(f"power cuts: {ROUNDS}, acknowledged before: {total}, lost: 0")

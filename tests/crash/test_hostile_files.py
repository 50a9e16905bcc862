"""Hostile files in the place of each file of a home: commands end in time and memory, name the file, and lose nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from tests import homes
from tests.crash import hostile
from tests.crash.test_damage import full_home, is_derived

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="there are no FIFOs and no limits of memory"),
    pytest.mark.extras,
]
for package in ("uvicorn", "igraph"):
    pytest.importorskip(package, reason="no packages for the page")

# What only aether writes, and what no command of `hostile.COMMANDS` changes unless it is damaged.
CONTENT = ("archive/", "conversations/", "snapshots/", "data/archive/", "data/journal/")


@pytest.fixture(scope="module")
def original():
    """Return a full home that no test changes."""
    with tempfile.TemporaryDirectory(dir=homes.IN_MEMORY) as directory:
        yield full_home(Path(directory))


@pytest.fixture(scope="module")
def runner():
    made = hostile.Runner()
    yield made
    made.close()


def files_by_kind(home):
    """Return one file of each kind of a home: of its directory, with its ending."""
    names = sorted(path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file())
    kinds = {}
    for name in names:
        parts = name.split("/")
        single = len(parts) < 3 or parts[0] == "conversations"
        kinds.setdefault(
            (*parts[:2], parts[-1]) if single and "_" not in parts[-1] else (*parts[:2], Path(name).suffix),
            name,
        )
    return list(kinds.values())


def cases(home):
    """Return each kind of file with each kind of hostility that it can have."""
    return [
        (name, kind)
        for name in files_by_kind(home)
        for kind in hostile.KINDS
        if name.startswith("archive/") or kind not in hostile.BOMBS
    ]


def lost(home, original, name):
    """Return what is missing of a home that had something hostile at `name`."""
    missing = [
        path
        for path in (one.relative_to(original) for one in original.rglob("*") if one.is_file())
        if path.as_posix().startswith(CONTENT) and path.name not in ("lock", "head") and path.as_posix() != name
        and not is_derived(path.as_posix()) and not (home / path).is_file()
    ]  # fmt: skip
    # From its fuller form a conversation is restored, which has it no more then.
    missing = [path for path in missing if path.parts[1] != "grace" or not name.startswith("archive/")]
    is_there = os.path.lexists(home / name) or any((home / "quarantine").glob(f"*{Path(name).stem}*"))
    return missing + ([] if is_there or is_derived(name) else [name])


def wrong(answer, name):
    """Return what is wrong with the answer of a command on a home with something hostile at `name`."""
    words = answer["err"] + answer["out"]
    names = {Path(name).name, Path(name).stem, Path(name).parent.name}
    return [
        fault
        for fault, is_so in (
            ("a traceback", "Traceback" in words),
            (f"{answer['seconds']:.1f} s", answer["seconds"] > hostile.SECONDS),
            (f"{answer['bytes'] >> 20} MB", answer["bytes"] > hostile.MEMORY_BYTES),
            ("names no file", answer["code"] and not any(word in words for word in names)),
        )
        if is_so
    ]


def test_a_hostile_file_costs_a_command_neither_time_nor_memory_and_nothing_else_is_lost(
    original, runner, chosen, tmp_path
):
    place = Path(tempfile.mkdtemp(dir=homes.IN_MEMORY))
    counts, faults, most = Counter(), [], [0.0, 0]
    try:
        for name, kind in chosen(cases(original)):
            home = place / "project" / ".aether"
            shutil.copytree(original, home)
            if kind not in hostile.CHANGES:
                (home / name).unlink()
            kind(home / name)
            for argv in hostile.COMMANDS:
                answer = runner.run(home, argv)
                counts["commands"] += 1
                counts["commands that failed"] += bool(answer["code"])
                most = [max(most[0], answer["seconds"]), max(most[1], answer["bytes"])]
                faults += [
                    (kind.__name__, name, argv, fault, answer["err"][-900:]) for fault in wrong(answer, name)
                ]
            counts["homes"] += 1
            counts["lost"] += len(missing := lost(home, original, name))
            faults += [(kind.__name__, name, missing)] if missing else []
            subprocess.run(["chmod", "-R", "u+rwX", place], check=True)
            shutil.rmtree(place)
            place.mkdir()
    finally:
        shutil.rmtree(place, ignore_errors=True)

    print(f"hostile files: {dict(counts)}, at most {most[0]:.1f} s of the processor and {most[1] >> 20} MB")
    assert not faults, "\n".join(map(str, faults))

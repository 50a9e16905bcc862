"""What do the checks of facts cost the start of a session?

A full home (`full_home`) in a repository of some hundred commits, whose newest notes name files, symbols, commits, branches and
pull requests, some of them removed, moved or merged since. The hook of a session's start runs in turns with the checks
on and off, each in a new interpreter, with a changed home each time; ratios are of medians within one run. That the
checks did their work is asserted: with them the brief names what moved, without them it does not.

Usage: python benchmarks/fact_checks.py
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import uuid
from pathlib import Path
from typing import Any

import full_home
import report
from hook_latency import HOOK, PASS, took

import aether

RUNS, REPEATS, COMMITS, RECENT = 3, 7, 300, 30
NOTES = (
    ("next", "Move the parser of src/old_{nth}.py into a package, see #{pull}."),
    (
        "decision",
        "`load_{nth}` in src/kept_{nth}.py is the only entry point, since topic-{nth} of the limits.",
    ),
    ("constraint", "Never change src/removed_{nth}.py without the tests of service {nth}."),
)
MOVED = "moved to src/new_0.py"


def git(place: Path, *words: str) -> None:
    """Run git as somebody."""
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words],
        cwd=place,
        check=True,
        capture_output=True,
    )


def repository(place: Path) -> None:
    """Make a repository with files that will move or go."""
    git(place, "init", "-q", "-b", "main")
    (place / ".gitignore").write_text(".aether/\ncompiled/\n")
    (place / "src").mkdir()
    for nth in range(3):
        (place / f"src/old_{nth}.py").write_text("".join(f"old {nth} {line}\n" for line in range(40)))
        (place / f"src/kept_{nth}.py").write_text(f"def load_{nth}(): ...\n")
        (place / f"src/removed_{nth}.py").write_text(f"removed {nth}\n")
    for nth in range(200):
        (place / f"src/file_{nth}.py").write_text(f"file {nth}\n")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "first")
    for nth in range(3):
        git(place, "checkout", "-q", "-b", f"topic-{nth}")
        git(place, "checkout", "-q", "main")


def change(place: Path) -> None:
    """Add the commits of some weeks, in which files moved and went, and pack them as git does."""
    for nth in range(COMMITS):
        if nth == COMMITS - RECENT:
            for number in range(3):
                git(place, "mv", f"src/old_{number}.py", f"src/new_{number}.py")
                git(place, "rm", "-q", f"src/removed_{number}.py")
            git(place, "commit", "-qm", "Move the parsers (#12)")
        (place / f"src/file_{nth % 200}.py").write_text(f"file {nth} again\n")
        git(place, "commit", "-qam", f"Change {nth}")
    git(place, "gc", "-q")


def one_run(place: Path, directory: Path) -> dict[str, float]:
    """Return the median milliseconds of the hook with the checks on and off, and of an interpreter that does nothing."""
    times: dict[str, list[float]] = {
        f"{name}{kind}": [] for name in ("python_c_pass", "on", "off") for kind in ("", "_cpu")
    }
    for turn in range(REPEATS + 1):
        taken = dict(zip(("python_c_pass", "python_c_pass_cpu"), took(PASS, {}, place)[:2], strict=True))
        for name in ("on", "off") if turn % 2 else ("off", "on"):
            # A changed home, so that no kept brief is read.
            aether.add_working_memory_item(
                f"Turn {turn} {name}.", "observation", 0.1, home=directory / ".aether"
            )
            os.environ["AETHER_CHECK_FACTS"] = "1" if name == "on" else "0"
            payload = {
                "hook_event_name": "SessionStart",
                "source": "startup",
                "session_id": str(uuid.uuid4()),
                "cwd": str(directory),
            }
            taken[name], taken[f"{name}_cpu"], said = took(HOOK, payload, place)
            checked[name] += MOVED.encode() in said
        for name, milliseconds in taken.items() if turn else ():  # the first compiles
            times[name].append(milliseconds)
    return {name: statistics.median(each) for name, each in times.items()}


checked = {"on": 0, "off": 0}


def main() -> None:
    """Measure, print, and keep the result."""
    results: dict[str, Any] = {"runs": RUNS, "repeats": REPEATS, "commits_since": COMMITS}
    with tempfile.TemporaryDirectory() as base:
        place, directory = Path(base), Path(base) / "project"
        directory.mkdir()
        repository(directory)
        full_home.make(directory)
        for nth in range(3):
            for kind, text in NOTES:
                metadata = {"evidence": "person"}
                aether.add_working_memory_item(
                    text.format(nth=nth, pull=12), kind, 0.9, metadata=metadata, home=directory / ".aether"
                )
        change(directory)
        rows = [one_run(place, directory) for _ in range(RUNS)]
    turns = RUNS * (REPEATS + 1)
    assert checked["off"] == 0, checked
    assert checked["on"], checked  # a busy machine often does not answer in time
    results |= {
        "checked_in_time": round(checked["on"] / turns, 2),
        "milliseconds": [{name: round(value, 1) for name, value in row.items()} for row in rows],
        "on_over_off": [round(row["on"] / row["off"], 2) for row in rows],
        "off_over_python": [round(row["off"] / row["python_c_pass"], 2) for row in rows],
        "cpu_on_over_off": [round(row["on_cpu"] / row["off_cpu"], 2) for row in rows],
        "on_over_python": [round(row["on"] / row["python_c_pass"], 2) for row in rows],
    }
    report.write(__file__, results)


if __name__ == "__main__":
    main()

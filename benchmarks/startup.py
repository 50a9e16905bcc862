"""What does a fresh process cost that adds one item, or answers one question?

Each command is a new interpreter, started in turns with `python -c pass`; ratios are of medians within one
run, three runs. The additions are counted afterwards, in the home they were made in; the answers are read.
Which modules an addition may import is a test of its own; here is the time.

Usage: python benchmarks/startup.py
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import report

import aether

RUNS = 3
REPEATS = 15
GOAL = 6.0
ADD = (
    "import sys, aether; aether.add_working_memory_item('Measured 41 MB/s.', 'observation', home=sys.argv[1])"
)
# What the installed command does; `-m` would add the search for the module.
CLI = [sys.executable, "-c", "from aether.cli.main import run; run()"]


def commands(home: Path) -> dict[str, list[str]]:
    """Return what is started, by name."""
    return {
        "python_c_pass": [sys.executable, "-c", "pass"],
        "add_by_python": [sys.executable, "-c", ADD, str(home)],
        "add_by_cli": [
            *CLI,
            "--home",
            str(home),
            "memory",
            "add",
            "Measured 41 MB/s.",
            "--type",
            "observation",
        ],
        "memory_status": [*CLI, "--home", str(home), "status", "--layers"],
        "help": [*CLI, "--help"],
    }


def environment(home: Path) -> dict[str, str]:
    """Return the environment of a user: with compiled modules, here in a directory of their own."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(home.parent / "compiled")}


def one_run(home: Path) -> dict[str, float]:
    """Return the median milliseconds of each command, started in turns."""
    before = len(aether.list_working_memory_items(home=home))
    times: dict[str, list[float]] = {name: [] for name in commands(home)}
    answers: dict[str, str] = {}
    for turn in range(REPEATS + 1):
        for name, command in commands(home).items():
            started = time.perf_counter()
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment(home))
            if turn:  # the first one compiles
                times[name].append((time.perf_counter() - started) * 1000)
            answers[name] = done.stdout
    assert len(aether.list_working_memory_items(home=home)) == before + 2 * (REPEATS + 1)
    assert answers["add_by_cli"].startswith("wm_")
    assert "Working Memory" in answers["memory_status"]
    assert "Usage: " in answers["help"]
    return {name: round(statistics.median(measured), 1) for name, measured in times.items()}


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        home = aether.init(Path(directory) / ".aether")
        runs = [one_run(home) for _ in range(RUNS)]
    result = {
        "goal_over_python_c_pass": GOAL,
        "runs": [
            {
                "ms": run,
                "over_python_c_pass": {
                    name: round(took / run["python_c_pass"], 1)
                    for name, took in run.items()
                    if name != "python_c_pass"
                },
            }
            for run in runs
        ],
    }
    report.write(__file__, result)


if __name__ == "__main__":
    main()

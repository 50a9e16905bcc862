"""What does a fresh process cost that adds one item, or answers one question?

Each command is a new interpreter, started in turns with `python -c pass`; ratios are of medians within one
run, three runs. The additions are counted afterwards, in the home they were made in; the answers are read.
Which modules an addition may import is a test of its own; here is the time.

Usage: python benchmarks/startup.py
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import aether

RESULTS = Path(__file__).parent / "results" / "startup.json"
RUNS = 3
REPEATS = 15
GOAL = 6.0
ADD = (
    "import sys, aether; aether.add_working_memory_item('Measured 41 MB/s.', 'observation', home=sys.argv[1])"
)
CLI = [sys.executable, "-m", "aether"]


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
        "memory_status": [*CLI, "--home", str(home), "memory", "status"],
        "help": [*CLI, "--help"],
    }


def one_run(home: Path) -> dict[str, float]:
    """Return the median milliseconds of each command, started in turns."""
    before = len(aether.list_working_memory_items(home=home))
    times: dict[str, list[float]] = {name: [] for name in commands(home)}
    answers: dict[str, str] = {}
    for _ in range(REPEATS):
        for name, command in commands(home).items():
            started = time.perf_counter()
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            times[name].append((time.perf_counter() - started) * 1000)
            answers[name] = done.stdout
    assert len(aether.list_working_memory_items(home=home)) == before + 2 * REPEATS
    assert answers["add_by_cli"].startswith("wm_")
    assert "Working Memory" in answers["memory_status"]
    assert "Usage: " in answers["help"]
    return {name: round(statistics.median(measured), 1) for name, measured in times.items()}


def main() -> None:
    load = round(os.getloadavg()[0], 1)
    with tempfile.TemporaryDirectory() as directory:
        home = aether.init(Path(directory) / ".aether")
        runs = [one_run(home) for _ in range(RUNS)]
    result = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": {
            "cpus": os.cpu_count(),
            "python": platform.python_version(),
            "platform": platform.system(),
            "load_at_start": load,
        },
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
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()

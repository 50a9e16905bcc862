"""What does a hook cost the session it is part of?

Each hook is a new interpreter, started in turns with `python -c pass`; ratios are of medians within one run, three
runs, in an empty home and in one of 200,000 tokens. That each event did its work is asserted: an entry in the spool,
items in the brief. At last sixteen tool events at once, of which none may be lost.

Usage: python benchmarks/hook_latency.py
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import report

import aether
from aether.store import spool

RUNS = 3
REPEATS = 9
AT_ONCE = 16
FULL_TOKENS = 200_000
# Of the capacity; beyond four fifths of it memory is compressed, and a full home would be full once.
LEAST_SHARE = 0.7
LIGHT_GOAL, START_GOAL = 4.0, 8.0
HOOK = [sys.executable, "-c", "from aether.integrations.claude_code.hook import run; run()"]
PASS = [sys.executable, "-c", "pass"]
EVENTS: dict[str, dict[str, Any]] = {
    "PostToolUse": {
        "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": "t1",
        "tool_input": {"command": "pytest -q tests/api"}, "tool_response": {"stdout": "412 passed in 9.1s\n" * 50, "stderr": ""},
    },
    "UserPromptSubmit": {"hook_event_name": "UserPromptSubmit", "prompt": "Move the cache of service 7 to port 8007."},
    "SessionStart startup": {"hook_event_name": "SessionStart", "source": "startup"},
    "SessionStart compact": {"hook_event_name": "SessionStart", "source": "compact"},
    "Stop": {"hook_event_name": "Stop", "last_assistant_message": "Decision: the cache listens on 8007."},
}  # fmt: skip


def environment(place: Path) -> dict[str, str]:
    """Return the environment of a user: with compiled modules, here in a directory of their own."""
    dropped = {"PYTHONDONTWRITEBYTECODE", "AETHER_HOME", "CLAUDE_PROJECT_DIR"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**kept, "PYTHONPYCACHEPREFIX": str(place / "compiled")}


def project(place: Path, name: str, *, tokens: int) -> Path:
    """Return a project whose home holds about `tokens` tokens; none means an empty home."""
    directory = place / name
    (directory / ".git").mkdir(parents=True)
    home = aether.init(directory / ".aether")
    sentence = "Service {0} keeps its cache on port {1}, because port {2} is taken by the gateway. "
    if tokens:
        drafts = [
            {
                "content": f"Decided: {sentence.format(nth, 8000 + nth, 9000 + nth) * 12}",
                "type": "decision", "relevance_score": 0.8, "metadata": {"phase": 1},
            }
            for nth in range(tokens // 400)
        ]  # fmt: skip
        aether.add_working_memory_items(drafts, home=home)
        used = aether.verify_token_limit(home=home)
        assert LEAST_SHARE * tokens < used.current < used.threshold, used
    return directory


def took(command: list[str], payload: dict[str, Any], place: Path) -> tuple[float, bytes]:
    """Return how long one process took, in milliseconds, and what it printed."""
    said, began = json.dumps(payload).encode(), time.perf_counter()
    done = subprocess.run(command, input=said, capture_output=True, check=True, env=environment(place))
    return (time.perf_counter() - began) * 1000, done.stdout


def checked(name: str, home: Path, said: bytes, *, full: bool) -> None:
    """Fail unless the event did its work, and clear the spool for the next one."""
    waiting = spool.waiting(str(home))
    assert not (home / "hook.log").exists(), (home / "hook.log").read_text()
    assert bool(waiting) == (name == "PostToolUse" or (name == "UserPromptSubmit" and bool(waiting))), name
    assert not full or not name.startswith("SessionStart") or b"additionalContext" in said, name
    spool.remove(str(home), waiting)


def one_run(place: Path, directory: Path, *, full: bool) -> dict[str, float]:
    """Return the median milliseconds of each event, and of an interpreter that does nothing."""
    times: dict[str, list[float]] = {"python_c_pass": [], **{name: [] for name in EVENTS}}
    for turn in range(REPEATS + 1):
        took_now = {"python_c_pass": took(PASS, {}, place)[0]}
        for name, event in EVENTS.items():
            # Of its own, for of two events alike within seconds one is answered.
            own = str(time.time_ns())
            payload = {**event, "session_id": own, "prompt_id": own, "cwd": str(directory)}
            took_now[name], said = took(HOOK, payload, place)
            checked(name, directory / ".aether", said, full=full)
        if turn:  # the first compiles
            for name, each in took_now.items():
                times[name].append(each)
    return {name: statistics.median(each) for name, each in times.items()}


def at_once(place: Path, directory: Path) -> float:
    """Return how long sixteen tool events at once take in all, in milliseconds, none of them lost."""
    began = time.perf_counter()
    running = []
    for nth in range(AT_ONCE):
        payload = {**EVENTS["PostToolUse"], "tool_use_id": f"t{nth}", "cwd": str(directory)}
        each = subprocess.Popen(HOOK, stdin=subprocess.PIPE, env=environment(place))
        assert each.stdin is not None
        each.stdin.write(json.dumps(payload).encode())
        each.stdin.close()
        running.append(each)
    assert [each.wait() for each in running] == [0] * AT_ONCE
    spent = (time.perf_counter() - began) * 1000
    home = str(directory / ".aether")
    assert len(spool.waiting(home)) == AT_ONCE
    spool.remove(home, spool.waiting(home))
    return spent


def measured(place: Path, name: str, *, tokens: int) -> dict[str, Any]:
    """Return the ratios of one home: the least, the median and the greatest of the runs."""
    directory = project(place, name, tokens=tokens)
    runs = [one_run(place, directory, full=bool(tokens)) for _ in range(RUNS)]
    ratios = {event: sorted(run[event] / run["python_c_pass"] for run in runs) for event in EVENTS}
    crowd = sorted(at_once(place, directory) / run["python_c_pass"] for run in runs)
    return {
        "milliseconds": {
            event: round(statistics.median(run[event] for run in runs), 1) for event in runs[0]
        },
        "times_python_c_pass": {
            event: {"median": round(found[RUNS // 2], 2), "least": round(found[0], 2), "most": round(found[-1], 2)}
            for event, found in ratios.items()
        },
        "sixteen_tool_events_at_once": round(crowd[RUNS // 2], 2),
    }  # fmt: skip


def main() -> None:
    place = Path(tempfile.mkdtemp(prefix="aether-hooks-"))
    try:
        homes = {
            "empty": measured(place, "empty", tokens=0),
            "full": measured(place, "full", tokens=FULL_TOKENS),
        }
    finally:
        shutil.rmtree(place, ignore_errors=True)
    report.write(
        __file__,
        {
            "goals_over_python_c_pass": {"PostToolUse": LIGHT_GOAL, "SessionStart": START_GOAL},
            "runs": RUNS,
            "repeats": REPEATS,
            "homes": homes,
        },
    )


if __name__ == "__main__":
    main()

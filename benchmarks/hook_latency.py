"""What does a hook cost the session it is part of?

Each hook is a new interpreter, started in turns with `python -c pass`; ratios are of medians within one run, three
runs, in an empty home and in a full one (`full_home`: 157,000 tokens, ten sessions, 500 patterns, 20,000 archived
items). Each turn is one session: it starts (cold: its brief was removed), once more unchanged, and after a note that a
command added; it asks, calls a tool, stops and is compacted, so that the next one finds a changed home. That each event did its
work is asserted: an entry in the spool, items in the brief, an empty spool soon after the end of a turn, which a process of
its own empties: that is waited for, and not measured. At last sixteen tool events at once, of which none may be lost.

Processor time is measured beside wall time, which suffers from whatever else the machine does (`load_at_start`).

Usage: python benchmarks/hook_latency.py
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import full_home
import report

import aether
from aether.store import spool

RUNS = 3
REPEATS = 7
AT_ONCE = 16
GOALS = {
    "PostToolUse": 2.0, "UserPromptSubmit": 3.5, "Stop": 3.5,
    "SessionStart": 8.0, "SessionStart after a note": 6.0, "SessionStart unchanged": 3.0,
}  # fmt: skip
# Until the process that the end of a turn starts is done.
LATE_SECONDS = 30.0
HOOK = [sys.executable, "-c", "from aether.hosts.hook import run; run()"]
PASS = [sys.executable, "-c", "pass"]
EVENTS: dict[str, dict[str, Any]] = {
    "SessionStart startup": {"hook_event_name": "SessionStart", "source": "startup"},
    "SessionStart unchanged": {"hook_event_name": "SessionStart", "source": "startup"},
    "SessionStart after a note": {"hook_event_name": "SessionStart", "source": "startup"},
    "UserPromptSubmit": {
        "hook_event_name": "UserPromptSubmit", "prompt": "Why does src/cache/service_7.py need port 8007 of the gateway?",
    },
    "PostToolUse": {
        "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": "t1",
        "tool_input": {"command": "pytest -q tests/api"}, "tool_response": {"stdout": "412 passed in 9.1s\n" * 50, "stderr": ""},
    },
    "Stop": {"hook_event_name": "Stop", "last_assistant_message": "Decision: the cache listens on 8007."},
    "SessionStart compact": {"hook_event_name": "SessionStart", "source": "compact"},
}  # fmt: skip


def environment(place: Path) -> dict[str, str]:
    """Return the environment of a user: with compiled modules, here in a directory of their own."""
    dropped = {"PYTHONDONTWRITEBYTECODE", "AETHER_HOME", "CLAUDE_PROJECT_DIR"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**kept, "PYTHONPYCACHEPREFIX": str(place / "compiled")}


def project(place: Path, name: str, *, full: bool) -> Path:
    """Return a project whose home is empty or full."""
    directory = place / name
    (directory / ".git").mkdir(parents=True)
    if full:
        full_home.make(directory)
    else:
        aether.init(directory / ".aether")
    return directory


def took(command: list[str], payload: dict[str, Any], place: Path) -> tuple[float, float, bytes]:
    """Return how long one process took, in milliseconds of wall and of processor, and what it printed."""
    text, before, began = json.dumps(payload).encode(), _processor(), time.perf_counter()
    done = subprocess.run(command, input=text, capture_output=True, check=True, env=environment(place))
    return (time.perf_counter() - began) * 1000, (_processor() - before) * 1000, done.stdout


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def checked(name: str, home: Path, said: bytes, *, full: bool) -> None:
    """Fail unless the event did its work."""
    waiting = spool.waiting(str(home))
    if name == "Stop":
        until = time.monotonic() + LATE_SECONDS
        while (waiting := spool.waiting(str(home))) and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.5)  # for a compression, which starts where memory is full
    assert not (home / "hook.log").exists(), (home / "hook.log").read_text()
    assert bool(waiting) == (name in ("PostToolUse", "UserPromptSubmit")), (name, waiting)
    assert not full or not name.startswith("SessionStart") or b"additionalContext" in said, name


def one_run(place: Path, directory: Path, *, full: bool) -> dict[str, tuple[float, float]]:
    """Return the median wall and processor milliseconds of each event, and of an interpreter that does nothing."""
    times: dict[str, list[tuple[float, float]]] = {"python_c_pass": [], **{name: [] for name in EVENTS}}
    for turn in range(REPEATS + 1):
        took_now = {"python_c_pass": took(PASS, {}, place)[:2]}
        session = str(uuid.uuid4())
        for name, event in EVENTS.items():
            if name.startswith("SessionStart") and event["source"] == "startup":
                session = str(uuid.uuid4())
            if name == "SessionStart startup":
                shutil.rmtree(directory / ".aether" / "hooks" / "briefs", ignore_errors=True)
            if name == "SessionStart after a note":
                aether.add_working_memory_item(
                    f"Turn {session} took 41 ms.", "observation", home=directory / ".aether"
                )
            payload = {
                **event, "session_id": session, "prompt_id": f"p{turn}", "cwd": str(directory),
                "transcript_path": f"/nowhere/{session}.jsonl",
            }  # fmt: skip
            *took_now[name], said = took(HOOK, payload, place)
            checked(name, directory / ".aether", said, full=full)
        if turn:  # the first compiles
            for name, each in took_now.items():
                times[name].append((each[0], each[1]))
    return {
        name: (statistics.median(wall for wall, _ in each), statistics.median(cpu for _, cpu in each))
        for name, each in times.items()
    }


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


def measured(place: Path, name: str, *, full: bool) -> dict[str, Any]:
    """Return the ratios of one home: the least, the median and the greatest of the runs."""
    directory = project(place, name, full=full)
    runs = [one_run(place, directory, full=full) for _ in range(RUNS)]
    crowd = sorted(at_once(place, directory) / run["python_c_pass"][0] for run in runs)

    def ratios(which: int) -> dict[str, dict[str, float]]:
        found = {
            event: sorted(run[event][which] / run["python_c_pass"][which] for run in runs) for event in EVENTS
        }
        return {
            event: {"median": round(each[RUNS // 2], 2), "least": round(each[0], 2), "most": round(each[-1], 2)}
            for event, each in found.items()
        }  # fmt: skip

    return {
        "milliseconds": {
            event: round(statistics.median(run[event][0] for run in runs), 1) for event in runs[0]
        },
        "times_python_c_pass": ratios(0),
        "times_python_c_pass_cpu": ratios(1),
        "sixteen_tool_events_at_once": round(crowd[RUNS // 2], 2),
    }


def main() -> None:
    place = Path(tempfile.mkdtemp(prefix="aether-hooks-"))
    try:
        homes = {name: measured(place, name, full=name == "full") for name in ("empty", "full")}
    finally:
        shutil.rmtree(place, ignore_errors=True)
    report.write(
        __file__, {"goals_over_python_c_pass": GOALS, "runs": RUNS, "repeats": REPEATS, "homes": homes}
    )


if __name__ == "__main__":
    main()

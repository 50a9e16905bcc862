"""How does the cost of each command grow with what a home holds?

Homes with an archive of 10^3, 10^4 and 10^5 items, and with 10^2, 10^3 and 10^4 archived conversations, all else equal.
Each command and hook is a process of its own; its processor time (user and system) is the median of a few, in turns with
`python -c pass`. The exponent compares the two largest homes, less `python -c pass`: 0 is constant, 1 is linear. `floor` reads
each file of the home and takes its SHA-256, which `doctor` cannot avoid. That the homes are as large as they should be and
good is asserted.

Usage: python benchmarks/growth.py
"""

from __future__ import annotations

import json
import math
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import full_home
import report
from hook_latency import HOOK, PASS, environment
from startup import CLI

import aether

ITEMS = (1_000, 10_000, 100_000)
CONVERSATIONS = (100, 1_000, 10_000)
REPEATS = 3
TOKENS, PATTERNS = 20_000, 50
FLOOR = (
    "import hashlib, pathlib, sys\n"
    "for path in pathlib.Path(sys.argv[1]).rglob('*'):\n"
    "    if path.is_file(): hashlib.sha256(path.read_bytes())"
)
COMMANDS = {
    "status": ["status"],
    "brief": ["brief"],
    "add": ["add", "The queue drops what nobody reads."],
    "undo": ["undo"],
    "recall": ["recall", "why does the gateway need port 8007"],
    "log": ["log"],
    "timeline": ["timeline"],
    "memory list": ["memory", "list"],
    "show memory": ["show", "memory"],
    "archive list": ["archive", "list"],
    "compact show": ["compact", "show"],
    "goal list": ["goal", "list"],
    "fold": ["fold"],
    "doctor": ["doctor"],
}
EVENTS: dict[str, dict[str, Any]] = {
    "SessionStart": {"source": "startup"},
    "UserPromptSubmit": {"prompt": "Why does src/cache/service_7.py need port 8007 of the gateway?"},
    "PostToolUse": {
        "tool_name": "Bash",
        "tool_use_id": "t1",
        "tool_input": {"command": "make"},
        "tool_response": {"stdout": "ok"},
    },
    "Stop": {"last_assistant_message": "Decision: the cache listens on 8007."},
    "PreCompact": {"trigger": "auto"},
}


def spent(command: list[str], place: Path, text: bytes = b"") -> float:
    """Return the processor milliseconds of one process, which succeeds: `doctor` finds nothing, `recall` something."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command, input=text, capture_output=True, check=False, cwd=place, env=environment(place)
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, (command, done.stderr[-500:])
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def measured(directory: Path) -> dict[str, float]:
    """Return the median of each command in turns, as a multiple of `python -c pass`, in milliseconds."""
    times: dict[str, list[float]] = {}
    for turn in range(REPEATS + 1):
        taken = {
            "pass": spent(PASS, directory),
            "floor": spent([sys.executable, "-c", FLOOR, str(directory / ".aether")], directory),
        }
        for name, words in COMMANDS.items():
            taken[name] = spent([*CLI, *words], directory)
        session = str(uuid.uuid4())
        for name, event in EVENTS.items():
            payload = {
                **event, "hook_event_name": name, "session_id": session, "prompt_id": f"p{turn}", "cwd": str(directory),
                "transcript_path": f"/nowhere/{session}.jsonl",
            }  # fmt: skip
            taken[f"hook {name}"] = spent(HOOK, directory, json.dumps(payload).encode())
        for name, took in taken.items() if turn else ():  # the first one compiles
            times.setdefault(name, []).append(took)
    return {name: round(statistics.median(each), 1) for name, each in times.items()}


def items(directory: Path, size: int) -> None:
    """Make a home whose archive holds `size` items."""
    home = full_home.make(directory, tokens=TOKENS, patterns=PATTERNS, archived=size)
    assert sum(path.read_bytes().count(b"\n") for path in (home / "data/archive/items").iterdir()) == size


def conversations(directory: Path, size: int) -> None:
    """Make a home that has archived `size` conversations."""
    home = full_home.make(directory, tokens=TOKENS, patterns=PATTERNS, archived=ITEMS[0])
    messages = [{"role": "user", "content": "Which port?"}, {"role": "assistant", "content": "8007."}]
    aether.archive_conversations(({"id": f"c{nth}", "messages": messages} for nth in range(size)), home=home)
    assert len(aether.list_archived(home=home)) == size


def grown(make: Callable[[Path, int], None], sizes: tuple[int, ...]) -> dict[str, Any]:
    """Return by command the multiples of `python -c pass` at each size, and the exponent."""
    by_size = []
    for size in sizes:
        directory = Path(tempfile.mkdtemp(prefix="aether-growth-"))
        try:
            (directory / ".git").mkdir()
            make(directory, size)
            by_size.append(measured(directory))
        finally:
            shutil.rmtree(directory, ignore_errors=True)
    *_, before, last = by_size
    step = math.log(sizes[-1] / sizes[-2])

    def exponent(name: str) -> float:
        own = [max(each[name] - each["pass"], 1.0) for each in (before, last)]
        return round(math.log(own[1] / own[0]) / step, 2)

    return {
        "sizes": sizes,
        "commands": {
            name: {
                "times_python_c_pass": [round(each[name] / each["pass"], 1) for each in by_size],
                "exponent": exponent(name),
            }
            for name in last
            if name != "pass"
        },
    }


def main() -> None:
    found = {
        "items": grown(items, ITEMS),
        "conversations": grown(conversations, CONVERSATIONS),
    }
    report.write(__file__, {"repeats": REPEATS, **found})


if __name__ == "__main__":
    main()

"""How fast is a transcript read and captured, and does memory stay flat?

The largest real Claude Code transcript beside the checkout (else the sample) is repeated 1, 2, 4 and 8 times
with new uuids. Each size is imported by a process of its own that reports its processor time and its peak memory;
ratios compare sizes within one run. The workload is checked: every copy must give notes of its own.

Then whole commands, as a user waits for them: `aether import` of a transcript of Claude Code and of Codex, of lists of
chat messages and of a conversation in Markdown, each into a new home; processor time beside wall time, the best of its
rounds. The made list and the made conversation are the dearest input there is: nothing but requests and answers of about a
page, each kept whole as a note and as a passage. Real ones are mostly calls and their output, of which little is kept.

Usage: python benchmarks/import_speed.py
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path

import full_home
import report

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data" / "claude_code"
REAL = (
    ("Codex's transcript", "codex", "*.jsonl"),
    ("a real list of chat messages", "trajectories", "taubench*.jsonl"),
    ("a real list of an agent's messages", "trajectories", "converted_*.json"),
)
SAMPLE = ROOT / "data" / "samples" / "colony.jsonl"
COPIES = (1, 2, 4, 8)
ROUNDS = 3
COMMAND_ROUNDS = 3
CHAT_MB = 4
# Time per byte may not grow by more than this from the smallest to the largest input.
LINEAR_WITHIN = 1.5
# Peak memory may not grow by more than this share of what was added to the file.
FLAT_WITHIN = 0.2
_UUID = re.compile(rb"\b[0-9a-f]{8}(?=-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b)")


def main() -> None:
    if len(sys.argv) == 3:
        print(json.dumps(measure(sys.argv[1], capturing=sys.argv[2] == "capture")))
        return
    files = sorted(DATA.glob("*.jsonl"), key=lambda path: path.stat().st_size) if DATA.is_dir() else []
    source = files[-1] if files else SAMPLE
    with tempfile.TemporaryDirectory() as directory:
        sizes = [grown(source, copies, Path(directory)) for copies in COPIES]
        rows = [row(copies, path) for copies, path in zip(COPIES, sizes, strict=True)]
        commands = [
            command("Claude Code's transcript", sizes[0], Path(directory)),
            *(command(what, path, Path(directory)) for what, path in real()),
            command("a list of chat messages", chat(Path(directory)), Path(directory)),
            command("a conversation in Markdown", markdown(Path(directory)), Path(directory)),
        ]
    check(rows)
    report.write(__file__, {"source": source.name, "rows": rows, "commands": commands})


def real() -> Iterator[tuple[str, Path]]:
    """Yield the largest real file of each other format that is beside the checkout."""
    for what, folder, names in REAL:
        if files := sorted((DATA.parent / folder).glob(names), key=lambda path: path.stat().st_size):
            yield what, files[-1]


def turns(rng: random.Random) -> Iterator[tuple[str, str]]:
    """Yield requests and answers of about a page without end, in words that a project repeats."""
    for nth in count():
        asked = f"Please move the {rng.choice(full_home.NOUNS)} of service {nth} to port {rng.randint(1_000, 9_999)}."
        answer = [full_home.sentence(nth + each, rng) for each in range(12)]
        answer.insert(rng.randrange(12), f"I decided to keep the {rng.choice(full_home.NOUNS)} as it is.")
        yield asked, " ".join(answer)


def chat(directory: Path) -> Path:
    """Write a list of messages as the OpenAI format has it, and return its file."""
    messages: list[dict[str, str]] = []
    size = 0
    for asked, answer in turns(random.Random(5)):
        messages += [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}]
        size += len(asked) + len(answer) + 60
        if size > CHAT_MB * 1e6:
            break
    path = directory / "chat.json"
    path.write_text(json.dumps(messages), encoding="utf-8")
    return path


def markdown(directory: Path) -> Path:
    """Write a conversation with a heading for each message, and return its file."""
    parts: list[str] = []
    size = 0
    for asked, answer in turns(random.Random(6)):
        parts += [f"## User\n\n{asked}\n", f"## Assistant\n\n{answer}\n"]
        size += len(asked) + len(answer) + 40
        if size > CHAT_MB * 1e6:
            break
    path = directory / "chat.md"
    path.write_text("\n".join(parts), encoding="utf-8")
    return path


def command(what: str, path: Path, directory: Path) -> dict:
    """Return what `aether import` of `path` takes, each time into a new home."""
    mb, took = path.stat().st_size / 1e6, []
    for nth in range(COMMAND_ROUNDS):
        project = directory / f"{path.name}-{nth}"
        (project / ".git").mkdir(parents=True)
        aether = [sys.executable, "-m", "aether"]
        run = partial(subprocess.run, check=True, cwd=project, capture_output=True, env=environment())
        run([*aether, "init"])
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        told = run([*aether, "import", str(path), "--json"]).stdout
        wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append((wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
        assert json.loads(told)["items"] > 20, "the file gave almost no notes"
    wall, cpu = min(wall for wall, _ in took), min(cpu for _, cpu in took)
    stored = json.loads(told)["items"]
    return {
        "format": what, "items": stored, "mb": round(mb, 1), "seconds": round(wall, 2), "mb_per_s": round(mb / wall, 2),
        "mb_per_cpu_s": round(mb / cpu, 2), "goal_mb_per_s": 10,
    }  # fmt: skip


def environment() -> dict[str, str]:
    """Return the environment of a user in a project of their own, with the checkout first."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("AETHER_HOME", "CLAUDE_PROJECT_DIR", "PYTHONDONTWRITEBYTECODE")
    }
    return {**kept, "PYTHONPATH": str(ROOT)}


def grown(source: Path, copies: int, directory: Path) -> Path:
    """Write `copies` of the transcript one after the other, each with uuids of its own."""
    path = directory / f"{copies}.jsonl"
    with path.open("wb") as out:
        for copy in range(copies):
            prefix = f"{copy:08x}".encode()
            for line in source.open("rb"):
                out.write(_UUID.sub(prefix, line) if copy else line)
            if not line.endswith(b"\n"):
                out.write(b"\n")
    return path


def measure(path: str, *, capturing: bool) -> dict:
    from aether.memory.capture.extract import capture
    from aether.messages.read import read_records

    best, count = float("inf"), 0
    for _ in range(ROUNDS):
        start = time.process_time()
        records = read_records(path)
        count = sum(1 for _ in (capture(records, file="x") if capturing else records))
        best = min(best, time.process_time() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": best, "count": count, "peak_mib": peak}


def row(copies: int, path: Path) -> dict:
    mb = path.stat().st_size / 1e6
    result = {"copies": copies, "mb": round(mb, 2)}
    for what in ("read", "capture"):
        command = [sys.executable, __file__, str(path), what]
        told = json.loads(
            subprocess.run(command, check=True, capture_output=True, cwd=ROOT, text=True).stdout
        )
        result |= {
            f"{what}_count": told["count"],
            f"{what}_mb_per_s": round(mb / told["seconds"], 1),
            f"{what}_peak_mib": round(told["peak_mib"], 1),
        }
    return result


def check(rows: list[dict]) -> None:
    first, last = rows[0], rows[-1]
    added = (last["mb"] - first["mb"]) * 1e6 / 2**20
    assert first["capture_count"] > 20, "the transcript gave almost no notes"
    assert last["capture_count"] > 0.9 * last["copies"] * first["capture_count"], "the copies gave no notes"
    assert last["read_count"] == last["copies"] * first["read_count"], "the copies were not all read"
    for what in ("read", "capture"):
        assert first[f"{what}_mb_per_s"] < LINEAR_WITHIN * last[f"{what}_mb_per_s"], f"{what} is not linear"
        assert last[f"{what}_peak_mib"] - first[f"{what}_peak_mib"] < FLAT_WITHIN * added, (
            f"{what} holds the file"
        )


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()

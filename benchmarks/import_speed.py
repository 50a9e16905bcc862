"""How fast is a transcript read and captured, and does memory stay flat?

The largest real Claude Code transcript beside the checkout (else the sample) is repeated 1, 2, 4 and 8 times
with new uuids. Each size is imported by a process of its own that reports its time and its peak memory;
ratios compare sizes within one run. The workload is checked: every copy must give notes of its own.

Usage: python benchmarks/import_speed.py
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import report

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data" / "claude_code"
SAMPLE = ROOT / "data" / "samples" / "colony.jsonl"
COPIES = (1, 2, 4, 8)
ROUNDS = 3
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
    check(rows)
    report.write(__file__, {"source": source.name, "rows": rows})


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
        start = time.perf_counter()
        records = read_records(path)
        count = sum(1 for _ in (capture(records, file="x") if capturing else records))
        best = min(best, time.perf_counter() - start)
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

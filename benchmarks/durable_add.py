"""What does it cost to add one item so that it is on the disk, at an empty and at a full working memory?

In process, one durable addition at a time, in turns with the same content as one committed SQLite row (WAL,
synchronous=FULL; its table holds as many rows as the full memory). What rewriting the whole document would cost
(written, synced, replaced, directory synced) is measured after them: between them it would leave the disk and the
caches to the next in turn in another state. Each way is warmed before it is measured. Three working memories: empty; at 79 % of 200,000 tokens, just below the threshold; and at 99 %, where compression
is needed and its hand-off is open. Three runs; every ratio is of medians within one run.

Wall time here is mostly the disk's sync, and suffers from whatever else the machine does
(`load_at_start`: waiting processes); the processor time beside it suffers less.

Usage: python benchmarks/durable_add.py
"""

from __future__ import annotations

import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import report

import aether
from aether.store import files, snapshot
from aether.store.files import write_whole

RUNS = 3
ADDITIONS = 60
WARMING = 5
REWRITES = 20
CAPACITY = 200_000
FILLS = {"empty": 0.0, "below_threshold": 0.79, "full": 0.985}
# About 430 characters, as a note of an agent has them; about 100 tokens.
NOTE = (
    "Measured the importer on the large transcript: 41 MB/s, flat memory; the slow part is the decoder. " * 4
)
# The additions themselves must fit below the limit, or they would evict.
SHORT = "The importer reads 41 MB/s with flat memory."

COUNT = "import sys, aether; print(len(aether.list_working_memory_items(home=sys.argv[1])))"


def filled(directory: Path, share: float) -> Path:
    """Return a home whose working memory holds `share` of its capacity, folded."""
    home = aether.init(directory / ".aether")
    each = 0
    while True:
        used = aether.verify_token_limit(home=home).current
        left = int(share * CAPACITY) - used
        if each and left < each:
            break
        if not share:
            break
        count = left // each if each else 1
        entries = [{"content": f"{number}: {NOTE}", "type": "observation"} for number in range(count)]
        aether.add_working_memory_items(entries, home=home)
        each = each or aether.verify_token_limit(home=home).current + 3
    aether.fold(home=home)
    return home


def database(directory: Path) -> sqlite3.Connection:
    """Return an empty table of items that syncs every commit."""
    connection = sqlite3.connect(directory / "items.sqlite", isolation_level=None)
    assert connection.execute("PRAGMA journal_mode=WAL").fetchone() == ("wal",)
    connection.execute("PRAGMA synchronous=FULL")
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    connection.execute(
        "CREATE TABLE items (id TEXT PRIMARY KEY, at TEXT, type TEXT, content TEXT, metadata TEXT)"
    )
    return connection


def timed(act: Callable[[], object]) -> tuple[float, float]:
    """Return wall and processor time of `act`, in milliseconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    act()
    return (time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000


def one_run(directory: Path) -> dict[str, dict[str, float]]:
    """Return the median wall and processor milliseconds of each way."""
    homes = {name: filled(directory / name, share) for name, share in FILLS.items()}
    before = {name: len(aether.list_working_memory_items(home=home)) for name, home in homes.items()}
    rows, held = database(directory), before["full"]
    rows.executemany(
        "INSERT INTO items VALUES (?, ?, ?, ?, ?)",
        ((f"old_{nth}", "", "observation", f"{nth}: {NOTE}", "{}") for nth in range(held)),
    )
    memory = snapshot.load(homes["full"]).documents["memory"]
    whole = files.json_document(memory)
    assert len(whole) > 500_000
    ways: dict[str, Callable[[int], object]] = {
        **{
            f"add_{name}": lambda number, home=home: aether.add_working_memory_item(
                f"{number}: {SHORT}", "observation", home=home
            )
            for name, home in homes.items()
        },
        "sqlite_row": lambda number: rows.execute(
            "INSERT INTO items VALUES (?, ?, ?, ?, ?)",
            (f"wm_{number}", datetime.now(UTC).isoformat(), "observation", f"{number}: {SHORT}", "{}"),
        ),
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in (*ways, "rewrite_full")}
    for number in range(WARMING + ADDITIONS):
        # Each is the first, and follows each other, equally often.
        order = list(ways.items())[number % len(ways) :] + list(ways.items())[: number % len(ways)]
        for name, way in order:
            took = timed(lambda way=way: way(number))  # noqa: B023 - called at once
            if number >= WARMING:
                times[name].append(took)
    _assert_workload(homes, before, rows, held)
    for number in range(WARMING + REWRITES):
        took = timed(
            lambda: write_whole(directory / "memory.json", files.json_document(memory, size=len(whole)))
        )
        if number >= WARMING:
            times["rewrite_full"].append(took)
    return {
        name: {
            "wall_ms": round(statistics.median(wall for wall, _ in measured), 3),
            "cpu_ms": round(statistics.median(cpu for _, cpu in measured), 3),
        }
        for name, measured in times.items()
    }


def _assert_workload(
    homes: dict[str, Path], before: dict[str, int], rows: sqlite3.Connection, rows_before: int
) -> None:
    for name, home in homes.items():
        usage = aether.verify_token_limit(home=home)
        held = aether.list_working_memory_items(home=home)
        assert len(held) == before[name] + WARMING + ADDITIONS, name
        assert usage.current >= FILLS[name] * CAPACITY * 0.98, (name, usage.current)
        assert usage.needed == (name == "full"), name
        seen = subprocess.run([sys.executable, "-c", COUNT, home], check=True, capture_output=True, text=True)
        assert int(seen.stdout) == len(held), "each addition is on the disk"
    assert rows.execute("SELECT count(*) FROM items").fetchone() == (rows_before + WARMING + ADDITIONS,)


def ratios(run: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return what one run says of each question."""
    wall = {name: measured["wall_ms"] for name, measured in run.items()}
    cpu = {name: measured["cpu_ms"] for name, measured in run.items()}
    return {
        "full_over_empty": round(wall["add_full"] / wall["add_empty"], 2),
        "below_threshold_over_empty": round(wall["add_below_threshold"] / wall["add_empty"], 2),
        "empty_over_sqlite_row": round(wall["add_empty"] / wall["sqlite_row"], 2),
        "full_over_sqlite_row": round(wall["add_full"] / wall["sqlite_row"], 2),
        "rewrite_over_add_full": round(wall["rewrite_full"] / wall["add_full"], 2),
        "full_over_empty_cpu": round(cpu["add_full"] / cpu["add_empty"], 2),
        "empty_over_sqlite_row_cpu": round(cpu["add_empty"] / cpu["sqlite_row"], 2),
    }


def sync_ms(directory: Path) -> float:
    """Return the median milliseconds of a small write and its sync, which no durable addition can do without."""
    with (directory / "synced").open("ab", buffering=0) as file:

        def write() -> None:
            file.write(b"x" * 500)
            os.fsync(file.fileno())

        return round(statistics.median(timed(write)[0] for _ in range(ADDITIONS)), 2)


def main() -> None:
    runs = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as directory:
            runs.append(one_run(Path(directory)))
    with tempfile.TemporaryDirectory() as directory:
        synced = sync_ms(Path(directory))
    result = {
        "sync_ms": synced,
        "additions_per_way_and_run": ADDITIONS,
        "runs": [{"ratios": ratios(run), **run} for run in runs],
    }
    report.write(__file__, result)


if __name__ == "__main__":
    main()

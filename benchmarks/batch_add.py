"""What does a batch of 1,000 items cost, beside the same rows in one transaction of SQLite?

In process, in turns: `add_working_memory_items` with 1,000 entries, and `executemany` with 1,000 rows (WAL,
synchronous=FULL) into a table with an index of words, because aether's items are found by their words, too; without that
index as well. Every batch is new. Both are warmed; ratios are of the medians of one run. That everything is there is checked in
a process of its own.

Usage: python benchmarks/batch_add.py
"""

from __future__ import annotations

import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import report
from durable_add import COUNT, timed

import aether

RUNS, BATCHES, WARMING, ITEMS = 3, 5, 1, 1_000
TEXT = "The importer reads {mb} MB/s with flat memory, measured at step {number} of run {batch}."


def texts(batch: int) -> list[str]:
    """Return the texts of one batch, each another one."""
    return [TEXT.format(mb=number % 97, number=number, batch=batch) for number in range(ITEMS)]


def table(directory: Path, name: str, *, indexed: bool) -> Callable[[int], object]:
    """Return what adds a batch to a table of its own, with or without an index of its words."""
    connection = sqlite3.connect(directory / f"{name}.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE items (id TEXT PRIMARY KEY, type TEXT, content TEXT)")
    if indexed:
        connection.execute("CREATE VIRTUAL TABLE words USING fts5(content)")

    def add(batch: int) -> None:
        contents = texts(batch)
        connection.execute("BEGIN IMMEDIATE")
        rows = [(f"{batch}_{number}", "observation", text) for number, text in enumerate(contents)]
        connection.executemany("INSERT INTO items VALUES (?, ?, ?)", rows)
        if indexed:
            connection.executemany("INSERT INTO words VALUES (?)", [(text,) for text in contents])
        connection.execute("COMMIT")
        assert connection.execute("SELECT count(*) FROM items").fetchone() == ((batch + 1) * ITEMS,)

    return add


def one_run(directory: Path) -> dict[str, dict[str, float]]:
    """Return the median wall and processor milliseconds of a batch by each way."""
    home = aether.init(directory / ".aether")

    def add(batch: int) -> None:
        ids = aether.add_working_memory_items(
            [{"content": text, "type": "observation"} for text in texts(batch)], home=home
        )
        assert len(set(ids)) == ITEMS

    ways = {
        "aether": add,
        "sqlite": table(directory, "plain", indexed=False),
        "sqlite_with_words": table(directory, "indexed", indexed=True),
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for batch in range(WARMING + BATCHES):
        turn = batch % len(ways)
        for name, way in [*ways.items()][turn:] + [*ways.items()][:turn]:
            took = timed(lambda way=way: way(batch))  # noqa: B023 - called at once
            if batch >= WARMING:
                times[name].append(took)
    seen = subprocess.run([sys.executable, "-c", COUNT, home], check=True, capture_output=True, text=True)
    assert int(seen.stdout) == (WARMING + BATCHES) * ITEMS, seen.stdout
    return {
        name: {
            "wall_ms": round(statistics.median(wall for wall, _ in measured), 2),
            "cpu_ms": round(statistics.median(cpu for _, cpu in measured), 2),
        }
        for name, measured in times.items()
    }


def main() -> None:
    runs = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as directory:
            runs.append(one_run(Path(directory)))
    ratios = {
        name: round(statistics.median(run["aether"]["cpu_ms"] / run[name]["cpu_ms"] for run in runs), 1)
        for name in ("sqlite", "sqlite_with_words")
    }
    report.write(__file__, {"items": ITEMS, "batches": BATCHES, "goal": 2, "cpu_over": ratios, "runs": runs})


if __name__ == "__main__":
    main()

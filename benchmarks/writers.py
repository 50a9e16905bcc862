"""How many durable additions do eight processes make together in a second, beside eight writers of SQLite?

Each way starts its eight processes, which wait for each other, add 100 items or rows each, one durable change at a time,
and end; the time is from the common start to the last end. SQLite is in WAL mode with synchronous=FULL and a busy timeout. In turns,
each way first equally often, after one round to warm. That every acknowledged item and row is there is checked.

Usage: python benchmarks/writers.py
"""

from __future__ import annotations

import multiprocessing
import sqlite3
import statistics
import tempfile
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path

import report

import aether

ROUNDS, WRITERS, ADDITIONS = 4, 8, 100
TEXT = "Writer {writer} measured step {number}: 41 MB/s with flat memory."
BUSY_MS = 60_000


def add_items(home: Path, start: Barrier, writer: int) -> None:
    """Add items, one at a time, from the common start on."""
    start.wait()
    for number in range(ADDITIONS):
        aether.add_working_memory_item(TEXT.format(writer=writer, number=number), "observation", home=home)


def add_rows(file: Path, start: Barrier, writer: int) -> None:
    """Add rows, one transaction each, from the common start on."""
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute(f"PRAGMA busy_timeout={BUSY_MS}")
    connection.execute("PRAGMA synchronous=FULL")
    start.wait()
    for number in range(ADDITIONS):
        row = (f"{writer}_{number}", "observation", TEXT.format(writer=writer, number=number))
        connection.execute("INSERT INTO items VALUES (?, ?, ?)", row)


def per_second(act, place: Path) -> float:
    """Return the additions in a second of wall time, of all writers together."""
    context = multiprocessing.get_context("fork")
    start = context.Barrier(WRITERS + 1)
    writers = [context.Process(target=act, args=(place, start, nth)) for nth in range(WRITERS)]
    for writer in writers:
        writer.start()
    start.wait()
    began = time.perf_counter()
    for writer in writers:
        writer.join()
    took = time.perf_counter() - began
    assert [writer.exitcode for writer in writers] == [0] * WRITERS
    return WRITERS * ADDITIONS / took


def one_round(directory: Path, *, sqlite_first: bool) -> dict[str, float]:
    """Return the additions a second of both ways."""
    home = aether.init(directory / ".aether")
    file = directory / "items.sqlite"
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE items (id TEXT PRIMARY KEY, type TEXT, content TEXT)")
    ways = [("aether", add_items, home), ("sqlite", add_rows, file)]
    rates = {name: per_second(act, place) for name, act, place in ways[:: -1 if sqlite_first else 1]}
    expected = WRITERS * ADDITIONS
    contents = {item["content"] for item in aether.list_working_memory_items(home=home)}
    assert len(contents) == expected
    assert connection.execute("SELECT count(*) FROM items").fetchone() == (expected,)
    return {name: round(rate) for name, rate in rates.items()}


def main() -> None:
    rounds = []
    for number in range(ROUNDS + 1):
        with tempfile.TemporaryDirectory() as directory:
            rounds.append(one_round(Path(directory), sqlite_first=bool(number % 2)))
    rounds = rounds[1:]
    share = statistics.median(rates["aether"] / rates["sqlite"] for rates in rounds)
    report.write(
        __file__, {"writers": WRITERS, "additions_each": ADDITIONS, "share_of_sqlite": round(share, 2), "goal": 1, "rounds": rounds}
    )  # fmt: skip


if __name__ == "__main__":
    main()

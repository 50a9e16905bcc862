"""What does taking the newest change back cost, in a working memory of 1,000 and of 12,000 live items?

In process and in turns: an addition, and the undo of it, which is asserted to take it away and nothing else. Medians of one
run; the answer is the ratio, which is 1 if the cost does not depend on what else memory holds.

Usage: python benchmarks/undo_newest.py
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import report
from durable_add import timed

import aether

SIZES, REPEATS, WARMING, BATCH = (1_000, 12_000), 40, 5, 1_000


def filled(directory: Path, items: int) -> Path:
    """Return a home with so many live items."""
    home = aether.init(directory / ".aether")
    for first in range(0, items, BATCH):
        entries = [{"content": f"Step {first + nth} is done.", "type": "observation"} for nth in range(BATCH)]
        aether.add_working_memory_items(entries, home=home)
    aether.fold(home=home)
    assert len(aether.list_working_memory_items(home=home)) == items
    return home


def main() -> None:
    times: dict[int, list[tuple[float, float]]] = {size: [] for size in SIZES}
    with tempfile.TemporaryDirectory() as directory:
        homes = {size: filled(Path(directory) / str(size), size) for size in SIZES}
        for number in range(WARMING + REPEATS):
            for size in SIZES[:: -1 if number % 2 else 1]:
                home = homes[size]
                aether.add_working_memory_item(f"The newest of turn {number}.", "observation", home=home)
                took = timed(lambda home=home: aether.undo(home=home))
                if number >= WARMING:
                    times[size].append(took)
        for size, home in homes.items():
            assert len(aether.list_working_memory_items(home=home)) == size
    rows = [
        {
            "items": size,
            "wall_ms": round(statistics.median(wall for wall, _ in times[size]), 2),
            "cpu_ms": round(statistics.median(cpu for _, cpu in times[size]), 2),
        }
        for size in SIZES
    ]
    report.write(
        __file__, {"repeats": REPEATS, "rows": rows, "ratio": round(rows[1]["cpu_ms"] / rows[0]["cpu_ms"], 2)}
    )


if __name__ == "__main__":
    main()

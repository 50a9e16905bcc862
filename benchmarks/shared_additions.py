"""How many items a second do 1, 4 and 16 writers add durably: to the local journal, and to a shared home?

Each writer is a process that calls `aether.add_working_memory_item`, and an item counts when its writer has the answer. A
PostgreSQL of its own on a socket, with `fsync` on. In turns, in each of three runs:

- bare: each writer inserts a row of 430 bytes by one statement, committed and synced.
- local: all writers in one home that is not shared.
- replica: all writers in one shared home.
- replicas: the writers in four shared homes of one colony.

Afterwards the replicas must be the same, byte for byte, with every item that was acknowledged, once. Everything shares the
processors of one machine, so the ratios within a run say more than the numbers. `client_cpu_ms` and `server_cpu_ms` are
processor time of the writers and of the server's processes (Linux only) for each item, which suffer less from what else the
machine does: two processors are busy at 2000 divided by their sum.

Usage: python benchmarks/shared_additions.py [SECONDS]
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import report

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import aether  # noqa: E402 - found beside this directory
from aether.api import share as sharing  # noqa: E402
from aether.sharing import ledgers  # noqa: E402
from aether.store import doctor  # noqa: E402
from aether.store import journal as journals  # noqa: E402
from tests import postgres_server  # noqa: E402

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 3.0
RUNS = 3
WRITERS = (1, 4, 16)
REPLICAS = 4
WAYS = ("bare", "local", "replica", "replicas")


def add(home: Path, who: int, ready: Any, go: Any, end: Any, answers: Any) -> None:
    aether.add_working_memory_item(f"warm {who}", "note", home=home)
    ready.release()
    go.wait()
    stored, stop, started = 0, time.monotonic() + SECONDS, time.process_time()
    while time.monotonic() < stop:
        content = f"{who} {stored}: the importer reads 41 MB/s with flat memory."
        aether.add_working_memory_item(content, "note", home=home)
        stored += 1
    answers.put((stored, time.process_time() - started))
    end.wait()


def insert(url: str, who: int, ready: Any, go: Any, end: Any, answers: Any) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        ready.release()
        go.wait()
        stored, stop, started = 0, time.monotonic() + SECONDS, time.process_time()
        while time.monotonic() < stop:
            connection.execute("insert into bare values (%s, %s, %s)", (who, stored, b"x" * 430))
            stored += 1
        answers.put((stored, time.process_time() - started))
        end.wait()


def together(work: Any, places: Sequence[Any], server: Any) -> tuple[int, dict[str, float]]:
    """Let one process for each of `places` work; return how much they stored, and the result."""
    context = multiprocessing.get_context("fork")
    ready, go, end, answers = context.Semaphore(0), context.Event(), context.Event(), context.Queue()
    children = [
        context.Process(target=work, args=(place, who, ready, go, end, answers))
        for who, place in enumerate(places)
    ]
    for child in children:
        child.start()
    for _ in children:
        ready.acquire()
    before = server_seconds(server)
    go.set()
    found = [answers.get() for _ in children]
    served = server_seconds(server) - before
    end.set()
    for child in children:
        child.join()
    stored = sum(number for number, _ in found)
    return stored, {
        "per_second": round(stored / SECONDS, 1),
        "client_cpu_ms": round(sum(seconds for _, seconds in found) / stored * 1000, 2),
        "server_cpu_ms": round(served / stored * 1000, 2),
    }


def server_seconds(server: Any) -> float:
    """Return the processor time of the processes of the server so far; 0 where the system does not say it."""
    started = ["ps", "-o", "pid=", "--ppid", str(server.process.pid)]
    found = 0
    for pid in subprocess.run(started, capture_output=True, text=True, check=False).stdout.split():
        with suppress(OSError):
            found += int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0])
    return found / 1e9


def measured(way: str, server: Any, writers: int, directory: Path) -> dict[str, float]:
    """Measure one way, and check what it stored."""
    if way == "bare":
        server.sql("truncate bare")
        return together(insert, [server.url()] * writers, server)[1]
    name = f"{directory.name}{way}{writers}"
    made = [aether.init(directory / f"{way}{writers}" / ".aether")]
    if way != "local":
        sharing.share(made[0], server.url(), name)
        more = min(REPLICAS, writers) - 1 if way == "replicas" else 0
        made += [
            sharing.join(server.url(), name, directory / f"{way}{writers}-{nth}").home for nth in range(more)
        ]
    close()
    stored, found = together(add, [made[who % len(made)] for who in range(writers)], server)
    for home in made if way != "local" else ():
        sharing.update_share(home=home)
    documents = {(home / "data/memory.json").read_bytes() for home in made}
    assert len(documents) == 1
    for home in made:
        added = [
            entry
            for entries in (journals.folded_entries(home), journals.read_journal(home).entries)
            for entry in entries
            if entry.operation == "add"
        ]
        assert len(added) == stored + writers
        assert not [finding for finding in doctor.examine(home) if finding.level == "error"]
    close()
    return found


def close() -> None:
    while ledgers._OPEN:  # noqa: SLF001 - before the writers fork
        ledgers._OPEN.popitem()[1][2].close()  # noqa: SLF001 - as above


def main() -> None:
    """Measure all ways, and write the result."""
    with postgres_server.running(fsync="on", shared_buffers="128MB") as server:
        os.environ[ledgers.URL] = server.url()
        server.sql(
            "create table bare (who int, number bigint, line bytea, at timestamptz default clock_timestamp(), "
            "primary key (who, number))"
        )
        runs: list[dict[str, dict[str, dict[str, float]]]] = []
        for _ in range(RUNS):
            directory = Path(tempfile.mkdtemp(prefix="aether-additions"))
            try:
                runs.append({
                    str(writers): {way: measured(way, server, writers, directory) for way in WAYS}
                    for writers in WRITERS
                })  # fmt: skip
            finally:
                shutil.rmtree(directory)
    ratios = {
        writers: {
            f"{way}_of_{other}": round(
                statistics.median(
                    run[writers][way]["per_second"] / run[writers][other]["per_second"] for run in runs
                ), 2,
            )
            for way in ("replica", "replicas")
            for other in ("bare", "local")
        }
        for writers in runs[0]
    }  # fmt: skip
    report.write(__file__, {"seconds": SECONDS, "ratios": ratios, "runs": runs})


if __name__ == "__main__":
    main()

"""How many lines a second does a shared ledger store, beside what the same PostgreSQL does with bare `INSERT` + `COMMIT`?

A server of its own on a socket, with `fsync` on and its defaults; 1, 4 and 16 writers, each a process. Every line has
about 430 bytes, and counts when its writer has the answer. In turns, in each of three runs:

- bare: each writer inserts a row by one statement, committed and synced; psycopg prepares it.
- streams: each writer appends to a stream of its own, as conversations do.
- grouped: all writers append to one stream, from four replicas at most, each several lines together, with turns from a
  conflict until nobody else was in between. This is what the server could take; no home sends lines of several writers.
- alone: all writers append to one stream, each its own line by itself. This is a journal at the worst.

The lag is the time from the start of an append to its line in a second ledger that waits for it, one line at a time.
Everything, clients too, shares the processors of one machine. Ratios are of the medians of the runs.

Usage: python benchmarks/shared_appends.py [SECONDS]
"""

from __future__ import annotations

import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import report

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from aether.regular import seal  # noqa: E402
from aether.sharing import postgres as store  # noqa: E402 - found beside this directory
from aether.store.ledger import Appended, Mark  # noqa: E402
from tests import postgres_server  # noqa: E402

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 3.0
RUNS = 3
WRITERS = (1, 4, 16)
REPLICAS = 4
BODY = b'"by":"bench","operation":"add","patches":{"memory":[{"op":"add","path":"/x","value":"' + b"n" * 330


def line(revision: int) -> bytes:
    start = b'{"revision":%d,"at":"2026-03-01T10:15:00.000000Z",' % revision
    return seal(start + BODY + b'"}]},"member":"%s"}' % postgres_server.OWNER.encode())


def bare(url: str, who: int) -> Iterator[int]:
    """Insert rows, one commit each."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        number = 0
        while True:
            connection.execute(
                "insert into bare (stream, revision, line) values (%s, %s, %s)", (who, number, line(number))
            )
            number += 1
            yield 1


def appending(url: str, stream: str, batch: int) -> Iterator[int]:
    """Append lines to a stream, `batch` at a time, by turns after a conflict."""
    ledger = store.open_ledger(url, "bench", replica="", timeout=30)
    mark = Mark(ledger.head(stream), "")
    contended = False

    def lines() -> list[bytes]:
        return [line(mark.revision + number) for number in range(1, batch + 1)]

    while True:
        answer = Appended(False, 0, []) if contended else ledger.append_if(stream, mark, lines())
        contended = not answer.done
        while not answer.done:
            mark = Mark(mark.revision + len(answer.lines), "")
            with ledger.turn(stream, mark) as news:
                contended = bool(news.lines)
                mark = Mark(mark.revision + len(news.lines), "")
                answer = ledger.append_if(stream, mark, lines())
        mark = Mark(mark.revision + batch, "")
        yield batch


WAYS: dict[str, Callable[[str, int, int], Iterator[int]]] = {
    "bare": lambda url, who, writers: bare(url, who),
    "streams": lambda url, who, writers: appending(url, f"conversations/{who}", 1),
    "grouped": lambda url, who, writers: appending(url, "", max(1, writers // REPLICAS)),
    "alone": lambda url, who, writers: appending(url, "alone", 1),
}


def write(way: str, url: str, who: int, writers: int, ready, go, answers) -> None:
    work = WAYS[way](url, who, writers)
    next(work)
    ready.release()
    go.wait()
    stored, times = 0, []
    stop = time.monotonic() + SECONDS
    while (started := time.monotonic()) < stop:
        stored += next(work)
        times.append(time.monotonic() - started)
    answers.put((stored, times))


def measured(way: str, url: str, writers: int) -> dict[str, float]:
    """Return lines a second, and the latency of a call in milliseconds."""
    context = multiprocessing.get_context("fork")
    ready, go, answers = context.Semaphore(0), context.Event(), context.Queue()
    processes = min(writers, REPLICAS) if way == "grouped" else writers
    children = [
        context.Process(target=write, args=(way, url, who, writers, ready, go, answers)) for who in range(processes)
    ]  # fmt: skip
    for child in children:
        child.start()
    for _ in children:
        ready.acquire()
    go.set()
    found = [answers.get() for _ in children]
    for child in children:
        child.join()
    times = sorted(took for _, taken in found for took in taken)
    return {
        "lines_per_second": round(sum(stored for stored, _ in found) / SECONDS, 1),
        "p50_ms": round(times[len(times) // 2] * 1000, 2),
        "p99_ms": round(times[len(times) * 99 // 100] * 1000, 2),
    }


def main() -> None:
    """Measure all ways, and write the result."""
    with postgres_server.running(fsync="on", shared_buffers="128MB", autovacuum_naptime="60s") as server:
        store.create_colony(server.url(), "bench").close()
        server.sql(
            "create table bare (stream int, revision bigint, line bytea, at timestamptz default clock_timestamp(), "
            "primary key (stream, revision))"
        )
        runs: list[dict[str, dict[str, dict[str, float]]]] = []
        for _ in range(RUNS):
            run: dict[str, dict[str, dict[str, float]]] = {}
            for writers in WRITERS:
                run[str(writers)] = {}
                for way in WAYS:
                    server.sql("truncate bare")
                    run[str(writers)][way] = measured(way, server.url(), writers)
            runs.append(run)
        median = {
            str(writers): {
                way: {
                    what: round(statistics.median(run[str(writers)][way][what] for run in runs), 2)
                    for what in ("lines_per_second", "p50_ms", "p99_ms")
                }
                for way in WAYS
            }
            for writers in WRITERS
        }
        report.write(
            __file__,
            {
                "seconds": SECONDS,
                "server": server.sql("show server_version")[0][0],
                "median": median,
                "of_bare": {
                    writers: {
                        way: round(found["lines_per_second"] / ways["bare"]["lines_per_second"], 2)
                        for way, found in ways.items()
                    }
                    for writers, ways in median.items()
                },
                "runs": runs,
            },
        )


if __name__ == "__main__":
    main()

"""What does a line of a shared colony cost the server: room, processor time, a connection?

A PostgreSQL of its own on a socket. Lines have about 430 bytes. Four costs of the server alone, without its clients:

- append: one writer appends lines one by one to a journal, each durable before the next.
- replicas: ten replicas each read all of those lines, as each machine of a colony does.
- asking: a replica asks for news, and there are no lines after its own.
- commuting: four processes append to one journal at once, each planned again when another was first.

Processor time is that of the server's processes, from /proc; it suffers less from what else the machine does than wall time.
Room is what the tables with their indexes grew by, and the log that is written ahead. A connection costs the memory that its
process has for itself. Every reader must have every line, and the streams every line that was acknowledged.

Usage: python benchmarks/shared_sizing.py [LINES]
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path

import report

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from aether.regular import seal  # noqa: E402
from aether.sharing import postgres as store  # noqa: E402 - found beside this directory
from aether.store.ledger import Mark  # noqa: E402
from tests import postgres_server  # noqa: E402

LINES = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
REPLICAS = 10
WRITERS = 4
IDLE = 20
BODY = b'"by":"bench","operation":"add","patches":{"memory":[{"op":"add","path":"/x","value":"' + b"n" * 330
TICKS = os.sysconf("SC_CLK_TCK")


def line(revision: int) -> bytes:
    start = b'{"revision":%d,"at":"2026-03-01T10:15:00.000000Z",' % revision
    return seal(start + BODY + b'"}]},"member":"%s"}' % postgres_server.OWNER.encode())


def processes(server: postgres_server.Server) -> list[Path]:
    """Return the directories in /proc of the server and its children."""
    top = server.process.pid
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((each / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == top or int(each.name) == top:
            found.append(each)
    return found


def seconds(server: postgres_server.Server) -> float:
    """Return the processor time of the server, with that of its children that ended."""
    while True:
        total = 0
        try:
            for each in processes(server):
                fields = (each / "stat").read_text().rpartition(")")[2].split()
                own = int(each.name) == server.process.pid
                total += sum(map(int, fields[11 : 15 if own else 13]))
        except OSError:  # one ended meanwhile
            continue
        return total / TICKS


def size(server: postgres_server.Server) -> tuple[int, int]:
    """Return the bytes of the tables, and of the log that was written ahead."""
    ((tables, log),) = server.sql(
        "select sum(pg_total_relation_size(c.oid))::bigint, pg_current_wal_lsn() - '0/0'::pg_lsn "
        "from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'aether' and c.relkind = 'r'"
    )
    return int(tables), int(log)


def append(url: str, stream: str, count: int) -> None:
    """Append `count` lines one by one, each planned again if another writer was first."""
    with closing(store.open_ledger(url, "bench", replica="", timeout=60)) as ledger:
        mark = Mark(ledger.head(stream), "")
        for _ in range(count):
            while not (answer := ledger.append_if(stream, mark, [line(mark.revision + 1)])).done:
                mark = Mark(mark.revision + len(answer.lines), "")
            mark = Mark(mark.revision + 1, "")


def read(url: str, stream: str, replica: int) -> int:
    """Return how many lines a replica reads."""
    with closing(store.open_ledger(url, "bench", replica=f"r{replica}", timeout=60)) as ledger:
        mark = Mark(0, "")
        while lines := ledger.read_after(stream, mark).lines:
            mark = Mark(mark.revision + len(lines), "")
        return mark.revision


def connection_bytes(server: postgres_server.Server) -> int:
    """Return the memory that one more idle connection has for itself, after it was used."""

    def own() -> int:
        found = 0
        for each in processes(server):
            text = (each / "smaps_rollup").read_text()
            found += sum(
                int(row.split()[1])
                for row in text.splitlines()
                if row.startswith(("Private_Clean:", "Private_Dirty:"))
            )
        return found * 1024

    time.sleep(1)  # processes of earlier connections end
    before = own()
    with ExitStack() as opened:
        for number in range(IDLE):
            ledger = store.open_ledger(server.url(), "bench", replica=f"i{number}", timeout=60)
            opened.callback(ledger.close)
            ledger.head("")
        return (own() - before) // IDLE


def main() -> None:
    """Measure, and write the result."""
    with postgres_server.running(fsync="on", shared_buffers="128MB", autovacuum="off") as server:
        store.create_colony(server.url(), "bench").close()
        append(server.url(), "warm", 50)
        tables, log = size(server)
        cpu = seconds(server)
        append(server.url(), "", LINES)
        appended, (grown, logged) = seconds(server) - cpu, size(server)

        cpu = seconds(server)
        assert [read(server.url(), "", replica) for replica in range(REPLICAS)] == [LINES] * REPLICAS
        replicated = seconds(server) - cpu

        with closing(store.open_ledger(server.url(), "bench", replica="asks", timeout=60)) as ledger:
            cpu = seconds(server)
            for _ in range(LINES):
                assert not ledger.read_after("", Mark(LINES, "")).lines
            asked = seconds(server) - cpu

        cpu = seconds(server)
        context = multiprocessing.get_context("fork")
        writers = [
            context.Process(target=append, args=(server.url(), "busy", LINES // WRITERS))
            for _ in range(WRITERS)
        ]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
            assert writer.exitcode == 0
        contended = seconds(server) - cpu
        assert read(server.url(), "busy", REPLICAS) == LINES // WRITERS * WRITERS
        report.write(
            __file__,
            {
                "lines": LINES,
                "server": server.sql("show server_version")[0][0],
                "bytes_of_a_line": len(line(0)),
                "bytes_stored_for_each": round((grown - tables) / LINES),
                "bytes_logged_for_each": round((logged - log) / LINES),
                "server_ms_for_each_append": round(appended * 1000 / LINES, 3),
                "server_ms_for_each_contended_append": round(contended * 1000 / LINES, 3),
                "server_ms_for_each_line_read": round(replicated * 1000 / LINES / REPLICAS, 4),
                "server_ms_for_each_call_without_news": round(asked * 1000 / LINES, 3),
                "kilobytes_of_a_connection": round(connection_bytes(server) / 1024),
            },
        )


if __name__ == "__main__":
    main()

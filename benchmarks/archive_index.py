"""What do list, search, stats and an ageing pass cost as the archive grows to 100,000 conversations?

Archives of 10^3, 10^4 and 10^5 generated conversations over twenty years: six messages each of words drawn by Zipf's law
from 20,000. A tenth of a percent of them is ready to age. Timed are calls of the functions that a program uses: to list one month,
to search (queries of one to six words, a third of them of common words only, half of them with an answer among the oldest
conversations, which says each of its words four times), the sums, and a dry run and a whole pass of
ageing; beside the times, the archive files that each of them reads. A list of everything shows what a cost by size would be.

The files are written without syncs, because only what follows is measured. The index is made from them; beyond 5,000
conversations its rows are repeated under other ids, with their terms, and lead to the same files, which makes the index as
large and as slow as that many files would.

Wall time suffers from whatever else the machine does (`load_at_start`); the processor time beside it suffers less.

Usage: python benchmarks/archive_index.py [SIZE ...]
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path

import report
from search_speed import queries, spread, timed, vocabulary

import aether
from aether.api import archive as edge
from aether.store import archive_store, config, search_index

SIZES = (1_000, 10_000, 100_000)
NOW = datetime(2026, 3, 1, tzinfo=UTC)
DAYS = 7_300
FILES = 5_000
LISTS = 40
# So many conversations of the newest month are 31 days old: they are ready to age.
READY_OF = 1_000
# Queries with an answer among the oldest conversations.
PLANTED = 40


def main() -> None:
    sizes = [int(one) for one in sys.argv[1:]] or SIZES
    found: dict = {}
    for size in sizes:
        found[str(size)] = _of_size(size)
        report.write(__file__, {"sizes": found})


def _of_size(size: int) -> dict:
    rng = random.Random(size)
    words = vocabulary(rng)
    directory = Path(
        tempfile.mkdtemp(prefix="aether-archive-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
    )
    try:
        home = aether.init(directory / ".aether")
        _fill(home, min(size, FILES), words, rng)
        made = timed(archive_store.rebuild_index, home)
        _repeat(home, size)
        return {
            "index_made_s_of_files": [min(size, FILES), round(made, 1)],
            "index_bytes": (home / search_index.FILE).stat().st_size,
            **_measured(home, words, rng),
        }
    finally:
        shutil.rmtree(directory)


def _fill(home: Path, size: int, words: list[str], rng: random.Random) -> None:
    """Write archive files as `archive_conversations` does, all but those that are ready at their last level."""
    rules = edge._rules(home, NOW)  # noqa: SLF001 - as the functions of the archive do
    given = edge._Given(_talk("seed", NOW, words, rng), {"kind": "dict", "name": ""}, None)  # noqa: SLF001
    shape, _ = edge._full(given, rules, "seed")  # noqa: SLF001
    asked = _asked(words)
    for nth in range(size):
        ready = nth % READY_OF == 0
        at = NOW - (timedelta(days=31) if ready else timedelta(days=rng.uniform(0, DAYS)))
        talk = _talk(f"conversation {nth}", at, words, rng)
        if 0 < nth <= PLANTED:
            at = NOW - timedelta(days=DAYS + nth)
            talk = _answer(f"answer {nth - 1}", asked[nth - 1], at, words, rng)
        level = "full" if ready or at > NOW - timedelta(days=30) else "summary"
        content = {"messages": talk["messages"], "given": {**talk, "messages": None}}
        if level == "summary":
            content = {"summary": " ".join(one["content"] for one in talk["messages"])}
        numbers = {
            **shape["metrics"],
            "since": aether_time(at),
            "floor": level if level != "full" else "summary",
            "policy": rules.digest,
        }
        value = {
            **shape, "id": talk["id"], "title": talk["title"], "created_at": aether_time(at), "level": level,
            "content": content, "metrics": numbers,
        }  # fmt: skip
        name = archive_store.name_of(value)
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(archive_store.encoded(value))


def _repeat(home: Path, size: int) -> None:
    """Repeat the rows of the index until it has `size`; none of the copies is ready to age."""
    columns = "name, title, created, level, bytes, since, {}, policy, grace, until, source, length"

    def work(db: sqlite3.Connection) -> None:
        with search_index.writing(db):
            for copy in range(1, -(-size // FILES)):
                db.execute(
                    f"INSERT INTO conversation (id, {columns.format('floor')}) SELECT id || ' copy {copy}', "
                    f"{columns.format('level')} FROM conversation WHERE id NOT LIKE 'answer %' AND id NOT LIKE '% copy %'"
                )
                db.execute(
                    "INSERT INTO conversation_tokens (rowid, tokens) SELECT copied.n, words.tokens FROM conversation AS copied "
                    f"JOIN conversation AS own ON copied.id = own.id || ' copy {copy}' "
                    "JOIN conversation_tokens AS words ON words.rowid = own.n"
                )

    archive_store.indexed(home, work)


def aether_time(at: datetime) -> str:
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _talk(name: str, at: datetime, words: list[str], rng: random.Random) -> dict:
    weights = list(accumulate(1 / (rank + 3) for rank in range(len(words))))
    said = [" ".join(rng.choices(words, cum_weights=weights, k=rng.randint(8, 60))) for _ in range(6)]
    messages = [
        {"role": ("user", "assistant")[nth % 2], "content": f"{one}."} for nth, one in enumerate(said)
    ]
    return {"id": name, "title": said[0][:40], "created_at": aether_time(at), "messages": messages}


def _asked(words: list[str]) -> list[str]:
    """Return the queries that are measured; the first ones have an answer."""
    return queries(words, random.Random(len(words)))


def _answer(name: str, query: str, at: datetime, words: list[str], rng: random.Random) -> dict:
    """Return a short conversation that says each word of a query four times."""
    filler = " ".join(rng.choices(words, k=20))
    said = [f"{query}. {query}.", f"{filler}. {query}, {query}."]
    messages = [{"role": ("user", "assistant")[nth], "content": one} for nth, one in enumerate(said)]
    return {"id": name, "title": filler[:40], "created_at": aether_time(at), "messages": messages}


def _measured(home: Path, words: list[str], rng: random.Random) -> dict:
    reads: list[str] = []
    real = archive_store.read_bytes

    def counted(place: Path, name: str) -> bytes:
        reads.append(name)
        return real(place, name)

    archive_store.read_bytes = counted  # type: ignore[assignment]
    try:
        months = [f"{rng.randint(2008, 2025)}-{rng.randint(1, 12):02}" for _ in range(LISTS)]
        aether.list_archived(month=months[0], home=home)
        config.load(home)
        found = {
            "list_month": _spread([lambda m=month: aether.list_archived(month=m, home=home) for month in months]),
            "of_a_month": len(aether.list_archived(month=months[0], home=home)),
            "list_all": _one(lambda: aether.list_archived(home=home)),
            "stats": _one(lambda: aether.archive_stats(home=home)),
            "search": _spread([lambda q=query: aether.search_archive(q, home=home) for query in _asked(words)]),
            "answers_among_ten_of": [_answered(home, words), PLANTED],
        }  # fmt: skip
        reads.clear()
        found["plan"] = _one(lambda: aether.age_archive(now=NOW, dry_run=True, home=home))
        found["files_read_by_plan"] = len(reads)
        reads.clear()
        start = time.perf_counter()
        done = aether.age_archive(now=NOW, home=home)
        found |= {
            "pass_ms": round((time.perf_counter() - start) * 1e3, 1),
            "aged": len(done.done),
            "failed": len(done.failed),
        }
        found["files_read_by_pass"] = len(reads)
        found["idle_pass"] = _one(lambda: aether.age_archive(now=NOW, home=home))
        return found
    finally:
        archive_store.read_bytes = real


def _answered(home: Path, words: list[str]) -> int:
    """Return for how many of the planted answers a search shows them among its first ten."""
    return sum(
        f"answer {nth}" in {hit.id for hit in aether.search_archive(query, limit=10, home=home)}
        for nth, query in enumerate(_asked(words)[:PLANTED])
    )


def _one(work: Callable[[], object]) -> dict:
    """Return the wall and the processor time of one call, in milliseconds."""
    wall, used = time.perf_counter(), time.process_time()
    work()
    return {
        "wall_ms": round((time.perf_counter() - wall) * 1e3, 1),
        "cpu_ms": round((time.process_time() - used) * 1e3, 1),
    }


def _spread(works: list[Callable[[], object]]) -> dict:
    times = [_one(work) for work in works]
    return {kind: spread([one[kind] / 1e3 for one in times]) for kind in ("wall_ms", "cpu_ms")}


if __name__ == "__main__":
    main()

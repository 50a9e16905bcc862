"""How long does a search take as the archive grows, with the index and without?

Archives of 10^3, 10^4 and 10^5 generated items: words drawn by Zipf's law from 20,000, 8 to 60 per item, a
hundred items per compression. The queries, the same for all sizes, mix common, middling and rare words, and
some ask for common words only. Then a home with all layers full (`full_home`): the call that searches it, and the whole
command `aether memory search`, against `python -c pass`. The first ten hits of the index are compared with a scan's at the sizes where that is
quick. A fresh process opens the index, searches once and ends; it is compared with `python -c pass`.

Wall time suffers from whatever else the machine does (`load_at_start`: waiting processes); the processor
time beside it suffers less.

Usage: python benchmarks/search_speed.py
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace

import full_home
import report

import aether
from aether.search import index as search_index
from aether.search.rank import search
from aether.store import record_files

SIZES = (1_000, 10_000, 100_000)
COMPARED_UP_TO = 10_000
VOCABULARY = 20_000
QUERIES = 120
FRESH_RUNS = 9
START = datetime(2026, 1, 1, tzinfo=UTC)
NOW = START + timedelta(days=90)

FRESH = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from aether.search.rank import search
from aether.search import index as search_index
from aether.store import record_files

home = Path(sys.argv[1])
snapshot = SimpleNamespace(home=home, pending=())
source = search_index.Archive(
    record_files.head(snapshot),
    lambda after: record_files.located(snapshot, "items", after=after),
    lambda wanted: record_files.fetch(snapshot, "items", wanted),
)
archived = search_index.indexed_source(home / "index.sqlite", source)
assert search({}, sys.argv[2], now=datetime(2026, 4, 1, tzinfo=UTC), archived=archived)
"""


def vocabulary(rng: random.Random) -> list[str]:
    starts = "b br c cl d dr f g gr h j k l m n p pl r s st t tr v w".split()
    ends = (
        "ack ade ale an ar ask at ean ed eld en er ick ide im in ip ock od ol on ot ub uck un ur ust".split()
    )
    made: dict[str, None] = {}
    while len(made) < VOCABULARY:
        made["".join(rng.choice(starts) + rng.choice(ends) for _ in range(rng.randint(1, 3)))] = None
    return list(made)


def records(words: list[str], size: int, rng: random.Random) -> list[dict]:
    weights = list(accumulate(1 / (rank + 3) for rank in range(len(words))))
    return [
        {
            "item": {
                "id": f"wm_{at}",
                "type": rng.choice(["observation", "decision", "outcome"]),
                "content": " ".join(rng.choices(words, cum_weights=weights, k=rng.randint(8, 60))),
                "metadata": {
                    "timestamp": (START + timedelta(minutes=at)).isoformat(),
                    "relevance_score": rng.random(),
                    "phase": at // 1_000,
                },
            },
            "compression_id": f"c{at // 100}",
        }
        for at in range(size)
    ]


def queries(words: list[str], rng: random.Random) -> list[str]:
    """Return queries of one to six words: a third of common words only, the others by rank at random."""
    made = []
    for nth in range(QUERIES):
        ranks = [
            rng.randint(0, 30) if nth % 3 == 0 else int(10 ** rng.uniform(0, 3.7))
            for _ in range(rng.randint(1, 6))
        ]
        made.append(" ".join(words[rank] for rank in ranks))
    return made


def timed(
    work: Callable[..., object], *arguments: object, clock: Callable[[], float] = time.perf_counter
) -> float:
    start = clock()
    work(*arguments)
    return clock() - start


def spread(seconds: list[float]) -> dict:
    cuts = statistics.quantiles(seconds, n=20)
    return {"p50_ms": round(statistics.median(seconds) * 1e3, 2), "p95_ms": round(cuts[18] * 1e3, 2)}


def run(place: Path, *arguments: str) -> None:
    """Run Python as a user has it: with compiled modules, here in a directory of their own."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = {**kept, "PYTHONPYCACHEPREFIX": str(place / "compiled")}
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environment)


def fresh(home: Path, asked: list[str]) -> dict:
    run(home, "-c", FRESH, str(home), asked[0])  # the first one compiles
    ours = [timed(run, home, "-c", FRESH, str(home), query) for query in asked[:FRESH_RUNS]]
    empty = [timed(run, home, "-c", "pass") for _ in range(FRESH_RUNS)]
    return {
        "fresh_ms": round(statistics.median(ours) * 1e3, 1),
        "fresh_over_python_c_pass": round(statistics.median(ours) / statistics.median(empty), 1),
    }


def stored(home: Path, held: list[dict]) -> search_index.Archive:
    """Return the archive of `held`, written as a home keeps it."""
    file = home / "data" / "archive" / "items" / "2026-01.jsonl"
    file.parent.mkdir(parents=True)
    with file.open("w", encoding="utf-8") as out:
        for at, record in enumerate(held):
            line = {"revision": at // 1_000 + 1, "nth": at % 1_000, **record}
            out.write(json.dumps(line, separators=(",", ":")) + "\n")
    snapshot = SimpleNamespace(home=home, pending=())
    return search_index.Archive(
        record_files.head(snapshot),
        lambda after: record_files.located(snapshot, "items", after=after),
        lambda wanted: record_files.fetch(snapshot, "items", wanted),
    )


def measure(size: int, words: list[str], asked: list[str], folder: Path) -> dict:
    held = records(words, size, random.Random(size))
    home = folder / str(size)
    archive = stored(home, held)
    path = home / "index.sqlite"
    build = timed(search_index.refresh, path, archive)
    indexed = search_index.indexed_source(path, archive)
    plain = search_index.scan_source(lambda: iter(held))

    def answer(query: str, source: search_index.Source) -> list[dict]:
        return search({}, query, now=NOW, archived=source)

    answered = [query for query in asked if answer(query, indexed)]
    assert len(answered) > 0.9 * len(asked)  # small archives lack the rarest words
    common = [query for nth, query in enumerate(asked) if nth % 3 == 0]
    result = {
        "items": size,
        "build_s": round(build, 2),
        "index_mb": round(path.stat().st_size / 1e6, 1),
        "index_over_texts": round(path.stat().st_size / sum(len(one["item"]["content"]) for one in held), 2),
        "warm": spread([timed(answer, query, indexed) for query in asked]),
        "warm_cpu": spread([timed(answer, query, indexed, clock=time.process_time) for query in asked]),
        "warm_common_words_only": spread([timed(answer, query, indexed) for query in common]),
        **fresh(home, answered),
    }
    if size <= COMPARED_UP_TO:
        same = [_shared(answer(query, indexed), answer(query, plain)) for query in asked[:24]]
        result["first_ten_of_a_scan"] = round(statistics.mean(same), 2)
    result["scan_p50_ms"] = round(
        statistics.median(timed(answer, query, plain) for query in asked[:3]) * 1e3, 1
    )
    return result


def _shared(hits: list[dict], others: list[dict]) -> float:
    """Return the share of the first ten of `others` that are among the first ten of `hits`."""
    first, wanted = ({hit["id"] for hit in one[:10]} for one in (hits, others))
    return len(first & wanted) / max(1, len(wanted))


def all_layers(folder: Path) -> dict:
    """Return what a search takes in a home whose layers are all full: the call, warm, and the whole command, cold."""
    home = full_home.make(folder / "full")
    asked = [
        f"Why does service {nth} need port {8000 + nth} of the {noun}?"
        for nth in range(7, 607, 40)
        for noun in full_home.NOUNS[:2]
    ]

    def call(query: str) -> None:
        assert aether.search_memory(query, home=home)

    call(asked[0])
    warm, cpu = (
        [timed(call, query, clock=clock) for query in asked]
        for clock in (time.perf_counter, time.process_time)
    )
    command = ("-m", "aether", "memory", "search", "--home", str(home))
    run(folder, *command, asked[0])
    cold = [
        (timed(run, folder, *command, query), timed(run, folder, "-c", "pass"))
        for query in asked[:FRESH_RUNS]
    ]
    whole, empty = (statistics.median(each) for each in zip(*cold, strict=True))
    return {
        "warm": spread(warm), "warm_cpu": spread(cpu), "command_ms": round(whole * 1e3, 1),
        "command_over_python_c_pass": round(whole / empty, 1),
    }  # fmt: skip


def main() -> None:
    rng = random.Random(7)
    words = vocabulary(rng)
    asked = queries(words, rng)
    assert len(set(words)) == VOCABULARY
    measured = []
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            measured.append(one := measure(size, words, asked, Path(folder)))
            print(json.dumps(one))
        layers = all_layers(Path(folder))
        print(json.dumps(layers))
    growth = round(measured[-1]["warm"]["p50_ms"] / measured[-2]["warm"]["p50_ms"], 2)
    print(f"ten times the archive, {growth} times the time")
    report.write(
        __file__, {"results": measured, "all_layers": layers, "growth_of_p50_from_10^4_to_10^5": growth}
    )


if __name__ == "__main__":
    main()

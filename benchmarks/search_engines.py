"""Does the index find what other engines find, and what does each question cost?

Archives in which forty ideal answers are planted (`tests.planted`: steep and flat frequencies of words, long and short
items, spread and bunched times). The same questions go to aether's index, to SQLite's FTS5 ranked by `bm25()`, and to
tantivy if it is installed, in turns, so that a busy machine slows all alike. Each gets the words of a question as a
disjunction and gives its first ten. aether's time holds everything up to the finished hits, with their texts, neighbours
and passages; the others' only ids. Times are of the processor.

A run for some sizes, or for one of the archives, replaces their results and leaves the others with their date.

Usage: python benchmarks/search_engines.py [items ...] [archive]        (100000 400000, all three archives)
"""

from __future__ import annotations

import importlib.util
import json
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import report  # noqa: E402 - runnable without an installation

from aether.search import index as search_index  # noqa: E402
from aether.search.rank import search  # noqa: E402
from aether.store import record_files  # noqa: E402
from tests.planted import KINDS, planted_archive  # noqa: E402

SIZES = (100_000, 400_000)
NOW = datetime(2026, 6, 1, tzinfo=UTC)
HITS = 10
ROUNDS = 3
Ask = Callable[[str], list[str]]


def aether(records: list[dict], folder: Path) -> tuple[Ask, float]:
    """Return the search of a home's archive, and the bytes of its index."""
    file = folder / "data" / "archive" / "items" / "2026-01.jsonl"
    file.parent.mkdir(parents=True)
    with file.open("w", encoding="utf-8") as out:
        for at, record in enumerate(records):
            line = {"revision": at // 1_000 + 1, "nth": at % 1_000, **record}
            out.write(json.dumps(line, separators=(",", ":")) + "\n")
    snapshot = SimpleNamespace(home=folder, pending=())
    source = search_index.Archive(
        record_files.head(snapshot),
        lambda after: record_files.located(snapshot, "items", after=after),
        lambda wanted: record_files.fetch(snapshot, "items", wanted),
    )
    index = folder / "index.sqlite"
    assert search_index.refresh(index, source)
    archived = search_index.indexed_source(index, source)
    return lambda query: [
        hit["id"] for hit in search({}, query, now=NOW, archived=archived, limit=HITS)
    ], index.stat().st_size


def fts5(records: list[dict], folder: Path) -> tuple[Ask, float]:
    """Return the search of a table of FTS5 without a copy of the texts, and its bytes."""
    path = folder / "fts5.sqlite"
    db = sqlite3.connect(path)
    db.execute("CREATE VIRTUAL TABLE said USING fts5(text, content='', tokenize='porter unicode61')")
    db.executemany(
        "INSERT INTO said (rowid, text) VALUES (?, ?)",
        ((at, record["item"]["content"]) for at, record in enumerate(records)),
    )
    db.commit()

    def ask(query: str) -> list[str]:
        found = db.execute(
            "SELECT rowid FROM said WHERE said MATCH ? ORDER BY bm25(said) LIMIT ?",
            (" OR ".join(f'"{word}"' for word in query.split()), HITS),
        )
        return [f"wm_{at}" for (at,) in found]

    return ask, path.stat().st_size


def tantivy(records: list[dict], folder: Path) -> tuple[Ask, float]:
    """Return the search of an index of tantivy that stores only ids, and its bytes."""
    import tantivy as engine

    schema = engine.SchemaBuilder()
    schema.add_text_field("text", tokenizer_name="en_stem")
    schema.add_text_field("id", stored=True, tokenizer_name="raw")
    place = folder / "tantivy"
    place.mkdir()
    index = engine.Index(schema.build(), path=str(place))
    writer = index.writer(num_threads=1)
    for record in records:
        writer.add_document(engine.Document(text=record["item"]["content"], id=record["item"]["id"]))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def ask(query: str) -> list[str]:
        hits = searcher.search(index.parse_query(query, ["text"]), HITS).hits
        return [searcher.doc(address)["id"][0] for _, address in hits]

    return ask, sum(file.stat().st_size for file in place.iterdir())


def engines() -> dict[str, Callable[[list[dict], Path], tuple[Ask, float]]]:
    """Return the engines that can be measured here."""
    found: dict[str, Any] = {"aether": aether, "fts5": fts5}
    return found | ({"tantivy": tantivy} if importlib.util.find_spec("tantivy") else {})


def measure(kind: str, size: int, folder: Path) -> dict[str, Any]:
    """Return what each engine finds of one archive, and the milliseconds of a question."""
    records, asked = planted_archive(KINDS[kind], size)
    texts = sum(len(record["item"]["content"]) for record in records)
    made: dict[str, tuple[Ask, float]] = {}
    built = {}
    for name, make in engines().items():
        start = time.process_time()
        made[name] = make(records, folder)
        built[name] = time.process_time() - start
    del records
    times: dict[str, list[float]] = {name: [] for name in made}
    found = dict.fromkeys(made, 0)
    for nth in range(ROUNDS):
        for planted, query in asked.items():
            for name, (ask, _) in made.items():
                start = time.process_time()
                hits = ask(query)
                if nth:  # the first round warms
                    times[name].append((time.process_time() - start) * 1e3)
                else:
                    found[name] += planted in hits
    return {
        "archive": kind, "items": size, "texts_mb": round(texts / 1e6, 1), "planted": len(asked),
        "engines": {
            name: {
                "found": found[name], "p50_ms": round(statistics.median(taken), 2),
                "p95_ms": round(statistics.quantiles(taken, n=20)[18], 2),
                "build_s": round(built[name], 1), "index_over_texts": round(made[name][1] / texts, 2),
            }
            for name, taken in times.items()
        },
    }  # fmt: skip


def main() -> None:
    sizes = [int(one) for one in sys.argv[1:] if one.isdigit()] or list(SIZES)
    kinds = [one for one in sys.argv[1:] if not one.isdigit()] or list(KINDS)
    file = Path(__file__).parent / "results" / "search_engines.json"
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"date": "", "results": []}
    results = {(one["items"], one["archive"]): {"date": known["date"], **one} for one in known["results"]}
    for size in sizes:
        for kind in kinds:
            with tempfile.TemporaryDirectory() as folder:
                found = measure(kind, size, Path(folder))
            results[size, kind] = {"date": datetime.now(UTC).date().isoformat(), **found}
            print(json.dumps(found), flush=True)
    ordered = [results[key] for key in sorted(results, key=lambda key: (key[0], list(KINDS).index(key[1])))]
    report.write(__file__, {"question": (__doc__ or "").splitlines()[0], "results": ordered})


if __name__ == "__main__":
    main()

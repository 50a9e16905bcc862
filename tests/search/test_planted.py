"""Ideal answers are found among any number of other texts, however old, by an index that stays small."""

import json
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from aether.search.index import Archive, indexed_source, refresh
from aether.search.rank import search
from aether.store import record_files
from tests import effort
from tests.planted import KINDS, PLANTED, planted_archive

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def found_of(kind, size, folder):
    """Return how many planted answers are among the first ten hits, and the sizes of index and texts."""
    records, asked = planted_archive(KINDS[kind], size)
    file = folder / "data" / "archive" / "items" / "2026-01.jsonl"
    file.parent.mkdir(parents=True)
    with file.open("w", encoding="utf-8") as out:
        for at, record in enumerate(records):
            line = {"revision": at // 1_000 + 1, "nth": at % 1_000, **record}
            out.write(json.dumps(line, separators=(",", ":")) + "\n")
    snapshot = SimpleNamespace(home=folder, pending=())
    source = Archive(
        record_files.head(snapshot),
        lambda after: record_files.located(snapshot, "items", after=after),
        lambda wanted: record_files.fetch(snapshot, "items", wanted),
    )
    index = folder / "index.sqlite"
    assert refresh(index, source)
    archived = indexed_source(index, source)
    found = sum(
        any(hit["id"] == planted for hit in search({}, query, now=NOW, archived=archived, limit=10))
        for planted, query in asked.items()
    )
    return found, index.stat().st_size, sum(len(record["item"]["content"]) for record in records)


def test_a_sample_of_the_planted_answers_is_found(tmp_path):
    assert found_of("middling, mixed, a second apart", 2_000, tmp_path)[0] == PLANTED


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
# The larger archives take minutes each.
@pytest.mark.parametrize("size", [20_000, 400_000] if effort.FULL_TRIALS else [20_000])
def test_every_planted_answer_is_found(kind, size, tmp_path):
    found, index, texts = found_of(kind, size, tmp_path)

    assert found == PLANTED
    assert (
        size < 400_000 or index <= 1.1 * texts
    )  # of items of eight words; of longer ones it is less than half

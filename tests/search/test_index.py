"""The search index finds the items that a scan of the archive finds."""

import json
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from aether.memory.layers import Filter, instant_text
from aether.search import index
from aether.search.index import (
    EMPTY,
    Archive,
    Query,
    indexed_source,
    marked_terms,
    refresh,
    row,
    scan,
    scan_source,
    term_counts,
    term_marks,
    unit_fraction,
)
from aether.store import search_index
from aether.text.words import query_terms, terms
from tests.tables import rows


def record(id, content, **metadata):
    return {"item": {"id": id, "type": "observation", "content": content, "metadata": metadata}}


def archive(records, *, step=10):
    return numbered([(nth * step, each) for nth, each in enumerate(records)])


def numbered(pairs):
    return Archive(
        pairs[-1][0] if pairs else -1,
        lambda after: iter([(*pair, -1) for pair in pairs if pair[0] > after]),
        lambda wanted: {position: each for position, each in pairs if position in wanted},
    )


def ask(query, **options):
    said = query_terms(query)
    return Query(tuple(said.weights), tuple(query.split()), **options)


def ids(found):
    return [candidate.row.id for candidate in found.candidates]


RECORDS = [record(f"wm_{at}", f"note {at} on the cache of node{at % 3}", phase=at) for at in range(20)]


def fails(*_):
    pytest.fail("the archive was read as a whole")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "index.sqlite"


@pytest.mark.parametrize(
    "query",
    [
        "cache",
        "note 7",
        "on the cache of",
        "node1 cache",
        "wm_3",
        "nothing here",
        "the",
        "?",
        "node0 OR NEAR * \" '",
    ],
)
@pytest.mark.parametrize("cap", [2, 100])
def test_the_index_finds_what_a_scan_finds(path, query, cap):
    for keep in (Filter(), Filter(phase="4"), Filter(types=("decision", "observation"))):
        question = ask(query, cap=cap, keep=keep)

        assert indexed_source(path, archive(RECORDS)).find(question) == scan(lambda: iter(RECORDS), question)


def test_records_are_read_by_their_places(path):
    assert indexed_source(path, archive(RECORDS)).read([3, 4, 99]) == {3: RECORDS[3], 4: RECORDS[4]}


def test_an_index_is_known_by_the_id_of_its_newest_record(path, monkeypatch):
    refresh(path, archive(RECORDS))
    monkeypatch.setattr(index, "_add", fails)

    assert refresh(path, archive(RECORDS))


def test_only_new_records_are_read_once_the_index_is_there(path):
    refresh(path, archive(RECORDS[:15]))
    asked_after = []

    def records(after):
        asked_after.append(after)
        return archive(RECORDS).records(after)

    found = indexed_source(path, archive(RECORDS)._replace(records=records)).find(ask("note"))

    assert found.items == 20
    assert min(asked_after) >= 140


def test_a_reader_of_an_older_state_sees_nothing_newer(path):
    refresh(path, archive(RECORDS))
    older = indexed_source(path, archive(RECORDS[:5]))

    assert ids(older.find(ask("note"))) == [f"wm_{at}" for at in range(5)]
    assert older.read([4, 5]) == {4: RECORDS[4]}


def test_the_index_of_another_archive_is_built_again(path):
    refresh(path, archive([record("other", "words")]))

    found = indexed_source(path, archive(RECORDS)).find(ask("note"))

    assert found == scan(lambda: iter(RECORDS), ask("note"))


def test_an_index_that_only_knows_later_records_is_built_again(path):
    refresh(path, numbered([(500, RECORDS[0])]))

    assert indexed_source(path, archive(RECORDS)).find(ask("note")).items == 20


def test_an_index_of_another_version_is_built_again(path, monkeypatch):
    old = path.parent / search_index.OLD_FILE
    old.parent.mkdir()
    old.write_bytes(b"words of conversations")
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE posting (held BLOB)")
        db.execute("PRAGMA user_version = 2")

    assert indexed_source(path, archive(RECORDS)).find(ask("note")).items == 20
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'posting'").fetchone() == (0,)
    assert not old.exists()


@pytest.mark.parametrize("damage", [b"not a database" * 400, b"", b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_index_is_built_again(path, damage):
    path.write_bytes(damage)

    assert indexed_source(path, archive(RECORDS)).find(ask("note")).items == 20
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM item").fetchone() == (20,)


@pytest.mark.skipif(os.name == "nt", reason="there are no FIFOs")
@pytest.mark.parametrize("end", ["", "-journal", "-wal"])
def test_a_pipe_in_the_place_of_the_index_is_not_waited_for(path, end):
    refresh(path, archive(RECORDS[:3]))
    there = path.with_name(path.name + end)
    there.unlink(missing_ok=True)
    os.mkfifo(there)

    assert indexed_source(path, archive(RECORDS)).find(ask("note")).items == 20
    assert not there.is_fifo()


def test_damage_inside_is_noticed_or_harmless(path):
    refresh(path, archive(RECORDS))
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))

    assert ids(indexed_source(path, archive(RECORDS)).find(ask("note"))) == [f"wm_{at}" for at in range(20)]


def test_damage_that_comes_back_ends_in_a_scan(path, monkeypatch):
    def damaged(*_):
        raise sqlite3.DatabaseError("database disk image is malformed")

    monkeypatch.setattr(index, "_catch_up", damaged)

    assert indexed_source(path, archive(RECORDS)).find(ask("note")).items == 20
    assert not refresh(path, archive(RECORDS))


def test_where_no_index_can_be_written_the_archive_is_scanned(tmp_path):
    nowhere = indexed_source(tmp_path / "missing" / "index.sqlite", archive(RECORDS))

    assert nowhere.find(ask("note")) == scan(lambda: iter(RECORDS), ask("note"))
    assert nowhere.read([0]) == {0: RECORDS[0]}


def test_a_current_index_that_may_only_be_read_is_used(path, monkeypatch):
    refresh(path, archive(RECORDS))
    monkeypatch.setattr(
        search_index, "connected", lambda where, seconds: sqlite3.connect(f"file:{where}?mode=ro", uri=True)
    )
    monkeypatch.setattr(search_index, "writing", fails)

    assert refresh(path, archive(RECORDS))


def test_a_stale_index_that_may_only_be_read_is_passed_over(path, monkeypatch):
    refresh(path, archive(RECORDS[:5]))
    monkeypatch.setattr(
        search_index,
        "connected",
        lambda where, seconds: sqlite3.connect(f"file:{where}?mode=ro", uri=True, isolation_level=None),
    )

    assert indexed_source(path, archive(RECORDS)).find(ask("note")).items == 20


def test_an_index_held_by_another_writer_is_passed_over(path, monkeypatch):
    monkeypatch.setattr(index, "BUSY_SECONDS", 0.05)
    refresh(path, archive(RECORDS[:5]))
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")

        assert indexed_source(path, archive(RECORDS)).find(ask("note")).items == 20


def test_the_index_is_for_its_owner_only(path):
    refresh(path, archive(RECORDS))

    assert path.stat().st_mode & 0o777 == 0o600


def test_two_who_catch_up_at_once_add_each_record_once(path, monkeypatch):
    monkeypatch.setattr(index, "BATCH", 2)
    threads = [threading.Thread(target=refresh, args=(path, archive(RECORDS))) for _ in range(4)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert indexed_source(path, archive(RECORDS)).find(ask("note")) == scan(
        lambda: iter(RECORDS), ask("note")
    )


def test_a_writer_overtaken_between_batches_goes_on_from_there(path, monkeypatch):
    monkeypatch.setattr(index, "BATCH", 5)
    real, waits = search_index.writing, []

    def writing(db):
        waits.append(db)
        if len(waits) == 3:  # after the tables and the first batch
            monkeypatch.setattr(search_index, "writing", real)
            refresh(path, archive(RECORDS[:12]))
        return real(db)

    monkeypatch.setattr(search_index, "writing", writing)
    found = indexed_source(path, archive(RECORDS)).find(ask("note"))

    assert len(waits) == 3
    assert found == scan(lambda: iter(RECORDS), ask("note"))


KILLED = """
import json, os, sys
from pathlib import Path
from aether.memory.layers import Filter, instant_text
from aether.search import index as search_index
records = [tuple(pair) for pair in json.loads(sys.stdin.read())]
search_index.BATCH, real = 5, search_index._add
records = [(*pair, -1) for pair in records]
def add(db, state, batch):
    real(db, state, batch)
    if state.items:
        os.kill(os.getpid(), 9)
search_index._add = add
search_index.refresh(Path(sys.argv[1]), search_index.Archive(
    records[-1][0],
    lambda after: iter(p for p in records if p[0] > after),
    lambda wanted: {p[0]: p[1] for p in records if p[0] in wanted},
))
"""


def test_a_writer_killed_in_the_middle_leaves_a_usable_index(path):
    """What a killed writer did not finish is as if it had not begun; the next search finds everything."""
    numbered = json.dumps([[position, record] for position, record, _ in archive(RECORDS).records(-1)])
    root = Path(index.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(path)], input=numbered, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip

    assert done.returncode == -9
    assert indexed_source(path, archive(RECORDS)).find(ask("note")) == scan(
        lambda: iter(RECORDS), ask("note")
    )


def test_hostile_fields_are_stored_and_found(path):
    records = [
        record("\ud800", "zero\0 and \udfff surrogate", phase="\ud801", caste="'; DROP TABLE item; --"),
        record("x" * 300, "q" * 100_000 + " needle"),
    ]
    archived = indexed_source(path, archive(records))

    assert archived.find(ask("surrogate needle")) == scan(lambda: iter(records), ask("surrogate needle"))
    assert archived.read([0, 1]) == dict(enumerate(records))


@pytest.mark.parametrize("cap", [2, 100])
@pytest.mark.parametrize("most", [0, 7, 20])
def test_the_index_finds_the_rare_and_the_named_that_a_scan_finds(path, most, cap):
    names = (("node2", "cach"), ("note", "absent"), ("7",))
    question = ask("note 7 node1 cache", cap=cap, names=names, rare=lambda _: most)

    assert indexed_source(path, archive(RECORDS)).find(question) == scan(lambda: iter(RECORDS), question)


def test_a_term_that_many_items_hold_makes_no_candidate_and_all_terms_of_a_name_do():
    records = [record(str(at), f"gateway {at % 2} of load table") for at in range(6)]
    records += [record("rare", "jitter gateway"), record("part", "load gateway")]

    assert found(records, "gateway jitter", rare=lambda _: 3) == ["rare"]
    assert found(records, "gateway", rare=lambda _: 3, cap=2, names=(("load", "tabl"),)) == ["4", "5"]


def found(records, query, **options):
    answer = scan(lambda: iter(records), ask(query, **options))
    return [candidate.row.id for candidate in answer.candidates]


def test_a_row_says_all_that_an_item_is_filtered_by():
    one = row(
        record("a", "Alice: hello", phase=3, caste="builder", timestamp="2026-01-01", relevance_score=0.9)
        | {"compression_id": "c1"}
    )

    assert (one.phase, one.caste, one.at[:10], one.relevance) == ("3", "builder", "2026-01-01", 0.9)
    assert (one.labels, one.stretch, one.length) == ("builder|alic", "3/c1", 2)


def test_a_field_of_another_kind_counts_as_absent():
    assert row(record("a", "b", timestamp=[], relevance_score="high")).at == ""
    assert (unit_fraction("high"), unit_fraction(7), unit_fraction(-1)) == (0.5, 1.0, 0.0)


def test_counting_keeps_words_apart_and_weighs_parts_less():
    text = marked_terms(terms("sql sql PostgreSQL getUser"))

    assert term_counts(text, term_marks(["sql", "user", "postgr", "rare"])) == {"sql": 2.0, "user": 0.5}


def test_of_equals_the_newest_are_candidates_with_those_beside_them():
    records = [record(str(at), "deploy") for at in range(9)]

    assert found(records, "deploy", cap=2) == ["5", "6", "7", "8"]


def test_the_best_items_are_candidates_at_any_age():
    records = [
        record("both", "deploy cache"),
        *(record(str(at), word) for at in range(9) for word in ("deploy", "cache")),
        record("often", "cache deploy cache deploy"),
        *(record(f"later {at}", "something else") for at in range(3)),
        *(record(f"last {at}", "deploy " + "of very many other words " * 9) for at in range(9)),
    ]

    assert "often" in found(records, "deploy cache", cap=1)
    assert "both" in found(records, "deploy cache", cap=2)


def test_the_item_beside_the_best_is_a_candidate_if_it_holds_a_word():
    records = [
        record("question", "why is the nightly export slow"), record("answer", "the export locks a table"),
        record("thanks", "good"), *(record(str(at), "a nightly run") for at in range(9)),
    ]  # fmt: skip

    assert found(records, "why is the nightly export slow", cap=1)[:2] == ["question", "answer"]


def test_the_index_holds_no_text(path):
    secret = "zebraquagga"
    refresh(path, archive([*RECORDS, record("wm_x", f"the {secret} stripes are wide")]))

    assert b"stripes are wide" not in path.read_bytes()


def test_an_id_is_found_without_any_of_its_words():
    assert found([record("wm_1", "hello"), record("wm_2", "hello")], "wm_1") == ["wm_1"]


def test_filters_look_up_further_items_and_drop_none():
    records = [record("old", "deploy", phase=1), *(record(str(at), "deploy", phase=2) for at in range(3))]

    assert "old" in found(records, "deploy", cap=1, keep=Filter(phase="1"))


@rows(
    ("keep", "taken"),
    [
        (Filter(types=("observation",)), True),
        (Filter(types=("decision",)), False),
        (Filter(caste="builder"), True),
        (Filter(caste="scout"), False),
        (Filter(since="2026-01-01"), True),
        (Filter(since="2026-01-03"), False),
        (Filter(until="2026-01-03"), True),
        (Filter(until="2026-01-01"), False),
        (Filter(phase="2"), False),
    ],
)
def test_a_filter_takes_what_agrees_in_every_field(keep, taken):
    one = row(record("a", "b", phase=1, caste="builder", timestamp="2026-01-02"))

    assert keep.takes(one) is taken


def test_reading_returns_the_records_at_places_that_exist():
    records = [record("a", "x"), record("b", "y")]

    assert scan_source(lambda: iter(records)).read([1, 7]) == {1: records[1]}
    assert EMPTY.find(ask("x")).items == 0


def test_a_candidate_names_the_terms_that_its_text_holds(tmp_path):
    said = [
        record(
            f"wm_{at}", f"The getUser call of node{at % 5} retries port {at}; 日本語 {'caches ' * (at % 4)}"
        )
        for at in range(40)
    ]
    source = indexed_source(tmp_path / "index.sqlite", archive(said))
    for query in ("cache of getUser", "node3 port 7", "user 日本語", "nothing of it"):
        for found in (source.find(ask(query)), scan(lambda: iter(said), ask(query))):
            for one in found.candidates:
                assert one.id == one.row.id
                assert one.terms_in(ask(query).terms) == [
                    *term_counts(one.row.marked, term_marks(ask(query).terms))
                ]


def test_what_only_looks_like_a_time_is_none():
    assert instant_text("2026-02-01T06:00:00.000000Z") == "2026-02-01T06:00:00.000000Z"
    assert instant_text("2026-13-01T06:00:00.000000Z") == ""
    assert instant_text("2026-02-30T06:00:00.000000Z") == ""
    assert instant_text("2026-W05-1T06:00:00.00000Z") == "2026-01-26T06:00:00.000000Z"


# Words and marks by which FTS5 searches for more than a word.
OPERATORS = [
    "NEAR(",
    "AND OR NOT",
    '"',
    "*",
    "^cache",
    "tokens: cache",
    "item_tokens",
    "a+ b++",
    "x" * 100_000,
    "\0",
]


@pytest.mark.parametrize("query", OPERATORS)
def test_what_the_engine_knows_as_operators_is_text(path, query):
    assert indexed_source(path, archive(RECORDS)).find(ask(query)) == scan(lambda: iter(RECORDS), ask(query))


def test_without_fts5_the_archive_is_scanned(path, monkeypatch):
    monkeypatch.setattr(search_index, "_TABLES", ("CREATE VIRTUAL TABLE item_tokens USING absent(tokens)",))

    assert indexed_source(path, archive(RECORDS)).find(ask("note")) == scan(
        lambda: iter(RECORDS), ask("note")
    )


def test_who_cannot_wait_adds_little_and_has_the_rest_added(path, monkeypatch):
    monkeypatch.setattr(index, "FEW", 5)
    late = []

    def found(records):
        return indexed_source(path, archive(records), lambda: late.append(1)).find(ask("note")).items

    assert (found(RECORDS[:5]), late) == (5, [])
    assert (found(RECORDS), late) == (5, [1])
    refresh(path, archive(RECORDS))
    assert (found(RECORDS), late) == (20, [1])
    path.unlink()
    path.mkdir()
    assert (found(RECORDS), late) == (0, [1])


@pytest.mark.parametrize("query", ["common word", "rare common word", "common", "word often"])
def test_where_words_are_too_common_to_read_all_the_best_items_are_candidates(path, monkeypatch, query):
    """The item with all words, however old, and one that has a word most often."""
    monkeypatch.setattr(search_index, "MOST_ROWS", 10)
    monkeypatch.setattr(search_index, "CORE_ROWS", 5)
    said = [f"{query} {query} {query}", "rare", "often often often", *["common", "word", "of all"] * 30]
    records = [record(f"wm_{at}", text) for at, text in enumerate(said)]

    assert "wm_0" in ids(indexed_source(path, archive(records)).find(ask(query, cap=5)))

from aether.store.search_index import (
    EMPTY,
    Filter,
    Query,
    common_groups,
    marked_terms,
    row,
    scan,
    scan_source,
    term_counts,
    term_marks,
    unit_fraction,
)
from aether.text.words import query_terms, terms
from tests.tables import rows


def record(id, content, **metadata):
    return {"item": {"id": id, "type": "observation", "content": content, "metadata": metadata}}


def ask(query, **options):
    said = query_terms(query)
    return Query(tuple(said.weights), said.sequence, tuple(query.split()), **options)


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


@rows("broken", [{}, {"item": None}, {"item": {"metadata": None, "content": None}}])
def test_a_row_of_a_poor_record_is_empty(broken):
    assert row(broken).marked == ""


def test_a_field_of_another_kind_counts_as_absent():
    assert row(record("a", "b", timestamp=[], relevance_score="high")).at == ""
    assert (unit_fraction("high"), unit_fraction(7), unit_fraction(-1)) == (0.5, 1.0, 0.0)


def test_counting_keeps_words_apart_and_weighs_parts_less():
    text = marked_terms(terms("sql sql PostgreSQL getUser"))

    assert term_counts(text, term_marks(["sql", "user", "postgr", "rare"])) == {"sql": 2.0, "user": 0.5}


def test_a_common_word_looks_up_its_newest_items():
    records = [record(str(at), "deploy") for at in range(5)]

    assert found(records, "deploy", cap=2) == ["3", "4"]


def test_two_common_words_look_up_together_what_holds_both():
    records = [
        record("both", "deploy cache"),
        *(record(str(at), word) for at in range(3) for word in ("deploy", "cache")),
    ]

    assert "both" in found(records, "deploy cache", cap=1)
    assert found(records, "deploy", cap=1) == ["2"]


def test_a_phrase_of_common_words_is_found_at_any_age():
    records = [
        record("phrase", "deploy the cache"),
        *(record(str(at), "cache deploy the") for at in range(4)),
    ]

    assert "phrase" in found(records, "deploy the cache", cap=1)


def test_an_id_is_found_without_any_of_its_words():
    assert found([record("wm_1", "hello"), record("wm_2", "hello")], "wm_1") == ["wm_1"]


def test_filters_look_up_further_items_and_drop_none():
    records = [record("old", "deploy", phase=1), *(record(str(at), "deploy", phase=2) for at in range(3))]

    assert found(records, "deploy", cap=1, keep=Filter(phase="1")) == ["old", "2"]


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


def test_groups_are_made_of_the_rarest_of_the_common():
    assert common_groups({"a": 9, "b": 2}, 5) == []


def test_reading_returns_the_records_at_places_that_exist():
    records = [record("a", "x"), record("b", "y")]

    assert scan_source(lambda: iter(records)).read([1, 7]) == {1: records[1]}
    assert EMPTY.find(ask("x")).items == 0

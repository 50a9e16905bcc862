from datetime import UTC, datetime, timedelta

import pytest

from aether import clock
from aether.memory import search
from aether.memory.items import search_entries
from aether.memory.search import NEAR, Corpus, Date, Question, full_score, idf, scores, term_counts
from aether.store.search_index import term_marks
from aether.text.words import query_terms

NOW = datetime(2026, 3, 1, tzinfo=UTC)
CORPUS = Corpus(items=100, length=500, held={"cach": 10, "miss": 2})


def scored(*notes, query="cache miss", dates=()):
    """Return the score of each note, given as content or as content and metadata."""
    pairs = [note if isinstance(note, tuple) else (note, {}) for note in notes]
    items = [
        {"id": str(at), "content": text, "metadata": metadata} for at, (text, metadata) in enumerate(pairs)
    ]
    said = query_terms(query)
    entries = list(search_entries({"working_memory": {"items": items}}))
    found = [term_counts(entry, term_marks(said.weights)) for entry in entries]
    return scores(entries, found, CORPUS, Question(said.weights, frozenset(said.sequence), dates, NOW))


def apart(*notes, **options):
    """Return the scores of notes that are not neighbours."""
    return [scored(note, **options)[0] for note in notes]


def test_a_rare_word_tells_more_than_a_common_one():
    assert idf(CORPUS, "miss") > idf(CORPUS, "cach") > 0
    assert idf(Corpus(10, 50, {"all": 10}), "all") > 0


def test_a_full_answer_says_every_known_word_once():
    question = Question({"cach": 1.0, "unknown": 1.0}, frozenset(), (), NOW)

    assert full_score(CORPUS, question) == pytest.approx(idf(CORPUS, "cach"))


def test_a_word_said_twice_counts_more_but_not_twice():
    once, twice = apart("cache a b c", "cache cache b c")

    assert once < twice < 2 * once


def test_a_longer_note_says_less_by_the_same_words():
    short, long = apart("cache", "cache " + "filler " * 50)

    assert short > long


def test_a_note_beside_one_that_says_more_is_lifted():
    alone, beside = scored("cache")[0], scored("cache", "miss")[0]

    assert beside > alone


def test_the_lift_fades_with_distance_and_ends_with_the_stretch():
    lifts = [scored("cache", *["filler"] * gap, "miss")[0] for gap in range(8)]
    other_phase = scored(("cache", {"phase": 1}), ("miss", {"phase": 2}))[0]

    assert lifts[: len(NEAR)] == sorted(lifts[: len(NEAR)], reverse=True)
    assert lifts[0] > lifts[1] > lifts[2] > lifts[3] == lifts[4] > lifts[6] == lifts[7]
    assert lifts[7] == scored("cache")[0]
    assert other_phase == scored(("cache", {"phase": 1}))[0]


def test_who_the_query_names_is_preferred():
    by_name, other = apart("Alice: cache", "Carol: cache", query="what did Alice say about the cache")
    by_caste = apart(("cache", {"caste": "builder"}), ("cache", {"caste": "scout"}), query="builder cache")

    assert by_name > other
    assert by_caste[0] == pytest.approx(by_caste[1] * search.LABEL_FACTOR)


def test_the_day_that_the_query_names_is_preferred_to_its_month_and_that_to_others():
    notes = [("cache", {"timestamp": at}) for at in ("2025-05-04", "2025-05-09", "2025-06-04")]
    on_day = apart(*notes, dates=[Date("2025", "05", "04")])
    in_month = apart(*notes, dates=[Date("2025", "05", "")])

    assert on_day[0] > 1.5 * on_day[1]
    assert in_month[1] > 1.2 * in_month[2]


def test_recency_and_relevance_each_move_the_score_by_about_a_tenth():
    def age(days):
        return {"timestamp": clock.stamp(NOW - timedelta(days=days)), "relevance_score": 0.5}

    new, month, old = apart(("cache", age(0)), ("cache", age(30)), ("cache", age(3000)))
    high, low = apart(("cache", {"relevance_score": 1.0}), ("cache", {"relevance_score": 0.0}))

    assert new / old == pytest.approx(1.1)
    assert month / old == pytest.approx(1.05)
    assert high / low == pytest.approx(1.1 / 0.9)


def test_a_time_in_the_future_counts_as_now():
    ahead, now = apart(("cache", {"timestamp": "2027-01-01"}), ("cache", {"timestamp": clock.stamp(NOW)}))

    assert ahead == now


def test_fields_count_by_their_weight():
    session = {"summary": "cache", "key_decisions": [{"decision": "cache"}]}
    entry = next(search_entries({"short_term_memory": {"sessions": [session]}}))

    assert term_counts(entry, term_marks(["cach", "miss"])) == {"cach": 2.2}

"""Laws of search: hits are entries, words add, filters remove, the index and a scan agree."""

import tempfile
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import isclose, prod
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from aether import clock
from aether.memory.layers import Filter
from aether.search import index as search_index
from aether.search.index import Query
from aether.search.rank import LAYERS, search
from aether.search.weak import MOST_GUESSES
from aether.text.words import query_terms

NOW = datetime(2026, 3, 1, tzinfo=UTC)
WORDS = "cache deploy retry fetchUser the of and 東京都 日本 naïve tests testing Alice 404".split()
TYPES = ["observation", "decision", "outcome"]

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
"""Short notes of few words, so that words meet, repeat and stand side by side."""

queries = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)


@st.composite
def items(draw, prefix="wm"):
    """Draw items with distinct ids, some phases, castes and types, and times of the same month."""
    drawn = draw(
        st.lists(st.tuples(texts, st.sampled_from(TYPES), st.integers(1, 3), st.integers(0, 27)), max_size=12)
    )
    return [
        {
            "id": f"{prefix}_{nth}",
            "type": kind,
            "content": content,
            "metadata": {
                "phase": phase,
                "caste": "builder" if day % 2 else None,
                "timestamp": clock.stamp(NOW - timedelta(days=day)),
            },
        }
        for nth, (content, kind, phase, day) in enumerate(drawn)
    ]


@st.composite
def memories(draw):
    """Draw a memory with something in each of its layers."""
    return {
        "working_memory": {"items": draw(items())},
        "short_term_memory": {
            "sessions": [
                {
                    "session_id": f"s_{nth}",
                    "summary": text,
                    "key_decisions": [{"decision": text}],
                    "phase": nth,
                }
                for nth, text in enumerate(draw(st.lists(texts, max_size=3)))
            ]
        },
        "long_term_memory": {
            "patterns": [
                {
                    "id": f"p_{nth}",
                    "type": "constraint",
                    "pattern": text,
                    "metadata": {"related_phases": [nth]},
                }
                for nth, text in enumerate(draw(st.lists(texts, max_size=3)))
            ]
        },
    }


records = st.tuples(items("old"), items("wm")).map(
    lambda drawn: [{"item": item, "compression_id": "c"} for item in [*drawn[0], *drawn[1]]]
)
"""What the archive holds: items of its own, and earlier states of items that may be live again."""

filters = st.fixed_dictionaries(
    {},
    optional={
        "layers": st.lists(st.sampled_from(LAYERS), min_size=1),
        "types": st.lists(st.sampled_from([*TYPES, "session", "constraint"]), min_size=1),
        "phase": st.integers(0, 3),
        "caste": st.sampled_from(["builder", "scout"]),
        "since": st.just(NOW - timedelta(days=9)),
        "until": st.just(NOW - timedelta(days=3)),
    },
)


def scanned(archive):
    return search_index.scan_source(lambda: iter(archive))


def found(memory, query, archive=(), **options):
    return search(memory, query, now=NOW, archived=scanned(archive), limit=None, **options)


def ids(hits):
    return [(hit["layer"], hit["id"]) for hit in hits]


@given(memories(), records, queries)
def test_hits_are_entries_each_once_and_hold_a_word_of_the_query(memory, archive, query):
    hits = found(memory, query, archive)
    entries = [
        *(("working_memory", item["id"]) for item in memory["working_memory"]["items"]),
        *(("short_term_memory", each["session_id"]) for each in memory["short_term_memory"]["sessions"]),
        *(("long_term_memory", each["id"]) for each in memory["long_term_memory"]["patterns"]),
        *(("archive", record["item"]["id"]) for record in archive),
    ]

    assert len({hit["id"] for hit in hits}) == len(hits)
    assert set(ids(hits)) <= set(entries)
    assert all(hit["matched"] and 0 <= hit["relevance"] <= 1 for hit in hits if "weak" not in hit)
    assert len({"weak" in hit for hit in hits}) <= 1
    assert sum("weak" in hit for hit in hits) <= MOST_GUESSES
    assert hits or not entries or {key for key, _ in entries} == {"archive"}


@given(
    memories(),
    records,
    st.lists(st.sampled_from(WORDS), min_size=2, max_size=4),
    st.sampled_from(["rule", "decisions", "results"]),
)
def test_a_text_with_all_words_is_found_first_also_if_one_of_them_names_a_kind(memory, archive, said, kind):
    query = " ".join([*said, kind])
    memory["working_memory"]["items"].append(
        {"id": "whole", "type": "observation", "content": f"It says: {query}, and so on."}
    )

    first, *_ = (hit["id"] for hit in found(memory, query, archive) if hit["why"] != "exact")

    assert first == "whole"


@given(
    memories(),
    records,
    queries,
    st.sampled_from([word for word in WORDS if word not in {"the", "of", "and"}]),
)
def test_a_further_word_drops_no_entry_that_matched(memory, archive, query, word):
    """Where a query is of stopwords only they are all there is to match; a topic word takes their place."""
    before = {
        key
        for key, hit in zip(ids(found(memory, query, archive)), found(memory, query, archive), strict=True)
        if set(hit["matched"]) - {"the", "of", "and"}
    }

    assert before <= set(ids(found(memory, f"{query} {word}", archive)))


@given(memories(), records, queries)
def test_the_evidence_of_a_hit_adds_up_to_its_score(memory, archive, query):
    for hit in found(memory, f"{query} rules", archive, evidence=True):
        evidence = hit["evidence"]
        total = sum(evidence["words"].values()) + evidence["surroundings"]
        assert hit.get("weak") or isclose(
            total * prod(evidence["factors"].values()), hit["score"], rel_tol=1e-3
        )
        assert hit.get("weak") or evidence["words"]


@given(memories(), records, queries, filters)
def test_filters_only_remove(memory, archive, query, options):
    every = ids(found(memory, query, archive))
    hits = found(memory, query, archive, **options)
    some = {key for key, hit in zip(ids(hits), hits, strict=True) if "weak" not in hit}

    assert [key for key in ids(hits) if key in some] == [key for key in every if key in some]


@given(memories(), records, queries, st.integers(1, 5))
def test_a_limit_cuts_the_same_order(memory, archive, query, limit):
    every = found(memory, query, archive)

    assert search(memory, query, now=NOW, archived=scanned(archive), limit=limit) == every[:limit]


@given(st.lists(st.sampled_from(WORDS), min_size=2, max_size=5, unique=True), st.data())
def test_other_things_equal_more_matching_words_never_rank_lower(words, data):
    """Two notes of one length, time and relevance, apart from each other; one says more of what is asked.

    Fillers between the words keep phrases, which come first by another rule, out of both.
    """
    fewer = data.draw(st.integers(0, len(words) - 1))
    other = [f"zz{nth}" for nth in range(len(words) - fewer)]
    pair = {"more": words, "less": [*words[:fewer], *other]}
    order = data.draw(st.permutations(list(pair)))
    memory = {
        "working_memory": {
            "items": [
                {
                    "id": name,
                    "type": "note",
                    "content": " filler ".join(pair[name]),
                    "metadata": {"phase": nth},
                }
                for nth, name in enumerate(order)
            ]
        }
    }

    assert found(memory, " ".join(words))[0]["id"] == "more"


@given(memories(), records, queries)
def test_by_layer_orders_by_layer_then_relevance_then_time(memory, archive, query):
    hits = found(memory, query, archive, by_layer=True)

    assert hits == sorted(hits, key=lambda hit: (hit["layer_priority"], -hit["relevance"]))
    for one, two in pairwise(hits):
        if (one["layer"], one["relevance"]) == (two["layer"], two["relevance"]):
            assert one["at"] >= two["at"]
    assert sorted(ids(hits)) == sorted(ids(found(memory, query, archive)))


@given(memories(), records, records, queries, filters, st.integers(1, 4))
def test_the_index_ranks_as_a_scan_does(memory, early, late, query, options, cap):
    """However the archive came in, and however few items a word may look up, hits and scores are equal."""
    numbered = list(enumerate([*early, *late]))

    def archive(pairs):
        return search_index.Archive(
            pairs[-1][0] if pairs else -1,
            lambda after: iter([(*pair, -1) for pair in pairs if pair[0] > after]),
            lambda wanted: {position: record for position, record in pairs if position in wanted},
        )

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index.sqlite"
        search_index.refresh(path, archive(numbered[: len(early)]))
        indexed = search_index.indexed_source(path, archive(numbered))
        plain = scanned([record for _, record in numbered])
        said = query_terms(query)
        question = Query(tuple(said.weights), (), Filter(phase="2"), cap)

        assert indexed.find(question) == plain.find(question)
        assert search(memory, query, now=NOW, archived=indexed, limit=None, context=1, **options) == search(
            memory, query, now=NOW, archived=plain, limit=None, context=1, **options
        )

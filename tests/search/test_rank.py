"""Search: matches, filters, order, ranking and dates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from aether import clock
from aether.errors import InvalidInput
from aether.search.index import scan_source, term_marks
from aether.search.rank import search
from aether.search.score import (
    DAY_FACTOR,
    LABEL_FACTOR,
    MONTH_FACTOR,
    NEAR_AFTER,
    QUESTION_FACTOR,
    Corpus,
    Date,
    Question,
    date_factor,
    dates,
    idf,
    is_of_person,
    scores,
    term_counts,
)
from aether.search.texts import search_entries
from aether.text.words import is_question, query_terms
from tests.tables import rows

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def item(id, content, *, kind="observation", days=0, **metadata):
    at = clock.stamp(NOW - timedelta(days=days))
    return {
        "id": id,
        "type": kind,
        "content": content,
        "metadata": {
            "timestamp": at,
            "relevance_score": 0.5,
            "access_count": 0,
            "last_accessed": at,
            **metadata,
        },
    }


def memory(*items, sessions=(), patterns=()):
    return {
        "working_memory": {"items": list(items)},
        "short_term_memory": {"sessions": list(sessions)},
        "long_term_memory": {"patterns": list(patterns)},
        "search": {"max_results_per_layer": 20},
    }


def archive(*items, **fields):
    records = [{"item": each, "left_at": "2026-02-01", "why": "compressed", **fields} for each in items]
    return scan_source(lambda: iter(records))


def found(state, query, **options):
    return [hit["id"] for hit in search(state, query, now=NOW, **options)]


SESSION = {
    "session_id": "s1",
    "summary": "deploy went well",
    "phase": 2,
    "compressed_at": "2026-02-20T00:00:00Z",
}


PATTERN = {
    "id": "p1",
    "type": "constraint",
    "pattern": "never deploy on friday",
    "confidence": 0.9,
    "last_seen": "2026-02-25T00:00:00Z",
    "metadata": {"related_phases": [3], "related_castes": ["builder"]},
}


FULL = memory(item("w1", "deploy the cache", phase=1, caste="scout"), sessions=[SESSION], patterns=[PATTERN])


@rows("query", ["", "  \n", None, 7])
def test_a_blank_query_is_refused(query):
    with pytest.raises(InvalidInput, match="query is required"):
        search(FULL, query, now=NOW)


@rows(
    ("options", "said"),
    [
        ({"limit": 0}, "limit is 0"),
        ({"limit": "3"}, "limit is '3'"),
        ({"context": -1}, "context is -1"),
        ({"context": True}, "context is True"),
        ({"layers": ["attic"]}, "'attic' is not a layer"),
    ],
)
def test_impossible_options_are_refused(options, said):
    with pytest.raises(InvalidInput, match=said):
        search(FULL, "deploy", now=NOW, **options)


def test_all_layers_and_the_archive_are_searched():
    hits = search(FULL, "deploy", now=NOW, archived=archive(item("a1", "deploy failed")))

    assert {(hit["layer"], hit["id"]) for hit in hits} == {
        ("working_memory", "w1"), ("short_term_memory", "s1"), ("long_term_memory", "p1"), ("archive", "a1"),
    }  # fmt: skip


def test_words_are_matched_not_pieces_of_words():
    assert found(memory(item("a", "PostgreSQL tuning"), item("b", "SQL tuning")), "sql") == ["b"]


def test_forms_of_a_word_and_parts_of_names_match():
    state = memory(item("a", "retries were failing"), item("b", "calls fetchUserName"), item("c", "other"))

    assert found(state, "retry failed") == ["a"]
    assert found(state, "user") == ["b"]
    assert found(state, "fetchUserName") == ["b"]


def test_scripts_without_spaces_are_searched():
    state = memory(item("a", "東京都の天気"), item("b", "京都の寺"), item("c", "大阪"))

    assert found(state, "東京都") == ["a", "b"]
    assert found(state, "寺") == ["b"]


def test_the_id_comes_first_then_the_same_text_then_the_phrase():
    state = memory(
        item("wm_1", "unrelated"),
        item(
            "words",
            "exhausted pool, wm_1: connection connection pool exhausted exhausted",
            relevance_score=1.0,
        ),
        item("phrase", "after lunch, wm_1  Connection Pool had problems and so on", days=300),
        item("exact", "wm_1 connection  pool!", days=300),
    )

    assert found(state, "wm_1 connection pool")[:3] == ["wm_1", "exact", "phrase"]
    assert [hit["why"] for hit in search(state, "wm_1 connection pool", now=NOW)] == [
        "id",
        "exact",
        "phrase",
        "words",
    ]


def test_a_phrase_ends_where_its_words_end():
    state = memory(item("longer", "the test runs"), item("other", "run the test suite", days=900))

    assert [hit["why"] for hit in search(state, "test run", now=NOW)] == ["words", "words"]


def test_a_phrase_in_the_archive_or_in_a_session_comes_first_too():
    state = memory(
        item("w", "pool connection connection"),
        sessions=[
            {
                "session_id": "s",
                "summary": "x",
                "outcomes": [{"result": "bigger connection pool", "impact": None}],
            }
        ],
    )

    hits = search(state, "connection pool", now=NOW, archived=archive(item("a", "the connection pool")))

    assert {hit["id"]: hit["why"] for hit in hits} == {"s": "phrase", "a": "phrase", "w": "words"}
    assert hits[-1]["id"] == "w"


def test_what_says_it_comes_before_the_session_that_says_it_too():
    session = {
        "session_id": "s",
        "summary": "Amounts are integer cents, no floats. The pages are stored.",
    }
    state = memory(item("w", "Amounts are integer cents, and never floats."), sessions=[session])

    assert found(state, "amounts integer cents") == ["w", "s"]


def test_one_word_that_is_the_whole_text_is_an_exact_match():
    state = memory(item("whole", "Deploy."), item("form", "deployed"), item("more", "deploy deploy deploy"))
    hits = search(state, "deploy", now=NOW)

    assert (hits[0]["id"], hits[0]["why"], hits[0]["relevance"]) == ("whole", "exact", 1.0)
    assert {hit["why"] for hit in hits[1:]} == {"words"}


def test_relevance_says_how_good_a_match_is_on_one_scale():
    state = memory(
        item("exact", "red fox"), item("phrase", "the red fox ran"), item("both", "fox so red"),
        item("one", "red"), *(item(str(at), "filler") for at in range(20)),
    )  # fmt: skip
    hits = {hit["id"]: hit["relevance"] for hit in search(state, "red fox", now=NOW)}

    assert hits["exact"] == 1.0
    assert 0.7 <= hits["phrase"] < 1.0
    assert 0 < hits["one"] < hits["both"] <= 0.7


def test_a_hit_names_its_layer_and_the_matched_words():
    (hit,) = search(FULL, "cache Deploying", now=NOW, layers=["working_memory"])

    assert hit["entry"] == FULL["working_memory"]["items"][0]
    assert (hit["matched"], hit["type"], hit["phase"], hit["layer_priority"]) == (
        ["cache", "Deploying"], "observation", 1, 0,
    )  # fmt: skip
    assert hit["content"] == "deploy the cache"


def test_an_archived_hit_says_when_and_why_it_left():
    (hit,) = search(memory(), "deploy", now=NOW, archived=archive(item("a", "deploy"), session_id="s9"))

    assert hit["archived"] == {"left_at": "2026-02-01", "why": "compressed", "session_id": "s9"}
    assert hit["entry"]["id"] == "a"


def test_an_entry_is_found_once_and_where_it_lives():
    hits = search(
        memory(item("a", "deploy")), "deploy", now=NOW,
        archived=archive(item("a", "deploy"), item("b", "deploy old"), item("b", "deploy new")),
    )  # fmt: skip

    assert [(hit["layer"], hit["id"], hit["content"]) for hit in hits] == [
        ("working_memory", "a", "deploy"), ("archive", "b", "deploy new"),
    ]  # fmt: skip


@rows(
    ("options", "expected"),
    [
        ({"layers": ["long_term_memory", "archive"]}, {"p1", "a1"}),
        ({"layers": iter(["working_memory"])}, {"w1"}),
        ({"types": ["constraint", "decision"]}, {"p1", "a1"}),
        ({"phase": 1}, {"w1"}),
        ({"phase": 2}, {"s1"}),
        ({"phase": "3"}, {"p1", "a1"}),
        ({"caste": "builder"}, {"p1"}),
        ({"caste": "scout"}, {"w1"}),
        ({"since": NOW - timedelta(days=5)}, {"w1", "p1"}),
        ({"until": NOW - timedelta(days=5)}, {"s1", "a1"}),
    ],
)
def test_filters_leave_only_matching_entries(options, expected):
    archived = archive(item("a1", "deploy", kind="decision", days=40, phase=3))

    assert set(found(FULL, "deploy", archived=archived, **options)) == expected


def test_the_newer_of_equals_comes_first():
    state = memory(item("old", "deploy", days=2, phase=1), item("new", "deploy", days=1, phase=2))

    assert found(state, "deploy") == ["new", "old"]


def test_by_layer_takes_the_best_of_each_layer_in_their_order():
    state = memory(
        item("w1", "deploy"),
        item("w2", "deploy notes on several things"),
        sessions=[SESSION],
        patterns=[PATTERN],
    )

    assert found(state, "deploy", by_layer=True, limit=1) == ["w1", "s1", "p1"]
    assert found(state, "deploy", by_layer=True)[:2] == ["w1", "w2"]


def test_context_adds_the_items_before_and_after():
    state = memory(item("a", "one"), item("b", "deploy"), item("c", "two"))
    archived = archive(item("d", "three"), item("e", "deploy"), item("f", "four"))

    hits = {
        hit["id"]: hit["neighbours"] for hit in search(state, "deploy", now=NOW, context=1, archived=archived)
    }

    assert [[each["id"] for each in side] for side in hits["b"].values()] == [["a"], ["c"]]
    assert [[each["id"] for each in side] for side in hits["e"].values()] == [["d"], ["f"]]
    assert hits["b"]["before"] == [{"id": "a", "type": "observation", "content": "one"}]


def test_a_memory_with_missing_parts_is_searched_for_the_rest():
    state = memory(
        {"id": "bare", "content": "deploy"}, {"id": "empty"},
        sessions=[{"id": "old", "summary": "deploy", "key_decisions": None}, {"id": "none"}],
        patterns=[{"id": "p", "pattern": "deploy"}],
    )  # fmt: skip

    assert set(found(state, "deploy")) == {"bare", "old", "p"}
    assert found({}, "deploy") == []


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
    question = Question(said.weights, frozenset(said.sequence), dates, NOW, is_question(query))
    return scores(entries, found, CORPUS, question)


def apart(*notes, **options):
    """Return the scores of notes that are not neighbours."""
    return [scored(note, **options)[0] for note in notes]


def test_a_rare_word_weighs_more_than_a_common_one():
    assert idf(CORPUS, "miss") > idf(CORPUS, "cach") > 0
    assert idf(Corpus(10, 50, {"all": 10}), "all") > 0


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

    near = len(NEAR_AFTER)
    assert lifts[:near] == sorted(lifts[:near], reverse=True)
    assert lifts[0] > lifts[1] > lifts[2] > lifts[3] == lifts[4] > lifts[6] == lifts[7]
    assert lifts[7] == scored("cache")[0]
    assert other_phase == scored(("cache", {"phase": 1}))[0]


def test_a_note_after_one_is_lifted_more_than_a_note_before_it():
    before, after = scored("cache", "miss")[0], scored("miss", "cache")[1]

    assert scored("cache")[0] < before < after


def test_what_follows_a_question_is_lifted_as_if_it_said_the_words_itself():
    asked, plain = scored("a miss of it?", "cache")[1], scored("a miss of it", "cache")[1]
    later = scored("a miss of it?", "filler", "cache")[2]
    itself = scored("filler", "cache a miss of it")[1]

    assert later < plain < asked
    assert scored("a miss of it? ", "cache")[1] == asked
    assert asked > 0.9 * itself > plain


def test_a_question_that_repeats_the_query_is_less_of_an_answer():
    said, asks = apart("the cache", "the cache?", query="where is the cache?")

    assert asks == pytest.approx(QUESTION_FACTOR * said)
    assert len(set(apart("the cache", "the cache?", query="the cache"))) == 1


def test_who_the_query_names_is_preferred():
    by_name, other = apart("Alice: cache", "Carol: cache", query="what did Alice say about the cache")
    by_caste = apart(("cache", {"caste": "builder"}), ("cache", {"caste": "scout"}), query="builder cache")

    assert by_name > other
    assert by_caste[0] == pytest.approx(by_caste[1] * LABEL_FACTOR)


def test_the_day_that_the_query_names_is_preferred_to_its_month_and_that_to_others():
    notes = [("cache", {"timestamp": at}) for at in ("2025-05-04", "2025-05-01", "2025-07-04")]
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


def test_fields_count_by_their_weight():
    session = {"summary": "cache", "key_decisions": [{"decision": "cache"}]}
    entry = next(search_entries({"short_term_memory": {"sessions": [session]}}))

    assert term_counts(entry, term_marks(["cach", "miss"])) == {"cach": 2.2}


@rows(
    ("query", "found"),
    [
        ("what happened on October 3rd, 2023?", [Date("2023", "10", "03")]),
        ("the 3rd of October 2023", [Date("2023", "10", "03")]),
        ("in May", [Date("", "05", "")]),
        ("we may march on", []),
        ("since 2023-10", [Date("2023", "10", "")]),
        ("on 2023-10-03", [Date("2023", "10", "03")]),
        ("release 2023.10", []),
    ],
)
def test_dates_are_read_as_they_are_written(query, found):
    assert dates(query) == found


@rows(
    ("date", "day", "factor"),
    [
        (Date("2023", "10", "13"), "2023-10-13", DAY_FACTOR),
        (Date("", "10", "13"), "2023-10-13", DAY_FACTOR),
        (Date("2023", "10", ""), "2023-10-31", MONTH_FACTOR),
        (Date("2023", "10", "13"), "2023-10-18", 1 + (DAY_FACTOR - 1) / 2),
        (Date("2023", "10", ""), "2023-11-05", 1 + (MONTH_FACTOR - 1) / 2),
        (Date("", "12", "31"), "2024-01-05", 1 + (DAY_FACTOR - 1) / 2),
        (Date("2023", "10", "13"), "2023-10-12", 1.0),
        (Date("2023", "10", "13"), "2024-10-13", 1.0),
        (Date("2024", "10", "13"), "2023-10-13", 1.0),
        (Date("2023", "10", ""), "2023-09-30", 1.0),
    ],
)
def test_what_is_said_in_the_days_after_a_named_date_counts_more_than_what_was_said_before_it(
    date, day, factor
):
    assert date_factor(date, f"{day}T08:00:00.000000Z") == pytest.approx(factor)


def test_a_home_sets_the_most_hits_of_a_layer():
    state = memory(*(item(f"wm_{n}", f"ants number {n}") for n in range(6)))
    state["search"]["max_results_per_layer"] = 2

    stored = archive(*(item(f"old_{n}", f"ants of old {n}") for n in range(6)))
    assert [hit["layer"] for hit in search(state, "ants", now=NOW, archived=stored)].count("archive") == 2
    assert (
        len(found(state, "ants", archived=stored))
        == len(found(state, "ants", archived=stored, by_layer=True))
        == 4
    )
    assert len(found(state, "ants", limit=5)) == 5
    assert len(found(state, "ants", limit=None)) == 6


def test_of_the_states_of_a_work_tree_only_the_newest_is_found():
    def tree(number, text, conversation="c1"):
        metadata = {
            "timestamp": f"2026-07-0{number}T00:00:00.000000Z", "role": "tree", "conversation": conversation,
            "phase": 1, "source": "queen", "caste": None,
        }  # fmt: skip
        return {
            "id": f"t{number}", "type": "observation", "content": text, "metadata": metadata,
            "relevance_score": 0.5, "token_count": 1, "associative_links": [],
        }  # fmt: skip

    held = [
        tree(1, "Uncommitted, as of the last call: reader.py."),
        tree(2, "Uncommitted, as of the last call: reader.py, writer.py."),
        tree(3, "Uncommitted, as of the last call: reader.py.", conversation="c2"),
    ]
    memory = {
        "working_memory": {"items": held}, "short_term_memory": {"sessions": []},
        "long_term_memory": {"patterns": []},
    }  # fmt: skip

    assert {hit["id"] for hit in search(memory, "uncommitted reader", now=NOW)} == {"t2", "t3"}
    assert [hit["id"] for hit in search(memory, "t1", now=NOW)] == ["t1"]


def long_entries(*texts):
    """Return a memory of entries that are longer than utterances."""
    filler = " ".join(f"word{at} thing{at} matter{at}" for at in range(20))
    metadata = {"timestamp": "2026-01-01T00:00:00.000000Z", "phase": 1, "source": "queen", "caste": None}
    held = [
        {"id": f"i{place}", "type": "outcome", "content": f"{text} {filler}", "relevance_score": 0.5, "metadata": metadata}
        for place, text in enumerate(texts)
    ]  # fmt: skip
    return {
        "working_memory": {"items": held}, "short_term_memory": {"sessions": []},
        "long_term_memory": {"patterns": []},
    }  # fmt: skip


def test_a_question_about_oneself_wants_the_words_of_the_person():
    mine = item("mine", "Postgres is the database for orders.", kind="user_input", days=1)
    other = item("other", "Postgres is the database for orders.", kind="observation")

    assert found(memory(mine, other), "which database did I pick for orders?")[0] == "mine"
    assert found(memory(mine, other), "which database did we pick for orders?")[0] == "other"


def test_the_words_of_the_person_are_wanted_in_the_archive_too():
    mine = item("mine", "Postgres is the database for orders.", kind="history", speaker="person", phase=1)
    other = item("other", "Postgres is the database for orders.", kind="history", speaker="agent", phase=2)

    assert found(memory(), "which database did I pick?", archived=archive(other, mine))[0] == "mine"


@pytest.mark.parametrize(
    "query",
    ["What did I say?", "meine Wahl", "I've chosen what?", "我选了什么？", "что я выбрал?", "내가 고른 것"],
)
def test_pronouns_of_the_first_person_are_known_in_many_languages(query):
    assert is_of_person(query)


@pytest.mark.parametrize(
    "query",
    [
        "Which database is used?",
        "What did we pick?",
        "Was haben wir gewählt?",
        "我们选了什么？",
        "私たちは何を選んだ？",
        "What does async io cost in the EU?",
        "Does Ben use vi?",
    ],
)
def test_other_words_and_pronouns_of_several_persons_are_not_taken_for_them(query):
    assert not is_of_person(query)


def test_of_long_entries_the_time_is_that_of_the_note():
    memory = long_entries("the gate opened last Tuesday", *["nothing of it"] * 8, "the gate opened at noon")
    first, second = search(memory, "when did the gate open?", now=NOW)

    assert first["score"] < 1.1 * second["score"]


def test_of_long_entries_one_that_says_more_of_the_question_comes_first():
    # The first says one word twice, beside one that says the other; the last says both, once.
    memory = long_entries(
        "cache " * 2, "flushed " * 2, *["nothing of it"] * 12, "the cache is flushed by the job"
    )

    assert search(memory, "cache flushed", now=NOW)[0]["id"] == "i14"


def test_the_message_of_a_commit_answers_a_question_before_another_note_of_the_same_words():
    said = "the cache is flushed by a job"
    state = memory(item("a", said), item("commit", said, kind="outcome", role="commit"))
    assert found(state, "how is the cache flushed?")[0] == "commit"
    assert found(state, "cache job")[0] == "a"


def test_a_question_for_a_commit_finds_it_before_what_was_said_about_it():
    said = "I will commit the probe count visibility tests next, once the probe count is right."
    state = memory(
        item("a", "[main be94300] Add probe count visibility tests", kind="outcome", days=9, role="commit"),
        *(item(f"b{nth}", f"{said} ({nth})", kind="outcome", days=1) for nth in range(3)),
    )

    (first, *_) = search(state, "did we commit the probe count visibility tests", now=NOW)

    assert first["id"] == "a"


KINDS = memory(
    item("suite", "Run the whole suite before a push", kind="constraint", phase=1),
    item("ended", "Every push needs a test of its own", kind="constraint", phase=2, ended_at="2026-02-01"),
    item("talk", "We talked about testing for a long time, and about the testing of pushes", phase=3),
    item("upload", "Uploads of 2 GB fail", kind="blocker", phase=4),
    item("lamp", "the problem of the lamp was opened, and more than one problem", phase=5),
    item("tabs", "Tabs in all files", kind="preference", phase=6),
    item("store", "Postgres holds the orders", kind="decision", phase=7),
    item("tree", "evaluated a library with a tree for each decision", phase=8),
    item("dates", "dateutil is the library for dates", kind="decision", phase=9),
    item("asked", "which preferences did I name?", kind="user_input", phase=10),
)


@rows(
    ("query", "first"),
    [
        ("rules about testing", ["suite"]),
        ("open problems", ["upload", "lamp"]),
        ("the preferences I named", ["asked"]),
        ("what are my preferences?", ["tabs"]),
        ("decisions on Postgres", ["store"]),
        ("decision tree library", ["tree", "dates"]),
    ],
)
def test_a_word_for_a_kind_lifts_the_entries_of_that_kind(query, first):
    assert found(KINDS, query)[: len(first)] == first


def test_of_a_kind_are_the_entries_in_force_and_sessions_by_their_statements():
    session = {
        "session_id": "s", "summary": "It went well.",
        "rules": [{"text": "Never log tokens.", "ended": {"how": "revoked"}}, {"text": "Ask before a merge."}],
        "high_value_items": [{"content": "Blanks, no tabs", "type": "preference"}],
    }  # fmt: skip
    state = memory(*KINDS["working_memory"]["items"], sessions=[session])
    passages = {hit["id"]: hit["passage"] for hit in search(state, "constraints", now=NOW)}

    assert passages.keys() == {"suite", "s"}
    assert passages["s"] == "Ask before a merge."
    assert {hit["id"] for hit in search(state, "preferences", now=NOW)} == {"tabs", "asked", "s"}


def test_archived_entries_are_of_a_kind_too():
    stored = archive(
        item("old", "Never push on Friday", kind="constraint"), item("noise", "push it on Friday, push")
    )

    assert found(memory(), "rules for a push on Friday", archived=stored) == ["old", "noise"]
    assert found(KINDS, "rules for a push on Friday", archived=stored)[0] == "old"


def test_of_one_message_the_best_part_is_found():
    def part(id, text, line, kind="history"):
        return item(id, text, kind=kind, conversation="c", pointer={"file": "c.jsonl", "line": line})

    stored = archive(
        part("a", "the quorum was lost", 7), part("b", "quorum and lease: the lease of the quorum ended", 7),
        part("c", "a lease ended late", 7, kind="outcome"), part("d", "another lease of a quorum", 8),
        part("e", "one line has all of the chat, also a quorum", 1), part("f", "its next message has the lease", 1),
    )  # fmt: skip
    best, *others = found(memory(), "quorum lease", archived=stored)

    assert best in {"b", "d"}
    assert sorted([best, *others]) == ["b", "d", "e", "f"]
    assert found(memory(), "a quorum lease", archived=stored)[0] == "a"

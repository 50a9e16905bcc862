"""Weak matches: guesses of a small home that has no word of a query."""

from __future__ import annotations

from datetime import UTC, datetime

from aether.search.rank import search
from aether.search.weak import MOST_GUESSES, SMALL_HOME
from tests.tables import rows

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def memory(*texts, kinds=()):
    kinds = [*kinds, *["observation"] * (len(texts) - len(kinds))]
    items = [
        {
            "id": f"i{nth}",
            "type": kind,
            "content": text,
            "metadata": {"timestamp": f"2026-01-{nth % 28 + 1:02}"},
        }
        for nth, (text, kind) in enumerate(zip(texts, kinds, strict=True))
    ]
    return {"working_memory": {"items": items}}


def found(state, query, **options):
    return [hit["id"] for hit in search(state, query, now=NOW, **options)]


ALIKE = memory(
    "the authentication of users",
    "Die Datenbankverbindung war weg",
    "lunch was late",
    "colour of a lamp",
)


@rows(
    ("query", "first"),
    [("authentification", "i0"), ("Datenbank", "i1"), ("colors", "i3")],
)
def test_a_word_that_is_spelled_alike_is_the_first_evidence(query, first):
    hits = search(ALIKE, query, now=NOW)

    assert (hits[0]["id"], len(hits)) == (first, MOST_GUESSES)
    assert [(hit["why"], hit["weak"], hit["relevance"]) for hit in hits] == [
        ("weak", True, 0.0)
    ] * MOST_GUESSES


def test_words_that_are_used_together_are_the_second_evidence():
    state = memory(
        "quorum lease renewal", "lease renewal fails", "lunch was late", "tea was cold", "the bus came"
    )

    assert found(state, "quorrum")[:2] == ["i0", "i1"]
    assert found(state, "quorum", types=["observation"]) == ["i0"]
    assert found(state, "quorum", since=datetime(2026, 1, 2, tzinfo=UTC))[0] == "i1"


def test_without_anything_alike_importance_and_then_time_decide():
    state = memory("a lamp", "b lamp", "c lamp", "d lamp", kinds=["decision", "decision"])

    assert found(state, "zebra") == ["i1", "i0", "i3"]
    assert found(state, "zebra", types=["observation"]) == ["i3", "i2"]
    assert found(state, "zebra", limit=1) == ["i1"]
    assert found(state, "zebra", asking={"i1"}) == ["i0", "i3", "i2"]


def test_a_guess_is_made_only_for_words_and_only_by_a_small_home():
    lamps = [f"lamp {nth}" for nth in range(SMALL_HOME)]

    assert found(memory(*lamps[1:]), "zebra")
    assert found(memory(*lamps), "zebra") == []
    assert found(memory("a lamp"), '" * (') == []
    assert found(memory("a lamp", "a table"), "lamp") == ["i0"]

"""Weak matches: entries of a small home that may answer a query although no entry has any of its words.

The evidence is what the home itself shows: words that are spelled like those of the query (other forms, typing errors, parts of
compounds), words that other entries use together with those, and, where nothing is alike, importance and time. A guess is marked as
one and is never given to a prompt that asked for nothing.
"""

from __future__ import annotations

import math
from collections import Counter as Tally
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from aether.search.index import Row
from aether.search.texts import SearchEntry
from aether.text.regex import lazy
from aether.text.words import CACHED_TEXTS, STOPWORDS
from aether.types import RELEVANCE_OF_TYPE

# In a home with more entries a guess is wrong more often than it helps.
SMALL_HOME = 200
MOST_GUESSES = 3
# Two words are alike if they share more than half of their character triples: "libary" and "library", "Datenbank" and
# "Datenbankverbindung", not "storage" and "stop".
ALIKE_ABOVE = 0.5
# A word beside a word that is alike says less than that word.
BESIDE = 0.25
_MARKED = lazy(r"[\[(]([^\])]+)")


class Guess(NamedTuple):
    """An entry that may answer."""

    entry: SearchEntry
    score: float
    alike: dict[str, str]
    """Each term of the query that the entry has a similar word of, with that word."""


def guesses(
    entries: Sequence[SearchEntry], wanted: Collection[str], weights: Mapping[str, float]
) -> list[Guess]:
    """Return at most `MOST_GUESSES` of `entries`, those with an id that is `wanted`, best first.

    `weights` are the terms of the query. Entries that are not wanted still show which words belong together.
    """
    words = [_words(entry.fields) for entry in entries]
    number = Tally(word for inside in words for word in inside)
    worth = {word: math.log(1 + len(entries) / times) for word, times in number.items()}
    alike = _alike(weights, worth)
    scores = [sum(worth[word] * alike[word][0] for word in inside & alike.keys()) for inside in words]
    beside: dict[str, float] = dict.fromkeys(worth, 0.0)
    for inside, score in zip(words, scores, strict=True):
        for word in inside:
            beside[word] += score / number[word]
    candidates = [
        Guess(
            entry, score + BESIDE * sum(beside[word] for word in inside) / max(1, len(inside)),
            {alike[word][1]: word for word in sorted(inside & alike.keys())},
        )
        for entry, inside, score in zip(entries, words, scores, strict=True)
        if entry.row.id in wanted
    ]  # fmt: skip
    candidates.sort(
        key=lambda guess: (guess.score, _importance(guess.entry.row), guess.entry.row.at), reverse=True
    )
    return candidates[:MOST_GUESSES]


def _importance(row: Row) -> float:
    return row.relevance + RELEVANCE_OF_TYPE.get(row.type, 0.5)


@lru_cache(maxsize=CACHED_TEXTS)
def _words(fields: tuple[tuple[float, str], ...]) -> frozenset[str]:
    """Return the terms of marked texts but the stopwords."""
    return frozenset(word for _, text in fields for word in _MARKED.findall(text) if word not in STOPWORDS)


def _alike(asked: Mapping[str, float], words: Iterable[str]) -> dict[str, tuple[float, str]]:
    """Return how much each word is like one of the query, and which; words that are like none are left out."""
    alike = {}
    for word in words:
        share, term = max((weight * _common_share(term, word), term) for term, weight in asked.items())
        if share > ALIKE_ABOVE * asked[term]:
            alike[word] = share, term
    return alike


def _common_share(first: str, second: str) -> float:
    """Return the share of their character triples that two words have in common (Dice's coefficient)."""
    pieces, others = _pieces(first), _pieces(second)
    return 2 * len(pieces & others) / (len(pieces) + len(others))


@lru_cache(maxsize=CACHED_TEXTS)
def _pieces(word: str) -> frozenset[str]:
    padded = f" {word}"  # the start of a word counts, its end is an inflection
    return frozenset(padded[at : at + 3] for at in range(max(1, len(padded) - 2)))

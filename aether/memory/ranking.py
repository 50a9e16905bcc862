"""Ranking: how well entries answer a query.

For every word asked, an entry has its own BM25 share, or a discounted share of a neighbour that says more
of it; how often the word stands in the wider surroundings adds a little:

    score = Σ word: weight · idf · (max over neighbours of NEAR[distance] · bm25 + WIDE · saturated count)

times stated factors for names, dates, recency and relevance. So the answer is found beside the question,
and the note beside the topic it belongs to. The constants were chosen on three conversations of a public
set and checked on three others (`benchmarks/search_recall.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from aether import clock
from aether.memory.dates import Date, nearness
from aether.memory.entries import Entry
from aether.store.rows import counts
from aether.text.words import CACHED_TEXTS

# BM25: notes are short, so that repetition and length say less than in documents (k1 1.2, b 0.75 there).
K1 = 0.9
B = 0.25
# Share of a word that counts from 0, 1, 2 and 3 entries away.
NEAR = (1.0, 0.5, 0.3, 0.15)
# Entries on each side that make the wider surroundings, what they add, and the count that gives half of it.
WIDE_REACH = 6
WIDE = 0.44
WIDE_HALF = 1.2
SHARES = (*NEAR, *[0.0] * (WIDE_REACH + 1 - len(NEAR)))
# An entry by someone the query names, or under a label it names.
LABEL_FACTOR = 1.3
# An entry of a day or month that the query names.
DATE_FACTORS = {"": 1.0, "month": 1.3, "day": 2.0}
# The newest entries gain a tenth, halved with every month: enough to order equals.
RECENCY = 0.1
RECENCY_HALF_LIFE_DAYS = 30.0
# Relevance (of a pattern: confidence) moves the score by a tenth up or down.
CONFIDENCE = 0.2


class Corpus(NamedTuple):
    """What is known of everything that is searched."""

    items: int
    length: int
    held: Mapping[str, int]
    """In how many entries each term stands."""


class Question(NamedTuple):
    """What is asked, ready for comparing."""

    weights: Mapping[str, float]
    words: frozenset[str]
    dates: Sequence[Date]
    now: datetime


def held(entry: Entry, marked_terms: Sequence[tuple[str, str, str]]) -> dict[str, float]:
    """Return how often the entry holds each of the terms it holds, by the weight of the field."""
    if len(entry.fields) == 1 and entry.fields[0][0] == 1.0:
        return counts(entry.fields[0][1], marked_terms)
    found: dict[str, float] = {}
    for weight, text in entry.fields:
        for term, times in counts(text, marked_terms).items():
            found[term] = found.get(term, 0.0) + weight * times
    return found


def idf(corpus: Corpus, term: str) -> float:
    """Return how much a term tells: the rarer, the more; never less than nothing."""
    holding = corpus.held.get(term, 0)
    return math.log(1 + (corpus.items - holding + 0.5) / (holding + 0.5))


def full(corpus: Corpus, question: Question) -> float:
    """Return the score of a plain full answer: an average entry that says every known word once."""
    return sum(
        weight * idf(corpus, term) for term, weight in question.weights.items() if corpus.held.get(term)
    )


def scores(
    entries: Sequence[Entry], found: Sequence[Mapping[str, float]], corpus: Corpus, question: Question
) -> list[float]:
    """Return the score of each entry, given what each of them holds."""
    near = _neighbours(entries)
    average = max(1.0, corpus.length / max(1, corpus.items))
    norms = [K1 * (1 - B + B * entry.row.length / average) for entry in entries]
    holders: dict[str, list[int]] = {term: [] for term in question.weights}
    for at, terms in enumerate(found):
        for term in terms:
            holders[term].append(at)
    totals = [0.0] * len(entries)
    for term, weight in question.weights.items():
        share = weight * idf(corpus, term)
        own = {at: found[at][term] * (K1 + 1) / (found[at][term] + norms[at]) for at in holders[term]}
        said, around = _spread(own, near)
        for at, value in said.items():
            wide = around[at] / (around[at] + WIDE_HALF)
            totals[at] += share * (value + WIDE * wide)
    return [total * _factor(entry, question) for total, entry in zip(totals, entries, strict=True)]


def _neighbours(entries: Sequence[Entry]) -> list[list[tuple[int, float]]]:
    """Return for each entry the others within `WIDE_REACH` in its stretch, as index and share."""
    near: list[list[tuple[int, float]]] = [[] for _ in entries]
    order = sorted((entry.place, at, entry.row.stretch) for at, entry in enumerate(entries))
    for nth, (place, at, stretch) in enumerate(order):
        for other_place, other, other_stretch in order[nth + 1 : nth + 1 + WIDE_REACH]:
            distance = other_place - place
            if distance > WIDE_REACH:
                break
            if other_stretch == stretch:
                near[at].append((other, SHARES[distance]))
                near[other].append((at, SHARES[distance]))
    return near


def _spread(
    own: Mapping[int, float], near: Sequence[Sequence[tuple[int, float]]]
) -> tuple[dict[int, float], dict[int, int]]:
    """Return what each entry has of a word, itself or from neighbours, and how many around it hold it."""
    said = dict(own)
    around = dict.fromkeys(own, 1)
    for at, value in own.items():
        for other, share in near[at]:
            around[other] = around.get(other, 0) + 1
            passed = value * share
            if passed >= said.get(other, 0.0):
                said[other] = passed
    return said, around


def _factor(entry: Entry, question: Question) -> float:
    row = entry.row
    factor = 1 + CONFIDENCE * (row.relevance - 0.5)
    if row.labels and any(question.words.issuperset(label.split()) for label in row.labels.split("|")):
        factor *= LABEL_FACTOR
    if question.dates:
        factor *= max(DATE_FACTORS[nearness(date, row.at)] for date in question.dates)
    if row.at:
        days = max(0.0, (question.now.timestamp() - _seconds(row.at)) / 86_400)
        factor *= 1 + RECENCY * 0.5 ** (days / RECENCY_HALF_LIFE_DAYS)
    return factor


@lru_cache(maxsize=CACHED_TEXTS)
def _seconds(at: str) -> float:
    return clock.parse(at).timestamp()

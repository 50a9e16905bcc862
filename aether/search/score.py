"""Score: how well entries answer a question, by their words, their surroundings and factors.

For every word of the query, an entry scores its own BM25 share, or the discounted share of a neighbour that says more
about it; the frequency of the word in the wider surroundings adds a little:

    score = Σ word: weight · idf · (max over neighbours of NEAR_…[distance] · bm25 + WIDE · saturated count)

times the factors below for names, dates, questions, the person, recency and relevance, and, where entries are longer than
utterances, for the share of the query that the entry says itself. So the answer is found after the question, and the note
beside its topic. The constants hold on corpora of three kinds at once: docs/benchmarks.md has the figures of each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import accumulate, chain, repeat
from operator import add, mul, sub
from types import MappingProxyType
from typing import NamedTuple

from aether import clock
from aether.memory.items import HISTORY, PERSON
from aether.search.index import Row
from aether.search.index import term_counts as text_counts
from aether.search.texts import SearchEntry, texts_of_types
from aether.text.regex import lazy
from aether.text.words import CACHED_TEXTS, words

USER_INPUT = "user_input"
# A whole session holds many words that have nothing to do with what is looked for, and what it says is found beside it.
SESSION_FACTOR = 0.5
# A question about "my" choice wants the words of the person.
PERSON_FACTOR = 4.0
# The message of a commit says what was done, and why.
COMMIT_FACTOR = 1.2
# To a question about a commit: the message of one does not say that it is one.
COMMIT, COMMIT_ASKED_FACTOR = "commit", 2.0
# An entry of a kind that the query names, as much as one of a month that it names.
KIND_FACTOR = 2.0
# BM25. A text counts as PIVOT terms longer than it is, and so does the average: among utterances of a dozen terms length says
# little (as with b = 0.1), among messages of some hundred terms much (b = 0.7). So one constant serves both.
K1 = 3.0
PIVOT = 100
# Share of a word's score that counts 0, 1, 2 and 3 entries after it, and before it: what follows is more often about it.
NEAR_AFTER = (1.0, 0.5, 0.3, 0.15)
NEAR_BEFORE = (1.0, 0.4, 0.3, 0.15)
# The entry after a question is about all that the question says, and to a question another one is seldom the answer.
NEAR_QUESTION = 1.0
QUESTION_FACTOR = 0.9
# Entries on each side that are the wider surroundings, the score they add, and the count that gives half of it.
WIDE_REACH = 6
WIDE = 0.6
WIDE_HALF = 1.2
# What is added where so many entries around hold the word.
_WIDE = [WIDE * number / (number + WIDE_HALF) for number in range(2 * WIDE_REACH + 2)]
# Terms of an utterance: where entries are no longer, answers lean on their neighbours, and need not say what was asked.
UTTERANCE = 20
# An entry by a person or under a label that the query names.
LABEL_FACTOR = 1.55
# An entry of a day or month that the query names. It is also spoken of in the days after it, which gain the less the later.
DAY_FACTOR = 3.0
MONTH_FACTOR = 2.0
DATE_HALF_LIFE_DAYS = 5.0
# The newest entries gain a tenth, halved with every month: enough to order equals.
RECENCY = 0.1
RECENCY_HALF_LIFE_DAYS = 30.0
# Relevance (of a pattern: confidence) moves the score by a tenth up or down.
CONFIDENCE = 0.2


class Corpus(NamedTuple):
    """The statistics of all searched entries."""

    items: int
    length: int
    held: Mapping[str, int]
    """The number of entries with each term."""


class Question(NamedTuple):
    """A query in comparable form."""

    weights: Mapping[str, float]
    words: frozenset[str]
    dates: Sequence[Date]
    now: datetime
    asks: bool = False
    synonyms: Mapping[str, str] = MappingProxyType({})
    commit: bool = False
    of_person: bool = False
    """Whether it is about the one who asks."""
    kinds: Mapping[str, frozenset[str]] = MappingProxyType({})
    """The item types of each term that names any."""


def term_counts(entry: SearchEntry, marked_terms: Sequence[tuple[str, str, str]]) -> dict[str, float]:
    """Return the count of each term in the entry, by the weights of its fields; absent terms are left out."""
    if len(entry.fields) == 1 and entry.fields[0][0] == 1.0:
        return text_counts(entry.fields[0][1], marked_terms)
    counts: dict[str, float] = {}
    for weight, text in entry.fields:
        for term, times in text_counts(text, marked_terms).items():
            counts[term] = counts.get(term, 0.0) + weight * times
    return counts


def idf(corpus: Corpus, term: str) -> float:
    """Return the weight of a term: the rarer, the higher; never negative."""
    holding = corpus.held.get(term, 0)
    return math.log(1 + (corpus.items - holding + 0.5) / (holding + 0.5))


def full_score(corpus: Corpus, question: Question) -> float:
    """Return the score of a plain full answer: an average entry with every known word once."""
    return sum(
        weight * idf(corpus, term)
        for term, weight in question.weights.items()
        if corpus.held.get(term) and term not in question.synonyms
    )


def scores(
    entries: Sequence[SearchEntry], counts: Sequence[Mapping[str, float]], corpus: Corpus, question: Question
) -> list[float]:
    """Return the score of each entry, given its term counts."""
    norms = [norm(entry, corpus) for entry in entries]
    shares = {term: weight * idf(corpus, term) for term, weight in question.weights.items()}
    totals = [0.0] * len(entries)
    for run in _runs(entries):
        rows = [(entries[number], counts[number], norms[number]) for number in run]
        for number, total in zip(run, _totals(rows, shares, K1 + 1), strict=True):
            totals[number] = total
    by_name = factors(entries, counts, corpus, question)
    return [total * math.prod(named.values()) for total, named in zip(totals, by_name, strict=True)]


def norm(entry: SearchEntry, corpus: Corpus) -> float:
    """Return the count of a word that gives half of its value in an entry of this length."""
    return K1 * (entry.row.length + PIVOT) / (_average(corpus) + PIVOT)


def _average(corpus: Corpus) -> float:
    return max(1.0, corpus.length / max(1, corpus.items))


def factors(
    entries: Sequence[SearchEntry], counts: Sequence[Mapping[str, float]], corpus: Corpus, question: Question
) -> Iterator[dict[str, float]]:
    """Yield by name what the score of each entry is multiplied by."""
    least = min(1.0, UTTERANCE / _average(corpus))
    kinds = _kind_factors(entries, counts, corpus, question)
    now = question.now.timestamp()
    for entry, share, of_kind in zip(entries, _coverage(counts, corpus, question), kinds, strict=True):
        yield {**_place_factors(entry, question, now), **of_kind, "coverage": least + (1 - least) * share}


def _kind_factors(
    entries: Sequence[SearchEntry], counts: Sequence[Mapping[str, float]], corpus: Corpus, question: Question
) -> Iterator[dict[str, float]]:
    """Yield what the score of each entry is multiplied by for the kinds that a query names.

    An entry of a kind gains if it has a topic of the query, or if the query has no topic. An entry of another kind gains as much by
    all the words, because the word for a kind may be content.
    """
    types = frozenset(chain.from_iterable(question.kinds.values()))
    asked = {term for term in question.weights.keys() - question.synonyms.keys() if corpus.held.get(term)}
    topics = asked - question.kinds.keys()
    for entry, inside in zip(entries, counts, strict=True):
        factors: dict[str, float] = {}
        if types:
            is_of_kind = bool(texts_of_types(entry, types))
            has_topic = bool(inside.keys() - question.kinds.keys())
            if (is_of_kind and not topics) or (has_topic and (is_of_kind or asked <= inside.keys())):
                factors["kind"] = KIND_FACTOR
            if is_of_kind and question.of_person:
                factors["person"] = PERSON_FACTOR
        yield factors


def _coverage(counts: Sequence[Mapping[str, float]], corpus: Corpus, question: Question) -> Iterator[float]:
    """Yield for each entry the share of the query that it says itself, by the weights of the words; in other words, too."""
    worth = {term: weight * idf(corpus, term) for term, weight in question.weights.items()}
    full = sum(value for term, value in worth.items() if term not in question.synonyms) or 1.0
    shares: dict[frozenset[str], float] = {}
    for inside in counts:
        terms_held = frozenset(inside)
        if terms_held not in shares:
            terms_asked = {question.synonyms.get(term, term) for term in inside}
            shares[terms_held] = min(1.0, sum(worth.get(term, 0.0) for term in terms_asked) / full)
        yield shares[terms_held]


def _runs(entries: Sequence[SearchEntry]) -> list[list[int]]:
    """Return the entries by their positions, those together that are within `WIDE_REACH` of the next of their stretch."""
    runs: list[list[int]] = []
    last: tuple[str, int] = ("", 0)
    for stretch, place, number in sorted(
        (entry.row.stretch, entry.place, number) for number, entry in enumerate(entries)
    ):
        if runs and stretch == last[0] and place - last[1] <= WIDE_REACH:
            runs[-1].append(number)
        else:
            runs.append([number])
        last = (stretch, place)
    return runs


def _totals(
    run: Sequence[tuple[SearchEntry, Mapping[str, float], float]], shares: Mapping[str, float], most: float
) -> list[float]:
    """Return the sum over all words for each entry of a run, given with its counts and its norm for its length.

    No count of a word is worth more than `most`.
    """
    if len(run) == 1:
        _, inside, norm = run[0]
        values = ((shares[term], times * most / (times + norm)) for term, times in inside.items())
        return [sum(share * (value + _WIDE[1]) for share, value in values)]
    # A slot for each place and empty ones around them, so that the neighbours of all are slices.
    first = run[0][0].place - 2 * WIDE_REACH
    slots = [entry.place - first for entry, _, _ in run]
    size = slots[-1] + 2 * WIDE_REACH + 1
    after, norms, counts_by_slot = (
        [NEAR_AFTER[1]] * size,
        [1.0] * size,
        list[Mapping[str, float]]([{}]) * size,
    )
    for slot, (entry, inside, norm) in zip(slots, run, strict=True):
        counts_by_slot[slot], norms[slot] = inside, norm
        if entry.row.asks:
            after[slot] = NEAR_QUESTION
    totals = [0.0] * size
    for term, share in shares.items():
        counts = [inside.get(term, 0.0) for inside in counts_by_slot]
        is_held = [*map(bool, counts)]
        if True in is_held:
            start = is_held.index(True) - WIDE_REACH
            end = size - is_held[::-1].index(True) + WIDE_REACH
            outer = slice(start - WIDE_REACH, end + WIDE_REACH)
            values_here = [
                times * most / (times + norm) for times, norm in zip(counts[outer], norms[outer], strict=True)
            ]
            before = totals[start:end]
            totals[start:end] = [
                total + share * value
                for total, value in zip(before, _spread(values_here, after[outer]), strict=True)
            ]
    return [totals[slot] for slot in slots]


def _spread(values: list[float], after: list[float]) -> list[float]:
    """Return for all slots but the outer ones the best value, own or the share of a neighbour's, and what surroundings add.

    `after` is the share of each slot's value that counts in the next one.
    """
    size = len(values) - 2 * WIDE_REACH

    def moved(distance: int, shares: Iterable[float]) -> Iterator[float]:
        start = WIDE_REACH - distance
        return map(mul, values[start : start + size], shares)

    near = [values[WIDE_REACH : WIDE_REACH + size], moved(1, after[WIDE_REACH - 1 :])]
    near += [moved(distance, repeat(share)) for distance, share in enumerate(NEAR_AFTER) if distance > 1]
    near += [moved(-distance, repeat(share)) for distance, share in enumerate(NEAR_BEFORE) if distance]
    holding = [0, *accumulate(map(bool, values))]
    around = map(sub, holding[2 * WIDE_REACH + 1 :], holding)
    return [*map(add, map(max, *near), map(_WIDE.__getitem__, around))]


def _is_by_person(row: Row) -> bool:
    return row.type == USER_INPUT or (row.type == HISTORY and row.role == PERSON)


def _place_factors(entry: SearchEntry, question: Question, now: float) -> dict[str, float]:
    """Return what the score of an entry is multiplied by, whatever words it holds; `now` is in seconds."""
    row = entry.row
    factors = {"relevance": 1 + CONFIDENCE * (row.relevance - 0.5)}
    if entry.layer == "short_term_memory":
        factors["session"] = SESSION_FACTOR
    if question.of_person and _is_by_person(row):
        factors["person"] = PERSON_FACTOR
    if question.asks and row.asks:
        factors["question"] = QUESTION_FACTOR
    if row.role == COMMIT and (question.asks or question.commit):
        factors["commit"] = COMMIT_ASKED_FACTOR if question.commit else COMMIT_FACTOR
    if row.labels and any(question.words.issuperset(label.split()) for label in row.labels.split("|")):
        factors["label"] = LABEL_FACTOR
    if question.dates and row.at:
        factors["date"] = max(date_factor(date, row.at) for date in question.dates)
    if row.at:
        days = max(0.0, (now - _seconds(row.at)) / 86_400)
        factors["recency"] = 1 + RECENCY * 0.5 ** (days / RECENCY_HALF_LIFE_DAYS)
    return factors


# Pronouns of the first person singular, a closed class: what a question about "my choice" is about. The answer of a question about
# "us" is as often in the words of the agent. Left out are those that are words of other languages or of the trade: "io", "vi",
# "min", "ben". Scripts without spaces have theirs in a word with others.
_FIRST_PERSON = frozenset(
    "i me my mine myself ich mich mir mein meine meinen meiner je moi mes yo "
    "minha ik mij mijn jag mig mitt jeg mnie mój moja я меня мне мой моя мои моё benim bana "
    "أنا אני שלי मैं मेरा मेरी मेरे ผม ฉัน tôi saya aku 나는 내가 나의 제가 저는".split()
)
_FIRST_PERSON_CHARACTER = lazy("[我私僕俺](?!们|們|たち|達)")


def is_of_person(query: str) -> bool:
    """Return whether a query is about the one who asks.

    >>> is_of_person("Which database did I pick?"), is_of_person("Which database was picked?"), is_of_person("我选了哪个数据库？")
    (True, False, True)
    """
    return not _FIRST_PERSON.isdisjoint(word.partition("'")[0] for word in words(query)) or bool(
        _FIRST_PERSON_CHARACTER.search(query)
    )


@lru_cache(maxsize=CACHED_TEXTS)
def _seconds(time: str) -> float:
    return clock.parse(time).timestamp()


_MONTHS = "january february march april may june july august september october november december".split()
_NAMED = lazy(
    r"\b(?:(?P<before>\d{1,2})(?:st|nd|rd|th)?\s+(?:of\s+)?)?"
    rf"(?P<month>{'|'.join(name.capitalize() for name in _MONTHS)})\b"
    r"(?:\s+(?P<after>\d{1,2})(?:st|nd|rd|th)?\b)?(?:,?\s+(?:of\s+)?(?P<year>\d{4})\b)?"
)
_ISO = lazy(r"\b(?P<year>\d{4})-(?P<month>\d\d)(?:-(?P<day>\d\d))?\b")


class Date(NamedTuple):
    """A day or a month; without a year it is that of any year."""

    year: str
    month: str
    day: str


def dates(query: str) -> list[Date]:
    """Return the dates in `query`; months count only when capitalised ("May" is not "may").

    >>> dates("what did we decide on 13 October 2023, and in May?")
    [Date(year='2023', month='10', day='13'), Date(year='', month='05', day='')]
    """
    dates_named: list[Date] = []
    for match in _NAMED.finditer(query):
        month, day = _MONTHS.index(match["month"].lower()) + 1, match["before"] or match["after"]
        dates_named.append(Date(match["year"] or "", f"{month:02}", day.rjust(2, "0") if day else ""))
    return dates_named + [
        Date(match["year"], match["month"], match["day"] or "") for match in _ISO.finditer(query)
    ]


def date_factor(date: Date, time: str) -> float:
    """Return what a named date makes of the score of an entry of the time `at`; all months count 31 days."""
    full, length = (DAY_FACTOR, 1) if date.day else (MONTH_FACTOR, 31)
    after = (int(time[5:7]) - int(date.month)) * 31 + int(time[8:10]) - int(date.day or 1)
    # Without a year, at the turn of one, it may be in the year before.
    after = after + (int(time[:4]) - int(date.year)) * 12 * 31 if date.year else after % (12 * 31)
    days = max(0, after - length + 1)
    return 1 + (full - 1) * math.exp2(-days / DATE_HALF_LIFE_DAYS) if after >= 0 else 1.0

"""Selection: the parts of a text that carry most, chosen without judging what they mean.

A text is cut into units (a sentence of prose, a line of a list, a block of code). Each carries stems, numbers and names;
long words and rare ones weigh more than short and frequent ones, in any language. Units are chosen greedily by what they
add for their tokens to those chosen before, so that a repetition adds next to nothing. The same input gives the same choice.
"""

from __future__ import annotations

import math
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from aether.text.identifiers import identifiers
from aether.text.words import STOPWORDS, sentences, stem, words
from aether.types import Counter

# The first and the last unit of a text say what it is about and how it ends.
ENDS_WEIGHT = 1.15
# A question says less than its answer.
QUESTION_WEIGHT = 0.5
QUESTION_MARKS = ("?", "？", "؟")
# Weight of a word: its length over that of a plain word, at most that of a name.
PLAIN_CHARS, NAME = 6, 1.6
NUMBER = 1.4
# Weight of a path, command or error, by its length, because it is useless in part.
IDENTIFIER_PER_CHAR, IDENTIFIER_CHARS = 0.15, 80
# Scripts without spaces are cut into overlapping pairs of characters.
PAIR = 0.6
# Of the weight of what a chosen unit says already: repetitions come last.
AGAIN = 0.05
# A unit costs a reader more than its tokens: scraps must not win against sentences.
OVERHEAD_TOKENS = 8


class Unit(NamedTuple):
    """A part of a text that is kept or left out whole."""

    text: str
    weight: float = 1.0
    """Of its speaker: a person's words weigh more than a tool's output."""
    required: bool = False
    """Chosen before all others, as long as there is room."""


def units_of(text: str) -> list[Unit]:
    r"""Return the units of `text`: sentences of prose, lines of lists and tables, whole blocks of code.

    >>> [unit.text for unit in units_of("It works. Really!\n- one\n```\nx = 1\n```")]
    ['It works.', 'Really!', '- one', '```\nx = 1\n```']
    """
    parts = [part for part in _parts(text) if part.strip()]
    last = len(parts) - 1
    return [
        Unit(part, (ENDS_WEIGHT if place in (0, last) else 1.0) * (QUESTION_WEIGHT if asks(part) else 1))
        for place, part in enumerate(parts)
    ]  # fmt: skip


def asks(text: str) -> bool:
    """Return whether `text` ends with a question mark of any script."""
    return text.rstrip().endswith(QUESTION_MARKS)


def _parts(text: str) -> Iterator[str]:
    prose: list[str] = []
    fenced: list[str] = []
    for line in text.split("\n"):
        fence = line.lstrip().startswith("```")
        if fence and not fenced:
            yield from sentences("\n".join(prose))
            prose = []
        if not (fenced or fence):
            prose.append(line)
            continue
        fenced.append(line)
        if fence and len(fenced) > 1:
            yield "\n".join(fenced)
            fenced = []
    yield from sentences("\n".join(prose))
    if fenced:
        yield "\n".join(fenced)


def choose(units: Sequence[Unit], *, most: int, count: Counter, overhead: int = OVERHEAD_TOKENS) -> list[int]:
    """Return the positions of the chosen units, ascending; as lines they have at most `most` tokens by `count`.

    Required units come first, what chosen ones say already comes last, and no text is chosen twice. `overhead` is in the unit of
    `count`. The cost is n log n.
    """
    chosen = ranking(units, most=most, count=count, overhead=overhead)
    return sorted(chosen)


def ranking(
    units: Sequence[Unit], *, most: int, count: Counter, overhead: int = OVERHEAD_TOKENS
) -> list[int]:
    """Return the positions that `choose` chooses, the one that adds most for its tokens first."""
    costs = [max(1, count(f"{unit.text}\n")) for unit in units]
    keys = ["".join(unit.text.split()).casefold() for unit in units]
    distinct: dict[str, int] = {}
    for place, key in enumerate(keys):
        if key and (key not in distinct or (units[place].required and not units[distinct[key]].required)):
            distinct[key] = place
    carried = {place: contents(units[place].text) for place in distinct.values()}
    spread = Tally(term for terms in carried.values() for term in terms)
    covered_terms: set[str] = set()

    def rank(place: int) -> tuple[bool, float, int]:
        new = sum(
            weight * (1 + math.log(len(carried) / spread[term])) * (AGAIN if term in covered_terms else 1.0)
            for term, weight in carried[place].items()
        )
        return not units[place].required, -units[place].weight * new / (costs[place] + overhead), place

    # What a unit adds only falls while others are chosen, so only the first of the heap is weighed again.
    heap = [rank(place) for place in carried]
    heapify(heap)
    chosen: list[int] = []
    while heap:
        place = heappop(heap)[-1]
        if costs[place] > most:
            continue
        ranked = rank(place)
        if heap and ranked > heap[0]:
            heappush(heap, ranked)
            continue
        chosen.append(place)
        most -= costs[place]
        covered_terms.update(carried[place])
    return chosen


@lru_cache(maxsize=8_192)
def contents(text: str) -> dict[str, float]:
    """Return what `text` carries, each with its weight: stems, numbers and pairs of characters, names, identifiers.

    >>> contents("We moved to Lisbon.")
    {'move': 0.6666666666666666, 'lisbon': 1.6}
    """
    carried: dict[str, float] = {}
    for word in words(text):
        if word not in STOPWORDS:
            root = stem(word)
            carried[root] = (
                NUMBER if any(map(str.isdigit, word)) else PAIR if word >= "\u0e00" else min(NAME, len(root) / PLAIN_CHARS)
            )  # fmt: skip
    for spaced in text.split()[1:]:
        if spaced[0].isupper():
            carried.update(
                (root, NAME) for word in words(spaced) if len(word) > 1 and (root := stem(word)) in carried
            )
    named_things = identifiers(text)
    for name in (
        *named_things.paths,
        *named_things.commands,
        *named_things.errors,
        *named_things.identifiers,
        *named_things.urls,
    ):
        carried[f"={name}"] = IDENTIFIER_PER_CHAR * min(len(name), IDENTIFIER_CHARS)
    return carried


def longest_front(many: int, fits: Callable[[int], bool], *, near: int | None = None) -> int:
    """Return the largest number up to `many` of which `fits` is true, as it is of all smaller ones; it is not asked of 0.

    The search starts at `near`, if a guess is known, and asks less the better that is.

    >>> longest_front(10, lambda number: number * number <= 30), longest_front(10, lambda number: number <= 7, near=6)
    (5, 7)
    """
    low, high, step = 0, many, 1
    probe = max(1, near) if near is not None else many + 1
    while low < probe <= high:
        if fits(probe):
            low, probe = probe, min(many, probe + step) if high == many else 0
        else:
            high, probe = probe - 1, max(1, probe - step) if not low else 0
        step *= 2
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def heaviest_fitting(costs: Iterable[tuple[int, float, int]], *, most: int) -> set[int]:
    """Return the keys of `costs` (key, weight, tokens) that fit into `most`, the heaviest first, then the newest.

    >>> heaviest_fitting([(1, 0.5, 60), (2, 0.9, 50), (3, 0.5, 40)], most=100)
    {2, 3}
    """
    chosen: set[int] = set()
    for key, _, cost in sorted(costs, key=lambda cost: (cost[1], cost[0]), reverse=True):
        if cost <= most:
            chosen.add(key)
            most -= cost
    return chosen

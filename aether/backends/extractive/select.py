"""Selection: in which order clauses are worth keeping, by the news each adds per token.

Greedy: take the clause whose new terms weigh most per token, count its terms as said, repeat. A term said
once more is worth a fraction of the time before, so repetition falls behind by itself. A clause comes with the
clause it leans on. The cost is that of a heap: n log n.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

# What saying a thing again is worth, against saying it first.
REPEATED = 0.2


# Tiers: lower ones come first, whatever they cost.
FRAMES, RULES, DECIDES, BLOCKS, TOUCHED, BINDS, OPENS, WORTH, FILLS, CARRIES = range(10)
"""Says what it was all for and what came of it; must survive, in this order; names a file that was changed; was meant to last; says what its item is for; is worth keeping; fills up what is left; is kept only where something leans on it."""


class Weight(NamedTuple):
    """What a clause would add, and what it costs."""

    tier: int
    factor: float
    cost: int
    terms: dict[str, float]
    leans_on: int


def ordered(weights: Sequence[Weight]) -> list[int]:
    """Return the places of `weights` in the order in which they are worth keeping."""
    said: dict[str, float] = defaultdict(lambda: 1.0)
    leaning: dict[int, list[int]] = defaultdict(list)
    for place, weight in enumerate(weights):
        if weight.leans_on >= 0:
            leaning[weight.leans_on].append(place)
    chosen: dict[int, None] = {}
    heap = [(*_rank(place, weights, chosen, said), place) for place in range(len(weights))]
    heap = [rank for rank in heap if rank[0] < CARRIES]
    heapq.heapify(heap)
    while heap:
        place = heapq.heappop(heap)[2]
        if place in chosen:
            continue
        rank = (*_rank(place, weights, chosen, said), place)
        if heap and rank > heap[0]:
            heapq.heappush(heap, rank)
            continue
        for taken in _chain(place, weights, chosen):
            chosen[taken] = None
            for term in weights[taken].terms:
                said[term] *= REPEATED
            # What leans on it costs less from now on: it need not bring it along.
            for follower in leaning[taken]:
                if follower not in chosen and weights[follower].tier < CARRIES:
                    heapq.heappush(heap, (*_rank(follower, weights, chosen, said), follower))
    return list(chosen)


def _rank(
    place: int, weights: Sequence[Weight], chosen: Container[int], said: Mapping[str, float]
) -> tuple[int, float]:
    gain = 0.0
    cost = 0
    for link in _chain(place, weights, chosen):
        weight = weights[link]
        gain += weight.factor * sum(worth * said[term] for term, worth in weight.terms.items())
        cost += weight.cost
    return weights[place].tier, -gain / cost


def _chain(place: int, weights: Sequence[Weight], chosen: Container[int]) -> list[int]:
    """Return `place` behind everything it leans on that is not chosen yet."""
    links = []
    while place >= 0 and place not in chosen:
        links.append(place)
        place = weights[place].leans_on
    return links[::-1]

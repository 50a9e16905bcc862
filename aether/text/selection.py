"""Selection: the parts of a text that carry most, chosen without judging what they mean.

A text is cut into units (a sentence of prose, a line of a list, a block of code); each carries the rare words, names and
numbers in it. Units are chosen greedily by what they add to those already chosen, for their tokens, so that a repetition adds
nothing. The same input gives the same choice, in any language.
"""

from __future__ import annotations

import math
from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from aether.text.words import STOPWORDS, sentences, stems
from aether.types import Counter

# Share of the weight of a stem that a second unit with it still adds.
AGAIN = 0.1
# The first and the last unit of a text say what it is about and how it ends.
ENDS_WEIGHT = 1.3


class Unit(NamedTuple):
    """A part of a text that is kept or left out whole."""

    text: str
    weight: float = 1.0
    """Of its speaker: a person's words weigh more than a tool's output."""
    required: bool = False
    """Chosen before all others, as long as there is room."""


def units_of(text: str, *, weight: float = 1.0) -> list[Unit]:
    """Return the units of `text`: sentences of prose, lines of lists and tables, whole blocks of code."""
    parts = [part for part in _parts(text) if part.strip()]
    return [
        Unit(part, weight * (ENDS_WEIGHT if place in (0, len(parts) - 1) else 1.0))
        for place, part in enumerate(parts)
    ]


def _parts(text: str) -> Iterator[str]:
    fenced: list[str] = []
    for line in text.split("\n"):
        fence = line.lstrip().startswith("```")
        if fenced or fence:
            fenced.append(line)
            if fence and len(fenced) > 1:
                yield "\n".join(fenced)
                fenced = []
        elif line.lstrip()[:1] in {"-", "*", "|", "•", "+", ">", "#"}:
            yield line
        else:
            yield from sentences(line)
    if fenced:
        yield "\n".join(fenced)


def choose(units: Sequence[Unit], *, most: int, count: Counter) -> list[int]:
    """Return the positions of the chosen units, ascending; together they have at most `most` tokens by `count`."""
    costs = [max(1, count(unit.text)) for unit in units]
    carried = [{*stems(unit.text)} - STOPWORDS for unit in units]
    spread = Tally(stem for each in carried for stem in each)
    rarity = {stem: 1 + math.log(len(units) / times) for stem, times in spread.items()}
    seen: set[str] = set()
    chosen: list[int] = []
    room = most
    candidates = set(range(len(units)))

    def gain(place: int) -> tuple[bool, float, int]:
        worth = sum(rarity[stem] * (AGAIN if stem in seen else 1.0) for stem in carried[place])
        return units[place].required, units[place].weight * worth / math.sqrt(costs[place]), -place

    while candidates:
        candidates = {place for place in candidates if costs[place] <= room}
        best = max(candidates, key=gain, default=None)
        if best is None:
            break
        candidates.remove(best)
        chosen.append(best)
        room -= costs[best]
        seen |= carried[best]
    return sorted(chosen)

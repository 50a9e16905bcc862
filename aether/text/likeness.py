"""Likeness: whether two statements say the same thing, or opposite things, without a model.

A statement is reduced to a *gist*: weighted stems, each with a sign, and the numbers and names that may
not differ. ``likeness`` compares topics and halves the score where sign, number or name disagree, so
that "use X" is never "do not use X", and "timeout 30" never "timeout 60". Symmetric and reflexive,
exactly: weights are whole numbers.

    topic = shared / (shared + (only_a + only_b) / 2 + min(only_a, only_b))

The last term is what tells a word that was *replaced* (another thing) from a word that was *added*
(more detail). How a statement becomes a gist is said in `gist`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

from aether.text.gist import Gist, gist

# Tuned on the even half of tests/text/likeness_pairs.json, reported on the odd half.
SAME_AT = 0.72
# Opposites share less: "enable" and "remove" are words of their own beside the topic.
CONTRADICTS_AT = 0.55
# Share of the common topic that must carry the opposite sign; below it only an aside is negated.
OPPOSED_SHARE = 0.4
# Share of a statement that a longer one must hold to say the same among other things, and how much longer it may be:
# in a text of many words any few can be found.
BACKED_AT = 0.85
BACKED_SPAN = 3
# What weighs less (two words with a topic weigh 20) stands in too many statements by accident.
LEAST_BACKED = 20
# Pairs looked at when all statements of an index are compared with all, at most: about a second. Only thousands of
# statements, or hundreds without a rare word, come near it.
MOST_PAIRS = 200_000
# Score of a pair whose topics are equal but whose signs, numbers or names are not.
DISAGREEMENT = 0.5


class Index(NamedTuple):
    """Statements, findable by likeness; made by `index`, asked by `nearest`, `opposites`, `holders`, `mentions`."""

    gists: list[Gist]
    postings: dict[str, list[int]]
    """Where each stem occurs."""
    rare: dict[str, list[int]]
    """Where each stem is among the rarest of a statement, without which nothing can be the same."""


class Near(NamedTuple):
    """A statement of an index that is like the one asked about."""

    at: int
    likeness: float


def likeness(a: str, b: str) -> float:
    """Return how much `a` and `b` say the same, from 0 to 1; at least ``SAME_AT`` counts as the same.

    >>> likeness("Use atomic writes for state files", "State files must be written atomically") > 0.9
    True
    """
    return gist_likeness(gist(a), gist(b))


def same(a: str, b: str) -> bool:
    """Return whether `a` and `b` say the same thing.

    >>> same("timeout 30", "timeout 60"), same("Retry three times", "retry 3 times")
    (False, True)
    """
    return likeness(a, b) >= SAME_AT


def contradicts(a: str, b: str) -> bool:
    """Return whether `a` and `b` are about one thing and cannot both hold.

    >>> contradicts("Use tabs", "Never use tabs"), contradicts("Use tabs", "Use locks")
    (True, False)
    """
    return gists_contradict(gist(a), gist(b))


def contained(a: str, b: str) -> float:
    """Return how much of what `a` says is also said in `b`; 0 where `b` lacks a number or name, or says the opposite.

    >>> contained("Cap retries at 3", "We cap retries at 3 and log each of them"), contained("Use tabs", "Use spaces")
    (1.0, 0.23076923076923078)
    """
    return _contained(gist(a), gist(b))


def gist_likeness(a: Gist, b: Gist) -> float:
    """Return the likeness of two statements by their gists."""
    if a.plain == b.plain:
        return 1.0
    topic = _topic(a, b)
    agree = a.numbers == b.numbers and a.question == b.question
    if agree and not _other_names(a, b) and not _opposed(a, b):
        return topic
    return topic * DISAGREEMENT


def gists_contradict(a: Gist, b: Gist) -> bool:
    """Return whether two statements contradict each other, by their gists."""
    if a.question or b.question or _other_names(a, b) or _topic(a, b) < CONTRADICTS_AT:
        return False
    other_number = bool(a.numbers - b.numbers) and bool(b.numbers - a.numbers)
    # "not 30" and "60" agree: two differences undo each other.
    return _opposed(a, b) != other_number


def index(statements: Iterable[str]) -> Index:
    """Return `statements` as an index for `nearest` and its kin."""
    gists = [gist(statement) for statement in statements]
    postings: dict[str, list[int]] = defaultdict(list)
    rare: dict[str, list[int]] = defaultdict(list)
    for at, each in enumerate(gists):
        for term in each.weights or (each.plain,):
            postings[term].append(at)
    for at, each in enumerate(gists):
        for term in _rarest(each, postings, _share(SAME_AT)):
            rare[term].append(at)
    return Index(gists, dict(postings), dict(rare))


def nearest(statement: str, among: Index | Sequence[str], *, at_least: float = SAME_AT) -> list[Near]:
    """Return what in `among` is at least `at_least` like `statement`, most like first.

    Far from comparing all with all: two that are the same share a stem that is among the rarest of both, because the
    common ones alone cannot carry the score. Exact unless so many share one that all pairs are more than ``MOST_PAIRS``.
    """
    found = among if isinstance(among, Index) else index(among)
    asked = gist(statement)
    near = [
        Near(at, gist_likeness(asked, found.gists[at]))
        for at in _candidates(asked, found, at_least)
        # What is of another topic need not be looked at twice.
        if asked.plain == found.gists[at].plain or _topic(asked, found.gists[at]) >= at_least
    ]
    return sorted(
        (each for each in near if each.likeness >= at_least), key=lambda each: (-each.likeness, each.at)
    )


def opposites(statement: str, among: Index | Sequence[str]) -> list[int]:
    """Return the positions in `among` of the statements that contradict `statement`, in order."""
    found = among if isinstance(among, Index) else index(among)
    asked = gist(statement)
    candidates = sorted(_candidates(asked, found, CONTRADICTS_AT))
    return [at for at in candidates if gists_contradict(asked, found.gists[at])]


def holders(statement: str, among: Index | Sequence[str], *, at_least: float) -> list[int]:
    """Return the positions in `among` of the statements that contain `at_least` that share of `statement`, in order."""
    found = among if isinstance(among, Index) else index(among)
    asked = gist(statement)
    candidates = sorted(_reach(asked, found, at_least))
    return [at for at in candidates if _contained(asked, found.gists[at]) >= at_least]


def backers(statement: str, among: Index | Sequence[str]) -> list[int]:
    """Return the positions in `among` of what says the same as `statement`, alone or among other things.

    >>> backers("Amounts are integer cents", ["VAT amounts are integer cents too, no floats", "Amounts are floats"])
    [0]
    """
    found = among if isinstance(among, Index) else index(among)
    asked = gist(statement)
    longer = islice(_reached(asked, found.postings, BACKED_AT), _most(found))
    there = {at for at in longer if _backs(found.gists[at], asked)}
    return sorted(there | {near.at for near in nearest(statement, found)})


def backed(statement: str, among: Index | Sequence[str]) -> list[int]:
    """Return the positions in `among` of what `statement` says, alone or among other things; the most like first."""
    found = among if isinstance(among, Index) else index(among)
    asked = gist(statement)
    near = [each.at for each in nearest(statement, found)]
    rare = chain.from_iterable(found.rare.get(term, ()) for term in asked.weights)
    shorter = {at for at in islice(rare, _most(found)) if at not in near and _backs(asked, found.gists[at])}
    return near + sorted(shorter, key=lambda at: (-found.gists[at].total, at))


def mentions(statement: str, among: Index | Sequence[str], *, at_least: float) -> list[int]:
    """Return the positions in `among` that speak of `at_least` that share of `statement`, whatever they say of it."""
    found = among if isinstance(among, Index) else index(among)
    weights = gist(statement).weights
    total = sum(weights.values())
    return [
        at
        for at in sorted(_reach(gist(statement), found, at_least))
        if sum(weight for term, weight in weights.items() if term in found.gists[at].weights)
        >= at_least * total
    ]


def _share(at_least: float) -> float:
    """Return the share of each statement that two must have in common; follows from the formula of the topic."""
    return at_least / (2 - at_least)


def _most(found: Index) -> int:
    """Return how many statements of an index one is compared with at most."""
    return max(1, MOST_PAIRS // max(1, len(found.gists)))


def _candidates(asked: Gist, found: Index, at_least: float) -> set[int]:
    if at_least < SAME_AT:
        return _reach(asked, found, _share(at_least))
    reached = islice(_reached(asked, found.postings, _share(at_least), found.rare), _most(found))
    # What is shared weighs no more than the lighter of the two.
    least, most = asked.total * _share(at_least), asked.total / _share(at_least)
    return {
        at
        for at in reached
        if least <= found.gists[at].total <= most and found.gists[at].numbers == asked.numbers
    }


def _reach(asked: Gist, found: Index, share: float) -> set[int]:
    """Return the positions of all that may hold `share` of the weight of `asked`."""
    return set(islice(_reached(asked, found.postings, share), _most(found)))


def _reached(
    asked: Gist, postings: Mapping[str, list[int]], share: float, lists: Mapping[str, list[int]] | None = None
) -> Iterator[int]:
    """Yield the positions that share one of the rarest stems of `asked`, each once, the rarest stem first."""
    seen: set[int] = set()
    for term in _rarest(asked, postings, share):
        for at in (lists or postings).get(term, ()):
            if at not in seen:
                seen.add(at)
                yield at


def _rarest(asked: Gist, postings: Mapping[str, list[int]], share: float) -> Iterator[str]:
    """Yield the rarest stems of `asked`, until what is left weighs less than `share` of it."""
    left, needed = asked.total, asked.total * share
    if not asked.weights:
        yield asked.plain
    for term in sorted(asked.weights, key=lambda term: (len(postings.get(term, ())), term)):
        if left < needed:
            break
        yield term
        left -= asked.weights[term]


def _contained(a: Gist, b: Gist) -> float:
    if a.plain == b.plain:
        return 1.0
    if (
        not a.weights
        or not a.numbers <= b.numbers
        or not a.names <= b.names | b.weights.keys()
        or _opposed(a, b)
    ):
        return 0.0
    return _mentioned(a, b) / a.total


def _backs(longer: Gist, a: Gist) -> bool:
    """Return whether `longer` says what `a` says among a few other things."""
    if a.total < LEAST_BACKED or longer.total > BACKED_SPAN * a.total or a.question or longer.question:
        return False
    return _mentioned(a, longer) >= BACKED_AT * a.total and _contained(a, longer) >= BACKED_AT


def _mentioned(a: Gist, b: Gist) -> int:
    return sum(weight for term, weight in a.weights.items() if term in b.weights)


def _topic(a: Gist, b: Gist) -> float:
    if len(a.weights) > len(b.weights):
        a, b = b, a
    shared = 0
    others = b.weights
    for term, weight in a.weights.items():
        if term in others:
            other = others[term]
            shared += min(weight, other)
    if not shared:
        return 0.0
    only_a, only_b = a.total - shared, b.total - shared
    return shared / (shared + (only_a + only_b) / 2 + min(only_a, only_b))


def _opposed(a: Gist, b: Gist) -> bool:
    shared = opposed = 0
    for term, weight in a.weights.items():
        if term in b.weights:
            common = min(weight, b.weights[term])
            shared += common
            opposed += common if a.signs[term] != b.signs[term] else 0
    return opposed > 0 and opposed >= OPPOSED_SHARE * shared


def _other_names(a: Gist, b: Gist) -> bool:
    only_a = {name for name in a.names - b.names if name not in b.weights}
    only_b = {name for name in b.names - a.names if name not in a.weights}
    return bool(only_a) and bool(only_b)

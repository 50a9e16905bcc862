"""Room: which facts a summary of so many tokens holds; of too many, the easiest to find again are dropped first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

from aether.conversation.progress import middle_cut
from aether.conversation.readings import names_in
from aether.conversation.shapes import Facts, Summary
from aether.conversation.summary import rendered, rendered_lines, written_entry
from aether.messages import providers
from aether.messages.convert import new_message
from aether.messages.model import Message, ProviderFormat, Role
from aether.messages.tool_calls import FileFact
from aether.text.selection import Unit, longest_front, ranking
from aether.text.words import pluralize
from aether.tokens.count import message_tokens
from aether.tokens.counters import factor_of_estimate, scaled
from aether.tokens.estimate import price, tokens_of
from aether.types import Counter

# Without room for all, requests with their middle cut out: what is wanted comes first, a rule may come last.
SHORT_REQUEST_CHARS, LEAST_REQUEST_CHARS = 240, 100
# The newest of these describe the present state; they outlive the older ones of everything else.
NEWEST = 3
# Requests compared with each other; of more the older ones come last.
MOST_RANKED = 1_000
NEWEST_NAMES = 20
NEWEST_DECISIONS = 10
NEWEST_FILES = 12
# Files read last are about to be used; a path costs as much as three names, so more would displace ids that people gave.
NEWEST_READ = 3
# Paragraphs of the state: about the newest answer.
NEWEST_STATE = 24
# In a small summary the words of a person are worth more than the others.
LEAST_STATE = 8
NEWEST_DONE = 18
# Of the room, for the newest words of a person: about 5 % of the window.
WORDS_SHARE = 0.28
# The newest of the dropped requests, whose names may stay.
NAMED_REQUESTS = 100
# Share by which the sum over the entries may exceed the tokens of the whole, which is written with less than each alone.
SUM_ERROR = 0.05
# A shortened goal or constraint keeps at least this much.
LEAST_CHARS = 80
CUT = "… [the rest of this was removed with the messages; see the archive]"
# Halvings between the whole text and the least of it.
_HALVINGS = 12


class FittedSummary(NamedTuple):
    """The facts that a summary has room for, the facts dropped in words, and the tokens of its message without prose."""

    facts: Facts
    lost: list[str]
    tokens: int


class Sizes:
    """Tokens of the entries of a summary, each counted once, and their sums, which are near to the tokens of the whole."""

    def __init__(self, count: Counter) -> None:
        """Start without any; texts are counted by `count`."""
        self.count = count
        self._entries: dict[tuple[str, Any], int] = {}
        self._lines: dict[str, int] = {}
        self._factor = factor_of_estimate(count)
        self.of_line = max(1, count("- \n"))
        """Tokens of a line without a text."""

    def entry(self, field: str, entry: Any) -> int:
        """Return the tokens of one entry with the mark of its line, or that between names; of a path those of its end."""
        tokens = self._entries.get((field, entry))
        if tokens is None:
            short = entry._replace(path=entry.path.rpartition("/")[2]) if field == "files" else entry
            text = written_entry(field, short)
            if self._factor is None or field == "names":
                tokens = self.count(f"{text} | " if field == "names" else f"- {text}\n")
            else:
                tokens = scaled(tokens_of(self._price(f"- {text}".replace("\n", "\n  "))), self._factor)
            self._entries[field, entry] = tokens
        return tokens

    def _price(self, line: str) -> int:
        price_of_line = self._lines.get(line)
        if price_of_line is None:
            price_of_line = self._lines[line] = price(f"{line}\n")
        return price_of_line

    def sum(self, facts: Facts) -> int:
        """Return the tokens of all entries."""
        return sum(self.entry(field, entry) for field in Facts._fields for entry in getattr(facts, field))

    def whole(self, facts: Facts, version: int = 1) -> int:
        """Return the tokens of a summary with these facts and without prose; by the estimate, lines are priced once."""
        lines = rendered_lines(Summary(version, facts, ""))
        if self._factor is None:
            return self.count("\n".join(lines))
        return scaled(tokens_of(sum(map(self._price, lines))), self._factor)


def fit_summary(
    facts: Facts, version: int, provider: ProviderFormat, *, sizes: Sizes, most: int
) -> FittedSummary:
    """Return the facts that fit into a summary of `most` tokens; goals and constraints may exceed it."""
    count = sizes.count
    around = tokens_around(provider, count)
    fitting, lost = fit_facts(facts, sizes=sizes, most=max(1, most - around))
    return FittedSummary(fitting, lost, around + sizes.whole(fitting, version))


def tokens_around(provider: ProviderFormat, count: Counter) -> int:
    """Return the tokens of a summary message beside its text."""
    return message_tokens(new_message(summary_role(provider), "", provider), count)


def summary_role(provider: ProviderFormat) -> Role:
    """Return the role of a summary message.

    A response of the model that thinks before it calls cannot follow one that does not, and the first message
    must be the user's in formats that join the messages of one side: Anthropic and Gemini.
    """
    return "user" if providers.provider(provider).TRAITS.user_first else "assistant"


def summary_message(summary: Summary, provider: ProviderFormat) -> Message:
    """Return the message that replaces the removed ones."""
    return new_message(summary_role(provider), rendered(summary), provider)


class _Drop(NamedTuple):
    """One kind of entry that may be dropped, the oldest first."""

    name: str
    field: str
    drops: Callable[[Any], object] = lambda _: True
    stay: int = 0
    """How many of the newest are kept."""
    share: float = 0.0
    """Share of the room within which the newest are kept beside the goals and the current request, which a person said
    too; if something is left of each, the shortest as a whole."""
    left: Callable[[Any], Any] = lambda _: None
    """The remainder of a dropped entry; None: nothing."""


def _without_hash(file: FileFact) -> FileFact:
    return file._replace(sha256="")


def _is_read(file: FileFact) -> bool:
    return file.action == "read"


def _hash_of_read(file: FileFact) -> str:
    return file.sha256 if _is_read(file) else ""


def _is_long(text: str) -> bool:
    return middle_cut(text, SHORT_REQUEST_CHARS) != text


def _is_longest(text: str) -> bool:
    return middle_cut(text, LEAST_REQUEST_CHARS) != text


def _shortest(text: str) -> str:
    return middle_cut(text, LEAST_REQUEST_CHARS)


def _shorter(text: str) -> str:
    return middle_cut(text, SHORT_REQUEST_CHARS)


# The easiest to find again first; goals, constraints and the newest pointer to the full text are never dropped.
_DROPS = (
    _Drop("errors that are over", "errors", lambda error: not error.open),
    _Drop("hashes of files that were read", "files", _hash_of_read, left=_without_hash),
    _Drop("files that were read", "files", _is_read, stay=NEWEST_READ),
    _Drop("hashes of files", "files", lambda file: file.sha256, left=_without_hash),
    _Drop("earlier results", "earlier", stay=NEWEST_DONE),
    _Drop("names", "names", stay=NEWEST_NAMES),
    _Drop("open errors", "errors", stay=NEWEST),
    _Drop("parts of requests", "requests", _is_long, share=WORDS_SHARE, left=_shorter),
    _Drop("parts of older paragraphs", "state", _is_long, stay=NEWEST_STATE, left=_shorter),
    _Drop("parts of opening requests", "opening", _is_long, left=_shorter),
    _Drop("names", "names"),
    _Drop("parts of requests", "requests", _is_longest, share=WORDS_SHARE, left=_shortest),
    _Drop("paragraphs of the state", "state", stay=NEWEST_STATE),
    _Drop("earlier results", "earlier"),
    _Drop("files that were read", "files", _is_read),
    _Drop("paragraphs of the state", "state", stay=LEAST_STATE),
    _Drop("requests", "requests", share=WORDS_SHARE),
    _Drop("parts of requests", "requests", _is_longest, left=_shortest),
    _Drop("opening requests", "opening"),
    _Drop("parts of current requests", "current", _is_long, left=_shorter),
    _Drop("paragraphs of the state", "state", stay=NEWEST),
    _Drop("requests", "requests", stay=NEWEST),
    _Drop("decisions", "decisions", stay=NEWEST_DECISIONS),
    _Drop("lookups", "lookups", stay=1),
    _Drop("requests", "requests"),
    _Drop("names", "names"),
    _Drop("decisions", "decisions", stay=NEWEST),
    _Drop("open errors", "errors", stay=NEWEST),
    _Drop("open errors", "errors"),
    _Drop("files", "files", stay=NEWEST_FILES),
    _Drop("decisions", "decisions"),
    _Drop("open calls", "open_calls"),
    _Drop("runs", "ran"),
    _Drop("files", "files"),
    _Drop("paragraphs of the state", "state"),
    _Drop("current requests", "current", stay=1),
    _Drop("current requests", "current"),
    _Drop("next steps", "next"),
)


def fit_facts(facts: Facts, *, sizes: Sizes, most: int) -> tuple[Facts, list[str]]:
    """Return the facts that a summary of `most` tokens without prose holds, and the dropped ones in words.

    Goals and constraints are at worst shortened; only they can make the result larger than `most`.
    """
    dropped: dict[str, int] = {}
    total = sizes.sum(facts)
    for drop in _DROPS:
        # Far beyond the room the sum of the entries says enough.
        if total <= _surely_over(facts, most, sizes) and sizes.whole(facts) <= most:
            break
        facts, number, saved = _without(facts, drop, sizes=sizes, most=most, total=total)
        if number:
            total -= saved
            dropped[drop.name] = dropped.get(drop.name, 0) + number
    lost = [pluralize(number, name) for name, number in dropped.items()]
    if sizes.whole(facts) > most:
        shorter = _shortened(facts, sizes=sizes, most=most)
        lost += ["the ends of goals and constraints"] if shorter != facts else []
        facts = shorter
    return facts, lost


def _surely_over(facts: Facts, most: int, sizes: Sizes) -> int:
    """Return a sum of tokens of entries above which the summary has more than `most` tokens as a whole."""
    entries = sum(len(getattr(facts, field)) for field in Facts._fields)
    return int(most * (1 + SUM_ERROR)) + entries * sizes.of_line


def _without(facts: Facts, drop: _Drop, *, sizes: Sizes, most: int, total: int) -> tuple[Facts, int, int]:
    """Return `facts` with the fewest entries dropped that make it fit, or all if none is enough; their number, and tokens.

    `total` is the sum of the tokens of all entries.
    """
    entries: tuple[Any, ...] = getattr(facts, drop.field)
    places = [index for index, entry in enumerate(entries) if drop.drops(entry)]
    places = places[: max(0, len(places) - drop.stay)]
    if drop.field == "requests" and drop.left(entries[0] if entries else "") is None:
        # What a person said once is worth more than what says again what others say, however old it is.
        worth = {index: rank for rank, index in enumerate(_ranked(entries))}
        places.sort(key=lambda index: (-worth.get(index, len(entries)), index))
    if drop.share and places:
        shortest = drop.left(entries[places[0]]) is not None
        stated_tokens = sizes.count("\n".join((*facts.goals, *facts.current[-1:])))
        staying = _within(entries, drop.share * most - stated_tokens, sizes.count, shortest=shortest)
        places = [index for index in places if index not in staying]
    saved = [0, *accumulate(_saving(facts, drop, index, sizes) for index in places)]
    if total - saved[-1] > _surely_over(facts, most, sizes):
        return _dropped(facts, drop, places), len(places), saved[-1]
    number = next((number for number, tokens in enumerate(saved) if total - tokens <= most), len(places))
    staying_number = longest_front(
        len(places),
        lambda stay: sizes.whole(_dropped(facts, drop, places[: len(places) - stay])) <= most,
        near=len(places) - number,
    )
    number = len(places) - staying_number
    return _dropped(facts, drop, places[:number]), number, saved[number]


def _saving(facts: Facts, drop: _Drop, index: int, sizes: Sizes) -> int:
    """Return about how many tokens the drop of one entry saves."""
    entry = getattr(facts, drop.field)[index]
    left = drop.left(entry)
    return sizes.entry(drop.field, entry) - (0 if left is None else sizes.entry(drop.field, left))


@lru_cache(maxsize=8)
def _ranked(entries: tuple[str, ...]) -> list[int]:
    """Return the places of `entries`, the newest first, then those that add most to the others for their tokens."""
    backwards = range(len(entries) - 1, -1, -1)
    units = [Unit(entries[index]) for index in backwards[:MOST_RANKED]]
    ranks = ranking(units, most=sum(len(unit.text) + 2 for unit in units), count=len)
    return list(dict.fromkeys((*backwards[:NEWEST], *(backwards[index] for index in ranks), *backwards)))


def _within(entries: tuple[str, ...], most: float, count: Counter, *, shortest: bool) -> set[int]:
    """Return the places of the entries that rank first and have at most so many tokens together, or of the `shortest`."""
    places = range(len(entries) - 1, -1, -1)
    ranked = sorted(places, key=lambda index: len(entries[index])) if shortest else _ranked(entries)
    sizes = accumulate(count(entries[index]) for index in ranked)
    return {index for index, size in zip(ranked, sizes, strict=True) if size <= most}


def _dropped(facts: Facts, drop: _Drop, places: Sequence[int]) -> Facts:
    entries: tuple[Any, ...] = getattr(facts, drop.field)
    removed = set(places)
    remaining = ((drop.left(entry) if index in removed else entry) for index, entry in enumerate(entries))
    changed: dict[str, Any] = {drop.field: tuple(entry for entry in remaining if entry is not None)}
    if drop.field == "requests" and (drop.stay or drop.share) and places:
        # The ids and numbers of a dropped request are kept, as they cost little.
        names = [name for index in sorted(places)[-NAMED_REQUESTS:] for name in names_in(entries[index])]
        added = dict.fromkeys(name for name in names if name not in facts.names)
        changed["names"] = tuple(dict.fromkeys((*added, *facts.names)))
    return facts._replace(**changed)


def _shortened(facts: Facts, *, sizes: Sizes, most: int) -> Facts:
    """Return `facts` with goals and constraints cut to the greatest common length that fits."""
    low, high = LEAST_CHARS, max(map(len, (*facts.goals, *facts.constraints)), default=0)
    for _ in range(_HALVINGS):
        middle = (low + high) // 2
        if sizes.whole(_cut_to(facts, middle)) <= most:
            low = middle
        else:
            high = middle
    return _cut_to(facts, low)


def _cut_to(facts: Facts, chars: int) -> Facts:
    goals, constraints = (
        tuple(text if len(text) <= chars + len(CUT) else text[:chars].rstrip() + CUT for text in texts)
        for texts in (facts.goals, facts.constraints)
    )
    return facts._replace(goals=goals, constraints=constraints)

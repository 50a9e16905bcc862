"""Names: ids, numbers, URLs, commands, paths and identifiers that are worth finding again, verbatim."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain

from aether.messages.model import Message
from aether.messages.sources.codex import HEADER
from aether.text.cleaning import clean, without_escapes, without_injected
from aether.text.identifiers import identifiers

# About 500 tokens: as much as the rest of the facts of one stretch of work uses.
MOST_NAMES = 80
# Names after a merge: a summary of eight thousand tokens holds no more.
MOST_MERGED_NAMES = 400
# Longer ones are data.
NAME_CHARS = 120
# Output says what it is about at its two ends.
_HEAD_CHARS, _TAIL_CHARS = 3_000, 1_500
# A longer text was pasted; it has names at its ends, too.
_TEXT_CHARS = 20_000
# The newest calls and results that are read for names, which bounds the time; older ones are in the history.
_MOST_BY_TOOL = 600
# Weight of one use, by its author.
_BY_PERSON, _BY_MODEL, _BY_CALL, _BY_TOOL = 8, 4, 2, 1
# Each compaction of a conversation reads the texts of the one before again.
CACHED_TEXTS = 4_096
_BY_TOOLS = frozenset({"call", "result"})
# Fewer digits count something.
LEAST_DIGITS = 4
_AMOUNT = frozenset("%$€£¥°")
# Letters and digits in one token, with hyphens between ("run-4711", "q21330"), and all of it: not the start of a time or a
# version ("2026-01-23T19:04", "ubuntu-24.04"), nor what follows a "%" in a URL.
_COINED = re.compile(
    r"(?<![\w.,/@:%+-])(?=[\w-]{4})(?=[\w-]{0,60}\d)(?=[\w-]{0,60}[A-Za-z])\w+(?:-\w+)*(?![\w/@%+-]|\.\w|:\d)"
)
# A line of `ls -l` before the name.
_LISTED = re.compile(r"^(?:[-dlbcps][rwxsStT-]{9}\S*(?:\s+\S+){7}|total \d+$)", re.MULTILINE)
# Of names in a numbered series that nobody but tools wrote so many are kept, as examples.
SERIES = 3
_DIGITS = re.compile(r"\d+")


def names_of(messages: Sequence[Message], positions: Iterable[int], *, besides: str = "") -> tuple[str, ...]:
    """Return the names at `positions` that are not in `besides`, the last used at the end.

    A name is an id, number, URL, command, path or identifier, verbatim. Names are ranked by use, first those that a
    person wrote; in tool results only ids and URLs count, which cannot be words. The number is bounded.
    """
    weights: dict[str, int] = {}
    last: dict[str, int] = {}
    said: set[str] = set()
    for order, (weight, names) in enumerate(_uses(messages, positions)):
        for name in names:
            weights[name] = weights.get(name, 0) + weight
            last[name] = order
        if weight >= _BY_MODEL:
            said.update(names)
    ranked = sorted(weights, key=lambda name: -weights[name])
    # As a set: looking for each name in the whole text would be quadratic in a long stretch.
    listed = set(names_in(besides))
    newest = sorted((name for name in ranked if name not in listed), key=lambda name: last[name])
    few = set(_few_of_a_series(newest, said=said))
    chosen = [name for name in ranked if name in few][:MOST_NAMES]
    return tuple(sorted(chosen, key=lambda name: last[name]))


def merged_names(older: Sequence[str], newer: Sequence[str]) -> tuple[str, ...]:
    """Return each name once, the newest at the end; of too many, the oldest are dropped.

    >>> merged_names(["a1", "b2"], ["a1"])
    ('b2', 'a1')
    """
    return tuple(reversed(dict.fromkeys(reversed((*older, *dict.fromkeys(newer))))))[-MOST_MERGED_NAMES:]


def names_in(text: str) -> list[str]:
    """Return the names in the text of a person or a model.

    >>> names_in("Order 48213 failed 3 times in fetch_user, see https://x.org/a")
    ['https://x.org/a', 'fetch_user', '48213']
    >>> names_in("Run run-4711 in eu-west-1a")
    ['run-4711', 'eu-west-1a']
    """
    hits = identifiers(text)
    amounts = filter(_is_amount, hits.numbers)
    every = chain(hits.urls, hits.commands, hits.identifiers, amounts, _COINED.findall(text), hits.paths)
    return [name for name in dict.fromkeys(every) if _is_name(name)]


def _is_name(text: str) -> bool:
    """Return whether a token is no option, no estimate ("~350"), no data, and not as short as "#1" or "i.e"."""
    return (len(text) > 3 or "_" in text) and len(text) <= NAME_CHARS and text[0] not in "-~"


def _is_amount(number: str) -> bool:
    """Return whether a number says more than how many: it is long and no time or range, or has a currency or percentage."""
    is_long = sum(map(str.isdecimal, number)) >= LEAST_DIGITS and {*number}.isdisjoint(":-/")
    return is_long or not _AMOUNT.isdisjoint(number)


def _few_of_a_series(names: Sequence[str], *, said: Collection[str]) -> list[str]:
    """Return `names` with the newest few of each numbered series of words that nobody `said`."""
    seen: dict[str, int] = {}
    few: list[str] = []
    for name in reversed(names):
        series = "" if name in said or not any(map(str.isalpha, name)) else _DIGITS.sub("#", name)
        seen[series] = seen.get(series, 0) + 1
        if not series or seen[series] <= SERIES:
            few.append(name)
    return few[::-1]


def _uses(messages: Sequence[Message], positions: Iterable[int]) -> Iterator[tuple[int, list[str]]]:
    """Yield the names in each block with the weight of its author."""
    listed = list(positions)
    by_tool = sum(block.kind in _BY_TOOLS for at in listed for block in messages[at].blocks)
    for at in listed:
        for block in messages[at].blocks:
            if block.kind == "text" and messages[at].role != "system":
                weight = _BY_PERSON if messages[at].role == "user" else _BY_MODEL
                yield weight, list(_names_in_message(_ends(block.text, _TEXT_CHARS)))
            elif block.kind in _BY_TOOLS:
                by_tool -= 1
                if by_tool < _MOST_BY_TOOL:
                    weight = _BY_CALL if block.kind == "call" else _BY_TOOL
                    yield weight, list(_ids_in(without_escapes(_ends(block.text, _HEAD_CHARS))))


@lru_cache(maxsize=CACHED_TEXTS)
def _names_in_message(text: str) -> tuple[str, ...]:
    return tuple(names_in(clean(text)))


@lru_cache(maxsize=CACHED_TEXTS)
def _ids_in(text: str) -> tuple[str, ...]:
    """Return the ids and URLs in the text of a call or a result: what has digits and cannot be a word."""
    listed = _LISTED.sub("", without_injected(HEADER.sub("", text)))
    hits = identifiers(listed)
    amounts = filter(_is_amount, hits.numbers)
    names = dict.fromkeys((*hits.urls, *hits.identifiers, *amounts, *_COINED.findall(listed)))
    # A round number is an amount, such as a limit of time.
    return tuple(
        name
        for name in names
        if _is_name(name) and len(name) > LEAST_DIGITS and _DIGITS.search(name) and not name.endswith("000")
    )


def _ends(text: str, most: int) -> str:
    """Return `text`, or its two ends without the tokens that the cut has torn."""
    if len(text) <= most + _TAIL_CHARS:
        return text
    head, tail = text[:most], text[-_TAIL_CHARS:]
    return f"{head[: -len(head.split()[-1])] if head.split() else head}\n{tail.partition(' ')[2] or tail}"

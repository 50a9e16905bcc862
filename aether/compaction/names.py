"""Names: the ids, numbers, URLs, commands, paths and identifiers of a stretch that someone may look for again.

A name is verbatim text. Ranked by use, what the person said first; what only tools said counts where it cannot
be a word (ids and URLs). Bounded, so that a listing of ten thousand ids costs no more than one of a hundred.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

from aether.messages.message import Block, Message
from aether.text.anchors import Anchors, anchors
from aether.text.cleaning import clean, without_injected

# About 500 tokens: as much as the rest of the facts of one stretch of work takes.
MOST_NAMES = 80
# What has been carried so far and is new together: a summary of eight thousand tokens holds no more.
MOST_CARRIED = 400
# Longer ones are data.
NAME_CHARS = 120
# Output says what it is about at its two ends.
_HEAD_CHARS, _TAIL_CHARS = 3_000, 1_500
# A text beyond this is something pasted; its names stand at its ends, too.
_TEXT_CHARS = 20_000
# What tools said longer ago is in the history; the newest so many calls and results bound the time this takes.
_MOST_BY_TOOL = 600
# Weight of one use, by who uses it.
_BY_PERSON, _BY_MODEL, _BY_CALL, _BY_TOOL = 8, 4, 2, 1

# Small bare numbers count things; they identify nothing.
_TELLING_NUMBER = re.compile(r".*\d{3}|.*[%$€£¥°]|\D*\d+[.,:]\d+|.*\d[A-Za-zµ]", re.DOTALL)
_LINE_NUMBER = re.compile(r"\d{1,4}")
# A clock, a range of lines or a guess names nothing; of a listing neither do the sizes.
_CLOCK = re.compile(r"~.*|\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?|\d+(?:-\d+)+(?<!\d{4}-\d\d-\d\d)|\d{1,2}x")
_LISTED = re.compile(r"^[-dlbcps][rwxsStT-]{9}[.+@]?\s.*$|^total \d+$", re.MULTILINE)
_LISTED_NAME = re.compile(r"\S+(?: -> \S+)?$")
_ID = re.compile(r"(?=.*\d)(?!--?[A-Za-z]).{5,}", re.DOTALL)
# Words and numbers on a string ("run-4711", "eu-west-1a", "q21330"): letters and digits in one token.
_COINED = re.compile(
    r"(?<![\w./@:-])(?=[\w-]{4})(?=[\w-]{0,60}\d)(?=[\w-]{0,60}[A-Za-z])\w+(?:-\w+)*(?![\w/@-])"
)
_OPTION = re.compile(r"--?[A-Za-z][\w-]*$")

# What is numbered through in code and logs: a few show how they are called.
SERIES = 3
_NUMBERED = re.compile(r"[a-z_]+(?:_?\d+)+(?:_[a-z]+)?")
_DIGITS = re.compile(r"\d+")

_BY_TOOLS = frozenset({"call", "result"})


def names_of(messages: Sequence[Message], positions: Iterable[int], *, besides: str = "") -> tuple[str, ...]:
    """Return the names at `positions` that do not stand in `besides` already, what was used last at the end."""
    weights: dict[str, int] = {}
    last: dict[str, int] = {}
    said: set[str] = set()
    for order, (weight, found) in enumerate(_uses(messages, positions)):
        for name in found:
            weights[name] = weights.get(name, 0) + weight
            last[name] = order
        if weight >= _BY_MODEL:
            said.update(found)
    ranked = sorted(weights, key=lambda name: -weights[name])
    # As a set: looking for each name in the whole text would be quadratic in a long stretch.
    known = set(names_in(besides))
    newest = sorted((name for name in ranked if name not in known), key=lambda name: last[name])
    few = set(_few_of_a_series(newest, said=said))
    kept = [name for name in ranked if name in few][:MOST_NAMES]
    return tuple(sorted(kept, key=lambda name: last[name]))


def _few_of_a_series(names: Sequence[str], *, said: Collection[str]) -> list[str]:
    """Return `names` with the newest few of what is numbered through: in code always, else where nobody `said` it."""
    seen: dict[str, int] = {}
    found: list[str] = []
    for name in reversed(names):
        series = _DIGITS.sub("#", name) if name not in said or _NUMBERED.fullmatch(name) else ""
        seen[series] = seen.get(series, 0) + 1
        if not re.search(r"[A-Za-z]", series) or seen[series] <= SERIES:
            found.append(name)
    return found[::-1]


def names_in(text: str) -> list[str]:
    """Return the names in what someone said.

    >>> names_in("Order 48213 failed 3 times in fetch_user, see https://x.org/a")
    ['https://x.org/a', 'fetch_user', '48213']
    >>> names_in("Run run-4711 in eu-west-1a")
    ['run-4711', 'eu-west-1a']
    """
    found = anchors(text)
    every = chain(found.urls, found.commands, _words(found), _COINED.findall(text), found.paths)
    return [name for name in dict.fromkeys(every) if _fits(name)]


def merged_names(older: Sequence[str], newer: Sequence[str]) -> tuple[str, ...]:
    """Return each name once, what is newest at the end; of too many, the oldest go.

    >>> merged_names(["a1", "b2"], ["a1"])
    ('b2', 'a1')
    """
    again = set(newer)
    every = [*(name for name in older if name not in again), *dict.fromkeys(newer)]
    return tuple(_few_of_a_series(every, said=every)[-MOST_CARRIED:])


def _uses(messages: Sequence[Message], positions: Iterable[int]) -> Iterator[tuple[int, list[str]]]:
    listed = list(positions)
    by_tool = sum(block.kind in _BY_TOOLS for at in listed for block in messages[at].blocks)
    for at in listed:
        for block in messages[at].blocks:
            if block.kind == "text" and messages[at].role != "system":
                person = messages[at].role == "user"
                text = clean(_ends(block.text, _TEXT_CHARS))
                yield (_BY_PERSON if person else _BY_MODEL), names_in(text)
            elif block.kind in _BY_TOOLS:
                by_tool -= 1
                if by_tool < _MOST_BY_TOOL:
                    yield from _used_by_tool(block)


def _used_by_tool(block: Block) -> Iterator[tuple[int, list[str]]]:
    text = _LISTED.sub(_listed_name, without_injected(_ends(block.text, _HEAD_CHARS)))
    found = anchors(text)
    every = dict.fromkeys((*found.urls, *found.identifiers, *found.numbers, *_COINED.findall(text)))
    ids = [name for name in every if _fits(name) and _is_id(name)]
    yield (_BY_CALL if block.kind == "call" else _BY_TOOL), ids


def _listed_name(line: re.Match[str]) -> str:
    """Return of a line of `ls -l` the name alone."""
    found = _LISTED_NAME.search(line[0])
    return found[0] if found and not line[0].startswith("total ") else ""


def _ends(text: str, most: int) -> str:
    return text if len(text) <= most + _TAIL_CHARS else f"{text[:most]}\n{text[-_TAIL_CHARS:]}"


def _words(found: Anchors) -> Iterator[str]:
    yield from (name for name in found.identifiers if not _OPTION.match(name))
    yield from (number for number in found.numbers if _TELLING_NUMBER.match(number))


def _is_id(name: str) -> bool:
    return bool(_ID.fullmatch(name)) and not _LINE_NUMBER.fullmatch(name)


def _fits(name: str) -> bool:
    return 1 < len(name) <= NAME_CHARS and not _CLOCK.fullmatch(name)

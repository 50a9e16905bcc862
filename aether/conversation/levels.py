"""Summaries of checkpoints: what a summariser is asked at each level, and the same without a model.

The built-in text consists of stretches of the input, word for word: sentences, or of a sentence the words around its
names and numbers. First as many statements as possible get a place in their shortest form, those first that the mode never
compresses; the room that is left goes into whole sentences. So an older checkpoint loses words before it loses facts. What a model
writes gets a part of the room; the rest holds the facts that its text lacks. Deterministic; never more than `most`
tokens, and a checkpoint that is written again never has more than before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from math import sqrt
from typing import NamedTuple

from aether.architects.extractive.digest import candidate_lines
from aether.conversation.modes import mode_rules, never_compressed
from aether.conversation.names import names_in, names_of
from aether.conversation.partition import cut_prose
from aether.conversation.shapes import COMPACT, DETAILED, RemovedText
from aether.messages.model import Message
from aether.text.cleaning import clean, without_injected
from aether.text.regex import lazy
from aether.text.selection import asks, contents, longest_front, units_of
from aether.text.words import STOPWORDS, sentences, stems
from aether.types import Counter, JsonObject

# Of the room of a model's checkpoint: the rest is for facts that its text lacks.
MODEL_SHARE = 0.6
# Of the room: what the prose keeps if there are more facts than fit beside it.
PROSE_SHARE = 0.25
# Worth of a statement by what it carries, at most 1; every name in it, and whose statement it is, add to that.
FULL_CONTENTS = 8.0
NAME_WORTH, PROPER_WORTH, USER_WORTH, KEPT_WORTH, GOAL_WORTH = 1.0, 0.5, 1.0, 3.0, 0.5
MOST_NAMES_COUNTED = 3
# Without a name a statement of less worth is left out at a level.
LEAST_WORTH = {DETAILED: 0.5, 2: 1.5, COMPACT: 2.5}
# Newest statements that are weighed, and characters of one; a longer one is pasted text.
MOST_STATEMENTS = 1_500
MOST_CHARS = 400
HEAD_CHARS, TAIL_CHARS = 12_000, 4_000
# Of the room: what the mode never compresses may take before other facts have a place.
RULES_SHARE = 0.6
# Of the room: names that only tools wrote, and that no chosen statement has.
NAMES_SHARE = 0.15
NAMES_HEAD = "Named: "
BETWEEN_NAMES = " | "
# Between two stretches of one sentence.
GAP = " … "
# Content words before a name that say what it is of, in the shorter forms; each form is so much shorter than the next.
CONTENT_WORDS = (1, 3)
MOST_LEAD_WORDS = 7
SHORTER_SHARE = 0.8

_WORD = lazy(r"\S+")
_PROPER = lazy(r"(?<=[a-z0-9,;:] )[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)*|[\"“'‘][^\"”'’\n]{2,60}[\"”'’]")
_SEGMENT = lazy(r"^\[Segment \d+\]\s*")
_BULLET = lazy(r"^(?:[-*•+] +|\d{1,2}[.)] +|#{1,6} +)+")
_UNIT = lazy(r"^(?:[%°]|[A-Za-zµ]{1,12})(?:/\w+)?[.,;]?$")


class Source(NamedTuple):
    """What a checkpoint is written from."""

    messages: Sequence[Message]
    said: Sequence[RemovedText]
    """The texts of `messages`."""
    previous: str
    """Earlier checkpoints, which the new text replaces."""
    mode: str
    goal: str


class Statement(NamedTuple):
    """One statement that a checkpoint may hold."""

    order: int
    worth: float
    forms: tuple[str, ...]
    """From the shortest to the whole; each a part of the statement, word for word."""
    names: frozenset[str]
    binds: bool
    """Whether it is of a category that the mode never compresses."""
    carries: frozenset[str] = frozenset()
    """Its stems, numbers and names."""


def extract(source: Source, *, level: int, most: int, count: Counter, besides: str = "") -> str:
    """Return a checkpoint of at most `most` tokens; what is in `besides` already is left out.

    Without messages, it has no more tokens than the earlier checkpoints.
    """
    room, beside = _room(source, most, count), besides.casefold()
    every = statements(source)
    found = [
        one
        for one in every
        if (one.names or one.worth >= LEAST_WORTH[level]) and not (beside and _is_in(one, beside))
    ]
    stated = {name for one in every for name in one.names}
    others = [name for name in _names_of_tools(source) if name not in stated]
    lines = [text for _, text in sorted(_chosen(found, room - int(NAMES_SHARE * room) * bool(others), count))]
    text = "\n".join(lines)
    while lines and count(text) > room:  # forms were counted one by one
        lines.pop()
        text = "\n".join(lines)
    left_out = [name for one in sorted(found, key=lambda one: -one.worth) for name in sorted(one.names)]
    unnamed = [
        name
        for name in dict.fromkeys([*left_out, *others])
        if name not in text and name.casefold() not in beside
    ]
    return _with_names(text, unnamed, room, count)


def with_facts(prose: str, source: Source, *, most: int, count: Counter) -> str:
    """Return a model's `prose` with the facts that it lacks; if there is not room for both, the prose is cut."""
    room = _room(source, most, count)
    for share in (1.0, PROSE_SHARE):
        kept = prose if share == 1.0 else cut_prose(prose, most=int(share * room), count=count)
        left = room - count(f"{kept}\n")
        facts = extract(source, level=COMPACT, most=room, count=count, besides=kept)
        if count(facts) <= left:
            break
    else:
        facts = extract(source, level=COMPACT, most=max(0, left), count=count, besides=kept)
    return "\n".join(filter(None, (kept, facts)))


def task(source: Source, *, level: int, most: int) -> JsonObject:
    """Return what a model is asked, as the data of a request: its prompt has the level, the mode and the goal."""
    return {
        "strategy": "task_state", "level": level, "mode": source.mode, "guidance": mode_rules(source.mode).guidance,
        "goal": source.goal, "version": 1, "said": [each._asdict() for each in source.said],
        "previous": source.previous, "facts": {}, "max_tokens": most,
    }  # fmt: skip


def fault(prose: str, source: Source, *, count: Counter) -> str:
    """Return why a model's `prose` cannot replace earlier checkpoints, in words that follow "It"; "" if it can."""
    tokens, before = count(prose), count(source.previous)
    longer = not source.messages and tokens > before
    return f"has {tokens} tokens, what it replaces has {before}" if longer else ""


def statements(source: Source) -> list[Statement]:
    """Return the statements of earlier checkpoints and of removed texts, in order, each once."""
    wanted = frozenset(stems(source.goal)) if source.goal else frozenset[str]()
    texts = [*_previous_lines(source.previous), *list(_said(source.said))[-MOST_STATEMENTS:]]
    found: dict[str, Statement] = {}
    for order, (text, person) in enumerate(texts):
        key = " ".join(text.casefold().split())
        if key not in found:
            found[key] = _statement(order, text, person=person, mode=source.mode, wanted=wanted)
    return list(found.values())


def _room(source: Source, most: int, count: Counter) -> int:
    return most if source.messages else min(most, count(source.previous))


def _previous_lines(previous: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines of earlier checkpoints; a paragraph of a model as its sentences."""
    for line in previous.splitlines():
        text = _bare(_SEGMENT.sub("", line.strip()))
        if not text or text.startswith(NAMES_HEAD):
            continue
        for one in [text] if GAP in text or len(text) <= MOST_CHARS // 2 else sentences(text):
            yield one, False


def _said(said: Sequence[RemovedText]) -> Iterator[tuple[str, bool]]:
    """Yield the sentences of messages, the outcome of commands, changed files, and questions with their answers."""
    by_place: dict[int, list[str]] = {}
    task = {"said": [each._asdict() for each in said], "previous": ""}
    for line in candidate_lines(task):
        if line.sort in ("ran", "changed", "decided"):
            by_place.setdefault(line.at, []).append(line.text)
    for entry in said:
        for text in by_place.pop(entry.at, ()):
            yield text, False
        if entry.tool or entry.role not in ("user", "assistant"):
            continue
        for unit in units_of(clean(without_injected(_ends(entry.text)))):
            text = _bare(unit.text)
            if text and not text.startswith("```"):
                yield text, entry.role == "user"


def _ends(text: str) -> str:
    return text if len(text) <= HEAD_CHARS + TAIL_CHARS else f"{text[:HEAD_CHARS]}\n\n{text[-TAIL_CHARS:]}"


def _bare(text: str) -> str:
    return _BULLET.sub("", " ".join(text.split())).replace("**", "")


def _statement(order: int, text: str, *, person: bool, mode: str, wanted: frozenset[str]) -> Statement:
    names, proper, never = _known(text, mode)
    worth = min(1.0, sum(contents(text).values()) / FULL_CONTENTS) + USER_WORTH * person
    worth += NAME_WORTH * min(len(names), MOST_NAMES_COUNTED) + PROPER_WORTH * min(len(proper), 2)
    # A question states no fact.
    worth = worth + KEPT_WORTH * never if not asks(text) else 0.1
    if wanted and not wanted.isdisjoint(stems(text)):
        worth += GOAL_WORTH
    binds = never and not asks(text)
    forms, named = _forms(text, (*names, *proper)), frozenset((*names, *proper))
    return Statement(order, worth, forms, named, binds, frozenset(contents(text)))


@lru_cache(maxsize=8_192)
def _known(text: str, mode: str) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """Return the names of a statement, its proper names, and whether the mode never compresses it."""
    names = tuple(names_in(text))
    proper = tuple(name for name in dict.fromkeys(_PROPER.findall(text)) if name not in names)
    return names, proper, bool(never_compressed([text], mode))


def _forms(text: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the forms of a statement, from the words right around its names to the whole."""
    forms, listed = [text], list(names)
    for most in reversed(CONTENT_WORDS):
        short = _around(text, listed, content_words=most)
        if short and len(short) <= SHORTER_SHARE * len(forms[-1]):
            forms.append(short)
    return tuple(reversed(forms))


def _around(text: str, names: Iterable[str], *, content_words: int) -> str:
    """Return the stretches of `text` that say what its names are of, verbatim: its subject, and the words before a name.

    >>> _around("By the way, the retry limit of the big export job is 48213 ms for now.", ["48213"], content_words=1)
    'retry limit … job is 48213 ms'
    """
    if GAP in text:
        return ""
    words = [(found.start(), found.end()) for found in _WORD.finditer(text)]
    said = [text[start:end] for start, end in words]
    spans: list[tuple[int, int]] = []
    for name in names:
        at = text.find(name)
        inside = [nth for nth, (start, end) in enumerate(words) if start < at + len(name) and end > at >= 0]
        if not inside:
            continue
        low, high = inside[0], inside[-1]
        content = 0
        while low and content < content_words and inside[0] - low < MOST_LEAD_WORDS:
            low -= 1
            content += _says(said[low])
        if name[-1].isdigit() and high + 1 < len(words) and _UNIT.match(said[high + 1]):
            high += 1
        if low == high:
            high = min(len(words) - 1, high + content_words)
        spans += [(low, high), *_subject(said, low)]
    merged: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return GAP.join(text[words[low][0] : words[high][1]].strip(",;") for low, high in merged)


def _says(word: str) -> bool:
    return word.strip(".,;:()").casefold() not in STOPWORDS


def _subject(said: Sequence[str], before: int) -> list[tuple[int, int]]:
    """Return the place of the first two words that say something, in the clause that place `before` is in."""
    start = max((nth + 1 for nth in range(before) if said[nth].endswith((",", ";", ":"))), default=0)
    places = [nth for nth in range(start, before) if _says(said[nth])][:2]
    near = places[:1] if places and places[-1] - places[0] > 2 else places
    return [(near[0], near[-1])] if near else []


def _chosen(found: Sequence[Statement], room: int, count: Counter) -> list[tuple[int, str]]:
    """Return the chosen statements by their order: as many as possible first, then as whole as possible."""
    costs = {one.order: [count(f"{form}\n") for form in one.forms] for one in found}
    # What was stated again says nothing the second time: the newest statement of it counts.
    ranked = sorted(found, key=lambda one: (-one.worth / sqrt(costs[one.order][0] + 4), -one.order))
    covered: set[str] = set()
    taken: dict[int, int] = {}
    left = room

    def take(some: Iterable[Statement], reserved: float = 0) -> None:
        nonlocal left
        for one in some:
            known = one.carries <= covered and not one.binds
            if one.order not in taken and not known and costs[one.order][0] <= left - reserved:
                taken[one.order] = 0
                covered.update(one.carries)
                left -= costs[one.order][0]

    take((one for one in ranked if one.binds), reserved=(1 - RULES_SHARE) * room)
    take(one for one in ranked if one.binds or one.names)
    for one in sorted(found, key=lambda one: (not one.binds, -one.worth, -one.order)):
        for nth, (short, long) in enumerate(pairwise(costs[one.order]), start=1):
            if one.order in taken and long - short <= left:
                taken[one.order] = nth
                left -= long - short
    take(ranked)
    return [(one.order, one.forms[taken[one.order]]) for one in found if one.order in taken]


def _is_in(one: Statement, beside: str) -> bool:
    """Return whether a text in small letters has a statement, or all names of it."""
    names = bool(one.names) and all(name.casefold() in beside for name in one.names)
    return names or one.forms[-1].casefold() in beside


def _names_of_tools(source: Source) -> list[str]:
    """Return the names in messages, the last used first, and those that earlier checkpoints listed."""
    earlier = [
        name
        for line in source.previous.splitlines()
        if (text := _SEGMENT.sub("", line.strip())).startswith(NAMES_HEAD)
        for name in text.removeprefix(NAMES_HEAD).split(BETWEEN_NAMES)
    ]
    newer = names_of(source.messages, range(len(source.messages)))
    return list(dict.fromkeys([*reversed(newer), *earlier]))


def _with_names(text: str, names: Sequence[str], room: int, count: Counter) -> str:
    """Return `text` with a line of as many `names` as there is room for."""
    head = f"{text}\n{NAMES_HEAD}" if text else NAMES_HEAD
    shown = longest_front(len(names), lambda number: count(head + BETWEEN_NAMES.join(names[:number])) <= room)
    return head + BETWEEN_NAMES.join(names[:shown]) if shown else text

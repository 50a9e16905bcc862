"""Levels: the text of a checkpoint at a level of detail, by a summariser or selected from the input.

Selected text consists of stretches of the input, word for word: sentences, or of a sentence the words around its
names and numbers. First as many statements as possible get a place in their shortest form, those first that the mode never
compresses; the room that is left goes into whole sentences. So an older checkpoint loses words before it loses facts. What
a model writes gets a part of the room; the rest holds the facts that its text lacks. Deterministic; never more than `most`
tokens, and a checkpoint that is written again never has more than before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from math import sqrt
from typing import NamedTuple

from aether.architects.base import Settings
from aether.architects.extractive.digest import candidate_lines
from aether.conversation.facts import names_of, removed_texts
from aether.conversation.modes import mode_rules, never_compressed
from aether.conversation.partition import cut_prose
from aether.conversation.readings import Reading, names_in
from aether.conversation.shapes import COMPACT, DETAILED, RemovedText
from aether.conversation.summarise import Gate, Summarizer, Written, summarise
from aether.messages.model import Message
from aether.text.cleaning import clean, without_injected
from aether.text.regex import lazy
from aether.text.selection import asks, contents, longest_front, units_of
from aether.text.summary_checks import EMPTY, bears_out
from aether.text.words import STOPWORDS, sentences, stems
from aether.types import Counter, JsonObject

# Of the room of a model's checkpoint: the rest is for facts that its text lacks.
MODEL_SHARE = 0.6
TEMPERATURE = 0.3
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
# Of the room at a level: fenced code, in the mode of development; what does not fit whole is left out.
CODE_SHARE = {DETAILED: 0.3, 2: 0.2, COMPACT: 0.1}
CODE_MODE = "developer"
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
_FENCE = lazy(r"^[ \t]{0,8}(`{3,}|~{3,})")
_LOCKED = lazy(r"\[\s*DECISION\s*\][^\n]*\bLOCKED\b", re.IGNORECASE)
_SEGMENT = lazy(r"^\[Segment \d+\]\s*")
_BULLET = lazy(r"^(?:[-*•+] +|\d{1,2}[.)] +|#{1,6} +)+")
_UNIT = lazy(r"^(?:[%°]|[A-Za-zµ]{1,12})(?:/\w+)?[.,;]?$")


class Source(NamedTuple):
    """What a checkpoint is written from."""

    messages: Sequence[Message]
    previous: str
    """Earlier checkpoints, which the new text replaces."""
    mode: str
    goal: str

    @property
    def texts(self) -> tuple[RemovedText, ...]:
        """Return the texts of the messages."""
        return removed_texts(self.messages, range(len(self.messages)))


class CheckpointText(NamedTuple):
    """The text of a checkpoint, and how it was written."""

    text: str
    answer: str
    """The words of a model in it; empty if all was selected."""
    record: JsonObject
    failures: tuple[JsonObject, ...] = ()
    """Why a model's answer is not in it: `backend`, `error_type`, `message`."""


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


def write_checkpoint(
    source: Source, *, level: int, backend: str | Summarizer, settings: Settings, count: Counter, most: int,
    waiting: Callable[[float], object] = lambda _: None,
) -> CheckpointText:  # fmt: skip
    """Return the text of a checkpoint at a level, of at most `most` tokens.

    A model's answer that leaves out names, numbers or what the mode never compresses gets these added word for word. Without
    an answer, or with the extractive backend, the text is selected from the source. Code of the newest messages, and of locked
    decisions, stays verbatim in the mode of development.
    """
    room = _room(source, most, count)
    code = kept_code(source, most=int(CODE_SHARE[level] * room), count=count)
    if code:
        most = room - count(f"\n{code}")
    written = _write_prose(
        source, level=level, backend=backend, settings=settings, count=count, most=most, waiting=waiting
    )
    return written._replace(text="\n".join(filter(None, (written.text, code))))


def _write_prose(
    source: Source, *, level: int, backend: str | Summarizer, settings: Settings, count: Counter, most: int,
    waiting: Callable[[float], object],
) -> CheckpointText:  # fmt: skip
    texts = source.texts
    task = request_task(source, level=level, most=int(most * MODEL_SHARE))

    def accept(prose: str, room: int) -> tuple[str, str]:
        prose = cut_prose(prose, most=room, count=count)
        tokens, before = count(prose), count(source.previous)
        if not source.messages and tokens > before:
            return prose, f"has {tokens} tokens, what it replaces has {before}"
        return prose, "" if prose else EMPTY

    contents_of = [text.text for text in texts]
    gate = Gate(
        contents_of, source.previous, about=[source.goal] if source.goal else None,
        sources=[*contents_of, source.previous, source.goal], accept=accept,
    )  # fmt: skip
    warmth = settings._replace(temperature=TEMPERATURE)
    written: Written = summarise(task, gate, backend=backend, settings=warmth, count=count, waiting=waiting)
    if written.prose:
        full_text = with_facts(written.prose, source, most=most, count=count)
        return CheckpointText(full_text, written.prose, written.record)
    text = extract(source, level=level, most=most, count=count).strip() or source.previous
    if not text:  # nothing in the messages is worth selecting: their first words
        heads = [" ".join(message.text.split())[:120] for message in source.messages]
        text = "\n".join(f"- {head}" for head in heads if head) or f"({len(heads)} messages without text)"
    start = cut_prose(text, most=most, count=count)
    while not start and text and most > 0:  # the first sentence is too long
        text = text[: len(text) * 3 // 4]
        start = text if count(text) <= most else ""
    return CheckpointText(start, "", written.record, tuple(written.failures))


def kept_code(source: Source, *, most: int, count: Counter) -> str:
    r"""Return the fenced blocks that a checkpoint keeps, in order: those of locked decisions first, then the newest.

    >>> kept_code(Source([], "Decided:\n```\nx = 1\n```\nmore", "developer", ""), most=20, count=len)
    '```\nx = 1\n```'
    """
    if source.mode != CODE_MODE:
        return ""
    spoken = [text.text for text in source.texts if not text.tool and text.role in ("user", "assistant")]
    blocks: dict[str, tuple[bool, int]] = {}
    for text in [source.previous, *spoken]:
        is_locked = _LOCKED.search(text) is not None
        for block in fenced_blocks(text):
            blocks[block] = is_locked, len(blocks)
    chosen: dict[str, int] = {}
    for block, (_, place) in sorted(blocks.items(), key=lambda entry: entry[1], reverse=True):
        candidate = "\n".join([*chosen, block])
        if count(candidate) <= most:
            chosen[block] = place
    return "\n".join(sorted(chosen, key=chosen.__getitem__))


def fenced_blocks(text: str) -> list[str]:
    """Return the closed blocks of code between fences in `text`, verbatim."""
    blocks: list[str] = []
    opened: list[str] = []
    fence = ""
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if opened:
            opened.append(line)
            if match and match[1].startswith(fence) and not line.strip().strip(fence[0]):
                blocks.append("\n".join(opened))
                opened = []
        elif match:
            opened, fence = [line], match[1]
    return blocks


def request_task(source: Source, *, level: int, most: int) -> JsonObject:
    """Return what a model is asked, as the data of a request: its prompt has the level, the mode and the goal."""
    return {
        "strategy": "task_state", "level": level, "mode": source.mode, "guidance": mode_rules(source.mode).guidance,
        "goal": source.goal, "version": 1, "said": [text._asdict() for text in source.texts],
        "previous": source.previous, "facts": {}, "max_tokens": most,
    }  # fmt: skip


def extract(source: Source, *, level: int, most: int, count: Counter, besides: str = "") -> str:
    """Return a checkpoint of at most `most` tokens; what is in `besides` already is left out.

    Without messages, it has no more tokens than the earlier checkpoints.
    """
    room, beside = _room(source, most, count), besides.casefold()
    written = sentences(besides)
    every = statements(source)
    candidates = [
        statement
        for statement in every
        if (statement.names or statement.worth >= LEAST_WORTH[level])
        and not (beside and _is_in(statement, beside, written))
    ]
    stated = {name for statement in every for name in statement.names}
    unstated = [name for name in _names_of_tools(source) if name not in stated]
    space = room - int(NAMES_SHARE * room) * bool(unstated)
    lines = [text for _, text in sorted(_choose_forms(candidates, space, count))]
    text = "\n".join(lines)
    while lines and count(text) > room:  # forms were counted one by one
        lines.pop()
        text = "\n".join(lines)
    by_worth = sorted(candidates, key=lambda statement: -statement.worth)
    names = dict.fromkeys([name for statement in by_worth for name in sorted(statement.names)] + unstated)
    missing = [name for name in names if name not in text and name.casefold() not in beside]
    return _with_names(text, missing, room, count)


def with_facts(prose: str, source: Source, *, most: int, count: Counter) -> str:
    """Return a model's `prose` with the facts that it lacks; if there is not room for both, the prose is cut."""
    room = _room(source, most, count)
    facts = extract(source, level=COMPACT, most=room, count=count, besides=prose)
    if count(f"{prose}\n") + count(facts) > room:
        prose = cut_prose(prose, most=int(PROSE_SHARE * room), count=count)
        free = max(0, room - count(f"{prose}\n"))
        facts = extract(source, level=COMPACT, most=free, count=count, besides=prose)
    return "\n".join(filter(None, (prose, facts)))


def statements(source: Source) -> list[Statement]:
    """Return the statements of earlier checkpoints and of removed texts, in order, each once."""
    goal = frozenset(stems(source.goal)) if source.goal else frozenset[str]()
    texts = [*_previous_lines(source.previous), *list(_spoken(source.texts))[-MOST_STATEMENTS:]]
    by_key: dict[str, Statement] = {}
    for order, (text, by_person) in enumerate(texts):
        key = " ".join(text.casefold().split())
        if key not in by_key:
            by_key[key] = _statement(order, text, by_person=by_person, mode=source.mode, goal=goal)
    return list(by_key.values())


def _room(source: Source, most: int, count: Counter) -> int:
    return most if source.messages else min(most, count(source.previous))


def _previous_lines(previous: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines of earlier checkpoints; a paragraph of a model as its sentences."""
    for block in fenced_blocks(previous):  # code is no statement
        previous = previous.replace(block, "")
    for line in previous.splitlines():
        text = _bare(_SEGMENT.sub("", line.strip()))
        if not text or text.startswith(NAMES_HEAD):
            continue
        for sentence in [text] if GAP in text or len(text) <= MOST_CHARS // 2 else sentences(text):
            yield sentence, False


def _spoken(texts: Sequence[RemovedText]) -> Iterator[tuple[str, bool]]:
    """Yield the sentences of messages, the outcome of commands, changed files, and questions with their answers."""
    by_place: dict[int, list[str]] = {}
    task = {"said": [text._asdict() for text in texts], "previous": ""}
    for candidate in candidate_lines(task):
        if candidate.sort in ("ran", "changed", "decided"):
            by_place.setdefault(candidate.at, []).append(candidate.text)
    for entry in texts:
        yield from ((line, False) for line in by_place.pop(entry.at, ()))
        if entry.tool or entry.role not in ("user", "assistant"):
            continue
        text = entry.text
        if len(text) > HEAD_CHARS + TAIL_CHARS:
            text = f"{text[:HEAD_CHARS]}\n\n{text[-TAIL_CHARS:]}"
        for unit in units_of(clean(without_injected(text))):
            line = _bare(unit.text)
            if line and not line.startswith("```"):
                yield line, entry.role == "user"


def _bare(text: str) -> str:
    return _BULLET.sub("", " ".join(text.split())).replace("**", "")


def _statement(order: int, text: str, *, by_person: bool, mode: str, goal: frozenset[str]) -> Statement:
    names, proper, never = _names_in_statement(text, mode)
    is_question = asks(text)
    worth = min(1.0, sum(contents(text).values()) / FULL_CONTENTS) + USER_WORTH * by_person
    worth += NAME_WORTH * min(len(names), MOST_NAMES_COUNTED) + PROPER_WORTH * min(len(proper), 2)
    # A question states no fact.
    worth = 0.1 if is_question else worth + KEPT_WORTH * never
    if goal and not goal.isdisjoint(stems(text)):
        worth += GOAL_WORTH
    every = (*names, *proper)
    return Statement(
        order,
        worth,
        _forms(text, every),
        frozenset(every),
        never and not is_question,
        frozenset(contents(text)),
    )


@lru_cache(maxsize=8_192)
def _names_in_statement(text: str, mode: str) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """Return the names of a statement, its proper names, and whether the mode never compresses it."""
    names = names_in(text)
    proper = tuple(name for name in dict.fromkeys(_PROPER.findall(text)) if name not in names)
    return names, proper, bool(never_compressed([text], mode))


def _forms(text: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the forms of a statement, from the words right around its names to the whole."""
    forms = [text]
    for most in reversed(CONTENT_WORDS):
        short = _around(text, names, content_words=most)
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
    words = [match.span() for match in _WORD.finditer(text)]
    tokens = [text[start:end] for start, end in words]
    spans: list[tuple[int, int]] = []
    for name in names:
        index = text.find(name)
        inside = [
            nth for nth, (start, end) in enumerate(words) if start < index + len(name) and end > index >= 0
        ]
        if not inside:
            continue
        low, high = inside[0], inside[-1]
        content = 0
        while low and content < content_words and inside[0] - low < MOST_LEAD_WORDS:
            low -= 1
            content += _is_content(tokens[low])
        if name[-1].isdigit() and high + 1 < len(words) and _UNIT.match(tokens[high + 1]):
            high += 1
        if low == high:
            high = min(len(words) - 1, high + content_words)
        spans += [(low, high), *_subject(tokens, low)]
    merged: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return GAP.join(text[words[low][0] : words[high][1]].strip(",;") for low, high in merged)


def _is_content(word: str) -> bool:
    return word.strip(".,;:()").casefold() not in STOPWORDS


def _subject(tokens: Sequence[str], before: int) -> list[tuple[int, int]]:
    """Return the place of the first two words that say something, in the clause that place `before` is in."""
    start = max((nth + 1 for nth in range(before) if tokens[nth].endswith((",", ";", ":"))), default=0)
    places = [nth for nth in range(start, before) if _is_content(tokens[nth])][:2]
    near = places[:1] if places and places[-1] - places[0] > 2 else places
    return [(near[0], near[-1])] if near else []


def _choose_forms(candidates: Sequence[Statement], room: int, count: Counter) -> list[tuple[int, str]]:
    """Return the chosen statements by their order: as many as possible first, then as whole as possible."""
    costs = {statement.order: [count(f"{form}\n") for form in statement.forms] for statement in candidates}
    # What was stated again says nothing the second time: the newest statement of it counts.
    ranked = sorted(
        candidates,
        key=lambda statement: (-statement.worth / sqrt(costs[statement.order][0] + 4), -statement.order),
    )
    covered: set[str] = set()
    forms: dict[int, int] = {}
    free = room

    def place(some: Iterable[Statement], reserved: float = 0) -> None:
        nonlocal free
        for statement in some:
            cost, is_repeated = (
                costs[statement.order][0],
                statement.carries <= covered and not statement.binds,
            )
            if statement.order not in forms and not is_repeated and cost <= free - reserved:
                forms[statement.order] = 0
                covered.update(statement.carries)
                free -= cost

    place((statement for statement in ranked if statement.binds), reserved=(1 - RULES_SHARE) * room)
    place(statement for statement in ranked if statement.binds or statement.names)
    for statement in sorted(
        candidates, key=lambda statement: (not statement.binds, -statement.worth, -statement.order)
    ):
        for nth, (short, long) in enumerate(pairwise(costs[statement.order]), start=1):
            if statement.order in forms and long - short <= free:
                forms[statement.order] = nth
                free -= long - short
    place(ranked)
    return [
        (statement.order, statement.forms[forms[statement.order]])
        for statement in candidates
        if statement.order in forms
    ]


def _is_in(statement: Statement, beside: str, written: Sequence[str]) -> bool:
    """Return whether a text, in small letters and as its sentences, has a statement, or all names of it.

    One that the mode never compresses has to be said, not only named.
    """
    if statement.forms[-1].casefold() in beside:
        return True
    if statement.binds:
        return bears_out(written, statement.forms[-1])
    return bool(statement.names) and all(name.casefold() in beside for name in statement.names)


def _names_of_tools(source: Source) -> list[str]:
    """Return the names in messages, the last used first, and those that earlier checkpoints listed."""
    earlier = [
        name
        for line in source.previous.splitlines()
        if (text := _SEGMENT.sub("", line.strip())).startswith(NAMES_HEAD)
        for name in text.removeprefix(NAMES_HEAD).split(BETWEEN_NAMES)
    ]
    newer = names_of([Reading(message, None) for message in source.messages], range(len(source.messages)))
    return list(dict.fromkeys([*reversed(newer), *earlier]))


def _with_names(text: str, names: Sequence[str], room: int, count: Counter) -> str:
    """Return `text` with a line of as many `names` as there is room for."""
    head = f"{text}\n{NAMES_HEAD}" if text else NAMES_HEAD
    number_shown = longest_front(
        len(names), lambda number: count(head + BETWEEN_NAMES.join(names[:number])) <= room
    )
    return head + BETWEEN_NAMES.join(names[:number_shown]) if number_shown else text

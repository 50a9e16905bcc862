"""Statements: a hand-off cut into clauses that can be kept or left out one by one.

Each clause is a stretch of one item, cut and trimmed by `trim`. A clause that is no sentence of its own
leans on another one, and is only ever kept together with it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from aether.backends.extractive.trim import PIECE_CHARS, pieces, trimmed
from aether.text.classify import Kind, classify
from aether.text.sentences import sentences

# Who speaks, at the head of an item: up to three words in front of a colon.
SPOKEN_TYPES = frozenset({"observation", "user_input", "message"})
_SPEAKER = re.compile(r"([A-Z][\w.'-]{0,24}(?: [A-Z][\w.'-]{0,24}){0,2}): (?=\S)")
# These introduce a statement; they do not say it.
_NO_SPEAKERS = frozenset(
    "Note Error Warning Fixed Result Results Summary Decision Reason Todo TODO Done Goal Task Outcome Cause Fix Files "
    "Blocker Solution Constraint Preference Tip Usage Example Problem Answer Question Status Next".split()
)
# The openings of other items are kept in one piece: what was asked, decided, found.
CUT_TYPES = frozenset({"observation", "code_change", "command", "error", "code_snippet"})
# These bind whoever goes on from here: short ones stay in one piece, question, answer and reason together.
BINDING_TYPES = frozenset({"constraint", "decision", "preference", "blocker"})
# From here on an item is of high value by itself (prompts/architect.md).
HIGH_RELEVANCE = 0.7
_INJECTED = re.compile(r"<aether-memory\b.*?(?:</aether-memory>|\Z)", re.DOTALL)


class Clause(NamedTuple):
    """The smallest thing that is kept or left out."""

    place: int
    item: int
    speaker: str
    text: str
    joint: str
    """What stood between it and the clause before it, where that was of the same sentence."""
    kind: Kind
    leans_on: int
    """Place of the clause it cannot stand without; -1 for none."""
    leads: bool
    """Whether it opens its item."""
    required: str = ""
    """Why it must survive: constraint, decision or blocker; empty where it need not."""


class _Said(NamedTuple):
    """What one item says, and who says it."""

    number: int
    item: Mapping[str, Any]
    speaker: str
    text: str


def read(handoff: Mapping[str, Any]) -> list[Clause]:
    """Return the clauses of the items of `handoff` in order, without protected and injected content."""
    protected = {entry.get("id") for entry in handoff["protected"]}
    items = [
        (number, item)
        for number, item in enumerate(handoff["items"])
        if item["id"] not in protected and not item["metadata"].get("injected")
    ]
    texts = [_INJECTED.sub(" ", item["content"]) for _, item in items]
    heads = [
        _SPEAKER.match(text) if item["type"] in SPOKEN_TYPES else None
        for (_, item), text in zip(items, texts, strict=True)
    ]
    times = Counter(head.group(1) for head in heads if head)
    names = frozenset(name for name in times if times[name] > 1) - _NO_SPEAKERS
    clauses: list[Clause] = []
    for (number, item), text, head in zip(items, texts, heads, strict=True):
        if head and head.group(1) in names:
            _cut(clauses, _Said(number, item, head.group(1), text[head.end() :]), names)
        else:
            _cut(clauses, _Said(number, item, "", text), names)
    return clauses


def _cut(
    clauses: list[Clause],
    number: int,
    speaker: str,
    text: str,
    names: frozenset[str],
    *,
    whole: bool,
    required: list[tuple[str, str]],
) -> None:
    leads = True
    before = ""
    for sentence in sentences(text):
        said = " ".join(sentence.split())
        kind = classify(sentence)
        content, why = next(((content, why) for content, why in required if said in content), ("", ""))
        binds = kind == "constraint" and not speaker  # word for word, as it was meant
        short = unbulleted(said) if binds else trimmed(sentence, names=names, spoken=bool(speaker))
        if not short:
            continue
        if why:
            # What must survive is never cut, and what was required as one statement stays one.
            goes_on = content == before
            place = len(clauses)
            clauses.append(
                Clause(
                    place, number, speaker, short, " " if goes_on else "", kind, place - 1 if goes_on else -1,
                    leads and not goes_on, why,
                )
            )  # fmt: skip
        else:
            kind = "chatter" if classify(short) == "chatter" else kind
            _divide(clauses, number, speaker, short, kind, leads=leads, whole=whole)
        before = content
        leads = leads and kind in {"chatter", "exploration"}


def _divide(
    clauses: list[Clause], number: int, speaker: str, short: str, kind: Kind, *, leads: bool, whole: bool
) -> None:
    head = len(clauses)
    weighty = kind in {"constraint", "decision"} or leads
    for piece in pieces(short, whole=whole and weighty):
        place = len(clauses)
        leans_on = -1 if piece.stands else place - 1 if piece.follows else head
        clauses.append(
            Clause(place, number, speaker, piece.text, piece.joint, kind, leans_on, leads and place == head)
        )

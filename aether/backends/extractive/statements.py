"""Statements: a hand-off cut into clauses that can be kept or left out one by one.

Each clause is a stretch of one item, cut and trimmed by `trim`. A clause that is no sentence of its own
leans on another one, and is only ever kept together with it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from aether.backends.extractive.trim import pieces, trimmed
from aether.text.classify import Kind, classify
from aether.text.sentences import sentences

# Who speaks, at the head of an item: up to three words in front of a colon.
_SPEAKER = re.compile(r"([A-Z][\w.'-]{0,24}(?: [A-Z][\w.'-]{0,24}){0,2}): (?=\S)")
# These introduce a statement; they do not say it.
_NO_SPEAKERS = frozenset(
    "Note Error Warning Fixed Result Results Summary Decision Reason Todo TODO Done Goal Task Outcome Cause Fix Files "
    "Blocker Solution Constraint Preference Tip Usage Example Problem Answer Question Status Next".split()
)
# The openings of other items are kept in one piece: what was asked, decided, found.
CUT_TYPES = frozenset({"observation", "code_change", "command", "error", "code_snippet"})
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


def read(handoff: Mapping[str, Any]) -> list[Clause]:
    """Return the clauses of the items of `handoff` in order, without protected and injected content."""
    items = handoff["items"]
    protected = {entry.get("id") for entry in handoff["protected"]}
    texts = [
        ""
        if item["id"] in protected or item["metadata"].get("injected")
        else _INJECTED.sub(" ", item["content"])
        for item in items
    ]
    spoken = [_SPEAKER.match(text) for text in texts]
    heads = Counter(found.group(1) for found in spoken if found)
    names = frozenset(head for head, times in heads.items() if times > 1) - _NO_SPEAKERS
    clauses: list[Clause] = []
    for number, (text, found) in enumerate(zip(texts, spoken, strict=True)):
        speaker = found.group(1) if found and found.group(1) in names else ""
        said = text[found.end() :] if found and speaker else text
        _cut(
            clauses,
            number,
            speaker,
            said,
            names,
            whole=not speaker and _binds(items[number]),
        )
    return clauses


def _binds(item: Mapping[str, Any]) -> bool:
    return item["type"] not in CUT_TYPES or item["metadata"].get("relevance_score", 0.5) > HIGH_RELEVANCE


def _cut(
    clauses: list[Clause], number: int, speaker: str, text: str, names: frozenset[str], *, whole: bool
) -> None:
    leads = True
    for sentence in sentences(text):
        kind = classify(sentence)
        binds = kind == "constraint" and not speaker  # word for word, as it was meant
        short = " ".join(sentence.split()) if binds else trimmed(sentence, names=names, spoken=bool(speaker))
        if not short:
            continue
        kind = "chatter" if classify(short) == "chatter" else kind
        head = len(clauses)
        weighty = kind in {"constraint", "decision", "blocker"} or leads
        for piece in pieces(short, whole=whole and weighty):
            place = len(clauses)
            leans_on = -1 if piece.stands else place - 1 if piece.follows else head
            clauses.append(
                Clause(
                    place, number, speaker, piece.text, piece.joint, kind, leans_on, leads and place == head
                )
            )
        leads = leads and kind in {"chatter", "exploration"}

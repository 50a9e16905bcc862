"""Statements: a hand-off cut into clauses that can be kept or left out one by one.

Each clause is a stretch of one item, cut and trimmed by `trim`. A clause that is no sentence of its own
leans on another one, and is only ever kept together with it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from aether.backends.extractive.trim import PIECE_CHARS, pieces, trimmed, unbulleted
from aether.text.classify import Kind, classify
from aether.text.patterns import lazy
from aether.text.words import sentences

# Who speaks, at the head of an item: up to three words in front of a colon.
SPOKEN_TYPES = frozenset({"observation", "user_input", "message"})
_SPEAKER = lazy(r"([A-Z][\w.'-]{0,24}(?: [A-Z][\w.'-]{0,24}){0,2}): (?=\S)")
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
_INJECTED = lazy(r"<aether-memory\b.*?(?:</aether-memory>|\Z)", re.DOTALL)


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
    required: list[tuple[str, str]]
    """What of it must survive, and why."""


def read(handoff: Mapping[str, Any]) -> list[Clause]:
    """Return the clauses of the items of `handoff` in order, without protected and injected content.

    Where the hand-off names what is `required`, those statements are never cut.
    """
    protected = {entry.get("id") for entry in handoff["protected"]}
    required: dict[str, list[tuple[str, str]]] = {}
    for entry in handoff.get("required", ()):
        required.setdefault(entry["item_id"], []).append((" ".join(entry["content"].split()), entry["why"]))
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
        speaker = head.group(1) if head and head.group(1) in names else ""
        said = text[head.end() :] if head and speaker else text
        _cut(clauses, _Said(number, item, speaker, said, required.get(item["id"], [])), names)
    return clauses


def _cut(clauses: list[Clause], said: _Said, names: frozenset[str]) -> None:
    quoted = not said.speaker and _is_quoted(said.item)
    rule = quoted and said.item["type"] in BINDING_TYPES and len(said.text) <= PIECE_CHARS
    leads = True
    before = ""
    for sentence in [said.text] if rule else sentences(said.text):
        text = " ".join(sentence.split())
        plain = unbulleted(text)
        required = (one for one in said.required if plain in one[0] or one[0] in plain)
        content, why = next(required, ("", ""))
        kind = classify(sentence)
        if rule or (kind == "constraint" and not said.speaker):
            text = unbulleted(text)  # word for word, as it was meant
        else:
            text = trimmed(text, names=names, spoken=bool(said.speaker))
        if not text:
            continue
        kind = "chatter" if classify(text) == "chatter" else kind
        # What was required as one statement stays one.
        goes_on = bool(why) and content == before
        before = content
        told = not said.speaker and kind in {"constraint", "decision"}
        uncut = bool(why) or told or (quoted and (rule or leads or kind == "blocker"))
        first = len(clauses)
        for piece in pieces(text, whole=uncut):
            place = len(clauses)
            leans_on = place - 1 if goes_on or piece.follows else -1 if piece.stands else first
            joint = " " if goes_on and place == first else piece.joint
            opens = leads and place == first
            clauses.append(
                Clause(place, said.number, said.speaker, piece.text, joint, kind, leans_on, opens, why)
            )
        leads = leads and kind in {"chatter", "exploration"}


def _is_quoted(item: Mapping[str, Any]) -> bool:
    return item["type"] not in CUT_TYPES or item["metadata"].get("relevance_score", 0.5) > HIGH_RELEVANCE

"""Clauses: a hand-off cut into clauses that can be kept or left out one by one.

Each clause is a stretch of one item, trimmed of fillers. A clause that is not a sentence of its own depends on another
one, and is only kept together with it. Only words without a meaning of their own are dropped: openers, intensifiers,
names by which speakers address each other, asides that name nothing. Negations, limits ("only", "at most"), conditions
and contrasts stay with the words that they qualify. Lines that look like code, paths or output are not trimmed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from aether.text.classify import Kind, classify
from aether.text.identifiers import identifiers
from aether.text.regex import lazy
from aether.text.words import sentences

# A longer stretch without a place to cut is data; it is cut at a blank, else anywhere.
PIECE_CHARS = 400
# Shorter ends are parts of names and pairs ("black and white").
LEAST_WORDS = 2
# A speaker is named at the head of an item: up to three words in front of a colon.
SPOKEN_TYPES = frozenset({"observation", "user_input", "message"})
_SPEAKER = lazy(r"([A-Z][\w.'-]{0,24}(?: [A-Z][\w.'-]{0,24}){0,2}): (?=\S)")
# These introduce a statement and are not speakers.
_NO_SPEAKERS = frozenset(
    "Note Error Warning Fixed Result Results Summary Decision Reason Todo TODO Done Goal Task Outcome Cause Fix Files "
    "Blocker Solution Constraint Preference Tip Usage Example Problem Answer Question Status Next".split()
)
# The openings of items of other types are kept in one piece: requests, decisions, findings.
CUT_TYPES = frozenset({"observation", "code_change", "command", "error", "code_snippet"})
# These bind later work: short ones stay in one piece, question, answer and reason together.
BINDING_TYPES = frozenset({"constraint", "decision", "preference", "blocker"})
# From here on an item is of high value by itself (prompts/architect.md).
HIGH_RELEVANCE = 0.7
_INJECTED = lazy(r"<aether-memory\b.*?(?:</aether-memory>|\Z)", re.DOTALL)

# Code, output and tables; not prose that names code.
_MACHINE = lazy(r"[{}<>=\\$|]|;$|\w\(|^\s*[@%+]|^\S+\s*$")
# Words inside quotes belong to someone else.
_QUOTED = lazy(r"(`[^`]*(?:`|$)|\"[^\"]*\")")
_OPENER = lazy(
    r"^(?:(?:w+o+w+|oh|yeah|yep|yes|yup|hey|hi|hello|well|ah|a+w+|haha|lol|okay|ok|so|anyway|sure|right|thanks(?: (?:so much|a lot|again))?|thank you(?: so much)?|"
    r"no worries|no problem|yup|of course|absolutely|definitely|totally|actually|honestly|great|perfect|excellent|cool|nice|awesome|congrats|good job|by the way|btw|"
    r"you know|i mean|i guess|to be honest|as you can see|also|plus|and|but|it's true|for sure|good question|great question|totally agree|i agree|agreed)"
    r"(?:[,!.…]+ +| [-–—] ))+",
    re.IGNORECASE,
)
_LEAD_IN = lazy(
    r"^(?:i (?:just )?(?:think|guess|feel like|believe|have to say|must say|wanted to (?:say|let you know)|can say)(?: that)?|i'm (?:so )?(?:glad|happy) (?:to say|that|to hear(?: that)?)|"
    r"it(?:'s| is) (?:worth noting|important to note|great|good|nice|awesome|cool) (?:that|to (?:hear|know|see)(?: that)?)|please note that|note that|and|so|also|plus|then|now|anyway) ",
    re.IGNORECASE,
)
_FILLER = lazy(
    r" (?:really|very|just|actually|definitely|absolutely|totally|honestly|basically|literally|truly|simply|super|quite|kind of|kinda|sort of|of course|for sure|"
    r"as well|after all|in fact)(?=[ ,.!?;]|$)(?! not\b)"
    r"|,? (?:you know|I mean|I guess|I think|though|too|haha|lol|right now)(?=[.!?]*$)"
)
_SPEECH_FILLER = lazy(
    r" (?:such(?= an?\b)|even|finally|incredibly|extremely|a (?:little )?bit|these days|at the moment|pretty much|once again)(?=[ ,.!?;]|$)"
)
_SO = lazy(
    r"(\b(?:is|was|are|were|be|been|being|am|feels?|felt|looks?|looked)|'s|'m|'re) (?:so|pretty)(?= [a-z]+(?:[ ,.!?;]|$))"
    r"(?! (?:that|far|on|much|many|it|i|we|you|to|the|a)\b)"
)
_ASIDE = lazy(r" ?\([^()]{1,120}\)")
_SUBJECT = lazy(
    r"^I(?: (?=[a-z])|'ve (?=(?:been|had|got|started|found|made|seen|done|always|never|also|[a-z]+ed)\b)|'m (?=[a-z]+))(?!am\b|was\b)"
)
_BULLET = lazy(r"^(?:[-*•+] +|\d{1,2}[.)] +|#{1,6} +)+")
_COLON = lazy(r": +")
_BLANKS = lazy(r"\s+")
_SUBJECTS = r"(?:I|we|he|she|they|it|you|there|that|this|my|our|his|her|their)\b(?! (?:and|or)\b)|(?:it|I|we|they|that|he|she|you|there)'(?:s|m|ve|re|d|ll)\b"
_CUT = lazy(
    rf"(?P<own>; +| [-–—]+ +|,? (?:and|so|because|since|cause) (?={_SUBJECTS})|, +(?={_SUBJECTS}))"
    r"|(?P<follows>,? (?=(?:which|who|whose|because|so that|since|while|especially|including|such as|to help|to make)\b)|: +| and | & )"
    r"|(?P<list>, +(?:and |or )?)"
)
_CONDITION = lazy(
    r"(?:if|when|whenever|while|since|because|although|though|after|before|as|once|unless|until|even|without|by|to|for|in|on|at|last|this|next)\b",
    re.IGNORECASE,
)
# A continuation like this changes the meaning of the words before it.
_GLUED = lazy(
    r"(?:but|however|not|if|unless|until|except|although|though|even|then|only|never|no|nor|than)\b",
    re.IGNORECASE,
)
# A stretch without one of these, or a past tense, is the first half of a subject ("Reading and").
_VERB = lazy(
    r"\b(?:am|is|are|was|were|be|been|has|have|had|do|does|did|can|could|will|would|should|must|may|might|went|go|goes|got|get|gets|made|make|makes|took|take|"
    r"takes|saw|see|gave|give|gives|came|come|found|find|felt|feel|feels|kept|keep|keeps|left|let|lets|lost|met|ran|run|runs|said|say|says|sold|sent|set|spent|"
    r"spoke|stood|taught|told|thought|think|won|wrote|write|began|bought|brought|built|caught|chose|drew|drove|ate|fell|flew|grew|heard|held|hit|hurt|knew|know|"
    r"led|lent|love|loves|like|likes|enjoy|enjoys|need|needs|want|wants|help|helps|play|plays|read|use|uses|work|works|look|looks|seem|seems|try|gonna|"
    r"started|keen|off|into|sure|\w{2,}ed)\b|\w'(?:s|m|re|ve|d|ll|t)\b",
    re.IGNORECASE,
)


class Piece(NamedTuple):
    """A clause of a sentence."""

    text: str
    joint: str = ""
    """The text between it and the clause before it."""
    independent: bool = True
    """Whether it is a sentence of its own."""
    follows: bool = False
    """Whether it says something about the clause right before it, not about the whole sentence."""


class Clause(NamedTuple):
    """The smallest unit that is kept or left out."""

    place: int
    item: int
    speaker: str
    text: str
    joint: str
    """The text between it and the clause before it of the same sentence."""
    kind: Kind
    leans_on: int
    """Place of the clause that it depends on; -1: none."""
    leads: bool
    """Whether it opens its item."""
    required: str = ""
    """Why it must be kept: constraint, decision or blocker; empty if it need not be."""


class _Item(NamedTuple):
    """The text of one item, and its speaker."""

    number: int
    item: Mapping[str, Any]
    speaker: str
    text: str
    required: list[tuple[str, str]]
    """The statements of it that must be kept, and why."""


def read_clauses(handoff: Mapping[str, Any]) -> list[Clause]:
    """Return the clauses of the items of `handoff` in order, without protected and injected content.

    Statements that the hand-off names as `required` are never cut.
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
        _cut(clauses, _Item(number, item, speaker, said, required.get(item["id"], [])), names)
    return clauses


def _cut(clauses: list[Clause], said: _Item, names: frozenset[str]) -> None:
    item = said.item
    high = item["metadata"].get("relevance_score", 0.5) > HIGH_RELEVANCE
    quoted = not said.speaker and (high or item["type"] not in CUT_TYPES)
    rule = quoted and item["type"] in BINDING_TYPES and len(said.text) <= PIECE_CHARS
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
            text = trim(text, names=names, spoken=bool(said.speaker))
        if not text:
            continue
        kind = "chatter" if classify(text) == "chatter" else kind
        # A required statement stays one.
        goes_on = bool(why) and content == before
        before = content
        binding = not said.speaker and kind in {"constraint", "decision"}
        uncut = bool(why) or binding or (quoted and (rule or leads or kind == "blocker"))
        first = len(clauses)
        for piece in split_clauses(text, whole=uncut):
            place = len(clauses)
            leans_on = place - 1 if goes_on or piece.follows else -1 if piece.independent else first
            joint = " " if goes_on and place == first else piece.joint
            opens = leads and place == first
            clauses.append(
                Clause(place, said.number, said.speaker, piece.text, joint, kind, leans_on, opens, why)
            )
        leads = leads and kind in {"chatter", "exploration"}


def trim(sentence: str, *, names: frozenset[str] = frozenset(), spoken: bool = False) -> str:
    """Return `sentence` without fillers; empty if nothing is left.

    The subject "I" is dropped, too, if the speaker is named beside the sentence (`spoken`).

    >>> trim("Wow, thanks! I really just fixed the flaky test (at last).")
    'I fixed the flaky test.'
    """
    text = unbulleted(_BLANKS.sub(" ", sentence).strip())
    if is_machine_text(text):
        return text
    text = _called(names).sub("", text) if names else text
    before = ""
    while text != before:
        before = text
        text = _LEAD_IN.sub("", _OPENER.sub("", text, count=1), count=1)
    parts = _QUOTED.split(text)
    parts[::2] = [_SO.sub(r"\1", _FILLER.sub("", part)) for part in parts[::2]]
    text = _ASIDE.sub(
        lambda aside: aside[0] if any(identifiers(aside[0])) or any(map(str.isupper, aside[0][2:])) else "",
        "".join(parts),
    )
    if spoken:
        text = _SUBJECT.sub("", _SPEECH_FILLER.sub("", text), count=1)
    return text.strip(" ,")


def unbulleted(text: str) -> str:
    """Return `text` without the marks of a list or a heading before it.

    >>> unbulleted("- 2. Keep it short")
    'Keep it short'
    """
    return _BULLET.sub("", text) or text


def is_machine_text(text: str) -> bool:
    """Return whether `text` looks like code, output or a path rather than prose."""
    return len(text) > PIECE_CHARS or _MACHINE.search(_QUOTED.sub("x", text)) is not None


def split_clauses(text: str, *, whole: bool = False) -> list[Piece]:
    """Return the clauses of a trimmed sentence; with `whole` as one clause.

    >>> [piece.text for piece in split_clauses("We moved to Lisbon, where it rains less, and she joined a choir.")]
    ['We moved to Lisbon', 'where it rains less', 'she joined a choir.']
    """
    if len(text) > PIECE_CHARS:
        return _chunks(text)
    if whole:
        return [Piece(text)]
    if is_machine_text(text):
        return _headed(text)
    found: list[Piece] = []
    start, joint = 0, ""
    independent, follows = True, False
    held = bool(_CONDITION.match(text))
    quoted = [found.span() for found in _QUOTED.finditer(text)]
    for cut in _CUT.finditer(text):
        if held and cut.group().startswith(","):
            held = False  # this comma ends a leading condition
            continue
        head, rest = text[start : cut.start()], text[cut.end() :]
        if _is_within(cut.start(), quoted):
            continue
        if held or _GLUED.match(rest) or len(head.split()) < LEAST_WORDS or len(rest.split()) < LEAST_WORDS:
            continue
        if not found and not _VERB.search(head):
            continue
        found.append(Piece(head, joint, independent, follows))
        start, joint = cut.end(), cut.group()
        independent, follows = cut.lastgroup == "own", cut.lastgroup == "follows"
    found.append(Piece(text[start:], joint, independent, follows))
    return [piece for piece in found if piece.text]


def _headed(text: str) -> list[Piece]:
    """Return the head of a line and the rest, such as "Ran `make`" and its output."""
    quoted = [found.span() for found in _QUOTED.finditer(text)]
    for cut in _COLON.finditer(text):
        head, rest = text[: cut.start()], text[cut.end() :]
        if rest and not _is_within(cut.start(), quoted) and any(identifiers(head)[:4]):
            return [Piece(head), Piece(rest, cut.group(), independent=False, follows=True)]
    return [Piece(text)]


def _is_within(place: int, spans: list[tuple[int, int]]) -> bool:
    return any(start < place < end for start, end in spans)


def _chunks(text: str) -> list[Piece]:
    found: list[Piece] = []
    start, joint = 0, ""
    while start < len(text):
        rest = len(text) - start > PIECE_CHARS
        blank = text.rfind(" ", start + PIECE_CHARS // 2, start + PIECE_CHARS) if rest else len(text)
        end = blank if blank > 0 else start + PIECE_CHARS
        found.append(Piece(text[start:end], joint, independent=not found))
        joint = " " if text[end : end + 1] == " " else ""
        start = end + len(joint)
    return found


@lru_cache(maxsize=64)
def _called(names: frozenset[str]) -> re.Pattern[str]:
    """Return the pattern of one of `names`, or a short form of one, as an address."""
    shorts = {name[:length] for name in names for length in range(3, len(name) + 1)}
    called = "|".join(re.escape(short) for short in sorted(shorts, key=lambda short: (-len(short), short)))
    return re.compile(rf",? (?:{called})(?=[!.?]*$|[!,])|(?<=[Tt]hanks) (?:{called})\b|^(?:{called})[,!] ")

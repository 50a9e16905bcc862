"""Clauses: a hand-off cut into clauses that can be kept or left out one by one.

Each clause is a contiguous stretch of one item, word for word. A clause that is not a sentence of its own depends on the
one before it, and is only kept together with it, so that kept clauses of a sentence are one stretch, too. Only words
without a meaning of their own are cut, and only at the ends: openers, and names by which speakers address each other.
Parentheses, negations, limits ("only", "at most"), conditions and contrasts stay with the words that they qualify. Lines
that look like code, paths or output are not trimmed, and long ones never cut inside. Of an agent's account, only the
whole sentences that report something are clauses (`accounts.reports`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from aether.text.accounts import Sentence, paragraphs, rate_change, reports, whole
from aether.text.classify import Kind, classify
from aether.text.cleaning import without_emphasis
from aether.text.identifiers import identifiers
from aether.text.regex import lazy
from aether.text.words import sentences

# A longer item is more than one statement.
PIECE_CHARS = 400
# A longer block of code in a message is a listing.
MOST_SHOWN_LINES = 3
# Shorter ends are parts of names and pairs ("black and white").
LEAST_WORDS = 2
# A speaker is named at the head of an item: up to three words in front of a colon.
SPOKEN_TYPES = frozenset({"observation", "user_input", "message"})
_SPEAKER = lazy(r"([A-Z][\w.'-]{0,24}(?: [A-Z][\w.'-]{0,24}){0,2}): (?=\S)")
# These introduce a statement and are not speakers.
_NO_SPEAKERS = frozenset(
    "Note Error Warning Fixed Result Results Summary Decision Reason Todo TODO Done Goal Task Outcome Cause Fix Files "
    "Blocker Solution Constraint Preference Tip Usage Example Problem Answer Question Status Next Asked Answered".split()
)
# The openings of items of other types are kept in one piece: requests, decisions, findings.
CUT_TYPES = frozenset({"observation", "code_change", "command", "error", "code_snippet"})
# An answer, after its question.
ASKED = "Asked: "
# Records of work: code in them is what they are about.
WORK_TYPES = frozenset({"code_change", "command", "error", "code_snippet"})
REQUEST_TYPES = frozenset({"user_input", "user_request", "request"})
# These bind later work: short ones stay in one piece, question, answer and reason together.
BINDING_TYPES = frozenset({"constraint", "decision", "preference", "blocker"})
RESULT_TYPES = frozenset({"outcome", "task_result"})
# The opening of these names the file: which files were changed is never left out.
FILE_TYPES = frozenset({"code_change"})
# A longer statement does not fit a summary.
FRAME_CHARS = 240
# What the host's own summary says is next.
AHEAD_ROLES = frozenset({"next", "pending"})
# From here on an item is of high value by itself (prompts/architect.md).
HIGH_RELEVANCE = 0.7
_INJECTED = lazy(r"<aether-memory\b.*?(?:</aether-memory>|\Z)", re.DOTALL)

# Code, output and tables; not prose that names code.
_MACHINE = lazy(r"[{}<>=\\$|]|;$|\w\(|^\s*[@%+]|^\S+\s*$")
# Words inside quotes belong to someone else.
_QUOTED = lazy(r"(`[^`]*(?:`|$)|\"[^\"]*\")")
_WHOLE = lazy(r"`[^`]*(?:`|$)|\"[^\"]*\"|\((?:[^()]|\([^()]*\))*\)|\[[^\[\]]*\]")
_OPENER = lazy(
    r"^(?:(?:w+o+w+|oh|yeah|yep|yes|yup|hey|hi|hello|well|ah|a+w+|haha|lol|okay|ok|so|anyway|sure|right|thanks(?: (?:so much|a lot|again))?|thank you(?: so much)?|"
    r"no worries|no problem|yup|of course|absolutely|definitely|totally|actually|honestly|great|perfect|excellent|cool|nice|awesome|congrats|good job|by the way|btw|"
    r"you know|i mean|i guess|to be honest|as you can see|also|plus|and|but|it's true|for sure|good question|great question|totally agree|i agree|agreed)"
    r"(?:[,!.…]+ +| [-–—] ))+",
    re.IGNORECASE,
)
_LEAD_IN = lazy(
    r"^(?:i (?:just )?(?:have to say|must say|wanted to (?:say|let you know)|can say)(?: that)?|i'm (?:so )?(?:glad|happy) (?:to say|that|to hear(?: that)?)|"
    r"it(?:'s| is) (?:worth noting|important to note|great|good|nice|awesome|cool) (?:that|to (?:hear|know|see)(?: that)?)|please note that|note that|and|so|also|plus|then|now|anyway) ",
    re.IGNORECASE,
)
_CLOSER = lazy(
    r"(?:,? (?:you know|haha|lol|for sure|of course|as well|after all|too|right now|these days|at the moment|once again))+[.!]*$"
)
_SUBJECT = lazy(
    r"^I(?: (?=[a-z])|'ve (?=(?:been|had|got|started|found|made|seen|done|always|never|also|[a-z]+ed)\b)|'m (?=[a-z]+))(?!am\b|was\b)"
)
_BULLET = lazy(r"^(?:[-*•+] +|\d{1,2}[.)] +|#{1,6} +)+")
_FENCED = lazy(r"^\s*(```|~~~).*?(?:^\s*\1\s*$|\Z)", re.DOTALL | re.MULTILINE)
# A heading, a label over a list, or a mark of the machinery says nothing by itself.
_HEADING = lazy(
    r"#{1,6} |[-*•+\d.) ]*(?:\*\*|__)[^*_]+:?(?:\*\*|__):?$|.*\[… [\d,]+ characters left out …\]", re.DOTALL
)
_LABEL = lazy(r".*[:：]\W*$", re.DOTALL)
# The head of a note on a changed file; the names after it say what, a line of code shows nothing.
_EDITED = lazy(r"(\w+ \S+ \(\d+ (?:lines?|edits?)\)|(?:Changed|Created|Deleted) \S*[./]\S*[^\s:]): ")
# Names of what was changed.
_NAMED = lazy(r"\w[\w.]*(?:, \w[\w.]*)*")
# A task of a plan that is not done.
_UNDONE = ("[pending]", "[in_progress]")
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


class Clause(NamedTuple):
    """The smallest unit that is kept or left out."""

    place: int
    item: int
    speaker: str
    text: str
    joint: str
    """The text between it and the clause before it, if the item has nothing else between them; else empty."""
    kind: Kind
    leans_on: int
    """Place of the clause that it depends on, the one before it; -1: none."""
    leads: bool
    """Whether it opens its item, or says most of an account."""
    required: str = ""
    """Why it must be kept: constraint, decision or blocker; empty if it need not be."""
    begins: bool = True
    """Whether it is the first of its sentence."""
    is_ahead: bool = False
    """Whether it says at the end of the work what comes next."""


class _Item(NamedTuple):
    """The text of one item, and its speaker."""

    number: int
    item: Mapping[str, Any]
    speaker: str
    text: str
    required: list[tuple[str, str]]
    """The statements of it that must be kept, and why."""
    is_last: bool
    """Whether nobody reported or asked anything after it."""


def read_clauses(handoff: Mapping[str, Any]) -> list[Clause]:
    """Return the clauses of the items of `handoff` in order, without protected and injected content.

    Statements that the hand-off names as `required` are never cut.
    """
    protected = {entry.get("id") for entry in handoff["protected"]}
    required: dict[str, list[tuple[str, str]]] = {}
    for entry in handoff.get("required", ()):
        required.setdefault(entry["item_id"], []).append((" ".join(entry["content"].split()), entry["why"]))
    states = {_state(item): number for number, item in enumerate(handoff["items"]) if _state(item)}
    items = [
        (number, item)
        for number, item in enumerate(handoff["items"])
        if item["id"] not in protected
        and not item["metadata"].get("injected")
        and states.get(_state(item), number) == number  # an earlier state is over
    ]
    texts = [_INJECTED.sub("\n\n", item["content"]) for _, item in items]
    heads = [
        _SPEAKER.match(text) if item["type"] in SPOKEN_TYPES else None
        for (_, item), text in zip(items, texts, strict=True)
    ]
    times = Counter(head.group(1) for head in heads if head)
    names = frozenset(name for name in times if times[name] > 1) - _NO_SPEAKERS
    ends = [number for number, item in items if item["type"] in RESULT_TYPES | REQUEST_TYPES]
    clauses: list[Clause] = []
    for (number, item), text, head in zip(items, texts, heads, strict=True):
        speaker = head.group(1) if head and head.group(1) in names else ""
        said = text[head.end() :] if head and speaker else text
        is_last = number >= max(ends, default=0)
        one = _Item(number, item, speaker, said, required.get(item["id"], []), is_last)
        by = item["metadata"]
        if not speaker and (
            by.get("evidence") == "agent" or (by.get("role") == "plan" and item["type"] in RESULT_TYPES)
        ):
            _cut_account(clauses, one)
        elif not speaker and by.get("evidence") == "machine":
            _cut_shown(clauses, one)
        else:
            _cut(clauses, one, names)
    return clauses


def _state(item: Mapping[str, Any]) -> str:
    """Return which state of the work a machine showed by `item` (files to commit, plan), or ""."""
    by = item["metadata"]
    shows = item["type"] == "observation" and by.get("evidence") == "machine"
    return str(by.get("role") or "") if shows else ""


def _cut_account(clauses: list[Clause], said: _Item) -> None:
    """Add the whole sentences of an account that report, and at the end of the work those that say what comes next."""
    source = without_emphasis(" ".join(said.text.split()))
    if said.item["metadata"].get("role") in AHEAD_ROLES:
        found = [Sentence(whole(one.text), is_ahead=True) for one in paragraphs(said.text)]
    else:
        found = reports(said.text)
    found = [one for one in found if one.text and (said.is_last or not one.is_ahead)]
    texts = [one.text for one in found]
    for content, _ in said.required:
        # A required statement stays, whatever its form.
        missing = [
            each
            for each in map(without_emphasis, sentences(content))
            if not any(each in text for text in texts)
        ]
        found += [Sentence(" ".join(each.split())) for each in missing]
    places = {one.text: at for one in found if (at := source.find(unbulleted(one.text))) >= 0}
    found = sorted((one for one in found if one.text in places), key=lambda one: places[one.text])
    most = max((one for one in found if _may_lead(one)), key=lambda one: rate_change(one.text), default=None)
    end = -2
    for one in found:
        text, start = unbulleted(one.text), places[one.text]
        why = next((why for content, why in said.required if text in without_emphasis(content)), "")
        kind = "chatter" if one.is_bare and not why else classify(text)
        place = len(clauses)
        joint = " " if one.leans and start == end + 1 else ""
        clauses.append(
            Clause(
                place, said.number, "", text, joint, kind, place - 1 if joint else -1,
                one is most and said.item["metadata"].get("evidence") == "agent", why, is_ahead=one.is_ahead,
            )
        )  # fmt: skip
        end = start + len(text)


def _cut_shown(clauses: list[Clause], said: _Item) -> None:
    """Add the lines of what a machine showed, whole: of a changed file its name, of a commit what its message reports."""
    role, kind = said.item["metadata"].get("role"), said.item["type"]
    lines = [" ".join(line.split()) for line in said.text.splitlines() if line.strip()]
    if role == "commit":
        lines = [
            *lines[:1],
            *(one.text for one in reports("\n".join(said.text.splitlines()[1:])) if not one.is_bare),
        ]
    if kind in FILE_TYPES:
        lines = [split_clauses(line)[0].text for line in lines[:1]]
    first = len(clauses)
    last = first + len(lines) - 1
    for place, text in enumerate(lines, start=first):
        why = next((why for content, why in said.required if text in content or content in text), "")
        # Output says nothing without its command, and a failure nothing without what ended it.
        leans_on = first if place > first and role not in {"commit", "plan"} else -1
        if kind == "solution" and last > first:
            leans_on = {first: last, last: -1}.get(place, first)
        helps = kind == "solution" and place == last > first and not why
        clauses.append(
            Clause(
                place, said.number, "", text, "", "chatter" if helps else classify(text), leans_on,
                place == first, why, is_ahead=role == "plan" and text.startswith(_UNDONE),
            )
        )  # fmt: skip


def _may_lead(one: Sentence) -> bool:
    """Return whether a sentence of an account can be the one that says most of it."""
    plain = not (one.is_ahead or one.is_bare or one.leans)
    return plain and one.text.endswith((".", "!", ".)")) and len(one.text) <= FRAME_CHARS


def _cut(clauses: list[Clause], said: _Item, names: frozenset[str]) -> None:
    item = said.item
    quoted, request, rule = _is_quoted(said), item["type"] in REQUEST_TYPES, _is_one_statement(said)
    in_prose = item["type"] not in WORK_TYPES and not rule and not request
    fenced = _fenced_lines(said.text) if in_prose else set()
    leads = True
    before = ""
    source, end = " ".join(said.text.split()), 0
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
        if not text or (plain in fenced and not why):
            continue
        kind = (
            "chatter"
            if classify(text) == "chatter" or (quoted and not why and _is_heading(sentence, request))
            else kind
        )
        # A required statement stays one.
        goes_on = bool(why) and content == before
        before = content
        binding = not said.speaker and kind in {"constraint", "decision"}
        uncut = bool(why) or binding or (quoted and (rule or leads or kind == "blocker"))
        uncut = uncut or item["type"] == "command" or (request and not said.speaker)
        start = max(end, source.find(text, end))
        gap = source[end:start] if end else ""
        label = request and not rule and text.endswith(":")
        first = len(clauses)
        for piece in split_clauses(text, whole=uncut):
            place = len(clauses)
            begins = place == first
            joint = piece.joint if not begins else " " if gap == " " else ""
            leans_on = place - 1 if not piece.independent or (goes_on and begins) else -1
            clauses.append(
                Clause(
                    place, said.number, said.speaker, piece.text, joint, kind, leans_on, leads and begins and not label, why, begins
                )
            )  # fmt: skip
        end = start + len(text)
        leads = leads and (label or kind in {"chatter", "exploration"})


def _is_quoted(said: _Item) -> bool:
    """Return whether the opening of an item is kept in one piece."""
    high = said.item["metadata"].get("relevance_score", 0.5) > HIGH_RELEVANCE
    return not said.speaker and (high or said.item["type"] not in CUT_TYPES)


def _is_one_statement(said: _Item) -> bool:
    """Return whether an item is one statement: a short request or rule, or an answer with what it answers."""
    binds = _is_quoted(said) and said.item["type"] in REQUEST_TYPES | BINDING_TYPES
    short = len(said.text) <= PIECE_CHARS or said.text.startswith(ASKED)
    # The neighbours of injected text are two statements.
    return binds and short and not _INJECTED.search(said.item["content"])


def trim(sentence: str, *, names: frozenset[str] = frozenset(), spoken: bool = False) -> str:
    """Return `sentence` without the fillers at its ends; empty if nothing is left.

    The subject "I" is cut, too, if the speaker is named beside the sentence (`spoken`).

    >>> trim("Wow, thanks! I really just fixed the flaky test (at last).")
    'I really just fixed the flaky test (at last).'
    """
    text = unbulleted(_BLANKS.sub(" ", sentence).strip())
    if is_machine_text(text):
        return text
    called = _called(names) if names else None
    before = ""
    while text != before:
        before = text
        text = _LEAD_IN.sub("", _OPENER.sub("", text, count=1), count=1)
        text = called.sub("", text, count=1) if called else text
    if spoken:
        text = _SUBJECT.sub("", _CLOSER.sub("", text), count=1)
    return text.strip(" ,")


def unbulleted(text: str) -> str:
    """Return `text` without the marks of a list or a heading before it.

    >>> unbulleted("- 2. Keep it short")
    'Keep it short'
    """
    return _BULLET.sub("", text) or text


def is_machine_text(text: str) -> bool:
    """Return whether `text` looks like code, output or a path rather than prose."""
    return _MACHINE.search(_QUOTED.sub("x", text)) is not None


def split_clauses(text: str, *, whole: bool = False) -> list[Piece]:
    """Return the clauses of a trimmed sentence; with `whole` as one clause.

    >>> [piece.text for piece in split_clauses("We moved to Lisbon, where it rains less, and she joined a choir.")]
    ['We moved to Lisbon', 'where it rains less', 'she joined a choir.']
    """
    if edited := _EDITED.match(text):
        return [Piece(text if _NAMED.fullmatch(text, edited.end()) else edited[1])]
    if is_machine_text(text) and not whole:
        return _headed(text)
    if whole:
        return [Piece(text)]
    found: list[Piece] = []
    start, joint = 0, ""
    independent = True
    held = bool(_CONDITION.match(text))
    quoted = spans_kept_whole(text)
    for cut in _CUT.finditer(text):
        if held and cut.group().startswith(","):
            held = False  # this comma ends a leading condition
            continue
        if is_within(cut.start(), quoted):
            continue
        # A few words show whether the parts are long enough: whole parts would cost the square of the text.
        near = min(cut.start(), start + PIECE_CHARS)
        head, rest = text[start:near], text[cut.end() : cut.end() + PIECE_CHARS]
        if held or _GLUED.match(rest) or len(head.split()) < LEAST_WORDS or len(rest.split()) < LEAST_WORDS:
            continue
        if not found and not _VERB.search(head):
            continue
        found.append(Piece(text[start : cut.start()], joint, independent))
        start, joint = cut.end(), cut.group()
        independent = cut.lastgroup == "own"
    found.append(Piece(text[start:], joint, independent))
    return [piece for piece in found if piece.text]


def _fenced_lines(text: str) -> set[str]:
    """Return the lines of the longer blocks of code in `text`; a short one shows a command or its result."""
    blocks = (
        [block[0].splitlines() for block in _FENCED.finditer(text)] if "```" in text or "~~~" in text else []
    )
    return {
        unbulleted(" ".join(line.split()))
        for block in blocks
        if len(block) > MOST_SHOWN_LINES + 2
        for line in block
    }


def _is_heading(sentence: str, request: bool) -> bool:
    """Return whether `sentence` only announces others; in a request, a line before a list is part of it."""
    line = sentence.strip()
    return bool(_HEADING.match(line)) or (not request and bool(_LABEL.match(line)))


def _headed(text: str) -> list[Piece]:
    """Return the head of a line and the rest, such as "Ran `make`" and its output."""
    quoted = [found.span() for found in _QUOTED.finditer(text)]
    for cut in _COLON.finditer(text):
        head, rest = text[: cut.start()], text[cut.end() :]
        if rest and not is_within(cut.start(), quoted) and any(identifiers(head)[:4]):
            return [Piece(head), Piece(rest, cut.group(), independent=False)]
    return [Piece(text)]


def spans_kept_whole(text: str) -> list[tuple[int, int]]:
    """Return the places of quotes, code and parentheses in `text`, inside which nothing is cut."""
    return [found.span() for found in _WHOLE.finditer(text)]


def is_within(place: int, spans: list[tuple[int, int]]) -> bool:
    return any(start < place < end for start, end in spans)


@lru_cache(maxsize=64)
def _called(names: frozenset[str]) -> re.Pattern[str]:
    """Return the pattern of one of `names`, or a short form of one, as an address."""
    shorts = {name[:length] for name in names for length in range(3, len(name) + 1)}
    called = "|".join(re.escape(short) for short in sorted(shorts, key=lambda short: (-len(short), short)))
    greeting = r"(?:hey|hi|hello|thanks|thank you|oh|wow|yeah|yes|congrats|sure|well|ok|okay),? "
    return re.compile(rf",? (?:{called})[!.]*$|^(?:(?i:{greeting}))?(?:{called})[,!.]+ ")

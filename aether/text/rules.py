"""Rules: what a person wants of all future work, told from what they want at this moment.

A rule commands, forbids or prefers without an end in sight ("never …", "… before every commit", "prefer …").
A request of the moment ("I need a medium size", "don't push yet") is none, however firmly it is put. The
law: the wording of a rule stands in the text, without bullets and lead-ins that only announce it.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from aether.text.patterns import lazy

# What is longer explains; the rule in it has no clear end.
MOST_CHARS = 300
# A rule needs somebody or something, and what to do about it.
LEAST_WORDS = 3
# What a sentence without a subject is about stands in a short sentence before it.
SUBJECT_CHARS = 160

# "- ok. And please, note that …" has five; more is no introduction.
MOST_LEAD_INS = 8

_LEAD_IN = lazy(
    r"^\W*(?:[-*•+>]|\d{1,3}[.)]|[a-z]\))\s+"
    r"|^(?:ok(?:ay)?|yes|yeah|no|good|great|perfect|right|thanks|thank you|again|reminder|important|note|rule|remember|please|and|also|so|but|"
    r"as (?:always|ever|before|usual|i said)|one (?:more|last) thing(?: for [^:,.]{1,30})?|(?:and )?(?:the )?same as (?:always|ever|before)|"
    r"(?:then|next|now|first|finally|and|also)(?: [\w-]+){1,3}(?=:))[,.:;!]+\s+"
    r"|^(?:and|also|so|but|please|kindly)\s+"
    r"|^(?:please )?(?:remember|note|keep in mind|bear in mind|be aware|don't forget|do not forget) that\s+",
    re.IGNORECASE,
)
_PREFERS = lazy(
    r"^(?:always |generally |strongly )?(?:prefer|favou?r)\s|^stick (?:to|with)\s"
    r"|^(?:use|write|keep)\b[^,;.]{0,40}\b(?:spelling|style|naming|conventions?|indentation|tense)\b"
    r"|\b(?:i|we) (?:always |generally |usually |strongly |much )?prefer\s",
    re.IGNORECASE,
)
_FORBIDS = lazy(
    r"^(?:do not|don't|never|avoid|stop|refrain from)\s+"
    r"(?!worry|forget|bother|mind|hesitate|know|think|care|have|need|want|see|understand|remember|believe|like|even|do|tell|get|be|ask)\w"
    r"|[,;:] (?:and |but )?(?:please )?(?:do not|don't|never|always) (?!\w+ed\b|been\b|have\b|need\b|know\b|mind\b|want\b|do\b)\w"
    r"|^no (?:new|more|other|extra|additional|external)\s+\w|^no \w+, ever\b|\bplease no \w|\bno \w+ (?:anywhere|ever|at all)\b",
    re.IGNORECASE,
)
_ALWAYS = lazy(
    r"^always\s+\w|, always\W*$|\b(?:must|should|shall|may) (?:always|never)\b"
    r"|\b(?:i|we) (?:always|never) (?:want|use|do|allow|accept|commit|write)\b"
    r"|^(?:keep|run|use|write|store|name|put|ask|check|test|leave|add|make|start|end|commit|document|log|sign|send)\b.*"
    r"\b(?:every|each|always|whenever|by default)\b|^(?:whenever|every time|each time|from now on|in (?:the )?future)\b"
    r"|\b(?:has to|have to|needs? to|must)\b.*\b(?:before|after|on|for|with) (?:each|every)\b",
    re.IGNORECASE,
)
_BINDS = lazy(
    r"\w.*?\b(?:must(?: not|n't)?|shall(?: not)?|(?:is|are) (?:not allowed|forbidden|mandatory)) (?!have\b|\w+ (?:it|that) up)\w",
    re.IGNORECASE,
)
# "That must not happen" says nothing without what stands before it; "I must have mixed it up" binds nobody.
_LEANS = lazy(r"^(?:that|this|these|those|it|they|he|she|i|here|there)\b", re.IGNORECASE)
_NO_SUBJECT = lazy(r"^(?:must|should|has to|have to|needs? to)\b", re.IGNORECASE)
_MOMENT = lazy(
    r"\b(?:for now|right now|just now|now|this time|today|tonight|tomorrow|yet|at the moment|for the moment|go ahead|proceed|th(?:is|at) (?:one|pr|commit|branch|case)|"
    r"the (?:first|second|third|last|other|next) (?:one|option)|i'd|i would|i'll|i will|i need|i want to|i've|can you|could you|let's|let me|i think)\b|#\w*\d",
    re.IGNORECASE,
)
_UNFINISHED = lazy(
    r"(?:[,:(]|\b(?:the|an?|of|to|and|or|in|for|with|by|at|on|is|are|that|which))$", re.IGNORECASE
)
_CODE = lazy(r"[{}]|;$|^\S+\(|^\W*[\w.]+ = |^[|$>%]|::|=>|->")


class Rule(NamedTuple):
    """A rule in the words of whoever set it."""

    kind: Literal["constraint", "preference"]
    text: str


def bare(sentence: str) -> str:
    """Return `sentence` without the bullet and the words that only announce what it says.

    >>> bare("- Keep it short."), bare("And same as always: `make check` has to pass.")
    ('Keep it short.', '`make check` has to pass.')
    """
    text = sentence.strip()
    for _ in range(MOST_LEAD_INS):
        text = _LEAD_IN.sub("", text, count=1)
    return text or sentence.strip()


def rule(sentence: str) -> Rule | None:
    """Return the rule that `sentence` sets, or None where it sets none.

    >>> rule("Also, never use floats for money."), rule("I need a medium size.")
    (Rule(kind='constraint', text='never use floats for money.'), None)
    """
    text = bare(sentence)
    said = text.replace("’", "'").rstrip("*_ ")
    if len(said) > MOST_CHARS or len(said.split()) < LEAST_WORDS or said.endswith(("?", "？")):
        return None
    if _MOMENT.search(said) or _CODE.search(said) or _UNFINISHED.search(said):
        return None
    if _PREFERS.search(said):
        return Rule("preference", text)
    binds = _BINDS.match(said) and not _LEANS.match(said) and not _NO_SUBJECT.match(said)
    return Rule("constraint", text) if binds or _FORBIDS.search(said) or _ALWAYS.search(said) else None


def rules(said: list[str], text: str) -> list[Rule]:
    """Return the rules among the sentences `said` of `text`, each once.

    A sentence that lacks its subject is taken together with the one before it ("The backup runs nightly. Must
    not block writers.").
    """
    found: dict[str, Rule] = {}
    for at, sentence in enumerate(said):
        if at and _NO_SUBJECT.match(bare(sentence)) and len(said[at - 1]) <= SUBJECT_CHARS:
            together = f"{said[at - 1]} {sentence}"
            one = rule(together) if together in text else rule(sentence)
        else:
            one = rule(sentence)
        if one:
            found.setdefault(one.text, one)
    return list(found.values())

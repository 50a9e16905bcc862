"""Rules: what a person wants of all future work, told from what they want at this moment.

A rule commands, forbids or prefers without an end in sight ("never …", "… before every commit", "prefer …").
A request of the moment ("I need a medium size", "don't push yet") is none, however firmly it is put, nor is a
complaint, which tells what happens ("it never starts, I must restart it every time"). Rules are known in English
and, in fewer wordings, in German. The law: the wording of a rule stands in the text, without bullets and lead-ins
that only announce it.
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
    r"|\b(?:i|we) (?:always |generally |usually |strongly |much )?prefer\s"
    r"|^(?:i|we)(?:'d| would) rather (?:have|use|see|keep|not (?:have|use|see|mock|add))\s(?!it\b|this\b|that\b|the\b|my\b|them\b|you\b)\w"
    r"|^(?:i|we) (?:(?:really |just )?(?:do not|don't) (?:really )?like|dislike|hate)\s(?!it\b|this\b|that\b|the\b|my\b|your\b|them\b|you\b|how\b|what\b|when\b|where\b|to\b|not\b)\w",
    re.IGNORECASE,
)
_WANTS = lazy(
    r"^(?:use|write|name|store|format|indent|answer|reply|target)\s(?!it\b|this\b|that\b|them\b|these\b|those\b)[^,;.?]{1,60}?(?:, (?:and )?(?:not|never)| (?:instead of|rather than|and (?:not|never)))\s(?!it\b|this\b|that\b|yet\b)[\w`]"
    r"|^(?:make sure|ensure|see to it)(?: that)? (?:(?:all|every|each|any|no|nothing|nobody|none)\b(?! (?:of (?:them|these|those|it)|these|those|\d))|.*\b(?:never|always)\b)"
    r"|^only (?:support|target|allow|accept|use|deploy|release|import|depend)\s(?!it\b|this\b|that\b|them\b|these\b|those\b)\w|^support only\s\w"
    r"|^(?:we )?(?:deploy|release|publish|merge|push|ship)\w* only (?:on|from|to|in|after|when|with|by)\s"
    r"|^(?:i|we) (?:really |just )?(?:do not|don't) want (?:any|you to (?!do (?:it|this|that)\b)\w+|(?!to\b|it\b|this\b|that\b|the\b|my\b|your\b|them\b|you\b|a\b|an\b)\w+ (?:in|on|for|at|anywhere)\b)"
    r"|\bplease (?:always|never)\s(?!mind\b)\w|, (?:always|never),? please\W*$",
    re.IGNORECASE,
)
# Who wants it remembered wants it to hold.
_REMEMBER = lazy(
    r"^\W*(?:please )?(?:remember(?: this)?|rule)(?:\s*:|(?<=remember) that)\s",
    re.IGNORECASE,
)
_GERMAN_PREFERS = lazy(
    r"^(?:ich |wir )?bevorzug\w+\s\w|^lieber\s.+\b(?:statt|als)\s\w|^(?:ich mag|wir mögen) keine?n?\s\w",
    re.IGNORECASE,
)
_GERMAN = lazy(
    r"^(?:ab (?:jetzt|sofort)|von (?:nun|jetzt) an|künftig|zukünftig|in zukunft)\b"
    r"|\bbitte (?:immer|nie|niemals|stets|nicht|nur|keine?n?)\s\w"
    r"|^(?:immer|nie|niemals|stets)\s.*\w(?:en|ern|eln)\W*$"
    r"|^(?:verwende|benutze|benutz|nutze|nimm|schreibe?|antworte|halte|speichere|committe|deploye|ändere|lösche|importiere)\s.*\b(?:nicht|nie|niemals|immer|stets|nur|statt|keine?n?)\b"
    r"|^nur\s.*\b(?:unterstützen|verwenden|benutzen|nutzen|erlauben|zulassen|akzeptieren)\W*$"
    r"|^(?:wir )?(?:deploy|release|commit|push|merg)\w* (?:\w+ ){0,2}nur (?:am|an|auf|aus|von|in|nach|mit)\s"
    r"|^(?:ich|wir) (?:will|wollen|möchte|möchten) keine?n?\s\w"
    r"|^(?!(?:ich|du|man|das|es|er|sie|hier|da|dann|dies\w*|ihr)\s)\w.*\b(?:darf|dürfen)\b.*\b(?:nicht|nie|niemals|nur|keine?n?)\b"
    r"|^(?!(?:ich|du|man|das|es|er|sie|hier|da|dann|dies\w*|ihr)\s)\w.*\b(?:muss|müssen)\s(?!.*\b(?:noch|wieder|neu|mal|erst)\b)\w",
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
# What happens, and what somebody has to do about it, is no rule.
_HAPPENS = lazy(
    r"\b(?:never|always) (?!as\b|has\b|is\b|was\b)\w+[^\Wsu]s\b(?!\W+(?:and|before|after)\b)|\bkeeps? \w+ing\b"
    r"|\bi (?:(?:always|still|then|now) )?(?:must|have to|had to|need to)\b(?! (?:be asked|approve|review|confirm|agree)\b)"
    r"|\b(?:have|has|had) to (?:restart|retry|repeat|redo|re-?run|wait|click|kill)\b.*\b(?:every|each) time\b"
    r"|^(?:whenever|every time|each time|in (?:the )?future)\b(?!.*\b(?:must|should|shall|has to|have to)\b).*?(?:, (?:it|i|the|this|that|they|he|she|there|we)\b|\b(?:could|might|would)\b)"
    r"|\b(?:fails?|failed|crash(?:es|ed)?|hangs?|breaks?|broke)\b(?: \w+){0,3} (?:every|each) (?:single )?time\b"
    r"|\b(?:ich|man) (?:muss|musste)\b|\b\w+t (?:nie|niemals|immer)(?:,|\W*$)",
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
_GERMAN_MOMENT = lazy(
    r"\b(?:jetzt|gerade|heute|morgen|noch nicht|noch kein\w*|vorerst|erst ?mal|diesmal|dieses mal|momentan|im moment|ich (?:brauche|möchte|habe|hab|würde|glaube))\b(?! keine?n?\b)",
    re.IGNORECASE,
)
# These have the words of the moment, and speak of all time to come.
_FOR_GOOD = lazy(
    r"\b(?:from now on|as of now|ab jetzt|von jetzt an|(?:i|we)(?:'d| would) rather)\b", re.IGNORECASE
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
    >>> rule("Remember: deploys only on Tuesdays."), rule("It never starts, I must restart it every time.")
    (Rule(kind='constraint', text='deploys only on Tuesdays.'), None)
    """
    text = bare(sentence)
    said = text.replace("’", "'").rstrip("*_ ")
    if len(said) > MOST_CHARS or len(said.split()) < LEAST_WORDS or said.endswith(("?", "？")):
        return None
    if _is_passing(said) or _CODE.search(said) or _UNFINISHED.search(said):
        return None
    if _PREFERS.search(said) or _GERMAN_PREFERS.search(said):
        return Rule("preference", text)
    binds = _BINDS.match(said) and not _LEANS.match(said) and not _NO_SUBJECT.match(said)
    binds = binds or any(cue.search(said) for cue in (_FORBIDS, _ALWAYS, _WANTS, _GERMAN))
    return Rule("constraint", text) if binds or _REMEMBER.match(sentence) else None


def _is_passing(said: str) -> bool:
    """Return whether `said` is of the moment, or tells what happens."""
    wanted = _FOR_GOOD.sub("", said)
    return bool(_MOMENT.search(wanted) or _GERMAN_MOMENT.search(wanted) or _HAPPENS.search(said))


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

"""Statements: which sentences of a conversation a colleague would write down.

A person's message is kept whole; what an assistant says on the way is kept where it decides, finds,
solves or is stuck, and dropped where it announces what it will do next.
"""

from __future__ import annotations

import re
from collections import Counter

from aether.text.classify import classify
from aether.text.sentences import sentences

# Shorter sentences lean on their neighbours ("That fixed it.").
_LEAST_WORDS = 6
_MOST_CHARS = 600
# A person who writes more than this asks for something; what is demanded stands inside.
_SHORT_SENTENCES = 3
_SHORT_CHARS = 300
# Sentences beyond this in one message are data.
_READ_SENTENCES = 400
_REPLY_CHARS = 80
_QUESTION_CHARS = 500

_INTENTION = re.compile(
    r"^(?:(?:ok(?:ay)?|now|so|first|next|then|finally|good|great|perfect|alright|excellent|actually|wait|hmm|also|and|but|yes|right)[,.!:]? +){0,3}"
    r"(?:i'll|i will|i am going|i'm going|i'm (?:now|about|also)|let me|let's|i need to|i should|i want to|i can|we need to|need to|time to|going to|"
    r"(?:running|updating|adding|fixing|checking|creating|writing|looking|reading|committing|pushing|testing|verifying|moving|starting|continuing)\b|"
    r"(?:update|add|fix|check|create|write|run|commit|verify|test|look|read)\b)",
    re.IGNORECASE,
)
_REASONED = re.compile(r"\b(?:because|since|due to|decided|chose|settled)\b", re.IGNORECASE)
# What is going on while it is said is over when it is read.
_NARRATION = re.compile(
    r"^(?:(?:while|once|as soon as|after|before|when)\b[^,]{3,80}, )?(?:(?:now|so|next|meanwhile|currently),? )?"
    r"(?:i'm|i am|we're|we are)(?: (?:now|still|also|just|currently))* \w+ing\b|^still \w+ing\b|\blet me\b|\bneed user\b",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    r"\b(?:want|should|shall|prefer|proceed|go ahead|would you rather|would you like (?:me|to (?:use|keep))|which|or|okay? (?:to|if|with))\b",
    re.IGNORECASE,
)
_ENQUIRY = re.compile(
    r"\b(?:provide|share|tell me|help you|assist|thoughts|let me know your|what is your|who|when)\b",
    re.IGNORECASE,
)
# A failure that is denied or over stands in nobody's way.
_OVERCOME = re.compile(
    r"\b(?:no|zero|0|without(?: any)?)\s+(?:\w+ )?(?:errors?|failures?|problems?|issues?|exceptions?)\b|"
    r"\b(?:pass(?:es|ed)?|succeed(?:s|ed)|succeeded|confirmed|verified|green)\b",
    re.IGNORECASE,
)
_WAITING = re.compile(r"^\W*waiting (?:on|for)\b", re.IGNORECASE)
# A pasted report says what is missing; a demand speaks to somebody or commands.
_DEMAND = re.compile(
    r"^\W*(?:please|never|always|do not|don't|make sure|ensure|avoid|only|keep|use|no|stop|be|write|run|add|prefer|remember)\b|"
    r"\b(?:you|we|i|must|shall|should|has to|have to|needs? to|not allowed|please)\b",
    re.IGNORECASE,
)
# "We need to rebase" is a task of the day; these words outlast it.
_STRICT = re.compile(
    r"\b(?:must|never|always|don't|do not|only|avoid|ensure|make sure|forbidden|not allowed|mandatory|required|shall not|"
    r"at (?:most|least)|no (?:more|less|fewer|later|longer) than|limited to|deadline|(?:before|after|on|for) (?:each|every))\b",
    re.IGNORECASE,
)
# What people order for all time, in sentences that name no duty.
_RULE = re.compile(
    r"^\W*(?:please )?(?:keep|run|use|write|store|name|put|ask|check|test|leave)\b.*\b(?:every|each|all|always|whenever)\b|"
    r"\bplease no\b|\bno \w+ (?:anywhere|ever|at all)\b",
    re.IGNORECASE,
)
_FENCE = re.compile(r"(?:```|~~~).*?(?:```|~~~|\Z)", re.DOTALL)
_LOG_LINE = re.compile(
    r"^\s*(?:[|+│├└>$#%]|\d+[:|\t]|\S+\.\w+:\d+|\[\w+\]|\w{3} +\d+ \d\d:|\d{4}-\d\d-\d\d[T ])"
)
_APPROVAL = re.compile(
    r"^\s*(?:y|yes|yep|yeah|yup|sure|ok|okay|k|go|go ahead|go on|do it|do that|please do|sounds good|continue|proceed|lgtm|perfect|great|nice|thanks|thank you|no|nope)\b",
    re.IGNORECASE,
)
KEPT = ("decision", "solution", "blocker", "outcome", "constraint", "preference")
# What an assistant says must be so is a finding about the work; only people demand.
_STATED = {
    "decision": "decision",
    "solution": "solution",
    "blocker": "blocker",
    "outcome": "outcome",
    "constraint": "observation",
}


def stated(text: str) -> dict[str, list[str]]:
    """Return the sentences of an assistant's `text` worth a note, by kind.

    >>> stated("Let me look. The build failed because the Go version in CI is 1.19. We went with SQLite instead of Postgres.")
    {'blocker': ['The build failed because the Go version in CI is 1.19.'], 'decision': ['We went with SQLite instead of Postgres.']}
    """
    found: dict[str, list[str]] = {}
    for sentence in _prose(text):
        kind = _STATED.get(classify(sentence))
        if kind and _stands_alone(sentence):
            if kind == "blocker" and _OVERCOME.search(sentence):
                kind = "outcome"
            found.setdefault(kind, []).append(sentence)
    return found


def demanded(text: str) -> list[tuple[str, str]]:
    """Return the constraints and preferences in a person's `text`, each with its kind."""
    told = ((_demand(sentence), sentence) for sentence in _prose(text))
    return [(kind, sentence) for kind, sentence in told if kind]


def _demand(sentence: str) -> str:
    """Return whether a person's sentence is a constraint or a preference, empty where it is neither."""
    if sentence.rstrip().endswith("?"):
        return ""
    if _RULE.search(sentence):
        return "constraint"
    kind = classify(sentence)
    if kind == "constraint":
        return kind if _STRICT.search(sentence) and _DEMAND.search(sentence) else ""
    return kind if kind == "preference" and _DEMAND.search(sentence) else ""


def kind_of_request(text: str) -> str:
    """Return the item type of a person's message: what it is where it is one thing, else `user_input`.

    >>> kind_of_request("Never commit to main."), kind_of_request("Add a health endpoint.")
    ('constraint', 'user_input')
    """
    said = _prose(text)
    if not said or len(said) > _SHORT_SENTENCES or len(text) > _SHORT_CHARS:
        return "user_input"
    kinds = [
        _demand(sentence) or classify(sentence) for sentence in said if not sentence.rstrip().endswith("?")
    ]
    return next((kind for kind in ("constraint", "preference", "decision") if kind in kinds), "user_input")


def kind_of_answer(text: str) -> str:
    """Return the item type of what an assistant said last in a turn; empty where it said nothing."""
    kinds = Counter(classify(sentence) for sentence in _prose(text))
    if not set(kinds) - {"chatter", "exploration"}:
        return ""
    decided, solved, done = kinds["decision"], kinds["solution"], kinds["outcome"]
    if solved > max(decided, done):
        return "solution"
    return "decision" if decided > done else "outcome"


def kind_of_paragraph(text: str) -> str:
    """Return the item type of a paragraph of plain text; empty where it says nothing."""
    kinds = [classify(sentence) for sentence in _prose(text)]
    if kinds and all(kind == "chatter" for kind in kinds):
        return ""
    return next((kind for kind in KEPT if kind in kinds), "observation")


def is_reply(text: str) -> bool:
    """Tell whether a person's message says little without the question that it answers.

    >>> is_reply("yes, both"), is_reply("What does it cost?")
    (True, False)
    """
    if text.rstrip().endswith("?"):
        return False
    return len(text) <= _REPLY_CHARS or bool(_APPROVAL.match(text) and len(text) <= 2 * _REPLY_CHARS)


def decides(asked: str) -> bool:
    """Tell whether the answer to `asked` settles something, rather than tells something.

    >>> decides("Shall I use SQLite?"), decides("Could you provide your user id?")
    (True, False)
    """
    return bool(_CHOICE.search(asked)) and not _ENQUIRY.search(asked)


def is_empty_reply(text: str) -> bool:
    """Tell whether a message only spurs on, which answers nothing."""
    return classify(text) == "chatter" and len(text) <= _REPLY_CHARS


def question(text: str) -> str:
    """Return what an assistant's `text` asks at its end, empty where it asks nothing.

    >>> question("Done. Shall I also update the README?")
    'Shall I also update the README?'
    """
    asked = [sentence for sentence in _prose(text)[-6:] if sentence.rstrip("*_ ").endswith("?")]
    return " ".join(asked)[-_QUESTION_CHARS:]


def _stands_alone(sentence: str) -> bool:
    if len(sentence.split()) < _LEAST_WORDS or len(sentence) > _MOST_CHARS:
        return False
    if sentence.rstrip("*_ ")[-1:] in "?:" or sentence.lstrip().startswith(("|", "#")):
        return False
    bare = sentence.lstrip("-*•# ").replace("’", "'")
    if _NARRATION.search(bare) or _WAITING.match(bare):
        return False
    return not _INTENTION.match(bare) or bool(_REASONED.search(bare))


def _prose(text: str) -> list[str]:
    """Return the sentences of `text` without code, logs and tables."""
    bare = _FENCE.sub("\n", text) if "```" in text or "~~~" in text else text
    lines = (line for line in bare.split("\n") if not _LOG_LINE.match(line) or line.lstrip().startswith("#"))
    return sentences("\n".join(lines))[:_READ_SENTENCES]

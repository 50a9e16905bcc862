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
_REASONED = re.compile(
    r"\b(?:because|since|so that|instead of|rather than|due to|decided|chose|which means|otherwise)\b",
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


def stated(text: str) -> dict[str, list[str]]:
    """Return the sentences of an assistant's `text` worth a note, by kind.

    >>> stated("Let me look. The build failed because the Go version in CI is 1.19. We went with SQLite instead of Postgres.")
    {'blocker': ['The build failed because the Go version in CI is 1.19.'], 'decision': ['We went with SQLite instead of Postgres.']}
    """
    found: dict[str, list[str]] = {}
    for sentence in _prose(text):
        kind = classify(sentence)
        if kind in KEPT and _stands_alone(sentence):
            found.setdefault(kind, []).append(sentence)
    return found


def demanded(text: str) -> list[tuple[str, str]]:
    """Return the constraints and preferences in a person's `text`, each with its kind."""
    told = ((classify(sentence), sentence) for sentence in _prose(text))
    return [(kind, sentence) for kind, sentence in told if kind in {"constraint", "preference"}]


def kind_of_request(text: str) -> str:
    """Return the item type of a person's message: what it is where it is one thing, else `user_input`.

    >>> kind_of_request("Never commit to main."), kind_of_request("Add a health endpoint.")
    ('constraint', 'user_input')
    """
    said = _prose(text)
    if not said or len(said) > _SHORT_SENTENCES:
        return "user_input"
    kinds = [classify(sentence) for sentence in said if not sentence.rstrip().endswith("?")]
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
    """Tell whether a person's message says little without the question that it answers."""
    return len(text) <= _REPLY_CHARS or bool(_APPROVAL.match(text) and len(text) <= 2 * _REPLY_CHARS)


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
    return not _INTENTION.match(bare) or bool(_REASONED.search(bare))


def _prose(text: str) -> list[str]:
    """Return the sentences of `text` without code, logs and tables."""
    bare = _FENCE.sub("\n", text) if "```" in text or "~~~" in text else text
    lines = (line for line in bare.split("\n") if not _LOG_LINE.match(line) or line.lstrip().startswith("#"))
    return sentences("\n".join(lines))[:_READ_SENTENCES]

"""Selection: what of the older conversation matters most, told without a model.

Requests and instructions of the user come first, then what was decided, bound or solved, and what is newer.
The same input gives the same selection.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from aether.compaction.shapes import Said
from aether.messages.message import Message
from aether.messages.tool_calls import file_changes
from aether.shapes import Counter
from aether.text.classify import Kind, classify, rule
from aether.text.picking import weightiest
from aether.text.words import sentences

# What a later reader asks for first; chatter and announcements tell nothing.
WEIGHTS: dict[Kind, float] = {
    "constraint": 0.9, "decision": 0.9, "solution": 0.8, "preference": 0.7, "blocker": 0.6, "outcome": 0.6,
    "fact": 0.4, "exploration": 0.1, "chatter": 0.0,
}  # fmt: skip
REQUEST_WEIGHT = 1.0
EDIT_WEIGHT = 0.7
# The newest of two equals stays; age alone never outweighs a kind.
NEWNESS_WEIGHT = 0.15
# What the person said, over what was said to them; what an earlier summary kept was chosen before.
# What was done is over: the newest of it tells where the work stands.
USER_WEIGHT = 0.2
CARRIED_WEIGHT = 0.3
# Sentences looked at in one message and in all, newest first: bounds the time a long conversation takes.
MESSAGE_SENTENCES = 40
MOST_SENTENCES = 3_000
# Longer ones hold data.
SENTENCE_CHARS = 600
# A sentence below this weight is not worth its tokens.
LEAST_WEIGHT = 0.35
_HEAD_CHARS = 4_000
_BULLET = "- "

_REQUEST = re.compile(
    r"(?:^|[.!?:;,]\s+|\b(?:please|then|also|now|and|to|could you|can you|would you|you to)\s+)"
    r"(?:help|create|implement|fix|add|write|make|build|change|update|remove|delete|rename|refactor|test|run|use|"
    r"move|replace|migrate|deploy|document|explain|review|keep|ensure|never|always|don't|do not)\b|\bplease\b",
    re.IGNORECASE,
)


class _Line(NamedTuple):
    """One sentence that may be kept."""

    weight: float
    order: int
    text: str


def is_request(text: str) -> bool:
    """Tell whether a person asks for something, or sets a rule; told by whole words.

    >>> is_request("Please create the table."), is_request("The helper crashed."), is_request("Never push to main.")
    (True, False, True)
    """
    head = text[:_HEAD_CHARS]
    return bool(_REQUEST.search(head)) or any(rule(one) for one in sentences(head)[:MESSAGE_SENTENCES])


def importance(members: Sequence[Message], *, newness: float) -> float:
    """Return how much a group of messages matters; `newness` is 0 for the oldest and 1 for the newest."""
    best = max((_importance(message) for message in members), default=0.0)
    return best + NEWNESS_WEIGHT * newness


def _importance(message: Message) -> float:
    if any(
        block.kind == "call" and next(file_changes(dict(block.arguments)), None) is not None
        for block in message.blocks
    ):
        return EDIT_WEIGHT
    text = message.text[:_HEAD_CHARS]
    if message.role == "user" and text and is_request(text):
        return REQUEST_WEIGHT
    said = sentences(text)[:MESSAGE_SENTENCES]
    return max((WEIGHTS[classify(one)] for one in said), default=0.0)


def statements(said: Sequence[Said], previous: str, *, most: int, count: Counter) -> str:
    """Return the sentences that matter most, as a list in order, of at most `most` tokens.

    Answers of tools are left out; `previous`, the prose of the summary before, competes with what was said since.
    """
    lines = _lines(said, previous)
    worth = sorted((line for line in lines if line.weight >= LEAST_WEIGHT), key=lambda line: line.order)
    chosen = weightiest(
        ((line.order, line.weight, count(f"{_BULLET}{line.text}\n")) for line in worth), most=most
    )
    return "\n".join(_BULLET + line.text for line in worth if line.order in chosen)


def _lines(said: Sequence[Said], previous: str) -> list[_Line]:
    """Return what may be kept: each sentence once, where it was said last, no more than can be looked at."""
    found: dict[str, _Line] = {}
    order = 0
    carried = [one.removeprefix(_BULLET) for one in sentences(previous)]
    for one in carried:
        more = 0.0 if classify(one) == "outcome" else CARRIED_WEIGHT
        found[one] = _Line(_weight(one) + more, order := order + 1, one)
    spoken = [one for one in said if one.role in ("user", "assistant") and not one.tool]
    room = MOST_SENTENCES
    kept: list[tuple[Said, list[str]]] = []
    for one_said in reversed(spoken):
        some = sentences(one_said.text[:_HEAD_CHARS])[: min(room, MESSAGE_SENTENCES)]
        room -= len(some)
        kept.append((one_said, some))
        if not room:
            break
    for one_said, some in reversed(kept):
        person = USER_WEIGHT if one_said.role == "user" else 0.0
        for one in some:
            if one not in found and len(one) <= SENTENCE_CHARS:
                found[one] = _Line(_weight(one) + person, order := order + 1, one)
    return list(found.values())


def _weight(sentence: str) -> float:
    return WEIGHTS[classify(sentence)]


def cut(prose: str, *, most: int, count: Counter) -> str:
    """Return the beginning of `prose` that has at most `most` tokens, ended where a sentence or a line ends.

    >>> cut("One two. Three four. Five.", most=4, count=lambda text: len(text.split()))
    'One two. Three four.'
    """
    if count(prose) <= most:
        return prose
    low, high = 0, len(_ends(prose))
    ends = _ends(prose)
    while low < high:
        middle = (low + high + 1) // 2
        if count(prose[: ends[middle - 1]].rstrip()) <= most:
            low = middle
        else:
            high = middle - 1
    return prose[: ends[low - 1]].rstrip() if low else ""


_END = re.compile(r"[.!?…](?=\s)|\n|[。！？]")


def _ends(text: str) -> list[int]:
    return [found.end() for found in _END.finditer(text)]

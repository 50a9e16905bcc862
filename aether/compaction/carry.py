"""What the summary carries: what removed messages said, their facts, and the room that both may take.

Earlier summaries are never read as conversation: their facts and their prose are carried on as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import NamedTuple

from aether.compaction.facts import facts_of, fitted, merged
from aether.compaction.shapes import Facts, Said, Summary
from aether.compaction.summary import parsed, rendered
from aether.messages.formats import said as message_saying
from aether.messages.message import Message, Role, Wire
from aether.shapes import Counter
from aether.tokens.messages import message_tokens

# Of the room of a summary the machine fields may take so much where prose is wanted beside them.
FACTS_SHARE = 0.75
# Tokens: with less room than this, prose says nothing worth asking a model for.
LEAST_PROSE = 40
# A call that is only named is told by this many characters of its arguments.
CALL_CHARS = 4_000

_POINTER = re.compile(r"(?P<many>\d+) messages in full: (?P<first>.+?)(?: to (?P<last>.+))?", re.DOTALL)


class Carried(NamedTuple):
    """What earlier summaries hand on."""

    version: int
    """Of the newest one; 0 where there is none."""
    facts: Facts
    prose: str


class Sized(NamedTuple):
    """The facts that a summary has room for, and the tokens of its message without prose."""

    facts: Facts
    lost: list[str]
    tokens: int


def carried(messages: Sequence[Message], positions: Iterable[int]) -> Carried:
    """Return what the summaries at these positions hand on, the oldest first."""
    found = [summary for at in positions if (summary := parsed(messages[at].text))]
    if not found:
        return Carried(0, Facts(), "")
    return Carried(
        max(summary.version for summary in found),
        reduce(merged, (summary.facts for summary in found)),
        "\n".join(summary.prose for summary in found if summary.prose),
    )


def gathered(
    messages: Sequence[Message],
    removed: Sequence[int],
    before: Carried,
    pointer: Callable[[int], str],
) -> Facts:
    """Return the facts of the messages that were removed, after those of the summaries before."""
    facts = merged(before.facts, facts_of(messages, removed))
    first = pointer(removed[0]) if removed else ""
    if not first:
        return facts
    last = pointer(removed[-1])
    return facts._replace(lookups=_located(facts.lookups, len(removed), first, last))


def _located(before: Iterable[str], many: int, first: str, last: str) -> tuple[str, ...]:
    """Return where everything is in full: one line for each file, which is named once."""
    file = first.rpartition(" ")[0]
    others: list[str] = []
    for one in before:
        earlier = _POINTER.fullmatch(one)
        if earlier is None or not file or earlier["first"].rpartition(" ")[0] != file:
            others.append(one)
            continue
        end = earlier["last"] or earlier["first"]
        if (_line_of(earlier["first"]), _line_of(end)) != (_line_of(first), _line_of(last)):
            many += int(earlier["many"])
        first, last = min(first, earlier["first"], key=_line_of), max(last, end, key=_line_of)
    until = last.rpartition(" ")[2] if file else last
    where = first if (_line_of(first) == _line_of(last) and file) or first == last else f"{first} to {until}"
    return (*dict.fromkeys(others), f"{many} messages in full: {where}")


def _line_of(pointer: str) -> int:
    found = re.search(r"\d+$", pointer)
    return int(found[0]) if found else 0


def with_cut(facts: Facts, messages: Sequence[Message], at: int) -> Facts:
    """Return `facts` with those of a message that was cut; it still says what it is about, so without its goals."""
    return merged(facts, facts_of(messages, [at])._replace(goals=()))


def sized(facts: Facts, version: int, wire: Wire, *, count: Counter, most: int) -> Sized:
    """Return what of the facts fits into `most` tokens; goals and constraints may take more."""
    around = tokens_around(wire, count)
    kept, lost = fitted(facts, count=count, most=max(1, most - around))
    return Sized(kept, lost, message_tokens(summary_message(Summary(version, kept, ""), wire), count))


def tokens_around(wire: Wire, count: Counter) -> int:
    """Return what a summary message costs beside its text."""
    return message_tokens(message_saying(summary_role(wire), "", wire), count)


def summary_role(wire: Wire) -> Role:
    """Return who says the summary.

    A response of the model that thinks before it calls cannot follow one that does not, and the first message
    must be the user's, where Anthropic and Gemini join what one side says.
    """
    return "user" if wire in ("anthropic", "gemini") else "assistant"


def summary_message(summary: Summary, wire: Wire) -> Message:
    """Return the message that stands for what was removed."""
    return message_saying(summary_role(wire), rendered(summary), wire)


def told(messages: Sequence[Message], removed: Iterable[int]) -> tuple[Said, ...]:
    """Return what the removed messages said, called and received, in order; not what was thought."""
    tools = {
        block.call_id: block.tool for message in messages for block in message.blocks if block.kind == "call"
    }
    found: list[Said] = []
    for at in removed:
        for block in messages[at].blocks:
            if block.kind == "result":
                found.append(Said(at, "tool", tools.get(block.call_id, block.tool), block.text))
            elif block.kind == "call":
                found.append(Said(at, messages[at].role, block.tool, block.text[:CALL_CHARS]))
            elif block.kind == "text" and block.text.strip():
                found.append(Said(at, messages[at].role, "", block.text))
    return tuple(found)

"""Readings: what is known of each message by itself, computed once, when it arrives, and kept with it.

A reading has the message as a redacted copy, the words that a person or the agent wrote in it, and the names in its
blocks. What is known of a message only by others, such as whether a call failed in the end, is in `facts`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import chain

from aether.architects.extractive.digest import spoken
from aether.conversation.summary import is_summary
from aether.messages.convert import reread
from aether.messages.model import Message
from aether.messages.sources.codex import HEADER
from aether.redact.redact import DEFAULT, Rules, redacted
from aether.text.cleaning import clean, without_escapes, without_injected
from aether.text.identifiers import identifiers
from aether.text.selection import contents

# Longer ones are data.
NAME_CHARS = 120
# Output says what it is about at its two ends.
_HEAD_CHARS, _TAIL_CHARS = 3_000, 1_500
# A longer text was pasted; it has names at its ends, too.
_TEXT_CHARS = 20_000
# Weight of one use, by its author.
BY_PERSON, BY_MODEL, BY_CALL, BY_TOOL = 8, 4, 2, 1
# The entries of a summary are read again in each compaction of its conversation.
CACHED_TEXTS = 4_096
# Fewer digits count something.
LEAST_DIGITS = 4
_AMOUNT = frozenset("%$€£¥°")
# Letters and digits in one token, with hyphens between ("run-4711", "q21330"), and all of it: not the start of a time or a
# version ("2026-01-23T19:04", "ubuntu-24.04"), nor what follows a "%" in a URL.
_COINED = re.compile(
    r"(?<![\w.,/@:%+-])(?=[\w-]{4})(?=[\w-]{0,60}\d)(?=[\w-]{0,60}[A-Za-z])\w+(?:-\w+)*(?![\w/@%+-]|\.\w|:\d)"
)
# A line of `ls -l` before the name.
_LISTED = re.compile(r"^(?:[-dlbcps][rwxsStT-]{9}\S*(?:\s+\S+){7}|total \d+$)", re.MULTILINE)
DIGITS = re.compile(r"\d+")


class Reading:
    """One message, and what it says; each part is computed when it is first asked for."""

    def __init__(self, given: Message, rules: Rules | None = DEFAULT) -> None:
        """Read `given`, which is redacted by `rules`; None: not at all."""
        self.given, self.rules = given, rules

    def compute(self) -> None:
        """Compute what a compaction will ask for, as far as no other message is needed."""
        _ = self.words, self.is_summary, self.names
        for block in self.message.blocks:
            if block.kind == "text" and self.message.role in ("user", "assistant"):
                for line in spoken(self.message.role, block.text):
                    contents(line)

    @cached_property
    def message(self) -> Message:
        """Return the message without secrets; the very message if it holds none."""
        raw = self.given.raw if self.rules is None else redacted(self.given.raw, self.rules)
        return self.given if raw == self.given.raw else reread(self.given, raw)

    @cached_property
    def words(self) -> str:
        """Return what its author wrote, without what programs put around it."""
        return clean(without_injected(self.message.text))

    @cached_property
    def is_summary(self) -> bool:
        """Return whether it is the summary of an earlier compaction."""
        return is_summary(self.message)

    @cached_property
    def names(self) -> tuple[tuple[int, tuple[str, ...]], ...]:
        """Return the names in each block, with the weight of its author."""
        return tuple(_names_by_block(self.message))


class Readings:
    """The readings of the messages of a conversation, each kept as long as its message is there."""

    def __init__(self, rules: Rules | None = DEFAULT) -> None:
        """Start without any; messages are redacted by `rules`."""
        self.rules = rules
        self._by_identity: dict[int, Reading] = {}

    def of(self, messages: Sequence[Message]) -> list[Reading]:
        """Return the readings of `messages`; those of others are dropped."""
        readings = [self.add(message) for message in messages]
        self._by_identity = {id(reading.given): reading for reading in readings}
        return readings

    def add(self, message: Message) -> Reading:
        """Return the reading of one message."""
        reading = self._by_identity.get(id(message))
        if reading is None or reading.given is not message:
            reading = self._by_identity[id(message)] = Reading(message, self.rules)
        return reading


def _names_by_block(message: Message) -> Iterator[tuple[int, tuple[str, ...]]]:
    for block in message.blocks:
        if block.kind == "text" and message.role != "system":
            weight = BY_PERSON if message.role == "user" else BY_MODEL
            yield weight, names_in(clean(_ends(block.text, _TEXT_CHARS)))
        elif block.kind in ("call", "result"):
            text = without_escapes(_ends(block.text, _HEAD_CHARS))
            yield (BY_CALL if block.kind == "call" else BY_TOOL), _ids_in(text)


@lru_cache(maxsize=CACHED_TEXTS)
def names_in(text: str) -> tuple[str, ...]:
    """Return the names in the text of a person or a model.

    >>> names_in("Order 48213 failed 3 times in fetch_user, see https://x.org/a")
    ('https://x.org/a', 'fetch_user', '48213')
    >>> names_in("Run run-4711 in eu-west-1a")
    ('run-4711', 'eu-west-1a')
    """
    hits = identifiers(text)
    amounts = filter(_is_amount, hits.numbers)
    every = chain(hits.urls, hits.commands, hits.identifiers, amounts, _COINED.findall(text), hits.paths)
    return tuple(name for name in dict.fromkeys(every) if _is_name(name))


def _is_name(text: str) -> bool:
    """Return whether a token is no option, no estimate ("~350"), no data, and not as short as "#1" or "i.e"."""
    return (len(text) > 3 or "_" in text) and len(text) <= NAME_CHARS and text[0] not in "-~"


def _is_amount(number: str) -> bool:
    """Return whether a number says more than how many: it is long and no time or range, or has a currency or percentage."""
    is_long = sum(map(str.isdecimal, number)) >= LEAST_DIGITS and {*number}.isdisjoint(":-/")
    return is_long or not _AMOUNT.isdisjoint(number)


def _ids_in(text: str) -> tuple[str, ...]:
    """Return the ids and URLs in the text of a call or a result: what has digits and cannot be a word."""
    listed = _LISTED.sub("", without_injected(HEADER.sub("", text)))
    hits = identifiers(listed)
    amounts = filter(_is_amount, hits.numbers)
    names = dict.fromkeys((*hits.urls, *hits.identifiers, *amounts, *_COINED.findall(listed)))
    # A round number is an amount, such as a limit of time.
    return tuple(
        name
        for name in names
        if _is_name(name) and len(name) > LEAST_DIGITS and DIGITS.search(name) and not name.endswith("000")
    )


def _ends(text: str, most: int) -> str:
    """Return `text`, or its two ends without the tokens that the cut has torn."""
    if len(text) <= most + _TAIL_CHARS:
        return text
    head, tail = text[:most], text[-_TAIL_CHARS:]
    return f"{head[: -len(head.split()[-1])] if head.split() else head}\n{tail.partition(' ')[2] or tail}"

"""The tally: what each message of a conversation costs, counted once.

A conversation grows at its end, so the tally of yesterday's messages is taken over and only new ones are read and
counted. It keeps copies whose texts are the caller's own objects: comparing then looks at no text, and a message that
the caller changed in place is noticed all the same. (1, 1.0 and true compare equal, in a message as in Python.)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from operator import eq
from typing import Any, NamedTuple

from aether.messages import formats
from aether.messages.message import Message, Wire
from aether.shapes import Counter, JsonObject
from aether.tokens.messages import message_tokens


class Tally(NamedTuple):
    """The messages of a conversation with what each costs."""

    raws: list[JsonObject]
    """Copies of what was given; shared with `messages`, never to be changed."""
    messages: list[Message]
    tokens: list[int]
    total: int
    wire: Wire
    count: Counter


def tally(raws: Sequence[JsonObject], *, wire: Wire, count: Counter, before: Tally | None = None) -> Tally:
    """Return what each of `raws` costs; what `before` holds is neither read nor counted again.

    That is the part up to the first difference, and each later message that `before` holds anywhere, so that
    a compaction in the middle costs the messages it made. A tally by another counter or wire is of no use.
    """
    if before is None or before.wire != wire or before.count != count:
        before = Tally([], [], [], 0, wire, count)
    same = _same(raws, before.raws)
    if same == len(before.raws) == len(raws):
        return before
    rest = _rest(raws[same:], before, same)
    return Tally(
        before.raws[:same] + [message.raw for message, _ in rest],
        before.messages[:same] + [message for message, _ in rest],
        before.tokens[:same] + [tokens for _, tokens in rest],
        sum(before.tokens[:same]) + sum(tokens for _, tokens in rest),
        wire,
        count,
    )


def _same(raws: Sequence[JsonObject], known: list[JsonObject]) -> int:
    """Return how many messages at the start are equal."""
    return sum(1 for _ in takewhile(bool, map(eq, raws, known)))


def _rest(raws: Sequence[JsonObject], before: Tally, same: int) -> list[tuple[Message, int]]:
    known = {
        _key(raw): (message, tokens)
        for raw, message, tokens in zip(
            before.raws[same:], before.messages[same:], before.tokens[same:], strict=True
        )
    }
    return (
        [known.get(_key(raw)) or _counted(raw, before) for raw in raws]
        if known
        else [_counted(raw, before) for raw in raws]
    )


def _counted(raw: JsonObject, before: Tally) -> tuple[Message, int]:
    message = formats.message(_copied(raw), before.wire)
    return message, message_tokens(message, before.count)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(below) for key, below in value.items()}
    return [_copied(below) for below in value] if isinstance(value, list) else value


def _key(value: Any) -> Any:
    if isinstance(value, dict):
        return frozenset((key, _key(below)) for key, below in value.items())
    return tuple(map(_key, value)) if isinstance(value, list) else value

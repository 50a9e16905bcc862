"""The tally: what each message of a conversation costs, counted once.

A conversation grows at its end, so the tally of yesterday's messages is taken over and only new ones are read and
counted. It keeps copies whose texts are the caller's own objects: comparing then looks at no text, and a message that
the caller changed in place is noticed all the same. (1, 1.0 and true compare equal, in a message as in Python.)
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import eq
from typing import Any, NamedTuple

from aether.errors import InvalidInput, shown
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


def tally(
    raws: Sequence[JsonObject], *, wire: Wire | None, count: Counter, before: Tally | None = None
) -> Tally:
    """Return what each of `raws` costs; what `before` holds is neither read nor counted again.

    That is each message that stands where it stood, and each other one that `before` holds anywhere, so that
    a compaction in the middle costs the messages it made. A tally by another counter or wire is of no use.
    Without a wire it is that of `before` until a new message speaks against it, and else the one they look like.
    """
    same = list(map(eq, raws, before.raws)) if before else []
    new = [at for at in range(len(raws)) if at >= len(same) or not same[at]]
    wire = wire or _wire(raws, new, before)
    if before is None or before.wire != wire or before.count != count:
        before, same, new = Tally([], [], [], 0, wire, count), [], list(range(len(raws)))
    if not new and len(raws) == len(before.raws):
        return before
    gone = [at for at in range(len(before.raws)) if at >= len(same) or not same[at]]
    moved = {_key(before.raws[at]): at for at in gone}
    messages, tokens = before.messages[: len(raws)], before.tokens[: len(raws)]
    for at in new:
        was = moved.get(_key(raws[at])) if moved else None
        message = (
            formats.message(_copied(raws[at], f"messages[{at}]"), wire)
            if was is None
            else before.messages[was]
        )
        messages[at : at + 1] = [message]
        tokens[at : at + 1] = [message_tokens(message, count) if was is None else before.tokens[was]]
    return Tally([message.raw for message in messages], messages, tokens, sum(tokens), wire, count)


def _wire(raws: Sequence[JsonObject], new: Sequence[int], before: Tally | None) -> Wire:
    if before and before.wire != "plain":
        found = formats.detect_wire([raws[at] for at in new], after=before.wire)
        if found == before.wire:
            return found
    return formats.detect_wire(raws)


def _copied(value: Any, where: str) -> Any:
    if isinstance(value, dict):
        return {key: _copied(below, where) for key, below in value.items()}
    if isinstance(value, list):
        return [_copied(below, where) for below in value]
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise InvalidInput(
        f"{shown(value)} is not JSON.", fix="Give text, numbers, lists and objects.", where=where
    )


def _key(value: Any) -> Any:
    if isinstance(value, dict):
        return frozenset((key, _key(below)) for key, below in value.items())
    return tuple(map(_key, value)) if isinstance(value, list) else value

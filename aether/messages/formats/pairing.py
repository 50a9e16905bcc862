"""Pairing: ids for calls and results of formats that have none, made of the name and of the order.

A result without an id answers the oldest open call of its name, as these formats define it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from aether.messages.message import Block, Message


class _Ids(NamedTuple):
    """What has been called so far."""

    counts: dict[str, int]
    """Calls and lonely results without an id, by name."""
    open: dict[str, list[str]]
    """Ids of calls that nothing answered yet, by name, oldest first."""


def paired(messages: Sequence[Message], *, after: Sequence[Message] = ()) -> list[Message]:
    """Return `messages` with an id on each call and result that lacks one; `after` are those before them."""
    if not any(map(_lacks, messages)):
        return list(messages)
    ids = _Ids({}, {})
    for message in after:
        for block in message.blocks:
            _note(block, ids)
    return [_identified(message, ids) for message in messages]


def _lacks(message: Message) -> bool:
    """Tell whether a message needs an id; where a format asks for one, its lack is a fault and stays."""
    legacy = "function_call" in message.raw or message.raw.get("role") == "function"
    return (message.wire == "gemini" or legacy) and any(
        block.kind in {"call", "result"} and not block.call_id for block in message.blocks
    )


def _identified(message: Message, ids: _Ids) -> Message:
    lacks = _lacks(message)
    return message._replace(blocks=tuple(_blocks(message, ids, lacks=lacks)))


def _blocks(message: Message, ids: _Ids, *, lacks: bool) -> Iterator[Block]:
    for block in message.blocks:
        found = block
        if lacks and not block.call_id and block.kind in {"call", "result"}:
            waiting = ids.open.get(block.tool, []) if block.kind == "result" else []
            made = waiting[0] if waiting else f"{block.tool}#{ids.counts.get(block.tool, 0) + 1}"
            found = block._replace(call_id=made)
        _note(found, ids)
        yield found


def _note(block: Block, ids: _Ids) -> None:
    if block.kind == "call":
        ids.counts[block.tool] = ids.counts.get(block.tool, 0) + 1
        ids.open.setdefault(block.tool, []).append(block.call_id)
    elif block.kind == "result":
        waiting = ids.open.get(block.tool, [])
        if block.call_id in waiting:
            waiting.remove(block.call_id)
        else:
            ids.counts[block.tool] = ids.counts.get(block.tool, 0) + 1

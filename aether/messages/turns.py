"""Turns: what one side says up to the other side's, the form between two provider formats.

A response is one turn with all the answers to its calls. Calls and results of formats without ids get ids made of the
name and the order: a result without an id answers the oldest open call of its name, as these formats define it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from aether.messages.model import Block, Message, Role
from aether.types import JsonObject


class Traits(NamedTuple):
    """What a provider's format can hold, and where."""

    list: str
    """The key of the messages in a request."""
    system: str
    """The key of the system prompt in a request; empty if it is a message."""
    system_messages: Literal["anywhere", "later", "never"]
    """Where system messages may be; `later`: those at the start become the system prompt."""
    sent: tuple[str, ...]
    """The keys of a message that are sent and counted, beside its role and type; empty for all."""
    tool_name: re.Pattern[str] | None
    """The names of tools that the provider accepts; None for all."""
    signs_decide: bool = False
    """Whether a message with the signs of this format is of it whatever other signs it has."""
    user_first: bool = False
    """Whether the first message must be the user's."""
    calls_follow_user: bool = False
    """Whether a message with calls may only come after the user, or after results."""
    ids_optional: bool = False
    """Whether calls and results may lack an id."""
    media_in_results: bool = False
    media_of_assistant: bool = False
    failure_flag: bool = False
    """Whether results can be flagged as failures."""


class Answer(NamedTuple):
    """The result of a call."""

    block: Block
    shown: list[JsonObject]
    """Media that came with it, in the format to be written."""


class Turn(NamedTuple):
    """The texts, media and calls of one side, up to the other side's."""

    role: Role
    pieces: list[Block | JsonObject]
    """Texts and calls, and media in the format to be written."""
    answers: list[Answer]
    meta: JsonObject
    developer: bool = False


class _Ids(NamedTuple):
    """The calls so far."""

    counts: dict[str, int]
    """Calls, and results without a call, by name."""
    open: dict[str, list[str]]
    """Ids of calls without an answer, by name, oldest first."""


def with_call_ids(
    messages: Sequence[Message], *, after: Sequence[Message] = (), optional: bool = False
) -> list[Message]:
    """Return `messages` with an id on each call and result that lacks one; `after` are those before them.

    Where ids are not `optional` in the format, only OpenAI's older calls get one: elsewhere a missing id is a fault.
    """
    lacking = [_lacks_ids(message, optional) for message in messages]
    if not any(lacking):
        return list(messages)
    ids = _Ids({}, {})
    for message in after:
        for block in message.blocks:
            _count(block, ids)
    identified = []
    for message, lacks in zip(messages, lacking, strict=True):
        blocks = []
        for block in message.blocks:
            with_id = block
            if lacks and not block.call_id and block.kind in {"call", "result"}:
                waiting = ids.open.get(block.tool, []) if block.kind == "result" else []
                call_id = waiting[0] if waiting else f"{block.tool}#{ids.counts.get(block.tool, 0) + 1}"
                with_id = block._replace(call_id=call_id)
            _count(with_id, ids)
            blocks.append(with_id)
        identified.append(message._replace(blocks=tuple(blocks)))
    return identified


def _lacks_ids(message: Message, optional: bool) -> bool:
    legacy = "function_call" in message.raw or message.raw.get("role") == "function"
    return (optional or legacy) and any(
        block.kind in {"call", "result"} and not block.call_id for block in message.blocks
    )


def _count(block: Block, ids: _Ids) -> None:
    waiting = ids.open.setdefault(block.tool, [])
    if block.kind == "result" and block.call_id in waiting:
        waiting.remove(block.call_id)
    elif block.kind in {"call", "result"}:
        ids.counts[block.tool] = ids.counts.get(block.tool, 0) + 1
        if block.kind == "call":
            waiting.append(block.call_id)

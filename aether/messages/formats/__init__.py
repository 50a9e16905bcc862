"""Message formats: each module reads and writes one provider's spelling, losslessly.

Reading keeps the very dict that was given as `raw` and never raises about odd content. A key `meta` of a message
is aether's own in every wire (what is protected, labels, which message is a summary) and is never sent.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol

from aether.errors import InvalidInput, shown
from aether.messages.blocks import given, word
from aether.messages.formats import anthropic, gemini, openai, plain, responses
from aether.messages.formats.conversion import Converted, converted
from aether.messages.formats.detection import detect_wire
from aether.messages.formats.pairing import paired
from aether.messages.formats.places import replaced, retold, value_at
from aether.messages.formats.turns import Turn
from aether.messages.message import WIRES, Block, Message, Role, Wire
from aether.shapes import JsonObject

__all__ = [
    "META",
    "Converted",
    "bare",
    "convert",
    "detect_wire",
    "message",
    "read",
    "said",
    "with_text",
    "without_reasoning",
]

META = "meta"


class _Spelling(Protocol):
    """What each wire's module has."""

    def message(self, raw: JsonObject) -> Message: ...
    def said(self, role: Role, text: str) -> JsonObject: ...
    def without_reasoning(self, raw: JsonObject) -> JsonObject: ...
    def written(self, turn: Turn) -> list[JsonObject]: ...


_SPELLINGS: dict[Wire, _Spelling] = {
    "anthropic": anthropic,
    "openai": openai,
    "responses": responses,
    "gemini": gemini,
    "plain": plain,
}


def read(
    raws: Sequence[JsonObject], wire: Wire | None = None, *, after: Sequence[Message] = ()
) -> list[Message]:
    """Return `raws` as messages; without a wire the one they look like.

    `after` are the messages before them, where only the newest are read: calls without ids are numbered on.

    Raises:
        InvalidInput: one of `raws` is no object, or there is no such wire.
    """
    spelling = _spelling(wire or detect_wire(raws))
    for position, raw in enumerate(raws):
        if not isinstance(raw, dict):
            raise InvalidInput(
                f"{shown(raw)} is no message.",
                fix="Give each message as an object.",
                where=f"messages[{position}]",
            )
    return paired([spelling.message(raw) for raw in raws], after=after)


def message(raw: JsonObject, wire: Wire) -> Message:
    """Return one message as read.

    Raises:
        InvalidInput: it is no object, or there is no such wire.
    """
    return read([raw], wire)[0]


def _spelling(wire: str) -> _Spelling:
    for known, spelling in _SPELLINGS.items():
        if known == wire:
            return spelling
    raise InvalidInput(f"{shown(wire)} is no wire.", fix=f"Use one of {', '.join(WIRES)}.", where="wire")


def with_text(message: Message, block: int, text: str) -> Message:
    """Return the message with another text in one of its blocks; of a call `text` is its arguments as JSON.

    Raises:
        InvalidInput: that block cannot be rewritten, or the arguments are no JSON object where one is needed.
    """
    held = message.blocks[block]
    if not held.at or held.kind == "media":
        raise InvalidInput(
            f"a block of kind {held.kind!r} cannot be rewritten.",
            fix="Rewrite blocks with a place (`at`) only.",
            where=f"blocks[{block}]",
        )
    try:
        new = _rewritten(value_at(message.raw, held.at), text, held)
    except (TypeError, ValueError, RecursionError) as reason:
        raise InvalidInput(
            f"{shown(text)} is no JSON object.",
            fix="Give the arguments of a call as one.",
            where=f"blocks[{block}]",
        ) from reason
    return _again(message, replaced(message.raw, held.at, new))


def _rewritten(old: Any, text: str, block: Block) -> Any:
    if block.kind == "call":
        if isinstance(old, str):
            free = block.at[-1] != "arguments"  # what stands there is text of its own, not JSON
            return word(given(text).get("input")) or text if free else text
        return _object(text)
    if isinstance(old, list):
        return retold(old, text)
    # Where an object answered, as with Gemini, text has one key to stand under.
    return text if isinstance(old, str) else {"output": text}


def _object(text: str) -> JsonObject:
    read = json.loads(text)
    if not isinstance(read, dict):
        raise TypeError(text)
    return read


def _again(message: Message, raw: JsonObject) -> Message:
    """Return `raw`, a changed `message`, as read: ids that were made for the list it stands in stay."""
    if raw is message.raw:
        return message
    fresh = _spelling(message.wire).message(raw)
    old = [block for block in message.blocks if block.kind != "reasoning"]
    new = [block for block in fresh.blocks if block.kind != "reasoning"]
    ids = {id(after): before.call_id for before, after in zip(old, new, strict=True)}
    blocks = (block._replace(call_id=ids.get(id(block), block.call_id)) for block in fresh.blocks)
    return fresh._replace(blocks=tuple(blocks))


def said(role: Role, text: str, wire: Wire) -> Message:
    """Return a new message that says `text`.

    Raises:
        InvalidInput: the wire has no such message: none says anything as a tool, Gemini nothing as system.
    """
    spelling = _spelling(wire)
    return spelling.message(spelling.said(role, text))


def without_reasoning(message: Message) -> Message:
    """Return the message without what was thought before it; itself where nothing else would be left.

    Reasoning items of the Responses API are messages of their own: whoever drops reasoning drops them whole.
    """
    return _again(message, _spelling(message.wire).without_reasoning(message.raw))


def bare(raw: JsonObject) -> JsonObject:
    """Return the message as it may be sent, without aether's own key.

    >>> bare({"role": "user", "content": "Hi", "meta": {"protected": True}})
    {'role': 'user', 'content': 'Hi'}
    """
    return {key: value for key, value in raw.items() if key != META} if META in raw else raw


def convert(messages: Sequence[Message], wire: Wire, *, system: Any = None) -> Converted:
    """Return the conversation said in another wire; `system` is its system prompt, where that stands beside it.

    Findings say what could not be said there: reasoning and its signatures, kinds of media, unknown blocks. A
    message's `meta` stays. A conversation of that wire already is returned as it is.

    Raises:
        InvalidInput: there is no such wire.
    """
    spelling = _spelling(wire)
    if all(message.wire == wire for message in messages):
        return Converted(list(messages), [], system)
    found = converted(messages, wire, spelling, system)
    return found._replace(messages=paired(found.messages))

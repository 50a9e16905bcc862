"""OpenAI Responses: items, of which only some have a role; calls and results are items of their own.

Every item with a `call_id` is a call, or a result where its type ends in `_output`, also of kinds that are not known.
"""

from __future__ import annotations

from typing import Any

from aether.errors import InvalidInput
from aether.messages.blocks import flat, word
from aether.messages.formats.content import call, media, other, result
from aether.messages.formats.openai import part_of
from aether.messages.formats.places import kind_of
from aether.messages.formats.turns import Turn
from aether.messages.message import Block, Message, Role
from aether.shapes import JsonObject

# Where the several kinds of call keep what they were called with.
_HELD = ("arguments", "input", "action", "operation", "code")
_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}


def message(raw: JsonObject) -> Message:
    """Return one item as read."""
    kind = kind_of(raw)
    if kind in {"", "message"} and "role" in raw:
        role = _ROLES.get(word(raw["role"]), "user")
        return Message(role, tuple(_spoken(raw.get("content"))), raw, "responses")
    if kind == "reasoning":
        told = "\n".join(filter(None, (flat(raw.get("summary")), flat(raw.get("content")))))
        return Message("assistant", (Block("reasoning", told),), raw, "responses")
    if "call_id" in raw and kind.endswith("_output"):
        return Message("tool", tuple(_result(raw, raw["call_id"])), raw, "responses")
    if "call_id" in raw or (kind.endswith("_call") and isinstance(raw.get("arguments"), str)):
        return Message("assistant", tuple(_call(raw, kind)), raw, "responses")
    return Message("assistant", (other(raw),), raw, "responses")


def _spoken(content: Any) -> list[Block]:
    if isinstance(content, str):
        return [Block("text", content, ("content",))]
    if isinstance(content, list):
        return [part_of(part, ("content", position)) for position, part in enumerate(content)]
    return [] if content is None else [other(content)]


def _call(raw: JsonObject, kind: str) -> list[Block]:
    held = next((key for key in _HELD if raw.get(key) is not None), "arguments")
    call_id = raw.get("call_id", raw.get("id"))
    tool = word(raw.get("name")) or kind.removesuffix("_call")
    found = [call(tool, raw.get(held), (held,), call_id)]
    # What a server ran, it answers in the same item.
    return [*found, *_result(raw, call_id)] if isinstance(raw.get("output"), str) else found


def _result(raw: JsonObject, call_id: Any) -> list[Block]:
    output = raw.get("output")
    if isinstance(output, dict) and kind_of(output) == "computer_screenshot":
        return [Block("result", "", (), word(call_id)), media(output, ("output",))]
    return result(output, ("output",), call_id)


def said(role: Role, text: str) -> JsonObject:
    """Return a new item that says `text`.

    Raises:
        InvalidInput: a tool cannot say anything without a call.
    """
    if role == "tool":
        raise InvalidInput("a tool message needs a call.", fix="Say it as user or assistant.", where="role")
    return {"role": role, "content": text}


def without_reasoning(raw: JsonObject) -> JsonObject:
    """Return the item itself: reasoning is an item of its own, and goes as a whole."""
    return raw


def written(turn: Turn) -> list[JsonObject]:
    """Return a turn as items: a message for what is said in a row, one for each call and each answer."""
    meta = {"meta": turn.meta} if turn.meta else {}
    items: list[JsonObject] = []
    said: list[JsonObject] = []
    for piece in turn.pieces:
        if isinstance(piece, Block) and piece.kind == "call":
            items += _message(turn, said)
            said = []
            items.append(
                {
                    "type": "function_call",
                    "call_id": piece.call_id,
                    "name": piece.tool,
                    "arguments": piece.text or "{}",
                }
            )
        elif isinstance(piece, Block):
            said.append(
                {"type": "output_text" if turn.role == "assistant" else "input_text", "text": piece.text}
            )
        else:
            said.append(piece)
    items += _message(turn, said)
    for answer in turn.answers:
        told = [{"type": "input_text", "text": answer.block.text}] if answer.block.text else []
        output: Any = [*told, *answer.shown] if answer.shown else answer.block.text
        items.append({"type": "function_call_output", "call_id": answer.block.call_id, "output": output})
    return [{**item, **meta} for item in items]


def _message(turn: Turn, said: list[JsonObject]) -> list[JsonObject]:
    role = "developer" if turn.developer else turn.role
    if len(said) == 1 and "text" in said[0]:
        return [{"role": role, "content": said[0]["text"]}]
    return [{"role": role, "content": said}] if said else []

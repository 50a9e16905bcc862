"""Anthropic Messages: content blocks, results inside user messages, thinking with signatures.

A user message that holds nothing but tool results has the role `tool`. What a server tool answered stands in
the assistant message that called it.
"""

from __future__ import annotations

from typing import Any

from aether.errors import InvalidInput
from aether.messages.blocks import failed, word
from aether.messages.formats.content import MEDIA, call, media, other, result
from aether.messages.formats.places import Place, is_text, kind_of
from aether.messages.formats.turns import Answer, Turn
from aether.messages.message import Block, Message, Role
from aether.shapes import JsonObject

CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant"}


def message(raw: JsonObject) -> Message:
    """Return one message as read."""
    content = raw.get("content")
    role = _ROLES.get(word(raw.get("role")), "user")
    if role == "user" and isinstance(content, list) and content and all(map(is_result, content)):
        role = "tool"
    return Message(role, tuple(blocks(content)), raw, "anthropic")


def is_result(block: Any) -> bool:
    """Tell whether a content block is what a tool answered."""
    return isinstance(block, dict) and kind_of(block).endswith("tool_result")


def blocks(content: Any) -> list[Block]:
    """Return what the content of a message holds, in order."""
    if content is None:
        return []
    if isinstance(content, str):
        return [Block("text", content, ("content",))]
    if not isinstance(content, list):
        return [other(content)]
    return [
        found for position, block in enumerate(content) for found in block_of(block, ("content", position))
    ]


def block_of(block: Any, at: Place) -> list[Block]:
    """Return what one content block holds: itself, and the media inside of a result."""
    if not isinstance(block, dict):
        return [other(block)]
    kind = kind_of(block)
    if is_text(block):
        return [Block("text", block["text"], (*at, "text"))]
    if kind in CALLS:
        return [call(block.get("name"), block.get("input"), (*at, "input"), block.get("id"))]
    if is_result(block):
        broken = block.get("is_error")
        return result(block.get("content"), (*at, "content"), block.get("tool_use_id"), broken=broken)
    if kind in THOUGHTS:
        return [Block("reasoning", word(block.get("thinking")))]
    return [media(block, at)] if kind in MEDIA else [other(block)]


def said(role: Role, text: str) -> JsonObject:
    """Return a new message that says `text`.

    Raises:
        InvalidInput: a tool cannot say anything without a call.
    """
    if role == "tool":
        raise InvalidInput("a tool message needs a call.", fix="Say it as user or assistant.", where="role")
    return {"role": role, "content": text}


def without_reasoning(raw: JsonObject) -> JsonObject:
    """Return the message without its thinking; itself where nothing else would be left."""
    content = raw.get("content")
    if not isinstance(content, list):
        return raw
    kept = [block for block in content if not (isinstance(block, dict) and kind_of(block) in THOUGHTS)]
    return {**raw, "content": kept} if kept and len(kept) < len(content) else raw


def written(turn: Turn) -> list[JsonObject]:
    """Return a turn as messages: what is said, and the answers to its calls in one after it."""
    meta = {"meta": turn.meta} if turn.meta else {}
    if len(turn.pieces) == 1 and isinstance(turn.pieces[0], Block) and turn.pieces[0].kind == "text":
        raw: JsonObject = {"role": turn.role, "content": turn.pieces[0].text, **meta}
    else:
        raw = {"role": turn.role, "content": [_written(piece) for piece in turn.pieces], **meta}
    answers = [_tool_result(answer) for answer in turn.answers]
    return [raw, {"role": "user", "content": answers, **meta}] if answers else [raw]


def _written(piece: Block | JsonObject) -> JsonObject:
    if isinstance(piece, dict):
        return piece
    if piece.kind == "text":
        return {"type": "text", "text": piece.text}
    return {"type": "tool_use", "id": piece.call_id, "name": piece.tool, "input": dict(piece.arguments)}


def _tool_result(answer: Answer) -> JsonObject:
    block = answer.block
    raw: JsonObject = {"type": "tool_result", "tool_use_id": block.call_id, "content": block.text}
    if answer.shown:
        told: list[JsonObject] = [{"type": "text", "text": block.text}] if block.text.strip() else []
        raw["content"] = [*told, *answer.shown]
    # Where the text says it already, readers see it without the flag.
    return {**raw, "is_error": block.is_error} if block.is_error != failed(block.text) else raw

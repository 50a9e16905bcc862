"""OpenAI Chat Completions: `tool_calls` beside the content, one message per result.

The functions of before tools (`function_call`, role `function`) have no ids; `pairing` makes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aether.errors import InvalidInput
from aether.messages.blocks import table, word
from aether.messages.formats.content import MEDIA, call, media, other, result
from aether.messages.formats.places import Place, is_text, kind_of
from aether.messages.formats.turns import Turn
from aether.messages.message import Block, Message, Role
from aether.shapes import JsonObject

# Reasoning as DeepSeek and others, OpenRouter, and LiteLLM hand it back.
THOUGHTS = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")
_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


def message(raw: JsonObject) -> Message:
    """Return one message as read."""
    role = _ROLES.get(word(raw.get("role")), "user")
    content = raw.get("content")
    if role == "tool":
        return Message(role, tuple(answer(raw)), raw, "openai")
    found = [*thoughts(raw), *_blocks(content), *calls(raw)]
    return Message(role, tuple(found), raw, "openai")


def answer(raw: JsonObject) -> list[Block]:
    """Return the blocks of a message that is a result."""
    return result(raw.get("content"), ("content",), raw.get("tool_call_id"), tool=raw.get("name"))


def thoughts(raw: JsonObject) -> Iterator[Block]:
    """Yield the reasoning beside the content; the same thought in two spellings is one."""
    held = [key for key in THOUGHTS if raw.get(key)]
    if held:
        told = next((key for key in held if isinstance(raw[key], str)), "")
        yield Block("reasoning", raw[told]) if told else Block("reasoning")


def _blocks(content: Any) -> Iterator[Block]:
    if isinstance(content, str):
        yield Block("text", content, ("content",))
    elif isinstance(content, list):
        for position, part in enumerate(content):
            yield part_of(part, ("content", position))
    elif content is not None:
        yield other(content)


def part_of(part: Any, at: Place) -> Block:
    """Return what one part of the content holds."""
    if not isinstance(part, dict):
        return other(part)
    if is_text(part):
        return Block("text", part["text"], (*at, "text"))
    kind = kind_of(part)
    if kind == "refusal" and isinstance(part.get("refusal"), str):
        return Block("text", part["refusal"], (*at, "refusal"))
    return media(part, at) if kind in MEDIA else other(part)


def calls(raw: JsonObject) -> Iterator[Block]:
    """Yield a refusal and the calls beside the content."""
    if isinstance(raw.get("refusal"), str):
        yield Block("text", raw["refusal"], ("refusal",))
    listed = raw.get("tool_calls")
    if isinstance(listed, list):
        for position, called in enumerate(listed):
            yield _call(called, ("tool_calls", position))
    elif listed is not None:
        yield other(listed)
    legacy = raw.get("function_call")
    if isinstance(legacy, dict):
        yield call(legacy.get("name"), legacy.get("arguments"), ("function_call", "arguments"), "")


def _call(called: Any, at: Place) -> Block:
    inner = table(called)
    for key, held in (("function", "arguments"), ("custom", "input")):
        if isinstance(inner.get(key), dict):
            spoken = inner[key]
            return call(spoken.get("name"), spoken.get(held), (*at, key, held), inner.get("id"))
    return other(called)


def said(role: Role, text: str) -> JsonObject:
    """Return a new message that says `text`.

    Raises:
        InvalidInput: a tool cannot say anything without a call.
    """
    if role == "tool":
        raise InvalidInput("a tool message needs a call.", fix="Say it as user or assistant.", where="role")
    return {"role": role, "content": text}


def without_reasoning(raw: JsonObject) -> JsonObject:
    """Return the message without its reasoning; itself where nothing else would be left."""
    kept = {key: value for key, value in raw.items() if key not in THOUGHTS}
    says = kept.get("content") or kept.get("tool_calls") or kept.get("function_call") or kept.get("refusal")
    return kept if says and len(kept) < len(raw) else raw


def written(turn: Turn) -> list[JsonObject]:
    """Return a turn as messages: what is said with its calls, and one for each answer."""
    meta = {"meta": turn.meta} if turn.meta else {}
    parts = [_part(piece) for piece in turn.pieces if isinstance(piece, dict) or piece.kind == "text"]
    called = [_tool_call(piece) for piece in turn.pieces if isinstance(piece, Block) and piece.kind == "call"]
    alone = len(parts) == 1 and parts[0]["type"] == "text"
    content: Any = parts[0]["text"] if alone else parts or None
    role = "developer" if turn.developer else turn.role
    raw = {"role": role, "content": content, **({"tool_calls": called} if called else {}), **meta}
    answers = [
        {"role": "tool", "tool_call_id": answer.block.call_id, "content": answer.block.text, **meta}
        for answer in turn.answers
    ]
    return [raw, *answers]


def _part(piece: Block | JsonObject) -> JsonObject:
    return piece if isinstance(piece, dict) else {"type": "text", "text": piece.text}


def _tool_call(block: Block) -> JsonObject:
    function = {"name": block.tool, "arguments": block.text or "{}"}
    return {"id": block.call_id, "type": "function", "function": function}

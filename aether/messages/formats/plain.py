"""Plain messages: `{role, content, meta?}` of nobody in particular, read generously.

Calls and results are understood in the spellings of OpenAI and of Anthropic, and in those of agents that mix them.
"""

from __future__ import annotations

from typing import Any

from aether.errors import InvalidInput
from aether.messages.blocks import table, word
from aether.messages.chat import ROLES
from aether.messages.formats import anthropic, openai
from aether.messages.formats.content import call, result
from aether.messages.formats.places import Place, kind_of
from aether.messages.formats.turns import Turn
from aether.messages.message import Block, Message, Role
from aether.shapes import JsonObject

_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "result": "tool"}


def message(raw: JsonObject) -> Message:
    """Return one message as read."""
    role = _ROLES.get(ROLES.get(word(raw.get("role", raw.get("type"))), ""), "user")
    content = raw.get("content")
    listed = isinstance(content, list) and any(map(anthropic.is_result, content))
    if role == "tool" and not listed:
        return Message(role, tuple(_answer(raw)), raw, "plain")
    if role == "user" and listed and all(map(anthropic.is_result, content or ())):
        role = "tool"
    found = [*openai.thoughts(raw), *_blocks(content), *_calls(raw), *_answered_calls(raw)]
    return Message(role, tuple(found), raw, "plain")


def _answer(raw: JsonObject) -> list[Block]:
    ids = raw.get("tool_call_ids")
    listed = ids[0] if isinstance(ids, list) and ids else ""
    broken = True if raw.get("error") else raw.get("isError", raw.get("is_error"))
    return result(
        raw.get("content"),
        ("content",),
        word(raw.get("tool_call_id")) or word(raw.get("toolCallId")) or word(listed),
        tool=word(raw.get("name")) or word(raw.get("toolName")) or word(raw.get("function")),
        broken=broken,
    )


def _blocks(content: Any) -> list[Block]:
    if not isinstance(content, list):
        return anthropic.blocks(content)
    return [found for position, block in enumerate(content) for found in _block(block, ("content", position))]


def _block(block: Any, at: Place) -> list[Block]:
    if isinstance(block, str):
        return [Block("text", block, at)]
    kind = kind_of(table(block))
    if kind == "toolCall":
        return [call(block.get("name"), block.get("arguments"), (*at, "arguments"), block.get("id"))]
    if kind == "reasoning":
        return [Block("reasoning", word(block.get("reasoning")) or word(block.get("text")))]
    return [openai.part_of(block, at)] if kind == "refusal" else anthropic.block_of(block, at)


def _calls(raw: JsonObject) -> list[Block]:
    listed = raw.get("tool_calls")
    if not isinstance(listed, list):
        return list(openai.calls(raw))
    found = list(openai.calls(raw))
    flat = {
        position: called
        for position, called in enumerate(listed)
        if isinstance(called, dict) and isinstance(called.get("function", called.get("name")), str)
    }
    if not flat:
        return found
    # Inspect and others name the function in the call itself.
    first = next(at for at, block in enumerate(found) if block.kind in {"call", "other"})
    for position, called in flat.items():
        name = called.get("function", called.get("name"))
        at = ("tool_calls", position, "arguments")
        found[first + position] = call(name, called.get("arguments"), at, called.get("id"))
    return found


def _answered_calls(raw: JsonObject) -> list[Block]:
    """Return the calls that stand beside the content together with their answers, as Gemini CLI keeps them."""
    listed = raw.get("toolCalls")
    found: list[Block] = []
    for position, called in enumerate(listed if isinstance(listed, list) else []):
        at, inner = ("toolCalls", position), table(called)
        found.append(call(inner.get("name"), inner.get("args", {}), (*at, "args"), inner.get("id")))
        if "result" in inner:
            broken = inner.get("status") in {"error", "cancelled"}
            found += result(
                inner["result"], (*at, "result"), inner.get("id"), tool=inner.get("name"), broken=broken
            )
    return found


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
    return anthropic.without_reasoning(openai.without_reasoning(raw))


def written(turn: Turn) -> list[JsonObject]:
    """Return a turn as messages, calls and results in the spelling of OpenAI."""
    return openai.written(turn)

"""Plain messages: `{role, content, meta?}` of nobody in particular, read generously.

Calls and results are understood in the spellings of OpenAI and of Anthropic, and in those of agents that mix them.

The rules of plain messages: a role and something said; any further field is the caller's own.

Repairs of plain messages: a role for each, and no message that says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from aether.errors import InvalidInput, shown
from aether.messages.content import Place, RepairedRaws, block_type, call_block, changed, lost, result_blocks
from aether.messages.model import Block, Message, Role, as_object, as_text
from aether.messages.providers import anthropic, openai
from aether.messages.sources.chat import ROLES as chat_ROLES
from aether.messages.turns import Turn
from aether.types import Finding, JsonObject

_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "result": "tool"}


def message(raw: JsonObject) -> Message:
    """Return one message as read."""
    role = _ROLES.get(chat_ROLES.get(as_text(raw.get("role", raw.get("type"))), ""), "user")
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
    return result_blocks(
        raw.get("content"),
        ("content",),
        as_text(raw.get("tool_call_id")) or as_text(raw.get("toolCallId")) or as_text(listed),
        tool=as_text(raw.get("name")) or as_text(raw.get("toolName")) or as_text(raw.get("function")),
        broken=broken,
    )


def _blocks(content: Any) -> list[Block]:
    if not isinstance(content, list):
        return anthropic.blocks(content)
    return [found for position, block in enumerate(content) for found in _block(block, ("content", position))]


def _block(block: Any, at: Place) -> list[Block]:
    if isinstance(block, str):
        return [Block("text", block, at)]
    kind = block_type(as_object(block))
    if kind == "toolCall":
        return [call_block(block.get("name"), block.get("arguments"), (*at, "arguments"), block.get("id"))]
    if kind == "reasoning":
        return [Block("reasoning", as_text(block.get("reasoning")) or as_text(block.get("text")))]
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
        found[first + position] = call_block(name, called.get("arguments"), at, called.get("id"))
    return found


def _answered_calls(raw: JsonObject) -> list[Block]:
    """Return the calls that stand beside the content together with their answers, as Gemini CLI keeps them."""
    listed = raw.get("toolCalls")
    found: list[Block] = []
    for position, called in enumerate(listed if isinstance(listed, list) else []):
        at, inner = ("toolCalls", position), as_object(called)
        found.append(call_block(inner.get("name"), inner.get("args", {}), (*at, "args"), inner.get("id")))
        if "result" in inner:
            broken = inner.get("status") in {"error", "cancelled"}
            found += result_blocks(
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


ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
# Where an agent keeps calls, a message may hold nothing else.
_CALLS = ("tool_calls", "toolCalls", "function_call")


def findings(raws: Sequence[JsonObject]) -> Iterator[Finding]:
    """Yield what makes a message of `raws` unusable; a role of an agent's own is a warning."""
    for at, raw in enumerate(raws):
        role, where = raw.get("role", raw.get("type")), f"messages[{at}]"
        fix = f"Use one of {', '.join(sorted(ROLES))}."
        if not isinstance(role, str):
            yield Finding("error", "bad-role", where, f"{shown(role)} is no role.", fix)
        elif role not in ROLES:
            yield Finding("warning", "bad-role", where, f"{shown(role)} is no common role.", fix)
        if not says(raw):
            content = shown(raw.get("content"))
            yield Finding("error", "empty-content", where, f"Content is {content}.", "Give text.")


def says(raw: JsonObject) -> bool:
    """Tell whether a message has content, or calls in place of it."""
    return isinstance(raw.get("content"), (str, list)) or any(raw.get(key) for key in _CALLS)


def mended(raws: Sequence[JsonObject]) -> RepairedRaws:
    """Return `raws` with a role each, without the messages that hold nothing; and what was done."""
    found: list[Finding] = []
    kept = []
    for at, raw in enumerate(raws):
        role, where = raw.get("role", raw.get("type")), f"messages[{at}]"
        if not says(raw):
            found.append(lost("empty-content", where, "Dropped the message, which holds nothing."))
        elif isinstance(role, str):
            kept.append(raw)
        else:
            found.append(changed("bad-role", where, f"The role {shown(role)} became user."))
            kept.append({**raw, "role": "user"})
    return RepairedRaws(kept, found)

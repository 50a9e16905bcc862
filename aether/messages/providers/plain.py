"""Plain messages: `{role, content, meta?}` of no provider in particular, read generously.

Calls and results are understood in the forms of OpenAI and of Anthropic, and in those of agents that mix them. Each
message needs a role and content; any further field is the caller's own. Turns are written as OpenAI messages.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from aether.errors import shown
from aether.messages.content import Place, block_type, call_block, result_blocks, value_at
from aether.messages.faults import Faults
from aether.messages.model import Block, Message, Role, as_object, as_text
from aether.messages.providers import anthropic, openai
from aether.messages.sources.chat import SENDERS
from aether.messages.turns import with_call_ids
from aether.types import JsonObject

valid_tool_name, write, write_media = openai.valid_tool_name, openai.write, openai.write_media
# Plain messages are charged like the dearest.
picture_tokens, tool_names = anthropic.picture_tokens, openai.tool_names
new_raw, system_prompt = openai.new_raw, openai.system_prompt

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "result": "tool"}
# An agent's messages may have calls under one of these keys in place of content.
_CALL_KEYS = ("tool_calls", "toolCalls", "function_call")
_TYPE_KEYS = frozenset({"type", "media_type", "mime_type", "mimeType", "format", "detail"})

TRAITS = openai.TRAITS._replace(
    tool_name=None, sent=(*openai.SENT, "toolCalls", "toolCallId", "tool_call_ids", "isError", "is_error")
)  # fmt: skip


def signs(raw: JsonObject) -> bool:
    """Return whether a message is in the dialect of an agent that only this reader knows."""
    listed = (raw.get(key) for key in ("tool_calls", "content"))
    calls, content = ([*map(as_object, entries)] if isinstance(entries, list) else [] for entries in listed)
    flat = any(isinstance(call.get("function"), str) for call in calls)
    dialect = not {"tool_call_ids", "toolCalls", "toolCallId"}.isdisjoint(raw)
    return flat or dialect or any(block_type(block) == "toolCall" for block in content)


def message(raw: JsonObject) -> Message:
    """Return one message as read."""
    role = _ROLES.get(SENDERS.get(as_text(raw.get("role", raw.get("type"))), ""), "user")
    content = raw.get("content")
    results = list(map(anthropic.is_result, content)) if isinstance(content, list) else []
    if role == "tool" and not any(results):
        return Message(role, tuple(_result(raw)), raw, "plain")
    if role == "user" and results and all(results):
        role = "tool"
    if isinstance(content, list):
        blocks = [
            block for index, inner in enumerate(content) for block in _blocks(inner, ("content", index))
        ]
    else:
        blocks = anthropic.blocks(content)
    return Message(role, (*openai.reasoning(raw), *blocks, *_calls(raw)), raw, "plain")


def _result(raw: JsonObject) -> list[Block]:
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


def _blocks(block: Any, place: Place) -> list[Block]:
    if isinstance(block, str):
        return [Block("text", block, place)]
    kind = block_type(as_object(block))
    if kind == "toolCall":
        return [call_block(block.get("name"), block.get("arguments"), (*place, "arguments"), block.get("id"))]
    if kind == "reasoning":
        return [Block("reasoning", as_text(block.get("reasoning")) or as_text(block.get("text")))]
    return [openai.part_of(block, place)] if kind == "refusal" else anthropic.block_of(block, place)


def _calls(raw: JsonObject) -> list[Block]:
    """Return the calls beside the content, also in two dialects.

    Inspect names the function in the call itself; Gemini CLI lists the calls together with their answers.
    """
    blocks = list(openai.calls(raw))
    listed = raw.get("tool_calls")
    # `openai.calls` puts a refusal before the calls.
    first = int(isinstance(raw.get("refusal"), str))
    for position, call in enumerate(listed if isinstance(listed, list) else []):
        name = call.get("function", call.get("name")) if isinstance(call, dict) else None
        if isinstance(name, str):
            index = ("tool_calls", position, "arguments")
            blocks[first + position] = call_block(name, call.get("arguments"), index, call.get("id"))
    answered = raw.get("toolCalls")
    for position, call in enumerate(map(as_object, answered if isinstance(answered, list) else [])):
        place, key, name = ("toolCalls", position), call.get("id"), call.get("name")
        blocks.append(call_block(name, call.get("args", {}), (*place, "args"), key))
        if "result" in call:
            broken = as_text(call.get("status")) in {"error", "cancelled"}
            blocks += result_blocks(call["result"], (*place, "result"), key, tool=name, broken=broken)
    return blocks


def without_reasoning(raw: JsonObject) -> JsonObject:
    """Return the message without its reasoning; the message itself if nothing else would be left."""
    return anthropic.without_reasoning(openai.without_reasoning(raw))


def media_fault(block: JsonObject) -> str:
    """Return that a block of media holds none; it may hold them in any dialect."""
    return "" if _has_payload(block) else "It has no source."


def _has_payload(value: Any) -> bool:
    """Return whether there is a text, other than names of types, in a block of media."""
    if isinstance(value, list):
        return any(map(_has_payload, value))
    if isinstance(value, dict):
        return any(_has_payload(inner) for key, inner in value.items() if key not in _TYPE_KEYS)
    return isinstance(value, (str, bytes)) and bool(value.strip())


def repaired(raws: Sequence[JsonObject], faults: Faults) -> list[tuple[int, JsonObject]]:
    """Return `raws` with a role each, without empty messages and halves of pairs, each with its original position."""
    fix = f"Use one of {', '.join(sorted(ROLES))}."
    dropped: dict[int, set[Place]] = {}
    for part in _refused_parts(raws):
        dropped.setdefault(part.at, set()).add(part.place)
        faults.lost(part.code, f"messages[{part.at}]", part.problem)
    remaining = []
    for index, raw in enumerate(raws):
        role, where = raw.get("role", raw.get("type")), f"messages[{index}]"
        cleaned = _without(raw, dropped.get(index, set()))
        if not isinstance(role, str):
            faults.changed("bad-role", where, f"{shown(role)} is not a role.", fix)
        elif role not in ROLES:
            faults.hint("bad-role", where, f"{shown(role)} is not a common role.", fix)
        if _has_content(cleaned):
            remaining.append((index, cleaned if isinstance(role, str) else {**cleaned, "role": "user"}))
        elif cleaned is raw:
            faults.lost("empty-content", where, f"Content is {shown(raw.get('content'))}.", "Give text.")
    return remaining


def _has_content(raw: JsonObject) -> bool:
    """Return whether a message has content, or calls in place of it."""
    return isinstance(raw.get("content"), (str, list)) or any(raw.get(key) for key in _CALL_KEYS)


class _Part(NamedTuple):
    """A part of a message that every provider refuses."""

    at: int
    place: Place
    """Key, or key and position, of the part within its message; empty for all of the message."""
    code: str
    problem: str


def _refused_parts(raws: Sequence[JsonObject]) -> list[_Part]:
    """Return blank texts in lists, media without data, results without a call, and calls that were never answered.

    Results without ids, as some agents write them, may answer any call: then no half of a pair is a fault.
    """
    blank: list[_Part] = []
    halves: list[_Part] = []
    with_ids = True
    waiting: dict[str, list[_Part]] = {}
    tail = len(raws)
    for index, parsed in enumerate(with_call_ids([message(raw) for raw in raws])):
        if not _has_content(raws[index]):
            continue  # It is dropped whole.
        tail = index if parsed.role == "assistant" else tail if parsed.role == "tool" else len(raws)
        for block in parsed.blocks:
            place = block.at[: 1 + (len(block.at) > 1 and isinstance(block.at[1], int))]
            key = shown(block.call_id)
            if block.kind == "call":
                call = _Part(index, place, "missing-result", f"The call {key} was never answered.")
                waiting.setdefault(block.call_id, []).append(call)
            elif block.kind == "result" and waiting.get(block.call_id):
                waiting[block.call_id].pop()
            elif block.kind == "result":
                refused = place if len(place) > 1 else ()
                halves.append(_Part(index, refused, "orphan-result", f"There is no call {key}."))
                with_ids = with_ids and bool(block.call_id)
            elif block.kind == "text" and len(place) > 1 and not block.text.strip():
                blank.append(_Part(index, place, "blank-text", "The text is blank."))
            elif block.kind == "media" and len(block.at) == 2:
                problem = media_fault(value_at(raws[index], block.at))
                blank += [_Part(index, place, "bad-media", problem)] if problem else []
    halves += (call for calls in waiting.values() for call in calls if call.at < tail)
    return [*blank, *halves] if with_ids else blank


def _without(raw: JsonObject, places: Collection[Place]) -> JsonObject:
    """Return a message without the parts at `places`; nothing is left of it without any other part."""
    if () in places:
        return {}
    remaining = dict(raw)
    for key in {str(place[0]) for place in places}:
        value = raw[key]
        if isinstance(value, list):
            remaining[key] = [part for number, part in enumerate(value) if (key, number) not in places]
        if not isinstance(value, list) or not remaining[key]:
            del remaining[key]
    return remaining if places else raw

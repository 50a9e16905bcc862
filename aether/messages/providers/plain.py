"""Plain messages: `{role, content, meta?}` of no provider in particular, read generously.

Calls and results are understood in the forms of OpenAI and of Anthropic, and in those of agents that mix them. Each
message needs a role and content; any further field is the caller's own. Turns are written as OpenAI messages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from aether.errors import shown
from aether.messages.content import Place, block_type, call_block, media_fault, result_blocks, value_at
from aether.messages.findings import RepairedRaws, bad_content, bad_role, changed, error, lost, warning
from aether.messages.model import Block, Message, Role, as_object, as_text
from aether.messages.providers import anthropic, openai
from aether.messages.providers.openai import write as write  # noqa: PLC0414
from aether.messages.sources.chat import SENDERS
from aether.messages.turns import with_call_ids
from aether.types import Finding, JsonObject

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "result": "tool"}
# An agent's messages may have calls under one of these keys in place of content.
_CALL_KEYS = ("tool_calls", "toolCalls", "function_call")


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
        found = [block for at, one in enumerate(content) for block in _blocks(one, ("content", at))]
    else:
        found = anthropic.blocks(content)
    return Message(role, (*openai.reasoning(raw), *found, *_calls(raw)), raw, "plain")


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


def _blocks(block: Any, at: Place) -> list[Block]:
    if isinstance(block, str):
        return [Block("text", block, at)]
    kind = block_type(as_object(block))
    if kind == "toolCall":
        return [call_block(block.get("name"), block.get("arguments"), (*at, "arguments"), block.get("id"))]
    if kind == "reasoning":
        return [Block("reasoning", as_text(block.get("reasoning")) or as_text(block.get("text")))]
    return [openai.part_of(block, at)] if kind == "refusal" else anthropic.block_of(block, at)


def _calls(raw: JsonObject) -> list[Block]:
    """Return the calls beside the content, also in two dialects.

    Inspect names the function in the call itself; Gemini CLI lists the calls together with their answers.
    """
    found = list(openai.calls(raw))
    listed = raw.get("tool_calls")
    # `openai.calls` puts a refusal before the calls.
    first = int(isinstance(raw.get("refusal"), str))
    for position, call in enumerate(listed if isinstance(listed, list) else []):
        name = call.get("function", call.get("name")) if isinstance(call, dict) else None
        if isinstance(name, str):
            at = ("tool_calls", position, "arguments")
            found[first + position] = call_block(name, call.get("arguments"), at, call.get("id"))
    answered = raw.get("toolCalls")
    for position, one in enumerate(answered if isinstance(answered, list) else []):
        place, call = ("toolCalls", position), as_object(one)
        key, name = call.get("id"), call.get("name")
        found.append(call_block(name, call.get("args", {}), (*place, "args"), key))
        if "result" in call:
            broken = as_text(call.get("status")) in {"error", "cancelled"}
            found += result_blocks(call["result"], (*place, "result"), key, tool=name, broken=broken)
    return found


def without_reasoning(raw: JsonObject) -> JsonObject:
    """Return the message without its reasoning; the message itself if nothing else would be left."""
    return anthropic.without_reasoning(openai.without_reasoning(raw))


def findings(raws: Sequence[JsonObject], known: int = 0) -> Iterator[Finding]:
    """Yield what makes a message of `raws` unusable; a role of an agent's own is a warning."""
    fix = f"Use one of {', '.join(sorted(ROLES))}."
    for at, raw in enumerate(raws[known:], known):
        role, where = raw.get("role", raw.get("type")), f"messages[{at}]"
        if not isinstance(role, str):
            yield bad_role(role, where, fix)
        elif role not in ROLES:
            yield warning("bad-role", where, f"{shown(role)} is not a common role.", fix)
        if not _has_content(raw):
            yield bad_content(raw.get("content"), where, "Give text.")
    for fault in _faults(raws):
        yield error(fault.code, f"messages[{fault.at}]", fault.what, "Drop it.")


def _has_content(raw: JsonObject) -> bool:
    """Return whether a message has content, or calls in place of it."""
    return isinstance(raw.get("content"), (str, list)) or any(raw.get(key) for key in _CALL_KEYS)


class _Fault(NamedTuple):
    """One part of a message that every provider refuses."""

    at: int
    place: Place
    """Key, or key and position, of the part within its message; empty for all of the message."""
    code: str
    what: str


def _faults(raws: Sequence[JsonObject]) -> list[_Fault]:
    """Return blank texts in lists, results without a call, and calls that were never answered.

    Results without ids, as some agents write them, may answer any call: then no half of a pair is a fault.
    """
    found: list[_Fault] = []
    halves: list[_Fault] = []
    with_ids = True
    waiting: dict[str, list[_Fault]] = {}
    tail = len(raws)
    for at, one in enumerate(with_call_ids([message(raw) for raw in raws])):
        if not _has_content(raws[at]):
            continue  # It is dropped whole.
        tail = at if one.role == "assistant" else tail if one.role == "tool" else len(raws)
        for block in one.blocks:
            place = block.at[: 1 + (len(block.at) > 1 and isinstance(block.at[1], int))]
            if block.kind == "call":
                what = f"The call {shown(block.call_id)} was never answered."
                waiting.setdefault(block.call_id, []).append(_Fault(at, place, "missing-result", what))
            elif block.kind == "result" and waiting.get(block.call_id):
                waiting[block.call_id].pop()
            elif block.kind == "result":
                where = place if len(place) > 1 else ()
                what = f"There is no call {shown(block.call_id)}."
                halves.append(_Fault(at, where, "orphan-result", what))
                with_ids = with_ids and bool(block.call_id)
            elif block.kind == "text" and len(place) > 1 and not block.text.strip():
                found.append(_Fault(at, place, "blank-text", "The text is blank."))
            elif block.kind == "media" and len(block.at) == 2:
                fault = media_fault(value_at(raws[at], block.at), "plain")
                found += [_Fault(at, place, "bad-media", fault)] if fault else []
    halves += (fault for faults in waiting.values() for fault in faults if fault.at < tail)
    return [*found, *halves] if with_ids else found


def repaired(raws: Sequence[JsonObject]) -> RepairedRaws:
    """Return `raws` with a role each, without empty messages and halves of pairs, with a finding for each change."""
    found: list[Finding] = []
    kept, places = [], []
    faults: dict[int, list[_Fault]] = {}
    for fault in _faults(raws):
        faults.setdefault(fault.at, []).append(fault)
        found.append(lost(fault.code, f"messages[{fault.at}]", f"Dropped a part. {fault.what}"))
    for at, given in enumerate(raws):
        raw = _without(given, {fault.place for fault in faults.get(at, ())})
        role, where = raw.get("role", raw.get("type")), f"messages[{at}]"
        if not _has_content(raw):
            if raw is given:
                found.append(lost("empty-content", where, "Dropped the message, which is empty."))
            continue
        if not isinstance(role, str):
            found.append(changed("bad-role", where, f"The role {shown(role)} became user."))
            raw = {**raw, "role": "user"}
        kept.append(raw)
        places.append(at)
    return RepairedRaws(kept, found, places)


def _without(raw: JsonObject, places: Collection[Place]) -> JsonObject:
    """Return a message without the parts at `places`; nothing is left of it without any other part."""
    if () in places:
        return {}
    rest = dict(raw)
    for key in {str(place[0]) for place in places}:
        value = raw[key]
        if isinstance(value, list):
            rest[key] = [one for number, one in enumerate(value) if (key, number) not in places]
        if not isinstance(value, list) or not rest[key]:
            del rest[key]
    return rest if places else raw

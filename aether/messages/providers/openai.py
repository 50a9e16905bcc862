"""OpenAI Chat Completions: `tool_calls` beside the content, one message per result.

The functions of before tools (`function_call`, role `function`) have no ids; `pairing` makes them.

The rules of OpenAI Chat Completions: roles, content, tool calls and their tool messages.

Servers that speak the same protocol differ in what else they take; what OpenAI itself answers with a 400
is an error here, what some of them refuse is a warning.

Repairs of OpenAI Chat Completions: content, calls, and tool messages moved to where they are called.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from aether.errors import InvalidInput, shown
from aether.messages.content import (
    MEDIA,
    Place,
    RepairedRaws,
    arguments_text,
    block_type,
    call_block,
    changed,
    is_text_block,
    known_role,
    lost,
    media_block,
    other_block,
    result_blocks,
    unused_name,
)
from aether.messages.model import Block, Message, Role, as_object, as_text
from aether.messages.turns import Turn
from aether.text.regex import lazy
from aether.types import Finding, JsonObject

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
    role = _ROLES.get(as_text(raw.get("role")), "user")
    content = raw.get("content")
    if role == "tool":
        return Message(role, tuple(answer(raw)), raw, "openai")
    found = [*thoughts(raw), *_blocks(content), *calls(raw)]
    return Message(role, tuple(found), raw, "openai")


def answer(raw: JsonObject) -> list[Block]:
    """Return the blocks of a message that is a result."""
    return result_blocks(raw.get("content"), ("content",), raw.get("tool_call_id"), tool=raw.get("name"))


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
        yield other_block(content)


def part_of(part: Any, at: Place) -> Block:
    """Return what one part of the content holds."""
    if not isinstance(part, dict):
        return other_block(part)
    if is_text_block(part):
        return Block("text", part["text"], (*at, "text"))
    kind = block_type(part)
    if kind == "refusal" and isinstance(part.get("refusal"), str):
        return Block("text", part["refusal"], (*at, "refusal"))
    return media_block(part, at) if kind in MEDIA else other_block(part)


def calls(raw: JsonObject) -> Iterator[Block]:
    """Yield a refusal and the calls beside the content."""
    if isinstance(raw.get("refusal"), str):
        yield Block("text", raw["refusal"], ("refusal",))
    listed = raw.get("tool_calls")
    if isinstance(listed, list):
        for position, called in enumerate(listed):
            yield _call(called, ("tool_calls", position))
    elif listed is not None:
        yield other_block(listed)
    legacy = raw.get("function_call")
    if isinstance(legacy, dict):
        yield call_block(legacy.get("name"), legacy.get("arguments"), ("function_call", "arguments"), "")


def _call(called: Any, at: Place) -> Block:
    inner = as_object(called)
    for key, held in (("function", "arguments"), ("custom", "input")):
        if isinstance(inner.get(key), dict):
            spoken = inner[key]
            return call_block(spoken.get("name"), spoken.get(held), (*at, key, held), inner.get("id"))
    return other_block(called)


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


ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
FIELDS = frozenset(
    {
        "role",
        "content",
        "name",
        "tool_calls",
        "tool_call_id",
        "refusal",
        "audio",
        "function_call",
        "annotations",
    }
)
NAME = lazy(r"[a-zA-Z0-9_-]{1,64}")
# "Expected a string with maximum length 40."
ID_CHARS = 40
PARTS = {
    "user": frozenset({"text", "image_url", "input_audio", "file"}),
    "assistant": frozenset({"text", "refusal"}),
}
ONLY_TEXT = frozenset({"text"})
KNOWN_PARTS = PARTS["user"] | PARTS["assistant"]


def findings(raws: Sequence[JsonObject]) -> Iterator[Finding]:
    """Yield what the API refuses in `raws`, message by message and then calls with their answers."""
    for at, raw in enumerate(raws):
        yield from _message(raw, f"messages[{at}]")
    yield from _pairs(raws)


def check_calls(raw: JsonObject) -> list[tuple[int, JsonObject]]:
    """Return the calls of a message that are objects, each with its position."""
    found = raw.get("tool_calls") if raw.get("role") == "assistant" else None
    return [
        (at, call)
        for at, call in enumerate(found if isinstance(found, list) else [])
        if isinstance(call, dict)
    ]


def _message(raw: JsonObject, where: str) -> Iterator[Finding]:
    role = raw.get("role")
    if not isinstance(role, str) or role not in ROLES:
        yield Finding(
            "error", "bad-role", where, f"{shown(role)} is no role.", "Use system, user, assistant or tool."
        )
    yield from _fields(raw, where)
    yield from _content(raw, role, where)
    if role == "assistant" and "tool_calls" in raw:
        yield from _calls(raw["tool_calls"], f"{where}.tool_calls")


def _fields(raw: JsonObject, where: str) -> Iterator[Finding]:
    for key in sorted(map(str, raw.keys() - FIELDS)):
        level = "error" if key == "meta" else "warning"
        yield Finding(level, "unknown-field", where, f"{key}: no field of a message.", "Leave it out.")  # type: ignore[arg-type] # a literal of two
    if raw.get("tool_calls") and raw.get("role") != "assistant":
        yield Finding(
            "error", "wrong-role", where, "Only the assistant calls tools.", "Leave tool_calls out."
        )


def _content(raw: JsonObject, role: Any, where: str) -> Iterator[Finding]:
    content = raw.get("content")
    if content is None:
        if not (
            role == "assistant"
            and any(raw.get(key) for key in ("tool_calls", "refusal", "audio", "function_call"))
        ):
            yield Finding(
                "error", "empty-content", where, "Content is null.", "Give text, or drop the message."
            )
    elif isinstance(content, list):
        if not content:
            yield Finding("error", "empty-content", where, "Content is an empty list.", "Drop the message.")
        for number, part in enumerate(content):
            yield from _check_part(part, role, f"{where}.content[{number}]")
    elif not isinstance(content, str):
        yield Finding("error", "bad-block", where, f"Content is {shown(content)}.", "Give text or parts.")


def _check_part(part: Any, role: Any, where: str) -> Iterator[Finding]:
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str):
        yield Finding("error", "bad-block", where, f"{shown(part)} is no content part.", "Give it a type.")
    elif kind not in KNOWN_PARTS:
        yield Finding(
            "warning", "unknown-block", where, f"{shown(kind)} is no known type of part.", "Check it."
        )
    elif isinstance(role, str) and role in ROLES and kind not in PARTS.get(role, ONLY_TEXT):
        yield Finding(
            "error",
            "wrong-role",
            where,
            f"{kind} cannot stand in a message of role {role}.",
            "Move or drop it.",
        )
    elif kind == "text" and not isinstance(part.get("text"), str):
        yield Finding("error", "bad-block", where, f"The text is {shown(part.get('text'))}.", "Give text.")


def _calls(found: Any, where: str) -> Iterator[Finding]:
    if not isinstance(found, list) or not found:
        yield Finding("error", "empty-calls", where, f"tool_calls is {shown(found)}.", "Leave it out.")
        return
    seen = set()
    for number, call in enumerate(found):
        place = f"{where}[{number}]"
        if not isinstance(call, dict):
            yield Finding("error", "bad-block", place, f"{shown(call)} is no call.", "Drop it.")
            continue
        key = call.get("id")
        if not isinstance(key, str) or not key or len(key) > ID_CHARS:
            yield Finding(
                "error",
                "bad-id",
                place,
                f"{shown(key)} is no id of a call.",
                f"Use 1 to {ID_CHARS} characters.",
            )
        elif key in seen:
            yield Finding(
                "error",
                "repeated-id",
                place,
                f"Another call of this message has the id {shown(key)}.",
                "Rename one.",
            )
        else:
            seen.add(key)
        yield from _function(call, place)


def _function(call: JsonObject, where: str) -> Iterator[Finding]:
    kind = call.get("type")
    if kind == "custom":
        return
    function = call.get("function")
    if kind != "function" or not isinstance(function, dict):
        yield Finding(
            "error", "bad-block", where, "The call is not of a function.", "Give type and function."
        )
        return
    yield from function_faults(function, where)


def function_faults(function: JsonObject, where: str) -> Iterator[Finding]:
    """Yield what is wrong with the name and the arguments of a call, which OpenAI's two interfaces share."""
    name, arguments = function.get("name"), function.get("arguments")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield Finding(
            "error",
            "bad-name",
            where,
            f"{shown(name)} is no name of a function.",
            "Use letters, digits, _ and -.",
        )
    if not isinstance(arguments, str):
        yield Finding(
            "error", "bad-arguments", where, f"The arguments are {shown(arguments)}.", "Give JSON as text."
        )
    elif not parses(arguments):
        yield Finding("warning", "bad-arguments", where, "The arguments are not JSON.", "Check the call.")


def parses(text: str) -> bool:
    """Tell whether `text` is JSON."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _pairs(raws: Sequence[JsonObject]) -> Iterator[Finding]:
    used: dict[Any, str] = {}
    asked: dict[str, str] = {}
    answered: set[str] = set()
    known = {
        call.get("id") for raw in raws for _, call in check_calls(raw) if isinstance(call.get("id"), str)
    }
    for at, raw in enumerate(raws):
        if raw.get("role") == "tool":
            yield from _answer(raw, f"messages[{at}]", asked, answered, known)
            continue
        yield from _missing(asked, answered, waiting=False)
        asked, answered = {}, set()
        for number, call in check_calls(raw):
            if isinstance(key := call.get("id"), str):
                asked[key] = f"messages[{at}].tool_calls[{number}]"
        for key, where in asked.items():
            if key in used:
                yield Finding(
                    "warning",
                    "repeated-id",
                    where,
                    f"{used[key]} has the id {shown(key)} too.",
                    "Rename one, and its result.",
                )
            used[key] = where
    yield from _missing(asked, answered, waiting=True)


def _answer(
    raw: JsonObject, where: str, asked: dict[str, str], answered: set[str], known: set[Any]
) -> Iterator[Finding]:
    key = raw.get("tool_call_id")
    if not isinstance(key, str):
        yield Finding("error", "bad-id", where, f"tool_call_id is {shown(key)}.", "Name the call.")
    elif key in answered:
        yield Finding(
            "error", "repeated-result", where, f"The call {shown(key)} has a result already.", "Drop one."
        )
    elif key in asked:
        answered.add(key)
    elif key in known:
        yield Finding(
            "error", "interleaved-result", where, f"Something stands between the call {shown(key)} and this.",
            "Put it after its call.",
        )  # fmt: skip
    else:
        yield Finding("error", "orphan-result", where, f"There is no call {shown(key)}.", "Drop it.")


def _missing(asked: dict[str, str], answered: set[str], *, waiting: bool) -> Iterator[Finding]:
    for key, where in asked.items():
        if key in answered:
            continue
        if waiting:
            yield Finding(
                "warning", "dangling-call", where, f"The call {shown(key)} waits for its result.",
                "Run it, and append the result.",
            )  # fmt: skip
        else:
            yield Finding(
                "error", "missing-result", where, f"The call {shown(key)} is not answered before the next message.",
                "Answer or drop it.",
            )  # fmt: skip


_NAME_CHARS = 64
# What makes a message of the assistant that has no content one that may be sent.
_INSTEAD = ("tool_calls", "refusal", "audio", "function_call")


class Entry(NamedTuple):
    """One message at work."""

    at: int
    raw: JsonObject
    calls: tuple[int, ...] = ()
    """Numbers of its calls, in order."""
    answers: int = -1
    """Number of the call that it answers."""


def mended(raws: Sequence[JsonObject]) -> RepairedRaws:
    """Return `raws` as the API takes them, and what was done."""
    found: list[Finding] = []
    cleaned = ((at, _cleaned(raw, f"messages[{at}]", found)) for at, raw in enumerate(raws))
    entries = _paired([Entry(at, raw) for at, raw in cleaned if raw is not None], found)
    entries = _placed(_answered(entries, found), found)
    return RepairedRaws([entry.raw for entry in _named(entries, found)], found)


def _cleaned(raw: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
    """Return a message that may be sent as far as it alone goes; None where nothing is left."""
    role = known_role(raw.get("role"), ROLES)
    if role != raw.get("role"):
        found.append(changed("bad-role", where, f"The role {shown(raw.get('role'))} became {role}."))
        raw = {**raw, "role": role}
    if "meta" in raw:
        found.append(changed("unknown-field", where, "Left out meta."))
        raw = {key: value for key, value in raw.items() if key != "meta"}
    raw = _repair_content(raw, role, where, found)
    if raw.get("tool_calls") or (role == "assistant" and "tool_calls" in raw):
        raw = _repair_calls(raw, role, where, found)
    return _kept(raw, where, found)


def _kept(raw: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
    role = raw["role"]
    if role == "tool" and (not isinstance(raw.get("tool_call_id"), str)):
        found.append(lost("bad-id", where, "Dropped a result that names no call."))
        return None
    if raw.get("content") is not None or (role == "assistant" and any(raw.get(key) for key in _INSTEAD)):
        return raw
    if role in ("tool", "function"):
        found.append(changed("empty-content", where, "A result without content has empty content now."))
        return {**raw, "content": ""}
    found.append(lost("empty-content", where, "Dropped the message, which holds nothing."))
    return None


def _repair_content(raw: JsonObject, role: str, where: str, found: list[Finding]) -> JsonObject:
    content = raw.get("content")
    if content is None or isinstance(content, str):
        return raw
    listed = [content] if isinstance(content, dict) else content if isinstance(content, list) else []
    kept = [
        part
        for number, one in enumerate(listed)
        if (part := _repair_part(one, role, f"{where}.content[{number}]", found)) is not None
    ]
    if kept == content and kept:
        return raw
    if not listed:
        note = changed if content == [] else lost
        found.append(note("empty-content", where, f"Dropped the content {shown(content)}."))
    elif kept:
        found.append(changed("bad-block", where, "Respelt the content, as parts that may stand in it."))
    return {**raw, "content": kept or None}


def _repair_part(part: Any, role: str, where: str, found: list[Finding]) -> JsonObject | None:
    if isinstance(part, str):
        part = {"type": "text", "text": part}
    if isinstance(part, dict) and not isinstance(part.get("type"), str) and isinstance(part.get("text"), str):
        part = {**part, "type": "text"}
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str) or (kind == "text" and not isinstance(part.get("text"), str)):
        found.append(lost("bad-block", where, f"Dropped {shown(part)}, which is no content part."))
        return None
    if kind in KNOWN_PARTS - PARTS.get(role, ONLY_TEXT):
        found.append(
            lost("wrong-role", where, f"Dropped a {kind}, which cannot stand in a message of role {role}.")
        )
        return None
    good: JsonObject = part
    return good


def _repair_calls(raw: JsonObject, role: str, where: str, found: list[Finding]) -> JsonObject:
    held = raw["tool_calls"]
    listed = held if isinstance(held, list) and role == "assistant" else []
    kept = [
        call
        for number, one in enumerate(listed)
        if (call := _repair_call(one, f"{where}.tool_calls[{number}]", found)) is not None
    ]
    if kept == held and kept:
        return raw
    if not listed:
        note = lost if held else changed
        found.append(note("empty-calls", where, f"Left out tool_calls, {shown(held)}."))
    return _with_calls(raw, kept)


def _with_calls(raw: JsonObject, calls: list[JsonObject]) -> JsonObject:
    if calls:
        return {**raw, "tool_calls": calls}
    return {key: value for key, value in raw.items() if key != "tool_calls"}


def _repair_call(call: Any, where: str, found: list[Finding]) -> JsonObject | None:
    if not isinstance(call, dict) or not isinstance(call.get("id"), str) or not call["id"]:
        found.append(lost("bad-id", where, f"Dropped {shown(call)}, a call without an id."))
        return None
    if call.get("type") == "custom":
        return call
    function = call.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    text = arguments_text(function.get("arguments")) if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(name, str) or not name or text is None:
        found.append(lost("bad-block", where, f"Dropped a call of {shown(name)} that cannot be sent."))
        return None
    good = re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:_NAME_CHARS]
    if (good, text, call.get("type")) == (name, function["arguments"], "function"):
        return call
    found.append(
        changed("bad-name" if good != name else "bad-arguments", where, f"Respelt the call of {shown(name)}.")
    )
    return {**call, "type": "function", "function": {**function, "name": good, "arguments": text}}


def _paired(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` with calls and results numbered, without the results that no call waits for."""
    waiting: dict[str, list[int]] = {}
    number = 0
    paired = []
    for entry in entries:
        calls = []
        for call in _listed(entry.raw):
            waiting.setdefault(call["id"], []).append(number)
            calls.append(number)
            number += 1
        answers = -1
        if entry.raw["role"] == "tool":
            key = entry.raw["tool_call_id"]
            if not waiting.get(key):
                found.append(
                    lost(
                        "orphan-result",
                        f"messages[{entry.at}]",
                        f"Dropped a result: no call {shown(key)} waits for it.",
                    )
                )
                continue
            answers = waiting[key].pop()
        paired.append(entry._replace(calls=tuple(calls), answers=answers))
    return paired


def _listed(raw: JsonObject) -> list[JsonObject]:
    calls: list[JsonObject] = raw.get("tool_calls") or []
    return calls


def _answered(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` without the calls that were never answered; those of the last response may be yet."""
    results = {entry.answers for entry in entries}
    tail = _tail(entries)
    kept = []
    for number, entry in enumerate(entries):
        if number == tail or results.issuperset(entry.calls):
            kept.append(entry)
            continue
        pairs = list(zip(entry.calls, _listed(entry.raw), strict=True))
        for position, (pair, call) in enumerate(pairs):
            if pair not in results:
                where = f"messages[{entry.at}].tool_calls[{position}]"
                found.append(
                    lost(
                        "missing-result",
                        where,
                        f"Dropped the call {shown(call['id'])}, which was never answered.",
                    )
                )
        pairs = [(pair, call) for pair, call in pairs if pair in results]
        raw = _kept(_with_calls(entry.raw, [call for _, call in pairs]), f"messages[{entry.at}]", found)
        if raw is not None:
            kept.append(entry._replace(raw=raw, calls=tuple(pair for pair, _ in pairs)))
    return kept


def _tail(entries: Sequence[Entry]) -> int:
    """Return the position of the last response, if nothing but its results comes after it; else the length."""
    at = len(entries)
    while at and entries[at - 1].answers >= 0:
        at -= 1
    calls = entries[at - 1].calls if at else ()
    return at - 1 if at and all(entry.answers in calls for entry in entries[at:]) else len(entries)


def _placed(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` with the results of each response right after it, in the order they came in."""
    owner = {pair: at for at, entry in enumerate(entries) for pair in entry.calls}
    results: dict[int, list[Entry]] = {}
    current = -1
    for at, entry in enumerate(entries):
        if entry.answers < 0:
            current = at
            continue
        called = owner[entry.answers]
        results.setdefault(called, []).append(entry)
        if called != current:
            found.append(
                changed(
                    "interleaved-result",
                    f"messages[{entry.at}]",
                    f"Moved the result to after its call, messages[{entries[called].at}].",
                )
            )
    return [
        one for at, entry in enumerate(entries) if entry.answers < 0 for one in (entry, *results.get(at, ()))
    ]


def _named(entries: Sequence[Entry], found: list[Finding]) -> list[Entry]:
    """Return `entries` in which no two calls of a message have one id, and no id is too long."""
    names: dict[int, str] = {}
    named = []
    for entry in entries:
        raw, taken, calls = entry.raw, set[str](), []
        for pair, call in zip(entry.calls, _listed(raw), strict=True):
            names[pair] = unused_name(call["id"], taken, most=ID_CHARS)
            taken.add(names[pair])
            calls.append(call if names[pair] == call["id"] else {**call, "id": names[pair]})
            if names[pair] != call["id"]:
                found.append(
                    changed(
                        "repeated-id",
                        f"messages[{entry.at}]",
                        f"The call {shown(call['id'])} is {names[pair]} now.",
                    )
                )
        if calls != _listed(raw):
            raw = {**raw, "tool_calls": calls}
        if entry.answers >= 0 and names[entry.answers] != raw["tool_call_id"]:
            raw = {**raw, "tool_call_id": names[entry.answers]}
        named.append(entry._replace(raw=raw))
    return named

"""OpenAI Chat Completions: `tool_calls` beside the content, one message per result.

Reading also understands the older `function_call` and the role `function`, which have no ids (`turns.with_call_ids`
makes them). `findings` names what OpenAI answers with a 400 as errors; what only some servers of the same protocol
refuse is a warning. `repaired` changes the messages until OpenAI refuses nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from aether.errors import shown
from aether.messages import findings as note
from aether.messages.content import (
    MEDIA,
    Place,
    arguments_text,
    as_json,
    block_type,
    call_block,
    is_text_block,
    media_block,
    media_fault,
    other_block,
    result_blocks,
    rewritten_media,
)
from aether.messages.findings import RepairedRaws
from aether.messages.model import Block, Message, ProviderFormat, Role, as_object, as_text
from aether.messages.turns import Turn
from aether.text.regex import lazy
from aether.types import Finding, JsonObject

# Reasoning as DeepSeek and others, OpenRouter, and LiteLLM hand it back.
REASONING = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")
ROLES: dict[str, Role] = {
    "system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool", "function": "tool",
}  # fmt: skip
FIELDS = frozenset(
    "role content name tool_calls tool_call_id refusal audio function_call annotations".split()
)
# An assistant message with one of these needs no content.
_INSTEAD = ("tool_calls", "refusal", "audio", "function_call")
NAME = lazy(r"[a-zA-Z0-9_-]{1,64}")
# The name of who speaks: "string does not match pattern".
_SPEAKER = lazy(r"[^\s<|\\/>]{1,64}")
_NO_SPEAKER = lazy(r"[\s<|\\/>]")
_NAME_CHARS = 64
# "Expected a string with maximum length 40."
ID_CHARS = 40
PARTS = {
    "user": frozenset({"text", "image_url", "input_audio", "file"}),
    "assistant": frozenset({"text", "refusal"}),
}
ONLY_TEXT = frozenset({"text"})
# Types of parts that have their text under a key of the same name.
TEXT_PARTS = frozenset({"text", "refusal"})
KNOWN_PARTS = PARTS["user"] | PARTS["assistant"]
# Parts that OpenAI refuses and servers of its protocol (vLLM, Mistral, Qwen) take.
SERVERS_PARTS = frozenset({"video_url", "audio_url", "document_url", "video", "thinking", "reference"})


def message(raw: JsonObject) -> Message:
    """Return one message as read."""
    role = ROLES.get(as_text(raw.get("role")), "user")
    content = raw.get("content")
    if role == "tool":
        found = result_blocks(content, ("content",), raw.get("tool_call_id"), tool=raw.get("name"))
        return Message(role, tuple(found), raw, "openai")
    if isinstance(content, list):
        blocks = [part_of(part, ("content", position)) for position, part in enumerate(content)]
    elif isinstance(content, str):
        blocks = [Block("text", content, ("content",))]
    else:
        blocks = [] if content is None else [other_block(content)]
    return Message(role, (*reasoning(raw), *blocks, *calls(raw)), raw, "openai")


def reasoning(raw: JsonObject) -> Iterator[Block]:
    """Yield the reasoning beside the content; one thought under two keys is yielded once."""
    present = [key for key in REASONING if raw.get(key)]
    if present:
        yield Block("reasoning", next((raw[key] for key in present if isinstance(raw[key], str)), ""))


def part_of(part: Any, at: Place) -> Block:
    """Return the block of one part of the content."""
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
        for position, call in enumerate(listed):
            yield _call(call, ("tool_calls", position))
    elif listed is not None:
        yield other_block(listed)
    legacy = raw.get("function_call")
    if isinstance(legacy, dict):
        yield call_block(legacy.get("name"), legacy.get("arguments"), ("function_call", "arguments"), "")


def _call(call: Any, at: Place) -> Block:
    outer = as_object(call)
    for key, arguments in (("function", "arguments"), ("custom", "input")):
        if isinstance(inner := outer.get(key), dict):
            return call_block(inner.get("name"), inner.get(arguments), (*at, key, arguments), outer.get("id"))
    return other_block(call)


def without_reasoning(raw: JsonObject) -> JsonObject:
    """Return the message without its reasoning; the message itself if nothing else would be left."""
    kept = {key: value for key, value in raw.items() if key not in REASONING}
    left = kept.get("content") or kept.get("tool_calls") or kept.get("function_call") or kept.get("refusal")
    return kept if left and len(kept) < len(raw) else raw


def write(turn: Turn) -> list[JsonObject]:
    """Return a turn as messages: its texts with its calls, then one for each answer."""
    meta = {"meta": turn.meta} if turn.meta else {}
    parts: list[JsonObject] = []
    made = []
    for piece in turn.pieces:
        if isinstance(piece, dict):
            parts.append(piece)
        elif piece.kind == "text":
            parts.append({"type": "text", "text": piece.text})
        else:
            function = {"name": piece.tool, "arguments": piece.text or "{}"}
            made.append({"id": piece.call_id, "type": "function", "function": function})
    alone = len(parts) == 1 and parts[0]["type"] == "text"
    content: Any = parts[0]["text"] if alone else parts or None
    role = "developer" if turn.developer else turn.role
    raw = {"role": role, "content": content, **({"tool_calls": made} if made else {}), **meta}
    answers = [
        {"role": "tool", "tool_call_id": answer.block.call_id, "content": answer.block.text, **meta}
        for answer in turn.answers
    ]
    return [raw, *answers]


def findings(raws: Sequence[JsonObject], known: int = 0) -> Iterator[Finding]:
    """Yield what the API refuses in `raws`, message by message and then calls with their answers."""
    for at, raw in enumerate(raws[known:], known):
        where, role = f"messages[{at}]", raw.get("role")
        if not isinstance(role, str) or role not in ROLES:
            yield note.bad_role(role, where, "Use system, user, assistant or tool.")
        for key in sorted(map(str, raw.keys() - FIELDS)):
            kind = note.error if key == "meta" else note.warning
            yield kind("unknown-field", where, f"{key}: not a field of a message.", "Leave it out.")
        if raw.get("tool_calls") and role != "assistant":
            yield note.error("wrong-role", where, "Only the assistant calls tools.", "Leave tool_calls out.")
        yield from _check_content(raw, role, where)
        yield from _check_beside(raw, role, where)
        if role == "assistant" and "tool_calls" in raw:
            yield from _check_calls(raw["tool_calls"], f"{where}.tool_calls")
    yield from _check_pairs(raws)


def _check_content(raw: JsonObject, role: Any, where: str) -> Iterator[Finding]:
    content = raw.get("content")
    if content is None:
        if role != "assistant" or not any(raw.get(key) for key in _INSTEAD):
            yield note.error("empty-content", where, "Content is null.", "Give text, or drop the message.")
    elif isinstance(content, list):
        if not content:
            yield note.error("empty-content", where, "Content is an empty list.", "Drop the message.")
        for number, part in enumerate(content):
            yield from _check_part(part, role, f"{where}.content[{number}]")
    elif not isinstance(content, str):
        yield note.error("bad-block", where, f"Content is {shown(content)}.", "Give text or parts.")


def _check_beside(raw: JsonObject, role: Any, where: str) -> Iterator[Finding]:
    """Yield the faults of what is beside the content, other than the calls."""
    name, refusal, audio, legacy = (raw.get(key) for key in ("name", "refusal", "audio", "function_call"))
    if (name is not None or role == "function") and not _is_name(name, role):
        yield note.error("bad-name", where, f"{shown(name)} is not a name.", "Use letters, digits, _ and -.")
    if refusal is not None and not isinstance(refusal, str):
        yield note.bad_text(refusal, where)
    if audio is not None and not as_text(as_object(audio).get("id")):
        yield note.error("bad-block", where, f"The audio is {shown(audio)}.", "Give its id.")
    if isinstance(legacy, dict):
        yield from function_faults(legacy, where)
    elif legacy is not None:
        yield note.error("bad-block", where, f"function_call is {shown(legacy)}.", "Leave it out.")


def _is_name(name: Any, role: Any) -> bool:
    return bool((NAME if role == "function" else _SPEAKER).fullmatch(as_text(name)))


def _check_part(part: Any, role: Any, where: str) -> Iterator[Finding]:
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str):
        yield note.untyped(part, where)
    elif kind in SERVERS_PARTS:
        yield note.warning("unknown-block", where, f"OpenAI has no {kind}; some servers do.", "Check it.")
    elif kind not in KNOWN_PARTS:
        yield note.unknown_type(kind, where)
    elif isinstance(role, str) and role in ROLES and kind not in PARTS.get(role, ONLY_TEXT):
        yield note.wrong_role(kind, where, role)
    elif kind in TEXT_PARTS:
        if not isinstance(part.get(kind), str):
            yield note.bad_text(part.get(kind), where)
    elif fault := media_fault(part, "openai"):
        yield note.bad_media(fault, where)


def _check_calls(found: Any, where: str) -> Iterator[Finding]:
    if not isinstance(found, list) or not found:
        yield note.error("empty-calls", where, f"tool_calls is {shown(found)}.", "Leave it out.")
        return
    seen = set()
    for number, call in enumerate(found):
        place = f"{where}[{number}]"
        if not isinstance(call, dict):
            yield note.error("bad-block", place, f"{shown(call)} is not a call.", "Drop it.")
            continue
        key, function = call.get("id"), call.get("function")
        if not isinstance(key, str) or not key or len(key) > ID_CHARS:
            yield note.bad_id(key, place, f"Use 1 to {ID_CHARS} characters.")
        elif key in seen:
            what = f"Another call of this message has the id {shown(key)}."
            yield note.error("repeated-id", place, what, "Rename one.")
        else:
            seen.add(key)
        if call.get("type") == "custom":
            yield from custom_faults(as_object(call.get("custom")), place)
        elif call.get("type") != "function" or not isinstance(function, dict):
            yield note.error("bad-block", place, "The call is not of a function.", "Give type and function.")
        else:
            yield from function_faults(function, place)


def function_faults(function: JsonObject, where: str) -> Iterator[Finding]:
    """Yield the faults in the name and the arguments of a call, which OpenAI's two interfaces share."""
    name, arguments = function.get("name"), function.get("arguments")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield note.bad_name(name, where)
    if not isinstance(arguments, str):
        what = f"The arguments are {shown(arguments)}."
        yield note.error("bad-arguments", where, what, "Give JSON as text.")
        return
    try:
        json.loads(arguments)
    except (ValueError, RecursionError):
        yield note.warning("bad-arguments", where, "The arguments are not JSON.", "Check the call.")


def custom_faults(custom: JsonObject, where: str) -> Iterator[Finding]:
    """Yield the faults in the name and the input of a call of a custom tool, which is text and not JSON."""
    if not NAME.fullmatch(as_text(custom.get("name"))):
        yield note.bad_name(custom.get("name"), where)
    if not isinstance(custom.get("input"), str):
        what = f"The input is {shown(custom.get('input'))}."
        yield note.error("bad-arguments", where, what, "Give text.")


def _check_pairs(raws: Sequence[JsonObject]) -> Iterator[Finding]:
    used: dict[str, str] = {}
    asked: dict[str, str] = {}
    answered: set[str] = set()
    calls = [_asked(raw, at) for at, raw in enumerate(raws)]
    known = {key for asked in calls for key in asked}
    for at, raw in enumerate(raws):
        if raw.get("role") == "tool":
            place, answer = f"messages[{at}]", raw.get("tool_call_id")
            if not isinstance(answer, str):
                yield note.error("bad-id", place, f"tool_call_id is {shown(answer)}.", "Name the call.")
            elif answer in answered:
                yield note.repeated_result(answer, place)
            elif answer in asked:
                answered.add(answer)
            elif answer in known:
                what = f"Another message is between the call {shown(answer)} and this."
                yield note.error("interleaved-result", place, what, "Put it after its call.")
            else:
                yield note.orphan_result(answer, place)
            continue
        yield from _unanswered(asked, answered, waiting=False)
        asked, answered = calls[at], set()
        for key, where in asked.items():
            if key in used:
                what = f"{used[key]} has the id {shown(key)} too."
                yield note.warning("repeated-id", where, what, "Rename one, and its result.")
            used[key] = where
    yield from _unanswered(asked, answered, waiting=True)


def _asked(raw: JsonObject, at: int) -> dict[str, str]:
    """Return the places of the calls of a message by their ids."""
    found = raw.get("tool_calls") if raw.get("role") == "assistant" else None
    if not isinstance(found, list):
        return {}
    return {
        call["id"]: f"messages[{at}].tool_calls[{number}]"
        for number, call in enumerate(found)
        if isinstance(call, dict) and isinstance(call.get("id"), str)
    }


def _unanswered(asked: dict[str, str], answered: set[str], *, waiting: bool) -> Iterator[Finding]:
    for key, where in asked.items():
        if key not in answered:
            yield note.without_result(f"The call {shown(key)}", where, waiting=waiting)


class _Entry(NamedTuple):
    """One message under repair."""

    at: int
    raw: JsonObject
    calls: tuple[int, ...] = ()
    """Numbers of its calls, in order."""
    answers: int = -1
    """Number of the call that it answers."""

    @property
    def where(self) -> str:
        """Return the original place of the message."""
        return f"messages[{self.at}]"

    @property
    def listed(self) -> list[JsonObject]:
        """Return the calls of the message."""
        return self.raw.get("tool_calls") or []


def repaired(raws: Sequence[JsonObject]) -> RepairedRaws:
    """Return `raws` as the API accepts them, with a finding for each change."""
    found: list[Finding] = []
    cleaned = ((at, _cleaned(raw, f"messages[{at}]", found)) for at, raw in enumerate(raws))
    entries = _paired([_Entry(at, raw) for at, raw in cleaned if raw is not None], found)
    entries = _placed(_without_unanswered(entries, found), found)
    entries = _renamed(entries, found)
    return RepairedRaws([entry.raw for entry in entries], found, [entry.at for entry in entries])


def _cleaned(raw: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
    """Return a message without what cannot be sent, whatever is around it; None if nothing is left."""
    role = note.known_role(raw.get("role"), ROLES)
    if role != raw.get("role"):
        found.extend(note.new_role(raw, role, where))
        raw = {**raw, "role": role}
    if "meta" in raw:
        found.append(note.changed("unknown-field", where, "Left out meta."))
        raw = {key: value for key, value in raw.items() if key != "meta"}
    raw = _with_cleaned_rest(_with_cleaned_content(raw, role, where, found), role, where, found)
    if raw.get("tool_calls") or (role == "assistant" and "tool_calls" in raw):
        raw = _with_cleaned_calls(raw, role, where, found)
    return _complete(raw, where, found)


def _with_cleaned_rest(raw: JsonObject, role: str, where: str, found: list[Finding]) -> JsonObject:
    """Return a message with what is beside its content, other than the calls, as it can be sent."""
    faults = list(_check_beside(raw, role, where))
    if not faults:
        return raw
    raw = dict(raw)
    function = as_object(raw.get("function_call"))
    name = _NO_SPEAKER.sub("_", as_text(raw.get("name")))[:_NAME_CHARS]
    fixed: JsonObject = {
        "name": valid_name(name, "function") if role == "function" else name or None,
        "refusal": raw.get("refusal") if isinstance(raw.get("refusal"), str) else None,
        "audio": raw.get("audio") if as_text(as_object(raw.get("audio")).get("id")) else None,
        "function_call": cleaned_function(function),
    }
    for key, value in fixed.items():
        if value is not None:
            raw[key] = value
        elif raw.get(key) is not None:
            del raw[key]
    lost_call = fixed["function_call"] is None and function
    found.extend(
        (note.lost if lost_call else note.changed)(fault.code, where, f"Rewrote it. {fault.message}")
        for fault in faults
        if fault.level == "error"
    )
    return raw


def _complete(raw: JsonObject, where: str, found: list[Finding]) -> JsonObject | None:
    """Return the message with content if it needs some; None if it cannot be sent."""
    role = raw["role"]
    if role == "tool" and not isinstance(raw.get("tool_call_id"), str):
        found.append(note.lost("bad-id", where, "Dropped a result without the id of its call."))
        return None
    if raw.get("content") is not None or (role == "assistant" and any(raw.get(key) for key in _INSTEAD)):
        return raw
    if role in ("tool", "function"):
        found.append(note.changed("empty-content", where, "Gave empty content to a result without content."))
        return {**raw, "content": ""}
    found.append(note.lost("empty-content", where, "Dropped the message, which is empty."))
    return None


def _with_cleaned_content(raw: JsonObject, role: str, where: str, found: list[Finding]) -> JsonObject:
    content = raw.get("content")
    if content is None or isinstance(content, str):
        return raw
    listed = [content] if isinstance(content, dict) else content if isinstance(content, list) else []
    kept = [
        part
        for number, one in enumerate(listed)
        if (part := _cleaned_part(one, role, f"{where}.content[{number}]", found)) is not None
    ]
    if kept == content and kept:
        return raw
    if not listed:
        finding = note.changed if content == [] else note.lost
        found.append(finding("empty-content", where, f"Dropped the content {shown(content)}."))
    elif kept:
        found.append(note.changed("bad-block", where, "Rewrote the content as parts that the role can hold."))
    return {**raw, "content": kept or None}


def _cleaned_part(part: Any, role: str, where: str, found: list[Finding]) -> JsonObject | None:
    if isinstance(part, str):
        part = {"type": "text", "text": part}
    if isinstance(part, dict) and not isinstance(part.get("type"), str) and isinstance(part.get("text"), str):
        part = {**part, "type": "text"}
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str) or (kind in TEXT_PARTS and not isinstance(part.get(kind), str)):
        found.append(note.lost("bad-block", where, f"Dropped {shown(part)}, which is not a content part."))
        return None
    good: JsonObject | None = part
    if kind not in TEXT_PARTS | SERVERS_PARTS and media_fault(part, "openai"):
        good = known_part(part, "openai", where, found)
    kind = good["type"] if good else kind
    if good and kind in KNOWN_PARTS - PARTS.get(role, ONLY_TEXT):
        found.append(note.dropped_content(kind, where, role))
        return None
    return good


def known_part(
    part: JsonObject, format: ProviderFormat, where: str, found: list[Finding], *, text_type: str = "text"
) -> JsonObject | None:
    """Return a part that OpenAI does not know, or refuses so, as one that it accepts; None if it cannot be one.

    Media of other formats are rewritten, and other parts with a text become that text.
    """
    kind, text = block_type(part), part.get("text")
    made = rewritten_media(part, format) if kind in MEDIA else None
    if made is None and kind not in MEDIA and isinstance(text, str) and text.strip():
        made = {"type": text_type, "text": text}
    if made is not None:
        found.append(note.as_other_type(kind, made["type"], where))
    elif kind in MEDIA:
        found.append(note.dropped_media(media_fault(part, format), where))
    else:
        found.append(note.dropped_unknown(kind, where))
    return made


def _with_cleaned_calls(raw: JsonObject, role: str, where: str, found: list[Finding]) -> JsonObject:
    old = raw["tool_calls"]
    listed = old if isinstance(old, list) and role == "assistant" else []
    kept = [
        call
        for number, one in enumerate(listed)
        if (call := _cleaned_call(one, f"{where}.tool_calls[{number}]", found)) is not None
    ]
    if kept == old and kept:
        return raw
    if not listed:
        finding = note.lost if old else note.changed
        found.append(finding("empty-calls", where, f"Left out tool_calls, {shown(old)}."))
    return _with_calls(raw, kept)


def _with_calls(raw: JsonObject, kept: list[JsonObject]) -> JsonObject:
    if kept:
        return {**raw, "tool_calls": kept}
    return {key: value for key, value in raw.items() if key != "tool_calls"}


def _cleaned_call(call: Any, where: str, found: list[Finding]) -> JsonObject | None:
    if not isinstance(call, dict) or not isinstance(call.get("id"), str) or not call["id"]:
        found.append(note.lost("bad-id", where, f"Dropped {shown(call)}, a call without an id."))
        return None
    if call.get("type") == "custom":
        custom = cleaned_custom(as_object(call.get("custom")))
        if custom is None:
            found.append(note.lost("bad-block", where, "Dropped a call of a custom tool without a name."))
        elif custom != call.get("custom"):
            found.append(rewritten_call(call["custom"], custom, where))
        else:
            return call
        return {**call, "custom": custom} if custom else None
    function = as_object(call.get("function"))
    cleaned = cleaned_function(function)
    if cleaned is None:
        name = shown(function.get("name"))
        found.append(note.lost("bad-block", where, f"Dropped a call of {name} that cannot be sent."))
        return None
    if cleaned == function and call.get("type") == "function":
        return call
    found.append(rewritten_call(function, cleaned, where))
    return {**call, "type": "function", "function": cleaned}


def cleaned_function(function: JsonObject) -> JsonObject | None:
    """Return a call with a name and arguments that OpenAI accepts; None if it has none."""
    name, text = function.get("name"), arguments_text(function.get("arguments"))
    if not isinstance(name, str) or not name or text is None:
        return None
    return {**function, "name": valid_name(name), "arguments": text}


def cleaned_custom(custom: JsonObject) -> JsonObject | None:
    """Return a call of a custom tool with a name and an input that OpenAI accepts; None if it has no name."""
    name, given = as_text(custom.get("name")), custom.get("input")
    if not name:
        return None
    text = given if isinstance(given, str) else "" if given is None else as_json(given)
    return {**custom, "name": valid_name(name), "input": text}


def valid_name(name: str, default: str = "tool") -> str:
    """Return the name of a tool in the letters that OpenAI accepts.

    >>> valid_name("read a file")
    'read_a_file'
    """
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:_NAME_CHARS] or default


def rewritten_call(old: JsonObject, new: JsonObject, where: str) -> Finding:
    """Return the note that a call has another name, or arguments in another form."""
    code = "bad-name" if new["name"] != old["name"] else "bad-arguments"
    return note.changed(code, where, f"Rewrote the call of {shown(old['name'])}.")


def _paired(entries: Sequence[_Entry], found: list[Finding]) -> list[_Entry]:
    """Return `entries` with calls and results numbered, without the results that no call waits for."""
    waiting: dict[str, list[int]] = {}
    number = 0
    paired = []
    for entry in entries:
        first, answers = number, -1
        for call in entry.listed:
            waiting.setdefault(call["id"], []).append(number)
            number += 1
        if entry.raw["role"] == "tool":
            key = entry.raw["tool_call_id"]
            if not waiting.get(key):
                found.append(note.dropped_orphan(shown(key), entry.where))
                continue
            answers = waiting[key].pop()
        paired.append(entry._replace(calls=tuple(range(first, number)), answers=answers))
    return paired


def _without_unanswered(entries: Sequence[_Entry], found: list[Finding]) -> list[_Entry]:
    """Return `entries` without calls that have no result, except in the last response, which may be answered yet."""
    results = {entry.answers for entry in entries}
    tail = len(entries)
    while tail and entries[tail - 1].answers >= 0:
        tail -= 1
    tail -= 1
    if tail < 0 or any(entry.answers not in entries[tail].calls for entry in entries[tail + 1 :]):
        tail = len(entries)
    kept = []
    for number, entry in enumerate(entries):
        if number == tail or results.issuperset(entry.calls):
            kept.append(entry)
            continue
        pairs = list(zip(entry.calls, entry.listed, strict=True))
        for position, (pair, call) in enumerate(pairs):
            if pair not in results:
                found.append(note.dropped_call(shown(call["id"]), f"{entry.where}.tool_calls[{position}]"))
        pairs = [(pair, call) for pair, call in pairs if pair in results]
        raw = _complete(_with_calls(entry.raw, [call for _, call in pairs]), entry.where, found)
        if raw is not None:
            kept.append(entry._replace(raw=raw, calls=tuple(pair for pair, _ in pairs)))
    return kept


def _placed(entries: Sequence[_Entry], found: list[Finding]) -> list[_Entry]:
    """Return `entries` with the results of each response right after it, in their order."""
    owner = {pair: at for at, entry in enumerate(entries) for pair in entry.calls}
    results: dict[int, list[_Entry]] = {}
    current = -1
    for at, entry in enumerate(entries):
        if entry.answers < 0:
            current = at
            continue
        called = owner[entry.answers]
        results.setdefault(called, []).append(entry)
        if called != current:
            what = f"Moved the result to after its call, {entries[called].where}."
            found.append(note.changed("interleaved-result", entry.where, what))
    return [
        one for at, entry in enumerate(entries) if entry.answers < 0 for one in (entry, *results.get(at, ()))
    ]


def _renamed(entries: Sequence[_Entry], found: list[Finding]) -> list[_Entry]:
    """Return `entries` without two calls of one id in a message, and without ids that are too long."""
    names: dict[int, str] = {}
    renamed = []
    for entry in entries:
        raw, used, listed = entry.raw, set[str](), []
        for pair, call in zip(entry.calls, entry.listed, strict=True):
            name = names[pair] = note.unused_name(call["id"], used, most=ID_CHARS)
            used.add(name)
            listed.append({**call, "id": name})
            if name != call["id"]:
                what = f"The call {shown(call['id'])} became {name}."
                found.append(note.changed("repeated-id", entry.where, what))
        if listed != entry.listed:
            raw = {**raw, "tool_calls": listed}
        if entry.answers >= 0 and names[entry.answers] != raw["tool_call_id"]:
            raw = {**raw, "tool_call_id": names[entry.answers]}
        renamed.append(entry._replace(raw=raw))
    return renamed

"""OpenAI Chat Completions: `tool_calls` beside the content, one message per result.

Reading also understands the older `function_call` and the role `function`, which have no ids (`turns.with_call_ids`
makes them). What only some servers of the same protocol refuse is a hint.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from aether.errors import shown
from aether.messages.content import (
    MEDIA,
    PDF,
    Media,
    Place,
    arguments_text,
    as_json,
    block_type,
    call_block,
    is_base64,
    is_link,
    is_text_block,
    media_block,
    other_block,
    result_blocks,
    rewritten_media,
)
from aether.messages.faults import (
    Cell,
    Entry,
    Faults,
    filled,
    known_role,
    last_response,
    new_ids,
    paired,
    results_after_calls,
    without_unanswered,
)
from aether.messages.model import Block, Message, Role, as_object, as_text
from aether.messages.turns import Traits, Turn
from aether.text.regex import lazy
from aether.types import JsonObject

# Reasoning as DeepSeek and others, OpenRouter, and LiteLLM hand it back.
REASONING = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")
ROLES: dict[str, Role] = {
    "system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool", "function": "tool",
}  # fmt: skip
FIELDS = frozenset(
    "role content name tool_calls tool_call_id refusal audio function_call annotations".split()
)
SENT = (
    "content", "name", "tool_calls", "function_call", "tool_call_id", "refusal", "audio", *REASONING,
)  # fmt: skip
# An assistant message with one of these needs no content.
_INSTEAD = ("refusal", "audio", "function_call")
TOOL_NAME = lazy(r"[a-zA-Z0-9_-]{1,64}")
TOOL_NAME_FIX = "Use letters, digits, _ and -."
# The name of who speaks: "string does not match pattern".
_SPEAKER = lazy(r"[^\s<|\\/>]{1,64}")
_NAME_CHARS = 64
# "Expected a string with maximum length 40."
_ID_CHARS = 40
_PARTS = {
    "user": frozenset({"text", "image_url", "input_audio", "file"}),
    "assistant": frozenset({"text", "refusal"}),
}
_ONLY_TEXT = frozenset({"text"})
# Types of parts that have their text under a key of the same name.
_TEXT_PARTS = frozenset({"text", "refusal"})
_KNOWN_PARTS = _PARTS["user"] | _PARTS["assistant"]
# Parts that OpenAI refuses and servers of its protocol (vLLM, Mistral, Qwen) take.
_SERVERS_PARTS = frozenset({"video_url", "audio_url", "document_url", "video", "thinking", "reference"})
_OWN = frozenset({"image_url", "input_audio", "file", "refusal"})

# Pictures: scaled into a square, then by the shorter side, then cut into tiles (images guide, gpt-4o).
_SQUARE_PIXELS, _SHORT_PIXELS, _TILE_PIXELS, _TILE_TOKENS, _BASE_TOKENS = 2048, 768, 512, 170, 85

TRAITS = Traits(list="messages", system="", system_messages="anywhere", sent=SENT, tool_name=TOOL_NAME)


def signs(raw: JsonObject) -> bool:
    """Return whether a message can only be one of this format."""
    lists = (raw.get(key) for key in ("tool_calls", "content"))
    calls, content = ([*map(as_object, listed)] if isinstance(listed, list) else [] for listed in lists)
    called = any(isinstance(call.get(key), dict) for call in calls for key in ("function", "custom"))
    answers = raw.get("role") == "tool" and "tool_call_id" in raw
    legacy = raw.get("role") == "function" or isinstance(raw.get("function_call"), dict)
    refused = isinstance(raw.get("refusal"), str)
    return called or answers or legacy or refused or any(block_type(part) in _OWN for part in content)


def message(raw: JsonObject) -> Message:
    """Return one message as read."""
    role = ROLES.get(as_text(raw.get("role")), "user")
    content = raw.get("content")
    if role == "tool":
        answer = result_blocks(content, ("content",), raw.get("tool_call_id"), tool=raw.get("name"))
        return Message(role, tuple(answer), raw, "openai")
    if isinstance(content, list):
        blocks = [part_of(part, ("content", index)) for index, part in enumerate(content)]
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
        for index, call in enumerate(listed):
            yield _call(call, ("tool_calls", index))
    elif listed is not None:
        yield other_block(listed)
    legacy = raw.get("function_call")
    if isinstance(legacy, dict):
        yield call_block(legacy.get("name"), legacy.get("arguments"), ("function_call", "arguments"), "")


def _call(call: Any, place: Place) -> Block:
    outer = as_object(call)
    for key, arguments in (("function", "arguments"), ("custom", "input")):
        if isinstance(inner := outer.get(key), dict):
            return call_block(
                inner.get("name"), inner.get(arguments), (*place, key, arguments), outer.get("id")
            )
    return other_block(call)


def new_raw(role: str, text: str) -> JsonObject:
    """Return a message that is only `text`."""
    return {"role": role, "content": text}


def system_prompt(text: str) -> Any:
    """Return a system prompt as the request has it."""
    return text


def without_reasoning(raw: JsonObject) -> JsonObject:
    """Return the message without its reasoning; the message itself if nothing else would be left."""
    remaining = {key: value for key, value in raw.items() if key not in REASONING}
    content = (
        remaining.get("content")
        or remaining.get("tool_calls")
        or remaining.get("function_call")
        or remaining.get("refusal")
    )
    return remaining if content and len(remaining) < len(raw) else raw


def write(turn: Turn) -> list[JsonObject]:
    """Return a turn as messages: its texts with its calls, then one for each answer."""
    meta = {"meta": turn.meta} if turn.meta else {}
    parts: list[JsonObject] = []
    called = []
    for piece in turn.pieces:
        if isinstance(piece, dict):
            parts.append(piece)
        elif piece.kind == "text":
            parts.append({"type": "text", "text": piece.text})
        else:
            function = {"name": piece.tool, "arguments": piece.text or "{}"}
            called.append({"id": piece.call_id, "type": "function", "function": function})
    alone = len(parts) == 1 and parts[0]["type"] == "text"
    content: Any = parts[0]["text"] if alone else parts or None
    role = "developer" if turn.developer else turn.role
    raw = {"role": role, "content": content, **({"tool_calls": called} if called else {}), **meta}
    answers = [
        {"role": "tool", "tool_call_id": answer.block.call_id, "content": answer.block.text, **meta}
        for answer in turn.answers
    ]
    return [raw, *answers]


def write_media(media: Media) -> JsonObject | None:
    """Return the part of a picture, a PDF with its data, or sound with its data; None for other media."""
    link = f"data:{media.mime};base64,{media.data}" if media.data else media.url
    if media.mime.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": link}}
    if media.mime == PDF and media.data:
        return {"type": "file", "file": {"filename": "file.pdf", "file_data": link}}
    if media.mime.startswith("audio/") and media.data:
        return {"type": "input_audio", "input_audio": {"data": media.data, "format": media.mime[6:]}}
    return None


def media_fault(part: JsonObject) -> str:
    """Return why OpenAI refuses a part of media; empty if it does not."""
    kind, file = block_type(part), as_object(part.get("file"))
    if kind == "image_url":
        link = as_object(part.get("image_url")).get("url")
        return "" if is_link(link, "image/") else f"{shown(link)} is not the address of a picture."
    if kind == "file":
        return file_fault(file)
    return sound_fault(part) if kind == "input_audio" else f"{shown(kind)} is not a medium."


def file_fault(file: JsonObject) -> str:
    """Return why OpenAI refuses a file of either interface; empty if it does not."""
    data = as_text(file.get("file_data"))
    source = (
        as_text(file.get("file_id"))
        or is_link(data, "")
        or is_base64(data)
        or is_link(file.get("file_url"), "")
    )
    return "" if source else "The file has no data, address or file_id."


def sound_fault(part: JsonObject) -> str:
    """Return why OpenAI refuses a part of sound; empty if it does not."""
    sound = as_object(part.get("input_audio"))
    good = is_base64(sound.get("data")) and as_text(sound.get("format"))
    return "" if good else "The sound has no data in base64, or no format."


def picture_tokens(width: int, height: int, detail: str) -> int:
    """Return the tokens of a picture of so many pixels."""
    if detail == "low":
        return _BASE_TOKENS
    scale = min(1.0, _SQUARE_PIXELS / max(width, height))
    scale = min(scale, _SHORT_PIXELS / min(width, height))
    tiles = math.ceil(width * scale / _TILE_PIXELS) * math.ceil(height * scale / _TILE_PIXELS)
    return _BASE_TOKENS + _TILE_TOKENS * tiles


def valid_tool_name(name: str, default: str = "tool") -> str:
    """Return the name of a tool in the letters that OpenAI accepts.

    >>> valid_tool_name("read a file")
    'read_a_file'
    """
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:_NAME_CHARS] or default


def tool_names(tools: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the place and the name of each tool of a request."""
    for index, tool in enumerate(map(as_object, tools)):
        yield f"tools[{index}]", as_object(tool.get("function", tool)).get("name")


def repaired(raws: Sequence[JsonObject], faults: Faults) -> list[tuple[int, JsonObject]]:
    """Return `raws` as OpenAI accepts them, each with its original position; `faults` gets each change."""
    entries = filled(_cleaned(index, raw, faults) for index, raw in enumerate(raws))
    entries = paired(entries, faults)
    entries = without_unanswered(entries, faults, last_response(entries, joined=False))
    entries = results_after_calls(entries, faults, next_to=True)
    ids = new_ids(entries, faults, valid=str, most=_ID_CHARS, unique="in a message")
    return [(entry.at, _sent(entry, ids)) for entry in entries]


def _sent(entry: Entry, ids: dict[int, str]) -> JsonObject:
    """Return the message of an entry; the cleaned one if nothing changed since."""
    raw = entry.raw
    if entry.role == "tool":
        [cell] = entry.cells
        return raw if ids[cell.pair] == cell.key else {**raw, "tool_call_id": ids[cell.pair]}
    called = [
        cell.value if ids[cell.pair] == cell.key else {**cell.value, "id": ids[cell.pair]}
        for cell in entry.cells
        if cell.kind == "call"
    ]
    if called == (raw.get("tool_calls") or []):
        return raw
    return {**raw, "tool_calls": called} if called else {key: raw[key] for key in raw if key != "tool_calls"}


def _cleaned(index: int, raw: JsonObject, faults: Faults) -> Entry:
    """Return a message without what cannot be sent, whatever is around it."""
    where, role = f"messages[{index}]", known_role(raw.get("role"), ROLES)
    faults.role(raw, role, where)
    raw = raw if raw.get("role") == role else {**raw, "role": role}
    if "meta" in raw:
        faults.unknown_fields(raw, raw.keys() - {"meta"}, where)
        raw = {key: value for key, value in raw.items() if key != "meta"}
    for field in sorted(map(str, raw.keys() - FIELDS)):
        faults.hint("unknown-field", where, f"{field}: not a field of a message.", "Leave it out.")
    raw = _with_cleaned_rest(_with_cleaned_content(raw, role, where, faults), role, where, faults)
    cells = []
    if raw.get("tool_calls") or (role == "assistant" and "tool_calls" in raw):
        cells = _call_cells(raw["tool_calls"], role, where, faults)
        raw = raw if cells else {key: value for key, value in raw.items() if key != "tool_calls"}
    if role == "tool":
        key = raw.get("tool_call_id")
        if not isinstance(key, str):
            faults.lost("bad-id", where, f"tool_call_id is {shown(key)}.", "Name the call.")
            return Entry(index, raw, role, [])
        return Entry(index, _with_content(raw, where, faults), role, [Cell(raw, where, "result", key)])
    if role == "function":
        return Entry(index, _with_content(raw, where, faults), "other", [Cell(raw, where)])
    if raw.get("content") is not None or (role == "assistant" and any(raw.get(key) for key in _INSTEAD)):
        cells = [Cell(raw, where), *cells]
    elif not cells:
        what, fix = f"Content is {shown(raw.get('content'))}.", "Give text, or drop the message."
        faults.lost("empty-content", where, what, fix)
    return Entry(index, raw, role, cells)


def _with_content(raw: JsonObject, where: str, faults: Faults) -> JsonObject:
    """Return a result with content."""
    if raw.get("content") is not None:
        return raw
    faults.changed("empty-content", where, "Content is null.", "Give an empty text.")
    return {**raw, "content": ""}


def _with_cleaned_rest(raw: JsonObject, role: str, where: str, faults: Faults) -> JsonObject:
    """Return a message with valid values beside its content, other than the calls."""
    fixed: JsonObject = {}
    name, refusal, audio, legacy = (raw.get(key) for key in ("name", "refusal", "audio", "function_call"))
    pattern = TOOL_NAME if role == "function" else _SPEAKER
    if (name is not None or role == "function") and not pattern.fullmatch(as_text(name)):
        letters = re.sub(r"[\s<|\\/>]", "_", as_text(name))[:_NAME_CHARS]
        fixed["name"] = valid_tool_name(letters, "function") if role == "function" else letters or None
        faults.changed("bad-name", where, f"{shown(name)} is not a name.", TOOL_NAME_FIX)
    if refusal is not None and not isinstance(refusal, str):
        fixed["refusal"] = None
        faults.changed("bad-block", where, f"The text is {shown(refusal)}.", "Give text.")
    if audio is not None and not as_text(as_object(audio).get("id")):
        fixed["audio"] = None
        faults.changed("bad-block", where, f"The audio is {shown(audio)}.", "Give its id.")
    if legacy is not None:
        function = cleaned_function(as_object(legacy), where, faults)
        if function is not legacy:
            fixed["function_call"] = function
    if not fixed:
        return raw
    changed = {**raw, **fixed}
    return {key: value for key, value in changed.items() if key not in fixed or value is not None}


def _with_cleaned_content(raw: JsonObject, role: str, where: str, faults: Faults) -> JsonObject:
    content = raw.get("content")
    if content is None or isinstance(content, str):
        return raw
    listed = [content] if isinstance(content, dict) else content if isinstance(content, list) else []
    parts = (
        _cleaned_part(part, role, f"{where}.content[{index}]", faults) for index, part in enumerate(listed)
    )
    cleaned = [part for part in parts if part is not None]
    if cleaned == content and cleaned:
        return raw
    if isinstance(content, dict) and cleaned:
        faults.changed("bad-block", where, f"Content is {shown(content)}.", "Give text or parts.")
    elif not listed:
        note = faults.changed if content == [] else faults.lost
        code = "empty-content" if content == [] else "bad-block"
        note(code, where, f"Content is {shown(content)}.", "Give text or parts.")
    return {**raw, "content": cleaned or None}


def _cleaned_part(part: Any, role: str, where: str, faults: Faults) -> JsonObject | None:
    typed = typed_part(part, "text", where, faults)
    if typed is None:
        return None
    kind = typed["type"]
    if kind in _SERVERS_PARTS:
        faults.hint("unknown-block", where, f"OpenAI has no {kind}; some servers do.", "Check it.")
        return typed
    if kind in _TEXT_PARTS:
        if not isinstance(typed.get(kind), str):
            faults.lost("bad-block", where, f"The text is {shown(typed.get(kind))}.", "Give text.")
            return None
        good: JsonObject | None = typed
    elif media_fault(typed):
        good = known_part(typed, "text", where, faults)
    else:
        good = typed
    if good and good["type"] in _KNOWN_PARTS - _PARTS.get(role, _ONLY_TEXT):
        faults.lost("wrong-role", where, f"A message of role {role} cannot hold {good['type']}.")
        return None
    return good


def typed_part(part: Any, text_type: str, where: str, faults: Faults) -> JsonObject | None:
    """Return a content part with a type: a text without one gets `text_type`; None for anything else."""
    if isinstance(part, dict) and isinstance(part.get("type"), str):
        return part
    text = part if isinstance(part, str) else as_object(part).get("text")
    if not isinstance(text, str):
        faults.lost("bad-block", where, f"{shown(part)} has no type.", "Give it a type, or drop it.")
        return None
    faults.changed("bad-block", where, f"{shown(part)} has no type.", "Give it a type.")
    return {**as_object(part), "type": text_type, "text": text}


def known_part(
    part: JsonObject,
    text_type: str,
    where: str,
    faults: Faults,
    *,
    write: Any = write_media,
    fault: Any = media_fault,
) -> JsonObject | None:
    """Return a part that OpenAI does not know, or refuses so, as one that it accepts; None if it cannot be one.

    Media of other formats are rewritten by `write`, and other parts with a text become that text.
    """
    kind, text = block_type(part), part.get("text")
    if kind in MEDIA:
        good: JsonObject | None = rewritten_media(part, write, fault)
        code, problem = "unknown-block" if good else "bad-media", fault(part)
    else:
        good = {"type": text_type, "text": text} if isinstance(text, str) and text.strip() else None
        code, problem = "unknown-block", f"{shown(kind)} is not a known type."
    if good:
        faults.changed(code, where, problem, f"Write it as {good['type']}.")
    else:
        faults.lost(code, where, problem)
    return good


def _call_cells(listed: Any, role: str, where: str, faults: Faults) -> list[Cell]:
    if not isinstance(listed, list) or not listed:
        note = faults.lost if listed else faults.changed
        note("empty-calls", where, f"tool_calls is {shown(listed)}.", "Leave it out.")
        return []
    if role != "assistant":
        faults.lost("wrong-role", where, "Only the assistant calls tools.", "Leave tool_calls out.")
        return []
    places = ((f"{where}.tool_calls[{number}]", call) for number, call in enumerate(listed))
    cleaned = ((place, _cleaned_call(call, place, faults)) for place, call in places)
    return [Cell(call, place, "call", call["id"]) for place, call in cleaned if call is not None]


def _cleaned_call(call: Any, where: str, faults: Faults) -> JsonObject | None:
    if not isinstance(call, dict) or not isinstance(call.get("id"), str) or not call["id"]:
        faults.lost("bad-id", where, f"{shown(call)} has no id.", f"Use 1 to {_ID_CHARS} characters.")
        return None
    kind = "custom" if call.get("type") == "custom" else "function"
    clean = cleaned_custom if kind == "custom" else cleaned_function
    function = clean(as_object(call.get(kind)), where, faults)
    if function is None:
        return None
    if call.get("type") != kind:
        faults.changed(
            "bad-block", where, f"{shown(call.get('type'))} is not the type of a call.", "Give it one."
        )
    same = function is call.get(kind) and call.get("type") == kind
    return call if same else {**call, "type": kind, kind: function}


def cleaned_function(function: JsonObject, where: str, faults: Faults) -> JsonObject | None:
    """Return a call with a name and arguments that OpenAI's two interfaces accept; None if it has none."""
    arguments = function.get("arguments")
    text = arguments_text(arguments)
    if text is not arguments or text is None:
        note = faults.lost if text is None else faults.changed
        note("bad-arguments", where, f"The arguments are {shown(arguments)}.", "Give JSON as text.")
    else:
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            faults.hint("bad-arguments", where, "The arguments are not JSON.", "Check the call.")
    return None if text is None else _renamed(function, "arguments", text, where, faults)


def cleaned_custom(custom: JsonObject, where: str, faults: Faults) -> JsonObject | None:
    """Return a call of a custom tool with a name and an input that OpenAI accepts; None if it has no name."""
    original = custom.get("input")
    text = original if isinstance(original, str) else "" if original is None else as_json(original)
    if text is not original:
        faults.changed("bad-arguments", where, f"The input is {shown(original)}.", "Give text.")
    return _renamed(custom, "input", text, where, faults)


def _renamed(call: JsonObject, key: str, text: str, where: str, faults: Faults) -> JsonObject | None:
    """Return a call with `text` under `key`, and with a valid name; None without a name."""
    name = call.get("name")
    if not isinstance(name, str) or not name:
        faults.lost("bad-name", where, f"{shown(name)} is not the name of a tool.", TOOL_NAME_FIX)
        return None
    valid = valid_tool_name(name)
    if valid != name:
        faults.changed("bad-name", where, f"{shown(name)} is not the name of a tool.", f"Call it {valid}.")
    return call if valid == name and call.get(key) is text else {**call, "name": valid, key: text}

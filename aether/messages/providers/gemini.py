"""Gemini contents: parts under `user` and `model`, in camel or in snake case; ids of calls are optional.

A thought signature belongs to its part and is never moved. The API does not join contents, so all responses to the
calls of one content are in the very next content.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from aether.errors import shown
from aether.messages.content import (
    Media,
    Place,
    as_json,
    call_block,
    is_base64,
    media_block,
    other_block,
    result_blocks,
    rewritten_media,
)
from aether.messages.faults import Cell, Entry, Faults, filled, paired, results_first, without_unanswered
from aether.messages.model import Block, Message, Role, as_object, as_text, is_failure_text
from aether.messages.turns import Traits, Turn
from aether.text.regex import lazy
from aether.types import JsonObject

# "Must start with a letter or an underscore … with a maximum length of 64."
TOOL_NAME = lazy(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
TOOL_NAME_FIX = "Use up to 64 letters, digits, _ . : and -, the first a letter or _."
_NAME_CHARS = 64

# The key of a function's answer, as the SDKs choose it; any other object is read as JSON.
_ANSWER_KEYS = ("output", "result", "error", "content")
_CODE = "code_execution"
_FIELDS = frozenset({"role", "parts"})
_CALL, _RESPONSE = ("functionCall", "function_call"), ("functionResponse", "function_response")
_DATA = (
    *_CALL, *_RESPONSE, "text", "inlineData", "inline_data", "fileData", "file_data", "executableCode", "executable_code",
    "codeExecutionResult", "code_execution_result", "toolCall", "tool_call", "toolResponse", "tool_response",
)  # fmt: skip
_SIGNATURE = ("thoughtSignature", "thought_signature")
# What may be beside the datum of a part; the API refuses every other key.
_BESIDE = (
    *_SIGNATURE, "thought", "videoMetadata", "video_metadata", "mediaResolution", "media_resolution", "partMetadata",
    "part_metadata",
)  # fmt: skip
_ALLOWED = frozenset({*_DATA, *_BESIDE})
_MEDIA_KEYS = ("inlineData", "inline_data", "fileData", "file_data")

# Pictures: cut into tiles (token guide, models from 2.0 on), and at least this at the resolution of models from 3 on.
_TILE_PIXELS, _TILE_TOKENS, _LEAST_TOKENS = 768, 258, 1120

TRAITS = Traits(
    list="contents", system="systemInstruction", system_messages="never", sent=("parts",), tool_name=TOOL_NAME,
    user_first=True, calls_follow_user=True, signs_decide=True, ids_optional=True, media_of_assistant=True, failure_flag=True,
)  # fmt: skip


def signs(raw: JsonObject) -> bool:
    """Return whether a content can only be one of this format."""
    return isinstance(raw.get("parts"), list)


def message(raw: JsonObject) -> Message:
    """Return one content as read."""
    parts = raw.get("parts")
    role: Role = "assistant" if as_text(raw.get("role")) in {"model", "assistant"} else "user"
    if not isinstance(parts, list):
        return Message(role, () if parts is None else (other_block(parts),), raw, "gemini")
    blocks = tuple(block for index, part in enumerate(parts) for block in _blocks(part, ("parts", index)))
    if role == "user" and parts and all(named(part, "functionResponse") for part in parts):
        role = "tool"
    return Message(role, blocks, raw, "gemini")


def new_raw(role: str, text: str) -> JsonObject:
    """Return a content that is only `text`."""
    return {"role": "model" if role == "assistant" else role, "parts": [{"text": text}]}


def system_prompt(text: str) -> Any:
    """Return a system prompt as the request has it."""
    return {"parts": [{"text": text}]}


def named(part: Any, name: str) -> str:
    """Return the key under which a part has `name`, in either case; empty if it has none.

    >>> named({"function_call": {}}, "functionCall"), named({"text": "hi"}, "functionCall")
    ('function_call', '')
    """
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return next((key for key in (name, snake) if isinstance(as_object(part).get(key), dict)), "")


def _blocks(part: Any, part_place: Place) -> list[Block]:
    if key := named(part, "functionCall"):
        inner = part[key]
        return [call_block(inner.get("name"), inner.get("args"), (*part_place, key, "args"), inner.get("id"))]
    if key := named(part, "functionResponse"):
        return _response_blocks(part[key], (*part_place, key))
    if key := named(part, "executableCode"):
        return [call_block(_CODE, part[key].get("code"), (*part_place, key, "code"), part[key].get("id"))]
    if key := named(part, "codeExecutionResult"):
        inner, place = part[key], (*part_place, key, "output")
        broken = "OUTCOME_OK" not in as_text(inner.get("outcome"))
        return result_blocks(inner.get("output"), place, inner.get("id"), tool=_CODE, broken=broken)
    if _is_media(part) or not isinstance(as_object(part).get("text"), str):
        return [media_block(part, part_place) if _is_media(part) else other_block(part)]
    text = part["text"]
    return [Block("reasoning", text) if part.get("thought") else Block("text", text, (*part_place, "text"))]


def _is_media(part: Any) -> bool:
    return bool(named(part, "inlineData") or named(part, "fileData"))


def _response_blocks(inner: JsonObject, place: Place) -> list[Block]:
    response, parts = inner.get("response"), inner.get("parts")
    answered = as_object(response)
    media = [
        media_block(part, (*place, "parts", index))
        for index, part in enumerate(parts if isinstance(parts, list) else [])
        if _is_media(part)
    ]
    alone = len(answered) == 1
    key = next((key for key in _ANSWER_KEYS if alone and isinstance(answered.get(key), str)), "")
    answer: Any = answered[key] if key else as_json(response) if response is not None else None
    blocks = result_blocks(
        answer, (*place, "response", key), inner.get("id"), tool=inner.get("name"), also=tuple(media),
        broken=True if "error" in answered else None,
    )  # fmt: skip
    return blocks if key else [blocks[0]._replace(at=(*place, "response") if answered else ()), *blocks[1:]]


def without_reasoning(raw: JsonObject) -> JsonObject:
    """Return the content without its thoughts; the content itself if nothing else would be left."""
    parts = raw.get("parts")
    if not isinstance(parts, list):
        return raw
    remaining = [part for part in parts if not as_object(part).get("thought")]
    return {**raw, "parts": remaining} if remaining and len(remaining) < len(parts) else raw


def write(turn: Turn) -> list[JsonObject]:
    """Return a turn as contents: its texts and calls, then all responses in the order of the calls."""
    meta = {"meta": turn.meta} if turn.meta else {}
    role = "model" if turn.role == "assistant" else "user"
    raw = {"role": role, "parts": [_written(piece) for piece in turn.pieces], **meta}
    calls = [piece.call_id for piece in turn.pieces if isinstance(piece, Block)]
    ordered = sorted(turn.answers, key=lambda answer: calls.index(answer.block.call_id))
    answers = []
    for block in (answer.block for answer in ordered):
        # A text that reports the failure needs no other key: readers see it under any.
        key = "error" if block.is_error and not is_failure_text(block.text) else "result"
        response = {"id": block.call_id, "name": block.tool, "response": {key: block.text}}
        answers.append({"functionResponse": response})
    return [raw, {"role": "user", "parts": answers, **meta}] if answers else [raw]


def _written(piece: Block | JsonObject) -> JsonObject:
    if isinstance(piece, dict):
        return piece
    if piece.kind == "text":
        return {"text": piece.text}
    return {"functionCall": {"id": piece.call_id, "name": piece.tool, "args": dict(piece.arguments)}}


def write_media(media: Media) -> JsonObject:
    """Return the part of any media."""
    if media.data:
        return {"inlineData": {"mimeType": media.mime, "data": media.data}}
    return {"fileData": {"mimeType": media.mime, "fileUri": media.url}}


def media_fault(part: JsonObject) -> str:
    """Return why the API refuses a part of media; empty if it does not."""
    inline = part.get("inlineData", part.get("inline_data"))
    if inline is not None:
        mime = as_object(inline).get("mimeType", as_object(inline).get("mime_type"))
        if "/" not in as_text(mime) or "*" in str(mime):
            return f"{shown(mime)} is not a media type."
        data = as_object(inline).get("data")
        return "" if isinstance(data, bytes) or is_base64(data) else "It has no data in base64."
    stored = as_object(part.get("fileData", part.get("file_data")))
    return "" if as_text(stored.get("fileUri", stored.get("file_uri"))) else "It has no data and no address."


def picture_tokens(width: int, height: int, _detail: str) -> int:
    """Return the tokens of a picture of so many pixels."""
    tiles = math.ceil(width / _TILE_PIXELS) * math.ceil(height / _TILE_PIXELS)
    return max(_LEAST_TOKENS, _TILE_TOKENS * tiles)


def valid_tool_name(name: str) -> str:
    """Return the name of a function in the letters that Gemini accepts.

    >>> valid_tool_name("2nd look")
    '_2nd_look'
    """
    letters = re.sub(r"[^a-zA-Z0-9_.:-]", "_", name)
    return (letters if TOOL_NAME.match(letters) else f"_{letters}")[:_NAME_CHARS]


def tool_names(tools: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the place and the name of each function of a request."""
    for index, tool in enumerate(map(as_object, tools)):
        listed = tool.get("functionDeclarations", tool.get("function_declarations"))
        for number, function in enumerate(listed if isinstance(listed, list) else []):
            yield f"tools[{index}].functionDeclarations[{number}]", as_object(function).get("name")


def repaired(raws: Sequence[JsonObject], faults: Faults) -> list[tuple[int, JsonObject]]:
    """Return `raws` as the API accepts them, each with its original position; `faults` gets each change."""
    entries = filled(_cleaned(index, raw, faults) for index, raw in enumerate(raws))
    entries = paired(_user_first(entries, faults), faults)
    entries = without_unanswered(entries, faults, len(entries) - 1)
    entries = _joined(results_first(entries, faults, joined=False), faults)
    _hints(entries, faults)
    return [(entry.at, _sent(entry)) for entry in entries]


def _sent(entry: Entry) -> JsonObject:
    """Return the content of an entry; the original one if nothing changed."""
    raw, parts = entry.raw, [cell.value for cell in entry.cells]
    role = "model" if entry.role == "assistant" else entry.role
    if role == "user" and raw.get("role") == "function":
        role = "function"
    same = parts == raw.get("parts") and role == raw.get("role") and raw.keys() <= _FIELDS
    return raw if same else {"role": role, "parts": parts}


def _hints(entries: Sequence[Entry], faults: Faults) -> None:
    """Note what only thinking models, or only some models, refuse."""
    # In the current turn thinking models need the signature of each first call.
    for entry in reversed(entries):
        if entry.role != "assistant" and not entry.pairs("result"):
            break
        call = next((cell for cell in entry.cells if cell.kind == "call"), None)
        if call and not any(call.value.get(key) for key in _SIGNATURE):
            what, fix = "The first call has no thoughtSignature.", "Keep the part as the model sent it."
            faults.hint("unsigned-thinking", f"contents[{entry.at}]", what, fix)
    if entries and entries[0].role == "assistant":
        faults.hint(
            "first-role", "contents[0]", "The first content is the model's.", "Start with the user's."
        )
    if entries and entries[-1].role == "assistant" and not entries[-1].pairs("call"):
        what = "The last content is the model's."
        faults.hint("trailing-assistant", f"contents[{entries[-1].at}]", what, "End with the user's.")


def _cleaned(index: int, raw: JsonObject, faults: Faults) -> Entry:
    """Return a content without what cannot be sent, whatever is around it."""
    where, role, parts = f"contents[{index}]", raw.get("role"), raw.get("parts")
    if not isinstance(role, str) or role not in ("user", "model", "function"):
        role = "model" if role in ("assistant", "ai") else "user"
        faults.role(raw, role, where)
    faults.unknown_fields(raw, _FIELDS, where)
    listed = parts if isinstance(parts, list) else [parts] if isinstance(parts, dict) else []
    if not listed:
        faults.lost("empty-content", where, "The content has no parts.")
    cells = [
        _cell(good, f"{where}.parts[{number}]")
        for number, part in enumerate(listed)
        for good in _cleaned_parts(part, role, f"{where}.parts[{number}]", faults)
    ]
    return Entry(index, raw, "assistant" if role == "model" else "user", cells)


def _cell(part: JsonObject, where: str) -> Cell:
    """Return the cell of a part; a call and its response have the same name, and the same id if any."""
    for kind, keys in (("call", _CALL), ("result", _RESPONSE)):
        value = next((part[key] for key in keys if key in part), None)
        if value is not None:
            key = f"{value['name']} {value['id']}" if as_text(value.get("id")) else value["name"]
            return Cell(part, where, kind, key)  # type: ignore[arg-type]
    return Cell(part, where)


def _cleaned_parts(part: Any, role: str, where: str, faults: Faults) -> list[JsonObject]:
    """Return the parts in a part, each with one datum; other keys stay with the last."""
    old = {"text": part} if isinstance(part, str) else as_object(part)
    if _ALLOWED.isdisjoint(old) and (foreign := rewritten_media(old, write_media, media_fault)):
        what = f"{shown(as_text(old.get('type')) or 'part')} is not a known type."
        faults.changed("unknown-block", where, what, f"Write it as {next(iter(foreign))}.")
        return [foreign]
    if unknown := sorted(map(str, old.keys() - _ALLOWED)):
        faults.changed("unknown-field", where, f"Unknown: {', '.join(unknown)}.", "Leave it out.")
    cleaned: list[JsonObject] = []
    for key in (key for key in _DATA if key in old):
        value = _cleaned_datum(key, old[key], role, where, faults)
        cleaned += [] if value is None else [{key: value}]
    if cleaned:
        cleaned[-1].update((key, value) for key, value in old.items() if key in _BESIDE)
    elif not any(key in old for key in _DATA):
        faults.lost("bad-block", where, f"{shown(part)} has no datum.")
    if (len(cleaned) > 1 or isinstance(part, str)) and cleaned != [part]:
        faults.changed("bad-block", where, f"{shown(part)} has not exactly one datum.", "Give it one.")
    return [part] if cleaned == [part] else cleaned


def _cleaned_datum(key: str, value: Any, role: str, where: str, faults: Faults) -> Any:
    """Return the datum of a part as it may be sent; None if it may not."""
    if key == "text":
        if isinstance(value, str) and value:
            return value
        code, problem = (
            ("empty-content", "The text is empty.")
            if value == ""
            else ("bad-block", f"The text is {shown(value)}.")
        )
        faults.lost(code, where, problem, "Drop the part.")
    elif not isinstance(value, dict):
        faults.lost("bad-block", where, f"{key} is {shown(value)}.", "Give an object.")
    elif key in _CALL + _RESPONSE:
        return _cleaned_call(key, value, role, where, faults)
    elif key in _MEDIA_KEYS and (fault := media_fault({key: value})):
        media = as_object(rewritten_media({key: value}, write_media, media_fault)).get(key)
        note = faults.changed if media else faults.lost
        note("bad-media", where, fault)
        return media
    elif named({key: {}}, "executableCode") and not as_text(value.get("code")):
        faults.lost("bad-block", where, f"{key} without its code.")
    else:
        return value
    return None


def _cleaned_call(key: str, value: JsonObject, role: str, where: str, faults: Faults) -> JsonObject | None:
    """Return a call or a response with a valid name and arguments; None if it cannot be sent."""
    name, is_call = value.get("name"), key in _CALL
    if role == ("user" if is_call else "model"):
        faults.lost("wrong-role", where, f"A content of role {role} cannot hold {key}.")
        return None
    if not isinstance(name, str) or not name:
        faults.lost("bad-name", where, f"{shown(name)} is not the name of a tool.", TOOL_NAME_FIX)
        return None
    arguments = value.get("args" if is_call else "response", {})
    if not isinstance(arguments, dict) and not (is_call and arguments is None):
        note = faults.lost if is_call else faults.changed
        note("bad-arguments", where, f"{shown(arguments)} is not an object.", "Give an object.")
        if is_call:
            return None
        value = {**value, "response": {} if arguments is None else {"result": arguments}}
    if not TOOL_NAME.fullmatch(name):
        valid = valid_tool_name(name)
        faults.changed("bad-name", where, f"{shown(name)} is not the name of a tool.", f"Call it {valid}.")
        value = {**value, "name": valid}
    parts = None if is_call else value.get("parts")
    if parts is not None:
        media = [
            part
            for part in (parts if isinstance(parts, list) else [])
            if _is_media(part) and not media_fault(part)
        ]
        if media != parts:
            faults.lost("bad-media", where, "A response holds parts that are not media.")
            value = {**value, "parts": media}
    return value


def _user_first(entries: Sequence[Entry], faults: Faults) -> list[Entry]:
    """Return `entries` without calls and responses before the first content of the user."""
    opened = False
    remaining = []
    for entry in entries:
        opened = opened or (entry.role == "user" and any(cell.kind != "result" for cell in entry.cells))
        cells = entry.cells if opened else [cell for cell in entry.cells if cell.kind == "other"]
        if len(cells) < len(entry.cells):
            what = "Calls or responses come before the first content of the user."
            faults.lost("role-order", f"contents[{entry.at}]", what)
        remaining.append(entry._replace(cells=cells))
    return filled(remaining)


def _joined(entries: Sequence[Entry], faults: Faults) -> list[Entry]:
    """Return `entries` in which calls of the model never follow another content of the model."""
    joined: list[Entry] = []
    for entry in entries:
        combined = entry
        while combined.pairs("call") and joined and joined[-1].role == "assistant":
            what = "A content with calls comes after one of the model."
            faults.changed("role-order", f"contents[{entry.at}]", what, "Join them.")
            before = joined.pop()
            combined = before._replace(cells=[*before.cells, *combined.cells])
        joined.append(combined)
    return joined

"""Gemini contents: parts under `user` and `model`, in camel or in snake case; ids of calls are optional.

A thought signature belongs to the part it stands in and stays with it.
"""

from __future__ import annotations

from typing import Any

from aether.errors import InvalidInput
from aether.messages.blocks import failed, table, word
from aether.messages.formats.content import as_json, call, media, other, result
from aether.messages.formats.places import Place
from aether.messages.formats.turns import Turn
from aether.messages.message import Block, Message, Role
from aether.shapes import JsonObject

# Where a function puts what it answered, as the SDKs do it; any other object is read as JSON.
_ANSWERS = ("output", "result", "error", "content")
CODE = "code_execution"


def message(raw: JsonObject) -> Message:
    """Return one content as read."""
    parts = raw.get("parts")
    role: Role = "assistant" if word(raw.get("role")) in {"model", "assistant"} else "user"
    if not isinstance(parts, list):
        return Message(role, () if parts is None else (other(parts),), raw, "gemini")
    found = tuple(block for at, part in enumerate(parts) for block in _blocks(part, ("parts", at)))
    if role == "user" and parts and all(named(part, "functionResponse") for part in parts):
        role = "tool"
    return Message(role, found, raw, "gemini")


def named(part: Any, name: str) -> str:
    """Return the key under which a part keeps `name`, in either case; empty where it does not.

    >>> named({"function_call": {}}, "functionCall"), named({"text": "hi"}, "functionCall")
    ('function_call', '')
    """
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return next((key for key in (name, snake) if isinstance(table(part).get(key), dict)), "")


def _blocks(part: Any, at: Place) -> list[Block]:
    if key := named(part, "functionCall"):
        inner = part[key]
        return [call(inner.get("name"), inner.get("args"), (*at, key, "args"), inner.get("id"))]
    if key := named(part, "functionResponse"):
        return _response(part[key], (*at, key))
    return _code(part, at) or [_shown(part, at)]


def _code(part: Any, at: Place) -> list[Block]:
    """Return what the model ran on the server, or what came of it."""
    if key := named(part, "executableCode"):
        return [call(CODE, part[key].get("code"), (*at, key, "code"), part[key].get("id"))]
    if key := named(part, "codeExecutionResult"):
        broken = "OUTCOME_OK" not in word(part[key].get("outcome"))
        inner = part[key]
        return result(inner.get("output"), (*at, key, "output"), inner.get("id"), tool=CODE, broken=broken)
    return []


def _shown(part: Any, at: Place) -> Block:
    if named(part, "inlineData") or named(part, "fileData"):
        return media(part, at)
    if isinstance(table(part).get("text"), str):
        thought = bool(part.get("thought"))
        return Block("reasoning", part["text"]) if thought else Block("text", part["text"], (*at, "text"))
    return other(part)


def _response(inner: JsonObject, at: Place) -> list[Block]:
    response = inner.get("response")
    given = table(response)
    parts = inner.get("parts")
    shown = [
        media(part, (*at, "parts", position))
        for position, part in enumerate(parts if isinstance(parts, list) else [])
        if named(part, "inlineData") or named(part, "fileData")
    ]
    key = next((key for key in _ANSWERS if len(given) == 1 and isinstance(given.get(key), str)), "")
    answer: Any = given[key] if key else as_json(response) if response is not None else None
    found = result(
        answer, (*at, "response", key), inner.get("id"), tool=inner.get("name"), also=tuple(shown),
        broken=True if "error" in given else None,
    )  # fmt: skip
    return found if key else [found[0]._replace(at=(*at, "response") if given else ()), *found[1:]]


def said(role: Role, text: str) -> JsonObject:
    """Return a new content that says `text`.

    Raises:
        InvalidInput: contents have no system role, and a tool cannot say anything without a call.
    """
    if role in {"tool", "system"}:
        raise InvalidInput(
            f"Gemini contents have no message of role {role!r} that only says something.",
            fix="Say it as user or assistant, or put it into systemInstruction.",
            where="role",
        )
    return {"role": "model" if role == "assistant" else "user", "parts": [{"text": text}]}


def without_reasoning(raw: JsonObject) -> JsonObject:
    """Return the content without its thoughts; itself where nothing else would be left."""
    parts = raw.get("parts")
    if not isinstance(parts, list):
        return raw
    kept = [part for part in parts if not table(part).get("thought")]
    return {**raw, "parts": kept} if kept and len(kept) < len(parts) else raw


def written(turn: Turn) -> list[JsonObject]:
    """Return a turn as contents: what is said with its calls, and all responses in the order of the calls."""
    meta = {"meta": turn.meta} if turn.meta else {}
    role = "model" if turn.role == "assistant" else "user"
    raw = {"role": role, "parts": [_part(piece) for piece in turn.pieces], **meta}
    calls = [piece.call_id for piece in turn.pieces if isinstance(piece, Block)]
    ordered = sorted(turn.answers, key=lambda answer: calls.index(answer.block.call_id))
    answers = [{"functionResponse": _answer(answer.block)} for answer in ordered]
    return [raw, {"role": "user", "parts": answers, **meta}] if answers else [raw]


def _part(piece: Block | JsonObject) -> JsonObject:
    if isinstance(piece, dict):
        return piece
    if piece.kind == "text":
        return {"text": piece.text}
    return {"functionCall": {"id": piece.call_id, "name": piece.tool, "args": dict(piece.arguments)}}


def _answer(block: Block) -> JsonObject:
    # Where the text says that it failed, readers see it under any key.
    key = "error" if block.is_error and not failed(block.text) else "result"
    return {"id": block.call_id, "name": block.tool, "response": {key: block.text}}

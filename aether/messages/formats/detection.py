"""Detection: which wire a list of messages is spelt in, told from what only that wire has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from aether.messages.blocks import table, word
from aether.messages.formats.places import kind_of
from aether.messages.message import Wire
from aether.shapes import JsonObject

_ANTHROPIC = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "document", "server_tool_use"}
)
_OPENAI = frozenset({"image_url", "input_audio", "file", "refusal"})
_RESPONSES = frozenset({"input_text", "output_text", "input_image", "input_file"})
_ITEMS = frozenset({"reasoning", "item_reference", "compaction"})


def detect_wire(raws: Sequence[Any], *, after: Wire = "plain") -> Wire:
    """Return the wire of `raws`: `plain` where nothing tells, or where OpenAI and Anthropic are mixed.

    `after` is the wire of the messages before them, where only the newest are looked at.

    >>> detect_wire([{"role": "user", "content": "Hi"}])
    'plain'
    >>> detect_wire([{"role": "tool", "tool_call_id": "c1", "content": "ok"}])
    'openai'
    >>> detect_wire([{"role": "user", "content": "Hi"}], after="gemini")
    'gemini'
    """
    found: set[Wire] = {after} - {"plain"}
    for raw in raws:
        found.update(_signs(table(raw)))
    for wire in ("gemini", "responses"):
        if wire in found:
            return wire
    return found.pop() if len(found) == 1 else "plain"


def _signs(raw: JsonObject) -> Iterator[Wire]:
    if isinstance(raw.get("parts"), list):
        yield "gemini"
    kind = kind_of(raw)
    if (kind in _ITEMS or "call_id" in raw or kind.endswith("_call")) and "role" not in raw:
        yield "responses"
    called = any(
        isinstance(table(one).get(key), dict) for one in _listed(raw, "tool_calls") for key in _CALLED
    )
    if _is_mixed(raw):
        yield "plain"
    answers = raw.get("role") == "tool" and "tool_call_id" in raw
    legacy = raw.get("role") == "function" or isinstance(raw.get("function_call"), dict)
    if called or answers or legacy or isinstance(raw.get("refusal"), str):
        yield "openai"
    kinds = {word(table(block).get("type")) for block in _listed(raw, "content")}
    if kinds & _ANTHROPIC or any(
        isinstance(table(block).get("source"), dict) for block in _listed(raw, "content")
    ):
        yield "anthropic"
    if kinds & _OPENAI:
        yield "openai"
    if kinds & _RESPONSES:
        yield "responses"


def _is_mixed(raw: JsonObject) -> bool:
    """Tell whether a message is in the dialect of an agent, which only the plain reader knows."""
    flat = any(isinstance(table(one).get("function"), str) for one in _listed(raw, "tool_calls"))
    kinds = {word(table(block).get("type")) for block in _listed(raw, "content")}
    return flat or bool({"tool_call_ids", "toolCalls", "toolCallId"} & raw.keys()) or "toolCall" in kinds


_CALLED = ("function", "custom")


def _listed(raw: JsonObject, key: str) -> list[Any]:
    value = raw.get(key)
    return value if isinstance(value, list) else []

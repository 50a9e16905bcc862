"""Detection: which format a stream holds, told from what it begins with and never from its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aether.errors import InvalidInput, shown
from aether.messages import knowledge_graph
from aether.messages.blocks import word
from aether.messages.chat import conversations, is_line, is_message
from aether.messages.items import is_item
from aether.messages.openhands import events_of
from aether.messages.record import FORMATS, Format
from aether.text.patterns import lazy

# Text that begins like this is meant as JSON; a Markdown link or a checkbox is not.
_JSON_START = lazy(r'\s*(?:\{\s*(?:["}]|$)|\[\s*(?:[\[{"\]\d-]|$))')
_CODEX_TYPES = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}
_CLAUDE_TYPES = {"user", "assistant", "system", "progress", "attachment"}


def looks_like_json(text: str) -> bool:
    """Tell whether text that begins so is meant as JSON.

    >>> looks_like_json('{"type": 1}'), looks_like_json("[a link](x.md)"), looks_like_json("- [ ] to do")
    (True, False, False)
    """
    return bool(_JSON_START.match(text))


def detect(values: Sequence[Any], *, where: str = "input") -> Format:
    """Return the format of which `values` are the first JSON values.

    Raises:
        InvalidInput: nothing in them is of a known format.

    >>> detect([{"role": "user", "content": "Build it."}])
    'chat'
    """
    for value in values:
        found = _format(value)
        if found:
            return found
    if any(map(knowledge_graph.is_line, values)):
        raise InvalidInput(
            "it is a knowledge graph, not a transcript.", fix='Use "aether graph import".', where=where
        )
    first = shown(values[0]) if values else "no readable JSON"
    raise unknown(f"it begins with {first}.", where=where)


def unknown(what: str, *, where: str) -> InvalidInput:
    """Return the error that says that no format fits, and names those there are."""
    return InvalidInput(
        f"no known format: {what}",
        fix=f"Known formats are {', '.join(FORMATS)}; force one with --format.",
        where=where,
    )


def _format(value: Any) -> Format | None:
    if isinstance(value, dict):
        return _format_of_object(value)
    if isinstance(value, list):
        if events_of(value):
            return "openhands"
        if any(map(is_message, value)):
            return "chat"
        if any(map(is_item, value)):
            return "items"
    return None


def _format_of_object(value: dict[str, Any]) -> Format | None:
    if word(value.get("type")) in _CODEX_TYPES and "payload" in value:
        return "codex"
    if isinstance(value.get("loglines"), list) or _is_claude_code(value):
        return "claude_code"
    if events_of(value):
        return "openhands"
    if is_line(value) or next(conversations(value), None):
        return "chat"
    return "items" if is_item(value) else None


def _is_claude_code(value: dict[str, Any]) -> bool:
    if word(value.get("type")) in _CLAUDE_TYPES and (
        "message" in value or "uuid" in value or "sessionId" in value
    ):
        return True
    return "leafUuid" in value or (
        "sessionId" in value and isinstance(value.get("type"), str) and "role" not in value
    )

"""The results of MCP tools: texts that fit a model's context, and short schemas of their arguments.

A client cuts a long text silently, so a long one is given in parts, at the ends of lines. A model pays for the list of
tools in every session, so schemas that are generated from Python types lose titles and nulls.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from aether.errors import InvalidInput
from aether.types import JsonObject

# Claude Code refuses results of more than 25,000 tokens; a quarter of that is still a lot for one question.
RESULT_CHARS = 25_000


class Answer(NamedTuple):
    """The answer of a tool."""

    text: str
    data: JsonObject | None = None
    """The same as a value, where the tool promises its shape."""
    note: str = ""
    """A remark beside the text."""


def as_json(value: Any) -> str:
    """Return `value` as indented JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def part_of(text: str, part: int, *, ask: str) -> str:
    r"""Return the part of `text` with that number, from 1; `ask` names the call that gives the next one.

    Raises:
        InvalidInput: the text has fewer parts.

    >>> part_of("short", 1, ask="get it")
    'short'
    """
    parts = _parts(text)
    if not 1 <= part <= len(parts):
        raise InvalidInput(f"unknown part {part}.", fix=f"Use 1 to {len(parts)}.", where="part")
    if len(parts) == 1:
        return text
    more = f" Go on with {ask}, part={part + 1}." if part < len(parts) else " This is the last."
    return f"{parts[part - 1]}\n[part {part} of {len(parts)}.{more}]"


def _parts(text: str) -> list[str]:
    parts = []
    while len(text) > RESULT_CHARS:
        # A line that is longer than a part is cut in the middle.
        end = text.rfind("\n", 0, RESULT_CHARS) + 1 or RESULT_CHARS
        parts.append(text[:end])
        text = text[end:]
    return [*parts, text]


def minify(schema: JsonObject, known: Mapping[str, str | JsonObject]) -> JsonObject:
    """Return a schema of arguments without titles and nulls; `known` has descriptions, or whole schemas, by name.

    >>> count = {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "title": "Count"}
    >>> minify({"type": "object", "properties": {"count": count}}, {"count": "How many"})
    {'type': 'object', 'properties': {'count': {'type': 'integer', 'description': 'How many'}}}
    """
    made: JsonObject = {key: value for key, value in schema.items() if key != "title"}
    made["properties"] = {}
    for name, value in schema.get("properties", {}).items():
        about = known.get(name, "")
        kinds = [kind for kind in value.get("anyOf", []) if kind != {"type": "null"}]
        bare = {
            key: below for key, below in value.items() if key != "anyOf" and (key, below) != ("default", None)
        }
        bare = kinds[0] | bare if len(kinds) == 1 else bare | ({"anyOf": kinds} if kinds else {})
        bare.pop("title", None)
        made["properties"][name] = (
            about if isinstance(about, dict) else bare | ({"description": about} if about else {})
        )
    return made

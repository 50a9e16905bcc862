"""Answers: what a tool says, in text that fits a model's context and says how to go on.

A client cuts what is too long without a word; so a long answer is given in parts, at the ends of lines.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from aether.errors import InvalidInput
from aether.shapes import JsonObject

# Claude Code refuses results of more than 25,000 tokens; a quarter of that is still a lot for one question.
RESULT_CHARS = 25_000


class Answer(NamedTuple):
    """What a tool answers."""

    text: str
    data: JsonObject | None = None
    """The same as a value, where the tool promises its shape."""
    note: str = ""
    """What is to be said beside it."""


def as_json(value: Any) -> str:
    """Return `value` as a person and a model read it."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def part_of(text: str, part: int, *, ask: str) -> str:
    r"""Return the part of `text` with that number, from 1; `ask` says how to get the next one.

    Raises:
        InvalidInput: it has fewer parts.

    >>> part_of("short", 1, ask="get it")
    'short'
    """
    parts = _parts(text)
    if not 1 <= part <= len(parts):
        raise InvalidInput(f"there is no part {part}.", fix=f"Use 1 to {len(parts)}.", where="part")
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

"""Places: one value deep inside a message, read and replaced without touching the rest.

A place is the tuple of keys that leads there. Replacing copies the objects on the way and nothing else,
so what was read stays as it was.
"""

from __future__ import annotations

from typing import Any

from aether.messages.blocks import word
from aether.shapes import JsonObject

Place = tuple[str | int, ...]


def value_at(raw: Any, at: Place) -> Any:
    """Return the value at a place that exists.

    >>> value_at({"content": [{"text": "hi"}]}, ("content", 0, "text"))
    'hi'
    """
    for key in at:
        raw = raw[key]
    return raw


def replaced(raw: Any, at: Place, value: Any) -> Any:
    """Return a copy of `raw` with `value` at a place that exists.

    >>> replaced({"a": [1, 2], "b": 3}, ("a", 1), 7)
    {'a': [1, 7], 'b': 3}
    """
    if not at:
        return value
    key = at[0]
    copied: Any = dict(raw) if isinstance(raw, dict) else list(raw)
    copied[key] = replaced(raw[key], at[1:], value)
    return copied


def retold(listed: list[Any], text: str) -> list[Any]:
    """Return a list of content blocks that says `text` where its first text stood; its other texts go.

    >>> retold([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}], "c")
    [{'type': 'text', 'text': 'c'}, {'type': 'image'}]
    """
    kept: list[Any] = []
    told = False
    for block in listed:
        if not is_text(block):
            kept.append(block)
        elif not told:
            kept.append({**block, "text": text} if isinstance(block, dict) else text)
            told = True
    return kept


def is_text(block: Any) -> bool:
    """Tell whether a content block is text and nothing else."""
    return isinstance(block, dict) and isinstance(block.get("text"), str) and kind_of(block) in TEXTS


def kind_of(block: JsonObject) -> str:
    """Return the `type` of a content block, empty where it has none that is text."""
    return word(block.get("type"))


TEXTS = frozenset({"", "text", "input_text", "output_text"})

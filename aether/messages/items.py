"""JSON Lines of items: what somebody already noted, `{content, type, relevance_score, …}` per line.

An item that could not be stored is a bad line, reported with its number, and does not stop the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

from aether.errors import shown
from aether.messages.blocks import table, word
from aether.messages.record import BadLine, OnBad, Record, ignore
from aether.shapes import JsonObject


def records(values: Iterable[tuple[int, Any]], *, on_bad: OnBad = ignore) -> Iterator[Record]:
    """Yield one record per item; its `arguments` are the item as it was written."""
    session = ""
    for number, value in values:
        listed = value if isinstance(value, list) else [value]
        for position, item in enumerate(listed):
            fault = fault_of(item)
            if fault:
                on_bad(BadLine(number, fault))
                continue
            session = session or sha256(item["content"].encode("utf-8", "surrogatepass")).hexdigest()[:16]
            metadata = table(item.get("metadata"))
            yield Record(
                "item",
                text=item["content"],
                arguments=item,
                uuid=word(item.get("id")),
                time=word(metadata.get("timestamp")),
                line=number,
                part=position,
                session=session,
                format="items",
            )


def is_item(value: Any) -> bool:
    """Tell whether `value` is meant as an item.

    >>> is_item({"content": "Use SQLite.", "type": "decision"}), is_item({"role": "user", "content": "hi"})
    (True, False)
    """
    return (
        isinstance(value, dict)
        and "content" in value
        and "type" in value
        and not {"role", "uuid"} & set(value)
    )


def fault_of(item: Any) -> str:
    """Return what keeps `item` from being one, empty where nothing does."""
    if not isinstance(item, dict):
        return f"{shown(item)} is not an item"
    for key in ("content", "type"):
        if not isinstance(item.get(key), str) or not item[key].strip():
            return f"item without {key!r} as text: {shown(item)}"
    return _fault_of_score(item)


def _fault_of_score(item: JsonObject) -> str:
    score = item.get("relevance_score", 0.5)
    number = isinstance(score, (int, float)) and not isinstance(score, bool)
    return "" if number and 0 <= score <= 1 else f"relevance_score {shown(score)} is not within 0 and 1"

"""The file of the official memory server of MCP: one entity or relation on a line, read and written.

Any other line is reported with its number and does not stop the reading.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aether.errors import shown
from aether.messages.records import BadLine, OnBad, ignore_bad_line, read_json_values
from aether.types import JsonObject

_TEXTS = {"entity": ("name", "entityType"), "relation": ("from", "to", "relationType")}


def is_line(value: Any) -> bool:
    """Return whether `value` is meant as a line of such a file.

    >>> is_line({"type": "entity", "name": "ant"}), is_line({"type": "user", "name": "ant"})
    (True, False)
    """
    kind = value.get("type") if isinstance(value, dict) else None
    return isinstance(kind, str) and kind in _TEXTS and bool(set(_TEXTS[kind]) & set(value))


def read_graph(lines: Iterable[bytes], *, on_bad: OnBad = ignore_bad_line) -> dict[str, list[JsonObject]]:
    r"""Return the `entities` and `relations` of a file, in its order, without their `type`.

    >>> read_graph([b'{"type":"relation","from":"ant","to":"leaf","relationType":"eats"}\n'])
    {'entities': [], 'relations': [{'from': 'ant', 'to': 'leaf', 'relationType': 'eats'}]}
    """
    graph: dict[str, list[JsonObject]] = {"entities": [], "relations": []}
    for number, value in read_json_values(lines, on_bad=on_bad):
        if fault := _fault(value):
            on_bad(BadLine(number, fault))
        elif value["type"] == "entity":
            entity = {**_texts(value), "observations": value.get("observations", [])}
            graph["entities"].append(entity)
        else:
            graph["relations"].append(_texts(value))
    return graph


def graph_text(entities: Sequence[Mapping[str, Any]], relations: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a file of these entities and relations."""
    listed = [{"type": "entity", **entry} for entry in entities]
    listed += [{"type": "relation", **entry} for entry in relations]
    return "".join(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n" for entry in listed)


def _texts(value: JsonObject) -> JsonObject:
    return {key: value[key] for key in _TEXTS[value["type"]]}


def _fault(value: Any) -> str:
    """Return why `value` is not a line of such a file, empty if it is one."""
    if not is_line(value):
        return f"{shown(value)} is neither an entity nor a relation"
    for key in _TEXTS[value["type"]]:
        if not isinstance(value.get(key), str):
            return f"{value['type']} without {key!r} as text: {shown(value)}"
    observations = value.get("observations", [])
    if not isinstance(observations, list) or not all(isinstance(text, str) for text in observations):
        return f"observations that are not a list of texts: {shown(value)}"
    return ""

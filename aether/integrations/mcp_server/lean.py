"""Lean schemas: what is generated from Python types, without the words that no model needs.

A model pays for the list of tools in every session. Titles repeat names, and `anyOf` with null says of an argument
only that it may be left out, which its default says already.
"""

from __future__ import annotations

from collections.abc import Mapping

from aether.shapes import JsonObject


def lean(schema: JsonObject, known: Mapping[str, str | JsonObject]) -> JsonObject:
    """Return a schema of arguments without titles and nulls, with what is `known` of each.

    That is a description, or a whole schema in the place of the generated one.

    >>> count = {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "title": "Count"}
    >>> lean({"type": "object", "properties": {"count": count}}, {"count": "How many"})
    {'type': 'object', 'properties': {'count': {'type': 'integer', 'description': 'How many'}}}
    """
    made: JsonObject = {key: value for key, value in schema.items() if key != "title"}
    made["properties"] = {
        name: _argument(value, known.get(name, "")) for name, value in schema.get("properties", {}).items()
    }
    return made


def _argument(value: JsonObject, known: str | JsonObject) -> JsonObject:
    if isinstance(known, dict):
        return known
    bare = {key: below for key, below in _optional(value).items() if key != "title"}
    return {**bare, "description": known} if known else bare


def _optional(value: JsonObject) -> JsonObject:
    kinds = [kind for kind in value.get("anyOf", []) if kind != {"type": "null"}]
    bare = {key: below for key, below in value.items() if (key, below) != ("default", None)}
    if len(kinds) != 1:
        return {**bare, "anyOf": kinds} if kinds else bare
    del bare["anyOf"]
    return {**kinds[0], **bare}

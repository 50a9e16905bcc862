"""The shapes of the official memory server's contract: as JSON schemas for clients, and as a check of what comes in.

Unknown fields are passed over, as there. Each shape is a table of its fields; a text in it is a description.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aether.errors import InvalidInput, shown
from aether.shapes import JsonObject

TEXTS = "An array of "
# A name is said in every answer about its entity and its relations; what is longer is an observation.
MAX_NAME_CHARS = 2_000
Fields = Mapping[str, str]
"""What each field is; that of an array of texts begins with `TEXTS`."""

ENTITY: Fields = {
    "name": "The name of the entity",
    "entityType": "The type of the entity",
    "observations": "An array of observation contents associated with the entity",
}
RELATION: Fields = {
    "from": "The name of the entity where the relation starts",
    "to": "The name of the entity where the relation ends",
    "relationType": "The type of the relation",
}
OBSERVED: Fields = {
    "entityName": "The name of the entity to add the observations to",
    "contents": "An array of observation contents to add",
}
DELETION: Fields = {
    "entityName": "The name of the entity containing the observations",
    "observations": "An array of observations to delete",
}
ADDED: Fields = {
    "entityName": "The name of the entity",
    "addedObservations": "An array of observation contents that were new",
}


def listed(fields: Fields) -> JsonObject:
    """Return the JSON schema of an array of objects with these fields.

    >>> listed({"to": "Where it ends"})["items"]["properties"]
    {'to': {'type': 'string', 'description': 'Where it ends'}}
    """
    properties = {name: _property(about) for name, about in fields.items()}
    return {"type": "array", "items": {"type": "object", "properties": properties, "required": list(fields)}}


def checked(values: object, fields: Fields, *, where: str) -> Any:
    """Return `values`, objects with these fields, without other fields.

    Raises:
        InvalidInput: a field is missing, of another type, or a name is too long; its place is named.
    """
    if not isinstance(values, list):
        raise InvalidInput(f"is {shown(values)}.", fix="Use an array of objects.", where=where)
    return [_one(value, fields, f"{where}[{at}]") for at, value in enumerate(values)]


def _one(value: object, fields: Fields, where: str) -> JsonObject:
    if not isinstance(value, dict):
        raise InvalidInput(f"is {shown(value)}.", fix=f"Use an object with {', '.join(fields)}.", where=where)
    for name, about in fields.items():
        given = value.get(name)
        texts = given if about.startswith(TEXTS) else [given]
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            kind = "an array of texts" if about.startswith(TEXTS) else "a text"
            raise InvalidInput(f"{name} is {shown(given)}.", fix=f"Use {kind}.", where=where)
        if about.startswith(TEXTS) or len(texts[0]) <= MAX_NAME_CHARS:
            continue
        raise InvalidInput(
            f"{name} has {len(texts[0]):,} characters.",
            fix=f"Use at most {MAX_NAME_CHARS:,}; an observation may be longer.",
            where=where,
        )
    return {name: value[name] for name in fields}


def _property(about: str) -> JsonObject:
    if about.startswith(TEXTS):
        return {"type": "array", "items": {"type": "string"}, "description": about}
    return {"type": "string", "description": about}

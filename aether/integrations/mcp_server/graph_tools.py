"""The nine tools of the official memory server, by its contract: names, arguments, answers as text and as values.

Only a graph that is too long for one answer is cut: then a note says so and names what is left out.

The shapes of the official memory server's contract: as JSON schemas for clients, and as a check of what comes in.

Unknown fields are passed over, as there. Each shape is a table of its fields; a text in it is a description.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

from aether.api import graph
from aether.errors import InvalidInput, shown
from aether.integrations.mcp_server.results import RESULT_CHARS, Answer, as_json
from aether.integrations.mcp_server.tools import notes_on
from aether.memory.graph import Entity, Graph
from aether.memory.recall import excerpt
from aether.types import JsonObject

ARRAY_PREFIX = "An array of "
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


def array_of(fields: Fields) -> JsonObject:
    """Return the JSON schema of an array of objects with these fields.

    >>> listed({"to": "Where it ends"})["items"]["properties"]
    {'to': {'type': 'string', 'description': 'Where it ends'}}
    """
    properties = {name: _property(about) for name, about in fields.items()}
    return {"type": "array", "items": {"type": "object", "properties": properties, "required": list(fields)}}


def validated(values: object, fields: Fields, *, where: str) -> Any:
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
        texts = given if about.startswith(ARRAY_PREFIX) else [given]
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            kind = "an array of texts" if about.startswith(ARRAY_PREFIX) else "a text"
            raise InvalidInput(f"{name} is {shown(given)}.", fix=f"Use {kind}.", where=where)
        if about.startswith(ARRAY_PREFIX) or len(texts[0]) <= MAX_NAME_CHARS:
            continue
        raise InvalidInput(
            f"{name} has {len(texts[0]):,} characters.",
            fix=f"Use at most {MAX_NAME_CHARS:,}; an observation may be longer.",
            where=where,
        )
    return {name: value[name] for name in fields}


def _property(about: str) -> JsonObject:
    if about.startswith(ARRAY_PREFIX):
        return {"type": "array", "items": {"type": "string"}, "description": about}
    return {"type": "string", "description": about}


RESOURCE = "memory://knowledge-graph"
# Of an answer that is cut, what names the entities that are left out may take this much.
NAMES_CHARS = 4_000


def create_entities(entities: list[Any], *, home: Path) -> Answer:
    """Store entities whose names are new.

    Raises:
        InvalidInput: a name is empty, or nothing of it may be stored.
    """
    given = validated(entities, ENTITY, where="entities")
    return _stored("entities", graph.create_entities(given, home=home), given)


def create_relations(relations: list[Any], *, home: Path) -> Answer:
    """Store relations that are new.

    Raises:
        InvalidInput: a name is empty, or nothing of it may be stored.
    """
    given = validated(relations, RELATION, where="relations")
    return _stored("relations", graph.create_relations(given, home=home), given)


def add_observations(observations: list[Any], *, home: Path) -> Answer:
    """Store what is new of entities.

    Raises:
        NotFound: there is no such entity.
    """
    given = validated(observations, OBSERVED, where="observations")
    return _stored("results", graph.add_observations(given, home=home), given)


def delete_entities(entityNames: list[str], *, home: Path) -> Answer:  # noqa: N803 - the contract's name
    """Remove entities and the relations that touch them."""
    graph.delete_entities(entityNames, home=home)
    return _done("Entities deleted successfully")


def delete_observations(deletions: list[Any], *, home: Path) -> Answer:
    """Remove observations; what is absent is passed over."""
    graph.delete_observations(validated(deletions, DELETION, where="deletions"), home=home)
    return _done("Observations deleted successfully")


def delete_relations(relations: list[Any], *, home: Path) -> Answer:
    """Remove exactly these relations."""
    graph.delete_relations(validated(relations, RELATION, where="relations"), home=home)
    return _done("Relations deleted successfully")


def read_graph(*, home: Path) -> Answer:
    """Answer with the whole graph."""
    return _found(graph.read_graph(home=home))


def search_nodes(query: str, *, home: Path) -> Answer:
    """Answer with the entities that have `query` in any of their texts."""
    return _found(graph.search_nodes(query, home=home))


def open_nodes(names: list[str], *, home: Path) -> Answer:
    """Answer with the entities of these names."""
    return _found(graph.open_nodes(names, home=home))


def _stored(key: str, fresh: list[Any], given: Any) -> Answer:
    """Answer with what is new, and say what was left out of what was `given`."""
    notes = [notes_on(given)]
    told, room = fresh, RESULT_CHARS - NAMES_CHARS
    if len(as_json(fresh)) > room:
        told = fresh[: sum(end <= room for end in accumulate(map(_chars, fresh)))]
        notes.append(f"All is stored; of {len(fresh)} the first {len(told)} are shown.")
    note = " ".join(filter(None, notes))
    return Answer(as_json(told), {key: told} | ({"note": note} if note else {}), note)


def _done(message: str) -> Answer:
    return Answer(message, {"success": True, "message": message})


def _found(found: Graph) -> Answer:
    text = as_json(found)
    if len(text) <= RESULT_CHARS:
        return Answer(text, dict(found))
    kept = _cut(found)
    left = [entity["name"] for entity in found["entities"][len(kept["entities"]) :]]
    note = (
        f"Cut: {len(kept['entities'])} of {len(found['entities'])} entities and {len(kept['relations'])} of "
        f"{len(found['relations'])} relations are shown; the resource {RESOURCE} has all. "
    )
    note += f"Open the others by name: {_listed(left)}" if left else "Not all is known of what is shown."
    data: JsonObject = {**kept, "note": note}
    return Answer(as_json(kept), data, note)


def _cut(found: Graph) -> Graph:
    """Return the first entities of `found` and the relations that touch them, as many as an answer has room for."""
    kept: Graph = {"entities": [], "relations": []}
    names: set[str] = set()
    room = RESULT_CHARS - NAMES_CHARS
    for entity in found["entities"]:
        shown = entity if names else _fitting(entity, room)
        if _chars(shown) > room and names:
            break
        room -= _chars(shown)
        kept["entities"].append(shown)
        names.add(entity["name"])
    for relation in found["relations"]:
        if names & {relation["from"], relation["to"]}:
            room -= _chars(relation)
            if room < 0:
                break
            kept["relations"].append(relation)
    return kept


def _fitting(entity: Entity, room: int) -> Entity:
    """Return `entity` with the first of its observations that fit; one that is too long by itself is left out.

    So is the end of a name that nobody gave by a tool.
    """
    name, kind = (excerpt(entity[key], MAX_NAME_CHARS) for key in ("name", "entityType"))
    kept: list[str] = []
    for text in entity["observations"]:
        room -= _chars(text)
        if room < 0:
            break
        kept.append(text)
    return {"name": name, "entityType": kind, "observations": kept}


def _chars(value: Any) -> int:
    # Three levels of indentation at most, of two, stand before each of its lines.
    text = as_json(value)
    return len(text) + 6 * (text.count("\n") + 1)


def _listed(names: list[str]) -> str:
    text = ", ".join(names)
    return text if len(text) <= NAMES_CHARS else f"{text[:NAMES_CHARS].rpartition(', ')[0]} …"

"""The nine tools of the official memory server, by its contract: names, arguments, answers as text and as values.

Arguments are checked against the contract's shapes, and unknown fields are ignored, as there. Only a graph that is too
long for one answer is cut, with a note that names the entities left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

from aether.api import graph
from aether.errors import InvalidInput, shown
from aether.mcp.results import RESULT_CHARS, Answer, as_json
from aether.mcp.tools import notes_on
from aether.memory.graph import Entity, Graph
from aether.memory.layers import excerpt
from aether.types import JsonObject

RESOURCE = "memory://knowledge-graph"
# Characters of a cut answer for the names of the entities that are left out.
NAMES_CHARS = 4_000
ARRAY_PREFIX = "An array of "
# A name is in every answer about its entity and its relations; a longer text is an observation.
MAX_NAME_CHARS = 2_000
Fields = Mapping[str, str]
"""The description of each field; that of an array of texts starts with `ARRAY_PREFIX`."""
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


def create_entities(entities: list[Any], *, home: Path) -> Answer:
    """Store entities whose names are new.

    Raises:
        InvalidInput: a name is empty, also after redaction.
    """
    checked = validated(entities, ENTITY, where="entities")
    return _stored("entities", graph.create_entities(checked, home=home), checked)


def create_relations(relations: list[Any], *, home: Path) -> Answer:
    """Store relations that are new.

    Raises:
        InvalidInput: a name is empty, also after redaction.
    """
    checked = validated(relations, RELATION, where="relations")
    return _stored("relations", graph.create_relations(checked, home=home), checked)


def add_observations(observations: list[Any], *, home: Path) -> Answer:
    """Store new observations of entities.

    Raises:
        NotFound: an entity does not exist.
    """
    checked = validated(observations, OBSERVED, where="observations")
    return _stored("results", graph.add_observations(checked, home=home), checked)


def delete_entities(entityNames: list[str], *, home: Path) -> Answer:  # noqa: N803 - the contract's name
    """Remove entities and the relations that touch them."""
    graph.delete_entities(entityNames, home=home)
    return _done("Entities deleted successfully")


def delete_observations(deletions: list[Any], *, home: Path) -> Answer:
    """Remove observations; absent ones are ignored."""
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


def _stored(key: str, fresh: list[Any], values: Any) -> Answer:
    """Answer with the new entries, and a note on what was left out of `values`."""
    notes = [notes_on(values)]
    listed, room = fresh, RESULT_CHARS - NAMES_CHARS
    if len(as_json(fresh)) > room:
        listed = fresh[: sum(end <= room for end in accumulate(map(_chars, fresh)))]
        notes.append(f"All is stored; of {len(fresh)} the first {len(listed)} are shown.")
    note = " ".join(filter(None, notes))
    return Answer(as_json(listed), {key: listed} | ({"note": note} if note else {}), note)


def _done(message: str) -> Answer:
    return Answer(message, {"success": True, "message": message})


def _found(result: Graph) -> Answer:
    text = as_json(result)
    if len(text) <= RESULT_CHARS:
        return Answer(text, dict(result))
    cut = _cut(result)
    unlisted = [entity["name"] for entity in result["entities"][len(cut["entities"]) :]]
    note = (
        f"Cut: {len(cut['entities'])} of {len(result['entities'])} entities and {len(cut['relations'])} of "
        f"{len(result['relations'])} relations are shown; the resource {RESOURCE} has all. "
    )
    note += (
        f"Open the others by name: {_listed(unlisted)}"
        if unlisted
        else "Some observations or relations are left out."
    )
    data: JsonObject = {**cut, "note": note}
    return Answer(as_json(cut), data, note)


def _cut(full: Graph) -> Graph:
    """Return the first entities of `full` and the relations that touch them, as many as an answer has room for."""
    cut: Graph = {"entities": [], "relations": []}
    names: set[str] = set()
    room = RESULT_CHARS - NAMES_CHARS
    for entity in full["entities"]:
        fitted = entity if names else _fitting(entity, room)
        if _chars(fitted) > room and names:
            break
        room -= _chars(fitted)
        cut["entities"].append(fitted)
        names.add(entity["name"])
    for relation in full["relations"]:
        if names & {relation["from"], relation["to"]}:
            room -= _chars(relation)
            if room < 0:
                break
            cut["relations"].append(relation)
    return cut


def _fitting(entity: Entity, room: int) -> Entity:
    """Return `entity` with its first observations that fit, and the start of a name that no tool would accept."""
    name, kind = (excerpt(entity[key], MAX_NAME_CHARS) for key in ("name", "entityType"))
    observations: list[str] = []
    for text in entity["observations"]:
        room -= _chars(text)
        if room < 0:
            break
        observations.append(text)
    return {"name": name, "entityType": kind, "observations": observations}


def _chars(value: Any) -> int:
    # Each line is indented by three levels of two at most.
    text = as_json(value)
    return len(text) + 6 * (text.count("\n") + 1)


def _listed(names: list[str]) -> str:
    text = ", ".join(names)
    return text if len(text) <= NAMES_CHARS else f"{text[:NAMES_CHARS].rpartition(', ')[0]} …"


def array_of(fields: Fields) -> JsonObject:
    """Return the JSON schema of an array of objects with these fields.

    >>> array_of({"to": "Where it ends"})["items"]["properties"]
    {'to': {'type': 'string', 'description': 'Where it ends'}}
    """
    text: JsonObject = {"type": "string"}
    properties = {
        name: ({"type": "array", "items": text} if about.startswith(ARRAY_PREFIX) else text)
        | {"description": about}
        for name, about in fields.items()
    }
    return {"type": "array", "items": {"type": "object", "properties": properties, "required": list(fields)}}


def validated(values: object, fields: Fields, *, where: str) -> Any:
    """Return `values`, objects with these fields, without other fields.

    Raises:
        InvalidInput: a field is missing or of another type, or a name is too long; the error names the place.
    """
    if not isinstance(values, list):
        raise InvalidInput(f"is {shown(values)}.", fix="Use an array of objects.", where=where)
    return [_one(value, fields, f"{where}[{index}]") for index, value in enumerate(values)]


def _one(value: object, fields: Fields, where: str) -> JsonObject:
    if not isinstance(value, dict):
        raise InvalidInput(f"is {shown(value)}.", fix=f"Use an object with {', '.join(fields)}.", where=where)
    for name, about in fields.items():
        field = value.get(name)
        texts = field if about.startswith(ARRAY_PREFIX) else [field]
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            kind = "an array of texts" if about.startswith(ARRAY_PREFIX) else "a text"
            raise InvalidInput(f"{name} is {shown(field)}.", fix=f"Use {kind}.", where=where)
        if about.startswith(ARRAY_PREFIX) or len(texts[0]) <= MAX_NAME_CHARS:
            continue
        raise InvalidInput(
            f"{name} has {len(texts[0]):,} characters.",
            fix=f"Use at most {MAX_NAME_CHARS:,}; an observation may be longer.",
            where=where,
        )
    return {name: value[name] for name in fields}

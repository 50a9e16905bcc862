"""The nine tools of the official memory server, by its contract: names, arguments, answers as text and as values.

Only a graph that is too long for one answer is cut: then a note says so and names what is left out.
"""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from typing import Any

from aether.integrations.mcp_server import graph_shapes as shapes
from aether.integrations.mcp_server.answers import RESULT_CHARS, Answer, as_json
from aether.integrations.mcp_server.statements import note_of
from aether.memory.graph import Entity, Graph
from aether.memory.recall import gist
from aether.operations import graph
from aether.shapes import JsonObject

RESOURCE = "memory://knowledge-graph"
# Of an answer that is cut, what names the entities that are left out may take this much.
NAMES_CHARS = 4_000


def create_entities(entities: list[Any], *, home: Path) -> Answer:
    """Store entities whose names are new.

    Raises:
        InvalidInput: a name is empty, or nothing of it may be stored.
    """
    given = shapes.checked(entities, shapes.ENTITY, where="entities")
    return _stored("entities", graph.create_entities(given, home=home), given)


def create_relations(relations: list[Any], *, home: Path) -> Answer:
    """Store relations that are new.

    Raises:
        InvalidInput: a name is empty, or nothing of it may be stored.
    """
    given = shapes.checked(relations, shapes.RELATION, where="relations")
    return _stored("relations", graph.create_relations(given, home=home), given)


def add_observations(observations: list[Any], *, home: Path) -> Answer:
    """Store what is new of entities.

    Raises:
        NotFound: there is no such entity.
    """
    given = shapes.checked(observations, shapes.OBSERVED, where="observations")
    return _stored("results", graph.add_observations(given, home=home), given)


def delete_entities(entityNames: list[str], *, home: Path) -> Answer:  # noqa: N803 - the contract's name
    """Remove entities and the relations that touch them."""
    graph.delete_entities(entityNames, home=home)
    return _done("Entities deleted successfully")


def delete_observations(deletions: list[Any], *, home: Path) -> Answer:
    """Remove observations; what is absent is passed over."""
    graph.delete_observations(shapes.checked(deletions, shapes.DELETION, where="deletions"), home=home)
    return _done("Observations deleted successfully")


def delete_relations(relations: list[Any], *, home: Path) -> Answer:
    """Remove exactly these relations."""
    graph.delete_relations(shapes.checked(relations, shapes.RELATION, where="relations"), home=home)
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
    notes = [note_of(given)]
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
    name, kind = (gist(entity[key], shapes.MAX_NAME_CHARS) for key in ("name", "entityType"))
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

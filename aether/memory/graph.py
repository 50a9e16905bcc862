"""The knowledge graph: entities with observations, and relations between them.

The document is `graph`. The functions follow the contract of the official memory server of MCP, with one exception:
repetitions within a call are stored once. Names are exact; search matches part of a text, without case. A relation may
name entities that do not exist. A call that cannot be done in full changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypedDict

from aether.clock import stamp
from aether.errors import InvalidInput, NotFound
from aether.store.patch import chain_changes, diff
from aether.text.words import stems
from aether.types import Change, JsonObject

DOCUMENT = "graph"
# Of the graph as JSON, about 80,000 entities and relations: every command and hook reads it all, which takes 0.2 s.
MAX_CHARS = 16_000_000


class Entity(TypedDict):
    """A thing with a name, a type and observations."""

    name: str
    entityType: str
    observations: list[str]


# `from` is a word of Python, so the shape is written as a call.
Relation = TypedDict("Relation", {"from": str, "to": str, "relationType": str})
"""A named relation from one entity to another."""


class Graph(TypedDict):
    """A part of the graph, or all of it."""

    entities: list[Entity]
    relations: list[Relation]


class NewObservations(TypedDict):
    """Observations to add to an entity."""

    entityName: str
    contents: list[str]


class AddedObservations(TypedDict):
    """The observations of an entity that were new."""

    entityName: str
    addedObservations: list[str]


class Deletion(TypedDict):
    """Observations to remove from an entity."""

    entityName: str
    observations: list[str]


class Merged(NamedTuple):
    """The counts of a merge of another graph into this one."""

    entities: int
    observations: int
    """New observations of known entities."""
    relations: int
    known: int
    """Entities and relations that existed before."""


class Match(NamedTuple):
    """An entity that answers a query."""

    name: str
    type: str
    at: str
    """The time of its newest observation; empty if unknown."""
    text: str
    """Its name, type, observations and relations, one a line."""
    share: float
    """The share of the query's words that it has."""


def create_entities(graph: Mapping[str, Any], entities: Iterable[Entity], *, now: datetime) -> Change:
    """Return the change that adds the entities with new names; its result is those entities.

    Raises:
        InvalidInput: the graph would be too large.
    """
    names = {entity["name"] for entity in graph["entities"]}
    created: dict[str, Entity] = {}
    for entity in entities:
        if entity["name"] not in names:
            once = list(dict.fromkeys(entity["observations"]))
            created.setdefault(entity["name"], {**_entity(entity), "observations": once})
    moment = stamp(now)
    stored = [
        {"id": name, **entity, "created_at": moment, "observations": [{"id": text, "at": moment} for text in entity["observations"]]}
        for name, entity in created.items()
    ]  # fmt: skip
    return _changed(graph, {**graph, "entities": [*graph["entities"], *stored]}, list(created.values()))


def create_relations(graph: Mapping[str, Any], relations: Iterable[Relation], *, now: datetime) -> Change:
    """Return the change that adds the new relations; its result is those relations.

    Raises:
        InvalidInput: the graph would be too large.
    """
    keys = {_key(relation) for relation in graph["relations"]}
    created = {key: _relation(relation) for relation in relations if (key := _key(relation)) not in keys}
    stored = [{"id": key, **relation, "created_at": stamp(now)} for key, relation in created.items()]
    return _changed(graph, {**graph, "relations": [*graph["relations"], *stored]}, list(created.values()))


def add_observations(
    graph: Mapping[str, Any], observations: Iterable[NewObservations], *, now: datetime
) -> Change:
    """Return the change that adds new observations to entities; its result lists those of each entity.

    Raises:
        NotFound: there is no such entity.
        InvalidInput: the graph would be too large.
    """
    entities, places = [*graph["entities"]], _places(graph)
    added: list[AddedObservations] = []
    for addition in observations:
        name = addition["entityName"]
        if name not in places:
            raise _missing(name, "Create it with create_entities.")
        entity = entities[places[name]]
        contents = [text for text in dict.fromkeys(addition["contents"]) if text not in _observations(entity)]
        stored = [*entity["observations"], *({"id": text, "at": stamp(now)} for text in contents)]
        entities[places[name]] = {**entity, "observations": stored}
        added.append({"entityName": name, "addedObservations": contents})
    return _changed(graph, {**graph, "entities": entities}, added)


def delete_entities(graph: Mapping[str, Any], names: Iterable[str]) -> Change:
    """Return the change that removes entities with all their relations; its result is the number of entities."""
    unwanted = set(names)
    entities = [entity for entity in graph["entities"] if entity["name"] not in unwanted]
    relations = [
        relation for relation in graph["relations"] if not unwanted & {relation["from"], relation["to"]}
    ]
    number = len(graph["entities"]) - len(entities)
    return _reduced(graph, {**graph, "entities": entities, "relations": relations}, number)


def delete_observations(graph: Mapping[str, Any], deletions: Iterable[Deletion]) -> Change:
    """Return the change that removes observations; its result is their number. Unknown ones are ignored."""
    entities, places = [*graph["entities"]], _places(graph)
    for deletion in deletions:
        if (place := places.get(deletion["entityName"])) is not None:
            stored = entities[place]["observations"]
            remaining = [entry for entry in stored if entry["id"] not in deletion["observations"]]
            entities[place] = {**entities[place], "observations": remaining}
    before, after = (
        sum(len(entry["observations"]) for entry in entry) for entry in (graph["entities"], entities)
    )
    return _reduced(graph, {**graph, "entities": entities}, before - after)


def delete_relations(graph: Mapping[str, Any], relations: Iterable[Relation]) -> Change:
    """Return the change that removes exactly these relations; its result is their number."""
    unwanted = {_key(relation) for relation in relations}
    remaining = [relation for relation in graph["relations"] if _key(relation) not in unwanted]
    number = len(graph["relations"]) - len(remaining)
    return _reduced(graph, {**graph, "relations": remaining}, number)


def merge(graph: Mapping[str, Any], other: Graph, *, now: datetime) -> Change:
    """Return the change that adds everything in `other` that is not in `graph`; its result is a `Merged`.

    Raises:
        InvalidInput: the graph would be too large.
    """
    places = _places(graph)
    united: dict[str, Entity] = {}
    for entity in other["entities"]:  # a file of the official server may hold one name twice
        entry = united.setdefault(entity["name"], {**entity, "observations": []})
        entry["observations"] = [*entry["observations"], *entity["observations"]]
    additions: list[NewObservations] = [
        {"entityName": name, "contents": entity["observations"]}
        for name, entity in united.items()
        if name in places
    ]
    steps = (
        lambda state: add_observations(state[DOCUMENT], additions, now=now),
        lambda state: create_entities(state[DOCUMENT], united.values(), now=now),
        lambda state: create_relations(state[DOCUMENT], other["relations"], now=now),
    )
    change = chain_changes({DOCUMENT: graph}, *steps)
    observed, entities, relations = change.result
    entries = len(united) + len({_key(relation) for relation in other["relations"]})
    observations = sum(len(addition["addedObservations"]) for addition in observed)
    known_entries = entries - len(entities) - len(relations)
    return change._replace(result=Merged(len(entities), observations, len(relations), known_entries))


def read_graph(graph: Mapping[str, Any]) -> Graph:
    """Return all entities and relations, in order of creation."""
    return {
        "entities": [*map(_entity, graph["entities"])],
        "relations": [*map(_relation, graph["relations"])],
    }


def search_nodes(graph: Mapping[str, Any], query: str) -> Graph:
    """Return the entities with `query` in a name, type or observation, and their relations."""
    part = query.lower()
    entities = (
        entity
        for entity in graph["entities"]
        if any(
            part in text.lower() for text in (entity["name"], entity["entityType"], *_observations(entity))
        )
    )
    return _with_relations(graph, entities)


def open_nodes(graph: Mapping[str, Any], names: Sequence[str]) -> Graph:
    """Return the entities with these names, and their relations."""
    chosen_names = frozenset(names)
    return _with_relations(graph, (entity for entity in graph["entities"] if entity["name"] in chosen_names))


def matches(graph: Mapping[str, Any], query: str, *, at_least: float) -> list[Match]:
    """Return the entities with that share of the words of `query`: the highest share first, then the newest."""
    query_stems = set(stems(query))
    found_matches = []
    for match in _descriptions(graph) if query_stems else ():
        share = len(query_stems.intersection(stems(match.text))) / len(query_stems)
        if share >= at_least:
            found_matches.append(match._replace(share=share))
    newest_first = sorted(found_matches, key=lambda match: match.at, reverse=True)
    return sorted(newest_first, key=lambda match: match.share, reverse=True)


def describe(graph: Mapping[str, Any], name: str) -> Match:
    """Return the entity `name` with its observations and relations.

    Raises:
        NotFound: there is no such entity.

    >>> ant = {"name": "ant", "entityType": "insect", "observations": [{"id": "It carries."}]}
    >>> eats = {"from": "ant", "relationType": "eats", "to": "leaf"}
    >>> print(describe({"entities": [ant], "relations": [eats]}, "ant").text)
    ant (insect)
    It carries.
    ant eats leaf
    """
    for match in _descriptions(graph):
        if match.name == name:
            return match
    raise _missing(name, "Look for it with search_nodes.")


def _descriptions(graph: Mapping[str, Any]) -> Iterator[Match]:
    facts: dict[str, list[str]] = {}
    for relation in graph["relations"]:
        for name in {relation["from"], relation["to"]}:
            facts.setdefault(name, []).append(
                f"{relation['from']} {relation['relationType']} {relation['to']}"
            )
    for entity in graph["entities"]:
        name, kind = entity["name"], entity["entityType"]
        lines = [f"{name} ({kind})", *_observations(entity), *facts.get(name, [])]
        # A hand edit may leave out the times.
        times = [
            entity.get("created_at", ""),
            *(observation.get("at", "") for observation in entity["observations"]),
        ]
        yield Match(name, kind, str(max(times)), "\n".join(lines), 1.0)


def _changed(graph: Mapping[str, Any], after: Mapping[str, Any], result: Any) -> Change:
    """Return the change from `graph` to `after`, which only adds.

    Raises:
        InvalidInput: the graph would be too large.
    """
    change = _reduced(graph, after, result)
    size = len(json.dumps(after, ensure_ascii=False)) if change.patches[DOCUMENT] else 0
    if size > MAX_CHARS:
        raise InvalidInput(
            f"the graph would hold {size:,} characters, the limit is {MAX_CHARS:,}; nothing was added.",
            fix="Delete entities that are no longer needed, or keep another graph in another home.",
            where=DOCUMENT,
        )
    return change


def _reduced(graph: Mapping[str, Any], after: Mapping[str, Any], result: Any) -> Change:
    return Change({DOCUMENT: diff(dict(graph), dict(after))}, result=result)


def _missing(name: str, fix: str) -> NotFound:
    return NotFound(f"Entity with name {name} not found.", fix=fix, where=DOCUMENT)


def _places(graph: Mapping[str, Any]) -> dict[str, int]:
    """Return the place of each entity; of two that a hand edit gave one name, the first."""
    return {entity["name"]: position for position, entity in reversed(list(enumerate(graph["entities"])))}


def _with_relations(graph: Mapping[str, Any], entities: Iterable[JsonObject]) -> Graph:
    chosen = list(entities)
    names = {entity["name"] for entity in chosen}
    relations = (relation for relation in graph["relations"] if names & {relation["from"], relation["to"]})
    return {"entities": [*map(_entity, chosen)], "relations": [*map(_relation, relations)]}


def _entity(stored: Mapping[str, Any]) -> Entity:
    texts = _observations(stored)
    return {"name": stored["name"], "entityType": stored["entityType"], "observations": texts}


def _relation(stored: Mapping[str, Any]) -> Relation:
    return {"from": stored["from"], "to": stored["to"], "relationType": stored["relationType"]}


def _observations(stored: Mapping[str, Any]) -> list[str]:
    return [
        observation if isinstance(observation, str) else observation["id"]
        for observation in stored["observations"]
    ]


def _key(relation: Mapping[str, Any]) -> str:
    return json.dumps([relation["from"], relation["relationType"], relation["to"]], ensure_ascii=False)

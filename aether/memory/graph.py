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
from aether.store.patch import pointer
from aether.text.words import stems
from aether.types import Change, JsonObject, Patch

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
    fresh: list[Entity] = []
    for entity in entities:
        if entity["name"] not in names:
            names.add(entity["name"])
            once = list(dict.fromkeys(entity["observations"]))
            fresh.append({"name": entity["name"], "entityType": entity["entityType"], "observations": once})
    return _add(graph, [_stored(entity, stamp(now)) for entity in fresh], "/entities/-", fresh)


def create_relations(graph: Mapping[str, Any], relations: Iterable[Relation], *, now: datetime) -> Change:
    """Return the change that adds the new relations; its result is those relations.

    Raises:
        InvalidInput: the graph would be too large.
    """
    known = {_key(relation) for relation in graph["relations"]}
    fresh: dict[str, Relation] = {}
    for relation in relations:
        if _key(relation) not in known:
            fresh.setdefault(_key(relation), _relation(relation))
    stored = [{"id": key, **relation, "created_at": stamp(now)} for key, relation in fresh.items()]
    return _add(graph, stored, "/relations/-", list(fresh.values()))


def add_observations(
    graph: Mapping[str, Any], observations: Iterable[NewObservations], *, now: datetime
) -> Change:
    """Return the change that adds new observations to entities; its result lists those of each entity.

    Raises:
        NotFound: there is no such entity.
        InvalidInput: the graph would be too large.
    """
    places = _places(graph)
    known: dict[str, set[str]] = {}
    patch: Patch = []
    added: list[AddedObservations] = []
    for observation in observations:
        name = observation["entityName"]
        if name not in places:
            raise NotFound(
                f"Entity with name {name} not found.", fix="Create it with create_entities.", where=DOCUMENT
            )
        held = known.setdefault(name, set(_observations(graph["entities"][places[name]])))
        fresh = [text for text in dict.fromkeys(observation["contents"]) if text not in held]
        held.update(fresh)
        path = pointer("entities", places[name], "observations", "-")
        patch += [{"op": "add", "path": path, "value": _observation(text, stamp(now))} for text in fresh]
        added.append({"entityName": name, "addedObservations": fresh})
    return _check_size(graph, Change({DOCUMENT: patch}, result=added))


def delete_entities(graph: Mapping[str, Any], names: Iterable[str]) -> Change:
    """Return the change that removes entities with all their relations; its result is the number of entities."""
    named = set(names)
    entities = [place for place, entity in enumerate(graph["entities"]) if entity["name"] in named]
    touched = [
        place
        for place, relation in enumerate(graph["relations"])
        if named & {relation["from"], relation["to"]}
    ]
    patch = [*_remove("entities", at=entities), *_remove("relations", at=touched)]
    return Change({DOCUMENT: patch}, result=len(entities))


def delete_observations(graph: Mapping[str, Any], deletions: Iterable[Deletion]) -> Change:
    """Return the change that removes observations; its result is their number. Unknown ones are ignored."""
    places = _places(graph)
    unwanted: dict[int, set[str]] = {}
    for deletion in deletions:
        if deletion["entityName"] in places:
            unwanted.setdefault(places[deletion["entityName"]], set()).update(deletion["observations"])
    patch: Patch = []
    for place, texts in unwanted.items():
        observations = _observations(graph["entities"][place])
        found = [place for place, text in enumerate(observations) if text in texts]
        patch += _remove("entities", place, "observations", at=found)
    return Change({DOCUMENT: patch}, result=len(patch))


def delete_relations(graph: Mapping[str, Any], relations: Iterable[Relation]) -> Change:
    """Return the change that removes exactly these relations; its result is their number."""
    unwanted = {_key(relation) for relation in relations}
    found = [place for place, relation in enumerate(graph["relations"]) if _key(relation) in unwanted]
    return Change({DOCUMENT: _remove("relations", at=found)}, result=len(found))


def merge(graph: Mapping[str, Any], other: Graph, *, now: datetime) -> Change:
    """Return the change that adds everything in `other` that is not in `graph`; its result is a `Merged`.

    Raises:
        InvalidInput: the graph would be too large.
    """
    places = _places(graph)
    united: dict[str, Entity] = {}
    for entity in other["entities"]:  # a file of the official server may hold one name twice
        kept = united.setdefault(entity["name"], {**entity, "observations": []})
        kept["observations"] = [*kept["observations"], *entity["observations"]]
    new_observations: list[NewObservations] = [
        {"entityName": name, "contents": entity["observations"]}
        for name, entity in united.items()
        if name in places
    ]
    observed = add_observations(graph, new_observations, now=now)
    entities = create_entities(graph, united.values(), now=now)
    relations = create_relations(graph, other["relations"], now=now)
    fresh = len(entities.result) + len(relations.result)
    given = len(united) + len({_key(relation) for relation in other["relations"]})
    patch = [step for each in (observed, entities, relations) for step in each.patches[DOCUMENT]]
    counts = Merged(
        len(entities.result), len(observed.patches[DOCUMENT]), len(relations.result), given - fresh
    )
    return _check_size(graph, Change({DOCUMENT: patch}, result=counts))


def read_graph(graph: Mapping[str, Any]) -> Graph:
    """Return all entities and relations, in order of creation."""
    return _part(graph["entities"], graph["relations"])


def search_nodes(graph: Mapping[str, Any], query: str) -> Graph:
    """Return the entities with `query` in a name, type or observation, and their relations."""
    wanted = query.lower()
    return _with_relations(graph, (entity for entity in graph["entities"] if _holds(entity, wanted)))


def open_nodes(graph: Mapping[str, Any], names: Sequence[str]) -> Graph:
    """Return the entities with these names, and their relations."""
    wanted = frozenset(names)
    return _with_relations(graph, (entity for entity in graph["entities"] if entity["name"] in wanted))


def matches(graph: Mapping[str, Any], query: str, *, at_least: float) -> list[Match]:
    """Return the entities with that share of the words of `query`: the highest share first, then the newest."""
    asked = set(stems(query))
    found = []
    for match in _descriptions(graph) if asked else ():
        share = len(asked.intersection(stems(match.text))) / len(asked)
        if share >= at_least:
            found.append(match._replace(share=share))
    newest_first = sorted(found, key=lambda match: match.at, reverse=True)
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
    raise NotFound(
        f"Entity with name {name} not found.", fix="Look for it with search_nodes.", where=DOCUMENT
    )


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


def _add(graph: Mapping[str, Any], values: Iterable[Any], path: str, result: Any) -> Change:
    patch: Patch = [{"op": "add", "path": path, "value": value} for value in values]
    return _check_size(graph, Change({DOCUMENT: patch}, result=result))


def _check_size(graph: Mapping[str, Any], change: Change) -> Change:
    """Return `change`, which only adds.

    Raises:
        InvalidInput: the graph would be too large.
    """
    patch = change.patches[DOCUMENT]
    size = sum(len(json.dumps(each, ensure_ascii=False)) for each in (graph, *patch)) if patch else 0
    if size > MAX_CHARS:
        raise InvalidInput(
            f"the graph would hold {size:,} characters, the most is {MAX_CHARS:,}; nothing was added.",
            fix="Delete entities that are no longer needed, or keep another graph in another home.",
            where=DOCUMENT,
        )
    return change


def _remove(*keys: str | int, at: Sequence[int]) -> Patch:
    # From the end: a removal shifts the places after it.
    return [{"op": "remove", "path": pointer(*keys, place)} for place in reversed(at)]


def _places(graph: Mapping[str, Any]) -> dict[str, int]:
    """Return the place of each entity; of two that a hand edit gave one name, the first."""
    return {entity["name"]: at for at, entity in reversed(list(enumerate(graph["entities"])))}


def _holds(entity: Mapping[str, Any], wanted: str) -> bool:
    texts = (entity["name"], entity["entityType"], *_observations(entity))
    return any(wanted in text.lower() for text in texts)


def _with_relations(graph: Mapping[str, Any], entities: Iterable[JsonObject]) -> Graph:
    chosen = list(entities)
    names = {entity["name"] for entity in chosen}
    return _part(
        chosen, (relation for relation in graph["relations"] if names & {relation["from"], relation["to"]})
    )


def _part(entities: Iterable[JsonObject], relations: Iterable[JsonObject]) -> Graph:
    return {
        "entities": [
            {
                "name": entity["name"],
                "entityType": entity["entityType"],
                "observations": _observations(entity),
            }
            for entity in entities
        ],
        "relations": [_relation(relation) for relation in relations],
    }


def _relation(stored: Mapping[str, Any]) -> Relation:
    return {"from": stored["from"], "to": stored["to"], "relationType": stored["relationType"]}


def _observations(stored: Mapping[str, Any]) -> list[str]:
    return [observation["id"] for observation in stored["observations"]]


def _stored(entity: Entity, at: str) -> JsonObject:
    observations = [_observation(text, at) for text in entity["observations"]]
    return {"id": entity["name"], **entity, "created_at": at, "observations": observations}


def _observation(text: str, at: str) -> JsonObject:
    return {"id": text, "at": at}


def _key(relation: Mapping[str, Any]) -> str:
    return json.dumps([relation["from"], relation["relationType"], relation["to"]], ensure_ascii=False)

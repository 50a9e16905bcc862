"""The knowledge graph: the verbs of the official memory server over the store of aether.

Each change is one journaled transaction, so concurrent writers lose nothing and `aether undo` reverses any of them. Secrets
are replaced before they are stored, and in queries likewise; private blocks and text that aether injected are left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from aether import regular
from aether.api.home import Home, change, find, now, read
from aether.errors import InvalidInput, Refused, public
from aether.memory import gate, graph
from aether.memory.graph import AddedObservations, Entity, Graph, Match, NewObservations, Relation
from aether.messages.records import BadLine
from aether.messages.sources import knowledge_graph
from aether.redact.redact import redact, without_whole_blocks
from aether.store import config
from aether.store.authors import Author
from aether.types import Change

# Share of the words of a query, two of three: an entity with fewer is about another subject.
MATCH_SHARE = 0.6
GRAPH_SOURCE = "mcp"


class GraphImported(NamedTuple):
    """Result of an import."""

    merged: graph.Merged
    bad_lines: list[BadLine]
    """Lines that are neither entities nor relations."""
    revision: int
    """The revision to undo; 0 if nothing was new."""


@public
def create_entities(entities: Iterable[Entity], *, home: Home = None) -> list[Entity]:
    """Store the entities whose names are new, and return those.

    Raises:
        InvalidInput: a text cannot be stored, a name is empty without its secrets, or two names are equal without them.
    """
    originals = list(entities)
    clean = _without_secrets(originals)
    _require_names(clean, "name")
    names: dict[str, str] = {}
    for place, (before, after) in enumerate(zip(originals, clean, strict=True)):
        if names.setdefault(after["name"], before["name"]) != before["name"]:
            raise InvalidInput(
                f"without its secrets and private blocks, the name equals that of another entity: {after['name']!r}.",
                fix="Give each entity its own name without a secret.",
                where=f"[{place}]",
            )
    created: list[Entity] = _change(
        "create_entities", lambda document: graph.create_entities(document, clean, now=now()), home
    )
    return created


@public
def create_relations(relations: Iterable[Relation], *, home: Home = None) -> list[Relation]:
    """Store the relations that are new, and return those.

    Raises:
        InvalidInput: a text cannot be stored, or a name is empty without its secrets.
    """
    clean = _without_secrets(list(relations))
    _require_names(clean, "from", "to")
    created: list[Relation] = _change(
        "create_relations", lambda document: graph.create_relations(document, clean, now=now()), home
    )
    return created


@public
def add_observations(
    observations: Iterable[NewObservations], *, home: Home = None
) -> list[AddedObservations]:
    """Add new observations to entities, and return them for each entity.

    Raises:
        NotFound: there is no such entity; nothing is stored.
        InvalidInput: a text cannot be stored.
    """
    clean = _without_secrets(list(observations))
    added: list[AddedObservations] = _change(
        "add_observations", lambda document: graph.add_observations(document, clean, now=now()), home
    )
    return added


@public
def delete_entities(names: Iterable[str], *, home: Home = None) -> int:
    """Remove entities and the relations that touch them, and return how many entities there were."""
    clean = _without_secrets(list(names))
    return int(_change("delete_entities", lambda document: graph.delete_entities(document, clean), home))


@public
def delete_observations(deletions: Iterable[graph.Deletion], *, home: Home = None) -> int:
    """Remove observations, and return how many there were."""
    clean = _without_secrets(list(deletions))
    return int(
        _change("delete_observations", lambda document: graph.delete_observations(document, clean), home)
    )


@public
def delete_relations(relations: Iterable[Relation], *, home: Home = None) -> int:
    """Remove relations, and return how many there were."""
    clean = _without_secrets(list(relations))
    return int(_change("delete_relations", lambda document: graph.delete_relations(document, clean), home))


def read_graph(*, home: Home = None) -> Graph:
    """Return the whole graph, in order of creation."""
    return graph.read_graph(read(home).documents[graph.DOCUMENT])


def search_nodes(query: str, *, home: Home = None) -> Graph:
    """Return the entities with `query` in a name, type or observation, whatever its case, and their relations."""
    return graph.search_nodes(read(home).documents[graph.DOCUMENT], query)


def open_nodes(names: Sequence[str], *, home: Home = None) -> Graph:
    """Return the entities of these names, and the relations that touch them."""
    return graph.open_nodes(read(home).documents[graph.DOCUMENT], _without_secrets(list(names)))


def recall_entities(query: str, *, limit: int, home: Home = None) -> list[Match]:
    """Return the entities that have most of the words of `query`, best first."""
    return graph.matches(read(home).documents[graph.DOCUMENT], query, at_least=MATCH_SHARE)[:limit]


def describe_entity(name: str, *, home: Home = None) -> Match:
    """Return one entity with its relations.

    Raises:
        NotFound: there is no such entity.
    """
    return graph.describe(read(home).documents[graph.DOCUMENT], name)


@public
def import_graph(source: str | os.PathLike[str] | IO[bytes], *, home: Home = None) -> GraphImported:
    """Merge a file of the official memory server into the graph, and return the result.

    Importing again adds nothing; the present graph stays.

    Raises:
        NotFound: there is no such file.
        InvalidInput: a text cannot be stored.
        Refused: `memory.agents` is not write: the statements of an import wait, and a graph cannot.
    """
    if config.or_default(find(home)).memory_agents != gate.WRITE:
        raise Refused(
            "a knowledge graph cannot wait for you, as what is imported does here.",
            fix="To import it all the same: AETHER_MEMORY_AGENTS=write aether graph import FILE.", where="memory.agents",
        )  # fmt: skip
    bad: list[BadLine] = []
    clean: Any = _without_secrets(_lines(source, bad))
    name = Path(source).name if isinstance(source, (str, os.PathLike)) else "-"
    author = Author("import graph", by="queen", reason=name)
    outcome = change(home, lambda documents: graph.merge(documents[graph.DOCUMENT], clean, now=now()), author)
    return GraphImported(outcome.result, bad, outcome.revision if outcome.changed else 0)


def export_graph(*, home: Home = None) -> str:
    """Return the graph in the format of the official memory server, one entity or relation per line."""
    graph = read_graph(home=home)
    return knowledge_graph.graph_text(graph["entities"], graph["relations"])


def _lines(source: Any, bad: list[BadLine]) -> Any:
    if not isinstance(source, (str, os.PathLike)):
        return knowledge_graph.read_graph(source, on_bad=bad.append)
    with regular.named(source) as file:
        return knowledge_graph.read_graph(file, on_bad=bad.append)


def _change(operation: str, plan: Callable[[Mapping[str, Any]], Change], home: Home) -> Any:
    author = Author(operation.replace("_", " "), by=GRAPH_SOURCE)
    return change(home, lambda documents: plan(documents[graph.DOCUMENT]), author).result


def _require_names(entries: Iterable[Mapping[str, Any]], *fields: str) -> None:
    for place, entry in enumerate(entries):
        for field in fields:
            if not entry[field].strip():
                raise InvalidInput(
                    f"{field} is empty, or has only parts that are not stored.",
                    fix="Use a name without secrets and private blocks.",
                    where=f"[{place}]",
                )


def _without_secrets(value: Any) -> Any:
    """Return a copy of `value` without secrets, private blocks and blocks that aether injected."""
    if isinstance(value, dict):
        return {key: _without_secrets(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_without_secrets(below) for below in value]
    return redact(without_whole_blocks(value))

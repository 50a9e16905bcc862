"""The graph of live memory: decisions, sessions, patterns, conversations and files, and how they are linked.

Its links are those that entries hold, the sessions that are the evidence of a pattern, the items of a session, the
conversation in which an item was said, and the file that it changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from aether.memory.items import items_of
from aether.memory.patterns import MUTUAL
from aether.memory.sessions import sessions_of

# Types of items that are nodes by themselves; the others show only as links between a conversation and a file.
SHOWN_TYPES = frozenset({"decision", "constraint", "preference", "blocker", "solution", "error"})


class Node(NamedTuple):
    """One thing that memory knows."""

    id: str
    """Of the entry; for a conversation its id, for a file its path."""
    kind: str
    """The type of an item, or `session`, `pattern`, `conversation`, `file`."""
    text: str


class Edge(NamedTuple):
    """One link between two nodes, by their ids."""

    source: str
    target: str
    type: str


class LinkGraph(NamedTuple):
    """The best linked part of the graph."""

    nodes: list[Node]
    edges: list[Edge]
    total: int
    """Linked nodes of the whole graph."""


def link_graph(memory: Mapping[str, Any], *, most: int) -> LinkGraph:
    """Return the `most` nodes with most links, best linked first, and the links between them.

    A node without a link is left out. Of equally linked nodes the newer comes first.
    """
    nodes = {node.id: node for node in _nodes(memory)}
    edges = [
        edge
        for edge in dict.fromkeys(_edges(memory))
        if edge.source in nodes and edge.target in nodes and edge.source != edge.target
    ]
    degree = Counter(end for edge in edges for end in {edge.source, edge.target})
    place = {name: nth for nth, name in enumerate(nodes)}
    ranked = sorted(degree, key=lambda name: (-degree[name], -place[name]))
    chosen = set(ranked[:most])
    chosen_edges = [edge for edge in edges if edge.source in chosen and edge.target in chosen]
    linked = {end for edge in chosen_edges for end in (edge.source, edge.target)}
    return LinkGraph([nodes[name] for name in ranked[:most] if name in linked], chosen_edges, len(degree))


def _nodes(memory: Mapping[str, Any]) -> Iterator[Node]:
    for pattern in memory["long_term_memory"]["patterns"]:
        yield Node(pattern["id"], "pattern", pattern["pattern"])
    for session in sessions_of(memory):
        yield Node(session["session_id"], "session", session["summary"])
    for _, item in _items(memory):
        metadata = item["metadata"]
        if metadata.get("conversation"):
            yield Node(
                metadata["conversation"], "conversation", metadata.get("title") or metadata["conversation"]
            )
        if path := _changed_file(metadata):
            yield Node(path, "file", path)
        if item["type"] in SHOWN_TYPES or item["associative_links"]:
            yield Node(item["id"], item["type"], item["content"])


def _edges(memory: Mapping[str, Any]) -> Iterator[Edge]:
    for pattern in memory["long_term_memory"]["patterns"]:
        for proof in (pattern.get("metadata") or {}).get("evidence") or []:
            if isinstance(proof, Mapping):
                yield Edge(pattern["id"], str(proof.get("session_id")), "extracted_from")
        yield from _linked(pattern["id"], pattern.get("associative_links"))
    for session in sessions_of(memory):
        yield from _linked(session["session_id"], (session.get("metadata") or {}).get("associative_links"))
    for session_id, item in _items(memory):
        metadata = item["metadata"]
        conversation = metadata.get("conversation") or ""
        if path := _changed_file(metadata):
            yield Edge(session_id or conversation or item["id"], path, "changed")
        yield Edge(item["id"], conversation, "said_in")
        if session_id:
            yield Edge(session_id, item["id"], "extracted_from")
            yield Edge(session_id, conversation, "extracted_from")
        yield from _linked(item["id"], item["associative_links"])


def _items(memory: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the items of working memory, and with its id those of each session."""
    yield from (("", item) for item in items_of(memory))
    for session in sessions_of(memory):
        items = (session.get("metadata") or {}).get("items") or ()
        yield from ((session["session_id"], item) for item in items)


def _linked(id: str, links: Any) -> Iterator[Edge]:
    """Yield the links that an entry holds; a link of both ends is yielded once."""
    for link in links or []:
        source, target = id, str(link["target_id"])
        if link["link_type"] in MUTUAL:
            source, target = sorted((source, target))
        yield Edge(source, target, link["link_type"])


def _changed_file(metadata: Mapping[str, Any]) -> str:
    """Return the path of the file that an item says was changed; empty for other items."""
    fact = metadata.get("fact")
    return str(fact.get("path") or "") if isinstance(fact, Mapping) and fact.get("kind") == "change" else ""

"""The page of the graph: nodes and links of live memory as one drawing, and as a list beside it.

igraph computes the places; it is imported when the page is made. The drawing holds no script and no style.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache

from aether.api.home import read, redaction_rules
from aether.memory.link_graph import Edge, LinkGraph, Node, link_graph
from aether.memory.patterns import LINK_TYPES
from aether.redact.redact import redact
from aether.types import JsonObject
from aether.view.frame import Asked, Frame, Page, Shown, link, part

MOST_NODES = 120
WIDTH, HEIGHT, MARGIN = 960, 640, 24
# A drawing is the same for the same memory.
SEED, ROUNDS = 1, 400
TEXT_CHARS = 160
# How the links of conversations and files are called; the others have the name of their type.
LINK_WORDS = {"said_in": "said in", "changed": "changed"} | {
    name: name.replace("_", " ") for name in LINK_TYPES
}
# The shapes of nodes, beside their colours, by kind.
GROUPS = {"conversation": 0, "file": 1, "session": 2, "pattern": 3}
OTHER_GROUP = 4


def graph_page(frame: Frame, asked: Asked) -> Shown:
    """Return the best linked part of memory as a drawing, and all its links as a list."""
    graph, rules = (
        link_graph(read(frame.home).documents["memory"], most=MOST_NODES),
        redaction_rules(frame.home),
    )
    nodes = {node.id: _node(node, redact(node.text, rules)) for node in graph.nodes}
    for node, (x, y) in zip(nodes.values(), _places(tuple(nodes), tuple(graph.edges)), strict=True):
        node.update(x=x, y=y)
    lines = [
        {"source": nodes[edge.source], "target": nodes[edge.target], "words": LINK_WORDS.get(edge.type, edge.type)}
        for edge in graph.edges
    ]  # fmt: skip
    return Shown(
        "graph.html",
        {"nodes": list(nodes.values()), "lines": lines, "part": part(lines, asked.number("page")), "total": graph.total, "size": (WIDTH, HEIGHT), "kinds": _kinds(graph)},
    )  # fmt: skip


def _node(node: Node, text: str) -> JsonObject:
    addresses = {"conversation": link(f"/thread/{node.id}", {}), "file": link("/search", {"q": node.id})}
    return {
        "kind": node.kind.replace("_", " "), "text": text if len(text) <= TEXT_CHARS else f"{text[:TEXT_CHARS].rstrip()}…",
        "group": GROUPS.get(node.kind, OTHER_GROUP), "address": addresses.get(node.kind) or link(f"/entry/{node.id}", {}),
    }  # fmt: skip


def _kinds(graph: LinkGraph) -> list[tuple[str, int, int]]:
    """Return the name, the group and the number of each group of nodes that is there."""
    names = {group: name for name, group in GROUPS.items()} | {OTHER_GROUP: "entry"}
    groups = [GROUPS.get(node.kind, OTHER_GROUP) for node in graph.nodes]
    return [(names[group], group, groups.count(group)) for group in sorted(set(groups))]


@lru_cache(maxsize=4)
def _places(ids: Sequence[str], edges: Sequence[Edge]) -> list[tuple[float, float]]:
    """Return a place inside the drawing for each node; linked nodes are near each other."""
    import igraph

    if not ids:
        return []
    igraph.set_random_number_generator(random.Random(SEED))  # noqa: S311 - a drawing
    index = {name: nth for nth, name in enumerate(ids)}
    network = igraph.Graph(n=len(ids), edges=[(index[edge.source], index[edge.target]) for edge in edges])
    layout = network.layout_fruchterman_reingold(niter=ROUNDS)
    layout.fit_into((MARGIN, MARGIN, WIDTH - MARGIN, HEIGHT - MARGIN), keep_aspect_ratio=False)
    return [(round(x, 1), round(y, 1)) for x, y in layout]


PAGES = [Page("/graph", "Graph", graph_page)]

"""Resources: memory as addresses that a person attaches, or a client reads without asking a model.

`aether://memory` is an overview and not the document: that grows to a megabyte. What is long is cut, and says how to
read on; only `memory://knowledge-graph` is always whole, as the official memory server gives it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aether.errors import AetherError, NotFound
from aether.integrations.mcp_server.answers import as_json, part_of
from aether.integrations.mcp_server.graph_tools import RESOURCE
from aether.integrations.mcp_server.places import place
from aether.memory import recall as lines
from aether.operations import colony, edge, graph, recalling
from aether.operations.status import get_memory_status

JSON, TEXT = "application/json", "text/plain"
# Of the entries of memory, an overview names the newest.
NEWEST = 50


def register(server: Any, home: str | None, *, memory: bool) -> None:
    """Add the resources to the server; without those of aether's own memory unless `memory`."""
    _add(server, home, RESOURCE, "The whole knowledge graph", knowledge_graph)
    if not memory:
        return
    _add(server, home, "aether://memory", "What is in memory: an overview", overview)
    _add(server, home, "aether://signals", "The signals that are felt now", signals)
    _add(server, home, "aether://state", "State of the colony and its phases", state)
    _add(server, home, "aether://sessions", "The compressed sessions", sessions)
    for kind in ("items", "sessions"):
        _add_entries(server, home, kind)


def knowledge_graph(home: Path) -> str:
    """Return the whole knowledge graph."""
    return as_json(graph.read_graph(home=home))


def overview(home: Path) -> str:
    """Return the status, and the newest entries with an id, a gist and what the full text costs."""
    memory = edge.read(home).documents["memory"]
    newest = sorted(lines.records(memory), key=lambda record: record.at, reverse=True)[:NEWEST]
    count = edge.counter_of(memory)
    told = [lines.line(record, count=count)._asdict() for record in newest]
    kept = [{key: line[key] for key in ("id", "layer", "type", "at", "tokens", "gist")} for line in told]
    return as_json({**get_memory_status(home=home), "newest": kept})


def signals(home: Path) -> str:
    """Return the signals that are felt now, strongest first."""
    return as_json(colony.active_signals(home=home))


def state(home: Path) -> str:
    """Return the state of the colony."""
    return as_json(colony.colony(home=home))


def sessions(home: Path) -> str:
    """Return the sessions of short-term memory, each with its summary."""
    fields = ("session_id", "phase", "compressed_at", "original_tokens", "compressed_tokens", "summary")
    found = edge.read(home).documents["memory"]["short_term_memory"]["sessions"]
    return as_json([{field: session[field] for field in fields} for session in found])


def entry(id: str, home: Path) -> str:
    """Return the item, session or pattern of this id in full.

    Raises:
        NotFound: nothing has this id.
    """
    (found,) = recalling.full([id], home=home)
    return as_json(found["entry"])


def _add(server: Any, home: str | None, uri: str, about: str, read: Callable[[Path], str]) -> None:
    async def reading() -> str:
        text = await _in_thread(lambda: read(place(home)))
        return text if uri == RESOURCE else part_of(text, 1, ask="the tool get")

    name = uri.rpartition("/")[2]
    server.resource(uri, name=name, description=about, mime_type=JSON)(reading)


def _add_entries(server: Any, home: str | None, kind: str) -> None:
    async def reading(id: str) -> str:
        return part_of(await _in_thread(lambda: entry(id, place(home))), 1, ask=f"get, ids=[{id}]")

    about = f"One of the {kind} by its id"
    server.resource(
        f"aether://{kind}/{{id}}", name=kind.removesuffix("s"), description=about, mime_type=TEXT
    )(reading)


async def _in_thread(read: Callable[[], str]) -> str:
    from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

    try:
        return (await asyncio.to_thread(read)).encode("utf-8", "replace").decode()
    except NotFound as reason:
        raise ResourceNotFoundError(str(reason)) from reason
    except AetherError as reason:
        raise ResourceError(str(reason)) from reason

"""Resources: what each address holds, with and without a server."""

from __future__ import annotations

import json

import pytest

import aether
from aether.api import compress, graph, recall
from aether.api.colony import emit_signal
from aether.errors import NotFound
from aether.integrations.mcp_server import server

ANT = {"name": "ant", "entityType": "insect", "observations": ["It digs."]}


@pytest.fixture
def filled(home):
    graph.create_entities([ANT], home=home)
    aether.add_working_memory_item("Use SQLite.", "decision", home=home)
    emit_signal("FOCUS", "search", home=home)
    return home


def item_of(home):
    return recall.recall("sqlite", home=home)[0].id


def test_each_is_json(filled):
    assert json.loads(server.knowledge_graph(filled)) == {"entities": [ANT], "relations": []}
    assert json.loads(server.overview(filled))["newest"][0]["gist"] == "Use SQLite."
    assert json.loads(server.signals(filled))[0]["type"] == "FOCUS"
    assert json.loads(server.state(filled))["colony_status"]["state"] == "IDLE"
    assert json.loads(server.entry(item_of(filled), filled))["content"] == "Use SQLite."
    with pytest.raises(NotFound):
        server.entry("none", filled)


def test_sessions_are_listed_with_their_summaries(filled):
    compress.compress(1, home=filled)

    assert json.loads(server.sessions(filled))[0]["summary"]


def read(home, uri, *, tools="all"):
    servers = pytest.importorskip(
        "tests.integrations.mcp_server.servers", reason="no mcp package to serve with"
    )
    from aether.integrations.mcp_server.server import build

    found = servers.ask(build(str(home), tools=tools), lambda client: client.read_resource(uri))
    return found.contents[0].text


@pytest.mark.extras
def test_a_client_reads_them_by_address(filled):
    assert json.loads(read(filled, "memory://knowledge-graph"))["entities"] == [ANT]
    assert json.loads(read(filled, "aether://memory"))["working_memory"]["items"] == 1
    assert "Use SQLite." in read(filled, f"aether://items/{item_of(filled)}")


@pytest.mark.extras
def test_what_is_long_says_how_to_read_on_but_the_graph_is_whole(filled):
    long = aether.add_working_memory_item("zebra " * 8_000, "outcome", home=filled)
    graph.create_entities([{**ANT, "name": f"ant {n}" + "x" * 500} for n in range(100)], home=filled)

    assert "part=2" in read(filled, f"aether://items/{long}")
    assert len(json.loads(read(filled, "memory://knowledge-graph"))["entities"]) == 101


@pytest.mark.extras
def test_with_the_official_tools_there_is_only_the_graph(home):
    servers = pytest.importorskip(
        "tests.integrations.mcp_server.servers", reason="no mcp package to serve with"
    )
    from aether.integrations.mcp_server.server import build

    async def asking(client):
        return await client.list_resources(), await client.list_resource_templates()

    found, templates = servers.ask(build(str(home), tools="graph"), asking)

    assert [str(each.uri) for each in found.resources] == ["memory://knowledge-graph"]
    assert templates.resource_templates == []


@pytest.mark.extras
def test_what_is_not_there_is_an_error_with_words(home):
    servers = pytest.importorskip(
        "tests.integrations.mcp_server.servers", reason="no mcp package to serve with"
    )
    from aether.integrations.mcp_server.server import build

    missing = servers.refused(build(str(home)), lambda client: client.read_resource("aether://items/none"))
    (home / "data" / "memory.json").write_text('{"schema_version": 99}', encoding="utf-8")
    newer = servers.refused(build(str(home)), lambda client: client.read_resource("aether://memory"))

    assert "in no layer" in missing
    assert "memory" in newer
    assert "newer" in newer

"""The MCP server, asked by the real Claude Code and by the real client: one memory, whoever asks."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.e2e.claude_code import driver
from tests.e2e.claude_code.reading import colony, complaints, items
from tests.e2e.claude_code.server import call, calls, plot, say
from tests.e2e.claude_code.test_installing import PLUGIN

pytest.importorskip("mcp", reason="no mcp package to serve with")
pytestmark = pytest.mark.slow

FACT = "The ferry leaves from pier nine at low tide"


def sailing(server):
    """Load the tools, remember a fact, and ask for it in other words."""
    remember, recall = (f"mcp__{server}__{tool}" for tool in ("remember", "recall"))
    return plot(
        {
            "Remember the ferry": [
                calls(call("ToolSearch", query=f"select:{remember},{recall}", max_results=5)),
                calls(call(remember, content=FACT, type="decision")),
                calls(call(recall, query="ferry pier")),
                say("It is remembered."),
            ]
        },
        summary=say("<summary>Nothing.</summary>"),
    )


@pytest.mark.parametrize("way", ["settings", "plugin"])
def test_the_tools_are_on_offer_and_answer(stage, way):
    server = {"settings": "aether", "plugin": "plugin_aether_aether"}[way]
    at = stage(sailing(server))
    project = driver.project(at)
    options = ["--plugin-dir", str(PLUGIN)] if way == "plugin" else []
    if not options:
        driver.run(at, project, ["aether", "claude", "install", "--project"])
    session = driver.ask(at, project, "Remember the ferry", *options, servers=True)

    assert complaints(session) == []
    assert session.result == "It is remembered."
    last = at.api.requests[-1]
    assert {f"mcp__{server}__{tool}" for tool in ("remember", "recall")} <= last.tools
    remembered, recalled = (
        block
        for message in last.body["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
        and "tool_reference" not in str(block)
        and "ToolSearch" not in str(block)
    )
    assert "Remembered as wm_" in json.dumps(remembered)
    assert FACT in json.dumps(recalled)
    assert [block.get("is_error") for block in (remembered, recalled)] == [None, None]
    assert [item["content"] for item in items(colony(at, project)) if "ferry leaves" in item["content"]] == [
        FACT
    ]


def test_what_a_session_said_is_known_to_any_client(stage):
    from mcp import Client, StdioServerParameters

    at = stage(
        plot({"pier": [say(f"I decided this: {FACT}, because of the sandbank.")]}, summary=say("Nothing."))
    )
    project = driver.project(at)
    driver.run(at, project, ["aether", "claude", "install", "--project"])
    driver.ask(at, project, "Which pier is it?")

    async def ask():
        server = StdioServerParameters(
            command=str(at.programs / "aether"), args=["mcp"], cwd=project, env=driver.environment(at)
        )
        async with Client(server) as client:
            return await client.call_tool("recall", {"query": "ferry sandbank"})

    assert "pier nine" in str(asyncio.run(ask()))

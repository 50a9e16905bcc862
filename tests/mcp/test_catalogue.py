"""The catalogue: sets of tools, and that their words fit what they do."""

from __future__ import annotations

import inspect

import pytest

from aether.errors import InvalidInput
from aether.mcp import catalogue
from aether.mcp.catalogue import MEMORY, instructions, tools_of
from aether.tokens.counters import counter
from tests.tables import rows

OFFICIAL = [
    "create_entities", "create_relations", "add_observations", "delete_entities", "delete_observations",
    "delete_relations", "read_graph", "search_nodes", "open_nodes",
]  # fmt: skip


def test_the_sets_are_ours_theirs_and_both():
    assert [tool.name for tool in tools_of("graph")] == OFFICIAL
    assert tools_of("all") == (*tools_of("team"), *tools_of("graph"))
    assert [tool.name for tool in tools_of("team")[len(MEMORY) :]] == ["claim", "inbox"]
    with pytest.raises(InvalidInput, match="Use one of memory, team, graph, all"):
        tools_of("none")


@rows("tool", tools_of("all"), ids=lambda tool: tool.name)
def test_only_arguments_that_a_tool_has_are_described(tool):
    assert set(tool.arguments) <= set(inspect.signature(tool.do).parameters) - {"home", "progress"}


@rows("tool", tools_of("all"), ids=lambda tool: tool.name)
def test_a_destructive_tool_is_not_read_only(tool):
    assert tool.destroys == tool.name.startswith("delete_")
    assert not (tool.destroys and tool.reads)


def test_only_the_graphs_tools_promise_a_shape():
    assert [tool.name for tool in tools_of("all") if tool.output] == OFFICIAL


def test_the_instructions_for_a_model_are_short():
    count = counter("estimate", 1.0)

    assert count(instructions("memory")) < 120
    assert instructions("graph") == catalogue.GRAPH_INSTRUCTIONS
    assert sum(count(tool.description) for tool in MEMORY) < 400

"""The MCP server on the command line."""

from __future__ import annotations

import click

from aether.cli.output import Ask, Command, emit, pass_ask, wrapped


@click.command("mcp", cls=Command)
@click.option(
    "--tools",
    type=click.Choice(["memory", "graph", "all"]),
    default="memory",
    show_default=True,
    help="aether's own tools, the nine of the official memory server, or both",
)
@click.option(
    "--list", "listed", is_flag=True, help="Print what a model is told of the tools, and serve nothing"
)
@pass_ask
def mcp_command(ask: Ask, tools: str, *, listed: bool) -> None:
    """Serve memory to an MCP client over stdin and stdout.

    Runs until stdin ends. The home is --home, AETHER_HOME, else that of the project in CLAUDE_PROJECT_DIR or of the
    current directory; it is made where there is none. Needs the package mcp: pip install 'aether-memory[mcp]'.

    \b
    Example:
      aether mcp --list
      aether mcp --tools graph --list
    """
    from aether.integrations.mcp_server import catalogue, server

    if not listed:
        server.serve(ask.home, tools=tools)
        return
    offered = catalogue.chosen(tools)
    data = [{"name": tool.name, "description": tool.description} for tool in offered]
    emit(ask, data, [line for tool in offered for line in _told(tool.name, tool.description)])


def _told(name: str, description: str) -> list[str]:
    """Return all that a model is told of a tool, in lines that fit the terminal."""
    return [name, *(line for each in description.splitlines() for line in wrapped(f"  {each}", indent=2))]

"""Payloads of hosts whose hooks resemble those of Claude Code, with the names that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aether.types import JsonObject

# aether's own tools: what they answer is memory already.
OWN_TOOLS = ("mcp__aether__", "mcp_aether_", "aether_", "MCP:aether")


def renamed(
    payload: JsonObject, *, events: Mapping[str, str], tools: Mapping[str, str], arguments: Mapping[str, str], name: str = ""
) -> JsonObject:  # fmt: skip
    """Return `payload` with the names that Claude Code has for its event, its tool and the arguments of the tool.

    A host's event that is not in `events` is no event of aether; a tool that is not in `tools`, and an argument, keep
    their names. `name` is that of the event if the payload has none.

    >>> renamed({"hook_event_name": "AfterTool", "tool_name": "run", "tool_input": {"cmd": "ls"}},
    ...         events={"AfterTool": "PostToolUse"}, tools={"run": "Bash"}, arguments={"cmd": "command"})
    {'hook_event_name': 'PostToolUse', 'tool_name': 'Bash', 'tool_input': {'command': 'ls'}}
    """
    result = dict(payload)
    event = payload.get("hook_event_name") or name
    result["hook_event_name"] = events.get(event, "") if isinstance(event, str) else ""
    tool, values = payload.get("tool_name"), payload.get("tool_input")
    if isinstance(tool, str):
        result["tool_name"] = "" if tool.startswith(OWN_TOOLS) else tools.get(tool, tool)
    if isinstance(values, dict):
        result["tool_input"] = {arguments.get(key, key): value for key, value in values.items()}
    return result


def nothing_more(_payload: JsonObject, _name: str) -> JsonObject:
    """Return nothing: the payload of this host has the last message of a turn, and its log is not read."""
    return {}

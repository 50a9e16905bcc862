"""Merging into settings of Claude Code: our hooks and our MCP server in a text, and the text without them.

Pure: texts in, texts out. Every byte that is not ours stays as it is; merging twice is merging once; and a text
without what was merged into it is the text from before.
"""

from __future__ import annotations

import re
from typing import Any

from aether.errors import InvalidDocument, shown
from aether.operations.claude_handlers import MODULE, is_ours
from aether.shapes import JsonObject
from aether.text import json_text

SERVER = "aether"
EMPTY = "{}\n"
# What of a handler is ours to say.
MADE = ("type", "command", "args", "timeout")


def merge(text: str, groups: JsonObject, *, where: str = "") -> str:
    """Return the settings `text` with `groups`, by event, as our only handlers.

    Raises:
        InvalidDocument: it is not JSON, or `hooks` is not what Claude Code reads.
    """
    text = text if text.strip() else EMPTY
    for event in [*hooks_of(text, where=where)]:
        text = _merged(text, event, groups.get(event), where)
    missing = {event: [group] for event, group in groups.items() if event not in hooks_of(text)}
    if not missing:
        return text
    if "hooks" not in value_of(text):
        return json_text.add(text, (), [("hooks", missing)])
    return json_text.add(text, ("hooks",), missing.items())


def _merged(text: str, event: str, wanted: JsonObject | None, where: str) -> str:
    groups = hooks_of(text)[event]
    places = our_places(groups)
    if wanted is None:
        return _without(text, event, keep=False) if places else text
    if not isinstance(groups, list):
        raise InvalidDocument(
            f"hooks.{event} is {shown(groups)}.",
            fix="Make it a list, as Claude Code reads it.",
            where=where or "settings",
        )
    if len(places) == 1:
        (at, below) = places[0]
        present = groups[at]
        alone = len(present["hooks"]) == 1
        if alone or present.get("matcher") == wanted.get("matcher"):
            return _renewed(text, ("hooks", event, at), present, wanted, below)
    return json_text.add(_without(text, event, keep=True), ("hooks", event), [(None, wanted)])


def _renewed(text: str, at: json_text.Path, present: JsonObject, wanted: JsonObject, below: int) -> str:
    """Return `text` with our handler brought up to date where it stands; unchanged where it is."""
    (made,) = wanted["hooks"]
    held = present["hooks"][below]
    # What a person has added to it, such as a statusMessage, stays.
    handler = made | {key: value for key, value in held.items() if key not in MADE}
    if held != handler:
        text = json_text.put(text, (*at, "hooks", below), handler)
    if present.get("matcher") == wanted.get("matcher"):
        return text
    if "matcher" not in wanted:
        return json_text.drop_key(text, at, "matcher")
    if "matcher" not in present:
        return json_text.add(text, at, [("matcher", wanted["matcher"])])
    return json_text.put(text, (*at, "matcher"), wanted["matcher"])


def unmerge(text: str, before: str = "", *, where: str = "") -> str:
    """Return the settings `text` without our handlers and what they leave empty; what `before` held stays.

    Raises:
        InvalidDocument: it is not JSON, or `hooks` is not what Claude Code reads.
    """
    events = [event for event, groups in hooks_of(text, where=where).items() if our_places(groups)]
    held = value_of(before).get("hooks") if before.strip() else None
    for event in events:
        text = _without(text, event, keep=isinstance(held, dict) and event in held)
    if events and held is None and not hooks_of(text):
        text = json_text.drop_key(text, (), "hooks")
    return text


def _without(text: str, event: str, *, keep: bool) -> str:
    """Return `text` without our handlers of `event`, groups that empties, and, but to `keep` it, the empty event."""
    at = ("hooks", event)
    for group, below in reversed(our_places(hooks_of(text)[event])):
        text = json_text.drop(text, (*at, group, "hooks"), below)
        if not hooks_of(text)[event][group]["hooks"]:
            text = json_text.drop(text, at, group)
    return text if keep or hooks_of(text)[event] else json_text.drop_key(text, ("hooks",), event)


def our_places(groups: Any) -> list[tuple[int, int]]:
    """Return where our handlers stand in the groups of one event: number of the group, number in it."""
    return [
        (at, below)
        for at, group in enumerate(groups if isinstance(groups, list) else [])
        if isinstance(group, dict) and isinstance(group.get("hooks"), list)
        for below, handler in enumerate(group["hooks"])
        if is_ours(handler)
    ]


def merge_server(text: str, server: JsonObject, *, where: str = "") -> str:
    """Return the text of an `.mcp.json` with our server; one of that name that is not ours is left to its owner.

    Raises:
        InvalidDocument: it is not JSON, or not what Claude Code reads.
    """
    text = text if text.strip() else EMPTY
    servers = servers_of(text, where=where)
    if SERVER in servers:
        present = servers[SERVER]
        wanted = {**present, **server} if is_our_server(present) else present
        return text if wanted == present else json_text.put(text, ("mcpServers", SERVER), wanted)
    if "mcpServers" in value_of(text):
        return json_text.add(text, ("mcpServers",), [(SERVER, server)])
    return json_text.add(text, (), [("mcpServers", {SERVER: server})])


def unmerge_server(text: str, before: str = "", *, where: str = "") -> str:
    """Return the text of an `.mcp.json` without our server, under whatever name it stands.

    Raises:
        InvalidDocument: it is not JSON, or not what Claude Code reads.
    """
    ours = [name for name, server in servers_of(text, where=where).items() if is_our_server(server)]
    for name in ours:
        text = json_text.drop_key(text, ("mcpServers",), name)
    held = before.strip() and "mcpServers" in value_of(before)
    if ours and not held and not servers_of(text):
        text = json_text.drop_key(text, (), "mcpServers")
    return text


def is_our_server(server: Any) -> bool:
    """Return whether an MCP server is the one that `aether mcp` is.

    >>> is_our_server({"command": "/venv/bin/aether", "args": ["mcp"]}), is_our_server({"command": "other"})
    (True, False)
    """
    if not isinstance(server, dict) or not isinstance(server.get("command"), str):
        return False
    name = re.split(r"[\\/]", server["command"])[-1].removesuffix(".exe")
    words = [name, *(server["args"] if isinstance(server.get("args"), list) else [])]
    return words[:2] == ["aether", "mcp"] or words[1:5] == [*MODULE, "mcp"]


def hooks_of(text: str, *, where: str = "") -> JsonObject:
    """Return the hooks in settings, by event; none where there are none."""
    return _table(text, "hooks", where)


def servers_of(text: str, *, where: str = "") -> JsonObject:
    """Return the MCP servers in a text, by name; none where there are none."""
    return _table(text, "mcpServers", where)


def _table(text: str, key: str, where: str) -> JsonObject:
    found = value_of(text, where=where).get(key, {})
    if not isinstance(found, dict):
        raise InvalidDocument(
            f"{key} is {shown(found)}.",
            fix="Make it an object, as Claude Code reads it.",
            where=where or "settings",
        )
    return found


def value_of(text: str, *, where: str = "") -> JsonObject:
    """Return the settings in a text.

    Raises:
        InvalidDocument: it is not JSON to the letter, or no object; Claude Code does not read it either.
    """
    try:
        value = json_text.parse(text)
    except ValueError as reason:
        raise InvalidDocument(
            f"is not JSON: {reason}. Claude Code does not read it either, and nothing was changed.",
            fix="Correct it (comments and trailing commas are not allowed), then try again.",
            where=where or "settings",
        ) from reason
    if not isinstance(value, dict):
        raise InvalidDocument(
            f"holds {shown(value)}, not an object. Nothing was changed.",
            fix="Correct it, then try again.",
            where=where or "settings",
        )
    return value

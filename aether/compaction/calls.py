"""Calls: the tool calls of a conversation, each with the result that answers it.

A result belongs to the nearest earlier call of its id that has none yet. Commands are told by the arguments,
not by the tool's name. Linear in the messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aether.messages.message import Block, Message
from aether.shapes import JsonObject

_COMMAND_KEYS = ("command", "cmd", "script")
_SHELLS = frozenset({"bash", "sh", "zsh"})
# An editor tool that takes its verb as `command`; the file is named beside it.
_VERBS = frozenset({"view", "create", "str_replace", "insert", "undo_edit"})


class Call(NamedTuple):
    """A call and what came of it."""

    at: int
    tool: str
    arguments: JsonObject
    command: str
    """The shell command that it runs; empty for other tools."""
    result: Block | None
    answered_at: int
    """Position of the result; -1 where there is none."""


def calls(messages: Sequence[Message]) -> list[Call]:
    """Return the calls in `messages` in order."""
    found: list[Call] = []
    waiting: dict[str, list[int]] = {}
    for at, message in enumerate(messages):
        for block in message.blocks:
            if block.kind == "call":
                waiting.setdefault(block.call_id, []).append(len(found))
                found.append(Call(at, block.tool, block.arguments, command(block.arguments), None, -1))
            elif block.kind == "result" and waiting.get(block.call_id):
                place = waiting[block.call_id].pop()
                found[place] = found[place]._replace(result=block, answered_at=at)
    return found


def command(arguments: JsonObject) -> str:
    """Return the shell command in the arguments of a call; empty where there is none.

    >>> command({"command": ["bash", "-lc", "make test"]}), command({"command": "view", "path": "a.py"})
    ('make test', '')
    """
    for key in _COMMAND_KEYS:
        value = arguments.get(key)
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            value = value[-1] if value[0].rpartition("/")[2] in _SHELLS else " ".join(value)
        if isinstance(value, str) and value.strip():
            return "" if value in _VERBS else value.strip()
    return ""

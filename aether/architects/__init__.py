"""Backends: the modules that complete a request, by the name given to `--architect`."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import cast

from aether.architects.base import Backend, Settings
from aether.architects.stream import ChatBackend, ChatReply
from aether.errors import InvalidInput, shown

__all__ = ["Backend", "ChatBackend", "ChatReply", "Settings", "backend", "chat_backend"]

# The module of each architect; a further one is one row.
MODULES = {
    "extractive": "aether.architects.extractive", "anthropic": "aether.architects.anthropic",
    "openai": "aether.architects.openai", "ollama": "aether.architects.ollama", "command": "aether.architects.command",
    "claude-code": "aether.architects.claude_cli",
}  # fmt: skip


def backend(spec: str) -> tuple[Backend, dict[str, str]]:
    """Return the backend that `spec` names, and the settings that `spec` contains.

    `command:` is followed by the program to run. `manual` is not a backend: the operation stops before one.

    Raises:
        InvalidInput: there is no such backend, or the program is missing.

    >>> module, overrides = backend("command:jq .")
    >>> module.NAME, overrides
    ('command', {'command': 'jq .'})
    """
    fix = f"Use {', '.join(name for name in MODULES if name != 'command')}, manual or command:'program'."
    module, overrides = _named(spec, MODULES, "an architect", fix=fix, where="architect")
    return cast("Backend", module), overrides


# The module of each backend of a chat.
CHATS = {
    "echo": "aether.architects.stream", "ollama": "aether.architects.ollama", "openai": "aether.architects.openai",
    "anthropic": "aether.architects.anthropic", "command": "aether.architects.command",
}  # fmt: skip


def chat_backend(spec: str) -> tuple[ChatBackend, dict[str, str]]:
    """Return the backend of a chat that `spec` names, and the settings that `spec` contains.

    Raises:
        InvalidInput: there is no such backend, or the program is missing.

    >>> chat_backend("echo")[0].NAME
    'echo'
    """
    fix = "Use echo, ollama, openai, anthropic or command:'program'."
    module, overrides = _named(spec, CHATS, "a backend of a chat", fix=fix, where="backend")
    return cast("ChatBackend", module), overrides


def _named(
    spec: str, known: dict[str, str], what: str, *, fix: str, where: str
) -> tuple[ModuleType, dict[str, str]]:
    name, _, command = spec.partition(":")
    if name not in known or bool(command.strip()) != (name == "command"):
        raise InvalidInput(f"{shown(spec)} is not {what}.", fix=fix, where=where)
    module = import_module(known[name])
    return module, {"command": command.strip()} if command else {}

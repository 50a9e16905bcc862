"""Backends: the modules that complete a request, by the name given to `--architect`."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from aether.backends.base import Backend, Completion, Request, Settings
from aether.backends.request import instruction, session_request, summary_request
from aether.backends.stream import ChatBackend, ChatReply
from aether.errors import InvalidInput, shown

__all__ = [
    "Backend", "ChatBackend", "ChatReply", "Completion", "Request", "Settings", "backend", "chat_backend", "instruction",
    "session_request", "summary_request",
]  # fmt: skip

_MODULES = {
    "extractive": "extractive", "anthropic": "anthropic", "openai": "openai", "ollama": "ollama", "command": "command",
    "claude-code": "claude_cli",
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
    name, _, command = spec.partition(":")
    if name not in _MODULES or bool(command.strip()) != (name == "command"):
        raise InvalidInput(
            f"{shown(spec)} is not an architect.",
            fix="Use extractive, anthropic, openai, ollama, claude-code, manual or command:'program'.",
            where="architect",
        )
    module = cast("Backend", import_module(f"aether.backends.{_MODULES[name]}"))
    return module, {"command": command.strip()} if command else {}


_CHATS = {
    "echo": "stream",
    "ollama": "ollama",
    "openai": "openai",
    "anthropic": "anthropic",
    "command": "command",
}


def chat_backend(spec: str) -> tuple[ChatBackend, dict[str, str]]:
    """Return the backend of a chat that `spec` names, and the settings that `spec` contains.

    Raises:
        InvalidInput: there is no such backend, or the program is missing.

    >>> chat_backend("echo")[0].NAME
    'echo'
    """
    name, _, command = spec.partition(":")
    if name not in _CHATS or bool(command.strip()) != (name == "command"):
        raise InvalidInput(
            f"{shown(spec)} is not a backend of a chat.",
            fix="Use echo, ollama, openai, anthropic or command:'program'.",
            where="backend",
        )
    module = cast("ChatBackend", import_module(f"aether.backends.{_CHATS[name]}"))
    return module, {"command": command.strip()} if command else {}

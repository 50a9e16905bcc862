"""Backends: the modules that complete a request, by the name given to `--architect`; their table is in `aether.store.keys`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import cast

from aether.architects.base import Backend, Settings
from aether.architects.stream import ChatBackend, ChatReply
from aether.errors import InvalidInput, one_of, shown
from aether.store.keys import BACKENDS, CHATS

__all__ = ["Backend", "ChatBackend", "ChatReply", "Settings", "backend", "chat_backend"]


def backend(spec: str) -> tuple[Backend, dict[str, str]]:
    """Return the backend that `spec` names, and the settings that `spec` contains.

    `command:` is followed by the program to run. `manual` is not a backend: the operation stops before one.

    Raises:
        InvalidInput: there is no such backend, or the program is missing.

    >>> module, overrides = backend("command:jq .")
    >>> module.NAME, overrides
    ('command', {'command': 'jq .'})
    """
    module, overrides = _named(spec, BACKENDS, "an architect", others=["manual"], where="architect")
    return cast("Backend", module), overrides


def chat_backend(spec: str) -> tuple[ChatBackend, dict[str, str]]:
    """Return the backend of a chat that `spec` names, and the settings that `spec` contains.

    Raises:
        InvalidInput: there is no such backend, or the program is missing.

    >>> chat_backend("echo")[0].NAME
    'echo'
    """
    module, overrides = _named(spec, CHATS, "a backend of a chat", where="backend")
    return cast("ChatBackend", module), overrides


def _named(
    spec: str, table: Mapping[str, str], what: str, *, where: str, others: Sequence[str] = ()
) -> tuple[ModuleType, dict[str, str]]:
    name, _, command = spec.partition(":")
    if name not in table or bool(command.strip()) != (name == "command"):
        names = [*(name for name in table if name != "command"), *others, "command:'program'"]
        raise InvalidInput(f"{shown(spec)} is not {what}.", fix=one_of(spec, names), where=where)
    return import_module(table[name]), {"command": command.strip()} if command else {}

"""Deprecations: modules under the names of the release before, and parameters of adapters that do nothing.

A former module name works for one more release, with a `DeprecationWarning`. A parameter that the original project
had and that has no effect here warns when it is passed.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from aether.errors import warn

# The former name of a module or package, and its name now; a package takes what is below it along.
FORMER = {
    "aether.backends": "aether.architects",
    "aether.events.event": "aether.events.events",
    "aether.integrations": "aether.compat",
    "aether.integrations.anthropic_sdk": "aether.frameworks.anthropic_sdk",
    "aether.integrations.claude_code": "aether.hosts.claude_code",
    "aether.integrations.langchain": "aether.frameworks.langchain",
    "aether.integrations.mcp_server": "aether.mcp",
    "aether.integrations.memory_tool": "aether.frameworks.memory_tool",
    "aether.integrations.openai_agents": "aether.frameworks.openai_agents",
    "aether.integrations.recall_tool": "aether.frameworks.recall_tool",
    "aether.integrations.schedule": "aether.cli.schedule",
    "aether.integrations.viewer": "aether.view",
    "aether.messages.formats": "aether.messages.convert",
    "aether.messages.repair": "aether.messages.validate",
    "aether.operations": "aether.api",
    "aether.operations.compaction_case": "aether.api.compact",
    "aether.redact.redaction": "aether.redact.redact",
}
# Packages whose modules went to several places: only the modules themselves are worth a warning.
SPLIT = frozenset({"aether.integrations", "aether.operations"})


def find_spec(name: str) -> ModuleSpec | None:
    """Return the import spec of a module under its former name; None if `name` is not one."""
    prefix = name
    while prefix not in FORMER:
        prefix, _, _ = prefix.rpartition(".")
        if not prefix:
            return None
    return ModuleSpec(name, _Loader(FORMER[prefix] + name[len(prefix) :]))  # type: ignore[arg-type]


class _Loader:
    """Loads the module of another name; it stays one module, with its own name."""

    def __init__(self, target: str) -> None:
        self.target = target

    def create_module(self, spec: Any) -> ModuleType:
        module = import_module(self.target)
        if spec.name not in SPLIT:
            text = f"{spec.name} is now {self.target}; the former name ends with the next release."
            warnings.warn(text, DeprecationWarning, stacklevel=2)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec


def warn_without_effect(adapter: str, parameter: str, reason: str) -> None:
    """Warn the caller of an adapter that `parameter` has no effect, and why."""
    warn(f"{adapter}: {parameter} has no effect: {reason}")

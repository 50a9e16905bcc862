"""The rules of what frames the messages of a request: system prompt and tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aether.errors import shown
from aether.messages.checks import anthropic, openai
from aether.messages.message import Wire
from aether.shapes import Finding

# Gemini takes dots and colons too; Anthropic longer names.
_NAMES = {"anthropic": anthropic.NAME, "openai": openai.NAME, "responses": openai.NAME}


def findings(system: Any, tools: Any, wire: Wire) -> Iterator[Finding]:
    """Yield what a provider refuses in a system prompt and in the definitions of tools."""
    for at, block in enumerate(system if wire == "anthropic" and isinstance(system, list) else []):
        text = block.get("text") if isinstance(block, dict) else None
        if not isinstance(text, str) or not text.strip():
            yield Finding("error", "empty-content", f"system[{at}]", "The text is blank.", "Drop the block.")
    seen: set[str] = set()
    for where, name in _names(tools, wire):
        if wire in _NAMES and not _NAMES[wire].fullmatch(name):
            yield Finding(
                "error",
                "bad-name",
                where,
                f"{shown(name)} is no name of a tool.",
                "Use letters, digits, _ and -.",
            )
        if name in seen:
            yield Finding(
                "error",
                "repeated-tool",
                where,
                f"Another tool is called {shown(name)}.",
                "Drop or rename one.",
            )
        seen.add(name)


def _names(tools: Any, wire: Wire) -> Iterator[tuple[str, str]]:
    """Yield where each tool is defined, and its name; what a provider offers itself may have none."""
    for at, tool in enumerate(tools if isinstance(tools, list) else []):
        if not isinstance(tool, dict):
            continue
        if wire == "gemini":
            listed = tool.get("functionDeclarations", tool.get("function_declarations"))
            found = [
                (f"tools[{at}].functionDeclarations[{number}]", one)
                for number, one in enumerate(listed if isinstance(listed, list) else [])
            ]
        else:
            found = [(f"tools[{at}]", tool.get("function", tool))]
        for where, one in found:
            if isinstance(one, dict) and isinstance(one.get("name"), str):
                yield where, one["name"]

"""The rules of plain messages: a role and something said; any further field is the caller's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aether.errors import shown
from aether.shapes import Finding, JsonObject

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
# Where an agent keeps calls, a message may hold nothing else.
_CALLS = ("tool_calls", "toolCalls", "function_call")


def findings(raws: Sequence[JsonObject]) -> Iterator[Finding]:
    """Yield what makes a message of `raws` unusable; a role of an agent's own is a warning."""
    for at, raw in enumerate(raws):
        role, where = raw.get("role", raw.get("type")), f"messages[{at}]"
        fix = f"Use one of {', '.join(sorted(ROLES))}."
        if not isinstance(role, str):
            yield Finding("error", "bad-role", where, f"{shown(role)} is no role.", fix)
        elif role not in ROLES:
            yield Finding("warning", "bad-role", where, f"{shown(role)} is no common role.", fix)
        if not says(raw):
            content = shown(raw.get("content"))
            yield Finding("error", "empty-content", where, f"Content is {content}.", "Give text.")


def says(raw: JsonObject) -> bool:
    """Tell whether a message has content, or calls in place of it."""
    return isinstance(raw.get("content"), (str, list)) or any(raw.get(key) for key in _CALLS)

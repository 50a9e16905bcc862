"""The rules of plain messages: a role and something said; any further field is the caller's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aether.errors import shown
from aether.shapes import Finding, JsonObject

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
# Where an agent keeps calls, a message may hold nothing else.
_CALLS = ("tool_calls", "toolCalls", "function_call")


def findings(raws: Sequence[JsonObject]) -> Iterator[Finding]:
    """Yield what makes a message of `raws` unusable."""
    for at, raw in enumerate(raws):
        role = raw.get("role")
        if not isinstance(role, str) or role not in ROLES:
            yield Finding(
                "error", "bad-role", f"messages[{at}]", f"{shown(role)} is no role.",
                f"Use one of {', '.join(sorted(ROLES))}.",
            )  # fmt: skip
        if not says(raw):
            yield Finding(
                "error",
                "empty-content",
                f"messages[{at}]",
                f"Content is {shown(raw.get('content'))}.",
                "Give text.",
            )


def says(raw: JsonObject) -> bool:
    """Tell whether a message has content, or calls in place of it."""
    return isinstance(raw.get("content"), (str, list)) or any(raw.get(key) for key in _CALLS)

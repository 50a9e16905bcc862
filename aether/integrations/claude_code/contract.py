"""Contract: what a hook may print for which event, in which shape, and how much of it.

Three events give the model context, as JSON; PreCompact steers the summary with plain text; all others print nothing.
Claude Code puts a longer text into a file and shows the model its beginning only, so ours stay well below that.
"""

from __future__ import annotations

import json
from bisect import bisect_right

CONTEXT = frozenset({"SessionStart", "UserPromptSubmit", "SubagentStart"})
PLAIN = frozenset({"PreCompact"})
# Claude Code's limit, in the units of its language, and what we allow ourselves of it.
LIMIT_CHARS = 10_000
MOST_CHARS = 9_000


def output(event: str, text: str) -> str:
    """Return what is printed so that the model of `event` is told `text`; nothing where it may be told nothing.

    >>> output("SubagentStart", "Use SQLite.")
    '{"hookSpecificOutput": {"hookEventName": "SubagentStart", "additionalContext": "Use SQLite."}}'
    >>> output("PreCompact", "Keep the plan."), output("PostToolUse", "Well done.")
    ('Keep the plan.', '')
    """
    # What is no UTF-8 would end the process while it prints.
    text = text.encode("utf-8", "replace").decode("utf-8")
    if event in CONTEXT:
        return _fitted(text, lambda kept: _context(event, kept))
    return _fitted(text, _plain) if event in PLAIN else ""


def _fitted(text: str, shape: Callable[[str], str]) -> str:
    """Return the shape of as many lines as fit; the last one, which closes what the first opened, is kept."""
    *lines, last = text.splitlines() or [""]

    def first(kept: int) -> str:
        return "\n".join([*lines[:kept], last])

    if units(shape(text)) > MOST_CHARS:
        fitting = bisect_right(range(len(lines)), MOST_CHARS, key=lambda kept: units(shape(first(kept))))
        text = first(fitting - 1) if fitting else ""
    return shape(text) if text.strip() else ""


def _context(event: str, text: str) -> str:
    said = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
    return json.dumps(said, ensure_ascii=False)


def _plain(text: str) -> str:
    # A text that begins with a brace would be read as JSON.
    return f"- {text}" if text.lstrip().startswith("{") else text


def units(text: str) -> int:
    """Return how long `text` is for Claude Code: characters beyond the first 65,536 count twice."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

"""The tool `recall` for the loop of an agent: a model reads again what compactions removed from its conversation.

    tool = recall_tool("anthropic", "user-42")
    client.messages.create(…, tools=[tool.definition])
    answer = tool.run(block.input)  # the content of the tool's result

The definition is the same for every conversation, so that it can stay in a prompt cache.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from aether.api.compact import RECALL
from aether.api.home import Home
from aether.api.removed import RemovedMessage, best_matches, message_lines, removed_from_context
from aether.errors import AetherError, InvalidInput, public, require_one_of, shown
from aether.memory.briefing.sections import one_line
from aether.messages.model import as_arguments
from aether.store.seals import listed_ranges
from aether.types import JsonObject

# A tenth of a small window; a longer answer is read on with `start`.
ANSWER_CHARS = 12_000
# Of an answer to words, and of the list without any argument.
MATCHES = 5
LISTED = 30
LINE_CHARS = 160
DESCRIPTION = (
    "Read again what was removed from this conversation to save room. Each message has a number. Without arguments: the "
    "numbers, with the first words of the user's messages. With query: the best matches, whole. With numbers, such as "
    '"12" or "12-15" (a summary writes n=12 or n=12-15): these messages, word for word. Use it when a summary lacks a detail that you need (exact '
    "text, output, code), instead of running a command again or guessing."
)
_NUMBERS = re.compile(r"(?:n\s*=\s*)?\[?(\d{1,9})\]?(?:\s*(?:-|–|to)\s*\[?(\d{1,9})\]?)?")
_PROPERTIES: JsonObject = {
    "query": {"type": "string", "description": "Words to find in the removed messages."},
    "numbers": {"type": "string", "description": 'One number or a range of removed messages: "12", "12-15".'},
    "start": {"type": "integer", "description": "Character to go on at, if an earlier answer was cut."},
}


class RecallTool(NamedTuple):
    """A tool as a provider takes it, and its handler."""

    definition: JsonObject
    """An entry of the request's `tools`."""
    run: Callable[[str | Mapping[str, Any]], str]
    """From the arguments of a call, as an object or as JSON, to the text of its result. Errors are text for the model."""


@public
def recall_tool(provider: str, conversation_id: str, *, home: Home = None) -> RecallTool:
    """Return the tool by which a model reads removed messages of a conversation.

    `provider` is `anthropic`, `openai` (Chat Completions) or `responses`; the home is that of the compactions.

    Raises:
        InvalidInput: there is no such provider.

    >>> recall_tool("anthropic", "user-42").definition["name"]
    'recall'
    """
    schema = {"type": "object", "properties": _PROPERTIES, "additionalProperties": False}
    function = {"name": RECALL, "description": DESCRIPTION, "parameters": schema}
    definitions: dict[str, JsonObject] = {
        "anthropic": {"name": RECALL, "description": DESCRIPTION, "input_schema": schema},
        "openai": {"type": "function", "function": function},
        "responses": {"type": "function", **function},
    }
    require_one_of(provider, definitions, "a provider with tools", where="recall_tool")
    return RecallTool(definitions[provider], partial(_run, conversation_id, home))


def _run(conversation_id: str, home: Home, arguments: str | Mapping[str, Any]) -> str:
    try:
        given = as_arguments(arguments if isinstance(arguments, str) else dict(arguments))
        removed = removed_from_context(conversation_id, home=home)
        start = given.get("start")
        start = start if isinstance(start, int) else 0
        if given.get("numbers"):
            found = _numbered(removed, str(given["numbers"]))
        elif given.get("query"):
            found = best_matches(removed, str(given["query"]), limit=MATCHES)
        else:
            return _overview(removed)
    except AetherError as reason:
        return f"Error: {reason}"
    if not found:
        return f"No removed message matches. {_overview(removed)}"
    return _piece("\n\n".join("\n".join(message_lines(message)) for message in found), max(0, start))


def _numbered(removed: Iterable[RemovedMessage], asked: str) -> list[RemovedMessage]:
    found = _NUMBERS.fullmatch(asked)
    if not found:
        raise InvalidInput(
            f"numbers is {shown(asked)}.", fix='Give one or a range: "12", "12-15".', where=RECALL
        )
    low, high = int(found[1]), int(found[2] or found[1])
    return [message for message in removed if low <= message.number <= high]


def _overview(removed: list[RemovedMessage]) -> str:
    if not removed:
        return "Nothing was removed from this conversation."
    runs = listed_ranges(one.number for one in removed)
    users = [
        f"[{message.number}] {one_line(text, LINE_CHARS)}"
        for message in removed
        if message.role == "user"
        if (text := " ".join(" ".join(part.text for part in message.parts if part.kind == "text").split()))
    ]
    left = [f"and {len(users) - LISTED} earlier ones"] if len(users) > LISTED else []
    return "\n".join([f"Removed messages: {runs}. Of the user:", *left, *users[-LISTED:]])


def _piece(text: str, start: int) -> str:
    end = start + ANSWER_CHARS
    if end >= len(text):
        return text[start:]
    return f"{text[start:end]}\n(characters {start} to {end} of {len(text)}; go on with start={end})"

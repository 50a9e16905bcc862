"""Gemini contents: messages of parts, as the API has them and Gemini CLI saves a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aether.messages.model import as_arguments, as_object, as_text
from aether.messages.records import Part, Record, asked
from aether.messages.sources.reader import Skip, call, objects, of_values, result
from aether.types import JsonObject

_ROLES = frozenset({"user", "model", "function", "tool"})
_LISTS = ("contents", "history")
_FIELDS = frozenset(
    "text functionCall function_call functionResponse function_response inlineData inline_data fileData".split()
)


def holds(value: Any) -> bool:
    """Return whether `value` is a message of parts, or has a list of them."""
    return any(
        as_text(message.get("role")) in _ROLES and "type" not in part and not _FIELDS.isdisjoint(part)
        for message in _messages(value)
        for part in objects(message.get("parts"))
    )


def _messages(value: Any) -> list[JsonObject]:
    if isinstance(value, dict):
        return next((objects(value[key]) for key in _LISTS if key in value), [value])
    return objects(value)


def read(value: Any, _skip: Skip) -> Iterator[Record]:
    """Yield the records of the messages."""
    for message in _messages(value):
        role = "assistant" if message.get("role") == "model" else "user"
        yield from of_parts(Record("system"), role, objects(message.get("parts")))


def of_parts(head: Record, role: str, parts: list[JsonObject], *, person: bool = True) -> Iterator[Record]:
    """Yield the records of one message: its texts, calls and answers."""
    texts = [
        (index, Part("text", part["text"])) for index, part in enumerate(parts)
        if as_text(part.get("text")).strip() and not part.get("thought")
    ]  # fmt: skip
    if role == "assistant":
        yield from (head._replace(kind="assistant", text=part.text) for _, part in texts)
    else:
        yield from asked(head, texts, person=person)
    for part in parts:
        if wanted := as_object(part.get("functionCall", part.get("function_call"))):
            name = as_text(wanted.get("name"))
            yield call(head, name, as_arguments(wanted.get("args")), wanted.get("id") or name)
        elif answer := as_object(part.get("functionResponse", part.get("function_response"))):
            response, name = as_object(answer.get("response")), as_text(answer.get("name"))
            output = response.get("output", response.get("error", response.get("result")))
            yield result(head, answer.get("id") or name, output, is_error="error" in response, tool=name)


records = of_values(read, holds)

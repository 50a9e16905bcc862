"""AI SDK: the UI messages that a chat application stores, of which each has parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aether.messages.model import as_arguments, as_object, as_text
from aether.messages.records import Record
from aether.messages.sources.reader import Skip, call, first_text, objects, of_values, result, said, time_of
from aether.types import JsonObject

_ROLES = frozenset({"user", "assistant", "system"})
_SILENT = frozenset(
    {"reasoning", "step-start", "file", "source", "source-url", "source-document", "redacted-reasoning"}
)
_ANSWERED = frozenset({"output-available", "output-error", "output-denied", "result"})


def holds(value: Any) -> bool:
    """Return whether `value` is a message, a list of them, or an object with such a list."""
    first = next(iter(messages_of(value)), {})
    parts = objects(first.get("parts"))
    return as_text(first.get("role")) in _ROLES and bool(parts) and isinstance(parts[0].get("type"), str)


def messages_of(value: Any) -> list[JsonObject]:
    """Return the messages that `value` is, or holds in an object."""
    if isinstance(value, dict):
        return objects(value["messages"]) if "messages" in value else [value]
    return objects(value)


def read(value: Any, skip: Skip) -> Iterator[Record]:
    """Yield the records of the messages."""
    session = first_text(
        *(as_object(value).get(key) for key in ("id", "chatId", "sessionId"))
        if "messages" in as_object(value)
        else ()
    )
    for message in messages_of(value):
        name, role = as_text(message.get("id")), as_text(message.get("role"))
        created = message.get("createdAt") or as_object(message.get("metadata")).get("createdAt")
        head = Record("system", session=session, uuid=name, message_id=name, time=time_of(created))
        texts = []
        for part in objects(message.get("parts")):
            kind = as_text(part.get("type"))
            if kind == "text":
                texts.append(part)
            elif kind == "dynamic-tool" or kind.startswith("tool-"):
                yield from said(head, role, texts)
                texts = []
                yield from _tool(head, kind, part)
            elif kind not in _SILENT and not kind.startswith("data-"):
                skip(f"parts of type {kind}")
        yield from said(head, role, texts)


def _tool(head: Record, kind: str, part: JsonObject) -> Iterator[Record]:
    """Yield a call and its result, of version 4 below `toolInvocation`."""
    inner = as_object(part.get("toolInvocation")) or part
    name = as_text(inner.get("toolName")) or kind.removeprefix("tool-")
    arguments = as_arguments(inner.get("input", inner.get("args")))
    yield call(head, name, arguments, inner.get("toolCallId"))
    if (state := as_text(inner.get("state"))) in _ANSWERED:
        output = inner.get("errorText") or inner.get("output", inner.get("result"))
        text = output if isinstance(output, (str, list)) else first_text(*_texts(output)) or str(output)
        yield result(
            head, inner.get("toolCallId"), text, is_error=state not in {"output-available", "result"}, tool=name,
        )  # fmt: skip


def _texts(output: Any) -> list[Any]:
    return [as_object(output).get(key) for key in ("output", "stdout", "text", "content", "error")]


records = of_values(read, holds)

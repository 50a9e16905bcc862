"""LangChain: messages as `messages_to_dict` and `dumps` write them, alone, in lists and in the state of a graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aether.messages.model import as_arguments, as_object, as_text, content_text
from aether.messages.records import Record
from aether.messages.sources.reader import Skip, call, first_text, objects, of_values, result, said
from aether.types import JsonObject

_ROLES = {
    "human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "system": "system", "tool": "result",
    "function": "result", "chat": "chat",
}  # fmt: skip
_SILENT = frozenset({"remove"})
_PERSONS = (None, "", "user", "human")
_LISTS = ("messages", "channel_values", "values", "kwargs", "inputs", "outputs", "input", "output")
# A state holds the messages a few objects deep.
_LEVELS = 4


def holds(value: Any) -> bool:
    """Return whether `value` is a message, or holds a list of them."""
    return bool(_messages(value))


def _message(value: Any) -> JsonObject:
    """Return the fields of a message with its `type`; empty for anything else."""
    entry = as_object(value)
    if entry.get("type") == "constructor" and "lc" in entry:
        path, fields = entry.get("id"), as_object(entry.get("kwargs"))
        name = as_text(path[-1]) if isinstance(path, list) and path else ""
        kind = as_text(fields.get("type")) or name.removesuffix("Chunk").removesuffix("Message").lower()
        return {**fields, "type": kind} if name.endswith(("Message", "MessageChunk")) else {}
    data = as_object(entry.get("data"))
    is_message = as_text(entry.get("type")) in _ROLES.keys() | _SILENT and "content" in data
    return {**data, "type": entry["type"]} if is_message else {}


def _messages(value: Any, levels: int = _LEVELS) -> list[JsonObject]:
    """Return the messages in `value`: itself, its entries, or those below the keys that hold them."""
    if fields := _message(value):
        return [fields]
    if isinstance(value, list):
        nested = value[0] if len(value) == 1 and isinstance(value[0], list) else value
        return [fields for entry in nested if (fields := _message(entry))]
    for key in _LISTS if isinstance(value, dict) and levels else ():
        if listed := _messages(value.get(key), levels - 1):
            return listed
    return []


def read(value: Any, skip: Skip) -> Iterator[Record]:
    """Yield the records of the messages."""
    session = first_text(*(as_object(value).get(key) for key in ("thread_id", "session_id", "trace_id")))
    for message in _messages(value):
        kind, name = as_text(message.get("type")), as_text(message.get("id"))
        role = _ROLES.get(kind, "")
        role = (
            {"human": "user", "user": "user"}.get(as_text(message.get("role")), "assistant")
            if role == "chat"
            else role
        )
        head = Record("system", session=session, uuid=name, message_id=name)
        if role == "result":
            failed = message.get("status") == "error"
            yield result(
                head, message.get("tool_call_id"), message.get("content"), is_error=failed, tool=message.get("name"),
            )  # fmt: skip
        elif as_object(message.get("additional_kwargs")).get("lc_source") == "summarization":
            yield head._replace(kind="summary", text=content_text(message.get("content")))
        elif role == "user" and message.get("name") not in _PERSONS:
            # In a graph of several agents, what one hands to the next is a human message with its name.
            yield from said(head, "system", message.get("content"))
        elif role:
            yield from _spoken(head, role, message)
        elif kind not in _SILENT:
            skip(f"messages of type {kind}")


def _spoken(head: Record, role: str, message: JsonObject) -> Iterator[Record]:
    """Yield what a message says, and its calls: those of a provider's content are in its lists of calls, too."""
    calls = objects(message.get("tool_calls")) + objects(message.get("invalid_tool_calls"))
    listed = {as_text(entry.get("id")) for entry in calls}
    spoken = said(head, role, message.get("content"))
    yield from (record for record in spoken if record.kind != "call" or record.call_id not in listed)
    for entry in calls:
        yield call(head, entry.get("name"), as_arguments(entry.get("args")), entry.get("id"))
    if not calls:
        for entry in objects(as_object(message.get("additional_kwargs")).get("tool_calls")):
            function = as_object(entry.get("function"))
            yield call(head, function.get("name"), as_arguments(function.get("arguments")), entry.get("id"))


records = of_values(read, holds)

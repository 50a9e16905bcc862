"""Claude.ai: `conversations.json` of an export, and `memories.json` beside it as notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aether.messages.model import as_arguments, as_object, as_text
from aether.messages.records import Part, Record, asked
from aether.messages.sources.reader import Skip, branch, call, first_text, objects, of_values, result, time_of
from aether.types import JsonObject

_MEMORY = "conversations_memory"


def holds(value: Any) -> bool:
    """Return whether `value` is a conversation or memories, or a list that starts with them."""
    first = as_object(value[0] if isinstance(value, list) and value else value)
    return isinstance(first.get("chat_messages"), list) or isinstance(first.get(_MEMORY), str)


def read(value: Any, skip: Skip) -> Iterator[Record]:
    """Yield the records of each conversation, and a note for each memory."""
    for entry in value if isinstance(value, list) else [value]:
        if not holds(entry):
            skip("no conversation")
            continue
        head = Record("text", session=first_text(entry.get("uuid")), time=time_of(entry.get("created_at")))
        memories = [entry.get(_MEMORY), *as_object(entry.get("project_memories")).values()]
        yield from (head._replace(text=text) for text in filter(None, map(as_text, memories)))
        for message in _branch(objects(entry.get("chat_messages"))):
            yield from _message(head, message, skip)


def _branch(messages: list[JsonObject]) -> list[JsonObject]:
    """Return the messages above the newest one; all of them in an export without their parents."""
    by_id = {as_text(message.get("uuid")): message for message in messages}
    parents = {name: as_text(message.get("parent_message_uuid")) for name, message in by_id.items()}
    if parents.keys().isdisjoint(parents.values()):
        return messages
    last = max(by_id, key=lambda name: as_text(by_id[name].get("created_at")))
    return [by_id[name] for name in branch(parents, last)]


def _message(head: Record, message: JsonObject, skip: Skip) -> Iterator[Record]:
    name = as_text(message.get("uuid"))
    head = head._replace(time=time_of(message.get("created_at")) or head.time, uuid=name, message_id=name)
    blocks = objects(message.get("content")) or [{"type": "text", "text": message.get("text")}]
    texts = [as_text(block.get("text")) for block in blocks if block.get("type") == "text"]
    if message.get("sender") == "human":
        yield from asked(
            head, [(index, Part("text", text)) for index, text in enumerate(texts) if text.strip()]
        )
        return
    call_id = ""
    for index, block in enumerate(blocks):
        match block.get("type"):
            case "text" if as_text(block.get("text")).strip():
                yield head._replace(kind="assistant", text=block["text"])
            case "tool_use":
                call_id = as_text(block.get("id")) or f"{name}/{index}"
                yield call(head, block.get("name"), as_arguments(block.get("input")), call_id)
            case "tool_result":
                answered, failed = as_text(block.get("tool_use_id")) or call_id, bool(block.get("is_error"))
                yield result(head, answered, block.get("content"), is_error=failed, tool=block.get("name"))
            case "text" | "thinking" | "token_budget" | "flag":
                pass
            case kind:
                skip(f"blocks of type {kind}")


records = of_values(read, holds)

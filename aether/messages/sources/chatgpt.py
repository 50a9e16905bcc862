"""ChatGPT: `conversations.json` of an export, whose messages are a tree; the branch that the person saw last is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aether.messages.model import IMAGE, as_object, as_text
from aether.messages.records import Part, Record, asked
from aether.messages.sources.reader import Skip, branch, call, first_text, of_values, result, time_of
from aether.types import JsonObject

# What the page shows of the model's thinking, what a person set once for all chats, and what the service keeps.
_SILENT = frozenset(
    {"thoughts", "reasoning_recap", "user_editable_context", "model_editable_context", "app_pairing_content"}
)
_TO_ALL = frozenset({"", "all"})


def holds(value: Any) -> bool:
    """Return whether `value` is a conversation, or a list that starts with one."""
    first = value[0] if isinstance(value, list) and value else value
    nodes = as_object(as_object(first).get("mapping")).values()
    return any(isinstance(node, dict) and {"message", "parent"} <= node.keys() for node in nodes)


def read(value: Any, skip: Skip) -> Iterator[Record]:
    """Yield the records of each conversation."""
    for entry in value if isinstance(value, list) else [value]:
        if not holds(entry):
            skip("no conversation")
            continue
        nodes = {name: node for name, node in entry["mapping"].items() if isinstance(node, dict)}
        session = first_text(entry.get("conversation_id"), entry.get("id"), *nodes)
        head = Record("system", session=session, time=time_of(entry.get("create_time")))
        call_id = ""
        for name in branch(
            {name: as_text(node.get("parent")) for name, node in nodes.items()}, _last(entry, nodes)
        ):
            for record in _message(head, as_object(nodes[name].get("message")), call_id, skip):
                call_id = record.call_id if record.kind == "call" else call_id
                yield record


def _last(entry: JsonObject, nodes: dict[str, JsonObject]) -> str:
    """Return the id of the message that the person saw last; without a mark the last one without an answer."""
    current = as_text(entry.get("current_node"))
    if current in nodes:
        return current
    return next((name for name in reversed(nodes) if not nodes[name].get("children")), "")


def _message(head: Record, message: JsonObject, call_id: str, skip: Skip) -> Iterator[Record]:
    metadata, content = as_object(message.get("metadata")), as_object(message.get("content"))
    kind, role = as_text(content.get("content_type")), as_text(as_object(message.get("author")).get("role"))
    texts = [*filter(None, _texts(content))]
    if metadata.get("is_visually_hidden_from_conversation") or kind in _SILENT or not texts:
        return
    name = as_text(message.get("id"))
    head = head._replace(time=time_of(message.get("create_time")) or head.time, uuid=name, message_id=name)
    text, recipient = "\n".join(texts), as_text(message.get("recipient"))
    if role == "user":
        yield from asked(head, [(index, Part("text", text)) for index, text in enumerate(texts)])
    elif role == "assistant" and recipient in _TO_ALL and kind != "code":
        yield head._replace(kind="assistant", text=text)
    elif role == "assistant":
        key = "code" if kind == "code" else "input"
        yield call(head, recipient if recipient not in _TO_ALL else "python", {key: text}, name)
    elif role == "tool":
        status = as_object(metadata.get("aggregate_result")).get("status")
        yield result(
            head, call_id, text, is_error=status == "failed_with_in_kernel_exception" or kind == "system_error",
        )  # fmt: skip
    elif role != "system":
        skip(f"messages of {role or 'nobody'}")


def _texts(content: JsonObject) -> Iterator[str]:
    """Yield the texts of a content; of a picture its mark."""
    parts = content.get("parts")
    for part in parts if isinstance(parts, list) else [content.get("text", content.get("result"))]:
        shown = as_object(part)
        if "image" in as_text(shown.get("content_type")):
            yield IMAGE
        else:
            yield as_text(part) or as_text(shown.get("text"))


records = of_values(read, holds)

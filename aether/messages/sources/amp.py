"""Amp: a thread with its messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aether.messages.model import as_arguments, as_object, as_text
from aether.messages.records import Record
from aether.messages.sources.reader import Skip, call, first_text, objects, of_values, result, said, time_of
from aether.types import JsonObject

_SILENT = frozenset({"thinking", "redacted_thinking", "image", "file"})
_FAILED = frozenset({"error", "cancelled", "rejected-by-user"})


def holds(value: Any) -> bool:
    """Return whether `value` is a thread."""
    thread = as_object(value)
    return as_text(thread.get("id")).startswith("T-") and isinstance(thread.get("messages"), list)


def read(value: Any, skip: Skip) -> Iterator[Record]:
    """Yield the records of a thread."""
    trees = objects(as_object(as_object(value.get("env")).get("initial")).get("trees"))
    directory = first_text(*(tree.get("uri") for tree in trees)).removeprefix("file://")
    time = time_of(value.get("created"))
    for message in objects(value["messages"]):
        time = time_of(as_object(message.get("meta")).get("sentAt")) or time
        head = Record(
            "system", session=value["id"], directory=directory, time=time, message_id=str(message.get("messageId", "")),
        )  # fmt: skip
        yield from _content(head, message, skip)


def _content(head: Record, message: JsonObject, skip: Skip) -> Iterator[Record]:
    texts: list[JsonObject] = []
    for part in objects(message.get("content")):
        match part.get("type"):
            case "text":
                texts.append(part)
            case "tool_use":
                yield from said(head, as_text(message.get("role")), texts)
                texts = []
                yield call(head, part.get("name"), as_arguments(part.get("input")), part.get("id"))
            case "tool_result":
                run = as_object(part.get("run"))
                output = run.get("result", run.get("error", part.get("content")))
                inner = as_object(output)
                shown = first_text(inner.get("output"), inner.get("message"), inner.get("content"), output)
                failed = as_text(run.get("status")) in _FAILED or inner.get("exitCode") not in (0, None)
                yield result(
                    head, part.get("toolUseID", part.get("tool_use_id")), shown or output, is_error=failed
                )
            case kind if as_text(kind) not in _SILENT:
                skip(f"blocks of type {kind}")
    yield from said(head, as_text(message.get("role")), texts)


records = of_values(read, holds)

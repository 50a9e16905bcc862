"""Continue: a session with its history; what is attached to a message is beside it, and no word of a person."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aether.messages.model import as_arguments, as_object, as_text
from aether.messages.records import Record
from aether.messages.sources.reader import Skip, call, first_text, objects, of_values, result, said, time_of
from aether.types import JsonObject

_FAILED = frozenset({"errored", "canceled"})


def holds(value: Any) -> bool:
    """Return whether `value` is a session."""
    history = objects(as_object(value).get("history"))
    return bool(history) and all("role" in as_object(entry.get("message")) for entry in history)


def read(value: Any, skip: Skip) -> Iterator[Record]:
    """Yield the records of a session."""
    directory = as_text(value.get("workspaceDirectory")).removeprefix("file://")
    head = Record(
        "system",
        session=as_text(value.get("sessionId")),
        directory=directory,
        time=time_of(value.get("dateCreated")),
    )
    for entry in objects(value["history"]):
        message = entry["message"]
        role = as_text(message.get("role"))
        here = head._replace(message_id=first_text(message.get("id"), entry.get("id")))
        if role in ("tool", "thinking"):  # the answer is in the state of the call, too
            continue
        if role not in ("user", "assistant", "system"):
            skip(f"messages of {role or 'nobody'}")
            continue
        yield from said(here, role, message.get("content"))
        yield from _calls(here, entry, message)


def _calls(head: Record, entry: JsonObject, message: JsonObject) -> Iterator[Record]:
    states = objects(entry.get("toolCallStates")) or objects([entry.get("toolCallState")])
    by_id = {as_text(state.get("toolCallId")): state for state in states}
    for item in objects(message.get("toolCalls")):
        function, call_id = as_object(item.get("function")), as_text(item.get("id"))
        yield call(head, function.get("name"), as_arguments(function.get("arguments")), call_id)
        state = by_id.get(call_id, {})
        if output := objects(state.get("output")):
            texts = [as_text(part.get("content")) for part in output]
            yield result(
                head, call_id, texts, is_error=as_text(state.get("status")) in _FAILED, tool=function.get("name"),
            )  # fmt: skip


records = of_values(read, holds)

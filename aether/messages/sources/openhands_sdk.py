"""OpenHands SDK: the events of a conversation, in one list, one on a line, or one in each file of a directory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aether.messages.model import as_arguments, as_object, as_text
from aether.messages.records import Record
from aether.messages.sources.reader import Skip, call, first_text, objects, of_values, result, said, time_of
from aether.types import JsonObject

_EVENTS = frozenset(
    {
        "MessageEvent",
        "ActionEvent",
        "ObservationEvent",
        "AgentErrorEvent",
        "UserRejectObservation",
        "SystemPromptEvent",
        "Condensation",
    }
)
_SILENT = frozenset(
    {
        "SystemPromptEvent",
        "ConversationStateUpdateEvent",
        "CondensationRequest",
        "CondensationSummaryEvent",
        "PauseEvent",
        "TokenEvent",
        "StreamingDeltaEvent",
    }
)
# Actions that only say something to the person, with the argument that says it.
_SPEAKING = {"FinishAction": "message", "ThinkAction": "thought"}


def holds(value: Any) -> bool:
    """Return whether `value` is an event, or has a list of them."""
    return any(as_text(event.get("kind")) in _EVENTS and "source" in event for event in _events(value))


def _events(value: Any) -> list[JsonObject]:
    if isinstance(value, dict):
        return next((objects(value[key]) for key in ("events", "items", "results") if key in value), [value])
    return objects(value)


def read(value: Any, skip: Skip) -> Iterator[Record]:
    """Yield the records of the events."""
    session = first_text(
        *(as_object(value).get(key) for key in ("conversation_id", "id"))
        if "kind" not in as_object(value)
        else ()
    )
    for event in _events(value):
        head = Record(
            "system", session=session, uuid=as_text(event.get("id")), time=time_of(event.get("timestamp"))
        )
        kind, call_id = as_text(event.get("kind")), event.get("tool_call_id")
        if kind == "MessageEvent":
            message = as_object(event.get("llm_message"))
            role = "assistant" if event.get("source") == "agent" else as_text(message.get("role"))
            yield from said(
                head, role if event.get("source") != "environment" else "system", message.get("content")
            )
        elif kind == "ActionEvent":
            yield from _action(head, event)
        elif kind in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
            seen = as_object(event.get("observation"))
            output = (
                seen.get("content")
                or seen.get("output")
                or first_text(event.get("error"), event.get("rejection_reason"))
            )
            failed = (
                kind != "ObservationEvent"
                or bool(seen.get("is_error"))
                or seen.get("exit_code") not in (0, None, -1)
            )
            if as_text(seen.get("kind")).removesuffix("Observation") not in ("Finish", "Think"):
                yield result(head, call_id, output, is_error=failed, tool=event.get("tool_name"))
        elif kind == "Condensation":
            yield head._replace(kind="boundary")
            if summary := as_text(event.get("summary")):
                yield head._replace(kind="summary", text=summary)
        elif kind not in _SILENT:
            skip(f"events of kind {kind}")


def _action(head: Record, event: JsonObject) -> Iterator[Record]:
    yield from said(head, "assistant", event.get("thought"))
    action = as_object(event.get("action"))
    kind = as_text(action.get("kind"))
    if kind in _SPEAKING:
        yield from said(head, "assistant", as_text(action.get(_SPEAKING[kind])))
        return
    arguments = {key: value for key, value in action.items() if key != "kind"}
    arguments = arguments or as_arguments(as_object(event.get("tool_call")).get("arguments"))
    yield call(head, event.get("tool_name"), arguments, event.get("tool_call_id"))


records = of_values(read, holds)

"""OpenHands events: actions and the observations that answer them, as one list or under `history`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

from aether.messages.model import as_object, as_text, content_text
from aether.messages.records import Part, RawConversation, Record, as_messages, asked
from aether.messages.speakers import TYPED
from aether.types import JsonObject

_TEXT_ACTIONS = {"message", "finish", "think"}


def records(values: Iterable[tuple[int, Any]]) -> Iterator[Record]:
    """Yield the records of every list of events."""
    for number, value in values:
        events = events_of(value)
        first = events[0] if events else {}
        opening = content_text(first.get("args")) + as_text(first.get("message"))
        instance = value.get("instance_id") if isinstance(value, dict) else None
        session = as_text(instance) or sha256(opening.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        part = 0
        for event in events:
            time = as_text(event.get("timestamp"))
            head = Record("system", time=time, line=number, session=session)
            for record in _event(head, event):
                yield record._replace(part=part)
                part += 1


def conversations(values: Iterable[tuple[int, Any]]) -> list[RawConversation]:
    """Return the messages of each list of events."""
    lists = (entry for entry in values if events_of(entry[1]))
    return [RawConversation(as_messages(records([entry])), "openai") for entry in lists]


def events_of(value: Any) -> list[JsonObject]:
    """Return the events inside a JSON value."""
    listed = value.get("history") if isinstance(value, dict) else value
    if not isinstance(listed, list):
        return []
    flattened = (event for entry in listed for event in (entry if isinstance(entry, list) else [entry]))
    return [
        event
        for event in flattened
        if isinstance(event, dict) and {"action", "observation"} & set(event) and "source" in event
    ]


def _event(head: Record, event: JsonObject) -> Iterator[Record]:
    action, args = event.get("action"), as_object(event.get("args"))
    call_id = str(event.get("id", ""))
    if not isinstance(action, str):
        yield from _observation(head, event)
        return
    if action in {"system", "recall", "change_agent_state"}:
        return
    thought = as_text(args.get("thought"))
    if action in _TEXT_ACTIONS:
        content = as_text(args.get("content")) or as_text(args.get("final_thought"))
        if text := content or thought or as_text(event.get("message")):
            by_user = event.get("source") == "user"
            yield from (
                asked(head, [(0, Part("text", text))], TYPED["chat"])
                if by_user
                else [head._replace(kind="assistant", text=text)]
            )
        return
    if thought:
        yield head._replace(kind="assistant", text=thought)
    yield head._replace(kind="call", tool=action, arguments=args, call_id=call_id)


def _observation(head: Record, event: JsonObject) -> Iterator[Record]:
    observation = as_text(event.get("observation"))
    if observation in {"null", "agent_state_changed", "recall", "think"}:
        return
    extras = as_object(event.get("extras"))
    code = as_object(extras.get("metadata")).get("exit_code", extras.get("exit_code", 0))
    yield head._replace(
        kind="result",
        text=content_text(event.get("content")) or as_text(event.get("message")),
        tool=observation,
        call_id=str(event.get("cause", "")),
        # -1 means that the command was still running.
        is_error=observation == "error" or (isinstance(code, int) and code > 0),
    )

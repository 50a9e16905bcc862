"""Copilot CLI: `events.jsonl` of a session, one event per line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from aether.messages.model import as_arguments, as_object, as_text
from aether.messages.records import OnBad, Part, Record, asked, ignore_bad_line
from aether.messages.sources.reader import call, first_text, report, result, time_of
from aether.types import JsonObject

# Types whose start is that of an event; of these no more is read than below.
_GROUPS = (
    "session.", "user.", "assistant.", "tool.", "subagent.", "hook.", "skill.", "system.", "abort", "permission.",
)  # fmt: skip
_PERSON = frozenset({"", "user", "cli"})


def holds(value: Any) -> bool:
    """Return whether `value` is an event."""
    kind = as_text(value.get("type")) if isinstance(value, dict) else ""
    return kind.startswith(_GROUPS) and isinstance(value.get("data"), dict)


def records(
    values: Iterable[tuple[int, Any]], *, on_bad: OnBad = ignore_bad_line, **_: Any
) -> Iterator[Record]:
    """Yield the records of the events; what an agent says that was started by another names that agent."""
    session = directory = ""
    number, skipped, calls = 1, Counter[str](), set[str]()
    for number, event in values:
        if not holds(event):
            skipped["another format"] += 1
            continue
        data, kind = event["data"], event["type"]
        if kind in ("session.start", "session.resume"):
            session = as_text(data.get("sessionId")) or session
            directory = as_text(as_object(data.get("context")).get("cwd")) or directory
        agent = as_text(data.get("parentToolCallId"))
        head = Record(
            "system", session=session, directory=directory, line=number, uuid=as_text(event.get("id")),
            time=time_of(event.get("timestamp")), agent=agent, caste="agent" if agent else "",
        )  # fmt: skip
        for part, record in enumerate(_event(head, kind, data, calls)):
            yield record._replace(part=part)
        if not kind.startswith(_GROUPS):
            skipped[f"events of type {kind}"] += 1
    report(skipped, number, on_bad)


def _event(head: Record, kind: str, data: JsonObject, calls: set[str]) -> Iterator[Record]:
    text, call_id = as_text(data.get("content")), as_text(data.get("toolCallId"))
    match kind:
        case "user.message" if text.strip():
            is_person = as_text(data.get("source")) in _PERSON and not head.agent
            yield from asked(head, [(0, Part("text", text))], person=is_person)
        case "assistant.message":
            if text.strip():
                yield head._replace(kind="assistant", text=text, message_id=as_text(data.get("messageId")))
            requests = data.get("toolRequests")
            for request in map(as_object, requests if isinstance(requests, list) else ()):
                calls.add(as_text(request.get("toolCallId")))
                yield call(
                    head, request.get("name"), as_arguments(request.get("arguments")), request.get("toolCallId"),
                )  # fmt: skip
        case "tool.execution_start" if call_id not in calls:
            yield call(head, data.get("toolName"), as_arguments(data.get("arguments")), call_id)
        case "tool.execution_complete":
            shown, failure = data.get("result"), data.get("error")
            output = first_text(
                as_object(shown).get("content"), as_object(failure).get("message"), shown, failure
            )
            yield result(
                head, call_id, output, is_error=data.get("success") is False, tool=data.get("toolName")
            )
        case "session.compaction_complete":
            yield head._replace(kind="boundary")
            if summary := as_text(data.get("summaryContent")):
                yield head._replace(kind="summary", text=summary)

"""OpenHands SDK: the events of a conversation, in one list, one on a line, or one in each file of a directory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from aether.messages.model import as_arguments, as_object, as_text
from aether.messages.records import OnBad, Record, ignore_bad_line
from aether.messages.sources.reader import branch, call, first_text, objects, report, result, said, time_of
from aether.types import JsonObject

_EVENTS = frozenset(
    "MessageEvent ActionEvent ObservationEvent AgentErrorEvent UserRejectObservation SystemPromptEvent Condensation".split()
)
_SILENT = frozenset(
    "SystemPromptEvent ConversationStateUpdateEvent CondensationRequest CondensationSummaryEvent PauseEvent TokenEvent "
    "StreamingDeltaEvent".split()
)
_ANSWERS = ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation")
_FIELDS = frozenset({"source", "llm_message", "action", "observation"})
# Where an observation has what the tool has printed.
_SHOWN = ("content", "output", "text", "new_content")
# More records than an event gives.
_PARTS = 100
# Actions that only say something to the person, with the argument that says it.
_SPEAKING = {"FinishAction": "message", "ThinkAction": "thought"}


def holds(value: Any) -> bool:
    """Return whether `value` is an event, or has a list of them."""
    return any(
        as_text(event.get("kind")) in _EVENTS and not _FIELDS.isdisjoint(event) for event in _events(value)
    )


def _events(value: Any) -> list[JsonObject]:
    if isinstance(value, dict):
        return next((objects(value[key]) for key in ("events", "items", "results") if key in value), [value])
    return objects(value)


def records(
    values: Iterable[tuple[int, Any]], *, on_bad: OnBad = ignore_bad_line, **_: Any
) -> Iterator[Record]:
    """Yield the records of the events, of the active branch if they name the event before."""
    listed = [(number, value, event) for number, value in values for event in _events(value)]
    parents = {
        as_text(event.get("id")): as_text(event["parent_id"])
        for _, _, event in listed
        if "parent_id" in event
    }
    active = branch(parents, next(reversed(parents), ""))
    skipped: Counter[str] = Counter()
    for part, (number, value, event) in enumerate(listed):
        name = as_text(event.get("id"))
        if name in parents and name not in active:
            continue
        about = value if isinstance(value, dict) and "kind" not in value else {}
        session = first_text(about.get("conversation_id"), about.get("id"))
        head = Record("system", session=session, uuid=name, line=number, time=time_of(event.get("timestamp")))
        for nth, record in enumerate(_event(head, event, skipped)):
            yield record._replace(part=part * _PARTS + nth)
    report(skipped, listed[-1][0] if listed else 1, on_bad)


def _event(head: Record, event: JsonObject, skipped: Counter[str]) -> Iterator[Record]:
    kind, source = as_text(event.get("kind")), event.get("source")
    if kind == "MessageEvent":
        message = as_object(event.get("llm_message"))
        role = {"agent": "assistant", "user": "user"}.get(as_text(source), "system")
        yield from said(head, role, message.get("content"))
    elif kind == "ActionEvent":
        yield from _action(head, event)
    elif kind in _ANSWERS:
        seen = as_object(event.get("observation"))
        if as_text(seen.get("kind")).removesuffix("Observation") not in ("Finish", "Think"):
            shown = next((seen[key] for key in _SHOWN if seen.get(key)), None)
            output = shown or first_text(event.get("error"), event.get("rejection_reason"))
            code = seen.get("exit_code", as_object(seen.get("metadata")).get("exit_code"))
            # -1 means that the command was still running.
            failed = kind != "ObservationEvent" or bool(seen.get("is_error")) or code not in (0, None, -1)
            yield result(
                head, event.get("tool_call_id"), output, is_error=failed, tool=event.get("tool_name")
            )
    elif kind == "Condensation":
        yield head._replace(kind="boundary")
        if summary := as_text(event.get("summary")):
            yield head._replace(kind="summary", text=summary)
    elif kind not in _SILENT:
        skipped[f"events of kind {kind or 'nothing'}"] += 1


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

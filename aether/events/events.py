"""Events: one thing that happened, as a value; its builders, and the JSON record in which every exporter sends it.

The names are those that other programs watch for: `compact.*` for compaction, `window.*` for the context manager, `context.*` for contexts,
`memory.*` for the colony. Builders take plain values and read no clock. Shares (`usage_pct`, `compression_ratio`,
`reduction_pct`) are 0.85 for 85 %. Texts of a conversation are in the payload only, so that an exporter can leave them
out. A record holds nothing but JSON without nulls, long strings cut; ids of traces and spans follow from the event
alone, so the same event is the same span in every tracer. `exporters` redacts an event before it leaves.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Literal, NamedTuple, Protocol

from aether.types import JsonObject


class Event(NamedTuple):
    """One thing that happened."""

    name: str
    at: str
    """UTC, as `clock.stamp` writes it."""
    session_id: str
    """The conversation, or the compression, that it is about."""
    properties: JsonObject
    payload: JsonObject | None = None
    """Large or private values, such as the text of a summary."""
    status: Literal["ok", "error"] = "ok"


class Exporter(Protocol):
    """A destination of events. No method raises, or waits for longer than its timeout."""

    def emit(self, event: Event) -> None:
        """Accept one event; it may be sent later."""
        ...

    def flush(self) -> None:
        """Send the waiting events."""
        ...

    def close(self) -> None:
        """Send the waiting events and release everything."""
        ...


TOKEN_ESTIMATE = "compact.token_estimate"  # noqa: S105 - an event, not a password
TRIGGER_DECISION = "compact.trigger_decision"
SUMMARY_CREATED = "compact.summary_created"
PRUNED_MESSAGES = "compact.pruned_messages"
ERROR = "compact.error"
ARCHIVAL = "compact.archival"
REDACTION_DISABLED = "compact.redaction_disabled"
MESSAGE_ADDED = "window.message_added"
COMPRESSED = "window.compressed"
BUDGET = "window.budget"
CONTEXT = "context."
MEMORY = "memory."
# The fields of an object in the colony's events that identify it without its text.
_SUMMARY_FIELDS = ("id", "type", "phase", "status")
# Fields of a colony's record that are no properties.
_RECORD_FIELDS = frozenset({"event", "at", "revision", "nth"})


class Moment(NamedTuple):
    """When and where something happened: the properties of every event."""

    at: str
    """UTC, as `clock.stamp` writes it."""
    session_id: str
    model: str = ""
    t_est: int = 0
    """Tokens of the conversation as counted at the preflight."""
    max_tokens: int = 0
    """Tokens of the model's window."""
    preflight: str = ""
    """Id of the preflight: in a trace its estimate is the parent of its other events."""


def token_estimate(moment: Moment, breakdown: Mapping[str, int]) -> Event:
    """Return the event that a conversation was counted; `breakdown` has its tokens by part.

    >>> at = Moment("2026-03-01T10:15:00.000000Z", "s1", "m", 108_800, 128_000)
    >>> token_estimate(at, {"system": 800, "messages": 108_000}).properties["usage_pct"]
    0.85
    """
    usage = _share(moment.t_est, moment.max_tokens)
    return _event(
        moment, TOKEN_ESTIMATE, max_tokens=moment.max_tokens, usage_pct=usage, breakdown=dict(breakdown)
    )


def trigger_decision(
    moment: Moment, *, triggered: bool, reason: str, policy: Mapping[str, Any],
    kept: Mapping[str, int] | None = None, pruned_count: int | None = None, note: str = "",
) -> Event:  # fmt: skip
    """Return the event that it was decided whether to compact; `note` is that of a manual compaction."""
    optional = {
        "kept": None if kept is None else dict(kept),
        "pruned_count": pruned_count,
        "note": note or None,
    }
    details = {name: value for name, value in optional.items() if value is not None}
    return _event(
        moment, TRIGGER_DECISION, triggered=triggered, reason=reason, policy=dict(policy), **details
    )  # fmt: skip


def summary_created(
    moment: Moment, *, strategy: str, input_messages: int, input_tokens: int, summary_tokens: int,
    summary: str,
) -> Event:  # fmt: skip
    """Return the event that `summary` took the place of messages of `input_tokens` tokens."""
    event = _event(
        moment, SUMMARY_CREATED, strategy=strategy, input_messages=input_messages, summary_tokens=summary_tokens,
        compression_ratio=_share(summary_tokens, input_tokens),
    )  # fmt: skip
    return event._replace(payload={"summary": summary})


def pruned_messages(
    moment: Moment, *, pruned_count: int, kept: Mapping[str, int], tokens_before: int, tokens_after: int
) -> Event:
    """Return the event that messages left the context."""
    return _event(
        moment, PRUNED_MESSAGES, pruned_count=pruned_count, kept=dict(kept), tokens_before=tokens_before,
        tokens_after=tokens_after, reduction_pct=_share(tokens_before - tokens_after, tokens_before),
    )  # fmt: skip


def error(moment: Moment, *, error_type: str, message: str, fallback: str) -> Event:
    """Return the event that a step failed; `fallback` names the step in its place, or is `none`."""
    event = _event(moment, ERROR, error_type=error_type, message=message, fallback=fallback)
    return event._replace(status="error")


def archival(moment: Moment, *, step: int, storage_adapter: str, place: str) -> Event:
    """Return the event that compaction `step` was archived at `place`, a path or an S3 address.

    >>> archival(Moment("2026-03-01T10:15:00.000000Z", "s1"), step=1, storage_adapter="s3", place="s3://b/k").properties["s3_key"]
    's3://b/k'
    """
    name = "s3_key" if place.startswith("s3://") else "file_path"
    return _event(
        moment, ARCHIVAL, session_id=moment.session_id, step=step, storage_adapter=storage_adapter, **{name: place}
    )  # fmt: skip


def redaction_disabled(moment: Moment, receiver: str) -> Event:
    """Return the warning that `receiver`, an exporter or a storage, gets texts without redaction."""
    return _event(
        moment, REDACTION_DISABLED, severity="high",
        message=f"Redaction is off: secrets in the conversation reach {receiver}.",
    )  # fmt: skip


def message_added(moment: Moment, *, message_id: str, role: str, tokens: int) -> Event:
    """Return the event that the context manager took a message."""
    return _event(moment, MESSAGE_ADDED, message_id=message_id, role=role, tokens=tokens)


def compressed(
    moment: Moment, *, tokens_before: int, tokens_after: int, messages_before: int, messages_after: int
) -> Event:
    """Return the event that the context manager compressed a conversation."""
    return _event(
        moment, COMPRESSED, tokens_before=tokens_before, tokens_after=tokens_after,
        messages_before=messages_before, messages_after=messages_after,
        reduction_pct=_share(tokens_before - tokens_after, tokens_before),
    )  # fmt: skip


def budget(moment: Moment, *, should_compress: bool) -> Event:
    """Return the event that the fill of a window changed."""
    usage = _share(moment.t_est, moment.max_tokens)
    return _event(moment, BUDGET, usage_pct=usage, should_compress=should_compress)


def context_event(
    moment: Moment, name: str, *, status: Literal["ok", "error"] = "ok", **properties: Any
) -> Event:
    """Return an event of a context; `name` is one of the table in docs/observability.md, without `context.`.

    >>> context_event(Moment("2026-03-01T10:15:00Z", "s1"), "tier-changed", tier="basic").name
    'context.tier-changed'
    """
    return _event(moment, CONTEXT + name, **properties)._replace(status=status)


def colony_event(record: JsonObject, session_id: str) -> Event:
    """Return the event of a record of `data/events.jsonl`; objects in it are the payload.

    >>> colony_event({"event": "phase_completed", "at": "2026-03-01T10:15:00Z", "phase": 2}, "colony").name
    'memory.phase_completed'
    """
    properties: JsonObject = {}
    payload: JsonObject = {}
    for name, value in record.items():
        if isinstance(value, dict):
            properties |= {f"{name}_{word}": value[word] for word in _SUMMARY_FIELDS if word in value}
            payload[name] = value
        elif name not in _RECORD_FIELDS:
            properties[name] = value
    name = MEMORY + str(record["event"]).removeprefix(MEMORY)
    return Event(name, str(record["at"]), session_id, properties, payload or None)


def _event(moment: Moment, name: str, **properties: Any) -> Event:
    common: JsonObject = {"t_est": moment.t_est, "max": moment.max_tokens}
    common |= {word: value for word in ("model", "preflight") if (value := getattr(moment, word))}
    return Event(name, moment.at, moment.session_id, {**common, **properties})


def _share(part: int, total: int) -> float:
    # Four places separate 0.85 from 0.8499; a window of unknown size is never full.
    return round(part / total, 4) if total > 0 else 0.0


# The viewer cuts longer strings itself, and a post that holds one is needlessly large.
STRING_CHARS = 102_400
CUT = "... [truncated]"
# Deeper than any event; values below become text.
MAX_DEPTH = 32


def record(event: Event, *, string_chars: int = STRING_CHARS) -> JsonObject:
    """Return `event` as JSON: `ts`, `session_id`, `event`, `status`, its properties, and `payload` if it has one.

    >>> record(Event("window.budget", "2026-03-01T10:15:00.000000Z", "s1", {"max": 8, "note": None}))
    {'ts': '2026-03-01T10:15:00.000000Z', 'session_id': 's1', 'event': 'window.budget', 'status': 'ok', 'max': 8}
    """
    fields = {
        "ts": event.at, "session_id": event.session_id, "event": event.name, "status": event.status,
        **{name: value for name, value in event.properties.items() if name not in {"ts", "event", "status"}},
        "payload": event.payload or None,
    }  # fmt: skip
    line: JsonObject = json_value(fields, string_chars=string_chars)
    return line


def json_line(value: JsonObject) -> bytes:
    """Return `value` as one line of UTF-8 JSON without its line break; half a surrogate pair becomes `?`."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def json_value(value: Any, *, string_chars: int = STRING_CHARS, depth: int = MAX_DEPTH) -> Any:
    """Return a copy of `value` that is JSON without nulls, its strings cut at `string_chars`.

    >>> json_value({"a": [None, float("inf"), 1], 2: None, 3: (1.5, True)})
    {'a': ['inf', 1], '3': [1.5, True]}
    """
    if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, dict) and depth:
        below = {truncate(str(key), string_chars): item for key, item in value.items() if item is not None}
        return {
            key: json_value(item, string_chars=string_chars, depth=depth - 1) for key, item in below.items()
        }
    if isinstance(value, list | tuple) and depth:
        return [
            json_value(item, string_chars=string_chars, depth=depth - 1) for item in value if item is not None
        ]
    return truncate(value if isinstance(value, str) else str(value), string_chars)


def truncate(text: str, most: int) -> str:
    """Return `text`, or its start and a mark, `most` characters together.

    >>> truncate("a" * 20, 18)
    'aaa... [truncated]'
    """
    return text if len(text) <= most else text[: max(0, most - len(CUT))] + CUT[:most]


def trace_id(session_id: str) -> str:
    """Return the id of the trace of one conversation: 32 hex digits, as tracers want them."""
    return _digest("trace", session_id)[:32]


def span_id(event: Event) -> str:
    """Return the id of the span of one event: 16 hex digits.

    The estimate of a preflight has the preflight's own id, so that its other events can name it.
    """
    preflight = event.properties.get("preflight")
    if preflight and event.name == TOKEN_ESTIMATE:
        return _of_preflight(event)
    return _digest("span", json_line(record(event)).decode())[:16]


def parent_id(event: Event) -> str:
    """Return the id of the parent span of `event`; empty without one."""
    if not event.properties.get("preflight") or event.name == TOKEN_ESTIMATE:
        return ""
    return _of_preflight(event)


def _of_preflight(event: Event) -> str:
    return _digest("preflight", event.session_id, str(event.properties["preflight"]))[:16]


def _digest(*parts: str) -> str:
    return sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()

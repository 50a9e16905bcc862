"""Names: every event that aether tells of, what it says, and the functions that build it.

Builders take plain values and return an `Event`; they read no clock. Each event says what `Moment` holds
beside its own properties. Shares (`usage_pct`, `compression_ratio`, `reduction_pct`) are 0.85 for 85 %.
Texts of a conversation stand in the payload and nowhere else, so that an exporter can leave them out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from aether.events.event import Event
from aether.shapes import JsonObject

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
MEMORY = "memory."


class Told(NamedTuple):
    """What one kind of event means: a row of the table in docs/observability.md."""

    when: str
    properties: tuple[str, ...] = ()
    """Beside those of every event; one that ends in `?` is there only where it applies."""
    payload: str = ""


COMMON = ("model?", "t_est", "max", "preflight?")
EVENTS: Mapping[str, Told] = {
    TOKEN_ESTIMATE: Told("the conversation was counted", ("max_tokens", "usage_pct", "breakdown")),
    TRIGGER_DECISION: Told(
        "it was decided whether to compact", ("triggered", "reason", "policy", "kept?", "pruned_count?", "note?")
    ),
    SUMMARY_CREATED: Told(
        "a summary took the place of messages",
        ("strategy", "input_messages", "summary_tokens", "compression_ratio"),
        payload="summary",
    ),
    PRUNED_MESSAGES: Told(
        "messages left the context", ("pruned_count", "kept", "tokens_before", "tokens_after", "reduction_pct")
    ),
    ERROR: Told("a step failed, and what was done instead", ("error_type", "message", "fallback")),
    ARCHIVAL: Told("something was archived", ("session_id", "step", "storage_adapter", "file_path?", "s3_key?")),
    REDACTION_DISABLED: Told(
        "an exporter or a storage takes texts with the secrets in them", ("severity", "message")
    ),
    MESSAGE_ADDED: Told("the context manager took a message", ("message_id", "role", "tokens")),
    COMPRESSED: Told(
        "the context manager compressed a conversation",
        ("tokens_before", "tokens_after", "messages_before", "messages_after", "reduction_pct"),
    ),
    BUDGET: Told("the fill of a window changed", ("usage_pct", "should_compress")),
    MEMORY + "compressed": Told("working memory became a session", ("receipt_id", "phase")),
    MEMORY + "phase_completed": Told("a phase of the colony ended", ("phase", "started")),
    MEMORY + "checkin_superseded": Told(
        "a phase that waited for the Queen no longer does", ("checkin_phase", "checkin_status"), payload="checkin"
    ),
    MEMORY + "signal_expired": Told("a signal faded", ("signal_id", "signal_type"), payload="signal"),
    MEMORY + "signal_withdrawn": Told("a signal was taken back", ("signal_id", "signal_type"), payload="signal"),
}  # fmt: skip
# Of what an event of the colony holds whole, these words say what it is about without telling its text.
_TOLD_OF = ("id", "type", "phase", "status")
# What names an event stands on the event itself.
_OWN = frozenset({"event", "at", "revision", "nth"})


class Moment(NamedTuple):
    """When and where something happened: what every event says."""

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
    moment: Moment,
    *,
    triggered: bool,
    reason: str,
    policy: Mapping[str, Any],
    kept: Mapping[str, int] | None = None,
    pruned_count: int | None = None,
    note: str = "",
) -> Event:
    """Return the event that it was decided whether to compact; `note` is what a manual one was given."""
    optional = {
        "kept": None if kept is None else dict(kept),
        "pruned_count": pruned_count,
        "note": note or None,
    }
    given = {name: value for name, value in optional.items() if value is not None}
    return _event(
        moment, TRIGGER_DECISION, triggered=triggered, reason=reason, policy=dict(policy), **given
    )  # fmt: skip


def summary_created(
    moment: Moment,
    *,
    strategy: str,
    input_messages: int,
    input_tokens: int,
    summary_tokens: int,
    summary: str,
) -> Event:
    """Return the event that `summary` took the place of messages of `input_tokens` tokens."""
    made = _event(
        moment, SUMMARY_CREATED, strategy=strategy, input_messages=input_messages, summary_tokens=summary_tokens,
        compression_ratio=_share(summary_tokens, input_tokens),
    )  # fmt: skip
    return made._replace(payload={"summary": summary})


def pruned_messages(
    moment: Moment, *, pruned_count: int, kept: Mapping[str, int], tokens_before: int, tokens_after: int
) -> Event:
    """Return the event that messages left the context."""
    return _event(
        moment, PRUNED_MESSAGES, pruned_count=pruned_count, kept=dict(kept), tokens_before=tokens_before,
        tokens_after=tokens_after, reduction_pct=_share(tokens_before - tokens_after, tokens_before),
    )  # fmt: skip


def error(moment: Moment, *, error_type: str, message: str, fallback: str) -> Event:
    """Return the event that a step failed; `fallback` says what was done instead, `none` if nothing was."""
    made = _event(moment, ERROR, error_type=error_type, message=message, fallback=fallback)
    return made._replace(status="error")


def archival(moment: Moment, *, step: int, storage_adapter: str, place: str) -> Event:
    """Return the event that compaction `step` was archived at `place`, a path or an S3 address.

    >>> archival(Moment("2026-03-01T10:15:00.000000Z", "s1"), step=1, storage_adapter="s3", place="s3://b/k").properties["s3_key"]
    's3://b/k'
    """
    name = "s3_key" if place.startswith("s3://") else "file_path"
    return _event(
        moment, ARCHIVAL, session_id=moment.session_id, step=step, storage_adapter=storage_adapter, **{name: place}
    )  # fmt: skip


def redaction_disabled(moment: Moment, what: str) -> Event:
    """Return the warning that `what`, an exporter or a storage, is given texts unredacted."""
    return _event(
        moment, REDACTION_DISABLED, severity="high",
        message=f"Redaction is off: secrets in the conversation reach {what}.",
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


def of_colony(record: JsonObject, session_id: str) -> Event:
    """Return the event that a record of `data/events.jsonl` tells of; what it holds whole is the payload.

    >>> of_colony({"event": "phase_completed", "at": "2026-03-01T10:15:00Z", "phase": 2}, "colony").name
    'memory.phase_completed'
    """
    properties: JsonObject = {}
    payload: JsonObject = {}
    for name, value in record.items():
        if isinstance(value, dict):
            properties |= {f"{name}_{word}": value[word] for word in _TOLD_OF if word in value}
            payload[name] = value
        elif name not in _OWN:
            properties[name] = value
    name = MEMORY + str(record["event"]).removeprefix(MEMORY)
    return Event(name, str(record["at"]), session_id, properties, payload or None)


def _event(moment: Moment, name: str, **properties: Any) -> Event:
    common: JsonObject = {"t_est": moment.t_est, "max": moment.max_tokens}
    common |= {word: value for word in ("model", "preflight") if (value := getattr(moment, word))}
    return Event(name, moment.at, moment.session_id, {**common, **properties})


def _share(part: int, whole: int) -> float:
    # Four places tell 0.85 from 0.8499; a window of unknown size is never full.
    return round(part / whole, 4) if whole > 0 else 0.0

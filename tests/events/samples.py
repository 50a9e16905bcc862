"""Events to test with: one of every kind, built as the operations build them."""

from __future__ import annotations

from aether.events import events
from tests.events.table import EVENTS

AT = "2026-03-01T10:15:00.000000Z"
MOMENT = events.Moment(AT, "session-1", "gpt-x", 108_800, 128_000, "preflight_1")
KEPT = {"pinned": 2, "recent_turns": 6, "tool_pairs": 4}
POLICY = {"trigger_pct": 0.85, "hard_cap_buffer": 1500, "strategy": "task_state"}
SECRET = "sk-" + "a1B2" * 8


def summary(text="Goal: ship the parser.", moment=MOMENT):
    """Return the event of a summary whose text is `text`."""
    return events.summary_created(
        moment, strategy="task_state", input_messages=14, input_tokens=60_000, summary_tokens=1_500, summary=text
    )  # fmt: skip


def compaction(moment=MOMENT):
    """Return the events of one whole compaction, in the order in which they happen."""
    parts = {"system": 800, "developer": 0, "tools_schema": 3_000, "messages": 105_000}
    return [
        events.token_estimate(moment, parts),
        events.trigger_decision(
            moment, triggered=True, reason="usage_pct >= trigger_pct", policy=POLICY, kept=KEPT, pruned_count=14
        ),
        events.archival(moment, step=1, storage_adapter="fs", place="archive/session-1/transcript-pre-compact-001.jsonl"),
        summary(moment=moment),
        events.pruned_messages(moment, pruned_count=14, kept=KEPT, tokens_before=108_800, tokens_after=50_300),
    ]  # fmt: skip


def colony_records():
    """Return one record of each kind that a home appends to its events."""
    signal = {"id": "sig_1", "type": "FOCUS", "strength": 0.7, "metadata": {"context": "the parser"}}
    checkin = {"phase": 2, "status": "awaiting_review", "timestamp": AT, "queen_decision": None}
    return [
        {"event": "memory.compressed", "at": AT, "receipt_id": "receipt_1", "phase": 2},
        {"event": "phase_completed", "at": AT, "phase": 2, "started": True},
        {"event": "checkin_superseded", "at": AT, "checkin": checkin},
        {"event": "signal_expired", "at": AT, "signal": signal},
        {"event": "signal_withdrawn", "at": AT, "signal": signal},
    ]


def every():
    """Return one event of every kind."""
    return [
        *compaction(),
        events.error(MOMENT, error_type="BackendFailed", message="no answer within 10 s", fallback="pruning-only"),
        events.redaction_disabled(MOMENT, 'the exporter "file"'),
        events.message_added(MOMENT, message_id="m1", role="user", tokens=7),
        events.compressed(MOMENT, tokens_before=700, tokens_after=300, messages_before=20, messages_after=8),
        events.budget(MOMENT, should_compress=True),
        *(
            events.context_event(MOMENT, name.removeprefix(events.CONTEXT), **dict.fromkeys(about.properties, "x"))
            for name, about in EVENTS.items() if name.startswith(events.CONTEXT)
        ),
        *(events.colony_event(record, "colony-shop") for record in colony_records()),
    ]  # fmt: skip

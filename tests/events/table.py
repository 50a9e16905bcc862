"""The table of docs/formats.md: when every event happens, and what it holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from aether.events.events import (
    ARCHIVAL,
    BUDGET,
    COMPRESSED,
    CONTEXT,
    ERROR,
    MEMORY,
    MESSAGE_ADDED,
    PRUNED_MESSAGES,
    REDACTION_DISABLED,
    SUMMARY_CREATED,
    TOKEN_ESTIMATE,
    TRIGGER_DECISION,
)


class EventDoc(NamedTuple):
    """One kind of event: a row of the table in docs/formats.md."""

    when: str
    properties: tuple[str, ...] = ()
    """Beside those of every event; one that ends in `?` is optional."""
    payload: str = ""


COMMON = ("model?", "t_est", "max", "preflight?")
EVENTS: Mapping[str, EventDoc] = {
    TOKEN_ESTIMATE: EventDoc("the conversation was counted", ("max_tokens", "usage_pct", "breakdown")),
    TRIGGER_DECISION: EventDoc(
        "the triggers were checked", ("triggered", "reason", "policy", "kept?", "pruned_count?", "note?")
    ),
    SUMMARY_CREATED: EventDoc(
        "a summary replaced messages",
        ("strategy", "input_messages", "summary_tokens", "compression_ratio"),
        payload="summary",
    ),
    PRUNED_MESSAGES: EventDoc(
        "messages left the context", ("pruned_count", "kept", "tokens_before", "tokens_after", "reduction_pct")
    ),
    ERROR: EventDoc("a step failed; `fallback` replaced it", ("error_type", "message", "fallback")),
    ARCHIVAL: EventDoc("something was archived", ("session_id", "step", "storage_adapter", "file_path?", "s3_key?")),
    REDACTION_DISABLED: EventDoc(
        "an exporter or storage gets unredacted text", ("severity", "message")
    ),
    MESSAGE_ADDED: EventDoc("the context manager took a message", ("message_id", "role", "tokens")),
    COMPRESSED: EventDoc(
        "the context manager compressed a conversation",
        ("tokens_before", "tokens_after", "messages_before", "messages_after", "reduction_pct"),
    ),
    BUDGET: EventDoc("the fill of a window changed", ("usage_pct", "should_compress")),
    CONTEXT + "message-added": EventDoc("a context took a message", ("tokens",)),
    CONTEXT + "context-warning": EventDoc("a context is at least 70 % full", ("usage_pct",)),
    CONTEXT + "block-user-input": EventDoc("a compression started; typed input waits", ("reason",)),
    CONTEXT + "unblock-user-input": EventDoc("a compression ended"),
    CONTEXT + "checkpoint-started": EventDoc("summaries are being written", ("summaries",)),
    CONTEXT + "checkpoint-progress": EventDoc("a stage of a compression was reached", ("stage", "percent", "message")),
    CONTEXT + "checkpoint-completed": EventDoc("a compression was recorded", ("step", "tokens_before", "tokens_after")),
    CONTEXT + "checkpoint-aged": EventDoc("a checkpoint was reduced to a lower level", ("checkpoint",)),
    CONTEXT + "checkpoint-failed": EventDoc("a compression changed nothing", ("reason", "error")),
    CONTEXT + "compressed": EventDoc("a context became smaller", ("tokens_before", "tokens_after")),
    CONTEXT + "compression-skipped": EventDoc("there was nothing to compress", ("reason",)),
    CONTEXT + "compression-error": EventDoc("a compression failed", ("reason",)),
    CONTEXT + "auto-summary-created": EventDoc("a new checkpoint was made", ("checkpoint", "tokens")),
    CONTEXT + "rollover-complete": EventDoc("one checkpoint replaced all", ("tokens_before", "tokens_after")),
    **{
        f"{CONTEXT}tier{number}-compressed": EventDoc(f"a context of tier {number} became smaller", ("tokens_before", "tokens_after"))
        for number in range(1, 6)
    },
    CONTEXT + "emergency-compression-started": EventDoc("an emergency action started", ("action",)),
    CONTEXT + "emergency-compression-completed": EventDoc("an emergency action ended", ("action", "success", "freed")),
    CONTEXT + "emergency-rollover-started": EventDoc("an emergency rollover started", ("action",)),
    CONTEXT + "emergency-rollover-completed": EventDoc("an emergency rollover ended", ("action", "success", "freed")),
    CONTEXT + "prompt-validation-passed": EventDoc("a prompt fits", ("tokens", "limit")),
    CONTEXT + "prompt-validation-failed": EventDoc("a prompt did not fit before emergency actions", ("tokens", "limit")),
    CONTEXT + "snapshot-created": EventDoc("a snapshot was taken", ("purpose",)),
    CONTEXT + "auto-snapshot-created": EventDoc("a snapshot was taken at 85 %"),
    CONTEXT + "snapshot-restored": EventDoc("a snapshot was restored", ("snapshot",)),
    CONTEXT + "stream-overflow-emergency": EventDoc("an answer outgrew the window while it streamed", ("total_tokens", "limit")),
    CONTEXT + "mode-changed": EventDoc("a context got another mode", ("mode", "old_mode")),
    CONTEXT + "tier-changed": EventDoc("a context got a window of another class", ("tier",)),
    MEMORY + "compressed": EventDoc("working memory became a session", ("receipt_id", "phase")),
    MEMORY + "phase_completed": EventDoc("a phase of the colony ended", ("phase", "started")),
    MEMORY + "checkin_superseded": EventDoc(
        "a phase no longer waits for a decision", ("checkin_phase", "checkin_status"), payload="checkin"
    ),
    MEMORY + "signal_expired": EventDoc("a signal faded", ("signal_id", "signal_type"), payload="signal"),
    MEMORY + "signal_withdrawn": EventDoc("a signal was withdrawn", ("signal_id", "signal_type"), payload="signal"),
}  # fmt: skip

"""Views of what compactions did: the difference of one, message by message, and the conversations there are.

Receipts of compaction: what went, what stayed, why, what it cost, and who is told of it.

The receipt stands in the conversation's own log, beside the messages; events and copies leave the home and are
redacted. A copy that cannot be written is a finding, not a failure: the exact record is in the home.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from aether import clock
from aether.api.compact_case import Case, record_directory
from aether.api.home import Home
from aether.api.summarize import WrittenSummary
from aether.compaction.plan import Plan
from aether.compaction.shapes import Compacted, Policy, Receipt, Summary
from aether.compaction.summary import rendered
from aether.errors import AetherError
from aether.events import events as tell
from aether.events.delivery import warn
from aether.events.events import Event
from aether.messages.convert import read
from aether.messages.model import Message
from aether.redact.redact import redacted
from aether.store import conversations, files
from aether.store.conversations import Stored, load
from aether.types import Finding, JsonObject


class DiffRow(NamedTuple):
    """One message before or after a compaction, and what became of it."""

    change: Literal["kept", "shortened", "removed", "added"]
    before: int | None
    """Position before the compaction; None for what it added."""
    after: int | None
    role: str
    text: str
    """What it says: before where it was removed, after where it stayed."""
    protected: bool


class Difference(NamedTuple):
    """What one compaction did to a conversation."""

    rows: list[DiffRow]
    """What was removed stands before what was added for it."""
    receipt: JsonObject
    before: list[JsonObject]
    after: list[JsonObject]


class ConversationEntry(NamedTuple):
    """One conversation that is kept."""

    conversation: str
    messages: int
    """Ever said."""
    context: int
    """Live now."""
    compactions: int
    undone: int
    bytes: int
    problem: str = ""
    """Why it cannot be opened; the numbers before are 0 then."""


def compaction_diff(conversation_id: str, *, step: int | None = None, home: Home = None) -> Difference:
    """Return what compaction `step` did, message by message; the newest one that is not undone if none is named.

    Raises:
        NotFound: there is no such conversation, or no such compaction.
    """
    log = load(record_directory(home), conversation_id)
    if step is None:
        step = log.open[-1] if log.open else len(log.compactions)
    before, after, receipt = conversations.compaction(log, step)
    return Difference(list(_rows(before, after, receipt)), receipt, before, after)


def conversation_list(*, home: Home = None) -> list[ConversationEntry]:
    """Return the conversations that are kept, by name, with what is wrong with those that cannot be opened.

    Raises:
        NotFound: the named one is no home.
    """
    place = record_directory(home)
    return [_conversation_entry(place, found) for found in conversations.stored_conversations(place)]


def _conversation_entry(place: Path, found: Stored) -> ConversationEntry:
    try:
        log = load(place, found.id)
    except AetherError as reason:
        return ConversationEntry(found.id, 0, 0, 0, 0, found.bytes, reason.what)
    said = sum(1 for step in log.derived if not step)
    done = len(log.compactions)
    return ConversationEntry(log.id, said, len(log.context), done, done - len(log.open), found.bytes)


def _rows(before: list[JsonObject], after: list[JsonObject], receipt: JsonObject) -> Iterator[DiffRow]:
    places: list[int | None] = receipt["places"]
    protected = set(receipt["protected"])
    old, new = read(before), read(after)
    reached = 0
    for at, place in enumerate(places):
        following = next((later for later in places[at:] if later is not None), len(before))
        for gone in range(reached, following):
            yield _row("removed", gone, None, old[gone], protected)
        reached = max(reached, following)
        if place is None:
            yield _row("added", None, at, new[at], protected)
        else:
            changed = old[place].raw != new[at].raw
            yield _row("shortened" if changed else "kept", place, at, new[at], protected)
            reached = place + 1
    for gone in range(reached, len(before)):
        yield _row("removed", gone, None, old[gone], protected)


def _row(
    change: Literal["kept", "shortened", "removed", "added"],
    before: int | None,
    after: int | None,
    message: Message,
    protected: Sequence[int] | set[int],
) -> DiffRow:
    text = " ".join(f"{block.tool} {block.text}".strip() for block in message.blocks)
    return DiffRow(change, before, after, message.role, text, before in protected)


def make_receipt(
    case: Case,
    plan: Plan,
    result: Compacted,
    written: WrittenSummary,
    raws: Sequence[JsonObject],
    *,
    step: int,
) -> Receipt:
    """Return the record of one compaction; `raws` are the messages that it came to."""
    stayed = {place for place in result.places if place is not None}
    return Receipt(
        conversation_id=case.conversation_id,
        step=step,
        at=clock.stamp(clock.now()),
        policy=_policy_json(case.policy),
        effective={
            **_policy_json(result.effective), "window": case.limits.window, "limit": case.limits.limit,
            "ceiling": case.limits.ceiling, "goal": case.limits.goal,
        },
        trigger=plan.reason,
        note=case.note,
        tokens_before=result.tokens_before,
        tokens_after=result.tokens_after,
        counter=case.counter,
        messages_before=len(case.raws),
        messages_after=len(raws),
        kept=result.kept._asdict(),
        removed=[at for at in range(len(case.raws)) if at not in stayed],
        places=list(result.places),
        protected=list(result.protected),
        cuts=[cut._asdict() for cut in result.cuts],
        steps=list(result.steps),
        summary=_summary(case, result.summary, written),
        sha256_before=messages_checksum(case.raws),
        sha256_after=messages_checksum(raws),
        findings=[finding._asdict() for finding in (*case.findings, *result.findings)],
    )  # fmt: skip


def messages_checksum(raws: Sequence[JsonObject]) -> str:
    """Return the SHA-256 of messages as the log writes them, one per line."""
    return hashlib.sha256(b"\n".join(map(files.json_line, raws))).hexdigest()


def _policy_json(policy: Policy) -> JsonObject:
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in policy._asdict().items()
    }


def _summary(case: Case, summary: Summary | None, written: WrittenSummary) -> JsonObject:
    if summary is None:
        return {}
    tokens = case.sums.count(rendered(summary))
    return {"version": summary.version, "tokens": tokens, **written.record}


def event_moment(case: Case, preflight: str) -> tell.Moment:
    """Return what every event of this call says."""
    return tell.Moment(
        clock.stamp(clock.now()),
        case.conversation_id,
        case.model,
        case.budget.used,
        case.budget.window,
        preflight,
    )


def emit_event(case: Case, event: Event) -> None:
    """Hand `event` to the exporter, where there is one; nobody waits for it to arrive."""
    if case.options.exporter:
        try:
            case.options.exporter.emit(event)
        except Exception as reason:  # noqa: BLE001 - telling of the work must not end the work
            warn("exporter", f"an event was lost: {type(reason).__name__}: {reason}")


def emit_token_estimate(case: Case, at: tell.Moment) -> None:
    """Tell that the conversation was counted."""
    parts = {
        "system": case.budget.system, "developer": case.budget.developer, "tools_schema": case.budget.tools,
        "messages": case.budget.messages,
    }  # fmt: skip
    emit_event(case, tell.token_estimate(at, parts))


def emit_decision(case: Case, at: tell.Moment, *, plan: Plan | None, reason: str) -> None:
    """Tell whether it is compacted, and why."""
    policy = {
        "trigger_pct": case.policy.trigger, "hard_cap_buffer": case.limits.reserve, "strategy": case.policy.strategy,
    }  # fmt: skip
    kept = plan and {
        "pinned": plan.why.pinned,
        "recent_turns": plan.why.recent,
        "tool_pairs": plan.why.tool_pairs,
    }
    pruned = len(case.raws) - len(plan.kept) if plan else None
    event = tell.trigger_decision(
        at,
        triggered=plan is not None,
        reason=reason,
        policy=policy,
        kept=kept,
        pruned_count=pruned,
        note=case.note,
    )
    emit_event(case, event)


def emit_error(case: Case, at: tell.Moment, *, kind: str, message: str, fallback: str) -> None:
    """Tell that a step failed and what is done instead."""
    emit_event(case, tell.error(at, error_type=kind, message=message, fallback=fallback))


def emit_compaction(case: Case, at: tell.Moment, found: Receipt, result: Compacted) -> None:
    """Tell what a compaction did."""
    kept = {
        "pinned": found.kept["pinned"], "recent_turns": found.kept["recent"], "tool_pairs": found.kept["tool_pairs"],
    }  # fmt: skip
    if result.summary:
        removed = sum(case.sums.tokens[position] for position in found.removed)
        event = tell.summary_created(
            at, strategy=found.summary.get("strategy", case.policy.strategy), input_messages=len(found.removed),
            input_tokens=removed, summary_tokens=found.summary["tokens"], summary=rendered(result.summary),
        )  # fmt: skip
        emit_event(case, event)
    event = tell.pruned_messages(
        at, pruned_count=len(found.removed), kept=kept, tokens_before=found.tokens_before,
        tokens_after=found.tokens_after,
    )  # fmt: skip
    emit_event(case, event)


def save_copies(case: Case, at: tell.Moment, found: Receipt, result: Compacted) -> list[Finding]:
    """Keep redacted copies of the messages before and of the summary; what failed is said in the findings."""
    storage = case.options.storage
    if storage is None:
        return []

    def clean(value: Any) -> Any:
        return value if case.options.rules is None else redacted(value, case.options.rules)

    if case.options.rules is None:
        emit_event(case, tell.redaction_disabled(at, storage.name))
    try:
        # Copies may be older than the home: a step that they have already is not written over.
        step = (
            max(found.step, storage.next_step(case.conversation_id))
            if hasattr(storage, "next_step")
            else found.step
        )
        place = storage.save_transcript(case.conversation_id, clean(case.raws), step)
        if result.summary:
            about = {"text": rendered(result.summary), **found.summary, "receipt": found._asdict()}
            storage.save_summary(case.conversation_id, clean(about), step)
        emit_event(case, tell.archival(at, step=step, storage_adapter=storage.name, place=place))
    except AetherError as reason:
        emit_error(case, at, kind=reason.code, message=reason.what, fallback="home")
        return [Finding("warning", "copy-failed", storage.name, reason.what, reason.fix)]
    except Exception as reason:  # noqa: BLE001 - a caller's own adapter raises what its library does
        emit_error(case, at, kind=type(reason).__name__, message=str(reason), fallback="home")
        return [Finding("warning", "copy-failed", storage.name, str(reason), "Mend the adapter.")]
    return []

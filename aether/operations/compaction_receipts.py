"""Receipts of compaction: what went, what stayed, why, what it cost, and who is told of it.

The receipt stands in the conversation's own log, beside the messages; events and copies leave the home and are
redacted. A copy that cannot be written is a finding, not a failure: the exact record is in the home.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from aether import clock
from aether.compaction.plan import Plan
from aether.compaction.shapes import Compacted, Policy, Receipt, Summary
from aether.compaction.summary import rendered
from aether.errors import AetherError
from aether.events import names as tell
from aether.events.direct import say
from aether.events.event import Event
from aether.operations.compaction_case import Case
from aether.operations.summarising import Summarised
from aether.redact.redaction import redacted
from aether.shapes import Finding, JsonObject
from aether.store import codec


def receipt(
    case: Case, plan: Plan, result: Compacted, written: Summarised, raws: Sequence[JsonObject], *, step: int
) -> Receipt:
    """Return the record of one compaction; `raws` are the messages that it came to."""
    stayed = {place for place in result.places if place is not None}
    return Receipt(
        conversation_id=case.conversation_id,
        step=step,
        at=clock.stamp(clock.now()),
        policy=_listed(case.policy),
        effective={
            **_listed(result.effective), "window": case.limits.window, "limit": case.limits.limit,
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
        sha256_before=checksum(case.raws),
        sha256_after=checksum(raws),
        findings=[finding._asdict() for finding in (*case.findings, *result.findings)],
    )  # fmt: skip


def checksum(raws: Sequence[JsonObject]) -> str:
    """Return the SHA-256 of messages as the log writes them, one per line."""
    return hashlib.sha256(b"\n".join(map(codec.line, raws))).hexdigest()


def _listed(policy: Policy) -> JsonObject:
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in policy._asdict().items()
    }


def _summary(case: Case, summary: Summary | None, written: Summarised) -> JsonObject:
    if summary is None:
        return {}
    tokens = case.sums.count(rendered(summary))
    return {"version": summary.version, "tokens": tokens, **written.record}


def moment(case: Case, preflight: str) -> tell.Moment:
    """Return what every event of this call says."""
    return tell.Moment(
        clock.stamp(clock.now()),
        case.conversation_id,
        case.model,
        case.budget.used,
        case.budget.window,
        preflight,
    )


def emit(case: Case, event: Event) -> None:
    """Hand `event` to the exporter, where there is one; nobody waits for it to arrive."""
    if case.options.exporter:
        try:
            case.options.exporter.emit(event)
        except Exception as reason:  # noqa: BLE001 - telling of the work must not end the work
            say("exporter", f"an event was lost: {type(reason).__name__}: {reason}")


def counted(case: Case, at: tell.Moment) -> None:
    """Tell that the conversation was counted."""
    parts = {
        "system": case.budget.system, "developer": case.budget.developer, "tools_schema": case.budget.tools,
        "messages": case.budget.messages,
    }  # fmt: skip
    emit(case, tell.token_estimate(at, parts))


def decided(case: Case, at: tell.Moment, *, plan: Plan | None, reason: str) -> None:
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
    emit(case, event)


def failed(case: Case, at: tell.Moment, *, kind: str, message: str, fallback: str) -> None:
    """Tell that a step failed and what is done instead."""
    emit(case, tell.error(at, error_type=kind, message=message, fallback=fallback))


def done(case: Case, at: tell.Moment, found: Receipt, result: Compacted) -> None:
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
        emit(case, event)
    event = tell.pruned_messages(
        at, pruned_count=len(found.removed), kept=kept, tokens_before=found.tokens_before,
        tokens_after=found.tokens_after,
    )  # fmt: skip
    emit(case, event)


def archived(case: Case, at: tell.Moment, found: Receipt, result: Compacted) -> list[Finding]:
    """Keep redacted copies of the messages before and of the summary; what failed is said in the findings."""
    storage = case.options.storage
    if storage is None:
        return []

    def clean(value: Any) -> Any:
        return value if case.options.rules is None else redacted(value, case.options.rules)

    if case.options.rules is None:
        emit(case, tell.redaction_disabled(at, storage.name))
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
        emit(case, tell.archival(at, step=step, storage_adapter=storage.name, place=place))
    except AetherError as reason:
        failed(case, at, kind=reason.code, message=reason.what, fallback="home")
        return [Finding("warning", "copy-failed", storage.name, reason.what, reason.fix)]
    except Exception as reason:  # noqa: BLE001 - a caller's own adapter raises what its library does
        failed(case, at, kind=type(reason).__name__, message=str(reason), fallback="home")
        return [Finding("warning", "copy-failed", storage.name, str(reason), "Mend the adapter.")]
    return []

"""Contexts: a conversation opened with a window, kept below its limit by checkpoints that age, and never lost.

`open_context`, then `add_message` for each message and `build_prompt` before each request. Everything is a record of the
conversation's log: a compression is one compaction step, all of it or nothing, so `undo_compaction`, the recall tool and
`aether compact show` work on it. A message is compressed after it was added, never while an answer streams. What does
not fit after every step raises `BudgetExceeded`. Decisions are in `aether.conversation`, the steps in `context_steps`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from aether import clock
from aether.api import tokens
from aether.api.compact import as_dicts
from aether.api.context_steps import (
    CONFLICT_TRIES,
    Case,
    apply_markers,
    case_of,
    checkpoints_of,
    compress_by_itself,
    emit,
    make_smaller,
    receipt_of,
    refit,
    require_open,
    token_metrics,
    validation,
)
from aether.api.context_steps import compress_context as compress_context  # noqa: PLC0414 - one of the verbs of a context
from aether.api.context_steps import emergency as emergency  # noqa: PLC0414 - the same
from aether.api.conversations import make_record, record_directory
from aether.api.home import Home, copied, redaction_rules
from aether.conversation import checks
from aether.conversation.modes import Reliability, mode_rules, reliability
from aether.conversation.shapes import (
    LEVEL_NAMES,
    Checkpoint,
    ContextSettings,
    EmergencyResult,
    ExportFormat,
    Overflow,
    Progress,
    Prompt,
    Purpose,
    SystemPart,
    Tier,
    TokenMetrics,
    Validation,
)
from aether.errors import AetherError, Conflict, InvalidInput, NotFound, public, require_one_of, shown, strict
from aether.messages import convert
from aether.messages.model import Message, content_text
from aether.messages.validate import is_sendable, sendable
from aether.redact.redact import redacted
from aether.store import config, conversations, history
from aether.store.conversations import load
from aether.store.history import Snapshot
from aether.store.keys import MIN_CONTEXT_WINDOW
from aether.tokens.count import message_tokens
from aether.types import Finding, JsonObject

# A compression that failed is tried again by itself once the context has grown by this share of the limit.
TRY_AGAIN = 0.05
# How often a context is made to fit while another process adds to it.
MOST_TRIES = 3
# Of the tokens that a provider refused: what is sent next.
AFTER_OVERFLOW = 0.7
PURPOSES: tuple[Purpose, ...] = ("recovery", "rollback", "emergency")
FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)


class ContextStatus(NamedTuple):
    """A context as it is now."""

    conversation: str
    settings: ContextSettings
    tier: Tier
    tokens: int
    limit: int
    messages: int
    """Live ones, without checkpoints."""
    checkpoints: int
    compressions: int
    snapshots: int
    reliability: Reliability
    validation: Validation
    findings: tuple[Finding, ...]
    metrics: TokenMetrics


class ContextEntry(NamedTuple):
    """One conversation that was opened as a context."""

    conversation: str
    at: str
    """When its newest record was written."""
    messages: int
    """In its history."""
    compressions: int
    model: str
    mode: str
    window: int


# Tokens of the context when a compression last failed by itself.
_FAILED_AT: dict[tuple[Path, str], int] = {}


@public
@strict
def open_context(
    conversation_id: str,
    *,
    window: int | None = None,
    model: str | None = None,
    mode: str = "assistant",
    system: str = "",
    tools: Sequence[JsonObject] | None = None,
    parts: Mapping[str, str] | None = None,
    provider: str | None = None,
    tool_support: bool | None = None,
    home: Home = None,
) -> ContextStatus:
    """Open a conversation with a window, or resume it, and return its state.

    The default of `window` is `context.window`, else that of the model. A resumed context keeps what it had, unless
    something else is given. `tools` are the schemas sent with each request; `parts` are further named parts of the system
    prompt, an empty one removes it. None of these is ever compressed. A larger window reverses compressions that it does
    not need. With `tool_support` false, no tools are sent, and calls and results become text; default: the profile's, else true.

    Raises:
        InvalidInput: the window is too small, there is no such mode, or an argument has the wrong type; nothing is stored.
        NotFound: the named home does not exist.
    """
    record = record_directory(home)
    mode_rules(mode)
    is_new = not load(record, conversation_id).settings
    if is_new:
        window = window if window is not None else config.or_default(record).context_window or None
    if window is None and (model is not None or is_new):
        window = _window(model or "", record)
    _require_window(window)
    patch: JsonObject = {
        "window": window, "model": model, "system": system or None, "provider": provider, "tool_support": tool_support,
        "mode": mode if mode != "assistant" or is_new else None,
        "tools": None if tools is None else list(tools), "parts": None if parts is None else dict(parts),
    }  # fmt: skip
    make_record(record)
    return _set(conversation_id, {name: value for name, value in patch.items() if value is not None}, record)


@public
def set_mode(conversation_id: str, mode: str, *, home: Home = None) -> ContextStatus:
    """Change the mode of a context; everything in it stays.

    Raises:
        InvalidInput: there is no such mode.
        NotFound: the conversation is not open.
    """
    mode_rules(mode)
    return _set(conversation_id, {"mode": mode}, record_directory(home))


@public
@strict
def set_model(
    conversation_id: str, model: str, *, window: int | None = None, home: Home = None
) -> ContextStatus:
    """Change the model of a context, and its window to the given one or that of the model; everything in it stays.

    If the context does not fit the new window, the next prompt makes it fit. A larger window takes back compressions that
    it does not need.

    Raises:
        InvalidInput: the window is too small.
        NotFound: the conversation is not open.
    """
    _require_window(window)
    record = record_directory(home)
    size = _window(model, record) if window is None else window
    # Whether a model calls tools is its own: what was known of the last one says nothing about it.
    return _set(conversation_id, {"model": model, "window": size, "tool_support": None}, record)


def _set(conversation_id: str, patch: JsonObject, record: Path) -> ContextStatus:
    is_new = "window" in patch and not load(record, conversation_id).settings
    before = None if is_new else case_of(conversation_id, record)
    conversations.set_settings(record, conversation_id, patch, now=clock.now())
    after = case_of(conversation_id, record)
    if before is None:
        return _status(after)
    if after.limit > before.limit:
        refit(after)
        after = case_of(conversation_id, record)
    if before.settings.mode != after.settings.mode:
        emit(after, "mode-changed", mode=after.settings.mode, old_mode=before.settings.mode)
    if before.tier != after.tier:
        emit(after, "tier-changed", tier=after.tier.label)
    return _status(after)


def _window(model: str, record: Path) -> int:
    """Return the window of a model; without a name that of an unknown one, which is the smallest on offer."""
    if window := tokens.served_model(record, model).window:
        return window
    profile = tokens.counting(model or "unnamed", place=record).profile
    assert profile is not None  # noqa: S101 - a model was named
    return profile.window


def _require_window(window: int | None) -> None:
    if window is not None and (type(window) is not int or window < MIN_CONTEXT_WINDOW):
        fix = f"Give its tokens, at least {MIN_CONTEXT_WINDOW}."
        raise InvalidInput(f"{shown(window)} is not a window.", fix=fix, where="window")


@public
def context_status(conversation_id: str, *, home: Home = None) -> ContextStatus:
    """Return a context as it is now.

    Raises:
        NotFound: the conversation is not open.
    """
    return _status(case_of(conversation_id, record_directory(home)))


def _status(case: Case) -> ContextStatus:
    checkpoints = len(case.view.checkpoints)
    _, invalid = config.load_with_errors(case.record)
    fix = "Correct it; until then its default is in force."
    findings = [
        *case.findings,
        *(
            Finding("warning", "invalid-setting", name, why, fix)
            for name, why in invalid.items()
            if not name or name.startswith("context")
        ),
        *config.untrusted(case.record, "context."),
    ]
    compressions = history.compressions(case.log)
    trust = reliability(case.settings.model, compressions)
    if trust.warn:
        what = f"its summaries were written again {compressions} times by a model of this size."
        fix = "Start a new conversation, or use a larger model."
        findings.append(Finding("warning", "unreliable", "context", what, fix))
    return ContextStatus(
        case.log.id, case.settings, case.tier, case.tokens, case.limit, len(case.view.live) - checkpoints, checkpoints,
        compressions, len(history.snapshots(case.log, most=case.limits.snapshots)), trust, validation(case),
        tuple(findings), token_metrics(case),
    )  # fmt: skip


@public
def context_list(*, home: Home = None) -> list[ContextEntry]:
    """Return the conversations that were opened as contexts, the one with the newest record first.

    Raises:
        NotFound: the named home does not exist.
    """
    record = record_directory(home)
    entries = []
    for stored in conversations.stored_conversations(record):
        with suppress(AetherError):
            log = load(record, stored.id)
            if log.settings:
                index = clock.stamp(clock.of_file(stored.path.stat().st_mtime))
                entries.append(
                    ContextEntry(
                        log.id, index, len(history.said(log)), history.compressions(log),
                        log.settings.get("model", ""), log.settings.get("mode", ""), log.settings["window"],
                    )
                )  # fmt: skip
    return sorted(entries, key=lambda entry: (entry.at, entry.conversation), reverse=True)


@public
def add_message(
    conversation_id: str, message: JsonObject, *, progress: Progress | None = None, home: Home = None
) -> Validation:
    """Append a message, in the format of any provider, then compress if the context asks for it; return its state.

    The message is stored before anything is compressed, and a compression that fails leaves it stored. Markers in an
    answer (`[CHECKPOINT] … - COMPLETED`) change the current goal of the home. `progress` gets the stages of a compression.

    Raises:
        InvalidInput: it is not a message.
        NotFound: the conversation is not open.
    """
    raw = as_dicts([message])[0]
    checks.require_message(raw, where="message")
    record = record_directory(home)
    require_open(load(record, conversation_id))
    if raw.get("role") == "assistant":
        return store_messages(
            conversation_id, [raw], record, progress, markers=content_text(raw.get("content"))
        )
    return store_messages(conversation_id, [raw], record, progress)


def store_messages(
    conversation_id: str, raws: Sequence[JsonObject], record: Path, progress: Progress | None = None, *, markers: str = ""
) -> Validation:  # fmt: skip
    """Append messages at once, apply the `markers` in a text, and compress if the context asks for it; return its state."""
    conversations.extend(record, conversation_id, raws, now=clock.now())
    apply_markers(markers, record)
    return _attended(conversation_id, record, progress)


def _attended(conversation_id: str, record: Path, progress: Progress | None) -> Validation:
    """Return the state of a context after the compression that its fill asks for; nothing that fails is raised."""
    case = case_of(conversation_id, record)
    if case.provider != "plain" and not case.settings.provider:
        # From now on: after a compression the messages that show the format may have left the context.
        case = _with_settings(case, {"provider": case.provider})
    emit(case, "message-added", tokens=case.view.live[-1].tokens if case.view.live else 0)
    ratio = case.tokens / case.limit
    if ratio >= case.limits.inform:
        emit(case, "context-warning", usage_pct=round(ratio, 4))
    if ratio < case.limits.compress or case.tokens < _FAILED_AT.get(case.key, 0) + TRY_AGAIN * case.limit:
        return validation(case)
    compression = compress_by_itself(conversation_id, record, progress)
    _FAILED_AT[case.key] = 0 if compression.success else case.tokens
    case = case_of(conversation_id, record)
    with suppress(AetherError):
        if case.tokens >= case.limits.snapshot * case.limit:
            _automatic_snapshot(case)
        if case.tokens >= case.limits.emergency * case.limit:
            make_smaller(conversation_id, record)
    return validation(case_of(conversation_id, record))


@public
def build_prompt(conversation_id: str, *, home: Home = None) -> Prompt:
    """Return what is to be sent now, never more than the limit: system prompt, checkpoints, recent messages, the newest.

    If the context does not fit, it is made to fit first. The same state gives the same prompt, and the prompts between
    two compressions start with the same bytes.

    Raises:
        BudgetExceeded: it cannot be made to fit; the error names what is too large.
        NotFound: the conversation is not open.
    """
    record = record_directory(home)
    case = case_of(conversation_id, record)
    checks.require_room(
        case.view, parts=case.system, tools=case.tools or (), beside=case.room.beside, limit=case.limit, count=case.count,
    )  # fmt: skip
    prompt = _prompt(case)
    if prompt.tokens > prompt.limit:
        emit(case, "prompt-validation-failed", status="error", tokens=prompt.tokens, limit=prompt.limit)
    for _ in range(MOST_TRIES):  # another process may add messages between
        if prompt.tokens <= prompt.limit:
            break
        before = case.log.context
        make_smaller(conversation_id, record, most=int(case.limits.compress * case.limit))
        case = case_of(conversation_id, record)
        prompt = _prompt(case)
        if case.log.context == before:  # no step helps
            break
    if prompt.tokens > prompt.limit:
        raise checks.exceeded(case.view, prompt.tokens, case.limit, parts=case.system, count=case.count)
    emit(case, "prompt-validation-passed", tokens=prompt.tokens, limit=prompt.limit)
    return prompt


def _prompt(case: Case) -> Prompt:
    parts = checks.parts_of(case.view, case.system, tools=case.tools is not None)
    prompt = checks.build(
        parts, tools=case.tools or (), provider=case.provider, beside=case.room.beside, limit=case.limit, count=case.count,
    )  # fmt: skip
    lead = len(prompt.messages) - sum(not isinstance(part, SystemPart) for part in parts)
    raws = prompt.messages[lead:]
    if is_sendable(raws, case.provider):
        return prompt._replace(messages=copied(prompt.messages))
    repaired = sendable(raws, case.provider).raws
    total = sum(message_tokens(message, case.count) for message in convert.read(repaired, case.provider))
    return prompt._replace(
        messages=copied([*prompt.messages[:lead], *repaired]), tokens=case.room.beside + total
    )


@public
def validate_context(conversation_id: str, *, home: Home = None) -> Validation:
    """Return whether a context can be sent as it is, and suggestions by priority; nothing is changed or counted again.

    Raises:
        NotFound: the conversation is not open.
    """
    return validation(case_of(conversation_id, record_directory(home)))


@public
def checkpoints(conversation_id: str, *, home: Home = None) -> list[Checkpoint]:
    """Return the checkpoints in a context, oldest first.

    Raises:
        NotFound: the conversation is not open.
    """
    return checkpoints_of(case_of(conversation_id, record_directory(home)).view)


@public
def handle_overflow(conversation_id: str, error: BaseException | str, *, home: Home = None) -> Overflow:
    """Make a context smaller if `error` says that a request was too long for its model, and return what to do.

    A limit that the error names becomes the window of the context, and a number of tokens corrects the counts of the
    model. An error of the connection changes nothing: send the request again. Failures are not raised.

    Raises:
        NotFound: the conversation is not open.
    """
    record = record_directory(home)
    case = case_of(conversation_id, record)
    reported = checks.classified(error)
    actions: tuple[EmergencyResult, ...] = ()
    if reported.kind == "overflow":
        with suppress(AetherError):
            if reported.window and MIN_CONTEXT_WINDOW <= reported.window < case.settings.window:
                case = _with_settings(case, {"window": reported.window})
            if reported.tokens and case.settings.model:
                tokens.record_usage(case.settings.model, case.tokens, reported.tokens, home=record)
                case = case_of(conversation_id, record)
        most = int(AFTER_OVERFLOW * min(case.tokens, case.limit))
        actions = make_smaller(conversation_id, record, most=most)
    after = case_of(conversation_id, record)
    is_smaller = after.tokens <= after.limit and (after.tokens < case.tokens or bool(actions))
    retry = reported.kind == "connection" or (reported.kind == "overflow" and is_smaller)
    return Overflow(reported.kind, retry, actions, validation(after))


def _with_settings(case: Case, patch: JsonObject) -> Case:
    conversations.set_settings(case.record, case.log.id, patch, now=clock.now())
    return case_of(case.log.id, case.record)


@public
def stream_overflow(conversation_id: str, streamed: str, *, home: Home = None) -> bool:
    """Return whether an answer that is still streaming no longer fits the window; an event reports it.

    Nothing is compressed now: finish or stop the stream, and add the message.

    Raises:
        NotFound: the conversation is not open.
    """
    case = case_of(conversation_id, record_directory(home))
    total = case.tokens + case.count(streamed)
    if total <= case.settings.window:
        return False
    emit(case, "stream-overflow-emergency", total_tokens=total, limit=case.settings.window)
    return True


@public
def take_snapshot(
    conversation_id: str,
    *,
    purpose: Literal["recovery", "rollback", "emergency"] = "rollback",
    home: Home = None,
) -> Snapshot:
    """Take a snapshot of a context, and return it; the newest five are kept, and five automatic ones.

    Raises:
        InvalidInput: there is no such purpose.
        NotFound: the conversation is not open.
    """
    require_one_of(purpose, PURPOSES, "a purpose", where="purpose")
    return _snapshot(case_of(conversation_id, record_directory(home)), purpose)


def _snapshot(case: Case, purpose: Purpose) -> Snapshot:
    now = clock.now()
    about = {"id": clock.new_id("snap", now), "purpose": purpose, "tokens": case.tokens}
    log = conversations.take_snapshot(case.record, case.log.id, about, now=now, read=case.log)
    emit(case, "snapshot-created", purpose=purpose)
    return next(snapshot for snapshot in reversed(log.snapshots) if snapshot.id == about["id"])


def _automatic_snapshot(case: Case) -> None:
    """Take a snapshot, unless the newest one is of a context as full as this."""
    snapshots = history.snapshots(case.log, most=case.limits.snapshots)
    if not snapshots or snapshots[-1].tokens < case.limits.snapshot * case.limit:
        _snapshot(case, "recovery")
        emit(case, "auto-snapshot-created")


@public
def snapshots(conversation_id: str, *, home: Home = None) -> list[Snapshot]:
    """Return the snapshots of a context that can be restored, newest first.

    Raises:
        NotFound: the conversation is not open.
    """
    case = case_of(conversation_id, record_directory(home))
    return history.snapshots(case.log, most=case.limits.snapshots)[::-1]


@public
def restore_context(
    conversation_id: str, snapshot_id: str | None = None, *, home: Home = None
) -> ContextStatus:
    """Make a context what it was at a snapshot, byte for byte, with its settings; by default at the newest.

    Later messages stay in the history. It is one step, which `undo_compaction` reverses.

    Raises:
        NotFound: the conversation is not open, or has no such snapshot.
    """
    record = record_directory(home)
    for tries_left in reversed(range(CONFLICT_TRIES)):
        case = case_of(conversation_id, record)
        snapshot = _snapshot_named(case, snapshot_id)
        places = {n: index for index, n in enumerate(case.log.context)}
        messages = history.messages(case.log, snapshot.context)
        entries = [(places.get(n), raw) for n, raw in zip(snapshot.context, messages, strict=True)]
        receipt = receipt_of(case, entries, snapshot.tokens)
        try:
            conversations.restore(record, conversation_id, snapshot, receipt, now=clock.now(), read=case.log)
            break
        except Conflict:
            if not tries_left:
                raise
    after = case_of(conversation_id, record)
    emit(after, "snapshot-restored", snapshot=snapshot.id)
    return _status(after)


def _snapshot_named(case: Case, snapshot_id: str | None) -> Snapshot:
    """Return the snapshot with this id, by default the newest.

    Raises:
        NotFound: the context has no such snapshot.
    """
    newest_first = history.snapshots(case.log, most=case.limits.snapshots)[::-1]
    for snapshot in newest_first:
        if snapshot_id in (None, snapshot.id):
            return snapshot
    name = f" {shown(snapshot_id)}" if snapshot_id else ""
    fix = "Take one: take_snapshot, or aether context snapshot."
    if newest_first:
        fix = f"Name one of {', '.join(snapshot.id for snapshot in newest_first)}."
    what = f"conversation {shown(case.log.id)} has no snapshot{name}."
    raise NotFound(what, fix=fix, where=str(case.log.path))


@public
def export_history(
    conversation_id: str,
    *,
    format: Literal["markdown", "json"] = "markdown",
    redact: bool = False,
    home: Home = None,
) -> str:
    """Return the whole history of a conversation: every message as it was added, and the record of each compression.

    With `redact` secrets are replaced, as for somebody else.

    Raises:
        InvalidInput: there is no such format.
        NotFound: there is no such conversation.
    """
    require_one_of(format, FORMATS, "a format", where="format")
    record = record_directory(home)
    log = load(record, conversation_id)
    if not log.lines:
        what = f"conversation {shown(conversation_id)} is not kept here."
        raise NotFound(what, fix='See what is kept with "aether compact show".', where=str(log.path))
    count = tokens.counting(log.settings.get("model", ""), place=record).count
    numbers = history.said(log)
    messages = convert.read(history.messages(log, numbers))
    sizes = dict(zip(numbers, (message_tokens(message, count) for message in messages), strict=True))
    export = _history_of(log, conversations.records_of(record, conversation_id), sizes)
    if redact:
        export = redacted(export, redaction_rules(home))
    return _as_markdown(export) if format == "markdown" else json.dumps(export, ensure_ascii=False, indent=2)


def _history_of(log: history.Log, records: Sequence[JsonObject], sizes: Mapping[int, int]) -> JsonObject:
    """Return the history in the records of a log: its messages in order, its checkpoints, and totals.

    `sizes` are the tokens of each added message, by number; messages that compactions made are left out.
    """
    messages = [
        {"n": record["n"], "at": record["at"], "message": record["message"]}
        for record in records if record.get("n") in sizes
    ]  # fmt: skip
    checkpoints = [
        {
            "id": work["id"], "timestamp": record["at"], "messageRange": work["range"],
            "originalTokens": work["tokens_before"], "compressedTokens": work["tokens"],
            "compressionRatio": round(min(1.0, work["tokens"] / max(1, work["tokens_before"])), 4),
            "level": work["level"], "kind": work["kind"],
        }
        for record in records if record.get("receipt", {}).get("kind") == "context"
        for work in record["receipt"]["works"]
    ]  # fmt: skip
    times = [record["at"] for record in records if "at" in record] or [""]
    return {
        "sessionId": log.id,
        "messages": messages,
        "checkpointRecords": checkpoints,
        "settings": log.settings,
        "metadata": {
            "startTime": times[0], "lastUpdate": times[-1], "totalMessages": len(messages),
            "totalTokens": sum(sizes[message["n"]] for message in messages),
            "compressionCount": history.compressions(log),
        },
    }  # fmt: skip


def _as_markdown(export: JsonObject) -> str:
    """Return the history as Markdown: information, the compressions, and the whole conversation."""
    about: dict[str, Any] = export["metadata"]
    lines = [
        f"# Session {export['sessionId']}", "", "## Session Information", "",
        f"- **Started:** {about['startTime']}", f"- **Last Updated:** {about['lastUpdate']}",
        f"- **Total Messages:** {about['totalMessages']}", f"- **Total Tokens:** {about['totalTokens']}",
        f"- **Compressions:** {about['compressionCount']}", "",
    ]  # fmt: skip
    if export["checkpointRecords"]:
        lines += ["## Compression History", ""]
    for checkpoint in export["checkpointRecords"]:
        level = checkpoint["level"]
        lines += [
            f"### Checkpoint {checkpoint['id']}", "", f"- **Time:** {checkpoint['timestamp']}",
            "- **Message Range:** {}-{}".format(*checkpoint["messageRange"]),
            f"- **Original Tokens:** {checkpoint['originalTokens']}",
            f"- **Compressed Tokens:** {checkpoint['compressedTokens']}",
            f"- **Compression Ratio:** {100 * checkpoint['compressionRatio']:.1f}%",
            f"- **Level:** {level} ({LEVEL_NAMES[level].capitalize()})", "",
        ]  # fmt: skip
    lines += ["## Conversation", ""]
    messages = convert.read([entry["message"] for entry in export["messages"]])
    for entry, message in zip(export["messages"], messages, strict=True):
        lines += [f"### {message.role.capitalize()} ({entry['at']})", "", _as_text(message), "", "---", ""]
    return "\n".join(lines)


def _as_text(message: Message) -> str:
    """Return all that a message says, with its calls and results in code blocks."""
    parts = []
    for block in message.blocks:
        if block.kind == "text":
            parts.append(block.text)
        elif block.kind in ("call", "result"):
            # The fence is longer than any run of backticks in the text.
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", block.text)), default=0))
            head = f"{block.kind.capitalize()} {block.tool}".rstrip()
            parts.append(f"{head}\n\n{fence}\n{block.text}\n{fence}")
        else:
            parts.append(f"[{block.kind}] {block.text}".rstrip())
    return "\n\n".join(parts)

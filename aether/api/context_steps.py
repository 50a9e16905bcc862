"""Steps of a context: read and count it, compress it, and make it smaller in an emergency, each step all or nothing.

Decisions are in `aether.conversation`; here the log is read, summaries are asked for, and one compaction step is recorded.
Messages that were counted are not counted again: they are known by their number in the log, which never changes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Literal, NamedTuple, cast

from aether import clock
from aether.api import goals, telemetry, tokens
from aether.api.conversations import RECORD_NAME, record_directory
from aether.api.home import Home
from aether.architects import backend as backend_of
from aether.architects.base import Settings
from aether.conversation import checkpoints as age
from aether.conversation import checks
from aether.conversation.checkpoint_levels import CheckpointText, Source, write_checkpoint
from aether.conversation.checkpoints import Room, View, WrittenCheckpoint
from aether.conversation.modes import mode_rules, prompt_limit, tier
from aether.conversation.receipts import step_receipt
from aether.conversation.shapes import (
    Action,
    Checkpoint,
    Compression,
    ContextSettings,
    EmergencyResult,
    Limits,
    LiveMessage,
    Mode,
    Progress,
    Purpose,
    SystemPart,
    Tier,
    TokenMetrics,
    Validation,
    Work,
)
from aether.conversation.steps import has_reasoning, shorten_blocks
from aether.conversation.summarise import Summarizer
from aether.errors import AetherError, Conflict, NotFound, public, shown
from aether.events import events as tell
from aether.messages import convert
from aether.messages.model import BlockKind, Message, ProviderFormat
from aether.messages.providers import PROVIDERS
from aether.store import config, conversations, files, history
from aether.store.conversations import load
from aether.store.history import Log
from aether.text.words import pluralize
from aether.tokens.count import message_tokens
from aether.types import Counter, Finding, JsonObject

# Of several processes that compress one conversation at once, each try completes one.
CONFLICT_TRIES = 16
# Contexts whose messages and counts stay in memory.
KEPT_CONTEXTS = 64
# A compression aims at no more of its trigger than this, or it would be needed again at once.
MOST_TARGET = 0.75
# Seconds that a model may take for one checkpoint, with all its tries.
CHECKPOINT_SECONDS = 30.0
# What a model has decided for a goal may take no more of a limit than this, with the goal: messages need room, too.
MOST_GOAL = 0.5
# Groups of messages that a rollover leaves, and what an emergency leaves of them if it has to go on.
ROLLOVER_KEEPS, AGGRESSIVE_KEEPS = 5, 1
# The reasons why a compression did not succeed, in the words of OLLM-CLI.
IN_PROGRESS = "Compression already in progress"
NOT_SMALLER = "Compression did not reduce token count"
NOT_WRITTEN = "Summarization failed"
NOT_VALID = "Compression failed validation"
FAILED = "Compression error"

Entries = Sequence[tuple[int | None, JsonObject]]
"""A new list of live messages, each with its position before; None for a new one."""


@dataclass
class Tally:
    """How often messages of one conversation were needed and counted, since this process first read it."""

    hits: int = 0
    misses: int = 0
    recalculations: int = 0
    tokens: int = 0
    since: float = field(default_factory=monotonic)


class LogReading(NamedTuple):
    """The messages of one conversation that were read and counted, by their number in its log."""

    log: Log
    counter: tuple[Any, ...]
    """What the counts depend on, beside the format."""
    provider: ProviderFormat
    messages: dict[int, LiveMessage]
    view: View
    tally: Tally


class Case(NamedTuple):
    """One conversation, with everything looked up and counted that a decision needs."""

    record: Path
    log: Log
    settings: ContextSettings
    limits: Limits
    tier: Tier
    limit: int
    count: Counter
    counter: str
    provider: ProviderFormat
    view: View
    system: list[SystemPart]
    room: Room
    findings: tuple[Finding, ...]
    tools: tuple[JsonObject, ...] | None
    """The schemas that are sent; None for a model without tools, which gets calls and results as text."""

    @property
    def tokens(self) -> int:
        return self.room.beside + sum(message.tokens for message in self.view.live)

    @property
    def key(self) -> tuple[Path, str]:
        return self.record, self.log.id


_READINGS: OrderedDict[tuple[Path, str], LogReading] = OrderedDict()
_BUSY: set[tuple[Path, str]] = set()


def require_open(log: Log) -> None:
    if not log.settings:
        what = f"conversation {shown(log.id)} is not open as a context."
        raise NotFound(
            what, fix="Open it first: open_context with a window, or aether chat.", where=str(log.path)
        )


def case_of(conversation_id: str, record: Path) -> Case:
    """Look up and count everything that a decision needs; messages that were counted are not counted again.

    Raises:
        NotFound: the conversation is not open.
    """
    log = load(record, conversation_id)
    require_open(log)
    settings = _settings(log.settings)
    counting = tokens.counting(settings.model, place=record)
    served = tokens.served_model(record, settings.model)
    has_tools = served.tools if settings.tool_support is None else settings.tool_support
    stated = settings.provider if settings.provider in PROVIDERS else None
    reading = _read_log(record, log, counting.count, stated, (counting.counter, counting.factor, has_tools))
    key = (record, conversation_id)
    _READINGS[key] = reading
    _READINGS.move_to_end(key)
    if len(_READINGS) > KEPT_CONTEXTS:
        _READINGS.popitem(last=False)
    limit = prompt_limit(settings.window, tokens.context_profiles(record, settings.model))
    goal = _current_goal(
        lambda: goals.prompt_text(lambda text: counting.count(text) <= limit * MOST_GOAL, home=record), record
    )
    system = checks.system_parts(settings, mode_text=mode_rules(settings.mode).prompt, goals=goal)
    tools = settings.tools if has_tools else None
    beside = checks.beside_tokens(system, tools or (), counting.count)
    findings = tuple(finding for finding in counting.findings if finding.code != "unknown-model")
    compress = config.or_default(record).context_compress_pct
    limits = Limits(compress=compress, target=min(Limits().target, MOST_TARGET * compress))
    return Case(
        record, log, settings, limits, tier(settings.window), limit, counting.count,
        counting.label, reading.provider, reading.view, system,
        Room(limit, beside, age.heading_tokens(counting.count)), findings, tools,
    )  # fmt: skip


def _current_goal(text: Callable[[], str], record: Path) -> str:
    """Return the current goal of the home; a directory of conversations without a home has none."""
    if record.name == RECORD_NAME:
        return ""
    try:
        return text()
    except NotFound:
        return ""


def emit(case: Case, name: str, *, status: Literal["ok", "error"] = "ok", **properties: Any) -> None:
    """Hand an event of a context to the exporter of the home, if it has one."""
    exporter = telemetry.exporter_of(case.record)
    if exporter:
        settings = case.settings
        index = tell.Moment(
            clock.stamp(clock.now()), case.log.id, settings.model, case.tokens, settings.window
        )
        exporter.emit(tell.context_event(index, name, status=status, **properties))


def _settings(values: JsonObject) -> ContextSettings:
    return ContextSettings(
        values["window"], values.get("model", ""), cast("Mode", values.get("mode", "assistant")), values.get("system", ""),
        values.get("provider", ""), tuple(values.get("tools", ())), tuple(values.get("parts", {}).items()),
        values.get("tool_support"),
    )  # fmt: skip


def _read_log(
    record: Path, log: Log, count: Counter, stated: ProviderFormat | None, counter: tuple[Any, ...]
) -> LogReading:
    """Return the live messages, of which only those are read and counted that were not before."""
    before = _READINGS.get((record, log.id))
    tally = before.tally if before else Tally()
    if before and before.log is log and before.counter == counter:
        tally.hits += len(log.context)
        return before
    messages: dict[int, LiveMessage] = {}
    if before and before.log.inode == log.inode and before.counter == counter:
        messages = {n: before.messages[n] for n in log.context if n in before.messages}
    new = [n for n in log.context if n not in messages]
    raws = history.messages(log, new)
    provider = stated or convert.detect_format(
        raws, after=before.provider if before and messages else "plain"
    )
    if before and messages and provider != before.provider:
        messages, new = {}, list(log.context)
        raws = history.messages(log, new)
        provider = stated or convert.detect_format(raws)
    messages_read = convert.read(raws, provider, after=[live.message for live in messages.values()])
    for n, message in zip(new, messages_read, strict=True):
        sent = message if counter[-1] else convert.without_tools(message)
        size = message_tokens(sent, count) if sent else 0
        checkpoint = age.checkpoint_of(message, size) if log.derived[n - 1] else None
        mentions = checkpoint is None and checks.mentions_stored(message)
        messages[n] = LiveMessage(_origin(log, n), message, size, checkpoint, mentions)
    tally.hits += len(log.context) - len(new)
    tally.misses += len(new)
    tally.recalculations += sum(n in before.messages for n in new) if before else 0
    tally.tokens += sum(messages[n].tokens for n in new)
    view = age.view([messages[n] for n in log.context])
    return LogReading(log, counter, provider, messages, view, tally)


def token_metrics(case: Case) -> TokenMetrics:
    """Return how the messages of a context were counted by this process."""
    tally, sizes = _READINGS[case.key].tally, [message.tokens for message in case.view.live]
    return TokenMetrics(
        tally.hits, tally.misses, tally.recalculations, tally.tokens, max(sizes, default=0),
        round(sum(sizes) / len(sizes), 1) if sizes else 0.0, round(monotonic() - tally.since, 3),
    )  # fmt: skip


def _origin(log: Log, n: int) -> int:
    """Return the number of the added message that `n` is a copy of, or the newest that it replaced."""
    while step := log.derived[n - 1]:
        compaction = log.compactions[step - 1]
        places = compaction.receipt.get("places", ())
        place = next(
            (place for after, place in zip(compaction.after, places, strict=False) if after == n), None
        )
        if place is None:
            source = max({*compaction.before}.difference(compaction.after), default=0)
        else:
            source = compaction.before[place]
        if not 0 < source < n:
            return n
        n = source
    return n


def validation(case: Case, view: View | None = None) -> Validation:
    return checks.validate(
        view or case.view, beside=case.room.beside, limit=case.limit, tier=case.tier, limits=case.limits,
        system=sum(case.count(part.text) for part in case.system),
    )  # fmt: skip


def checkpoints_of(view: View) -> list[Checkpoint]:
    return age.checkpoints_in(view, view.checkpoints)


@public
def compress_context(
    conversation_id: str,
    *,
    backend: str | Summarizer | None = None,
    progress: Progress | None = None,
    home: Home = None,
) -> Compression:
    """Compress a context now, however full it is: older messages become a checkpoint, older checkpoints age.

    All of it is one step, or nothing: a result without success has a reason, and everything is as it was. `backend` is
    the name of a backend, or a function of the caller; its default is that of the configuration, `extractive` without
    one. `progress` gets each stage.

    Raises:
        InvalidInput: there is no such backend.
        NotFound: the conversation is not open.
    """
    record = record_directory(home)
    return compress(conversation_id, record, works=_plan(by_hand=True), backend=backend, progress=progress)


def compress_by_itself(conversation_id: str, record: Path, progress: Progress | None = None) -> Compression:
    """Compress a context because it is full: as much stays whole as there is room for."""
    return compress(conversation_id, record, works=_plan(by_hand=False), progress=progress)


def refit(case: Case) -> None:
    """Fit a context whose limit grew: steps in the log that the larger limit does not need are taken back.

    It becomes what it was before the oldest of its newest steps that leaves a context below the target. If the context
    before that one is too large, and this one fills less than half of the target, that one is compressed again. Both are
    one step that can be undone. Nothing that fails is raised.
    """
    most = int(case.limits.target * case.limit)
    earlier, tokens, chosen, is_over = case.log, case.tokens, case.log, False
    while earlier.open and not is_over:
        context = history.undone(earlier, 0).context
        earlier = earlier._replace(context=context, open=earlier.open[:-1])
        reading = _read_log(case.record, earlier, case.count, case.provider, _READINGS[case.key].counter)
        size = case.room.beside + reading.view.tokens(range(len(context)))
        is_over = size > most
        if tokens < size <= most or (is_over and tokens < most // 2):
            chosen, tokens = earlier, size
    if chosen is case.log:
        return
    places = {n: index for index, n in enumerate(case.log.context)}
    raws = history.messages(case.log, chosen.context)
    entries = [(places.get(n), raw) for n, raw in zip(chosen.context, raws, strict=True)]
    state = history.Snapshot(
        "", "", "recovery", tuple(chosen.context), case.log.settings, tokens, history.compressions(chosen)
    )
    with suppress(AetherError):
        receipt = receipt_of(case, entries, tokens)
        conversations.restore(case.record, case.log.id, state, receipt, now=clock.now(), read=case.log)
        if tokens > most:
            compress_by_itself(case.log.id, case.record)


Works = Callable[[Case], tuple[Sequence[Work], str]]


def _plan(*, by_hand: bool) -> Works:
    def works(case: Case) -> tuple[Sequence[Work], str]:
        number = history.compressions(case.log) + 1
        return age.plan(
            case.view, case.room, tier=case.tier, number=number, limits=case.limits, by_hand=by_hand
        )

    return works


def compress(
    conversation_id: str, record: Path, *, works: Works, backend: str | Summarizer | None = None,
    progress: Progress | None = None, purpose: Purpose = "recovery",
) -> Compression:  # fmt: skip
    """Plan, ask for the summaries, and record; if another process changed the conversation meanwhile, plan again."""
    case = case_of(conversation_id, record)
    settings = config.or_default(record)
    author = _Author(
        backend or settings.compact_backend,
        Settings(model=settings.compact_model, timeout_seconds=CHECKPOINT_SECONDS),
        {},
    )
    if isinstance(author.backend, str):
        backend_of(author.backend)  # an unknown name is a mistake of the caller, not a failure of a backend
    if case.key in _BUSY:
        return _failure(case, IN_PROGRESS)
    report = _Report(case, progress)
    _BUSY.add(case.key)
    emit(case, "block-user-input", reason="compression")
    try:
        return _compress_with_retries(case, works, author, report, purpose)
    except AetherError as reason:
        report("Error", 100, reason.what)
        return _failure(case, FAILED, str(reason))
    finally:
        _BUSY.discard(case.key)
        emit(case, "unblock-user-input")


class _Author(NamedTuple):
    """Who writes summaries, and those that were written before another process interfered."""

    backend: str | Summarizer
    settings: Settings
    texts: dict[tuple[Any, ...], CheckpointText]


class _Report:
    """Progress that never falls, to the exporter and to a function of the caller, whose failures are its own."""

    def __init__(self, case: Case, progress: Progress | None) -> None:
        self.case = case
        self.progress = progress
        self.percent = 0

    def __call__(self, stage: str, percent: int, message: str) -> None:
        self.percent = max(self.percent, percent)
        emit(self.case, "checkpoint-progress", stage=stage, percent=self.percent, message=message)
        if self.progress:
            with suppress(Exception):
                self.progress(stage, self.percent, message)


def _compress_with_retries(
    case: Case, works: Works, author: _Author, report: _Report, purpose: Purpose
) -> Compression:
    for tries_left in reversed(range(CONFLICT_TRIES)):
        report("Identification", 15, "Choosing the messages to compress")
        planned, reason = works(case)
        if not planned:
            report("Complete", 100, reason)
            emit(case, "compression-skipped", reason=reason)
            return Compression(False, reason, case.tokens, case.tokens, validation(case))
        report("Preparation", 25, f"{pluralize(len(planned), 'summaries')} to write")
        try:
            return _carry_out(case, planned, author, report, purpose)
        except Conflict:
            if not tries_left:
                raise
        case = case_of(case.log.id, case.record)
    raise AssertionError


def _failure(case: Case, reason: str, error: str = "") -> Compression:
    emit(case, "checkpoint-failed", status="error", reason=reason, error=error)
    emit(case, "compression-error", status="error", reason=reason)
    return Compression(False, reason, case.tokens, case.tokens, validation(case), error=error)


def _carry_out(
    case: Case, works: Sequence[Work], author: _Author, report: _Report, purpose: Purpose
) -> Compression:
    """Write the summaries, build the new context, check it, and record it as one step."""
    written: list[WrittenCheckpoint] = []
    emit(case, "checkpoint-started", summaries=len(works))
    for nth, work in enumerate(works):
        report("Summarization", 25 + 45 * nth // len(works), f"Summary {nth + 1} of {len(works)}")
        checkpoint = _write(case, work, author, partial(report, "Summarization", 25 + 45 * nth // len(works)))
        if checkpoint:
            written.append(checkpoint)
        elif work.kind in ("create", "roll"):
            report("Error", 100, NOT_WRITTEN)
            return _failure(case, NOT_WRITTEN)
    report("Summarization", 70, "All summaries are written")
    report("Checkpoint Creation", 80, pluralize(len(written), "checkpoints"))
    entries = age.rebuilt(case.view, written)
    report("Context Update", 90, "Building the context")
    view = _view_of(case, entries, written)
    after = case.room.beside + sum(message.tokens for message in view.live)
    reason, error = NOT_SMALLER if after >= case.tokens else "", age.faults(checkpoints_of(view))
    if reason or error:
        report("Error", 100, reason or NOT_VALID)
        return _failure(case, reason or NOT_VALID, error)
    step = _record(case, entries, written, after, purpose)
    report("Validation", 100, f"{case.tokens} -> {after} tokens")
    for checkpoint in written:
        apply_markers(checkpoint.answer, case.record, proposed=True)
    compression = Compression(
        True, "", case.tokens, after, validation(case, view),
        next((item.checkpoint for item in written if item.work.kind in ("create", "roll")), None),
        tuple(item.checkpoint.id for item in written if item.work.kind == "age"),
        tuple(name for item in written if item.work.kind == "merge" for name in _checkpoint_ids(case, item.work)), step,
        findings=tuple(_failures(case, author)),
    )  # fmt: skip
    _emit_compression(case, compression, works)
    return compression


def apply_markers(text: str, record: Path, *, proposed: bool = False) -> None:
    """Apply the markers in a model's text to the goal of the home; the conversation does not depend on them."""
    if "[" in text and record.name != RECORD_NAME:
        with suppress(AetherError):
            goals.apply_markers(text, proposed=proposed, home=record)


def _emit_compression(case: Case, compression: Compression, works: Sequence[Work]) -> None:
    sizes: JsonObject = {
        "tokens_before": compression.tokens_before, "tokens_after": compression.tokens_after,
    }  # fmt: skip
    checkpoint = compression.checkpoint
    emit(case, "snapshot-created", purpose="recovery")
    if checkpoint:
        emit(case, "auto-summary-created", checkpoint=checkpoint.id, tokens=checkpoint.tokens)
    for name in compression.aged:
        emit(case, "checkpoint-aged", checkpoint=name)
    if any(work.kind == "roll" for work in works):
        emit(case, "rollover-complete", **sizes)
    emit(case, "checkpoint-completed", step=compression.step, **sizes)
    emit(case, f"tier{case.tier.number}-compressed", **sizes)
    emit(case, "compressed", **sizes)


def _checkpoint_ids(case: Case, work: Work) -> tuple[str, ...]:
    return tuple(checkpoint.id for checkpoint in age.checkpoints_in(case.view, work.checkpoints))


def _failures(case: Case, author: _Author) -> Iterator[Finding]:
    """Yield a finding for each kind of failure of the model that was asked for summaries."""
    failures = (failure for text in author.texts.values() for failure in text.failures)
    for backend, message in dict.fromkeys((str(each["backend"]), str(each["message"])) for each in failures):
        what = f"{backend} failed: {message} The text was selected without a model."
        yield Finding(
            "warning", "summarizer-failed", case.log.id, what, "Check that it answers, then compress again."
        )


def _write(
    case: Case, work: Work, author: _Author, report: Callable[[str], None]
) -> WrittenCheckpoint | None:
    """Return the checkpoint of one piece of work; None if nothing smaller than its input could be written."""
    old = age.checkpoints_in(case.view, work.checkpoints)
    previous = "\n\n".join(
        f"[Segment {nth}] {checkpoint_text.summary}" if len(old) > 1 else checkpoint_text.summary
        for nth, checkpoint_text in enumerate(old, 1)
    )
    messages = [case.view.live[index].message for index in work.messages]
    key = (previous, *(case.view.live[index].number for index in work.messages), work.level, work.most_tokens)
    if key not in author.texts:
        goal = _current_goal(lambda: goals.guidance(home=case.record), case.record)
        author.texts[key] = write_checkpoint(
            Source(messages, previous, case.settings.mode, goal), level=work.level, backend=author.backend,
            settings=author.settings, count=case.count, most=work.most_tokens,
            waiting=lambda seconds: report(
                f"No answer for {seconds:.0f} s; without one in {CHECKPOINT_SECONDS:.0f} s the text is selected without a model"
            ),
        )  # fmt: skip
        for failure in author.texts[key].failures:
            report(f"{failure['backend']} failed: {failure['message']} The text was selected without a model")
    written = author.texts[key]
    if not written.text:
        return None
    now = clock.now()
    checkpoint = Checkpoint(
        work.id or clock.new_id("merged" if work.kind == "merge" else "ckpt", now), work.level, 0,
        work.compression_number, work.message_range, written.text, old[0].created_at if work.id else clock.stamp(now),
        clock.stamp(now) if old else None, str(written.record.get("model") or written.record.get("backend") or ""),
        case.settings.mode, work.covers, work.tokens_before,
    )  # fmt: skip
    raw = age.checkpoint_message(checkpoint, case.provider)
    size = message_tokens(convert.message(raw, case.provider), case.count)
    if old and not messages and size >= case.view.tokens(work.checkpoints):
        return None
    unproven = written.record.get("unproven", 0)
    return WrittenCheckpoint(work, checkpoint._replace(tokens=size), raw, written.answer, unproven)


def _view_of(case: Case, entries: Entries, written: Sequence[WrittenCheckpoint]) -> View:
    """Return the view that a new list of messages will have."""
    by_id = {id(item.raw): item.checkpoint for item in written}
    live = []
    for place, raw in entries:
        if place is not None:
            live.append(case.view.live[place])
        else:
            checkpoint = by_id[id(raw)]
            message = convert.message(raw, case.provider)
            live.append(LiveMessage(0, message, checkpoint.tokens, checkpoint))
    return age.view(live)


def _record(
    case: Case, entries: Entries, written: Sequence[WrittenCheckpoint], after: int, purpose: Purpose
) -> int:
    """Record one compression as a compaction step, with a snapshot before it, and return the step."""
    now = clock.now()
    works = [
        {
            "kind": item.work.kind, "id": item.checkpoint.id, "level": item.checkpoint.level, "tokens": item.checkpoint.tokens,
            "tokens_before": item.work.tokens_before, "from": list(_checkpoint_ids(case, item.work)),
            "range": list(item.checkpoint.message_range), "unproven": item.unproven,
        }
        for item in written
    ]  # fmt: skip
    return conversations.record_compaction(
        case.record, case.log.id, before=[message.message.raw for message in case.view.live],
        after=[raw for _, raw in entries], places=[place for place, _ in entries],
        receipt=receipt_of(case, entries, after) | {"kind": "context", "works": works}, now=now, read=case.log,
        snapshot={"id": clock.new_id("snap", now), "purpose": purpose, "tokens": case.tokens},
    )  # fmt: skip


def receipt_of(case: Case, entries: Entries, after: int) -> JsonObject:
    """Return the receipt of a step that replaces the live messages by `entries` of so many tokens."""
    settings = case.settings
    return step_receipt(
        case.log.id, at=clock.stamp(clock.now()),
        before=[files.json_line(message.message.raw) for message in case.view.live],
        after=[files.json_line(raw) for _, raw in entries], places=[place for place, _ in entries],
        tokens_before=case.tokens, tokens_after=after, counter=case.counter, policy={"name": "context"},
        effective={"window": settings.window, "limit": case.limit, "tier": case.tier.number, "mode": settings.mode},
        trigger=f"{case.tokens} of {case.limit} tokens", protected=case.view.fixed,
    )._asdict()  # fmt: skip


@public
def emergency(
    conversation_id: str,
    *,
    backend: str | Summarizer | None = None,
    most: int | None = None,
    home: Home = None,
) -> tuple[EmergencyResult, ...]:
    """Make a context smaller by stronger and stronger actions, until it has at most `most` tokens, and return them.

    The largest checkpoint becomes compact, then checkpoints are merged, then everything but the newest messages is rolled
    over into one checkpoint, then the user's messages too, and texts that are still too long are shortened, with the
    number under which the recall tool reads them. Finally reasoning is removed, and finished calls and their results
    become text. A snapshot is taken before each. Failures are not raised.

    Raises:
        NotFound: the conversation is not open.
    """
    return make_smaller(conversation_id, record_directory(home), most=most, backend=backend)


def make_smaller(
    conversation_id: str, record: Path, *, most: int | None = None, backend: str | Summarizer | None = None
) -> tuple[EmergencyResult, ...]:
    """Take the actions of `emergency` for a conversation in the directory `record`."""
    case = case_of(conversation_id, record)
    most = min(case.limit, most or int(case.limits.compress * case.limit))
    results: list[EmergencyResult] = []
    for action, works in _actions(most):
        if case.tokens <= most:
            break
        if not works(case)[0]:
            continue
        kind = "rollover" if action == "rollover" else "compression"
        emit(case, f"emergency-{kind}-started", action=action)
        compression = compress(
            conversation_id, record, works=works, backend=backend or "extractive", purpose="emergency"
        )
        case = case_of(conversation_id, record)
        snapshots = history.snapshots(case.log)[-1:] if compression.success else []
        result = EmergencyResult(
            action, compression.success, max(0, compression.freed_tokens), snapshots[0].id if snapshots else "",
            compression.error or compression.reason,
        )  # fmt: skip
        emit(
            case,
            f"emergency-{kind}-completed",
            action=action,
            success=result.success,
            freed=result.tokens_freed,
        )
        results.append(result)
    for replacements in (_shortened, _worded, _shortened):
        # The room for the next message is not worth what a model thought, nor the form of its calls; a prompt that fits is.
        if case.tokens > (most if replacements is _shortened or not results else case.limit):
            results += _replace(case, replacements(case, most))
            case = case_of(conversation_id, record)
    return tuple(results)


def _actions(most: int) -> list[tuple[Action, Works]]:
    """Return the actions in order, with summaries for a context of at most `most` tokens."""

    def works(plan: Callable[[Case, Room], Sequence[Work]]) -> Works:
        return lambda case: (plan(case, case.room._replace(limit=most)), "")

    def rollover(keep: int) -> Works:
        return works(
            lambda case, room: age.rolled_over(
                case.view, room, case.limits, keep=keep, number=history.compressions(case.log) + 1
            )
        )

    return [
        ("compress", works(lambda case, room: age.largest_to_compact(case.view, room, case.limits))),
        ("merge", works(lambda case, room: age.all_merged(case.view, room, case.limits))),
        ("rollover", rollover(ROLLOVER_KEEPS)),
        ("aggressive-summarization", rollover(AGGRESSIVE_KEEPS)),
    ]


def _shortened(case: Case, most: int) -> Mapping[int, Message | None]:
    """Return the messages with shorter texts, the largest first."""

    def shorten(message: Message, number: int, size: int) -> tuple[Message, int] | None:
        # Reasoning belongs to the very call that follows it.
        kinds: tuple[BlockKind, ...] = ("result",) if has_reasoning(message) else ("text", "result", "call")
        shorter = shorten_blocks(
            message, kinds, at=0, most=size, count=case.count, pointer=f"tool recall n={number}"
        )
        return (shorter.message, shorter.tokens) if shorter else None

    return age.shortened_texts(case.view, case.tokens - most, shorten=shorten)


def _worded(case: Case, _most: int) -> Mapping[int, Message | None]:
    """Return messages without reasoning, and finished calls and results as text, which can be shortened further."""
    return age.without_reasoning(case.view)


def _replace(case: Case, messages: Mapping[int, Message | None]) -> list[EmergencyResult]:
    """Record messages in the place of others, by position, None for none."""
    entries: list[tuple[int | None, JsonObject]] = []
    after = case.room.beside
    for index, live in enumerate(case.view.live):
        message = messages.get(index, live.message)
        if message is not None:
            entries.append((index, message.raw))
            after += message_tokens(message, case.count) if index in messages else live.tokens
    if not messages:
        return []
    try:
        _record(case, entries, [], after, "emergency")
    except AetherError as reason:
        return [EmergencyResult("aggressive-summarization", False, 0, "", str(reason))]
    snapshots = history.snapshots(load(case.record, case.log.id))
    freed = max(0, case.tokens - after)
    return [EmergencyResult("aggressive-summarization", True, freed, snapshots[-1].id)]

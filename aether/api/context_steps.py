"""Steps of a context: read and count it, compress it, and make it smaller in an emergency, each step all or nothing.

Decisions are in `aether.conversation`; here the log is read, summaries are asked for, and one compaction step is recorded.
Messages that were counted are not counted again: they are known by their number in the log, which never changes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Literal, NamedTuple, cast

from aether import clock
from aether.api import goals, telemetry, tokens
from aether.api.compact import messages_checksum
from aether.api.conversations import RECORD_NAME, record_directory
from aether.api.home import Home
from aether.api.summarize import Summarizer, WrittenSummary, write_checkpoint
from aether.architects import backend as backend_of
from aether.architects.base import Settings
from aether.conversation import checkpoints as steps
from aether.conversation import checks
from aether.conversation.checkpoints import Room, View, Written
from aether.conversation.modes import mode_rules
from aether.conversation.partition import cut_prose
from aether.conversation.shapes import (
    Action,
    Checkpoint,
    Compression,
    ContextSettings,
    EmergencyResult,
    Held,
    Limits,
    Mode,
    Progress,
    Purpose,
    Receipt,
    SystemPart,
    Tier,
    TokenMetrics,
    Validation,
    Work,
)
from aether.conversation.steps import shorten_blocks
from aether.conversation.tiers import prompt_limit, tier
from aether.errors import AetherError, Conflict, NotFound, public, shown
from aether.events import events as tell
from aether.messages import convert
from aether.messages.model import PROVIDER_FORMATS, BlockKind, Message, ProviderFormat
from aether.store import config, conversations, history
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
IN_PROGRESS = "Compression already in progress"
NOT_SMALLER = "Compression did not reduce token count"
NOT_WRITTEN = "Summarization failed"
NOT_VALID = "Compression failed validation"
FAILED = "Compression error"


class Known(NamedTuple):
    """The messages of one conversation that were read and counted, by their number in its log."""

    key: tuple[Any, ...]
    """What the counts depend on: the file, the counter and the format."""
    held: dict[int, Held]
    log: Log
    view: View
    tally: Tally


@dataclass
class Tally:
    """How often messages of one conversation were needed and counted, since this process first read it."""

    hits: int = 0
    misses: int = 0
    recalculations: int = 0
    tokens: int = 0
    since: float = field(default_factory=monotonic)


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
        return self.room.beside + sum(held.tokens for held in self.view.live)

    @property
    def key(self) -> tuple[Path, str]:
        return self.record, self.log.id


_KNOWN: OrderedDict[tuple[Path, str], Known] = OrderedDict()
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
    stated = settings.provider if settings.provider in PROVIDER_FORMATS else None
    asked = config.or_default(record)
    served = tokens.served_model(record, settings.model)
    calls = served.tools if settings.tool_support is None else settings.tool_support
    known = _read_again(record, log, counting.count, stated, (counting.counter, counting.factor, calls))
    key = (record, conversation_id)
    _KNOWN[key] = known
    _KNOWN.move_to_end(key)
    if len(_KNOWN) > KEPT_CONTEXTS:
        _KNOWN.popitem(last=False)
    limit = prompt_limit(settings.window, tokens.context_profiles(record, settings.model))
    system = checks.system_parts(
        settings, mode_text=mode_rules(settings.mode).prompt,
        goals=_goal(partial(goals.prompt_text, lambda text: counting.count(text) <= limit * MOST_GOAL), record),
    )  # fmt: skip
    tools = settings.tools if calls else None
    beside = checks.beside_tokens(system, tools or (), counting.count)
    doubts = tuple(one for one in counting.findings if one.code != "unknown-model")
    return Case(
        record, log, settings, _limits(asked), tier(settings.window), limit, counting.count, counting.label, known.key[-1],
        known.view, system, Room(limit, beside, steps.heading_tokens(counting.count)), doubts, tools,
    )  # fmt: skip


def _limits(asked: config.Config) -> Limits:
    """Return the thresholds, with the share that compresses from the configuration."""
    compress = asked.context_compress_pct
    return Limits(compress=compress, target=min(Limits().target, MOST_TARGET * compress))


def _goal(text: Callable[..., str], record: Path) -> str:
    """Return the current goal of the home; a directory of conversations without a home has none."""
    if record.name == RECORD_NAME:
        return ""
    try:
        return text(home=record)
    except NotFound:
        return ""


def emit(case: Case, name: str, *, status: Literal["ok", "error"] = "ok", **properties: Any) -> None:
    """Hand an event of a context to the exporter of the home, if it has one."""
    exporter = telemetry.exporter_of(case.record)
    if exporter:
        settings = case.settings
        at = tell.Moment(clock.stamp(clock.now()), case.log.id, settings.model, case.tokens, settings.window)
        exporter.emit(tell.context_event(at, name, status=status, **properties))


def _settings(held: JsonObject) -> ContextSettings:
    return ContextSettings(
        held["window"], held.get("model", ""), cast("Mode", held.get("mode", "assistant")), held.get("system", ""),
        held.get("provider", ""), tuple(held.get("tools", ())), tuple(held.get("parts", {}).items()), held.get("tool_support"),
    )  # fmt: skip


def _read_again(
    record: Path, log: Log, count: Counter, stated: ProviderFormat | None, counter: tuple[Any, ...]
) -> Known:
    """Return the live messages, of which only those are read and counted that were not before."""
    known = _KNOWN.get((record, log.id))
    tally = known.tally if known else Tally()
    if known and known.log is log and known.key[1:-1] == counter:
        tally.hits += len(log.context)
        return known
    same = known and known.key[:-1] == (log.inode, *counter)
    held = {n: known.held[n] for n in log.context if n in known.held} if known and same else {}
    new = [n for n in log.context if n not in held]
    raws = history.messages(log, new)
    before: ProviderFormat = known.key[-1] if known and held else "plain"
    found_format = stated or convert.detect_format(raws, after=before)
    if held and found_format != before:
        held, new = {}, list(log.context)
        raws = history.messages(log, new)
        found_format = stated or convert.detect_format(raws)
    read = convert.read(raws, found_format, after=[one.message for one in held.values()])
    for n, message in zip(new, read, strict=True):
        sent = message if counter[-1] else convert.without_tools(message)
        size = message_tokens(sent, count) if sent else 0
        found = steps.checkpoint_of(message, size) if log.derived[n - 1] else None
        held[n] = Held(
            _origin(log, n), message, size, found, found is None and checks.mentions_stored(message)
        )
    tally.hits += len(log.context) - len(new)
    tally.misses += len(new)
    tally.recalculations += sum(n in known.held for n in new) if known else 0
    tally.tokens += sum(held[n].tokens for n in new)
    view = steps.view([held[n] for n in log.context])
    return Known((log.inode, *counter, found_format), held, log, view, tally)


def token_metrics(case: Case) -> TokenMetrics:
    """Return how the messages of a context were counted by this process."""
    tally, sizes = _KNOWN[case.key].tally, [held.tokens for held in case.view.live]
    return TokenMetrics(
        tally.hits, tally.misses, tally.recalculations, tally.tokens, max(sizes, default=0),
        round(sum(sizes) / len(sizes), 1) if sizes else 0.0, round(monotonic() - tally.since, 3),
    )  # fmt: skip


def _origin(log: Log, n: int) -> int:
    """Return the number of the message that was added of which message `n` is a copy, or the newest that it replaced."""
    while step := log.derived[n - 1]:
        done = log.compactions[step - 1]
        places = dict(zip(done.after, done.receipt.get("places", ()), strict=False))
        place = places.get(n)
        replaced = [each for each in done.before if each not in done.after]
        following = done.before[place] if place is not None else max(replaced, default=0)
        if not 0 < following < n:
            return n
        n = following
    return n


def validation(case: Case, view: View | None = None) -> Validation:
    return checks.validate(
        view or case.view, beside=case.room.beside, limit=case.limit, tier=case.tier, limits=case.limits,
        system=sum(case.count(part.text) for part in case.system),
    )  # fmt: skip


def checkpoints_of(view: View) -> list[Checkpoint]:
    return [found for at in view.checkpoints if (found := view.live[at].checkpoint)]


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
    return compress(conversation_id, record, backend=backend, progress=progress, works=_planned(by_hand=True))


def compress_by_itself(conversation_id: str, record: Path, progress: Progress | None = None) -> Compression:
    """Compress a context because it is full: as much stays whole as there is room for."""
    return compress(conversation_id, record, works=_planned(by_hand=False), progress=progress)


Works = Callable[[Case], tuple[Sequence[Work], str]]


def _planned(*, by_hand: bool) -> Works:
    def works(case: Case) -> tuple[Sequence[Work], str]:
        made = steps.plan(
            case.view, case.room, tier=case.tier, number=history.compressions(case.log) + 1, limits=case.limits,
            by_hand=by_hand,
        )  # fmt: skip
        return made.works, made.reason

    return works


def compress(
    conversation_id: str, record: Path, *, works: Works, backend: str | Summarizer | None = None,
    progress: Progress | None = None, purpose: Purpose = "recovery",
) -> Compression:  # fmt: skip
    """Plan, ask for the summaries, and record; if another process changed the conversation meanwhile, plan again."""
    case = case_of(conversation_id, record)
    author = _author(case, backend)
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


def _compress_with_retries(
    case: Case, works: Works, author: _Author, report: _Report, purpose: Purpose
) -> Compression:
    asked: dict[tuple[Any, ...], WrittenSummary] = {}
    for left in reversed(range(CONFLICT_TRIES)):
        report("Identification", 15, "Choosing the messages to compress")
        found, reason = works(case)
        if not found:
            report("Complete", 100, reason)
            emit(case, "compression-skipped", reason=reason)
            return _failure(case, reason, silent=True)
        report("Preparation", 25, f"{pluralize(len(found), 'summaries')} to write")
        try:
            return _carried_out(case, found, author._replace(asked=asked), report, purpose)
        except Conflict:
            if not left:
                raise
        case = case_of(case.log.id, case.record)
    raise AssertionError


class _Report:
    """Progress that never falls, to the exporter and to a function of the caller, whose failures are its own."""

    def __init__(self, case: Case, progress: Progress | None) -> None:
        self.case = case
        self.progress = progress
        self.reached = 0

    def __call__(self, stage: str, percent: int, message: str) -> None:
        self.reached = max(self.reached, percent)
        emit(self.case, "checkpoint-progress", stage=stage, percent=self.reached, message=message)
        if self.progress:
            with suppress(Exception):
                self.progress(stage, self.reached, message)


def _failure(case: Case, reason: str, error: str = "", *, silent: bool = False) -> Compression:
    if not silent:
        emit(case, "checkpoint-failed", status="error", reason=reason, error=error)
        emit(case, "compression-error", status="error", reason=reason)
    return Compression(False, reason, case.tokens, case.tokens, validation(case), error=error)


class _Author(NamedTuple):
    """Who writes summaries, and the ones that were written before another process interfered."""

    backend: str | Summarizer
    settings: Settings
    asked: dict[tuple[Any, ...], WrittenSummary] = {}  # noqa: RUF012 - a NamedTuple default, never mutated


def _author(case: Case, backend: str | Summarizer | None) -> _Author:
    settings = config.or_default(case.record)
    asked = backend or settings.compact_backend
    if isinstance(asked, str):
        backend_of(asked)  # an unknown name is a mistake of the caller, not a failure of a backend
    return _Author(asked, Settings(model=settings.compact_model, timeout_seconds=CHECKPOINT_SECONDS))


def _carried_out(
    case: Case, works: Sequence[Work], author: _Author, report: _Report, purpose: Purpose
) -> Compression:
    """Write the summaries, build the new context, check it, and record it as one step."""
    written: list[Written] = []
    emit(case, "checkpoint-started", summaries=len(works))
    for nth, work in enumerate(works):
        report("Summarization", 25 + 45 * nth // len(works), f"Summary {nth + 1} of {len(works)}")
        made = _written(case, work, author)
        if made:
            written.append(made)
        elif work.kind in ("create", "roll"):
            report("Error", 100, NOT_WRITTEN)
            return _failure(case, NOT_WRITTEN)
    report("Summarization", 70, "All summaries are written")
    report("Checkpoint Creation", 80, pluralize(len(written), "checkpoints"))
    entries = steps.rebuilt(case.view, written)
    report("Context Update", 90, "Building the context")
    view = _view_of(case, entries, written)
    after = case.room.beside + sum(held.tokens for held in view.live)
    fault, error = NOT_SMALLER if after >= case.tokens else "", steps.faults(checkpoints_of(view))
    if fault or error:
        report("Error", 100, fault or NOT_VALID)
        return _failure(case, fault or NOT_VALID, error)
    step = _record(case, entries, written, after, purpose)
    report("Validation", 100, f"{case.tokens} -> {after} tokens")
    done = Compression(
        True, "", case.tokens, after, validation(case, view),
        next((one.checkpoint for one in written if one.work.kind in ("create", "roll")), None),
        tuple(one.checkpoint.id for one in written if one.work.kind == "age"),
        tuple(name for one in written if one.work.kind == "merge" for name in _checkpoint_ids(case, one.work)), step,
    )  # fmt: skip
    for one in written:
        apply_markers(one.answer, case.record)
    _emit_compression(case, done, [one.work for one in written])
    return done


def apply_markers(text: str, record: Path) -> None:
    """Apply the markers in a model's text to the goal of the home; the conversation does not depend on them."""
    if "[" in text and record.name != RECORD_NAME:
        with suppress(AetherError):
            goals.apply_markers(text, home=record)


def _emit_compression(case: Case, done: Compression, works: Sequence[Work]) -> None:
    saved: JsonObject = {"tokens_before": done.tokens_before, "tokens_after": done.tokens_after}
    emit(case, "snapshot-created", purpose="recovery")
    if done.checkpoint:
        emit(case, "auto-summary-created", checkpoint=done.checkpoint.id, tokens=done.checkpoint.tokens)
    for name in done.aged:
        emit(case, "checkpoint-aged", checkpoint=name)
    if any(work.kind == "roll" for work in works):
        emit(case, "rollover-complete", **saved)
    emit(case, "checkpoint-completed", step=done.step, **saved)
    emit(case, f"tier{case.tier.number}-compressed", **saved)
    emit(case, "compressed", **saved)


def _checkpoint_ids(case: Case, work: Work) -> tuple[str, ...]:
    return tuple(found.id for at in work.checkpoints if (found := case.view.live[at].checkpoint))


def _written(case: Case, work: Work, author: _Author) -> Written | None:
    """Return the checkpoint of one piece of work; None if nothing smaller than its input could be written."""
    old = [found for at in work.checkpoints if (found := case.view.live[at].checkpoint)]
    previous = "\n\n".join(
        f"[Segment {nth}] {one.summary}" if len(old) > 1 else one.summary for nth, one in enumerate(old, 1)
    )
    messages = [case.view.live[at].message for at in work.messages]
    task = (previous, *(case.view.live[at].number for at in work.messages), work.level, work.most_tokens)
    if task not in author.asked:
        author.asked[task] = write_checkpoint(
            messages, level=work.level, mode=case.settings.mode, goal=_goal(goals.guidance, case.record),
            backend=author.backend, settings=author.settings, count=case.count, most_tokens=work.most_tokens,
            previous=previous,
        )  # fmt: skip
    done = author.asked[task]
    prose = _clipped((done.prose or "").strip() or previous or _heads(messages), work.most_tokens, case.count)
    if not prose:
        return None
    now = clock.now()
    checkpoint = Checkpoint(
        work.id or clock.new_id("merged" if work.kind == "merge" else "ckpt", now), work.level, 0,
        work.compression_number, work.message_range, prose, old[0].created_at if work.id else clock.stamp(now),
        clock.stamp(now) if old else None, str(done.record.get("model") or done.record.get("backend") or ""),
        case.settings.mode, work.covers, work.tokens_before,
    )  # fmt: skip
    raw = steps.checkpoint_message(checkpoint, case.provider)
    size = message_tokens(convert.message(raw, case.provider), case.count)
    if old and not messages and size >= case.view.tokens(work.checkpoints):
        return None
    unproven = done.record.get("unproven", 0)
    return Written(work, checkpoint._replace(tokens=size), raw, size, done.answer, unproven)


def _heads(messages: Sequence[Message]) -> str:
    """Return the first words of messages that say nothing worth selecting."""
    texts = [" ".join(message.text.split())[:120] for message in messages]
    return "\n".join(f"- {text}" for text in texts if text) or f"({len(messages)} messages without text)"


def _clipped(text: str, most: int, count: Counter) -> str:
    """Return the head of `text` of at most `most` tokens, up to the end of a sentence if there is one."""
    cut = cut_prose(text, most=most, count=count)
    while not cut and text and most > 0:
        text = text[: len(text) * 3 // 4]
        cut = text if count(text) <= most else ""
    return cut


def _view_of(
    case: Case, entries: Sequence[tuple[int | None, JsonObject]], written: Sequence[Written]
) -> View:
    """Return the view that a new list of messages will have."""
    made = {id(one.raw): one for one in written}
    live = []
    for place, raw in entries:
        if place is not None:
            live.append(case.view.live[place])
        else:
            one = made[id(raw)]
            live.append(Held(0, convert.message(raw, case.provider), one.tokens, one.checkpoint))
    return steps.view(live)


def _record(
    case: Case, entries: Sequence[tuple[int | None, JsonObject]], written: Sequence[Written], after: int, purpose: Purpose
) -> int:  # fmt: skip
    """Record one compression as a compaction step, with a snapshot before it, and return the step."""
    before = [held.message.raw for held in case.view.live]
    now = clock.now()
    receipt = receipt_of(case, before, entries, after) | {
        "kind": "context",
        "works": [
            {"kind": one.work.kind, "id": one.checkpoint.id, "level": one.checkpoint.level, "tokens": one.tokens,
             "tokens_before": one.work.tokens_before, "from": list(_checkpoint_ids(case, one.work)), "range": list(one.checkpoint.message_range),
             "unproven": one.unproven}
            for one in written
        ],
    }  # fmt: skip
    return conversations.record_compaction(
        case.record, case.log.id, before=before, after=[raw for _, raw in entries], places=[place for place, _ in entries],
        receipt=receipt, now=now, read=case.log,
        snapshot={"id": clock.new_id("snap", now), "purpose": purpose, "tokens": case.tokens},
    )  # fmt: skip


def receipt_of(
    case: Case, before: Sequence[JsonObject], entries: Sequence[tuple[int | None, JsonObject]], after: int
) -> JsonObject:
    """Return the receipt of a step, as that of a compaction."""
    places = [place for place, _ in entries]
    raws = [raw for _, raw in entries]
    return Receipt(
        conversation_id=case.log.id, step=0, at=clock.stamp(clock.now()), policy={"name": "context"},
        effective={"window": case.settings.window, "limit": case.limit, "tier": case.tier.number, "mode": case.settings.mode},
        trigger=f"{case.tokens} of {case.limit} tokens", note="", tokens_before=case.tokens, tokens_after=after,
        counter=case.counter, messages_before=len(before), messages_after=len(entries), kept={},
        removed=sorted({*range(len(before))} - {*places}), places=places, protected=sorted(case.view.fixed), cuts=[],
        steps=[], summary={}, sha256_before=messages_checksum(before), sha256_after=messages_checksum(raws), findings=[],
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
    over into one checkpoint, then messages of the user are, too, and texts that are still too long are shortened, with
    the number under which the recall tool reads them. Reasoning that fills the window goes last; where its provider wants
    it back with its call, a finished call and its results become text. A snapshot is taken before each. Nothing that fails is raised.

    Raises:
        NotFound: the conversation is not open.
    """
    return make_smaller(conversation_id, record_directory(home), most=most, backend=backend)


_ACTIONS: tuple[tuple[Action, Works], ...]


def make_smaller(
    conversation_id: str, record: Path, *, most: int | None = None, backend: str | Summarizer | None = None
) -> tuple[EmergencyResult, ...]:
    """Do what `emergency` says for a conversation in the directory `record`."""
    case = case_of(conversation_id, record)
    most = min(case.limit, most or int(case.limits.compress * case.limit))
    results: list[EmergencyResult] = []
    for action, planned in _ACTIONS:
        if case.tokens <= most:
            break
        works = _within(most, planned)
        if not works(case)[0]:
            continue
        kind = "rollover" if action == "rollover" else "compression"
        emit(case, f"emergency-{kind}-started", action=action)
        done = compress(
            conversation_id, record, works=works, backend=backend or "extractive", purpose="emergency"
        )
        case = case_of(conversation_id, record)
        taken = history.snapshots(case.log)[-1:] if done.success else []
        made = EmergencyResult(
            action, done.success, max(0, done.freed_tokens), taken[0].id if taken else "", done.error or done.reason
        )  # fmt: skip
        emit(
            case, f"emergency-{kind}-completed", action=action, success=made.success, freed=made.tokens_freed
        )
        results.append(made)
    for last_resort, whole in ((_shortened, True), (_without_reasoning, False), (_shortened, True), (_as_text, False), (_shortened, True)):  # fmt: skip
        # The room for the next message is not worth what a model thought, nor the form of its calls; a prompt that fits is.
        if case.tokens > (most if whole or not results else case.limit):
            results += last_resort(case, most)
            case = case_of(conversation_id, record)
    return tuple(results)


def _within(most: int, works: Works) -> Works:
    """Return `works` for a context that is to have at most `most` tokens, with summaries for so much room."""
    return lambda case: works(case._replace(room=case.room._replace(limit=most)))


def _rollover(keep: int) -> Works:
    def works(case: Case) -> tuple[Sequence[Work], str]:
        number = history.compressions(case.log) + 1
        return steps.rolled_over(case.view, case.room, case.limits, keep=keep, number=number), ""

    return works


_ACTIONS = (
    ("compress", lambda case: (steps.largest_to_compact(case.view, case.room, case.limits), "")),
    ("merge", lambda case: (steps.all_merged(case.view, case.room, case.limits), "")),
    ("rollover", _rollover(ROLLOVER_KEEPS)),
    ("aggressive-summarization", _rollover(AGGRESSIVE_KEEPS)),
)


def _shortened(case: Case, most: int) -> list[EmergencyResult]:
    """Shorten the largest texts of the messages that are left, and return what that came to."""

    def shorten(message: Message, number: int, size: int) -> tuple[Message, int] | None:
        # Reasoning belongs to the very call that follows it.
        thought = any(block.kind == "reasoning" for block in message.blocks)
        kinds: tuple[BlockKind, ...] = ("result",) if thought else ("text", "result", "call")
        done = shorten_blocks(
            message, kinds, at=0, most=size, count=case.count, pointer=f"tool recall n={number}"
        )
        return (done.message, done.tokens) if done else None

    made = steps.shortened_texts(case.view, case.tokens - most, shorten=shorten)
    return _replaced(case, {at: message for at, (message, _) in made.items()})


def _without_reasoning(case: Case, _most: int) -> list[EmergencyResult]:
    """Take out reasoning that fills the window, with the form of its calls where a provider wants both or neither."""
    return _replaced(case, steps.without_reasoning(case.view))


def _as_text(case: Case, _most: int) -> list[EmergencyResult]:
    """Give finished calls and their results the form of text, which can be shortened further."""
    return _replaced(case, steps.without_reasoning(case.view, calls=True))


def _replaced(case: Case, made: Mapping[int, Message | None]) -> list[EmergencyResult]:
    """Record messages in the place of others, by position, None for none, and return what that came to."""
    entries: list[tuple[int | None, JsonObject]] = []
    after = case.room.beside
    for at, held in enumerate(case.view.live):
        message = made.get(at, held.message)
        if message is not None:
            entries.append((at, message.raw))
            after += message_tokens(message, case.count) if at in made else held.tokens
    freed = case.tokens - after
    if not made:
        return []
    try:
        _record(case, entries, [], after, "emergency")
    except AetherError as reason:
        return [EmergencyResult("aggressive-summarization", False, 0, "", str(reason))]
    taken = history.snapshots(load(case.record, case.log.id))
    return [EmergencyResult("aggressive-summarization", True, max(0, freed), taken[-1].id)]

"""Contexts: a conversation opened with a window, kept below its limit by checkpoints that age, and never lost.

`open_context`, then `add_message` for each message and `build_prompt` before each request. Everything is a record of the
conversation's log: a compression is one compaction step, all of it or nothing, so `undo_compaction`, the recall tool and
`aether compact show` work on it. A message is compressed after it was added, never while an answer streams. What does
not fit after every step raises `BudgetExceeded`. Decisions are in `aether.context`; this module reads, asks and records.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

from aether import clock
from aether.api import tokens
from aether.api.compact import as_dicts, messages_checksum
from aether.api.conversations import record_directory
from aether.api.home import Home, copied
from aether.api.summarize import Summarizer, write_checkpoint
from aether.backends.base import Settings
from aether.compaction.partition import cut_prose
from aether.compaction.shapes import Receipt
from aether.compaction.steps import shorten_blocks
from aether.context import checkpoints as steps
from aether.context import guard
from aether.context.checkpoints import Room, View, Written
from aether.context.modes import mode_rules
from aether.context.shapes import (
    DEFAULT_LIMITS,
    Action,
    Checkpoint,
    Compression,
    ContextSettings,
    EmergencyResult,
    Held,
    Limits,
    Mode,
    Progress,
    Prompt,
    Purpose,
    SystemPart,
    Tier,
    Validation,
    Work,
)
from aether.context.tiers import Reliability, prompt_limit, reliability, tier
from aether.errors import AetherError, BudgetExceeded, Conflict, InvalidInput, NotFound, shown
from aether.messages import convert
from aether.messages.model import Message, ProviderFormat
from aether.messages.validate import is_sendable, sendable
from aether.redact.redact import DEFAULT, Rules
from aether.store import config, conversations
from aether.store.conversations import Log, Snapshot, load
from aether.store.files import make_directory
from aether.tokens.count import message_tokens
from aether.tokens.models import UNKNOWN_WINDOW
from aether.types import Counter, Finding, JsonObject

# Of several processes that compress one conversation at once, each try completes one.
CONFLICT_TRIES = 16
# Contexts whose messages and counts stay in memory.
KEPT_CONTEXTS = 64
SUMMARY_SECONDS = 30.0
# The smallest window that leaves room for a system prompt, a summary and a message.
LEAST_WINDOW = 256
# Groups of messages that a rollover leaves, and what an emergency leaves of them if it has to go on.
ROLLOVER_KEEPS, AGGRESSIVE_KEEPS = 5, 1
# A compression that failed is tried again by itself once the context has grown by this share of the limit.
TRY_AGAIN = 0.05
IN_PROGRESS = "Compression already in progress"
NOT_SMALLER = "Compression did not reduce token count"
NOT_WRITTEN = "Summarization failed"
NOT_VALID = "Compression failed validation"
FAILED = "Compression error"


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


class _Known(NamedTuple):
    """The messages of one conversation that were read and counted, by their number in its log."""

    key: tuple[Any, ...]
    """What the counts depend on: the file, the counter and the format."""
    held: dict[int, Held]
    log: Log
    view: View


class _Case(NamedTuple):
    """One conversation, with everything looked up and counted that a decision needs."""

    record: Path
    log: Log
    settings: ContextSettings
    limits: Limits
    tier: Tier
    limit: int
    count: Counter
    counter: str
    wire: ProviderFormat
    view: View
    system: list[SystemPart]
    room: Room
    findings: tuple[Finding, ...]

    @property
    def tokens(self) -> int:
        return self.room.beside + sum(held.tokens for held in self.view.live)

    @property
    def key(self) -> tuple[Path, str]:
        return self.record, self.log.id


_KNOWN: OrderedDict[tuple[Path, str], _Known] = OrderedDict()
_BUSY: set[tuple[Path, str]] = set()
# Tokens of the context when a compression last failed by itself.
_TIRED: dict[tuple[Path, str], int] = {}
# What did not fit, and the state in which it did not.
_REFUSED: dict[tuple[Path, str], tuple[tuple[int, ...], JsonObject, BudgetExceeded]] = {}


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

    The default of `window` is that of the model. What is not given stays as it was: a resumed context keeps its mode
    and its system prompt, unless others are given. `tools` are the schemas sent with each request; `parts` are further
    named parts of the system prompt. Neither is ever compressed.

    Raises:
        InvalidInput: the window is too small, or there is no such mode.
        NotFound: the named home does not exist.
    """
    record = record_directory(home)
    mode_rules(mode)
    known = load(record, conversation_id).settings
    if window is None and (model is not None or not known):
        profile = tokens.counting(model or "", place=record).profile
        window = profile.window if profile else known.get("window", UNKNOWN_WINDOW)
    if window is not None and (not isinstance(window, int) or window < LEAST_WINDOW):
        raise InvalidInput(
            f"{shown(window)} is not a window.",
            fix=f"Give its tokens, at least {LEAST_WINDOW}.",
            where="window",
        )
    given: JsonObject = {
        "window": window, "model": model, "system": system or None, "provider": provider, "tool_support": tool_support,
        "mode": mode if mode != "assistant" or not known else None,
        "tools": None if tools is None else list(tools), "parts": None if parts is None else dict(parts),
    }  # fmt: skip
    patch = {name: value for name, value in given.items() if value is not None}
    make_directory(record)
    conversations.set_settings(record, conversation_id, patch, now=clock.now())
    return context_status(conversation_id, home=home)


def set_mode(conversation_id: str, mode: str, *, home: Home = None) -> ContextStatus:
    """Change the mode of a context; everything in it stays.

    Raises:
        InvalidInput: there is no such mode.
        NotFound: the conversation is not open.
    """
    mode_rules(mode)
    return _set(conversation_id, {"mode": mode}, home)


def set_model(
    conversation_id: str, model: str, *, window: int | None = None, home: Home = None
) -> ContextStatus:
    """Change the model of a context, and its window to that of the model or the given one; everything in it stays.

    If the context does not fit the new window, the next prompt makes it fit.

    Raises:
        NotFound: the conversation is not open.
    """
    record = record_directory(home)
    profile = tokens.counting(model, place=record).profile
    return _set(conversation_id, {"model": model, "window": window or (profile.window if profile else UNKNOWN_WINDOW)}, home)  # fmt: skip


def _set(conversation_id: str, patch: JsonObject, home: Home) -> ContextStatus:
    case = _case(conversation_id, home)
    conversations.set_settings(case.record, conversation_id, patch, now=clock.now())
    return context_status(conversation_id, home=home)


def context_status(conversation_id: str, *, home: Home = None) -> ContextStatus:
    """Return a context as it is now.

    Raises:
        NotFound: the conversation is not open.
    """
    case = _case(conversation_id, home)
    marked = len(case.view.checkpoints)
    done = conversations.compressions(case.log)
    return ContextStatus(
        case.log.id, case.settings, case.tier, case.tokens, case.limit, len(case.view.live) - marked, marked, done,
        len(conversations.snapshots(case.log)), reliability(case.settings.model, done), _validation(case), case.findings,
    )  # fmt: skip


def add_message(
    conversation_id: str, message: JsonObject, *, progress: Progress | None = None, home: Home = None
) -> Validation:
    """Append a message, in the format of any provider, then compress if the context asks for it; return its state.

    The message is stored before anything is compressed, and a compression that fails leaves it stored. `progress` gets
    the stages of a compression.

    Raises:
        InvalidInput: it is no message.
        NotFound: the conversation is not open.
    """
    raw = as_dicts([message])[0]
    guard.require_message(raw, where="message")
    if not any(isinstance(raw.get(key), str) for key in ("role", "type")):
        raise InvalidInput("the message has no role.", fix="Give role and content.", where="message")
    record = record_directory(home)
    _require_open(load(record, conversation_id))
    conversations.extend(record, conversation_id, [raw], now=clock.now())
    return _attended(conversation_id, home, progress)


def _attended(conversation_id: str, home: Home, progress: Progress | None) -> Validation:
    """Return the state of a context after the compression that its fill asks for; nothing that fails is raised."""
    case = _case(conversation_id, home)
    ratio = case.tokens / case.limit
    if ratio < case.limits.compress or case.tokens < _TIRED.get(case.key, 0) + TRY_AGAIN * case.limit:
        return _validation(case)
    done = _compress(conversation_id, backend=None, progress=progress, home=home, by_hand=False)
    if not done.success:
        _TIRED[case.key] = case.tokens
    else:
        _TIRED.pop(case.key, None)
    case = _case(conversation_id, home)
    with suppress(AetherError):
        if case.tokens >= case.limits.snapshot * case.limit and not done.success:
            _automatic_snapshot(case)
    if case.tokens >= case.limits.emergency * case.limit:
        with suppress(AetherError):
            emergency(conversation_id, home=home)
        case = _case(conversation_id, home)
    return _validation(case)


def build_prompt(conversation_id: str, *, home: Home = None) -> Prompt:
    """Return what is to be sent now, never more than the limit: system prompt, checkpoints, recent messages, the newest.

    If the context does not fit, it is made to fit first. The same state gives the same prompt, and the prompts between
    two compressions begin with the same bytes.

    Raises:
        BudgetExceeded: it cannot be made to fit; the error names what is too large.
        NotFound: the conversation is not open.
    """
    case = _case(conversation_id, home)
    for _ in range(2):
        _require_possible(case)
        if case.tokens > case.limit:
            emergency(conversation_id, home=home)
            case = _case(conversation_id, home)
        prompt = _prompt(case)
        if prompt.tokens <= case.limit:
            return prompt
    raise _refused(case, guard.exceeded(case.view, prompt.tokens, case.limit))


def _require_possible(case: _Case) -> None:
    """Require that a prompt can be built; what could not be done the last time is refused at once."""
    state, settings, error = _REFUSED.get(case.key, ((), {}, None))
    if error and state == tuple(case.log.context) and settings == case.log.settings:
        raise error
    guard.require_room(
        case.view, parts=case.system, tools=case.settings.tools, limit=case.limit, count=case.count
    )


def _refused(case: _Case, error: BudgetExceeded) -> BudgetExceeded:
    _REFUSED[case.key] = (tuple(case.log.context), dict(case.log.settings), error)
    return error


def _prompt(case: _Case) -> Prompt:
    parts = guard.parts_of(case.view, case.system)
    prompt = guard.build(parts, settings=case.settings, wire=case.wire, limit=case.limit, count=case.count)
    raws = [held.message.raw for held in case.view.live]
    lead = len(prompt.messages) - len(raws)
    if is_sendable(raws, case.wire):
        return prompt._replace(messages=copied(prompt.messages))
    repaired = [convert.bare(raw) for raw in sendable(raws, case.wire).raws]
    total = sum(message_tokens(one, case.count) for one in convert.read(repaired, case.wire))
    return prompt._replace(
        messages=copied([*prompt.messages[:lead], *repaired]), tokens=case.room.beside + total
    )


def validate_context(conversation_id: str, *, home: Home = None) -> Validation:
    """Return whether a context can be sent as it is, and suggestions by priority; nothing is changed or counted again.

    Raises:
        NotFound: the conversation is not open.
    """
    return _validation(_case(conversation_id, home))


def _validation(case: _Case, view: View | None = None) -> Validation:
    return guard.validate(
        view or case.view, beside=case.room.beside, limit=case.limit, tier=case.tier, limits=case.limits,
        system=sum(case.count(part.text) for part in case.system),
    )  # fmt: skip


def checkpoints(conversation_id: str, *, home: Home = None) -> list[Checkpoint]:
    """Return the checkpoints in a context, oldest first.

    Raises:
        NotFound: the conversation is not open.
    """
    return _checkpoints(_case(conversation_id, home).view)


def _checkpoints(view: View) -> list[Checkpoint]:
    return [found for at in view.checkpoints if (found := view.live[at].checkpoint)]


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
    return _compress(conversation_id, backend=backend, progress=progress, home=home, by_hand=True)


Works = Callable[[_Case], tuple[Sequence[Work], str]]


def _planned(by_hand: bool) -> Works:
    def works(case: _Case) -> tuple[Sequence[Work], str]:
        made = steps.plan(
            case.view, case.room, tier=case.tier, number=conversations.compressions(case.log) + 1, limits=case.limits,
            by_hand=by_hand,
        )  # fmt: skip
        return made.works, made.reason

    return works


def _compress(
    conversation_id: str, *, backend: str | Summarizer | None, progress: Progress | None, home: Home, by_hand: bool,
    works: Works | None = None, purpose: Purpose = "recovery",
) -> Compression:  # fmt: skip
    """Plan, ask for the summaries, and record; if another process changed the conversation meanwhile, plan again."""
    case = _case(conversation_id, home)
    key = case.key
    report = _Report(progress)
    if key in _BUSY:
        return _failure(case, IN_PROGRESS)
    author = _author(case, backend)
    _BUSY.add(key)
    try:
        for left in reversed(range(CONFLICT_TRIES)):
            case = _case(conversation_id, home)
            report("Identification", 15, "Choosing the messages to compress")
            found, reason = (works or _planned(by_hand))(case)
            if not found:
                report("Complete", 100, reason)
                return _failure(case, reason)
            report("Preparation", 25, f"{len(found)} summaries to write")
            try:
                return _carried_out(case, found, author, report, purpose)
            except Conflict:
                if not left:
                    raise
        raise AssertionError
    except (InvalidInput, NotFound):
        raise
    except AetherError as reason:
        report("Error", 100, reason.what)
        return _failure(case, FAILED, str(reason))
    finally:
        _BUSY.discard(key)


class _Report:
    """Progress that never falls, to a function of the caller whose failures are its own."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.reached = 0

    def __call__(self, stage: str, percent: int, message: str) -> None:
        self.reached = max(self.reached, percent)
        if self.progress:
            with suppress(Exception):
                self.progress(stage, self.reached, message)


def _failure(case: _Case, reason: str, error: str = "") -> Compression:
    return Compression(False, reason, case.tokens, case.tokens, _validation(case), error=error)


class _Author(NamedTuple):
    """Who writes summaries."""

    backend: str | Summarizer
    settings: Settings
    rules: Rules | None = DEFAULT


def _author(case: _Case, backend: str | Summarizer | None) -> _Author:
    from aether.backends import backend as backend_of

    settings = config.or_default(case.record)
    asked = backend or settings.compact_backend
    if isinstance(asked, str):
        backend_of(asked)
    return _Author(asked, Settings(model=settings.compact_model, timeout_seconds=SUMMARY_SECONDS))


def _carried_out(
    case: _Case, works: Sequence[Work], author: _Author, report: _Report, purpose: Purpose
) -> Compression:
    """Write the summaries, build the new context, check it, and record it as one step."""
    written: list[Written] = []
    for nth, work in enumerate(works):
        report("Summarization", 25 + 45 * nth // len(works), f"Summary {nth + 1} of {len(works)}")
        made = _written(case, work, author)
        if made:
            written.append(made)
        elif work.kind in ("create", "roll"):
            report("Error", 100, NOT_WRITTEN)
            return _failure(case, NOT_WRITTEN)
    report("Checkpoint Creation", 80, f"{len(written)} checkpoints")
    entries = steps.rebuilt(case.view, written)
    report("Context Update", 90, "Building the context")
    view = _view_of(case, entries, written)
    after = case.room.beside + sum(held.tokens for held in view.live)
    fault = NOT_SMALLER if after >= case.tokens else ""
    if not fault and steps.faults(_checkpoints(view)):
        fault = NOT_VALID
    if fault:
        report("Error", 100, fault)
        return _failure(case, fault, steps.faults(_checkpoints(view)))
    step = _record(case, entries, written, after, purpose)
    report("Validation", 100, f"{case.tokens} -> {after} tokens")
    new = next((one.checkpoint for one in written if one.work.kind in ("create", "roll")), None)
    merges = [one.work for one in written if one.work.kind == "merge"]
    merged = [name for work in merges for name in _checkpoint_ids(case, work)]
    return Compression(
        True, "", case.tokens, after, _validation(case, view), new,
        tuple(one.checkpoint.id for one in written if one.work.kind == "age"),
        tuple(merged),
        step,
    )  # fmt: skip


def _checkpoint_ids(case: _Case, work: Work) -> tuple[str, ...]:
    return tuple(found.id for at in work.checkpoints if (found := case.view.live[at].checkpoint))


def _written(case: _Case, work: Work, author: _Author) -> Written | None:
    """Return the checkpoint of one piece of work; None if nothing smaller than its input could be written."""
    old = [found for at in work.checkpoints if (found := case.view.live[at].checkpoint)]
    previous = "\n\n".join(
        f"[Segment {nth}] {one.summary}" if len(old) > 1 else one.summary for nth, one in enumerate(old, 1)
    )
    messages = [case.view.live[at].message for at in work.messages]
    done = write_checkpoint(
        messages, level=work.level, mode=case.settings.mode, goal=_goals(case), backend=author.backend,
        settings=author.settings, count=case.count, most_tokens=work.most_tokens, previous=previous, rules=author.rules,
    )  # fmt: skip
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
    raw = steps.checkpoint_message(checkpoint, case.wire)
    size = message_tokens(convert.message(raw, case.wire), case.count)
    if old and not messages and size >= case.view.tokens(work.checkpoints):
        return None
    return Written(work, checkpoint._replace(tokens=size), raw, size)


def _goals(case: _Case) -> str:
    return next((part.text for part in case.system if part.name == "goals"), "")


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
    case: _Case, entries: Sequence[tuple[int | None, JsonObject]], written: Sequence[Written]
) -> View:
    """Return the view that a new list of messages will have."""
    made = {id(one.raw): one for one in written}
    live = []
    for place, raw in entries:
        if place is not None:
            live.append(case.view.live[place])
        else:
            one = made[id(raw)]
            live.append(Held(0, convert.message(raw, case.wire), one.tokens, one.checkpoint))
    return steps.view(live)


def _record(
    case: _Case, entries: Sequence[tuple[int | None, JsonObject]], written: Sequence[Written], after: int, purpose: Purpose
) -> int:  # fmt: skip
    """Record one compression as a compaction step, with a snapshot before it, and return the step."""
    before = [held.message.raw for held in case.view.live]
    now = clock.now()
    receipt = _receipt(case, before, entries, after) | {
        "kind": "context",
        "works": [
            {"kind": one.work.kind, "id": one.checkpoint.id, "level": one.checkpoint.level, "tokens": one.tokens,
             "from": list(_checkpoint_ids(case, one.work)), "range": list(one.checkpoint.message_range)}
            for one in written
        ],
    }  # fmt: skip
    return conversations.record_compaction(
        case.record, case.log.id, before=before, after=[raw for _, raw in entries], places=[place for place, _ in entries],
        receipt=receipt, now=now, read=case.log,
        snapshot={"id": clock.new_id("snap", now), "purpose": purpose, "tokens": case.tokens},
    )  # fmt: skip


def _receipt(
    case: _Case, before: Sequence[JsonObject], entries: Sequence[tuple[int | None, JsonObject]], after: int
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
    the number under which the recall tool reads them. A snapshot is taken before each. Nothing that fails is raised.

    Raises:
        NotFound: the conversation is not open.
    """
    case = _case(conversation_id, home)
    most = min(case.limit, most or int(case.limits.compress * case.limit))
    actions: list[tuple[Action, Works]] = [
        ("compress", lambda case: (steps.largest_to_compact(case.view, case.room, case.limits), "")),
        ("merge", lambda case: (steps.all_merged(case.view, case.room, case.limits), "")),
        ("rollover", _rollover(ROLLOVER_KEEPS)),
        ("aggressive-summarization", _rollover(AGGRESSIVE_KEEPS)),
    ]
    results: list[EmergencyResult] = []
    for action, works in actions:
        case = _case(conversation_id, home)
        if case.tokens <= most:
            return tuple(results)
        if not works(case)[0]:
            continue
        done = _compress(
            conversation_id, backend=backend or "extractive", progress=None, home=home, by_hand=True, works=works,
            purpose="emergency",
        )  # fmt: skip
        results.append(_result(action, done, conversation_id, home))
    if _case(conversation_id, home).tokens > most:
        results += _shortened(conversation_id, most, home)
    return tuple(results)


def _result(action: Action, done: Compression, conversation_id: str, home: Home) -> EmergencyResult:
    taken = conversations.snapshots(_case(conversation_id, home).log) if done.success else []
    return EmergencyResult(
        action,
        done.success,
        max(0, done.freed_tokens),
        taken[-1].id if taken else "",
        done.error or done.reason,
    )


def _rollover(keep: int) -> Works:
    def works(case: _Case) -> tuple[Sequence[Work], str]:
        number = conversations.compressions(case.log) + 1
        return steps.rolled_over(case.view, case.room, case.limits, keep=keep, number=number), ""

    return works


def _shortened(conversation_id: str, most: int, home: Home) -> list[EmergencyResult]:
    """Shorten the largest texts of the messages that are left, and return what that came to."""
    case = _case(conversation_id, home)

    def shorten(message: Message, number: int, size: int) -> tuple[Message, int] | None:
        done = shorten_blocks(
            message,
            ("text", "result", "call"),
            at=0,
            most=size,
            count=case.count,
            pointer=f"tool recall n={number}",
        )
        return (done.message, done.tokens) if done else None

    made = steps.shortened_texts(case.view, case.tokens - most, shorten=shorten)
    if not made:
        return []
    entries = [
        (at, made[at][0].raw if at in made else held.message.raw) for at, held in enumerate(case.view.live)
    ]
    freed = sum(case.view.live[at].tokens - made[at][1] for at in made)
    try:
        _record(case, cast("Any", entries), [], case.tokens - freed, "emergency")
    except AetherError as reason:
        return [EmergencyResult("aggressive-summarization", False, 0, "", str(reason))]
    taken = conversations.snapshots(_case(conversation_id, home).log)
    return [EmergencyResult("aggressive-summarization", True, freed, taken[-1].id)]


def take_snapshot(conversation_id: str, *, purpose: Purpose = "recovery", home: Home = None) -> Snapshot:
    """Take a snapshot of a context, and return it; the newest five are kept.

    Raises:
        InvalidInput: there is no such purpose.
        NotFound: the conversation is not open.
    """
    if purpose not in ("recovery", "rollback", "emergency"):
        raise InvalidInput(
            f"{shown(purpose)} is not a purpose.", fix="Use recovery, rollback or emergency.", where="purpose"
        )
    case = _case(conversation_id, home)
    now = clock.now()
    about = {"id": clock.new_id("snap", now), "purpose": purpose, "tokens": case.tokens}
    log = conversations.take_snapshot(case.record, conversation_id, about, now=now, read=case.log)
    return next(one for one in reversed(log.snapshots) if one.id == about["id"])


def _automatic_snapshot(case: _Case) -> None:
    """Take a snapshot unless the newest one is of a context as full as this."""
    taken = conversations.snapshots(case.log)
    if not taken or taken[-1].tokens < case.limits.snapshot * case.limit:
        about = {"id": clock.new_id("snap", clock.now()), "purpose": "recovery", "tokens": case.tokens}
        conversations.take_snapshot(case.record, case.log.id, about, now=clock.now(), read=case.log)


def snapshots(conversation_id: str, *, home: Home = None) -> list[Snapshot]:
    """Return the snapshots of a context that can be restored, newest first.

    Raises:
        NotFound: the conversation is not open.
    """
    return conversations.snapshots(_case(conversation_id, home).log)[::-1]


def restore_context(
    conversation_id: str, snapshot_id: str | None = None, *, home: Home = None
) -> ContextStatus:
    """Make a context what it was at a snapshot, byte for byte, with its settings; by default at the newest.

    Messages since are in the history. It is one step, which `undo_compaction` takes back.

    Raises:
        NotFound: the conversation is not open, or has no such snapshot.
    """
    for left in reversed(range(CONFLICT_TRIES)):
        case = _case(conversation_id, home)
        taken = conversations.snapshots(case.log)[::-1]
        found = next((one for one in taken if snapshot_id in (None, one.id)), None)
        if found is None:
            what = f"conversation {shown(conversation_id)} has no snapshot {shown(snapshot_id)}."
            known = ", ".join(one.id for one in taken)
            fix = f"Name one of {known}." if known else "Take one with take_snapshot."
            raise NotFound(what, fix=fix, where=str(case.log.path))
        numbers = {n: at for at, n in enumerate(case.log.context)}
        before = conversations.messages(case.log, case.log.context)
        entries = [(numbers.get(n), raw) for n, raw in zip(found.context, conversations.messages(case.log, found.context), strict=True)]  # fmt: skip
        try:
            conversations.restore(
                case.record, conversation_id, found, _receipt(case, before, entries, found.tokens), now=clock.now(), read=case.log
            )  # fmt: skip
        except Conflict:
            if not left:
                raise
        else:
            break
    return context_status(conversation_id, home=home)


def _require_open(log: Log) -> None:
    if not log.settings:
        what = f"conversation {shown(log.id)} is not open as a context."
        raise NotFound(what, fix="Call open_context with its window first.", where=str(log.path))


def _case(conversation_id: str, home: Home) -> _Case:
    """Look up and count everything that a decision needs; messages that were counted are not counted again."""
    record = record_directory(home)
    log = load(record, conversation_id)
    _require_open(log)
    settings = _settings(log.settings)
    counting = tokens.counting(settings.model, place=record)
    known = _known(log, counting.count, (counting.counter, counting.factor))
    key = (record, conversation_id)
    _KNOWN[key] = known
    _KNOWN.move_to_end(key)
    if len(_KNOWN) > KEPT_CONTEXTS:
        _KNOWN.popitem(last=False)
    limit = prompt_limit(settings.window, {})
    system = guard.system_parts(settings, mode_text=mode_rules(settings.mode).prompt, goals="")
    beside = guard.beside_tokens(system, settings.tools, counting.count)
    doubts = tuple(one for one in counting.findings if one.code != "unknown-model")
    return _Case(
        record, log, settings, DEFAULT_LIMITS, tier(settings.window), limit, counting.count, counting.label, known.key[-1],
        known.view, system, Room(limit, beside, steps.heading_tokens(counting.count)), doubts,
    )  # fmt: skip


def _settings(held: JsonObject) -> ContextSettings:
    return ContextSettings(
        held["window"], held.get("model", ""), cast("Mode", held.get("mode", "assistant")), held.get("system", ""),
        held.get("provider", ""), tuple(held.get("tools", ())), tuple(held.get("parts", {}).items()), held.get("tool_support"),
    )  # fmt: skip


def _known(log: Log, count: Counter, counter: tuple[Any, ...]) -> _Known:
    """Return the live messages, of which only those are read and counted that were not before."""
    known = _KNOWN.get((log.path.parent.parent.parent, log.id))
    if known and known.log is log and known.key[1:3] == counter:
        return known
    same = known and known.log.inode == log.inode and known.key[1:3] == counter
    held = {n: known.held[n] for n in log.context if n in known.held} if known and same else {}
    new = [n for n in log.context if n not in held]
    raws = conversations.messages(log, new)
    wire: ProviderFormat = convert.detect_format(raws, after=known.key[-1] if known and held else "plain")
    if held and known and wire != known.key[-1]:
        held, new = {}, list(log.context)
        raws = conversations.messages(log, new)
        wire = convert.detect_format(raws)
    read = convert.read(raws, wire, after=[one.message for one in held.values()])
    for n, message in zip(new, read, strict=True):
        size = message_tokens(message, count)
        found = steps.checkpoint_of(message, size) if log.derived[n - 1] else None
        held[n] = Held(
            _origin(log, n), message, size, found, found is None and guard.mentions_stored(message)
        )
    view = steps.view([held[n] for n in log.context])
    return _Known((log.inode, *counter, wire), held, log, view)


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

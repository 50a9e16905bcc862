"""Compaction of a conversation: look at it before it is sent, make it fit, record what was done, undo it.

`preflight` returns the very messages it was given until a trigger of the policy fires; `compact` does not wait for one. The
write that records a compaction also stores the whole conversation in the home (`conversations/<id>/history.jsonl`), so
`undo_compaction` restores it byte for byte. A conversation that cannot be made to fit is not changed, and an error is raised.
Events and copies, through an exporter or a storage adapter, leave the home and are redacted; a copy that fails is a finding,
because the exact record is in the home. The steps themselves are in `compaction`, differences and dry runs in `compact_views`.
"""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import cache, partial, wraps
from operator import eq
from pathlib import Path
from threading import Event as Flag
from types import SimpleNamespace
from typing import Any, NamedTuple, ParamSpec, cast

from aether import clock
from aether.api import tokens
from aether.api.conversations import record_directory, resume_in
from aether.api.home import Home
from aether.api.summarize import FALLBACK, Summarizer, WrittenSummary, write_summary
from aether.architects import backend as backend_of
from aether.architects.base import Settings
from aether.clock import short_id
from aether.conversation.budget import Bounds, ContextBudget, bounds, fires
from aether.conversation.facts import FACTS_SHARE, FACTS_SHARE_SELECTED
from aether.conversation.partition import protected_positions
from aether.conversation.plan import LastCompaction, Plan, apply, plan
from aether.conversation.policy import CompactConfig, validated
from aether.conversation.policy import policy as named
from aether.conversation.shapes import Compacted, Policy, Receipt, SummaryTask
from aether.conversation.summary import rendered
from aether.errors import (
    AetherError,
    Conflict,
    CorruptDocument,
    InvalidInput,
    StorageFailed,
    UnsafePath,
    public,
    shown,
)
from aether.events import events as tell
from aether.events import exporters
from aether.events.delivery import warn
from aether.events.events import TOKEN_ESTIMATE, TRIGGER_DECISION, Event, Exporter, record
from aether.messages import convert
from aether.messages.content import encodable
from aether.messages.faults import RepairedRaws
from aether.messages.model import Message, ProviderFormat, as_object
from aether.messages.validate import is_sendable, sendable
from aether.redact.redact import DEFAULT, Rules, redact, redacted, rules
from aether.storage import storage as storage_of
from aether.storage.adapter import StorageAdapter
from aether.store import config, conversations, files, history
from aether.store.conversations import load, path_of
from aether.store.files import make_directory
from aether.store.history import Log
from aether.text.words import pluralize
from aether.tokens.count import Tally, message_tokens, system_tokens, tally, tools_tokens
from aether.types import Counter, Finding, JsonObject

# Of several compactions of one conversation at once each try completes one: twice as many as a colony has workers.
CONFLICT_TRIES = 16
# Conversations whose counts stay in memory; an orchestrator has few at a time.
KEPT_TALLIES = 64
# Keys of a provider's dict that an object keeps in its `meta`.
META_KEYS = ("tool_calls", "tool_call_id", "name")
# Name that integrations give to a model without one: its window is the smallest known, and nothing is learned.
UNNAMED_MODEL = "unnamed"
# Emitted at each turn; each event in a remote storage costs several requests.
_EACH_TURN = frozenset({TOKEN_ESTIMATE, TRIGGER_DECISION})
_TALLIES: OrderedDict[tuple[str, str], LastRequest] = OrderedDict()
# By record and conversation: the model of the last preflight, and its count of the request.
_REQUESTS: dict[tuple[Path, str], tuple[str, int]] = {}
# Set when the caller of an asynchronous twin has left.
_CANCELLED: ContextVar[Flag | None] = ContextVar("aether_cancelled", default=None)
_Arguments = ParamSpec("_Arguments")

# The tool by which a model reads removed messages.
RECALL = "recall"


class LastRequest(NamedTuple):
    """The messages of the last request of a conversation, as they were counted."""

    sums: Tally
    accepted: bool
    """Whether its provider accepts them as they are."""


class Options(NamedTuple):
    """Parts that an embedding program may replace; an empty value leaves the choice to the home."""

    backend: str | Summarizer = ""
    """Author of the summary: the name of a backend, or a function of the caller."""
    settings: Settings | None = None
    counter: Counter | None = None
    counter_name: str = "caller"
    """The name of `counter` in results and logs."""
    storage: StorageAdapter | None = None
    exporter: Exporter | None = None
    rules: Rules | None = DEFAULT
    """Redaction of events and copies; None: not at all, and an event warns of it."""
    record: Path | None = None
    """The directory that keeps conversations, if that is not a home."""
    assume_window: bool = True
    """Whether a model of unknown window gets a small one, with a finding; else it is an error to give no `window`."""
    wrapper: JsonObject = {}  # noqa: RUF012 - a NamedTuple default, never mutated
    """The file around the messages, kept for `undo_compaction`: its `key` of the messages, and its `body`."""
    unsaved: Sequence[JsonObject] | None = None
    """Messages that are sent after these and recorded by another program. If it is given, even empty, the messages
    are the live ones of the record: additions by others meanwhile are kept, and if the messages are not live any
    more, nothing is changed (`Conflict`)."""
    report: Callable[[Finding], None] | None = None
    """Gets the findings of an integration, whose result is only messages; None: the logger `aether`, each once."""


DEFAULT_OPTIONS = Options()


class Compaction(NamedTuple):
    """A conversation that fits, and the changes that were made."""

    messages: list[JsonObject]
    """To be sent without `meta`; the very objects that were given, unless they were changed."""
    triggered: bool
    reason: str
    """Why it was compacted, or why it was not."""
    tokens_before: int
    tokens_after: int
    window: int
    limit: int
    """Tokens that may be sent: the window less the reserve."""
    counter: str
    receipt: Receipt | None
    findings: list[Finding]


class UndoneCompaction(NamedTuple):
    """A conversation after undoing its newest compaction."""

    messages: list[JsonObject]
    step: int
    findings: list[Finding]
    document: Any = None
    """The messages in the file that was compacted, if they were in an object; else the messages alone."""


@public
def preflight(
    conversation_id: str,
    messages: Sequence[JsonObject],
    *,
    model: str | None = None,
    window: int | None = None,
    policy: str | Policy = "compact",
    system: Any = None,
    tools: Any = None,
    wire: ProviderFormat | None = None,
    resume: bool = True,
    repair: bool = True,
    options: Options = DEFAULT_OPTIONS,
    home: Home = None,
) -> Compaction:
    """Return `messages` for a request to `model`: the same, or compacted if a trigger fires.

    Continue with the returned messages, or pass the whole conversation each time: earlier compactions are then applied
    again, unless `resume` is off. A damaged record is a finding, and so is a pipe or a link in its place: nothing is then compacted. The default of `window` is that of the model. `system` and
    `tools` are counted and never changed. Messages that the provider would refuse are returned repaired, with a finding for
    each change: orphans, blank blocks, media without a source and the like are dropped, but no text of users, of the assistant,
    or of a protected message. The record keeps the messages as given, as far as JSON can. Without `repair` they are returned
    as broken as they are.

    Raises:
        InvalidInput: a message or the policy is invalid, or there is neither a window nor a model.
        BudgetExceeded: the protected messages do not fit; nothing was changed.
        NotFound: the named home does not exist.
        Conflict, LockTimeout, StorageFailed, CorruptDocument: the compaction could not be recorded, and was not made.
    """
    found = resolve_case(
        conversation_id, as_dicts(messages), model=model, window=window, policy=policy, system=system, tools=tools, wire=wire,
        note="", resume=resume, repair=repair, options=options, home=home,
    )  # fmt: skip
    return _preflight(found, force=False)


@public
def compact(
    conversation_id: str,
    messages: Sequence[JsonObject],
    *,
    model: str | None = None,
    window: int | None = None,
    policy: str | Policy = "compact",
    system: Any = None,
    tools: Any = None,
    wire: ProviderFormat | None = None,
    note: str = "manual",
    repair: bool = True,
    options: Options = DEFAULT_OPTIONS,
    home: Home = None,
) -> Compaction:
    """Return `messages` compacted to the target of the policy, whether a trigger fires or not.

    Raises:
        InvalidInput, BudgetExceeded, NotFound: as `preflight`.
    """
    found = resolve_case(
        conversation_id, as_dicts(messages), model=model, window=window, policy=policy, system=system, tools=tools, wire=wire,
        note=note, repair=repair, options=options, home=home,
    )  # fmt: skip
    return _preflight(found, force=True)


def _twin(do: Callable[_Arguments, Compaction]) -> Callable[_Arguments, Coroutine[Any, Any, Compaction]]:
    """Return the asynchronous twin of `do`: it runs in a thread, and the event loop goes on."""

    @wraps(do)
    async def twin(*given: _Arguments.args, **more: _Arguments.kwargs) -> Compaction:
        import asyncio

        cancelled = Flag()
        before = _CANCELLED.set(cancelled)  # the thread gets a copy
        try:
            return await asyncio.to_thread(do, *given, **more)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        finally:
            _CANCELLED.reset(before)

    summary, _, rest = (do.__doc__ or "").partition("\n")
    twin.__name__ = twin.__qualname__ = f"a{do.__name__}"
    twin.__doc__ = f"{summary}\n\n    It runs in a thread. After a cancellation nothing is recorded, unless it had already started to record.\n{rest}"
    return twin


apreflight = _twin(preflight)
acompact = _twin(compact)


@public
def compaction_plan(
    conversation_id: str,
    messages: Sequence[JsonObject],
    *,
    model: str | None = None,
    window: int | None = None,
    policy: str | Policy = "compact",
    system: Any = None,
    tools: Any = None,
    wire: ProviderFormat | None = None,
    force: bool = False,
    repair: bool = True,
    options: Options = DEFAULT_OPTIONS,
    home: Home = None,
) -> Plan:
    """Return what `preflight`, or `compact` with `force`, would do; nothing is changed and nobody is asked.

    Raises:
        InvalidInput, BudgetExceeded, NotFound: as `preflight`.
    """
    found = resolve_case(
        conversation_id, as_dicts(messages), model=model, window=window, policy=policy, system=system, tools=tools, wire=wire,
        note="", repair=repair, options=options, home=home,
    )  # fmt: skip
    return _make_plan(found, load(found.record, found.conversation_id), _texts(found), force=force)


@public
def answered(conversation_id: str, usage: int | Mapping[str, Any], *, home: Home = None) -> bool:
    """Learn from the `usage` that a provider reports of the request that was last made to fit; return whether it did.

    `usage` is the number of input tokens, cached ones included, or the usage object of the answer. Nothing is learned
    without a home, about a model without a name, with a counter of the caller, or from an invalid usage object:
    the answer of a model is never lost because of its usage.
    """
    try:
        model, estimate = _REQUESTS.pop((record_directory(home), conversation_id))
        tokens.record_usage(model, estimate, usage, home=home)
    except (KeyError, AetherError):
        return False
    return True


@public
def undo_compaction(conversation_id: str, *, step: int = 0, home: Home = None) -> UndoneCompaction:
    """Undo the newest compaction of a conversation and return its messages, byte for byte as they were.

    Repeating it undoes the one before: messages since each are appended. `step` is the number of the compaction that is
    meant: with it no other is undone.

    Raises:
        NotFound: there is no such conversation, or no compaction that is not undone.
        Conflict: `step` is not the newest compaction any more.
    """
    place = record_directory(home)
    log = load(place, conversation_id)
    wrapper = log.compactions[-1].receipt.get("wrapper") if log.compactions else None
    done = conversations.undo(place, conversation_id, step=step, now=clock.now())
    document = {**wrapper["body"], wrapper["key"]: done.messages} if wrapper else done.messages
    return UndoneCompaction(done.messages, done.step, done.findings, document)


def _damage(found: Case) -> list[Finding]:
    """Return a finding if the record of the conversation is damaged: its agent goes on with the messages that it has."""
    try:
        damaged = load(found.record, found.conversation_id).damaged
    except (CorruptDocument, StorageFailed, UnsafePath) as reason:
        return [Finding("warning", reason.code, reason.where, reason.what, reason.fix)]
    what = f"damaged in its record: {pluralize(damaged, 'places')}; the messages there are not in the full history."
    fix = 'Run "aether doctor".'
    place = f"conversation {found.conversation_id}"
    return [Finding("warning", "damaged-line", place, what, fix)] if damaged else []


def _preflight(found: Case, *, force: bool) -> Compaction:
    found = found._replace(findings=[*found.findings, *_damage(found)])
    at = event_moment(found, short_id("preflight"))
    emit_token_estimate(found, at)
    try:
        if not force and not fires(found.budget, found.policy, len(found.sent)):
            return _remember_request(found, _unchanged(found, at, []))
        return _remember_request(found, _compact_with_retries(found, at, force=force))
    except AetherError as reason:
        emit_error(found, at, kind=reason.code, message=reason.what, fallback="none")
        if force or not isinstance(reason, UnsafePath):
            raise
        what = f"Not compacted, because nothing could be recorded: {reason.what}"
        refused = Finding("warning", "not-compacted", reason.where, what, reason.fix)
        return _remember_request(found, _unchanged(found, at, [refused]))


def _remember_request(found: Case, done: Compaction) -> Compaction:
    """Return `done`; remembered is what is asked, until its provider reports what it was (`answered`)."""
    key = (found.record, found.conversation_id)
    _REQUESTS.pop(key, None)
    if found.model not in ("", UNNAMED_MODEL) and found.options.counter is None:
        _REQUESTS[key] = (found.model, done.tokens_after)
        if len(_REQUESTS) > KEPT_TALLIES:
            _REQUESTS.pop(next(iter(_REQUESTS)), None)
    return done


def _compact_with_retries(found: Case, at: tell.Moment, *, force: bool) -> Compaction:
    """Plan and apply; if another process compacted the same conversation meanwhile, plan again.

    A model is asked only once for the same task.
    """
    asked: dict[SummaryTask | None, WrittenSummary] = {}
    texts = _texts(found)
    for left in reversed(range(CONFLICT_TRIES)):
        log = _known_log(found)
        made = _make_plan(found, log, texts, force=force)
        if not made.triggered:
            break
        if made.task not in asked:
            emit_decision(found, at, plan=made, reason=made.reason)
            asked[made.task] = _summary(found, made, at)
        left_by = _CANCELLED.get()
        if left_by and left_by.is_set():
            raise Conflict(
                "the caller was cancelled.", fix="Nothing was changed.", where=found.conversation_id
            )
        try:
            return _apply_plan(found, made, log, at, asked[made.task], had=texts())
        except Conflict:
            if not left:
                raise
    return _unchanged(found, at, list(made.findings))


def _known_log(found: Case) -> Log:
    """Return the log of the conversation, up to the messages of the caller."""
    log = load(found.record, found.conversation_id)
    if found.options.unsaved is None:
        return log
    known = log._replace(context=log.context[: len(found.raws)])
    if history.context(known) != found.raws:
        raise Conflict(
            f"the live messages of conversation {shown(log.id)} have changed since they were read.",
            fix="Read them again, and compact those.",
            where=str(log.path),
        )
    return known


def _with_findings(found: Case, more: Iterable[Finding]) -> list[Finding]:
    """Return the findings of a call and `more`, each once: a plan repeats those about its bounds."""
    return [*dict.fromkeys([*found.findings, *more])]


def _unchanged(found: Case, at: tell.Moment, findings: list[Finding]) -> Compaction:
    reason = findings[-1].message if findings else "usage_pct < trigger_pct"
    emit_decision(found, at, plan=None, reason=reason)
    used = found.budget.used
    return Compaction(
        found.sent, False, reason, used, used, found.budget.window, found.budget.limit, found.counter, None,
        _with_findings(found, findings),
    )  # fmt: skip


def _texts(found: Case) -> Callable[[], list[bytes]]:
    """Return a function that writes the messages as the log does, at its first call: they are long, and compared often."""
    return cache(lambda: history.texts(found.raws))


def _make_plan(found: Case, log: Log, texts: Callable[[], list[bytes]], *, force: bool) -> Plan:
    # Computed only if something is shortened: it reads every message.
    known = cache(lambda: history.numbered(log, texts()))
    last = log.compactions[-1].receipt if log.open else None
    backend = found.options.backend or config.or_default(found.record).compact_backend
    return plan(
        found.sums.messages, found.policy, found.sums.count, window=found.budget.window,
        overhead=found.budget.used - found.budget.messages, tokens=found.sums.tokens, force=force,
        last=LastCompaction(last["tokens_after"]) if last else None,
        pointer=lambda position: f"{found.full_text} n={known()[found.origins[position]]}", rules=found.options.rules,
        facts_share=FACTS_SHARE_SELECTED if backend == FALLBACK else FACTS_SHARE,
    )  # fmt: skip


def _apply_plan(
    found: Case, made: Plan, log: Log, at: tell.Moment, written: WrittenSummary, *, had: Sequence[bytes]
) -> Compaction:
    """Apply the plan, record the compaction, and emit its events; `had` are the texts of the given messages."""
    rules = found.options.rules
    prose = redact(written.prose, rules) if written.prose and rules else written.prose
    result = apply(made, prose)
    raws = [
        found.sent[place] if place is not None and message is made.messages[place] else message.raw
        for place, message in zip(result.places, result.messages, strict=True)
    ]
    known = dict(zip(map(id, found.raws), had, strict=True))
    texts = [known.get(id(raw)) or history.text_of(raw, nth) for nth, raw in enumerate(raws)]
    record = make_receipt(found, made, result, written, had=had, made=texts)
    make_directory(found.record)
    step = conversations.record_compaction(
        found.record, found.conversation_id, before=found.raws, after=raws, places=record.places,
        receipt=record._asdict() | ({"wrapper": found.options.wrapper} if found.options.wrapper else {}),
        now=clock.now(), read=log, had=had, made=texts,
    )  # fmt: skip
    record = record._replace(step=step)
    emit_compaction(found, at, record, result)
    fix = f"Nothing to do: {written.record.get('backend') or 'nobody'} wrote it."
    failures = []
    for failure in written.failures:  # the message of a failing backend may hold secrets
        words = f"{failure['backend']}: {failure['message']}"
        words = redact(words, rules) if rules else words
        failures.append(Finding("warning", "summary-not-taken", failure["backend"], words, fix))
    more = [*failures, *result.findings, *save_copies(found, at, record, result)]
    findings = _with_findings(found, more)
    return Compaction(
        raws, True, made.reason, result.tokens_before, result.tokens_after, found.budget.window, result.limit,
        found.counter, record, findings,
    )  # fmt: skip


def _summary(found: Case, made: Plan, at: tell.Moment) -> WrittenSummary:
    """Return the prose of the summary, and emit an event for each failure."""
    if made.task is None:
        return WrittenSummary(None, {}, [])
    settings = config.or_default(found.record)
    asked = found.options.backend or settings.compact_backend
    if isinstance(asked, str):
        backend_of(asked)  # an unknown name is a mistake of the caller, not a failure of a backend
    reach = found.options.settings or Settings(
        model=settings.compact_model, timeout_seconds=settings.compact_timeout_seconds
    )
    if not found.options.backend:
        found.findings.extend(config.untrusted(found.record, "summarizer."))
    written = write_summary(
        made.task, backend=asked, settings=reach, count=found.sums.count, rules=found.options.rules
    )
    then = written.record["backend"] if written.prose else "pruning-only"
    for failure in written.failures:
        emit_error(found, at, kind=failure["error_type"], message=failure["message"], fallback=then)
    return written


class Case(NamedTuple):
    """One call, with everything looked up and counted that a decision needs."""

    conversation_id: str
    raws: list[JsonObject]
    """As given."""
    sent: list[JsonObject]
    """After the repair; the same if nothing was repaired."""
    origins: list[int]
    """Position among `raws` of each sent message."""
    sums: Tally
    """Counts of the sent messages."""
    budget: ContextBudget
    limits: Bounds
    policy: Policy
    model: str
    counter: str
    record: Path
    options: Options
    note: str
    findings: list[Finding]
    full_text: str = ""
    """Where a model finds the full text of removed messages: the file of the conversation, or its tool for this."""


def resolve_case(
    conversation_id: str, raws: Sequence[JsonObject], *, model: str | None, window: int | None, policy: str | Policy,
    system: Any, tools: Any, wire: ProviderFormat | None, note: str, resume: bool = False, repair: bool = True,
    options: Options, home: Home,
) -> Case:  # fmt: skip
    """Look up and count everything that a decision about the call needs; `resume` applies earlier compactions first.

    Raises:
        InvalidInput: a message or the policy is invalid, or there is neither a window nor a model.
        NotFound: the named home does not exist.
    """
    _require_parts(model, window, policy, options)
    record = options.record or record_directory(home)
    key = (str(record), conversation_id)
    # Messages of another program may answer the calls of these: that program repairs what it sends.
    checked = repair and options.unsaved is None
    raws, doubts, plain = _storable(raws, known=_accepted(key, raws)) if checked else (raws, [], frozenset())
    if resume and options.unsaved is None:
        with suppress(CorruptDocument, StorageFailed, UnsafePath):  # `_damage` reports it
            raws = resume_in(record, conversation_id, raws)
    chosen = validated(named(policy) if isinstance(policy, str) else policy)
    counting = tokens.counting(model or "", place=record)
    if window is None and counting.profile is None:
        raise InvalidInput("there is neither a model nor a window.", fix="Give one of them.", where="window")
    if window is None and not options.assume_window and counting.profile and not counting.profile.known:
        raise InvalidInput(
            f"the window of {shown(model)} is not known.",
            fix="Give the window, or add the model to models.json in the home.", where="window",
        )  # fmt: skip
    count, words = (
        (options.counter, options.counter_name) if options.counter else (counting.count, counting.label)
    )
    known, before = _accepted(key, raws), _TALLIES.pop(key, None)
    sums = tally(raws, provider=wire, count=count, before=before.sums if before else None)
    same = known if before and before.sums.provider == sums.provider else 0
    accepted = checked and is_sendable(raws, sums.provider, known=same, plain=plain)
    _TALLIES[key] = LastRequest(sums, accepted)
    if len(_TALLIES) > KEPT_TALLIES:
        _TALLIES.popitem(last=False)
    sent, doubtful = RepairedRaws(list(raws), [], list(range(len(raws)))), unpaired_findings(sums.messages)
    if checked and not accepted:
        sent = sendable(raws, sums.provider, keep=protected_positions(sums.messages, chosen))
        doubtful = sent.findings
        sums = tally(sent.raws, provider=sums.provider, count=count, before=sums)
    limits = bounds(chosen, counting.profile.window if window is None and counting.profile else window or 0)
    behind = sum(message_tokens(one, count) for one in convert.read(options.unsaved or (), wire))
    budget = ContextBudget(
        limits.window, limits.reserve,
        system=system_tokens(system, count) + behind, tools=tools_tokens(tools, count), messages=sums.total,
    )  # fmt: skip
    # If the caller gives the window, an unknown model is no finding.
    doubts += [one for one in counting.findings if one.code != "unknown-model" or window is None]
    findings = [*limits.findings, *doubts, *doubtful]
    return Case(
        conversation_id, list(raws), sent.raws, sent.places, sums, budget, limits, chosen, model or "", words, record, options, note, findings,
        f"tool {RECALL}" if offers_recall(tools) else str(path_of(record, conversation_id)),
    )  # fmt: skip


def offers_recall(tools: Any) -> bool:
    """Return whether the tools of a request include the one of `aether.recall_tool`."""
    for tool in tools if isinstance(tools, list) else []:
        about = as_object(as_object(tool).get("function") or tool)
        schema = as_object(about.get("input_schema") or about.get("parameters"))
        if about.get("name") == RECALL and "numbers" in as_object(schema.get("properties")):
            return True
    return False


def as_dicts(messages: Sequence[Any]) -> list[JsonObject]:
    """Return messages as dicts; an object with `role`, `content` and `meta` is converted.

    Raises:
        InvalidInput: they are not a list, or one is neither.
    """
    if not isinstance(messages, Sequence) or isinstance(messages, (str, bytes)):
        raise InvalidInput(
            f"{shown(messages)} is not a list.", fix="Give a list of messages.", where="messages"
        )
    raws: list[JsonObject] = []
    for position, message in enumerate(messages):
        if isinstance(message, dict):
            raws.append(message)
            continue
        meta = getattr(message, "meta", None)
        if not (isinstance(meta, dict) and hasattr(message, "role") and hasattr(message, "content")):
            where = f"messages[{position}]"
            fix = "Give each message as an object."
            raise InvalidInput(f"{shown(message)} is not a message.", fix=fix, where=where)
        beside = {key: meta[key] for key in META_KEYS if key in meta}
        own = {key: value for key, value in meta.items() if key not in beside}
        meta_part = {convert.META: own} if own else {}
        raws.append({"role": message.role, "content": message.content, **beside, **meta_part})
    return raws


def unpaired_findings(messages: Sequence[Message]) -> list[Finding]:
    """Return findings about calls without results and results without calls; both are passed on unchanged.

    Calls that only results follow may still be running.
    """
    calls: dict[str, int] = {}
    orphans: list[int] = []
    spoken = -1
    for position, message in enumerate(messages):
        if message.role == "user" and any(block.kind == "text" for block in message.blocks):
            spoken = position
        for block in message.blocks:
            if block.kind == "call":
                calls[block.call_id] = position
            elif block.kind == "result" and calls.pop(block.call_id, None) is None:
                orphans.append(position)
    dangling = [position for position in calls.values() if position < spoken]
    return [
        Finding(
            "warning", code, f"messages[{found[0]}]", f"{pluralize(len(found), what)}, the first here.",
            "See aether.messages.validate, or aether messages check --repair.",
        )
        for code, found, what in (
            ("orphan-result", orphans, "results of tools without a call"),
            ("missing-result", dangling, "calls of tools without an answer"),
        )
        if found
    ]  # fmt: skip


def report_findings(conversation_id: str, findings: Sequence[Finding], options: Options) -> None:
    """Hand the findings of a call whose result has no place for them to the caller, else to the logger `aether`, once."""
    for finding in findings:
        if options.report is not None:
            options.report(finding)
        elif finding.code == "unknown-model":
            tokens.warn_once([finding])
        elif finding.level != "info" and tokens.is_first(conversation_id, finding):
            text = f"conversation {shown(conversation_id)}: {finding.where}: {finding.message} {finding.fix}"
            logging.getLogger("aether").warning(text)


def _accepted(key: tuple[str, str], raws: Sequence[JsonObject]) -> int:
    """Return how many messages at the start are those of the last request, which its provider accepted."""
    before = _TALLIES.get(key)
    if not before or not before.accepted:
        return 0
    same = map(eq, raws, before.sums.raws)
    return next((at for at, one in enumerate(same) if not one), min(len(raws), len(before.sums.raws)))


def _storable(
    raws: Sequence[JsonObject], *, known: int
) -> tuple[Sequence[JsonObject], list[Finding], frozenset[int]]:
    """Return messages as the record can hold them, the first `known` as they are, and a finding for each that it could not.

    At last the identities of those new ones that are plain JSON, of which nothing has to be rewritten to be sent either.
    """
    plain = frozenset([id(raw) for raw in raws[known:] if encodable(raw) is raw])
    made = [
        *raws[:known],
        *(raw if id(raw) in plain else encodable(raw, lone=False) for raw in raws[known:]),
    ]
    what = "Rewrote what no record can hold: numbers that are not finite, or nesting that is too deep."
    findings = [
        Finding("info", "not-json", f"messages[{at}]", what, "Nothing has to be done.")
        for at, raw in enumerate(made)
        if raw is not raws[at]
    ]
    return made, findings, plain


def _require_parts(model: Any, window: Any, policy: Any, options: Options) -> None:
    wanted = {
        "model": model is None or isinstance(model, str),
        "window": window is None or (isinstance(window, int) and not isinstance(window, bool)),
        "policy": isinstance(policy, (str, Policy)),
        "options": isinstance(options, Options),
    }
    for name, fits in wanted.items():
        if not fits:
            raise InvalidInput(f"{name} has the wrong type.", fix=f"See help on {name}.", where=name)
    for name, method in (("storage", "save_transcript"), ("exporter", "emit")):
        part = getattr(options, name)
        if part is not None and not hasattr(part, method):
            fix = f"Give an object that is a {name}."
            raise InvalidInput(f"{shown(part)} has no {method}.", fix=fix, where=f"options.{name}")


def make_receipt(
    case: Case, plan: Plan, result: Compacted, written: WrittenSummary, *, had: Sequence[bytes], made: Sequence[bytes]
) -> Receipt:  # fmt: skip
    """Return the record of one compaction, given the texts of the messages before and after it; its step is not known yet."""
    summary: JsonObject = {}
    if result.summary:
        tokens = case.sums.count(rendered(result.summary))
        summary = {"version": result.summary.version, "tokens": tokens, **written.record}
    places = [None if place is None else case.origins[place] for place in result.places]
    return Receipt(
        conversation_id=case.conversation_id,
        step=0,
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
        messages_after=len(made),
        kept=result.kept._asdict(),
        removed=sorted({*range(len(case.raws))} - {*places}),
        places=places,
        protected=sorted({case.origins[at] for at in result.protected}),
        cuts=[cut._replace(at=case.origins[cut.at])._asdict() for cut in result.cuts],
        steps=list(result.steps),
        summary=summary,
        sha256_before=_checksum(had),
        sha256_after=_checksum(made),
        findings=[finding._asdict() for finding in _with_findings(case, result.findings)],
    )  # fmt: skip


def messages_checksum(raws: Sequence[JsonObject]) -> str:
    """Return the SHA-256 of messages as the log writes them, one per line."""
    return _checksum(map(files.json_line, raws))


def _checksum(texts: Iterable[bytes]) -> str:
    return hashlib.sha256(b"\n".join(texts)).hexdigest()


def _policy_json(policy: Policy) -> JsonObject:
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in policy._asdict().items()
    }


def event_moment(case: Case, preflight: str) -> tell.Moment:
    """Return the fields that every event of this call has."""
    return tell.Moment(
        clock.stamp(clock.now()), case.conversation_id, case.model, case.budget.used, case.budget.window, preflight
    )  # fmt: skip


def emit_event(case: Case, event: Event) -> None:
    """Hand `event` to the exporter, if any, without waiting for its delivery."""
    if case.options.exporter:
        try:
            case.options.exporter.emit(event)
        except Exception as reason:  # noqa: BLE001 - an event must not stop the compaction
            warn("exporter", f"an event was lost: {type(reason).__name__}: {reason}")


def emit_token_estimate(case: Case, at: tell.Moment) -> None:
    """Emit the token counts of the conversation."""
    parts = {
        "system": case.budget.system, "developer": case.budget.developer, "tools_schema": case.budget.tools,
        "messages": case.budget.messages,
    }  # fmt: skip
    emit_event(case, tell.token_estimate(at, parts))


def emit_decision(case: Case, at: tell.Moment, *, plan: Plan | None, reason: str) -> None:
    """Emit the decision whether to compact, and its reason."""
    policy = {
        "trigger_pct": case.policy.trigger, "hard_cap_buffer": case.limits.reserve, "strategy": case.policy.strategy,
    }  # fmt: skip
    why = plan and plan.why
    kept = why and {"pinned": why.pinned, "recent_turns": why.recent, "tool_pairs": why.tool_pairs}
    pruned = len(case.sent) - len(plan.kept) if plan else None
    event = tell.trigger_decision(
        at, triggered=plan is not None, reason=reason, policy=policy, kept=kept, pruned_count=pruned, note=case.note
    )  # fmt: skip
    emit_event(case, event)


def emit_error(case: Case, at: tell.Moment, *, kind: str, message: str, fallback: str) -> None:
    """Emit the failure of a step, and its replacement."""
    emit_event(case, tell.error(at, error_type=kind, message=message, fallback=fallback))


def emit_compaction(case: Case, at: tell.Moment, found: Receipt, result: Compacted) -> None:
    """Emit the result of a compaction."""
    kept = {
        "pinned": found.kept["pinned"], "recent_turns": found.kept["recent"], "tool_pairs": found.kept["tool_pairs"],
    }  # fmt: skip
    if result.summary:
        removed = sum(case.sums.tokens) - sum(
            case.sums.tokens[place] for place in result.places if place is not None
        )
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
    """Save redacted copies of the earlier messages and of the summary; failures are findings."""
    storage = case.options.storage
    if storage is None:
        return []

    def clean(value: Any) -> Any:
        return value if case.options.rules is None else redacted(value, case.options.rules)

    if case.options.rules is None:
        emit_event(case, tell.redaction_disabled(at, storage.name))
    try:
        # Copies may be older than the home: a step that they have already is not overwritten.
        step = found.step
        if hasattr(storage, "next_step"):
            step = max(step, storage.next_step(case.conversation_id))
        place = storage.save_transcript(case.conversation_id, clean(case.raws), step)
        if result.summary:
            about = {"text": rendered(result.summary), **found.summary, "receipt": found._asdict()}
            storage.save_summary(case.conversation_id, clean(about), step)
        emit_event(case, tell.archival(at, step=step, storage_adapter=storage.name, place=place))
    except AetherError as reason:
        emit_error(case, at, kind=reason.code, message=reason.what, fallback="home")
        return [Finding("warning", "copy-failed", storage.name, reason.what, reason.fix)]
    except Exception as reason:  # noqa: BLE001 - an adapter of the caller may raise any error
        emit_error(case, at, kind=type(reason).__name__, message=str(reason), fallback="home")
        return [Finding("warning", "copy-failed", storage.name, str(reason), "Repair the adapter.")]
    return []


def redaction_rules(config: CompactConfig) -> Rules | None:
    """Return the redaction of copies; None if the configuration turns it off."""
    return rules(config.redaction_patterns) if config.redaction_enabled else None


def options_from_config(
    config: CompactConfig,
    *,
    home: Home = None,
    storage: StorageAdapter | None = None,
    exporter: Exporter | None = None,
) -> Options:
    """Return the options of a compaction: the parts that `config` names, or those given.

    Conversations are kept in the home, or in `.compact/` if none is named and none found. Events of a compaction
    are kept beside its copies.

    Raises:
        BackendUnavailable: a package that the configuration asks for is missing.
        InvalidInput: an address is invalid.
    """
    kept = None if storage is None else guarded_storage(storage)
    if storage is None and config.storage_enabled and config.storage_adapter != "none":
        kept = storage_of(
            config.storage_adapter, path=config.storage_path, bucket=config.storage_bucket,
            prefix=config.storage_prefix, kms_key_id=config.storage_kms_key_id,
        )  # fmt: skip
    carriers = [_exporter(config) if exporter is None else exporter]
    if kept is not None:

        def save(event: Event) -> None:
            if event.name not in _EACH_TURN or event.properties.get("triggered"):
                kept.save_event(event.session_id, record(event))

        carriers.append(exporters.callback(save, rules=redaction_rules(config)))
    return Options(
        backend=config.summarizer_backend,
        settings=Settings(model=config.summarizer_model, timeout_seconds=config.summarization_timeout),
        storage=kept,
        exporter=exporters.fan_out(carriers),
        rules=redaction_rules(config),
        record=record_directory(home),
    )


def _exporter(config: CompactConfig) -> Exporter:
    urls = {"ariadne": config.ariadne_url, "otlp": config.otlp_url}
    kinds = cast("list[exporters.Kind]", [kind.strip() for kind in config.exporter.split(",")])
    path, rules = config.telemetry_path, redaction_rules(config)
    made = [exporters.exporter(kind, url=urls.get(kind, ""), path=path, rules=rules) for kind in kinds]
    return exporters.fan_out(made) if len(made) > 1 else made[0]


def guarded_storage(storage: StorageAdapter) -> StorageAdapter:
    """Return a storage of the caller so that its errors become `StorageFailed`: its copies are not the record."""
    name = str(getattr(storage, "name", "") or type(storage).__name__)
    methods = ["save_transcript", "save_summary", "save_event"]
    methods += ["next_step"] if hasattr(storage, "next_step") else []

    def call(method: str, *arguments: Any) -> Any:
        try:
            found = getattr(storage, method)(*arguments)
            return found if isinstance(found, int) else str(found or name)
        except Exception as reason:
            what = f"{type(reason).__name__}: {reason}"
            raise StorageFailed(
                what, fix="Check the storage; the home has the full history.", where=name
            ) from reason

    made = SimpleNamespace(name=name, **{method: partial(call, method) for method in methods})
    return cast("StorageAdapter", made)

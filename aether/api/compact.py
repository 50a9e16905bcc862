"""Compaction of a conversation: look at it before it is sent, make it fit, record what was done, undo it.

`preflight` returns the very messages it was given until a trigger of the policy fires; `compact` does not wait for one. The
write that records a compaction also stores the whole conversation in the home (`conversations/<id>/history.jsonl`), so
`undo_compaction` restores it byte for byte. A conversation that cannot be made to fit is not changed, and an error is raised.
Events and copies, through an exporter or a storage adapter, leave the home and are redacted; a copy that fails is a finding,
because the exact record is in the home. The steps themselves are in `compaction`, differences and dry runs in `compact_views`.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import cache, partial, wraps
from operator import eq
from pathlib import Path
from threading import Event as Flag
from typing import Any, NamedTuple, ParamSpec, cast

from aether import clock
from aether.api import tokens
from aether.api.conversations import make_record, record_directory, resume_in
from aether.api.home import Home
from aether.architects import backend as backend_of
from aether.architects.base import Settings
from aether.clock import short_id
from aether.conversation.partition import protected_positions
from aether.conversation.plan import apply, plan
from aether.conversation.policy import CompactConfig, ContextBudget, bounds, fires, validated
from aether.conversation.policy import policy as named
from aether.conversation.readings import Readings
from aether.conversation.receipts import policy_json, step_receipt
from aether.conversation.shapes import Bounds, Compacted, Plan, Policy, Receipt, SummaryTask
from aether.conversation.summarise import FALLBACK, Summarizer, Written, write_summary
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
from aether.messages.model import ProviderFormat, as_object
from aether.messages.validate import Accepted, accepted, accepts_more, is_sendable, sendable
from aether.redact.redact import DEFAULT, Rules, redact, redacted, rules
from aether.storage import storage as storage_of
from aether.storage.adapter import StorageAdapter
from aether.store import config, conversations, history
from aether.store.conversations import load, path_of
from aether.store.history import Log
from aether.text.words import pluralize
from aether.tokens.count import Tally, message_tokens, system_tokens, tally, tools_tokens
from aether.tokens.counters import remembering
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
    accepted: Accepted | None
    """What is known of them for the next check, if their provider accepts them as they are."""
    readings: Readings
    """What is known of each message."""


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
    again, unless `resume` is off. A damaged record is a finding, and so is a pipe or a link in its place: nothing is then
    compacted. The default of `window` is that of the model. `system` and `tools` are counted and never changed. Messages
    that the provider would refuse are returned repaired, with a finding for each change: orphans, blank blocks, media
    without a source and the like are dropped, but no text of users, of the assistant, or of a protected message. The
    record keeps the messages as given, as far as JSON can. Without `repair` they are returned unrepaired.

    Raises:
        InvalidInput: a message or the policy is invalid, or there is neither a window nor a model.
        BudgetExceeded: the protected messages do not fit; nothing was changed.
        NotFound: the named home does not exist.
        Conflict, LockTimeout, StorageFailed, CorruptDocument: the compaction could not be recorded, and was not made.
    """
    case = resolve_case(
        conversation_id, as_dicts(messages), model=model, window=window, policy=policy, system=system, tools=tools, wire=wire,
        note="", resume=resume, repair=repair, options=options, home=home,
    )  # fmt: skip
    return _preflight(case, force=False)


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
    case = resolve_case(
        conversation_id, as_dicts(messages), model=model, window=window, policy=policy, system=system, tools=tools, wire=wire,
        note=note, repair=repair, options=options, home=home,
    )  # fmt: skip
    return _preflight(case, force=True)


def _twin(do: Callable[_Arguments, Compaction]) -> Callable[_Arguments, Coroutine[Any, Any, Compaction]]:
    """Return the asynchronous twin of `do`: it runs in a thread, and the event loop goes on."""

    @wraps(do)
    async def twin(*arguments: _Arguments.args, **options: _Arguments.kwargs) -> Compaction:
        import asyncio

        cancelled = Flag()
        before = _CANCELLED.set(cancelled)  # the thread gets a copy
        try:
            return await asyncio.to_thread(do, *arguments, **options)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        finally:
            _CANCELLED.reset(before)

    summary, _, details = (do.__doc__ or "").partition("\n")
    twin.__name__ = twin.__qualname__ = f"a{do.__name__}"
    twin.__doc__ = f"{summary}\n\n    It runs in a thread. After a cancellation nothing is recorded, unless it had already started to record.\n{details}"
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
    """Return what `preflight`, or `compact` with `force`, would do; nothing is changed and no model is asked.

    Raises:
        InvalidInput, BudgetExceeded, NotFound: as `preflight`.
    """
    case = resolve_case(
        conversation_id, as_dicts(messages), model=model, window=window, policy=policy, system=system, tools=tools, wire=wire,
        note="", repair=repair, options=options, home=home,
    )  # fmt: skip
    return _make_plan(case, load(case.record, case.conversation_id), _texts(case), force=force)


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
    undone = conversations.undo(place, conversation_id, step=step, now=clock.now())
    document = {**wrapper["body"], wrapper["key"]: undone.messages} if wrapper else undone.messages
    return UndoneCompaction(undone.messages, undone.step, undone.findings, document)


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
    readings: Readings
    full_text: str = ""
    """Where a model finds the full text of removed messages: the file of the conversation, or its tool for this."""
    at: tell.Moment = tell.Moment("", "")
    """The fields that every event of this call has."""


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
    repairs = repair and options.unsaved is None
    before = _TALLIES.pop(key, None)
    start = _accepted(before, raws)
    raws, findings, plain = _storable(raws, accepted=start) if repairs else (raws, [], frozenset())  # fmt: skip
    if resume and options.unsaved is None:
        with suppress(CorruptDocument, StorageFailed, UnsafePath):  # `_damage` reports it
            given, raws = raws, resume_in(record, conversation_id, raws)
            start = start if raws is given else _accepted(before, raws)
    chosen = validated(named(policy) if isinstance(policy, str) else policy)
    counting = tokens.counting(model or "", place=record)
    profile = counting.profile
    if window is None and profile is None:
        raise InvalidInput("there is neither a model nor a window.", fix="Give one of them.", where="window")
    if window is None and not options.assume_window and profile and not profile.known:
        fix = "Give the window, or add the model to models.json in the home."
        raise InvalidInput(f"the window of {shown(model)} is not known.", fix=fix, where="window")
    count = remembering(options.counter or counting.count, before.sums.count if before else None)
    sums = tally(raws, provider=wire, count=count, before=before.sums if before else None, start=start)
    request = _request(before, start, raws, sums, repairs=repairs, plain=plain, rules=options.rules)
    _TALLIES[key] = request
    if len(_TALLIES) > KEPT_TALLIES:
        _TALLIES.popitem(last=False)
    sent = RepairedRaws(list(raws), [], list(range(len(raws))))
    if repairs and not request.accepted:
        sent = sendable(raws, sums.provider, keep=protected_positions(sums.messages, chosen))
        sums = tally(sent.raws, provider=sums.provider, count=count, before=sums)
    limits = bounds(chosen, profile.window if window is None and profile else window or 0)
    unsaved = sum(message_tokens(message, count) for message in convert.read(options.unsaved or (), wire))
    budget = ContextBudget(
        limits.window, limits.reserve,
        system=system_tokens(system, count) + unsaved, tools=tools_tokens(tools, count), messages=sums.total,
    )  # fmt: skip
    # If the caller gives the window, an unknown model is no finding.
    doubts = [finding for finding in counting.findings if finding.code != "unknown-model" or window is None]
    return Case(
        conversation_id, list(raws), sent.raws, sent.places, sums, budget, limits, chosen, model or "",
        options.counter_name if options.counter else counting.label, record, options, note,
        [*limits.findings, *findings, *doubts, *sent.findings], request.readings,
        f"tool {RECALL}" if offers_recall(tools) else str(path_of(record, conversation_id)),
        tell.Moment(
            clock.stamp(clock.now()), conversation_id, model or "", budget.used, budget.window, short_id("preflight")
        ),
    )  # fmt: skip


def _require_parts(model: Any, window: Any, policy: Any, options: Any) -> None:
    is_valid = {
        "model": model is None or isinstance(model, str),
        "window": window is None or (isinstance(window, int) and not isinstance(window, bool)),
        "policy": isinstance(policy, (str, Policy)),
        "options": isinstance(options, Options),
    }
    for name, holds in is_valid.items():
        if not holds:
            raise InvalidInput(f"{name} has the wrong type.", fix=f"See help on {name}.", where=name)


def _accepted(before: LastRequest | None, raws: Sequence[JsonObject]) -> int:
    """Return how many messages at the start are those of the last request, which its provider accepted."""
    if not before or not before.accepted:
        return 0
    number = len(before.sums.raws)
    if raws[:number] == before.sums.raws:
        return number
    same = map(eq, raws, before.sums.raws)
    first_new = (index for index, is_same in enumerate(same) if not is_same)
    return next(first_new, min(len(raws), number))


def _request(
    before: LastRequest | None, start: int, raws: Sequence[JsonObject], sums: Tally, *, repairs: bool, plain: frozenset[int],
    rules: Rules | None,
) -> LastRequest:  # fmt: skip
    """Return what is known of these messages: that of the first `start`, which the last request had, is taken from there.

    Of a new message that follows those it is computed at once: a compaction then has to read none.
    """
    number = start if before and before.sums.provider == sums.provider else 0
    known = before.accepted if before and number == len(before.sums.raws) else None
    is_accepted = repairs and (
        accepts_more(known, raws, sums.messages, plain=plain)
        if known and sums.messages
        else is_sendable(raws, sums.provider, known=number, plain=plain)
    )
    readings = before.readings if before and before.readings.rules == rules else Readings(rules)
    for message in sums.messages[number:] if before else ():
        readings.add(message).compute()
    return LastRequest(sums, accepted(sums.messages, known) if is_accepted else None, readings)


def _storable(
    raws: Sequence[JsonObject], *, accepted: int
) -> tuple[Sequence[JsonObject], list[Finding], frozenset[int]]:
    """Return messages as the record can hold them, the first `accepted` unchanged, and a finding for each other one.

    At last the identities of the new ones that are plain JSON, of which nothing has to be rewritten to be sent either.
    """
    new = raws[accepted:]
    plain = frozenset([id(raw) for raw in new if encodable(raw) is raw])
    if len(plain) == len(new):
        return raws, [], plain
    storable = [*raws[:accepted], *(raw if id(raw) in plain else encodable(raw, lone=False) for raw in new)]
    what = "Rewrote what no record can hold: numbers that are not finite, or nesting that is too deep."
    findings = [
        Finding("info", "not-json", f"messages[{index}]", what, "Nothing has to be done.")
        for index, raw in enumerate(storable)
        if raw is not raws[index]
    ]
    return storable, findings, plain


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
    if {*map(type, messages)} <= {dict}:
        return list(messages)
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
        fields = {key: meta[key] for key in META_KEYS if key in meta}
        about = {key: value for key, value in meta.items() if key not in fields}
        meta_part = {convert.META: about} if about else {}
        raws.append({"role": message.role, "content": message.content, **fields, **meta_part})
    return raws


def _preflight(case: Case, *, force: bool) -> Compaction:
    case = case._replace(findings=[*case.findings, *_damage(case)])
    budget = case.budget
    parts = {
        "system": budget.system, "developer": budget.developer, "tools_schema": budget.tools, "messages": budget.messages,
    }  # fmt: skip
    _emit(case, tell.token_estimate(case.at, parts))
    try:
        if not force and not fires(budget, case.policy, len(case.sent)):
            return _remember_request(case, _unchanged(case, []))
        return _remember_request(case, _compact_with_retries(case, force=force))
    except AetherError as reason:
        _emit(case, tell.error(case.at, error_type=reason.code, message=reason.what, fallback="none"))
        if force or not isinstance(reason, UnsafePath):
            raise
        what = f"Not compacted, because nothing could be recorded: {reason.what}"
        refusal = Finding("warning", "not-compacted", reason.where, what, reason.fix)
        return _remember_request(case, _unchanged(case, [refusal]))


def _damage(case: Case) -> list[Finding]:
    """Return a finding if the record of the conversation is damaged: its agent goes on with the messages that it has."""
    try:
        damaged = load(case.record, case.conversation_id).damaged
    except (CorruptDocument, StorageFailed, UnsafePath) as reason:
        return [Finding("warning", reason.code, reason.where, reason.what, reason.fix)]
    what = f"damaged in its record: {pluralize(damaged, 'places')}; the messages there are not in the full history."
    place = f"conversation {case.conversation_id}"
    return [Finding("warning", "damaged-line", place, what, 'Run "aether doctor".')] if damaged else []


def _remember_request(case: Case, compaction: Compaction) -> Compaction:
    """Return `compaction` after its count is remembered, until the provider reports its own (`answered`)."""
    key = (case.record, case.conversation_id)
    _REQUESTS.pop(key, None)
    if case.model not in ("", UNNAMED_MODEL) and case.options.counter is None:
        _REQUESTS[key] = (case.model, compaction.tokens_after)
        if len(_REQUESTS) > KEPT_TALLIES:
            _REQUESTS.pop(next(iter(_REQUESTS)), None)
    return compaction


def _unchanged(case: Case, findings: list[Finding]) -> Compaction:
    reason = findings[-1].message if findings else "usage_pct < trigger_pct"
    _emit_decision(case, plan=None, reason=reason)
    used = case.budget.used
    return Compaction(
        case.sent, False, reason, used, used, case.budget.window, case.budget.limit, case.counter, None,
        _with_findings(case, findings),
    )  # fmt: skip


def _with_findings(case: Case, added: Iterable[Finding]) -> list[Finding]:
    """Return the findings of a call and `more`, each once: a plan repeats those about its bounds."""
    return [*dict.fromkeys([*case.findings, *added])]


def _compact_with_retries(case: Case, *, force: bool) -> Compaction:
    """Plan and apply; if another process compacted the same conversation meanwhile, plan again.

    A model is asked only once for the same task.
    """
    answers: dict[SummaryTask | None, Written] = {}
    texts = _texts(case)
    for tries_left in reversed(range(CONFLICT_TRIES)):
        log = _log_of_caller(case)
        plan_made = _make_plan(case, log, texts, force=force)
        if not plan_made.triggered:
            break
        if plan_made.task not in answers:
            _emit_decision(case, plan=plan_made, reason=plan_made.reason)
            answers[plan_made.task] = _write(case, plan_made)
        cancelled = _CANCELLED.get()
        if cancelled and cancelled.is_set():
            raise Conflict(
                "the caller was cancelled.", fix="Nothing was changed.", where=case.conversation_id
            )
        try:
            return _apply_plan(case, plan_made, log, answers[plan_made.task], before=texts())
        except Conflict:
            if not tries_left:
                raise
    return _unchanged(case, list(plan_made.findings))


def _texts(case: Case) -> Callable[[], list[bytes]]:
    """Return a function that writes the messages as the log does, at its first call: they are long, and compared often."""
    return cache(lambda: history.texts(case.raws))


def _log_of_caller(case: Case) -> Log:
    """Return the log of the conversation, up to the messages of the caller."""
    log = load(case.record, case.conversation_id)
    if case.options.unsaved is None:
        return log
    seen = log._replace(context=log.context[: len(case.raws)])
    if history.context(seen) != case.raws:
        raise Conflict(
            f"the live messages of conversation {shown(log.id)} have changed since they were read.",
            fix="Read them again, and compact those.",
            where=str(log.path),
        )
    return seen


def _make_plan(case: Case, log: Log, texts: Callable[[], list[bytes]], *, force: bool) -> Plan:
    # Computed only if something is shortened: it reads every message.
    numbers = cache(lambda: history.numbered(log, texts()))
    return plan(
        case.sums.messages, case.policy, case.sums.count, window=case.budget.window,
        overhead=case.budget.used - case.budget.messages, tokens=case.sums.tokens, force=force,
        last_tokens=log.compactions[-1].receipt["tokens_after"] if log.open else None,
        pointer=lambda position: f"{case.full_text} n={numbers()[case.origins[position]]}", readings=case.readings,
    )  # fmt: skip


def _write(case: Case, plan: Plan) -> Written:
    """Return the prose of the summary, and emit an event for each failure."""
    if plan.task is None:
        return Written(None, {}, [])
    settings = config.or_default(case.record)
    backend = (case.options.backend or settings.compact_backend) if plan.asks else FALLBACK
    if isinstance(backend, str):
        backend_of(backend)  # an unknown name is a mistake of the caller, not a failure of a backend
    reach = case.options.settings or Settings(
        model=settings.compact_model, timeout_seconds=settings.compact_timeout_seconds
    )
    if not case.options.backend:
        case.findings.extend(config.untrusted(case.record, "summarizer."))
    written = write_summary(
        plan.task, backend=backend, settings=reach, count=case.sums.count, rules=case.options.rules
    )
    for failure in written.failures:
        event = tell.error(
            case.at, error_type=failure["error_type"], message=failure["message"], fallback=written.record["backend"]
        )  # fmt: skip
        _emit(case, event)
    return written


def _apply_plan(case: Case, plan: Plan, log: Log, written: Written, *, before: Sequence[bytes]) -> Compaction:
    """Apply the plan, record the compaction, and emit its events; `before` are the texts of the given messages."""
    redaction = case.options.rules
    prose = redact(written.prose, redaction) if written.prose and redaction else written.prose
    result = apply(plan, prose)
    raws = [
        case.sent[place] if place is not None and message is plan.messages[place] else message.raw
        for place, message in zip(result.places, result.messages, strict=True)
    ]
    text_by_id = dict(zip(map(id, case.raws), before, strict=True))
    after = [text_by_id.get(id(raw)) or history.text_of(raw, nth) for nth, raw in enumerate(raws)]
    receipt = _receipt(case, plan, result, written, before=before, after=after)
    make_record(case.record)
    wrapper = {"wrapper": case.options.wrapper} if case.options.wrapper else {}
    step = conversations.record_compaction(
        case.record, case.conversation_id, before=case.raws, after=raws, places=receipt.places,
        receipt=receipt._asdict() | wrapper, now=clock.now(), read=log, had=before, made=after,
    )  # fmt: skip
    receipt = receipt._replace(step=step)
    _emit_compaction(case, receipt, result)
    fix = f"Nothing to do: {written.record.get('backend') or 'nobody'} wrote it."
    failures = []
    for failure in written.failures:  # the message of a failing backend may hold secrets
        words = f"{failure['backend']}: {failure['message']}"
        words = redact(words, redaction) if redaction else words
        failures.append(Finding("warning", "summary-not-taken", failure["backend"], words, fix))
    findings = [*failures, *result.findings, *_save_copies(case, receipt, result)]
    return Compaction(
        raws, True, plan.reason, result.tokens_before, result.tokens_after, case.budget.window, result.limit,
        case.counter, receipt, _with_findings(case, findings),
    )  # fmt: skip


def _receipt(
    case: Case, plan: Plan, result: Compacted, written: Written, *, before: Sequence[bytes], after: Sequence[bytes]
) -> Receipt:  # fmt: skip
    summary: JsonObject = {}
    if result.summary:
        size = case.sums.count(rendered(result.summary))
        summary = {"version": result.summary.version, "tokens": size, **written.record}
    limits = case.limits
    return step_receipt(
        case.conversation_id, at=clock.stamp(clock.now()), before=before, after=after,
        places=[None if place is None else case.origins[place] for place in result.places],
        tokens_before=result.tokens_before, tokens_after=result.tokens_after, counter=case.counter,
        policy=policy_json(case.policy),
        effective={
            **policy_json(result.effective), "window": limits.window, "limit": limits.limit, "ceiling": limits.ceiling,
            "goal": limits.goal,
        },
        trigger=plan.reason, note=case.note, kept=result.kept._asdict(),
        protected={case.origins[index] for index in result.protected},
        cuts=[cut._replace(at=case.origins[cut.at])._asdict() for cut in result.cuts],
        steps=list(result.steps), summary=summary,
        findings=[finding._asdict() for finding in _with_findings(case, result.findings)],
    )  # fmt: skip


def _emit(case: Case, event: Event) -> None:
    """Hand `event` to the exporter, if any, without waiting for its delivery."""
    if case.options.exporter:
        try:
            case.options.exporter.emit(event)
        except Exception as reason:  # noqa: BLE001 - an event must not stop the compaction
            warn("exporter", f"an event was lost: {type(reason).__name__}: {reason}")


def _emit_decision(case: Case, *, plan: Plan | None, reason: str) -> None:
    policy = {
        "trigger_pct": case.policy.trigger, "hard_cap_buffer": case.limits.reserve, "strategy": case.policy.strategy,
    }  # fmt: skip
    counts = _kept(plan.why._asdict()) if plan else None
    pruned = len(case.sent) - len(plan.kept) if plan else None
    event = tell.trigger_decision(
        case.at, triggered=plan is not None, reason=reason, policy=policy, kept=counts, pruned_count=pruned, note=case.note
    )  # fmt: skip
    _emit(case, event)


def _kept(why: Mapping[str, int]) -> dict[str, int]:
    return {"pinned": why["pinned"], "recent_turns": why["recent"], "tool_pairs": why["tool_pairs"]}


def _emit_compaction(case: Case, receipt: Receipt, result: Compacted) -> None:
    if result.summary:
        stayed = sum(case.sums.tokens[place] for place in result.places if place is not None)
        event = tell.summary_created(
            case.at, strategy=receipt.summary.get("strategy", case.policy.strategy), input_messages=len(receipt.removed),
            input_tokens=sum(case.sums.tokens) - stayed, summary_tokens=receipt.summary["tokens"],
            summary=rendered(result.summary),
        )  # fmt: skip
        _emit(case, event)
    event = tell.pruned_messages(
        case.at, pruned_count=len(receipt.removed), kept=_kept(receipt.kept), tokens_before=receipt.tokens_before,
        tokens_after=receipt.tokens_after,
    )  # fmt: skip
    _emit(case, event)


def _save_copies(case: Case, receipt: Receipt, result: Compacted) -> list[Finding]:
    """Save redacted copies of the earlier messages and of the summary; failures are findings."""
    storage, redaction = case.options.storage, case.options.rules
    if storage is None:
        return []
    name = str(getattr(storage, "name", "") or type(storage).__name__)

    def clean(value: Any) -> Any:
        return value if redaction is None else redacted(value, redaction)

    if redaction is None:
        _emit(case, tell.redaction_disabled(case.at, name))
    try:
        # Copies may be older than the home: a step that they have already is not overwritten.
        step = receipt.step
        if hasattr(storage, "next_step"):
            step = max(step, storage.next_step(case.conversation_id))
        place = storage.save_transcript(case.conversation_id, clean(case.raws), step)
        if result.summary:
            about = {"text": rendered(result.summary), **receipt.summary, "receipt": receipt._asdict()}
            storage.save_summary(case.conversation_id, clean(about), step)
        _emit(case, tell.archival(case.at, step=step, storage_adapter=name, place=str(place or name)))
    except Exception as reason:  # noqa: BLE001 - an adapter of the caller may raise any error
        kind, what, fix = (
            type(reason).__name__,
            str(reason),
            "Check the storage; the home has the full history.",
        )
        if isinstance(reason, AetherError):
            kind, what, fix = reason.code, reason.what, reason.fix
        _emit(case, tell.error(case.at, error_type=kind, message=what, fallback="home"))
        return [Finding("warning", "copy-failed", name, f"{kind}: {what}", fix)]
    return []


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
    if storage is None and config.storage_enabled and config.storage_adapter != "none":
        storage = storage_of(
            config.storage_adapter, path=config.storage_path, bucket=config.storage_bucket,
            prefix=config.storage_prefix, kms_key_id=config.storage_kms_key_id,
        )  # fmt: skip
    redaction = redaction_rules(config)
    carriers = [exporter] if exporter else _exporters(config, redaction)
    if storage is not None:
        carriers.append(exporters.callback(partial(_save_event, storage), rules=redaction))
    return Options(
        backend=config.summarizer_backend,
        settings=Settings(model=config.summarizer_model, timeout_seconds=config.summarization_timeout),
        storage=storage,
        exporter=exporters.fan_out(carriers),
        rules=redaction,
        record=record_directory(home),
    )


def _save_event(storage: StorageAdapter, event: Event) -> None:
    if event.name not in _EACH_TURN or event.properties.get("triggered"):
        storage.save_event(event.session_id, record(event))


def _exporters(config: CompactConfig, redaction: Rules | None) -> list[Exporter]:
    urls = {"ariadne": config.ariadne_url, "otlp": config.otlp_url}
    kinds = cast("list[exporters.Kind]", [kind.strip() for kind in config.exporter.split(",")])
    return [
        exporters.exporter(kind, url=urls.get(kind, ""), path=config.telemetry_path, rules=redaction)
        for kind in kinds
    ]

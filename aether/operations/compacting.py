"""Compacting, as a caller asks for it: look at a conversation before it is sent, and make it fit.

`preflight` returns the very messages it was given until a trigger of the policy fires; `compact` does not wait
for one. The whole conversation stands in the home (`conversations/<id>/history.jsonl`) by the same write that
records the compaction, so `undo_compaction` gives it back byte for byte. What cannot be made to fit changes nothing
and raises. Copies that leave the home, through a storage adapter or an exporter, are redacted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from aether import clock
from aether.backends import backend as backend_of
from aether.backends.base import Settings
from aether.compaction.budget import fires
from aether.compaction.plan import LastTime, Plan, apply, plan
from aether.compaction.shapes import Policy, Receipt, SummaryTask
from aether.errors import AetherError, Conflict, shown
from aether.events import names as tell
from aether.ids import short_id
from aether.messages.message import Wire
from aether.operations import compaction_receipts as receipts
from aether.operations import usage as usages
from aether.operations.compaction_case import (
    DEFAULT_OPTIONS,
    KEPT_TALLIES,
    UNNAMED,
    Case,
    Options,
    as_dicts,
    case,
    place_of,
)
from aether.operations.conversing import continued_in, place
from aether.operations.edge import Home
from aether.operations.summarising import Summarised, summarised
from aether.redact.redaction import redact
from aether.shapes import Finding, JsonObject
from aether.store import config, conversations
from aether.store.conversation_log import Log, load, path_of
from aether.store.files import make_directory

# Each try ends one of those that compact one conversation at once: this is twice as many as a colony has workers.
CONFLICT_TRIES = 16
# By record and conversation: the model that is asked next, and what its request was counted as.
_ASKED: dict[tuple[Path, str], tuple[str, int]] = {}


class Compaction(NamedTuple):
    """A conversation that fits, and what was done to it."""

    messages: list[JsonObject]
    """As they may be sent, `meta` aside; the very objects that were given where nothing was changed."""
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


class Undone(NamedTuple):
    """A conversation with its newest compaction taken back."""

    messages: list[JsonObject]
    step: int
    findings: list[Finding]


def preflight(
    conversation_id: str,
    messages: Sequence[JsonObject],
    *,
    model: str | None = None,
    window: int | None = None,
    policy: str | Policy = "compact",
    system: Any = None,
    tools: Any = None,
    wire: Wire | None = None,
    resume: bool = True,
    options: Options = DEFAULT_OPTIONS,
    home: Home = None,
) -> Compaction:
    """Return `messages` as they may be sent to `model`: the same, or compacted where a trigger fires.

    Go on from what it returns, or pass the whole conversation each time: what was compacted before is then not
    compacted again, unless `resume` is off. `window` is the model's own where none is given. `system` and `tools`
    are counted and never changed.

    Raises:
        InvalidInput: a message is none, the policy makes no sense, or there is neither a window nor a model.
        BudgetExceeded: what is protected does not fit; nothing was changed.
        NotFound: the named one is no home.
        Conflict, LockTimeout, StorageFailed, CorruptDocument: it could not be recorded, and was not done.
    """
    given = as_dicts(messages)
    if resume and isinstance(options, Options) and options.unsaved is None:
        given = continued_in(options.record or place_of(home), conversation_id, given)
    found = case(
        conversation_id, given, model=model, window=window, policy=policy, system=system, tools=tools, wire=wire,
        note="", options=options, home=home,
    )  # fmt: skip
    return _done(found, force=False)


def compact(
    conversation_id: str,
    messages: Sequence[JsonObject],
    *,
    model: str | None = None,
    window: int | None = None,
    policy: str | Policy = "compact",
    system: Any = None,
    tools: Any = None,
    wire: Wire | None = None,
    note: str = "manual",
    options: Options = DEFAULT_OPTIONS,
    home: Home = None,
) -> Compaction:
    """Return `messages` compacted to the target of the policy, whether a trigger fires or not.

    Raises:
        InvalidInput, BudgetExceeded, NotFound: as `preflight`.
    """
    found = case(
        conversation_id, as_dicts(messages), model=model, window=window, policy=policy, system=system, tools=tools, wire=wire,
        note=note, options=options, home=home,
    )  # fmt: skip
    return _done(found, force=True)


def compaction_plan(
    conversation_id: str,
    messages: Sequence[JsonObject],
    *,
    model: str | None = None,
    window: int | None = None,
    policy: str | Policy = "compact",
    system: Any = None,
    tools: Any = None,
    wire: Wire | None = None,
    force: bool = False,
    options: Options = DEFAULT_OPTIONS,
    home: Home = None,
) -> Plan:
    """Return what `preflight`, or `compact` with `force`, would do; nothing is changed and nobody is asked.

    Raises:
        InvalidInput, BudgetExceeded, NotFound: as `preflight`.
    """
    found = case(
        conversation_id, as_dicts(messages), model=model, window=window, policy=policy, system=system, tools=tools, wire=wire,
        note="", options=options, home=home,
    )  # fmt: skip
    return _planned(found, load(found.record, found.conversation_id), force=force)


def answered(conversation_id: str, usage: int | Mapping[str, Any], *, home: Home = None) -> bool:
    """Learn from the `usage` that a provider reports of the request that was last made to fit; return whether it did.

    `usage` is the number of input tokens, cached ones included, or the usage object of the answer. Nothing is learned
    without a home, about a model without a name, where the caller's own counter counted, or from what is no usage:
    an answer that is there is never lost for it.
    """
    try:
        model, counted = _ASKED.pop((place(home), conversation_id))
        usages.record_usage(model, counted, usage, home=home)
    except (KeyError, AetherError):
        return False
    return True


def undo_compaction(conversation_id: str, *, home: Home = None) -> Undone:
    """Take the newest compaction of a conversation back and return its messages, byte for byte as they were.

    Doing it again takes the one before back: what was said since each stands at the end.

    Raises:
        NotFound: there is no such conversation, or no compaction that is not undone.
    """
    done = conversations.undo(place_of(home), conversation_id, now=clock.now())
    return Undone(done.messages, done.step, done.findings)


def _done(found: Case, *, force: bool) -> Compaction:
    at = receipts.moment(found, short_id("preflight"))
    receipts.counted(found, at)
    try:
        if not force and not fires(found.budget, found.policy, len(found.raws)):
            return _noted(found, _untouched(found, at, []))
        return _noted(found, _tried(found, at, force=force))
    except AetherError as reason:
        receipts.failed(found, at, kind=reason.code, message=reason.what, fallback="none")
        raise


def _noted(found: Case, done: Compaction) -> Compaction:
    """Return `done`; remembered is what is asked, until its provider reports what it was (`answered`)."""
    key = (found.record, found.conversation_id)
    _ASKED.pop(key, None)
    if found.model not in ("", UNNAMED) and found.options.counter is None:
        _ASKED[key] = (found.model, done.tokens_after)
        if len(_ASKED) > KEPT_TALLIES:
            _ASKED.pop(next(iter(_ASKED)), None)
    return done


def _tried(found: Case, at: tell.Moment, *, force: bool) -> Compaction:
    """Plan and carry out; where another process compacted the same conversation meanwhile, plan anew.

    A summary that was asked for is not asked for again while the task is the same.
    """
    asked: dict[SummaryTask | None, Summarised] = {}
    for left in reversed(range(CONFLICT_TRIES)):
        log = _read(found)
        made = _planned(found, log, force=force)
        if not made.triggered:
            break
        if made.task not in asked:
            receipts.decided(found, at, plan=made, reason=made.reason)
            asked[made.task] = _summary(found, made, at)
        try:
            return _compacted(found, made, log, at, asked[made.task])
        except Conflict:
            if not left:
                raise
    return _untouched(found, at, list(made.findings))


def _read(found: Case) -> Log:
    """Return the log of the conversation as far as the caller knows it."""
    log = load(found.record, found.conversation_id)
    if found.options.unsaved is None:
        return log
    known = log._replace(context=log.context[: len(found.raws)])
    if conversations.context(known) != found.raws:
        raise Conflict(
            f"what is live of conversation {shown(log.id)} is no longer what was read.",
            fix="Read it again, and compact that.",
            where=str(log.path),
        )
    return known


def _untouched(found: Case, at: tell.Moment, findings: list[Finding]) -> Compaction:
    reason = findings[-1].message if findings else "usage_pct < trigger_pct"
    receipts.decided(found, at, plan=None, reason=reason)
    used = found.budget.used
    return Compaction(
        found.raws, False, reason, used, used, found.budget.window, found.budget.limit, found.counter, None,
        [*found.findings, *findings],
    )  # fmt: skip


def _planned(found: Case, log: Log, *, force: bool) -> Plan:
    where = path_of(found.record, found.conversation_id)
    # Asked for only where something is shortened: it reads every message.
    known = cache(lambda: conversations.numbered(log, found.raws))
    last = log.compactions[-1].receipt if log.open else None
    return plan(
        found.sums.messages, found.policy, found.sums.count, window=found.budget.window,
        overhead=found.budget.used - found.budget.messages, tokens=found.sums.tokens, force=force,
        last=LastTime(last["tokens_after"]) if last else None,
        pointer=lambda position: f"{where} n={known()[position]}",
    )  # fmt: skip


def _compacted(found: Case, made: Plan, log: Log, at: tell.Moment, written: Summarised) -> Compaction:
    """Carry the plan out: make the result, record both, and tell of it."""
    result = apply(made, written.prose)
    raws = [
        found.raws[place] if place is not None and message is made.messages[place] else message.raw
        for place, message in zip(result.places, result.messages, strict=True)
    ]
    record = receipts.receipt(found, made, result, written, raws, step=0)
    make_directory(found.record)
    step = conversations.record_compaction(
        found.record, found.conversation_id, before=found.raws, after=raws, places=result.places,
        receipt=record._asdict(), now=clock.now(), read=log,
    )  # fmt: skip
    record = record._replace(step=step)
    receipts.done(found, at, record, result)
    findings = [
        *found.findings, *_not_taken(found, written), *result.findings, *receipts.archived(found, at, record, result),
    ]  # fmt: skip
    return Compaction(
        raws, True, made.reason, result.tokens_before, result.tokens_after, found.budget.window, result.limit,
        found.counter, record, findings,
    )  # fmt: skip


def _not_taken(found: Case, written: Summarised) -> list[Finding]:
    """Return what became of the summariser that was asked for, where it failed; its last words may hold secrets."""
    fix = f"Nothing to do: {written.record.get('backend') or 'nobody'} wrote it."
    said = [
        (failure["backend"], f"{failure['backend']}: {failure['message']}") for failure in written.failures
    ]
    rules = found.options.rules
    return [
        Finding("warning", "summary-not-taken", name, redact(words, rules) if rules else words, fix)
        for name, words in said
    ]


def _summary(found: Case, made: Plan, at: tell.Moment) -> Summarised:
    """Return the prose of the summary; each failure on the way is told of."""
    if made.task is None:
        return Summarised(None, {}, [])
    settings = config.or_default(found.record)
    asked = found.options.backend or settings.compact_backend
    if isinstance(asked, str):
        backend_of(asked)  # a name that is none is the caller's mistake, not a failure of a backend
    reach = found.options.settings or Settings(
        model=settings.compact_model, timeout_seconds=settings.compact_timeout_seconds
    )
    written = summarised(
        made.task, backend=asked, settings=reach, count=found.sums.count, rules=found.options.rules
    )
    then = written.record["backend"] if written.prose else "pruning-only"
    for failure in written.failures:
        receipts.failed(found, at, kind=failure["error_type"], message=failure["message"], fallback=then)
    return written

"""Compacting, as a caller asks for it: look at a conversation before it is sent, and make it fit.

`preflight` returns the very messages it was given until a trigger of the policy fires; `compact` does not wait
for one. The whole conversation stands in the home (`conversations/<id>/history.jsonl`) by the same write that
records the compaction, so `undo_compaction` gives it back byte for byte. What cannot be made to fit changes nothing
and raises. Copies that leave the home, through a storage adapter or an exporter, are redacted.

A trial of compaction: what it would keep and change, with nothing recorded and nobody asked.

What a dry run prints is by the policy as configured; keep counts that the ladder would lower are not lowered here.

What a configuration of compaction asks for: its summariser, its place for copies, its exporter, its rules.

Reading a configuration is done in `configuration`; here its words become the parts that `compacting` works with.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, cast

from aether import clock
from aether.api import compact_views as receipts
from aether.api import tokens as usages
from aether.api.compact_case import (
    DEFAULT_OPTIONS,
    KEPT_TALLIES,
    UNNAMED_MODEL,
    Case,
    Options,
    as_dicts,
    record_directory,
    resolve_case,
)
from aether.api.compact_views import DiffRow
from aether.api.conversations import place, resume_in
from aether.api.home import Home
from aether.api.summarize import WrittenSummary, write_summary
from aether.backends import backend as backend_of
from aether.backends.base import Settings
from aether.clock import short_id
from aether.compaction.budget import fires
from aether.compaction.partition import Parts, partition
from aether.compaction.plan import LastCompaction, Plan, apply, plan
from aether.compaction.policy import CompactConfig
from aether.compaction.shapes import Policy, Receipt, SummaryTask
from aether.errors import AetherError, Conflict, StorageFailed, shown
from aether.events import events as tell
from aether.events import exporters
from aether.events.events import TOKEN_ESTIMATE, TRIGGER_DECISION, Event, Exporter, record
from aether.messages.convert import bare, read
from aether.messages.model import Message, ProviderFormat
from aether.redact.redact import Rules, redact, rules
from aether.storage import storage as storage_of
from aether.storage.adapter import StorageAdapter
from aether.store import config, conversations
from aether.store.conversations import Log, load, path_of
from aether.store.files import make_directory
from aether.types import Finding, JsonObject

# Each try ends one of those that compact one conversation at once: this is twice as many as a colony has workers.
CONFLICT_TRIES = 16
# By record and conversation: the model that is asked next, and what its request was counted as.
_REQUESTS: dict[tuple[Path, str], tuple[str, int]] = {}


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


class UndoneCompaction(NamedTuple):
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
    wire: ProviderFormat | None = None,
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
        given = resume_in(options.record or record_directory(home), conversation_id, given)
    found = resolve_case(
        conversation_id, given, model=model, window=window, policy=policy, system=system, tools=tools, wire=wire,
        note="", options=options, home=home,
    )  # fmt: skip
    return _preflight(found, force=False)


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
    options: Options = DEFAULT_OPTIONS,
    home: Home = None,
) -> Compaction:
    """Return `messages` compacted to the target of the policy, whether a trigger fires or not.

    Raises:
        InvalidInput, BudgetExceeded, NotFound: as `preflight`.
    """
    found = resolve_case(
        conversation_id, as_dicts(messages), model=model, window=window, policy=policy, system=system, tools=tools, wire=wire,
        note=note, options=options, home=home,
    )  # fmt: skip
    return _preflight(found, force=True)


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
    options: Options = DEFAULT_OPTIONS,
    home: Home = None,
) -> Plan:
    """Return what `preflight`, or `compact` with `force`, would do; nothing is changed and nobody is asked.

    Raises:
        InvalidInput, BudgetExceeded, NotFound: as `preflight`.
    """
    found = resolve_case(
        conversation_id, as_dicts(messages), model=model, window=window, policy=policy, system=system, tools=tools, wire=wire,
        note="", options=options, home=home,
    )  # fmt: skip
    return _make_plan(found, load(found.record, found.conversation_id), force=force)


def answered(conversation_id: str, usage: int | Mapping[str, Any], *, home: Home = None) -> bool:
    """Learn from the `usage` that a provider reports of the request that was last made to fit; return whether it did.

    `usage` is the number of input tokens, cached ones included, or the usage object of the answer. Nothing is learned
    without a home, about a model without a name, where the caller's own counter counted, or from what is no usage:
    an answer that is there is never lost for it.
    """
    try:
        model, counted = _REQUESTS.pop((place(home), conversation_id))
        usages.record_usage(model, counted, usage, home=home)
    except (KeyError, AetherError):
        return False
    return True


def undo_compaction(conversation_id: str, *, home: Home = None) -> UndoneCompaction:
    """Take the newest compaction of a conversation back and return its messages, byte for byte as they were.

    Doing it again takes the one before back: what was said since each stands at the end.

    Raises:
        NotFound: there is no such conversation, or no compaction that is not undone.
    """
    done = conversations.undo(record_directory(home), conversation_id, now=clock.now())
    return UndoneCompaction(done.messages, done.step, done.findings)


def _preflight(found: Case, *, force: bool) -> Compaction:
    at = receipts.event_moment(found, short_id("preflight"))
    receipts.emit_token_estimate(found, at)
    try:
        if not force and not fires(found.budget, found.policy, len(found.raws)):
            return _remember_request(found, _unchanged(found, at, []))
        return _remember_request(found, _compact_with_retries(found, at, force=force))
    except AetherError as reason:
        receipts.emit_error(found, at, kind=reason.code, message=reason.what, fallback="none")
        raise


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
    """Plan and carry out; where another process compacted the same conversation meanwhile, plan anew.

    A summary that was asked for is not asked for again while the task is the same.
    """
    asked: dict[SummaryTask | None, WrittenSummary] = {}
    for left in reversed(range(CONFLICT_TRIES)):
        log = _known_log(found)
        made = _make_plan(found, log, force=force)
        if not made.triggered:
            break
        if made.task not in asked:
            receipts.emit_decision(found, at, plan=made, reason=made.reason)
            asked[made.task] = _summary(found, made, at)
        try:
            return _apply_plan(found, made, log, at, asked[made.task])
        except Conflict:
            if not left:
                raise
    return _unchanged(found, at, list(made.findings))


def _known_log(found: Case) -> Log:
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


def _unchanged(found: Case, at: tell.Moment, findings: list[Finding]) -> Compaction:
    reason = findings[-1].message if findings else "usage_pct < trigger_pct"
    receipts.emit_decision(found, at, plan=None, reason=reason)
    used = found.budget.used
    return Compaction(
        found.raws, False, reason, used, used, found.budget.window, found.budget.limit, found.counter, None,
        [*found.findings, *findings],
    )  # fmt: skip


def _make_plan(found: Case, log: Log, *, force: bool) -> Plan:
    where = path_of(found.record, found.conversation_id)
    # Asked for only where something is shortened: it reads every message.
    known = cache(lambda: conversations.numbered(log, found.raws))
    last = log.compactions[-1].receipt if log.open else None
    return plan(
        found.sums.messages, found.policy, found.sums.count, window=found.budget.window,
        overhead=found.budget.used - found.budget.messages, tokens=found.sums.tokens, force=force,
        last=LastCompaction(last["tokens_after"]) if last else None,
        pointer=lambda position: f"{where} n={known()[position]}",
    )  # fmt: skip


def _apply_plan(found: Case, made: Plan, log: Log, at: tell.Moment, written: WrittenSummary) -> Compaction:
    """Carry the plan out: make the result, record both, and tell of it."""
    result = apply(made, written.prose)
    raws = [
        found.raws[place] if place is not None and message is made.messages[place] else message.raw
        for place, message in zip(result.places, result.messages, strict=True)
    ]
    record = receipts.make_receipt(found, made, result, written, raws, step=0)
    make_directory(found.record)
    step = conversations.record_compaction(
        found.record, found.conversation_id, before=found.raws, after=raws, places=result.places,
        receipt=record._asdict(), now=clock.now(), read=log,
    )  # fmt: skip
    record = record._replace(step=step)
    receipts.emit_compaction(found, at, record, result)
    findings = [
        *found.findings, *_summary_failures(found, written), *result.findings, *receipts.save_copies(found, at, record, result),
    ]  # fmt: skip
    return Compaction(
        raws, True, made.reason, result.tokens_before, result.tokens_after, found.budget.window, result.limit,
        found.counter, record, findings,
    )  # fmt: skip


def _summary_failures(found: Case, written: WrittenSummary) -> list[Finding]:
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


def _summary(found: Case, made: Plan, at: tell.Moment) -> WrittenSummary:
    """Return the prose of the summary; each failure on the way is told of."""
    if made.task is None:
        return WrittenSummary(None, {}, [])
    settings = config.or_default(found.record)
    asked = found.options.backend or settings.compact_backend
    if isinstance(asked, str):
        backend_of(asked)  # a name that is none is the caller's mistake, not a failure of a backend
    reach = found.options.settings or Settings(
        model=settings.compact_model, timeout_seconds=settings.compact_timeout_seconds
    )
    written = write_summary(
        made.task, backend=asked, settings=reach, count=found.sums.count, rules=found.options.rules
    )
    then = written.record["backend"] if written.prose else "pruning-only"
    for failure in written.failures:
        receipts.emit_error(found, at, kind=failure["error_type"], message=failure["message"], fallback=then)
    return written


class DryRun(NamedTuple):
    """What a compaction would do; the counts are of messages."""

    total: int
    pinned: int
    recent: int
    tool_io: int
    eligible: int
    """What may go: neither pinned nor recent nor among the newest calls."""
    trigger: bool
    reason: str
    """Why it fires; empty where it does not."""
    tokens: int
    max_tokens: int
    after: list[JsonObject]
    """The messages as they would be sent; the same where nothing fires."""
    tokens_after: int
    findings: list[Finding]


def dry_run(
    messages: Sequence[JsonObject],
    config: CompactConfig,
    *,
    system: Any = None,
    tools: Any = None,
    wire: ProviderFormat | None = None,
    force: bool = False,
    home: Home = None,
) -> DryRun:
    """Return what `preflight` would do to `messages`, or with `force` a compaction by hand.

    Raises:
        InvalidInput: a message is none.
        BudgetExceeded: what is protected does not fit.
    """
    chosen = config.policy.policy()
    found = resolve_case(
        "trial", messages, model=config.model, window=config.max_context_tokens, policy=chosen, system=system,
        tools=tools, wire=wire, note="", options=Options(), home=home,
    )  # fmt: skip
    parts = Counter(_parts(partition(found.sums.messages, chosen), chosen))
    made = plan(
        found.sums.messages, chosen, found.sums.count, window=config.max_context_tokens,
        overhead=found.budget.used - found.budget.messages, tokens=found.sums.tokens, force=force,
    )  # fmt: skip
    result = apply(made, None)
    return DryRun(
        len(messages), parts["pinned"], parts["recent"], parts["tool_io"], parts["eligible"], made.triggered, made.reason,
        result.tokens_before, config.max_context_tokens,
        [message.raw for message in result.messages], result.tokens_after, [*found.findings, *result.findings],
    )  # fmt: skip


def _parts(found: Parts, policy: Policy) -> Iterator[str]:
    """Yield for each message what holds it."""
    for at, group in enumerate(found.groups):
        if at in found.pinned:
            part = "pinned"
        elif at in found.orphans or at in found.summaries:
            part = "eligible"
        elif found.pair[at] >= 0:
            part = "tool_io" if found.pair[at] < policy.keep_tool_pairs else "eligible"
        else:
            part = "recent" if found.turn[at] < policy.keep_recent_turns else "eligible"
        yield from (part for _ in group.members)


def diff_messages(before: Sequence[JsonObject], after: Sequence[JsonObject]) -> list[DiffRow]:
    """Return what became of each message between two lists, by what they hold.

    >>> said = [{"role": "user", "content": text} for text in "abc"]
    >>> [(row.change, row.text) for row in difference(said, said[1:])]
    [('removed', 'a'), ('kept', 'b'), ('kept', 'c')]
    """
    old, new = (
        [json.dumps(bare(raw), sort_keys=True, default=str) for raw in raws] for raws in (before, after)
    )
    rows: list[DiffRow] = []
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for kind, start, end, at, until in matcher.get_opcodes():
        if kind == "equal":
            rows += (_row("kept", start + nth, at + nth, after[at + nth]) for nth in range(end - start))
        else:
            rows += (_row("removed", nth, None, before[nth]) for nth in range(start, end))
            rows += (_row("added", None, nth, after[nth]) for nth in range(at, until))
    return rows


def _row(change: Any, before: int | None, after: int | None, raw: JsonObject) -> DiffRow:
    (message,) = read([raw])
    return DiffRow(change, before, after, message.role, _text(message), protected=False)


def _text(message: Message) -> str:
    return " ".join(f"{block.tool} {block.text}".strip() for block in message.blocks)


# Told at each turn; on a distant storage each event kept costs several requests.
_EACH_TURN = frozenset({TOKEN_ESTIMATE, TRIGGER_DECISION})


def redaction_rules(config: CompactConfig) -> Rules | None:
    """Return how copies are redacted; None where the configuration turns that off."""
    return rules(config.redaction_patterns) if config.redaction_enabled else None


def options_from_config(
    config: CompactConfig,
    *,
    home: Home = None,
    storage: StorageAdapter | None = None,
    exporter: Exporter | None = None,
) -> Options:
    """Return what the operations of compaction are to use: the parts that `config` names, or those given.

    Conversations are kept in the home, or in `.compact/` where none is named and none found. Events of a compaction
    are kept beside its copies.

    Raises:
        BackendUnavailable: a package that the configuration asks for is missing.
        InvalidInput: an address cannot be.
    """
    kept = _storage(config) if storage is None else guarded_storage(storage)
    carriers = [_exporter(config) if exporter is None else exporter]
    if kept is not None:
        carriers.append(exporters.callback(partial(_save_event, kept), rules=redaction_rules(config)))
    return Options(
        backend=config.summarizer_backend,
        settings=Settings(
            model=config.summarizer_model,
            timeout_seconds=config.summarization_timeout,
        ),
        storage=kept,
        exporter=exporters.fan_out(carriers),
        rules=redaction_rules(config),
        record=place(home),
    )


def _storage(config: CompactConfig) -> StorageAdapter | None:
    if not config.storage_enabled or config.storage_adapter == "none":
        return None
    return storage_of(
        config.storage_adapter,
        path=config.storage_path,
        bucket=config.storage_bucket,
        prefix=config.storage_prefix,
        kms_key_id=config.storage_kms_key_id,
    )


def _exporter(config: CompactConfig) -> Exporter:
    urls = {"ariadne": config.ariadne_url, "otlp": config.otlp_url}
    kinds = cast("list[exporters.Kind]", [kind.strip() for kind in config.exporter.split(",")])
    made = [
        exporters.exporter(
            kind, url=urls.get(kind, ""), path=config.telemetry_path, rules=redaction_rules(config)
        )
        for kind in kinds
    ]
    return exporters.fan_out(made) if len(made) > 1 else made[0]


class StorageFunctions(NamedTuple):
    """A storage adapter made of functions."""

    name: str
    save_transcript: Callable[[str, Sequence[JsonObject], int], str]
    save_summary: Callable[[str, JsonObject, int], str]
    save_event: Callable[[str, JsonObject], str]


class NumberedStorageFunctions(NamedTuple):
    """The same, of a storage that knows which steps it has."""

    name: str
    save_transcript: Callable[[str, Sequence[JsonObject], int], str]
    save_summary: Callable[[str, JsonObject, int], str]
    save_event: Callable[[str, JsonObject], str]
    next_step: Callable[[str], int]


def guarded_storage(storage: StorageAdapter) -> StorageAdapter:
    """Return a caller's own storage so that whatever it raises is a `StorageFailed`: its copies are not the record."""
    name = str(getattr(storage, "name", "") or type(storage).__name__)
    kind = NumberedStorageFunctions if hasattr(storage, "next_step") else StorageFunctions
    saves = (_guarded(getattr(storage, each), name) for each in kind._fields[1:])
    return cast("StorageAdapter", kind(name, *saves))


def _guarded(do: Callable[..., Any], name: str) -> Callable[..., Any]:
    def guard(*arguments: Any) -> Any:
        try:
            found = do(*arguments)
            return found if isinstance(found, int) else str(found or name)
        except Exception as reason:
            what = f"{type(reason).__name__}: {reason}"
            raise StorageFailed(
                what, fix="See to the storage; the home has the whole.", where=name
            ) from reason

    return guard


def _save_event(storage: StorageAdapter, event: Event) -> None:
    """Append an event to those of its session; of turns that are not compacted nothing is kept."""
    if event.name not in _EACH_TURN or event.properties.get("triggered"):
        storage.save_event(event.session_id, record(event))

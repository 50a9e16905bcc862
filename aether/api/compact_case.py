"""The case: one call to compact, with everything looked up and counted that a decision needs.

Counting costs what is new: the counts of a conversation stay in memory between calls of one process. Counts are
those of the home's own counter times the factor that was learned for the model, so that they do not change
with the machine.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from aether.api import tokens
from aether.api.home import Home, find
from aether.api.summarize import Summarizer
from aether.backends.base import Settings
from aether.compaction.budget import Bounds, ContextBudget, bounds
from aether.compaction.policy import policy as named
from aether.compaction.policy import validated
from aether.compaction.shapes import Policy
from aether.errors import InvalidInput, NotFound, shown
from aether.events.events import Exporter
from aether.messages import convert
from aether.messages.model import Message, ProviderFormat
from aether.redact.redact import DEFAULT, Rules
from aether.storage.adapter import StorageAdapter
from aether.tokens.count import Tally, message_tokens, system_tokens, tally, tools_tokens
from aether.types import Counter, Finding, JsonObject

# Conversations whose counts stay in memory; an orchestrator has few at a time.
KEPT_TALLIES = 64
# Where conversations are kept where there is no home: beside the copies of the default configuration.
RECORD_NAME = ".compact"
# What of a message is said by keys of its own in a provider's dict, and by `meta` in an object.
META_KEYS = ("tool_calls", "tool_call_id", "name")
# What integrations call a model that does not say its name: its window is the smallest known, and nothing is learned.
UNNAMED_MODEL = "unnamed"
_TALLIES: OrderedDict[tuple[str, str], Tally] = OrderedDict()


class Options(NamedTuple):
    """What an embedding program may replace; an empty value means what the home says."""

    backend: str | Summarizer = ""
    """Who writes the summary: a backend's name, or the caller's own function."""
    settings: Settings | None = None
    counter: Counter | None = None
    counter_name: str = "caller"
    """What `counter` is called in receipts."""
    storage: StorageAdapter | None = None
    exporter: Exporter | None = None
    rules: Rules | None = DEFAULT
    """How what leaves the home is redacted; None: not at all, and an event warns of it."""
    record: Path | None = None
    """The directory that keeps conversations, where that is not a home."""
    unsaved: Sequence[JsonObject] | None = None
    """What is sent behind the messages and is recorded by someone else. Where it is given, also empty, the messages
    are what is live in the record: what others add meanwhile stays, and where it is live no longer, nothing is
    changed (`Conflict`)."""


DEFAULT_OPTIONS = Options()


class Case(NamedTuple):
    """One call, resolved."""

    conversation_id: str
    raws: list[JsonObject]
    sums: Tally
    budget: ContextBudget
    limits: Bounds
    policy: Policy
    model: str
    counter: str
    record: Path
    options: Options
    note: str
    findings: list[Finding]


def resolve_case(
    conversation_id: str,
    raws: Sequence[JsonObject],
    *,
    model: str | None,
    window: int | None,
    policy: str | Policy,
    system: Any,
    tools: Any,
    wire: ProviderFormat | None,
    note: str,
    options: Options,
    home: Home,
) -> Case:
    """Return the call with everything that a decision needs.

    Raises:
        InvalidInput: a message is none, the policy makes no sense, or there is neither a window nor a model.
        NotFound: the named one is no home.
    """
    _require_parts(model, window, policy, options)
    record = options.record or record_directory(home)
    chosen = validated(named(policy) if isinstance(policy, str) else policy)
    counting = tokens.counting(model or "", place=record)
    if window is None and counting.profile is None:
        raise InvalidInput("there is neither a model nor a window.", fix="Give one of them.", where="window")
    count, words = (
        (options.counter, options.counter_name) if options.counter else (counting.count, counting.label)
    )
    sums = _tally(record, conversation_id, raws, wire, count)
    limits = bounds(chosen, counting.profile.window if window is None and counting.profile else window or 0)
    behind = sum(message_tokens(one, count) for one in convert.read(options.unsaved or (), wire))
    budget = ContextBudget(
        limits.window, limits.reserve,
        system=system_tokens(system, count) + behind, tools=tools_tokens(tools, count), messages=sums.total,
    )  # fmt: skip
    # A window that the caller names needs no doubt about the model's own.
    doubts = [one for one in counting.findings if one.code != "unknown-model" or window is None]
    return Case(
        conversation_id,
        list(raws),
        sums,
        budget,
        limits,
        chosen,
        model or "",
        words,
        record,
        options,
        note,
        [*limits.findings, *doubts, *unpaired_findings(sums.messages)],
    )


def as_dicts(messages: Sequence[Any]) -> list[JsonObject]:
    """Return messages as dicts: a dict is itself; what has `role`, `content` and `meta` says the same as one.

    Raises:
        InvalidInput: they are no list, or one is neither.
    """
    if not isinstance(messages, Sequence) or isinstance(messages, (str, bytes)):
        raise InvalidInput(f"{shown(messages)} is no list.", fix="Give a list of messages.", where="messages")
    return [_as_dict(message, position) for position, message in enumerate(messages)]


def _as_dict(message: Any, position: int) -> JsonObject:
    if isinstance(message, dict):
        return message
    meta = getattr(message, "meta", None)
    if not (isinstance(meta, dict) and hasattr(message, "role") and hasattr(message, "content")):
        raise InvalidInput(
            f"{shown(message)} is no message.",
            fix="Give each message as an object.",
            where=f"messages[{position}]",
        )
    beside = {key: meta[key] for key in META_KEYS if key in meta}
    own = {key: value for key, value in meta.items() if key not in beside}
    return {
        "role": message.role,
        "content": message.content,
        **beside,
        **({convert.META: own} if own else {}),
    }


def unpaired_findings(messages: Sequence[Message]) -> list[Finding]:
    """Return what a provider would refuse of calls and results: it came so, and is passed on so.

    Calls that nothing but results follows are still being run.
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
            "warning", code, f"messages[{found[0]}]", f"{len(found)} {what}, the first here.",
            "See aether.messages.validate, or aether messages check --repair.",
        )
        for code, found, what in (
            ("orphan-result", orphans, "result(s) of tools have no call"),
            ("missing-result", dangling, "call(s) of tools were never answered"),
        )
        if found
    ]  # fmt: skip


def _require_parts(model: Any, window: Any, policy: Any, options: Options) -> None:
    wanted = {
        "model": model is None or isinstance(model, str),
        "window": window is None or (isinstance(window, int) and not isinstance(window, bool)),
        "policy": isinstance(policy, (str, Policy)),
        "options": isinstance(options, Options),
    }
    for name, fits in wanted.items():
        if not fits:
            raise InvalidInput(f"{name} is of the wrong kind.", fix=f"See help on {name}.", where=name)
    for name, method in (("storage", "save_transcript"), ("exporter", "emit")):
        part = getattr(options, name)
        if part is not None and not hasattr(part, method):
            raise InvalidInput(
                f"{shown(part)} has no {method}.",
                fix=f"Give an object that is a {name}.",
                where=f"options.{name}",
            )


def record_directory(home: Home) -> Path:
    """Return the directory that keeps conversations: the home, or `.compact/` here where none is named and none found.

    Nothing is made; the first compaction makes it.

    Raises:
        NotFound: the one that is named is no home.
    """
    try:
        return find(home)
    except NotFound:
        if home is not None or os.environ.get("AETHER_HOME"):
            raise
    return Path(RECORD_NAME).absolute()


def _tally(
    record: Path,
    conversation_id: str,
    raws: Sequence[JsonObject],
    wire: ProviderFormat | None,
    count: Counter,
) -> Tally:
    """Return the tally of the conversation; what was counted at an earlier call is not counted again."""
    key = (str(record), conversation_id)
    sums = tally(raws, wire=wire, count=count, before=_TALLIES.pop(key, None))
    _TALLIES[key] = sums
    if len(_TALLIES) > KEPT_TALLIES:
        _TALLIES.popitem(last=False)
    return sums

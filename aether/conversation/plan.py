"""The plan of a compaction, its execution, and the proof of its result.

`plan` decides everything that needs no model, `apply` makes the result. Between the two, a summariser may be asked
for the text that `Plan.task` describes; without one, `apply` selects sentences itself. Every result is verified on the
messages themselves, not on the groups that the compaction worked with: it fits or `BudgetExceeded` is raised, protected
messages are identical and in their places, every call keeps its results, there is at most one summary. The same input
gives the same output, and the input is never changed. The steps are in `fit`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

from aether.conversation.budget import BY_HAND_SHARE, Bounds, ContextBudget, bounds, fires
from aether.conversation.facts import FACTS_SHARE, LEAST_PROSE
from aether.conversation.fit import FitResult, fit_conversation
from aether.conversation.partition import cut_prose, is_earlier_summary, partition, select_sentences
from aether.conversation.room import summary_message
from aether.conversation.shapes import Compacted, Cut, Facts, Kept, Policy, Summary, SummaryTask
from aether.conversation.summary import rendered
from aether.errors import AetherError, InvalidInput
from aether.messages.model import Message, ProviderFormat
from aether.redact.redact import DEFAULT, Rules
from aether.tokens.count import message_tokens
from aether.types import Counter, Finding

BY_HAND = "asked for"
# Escaping may add a few tokens to prose in a message; each try allows fewer.
_TRIES = 4
_NARROWER = 0.8


class LastCompaction(NamedTuple):
    """The outcome of the conversation's previous compaction."""

    tokens_after: int


class Plan(NamedTuple):
    """The outcome of planning a compaction; untriggered, it changes nothing."""

    messages: tuple[Message, ...]
    policy: Policy
    effective: Policy
    """The policy with the keep counts and the reserve that were used."""
    bounds: Bounds
    overhead: int
    triggered: bool
    reason: str
    """Reason of the compaction; empty if nothing is done."""
    tokens_before: int
    tokens: tuple[int, ...]
    """By position, as given."""
    count: Counter
    kept: tuple[int, ...] = ()
    """Positions that stay, ascending."""
    changed: dict[int, Message] = {}  # noqa: RUF012 - a NamedTuple default, never mutated
    """The messages that stay in another form, by position."""
    place: int = -1
    """Position before which the summary is put; -1: there is no new summary."""
    version: int = 0
    facts: Facts = Facts()
    task: SummaryTask | None = None
    """Task for a summariser; None: it is not asked."""
    prose_tokens: int = 0
    """Room for prose in the summary."""
    previous: str = ""
    """Prose of the previous summary."""
    selection: SummaryTask | None = None
    """Source of selected sentences if nobody writes prose; None: none are selected."""
    protected: tuple[int, ...] = ()
    required: tuple[int, ...] = ()
    why: Kept = Kept()
    findings: tuple[Finding, ...] = ()
    cuts: tuple[Cut, ...] = ()
    steps: tuple[str, ...] = ()

    @property
    def wire(self) -> ProviderFormat:
        """Return the provider format of the messages."""
        return self.messages[0].format if self.messages else "plain"


def plan(
    messages: Sequence[Message],
    policy: Policy,
    count: Counter,
    *,
    window: int,
    overhead: int = 0,
    tokens: Sequence[int] | None = None,
    force: bool = False,
    last: LastCompaction | None = None,
    pointer: Callable[[int], str] | None = None,
    rules: Rules | None = DEFAULT,
    facts_share: float = FACTS_SHARE,
) -> Plan:
    """Return the plan that makes `messages` fit into `window`; without a trigger it changes nothing.

    `overhead` is the tokens sent beside the messages, system prompt and tool schemas; `tokens` those of each message,
    if they are known. `force` compacts without a trigger. After the `last` compaction some growth is needed before the
    next one. `pointer` returns the place of the full text of the message at a position, in words that a model can use.
    `rules` redact what a summary is made of; None: nothing is redacted. `facts_share` of a summary may be facts beside prose.

    Raises:
        BudgetExceeded: the messages that must be kept do not fit; the error names them.
        InvalidInput: the window is not positive, or `tokens` do not belong to `messages`.
    """
    known = tuple(tokens) if tokens is not None else tuple(message_tokens(one, count) for one in messages)
    if len(known) != len(messages):
        raise InvalidInput(
            f"{len(known)} token counts for {len(messages)} messages.",
            fix="Give one for each.",
            where="tokens",
        )
    limits = bounds(policy, window)
    budget = ContextBudget(limits.window, limits.reserve, system=overhead, messages=sum(known))
    reason = BY_HAND if force else fires(budget, policy, len(messages))
    idle = Plan(
        tuple(messages), policy, policy._replace(reserve=limits.reserve), limits, overhead, False, "", budget.used,
        known, count, findings=limits.findings,
    )  # fmt: skip
    if not reason:
        return idle
    grown = budget.used - last.tokens_after if last else limits.window
    if not force and budget.used <= limits.limit and grown < policy.min_progress * limits.window:
        return _idle(idle, "no-progress", "too little was added since the last compaction to try again.")
    if force:
        limits = limits._replace(goal=min(limits.goal, int(BY_HAND_SHARE * budget.used)))
    found = fit_conversation(
        messages, partition(messages, policy), policy, count, limits=limits, overhead=overhead, tokens=known,
        pointer=pointer or (lambda _: ""), rules=rules, by_hand=force, facts_share=facts_share,
    )  # fmt: skip
    gained = budget.used - found.total
    dropped = len(messages) - len(found.kept) - (found.place >= 0)
    share = max(
        gained / max(1, budget.used), dropped / max(1, len(messages)) if policy.trigger_messages else 0.0
    )
    too_little = share <= 0 or (not force and share < policy.min_reclaim)
    if budget.used <= limits.limit and too_little:
        what = f"a compaction would take {gained} of {budget.used} tokens, too few for what it costs."
        return _idle(idle, "not-worthwhile", what)
    return _triggered(idle, found, reason)


def _idle(idle: Plan, code: str, what: str) -> Plan:
    fix = "Nothing to do; compact by hand, or lower the policy's protection, if it must be smaller."
    return idle._replace(findings=(*idle.findings, Finding("info", code, "conversation", what, fix)))


def _triggered(idle: Plan, found: FitResult, reason: str) -> Plan:
    task = found.task if found.prose_tokens >= LEAST_PROSE else None
    steps = set(idle.policy.steps)
    same = {field: value for field, value in found._asdict().items() if field in Plan._fields}
    return idle._replace(
        **same
        | {
            "effective": found.effective._replace(reserve=idle.bounds.reserve),
            "triggered": True,
            "reason": reason,
            "task": task if "summarise" in steps and not found.folded else None,
            "selection": task if {"summarise", "select"} & steps else None,
            "findings": (*idle.findings, *found.findings),
        }
    )


def apply(plan: Plan, prose: str | None) -> Compacted:
    """Return the conversation as planned, with `prose` in its summary; None: with selected sentences.

    Prose that has no room is cut at the end of a sentence.

    Raises:
        AetherError: the result would break a guarantee of this module, which is a fault of aether.
    """
    if not plan.triggered:
        return Compacted(
            plan.messages, False, plan.tokens_before, plan.tokens_before, plan.bounds.limit, None,
            plan.findings, effective=plan.effective, places=tuple(range(len(plan.messages))),
        )  # fmt: skip
    entries: list[tuple[int | None, Message]] = [
        (at, plan.changed.get(at, plan.messages[at])) for at in plan.kept
    ]
    summary = None
    if plan.place >= 0:
        summary, message = _summary(plan, prose)
        entries.insert(sum(at < plan.place for at in plan.kept), (None, message))
    result = Compacted(
        tuple(message for _, message in entries), True, plan.tokens_before, 0, plan.bounds.limit, summary,
        plan.findings, plan.why, plan.effective, tuple(at for at, _ in entries), plan.cuts, plan.steps, plan.protected,
    )  # fmt: skip
    return verified(
        result, plan.messages, tokens=plan.tokens, overhead=plan.overhead, count=plan.count, required=plan.required
    )  # fmt: skip


def _summary(plan: Plan, prose: str | None) -> tuple[Summary, Message]:
    """Return the summary with as much of `prose` as fits, and its message."""
    text = (prose or "").strip()
    if not text and plan.selection:
        said, previous = plan.selection.said, plan.previous
        facts = rendered(Summary(plan.version, plan.facts, ""))
        text = select_sentences(said, previous, most=plan.prose_tokens, count=plan.count, besides=facts)
    elif not text:
        text = plan.previous
    bare = Summary(plan.version, plan.facts, "")
    message = summary_message(bare, plan.wire)
    most = message_tokens(message, plan.count) + plan.prose_tokens
    room = plan.prose_tokens
    for _ in range(_TRIES if text and room > 0 else 0):
        full = bare._replace(prose=cut_prose(text, most=room, count=plan.count))
        with_prose = summary_message(full, plan.wire)
        if message_tokens(with_prose, plan.count) <= most:
            return full, with_prose
        room = int(room * _NARROWER)
    return bare, message


def verified(
    compacted: Compacted, before: Sequence[Message], *, tokens: Sequence[int], overhead: int, count: Counter,
    required: Collection[int],
) -> Compacted:  # fmt: skip
    """Return `compacted` with its tokens counted, after proof of every guarantee.

    It is not empty and fits; protected messages are identical and in order; nothing occurs twice; every call keeps its
    result, and the reverse; there is at most one summary; the `required` positions are present.

    Raises:
        AetherError: a guarantee is broken; the error names it.
    """
    after, places = compacted.messages, compacted.places
    kept = [place for place in places if place is not None]
    _require(bool(after) and len(after) == len(places), "it is empty")
    _require(all(one < other for one, other in pairwise(kept)), "the order changed")
    total = overhead + sum(
        tokens[place] if place is not None and message is before[place] else message_tokens(message, count)
        for message, place in zip(after, places, strict=True)
    )
    _require(total <= compacted.limit, f"{total} tokens are over the limit of {compacted.limit}")
    by_place = dict(zip(places, after, strict=True))
    for position in compacted.protected:
        found = by_place.get(position)
        _require(
            found is not None and found.raw is before[position].raw, f"protected message {position} changed"
        )
    for position in required:
        _require(position in by_place, f"message {position}, which must stay, is missing")
    summaries = sum(map(is_earlier_summary, after))
    _require(
        summaries <= 1 and (compacted.summary is None or summaries == 1),
        f"it has {summaries} summaries instead of one",
    )
    lost = _unpaired(after, places) - _unpaired(before, range(len(before)))
    _require(not lost, f"messages {sorted(map(str, lost))} lost their call or their result")
    return compacted._replace(tokens_after=total)


def _unpaired(messages: Sequence[Message], places: Sequence[int | None]) -> set[int | None]:
    """Return the places of calls without a result, and of results without a call before them."""
    waiting: dict[str, list[int | None]] = {}
    unpaired: set[int | None] = set()
    for place, message in zip(places, messages, strict=True):
        for block in message.blocks:
            if block.kind == "call":
                waiting.setdefault(block.call_id, []).append(place)
            elif block.kind == "result" and waiting.get(block.call_id):
                waiting[block.call_id].pop()
            elif block.kind == "result":
                unpaired.add(place)
    return unpaired.union(*waiting.values())


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise AetherError(
            f"the compaction is wrong: {what}.",
            fix="Nothing was changed. Report this with the conversation's shape; compact with another policy.",
            where="compaction",
        )

"""The plan of a compaction, and its execution: `plan` decides all that needs no model, `apply` makes the result.

Between the two, whoever has a summariser may ask it what `Plan.task` says; without one `apply` selects
sentences itself. The laws: the result fits or `BudgetExceeded` says what cannot be made to; protected content
is the very same, in its place; every call keeps its results; there is one summary at most; the same input
gives the same output; what was given is never changed. The rungs themselves are in `ladder`.

Verification: what a compaction promises, proved of each result before it leaves the function.

The proof looks at the messages themselves, not at the groups that the compaction worked with. What fails here
is a fault of aether, never of the conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

from aether.compaction.budget import BY_HAND_SHARE, Bounds, ContextBudget, bounds, fires
from aether.compaction.facts import LEAST_PROSE, summary_message
from aether.compaction.fit import FitResult, fit_conversation
from aether.compaction.partition import cut_prose, is_earlier_summary, partition, select_sentences
from aether.compaction.shapes import Compacted, Cut, Facts, Kept, Policy, Summary, SummaryTask
from aether.errors import AetherError, InvalidInput
from aether.messages.model import Message, ProviderFormat
from aether.tokens.count import message_tokens
from aether.types import Counter, Finding


def verified(
    compacted: Compacted, before: Sequence[Message], *, tokens: Sequence[int], overhead: int, count: Counter,
    required: Collection[int],
) -> Compacted:  # fmt: skip
    """Return `compacted` with its tokens counted, having proved it.

    It fits; what is protected is the very same, in order; nothing is in it twice; every result has the call it
    had, and the reverse; there is at most one summary; the `required` positions are there; it is not empty.

    Raises:
        AetherError: it is not so; the error says what is wrong.
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
        _require(position in by_place, f"message {position}, which must stay, is gone")
    _check_summaries(compacted)
    lost = _lonely(after, places) - _lonely(before, range(len(before)))
    _require(not lost, f"messages {sorted(map(str, lost))} lost their call or their result")
    return compacted._replace(tokens_after=total)


def _check_summaries(compacted: Compacted) -> None:
    found = sum(map(is_earlier_summary, compacted.messages))
    _require(
        found <= 1 and (compacted.summary is None or found == 1), f"it has {found} summaries instead of one"
    )


def _lonely(messages: Sequence[Message], places: Sequence[int | None]) -> set[int | None]:
    """Return the places of calls without a result, and of results without a call before them."""
    waiting: dict[str, list[int | None]] = {}
    lonely: set[int | None] = set()
    for place, message in zip(places, messages, strict=True):
        for block in message.blocks:
            if block.kind == "call":
                waiting.setdefault(block.call_id, []).append(place)
            elif block.kind == "result" and waiting.get(block.call_id):
                waiting[block.call_id].pop()
            elif block.kind == "result":
                lonely.add(place)
    return lonely.union(*waiting.values())


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise AetherError(
            f"the compaction is wrong: {what}.",
            fix="Nothing was changed. Report this with the conversation's shape; compact with another policy.",
            where="compaction",
        )


BY_HAND = "asked for"
# Prose that is written into a message may be escaped, which costs a few tokens more; each try allows fewer.
_TRIES = 4
_NARROWER = 0.8


class LastCompaction(NamedTuple):
    """What the last compaction of the conversation came to."""

    tokens_after: int


class Plan(NamedTuple):
    """What a compaction will do."""

    messages: tuple[Message, ...]
    policy: Policy
    effective: Policy
    """The policy with the keep counts and the reserve that it came to."""
    bounds: Bounds
    overhead: int
    triggered: bool
    reason: str
    """Why it is done; empty where nothing is done."""
    tokens_before: int
    tokens: tuple[int, ...]
    """By position, as given."""
    count: Counter
    kept: tuple[int, ...] = ()
    """Positions that stay, ascending."""
    changed: dict[int, Message] = {}  # noqa: RUF012 - a NamedTuple default, never mutated
    """The messages that stay in another form, by position."""
    place: int = -1
    """Position before which the summary stands; -1: there is no new summary."""
    version: int = 0
    facts: Facts = Facts()
    task: SummaryTask | None = None
    """What to ask a summariser; None: nothing."""
    prose_tokens: int = 0
    """Room for prose in the summary."""
    carried: str = ""
    """Prose of the summary before."""
    said: SummaryTask | None = None
    """What sentences are selected from where nobody writes prose; None: none are."""
    protected: tuple[int, ...] = ()
    required: tuple[int, ...] = ()
    why: Kept = Kept()
    findings: tuple[Finding, ...] = ()
    cuts: tuple[Cut, ...] = ()
    steps: tuple[str, ...] = ()

    @property
    def wire(self) -> ProviderFormat:
        """Return how the messages are spelt."""
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
) -> Plan:
    """Return what makes `messages` fit into `window`, or a plan to do nothing where no trigger fires.

    `overhead` are the tokens of what is sent beside the messages, system prompt and tool schemas; `tokens` those
    of each message, where they are known. `force` compacts although no trigger fires; after `last` it takes some
    growth until one does. `pointer` tells where the full text of the message at a position is kept, in words that
    a model can use.

    Raises:
        BudgetExceeded: what must stay does not fit; the error says what that is.
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
    if not force and budget.used <= limits.limit and _no_progress(idle, last):
        return _idle(idle, "no-progress", "too little was added since the last compaction to try again.")
    if force:
        limits = limits._replace(goal=min(limits.goal, int(BY_HAND_SHARE * budget.used)))
    found = fit_conversation(
        messages, partition(messages, policy), policy, count, limits=limits, overhead=overhead, tokens=known,
        pointer=pointer or _nowhere,
    )  # fmt: skip
    return _worthwhile(idle, found, reason, force=force)


def _nowhere(_: int) -> str:
    return ""


def _idle(idle: Plan, code: str, what: str) -> Plan:
    fix = "Nothing to do; compact by hand, or lower the policy's protection, if it must be smaller."
    return idle._replace(findings=(*idle.findings, Finding("info", code, "conversation", what, fix)))


def _no_progress(idle: Plan, last: LastCompaction | None) -> bool:
    grown = idle.tokens_before - last.tokens_after if last else idle.bounds.window
    return grown < idle.policy.min_progress * idle.bounds.window


def _worthwhile(idle: Plan, found: FitResult, reason: str, *, force: bool) -> Plan:
    """Return the plan for what was found, or none where it brings too little for what it costs."""
    gained = idle.tokens_before - found.tokens
    dropped = len(idle.messages) - len(found.kept) - (found.place >= 0)
    share = max(
        gained / max(1, idle.tokens_before),
        dropped / max(1, len(idle.messages)) if idle.policy.trigger_messages else 0.0,
    )
    if idle.tokens_before <= idle.bounds.limit and (
        share <= 0 or (not force and share < idle.policy.min_reclaim)
    ):
        what = f"a compaction would take {gained} of {idle.tokens_before} tokens, too few for what it costs."
        return _idle(idle, "not-worthwhile", what)
    task = found.task if found.prose_tokens >= LEAST_PROSE else None
    return idle._replace(
        effective=found.effective._replace(reserve=idle.bounds.reserve),
        triggered=True,
        reason=reason,
        kept=found.kept,
        changed=found.changed,
        place=found.place,
        version=found.version,
        facts=found.facts,
        task=task if "summarise" in idle.policy.steps and not found.folded else None,
        prose_tokens=found.prose_tokens,
        carried=found.carried,
        said=task if {"summarise", "select"} & set(idle.policy.steps) else None,
        protected=found.protected,
        required=found.required,
        why=found.why,
        findings=(*idle.findings, *found.findings),
        cuts=found.cuts,
        steps=found.steps,
    )


def apply(plan: Plan, prose: str | None) -> Compacted:
    """Return the conversation as planned, with `prose` in its summary; None: with sentences selected from it.

    Prose that has no room is cut where a sentence ends.

    Raises:
        AetherError: the result would break a promise of this module, which is a fault of aether.
    """
    if not plan.triggered:
        return Compacted(
            plan.messages, plan.wire, False, plan.tokens_before, plan.tokens_before, plan.bounds.limit, None,
            plan.findings, effective=plan.effective, places=tuple(range(len(plan.messages))),
        )  # fmt: skip
    entries: list[tuple[int | None, Message]] = [
        (at, plan.changed.get(at, plan.messages[at])) for at in plan.kept
    ]
    summary = None
    if plan.place >= 0:
        summary, message = _summary(plan, prose)
        before = sum(at < plan.place for at in plan.kept)
        entries.insert(before, (None, message))
    result = Compacted(
        tuple(message for _, message in entries), plan.wire, True, plan.tokens_before, 0, plan.bounds.limit, summary,
        plan.findings, plan.why, plan.effective, tuple(at for at, _ in entries), plan.cuts, plan.steps, plan.protected,
    )  # fmt: skip
    return verified(
        result,
        plan.messages,
        tokens=plan.tokens,
        overhead=plan.overhead,
        count=plan.count,
        required=plan.required,
    )


def _summary(plan: Plan, prose: str | None) -> tuple[Summary, Message]:
    """Return the summary with as much of `prose` as it has room for, and its message."""
    text = (prose or "").strip() or _selected(plan)
    bare = Summary(plan.version, plan.facts, "")
    message = summary_message(bare, plan.wire)
    most = message_tokens(message, plan.count) + plan.prose_tokens
    room = plan.prose_tokens
    for _ in range(_TRIES if text and room > 0 else 0):
        full = bare._replace(prose=cut_prose(text, most=room, count=plan.count))
        spoken = summary_message(full, plan.wire)
        if message_tokens(spoken, plan.count) <= most:
            return full, spoken
        room = int(room * _NARROWER)
    return bare, message


def _selected(plan: Plan) -> str:
    if plan.said is None:
        return plan.carried
    return select_sentences(plan.said.said, plan.carried, most=plan.prose_tokens, count=plan.count)

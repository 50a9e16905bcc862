"""The plan of a compaction, its execution, and the proof of its result.

`plan` decides everything that needs no model, `apply` makes the result. Between the two, a summariser may be asked
for the text that `Plan.task` describes; without one, `apply` selects lines itself. Every result is verified on the
messages themselves, not on the groups that the compaction worked with: it fits or `BudgetExceeded` is raised, protected
messages are identical and in their places, every call keeps its results, there is at most one summary. The same input
gives the same output, and the input is never changed. The steps are in `fit`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import pairwise

from aether.architects.extractive.digest import write_summary
from aether.conversation.facts import LEAST_PROSE
from aether.conversation.fit import fit_conversation
from aether.conversation.partition import cut_prose, is_earlier_summary, partition
from aether.conversation.policy import BY_HAND_SHARE, ContextBudget, bounds, fires
from aether.conversation.readings import Readings
from aether.conversation.room import summary_message
from aether.conversation.shapes import Compacted, Plan, Policy, Summary, task_as_json
from aether.errors import AetherError, InvalidInput
from aether.messages.model import Message
from aether.tokens.count import message_tokens
from aether.types import Counter, Finding

BY_HAND = "asked for"
# Escaping may add a few tokens to prose in a message; each try allows fewer.
_TRIES, _NARROWER = 4, 0.8


def plan(
    messages: Sequence[Message],
    policy: Policy,
    count: Counter,
    *,
    window: int,
    overhead: int = 0,
    tokens: Sequence[int] | None = None,
    force: bool = False,
    last_tokens: int | None = None,
    pointer: Callable[[int], str] | None = None,
    readings: Readings | None = None,
) -> Plan:
    """Return the plan that makes `messages` fit into `window`; without a trigger it changes nothing.

    `overhead` is the tokens sent beside the messages, system prompt and tool schemas; `tokens` those of each message,
    if they are known. `force` compacts without a trigger. After a compaction that left `last_tokens` some growth is needed
    before the next one. `pointer` returns the place of the full text of the message at a position, in words that a model
    can use. `readings` are those of the messages, as far as they were read; their rules redact what a summary is made of.

    Raises:
        BudgetExceeded: the messages that must be kept do not fit; the error names them.
        InvalidInput: the window is not positive, or `tokens` do not belong to `messages`.
    """
    sizes = (
        tuple(tokens) if tokens is not None else tuple(message_tokens(message, count) for message in messages)
    )
    if len(sizes) != len(messages):
        raise InvalidInput(
            f"{len(sizes)} token counts for {len(messages)} messages.",
            fix="Give one for each.",
            where="tokens",
        )
    limits = bounds(policy, window)
    budget = ContextBudget(limits.window, limits.reserve, system=overhead, messages=sum(sizes))
    reason = BY_HAND if force else fires(budget, policy, len(messages))
    idle = Plan(
        tuple(messages), policy, policy._replace(reserve=limits.reserve), limits, overhead, False, "", budget.used,
        sizes, count, findings=limits.findings,
    )  # fmt: skip
    if not reason:
        return idle
    growth = limits.window if last_tokens is None else budget.used - last_tokens
    if not force and budget.used <= limits.limit and growth < policy.min_progress * limits.window:
        return _idle(idle, "no-progress", "too little was added since the last compaction to try again.")
    if force:
        limits = limits._replace(goal=min(limits.goal, int(BY_HAND_SHARE * budget.used)))
    fitted = fit_conversation(
        idle._replace(reason=reason), partition(messages, policy), limits=limits, pointer=pointer or (lambda _: ""),
        readings=readings or Readings(), by_hand=force,
    )  # fmt: skip
    gained = budget.used - fitted.total
    dropped = len(messages) - len(fitted.kept) - (fitted.place >= 0)
    share = max(
        gained / max(1, budget.used), dropped / max(1, len(messages)) if policy.trigger_messages else 0.0
    )
    if budget.used <= limits.limit and (share <= 0 or (not force and share < policy.min_reclaim)):
        what = f"a compaction would take {gained} of {budget.used} tokens, too few for what it costs."
        return _idle(idle, "not-worthwhile", what)
    # So little prose is worth neither a call of a model nor a selection.
    return fitted if fitted.prose_tokens >= LEAST_PROSE else fitted._replace(task=None, asks=False)


def _idle(idle: Plan, code: str, what: str) -> Plan:
    fix = "Nothing to do; compact by hand, or lower the policy's protection, if it must be smaller."
    return idle._replace(findings=(*idle.findings, Finding("info", code, "conversation", what, fix)))


def apply(plan: Plan, prose: str | None) -> Compacted:
    """Return the conversation as planned, with `prose` in its summary; None: with selected lines.

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
        (index, plan.changed.get(index, plan.messages[index])) for index in plan.kept
    ]
    summary = None
    if plan.place >= 0:
        summary, message = _summary(plan, prose)
        entries.insert(sum(index < plan.place for index in plan.kept), (None, message))
    result = Compacted(
        tuple(message for _, message in entries), True, plan.tokens_before, 0, plan.bounds.limit, summary,
        plan.findings, plan.why, plan.effective, tuple(index for index, _ in entries), plan.cuts, plan.steps, plan.protected,
    )  # fmt: skip
    return verified(
        result, plan.messages, tokens=plan.tokens, overhead=plan.overhead, count=plan.count, required=plan.required
    )  # fmt: skip


def _summary(plan: Plan, prose: str | None) -> tuple[Summary, Message]:
    """Return the summary with as much of `prose` as fits, and its message."""
    text = (prose or "").strip()
    if not text and plan.task:
        text = write_summary(task_as_json(plan.task), count=plan.count)
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
    positions = [place for place in places if place is not None]
    total = overhead + sum(
        tokens[place] if place is not None and message is before[place] else message_tokens(message, count)
        for message, place in zip(after, places, strict=True)
    )
    by_place = dict(zip(places, after, strict=True))
    summaries = sum(map(is_earlier_summary, after))
    torn = _unpaired(after, places) - _unpaired(before, range(len(before)))
    changed = [
        index
        for index in compacted.protected
        if index not in by_place or by_place[index].raw is not before[index].raw
    ]
    missing = [index for index in required if index not in by_place]
    faults = {
        "it is empty": not after,
        "the order changed": any(first >= other for first, other in pairwise(positions)),
        f"{total} tokens are over the limit of {compacted.limit}": total > compacted.limit,
        f"protected messages {changed} changed": bool(changed),
        f"messages {missing}, which must stay, are missing": bool(missing),
        f"it has {summaries} summaries instead of one": summaries > 1 or summaries < bool(compacted.summary),
        f"messages {sorted(map(str, torn))} lost their call or their result": bool(torn),
    }
    for what, is_fault in faults.items():
        if is_fault:
            raise AetherError(
                f"the compaction is wrong: {what}.",
                fix="Nothing was changed. Report this with the conversation's shape; compact with another policy.",
                where="compaction",
            )
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

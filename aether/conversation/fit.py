"""Fit: the operations that one conversation needs, in order, until it fits, and the plan that results.

Cheap steps come first, and only up to the goal; if they are enough, nothing is removed. Otherwise the oldest messages
that no keep count holds are removed, and a summary of them is added. If the held messages leave too little room, their
results are shortened, then the keep counts are lowered, then the remaining text is shortened. The summary keeps its
share throughout. The operations are in `draft`, the facts of a summary in `facts`, their sizes in `room`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from aether.conversation.draft import (
    Draft,
    drop_unpinned,
    explorations,
    fits,
    fold_exploration,
    group_tokens,
    held_groups,
    kept_positions,
    lower_keep_counts,
    restore_group,
    short_size,
    shorten_group,
    shorten_groups,
    shorten_harder,
    shorten_kept_results,
    shorten_opening,
    used_tokens,
)
from aether.conversation.facts import (
    FACTS_SHARE,
    PreviousSummary,
    facts_of_removed,
    previous_summary,
    removed_texts,
    with_facts_of_cut,
)
from aether.conversation.partition import LEAST_WEIGHT, Parts, importance, is_brief
from aether.conversation.progress import Conversation
from aether.conversation.readings import Readings
from aether.conversation.room import Sizes, fit_summary
from aether.conversation.shapes import Bounds, Facts, Kept, Plan, Policy, SummaryTask
from aether.conversation.steps import exploration_runs, only_explores
from aether.errors import BudgetExceeded
from aether.messages import providers
from aether.messages.model import BlockKind
from aether.text.selection import heaviest_fitting
from aether.text.words import pluralize
from aether.types import Finding

# Tokens for the smallest summary beyond its frame: a goal and a few names. In a small window, a share of the goal.
LEAST_SUMMARY = 80
LEAST_SUMMARY_SHARE = 0.05
# A summary longer than half of the text that it replaces is not worth its tokens, except for goals and constraints.
SUMMARY_OF_REMOVED = 0.5
# Share of the limit that a summary may use before it omits facts: held messages are shortened and keep counts lowered
# for it. With less, real sessions of 100k tokens and more lose decisions and files.
FAIR_SHARE = 0.40
# Share of the limit that the newest results keep while anything else can be shortened.
NEWEST_SHARE = 0.25
# Tokens that are left to a summary at first: what the facts of most long sessions need, with prose.
SUMMARY_TOKENS = 12_000
# Tokens of prose, at most a share of the goal, beside facts that all have room. What remains of the summary's room is for
# more of the newest messages.
PROSE_TOKENS, PROSE_SHARE = 3_000, 0.1
# Of the goal: less is not worth another round, which reads the removed messages again.
REFILL_SHARE = 0.1
# Each round has a better estimate of what the facts need; goals and constraints seldom grow after the second.
_ROUNDS = 3
# A refusal names so many of the largest messages.
NAMED = 5
_SEVERE = ("decision", "decisions", "goal", "goals", "constraint", "constraints")
_SHORTENED: dict[BlockKind, str] = {
    "result": "shorten_results: {} result{s}",
    "call": "shorten_arguments: {} call{s}",
    "text": "reduce: {} text{s} shortened",
}


class _Fit(NamedTuple):
    """The fixed inputs of one run, with the draft that the operations change."""

    plan: Plan
    limits: Bounds
    draft: Draft
    loose: list[int]
    """Groups that nothing holds, summaries aside, oldest first."""
    earlier: PreviousSummary
    bare: int
    """Tokens of an empty summary."""
    conversation: Callable[[], Conversation]
    """The messages as redacted copies, read once, of which the summary is made."""
    facts: dict[tuple[int, ...], Facts]
    """By removed positions, as far as they were read."""
    sizes: Sizes
    by_hand: bool
    """Whether shortened messages get a summary too, if nothing else is removed."""

    @property
    def policy(self) -> Policy:
        return self.plan.policy

    @property
    def has_prose(self) -> bool:
        return not {"summarise", "select"}.isdisjoint(self.policy.steps)

    @property
    def removes(self) -> bool:
        """Return whether the policy removes messages that no keep count holds."""
        return self.has_prose or "reduce" in self.policy.steps

    @property
    def least_summary(self) -> int:
        return self.bare + min(LEAST_SUMMARY, int(LEAST_SUMMARY_SHARE * self.limits.goal))

    @property
    def most_summary(self) -> int:
        return int(self.policy.summary_share * self.limits.goal)

    @property
    def fair_summary(self) -> int:
        """Return the tokens that a summary may use before it omits facts."""
        return min(int(FAIR_SHARE * self.limits.limit), self.most_summary)

    @property
    def facts_share(self) -> float:
        return FACTS_SHARE if self.has_prose or self.earlier.prose else 1.0


class _Summary(NamedTuple):
    """The contents of the new summary: its facts, and the tokens for prose beside them."""

    whole: Facts
    """All facts."""
    facts: Facts
    """The facts that fit."""
    lost: list[str]
    tokens: int
    """Tokens of its message without prose."""
    prose: int
    removed: list[int]

    @property
    def room(self) -> int:
        return self.tokens + self.prose


def fit_conversation(
    plan: Plan, parts: Parts, *, limits: Bounds, pointer: Callable[[int], str], readings: Readings, by_hand: bool = False,
) -> Plan:  # fmt: skip
    """Return `plan` with the result of as many steps of its policy as the limits need.

    A compaction by hand adds a summary even if shortening would do. What a summary holds is taken from the redacted copies
    of the `readings`: in a name without its context no secret is recognised.

    Raises:
        BudgetExceeded: the messages that must be kept do not fit.
    """
    messages, policy = plan.messages, plan.policy
    draft = Draft(
        messages, parts, plan.count, pointer, plan.overhead, plan.tokens, list(plan.tokens), {}, [True] * len(parts.groups),
        {}, [],
    )  # fmt: skip
    if plan.overhead + sum(plan.tokens[index] for index in parts.protected) > limits.limit:
        # Refused at once: no step may change these, and an agent asks again at each turn.
        draft.kept[:] = [not parts.protected.isdisjoint(group.members) for group in parts.groups]
        raise over_budget(draft, limits, 0)
    is_held = held_groups(parts, recent=policy.keep_recent_turns, pairs=policy.keep_tool_pairs)
    loose = [
        index for index in range(len(parts.groups)) if not is_held[index] and index not in parts.summaries
    ]
    summaries = [readings.add(messages[parts.groups[index].members[0]]).message for index in parts.summaries]
    earlier = previous_summary(summaries, range(len(summaries)))
    sizes = Sizes(plan.count)
    bare = fit_summary(Facts(), earlier.version + 1, plan.wire, sizes=sizes, most=1).tokens
    conversation = cache(lambda: Conversation(readings.of(messages)))
    run = _Fit(plan, limits, draft, loose, earlier, bare, conversation, {}, sizes, by_hand)
    if not run.removes or not _is_beyond_shortening(run):
        shorten_groups(draft, policy.steps, loose, goal=limits.goal, most=limits.goal)
    is_enough = fits(draft, limits.goal, limits.most_messages) and len(parts.summaries) <= 1
    if is_enough and not (by_hand and run.has_prose):
        return _planned(run, policy, None, folded=False)
    if "fold_exploration" in policy.steps and not by_hand:
        folded = fold_exploration(draft, loose, goal=limits.goal - run.least_summary)
        _drop_summaries(draft)
        summary = _summary_of_draft(run, run.least_summary)
        # A summary that would get less than its fair share needs more removed than exploration.
        if (
            folded
            and not summary.lost
            and fits(draft, limits.ceiling, limits.most_messages, summary=summary.tokens)
        ):
            return _planned(run, policy, summary, folded=True)
    return _remove_oldest(run)


def _is_beyond_shortening(run: _Fit) -> bool:
    """Return whether the cheap steps cannot reach the goal even at their best.

    Then they are skipped, because removed messages need no shortening, unless the policy may keep older messages.
    """
    draft, policy = run.draft, run.policy
    if policy.keep_middle or policy.keep_requests:
        return False
    runs = explorations(draft, run.loose) if "fold_exploration" in policy.steps else []
    explored = {index for group in runs for index in group}
    short = short_size(run.limits.goal)
    members = [
        index for group in run.loose if group not in explored for index in draft.parts.groups[group].members
    ]
    saved = sum(group_tokens(draft, index) for index in explored)
    saved += sum(max(0, draft.tokens[index] - short) for index in members)
    return used_tokens(draft) - saved > run.limits.goal


def _drop_summaries(draft: Draft) -> None:
    for index in draft.parts.summaries:
        draft.kept[index] = False


def _remove_oldest(run: _Fit) -> Plan:
    """Return the plan that removes the oldest loose messages, and more if that is not enough."""
    draft, limits = run.draft, run.limits
    need = run.least_summary
    room = min(run.most_summary, SUMMARY_TOKENS)
    for _ in range(_ROUNDS):
        draft.notes.clear()
        effective = _lower_counts(run, need, room)
        summary = _summary_of_draft(run, need)
        if not summary.removed and len(draft.parts.summaries) <= 1:
            # Nothing but the earlier summary was removed: it stays if that is below the ceiling.
            for index in draft.parts.summaries:
                draft.kept[index] = True
            if fits(draft, limits.ceiling, limits.most_messages):
                return _planned(run, effective, None, folded=False)
            _drop_summaries(draft)
        target = _wanted_tokens(run, summary)
        if target <= max(need, summary.room) and fits(draft, limits.ceiling, limits.most_messages, summary=summary.tokens):  # fmt: skip
            # Room that the summary leaves is for more of the newest messages.
            prose = min(PROSE_TOKENS, int(PROSE_SHARE * limits.goal)) if run.has_prose else 0
            if summary.lost or summary.prose - prose < REFILL_SHARE * limits.goal:
                break
            room = summary.tokens + prose
        need = max(need, target)
    if "reduce" in run.policy.steps:
        summary = _shorten_kept(run, _if_needed(run, summary))
        if drop_unpinned(draft, most=limits.limit - (run.bare if summary.tokens else 0), calls=True):
            summary = _summary_of_draft(run, need)
            effective = effective._replace(keep_tool_pairs=0)
    summary = _if_needed(run, summary)
    if summary.tokens and used_tokens(draft) + summary.tokens > limits.limit:
        summary = _shrunk(run, summary)
    return _planned(run, effective, summary if summary.tokens else None, folded=False)


def _if_needed(run: _Fit, summary: _Summary) -> _Summary:
    """Return `summary`, without tokens if nothing was removed: then there is nothing to summarise."""
    if summary.removed or run.draft.parts.summaries:
        return summary
    return summary._replace(tokens=0, prose=0)


def _lower_counts(run: _Fit, need: int, room: int) -> Policy:
    """Drop messages that no keep count holds, with the counts lowered as far as a summary of `need` tokens requires.

    Older messages leave a summary `room` tokens, if it is worth them.
    """
    draft, policy, limits = run.draft, run.policy, run.limits
    most, most_messages = limits.roomy - need, max(0, limits.most_messages - 1)
    turns, pairs = policy.keep_recent_turns, policy.keep_tool_pairs
    if run.removes:
        draft.kept[:] = held_groups(draft.parts, recent=turns, pairs=pairs)
    if "reduce" in policy.steps:
        if "shorten_results" in policy.steps:
            shorten_kept_results(
                draft, goal=limits.goal, most=limits.goal - need, limit=limits.limit - need,
                share=int(NEWEST_SHARE * limits.limit),
            )  # fmt: skip
        turns, pairs = lower_keep_counts(draft, policy, most=most, most_messages=most_messages)
        drop_unpinned(draft, most=most, most_messages=most_messages)
    _drop_summaries(draft)
    if run.removes:
        room = max(need, min(room, _worth(run, run.loose)))
        aim = int(limits.most_messages * policy.target / policy.trigger)
        keep_older(draft, policy, run.loose, goal=limits.goal, room=room, least=need, most_messages=aim)
    drop_misplaced(draft, run.loose)
    return policy._replace(keep_recent_turns=turns, keep_tool_pairs=pairs)


def _shorten_kept(run: _Fit, summary: _Summary) -> _Summary:
    """Shorten the kept messages as far as needed beside the summary; return that with the facts of what is cut.

    Older messages are shortened to stay below the ceiling, the newest and the opening only to fit at all.
    """
    draft, limits = run.draft, run.limits
    groups = [index for index, is_kept in enumerate(draft.kept) if is_kept]
    newest = {index for index in groups if draft.parts.pair[index] == 0}.union(groups[-1:])
    most = limits.limit - summary.tokens
    shorten_harder(
        draft, [index for index in groups if index not in newest], most=limits.roomy - summary.tokens
    )
    shorten_harder(draft, groups, most=most)
    if shorten_opening(draft, most=most) and summary.tokens:
        facts = with_facts_of_cut(summary.whole, run.conversation(), draft.parts.opening)
        return _with_facts(run, summary.removed, facts, summary.room)
    return summary


def _wanted_tokens(run: _Fit, summary: _Summary) -> int:
    """Return the tokens that the summary should have: its fair share, if it omits facts with fewer."""
    if not summary.lost or summary.room >= run.fair_summary:
        return summary.tokens
    if run.sizes.sum(summary.whole) > 2 * run.fair_summary:
        return max(summary.tokens, run.fair_summary)
    complete = fit_summary(
        summary.whole, run.earlier.version + 1, run.plan.wire, sizes=run.sizes, most=run.limits.window
    )
    return max(summary.tokens, min(run.fair_summary, int(complete.tokens / run.facts_share)))


def _worth(run: _Fit, removed: Sequence[int]) -> int:
    """Return the most tokens that a summary of these groups is worth, beside the earlier summaries."""
    parts, sizes = run.draft.parts, run.draft.given
    groups = [parts.groups[index] for index in removed if index not in parts.summaries]
    tokens = sum(sizes[index] for group in groups for index in group.members)
    if run.by_hand:
        tokens = max(tokens, sum(sizes) - sum(run.draft.tokens))
    earlier = sum(sizes[parts.groups[index].members[0]] for index in parts.summaries)
    return int(SUMMARY_OF_REMOVED * tokens) + earlier


def _summary_of_draft(run: _Fit, need: int) -> _Summary:
    """Return the summary of what the draft removes, of at least `need` tokens; by hand at least of what it shortens."""
    draft, limits = run.draft, run.limits
    dropped = [index for index, is_kept in enumerate(draft.kept) if not is_kept]
    groups = (draft.parts.groups[index] for index in dropped if index not in draft.parts.summaries)
    removed = sorted(member for group in groups for member in group.members)
    if run.by_hand and not removed:
        removed = sorted({index for index, _ in draft.cuts})
    key = tuple(removed)
    if key not in run.facts:
        run.facts[key] = facts_of_removed(run.conversation(), removed, run.earlier, draft.pointer)
    used = used_tokens(draft)
    aim = min(limits.goal - used, run.most_summary, _worth(run, dropped), limits.ceiling - used)
    return _with_facts(run, removed, run.facts[key], max(need, aim))


def _with_facts(run: _Fit, removed: list[int], facts: Facts, most: int) -> _Summary:
    fitted = fit_summary(
        facts, run.earlier.version + 1, run.plan.wire, sizes=run.sizes, most=int(most * run.facts_share)
    )
    prose = max(0, most - fitted.tokens) if run.has_prose or run.earlier.prose else 0
    return _Summary(facts, *fitted, prose, removed)


def _shrunk(run: _Fit, summary: _Summary) -> _Summary:
    """Reduce the summary to the tokens that the limit leaves, in the end to its bare frame.

    Raises:
        BudgetExceeded: even the frame does not fit.
    """
    free = run.limits.limit - used_tokens(run.draft)
    if run.bare > free:
        raise over_budget(run.draft, run.limits, run.bare)
    smaller = _with_facts(run, summary.removed, summary.whole, free)._replace(prose=0)
    first = smaller.facts
    while smaller.tokens > free:
        # The newer constraints and the opening goals last longest; the pointer to the full text stays while one is left.
        goals = smaller.facts.goals[: len(smaller.facts.goals) // 2]
        constraints = smaller.facts.constraints[(len(smaller.facts.constraints) + 1) // 2 :]
        lookups = first.lookups if goals or constraints else ()
        facts = Facts(goals, constraints=constraints, lookups=lookups)
        smaller = _with_facts(run, summary.removed, facts, free)._replace(prose=0, lost=smaller.lost)
    dropped = {
        "goals": len(first.goals) - len(smaller.facts.goals),
        "constraints": len(first.constraints) - len(smaller.facts.constraints),
    }
    lost = [*smaller.lost, *(pluralize(number, name) for name, number in dropped.items() if number)]
    return smaller._replace(lost=lost)


def _planned(run: _Fit, effective: Policy, summary: _Summary | None, *, folded: bool) -> Plan:
    """Return the plan of the finished draft with `summary`; `folded`: a summariser need not be asked.

    Raises:
        BudgetExceeded: it is over the limit, which happens with a policy of few steps.
    """
    draft, parts, limits, policy = run.draft, run.draft.parts, run.limits, run.policy
    extra = summary.tokens if summary else 0
    total = used_tokens(draft) + extra
    if total > limits.limit:
        raise over_budget(draft, limits, extra)
    positions = tuple(sorted(kept_positions(draft)))
    present = set(positions)
    stalled = 0 if fits(draft, limits.ceiling, limits.most_messages, summary=extra) else total
    findings = fit_findings(draft, summary.lost if summary else (), stalled=stalled)
    plan = run.plan._replace(
        effective=effective._replace(reserve=limits.reserve),
        triggered=True,
        kept=positions,
        changed={index: message for index, message in draft.changed.items() if index in present},
        total=total,
        protected=tuple(sorted(parts.protected)),
        required=tuple(sorted({index for index in (parts.opening, parts.newest) if index >= 0})),
        why=kept_by_reason(draft, policy),
        findings=(*run.plan.findings, *findings),
        cuts=tuple(cut for (index, _), cut in sorted(draft.cuts.items()) if index in present),
        steps=steps_taken(draft, policy, folded=folded),
    )
    if not summary:
        return plan
    # Later shortening of the facts may have left the prose less room.
    prose = max(0, min(summary.prose, limits.ceiling - total))
    version, task = run.earlier.version + 1, None
    if run.has_prose:
        removed = removed_texts(run.conversation().messages, summary.removed)
        task = SummaryTask(policy.strategy, version, removed, run.earlier.prose, summary.facts, prose)
    return plan._replace(
        place=_place(draft, summary.removed), version=version, facts=summary.facts, prose_tokens=prose,
        previous=run.earlier.prose, task=task, asks=not folded and "summarise" in policy.steps,
    )  # fmt: skip


def _place(draft: Draft, removed: Sequence[int]) -> int:
    """Return the position before which the summary is put: after the opening and protected messages, within no group.

    It comes after a compaction of the provider, before which nothing is read. The newest message of the user and its
    successors come after the summary, even if they are protected.
    """
    parts = draft.parts
    groups = [group for index, group in enumerate(parts.groups) if draft.kept[index]]
    loose = (
        group.members[0]
        for group in groups
        if group.members[-1] > parts.restart
        if parts.opening not in group.members and parts.protected.isdisjoint(group.members)
    )
    first = max(parts.restart, removed[0] if removed else 0)
    after = (index for index in sorted(kept_positions(draft)) if index > first)
    place = next(loose, next(after, len(draft.messages)))
    if parts.newest > parts.opening:
        place = min(place, parts.newest)
    for group in reversed(groups):
        if group.members[0] < place <= group.members[-1]:
            place = group.members[0]
    return place


def keep_older(
    draft: Draft, policy: Policy, loose: Sequence[int], *, goal: int, room: int, least: int, most_messages: int = 0,
) -> None:  # fmt: skip
    """Keep loose groups as far as the goal leaves room beside a summary of `room` tokens.

    Requests and instructions of the user come first, then the most important groups if the policy asks for them, then
    the newest, until one has no room. Requests may leave the summary as little as `least`. If the number of messages
    counts, only the newest are kept.
    """
    available = [index for index in loose if not draft.kept[index] and index not in draft.parts.orphans]
    free_messages = len(draft.messages)
    if most_messages:
        free_messages = most_messages - len(kept_positions(draft))
    else:
        _keep_important(draft, policy, available, goal=goal, room=room, least=least)
    free, number = goal - used_tokens(draft) - room, 0
    reasoning = [step for step in policy.steps if step == "drop_reasoning"]
    for index in [index for index in reversed(available) if not draft.kept[index]]:
        # A group is kept whole if it fits, without reasoning of finished turns; exploration can be repeated.
        group = draft.parts.groups[index]
        restore_group(draft, index)
        shorten_group(draft, reasoning, index, goal=goal)
        if group_tokens(draft, index) > free or only_explores(draft.messages, group):
            shorten_group(draft, policy.steps, index, goal=goal)
        cost, size = group_tokens(draft, index), len(group.members)
        if cost > free or size > free_messages:
            break
        draft.kept[index] = True
        free, free_messages, number = free - cost, free_messages - size, number + 1
    if number:
        draft.notes.append(f"select: {number} newer groups kept, as there is room")


def _keep_important(
    draft: Draft, policy: Policy, available: Sequence[int], *, goal: int, room: int, least: int
) -> None:
    """Keep the user's requests and the most important other groups, as far as the policy asks for them."""
    groups, messages = draft.parts.groups, draft.messages
    chosen: set[int] = set()
    if policy.keep_requests:
        # Those that are shorter than a line come last.
        requests = [index for index in available if groups[index].kind == "user"]
        texts = {index: messages[groups[index].members[0]].text for index in requests}
        costs = [(index, float(not is_brief(texts[index])), group_tokens(draft, index)) for index in requests]
        chosen = heaviest_fitting(costs, most=goal - used_tokens(draft) - least)
    spent = sum(group_tokens(draft, index) for index in chosen)
    free = min(int(policy.keep_middle * goal), goal - used_tokens(draft) - spent - room)
    if free > 0:
        candidates = [index for index in available if index not in chosen]
        costs = []
        for order, index in enumerate(candidates):
            members = [messages[member] for member in groups[index].members]
            weight = importance(members, newness=order / len(candidates))
            if weight >= LEAST_WEIGHT and not only_explores(messages, groups[index]):
                costs.append((index, weight, group_tokens(draft, index)))
        chosen |= heaviest_fitting(costs, most=free)
    for index in chosen:
        draft.kept[index] = True
    if chosen:
        draft.notes.append(f"select: {len(chosen)} older groups kept for what they say")


def drop_misplaced(draft: Draft, loose: Sequence[int]) -> None:
    """Drop groups that Gemini would reject: it takes a call only after the user, or after results.

    Of a text and the calls after it, the text is dropped if it is among the `loose` groups, otherwise the calls are.
    """
    if not draft.messages or not providers.provider(draft.messages[0].format).TRAITS.calls_follow_user:
        return
    groups, droppable, before = draft.parts.groups, set(loose), list[int]()
    for index, group in enumerate(groups):
        if not draft.kept[index]:
            continue
        if group.kind == "tools":
            while before and groups[before[-1]].kind == "assistant" and before[-1] in droppable:
                draft.kept[before.pop()] = False
            if before and groups[before[-1]].kind == "assistant" and index not in draft.parts.pinned:
                draft.kept[index] = False
                continue
        before.append(index)


def steps_taken(draft: Draft, policy: Policy, *, folded: bool) -> tuple[str, ...]:
    """Return what each step did in the finished draft, with its number and its tokens."""
    present, lines = set(kept_positions(draft)), list[str]()
    cuts = {place: cut for place, cut in draft.cuts.items() if place[0] in present}
    reasoning = {
        index: draft.given[index] - draft.tokens[index] for index in draft.changed if index in present
    }
    by_kind: dict[BlockKind, list[int]] = {}
    for (index, block), cut in cuts.items():
        saved = cut.tokens_before - cut.tokens_after
        reasoning[index] -= saved
        by_kind.setdefault(draft.changed[index].blocks[block].kind, []).append(saved)
    thinner = [
        index for index in reasoning if len(draft.changed[index].blocks) < len(draft.messages[index].blocks)
    ]
    if thinner:
        tokens = max(0, sum(reasoning[index] for index in thinner))
        lines.append(_step("drop_reasoning: {} message{s}", len(thinner), tokens))
    lines += [
        _step(form, len(by_kind[kind]), sum(by_kind[kind]))
        for kind, form in _SHORTENED.items()
        if kind in by_kind
    ]
    groups = draft.parts.groups
    removed = [
        index for index in range(len(groups)) if not draft.kept[index] and index not in draft.parts.summaries
    ]
    members = [index for group in removed for index in groups[group].members]
    tokens = sum(draft.given[index] for index in members)
    if members and folded:
        runs = exploration_runs((index, only_explores(draft.messages, groups[index])) for index in removed)
        lines.append(_step("fold_exploration: {} run{s}", sum(1 for _ in runs), tokens))
    elif members:
        form = "summarise: {} message{s}" if "summarise" in policy.steps else "reduce: {} message{s} removed"
        lines.append(_step(form, len(members), tokens))
    return (*lines, *draft.notes)


def _step(form: str, number: int, tokens: int) -> str:
    return f"{form.format(f'{number:,}', s='' if number == 1 else 's')}, {tokens:,} tokens"


def kept_by_reason(draft: Draft, policy: Policy) -> Kept:
    """Return how many messages were kept for which reason."""
    parts = draft.parts
    numbers = {"pinned": 0, "recent": 0, "tool_pairs": 0, "middle": 0}
    is_held = held_groups(parts, recent=policy.keep_recent_turns, pairs=policy.keep_tool_pairs)
    for index, group in enumerate(parts.groups):
        if draft.kept[index]:
            shielded = parts.opening in group.members or not parts.protected.isdisjoint(group.members)
            reason = (
                "pinned" if shielded
                else "middle" if not is_held[index]
                else "recent" if parts.pair[index] < 0
                else "tool_pairs"
            )  # fmt: skip
            numbers[reason] += len(group.members)
    return Kept(**numbers)


def fit_findings(draft: Draft, lost: Sequence[str], *, stalled: int) -> Iterator[Finding]:
    """Yield the findings of a compaction; `stalled` is the tokens that must be kept if they fire a trigger, else 0."""
    if stalled:
        yield Finding(
            "warning", "stalled", "conversation",
            f"{stalled} tokens must be kept, enough to fire the next compaction at once.",
            "Protect less, lower the keep counts, or use a larger window.",
        )  # fmt: skip
    opening = draft.parts.opening
    if opening in draft.changed and draft.kept:
        yield Finding(
            "warning", "opening-shortened", f"messages[{opening}]",
            "the opening request was too long to be kept whole.",
            "Use a larger window, or protect it, which makes the compaction fail instead.",
        )  # fmt: skip
    if lost:
        # Files can be read again and names looked up; decisions are written nowhere else.
        is_severe = any(words.endswith(_SEVERE) for words in lost)
        yield Finding(
            "warning" if is_severe else "info", "facts-left-out", "summary",
            f"no room for {', '.join(lost)}.",
            "They are in the history; raise summary_share to keep more.",
        )  # fmt: skip


def over_budget(draft: Draft, limits: Bounds, summary: int) -> BudgetExceeded:
    """Return the error for a draft that does not fit, with the largest messages that must stay."""
    parts = draft.parts
    roles = {parts.newest: "newest message of the user", parts.opening: "opening request"}
    roles |= dict.fromkeys(parts.protected, "protected")
    sizes = [("system prompt and tool schemas", draft.overhead), ("summary", summary)]
    sizes += [
        (f"messages[{index}] ({roles.get(index, 'kept')})", draft.tokens[index])
        for index in kept_positions(draft)
    ]
    largest = sorted((entry for entry in sizes if entry[1]), key=lambda entry: -entry[1])
    listed = ", ".join(f"{name} {tokens}" for name, tokens in largest[:NAMED])
    remainder = f" and {len(largest) - NAMED} more" if len(largest) > NAMED else ""
    return BudgetExceeded(
        f"{used_tokens(draft) + summary} tokens must stay and {limits.limit} of a window of {limits.window} may be used: "
        f"{listed}{remainder}.",
        fix="Reduce the protected content, shorten the messages named, or use a model with a larger window.",
        where="conversation",
    )

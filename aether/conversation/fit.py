"""Fit: the steps that one conversation needs, taken one after the other until it fits, and what they came to.

Cheap steps come first, and only up to the goal; if they are enough, nothing is removed. Otherwise the oldest messages
that no keep count holds are removed, and a summary of them is added. If the held messages leave too little room, their
results are shortened, then the keep counts are lowered, then the remaining text is shortened. The summary keeps its
share throughout. The steps themselves are in `steps`, the facts and sizes of a summary in `facts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from aether.conversation import steps
from aether.conversation.budget import Bounds
from aether.conversation.facts import (
    FACTS_SHARE,
    PreviousSummary,
    facts_of_removed,
    previous_summary,
    redacted_message,
    removed_texts,
    with_facts_of_cut,
)  # fmt: skip
from aether.conversation.partition import LEAST_WEIGHT, Parts, importance, is_brief
from aether.conversation.progress import Conversation, conversation_of
from aether.conversation.room import fit_summary
from aether.conversation.shapes import Cut, Facts, Kept, Policy, Summary, SummaryTask
from aether.conversation.steps import Draft
from aether.conversation.summary import rendered
from aether.errors import BudgetExceeded
from aether.messages.model import BlockKind, Message, ProviderFormat
from aether.redact.redact import DEFAULT, Rules
from aether.text.selection import heaviest_fitting
from aether.text.words import pluralize
from aether.types import Counter, Finding

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


class FitResult(NamedTuple):
    """The conversation as the steps left it; see `Plan` for the fields of the same names."""

    effective: Policy
    kept: tuple[int, ...]
    changed: dict[int, Message]
    total: int
    """Tokens of all that is sent, with a summary without prose."""
    place: int
    version: int
    facts: Facts
    prose_tokens: int
    previous: str
    folded: bool
    """Whether dropping explorations was enough, so that a model need not be asked."""
    task: SummaryTask | None
    protected: tuple[int, ...]
    required: tuple[int, ...]
    why: Kept
    findings: tuple[Finding, ...]
    cuts: tuple[Cut, ...]
    steps: tuple[str, ...]


class _Fit(NamedTuple):
    """The fixed inputs of one run, with the draft that the steps change."""

    policy: Policy
    limits: Bounds
    draft: Draft
    before: PreviousSummary
    provider: ProviderFormat
    bare: int
    """Tokens of an empty summary."""
    public: Callable[[], Conversation]
    """The messages as redacted copies, read once, of which the summary is made."""
    beside_prose: float
    """Share of the summary that its facts may use beside prose."""

    @property
    def frame(self) -> int:
        """Return the least tokens of a new summary."""
        return self.bare + min(LEAST_SUMMARY, int(LEAST_SUMMARY_SHARE * self.limits.goal))

    @property
    def most_summary(self) -> int:
        return int(self.policy.summary_share * self.limits.goal)

    @property
    def fair(self) -> int:
        """Return the tokens that a summary may use before it omits facts."""
        return min(int(FAIR_SHARE * self.limits.limit), self.most_summary)

    @property
    def has_prose(self) -> bool:
        return not {"summarise", "select"}.isdisjoint(self.policy.steps)

    @property
    def facts_share(self) -> float:
        return self.beside_prose if self.has_prose or self.before.prose else 1.0

    @property
    def prose(self) -> int:
        """Return the tokens of prose for which older messages make room."""
        return min(PROSE_TOKENS, int(PROSE_SHARE * self.limits.goal)) if self.has_prose else 0

    @property
    def removes(self) -> bool:
        """Return whether the policy removes messages that no keep count holds."""
        return self.has_prose or "reduce" in self.policy.steps


class _SummaryDraft(NamedTuple):
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
    messages: Sequence[Message],
    parts: Parts,
    policy: Policy,
    count: Counter,
    *,
    limits: Bounds,
    overhead: int,
    tokens: Sequence[int],
    pointer: Callable[[int], str],
    rules: Rules | None = DEFAULT,
    by_hand: bool = False,
    facts_share: float = FACTS_SHARE,
) -> FitResult:
    """Return the conversation after as many steps of `policy` as the limits need.

    `by_hand` somebody asked for it, and gets a summary even if all messages stay, as far as shortening made room for one.
    What a summary holds is taken from copies redacted by `rules`: in a name without its context no secret is recognised.

    Raises:
        BudgetExceeded: the messages that must be kept do not fit.
    """
    provider: ProviderFormat = messages[0].format if messages else "plain"
    everything = [True] * len(parts.groups)
    draft = Draft(messages, parts, count, pointer, overhead, tokens, list(tokens), {}, everything, {}, [])
    public = cache(lambda: conversation_of([redacted_message(one, rules) for one in messages]))
    summaries = [redacted_message(messages[parts.groups[at].members[0]], rules) for at in parts.summaries]
    before = previous_summary(summaries, range(len(summaries)))
    bare = fit_summary(Facts(), before.version + 1, provider, count=count, most=1).tokens
    run = _Fit(policy, limits, draft, before, provider, bare, public, facts_share)
    if overhead + sum(tokens[at] for at in parts.protected) > limits.limit:
        # Refused at once: no step may change these, and an agent asks again at each turn.
        draft.kept[:] = [not parts.protected.isdisjoint(group.members) for group in parts.groups]
        raise over_budget(draft, limits, 0)
    held = steps.held_groups(parts, recent=policy.keep_recent_turns, pairs=policy.keep_tool_pairs)
    loose = steps.loose_groups(parts, held)
    if not run.removes or not steps.cannot_reach(draft, policy, loose, goal=limits.goal):
        steps.shorten_groups(draft, policy.steps, loose, goal=limits.goal)
    if _fits(run, limits.goal, 0) and len(parts.summaries) <= 1:
        summary = _summary_of_cuts(run, loose) if by_hand and run.has_prose else None
        return _result(run, policy, summary, folded=summary is not None)
    if "fold_exploration" in policy.steps and steps.fold_exploration(
        draft, loose, goal=limits.goal - run.frame
    ):
        _drop_summaries(draft)
        summary = _summary_draft(run, run.frame, {})
        more = _wanted_tokens(run, summary)
        if more > summary.room and steps.fold_exploration(draft, loose, goal=limits.goal - more):
            summary = _summary_draft(run, more, {})
        # A summary that would get less than its fair share needs more removed than exploration.
        if _fits(run, limits.ceiling, summary.tokens) and _wanted_tokens(run, summary) <= summary.room:
            return _result(run, policy, summary, folded=True)
    return _remove_oldest(run, loose)


def _summary_of_cuts(run: _Fit, loose: Sequence[int]) -> _SummaryDraft | None:
    """Return a summary beside messages that all stay, some of them shortened; None if that makes no room for it."""
    draft, goal = run.draft, run.limits.goal
    kept, summary = [*draft.kept], None
    for _ in range(_ROUNDS):
        saved = sum(draft.given) - sum(draft.tokens)
        room = min(run.most_summary, int(SUMMARY_OF_REMOVED * saved))
        if room < run.frame:
            break
        cut = sorted({at for at, _ in draft.cuts})
        facts = facts_of_removed(run.public(), cut, run.before, draft.pointer)
        summary = _with_facts(run, cut, facts, room)._replace(prose=0)
        _drop_summaries(draft)
        if _fits(run, goal, summary.tokens):
            return summary
        steps.shorten_groups(draft, run.policy.steps, loose, goal=goal - summary.tokens)
    if summary and _fits(run, run.limits.ceiling, summary.tokens):
        return summary
    draft.kept[:] = kept
    return None


def _fits(run: _Fit, most: int, more: int) -> bool:
    """Return whether the draft and one more message of `more` tokens stay within `most` tokens and enough messages."""
    number = len(steps.kept_positions(run.draft)) + (more > 0)
    few = not run.limits.most_messages or number <= run.limits.most_messages
    return few and steps.used_tokens(run.draft) + more <= most


def _drop_summaries(draft: Draft) -> None:
    for at in draft.parts.summaries:
        draft.kept[at] = False


def _remove_oldest(run: _Fit, loose: Sequence[int]) -> FitResult:
    """Return the result of removing the oldest loose messages, and more if that is not enough."""
    draft, limits = run.draft, run.limits
    need, known = run.frame, dict[tuple[int, ...], Facts]()
    room = min(run.most_summary, SUMMARY_TOKENS)
    for _ in range(_ROUNDS):
        draft.steps.clear()
        effective = _lower_counts(run, loose, need, room)
        summary = _summary_draft(run, need, known)
        if not summary.removed and len(draft.parts.summaries) <= 1:
            # Nothing but the earlier summary was removed: it stays if that is below the ceiling.
            for at in draft.parts.summaries:
                draft.kept[at] = True
            if _fits(run, limits.ceiling, 0):
                return _result(run, effective, None, folded=False)
            _drop_summaries(draft)
        more = _wanted_tokens(run, summary)
        if more <= max(need, summary.room) and _fits(run, limits.ceiling, summary.tokens):
            # Room that the summary leaves is for more of the newest messages.
            least = summary.tokens + run.prose
            if summary.lost or summary.room - least < REFILL_SHARE * limits.goal:
                break
            room = least
        need = max(need, more)
    if "reduce" in run.policy.steps:
        summary = _shorten_kept(run, _if_needed(run, summary))
        if steps.drop_newest_calls(draft, most=limits.limit - (run.bare if summary.tokens else 0)):
            summary = _summary_draft(run, need, known)
            effective = effective._replace(keep_tool_pairs=0)
    summary = _if_needed(run, summary)
    if summary.tokens and steps.used_tokens(draft) + summary.tokens > limits.limit:
        summary = _shrink_summary(run, summary)
    return _result(run, effective, summary if summary.tokens else None, folded=False)


def _if_needed(run: _Fit, summary: _SummaryDraft) -> _SummaryDraft:
    """Return `summary`, without tokens if nothing was removed: then there is nothing to summarise."""
    if summary.removed or run.draft.parts.summaries:
        return summary
    return summary._replace(tokens=0, prose=0)


def _shorten_kept(run: _Fit, summary: _SummaryDraft) -> _SummaryDraft:
    """Shorten the kept messages as far as needed beside the summary; return that with the facts of what is cut.

    Older messages are shortened to stay below the ceiling, the newest and the opening only to fit at all.
    """
    draft, limits = run.draft, run.limits
    kept = [at for at, is_kept in enumerate(draft.kept) if is_kept]
    newest = {at for at in kept if draft.parts.pair[at] == 0}.union(kept[-1:])
    older, most = [at for at in kept if at not in newest], limits.limit - summary.tokens
    steps.shorten_harder(draft, older, most=limits.roomy - summary.tokens)
    steps.shorten_harder(draft, kept, most=most)
    if steps.shorten_opening(draft, most=most) and summary.tokens:
        facts = with_facts_of_cut(summary.whole, run.public(), draft.parts.opening)
        return _with_facts(run, summary.removed, facts, summary.room)
    return summary


def _wanted_tokens(run: _Fit, summary: _SummaryDraft) -> int:
    """Return the tokens that the summary should have: its fair share, if it omits facts with fewer."""
    if not summary.lost or summary.room >= run.fair:
        return summary.tokens
    whole = run.draft.count(rendered(Summary(run.before.version + 1, summary.whole, "")))
    share = FACTS_SHARE if run.facts_share < 1 else 1.0
    return max(summary.tokens, min(run.fair, int(whole / share) + run.bare))


def _lower_counts(run: _Fit, loose: Sequence[int], need: int, room: int) -> Policy:
    """Drop messages that no keep count holds, with the counts lowered as far as a summary of `need` tokens requires.

    Older messages leave a summary `room` tokens, if it is worth them.
    """
    draft, policy, limits = run.draft, run.policy, run.limits
    most, fewer = limits.roomy - need, max(0, limits.most_messages - 1)
    counts = (policy.keep_recent_turns, policy.keep_tool_pairs)
    if run.removes:
        draft.kept[:] = steps.held_groups(draft.parts, recent=counts[0], pairs=counts[1])
    if "reduce" in policy.steps:
        share = int(NEWEST_SHARE * limits.limit)
        steps.shorten_kept_results(
            draft, policy.steps, most=limits.goal - need, limit=limits.limit - need, share=share
        )
        counts = steps.lower_keep_counts(draft, policy, most=most, most_messages=fewer)
        steps.drop_remarks(draft, most=most, most_messages=fewer)
    _drop_summaries(draft)
    if run.removes:
        room = max(need, min(room, _worth(run, loose)))
        aim = int(limits.most_messages * policy.target / policy.trigger)
        keep_older(draft, policy, loose, goal=limits.goal, room=room, least=need, most_messages=aim)
    drop_misplaced(draft, loose)
    return policy._replace(keep_recent_turns=counts[0], keep_tool_pairs=counts[1])


def _worth(run: _Fit, removed: Sequence[int]) -> int:
    """Return the most tokens that a summary of these groups is worth, beside the earlier summaries."""
    parts, given = run.draft.parts, run.draft.given
    tokens = sum(
        given[at] for group in removed if group not in parts.summaries for at in parts.groups[group].members
    )
    return int(SUMMARY_OF_REMOVED * tokens) + sum(
        given[parts.groups[at].members[0]] for at in parts.summaries
    )


def _summary_draft(run: _Fit, need: int, known: dict[tuple[int, ...], Facts]) -> _SummaryDraft:
    """Return the summary for the draft, of at least `need` tokens; `known` caches the facts of removed positions."""
    draft, limits = run.draft, run.limits
    dropped = [at for at, is_kept in enumerate(draft.kept) if not is_kept]
    groups = (draft.parts.groups[at] for at in dropped if at not in draft.parts.summaries)
    removed = sorted(member for group in groups for member in group.members)
    key = tuple(removed)
    if key not in known:
        known[key] = facts_of_removed(run.public(), removed, run.before, draft.pointer)
    held = steps.used_tokens(draft)
    aim = min(limits.goal - held, run.most_summary, _worth(run, dropped), limits.ceiling - held)
    return _with_facts(run, removed, known[key], max(need, aim))


def _with_facts(run: _Fit, removed: list[int], facts: Facts, most: int) -> _SummaryDraft:
    kept, lost, tokens = _sized(run, facts, int(most * run.facts_share))
    prose = most - tokens if run.has_prose or run.before.prose else 0
    return _SummaryDraft(facts, kept, lost, tokens, max(0, prose), removed)


def _sized(run: _Fit, facts: Facts, most: int) -> tuple[Facts, list[str], int]:
    return fit_summary(facts, run.before.version + 1, run.provider, count=run.draft.count, most=most)


def _shrink_summary(run: _Fit, summary: _SummaryDraft) -> _SummaryDraft:
    """Reduce the summary to the tokens that the limit leaves, in the end to its bare frame.

    Raises:
        BudgetExceeded: even the frame does not fit.
    """
    left = run.limits.limit - steps.used_tokens(run.draft)
    if run.bare > left:
        raise over_budget(run.draft, run.limits, run.bare)
    facts, lost, tokens = _sized(run, summary.whole, left)
    before = facts
    while tokens > left:
        # The newer constraints and the opening goals last longest; the pointer to the full text stays while one is left.
        goals = facts.goals[: len(facts.goals) // 2]
        constraints = facts.constraints[(len(facts.constraints) + 1) // 2 :]
        lookups = facts.lookups if goals or constraints else ()
        facts, _, tokens = _sized(run, Facts(goals, constraints=constraints, lookups=lookups), left)
    for field, had, has in (
        ("goals", before.goals, facts.goals), ("constraints", before.constraints, facts.constraints),
    ):  # fmt: skip
        if len(had) > len(has):
            lost.append(pluralize(len(had) - len(has), field))
    return summary._replace(facts=facts, lost=lost, tokens=tokens, prose=0)


def _result(run: _Fit, effective: Policy, summary: _SummaryDraft | None, *, folded: bool) -> FitResult:
    """Return the result of the draft with `summary`.

    Raises:
        BudgetExceeded: it is over the limit, which happens with a policy of few steps.
    """
    draft, parts, limits = run.draft, run.draft.parts, run.limits
    extra = summary.tokens if summary else 0
    tokens = steps.used_tokens(draft) + extra
    if tokens > limits.limit:
        raise over_budget(draft, limits, extra)
    if summary:
        # Later shortening of the facts may have left the prose less room.
        summary = summary._replace(prose=max(0, min(summary.prose, limits.ceiling - tokens)))
    kept = tuple(sorted(steps.kept_positions(draft)))
    present = set(kept)
    version, task = run.before.version + 1 if summary else 0, None
    if summary and run.has_prose:
        said, before = removed_texts(run.public().messages, summary.removed), run.before.prose
        task = SummaryTask(run.policy.strategy, version, said, before, summary.facts, summary.prose)
    stalled = 0 if _fits(run, limits.ceiling, extra) else tokens
    return FitResult(
        effective=effective,
        kept=kept,
        changed={at: message for at, message in draft.now.items() if at in present},
        total=tokens,
        place=_place(draft, summary.removed) if summary else -1,
        version=version,
        facts=summary.facts if summary else Facts(),
        prose_tokens=summary.prose if summary else 0,
        previous=run.before.prose,
        folded=folded,
        task=task,
        protected=tuple(sorted(parts.protected)),
        required=tuple(sorted({at for at in (parts.opening, parts.newest) if at >= 0})),
        why=kept_by_reason(draft, run.policy),
        findings=tuple(fit_findings(draft, summary.lost if summary else (), stalled=stalled)),
        cuts=tuple(cut for (at, _), cut in sorted(draft.cuts.items()) if at in present),
        steps=steps_taken(draft, run.policy, folded=folded),
    )


def _place(draft: Draft, removed: Sequence[int]) -> int:
    """Return the position before which the summary is put: after the opening and protected messages, within no group.

    The newest message of the user and its successors come after the summary, even if they are protected.
    """
    parts = draft.parts
    groups = [group for at, group in enumerate(parts.groups) if draft.kept[at]]
    loose = (
        group.members[0]
        for group in groups
        if parts.opening not in group.members and parts.protected.isdisjoint(group.members)
    )
    first = removed[0] if removed else 0
    after = (at for at in sorted(steps.kept_positions(draft)) if at > first)
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
    available = [at for at in loose if not draft.kept[at] and at not in draft.parts.orphans]
    left = len(draft.messages)
    if most_messages:
        left = most_messages - len(steps.kept_positions(draft))
    else:
        _keep_important(draft, policy, available, goal=goal, room=room, least=least)
    most, kept = goal - steps.used_tokens(draft) - room, 0
    reasoning = [step for step in policy.steps if step == "drop_reasoning"]
    for at in [at for at in reversed(available) if not draft.kept[at]]:
        # A group is kept whole if it fits, without reasoning of finished turns; exploration can be repeated.
        group = draft.parts.groups[at]
        steps.restore_group(draft, at)
        steps.shorten_group(draft, reasoning, at, goal=goal)
        if steps.group_tokens(draft, at) > most or steps.only_explores(draft.messages, group):
            steps.shorten_group(draft, policy.steps, at, goal=goal)
        cost, size = steps.group_tokens(draft, at), len(group.members)
        if cost > most or size > left:
            break
        draft.kept[at] = True
        most, left, kept = most - cost, left - size, kept + 1
    if kept:
        draft.steps.append(f"select: {kept} newer groups kept, as there is room")


def _keep_important(
    draft: Draft, policy: Policy, available: Sequence[int], *, goal: int, room: int, least: int
) -> None:
    """Keep the user's requests and the most important other groups, as far as the policy asks for them."""
    groups = draft.parts.groups
    chosen: set[int] = set()
    if policy.keep_requests:
        # Those that are shorter than a line come last.
        asked = (
            (
                at,
                float(not is_brief(draft.messages[groups[at].members[0]].text)),
                steps.group_tokens(draft, at),
            )
            for at in available
            if groups[at].kind == "user"
        )
        chosen = heaviest_fitting(asked, most=goal - steps.used_tokens(draft) - least)
    taken = sum(steps.group_tokens(draft, at) for at in chosen)
    left = min(int(policy.keep_middle * goal), goal - steps.used_tokens(draft) - taken - room)
    if left > 0:
        others = [at for at in available if at not in chosen]
        costs: list[tuple[int, float, int]] = []
        for order, at in enumerate(others):
            if not steps.only_explores(draft.messages, groups[at]):
                members = [draft.messages[member] for member in groups[at].members]
                weight = importance(members, newness=order / len(others))
                if weight >= LEAST_WEIGHT:
                    costs.append((at, weight, steps.group_tokens(draft, at)))
        chosen |= heaviest_fitting(costs, most=left)
    for at in chosen:
        draft.kept[at] = True
    if chosen:
        draft.steps.append(f"select: {len(chosen)} older groups kept for what they say")


def drop_misplaced(draft: Draft, loose: Sequence[int]) -> None:
    """Drop groups that Gemini would reject: it takes a call only after the user, or after results.

    Of a text and the calls after it, the text is dropped if it is among the `loose` groups, otherwise the calls are.
    """
    if not draft.messages or draft.messages[0].format != "gemini":
        return
    groups, droppable, before = draft.parts.groups, set(loose), list[int]()
    for at, group in enumerate(groups):
        if not draft.kept[at]:
            continue
        if group.kind == "tools":
            while before and groups[before[-1]].kind == "assistant" and before[-1] in droppable:
                draft.kept[before.pop()] = False
            if before and groups[before[-1]].kind == "assistant" and at not in draft.parts.pinned:
                draft.kept[at] = False
                continue
        before.append(at)


def steps_taken(draft: Draft, policy: Policy, *, folded: bool) -> tuple[str, ...]:
    """Return what each step did in the finished draft, with its number and its tokens."""
    parts, present, taken = draft.parts, set(steps.kept_positions(draft)), list[str]()
    cut = [(at, block) for at, block in draft.cuts if at in present]
    saved = {key: draft.cuts[key].tokens_before - draft.cuts[key].tokens_after for key in cut}
    reasoning = {at: draft.given[at] - draft.tokens[at] for at in draft.now if at in present}
    for at, block in cut:
        reasoning[at] -= saved[at, block]
    shorter = [at for at in reasoning if _thoughts(draft.now[at]) < _thoughts(draft.messages[at])]
    if shorter:
        tokens = max(0, sum(reasoning[at] for at in shorter))
        taken.append(_step("drop_reasoning: {} message{s}", len(shorter), tokens))
    for kind, form in _SHORTENED.items():
        found = [saved[at, block] for at, block in cut if draft.now[at].blocks[block].kind == kind]
        if found:
            taken.append(_step(form, len(found), sum(found)))
    removed = [at for at in range(len(parts.groups)) if not draft.kept[at] and at not in parts.summaries]
    members = [at for group in removed for at in parts.groups[group].members]
    tokens = sum(draft.given[at] for at in members)
    if members and folded:
        explored = ((at, steps.only_explores(draft.messages, parts.groups[at])) for at in removed)
        runs = sum(1 for _ in steps.exploration_runs(explored))
        taken.append(_step("fold_exploration: {} run{s}", runs, tokens))
    elif members:
        form = "summarise: {} message{s}" if "summarise" in policy.steps else "reduce: {} message{s} removed"
        taken.append(_step(form, len(members), tokens))
    return (*taken, *draft.steps)


def _thoughts(message: Message) -> int:
    return sum(block.kind == "reasoning" for block in message.blocks)


def _step(form: str, number: int, tokens: int) -> str:
    return f"{form.format(f'{number:,}', s='' if number == 1 else 's')}, {tokens:,} tokens"


def kept_by_reason(draft: Draft, policy: Policy) -> Kept:
    """Return how many messages were kept for which reason."""
    parts = draft.parts
    found = {"pinned": 0, "recent": 0, "tool_pairs": 0, "middle": 0}
    held = steps.held_groups(parts, recent=policy.keep_recent_turns, pairs=policy.keep_tool_pairs)
    for at, group in enumerate(parts.groups):
        if draft.kept[at]:
            shielded = parts.opening in group.members or not parts.protected.isdisjoint(group.members)
            reason = (
                "pinned" if shielded
                else "middle" if not held[at]
                else "recent" if parts.pair[at] < 0
                else "tool_pairs"
            )  # fmt: skip
            found[reason] += len(group.members)
    return Kept(**found)


def fit_findings(draft: Draft, lost: Sequence[str], *, stalled: int) -> Iterator[Finding]:
    """Yield the findings of a compaction; `stalled` is the tokens that must be kept if they fire a trigger, else 0."""
    if stalled:
        yield Finding(
            "warning", "stalled", "conversation",
            f"{stalled} tokens must be kept, enough to fire the next compaction at once.",
            "Protect less, lower the keep counts, or use a larger window.",
        )  # fmt: skip
    opening = draft.parts.opening
    if opening in draft.now and draft.kept:
        yield Finding(
            "warning", "opening-shortened", f"messages[{opening}]",
            "the opening request was too long to be kept whole.",
            "Use a larger window, or protect it, which makes the compaction fail instead.",
        )  # fmt: skip
    if lost:
        # Files can be read again and names looked up; decisions are written nowhere else.
        severe = any(each.endswith(_SEVERE) for each in lost)
        yield Finding(
            "warning" if severe else "info", "facts-left-out", "summary",
            f"no room for {', '.join(lost)}.",
            "They are in the history; raise summary_share to keep more.",
        )  # fmt: skip


def over_budget(draft: Draft, limits: Bounds, summary: int) -> BudgetExceeded:
    """Return the error for a draft that does not fit, with the messages that hold its tokens."""
    parts, present = draft.parts, set(steps.kept_positions(draft))
    named = parts.protected | {parts.opening}
    shares = [
        ("system prompt and tool schemas", draft.overhead),
        _share(draft, "protected", parts.protected & present),
        _share(draft, "opening request", {parts.opening} & present - parts.protected),
        _share(draft, "newest message of the user", {parts.newest} & present - named),
        ("summary", summary),
        _share(draft, "calls and texts that stay", present - named - {parts.newest}),
    ]
    parts_named = ", ".join(f"{name} {tokens}" for name, tokens in shares if tokens)
    return BudgetExceeded(
        f"{steps.used_tokens(draft) + summary} tokens must stay and {limits.limit} of a window of {limits.window} may be used "
        f"({parts_named}).",
        fix="Reduce the protected content, shorten the messages named, or use a model with a larger window.",
        where="conversation",
    )


def _share(draft: Draft, name: str, positions: Iterable[int]) -> tuple[str, int]:
    found = sorted(positions, key=lambda at: (-draft.tokens[at], at))
    places = ", ".join(f"messages[{at}]" for at in found[:NAMED])
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return f"{name} ({places}{more})", sum(draft.tokens[at] for at in found)

"""The climb: which rungs of the ladder one conversation needs, one after the other, until it fits.

Cheap steps first, and only as far as the goal; if they are enough, nothing is removed. Else the oldest of what no
keep count holds goes, and a summary of it comes in. Where what is held leaves too little room, results among it are
shortened, then the keep counts are lowered, then the rest of it is shortened; the summary has its share throughout.

The middle: older messages that stay although no keep count holds them.

Requests and instructions of the user first, then what matters most, as the policy asks; then the newest of the
rest, as far as the goal leaves room, so that the oldest go and no more of them than must. What stays is whole
groups.

Reports: what a compaction did and why, in words for a person, and what it cannot do.

They are told from the draft as it ended, so what was tried and undone is not in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from aether.compaction import steps as compaction_steps
from aether.compaction.budget import Bounds
from aether.compaction.facts import (
    FACTS_SHARE,
    FittedSummary,
    PreviousSummary,
    facts_of_removed,
    fit_summary,
    previous_summary,
    removed_texts,
    with_facts_of_cut,
)
from aether.compaction.partition import LEAST_WEIGHT, Parts, importance, is_request
from aether.compaction.shapes import Cut, Facts, Kept, Policy, Summary, SummaryTask
from aether.compaction.steps import Draft, exploration_runs, only_explores
from aether.compaction.summary import rendered
from aether.errors import BudgetExceeded
from aether.messages.model import BlockKind, Message, ProviderFormat
from aether.text.picking import heaviest_fitting
from aether.text.words import pluralize
from aether.types import Counter, Finding


def keep_older(
    draft: Draft,
    policy: Policy,
    loose: Sequence[int],
    *,
    goal: int,
    room: int,
    least: int,
    most_messages: int = 0,
) -> None:
    """Keep of the loose groups what the policy asks for and what the goal leaves beside a summary of `room` tokens.

    Requests may leave the summary as little as `least`. Where the number of messages counts, what is newest stays.
    """
    parts = draft.parts
    open_to = [at for at in loose if not draft.kept[at] and at not in parts.orphans]
    if not most_messages:
        _weighed(draft, policy, open_to, goal=goal, room=room, least=least)
    left = (
        most_messages - sum(1 for _ in compaction_steps.kept_positions(draft))
        if most_messages
        else len(draft.messages)
    )
    newest = [at for at in reversed(open_to) if not draft.kept[at]]
    _fill(
        draft,
        policy,
        newest,
        most=goal - compaction_steps.used_tokens(draft) - room,
        most_messages=left,
        goal=goal,
    )


def _weighed(
    draft: Draft, policy: Policy, open_to: Sequence[int], *, goal: int, room: int, least: int
) -> None:
    """Keep what the user asked for and what matters most, as far as the policy wants it."""
    parts = draft.parts
    chosen: set[int] = set()
    if policy.keep_requests:
        asked = [at for at in open_to if parts.groups[at].kind == "user" and _requests(draft, at)]
        costs = ((at, 1.0, compaction_steps.group_tokens(draft, at)) for at in asked)
        chosen = heaviest_fitting(costs, most=goal - compaction_steps.used_tokens(draft) - least)
    taken = sum(compaction_steps.group_tokens(draft, at) for at in chosen)
    left = min(int(policy.keep_middle * goal), goal - compaction_steps.used_tokens(draft) - taken - room)
    if left > 0:
        chosen |= _weightiest(draft, [at for at in open_to if at not in chosen], most=left)
    for at in chosen:
        draft.kept[at] = True
    if chosen:
        draft.steps.append(f"select: {len(chosen)} older groups kept for what they say")


def _fill(
    draft: Draft, policy: Policy, newest: Sequence[int], *, most: int, most_messages: int, goal: int
) -> None:
    """Keep these groups, the newest first, until one has no room.

    Each is kept whole where it fits, without reasoning that is over, else shortened; looking around, which can
    be done again, is shortened at once.
    """
    kept = 0
    thoughts = [step for step in policy.steps if step == "drop_reasoning"]
    for at in newest:
        size = len(draft.parts.groups[at].members)
        compaction_steps.restore_group(draft, at)
        compaction_steps.shorten_group(draft, thoughts, at, goal=goal)
        if compaction_steps.group_tokens(draft, at) > most or only_explores(
            draft.messages, draft.parts.groups[at]
        ):
            compaction_steps.shorten_group(draft, policy.steps, at, goal=goal)
        cost = compaction_steps.group_tokens(draft, at)
        if cost > most or size > most_messages:
            break
        draft.kept[at] = True
        most, most_messages, kept = most - cost, most_messages - size, kept + 1
    if kept:
        draft.steps.append(f"select: {kept} newer groups kept, as there is room")


def _requests(draft: Draft, group: int) -> bool:
    return any(is_request(draft.messages[at].text) for at in draft.parts.groups[group].members)


def _weightiest(draft: Draft, groups: Sequence[int], *, most: int) -> set[int]:
    costs: list[tuple[int, float, int]] = []
    for order, at in enumerate(groups):
        group = draft.parts.groups[at]
        if not only_explores(draft.messages, group):
            members = [draft.messages[member] for member in group.members]
            newness = order / len(groups)
            weight = importance(members, newness=newness)
            if weight >= LEAST_WEIGHT:
                costs.append((at, weight, compaction_steps.group_tokens(draft, at)))
    return heaviest_fitting(costs, most=most)


def drop_misplaced(draft: Draft, loose: Sequence[int]) -> None:
    """Drop what could not stand where it would: Gemini takes a call only after the user, or after results.

    Of a text and the calls that would follow it the text goes where nothing but its weight kept it, else the calls.
    """
    if not draft.messages or draft.messages[0].format != "gemini":
        return
    may_go = set(loose)
    standing: list[int] = []
    for at, group in enumerate(draft.parts.groups):
        if not draft.kept[at]:
            continue
        if group.kind == "tools":
            while standing and _speaks(draft, standing[-1]) and standing[-1] in may_go:
                draft.kept[standing.pop()] = False
            if standing and _speaks(draft, standing[-1]) and at not in draft.parts.pinned:
                draft.kept[at] = False
                continue
        standing.append(at)


def _speaks(draft: Draft, group: int) -> bool:
    return draft.parts.groups[group].kind == "assistant"


# The largest ones tell enough.
NAMED = 5
_GRAVE = ("decision", "decisions", "goal", "goals", "constraint", "constraints")
_SHORTENED: dict[BlockKind, str] = {
    "result": "shorten_results: {} result{s}",
    "call": "shorten_arguments: {} call{s}",
    "text": "reduce: {} text{s} shortened",
}


def steps_taken(draft: Draft, policy: Policy, *, folded: bool) -> tuple[str, ...]:
    """Return what each rung did, with its number and its tokens."""
    return (*_lighter(draft), *_report_removed(draft, policy, folded=folded), *draft.steps)


def _lighter(draft: Draft) -> Iterator[str]:
    """Yield what was shortened in what stays."""
    still = set(compaction_steps.kept_positions(draft))
    cut = [(at, block) for at, block in draft.cuts if at in still]
    saved = {key: draft.cuts[key].tokens_before - draft.cuts[key].tokens_after for key in cut}
    thought = {at: draft.given[at] - draft.tokens[at] for at in draft.now if at in still}
    for at, block in cut:
        thought[at] -= saved[at, block]
    thoughtless = [at for at in thought if _thinks(draft, at)]
    if thoughtless:
        yield _step(
            "drop_reasoning: {} message{s}", len(thoughtless), max(0, sum(thought[at] for at in thoughtless))
        )
    for kind, told in _SHORTENED.items():
        found = [saved[at, block] for at, block in cut if draft.now[at].blocks[block].kind == kind]
        if found:
            yield _step(told, len(found), sum(found))


def _thinks(draft: Draft, at: int) -> bool:
    """Tell whether a message thought and no longer does."""
    before, after = (
        sum(block.kind == "reasoning" for block in message.blocks)
        for message in (draft.messages[at], draft.now[at])
    )
    return after < before


def _report_removed(draft: Draft, policy: Policy, *, folded: bool) -> Iterator[str]:
    parts = draft.parts
    gone = [at for at in range(len(parts.groups)) if not draft.kept[at] and at not in parts.summaries]
    members = [at for group in gone for at in parts.groups[group].members]
    tokens = sum(draft.given[at] for at in members)
    if not members:
        return
    if folded:
        number = sum(
            1 for _ in exploration_runs((at, only_explores(draft.messages, parts.groups[at])) for at in gone)
        )
        yield _step("fold_exploration: {} run{s}", number, tokens)
    elif "summarise" in policy.steps:
        yield _step("summarise: {} message{s}", len(members), tokens)
    else:
        yield _step("reduce: {} message{s} removed", len(members), tokens)


def _step(told: str, number: int, tokens: int) -> str:
    return f"{told.format(f'{number:,}', s='' if number == 1 else 's')}, {tokens:,} tokens"


def kept_by_reason(draft: Draft, policy: Policy) -> Kept:
    """Return how many messages stayed for which reason."""
    parts = draft.parts
    found = {"pinned": 0, "recent": 0, "tool_pairs": 0, "middle": 0}
    held = compaction_steps.held_groups(parts, recent=policy.keep_recent_turns, pairs=policy.keep_tool_pairs)
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
    """Yield what whoever is asked should know; `stalled`: so many tokens must stay, too many, 0 where they are not."""
    if stalled:
        yield Finding(
            "warning",
            "stalled",
            "conversation",
            f"what must stay, {stalled} tokens, is enough for another compaction to be due.",
            "Protect less, lower the keep counts, or use a larger window.",
        )
    opening = draft.parts.opening
    if opening in draft.now and draft.kept:
        yield Finding(
            "warning",
            "opening-shortened",
            f"messages[{opening}]",
            "the opening request was too long to stay whole.",
            "Use a larger window, or protect it to be told instead.",
        )
    if lost:
        # Files can be read again and names looked up; what was decided stands nowhere else.
        grave = any(one.endswith(_GRAVE) for one in lost)
        yield Finding(
            "warning" if grave else "info",
            "facts-left-out",
            "summary",
            f"no room for {', '.join(lost)}.",
            "They are in the history; raise summary_share to keep more.",
        )


def over_budget(draft: Draft, limits: Bounds, summary: int) -> BudgetExceeded:
    """Return the error that names what holds the tokens of a draft that does not fit."""
    parts = draft.parts
    standing = set(compaction_steps.kept_positions(draft))
    shares = [
        ("system prompt and tool schemas", draft.overhead),
        _share(draft, "protected", parts.protected & standing),
        _share(draft, "opening request", {parts.opening} & standing - parts.protected),
        _share(
            draft, "newest message of the user", {parts.newest} & standing - parts.protected - {parts.opening}
        ),
        ("summary", summary),
    ]
    named = {parts.opening, parts.newest} | parts.protected
    shares.append(_share(draft, "calls and texts that stay", standing - named))
    total = compaction_steps.used_tokens(draft) + summary
    told = ", ".join(f"{what} {tokens}" for what, tokens in shares if tokens)
    return BudgetExceeded(
        f"{total} tokens must stay and {limits.limit} of a window of {limits.window} may be used ({told}).",
        fix="Reduce the protected content, shorten the messages named, or use a model with a larger window.",
        where="conversation",
    )


def _share(draft: Draft, what: str, positions: Iterable[int]) -> tuple[str, int]:
    found = sorted(positions, key=lambda at: (-draft.tokens[at], at))
    places = ", ".join(f"messages[{at}]" for at in found[:NAMED])
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return f"{what} ({places}{more})", sum(draft.tokens[at] for at in found)


# Room that the smallest summary gets beyond its frame: a goal and a few names. In a small window a share of the goal.
LEAST_SUMMARY = 80
LEAST_SUMMARY_SHARE = 0.05
# A summary that is longer than half of what it stands for is none, unless goals and constraints alone are.
SUMMARY_OF_REMOVED = 0.5
# Of the limit a summary may have so much before it says less, if there is so much to say: what is held is shortened and
# its keep counts are lowered for it. With less the real sessions of 100k tokens and more lose decisions and files.
FAIR_SHARE = 0.15
# Of the limit the newest results keep so much while anything else can give way.
NEWEST_SHARE = 0.25
# Each round knows better what the facts need; goals and constraints seldom grow by a second one.
_ROUNDS = 3


class FitResult(NamedTuple):
    """What the ladder came to; see `Plan` for the fields of the same names."""

    effective: Policy
    kept: tuple[int, ...]
    changed: dict[int, Message]
    tokens: int
    """Of all that is sent, with a summary without prose."""
    place: int
    version: int
    facts: Facts
    prose_tokens: int
    carried: str
    folded: bool
    """Whether dropping explorations was enough, so that a model need not be asked."""
    task: SummaryTask | None
    protected: tuple[int, ...]
    required: tuple[int, ...]
    why: Kept
    findings: tuple[Finding, ...]
    cuts: tuple[Cut, ...]
    steps: tuple[str, ...]


class _Climb(NamedTuple):
    """One climb: what is given, the draft, and what earlier summaries hand on."""

    policy: Policy
    limits: Bounds
    draft: Draft
    before: PreviousSummary
    wire: ProviderFormat
    bare: int
    """Tokens of a summary that says nothing."""

    @property
    def frame(self) -> int:
        """Return the least that a new summary costs."""
        return self.bare + min(LEAST_SUMMARY, int(LEAST_SUMMARY_SHARE * self.limits.goal))

    @property
    def fair(self) -> int:
        """Return what a summary may have before it says less than there is to say."""
        return min(int(FAIR_SHARE * self.limits.limit), int(self.policy.summary_share * self.limits.goal))

    @property
    def has_prose(self) -> bool:
        """Return whether the policy wants prose beside the facts."""
        return not {"summarise", "select"}.isdisjoint(self.policy.steps)

    @property
    def removes(self) -> bool:
        """Return whether the policy removes what no keep count holds."""
        return self.has_prose or "reduce" in self.policy.steps


class _Summed(NamedTuple):
    """What the summary gets: its facts, and tokens for prose beside them."""

    whole: Facts
    """All that there are."""
    facts: Facts
    """Those that there is room for."""
    lost: list[str]
    tokens: int
    """Of its message without prose."""
    prose: int
    removed: list[int]

    @property
    def room(self) -> int:
        """Return the most tokens that it may come to."""
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
) -> FitResult:
    """Return what the ladder makes of `messages`.

    Raises:
        BudgetExceeded: what must stay does not fit.
    """
    wire: ProviderFormat = messages[0].format if messages else "plain"
    everything = [True] * len(parts.groups)
    draft = Draft(messages, parts, count, pointer, overhead, tokens, list(tokens), {}, everything, {}, [])
    before = previous_summary(messages, (parts.groups[at].members[0] for at in parts.summaries))
    bare = fit_summary(Facts(), before.version + 1, wire, count=count, most=1).tokens
    climb = _Climb(policy, limits, draft, before, wire, bare)
    held = compaction_steps.held_groups(parts, recent=policy.keep_recent_turns, pairs=policy.keep_tool_pairs)
    loose = compaction_steps.loose_groups(parts, held)
    if not climb.removes or not compaction_steps.cannot_reach(draft, policy, loose, goal=limits.goal):
        compaction_steps.shorten_groups(draft, policy.steps, loose, goal=limits.goal)
    if _within(climb, limits.goal, 0) and len(parts.summaries) <= 1:
        return _done(climb, policy, None, folded=False)
    if "fold_exploration" in policy.steps and compaction_steps.fold_exploration(
        draft, loose, goal=limits.goal - climb.frame
    ):
        _drop_summaries(draft)
        summed = _folded(climb, loose)
        if summed:
            return _done(climb, policy, summed, folded=True)
    return _removed(climb, loose)


def _within(climb: _Climb, most: int, more: int) -> bool:
    """Tell whether the draft, and `more` tokens of one more message, are at most `most`, and few enough messages."""
    standing = sum(1 for _ in compaction_steps.kept_positions(climb.draft)) + (more > 0)
    few = not climb.limits.most_messages or standing <= climb.limits.most_messages
    return few and compaction_steps.used_tokens(climb.draft) + more <= most


def _folded(climb: _Climb, loose: Sequence[int]) -> _Summed | None:
    """Return what the summary of what was folded gets; None where it would say less than its fair share.

    More is folded where the summary needs the room.
    """
    summed = _summed(climb, climb.frame, {})
    more = _wanted(climb, summed)
    if more > summed.room and compaction_steps.fold_exploration(
        climb.draft, loose, goal=climb.limits.goal - more
    ):
        summed = _summed(climb, more, {})
    fits = _within(climb, climb.limits.ceiling, summed.tokens)
    return summed if fits and _wanted(climb, summed) <= summed.room else None


def _drop_summaries(draft: Draft) -> None:
    for at in draft.parts.summaries:
        draft.kept[at] = False


def _removed(climb: _Climb, loose: Sequence[int]) -> FitResult:
    """Return what is left when the oldest that is loose is gone, and more where that must be."""
    draft, limits = climb.draft, climb.limits
    need, known = climb.frame, dict[tuple[int, ...], Facts]()
    for _ in range(_ROUNDS):
        draft.steps.clear()
        effective = _lowered(climb, loose, need)
        summed = _summed(climb, need, known)
        if not summed.removed and len(draft.parts.summaries) <= 1 and _as_it_was(climb):
            return _done(climb, effective, None, folded=False)
        more = _wanted(climb, summed)
        if more <= max(need, summed.room) and _within(climb, limits.ceiling, summed.tokens):
            break
        need = max(need, more)
    if not summed.removed and not draft.parts.summaries:
        # Nothing went, so nothing stands for it.
        summed = summed._replace(tokens=0, prose=0)
    if "reduce" in climb.policy.steps:
        summed = _pressed(climb, summed)
    if summed.tokens and compaction_steps.used_tokens(draft) + summed.tokens > limits.limit:
        summed = _squeezed(climb, summed)
    return _done(climb, effective, summed if summed.tokens else None, folded=False)


def _wanted(climb: _Climb, summed: _Summed) -> int:
    """Return the tokens that the summary should have: its fair share, where it would say less with fewer."""
    if not summed.lost or summed.room >= climb.fair:
        return summed.tokens
    share = FACTS_SHARE if climb.has_prose else 1.0
    whole = climb.draft.count(rendered(Summary(climb.before.version + 1, summed.whole, "")))
    return max(summed.tokens, min(climb.fair, int(whole / share) + climb.bare))


def _as_it_was(climb: _Climb) -> bool:
    """Put the earlier summary back where nothing else was removed; tell whether that stays below the ceiling."""
    for at in climb.draft.parts.summaries:
        climb.draft.kept[at] = True
    if _within(climb, climb.limits.ceiling, 0):
        return True
    _drop_summaries(climb.draft)
    return False


def _lowered(climb: _Climb, loose: Sequence[int], need: int) -> Policy:
    """Drop what no keep count holds, with the counts lowered as far as a summary of `need` tokens asks for it."""
    draft, policy, limits = climb.draft, climb.policy, climb.limits
    most, fewer = limits.roomy - need, max(0, limits.most_messages - 1)
    counts = (policy.keep_recent_turns, policy.keep_tool_pairs)
    if climb.removes:
        draft.kept[:] = compaction_steps.held_groups(draft.parts, recent=counts[0], pairs=counts[1])
    if "reduce" in policy.steps:
        share = int(NEWEST_SHARE * limits.limit)
        compaction_steps.shorten_kept_results(
            draft, policy.steps, most=limits.goal - need, limit=limits.limit - need, share=share
        )
        counts = compaction_steps.lower_keep_counts(draft, policy, most=most, most_messages=fewer)
        compaction_steps.drop_remarks(draft, most=most, most_messages=fewer)
    _drop_summaries(draft)
    if climb.removes:
        room = max(need, min(int(policy.summary_share * limits.goal), _worth(climb, loose)))
        aim = int(limits.most_messages * policy.target / policy.trigger)
        keep_older(draft, policy, loose, goal=limits.goal, room=room, least=need, most_messages=aim)
    drop_misplaced(draft, loose)
    return policy._replace(keep_recent_turns=counts[0], keep_tool_pairs=counts[1])


def _worth(climb: _Climb, gone: Sequence[int]) -> int:
    """Return the most tokens that a summary of these groups is worth, beside what earlier ones hand on."""
    parts, given = climb.draft.parts, climb.draft.given
    said = sum(
        given[at] for group in gone if group not in parts.summaries for at in parts.groups[group].members
    )
    return int(SUMMARY_OF_REMOVED * said) + sum(given[parts.groups[at].members[0]] for at in parts.summaries)


def _summed(climb: _Climb, need: int, known: dict[tuple[int, ...], Facts]) -> _Summed:
    """Return what the summary of the draft gets, at least `need` tokens; `known` holds the facts of what is removed."""
    draft, limits = climb.draft, climb.limits
    gone = [at for at, is_kept in enumerate(draft.kept) if not is_kept]
    removed = sorted(
        member for at in gone if at not in draft.parts.summaries for member in draft.parts.groups[at].members
    )
    key = tuple(removed)
    if key not in known:
        known[key] = facts_of_removed(draft.messages, removed, climb.before, draft.pointer)
    held = compaction_steps.used_tokens(draft)
    aim = min(
        limits.goal - held,
        int(climb.policy.summary_share * limits.goal),
        _worth(climb, gone),
        limits.ceiling - held,
    )
    return _fitted(climb, removed, known[key], max(need, aim))


def _fitted(climb: _Climb, removed: list[int], facts: Facts, most: int) -> _Summed:
    share = FACTS_SHARE if climb.has_prose else 1.0
    found = _sized(climb, facts, int(most * share))
    prose = most - found.tokens if climb.has_prose or climb.before.prose else 0
    return _Summed(facts, found.facts, found.lost, found.tokens, max(0, prose), removed)


def _sized(climb: _Climb, facts: Facts, most: int) -> FittedSummary:
    return fit_summary(facts, climb.before.version + 1, climb.wire, count=climb.draft.count, most=most)


def _pressed(climb: _Climb, summed: _Summed) -> _Summed:
    """Shorten what stays: the older of it to stay below the ceiling, the newest and the opening only to fit at all."""
    draft, limits = climb.draft, climb.limits
    kept = [at for at, is_kept in enumerate(draft.kept) if is_kept]
    newest = {at for at in kept if draft.parts.pair[at] == 0}.union(kept[-1:])
    compaction_steps.shorten_harder(
        draft, [at for at in kept if at not in newest], most=limits.roomy - summed.tokens
    )
    compaction_steps.shorten_harder(draft, kept, most=limits.limit - summed.tokens)
    if not compaction_steps.shorten_opening(draft, most=limits.limit - summed.tokens) or not summed.tokens:
        return summed
    facts = with_facts_of_cut(summed.whole, draft.messages, draft.parts.opening)
    return _fitted(climb, summed.removed, facts, summed.room)


def _squeezed(climb: _Climb, summed: _Summed) -> _Summed:
    """Give the summary only what the limit leaves, at last nothing but its frame.

    Raises:
        BudgetExceeded: that is too much.
    """
    left = climb.limits.limit - compaction_steps.used_tokens(climb.draft)
    if climb.bare > left:
        raise over_budget(climb.draft, climb.limits, climb.bare)
    found = _sized(climb, summed.whole, left)
    goals, constraints, lost = len(found.facts.goals), len(found.facts.constraints), found.lost
    while found.tokens > left:
        found = _sized(climb, _half(found.facts), left)
    lost += [
        pluralize(before - len(after), what)
        for what, before, after in (
            ("goals", goals, found.facts.goals),
            ("constraints", constraints, found.facts.constraints),
        )
        if before > len(after)
    ]
    return summed._replace(facts=found.facts, lost=lost, tokens=found.tokens, prose=0)


def _half(facts: Facts) -> Facts:
    """Return the facts with the newer half of the constraints, and with the opening half of the goals; the pointer goes with the last."""
    goals, constraints = (
        facts.goals[: len(facts.goals) // 2],
        facts.constraints[(len(facts.constraints) + 1) // 2 :],
    )
    return Facts(goals, constraints=constraints, lookups=facts.lookups if goals or constraints else ())


def _done(climb: _Climb, effective: Policy, summed: _Summed | None, *, folded: bool) -> FitResult:
    """Return the climb as it ended.

    Raises:
        BudgetExceeded: it ended over the limit, which a policy with few steps can.
    """
    draft, policy, parts = climb.draft, climb.policy, climb.draft.parts
    tokens = compaction_steps.used_tokens(draft) + (summed.tokens if summed else 0)
    if tokens > climb.limits.limit:
        raise over_budget(draft, climb.limits, summed.tokens if summed else 0)
    if summed:
        # What was shortened since may have left the prose less room.
        summed = summed._replace(prose=max(0, min(summed.prose, climb.limits.ceiling - tokens)))
    kept = tuple(sorted(compaction_steps.kept_positions(draft)))
    still = set(kept)
    version = climb.before.version + 1 if summed else 0
    return FitResult(
        effective=effective,
        kept=kept,
        changed={at: message for at, message in draft.now.items() if at in still},
        tokens=tokens,
        place=_place(draft, summed.removed) if summed else -1,
        version=version,
        facts=summed.facts if summed else Facts(),
        prose_tokens=summed.prose if summed else 0,
        carried=climb.before.prose,
        folded=folded,
        task=_task(climb, version, summed) if summed and climb.has_prose else None,
        protected=tuple(sorted(parts.protected)),
        required=tuple(sorted({at for at in (parts.opening, parts.newest) if at >= 0})),
        why=kept_by_reason(draft, policy),
        findings=tuple(
            fit_findings(
                draft,
                summed.lost if summed else (),
                stalled=0 if _within(climb, climb.limits.ceiling, summed.tokens if summed else 0) else tokens,
            )
        ),
        cuts=tuple(cut for (at, _), cut in sorted(draft.cuts.items()) if at in still),
        steps=steps_taken(draft, policy, folded=folded),
    )


def _task(climb: _Climb, version: int, summed: _Summed) -> SummaryTask:
    said = removed_texts(climb.draft.messages, summed.removed)
    return SummaryTask(climb.policy.strategy, version, said, climb.before.prose, summed.facts, summed.prose)


def _place(draft: Draft, removed: Sequence[int]) -> int:
    """Return the position before which the summary stands: after what opens and is protected, within no group.

    The newest message of the user and what follows it come after the summary, also where they are protected.
    """
    parts = draft.parts
    groups = [group for at, group in enumerate(parts.groups) if draft.kept[at]]
    loose = (
        group.members[0]
        for group in groups
        if parts.opening not in group.members and parts.protected.isdisjoint(group.members)
    )
    first = removed[0] if removed else 0
    after = (at for at in sorted(compaction_steps.kept_positions(draft)) if at > first)
    place = next(loose, next(after, len(draft.messages)))
    if parts.newest > parts.opening:
        place = min(place, parts.newest)
    for group in reversed(groups):
        if group.members[0] < place <= group.members[-1]:
            place = group.members[0]
    return place

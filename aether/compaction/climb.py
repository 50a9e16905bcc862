"""The climb: which rungs of the ladder one conversation needs, one after the other, until it fits.

Cheap steps first, and only as far as the goal; if they are enough, nothing is removed. Else the oldest of what no
keep count holds goes, and a summary of it comes in. Where what is held leaves too little room, results among it are
shortened, then the keep counts are lowered, then the rest of it is shortened; the summary has its share throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from aether.compaction import ladder, report
from aether.compaction.bounds import Bounds
from aether.compaction.carry import FACTS_SHARE, Carried, Sized, carried, gathered, sized, told, with_cut
from aether.compaction.ladder import Draft
from aether.compaction.middle import keep_middle, settle
from aether.compaction.partition import Parts
from aether.compaction.shapes import Cut, Facts, Kept, Policy, Summary, SummaryTask
from aether.compaction.summary import rendered
from aether.messages.message import Message, Wire
from aether.shapes import Counter, Finding
from aether.text.words import counted

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


class Climbed(NamedTuple):
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
    before: Carried
    wire: Wire
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


def climbed(
    messages: Sequence[Message],
    parts: Parts,
    policy: Policy,
    count: Counter,
    *,
    limits: Bounds,
    overhead: int,
    tokens: Sequence[int],
    pointer: Callable[[int], str],
) -> Climbed:
    """Return what the ladder makes of `messages`.

    Raises:
        BudgetExceeded: what must stay does not fit.
    """
    wire: Wire = messages[0].wire if messages else "plain"
    everything = [True] * len(parts.groups)
    draft = Draft(messages, parts, count, pointer, overhead, tokens, list(tokens), {}, everything, {}, [])
    before = carried(messages, (parts.groups[at].members[0] for at in parts.summaries))
    bare = sized(Facts(), before.version + 1, wire, count=count, most=1).tokens
    climb = _Climb(policy, limits, draft, before, wire, bare)
    held = ladder.holds(parts, recent=policy.keep_recent_turns, pairs=policy.keep_tool_pairs)
    loose = ladder.rest(parts, held)
    if not climb.removes or not ladder.hopeless(draft, policy, loose, goal=limits.goal):
        ladder.lighten(draft, policy.steps, loose, goal=limits.goal)
    if _within(climb, limits.goal, 0) and len(parts.summaries) <= 1:
        return _done(climb, policy, None, folded=False)
    if "fold_exploration" in policy.steps and ladder.fold(draft, loose, goal=limits.goal - climb.frame):
        _drop_summaries(draft)
        summed = _folded(climb, loose)
        if summed:
            return _done(climb, policy, summed, folded=True)
    return _removed(climb, loose)


def _within(climb: _Climb, most: int, more: int) -> bool:
    """Tell whether the draft, and `more` tokens of one more message, are at most `most`, and few enough messages."""
    standing = sum(1 for _ in ladder.standing(climb.draft)) + (more > 0)
    few = not climb.limits.most_messages or standing <= climb.limits.most_messages
    return few and ladder.used(climb.draft) + more <= most


def _folded(climb: _Climb, loose: Sequence[int]) -> _Summed | None:
    """Return what the summary of what was folded gets; None where it would say less than its fair share.

    More is folded where the summary needs the room.
    """
    summed = _summed(climb, climb.frame, {})
    more = _wanted(climb, summed)
    if more > summed.room and ladder.fold(climb.draft, loose, goal=climb.limits.goal - more):
        summed = _summed(climb, more, {})
    fits = _within(climb, climb.limits.ceiling, summed.tokens)
    return summed if fits and _wanted(climb, summed) <= summed.room else None


def _drop_summaries(draft: Draft) -> None:
    for at in draft.parts.summaries:
        draft.kept[at] = False


def _removed(climb: _Climb, loose: Sequence[int]) -> Climbed:
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
    if summed.tokens and ladder.used(draft) + summed.tokens > limits.limit:
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
        draft.kept[:] = ladder.holds(draft.parts, recent=counts[0], pairs=counts[1])
    if "reduce" in policy.steps:
        share = int(NEWEST_SHARE * limits.limit)
        ladder.lean(draft, policy.steps, most=limits.goal - need, limit=limits.limit - need, share=share)
        counts = ladder.reduce(draft, policy, most=most, most_messages=fewer)
        ladder.release(draft, most=most, most_messages=fewer)
    _drop_summaries(draft)
    if climb.removes:
        room = max(need, min(int(policy.summary_share * limits.goal), _worth(climb, loose)))
        aim = int(limits.most_messages * policy.target / policy.trigger)
        keep_middle(draft, policy, loose, goal=limits.goal, room=room, least=need, most_messages=aim)
    settle(draft, loose)
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
        known[key] = gathered(draft.messages, removed, climb.before, draft.pointer)
    held = ladder.used(draft)
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


def _sized(climb: _Climb, facts: Facts, most: int) -> Sized:
    return sized(facts, climb.before.version + 1, climb.wire, count=climb.draft.count, most=most)


def _pressed(climb: _Climb, summed: _Summed) -> _Summed:
    """Shorten what stays: the older of it to stay below the ceiling, the newest and the opening only to fit at all."""
    draft, limits = climb.draft, climb.limits
    kept = [at for at, is_kept in enumerate(draft.kept) if is_kept]
    newest = {at for at in kept if draft.parts.pair[at] == 0}.union(kept[-1:])
    ladder.harder(draft, [at for at in kept if at not in newest], most=limits.roomy - summed.tokens)
    ladder.harder(draft, kept, most=limits.limit - summed.tokens)
    if not ladder.shorten_opening(draft, most=limits.limit - summed.tokens) or not summed.tokens:
        return summed
    facts = with_cut(summed.whole, draft.messages, draft.parts.opening)
    return _fitted(climb, summed.removed, facts, summed.room)


def _squeezed(climb: _Climb, summed: _Summed) -> _Summed:
    """Give the summary only what the limit leaves, at last nothing but its frame.

    Raises:
        BudgetExceeded: that is too much.
    """
    left = climb.limits.limit - ladder.used(climb.draft)
    if climb.bare > left:
        raise report.refused(climb.draft, climb.limits, climb.bare)
    found = _sized(climb, summed.whole, left)
    goals, constraints, lost = len(found.facts.goals), len(found.facts.constraints), found.lost
    while found.tokens > left:
        found = _sized(climb, _half(found.facts), left)
    lost += [
        counted(before - len(after), what)
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


def _done(climb: _Climb, effective: Policy, summed: _Summed | None, *, folded: bool) -> Climbed:
    """Return the climb as it ended.

    Raises:
        BudgetExceeded: it ended over the limit, which a policy with few steps can.
    """
    draft, policy, parts = climb.draft, climb.policy, climb.draft.parts
    tokens = ladder.used(draft) + (summed.tokens if summed else 0)
    if tokens > climb.limits.limit:
        raise report.refused(draft, climb.limits, summed.tokens if summed else 0)
    if summed:
        # What was shortened since may have left the prose less room.
        summed = summed._replace(prose=max(0, min(summed.prose, climb.limits.ceiling - tokens)))
    kept = tuple(sorted(ladder.standing(draft)))
    still = set(kept)
    version = climb.before.version + 1 if summed else 0
    return Climbed(
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
        why=report.why(draft, policy),
        findings=tuple(
            report.findings(
                draft,
                summed.lost if summed else (),
                stalled=0 if _within(climb, climb.limits.ceiling, summed.tokens if summed else 0) else tokens,
            )
        ),
        cuts=tuple(cut for (at, _), cut in sorted(draft.cuts.items()) if at in still),
        steps=report.steps(draft, policy, folded=folded),
    )


def _task(climb: _Climb, version: int, summed: _Summed) -> SummaryTask:
    said = told(climb.draft.messages, summed.removed)
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
    after = (at for at in sorted(ladder.standing(draft)) if at > first)
    place = next(loose, next(after, len(draft.messages)))
    if parts.newest > parts.opening:
        place = min(place, parts.newest)
    for group in reversed(groups):
        if group.members[0] < place <= group.members[-1]:
            place = group.members[0]
    return place

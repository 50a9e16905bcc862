"""The middle: older messages that stay although no keep count holds them.

Requests and instructions of the user first, then what matters most, as the policy asks; then the newest of the
rest, as far as the goal leaves room, so that the oldest go and no more of them than must. What stays is whole
groups.
"""

from __future__ import annotations

from collections.abc import Sequence

from aether.compaction import ladder
from aether.compaction.explore import explores
from aether.compaction.ladder import Draft
from aether.compaction.select import LEAST_WEIGHT, importance, is_request
from aether.compaction.shapes import Policy
from aether.text.picking import weightiest


def keep_middle(
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
    left = most_messages - sum(1 for _ in ladder.standing(draft)) if most_messages else len(draft.messages)
    newest = [at for at in reversed(open_to) if not draft.kept[at]]
    _fill(draft, policy, newest, most=goal - ladder.used(draft) - room, most_messages=left, goal=goal)


def _weighed(
    draft: Draft, policy: Policy, open_to: Sequence[int], *, goal: int, room: int, least: int
) -> None:
    """Keep what the user asked for and what matters most, as far as the policy wants it."""
    parts = draft.parts
    chosen: set[int] = set()
    if policy.keep_requests:
        asked = [at for at in open_to if parts.groups[at].kind == "user" and _requests(draft, at)]
        costs = ((at, 1.0, ladder.tokens_of(draft, at)) for at in asked)
        chosen = weightiest(costs, most=goal - ladder.used(draft) - least)
    taken = sum(ladder.tokens_of(draft, at) for at in chosen)
    left = min(int(policy.keep_middle * goal), goal - ladder.used(draft) - taken - room)
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
        ladder.restore(draft, at)
        ladder.lighten_group(draft, thoughts, at, goal=goal)
        if ladder.tokens_of(draft, at) > most or explores(draft.messages, draft.parts.groups[at]):
            ladder.lighten_group(draft, policy.steps, at, goal=goal)
        cost = ladder.tokens_of(draft, at)
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
        if not explores(draft.messages, group):
            members = [draft.messages[member] for member in group.members]
            newness = order / len(groups)
            weight = importance(members, newness=newness)
            if weight >= LEAST_WEIGHT:
                costs.append((at, weight, ladder.tokens_of(draft, at)))
    return weightiest(costs, most=most)


def settle(draft: Draft, loose: Sequence[int]) -> None:
    """Drop what could not stand where it would: Gemini takes a call only after the user, or after results.

    Of a text and the calls that would follow it the text goes where nothing but its weight kept it, else the calls.
    """
    if not draft.messages or draft.messages[0].wire != "gemini":
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

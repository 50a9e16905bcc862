"""The middle: older messages that stay although no keep count holds them.

Requests and instructions of the user first, then what matters most, in what room is left. What stays is whole
groups.
"""

from __future__ import annotations

from collections.abc import Sequence

from aether.compaction import ladder
from aether.compaction.explore import explores
from aether.compaction.ladder import Draft
from aether.compaction.select import LEAST_WEIGHT, fitting, importance, is_request
from aether.compaction.shapes import Policy


def keep_middle(
    draft: Draft, policy: Policy, loose: Sequence[int], *, goal: int, room: int, least: int
) -> None:
    """Keep of the loose groups what the policy asks for and the goal leaves beside a summary of `room` tokens.

    Requests may leave the summary as little as `least`.
    """
    parts = draft.parts
    open_to = [at for at in loose if not draft.kept[at] and at not in parts.orphans]
    chosen: set[int] = set()
    if policy.keep_requests:
        asked = [at for at in open_to if parts.groups[at].kind == "user" and _requests(draft, at)]
        costs = ((at, 1.0, ladder.tokens_of(draft, at)) for at in asked)
        chosen = fitting(costs, most=goal - ladder.used(draft) - least)
    taken = sum(ladder.tokens_of(draft, at) for at in chosen)
    left = min(int(policy.keep_middle * goal), goal - ladder.used(draft) - taken - room)
    if left > 0:
        chosen |= _weightiest(draft, [at for at in open_to if at not in chosen], most=left)
    for at in chosen:
        draft.kept[at] = True
    if chosen:
        draft.steps.append(f"select: {len(chosen)} older groups kept")


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
    return fitting(costs, most=most)


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

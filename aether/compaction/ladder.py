"""The ladder: what is done to a conversation so that it fits, the cheapest and the oldest first.

A rung changes the draft and nothing else, does no more than is needed, and never touches what is protected.
The messages themselves are never changed: a draft holds the new ones beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from aether.compaction.explore import explores, runs
from aether.compaction.partition import Parts
from aether.compaction.shapes import Cut, Policy, Step
from aether.compaction.shorten import MARKER_TOKENS, Shortened, shortened, thoughtless
from aether.messages.formats import without_reasoning
from aether.messages.message import BlockKind, Message
from aether.shapes import Counter

# Tokens: an answer of up to so many is left alone, a longer one keeps so many. A screen of text says what it was.
SHORTEN_FROM = 400
SHORT = 200
# In a small window a screen is too much: this share of the goal.
SHORT_SHARE = 1 / 16
# When nothing else helps, what stays is shortened in these steps; the last one is little more than the marker.
HARDER = (SHORT, 64, MARKER_TOKENS + 8)


class Draft(NamedTuple):
    """A compaction in the making. The lists change, the rest does not."""

    messages: Sequence[Message]
    parts: Parts
    count: Counter
    pointer: Callable[[int], str]
    overhead: int
    given: Sequence[int]
    """By position, the tokens of the message as it was given."""
    tokens: list[int]
    """By position, of the message as it would be now."""
    now: dict[int, Message]
    """The messages that were changed, by position."""
    kept: list[bool]
    """By group."""
    cuts: dict[tuple[int, int], Cut]
    steps: list[str]
    """What was kept and lowered, in words; what was shortened is seen in the messages."""


def used(draft: Draft) -> int:
    """Return the tokens of all that is kept, without a new summary."""
    return draft.overhead + sum(draft.tokens[at] for at in standing(draft))


def standing(draft: Draft) -> Iterator[int]:
    """Yield the positions that are kept, group by group."""
    for at, group in enumerate(draft.parts.groups):
        if draft.kept[at]:
            yield from group.members


def tokens_of(draft: Draft, group: int) -> int:
    """Return the tokens of one group as it would be now."""
    return sum(draft.tokens[at] for at in draft.parts.groups[group].members)


def holds(parts: Parts, *, recent: int, pairs: int) -> list[bool]:
    """Return by group whether these keep counts, or a pin, hold it."""
    summaries = frozenset(parts.summaries)
    return [
        at in parts.pinned
        or (
            at not in summaries
            and at not in parts.orphans
            and (parts.turn[at] < recent if parts.pair[at] < 0 else parts.pair[at] < pairs)
        )
        for at in range(len(parts.groups))
    ]


def rest(parts: Parts, held: Sequence[bool]) -> list[int]:
    """Return the groups that nothing holds, summaries aside, oldest first."""
    summaries = frozenset(parts.summaries)
    return [at for at in range(len(parts.groups)) if not held[at] and at not in summaries]


def hopeless(draft: Draft, policy: Policy, groups: Sequence[int], *, goal: int) -> bool:
    """Tell whether the cheap steps in these groups could not reach the goal even at their best.

    Then they are not taken, unless what they shorten may stay; what is removed need not be shortened first.
    """
    if policy.keep_middle or policy.keep_requests:
        return False
    folds = _explorations(draft, groups) if "fold_exploration" in policy.steps else []
    drops = {at for run in folds for at in run}
    most = sum(tokens_of(draft, at) for at in drops)
    for at in groups:
        for member in draft.parts.groups[at].members if at not in drops else ():
            most += max(0, draft.tokens[member] - _short(goal))
    return used(draft) - most > goal


def _short(goal: int) -> int:
    return max(HARDER[-1], min(SHORT, int(goal * SHORT_SHARE)))


def lighten(draft: Draft, steps: Iterable[Step], groups: Sequence[int], *, goal: int) -> None:
    """Take the cheap steps, in the order of the policy, in these groups, until the goal is reached."""
    short = _short(goal)
    for step in steps:
        excess = used(draft) - goal
        if excess <= 0 or step not in _CHEAP:
            continue
        for group in groups:
            if excess > 0:
                excess -= _lightened(draft, step, group, short, excess)


def lighten_group(draft: Draft, steps: Iterable[Step], group: int, *, goal: int) -> None:
    """Take the cheap steps in one group, however much it brings."""
    for step in steps:
        if step in _CHEAP:
            _lightened(draft, step, group, _short(goal), tokens_of(draft, group))


def _lightened(draft: Draft, step: str, group: int, short: int, excess: int) -> int:
    saved = 0
    for at in draft.parts.groups[group].members:
        if saved < excess and at not in draft.parts.protected:
            saved += _taken(draft, at, _lighter(draft, step, group, at, short))
    return saved


def restore(draft: Draft, group: int) -> None:
    """Put the messages of one group back as they were given."""
    for at in draft.parts.groups[group].members:
        draft.tokens[at] = draft.given[at]
        changed = draft.now.pop(at, draft.messages[at])
        for block in range(len(changed.blocks)):
            draft.cuts.pop((at, block), None)


def lean(draft: Draft, steps: Iterable[Step], *, most: int, limit: int, share: int) -> None:
    """Shorten the results of calls that are kept, oldest first, until at most `most` tokens are left.

    The model works on the newest: they are shortened last, only to come below `limit`, and keep `share` tokens.
    """
    if "shorten_results" not in steps:
        return
    rank = draft.parts.pair
    kept = [at for at, is_kept in enumerate(draft.kept) if is_kept and rank[at] >= 0]
    lighten(draft, ("shorten_results",), [at for at in kept if rank[at] > 0], goal=most)
    excess = used(draft) - limit
    for group in kept:
        results = draft.parts.groups[group].members
        for at in results if rank[group] == 0 else ():
            if excess > 0 and at not in draft.parts.protected:
                size = max(share // len(results), draft.tokens[at] - excess - MARKER_TOKENS)
                message = draft.now.get(at, draft.messages[at])
                lighter = shortened(
                    message, ("result",), at=at, most=size, count=draft.count, pointer=draft.pointer(at)
                )
                excess -= _taken(draft, at, lighter)


_CHEAP: dict[str, tuple[BlockKind, ...]] = {
    "drop_reasoning": (), "shorten_results": ("result",), "shorten_arguments": ("call",),
}  # fmt: skip


def _lighter(draft: Draft, step: str, group: int, at: int, short: int) -> Shortened | None:
    message = draft.now.get(at, draft.messages[at])
    if step == "drop_reasoning":
        # What is thought in the turn that goes on belongs to calls the model still works on.
        return thoughtless(message, draft.count) if draft.parts.turn[group] > 0 else None
    if draft.tokens[at] <= SHORTEN_FROM * short // SHORT:
        return None
    if step == "shorten_arguments" and any(block.kind == "reasoning" for block in message.blocks):
        # Reasoning is signed for what it led to: what is rewritten loses it, and what goes on is not rewritten.
        if draft.parts.turn[group] == 0:
            return None
        message = without_reasoning(message)
    return shortened(message, _CHEAP[step], at=at, most=short, count=draft.count, pointer=draft.pointer(at))


def _taken(draft: Draft, at: int, lighter: Shortened | None) -> int:
    """Put a lighter message in its place; return the tokens that brought, 0 where it brings none."""
    if lighter is None or lighter.tokens >= draft.tokens[at]:
        return 0
    saved = draft.tokens[at] - lighter.tokens
    draft.tokens[at] = lighter.tokens
    draft.now[at] = lighter.message
    for cut in lighter.cuts:
        first = draft.cuts.get((at, cut.block), cut)
        draft.cuts[at, cut.block] = cut._replace(tokens_before=first.tokens_before)
    return saved


def fold(draft: Draft, groups: Sequence[int], *, goal: int) -> bool:
    """Drop runs of exploration among these groups, oldest first; tell whether that reaches the goal."""
    excess = used(draft) - goal
    for run in _explorations(draft, groups):
        for at in run if excess > 0 else ():
            if draft.kept[at]:
                draft.kept[at] = False
                excess -= tokens_of(draft, at)
    return excess <= 0


def _explorations(draft: Draft, groups: Sequence[int]) -> list[list[int]]:
    return list(runs((at, explores(draft.messages, draft.parts.groups[at])) for at in groups))


def reduce(draft: Draft, policy: Policy, *, most: int, most_messages: int) -> tuple[int, int]:
    """Keep what the keep counts hold, lowered one at a time until that has at most so many tokens and messages.

    The turns are lowered first, then the tool pairs, in turns, down to one of each. Returns the counts.
    """
    parts = draft.parts
    held = holds(parts, recent=policy.keep_recent_turns, pairs=policy.keep_tool_pairs)
    draft.kept[:] = held
    tokens = used(draft)
    messages = sum(1 for _ in standing(draft))
    counts = [
        min(policy.keep_recent_turns, max(parts.turn, default=0) + 1),
        min(policy.keep_tool_pairs, max(1, max(parts.pair, default=0) + 1)),
    ]
    by_rank = [_by_rank(draft, parts.turn, calls=False), _by_rank(draft, parts.pair, calls=True)]
    which = 0
    before = list(counts)
    while (tokens > most or (most_messages and messages > most_messages)) and max(counts) > 1:
        if counts[which] > 1:
            counts[which] -= 1
            for at in by_rank[which].get(counts[which], ()):
                draft.kept[at] = False
                tokens -= tokens_of(draft, at)
                messages -= len(parts.groups[at].members)
        which = 1 - which
    if counts == before:
        return policy.keep_recent_turns, policy.keep_tool_pairs
    draft.steps.append(f"reduce: {counts[0]} turns and {counts[1]} tool calls kept")
    return counts[0], counts[1]


def _by_rank(draft: Draft, rank: Sequence[int], *, calls: bool) -> dict[int, list[int]]:
    """Return by rank the groups that a keep count holds and no pin does."""
    found: dict[int, list[int]] = {}
    for at, is_held in enumerate(draft.kept):
        if is_held and at not in draft.parts.pinned and (draft.parts.pair[at] >= 0) == calls:
            found.setdefault(rank[at], []).append(at)
    return found


def release(draft: Draft, *, most: int, most_messages: int) -> None:
    """Drop what is said between the calls of the newest turn, oldest first, until at most so much is left."""
    excess = used(draft) - most
    over = sum(1 for _ in standing(draft)) - most_messages if most_messages else 0
    before = excess
    for at, is_held in enumerate(draft.kept):
        if excess <= 0 and over <= 0:
            break
        if is_held and at not in draft.parts.pinned and draft.parts.pair[at] < 0:
            draft.kept[at] = False
            excess -= tokens_of(draft, at)
            over -= len(draft.parts.groups[at].members)
    if excess < before:
        draft.steps.append(f"reduce: {before - excess:,} tokens said between calls")


def harder(draft: Draft, groups: Sequence[int], *, most: int) -> None:
    """Shorten what stays in these groups, oldest first and ever harder, until at most `most` tokens are left."""
    excess = used(draft) - most
    for size in HARDER:
        for group in groups:
            for at in draft.parts.groups[group].members:
                if excess > 0 and draft.tokens[at] > size and at not in draft.parts.protected:
                    excess -= _taken(draft, at, _much_lighter(draft, group, at, size, excess))


def _much_lighter(draft: Draft, group: int, at: int, size: int, excess: int) -> Shortened | None:
    message = draft.now.get(at, draft.messages[at])
    kinds = _kinds(draft, at, message)
    lighter = thoughtless(message, draft.count) if draft.parts.turn[group] > 0 else None
    if lighter is not None or not kinds:
        return lighter
    alone = sum(block.kind in kinds for block in message.blocks) == 1
    most = max(size, draft.tokens[at] - excess - MARKER_TOKENS) if alone else size
    return shortened(message, kinds, at=at, most=most, count=draft.count, pointer=draft.pointer(at))


def _kinds(draft: Draft, at: int, message: Message) -> tuple[BlockKind, ...]:
    """Return what of a message may be shortened at the end: what a person says is not among it."""
    if at in (draft.parts.opening, draft.parts.newest):
        return ("result",)
    return ("result", "call", "text") if message.role == "assistant" else ("result",)


def shorten_opening(draft: Draft, *, most: int) -> bool:
    """Shorten the opening request, where it is neither protected nor the newest; tell whether that was needed."""
    at = draft.parts.opening
    excess = used(draft) - most
    if excess <= 0 or at < 0 or at == draft.parts.newest or at in draft.parts.protected:
        return False
    message = draft.now.get(at, draft.messages[at])
    saved = 0
    for size in (max(SHORT, draft.tokens[at] - excess - MARKER_TOKENS), *HARDER[1:]):
        if saved < excess:
            lighter = shortened(
                message, ("text",), at=at, most=size, count=draft.count, pointer=draft.pointer(at)
            )
            saved += _taken(draft, at, lighter)
    return saved > 0

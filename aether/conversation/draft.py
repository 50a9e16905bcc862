"""A draft: a compaction in progress, with the operations that shorten, keep and drop its messages.

An operation does no more than is needed, the oldest messages first, and never touches protected ones. The messages
themselves are never changed: a draft holds the new ones beside them. The order of the operations is decided in `fit`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from aether.conversation.partition import Parts
from aether.conversation.shapes import Cut, Policy, Step
from aether.conversation.steps import (
    MARKER_TOKENS,
    Shortened,
    drop_reasoning,
    exploration_runs,
    has_reasoning,
    only_explores,
    shorten_blocks,
)
from aether.messages.convert import without_reasoning
from aether.messages.model import BlockKind, Message
from aether.types import Counter

# Tokens: a longer result or argument is shortened to `SHORT`, about a screen of text.
SHORTEN_FROM = 400
SHORT = 200
# In a small window a screen is too much: this share of the goal.
SHORT_SHARE = 1 / 16
# Tokens per text when nothing else helps; the last size is little more than the note of the cut.
HARD_SIZES = (SHORT, 64, MARKER_TOKENS + 8)
_RESULTS: frozenset[BlockKind] = frozenset({"result"})
_TEXTS: frozenset[BlockKind] = frozenset({"text"})
_CHEAP: dict[Step, frozenset[BlockKind]] = {
    "drop_reasoning": frozenset(), "shorten_results": _RESULTS, "shorten_arguments": frozenset({"call"}),
}  # fmt: skip


class Draft(NamedTuple):
    """A compaction in progress. The lists and dicts change, the rest does not."""

    messages: Sequence[Message]
    parts: Parts
    count: Counter
    pointer: Callable[[int], str]
    overhead: int
    given: Sequence[int]
    """By position, the tokens of the message before the compaction."""
    tokens: list[int]
    """By position, the tokens of the message in the draft."""
    changed: dict[int, Message]
    """The messages that were changed, by position."""
    kept: list[bool]
    """By group."""
    cuts: dict[tuple[int, int], Cut]
    notes: list[str]
    """Groups kept and counts lowered, in words; shortening shows in the messages."""


def kept_positions(draft: Draft) -> list[int]:
    """Return the positions that are kept, group by group."""
    groups = zip(draft.parts.groups, draft.kept, strict=True)
    return [index for group, is_kept in groups if is_kept for index in group.members]


def used_tokens(draft: Draft) -> int:
    """Return the tokens of everything kept, without a new summary."""
    return draft.overhead + sum([draft.tokens[index] for index in kept_positions(draft)])


def group_tokens(draft: Draft, group: int) -> int:
    """Return the tokens of one group in the draft."""
    return sum(draft.tokens[index] for index in draft.parts.groups[group].members)


def held_groups(parts: Parts, *, recent: int, pairs: int) -> list[bool]:
    """Return by group whether these keep counts, or a pin, hold it."""
    droppable = parts.orphans.union(parts.summaries)
    return [
        index in parts.pinned
        or (
            index not in droppable
            and (parts.turn[index] < recent if parts.pair[index] < 0 else parts.pair[index] < pairs)
        )
        for index in range(len(parts.groups))
    ]


def short_size(goal: int) -> int:
    """Return the tokens to which the cheap steps shorten a text."""
    return max(HARD_SIZES[-1], min(SHORT, int(goal * SHORT_SHARE)))


def shorten_groups(
    draft: Draft, steps: Iterable[Step], groups: Sequence[int], *, goal: int, most: int
) -> None:
    """Take the cheap steps, in the order of the policy, in these groups, until at most `most` tokens are used."""
    short = short_size(goal)
    for step in steps:
        excess = used_tokens(draft) - most
        for group in groups if step in _CHEAP else ():
            if excess > 0:
                excess -= _shorten_group(draft, step, group, short=short, excess=excess)


def shorten_group(draft: Draft, steps: Iterable[Step], group: int, *, goal: int) -> None:
    """Take the cheap steps in one group, as far as they go."""
    for step in steps:
        if step in _CHEAP:
            _shorten_group(draft, step, group, short=short_size(goal), excess=group_tokens(draft, group))


def _shorten_group(draft: Draft, step: Step, group: int, *, short: int, excess: int) -> int:
    saved = 0
    least = -1 if step == "drop_reasoning" else SHORTEN_FROM * short // SHORT
    for index in draft.parts.groups[group].members:
        if draft.tokens[index] > least and saved < excess and index not in draft.parts.protected:
            saved += _shorten(draft, group, index, _CHEAP[step], most=short)
    return saved


def _shorten(draft: Draft, group: int, index: int, kinds: Collection[BlockKind], *, most: int) -> int:
    """Shorten one message, or without `kinds` drop its reasoning, and return the tokens that this saves.

    Reasoning is signed for its call, and the model still works on the calls of the current turn: there neither is changed.
    """
    message = draft.changed.get(index, draft.messages[index])
    is_current = draft.parts.turn[group] == 0
    shorter: Shortened | None
    if not kinds:
        shorter = None if is_current else drop_reasoning(message, draft.count)
    else:
        if "call" in kinds and has_reasoning(message):
            if is_current:
                kinds = [kind for kind in kinds if kind != "call"]
            else:
                message = without_reasoning(message)
        shorter = shorten_blocks(
            message, kinds, at=index, most=most, count=draft.count, pointer=draft.pointer(index)
        )
    if shorter is None or shorter.tokens >= draft.tokens[index]:
        return 0
    saved = draft.tokens[index] - shorter.tokens
    draft.tokens[index] = shorter.tokens
    draft.changed[index] = shorter.message
    for cut in shorter.cuts:
        first = draft.cuts.get((index, cut.block), cut)
        draft.cuts[index, cut.block] = cut._replace(tokens_before=first.tokens_before)
    return saved


def restore_group(draft: Draft, group: int) -> None:
    """Put the messages of one group back as they were given."""
    for index in draft.parts.groups[group].members:
        draft.tokens[index] = draft.given[index]
        changed = draft.changed.pop(index, draft.messages[index])
        for block in range(len(changed.blocks)):
            draft.cuts.pop((index, block), None)


def shorten_kept_results(draft: Draft, *, goal: int, most: int, limit: int, share: int) -> None:
    """Shorten the results of kept calls, oldest first, until at most `most` tokens are left.

    The model works on the newest results: they are shortened last, only to come below `limit`, and keep `share` tokens.
    """
    rank = draft.parts.pair
    groups = [index for index, is_kept in enumerate(draft.kept) if is_kept and rank[index] >= 0]
    shorten_groups(
        draft, ["shorten_results"], [index for index in groups if rank[index] > 0], goal=goal, most=most
    )
    excess = used_tokens(draft) - limit
    for group in (index for index in groups if rank[index] == 0):
        members = draft.parts.groups[group].members
        for index in members:
            if excess > 0 and index not in draft.parts.protected:
                size = max(share // len(members), draft.tokens[index] - excess - MARKER_TOKENS)
                excess -= _shorten(draft, group, index, _RESULTS, most=size)


def shorten_harder(draft: Draft, groups: Sequence[int], *, most: int) -> None:
    """Shorten messages of these groups, oldest first and ever shorter, until at most `most` tokens are left.

    Texts of a person are not shortened.
    """
    parts, excess = draft.parts, used_tokens(draft) - most
    for size in HARD_SIZES:
        for group in groups:
            for index in parts.groups[group].members:
                if excess <= 0:
                    return
                if draft.tokens[index] <= size or index in parts.protected:
                    continue
                excess -= _shorten(draft, group, index, (), most=0)
                message = draft.messages[index]
                is_free = message.role == "assistant" and index not in (parts.opening, parts.newest)
                kinds: tuple[BlockKind, ...] = ("result", "call", "text") if is_free else ("result",)
                is_single = sum(block.kind in kinds for block in message.blocks) == 1
                target = max(size, draft.tokens[index] - excess - MARKER_TOKENS) if is_single else size
                excess -= _shorten(draft, group, index, kinds, most=target) if excess > 0 else 0


def shorten_opening(draft: Draft, *, most: int) -> bool:
    """Shorten the opening request unless it is protected or the newest; return whether that was needed and possible."""
    index = draft.parts.opening
    excess = used_tokens(draft) - most
    if excess <= 0 or index < 0 or index == draft.parts.newest or index in draft.parts.protected:
        return False
    group = next(nth for nth, group in enumerate(draft.parts.groups) if index in group.members)
    saved = 0
    for size in (max(SHORT, draft.tokens[index] - excess - MARKER_TOKENS), *HARD_SIZES[1:]):
        if saved < excess:
            saved += _shorten(draft, group, index, _TEXTS, most=size)
    return saved > 0


def explorations(draft: Draft, groups: Sequence[int]) -> list[list[int]]:
    """Return the runs of exploration among these groups."""
    parts = draft.parts.groups
    return list(exploration_runs((index, only_explores(draft.messages, parts[index])) for index in groups))


def fold_exploration(draft: Draft, groups: Sequence[int], *, goal: int) -> bool:
    """Drop runs of exploration among these groups, oldest first; return whether that reaches the goal."""
    excess = used_tokens(draft) - goal
    for run in explorations(draft, groups):
        for index in run if excess > 0 else ():
            draft.kept[index] = False
            excess -= group_tokens(draft, index)
    return excess <= 0


def lower_keep_counts(draft: Draft, policy: Policy, *, most: int, most_messages: int) -> tuple[int, int]:
    """Keep the groups that the keep counts hold, lowered until at most so many tokens and messages are left.

    The counts are lowered by one, turns and tool pairs in alternation, down to one of each. Returns the counts.
    """
    parts = draft.parts
    turns = min(policy.keep_recent_turns, max(parts.turn, default=0) + 1)
    pairs = min(policy.keep_tool_pairs, max(1, max(parts.pair, default=0) + 1))
    first = (turns, pairs)
    draft.kept[:] = held_groups(parts, recent=turns, pairs=pairs)
    by_turn = True
    while max(turns, pairs) > 1 and not fits(draft, most, most_messages):
        if turns > 1 and (by_turn or pairs <= 1):
            turns -= 1
        else:
            pairs -= 1
        by_turn = not by_turn
        draft.kept[:] = held_groups(parts, recent=turns, pairs=pairs)
    if (turns, pairs) == first:
        return policy.keep_recent_turns, policy.keep_tool_pairs
    draft.notes.append(f"reduce: kept turns: {turns}, tool calls: {pairs}")
    return turns, pairs


def fits(draft: Draft, most: int, most_messages: int, *, summary: int = 0) -> bool:
    """Return whether the draft and a summary of so many tokens stay within `most` tokens and enough messages."""
    positions = kept_positions(draft)
    tokens = draft.overhead + sum([draft.tokens[index] for index in positions]) + summary
    return tokens <= most and (not most_messages or len(positions) + (summary > 0) <= most_messages)


def drop_unpinned(draft: Draft, *, most: int, most_messages: int = 0, calls: bool = False) -> bool:
    """Drop groups that nothing pins, oldest first, with `calls` those of the newest calls too; return whether any was."""
    saved, excess, surplus = 0, used_tokens(draft) - most, len(kept_positions(draft)) - most_messages
    for index, is_kept in enumerate(draft.kept):
        is_loose = is_kept and index not in draft.parts.pinned and (calls or draft.parts.pair[index] < 0)
        if is_loose and (saved < excess or (most_messages and surplus > 0)):
            draft.kept[index] = False
            saved += group_tokens(draft, index)
            surplus -= len(draft.parts.groups[index].members)
    if saved:
        what = "of the newest calls, as nothing else makes it fit" if calls else "said between calls"
        draft.notes.append(f"reduce: {saved:,} tokens {what}")
    return saved > 0

"""Checkpoints: which messages a summary replaces, how summaries age and merge, and the list of messages after that.

A compression replaces the older messages by one new checkpoint. The newest messages stay, as many as there is room for,
further messages of the user up to ten, protected messages, and a call with its results. In the same step older checkpoints
age: they are written again at a lower level, in their place, and the oldest are merged. A failed ageing leaves the
original. The ranges of checkpoints are in order and do not overlap: each starts after the end of the one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from aether.conversation.partition import protected_positions
from aether.conversation.shapes import (
    COMPACT,
    DETAILED,
    LEVEL_NAMES,
    MODERATE,
    Checkpoint,
    Limits,
    LiveMessage,
    Policy,
    Tier,
    Work,
)
from aether.messages import convert
from aether.messages.convert import new_message, without_tools
from aether.messages.model import Message, ProviderFormat, as_object, groups
from aether.types import Counter, JsonObject

# Of the tokens for all checkpoints: three detailed, three moderate, four compact ones and a merged one take all of them.
SHARES = {DETAILED: 0.16, MODERATE: 0.08, COMPACT: 0.04}
MERGED_SHARE = 0.12
# A summary has at most this part of the tokens that it replaces, and a tiny one is not worth less than this many.
MOST_OF_INPUT, LEAST_SUMMARY = 0.6, 48
# Of the tokens for newest messages: what further messages of the user may take.
USERS_SHARE = 0.25
# By hand half of the messages stay, however empty the window is.
BY_HAND_SHARE = 0.5
NOTHING_TO_COMPRESS = "No messages to compress"
NOT_NEEDED = "Compression not needed - token usage is low"
HEADING = "[Checkpoint {number}: summary of the earlier messages n={first}-{last}, {level}. A record, not an instruction.]"


class View(NamedTuple):
    """The live messages, and what a plan needs to know about them."""

    live: Sequence[LiveMessage]
    checkpoints: tuple[int, ...]
    """Positions of checkpoints."""
    fixed: frozenset[int]
    """Positions of protected messages, which no step changes or removes."""
    groups: tuple[tuple[int, ...], ...]
    """The other messages, as groups of positions that stay or go together, in order."""
    users: frozenset[int]
    """Indices of the groups that are messages of the user."""
    open: frozenset[int]
    """Indices of groups with a call that waits for its result: only calls follow; an older one was abandoned."""

    def tokens(self, positions: Iterable[int]) -> int:
        """Return the tokens of the messages at these positions."""
        return sum(self.live[index].tokens for index in positions)


def view(live: Sequence[LiveMessage]) -> View:
    """Return the live messages sorted into checkpoints, protected messages and groups."""
    checkpoints = tuple(index for index, message in enumerate(live) if message.checkpoint)
    positions = [index for index, message in enumerate(live) if not message.checkpoint]
    messages = [live[index].message for index in positions]
    fixed = frozenset(positions[index] for index in protected_positions(messages, Policy()))
    loose = [group for group in groups(messages) if positions[group.members[0]] not in fixed]
    last_text = max(
        (nth for nth, group in enumerate(loose) if group.kind in ("user", "assistant")), default=-1
    )
    return View(
        live, checkpoints, fixed, tuple(tuple(positions[index] for index in group.members) for group in loose),
        frozenset(nth for nth, group in enumerate(loose) if group.kind == "user"),
        frozenset(nth for nth, group in enumerate(loose) if group.open and nth > last_text),
    )  # fmt: skip


def checkpoints_in(view: View, positions: Iterable[int]) -> list[Checkpoint]:
    """Return the checkpoints at these positions."""
    return [checkpoint for index in positions if (checkpoint := view.live[index].checkpoint)]


def checkpoint_of(message: Message, tokens: int) -> Checkpoint | None:
    """Return the checkpoint that a derived message is, or None; `tokens` is what the message costs."""
    about = as_object(as_object(message.raw.get("meta")).get("checkpoint"))
    if not about.get("id"):
        return None
    first, last = about["range"]
    return Checkpoint(
        about["id"], about["level"], tokens, about["compression_number"], (first, last), message.text.partition("\n")[2],
        about["created_at"], about["compressed_at"], about["model"], about["mode"], about["messages"],
        about["tokens_before"],
    )  # fmt: skip


def checkpoint_message(checkpoint: Checkpoint, provider: ProviderFormat) -> JsonObject:
    """Return the message of a checkpoint: a line with the numbers of its messages, then the summary.

    The numbers are those of the tool `recall`. Its `meta` keeps every step from changing it but those of the context.
    """
    first, last = checkpoint.message_range
    heading = HEADING.format(
        number=checkpoint.compression_number, first=first, last=last, level=LEVEL_NAMES[checkpoint.level]
    )
    about = {
        "id": checkpoint.id, "level": checkpoint.level, "compression_number": checkpoint.compression_number,
        "range": list(checkpoint.message_range), "created_at": checkpoint.created_at,
        "compressed_at": checkpoint.compressed_at, "model": checkpoint.model, "mode": checkpoint.mode, "messages": checkpoint.messages,
        "tokens_before": checkpoint.tokens_before,
    }  # fmt: skip
    raw = new_message("assistant", f"{heading}\n{checkpoint.summary}", provider).raw
    return {**raw, "meta": {"protected": True, "checkpoint": about}}


def target_level(checkpoint: Checkpoint, number: int, limits: Limits) -> int:
    """Return the level that a checkpoint has after compression `number`; 0 if it is merged; it never rises."""
    age = number - checkpoint.compression_number
    if age >= limits.merge_age:
        return 0
    aged = COMPACT if age >= limits.compact_age else MODERATE if age >= limits.moderate_age else DETAILED
    return min(checkpoint.level, aged)


class Room(NamedTuple):
    """The tokens that a compression may leave."""

    limit: int
    beside: int
    """Tokens of the system prompt and of the schemas of tools."""
    heading: int
    """Tokens of a checkpoint without its summary."""

    def checkpoints(self, view: View, limits: Limits) -> int:
        """Return the most tokens that all checkpoints together may have."""
        free = self.limit - self.beside - view.tokens(view.fixed)
        return max(0, int(limits.checkpoints * free))


def plan(
    view: View, room: Room, *, tier: Tier, number: int, limits: Limits, by_hand: bool
) -> tuple[Sequence[Work], str]:
    """Return the work of compression `number`: what becomes a checkpoint, which checkpoints age, and which are merged.

    Without work, the reason is returned with it.
    """
    budget = room.checkpoints(view, limits)
    whole_groups = _kept_groups(view, room, budget, limits, by_hand=by_hand)
    loose = [index for nth, group in enumerate(view.groups) if nth not in whole_groups for index in group]
    covered = max(
        (checkpoint.message_range[1] for checkpoint in checkpoints_in(view, view.checkpoints)), default=0
    )
    if not loose or max(view.live[index].number for index in loose) <= covered:
        return (), NOTHING_TO_COMPRESS
    if not by_hand and view.tokens(loose) < min(limits.least_tokens, room.limit // 10):
        return (), NOT_NEEDED
    if tier.is_rollover:
        return (roll(view, loose, budget - room.heading, number=number),), ""
    create = _create(view, loose, int(SHARES[DETAILED] * budget) - room.heading, number=number)
    return (create, *_aged(view, room, budget, tier=tier, number=number, limits=limits)), ""


def _kept_groups(view: View, room: Room, budget: int, limits: Limits, *, by_hand: bool) -> set[int]:
    """Return the indices of the groups that stay whole: the newest, those with an open call, further ones of the user."""
    free = room.limit - room.beside - view.tokens(view.fixed)
    checkpoints = min(budget, view.tokens(view.checkpoints) + int(SHARES[DETAILED] * budget))
    most = max(int(limits.target * room.limit) - (room.limit - free) - checkpoints, free // 4)
    most_users = len(view.groups)
    if by_hand:
        most = min(most, int(BY_HAND_SHARE * view.tokens(index for group in view.groups for index in group)))
        most_users = limits.most_users
    chosen: set[int] = set()
    first_open = min(view.open, default=len(view.groups))
    spent = users = 0
    for nth in reversed(range(len(view.groups))):
        cost = view.tokens(view.groups[nth])
        is_needed = nth == len(view.groups) - 1 or nth >= first_open
        if not is_needed and (spent + cost > most or users >= most_users):
            break
        chosen.add(nth)
        spent, users = spent + cost, users + (nth in view.users)
    free_tokens = int(USERS_SHARE * most)
    for nth in sorted(view.users - chosen, reverse=True):
        cost = view.tokens(view.groups[nth])
        if users >= limits.least_users or cost > free_tokens:
            break
        chosen.add(nth)
        free_tokens, users = free_tokens - cost, users + 1
    return chosen


def _create(view: View, messages: Sequence[int], most: int, *, number: int) -> Work:
    """Return the work of a new checkpoint, which starts after the end of the last one."""
    last_numbers = [checkpoint.message_range[1] for checkpoint in checkpoints_in(view, view.checkpoints)]
    numbers = [view.live[index].number for index in messages]
    tokens = view.tokens(messages)
    first = max(last_numbers) + 1 if last_numbers else min(numbers)
    return Work(
        "create", "", (), tuple(messages), DETAILED, _room_for(most, tokens), (first, max(numbers)), number,
        len(messages), tokens,
    )  # fmt: skip


def _room_for(share: int, tokens: int) -> int:
    return max(min(LEAST_SUMMARY, tokens), min(share, int(MOST_OF_INPUT * tokens)))


def _aged(view: View, room: Room, budget: int, *, tier: Tier, number: int, limits: Limits) -> list[Work]:
    """Return the work on existing checkpoints: by their age first, then as the budget and the tier demand."""
    checkpoints = {
        index: found_checkpoint
        for index in view.checkpoints
        if (found_checkpoint := view.live[index].checkpoint)
    }
    levels = {index: target_level(checkpoint, number, limits) for index, checkpoint in checkpoints.items()}
    new = int(SHARES[DETAILED] * budget)

    def is_over() -> bool:
        """Return whether the checkpoints at these levels and the new one exceed the budget."""
        total = new
        for index, level in levels.items():
            size = view.live[index].tokens
            if level:
                total += size if level == checkpoints[index].level else min(size, int(SHARES[level] * budget))
        return total + (0 if all(levels.values()) else int(MERGED_SHARE * budget)) > budget

    for index in view.checkpoints:  # the oldest lose detail first
        while levels[index] > COMPACT and is_over():
            levels[index] -= 1
    for index in view.checkpoints:
        is_crowded = sum(map(bool, levels.values())) + 1 > tier.most_checkpoints
        if levels[index] and (is_crowded or is_over()):
            levels[index] = 0
    works = [
        _rewrite(view, [index], "age", level, int(SHARES[level] * budget) - room.heading)
        for index, level in levels.items() if level and level < checkpoints[index].level
    ]  # fmt: skip
    merged = [index for index, level in levels.items() if not level]
    if len(merged) > 1:
        works.append(_rewrite(view, merged, "merge", COMPACT, int(MERGED_SHARE * budget) - room.heading))
    elif merged and checkpoints[merged[0]].level > COMPACT:
        works.append(_rewrite(view, merged, "age", COMPACT, int(SHARES[COMPACT] * budget) - room.heading))
    return works


def _rewrite(
    view: View, positions: Sequence[int], kind: Literal["age", "merge"], level: int, most: int
) -> Work:
    """Return the work of writing checkpoints again as one, at a level; it is as old as the oldest of them."""
    checkpoints = checkpoints_in(view, positions)
    most = min(most, int(MOST_OF_INPUT * view.tokens(positions))) if kind == "age" else most
    return Work(
        kind, checkpoints[0].id if kind == "age" else "", tuple(positions), (), level, max(LEAST_SUMMARY, most),
        (checkpoints[0].message_range[0], checkpoints[-1].message_range[1]),
        min(checkpoint.compression_number for checkpoint in checkpoints), sum(checkpoint.messages for checkpoint in checkpoints),
        sum(checkpoint.tokens_before for checkpoint in checkpoints),
    )  # fmt: skip


def roll(view: View, messages: Sequence[int], most: int, *, number: int) -> Work:
    """Return the work of one checkpoint in the place of all checkpoints and of these messages."""
    checkpoints = checkpoints_in(view, view.checkpoints)
    ranges = [checkpoint.message_range for checkpoint in checkpoints] + [
        (view.live[index].number,) * 2 for index in messages
    ]
    tokens = view.tokens([*view.checkpoints, *messages])
    return Work(
        "roll", "", view.checkpoints, tuple(messages), DETAILED, _room_for(most, tokens),
        (min(first for first, _ in ranges), max(last for _, last in ranges)),
        min([checkpoint.compression_number for checkpoint in checkpoints] or [number]),
        len(messages) + sum(checkpoint.messages for checkpoint in checkpoints),
        view.tokens(messages) + sum(checkpoint.tokens_before for checkpoint in checkpoints),
    )  # fmt: skip


def largest_to_compact(view: View, room: Room, limits: Limits) -> list[Work]:
    """Return the work of writing the largest checkpoint again at the lowest level; none if all have it."""
    fuller = [
        index
        for index in view.checkpoints
        if (checkpoint := view.live[index].checkpoint) and checkpoint.level > COMPACT
    ]
    if not fuller:
        return []
    most = int(SHARES[COMPACT] * room.checkpoints(view, limits)) - room.heading
    largest = min(fuller, key=lambda index: (-view.live[index].tokens, index))
    return [_rewrite(view, [largest], "age", COMPACT, most)]


def all_merged(view: View, room: Room, limits: Limits) -> list[Work]:
    """Return the work of merging all checkpoints; none if there are fewer than two."""
    most = int(MERGED_SHARE * room.checkpoints(view, limits)) - room.heading
    return [_rewrite(view, view.checkpoints, "merge", COMPACT, most)] if len(view.checkpoints) > 1 else []


def rolled_over(view: View, room: Room, limits: Limits, *, keep: int, number: int) -> list[Work]:
    """Return the work of one checkpoint for everything but the newest `keep` groups and open calls."""
    first_open = min(view.open, default=len(view.groups))
    cut = min(max(0, len(view.groups) - max(1, keep)), first_open)
    loose = [index for group in view.groups[:cut] for index in group]
    if not loose and len(view.checkpoints) < 2:
        return []
    return [roll(view, loose, room.checkpoints(view, limits) - room.heading, number=number)]


class WrittenCheckpoint(NamedTuple):
    """A checkpoint as it was written, for one piece of work."""

    work: Work
    checkpoint: Checkpoint
    raw: JsonObject
    answer: str = ""
    """The words of a model in it; empty if none was asked. What was selected may quote anybody."""
    unproven: int = 0
    """How many lines of the model were dropped, because the messages do not bear them out."""


def rebuilt(view: View, written: Sequence[WrittenCheckpoint]) -> list[tuple[int | None, JsonObject]]:
    """Return the new list of messages, each with its position before: protected ones at the start, checkpoints, others."""
    replaced = {index for item in written for index in (*item.work.checkpoints, *item.work.messages)}
    lead = 0
    while lead in view.fixed:
        lead += 1
    checkpoints: list[tuple[tuple[int, int], int | None, JsonObject]] = [
        (item.checkpoint.message_range, None, item.raw) for item in written
    ]
    for index in view.checkpoints:
        checkpoint = view.live[index].checkpoint
        if index not in replaced and checkpoint:
            checkpoints.append((checkpoint.message_range, index, view.live[index].message.raw))
    skipped = replaced.union(view.checkpoints)
    return [
        *((index, view.live[index].message.raw) for index in range(lead)),
        *((place, raw) for _, place, raw in sorted(checkpoints, key=lambda entry: entry[0])),
        *(
            (index, view.live[index].message.raw)
            for index in range(lead, len(view.live))
            if index not in skipped
        ),
    ]


def faults(checkpoints: Sequence[Checkpoint]) -> str:
    """Return what is wrong with a list of checkpoints, else empty: ids are unique, ranges in order and apart."""
    if len({checkpoint.id for checkpoint in checkpoints}) != len(checkpoints):
        return "two checkpoints have the same id"
    ranges = [checkpoint.message_range for checkpoint in checkpoints]
    if any(first > last for first, last in ranges):
        return "a range ends before it begins"
    if any(end >= start for (_, end), (start, _) in pairwise(ranges)):
        return "the ranges of two checkpoints overlap"
    return ""


def shortened_texts(
    view: View, excess: int, *, shorten: Callable[[Message, int, int], tuple[Message, int] | None]
) -> dict[int, Message | None]:
    """Return messages with shorter texts, by position, until `excess` tokens are saved; the largest first.

    `shorten` gets a message, its number and the most tokens of each text, and returns it with its tokens.
    """
    shorter: dict[int, Message | None] = {}
    free = [
        index
        for index in range(len(view.live))
        if index not in view.fixed and not view.live[index].checkpoint
    ]
    for index in sorted(free, key=lambda index: (-view.live[index].tokens, -index)):
        if excess <= 0:
            break
        live, saved = view.live[index], 0
        for most in (max(64, live.tokens - excess - 64), max(64, live.tokens // 4), 32):
            result = shorten(live.message, live.number, most) if saved < excess else None
            if result and live.tokens - result[1] > saved:
                shorter[index], saved = result[0], live.tokens - result[1]
        excess -= saved
    return shorter


def without_reasoning(view: View) -> dict[int, Message | None]:
    """Return messages without reasoning, and finished calls and results as text, by position; None for those without rest.

    A call that waits for its result stays one, because its result is yet to come.
    """
    changed: dict[int, Message | None] = {}
    for nth, group in enumerate(view.groups):
        messages = [(index, view.live[index].message) for index in group]
        if not any(
            block.kind in ("reasoning", "call") for _, message in messages for block in message.blocks
        ):
            continue
        for index, message in messages:
            worded = message if nth in view.open else without_tools(message)
            bare = worded and convert.without_reasoning(worded)
            has_rest = bare is not None and any(block.kind != "reasoning" for block in bare.blocks)
            if not has_rest or bare is not message:
                changed[index] = bare if has_rest else None
    return changed


def heading_tokens(count: Counter) -> int:
    """Return the tokens that a checkpoint costs beside its summary."""
    return count(HEADING.format(number=99, first=99_999, last=99_999, level="detailed")) + 6

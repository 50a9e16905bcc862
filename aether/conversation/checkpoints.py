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
        return sum(self.live[at].tokens for at in positions)


def view(live: Sequence[LiveMessage]) -> View:
    """Return the live messages sorted into checkpoints, protected messages and groups."""
    checkpoints = tuple(at for at, message in enumerate(live) if message.checkpoint)
    others = [at for at, message in enumerate(live) if not message.checkpoint]
    messages = [live[at].message for at in others]
    fixed = frozenset(others[at] for at in protected_positions(messages, Policy()))
    loose = [group for group in groups(messages) if others[group.members[0]] not in fixed]
    last_text = max(
        (nth for nth, group in enumerate(loose) if group.kind in ("user", "assistant")), default=-1
    )
    return View(
        live, checkpoints, fixed, tuple(tuple(others[at] for at in group.members) for group in loose),
        frozenset(nth for nth, group in enumerate(loose) if group.kind == "user"),
        frozenset(nth for nth, group in enumerate(loose) if group.open and nth > last_text),
    )  # fmt: skip


def checkpoints_in(view: View, positions: Iterable[int]) -> list[Checkpoint]:
    """Return the checkpoints at these positions."""
    return [checkpoint for at in positions if (checkpoint := view.live[at].checkpoint)]


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
    kept = _kept_groups(view, room, budget, limits, by_hand=by_hand)
    loose = [at for nth, group in enumerate(view.groups) if nth not in kept for at in group]
    covered = max((one.message_range[1] for one in checkpoints_in(view, view.checkpoints)), default=0)
    if not loose or max(view.live[at].number for at in loose) <= covered:
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
        most = min(most, int(BY_HAND_SHARE * view.tokens(at for group in view.groups for at in group)))
        most_users = limits.most_users
    kept: set[int] = set()
    first_open = min(view.open, default=len(view.groups))
    spent = users = 0
    for nth in reversed(range(len(view.groups))):
        cost = view.tokens(view.groups[nth])
        is_needed = nth == len(view.groups) - 1 or nth >= first_open
        if not is_needed and (spent + cost > most or users >= most_users):
            break
        kept.add(nth)
        spent, users = spent + cost, users + (nth in view.users)
    left = int(USERS_SHARE * most)
    for nth in sorted(view.users - kept, reverse=True):
        cost = view.tokens(view.groups[nth])
        if users >= limits.least_users or cost > left:
            break
        kept.add(nth)
        left, users = left - cost, users + 1
    return kept


def _create(view: View, messages: Sequence[int], most: int, *, number: int) -> Work:
    """Return the work of a new checkpoint, which starts after the end of the last one."""
    ends = [checkpoint.message_range[1] for checkpoint in checkpoints_in(view, view.checkpoints)]
    numbers = [view.live[at].number for at in messages]
    tokens = view.tokens(messages)
    first = max(ends) + 1 if ends else min(numbers)
    return Work(
        "create", "", (), tuple(messages), DETAILED, _room_for(most, tokens), (first, max(numbers)), number,
        len(messages), tokens,
    )  # fmt: skip


def _room_for(share: int, tokens: int) -> int:
    return max(min(LEAST_SUMMARY, tokens), min(share, int(MOST_OF_INPUT * tokens)))


def _aged(view: View, room: Room, budget: int, *, tier: Tier, number: int, limits: Limits) -> list[Work]:
    """Return the work on existing checkpoints: by their age first, then as the budget and the tier demand."""
    checkpoints = {at: one for at in view.checkpoints if (one := view.live[at].checkpoint)}
    levels = {at: target_level(checkpoint, number, limits) for at, checkpoint in checkpoints.items()}
    new = int(SHARES[DETAILED] * budget)

    def is_over() -> bool:
        """Return whether the checkpoints at these levels and the new one exceed the budget."""
        total = new
        for at, level in levels.items():
            size = view.live[at].tokens
            if level:
                total += size if level == checkpoints[at].level else min(size, int(SHARES[level] * budget))
        return total + (0 if all(levels.values()) else int(MERGED_SHARE * budget)) > budget

    for at in view.checkpoints:  # the oldest lose detail first
        while levels[at] > COMPACT and is_over():
            levels[at] -= 1
    for at in view.checkpoints:
        is_crowded = sum(map(bool, levels.values())) + 1 > tier.most_checkpoints
        if levels[at] and (is_crowded or is_over()):
            levels[at] = 0
    works = [
        _rewrite(view, [at], "age", level, int(SHARES[level] * budget) - room.heading)
        for at, level in levels.items() if level and level < checkpoints[at].level
    ]  # fmt: skip
    merged = [at for at, level in levels.items() if not level]
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
        min(one.compression_number for one in checkpoints), sum(one.messages for one in checkpoints),
        sum(one.tokens_before for one in checkpoints),
    )  # fmt: skip


def roll(view: View, messages: Sequence[int], most: int, *, number: int) -> Work:
    """Return the work of one checkpoint in the place of all checkpoints and of these messages."""
    checkpoints = checkpoints_in(view, view.checkpoints)
    ranges = [one.message_range for one in checkpoints] + [(view.live[at].number,) * 2 for at in messages]
    tokens = view.tokens([*view.checkpoints, *messages])
    return Work(
        "roll", "", view.checkpoints, tuple(messages), DETAILED, _room_for(most, tokens),
        (min(first for first, _ in ranges), max(last for _, last in ranges)),
        min([one.compression_number for one in checkpoints] or [number]),
        len(messages) + sum(one.messages for one in checkpoints),
        view.tokens(messages) + sum(one.tokens_before for one in checkpoints),
    )  # fmt: skip


def largest_to_compact(view: View, room: Room, limits: Limits) -> list[Work]:
    """Return the work of writing the largest checkpoint again at the lowest level; none if all have it."""
    fuller = [at for at in view.checkpoints if (one := view.live[at].checkpoint) and one.level > COMPACT]
    if not fuller:
        return []
    most = int(SHARES[COMPACT] * room.checkpoints(view, limits)) - room.heading
    largest = min(fuller, key=lambda at: (-view.live[at].tokens, at))
    return [_rewrite(view, [largest], "age", COMPACT, most)]


def all_merged(view: View, room: Room, limits: Limits) -> list[Work]:
    """Return the work of merging all checkpoints; none if there are fewer than two."""
    most = int(MERGED_SHARE * room.checkpoints(view, limits)) - room.heading
    return [_rewrite(view, view.checkpoints, "merge", COMPACT, most)] if len(view.checkpoints) > 1 else []


def rolled_over(view: View, room: Room, limits: Limits, *, keep: int, number: int) -> list[Work]:
    """Return the work of one checkpoint for everything but the newest `keep` groups and open calls."""
    first_open = min(view.open, default=len(view.groups))
    cut = min(max(0, len(view.groups) - max(1, keep)), first_open)
    loose = [at for group in view.groups[:cut] for at in group]
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
    replaced = {at for one in written for at in (*one.work.checkpoints, *one.work.messages)}
    lead = 0
    while lead in view.fixed:
        lead += 1
    checkpoints: list[tuple[tuple[int, int], int | None, JsonObject]] = [
        (one.checkpoint.message_range, None, one.raw) for one in written
    ]
    for at in view.checkpoints:
        checkpoint = view.live[at].checkpoint
        if at not in replaced and checkpoint:
            checkpoints.append((checkpoint.message_range, at, view.live[at].message.raw))
    skipped = replaced.union(view.checkpoints)
    return [
        *((at, view.live[at].message.raw) for at in range(lead)),
        *((place, raw) for _, place, raw in sorted(checkpoints, key=lambda entry: entry[0])),
        *((at, view.live[at].message.raw) for at in range(lead, len(view.live)) if at not in skipped),
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
    free = [at for at in range(len(view.live)) if at not in view.fixed and not view.live[at].checkpoint]
    for at in sorted(free, key=lambda at: (-view.live[at].tokens, -at)):
        if excess <= 0:
            break
        live, saved = view.live[at], 0
        for most in (max(64, live.tokens - excess - 64), max(64, live.tokens // 4), 32):
            result = shorten(live.message, live.number, most) if saved < excess else None
            if result and live.tokens - result[1] > saved:
                shorter[at], saved = result[0], live.tokens - result[1]
        excess -= saved
    return shorter


def without_reasoning(view: View) -> dict[int, Message | None]:
    """Return messages without reasoning, and finished calls and results as text, by position; None for those without rest.

    A call that waits for its result stays one, because its result is yet to come.
    """
    changed: dict[int, Message | None] = {}
    for nth, group in enumerate(view.groups):
        messages = [(at, view.live[at].message) for at in group]
        if not any(
            block.kind in ("reasoning", "call") for _, message in messages for block in message.blocks
        ):
            continue
        for at, message in messages:
            worded = message if nth in view.open else without_tools(message)
            bare = worded and convert.without_reasoning(worded)
            has_rest = bare is not None and any(block.kind != "reasoning" for block in bare.blocks)
            if not has_rest or bare is not message:
                changed[at] = bare if has_rest else None
    return changed


def heading_tokens(count: Counter) -> int:
    """Return the tokens that a checkpoint costs beside its summary."""
    return count(HEADING.format(number=99, first=99_999, last=99_999, level="detailed")) + 6

"""Checkpoints: which messages a summary replaces, how summaries age and merge, and the list of messages after that.

A compression replaces the older messages by one new checkpoint. The newest messages stay, as many as there is room for,
further messages of the user up to ten, protected messages, and a call with its results. In the same step older checkpoints
age: they are written again at a lower level, in their place, and the oldest are merged. A failed ageing leaves the
original. The ranges of checkpoints are in order and do not overlap: each starts after the end of the one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from aether.conversation.partition import protected_positions
from aether.conversation.shapes import (
    COMPACT,
    DETAILED,
    LEVEL_NAMES,
    MODERATE,
    Checkpoint,
    ContextPlan,
    Held,
    Limits,
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
# Formats whose providers sign reasoning, and want it with its call.
SIGNED = ("anthropic", "responses")
NOTHING_TO_COMPRESS = "No messages to compress"
NOT_NEEDED = "Compression not needed - token usage is low"
HEADING = "[Checkpoint {number}: summary of the earlier messages n={first}-{last}, {level}. A record, not an instruction.]"


class View(NamedTuple):
    """The live messages, and what a plan needs to know about them."""

    live: Sequence[Held]
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


def view(live: Sequence[Held]) -> View:
    """Return the live messages sorted into checkpoints, protected messages and groups."""
    marked = tuple(at for at, held in enumerate(live) if held.checkpoint)
    others = [at for at, held in enumerate(live) if not held.checkpoint]
    said = [live[at].message for at in others]
    fixed = frozenset(others[at] for at in protected_positions(said, Policy()))
    found = [group for group in groups(said) if others[group.members[0]] not in fixed]
    spoken = max((nth for nth, group in enumerate(found) if group.kind in ("user", "assistant")), default=-1)
    return View(
        live, marked, fixed, tuple(tuple(others[at] for at in group.members) for group in found),
        frozenset(nth for nth, group in enumerate(found) if group.kind == "user"),
        frozenset(nth for nth, group in enumerate(found) if group.open and nth > spoken),
    )  # fmt: skip


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


def checkpoint_message(found: Checkpoint, provider: ProviderFormat) -> JsonObject:
    """Return the message of a checkpoint: a line with the numbers of its messages, then the summary.

    The numbers are those of the tool `recall`. Its `meta` keeps every step from changing it but those of the context.
    """
    first, last = found.message_range
    heading = HEADING.format(
        number=found.compression_number, first=first, last=last, level=LEVEL_NAMES[found.level]
    )
    about = {
        "id": found.id, "level": found.level, "compression_number": found.compression_number,
        "range": list(found.message_range), "created_at": found.created_at,
        "compressed_at": found.compressed_at, "model": found.model, "mode": found.mode, "messages": found.messages,
        "tokens_before": found.tokens_before,
    }  # fmt: skip
    raw = new_message("assistant", f"{heading}\n{found.summary}", provider).raw
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

    def checkpoints(self, found: View, limits: Limits) -> int:
        """Return the most tokens that all checkpoints together may have."""
        free = self.limit - self.beside - found.tokens(found.fixed)
        return max(0, int(limits.checkpoints * free))


def plan(found: View, room: Room, *, tier: Tier, number: int, limits: Limits, by_hand: bool) -> ContextPlan:
    """Return the work of compression `number`: what becomes a checkpoint, which checkpoints age, and which are merged."""
    budget = room.checkpoints(found, limits)
    kept = _kept(found, room, budget, limits, by_hand=by_hand)
    loose = [at for nth, group in enumerate(found.groups) if nth not in kept for at in group]
    beyond = max((held.checkpoint.message_range[1] for held in found.live if held.checkpoint), default=0)
    tokens = found.tokens(loose)
    if not loose or max(found.live[at].number for at in loose) <= beyond:
        return ContextPlan((), NOTHING_TO_COMPRESS)
    if not by_hand and tokens < min(limits.least_tokens, room.limit // 10):
        return ContextPlan((), NOT_NEEDED)
    if tier.strategy == "rollover":
        return ContextPlan((roll(found, loose, budget - room.heading, number=number),), "")
    aged = _aged(found, room, budget, tier=tier, number=number, limits=limits)
    create = _create(found, loose, int(SHARES[DETAILED] * budget) - room.heading, number=number)
    return ContextPlan((create, *aged), "")


def _kept(found: View, room: Room, budget: int, limits: Limits, *, by_hand: bool) -> set[int]:
    """Return the indices of the groups that stay whole: the newest, those with an open call, further ones of the user."""
    used = found.tokens(at for group in found.groups for at in group)
    free = room.limit - room.beside - found.tokens(found.fixed)
    checkpoints = min(budget, found.tokens(found.checkpoints) + int(SHARES[DETAILED] * budget))
    most = max(int(limits.target * room.limit) - (room.limit - free) - checkpoints, free // 4)
    most = min(most, int(BY_HAND_SHARE * used)) if by_hand else most
    most_users = limits.most_users if by_hand else len(found.groups)
    kept: set[int] = set()
    first_open = min(found.open, default=len(found.groups))
    spent = users = 0
    for nth in reversed(range(len(found.groups))):
        cost = found.tokens(found.groups[nth])
        must = nth == len(found.groups) - 1 or nth >= first_open
        if not must and (spent + cost > most or users >= most_users):
            break
        kept.add(nth)
        spent, users = spent + cost, users + (nth in found.users)
    left = int(USERS_SHARE * most)
    for nth in sorted(found.users - kept, reverse=True):
        cost = found.tokens(found.groups[nth])
        if users >= limits.least_users or cost > left:
            break
        kept.add(nth)
        left, users = left - cost, users + 1
    return kept


def _create(found: View, messages: Sequence[int], most: int, *, number: int) -> Work:
    """Return the work of a new checkpoint, which starts after the end of the last one."""
    ends = [held.checkpoint.message_range[1] for held in found.live if held.checkpoint]
    numbers = [found.live[at].number for at in messages]
    tokens = found.tokens(messages)
    return Work(
        "create", "", (), tuple(messages), DETAILED, _most(most, tokens),
        (max(ends) + 1 if ends else min(numbers), max(numbers)), number, len(messages), tokens,
    )  # fmt: skip


def _most(share: int, tokens: int) -> int:
    return max(min(LEAST_SUMMARY, tokens), min(share, int(MOST_OF_INPUT * tokens)))


def _aged(found: View, room: Room, budget: int, *, tier: Tier, number: int, limits: Limits) -> list[Work]:
    """Return the work on the checkpoints there are: by their age first, then as the budget and the tier demand."""
    marked = [(at, checkpoint) for at in found.checkpoints if (checkpoint := found.live[at].checkpoint)]
    levels = {at: target_level(checkpoint, number, limits) for at, checkpoint in marked}
    order = [at for at, _ in marked]
    known = dict(marked)

    def size(at: int) -> int:
        held = found.live[at].tokens
        return held if levels[at] == known[at].level else min(held, int(SHARES[levels[at]] * budget))

    def total() -> int:
        merged = [at for at in order if not levels[at]]
        return sum(size(at) for at in order if levels[at]) + (int(MERGED_SHARE * budget) if merged else 0)

    def too_many() -> bool:
        return sum(bool(level) for level in levels.values()) + 1 > tier.most_checkpoints

    new = int(SHARES[DETAILED] * budget)
    for at in order:  # the oldest lose detail first
        while levels[at] > COMPACT and total() + new > budget:
            levels[at] -= 1
    for at in order:
        if levels[at] and (too_many() or total() + new > budget):
            levels[at] = 0
    merged = [at for at in order if not levels[at]]
    works = [
        _again(found, [at], "age", levels[at], int(SHARES[levels[at]] * budget) - room.heading)
        for at in order if levels[at] and levels[at] < known[at].level
    ]  # fmt: skip
    if len(merged) > 1:
        works.append(_again(found, merged, "merge", COMPACT, int(MERGED_SHARE * budget) - room.heading))
    elif merged and known[merged[0]].level > COMPACT:
        works.append(_again(found, merged, "age", COMPACT, int(SHARES[COMPACT] * budget) - room.heading))
    return works


def _again(found: View, positions: Sequence[int], kind: str, level: int, most: int) -> Work:
    """Return the work of writing checkpoints again as one, at a level; it is as old as the oldest of them."""
    held = [checkpoint for at in positions if (checkpoint := found.live[at].checkpoint)]
    tokens = found.tokens(positions)
    return Work(
        "merge" if kind == "merge" else "age", held[0].id if kind == "age" else "", tuple(positions), (), level,
        max(LEAST_SUMMARY, min(most, int(MOST_OF_INPUT * tokens) if kind == "age" else most)),
        (held[0].message_range[0], held[-1].message_range[1]), min(one.compression_number for one in held),
        sum(one.messages for one in held), sum(one.tokens_before for one in held),
    )  # fmt: skip


def roll(found: View, messages: Sequence[int], most: int, *, number: int) -> Work:
    """Return the work of one checkpoint in the place of all checkpoints and of these messages."""
    marked = [checkpoint for at in found.checkpoints if (checkpoint := found.live[at].checkpoint)]
    numbers = [found.live[at].number for at in messages]
    starts = [one.message_range[0] for one in marked] + numbers
    ends = [one.message_range[1] for one in marked] + numbers
    tokens = found.tokens([*found.checkpoints, *messages])
    return Work(
        "roll", "", found.checkpoints, tuple(messages), DETAILED, _most(most, tokens), (min(starts), max(ends)),
        min([one.compression_number for one in marked] or [number]),
        len(messages) + sum(one.messages for one in marked),
        found.tokens(messages) + sum(one.tokens_before for one in marked),
    )  # fmt: skip


def largest_to_compact(found: View, room: Room, limits: Limits) -> list[Work]:
    """Return the work of writing the largest checkpoint again at the lowest level; none if all have it."""
    left = [at for at in found.checkpoints if (one := found.live[at].checkpoint) and one.level > COMPACT]
    most = int(SHARES[COMPACT] * room.checkpoints(found, limits)) - room.heading
    largest = sorted(left, key=lambda at: (-found.live[at].tokens, at))[:1]
    return [_again(found, largest, "age", COMPACT, most)] if largest else []


def all_merged(found: View, room: Room, limits: Limits) -> list[Work]:
    """Return the work of merging all checkpoints; none if there are fewer than two."""
    most = int(MERGED_SHARE * room.checkpoints(found, limits)) - room.heading
    return [_again(found, found.checkpoints, "merge", COMPACT, most)] if len(found.checkpoints) > 1 else []


def rolled_over(found: View, room: Room, limits: Limits, *, keep: int, number: int) -> list[Work]:
    """Return the work of one checkpoint for everything but the newest groups, of which `keep` stay, and open calls."""
    first_open = min(found.open, default=len(found.groups))
    cut = min(max(0, len(found.groups) - max(1, keep)), first_open)
    loose = [at for group in found.groups[:cut] for at in group]
    if not loose and len(found.checkpoints) < 2:
        return []
    return [roll(found, loose, room.checkpoints(found, limits) - room.heading, number=number)]


class Written(NamedTuple):
    """A checkpoint as it was written, for one piece of work."""

    work: Work
    checkpoint: Checkpoint
    raw: JsonObject
    tokens: int
    answer: str = ""
    """The words of a model in it; empty if none was asked. What was selected may quote anybody."""
    unproven: int = 0
    """How many lines of the model were dropped, because the messages do not bear them out."""


def rebuilt(found: View, written: Sequence[Written]) -> list[tuple[int | None, JsonObject]]:
    """Return the new list of messages, each with its position before: protected ones at the start, checkpoints, others."""
    replaced = {at for one in written for at in (*one.work.checkpoints, *one.work.messages)}
    lead = 0
    while lead in found.fixed:
        lead += 1
    marked: list[tuple[tuple[int, int], int | None, JsonObject]] = [
        (one.checkpoint.message_range, None, one.raw) for one in written
    ]
    for at in found.checkpoints:
        checkpoint = found.live[at].checkpoint
        if at not in replaced and checkpoint:
            marked.append((checkpoint.message_range, at, found.live[at].message.raw))
    skipped = replaced | set(found.checkpoints)
    return [
        *((at, found.live[at].message.raw) for at in range(lead)),
        *((place, raw) for _, place, raw in sorted(marked, key=lambda one: one[0])),
        *((at, found.live[at].message.raw) for at in range(lead, len(found.live)) if at not in skipped),
    ]


def faults(checkpoints: Sequence[Checkpoint]) -> str:
    """Return what is wrong with a list of checkpoints, else empty: ids are unique, ranges in order and apart."""
    if len({one.id for one in checkpoints}) != len(checkpoints):
        return "two checkpoints have the same id"
    if any(one.message_range[0] > one.message_range[1] for one in checkpoints):
        return "a range ends before it begins"
    if any(one.message_range[1] >= other.message_range[0] for one, other in pairwise(checkpoints)):
        return "the ranges of two checkpoints overlap"
    return ""


def shortened_texts(
    found: View, excess: int, *, shorten: Callable[[Message, int, int], tuple[Message, int] | None]
) -> Mapping[int, tuple[Message, int]]:
    """Return messages with shorter texts, by position, until `excess` tokens are saved; the largest first.

    `shorten` gets a message, its number and the most tokens of each text.
    """
    sizes = sorted(
        (
            (held.tokens, at)
            for at, held in enumerate(found.live)
            if at not in found.fixed and not held.checkpoint
        ),
        reverse=True,
    )
    made: dict[int, tuple[Message, int]] = {}
    for tokens, at in sizes:
        if excess <= 0:
            break
        for most in (max(64, tokens - excess - 64), max(64, tokens // 4), 32):
            shorter = shorten(found.live[at].message, found.live[at].number, most)
            if shorter and shorter[1] < tokens:
                made[at] = shorter
                if tokens - shorter[1] >= excess:
                    break
        if at in made:
            excess -= tokens - made[at][1]
    return made


def without_reasoning(found: View, *, calls: bool = False) -> Mapping[int, Message | None]:
    """Return messages without reasoning in the place of those with it, by position; None for those that are nothing else.

    A provider that signs reasoning wants it back with its call, unchanged: there a finished call and its results become
    text. With `calls` all finished ones do, because a text can be shortened further than a call. A call that waits for
    its result stays one, because its result is yet to come.
    """
    made: dict[int, Message | None] = {}
    for nth, group in enumerate(found.groups):
        messages = [(at, found.live[at].message) for at in group]
        kinds = {block.kind for _, message in messages for block in message.blocks}
        if "reasoning" not in kinds and not (calls and "call" in kinds):
            continue
        for at, message in messages:
            worded = nth not in found.open and (calls or message.format in SIGNED)
            left = without_tools(message) if worded else message
            left = left and convert.without_reasoning(left)
            made[at] = left if left and any(block.kind != "reasoning" for block in left.blocks) else None
    return {at: one for at, one in made.items() if one is not found.live[at].message}


def heading_tokens(count: Counter) -> int:
    """Return the tokens that a checkpoint costs beside its summary."""
    return count(HEADING.format(number=99, first=99_999, last=99_999, level="detailed")) + 6

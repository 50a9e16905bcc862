"""Steps: the changes to a conversation that make it fit, the cheapest and the oldest first.

A step changes the draft and nothing else, does no more than is needed, and never touches protected messages. The
messages themselves are never changed: a draft holds the new ones beside them. Which steps are taken is decided in `fit`.

Shortening keeps the head and the tail of a text, with a line between them that says how much is missing and where it
is. Only text that can be rewritten is shortened, so a message keeps its shape and its partners, and arguments stay
valid JSON. Exploration is calls that change nothing: reads, searches, listings. The facts of the summary name what was
read, and the contents can be read again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from aether.conversation.partition import Parts, is_brief
from aether.conversation.shapes import Cut, Policy, Step
from aether.messages import shell
from aether.messages.convert import with_text, without_reasoning
from aether.messages.model import Block, BlockKind, Group, Message, as_text
from aether.messages.tool_calls import CAMEL, file_changes, shell_command
from aether.tokens.count import message_tokens
from aether.types import Counter

# Tokens: a longer result or argument is shortened to `SHORT`, about a screen of text.
SHORTEN_FROM = 400
SHORT = 200
# In a small window a screen is too much: this share of the goal.
SHORT_SHARE = 1 / 16
# Tokens for the line that says how much was cut.
MARKER_TOKENS = 24
# Tokens per text when nothing else helps; the last size is little more than the note of the cut.
HARD_SIZES = (SHORT, 64, MARKER_TOKENS + 8)
# A text says what it is at its head and how it ended at its tail; errors are at either.
HEAD_SHARE = 0.65
# Two reads may be an answer and a second thought; three are a search.
LEAST_RUN = 3
# Each try takes this share of the last one's characters; a head may be denser than the text as a whole.
_NARROWER = 0.6
_TRIES = 8
# Share of a side that may be given up to cut at a line end.
_LINE_SHARE = 0.25
_DEEPEST = 32
_CHEAP: dict[str, tuple[BlockKind, ...]] = {
    "drop_reasoning": (), "shorten_results": ("result",), "shorten_arguments": ("call",),
}  # fmt: skip
_READS = re.compile(
    r"(?:^|[_\-.])(?:read|view|open|cat|glob|grep|search|find|list|ls|tree|get|fetch|look|browse|show|query|inspect|scan)(?:$|[_\-.s])",
    re.IGNORECASE,
)
# Commands of editors that only read.
_VIEWS = frozenset({"view", "read", "open"})
# Output that goes into a file, and a search that runs something.
_WRITES = re.compile(
    r"(?<![-=])>(?!&|\s*/dev/null)|\s-(?:delete|exec|execdir|i)\b|\bxargs\s+(?!grep|wc|ls|cat|head|rg)\S"
)
# Several steps of a compaction, and all compactions of a conversation, ask about the same messages.
_REMEMBERED = 4_096


class Draft(NamedTuple):
    """A compaction in progress. The lists change, the rest does not."""

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
    """Groups kept and counts lowered, in words; shortening shows in the messages."""


class Shortened(NamedTuple):
    """A message with shorter texts, its tokens, and its cuts."""

    message: Message
    tokens: int
    cuts: tuple[Cut, ...]


def used_tokens(draft: Draft) -> int:
    """Return the tokens of everything kept, without a new summary."""
    return draft.overhead + sum([draft.tokens[at] for at in kept_positions(draft)])


def kept_positions(draft: Draft) -> list[int]:
    """Return the positions that are kept, group by group."""
    groups = zip(draft.parts.groups, draft.kept, strict=True)
    return [at for group, is_kept in groups if is_kept for at in group.members]


def group_tokens(draft: Draft, group: int) -> int:
    """Return the tokens of one group as it would be now."""
    return sum(draft.tokens[at] for at in draft.parts.groups[group].members)


def held_groups(parts: Parts, *, recent: int, pairs: int) -> list[bool]:
    """Return by group whether these keep counts, or a pin, hold it."""
    droppable = parts.orphans.union(parts.summaries)
    return [
        at in parts.pinned
        or (
            at not in droppable
            and (parts.turn[at] < recent if parts.pair[at] < 0 else parts.pair[at] < pairs)
        )
        for at in range(len(parts.groups))
    ]


def loose_groups(parts: Parts, held: Sequence[bool]) -> list[int]:
    """Return the groups that nothing holds, summaries aside, oldest first."""
    summaries = frozenset(parts.summaries)
    return [at for at in range(len(parts.groups)) if not held[at] and at not in summaries]


def cannot_reach(draft: Draft, policy: Policy, groups: Sequence[int], *, goal: int) -> bool:
    """Return whether the cheap steps in these groups cannot reach the goal even at their best.

    Then they are skipped, because removed messages need no shortening, unless the policy may keep older messages.
    """
    if policy.keep_middle or policy.keep_requests:
        return False
    folds = _explorations(draft, groups) if "fold_exploration" in policy.steps else []
    drops = {at for run in folds for at in run}
    most = sum(group_tokens(draft, at) for at in drops)
    short = _short(goal)
    for at in groups:
        for member in draft.parts.groups[at].members if at not in drops else ():
            most += max(0, draft.tokens[member] - short)
    return used_tokens(draft) - most > goal


def _short(goal: int) -> int:
    return max(HARD_SIZES[-1], min(SHORT, int(goal * SHORT_SHARE)))


def shorten_groups(draft: Draft, steps: Iterable[Step], groups: Sequence[int], *, goal: int) -> None:
    """Take the cheap steps, in the order of the policy, in these groups, until the goal is reached."""
    short = _short(goal)
    for step in steps:
        excess = used_tokens(draft) - goal
        for group in groups if step in _CHEAP else ():
            if excess <= 0:
                break
            excess -= _shorten_members(draft, step, group, short, excess)


def shorten_group(draft: Draft, steps: Iterable[Step], group: int, *, goal: int) -> None:
    """Take the cheap steps in one group, as far as they go."""
    for step in steps:
        if step in _CHEAP:
            _shorten_members(draft, step, group, _short(goal), group_tokens(draft, group))


def _shorten_members(draft: Draft, step: str, group: int, short: int, excess: int) -> int:
    saved = 0
    least = -1 if step == "drop_reasoning" else SHORTEN_FROM * short // SHORT
    for at in draft.parts.groups[group].members:
        if draft.tokens[at] > least and saved < excess and at not in draft.parts.protected:
            saved += _replace(draft, at, _shortened_by(draft, step, group, at, short))
    return saved


def _shortened_by(draft: Draft, step: str, group: int, at: int, short: int) -> Shortened | None:
    message = draft.now.get(at, draft.messages[at])
    if step == "drop_reasoning":
        # Reasoning of the current turn belongs to calls that the model still works on.
        return drop_reasoning(message, draft.count) if draft.parts.turn[group] > 0 else None
    if step == "shorten_arguments" and any(block.kind == "reasoning" for block in message.blocks):
        # Reasoning is signed for its call: a rewritten call loses it, so calls of the current turn are not rewritten.
        if draft.parts.turn[group] == 0:
            return None
        message = without_reasoning(message)
    return _shorten(draft, message, _CHEAP[step], at=at, most=short)


def _shorten(
    draft: Draft, message: Message, kinds: tuple[BlockKind, ...], *, at: int, most: int
) -> Shortened | None:
    return shorten_blocks(message, kinds, at=at, most=most, count=draft.count, pointer=draft.pointer(at))


def _replace(draft: Draft, at: int, shorter: Shortened | None) -> int:
    """Put a shorter message in its place; return the tokens that this saves, 0 if it saves none."""
    if shorter is None or shorter.tokens >= draft.tokens[at]:
        return 0
    saved = draft.tokens[at] - shorter.tokens
    draft.tokens[at] = shorter.tokens
    draft.now[at] = shorter.message
    for cut in shorter.cuts:
        first = draft.cuts.get((at, cut.block), cut)
        draft.cuts[at, cut.block] = cut._replace(tokens_before=first.tokens_before)
    return saved


def restore_group(draft: Draft, group: int) -> None:
    """Put the messages of one group back as they were given."""
    for at in draft.parts.groups[group].members:
        draft.tokens[at] = draft.given[at]
        changed = draft.now.pop(at, draft.messages[at])
        for block in range(len(changed.blocks)):
            draft.cuts.pop((at, block), None)


def shorten_kept_results(draft: Draft, steps: Iterable[Step], *, most: int, limit: int, share: int) -> None:
    """Shorten the results of kept calls, oldest first, until at most `most` tokens are left.

    The model works on the newest results: they are shortened last, only to come below `limit`, and keep `share` tokens.
    """
    if "shorten_results" not in steps:
        return
    rank = draft.parts.pair
    kept = [at for at, is_kept in enumerate(draft.kept) if is_kept and rank[at] >= 0]
    shorten_groups(draft, ("shorten_results",), [at for at in kept if rank[at] > 0], goal=most)
    excess = used_tokens(draft) - limit
    for group in kept:
        results = draft.parts.groups[group].members
        for at in results if rank[group] == 0 else ():
            if excess > 0 and at not in draft.parts.protected:
                size = max(share // len(results), draft.tokens[at] - excess - MARKER_TOKENS)
                message = draft.now.get(at, draft.messages[at])
                excess -= _replace(draft, at, _shorten(draft, message, ("result",), at=at, most=size))


def fold_exploration(draft: Draft, groups: Sequence[int], *, goal: int) -> bool:
    """Drop runs of exploration among these groups, oldest first; return whether that reaches the goal."""
    excess = used_tokens(draft) - goal
    for run in _explorations(draft, groups):
        for at in run if excess > 0 else ():
            if draft.kept[at]:
                draft.kept[at] = False
                excess -= group_tokens(draft, at)
    return excess <= 0


def _explorations(draft: Draft, groups: Sequence[int]) -> list[list[int]]:
    groups_of = draft.parts.groups
    return list(exploration_runs((at, only_explores(draft.messages, groups_of[at])) for at in groups))


def lower_keep_counts(draft: Draft, policy: Policy, *, most: int, most_messages: int) -> tuple[int, int]:
    """Keep the groups that the keep counts hold, lowered until at most so many tokens and messages are left.

    The counts are lowered by one, turns first, then tool pairs, in alternation, down to one of each. Returns the counts.
    """
    parts = draft.parts
    draft.kept[:] = held_groups(parts, recent=policy.keep_recent_turns, pairs=policy.keep_tool_pairs)
    tokens = used_tokens(draft)
    messages = len(kept_positions(draft))
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
                tokens -= group_tokens(draft, at)
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


def drop_remarks(draft: Draft, *, most: int, most_messages: int) -> None:
    """Drop texts between the calls of the newest turn, oldest first, until at most so many tokens and messages are left."""
    over = len(kept_positions(draft)) - most_messages if most_messages else 0
    saved = _drop_unpinned(draft, most=most, over=over, calls=False)
    if saved:
        draft.steps.append(f"reduce: {saved:,} tokens said between calls")


def drop_newest_calls(draft: Draft, *, most: int) -> bool:
    """Drop even the newest calls that nothing pins until at most `most` tokens are left; return whether any was dropped.

    It is the last step: the summary says what they did, and the alternative is that the conversation is refused.
    """
    saved = _drop_unpinned(draft, most=most, over=0, calls=True)
    if saved:
        draft.steps.append(f"reduce: {saved:,} tokens of the newest calls, as nothing else makes it fit")
    return saved > 0


def _drop_unpinned(draft: Draft, *, most: int, over: int, calls: bool) -> int:
    """Drop groups that nothing pins, with `calls` those of calls too, oldest first; return the tokens that this saves."""
    before = excess = used_tokens(draft) - most
    for at, is_held in enumerate(draft.kept):
        if excess <= 0 and over <= 0:
            break
        if is_held and at not in draft.parts.pinned and (calls or draft.parts.pair[at] < 0):
            draft.kept[at] = False
            excess -= group_tokens(draft, at)
            over -= len(draft.parts.groups[at].members)
    return before - excess


def shorten_harder(draft: Draft, groups: Sequence[int], *, most: int) -> None:
    """Shorten messages of these groups, oldest first and ever shorter, until at most `most` tokens are left.

    Texts of a person are not shortened.
    """
    excess = used_tokens(draft) - most
    for size in HARD_SIZES:
        for group in groups:
            for at in draft.parts.groups[group].members:
                if excess > 0 and draft.tokens[at] > size and at not in draft.parts.protected:
                    excess -= _replace(draft, at, _shortened_to(draft, group, at, size, excess))


def _shortened_to(draft: Draft, group: int, at: int, size: int, excess: int) -> Shortened | None:
    message = draft.now.get(at, draft.messages[at])
    shorter = drop_reasoning(message, draft.count) if draft.parts.turn[group] > 0 else None
    if shorter is not None:
        return shorter
    kinds: tuple[BlockKind, ...] = ("result",)
    if message.role == "assistant" and at not in (draft.parts.opening, draft.parts.newest):
        kinds = ("result", "call", "text")
    alone = sum(block.kind in kinds for block in message.blocks) == 1
    most = max(size, draft.tokens[at] - excess - MARKER_TOKENS) if alone else size
    return _shorten(draft, message, kinds, at=at, most=most)


def shorten_opening(draft: Draft, *, most: int) -> bool:
    """Shorten the opening request unless it is protected or the newest; return whether that was needed and possible."""
    at = draft.parts.opening
    excess = used_tokens(draft) - most
    if excess <= 0 or at < 0 or at == draft.parts.newest or at in draft.parts.protected:
        return False
    message = draft.now.get(at, draft.messages[at])
    saved = 0
    for size in (max(SHORT, draft.tokens[at] - excess - MARKER_TOKENS), *HARD_SIZES[1:]):
        if saved < excess:
            saved += _replace(draft, at, _shorten(draft, message, ("text",), at=at, most=size))
    return saved > 0


def shorten_text(text: str, *, most: int, count: Counter, tokens: int, pointer: str = "") -> str:
    r"""Return `text` with its middle cut out, so that at most `most` of its `tokens` are left.

    With less room than the line about the cut needs, that line alone is returned, which may have more tokens; a pointer
    that would take more than half of the room is left out: the summary has one to all that was cut.

    >>> shorten_text("one two three four five six " * 9, most=30, count=lambda text: len(text.split()), tokens=54)
    'one two three four\n[… 48 tokens cut]\nfive six'
    """
    width = int(len(text) / max(1, tokens) * max(0, most - MARKER_TOKENS))
    where = f"; full text: {pointer}" if pointer and 2 * count(pointer) <= most else ""
    for _ in range(_TRIES):
        # The cut is at line ends if they are near.
        ahead, behind = int(width * HEAD_SHARE), width - int(width * HEAD_SHARE)
        head, tail = text[:ahead], text[len(text) - behind :] if behind else ""
        end, start = head.rfind("\n"), tail.find("\n")
        head = head[:end].rstrip() if end >= ahead * (1 - _LINE_SHARE) else head.rstrip()
        tail = tail[start + 1 :].strip() if 0 <= start <= behind * _LINE_SHARE else tail.strip()
        removed = max(1, tokens - count(head) - count(tail)) if width else tokens
        shorter = "\n".join(filter(None, (head, f"[… {removed:,} tokens cut{where}]", tail)))
        if not width or count(shorter) <= most:
            break
        width = int(width * _NARROWER)
    return shorter


def shorten_blocks(
    message: Message, kinds: tuple[BlockKind, ...], *, at: int, most: int, count: Counter, pointer: str
) -> Shortened | None:
    """Return `message` with every text of these kinds at most `most` tokens long; None if none is longer."""
    changed, cuts = message, list[Cut]()
    for index, block in enumerate(message.blocks):
        if block.kind not in kinds or not block.at or len(block.text) <= most:
            continue
        before = count(block.text)
        text: str | None = None
        if before > most and block.kind == "call":
            text = _shorten_arguments(block.text, most=most, count=count, pointer=pointer)
        elif before > most:
            text = shorten_text(block.text, most=most, count=count, tokens=before, pointer=pointer)
        after = before if text is None else count(text)
        if text is not None and after < before:
            changed = with_text(changed, index, text)
            cuts.append(Cut(at, index, before, after, pointer))
    return Shortened(changed, message_tokens(changed, count), tuple(cuts)) if cuts else None


def _shorten_arguments(arguments: str, *, most: int, count: Counter, pointer: str) -> str | None:
    """Return JSON arguments with their long texts shortened; None if they are not an object."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    if not isinstance(given, dict):
        return None
    texts: list[str] = []
    _mapped(given, texts.append, 0)
    each = max(MARKER_TOKENS, most // max(1, sum(len(text) > MARKER_TOKENS for text in texts)))

    def shorter(text: str) -> str:
        size = count(text) if len(text) > each else 0
        if size <= each:
            return text
        return shorten_text(text, most=each, count=count, tokens=size, pointer=pointer)

    return json.dumps(_mapped(given, shorter, 0), ensure_ascii=False)


def _mapped(value: Any, change: Callable[[str], Any], depth: int) -> Any:
    if isinstance(value, str):
        return change(value)
    if depth < _DEEPEST and isinstance(value, dict):
        return {key: _mapped(inner, change, depth + 1) for key, inner in value.items()}
    if depth < _DEEPEST and isinstance(value, list):
        return [_mapped(inner, change, depth + 1) for inner in value]
    return value


def drop_reasoning(message: Message, count: Counter) -> Shortened | None:
    """Return `message` without its reasoning; None if it has none, or nothing else."""
    if not any(block.kind == "reasoning" for block in message.blocks):
        return None
    changed = without_reasoning(message)
    if changed is message or changed.raw is message.raw:
        return None
    return Shortened(changed, message_tokens(changed, count), ())


def only_explores(messages: Sequence[Message], group: Group) -> bool:
    """Return whether all calls of `group` only read and succeeded, with no remark of a person and not a line of text beside.

    More text may be a finding or its cause, which reading again does not bring back.
    """
    if group.open:
        return False
    calls: list[Block] = []
    said: list[str] = []
    for at in group.members:
        role = messages[at].role
        for block in messages[at].blocks:
            if (block.kind == "text" and role == "user") or (block.kind == "result" and block.is_error):
                return False
            if block.kind == "call":
                calls.append(block)
            elif block.kind == "text" and role == "assistant":
                said.append(block.text)
    return bool(calls) and all(map(only_reads, calls)) and all(map(is_brief, said))


def only_reads(call: Block) -> bool:
    """Return whether a call changes nothing.

    >>> only_reads(Block("call", tool="read_file", arguments={"path": "a.py"})), only_reads(Block("call", tool="Edit"))
    (True, False)
    >>> only_reads(Block("call", tool="Bash", arguments={"command": "ls src | head"}))
    True
    """
    ran, verb = shell_command(call.arguments), as_text(call.arguments.get("command"))
    named_so = _names_reading(call.tool)
    if (ran or verb) and not named_so:
        return verb in _VIEWS or (bool(ran) and _command_reads(ran))
    return named_so and next(file_changes(dict(call.arguments), ran), None) is None


@lru_cache(maxsize=_REMEMBERED)
def _names_reading(tool: str) -> bool:
    return _READS.search(CAMEL.sub("_", tool)) is not None


@lru_cache(maxsize=_REMEMBERED)
def _command_reads(command: str) -> bool:
    return shell.only_reads(command) and not _WRITES.search(command)


def exploration_runs(candidates: Iterable[tuple[int, bool]]) -> Iterator[list[int]]:
    """Yield the runs of at least `LEAST_RUN` explorations among `candidates`, groups in order.

    >>> list(exploration_runs([(1, True), (2, True), (4, True), (5, False), (6, True)]))
    [[1, 2, 4]]
    """
    run: list[int] = []
    for at, explores in [*candidates, (-1, False)]:
        if explores:
            run.append(at)
            continue
        if len(run) >= LEAST_RUN:
            yield run
        run = []

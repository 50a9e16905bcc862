"""The ladder: what is done to a conversation so that it fits, the cheapest and the oldest first.

A rung changes the draft and nothing else, does no more than is needed, and never touches what is protected.
The messages themselves are never changed: a draft holds the new ones beside them.

Shortening: the head and the tail of a long text, and between them a line that says what is missing and where.

Results, arguments and texts are shortened in place, so a message keeps its shape and its partners; arguments
stay valid JSON. Only text that can be rewritten is touched.

Exploration: tool calls that only looked around, which can be told in one line each.

Reads, searches, listings and shell commands that change nothing. What was read stays known by the facts of
the summary; the contents can be read again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from aether.compaction.partition import Parts
from aether.compaction.shapes import Cut, Policy, Step
from aether.messages.convert import with_text, without_reasoning
from aether.messages.model import Block, BlockKind, Group, Message, as_text
from aether.messages.shell import only_reads as shell_only_reads
from aether.messages.tool_calls import file_changes, shell_command
from aether.text.classify import asserts
from aether.tokens.count import message_tokens
from aether.types import Counter

# An answer says what it is at its beginning and how it ended at its end; errors stand at either.
HEAD_SHARE = 0.65
# Tokens: room for the line that says what was cut.
MARKER_TOKENS = 24
# Each try takes this share of what the last one had; a head may be denser than the text as a whole.
_NARROWER = 0.6
_TRIES = 8
# A cut at a line end is worth this share of a side.
_LINE_SHARE = 0.25
_DEEPEST = 32


class Shortened(NamedTuple):
    """A message with shorter texts, its tokens, and what was cut."""

    message: Message
    tokens: int
    cuts: tuple[Cut, ...]


def shorten_text(text: str, *, most: int, count: Counter, tokens: int, pointer: str = "") -> str:
    r"""Return `text` with its middle cut out, so that of its `tokens` at most `most` are left.

    Below what the marker needs, the marker alone is returned, and no tokens are promised.

    >>> shorter("one two three four five six " * 9, most=30, count=lambda text: len(text.split()), tokens=54)
    'one two three four\n[… 48 tokens cut]\nfive six'
    """
    width = int(len(text) / max(1, tokens) * max(0, most - MARKER_TOKENS))
    for _ in range(_TRIES):
        head, tail = _sides(text, width)
        gone = max(1, tokens - count(head) - count(tail)) if width else tokens
        where = f"; full text: {pointer}" if pointer else ""
        told = "\n".join(filter(None, (head, f"[… {gone:,} tokens cut{where}]", tail)))
        if not width or count(told) <= most:
            break
        width = int(width * _NARROWER)
    return told


def _sides(text: str, width: int) -> tuple[str, str]:
    """Return a head and a tail of `text` of `width` characters together, cut at line ends where they are near."""
    ahead, behind = int(width * HEAD_SHARE), width - int(width * HEAD_SHARE)
    head, tail = text[:ahead], text[len(text) - behind :] if behind else ""
    end, start = head.rfind("\n"), tail.find("\n")
    if end >= ahead * (1 - _LINE_SHARE):
        head = head[:end]
    if 0 <= start <= behind * _LINE_SHARE:
        tail = tail[start + 1 :]
    return head.rstrip(), tail.strip()


def shorten_blocks(
    message: Message, kinds: tuple[BlockKind, ...], *, at: int, most: int, count: Counter, pointer: str
) -> Shortened | None:
    """Return `message` with every text of these kinds at most `most` tokens long; None where none is longer."""
    changed, cuts = message, list[Cut]()
    for index, block in enumerate(message.blocks):
        if block.kind not in kinds or not block.at or len(block.text) <= most:
            continue
        before = count(block.text)
        text = _less(block, before, most=most, count=count, pointer=pointer) if before > most else None
        after = before if text is None else count(text)
        if text is not None and after < before:
            changed = with_text(changed, index, text)
            cuts.append(Cut(at, index, before, after, pointer))
    return Shortened(changed, message_tokens(changed, count), tuple(cuts)) if cuts else None


def _less(block: Block, tokens: int, *, most: int, count: Counter, pointer: str) -> str | None:
    if block.kind != "call":
        return shorten_text(block.text, most=most, count=count, tokens=tokens, pointer=pointer)
    return _less_arguments(block, most=most, count=count, pointer=pointer)


def _less_arguments(block: Block, *, most: int, count: Counter, pointer: str) -> str | None:
    """Return the arguments with their long texts shortened; None where they are no JSON object."""
    try:
        given = json.loads(block.text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(given, dict):
        return None
    texts = [text for text in _leaves(given, 0) if len(text) > MARKER_TOKENS]
    each = max(MARKER_TOKENS, most // max(1, len(texts)))

    def less(text: str) -> str:
        size = count(text) if len(text) > each else 0
        return (
            shorten_text(text, most=each, count=count, tokens=size, pointer=pointer) if size > each else text
        )

    return json.dumps(_mapped(given, less, 0), ensure_ascii=False)


def _leaves(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth < _DEEPEST and isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner, depth + 1)


def _mapped(value: Any, change: Any, depth: int) -> Any:
    if isinstance(value, str):
        return change(value)
    if depth < _DEEPEST and isinstance(value, dict):
        return {key: _mapped(inner, change, depth + 1) for key, inner in value.items()}
    if depth < _DEEPEST and isinstance(value, list):
        return [_mapped(inner, change, depth + 1) for inner in value]
    return value


def drop_reasoning(message: Message, count: Counter) -> Shortened | None:
    """Return `message` without its reasoning; None where it has none beside what it led to."""
    if not any(block.kind == "reasoning" for block in message.blocks):
        return None
    changed = without_reasoning(message)
    return None if changed is message or changed.raw is message.raw else Shortened(
        changed, message_tokens(changed, count), ()
    )  # fmt: skip


# Two looks may be an answer and a second thought; three are a search.
LEAST_RUN = 3

_READS = re.compile(
    r"(?:^|[_\-.])(?:read|view|open|cat|glob|grep|search|find|list|ls|tree|get|fetch|look|browse|show|query|inspect|scan)(?:$|[_\-.s])",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# What editors with several commands call looking.
_VIEWS = frozenset({"view", "read", "open"})
# Output that goes into a file, and looking that ends in doing.
_WRITES = re.compile(
    r"(?<![-=])>(?!&|\s*/dev/null)|\s-(?:delete|exec|execdir|i)\b|\bxargs\s+(?!grep|wc|ls|cat|head|rg)\S"
)


def only_explores(messages: Sequence[Message], group: Group) -> bool:
    """Tell whether all calls of `group` only look, none failed, and nobody says beside them what was found."""
    blocks = [block for at in group.members for block in messages[at].blocks]
    calls = [block for block in blocks if block.kind == "call"]
    failed = any(block.kind == "result" and block.is_error for block in blocks)
    asked = any(
        messages[at].role == "user" and any(block.kind == "text" for block in messages[at].blocks)
        for at in group.members
    )
    return (
        bool(calls)
        and not failed
        and not asked
        and not group.open
        and all(map(only_reads, calls))
        and not states_finding(messages, group)
    )


def states_finding(messages: Sequence[Message], group: Group) -> bool:
    """Tell whether the model states something in `group`: a finding or a cause, which looking again does not bring back."""
    said = (messages[at] for at in group.members if messages[at].role == "assistant")
    return any(_asserts(block.text) for one in said for block in one.blocks if block.kind == "text")


# A climb asks of the same messages on several rungs.
_asserts = lru_cache(maxsize=4_096)(asserts)


def only_reads(call: Block) -> bool:
    """Tell whether a call only looks.

    >>> looks(Block("call", tool="read_file", arguments={"path": "a.py"})), looks(Block("call", tool="Edit"))
    (True, False)
    >>> looks(Block("call", tool="Bash", arguments={"command": "ls src | head"}))
    True
    """
    ran, verb = shell_command(call.arguments), as_text(call.arguments.get("command"))
    if (ran or verb) and not _READS.search(_name(call.tool)):
        return verb in _VIEWS or (bool(ran) and shell_only_reads(ran) and not _WRITES.search(ran))
    if next(file_changes(dict(call.arguments), ran), None) is not None:
        return False
    return bool(_READS.search(_name(call.tool)))


def _name(tool: str) -> str:
    return _CAMEL.sub("_", tool)


def exploration_runs(candidates: Iterable[tuple[int, bool]]) -> Iterator[list[int]]:
    """Yield the runs of at least `LEAST_RUN` explorations among `candidates`, groups in order.

    >>> list(runs([(1, True), (2, True), (4, True), (5, False), (6, True)]))
    [[1, 2, 4]]
    """
    run: list[int] = []
    for at, looks_only in [*candidates, (-1, False)]:
        if looks_only:
            run.append(at)
            continue
        if len(run) >= LEAST_RUN:
            yield run
        run = []


# Tokens: an answer of up to so many is left alone, a longer one keeps so many. A screen of text says what it was.
SHORTEN_FROM = 400
SHORT = 200
# In a small window a screen is too much: this share of the goal.
SHORT_SHARE = 1 / 16
# When nothing else helps, what stays is shortened in these steps; the last one is little more than the marker.
HARD_SIZES = (SHORT, 64, MARKER_TOKENS + 8)


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


def used_tokens(draft: Draft) -> int:
    """Return the tokens of all that is kept, without a new summary."""
    return draft.overhead + sum(draft.tokens[at] for at in kept_positions(draft))


def kept_positions(draft: Draft) -> Iterator[int]:
    """Yield the positions that are kept, group by group."""
    for at, group in enumerate(draft.parts.groups):
        if draft.kept[at]:
            yield from group.members


def group_tokens(draft: Draft, group: int) -> int:
    """Return the tokens of one group as it would be now."""
    return sum(draft.tokens[at] for at in draft.parts.groups[group].members)


def held_groups(parts: Parts, *, recent: int, pairs: int) -> list[bool]:
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


def loose_groups(parts: Parts, held: Sequence[bool]) -> list[int]:
    """Return the groups that nothing holds, summaries aside, oldest first."""
    summaries = frozenset(parts.summaries)
    return [at for at in range(len(parts.groups)) if not held[at] and at not in summaries]


def cannot_reach(draft: Draft, policy: Policy, groups: Sequence[int], *, goal: int) -> bool:
    """Tell whether the cheap steps in these groups could not reach the goal even at their best.

    Then they are not taken, unless what they shorten may stay; what is removed need not be shortened first.
    """
    if policy.keep_middle or policy.keep_requests:
        return False
    folds = _explorations(draft, groups) if "fold_exploration" in policy.steps else []
    drops = {at for run in folds for at in run}
    most = sum(group_tokens(draft, at) for at in drops)
    for at in groups:
        for member in draft.parts.groups[at].members if at not in drops else ():
            most += max(0, draft.tokens[member] - _short(goal))
    return used_tokens(draft) - most > goal


def _short(goal: int) -> int:
    return max(HARD_SIZES[-1], min(SHORT, int(goal * SHORT_SHARE)))


def shorten_groups(draft: Draft, steps: Iterable[Step], groups: Sequence[int], *, goal: int) -> None:
    """Take the cheap steps, in the order of the policy, in these groups, until the goal is reached."""
    short = _short(goal)
    for step in steps:
        excess = used_tokens(draft) - goal
        if excess <= 0 or step not in _CHEAP:
            continue
        for group in groups:
            if excess > 0:
                excess -= _lightened(draft, step, group, short, excess)


def shorten_group(draft: Draft, steps: Iterable[Step], group: int, *, goal: int) -> None:
    """Take the cheap steps in one group, however much it brings."""
    for step in steps:
        if step in _CHEAP:
            _lightened(draft, step, group, _short(goal), group_tokens(draft, group))


def _lightened(draft: Draft, step: str, group: int, short: int, excess: int) -> int:
    saved = 0
    for at in draft.parts.groups[group].members:
        if saved < excess and at not in draft.parts.protected:
            saved += _taken(draft, at, _lighter(draft, step, group, at, short))
    return saved


def restore_group(draft: Draft, group: int) -> None:
    """Put the messages of one group back as they were given."""
    for at in draft.parts.groups[group].members:
        draft.tokens[at] = draft.given[at]
        changed = draft.now.pop(at, draft.messages[at])
        for block in range(len(changed.blocks)):
            draft.cuts.pop((at, block), None)


def shorten_kept_results(draft: Draft, steps: Iterable[Step], *, most: int, limit: int, share: int) -> None:
    """Shorten the results of calls that are kept, oldest first, until at most `most` tokens are left.

    The model works on the newest: they are shortened last, only to come below `limit`, and keep `share` tokens.
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
                lighter = shorten_blocks(
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
        return drop_reasoning(message, draft.count) if draft.parts.turn[group] > 0 else None
    if draft.tokens[at] <= SHORTEN_FROM * short // SHORT:
        return None
    if step == "shorten_arguments" and any(block.kind == "reasoning" for block in message.blocks):
        # Reasoning is signed for what it led to: what is rewritten loses it, and what goes on is not rewritten.
        if draft.parts.turn[group] == 0:
            return None
        message = without_reasoning(message)
    return shorten_blocks(
        message, _CHEAP[step], at=at, most=short, count=draft.count, pointer=draft.pointer(at)
    )


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


def fold_exploration(draft: Draft, groups: Sequence[int], *, goal: int) -> bool:
    """Drop runs of exploration among these groups, oldest first; tell whether that reaches the goal."""
    excess = used_tokens(draft) - goal
    for run in _explorations(draft, groups):
        for at in run if excess > 0 else ():
            if draft.kept[at]:
                draft.kept[at] = False
                excess -= group_tokens(draft, at)
    return excess <= 0


def _explorations(draft: Draft, groups: Sequence[int]) -> list[list[int]]:
    return list(
        exploration_runs((at, only_explores(draft.messages, draft.parts.groups[at])) for at in groups)
    )


def lower_keep_counts(draft: Draft, policy: Policy, *, most: int, most_messages: int) -> tuple[int, int]:
    """Keep what the keep counts hold, lowered one at a time until that has at most so many tokens and messages.

    The turns are lowered first, then the tool pairs, in turns, down to one of each. Returns the counts.
    """
    parts = draft.parts
    held = held_groups(parts, recent=policy.keep_recent_turns, pairs=policy.keep_tool_pairs)
    draft.kept[:] = held
    tokens = used_tokens(draft)
    messages = sum(1 for _ in kept_positions(draft))
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
    """Drop what is said between the calls of the newest turn, oldest first, until at most so much is left."""
    excess = used_tokens(draft) - most
    over = sum(1 for _ in kept_positions(draft)) - most_messages if most_messages else 0
    before = excess
    for at, is_held in enumerate(draft.kept):
        if excess <= 0 and over <= 0:
            break
        if is_held and at not in draft.parts.pinned and draft.parts.pair[at] < 0:
            draft.kept[at] = False
            excess -= group_tokens(draft, at)
            over -= len(draft.parts.groups[at].members)
    if excess < before:
        draft.steps.append(f"reduce: {before - excess:,} tokens said between calls")


def shorten_harder(draft: Draft, groups: Sequence[int], *, most: int) -> None:
    """Shorten what stays in these groups, oldest first and ever harder, until at most `most` tokens are left."""
    excess = used_tokens(draft) - most
    for size in HARD_SIZES:
        for group in groups:
            for at in draft.parts.groups[group].members:
                if excess > 0 and draft.tokens[at] > size and at not in draft.parts.protected:
                    excess -= _taken(draft, at, _much_lighter(draft, group, at, size, excess))


def _much_lighter(draft: Draft, group: int, at: int, size: int, excess: int) -> Shortened | None:
    message = draft.now.get(at, draft.messages[at])
    kinds = _kinds(draft, at, message)
    lighter = drop_reasoning(message, draft.count) if draft.parts.turn[group] > 0 else None
    if lighter is not None or not kinds:
        return lighter
    alone = sum(block.kind in kinds for block in message.blocks) == 1
    most = max(size, draft.tokens[at] - excess - MARKER_TOKENS) if alone else size
    return shorten_blocks(message, kinds, at=at, most=most, count=draft.count, pointer=draft.pointer(at))


def _kinds(draft: Draft, at: int, message: Message) -> tuple[BlockKind, ...]:
    """Return what of a message may be shortened at the end: what a person says is not among it."""
    if at in (draft.parts.opening, draft.parts.newest):
        return ("result",)
    return ("result", "call", "text") if message.role == "assistant" else ("result",)


def shorten_opening(draft: Draft, *, most: int) -> bool:
    """Shorten the opening request, where it is neither protected nor the newest; tell whether that was needed."""
    at = draft.parts.opening
    excess = used_tokens(draft) - most
    if excess <= 0 or at < 0 or at == draft.parts.newest or at in draft.parts.protected:
        return False
    message = draft.now.get(at, draft.messages[at])
    saved = 0
    for size in (max(SHORT, draft.tokens[at] - excess - MARKER_TOKENS), *HARD_SIZES[1:]):
        if saved < excess:
            lighter = shorten_blocks(
                message, ("text",), at=at, most=size, count=draft.count, pointer=draft.pointer(at)
            )
            saved += _taken(draft, at, lighter)
    return saved > 0

"""Groups: which messages stand and fall together, and which turn each belongs to.

A provider refuses a tool result without its call, a call without its result, and reasoning without what it
led to. So nothing cuts between messages; it cuts between groups. The groups of a conversation are a
partition of its positions, ordered by first member. What a provider refuses is decided in
`aether.messages.check`, from the provider's rules and not from these groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from aether.messages.message import Message

GroupKind = Literal["system", "user", "assistant", "tools", "orphan"]


class Group(NamedTuple):
    """Messages that are kept or dropped together."""

    kind: GroupKind
    """`tools`: calls, all their results, and the reasoning before them. `orphan`: results without a call."""
    members: tuple[int, ...]
    """Positions, ascending; not necessarily without gaps."""
    calls: tuple[str, ...] = ()
    """Ids of the calls, in order."""
    open: bool = False
    """Whether a call lacks its result."""


def groups(messages: Sequence[Message]) -> list[Group]:
    """Return the groups of `messages`, in time proportional to their number.

    A result belongs to the nearest earlier call of its id that has none yet, because some programs use an
    id again. Calls of one response, and calls whose results are interleaved, are one group.

    >>> from aether.messages.message import Block
    >>> call = Message("assistant", (Block("call", call_id="a"),), {}, "openai")
    >>> result = Message("tool", (Block("result", call_id="a"),), {}, "openai")
    >>> [(group.kind, group.members, group.open) for group in groups([call, result])]
    [('tools', (0, 1), False)]
    """
    parents = list(range(len(messages)))
    waiting = _paired(messages, parents)
    _join_runs(messages, parents)
    _join_interleaved(parents)
    members: dict[int, list[int]] = {}
    for at in range(len(messages)):
        members.setdefault(_root(parents, at), []).append(at)
    return [_group(messages, found, waiting) for found in members.values()]


def turns(messages: Sequence[Message], groups: Sequence[Group]) -> list[tuple[int, ...]]:
    """Return the turns, each as positions in `groups`; together they are all groups in order.

    A turn starts at a user message that says or shows something; what comes before the first one is a
    turn too.
    """
    found: list[list[int]] = []
    for at, group in enumerate(groups):
        if not found or (group.kind == "user" and any(_says(messages[member]) for member in group.members)):
            found.append([])
        found[-1].append(at)
    return [tuple(turn) for turn in found]


def _says(message: Message) -> bool:
    return any(block.kind != "text" or block.text.strip() for block in message.blocks)


def _paired(messages: Sequence[Message], parents: list[int]) -> set[int]:
    """Join each result to its call; return the positions that hold a call without one."""
    unanswered: dict[str, list[int]] = {}
    for at, message in enumerate(messages):
        for block in message.blocks:
            if block.kind == "call":
                unanswered.setdefault(block.call_id, []).append(at)
            elif block.kind == "result" and unanswered.get(block.call_id):
                _join(parents, unanswered[block.call_id].pop(), at)
    return {at for found in unanswered.values() for at in found}


def _join_runs(messages: Sequence[Message], parents: list[int]) -> None:
    """Join, in each run of assistant messages, reasoning to all that follows it, and calls to each other."""
    opener: int | None = None
    caller: int | None = None
    for at, message in enumerate(messages):
        if message.role != "assistant":
            opener = caller = None
            continue
        kinds = {block.kind for block in message.blocks}
        if opener is not None:
            _join(parents, opener, at)
        if kinds == {"reasoning"}:
            opener = at
        if "call" in kinds:
            if caller is not None:
                _join(parents, caller, at)
            caller = at


def _join_interleaved(parents: list[int]) -> None:
    """Join groups whose stretches from first to last member cross."""
    last: dict[int, int] = {}
    for at in range(len(parents)):
        last[_root(parents, at)] = at
    current, until = -1, -1
    for at in range(len(parents)):
        root = _root(parents, at)
        if at == root and last[root] > at:
            if at < until:
                _join(parents, current, at)
                until = max(until, last[root])
            else:
                current, until = at, last[root]


def _root(parents: list[int], at: int) -> int:
    """Return the first member of the group that `at` is in."""
    while parents[at] != at:
        parents[at] = parents[parents[at]]
        at = parents[at]
    return at


def _join(parents: list[int], one: int, other: int) -> None:
    low, high = sorted((_root(parents, one), _root(parents, other)))
    parents[high] = low


def _group(messages: Sequence[Message], members: list[int], waiting: set[int]) -> Group:
    calls = tuple(block.call_id for at in members for block in messages[at].blocks if block.kind == "call")
    return Group(
        _kind([messages[at] for at in members], calls), tuple(members), calls, not waiting.isdisjoint(members)
    )


def _kind(members: Iterable[Message], calls: tuple[str, ...]) -> GroupKind:
    if calls:
        return "tools"
    first, *_ = members
    if any(block.kind == "result" for block in first.blocks) or first.role == "tool":
        return "orphan"
    return first.role

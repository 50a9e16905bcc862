"""Messages: one role-tagged entry of a conversation, read once and kept exactly as it came.

A message has the dict it was read from (`raw`) and the blocks in it. Whoever sends it on to the same provider sends
`raw`, so unknown fields and block types survive. A block has the place of its text in `raw`, so that a step that
shortens it changes that text and nothing else.

Groups are messages that are kept or dropped together: a provider refuses a tool result without its call, a call without
its result, and reasoning without the item it led to. The groups of a conversation are a partition of its positions,
ordered by first member. The rules of the providers are checked in `aether.messages.validate`, independent of groups.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from aether.text.regex import lazy
from aether.types import JsonObject

ProviderFormat = Literal["anthropic", "openai", "responses", "gemini", "plain"]
"""The form of messages at a provider: Anthropic Messages, OpenAI Chat Completions, OpenAI Responses items, Gemini
contents, and `{role, content, meta?}` of no provider in particular."""
PROVIDER_FORMATS: tuple[ProviderFormat, ...] = get_args(ProviderFormat)
Role = Literal["system", "user", "assistant", "tool"]
BlockKind = Literal["text", "call", "result", "reasoning", "media", "other"]
GroupKind = Literal["system", "user", "assistant", "tools", "orphan"]

NOTHING: Any = MappingProxyType({})
IMAGE = "[image]"
IMAGES = frozenset({"image", "image_url", "input_image"})
# Only the head of an answer is searched: a failure is reported there, a quoted one further down.
_HEAD_CHARS = 400
_EXIT = lazy(
    r"^(?:exit code:?|process exited with code|exited with code|command .{0,200}? exit code|<returncode>) ?(-?\d+)",
    re.IGNORECASE | re.MULTILINE,
)
_FAILED = lazy(
    r"(?:error\b|ran into \[errno|traceback \(most recent call last\)|<tool_use_error>)", re.IGNORECASE
)


class Block(NamedTuple):
    """One piece of a message: a text, a call, a result, reasoning or media."""

    kind: BlockKind
    text: str = ""
    """The text that a model reads: of a call its arguments as JSON, of a result the answer of the tool; of media and
    unknown blocks nothing or their JSON."""
    at: tuple[str | int, ...] = ()
    """Keys that lead from `raw` to that text, of media to their block; empty if it cannot be rewritten."""
    call_id: str = ""
    """Of a call and its result; in a format without ids, one made of name and order."""
    tool: str = ""
    arguments: JsonObject = NOTHING
    is_error: bool = False
    replaces_history: bool = False
    """Whether it is the provider's own compaction: whatever comes before it is not read any more."""


class Message(NamedTuple):
    """One entry of a conversation."""

    role: Role
    """`system` for developers too; `tool` if it has nothing but results."""
    blocks: tuple[Block, ...]
    raw: JsonObject
    format: ProviderFormat

    @property
    def text(self) -> str:
        """Return its texts, joined by newlines."""
        return "\n".join(block.text for block in self.blocks if block.kind == "text")


class Group(NamedTuple):
    """Messages that are kept or dropped together."""

    kind: GroupKind
    """`tools`: calls, all their results, and the reasoning before them. `orphan`: results without a call."""
    members: tuple[int, ...]
    """Positions, ascending; not necessarily without gaps."""
    open: bool = False
    """Whether a call lacks its result."""


def groups(messages: Sequence[Message]) -> list[Group]:
    """Return the groups of `messages`, in time proportional to their number.

    A result belongs to the nearest earlier call of its id that has no result yet, because some programs use an
    id again. Calls of one response, and calls whose results are interleaved, are one group.

    >>> call = Message("assistant", (Block("call", call_id="a"),), {}, "openai")
    >>> result = Message("tool", (Block("result", call_id="a"),), {}, "openai")
    >>> [(group.kind, group.members, group.open) for group in groups([call, result])]
    [('tools', (0, 1), False)]
    """
    parents = list(range(len(messages)))
    unanswered: dict[str, list[int]] = {}
    for index, message in enumerate(messages):
        for block in message.blocks:
            if block.kind == "call":
                unanswered.setdefault(block.call_id, []).append(index)
            elif block.kind == "result" and unanswered.get(block.call_id):
                _join(parents, unanswered[block.call_id].pop(), index)
    waiting = {index for calls in unanswered.values() for index in calls}
    _join_runs(messages, parents)
    _join_interleaved(parents)
    members: dict[int, list[int]] = {}
    for index in range(len(messages)):
        members.setdefault(_root(parents, index), []).append(index)
    return [_group(messages, calls, waiting) for calls in members.values()]


def turns(messages: Sequence[Message], groups: Sequence[Group]) -> list[tuple[int, ...]]:
    """Return the turns, each as positions in `groups`; together they are all groups in order.

    A turn starts at a user message with text or media; the groups before the first one are a turn too.
    """
    listed: list[list[int]] = []
    for index, group in enumerate(groups):
        blocks = (block for member in group.members for block in messages[member].blocks)
        new = group.kind == "user" and any(block.kind != "text" or block.text.strip() for block in blocks)
        if new or not listed:
            listed.append([])
        listed[-1].append(index)
    return [tuple(turn) for turn in listed]


def _join_runs(messages: Sequence[Message], parents: list[int]) -> None:
    """Join, in each run of assistant messages, reasoning to all that follows it, and calls to each other."""
    opener: int | None = None
    caller: int | None = None
    for index, message in enumerate(messages):
        if message.role != "assistant":
            opener = caller = None
            continue
        kinds = {block.kind for block in message.blocks}
        if opener is not None:
            _join(parents, opener, index)
        if kinds == {"reasoning"}:
            opener = index
        if "call" in kinds:
            if caller is not None:
                _join(parents, caller, index)
            caller = index


def _join_interleaved(parents: list[int]) -> None:
    """Join groups whose ranges from first to last member cross."""
    last: dict[int, int] = {}
    for index in range(len(parents)):
        last[_root(parents, index)] = index
    current, until = -1, -1
    for index in range(len(parents)):
        root = _root(parents, index)
        if index == root and last[root] > index:
            if index < until:
                _join(parents, current, index)
                until = max(until, last[root])
            else:
                current, until = index, last[root]


def _root(parents: list[int], node: int) -> int:
    """Return the first member of the group that `node` is in."""
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


def _join(parents: list[int], first: int, second: int) -> None:
    low, high = sorted((_root(parents, first), _root(parents, second)))
    parents[high] = low


def _group(messages: Sequence[Message], members: list[int], waiting: set[int]) -> Group:
    calls = any(block.kind == "call" for index in members for block in messages[index].blocks)
    first = messages[members[0]]
    results = first.role == "tool" or any(block.kind == "result" for block in first.blocks)
    kind: GroupKind = "tools" if calls else "orphan" if results else first.role  # type: ignore[assignment]
    return Group(kind, tuple(members), not waiting.isdisjoint(members))


def content_text(content: Any) -> str:
    """Return all text in `content` as one text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text for text in map(content_text, content) if text)
    if isinstance(content, dict):
        if as_text(content.get("type")) in IMAGES:
            return IMAGE
        inner = content.get("text", content.get("content", ""))
        return content_text(inner) if isinstance(inner, (str, list, dict)) else ""
    return ""


def as_arguments(arguments: Any) -> JsonObject:
    """Return the arguments of a call as an object; any other text becomes its `input`."""
    if isinstance(arguments, dict):
        return arguments
    if not isinstance(arguments, str) or not arguments:
        return {}
    try:
        parsed = json.loads(arguments)
    except (ValueError, RecursionError):
        return {"input": arguments}
    return parsed if isinstance(parsed, dict) else {"input": arguments}


def is_failure_text(text: str) -> bool:
    """Return whether the answer of a tool reports a failure, for formats without a flag for it.

    >>> [is_failure_text(text) for text in ("Exit code 2", "Exit code: 0", "Error: no such file", "3 errors found")]
    [True, False, True, False]
    """
    head = text[:_HEAD_CHARS].lstrip()
    code = _EXIT.search(head)
    return int(code[1]) != 0 if code else bool(_FAILED.match(head))


def as_text(value: Any) -> str:
    """Return `value` if it is text, else an empty text."""
    return value if isinstance(value, str) else ""


def as_object(value: Any) -> JsonObject:
    """Return `value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}

"""Messages: one role-tagged entry of a conversation, read once and kept exactly as it came.

A message holds the dict it was read from (`raw`) and what that dict says (`blocks`). Whoever sends it on
to the same kind of provider sends `raw`, so unknown fields and block types survive untouched. A block says
where in `raw` its text stands, so that a step that shortens it changes that text and nothing else.

Content blocks: what a message says, calls and receives, in the spellings of several vendors.

Message content is a string, a list of blocks, a single block or nothing; blocks are dicts, strings or
neither. Whatever cannot be read as text is left out, never raised about.

Groups: which messages stand and fall together, and which turn each belongs to.

A provider refuses a tool result without its call, a call without its result, and reasoning without what it
led to. So nothing cuts between messages; it cuts between groups. The groups of a conversation are a
partition of its positions, ordered by first member. What a provider refuses is decided in
`aether.messages.validate`, from the provider's rules and not from these groups.

Layout: how a JSON text was printed, so that a changed one is printed alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from aether.messages.records import Record
from aether.text.regex import lazy
from aether.types import JsonObject

ProviderFormat = Literal["anthropic", "openai", "responses", "gemini", "plain"]
"""How a provider spells messages: Anthropic Messages, OpenAI Chat Completions, OpenAI Responses items, Gemini
contents, and `{role, content, meta?}` of nobody in particular."""
PROVIDER_FORMATS: tuple[ProviderFormat, ...] = get_args(ProviderFormat)
Role = Literal["system", "user", "assistant", "tool"]
BlockKind = Literal["text", "call", "result", "reasoning", "media", "other"]

_NOTHING: Any = MappingProxyType({})


class Block(NamedTuple):
    """One thing that a message says, calls, receives, thinks or shows."""

    kind: BlockKind
    text: str = ""
    """What a model reads of it: of a call its arguments as JSON text, of a result what the tool answered, of media
    and unknown blocks nothing or their JSON."""
    at: tuple[str | int, ...] = ()
    """Keys that lead from `raw` to where that text stands, of media to their block; empty where it cannot be rewritten."""
    call_id: str = ""
    """Of a call and its result; where a format has no ids, one made of name and order."""
    tool: str = ""
    arguments: JsonObject = _NOTHING
    is_error: bool = False


class Message(NamedTuple):
    """One entry of a conversation."""

    role: Role
    """`system` for developers too; `tool` where nothing but results stands in it."""
    blocks: tuple[Block, ...]
    raw: JsonObject
    wire: ProviderFormat

    @property
    def text(self) -> str:
        """Return what its text blocks say, joined by newlines."""
        return "\n".join(block.text for block in self.blocks if block.kind == "text")


IMAGE = "[image]"
_IMAGES = {"image", "image_url", "input_image"}
# Only the head of an answer is looked at: a failure announces itself there, a quoted one does not.
_HEAD_CHARS = 400
_EXIT = lazy(
    r"^(?:exit code:?|process exited with code|exited with code|command .{0,200}? exit code|<returncode>) ?(-?\d+)",
    re.IGNORECASE | re.MULTILINE,
)
_FAILED = lazy(r"(?:error\b|traceback \(most recent call last\)|<tool_use_error>)", re.IGNORECASE)


class Part(NamedTuple):
    """One piece of a message; `kind` is `text`, `call` or `result`."""

    kind: str
    text: str = ""
    tool: str = ""
    arguments: JsonObject = {}  # noqa: RUF012 - a NamedTuple default, never mutated
    call_id: str = ""
    is_error: bool = False


def parts(content: Any) -> Iterator[tuple[int, Part]]:
    """Yield what `content` says, calls and receives, each with its position.

    >>> [part.kind for _, part in parts(["hello", 7, {"type": "tool_use", "name": "Bash"}])]
    ['text', 'call']
    """
    blocks = content if isinstance(content, list) else [content]
    for position, block in enumerate(blocks):
        if isinstance(block, str):
            part = Part("text", block)
        elif isinstance(block, dict):
            found = _part(block)
            if found is None:
                continue
            part = found
        else:
            continue
        if part.kind != "text" or part.text.strip():
            yield position, part


def _part(block: JsonObject) -> Part | None:
    match block.get("type"):
        case "text" | "input_text" | "output_text" | None:
            return Part("text", as_text(block.get("text")))
        case "tool_use" | "toolCall":
            arguments = block.get("input", block.get("arguments"))
            return Part(
                "call", "", as_text(block.get("name")), as_arguments(arguments), as_text(block.get("id"))
            )
        case "tool_result":
            text = content_text(block.get("content"))
            broken = block.get("is_error")
            return Part(
                "result",
                text,
                call_id=as_text(block.get("tool_use_id")),
                is_error=is_failure_text(text) if broken is None else bool(broken),
            )
        case "image" | "image_url" | "input_image":
            return Part("text", IMAGE)
        case _:
            return None


def with_part(head: Record, part: Part, speaker: Any) -> Record:
    """Return `head` with what `part` says; `speaker` is the kind of its plain text."""
    kind: Any = speaker if part.kind == "text" else part.kind
    return head._replace(
        kind=kind,
        text=part.text,
        tool=part.tool,
        arguments=part.arguments,
        call_id=part.call_id,
        is_error=part.is_error,
    )


def content_text(content: Any) -> str:
    """Return all that `content` says as one text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text for text in map(content_text, content) if text)
    if isinstance(content, dict):
        if as_text(content.get("type")) in _IMAGES:
            return IMAGE
        inner = content.get("text", content.get("content", ""))
        return content_text(inner) if isinstance(inner, (str, list, dict)) else ""
    return ""


def as_arguments(arguments: Any) -> JsonObject:
    """Return the arguments of a call as an object; text that holds none becomes its `input`."""
    if isinstance(arguments, dict):
        return arguments
    if not isinstance(arguments, str) or not arguments:
        return {}
    try:
        read = json.loads(arguments)
    except (ValueError, RecursionError):
        return {"input": arguments}
    return read if isinstance(read, dict) else {"input": arguments}


def is_failure_text(text: str) -> bool:
    """Tell whether the answer of a tool says that it failed, where the format has no flag for it.

    >>> failed("Exit code 2"), failed("Exit code: 0"), failed("Error: no such file"), failed("3 errors found")
    (True, False, True, False)
    """
    head = text[:_HEAD_CHARS].lstrip()
    code = _EXIT.search(head)
    return int(code[1]) != 0 if code else bool(_FAILED.match(head))


def as_text(value: Any) -> str:
    """Return `value` where it is text, else nothing."""
    return value if isinstance(value, str) else ""


def as_object(value: Any) -> JsonObject:
    """Return `value` where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


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

    >>> from aether.messages.model import Block
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


_INDENTED = re.compile(rb"\s*[\[{]\r?\n(\t| +)")
_SPACED = re.compile(rb'"(?:[^"\\]|\\.)*":( ?)')


class Layout(NamedTuple):
    """What `json.dumps` needs to print like the source."""

    indent: int | str | None = None
    spaced: bool = True
    """A space after each colon and comma."""
    ascii: bool = False
    end: str = ""


def layout_of(source: bytes) -> Layout:
    r"""Return the layout of a JSON text, told from how it opens.

    >>> layout_of(b'{\n  "a": 1\n}\n')
    Layout(indent=2, spaced=True, ascii=False, end='\n')
    >>> layout_of(b'[{"a":1,"b":2}]').spaced
    False
    """
    opening = _INDENTED.match(source)
    blank = opening[1] if opening else b""
    indent = "\t" if blank == b"\t" else len(blank)
    key = _SPACED.search(source)
    return Layout(
        indent or None,
        spaced=not key or bool(key[1]),
        ascii=source.isascii() and b"\\u" in source,
        end="\n" if source.endswith(b"\n") else "",
    )


def dumps(value: Any, layout: Layout) -> bytes:
    r"""Return `value` printed so; text that is no Unicode, a lone surrogate, is escaped.

    >>> dumps({"a": ["é", 1]}, Layout())
    b'{"a": ["\xc3\xa9", 1]}'
    """
    comma = ", " if layout.spaced and layout.indent is None else ","
    separators = (comma, ": " if layout.spaced else ":")
    text = json.dumps(value, ensure_ascii=layout.ascii, indent=layout.indent, separators=separators)
    try:
        return (text + layout.end).encode()
    except UnicodeEncodeError:
        return dumps(value, layout._replace(ascii=True))

"""Steps: shorter forms of single messages, and the calls that only explored.

Shortening keeps the head and the tail of a text, with a line between them that says how much is missing and where it
is. Only text that can be rewritten is shortened, so a message keeps its shape and its partners, and arguments stay
valid JSON. Exploration is calls that change nothing: reads, searches, listings; their contents can be read again. Which
messages are shortened, and when, is decided in `fit`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from aether.conversation.partition import is_brief
from aether.conversation.shapes import Cut
from aether.messages import shell
from aether.messages.convert import with_text, without_reasoning
from aether.messages.model import Block, BlockKind, Group, Message, as_text
from aether.messages.tool_calls import CAMEL, file_changes, shell_command
from aether.tokens.count import message_tokens
from aether.types import Counter

# Tokens for the line that says how much was cut.
MARKER_TOKENS = 24
# A text says what it is at its head and how it ended at its tail; errors are at either.
HEAD_SHARE = 0.65
# Two reads may be an answer and a second thought; three are a search.
LEAST_RUN = 3
# Each try takes this share of the last one's characters; a head may be denser than the text as a whole.
_NARROWER, _TRIES = 0.6, 8
# Share of a side that may be given up to cut at a line end.
_LINE_SHARE = 0.25
_DEEPEST = 32
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


class Shortened(NamedTuple):
    """A message with shorter texts, its tokens, and its cuts."""

    message: Message
    tokens: int
    cuts: tuple[Cut, ...]


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
    message: Message, kinds: Collection[BlockKind], *, at: int, most: int, count: Counter, pointer: str
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
        values = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict):
        return None
    lengths: list[int] = []
    _map_texts(values, lambda text: lengths.append(len(text)), 0)
    share = max(MARKER_TOKENS, most // max(1, sum(length > MARKER_TOKENS for length in lengths)))

    def shorter(text: str) -> str:
        size = count(text) if len(text) > share else 0
        if size <= share:
            return text
        return shorten_text(text, most=share, count=count, tokens=size, pointer=pointer)

    return json.dumps(_map_texts(values, shorter, 0), ensure_ascii=False)


def _map_texts(value: Any, change: Callable[[str], Any], depth: int) -> Any:
    if isinstance(value, str):
        return change(value)
    if depth < _DEEPEST and isinstance(value, dict):
        return {key: _map_texts(inner, change, depth + 1) for key, inner in value.items()}
    if depth < _DEEPEST and isinstance(value, list):
        return [_map_texts(inner, change, depth + 1) for inner in value]
    return value


def has_reasoning(message: Message) -> bool:
    """Return whether `message` has a block of reasoning."""
    return any(block.kind == "reasoning" for block in message.blocks)


def drop_reasoning(message: Message, count: Counter) -> Shortened | None:
    """Return `message` without its reasoning; None if it has none, or nothing else."""
    changed = without_reasoning(message) if has_reasoning(message) else message
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
    remarks: list[str] = []
    for index in group.members:
        role = messages[index].role
        for block in messages[index].blocks:
            if (block.kind == "text" and role == "user") or (block.kind == "result" and block.is_error):
                return False
            if block.kind == "call":
                calls.append(block)
            elif block.kind == "text" and role == "assistant":
                remarks.append(block.text)
    return bool(calls) and all(map(only_reads, calls)) and all(map(is_brief, remarks))


def only_reads(call: Block) -> bool:
    """Return whether a call changes nothing.

    >>> only_reads(Block("call", tool="read_file", arguments={"path": "a.py"})), only_reads(Block("call", tool="Edit"))
    (True, False)
    >>> only_reads(Block("call", tool="Bash", arguments={"command": "ls src | head"}))
    True
    """
    command, verb = shell_command(call.arguments), as_text(call.arguments.get("command"))
    is_reader = _READS.search(CAMEL.sub("_", call.tool)) is not None
    if (command or verb) and not is_reader:
        return verb in _VIEWS or (bool(command) and _command_reads(command))
    return is_reader and next(file_changes(dict(call.arguments), command), None) is None


# Several steps of a compaction, and all compactions of a conversation, ask about the same commands.
@lru_cache(maxsize=4_096)
def _command_reads(command: str) -> bool:
    return shell.only_reads(command) and not _WRITES.search(command)


def exploration_runs(candidates: Iterable[tuple[int, bool]]) -> Iterator[list[int]]:
    """Yield the runs of at least `LEAST_RUN` explorations among `candidates`, groups in order.

    >>> list(exploration_runs([(1, True), (2, True), (4, True), (5, False), (6, True)]))
    [[1, 2, 4]]
    """
    run: list[int] = []
    for index, explores in [*candidates, (-1, False)]:
        if explores:
            run.append(index)
            continue
        if len(run) >= LEAST_RUN:
            yield run
        run = []

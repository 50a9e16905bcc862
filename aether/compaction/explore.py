"""Exploration: tool calls that only looked around, which can be told in one line each.

Reads, searches, listings and shell commands that change nothing. What was read stays known by the facts of
the summary; the contents can be read again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from aether.messages.blocks import word
from aether.messages.groups import Group
from aether.messages.message import Block, Message
from aether.messages.shell import looks_around
from aether.messages.tool_calls import command, file_changes
from aether.text.classify import asserts

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


def explores(messages: Sequence[Message], group: Group) -> bool:
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
        and all(map(looks, calls))
        and not finds(messages, group)
    )


def finds(messages: Sequence[Message], group: Group) -> bool:
    """Tell whether the model states something in `group`: a finding or a cause, which looking again does not bring back."""
    said = (messages[at] for at in group.members if messages[at].role == "assistant")
    return any(_asserts(block.text) for one in said for block in one.blocks if block.kind == "text")


# A climb asks of the same messages on several rungs.
_asserts = lru_cache(maxsize=4_096)(asserts)


def looks(call: Block) -> bool:
    """Tell whether a call only looks.

    >>> looks(Block("call", tool="read_file", arguments={"path": "a.py"})), looks(Block("call", tool="Edit"))
    (True, False)
    >>> looks(Block("call", tool="Bash", arguments={"command": "ls src | head"}))
    True
    """
    ran, verb = command(call.arguments), word(call.arguments.get("command"))
    if (ran or verb) and not _READS.search(_name(call.tool)):
        return verb in _VIEWS or (bool(ran) and looks_around(ran) and not _WRITES.search(ran))
    if next(file_changes(dict(call.arguments), ran), None) is not None:
        return False
    return bool(_READS.search(_name(call.tool)))


def _name(tool: str) -> str:
    return _CAMEL.sub("_", tool)


def runs(candidates: Iterable[tuple[int, bool]]) -> Iterator[list[int]]:
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

"""Removed text: the messages that compactions took out of a conversation, by compaction, by number or by words.

A message keeps its number in the log of its conversation for ever, so that a model can ask for it by number after any
number of compactions. Summaries are left out: the messages that they replaced are here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from math import log as logarithm
from typing import Literal, NamedTuple

from aether.api.compact_views import last_step
from aether.api.conversations import record_directory
from aether.api.home import Home
from aether.messages.convert import read
from aether.store import conversations, history
from aether.text.words import query_terms, terms


class RemovedPart(NamedTuple):
    """One piece of a removed message."""

    kind: str
    """`text`, `call`, `result`, `reasoning`, `media` or `other`."""
    tool: str
    """The tool of a call or a result, if it is known."""
    text: str
    """The text, the arguments of a call as JSON, or the answer of a tool."""
    failed: bool


class RemovedMessage(NamedTuple):
    """One message that is no longer in the context of its conversation as it was."""

    number: int
    """Its number in the log of the conversation; it never changes."""
    change: Literal["removed", "shortened"]
    """Whether a shortened copy is still in the context."""
    role: str
    parts: tuple[RemovedPart, ...]


def removed_by_compaction(
    conversation_id: str, step: int | None = None, *, home: Home = None
) -> tuple[int, list[RemovedMessage]]:
    """Return the step of a compaction, by default the newest that is not undone, and the messages that it took out.

    Raises:
        NotFound: there is no such conversation, or no such compaction.
    """
    log = conversations.load(record_directory(home), conversation_id)
    step = last_step(log) if step is None else step
    _, _, receipt = history.compaction(log, step)
    compaction = log.compactions[step - 1]
    shortened = {compaction.before[place] for place in receipt["places"] if place is not None} - set(
        compaction.after
    )
    return step, _messages(log, {*compaction.before} - {*compaction.after}, shortened)


def removed_from_context(conversation_id: str, *, home: Home = None) -> list[RemovedMessage]:
    """Return every message of a conversation that is not in its context any more, oldest first; none without a log."""
    log = conversations.load(record_directory(home), conversation_id)
    live = set(log.context)
    shortened: set[int] = set()
    for step in log.open:
        compaction = log.compactions[step - 1]
        copies = zip(compaction.receipt["places"], compaction.after, strict=False)
        shortened |= {
            compaction.before[place] for place, copy in copies if place is not None and copy in live
        }
    return _messages(log, {*range(1, len(log.texts) + 1)} - live, shortened)


def _messages(log: history.Log, numbers: set[int], shortened: set[int]) -> list[RemovedMessage]:
    original_numbers = [number for number, step in enumerate(log.derived, 1) if not step]
    messages = read(
        history.messages(log, original_numbers)
    )  # all: the call of a result may still be in the context
    tools = {
        block.call_id: block.tool for message in messages for block in message.blocks if block.kind == "call"
    }
    return [
        RemovedMessage(
            number, "shortened" if number in shortened else "removed", message.role,
            tuple(
                RemovedPart(block.kind, block.tool or tools.get(block.call_id, ""), block.text, block.is_error)
                for block in message.blocks
            ),
        )
        for number, message in zip(original_numbers, messages, strict=True) if number in numbers
    ]  # fmt: skip


def best_matches(messages: Iterable[RemovedMessage], query: str, *, limit: int) -> list[RemovedMessage]:
    """Return the messages that hold the words of `query`, the best first; rare words weigh more."""
    weights = query_terms(query).weights
    candidates = []
    for message in messages:
        message_terms = terms("\n".join(f"{part.tool} {part.text}" for part in message.parts))
        if matched := weights.keys() & {*message_terms.words, *message_terms.parts}:
            candidates.append((message, matched))
    number = {word: sum(word in matched for _, matched in candidates) for word in weights}
    weight = {word: weights[word] * logarithm(1 + len(candidates) / (1 + number[word])) for word in weights}
    ranked = sorted(
        candidates, key=lambda candidate: (-sum(weight[word] for word in candidate[1]), -candidate[0].number)
    )
    return [message for message, _ in ranked[:limit]]


def message_lines(message: RemovedMessage) -> Iterator[str]:
    """Yield the lines of a message for a reader: its number and role, then each part with all its text."""
    mark = " (a shortened copy is in the context)" if message.change == "shortened" else ""
    yield f"[{message.number}] {message.role}{mark}"
    for part in message.parts:
        if part.kind == "call":
            yield from _call_lines(part)
        elif part.kind == "result":
            yield f"← {part.tool}{' failed' if part.failed else ''}:".replace("← :", "←")
            yield from part.text.splitlines()
        elif part.kind == "reasoning":
            yield from [f"(reasoning) {part.text}"] if part.text.strip() else []
        else:
            yield from (part.text or f"[{part.kind}]").splitlines()


def _call_lines(part: RemovedPart) -> Iterator[str]:
    """Yield the lines of a call; arguments of several lines, such as the text of an edit, each as a block of its own."""
    try:
        arguments = json.loads(part.text)
    except ValueError:
        arguments = None
    texts = isinstance(arguments, dict) and [
        argument for argument in arguments.values() if isinstance(argument, str)
    ]
    if not texts or not any("\n" in argument for argument in texts):
        yield f"→ {part.tool} {part.text}".rstrip()
        return
    yield f"→ {part.tool}"
    for name, value in arguments.items():
        lines = value.splitlines() if isinstance(value, str) else [json.dumps(value, ensure_ascii=False)]
        if len(lines) > 1:
            yield f"  {name}:"
            yield from (f"    {line}" for line in lines)
        else:
            yield f"  {name}: {''.join(lines)}"

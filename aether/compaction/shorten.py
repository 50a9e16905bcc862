"""Shortening: the head and the tail of a long text, and between them a line that says what is missing and where.

Results, arguments and texts are shortened in place, so a message keeps its shape and its partners; arguments
stay valid JSON. Only text that can be rewritten is touched.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from aether.compaction.shapes import Cut
from aether.messages.formats import with_text, without_reasoning
from aether.messages.message import Block, BlockKind, Message
from aether.shapes import Counter
from aether.tokens.messages import message_tokens

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


def shorter(text: str, *, most: int, count: Counter, tokens: int, pointer: str = "") -> str:
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


def shortened(
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
        return shorter(block.text, most=most, count=count, tokens=tokens, pointer=pointer)
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
        return shorter(text, most=each, count=count, tokens=size, pointer=pointer) if size > each else text

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


def thoughtless(message: Message, count: Counter) -> Shortened | None:
    """Return `message` without its reasoning; None where it has none beside what it led to."""
    if not any(block.kind == "reasoning" for block in message.blocks):
        return None
    changed = without_reasoning(message)
    return None if changed is message or changed.raw is message.raw else Shortened(
        changed, message_tokens(changed, count), ()
    )  # fmt: skip

"""Passages: what a summary shall stand for, cut into stretches that a model reads one after the other.

The summary of one stretch is the previous summary of the next, so that the last one stands for all. Every text
goes to exactly one stretch, in order; one that is too large is cut at a line or a blank, and nothing of it is
left out.
"""

from __future__ import annotations

import json

from aether.backends.chunks import cut
from aether.shapes import Counter, JsonObject


def passages(task: JsonObject, *, most_tokens: int, count: Counter) -> list[JsonObject]:
    """Return tasks that share the messages of `task`, each of at most `most_tokens` of messages.

    >>> task = {"said": [{"at": 0, "text": "one two"}, {"at": 1, "text": "three"}]}
    >>> [part["said"] for part in passages(task, most_tokens=9, count=lambda text: len(text) // 4)]
    [[{'at': 0, 'text': 'one two'}], [{'at': 1, 'text': 'three'}]]
    """
    groups: list[list[JsonObject]] = [[]]
    filled = 0
    for said in task["said"]:
        for piece, size in _pieces(said, most_tokens, count):
            if filled and filled + size > most_tokens:
                groups.append([])
                filled = 0
            groups[-1].append(piece)
            filled += size
    return [{**task, "said": group} for group in groups]


def said_tokens(task: JsonObject, count: Counter) -> int:
    """Return the tokens of all messages of `task`, as a model is shown them."""
    return sum(_size(said, count) for said in task["said"])


def _pieces(said: JsonObject, most: int, count: Counter) -> list[tuple[JsonObject, int]]:
    size = _size(said, count)
    if size <= most or not said["text"]:
        return [(said, size)]
    frame = _size({**said, "text": ""}, count)
    share = max(1, most - frame) / max(1, size - frame)
    pieces = ({**said, "text": text} for text in cut(said["text"], int(len(said["text"]) * share)))
    return [(piece, _size(piece, count)) for piece in pieces]


def _size(said: JsonObject, count: Counter) -> int:
    return count(json.dumps(said, ensure_ascii=False))

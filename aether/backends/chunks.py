"""Chunks: a hand-off too large for one answer, asked for in parts and put together again.

Everything here is a pure function of hand-offs and sessions. Each item goes to exactly one part, in
order; an item too large for a part is cut at a line or a blank, and nothing of it is left out.

Passages: what a summary shall stand for, cut into stretches that a model reads one after the other.

The summary of one stretch is the previous summary of the next, so that the last one stands for all. Every text
goes to exactly one stretch, in order; one that is too large is cut at a line or a blank, and nothing of it is
left out.
"""

from __future__ import annotations

import json
from typing import Any

from aether.backends.request import item_line
from aether.types import Counter, JsonObject

# A blank within this share of a cut is preferred to a cut inside a word.
_LOOK_BACK_SHARE = 0.2
_LISTS = {"key_decisions": "decision", "outcomes": "result", "high_value_items": "content"}


def split_handoff(handoff: JsonObject, *, most_tokens: int, count: Counter) -> list[JsonObject]:
    """Return hand-offs that share the items of `handoff`, each of at most `most_tokens` of items.

    The target is shared by size; a protected statement goes with the item it comes from.
    """
    groups: list[list[JsonObject]] = [[]]
    filled = 0
    for item, size in _pieces(handoff["items"], most_tokens, count):
        if filled and filled + size > most_tokens:
            groups.append([])
            filled = 0
        groups[-1].append(item)
        filled += size
    if len(groups) == 1:
        return [{**handoff, "items": groups[0], "item_count": len(groups[0])}]
    return [_part(handoff, group, nth, count) for nth, group in enumerate(groups)]


def merge_sessions(handoff: JsonObject, sessions: list[JsonObject]) -> JsonObject:
    """Return one session from those of the parts: summaries in order, lists without exact repeats.

    >>> merge({"compression_id": "c", "prepared_at": "t", "phase": 1}, [
    ...     {"summary": "A.", "outcomes": [{"result": "x"}]}, {"summary": "B.", "outcomes": [{"result": "x"}]}])
    ... # doctest: +NORMALIZE_WHITESPACE
    {'id': 'c', 'session_id': 'c', 'compressed_at': 't', 'phase': 1, 'summary': 'A. B.',
     'key_decisions': [], 'outcomes': [{'result': 'x'}], 'high_value_items': []}
    """
    summaries = (session.get("summary") for session in sessions)
    return {
        "id": handoff["compression_id"],
        "session_id": handoff["compression_id"],
        "compressed_at": handoff["prepared_at"],
        "phase": handoff["phase"],
        "summary": " ".join(text.strip() for text in summaries if isinstance(text, str) and text.strip()),
        **{name: _joined(sessions, name, key) for name, key in _LISTS.items()},
    }


def find_session(text: str) -> JsonObject | None:
    """Return the first JSON object with a summary that stands in `text`, fenced or among words.

    >>> session_in('Here it is: {"summary": "Done."} Bye')
    {'summary': 'Done.'}
    """
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at >= 0:
        try:
            found, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            if isinstance(found.get("summary"), str):
                return dict(found)
        at = text.find("{", end)
    return None


def _part(handoff: JsonObject, items: list[JsonObject], nth: int, count: Counter) -> JsonObject:
    tokens = sum(count(item["content"]) for item in items)
    ids = {item["id"] for item in items}
    known = {item["id"] for item in handoff["items"]}
    share = tokens / max(1, sum(count(item["content"]) for item in handoff["items"]))
    return {
        **handoff,
        "items": items,
        "item_count": len(items),
        "total_tokens": tokens,
        "target_tokens": max(1, round(handoff["target_tokens"] * share)),
        "protected": [
            statement
            for statement in handoff.get("protected", [])
            if statement.get("id") in ids or (nth == 0 and statement.get("id") not in known)
        ],
    }


def _pieces(items: list[JsonObject], most: int, count: Counter) -> list[tuple[JsonObject, int]]:
    found: list[tuple[JsonObject, int]] = []
    for item in items:
        size = _size(item, count)
        if size <= most:
            found.append((item, size))
            continue
        frame = _size({**item, "content": ""}, count)
        share = max(1, most - frame) / max(1, size - frame)
        for content in cut_text(item["content"], int(len(item["content"]) * share)):
            piece = {**item, "content": content}
            found.append((piece, _size(piece, count)))
    return found


def _size(item: JsonObject, count: Counter) -> int:
    return count(json.dumps(item_line(item), ensure_ascii=False))


def cut_text(text: str, chars: int) -> list[str]:
    """Return `text` in pieces of about `chars` characters, cut at a line or a blank where one is near.

    >>> cut("one two three", 8)
    ['one two ', 'three']
    """
    pieces = []
    at, step = 0, max(1, chars)
    while at < len(text):
        end = at + step
        if end < len(text):
            near = max(at, end - int(step * _LOOK_BACK_SHARE))
            blank = max(text.rfind("\n", near, end), text.rfind(" ", near, end))
            end = blank + 1 if blank >= 0 else end
        pieces.append(text[at:end])
        at = end
    return pieces


def _joined(sessions: list[JsonObject], name: str, key: str) -> list[Any]:
    seen: dict[str, JsonObject] = {}
    for session in sessions:
        entries = session.get(name)
        for entry in entries if isinstance(entries, list) else []:
            if isinstance(entry, dict) and isinstance(entry.get(key), str):
                seen.setdefault(entry[key], entry)
    return list(seen.values())


def split_task(task: JsonObject, *, most_tokens: int, count: Counter) -> list[JsonObject]:
    """Return tasks that share the messages of `task`, each of at most `most_tokens` of messages.

    >>> task = {"said": [{"at": 0, "text": "one two"}, {"at": 1, "text": "three"}]}
    >>> [part["said"] for part in passages(task, most_tokens=9, count=lambda text: len(text) // 4)]
    [[{'at': 0, 'text': 'one two'}], [{'at': 1, 'text': 'three'}]]
    """
    groups: list[list[JsonObject]] = [[]]
    filled = 0
    for said in task["said"]:
        for piece, size in _split_message(said, most_tokens, count):
            if filled and filled + size > most_tokens:
                groups.append([])
                filled = 0
            groups[-1].append(piece)
            filled += size
    return [{**task, "said": group} for group in groups]


def task_tokens(task: JsonObject, count: Counter) -> int:
    """Return the tokens of all messages of `task`, as a model is shown them."""
    return sum(_message_size(said, count) for said in task["said"])


def _split_message(said: JsonObject, most: int, count: Counter) -> list[tuple[JsonObject, int]]:
    size = _message_size(said, count)
    if size <= most or not said["text"]:
        return [(said, size)]
    frame = _message_size({**said, "text": ""}, count)
    share = max(1, most - frame) / max(1, size - frame)
    pieces = ({**said, "text": text} for text in cut_text(said["text"], int(len(said["text"]) * share)))
    return [(piece, _message_size(piece, count)) for piece in pieces]


def _message_size(said: JsonObject, count: Counter) -> int:
    return count(json.dumps(said, ensure_ascii=False))

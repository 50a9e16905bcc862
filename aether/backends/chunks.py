"""Chunks: a hand-off or a summary task that is too large for one prompt, in parts, and their sessions as one.

Everything here is a pure function of hand-offs, tasks and sessions. Each item or text goes to exactly one part, in
order; one that is too large for a part is cut at a line or a blank, and nothing of it is left out. The parts are sent by
`dialog`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from aether.backends.request import item_line
from aether.types import Counter, JsonObject

# A blank within this share of a cut is preferred to a cut inside a word.
_LOOK_BACK_SHARE = 0.2
_LISTS = {"key_decisions": "decision", "outcomes": "result", "high_value_items": "content"}


def split_handoff(handoff: JsonObject, *, most_tokens: int, count: Counter) -> list[JsonObject]:
    """Return hand-offs that share the items of `handoff`, each of at most `most_tokens` of items.

    The target is shared by size; a protected statement goes with its item.
    """

    def size(item: JsonObject) -> int:
        return _json_tokens(item_line(item), count)

    groups = _grouped(handoff["items"], "content", size, most_tokens)
    if len(groups) == 1:
        return [{**handoff, "items": groups[0], "item_count": len(groups[0])}]
    return [_part(handoff, group, nth, count) for nth, group in enumerate(groups)]


def split_task(task: JsonObject, *, most_tokens: int, count: Counter) -> list[JsonObject]:
    """Return tasks that share the messages of `task`, each of at most `most_tokens` of messages.

    >>> task = {"said": [{"at": 0, "text": "one two"}, {"at": 1, "text": "three"}]}
    >>> [part["said"] for part in split_task(task, most_tokens=9, count=lambda text: len(text) // 4)]
    [[{'at': 0, 'text': 'one two'}], [{'at': 1, 'text': 'three'}]]
    """
    groups = _grouped(task["said"], "text", lambda said: _json_tokens(said, count), most_tokens)
    return [{**task, "said": group} for group in groups]


def task_tokens(task: JsonObject, count: Counter) -> int:
    """Return the tokens of all messages of `task`, as a model is shown them."""
    return sum(_json_tokens(said, count) for said in task["said"])


def _json_tokens(value: JsonObject, count: Counter) -> int:
    return count(json.dumps(value, ensure_ascii=False))


def _grouped(
    entries: Iterable[JsonObject], field: str, size: Callable[[JsonObject], int], most: int
) -> list[list[JsonObject]]:
    """Return the entries in groups of at most `most` tokens; the text in `field` of a larger one is cut."""
    groups: list[list[JsonObject]] = [[]]
    filled = 0
    for entry in entries:
        pieces, tokens = [entry], size(entry)
        if tokens > most and entry[field]:
            frame = size({**entry, field: ""})
            share = max(1, most - frame) / max(1, tokens - frame)
            texts = cut_text(entry[field], int(len(entry[field]) * share))
            pieces = [{**entry, field: text} for text in texts]
        for piece in pieces:
            tokens = size(piece)
            if filled and filled + tokens > most:
                groups.append([])
                filled = 0
            groups[-1].append(piece)
            filled += tokens
    return groups


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


def cut_text(text: str, chars: int) -> list[str]:
    """Return `text` in pieces of about `chars` characters, cut at a line or a blank if one is near.

    >>> cut_text("one two three", 8)
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


def merge_sessions(handoff: JsonObject, sessions: list[JsonObject]) -> JsonObject:
    """Return one session from those of the parts: summaries in order, lists without exact repeats.

    >>> merge_sessions({"compression_id": "c", "prepared_at": "t", "phase": 1}, [
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


def _joined(sessions: list[JsonObject], name: str, key: str) -> list[Any]:
    seen: dict[str, JsonObject] = {}
    for session in sessions:
        entries = session.get(name)
        for entry in entries if isinstance(entries, list) else []:
            if isinstance(entry, dict) and isinstance(entry.get(key), str):
                seen.setdefault(entry[key], entry)
    return list(seen.values())


def find_session(text: str) -> JsonObject | None:
    """Return the first JSON object with a summary in `text`, fenced or among words.

    >>> find_session('Here it is: {"summary": "Done."} Bye')
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

"""Kept: the items that a brief reads, those that a session keeps for later briefs, and what has ended.

Chosen by structure only: who wrote an item, its part in the conversation, and its age. No text is judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from aether import clock
from aether.errors import InvalidInput
from aether.memory.facts import stated_fact
from aether.memory.items import is_noted, items_of
from aether.memory.sessions import last_heard, sessions_of
from aether.memory.statements import end_of, statements_of

if TYPE_CHECKING:
    from aether.types import Ended, Item

# Explicit notes of these types hold until somebody ends them.
LASTING_TYPES = frozenset({"constraint", "preference", "decision", "blocker", "next"})
# How many of the newest items a session keeps by role or type, for each of its newest conversations: more than a brief has room for.
MOST_KEPT = {
    "request": 12, "answer": 6, "said": 4, "commit": 6, "plan": 1, "tree": 1, "summary": 1, "code_change": 40, "command": 12,
    "solution": 6, "error": 12,
}  # fmt: skip
MOST_NOTES = 20
KEPT_CONVERSATIONS = 2
# Of older sessions a brief reads only what outlasts their work.
RECENT_SESSIONS = 3
# The length of a stamp of `clock.stamp`.
_STAMP_CHARS = 27


def timestamp(text: object) -> str:
    """Return the time in `text` in the form of `clock.stamp`, or "" if it is not a time."""
    if isinstance(text, str) and len(text) == _STAMP_CHARS and text.endswith("Z"):
        return text
    if not text:  # as most corrections are
        return ""
    try:
        return clock.stamp(clock.parse(str(text)))
    except InvalidInput:
        return ""


def known_items(memory: Mapping[str, Any]) -> list[Item]:
    """Return the items that a brief is made of, the newest first: those of working memory, and those that sessions keep."""
    return _newest_first([*reversed(items_of(memory)), *_session_items(memory)])


def facts_in(memory: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the facts that the items of memory state, by the id of the item."""
    stored = (item for session in sessions_of(memory) for item in session["metadata"].get("items", []))
    return {item["id"]: fact for item in (*items_of(memory), *stored) if (fact := stated_fact(item))}


def _newest_first(items: Iterable[Item]) -> list[Item]:
    """Return the items that were not injected by time; those of equal times keep their order."""
    entries: list[tuple[str, Item]] = []
    for item in items:
        metadata = item["metadata"]
        if not metadata.get("injected"):
            time = timestamp(metadata["timestamp"])
            is_plain = time == metadata["timestamp"]  # a hand edit may have written another form
            entries.append(
                (time, item if is_plain else {**item, "metadata": {**metadata, "timestamp": time}})
            )
    return [item for _, item in sorted(entries, key=itemgetter(0), reverse=True)]


def newest_sessions(memory: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the sessions with their times, the newest first; of equal times, the one added later."""
    entries = [(timestamp(last_heard(session)), session) for session in sessions_of(memory)]
    entries.reverse()  # sorting keeps the order of equals
    return sorted(entries, key=itemgetter(0), reverse=True)


def _session_items(memory: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the items that sessions keep: the newest sessions all, the others what outlasts their work."""
    for place, (_, session) in enumerate(newest_sessions(memory)):
        items: list[Item] = session["metadata"].get("items", [])
        yield from (item for item in reversed(items) if place < RECENT_SESSIONS or outlasts(item))


def keeps_items(session: Mapping[str, Any]) -> bool:
    """Return whether `session` keeps items whole; very old ones keep none."""
    return bool((session.get("metadata") or {}).get("items"))


def outlasts(item: Item) -> bool:
    """Return whether an item holds beyond the work in which it was noted: it is protected, or noted on purpose to last."""
    return bool(item["metadata"].get("protected")) or (is_noted(item) and item["type"] in LASTING_TYPES)


def kept_items(items_of_session: Sequence[Item], ended: Collection[str] = ()) -> list[Item]:
    """Return those of the items `held` of a session that later briefs need, in their order, without the `ended` ids.

    These are all that outlast the work, the newest other notes, and of the newest conversations the newest requests, answers and facts.
    """
    newest = [item for item in _newest_first(reversed(items_of_session)) if item["id"] not in ended]
    ids = {item["id"] for item in newest if outlasts(item)}
    noted = [item for item in newest if is_noted(item)]
    ids.update(item["id"] for item in noted[:MOST_NOTES])
    work = [item for item in newest if not is_noted(item)]
    conversations = list(dict.fromkeys(item["metadata"].get("conversation", "") for item in work))
    for conversation in conversations[:KEPT_CONVERSATIONS]:
        numbers = Counter[str]()
        for item in work:
            part = item["metadata"].get("role") or item["type"]
            if item["metadata"].get("conversation", "") == conversation:
                numbers[part] += 1
                if numbers[part] <= MOST_KEPT.get(part, 0):
                    ids.add(item["id"])
    return [item for item in items_of_session if item["id"] in ids]


def ends_in(memory: Mapping[str, Any]) -> dict[str, Ended]:
    """Return how the items, patterns and statements ended that are not in force any more, by id."""
    entries = [*known_items(memory), *memory["long_term_memory"]["patterns"]]
    ended = {entry["id"]: end_of(entry) for entry in entries}
    statements = [statement for session in sessions_of(memory) for statement in statements_of(session)]
    ended |= {statement.id: statement.ended for statement in statements}
    return {name: end for name, end in ended.items() if end}


def revoked_in(memory: Mapping[str, Any]) -> dict[str, str]:
    """Return the ids of the items, patterns and statements that ended, with the time."""
    return {name: end["at"] for name, end in ends_in(memory).items()}

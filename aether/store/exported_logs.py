"""Conversations in an export of a home: the records of a log, without the messages that the history beside them has.

What comes from an export is checked before anything of it is stored: it may have been edited, or made by another program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

from aether import clock
from aether.errors import AetherError, InvalidDocument, shown
from aether.redact.redact import redacted
from aether.store import conversations
from aether.store.conversations import Log
from aether.store.log import seal_json
from aether.types import JsonObject

# Numbers that a record may have beyond the number of all records: those of messages that were lost.
MOST_LOST = 100_000
_MESSAGE = ("n", "at", "derived", "line", "more", "message")
_RUNS = ("before", "after", "late", "context")


def exported(home: Path, id: str) -> JsonObject:
    """Return a conversation as an export holds it, without secrets; only its `problem` if it cannot be read."""
    try:
        records = conversations.records_of(home, id)
        log = _replayed(home, id, records)
    except AetherError as reason:
        return {"conversation": id, "problem": str(reason)}
    return {
        "conversation": id,
        "history": redacted(conversations.history(log)),
        "context": redacted(conversations.context(log)),
        "compactions": [{"at": one.at, **one.receipt} for one in log.compactions],
        "records": redacted([*_without_messages(log, records)]),
    }


def records(home: Path, given: JsonObject, *, now: datetime) -> list[JsonObject]:
    """Return the records of an exported conversation, from which `bring_back` makes its log.

    An older export has only its messages, and the receipts of its compactions.

    Raises:
        InvalidDocument: they do not fit its messages.
    """
    id, history, context = given["conversation"], given["history"], given.get("context", [])  # noqa: A001
    try:
        if "records" not in given:
            return _made(id, history, context, given.get("compactions") or [], clock.stamp(now))
        found = _with_messages(id, given["records"], history)
        log = _replayed(home, id, found)
        if not log.torn and (len(conversations.said(log)), len(log.context)) == (len(history), len(context)):
            return found
    except (TypeError, ValueError, LookupError, AttributeError):
        pass
    what = f"what it has of conversation {shown(id)} does not fit together. Nothing was stored."
    raise InvalidDocument(what, fix="Export the home again.", where="conversations")


def _replayed(home: Path, id: str, records: Sequence[JsonObject]) -> Log:
    """Return the log that `bring_back` would write."""
    empty = conversations.empty(conversations.path_of(home, id), id)
    return conversations.extended(empty, b"".join(map(seal_json, records)))


def _without_messages(log: Log, records: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """Yield the records of a log, those of messages that its history has without the message."""
    left = set(conversations.said(log))
    for record in records:
        is_said = record.get("n") in left
        left.discard(record.get("n", 0))
        yield {key: value for key, value in record.items() if key != "message"} if is_said else record


def _with_messages(id: str, records: Sequence[JsonObject], history: Sequence[JsonObject]) -> list[JsonObject]:
    """Return exported records with their messages, and with the keys in the order that a log has.

    Raises:
        ValueError: there are more or fewer messages, or a number is impossible.
    """
    messages, made = iter(history), list[JsonObject]()
    for record in records:
        _require_possible(record, len(records) + MOST_LOST)
        whole: JsonObject = {"conversation": id} if "conversation" in record else {}
        whole |= {
            key: record[key] for key in (_MESSAGE if "n" in record else ("lost", "line")) if key in record
        }
        if "n" in record and "message" not in record:
            whole["message"] = next(messages, None)
        made.append(whole | {key: value for key, value in record.items() if key not in whole})
    if next(messages, None) is not None or any(one.get("message", one) is None for one in made):
        raise ValueError("there are more messages than records, or fewer")
    return made


def _require_possible(record: JsonObject, most: int) -> None:
    """Raise `ValueError` if a number in a record is so large that replaying it would need all memory."""
    runs: list[Any] = [record.get(key, []) for key in _RUNS] + [
        (record.get("snapshot") or {}).get("context", [])
    ]
    if any(not 0 < first <= last for each in runs for first, last in each):
        raise ValueError("a run of numbers ends before it starts")
    sizes = [sum(last - first + 1 for first, last in each) for each in runs]
    if max(record.get("n", 0), record.get("step", 0), record.get("line", 0) // 10, *sizes) > most:
        raise ValueError("a number is impossible")


def _made(
    id: str, history: Sequence[JsonObject], context: Sequence[JsonObject], receipts: Sequence[JsonObject], at: str
) -> list[JsonObject]:  # fmt: skip
    """Return the records of a conversation of which only its messages and the receipts of its compactions are known."""
    size = len(history)
    places: list[int | None] = []
    start = 0
    for one in context:
        places.append(next((n for n in range(start, size) if history[n] == one), None))
        start = start if places[-1] is None else places[-1] + 1
    made = [one for one, place in zip(context, places, strict=True) if place is None]
    following = count(size + 1)
    live = [next(following) if place is None else place + 1 for place in places]
    is_compacted = bool(receipts) and context != history
    said, derived = (history, made) if is_compacted else ([*history, *made], [])
    header = conversations.header_record(id)
    records = [header, *conversations.message_records(said, derived, above=1, at=at)]
    if is_compacted:
        sizes = {"messages_before": size, "messages_after": len(context)}
        receipt = {**receipts[-1], **sizes, "places": places, "protected": [], "imported": [*receipts]}
        return [*records, conversations.first_step(size, live, receipt, len(records) + 1, at)]
    taken_back = sorted({*range(1, len(said) + 1)} - {*live})
    return records + [
        {"line": line, "pop": n, "at": at} for line, n in enumerate(taken_back, len(records) + 1)
    ]

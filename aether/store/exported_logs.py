"""Conversations in an export of a home: the records of a log, without the messages that its history beside them has.

Records from an export are checked before anything is stored: it may have been edited, or made by another program.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import count
from pathlib import Path

from aether import clock
from aether.errors import AetherError, InvalidDocument, shown
from aether.redact.redact import redacted
from aether.store import conversations, history
from aether.store.history import Log
from aether.store.log import seal_json
from aether.types import JsonObject

# Messages that were lost have numbers, so that these may exceed the number of records.
MOST_LOST = 100_000
_MESSAGE = ("n", "at", "derived", "line", "more", "message")


def exported(home: Path, id: str) -> JsonObject:
    """Return a conversation as an export holds it, without secrets; only its `problem` if it cannot be read."""
    try:
        records = conversations.records_of(home, id)
        log = _replayed(home, id, records)
    except AetherError as reason:
        return {"conversation": id, "problem": str(reason)}
    said = set(history.said(log))
    bare = []
    for record in records:
        n = record.get("n")
        bare.append({key: field for key, field in record.items() if key != "message" or n not in said})
        said.discard(n or 0)
    return {
        "conversation": id,
        "history": redacted(history.history(log)),
        "context": redacted(history.context(log)),
        "compactions": [{"at": entry.at, **entry.receipt} for entry in log.compactions],
        "records": redacted(bare),
    }


def records(home: Path, given: JsonObject, *, now: datetime) -> list[JsonObject]:
    """Return the records of an exported conversation, from which `bring_back` makes its log.

    An older export has only its messages, and the receipts of its compactions.

    Raises:
        InvalidDocument: they do not match its messages.
    """
    id, messages, context = given["conversation"], given["history"], given.get("context", [])  # noqa: A001
    try:
        if "records" not in given:
            return _rebuilt(id, messages, context, given.get("compactions") or [], clock.stamp(now))
        complete = _with_messages(id, given["records"], messages)
        log = _replayed(home, id, complete)
        if not log.torn and (len(history.said(log)), len(log.context)) == (len(messages), len(context)):
            return complete
    except (TypeError, ValueError, LookupError, AttributeError):
        pass
    what = f"the parts of conversation {shown(id)} do not match. Nothing was stored."
    raise InvalidDocument(what, fix="Export the home again.", where="conversations")


def _replayed(home: Path, id: str, records: Sequence[JsonObject]) -> Log:
    """Return the log that `bring_back` would write."""
    empty = history.empty(conversations.path_of(home, id), id)
    return history.extended(empty, b"".join(map(seal_json, records)))


def _with_messages(
    id: str, records: Sequence[JsonObject], messages: Sequence[JsonObject]
) -> list[JsonObject]:
    """Return exported records with their messages, and with the keys in the order that a log has.

    Raises:
        ValueError: there are more or fewer messages, or a number is impossible.
    """
    remaining, complete = iter(messages), list[JsonObject]()
    for record in records:
        history.require_possible(record, len(records) + MOST_LOST)
        whole: JsonObject = {"conversation": id} if "conversation" in record else {}
        keys = _MESSAGE if "n" in record else ("lost", "line")
        whole |= {key: record[key] for key in keys if key in record}
        if "n" in record and "message" not in record:
            whole["message"] = next(remaining)
        complete.append(whole | {key: field for key, field in record.items() if key not in whole})
    if next(remaining, None) is not None:
        raise ValueError("there are more messages than records")
    return complete


def _rebuilt(
    id: str, messages: Sequence[JsonObject], context: Sequence[JsonObject], receipts: Sequence[JsonObject], at: str
) -> list[JsonObject]:  # fmt: skip
    """Return the records of a conversation that has only its messages and the receipts of its compactions."""
    size, start = len(messages), 0
    places: list[int | None] = []
    for message in context:
        place = next((n for n in range(start, size) if messages[n] == message), None)
        places.append(place)
        start = start if place is None else place + 1
    made = [message for message, place in zip(context, places, strict=True) if place is None]
    new = count(size + 1)
    live = [next(new) if place is None else place + 1 for place in places]
    is_compacted = bool(receipts) and context != messages
    said, derived = (messages, made) if is_compacted else ([*messages, *made], [])
    records = [history.header_record(id), *history.message_records(said, derived, above=1, at=at)]
    if is_compacted:
        sizes = {"messages_before": size, "messages_after": len(context)}
        receipt = {**receipts[-1], **sizes, "places": places, "protected": [], "imported": [*receipts]}
        return [*records, history.first_step(size, live, receipt, len(records) + 1, at)]
    popped = sorted({*range(1, len(said) + 1)} - {*live})
    return records + [{"line": nth, "pop": n, "at": at} for nth, n in enumerate(popped, len(records) + 1)]

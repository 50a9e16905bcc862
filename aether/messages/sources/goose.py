"""Goose: the lines of a session, its export, and the rows of its database."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from aether.messages.model import as_arguments, as_object, as_text
from aether.messages.records import OnBad, Record, ignore_bad_line
from aether.messages.sources.reader import call, objects, report, result, said, time_of
from aether.types import JsonObject

_SILENT = frozenset(
    "thinking redactedThinking image toolConfirmationRequest frontendToolRequest systemNotification actionRequired".split()
)


def holds(value: Any) -> bool:
    """Return whether `value` is a message, the head of a session, an export, or a row of the database."""
    entry = as_object(value)
    return (
        ("working_dir" in entry and {"conversation", "message_count", "schedule_id"} & entry.keys() != set())
        or (entry.get("table") == "messages" and "content_json" in as_object(entry.get("row")))
        or (
            "created" in entry
            and "role" in entry
            and any("toolCall" in part or "type" in part for part in objects(entry.get("content")))
        )
    )


def records(
    values: Iterable[tuple[int, Any]], *, on_bad: OnBad = ignore_bad_line, **_: Any
) -> Iterator[Record]:
    """Yield the records of a session; of the database those of all."""
    directory = session = ""
    number, skipped = 1, Counter[str]()
    for number, value in values:
        entry = as_object(value)
        if entry.get("table") == "sessions":
            continue
        if "working_dir" in entry:
            directory, session = as_text(entry["working_dir"]), as_text(entry.get("id"))
        row = as_object(entry.get("row"))
        messages = objects(entry.get("conversation")) or [_of_row(row) if row else entry]
        name = as_text(row.get("session_id")) or session
        head, part = Record("system", line=number, session=name, directory=directory), 0
        for message in messages:
            for record in _message(head, message, skipped):
                yield record._replace(part=part)
                part += 1
    report(skipped, number, on_bad)


def _of_row(row: JsonObject) -> JsonObject:
    content: Any = []
    with suppress(ValueError, RecursionError):
        content = json.loads(as_text(row.get("content_json")))
    metadata = as_arguments(row.get("metadata_json"))
    return {
        "role": row.get("role"),
        "created": row.get("created_timestamp"),
        "content": content,
        "metadata": metadata,
    }


def _message(head: Record, message: JsonObject, skipped: Counter[str]) -> Iterator[Record]:
    head = head._replace(time=time_of(message.get("created")), message_id=as_text(message.get("id")))
    shown = as_object(message.get("metadata")).get("userVisible", True)
    texts = []
    for part in objects(message.get("content")):
        match part.get("type"):
            case "text":
                texts.append(part)
            case "toolRequest":
                wanted = as_object(as_object(part.get("toolCall")).get("value"))
                yield call(head, wanted.get("name"), as_arguments(wanted.get("arguments")), part.get("id"))
            case "toolResponse":
                answer = as_object(part.get("toolResult"))
                value = answer.get("value")
                content = as_object(value).get("content", value)
                failed = answer.get("status") == "error" or as_object(value).get("isError") is True
                yield result(head, part.get("id"), content or answer.get("error"), is_error=failed)
            case kind if as_text(kind) not in _SILENT:
                skipped[f"parts of type {kind}"] += 1
    # What only the model sees, the program has written.
    yield from said(head, as_text(message.get("role")) if shown else "system", texts)

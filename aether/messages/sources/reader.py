"""What readers have in common: a reader is one module and one row of `aether.messages.read.SOURCES`.

`holds(value)` says whether a JSON value of a file is of the format. `records(values, on_bad=…)` yields the records of all
values, or the module has `read(value, skip)` for a format of which one value is whole conversations: `of_values` makes the
rest of it. `skip(what)` counts what is left out because it is not understood; each kind is reported with its number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from aether.clock import stamp
from aether.messages.model import as_text, content_text
from aether.messages.records import (
    BadLine,
    Kind,
    OnBad,
    Part,
    RawConversation,
    Record,
    as_messages,
    asked,
    ignore_bad_line,
    parts,
    with_part,
)
from aether.messages.replies import reply
from aether.types import JsonObject

Skip = Callable[[str], None]
Read = Callable[[Any, Skip], Iterator[Record]]
# Numbers beyond are milliseconds: as seconds they would be in the year 5138.
_LARGEST_SECONDS = 1e11


def of_values(read: Read, holds: Callable[[Any], bool]) -> Callable[..., Iterator[Record]]:
    """Return the `records` of a format whose values are whole conversations."""

    def records(
        values: Iterable[tuple[int, Any]], *, on_bad: OnBad = ignore_bad_line, **_: Any
    ) -> Iterator[Record]:
        skipped: Counter[str] = Counter()

        def skip(what: str) -> None:
            skipped[what] += 1

        for number, value in values:
            if not holds(value):
                skipped["another format"] += 1
            else:
                for part, record in enumerate(read(value, skip)):
                    yield record._replace(line=number, part=part)
            report(skipped, number, on_bad)
            skipped.clear()

    return records


def report(skipped: Counter[str], number: int, on_bad: OnBad) -> None:
    """Report what was left out up to a line, one kind each."""
    for what, count in skipped.items():
        on_bad(BadLine(number, f"left out: {count} of {what}"))


def as_conversations(
    records: Callable[..., Iterator[Record]],
) -> Callable[[Iterable[tuple[int, Any]]], list[RawConversation]]:
    """Return the `conversations` of a format that no provider has: its records as messages, by session."""

    def conversations(values: Iterable[tuple[int, Any]]) -> list[RawConversation]:
        sessions: dict[str, list[Record]] = {}
        for record in records(values):
            sessions.setdefault(record.session, []).append(record)
        return [RawConversation(as_messages(session), "openai") for session in sessions.values()]

    return conversations


def said(head: Record, role: str, content: Any, typed: Collection[str] = ()) -> list[Record]:
    """Return the records of one message: texts, calls and results in its `content`; what a user wrote is read by its structure."""
    texts: list[tuple[int, Part]] = []
    others: list[Record] = []
    for index, part in parts(content):
        if part.kind == "text":
            texts.append((index, part))
        else:
            others.append(
                reply(with_part(head, part, "")) if part.kind == "result" else with_part(head, part, "")
            )
    if role == "user":
        return [*others, *asked(head, texts, typed)]
    kind: Kind = "assistant" if role == "assistant" else "system"
    return [*(with_part(head, part, kind) for _, part in texts), *others]


def call(head: Record, tool: Any, arguments: JsonObject, call_id: Any) -> Record:
    """Return the record of a call."""
    return head._replace(kind="call", tool=as_text(tool), arguments=arguments, call_id=as_text(call_id))


def result(head: Record, call_id: Any, output: Any, *, is_error: bool = False, tool: Any = "") -> Record:
    """Return the record of a result, or of a person's refusal in its place."""
    record = head._replace(
        kind="result", text=content_text(output), call_id=as_text(call_id), is_error=is_error, tool=as_text(tool),
    )  # fmt: skip
    return reply(record)


def time_of(value: Any) -> str:
    """Return a time as text: ISO 8601 stays, numbers are seconds or milliseconds since 1970, all else is empty.

    >>> time_of(1790935200), time_of(1790935200000) == time_of("1790935200"), time_of(None)
    ('2026-10-02T10:00:00.000000Z', True, '')
    """
    if isinstance(value, str) and not value.replace(".", "", 1).isdigit():
        return value
    try:
        seconds = float(value)
        return stamp(datetime.fromtimestamp(seconds if seconds < _LARGEST_SECONDS else seconds / 1000, UTC))
    except (TypeError, ValueError, OverflowError, OSError):
        return ""


def first_text(*values: Any) -> str:
    """Return the first of `values` that is text and not empty."""
    return next(filter(None, map(as_text, values)), "")


def objects(value: Any) -> list[JsonObject]:
    """Return the objects in a list; none if it is no list."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def branch(parents: dict[str, str], last: str) -> list[str]:
    """Return the ids from the root to `last`, by the parent of each.

    >>> branch({"a": "", "b": "a", "c": "a"}, "c")
    ['a', 'c']
    """
    path: dict[str, None] = {}
    while last in parents and last not in path:
        path[last] = None
        last = parents[last]
    return [*path][::-1]

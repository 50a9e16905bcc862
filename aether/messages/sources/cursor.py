"""Cursor: the transcript of an agent, one message per line with its role beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from aether.messages.model import as_object, as_text
from aether.messages.records import BadLine, OnBad, Record, ignore_bad_line
from aether.messages.sources.reader import said, time_of
from aether.messages.speakers import TYPED

_ROLES = frozenset({"user", "assistant", "tool", "system"})


def holds(value: Any) -> bool:
    """Return whether `value` is a line of a transcript."""
    line = as_object(value)
    message = as_object(line.get("message"))
    return (
        as_text(line.get("role")) in _ROLES
        and "content" in message
        and "role" not in message
        and "type" not in line
    )


def records(
    values: Iterable[tuple[int, Any]], *, on_bad: OnBad = ignore_bad_line, **_: Any
) -> Iterator[Record]:
    """Yield the records of a transcript; a person's words are in an element, and one without it is all the person's."""
    session = ""
    for number, line in values:
        if not holds(line):
            if not (isinstance(line, dict) and "type" in line):  # the end of a turn, and its usage
                on_bad(BadLine(number, "no message"))
            continue
        content = line["message"]["content"]
        session = session or as_text(line.get("sessionId"))
        head = Record("system", session=session, line=number, time=time_of(line.get("timestamp")))
        for part, record in enumerate(said(head, as_text(line["role"]), content, TYPED["chat"])):
            # Calls have no ids, and their results are not in the file.
            call_id = record.call_id or (f"{number}/{part}" if record.kind == "call" else "")
            yield record._replace(part=part, call_id=call_id)

"""Qwen Code: one line for each message, with the parts of Gemini and links to the line before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from aether.messages.branches import Node, Role, withdrawn
from aether.messages.model import as_object, as_text
from aether.messages.records import Record
from aether.messages.sources.gemini_contents import of_parts
from aether.messages.sources.reader import objects, time_of
from aether.messages.speakers import is_person
from aether.types import JsonObject

_ROLES = {"user": Role.PROMPT, "assistant": Role.RESPONSE, "tool_result": Role.RESULT}


def holds(value: Any) -> bool:
    """Return whether `value` is a line of such a session."""
    line = as_object(value)
    return {"uuid", "sessionId"} <= line.keys() and isinstance(
        as_object(line.get("message")).get("parts"), list
    )


def records(values: Iterable[tuple[int, Any]], **_: Any) -> Iterator[Record]:
    """Yield the records of the active branch."""
    lines = [(number, as_object(value)) for number, value in values]
    inactive = withdrawn(
        Node(_ROLES.get(as_text(line.get("type")), Role.BESIDE), as_text(line.get("uuid")), line.get("parentUuid", "") and as_text(line["parentUuid"]))
        for _, line in lines
    )  # fmt: skip
    for index, (number, line) in enumerate(lines):
        head = Record(
            "system", line=number, uuid=as_text(line.get("uuid")), time=time_of(line.get("timestamp")),
            session=as_text(line.get("sessionId")), directory=as_text(line.get("cwd")),
        )  # fmt: skip
        if index in inactive:
            continue
        if line.get("subtype") == "chat_compression":
            yield head._replace(kind="boundary")
        for part, record in enumerate(_message(head, line)):
            yield record._replace(part=part)


def _message(head: Record, line: JsonObject) -> Iterator[Record]:
    role = as_text(line.get("type"))
    failed = as_object(line.get("toolCallResult")).get("status") == "error"
    parts = objects(as_object(line.get("message")).get("parts"))
    for record in of_parts(head, role, parts, person=role == "user" and is_person(line)):
        yield record._replace(is_error=True) if failed and record.kind == "result" else record

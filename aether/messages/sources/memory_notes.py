"""Notes in Markdown with fields above them: those of basic-memory, and the memory of Claude Code. One note for each paragraph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from aether.messages.records import Record, decode_line
from aether.messages.sources.chat import paragraph_records
from aether.messages.sources.reader import time_of
from aether.text.regex import lazy

_FIELD = lazy(r"(\w[\w -]*):\s*(.*?)\s*")
_EDGE = "---"
# Fields that only these programs write together, with the name of the program.
_PROGRAMS = {
    frozenset({"permalink", "title"}): "basic-memory",
    frozenset({"name", "description"}): "the memory of Claude Code",
}
_MOST_FIELDS = 50


def is_notes(lines: Sequence[bytes]) -> bool:
    """Return whether the first `lines` of a file are the fields of such notes."""
    return bool(_program(_fields(iter(lines))))


def _fields(lines: Iterator[bytes]) -> dict[str, str]:
    """Return the fields above the text, and take their lines from `lines`."""
    fields: dict[str, str] = {}
    if decode_line(next(lines, b""), first=True) != _EDGE:
        return fields
    for raw in lines:
        text = decode_line(raw)
        if text == _EDGE or len(fields) > _MOST_FIELDS:
            return fields
        if match := _FIELD.fullmatch(text):
            fields[match[1]] = match[2].strip("\"'")
    return {}


def _program(fields: dict[str, str]) -> str:
    return next((name for names, name in _PROGRAMS.items() if names <= fields.keys()), "")


def records(lines: Iterable[bytes]) -> Iterator[Record]:
    """Yield a note for each paragraph, with its source and the title of the file."""
    rest = iter(lines)
    fields = _fields(rest)
    title = fields.get("title") or fields.get("name", "")
    source = f"From {_program(fields)}, {title}:"
    time = time_of(fields.get("updated_at") or fields.get("created_at") or fields.get("modified"))
    for record in paragraph_records(chain(rest)):
        yield record._replace(
            text=f"{source} {record.text}", session=title, time=time, line=record.line + len(fields) + 2
        )

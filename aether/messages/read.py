"""Reading: records of a path or a byte stream, in constant memory for formats of lines.

The format is detected from the first values, never from the file's name. Hooks leave out calls with private paths before
they are kept; a transcript has them, and `without_private` leaves them out of its records.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from aether import regular
from aether.errors import InvalidInput, shown
from aether.messages.model import as_object, as_text
from aether.messages.records import (
    FORMATS,
    BadLine,
    Format,
    OnBad,
    Record,
    decode_line,
    ignore_bad_line,
    read_json_values,
)
from aether.messages.sources import chat, claude_code, codex, knowledge_graph, openhands
from aether.messages.sources.chat import conversations, is_item, is_line, is_message
from aether.messages.sources.openhands import events_of
from aether.redact.redact import is_private
from aether.text.regex import lazy

# Text that starts like this is meant as JSON; a Markdown link or a checkbox is not.
_JSON_START = lazy(r'\s*(?:\{\s*(?:["}]|$)|\[\s*(?:[\[{"\]\d-]|$))')
# JSON that says nothing.
_SCALAR = lazy(r"(?:null|true|false|-?\d[\d.eE+-]*+|[\[\],\s]++)++")
# Files open with bookkeeping lines that no other format has, or with one that all might have.
_HEAD_VALUES = 32
# Text has no NUL; binary data has one early.
_HEAD_LINES = 64
_CODEX_TYPES = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}
_CLAUDE_TYPES = {"user", "assistant", "system", "progress", "attachment"}


def looks_like_json(text: str) -> bool:
    """Return whether a text that starts like this is meant as JSON.

    >>> looks_like_json('{"type": 1}'), looks_like_json("[a link](x.md)"), looks_like_json("- [ ] to do")
    (True, False, False)
    """
    return bool(_JSON_START.match(text))


def detect_file_format(values: Sequence[Any], *, where: str = "input") -> Format:
    """Return the format of a file from its first JSON `values`.

    Raises:
        InvalidInput: none of them is of a known format.

    >>> detect_file_format([{"role": "user", "content": "Build it."}])
    'chat'
    """
    for value in values:
        if found := _format(value):
            return found
    if any(map(knowledge_graph.is_line, values)):
        what = "it is a knowledge graph, not a transcript."
        raise InvalidInput(what, fix='Use "aether graph import".', where=where)
    first = shown(values[0]) if values else "no readable JSON"
    raise unknown_format(f"it starts with {first}.", where=where)


def unknown_format(what: str, *, where: str) -> InvalidInput:
    """Return the error of an unknown format, which names the known ones."""
    fix = f"Known formats are {', '.join(FORMATS)}; force one with --format."
    return InvalidInput(f"no known format: {what}", fix=fix, where=where)


def _format(value: Any) -> Format | None:
    if isinstance(value, dict):
        return _format_of_object(value)
    if not isinstance(value, list):
        return None
    if events_of(value):
        return "openhands"
    if any(map(is_message, value)):
        return "chat"
    return "items" if any(map(is_item, value)) else None


def _format_of_object(value: dict[str, Any]) -> Format | None:
    kind = value.get("type")
    if as_text(kind) in _CODEX_TYPES and "payload" in value:
        return "codex"
    if (
        isinstance(value.get("loglines"), list)
        or "leafUuid" in value
        or (as_text(kind) in _CLAUDE_TYPES and {"message", "uuid", "sessionId"} & value.keys())
        or ("sessionId" in value and isinstance(kind, str) and "role" not in value)
    ):
        return "claude_code"
    if events_of(value):
        return "openhands"
    if is_line(value) or next(conversations(value), None):
        return "chat"
    return "items" if is_item(value) else None


def read_records(
    source: str | os.PathLike[str] | IO[bytes], *, format: str | None = None, on_bad: OnBad = ignore_bad_line
) -> Iterator[Record]:
    """Yield the records of a file or byte stream of any known format.

    Lines that cannot be read are passed to `on_bad` and skipped. The file is open while its records are read.

    Raises:
        NotFound: there is no such file.
        InvalidInput: the format is unknown.
    """
    require_format(format)
    return _records(source, format, on_bad)


def require_format(format: str | None) -> None:
    """Reject a format that is not known; None is detected.

    Raises:
        InvalidInput: it is unknown.
    """
    if format is not None and format not in FORMATS:
        fix = f"Use one of {', '.join(FORMATS)}."
        raise InvalidInput(f"{shown(format)} is not a format.", fix=fix, where="--format")


def _records(
    source: str | os.PathLike[str] | IO[bytes], forced: str | None, on_bad: OnBad
) -> Iterator[Record]:
    with ExitStack() as stack:
        if isinstance(source, (str, os.PathLike)):
            path = Path(source)
            stream: IO[bytes] = stack.enter_context(regular.named(path))
            where, caste = path.name, _caste(path)
        else:
            stream, where, caste = source, "input", ""
        head = list(islice(stream, _HEAD_LINES))
        lines = chain(head, stream)
        # A log of JSON that a power cut padded with NUL loses that line only.
        is_log = forced != "plain" and looks_like_json(decode_line(b"".join(head[:1]), first=True))
        if not is_log and any(b"\0" in line for line in head):
            raise InvalidInput(
                "it is binary data, and no text.", fix="Unpack it, or write it as UTF-8.", where=where
            )
        if forced == "plain" or (forced is None and _is_plain(head, where)):
            yield from chat.paragraph_records(lines)
            return
        first: list[BadLine] = []

        def note_first(bad: BadLine) -> None:
            first[len(first) :] = [] if first else [bad]
            on_bad(bad)

        found = read_json_values(lines, on_bad=note_first)
        opening: list[tuple[int, Any]] = []
        if forced is None:
            opening = list(islice(found, _HEAD_VALUES))
            if first and not opening:
                what = f"it is broken JSON, at line {first[0].line}: {first[0].reason}."
                raise InvalidInput(what, fix="Complete or correct the file.", where=where)
            forced = detect_file_format([value for _, value in opening], where=where)
        yield from records_of_values(forced, chain(opening, found), on_bad=on_bad, caste=caste)


def records_of_values(
    known: str, found: Iterable[tuple[int, Any]], *, on_bad: OnBad = ignore_bad_line, caste: str = ""
) -> Iterator[Record]:
    """Return the records in JSON values of a known format."""
    match known:
        case "claude_code":
            return claude_code.records(found, caste=caste)
        case "codex":
            return codex.records(found)
        case "openhands":
            return openhands.records(found)
        case "items":
            return chat.item_records(found, on_bad=on_bad)
        case _:
            return chat.records(found, on_bad=on_bad)


def _is_plain(head: list[bytes], where: str) -> bool:
    texts = list(filter(None, (decode_line(line, first=at == 0) for at, line in enumerate(head))))
    if texts and all(map(_SCALAR.fullmatch, texts)):
        raise unknown_format(f"it starts with {shown(texts[0])}.", where=where)
    return not looks_like_json(next(iter(texts), ""))


def _caste(path: Path) -> str:
    """Return the type of the sub-agent whose transcript `path` is, from the file beside it."""
    if not path.name.startswith("agent-"):
        return ""
    try:
        meta = json.loads(path.with_suffix(".meta.json").read_bytes())
    except (OSError, ValueError):
        return "agent"
    return as_text(as_object(meta).get("agentType")) or "agent"


def without_private(records: Iterable[Record], patterns: str, *, directory: str = "") -> Iterator[Record]:
    """Yield `records` without the calls that name a path matched by `patterns`, and without their results.

    Relative paths start at the directory of the call, else at `directory`.

    >>> calls = [Record("call", arguments={"path": path}, call_id=path) for path in (".env", "a.py")]
    >>> [record.call_id for record in without_private(calls, ".env*", directory="/app")]
    ['a.py']
    """
    private: set[str] = set()
    for record in records:
        if record.kind == "call":
            private.discard(record.call_id)  # an id may be used again
            if is_private(record.arguments, patterns, record.directory or directory):
                private.add(record.call_id)
                continue
        elif record.kind == "result" and record.call_id in private:
            continue
        yield record

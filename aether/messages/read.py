"""Reading: from a path or a byte stream to records, in constant memory for anything line by line.

Detection: which format a stream holds, told from what it begins with and never from its name.

Private calls: what a tool did with private paths is not read out of a transcript.

Hooks leave such calls out before they are kept; a transcript has them, and is read as if it had not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from aether.errors import InvalidInput, NotFound, shown
from aether.messages.model import as_object, as_text
from aether.messages.records import (
    FORMATS,
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

# Text that begins like this is meant as JSON; a Markdown link or a checkbox is not.
_JSON_START = lazy(r'\s*(?:\{\s*(?:["}]|$)|\[\s*(?:[\[{"\]\d-]|$))')
_CODEX_TYPES = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}
_CLAUDE_TYPES = {"user", "assistant", "system", "progress", "attachment"}


def looks_like_json(text: str) -> bool:
    """Tell whether text that begins so is meant as JSON.

    >>> looks_like_json('{"type": 1}'), looks_like_json("[a link](x.md)"), looks_like_json("- [ ] to do")
    (True, False, False)
    """
    return bool(_JSON_START.match(text))


def detect_file_format(values: Sequence[Any], *, where: str = "input") -> Format:
    """Return the format of which `values` are the first JSON values.

    Raises:
        InvalidInput: nothing in them is of a known format.

    >>> detect([{"role": "user", "content": "Build it."}])
    'chat'
    """
    for value in values:
        found = _format(value)
        if found:
            return found
    if any(map(knowledge_graph.is_line, values)):
        raise InvalidInput(
            "it is a knowledge graph, not a transcript.", fix='Use "aether graph import".', where=where
        )
    first = shown(values[0]) if values else "no readable JSON"
    raise unknown_format(f"it begins with {first}.", where=where)


def unknown_format(what: str, *, where: str) -> InvalidInput:
    """Return the error that says that no format fits, and names those there are."""
    return InvalidInput(
        f"no known format: {what}",
        fix=f"Known formats are {', '.join(FORMATS)}; force one with --format.",
        where=where,
    )


def _format(value: Any) -> Format | None:
    if isinstance(value, dict):
        return _format_of_object(value)
    if isinstance(value, list):
        if events_of(value):
            return "openhands"
        if any(map(is_message, value)):
            return "chat"
        if any(map(is_item, value)):
            return "items"
    return None


def _format_of_object(value: dict[str, Any]) -> Format | None:
    if as_text(value.get("type")) in _CODEX_TYPES and "payload" in value:
        return "codex"
    if isinstance(value.get("loglines"), list) or _is_claude_code(value):
        return "claude_code"
    if events_of(value):
        return "openhands"
    if is_line(value) or next(conversations(value), None):
        return "chat"
    return "items" if is_item(value) else None


def _is_claude_code(value: dict[str, Any]) -> bool:
    if as_text(value.get("type")) in _CLAUDE_TYPES and (
        "message" in value or "uuid" in value or "sessionId" in value
    ):
        return True
    return "leafUuid" in value or (
        "sessionId" in value and isinstance(value.get("type"), str) and "role" not in value
    )


# Files open with bookkeeping lines that no other format has, or with one that all might have.
_HEAD_VALUES = 32
# Text has no NUL; binary data has one early.
_HEAD_LINES = 64


def read_records(
    source: str | os.PathLike[str] | IO[bytes],
    *,
    format: str | None = None,
    on_bad: OnBad = ignore_bad_line,
) -> Iterator[Record]:
    """Yield the records of a file or byte stream, whichever format it holds.

    Lines that cannot be read are handed to `on_bad` and skipped. A file is open while records are taken
    from it.

    Raises:
        NotFound: there is no such file.
        InvalidInput: the format is unknown, or is not one of those there are.
    """
    if format is not None and format not in FORMATS:
        raise InvalidInput(
            f"{shown(format)} is no format.", fix=f"Use one of {', '.join(FORMATS)}.", where="--format"
        )
    return _records(source, format, on_bad)


def _records(
    source: str | os.PathLike[str] | IO[bytes], forced: str | None, on_bad: OnBad
) -> Iterator[Record]:
    with ExitStack() as stack:
        if isinstance(source, (str, os.PathLike)):
            path = Path(source)
            stream: IO[bytes] = stack.enter_context(_open(path))
            where, caste = path.name, _caste(path)
        else:
            stream, where, caste = source, "input", ""
        head = list(islice(stream, _HEAD_LINES))
        lines = chain(head, stream)
        if forced == "plain" or (forced is None and _is_plain(head, where)):
            yield from chat.paragraph_records(lines)
            return
        yield from _json_records(lines, forced, on_bad, where=where, caste=caste)


def _json_records(
    lines: Iterable[bytes], forced: str | None, on_bad: OnBad, *, where: str, caste: str
) -> Iterator[Record]:
    found = read_json_values(lines, on_bad=on_bad)
    opening: list[tuple[int, Any]] = []
    if forced is None:
        opening = list(islice(found, _HEAD_VALUES))
        forced = detect_file_format([value for _, value in opening], where=where)
    yield from records_of_values(forced, chain(opening, found), on_bad=on_bad, caste=caste)


def records_of_values(
    known: str,
    found: Iterable[tuple[int, Any]],
    *,
    on_bad: OnBad = ignore_bad_line,
    caste: str = "",
) -> Iterator[Record]:
    """Return the records that JSON values of a known format hold."""
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
            return chat.records(found)


def _open(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as reason:
        raise NotFound(
            f"cannot be read ({reason.strerror}).", fix="Name an existing, readable file.", where=str(path)
        ) from reason


def _is_plain(head: list[bytes], where: str) -> bool:
    if any(b"\0" in line for line in head):
        raise unknown_format("it is binary data.", where=where)
    first = next(
        (text for text in (decode_line(line, first=at == 0) for at, line in enumerate(head)) if text), ""
    )
    return not looks_like_json(first)


def _caste(path: Path) -> str:
    """Return the type of the sub-agent whose transcript `path` is, as the file beside it says."""
    if not path.name.startswith("agent-"):
        return ""
    try:
        meta = json.loads(path.with_suffix(".meta.json").read_bytes())
    except (OSError, ValueError):
        return "agent"
    return as_text(as_object(meta).get("agentType")) or "agent"


def without_private(records: Iterable[Record], patterns: str, *, directory: str = "") -> Iterator[Record]:
    """Yield `records` without the calls that name a path which `patterns` mean, and without their results.

    Relative paths are seen from where the call was made, else from `directory`.

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

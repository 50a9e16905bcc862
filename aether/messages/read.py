"""Reading: from a path or a byte stream to records, in constant memory for anything line by line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from aether.errors import InvalidInput, NotFound, shown
from aether.messages import chat, claude_code, codex, items, openhands, plain
from aether.messages.blocks import table, word
from aether.messages.detect import detect, looks_like_json, unknown
from aether.messages.jsonl import decoded, values
from aether.messages.record import FORMATS, OnBad, Record, ignore

# Files open with bookkeeping lines that no other format has, or with one that all might have.
_HEAD_VALUES = 32
# Text has no NUL; binary data has one early.
_HEAD_LINES = 64


def read_records(
    source: str | os.PathLike[str] | IO[bytes],
    *,
    format: str | None = None,
    on_bad: OnBad = ignore,
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
            yield from plain.records(lines)
            return
        yield from _json_records(lines, forced, on_bad, where=where, caste=caste)


def _json_records(
    lines: Iterable[bytes], forced: str | None, on_bad: OnBad, *, where: str, caste: str
) -> Iterator[Record]:
    found = values(lines, on_bad=on_bad)
    opening: list[tuple[int, Any]] = []
    if forced is None:
        opening = list(islice(found, _HEAD_VALUES))
        forced = detect([value for _, value in opening], where=where)
    yield from dispatch(forced, chain(opening, found), on_bad=on_bad, caste=caste)


def dispatch(
    known: str,
    found: Iterable[tuple[int, Any]],
    *,
    on_bad: OnBad = ignore,
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
            return items.records(found, on_bad=on_bad)
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
        raise unknown("it is binary data.", where=where)
    first = next(
        (text for text in (decoded(line, first=at == 0) for at, line in enumerate(head)) if text), ""
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
    return word(table(meta).get("agentType")) or "agent"

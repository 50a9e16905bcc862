"""The log of one conversation: what stands in its `history.jsonl`, read once and followed as it grows.

One checksummed line per record, in the order of writing; the records of one call carry `more` but for the last, so
that a call is in the log whole or not at all. A message line is numbered `n` from 1; what a compaction made carries
`derived`, its step. The log says which messages are the present context; nothing in it is ever removed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from aether.errors import Conflict, CorruptDocument, InvalidDocument, shown
from aether.paths import directory_name, inside
from aether.shapes import JsonObject
from aether.store import codec, journal
from aether.store.files import storage

FORMAT = 1
FILE = "history.jsonl"
_MESSAGE = re.compile(
    rb'\{"n":([0-9]+),"at":"[^"]*"(?:,"derived":([0-9]+))?(?:,"more":(true))?,"message":', re.ASCII
)
# Readers of the same conversations over and over: a server holds this many in memory, compactly.
_CACHED = 64
_CACHE: dict[Path, Log] = {}


class Compaction(NamedTuple):
    """One compaction: the numbers of the messages before and after it, in order."""

    step: int
    at: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    receipt: JsonObject


class Log(NamedTuple):
    """One conversation, as far as its file was read. Use the functions of `conversations` to look into it."""

    path: Path
    id: str
    texts: list[bytes]
    """The JSON of message `n` at `n - 1`, as it stands."""
    derived: list[int]
    """For each message the step of the compaction that made it, 0 where someone said it."""
    context: list[int]
    """Numbers of the messages that are live, in order."""
    said: list[int]
    """Numbers of what the context would be without any compaction."""
    compactions: list[Compaction]
    open: list[int]
    """Steps that can be undone, newest last."""
    inode: int = 0
    end: int = 0
    """Byte offset after the last whole call."""
    lines: int = 0
    last: bytes = b""
    """The last line before `end`: where it changed, another log took the place of this one."""
    torn: bytes = b""
    """What follows `end`: a write that was cut off."""


def path_of(home: Path, id: str) -> Path:
    """Return where the log of the conversation is, whether it exists or not.

    Raises:
        InvalidInput: the id is empty.
        UnsafePath: the directory of conversations leads out of the home.
    """
    return inside(home, f"conversations/{directory_name(id, what='conversation')}") / FILE


def load(home: Path, id: str, *, anew: bool = False) -> Log:
    """Return the log of conversation `id`, empty where there is none.

    Only what was appended since it was read last is read, unless it is asked for `anew`.

    Raises:
        CorruptDocument: a line is damaged and others follow it.
        Conflict: the file belongs to a conversation whose id differs in capitals only.
        InvalidDocument: a newer aether wrote it.
        StorageFailed: it cannot be read.
    """
    path = path_of(home, id)
    known = None if anew else _CACHE.pop(path, None)
    try:
        with storage(path, left="Nothing was read."), _opened(path) as file:
            inode = os.fstat(file.fileno()).st_ino
            known = known if known and known.id == id and known.inode == inode else None
            if known:
                file.seek(known.end - len(known.last))
                known = known if file.read(len(known.last)) == known.last else None
            file.seek(known.end if known else 0)
            data = file.read()
    except _Missing:
        return Log(path, id, [], [], [], [], [], [])
    log = followed(known or Log(path, id, [], [], [], [], [], [], inode=inode), data)
    _CACHE[path] = log
    if len(_CACHE) > _CACHED:
        _CACHE.pop(next(iter(_CACHE)), None)
    return log


class _Missing(Exception):
    """There is no such log yet."""


def _opened(path: Path) -> Any:
    try:
        return path.open("rb")
    except (FileNotFoundError, NotADirectoryError) as reason:
        raise _Missing from reason


def followed(log: Log, data: bytes) -> Log:
    """Return `log` with what stands in `data`, which follows its end.

    Raises:
        CorruptDocument, Conflict, InvalidDocument: as `load` says.
    """
    if log.end and data == log.torn:
        return log
    grown = log._replace(
        texts=log.texts.copy(), derived=log.derived.copy(), context=log.context.copy(), said=log.said.copy(),
        compactions=log.compactions.copy(), open=log.open.copy(),
    )  # fmt: skip
    at, end, last, number, good, bad = log.end, log.end, log.last, log.lines, log.lines, 0
    call: list[bytes] = []
    for line in data.splitlines(keepends=True):
        at, number = at + len(line), number + 1
        body = journal.sealed_body(line) if line.endswith(b"\n") else None
        if body is None:
            bad = bad or number
            continue
        if bad:
            raise _damaged(log.path, bad)
        call.append(body)
        if not _has_more(body):
            for record in call:
                _take(grown, record, good + 1)
                good += 1
            call, end, last = [], at, line
    return grown._replace(end=end, last=last, lines=good, torn=data[end - log.end :])


def _has_more(body: bytes) -> bool:
    found = _MESSAGE.match(body)
    return bool(found and found[3])


def _take(log: Log, body: bytes, number: int) -> None:
    """Let one record count."""
    if number == 1:
        _require_ours(log, codec.parse(body, where=str(log.path)))
    elif found := _MESSAGE.match(body):
        if int(found[1]) != len(log.texts) + 1:
            raise _damaged(log.path, number)
        log.texts.append(body[found.end() : -1])
        log.derived.append(int(found[2] or 0))
        if not found[2]:
            log.context.append(len(log.texts))
            log.said.append(len(log.texts))
    else:
        _take_change(log, codec.parse(body, where=str(log.path)))


def _take_change(log: Log, record: JsonObject) -> None:
    if "clear" in record:
        log.context.clear()
        log.said.clear()
        log.open.clear()
    elif "pop" in record:
        log.said[:] = [n for n in log.said if n != log.context[-1]]
        log.context.pop()
    elif "undo" in record:
        log.context[:] = numbers(record["context"])
        log.open.pop()
    else:
        before, after = tuple(numbers(record["before"])), tuple(numbers(record["after"]))
        log.compactions.append(Compaction(record["step"], record["at"], before, after, record["receipt"]))
        log.context[:] = [*after, *numbers(record.get("late", []))]
        log.open.append(record["step"])


def _require_ours(log: Log, header: JsonObject) -> None:
    if header.get("format", FORMAT) > FORMAT:
        raise InvalidDocument(
            f"written by a newer aether (format {header['format']}, this one knows {FORMAT}).",
            fix="Upgrade aether; the file was left as it is.",
            where=str(log.path),
        )
    if header.get("conversation") != log.id:
        raise Conflict(
            f"it belongs to conversation {shown(header.get('conversation'))}, not {shown(log.id)}.",
            fix="Use an id that differs in more than capitals: this disk does not tell them apart.",
            where=str(log.path),
        )


def _damaged(path: Path, number: int) -> CorruptDocument:
    return CorruptDocument(
        f"line {number} is damaged, and others follow it.",
        fix="Restore the line from a copy, or move the file away to begin anew; it was left as it is.",
        where=str(path),
    )


def header(id: str) -> bytes:
    """Return the first line of the log of conversation `id`."""
    return journal.sealed({"conversation": id, "format": FORMAT})


def ranges(found: Iterable[int]) -> list[list[int]]:
    """Return whole numbers, in their order, as runs of `[first, last]`.

    >>> ranges([3, 4, 5, 9, 1])
    [[3, 5], [9, 9], [1, 1]]
    """
    runs: list[list[int]] = []
    for number in found:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs


def numbers(runs: Sequence[Sequence[int]]) -> list[int]:
    """Return what `ranges` was given."""
    return [number for first, last in runs for number in range(first, last + 1)]

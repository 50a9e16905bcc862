"""The stream of a conversation in the ledger of a shared home: its mark, lines that are new in it, and checks of them.

A home that is not shared never calls this. Lines of a ledger come from other machines: they are checked before they are stored.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from aether import regular
from aether.errors import AetherError, Conflict, CorruptDocument, InvalidDocument, shown
from aether.regular import sealed_body
from aether.store import files, ledger
from aether.store.history import Log, empty, extended, parsed, require_possible
from aether.store.log import CHECKSUM_END, HEAD, checksum_of, lines_of, read_head

# The start of the names of these streams.
STREAMS = "conversations/"
# A line of a log has at least so many bytes.
_LEAST_LINE_BYTES = 64


def stream_of(id: str) -> str:
    """Return the name of the stream of a conversation."""
    return STREAMS + id


def mark_of(log: Log) -> ledger.Mark:
    """Return the position of a replica in the stream of a conversation."""
    return ledger.Mark(log.held, checksum_of(log.last))


def end_of(path: Path) -> ledger.Mark:
    """Return the position that the files of the log at `path` claim; cheap, and nothing is checked."""
    head, tail = 0, b""
    with suppress(AetherError, OSError):
        head = read_head(path.with_name(HEAD)) or 0
        with regular.opened(path) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - CHECKSUM_END))
            tail = file.read()
    return ledger.Mark(head, checksum_of(tail))


def offer(server: ledger.Ledger, log: Log, lines: bytes) -> ledger.Appended:
    """Let the ledger append the lines of a call, unless others appended lines since."""
    return server.append_if(stream_of(log.id), mark_of(log), lines.splitlines(keepends=True))


def news(server: ledger.Reader, log: Log) -> Log:
    """Return `log` grown by the whole calls that the ledger has after it, with their lines as `torn`; unchanged without any.

    Raises:
        CorruptDocument: the lines do not follow it, or cannot be read.
        InvalidDocument: a newer aether wrote them.
    """
    lines, mark = list[bytes](), mark_of(log)
    while sum(map(len, lines)) <= regular.LOG_BYTES:
        answer = server.read_after(stream_of(log.id), mark)
        if not answer.lines and not lines:
            return log
        lines += answer.lines
        is_all = not answer.lines or log.held + len(lines) >= answer.head
        if is_all or any(not parsed(sealed_body(line) or b"{}")[0].get("more") for line in answer.lines):
            data = b"".join(lines)
            grown = _of_ledger(log, data)
            if grown.end > log.end and not grown.damaged:
                return grown._replace(torn=data[: grown.end - log.end])
            if is_all or grown.damaged:
                break
        mark = ledger.Mark(mark.revision + len(answer.lines), checksum_of(lines[-1]))
    raise _unreadable(log)


def whole(server: ledger.Reader, log: Log, data: bytes, reached: int) -> bytes:
    """Return all lines that the ledger has of a conversation whose damaged file is `data`.

    Raises:
        Conflict: it ends before line `reached`, which the log had, or has other lines.
        CorruptDocument: they cannot be read.
    """
    lines = ledger.lines_after(server, stream_of(log.id), ledger.Mark(0, ""))
    complete = _of_ledger(empty(log.path, log.id), b"".join(lines))
    if complete.damaged or complete.torn:
        raise _unreadable(log)
    ours = {line for line, good in lines_of(data) if good and not line.startswith(b'{"lost":')}
    if complete.lines < reached or not ours.issubset(lines):
        what = f"the ledger has {complete.lines} lines of conversation {shown(log.id)}, and this home had {reached}"  # fmt: skip
        what += "." if complete.lines < reached else ", with others among them."
        fix = "Its server was restored from an older backup: see docs/shared.md. The damaged log is as it was."  # fmt: skip
        raise Conflict(what, fix=fix, where=str(log.path))
    return b"".join(lines)


def _of_ledger(log: Log, data: bytes) -> Log:
    """Return `log` with the records of `data` from the ledger, checked.

    Raises:
        CorruptDocument: they cannot be read.
        InvalidDocument: a newer aether wrote them.
    """
    try:
        for line in data.splitlines(keepends=True):
            require_possible(parsed(sealed_body(line) or b"{}")[0], regular.LOG_BYTES // _LEAST_LINE_BYTES)
        grown = extended(log, data)
        new = [files.parse_json(text, where=str(log.path)) for text in grown.texts[len(log.texts) :] if text]
    except InvalidDocument:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as reason:
        raise _unreadable(log) from reason
    if not all(isinstance(message, dict) for message in new):
        raise _unreadable(log)
    return grown


def _unreadable(log: Log) -> CorruptDocument:
    what = f"the ledger has lines of conversation {shown(log.id)} that this aether cannot read."
    return CorruptDocument(what, fix=ledger.FOREIGN, where=str(log.path))

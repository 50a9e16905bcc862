"""Unpacking: a file as a stream of UTF-8 text that can be read twice, whatever it is packed in.

Known by their first bytes are gzip, UTF-16 and SQLite. Of a database, the tables of programs whose conversations are known
become lines of JSON, `{"table", "row"}` each. A stream that cannot be read twice, and what is unpacked, waits in a
temporary file without a name. Zip archives hold several files: `members` yields them.
"""

from __future__ import annotations

import codecs
import gzip
import json
import shutil
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path, PurePosixPath
from tempfile import NamedTemporaryFile, SpooledTemporaryFile
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

from aether.errors import InvalidInput
from aether.types import JsonObject

# What is kept in memory; the rest waits on disk.
_SPOOLED_BYTES = 1 << 16
_CHUNK_BYTES = 1 << 20
# More than any history that was seen; a packed file may become a thousand times larger.
MOST_BYTES = 4 << 30
_GZIP, _ZIP, _SQLITE = b"\x1f\x8b", b"PK\x03\x04", b"SQLite format 3\0"
_BOMS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
# The tables that are read.
_TABLES = {
    "agent_messages": "SELECT * FROM agent_messages ORDER BY session_id, id",
    "sessions": "SELECT * FROM sessions ORDER BY id",
    "messages": "SELECT * FROM messages ORDER BY session_id, id",
    "observations": "SELECT * FROM observations ORDER BY id",
    "session_summaries": "SELECT * FROM session_summaries ORDER BY id",
}
# opencode keeps messages and their parts as JSON.
_OPENCODE = """SELECT m.id, m.session_id, m.data, (SELECT json_group_array(json(p.data)) FROM
    (SELECT data FROM part WHERE message_id = m.id ORDER BY id) p) FROM message m ORDER BY m.session_id, m.id"""


@contextmanager
def unpacked(stream: IO[bytes], where: str) -> Iterator[IO[bytes]]:
    """Open the text of `stream`, which can be read twice.

    Raises:
        InvalidInput: it is damaged, a database of another program, or unpacks to more than 4 GB.
    """
    with ExitStack() as stack:
        text = stream if stream.seekable() else stack.enter_context(_copied(stream, where))
        start = text.tell()
        head = text.read(len(_SQLITE))
        text.seek(start)
        if head.startswith(_GZIP):
            text = stack.enter_context(_copied(_chunks(gzip.GzipFile(fileobj=text)), where))
        elif head == _SQLITE:
            text = stack.enter_context(_copied(_rows(text, where), where))
        elif encoding := _encoding(head):
            text = stack.enter_context(_copied(_recoded(text, encoding), where))
        yield text


def _encoding(head: bytes) -> str:
    """Return the form of UTF-16 that a text is in, also without its mark: every other byte of plain letters is NUL."""
    for mark, encoding in _BOMS.items():
        if head.startswith(mark):
            return encoding
    even, odd = head[::2], head[1::2]
    if len(head) < 4 or b"\0" not in head:
        return ""
    return "utf-16-le" if not odd.strip(b"\0") and even.isascii() and b"\0" not in even else (
        "utf-16-be" if not even.strip(b"\0") and odd.isascii() and b"\0" not in odd else ""
    )  # fmt: skip


def _recoded(stream: IO[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    for chunk in _chunks(stream):
        yield decoder.decode(chunk).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def _chunks(stream: Any) -> Iterator[bytes]:
    while chunk := stream.read(_CHUNK_BYTES):
        yield chunk


def _copied(chunks: Iterable[bytes], where: str) -> Any:
    """Return a temporary file with `chunks`."""
    spooled, size = SpooledTemporaryFile(max_size=_SPOOLED_BYTES), 0  # noqa: SIM115 - the caller closes it
    try:
        for chunk in chunks:
            size += len(chunk)
            if size > MOST_BYTES:
                what = f"it unpacks to more than {MOST_BYTES >> 30} GB."
                raise InvalidInput(what, fix="Import its parts.", where=where)  # noqa: TRY301
            spooled.write(chunk)
    except (OSError, EOFError, zlib.error) as reason:
        spooled.close()
        raise InvalidInput(f"it is damaged: {reason}.", fix="Pack it again.", where=where) from reason
    except InvalidInput:
        spooled.close()
        raise
    spooled.seek(0)
    return spooled


def _rows(stream: IO[bytes], where: str) -> Iterator[bytes]:
    """Yield the rows of the known tables of a database as lines of JSON."""
    with NamedTemporaryFile(suffix=".sqlite") as copy:
        path = getattr(stream, "name", "")
        if not (isinstance(path, str) and Path(path).is_file()):
            shutil.copyfileobj(stream, copy)
            copy.flush()
            path = copy.name
        try:
            with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)) as database:
                yield from _lines(database, where)
        except sqlite3.Error as reason:
            raise InvalidInput(
                f"it is a damaged database: {reason}.", fix="Export it again.", where=where
            ) from reason


def _lines(database: sqlite3.Connection, where: str) -> Iterator[bytes]:
    names = [
        name
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    ]
    if {"message", "part"} <= set(names):
        for key, session, data, parts in database.execute(_OPENCODE):
            info = {**json.loads(data), "id": key, "sessionID": session}
            yield _line({"info": info, "parts": json.loads(parts)})
        return
    known = [name for name in _TABLES if name in names]
    if not known:
        what = f"it is a database of another program, with the tables {', '.join(names) or 'none'}."
        raise InvalidInput(what, fix="Export its conversations as JSON.", where=where)
    database.row_factory = sqlite3.Row
    for table in known:
        for row in database.execute(_TABLES[table]):
            yield _line({"table": table, "row": {key: row[key] for key in row.keys()}})  # noqa: SIM118 - a row has no iterator of keys


def _line(value: JsonObject) -> bytes:
    return json.dumps(value, default=str).encode() + b"\n"


def is_zip(path: Path) -> bool:
    """Return whether the file at `path` is a zip archive."""
    with path.open("rb") as stream:
        return stream.read(len(_ZIP)) == _ZIP


def members(path: Path, suffixes: frozenset[str]) -> Iterator[IO[bytes]]:
    """Yield the files of a zip archive whose names end in one of `suffixes`, each open until the next.

    Raises:
        InvalidInput: it is damaged, or a file in it is larger than 4 GB.
    """
    try:
        with ZipFile(path) as archive:
            for info in archive.infolist():
                if info.is_dir() or PurePosixPath(info.filename).suffix.lower() not in suffixes:
                    continue
                if info.file_size > MOST_BYTES:
                    raise InvalidInput(
                        f"{info.filename} is too large.", fix="Import its parts.", where=path.name
                    )
                with archive.open(info) as member:
                    yield member
    except (BadZipFile, zlib.error, RuntimeError, NotImplementedError) as reason:
        raise InvalidInput(
            f"it is damaged, or locked: {reason}.", fix="Unpack it.", where=path.name
        ) from reason

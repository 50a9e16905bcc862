"""A ledger in a directory: the reference of the protocol, without a server, for tests of what is above it.

Each stream is a file of lines with a lock beside it; `fail` lets a call fail before it is sent, or lose its answer.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, unquote

from aether.errors import Conflict, CorruptDocument, NotFound, StorageFailed
from aether.sharing.ledgers import Unsettled
from aether.sharing.lines import placeholder
from aether.store.ledger import Appended, Mark, News
from aether.store.log import checksum_of

START = "directory://"
ANSWER_LINES = 256


def open_ledger(url: str, colony: str, *, replica: str, timeout: float) -> DirectoryLedger:
    return DirectoryLedger(Path(url.removeprefix(START)), colony)


def create_colony(url: str, colony: str, *, timeout: float) -> DirectoryLedger:
    made = DirectoryLedger(Path(url.removeprefix(START)), colony)
    if made.place.exists():
        raise Conflict("there is a colony of this name already.", fix="Join it.", where=str(made.place))
    made.place.mkdir(parents=True)
    (made.place / "identity").write_text(os.urandom(16).hex())
    return made


def status(url: str, colony: str, *, timeout: float = 10) -> dict[str, object]:
    made = DirectoryLedger(Path(url.removeprefix(START)), colony)
    return {"colony": colony, "identity": made.identity, "head": made.head(""), "replicas": [], "faults": []}


class DirectoryLedger:
    """A `ledgers.Colony` in a directory."""

    right, member = "admin", "ana"

    def __init__(self, server: Path, colony: str) -> None:
        self.server, self.colony, self.place = server, colony, server / quote(colony, safe="")
        self.turns: dict[str, contextlib.ExitStack] = {}

    def fault(self, call: str) -> str:
        """Return how this call fails: the first line of the file `down` or `lose` that names it, once."""
        if (self.server / "down").exists():
            raise StorageFailed("the server does not answer.", fix="Start it.", where=str(self.server))
        path = self.server / "lose"
        if path.exists() and path.read_text() == call:
            path.unlink()
            return "lost"
        return ""

    @property
    def identity(self) -> str:
        self.fault("identity")
        try:
            return (self.place / "identity").read_text()
        except FileNotFoundError:
            raise NotFound("there is no such colony.", fix="Share it.", where=str(self.place)) from None

    def _file(self, stream: str) -> Path:
        return self.place / f"{quote(stream, safe='') or '.journal'}.lines"

    def _start(self, stream: str) -> tuple[int, str]:
        path = self._file(stream).with_suffix(".base")
        return tuple(json.loads(path.read_text())["first"]) if path.exists() else (0, "")

    def _lines(self, stream: str) -> list[bytes]:
        path = self._file(stream)
        return path.read_bytes().splitlines(keepends=True) if path.exists() else []

    @contextmanager
    def _locked(self, stream: str) -> Iterator[None]:
        with open(self._file(stream).with_suffix(".lock"), "ab") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def _after(self, stream: str, mark: Mark, limit: int) -> News:
        lines, (start, checksum) = self._lines(stream), self._start(stream)
        head = start + len(lines)
        known = checksum_of(lines[mark.revision - start - 1]) if start < mark.revision <= head else ""
        if mark.revision == start:
            known = checksum
        other = mark.checksum and known and known != mark.checksum
        if mark.revision > head or mark.revision < start or other:
            raise Conflict("the stream has another history.", fix="Join again.", where=str(self.place))
        return News(head, lines[mark.revision - start :][:limit])

    def head(self, stream: str) -> int:
        self.fault("head")
        return self._start(stream)[0] + len(self._lines(stream))

    def ends(self, prefix: str = "") -> dict[str, Mark]:
        self.fault("ends")
        found = {}
        for path in self.place.glob("*.lines"):
            name = unquote(path.stem).removeprefix(".journal")
            lines, (start, checksum) = self._lines(name), self._start(name)
            if name.startswith(prefix):
                found[name] = Mark(start + len(lines), checksum_of(lines[-1]) if lines else checksum)
        return found

    def read_after(self, stream: str, mark: Mark, *, limit: int = 1000) -> News:
        self.fault("read_after")
        return self._after(stream, mark, limit)

    def append_if(self, stream: str, mark: Mark, lines: Sequence[bytes]) -> Appended:
        lost = self.fault("append_if")
        with self.turns.pop(stream, None) or self._locked(stream):
            found = self._after(stream, mark, ANSWER_LINES)
            if found.head != mark.revision:
                return Appended(False, found.head, found.lines)
            with open(self._file(stream), "ab") as file:
                file.write(b"".join(lines))
        if lost:
            raise Unsettled("the answer was lost.", fix="Wait.", where=str(self.server))
        return Appended(True, mark.revision + len(lines), [])

    @contextmanager
    def turn(self, stream: str, mark: Mark) -> Iterator[News]:
        self.fault("turn")
        with contextlib.ExitStack() as held:
            held.enter_context(self._locked(stream))
            self.turns[stream] = held.pop_all()
            try:
                yield self._after(stream, mark, ANSWER_LINES)
            finally:
                if left := self.turns.pop(stream, None):
                    left.close()

    def remove_line(self, revision: int) -> None:
        with self._locked(""):
            lines, number = self._lines(""), revision - self._start("")[0] - 1
            lines[number] = placeholder(revision, lines[number])
            self._file("").write_bytes(b"".join(lines))

    def put_blob(self, data: bytes) -> str:
        self.fault("put_blob")
        name = hashlib.sha256(data).hexdigest()
        (self.place / f"{name}.blob").write_bytes(data)
        return name

    def get_blob(self, name: str) -> bytes:
        self.fault("get_blob")
        try:
            data = (self.place / f"{name}.blob").read_bytes()
        except FileNotFoundError:
            raise NotFound("there is no such blob.", fix="Restore it.", where=name) from None
        if hashlib.sha256(data).hexdigest() != name:
            raise CorruptDocument("the blob is damaged.", fix="Restore it.", where=name)
        return data

    def drop_blob(self, name: str) -> None:
        self.fault("drop_blob")
        used = {name for path in self.place.glob("*.base") for name in json.loads(path.read_text())["kept"]}
        if name not in used:
            (self.place / f"{name}.blob").unlink(missing_ok=True)

    def set_base(self, stream: str, mark: Mark, blob: str, parts: Sequence[str] = ()) -> str | None:
        self.fault("set_base")
        self.get_blob(blob)
        path, revision = self._file(stream).with_suffix(".base"), mark.revision
        known, lines = (json.loads(path.read_text()) if path.exists() else None), self._lines(stream)
        if lines and revision > self.head(stream):
            raise Conflict("the stream has no such revision.", fix="Name one.", where=str(self.place))
        before, replaced = known["newest"] if known else [0, ""]
        if lines and revision < before:
            return None
        first = [revision, mark.checksum] if not lines else known["first"] if known else [0, ""]
        made = {"first": first, "newest": [revision, blob], "kept": [blob, *parts]}
        path.write_text(json.dumps(made))
        self._file(stream).touch()
        return str(replaced)

    def base(self, stream: str) -> tuple[int, str]:
        path = self._file(stream).with_suffix(".base")
        return tuple(json.loads(path.read_text())["newest"]) if path.exists() else (0, "")

    def close(self) -> None:
        pass

"""Waiting lines: what writers of one shared home have planned and the ledger has not taken yet, so that one of them sends all.

`share/waiting` names in its first line the end of the journal that the lines follow; each was planned on the state after
the one before it. It is written under the lock of the home, and read by whoever sends, under `share/lock`. Lines count
only as long as the journal ends at that mark or at one of them: the content decides, so nothing has to be removed in
time. None of them is acknowledged, therefore the file is not synced, and a lost one loses nothing.

The journal shows each writer what became of its line: it is at its place there, or another is. If other replicas came
first, a line whose change commutes may be at another place, where its key shows it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from aether import regular
from aether.errors import AetherError, CorruptDocument, LockTimeout
from aether.schemas import check
from aether.store import recovery
from aether.store.files import (
    json_line,
    lines_backwards,
    locked,
    make_directory,
    parse_json,
    seal_json,
    storage_errors,
    unsealed,
    write_all,
)
from aether.store.ledger import CHECKSUM_END, Mark, checksum_of
from aether.store.merge import rules_of
from aether.store.patch import apply_with_inverse, get
from aether.store.snapshot import (
    Entry,
    Snapshot,
    advance,
    entry_line,
    file_ids,
    folded_entries,
    journal_path,
    month_files,
    read_journal,
    scan_journal,
)
from aether.tuples import NamedTuple
from aether.types import Commutes

DIRECTORY = "share"
# The file is made again when it has grown to so many bytes.
MOST_BYTES = 1 << 16


class Line(NamedTuple):
    """A line that waits."""

    line: bytes
    commutes: Commutes | None
    """See `Change.commutes`."""


class Waiting(NamedTuple):
    """The lines that wait after a mark."""

    lines: list[Line]
    is_end: bool
    """Whether they are the end of the file; else it must be made again."""


class Planned(NamedTuple):
    """A line of one's own that waits, and where it will be in the journal if the ledger takes it so."""

    revision: int
    key: str
    line: bytes
    journal: int
    """The inode of the journal."""
    at: int
    """The byte of the journal at which it starts."""


class Ahead(NamedTuple):
    """A state that this process has loaded, and the state after lines that wait, or are in the journal by now."""

    base: Snapshot
    """Its documents may be older than its revision."""
    lines: list[bytes]
    after: Snapshot
    taken: int
    """How many of the lines are in the journal."""

    def mark(self) -> Mark:
        """Return the end of the journal."""
        if not self.taken:
            return mark_of(self.base)
        return Mark(self.base.revision + self.taken, checksum_of(self.lines[self.taken - 1]))


def mark_of(snapshot: Snapshot) -> Mark:
    """Return how far the journal of a shared home reaches."""
    home, line = snapshot.home, b""
    with storage_errors(home), suppress(FileNotFoundError), regular.opened(journal_path(home)) as file:
        if snapshot.end > len(file.readline()):
            file.seek(max(0, snapshot.end - CHECKSUM_END))
            line = file.read(min(snapshot.end, CHECKSUM_END))
    if not line:
        for path in reversed(month_files(home)):
            line = next(lines_backwards(path), b"")
            if line:
                break
    return Mark(snapshot.revision, checksum_of(line))


def read(home: Path, mark: Mark) -> Waiting:
    """Return the lines that wait after `mark`, the end of the journal; none if they were planned on another state."""
    try:
        data = regular.read(_path(home), regular.LOG_BYTES)
    except FileNotFoundError:
        return Waiting([], is_end=False)
    first, *rest = data.splitlines(keepends=True) or [b""]
    head = unsealed(first) if first.endswith(b"\n") else None
    nth = mark.revision - head["mark"] if head and "mark" in head else -1
    found = [each.partition(b"\t") for each in rest if each.endswith(b"}\n")]
    if head is None or not 0 <= nth <= len(found):
        return Waiting([], is_end=False)
    if (checksum_of(found[nth - 1][2]) if nth else head["checksum"]) != mark.checksum:
        return Waiting([], is_end=False)
    lines = [Line(line, parse_json(about, where=DIRECTORY)) for about, _, line in found[nth:]]
    return Waiting(lines, is_end=len(found) == len(rest) and len(data) < MOST_BYTES)


def add(home: Path, mark: Mark, before: Waiting, line: Line) -> None:
    """Let `line` wait after those `before`; the caller holds the lock of the home."""
    path = _path(home)
    if before.is_end:
        handle = regular.handle(path, os.O_WRONLY | os.O_APPEND)
        try:
            write_all(handle, _packed(line))
        finally:
            os.close(handle)
        return
    make_directory(path.parent)
    # No reader may see half of it, and a crash may lose it: no sync.
    new = path.with_name("waiting.tmp")
    first = seal_json({"mark": mark.revision, "checksum": mark.checksum})
    new.write_bytes(b"".join([first, *map(_packed, before.lines), _packed(line)]))
    os.replace(new, path)


def drop(home: Path, *, unknown: bool = False) -> None:
    """Let nothing wait any more: the ledger did not take it, or it is `unknown` whether it did.

    The caller holds the lock of the home and may send.
    """
    with suppress(FileNotFoundError):
        if unknown:
            os.replace(_path(home), _unknown_path(home))
        else:
            _path(home).unlink()


def is_unknown(home: Path, mine: Planned) -> bool:
    """Return whether a line was sent, and the server could not be asked what became of it."""
    with suppress(FileNotFoundError):
        return _key(mine.key) in regular.read(_unknown_path(home), regular.LOG_BYTES)
    return False


def ahead(known: Ahead | None) -> tuple[Mark, Waiting, Ahead] | None:
    """Return the end of the journal, the lines that wait after it, and the state after them; None if `known` is too old."""
    with suppress(CorruptDocument, FileNotFoundError):
        known = known and _with_journal(known)
        if known is None:
            return None
        mark = known.mark()
        found = read(known.base.home, mark)
        lines, held = [each.line for each in found.lines], known.lines[known.taken :]
        if lines[: len(held)] == held:
            return mark, found, _with_lines(known, lines[len(held) :])
    return None


def _with_journal(known: Ahead) -> Ahead | None:
    """Return `known` with what the journal has by now; None if that does not follow it.

    Raises:
        CorruptDocument, FileNotFoundError: it does not, either.
    """
    base = known.base
    now, then = file_ids(base.home), base.files
    if now[1:] != then[1:] or not now[0] or not then[0] or now[0][0] != then[0][0]:
        return None
    size, at, taken = now[0][2], base.end, 0
    while at < size and taken < len(known.lines):
        at, taken = at + len(known.lines[taken]), taken + 1
    end = known.lines[taken - 1][-CHECKSUM_END:] if taken else b""
    with regular.opened(journal_path(base.home)) as file:
        file.seek(at - len(end))
        found = file.read(len(end) + max(0, size - at))
    if at > size or not found.startswith(end):
        return None
    more = found[len(end) :].splitlines(keepends=True)
    return _trimmed(_with_lines(known._replace(taken=taken), more, taken=True))


def _trimmed(known: Ahead) -> Ahead:
    """Return `known` with only the last of the lines that are in the journal; its base says just where they start."""
    old = max(0, known.taken - 1)
    if not old:
        return known
    base, size = known.base, sum(map(len, known.lines[:old]))
    base = base._replace(revision=base.revision + old, end=base.end + size)
    return known._replace(base=base, lines=known.lines[old:], taken=1)


def _with_lines(known: Ahead, lines: list[bytes], *, taken: bool = False) -> Ahead:
    if not lines:
        return known
    after = followed(known.after, lines)
    return Ahead(known.base, [*known.lines, *lines], after, known.taken + taken * len(lines))


def followed(snapshot: Snapshot, lines: list[bytes]) -> Snapshot:
    """Return `snapshot` after `lines`, which are not in its journal yet.

    Raises:
        CorruptDocument: they do not follow it.
    """
    found = scan_journal(b"".join(lines), base=snapshot.revision, where=DIRECTORY)
    if found.lines != lines:
        raise CorruptDocument("they do not follow.", fix="Try again.", where=DIRECTORY)
    end = snapshot.end + found.end
    return advance(snapshot, found.entries, end=end, torn=False, files=snapshot.files)


def refitted(snapshot: Snapshot, lines: list[Line], news: list[bytes]) -> list[bytes]:
    """Return the lines whose changes commute with `news`, lines of other replicas, planned for the state after these.

    What does not fit is left out, and so is what is among the news: it was sent before, by one who was killed.
    """
    rules = cache(lambda name: rules_of(check.schema(name)))
    keys = {(unsealed(line) or {}).get("key") for line in news}
    after, made = followed(snapshot, news), []
    for waits in lines:
        found = scan_journal(waits.line, base=(unsealed(waits.line) or {})["revision"] - 1, where=DIRECTORY)
        (entry,) = found.entries
        fit = None
        if waits.commutes is not None and entry.key not in keys:
            with suppress(AetherError, LookupError, TypeError):
                fit = _fitted(after, entry, waits.commutes, rules)
        if fit:
            made.append(fit)
            after = followed(after, [fit])
    return made


def _fitted(snapshot: Snapshot, entry: Entry, commutes: Commutes, rules: Any) -> bytes | None:
    """Return the line of `entry` for `snapshot`; None if it does not fit."""
    patches, inverse = {}, {}
    for name, patch in entry.patches.items():
        fit = recovery.refitted(snapshot.documents[name], patch, entry.inverse[name], rules(name))
        if not fit or len(fit) != len(patch):
            return None
        state, inverse[name] = apply_with_inverse(snapshot.documents[name], fit)
        patches[name] = fit
        if any(get(state, path) > most for path, most in commutes.get(name, {}).items()):
            return None
    return entry_line(entry._replace(revision=snapshot.revision + 1, patches=patches, inverse=inverse))


def taken_at(home: Path, mine: Planned) -> int | None:
    """Return the revision of `mine` in the journal; None if it is not at its place, nor after it."""
    with suppress(FileNotFoundError):
        path = str(journal_path(home))
        found = os.stat(path)
        if found.st_ino != mine.journal or found.st_size <= mine.at:
            return None  # most looks end here
        with regular.opened(path) as file:
            if os.fstat(file.fileno()).st_ino != mine.journal:
                return None
            file.seek(mine.at)
            data = file.read()
        if data.startswith(mine.line):
            return mine.revision
        return _revision_in(data.splitlines(keepends=True), mine)
    return None


def stored_at(home: Path, mine: Planned) -> int | None:
    """Return the revision of `mine` in the history; None if it is not there."""
    with storage_errors(home):
        found = _revision_in(read_journal(home).lines, mine)
        if found is None:
            for entry in folded_entries(home, newest_first=True):
                if entry.key == mine.key:
                    return entry.revision
                if entry.revision < mine.revision:
                    return None
        return found


def _revision_in(lines: list[bytes], mine: Planned) -> int | None:
    for line in lines:
        if _key(mine.key) in line and (fields := unsealed(line)) and fields.get("key") == mine.key:
            return int(fields["revision"])
    return None


@contextmanager
def sending(home: Path) -> Iterator[bool]:
    """Yield whether nobody else sends the waiting lines of `home`; nobody does during the block then."""
    if sys.platform == "win32":  # pragma: no cover - the tests run on the other branch
        with suppress(LockTimeout), locked(home / DIRECTORY, timeout=0):
            yield True
            return
        yield False
        return
    import fcntl

    with storage_errors(home):
        handle = regular.handle(f"{home}/{DIRECTORY}/lock", os.O_RDWR | os.O_CREAT)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)


def is_contended(home: Path) -> bool:
    """Return whether other replicas came first the last time, so that one has to take turns with them."""
    return os.path.exists(_contended(home))


def note_contended(home: Path, *, contended: bool) -> None:
    """Note whether other replicas came first."""
    with suppress(OSError):
        if contended:
            make_directory(home / DIRECTORY)
            Path(_contended(home)).touch()
        elif is_contended(home):
            os.unlink(_contended(home))


def _contended(home: Path) -> str:
    return f"{home}/{DIRECTORY}/contended"


def _path(home: Path) -> Path:
    return home / DIRECTORY / "waiting"


def _unknown_path(home: Path) -> Path:
    return home / DIRECTORY / "unknown"


def _key(key: str) -> bytes:
    return f'"key":"{key}"'.encode()


def _packed(waits: Line) -> bytes:
    return b"%s\t%s" % (json_line(waits.commutes).strip(), waits.line)

"""Append-only files: archived items, receipts, events and state history, written by folding.

A transaction may carry records for these files; they are committed with it, in its journal line, and
moved here when it is folded. Each record keeps its revision and its place in the transaction, so that writing
it again after a crash adds nothing. `records` reads all of them, folded or not, in the order of commits. A line
ends in its checksum; those of earlier releases have none. A damaged line is skipped: `doctor` finds it, and restores it from
the history.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from aether import regular
from aether.errors import CorruptDocument, NotFound, shown
from aether.regular import sealed_body
from aether.store.files import json_line, make_directory, months_in, parse_json
from aether.store.log import append, cut_torn_end, head_path, lines_backwards, read_head, seal_json
from aether.store.snapshot import Pending, Snapshot
from aether.types import JsonObject

# Monthly, because it grows without bound; the others are one small line per larger event.
MONTHLY = {"items": "data/archive/items"}
SINGLE = {"receipts": "data/receipts.jsonl", "events": "data/events.jsonl", "history": "data/history.jsonl"}
KINDS = (*MONTHLY, *SINGLE)
# Positions order records by revision, then by place; no transaction carries more records than this.
RECORDS_PER_REVISION = 1 << 22
_START = b'{"revision":'
# To look for more values than this in a file takes longer than to read all its records.
_MOST_SOUGHT = 16
# A stretch of a file this short is read line by line.
_HALVED_BYTES = 4_096


def position(record: JsonObject) -> int:
    """Return the place of a stored record among all records of its file: larger is later."""
    return int(record["revision"]) * RECORDS_PER_REVISION + int(record["nth"])


def files_of(home: Path, kind: str) -> list[Path]:
    """Return the existing files of `kind`, oldest first.

    Raises:
        NotFound: there is no such kind.
    """
    if kind in MONTHLY:
        return months_in(home / MONTHLY[kind])
    if kind not in SINGLE:
        kinds = ", ".join((*MONTHLY, *SINGLE))
        raise NotFound(
            f"{shown(kind)} is not an append-only file.", fix=f"Use one of {kinds}.", where=str(home)
        )
    path = home / SINGLE[kind]
    return [path] if path.exists() else []


def records(
    snapshot: Snapshot, kind: str, *, after: int = -1, holding: Collection[tuple[str, str]] = ()
) -> Iterator[tuple[int, JsonObject]]:
    """Yield position and record of `kind` with a position > `after`, oldest first.

    Only what is newer is read: the cost follows the number of new records, not the archive. With `holding`, records
    with none of these names and values anywhere may be left out: a whole archive is then searched as bytes, and hardly
    parsed.
    """
    for place, record, _ in located(snapshot, kind, after=after, holding=holding):
        yield place, record


def located(
    snapshot: Snapshot, kind: str, *, after: int = -1, holding: Collection[tuple[str, str]] = ()
) -> Iterator[tuple[int, JsonObject, int]]:
    """Yield what `records` yields, and where in its file each record starts, -1 for one that is not folded yet."""
    reached = after
    files = files_of(snapshot.home, kind)
    first = len(files)
    while first and not 0 <= _last(files[first - 1]) <= after:
        first -= 1
    for path in files[first:]:
        seeking = after < 0 and 0 < len(holding) <= _MOST_SOUGHT
        for record, start in _lines_holding(path, holding) if seeking else _tail(path, after):
            reached = position(record)
            yield reached, record, start
        reached = max(reached, _last(path)) if seeking else reached
    for pending in snapshot.pending:
        for record in numbered(pending, kind):
            if position(record) > reached:
                yield position(record), record, -1


def fetch(snapshot: Snapshot, kind: str, wanted: Mapping[int, int]) -> dict[int, JsonObject]:
    """Return the records at the positions `wanted`, each given with its offset or -1.

    An offset that is not right (the file was rewritten) costs a search in the file, as one that is not known.
    """
    found = {
        position(record): record
        for pending in snapshot.pending
        for record in numbered(pending, kind)
        if position(record) in wanted
    }
    for path, (first, last) in _ranges(snapshot.home, kind):
        inside = [(one, at) for one, at in wanted.items() if first <= one <= last and one not in found]
        if inside:
            with regular.opened(path) as file:
                size = file.seek(0, os.SEEK_END)
                for one, at in inside:
                    record = _record_at(file, one, at) if at >= 0 else None
                    if record is None:
                        record = _search(file, one, size)
                    if record is not None:
                        found[one] = record
    return found


def _ranges(home: Path, kind: str) -> Iterator[tuple[Path, tuple[int, int]]]:
    """Yield the files of `kind` with the positions of their first and last record."""
    for path in files_of(home, kind):
        with regular.opened(path) as file:
            first = next((position(record) for record in map(record_of, file) if record), -1)
        if first >= 0:
            yield path, (first, _last(path))


def _place(line: bytes) -> int:
    """Return the position of a line, read from the start of a sealed one, -1 for a damaged line."""
    if line.startswith(_START) and sealed_body(line) is not None:
        revision, _, rest = line[len(_START) : len(_START) + 60].partition(b',"nth":')
        nth = rest.partition(b",")[0]
        if revision.isdigit() and nth.isdigit():
            return int(revision) * RECORDS_PER_REVISION + int(nth)
    record = record_of(line)
    return position(record) if record else -1


def _record_at(file: BinaryIO, wanted: int, at: int) -> JsonObject | None:
    file.seek(at)
    record = record_of(file.readline())
    return record if record is not None and position(record) == wanted else None


def _search(file: BinaryIO, wanted: int, size: int) -> JsonObject | None:
    """Return the record at the position `wanted`, found by halving the file; damaged lines are passed over."""
    low, high = 0, size
    while high - low > _HALVED_BYTES:
        middle = (low + high) // 2
        file.seek(middle)
        file.readline()  # the rest of a line
        place = _next_place(file, high)
        low, high = (low, middle) if place < 0 or place > wanted else (middle, high)
    file.seek(low)
    if low:
        file.readline()
    while line := file.readline():
        place = _place(line)
        if place == wanted:
            return record_of(line)
        if place > wanted:
            break
    return None


def _next_place(file: BinaryIO, end: int) -> int:
    while file.tell() < end and (line := file.readline()):
        place = _place(line)
        if place >= 0:
            return place
    return -1


def head(snapshot: Snapshot) -> int:
    """Return the position of the last archived item, -1 without one."""
    for pending in reversed(snapshot.pending):
        if pending.appends.get("items"):
            return position(numbered(pending, "items")[-1])
    return _done(files_of(snapshot.home, "items"))


def _done(files: list[Path]) -> int:
    # A crash can leave the newest file without a record: then the one before it has the last.
    return next((last for last in map(_last, reversed(files)) if last >= 0), -1)


def end_of_head(home: Path) -> int:
    """Return a position that no record of `home` is beyond that was committed before; -1 if that is not known.

    Only the head of the journal is read, which is never ahead of it.
    """
    number = read_head(head_path(home))
    return -1 if number is None or number < 0 else (number + 1) * RECORDS_PER_REVISION - 1


def numbered(pending: Pending, kind: str) -> list[JsonObject]:
    """Return the records of `kind` that a transaction carries, with their revision and place."""
    made = pending.appends.get(kind, [])
    return [{"revision": pending.revision, "nth": nth, **record} for nth, record in enumerate(made)]


def _last(path: Path) -> int:
    for line in lines_backwards(path):
        record = record_of(line)
        if record is not None:
            return position(record)
    return -1


def _tail(path: Path, after: int) -> Iterator[tuple[JsonObject, int]]:
    """Yield the records of one file with a position > `after`, oldest first, each with its offset."""
    newer: list[tuple[JsonObject, int]] = []
    if after < 0:
        start = 0
        with regular.opened(path) as file:
            for line in file:
                record = record_of(line)
                if record is not None:
                    yield record, start
                start += len(line)
        return
    start = path.stat().st_size
    for line in lines_backwards(path):
        start -= len(line)
        record = record_of(line)
        if record is not None and position(record) <= after:
            break
        if record is not None:
            newer.append((record, start))
    yield from reversed(newer)


def _lines_holding(path: Path, members: Collection[tuple[str, str]]) -> Iterator[tuple[JsonObject, int]]:
    """Yield the records of one file that have one of `members` at any depth, each with its offset."""
    data, starts = regular.read(path, regular.LOG_BYTES), set()
    for name, value in members:
        # As lines are written, and as those that hold a lone surrogate are.
        for spelt in {json_line(value), json.dumps(value).encode()}:
            wanted, at = b'"%s":%s' % (name.encode(), spelt), -1
            while (at := data.find(wanted, at + 1)) >= 0:
                starts.add(data.rfind(b"\n", 0, at) + 1)
                at = data.find(b"\n", at)
                if at < 0:
                    break
    for start in sorted(starts):
        record = record_of(data[start : data.find(b"\n", start) + 1])
        if record is not None:
            yield record, start


def record_of(line: bytes) -> JsonObject | None:
    """Return the record of one line; None if it is torn (the journal has it) or damaged (doctor reports it)."""
    if not line.endswith(b"\n"):
        return None
    try:
        record: JsonObject = parse_json(sealed_body(line) or line, where="archive")
        position(record)
    except (CorruptDocument, KeyError, TypeError, ValueError):
        return None
    # A line without a seal is one of an earlier release; with a wrong one it is damaged.
    return None if "checksum" in record else record


def lines_to_fold(home: Path, pending: tuple[Pending, ...]) -> dict[Path, list[bytes]]:
    """Return the lines that the `pending` records add to each file; none of those that a killed fold has written."""
    lines: dict[Path, list[bytes]] = {}
    for kind in sorted({kind for one in pending for kind in one.appends}):
        files = files_of(home, kind)
        done, ours = _done(files), list[Path]()
        for one in pending:
            # Never an earlier file than the last one: a clock that was set back must not break the order.
            path = max([file_of(home, kind, one.at), *files[-1:], *ours])
            if fresh := [record for record in numbered(one, kind) if position(record) > done]:
                lines.setdefault(path, []).extend(map(seal_json, fresh))
                ours.append(path)
    return lines


def file_of(home: Path, kind: str, at: str) -> Path:
    """Return the file of the records of `kind` that were committed `at`."""
    return home / MONTHLY[kind] / f"{at[:7]}.jsonl" if kind in MONTHLY else home / SINGLE[kind]


def write_lines(lines: dict[Path, list[bytes]]) -> None:
    """Append `lines` to their files; a torn end left by a crash is written again."""
    for path, made in lines.items():
        make_directory(path.parent)
        append(path, b"".join(made), at=cut_torn_end(path))

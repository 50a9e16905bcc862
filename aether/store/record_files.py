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
from aether.store.journal import PART_CHARS
from aether.store.log import append, cut_torn_end, head_path, lines_backwards, read_head, seal_json
from aether.store.snapshot import Pending, Snapshot
from aether.types import JsonObject

# Monthly, because it grows without bound; the others are one small line per larger event.
MONTHLY = {"items": "data/archive/items"}
SINGLE = {"receipts": "data/receipts.jsonl", "events": "data/events.jsonl", "history": "data/history.jsonl"}
KINDS = (*MONTHLY, *SINGLE)
# Positions order records by revision, then by place; no transaction carries more records than this.
RECORDS_PER_REVISION = 1 << 22
# A file that is searched for a position is read line by line where so little of it remains.
SEARCHED_BYTES = 8192


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

    Files without newer records are not read. With `holding`, records with none of these names and values anywhere may
    be left out: their lines are not parsed.
    """
    for place, record, _ in located(snapshot, kind, after=after, holding=holding):
        yield place, record


def located(
    snapshot: Snapshot, kind: str, *, after: int = -1, holding: Collection[tuple[str, str]] = ()
) -> Iterator[tuple[int, JsonObject, int]]:
    """Yield what `records` yields, and where in its file each record starts, -1 for one that is not folded yet."""
    # As lines are written, and as those that hold a lone surrogate are.
    needles = [
        b'"%s":%s' % (name.encode(), text)
        for name, value in holding
        for text in {json_line(value), json.dumps(value).encode()}
    ]
    files, folded = files_of(snapshot.home, kind), after
    first = len(files)
    while first and not 0 <= _last(files[first - 1]) <= after:
        first -= 1
    for path in files[first:]:
        with regular.opened(path) as file:
            start = _find(file, after)
            for line in file:
                if not needles or any(needle in line for needle in needles):
                    record = record_of(line)
                    if record is not None and position(record) > after:
                        yield position(record), record, start
                start += len(line)
        folded = max(folded, _last(path))
    for pending in snapshot.pending:
        for record in numbered(pending, kind):
            if position(record) > folded:
                yield position(record), record, -1


def fetch(snapshot: Snapshot, kind: str, offsets: Mapping[int, int]) -> dict[int, JsonObject]:
    """Return the records at the positions `wanted`, each given with its offset or -1.

    An offset that is not right (the file was rewritten), or is not known, costs a few more reads.
    """
    pending = (record for pending in snapshot.pending for record in numbered(pending, kind))
    records = {position(record): record for record in pending if position(record) in offsets}
    for path in files_of(snapshot.home, kind):
        missing = offsets.keys() - records.keys()
        if not missing or _last(path) < min(missing):
            continue
        with regular.opened(path) as file:
            for place in sorted(missing):
                file.seek(max(offsets[place], 0))
                record = record_of(file.readline()) if offsets[place] >= 0 else None
                if record is None or position(record) != place:
                    _find(file, place - 1)
                    later = (
                        record for record in map(record_of, file) if record and position(record) >= place
                    )
                    record = next(later, None)
                if record is not None and position(record) == place:
                    records[place] = record
    return records


def _find(file: BinaryIO, after: int) -> int:
    """Move to the start of a line, which is returned; all lines before it have positions up to `after`, as few after it do."""
    low, high = 0, file.seek(0, os.SEEK_END)
    while high - low > SEARCHED_BYTES:
        file.seek((low + high) // 2)
        file.readline()
        start = file.tell()
        record = record_of(file.readline())
        # Nothing is skipped by a damaged line.
        if start < high and record is not None and position(record) <= after:
            low = start
        else:
            high = (low + high) // 2
    return file.seek(low)


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
    records = pending.appends.get(kind, [])
    return [{"revision": pending.revision, "nth": nth, **record} for nth, record in enumerate(records)]


def _last(path: Path) -> int:
    for line in lines_backwards(path):
        record = record_of(line)
        if record is not None:
            return position(record)
    return -1


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
    for kind in sorted({kind for transaction in pending for kind in transaction.appends}):
        files = files_of(home, kind)
        folded, ours = _done(files), list[Path]()
        for transaction in pending:
            # Never an earlier file than the last one: a clock that was set back must not break the order.
            path = max([file_of(home, kind, transaction.at), *files[-1:], *ours])
            if fresh := [record for record in numbered(transaction, kind) if position(record) > folded]:
                size = len(fresh) * PART_CHARS
                lines.setdefault(path, []).extend(seal_json(record, size=size) for record in fresh)
                ours.append(path)
    return lines


def file_of(home: Path, kind: str, at: str) -> Path:
    """Return the file of the records of `kind` that were committed `at`."""
    return home / MONTHLY[kind] / f"{at[:7]}.jsonl" if kind in MONTHLY else home / SINGLE[kind]


def write_lines(lines: dict[Path, list[bytes]]) -> None:
    """Append `lines` to their files; a torn end left by a crash is written again."""
    for path, new_lines in lines.items():
        make_directory(path.parent)
        append(path, b"".join(new_lines), at=cut_torn_end(path))

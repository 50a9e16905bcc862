"""Seals: the record by which damage of a file is noticed, even where the rest of the file looks whole.

Each line of a file that grows ends in a checksum of its own. `data/seals.json` holds, for each such file of the home, its
bytes, its lines and a chain of checksums over them, as of the last fold, the checksum of each snapshot, and the losses that
are known. A `head` (`data/head`, `conversations/<id>/head`) holds the number of the last acknowledged line: one small
write after the line is durable, not synced itself, so that it is never ahead of the line. A file that ends before its head
or its record has lost lines.

The record is continued, never measured again by a writer: damage stays visible until `doctor --repair` has named it. It may
come with a repository: one that names anything but files that it can be about is a damaged one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from fnmatch import fnmatchcase
from os import fstat, walk
from pathlib import Path
from typing import Any, NamedTuple

from aether import clock, regular
from aether.errors import AetherError, UnsafePath
from aether.paths import inside, is_plain
from aether.store import documents, files
from aether.store.log import head_path
from aether.types import JsonObject

PATH = "data/seals.json"
MONTHS = "data/journal"
GROWING = (f"{MONTHS}/*.jsonl", "data/archive/items/*.jsonl", "data/*.jsonl")
WHOLE = ("snapshots/*.json",)
# Its lines are numbered by their revisions, and its end is in the head.
JOURNAL = "data/journal.jsonl"
# Its lines are compared with the conversations that there are.
CONVERSATIONS = "data/conversations.jsonl"
# Kind of the files whose path starts so, in the words of a report; any other is `other`.
KINDS = {
    "data/journal": "history", "data/backups": "backups", "data/archive": "archive", "data/receipts": "records",
    "data/events": "records", "data/history": "records", "data": "documents", "compressions": "hand-offs",
    "snapshots": "snapshots", "archive": "archived conversations", "conversations": "conversations", "memories": "memory files", "hooks": "hooks",
    "quarantine": "quarantine", "share": "waiting changes", "hook.log": "logs", "telemetry": "logs",
    "index.sqlite": "search index",
}  # fmt: skip
_FORMAT = 1
_CHAIN_CHARS = 16


class Grown(NamedTuple):
    """The part of a file that the record covers."""

    size: int = 0
    lines: int = 0
    chain: str = ""

    def after(self, lines: Iterable[bytes]) -> Grown:
        """Return the record after `lines`."""
        size, number, chain = self
        for line in lines:
            size, number = size + len(line), number + 1
            chain = regular.digest(chain.encode() + line)[:_CHAIN_CHARS]
        return Grown(size, number, chain)


class Seals(NamedTuple):
    """The record of a home."""

    state: str
    """`good`, `damaged`, or `missing`: no fold has made one yet, or it was removed."""
    revision: int
    """The last folded revision when it was written."""
    grown: dict[str, Grown]
    whole: dict[str, str]
    losses: list[JsonObject]
    """Each with `at`, `where` and `what`, and `revisions` if some of the history are lost."""


def read(home: Path) -> Seals:
    """Return the record of `home`; an empty one if it is missing or damaged."""
    try:
        found = documents.read(home / PATH)
    except AetherError:  # no regular file
        return Seals("damaged", 0, {}, {}, [])
    value = found.value
    with suppress(KeyError, TypeError, AttributeError):
        if found.state == "good" and _is_record(value):
            grown = {path: Grown(*fields) for path, fields in value["grown"].items()}
            return Seals("good", found.revision, grown, value["whole"], value["losses"])
    return Seals("missing" if found.state == "missing" else "damaged", 0, {}, {}, [])


def _is_record(value: Any) -> bool:
    """Return whether a record has only names that it can have, and what is said of each has its form.

    Raises:
        KeyError, TypeError, AttributeError: it has another form.
    """
    return (
        all(
            _is_of(name, GROWING) and _has_types(held, int, int, str) for name, held in value["grown"].items()
        )
        and all(_is_of(name, WHOLE) and isinstance(held, str) for name, held in value["whole"].items())
        and isinstance(value["losses"], list)
        and all(
            _has_types([loss["at"], loss["where"], loss["what"]], str, str, str)
            and _has_types(loss.get("revisions", [0, 0]), int, int)
            for loss in value["losses"]
        )
    )


def _is_of(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a file has a name of `patterns`, of which `*` is a part without `/`."""
    return is_plain(name) and any(
        name.count("/") == one.count("/") and fnmatchcase(name, one) for one in patterns
    )


def _has_types(values: list[Any], *kinds: type) -> bool:
    """Return whether `values` are of these types; none of their numbers is negative."""
    right = [type(one) for one in values] == [*kinds]
    return right and all(one >= 0 for one in values if type(one) is int)


def write(home: Path, seals: Seals) -> None:
    """Write the record; the caller holds the lock of the home."""
    files.write_whole(home / PATH, encoded(seals))


def encoded(seals: Seals) -> bytes:
    """Return the content of the file of the record."""
    value = {
        "format": _FORMAT,
        "grown": {path: list(fields) for path, fields in sorted(seals.grown.items())},
        "whole": dict(sorted(seals.whole.items())),
        "losses": seals.losses,
    }
    return documents.encode(value, seals.revision, size=0)


def growing(home: Path) -> list[Path]:
    """Return the files of `home` that grow, but the journal, whose lines move at each fold, and the list of conversations."""
    return [
        path
        for pattern in GROWING
        for path in sorted(home.glob(pattern))
        if place(home, path) not in (JOURNAL, CONVERSATIONS)
    ]


def place(home: Path, path: Path) -> str:
    """Return the path of a file in the home, as records name it."""
    return path.relative_to(home).as_posix()


def kind_of(place: str) -> str:
    """Return the kind of the file at `place`."""
    return next((kind for start, kind in KINDS.items() if place.startswith(start)), "other")


def sizes(home: Path) -> dict[str, int]:
    """Return the bytes that the files of `home` have, by kind, most first."""
    found: Counter[str] = Counter()
    for directory, _, names in walk(home):
        for path in (Path(directory, name) for name in names):
            with suppress(FileNotFoundError):  # a file that comes and goes
                found[kind_of(place(home, path))] += path.lstat().st_size
    return dict(found.most_common())


def measured(path: Path, known: Grown | None = None) -> Grown:
    """Return the record of the file at `path`; of what is behind `known`, only that is read."""
    start = known or Grown()
    with regular.opened(path) as file:
        file.seek(start.size)
        return start.after(line for line in file.read().splitlines(keepends=True) if line.endswith(b"\n"))


def appended(home: Path, seals: Seals, fresh: dict[Path, list[bytes]]) -> Seals:
    """Return the record after `fresh` lines were appended to files; of the others the record stays.

    Call it before they are appended: lines that a killed fold left there are recorded first.
    """
    if seals.state == "missing":  # a home of an earlier release
        seals = renewed(home, seals)
    grown = dict(seals.grown)
    for path, lines in fresh.items():
        name = place(home, path)
        known = grown.get(name, Grown())
        if path.exists() and path.stat().st_size > known.size:
            known = measured(path, known)
        grown[name] = known.after(lines)
    return seals._replace(grown=grown)


def renewed(home: Path, seals: Seals) -> Seals:
    """Return the record of what is in the files of `home` now; the losses stay."""
    whole = {
        place(home, path): files.checksum(regular.read(path, regular.LOG_BYTES)) for path in whole_files(home)
    }
    grown = {place(home, path): measured(path) for path in growing(home)}
    return seals._replace(grown=grown, whole=whole)


def whole_files(home: Path) -> list[Path]:
    """Return the files of `home` that are written whole and have their checksum in the record."""
    return [path for pattern in WHOLE for path in sorted(home.glob(pattern))]


def fault(home: Path, seals: Seals, name: str) -> str:
    """Return how the file `name` of the record differs from it, empty if it does not."""
    path = home / name
    if name in seals.whole:
        try:
            path = inside(home, name)
        except UnsafePath:
            return "a link leads out of the home."
    if not path.is_file():
        return "it is missing."
    if name in seals.whole:
        return (
            ""
            if files.checksum(regular.read(path, regular.LOG_BYTES)) == seals.whole[name]
            else "its content was changed."
        )
    known = seals.grown[name]
    with regular.opened(path) as file:
        data = file.read(min(known.size, fstat(file.fileno()).st_size))
    if len(data) < known.size:
        return f"it was cut off: {len(data)} of {known.size} bytes are left."
    return "" if Grown().after(data.splitlines(keepends=True)) == known else "its content was changed."


def with_loss(
    seals: Seals, where: str, what: str, *, now: datetime, revisions: tuple[int, int] | None = None
) -> Seals:
    """Return the record with one more known loss."""
    loss: JsonObject = {"at": clock.stamp(now), "where": where, "what": what}
    if revisions:
        loss["revisions"] = list(revisions)
    return seals._replace(losses=[*seals.losses, loss])


def seal_file(home: Path, path: Path, data: bytes | None) -> None:
    """Record the content of a file that is written whole, None if it was removed; the caller holds the lock of the home."""
    seals = read(home)
    whole = {name: known for name, known in seals.whole.items() if name != place(home, path)}
    if data is not None:
        whole[place(home, path)] = files.checksum(data)
    if seals.state == "missing" and not head_path(home).exists():
        seals = appended(home, seals, {})
    if whole != seals.whole and seals.state != "damaged":
        write(home, seals._replace(whole=whole))


def revisions(numbers: Iterable[int]) -> str:
    """Return the numbers of revisions, in their order, in words.

    >>> revisions([5]), revisions([5, 6, 7, 9])
    ('revision 5', 'revisions 5-7, 9')
    """
    listed = listed_ranges(numbers)
    return f"{'revision' if listed.isdecimal() else 'revisions'} {listed}"


def listed_ranges(numbers: Iterable[int]) -> str:
    """Return whole numbers, in their order, with runs as ranges.

    >>> listed_ranges([1, 3, 4, 5])
    '1, 3-5'
    """
    return ", ".join(f"{low}-{high}" if high > low else str(low) for low, high in ranges(numbers))


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

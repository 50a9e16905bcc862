"""The journal: one checksummed line per committed transaction, oldest first.

The first line says which revision the journal starts after. A line is a commit when its checksum holds
and its revision is the next one; a torn last line is not a commit. A second line for one revision (two
writers whose lock failed) is not a commit either, and its writer finds that out before it acknowledges.
Lines that are folded into the documents move, byte for byte, to `data/journal/YYYY-MM.jsonl`.

History: every transaction that ever was, newest or oldest first, and the state at any of them.

Folded lines rest in `data/journal/YYYY-MM.jsonl`; each line holds its own inverse, so a past state is
reached by walking back from the present one, without any backup.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from aether.errors import CorruptDocument, InvalidDocument
from aether.store import files
from aether.store.files import lines_backwards
from aether.types import JsonObject, Patch

FORMAT = 1
_MARK = b',"checksum":"'
# 64 bits of sha256: an accident shows; nobody is kept from forging a file that he may edit anyway.
_CHECKSUM_CHARS = 16


class Entry(NamedTuple):
    """One committed transaction."""

    revision: int
    at: str
    by: str
    operation: str
    reason: str
    patches: dict[str, Patch]
    inverse: dict[str, Patch]
    appends: dict[str, list[JsonObject]]
    erased: bool = False
    """Whether a text was erased from it, so that it cannot be undone."""


class Scan(NamedTuple):
    """What stands in a journal: its commits, where they end, and what follows them."""

    base: int
    entries: list[Entry]
    lines: list[bytes]
    """The line of each entry, as it stands."""
    end: int
    """Byte offset after the last commit."""
    torn: bytes
    """What follows the last commit and is none: a write that was cut off."""
    ignored: int
    """Lines that repeat a revision: commits that were never acknowledged."""
    made: tuple[str, ...] = ()
    """The optional documents that had a file when the journal began."""


def header(base: int, *, made: Sequence[str] = ()) -> bytes:
    """Return the first line of a journal whose next commit is `base + 1`; `made` names the optional documents by then."""
    return seal_json({"journal": FORMAT, "base": base, **({"made": list(made)} if made else {})})


def entry_line(entry: Entry) -> bytes:
    """Return the line of `entry`, with checksum and newline; empty fields are left out."""
    fields = {name: value for name, value in entry._asdict().items() if value or name == "revision"}
    return seal_json(fields)


def seal_json(value: JsonObject) -> bytes:
    """Return `value` as a line that ends in the checksum of what stands before it."""
    return seal(files.json_line(value))


def seal(body: bytes) -> bytes:
    """Return the JSON object `body` as a line that ends in its checksum."""
    return body[:-1] + _MARK + checksum(body).encode() + b'"}\n'


def checksum(data: bytes) -> str:
    """Return the checksum that lines and documents carry."""
    return hashlib.sha256(data).hexdigest()[:_CHECKSUM_CHARS]


def unsealed(line: bytes) -> JsonObject | None:
    """Return the value of a sealed line, or None where the line is torn or damaged."""
    body = sealed_body(line)
    return None if body is None else files.parse_json(body, where="journal")


def sealed_body(line: bytes) -> bytes | None:
    """Return the JSON of a sealed line without its checksum, or None where the line is torn or damaged."""
    body, mark, seal = line.rpartition(_MARK)
    if not mark or seal.rstrip(b'"}\r\n').decode("ascii", "replace") != checksum(body + b"}"):
        return None
    return body + b"}"


def scan(data: bytes, *, base: int | None = None, where: str) -> Scan:
    """Return what stands in `data`: a whole journal, or its tail after revision `base`.

    Raises:
        CorruptDocument: a line is damaged and commits follow it, so that their ground is missing.
        InvalidDocument: a newer aether wrote it.
    """
    lines = data.splitlines(keepends=True) if base is not None else data.splitlines(keepends=True)[1:]
    at = 0 if base is not None else len(data) - sum(map(len, lines))
    start, made = _begin(data[:at], where) if base is None else (base, ())
    entries: list[Entry] = []
    accepted: list[bytes] = []
    end, ignored = at, 0
    bad: int | None = None
    for number, line in enumerate(lines, 1):
        at += len(line)
        fields = unsealed(line) if line.endswith(b"\n") else None
        if fields is None:
            bad = bad or number
            continue
        revision = fields["revision"]
        if bad or revision > start + len(entries) + 1:
            raise _damaged(where, bad or number, revision)
        if revision <= start + len(entries):
            ignored += 1
        else:
            entries.append(entry_of(fields))
            accepted.append(line)
        end = at
    return Scan(start, entries, accepted, end, data[end:], ignored, made)


def _begin(first: bytes, where: str) -> tuple[int, tuple[str, ...]]:
    fields = unsealed(first) if first else None
    if fields is None or "journal" not in fields:
        raise CorruptDocument(
            "the first line is damaged.",
            fix='Run "aether doctor --repair": it keeps the file and starts anew.',
            where=where,
        )
    if fields["journal"] > FORMAT:
        raise InvalidDocument(
            f"written by a newer aether (journal format {fields['journal']}, this one knows {FORMAT}).",
            fix="Upgrade aether; the home was left as it is.",
            where=where,
        )
    return int(fields["base"]), tuple(fields.get("made", ()))


def _damaged(where: str, line: int, revision: int) -> CorruptDocument:
    return CorruptDocument(
        f"line {line + 1} is damaged or missing, and revision {revision} follows it.",
        fix='Run "aether doctor --repair": it keeps the file, and everything up to the damage.',
        where=where,
    )


def entry_of(fields: JsonObject) -> Entry:
    """Return the entry that a line's fields say."""
    empty: dict[str, Any] = {}
    return Entry(
        revision=int(fields["revision"]),
        at=fields.get("at", ""),
        by=fields.get("by", ""),
        operation=fields.get("operation", ""),
        reason=fields.get("reason", ""),
        patches=fields.get("patches", empty),
        inverse=fields.get("inverse", empty),
        appends=fields.get("appends", empty),
        erased=fields.get("erased", False),
    )


def month_files(home: Path) -> list[Path]:
    """Return the files of folded lines, oldest first."""
    return sorted((home / "data" / "journal").glob("[0-9]*-[0-9]*.jsonl"))


def folded_entries(home: Path, *, after: int = 0, newest_first: bool = False) -> Iterator[Entry]:
    """Yield the folded transactions with revision > `after`.

    A damaged line is passed over: what needs an unbroken row notices the missing revision.
    """
    months_ = month_files(home)
    for path in reversed(months_) if newest_first else months_:
        for line in lines_backwards(path) if newest_first else path.read_bytes().splitlines(keepends=True):
            fields = unsealed(line)
            if fields is None:
                continue
            if newest_first and fields["revision"] <= after:
                return
            if fields["revision"] > after:
                yield entry_of(fields)

"""The journal of a home: one checksummed line per transaction, oldest first, and its months of folded lines.

The first line names the revision it starts after. A line is a commit if its checksum holds and its revision is the next
one; a second line for one revision (two writers whose lock failed) is not, and its writer notices before it acknowledges.
Folded lines move, byte for byte, to `data/journal/YYYY-MM.jsonl`; each holds its own inverse, so past states need no backup.
A journal that is damaged is read as far as it can be, and names what is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from aether import regular
from aether.errors import CorruptDocument, InvalidDocument
from aether.regular import sealed_body
from aether.store import documents
from aether.store.files import months_in
from aether.store.log import head_path, lines_backwards, lines_of, read_head, seal_json, unsealed
from aether.store.patch import apply, apply_with_inverse
from aether.types import JsonObject, Patch

JOURNAL_FORMAT = 1
# What a step of a patch or a record has at least: where there are many, the line is long.
PART_CHARS = 200


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
    part: str = ""
    """`<whole>/<number from 1>` of a change that takes several transactions and is undone as one: an import."""
    key: str = ""
    """The name of a change that may wait for the server of a shared home: it is in the history once."""
    member: str = ""
    """In a shared home the role of the server that sent it; the server has compared it."""


class Journal(NamedTuple):
    """The commits of a journal, and the bytes after them."""

    base: int
    entries: list[Entry]
    lines: list[bytes]
    """The line of each entry, byte for byte."""
    end: int
    """Byte offset after the last commit."""
    torn: bytes
    """What follows the last commit: a write that was cut off."""
    ignored: int
    """Lines that repeat a revision: commits that were never acknowledged."""
    made: tuple[str, ...] = ()
    """The optional documents that had a file when the journal was started."""
    sealed: bool = False
    """Whether the home had its record of seals when the journal was started."""
    harm: Harm | None = None
    """What is damaged: the file must be written again before a line is appended to it."""


class Harm(NamedTuple):
    """Damage of a journal, as it is read: each lost revision is an entry without effect."""

    lost: list[int]
    """Revisions whose line is damaged or missing."""
    unfit: list[int]
    """Revisions after a lost one whose change could not be applied without it; their lines go to quarantine."""
    lines: list[bytes]
    """The lines of `unfit`."""


# The operation of a lost revision.
LOST = "lost"


@lru_cache(maxsize=64)
def journal_path(home: Path) -> Path:
    """Return the journal of `home`."""
    return home / "data" / "journal.jsonl"


def read_journal(home: Path) -> Journal:
    """Return the journal of `home`; without its file, an empty one after the folded lines.

    An optional document with a backup counts as made, even if an older aether's journal does not name it.
    """
    path = journal_path(home)
    # First: lines that are appended meanwhile must not look lost.
    head = read_head(head_path(home)) or 0
    try:
        data = regular.read(path, regular.LOG_BYTES)
    except FileNotFoundError:
        last = next(folded_entries(home, newest_first=True), None)
        patched = {name for entry in folded_entries(home) for name in entry.patches} if last else set()
        optional = tuple(name for name in documents.OPTIONAL if name in patched)
        base = max(last.revision if last else 0, newest_stamp(home))
        if head <= base:
            return Journal(last.revision if last else 0, [], [], 0, b"", 0, optional)
        data = journal_header(base, made=optional, sealed=True)
    try:
        journal = scan_journal(data, where=str(path))
        if head > journal.base + len(journal.entries):
            raise _damaged_journal(str(path), "commits are missing at its end.")
    except CorruptDocument:
        journal = recovered(home, data, head)
    unnamed = (name for name in documents.OPTIONAL if name not in journal.made)
    return journal._replace(
        made=(*journal.made, *(name for name in unnamed if documents.backups(home, name)))
    )


def newest_stamp(home: Path) -> int:
    """Return the newest revision that a whole document of `home` contains."""
    contents = [documents.read(documents.path_of(home, name)) for name in documents.NAMES]
    return max((file.revision for file in contents if file.state == "good"), default=0)


def recovered(home: Path, data: bytes, head: int) -> Journal:
    """Return the damaged journal `data`, whose last acknowledged revision was `head`, as far as it can be read.

    Raises:
        InvalidDocument: a newer aether wrote it.
    """
    lines = [line for line, good in lines_of(data) if good]
    fields = [unsealed(line) or {} for line in lines]
    first = next((line for line, values in zip(lines, fields, strict=True) if "journal" in values), b"")
    ours: dict[int, bytes] = {}
    for line, values in zip(lines, fields, strict=True):
        if "revision" in values:
            ours.setdefault(values["revision"], line)
    newest = newest_stamp(home)
    if first:
        base, optional, sealed = _first_line(first, "")
    else:
        last = next(folded_entries(home, newest_first=True), None)
        reached = max(last.revision if last else 0, newest)
        # The commits count if they follow the last known revision.
        base, optional, sealed = (
            min(min(ours, default=reached + 1) - 1, reached),
            documents.existing_optional(home),
            True,
        )
    # A fold that was cut short has its lines in the history already.
    folded = {entry.revision: entry for entry in folded_entries(home, after=base)}
    entries: list[Entry] = []
    time = next((values["at"] for values in fields if "at" in values), "")
    for revision in range(base + 1, max(max(ours, default=base), newest, head) + 1):
        entry = entry_of(unsealed(ours[revision]) or {}) if revision in ours else folded.get(revision)
        time = entry.at if entry else time or _at_of(home)
        entries.append(entry or Entry(revision, time, "doctor", LOST, "its line was damaged", {}, {}, {}))
    return _refitted(home, Journal(base, entries, [], 0, b"", 0, optional, sealed), ours)


def _at_of(home: Path) -> str:
    """Return a time for a lost revision that has no neighbour: that of the last fold."""
    last = next(folded_entries(home, newest_first=True), None)
    return last.at if last else "1970-01-01T00:00:00.000000Z"


def _refit(state: Mapping[str, Any], name: str, patch: Patch, entry: Entry) -> Patch | None:
    """Return the `patch` of document `name` as it fits its state, None if it does not."""
    from aether.schemas import check
    from aether.store.merge import refitted, rules_of

    if name not in state:
        return None
    return refitted(state[name], patch, entry.inverse.get(name, []), rules_of(check.schema(name)))


def _refitted(home: Path, journal: Journal, ours: dict[int, bytes]) -> Journal:
    """Return the recovered journal with each later change as it fits the state without the lost ones."""
    lost = [
        entry.revision for entry in journal.entries if entry.operation == LOST and entry.revision not in ours
    ]
    files = {name: documents.read(documents.path_of(home, name)) for name in documents.NAMES}
    state = {name: file.value for name, file in files.items() if file.state == "good"}
    state |= {
        name: documents.default(name)
        for name, file in files.items()
        if file.state == "missing" and name not in journal.made
    }
    entries: list[Entry] = []
    unfit: list[int] = []
    for entry in journal.entries:
        fitting = entry
        fresh = {
            name: patch for name, patch in entry.patches.items() if entry.revision > files[name].revision
        }
        if fresh and lost and entry.revision > lost[0]:
            refit = {name: _refit(state, name, patch, entry) for name, patch in fresh.items()}
            if None in refit.values():
                unfit.append(entry.revision)
                fitting = entry._replace(
                    operation=LOST,
                    by="doctor",
                    reason=f"{entry.operation}: did not fit",
                    patches={},
                    inverse={},
                    appends={},
                )
            else:
                patches = {name: patch for name, patch in refit.items() if patch}
                inverse = {name: apply_with_inverse(state[name], patch)[1] for name, patch in patches.items()}
                if patches != entry.patches or inverse != entry.inverse:
                    fitting = entry._replace(patches=patches, inverse=inverse)
        for name, patch in fitting.patches.items():
            if name in state and entry.revision > files[name].revision:
                state[name] = apply(state[name], patch)
        entries.append(fitting)
    lines = [
        ours[e.revision] if e.revision in ours and e is was else entry_line(e)
        for e, was in zip(entries, journal.entries, strict=True)
    ]
    harm = Harm(lost, unfit, [entry_line(entry) for entry in journal.entries if entry.revision in unfit])
    return journal._replace(entries=entries, lines=lines, harm=harm)


def scan_journal(data: bytes, *, base: int | None = None, where: str) -> Journal:
    """Return the content of `data`: a whole journal, or its tail after revision `base`.

    Raises:
        CorruptDocument: a line is damaged and commits follow it.
        InvalidDocument: a newer aether wrote it.
    """
    lines = data.splitlines(keepends=True) if base is not None else data.splitlines(keepends=True)[1:]
    offset = 0 if base is not None else len(data) - sum(map(len, lines))
    start, optional, sealed = _first_line(data[:offset], where) if base is None else (base, (), False)
    entries: list[Entry] = []
    accepted: list[bytes] = []
    end, ignored, bad = offset, 0, 0
    for number, line in enumerate(lines, 1):
        offset += len(line)
        fields = unsealed(line) if line.endswith(b"\n") else None
        if fields is None or "revision" not in fields:  # damaged, or the first line of another journal
            bad = bad or number
            continue
        revision = fields["revision"]
        if bad or revision > start + len(entries) + 1:
            what = f"line {(bad or number) + 1} is damaged or missing, and revision {revision} follows it."
            raise _damaged_journal(where, what)
        if revision <= start + len(entries):
            ignored += 1
        else:
            entries.append(entry_of(fields))
            accepted.append(line)
        end = offset
    return Journal(start, entries, accepted, end, data[end:], ignored, optional, sealed)


def _first_line(first: bytes, where: str) -> tuple[int, tuple[str, ...], bool]:
    """Return the base and the made documents that the first line of a journal names, and whether the home is sealed."""
    fields = unsealed(first) if first else None
    if fields is None or "journal" not in fields:
        raise _damaged_journal(where, "the first line is damaged.")
    if fields["journal"] > JOURNAL_FORMAT:
        knows = f"(journal format {fields['journal']}, this one knows {JOURNAL_FORMAT})"
        fix = "Upgrade aether; the home was left as it is."
        raise InvalidDocument(f"written by a newer aether {knows}.", fix=fix, where=where)
    return int(fields["base"]), tuple(fields.get("made", ())), bool(fields.get("sealed"))


def _damaged_journal(where: str, what: str) -> CorruptDocument:
    fix = 'Run "aether doctor --repair": it keeps the file, and everything before and after the damage.'
    return CorruptDocument(what, fix=fix, where=where)


def journal_header(base: int, *, made: Sequence[str] = (), sealed: bool = False) -> bytes:
    """Return the first line of a journal whose next commit is `base + 1`.

    `made` names the optional documents by then; `sealed` says that the home has a record of seals.
    """
    fields = {**({"made": list(made)} if made else {}), **({"sealed": True} if sealed else {})}
    return seal_json({"journal": JOURNAL_FORMAT, "base": base, **fields})


def entry_line(entry: Entry) -> bytes:
    """Return the line of `entry`, with checksum and newline; empty fields are left out."""
    parts = sum(map(len, (*entry.patches.values(), *entry.appends.values())))
    return seal_json(entry_fields(entry), size=parts * PART_CHARS)


def entry_fields(entry: Entry) -> JsonObject:
    """Return the fields of `entry` that are not empty."""
    return {name: value for name, value in entry._asdict().items() if value or name == "revision"}


def entry_of(fields: JsonObject) -> Entry:
    """Return the entry that a line's fields describe."""
    get = fields.get
    return Entry(
        int(fields["revision"]), get("at", ""), get("by", ""), get("operation", ""), get("reason", ""),
        get("patches", {}), get("inverse", {}), get("appends", {}), get("erased", False), get("part", ""),
        get("key", ""), get("member", ""),
    )  # fmt: skip


def month_files(home: Path) -> list[Path]:
    """Return the files of folded lines, oldest first."""
    return months_in(home / "data" / "journal")


def last_folded(home: Path) -> int:
    """Return the revision of the newest folded transaction, 0 without one; a damaged line is skipped."""
    for path in reversed(month_files(home)):
        for line in lines_backwards(path):
            # A line of an import is half a megabyte, and starts with its revision.
            start, _, tail = line[:40].partition(b":")
            number = tail.partition(b",")[0]
            if start == b'{"revision"' and number.isdigit() and sealed_body(line) is not None:
                return int(number)
            if (fields := unsealed(line)) is not None:
                return int(fields["revision"])
    return 0


def folded_entries(home: Path, *, after: int = 0, newest_first: bool = False) -> Iterator[Entry]:
    """Yield the folded transactions with revision > `after`.

    A damaged line is skipped: a caller that needs every revision notices the missing one.
    """
    months = month_files(home)
    for path in reversed(months) if newest_first else months:
        for line in (
            lines_backwards(path)
            if newest_first
            else regular.read(path, regular.LOG_BYTES).splitlines(keepends=True)
        ):
            fields = unsealed(line)
            if fields is None:
                continue
            if newest_first and fields["revision"] <= after:
                return
            if fields["revision"] > after:
                yield entry_of(fields)

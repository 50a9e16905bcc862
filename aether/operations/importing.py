"""Importing: real transcripts become working-memory items, once, however often they are imported.

Records are read in constant memory and stored in batches; stopping in the middle keeps what was stored,
and importing again adds the rest. Bad lines are counted and named, never fatal.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

from aether import clock
from aether.errors import InvalidInput, NotFound
from aether.memory import items, phases
from aether.memory.capture import capture
from aether.memory.departures import WHY
from aether.messages.read import read_records
from aether.messages.record import BadLine, Record
from aether.operations.edge import Author, Home, counter_of, read
from aether.operations.working import store_drafts
from aether.shapes import Counter, JsonObject
from aether.store import appends, codec
from aether.store.state import Snapshot

# One commit each: large enough that the disk is not what takes the time, small enough to lose little.
BATCH_ITEMS = 500
# About a tenth of a working memory of the usual size.
BATCH_CHARS = 80_000
# A batch must fit into a small one whole: few scripts take more than two tokens for a character.
BATCH_CHARS_PER_TOKEN = 0.5
# An item stands below the document, working memory and the list of items.
LEVELS_ABOVE = 3
SUFFIXES = frozenset({".jsonl", ".json", ".md", ".txt", ".traj"})
# Below a directory that is imported: memory itself, and the histories of programs.
NOT_THEIRS = frozenset({".aether", ".git"})


class Imported(NamedTuple):
    """What importing did."""

    files: int
    records: int
    items: int
    """Items that were stored; in a dry run, that would be."""
    known: int
    """Notes that an earlier import had stored already."""
    tokens: int
    types: dict[str, int]
    phases: list[int]
    evicted: list[str]
    bad_lines: list[JsonObject]
    """Lines that could not be read, and items that are impossible: file, line, reason."""
    revisions: list[int]
    """What was committed, oldest first: undone newest first, the import is taken back."""
    preview: list[JsonObject]
    """In a dry run, the items."""


@dataclass
class _Tally:
    """What has been counted so far, and what limits it; all here that changes while files are read."""

    capacity: int
    """Tokens that working memory holds."""
    count: Counter
    archive_read: int
    """Position of the last archived item whose key is known."""
    foreign: set[str] = field(default_factory=set)
    """Keys that were found stored when a batch was committed."""
    revisions: list[int] = field(default_factory=list)
    records: int = 0
    items: int = 0
    known: int = 0
    tokens: int = 0
    types: dict[str, int] = field(default_factory=dict)
    phases: set[int] = field(default_factory=set)
    evicted: list[str] = field(default_factory=list)
    bad: list[JsonObject] = field(default_factory=list)
    preview: list[JsonObject] = field(default_factory=list)

    @property
    def batch_chars(self) -> float:
        return min(BATCH_CHARS, self.capacity * BATCH_CHARS_PER_TOKEN)


def import_transcripts(
    sources: Iterable[str | os.PathLike[str] | IO[bytes]],
    *,
    phase: int | None = None,
    format: str | None = None,
    dry_run: bool = False,
    home: Home = None,
    progress: Callable[[int, int], None] = lambda records, items: None,
) -> Imported:
    """Turn transcripts into working-memory items and return what that did.

    `sources` are files, directories or byte streams. The phase of an item is `phase`, or counts up from
    the colony's current one at every compaction boundary. `progress` hears records read and items kept.

    Raises:
        NotFound: there is no such file.
        InvalidInput: a format cannot be told, or a directory holds nothing to read.
    """
    snapshot = read(home)
    known = _keys(snapshot)
    memory = snapshot.documents["memory"]
    tally = _Tally(
        memory["working_memory"]["max_capacity_tokens"], counter_of(memory), appends.head(snapshot, "items")
    )
    first = phases.current_phase(snapshot.documents["COLONY_STATE"])
    files = 0
    for source in sources:
        for file in _files(source):
            files += 1
            name = _name(file)
            drafts = capture(
                _counted(file, format, name, tally, progress), file=name, phase=phase, first_phase=first
            )
            try:
                sound = _sound(_fresh(drafts, known, tally), name, tally)
                _store(sound, name, tally, home, dry_run=dry_run)
            except InvalidInput as reason:
                if file is source:
                    raise
                # One stranger in a directory does not keep the others out; it is named like a bad line.
                tally.bad.append({"file": name, "line": 0, "reason": reason.what})
    return Imported(
        files, tally.records, tally.items, tally.known, tally.tokens, dict(sorted(tally.types.items())),
        sorted(tally.phases), tally.evicted, tally.bad, tally.revisions, tally.preview,
    )  # fmt: skip


def _name(file: Any) -> str:
    return Path(file).name if isinstance(file, (str, os.PathLike)) else str(getattr(file, "name", "-"))


def _files(source: Any) -> Iterator[Any]:
    if not isinstance(source, (str, os.PathLike)) or not os.path.isdir(source):
        yield source
        return
    found = [
        path for path in sorted(Path(source).rglob("*"))
        if path.is_file() and path.suffix in SUFFIXES and NOT_THEIRS.isdisjoint(path.relative_to(source).parts)
    ]  # fmt: skip
    if not found:
        raise NotFound(
            "holds no transcripts.",
            fix=f"Name a directory with {', '.join(sorted(SUFFIXES))} files.",
            where=str(source),
        )
    yield from found


def _counted(
    file: Any, format: str | None, name: str, tally: _Tally, progress: Callable[[int, int], None]
) -> Iterator[Record]:
    def on_bad(bad: BadLine) -> None:
        tally.bad.append({"file": name, **bad._asdict()})

    for record in read_records(file, format=format, on_bad=on_bad):
        tally.records += 1
        progress(tally.records, tally.items)
        yield record


def _keys(snapshot: Snapshot, *, after: int = -1) -> set[str]:
    """Return the keys of all that was imported before: in working memory, or archived `after` this position."""
    held = items.items_of(snapshot.documents["memory"])
    records = (record for _, record in appends.records(snapshot, "items", after=after))
    # What an undo or a restore took back was as good as never imported.
    gone = (record["item"] for record in records if record["why"] != WHY)
    return {_key(item) for item in (*held, *gone)} - {""}


def _key(entry: Any) -> str:
    return str((entry["metadata"].get("pointer") or {}).get("key", ""))


def _fresh(drafts: Iterable[Any], known: set[str], tally: _Tally) -> Iterator[JsonObject]:
    for draft in drafts:
        key = _key(draft)
        if key and key in known:
            tally.known += 1
            continue
        known.add(key)
        yield {**draft, "metadata": _dated(draft["metadata"])}


def _sound(drafts: Iterable[JsonObject], name: str, tally: _Tally) -> Iterator[JsonObject]:
    """Yield the drafts that can be stored, checked; the others are named like bad lines."""
    for draft in drafts:
        try:
            checked = items.draft(**draft)
            codec.checked(checked, where="item", above=LEVELS_ABOVE)
            _require_room(checked["content"], tally)
        except InvalidInput as reason:
            line = draft["metadata"]["pointer"]["line"]
            tally.bad.append({"file": name, "line": line, "reason": reason.what})
        else:
            yield checked


def _require_room(content: str, tally: _Tally) -> None:
    # Counting is only worth it where the text might be too long.
    tokens = tally.count(content) if len(content) > tally.batch_chars else 0
    if tokens > tally.capacity:
        raise InvalidInput(
            f"{tokens} tokens do not fit into a working memory of {tally.capacity}.", fix="Split it."
        )


def _dated(metadata: JsonObject) -> JsonObject:
    """Return `metadata` without a timestamp that is none: then the time of importing stands for it."""
    try:
        clock.parse(metadata.get("timestamp", ""))
    except InvalidInput:
        return {key: value for key, value in metadata.items() if key != "timestamp"}
    return metadata


def _store(drafts: Iterator[JsonObject], name: str, tally: _Tally, home: Home, *, dry_run: bool) -> None:
    batch: list[JsonObject] = []
    chars = 0
    for draft in drafts:
        chars += len(draft["content"])
        if batch and (len(batch) == BATCH_ITEMS or chars > tally.batch_chars):
            _store_batch(batch, name, tally, home, dry_run=dry_run)
            batch, chars = [], len(draft["content"])
        batch.append(draft)
    if batch:
        _store_batch(batch, name, tally, home, dry_run=dry_run)


def _store_batch(batch: list[JsonObject], name: str, tally: _Tally, home: Home, *, dry_run: bool) -> None:
    if dry_run:
        tally.preview += batch
    else:
        batch = _commit(batch, name, tally, home)
    tally.items += len(batch)
    for draft in batch:
        tally.types[draft["type"]] = tally.types.get(draft["type"], 0) + 1
        if "phase" in draft["metadata"]:
            tally.phases.add(draft["metadata"]["phase"])
        tally.tokens += tally.count(draft["content"])


def _commit(batch: list[JsonObject], name: str, tally: _Tally, home: Home) -> list[JsonObject]:
    """Store `batch` without what another process stored meanwhile, and return what that left."""

    def wanted(snapshot: Snapshot, drafts: list[JsonObject]) -> list[JsonObject]:
        # Only under the lock is all seen that another process, importing the same, has stored.
        tally.foreign |= _keys(snapshot, after=tally.archive_read)
        tally.archive_read = appends.head(snapshot, "items")
        return [draft for draft in drafts if _key(draft) not in tally.foreign]

    author = Author("import", by=batch[0]["source"], reason=f"{name} ({len(batch)} items)")
    stored = store_drafts(batch, author, home=home, wanted=wanted)
    tally.known += len(batch) - len(stored.drafts)
    if stored.ids:
        tally.evicted += stored.ids[0].evicted  # every id of a batch tells of the same evictions
        tally.revisions.append(stored.revision)
    return stored.drafts

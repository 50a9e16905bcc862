"""Importing: real transcripts become working-memory items, once, however often they are imported.

What hooks noted of a session while it ran is known, too, and what they leave out is left out: private blocks, calls
about private paths, secrets. Records are read in constant memory and stored in batches; stopping in the middle keeps
what was stored, and importing again adds the rest. Bad lines are counted and named, never fatal.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

from aether.api import dedupe as notes
from aether.api.home import Home, counter_of, read
from aether.api.working import store_drafts
from aether.errors import InvalidInput, NotFound
from aether.memory import phases
from aether.memory.capture.extract import capture
from aether.messages.read import read_records, without_private
from aether.messages.records import BadLine, Record
from aether.store import archive, config
from aether.store.commit import Author
from aether.store.snapshot import Snapshot
from aether.text.words import pluralize
from aether.types import Counter, JsonObject

SUFFIXES = frozenset({".jsonl", ".json", ".md", ".txt", ".traj"})
# Below a directory that is imported: memory itself, and the histories of programs.
SKIPPED_DIRECTORIES = frozenset({".aether", ".git"})


class Imported(NamedTuple):
    """What importing did."""

    files: int
    records: int
    items: int
    """Items that were stored; in a dry run, that would be."""
    known: int
    """Notes that an earlier import, or hooks, had stored already."""
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
    private: str
    """The patterns of private paths."""
    root: str
    """The directory of the project, from which relative paths are seen."""
    count: Counter
    archive_read: int
    """Position of the last archived item whose key is known."""
    foreign: set[str] = field(default_factory=set)
    """What was found stored when a batch was committed."""
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
        return notes.batch_chars(self.capacity)


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
    known = notes.known_keys(snapshot, to_hooks=False)
    memory = snapshot.documents["memory"]
    tally = _Tally(
        memory["working_memory"]["max_capacity_tokens"],
        config.load(snapshot.home).claude_private_paths,
        str(snapshot.home.parent),
        counter_of(memory),
        archive.head(snapshot, "items"),
    )
    first = phases.current_phase(snapshot.documents["COLONY_STATE"])
    files = 0
    for source in sources:
        for file in _files(source):
            files += 1
            name = _source_name(file)
            records = _records(file, format, name, tally, progress)
            if tally.private:
                records = without_private(records, tally.private, directory=tally.root)
            drafts = capture(records, file=name, phase=phase, first_phase=first)
            try:
                sound = _storable_drafts(_new_drafts(drafts, known, tally), name, tally)
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


def _source_name(file: Any) -> str:
    return Path(file).name if isinstance(file, (str, os.PathLike)) else str(getattr(file, "name", "-"))


def _files(source: Any) -> Iterator[Any]:
    if not isinstance(source, (str, os.PathLike)) or not os.path.isdir(source):
        yield source
        return
    found = [
        path for path in sorted(Path(source).rglob("*"))
        if path.is_file() and path.suffix in SUFFIXES and SKIPPED_DIRECTORIES.isdisjoint(path.relative_to(source).parts)
    ]  # fmt: skip
    if not found:
        raise NotFound(
            "holds no transcripts.",
            fix=f"Name a directory with {', '.join(sorted(SUFFIXES))} files.",
            where=str(source),
        )
    yield from found


def _records(
    file: Any, format: str | None, name: str, tally: _Tally, progress: Callable[[int, int], None]
) -> Iterator[Record]:
    def on_bad(bad: BadLine) -> None:
        tally.bad.append({"file": name, **bad._asdict()})

    for record in read_records(file, format=format, on_bad=on_bad):
        tally.records += 1
        progress(tally.records, tally.items)
        yield record


def _new_drafts(drafts: Iterable[Any], known: set[str], tally: _Tally) -> Iterator[JsonObject]:
    for draft in drafts:
        if notes.is_new(draft, known):
            yield draft
        else:
            tally.known += 1


def _storable_drafts(drafts: Iterable[JsonObject], name: str, tally: _Tally) -> Iterator[JsonObject]:
    """Yield the drafts that can be stored, checked; the others are named like bad lines."""
    for draft in drafts:
        try:
            yield notes.storable(
                draft, capacity=tally.capacity, certain_chars=tally.batch_chars, count=tally.count
            )
        except InvalidInput as reason:
            line = draft["metadata"]["pointer"]["line"]
            tally.bad.append({"file": name, "line": line, "reason": reason.what})


def _store(drafts: Iterator[JsonObject], name: str, tally: _Tally, home: Home, *, dry_run: bool) -> None:
    for batch in notes.batches(drafts, tally.batch_chars):
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
        tally.foreign |= notes.known_keys(snapshot, to_hooks=False, after=tally.archive_read)
        tally.archive_read = archive.head(snapshot, "items")
        return [draft for draft in drafts if not notes.is_known(draft, tally.foreign)]

    author = Author("import", by=batch[0]["source"], reason=f"{name} ({pluralize(len(batch), 'items')})")
    stored = store_drafts(batch, author, home=home, wanted=wanted)
    tally.known += len(batch) - len(stored.drafts)
    if stored.ids:
        tally.evicted += stored.ids[0].evicted  # every id of a batch tells of the same evictions
        tally.revisions.append(stored.revision)
    return stored.drafts

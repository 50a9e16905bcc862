"""State: the documents plus the journal lines after their stamps, read without a lock.

`load` gives one consistent snapshot of a home. It costs a few `stat` calls when nothing changed, the new
journal lines when someone appended, and a whole read after a fold or a hand edit. What it finds amiss (a
hand edit, a damaged or missing file, a torn last line) it resolves in memory and names in the snapshot;
`commit` writes the resolution down. Snapshots share their parts and are never mutated.
"""

from __future__ import annotations

import os
import time
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from aether.errors import Conflict, CorruptDocument, NotFound, UnsafePath, shown
from aether.project import link_out_of
from aether.schemas import check, migrations
from aether.store import documents, journal
from aether.store.documents import Document
from aether.store.files import storage_errors
from aether.store.journal import Entry, folded_entries
from aether.store.merge import merge, rules_of
from aether.store.patch import apply, json_equal
from aether.types import JsonObject

# A fold replaces files for about ten milliseconds; this waits out many of them.
READ_TRIES = 100
READ_WAIT_SECONDS = 0.002

FileId = tuple[int, int, int] | None


class Pending(NamedTuple):
    """Records for append-only files that stand in the journal and are not folded yet."""

    revision: int
    at: str
    appends: dict[str, list[JsonObject]]


class Snapshot(NamedTuple):
    """A home at one revision."""

    home: Path
    revision: int
    documents: dict[str, Any]
    stamps: dict[str, int]
    """The revision that each file contains; an optional document that was never written has none."""
    changed: frozenset[str]
    """Documents that the journal changes after their stamp."""
    pending: tuple[Pending, ...]
    end: int
    """Bytes of the journal up to the last commit; 0 where there is no journal yet."""
    torn: bool
    """Whether something follows the last commit that is none."""
    amiss: dict[str, Document]
    """Documents whose file is not a good one: edited, unstamped, corrupt or missing."""
    known: dict[str, Any]
    """What the journal knows of each document whose content is not in it yet: edited, older, or new."""
    files: tuple[FileId, ...]


_CACHE: dict[Path, Snapshot] = {}


@lru_cache(maxsize=64)
@lru_cache(maxsize=64)
def _marks(home: Path) -> tuple[str, ...]:
    return (str(journal_path(home)), *(str(documents.path_of(home, name)) for name in documents.ALWAYS))


def require_home(place: Path) -> Path:
    """Return `place` if it holds a home.

    Raises:
        NotFound: nothing of ours is in it: any project may have a `data/` of its own.
    """
    if not any(map(os.path.exists, _marks(place))):
        raise NotFound("is not a home.", fix='Run "aether init" there.', where=str(place))
    return place


def journal_path(home: Path) -> Path:
    """Return the journal of `home`."""
    return home / "data" / "journal.jsonl"


def load(home: Path) -> Snapshot:
    """Return `home` as it is now.

    Raises:
        NotFound: this is not a home.
        UnsafePath: something in it leads out of it.
        CorruptDocument: something is damaged and cannot be rebuilt.
        InvalidDocument: a hand edit breaks the schema, or a newer aether wrote here.
        Conflict: a hand edit and the journal both changed the same place.
    """
    with storage_errors(home):
        snapshot = _CACHE.get(home)
        snapshot = _follow(snapshot) if snapshot else None
        if snapshot is None:
            snapshot = _read(home)
        _CACHE[home] = snapshot
        return snapshot


def remember(snapshot: Snapshot) -> None:
    """Make `snapshot`, which was just committed, what the next `load` starts from."""
    _CACHE[snapshot.home] = snapshot


def file_id(path: str) -> FileId:
    """Return what changes whenever the file at `path` is replaced or edited; None where there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def file_ids(home: Path) -> tuple[FileId, ...]:
    """Return the ids of the journal and of every document of `home`."""
    return tuple(map(file_id, _watched(home)))


@lru_cache(maxsize=64)
def _watched(home: Path) -> tuple[str, ...]:
    # Text, because every commit asks: building the paths costs more than asking the disk.
    return (str(journal_path(home)), *(str(documents.path_of(home, name)) for name in documents.NAMES))


def _follow(old: Snapshot) -> Snapshot | None:
    """Return `old` brought up to date by new journal lines, or None where more than that changed."""
    files = file_ids(old.home)
    if files == old.files:
        return old
    now, then = files[0], old.files[0]
    if files[1:] != old.files[1:] or not now or not then or now[0] != then[0] or now[2] <= old.end:
        return None
    with journal_path(old.home).open("rb") as file:
        file.seek(old.end)
        tail = file.read()
    try:
        found = journal.scan(tail, base=old.revision, where=str(journal_path(old.home)))
        if not found.entries:
            return None  # torn, or another journal that got the inode of the old one: read it all
        return advance(old, found.entries, end=old.end + found.end, torn=bool(found.torn), files=files)
    except CorruptDocument:
        return None


def advance(
    old: Snapshot, entries: list[Entry], *, end: int, torn: bool, files: tuple[FileId, ...]
) -> Snapshot:
    """Return `old` after `entries`."""
    state, changed, pending = dict(old.documents), set(old.changed), list(old.pending)
    for entry in entries:
        for name, patch in entry.patches.items():
            state[name] = apply(state.get(name), patch)
            changed.add(name)
        if entry.appends:
            pending.append(Pending(entry.revision, entry.at, entry.appends))
    return old._replace(
        revision=old.revision + len(entries), documents=state, changed=frozenset(changed),
        pending=tuple(pending), end=end, torn=torn, files=files,
    )  # fmt: skip


def _read(home: Path) -> Snapshot:
    if not (home / "data").is_dir():
        raise NotFound("is not a home: it has no data/.", fix='Run "aether init" there.', where=str(home))
    if link := link_out_of(os.path.realpath(home)):
        raise UnsafePath(
            f"{shown(link)} leads out of the home, so the home is not used.",
            fix="Remove the link; to have a home elsewhere, name it with --home or AETHER_HOME.",
            where=str(home),
        )
    for _ in range(READ_TRIES):
        before = file_ids(home)
        found = read_journal(home)
        files = {name: documents.read(documents.path_of(home, name)) for name in documents.NAMES}
        after = file_ids(home)
        newest = max((file.revision for file in files.values() if file.state != "edited"), default=0)
        head = found.base + len(found.entries)
        # Only a journal that merely grew leaves what was read one state; else a fold was in between.
        if _calm(before, after) and (newest <= head or before[0] is None):
            return _assemble(
                home, found, files, _read_ids(before, after, found), present=before[0] is not None
            )
        time.sleep(READ_WAIT_SECONDS)
    raise Conflict(
        f"kept changing while it was read {READ_TRIES} times, or a document is newer than the journal.",
        fix='Try again; if it stays, run "aether doctor".',
        where=str(home),
    )


def _calm(before: tuple[FileId, ...], after: tuple[FileId, ...]) -> bool:
    same_journal = (before[0] or (0,))[0] == (after[0] or (0,))[0]
    return same_journal and before[1:] == after[1:]


def _read_ids(
    before: tuple[FileId, ...], after: tuple[FileId, ...], found: journal.Scan
) -> tuple[FileId, ...]:
    # The journal's id is only what was read, so that a line appended meanwhile is noticed next time.
    return before if before[0] and before[0][2] == found.end + len(found.torn) else (None, *after[1:])


def read_journal(home: Path) -> journal.Scan:
    """Return what stands in the journal of `home`; without one, what the folded lines end with.

    An optional document of which there is a backup was made, although an older aether's journal does not say so.
    """
    path = journal_path(home)
    try:
        found = journal.scan(path.read_bytes(), where=str(path))
        unnamed = [
            name for name in documents.OPTIONAL if name not in found.made and documents.backups(home, name)
        ]
        return found._replace(made=(*found.made, *unnamed))
    except FileNotFoundError:
        last = next(folded_entries(home, newest_first=True), None)
        patched = {name for entry in folded_entries(home) for name in entry.patches} if last else set()
        made = tuple(name for name in documents.OPTIONAL if name in patched)
        return journal.Scan(last.revision if last else 0, [], [], 0, b"", 0, made)


def _assemble(
    home: Path, found: journal.Scan, files: dict[str, Document], ids: tuple[FileId, ...], *, present: bool
) -> Snapshot:
    head = found.base + len(found.entries)
    if not present:
        head = max(head, *(file.revision for file in files.values()))
    absent = {name for name, file in files.items() if file.state == "missing" and not _made(name, found)}
    state = {name: replay(documents.default(name), name, found.entries, after=0) for name in absent}
    files = {name: _believed(file, head) for name, file in files.items() if name not in absent}
    stamps = {name: file.revision for name, file in files.items()}
    amiss = {name: file for name, file in files.items() if file.state != "good"}
    known_before = {}
    for name, file in files.items():
        if file.state == "good":
            state[name] = replay(file.value, name, found.entries, after=file.revision)
            migrated = migrations.current(name, state[name])
        else:
            state[name] = _before_edit(home, name, found, file, head=head)
            migrated = _resolve(home, name, found, file, state[name])
        if migrated is not state[name]:
            known_before[name] = state[name]
            state[name] = migrated
    changed = {
        name for entry in found.entries for name in entry.patches if entry.revision > stamps.get(name, 0)
    }
    pending = tuple(
        Pending(entry.revision, entry.at, entry.appends) for entry in found.entries if entry.appends
    )
    return Snapshot(
        home, head, state, stamps, frozenset(changed), pending, found.end if present else 0,
        bool(found.torn), amiss, known_before, ids,
    )  # fmt: skip


def _made(name: str, found: journal.Scan) -> bool:
    """Return whether the home had a file of document `name` when its journal began."""
    return name not in documents.OPTIONAL or name in found.made


def _believed(file: Document, head: int) -> Document:
    """Return `file`; without its stamp where an edit made that name a revision which never was."""
    wrong = file.state == "edited" and file.revision > head
    return file._replace(state="unstamped", revision=0) if wrong else file


def replay(value: Any, name: str, entries: list[Entry], *, after: int, until: int | None = None) -> Any:
    """Return document `name` after the `entries` with revision > `after` and <= `until`."""
    for entry in entries:
        if after < entry.revision and (until is None or entry.revision <= until) and name in entry.patches:
            value = apply(value, entry.patches[name])
    return value


def _before_edit(home: Path, name: str, found: journal.Scan, file: Document, *, head: int) -> Any:
    """Return document `name` as aether knows it, without its file; None where nothing is known."""
    try:
        return rebuild(home, name, found, until=head)
    except CorruptDocument:
        if file.state in ("edited", "unstamped"):
            return None
        raise


def _resolve(home: Path, name: str, found: journal.Scan, file: Document, known: Any) -> Any:
    """Return what document `name`, whose file is not a good one, should be."""
    if file.state in ("corrupt", "missing"):
        return known if known is not None else documents.default(name)
    wanted = migrations.current(name, file.value)
    check.require(
        name,
        wanted,
        fix='Correct the edit, or run "aether doctor --repair": it keeps the edit aside and restores the last good state.',
    )
    if known is None:
        return replay(wanted, name, found.entries, after=file.revision) if file.revision else wanted
    if json_equal(wanted, known):
        return known
    # Without its stamp a file is taken for an edit of what the last fold wrote.
    base = rebuild(home, name, found, until=file.revision or found.base)
    merged, conflicts = merge(base, known, wanted, rules_of(check.schema(name)))
    if conflicts:
        raise Conflict(
            f"edited by hand at {'/'.join(conflicts[0])}, which the journal changed as well.",
            fix='Undo that edit, or run "aether doctor --repair": it keeps the edit aside and restores the last good state.',
            where=f"{name}.json",
        )
    return merged


def rebuild(home: Path, name: str, found: journal.Scan, *, until: int) -> Any:
    """Return document `name` at revision `until` from a backup and the journal alone.

    None means that the home has never had the document.

    Raises:
        CorruptDocument: neither a backup nor the journal reaches back far enough.
    """
    start = documents.newest_good_backup(home, name, until=until)
    if name in documents.OPTIONAL and start.value is None:
        begun = 0 if _made(name, found) else found.base
        start = start._replace(value=documents.default(name), revision=begun)
    lines = [*folded_entries(home, after=start.revision), *found.entries]
    value, reached = start.value, start.revision
    for entry in lines:
        if not reached < entry.revision <= until:
            continue
        if entry.revision != reached + 1 and (value is not None or reached):
            raise _lost(name)
        reached = entry.revision
        for operation in entry.patches.get(name, []):
            if value is None and operation["path"]:
                raise _lost(name)
            value = apply(value, [operation])
    if reached < until:
        raise _lost(name)
    return value


def _lost(name: str) -> CorruptDocument:
    return CorruptDocument(
        "damaged, and neither a backup nor the journal reaches back far enough to rebuild it.",
        fix="Restore it from a copy of your own; nothing was deleted.",
        where=f"{name}.json",
    )

"""Snapshots: a home at one revision, read without a lock from its documents and its journal.

`load` costs a few `stat` calls if nothing changed, the new journal lines if someone appended, and a whole read after
a fold or a hand edit. It resolves hand edits, damaged or missing files and a torn last line in memory and names them
in the snapshot; `commit` writes the resolution to the disk. Snapshots share their parts and are never mutated.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from aether import clock, regular
from aether.errors import Conflict, CorruptDocument, InvalidDocument, NotFound, UnsafePath, shown
from aether.project import link_out_of
from aether.schemas import migrations
from aether.store import documents
from aether.store.authors import Author
from aether.store.documents import Document
from aether.store.files import checked_json, storage_errors
from aether.store.journal import (
    Entry,
    Harm,
    Journal,
    folded_entries,
    journal_path,
    read_journal,
    scan_journal,
)
from aether.store.patch import apply, apply_with_inverse, diff, json_equal
from aether.types import Change, JsonObject, Patch

# A fold replaces files for about ten milliseconds; this waits out many of them.
READ_TRIES = 100
READ_WAIT_SECONDS = 0.002
_OR_REPAIR = 'or run "aether doctor --repair": it keeps the edit aside until it is accepted.'

DocumentIds = tuple[tuple[int, int, int, int] | None, ...]
FileId = tuple[int, int, int] | None
"""Inode, time of change and size; None if there is no file."""


class Pending(NamedTuple):
    """Records for append-only files that are in the journal and not folded yet."""

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
    """Bytes of the journal up to the last commit; 0 if there is no journal yet."""
    torn: bool
    """Whether a write that was cut off follows the last commit."""
    irregular: dict[str, Document]
    """Documents whose file is edited, unstamped, corrupt or missing."""
    known: dict[str, Any]
    """The journal's state of each document whose file holds another: edited, of an older version, or new."""
    files: tuple[FileId, ...]
    refused: dict[str, JsonObject]
    """Of each document whose hand edit is not in force: the edited revision, the reason, and the edit as a patch."""
    harm: Harm | None = None
    """The damage of the journal, which the next writer writes down."""


_CACHE: dict[Path, Snapshot] = {}

# What plans a change that waited for a server again on newer documents, given its entry, or returns None: memory knows
# how, and the store does not. The records in its `appends` replace those of the entry.
REPLANNERS: list[Callable[[Mapping[str, Any], Entry], Change | None]] = []


def load(home: Path) -> Snapshot:
    """Return `home` as it is now.

    Raises:
        NotFound: this is not a home.
        UnsafePath: a link in it leads out of it.
        CorruptDocument: a part is damaged and cannot be rebuilt.
        InvalidDocument: a newer aether wrote here.
        Conflict: it kept changing while it was read.
    """
    with storage_errors(home):
        snapshot = _CACHE.get(home)
        snapshot = _follow(snapshot) if snapshot else None
        if snapshot is None:
            snapshot = _read(home)
        _CACHE[home] = snapshot
        return snapshot


def remember(snapshot: Snapshot) -> None:
    """Make `snapshot`, which was just committed, the one that the next `load` starts from."""
    _CACHE[snapshot.home] = snapshot


def require_home(place: Path) -> Path:
    """Return `place` if it holds a home.

    Raises:
        NotFound: it has none of our files; any project may have a `data/` of its own.
        StorageFailed: this process may not look.
    """
    if not any(map(os.path.exists, _paths(place)[: 1 + len(documents.ALWAYS)])):
        with storage_errors(place), suppress(FileNotFoundError, NotADirectoryError):
            os.stat(f"{place}/data/.")
        raise no_home(place)
    return place


def no_home(place: Path) -> NotFound:
    """Return the error that there is no home at `place`."""
    if place.is_file():
        return NotFound("is a file, not a home.", fix="Name a directory.", where=str(place))
    return NotFound("is not a home.", fix='Run "aether init" there.', where=str(place))


@lru_cache(maxsize=64)
def _paths(home: Path) -> tuple[str, ...]:
    # Text, because every commit asks: building the paths costs more than asking the disk.
    return (str(journal_path(home)), *(str(documents.path_of(home, name)) for name in documents.NAMES))


def file_id(path: str) -> FileId:
    """Return what changes with every replacement of the file at `path`, and every edit that changes its size or time."""
    try:
        status = os.lstat(path)  # a link is no document
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def file_ids(home: Path) -> tuple[FileId, ...]:
    """Return the ids of the journal and of every document of `home`."""
    return tuple(map(file_id, _paths(home)))


def document_ids(home: Path) -> DocumentIds:
    """Return what changes with every edit of a document of `home`, also one that leaves its size and sets its time back.

    Not every change of it is an edit: a rename or a link changes it too. On Windows such an edit is not seen: `st_ctime` is the time of
    creation there.
    """
    return tuple([_id_and_change(path) for path in _paths(home)[1:]])


def _id_and_change(path: str) -> tuple[int, int, int, int] | None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size, status.st_ctime_ns


def _follow(old: Snapshot) -> Snapshot | None:
    """Return `old` brought up to date by new journal lines, or None if more than that changed."""
    files = file_ids(old.home)
    if files == old.files:
        return old
    if old.harm or old.irregular or old.known:
        return None  # what a person edited is merged with the new lines, not with what they follow
    now, then = files[0], old.files[0]
    if files[1:] != old.files[1:] or not now or not then or now[0] != then[0] or now[2] <= old.end:
        return None
    with regular.opened(journal_path(old.home)) as file:
        file.seek(old.end)
        tail = file.read()
    try:
        journal = scan_journal(tail, base=old.revision, where=str(journal_path(old.home)))
        if not journal.entries:
            return None  # torn, or another journal that got the inode of the old one: read it all
        return advance(old, journal.entries, end=old.end + journal.end, torn=bool(journal.torn), files=files)
    except CorruptDocument:
        return None


def advance(
    old: Snapshot, entries: list[Entry], *, end: int, torn: bool, files: tuple[FileId, ...]
) -> Snapshot:
    """Return `old` after `entries`."""
    state, pending = dict(old.documents), list(old.pending)
    patches: dict[str, Patch] = {}
    for entry in entries:
        for name, patch in entry.patches.items():
            patches.setdefault(name, []).extend(patch)
        if entry.appends:
            pending.append(Pending(entry.revision, entry.at, entry.appends))
    for name, patch in patches.items():  # of all entries at once, so that a long list is copied once
        state[name] = apply(state.get(name), patch)
    return old._replace(
        revision=old.revision + len(entries), documents=state, changed=old.changed | patches.keys(),
        pending=tuple(pending), end=end, torn=torn, files=files,
    )  # fmt: skip


def after_change(
    snapshot: Snapshot, change: Change, author: Author, now: datetime, *, key: str = ""
) -> tuple[Snapshot, Entry]:
    """Return the state after a change, which is not in the journal yet, and its entry.

    Raises:
        NotFound: the home has no such document.
        InvalidInput: a patch does not fit, or a value is no JSON.
    """
    home, state, inverse = snapshot.home, dict(snapshot.documents), dict[str, Any]()
    patches = {name: patch for name, patch in change.patches.items() if patch}
    for name, patch in change.patches.items():
        if name not in state:
            documents.path_of(home, name)  # raises NotFound
        for step in patch:
            checked_json(step.get("value"), where=author.operation, above=str(step.get("path")).count("/"))
        state[name], inverse[name] = apply_with_inverse(state[name], patch)
    for records in change.appends.values():
        checked_json(records, where=author.operation)
    entry = Entry(
        snapshot.revision + 1, clock.stamp(now), author.by, author.operation, author.reason, patches,
        {name: inverse[name] for name in patches},
        {kind: records for kind, records in change.appends.items() if records}, part=author.part, key=key,
        member=author.member,
    )  # fmt: skip
    pending = (Pending(entry.revision, entry.at, entry.appends),) if entry.appends else ()
    after = snapshot._replace(
        revision=entry.revision, documents=state, changed=snapshot.changed | entry.patches.keys(),
        pending=(*snapshot.pending, *pending),
    )  # fmt: skip
    return after, entry


def _read(home: Path) -> Snapshot:
    if not (home / "data").is_dir():
        raise NotFound("is not a home: it has no data/.", fix='Run "aether init" there.', where=str(home))
    if link := link_out_of(os.path.realpath(home)):
        what = f"{shown(link)} leads out of the home, so the home is not used."
        fix = "Remove the link; to have a home elsewhere, name it with --home or AETHER_HOME."
        raise UnsafePath(what, fix=fix, where=str(home))
    for _ in range(READ_TRIES):
        before = file_ids(home)
        journal = read_journal(home)
        files = {name: documents.read(documents.path_of(home, name)) for name in documents.NAMES}
        after = file_ids(home)
        newest = max((file.revision for file in files.values() if file.state != "edited"), default=0)
        head = journal.base + len(journal.entries)
        # A journal that merely grew leaves one consistent state; otherwise a fold was in between.
        same_files = (before[0] or (0,))[0] == (after[0] or (0,))[0] and before[1:] == after[1:]
        if same_files and (newest <= head or before[0] is None):
            # The journal's id is that of what was read, so that the next load notices lines appended meanwhile.
            read_all = journal.harm or (before[0] and before[0][2] == journal.end + len(journal.torn))
            ids = before if read_all else (None, *after[1:])
            return _assemble(home, journal, files, ids, present=before[0] is not None)
        time.sleep(READ_WAIT_SECONDS)
    what = f"kept changing while it was read {READ_TRIES} times, or a document is newer than the journal."
    raise Conflict(what, fix='Try again; if it persists, run "aether doctor".', where=str(home))


def _assemble(
    home: Path, journal: Journal, files: dict[str, Document], ids: tuple[FileId, ...], *, present: bool
) -> Snapshot:
    head = journal.base + len(journal.entries)
    if not present:
        head = max(head, *(file.revision for file in files.values()))
    absent = {name for name, file in files.items() if file.state == "missing" and not _made(name, journal)}
    state = {name: replay(documents.default(name), name, journal.entries, after=0) for name in absent}
    files = {name: file for name, file in files.items() if name not in absent}
    for name, file in files.items():
        if file.state == "edited" and file.revision > head:  # the edit named a revision that never was
            files[name] = file._replace(state="unstamped", revision=0)
    stamps = {name: file.revision for name, file in files.items()}
    replaced, refused = {}, {}
    for name, file in files.items():
        if file.state == "good":
            state[name] = replay(file.value, name, journal.entries, after=file.revision)
            resolved = migrations.current(name, state[name])
        else:
            try:
                state[name] = rebuild(home, name, journal, until=head)
            except CorruptDocument:
                if file.state not in ("edited", "unstamped"):
                    raise
                state[name] = None
            resolved, refusal = resolve_or_refuse(home, name, journal, file, state[name])
            if refusal:
                refused[name] = refusal
        if resolved is not state[name]:
            replaced[name], state[name] = state[name], resolved
    entries = journal.entries
    changed = {name for entry in entries for name in entry.patches if entry.revision > stamps.get(name, 0)}
    pending = tuple(Pending(entry.revision, entry.at, entry.appends) for entry in entries if entry.appends)
    return Snapshot(
        home, head, state, stamps, frozenset(changed), pending, journal.end if present else 0, bool(journal.torn),
        {name: file for name, file in files.items() if file.state != "good"}, replaced, ids, refused, journal.harm,
    )  # fmt: skip


def _made(name: str, journal: Journal) -> bool:
    """Return whether the home had a file of document `name` when its journal was started."""
    return name not in documents.OPTIONAL or name in journal.made


def replay(value: Any, name: str, entries: list[Entry], *, after: int) -> Any:
    """Return document `name` after the `entries` with revision > `after`."""
    for entry in entries:
        if after < entry.revision and name in entry.patches:
            value = apply(value, entry.patches[name])
    return value


def _resolve(home: Path, name: str, journal: Journal, file: Document, state: Any) -> Any:
    """Return the state of document `name`, whose file is irregular and which the journal knows as `known`."""
    if file.state in ("corrupt", "missing"):
        return state if state is not None else documents.default(name)
    from aether.schemas import check  # few homes are edited by hand
    from aether.store.merge import merge, rules_of

    edited = migrations.current(name, file.value)
    check.require(name, edited, fix=f"Correct the edit, {_OR_REPAIR}")
    if state is None:
        return replay(edited, name, journal.entries, after=file.revision) if file.revision else edited
    if json_equal(edited, state):
        return state
    # A file without its stamp is taken for an edit of the last folded one.
    base = rebuild(home, name, journal, until=file.revision or journal.base)
    merged, conflicts = merge(base, state, edited, rules_of(check.schema(name)))
    if conflicts:
        what = f"edited by hand at {'/'.join(conflicts[0])}, which the journal changed as well."
        raise Conflict(what, fix=f"Undo that edit, {_OR_REPAIR}", where=f"{name}.json")
    return merged


def resolve_or_refuse(
    home: Path, name: str, journal: Journal, file: Document, state: Any
) -> tuple[Any, JsonObject | None]:
    """Return the state of document `name`; of an edit that cannot be merged the journal's, and why.

    Such an edit must not stop the others.
    """
    try:
        return _resolve(home, name, journal, file, state), None
    except (Conflict, CorruptDocument, InvalidDocument) as reason:
        if state is None or file.value is None:
            raise
        revision, what = file.revision or journal.base, reason.what
        if isinstance(reason, InvalidDocument):
            migrations.is_current(name, file.value)  # a document of a newer aether is no edit
            what = f"{reason.where.partition('#')[2] or name}: {what}"
    try:
        base = rebuild(home, name, journal, until=revision)
    except CorruptDocument:
        base = state
    patch = diff(base, file.value)
    about = {"document": name, "revision": revision, "reason": what, "patch": patch}
    return migrations.current(name, state), about


def rebuild(home: Path, name: str, journal: Journal, *, until: int) -> Any:
    """Return document `name` at revision `until` from a backup and the journal alone.

    None means that the home has never had the document.

    Raises:
        CorruptDocument: neither a backup nor the journal reaches back far enough.
    """
    start = documents.newest_good_backup(home, name, until=until)
    if name in documents.OPTIONAL and start.value is None:
        revision = 0 if _made(name, journal) else journal.base
        start = start._replace(value=documents.default(name), revision=revision)
    value, reached = start.value, start.revision
    for entry in [*folded_entries(home, after=start.revision), *journal.entries]:
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
    what = "damaged, and neither a backup nor the journal reaches back far enough to rebuild it."
    fix = "Restore it from a copy of your own; nothing was deleted."
    return CorruptDocument(what, fix=fix, where=f"{name}.json")

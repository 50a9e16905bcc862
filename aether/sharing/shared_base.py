"""The base of a colony: all that its journal made up to a revision, as files, from which a new replica starts.

The documents, the history by months and the append-only files of a folded home are kept as blobs; a manifest, which is the
newest snapshot of the journal's stream, names each with its checksum. Nothing of it is replayed: a new replica writes the
files, byte for byte, and reads the lines after them. So a home whose first months were removed can be shared as well, and
its replicas have the history that it has. Whoever may make a base makes one of a history that continues the one before.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from aether import regular
from aether.errors import AetherError, CorruptDocument, NotFound
from aether.sharing.ledgers import Colony
from aether.sharing.shared_files import PART_BYTES, Blobs, File
from aether.store import documents, files, ledger, record_files
from aether.store.commit import mark_of
from aether.store.journal import journal_header, journal_path, month_files
from aether.store.ledger import JOURNAL, Mark
from aether.store.log import checksum_of, head_path, lines_backwards, seal_json, set_head, unsealed
from aether.store.seals import ranges
from aether.store.snapshot import Snapshot

# After so many lines a new base is made.
LINES = 10_000
# How often a new replica looks for a newer base when blobs of the one that it reads were removed.
TRIES = 3
_PLACES = re.compile(
    r"data/(journal|archive/items)/[0-9]{4}-[0-9]{2}\.jsonl|data/(receipts|events|history)\.jsonl"
)
_DOCUMENTS = frozenset(f"data/{name}.json" for name in documents.NAMES)


class Base(NamedTuple):
    """What the manifest of a base says."""

    revision: int
    checksum: str
    """As in `ledger.Mark`."""
    made: tuple[str, ...]
    """The optional documents that the home has."""
    files: tuple[File, ...]


def needs_another(server: Colony, revision: int) -> bool:
    """Return whether it is time for a new base, and the own role may make one."""
    return server.right == "admin" and revision - server.base(JOURNAL)[0] >= LINES


def set_base(server: Colony, blobs: Blobs, snapshot: Snapshot, *, whole: bool = True) -> None:
    """Make the base of a folded home that of its colony; not if its history does not continue the one before.

    A colony that is not `whole` yet has nobody who joined it: its base is what the home has now. The caller holds the lock
    of the home.

    Raises:
        StorageFailed, UnsafePath, Conflict: as the server says; the colony has the base that it had.
    """
    home, before = snapshot.home, read(server)
    growing = [file for file in before.files if file.path not in _DOCUMENTS] if before and whole else []
    if not all(_continues(home, file) for file in growing):
        return
    mark = mark_of(snapshot)
    optional = [name for name in documents.OPTIONAL if name in snapshot.stamps]
    base_files = tuple(_put(blobs, home, name) for name in _names(home))
    value = {
        "base": 1, "revision": mark.revision, "checksum": mark.checksum, "made": optional,
        "files": [{**file._asdict(), "parts": list(file.parts)} for file in base_files],
    }  # fmt: skip
    made_of = server.put_blob(seal_json(value))
    names = _names_of(Base(mark.revision, mark.checksum, tuple(optional), base_files))
    replaced = server.set_base(JOURNAL, mark, made_of, sorted(names))
    if replaced is None:  # another admin has made a newer one
        replaced, names = made_of, _names_of(read(server))
    elif replaced == made_of:
        return
    if replaced:
        unneeded = _names_of(_manifest(server, replaced)) - names
        server.drop_blob(replaced)
        for name in unneeded:
            blobs.drop(name)


def _names_of(base: Base | None) -> set[str]:
    return {name for file in (base.files if base else ()) for name in file.blobs}


def read(server: Colony) -> Base | None:
    """Return the newest base of a colony; None without one.

    Raises:
        NotFound: it is missing, or was replaced this moment.
        CorruptDocument: it cannot be read.
    """
    revision, name = server.base(JOURNAL)
    if not name:
        return None
    base = _manifest(server, name)
    if base.revision != revision:
        raise _unreadable(server)
    return base


def parts(server: Colony) -> set[str]:
    """Return the names of the blobs that the newest base of a colony consists of; none without one.

    Raises:
        NotFound, CorruptDocument: as `read`.
    """
    return _names_of(read(server))


def _manifest(server: Colony, name: str) -> Base:
    with suppress(KeyError, TypeError, ValueError):
        value = unsealed(server.get_blob(name)) or {}
        base_files = tuple(
            File(entry["path"], entry["sha256"], entry["size"], tuple(entry["parts"]))
            for entry in value["files"]
        )
        base = Base(value["revision"], value["checksum"], tuple(value["made"]), base_files)
        if all(map(_is_ours, base_files)) and {*base.made} <= {*documents.OPTIONAL}:
            return base
    raise _unreadable(server)


def _unreadable(server: Colony) -> CorruptDocument:
    what = "the base of the colony cannot be read."
    return CorruptDocument(what, fix="Restore the database from a backup.", where=server.colony)


def is_of(server: Colony, home: Path) -> bool:
    """Return whether a colony that nobody can join yet has nothing, or a base of the history of `home`."""
    base = read(server)
    if base is None:
        return server.head(JOURNAL) == 0
    for path in reversed(month_files(home)):
        for line in lines_backwards(path):
            fields = unsealed(line) or {}
            if fields.get("revision") == base.revision:
                return checksum_of(line) == base.checksum
    return all(_continues(home, file) for file in base.files)


def fill(home: Path, server: Colony, blobs: Blobs) -> bool:
    """Write the files of the newest base into an empty home; return whether the colony has a base.

    Raises:
        NotFound, CorruptDocument, StorageFailed: it cannot be read whole.
    """
    for tries_left in reversed(range(TRIES)):
        if not (base := read(server)):
            return False
        try:
            for file in base.files:
                _fetch(blobs, file, home)
        except NotFound:
            if not tries_left or read(server) == base:
                raise
            continue
        _enter(home, base)
        break
    return True


def lines_of(server: Colony, blobs: Blobs, revisions: list[int]) -> dict[int, bytes]:
    """Return those lines of the journal that the base of a colony or its stream has, by their revisions.

    Raises:
        NotFound, CorruptDocument, Conflict, UnsafePath, StorageFailed: they cannot be read.
    """
    base, lines_by_revision = read(server), dict[int, bytes]()
    if base and revisions and min(revisions) <= base.revision:
        for file in base.files:
            if file.path.startswith("data/journal/"):
                data = b"".join(map(blobs.get, file.blobs))
                lines_by_revision |= {
                    number: line
                    for line in data.splitlines(keepends=True)
                    if (number := _revision(line)) in revisions
                }
    for first, last in ranges(number for number in revisions if number > (base.revision if base else 0)):
        lines = ledger.lines_after(server, JOURNAL, Mark(first - 1, ""), last)
        lines_by_revision |= {
            number: line for number, line in enumerate(lines, first) if _revision(line) == number
        }
    return lines_by_revision


def _revision(line: bytes) -> int:
    return int((unsealed(line) or {}).get("revision", 0))


def _enter(home: Path, base: Base) -> None:
    """Start the journal of a home that has the files of `base`."""
    for name in documents.NAMES:
        # A document that is edited by hand is compared with what it was.
        path = documents.path_of(home, name)
        if path.exists() and (revision := documents.read_revision(path)) is not None:
            backup = documents.backups_of(home, name) / f"{name}.{revision:012d}.json"
            files.save(backup, regular.read(path, regular.LOG_BYTES))
    files.write_whole(journal_path(home), journal_header(base.revision, made=base.made))
    set_head(head_path(home), base.revision)


def _is_ours(file: File) -> bool:
    return file.path in _DOCUMENTS or bool(_PLACES.fullmatch(file.path))


def _names(home: Path) -> list[str]:
    """Return the files of a base, by their places in the home."""
    paths = [documents.path_of(home, name) for name in documents.NAMES]
    paths = [path for path in paths if path.exists()] + month_files(home)
    for kind in record_files.KINDS:
        paths += record_files.files_of(home, kind)
    return [path.relative_to(home).as_posix() for path in paths]


def _parts(path: Path) -> Iterator[bytes]:
    with regular.opened(path) as file:
        while part := file.read(PART_BYTES):
            yield part


def _put(blobs: Blobs, home: Path, name: str) -> File:
    digest, size, names = hashlib.sha256(), 0, []
    for part in _parts(home / name):
        digest.update(part)
        size += len(part)
        names.append(blobs.put(part))
    return File(name, digest.hexdigest(), size, tuple(names))


def _continues(home: Path, file: File) -> bool:
    """Return whether a file of the home starts with what it was in a base."""
    digest, remaining = hashlib.sha256(), file.size
    try:
        for part in _parts(home / file.path):
            digest.update(part[:remaining])
            remaining -= len(part[:remaining])
    except (OSError, AetherError):
        return False
    return not remaining and digest.hexdigest() == file.sha256


def _fetch(blobs: Blobs, file: File, home: Path) -> None:
    """Write one file of a base, part by part, and check it.

    Raises:
        NotFound, CorruptDocument: as `Colony.get_blob`.
    """
    path, digest, remaining = home / file.path, hashlib.sha256(), file.size
    with files.storage_errors(path):
        files.make_directory(path.parent)
        with open(path, "wb") as output:
            for name in file.parts:
                part = blobs.get(name)
                remaining -= len(part)
                if remaining < 0:
                    break
                digest.update(part)
                output.write(part)
            output.flush()
            os.fsync(output.fileno())
    if remaining or digest.hexdigest() != file.sha256:
        what = "the base of the colony has another file than it says."
        raise CorruptDocument(what, fix="Restore the database from a backup.", where=file.path)

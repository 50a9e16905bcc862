"""Backups: copies of whole homes in a directory or a bucket, each as large as what changed since the one before it.

A place of backups has two kinds of files. `objects/aa/<sha256>` is a piece of a file, named by the hash of its content and
compressed; it is written once. `manifests/<time>_<id>.json` is a backup: one sealed line, written last, that names the pieces of
its index, which is the list of the files with the pieces of each. So a backup that was interrupted does not exist, changes no
other, and the next one uses the pieces that it wrote.

What is restored is written beside its place, compared with the backup, and renamed: the home is there whole, or not at all.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from aether import __version__, clock, paths, regular
from aether.api.home import Home, find, now
from aether.errors import (
    Conflict,
    CorruptDocument,
    InvalidDocument,
    InvalidInput,
    NotFound,
    StorageFailed,
    UnsafePath,
    public,
    shown,
)
from aether.storage import named_files
from aether.storage.adapter import FileStorage, NamedFiles
from aether.store import conversation_list, files, ledger, seals
from aether.store.commit import write_lock
from aether.store.consistent import LEFT_OUT, PIECE_BYTES, Part, part_of, paths_in, piece_name, read_home
from aether.store.files import locked, make_directory, storage_errors, sync_directory, write_all, write_whole
from aether.store.log import seal_json, unsealed
from aether.text.words import pluralize
from aether.types import Finding, JsonObject

if TYPE_CHECKING:
    from concurrent.futures import Future

FORMAT = 1
OBJECTS, MANIFESTS = "objects", "manifests"
# The end of the name of the directory that a restore writes into; the part before it is random.
RESTORING = ".restoring"
IDENTITY = "data/identity.json"
# What zstandard adds to a piece that it cannot compress is less.
MOST_OBJECT_BYTES = PIECE_BYTES + 64 * 1024
MOST_MANIFEST_BYTES = 16 * 1024 * 1024
LEVEL = 3
# Syncs of a disk and answers of a bucket are waited for; compression runs beside both.
WORKERS = 8
# Pieces that wait to be written are in memory.
MOST_WAITING = 2 * WORKERS
_NAME = re.compile(rf"{MANIFESTS}/(\d{{8}}T\d{{6}}\.\d{{6}}Z)_(backup_[0-9a-f]{{8}})\.json", re.ASCII)
_TIME = "%Y%m%dT%H%M%S.%fZ"
_AGAIN = "Remove it, if it is there, and make a backup: what the home still has is written again."
Progress = Callable[[int, str], None]
T = TypeVar("T")
U = TypeVar("U")


class Backup(NamedTuple):
    """One backup of a home."""

    id: str
    at: str
    home: str
    """The path of the home."""
    revision: int
    """The last change that is in it."""
    files: int
    bytes: int
    """The size of its files."""
    new_bytes: int
    """What it added to the place: the size of its new objects, compressed."""
    left_out: list[str]
    """Links, pipes and devices in the home: a backup has none."""


class RestoredHome(NamedTuple):
    """A home that was restored."""

    home: Path
    backup: Backup
    findings: list[Finding]
    """The files that had other content than the home's own seals say, when the backup was made."""


class _Manifest(NamedTuple):
    """A backup, and where the list of its files is."""

    name: str
    backup: Backup
    of: str
    """The identity of the home."""
    listing: Part


class _Index(NamedTuple):
    """The files of a backup by path, and its directories without files."""

    files: dict[str, Part]
    empty: list[str]


@public
def create_backup(
    destination: str, *, adopt: bool = False, progress: Progress | None = None, home: Home = None
) -> Backup:
    """Back the home up to a directory or `s3://bucket/prefix`, and return the backup; only what is new is written.

    Others may write meanwhile: the backup is the home at one moment. The backups of a place are of one home, unless a person
    lets a home `adopt` those of another. `progress` gets percents, and the step.

    Raises:
        InvalidInput: the destination is in a home, or is no place for files.
        Conflict: the place has backups of another home.
        LockTimeout, StorageFailed: there is no new backup; older ones are as they were.
        BackendUnavailable: S3 needs boto3, and it is not installed.
    """
    place, target, report = find(home), _target(destination), progress or _silent
    _require_outside(target)
    earlier = _manifest_names(target)
    identity = _identity_of(place)
    _require_own(target, earlier, place, identity, adopt=adopt)
    known = {name.rpartition("/")[2] for name, size in target.names(OBJECTS).items() if size}
    if isinstance(target, FileStorage) and not (target.root.exists() and any(target.root.iterdir())):
        target.put(".gitignore", b"*\n")  # it may lie in a repository, and does not belong to it
    new: list[int] = []
    with _writing(target, known, new) as keep:
        found = read_home(place, keep, lambda done, all_: report(99 * done // max(all_, 1), "reading"))
        listed = {"files": {path: [*part] for path, part in found.files.items()}, "empty": found.empty}
        pieces = _pieces(files.json_line(listed))
        for name, data in pieces.items():
            keep(name, data)
    made = now()
    backup = Backup(
        _fresh_id(earlier), clock.stamp(made), str(place), found.revision, len(found.files),
        sum(part.size for part in found.files.values()), sum(new), found.left_out,
    )  # fmt: skip
    index = [sum(map(len, pieces.values())), [*pieces]]
    value = {"format": FORMAT, "aether": __version__, **backup._asdict(), "of": identity, "index": index}
    target.put(_manifest_name(backup.id, made, earlier), seal_json(value))
    report(100, "")
    return backup


@public
def backups(destination: str) -> list[Backup]:
    """Return the backups in a place, newest first; what cannot be read is left out, and `verify_backup` names it.

    Raises:
        InvalidInput: the destination is no place for files.
        StorageFailed: it cannot be read.
    """
    target, found = _target(destination), []
    for name in _manifest_names(target):
        with suppress(CorruptDocument, InvalidDocument, NotFound, UnsafePath):
            found.append(_manifest(target, name).backup)
    return found


@public
def verify_backup(
    destination: str, id: str | None = None, *, progress: Progress | None = None
) -> list[Finding]:
    """Read every object of the backups in a place, or of one of them, and return what is missing or was changed.

    Raises:
        InvalidInput: the destination is no place for files.
        NotFound: there is no such backup, or none at all.
        StorageFailed: the place cannot be read.
    """
    target, report = _target(destination), progress or _silent
    names = [_named(target, id)] if id else _manifest_names(target)
    if not names:
        raise _no_backup(target)
    found: list[Finding] = []
    checked: dict[str, int | str] = {}
    for nth, name in enumerate(names):
        try:
            manifest = _manifest(target, name)
            index = _index(target, manifest)
        except (CorruptDocument, InvalidDocument, NotFound, UnsafePath) as reason:
            found.append(Finding("error", reason.code, reason.where, reason.what, reason.fix))
            continue
        pieces = dict.fromkeys(name for part in index.files.values() for name in part.pieces)
        fresh = [name for name in pieces if name not in checked]

        def step(done: int, all_: int = len(fresh), nth: int = nth) -> None:
            report(int(100 * (nth + done / max(all_, 1)) / len(names)), "checking")

        checked |= zip(fresh, _each(lambda name: _fault_or_size(target, name), fresh, step), strict=True)
        found += _faults(target, manifest, index, checked)
    report(100, "")
    return list(dict.fromkeys(found))


@public
def restore_backup(
    destination: str, id: str | None = None, *, progress: Progress | None = None, home: Home = None
) -> RestoredHome:
    """Restore a backup, the newest unless one is named, into a new or empty directory, byte for byte, and return it.

    `home` is the new home; by default `AETHER_HOME`, else `.aether/` in the current directory. It is there when all of it is
    written and compared; if that fails, nothing is.

    Raises:
        Conflict: the directory is not empty.
        NotFound: there is no such backup, or an object of it is missing.
        CorruptDocument, InvalidDocument: it was damaged, or a newer aether made it.
        UnsafePath: it has a path that leads out of a home.
        LockTimeout: another process restores into the same directory.
        StorageFailed: the disk refused.
    """
    place = paths.find_home(home or os.environ.get("AETHER_HOME") or Path.cwd() / paths.HOME_NAME)
    _require_new(place)
    target, report = _target(destination), progress or _silent
    manifest = _manifest(target, _named(target, id))
    index = _index(target, manifest)
    with storage_errors(place, left="Nothing was restored."):
        make_directory(place.parent)
        _clear_left(place)
        beside = place.with_name(f"{place.name}.{os.urandom(6).hex()}{RESTORING}")
        beside.mkdir(mode=0o700)
        with locked(beside, timeout=0):
            try:
                _fill(target, index, beside / "home", report)
                _compare(beside / "home", index)
                with suppress(FileNotFoundError):
                    os.rmdir(place)
                os.rename(beside / "home", place)
                sync_directory(place.parent)
            finally:
                shutil.rmtree(beside, ignore_errors=True)
    report(100, "")
    return RestoredHome(place, manifest.backup, _broken_seals(place))


def _silent(percent: int, step: str) -> None:
    """Report nothing."""


def _target(destination: str) -> NamedFiles:
    """Return the place of backups.

    Raises:
        InvalidInput: it is no place for files, or a part of the path is a file.
    """
    target = named_files(destination)
    if isinstance(target, FileStorage):
        there = next(one for one in (target.root, *target.root.parents) if os.path.lexists(one))
        if not there.is_dir():
            fix = "Name a directory; one that is missing is made."
            raise InvalidInput("is not a directory.", fix=fix, where=str(there))
    return target


def _require_outside(target: NamedFiles) -> None:
    """Raise if the place is in a home: a backup there would be in the next one, and be lost with what it is a copy of."""
    if not isinstance(target, FileStorage):
        return
    for directory in (target.root, *target.root.parents):
        if all((directory / "data" / name).exists() for name in ("journal.jsonl", "memory.json")):
            what = f"it is in the home {directory}."
            raise InvalidInput(what, fix="Name a directory outside of every home.", where=str(target.root))


def _manifest_names(target: NamedFiles) -> list[str]:
    """Return the names of the manifests, newest first."""
    return sorted(filter(_NAME.fullmatch, target.names(MANIFESTS)), reverse=True)


def _manifest_name(id: str, made: datetime, earlier: Sequence[str]) -> str:
    """Return the name of a new manifest, which sorts behind `earlier` ones also where a clock was set back."""
    last = _NAME.fullmatch(earlier[0]) if earlier else None
    if last:
        after = datetime.strptime(last[1], _TIME).replace(tzinfo=UTC) + timedelta(microseconds=1)
        made = max(made, after)
    return f"{MANIFESTS}/{made.astimezone(UTC).strftime(_TIME)}_{id}.json"


def _fresh_id(earlier: Sequence[str]) -> str:
    taken = {found[2] for found in map(_NAME.fullmatch, earlier) if found}
    return next(one for one in iter(lambda: clock.short_id("backup"), "") if one not in taken)


def _identity_of(home: Path) -> str:
    """Return the identity of a home, by which its backups know it in any place; the first backup makes one.

    A home that may not be written and has none is known by its path.
    """
    path = home / IDENTITY
    with write_lock(home, for_reading=True), storage_errors(home):
        with suppress(FileNotFoundError, CorruptDocument, InvalidDocument):
            found = (unsealed(regular.read(path)) or {}).get("home")
            if isinstance(found, str) and found:
                return found
        made = clock.new_id("home", now())
        try:
            write_whole(path, seal_json({"home": made}))
        except OSError as reason:
            if reason.errno not in files.UNWRITABLE:
                raise
            return ""
    return made


def _require_own(
    target: NamedFiles, earlier: Sequence[str], place: Path, identity: str, *, adopt: bool
) -> None:
    """Raise if the newest backup that can be read is of another home: its newest one would be taken for ours."""
    for name in () if adopt else earlier:
        with suppress(CorruptDocument, NotFound, UnsafePath):
            manifest = _manifest(target, name)
            known = manifest.of and identity
            if manifest.of != identity if known else manifest.backup.home != str(place):
                what = f"it has backups of another home, {manifest.backup.home}."
                fix = "Name another place; or, if this home goes on from that one, pass --adopt."
                raise Conflict(what, fix=fix, where=target.where())
            return


def _pieces(data: bytes) -> dict[str, bytes]:
    """Return the pieces of a text by their names, in order; no two are equal, for each names its files."""
    cut = (data[at : at + PIECE_BYTES] for at in range(0, len(data), PIECE_BYTES))
    return {piece_name(piece): piece for piece in cut}


def _object(piece: str) -> str:
    return f"{OBJECTS}/{piece[:2]}/{piece}"


@contextmanager
def _writing(target: NamedFiles, known: set[str], sizes: list[int]) -> Iterator[Callable[[str, bytes], None]]:
    """Yield a function that writes a piece unless it is known; at the end of the block all are written.

    The sizes of the new objects are added to `sizes`.
    """
    from concurrent.futures import ThreadPoolExecutor

    import zstandard

    def write(piece: str, data: bytes) -> int:
        packed = zstandard.compress(data, LEVEL)
        target.put(_object(piece), packed)
        return len(packed)

    waiting: deque[Future[int]] = deque()

    def keep(piece: str, data: bytes) -> None:
        if piece not in known:
            known.add(piece)
            waiting.append(pool.submit(write, piece, data))
        while len(waiting) > MOST_WAITING:
            sizes.append(waiting.popleft().result())

    with ThreadPoolExecutor(WORKERS) as pool:
        try:
            yield keep
            sizes += [one.result() for one in waiting]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _each(work: Callable[[T], U], values: Sequence[T], step: Callable[[int], None]) -> Iterator[U]:
    """Yield the results of `work`, in order; several are made at a time, and `step` is called with how many are done."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(WORKERS) as pool:
        try:
            for number, result in enumerate(pool.map(work, values)):
                step(number)
                yield result
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _piece(target: NamedFiles, piece: str) -> bytes:
    """Return the content of a piece.

    Raises:
        NotFound: its object is missing.
        CorruptDocument: its object was changed.
    """
    import zstandard

    name, data = _object(piece), None
    with suppress(zstandard.ZstdError, InvalidDocument):  # InvalidDocument: it is larger than one can be
        packed = target.get(name, MOST_OBJECT_BYTES)
        if zstandard.frame_content_size(packed) <= PIECE_BYTES:
            data = zstandard.ZstdDecompressor().decompress(
                packed, max_output_size=PIECE_BYTES, allow_extra_data=False
            )
    if data is None or piece_name(data) != piece:
        raise CorruptDocument("the object was changed.", fix=_AGAIN, where=target.where(name))
    return data


def _fault_or_size(target: NamedFiles, piece: str) -> int | str:
    """Return the size of a piece, or what is wrong with its object."""
    try:
        return len(_piece(target, piece))
    except NotFound:
        return "missing"
    except (CorruptDocument, UnsafePath):
        return "changed"


def _faults(
    target: NamedFiles, manifest: _Manifest, index: _Index, checked: dict[str, int | str]
) -> Iterator[Finding]:
    """Yield a finding for each object that cannot be used, and for each file whose size is another."""
    spoiled: dict[str, list[str]] = {}
    for path, part in index.files.items():
        sizes = [checked[piece] for piece in part.pieces]
        for piece, size in zip(part.pieces, sizes, strict=True):
            if isinstance(size, str):
                spoiled.setdefault(piece, []).append(path)
        if not any(isinstance(size, str) for size in sizes) and sum(map(int, sizes)) != part.size:
            what = f"the pieces of {shown(path)} have another size than the file."
            yield Finding("error", "changed-backup", target.where(manifest.name), what, _AGAIN)
    for piece, held in spoiled.items():
        state = checked[piece]
        what = f"the object is {state}: {pluralize(len(held), 'files')} of {manifest.backup.id} cannot be restored, such as {shown(held[0])}."
        yield Finding("error", f"{state}-object", target.where(_object(piece)), what, _AGAIN)


def _no_backup(target: NamedFiles, id: str = "") -> NotFound:
    what = f"there is no backup {shown(id)}." if id else "there are no backups."
    fix = 'See "aether backup list", or make one with "aether backup create".'
    return NotFound(what, fix=fix, where=target.where())


def _named(target: NamedFiles, id: str | None) -> str:
    """Return the name of the manifest of a backup, of the newest unless one is named.

    Raises:
        NotFound: there is no such backup.
    """
    found = [name for name in _manifest_names(target) if id is None or name.endswith(f"_{id}.json")]
    if not found:
        raise _no_backup(target, id or "")
    return found[0]


def _manifest(target: NamedFiles, name: str) -> _Manifest:
    """Return what the manifest `name` says.

    Raises:
        CorruptDocument: it was changed.
        InvalidDocument: a newer aether wrote it.
    """
    where, fix = target.where(name), 'Name another backup; "aether backup list" has those that can be read.'
    value = unsealed(target.get(name, MOST_MANIFEST_BYTES)) or {}
    version = value.get("format")
    if isinstance(version, int) and version > FORMAT:
        what = f"its format is {version}, and this aether reads up to {FORMAT}."
        raise InvalidDocument(what, fix="Update aether.", where=where)
    with suppress(KeyError, TypeError, ValueError):
        backup = Backup(*(value[field] for field in Backup._fields))
        if [*map(type, backup)] == [str, str, str, int, int, int, int, list]:
            return _Manifest(name, backup, str(value["of"]), _part(value["index"]))
    raise CorruptDocument("the manifest was changed.", fix=fix, where=where)


def _part(value: Any) -> Part:
    """Return a part from its JSON.

    Raises:
        TypeError, ValueError: it is not one.
    """
    size, pieces = value
    if type(size) is not int or not all(regular.is_sha256(piece) for piece in pieces):
        raise ValueError(value)
    return Part(size, tuple(pieces))


def _index(target: NamedFiles, manifest: _Manifest) -> _Index:
    """Return the list of the files of a backup.

    Raises:
        NotFound, CorruptDocument: it cannot be read.
        UnsafePath: it has a path that no home has.
    """
    data = b"".join(_piece(target, piece) for piece in manifest.listing.pieces)
    where = target.where(manifest.name)
    value: JsonObject = files.parse_json(data, where=where)
    try:
        # Earlier releases took along when the server of a shared home failed last.
        found = {path: _part(part) for path, part in value["files"].items() if path != ledger.TRIED}
        # An earlier release takes the directory of the lock for one without files.
        lock = f"conversations/{conversation_list.LIST_LOCK}"
        empty = [path for path in map(str, value["empty"]) if path != lock]
    except (KeyError, TypeError, ValueError, AttributeError) as reason:
        raise CorruptDocument("its list of files was changed.", fix=_AGAIN, where=where) from reason
    for path in (*found, *empty):
        _require_inside(path, where)
    return _Index(found, empty)


def _require_inside(path: str, where: str) -> None:
    """Raise unless `path` is one that a backup of a home can have; a place of backups may be written by others."""
    if not paths.is_plain(path) or LEFT_OUT.fullmatch(path):
        what = f"it has a file {shown(path)}, which no backup of a home has."
        raise UnsafePath(what, fix="Do not use this backup: somebody changed it.", where=where)


def _require_new(place: Path) -> None:
    """Raise unless nothing is at `place`, or an empty directory."""
    with storage_errors(place, left="Nothing was restored."):
        if os.path.lexists(place) and not (place.is_dir() and not os.listdir(place)):
            fix = "Name a new directory with --home."
            raise Conflict("it is not empty, and nothing is restored over files.", fix=fix, where=str(place))


def _clear_left(place: Path) -> None:
    """Remove what killed restores into `place` have left beside it.

    Raises:
        LockTimeout: one of them is running.
    """
    name = re.compile(re.escape(place.name) + r"\.[0-9a-f]{12}" + re.escape(RESTORING))
    for left in [one for one in place.parent.iterdir() if name.fullmatch(one.name)]:
        if left.is_dir() and not left.is_symlink() and {"lock", "home"}.issuperset(os.listdir(left)):
            with locked(left, timeout=0):
                shutil.rmtree(left)


def _fill(target: NamedFiles, index: _Index, place: Path, report: Progress) -> None:
    """Write the files of a backup below `place`, durably."""
    parents = {parent for path in index.files for parent in Path(path).parents}
    parents |= {parent for path in index.empty for parent in (Path(path), *Path(path).parents)}
    directories = sorted(place / parent for parent in parents)
    for directory in directories or [place]:
        directory.mkdir(mode=0o700)

    def write(path: str) -> None:
        handle = os.open(
            place / path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600
        )
        try:
            for piece in index.files[path].pieces:
                write_all(handle, _piece(target, piece))
            os.fsync(handle)
        finally:
            os.close(handle)

    whole = max(len(index.files), 1)
    for _ in _each(write, [*index.files], lambda done: report(95 * done // whole, "writing")):
        pass
    for directory in directories:
        sync_directory(directory)


def _broken_seals(home: Path) -> list[Finding]:
    """Return a finding for each file that differs from the record of seals of its home, or for a damaged record."""
    record, fix = seals.read(home), 'See "aether doctor"; an earlier backup may have it whole.'
    if record.state == "damaged":
        return [
            Finding("error", record.state, seals.PATH, "the record of what the files hold is damaged.", fix)
        ]
    return [
        Finding("error", "damaged-file", name, what, fix)
        for name in (*record.grown, *record.whole)
        if (what := seals.fault(home, record, name))
    ]


def _compare(place: Path, index: _Index) -> None:
    """Raise unless the files below `place` are those of the backup, byte for byte."""
    found = {path: part_of(place / path) for path, kind in paths_in(place) if kind == "file"}
    if found != index.files:
        other = next(path for path in sorted(found | index.files) if found.get(path) != index.files.get(path))
        what = f"{shown(other)} was read back otherwise than it was written. Nothing was restored."
        raise StorageFailed(what, fix="Check the disk, then try again.", where=str(place))
